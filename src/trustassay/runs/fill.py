"""Fills samples before they are scored: responses, references, pairs of answers, documents.

A stage requests what a sample lacks. The replies are written into the run's samples. After that
the samples are like any others: scored, planned, resumed, and scored again without new calls.

A response is asked for in one of these styles:

closed-book   from what the model knows, in full sentences, after four examples (TrustScore: five)
rag           from the sample's documents, with citations (as Trust-Eval asks)
rag-refusal   the same, with the permission to refuse
icl           in the manner of given examples
own           with the sample's own prompt, unchanged

Several answers can be requested in one call: five diversified answers of one model stand for five
references (Wei et al. 2024, section 4.1). Wrong answers come with corrections: one call asks a
generator for 25 pairs (section 3.2).
"""

import asyncio
import hashlib
import json
import os
import re
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from trustassay.calls.backends import MODEL_ROLE, Backends
from trustassay.calls.client import SampleModels
from trustassay.core.capabilities import ChatRequest, tokens_match_text
from trustassay.core.metric import Metric
from trustassay.core.prompts import Prompt, load_examples, load_prompt, prompt_property
from trustassay.core.sample import TOKENS_FIELD, Document, Problem, Sample, clean
from trustassay.errors import BackendError, UnknownNameError, UsageError, did_you_mean
from trustassay.runs.options import check_bounds
from trustassay.text.replies import find_numbered_lines

STYLES = ("closed-book", "rag", "rag-refusal", "icl", "own")
OWN_PROMPT = "own_prompt"
"""Field of a sample with a complete prompt, with which the sample is to be answered."""
REFUSAL_SENTENCE = (
    "I apologize, but I couldn't find an answer to your question in the search results."
)
"""The sentence by which Trust-Eval recognises a refusal."""
STOP_SEQUENCES = ("\nQuestion:",)
"""Texts with which a model begins a new question."""
_WITH_DOCUMENTS = frozenset({"rag", "rag-refusal"})


