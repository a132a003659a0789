"""Reads the code of the documentation and runs it: files, commands and Python of one page in order.

    python -m tests.docs.pages --write docs/start.md      # put in the output that is printed today

Between ``<!-- executed -->`` and ``<!-- /executed -->`` a page is executed as it stands, in an
empty folder: a fence with a title (``json title="log.jsonl"``) is a file, ``bash`` holds commands,
``python`` is code, and ``text`` after either is what it prints. A line ``…`` in it stands for any
number of lines. All other commands and Python of a page run in a folder that has the files they
name, with scripted models in place of endpoints (:mod:`tests.docs.world`); their output is not
compared. ``<!-- not run: REASON -->`` above a fence leaves it out.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from typer.testing import CliRunner

from trustassay.cli.main import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")])
_EXECUTED = re.compile(r"^<!-- executed -->$.*?^<!-- /executed -->$", re.MULTILINE | re.DOTALL)
EXECUTED = [page for page in PAGES if _EXECUTED.search(page.read_text(encoding="utf-8"))]
"""Pages with code that runs as it stands there, and whose output is compared."""
COLUMNS = "100"
PAGE = "docs_page"
_FENCE = re.compile(
    r"(?:^ *<!-- not run: (?P<reason>[^\n]*?) -->\n+)?"
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_TIME = re.compile(r" *\b\d+ (?:s|min)(?: to \d+ (?:s|min))?(?!\w)")
_FIRST = re.compile(r"^first result of [\d,]+: .*\n?", re.MULTILINE)
"""The first verdict, which is progress: only what was imported under the patch leaves it out."""
_TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True)
class Block:
    """A fence of a page. span: where its body stands in the page's text."""

    line: int
    language: str
    title: str
    body: str
    reason: str
    executed: bool
    span: tuple[int, int]

    def commands(self) -> list[str]:
        """Return the shell commands of the block, joined where a line ends in a backslash."""
        joined = re.sub(r"\\\n\s*", " ", self.body)
        return [line.strip() for line in joined.splitlines() if line.strip()]


def blocks(text: str) -> list[Block]:
    """Return the fences of a page in order."""
    found = []
    regions = [match.span() for match in _EXECUTED.finditer(text)]
    for match in _FENCE.finditer(text):
        language, _, rest = match["info"].strip().partition(" ")
        title = _TITLE.search(rest)
        found.append(
            Block(
                text.count("\n", 0, match.start("body")),
                language,
                title[1] if title else "",
                re.sub(rf"^{match['indent']}", "", match["body"], flags=re.MULTILINE),
                match["reason"] or "",
                any(start < match.start() < end for start, end in regions),
                match.span("body"),
            )
        )
    return found


@dataclass(frozen=True)
class Printed:
    """What a page says is printed, and what is."""

    block: Block
    actual: str

    def agrees(self) -> bool:
        """Whether both are the same, but for spaces at ends of lines; ``…`` is any lines."""
        parts = [re.escape(part) for part in plain(self.block.body).split("\n…\n")]
        return re.fullmatch("\n(?:.*\n)??".join(parts), plain(self.actual), re.DOTALL) is not None


def plain(text: str) -> str:
    """Return the text without times, the first verdict, and spaces and blank lines at ends."""
    text = _FIRST.sub("", _TIME.sub(" 0 s", text))
    return "\n" + "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder whose modules can be imported, and forget these modules afterwards."""
    for name, module in list(sys.modules.items()):  # of the same name, in another test's folder
        file = str(getattr(module, "__file__", None))
        # The project itself may lie beside the folder, as a worktree among temporary files does.
        is_of_project = file.startswith(f"{ROOT}{os.sep}")
        if file.startswith(f"{folder.parent}{os.sep}") and not is_of_project:
            del sys.modules[name]
    before, columns = set(sys.modules), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = COLUMNS
    sys.path.insert(0, str(folder))
    try:
        # Lines of progress come only where the machine is slow.
        with contextlib.chdir(folder), patch("trustassay.core.progress.tell", lambda _: None):
            yield
    finally:
        sys.path.remove(str(folder))
        os.environ.pop("COLUMNS")
        if columns is not None:
            os.environ["COLUMNS"] = columns
        for name in set(sys.modules) - before:
            if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


def run_command(line: str, allowed: Sequence[int] = (0,)) -> str:
    """Run one line of a page and return all that it prints.

    Raises:
        AssertionError: it is no command of trustassay, or its exit status is not allowed.
    """
    program, *arguments = shlex.split(line, comments=True)
    assert program == "trustassay", f"cannot run {line!r}; say why with <!-- not run: ... -->"
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code in allowed, f"{line}: exit status {result.exit_code}\n{result.output}"
    return result.output


def run_page(text: str, folder: Path, run: str = "") -> list[Printed]:
    """Run the executed parts of a page in an empty folder; return what each output says and is.

    ``run`` is the reason above code that is left out elsewhere, and runs here.
    """
    printed, last = [], ""
    module = sys.modules[PAGE] = types.ModuleType(PAGE)  # where dataclasses look for their names
    with inside(folder):
        for block in blocks(text):
            if not block.executed or block.reason not in ("", run):
                continue
            if block.title:
                (folder / block.title).parent.mkdir(parents=True, exist_ok=True)
                (folder / block.title).write_text(block.body, encoding="utf-8")
            elif block.language == "bash":
                last = "".join(run_command(line) for line in block.commands())
            elif block.language == "python":
                shown = io.StringIO()
                with contextlib.redirect_stdout(shown):
                    exec(compile("\n" * block.line + block.body, "page", "exec"), module.__dict__)
                last = shown.getvalue()
            elif block.language == "text":
                printed.append(Printed(block, last))
    return printed


def filled_in(text: str, printed: Sequence[Printed]) -> str:
    """Return the page with what is printed today; a block with ``…`` stays."""
    for one in reversed(printed):
        if not one.agrees() and "…" not in one.block.body.splitlines():
            start, end = one.block.span
            shown = "\n".join(map(str.rstrip, one.actual.strip("\n").splitlines()))
            text = text[:start] + shown + "\n" + text[end:]
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description="Run pages of the documentation.")
    parser.add_argument("pages", nargs="*", type=Path, default=EXECUTED)
    parser.add_argument("--write", action="store_true", help="put in what is printed today")
    given = parser.parse_args()
    for page in given.pages:
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TRUSTASSAY_CACHE"] = f"{folder}/cache"
            printed = run_page(text, Path(folder))
        wrong = [one for one in printed if not one.agrees()]
        for one in wrong:
            print(f"{page}:{one.block.line}: prints\n{one.actual}")
        if given.write:
            page.write_text(filled_in(text, printed), encoding="utf-8")


if __name__ == "__main__":
    main()
