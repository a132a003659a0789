"""List the strings that a user can see, for an editor to read in one go.

    python -m tests.docs.strings                  # room, kind, file, line and text, as CSV
    python -m tests.docs.strings --since 21a3548c # what was changed since a commit: before, after

Python strings come from the syntax tree: f-strings keep their fields as ``{expression}``. A string
counts as prose if it has two words or more and is not SQL, a pattern or markup alone. Of docstrings
only those of commands are listed, which ``--help`` prints. Pages give the text between their tags
and the strings of their scripts.
"""

import argparse
import ast
import csv
import difflib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from itertools import zip_longest
from pathlib import Path, PurePosixPath

ROOT = "src/trustassay"
# Prompts are for models, SQL is for SQLite, weights and word lists are data.
PAGES = (".jinja", ".html", ".js")
NOT_FOR_USERS = ("/prompts/", "/weights/", "/papers/dataset.py")
HELP_CALLS = {"Flag", "Option", "Argument", "Typer", "option", "group"}
COMMANDS = {"with_options", "command", "callback"}
"""Decorators of functions whose docstring is their help."""
SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|ALTER|DROP|WITH|BEGIN)\b")
PATTERN = re.compile(r"\\[bdswWS.]|\(\?[:=!P<]|\[\^|\)[*+?]|\]\+|\|\w+\|")
WORD = re.compile(r"[A-Za-z][a-z']+")
TAG = re.compile(r"<[^>]*>|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
JS_STRING = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`")


@dataclass(frozen=True)
class VisibleString:
    """One string that a user can see."""

    room: str
    """The package of `trustassay` that it is in."""
    kind: str
    """`help`, `error`, `text` or `page`."""
    file: str
    line: int
    text: str


def list_strings(revision: str | None = None) -> list[VisibleString]:
    """Return the visible strings of the working tree, or of a commit, in order of files."""
    strings: list[VisibleString] = []
    for file in _list_files(revision):
        path = PurePosixPath(file)
        if any(part in file for part in NOT_FOR_USERS):
            continue
        if path.suffix == ".py":
            find = find_in_python
        elif path.suffix in PAGES:
            find = find_in_page
        else:
            continue
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        strings += [
            VisibleString(room, kind, file, line, text)
            for line, kind, text in sorted(find(_read(file, revision)))
        ]
    return strings


def list_changes(revision: str) -> Iterator[tuple[str, str, str]]:
    """Return file, text before and text after of each string changed since a commit.

    A removed string has no text after; a new one has none before.
    """
    before, after = _group_by_file(list_strings(revision)), _group_by_file(list_strings())
    for file in sorted(before.keys() | after.keys()):
        old, new = before.get(file, []), after.get(file, [])
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        for operation, i1, i2, j1, j2 in matcher.get_opcodes():
            if operation != "equal":
                for pair in zip_longest(old[i1:i2], new[j1:j2], fillvalue=""):
                    yield file, *pair


def _group_by_file(strings: list[VisibleString]) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {}
    for string in strings:
        texts.setdefault(string.file, []).append(string.text)
    return texts


def _list_files(revision: str | None) -> list[str]:
    command = ["git", "ls-files", ROOT]
    if revision is not None:
        command = ["git", "ls-tree", "-r", "--name-only", revision, ROOT]
    return subprocess.check_output(command, text=True).splitlines()


def _read(file: str, revision: str | None) -> str:
    if revision is None:
        return Path(file).read_text(encoding="utf-8")
    return subprocess.check_output(["git", "show", f"{revision}:{file}"], text=True)


def find_in_python(source: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, kind and text of the prose of one module, without docstrings for programmers."""
    tree = ast.parse(source)
    kinds: dict[ast.AST, str] = {}
    docstrings: set[ast.AST] = set()
    inner: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and COMMANDS & {*map(_name_of, node.decorator_list)}:
            if isinstance(node.body[0], ast.Expr):
                kinds[node.body[0].value] = "help"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if node.value not in kinds:
                docstrings.add(node.value)
        elif isinstance(node, ast.Raise):
            kinds.update(dict.fromkeys(ast.walk(node), "error"))
        elif isinstance(node, ast.Call) and _name_of(node.func) in HELP_CALLS:
            kinds.update(dict.fromkeys(ast.walk(node), "help"))
        elif isinstance(node, ast.Attribute) and node.attr == "split":
            # A list of words, written as one text.
            inner.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            inner.update(child for child in ast.walk(node) if isinstance(child, ast.Constant))
        if isinstance(node, ast.JoinedStr | ast.Constant) and node not in docstrings | inner:
            text = _render(node)
            if text is not None and _is_prose(text):
                yield node.lineno, kinds.get(node, "text"), text


def _name_of(function: ast.expr) -> str:
    """Return the last name of a function, or of a decorator with or without arguments."""
    if isinstance(function, ast.Call):
        return _name_of(function.func)
    return function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)


def _render(node: ast.JoinedStr | ast.Constant) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    parts = [
        str(part.value) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
        for part in node.values
        if isinstance(part, ast.Constant | ast.FormattedValue)
    ]
    return "".join(parts)


def _is_prose(text: str) -> bool:
    plain = re.sub(r"\{[^}]*\}", " ", text)
    if SQL.match(text) or PATTERN.search(text) or len(WORD.findall(plain)) < 2:
        return False
    return " " in text.strip()


def find_in_page(source: str) -> Iterator[tuple[int, str, str]]:
    """Yield the strings of scripts and the text between tags of one page."""
    for match in JS_STRING.finditer(source):
        text = next(group for group in match.groups() if group is not None)
        if _is_prose(text) and not re.search(r"[;{}]\s|=>|^\w+\(", text):
            yield source.count("\n", 0, match.start()) + 1, "page", " ".join(text.split())
    position = 0
    for match in TAG.finditer(source):
        text = " ".join(source[position : match.start()].split())
        if _is_prose(text) and not re.search(r"[;]|=>|\w\(", text) and "=" not in text:
            yield source.count("\n", 0, position) + 1, "page", text
        position = match.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--since", metavar="COMMIT", help="list what was changed since a commit")
    arguments = parser.parse_args()
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if arguments.since is None:
        writer.writerow(field.name for field in fields(VisibleString))
        writer.writerows(astuple(string) for string in list_strings())
    else:
        writer.writerow(("file", "before", "after"))
        writer.writerows(list_changes(arguments.since))


if __name__ == "__main__":
    main()
