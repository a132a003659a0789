"""Which small faults in the code do the tests find? Mutants of two packages, one at a time.

    python -m pip install pytest-cov                       # tells which tests run a line
    python -m lab.benchmarks.mutations --out FOLDER [--mutants 120]     # goes on where it stopped

A mutant is one changed operator, condition or number in ``statistics/`` or ``runs/``, drawn by a
seed, as many of each package. It is tested in a copy of the tree, in which all tests have to pass
before: first by the tests of ``make test`` that run its line, up to 400, then, where they pass, by
those of ``make slow`` about commands, runs, statistics and workflows. It writes
``results/mutations.json``: how many are found by the tests of each of the two, and those that
none finds. A test that goes on for five times its own time counts as found.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab.results import write_result

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("statistics", "runs")
SLOW = [f"tests/{one}" for one in ("cli", "runs", "statistics", "workflows")]
MOST_TESTS = 400
OPERATORS: Mapping[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}


class Mutant(NamedTuple):
    """One change: the file below ``src``, its line, and the line before and after."""

    file: str
    line: int
    before: str
    after: str

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}: {self.before.strip()} > {self.after.strip()}"


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, str, Any]]:
    """Yield (node, attribute, new value) of what may be changed in it."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in OPERATORS:
            yield node, "ops", [OPERATORS[type(operator)]()]
        case ast.BoolOp(op=operator):
            yield node, "op", OPERATORS[type(operator)]()
        case ast.BinOp(op=operator) if type(operator) in OPERATORS:
            yield node, "op", OPERATORS[type(operator)]()
        case ast.If(test=test) | ast.IfExp(test=test):
            yield node, "test", ast.UnaryOp(ast.Not(), test)
        case ast.Constant(value=bool(value)):
            yield node, "value", not value
        case ast.Constant(value=int(value) | float(value)):
            yield node, "value", value + 1


