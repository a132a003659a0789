"""``trustassay rescore``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from trustassay.cli.common import (
    CalibratorFile,
    Json,
    LongestAnswer,
    Metrics,
    Unit,
    errors_for_people,
)
from trustassay.cli.options import AtOnce, Backends, with_options
from trustassay.cli.results import show
from trustassay.show.terminal import say
from trustassay.texts import LONGEST_ANSWER


@with_options
def rescore(  # noqa: PLR0913 - one argument an option
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder.", show_default=False)],
    *,
    out: Annotated[Path, typer.Option(help="The new run's folder.", show_default=False)],
    metric: Metrics = [],  # noqa: B006 - typer copies it
    backends: Backends,
    seed: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(help="A seed other than the run's.", min=0, show_default=False),
    ] = None,
    unit: Unit = None,
    at_once: AtOnce,
    longest_answer: LongestAnswer = LONGEST_ANSWER,
    calibrator: CalibratorFile = None,
    as_json: Json = False,
) -> None:
    """Score the samples of a run with other settings; stored replies are not requested again.

    A metric or a backend that is not given is the run's own.

    \b
    trustassay rescore runs/one --metric grounding:threshold=0.8 --out runs/strict
    trustassay rescore runs/two --metric harmonicity --embedder hf:MODEL \\
        --out runs/other
    """
    with errors_for_people():
        from trustassay import api

        again = api.rescore(
            run,
            metrics=metric or None,
            out=out,
            seed=seed,
            samples_at_once=at_once.read(),
            longest_answer=longest_answer,
            unit=unit,
            progress=True,
            calibrator=calibrator,
            **backends.named(),
        )
        asked = sum(count.computed for count in again.outcome.counts.values())
        stored = sum(count.from_store for count in again.outcome.counts.values())
        say(f"{stored} replies were stored, {asked} were newly requested")
        show(again, as_json=as_json)
