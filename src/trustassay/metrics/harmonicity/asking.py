"""Options of ``harmonicity``; original and perturbed answers, as calls and as evidence."""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import count
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from trustassay.core.capabilities import Models, Reply, Vectors
from trustassay.core.evidence import EvidenceRow, EvidenceRows, Piece, diff_words
from trustassay.core.metric import Metric
from trustassay.core.prompts import Prompt, load_prompt
from trustassay.core.sample import Sample, is_blank
from trustassay.errors import AssessmentError, CallError, UsageError, check_choices, check_least
from trustassay.metrics.harmonicity.perturbations import (
    LAST_CONTROL,
    MAX_CHANGES,
    Family,
    NoPerturbationError,
    check_reach,
    find_family,
    perturb,
    show_change,
)
from trustassay.statistics.resampling import generator

Original = Literal["ask", "response"]
PAPER_BOUND = 0.05
"""The bound of stable answers that the paper uses with its embedder (section 4)."""
STABILITY_BOUNDS: Mapping[str, float] = {
    "embedded": 0.18,
    "openai:text-embedding-ada-002": PAPER_BOUND,
}
"""Gamma from which an answer is not stable, by embedder: measured for ``embedded`` by
``python -m lab.benchmarks.stability``, from the paper for its own embedder."""
DEFAULT_EMBEDDER = "embedded"


def find_measured_bound(embedder: str) -> float | None:
    """Return the bound of an embedder by its name, whatever its version or address."""
    # Cut off an address or parameters: "openai:NAME@https://host/v1?dimensions=256".
    name = re.split(r"[@?]", embedder)[0]
    # Versions of one embedder were measured together.
    return STABILITY_BOUNDS.get("embedded" if re.fullmatch(r"embedded(:\d+)?", name) else name)


@dataclass(frozen=True)
class PerturbingOptions(Metric):
    """The common options of metrics that compare an answer with answers to perturbed prompts.

    Args:
        perturbations: number of perturbed prompts, N; 1 for use in real time.
        perturbation: ``control`` (as in the paper: appends one to three characters of ASCII 0-31),
            ``codes`` (as in the authors' program: a space first), ``unicode``, ``whitespace``,
            ``typo``, ``synonym``, ``paraphrase`` (written by the model), ``embeddings`` (moves
            the embeddings of the prompt's tokens in a ball; only for ``hf:`` models),
            ``python:MODULE:FUNCTION``, or a function of the text and a generator.
        length: maximum number of characters to add or mistype, or of words to replace.
        range: the highest code point that ``codes`` draws.
        radius: radius of the ball of ``embeddings``, relative to their mean length.
        original: ``ask`` for the answer to the original prompt, or use the sample's
            ``response``.
        prompt: file with a template with the question; by default the prompt is the question.
        temperature, max_tokens: settings of every call.
        stable_below: a score below it counts as stable, unless the angle exceeds 90 degrees;
            default: the bound that was measured for the run's embedder, or the paper's.
        seed: seed of the perturbations and of resampling.

    A sample with ``resamples`` is scored from them and its response, without calls. An empty
    answer to a perturbed prompt is recorded and replaced by another; a recorded empty one is left
    out. The sample fails if more answers are empty than are wanted (recorded ones: if more are
    empty than not), or if the original answer is empty.
    """

    reads_response: ClassVar[bool] = False
    lower_is_better: ClassVar[bool] = True
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    counts_outcomes: ClassVar[bool] = False
    """A change is a degree, and a stable answer may be wrong."""
    verdicts: ClassVar[tuple[str, ...]] = ("stable", "unstable")

    perturbations: int = 10
    perturbation: str | Callable[[str, np.random.Generator], str] = "control"
    length: int = MAX_CHANGES
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
        # The class attribute is the default: a radius set for another perturbation would be
        # ignored.
        if self.radius != type(self).radius and not self.ball:
            raise UsageError("radius: applies only to the perturbation embeddings")
        # Build these now: an unknown name or a faulty file must fail before a run starts.
        _ = self.family, self.template

    @property
    def embedder(self) -> str:
        """The name of the embedder of the run; without a run, of the default one."""
        return str(self.backend_names.get("embedder", DEFAULT_EMBEDDER))

    @property
    def stability_bound(self) -> float:
        """The score from which an answer is no longer stable."""
        if self.stable_below is not None:
            return self.stable_below
        return find_measured_bound(self.embedder) or PAPER_BOUND

    @property
    def line(self) -> str:
        """The bound of stable answers, and where it comes from."""
        source, name = "stable_below", self.embedder
        if self.stable_below is None and find_measured_bound(name) is None:
            source = f"stable_below from the paper; not measured for {name}"
        elif self.stable_below is None:
            source = f"stable_below, measured for {name}"
        bound = f"{self.stability_bound:g} or more ({source})"
        return f"its score for answers to perturbed prompts is {bound}"

    @cached_property
    def family(self) -> Family:
        """The family of perturbations."""
        if self.ball or self.perturbation == "paraphrase":
            check_reach(str(self.perturbation), self.length, self.range)
            # The model changes these (:class:`PromptPerturber`); the family only carries the name.
            return Family(str(self.perturbation), lambda text, _: text)
        return find_family(self.perturbation, self.length, self.range)

    @property
    def ball(self) -> str:
        """The move of the embeddings as evidence shows it; empty where the text is changed."""
        return f"embeddings, radius {self.radius:g}" if self.perturbation == "embeddings" else ""

    def settings(self) -> dict[str, Any]:
        """Return the options; ``radius`` only where it applies, so that older runs can continue."""
        return {k: v for k, v in super().settings().items() if k != "radius" or self.ball}

    @cached_property
    def template(self) -> Prompt | None:
        """The template around the question."""
        return None if self.prompt is None else Prompt.read(self.prompt, "question sample")


