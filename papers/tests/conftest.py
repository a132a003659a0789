"""What these tests share with those of trustassay, and the command of the experiments."""

import sys
from pathlib import Path

import pytest
from papers.tests.material import Experiment
from tests.cli.conftest import cli
from tests.conftest import commands_built_once, own_cache
from typer.testing import CliRunner, Result

from trustassay.cli.main import app

__all__ = ["cli", "commands_built_once", "own_cache"]


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
