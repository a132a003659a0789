"""The options, and the answers to the original prompt and to perturbed ones: recorded or requested,
and as evidence.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import count
from typing import Any, ClassVar, Literal, NamedTuple

import jinja2
import numpy as np

from trustassay.capabilities import Models, Reply, Vectors
from trustassay.errors import AssessmentError, CallError, UsageError, check_choices, check_least
from trustassay.metric import Metric
from trustassay.metrics.harmonicity.perturbations import (
    LAST_CONTROL,
    MOST,
    Family,
    NoPerturbationError,
    check_reach,
    family,
    perturb,
    shown,
)
from trustassay.prompts import Prompt, shipped
from trustassay.sample import Sample, is_blank
from trustassay.statistics.resampling import generator
from trustassay.views import EvidenceRow, Piece, Rows, word_differences

Original = Literal["ask", "response"]
PAPER = 0.05
"""What the paper takes for its embedder (section 4)."""
BOUNDS: Mapping[str, float] = {"embedded": 0.18, "openai:text-embedding-ada-002": PAPER}
"""Gamma from which an answer is not stable, by embedder; that of ``embedded`` by
``python -m benchmarks.stability``, that of the paper's embedder from the paper."""
DEFAULT_EMBEDDER = "embedded"


def measured_bound(embedder: str) -> float | None:
    """Return the bound of an embedder by its name, whatever its version or address."""
    name = re.split(r"[@?]", embedder)[0]
    return BOUNDS.get("embedded" if re.fullmatch(r"embedded(:\d+)?", name) else name)


@dataclass(frozen=True)
class PerturbingOptions(Metric):
    """The common options of metrics that compare an answer with answers to perturbed prompts.

    Args:
        perturbations: perturbed prompts, N; 1 for use in real time.
        perturbation: ``control`` (the paper's: one to three characters of ASCII 0-31 appended),
            ``codes`` (as the authors' program does it: a space first), ``unicode``,
            ``whitespace``, ``typo``, ``synonym``, ``paraphrase`` (asked of the model),
            ``embeddings`` (moves those of the prompt's tokens in a ball; ``hf:`` models alone),
            ``python:MODULE:FUNCTION``, or a function of the text and a generator.
        length: maximum number of characters added or mistyped, or of words replaced.
        range: the highest code point that ``codes`` draws.
        radius: of the ball of ``embeddings``, relative to their mean length.
        original: ``ask`` for the answer to the original prompt, or use the sample's
            ``response``.
        prompt: file of a template with the question; without it the prompt is the question.
        temperature, max_tokens: of every call.
        stable_below: a score below it counts as stable (but not if the angle exceeds 90 degrees);
            without it, the bound that was measured for the run's embedder, or the paper's.
        seed: of the perturbations and of resampling.

    A sample with ``resamples`` is scored from them and its response, without calls. An empty
    answer is a failure: one to a perturbed prompt is recorded and replaced by another (a
    recorded one is left out). The sample fails if more are empty than are wanted (for recorded
    ones: than are not), or if the original answer is.
    """

    reads_response: ClassVar[bool] = False
    lower_is_better: ClassVar[bool] = True
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    counts_outcomes: ClassVar[bool] = False
    """A change is a degree, and a stable answer may be wrong."""
    verdicts: ClassVar[tuple[str, ...]] = ("stable", "unstable")

    perturbations: int = 10
    perturbation: str | Callable[[str, np.random.Generator], str] = "control"
    length: int = MOST
    range: int = LAST_CONTROL
    radius: float = 0.4
    original: Original = "ask"
    prompt: str | None = None
    temperature: float = 0.0
    max_tokens: int = 512
    stable_below: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_least(self, perturbations=1, max_tokens=1, temperature=0, seed=0)
        check_choices(self, original=Original)
        if self.stable_below is not None and not 0 < self.stable_below < 1:
            raise UsageError("stable_below: expected a number between 0 and 1")
        if not 0 < self.radius < float("inf"):
            raise UsageError(f"radius: expected a finite number above 0, got {self.radius:g}")
        if self.radius != type(self).radius and not self.ball:
            raise UsageError("radius: applies to the perturbation embeddings alone")
        _ = self.family, self.template  # an unknown name or a faulty file is to fail here

    @property
    def embedder(self) -> str:
        """The name of the embedder of the run; without a run, of the default one."""
        return str(self.backend_names.get("embedder", DEFAULT_EMBEDDER))

    @property
    def stability_bound(self) -> float:
        """The score from which an answer is no longer stable."""
        if self.stable_below is not None:
            return self.stable_below
        return measured_bound(self.embedder) or PAPER

    @property
    def line(self) -> str:
        """The bound of stable answers, and where it comes from."""
        whose, name = "stable_below", self.embedder
        if self.stable_below is None and measured_bound(name) is None:
            whose = f"stable_below of the paper's embedder; none is measured for {name}"
        elif self.stable_below is None:
            whose = f"stable_below, measured for {name}"
        bound = f"{self.stability_bound:g} or more ({whose})"
        return f"answers to perturbed prompts differ from it by {bound}"

    @cached_property
    def family(self) -> Family:
        """The family of perturbations."""
        if self.ball or self.perturbation == "paraphrase":
            check_reach(str(self.perturbation), self.length, self.range)
            return Family(str(self.perturbation), lambda text, _: text)
        return family(self.perturbation, self.length, self.range)

    @property
    def ball(self) -> str:
        """How embeddings are moved, for evidence; empty where the text is changed."""
        return f"embeddings, radius {self.radius:g}" if self.perturbation == "embeddings" else ""

    def settings(self) -> dict[str, Any]:
        """Return the options; the radius only where it applies, so that earlier runs go on."""
        return {k: v for k, v in super().settings().items() if k != "radius" or self.ball}

    @cached_property
    def template(self) -> Prompt | None:
        """The template around the question."""
        return None if self.prompt is None else Prompt.read(self.prompt)


