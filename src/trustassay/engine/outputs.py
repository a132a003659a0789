"""What a run leaves behind at its end: the summary, the Parquet file, the report."""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

import arro3.io
import numpy as np
from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema

from trustassay.engine.cache import CallStore, Usage
from trustassay.engine.folder import RunFolder, RunFolderError
from trustassay.engine.grouping import DOMAIN, grouped
from trustassay.engine.intake import Intake
from trustassay.engine.usage import Prices, Tokens
from trustassay.files import whole
from trustassay.metric import Assessment, Metric, Summary, metric_class
from trustassay.report import Groups, Histogram, ReportMetric, ReportRun, ReportSample, write_page
from trustassay.sample import Sample, clean

__all__ = ["write_outputs", "write_report"]

ROWS = 4096
SHOWN = 500
"""Answers on a report page; where a run has more, those that scored worst."""


def write_outputs(
    folder: RunFolder,
    metrics: Sequence[Metric],
    intake: Intake,
    seconds: float,
    *,
    seed: int,
    report: bool,
    prices: Prices,
) -> None:
    """Write ``summary.json``, ``assessments.parquet`` and, if wanted, ``report.html``."""
    summaries = {
        metric.name: metric.summarise(folder.assessments(metric.name), seed=seed)
        for metric in metrics
    }
    content: dict[str, Any] = {
        "metrics": {name: summary.to_dict() for name, summary in summaries.items()},
        **_calls(folder, prices),
        "skipped": intake.faulty,
        "seconds": round(seconds, 3),
    }
    groups = grouped(folder, folder.read_run() or {}, [type(metric) for metric in metrics])
    if told := {name: one.to_dict() for name, one in groups.items() if one.worth_showing}:
        content["groups"] = told
    folder.write_json("summary", content)
    write_parquet(folder)
    if report:
        write_report(folder, metrics, groups=groups)


def _calls(folder: RunFolder, prices: Prices) -> dict[str, Any]:
    """Return the requests that the samples made of each capability, with the stored calls, and
    what the chat models took: for the run, and for each metric.

    All is the same however often the run was stopped and taken up.
    """
    requests: Counter[str] = Counter()
    by_metric: dict[str, dict[str, Counter[str]]] = {}
    for assessment in folder.assessments():
        requests.update(assessment.calls)
        for model, usage in assessment.usage.items():
            models = by_metric.setdefault(assessment.metric, {})
            models.setdefault(model, Counter()).update(usage)
    stored: Counter[str] = Counter()
    paid: dict[str, Usage] = {}
    if folder.calls_path.exists():
        store = CallStore(folder.calls_path)
        for (capability, _), count in store.counts().items():
            stored[capability] += count
        paid = store.usage("chat")
        store.close()
    calls = {
        name: {"requests": requests[name], "stored": stored[name]}
        for name in sorted(requests | ({"chat": 0} if paid else {}))
    }
    if not paid:
        return {"calls": calls}
    return {"calls": calls, "usage": _usage(paid, by_metric, prices)}


def _usage(
    paid: Mapping[str, Usage],
    by_metric: Mapping[str, Mapping[str, Mapping[str, int]]],
    prices: Prices,
) -> dict[str, Any]:
    """Return calls, tokens and US dollars: what the run paid, and what its metrics used.

    Without a known price, or where calls came without a count of tokens, the price is unknown.
    """

    def usd(model: str, prompt: int, reply: int, uncounted: int) -> float | None:
        price = prices.usd(model, Tokens(prompt, reply))
        return None if price is None or uncounted else round(price, 6)

    models = {
        model: {
            **{name: value for name, value in usage._asdict().items() if name != "seconds"},
            "usd": usd(model, usage.prompt_tokens, usage.reply_tokens, usage.uncounted),
        }
        for model, usage in paid.items()
    }
    metrics = {
        metric: {
            model: {
                **usage,
                "usd": usd(
                    model, usage["prompt_tokens"], usage["reply_tokens"], usage["uncounted"]
                ),
            }
            for model, usage in used.items()
        }
        for metric, used in by_metric.items()
    }
    return {"models": models, "metrics": metrics}


# Parquet

_COLUMNS: dict[str, Any] = {
    "id": DataType.string(),
    "metric": DataType.string(),
    "score": DataType.float64(),
    "verdict": DataType.string(),
    "reason": DataType.string(),
    "error": DataType.string(),
    "evidence": DataType.string(),
}


def write_parquet(folder: RunFolder) -> None:
    """Write the assessments as a table: one column a part (``parts.NAME``), evidence as JSON."""
    assessments = folder.assessments()
    names = dict.fromkeys(name for a in assessments for name in a.parts)
    types = _COLUMNS | {f"parts.{name}": DataType.float64() for name in names}
    schema = Schema([Field(name, kind, nullable=True) for name, kind in types.items()])
    batches = (_batch(chunk, list(names), types, schema) for chunk in _chunks(assessments))
    with whole(folder.parquet_path) as file:
        target = _Target(file)
        arro3.io.write_parquet(RecordBatchReader.from_batches(schema, batches), target)
        if target.error:
            raise target.error


