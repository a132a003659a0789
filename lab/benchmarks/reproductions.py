"""Figures of the guide: what ``papers reproduce trustscore`` gives on the authors' own file.

    python -m lab.benchmarks.reproductions ../shared/data/trustscore/qa_human_check.json

The file is the authors' ``qa_human_check.json`` (github.com/dannalily/TrustScore): 1,000 questions,
the answers of three systems, and a human label for each. Needs pip install '.[reference]' and
WordNet. Writes ``results/reproductions.json``.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.results import write_result
from trustassay.papers.reproduce.setup import ReproductionSetup
from trustassay.papers.reproduce.trustscore import reproduce


def list_correlations(file: Path, folder: Path) -> list[dict[str, Any]]:
    """Return the rows of Table 1 with a printed figure: paper, ours, interval and p, by system."""
    table = reproduce(ReproductionSetup(folder, data=file)).tables[0]
    result = []
    for row in table.rows:
        figures = {}
        for system, cell in zip(table.columns, row.cells, strict=True):
            if cell.paper and cell.values["value"] is not None:
                figures[system] = {
                    "paper": float(cell.paper),
                    "here": round(cell.values["value"], 4),
                    "interval": [round(end, 3) for end in cell.values["interval"]],
                    "p": cell.values["p"],
                }
        if figures:
            result.append({"metric": row.name, **figures})
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute the table and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        correlations = list_correlations(chosen.file, Path(folder))
    command = "python -m lab.benchmarks.reproductions qa_human_check.json"
    data = "qa_human_check.json, 1,000 questions, three systems"
    write_result("reproductions", command, data, {"correlations": correlations})


if __name__ == "__main__":
    main()
