"""``trustassay entailers``, as a user meets it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Cli
from trustassay.core.capabilities import Probabilities
from trustassay.errors import BackendError
from trustassay.input.labelled_pairs import LabelledPair, read_pairs
from trustassay.people.entailers import PassedCounts, measure_entailers

PASSAGE = "The harbour bridge was opened by the queen in 1932."
ROWS = [
    {"kind": "copy", "premise": PASSAGE, "hypothesis": PASSAGE, "label": "entailment"},
    {"kind": "copy", "premise": PASSAGE, "hypothesis": "Bread is baked.", "label": "neutral"},
    {"kind": "years\x1b[31m", "premise": PASSAGE, "hypothesis": PASSAGE, "label": "supported"},
    {
        "kind": "years\x1b[31m",
        "premise": PASSAGE,
        "hypothesis": "Cows eat.",
        "label": "contradicted",
    },
]


def test_tables_and_json(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    said = cli("entailers", "p.jsonl", "--entailer", "lexical", "--json")
    assert said.status == 0
    (found,) = json.loads(said.out)["entailers"]
    assert found["name"] == "lexical"
    assert found["auc"]["value"] == found["balanced_accuracy"]["value"] == 1
    assert found["passed"] == {
        "supported": 2, "supported_passed": 2, "other": 2, "other_passed": 0,
    }  # fmt: skip
    assert "4 pairs, 2 of them supported" in said.err
    assert "1.00 / 0.00" in said.err
    assert "\x1b" not in said.err


def test_a_label_that_is_none_ends_with_status_2(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text(json.dumps(ROWS[0] | {"label": "maybe"}) + "\n")
    said = cli("entailers", "p.jsonl", "--entailer", "lexical")
    assert said.status == 2
    assert "got 'maybe'" in said.err
    assert cli("entailers", "missing.jsonl").status == 2


def test_no_entailer_is_loaded_before_all_are_checked(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "p.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    loaded: list[str] = []
    monkeypatch.setattr("trustassay.backends.resolve.entailer", loaded.append)
    choices = ("lexical", "gguf:none.gguf", "hf:./none")
    result = cli("entailers", "p.jsonl", *(part for uri in choices for part in ("--entailer", uri)))
    assert result.status == 2
    assert "gguf:none.gguf" in result.err
    assert "hf:./none" in result.err
    assert loaded == []


class Fixed:
    """Gives the number in the hypothesis; fails on those that have none."""

    name = "fixed"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        try:
            return np.array([[float(h), 1 - float(h), 0] for _, h in pairs])
        except ValueError:
            raise BackendError("no number in it") from None


def test_figures_by_hand_and_failures_left_out() -> None:
    rows = [("0.9", True, "a"), ("0.4", True, "b"), ("0.6", False, "a"), ("0.1", False, "b")]
    pairs = [LabelledPair("p", h, s, k) for h, s, k in [*rows, ("none", True, "b")]]
    (found,) = measure_entailers(pairs, {"x": Fixed()})
    assert (found.n, found.failed, found.reason) == (5, 1, "no number in it")
    assert found.auc.value == 0.75  # 0.9 above both, 0.4 above one
    assert found.balanced_accuracy.value == 0.5
    assert found.calibration_error.value == pytest.approx((0.1 + 0.6 + 0.6 + 0.1) / 4)
    assert found.kinds == {"a": PassedCounts(1, 1, 1, 1), "b": PassedCounts(1, 0, 1, 0)}
    again = measure_entailers(pairs, {"x": Fixed()})[0]
    assert again.auc == found.auc
    with pytest.raises(BackendError, match="x failed on all 1 pairs; the first failure: no number"):
        measure_entailers(pairs[-1:], {"x": Fixed()})


class Written:
    """Gives the three numbers that the hypothesis is."""

    name = "written"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        return np.array([[float(number) for number in h.split()] for _, h in pairs])


def test_contradicted_against_not_stated_by_hand(cli: Cli, tmp_path: Path) -> None:
    """Of what is not entailed .8 and .25 speak against the contradicted, .4 and .3 the others."""
    rows = [
        {"premise": "p", "hypothesis": text, "label": label}
        for text, label in [
            ("0.9 0.05 0.05", "supported"),
            ("0.5 0.1 0.4", "contradicted"),
            ("0.2 0.6 0.2", "Refuted"),
            ("0.5 0.3 0.2", "not stated"),
            ("0 0.7 0.3", "neutral"),
            ("0 0.1 0.9", "not_supported"),
        ]
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    told = measure_entailers(read_pairs(path), {"x": Written()})[0].contradictions
    assert told is not None
    assert (told.contradicted, told.not_stated) == (2, 2)
    assert told.auc.value == 0.5  # .8 above both, .25 below both
    assert told.calibration_error.value == pytest.approx(
        (0.05 + 0.6 + abs(0.2 - 1 + 0.2) + 0.3) / 5
    )
    assert (told.passed, told.other_passed) == (0, 0)
    assert "contradicted versus not stated" in cli("entailers", path, "--entailer", "lexical").err
    path.write_text("\n".join(map(json.dumps, rows[:3])))
    assert measure_entailers(read_pairs(path), {"x": Written()})[0].contradictions is None
