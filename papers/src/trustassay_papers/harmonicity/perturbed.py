"""Perturbed texts and their vectors: what the check of isotropy measures."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import cast

import numpy as np
from numpy.typing import NDArray

from trustassay.calls.backends import Backends
from trustassay.calls.client import CallOptions, SampleModels, open_calls
from trustassay.capabilities import Models
from trustassay.data.reading import read_samples
from trustassay.data.records import Fault, InputError
from trustassay.errors import UsageError
from trustassay.event_loop import run_anywhere
from trustassay.metrics.harmonicity.perturbations import (
    LAST_CONTROL,
    MOST,
    Family,
    NoPerturbationError,
    check_reach,
    family,
    perturb,
)
from trustassay.runs.intake import BadInputError, Intake, Source
from trustassay.sample import Sample
from trustassay.statistics.resampling import generator
from trustassay_papers.harmonicity.isotropy import Isotropy, isotropy

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


def families(names: Iterable[str], length: int = MOST, last: int = LAST_CONTROL) -> list[Family]:
    """Return several families by name; ``last`` is for ``codes``, which must be among them then."""
    names = list(names)
    if "codes" not in names:
        check_reach(", ".join(names), MOST, last)
    return [family(name, length, last if name == "codes" else LAST_CONTROL) for name in names]


@dataclass(frozen=True, slots=True)
class Versions:
    """Texts, as many perturbed versions of each, and how many texts could not be perturbed."""

    texts: list[str]
    perturbed: list[list[str]]
    left_out: int


def versions(samples: Iterable[Sample], family: Family, n: int, seed: int) -> Versions:
    """Return n perturbed versions of each question; equal questions count once.

    They are those that the metric ``harmonicity`` would ask first, with the same seed.
    """
    texts: dict[str, list[str]] = {}
    left_out = 0
    for sample in samples:
        if sample.question in texts:
            continue
        rng = generator(seed, sample.id, "perturbation")
        try:
            texts[sample.question] = [perturb(sample.question, family, rng) for _ in range(n)]
        except NoPerturbationError:
            left_out += 1
    return Versions(list(texts), list(texts.values()), left_out)
