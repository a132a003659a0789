"""From copies of five published sets, and models, to the kind of set that TrustScore is tested on.

Zheng et al. 2024 (TrustScore), appendix A.3: open questions without their contexts, put to all
models, kept where every model answered, as many from each set.
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

from trustassay.answering import Answering
from trustassay.backends import resolve
from trustassay.calls.backends import MODEL, Backends
from trustassay.calls.client import CallOptions, check_budget
from trustassay.calls.endpoints import calls_at_once
from trustassay.calls.retry import Endpoint
from trustassay.errors import UsageError
from trustassay.event_loop import run_anywhere
from trustassay.files import whole
from trustassay.progress import Progress
from trustassay.runs.estimates import Plan
from trustassay.runs.fill import (
    AHEAD,
    Failure,
    FilledSample,
    Filling,
    Responses,
    Stage,
    filled,
)
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import RunOptions
from trustassay.runs.lines import encoded_sample
from trustassay.runs.plan import plan as plan_run
from trustassay.sample import Sample
from trustassay_papers.mixedqa.drawing import (
    NO_REPLY,
    REPLY_FILTERS,
    Chat,
    Draw,
    Material,
    answered,
    draws,
    read_material,
)
from trustassay_papers.mixedqa.question_sets import QuestionFile
from trustassay_papers.session import CountedModels, SessionOptions, in_session

FOR_GOOD = frozenset({"refused", "empty", "oversized"})
"""Kinds of failed calls that the same request would meet again: the model does not answer it."""
DROPPED = "dropped.jsonl"


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
class Mixed:
    """What was drawn; ``report`` is the content of ``report.json``, one entry a source.

    ``unfinished`` says by question and model which calls failed that may succeed another time: then
    nothing is written, and the same call goes on.
    """

    samples: int
    report: Mapping[str, Any]
    short: Sequence[str] = ()
    unfinished: Mapping[str, str] = field(default_factory=dict)
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)


def mix(
    files: Sequence[QuestionFile],
    models: Sequence[resolve.ChatChoice],
    out: Path,
    answers: Sequence[tuple[str, Path]] = (),
    options: MixOptions | None = None,
) -> Mixed:
    """Draw a set into the folder ``out``: ``samples.jsonl``, ``dropped.jsonl``, ``report.json``.

    ``samples.jsonl`` has one sample for each question and model. ``answers`` are files of answers
    that are there already, each with the name of who gave them: of a file whose records name models
    those of that name are taken. The same call after an interruption asks nothing twice, and gives
    the same bytes.

    Raises:
        BadInputError, InputError: the input has faults; nothing was asked.
        RunFolderError: the folder holds something else, or another process works in it.
        BackendError, UnknownNameError: no such model, or its key is missing.
        ValueError: nobody is named who answers, or one name stands for two.
    """
    options = options or MixOptions()
    return run_anywhere(lambda: _mix(files, models, out, answers, options))


def plan_mix(
    files: Sequence[QuestionFile],
    models: Sequence[resolve.ChatChoice],
    out: Path,
    answers: Sequence[tuple[str, Path]] = (),
    options: MixOptions | None = None,
) -> tuple[Plan, int]:
    """Rehearse the first draw, and return its plan and the number of questions beyond it.

    As many questions are drawn as are to be kept; for each one that is dropped another is asked.

    Raises:
        BadInputError, InputError, BackendError, UnknownNameError, ValueError: as :func:`mix`.
    """
    options = options or MixOptions()
    return run_anywhere(lambda: _plan(files, models, out, answers, options))


async def _plan(
    files: Sequence[QuestionFile],
    models: Sequence[resolve.ChatChoice],
    out: Path,
    answers: Sequence[tuple[str, Path]],
    options: MixOptions,
) -> tuple[Plan, int]:
    material = await _material(files, models, answers, options)
    found = _draws(material, options)
    questions = [question for draw in found for question in draw.next_questions()]
    run = RunOptions(filling=Filling(options.answering), calls=options.calls)
    plans = [
        await plan_run(questions, [], Backends.of(chat={MODEL: model}), run, out)
        for model in material.models.values()
        if questions
    ]
    beyond = sum(len(draw.coming) for draw in found)
    return Plan(len(questions), [part for one in plans for part in one.parts]), beyond


async def _mix(
    files: Sequence[QuestionFile],
    models: Sequence[resolve.ChatChoice],
    out: Path,
    answers: Sequence[tuple[str, Path]],
    options: MixOptions,
) -> Mixed:
    material = await _material(files, models, answers, options)
    check_budget(material.backends, options.calls.prices, options.calls.budget)
    found = _draws(material, options)
    settings = {
        "mixedqa": material.digest(),
        "sources": list(material.sources),
        "per_source": options.per_source,
        "seed": options.seed,
        "answering": options.answering.settings(),
        "answers": list(material.recorded),
    }

    async def work(asked: CountedModels) -> dict[str, str]:
        failed = await _draw(found, material.models, asked, options)
        if not failed:
            _write(RunFolder(out), found, material, options)
        return failed

    unfinished, session = await in_session(
        out, settings, material.backends, SessionOptions(options.calls), work
    )
    return Mixed(
        0 if unfinished else sum(len(one) for draw in found for one in draw.kept),
        _report(found, material, options),
        () if unfinished else [draw.source for draw in found if draw.short],
        unfinished,
        session.endpoints,
    )


async def _material(
    files: Sequence[QuestionFile],
    models: Sequence[resolve.ChatChoice],
    answers: Sequence[tuple[str, Path]],
    options: MixOptions,
) -> Material:
    with Progress("reading", shown=options.progress) as progress:
        found = await asyncio.to_thread(
            read_material, files, models, answers, skip_bad=options.skip_bad, step=progress.step
        )
    for question in found.questions[:1]:  # all are asked in the same way
        if problems := options.answering.problems(question):
            raise UsageError("; ".join(map(str, problems)))
    return found


def _draws(material: Material, options: MixOptions) -> list[Draw]:
    questions, sources = material.questions, material.sources
    return draws(questions, sources, options.per_source, options.seed, material.recorded)


# ---- asking ----


async def _draw(
    found: Sequence[Draw],
    models: Mapping[str, Chat],
    asked: CountedModels,
    options: MixOptions,
) -> dict[str, str]:
    """Draw until every source has what is wanted or has no more; return what failed for now."""
    total = options.per_source * len(found)
    failed: dict[str, str] = {}
    with Progress("keeping", total, shown=options.progress) as progress:
        while not failed:
            waiting = [(draw, q) for draw in found for q in draw.next_questions()]
            if not waiting:
                break
            questions = [question for _, question in waiting]
            async with aclosing(_outcomes(questions, models, asked, options)) as outcomes:
                for draw, question in waiting:
                    replies: dict[str, Sample] = {}
                    for name in models:
                        outcome = await anext(outcomes)
                        failure = outcome.failures.get("response")
                        if failure and failure.fault not in FOR_GOOD:
                            failed[f"{question.id}, {name}"] = failure.error
                        replies[name] = _reply(outcome, question, name, failure)
                    kept = len(draw.kept)
                    draw.settle(question, replies)
                    progress.step(len(draw.kept) - kept)
    return failed


def _outcomes(
    questions: Sequence[Sample],
    models: Mapping[str, Chat],
    asked: CountedModels,
    options: MixOptions,
) -> AsyncGenerator[FilledSample, None]:
    """Yield the replies of all models to the first question, to the second, and so on."""
    stages: list[Sequence[Stage]] = [
        [Responses(options.answering, name, which=name)] for name in models
    ]
    todo = ((question, stage, 0) for question in questions for stage in stages)
    ahead = AHEAD * (calls_at_once(models.values()) or 1)
    found = filled(todo, asked, ahead)
    return cast("AsyncGenerator[FilledSample, None]", found)


def _reply(outcome: FilledSample, question: Sample, name: str, failure: Failure | None) -> Sample:
    if failure is None:
        return outcome.sample
    return answered(question, name, "" if failure.fault == "empty" else None)


# ---- writing ----


def _write(
    folder: RunFolder, found: Sequence[Draw], material: Material, options: MixOptions
) -> None:
    with whole(folder.path / DROPPED) as file:
        for draw in found:
            for one in draw.dropped:
                file.write((json.dumps(one.to_dict(), ensure_ascii=False) + "\n").encode())
    with whole(folder.samples_path) as file:
        for draw in found:
            for replies in draw.kept:
                for number, sample in enumerate(replies, 1):
                    metadata = {**sample.metadata, "question_id": sample.id}
                    named = replace(sample, id=f"{sample.id}#{number}", metadata=metadata)
                    file.write(encoded_sample(named))
    folder.write_json("report", _report(found, material, options))


def _report(found: Sequence[Draw], material: Material, options: MixOptions) -> dict[str, Any]:
    names = [*material.models, *material.recorded]
    filters = [NO_REPLY, *REPLY_FILTERS]
    sources = {}
    for draw in found:
        counts = draw.counts()
        questions = Counter(one.filter for one in draw.dropped if one.model is None)
        sources[draw.source] = {
            "questions": draw.questions,
            "dropped": dict(sorted(questions.items())),
            "eligible": draw.eligible,
            "asked": draw.asked,
            "replies_dropped": {
                name: {one: counts.get(name, Counter())[one] for one in filters} for name in names
            },
            "kept": len(draw.kept),
            "kept_by_split": dict(Counter(one[0].metadata["split"] for one in draw.kept)),
        }
    return {
        "seed": options.seed,
        "per_source": options.per_source,
        "models": names,
        "files": list(material.files),
        "sources": sources,
    }