_TAIL = re.compile(r"(?s:\\x[0-9a-f]+|\\.|.){0,4}|embeddings, radius \S+")
"""A change that is not a whole prompt: up to four characters, unprintable ones spelled out as in
``\\x1f`` or ``\\n``, or a ball such as "embeddings, radius 0.4"."""


@dataclass(frozen=True, slots=True)
class PerturbedAnswer(EvidenceRow, required=("answer",)):
    """An answer to a perturbed prompt."""

    answer: str
    """The answer."""
    change: str = ""
    """The characters that were added to the prompt, or the whole changed prompt."""
    unseen: bool = False
    """Whether the endpoint may have stripped what was added: it counted no more tokens."""
    cut: bool = False
    """Whether the answer ended at ``max_tokens``."""


@dataclass(frozen=True, slots=True)
class OriginalAnswer(EvidenceRow, required=("original",)):
    """The answer to the original prompt."""

    original: str


@dataclass(frozen=True, slots=True)
class RefusedPrompt(EvidenceRow, required=("refused",)):
    """A perturbed prompt that the endpoint refused."""

    refused: str
    """The change of the prompt."""


@dataclass(frozen=True, slots=True)
class EmptyReply(EvidenceRow, required=("empty",)):
    """A perturbed prompt whose reply was empty, or a blank resample."""

    empty: str
    """The change of the prompt, or the field of the resample."""


class PromptChange(NamedTuple):
    """How a prompt was changed."""

    text: str
    """The added characters, or the whole changed prompt."""
    reached_model: bool
    """False where the endpoint may have stripped what was added."""
    pieces: Sequence[Piece] = ()
    """The whole prompt in pieces, compared with the question; empty for added characters."""


@dataclass(slots=True)
class AnswerVariant:
    """One distinct answer, and the changes of the prompt that gave it."""

    text: str
    """The answer."""
    times: int = 0
    """How many perturbed prompts gave it."""
    changes: list[PromptChange] = field(default_factory=list)
    """The different changes of those prompts."""
    pieces: Sequence[Piece] = ()
    """The answer in pieces, compared with the original one."""
    compared: bool = True
    """Whether it could be compared: too long texts are not."""


