"""Isotropy through the engine: the right texts embedded, whatever the number of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import jsonl
from trustassay.calls.backends import Backends
from trustassay.core.capabilities import Vectors
from trustassay.core.sample import Sample
from trustassay.input.records import InputError
from trustassay.metrics.harmonicity.perturbations import find_family
from trustassay.papers.harmonicity.isotropy import Isotropy
from trustassay.papers.harmonicity.perturbed import (
    TEXTS_PER_BATCH,
    PerturbedVersions,
    draw_samples,
    measure_isotropy,
    perturb_samples,
    resolve_families,
)
from trustassay.runs.intake import BadInputError


class Characters:
    """An embedder that sees every character: a text's vector is the sum of its characters'."""

    name = "characters"

    def __init__(self) -> None:
        self.table = np.random.default_rng(0).normal(size=(256, 32)).astype(np.float32)
        self.seen: list[str] = []

    def vectors(self, texts: Sequence[str]) -> Vectors:
        self.seen += texts
        found = np.stack([self.table[[ord(c) % 256 for c in t]].sum(axis=0) for t in texts])
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)


class Deaf(Characters):
    """An embedder that drops control characters."""

    def vectors(self, texts: Sequence[str]) -> Vectors:
        return super().vectors(["".join(c for c in text if c >= " ") for text in texts])


def samples(n: int) -> list[Sample]:
    return [Sample.parse({"id": f"q{i}", "question": f"What is number {i}?"}) for i in range(n)]


def measured(*made: PerturbedVersions, embedder: Characters) -> list[Isotropy]:
    return measure_isotropy(
        [(one.texts, one.perturbed) for one in made], Backends.of(embed=embedder)
    )


def test_every_text_and_version_is_embedded() -> None:
    made = perturb_samples(samples(TEXTS_PER_BATCH // 4), find_family("control"), 4, seed=0)
    embedder = Characters()
    (found,) = measured(made, embedder=embedder)
    assert set(embedder.seen) == {*made.texts, *(text for row in made.perturbed for text in row)}
    assert len(embedder.seen) > TEXTS_PER_BATCH
    assert (found.texts, found.perturbations, found.width) == (TEXTS_PER_BATCH // 4, 4, 32)
    assert found.unchanged.value == 0
    assert found.shape
    assert 0 < found.cone.value < found.angle.value


def test_several_perturbations_embed_each_text_once_and_are_as_each_alone() -> None:
    made = [
        perturb_samples(samples(5), find_family(name), 3, seed=0) for name in ("control", "typo")
    ]
    embedder = Characters()
    found = measured(*made, embedder=embedder)
    assert len(embedder.seen) == len(set(embedder.seen))
    alone = [measured(one, embedder=Characters())[0] for one in made]
    assert [one.angle for one in found] == [one.angle for one in alone]
    assert [one.cosines for one in found] == [one.cosines for one in alone]


def test_an_embedder_that_does_not_see_the_characters() -> None:
    made = perturb_samples(samples(5), find_family("control"), 3, seed=0)
    (found,) = measured(made, embedder=Deaf())
    assert found.unchanged.value == 1
    assert found.shape is None
    assert found.cosines.mean.value == found.cosines.of_mean.value == 1


def test_versions_are_seeded_by_sample_and_equal_questions_count_once() -> None:
    twice = [*samples(3), *samples(4)]
    made = perturb_samples(twice, find_family("typo"), 2, seed=1)
    assert len(made.texts) == 4
    assert made == perturb_samples(samples(4), find_family("typo"), 2, seed=1)
    assert made != perturb_samples(samples(4), find_family("typo"), 2, seed=2)


def test_texts_that_cannot_be_perturbed_are_counted() -> None:
    found = [Sample.parse({"id": "a", "question": "2+2?"}), *samples(1)]
    made = perturb_samples(found, find_family("typo"), 2, seed=0)
    assert (made.left_out, made.texts) == (1, ["What is number 0?"])
    with pytest.raises(ValueError, match="cannot be applied to any text"):
        measure_isotropy([([], [])], Backends.of(embed=Characters()))


@pytest.mark.slow
def test_questions_are_drawn_at_random_with_a_seed(tmp_path: Path) -> None:
    rows = [{"question": f"q {i // 2}"} for i in range(400)]  # each twice
    path = jsonl(tmp_path / "in.jsonl", rows)

    def drawn(n: int, seed: int = 0, limit: int | None = None) -> list[int]:
        return [int(s.question[2:]) for s in draw_samples(path, n, seed=seed, limit=limit)]

    first = drawn(20)
    assert first == sorted(set(first))
    assert len(first) == 20
    assert first == drawn(20)
    assert first != drawn(20, seed=1) != list(range(20))
    assert max(drawn(20, limit=60)) < 30
    assert drawn(500) == list(range(200))
    counts = np.bincount([i for seed in range(200) for i in drawn(20, seed)], minlength=200)
    # Binomial with 200 draws of 1 in 10: 20 on average, deviation 4.2; early and late ones alike.
    assert 5 <= counts.min() <= counts.max() <= 40
    assert abs(counts[:100].mean() - 20) < 1


def test_faulty_records_are_told_or_left_out(tmp_path: Path) -> None:
    rows: list[Any] = [{"question": f"q {i}"} for i in range(5)] + [{"question": 3}]
    path = jsonl(tmp_path / "in.jsonl", rows)
    assert len(draw_samples(path, 3, limit=5)) == 3
    with pytest.raises(BadInputError):
        draw_samples(path, 3)
    assert len(draw_samples(path, 9, skip_bad=True)) == 5
    with pytest.raises(InputError, match="no usable sample"):
        draw_samples(jsonl(tmp_path / "bad.jsonl", rows[-1:]), 3, skip_bad=True)


def test_a_range_is_for_codes_among_several_families() -> None:
    first, second = resolve_families(["typo", "codes"], last=200)
    assert (first.name, second.name) == ("typo", "codes")
    with pytest.raises(ValueError, match="range: applies to the perturbation codes, not to typo"):
        resolve_families(["typo", "unicode"], last=200)
