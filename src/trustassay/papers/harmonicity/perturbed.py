"""Draw texts, perturb them, and measure how their vectors move: the check of isotropy."""

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
from trustassay.core.capabilities import Models
from trustassay.core.event_loop import run_anywhere
from trustassay.core.sample import Sample
from trustassay.errors import UsageError
from trustassay.input.reading import read_samples
from trustassay.input.records import FieldNames, InputError, InputFault
from trustassay.metrics.harmonicity.perturbations import (
    LAST_CONTROL,
    MAX_CHANGES,
    Family,
    NoPerturbationError,
    check_reach,
    find_family,
    perturb,
)
from trustassay.papers.harmonicity.isotropy import Isotropy, isotropy
from trustassay.runs.intake import BadInputError, Intake, Source
from trustassay.statistics.resampling import generator

Vectors = NDArray[np.float32]

NO_CACHE = CallOptions(cache=None)
TEXTS_PER_BATCH = 1024
"""Texts whose vectors are requested together."""


def draw_samples(
    source: Source,
    n: int,
    *,
    seed: int = 0,
    fields: FieldNames | None = None,
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
    intake = Intake()
    rng = generator(seed, "isotropy", "texts")
    digests: set[bytes] = set()
    reservoir: list[tuple[int, Sample]] = []
    for record in islice(read_samples(source, fields=fields or {}), limit):
        if isinstance(record, InputFault):
            intake.note(record)
            continue
        text = record.sample.question.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(text, digest_size=16).digest()
        # Only digests are kept, so that an input of any size fits in memory.
        if digest in digests:
            continue
        # The i-th question takes a slot with probability n/i (Algorithm R, Vitter 1985).
        digests.add(digest)
        if len(reservoir) < n:
            reservoir.append((len(digests), record.sample))
        elif (slot := int(rng.integers(len(digests)))) < n:
            reservoir[slot] = len(digests), record.sample
    # After the whole input, so that all faults are listed.
    if intake.faulty and not skip_bad:
        raise BadInputError(intake.faults, intake.faulty)
    if not reservoir:
        raise InputError("no usable sample in the input")
    # Slots are filled at random; the result is in the order of the input.
    return [sample for _, sample in sorted(reservoir, key=itemgetter(0))]


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
    # The original of several perturbations is embedded once.
    all_texts = dict.fromkeys(
        text
        for texts, perturbed in versions
        for original, variants in zip(texts, perturbed, strict=True)
        for text in (original, *variants)
    )
    vectors = run_anywhere(lambda: embed_in_batches(list(all_texts), backends, options))
    return [
        isotropy(
            np.stack([vectors[text] for text in texts]),
            np.stack([[vectors[text] for text in variants] for variants in perturbed]),
            generator(seed, "isotropy"),
        )
        for texts, perturbed in versions
    ]


async def embed_in_batches(
    texts: Sequence[str], backends: Backends, options: CallOptions
) -> dict[str, Vectors]:
    """Return the vector of each text."""
    vector_of_text: dict[str, Vectors] = {}
    async with open_calls(backends, options) as client:
        models = cast(Models, SampleModels(client))
        for start in range(0, len(texts), TEXTS_PER_BATCH):
            batch = texts[start : start + TEXTS_PER_BATCH]
            vectors = await asyncio.gather(*map(models.embed, batch))
            vector_of_text.update(zip(batch, vectors, strict=True))
    return vector_of_text


def resolve_families(
    names: Iterable[str], length: int = MAX_CHANGES, last: int = LAST_CONTROL
) -> list[Family]:
    """Return families by name; ``last`` is the range of ``codes``, and an error without it."""
    names = list(names)
    if "codes" not in names:
        # Raises if a range is given that no family uses.
        check_reach(", ".join(names), MAX_CHANGES, last)
    return [find_family(name, length, last if name == "codes" else LAST_CONTROL) for name in names]


@dataclass(frozen=True, slots=True)
class PerturbedVersions:
    """Texts and their perturbed versions."""

    texts: list[str]
    perturbed: list[list[str]]
    """The versions of each text, equally many."""
    left_out: int
    """How many texts could not be perturbed."""


def perturb_samples(
    samples: Iterable[Sample], family: Family, n: int, seed: int
) -> PerturbedVersions:
    """Return n perturbed versions of each question; equal questions count once.

    They are the first ones that the metric ``harmonicity`` asks with the same seed.
    """
    texts: dict[str, list[str]] = {}
    left_out = 0
    for sample in samples:
        if sample.question in texts:
            continue
        # As in the metric, by the id of the sample: the versions do not depend on the others.
        rng = generator(seed, sample.id, "perturbation")
        try:
            texts[sample.question] = [perturb(sample.question, family, rng) for _ in range(n)]
        # As a synonym for a question without a known word.
        except NoPerturbationError:
            left_out += 1
    return PerturbedVersions(list(texts), list(texts.values()), left_out)
