"""A real model of this machine, trained by the tests, through both ways of choosing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lazily import needed
from trustassay import score
from trustassay.api import plan
from trustassay.metrics import Consistency

_HF = "needs torch and transformers: pip install '.[hf]'"
torch, _ = needed("torch", _HF), needed("transformers", _HF)

from tests.metrics.consistency.tiny_chooser import TEMPLATE, record, save  # noqa: E402
from tests.tiny_chat import save_llama  # noqa: E402
from trustassay.backends.hf_chat import HuggingFaceChat  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.slow]

ROWS = [record(0), record(1)]


@pytest.fixture(scope="module")
def chooser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HuggingFaceChat]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield HuggingFaceChat(str(save(tmp_path_factory.mktemp("chooser"))))
    torch.set_num_threads(threads)


def metric(folder: Path, **options: Any) -> Consistency:
    (folder / "short.jinja").write_text(TEMPLATE)
    return Consistency(sources="given", prompt=str(folder / "short.jinja"), **options)


@pytest.mark.parametrize("by", ["letter", "likelihood"])
def test_it_keeps_to_what_it_knows_and_to_nothing_else(
    chooser: HuggingFaceChat, tmp_path: Path, by: str
) -> None:
    run = score(ROWS, metrics=metric(tmp_path, by=by), model=chooser, out=tmp_path / "run")
    known, other = run.assessments
    assert (known.error, known.score, known.parts["checks"]) == (None, 1.0, 10)
    assert (other.score, other.parts["checks"], other.parts["none_chosen"]) == (0.0, 1, 1)
    rows = [*known.evidence, *other.evidence]
    assert {row["way"] for row in rows} == {by}
    for row in rows:
        if by == "letter":
            assert row["reply"] == row["chosen"]
        else:  # of the two spellings of each letter the likelier one counts
            assert sum(row["probabilities"]) == pytest.approx(1, abs=1e-3)
            assert max(row["probabilities"]) > 0.5
            assert "ABCDE"[row["probabilities"].index(max(row["probabilities"]))] == row["chosen"]
    asked = {"letter": {"chat": 10}, "likelihood": {"likelihood": 100}}[by]
    assert known.calls == asked
    (part,) = plan(ROWS, metrics=metric(tmp_path, by=by), model=chooser).parts
    assert part.calls == {"letter": 20, "likelihood": 200}[by]


def test_both_ways_offer_the_same_and_choose_the_same(
    chooser: HuggingFaceChat, tmp_path: Path
) -> None:
    ways = [
        score(ROWS, metrics=metric(tmp_path, by=by), model=chooser).assessments
        for by in ("letter", "likelihood", "auto")
    ]
    chosen = [[(r["options"], r["chosen"]) for a in way for r in a.evidence] for way in ways]
    assert chosen[0] == chosen[1] == chosen[2]


def test_a_model_that_cannot_choose_is_not_called_consistent(tmp_path: Path) -> None:
    """Untrained, it writes bytes without sense: unparsed by letter, and arbitrary by likelihood."""
    model = HuggingFaceChat(str(save_llama(tmp_path / "model", positions=4096)))
    short = metric(tmp_path, max_tokens=4)
    (row,) = score(ROWS[:1], metrics=short, model=model).assessments
    assert row.error is None
    assert row.score in (0.0, None)
    whole = Consistency(sources="given", by="likelihood")
    (found,) = score(ROWS[:1], metrics=whole, model=model).assessments
    assert (found.error, found.score, found.parts["unparsed"]) == (None, 0.0, 0)
