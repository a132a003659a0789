"""Markdown and JUnit of a gate: read back by parsers, with hostile answers."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from markdown_it import MarkdownIt

from tests.workflows.towns import town_run, towns
from trustassay.compare.gate import gate
from trustassay.compare.gate_rules import Bound, Earlier, Gate, Result, junit, markdown

HOSTILE = (
    "``` @octocat [x](javascript:alert(1)) ![i](https://h.test/p.png) <img src=x> | a \\| b\n"
    "# head ]]> </failure> \x00\x0b\ud800 #1 `q` https://h.test"
)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Gate:
    """Return a gate with rules of all results, with hostile questions."""
    home = tmp_path_factory.mktemp("runs")
    for name in ("base", "junk"):
        rows = (
            row | {"question": f"{row['question']} {HOSTILE}"}
            for row in towns(66, junk=name == "junk")
        )
        town_run(home / name, rows)
    bounds = [
        Bound("grounding.answered_citation_f1", 60, at_least=True),
        Bound("grounding.failed", 0, at_least=False),
    ]
    return gate(home / "junk", bounds, Earlier(home / "base"))


def test_results_of_all_kinds(found: Gate) -> None:
    assert [one.result for one in found.checks] == ["undecided", "pass", "fail", "pass"]


def test_markdown_holds_no_markup_of_answers(found: Gate) -> None:
    text = markdown(found)
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    inline = [child for one in tokens for child in one.children or ()]
    assert {one.type for one in inline} <= {"text", "code_inline", "softbreak"}
    html = [one.content for one in tokens if one.type == "html_block"]
    assert len(html) == 2  # the fold around the list
    assert "got worse" in html[0]
    plain = "".join(one.content for one in inline if one.type == "text")
    assert not any(piece in plain for piece in ("octocat", "javascript", "h.test", "<img"))
    assert any("@octocat" in one.content for one in inline if one.type == "code_inline")


def test_markdown_is_a_table_of_the_rules_and_a_list_of_answers(found: Gate) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown(found))
    assert sum(one.type == "tr_open" for one in tokens) == 5
    assert sum(one.type == "td_open" for one in tokens) == 24
    items = [
        one.content for one in tokens if one.type == "inline" and "Where is town" in one.content
    ]
    assert len(items) == 20
    assert "… and 2 more" in markdown(found)


@pytest.mark.parametrize(
    ("undecided", "skipped", "failures"), [("undecided", 1, 1), ("fail", 0, 2)]
)
def test_junit(found: Gate, undecided: Result, skipped: int, failures: int) -> None:
    root = ET.fromstring(junit(found, undecided))
    assert root.tag == "testsuites"
    (suite,) = root
    cases = list(suite)
    assert {one.tag for one in cases} == {"testcase"}
    assert suite.get("tests") == str(len(cases)) == "4"
    assert suite.get("skipped") == str(len(suite.findall(".//skipped"))) == str(skipped)
    assert suite.get("failures") == str(len(suite.findall(".//failure"))) == str(failures)
    assert all(one.get("classname") and one.get("name") and one.get("time") for one in cases)
    text = suite.findall(".//failure")[-1].text or ""
    assert "answers that got worse: 22" in text
    assert "Where is town 0? ``` @octocat" in text
    assert "\ufffd" in text
