"""Arrows point one way: who may import whom, read from the source itself."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"
PACKAGE = SOURCE / "trustassay"


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(path: Path) -> set[str]:
    """Return every module of the package that ``path`` imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "trustassay"}


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


FORBIDDEN = {
    "metrics": {"backends", "engine", "cli", "report", "data"},
    "backends": {"metrics", "engine", "cli", "report", "data"},
    "statistics": {"metrics", "engine", "cli", "report", "data", "backends", "metric", "sample"},
    "capabilities": {"metrics", "engine", "cli", "report", "data", "backends", "metric", "sample"},
    "sample": {"metrics", "engine", "cli", "report", "data", "backends", "metric", "statistics"},
    "metric": {"metrics", "engine", "cli", "report", "data", "backends", "statistics"},
    "data": {"metrics", "engine", "cli", "report", "backends"},
    "report": {"metrics", "engine", "cli", "backends"},
    "engine": {"metrics", "cli"},
    "": {"cli"},
}


@pytest.mark.parametrize(("module", "path"), list(modules()))
def test_arrows_point_one_way(module: str, path: Path) -> None:
    if room(module) in {"cli", "__main__"}:
        return
    used = {room(name) for name in imports(path)}
    assert not used & FORBIDDEN.get(room(module), {"cli"}), f"{module} imports {sorted(used)}"


def test_the_rule_sees_the_whole_package() -> None:
    rooms = {room(module) for module, _ in modules()}
    assert {"metrics", "backends", "engine", "cli", "statistics", "sample", ""} <= rooms
    assert "engine" in {room(name) for name in imports(PACKAGE / "cli" / "score.py")}


def test_nothing_heavy_is_imported_for_help(tmp_path: Path) -> None:
    """``trustassay --help`` is to answer at once."""
    import subprocess
    import sys

    program = "import sys, trustassay.cli.main; print(*sorted(sys.modules))"
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"numpy", "torch", "transformers", "arro3", "jinja2", "sqlite3", "onnxruntime"}
    assert not heavy & set(out)
