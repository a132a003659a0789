"""The distractors of each answer of a file, written down to be looked at."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from trustassay.calls.backends import Backends
from trustassay.calls.kinds import capability
from trustassay.capabilities import Models
from trustassay.distractors import SOURCES, Distractor, find_distractors, same_kind_answers
from trustassay.distractors.finding import LLM
from trustassay.event_loop import run_anywhere
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import Source
from trustassay.runs.pool import StoredPool
from trustassay.sample import Problem, Sample
from trustassay.statistics.resampling import generator
from trustassay.workflows.each import FileOptions, FileWork, Work, write_each

__all__ = ["DistractorOptions", "Found", "find_in_file", "loaded"]

POOL = 300
"""Other answers that are looked through for those of the same kind."""
ENOUGH = 3
"""Distractors that a question with options needs; with fewer an answer is not assessable."""


@dataclass(frozen=True)
class DistractorOptions(FileOptions):
    """What is looked for; as of :func:`~trustassay.distractors.find_distractors`, and:

    pool: take answers to other questions of the file, too. most: distractors of an answer.
    Gold answers are always kept out.
    """

    sources: Sequence[str] = SOURCES
    pool: bool = False
    most: int = 40
    seed: int = 0


@dataclass(slots=True)
class Found:
    """What was written: answers, how many of them have at least three distractors, and failures.

    ``resumed`` of the answers were done already, by an earlier call that was interrupted;
    ``stopped`` says why this one was.
    """

    answers: int = 0
    assessable: int = 0
    distractors: int = 0
    resumed: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    stopped: str | None = None


def loaded(
    sources: Any, linker: Any = None, generator: Any = None
) -> tuple[Backends, tuple[str, ...]]:
    """Return the backends that sources name, and the names of the sources in their order.

    ``sources`` is ``embedding,pos,dbpedia:URL``, a list or a mapping; ``llm`` among them is the
    chat model ``generator``.

    Raises:
        UnknownNameError, ValueError, BackendError: there is no such source, or it cannot be loaded.
    """
    found = capability("substitutes")
    assert found.choices is not None
    named = dict(found.choices(sources))
    backends = Backends.of(
        substitutes={name: found.load(one) for name, one in named.items() if name != LLM},
        link=None if linker is None else capability("link").load(linker),
        chat={} if generator is None else {"generator": capability("chat").load(generator)},
    )
    return backends, tuple(named)


def find_in_file(
    source: Source,
    out: str | os.PathLike[str],
    backends: Backends,
    options: DistractorOptions | None = None,
) -> Found:
    """Write the distractors of every answer of ``source`` to ``out``, whole or not at all.

    JSON Lines: id, question, response, model where it is known, and the distractors in the order of
    their rank. An answer whose sources failed is left out. The same call after an interruption
    goes on where it stopped.

    Raises:
        BadInputError, InputError: the input has faults; nothing was started.
        UnfinishedError: other work on ``out`` is unfinished.
        BackendError: a key is needed and not set.
    """
    chosen = options or DistractorOptions()
    return run_anywhere(lambda: _find(source, Path(out), backends, chosen))


def _problems(sample: Sample) -> list[Problem]:
    return [] if sample.answered else [Problem("response", "is missing; nothing can be replaced")]


async def _find(source: Source, out: Path, backends: Backends, options: DistractorOptions) -> Found:
    def begin(folder: RunFolder) -> Work:
        others = _drawn(folder, options.seed) if options.pool else []

        async def work(sample: Sample, models: Models) -> tuple[dict[str, Any], dict[str, int]]:
            found = await _of_sample(sample, models, others, options)
            counts = {"assessable": int(len(found) >= ENOUGH), "distractors": len(found)}
            return _record(sample, found), counts

        return work

    settings = {
        "sources": list(options.sources),
        "pool": options.pool,
        "most": options.most,
        "seed": options.seed,
    }
    finding = FileWork("finding", _problems, settings, begin)
    done = await write_each(source, out, backends, options, finding)
    return Found(
        done.written, **done.counts, resumed=done.resumed, failed=done.failed, stopped=done.stopped
    )


def _drawn(folder: RunFolder, seed: int) -> list[Sample]:
    """Return the answers that serve as a pool: all, or some drawn at random."""
    pool = StoredPool(folder.samples_path)
    places = generator(seed, "distractors", "pool").permutation(len(pool))[:POOL]
    return [pool[int(place)] for place in sorted(places)]


async def _of_sample(
    sample: Sample, models: Models, others: Sequence[Sample], options: DistractorOptions
) -> list[Distractor]:
    return await find_distractors(
        sample.question,
        sample.response or "",
        models,
        aliases=[alias for aliases in sample.answers for alias in aliases],
        pool=same_kind_answers(sample, others, seed=options.seed) if others else (),
        sources=options.sources,
        limit=options.most,
        seed=options.seed,
    )


def _record(sample: Sample, found: Sequence[Distractor]) -> dict[str, Any]:
    named = {"model": sample.model} if sample.model else {}
    return {
        "id": sample.id,
        **named,
        "question": sample.question,
        "response": sample.response,
        "distractors": [asdict(one) for one in found],
    }
