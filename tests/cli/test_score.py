"""``trustassay score``: exit statuses, messages, and every crash that the spec lists."""

import gzip
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import trustassay
from tests.cli.conftest import Cli
from tests.support import command, jsonl, lines, record, records, run_command, summary_of

LEXICAL = ("--entailer", "lexical")
SOUND = "sound.jsonl"


@pytest.fixture(autouse=True)
def sound(tmp_path: Path) -> Path:
    return jsonl(tmp_path / SOUND, records(3))


def entailers(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def fails(premise, hypothesis):\n"
        "    if 'umber 1' in hypothesis:\n"
        "        raise RuntimeError('\\x1b[31mred\\x07')\n"
        "    return True\n"
    )


# ---- exit statuses ----


def test_all_scored_is_0(cli: Cli, tmp_path: Path) -> None:
    said = cli("score", SOUND, *LEXICAL, "--out", "run")
    assert said.status == 0
    assert said.out == ""
    assert "Grounding of cited answers (Trust-Eval), profile default\n" in said.err
    assert "report: run/report.html" in said.err
    assert summary_of(tmp_path / "run")["metrics"]["grounding"]["n"] == 3


def test_too_few_samples_for_an_interval_are_told_on_terminal_and_page(
    cli: Cli, tmp_path: Path
) -> None:
    said = cli("score", SOUND, *LEXICAL, "--out", "run")
    reason = "too few scored answers: 3; at least 20 are needed"
    assert f"  no interval: {reason}\n" in said.err
    found = summary_of(tmp_path / "run")["metrics"]["grounding"]
    assert found["intervals"] == {}
    assert found["without_interval"]["answered_citation_f1"] == reason
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert f"no interval: <bdi>{reason}</bdi>" in page
    jsonl(tmp_path / "more.jsonl", records(20))
    assert "no interval" not in cli("score", "more.jsonl", *LEXICAL, "--out", "more").err


def test_some_failed_is_0_and_they_are_listed(cli: Cli, tmp_path: Path) -> None:
    entailers(tmp_path)
    said = cli("score", SOUND, "--entailer", "python:mine:fails", "--out", "run")
    assert said.status == 0
    assert "  not answered: error (1)\n" in said.err
    assert "1 score could not be computed:\n" in said.err
    assert "\n  q1: grounding: python:mine:fails failed: RuntimeError:" in said.err


def test_the_outcomes_of_all_questions_are_the_first_lines(cli: Cli, tmp_path: Path) -> None:
    refusal = "I am sorry, but I cannot find that in the documents."
    rows = [*records(3), *({**record(n), "response": refusal} for n in range(3, 5))]
    jsonl(tmp_path / "in.jsonl", rows)
    said = cli("score", "in.jsonl", "--metric", "faithfulness", *LEXICAL, "--out", "run")
    printed = said.err.splitlines()
    first = next(n for n, line in enumerate(printed) if line.startswith("faithfulness: "))
    assert printed[first - 1].startswith("first result of 5: ")
    assert printed[first : first + 3] == [
        "faithfulness: 60 % supported, 0 % not supported, 40 % not answered of 5 questions.",
        "  not answered: refused (2)",
        "3 of 5 answers were judged: 0 need a look; 2 were not judged.",
    ]
    again = cli("rescore", "run", "--out", "again").err.splitlines()
    assert printed[first : first + 3] == again[again.index(printed[first]) :][:3]


