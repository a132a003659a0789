"""Write the results at the end of a run: the summary, the Parquet table, the report."""

import io
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import arro3.io
from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema

from trustassay.backends.chat_entailer import entailment_prompt
from trustassay.calls.prices import CHARACTERS_PER_TOKEN, Prices, TokenCounts
from trustassay.calls.store import CallStore, Usage
from trustassay.core.asked import store_rows
from trustassay.core.files import open_atomic
from trustassay.core.metric import Assessment, Metric, MetricInfo, Summary
from trustassay.core.progress import SILENT, StepProgress, StoppedError
from trustassay.core.sample import clean
from trustassay.core.tracebacks import describe_error, write_failure
from trustassay.errors import RunFolderError
from trustassay.judging.entailer_quality import LARGER_ENTAILER, find_entailer_quality
from trustassay.runs import counts
from trustassay.runs.calibrator import (
    CALIBRATED,
    CALIBRATOR,
    CalibrationResult,
    Calibrator,
    calibrate_run,
    write_calibrator,
)
from trustassay.runs.counts import build_outcome_columns
from trustassay.runs.folder import RunFolder, load_metrics, read_metric_infos
from trustassay.runs.intake import Intake, RunOptions
from trustassay.runs.lines import AssessmentLine, StepCallback, StoredAssessments
from trustassay.runs.remarks import ANSWERED_BY, ASKED_INSTEAD, DRAWN, GROWN, LEFT_OUT
from trustassay.runs.report import LARGER_JUDGE, RunRatings, write_report
from trustassay.runs.second_reading import summarise_second_pass
from trustassay.runs.units import QUESTIONS, UNIT, read_units, sketch_questions


def write_results(
    folder: RunFolder,
    metrics: Sequence[Metric],
    intake: Intake,
    options: RunOptions,
    started: float,
    stop: threading.Event,
) -> None:
    """Sort the assessments and write the results, step by step, until ``stop`` is set.

    Args:
        started: when this process began, by the monotonic clock.
        stop: set by another thread to interrupt the work.
    """
    steps = StepProgress(visible=options.progress, stop=stop)
    # Steps of the sort: each sample is read once, each assessment is read and written.
    lines = intake.inventory.samples * (1 + 2 * len(metrics))
    with steps.begin("sorting assessments", lines) as step:
        folder.sort_assessments([metric.name for metric in metrics], step)
    # Before the summary is written, which marks the run as finished.
    folder.note_end()
    write_outputs(folder, metrics, time.monotonic() - started, options, steps)


def write_outputs(
    folder: RunFolder,
    metrics: Sequence[Metric],
    seconds: float,
    options: RunOptions,
    steps: StepProgress,
) -> None:
    """Write ``summary.json``, ``assessments.parquet`` and, if wanted, ``report.html``.

    Args:
        seconds: the duration of the run in this process.
        options: only ``seed``, ``calls.prices`` and ``report`` are used.

    Raises:
        RunFolderError: there is no run, or its assessments are damaged or not sorted.
        StoppedError: ``steps`` were asked to stop; files written before are complete.
    """
    prices, run = options.calls.prices, folder.read_run()
    if run is None:
        raise RunFolderError(f"{folder.path}: holds no run")
    samples = run["samples"]["samples"]
    # Read once, and shared by the summaries of all metrics.
    units = read_units(folder, run.get(UNIT))
    summaries = {}
    for metric in metrics:
        with steps.begin(f"summarising {metric.name}", samples) as step:
            # Most figures need no evidence, which is most of a line.
            assessments = folder.assessments(
                metric.name, evidence_later=True, step=step, units=units
            )
            summaries[metric.name] = _summarise_metric(
                folder.path, metric, assessments, options.seed
            )
    infos = [MetricInfo.of(metric) for metric in metrics]
    counted = counts.count_run(folder, run, infos, installed_metrics=metrics, steps=steps)
    answer_counts = counts.count_unscored(folder)
    asked_instead = counted.asked_instead.to_dict()
    copies = {"repeated": counted.repeated, "copied": counted.copied}
    if answers := {name: count for name, count in copies.items() if count}:
        answer_counts["answers"] = answer_counts.get("answers", {}) | answers
    content: dict[str, Any] = {
        "metrics": {name: summary.to_dict() for name, summary in summaries.items()},
        **_count_calls(folder, counted, prices),
        **{name: run[name] for name in (DRAWN, GROWN) if name in run},
        "skipped": run["skipped"],
        **summarise_second_pass(folder, metrics, run, options.seed),
        **answer_counts,
        **({LEFT_OUT: counted.left_out} if counted.left_out else {}),
        **({ASKED_INSTEAD: asked_instead} if asked_instead else {}),
        counts.LOOKED_KEY: counted.look_counts.to_dict(),
        **_count_asked(counted, run),
        counts.OUTCOMES_KEY: {
            name: outcome.to_dict() for name, outcome in counted.outcomes.items()
        },
        **({counts.KIND_KEY: counted.kind} if counted.kind else {}),
        **estimate_larger_judge(folder, run, prices, counts.count_unread(answer_counts)),
        QUESTIONS: sketch_questions(str(record["question"]) for record in folder.sample_records()),
        "seconds": round(seconds, 3),
    }
    groups_shown = {
        name: groups.to_dict() for name, groups in counted.groups.items() if groups.worth_showing
    }
    if groups_shown:
        content["groups"] = groups_shown
    folder.write_json("summary", content)
    with steps.begin("writing the table", len(metrics) * samples) as step:
        write_parquet(folder, metrics, list(counted.parts), step)
    if options.report:
        write_report(folder, metrics, counted=counted, steps=steps)