_TAIL = re.compile(r"(?s:\\x[0-9a-f]+|\\.|.){0,4}|embeddings, radius \S+")
"""A few characters, unprintable ones spelled out, or a ball; anything else is a whole prompt."""


@dataclass(frozen=True, slots=True)
class Answer(EvidenceRow, told_by=("answer",)):
    """An answer to a perturbed prompt; ``change`` shows how the prompt was changed.

    ``unseen``: the endpoint counted no more tokens for the longer prompt, so it may have stripped
    what was added. ``cut`` at ``max_tokens``.
    """

    answer: str
    change: str = ""
    unseen: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True)
class OriginalAnswer(EvidenceRow, told_by=("original",)):
    """The answer to the original prompt."""

    original: str


@dataclass(frozen=True, slots=True)
class Refused(EvidenceRow, told_by=("refused",)):
    """The change of a prompt that the endpoint refused."""

    refused: str


@dataclass(frozen=True, slots=True)
class Empty(EvidenceRow, told_by=("empty",)):
    """The change of a prompt that was answered with an empty reply."""

    empty: str


class Change(NamedTuple):
    """How a prompt was changed: a tail of a few characters, or the whole prompt in pieces.

    ``seen`` is False where the endpoint may have stripped what was added.
    """

    text: str
    seen: bool
    pieces: Sequence[Piece] = ()


@dataclass(slots=True)
class Variant:
    """One answer, and the changes of the prompt that gave it."""

    text: str
    times: int = 0
    changes: list[Change] = field(default_factory=list)
    pieces: Sequence[Piece] = ()
    compared: bool = True


