"""``trustassay agree`` and ``trustassay rubric``, as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

TABLE = "item,ann,bob\n" + "".join(
    f"q{i},{1 + i % 5},{1 + (i % 5 if i % 4 else 4)}\n" for i in range(24)
)


def test_agreement_as_tables_and_as_json(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(TABLE)
    said = cli("agree", "r.csv", "--json")
    assert said.status == 0
    found = json.loads(said.out)
    assert found["raters"] == {"ann": 24, "bob": 24}
    assert 0 < found["overall"]["alpha_ordinal"]["value"] < 1
    assert len(found["pairs"]) == 1
    assert "24 items; ratings per rater: ann 24, bob 24" in said.err
    for words in ("Fleiss's kappa", "alpha, ordinal", "ann – bob", "kappa, quadratic"):
        assert words in said.err
    assert "raters disagree on" in said.err
    assert "q0: ann 1, bob 5" in said.err


def test_the_scale_is_given_or_said_to_be_unknown(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(TABLE.replace(",3", ",4"))
    said = cli("agree", "r.csv", "--json")
    assert "levels in the ratings: 1, 2, 4, 5; weighted kappas and AC1 assume that" in said.err
    given = cli("agree", "r.csv", "--levels", "1..5", "--machine", "bob", "--json")
    assert "levels: 1, 2, 3, 4, 5" in given.err
    assert "judge and people" in given.err
    one, other = (json.loads(each.out) for each in (said, given))
    assert (one["levels_declared"], other["levels_declared"]) == (False, True)
    for name, same in (("kappa", True), ("kappa_quadratic", False)):
        assert (one["pairs"][0][name]["value"] == other["pairs"][0][name]["value"]) == same
    wrong = cli("agree", "r.csv", "--levels", "1..4")
    assert wrong.status == 2
    assert "r.csv:6: rating: expected one of the levels 1..4, got '5'" in wrong.err


def test_half_a_character_is_printed_as_json(cli: Cli, tmp_path: Path) -> None:
    rows = [{"item": f"q{n}", "ann": n % 3, "bob": (n + n // 9) % 3} for n in range(12)]
    rows[0]["ann"] = "good\ud800"
    (tmp_path / "r.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    result = cli("agree", "r.jsonl", "--json")
    assert result.status == 0
    assert json.loads(result.out)["unread"]["words"] == {"good\ufffd": 1}


def test_words_columns_and_hostile_names(cli: Cli, tmp_path: Path) -> None:
    rows = [
        {"q": "a\nforged: line\x1b[31m", "who": who, "mark": mark}
        for who, mark in (("x\nforged: rater", "good"), ("y", "poor"))
    ]
    (tmp_path / "r.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    named = ("--field", "item=q", "--field", "rater=who", "--field", "rating=mark")
    said = cli("agree", "r.jsonl", *named, "--levels", "poor,good")
    assert said.status == 0
    assert "levels: poor, good" in said.err
    assert "\x1b" not in said.err
    assert "\nforged" not in said.err


def test_named_raters_are_the_only_ones(cli: Cli, tmp_path: Path) -> None:
    rows = "".join(f"q{i},{who},{i % 3}\n" for i in range(4) for who in ("ann", "bob", "cy"))
    (tmp_path / "r.csv").write_text(f"item,rater,rating\n{rows}")
    said = cli("agree", "r.csv", "--rater", "cy", "--rater", "ann", "--json")
    assert said.status == 0
    assert json.loads(said.out)["raters"] == {"ann": 4, "cy": 4}
    said = cli("agree", "r.csv", "--rater", "cyy")
    assert said.status == 2
    assert "r.csv: unknown rater 'cyy'; did you mean cy?" in said.err


def test_ratings_that_cannot_be_read_are_counted_and_named(cli: Cli, tmp_path: Path) -> None:
    rows = TABLE.splitlines()
    (tmp_path / "r.csv").write_text("\n".join([*rows, "q24,3,so so", "q25,3,N/A"]))
    output = cli("agree", "r.csv", "--json")
    assert output.status == 0
    assert "missing ratings: 1\n" in output.err
    words = "ratings: 1 of 51 cannot be read and are left out, the first at 'r.csv:26': 'so so'"
    assert words in output.err
    result = json.loads(output.out)
    assert result["raters"] == {"ann": 26, "bob": 24}
    assert result["unread"]["words"] == {"so so": 1}
    (tmp_path / "r.csv").write_text("\n".join([*rows, *["q24,3,unclear"] * 20]))
    output = cli("agree", "r.csv")
    assert output.status == 0
    assert "ratings: 20 of 88 are undecided and left out, the first at 'r.csv:26'" in output.err


def test_columns_of_scores_are_no_ratings(cli: Cli, tmp_path: Path) -> None:
    rows = [f"q{i},{i / 300},{int(i > 90)},{int(i > 99)}\n" for i in range(300)]
    (tmp_path / "r.csv").write_text("item,jev,ann,bob\n" + "".join(rows))
    output = cli("agree", "r.csv", "--json")
    assert output.status == 0
    sentence = (
        "jev: left out as a score, with 300 different values; to use it: trustassay calibrate "
        "r.csv --score jev"
    )
    assert sentence in output.err
    assert json.loads(output.out)["raters"] == {"ann": 300, "bob": 300}
    (tmp_path / "r.csv").write_text("item,jev\n" + "".join(f"q{i},{i / 300}\n" for i in range(300)))
    output = cli("agree", "r.csv")
    assert output.status == 2
    assert (
        f"{sentence}. No ratings are left to compare. If these are ratings, give their scale:"
        in output.err
    )
    # A scale that is declared may have more levels, and words are no numbers.
    (tmp_path / "r.csv").write_text(
        "item,ann,bob\n" + "".join(f"q{i},{i},{99 - i}\n" for i in range(100))
    )
    assert json.loads(cli("agree", "r.csv", "--levels", "0..100", "--json").out)["items"] == 100
    words = [f"q{i},{who},kind {i % 25}\n" for i in range(50) for who in ("ann", "bob")]
    (tmp_path / "r.csv").write_text("item,rater,rating\n" + "".join(words))
    assert json.loads(cli("agree", "r.csv", "--json").out)["items"] == 50


def test_faults_end_with_status_2(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("item,rater,rating\na,x,4\nb,y,good\n")
    said = cli("agree", "r.csv")
    assert said.status == 2
    assert "r.csv:3: rating: expected a number like the other ratings, got 'good'" in said.err
    assert cli("agree", "missing.csv").status == 2
    (tmp_path / "one.csv").write_text("item,rater,rating\na,x,4\n")
    assert "nothing to compare" in cli("agree", "one.csv").err


MINE = """\
name: tone
title: Tone of an answer
task: How friendly is the answer?
shows: [question, answer]
levels:
  - {score: 1, name: rude, means: It insults.}
  - {score: 2, name: kind, means: It is kind.}
