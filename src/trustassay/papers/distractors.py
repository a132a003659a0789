"""``trustassay papers distractors``: list the wrong answers that a consistency check offers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trustassay.backends import DEFAULT_ENTAILER
from trustassay.calls.backends import Backends
from trustassay.calls.capability import capability
from trustassay.core.capabilities import Models
from trustassay.core.event_loop import run_anywhere
from trustassay.core.sample import Problem, Sample
from trustassay.metrics.consistency.distractors import (
    LLM,
    SOURCES,
    Algorithm,
    find_distractors,
)
from trustassay.metrics.consistency.slots import find_same_kind_answers
from trustassay.papers.resumable import FileOptions, FileResult, FileWork, Work, write_each
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import Source
from trustassay.runs.prepare import StoredPool
from trustassay.statistics.resampling import generator

MAX_POOL_ANSWERS = 300
"""Answers to other questions that are searched for answers of the same kind, at most."""
COUNT_KEYS = ("assessable", "distractors")
"""Counts that are kept for every file; others count the distractors of one source."""
MIN_DISTRACTORS = 3
"""Distractors that a multiple-choice question needs; with fewer an answer is not assessable."""


@dataclass(frozen=True)
class DistractorOptions(FileOptions):
    """Options of the search; as in
    :func:`~trustassay.metrics.consistency.distractors.find_distractors`, and:

    pool: take answers to other questions of the file, too. most: distractors of an answer.
    Gold answers are always kept out.
    """

    sources: Sequence[str] = SOURCES
    pool: bool = False
    algorithm: Algorithm = "asked"
    most: int = 40
    seed: int = 0


def load_backends(
    sources: Any, linker: Any = None, generator: Any = None
) -> tuple[Backends, tuple[str, ...]]:
    """Return the backends that sources name, and the names of the sources in their order.

    ``sources`` is ``embedding,pos,dbpedia:URL``, a list or a mapping. The chat model ``generator``
    is the source ``llm``, which is checked by the embedded entailer, and need not be among them.
    """
    substitutes = capability("substitutes")
    assert substitutes.choices is not None
    uris = dict(substitutes.choices(sources))
    # First: the wrong answers of a model rank before replaced words.
    if generator is not None and LLM not in uris:
        uris = {LLM: LLM} | uris
    backends = Backends.of(
        substitutes={name: substitutes.load(uri) for name, uri in uris.items() if name != LLM},
        link=None if linker is None else capability("link").load(linker),
        chat={} if generator is None else {"generator": capability("chat").load(generator)},
        entail=None if generator is None else capability("entail").load(DEFAULT_ENTAILER),
    )
    return backends, tuple(uris)


def find_in_file(
    source: Source,
    out: str | os.PathLike[str],
    backends: Backends,
    options: DistractorOptions | None = None,
) -> FileResult:
    """Write the distractors of every answer of ``source`` to ``out``, whole or not at all.

    The result counts ``distractors`` and ``assessable`` answers, which have three or more; with
    ``llm`` also the distractors of each source. A line holds id, question, response, model if
    known, and the distractors by rank. An answer whose sources failed is left out. The same call
    continues after an interruption. Raises as :func:`~trustassay.papers.resumable.write_each`.
    """
    options = options or DistractorOptions()

    def find_problems(sample: Sample) -> list[Problem]:
        # A distractor replaces a part of the response.
        missing_response = Problem("response", "is missing; nothing can be replaced")
        return [] if sample.answered else [missing_response]

    def begin(folder: RunFolder) -> Work:
        pool_samples = _draw_pool(folder, options.seed) if options.pool else []

        async def work(sample: Sample, models: Models) -> tuple[dict[str, Any], dict[str, int]]:
            distractors = await find_distractors(
                sample.question,
                sample.response or "",
                models,
                # A gold answer is no wrong answer.
                aliases=[alias for aliases in sample.answers for alias in aliases],
                # Answers to other questions of the same kind, as another year for a year.
                pool=find_same_kind_answers(sample, pool_samples, seed=options.seed)
                if pool_samples
                else (),
                sources=options.sources,
                limit=options.most,
                algorithm=options.algorithm,
                seed=options.seed,
            )
            record = {
                "id": sample.id,
                **({"model": sample.model} if sample.model else {}),
                "question": sample.question,
                "response": sample.response,
                "distractors": [asdict(distractor) for distractor in distractors],
            }
            counts = {
                "assessable": int(len(distractors) >= MIN_DISTRACTORS),
                "distractors": len(distractors),
            }
            if LLM in options.sources:
                counts |= Counter(distractor.source for distractor in distractors)
            return record, counts

        return work

    # What the records depend on: another value starts the file anew.
    names = ("sources", "pool", "algorithm", "most", "seed")
    settings = {name: getattr(options, name) for name in names}
    # As JSON stores it, so that settings compare equal when they are read back.
    settings["sources"] = list(options.sources)
    finding = FileWork("finding", find_problems, settings, begin)
    return run_anywhere(lambda: write_each(source, Path(out), backends, options, finding))


def _draw_pool(folder: RunFolder, seed: int) -> list[Sample]:
    """Return the samples whose answers serve as a pool: all, or some drawn at random."""
    pool = StoredPool(folder.samples_path)
    indices = generator(seed, "distractors", "pool").permutation(len(pool))[:MAX_POOL_ANSWERS]
    return [pool[int(index)] for index in sorted(indices)]