@dataclass(frozen=True)
class Answering:
    """Asks for the response of a sample.

    style: one of :data:`STYLES`; ``auto`` takes own for a sample with a prompt of its own,
        rag-refusal for one with documents, and closed-book for others.
    prompt: a file instead of the style's own; see :class:`~trustassay.core.prompts.Prompt`.
    examples: samples with responses, shown before the question; with documents for rag.
    logprobs: alternatives of each token to ask for, 0 for the tokens alone; they are stored as the
        sample's ``token_logprobs``. Without it none are asked for.
    """

    style: str = "auto"
    prompt: str | os.PathLike[str] | None = None
    examples: Sequence[Sample] = ()
    temperature: float = 0.0
    max_tokens: int = 300
    seed: int | None = None
    logprobs: int | None = None

    def __post_init__(self) -> None:
        if self.style not in ("auto", *STYLES):
            raise UnknownNameError(did_you_mean("style", self.style, ["auto", *STYLES]))
        if self.style == "icl" and not self.examples:
            raise UsageError("style icl: needs examples (--examples FILE)")
        # The own prompt is complete; a second one would never be used.
        if self.style == "own" and self.prompt is not None:
            raise UsageError("style own: sends each sample's own prompt, and takes no --prompt")
        for number, example in enumerate(self.examples, 1):
            if example.response is None:
                raise UsageError(f"example {number} ({example.id}): has no response")
            if self.style in _WITH_DOCUMENTS and example.documents is None:
                raise UsageError(f"example {number} ({example.id}): has no documents")

    def style_for(self, sample: Sample) -> str:
        """Return the style in which a sample is answered."""
        if self.style != "auto":
            return self.style
        if self.prompt is None and _read_own_prompt(sample) is not None:
            return "own"
        return "rag-refusal" if sample.documents else "closed-book"

    def problems(self, sample: Sample) -> list[Problem]:
        """Return why a sample cannot be answered in this style.

        Raises:
            PromptError: the user's prompt uses a name that does not exist.
        """
        if self.style_for(sample) in _WITH_DOCUMENTS and not sample.documents:
            message = f"is missing or empty (expected the passages for style {self.style})"
            return [Problem("documents", message)]
        if self.style == "own" and _read_own_prompt(sample) is None:
            return [Problem(OWN_PROMPT, "is missing (expected the prompt's text for style own)")]
        if self.prompt is not None:
            # Filling the prompt for each sample finds faults that only some samples trigger, before
            # anything is paid for.
            self.request(sample)
        return []

    def request(self, sample: Sample, repeat: int = 0) -> ChatRequest:
        """Return the request to the model; raises :class:`PromptError`."""
        style = self.style_for(sample)
        examples: Sequence[Any] = self.examples
        # An example without documents teaches nothing about citing them, and the other way round.
        if self.style == "auto":
            examples = [
                example
                for example in examples
                if bool(example.documents) == (style in _WITH_DOCUMENTS)
            ]
        # The examples that ship with the package, which show answers in full sentences.
        if style == "closed-book" and not examples:
            examples = load_examples(__package__)
        text, name = _read_own_prompt(sample) or "", "own"
        if style != "own":
            prompt = self._prompts[style]
            name = prompt.name
            text = prompt.fill(
                question=sample.question, sample=sample, examples=examples, refusal=REFUSAL_SENTENCE
            )
        return ChatRequest.of(
            text,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            seed=self.seed,
            stop=STOP_SEQUENCES,
            repeat=repeat,
            logprobs=self.logprobs,
            prompt=name,
        )

    def settings(self) -> dict[str, Any]:
        """Return the options that determine the answers, as JSON values."""
        names = {name: prompt.name for name, prompt in self._prompts.items()}
        # A digest, since examples may hold whole documents and `run.json` is read by people.
        content = json.dumps([example.to_dict() for example in self.examples], default=str)
        logprob_setting = {} if self.logprobs is None else {"logprobs": self.logprobs}
        # `logprobs` only if set: runs of before this option have the same settings.
        return logprob_setting | {
            "style": self.style,
            "prompt": self.style if self.style == "own" else names.get(self.style, names),
            "examples": hashlib.blake2b(content.encode(), digest_size=8).hexdigest(),
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
        }

    @cached_property
    def _prompts(self) -> dict[str, Prompt]:
        wanted = ("closed-book", "rag-refusal") if self.style == "auto" else (self.style,)
        if self.style == "own":
            return {}
        if self.prompt is not None:
            return dict.fromkeys(wanted, Prompt.read(self.prompt))
        return {style: load_prompt(__package__, style) for style in wanted}


def _read_own_prompt(sample: Sample) -> str | None:
    """Return the sample's own prompt, or ``None`` if it has none."""
    text = sample.metadata.get(OWN_PROMPT)
    return clean(text) if isinstance(text, str) and text.strip() else None


def build_diverse_request(sample: Sample, n: int, answering: Answering) -> ChatRequest:
    """Return the request for n different answers in one reply.

    Temperature and length of one answer are those of ``answering``.
    """
    prompt = load_prompt(__package__, "diverse-answers")
    return ChatRequest.of(
        prompt.fill(question=sample.question, answers=n),
        temperature=answering.temperature,
        max_tokens=n * answering.max_tokens,
        seed=answering.seed,
        prompt=prompt.name,
    )


def parse_answers(text: str, n: int) -> tuple[str, ...]:
    """Return the numbered answers of a reply, at most n, without repetitions; never raises.

    With n = 1 the whole reply is the answer. An answer may continue on further lines. A reply
    without numbers has no answers: it is not what was asked for.
    """
    if n == 1:
        return (text.strip(),)
    result = (text_of_item for _, text_of_item in _read_item_texts(find_numbered_lines(text), text))
    return tuple(dict.fromkeys(filter(None, result)))[:n]


def _read_item_texts(items: Sequence[re.Match[str]], text: str) -> list[tuple[re.Match[str], str]]:
    """Return each item with its text, which continues up to the next item."""
    ends = [*(after.start() for after in items[1:]), len(text)]
    # Without items `ends` still has the end of the text, so strict must be off.
    items_and_ends = zip(items, ends, strict=bool(items))
    split_items = (
        (item, (item["text"] + text[item.end() : end]).split()) for item, end in items_and_ends
    )
    return [(item, " ".join(item_words).strip("*_ ")) for item, item_words in split_items]


