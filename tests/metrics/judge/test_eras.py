"""The worked example of WillowTree's second article on benchmarking, with answers of our own.

The article prints what 30 repeats on 21 modified answers came to. The scripted judge votes so that
the same comes out, if everything is computed as the article says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.metrics.judge.eras import scripted_judge
from trustassay import Run, score
from trustassay.input.ratings import read_ratings
from trustassay.metrics import Judge
from trustassay.papers.reproduce.truthfulness import BUNDLED_ANSWERS
from trustassay.people.variance import decompose_variances
from trustassay.people.votes import join_ratings, read_votes
from trustassay.report.notebook import headline_rows

ERAS = Path(scripted_judge.__file__).parent


def scripted() -> Any:
    # A function of its own: a run's judge is named after the function.
    def judge(request: Any) -> str:
        return scripted_judge.rate(request)

    return judge


def judged(path: Path, **options: Any) -> Run:
    return score(path, metrics=Judge(**options), judge=scripted(), cache=None)


@pytest.mark.parametrize(
    ("rubric", "counts", "deviation", "without"),
    [("truthfulness", (16, 1, 4), 0.06, 19), ("informativeness", (17, 1, 3), 0.16, 16)],
)
def test_the_figures_of_the_article(
    rubric: str, counts: tuple[int, int, int], deviation: float, without: int
) -> None:
    run = judged(BUNDLED_ANSWERS, rubric=rubric, repeats=30, aggregate="majority")
    values = run.summary["judge"]
    assert (values["matched"], values["higher"], values["lower"]) == counts
    assert round(float(values["sd"] or 0), 2) == deviation
    assert values["without_variance"] == without
    assert (values["votes"], values["unreadable"], run.summaries["judge"].n) == (630, 0, 21)
    assert 0.8 < float(values["kappa"] or 0) < 1
    # What the terminal prints.
    rows = headline_rows(run.summaries["judge"], Judge(rubric=rubric).figures)
    printed = {key: value for key, value, *_ in rows}
    assert tuple(int(printed[key]) for key in ("matched", "higher", "lower")) == counts


def test_both_graphs_are_drawn(tmp_path: Path) -> None:
    options = {"judge": scripted(), "cache": None, "out": tmp_path / "run"}
    score(BUNDLED_ANSWERS, metrics=Judge(repeats=3), **options)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    expected, votes = page.split('<svg class="ratings votes"')[1:]
    expected, votes = (part.split("</svg>")[0] for part in (expected, votes))
    assert expected.count('class="ring"') == expected.count('class="vote"') == 21
    assert "<title>two-of-three: expected 3, judged 2</title>" in expected
    assert votes.count('class="vote"') >= 21
    assert "<title>complete: 3 × 5</title>" in votes


def test_the_answer_that_the_article_discusses_is_judged_one_lower() -> None:
    run = judged(BUNDLED_ANSWERS, rubric="truthfulness")
    (found,) = (one for one in run.assessments if one.id == "two-of-three")
    assert found.score == 2
    assert run.summary["judge"]["expected 3, judged 2"] == 3


def test_a_fragment_passes_the_verdict_and_gets_2_on_the_scale() -> None:
    (verdict,) = judged(ERAS / "fragment.jsonl", rubric="verdict").assessments
    (scale,) = judged(ERAS / "fragment.jsonl", rubric="truthfulness").assessments
    assert (verdict.verdict, scale.score, scale.verdict) == ("passes", 2, "fails")


@pytest.mark.slow
def test_a_judge_of_known_scatter_varies_less_than_people(tmp_path: Path) -> None:
    metric = Judge(repeats=30, aggregate="majority")
    options: dict[str, Any] = {
        "judge": {"scripted_judge:rate": scripted()},
        "cache": None,
        "out": tmp_path / "eras",
    }
    votes = read_votes(score(BUNDLED_ANSWERS, metrics=metric, **options).path)
    assert votes
    both = join_ratings(read_ratings(ERAS / "ratings.csv"), votes)
    found = decompose_variances(both.ratings, {"scripted_judge:rate"})
    assert "judges vary less than people" in found.in_words()
    spreads = {
        (name, one.name): round(one.sd, 3)
        for name, group in found.groups.items()
        for one in group.components
    }
    assert spreads[("people", "repeat")] == 0.457
    assert spreads[("judges", "repeat")] == 0.188