"""


def test_a_rubric_is_shown_with_its_prompt(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "tone.yaml").write_text(MINE)
    said = cli("rubric", "check", "tone.yaml")
    assert said.status == 0
    for words in ("Tone of an answer (tone/", "How friendly is the answer?", "2 (kind): It is"):
        assert words in said.err
    assert "Gold answer" not in said.err
    assert cli("rubric", "check", "categories").status == 0


def test_all_faults_of_a_rubric_are_named_at_once(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(
        "name: 1x\nshow: [question]\nlevels:\n  - {score: 1, word: yes}\n  - {score: 1.5}\n"
    )
    said = cli("rubric", "check", "bad.yaml")
    assert said.status == 2
    for words in (
        "unknown key 'show'; did you mean shows",
        "name: expected letters",
        "task: expected text (missing)",
        "levels[0]: expected either a score or a word",
        "levels[0].word: expected a word, in quotes if yes or no, got 'True'",
        "levels[1].score: expected a whole number, got '1.5'",
        "levels[1].means: expected text (missing)",
    ):
        assert words in " ".join(said.err.split()), words
    assert "unknown rubric 'trut'" in cli("rubric", "check", "trut").err
    assert cli("rubric", "check", "none.yaml").status == 2
    (tmp_path / "no.yaml").write_text("a: [")
    assert "not YAML" in cli("rubric", "check", "no.yaml").err


def test_words_that_the_parser_cannot_tell_are_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "tone.yaml").write_text(MINE.replace("name: kind", 'name: "Score: 1"'))
    said = cli("rubric", "check", "tone.yaml")
    assert said.status == 2
    assert "the reply 'Score: 1' is read as 'several' and not as '1'" in said.err
    (tmp_path / "twice.yaml").write_text(MINE.replace("name: kind", "name: Rude"))
    assert "two levels are called 'rude'" in cli("rubric", "check", "twice.yaml").err


JUDGE = """
def rate(request):
    said = request.messages[0].content.split("(level ")[1][0]
    return f"Score: {min(5, int(said) + (request.repeat == 2))}"