@dataclass(slots=True)
class Perturbed:
    """The original answer, and the answers to perturbed prompts, equal ones as one.

    ``same`` is the variant that equals the original, if any; ``variants`` are the others, the most
    frequent first. ``rest`` is evidence of any other kind.
    """

    original: str | None = None
    same: Variant | None = None
    variants: Sequence[Variant] = ()
    refused: Sequence[str] = ()
    empty: Sequence[str] = ()
    answers: int = 0
    rest: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def read(cls, evidence: Iterable[Any], question: str = "") -> "Perturbed":
        """Sort the evidence; a whole changed prompt is compared with ``question``."""
        rows = Rows(evidence, OriginalAnswer, Answer, Refused, Empty)
        original = next((one.original for one in reversed(rows.of(OriginalAnswer))), None)
        by_text: dict[str, Variant] = {}
        for one in rows.of(Answer):
            variant = by_text.setdefault(one.answer.strip(), Variant(one.answer))
            variant.times += 1
            if one.change:
                pieces: Sequence[Piece] = ()
                if not _TAIL.fullmatch(one.change):
                    whole = word_differences(question, one.change)
                    pieces = whole or [Piece("same", one.change)]
                change = Change(one.change, not one.unseen, pieces)
                variant.changes += [change] if change not in variant.changes else []
        same = by_text.pop(original.strip(), None) if original is not None else None
        for variant in by_text.values():
            result = word_differences(original, variant.text) if original is not None else None
            variant.compared = result is not None
            variant.pieces = result or [Piece("same", variant.text)]
        variants = sorted(by_text.values(), key=lambda variant: -variant.times)
        refused = [one.refused for one in rows.of(Refused)]
        empty = [one.empty for one in rows.of(Empty)]
        return cls(original, same, variants, refused, empty, len(rows.of(Answer)), rows.rest)


def recorded(sample: Sample) -> tuple[str, list[Answer], list[str]]:
    """Return the response, the resamples that say something, and the names of those that do not.

    Raises AssessmentError if the response is blank, or more resamples are than are not.
    """
    if sample.response is None:
        raise AssessmentError("has resamples, but no response to compare them with")
    if is_blank(sample.response):
        raise AssessmentError("the response is blank", "empty")
    answers = [Answer(text) for text in sample.resamples if not is_blank(text)]
    blank = [f"resamples[{i}]" for i, text in enumerate(sample.resamples) if is_blank(text)]
    if len(blank) > len(answers):
        message = f"{len(blank)} of {len(sample.resamples)} resamples are blank"
        raise AssessmentError(message, "empty")
    return sample.response, answers, blank


