"""Answers to a file of questions, written to a file that ``score`` reads."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from trustassay.answering import Answering
from trustassay.backends import resolve
from trustassay.engine.answers import answered, unanswered
from trustassay.engine.anywhere import run_anywhere
from trustassay.engine.asking import calls_at_once, held_back
from trustassay.engine.cache import default_cache, open_cache
from trustassay.engine.folder import RunFolder
from trustassay.engine.intake import Source, take_in
from trustassay.engine.keys import check_keys, shared_file
from trustassay.engine.limits import Endpoint
from trustassay.engine.models import Asking, Backends, Gatherers, any_shared, check_budget
from trustassay.engine.progress import Progress, tell
from trustassay.engine.unfinished import locked
from trustassay.engine.usage import Budget, Prices
from trustassay.files import named
from trustassay.sample import Sample

__all__ = ["GenerateOptions", "Generated", "generate"]


@dataclass(frozen=True)
class GenerateOptions:
    """How questions are answered; as :class:`~trustassay.engine.run.RunOptions`, and:

    concurrency: calls under way at once; ``None`` for as many as the model's own limits say.
    repeats: answers to each question. again: also where a question has an answer already.
    """

    answering: Answering = field(default_factory=Answering)
    fields: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    skip_bad: bool = False
    repeats: int = 1
    again: bool = False
    concurrency: int | None = None
    progress: bool = False
    cache: Path | None = field(default_factory=default_cache)
    prices: Prices = field(default_factory=Prices)
    budget: Budget | None = None


@dataclass(slots=True)
class Generated:
    """What was written, and why some questions have no answer, by id."""

    written: int = 0
    cut: int = 0
    empty: int = 0
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
    backend = await asyncio.to_thread(resolve.chat, model)
    backends = Backends(chat={"model": backend})
    check_budget(backends, options.prices, options.budget)
    for words in held_back(options.concurrency, [backend]) if options.progress else ():
        tell(words)
    done = Generated()
    with ExitStack() as stack:
        place = stack.enter_context(TemporaryDirectory(prefix="trustassay-"))
        folder = RunFolder(Path(place))
        with Progress("checking the input", shown=options.progress) as progress:
            intake, _ = await take_in(
                source,
                [],
                folder.samples_path,
                fields=options.fields,
                limit=options.limit,
                skip_bad=options.skip_bad,
                answering=options.answering,
                step=progress.step,
            )
        inventory = intake.inventory
        asked = inventory.samples if options.again else inventory.samples - inventory.responses
        if asked:
            check_keys([backend], [shared_file(options.cache)])
        shared = open_cache(options.cache) if options.cache and any_shared(backends) else None
        if shared:
            stack.callback(shared.close, alone=False)
        asking = Asking(
            None,
            shared,
            prices=options.prices,
            budget=options.budget,
            concurrency=options.concurrency,
        )
        part = out.with_name(f".{out.name}.part")
        out.parent.mkdir(parents=True, exist_ok=True)
        stack.enter_context(named(out))
        file = stack.enter_context(locked(part))
        stack.callback(part.unlink, missing_ok=True)
        file.truncate(0)  # what a killed process left; its replies are in the cache
        gatherers = Gatherers(backends, asking)
        try:
            total = asked * options.repeats
            with Progress("answering", total, shown=options.progress) as progress:
                async for found in answered(
                    _questions(folder, again=options.again),
                    options.answering,
                    gatherers,
                    options.concurrency or calls_at_once([backend]),
                    progress.step,
                    options.repeats,
                ):
                    name = found.sample.id
                    if options.repeats > 1:
                        name = f"{name}#{found.repeat + 1}"
                    if found.error is not None:
                        done.failed[name] = found.error
                        done.empty += found.fault == "empty"
                        continue
                    done.written += 1
                    done.cut += found.cut
                    content = found.sample.to_dict() | {"id": name}
                    line = json.dumps(content, ensure_ascii=False, default=str) + "\n"
                    file.write(line.encode())
            file.flush()
        finally:
            await gatherers.close()
        done.endpoints = gatherers.endpoints.all()
        if done.written or not done.failed:
            part.replace(out)
    return done


def _questions(folder: RunFolder, *, again: bool) -> Iterator[Sample]:
    for sample in folder.samples():
        yield unanswered(sample) if again else sample