"""


def judged(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "rating_judge.py").write_text(JUDGE)
    rows = [
        {"id": f"q{i}", "question": "Q?", "response": f"R (level {1 + i % 5})", "answers": [["g"]]}
        for i in range(24)
    ]
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    options = ("--metric", "judge:repeats=3", "--judge", "rated=python:rating_judge:rate")
    assert cli("score", "in.jsonl", *options, "--out", "run").status == 0


@pytest.mark.slow
def test_the_votes_of_a_run_stand_beside_the_ratings_of_people(cli: Cli, tmp_path: Path) -> None:
    judged(cli, tmp_path)
    alone = cli("agree", "--run", "run", "--json", "--page", "v.html")
    assert alone.status == 0
    assert list(json.loads(alone.out)["variance"]["groups"]) == ["judges"]
    assert "judges: a single rater, whose strictness cannot be separated from" in alone.err
    page = (tmp_path / "v.html").read_text()
    assert page.count('<svg class="stack"') == 1
    (tmp_path / "r.csv").write_text(TABLE)
    said = cli("agree", "r.csv", "--run", "run", "--json", "--page", "v.html")
    assert said.status == 0
    groups = json.loads(said.out)["variance"]["groups"]
    assert list(groups) == ["people", "judges"]
    assert [one["name"] for one in groups["people"]["components"]] == [
        "answer",
        "rater",
        "answer x rater and repeat",
    ]
    assert "No answer was rated twice by the same person" in said.err
    assert "ann – rated" in said.err
    assert (tmp_path / "v.html").read_text().count('<svg class="stack"') == 2


@pytest.mark.slow
def test_votes_that_cannot_be_compared_are_left_out_and_said(cli: Cli, tmp_path: Path) -> None:
    judged(cli, tmp_path)
    (tmp_path / "words.csv").write_text("item,rater,rating\nq1,ann,good\nq1,bob,poor\n")
    said = cli("agree", "words.csv", "--run", "run", "--page", "v.html")
    assert said.status == 0
    assert "the votes of the run's judges are not used: the ratings are words, but" in said.err
    assert "no page written: unordered categories have no variance" in said.err
    assert "report.html#a2" in said.err


@pytest.mark.slow
def test_hostile_raters_stay_text_on_the_page(cli: Cli, tmp_path: Path) -> None:
    text = TABLE.replace("ann", "<script>alert(1)</script>")
    (tmp_path / "<img src=x>.csv").write_text(text)
    name = "<script>alert(1)</script>"
    said = cli("agree", "<img src=x>.csv", "--machine", name, "--page", "v.html")
    assert said.status == 0
    page = (tmp_path / "v.html").read_text()
    assert "<script" not in page
    assert "<img" not in page


@pytest.mark.slow
def test_what_is_asked_of_agree_has_to_fit_together(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(TABLE)
    for arguments, words in (
        ((), "no ratings; name a FILE of ratings, or a run of the metric judge with --run"),
        (("--run", "nowhere"), "nowhere: holds no run"),
        (("r.csv", "--machine", "anne"), "--machine: unknown rater 'anne'; did you mean ann"),
    ):
        said = cli("agree", *arguments)
        assert said.status == 2, arguments
        assert words in said.err
    judged(cli, tmp_path)
    said = cli("agree", "--run", "run", "--rater", "ann")
    assert said.status == 2
    assert "apply to FILE; name the file" in said.err


def test_one_question_of_a_run_is_one_unit_unless_each_answer_is(cli: Cli, tmp_path: Path) -> None:
    answers = [
        {"id": f"a{i}", "question": "Why?", "response": f"Word {i}.", "answers": [f"Word {i % 3}."]}
        for i in range(24)
    ]
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in answers))
    rows = [f"a{i},{1 + i % 5},{1 + (i % 5 if i % 4 else 4)}\n" for i in range(24)]
    (tmp_path / "r.csv").write_text("item,ann,bob\n" + "".join(rows))
    metric = ("--metric", "judge:by=entailer", "--entailer", "lexical")
    by_question = cli("score", "in.jsonl", *metric, "--out", "one")
    advice = "; score with --unit answer to take each answer as a unit"
    assert "no interval: too few independent units (of equal size): 1; at least" in by_question.err
    assert advice in by_question.err
    cli("score", "in.jsonl", *metric, "--unit", "answer", "--out", "two")
    # A run that was scored by answers has them as units here, too.
    for options, has_interval in (
        (("--run", "one"), False),
        (("--run", "one", "--unit", "answer"), True),
        (("--run", "two"), True),
        (("--run", "two", "--unit", "question"), False),
        (("--unit", "answer"), True),
    ):
        result = cli("agree", "r.csv", *options, "--json")
        interval = json.loads(result.out)["overall"]["percent"]["interval"]
        assert (interval is not None, advice in result.err) == (has_interval, not has_interval)
    refused = cli("agree", "r.csv", "--unit", "topic")
    assert refused.status == 2
    assert "--unit topic: needs the run that was rated" in refused.err


def test_a_judge_is_counted_above_at_and_below_people(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("item,ann,judge\n" + "".join(f"q{i},3,{i}\n" for i in range(5)))
    result = cli("agree", "r.csv", "--machine", "judge", "--json")
    lines = [line.split() for line in result.err.splitlines()]
    heading = lines.index("judge compared with people judge higher equal judge lower".split())
    assert lines[heading + 1] == ["judge", "1", "1", "3"]
    assert json.loads(result.out)["deviations"] == {"judge": {"higher": 1, "equal": 1, "lower": 3}}
