"""What ``lab.benchmarks.claims`` computes by itself: rows, pairs, figures, texts and tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.benchmarks.claims import __main__ as commands
from lab.benchmarks.claims import scoring
from lab.benchmarks.claims.empty_replies import EMPTY_REPLIES, asks_yes_or_no, read_empty_replies
from lab.benchmarks.claims.figures import (
    COMPARISONS,
    FIRST_ANSWERS,
    MEASURES,
    compare_figures,
    compare_labelled,
    compare_planted,
    correct_for_number,
    count_verdicts,
    measure_empty,
    measure_labelled,
    measure_planted,
    weighted_balanced_accuracy,
    weighted_share,
)
from lab.benchmarks.claims.labelled import choose_places, list_sets, read_answer
from lab.benchmarks.claims.speed import TEXT_KINDS, find_claim_builder, make_text
from lab.benchmarks.claims.storage import append_rows, digest, key_of, pair_rows, read_rows
from lab.benchmarks.claims.tables import COMPARISON_TABLES, TABLES, difference_cell, number_cell
from lab.benchmarks.which_metric.sets import ASKED, shared
from lab.training.sets import TEST
from trustassay.statistics.calibration import balanced_accuracy
from trustassay.statistics.correlation import auroc, weighted_auroc

with_sets = pytest.mark.skipif(not shared().is_dir(), reason="TRUSTASSAY_SHARED is not there")


def stored(place: int, label: int, support: float | None, **fields: Any) -> dict[str, Any]:
    """Return the row of an answer; two answers in a row are about one document."""
    verdict = "refused" if support is None else "supported" if support >= 0.5 else "not found"
    return {
        "measure": "labelled",
        "split": "dev",
        "set": "made",
        "id": f"made-{place}",
        "cluster": f"c{place // 2}",
        "label": label,
        "sample": f"s{place}",
        "score": support,
        "support": support,
        "order": support,
        "verdict": verdict,
        "flagged": verdict == "not found",
        **fields,
    }


def make_rows(seed: int, apart: float, **fields: Any) -> list[dict[str, Any]]:
    """Return 200 answers whose support lies ``apart`` standard deviations higher if supported."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, 200).tolist()
    noise = rng.normal(size=200)
    supports = 1 / (1 + np.exp(-(apart * (np.array(labels) - 0.5) + noise)))
    return [
        stored(place, label, support, **fields)
        for place, (label, support) in enumerate(zip(labels, supports.tolist(), strict=True))
    ]


# Rows ---------------------------------------------------------------------------------------------


