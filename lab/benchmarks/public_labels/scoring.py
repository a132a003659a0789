"""Scores the rows of a set and stores one line for each row, so that a stopped run continues.

A row that fills several answers (the turns of a conversation, the steps of a log) is stored with
all of them. Nothing here knows a label.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lab.benchmarks.local_models import path_of
from lab.benchmarks.public_labels.rows import LabelledRow, read_rows
from trustassay import score
from trustassay.core.metric import Assessment
from trustassay.runs.finished import Run
from trustassay.statistics.resampling import generator

Json = dict[str, Any]
SECOND_MODEL = "1.5b"
"""The local model that reads as the second reader and judges (:mod:`lab.benchmarks.local_models`).
"""
MAX_EARLIER_STEPS = 5
"""Steps of a log that a later step is compared with."""
ROWS_AT_ONCE = 20
_MARK = re.compile(r"\s?\[\d+(?:, ?\d+)*\]")

PASSAGES = ("faithfulness", "factcheck")
METRICS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "quintd": {"embedded": PASSAGES, "lexical": PASSAGES, "second": ("faithfulness",)},
    "attributionbench-in": {
        "embedded": (*PASSAGES, "grounding:correctness=none"),
        "lexical": PASSAGES,
        "second": ("faithfulness",),
    },
    "attributionbench-ood": {
        "embedded": (*PASSAGES, "grounding:correctness=none"),
        "lexical": PASSAGES,
        "second": ("faithfulness",),
    },
    "tau-bench": {
        "embedded": ("tool_use", "faithfulness"),
        # What the threshold of contradictions alone changes.
        "embedded-at-0.5": ("tool_use:contradiction=0.5",),
        "lexical": ("tool_use",),
    },
    "scitab": {"embedded": PASSAGES, "lexical": PASSAGES, "second": ("faithfulness",)},
    "who-and-when": {"embedded": ("faithfulness",), "lexical": ("faithfulness",)},
    "tlm-simpleqa": {
        "embedded": ("reference", "judge:by=entailer"),
        "lexical": ("judge:by=entailer",),
        "second": ("judge",),
    },
    "multilingual-nli": {
        "embedded": ("faithfulness",),
        "lexical": ("faithfulness",),
        "second": ("faithfulness",),
    },
    "pandalm": {"second": ("pairwise",)},
}
"""For each set the metrics that apply to it, by reader."""


class ScoredAnswer(NamedTuple):
    """What a metric made of one answer."""

    sample: str
    """The id of the sample: that of its row, with a number behind it where a row has several."""
    metric: str
    score: float | None
    """``None`` where it was not judged."""
    flagged: bool
    """Whether the answer was judged and needs a look by the metric's line."""
    parts: Mapping[str, float]
    marks: Sequence[tuple[int, int]]
    """Characters that the evidence marks as not supported."""


class ScoredRow(NamedTuple):
    """A row with its answers, in their order."""

    id: str
    answers: Sequence[ScoredAnswer]

    def of_metric(self, metric: str) -> list[ScoredAnswer]:
        """Return what one metric made of the row."""
        return [answer for answer in self.answers if answer.metric == metric]


def score_set(name: str, reader: str, out: Path, most: int = 0, part: str = "") -> None:
    """Score the rows of a set that the folder does not have yet.

    Args:
        name: the set.
        reader: one of those of the set in :data:`METRICS`.
        out: the folder of all scores.
        most: rows to draw at random, 0 for all. part: draw from this part alone.
    """
    rows = read_rows(name, part)
    if most:
        order = generator(0, "public labels", name).permutation(len(rows))
        rows = [rows[place] for place in order[:most]]
    path = scores_path(out, name, reader)
    done = set(read_scores(out, name, reader))
    rows = [row for row in rows if row.id not in done]
    for start in range(0, len(rows), ROWS_AT_ONCE):
        chunk, began = rows[start : start + ROWS_AT_ONCE], time.process_time()
        scored = _score_rows(name, reader, chunk)
        seconds = (time.process_time() - began) / len(chunk)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            for row in scored:
                answers = [answer._asdict() for answer in row.answers]
                record = {"id": row.id, "cpu_s": round(seconds, 3), "answers": answers}
                file.write(json.dumps(record) + "\n")
        print(name, reader, start + len(chunk), "of", len(rows), file=sys.stderr, flush=True)