@dataclass
class Asking:
    """Makes the calls for one sample: the original prompt, and perturbed ones in steps.

    Which perturbed prompts it asks follows from the metric's seed and the sample's id; those of
    one call of :meth:`more` go on where the last left off.
    """

    metric: PerturbingOptions
    sample: Sample
    models: Models
    refused: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = generator(self.metric.seed, self.sample.id, "perturbation")
        self._plain: asyncio.Future[Reply] | None = None
        self._taken: set[str] = set()
        self._paraphrases, self._draws = 0, count()

    async def original(self) -> str:
        """Return the answer to the original prompt."""
        if self.metric.original == "response" and self.sample.response is not None:
            if not self.sample.answered:
                raise AssessmentError("the response is blank", "empty")
            return self.sample.response
        return (await self._plain_reply()).text

    def cut(self, answers: Sequence[Answer]) -> int:
        """Return how many answers were cut at ``max_tokens``, with the original one."""
        plain = self._plain.result() if self._plain and self._plain.done() else None
        return sum(answer.cut for answer in answers) + (plain is not None and is_cut(plain))

    async def more(self, n: int) -> list[Answer]:
        """Return the answers to ``n`` further perturbed prompts.

        One that the endpoint refuses, or whose reply is empty, is recorded and replaced by another;
        with more lost than are wanted in total, or a prompt that cannot be perturbed, it raises
        AssessmentError.
        """
        answers: list[Answer] = []
        while len(answers) < n:
            changed = await self._changed(n - len(answers))
            replies = await asyncio.gather(
                *(self._reply(text, next(self._draws)) for text in changed), return_exceptions=True
            )
            for text, reply in zip(changed, replies, strict=True):
                change = self.metric.ball or shown(self.sample.question, text)
                if isinstance(reply, BaseException):
                    self._lose(change, reply)
                else:
                    unseen = not await self._seen(reply)
                    answers.append(Answer(reply.text, change, unseen, is_cut(reply)))
        return answers

    def _lose(self, change: str, error: BaseException) -> None:
        """Record a prompt that was refused or got an empty reply; raise any other error."""
        kind = error.kind if isinstance(error, CallError) else None
        if kind not in ("refused", "empty"):
            raise error
        (self.empty if kind == "empty" else self.refused).append(change)
        if len(self.refused) + len(self.empty) > self.metric.perturbations:
            how = "answered with an empty reply" if kind == "empty" else "refused"
            raise AssessmentError(f"perturbed prompts are {how}: {error}", kind)

    async def _changed(self, n: int) -> list[str]:
        """Return up to ``n`` perturbed questions, each of which changes the prompt."""
        if self.metric.perturbation == "paraphrase":
            return await self._paraphrased(n)
        if self.metric.ball:
            return [self.sample.question] * n
        question, how, result = self.sample.question, self.metric.family, list[str]()
        try:
            for _ in range(n):
                result.append(perturb(question, how, self._rng, self._taken))
                self._taken.add(result[-1])
        except NoPerturbationError as error:
            raise AssessmentError(str(error)) from None
        return result

    async def _paraphrased(self, n: int) -> list[str]:
        """Ask for ``n`` paraphrases; return those that are not blank and not the question."""
        prompt, question = shipped(__package__, "paraphrase"), self.sample.question
        ask = partial(
            self.models.chat,
            prompt.filled(text=question),
            temperature=1.0,
            max_tokens=self.metric.max_tokens,
            prompt=prompt.name,
        )
        numbers = range(self._paraphrases, self._paraphrases + n)
        self._paraphrases += n
        replies = await asyncio.gather(
            *(ask(repeat=number) for number in numbers), return_exceptions=True
        )
        result = []
        for reply in replies:
            if isinstance(reply, BaseException):
                self._lose("", reply)
            elif is_cut(reply) or reply.text.strip() == question.strip():
                message = "the model gave no paraphrase of the question"
                self._lose(reply.text.strip(), CallError(message, "refused"))
            else:
                result.append(reply.text.strip())
        return result

    def _prompt(self, question: str) -> tuple[str, str]:
        """Return what is asked, and the name of the prompt that was made for it."""
        template = self.metric.template
        if template is None:
            return question, ""
        try:  # not Prompt.filled, which strips its ends, and so what was appended
            text = template.template.render(question=question, sample=self.sample)
        except jinja2.TemplateError as error:
            raise AssessmentError(f"prompt {template.name}: {error.message}") from None
        return text, template.name

    async def _reply(self, question: str, draw: int | None = None) -> Reply:
        text, name = self._prompt(question)
        if question != self.sample.question and text == self._prompt(self.sample.question)[0]:
            raise AssessmentError(f"the prompt {name} does not contain the perturbation")
        ball: dict[str, Any] = {}
        if draw is not None and self.metric.ball:
            radius, seed = self.metric.radius, self.metric.seed
            ball = {"embedding_radius": radius, "seed": seed, "repeat": draw}
        return await self.models.chat(
            text,
            temperature=self.metric.temperature,
            max_tokens=self.metric.max_tokens,
            prompt=name,
            **ball,
        )

    def _plain_reply(self) -> asyncio.Future[Reply]:
        if self._plain is None:
            self._plain = asyncio.ensure_future(self._reply(self.sample.question))
        return self._plain

    async def _seen(self, reply: Reply) -> bool:
        """Whether what was added counts among the tokens; unknown counts as seen."""
        if not self.metric.family.appends or self.metric.original == "response":
            return True
        asked, plain = reply.prompt_tokens, (await self._plain_reply()).prompt_tokens
        return asked is None or plain is None or asked > plain


def is_cut(reply: Reply) -> bool:
    """Whether a reply ended because its tokens were used up."""
    return reply.finish == "length"


async def vectors_of(texts: Sequence[str], models: Models) -> Vectors:
    """Return the vectors of texts without the white space around them, shape (n, d)."""
    return np.stack(await asyncio.gather(*(models.embed(text.strip()) for text in texts)))
