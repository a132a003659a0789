"""Runs of days, written without scoring: so many bad answers of each."""

from __future__ import annotations

import json
from pathlib import Path

from trustassay.core.metric import Assessment, MetricInfo
from trustassay.metrics import Faithfulness
from trustassay.runs.lines import encode_assessment

METRIC = Faithfulness()


def day_run(path: Path, bad: int, n: int, *, ids: str = "", failed: int = 0) -> Path:
    """Write a finished run of n answers, the first of which are bad; every other is of model b."""
    rows, samples = [], []
    for i in range(n):
        name, score = f"{ids or path.name}-{i}", float(i >= bad)
        verdict = "supported" if score else "contradicted"
        parts = {"statements": 1.0, "supported": score, "support": score, "weakest": score}
        one = Assessment(
            name, "faithfulness", score, verdict, f"{verdict}!", parts | {"order": score}
        )
        rows.append(
            one if i < n - failed else Assessment.for_failure(name, "faithfulness", "no reply")
        )
        model = "ab"[i % 2]
        samples.append(
            {"id": name, "question": f"What of {name}?", "response": "So.", "model": model}
        )
    run = {
        "input": "made up",
        "metrics": {"faithfulness": METRIC.settings()},
        "backends": {"entailer": "none"},
        "seed": 0,
        "samples": {"samples": n},
        "about": {"faithfulness": MetricInfo.of(METRIC).to_dict()},
    }
    summary = {"metrics": {"faithfulness": METRIC.summarise(rows).to_dict()}, "calls": {}}
    path.mkdir(parents=True)
    (path / "samples.jsonl").write_text("".join(json.dumps(one) + "\n" for one in samples))
    (path / "assessments.jsonl").write_bytes(b"".join(encode_assessment(one) for one in rows))
    (path / "run.json").write_text(json.dumps(run, default=str))
    (path / "summary.json").write_text(json.dumps(summary, default=str))
    return path


def day_runs(home: Path, bad: list[int], n: int = 60, ids: str = "") -> list[Path]:
    """Write a run for each day of October, named by its date."""
    named = (home / f"2026-10-{day:02}" for day in range(1, len(bad) + 1))
    return [day_run(path, count, n, ids=ids) for path, count in zip(named, bad, strict=True)]
