"""Build MixedQA, the kind of set that TrustScore is tested on, from copies of five published sets.

Zheng et al. 2024 (TrustScore), appendix A.3:

1. Read the questions without their contexts, and recorded answers.
2. Draw questions from each set in random order.
3. Ask all models; accept a question if every model answered it.
4. Draw again until each set has enough accepted questions.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from trustassay.backends import resolve
from trustassay.backends.registry import check_loadable
from trustassay.calls.backends import MODEL_ROLE, Backends
from trustassay.calls.client import CallOptions, check_budget
from trustassay.calls.endpoints import calls_at_once
from trustassay.calls.retry import Endpoint
from trustassay.core.capabilities import ChatModel, LocalChatModel
from trustassay.core.event_loop import run_anywhere
from trustassay.core.files import open_atomic
from trustassay.core.progress import Progress
from trustassay.core.sample import Problem, Sample
from trustassay.errors import UsageError
from trustassay.input.reading import read_samples
from trustassay.input.records import InputError, InputFault
from trustassay.papers.mixedqa.filters import (
    DUPLICATE,
    NO_REPLY,
    REPLY_FILTERS,
    find_question_filter,
    find_reply_filter,
    split_words,
)
from trustassay.papers.mixedqa.question_sets import (
    QUESTION_SETS,
    SPLITS,
    QuestionFile,
    read_questions,
)
from trustassay.papers.session import CountedModels, SessionOptions, run_in_session
from trustassay.runs.answering import Answering
from trustassay.runs.estimates import Plan
from trustassay.runs.fill import (
    SAMPLES_PER_CALL,
    FilledSample,
    FillFailure,
    FillOptions,
    ResponseStage,
    Stage,
    fill_in_order,
)
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import BadInputError, Intake, RunOptions
from trustassay.runs.lines import encode_sample
from trustassay.runs.plan import plan as plan_run
from trustassay.statistics.resampling import generator

Chat = ChatModel | LocalChatModel
Recorded = Mapping[str, Mapping[str, Sample]]
"""Recorded answers, by model and then by :func:`key_of` the question."""
FINAL_FAULTS = frozenset({"refused", "empty", "oversized"})
"""Faults that a repeated request would meet again: the model does not answer the question."""
DROPPED_FILE = "dropped.jsonl"


@dataclass(frozen=True)
class MixOptions:
    """How a set is drawn.

    per_source: questions kept of each set. seed: of the order in which they are looked at.
    answering: how models are asked. skip_bad: go on without faulty records, which are counted.
    """

    per_source: int = 200
    seed: int = 0
    answering: Answering = field(default_factory=lambda: Answering("closed-book"))
    skip_bad: bool = False
    progress: bool = False
    calls: CallOptions = field(default_factory=CallOptions)

    def __post_init__(self) -> None:
        for option, least in (("per_source", 1), ("seed", 0)):
            if (value := getattr(self, option)) < least:
                raise UsageError(f"{option}: expected {least} or more, got {value}")


@dataclass(slots=True)
class MixResult:
    """What was drawn."""

    samples: int
    """The number of samples written."""
    report: Mapping[str, Any]
    """The content of ``report.json``."""
    short: Sequence[str] = ()
    """Sources with fewer accepted questions than wanted."""
    unfinished: Mapping[str, str] = field(default_factory=dict)
    """By question and model: calls that failed but may succeed later. Then nothing is written, and
    the same call continues."""
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)


def mix(
    files: Sequence[QuestionFile],
    models: Sequence[resolve.ChatChoice],
    out: Path,
    answers: Sequence[tuple[str, Path]] = (),
    options: MixOptions | None = None,
) -> MixResult:
    """Draw a set into the folder ``out``: ``samples.jsonl``, ``dropped.jsonl``, ``report.json``.

    ``samples.jsonl`` has one sample for each question and model. ``answers`` are pairs of a model's
    name and a file of its recorded answers; if the records of a file name models, only those of
    that name are used. After an interruption the same call asks nothing twice, and writes the same
    bytes.

    Raises:
        BadInputError, InputError: the input has faults; nothing was asked.
        RunFolderError: the folder holds something else, or another process works in it.
        BackendError, UnknownNameError: no such model, or its key is missing.
        ValueError: no model and no answers, or one name for two of them.
    """
    options = options or MixOptions()
    material = _read_and_check(files, models, answers, options)
    return run_anywhere(lambda: _draw_set(material, out, options))


def plan_mix(
    files: Sequence[QuestionFile],
    models: Sequence[resolve.ChatChoice],
    out: Path,
    answers: Sequence[tuple[str, Path]] = (),
    options: MixOptions | None = None,
) -> tuple[Plan, int]:
    """Rehearse the first draw, and return its plan and the number of questions beyond it.

    The first draw has as many questions as are wanted; each one that is dropped is replaced later.

    Raises:
        BadInputError, InputError, BackendError, UnknownNameError, ValueError: as :func:`mix`.
    """
    options = options or MixOptions()
    material = _read_and_check(files, models, answers, options)
    return run_anywhere(lambda: _plan_first_draw(material, out, options))


async def _plan_first_draw(material: MixInput, out: Path, options: MixOptions) -> tuple[Plan, int]:
    source_draws = build_draws(material, options.per_source, options.seed)
    # The first draw of every source.
    questions = [question for draw in source_draws for question in draw.next_questions()]
    run = RunOptions(filling=FillOptions(options.answering), calls=options.calls)
    plans = [
        await plan_run(questions, [], Backends.of(chat={MODEL_ROLE: model}), run, out)
        # A plan for each model, since prices and limits differ.
        for model in material.models.values()
        if questions
    ]
    beyond = sum(len(draw.remaining) for draw in source_draws)
    return Plan(len(questions), [part for model_plan in plans for part in model_plan.parts]), beyond


async def _draw_set(material: MixInput, out: Path, options: MixOptions) -> MixResult:
    # Before the folder is made.
    check_budget(material.backends, options.calls.prices, options.calls.budget)
    source_draws = build_draws(material, options.per_source, options.seed)
    settings = {
        # The content of the files, not their paths: moved files continue the same session.
        "mixedqa": material.digest(),
        "sources": list(material.sources),
        "per_source": options.per_source,
        "seed": options.seed,
        "answering": options.answering.settings(),
        "answers": list(material.recorded),
    }

    async def work(counted_models: CountedModels) -> dict[str, str]:
        failed = await _run_draws(source_draws, material.models, counted_models, options)
        # A question whose call failed for now may still be accepted, so the set is not final.
        if not failed:
            _write_set(RunFolder(out), source_draws, material, options)
        return failed

    unfinished, session = await run_in_session(
        out, settings, material.backends, SessionOptions(options.calls), work
    )
    return MixResult(
        0
        if unfinished
        else sum(len(replies) for draw in source_draws for replies in draw.accepted),
        _build_report(source_draws, material, options),
        () if unfinished else [draw.source for draw in source_draws if draw.is_short],
        unfinished,
        session.endpoints,
    )


# Reading


@dataclass(frozen=True, slots=True)
class MixInput:
    """Everything that is read before a model is asked."""

    sources: Sequence[str]
    """Titles of the sets, in the order of MixedQA."""
    questions: Sequence[Sample]
    files: Sequence[Mapping[str, Any]]
    """Counts of questions and faults, one entry a file."""
    recorded: Recorded
    """Answers that need not be asked for."""
    models: Mapping[str, Chat]
    """Chat models by name."""

    @property
    def backends(self) -> Backends:
        """The models as backends."""
        return Backends.of(chat={MODEL_ROLE: self.models})

    def digest(self) -> str:
        """Return a hash of the questions and recorded answers."""
        digest = hashlib.sha256()
        for sample in self.questions:
            digest.update(encode_sample(sample))
        for name, answers in self.recorded.items():
            content = [
                name,
                *([key, sample_of_answer.response] for key, sample_of_answer in answers.items()),
            ]
            digest.update(json.dumps(content).encode())
        return digest.hexdigest()


def _read_and_check(
    files: Sequence[QuestionFile],
    models: Sequence[resolve.ChatChoice],
    answers: Sequence[tuple[str, Path]],
    options: MixOptions,
) -> MixInput:
    with Progress("reading", visible=options.progress) as progress:
        material = read_input(files, models, answers, skip_bad=options.skip_bad, step=progress.step)
    # All are asked in the same way.
    for question in material.questions[:1]:
        if problems := options.answering.problems(question):
            raise UsageError("; ".join(map(str, problems)))
    return material


def read_input(
    files: Sequence[QuestionFile],
    models: Sequence[resolve.ChatChoice],
    answers: Sequence[tuple[str, Path]],
    *,
    skip_bad: bool,
    step: Callable[[], None],
) -> MixInput:
    """Read and check everything; ``step`` is called for each question.

    Raises:
        BadInputError: records have faults, and ``skip_bad`` is off.
        InputError: a file cannot be read at all.
        BackendError, UnknownNameError: no such model.
        ValueError: no file, no model and no answers, or one name for two of them.
    """
    if not files:
        raise UsageError("give at least one file of questions, for example with --nq")
    chat_models: dict[str, Chat] = {}
    check_loadable("chat model", models)
    for choice in models:
        model = resolve.chat(choice)
        # Replies are stored and reported by name.
        _check_new_name(model.name, chat_models)
        chat_models[model.name] = model
    intake = Intake()
    questions, counts = _read_question_files(files, intake, step)
    recorded: dict[str, dict[str, Sample]] = {}
    for name, path in answers:
        _check_new_name(name, {**chat_models, **recorded})
        recorded[name] = _read_recorded_answers(name, path, intake)
    if not (chat_models or recorded):
        raise UsageError("no model answers; give --model URI or --answers NAME=FILE")
    # After all files, so that one message lists the faults of all.
    if intake.faulty and not skip_bad:
        raise BadInputError(intake.faults, intake.faulty)
    # In the order of MixedQA, whatever the order of the options.
    titles = {file.set.title for file in files}
    sources = [
        question_set.title
        for question_set in QUESTION_SETS.values()
        if question_set.title in titles
    ]
    return MixInput(sources, questions, counts, recorded, chat_models)


def _check_new_name(name: str, taken_names: Mapping[str, Any]) -> None:
    if name in taken_names:
        raise UsageError(f"{name} is named twice; expected each model once")


def _read_question_files(
    files: Sequence[QuestionFile], intake: Intake, step: Callable[[], None]
) -> tuple[list[Sample], list[dict[str, Any]]]:
    key_of_id: dict[str, str] = {}
    questions: list[Sample] = []
    counts = []
    for file in files:
        before, usable = intake.faulty, 0
        for record in read_questions(file):
            step()
            if isinstance(record, InputFault):
                intake.note(record)
                continue
            sample = record.sample
            key = key_of(sample.question)
            # The same question twice is a duplicate, which the draw drops; the same id for two is
            # a fault.
            if key_of_id.setdefault(sample.id, key) != key:
                message = f"{sample.id!r} is already used by another question of this split"
                intake.note(InputFault(record.where, (Problem("id", message),)))
                continue
            questions.append(sample)
            usable += 1
        faulty = intake.faulty - before
        file_fields = {"source": file.set.title, "split": file.split, "path": file.path}
        counts.append({**file_fields, "questions": usable, "faulty": faulty})
    return questions, counts


def _read_recorded_answers(name: str, path: Path, intake: Intake) -> dict[str, Sample]:
    """Read the recorded answers of a model by question; two for one question are a fault."""
    answers: dict[str, Sample] = {}
    for record in read_samples(path):
        if isinstance(record, InputFault):
            intake.note(record)
            continue
        # A file may hold the answers of several models.
        if record.sample.model not in (None, name):
            continue
        key = key_of(record.sample.question)
        if key in answers:
            message = f"{name} has answered it in an earlier record"
            intake.note(InputFault(record.where, (Problem("question", message),)))
            continue
        answers[key] = record.sample
    if not answers:
        raise InputError(f"{path}: no record of the model {name}")
    return answers


# Drawing


class DroppedQuestion(NamedTuple):
    """A question that was left out."""

    question: Sample
    filter: str
    """The filter that dropped it."""
    model: str | None = None
    """Whose reply was dropped, if it was for a reply."""
    reply: str | None = None
    """The text of that reply."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        record = {
            "id": self.question.id,
            "source": self.question.metadata["source"],
            "split": self.question.metadata["split"],
            "question": self.question.question,
            "filter": self.filter,
        }
        return (
            record if self.model is None else {**record, "model": self.model, "reply": self.reply}
        )


