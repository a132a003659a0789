"""The results at the end of a run: the summary, the Parquet file, the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trustassay.calls.spending import Prices, Tokens
from trustassay.calls.store import CallStore, Usage
from trustassay.errors import RunFolderError
from trustassay.measured import JudgeTold, judge_told
from trustassay.metric import Metric, MetricInfo, Summary
from trustassay.runs.calibrated import (
    CALIBRATED,
    Calibrated,
    calibrated_run,
    chances_told,
    store_calibrator,
    stored_calibrator,
)
from trustassay.runs.calibrator import Calibrator
from trustassay.runs.ending import Steps, StoppedError
from trustassay.runs.folder import RunFolder, Step, StoredAssessments
from trustassay.runs.grouping import DOMAIN, Counted, Place, count, own_label
from trustassay.runs.infos import metric_infos, metrics_of
from trustassay.runs.intake import Intake
from trustassay.runs.larger_judge import LARGER_JUDGE, larger_judge
from trustassay.runs.options import WHY
from trustassay.runs.rated import Rated
from trustassay.runs.silence import remarks, silence, unread
from trustassay.runs.table import write_parquet
from trustassay.runs.units import UNIT, read_units
from trustassay.show.first_card import lines_of
from trustassay.show.page import ReportMetric, ReportRun, ReportSample, write_page
from trustassay.tracebacks import keep_failure, words_of

__all__ = ["apply_calibrator", "judge_of", "write_outputs", "write_report"]

SHOWN = 500
"""Answers on a report page; where a run has more, the worst of each kind of problem."""


def write_outputs(  # noqa: PLR0913 - two callers name them all
    folder: RunFolder,
    metrics: Sequence[Metric],
    intake: Intake,
    seconds: float,
    *,
    seed: int,
    report: bool,
    prices: Prices,
    steps: Steps | None = None,
) -> None:
    """Write ``summary.json``, ``assessments.parquet`` and, if wanted, ``report.html``.

    Raises:
        RunFolderError: there is no run, or its assessments are damaged or not sorted.
        StoppedError: ``steps`` were asked to stop; files written before are complete.
    """
    steps = steps or Steps()
    run = folder.read_run()
    if run is None:
        raise RunFolderError(f"{folder.path}: holds no run")
    samples = run["samples"]["samples"]
    units = read_units(folder, run.get(UNIT))
    summaries = {}
    for metric in metrics:
        with steps.begin(f"summarising {metric.name}", samples) as step:
            assessments = folder.assessments_to_sum(metric.name, step, units)
            summaries[metric.name] = _summary(folder.path, metric, assessments, seed)
    infos = [MetricInfo.of(metric) for metric in metrics]
    here = {metric.name: metric for metric in metrics}
    counted = _counted(folder, run, infos, DOMAIN, steps, here)
    silent = silence(folder)
    content: dict[str, Any] = {
        "metrics": {name: summary.to_dict() for name, summary in summaries.items()},
        **_calls(folder, counted, prices),
        "skipped": intake.faulty,
        **silent,
        **larger_judge(folder, run, prices, unread(silent)),
        "seconds": round(seconds, 3),
    }
    groups = counted.groups
    if told := {name: one.to_dict() for name, one in groups.items() if one.worth_showing}:
        content["groups"] = told
    folder.write_json("summary", content)
    with steps.begin("writing the table", len(metrics) * samples) as step:
        write_parquet(folder, list(counted.parts), step)
    if report:
        write_report(folder, metrics, counted=counted, steps=steps)


def _counted(
    folder: RunFolder,
    run: Mapping[str, Any],
    metrics: Sequence[MetricInfo],
    domain_field: str,
    steps: Steps,
    here: Mapping[str, Metric],
    rated: Rated | None = None,
) -> Counted:
    with steps.begin("counting groups", run["samples"]["samples"]) as step:
        return count(
            folder,
            run,
            metrics,
            domain_field=domain_field,
            shown=SHOWN,
            here=here,
            rating_of=rated.mean_of if rated else own_label,
            step=step,
        )


def _summary(folder: Path, metric: Metric, assessments: StoredAssessments, seed: int) -> Summary:
    """Return the summary of a metric; if it fails, one with the error and the counts.

    The calls are paid for by then, and the same command writes the summary when it is fixed.
    """
    try:
        return metric.summarise(assessments, seed=seed)
    except (StoppedError, RunFolderError):
        raise
    except Exception as error:
        keep_failure(folder, metric.name, error)
        words = f"{metric.name} could not be summarised: {words_of(error)}"
        failed = sum(one.error is not None for one in assessments)
        settings = metric.settings()
        return Summary({}, len(assessments), failed, settings=settings, error=words)


def _calls(folder: RunFolder, counted: Counted, prices: Prices) -> dict[str, Any]:
    """Return the requests that the samples made of each capability, with the stored calls, and
    what the chat models took: for the run, and for each metric.

    The result does not depend on how often the run was stopped and resumed.
    """
    requests = counted.requests
    stored: Counter[str] = Counter()
    paid: dict[str, Usage] = {}
    if folder.calls_path.exists():
        store = CallStore(folder.calls_path)
        for (capability, _), number in store.counts().items():
            stored[capability] += number
        paid = store.usage("chat")
        store.close()
    calls = {
        name: {"requests": requests[name], "stored": stored[name]}
        for name in sorted(requests | ({"chat": 0} if paid else {}))
    }
    if not paid:
        return {"calls": calls}
    return {"calls": calls, "usage": _usage(paid, counted.usage, prices)}


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
    found: dict[str, Any] = {"models": models, "metrics": metrics}
    if table := next(filter(None, map(prices.basis, models)), ""):
        found["prices"] = table
    return found


# what a calibrator adds


def apply_calibrator(
    folder: RunFolder,
    calibrator: Calibrator,
    metrics_here: Sequence[Metric] = (),
    *,
    domain_field: str = DOMAIN,
    report: bool = True,
    rated: Rated | None = None,
    steps: Steps | None = None,
) -> Calibrated:
    """Add probabilities of being right to a finished run: to its summary, its table, its report,
    and a copy of the calibrator to its folder.

    Raises:
        RunFolderError: the folder holds no finished run.
        InputError: the calibrator is of other metrics, options or models; nothing was written.
        StoppedError: ``steps`` were asked to stop.
    """
    steps = steps or Steps()
    run, summary = folder.read_run(), folder.read_summary()
    if run is None or summary is None:
        raise RunFolderError(f"{folder.path}: holds no finished run")
    total = int(run["samples"]["samples"])
    with steps.begin("applying the calibrator", total) as step:
        found = calibrated_run(folder, calibrator, step)
    infos = list(metric_infos(folder, run).values())
    drawing = {metric.name: metric for metric in metrics_here} or metrics_of(run)
    counted = _counted(folder, run, infos, domain_field, steps, drawing, rated)
    store_calibrator(folder, calibrator)
    folder.write_json("summary", {**summary, CALIBRATED: found.to_dict()})
    with steps.begin("writing the table", len(infos) * total) as step:
        write_parquet(folder, list(counted.parts), step, found)
    if report:
        write_report(
            folder,
            metrics_here,
            domain_field=domain_field,
            counted=counted,
            rated=rated,
            calibrated=found,
            steps=steps,
        )
    return found


# report


def write_report(
    folder: RunFolder,
    metrics_here: Sequence[Metric] = (),
    *,
    domain_field: str = DOMAIN,
    counted: Counted | None = None,
    rated: Rated | None = None,
    calibrated: Calibrated | None = None,
    steps: Steps | None = None,
) -> None:
    """Write ``report.html`` from what is stored in the folder.

    ``metrics_here`` draw their evidence; else those that are installed do. ``counted`` is what the
    folder holds, where it was counted just now. ``rated`` holds ratings, which are shown with the
    answers and take the place of the samples' own labels in drawings. ``calibrated`` is what a
    calibrator says of the answers; if one was applied before, that is shown.

    Raises:
        RunFolderError: the folder holds no finished run.
        UnknownNameError: a run of an earlier version, and a metric of it is not installed.
        StoppedError: ``steps`` were asked to stop.
    """
    steps = steps or Steps()
    run, summary = folder.read_run(), folder.read_summary()
    if run is None or summary is None:
        raise RunFolderError(f"{folder.path}: holds no finished run")
    metrics = list(metric_infos(folder, run).values())
    try:
        total = int(run["samples"]["samples"])
        summaries = [Summary(**summary["metrics"][metric.name]) for metric in metrics]
    except (KeyError, TypeError, ValueError):
        raise RunFolderError(f"{folder.path}/summary.json: damaged, or not of this run") from None
    folder.check_samples(total)
    drawing = {metric.name: metric for metric in metrics_here} or metrics_of(run)
    counted = counted or _counted(folder, run, metrics, domain_field, steps, drawing, rated)
    if calibrated is None and CALIBRATED in summary:
        with steps.begin("applying the calibrator", total) as step:
            calibrated = calibrated_run(folder, stored_calibrator(folder), step)
    places = counted.choice.by_need()
    with steps.begin("writing the report", len(places)) as step:
        page = ReportRun(
            title=Path(run["input"]).name,
            facts=_facts(run),
            metrics=[
                ReportMetric(
                    m.name,
                    m.title,
                    s,
                    m.figures,
                    counted.histograms[m.name],
                    counted.groups[m.name],
                    drawing.get(m.name),
                )
                for m, s in zip(metrics, summaries, strict=True)
            ],
            total=total,
            shown=_shown(folder, run["metrics"], places, step, rated, calibrated),
            ratings=rated.told() if rated else None,
            selection=counted.choice.selection() if total > SHOWN else None,
            remarks=remarks(summary, total),
            looked=counted.looked,
            lines=lines_of({m.name: m.title for m in metrics}, drawing),
            judge=judge_of(run, summary),
            chances=chances_told(calibrated.to_dict()) if calibrated else None,
        )
        write_page(page, folder.report_path)


def judge_of(run: Mapping[str, Any], summary: Mapping[str, Any] | None = None) -> JudgeTold | None:
    """Return how sure the entailer of a run is, by its ``run.json``, and what a larger one costs,
    by its ``summary.json``; ``None`` if it had none.
    """
    entailer = run["backends"].get("entailer")
    if not entailer:
        return None
    larger = (summary or {}).get(LARGER_JUDGE)
    return judge_told(str(entailer), run["metrics"], larger, run.get(WHY, ""))


def _shown(
    folder: RunFolder,
    metrics: Collection[str],
    places: Iterable[Place],
    step: Step,
    rated: Rated | None,
    calibrated: Calibrated | None,
) -> Iterator[ReportSample]:
    order = list(metrics)
    for place in places:
        assessments = folder.assessments_at(place.assessments, len(order))
        assessments.sort(key=lambda one: order.index(one.metric))
        sample = folder.sample_at(place.sample)
        ratings = rated.of(sample.id, sample.model) if rated else None
        chance = calibrated.of(place.number) if calibrated else None
        yield ReportSample(sample, assessments, ratings, place.number + 1, chance)
        step()


def _facts(run: Mapping[str, Any]) -> dict[str, str]:
    """Return what a reader needs first; all settings are below the figures."""
    facts = {"input": Path(run["input"]).name}
    if run.get("skipped"):
        facts["skipped as faulty"] = f"{run['skipped']:,}"
    facts |= {
        word: ", ".join(map(str, one.values())) if isinstance(one, Mapping) else str(one)
        for word, one in run["backends"].items()
    }
    for metric, options in run["metrics"].items():
        if "profile" in options:
            facts[f"{metric} profile"] = str(options["profile"])
    return facts | {"seed": str(run["seed"]), "trustassay": str(run["trustassay"])}