def test_a_sheet_in_another_language_is_no_all_clear(cli: Cli, tmp_path: Path) -> None:
    row = {
        "question": "Wo liegt das Museum, und wann ist es geöffnet?",
        "response": "Das Museum liegt am Fluss und ist von neun bis achtzehn Uhr geöffnet.",
        "documents": [{"text": "Das Museum liegt am Fluss. Es ist nur am Montag geschlossen."}],
    }
    jsonl(tmp_path / "in.jsonl", [{**row, "id": str(n)} for n in range(10)])
    said = cli("score", "in.jsonl", "--metric", "faithfulness", "--entailer", "embedded")
    assert said.status == 1
    assert "100 % not answered" in said.err
    assert "0 of 10 answers could be judged: language not read (10)." in said.err
    reader = trustassay.entailer("embedded").name
    unread = f"10 of 10 answers are in German, which the entailer ({reader}) does not read.\n"
    local = "To judge it offline: --second qwen2.5-coder-1.5b (AUC 0.92 in German; "
    larger = "With a key: --entailer openai:gpt-4o-mini.\n"
    assert said.err.index(unread) < said.err.index(local) < said.err.index(larger)
    # Neither figures of no answer nor an all-clear.
    for words in ("None of", "No answer needs", "n/a", "Judge "):
        assert words not in said.err
    quiet = cli("--quiet", "score", "in.jsonl", "--metric", "faithfulness").err
    assert unread in quiet and larger in quiet
    plan = cli("plan", "in.jsonl", "--metric", "faithfulness", "--json")
    assert "10 of 10 samples are in a language that its models do not read" in plan.err
    assert json.loads(plan.out)["unread"] == {"faithfulness": 10}


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"documents": []}, 1, "Answers without passages to judge by: name"),
        ({"response": "I cannot find that in the documents."}, 1, "Refusals: with gold"),
        ({"response": " "}, 1, "Blank answers: name the column"),
        ({"response": "You're welcome!"}, 1, "Answers that state nothing to check:"),
        ({}, 0, "None of the 3 answers needs a look."),
    ],
)
def test_the_status_is_1_where_nothing_could_be_judged_and_what_to_do_is_said(
    cli: Cli, tmp_path: Path, fields: dict[str, Any], status: int, words: str
) -> None:
    row = {"question": "Where is it?", "response": "It is red.", "documents": ["It is red."]}
    jsonl(tmp_path / "in.jsonl", [row | fields | {"id": str(n)} for n in range(3)])
    output = cli("score", "in.jsonl", *LEXICAL)
    assert output.status == status
    assert words in output.err
    assert ("needs a look" in output.err) == (status == 0)


def test_the_end_of_a_run_fits_on_half_a_screen(cli: Cli, tmp_path: Path) -> None:
    rows = [record(n, response=f"Number {n} is odd.") for n in range(70)]
    rows += [record(n, response="It rains.") for n in range(70, 90)]
    rows += [record(n, response="I cannot find that in the documents.") for n in range(90, 100)]
    jsonl(tmp_path / "in.jsonl", rows)
    printed = cli("score", "in.jsonl", "--metric", "faithfulness", *LEXICAL).err.splitlines()
    first = next(n for n, line in enumerate(printed) if line.startswith("faithfulness: "))
    assert len(printed) - first <= 24
    assert not any(line.startswith("no interval") for line in printed)