def test_a_file_gives_back_its_rows_and_the_last_of_a_key_counts(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "rows.jsonl"
    append_rows(path, [stored(0, 1, 0.25), stored(1, 0, 0.5)])
    append_rows(path, [stored(0, 1, 0.75)])
    rows = read_rows(path)
    assert [row["support"] for row in rows.values()] == [0.75, 0.5]
    assert list(rows) == [("labelled", "made", "made-0"), ("labelled", "made", "made-1")]


def test_a_line_that_was_not_finished_is_not_read_and_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    append_rows(path, [stored(0, 1, 0.25)])
    with path.open("a") as file:
        file.write('{"measure": "labelled", "set"')
    assert len(read_rows(path)) == 1
    append_rows(path, [stored(1, 0, 0.5)])
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == [
        "made-0",
        "made-1",
    ]


def test_a_pattern_reads_several_files_and_a_missing_file_is_an_error(tmp_path: Path) -> None:
    append_rows(tmp_path / "before-a.jsonl", [stored(0, 1, 0.25)])
    append_rows(tmp_path / "before-b.jsonl", [stored(1, 1, 0.25)])
    append_rows(tmp_path / "after-a.jsonl", [stored(2, 1, 0.25)])
    assert len(read_rows(tmp_path / "before-*.jsonl")) == 2
    with pytest.raises(FileNotFoundError, match="no file matches"):
        read_rows(tmp_path / "none.jsonl")


def test_answers_are_paired_only_if_both_files_hold_the_same_sample() -> None:
    before = {key_of(row): row for row in (stored(0, 1, 0.1), stored(1, 1, 0.2), stored(2, 1, 0.3))}
    later = [stored(0, 1, 0.4), stored(1, 1, 0.5, sample="changed"), stored(3, 1, 0.6)]
    pairs, left_out = pair_rows(before, {key_of(row): row for row in later}, "labelled")
    assert [(one["id"], one["support"], other["support"]) for one, other in pairs] == [
        ("made-0", 0.1, 0.4)
    ]
    assert left_out == 3
    assert pair_rows(before, before, "empty") == ([], 0)


def test_a_digest_tells_where_one_text_ends_and_the_next_begins() -> None:
    assert digest("ab", "c") == digest("ab", "c") != digest("a", "bc")


def test_a_run_scores_only_what_the_file_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [{"measure": "planted", "set": "made", "id": f"made-{n}"} for n in range(5)]
    sizes: list[int] = []

    def score_answers(chunk: list[dict[str, Any]]) -> list[dict[str, Any]]:
        sizes.append(len(chunk))
        return chunk

    monkeypatch.setattr(scoring, "score_answers", score_answers)
    monkeypatch.setattr(scoring, "CHUNK", 2)
    path = tmp_path / "rows.jsonl"
    assert scoring.score_missing(answers[:2], path, 1) == 2
    assert scoring.score_missing(answers, path, 1) == 3
    assert scoring.score_missing(answers, path, 1) == 0
    assert sizes == [2, 2, 1]
    assert len(read_rows(path)) == 5


def test_the_rows_of_scored_answers_hold_no_text_of_them() -> None:
    documents = ["The mill burned in May."]
    answers = [
        {
            "measure": "empty",
            "set": "made",
            "id": f"made-{number}",
            "cluster": "c0",
            "question": "What burned in May?",
            "response": response,
            "documents": documents,
        }
        for number, response in enumerate(["The mill burned in May.", "I cannot answer that."])
    ]
    supported, refused = scoring.score_answers(answers)
    assert supported["verdict"] == "supported" and not supported["flagged"]
    assert supported["support"] > 0.5 and supported["claims"] == 1
    assert (refused["verdict"], refused["score"], refused["support"]) == ("refused", None, None)
    assert supported["sample"] == digest(
        "What burned in May?", "The mill burned in May.", *documents
    )
    assert "burned" not in json.dumps([supported, refused])


# Sets ---------------------------------------------------------------------------------------------


def test_a_larger_draw_holds_the_smaller_one() -> None:
    few, more = choose_places(1000, 50, 0, "made"), choose_places(1000, 200, 0, "made")
    assert len(few) == 50 and set(few) < set(more) and more == sorted(set(more))
    assert few != choose_places(1000, 50, 1, "made")
    assert choose_places(3, 50, 0, "made") == choose_places(3, None, 0, "made") == [0, 1, 2]


@pytest.mark.parametrize(
    ("path", "row", "question"),
    [
        ("fib/dev", {"doc": "d"}, ASKED),
        ("expertqa/dev", {"doc": "d", "question": "Why?", "context": "Since"}, "Why?"),
        ("dialogue-grounding/q2", {"doc": "d", "context": " I like it. "}, "I like it."),
        ("attribution/begin_wow_dev", {"message": " "}, "Tell me more."),
    ],
)
def test_a_question_is_the_set_s_own_or_a_neutral_one(
    path: str, row: dict[str, Any], question: str
) -> None:
    row |= {"premise": "It is so.", "hypothesis": "So it is.", "label": 1}
    assert read_answer(path, row).question == question


@pytest.mark.parametrize(
    ("label", "supported"),
    [
        (1, True),
        ("supported", True),
        ("entailment", True),
        (0, False),
        ("neutral", False),
        ("contradicted", False),
        ("not_entailment", False),
        ("not_supported", False),
    ],
)
def test_labels_are_supported_or_not(label: str | int, supported: bool) -> None:
    row = {"doc": "d", "premise": "It is so.", "hypothesis": "So it is.", "label": label}
    assert read_answer("fib/dev", row).supported is supported


def test_passages_and_clusters_follow_the_fields_of_the_file() -> None:
    row = {"hypothesis": "[CONTINUE] So it is.", "label": 1, "premise": "a b"}
    bench = read_answer("attributionbench/ood_dev", row | {"references": ["a", "b"], "doc": "d"})
    assert (bench.documents, bench.response) == (["a", "b"], "So it is.")
    assert bench.cluster == digest("d")
    assert read_answer("attribution/begin_wow_dev", row | {"message": "m"}).cluster == digest("a b")
    page = {"premise_sentences": ["one " * 60, "two " * 60, "three"], **row}
    wice = read_answer("attribution/wice_dev", page)
    assert len(wice.documents) == 2 and wice.cluster == digest("[CONTINUE] So it is.")


def test_every_test_file_is_a_set_and_no_two_sets_have_one_name() -> None:
    sets = list_sets()
    assert len({one.name for one in sets}) == len(sets)
    assert [one.name for one in sets if one.split == "test"] == list(TEST)
    dev = {one.name for one in sets if one.split == "dev"}
    assert {"fib/dev", "hans_held", "attribution/wice_dev", "scitab/test"} < dev
    assert {"begin", "halueval"} < {one.name for one in sets if one.split == "which"}


@with_sets
@pytest.mark.parametrize("labelled", list_sets(), ids=lambda one: f"{one.split} {one.name}")
def test_every_set_has_answers_of_both_labels_with_passages(labelled) -> None:  # type: ignore[no-untyped-def]
    answers = list(labelled.read())
    assert {one.supported for one in answers} == {True, False}
    assert all(one.question.strip() and one.response.strip() for one in answers)
    assert all(one.documents and all(map(str.strip, one.documents)) for one in answers)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Is it open?", True),
        ("The shop is new. Does it open on Sunday?", True),
        ("If I leave early, can I get my money back?", True),
        ("is the euro used in iceland", True),
        ("When is it open?", False),
        ("What is it that I can do?", False),
        ("Cancelled orders: how long?", False),
        ("Who does the work?", False),
    ],
)
def test_questions_for_yes_or_no_are_recognised(question: str, expected: bool) -> None:
    assert asks_yes_or_no(question) is expected


