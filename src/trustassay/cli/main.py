"""``trustassay``: the application, and the exit status of everything that can go wrong."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from trustassay.cli import (
    attack,
    cite,
    compare,
    dataset,
    demo,
    generate,
    isotropy,
    models,
    rank,
    report,
    rescore,
    score,
    watch,
)
from trustassay.cli.interrupting import INTERRUPTED
from trustassay.cli.streams import output_failed, prepare_streams

__all__ = ["app", "main"]

app = typer.Typer(
    name="trustassay",
    help="Measure how far an answer written by a language model can be trusted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("score")(score.score)
app.command("plan")(score.plan)
app.command("generate")(generate.generate)
app.command("dataset")(dataset.dataset)
app.command("cite")(cite.cite)
app.command("rescore")(rescore.rescore)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("rank")(rank.rank)
app.command("isotropy")(isotropy.isotropy)
app.command("attack")(attack.attack)
app.command("watch")(watch.watch)
app.command("models")(models.models)
app.command("demo")(demo.demo)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"trustassay {version('trustassay')}")
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Exit status: 0 all scored; 1 finished, but some samples failed, or stopped by a full disk;
    2 bad input or arguments, nothing was started; 3 watch: too many answers beyond the threshold;
    130 interrupted, the same command goes on."""


def main() -> None:
    """Run the command line."""
    prepare_streams()
    try:
        app()
    except KeyboardInterrupt:
        print("interrupted; the same command goes on where this one stopped", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except OSError as error:  # of standard output: commands tell of all others themselves
        output_failed(error)
