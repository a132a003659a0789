"""The contract of a metric, and what a metric receives: a context, a pool, an inventory."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeVar

from numpy.typing import NDArray

from trustassay.core import outcome as outcomes
from trustassay.core.assessment import (
    Assessment,
    Direction,
    Figure,
    Mean,
    Quantile,
    Share,
    Statistic,
    Summary,
    Total,
    WeightedColumns,
    WeightedFigures,
    compute_summary,
    index_figures,
)
from trustassay.core.capabilities import Message, Models, build_repair_turns
from trustassay.core.evidence import EvidenceRow, View
from trustassay.core.outcome import Outcome, OutcomeKind
from trustassay.core.sample import Problem, Sample
from trustassay.errors import MODEL_NOT_GIVEN, AssessmentError, CallError
from trustassay.judging.second_reader import PART_READ_BY_SECOND, SecondReader
from trustassay.text.language import OTHER_LANGUAGE
from trustassay.text.limits import TOO_LONG, USUAL_LIMITS, TextLimits

# Authors of metrics import everything from here; assessment.py holds a part of it.
__all__ = [
    "Assessment", "Context", "Direction", "Figure", "Inventory", "Mean", "Metric", "MetricInfo",
    "Need", "Pool", "Quantile", "Share", "Summary", "Total", "UnreadableReply", "WeightedFigures",
    "ask_twice", "compute_badness", "directions", "index_figures", "reply_unless_empty",
]  # fmt: skip

T = TypeVar("T")

BLANK_RESPONSE = "the response is blank"
"""The error of a sample whose response is blank."""
BLANK_PART = "blank"
"""The part that is 1 if a metric gives a blank answer a score."""
REFUSED_PART = "refusal"
"""The part that is 1 if a metric gives a refusal a score although it answers nothing."""


@dataclass(slots=True)
class Inventory:
    """Counts of the fields of a run's samples, made before the first is scored."""

    samples: int = 0
    """All samples."""
    responses: int = 0
    """Samples with a response that is not blank."""
    answers: int = 0
    """Samples with gold answers."""
    claims: int = 0
    """Samples with gold claims."""
    documents: int = 0
    """Samples with a list of documents, which may be empty."""
    supports: int = 0
    """Samples whose documents say which gold answers they support."""
    labels: int = 0
    """Samples with a human label."""
    sentence_answers: int = 0
    """Samples whose gold answers are mostly whole sentences."""

    @property
    def unanswered(self) -> int:
        """Samples without a response, or with a blank one."""
        return self.samples - self.responses

    def add(self, sample: Sample) -> None:
        """Count one more sample."""
        self.samples += 1
        self.responses += sample.answered
        self.answers += bool(sample.answers)
        self.claims += bool(sample.claims)
        self.documents += sample.documents is not None
        self.supports += sample.supports_known
        self.labels += sample.label is not None
        # The first alias is the canonical wording; five words and a final sign make it a sentence.
        firsts = [aliases[0] for aliases in sample.answers if aliases]
        final_signs = (".", "!", "?")
        sentences = [t for t in firsts if len(t.split()) >= 5 and t.rstrip().endswith(final_signs)]
        self.sentence_answers += 2 * len(sentences) > len(firsts) > 0


def directions(higher: str = "", lower: str = "", neither: str = "") -> dict[str, Direction]:
    """Return the direction of each part from names separated by spaces."""
    names_by_direction: dict[Direction, str] = {"higher": higher, "lower": lower, "": neither}
    return {
        name: direction for direction, names in names_by_direction.items() for name in names.split()
    }


@dataclass(frozen=True, slots=True)
class Need:
    """A capability that a metric needs; a run that cannot meet it is refused before anything
    starts."""

    capability: str
    """A method of :class:`~trustassay.core.capabilities.Models`."""
    role: str = ""
    """Role of the chat model: ``model`` (the one under assessment, also if empty), ``judge``,
    ``generator`` or ``references``; of an entailer ``second``."""
    many: bool = False
    """Whether several models may have the role, each with its own name."""
    optional: bool = False
    """Whether the metric also works without it."""
    default: str | None = None
    """The backend that is loaded if none is given, in place of the capability's own default."""
    field: Literal["documents"] | None = None
    """A field of the samples, counted by :class:`Inventory`, that serves an optional need in place
    of a backend; a run that has neither is refused."""
    only_with: str = ""
    """The need exists only in a run that has a backend of this option name, as ``generator``."""
    embeddings: bool = False
    """Whether the chat model must be able to move the embeddings of a prompt."""
    decisions: str | None = None
    """Why a decision model cannot serve in place of a chat model; empty if it can, ``None`` if the
    metric needs text."""