@with_sets
def test_every_empty_reply_is_given_to_every_one_of_60_questions() -> None:
    answers = read_empty_replies(0)
    questions = {one["question"] for one in answers}
    assert len(questions) == 60 and len(EMPTY_REPLIES) == len(set(EMPTY_REPLIES)) == 14
    assert len({(one["question"], one["reply"]) for one in answers}) == len(answers) == 60 * 14
    assert not any(map(asks_yes_or_no, questions))
    assert all(any(map(str.strip, one["documents"])) for one in answers)


# Figures ------------------------------------------------------------------------------------------


def test_shares_and_balanced_accuracy_of_weighted_answers_are_those_of_repeated_ones() -> None:
    rng = np.random.default_rng(4)
    calls, labels = rng.integers(0, 2, 30).astype(float), rng.integers(0, 2, 30).astype(float)
    counts = rng.integers(0, 3, (6, 30)).astype(float)
    balanced = weighted_balanced_accuracy(calls, labels)(counts)
    shares = weighted_share(calls, labels)(counts)
    for row, value, share in zip(counts.astype(int), balanced, shares, strict=True):
        many, true = np.repeat(calls, row), np.repeat(labels, row)
        assert value == pytest.approx(balanced_accuracy(many, true))
        assert share == pytest.approx(many[true > 0].mean())
    assert np.isnan(weighted_share(calls, np.zeros(30))(counts)).all()


