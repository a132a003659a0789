"""The notebook of the documentation, executed by a kernel of its own."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lazily import needed

nbformat = needed("nbformat", reason="needs nbformat, to read notebooks")
nbclient = needed("nbclient", reason="needs nbclient, to execute notebooks")
needed("ipykernel", reason="needs ipykernel, the kernel of notebooks")

NOTEBOOK = Path(__file__).parent.parent / "docs" / "examples" / "notebook.ipynb"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Execute the notebook with this Python; return its cells of code."""
    home = tmp_path_factory.mktemp("notebook")
    kernel = home / "kernels" / "python3"
    kernel.mkdir(parents=True)
    arguments = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": arguments, "display_name": "Python 3", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(home))
        patch.setenv("IPYTHONDIR", str(home / "ipython"))
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        client = nbclient.NotebookClient(
            notebook, timeout=120, resources={"metadata": {"path": str(home)}}
        )
        client.execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(cell: Any, kind: str) -> list[Any]:
    return [one for one in cell.outputs if one.output_type == kind]


def test_a_run_shows_itself_as_a_table_and_a_picture(cells: list[Any]) -> None:
    (shown,) = outputs(cells[0], "execute_result")
    html = shown.data["text/html"]
    assert "2 of 3 answers need a look" in html
    assert "<table" in html and "<svg" in html
    assert "Who wrote The Trial?" in html
    assert "2 of 3 answers need a look" in shown.data["text/plain"]


def test_progress_is_one_display_that_is_empty_at_the_end(cells: list[Any]) -> None:
    displays = outputs(cells[0], "display_data")
    assert len(displays) <= 2  # checking the input, scoring
    assert all(one.data["text/html"] == "" for one in displays)
    told = "".join(one.text for one in outputs(cells[0], "stream"))
    assert [line.split(":")[0] for line in told.splitlines()] == [
        "metric faithfulness",
        "first result of 3",
    ]


def test_the_worst_answers_come_with_their_reason(cells: list[Any]) -> None:
    (printed,) = outputs(cells[1], "stream")
    assert {line.split(" - ")[1] for line in printed.text.splitlines()} == {
        "Who wrote The Trial?",
        "Where does the Rhine begin?",
    }


def test_figures_and_frames(cells: list[Any]) -> None:
    (share,) = outputs(cells[2], "execute_result")
    assert float(share.data["text/plain"]) == pytest.approx(100 / 3)
    (frame,) = outputs(cells[3], "execute_result")
    assert "verdict" in frame.data["text/html"]
