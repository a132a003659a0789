"""``trustassay report``: the page again, from what is stored."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support import jsonl, records


@pytest.fixture
def run(cli: Cli, tmp_path: Path) -> Path:
    jsonl(tmp_path / "in.jsonl", records(2))
    assert cli("score", "in.jsonl", "--entailer", "lexical", "--out", "run").status == 0
    return tmp_path / "run"


def test_the_same_page_again(cli: Cli, run: Path) -> None:
    page = (run / "report.html").read_bytes()
    (run / "report.html").unlink()
    said = cli("report", "run")
    assert said == (0, "", "report: run/report.html\n")
    assert (run / "report.html").read_bytes() == page


@pytest.mark.parametrize("what", ["nothing", "in.jsonl", "."])
def test_where_there_is_no_run(cli: Cli, run: Path, what: str) -> None:
    said = cli("report", what)
    assert said.status == 2
    assert said.err.startswith("trustassay: ")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("name", ["run.json", "summary.json"])
@pytest.mark.parametrize("content", ["{}", "{", "[]", '"x"', '{"metrics": {"grounding": {}}}'])
def test_a_damaged_run(cli: Cli, run: Path, name: str, content: str) -> None:
    (run / name).write_text(content)
    said = cli("report", "run")
    assert said.status == 2
    assert f"run/{name}: damaged" in said.err


def test_a_metric_that_is_not_installed_any_more(cli: Cli, run: Path) -> None:
    settings = json.loads((run / "run.json").read_text())
    settings["metrics"] = {"groundling": {}}
    (run / "run.json").write_text(json.dumps(settings))
    said = cli("report", "run")
    assert said.status == 2
    assert "unknown metric 'groundling'; did you mean grounding?" in said.err


def test_a_report_does_not_need_the_input_any_more(cli: Cli, run: Path) -> None:
    (run.parent / "in.jsonl").unlink()
    assert cli("report", "run").status == 0


RATINGS = """item,rater,rating,repeat,model,note
q1,ann,4,0,,"mostly, yes"
q1,ann,2,1,,
q1,bo,5,0,,
q9,bo,1,0,,
q9,ann,1,0,,
"""


def test_ratings_join_the_answers(cli: Cli, run: Path) -> None:
    (run.parent / "r.csv").write_text(RATINGS.replace("q1", records(1)[0]["id"]))
    said = cli("report", "run", "--ratings", "r.csv")
    assert said.status == 0
    assert (
        "ratings: 3 ratings by 2 raters of 1 of 2 answers; 1 answer without a rating. "
        "2 ratings for ids or models that are not in the run: q9." in said.err
    )
    page = (run / "report.html").read_text()
    # A rater counts once, by the mean of their own: (3 + 5) / 2.
    assert 'data-rated data-rating="4.0"' in page
    assert page.count("data-rated") == 1
    for words in (
        "mean 4.00, standard deviation 1.41",
        "4, 2",
        "mostly, yes",
        "lowest rating first",
    ):
        assert words in page
    assert "q9" in page
    assert cli("report", "run").status == 0
    assert "rating first" not in (run / "report.html").read_text()


def test_ratings_of_another_model_are_not_of_this_answer(cli: Cli, tmp_path: Path) -> None:
    rows = [row | {"model": "m1"} for row in records(2)]
    jsonl(tmp_path / "in.jsonl", rows)
    assert cli("score", "in.jsonl", "--entailer", "lexical", "--out", "run").status == 0
    ids = [row["id"] for row in rows]
    lines = [f"{ids[0]},ann,4,m1", f"{ids[0]},bo,1,m2", f"{ids[1]},ann,2,"]
    (tmp_path / "r.csv").write_text("\n".join(["item,rater,rating,model", *lines]))
    said = cli("report", "run", "--ratings", "r.csv")
    assert (
        "2 ratings by 1 rater of 2 of 2 answers; 0 answers without a rating. "
        f"1 rating for ids or models that are not in the run: {ids[0]}." in said.err
    )


def test_words_are_counted(cli: Cli, run: Path) -> None:
    own = records(1)[0]["id"]
    (run.parent / "r.csv").write_text(
        f"item,rater,rating\n{own},a,good\n{own},b,poor\n{own},c,good\n"
    )
    assert cli("report", "run", "--ratings", "r.csv").status == 0
    page = (run / "report.html").read_text()
    assert "good 2, poor 1" in page
    assert "data-rating=" not in page
    assert "rating first" not in page
    assert 'id="rated"' in page


def test_choices_between_two_answers_are_no_ratings_of_one(cli: Cli, run: Path) -> None:
    page = (run / "report.html").read_bytes()
    rating = {"item": records(1)[0]["id"], "rater": "ann", "rating": "b", "repeat": 0}
    jsonl(run.parent / "p.jsonl", [{"action": "start", "pairs": True}, rating])
    said = cli("report", "run", "--ratings", "p.jsonl")
    assert said.status == 2
    assert "p.jsonl: holds choices between two answers (annotate --pairs)" in said.err
    assert (run / "report.html").read_bytes() == page
    jsonl(run.parent / "p.jsonl", [{"action": "start", "pairs": False}, rating])
    assert cli("report", "run", "--ratings", "p.jsonl").status == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "r.csv: contains no records"),
        ("x,y\n1,2\n", "expected a column item or id"),
        ("item,rater,rating\na,b,4\na,c,good\n", "r.csv:3: rating: expected a number"),
    ],
)
def test_ratings_with_faults_leave_the_report_as_it_is(
    cli: Cli, run: Path, text: str, words: str
) -> None:
    page = (run / "report.html").read_bytes()
    (run.parent / "r.csv").write_text(text)
    said = cli("report", "run", "--ratings", "r.csv")
    assert said.status == 2
    assert words in said.err
    assert (run / "report.html").read_bytes() == page
    assert cli("report", "run", "--ratings", "none.csv").status == 2
    assert cli("report", "nowhere", "--ratings", "r.csv").status == 2


def test_several_runs_make_one_page(cli: Cli, run: Path) -> None:
    copy = run.parent / "copy"
    shutil.copytree(run, copy)
    said = cli("report", "run", "copy")
    assert said.status == 0
    assert "need a look" in said.err or "needs" in said.err
    assert (run.parent / "pooled.html").exists()
    assert cli("report", "run", "copy", "--out", "new/page.html").status == 0
    assert (run.parent / "new" / "page.html").exists()
    refused = cli("report", "run", "copy", "--ratings", "r.csv")
    assert (refused.status, refused.err.startswith("trustassay: --ratings")) == (2, True)
    assert cli("report", "run", "--out", "x.html").status == 2


def test_the_terminal_says_how_sure_the_judge_is(cli: Cli, run: Path) -> None:
    said = cli("rescore", "run", "--metric", "grounding:threshold=0.6", "--out", "again")
    words = " ".join(said.err.split())
    assert (
        "Judge lexical picks the true answer in 76 % of pairs of partly reworded answers" in words
    )
    assert "Better verdicts: --entailer embedded; see docs/models/entailers.md" in words
    assert max(map(len, said.err.splitlines())) < 200
