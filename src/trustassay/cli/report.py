"""``trustassay report``, ``shard`` and ``merge``: runs shown, divided and put together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from trustassay.cli import common
from trustassay.cli.options import Only, with_options
from trustassay.cli.results import show, show_calibrated
from trustassay.errors import UsageError
from trustassay.options import CalibratorFile, Records, Spending
from trustassay.progress import Steps
from trustassay.show.terminal import one_line, say


@with_options
def report(
    *,
    runs: list[Path],
    domain: common.Domain,
    ratings: Path | None,
    fields: common.RatingFields,
    calibrator: CalibratorFile,
    out: Path | None,
    open_report: common.OpenReport,
) -> None:
    """Write the report page of a finished run again, or one page of several runs."""
    if fields and ratings is None:
        raise UsageError("--field: is about the file of --ratings: name it")
    if len(runs) > 1:
        if ratings is not None:
            raise UsageError("--ratings: joins the answers of one run; got several runs")
        if calibrator is not None:
            raise UsageError("--calibrator: is applied to one run; got several runs")
        from trustassay.runs.report import write_pooled

        page = out or runs[0].parent / "pooled.html"
        say(one_line(write_pooled(runs, page, domain_field=domain, steps=Steps(shown=True))))
    elif out is not None:
        raise UsageError("--out: names the page of several runs; one run has report.html")
    else:
        page = _report_of(runs[0], domain, ratings, fields, calibrator)
    say(f"report: {page}")
    if open_report:
        typer.launch(str(page))


def _report_of(
    run: Path,
    domain: str,
    ratings: Path | None,
    fields: Mapping[str, str],
    calibrator: CalibratorFile,
) -> Path:
    from trustassay.data.ratings import read_ratings
    from trustassay.runs.calibrator import read_calibrator
    from trustassay.runs.folder import RunFolder
    from trustassay.runs.probabilities import CALIBRATED
    from trustassay.runs.report import Rated, write_report
    from trustassay.runs.results import apply_calibrator

    folder = RunFolder(run)
    rated = ratings and Rated(folder, read_ratings(ratings, fields=fields), ratings.name)
    shown: dict[str, Any] = {"domain_field": domain, "rated": rated, "steps": Steps(shown=True)}
    if calibrator is None:
        write_report(folder, **shown)
    else:
        found = apply_calibrator(folder, read_calibrator(Path(calibrator)), **shown)
        show_calibrated({CALIBRATED: found.to_dict()})
    if rated:
        say(one_line(f"ratings: {rated.told.in_words}"))
    return folder.report_path


@with_options
def shard(
    source: common.Source,
    *,
    into: int,
    out: Path | None,
    records: Records,
    whole: bool,
) -> None:
    """Divide an input into shards, to be scored on several machines and merged."""
    from trustassay import api

    target = out or source.with_name(f"{source.name}.shards")
    found = api.shard(source, into=into, out=target, whole=whole, progress=True, **records)
    for one in found.shards:
        say(f"{one.path}: {one.samples:,} samples")
    if found.whole:
        say(f"{found.whole}: all samples")
    if found.intake.faulty:
        say(f"skipped as faulty: {found.intake.faulty}")
    if empty := found.into - len(found.shards):
        say(f"{empty} of {found.into} shards would be empty and have no file")


@with_options
def merge(
    *,
    runs: list[Path],
    out: Path,
    pool: Path | None,
    spending: Annotated[Spending, Only("prices")],
    as_json: common.Json,
) -> None:
    """Put the runs of all shards of an input together: summary, table and report as of one run."""
    from trustassay import api
    from trustassay.calls.client import CallOptions

    known = CallOptions.of(**spending).prices if spending else None
    show(api.merge(runs, out=out, pool=pool, prices=known, progress=True), as_json=as_json)