@dataclass
class SourceDraw:
    """The draw from one source."""

    source: str
    wanted: int
    """The number of questions to accept."""
    recorded: Recorded
    questions: int = 0
    """The number of questions of the source."""
    remaining: list[Sample] = field(default_factory=list)
    """Eligible questions that were not drawn yet; the next one is the last."""
    tried: int = 0
    """The number of questions for which models were asked or recorded answers examined."""
    accepted: list[Sequence[Sample]] = field(default_factory=list)
    """The replies of all models to each accepted question."""
    dropped: list[DroppedQuestion] = field(default_factory=list)

    @property
    def eligible(self) -> int:
        """The number of questions that passed the question filters."""
        return self.questions - sum(drop.model is None for drop in self.dropped)

    @property
    def is_short(self) -> bool:
        """Whether fewer questions than wanted were accepted."""
        return len(self.accepted) < self.wanted

    def next_questions(self) -> list[Sample]:
        """Draw as many questions as are still missing, of those with good recorded answers."""
        questions: list[Sample] = []
        while self.remaining and len(self.accepted) + len(questions) < self.wanted:
            # A question whose recorded answers are filtered out costs no request.
            question = self.remaining.pop()
            self.tried += 1
            if self._drop_bad_replies(question, self._find_recorded(question)):
                questions.append(question)
        return questions

    def keep_or_drop(self, question: Sample, replies: Mapping[str, Sample]) -> None:
        """Accept a question if every reply passes the filters, else record why not."""
        if self._drop_bad_replies(question, replies):
            self.accepted.append([*replies.values(), *self._find_recorded(question).values()])

    def counts(self) -> Mapping[str, Counter[str]]:
        """Return by model how many replies each filter dropped."""
        counts_by_model: dict[str, Counter[str]] = {}
        for drop in self.dropped:
            if drop.model is not None:
                counts_by_model.setdefault(drop.model, Counter())[drop.filter] += 1
        return counts_by_model

    def _find_recorded(self, question: Sample) -> dict[str, Sample]:
        key = key_of(question.question)
        sample_by_name = {name: answers.get(key) for name, answers in self.recorded.items()}
        return {
            name: with_reply(question, name, sample.response if sample else None)
            for name, sample in sample_by_name.items()
        }

    def _drop_bad_replies(self, question: Sample, replies: Mapping[str, Sample]) -> bool:
        reasons = {
            name: NO_REPLY if reply.response is None else find_reply_filter(reply)
            for name, reply in replies.items()
        }
        # Every bad reply is recorded, not only the first: the report counts by model.
        self.dropped += [
            DroppedQuestion(question, reason, name, replies[name].response)
            for name, reason in reasons.items()
            if reason is not None
        ]
        return not any(reasons.values())


