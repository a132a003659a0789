"""The command line as a user meets it: arguments in; status, output and messages out."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from trustassay.cli.main import main


class Said(NamedTuple):
    """What a command left: exit status, standard output, standard error."""

    status: int
    out: str
    err: str


Cli = Callable[..., Said]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Return a function that runs a command in an empty folder; a traceback fails the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: str | Path) -> Said:
        monkeypatch.setattr("sys.argv", ["trustassay", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            status = 0
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else int(bool(error.code))
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Said(status, out, err)

    return call