# A line such as "1. Wrong answer: Rome" or "**2) Non-wrong:** Paris"; `kind` is the label.
_PAIR_ITEM = re.compile(
    r"^[\s*_#>-]*(?P<number>\d{1,4})\s*[.):]?[\s*_]*"
    r"(?P<kind>(?:non[- ]?wrong|corrected|correct|right)|(?:wrong|incorrect))"
    r"(?:\s+answer)?[\s*_]*:(?P<text>.*)$",
    re.IGNORECASE | re.MULTILINE,
)


class AnswerPairs(NamedTuple):
    """Wrong answers and their corrections."""

    wrong: tuple[str, ...]
    """The wrong answers."""
    corrected: tuple[str, ...]
    """Their corrections, in the same order."""
    dropped: int
    """Number of answers without a counterpart, which were dropped."""


def parse_pairs(text: str) -> AnswerPairs:
    """Return the pairs in a reply; any text gives a result, possibly without a pair.

    Items are numbered and labelled as wrong or non-wrong; an item may continue on further lines.
    The first of several items with the same number and label counts.
    """
    result: dict[bool, dict[int, str]] = {True: {}, False: {}}
    for item, answer in _read_item_texts(list(_PAIR_ITEM.finditer(text)), text):
        is_wrong = item["kind"].lower() in ("wrong", "incorrect")
        if answer:
            result[is_wrong].setdefault(int(item["number"]), answer)
    # In the order of the wrong answers.
    numbers = [number for number in result[True] if number in result[False]]
    wrong, corrected = (tuple(result[kind][number] for number in numbers) for kind in (True, False))
    return AnswerPairs(wrong, corrected, len(result[True].keys() ^ result[False].keys()))


