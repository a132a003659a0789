"""Completion by a real bash: the script is printed, and the parser answers it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support import ROOT

SCRIPT = """
eval "$(trustassay completion bash)"
complete -p trustassay
ask() {
    COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=()
    _trustassay_completion trustassay
    echo "${COMPREPLY[*]}"
}
ask trustassay sc
ask trustassay score --metr
ask trustassay completion ""
ask trustassay score answers
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_options_and_values(tmp_path: Path) -> None:
    program = tmp_path / "trustassay"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m trustassay "$@"\n')
    program.chmod(0o755)
    source = str(ROOT / "src")
    environment = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(
        ["bash", "--norc", "-c", SCRIPT],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "complete -o default -F _trustassay_completion trustassay",
        "score",
        "--metric",
        "bash zsh fish",
        "",  # names of files: bash completes them itself
    ]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(cli: Cli, shell: str) -> None:
    said = cli("completion", shell)
    assert said.status == 0
    assert "_TRUSTASSAY_COMPLETE" in said.out and f"complete_{shell}" in said.out


def test_another_shell_is_refused_with_those_that_there_are(cli: Cli) -> None:
    said = cli("completion", "tcsh")
    assert said.status == 2
    assert "bash" in said.err and "fish" in said.err
