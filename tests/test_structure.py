"""Arrows point one way: who may import whom, read from the source itself."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src/trustassay"

VALUES = {"core", "errors"}
ALLOWED: dict[str, set[str]] = {
    # values and pure functions, the lowest first
    "errors": set(),
    "statistics": set(),
    "core": {"errors", "statistics"},
    "text": VALUES,
    "judging": VALUES | {"text"},
    # the contract of a metric reads texts, and may ask a second reader; its test kit runs it
    "core.metric": VALUES | {"judging", "text"},
    "core.testing": VALUES | {"api"},
    # what stands side by side
    "input": VALUES,
    "backends": VALUES | {"input", "statistics", "text"},
    "metrics": VALUES | {"judging", "statistics", "text"},
    "report": {"core", "input", "judging", "statistics", "text"},
    # what stands on them
    "calls": VALUES | {"backends", "text"},
    "runs": VALUES | {"backends", "calls", "input", "judging", "report", "statistics", "text"},
    # `people` pairs runs by `compare`, which corrects figures by the labels that `people` reads:
    # rooms that import each other, whose modules form no circle (below).
    "compare": VALUES
    | {"backends", "calls", "input", "metrics", "people", "report", "runs", "statistics", "text"},
    "people": VALUES
    | {"calls", "compare", "input", "metrics", "report", "runs", "statistics", "text"},
    "api": VALUES | {"input", "live", "ray", "runs"},
    "pytest_plugin": VALUES | {"api", "runs"},
    # rooms that `cli` and `api` alone import
    "live": VALUES
    | {"api", "backends", "calls", "compare", "input", "report", "runs", "statistics", "text"},
    "papers": VALUES
    | {"backends", "calls", "compare", "input", "judging", "metrics", "people", "report", "runs"}
    | {"statistics", "text"},
    "ray": VALUES | {"calls", "input", "runs"},
    "view": VALUES
    | {"calls", "compare", "input", "metrics", "people", "report", "runs", "statistics", "text"},
    "cli": VALUES
    | {"api", "backends", "calls", "compare", "input", "live", "metrics", "papers", "people"}
    | {"ray", "report", "runs", "text", "view"},
    "__main__": {"cli"},
    "": {"api", "backends", "calls", "core", "errors", "input", "live", "people", "runs"},
}
"""Each room and the rooms that it may import; a new one is put in here, or it fails."""
OWN_ROOMS = {"core.metric", "core.testing"}
"""Modules with a line of their own: those of :data:`ALLOWED` with a dot."""


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


@cache
def imports(path: Path) -> frozenset[str]:
    """Return every module of the packages that ``path`` imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(n for n in found if n.split(".")[0] == PACKAGE.name)


def room(module: str) -> str:
    parts = module.split(".")[1:]
    if ".".join(parts) in OWN_ROOMS:
        return ".".join(parts)
    return parts[0] if parts else ""


def rooms() -> set[str]:
    return {room(module) for module, _ in modules()}


def imported_rooms(module: str, path: Path) -> set[str]:
    """Return the rooms that a module imports; a module of its own room counts for its folder."""
    known = rooms()
    found = {room(name) for name in imports(path)} & known - {room(module), ""}
    return {name.split(".")[0] for name in found} - {room(module).split(".")[0]}


def test_arrows_point_one_way() -> None:
    strange = {
        module: sorted(there)
        for module, path in modules()
        if (there := imported_rooms(module, path) - ALLOWED[room(module)])
    }
    assert not strange


def test_no_arrow_is_allowed_that_nobody_needs() -> None:
    used = {name: {"core"} for name in ALLOWED}
    for module, path in modules():
        used[room(module)] |= imported_rooms(module, path)
    unused = {name: sorted(there - used[name]) for name, there in ALLOWED.items() if name}
    assert not {name: there for name, there in unused.items() if there}


def test_the_list_holds_the_rooms_that_there_are() -> None:
    assert rooms() == set(ALLOWED)


def test_no_module_is_part_of_a_circle() -> None:
    """Not even where an import serves types alone, or waits inside a function."""
    known = {module for module, _ in modules()}
    graph = {module: set(imports(path) & known) - {module} for module, path in modules()}
    for names in graph.values():
        names.discard("trustassay")
    packages = {module for module, path in modules() if path.name == "__init__.py"}
    for module in packages:  # its parts do not stand on the package that gathers them
        for part, names in graph.items():
            if part.startswith(f"{module}."):
                names.discard(module)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_what_reads_options_tells_users_by_an_error_of_their_own() -> None:
    """Any other ``ValueError`` is an internal error, with exit status 70."""
    readers = ("api", "cli", "core.registry", "runs.answering", "runs.options")
    for module, path in modules():
        name = module.removeprefix("trustassay.")
        if name.startswith(readers) and not name.startswith("cli.papers"):
            assert "raise ValueError" not in path.read_text(encoding="utf-8"), module


def test_nothing_heavy_is_imported_for_help() -> None:
    """``trustassay --help`` is to answer at once."""
    program = "import sys, trustassay.cli.main; print(*sorted(sys.modules))"
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"numpy", "torch", "transformers", "arro3", "jinja2", "sqlite3", "onnxruntime"}
    assert not heavy & set(out)


def test_a_run_of_one_method_imports_no_other() -> None:
    """Methods bring libraries of their own; who scores one does not wait for those of others."""
    program = """
import sys
from trustassay import api
from trustassay.core import registry

registry.load_metric_class("grounding")
print(*{name.split(".")[2] for name in sys.modules if name.startswith("trustassay.metrics.")})
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["grounding"]


LARGE = {"torch", "transformers", "safetensors", "sentence_transformers", "scipy", "sklearn"}
LARGE |= {
    "statsmodels",
    "pandas",
    "playwright",
    "nltk",
    "sacrebleu",
    "rouge_score",
    "openai",
    "mcp",
}
LARGE |= {"nbformat", "nbclient", "opentelemetry"}


def test_collecting_the_tests_imports_nothing_large() -> None:
    """Every worker collects all tests; see ``tests/lazily.py``."""
    for path in Path(__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body if any(name in text for name in LARGE) else ():
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Assign | ast.Expr) and isinstance(node.value, ast.Call):
                called = ast.unparse(node.value)
                names = [called.split("'")[1]] if called.startswith("pytest.importorskip(") else []
            large = {name.split(".")[0] for name in names} & LARGE
            assert not large, f"{path}: {sorted(large)} is imported to collect the tests"
