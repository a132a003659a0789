"""Shares of right answers from labels of some: by outcome, over all questions."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from tests.compare.made_runs import made_run, rows, shuffled
from tests.support import jsonl
from trustassay.compare.corrected import CorrectedRate, LabelFiles, correct
from trustassay.compare.gate import gate
from trustassay.compare.gate_rules import Bound
from trustassay.errors import UsageError
from trustassay.statistics.corrected import rank_sum_z


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of 300 questions: 60 failed, 210 passed, 30 refused."""
    home = tmp_path_factory.mktemp("runs")
    return made_run(home / "run", rows("f" * 60 + "p" * 210 + "n" * 30))


def labelled(path: Path, places: Iterable[int], right: Iterable[int]) -> LabelFiles:
    are_right = set(right)
    lines = [{"id": f"q{place}", "label": int(place in are_right)} for place in places]
    files = LabelFiles.from_options(labels=[str(jsonl(path / "labels.jsonl", lines))])
    assert files
    return files


def rate_of(run: Path, files: LabelFiles) -> CorrectedRate:
    (rate,) = correct([run], files)["faithfulness"].rates
    return rate


def test_each_outcome_counts_as_often_as_it_occurs(run: Path, tmp_path: Path) -> None:
    """Row 2: of the labels, most are of answers that failed; by hand the share is
    (60 x 10/60 + 210 x 40/50 + 30 x 0/10) / 300."""
    places = [*range(60), *range(60, 260, 4), *range(270, 300, 3)]
    passed = places[60:110]
    files = labelled(tmp_path, places, [*range(10), *passed[:40]])
    rate = rate_of(run, files)
    assert rate.strata == {
        "supported": (210, 50),
        "not supported": (60, 60),
        "not answered": (30, 10),
    }
    assert rate.value == pytest.approx((10 + 210 * 0.8 + 0) / 300)
    assert rate.interval
    low, high = rate.interval
    assert low < (10 + 210 * 0.8) / 300 < high
    assert rate.method == "stratified by outcome"
    (itself,) = correct([run, run], files)["faithfulness"].differences
    assert itself.value == 0


def test_refused_answers_with_labels_count(tmp_path: Path) -> None:
    """Row 3: 240 of 300 refused, 20 % right by the raters; the 60 answers are all right."""
    run = made_run(tmp_path / "run", rows("n" * 240 + "p" * 60))
    files = labelled(tmp_path, [*range(0, 240, 2), *range(240, 300, 2)], range(240, 300))
    bound = Bound("faithfulness.right", 75, at_least=True, percent=True)
    (check,) = gate(run, [bound], labels=files).checks
    assert check.result == "fail"
    assert check.value == pytest.approx(20)


@pytest.mark.parametrize(
    ("places", "missing"),
    [
        (range(60), "5 more of the 210 answers with outcome supported"),
        ([*range(60), *range(60, 160)], "5 more of the 30 answers with outcome not answered"),
        ([*range(60), *range(60, 63), *range(270, 300)], "2 more of the 210 answers"),
    ],
)
def test_an_outcome_without_labels_gives_no_share(
    run: Path, tmp_path: Path, places: Iterable[int], missing: str
) -> None:
    rate = rate_of(run, labelled(tmp_path, places, []))
    assert rate.value is None
    assert rate.without.startswith("too few labels: draw at random and label ")
    assert missing in rate.without


