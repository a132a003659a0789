"""Stages that fill samples before they are scored: responses, references, pairs, documents.

A stage requests what a sample lacks. The replies are written into the run's samples. After that
the samples are like any others: scored, planned, resumed, and scored again without new calls.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from trustassay.calls.backends import MODEL_ROLE, Backends
from trustassay.calls.client import SampleModels
from trustassay.core.asked import ASKED_FIELD, UNREADABLE, Asked, replace_asked
from trustassay.core.metric import Metric
from trustassay.core.prompts import Prompt
from trustassay.core.sample import TOKENS_FIELD, Document, Problem, Sample
from trustassay.core.token_logprobs import fit_tokens
from trustassay.errors import BackendError, UsageError
from trustassay.runs.answering import (
    Answering,
    AnswerPairing,
    build_diverse_request,
    load_diverse_prompt,
    parse_answers,
    parse_pairs,
)
from trustassay.runs.answering_models import is_other_model
from trustassay.runs.options import check_bounds

STAND_IN_TEXT = "A stand-in."
"""A placeholder for a text that is not there yet."""
CUT_FIELD = "response_cut"
"""Field of a sample whose response was cut at ``max_tokens``."""


def remove_response(sample: Sample) -> Sample:
    """Return a sample without its response and the fields that describe the response."""
    metadata = {name: value for name, value in sample.metadata.items() if name != CUT_FIELD}
    return replace(sample, response=None, model=None, metadata=metadata)


@dataclass(frozen=True)
class FillOptions:
    """How samples are filled.

    answering: how the model, and the references, are asked for answers.
    pairing: how the generator is asked for wrong and corrected answers.
    documents: how many passages are retrieved for a question.
    diverse: different answers that each reference is asked for in one call; ``None`` as metrics
        want, else 1.
    diverse_prompt: a file instead of our template for several answers; ``None`` as metrics want.
    """

    answering: Answering = field(default_factory=Answering)
    pairing: AnswerPairing = field(default_factory=AnswerPairing)
    documents: int = 5
    diverse: int | None = None
    diverse_prompt: str | None = None

    def __post_init__(self) -> None:
        check_bounds(vars(self))


class FillFailure(NamedTuple):
    """Why a field was not filled."""

    error: str
    """The message."""
    fault: str | None = None
    """The kind of the failed call (``timeout``, ``limited``, ...); ``None`` if no call failed."""

    @classmethod
    def of(cls, error: BackendError, reference: str = "") -> "FillFailure":
        """Return the failure for an error, of a reference if it has that name."""
        message = f"reference {reference} did not answer: {error}" if reference else str(error)
        return cls(message, getattr(error, "kind", None))


class StageResult(NamedTuple):
    """What a stage made of a sample."""

    sample: Sample
    """The sample, filled as far as possible."""
    failure: FillFailure | None = None
    """Why the stage failed, for all of the field or for a part of it."""
    calls: int = 0
    """Calls that were answered."""


class Stage(ABC):
    """Fills one field of samples, or two that belong together."""

    field: ClassVar[str]
    """The field, as in :attr:`~trustassay.core.metric.Metric.fills`."""

    @abstractmethod
    def lacks(self, sample: Sample) -> bool:
        """Return whether a sample is to be filled."""

    def problems(self, sample: Sample) -> list[Problem]:  # noqa: ARG002
        """Return the reasons why a sample that lacks the field cannot be filled."""
        return []

    @abstractmethod
    def stand_in(self, sample: Sample) -> Sample:
        """Return a sample that lacks the field with placeholders, for the checks before."""

    async def fill(self, sample: Sample, models: SampleModels) -> StageResult:
        """Request what a sample lacks."""
        try:
            return await self._request_field(sample, models)
        except BackendError as error:
            return StageResult(sample, FillFailure.of(error))

    @abstractmethod
    # Subclasses may raise BackendError: :meth:`fill` turns it into a failure.
    async def _request_field(self, sample: Sample, models: SampleModels) -> StageResult: ...

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the options that determine the result, as JSON values."""


