"""The guide is short, true to the version that ships, installs as printed, and is found."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml
from lab.benchmarks import tables
from typer.testing import CliRunner

import trustassay
from tests.docs.guide import (
    MAX_WORDS,
    MEASURED,
    TABLE,
    FigurePlace,
    NoFigureError,
    find_places,
    read_table,
    value_of,
    with_figures,
)
from tests.docs.pages import DOCS, PAGES, ROOT
from trustassay.cli import guide
from trustassay.cli.main import app

pages = cache(guide.read_pages)
SHIPPED = trustassay.entailer("embedded").name
PLACES = [page for page in PAGES if page.name != "CONTRIBUTING.md"]
SOURCES = sorted(
    path
    for place in ("", "papers", "cluster", "serve")
    for path in (ROOT / place / "src").rglob("*.py")
)


def test_the_guide_keeps_its_number_of_words() -> None:
    texts = [page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md")]
    assert sum(len(text.split()) for text in texts) <= MAX_WORDS


@pytest.mark.parametrize("page", [*DOCS.rglob("*.md")], ids=lambda page: page.stem)
def test_a_page_opens_with_what_to_do(page: Path) -> None:
    """Pages of reference have no command; a second table on the first screen hides the text."""
    text = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    command = re.search(r"^```|`trustassay", text, re.MULTILINE)
    if page.parent.name != "api" and page.stem not in ("architecture", "design"):
        assert command is not None
        assert len(text[: command.start()].split()) <= 75
    first_screen = text[: [match.end() for match in re.finditer(r"\S+", text)][:300][-1]]
    assert len(re.findall(r"^\|[ :|-]+\|$", first_screen, re.MULTILINE)) <= 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_figures_are_those_of_the_files(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT).as_posix()
    assert with_figures(text, name) == text, "python -m tests.docs.guide puts in today's figures"
    assert "<!-- figure" not in text, f"{name}: a figure has a row in {TABLE.name}, and no comment"


def test_rows_of_the_table_name_pages_that_exist() -> None:
    assert {row.page for row in read_table()} <= {str(path.relative_to(ROOT)) for path in PAGES}


def written(text: str, keys: str, before: str = "AUC is ", after: str = ".") -> str:
    """Return a page whose one figure has these keys below those of the shipped near copies."""
    source = f"measured#{SHIPPED}/near_copies/{keys}"
    return with_figures(text, "page.md", [FigurePlace("page.md", before, after, source)])


def test_a_figure_is_put_between_the_texts_around_it() -> None:
    value = value_of("measured", f"{SHIPPED}/near_copies/auc")
    right = f"{value:.1f}".removeprefix("0")
    assert written("Its AUC is .1. One is .2.", "auc") == f"Its AUC is {right}. One is .2."
    assert written("AUC is .1 to .2.", "auc", "{} to ") == f"AUC is .1 to {right}."
    assert written("a\n.1, of two", "auc", "", ", of") == f"a\n{right}, of two"
    assert written("| of .3 | **.1** |", "auc", "{} | **", "** |") == f"| of .3 | **{right}** |"


def test_a_figure_that_no_file_holds_is_noticed() -> None:
    for keys in ("precision", "auc&precision"):
        with pytest.raises(NoFigureError, match="no file holds"):
            written("AUC is .7.", keys)


@pytest.mark.parametrize(
    ("text", "times", "advice"),
    [
        ("The AUC was .7.", 0, "the sentence was changed: change"),
        ("The AUC is high.", 0, "the sentence was changed: change"),
        ("AUC is .7. AUC is .8.", 2, "write more of the text into"),
    ],
)
def test_a_place_that_the_page_lacks_or_has_twice_is_noticed(
    text: str, times: int, advice: str
) -> None:
    with pytest.raises(NoFigureError) as raised:
        written(text, "auc")
    assert str(raised.value).splitlines() == [
        f"page.md: expected a figure once, got it {times} times",
        "between 'AUC is ' and '.'",
        f"{advice} its row in docs/_site/figures.csv",
    ]


def test_two_rows_of_one_place_are_noticed() -> None:
    rows = [
        FigurePlace("page.md", before, ".", f"measured#{SHIPPED}/near_copies/auc")
        for before in ("AUC is ", "is ")
    ]
    with pytest.raises(NoFigureError, match="two rows name the same place"):
        with_figures("AUC is .7.", "page.md", rows)


def test_a_number_changed_by_hand_is_noticed() -> None:
    text = (DOCS / "which-metric.md").read_text(encoding="utf-8")
    start, _, _ = find_places(text, "docs/which-metric.md", read_table())[0]
    digit = "1" if text[start + 1] == "2" else "2"
    changed = f"{text[: start + 1]}{digit}{text[start + 2 :]}"
    assert changed != text
    assert with_figures(changed, "docs/which-metric.md") == text


def test_several_numbers_of_one_object_stand_together() -> None:
    value, low, high = value_of("measured", f"{SHIPPED}/near_copies/auc&interval")
    right = f"AUC is {value:.1f} ({low:.1f} to {high:.1f}).".replace("0.", ".")
    assert written("AUC is .7 (.6 to .8).", "auc&interval") == right
    with pytest.raises(NoFigureError, match="expected 2 numbers in the page"):
        written("AUC is .7 (.6 to .8).", "interval")


def test_a_share_may_be_written_as_a_count() -> None:
    value = value_of("measured", f"{SHIPPED}/near_copies/auc")
    assert written("AUC is 1 of 40.", "auc") == f"AUC is {40 * value:.0f} of 40."


def test_the_tables_are_those_of_the_files() -> None:
    assert tables.PAGE.read_text(encoding="utf-8") == tables.page(), "python -m tests.docs.guide"


@pytest.mark.parametrize("page", PLACES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_names_another_entailer_than_the_one_that_ships(page: Path) -> None:
    named = set(re.findall(r"embedded:(\d+)", page.read_text(encoding="utf-8")))
    assert named <= {SHIPPED.partition(":")[2]}


def test_the_entailer_that_ships_has_figures() -> None:
    assert SHIPPED in MEASURED.read_text(encoding="utf-8")


def test_nothing_is_installed_by_a_name_that_the_index_does_not_have() -> None:
    others = [
        *ROOT.glob("integrations/*/README.md"),
    ]
    texts = {path: path.read_text(encoding="utf-8") for path in (*PAGES, *SOURCES, *others)}
    ours = "|".join(
        tomllib.loads(path.read_text(encoding="utf-8"))["project"]["name"]
        for place in (".", "papers", "cluster", "serve", "integrations/*")
        for path in ROOT.glob(f"{place}/pyproject.toml")
    )
    by_name = re.compile(rf"pip install (?:[-.]\S+ )*['\"]?(?:{ours})(?![\w-])")
    extras = set(re.findall(r"^(\S+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE))
    for path, text in texts.items():
        assert not by_name.search(text), path
        for extra in re.findall(r"pip install '\.\[([\w,-]+)\]'", text):
            assert set(extra.split(",")) <= extras, (path, extra)
        for extra in re.findall(r"\b(?:install|requirement)\(['\"]([\w-]+)['\"]\)", text):
            assert extra in extras, (path, extra)


QUERIES = {
    "fail ci faithfulness": "errands/ci",
    "github actions": "errands/ci",
    "compare two models": "errands/compare-models",
    "csv file": "errands/chat-logs-and-csv",
    "chat log": "errands/chat-logs-and-csv",
    "notebook pandas": "errands/notebook",
    "second judge": "errands/second-judge",
    "which metric": "which-metric",
    "which metric chat logs": "which-metric",
    "low score why": "low-scores",
    "get started": "start",
    "trustscore": "methods/trustscore",
    "fewl": "methods/fewl",
    "harmonicity gamma": "methods/harmonicity",
    "citation precision": "methods/grounding",
    "faithfulness": "methods/faithfulness",
    "rubric": "methods/judge",
    "judge variance": "methods/judge",
    "rouge bleu": "methods/reference",
    "input format json": "input",
    "ragas file": "input",
    "german": "input",
    "openai key": "models/chat-models",
    "price budget": "models/chat-models",
    "embedded entailer accuracy": "models/embedded",
    "hf entailer": "models/entailers",
    "own model python": "models/own",
    "own metric": "models/own",
    "resume killed run": "runs",
    "confidence interval": "intervals",
    "drift monitoring": "monitoring",
    "privacy data sent": "privacy",
    "ray cluster": "big-runs",
    "slurm": "big-runs",
    "http service": "live/serve",
    "litellm proxy": "live/proxy",
    "llamaindex": "live/llamaindex",
    "langfuse": "live/tools",
    "annotate answers": "people/annotate",
    "which answers to rate next": "people/label",
    "calibrate probability": "people/calibrate",
    "kappa agreement raters": "people/agree",
    "study correlation labels": "people/study",
    "distractors": "methods/trustscore",
    "add citations": "data",
    "reproduce paper": "papers",
    "install": "start",
    "how to install": "start",
    "hallucination": "methods/faithfulness",
    "confidence": "intervals",
    "gpu": "big-runs",
    "kubernetes": "big-runs",
    "gitlab": "errands/ci",
    "jupyter": "errands/notebook",
    "pandas": "errands/notebook",
    "pairwise": "errands/compare-models",
    "win rate": "errands/compare-models",
    "excel": "input",
    "sample size": "intervals",
    "rag evaluation": "methods/grounding",
    "llm as a judge": "methods/judge",
    "false positives": "which-metric",
    "offline": "privacy",
    "azure": "models/chat-models",
    "exit status": "runs",
    "rank models": "errands/compare-models",
    "mlflow": "live/tools",
}
"""What people type, and the page that must be among the first three."""


@pytest.mark.parametrize("query", QUERIES)
def test_the_page_is_found(query: str) -> None:
    found = [page.name for page in guide.search(query, pages())]
    assert QUERIES[query] in found[:3]


def test_help_lists_searches_and_prints_pages() -> None:
    run = CliRunner().invoke
    assert "errands/ci " in run(app, ["help"]).output
    found = run(app, ["help", "compare", "two", "models"]).output
    assert found.startswith("errands/compare-models: ")
    text = (DOCS / "errands/ci.md").read_text(encoding="utf-8")
    assert run(app, ["help", "errands/ci"]).output.strip() == text.strip()
    nothing = run(app, ["help", "xyzzyx"])
    assert nothing.exit_code == 2 and "no page of the guide contains 'xyzzyx'" in nothing.output


def test_errands_and_methods_have_executed_parts() -> None:
    for page in (*DOCS.glob("errands/*.md"), *DOCS.glob("methods/*.md")):
        assert "<!-- executed -->" in page.read_text(encoding="utf-8") or page.stem in {
            "ci",
            "reference",
        }, page.name


def test_old_addresses_lead_to_pages_of_today() -> None:
    moved = yaml.safe_load((DOCS / "_site/moved.json").read_text(encoding="utf-8"))
    assert len(moved) > 40
    for old, new in moved.items():
        assert not (DOCS / old).exists()
        place = ROOT / "lab" if new.startswith("results/") else DOCS
        assert (place / new).exists(), new