def with_reply(question: Sample, model: str, response: str | None) -> Sample:
    """Return a question with a model's reply to it."""
    return replace(question, response=response, model=model)


def key_of(question: str) -> str:
    """Return a key that is equal for questions with the same words."""
    return " ".join(split_words(question)) or question


def build_draws(material: MixInput, wanted: int, seed: int) -> list[SourceDraw]:
    """Return the draw of each source: filtered questions in random order, test splits first.

    The order depends only on the seed and the ids.
    """
    draw_of_source = {
        source: SourceDraw(source, wanted, material.recorded) for source in material.sources
    }
    keys: set[str] = set()
    position_of_source = {source: position for position, source in enumerate(material.sources)}

    def rank(question: Sample) -> tuple[int, int]:
        metadata = question.metadata
        return position_of_source[metadata["source"]], SPLITS.index(metadata["split"])

    # Sorted by source and split, so that of duplicates always the same one stays.
    for question in sorted(material.questions, key=rank):
        draw = draw_of_source[question.metadata["source"]]
        draw.questions += 1
        key = key_of(question.question)
        reason = find_question_filter(question) or (DUPLICATE if key in keys else None)
        if reason is None:
            keys.add(key)
            draw.remaining.append(question)
        else:
            draw.dropped.append(DroppedQuestion(question, reason))
    for draw in draw_of_source.values():
        # One random number for each id: adding questions does not change the order of the others.
        lot_of_id = {q.id: float(generator(seed, q.id, "mixedqa").random()) for q in draw.remaining}
        # The next question stands last.
        draw.remaining.sort(key=lambda q: (rank(q)[1], lot_of_id[q.id], q.id), reverse=True)
    return list(draw_of_source.values())


