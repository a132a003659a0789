"""``trustassay annotate``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from trustassay.cli import common
from trustassay.cli.common import errors_for_people
from trustassay.errors import UsageError
from trustassay.show.terminal import say

if TYPE_CHECKING:
    from trustassay.workflows.annotate.project import Project
    from trustassay.workflows.annotate.session import Session

PORT = 8765


def annotate(  # noqa: PLR0913 - one argument an option
    source: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Argument(
            metavar="INPUT",
            help="Answers: a file as of `score`, or a run's folder.",
            show_default=False,
        ),
    ] = None,
    rater: Annotated[
        list[str],
        typer.Option(help="A person who rates; once for each.", metavar="NAME", show_default=False),
    ] = [],  # noqa: B006 - typer copies it
    rubric: Annotated[
        list[str],
        typer.Option(
            help="The levels: truthfulness, informativeness, verdict, answer, code, categories, or "
            "a YAML file. Once for each that is rated. Default: answer; of pairs none.",
            metavar="NAME|FILE",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    out: Annotated[
        Path, typer.Option(help="The file of ratings; the same command goes on with it.")
    ] = Path("ratings.jsonl"),
    gold: Annotated[
        Optional[bool],  # noqa: UP045
        typer.Option(
            "--gold/--no-gold",
            help="Show the gold answers as a guide. Default: where the rubric is about them.",
            show_default=False,
        ),
    ] = None,
    together: Annotated[
        bool, typer.Option("--together", help="Show all answers to a question on one page.")
    ] = False,
    pairs: Annotated[
        Optional[tuple[Path, Path]],  # noqa: UP045
        typer.Option(
            help="Two files or runs with answers to the same questions, side by side: which is "
            "better? In place of INPUT.",
            metavar="A B",
            show_default=False,
        ),
    ] = None,
    double: Annotated[
        float,
        typer.Option(
            help="Share of the answers that all raters rate; the others are divided among them.",
            min=0,
            max=1,
        ),
    ] = 1.0,
    again: Annotated[
        float,
        typer.Option(help="Share that a rater is shown a second time, later.", min=0, max=1),
    ] = 0.0,
    per_group: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            help="Draw this many answers of each model and domain (of questions of each domain, "
            "with --together and --pairs).",
            min=1,
            show_default=False,
        ),
    ] = None,
    plan: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            help="Rate the answers of a plan of `label` alone, in its order. The plan may grow.",
            show_default=False,
        ),
    ] = None,
    domain: Annotated[
        str, typer.Option(help="The field that holds a sample's domain; dots descend into objects.")
    ] = "domain",
    field: common.Fields = [],  # noqa: B006
    limit: common.Limit = None,
    skip_bad: common.SkipBad = False,
    seed: common.Seed = 0,
    host: Annotated[
        str, typer.Option(help="The address to listen at; other machines reach it at 0.0.0.0.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="The port to listen at; 0 takes a free one.", min=0, max=65535)
    ] = PORT,
    export: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            help="Write the answers as a CSV for each rater, and end.", show_default=False
        ),
    ] = None,
    sheets: Annotated[
        list[Path],
        typer.Option(
            "--import",
            help="Store the ratings of a filled CSV of --export, and end. Once for each.",
            metavar="SHEET",
            show_default=False,
        ),
    ] = [],  # noqa: B006
) -> None:
    """Let people rate answers in the browser, each through a link of their own.

    Raters see no model, no score and no id. Ratings are stored at once; the same command goes on
    after an interruption, with the same links. `agree` reads the file.

    \b
    trustassay annotate answers.jsonl --rater anna --rater bela
    trustassay annotate runs/one --rater anna --rubric truthfulness \\
        --rubric informativeness --again 0.1
    trustassay annotate --pairs runs/a runs/b --rater anna --rater bela \\
        --out pairs.jsonl
    trustassay annotate runs/one --plan runs/one.label.jsonl --rater anna
    trustassay annotate answers.jsonl --rater anna --export sheet.csv
    """
    with errors_for_people():
        from trustassay.metrics.judge import read_rubric
        from trustassay.workflows.annotate.items import Reading
        from trustassay.workflows.annotate.project import AnnotateOptions, open_project
        from trustassay.workflows.label.plan import read_plan

        if export and sheets:
            raise UsageError("--export and --import: expected one of them")
        options = AnnotateOptions(
            rater,
            [read_rubric(name) for name in rubric or ([] if pairs else ["answer"])],
            gold,
            together,
            double,
            again,
            per_group,
            seed,
            Reading(
                fields=common.pairs(field, "--field"),
                limit=limit,
                domain=domain,
                skip_bad=skip_bad,
            ),
            read_plan(plan) if plan else None,
        )
        project = open_project(source, options, pairs)
        for remark in project.material.remarks:
            say(remark)
        if export:
            _export(project, export)
        elif sheets:
            _import(project, out, sheets)
        else:
            _serve(project, out, host, port)


def _export(project: Project, path: Path) -> None:
    from trustassay.workflows.annotate.sheets import write_sheets

    for rater, written in zip(project.steps, write_sheets(project, path), strict=True):
        say(f"{rater}: {len(project.steps[rater]):,} rows: {written}")


def _import(project: Project, out: Path, sheets: Sequence[Path]) -> None:
    import asyncio

    from trustassay.workflows.annotate.sheets import read_sheet, store_rows

    rows = [row for path in sheets for row in read_sheet(project, path)]
    if not rows:
        raise UsageError(f"{', '.join(map(str, sheets))}: no row has a rating; nothing was stored")
    with _open(project, out) as session:
        new = asyncio.run(store_rows(session, rows))
    say(f"{new:,} of {len(rows):,} ratings were new or different: {out}")


@contextmanager
def _open(project: Project, out: Path) -> Iterator[Session]:
    """Go on with the file of ratings, which this process alone holds until the end of the block."""
    from trustassay.workflows.annotate.session import RatingsFile, Session

    out.parent.mkdir(parents=True, exist_ok=True)
    with closing(RatingsFile(out)) as file:
        yield Session(project, file, file.begin(project.start))


def _serve(project: Project, out: Path, host: str, port: int) -> None:
    import socket

    from trustassay.workflows.annotate.server import Links, application, serve
    from trustassay.workflows.listening import is_loopback, listening

    with listening(host, port) as at, _open(project, out) as session:
        links = Links(out, list(project.steps))
        shown = socket.gethostname() if host in ("0.0.0.0", "::") else host
        shown = f"[{shown}]" if ":" in shown else shown
        if not is_loopback(host):
            say(
                f"warning: other machines can reach {host}. Whoever has a link can read the answers"
                " and rate; nothing is encrypted"
            )
        for rater, state in session.raters.items():
            done = f"{state.rated:,} of {len(state.steps):,} rated"
            say(f"{rater}: http://{shown}:{at.getsockname()[1]}/{links.tokens[rater]} ({done})")
        say(f"ratings: {out}; Ctrl-C ends, and the same command goes on")
        serve(application(session, links, say), at, session)
