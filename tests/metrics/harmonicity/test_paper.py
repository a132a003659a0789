"""The examples that the paper prints (Kersting et al. 2024, Tables 1-4), as recorded resamples."""

from __future__ import annotations

import pytest

from trustassay import Run, score

TABLES = [
    {"id": "1", "question": "What is 2+2?", "response": "4", "resamples": ["4"] * 10},
    {
        "id": "2",
        "question": "what religion is mary queen of scots?",
        "response": "Mary Queen of Scots was a Roman Catholic.",
        "resamples": [
            *["Mary Queen of Scots was Roman Catholic."] * 4,
            "Mary Queen of Scots was a Roman Catholic.",
            *["Mary Queen of Scots was Roman Catholic."] * 5,
        ],
    },
    {
        "id": "3",
        "question": "Solve for $x=1/(7*1/(7*1/(7*...)))$ ",
        "response": r"... $x = \sqrt{1/7}$ ",
        "resamples": [
            r"... $x = (1 + \sqrt{197}) / 14$ ",
            "... $x = 1/7$ ",
            r"... $x = \sqrt{1/7}$ ",
            "... $x = 1/6$ ",
            r"... $x = \sqrt{8/7}$ ",
            r"... $x = \sqrt{1/7}$ and $x = -\sqrt{1/7}$ ",
            r"... $x \approx 1.1478$ ",
            *["... $x = 1/6$ "] * 3,
        ],
    },
    {
        "id": "4",
        "question": "what is martin cooper doing now",
        "response": "As of my knowledge, ... information.",
        "resamples": [
            "Martin Cooper is currently ... world.",
            "Martin Cooper is currently ... technology.",
            "Martin Cooper is currently ... world.",
            "Martin Cooper is currently ... technology.",
            "Martin Cooper is currently ... events.",
            "Martin Cooper is currently ... experiences.",
            "As of my knowledge, ... sources.",
            "As of my knowledge, ... sources.",
            "As of my knowledge, ... information.",
            "Martin Cooper is currently ... events.",
        ],
    },
]
"""Tables 3 and 4 leave parts of the answers out ("..."), and so do we."""


@pytest.fixture(scope="module")
def run() -> Run:
    return score(TABLES, metrics=["harmonicity", "semantic_harmonicity"])


def test_gamma_of_the_tables(run: Run) -> None:
    gammas = [a.score for a in run.assessments if a.metric == "harmonicity"]
    # ada-002 gave the paper 0, 0.044, 0.151 and 0.268: the scale belongs to the embedder.
    assert gammas[0] == 0.0
    assert gammas == pytest.approx([0, 0.117, 0.438, 0.899], abs=0.01)


def test_meaning_tells_the_rephrased_answer_from_the_changed_ones(run: Run) -> None:
    divergences = [a.score for a in run.assessments if a.metric == "semantic_harmonicity"]
    assert divergences[0] == 0.0
    assert divergences[1] is not None
    assert divergences[1] < 0.1
    assert all(d is not None and d > 0.5 for d in divergences[2:])