@dataclass(frozen=True)
class ResponseStage(Stage):
    """Asks the model under assessment for the response: the sample's own, if several are given.

    Its name is stored with the response. ``which`` names one model that is asked for all samples.
    """

    field: ClassVar[str] = "response"
    answering: Answering
    repeat: int = 0
    which: str = ""

    def lacks(self, sample: Sample) -> bool:
        """Return whether a sample is to be filled; a blank response counts as missing."""
        # CSV cannot distinguish an empty cell from a missing one.
        return not sample.answered

    def problems(self, sample: Sample) -> list[Problem]:
        """Return the reasons why a sample cannot be filled."""
        return self.answering.problems(sample)

    def stand_in(self, sample: Sample) -> Sample:
        """Return the sample with placeholders, for checks before it is filled."""
        return replace(sample, response="")

    async def _request_field(self, sample: Sample, models: SampleModels) -> StageResult:
        request = self.answering.request(sample, self.repeat)
        # With a blank response the sample's ``model`` wrote that one, not this reply.
        named_model = sample.model if sample.response is None else None
        name, backend_name = models.find_model(self.which or sample.model)
        reply = await models.request(request, MODEL_ROLE, name)
        # A single model without a name may be another one than the sample's.
        if named_model and not is_other_model(named_model, backend_name):
            name = name or named_model
        metadata = remove_response(sample).metadata
        if reply.finish == "length":
            metadata = {**metadata, CUT_FIELD: True}
        # Some endpoints return tokens of more than the reply, or of another text; these would
        # mislead every metric.
        if tokens := fit_tokens(reply.logprobs, reply.text).tokens:
            most = self.answering.logprobs or 0
            metadata = {**metadata, TOKENS_FIELD: [token.to_json(most) for token in tokens]}
        text = reply.text.strip()
        model = name or backend_name
        return StageResult(replace(sample, response=text, model=model, metadata=metadata), calls=1)

    def settings(self) -> dict[str, Any]:
        """Return the options that determine the result, as JSON values."""
        return self.answering.settings()


@dataclass(frozen=True)
class _ReferenceStage(Stage):
    """Asks every reference model for its answer; those that fail are missing from the sample.

    ``diverse`` more than 1 asks each of them for that many different answers in one call; fewer
    are taken.
    """

    field: ClassVar[str] = "references"
    answering: Answering
    names: tuple[str, ...]
    diverse: int = 1
    diverse_prompt: str | None = None

    @cached_property
    def template(self) -> Prompt:
        """The prompt for several answers in one call."""
        return load_diverse_prompt(self.diverse_prompt)

    def lacks(self, sample: Sample) -> bool:
        return any(name not in sample.references for name in self.names)

    def stand_in(self, sample: Sample) -> Sample:
        missing = dict.fromkeys(self.names, _build_stand_ins(self.diverse))
        return replace(sample, references={**missing, **sample.references})

    async def _request_field(self, sample: Sample, models: SampleModels) -> StageResult:
        missing = [name for name in self.names if name not in sample.references]
        # One prompt asks for all of them, so that the answers differ from each other.
        if self.diverse > 1:
            request = build_diverse_request(sample, self.diverse, self.answering, self.template)
        else:
            request = self.answering.request(sample)
        replies = await asyncio.gather(
            *(models.request(request, "references", name) for name in missing),
            return_exceptions=True,
        )
        references, failures = dict(sample.references), []
        for name, reply in zip(missing, replies, strict=True):
            if isinstance(reply, BackendError):
                failures.append(FillFailure.of(reply, name))
            # Cancellation, or an error of the program: not a failure of this sample.
            elif isinstance(reply, BaseException):
                raise reply
            elif texts := parse_answers(reply.text, self.diverse):
                references[name] = texts
            else:
                models.note_unreadable("references", name)
                message = f"reference {name}: the reply has no numbered answer"
                failures.append(FillFailure(message, UNREADABLE))
        # Ordered by model, not by which answered first: the stored sample must not depend on
        # timing.
        ordered = {
            name: references[name] for name in [*self.names, *references] if name in references
        }
        answered = len(missing) - len(failures)
        message = "; ".join(item.error for item in failures)
        # One sample has one failure; the kind of the first stands for all.
        failure = FillFailure(message, failures[0].fault) if failures else None
        return StageResult(replace(sample, references=ordered), failure, answered)

    def settings(self) -> dict[str, Any]:
        several: dict[str, Any] = {"diverse": self.diverse} if self.diverse > 1 else {}
        # Only for a file of the user, so that runs of before this option can continue.
        several |= {"diverse_prompt": self.template.name} if self.diverse_prompt else {}
        return {"names": list(self.names), **several, **self.answering.settings()}


