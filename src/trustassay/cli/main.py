"""``trustassay``: the application and its exit statuses."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from trustassay.cli import (
    agree,
    annotate,
    attack,
    calibrate,
    cite,
    compare,
    completion,
    demo,
    distractors,
    entailers,
    gate,
    generate,
    isotropy,
    label,
    mcp,
    merge,
    models,
    rank,
    report,
    rescore,
    rubric,
    score,
    serve,
    shard,
    study,
    watch,
)
from trustassay.cli.commands import Commands
from trustassay.cli.internal import internal_error
from trustassay.cli.interrupting import INTERRUPTED
from trustassay.cli.options import quietable
from trustassay.show.terminal import output_failed, prepare_streams

__all__ = ["app", "main"]

app = typer.Typer(
    name="trustassay",
    cls=Commands,
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
app.command("cite")(cite.cite)
app.command("distractors")(distractors.distractors)
app.command("rescore")(rescore.rescore)
app.command("shard")(shard.shard)
app.command("merge")(merge.merge)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("gate")(gate.gate)
app.command("annotate")(annotate.annotate)
app.command("agree")(agree.agree)
app.command("study")(study.study)
app.command("label")(label.label)
app.command("calibrate")(calibrate.calibrate)
app.add_typer(rubric.app, name="rubric")
app.command("rank")(rank.rank)
app.command("isotropy")(isotropy.isotropy)
app.command("attack")(attack.attack)
app.command("watch")(watch.watch)
app.command("serve")(serve.serve)
app.command("mcp")(mcp.mcp)
app.command("models")(models.models)
app.command("entailers")(entailers.entailers)
app.command("demo")(demo.demo)
app.command("completion")(completion.completion)

ANSWERING_AT_ONCE = {"annotate", "serve", "mcp", "models", "entailers", "completion"}
"""Commands whose lines are their result, so that there is nothing to leave out."""
for one in app.registered_commands:
    if one.name not in ANSWERING_AT_ONCE and one.callback:
        one.callback = quietable(one.callback)


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
    4 gate: undecided or untestable (its 1: failed); 70 internal error; 130 interrupted, run the
    same command again to continue."""


def main() -> None:
    """Run the command line."""
    prepare_streams()
    try:
        if completion.asked():
            completion.prepare()
        app(prog_name=completion.PROGRAM)
    except KeyboardInterrupt:
        print("interrupted; run the same command again to continue", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except OSError as error:  # of standard output: commands report all others themselves
        output_failed(error)
    except Exception as error:  # before or behind what a command reports itself
        try:
            internal_error(error)
        except typer.Exit as leaving:
            sys.exit(leaving.exit_code)