class Pool(Protocol):
    """All samples that a metric may read, in input order and with random access."""

    @property
    def run_pool(self) -> Pool:
        """The samples of the run itself: this pool, unless the user gave a separate file as pool.

        In the run of a shard it holds the samples of all shards.
        """

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Sample: ...

    def __iter__(self) -> Iterator[Sample]: ...

    def index(self, sample_id: str) -> int | None:
        """Return the position of the sample with this id; ``None`` if there is none."""

    async def read_filled(self, index: int, models: Models, /) -> Sample:
        """Return a sample with its references, which are requested now for a separate file.

        The run's own samples are filled already; in the run of a shard, those of other shards are
        filled now. A field that cannot be filled stays missing.
        """


@dataclass(frozen=True, slots=True)
class Context:
    """The input of a metric for one sample."""

    sample: Sample
    """The sample, with all fields that stages have filled in."""
    models: Models
    """The models that the metric may call."""
    prepared: Any = None
    """The value that :meth:`Metric.prepare` returned."""
    seed: int = 0
    """The run's seed."""
    limits: TextLimits = USUAL_LIMITS
    """Limits on what is counted in a sample, such as sentences; its texts have been checked
    already."""
    second: SecondReader | None = None
    """The second reader, for an answer that it is to read; ``None`` for metrics without that need.
    """

    def response(self) -> str:
        """Return the response of the sample; raises AssessmentError if it is blank."""
        if not self.sample.answered:
            raise AssessmentError(BLANK_RESPONSE, "empty")
        return self.sample.response or ""


ORIGIN = "python"
"""The setting of a metric that is a class in a user's file."""