def test_an_answer_without_a_score_has_no_support_and_is_not_called_supported() -> None:
    rows = [stored(0, 1, 0.75), stored(1, 0, 0.25), stored(2, 1, None), stored(3, 0, 0.5)]
    figures = measure_labelled(rows, 50)["dev"]["made"]
    # Pairs of a supported and another answer: .75 above .25 and .5, 0 below both.
    assert figures["auc"]["value"] == 0.5
    # Of the supported answers one of two is called so; of the others one of two is not.
    assert figures["balanced_accuracy"]["value"] == 0.5
    assert figures["unscored"] == 0.25
    assert (figures["n"], figures["supported"], figures["clusters"]) == (4, 2, 2)
    assert figures["verdicts"] == {"supported": 2, "not found": 1, "refused": 1}


def test_a_version_does_not_differ_from_itself() -> None:
    rows = make_rows(1, 1.0)
    (of_split,) = compare_labelled([(row, row) for row in rows], 100).values()
    for figures in (of_split["sets"]["made"], of_split["mean"]):
        for name in ("auc", "balanced_accuracy"):
            assert figures[name]["before"] == figures[name]["after"]
            assert (figures[name]["difference"], figures[name]["p"]) == (0.0, 1.0)


def test_a_better_version_is_found_better_on_the_same_answers() -> None:
    before = make_rows(1, 0.5)
    labels = [row["label"] for row in before]
    verdicts = ["supported" if label else "not found" for label in labels]
    after = [
        row | {"support": (row["support"] + label) / 2, "verdict": verdict}
        for row, label, verdict in zip(before, labels, verdicts, strict=True)
    ]
    compared = compare_labelled(list(zip(before, after, strict=True)), 300)["dev"]
    auc = compared["sets"]["made"]["auc"]
    supports = [row["support"] for row in before]
    assert auc["before"] == pytest.approx(auroc(supports, labels), abs=1e-4)
    assert auc["after"] == 1.0
    assert auc["interval"][0] > 0 and auc["p_holm"] < 0.01
    assert compared["sets"]["made"]["balanced_accuracy"]["after"] == 1.0
    assert compared["mean"]["auc"]["difference"] == auc["difference"]


def test_the_interval_of_a_difference_is_narrower_than_that_of_unpaired_figures() -> None:
    rows = make_rows(3, 1.0)
    labels = np.array([float(row["label"]) for row in rows])
    supports = np.array([row["support"] for row in rows])
    moved = supports + np.random.default_rng(0).normal(scale=0.01, size=len(rows))
    clusters = np.arange(len(rows)) // 2
    paired = compare_figures(
        weighted_auroc(supports, labels), weighted_auroc(moved, labels), clusters, "made", 300
    )
    alone = measure_labelled(rows, 300)["dev"]["made"]["auc"]["interval"]
    assert paired.difference.interval is not None
    low, high = paired.difference.interval
    assert high - low < (alone[1] - alone[0]) / 4


def test_p_values_are_corrected_for_the_number_of_sets() -> None:
    rows = make_rows(3, 1.0)
    figure = weighted_share([row["label"] for row in rows], np.ones(200))
    paired = compare_figures(figure, figure, np.arange(200), "made", 50)
    figures = {
        name: paired._replace(difference=paired.difference._replace(p=p))
        for name, p in (("a", 0.01), ("b", None), ("c", 0.04))
    }
    assert correct_for_number(figures) == {"a": 0.02, "b": None, "c": 0.04}


def test_of_planted_errors_unscored_answers_are_looked_at_last() -> None:
    rows = [stored(n, int(n >= 30), 0.1 if n < 24 else 0.9, measure="planted") for n in range(90)]
    rows[0] |= {"score": None, "order": None, "flagged": False, "verdict": "refused"}
    rows[89] |= {"order": 0.2, "flagged": True}
    counts = measure_planted(rows, 50)["counts"]
    assert counts == {
        "answers": 90,
        "with errors": 30,
        f"wrong among the first {FIRST_ANSWERS}": 20.0,
        "flagged, with errors": 23,
        "flagged, without error": 1,
        "not scored": 1,
    }
    compared = compare_planted([(row, row) for row in rows], 50)
    assert compared["counts"]["before"] == counts
    assert compared["errors flagged"]["after"] == round(23 / 30, 4)
    assert compared["false alarms"]["after"] == round(1 / 60, 4)


