"""Outcomes of a run counted sample by sample, and answers that are copies."""

from __future__ import annotations

from typing import Any

import pytest

from trustassay.core.metric import Assessment
from trustassay.core.outcome import FAILED, NOT_SCORED, SCORED, Outcome
from trustassay.metrics import Faithfulness
from trustassay.runs.counts import determine_outcome, is_copy_of_passage

PASSAGE = "The museum in Bern opened in 1902 and is closed on Mondays in winter."


@pytest.mark.parametrize(
    ("response", "is_copy"),
    [
        (PASSAGE, True),
        (PASSAGE[:50].rpartition(" ")[0], True),  # more than half of it
        ("The museum in Bern opened", False),  # less than half
        ("The museum in Bern opened in 1902, and it is closed on Mondays.", False),
        ("1902", False),
    ],
)
def test_a_copy_is_at_least_half_of_a_passage_word_for_word(response: str, is_copy: bool) -> None:
    spaced = {"text": PASSAGE.replace(" ", "\n  ")}
    lists: list[list[dict[str, Any]]] = [
        [{"text": PASSAGE}],
        [{"text": "Other."}, spaced],
        [{"text": None}, spaced],
    ]
    for documents in lists:
        assert is_copy_of_passage(response, documents) == is_copy
    assert not is_copy_of_passage(response, [{"text": PASSAGE + " More." * 60}])


def test_a_metric_that_fails_to_say_what_became_of_an_answer_hides_nothing() -> None:
    class Broken(Faithfulness):
        def outcome(self, assessment: Assessment) -> Outcome:
            raise RuntimeError("no")

    class Odd(Faithfulness):
        def outcome(self, assessment: Assessment) -> Outcome:
            return Outcome(SCORED)  # it draws a line

    scored = Assessment("1", "faithfulness", 1.0, verdict="supported")
    assert (
        determine_outcome(Broken(), scored).kind == determine_outcome(Odd(), scored).kind == FAILED
    )


@pytest.mark.parametrize(
    ("assessment", "expected"),
    [
        (Assessment("1", "gone", 0.3, verdict="any"), Outcome(SCORED)),
        (Assessment("1", "gone", None, verdict="refused"), Outcome(NOT_SCORED, "refused")),
        (Assessment.for_failure("1", "gone", "no reply"), Outcome(NOT_SCORED, "error")),
    ],
)
def test_of_a_metric_that_is_not_installed_it_is_known_what_was_scored(
    assessment: Assessment, expected: Any
) -> None:
    assert determine_outcome(None, assessment) == expected