@pytest.mark.parametrize(("columns", "has_meaning"), [("80", False), ("100", True)])
def test_a_narrow_terminal_has_the_figures_without_their_meaning(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: str, has_meaning: bool
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    jsonl(tmp_path / "in.jsonl", records(30))
    output = cli("score", "in.jsonl", "--metric", "faithfulness", *LEXICAL)
    assert "supported     100.0 %" in output.err
    assert ("meaning" in output.err) == has_meaning


def test_one_answer_has_no_table_of_figures(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "in.jsonl", records(1))
    output = cli("score", "in.jsonl", "--metric", "faithfulness", *LEXICAL)
    assert "figure" not in output.err and "no interval" not in output.err
    assert "of 1 question." in output.err


def test_few_answers_have_their_figures_on_a_line_and_the_interval_is_missed_once(
    cli: Cli, tmp_path: Path
) -> None:
    jsonl(tmp_path / "in.jsonl", records(3))
    output = cli("score", "in.jsonl", "--metric", "faithfulness", *LEXICAL)
    assert "  mean 1.000, supported 100.0 %, not_found 0.0 %, contradicted 0.0 %\n" in output.err
    assert output.err.count("no interval") == 1
    assert "  no interval: too few samples: 3; at least 20 are needed\n" in output.err
    # The line of outcomes is about all questions; figures of fewer answers have their number.
    jsonl(tmp_path / "blank.jsonl", [*records(3), {**records(1)[0], "id": "b", "response": ""}])
    output = cli("score", "blank.jsonl", "--metric", "faithfulness", *LEXICAL)
    assert "  mean 1.000 (of 3), supported 100.0 % (of 3), " in output.err


def test_figures_without_a_value_are_no_rows_and_have_a_reason(cli: Cli) -> None:
    output = cli("score", SOUND, *LEXICAL)
    assert "n/a" not in output.err
    assert "no value for trust_score: correctness is none: there are no gold answers" in output.err


def test_failures_of_one_kind_are_one_line_and_few_kinds_are_printed(
    cli: Cli, tmp_path: Path
) -> None:
    function = "def no(premise, hypothesis):\n    raise ValueError({})\n"
    jsonl(tmp_path / "many.jsonl", records(25))
    (tmp_path / "no.py").write_text(function.format("'no'"))
    alike = cli("score", "many.jsonl", "--entailer", "python:no:no").err
    assert (
        "25 scores could not be computed:\n"
        "  q0: grounding: python:no:no failed: ValueError: no (and 24 others)\n" in alike
    )
    assert alike.count("ValueError") == 1
    (tmp_path / "no2.py").write_text(function.format("hypothesis"))
    different = cli("score", "many.jsonl", "--entailer", "python:no2:no").err
    assert different.count("ValueError") == 3
    assert "  ... and 22 more, in assessments.jsonl\n" in different


BAD_ARGUMENTS = [
    (["nothing.jsonl"], "nothing.jsonl: no such file"),
    ([SOUND, "--entailer", "lexicl"], "unknown entailer 'lexicl'; did you mean lexical?"),
    ([SOUND, "--entailer", "python:nope:f"], "No module named 'nope'"),
    ([SOUND, "--entailer", "hf:"], "hf: needs a model"),
    ([SOUND, "--metric", "grouding"], "unknown metric 'grouding'; did you mean grounding?"),
    ([SOUND, "--metric", "grounding:profil=paper"], "did you mean profile?"),
    ([SOUND, "--metric", "grounding:profile=papr"], "did you mean paper?"),
    ([SOUND, "--metric", "grounding:threshold=high"], "expected a number, got 'high'"),
    ([SOUND, "--metric", "grounding", "--metric", "grounding"], "given more than once"),
    ([SOUND, "--field", "response"], "--field: expected canonical=theirs, got 'response'"),
    ([SOUND, "--field", "respons=text"], "did you mean response or"),
    ([SOUND, "--field", "response=text"], "no record has text"),
    ([SOUND, "--limit", "0"], "--limit"),
    ([SOUND, "--limit", "x"], "--limit"),
    ([SOUND, "--seed", "-1"], "--seed"),
    ([SOUND, "--samples-at-once", "0"], "--samples-at-once"),
    ([SOUND, "--colour", "red"], "--colour"),
    ([SOUND, "--out", SOUND], SOUND),
    ([SOUND, "--out", f"{SOUND}/run"], SOUND),
    ([SOUND, "--out", "/proc/nobody/run"], "/proc/nobody"),
    ([SOUND, "--out", "x" * 300], "name too long"),
    ([SOUND, "--out", "."], "is not empty and holds no run"),
    ([], "INPUT"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD_ARGUMENTS)
def test_bad_arguments_are_2_and_nothing_is_started(
    cli: Cli, tmp_path: Path, arguments: list[str], words: str
) -> None:
    said = cli("score", *arguments)
    assert said.status == 2
    assert said.out == ""
    assert words in said.err
    assert [p.name for p in tmp_path.iterdir()] == [SOUND]


def test_an_unknown_command_is_2(cli: Cli) -> None:
    said = cli("scroe", SOUND)
    assert said.status == 2
    assert "scroe" in said.err


def test_help_and_version(cli: Cli) -> None:
    assert cli("--help").status == 0
    assert cli("score", "--help").status == 0
    assert cli("--version").out.startswith("trustassay 0.")


# ---- bad input ----


def test_all_faults_with_file_line_and_field_at_once(cli: Cli, tmp_path: Path) -> None:
    rows: list[Any] = [record(0), {"id": 1}, record(2, response=[3], documents=9), 5, record(4)]
    (tmp_path / "bad.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n{broken\n")
    said = cli("score", "bad.jsonl", *LEXICAL, "--out", "run")
    assert said.status == 2
    assert said.out == ""
    for line in (
        "bad.jsonl:2: question: is missing (expected text)",
        "bad.jsonl:3: response: expected text, got a list",
        "bad.jsonl:3: documents: expected a list of documents, got 9",
        "bad.jsonl:4: record: expected an object, got a number",
        "bad.jsonl:6: column 2: is not JSON",
    ):
        assert line in said.err
    assert "4 faulty records; nothing was started (--skip-bad skips them)" in said.err
    assert not (tmp_path / "run").exists()


def test_a_fault_that_fills_the_file_is_cut_short_and_counted(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "bad.jsonl", [*({"id": i} for i in range(130)), record(1, response=[7])])
    said = cli("score", "bad.jsonl", *LEXICAL)
    [line] = [line for line in said.err.splitlines() if "question: is missing" in line]
    assert line == "bad.jsonl:1 and 129 more: question: is missing (expected text)"
    assert "bad.jsonl:131: response: expected text, got a list" in said.err
    assert "131 faulty records; nothing was started" in said.err


def test_bad_input_leaves_no_default_folder(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "bad.jsonl", [{"id": 1}])
    assert cli("score", "bad.jsonl", *LEXICAL).status == 2
    assert {p.name for p in tmp_path.iterdir()} == {"bad.jsonl", SOUND}


def test_skip_bad_goes_on_and_counts(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "bad.jsonl", [record(0), {"id": 1}, record(2)])
    said = cli("score", "bad.jsonl", *LEXICAL, "--skip-bad", "--out", "run")
    assert said.status == 0
    assert "1 faulty record skipped" in said.err
    assert summary_of(tmp_path / "run")["skipped"] == 1
    assert [line["id"] for line in lines(tmp_path / "run" / "assessments.jsonl")] == ["q0", "q2"]


# What trust_eval 0.1.6 crashes on (spec, 13 B), in its own layout: the change to an item, and
# what is said of it, or ``None`` where the item is scored.
DOC = {"title": "Nile", "text": "The Nile is a river in Africa.", "answers_found": [1, 0]}
ITEM = {
    "question": "Which river?",
    "output": "The Nile is a river in Africa [1].",
    "qa_pairs": [{"short_answers": ["Nile"]}, {"short_answers": ["Amazon"]}],
    "docs": [DOC, {**DOC, "title": "Amazon", "answers_found": [0, 0]}],
}
PLAIN = {k: v for k, v in ITEM.items() if k != "qa_pairs"}


def flags(value: Any) -> dict[str, Any]:
    return {**ITEM, "docs": [{**DOC, "answers_found": value}, ITEM["docs"][1]]}


def without(key: str) -> dict[str, Any]:
    return {**ITEM, "docs": [{k: v for k, v in DOC.items() if k != key}, ITEM["docs"][1]]}


CRASHES: list[tuple[str, Any, str | None]] = [
    ("empty docs", {**ITEM, "docs": []}, None),
    ("empty answers", {**PLAIN, "answers": [], "docs": [{**DOC, "answers_found": []}]}, None),
    ("no pairs", {**ITEM, "qa_pairs": [], "docs": [{"text": "x"}]}, None),
    ("float flags", flags([1.0, 0.0]), None),
    ("half flags", flags([0.5, 0]), "docs[0].answers_found[0]: expected 0 or 1, got 0.5"),
    ("truth flags", flags([True, False]), None),
    ("fewer flags", flags([1]), "docs[0].answers_found: has 1 flags for 2 answers"),
    ("more flags", flags([1, 0, 0]), "docs[0].answers_found: has 3 flags for 2 answers"),
    ("no flags", flags([]), "docs[0].answers_found: has 0 flags for 2 answers"),
    ("flag 2", flags([2, 0]), "docs[0].answers_found[0]: expected 0 or 1, got 2"),
    ("flag NaN", flags([float("nan"), 0]), "docs[0].answers_found[0]: expected 0 or 1, got NaN"),
    ("a flag", flags(1), "docs[0].answers_found: expected a list of 0 and 1, got 1"),
    ("missing flags", without("answers_found"), "docs[0].answers_found: is missing"),
    (
        "no flags at all",
        {**ITEM, "docs": [{k: v for k, v in DOC.items() if k != "answers_found"}]},
        None,
    ),
    ("missing title", without("title"), None),
    ("title null", {**ITEM, "docs": [{**DOC, "title": None}]}, None),
    ("missing text", without("text"), "docs[0].text: is missing (expected text)"),
    ("output null", {**ITEM, "output": None}, "is missing (expected the text to assess)"),
    ("output list", {**ITEM, "output": ["a", "b"]}, "output: expected text, got a list"),
    ("output blank", {**ITEM, "output": ""}, None),
    (
        "no alias",
        {**ITEM, "qa_pairs": [{"short_answers": []}, {"short_answers": ["x"]}]},
        "qa_pairs[0].short_answers: has no alias (expected one or more)",
    ),
    (
        "no alias plain",
        {**PLAIN, "answers": [[], ["x"]]},
        "answers[0]: has no alias (expected one or more)",
    ),
    (
        "numeric alias",
        {**ITEM, "qa_pairs": [{"short_answers": [7]}, {"short_answers": ["x"]}]},
        None,
    ),
    ("numeric answer", {**PLAIN, "answers": [7, 1.5]}, None),
    ("answers null", {**PLAIN, "answers": None}, None),
    ("answers text", {**PLAIN, "answers": "Nile", "docs": [{"text": "x"}]}, None),
    ("an answer null", {**PLAIN, "answers": ["x", None]}, "answers[1]: expected text, got null"),
]


@pytest.mark.parametrize(
    ("item", "words"),
    [pytest.param(item, words, id=name) for name, item, words in CRASHES if words],
)
def test_what_crashed_the_seed_is_named(cli: Cli, tmp_path: Path, item: Any, words: str) -> None:
    jsonl(tmp_path / "data.jsonl", [ITEM, {**item, "id": "odd"}])
    said = cli("score", "data.jsonl", *LEXICAL, "--metric", "grounding:correctness=em")
    assert said.status == 2
    assert said.err.splitlines()[-2].startswith("data.jsonl:2: ")
    assert words in said.err


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", ""),
        ("a.jsonl", "\n\n"),
        ("a.json", "[]"),
        ("a.json", '{"data": []}'),
        ("a.csv", ""),
    ],
)
def test_zero_items_are_an_error(cli: Cli, tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    said = cli("score", name, *LEXICAL)
    assert said.status == 2
    assert f"trustassay: {name}: contains no records" in said.err


@pytest.mark.parametrize("kind", ["em", "em5", "cm"])
def test_what_crashed_the_seed_is_scored_alone_and_beside_others(
    cli: Cli, tmp_path: Path, kind: str
) -> None:
    """Sums over nothing must not become NaN where no other item fills them."""
    scored = [{**item, "id": name} for name, item, words in CRASHES if words is None]
    for number, rows in enumerate([[ITEM, *scored], *([one] for one in scored)]):
        jsonl(tmp_path / f"{number}.jsonl", rows)
        metric = f"grounding:correctness={kind}"
        said = cli("score", f"{number}.jsonl", *LEXICAL, "--metric", metric, "--json")
        all_blank = not any(row["output"] for row in rows)
        assert said.status == all_blank, said.err
        found = json.loads(said.out, parse_constant=pytest.fail)
        assert found["metrics"]["grounding"]["failed"] == 0


# ---- output ----


def test_json_is_one_object_on_standard_output(cli: Cli, tmp_path: Path) -> None:
    said = cli("score", SOUND, *LEXICAL, "--out", "run", "--json")
    assert json.loads(said.out) == json.loads((tmp_path / "run" / "summary.json").read_text())
    assert "run:    run" in said.err


def test_json_comes_with_failures_too(cli: Cli, tmp_path: Path) -> None:
    entailers(tmp_path)
    said = cli("score", SOUND, "--entailer", "python:mine:fails", "--json")
    assert said.status == 0
    assert json.loads(said.out)["metrics"]["grounding"]["failed"] == 1


def test_a_finished_run_is_shown_again(cli: Cli) -> None:
    first = cli("score", SOUND, *LEXICAL, "--json")
    again = cli("score", SOUND, *LEXICAL, "--json")
    heard = [line for line in first.err.splitlines() if not line.startswith("first result of 3: ")]
    assert len(heard) == len(first.err.splitlines()) - 1
    assert (again.out, again.err.splitlines()) == (first.out, heard)


HOSTILE = "q\x1b[31m\x07\x9b2J\u202e\u2066\r\x08\x7f"
RAW = "\x1b\x07\x9b\u202e\u2066\r\x08\x7f"


def test_control_characters_never_reach_the_terminal(cli: Cli, tmp_path: Path) -> None:
    entailers(tmp_path)
    rows = [record(1, id=HOSTILE, response=f"Number 1 is {HOSTILE} [1]."), record(2)]
    jsonl(tmp_path / "hostile.jsonl", rows)
    said = cli("score", "hostile.jsonl", "--entailer", "python:mine:fails")
    assert said.status == 0
    assert "<U+001B>[31m" in said.err
    jsonl(tmp_path / "twice.jsonl", [rows[0], rows[0], {HOSTILE: 1, "question": HOSTILE}])
    twice = cli("score", "twice.jsonl", *LEXICAL)
    assert twice.status == 2
    field = cli("score", SOUND, *LEXICAL, "--field", f"response={HOSTILE}")
    out = cli("score", SOUND, *LEXICAL, "--out", f"run{HOSTILE}")
    for text in (said.err, twice.err, field.err, out.err, out.out):
        assert not set(RAW) & set(text)


def test_a_line_break_in_an_id_forges_no_message(cli: Cli, tmp_path: Path) -> None:
    entailers(tmp_path)
    jsonl(tmp_path / "in.jsonl", [record(1, id="q\nrun:    /etc/passwd")])
    said = cli("score", "in.jsonl", "--entailer", "python:mine:fails")
    assert "\nrun:    /etc" not in said.err


@pytest.mark.slow
def test_nothing_but_text_where_there_is_no_terminal(tmp_path: Path) -> None:
    done = run_command("score", SOUND, *LEXICAL, "--json", cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)
    assert "\x1b" not in done.stdout + done.stderr


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    read, write = os.pipe()
    process = subprocess.Popen(
        command("score", SOUND, *LEXICAL, "--json"),
        cwd=tmp_path,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(read)
    os.close(write)
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    assert "BrokenPipe" not in err
    assert "Broken pipe" not in err
    assert process.returncode == 1


@pytest.mark.parametrize("encoding", ["ascii", "ascii:strict"])
@pytest.mark.slow
def test_a_terminal_that_knows_few_letters(tmp_path: Path, encoding: str) -> None:
    jsonl(tmp_path / "ü.jsonl", [record(1, id="ü→", response=None), record(2)])
    done = run_command("score", "ü.jsonl", *LEXICAL, cwd=tmp_path, PYTHONIOENCODING=encoding)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    sound = run_command("score", SOUND, *LEXICAL, "--json", cwd=tmp_path, PYTHONIOENCODING=encoding)
    assert sound.returncode == 0, sound.stderr
    assert json.loads(sound.stdout)


def test_a_file_name_that_is_no_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff.jsonl")
    jsonl(tmp_path / name, records(1))
    done = run_command("score", name, *LEXICAL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


# ---- options ----


def test_limit_scores_the_first_ones(cli: Cli, tmp_path: Path) -> None:
    assert cli("score", SOUND, *LEXICAL, "--limit", "2", "--out", "run").status == 0
    assert [line["id"] for line in lines(tmp_path / "run" / "assessments.jsonl")] == ["q0", "q1"]


def test_fields_under_other_names(cli: Cli, tmp_path: Path) -> None:
    rows = [
        {"id": "a", "question": "q", "texts": {"final": r["response"]}, "ctx": r["documents"]}
        for r in records(1)
    ]
    jsonl(tmp_path / "mine.jsonl", rows)
    fields = ("--field", "response=texts.final", "--field", "documents=ctx")
    assert cli("score", "mine.jsonl", *LEXICAL, *fields, "--out", "run").status == 0
    (line,) = lines(tmp_path / "run" / "samples.jsonl")
    assert line["response"] == record(0)["response"]


def test_the_default_folder_is_named_after_the_input(cli: Cli, tmp_path: Path) -> None:
    cli("score", SOUND, *LEXICAL)
    cli("score", SOUND, *LEXICAL, "--metric", "grounding:threshold=0.9")
    names = [p.name for p in (tmp_path / "trustassay-runs").iterdir()]
    assert len(names) == 2
    assert all(name.startswith("sound-") for name in names)


def test_another_run_in_the_folder_is_2_and_named(cli: Cli) -> None:
    cli("score", SOUND, *LEXICAL, "--out", "run")
    said = cli("score", SOUND, *LEXICAL, "--out", "run", "--seed", "4")
    assert said.status == 2
    assert "run: holds another run" in said.err
    assert "seed was 0, now 4" in said.err


@pytest.mark.parametrize("name", ["in.json", "in.csv", "in.tsv", "in.jsonl.gz"])
def test_other_kinds_of_files(cli: Cli, tmp_path: Path, name: str) -> None:
    row = record(0)
    texts = json.dumps(row["documents"])
    cells = [row["question"], row["response"], '"' + texts.replace('"', '""') + '"']
    contents = {
        "in.json": json.dumps({"data": [row]}),
        "in.csv": f'question,response,documents\n"{cells[0]}","{cells[1]}",{cells[2]}\n',
        "in.tsv": "question\tresponse\tdocuments\n" + "\t".join(cells) + "\n",
        "in.jsonl.gz": json.dumps(row),
    }
    data = contents[name].encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    said = cli("score", name, *LEXICAL, "--json")
    assert said.status == 0, said.err
    assert json.loads(said.out)["metrics"]["grounding"]["values"]["num_samples"] == 1


@pytest.mark.parametrize("command", ["score", "plan"])
def test_a_fact_check_with_nothing_to_check_against_is_refused(
    command: str, cli: Cli, tmp_path: Path
) -> None:
    row = {"question": "Where is Rome?", "response": "In Italy."}
    jsonl(tmp_path / "in.jsonl", [row])
    said = cli(command, "in.jsonl", "--metric", "factcheck", "--entailer", "lexical")
    assert said.status == 2
    words = "needs a retriever (--retriever), or the field documents, which no sample has"
    assert words in " ".join(said.err.split())
    assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").glob("*/samples.jsonl"))


@pytest.mark.parametrize("name", ["contexts", "context"])
def test_what_a_metric_misses_bears_the_name_of_the_file(
    cli: Cli, tmp_path: Path, name: str
) -> None:
    shown = {"question": "What is red?", "answer": "A lamp.", name: "A lamp is red."}
    jsonl(tmp_path / "log.jsonl", [shown, shown | {"answer": None}])
    said = cli("score", "log.jsonl", "--entailer", "lexical")
    assert said.status == 2
    assert "log.jsonl:2: answer: is missing (expected the text to assess)" in said.err


@pytest.mark.parametrize("column", ["contexts", "context"])
def test_a_blank_cell_of_passages_is_an_answer_without_any(
    cli: Cli, tmp_path: Path, column: str
) -> None:
    text = f"question,answer,{column}\nWhat is red?,A lamp.,A lamp is red.\nWho?,Anna.,\n"
    (tmp_path / "log.csv").write_text(text)
    said = cli("score", "log.csv", "--entailer", "lexical", "--out", "run")
    assert said.status == 0
    assert summary_of(tmp_path / "run")["metrics"]["faithfulness"]["n"] == 2


def test_where_no_sample_has_a_score_the_reason_is_shown(tmp_path: Path) -> None:
    row = {"question": "Where is Rome?", "response": "In Italy.", "documents": []}
    jsonl(tmp_path / "in.jsonl", [row])
    said = run_command(
        *("score", "in.jsonl", "--metric", "factcheck", "--entailer", "lexical"), cwd=tmp_path
    )
    assert said.returncode == 1
    assert "100 % not answered of 1 question" in said.stderr
    assert "0 of 1 answer could be judged: no passages (1)" in said.stderr
    assert "name their column with --field documents=COLUMN" in said.stderr
