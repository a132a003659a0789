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
CLUSTER = ROOT / "cluster/src/trustassay_cluster"
SERVE = ROOT / "serve/src/trustassay_serve"
OTHERS = (CLUSTER.name, SERVE.name)
"""Distributions of their own, each as one room."""

VALUES = {"errors", "sample", "capabilities", "prompts", "files", "progress", "event_loop"}
VALUES |= {"tracebacks"}
METRIC = {"assessment", "metric", "registry", "views", "statistics"}

ALLOWED: dict[str, set[str]] = {
    # values and small helpers, the lowest first
    "errors": set(),
    "files": set(),
    "event_loop": set(),
    "tracebacks": set(),
    "entailer_quality": set(),
    "views": set(),
    "statistics": set(),
    "core": {"statistics"},
    "sample": {"errors"},
    "text": {"errors", "sample"},
    "judging": {"capabilities", "errors", "event_loop", "sample", "text", "views"},
    "progress": set(),
    "prompts": {"errors"},
    "token_matching": set(),
    "capabilities": {"errors", "sample"},
    "assessment": {"statistics"},
    "metric": {
        "assessment",
        "core",
        "capabilities",
        "errors",
        "sample",
        "judging",
        "text",
        "views",
    },
    "registry": {"errors", "metric"},
    # what stands side by side
    "data": {"errors", "files", "progress", "sample"},
    "retrieval": {"capabilities", "data", "errors", "files", "progress", "sample"},
    "backends": {
        "capabilities",
        "errors",
        "files",
        "prompts",
        "retrieval",
        "sample",
        "text",
        "token_matching",
        "tracebacks",
    },
    "answering": {"capabilities", "errors", "prompts", "text", "sample"},
    "distractors": {"capabilities", "errors", "prompts", "text", "sample", "statistics"}
    | {"event_loop"},
    "metrics": METRIC
    | {"core", "capabilities", "distractors", "errors", "prompts", "sample", "event_loop"}
    | {"text", "judging", "token_matching"},
    "show": {
        "core",
        "files",
        "entailer_quality",
        "metric",
        "sample",
        "statistics",
        "text",
        "views",
    },
    # what stands on them
    "calls": {"backends", "capabilities", "errors", "files", "text", "sample", "event_loop"},
    "runs": VALUES
    | {
        "answering",
        "backends",
        "calls",
        "core",
        "data",
        "entailer_quality",
        "metric",
        "registry",
    }
    | {"options", "judging", "show", "statistics", "text"},
    "workflows": VALUES
    | METRIC
    | {"core"}
    | {"answering", "backends", "calls", "data", "distractors", "metrics", "show", "retrieval"}
    | {"compare", "text", "runs", "event_loop", "judging"},
    # Shares its JSON forms and the reading of labels with `workflows`, where `study` pairs runs by
    # `compare`: rooms that import each other, whose modules form no circle (below).
    "compare": METRIC
    | {"calls", "core", "data", "errors", "runs", "sample", "show", "text", "workflows"},
    "options": {"answering", "backends", "calls", "capabilities", "errors", "metric", "text"},
    "api": VALUES
    | METRIC
    | {"backends", "calls", "data", "options", "show"}
    | {"runs", "trustassay_cluster", "workflows"},
    "columns": {"api", "data", "errors", "metric", "options", "registry", "runs", "sample"}
    | {"workflows"},
    "": {
        "answering",
        "api",
        "columns",
        "backends",
        "calls",
        "data",
        "errors",
        "metric",
        "runs",
        "sample",
    }
    | {"workflows"},
    "cli": VALUES
    | METRIC
    | {"answering", "api", "backends", "calls", "data", "entailer_quality", "metrics", "show"}
    | {"compare", "options", "retrieval", "runs", "text", "workflows"},
    "__main__": {"cli"},
    # what tests of metrics, in this package and in others, stand on
    "testing": {"api", "capabilities", "errors", "metric", "sample"},
    "pytest_plugin": {"api", "calls", "core", "errors", "metric", "registry", "runs", "sample"},
    # a distribution of its own, which the interface imports when it is asked for
    "trustassay_cluster": VALUES
    | {"calls", "cli", "data", "metric", "options", "registry", "runs", "show", "text"},
    # another, whose commands the command line finds
    "trustassay_serve": {"api", "backends", "cli", "data", "errors", "event_loop", "metric"}
    | {"options", "registry", "show", "runs", "sample", "text", "tracebacks", "workflows"}
    | {"calls", "capabilities", "compare", "core", "files", "metrics", "statistics", "views"},
}
"""Each room and the rooms that it may import; a new one is put in here, or it fails."""


def modules() -> Iterator[tuple[str, Path]]:
    for package in (PACKAGE, CLUSTER, SERVE):
        for path in sorted(package.rglob("*.py")):
            parts = path.relative_to(package.parent).with_suffix("").parts
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
    return frozenset(n for n in found if n.split(".")[0] in (PACKAGE.name, *OTHERS))


def room(module: str) -> str:
    package, *parts = module.split(".")
    if package in OTHERS:
        return package
    return parts[0] if parts else ""


def rooms() -> set[str]:
    return {room(module) for module, _ in modules()}


def test_arrows_point_one_way() -> None:
    known = rooms()
    strange = {
        module: sorted(there)
        for module, path in modules()
        if (
            there := ({room(name) for name in imports(path)} & known - {room(module), ""})
            - ALLOWED[room(module)]
        )
    }
    assert not strange


def test_the_package_of_papers_is_never_imported() -> None:
    for module, path in modules():
        assert "trustassay_papers" not in path.read_text(encoding="utf-8"), module


def test_the_list_holds_the_rooms_that_there_are() -> None:
    assert rooms() == set(ALLOWED)
    assert "runs" in {room(name) for name in imports(PACKAGE / "cli" / "common.py")}


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
    readers = {"answering", "api", "cli", "options", "registry"}
    for module, path in modules():
        if room(module) in readers:
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
from trustassay import api, registry

registry.metric_class("grounding")
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