@dataclass(slots=True)
class HarmonicityTrace:
    """All evidence of one assessment, sorted by kind; equal answers are one variant."""

    original: str | None = None
    """The answer to the original prompt; ``None`` where it was not stored."""
    same: AnswerVariant | None = None
    """The variant that equals the original answer, if any."""
    variants: Sequence[AnswerVariant] = ()
    """The other variants, the most frequent first."""
    refused: Sequence[str] = ()
    """The changes that the endpoint refused."""
    empty: Sequence[str] = ()
    """The changes whose reply was empty."""
    answers: int = 0
    """The number of answers to perturbed prompts."""
    other_items: Sequence[Mapping[str, Any]] = ()
    """Evidence of any other kind, as it is stored."""

    @classmethod
    def read(cls, evidence: Iterable[Any], question: str = "") -> "HarmonicityTrace":
        """Sort the evidence; a whole changed prompt is compared with ``question``."""
        rows = EvidenceRows(evidence, OriginalAnswer, PerturbedAnswer, RefusedPrompt, EmptyReply)
        original = next((row.original for row in reversed(rows.select(OriginalAnswer))), None)
        by_text: dict[str, AnswerVariant] = {}
        for row in rows.select(PerturbedAnswer):
            # White space at the ends does not make an answer another one, as in the embedding.
            variant = by_text.setdefault(row.answer.strip(), AnswerVariant(row.answer))
            variant.times += 1
            if row.change:
                pieces: Sequence[Piece] = ()
                if not _TAIL.fullmatch(row.change):
                    # Too long texts have no differences, and are shown as they are.
                    differences = diff_words(question, row.change)
                    pieces = differences or [Piece("same", row.change)]
                change = PromptChange(row.change, not row.unseen, pieces)
                variant.changes += [change] if change not in variant.changes else []
        same = by_text.pop(original.strip(), None) if original is not None else None
        for variant in by_text.values():
            differences_from_original = (
                diff_words(original, variant.text) if original is not None else None
            )
            variant.compared = differences_from_original is not None
            variant.pieces = differences_from_original or [Piece("same", variant.text)]
        variants = sorted(by_text.values(), key=lambda variant: -variant.times)
        refused = [row.refused for row in rows.select(RefusedPrompt)]
        empty = [row.empty for row in rows.select(EmptyReply)]
        return cls(
            original,
            same,
            variants,
            refused,
            empty,
            len(rows.select(PerturbedAnswer)),
            rows.other_items,
        )


def read_recorded(sample: Sample) -> tuple[str, list[PerturbedAnswer], list[str]]:
    """Return the response, the resamples that are not blank, and the names of those that are.

    Raises AssessmentError if the response, or more than half of the resamples, is blank.
    """
    if sample.response is None:
        raise AssessmentError("has resamples, but no response to compare them with")
    if is_blank(sample.response):
        raise AssessmentError("the response is blank", "empty")
    answers = [PerturbedAnswer(text) for text in sample.resamples if not is_blank(text)]
    blank = [f"resamples[{i}]" for i, text in enumerate(sample.resamples) if is_blank(text)]
    if len(blank) > len(answers):
        message = f"{len(blank)} of {len(sample.resamples)} resamples are blank"
        raise AssessmentError(message, "empty")
    return sample.response, answers, blank


