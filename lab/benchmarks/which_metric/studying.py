"""What is known of a set after scoring: its study, its scores as a table, and what they cost."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lab.benchmarks.which_metric.combining import Scores
from lab.benchmarks.which_metric.scoring import scored, seconds
from lab.benchmarks.which_metric.sets import PublicSet, records
from trustassay import study
from trustassay.people.study.answers import MetricCost, ScoreColumn, read_answers
from trustassay.people.study.command import EstimatesByColumn, LabelStudy

OF_SEVERAL = re.compile(r"(?P<name>[^ ]+) \((?P<run>.+)\)")
ALONE = {"judge": "judge-entailer"}
"""The run of a metric whose columns do not name it."""
KEPT_PARTS = frozenset(
    "support no_penalty em contains token_f1 novel_token_f1 bleu_4 rouge_l chrf".split()
)


class Studied(NamedTuple):
    """A set held against its labels; columns are called after their run (``faithfulness-lexical``,
    ``faithfulness-lexical.support``), baselines ``length`` and ``source``.
    """

    public: PublicSet
    answers: int
    questions: int
    right: float
    figures: EstimatesByColumn
    scores: Scores
    costs: Mapping[str, MetricCost]
    seconds: Mapping[str, float | None]
    kinds: Sequence[str]
    """What is wrong with each answer, as its annotators called it; empty if not told."""


def studied(public: PublicSet, answers: int, out: Path, resamples: int) -> Studied:
    """Score what is missing of a set, and study it."""
    folders = scored(public, answers, out)
    found = study(folders, labels="label", resamples=resamples)
    label: LabelStudy = found.labels[0]
    rows = read_answers(folders, ["label"])
    columns = {called(one): one for one in rows.columns if wanted(one)}
    labels = label.label.values
    kinds = {one["id"]: one.get("kind", "") for one in records(public, answers)}
    table = np.stack([one.values for one in columns.values()], axis=1)
    return Studied(
        public,
        found.answers,
        found.questions,
        float(labels.mean()),
        {column_name(name): figures for name, figures in label.figures.items()},
        Scores(public.name, list(columns), table, labels, rows.questions),
        {Path(cost.run).name: cost for cost in found.costs},
        {folder.name: seconds(folder) for folder in folders},
        [kinds[row.id] for row in rows.rows],
    )


def wanted(column: ScoreColumn) -> bool:
    """Return whether a column is a score, or a part that says how good an answer is."""
    return column.kind == "metric" or column.name.split(" ")[0].split(".")[1] in KEPT_PARTS


def called(column: ScoreColumn) -> str:
    return column_name(column.name)


def column_name(name: str) -> str:
    """Return what a column of ``study`` is called here: ``RUN`` or ``RUN.PART``."""
    if name.startswith("length ("):
        return "length"
    several = OF_SEVERAL.fullmatch(name)
    metric, _, part = (several["name"] if several else name).partition(".")
    run = several["run"] if several else ALONE.get(metric, metric)
    return f"{run}.{part}" if part else run
