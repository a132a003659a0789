"""Probes of a model or an embedder: the search along gamma, isotropy, and distractors."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from trustassay.backends import DEFAULT_ENTAILER, resolve
from trustassay.calls.backends import MODEL, Backends, Place
from trustassay.calls.client import CallOptions, SampleModels, open_calls, shared_file
from trustassay.calls.kinds import capability
from trustassay.capabilities import Models
from trustassay.data.reading import read_samples
from trustassay.data.records import Fault, InputError
from trustassay.distractors import SOURCES, find_distractors, same_kind_answers
from trustassay.distractors.search import LLM
from trustassay.errors import UsageError
from trustassay.event_loop import run_anywhere
from trustassay.files import named
from trustassay.metrics.harmonicity.ascent import Ascent, best_seen, climb
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import BadInputError, Intake, Source
from trustassay.runs.needs import load_all
from trustassay.runs.prepare import StoredPool
from trustassay.sample import Problem, Sample
from trustassay.show.ascent import AscentPage, write_ascent_page
from trustassay.statistics.isotropy import Isotropy, isotropy
from trustassay.statistics.resampling import generator
from trustassay.views import Point
from trustassay.workflows.resumable import (
    CountedModels,
    Done,
    FileOptions,
    FileWork,
    Session,
    SessionOptions,
    Work,
    in_session,
    write_each,
)

GROWING = frozenset({"steps", "max_calls"})
"""Options that may differ when a search is resumed."""


@dataclass(frozen=True)
class Attacked:
    """The prompts that were tried, and the calls that were made for them."""

    points: list[Point]
    session: Session
    trace: Path
    page: Path
    best: Point
    """The best prompt found; with the rule ``extremum`` the search may have gone on from there."""
    most: int | None = None

    @property
    def start(self) -> Point:
        """The prompt as it was given."""
        return self.points[0]

    @property
    def end(self) -> Point:
        """The prompt that the search ended at."""
        return [point for point in self.points if point.kept][-1]

    @property
    def calls(self) -> str:
        """The number of requests sent, how many of them failed, and the maximum."""
        sent, failed = self.session.requests, self.session.failed
        words = f"{sent:,}" + (f" of at most {self.most:,}" if self.most else "")
        return words + (f", {failed:,} of them failed" if failed else "")

    @property
    def warnings(self) -> list[str]:
        """What a reader should know."""
        failed = sum(point.error is not None for point in self.points)
        found = [f"{failed} of {len(self.points)} prompts failed"] if failed else []
        if cut := self.session.cut:
            found.append(f"{cut:,} of {self.session.replies:,} replies were cut at max_tokens")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "start": row(self.start),
            "end": row(self.end),
            "best": row(self.best),
            "requests": self.session.requests,
            "failed_requests": self.session.failed,
            "points": [row(point) for point in self.points],
        }


def open_backends(
    model: resolve.ChatChoice,
    embedder: resolve.EmbedderChoice,
    out: Path,
    options: SessionOptions,
) -> Backends:
    """Load what a search calls; every fault is reported before a model is loaded."""
    stores = [RunFolder(out).calls_path, shared_file(options.calls.cache)]
    wanted = {Place("embed"): embedder, Place("chat", MODEL): model}
    return Backends(run_anywhere(lambda: load_all(wanted, stores=stores)))


def attack(
    prompt: str,
    backends: Backends,
    out: Path,
    how: Ascent,
    options: SessionOptions,
    tell: Callable[[Point], None] = lambda _: None,
) -> Attacked:
    """Search from ``prompt``; the folder ``out`` gets the trace, the page and all calls.

    The same call continues where an interrupted one stopped, and repeats no request.

    Raises:
        RunFolderError: the folder holds something else, or another process works in it.
        BackendError, AssessmentError, NoPerturbationError: the start cannot be measured.
    """
    settings = {one.name: getattr(how, one.name) for one in fields(how) if one.name not in GROWING}
    trace = out / "trace.jsonl"

    async def search(models: CountedModels) -> list[Point]:
        with named(trace), trace.open("w", encoding="utf-8") as file:

            def note(point: Point) -> None:
                file.write(json.dumps(row(point)) + "\n")
                file.flush()
                tell(point)

            return await climb(prompt, models, how, note, lambda: models.used)

    points, session = run_anywhere(
        lambda: in_session(out, {"prompt": prompt, **settings}, backends, options, search)
    )
    page, best = out / "ascent.html", best_seen(points, how)
    found = Attacked(points, session, trace, page, best, how.max_calls)
    _draw_page(found, backends, how)
    return found


def row(point: Point) -> dict[str, Any]:
    """Return a point as it is written in the trace."""
    return {name: getattr(point, name) for name in point.__slots__}


def _draw_page(found: Attacked, backends: Backends, how: Ascent) -> None:
    facts = {
        **backends.names(),
        "calls": found.calls,
        "candidates": f"{how.candidates} a step, {_family(how.candidate, how)}",
        "per gamma": f"{how.perturbations} perturbed prompts, {_family(how.perturbation, how)}",
        "step rule": how.step_rule,
        "seed": str(how.seed),
    }
    page = AscentPage(facts, _headline(found, how), found.warnings, found.points, found.best)
    write_ascent_page(page, found.page)


def _family(family: str, how: Ascent) -> str:
    """Return a family with what was drawn for it."""
    return f"{family} 0 to {how.range}" if family == "codes" else family


def _headline(found: Attacked, how: Ascent) -> str:
    """Return a sentence on the result of the search."""
    start, end, best = found.start, found.end, found.best
    way = "descent" if how.descend else "ascent"
    words = f"The {way} found no {'more' if how.descend else 'less'} stable prompt."
    if end.prompt != start.prompt:
        led = (
            f"The {way} went from gamma {start.gamma:.3f} to {end.gamma:.3f} "
            f"({start.angle_degrees:.1f}° to {end.angle_degrees:.1f}°)."
        )
        words = led if best.prompt != start.prompt else f"{led} {words}"
    if best.prompt not in (start.prompt, end.prompt):
        words += f" The best prompt found has gamma {best.gamma:.3f}, at step {best.step}."
    return words


Vectors = NDArray[np.float32]

NO_CACHE = CallOptions(cache=None)
TOGETHER = 1024
"""Texts whose vectors are requested at once."""


def drawn_samples(
    source: Source,
    n: int,
    *,
    seed: int = 0,
    fields: dict[str, str] | None = None,
    limit: int | None = None,
    skip_bad: bool = False,
) -> list[Sample]:
    """Return n samples drawn at random, in the order of the input; equal questions are drawn once.

    Reads the whole input, or its first ``limit`` records, and keeps only the samples drawn and a
    digest of each question in memory.

    Raises:
        BadInputError: samples have faults, and ``skip_bad`` is off.
        InputError: the input cannot be read, or holds no usable sample.
    """
    found = Intake()
    rng = generator(seed, "isotropy", "texts")
    seen: set[bytes] = set()
    drawn: list[tuple[int, Sample]] = []
    for one in islice(read_samples(source, fields=fields or {}), limit):
        if isinstance(one, Fault):
            found.note(one)
            continue
        text = one.sample.question.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(text, digest_size=16).digest()
        if digest in seen:
            continue
        seen.add(digest)  # the i-th takes a place with probability n/i (Algorithm R, Vitter 1985)
        if len(drawn) < n:
            drawn.append((len(seen), one.sample))
        elif (place := int(rng.integers(len(seen)))) < n:
            drawn[place] = len(seen), one.sample
    if found.faulty and not skip_bad:
        raise BadInputError(found.faults, found.faulty)
    if not drawn:
        raise InputError("no usable sample in the input")
    return [sample for _, sample in sorted(drawn, key=itemgetter(0))]


def measure_isotropy(
    versions: Sequence[tuple[Sequence[str], Sequence[Sequence[str]]]],
    backends: Backends,
    *,
    seed: int = 0,
    options: CallOptions = NO_CACHE,
) -> list[Isotropy]:
    """Embed texts and their perturbed versions, and return how evenly the versions spread.

    ``versions`` holds, for each perturbation, the texts and the versions of each. A text that
    occurs several times is embedded once.

    Raises:
        ValueError: a perturbation has no text.
        BackendError: the embedder fails.
    """
    if not all(texts for texts, _ in versions):
        raise UsageError("the perturbation cannot be applied to any text")
    every = dict.fromkeys(
        text
        for texts, perturbed in versions
        for original, others in zip(texts, perturbed, strict=True)
        for text in (original, *others)
    )
    vectors = run_anywhere(lambda: _embedded(list(every), backends, options))
    return [
        isotropy(
            np.stack([vectors[text] for text in texts]),
            np.stack([[vectors[text] for text in others] for others in perturbed]),
            generator(seed, "isotropy"),
        )
        for texts, perturbed in versions
    ]


async def _embedded(
    texts: Sequence[str], backends: Backends, options: CallOptions
) -> dict[str, Vectors]:
    found: dict[str, Vectors] = {}
    async with open_calls(backends, options) as client:
        models = cast(Models, SampleModels(client))
        for start in range(0, len(texts), TOGETHER):
            block = texts[start : start + TOGETHER]
            vectors = await asyncio.gather(*map(models.embed, block))
            found.update(zip(block, vectors, strict=True))
    return found


POOL = 300
"""Other answers that are looked through for those of the same kind."""
COUNTED = ("assessable", "distractors")
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


def loaded(
    sources: Any, linker: Any = None, generator: Any = None
) -> tuple[Backends, tuple[str, ...]]:
    """Return the backends that sources name, and the names of the sources in their order.

    ``sources`` is ``embedding,pos,dbpedia:URL``, a list or a mapping. The chat model ``generator``
    is the source ``llm``, which is checked by the embedded entailer, and need not be among them.
    """
    found = capability("substitutes")
    assert found.choices is not None
    named = dict(found.choices(sources))
    if generator is not None and LLM not in named:
        named = {LLM: LLM} | named
    backends = Backends.of(
        substitutes={name: found.load(one) for name, one in named.items() if name != LLM},
        link=None if linker is None else capability("link").load(linker),
        chat={} if generator is None else {"generator": capability("chat").load(generator)},
        entail=None if generator is None else capability("entail").load(DEFAULT_ENTAILER),
    )
    return backends, tuple(named)


def find_in_file(
    source: Source,
    out: str | os.PathLike[str],
    backends: Backends,
    options: DistractorOptions | None = None,
) -> Done:
    """Write the distractors of every answer of ``source`` to ``out``, whole or not at all.

    Counted are the ``distractors``, and the ``assessable`` answers, which have three or more; with
    ``llm`` also the distractors of each source.
    JSON Lines: id, question, response, model where it is known, and the distractors in the order of
    their rank. An answer whose sources failed is left out. The same call goes on after an
    interruption. Raises as :func:`~trustassay.workflows.resumable.write_each`.
    """
    options = options or DistractorOptions()

    def problems(sample: Sample) -> list[Problem]:
        absent = Problem("response", "is missing; nothing can be replaced")
        return [] if sample.answered else [absent]

    def begin(folder: RunFolder) -> Work:
        others = _drawn(folder, options.seed) if options.pool else []

        async def work(sample: Sample, models: Models) -> tuple[dict[str, Any], dict[str, int]]:
            found = await find_distractors(
                sample.question,
                sample.response or "",
                models,
                aliases=[alias for aliases in sample.answers for alias in aliases],
                pool=same_kind_answers(sample, others, seed=options.seed) if others else (),
                sources=options.sources,
                limit=options.most,
                seed=options.seed,
            )
            record = {
                "id": sample.id,
                **({"model": sample.model} if sample.model else {}),
                "question": sample.question,
                "response": sample.response,
                "distractors": [asdict(one) for one in found],
            }
            counts = {"assessable": int(len(found) >= ENOUGH), "distractors": len(found)}
            if LLM in options.sources:
                counts |= Counter(one.source for one in found)
            return record, counts

        return work

    names = ("sources", "pool", "most", "seed")
    settings = {name: getattr(options, name) for name in names}
    settings["sources"] = list(options.sources)
    finding = FileWork("finding", problems, settings, begin)
    return run_anywhere(lambda: write_each(source, Path(out), backends, options, finding))


def _drawn(folder: RunFolder, seed: int) -> list[Sample]:
    """Return the answers that serve as a pool: all, or some drawn at random."""
    pool = StoredPool(folder.samples_path)
    places = generator(seed, "distractors", "pool").permutation(len(pool))[:POOL]
    return [pool[int(place)] for place in sorted(places)]