# Asking


async def _run_draws(
    source_draws: Sequence[SourceDraw],
    models: Mapping[str, Chat],
    counted_models: CountedModels,
    options: MixOptions,
) -> dict[str, str]:
    """Draw until every source has enough or no more questions; return temporary failures."""
    total = options.per_source * len(source_draws)
    failed: dict[str, str] = {}
    with Progress("keeping", total, visible=options.progress) as progress:
        while not failed:
            # All sources together, so that models are asked about as many questions as possible at
            # once.
            drawn = [(draw, q) for draw in source_draws for q in draw.next_questions()]
            if not drawn:
                break
            questions = [question for _, question in drawn]
            # The outcomes come in the order of questions and models, several in progress ahead.
            async with aclosing(
                _ask_models(questions, models, counted_models, options)
            ) as outcomes:
                for draw, question in drawn:
                    replies: dict[str, Sample] = {}
                    for name in models:
                        outcome = await anext(outcomes)
                        failure = outcome.failures.get("response")
                        # A temporary failure stops the drawing after this round.
                        if failure and failure.fault not in FINAL_FAULTS:
                            failed[f"{question.id}, {name}"] = failure.error
                        replies[name] = _make_reply(outcome, question, name, failure)
                    accepted_before = len(draw.accepted)
                    # After all models have replied: the filters judge the question by all of them.
                    draw.keep_or_drop(question, replies)
                    progress.step(len(draw.accepted) - accepted_before)
    return failed


