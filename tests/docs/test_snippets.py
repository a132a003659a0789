"""The code of the documentation is run, and what it prints is what the pages say.

The executed parts of a page run as they stand there. All other commands of trustassay are read by
the real parser, and run in a folder that has the files they name, with scripted models in place of
endpoints; ``PARSED_ONLY`` says why some are not run.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import typer.exceptions
import typer.main

from tests.docs import world
from tests.docs.pages import (
    EXECUTED,
    PAGES,
    blocks,
    filled_in,
    inside,
    run_command,
    run_page,
)
from trustassay.cli.main import app

PARSED_ONLY = {
    r"--import|agree ratings\.jsonl --run runs/one$": "reads what people rated",
    r"qa_human_check|TruthfulQA|wikipedia/|asqa\.json|training/|mixed/": "reads other data",
    r"profile=paper": "needs NLTK's data",
    r"hf:": "loads torch; the tests of backends do",
    r"gguf:": "needs a model's file; tests/backends/test_gguf.py makes one",
    r"^trustassay (annotate|serve|view)\b(?!.*--(export|import))|--follow": "waits for others",
    r"^trustassay papers (experiment|dataset mixedqa)\b": "reads published files that are not here",
    r"^trustassay papers reproduce .*--data": "reads other data; tests/papers/reproduce has some",
    r"^trustassay gate runs/new": "tests/cli/test_gate.py has such runs",
    r"Prompt .*Reply|models\.html|shard|--engine|^trustassay merge": "reads other files",
    r"^trustassay calibrate\b|--calibrator": "reads labelled runs, as tests/cli/test_calibrate.py",
    r"^trustassay monitor .*--audit": "reads a calibrator; see tests/cli/test_monitor_audit.py",
    r"systemone:|decisions:": "asks a server; see tests/backends/test_decision_models.py",
    r"s3://|duckdb:": "reads from elsewhere, as tests/ray does",
    r"^trustassay study\b": "reads labelled runs; tests/cli/test_study.py has them",
    r"^trustassay label\b": "reads ratings of a run; tests/cli/test_label.py has them",
    r"^trustassay compare .*--labels": "reads labelled runs; tests/cli/test_corrected.py has them",
}
"""By pattern, why commands of the pages are read by the parser and not run."""


_COMMAND = re.compile(r"(?:\w+=\S* )*(trustassay .*)")
"""A command, behind settings of the environment if there are any."""


def commands(page: Path, executed: bool = False) -> list[tuple[str, str]]:
    """Return the commands of a page in order, each with the folder that ``cd`` names before it.

    ``executed``: those of its executed parts, else all others.
    """
    found: dict[str, str] = {}
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.reason or block.executed is not executed:
            continue
        place = "."
        for line in block.commands() if block.language in ("", "sh", "bash") else ():
            if line.startswith("cd "):
                place = line.split()[1]
            elif match := _COMMAND.match(line):
                words = [word for word in shlex.split(match[1], comments=True) if word[:1] != "$"]
                found.setdefault(shlex.join(words), place)
    return [(place, line) for line, place in found.items()]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files and runs that the pages name, built once for all of them."""
    folder = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRUSTASSAY_CACHE", str(folder / "cache"))
        world.build(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", EXECUTED, ids=lambda page: page.stem)
def test_what_a_page_says_is_printed_is_printed(page: Path, tmp_path: Path) -> None:
    for one in run_page(page.read_text(encoding="utf-8"), tmp_path):
        assert one.agrees(), (
            f"{page.name}:{one.block.line} prints\n{one.actual}\n"
            "if that is right: python -m tests.docs.pages --write"
        )


@pytest.mark.parametrize(
    ("says", "agrees"),
    [
        ("one\ntwo 3 s\nfour\n", True),
        ("one\n…\nfour\n", True),
        ("one\n…\nfive\n", False),
        ("one\ntwo 9 s\n", False),
        ("one\nten 3 s\nfour\n", False),
    ],
)
def test_other_output_is_noticed(says: str, agrees: bool, tmp_path: Path) -> None:
    code = '```python\nprint("one\\ntwo 4 s\\nfour")\n```'
    page = f"<!-- executed -->\n{code}\n\n```text\n{says}```\n\n<!-- /executed -->\n"
    printed = run_page(page, tmp_path)
    assert [one.agrees() for one in printed] == [agrees]
    shown = "one\ntwo 4 s\nfour" if not agrees and "…" not in says else says.rstrip()
    assert f"```text\n{shown}\n```" in filled_in(page, printed)


def pages_with_commands() -> list[Path]:
    return [page for page in PAGES if commands(page)]


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_with_commands(), ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(page: Path, files: Path, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    shutil.copytree(files, folder, symlinks=True)
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.title and not block.executed:
            (folder / block.title).write_text(block.body, encoding="utf-8")
    for place, line in commands(page):
        if not any(re.search(pattern, line) for pattern in PARSED_ONLY):
            with inside(folder / place):
                # A scripted judge names no choice of two answers: nothing can be judged.
                by_judge = line.startswith("trustassay compare") and "--judge" in line
                run_command(world.scripted(line), allowed=(0, 1) if by_judge else (0,))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_parser_reads_each_command(page: Path) -> None:
    for _, line in (*commands(page), *commands(page, executed=True)):
        parse(shlex.split(line)[1:])


def parse(arguments: list[str]) -> None:
    """Read the arguments as the command line does, and run nothing.

    Raises:
        TyperException: an option or a command does not exist, or a value is refused.
    """
    command: Any = typer.main.get_command(app)
    context = command.make_context("trustassay", list(arguments))
    while hasattr(command, "resolve_command"):
        _, found, arguments = command.resolve_command(
            context, context._protected_args + context.args
        )
        assert found is not None
        command = found
        context = command.make_context(command.name, list(arguments), parent=context)


def test_the_parser_notices_what_is_wrong() -> None:
    for line in (
        "scor a.jsonl",
        "score a.jsonl --metrics x",
        "score a.jsonl --limit many",
    ):
        with pytest.raises(typer.exceptions.TyperException):
            parse(line.split())


@pytest.mark.parametrize("pattern", PARSED_ONLY)
def test_each_exception_is_needed(pattern: str) -> None:
    lines = [line for page in PAGES for _, line in commands(page)]
    assert any(re.search(pattern, line) for line in lines)


PYTHON_ELSEWHERE = {"CONTRIBUTING.md": "tests/test_contributing.py runs it"}
"""Pages whose Python other tests run."""


def code(page: Path) -> list[str]:
    """Return the Python of a page, but for what loads torch."""
    found = blocks(page.read_text(encoding="utf-8"))
    return [
        block.body
        for block in found
        if block.language == "python" and not (block.title or block.reason or block.executed)
        if "hf:" not in block.body
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if code(page) and page.name not in PYTHON_ELSEWHERE],
    ids=lambda page: page.stem,
)
def test_the_python_of_a_page_runs(page: Path, files: Path, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    shutil.copytree(files, folder, symlinks=True)
    lines = (folder / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    names = {
        "__name__": "docs_page",
        "samples": [json.loads(line) for line in lines],
        "my_model": lambda premise, hypothesis: float(hypothesis in premise),
        "prompts": ["Who invented the piano?"],
    }
    with inside(folder):
        for body in code(page):
            text = re.sub(
                r'"(?:openai|anthropic|gemini):[^"]*"', '"python:page_models:model"', body
            )
            exec(compile(text, page.name, "exec"), names)
