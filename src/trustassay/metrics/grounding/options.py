"""The options of the grounding metric, and the rules of its two profiles."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

from trustassay.core.capabilities import Entailment
from trustassay.core.metric import Inventory, Metric
from trustassay.core.sample import Sample
from trustassay.errors import UnknownNameError, UsageError, check_choices, check_least, did_you_mean
from trustassay.judging.refusal import Detector, load_detector
from trustassay.text.sentences import Splitter, load_splitter
from trustassay.text.words import normalise, normalise_squad

Correctness = Literal["auto", "em", "em5", "cm", "none"]
Zero = Literal["invalid", "last"]
Invalid = Literal["void", "imprecise"]
Duplicates = Literal["once", "each"]
Precision = Literal["paper", "alce"]
Blank = Literal["zero", "skip"]


@dataclass(frozen=True, slots=True)
class Rules:
    """How text, citations and refusals are read. Defaults are those of the default profile.

    splitter: name of a sentence splitter, or ``NAME:LANGUAGE``.
    refusal: name of a refusal detector.
    one_text: decide refusal once, on the response as it stands; else the counts use the raw
        text and the correctness figures the one without citations.
    lists: read ``[1, 2]``, ``[1-3]``, ``[Doc 2]``; else the digits after each ``[`` alone.
    trailing: a citation after the full stop belongs to the sentence before it.
    lines: bullets and finished lines end a sentence.
    asides: a sentence without citations that claims nothing ("Here is a summary:") counts nowhere;
        else it counts as unsupported.
    zero: ``[0]`` is invalid; else it cites the last document.
    invalid: the effect of a citation of a missing document: ``void`` makes its sentence
        unsupported and takes its citations out of precision; ``imprecise`` counts it as an
        imprecise citation and judges the others.
    duplicates: ``once`` counts a document cited twice in a sentence once; ``each`` twice.
    precision: with ``paper`` a citation that covers a gold answer which the others also cover
        counts as precise; with ``alce`` it does not.
    words: gold answers match whole words; else any part of a word.
    lists_split: splitting of list answers respects numbering, "and", and names with commas.
    blank: an empty response counts ``zero`` in the citation figures; ``skip`` leaves it out.
    untitled: the premise of a passage without a title is only its text; else it has an empty
        title.
    undefined_f1_zero: the F1 of undefined recall and precision is 0; else it is undefined.
    """

    splitter: str = "sentencex"
    refusal: str = "phrases"
    one_text: bool = True
    lists: bool = True
    trailing: bool = True
    lines: bool = True
    asides: bool = True
    zero: Zero = "invalid"
    invalid: Invalid = "void"
    duplicates: Duplicates = "once"
    precision: Precision = "paper"
    words: bool = True
    lists_split: bool = True
    blank: Blank = "zero"
    untitled: bool = True
    undefined_f1_zero: bool = False

    def normal(self, text: str) -> str:
        """Return a text as gold answers are looked for in it."""
        return normalise(text) if self.words else normalise_squad(text)

    def contains(self, text: str, answer: str) -> bool:
        """Whether an answer is in a text, both normalised; the empty one is no word."""
        if not self.words:
            return answer in text
        return bool(answer) and f" {answer} " in f" {text} "


PROFILES = {
    "default": Rules(),
    # The numbers of trust_eval 0.1.6.
    "paper": Rules(
        splitter="punkt", refusal="paper", one_text=False, lists=False, trailing=False,
        lines=False, asides=False, zero="last", duplicates="each", words=False,
        lists_split=False, blank="skip", untitled=False, undefined_f1_zero=True,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class GroundingOptions(Metric):
    """The options; :class:`~trustassay.metrics.grounding.Grounding` says what they mean."""

    name: ClassVar[str] = "grounding"

    profile: str = "default"
    correctness: Correctness = "auto"
    splitter: str | Splitter | None = None
    refusal: str | Callable[[str], object] | None = None
    threshold: float = 0.5
    at_most_citations: int | None = 3
    cited_only: bool = False
    one_text: bool | None = None
    lists: bool | None = None
    trailing: bool | None = None
    lines: bool | None = None
    asides: bool | None = None
    zero: Zero | None = None
    invalid: Invalid | None = None
    duplicates: Duplicates | None = None
    precision: Precision | None = None
    words: bool | None = None
    lists_split: bool | None = None
    blank: Blank | None = None

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise UnknownNameError(did_you_mean("profile", self.profile, PROFILES))
        check_choices(self, correctness=Correctness, zero=Zero, invalid=Invalid)
        check_choices(self, duplicates=Duplicates, precision=Precision, blank=Blank)
        # The paper's citation reader has no notion of a full stop or of a bullet.
        check_least(self, at_most_citations=1)
        if not self.rules.lists and (self.trailing or self.lines):
            raise UsageError("trailing and lines need lists=yes; the paper's rules have neither")
        if not 0 < self.threshold < 1:
            raise UsageError("threshold: expected a probability between 0 and 1")
        # Build these now: an unknown name must fail before a run starts.
        _ = self.split, self.refusal_words

    @cached_property
    def rules(self) -> Rules:
        """The rules of the profile, replaced by this metric's own options where they are set."""
        values = {f.name: getattr(self, f.name, None) for f in dataclasses.fields(Rules)}
        # ``undefined_f1_zero`` and ``untitled`` are no options, so getattr gives None. A splitter
        # or a detector may be a function, which the rules cannot hold.
        overrides = {k: v for k, v in values.items() if v is not None and not callable(v)}
        return dataclasses.replace(PROFILES[self.profile], **overrides)

    @cached_property
    def split(self) -> Splitter:
        """The sentence splitter of this metric."""
        return load_splitter(self.splitter if callable(self.splitter) else self.rules.splitter)

    @cached_property
    def refusal_words(self) -> Detector:
        """The refusal detector of this metric."""
        return load_detector(self.refusal if callable(self.refusal) else self.rules.refusal)

    def settings(self) -> dict[str, Any]:
        """Return the options with every default filled in by the profile."""
        options = super().settings()
        rules = dataclasses.asdict(self.rules)
        return {k: rules.get(k) if v is None and k in rules else v for k, v in options.items()}

    def resolve(self, inventory: Inventory) -> Self:
        """Resolve ``correctness=auto`` by the fields of the samples."""
        if self.correctness != "auto":
            return self
        chosen: Correctness = "none"
        # A whole sentence is hardly ever word for word in a response, so it is a claim to be
        # entailed.
        if inventory.claims or inventory.sentence_answers * 2 > inventory.answers > 0:
            chosen = "cm"
        elif inventory.answers:
            chosen = "em"
        return dataclasses.replace(self, correctness=chosen)

    def golds(self, sample: Sample) -> list[tuple[str, ...]]:
        """Return the references for the response: for each gold answer or claim its aliases."""
        if self.correctness == "cm":
            # Of an answer with aliases one is enough: they say the same.
            return [(claim,) for claim in sample.claims] or [a[:1] for a in sample.answers]
        return list(sample.answers)

    def entails(self, judgement: Entailment) -> bool:
        """Whether a judgement counts as entailed."""
        return judgement.entailment >= self.threshold