def _count_asked(counted: counts.RunCounts, run: Mapping[str, Any]) -> dict[str, Any]:
    """Return who was asked and did not answer, for ``summary.json``; empty if nobody was asked."""
    rows = counted.asked.rows(run["backends"])
    return {counts.ASKED_KEY: store_rows(rows)} if rows else {}


def _summarise_metric(
    folder: Path, metric: Metric, assessments: StoredAssessments, seed: int
) -> Summary:
    """Return the summary of a metric; if it raises, a summary with the error and the counts.

    All calls are paid for at this point. When the metric is fixed, the same command writes the
    summary again.
    """
    try:
        return metric.summarise(assessments, seed=seed)
    # The user stopped it, or the folder is damaged: no fault of the metric.
    except (StoppedError, RunFolderError):
        raise
    except Exception as error:
        write_failure(folder, metric.name, error)
        message = f"{metric.name} could not be summarised: {describe_error(error)}"
        failed = sum(assessment.error is not None for assessment in assessments)
        settings = metric.settings()
        return Summary({}, len(assessments), failed, settings=settings, error=message)


def _count_calls(folder: RunFolder, counted: counts.RunCounts, prices: Prices) -> dict[str, Any]:
    """Return the blocks ``calls``, ``usage`` and ``answered_by`` of ``summary.json``.

    They hold requests and stored calls by capability; calls, tokens and money of chat and decision
    models, for the run and for each metric; and the models that answered for a decision model. They
    do not depend on how often the run was stopped and resumed.
    """
    requests = counted.requests
    stored_calls: Counter[str] = Counter()
    usage_by_model: dict[str, Usage] = {}
    answering_models: dict[str, dict[str, int]] = {}
    if folder.calls_path.exists():
        store = CallStore(folder.calls_path)
        for (capability, _), number in store.counts().items():
            stored_calls[capability] += number
        usage_by_model = store.usage("chat") | store.usage("decision")
        answering_models = store.count_answering_models("decision")
        store.close()
    calls = {
        name: {"requests": requests[name], "stored": stored_calls[name]}
        for name in sorted(requests | ({"chat": 0} if stored_calls["chat"] else {}))
    }
    result: dict[str, Any] = {"calls": calls}
    if usage_by_model:
        result["usage"] = _price_usage(usage_by_model, counted.usage, prices)
    return result | ({ANSWERED_BY: answering_models} if answering_models else {})


def _price_usage(
    paid: Mapping[str, Usage],
    by_metric: Mapping[str, Mapping[str, Mapping[str, int]]],
    prices: Prices,
) -> dict[str, Any]:
    """Return calls, tokens and US dollars: what the run paid, and what its metrics used.

    The price is ``None`` if it is unknown, or if calls came without a count of tokens.

    Args:
        paid: by model, from the store of calls.
        by_metric: usage by metric and model.
    """

    def add_price(model: str, usage: Mapping[str, Any]) -> dict[str, Any]:
        price = prices.usd(model, TokenCounts(usage["prompt_tokens"], usage["reply_tokens"]))
        # A price of a part of the calls would look like that of all.
        usd = None if price is None or usage["uncounted"] else round(price, 6)
        return {**{name: value for name, value in usage.items() if name != "seconds"}, "usd": usd}

    models = {model: add_price(model, usage._asdict()) for model, usage in paid.items()}
    metrics = {
        metric: {model: add_price(model, usage) for model, usage in usage_of_model.items()}
        for metric, usage_of_model in by_metric.items()
    }
    result: dict[str, Any] = {"models": models, "metrics": metrics}
    if table := next(filter(None, map(prices.basis, models)), ""):
        result["prices"] = table
    return result