def _ask_models(
    questions: Sequence[Sample],
    models: Mapping[str, Chat],
    counted_models: CountedModels,
    options: MixOptions,
) -> AsyncGenerator[FilledSample, None]:
    """Yield the replies of all models to the first question, then to the second, and so on."""
    stages: list[Sequence[Stage]] = [
        [ResponseStage(options.answering, which=name)] for name in models
    ]
    # A generator: questions are taken as there is room for requests.
    tasks = ((question, stage, 0) for question in questions for stage in stages)
    # As far ahead as a run does, by the number of calls that the endpoints allow.
    ahead = SAMPLES_PER_CALL * (calls_at_once(models.values()) or 1)
    filled_samples = fill_in_order(tasks, counted_models, ahead)
    return cast("AsyncGenerator[FilledSample, None]", filled_samples)


def _make_reply(
    outcome: FilledSample, question: Sample, name: str, failure: FillFailure | None
) -> Sample:
    if failure is None:
        return outcome.sample
    # An empty reply is dropped as blank, a refused call as missing.
    return with_reply(question, name, "" if failure.fault == "empty" else None)


# Writing


def _write_set(
    folder: RunFolder, source_draws: Sequence[SourceDraw], material: MixInput, options: MixOptions
) -> None:
    # Dropped questions are published with the set, so that the filters can be checked.
    with open_atomic(folder.path / DROPPED_FILE) as file:
        for draw in source_draws:
            for drop in draw.dropped:
                file.write((json.dumps(drop.to_dict(), ensure_ascii=False) + "\n").encode())
    with open_atomic(folder.samples_path) as file:
        for draw in source_draws:
            for replies in draw.accepted:
                for number, sample in enumerate(replies, 1):
                    metadata = {**sample.metadata, "question_id": sample.id}
                    # All models answer the same question, so its id needs a number.
                    numbered_sample = replace(sample, id=f"{sample.id}#{number}", metadata=metadata)
                    file.write(encode_sample(numbered_sample))
    folder.write_json("report", _build_report(source_draws, material, options))


def _build_report(
    source_draws: Sequence[SourceDraw], material: MixInput, options: MixOptions
) -> dict[str, Any]:
    names = [*material.models, *material.recorded]
    # All filters appear, also those that dropped nothing.
    filters = [NO_REPLY, *REPLY_FILTERS]
    sources = {}
    for draw in source_draws:
        counts = draw.counts()
        questions = Counter(drop.filter for drop in draw.dropped if drop.model is None)
        sources[draw.source] = {
            "questions": draw.questions,
            "dropped": dict(sorted(questions.items())),
            "eligible": draw.eligible,
            "asked": draw.tried,
            "replies_dropped": {
                name: {key: counts.get(name, Counter())[key] for key in filters} for name in names
            },
            "kept": len(draw.accepted),
            "kept_by_split": dict(
                Counter(replies[0].metadata["split"] for replies in draw.accepted)
            ),
        }
    return {
        "seed": options.seed,
        "per_source": options.per_source,
        "models": names,
        "files": list(material.files),
        "sources": sources,
    }
