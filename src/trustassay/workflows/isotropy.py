"""Texts and their perturbed versions as vectors, and how evenly the versions spread."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from itertools import islice
from operator import itemgetter
from typing import cast

import numpy as np
from numpy.typing import NDArray

from trustassay.calls.backends import Backends
from trustassay.calls.models import SampleModels
from trustassay.calls.opening import CallOptions, open_calls
from trustassay.capabilities import Models
from trustassay.data.reading import Fault, InputError, read_samples
from trustassay.errors import UsageError
from trustassay.event_loop import run_anywhere
from trustassay.runs.intake import BadInputError, Intake, Source
from trustassay.sample import Sample
from trustassay.statistics.isotropy import Isotropy, isotropy
from trustassay.statistics.resampling import generator

__all__ = ["drawn_samples", "measure_isotropy"]

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
        elif (digest := _digest(one.sample.question)) not in seen:
            seen.add(digest)
            _draw(drawn, (len(seen), one.sample), n, rng)
    if found.faulty and not skip_bad:
        raise BadInputError(found.faults, found.faulty)
    if not drawn:
        raise InputError("no usable sample in the input")
    return [sample for _, sample in sorted(drawn, key=itemgetter(0))]


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _draw(
    drawn: list[tuple[int, Sample]], item: tuple[int, Sample], n: int, rng: np.random.Generator
) -> None:
    """Let the i-th item take a place with probability n/i (Algorithm R, Vitter 1985)."""
    if len(drawn) < n:
        drawn.append(item)
    elif (place := int(rng.integers(item[0]))) < n:
        drawn[place] = item


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
    async with open_calls(backends, options) as gatherers:
        models = cast(Models, SampleModels(gatherers))
        for start in range(0, len(texts), TOGETHER):
            block = texts[start : start + TOGETHER]
            vectors = await asyncio.gather(*map(models.embed, block))
            found.update(zip(block, vectors, strict=True))
    return found
