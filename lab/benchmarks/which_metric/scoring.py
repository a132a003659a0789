"""Runs of every column of every set, each in a folder of its own, and the seconds that it took."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lab.benchmarks.which_metric.baselines import Cosine, Words
from lab.benchmarks.which_metric.sets import ASKED, PublicSet, Record, records
from trustassay import score
from trustassay.core.metric import Metric
from trustassay.runs.folder import RunFolder

ALONE = Path(__file__).with_name("answer-alone.jinja")
"""What ``factcheck`` judges where there is no question: the answer alone."""


class Way(NamedTuple):
    """How a column is scored, and with which backends."""

    metric: str | Metric
    backends: Mapping[str, str] = {}


WAYS: Mapping[str, Way] = {
    "faithfulness": Way("faithfulness"),
    "faithfulness-lexical": Way("faithfulness", {"entailer": "lexical"}),
    "factcheck": Way("factcheck"),
    "factcheck-alone": Way(f"factcheck:hypothesis={ALONE}"),
    "factcheck-searched": Way("factcheck"),
    "grounding": Way("grounding:correctness=none"),
    "words": Way(Words()),
    "cosine": Way(Cosine()),
    "reference": Way("reference"),
    "judge-entailer": Way("judge:by=entailer"),
    "fewl-agreement": Way("fewl:form=agreement"),
    "fewl-eq1": Way("fewl:weights=uniform"),
}
SEARCHED = "factcheck-searched"


def scored(public: PublicSet, answers: int, out: Path) -> list[Path]:
    """Score all columns of a set that ``out`` does not hold yet, and return their runs."""
    samples = records(public, answers)
    folders = []
    for column in public.columns:
        folder = out / public.name / column
        folders.append(folder)
        if not (folder / "seconds.json").exists():
            score_one(public, column, samples, folder)
    return folders


def score_one(public: PublicSet, column: str, samples: Sequence[Record], folder: Path) -> None:
    """Score a column; a run that was stopped goes on, and then has no seconds."""
    begun = RunFolder(folder).calls_path.exists()
    way = WAYS[column]
    options: dict[str, Any] = dict(way.backends)
    metric = way.metric
    if column == "factcheck" and samples[0]["question"].startswith(ASKED):
        metric = WAYS["factcheck-alone"].metric
    if column == SEARCHED:
        options["retriever"] = f"bm25:{corpus(public, folder.parent)}"
        samples = [
            {name: value for name, value in sample.items() if name != "documents"}
            for sample in samples
        ]
    began = time.process_time()
    score(samples, metrics=metric, out=folder, report=False, **options)
    taken = None if begun else time.process_time() - began
    (folder / "seconds.json").write_text(json.dumps({"cpu_s": taken, "answers": len(samples)}))
    print(f"{public.name} {column}: {taken} s for {len(samples)}", file=sys.stderr, flush=True)


def corpus(public: PublicSet, folder: Path) -> Path:
    """Write the passages of all answers of a set, to be searched."""
    path = folder / "corpus.jsonl"
    if not path.exists():
        texts = dict.fromkeys(text for row in public.rows() for text in row.fields["documents"])
        rows = ({"id": str(number), "text": text} for number, text in enumerate(texts))
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return path


def seconds(folder: Path) -> float | None:
    """Return the seconds of processor that an answer took in a run, if it was not interrupted."""
    told = json.loads((folder / "seconds.json").read_text())
    return None if told["cpu_s"] is None else told["cpu_s"] / max(1, told["answers"])