@dataclass(frozen=True)
class _PairStage(Stage):
    """Asks the generator for wrong answers, each with a corrected one."""

    field: ClassVar[str] = "wrong_answers"
    pairing: AnswerPairing

    def lacks(self, sample: Sample) -> bool:
        return not (sample.wrong_answers and sample.corrected_answers)

    def stand_in(self, sample: Sample) -> Sample:
        wrong, corrected = (
            tuple(f"{kind} {text}" for text in _build_stand_ins(self.pairing.pairs))
            for kind in ("Wrong:", "Corrected:")
        )
        return replace(sample, wrong_answers=wrong, corrected_answers=corrected)

    async def _request_field(self, sample: Sample, models: SampleModels) -> StageResult:
        reply = await models.request(self.pairing.request(sample), "generator")
        pairs = parse_pairs(reply.text)
        # The call was answered and paid for, so it counts, although nothing could be read from it.
        if not pairs.wrong:
            models.note_unreadable("generator")
            message = "the generator's reply has no pair of a wrong and a corrected answer"
            return StageResult(sample, FillFailure(message, UNREADABLE), calls=1)
        result = replace(sample, wrong_answers=pairs.wrong, corrected_answers=pairs.corrected)
        return StageResult(result, calls=1)

    def settings(self) -> dict[str, Any]:
        return self.pairing.settings()


@dataclass(frozen=True)
class _DocumentStage(Stage):
    """Retrieves passages for the question."""

    field: ClassVar[str] = "documents"
    k: int

    def lacks(self, sample: Sample) -> bool:
        return sample.documents is None

    def stand_in(self, sample: Sample) -> Sample:
        return replace(sample, documents=())

    async def _request_field(self, sample: Sample, models: SampleModels) -> StageResult:
        passages = await models.search(sample.question, self.k)
        documents = tuple(Document(passage.id, passage.text, passage.title) for passage in passages)
        return StageResult(replace(sample, documents=documents), calls=1)

    def settings(self) -> dict[str, Any]:
        return {"documents": self.k}


def choose_stages(
    metrics: Collection[Metric], backends: Backends, filling: FillOptions
) -> tuple[Stage, ...]:
    """Return the stages that metrics want and backends can do, in the order in which they run.

    Documents come first, since a response may be written from them.
    """
    wanted_fields = {name for metric in metrics for name in metric.fills}
    filling = _apply_metric_wishes(filling, metrics)
    result: list[Stage] = []
    if "documents" in wanted_fields and backends.find("search"):
        result.append(_DocumentStage(filling.documents))
    # Without metrics the caller only generates answers.
    reads_response = not metrics or any(metric.reads_response for metric in metrics)
    if reads_response and backends.names_of_role(MODEL_ROLE):
        result.append(ResponseStage(filling.answering))
    if "references" in wanted_fields and (names := backends.names_of_role("references")):
        answering = filling.answering
        # A reference answers from what its model knows, also where the sample has passages.
        if answering.style == "auto":  # the user chose none
            answering = replace(answering, style="closed-book")
        result.append(
            _ReferenceStage(answering, names, filling.diverse or 1, filling.diverse_prompt)
        )
    if wanted_fields & {"wrong_answers", "corrected_answers"} and backends.find(
        "chat", "generator"
    ):
        result.append(_PairStage(filling.pairing))
    return tuple(result)


class FieldWish(NamedTuple):
    """How a metric wants a field to be filled, where the run does not say."""

    number: int
    """Values to ask for in one call."""
    prompt: str | None
    """File of a template in place of ours."""

    def describe(self, field_name: str) -> str:
        """Describe it for a message."""
        prompt_text = f" with the prompt {self.prompt}" if self.prompt else ""
        return f"{self.number} {field_name} per call{prompt_text}"


def _apply_metric_wishes(filling: FillOptions, metrics: Collection[Metric]) -> FillOptions:
    """Return the options with the numbers and prompts that metrics want, where the user gave
    none."""
    wishes: dict[str, tuple[str, FieldWish]] = {}
    for metric in metrics:
        for name, number in metric.filling.items():
            wish = FieldWish(number, metric.filling_prompts.get(name))
            # All metrics of a run share the filled samples, so they must want the same.
            first, other = wishes.setdefault(name, (metric.name, wish))
            if other != wish:
                raise UsageError(
                    f"{first} needs {other.describe(name)} and {metric.name} "
                    f"{wish.describe(name)}; score them in separate runs"
                )
    # The default pairing means that the user gave none.
    if filling.pairing == AnswerPairing() and "wrong_answers" in wishes:
        wish = wishes["wrong_answers"][1]
        filling = replace(filling, pairing=AnswerPairing(pairs=wish.number, prompt=wish.prompt))
    if filling.diverse is None and "references" in wishes:
        wish = wishes["references"][1]
        filling = replace(filling, diverse=wish.number, diverse_prompt=wish.prompt)
    return filling


def _build_stand_ins(n: int) -> tuple[str, ...]:
    """Return n placeholder texts that differ from each other, as replies will."""
    if n == 1:
        return (STAND_IN_TEXT,)
    return tuple(f"{STAND_IN_TEXT} {number}" for number in range(1, n + 1))


