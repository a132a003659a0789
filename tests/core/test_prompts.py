"""Prompts are files: versions, faults with their place, and values that are never templates."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.core.prompts import Prompt, PromptError
from trustassay.metrics.judge.options import PROMPT_VARIABLES
from trustassay.runs.answering import PROMPT_VARIABLES as ANSWERING_VARIABLES


def _all_declared() -> Iterator[tuple[str, str, str]]:
    """Yield each prompt that a file may replace, with the variables of such a file."""
    metrics = "trustassay.metrics"
    yield f"{metrics}.judge", "judge", PROMPT_VARIABLES
    yield "trustassay.backends", "entailment", "premise hypothesis"
    yield "trustassay.backends", "entailment_odds", "premise hypothesis contradicted"
    for form in ("ref", "src", "evid"):
        yield f"{metrics}.reference", f"gptscore-{form}", "text question passages"
    for style in ("closed-book", "rag", "rag-refusal", "icl"):
        yield "trustassay.runs", style, ANSWERING_VARIABLES
    yield "trustassay.runs", "diverse-answers", "question sample answers"


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


def test_an_undefined_variable_is_reported_with_its_line_and_those_that_exist(
    tmp_path: Path,
) -> None:
    template = prompt(tmp_path, "one\n{% if question %}\n{{ answr }}\n{% endif %}")
    with pytest.raises(PromptError) as raised:
        template.fill(question="?", answer="!")
    place = tmp_path / "judge.jinja"
    assert str(raised.value) == (
        f"{place}:3: 'answr' is undefined; the variables are question, answer"
    )
    with pytest.raises(PromptError, match=r"judge\.jinja:2: ZeroDivisionError"):
        prompt(tmp_path, "one\n{{ 1 // 0 }}").fill()


def test_a_file_with_an_unknown_variable_is_refused_where_no_sample_reaches_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "own.jinja"
    path.write_text("{% if answer %}\n{{ answer }}\n{% else %}\n{{ answr }}\n{% endif %}")
    with pytest.raises(PromptError) as raised:
        Prompt.read(path, "question answer")
    assert str(raised.value) == (
        f"{path}:4: 'answr' is undefined; the variables are question, answer"
    )
    # Names that the template sets itself, and Jinja's functions, are none of ours.
    path.write_text("{% set n = 2 %}{% for i in range(n) %}{{ loop.index }}{{ i }}{% endfor %}")
    assert Prompt.read(path, "question").fill() == "1021"


def test_a_misspelt_field_of_the_sample_is_refused_with_those_that_exist(tmp_path: Path) -> None:
    path = tmp_path / "own.jinja"
    path.write_text("{{ sample.question }}\n{{ sample.quesiton }}")
    with pytest.raises(PromptError, match=r":2: sample has no field 'quesiton'; .*question, "):
        Prompt.read(path, "rubric sample")
    path.write_text("{{ sample.answered }}{{ rubric.quesiton }}")
    assert Prompt.read(path, "rubric sample")


@pytest.mark.parametrize(("package", "name", "variables"), list(_all_declared()))
def test_the_prompts_that_ship_use_the_variables_that_are_declared_for_files(
    package: str, name: str, variables: str
) -> None:
    shipped = files(package) / "prompts" / f"{name}.jinja"
    with as_file(shipped) as path:
        assert Prompt.read(path, variables).name


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_filled_in_is_text(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    filled = prompt(tmp_path_factory.getbasetemp(), "<{{ question }}>").fill(question=value)
    assert filled == f"<{value}>"