def scores_path(out: Path, name: str, reader: str) -> Path:
    """Return the file of the scores of a set by a reader."""
    return out / f"{name}-{reader}.jsonl"


def read_scores(out: Path, name: str, reader: str) -> dict[str, ScoredRow]:
    """Return the scored rows of a set by their ids; empty where none is scored yet."""
    path = scores_path(out, name, reader)
    if not path.exists():
        return {}
    result = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        answers = [ScoredAnswer(**answer) for answer in record["answers"]]
        result[record["id"]] = ScoredRow(record["id"], answers)
    return result


def _score_rows(name: str, reader: str, rows: Sequence[LabelledRow]) -> list[ScoredRow]:
    samples: list[Json] = []
    owners: list[str] = []
    for row in rows:
        of_row = _build_samples(name, row)
        samples += of_row
        owners += [row.id] * len(of_row)
    # Some rows have a blank answer, and some conversations end with a result of a tool: they stay
    # without a score.
    options: Json = {"skip_bad": True}
    if reader == "lexical":
        options["entailer"] = "lexical"
    elif reader == "second":
        model = f"gguf:{path_of(SECOND_MODEL)}?context=4096"
        role = "judge" if name in ("tlm-simpleqa", "pandalm") else "second"
        options[role] = model
        if role == "second":
            options["second_budget"] = "100%"
    if name == "tau-bench":
        options["turns"] = "all"
    run = score(samples, metrics=list(METRICS[name][reader]), report=False, **options)
    by_row: dict[str, list[ScoredAnswer]] = {row.id: [] for row in rows}
    for assessment in run.assessments:
        # Turns of a conversation have the id of their record and a number behind it.
        owner = next(key for key in _possible_owners(assessment.id) if key in by_row)
        by_row[owner].append(_read_answer(run, assessment))
    return [ScoredRow(key, answers) for key, answers in by_row.items()]


def _possible_owners(sample_id: str) -> list[str]:
    pieces = sample_id.split("-")
    return ["-".join(pieces[:end]) for end in range(len(pieces), 0, -1)]


def _build_samples(name: str, row: LabelledRow) -> list[Json]:
    """Return the samples of a row: one, or one for each step of a log."""
    if name == "who-and-when":
        contents = [str(step["content"]) for step in row.record["history"]]
        return [
            {
                "id": f"{row.id}-{place}",
                "question": row.record["question"],
                "response": text,
                "documents": contents[max(0, place - MAX_EARLIER_STEPS) : place],
            }
            for place, text in enumerate(contents)
            if place and text.strip()
        ]
    if name.startswith("attributionbench"):
        # All references stand behind the claim, so that ``grounding`` has citations to judge. The
        # marks of a claim itself count the passages of a list that the set does not have.
        claim = _MARK.sub("", row.record["response"]).strip()
        marks = "".join(f"[{n}]" for n in range(1, len(row.record["documents"]) + 1))
        return [{**row.record, "id": row.id, "response": f"{claim} {marks}"}]
    return [{**row.record, "id": row.id}]


def _read_answer(run: Run, assessment: Assessment) -> ScoredAnswer:
    metric = next(item for item in run.metrics if item.name == assessment.metric)
    flagged = assessment.score is not None and metric.problem(assessment) is not None
    spans = [
        (span["start"], span["end"])
        for row in assessment.evidence
        if isinstance(row, Mapping)
        for span in row.get("spans") or ()
    ]
    return ScoredAnswer(
        assessment.id, assessment.metric, assessment.score, flagged, dict(assessment.parts), spans
    )
