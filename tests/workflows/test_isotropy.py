"""Isotropy through the engine: the right texts embedded, whatever the number of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import jsonl
from trustassay.calls.backends import Backends
from trustassay.capabilities import Vectors
from trustassay.data.reading import InputError
from trustassay.metrics.harmonicity.isotropy import versions
from trustassay.metrics.harmonicity.perturbations import family
from trustassay.runs.intake import BadInputError
from trustassay.sample import Sample
from trustassay.workflows.isotropy import TOGETHER, measure_isotropy, sound_samples


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


def test_every_text_and_version_is_embedded() -> None:
    made = versions(samples(TOGETHER + 3), family("control"), 4, seed=0)
    embedder = Characters()
    found = measure_isotropy(made.texts, made.perturbed, Backends.of(embed=embedder))
    assert set(embedder.seen) == {*made.texts, *(text for row in made.perturbed for text in row)}
    assert (found.texts, found.perturbations, found.width) == (TOGETHER + 3, 4, 32)
    assert found.unchanged.value == 0
    assert found.shape
    assert 0 < found.cone.value < found.angle.value


def test_an_embedder_that_does_not_see_the_characters() -> None:
    made = versions(samples(5), family("control"), 3, seed=0)
    found = measure_isotropy(made.texts, made.perturbed, Backends.of(embed=Deaf()))
    assert found.unchanged.value == 1
    assert found.shape is None


def test_versions_are_seeded_by_sample_and_equal_questions_count_once() -> None:
    twice = [*samples(3), *samples(4)]
    made = versions(twice, family("typo"), 2, seed=1)
    assert len(made.texts) == 4
    assert made == versions(samples(4), family("typo"), 2, seed=1)
    assert made != versions(samples(4), family("typo"), 2, seed=2)


def test_texts_that_cannot_be_perturbed_are_counted() -> None:
    found = [Sample.parse({"id": "a", "question": "2+2?"}), *samples(1)]
    made = versions(found, family("typo"), 2, seed=0)
    assert (made.left_out, made.texts) == (1, ["What is number 0?"])
    with pytest.raises(ValueError, match="no text can be perturbed"):
        measure_isotropy([], [], Backends.of(embed=Characters()))


def test_the_input_is_read_as_far_as_needed(tmp_path: Path) -> None:
    rows: list[Any] = [{"question": f"q {i}"} for i in range(5)] + [{"question": 3}]
    path = jsonl(tmp_path / "in.jsonl", rows)
    assert [s.question for s in sound_samples(path, limit=3)] == ["q 0", "q 1", "q 2"]
    with pytest.raises(BadInputError):
        sound_samples(path)
    assert len(sound_samples(path, skip_bad=True)) == 5
    with pytest.raises(InputError, match="no usable sample"):
        sound_samples(jsonl(tmp_path / "bad.jsonl", rows[-1:]), skip_bad=True)
