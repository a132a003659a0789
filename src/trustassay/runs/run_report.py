"""The report of a run, and that of several."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trustassay.errors import RunFolderError
from trustassay.measured import JudgeTold, judge_told
from trustassay.metric import Metric, MetricInfo, Summary
from trustassay.report import ReportMetric, ReportRun, ReportSample, lines_of, write_page
from trustassay.runs.calibrated import (
    CALIBRATED,
    Calibrated,
    calibrated_run,
    chances_told,
    stored_calibrator,
)
from trustassay.runs.ending import Steps
from trustassay.runs.folder import RunFolder
from trustassay.runs.grouping import DOMAIN, Counted, Place, count, own_label
from trustassay.runs.infos import metric_infos, metrics_of
from trustassay.runs.larger_judge import LARGER_JUDGE
from trustassay.runs.lines import Step
from trustassay.runs.options import WHY
from trustassay.runs.rated import Rated
from trustassay.runs.silence import remarks

SHOWN = 500
"""Answers on a report page; where a run has more, the worst of each kind of problem."""


def counted_of(
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
    counted = counted or counted_of(folder, run, metrics, domain_field, steps, drawing, rated)
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
