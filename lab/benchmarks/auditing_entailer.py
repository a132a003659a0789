"""What moves the built-in entailer that must not: an audit of ``faithfulness``.

    python -m lab.benchmarks.auditing_entailer --out FOLDER        # a quarter of an hour; goes on
    python -m lab.benchmarks.auditing_entailer --out FOLDER --write

The 60 answers of the bundled example, and answers of two to five sentences made of what real
documents say (:mod:`lab.benchmarks.planted`, none with an error of its own).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from lab.benchmarks.planted import planted
from lab.results import write_result
from trustassay.metrics.faithfulness import Faithfulness
from trustassay.people.audit.experiment import Audit, AuditResult, headline
from trustassay.runs.intake import InputOptions

ANSWERS = 120


def audited(out: Path, rows: Sequence[Mapping[str, Any]]) -> AuditResult:
    """Run the audit, or go on with it."""
    options = InputOptions(progress=True)
    return Audit(rows, Faithfulness(), {"entailer": "embedded"}, out, options).run()


def figures_of(found: AuditResult) -> dict[str, Any]:
    """Return the figures, rounded; shares in percent."""

    def row(name: str) -> dict[str, Any]:
        one = found.control if name == "error" else found.experiments[name]
        assert one is not None
        return {
            "answers": one.flips.n,
            "shift": round(one.shift.value or 0.0, 3),
            "shift_interval": one.shift.interval and [round(end, 3) for end in one.shift.interval],
            "flips": round(100 * (one.flips.value or 0.0), 1),
            "p": float(f"{one.p:.2g}"),
            "ratio": one.ratio and round(one.ratio.value or 0.0, 2),
        }

    return {
        "answers": found.answers,
        "errors": dict(found.errors),
        "moved_by": list(found.moved_by),
        "largest": found.largest,
        "changes": {name: row(name) for name in ("error", *found.experiments)},
    }


def main() -> None:
    """Measure, print, and with --write keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--answers", type=int, default=ANSWERS)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    example = (files("trustassay.input") / "example" / "answers.jsonl").read_text(encoding="utf-8")
    sets: dict[str, Sequence[Mapping[str, Any]]] = {
        "example": [json.loads(line) for line in example.splitlines()],
        "documents": [one.record for one in planted(args.answers, wrong=0.0)],
    }
    figures = {}
    for name, rows in sets.items():
        found = audited(args.out / name, rows)
        figures[name] = figures_of(found)
        print(name, headline(found))
        print(json.dumps(figures[name], indent=1))
    if args.write:
        command = f"python -m lab.benchmarks.auditing_entailer --answers {args.answers}"
        data = "the bundled example; answers made of real documents; entailer embedded"
        write_result("auditing-entailer", command, data, figures)


if __name__ == "__main__":
    main()
