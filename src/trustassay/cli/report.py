"""``trustassay report``: write the report of a run again, or one page of several runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.cli.results import show_calibrated
from trustassay.core.progress import StepProgress
from trustassay.errors import UsageError
from trustassay.report.terminal import one_line, say
from trustassay.runs.options import (
    OUTPUT,
    CalibratorFile,
    Flag,
    KnownLabelOptions,
)


@with_options
def report(  # noqa: PLR0913 - one argument an option
    *,
    runs: Annotated[
        list[Path],
        Flag("RUN...", "A run's folder. Several runs share one page, by model and domain."),
    ],
    domain: common.Domain,
    ratings: common.Ratings,
    fields: common.RatingFields,
    calibrator: CalibratorFile,
    labels: KnownLabelOptions,
    out: Annotated[
        Path | None,
        Flag(
            "--out",
            "The page of several runs. Default: pooled.html beside the first run.",
            metavar="FILE",
            group=OUTPUT,
        ),
    ],
    open_report: common.OpenReport,
) -> None:
    """Write the report page of a finished run again, or one page for several runs.

    \b
    trustassay report trustassay-runs/answers-1a2b3c4d --open
    trustassay report runs/one --domain topic
    trustassay report runs/one --ratings ratings.csv
    trustassay report runs/one --labels ratings.csv
    trustassay report runs/one --calibrator calibrator.json
    trustassay report runs/gpt-4o runs/llama runs/mistral --out models.html
    """
    if fields and ratings is None:
        raise UsageError("--field: needs --ratings FILE, whose columns it names")
    # Several runs have a page of their own, without single settings of one run.
    if len(runs) > 1:
        if ratings is not None:
            raise UsageError("--ratings: works with one run; got several runs")
        if calibrator is not None or labels:
            flag = "--labels" if labels else "--calibrator"
            raise UsageError(f"{flag}: works with one run; got several runs")
        from trustassay.runs.report import write_pooled

        page = out or runs[0].parent / "pooled.html"
        for line in write_pooled(runs, page, domain_field=domain, steps=StepProgress(visible=True)):
            say(one_line(line))
    # The report of one run has a fixed place, where other commands look for it.
    elif out is not None:
        raise UsageError("--out: is for several runs; the page of one run is its report.html")
    else:
        page = _write_report(runs[0], domain, ratings, fields, calibrator, labels)
    say(f"report: {page}")
    if open_report:
        typer.launch(str(page))


def _write_report(
    run: Path,
    domain: str,
    ratings: Path | None,
    fields: Mapping[str, str],
    calibrator: CalibratorFile,
    labels: KnownLabelOptions,
) -> Path:
    from trustassay.compare.corrected import LabelFiles, describe_corrected_shares
    from trustassay.input.ratings import read_ratings
    from trustassay.runs.calibrator import CALIBRATED, read_calibrator
    from trustassay.runs.folder import RunFolder
    from trustassay.runs.report import RunRatings, write_report
    from trustassay.runs.results import apply_calibrator

    folder = RunFolder(run)
    rated = ratings and RunRatings(folder, read_ratings(ratings, fields=fields), ratings.name)
    given_labels = LabelFiles.from_options(**labels)
    notes = describe_corrected_shares(run, given_labels, domain) if given_labels else []
    report_options: dict[str, Any] = {
        "domain_field": domain,
        "rated": rated,
        "steps": StepProgress(visible=True),
    }
    if calibrator is not None:
        calibrator_content = read_calibrator(Path(calibrator))
        result = apply_calibrator(folder, calibrator_content, report=not notes, **report_options)
        show_calibrated({CALIBRATED: result.to_dict()})
    # With notes the page is written here, since the calibrator's own page would lack them.
    if calibrator is None or notes:
        write_report(folder, notes=notes, **report_options)
    if rated:
        say(one_line(f"ratings: {rated.summary.in_words}"))
    for line in notes:
        say(one_line(line))
    return folder.report_path
