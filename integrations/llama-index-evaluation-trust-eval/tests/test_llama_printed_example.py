"""The example of the README of Trust-Eval's integration, as printed, in a process without network.

The README is found by ``TRUSTASSAY_SHARED``, else in ``../shared`` beside the repository.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("llama_index.core", reason="needs llama-index-core: tox run")


REPOSITORY = Path(__file__).parents[3]
SHARED = Path(os.environ.get("TRUSTASSAY_SHARED", REPOSITORY.parent / "shared"))
README = SHARED / "seeds" / "003_434239f24f64859a.txt"

GUARD = """
import socket
def refuse(*a, **o): raise SystemExit(f"looked for the network: {a}")
socket.getaddrinfo = refuse
connect = socket.socket.connect
def only_local(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6): refuse(address)
    return connect(self, address)
socket.socket.connect = only_local
"""


def without_network(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program where there is no network, and where looking for it ends it."""
    path = folder / "example.py"
    path.write_text(program)
    # Python imports it at the start of the process.
    (folder / "sitecustomize.py").write_text(GUARD)
    command = [sys.executable, str(path)]
    if (
        shutil.which("unshare")
        and not subprocess.run(["unshare", "-rn", "true"], check=False).returncode
    ):
        # A network namespace of its own, where that is allowed.
        command = ["unshare", "-rn", *command]
    keep = {"PATH", "LANG", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name in keep}
    environment |= {"HOME": str(folder), "PYTHONPATH": str(folder)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.skipif(not README.exists(), reason="the README of Trust-Eval is not at hand")
@pytest.mark.parametrize("path", ["trust_score", "trust_eval"])
def test_the_example_runs_as_printed(tmp_path: Path, path: str) -> None:
    readme = README.read_text(encoding="utf-8")
    code = re.search(r"## Usage\n\n```python\n(.*?)```", readme, re.DOTALL)
    printed = re.search(r"## Output\n\n```text\n(.*?)```", readme, re.DOTALL)
    assert code
    assert printed
    keys = re.findall(r'^    "(\w+)":', printed[1], re.MULTILINE)
    assert len(keys) == 28
    process = without_network(code[1].replace("trust_score import", f"{path} import"), tmp_path)
    assert process.returncode == 0, process.stderr
    figures = ast.literal_eval(process.stdout)
    assert list(figures) == keys
    assert figures["num_samples"] == 6
    assert figures["answerable_num"] == 6
    assert 0 < figures["trust_score"] <= 100
    assert "offline-quotes/1 answers" in process.stderr


def test_both_import_paths_lead_to_the_same() -> None:
    from llama_index.evaluation import trust_eval, trust_score

    assert trust_score.TrustScoreEvaluator is trust_eval.TrustScoreEvaluator
    assert trust_score.__all__ == trust_eval.__all__


def test_the_guard_catches_who_looks_for_the_network(tmp_path: Path) -> None:
    process = without_network("import urllib.request as u; u.urlopen('http://a.test')", tmp_path)
    assert process.returncode != 0
    assert "looked for the network" in process.stderr
