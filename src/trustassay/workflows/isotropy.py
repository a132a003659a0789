"""Texts and their perturbed versions as vectors, and how evenly the versions spread."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trustassay.calls.backends import Backends
from trustassay.calls.gatherers import Asking, Gatherers
from trustassay.calls.models import SampleModels
from trustassay.calls.store import open_cache
from trustassay.data.reading import Fault, InputError, read_samples
from trustassay.event_loop import run_anywhere
from trustassay.runs.intake import BadInputError, Source
from trustassay.sample import Sample
from trustassay.statistics.isotropy import Isotropy, isotropy
from trustassay.statistics.randomness import generator

__all__ = ["measure_isotropy", "sound_samples"]

Vectors = NDArray[np.float32]

TOGETHER = 64
"""Texts whose vectors are under way at once, beside those of their versions."""


def sound_samples(
    source: Source,
    *,
    fields: dict[str, str] | None = None,
    limit: int | None = None,
    skip_bad: bool = False,
) -> list[Sample]:
    """Return the first samples of an input; only their questions are of interest.

    Raises:
        BadInputError: samples have faults, and ``skip_bad`` is off.
        InputError: the input cannot be read, or holds no usable sample.
    """
    found = list(islice(read_samples(source, fields=fields or {}), limit))
    faults = [one for one in found if isinstance(one, Fault)]
    if faults and not skip_bad:
        raise BadInputError(faults, len(faults))
    samples = [one.sample for one in found if not isinstance(one, Fault)]
    if not samples:
        raise InputError("no usable sample in the input")
    return samples


def measure_isotropy(
    texts: Sequence[str],
    perturbed: Sequence[Sequence[str]],
    backends: Backends,
    *,
    seed: int = 0,
    cache: Path | None = None,
) -> Isotropy:
    """Embed texts and as many perturbed versions of each, and return how evenly those spread.

    Raises:
        ValueError: there is no text.
        BackendError: the embedder fails.
    """
    if not texts:
        raise ValueError("no text can be perturbed so")
    originals, versions = run_anywhere(lambda: _embedded(texts, perturbed, backends, cache))
    return isotropy(originals, versions, generator(seed, "isotropy"))


async def _embedded(
    texts: Sequence[str],
    perturbed: Sequence[Sequence[str]],
    backends: Backends,
    cache: Path | None,
) -> tuple[Vectors, Vectors]:
    originals: list[Vectors] = []
    versions: list[Vectors] = []
    with ExitStack() as stack:
        shared = open_cache(cache) if cache else None
        if shared:
            stack.callback(shared.close, alone=False)
        gatherers = Gatherers(backends, Asking(None, shared))
        models = SampleModels(gatherers)
        try:
            for start in range(0, len(texts), TOGETHER):
                block = slice(start, start + TOGETHER)
                work = (
                    asyncio.gather(*map(models.embed, [text, *others]))
                    for text, others in zip(texts[block], perturbed[block], strict=True)
                )
                for vectors in await asyncio.gather(*work):
                    originals.append(vectors[0])
                    versions.append(np.stack(vectors[1:]))
        finally:
            await gatherers.close()
    return np.stack(originals), np.stack(versions)
