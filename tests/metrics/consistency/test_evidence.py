"""Evidence of consistency in the report: what was offered and taken, anything survived."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.consistency.helpers import RIGHT, Asked, Chooser, sample
from tests.report.conftest import HOSTILE
from trustassay import score
from trustassay.core.metric import Assessment
from trustassay.metrics import Consistency
from trustassay.metrics.consistency.checks import ChoiceEvidence

ROW: dict[str, Any] = {
    "options": [
        {"text": "It stands in the blue house.", "source": "pos", "level": 2},
        {"text": "It stands in the red house."},
        {"text": "It stands in the old house.", "source": "pos", "level": 2},
        {"text": "It stands in the new house.", "source": "date", "level": 2},
    ],
    "right": "B",
    "chosen": "B",
    "way": "letter",
    "reply": "B",
}


def test_options_tell_where_they_differ_from_the_answer() -> None:
    found = ChoiceEvidence.read([ROW])
    (one,) = found.choices
    assert [option.letter for option in one.option_views] == [*"ABCDE"]
    assert [option.right for option in one.option_views] == [False, True, False, False, False]
    assert [piece.text for piece in one.option_views[0].pieces if piece.kind == "new"] == ["blue"]
    assert [option.source for option in one.option_views] == ["pos", "", "pos", "date", ""]
    assert (one.mark.tone, one.reply, found.first) == ("good", "B", None)
    assert one.to_json() == ROW


def test_the_first_inconsistent_choice_is_marked() -> None:
    rows = [ROW | {"chosen": letter} for letter in ("B", None, "E", "A")]
    found = ChoiceEvidence.read(rows)
    assert [one.mark.tone for one in found.choices] == ["good", "none", "bad", "bad"]
    assert found.first == 2
    assert ChoiceEvidence.read(rows, unparsed_counts=True).first == 1


anything = st.sampled_from(
    [
        None,
        True,
        7,
        0.5,
        float("nan"),
        "",
        "A",
        "E",
        "Z",
        [],
        [None, 1],
        {},
        {"text": 7},
        {"text": "a"},
    ]
)


@given(
    st.lists(
        anything
        | st.fixed_dictionaries(
            {"options": st.lists(anything, max_size=7) | anything, "right": anything},
            optional=dict.fromkeys(("chosen", "reply", "first_reply", "probabilities"), anything),
        ),
        max_size=3,
    )
)
def test_any_evidence_is_read(evidence: list[Any]) -> None:
    found = ChoiceEvidence.read(evidence)
    assert len(found.choices) + len(found.other_items) == len(evidence)
    assert all(len(one.option_views) <= 5 for one in found.choices)


@pytest.mark.parametrize(
    ("assessment", "words"),
    [
        (("inconsistent", 0.0), "the model does not choose its own answer when others are offered"),
        (("consistent", 1.0), None),
        ((None, None), "whether the model chooses its own answer again could not be assessed"),
    ],
)
def test_what_is_wrong_is_one_plain_sentence(assessment: Any, words: str | None) -> None:
    verdict, number = assessment
    found = Assessment("q", "consistency", number, verdict=verdict)
    assert Consistency().problem(found) == words


def test_the_report_draws_each_choice_and_nothing_runs(tmp_path: Path) -> None:
    def choose(asked: Asked) -> str:
        if asked.number == 2:
            return HOSTILE[0]
        return HOSTILE[0] + " B" if asked.number == 3 else asked.right

    rows = [
        sample(0),
        sample(1, wrong_answers=[*HOSTILE, RIGHT], response=HOSTILE[1], question=HOSTILE[2]),
        sample(2, distractors=2),
    ]
    model = Chooser(lambda asked: choose(asked) if RIGHT in asked.options else "E")
    run = score(
        rows, metrics=Consistency(sources="given", stop=False), model=model, out=tmp_path / "run"
    )
    assert [a.error for a in run.assessments] == [None] * 3
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert page.count('<ul class="options">') == 20
    assert page.count("first reply, which names no option") == 1
    assert "took none of the above" in page
    assert "the first choice of another option" in page
    assert "2 distractors found; 3 are needed" in page
    assert "<script>window" not in page
    assert "<img src=x" not in page
