"""``trustassay report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.cli.results import show_calibrated
from trustassay.errors import UsageError
from trustassay.options import Argument, CalibratorFile, Flag
from trustassay.show.terminal import one_line, say


@with_options
def report(
    *,
    runs: Annotated[
        list[Path],
        Argument(
            "A run's folder; several are shown together, by model and domain.", metavar="RUN..."
        ),
    ],
    domain: Annotated[
        str, Flag("The field that holds a sample's domain; dots descend into objects.")
    ] = "domain",
    ratings: Annotated[
        Path | None,
        Flag(
            "Ratings of the answers by people, as agree reads them: shown with each answer, "
            "and drawn against the scores.",
            metavar="FILE",
        ),
    ] = None,
    fields: common.RatingFields,
    calibrator: CalibratorFile,
    out: Annotated[
        Path | None,
        Flag(
            "The page of several runs. Default: pooled.html beside the first one.", metavar="FILE"
        ),
    ] = None,
    open_report: Annotated[bool, Flag("Open the report in a browser.", name="--open")] = False,
) -> None:
    """Write the report page of a finished run again, or one page of several runs.

    \b
    trustassay report trustassay-runs/answers-1a2b3c4d --open
    trustassay report runs/one --domain topic
    trustassay report runs/one --ratings ratings.csv
    trustassay report runs/one --calibrator calibrator.json
    trustassay report runs/gpt-4o runs/llama runs/mistral --out models.html
    """
    if fields and ratings is None:
        raise UsageError("--field: is about the file of --ratings: name it")
    if len(runs) > 1:
        if ratings is not None:
            raise UsageError("--ratings: joins the answers of one run; got several runs")
        if calibrator is not None:
            raise UsageError("--calibrator: is applied to one run; got several runs")
        page = out or runs[0].parent / "pooled.html"
        _pool(runs, page, domain)
        if open_report:
            typer.launch(str(page))
        return
    if out is not None:
        raise UsageError("--out: names the page of several runs; one run has report.html")
    from trustassay.runs.folder import RunFolder
    from trustassay.runs.probabilities import CALIBRATED
    from trustassay.runs.report import write_report
    from trustassay.runs.tasks import Steps

    folder = RunFolder(runs[0])
    rated = None
    if ratings is not None:
        from trustassay.data.ratings import read_ratings
        from trustassay.runs.report import Rated

        rated = Rated(folder, read_ratings(ratings, fields=fields), ratings.name)
    if calibrator is None:
        write_report(folder, domain_field=domain, rated=rated, steps=Steps(shown=True))
    else:
        from trustassay.runs.calibrator import read_calibrator
        from trustassay.runs.results import apply_calibrator

        found = apply_calibrator(
            folder,
            read_calibrator(Path(calibrator)),
            domain_field=domain,
            rated=rated,
            steps=Steps(shown=True),
        )
        show_calibrated({CALIBRATED: found.to_dict()})
    if rated:
        say(one_line(f"ratings: {rated.told().in_words}"))
    say(f"report: {folder.report_path}")
    if open_report:
        typer.launch(str(folder.report_path))


def _pool(runs: list[Path], page: Path, domain: str) -> None:
    from trustassay.runs.report import write_pooled
    from trustassay.runs.tasks import Steps

    say(one_line(write_pooled(runs, page, domain_field=domain, steps=Steps(shown=True))))
    say(f"report: {page}")