@dataclass
class PromptPerturber:
    """Makes the calls for one sample: the original prompt, and perturbed ones in steps.

    The perturbed prompts follow from the metric's seed and the sample's id. Each call of
    :meth:`ask_more` continues the sequence.
    """

    metric: PerturbingOptions
    sample: Sample
    models: Models
    refused: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = generator(self.metric.seed, self.sample.id, "perturbation")
        self._original_call: asyncio.Future[Reply] | None = None
        self._used_questions: set[str] = set()
        # Paraphrases and moved embeddings have the same prompt each time: a number tells the calls
        # apart in the cache.
        self._paraphrases, self._draws = 0, count()

    async def ask_original(self) -> str:
        """Return the answer to the original prompt."""
        if self.metric.original == "response" and self.sample.response is not None:
            if not self.sample.answered:
                raise AssessmentError("the response is blank", "empty")
            return self.sample.response
        return (await self._ask_original_once()).text

    def count_cut(self, answers: Sequence[PerturbedAnswer]) -> int:
        """Count the answers that were cut at ``max_tokens``, the original one included."""
        # With original="response" the original prompt may never have been asked.
        original_reply = (
            self._original_call.result()
            if self._original_call and self._original_call.done()
            else None
        )
        return sum(answer.cut for answer in answers) + (
            original_reply is not None and is_cut(original_reply)
        )

    async def ask_more(self, n: int) -> list[PerturbedAnswer]:
        """Return the answers to ``n`` further perturbed prompts.

        A prompt that is refused, or whose reply is empty, is recorded and replaced by another.
        Raises AssessmentError if more are lost than ``perturbations`` asks for, or the prompt
        cannot be perturbed.
        """
        answers: list[PerturbedAnswer] = []
        # Ends: each round brings an answer or a loss, and losses are limited in _record_loss.
        while len(answers) < n:
            changed = await self._draw_questions(n - len(answers))
            replies = await asyncio.gather(
                # Exceptions are sorted below, so that one refusal does not cancel the other calls.
                *(self._ask(text, next(self._draws)) for text in changed),
                return_exceptions=True,
            )
            for text, reply in zip(changed, replies, strict=True):
                change = self.metric.ball or show_change(self.sample.question, text)
                if isinstance(reply, BaseException):
                    self._record_loss(change, reply)
                else:
                    unseen = not await self._has_reached_model(reply)
                    answers.append(PerturbedAnswer(reply.text, change, unseen, is_cut(reply)))
        return answers

    def _record_loss(self, change: str, error: BaseException) -> None:
        """Record a prompt that was refused or got an empty reply; re-raise any other error."""
        kind = error.kind if isinstance(error, CallError) else None
        if kind not in ("refused", "empty"):
            raise error
        (self.empty if kind == "empty" else self.refused).append(change)
        if len(self.refused) + len(self.empty) > self.metric.perturbations:
            problem = "answered with an empty reply" if kind == "empty" else "refused"
            raise AssessmentError(f"too many perturbed prompts were {problem}: {error}", kind)

    async def _draw_questions(self, n: int) -> list[str]:
        """Return up to ``n`` perturbed questions, each of which changes the prompt."""
        if self.metric.perturbation == "paraphrase":
            return await self._ask_paraphrases(n)
        if self.metric.ball:
            # The endpoint moves the embeddings; the text stays as it is.
            return [self.sample.question] * n
        question = self.sample.question
        family_of_metric = self.metric.family
        questions = list[str]()
        try:
            for _ in range(n):
                questions.append(
                    perturb(question, family_of_metric, self._rng, self._used_questions)
                )
                # Prompts do not repeat, unless the text allows no more different ones.
                self._used_questions.add(questions[-1])
        except NoPerturbationError as error:
            raise AssessmentError(str(error)) from None
        return questions

    async def _ask_paraphrases(self, n: int) -> list[str]:
        """Ask for ``n`` paraphrases; return those that are not blank and not the question."""
        prompt, question = load_prompt(__package__, "paraphrase"), self.sample.question
        ask = partial(
            self.models.chat,
            prompt.fill(text=question),
            # Paraphrases have to differ, whatever the metric's own temperature.
            temperature=1.0,
            max_tokens=self.metric.max_tokens,
            prompt=prompt.name,
        )
        numbers = range(self._paraphrases, self._paraphrases + n)
        self._paraphrases += n
        replies = await asyncio.gather(
            *(ask(repeat=number) for number in numbers), return_exceptions=True
        )
        paraphrases = []
        for reply in replies:
            if isinstance(reply, BaseException):
                self._record_loss("", reply)
            # Half a question, or the question itself, tests nothing.
            elif is_cut(reply) or reply.text.strip() == question.strip():
                message = "the model gave no paraphrase of the question"
                self._record_loss(reply.text.strip(), CallError(message, "refused"))
            else:
                paraphrases.append(reply.text.strip())
        return paraphrases

    def _build_prompt(self, question: str) -> tuple[str, str]:
        """Return the prompt for a question, and the name of the template, empty without one."""
        template = self.metric.template
        if template is None:
            return question, ""
        # Prompt.fill would strip what was appended to the question.
        return template.render(question=question, sample=self.sample), template.name

    async def _ask(self, question: str, draw: int | None = None) -> Reply:
        text, name = self._build_prompt(question)
        # A template may strip or leave out the question: all answers would be "stable".
        if question != self.sample.question and text == self._build_prompt(self.sample.question)[0]:
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

    def _ask_original_once(self) -> asyncio.Future[Reply]:
        if self._original_call is None:
            # Several replies wait for the same call: the first to come starts it.
            self._original_call = asyncio.ensure_future(self._ask(self.sample.question))
        return self._original_call

    async def _has_reached_model(self, reply: Reply) -> bool:
        """Whether the endpoint counted tokens for what was added; True where that is unknown."""
        # A changed text may have fewer tokens. With original="response" the plain prompt is not
        # asked.
        if not self.metric.family.appends or self.metric.original == "response":
            return True
        tokens = reply.prompt_tokens
        original_tokens = (await self._ask_original_once()).prompt_tokens
        return tokens is None or original_tokens is None or tokens > original_tokens


def is_cut(reply: Reply) -> bool:
    """Whether a reply ended at its maximum of tokens."""
    return reply.finish == "length"


async def embed_texts(texts: Sequence[str], models: Models) -> Vectors:
    """Embed texts without the white space around them, shape (n, d)."""
    return np.stack(await asyncio.gather(*(models.embed(text.strip()) for text in texts)))