@dataclass(frozen=True)
class AnswerPairing:
    """Asks for the pairs of a sample.

    pairs: the number requested in one call; fewer are accepted.
    prompt: a file instead of our own; filled with ``question``, ``sample`` and ``pairs``.
    """

    _prompt = prompt_property(__package__, "wrong-answers")
    pairs: int = 25
    prompt: str | os.PathLike[str] | None = None
    temperature: float = 1.0
    max_tokens: int = 4096

    def __post_init__(self) -> None:
        if self.pairs < 1:
            raise UsageError(f"pairs: expected 1 or more, got {self.pairs}")

    def request(self, sample: Sample) -> ChatRequest:
        """Return the request to the generator; raises
        :class:`~trustassay.core.prompts.PromptError`."""
        text = self._prompt.fill(question=sample.question, sample=sample, pairs=self.pairs)
        return ChatRequest.of(
            text, temperature=self.temperature, max_tokens=self.max_tokens, prompt=self._prompt.name
        )

    def settings(self) -> dict[str, Any]:
        """Return the options that determine the pairs, as JSON values."""
        return {
            "pairs": self.pairs,
            "prompt": self._prompt.name,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }


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
    """

    answering: Answering = field(default_factory=Answering)
    pairing: AnswerPairing = field(default_factory=AnswerPairing)
    documents: int = 5
    diverse: int | None = None

    def __post_init__(self) -> None:
        check_bounds(vars(self))


class FillFailure(NamedTuple):
    """Why a field was not filled."""

    error: str
    """The message."""
    fault: str | None = None
    """The kind of the failed call (``timeout``, ``limited``, ...); ``None`` if no call failed."""

    @classmethod
    def of(cls, error: BackendError, name: str = "") -> "FillFailure":
        """Return the failure for an error; ``name`` is one of several models."""
        return cls(f"{name}: {error}" if name else str(error), getattr(error, "kind", None))


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

    def problems(self, sample: Sample) -> list[Problem]:
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
    """Asks the model under assessment for the response; ``name`` is stored with it.

    ``which`` names the model if several are under assessment.
    """

    field: ClassVar[str] = "response"
    answering: Answering
    name: str
    repeat: int = 0
    which: str = ""

    def lacks(self, sample: Sample) -> bool:
        """Return whether a sample is to be filled; a blank response counts as missing."""
        # A blank response counts as missing: CSV cannot distinguish an empty cell from none
        # (decision 47).
        return not sample.answered

    def problems(self, sample: Sample) -> list[Problem]:
        """Return the reasons why a sample cannot be filled."""
        return self.answering.problems(sample)

    def stand_in(self, sample: Sample) -> Sample:
        """Return the sample with placeholders, for checks before it is filled."""
        return replace(sample, response="")

    async def _request_field(self, sample: Sample, models: SampleModels) -> StageResult:
        request = self.answering.request(sample, self.repeat)
        reply = await models.request(request, MODEL_ROLE, self.which)
        # With a blank response the sample's ``model`` wrote that one, not this reply.
        model = (sample.model if sample.response is None else None) or self.name
        metadata = remove_response(sample).metadata
        if reply.finish == "length":
            metadata = {**metadata, CUT_FIELD: True}
        # Some endpoints return tokens of another text than the reply; these would mislead every
        # metric.
        if reply.logprobs and tokens_match_text(reply.logprobs, reply.text):
            most = self.answering.logprobs or 0
            metadata = {**metadata, TOKENS_FIELD: [token.to_json(most) for token in reply.logprobs]}
        text = reply.text.strip()
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

    def lacks(self, sample: Sample) -> bool:
        return any(name not in sample.references for name in self.names)

    def stand_in(self, sample: Sample) -> Sample:
        missing = dict.fromkeys(self.names, _build_stand_ins(self.diverse))
        return replace(sample, references={**missing, **sample.references})

    async def _request_field(self, sample: Sample, models: SampleModels) -> StageResult:
        missing = [name for name in self.names if name not in sample.references]
        # One prompt asks for all of them, so that the answers differ from each other.
        if self.diverse > 1:
            request = build_diverse_request(sample, self.diverse, self.answering)
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
                failures.append(FillFailure(f"{name}: its reply holds no numbered answer"))
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
        several = {"diverse": self.diverse} if self.diverse > 1 else {}
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
            message = "the generator's reply has no pair of a wrong and a corrected answer"
            return StageResult(sample, FillFailure(message), calls=1)
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
    model = backends.find("chat", MODEL_ROLE)
    # Without metrics the caller only generates answers.
    if model is not None and (not metrics or any(metric.reads_response for metric in metrics)):
        result.append(ResponseStage(filling.answering, model.name))
    if "references" in wanted_fields and (names := backends.names_of_role("references")):
        answering = filling.answering
        # A reference answers from what its model knows, also where the sample has passages.
        if answering.style == "auto":  # the user chose none
            answering = replace(answering, style="closed-book")
        result.append(_ReferenceStage(answering, names, filling.diverse or 1))
    if wanted_fields & {"wrong_answers", "corrected_answers"} and backends.find(
        "chat", "generator"
    ):
        result.append(_PairStage(filling.pairing))
    return tuple(result)


def _apply_metric_wishes(filling: FillOptions, metrics: Collection[Metric]) -> FillOptions:
    """Return the options with the numbers that metrics want, where the user gave none."""
    wanted_numbers: dict[str, tuple[str, int]] = {}
    for metric in metrics:
        for name, number in metric.filling.items():
            # All metrics of a run share the filled samples, so they must want the same number.
            first, other = wanted_numbers.setdefault(name, (metric.name, number))
            if other != number:
                raise UsageError(
                    f"{first} wants {other} {name} of a call and {metric.name} {number}; "
                    "score them in runs of their own"
                )
    # The default pairing means that the user gave none.
    if filling.pairing == AnswerPairing() and "wrong_answers" in wanted_numbers:
        filling = replace(filling, pairing=AnswerPairing(pairs=wanted_numbers["wrong_answers"][1]))
    if filling.diverse is None and "references" in wanted_numbers:
        filling = replace(filling, diverse=wanted_numbers["references"][1])
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
            message = f"no {name}: {failure.error}"
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
    if is_incomplete:
        step()
    return filled_sample
