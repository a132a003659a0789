"""The keys: those of the seed, those of every mode, and their explanations."""

from __future__ import annotations

import pytest

from tests.metrics.grounding.helpers import Knows, docs, item, run_of, values_of
from trustassay.metrics import Grounding
from trustassay.metrics.grounding.summary import FIGURES, FIRST_NAMES

SEED_KEYS = """
num_samples answered_ratio answered_num answerable_num overlapped_num regular_length answered_length
reject_rec reject_prec reject_f1 answerable_rec answerable_prec answerable_f1 macro_avg macro_f1
regular_claims_nli answered_claims_nli calib_answered_claims_nli calib_answerable_claims_nli
calib_claims_nli_f1 parametric_answered_claims_nli
regular_citation_rec regular_citation_prec regular_citation_f1
answered_citation_rec answered_citation_prec answered_citation_f1 trust_score
""".split()
"""What the usage example of trust_eval's LlamaIndex integration prints."""

MODES = ["em", "em5", "cm", "none"]
WHOLE = item("A is, b [1].", docs(1, [1]), answers=["A"])


def test_every_key_of_the_seed_is_in_a_claims_run_and_has_a_value() -> None:
    assert len(SEED_KEYS) == 28
    values = values_of(WHOLE, Knows(), correctness="cm")
    assert [key for key in SEED_KEYS if values.get(key) is None] == []


@pytest.mark.parametrize("profile", ["default", "paper"])
@pytest.mark.parametrize("mode", MODES)
def test_every_key_of_a_summary_is_explained(mode: str, profile: str) -> None:
    run = run_of(WHOLE, Knows(), correctness=mode, profile=profile, splitter="lines")
    summary = run.summaries["grounding"]
    assert set(summary.values) <= set(FIGURES)
    assert set(summary.support) == set(summary.values)
    assert set(summary.intervals) <= set(summary.values)
    assert set(summary.without_interval) <= set(summary.values) - set(summary.intervals)
    assert set(summary.not_applicable) == {k for k, v in summary.values.items() if v is None}


def test_every_explained_key_occurs_in_some_mode() -> None:
    seen = {key for mode in MODES for key in values_of(WHOLE, Knows(), correctness=mode)}
    assert seen == set(FIGURES)


@pytest.mark.parametrize("mode", MODES)
def test_the_first_figure_is_the_trust_score(mode: str) -> None:
    values = values_of(WHOLE, Knows(), correctness=mode)
    assert next(iter(values)) == "trust_score"
    assert (values["trust_score"] is None) == (mode == "none")


def test_figures_are_whole() -> None:
    for key, figure in FIGURES.items():
        assert figure.key == key
        assert figure.explanation.endswith(".")
        assert figure.group
        assert figure.unit in ("%", "", "words")
    assert Grounding.figures is FIGURES
    assert {figure.key for figure in FIGURES.values() if figure.headline} >= {"trust_score"}


def test_both_names_of_the_refusal_figures_say_the_same() -> None:
    """Refused and answerable, refused and not, answered: reject 1/1, 1/2, F1 2/3."""
    items = [
        item("I don't know.", docs(1, [1]), answers=["A"]),
        item("I do not know.", docs(1, [0]), answers=["A"]),
        item("A is [1].", docs(1, [1]), answers=["A"]),
    ] * 10
    summary = run_of(items, Knows()).summaries["grounding"]
    assert summary.values["reject_rec"] == 100
    assert summary.values["reject_prec"] == 50
    assert summary.values["reject_f1"] == pytest.approx(200 / 3)
    assert set(FIRST_NAMES.values()) == {"reject_rec", "reject_prec", "reject_f1"}
    for later, first in FIRST_NAMES.items():
        assert summary.values[later] == summary.values[first]
        assert summary.intervals[later] == summary.intervals[first]
        assert summary.support[later] == summary.support[first]