class _Target(io.RawIOBase):
    """Keeps the first error of a file, as arro3 panics at one, on standard error."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.error: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        try:
            self._file.write(data)
        except OSError as error:
            self.error = self.error or error
        return len(data)

    def flush(self) -> None:
        """Leave it to the block that opened the file."""


def _batch(
    chunk: Sequence[Assessment], names: Sequence[str], types: Mapping[str, Any], schema: Any
) -> RecordBatch:
    columns: dict[str, list[Any]] = {
        name: [_storable(getattr(a, name)) for a in chunk]
        for name in _COLUMNS
        if name != "evidence"
    }
    columns["evidence"] = [clean(json.dumps(list(a.evidence), ensure_ascii=False)) for a in chunk]
    columns |= {f"parts.{name}": [a.parts.get(name) for a in chunk] for name in names}
    arrays = [Array(columns[name], kind) for name, kind in types.items()]
    return RecordBatch.from_arrays(arrays, schema=schema)


def _storable(value: Any) -> Any:
    return clean(value) if isinstance(value, str) else value


def _chunks(assessments: Iterable[Assessment]) -> Iterator[list[Assessment]]:
    iterator = iter(assessments)
    while chunk := list(islice(iterator, ROWS)):
        yield chunk


# report


def write_report(
    folder: RunFolder,
    metrics_at_hand: Sequence[Metric] = (),
    *,
    domain_field: str = DOMAIN,
    groups: Mapping[str, Groups] | None = None,
) -> None:
    """Write ``report.html`` from what is stored in the folder.

    A metric that is at hand need not be installed; ``groups`` are counted anew where they are not
    at hand.

    Raises:
        RunFolderError: the folder holds no finished run.
        UnknownNameError: a metric of the run is not installed.
    """
    run, summary = folder.read_run(), folder.read_summary()
    if run is None or summary is None:
        raise RunFolderError(f"{folder.path}: holds no finished run")
    at_hand = {metric.name: type(metric) for metric in metrics_at_hand}
    metrics = [at_hand.get(name) or metric_class(name) for name in run["metrics"]]
    try:
        total = int(run["samples"]["samples"])
        summaries = [Summary(**summary["metrics"][metric.name]) for metric in metrics]
    except (KeyError, TypeError, ValueError):
        raise RunFolderError(f"{folder.path}/summary.json: damaged, or not of this run") from None
    columns = [folder.assessments(metric.name) for metric in metrics]
    folder.check_samples(total)
    for metric, column in zip(metrics, columns, strict=True):
        if len(column) != total:
            words = f"has {len(column):,} lines of {metric.name} for {total:,} samples"
            raise RunFolderError(f"{folder.assessments_path}: damaged ({words}); score again")
    histograms = [Histogram(*metric.score_range, metric.verdicts) for metric in metrics]
    groups = groups or grouped(folder, run, metrics, domain_field)
    worst = np.full(total, np.inf)
    for metric, histogram, assessments in zip(metrics, histograms, columns, strict=True):
        for position, assessment in enumerate(assessments):
            if assessment.score is not None or assessment.error is not None:
                histogram.add(assessment.score, assessment.verdict)
            rank = _rank(assessment, lower_is_better=metric.lower_is_better)
            worst[position] = min(worst[position], rank)
    shown = set(np.argsort(worst, kind="stable")[:SHOWN].tolist())
    page = ReportRun(
        title=Path(run["input"]).name,
        facts=_facts(run),
        metrics=[
            ReportMetric(m.name, m.title, s, m.figures, h, groups[m.name])
            for m, s, h in zip(metrics, summaries, histograms, strict=True)
        ],
        total=total,
        shown=_shown(folder, columns, shown),
        note=f"the {SHOWN} {_worst(metrics)} of {total:,} answers" if total > SHOWN else "",
    )
    write_page(page, folder.report_path)


def _worst(metrics: Sequence[type[Metric]]) -> str:
    lower = {metric.lower_is_better for metric in metrics}
    return (
        "worst-scored" if len(lower) > 1 else "highest-scored" if True in lower else "lowest-scored"
    )


def _rank(assessment: Assessment, *, lower_is_better: bool) -> float:
    """Order what a reader should see first: failures, then bad scores."""
    if assessment.error is not None:
        return -math.inf
    if assessment.score is None:
        return math.inf
    return -assessment.score if lower_is_better else assessment.score


def _shown(
    folder: RunFolder, columns: Iterable[Iterable[Assessment]], positions: set[int]
) -> Iterator[ReportSample]:
    rows: Iterator[tuple[Sample, *tuple[Assessment, ...]]] = zip(
        folder.samples(), *columns, strict=True
    )
    for position, (sample, *assessments) in enumerate(rows):
        if position in positions:
            yield ReportSample(sample, assessments)


def _facts(run: Mapping[str, Any]) -> dict[str, str]:
    """Return what a reader wants to know first; all settings stand below the figures."""
    facts = {"input": Path(run["input"]).name}
    if run.get("skipped"):
        facts["left out as faulty"] = f"{run['skipped']:,}"
    facts |= {name: str(backend) for name, backend in run["backends"].items()}
    for metric, options in run["metrics"].items():
        if "profile" in options:
            facts[f"{metric} profile"] = str(options["profile"])
    return facts | {"seed": str(run["seed"]), "trustassay": str(run["trustassay"])}
