"""Votes of runs, and how they join the ratings of people."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.metrics.judge import helpers
from trustassay import score
from trustassay.errors import RunFolderError
from trustassay.input.ratings import Rating, Ratings
from trustassay.metrics import Judge
from trustassay.people.votes import join_ratings, read_votes


def judged(path: Path, rule: Any = helpers.steady, **options: Any) -> Path:
    judges = {name: helpers.Scripted(rule, name) for name in ("one", "two")}
    samples = helpers.answers([5, 4, 2], model="writer")
    return score(samples, metrics=Judge(**options), judge=judges, out=path, cache=None).path


def test_votes_of_a_panel_are_ratings_with_repeats(tmp_path: Path) -> None:
    votes = read_votes(judged(tmp_path / "run", repeats=3, order="both"))
    assert votes is not None
    assert (votes.ordered, votes.categories) == (True, ())
    own = [one for one in votes.ratings if (one.item, one.rater) == ("a1", "two")]
    assert own == [Rating("a1", "two", 4, k, "writer") for k in range(6)]
    assert len(votes.ratings) == 3 * 2 * 6


@pytest.mark.parametrize(
    ("rated", "voted", "joint"),
    [
        (["m"], "m", "m"),
        ([""], "m", ""),
        (["m"], "", "m"),
        (["m", "n"], "", ""),
        (["", "m"], "", ""),
        (["n"], "m", "m"),
    ],
)
def test_an_answer_is_the_same_where_a_side_names_no_model(
    rated: list[str], voted: str, joint: str
) -> None:
    given = Ratings([Rating("a", "anna", 4, model=model) for model in rated])
    both = join_ratings(given, Ratings([Rating("a", "judge", 3, model=voted)]))
    assert [one.model for one in both.ratings] == [*rated, joint]


def test_levels_that_are_words_are_categories(tmp_path: Path) -> None:
    verdict = read_votes(judged(tmp_path / "a", lambda *_: "Verdict: no", rubric="verdict"))
    assert verdict is not None
    assert (verdict.categories, verdict.ordered) == (("no", "yes"), True)
    assert {one.value for one in verdict.ratings} == {0.0}
    kinds = read_votes(judged(tmp_path / "b", lambda *_: "irrelevant", rubric="categories"))
    assert kinds is not None
    assert not kinds.ordered
    assert {kinds.categories[int(one.value)] for one in kinds.ratings} == {"irrelevant"}


def test_a_run_without_votes(tmp_path: Path) -> None:
    samples = helpers.answers([5])
    run = score(samples, metrics="judge:by=entailer", entailer="lexical", out=tmp_path / "run")
    assert read_votes(run.path) is None
    other = score(samples, metrics="reference", out=tmp_path / "other")
    assert read_votes(other.path) is None
    with pytest.raises(RunFolderError, match="holds no run"):
        read_votes(tmp_path)


def test_a_rubric_that_changed_since_is_told(tmp_path: Path) -> None:
    rubric = tmp_path / "tone.yaml"
    text = "name: t\ntask: How?\nshows: [answer]\nlevels:\n  - {word: bad, value: 1, means: b}\n"
    rubric.write_text(text + "  - {word: fine, value: 2, means: f}\n")
    run = judged(tmp_path / "run", lambda *_: "fine", rubric=str(rubric))
    assert read_votes(run) is not None
    rubric.write_text(text + "  - {word: good, value: 2, means: g}\n")
    with pytest.raises(RunFolderError, match="a vote for 'fine', which is not a level of the rubr"):
        read_votes(run)
    rubric.unlink()
    with pytest.raises(RunFolderError, match="the rubric of its judges cannot be read"):
        read_votes(run)


def test_votes_join_ratings_of_the_same_answers() -> None:
    votes = Ratings([Rating("a", "j", 4, 0, "m"), Rating("b", "j", 3, 0, "m")])
    without = join_ratings(Ratings([Rating("a", "ann", 5)], missing_count=2), votes)
    assert {(one.item, one.model) for one in without.ratings if one.item == "a"} == {("a", "")}
    assert without.missing_count == 2
    scale = (1.0, 2.0, 3.0, 4.0)
    known = replace(votes, scale=scale)
    assert join_ratings(Ratings([Rating("a", "ann", 4)]), known).scale == scale
    assert join_ratings(Ratings([Rating("a", "ann", 5)]), known).scale == ()
    assert join_ratings(Ratings([Rating("a", "ann", 5)], scale=(4, 5)), known).scale == (
        1,
        2,
        3,
        4,
        5,
    )
    named = join_ratings(Ratings([Rating("a", "ann", 5, 0, "m")]), votes)
    assert {(one.item, one.model) for one in named.ratings} == {("a", "m"), ("b", "m")}


def test_words_join_words_and_numbers_numbers() -> None:
    votes = Ratings([Rating("a", "j", 1)], ("no", "yes"))
    people = Ratings([Rating("a", "ann", 1)], ("No", "Yes"), ordered=False)
    both = join_ratings(Ratings(people.ratings, ("no", "yes"), ordered=False), votes)
    assert (both.categories, both.ordered) == (("no", "yes"), True)
    assert [one.value for one in both.ratings] == [1, 1]
    turned = join_ratings(Ratings([Rating("a", "ann", 0)], ("yes", "maybe", "no")), votes)
    assert [one.value for one in turned.ratings] == [0, 0]
    loose = Ratings([Rating("a", "j", 0)], ("Sound",), ordered=False)
    mixed = join_ratings(Ratings([Rating("a", "ann", 0)], ("odd",), ordered=False), loose)
    assert [mixed.categories[int(one.value)] for one in mixed.ratings] == ["odd", "sound"]
    for given, words in (
        (Ratings([Rating("a", "ann", 4)]), "are numbers, but the judges' levels are words"),
        (Ratings([Rating("a", "ann", 0)], ("maybe",), ordered=False), "'maybe' is not a level"),
        (Ratings([Rating("a", "ann", 0)], ("yes",)), "level 'no' is not among the levels"),
        (Ratings([Rating("a", "j", 0)], ("yes", "no")), "rater and a judge have the same name 'j'"),
    ):
        with pytest.raises(ValueError, match=words):
            join_ratings(given, votes)