def _inside(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes of functions, less their signatures and what is raised."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            todo: list[ast.AST] = list(function.body)
            while todo:
                node = todo.pop()
                if isinstance(node, ast.Raise | ast.FunctionDef | ast.AsyncFunctionDef):
                    continue
                yield node
                skipped = getattr(node, "annotation", None)
                todo += [one for one in ast.iter_child_nodes(node) if one is not skipped]


def mutants(package: str) -> list[Mutant]:
    """Return all that change one line of the package, in the order of files and lines."""
    made = []
    for path in sorted((ROOT / "src/trustassay" / package).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        tree = ast.parse(text)
        for node in _inside(tree):
            if getattr(node, "lineno", 0) != getattr(node, "end_lineno", -1) and not isinstance(
                node, ast.If
            ):
                continue
            for one, attribute, value in _changes(node):
                part = one.test if isinstance(one, ast.If) else one
                assert isinstance(part, ast.expr)
                if part.lineno != part.end_lineno:
                    continue
                old = getattr(one, attribute)
                setattr(one, attribute, value)
                new = ast.unparse(one.test if isinstance(one, ast.If) else one)
                setattr(one, attribute, old)
                line = lines[part.lineno - 1].encode()
                changed = line[: part.col_offset] + b"(" + new.encode() + b")"
                changed += line[part.end_col_offset :]
                made.append(
                    Mutant(
                        str(path.relative_to(ROOT / "src")),
                        part.lineno,
                        line.decode(),
                        changed.decode(),
                    )
                )
    return list(dict.fromkeys(made))


def valid(mutant: Mutant) -> bool:
    """Whether the changed file can be compiled (a change inside an f-string cannot)."""
    try:
        compile(_changed(mutant), mutant.file, "exec")
    except SyntaxError:
        return False
    return True


def _changed(mutant: Mutant) -> str:
    lines = (ROOT / "src" / mutant.file).read_text(encoding="utf-8").split("\n")
    lines[mutant.line - 1] = mutant.after
    return "\n".join(lines)


def _pytest(*arguments: str, tree: Path, timeout: float | None = None) -> int:
    """Run the tests of a tree; return the status, 124 after ``timeout`` seconds."""
    more = os.environ.get("PYTHONPATH", "")
    path = f"{tree}/src:{tree}:{more}"
    environment = dict(os.environ, PYTHONPATH=path, PYTHONHASHSEED="0")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments]
    try:
        return subprocess.run(
            command,
            env=environment,
            cwd=tree,
            timeout=timeout,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return 124


def coverage(folder: Path, tree: Path) -> dict[tuple[str, int], list[str]]:
    """Return the unit tests that run each line of the packages, as file::test."""
    from coverage import CoverageData

    data = folder / "coverage"
    if not data.exists():
        settings = folder / "coveragerc"
        settings.write_text("[run]\nconcurrency = thread\n", encoding="utf-8")
        os.environ["COVERAGE_FILE"] = str(data)
        options = [f"--cov=trustassay.{one}" for one in PACKAGES]
        options += ["--cov-context=test", "--cov-report=", f"--cov-config={settings}"]
        markers = ["-m", "not slow", "-n", "auto", "--dist", "loadfile"]
        print("which tests run which lines", flush=True)
        if _pytest(*options, *markers, tree=tree) != 0:
            data.unlink(missing_ok=True)
            raise SystemExit("tests fail without any mutant: see what `make test` says")
    read = CoverageData(basename=str(data))
    read.read()
    tests: dict[tuple[str, int], list[str]] = {}
    for file in read.measured_files():
        name = file.partition("/src/")[2]
        for line, contexts in read.contexts_by_lineno(file).items():
            names = {context.partition("|")[0] for context in contexts if context}
            tests[name, line] = sorted(names)
    return tests


def test(mutant: Mutant, known: Mapping[tuple[str, int], list[str]], tree: Path) -> str:
    """Return what finds it: "unit", "slow" or "none"."""
    path = tree / "src" / mutant.file
    kept = path.read_text(encoding="utf-8")
    path.write_text(_changed(mutant), encoding="utf-8")
    try:
        own = known.get((mutant.file, mutant.line), [])
        if own and _pytest("-m", "not slow", *own[:MOST_TESTS], tree=tree, timeout=600):
            return "unit"
        slow = ["-m", "slow", "-n", "auto", "--dist", "loadfile", *SLOW]
        if _pytest(*slow, tree=tree, timeout=1500):
            return "slow"
        return "none"
    finally:
        path.write_text(kept, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--mutants", type=int, default=120)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    chosen: list[Mutant] = []
    counts = {}
    for package in PACKAGES:
        all_of_it = mutants(package)
        counts[package] = len(all_of_it)
        order = np.random.default_rng([2026, PACKAGES.index(package)]).permutation(len(all_of_it))
        half = [all_of_it[i] for i in order if valid(all_of_it[i])]
        chosen += half[: options.mutants // len(PACKAGES)]
    tree = options.out / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns("__pycache__", ".git", ".venv*"))
    known = coverage(options.out, tree)
    record = options.out / "found.jsonl"
    found: dict[str, str] = {}
    if record.exists():
        found = dict(json.loads(line) for line in record.open(encoding="utf-8"))
    for mutant in chosen:
        if mutant.name not in found:
            found[mutant.name] = test(mutant, known, tree)
            with record.open("a", encoding="utf-8") as file:
                file.write(json.dumps([mutant.name, found[mutant.name]]) + "\n")
            print(len(found), found[mutant.name], mutant.name, flush=True)
    figures: dict[str, Any] = {}
    for package in PACKAGES:
        names = [one.name for one in chosen if one.file.split("/")[1] == package]
        by = Counter(found[name] for name in names)
        figures[package] = {
            "possible": counts[package],
            "mutants": len(names),
            "found by make test": by["unit"],
            "found by make slow only": by["slow"],
            "found by none": [name for name in names if found[name] == "none"],
        }
    command = f"python -m lab.benchmarks.mutations --out FOLDER --mutants {options.mutants}"
    write_result("mutations", command, "one changed operator, condition or number each", figures)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
