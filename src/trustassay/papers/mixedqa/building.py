"""Build MixedQA, the kind of set that TrustScore is tested on, from copies of five published sets.

Zheng et al. 2024 (TrustScore), appendix A.3:

1. Read the questions without their contexts, and recorded answers.
2. Draw questions from each set in random order.
3. Ask all models; accept a question if every model answered it.
4. Draw again until each set has enough accepted questions.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from trustassay.backends import resolve
from trustassay.calls.backends import MODEL_ROLE, Backends
from trustassay.calls.client import CallOptions, check_budget
from trustassay.calls.endpoints import calls_at_once
from trustassay.calls.retry import Endpoint
from trustassay.core.event_loop import run_anywhere
from trustassay.core.files import open_atomic
from trustassay.core.progress import Progress
from trustassay.core.sample import Sample
from trustassay.errors import UsageError
from trustassay.papers.mixedqa.drawing import (
    NO_REPLY,
    REPLY_FILTERS,
    Chat,
    MixInput,
    SourceDraw,
    build_draws,
    read_input,
    with_reply,
)
from trustassay.papers.mixedqa.question_sets import QuestionFile
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
from trustassay.runs.intake import RunOptions
from trustassay.runs.lines import encode_sample
from trustassay.runs.plan import plan as plan_run

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
    return run_anywhere(lambda: _draw_set(files, models, out, answers, options))


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
    return run_anywhere(lambda: _plan_first_draw(files, models, out, answers, options))


async def _plan_first_draw(
    files: Sequence[QuestionFile],
    models: Sequence[resolve.ChatChoice],
    out: Path,
    answers: Sequence[tuple[str, Path]],
    options: MixOptions,
) -> tuple[Plan, int]:
    material = await _read_input(files, models, answers, options)
    source_draws = _build_draws(material, options)
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


async def _draw_set(
    files: Sequence[QuestionFile],
    models: Sequence[resolve.ChatChoice],
    out: Path,
    answers: Sequence[tuple[str, Path]],
    options: MixOptions,
) -> MixResult:
    material = await _read_input(files, models, answers, options)
    # Before the folder is made.
    check_budget(material.backends, options.calls.prices, options.calls.budget)
    source_draws = _build_draws(material, options)
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


async def _read_input(
    files: Sequence[QuestionFile],
    models: Sequence[resolve.ChatChoice],
    answers: Sequence[tuple[str, Path]],
    options: MixOptions,
) -> MixInput:
    with Progress("reading", visible=options.progress) as progress:
        material = await asyncio.to_thread(
            read_input, files, models, answers, skip_bad=options.skip_bad, step=progress.step
        )
    for question in material.questions[:1]:  # all are asked in the same way
        if problems := options.answering.problems(question):
            raise UsageError("; ".join(map(str, problems)))
    return material


def _build_draws(material: MixInput, options: MixOptions) -> list[SourceDraw]:
    questions, sources = material.questions, material.sources
    return build_draws(questions, sources, options.per_source, options.seed, material.recorded)


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
        [ResponseStage(options.answering, name, which=name)] for name in models
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
