"""The files of a reproduction: what they replace, and how texts of models stand in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, cli
from trustassay.errors import UsageError
from trustassay.papers.reproduce.tables import (
    ReproducedCell,
    ReproducedRow,
    ReproducedTable,
    Reproduction,
)

__all__ = ["cli"]


def build_result(answer: str = "yes", difference: str = "None.") -> Reproduction:
    rows = [ReproducedRow(answer, [ReproducedCell(answer, {"answer": answer})])]
    table = ReproducedTable("Table 1", "answers", ["Output"], rows, notes=[f"It is {answer}."])
    return Reproduction("harmonicity", "A paper", "One answer.", [table], [difference], {"T": "x"})


OTHER_WORK: Mapping[str, tuple[str, str]] = {
    "a text of the user": ("reproduction.md", "my notes"),
    "a page of the user": ("reproduction.html", "<p>mine"),
    "tables of another paper": ("reproduction.json", '{"paper": "trustscore"}'),
    "JSON without a paper": ("reproduction.json", "[1]"),
    "no JSON": ("reproduction.json", "{"),
}


@pytest.mark.parametrize("kind", OTHER_WORK)
def test_other_work_in_the_folder_is_refused_before_anything_is_scored(
    kind: str, cli: Cli, tmp_path: Path
) -> None:
    name, content = OTHER_WORK[kind]
    out = tmp_path / "oc"
    out.mkdir()
    (out / name).write_text(content)
    result = cli("papers", "reproduce", "harmonicity", "--out", "oc")
    assert result.status == 2
    assert "oc holds" in result.err
    assert "choose another --out" in result.err
    with pytest.raises(UsageError, match="choose another --out"):
        build_result().write(out)
    assert [path.name for path in out.iterdir()] == [name]
    assert (out / name).read_text() == content


def test_a_file_is_no_folder_for_the_tables(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    result = cli("papers", "reproduce", "harmonicity", "--out", "notes.txt")
    assert (result.status, "is a file" in result.err) == (2, True)


def test_an_earlier_result_of_the_same_paper_is_replaced(tmp_path: Path) -> None:
    build_result("first").write(tmp_path)
    build_result("second").write(tmp_path)
    for name in ("reproduction.json", "reproduction.md", "reproduction.html"):
        assert "second" in (tmp_path / name).read_text()


@pytest.mark.parametrize(
    ("answer", "written"),
    [
        ("\x1b[31mred", r"\<U+001B\>\[31mred"),
        ("a\x9b1mb\udc00c", r"a\<U+009B\>1mb\<U+DC00\>c"),
        ("a\x07b\u202ec", r"a\<U+0007\>b\<U+202E\>c"),
        ("two\r\nlines\tand\u00a0space", "two lines and space"),
    ],
)
def test_control_characters_are_visible_in_markdown(
    answer: str, written: str, tmp_path: Path
) -> None:
    build_result(answer, difference=answer).write(tmp_path)
    text = (tmp_path / "reproduction.md").read_text()
    assert text.count(written) == 4  # a row's name, its cell, a note and a difference
    assert all(character.isprintable() or character == "\n" for character in text)
    raw = (tmp_path / "reproduction.json").read_text()
    assert all(character.isprintable() or character in "\n\u00a0" for character in raw)
    assert json.loads((tmp_path / "reproduction.json").read_text())["differences"] == [answer]


def test_backticks_are_code_in_markdown_and_on_the_page(tmp_path: Path) -> None:
    build_result(difference="Run `a_b --x <y>` with <b>.").write(tmp_path)
    assert r"- Run `a_b --x <y>` with \<b\>." in (tmp_path / "reproduction.md").read_text()
    page = (tmp_path / "reproduction.html").read_text()
    assert "<li>Run <code>a_b --x &lt;y&gt;</code> with &lt;b&gt;.</li>" in page


def test_a_backtick_without_its_pair_stays(tmp_path: Path) -> None:
    build_result(difference="A ` alone").write(tmp_path)
    assert r"- A \` alone" in (tmp_path / "reproduction.md").read_text()
    assert "<li>A ` alone</li>" in (tmp_path / "reproduction.html").read_text()


def test_what_differs_and_what_is_missing_are_lists(tmp_path: Path) -> None:
    build_result().write(tmp_path)
    page = (tmp_path / "reproduction.html").read_text()
    assert page.count('<ul class="lines">') == 2
    assert "<li>T: x</li>" in page