class Metric(ABC):
    """One method. Subclass as a frozen dataclass whose fields are the options.

    A metric holds no client and no result: one instance scores many samples at once. Its
    description (``score_range``, ``verdicts``, ...) is read from the instance, so that options
    can change it: a constant is a class variable, anything else a property or a field.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    origin: ClassVar[Any] = None
    """The user's file that the class is of, a :class:`~trustassay.core.registry.MetricFile`."""
    part_directions: ClassVar[Mapping[str, Direction]] = {}
    """Which end of each part is better (:func:`directions`). A name that ends with a colon stands
    for all parts that begin with it. `study` takes parts without a direction for covariates."""
    reads_response: ClassVar[bool] = True
    """Whether a sample without a response gets one before it is assessed."""
    pool: ClassVar[bool] = False
    """Whether :meth:`prepare` is called, with all samples, before the first is assessed."""

    evidence_template: ClassVar[str | None] = None
    """Jinja template next to the metric's module that shows the evidence of an answer in the
    report, from ``view``, ``assessment`` and ``sample``; without one it is listed as data."""
    summary_template: ClassVar[str | None] = None
    """Jinja template next to the metric's module that shows ``metric.summary.details`` below the
    figures."""

    @property
    def fills(self) -> tuple[str, ...]:
        """Fields that are filled before scoring if they are missing and the run has the backends.

        Any of ``references``, ``wrong_answers``, ``corrected_answers`` and ``documents``.
        """
        return ()

    @property
    def filling(self) -> Mapping[str, int]:
        """How many values of a field the metric wants, where the run does not say.

        ``wrong_answers``: pairs per call; ``references``: different answers of each model per call.
        """
        return {}

    @property
    def filling_prompts(self) -> Mapping[str, str]:
        """Files of templates in place of ours, by the field that is filled, as in ``filling``."""
        return {}

    @property
    def score_range(self) -> tuple[float, float]:
        """The smallest and the largest possible score."""
        return 0.0, 1.0

    @property
    def lower_is_better(self) -> bool:
        """Whether a low score is good."""
        return False

    def direction_of(self, part: str) -> Direction | None:
        """Return which end of a part is better; ``None`` for one that is not declared."""
        # These parts mark answers of any metric; neither end is better.
        if part in (OTHER_LANGUAGE, PART_READ_BY_SECOND, REFUSED_PART, BLANK_PART):
            return ""
        # "group:name" is looked up as "group:"; without a colon the slice is empty and finds
        # nothing.
        group = part[: part.find(":") + 1]
        return self.part_directions.get(part, self.part_directions.get(group))

    @property
    def ordered_by(self) -> str:
        """What orders answers wherever they are listed: ``score``, or a part that orders better.

        Such a part has the same range and direction as the score; see :func:`compute_badness`.
        """
        return "score"

    @property
    def verdicts(self) -> Sequence[str]:
        """The possible verdicts, the one of trust first; each has its own colour in the report."""
        return ()

    @property
    def stable_below(self) -> float | None:
        """The score from which an answer is no longer stable, if the metric has such a bound."""
        return None

    @property
    def stability_bound(self) -> float | None:
        """:attr:`stable_below`, or the bound that applies if the metric leaves this option open."""
        return self.stable_below

    @property
    def line(self) -> str:
        """Which answers need a look, and the source of this rule: it continues "An answer needs a
        look if".

        Empty if the metric draws no line: then its answers only have an order.
        """
        # A metric that overrides `problem` draws a line, even if its author did not describe it.
        draws = type(self).problem is not Metric.problem
        return f"{self.name} finds a problem in it" if draws else ""

    @property
    def figures(self) -> Mapping[str, Figure]:
        """The meaning of the keys of its summary, in the order in which they are shown."""
        return {}

    @property
    def statistics(self) -> Mapping[str, Statistic]:
        """How the figures are computed that are declared with a statistic."""
        return {key: figure.statistic for key, figure in self.figures.items() if figure.statistic}

    @abstractmethod
    def needs(self) -> Sequence[Need]:
        """Return the needs of the metric."""

    def resolve(self, inventory: Inventory) -> Self:  # noqa: ARG002
        """Return this metric with every ``auto`` option settled for the samples of a run."""
        return self

    def with_backends(self, backends: Mapping[str, Any]) -> Self:
        """Return this metric with the names of a run's backends, as in ``run.json``.

        Options stay the same; what the metric says about itself (``title``, ``line``,
        ``stability_bound``) may depend on :attr:`backend_names`.
        """
        # Not dataclasses.replace: `__post_init__` would read the user's prompt files again, which
        # may have changed since.
        result = object.__new__(type(self))
        result.__dict__.update(self.__dict__, _backends=dict(backends))
        return result

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for another process: the options and backend names.

        Cached properties are left out, such as templates and prompts, which may not be picklable.
        """
        state_names = {f.name for f in dataclasses.fields(self)} | {"_backends"}  # type: ignore[arg-type]
        return {name: value for name, value in self.__dict__.items() if name in state_names}

    @property
    def backend_names(self) -> Mapping[str, Any]:
        """The names of the run's backends by kind; empty where no run is known."""
        result: Mapping[str, Any] = self.__dict__.get("_backends", {})
        return result

    def problems(self, sample: Sample) -> list[Problem]:  # noqa: ARG002
        """Return why ``sample`` cannot be scored; called before anything is started."""
        return []

    def problems_without_model(self, sample: Sample) -> list[Problem]:  # noqa: ARG002
        """Return why ``sample`` cannot be scored in a run without a chat model."""
        return []

    def rejects(self, sample: Sample) -> bool:  # noqa: ARG002
        """Whether a filled sample has all fields and is not scored, as a call for one failed."""
        return False

    async def prepare(self, pool: Pool, models: Models) -> Any:  # noqa: ARG002
        """Return the value for ``context.prepared`` in :meth:`assess`; called once per process.

        Its calls are stored, planned and resumed like all others. If it fails, all samples of the
        metric fail.
        """
        return None

    def pack(self, prepared: Any) -> Mapping[str, NDArray[Any]] | None:  # noqa: ARG002
        """Return the value of :meth:`prepare` as arrays of numbers and texts, for shards to share.

        ``None`` if each shard prepares for itself, from the stored replies.
        """
        return None

    def unpack(self, arrays: Mapping[str, NDArray[Any]], pool: Pool) -> Any:
        """Return the value of :meth:`prepare`, rebuilt from the arrays of :meth:`pack`."""
        raise NotImplementedError

    @abstractmethod
    async def assess(self, context: Context) -> Assessment:
        """Score one sample.

        Raises:
            AssessmentError: the sample cannot be scored; any other exception is treated the same.
        """

    def build_assessment(
        self,
        sample: Sample,
        score: float | None,
        rows: Iterable[EvidenceRow] = (),
        **other_fields: Any,
    ) -> Assessment:
        """Return the assessment of a sample; ``other_fields`` are further fields of it by name."""
        evidence = [row.to_json() for row in rows]
        return Assessment(sample.id, self.name, score, evidence=evidence, **other_fields)

    def summarise(
        self,
        assessments: Collection[Assessment],
        *,
        seed: int = 0,  # noqa: ARG002 - for those that draw
    ) -> Summary:
        """Return the figures of a data set; reads ``assessments`` once, in input order.

        These are the figures declared with a statistic. A metric with formulas of its own overrides
        this method.
        """
        result = compute_summary(self.statistics, assessments, self.score_range)
        return result.with_settings(self.settings())

    def build_weighted_figures(self, assessments: Iterable[Assessment]) -> WeightedFigures:
        """Return the figures that can be resampled, over ``assessments``, which are read once.

        These are the figures declared with a statistic. `compare` and `gate` use it to give the
        change of a figure an interval; a figure that is not included has none.
        """
        return WeightedColumns.of(self.statistics, assessments)

    def problem(self, assessment: Assessment) -> str | None:  # noqa: ARG002
        """Return a sentence on what a reader should look at in an assessment, or ``None``.

        Failures are always problems; this is only about scored samples. A run counts problems
        without reading evidence, so whether there is one must follow from the other fields;
        evidence may only add to the sentence. :attr:`line` states the rule.
        """
        return None

    @property
    def counts_outcomes(self) -> bool:
        """Whether questions pass or fail by :attr:`line`.

        A metric returns False if its line was not measured against human labels, or if its score is
        a degree: then its questions are scored or not scored.
        """
        return bool(self.line)

    passed_word: ClassVar[str] = "passed"
    """What the metric calls a question that passed, in a sentence after a percentage."""
    failed_word: ClassVar[str] = "failed"
    """What it calls one that failed."""

    @property
    def outcome_words(self) -> Mapping[OutcomeKind, str]:
        """What the metric calls each outcome."""
        return {
            outcomes.PASSED: self.passed_word,
            outcomes.FAILED: self.failed_word,
            outcomes.NOT_ANSWERED: "not answered",
            outcomes.SCORED: "scored",
            outcomes.NOT_SCORED: "not scored",
        }

    def outcome(self, assessment: Assessment) -> Outcome:
        """Return the outcome of the question of an assessment.

        An assessment without a score, or of a refusal, is not answered. Any other fails if
        :meth:`problem` names something. A metric overrides this if it knows more, for example
        whether a refusal was right.
        """
        reason = find_not_judged_reason(assessment)
        if not self.counts_outcomes:
            # Without a line a refusal that has a score is scored: the method says so itself.
            if reason is None or (reason == outcomes.REFUSED and assessment.score is not None):
                return Outcome(outcomes.SCORED)
            return Outcome(outcomes.NOT_SCORED, reason)
        if reason is not None:
            return Outcome(outcomes.NOT_ANSWERED, reason)
        is_bad = self.problem(assessment) is not None
        return Outcome(outcomes.FAILED if is_bad else outcomes.PASSED)

    def in_doubt(self, assessment: Assessment) -> bool:  # noqa: ARG002
        """Whether an answer that passes is so near the line that a second reader should read it."""
        return False

    def view(self, sample: Sample, assessment: Assessment) -> View:  # noqa: ARG002
        """Return what the report needs to show the evidence; without a template it is listed as
        data."""
        return View()

    def settings(self) -> dict[str, Any]:
        """Return the options as JSON values; a function is represented by its qualified name.

        A class of a user's file also has :data:`ORIGIN`: the file, its digest and the class.
        """
        options = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        settings = {
            name: _get_qualified_name(value) if callable(value) else value
            for name, value in options.items()
        }
        return settings | ({ORIGIN: self.origin.settings()} if self.origin else {})


