"""Names mean one thing and say what they hold; comments are there where a reader would stop.

``names_allowed.txt`` lists what remains, and may only shrink: a line that is no longer needed
fails, too.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = (ROOT / "src/trustassay", ROOT / "integrations/llama-index-evaluation-trust-eval")
ALLOWED = ROOT / "tests/names_allowed.txt"
FILLERS = frozenset("found told said own given held shown named looked kept".split())
"""Names that say how a value was come by, and not what it is."""
IRREGULAR = frozenset(
    "told said shown given held kept found made taken drawn written left built sent done seen "
    "known chosen bound got spent lost met put".split()
)
"""Participles that do not end in ``ed``."""
VERBS_IN_ED = frozenset("need feed embed exceed proceed".split())
MIN_COMMENTS_PER_100_LINES = 6
LONG_FUNCTION_LINES = 60
"""A longer function has comments at its steps: one for every ``STEP_LINES`` lines at least."""
STEP_LINES = 25
MAX_EXCEPTIONS = 27
"""Lower it when the list has become shorter."""


def files() -> Iterator[Path]:
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            if "tests" not in path.relative_to(ROOT).parts:
                yield path


@cache
def parsed() -> list[tuple[str, ast.Module, str]]:
    """Return the path, the tree and the text of each module that ships."""
    texts = [(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in files()]
    return [(name, ast.parse(text), text) for name, text in texts]


def allowed(rule: str) -> set[str]:
    lines = ALLOWED.read_text(encoding="utf-8").splitlines()
    return {line.split(maxsplit=1)[1] for line in lines if line.startswith(f"{rule} ")}


def check(rule: str, occurring: set[str]) -> None:
    """Compare what occurs with the list of exceptions, both ways."""
    listed = allowed(rule)
    assert occurring - listed == set(), "new names against the style guide"
    assert listed - occurring == set(), f"no longer needed in {ALLOWED.name}: remove them"


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def comment_lines(text: str) -> list[int]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    skipped = ("# type:", "# noqa")
    return [
        token.start[0]
        for token in tokens
        if token.type == tokenize.COMMENT and not token.string.startswith(skipped)
    ]


def code_lines(tree: ast.Module, text: str) -> int:
    """Count lines without comments, docstrings and blank lines."""
    ignored = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in ignored and token.type != tokenize.ENDMARKER:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def test_the_list_of_exceptions_only_shrinks() -> None:
    assert len(ALLOWED.read_text(encoding="utf-8").splitlines()) <= MAX_EXCEPTIONS


def test_a_class_name_has_one_meaning() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for name, tree, _ in parsed():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    check("class", {name for name, defined in places.items() if len(defined) > 1})


def test_variables_say_what_they_hold() -> None:
    occurring = set()
    for path, tree, _ in parsed():
        for node in ast.walk(tree):
            name = None
            if isinstance(node, ast.arg):
                name = node.arg
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            if name in FILLERS:
                occurring.add(f"{path} {name}")
    check("variable", occurring)


def test_functions_are_verb_phrases() -> None:
    occurring = set()
    for path, tree, _ in parsed():
        for function in functions(tree):
            if any("property" in ast.unparse(each) for each in function.decorator_list):
                continue
            word = function.name.strip("_").split("_")[0]
            if word in IRREGULAR or (word.endswith("ed") and word not in VERBS_IN_ED):
                occurring.add(f"{path} {function.name}")
    check("function", occurring)


def test_long_functions_have_a_comment_at_each_step() -> None:
    occurring = set()
    for path, tree, text in parsed():
        comments = comment_lines(text)
        for function in functions(tree):
            end = function.end_lineno or function.lineno
            body = end - function.body[0].lineno + 1
            if body > LONG_FUNCTION_LINES:
                inside = sum(function.lineno < line <= end for line in comments)
                if inside < body // STEP_LINES:
                    occurring.add(f"{path} {function.name}")
    check("long", occurring)


def test_there_are_comments() -> None:
    comments = sum(len(comment_lines(text)) for _, _, text in parsed())
    code = sum(code_lines(tree, text) for _, tree, text in parsed())
    assert 100 * comments / code >= MIN_COMMENTS_PER_100_LINES