def test_empty_replies_are_counted_by_reply() -> None:
    rows = [stored(n, 0, 0.9 if n % 4 == 0 else None, reply=f"r{n % 2}") for n in range(80)]
    figures = measure_empty(rows, 50)
    assert figures["replies"]["r0"]["supported"] == 0.5
    assert figures["replies"]["r1"]["supported"] == 0.0
    assert figures["all"]["supported"]["value"] == 0.25
    assert figures["all"]["verdicts"] == {"refused": 60, "supported": 20}


def test_an_answer_without_verdict_is_counted_as_not_assessable() -> None:
    assert count_verdicts([stored(0, 1, None, verdict=None)]) == {"not assessable": 1}


# Texts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_long_texts_have_the_length_that_is_asked_for_and_differ_by_their_number(kind: str) -> None:
    texts = [make_text(kind, size) for size in (1_000, 10_000)]
    assert [len(text) for text in texts] == [1_000, 10_000]
    assert texts[1].startswith(texts[0])
    assert make_text(kind, 1_000, first=2) != texts[0]


def test_claims_of_a_long_text_are_built() -> None:
    build = find_claim_builder()
    assert build is not None
    assert len(build(make_text("bullets", 1_000))) > 20


# Tables and commands ------------------------------------------------------------------------------


def test_differences_have_a_sign_and_are_bold_if_they_are_not_chance() -> None:
    figure = {"difference": -0.0123, "interval": [-0.02, -0.004], "p": 0.02, "p_holm": 0.2}
    assert difference_cell(figure) == "-0.012 (-0.020 to -0.004)"
    assert difference_cell(figure | {"p_holm": 0.01}) == "**-0.012 (-0.020 to -0.004)**"
    assert number_cell(0.8124) == ".812" and number_cell(1.0) == "1.000"


def test_both_commands_print_a_table_of_each_measurement_and_the_figures_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = make_rows(5, 1.0)
    rows += [row | {"measure": "planted", "kinds": []} for row in rows]
    rows += [row | {"measure": "empty", "reply": "Yes."} for row in rows[:200]]
    times = {"characters": 1000, "claims_s": 0.01, "claims": 9, "score_s": 0.1}
    rows.append({"measure": "speed", "set": "bullets", "id": "1000", **times})
    rows.append(
        {"measure": "run", "set": "empty", "id": "now", "commit": "abc", "entailer": "embedded:8"}
    )
    path = tmp_path / "rows.jsonl"
    append_rows(path, rows)
    written: dict[str, Any] = {}

    def write_result(name: str, command: str, data: str, figures: Any) -> Path:
        written.update(name=name, figures=json.loads(json.dumps(figures)))
        return tmp_path / f"{name}.json"

    monkeypatch.setattr(commands, "write_result", write_result)
    parser = commands.make_parser()
    for arguments in (["show", str(path)], ["compare", str(path), str(path), "--write"]):
        options = parser.parse_args([*arguments, "--resamples", "50"])
        options.do(options)
        printed = capsys.readouterr().out
        assert [line for line in printed.splitlines() if line.startswith("## ")] == [
            f"## {name}" for name in MEASURES
        ]
        assert "| bullets | 1,000 | .1000 | 1.000" in printed
    assert written["name"] == "claims"
    assert set(written["figures"]) == {"before", "after", *COMPARISONS}
    assert written["figures"]["before"] == ["abc (embedded:8)"]
    assert set(TABLES) == set(COMPARISON_TABLES) == set(MEASURES) == set(COMPARISONS)