def collect_stage_settings(stages: Sequence[Stage]) -> dict[str, Any]:
    """Return the settings that determine what stages fill in, by field, as in ``run.json``."""
    return {stage.field: stage.settings() for stage in stages}


SAMPLES_PER_CALL = 4
"""Samples in progress per concurrent call: a sample that waits for a retry must not idle a call."""
MAX_BUFFERED_PER_SAMPLE = 16
"""Finished samples that are buffered behind a slow one, per sample in progress."""


@dataclass(slots=True)
class FillOutcome:
    """Counts over all filled samples of a run."""

    calls: Counter[str] = field(default_factory=Counter)
    """Answered calls by field."""
    failed: dict[tuple[str, str], FillFailure] = field(default_factory=dict)
    """Failures by the sample's id and the field."""

    def note(self, sample: "FilledSample") -> None:
        """Add the counts and failures of a sample."""
        self.calls.update(sample.calls)
        for name, failure in sample.failures.items():
            # Failures of references name themselves, as there may be several.
            is_named = name == _ReferenceStage.field
            message = failure.error if is_named else f"no {name}: {failure.error}"
            self.failed[sample.sample.id, name] = FillFailure(message, failure.fault)


@dataclass(slots=True)
class FilledSample:
    """A sample that went through the stages."""

    sample: Sample
    repeat: int = 0
    """The number of the repetition, from 0, where a question is answered several times."""
    calls: Counter[str] = field(default_factory=Counter)
    """Answered calls by field."""
    failures: dict[str, FillFailure] = field(default_factory=dict)
    """Failures by field."""
    asked: Asked = field(default_factory=dict)
    """The outcomes of the requests that filled it."""

    @property
    def stored_sample(self) -> Sample:
        """The sample with the outcomes of all requests that filled it, now and earlier."""
        if not self.asked:
            return self.sample
        # A request that is made again replaces its earlier failure.
        asked = replace_asked(self.sample.metadata.get(ASKED_FIELD), self.asked)
        metadata = {**self.sample.metadata, ASKED_FIELD: asked}
        return replace(self.sample, metadata=metadata)


async def fill_in_order(
    samples: Iterable[tuple[Sample, Sequence[Stage], int]],
    models: SampleModels,
    at_once: int,
    step: Callable[[], None] = lambda: None,
) -> AsyncIterator[FilledSample]:
    """Yield samples in input order, each filled by its stages, one stage after the other.

    Args:
        samples: each with its stages and the number of its repetition; read as there is room.
        at_once: samples in progress at most. A slow sample does not hold up the others: up to
            ``MAX_BUFFERED_PER_SAMPLE * at_once`` finished ones wait behind it.
        step: called after each sample that lacked something.
    """
    tasks: deque[asyncio.Task[FilledSample]] = deque()
    # One less: the sample that is read next has its task before there is room for it.
    free = asyncio.Semaphore(at_once - 1)
    try:
        for sample, stages, repeat in samples:
            result = FilledSample(sample, repeat)
            tasks.append(asyncio.create_task(_run_stages(result, stages, models, step)))
            tasks[-1].add_done_callback(lambda _: free.release())
            await free.acquire()  # the next sample is read when there is room for it
            # Only the oldest task may be yielded. With a full buffer it is awaited even if it is
            # slow.
            while tasks and (tasks[0].done() or len(tasks) >= MAX_BUFFERED_PER_SAMPLE * at_once):
                yield await tasks.popleft()
        while tasks:
            yield await tasks.popleft()
    finally:
        # The consumer stopped, or a task raised: the others must not go on asking.
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run_stages(
    filled_sample: FilledSample,
    stages: Sequence[Stage],
    models: SampleModels,
    step: Callable[[], None],
) -> FilledSample:
    # Stages run in order, since a response may be written from the documents filled before it.
    is_incomplete = False
    # With counts of their own, since they are stored with this sample.
    models = models.without_counting()
    for stage in stages:
        if not stage.lacks(filled_sample.sample):
            continue
        is_incomplete = True
        # A problem can appear here for the first time, if an earlier stage failed.
        if problems := stage.problems(filled_sample.sample):
            filled_sample.failures[stage.field] = FillFailure("; ".join(map(str, problems)))
            continue
        result = await stage.fill(filled_sample.sample, models)
        filled_sample.sample = result.sample
        filled_sample.calls[stage.field] += result.calls
        if result.failure:
            filled_sample.failures[stage.field] = result.failure
    filled_sample.asked = models.asked
    if is_incomplete:
        step()
    return filled_sample
