"""Answers to a file of questions, written to a file that ``score`` reads."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from trustassay.answering import Answering
from trustassay.backends import resolve
from trustassay.calls.backends import MODEL, Backends, Place
from trustassay.calls.client import SampleModels, check_budget, check_keys, open_calls, shared_file
from trustassay.calls.endpoints import calls_at_once, held_back
from trustassay.calls.retry import Endpoint
from trustassay.errors import UsageError
from trustassay.event_loop import run_anywhere
from trustassay.files import alone, named
from trustassay.progress import Progress, tell
from trustassay.runs.fill import AHEAD, CUT, Responses, Stage, filled, unanswered
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import InputOptions, Source, checks_of, samples_of
from trustassay.runs.needs import load_all
from trustassay.sample import TOKENS, Sample
from trustassay.workflows.choose_metric import some_unanswered


class UnfinishedError(UsageError):
    """An earlier process left unfinished work with other settings, or is still working."""


@dataclass(frozen=True)
class GenerateOptions(InputOptions):
    """How questions are answered; as :class:`~trustassay.runs.intake.InputOptions`, and:

    repeats: answers to each question. again: also where a question has an answer already.
    """

    answering: Answering = field(default_factory=Answering)
    repeats: int = 1
    again: bool = False


@dataclass(slots=True)
class Generated:
    """What was written, and why some questions have no answer, by id.

    without_tokens: answers whose log-probabilities were asked for and are not known.
    """

    written: int = 0
    cut: int = 0
    empty: int = 0
    without_tokens: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)


def generate(
    source: Source,
    model: resolve.ChatChoice,
    out: str | os.PathLike[str],
    options: GenerateOptions | None = None,
) -> Generated:
    """Answer questions and write them with their answers to ``out``, whole or not at all.

    What the model replied is in the cache, so that the same call after an interruption asks for
    the rest alone. A question that was not answered is left out of the file; where none was, the
    file is not touched.

    Raises:
        BadInputError, InputError: the input has faults; nothing was asked.
        BackendError, UnknownNameError: no such model.
        UnfinishedError: another process is writing ``out``.
    """
    return run_anywhere(lambda: _generate(source, model, Path(out), options or GenerateOptions()))


async def _generate(
    source: Source, model: resolve.ChatChoice, out: Path, options: GenerateOptions
) -> Generated:
    if out.is_dir():
        raise IsADirectoryError(f"{out}: is a folder; expected a file to write")
    asks = options.again or some_unanswered(source, options.fields)
    stores = [shared_file(options.calls.cache)] if asks else None
    backends = Backends(await load_all({Place("chat", MODEL): model}, stores=stores))
    backend = backends.find("chat", MODEL)
    assert backend is not None
    check_budget(backends, options.calls.prices, options.calls.budget)
    if options.progress:
        for words in held_back("--calls-at-once", options.calls.calls_at_once, [backend]):
            tell(words)
    stages = [
        Responses(options.answering, backend.name, repeat) for repeat in range(options.repeats)
    ]
    done = Generated()
    async with AsyncExitStack() as stack:
        opened = samples_of(source, options, checks_of([], stages[:1], asked=True))
        folder, intake = await stack.enter_async_context(opened)
        inventory = intake.inventory
        asked = inventory.samples if options.again else inventory.samples - inventory.responses
        if asked:
            check_keys([backend], [shared_file(options.calls.cache)])
        part = out.with_name(f".{out.name}.part")
        out.parent.mkdir(parents=True, exist_ok=True)
        stack.enter_context(named(out))
        file = stack.enter_context(locked(part))
        stack.callback(part.unlink, missing_ok=True)
        file.truncate(0)  # what a killed process left; its replies are in the cache
        client = await stack.enter_async_context(open_calls(backends, options.calls))
        ahead = AHEAD * (options.calls.calls_at_once or calls_at_once([backend]))
        progress = stack.enter_context(
            Progress("answering", asked * options.repeats, shown=options.progress)
        )
        models = SampleModels(client)
        questions = _questions(folder, stages, again=options.again)
        async for result in filled(questions, models, ahead, progress.step):
            name = result.sample.id
            if options.repeats > 1:
                name = f"{name}#{result.repeat + 1}"
            if failure := result.failures.get("response"):
                done.failed[name] = failure.error
                done.empty += failure.fault == "empty"
                continue
            done.written += 1
            metadata = result.sample.metadata
            done.cut += CUT in metadata and bool(result.asked)
            wanted = options.answering.logprobs is not None and bool(result.asked)
            done.without_tokens += wanted and TOKENS not in metadata
            content = result.sample.to_dict() | {"id": name}
            file.write((json.dumps(content, ensure_ascii=False, default=str) + "\n").encode())
        file.flush()
        done.endpoints = client.endpoints.all()
        if done.written or not done.failed:
            part.replace(out)
    return done


def _questions(
    folder: RunFolder, stages: Sequence[Responses], *, again: bool
) -> Iterator[tuple[Sample, Sequence[Stage], int]]:
    """Yield each question as often as it is to be answered; one with an answer once."""
    for sample in folder.samples():
        asked = unanswered(sample) if again else sample
        for stage in stages if not asked.answered else stages[:1]:
            yield asked, [stage], stage.repeat


def locked(path: Path) -> IO[bytes]:
    """Open or make a file for this process alone; UnfinishedError: another one has locked it."""
    try:
        return alone(path, wait=False)
    except BlockingIOError:
        raise UnfinishedError(f"{path}: another process is working on it") from None
