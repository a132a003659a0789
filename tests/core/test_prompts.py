"""Prompts are files: versions, faults with their place, and values that are never templates."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.core.prompts import Prompt, PromptError


def prompt(folder: Path, text: str) -> Prompt:
    path = folder / "judge.jinja"
    path.write_text(text, encoding="utf-8")
    return Prompt.read(path)


def test_the_first_line_may_give_a_version_else_the_content_does(tmp_path: Path) -> None:
    assert prompt(tmp_path, "{# version 2 #}x").name == "judge/2"
    assert prompt(tmp_path, "{#- version 2b -#}\nx").name == "judge/2b"
    one, other = prompt(tmp_path, "x"), prompt(tmp_path, "y")
    assert one.name != other.name
    assert one.name == prompt(tmp_path, "x").name
    assert len(one.name) == len("judge/") + 8


def test_faults_have_their_place(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match=r"judge\.jinja:3: "):
        prompt(tmp_path, "a\nb\n{% if %}")
    for text, words in (
        ("{{ x }}", "'x' is undefined"),
        ("{{ 1 // 0 }}", "ZeroDivisionError"),
        ("{{ question.__class__.__base__ }}", "unsafe"),
        ("{% set _ = shown.append(1) %}", "not safe|unsafe|immutable"),
    ):
        with pytest.raises(PromptError, match=words):
            prompt(tmp_path, text).fill(question="?", shown=[])
    with pytest.raises(FileNotFoundError):
        Prompt.read(tmp_path / "none.jinja")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_filled_in_is_text(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    filled = prompt(tmp_path_factory.getbasetemp(), "<{{ question }}>").fill(question=value)
    assert filled == f"<{value}>"