def apply_calibrator(
    folder: RunFolder,
    calibrator: Calibrator,
    metrics_here: Sequence[Metric] = (),
    *,
    domain_field: str = counts.DOMAIN,
    report: bool = True,
    rated: RunRatings | None = None,
    steps: StepProgress = SILENT,
) -> CalibrationResult:
    """Add probabilities of being right to the summary, table and report of a finished run.

    A copy of the calibrator is written into the folder.

    Args:
        metrics_here: the metrics that are installed; by default they are looked up.
        domain_field: the field of a sample's domain.
        report: whether the report page is written again.
        rated: ratings, which the report shows with the answers.

    Raises:
        RunFolderError: the folder holds no finished run.
        InputError: the calibrator is of other metrics, options or models; nothing was written.
        StoppedError: ``steps`` were asked to stop.
    """
    run, summary = folder.read_finished()
    total = int(run["samples"]["samples"])
    with steps.begin("applying the calibrator", total) as step:
        result = calibrate_run(folder, calibrator, step)
    infos = list(read_metric_infos(folder, run).values())
    installed = list(metrics_here or load_metrics(run).values())
    counted = counts.count_run(
        folder,
        run,
        infos,
        domain_field=domain_field,
        installed_metrics=installed,
        rating_of=rated.mean_of if rated else counts.read_sample_label,
        steps=steps,
    )
    # The copy before the summary, which refers to it.
    write_calibrator(calibrator, folder.path / CALIBRATOR)
    folder.write_json("summary", {**summary, CALIBRATED: result.to_dict()})
    with steps.begin("writing the table", len(infos) * total) as step:
        write_parquet(folder, installed, list(counted.parts), step, result)
    if report:
        write_report(
            folder,
            metrics_here,
            domain_field=domain_field,
            counted=counted,
            rated=rated,
            calibrated=result,
            steps=steps,
        )
    return result


ROWS_PER_BATCH = 4096
"""Rows of a batch, and of a row group of the Parquet file, at most."""
BATCH_BYTES = 1 << 22
"""Bytes of evidence from which a batch is written; evidence may be far larger than all else."""

_OUTCOME_NAMES = ("outcome", "outcome_reason")
_NAMES = ("id", "metric", *_OUTCOME_NAMES, "score", "verdict", "reason", "error", "evidence")
_COLUMNS: dict[str, Any] = {name: DataType.string() for name in _NAMES}
_COLUMNS["score"] = DataType.float64()


def write_parquet(
    folder: RunFolder,
    metrics: Sequence[Metric],
    parts: Sequence[str],
    step: StepCallback = lambda: None,
    calibrated: CalibrationResult | None = None,
) -> None:
    """Write the assessments as a table: one column per part (``parts.NAME``), evidence as JSON.

    Args:
        metrics: those of the run that are installed.
        parts: the names of all parts.
        calibrated: with it, each row has the answer's ``probability`` of being right, and whether
            it is ``accepted``.
    """
    types = _COLUMNS | {f"parts.{name}": DataType.float64() for name in parts}
    if calibrated:
        types |= {"probability": DataType.float64(), "accepted": DataType.bool()}
    schema = Schema([Field(name, kind, nullable=True) for name, kind in types.items()])
    by_name = {metric.name: metric for metric in metrics}
    # A generator: the table is written batch by batch, and never held as a whole.
    batches = (
        _build_batch(lines, by_name, types, schema)
        for lines in _split_batches(_read_lines_with_chances(folder, calibrated), step)
    )
    with open_atomic(folder.parquet_path) as file:
        target = _ErrorKeepingFile(file)
        arro3.io.write_parquet(
            RecordBatchReader.from_batches(schema, batches),
            target,
            # The fastest level: evidence is text that compresses well at any.
            compression="zstd(1)",
            max_row_group_size=ROWS_PER_BATCH,
        )
        if target.error:
            raise target.error