@dataclass(frozen=True)
class MetricInfo:
    """The description of a metric with its options, as stored in ``run.json``.

    Reports and comparisons read it from there, so they work if the metric is not installed.
    """

    name: str
    """The metric's name."""
    title: str
    """Its title in reports."""
    score_range: tuple[float, float] = (0.0, 1.0)
    """Smallest and largest possible score."""
    lower_is_better: bool = False
    """Whether a low score is good."""
    verdicts: tuple[str, ...] = ()
    """The possible verdicts, the trusted one first."""
    stable_below: float | None = None
    """The score from which an answer is no longer stable, if there is such a bound."""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    """The meaning of the keys of its summary."""
    ordered_by: str = "score"
    """``score``, or the part by which answers are ordered."""

    @classmethod
    def of(cls, metric: Metric) -> MetricInfo:
        """Return the description of a metric."""
        low, high = map(float, metric.score_range)
        return cls(
            metric.name,
            metric.title,
            (low, high),
            metric.lower_is_better,
            tuple(metric.verdicts),
            metric.stability_bound,
            {
                # The range is fixed here: `value_range` needs the statistic, which is not stored.
                key: dataclasses.replace(figure, range=figure.value_range((low, high)))
                for key, figure in metric.figures.items()
            },
            metric.ordered_by,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        figures = {key: figure.to_dict() for key, figure in self.figures.items()}
        return vars(self) | {"figures": figures}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> MetricInfo:
        """Return the object from the output of :meth:`to_dict`; raises TypeError or KeyError
        otherwise."""
        low, high = raw["score_range"]
        figures = {key: Figure.from_dict(figure) for key, figure in raw["figures"].items()}
        typed_fields = {
            "score_range": (low, high),
            "verdicts": tuple(raw["verdicts"]),
            "figures": figures,
        }
        return cls(**{**raw, **typed_fields})


def compute_badness(metric: MetricInfo, assessment: Assessment) -> float | None:
    """Return how bad an answer is by the value that orders its metric, from 0 (best) to 1.

    Every list of answers with the worst first is in this order. ``None`` without a score.
    """
    if assessment.score is None:
        return None
    value = assessment.parts.get(metric.ordered_by, assessment.score)
    low, high = metric.score_range
    return (value - low if metric.lower_is_better else high - value) / (high - low)


def find_not_judged_reason(assessment: Assessment) -> str | None:
    """Return why an assessment judges no answer, in a word or two; ``None`` if it does."""
    if assessment.error is not None:
        # Compared by text: a stored assessment has only the message.
        if assessment.error == BLANK_RESPONSE:
            return outcomes.BLANK
        return _REASON_OF_FAULT.get(assessment.fault or "", outcomes.ERROR)
    # The order matters: an answer in another language that has no passages counts as the former.
    for part, reason in _REASON_OF_PART.items():
        if assessment.parts.get(part):
            return reason
    if assessment.score is None:
        return assessment.verdict or outcomes.NOT_ASSESSABLE
    return None


_REASON_OF_FAULT = {
    TOO_LONG: outcomes.TOO_LONG,
    MODEL_NOT_GIVEN: outcomes.MODEL_NOT_GIVEN,
}
"""Why a failed assessment judges no answer, by the kind of the failure, where that is known."""
_REASON_OF_PART = {
    OTHER_LANGUAGE: outcomes.LANGUAGE_NOT_READ,
    "no_passages": outcomes.NO_PASSAGES,
    BLANK_PART: outcomes.BLANK,
    REFUSED_PART: outcomes.REFUSED,
}
"""Why an assessment judges no answer, by the part that says so."""


def _get_qualified_name(function: Callable[..., Any]) -> str:
    """Return the qualified name of a function, or of the class of a callable object."""
    target = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(target, '__module__', 'builtins')}.{target.__qualname__}"


class UnreadableReply(NamedTuple):
    """A reply that cannot be read, and how to ask once more."""

    reply: str
    """The text of the reply."""
    instruction: str
    """The instruction that asks once more."""
    prompt: str
    """Name of that instruction's prompt file, for the stored call."""


async def ask_twice(
    ask: Callable[[Sequence[Message], str], Awaitable[T]],
    prompt: str,
    name: str,
    unread: Callable[[T], UnreadableReply | None],
) -> tuple[T, T | None]:
    """Return the first reply, and a second one if the first cannot be read, otherwise ``None``.

    Args:
        ask: sends turns under a prompt's name. prompt: the text to send. name: the prompt's name.
        unread: returns ``None`` for a reply that can be read.
    """
    first = await ask((Message("user", prompt),), name)
    if (problem := unread(first)) is None:
        return first, None
    return first, await ask(
        build_repair_turns(prompt, problem.reply, problem.instruction), problem.prompt
    )


async def reply_unless_empty(reply: Awaitable[T]) -> T | None:
    """Return a reply; ``None`` if the call failed because the reply was empty."""
    try:
        return await reply
    except CallError as error:
        if error.kind != "empty":
            raise
        return None
