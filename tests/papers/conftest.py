"""The command line in this process, and the command of the experiments."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.cli.conftest import cli
from tests.papers.material import Experiment
from trustassay.cli.main import app

__all__ = ["cli"]


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """The command in this process, in a folder whose modules are imported anew."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("scripted", "quick"):
        monkeypatch.delitem(sys.modules, module, raising=False)

    def run(*arguments: str | Path) -> Result:
        return CliRunner().invoke(app, ["papers", "experiment", *map(str, arguments)])

    return run