def test_a_metric_has_no_outcome_that_does_not_occur(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", rows("p" * 30 + "f" * 3))
    rate = rate_of(run, labelled(tmp_path, range(33), range(30)))
    assert rate.strata == {"supported": (30, 30), "not supported": (3, 3)}
    assert rate.value == pytest.approx(30 / 33)


def test_labels_that_were_chosen_by_score_give_no_share(tmp_path: Path) -> None:
    """It would be too high, and by those of the worst scores too low."""
    samples = rows(shuffled(5, p=200))
    for number, row in enumerate(samples):
        # The more words no passage has, the worse the answer stands.
        invented = " and ".join(["blue", "tall", "round"][: number % 4])
        row["response"] = (
            f"The tower of town {number} was built{' ' + invented if invented else ''}."
        )
    run = made_run(tmp_path / "run", samples)
    # Answers with one or two invented words pass; the other outcomes have ten labels each.
    others = [*range(0, 40, 4), *range(3, 43, 4)]
    best = rate_of(run, labelled(tmp_path, [*range(1, 200, 4), *others], range(200)))
    assert best.value is None
    assert "have the best scores; draw answers to label at random" in best.without
    worst = rate_of(run, labelled(tmp_path, [*range(2, 200, 4), *others], range(200)))
    assert worst.value is None
    assert "have the worst scores; draw answers to label at random" in worst.without
    drawn = random.Random(2).sample(range(200), 80)
    assert rate_of(run, labelled(tmp_path, drawn, range(200))).value == 1


def test_errors_of_another_labelled_run_are_used_where_they_are_named(
    run: Path, tmp_path: Path
) -> None:
    other = made_run(tmp_path / "other", rows("f" * 50 + "p" * 50))
    lines = [{"id": f"q{i}", "label": int(50 <= i < 95 or i < 5)} for i in range(100)]
    path = jsonl(tmp_path / "labels.jsonl", lines)
    files = LabelFiles.from_options(labels=[str(path)], labels_of=str(other))
    assert files
    rate = rate_of(run, files)
    assert rate.method == "Rogan-Gladen"
    # Of right answers 45 of 50 pass, of wrong ones 5 of 50: (.7 - .1) / (.9 - .1)
    assert rate.value == pytest.approx(0.75)


def test_the_rank_sum_of_two_samples_by_hand() -> None:
    """Ranks 4, 5, 6 of three among six: 15 - 10.5 over the root of 3 x 3 x 7 / 12."""
    first, second = np.array([4.0, 5.0, 6.0]), np.array([1.0, 2.0, 3.0])
    assert rank_sum_z(first, second) == pytest.approx(4.5 / (9 * 7 / 12) ** 0.5)
    assert rank_sum_z(second, first) == -rank_sum_z(first, second)
    assert rank_sum_z(np.ones(3), np.ones(4)) == 0


def test_raters_who_are_divided_and_labels_of_no_answer_are_named(
    run: Path, tmp_path: Path
) -> None:
    """One who calls everything right takes no wrong label away: the answer counts as wrong."""
    places = [*range(60), *range(60, 260, 4), *range(270, 300, 3)]
    lines = [
        {"item": f"q{place}", "rater": rater, "rating": int(rater == "boss" or place % 2)}
        for place in places
        for rater in ("anna", "boss")
    ]
    lines.append({"item": "elsewhere", "rater": "anna", "rating": 1})
    files = LabelFiles.from_options(labels=[str(jsonl(tmp_path / "ratings.jsonl", lines))])
    assert files
    corrected = correct([run], files)["faithfulness"]
    assert corrected.rates[0].labels == len(places)
    assert corrected.rates[0].right == sum(place % 2 for place in places)
    divided = sum(1 - place % 2 for place in places)
    assert any(f"raters are tied on {divided} answers" in note for note in corrected.notes)
    assert any("1 rating for ids that are not in" in note for note in corrected.notes)
    assert any("matched to the answers of" in note for note in corrected.notes)


def test_errors_of_the_run_itself_are_refused(run: Path, tmp_path: Path) -> None:
    path = jsonl(tmp_path / "labels.jsonl", [{"id": f"q{i}", "label": 1} for i in range(100)])
    files = LabelFiles.from_options(labels=[str(path)], labels_of=str(run))
    assert files
    with pytest.raises(UsageError, match="is the run to be corrected"):
        correct([run], files)


@pytest.mark.parametrize("words", [("supported", "not_supported"), ("yes", "no"), ("1", "0")])
def test_a_table_of_ids_and_words_is_enough(
    run: Path, tmp_path: Path, words: tuple[str, str]
) -> None:
    places = [*range(60), *range(60, 260, 4), *range(270, 300, 3)]
    lines = [f"q{place},{words[place % 2]}" for place in places]
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(["id,label", *lines]) + "\n")
    files = LabelFiles.from_options(labels=[str(path)])
    assert files
    rate = rate_of(run, files)
    assert (rate.labels, rate.right) == (len(places), sum(1 - place % 2 for place in places))