class _ErrorKeepingFile(io.RawIOBase):
    """A file for arro3 that keeps its first error.

    If ``write`` raised, for instance at a full disk, arro3 would panic and print to standard error.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.error: OSError | None = None

    def writable(self) -> bool:
        """Return True; ``io`` asks before it writes."""
        return True

    def write(self, data: Any) -> int:
        """Write to the file, or keep the error."""
        try:
            self._file.write(data)
        except OSError as error:
            self.error = self.error or error
        return len(data)

    def flush(self) -> None:
        """Do nothing: the block that opened the file flushes it."""


def _read_lines_with_chances(
    folder: RunFolder, calibrated: CalibrationResult | None
) -> Iterator[AssessmentLine]:
    """Yield the assessments, with ``probability`` and ``accepted`` if a calibrator was applied."""
    number, sample = -1, None
    for _, line in folder.lines():
        if calibrated is None:
            yield line
            continue
        # The file is sorted: the lines of one sample follow each other.
        if line.fields["id"] != sample:
            number, sample = number + 1, line.fields["id"]
        chance = calibrated.chance_of(number)
        chance_fields = {"probability": chance.probability, "accepted": chance.accepted}
        yield line._replace(fields={**line.fields, **chance_fields})


def _split_batches(
    lines: Iterable[AssessmentLine], step: StepCallback
) -> Iterator[list[AssessmentLine]]:
    batch: list[AssessmentLine] = []
    evidence_bytes = 0
    for line in lines:
        batch.append(line)
        evidence_bytes += len(line.evidence)
        if len(batch) == ROWS_PER_BATCH or evidence_bytes >= BATCH_BYTES:
            yield batch
            batch, evidence_bytes = [], 0
        step()
    if batch:
        yield batch


def _build_batch(
    lines: Sequence[AssessmentLine],
    metrics: Mapping[str, Metric],
    types: Mapping[str, Any],
    schema: Any,
) -> RecordBatch:
    rows = [line.fields for line in lines]
    outcomes = build_outcome_columns(metrics, (Assessment.from_dict(row) for row in rows))
    columns: dict[str, list[Any]] = {
        name: [clean(row[name]) if isinstance(row[name], str) else row[name] for row in rows]
        for name in _COLUMNS
        if name != "evidence" and name not in _OUTCOME_NAMES
    }
    columns |= outcomes
    # Evidence stays JSON text: its shape differs between metrics.
    columns["evidence"] = [line.evidence_text() for line in lines]
    for name in types.keys() & {"probability", "accepted"}:
        columns[name] = [row[name] for row in rows]
    # The other columns are parts; a metric that does not have one leaves it empty.
    for name in types.keys() - columns.keys():
        columns[name] = [row["parts"].get(name.removeprefix("parts.")) for row in rows]
    arrays = [Array(columns[name], kind) for name, kind in types.items()]
    return RecordBatch.from_arrays(arrays, schema=schema)


JUDGE_REPLY_TOKENS = 4
"""Tokens of a reply of one word such as CONTRADICTS."""


def estimate_larger_judge(
    folder: RunFolder, run: Mapping[str, Any], prices: Prices, unread: int
) -> dict[str, Any]:
    """Return the estimated price of a larger judge for ``summary.json``; empty if it is unknown.

    The larger model would read the same pairs as the run's entailer, in its own prompt.

    Args:
        unread: samples that the entailer did not judge; they are counted like the others.
    """
    entailer = str(run["backends"].get("entailer") or "")
    if not find_entailer_quality(entailer, run["metrics"]).sets or not folder.calls_path.exists():
        return {}
    store = CallStore(folder.calls_path)
    calls, characters = store.size("entailment", entailer)
    store.close(is_last_user=False)
    samples = int(run["samples"]["samples"])
    if not calls or unread >= samples:
        return {}
    # Characters of the prompt around premise and hypothesis.
    around = len(entailment_prompt().fill(premise="", hypothesis=""))
    # Samples that the entailer did not read are assumed to have as many pairs as the others.
    more = samples / (samples - unread)
    tokens = (characters + calls * around) / CHARACTERS_PER_TOKEN
    usd = prices.usd(
        LARGER_ENTAILER, TokenCounts(round(more * tokens), round(more * calls * JUDGE_REPLY_TOKENS))
    )
    if usd is None:
        return {}
    estimate = {"usd": round(usd, 6), "samples": samples, "prices": prices.basis(LARGER_ENTAILER)}
    return {LARGER_JUDGE: {"entailer": LARGER_ENTAILER, **estimate}}
