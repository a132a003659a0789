"""``trustassay``: the application and its exit statuses."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated, Any

import typer

from trustassay.cli import annotate, commands, compare, demo, labels, models, results, score, serve
from trustassay.cli.commands import OTHERS, Commands
from trustassay.cli.common import internal_error
from trustassay.cli.interrupting import INTERRUPTED
from trustassay.cli.options import quietable
from trustassay.show.terminal import output_failed, prepare_streams

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
COMMANDS: dict[str, dict[str, tuple[Any, str]]] = {
    "Scores": {
        "score": (score.score, "Score files of answers; with --follow, as they arrive."),
        "report": (results.report, "Write the report of a run again, or one page of several runs."),
        "gate": (compare.gate, "Pass or fail a run, for continuous integration."),
        "compare": (compare.compare, "Compare two runs; with --judge, any two files of answers."),
        "rank": (compare.rank, "Rank models by their mean score over the same questions."),
        "rescore": (score.rescore, "Score the samples of a run with other settings."),
        "demo": (demo.demo, "Score the bundled example."),
    },
    "Before a run": {
        "generate": (score.generate, "Answer a file of questions with a model."),
        "plan": (score.plan, "Show the calls, tokens, money and time that a run would need."),
        "models": (models.group, "List the backends that work here, try one, or fetch one."),
    },
    "People": {
        "annotate": (annotate.annotate, "Let people rate answers in the browser."),
        "label": (labels.label, "Choose the answers that people should rate next."),
        "study": (labels.study, "Say how far each score of a run agrees with labels."),
        "calibrate": (labels.calibrate, "Turn scores into probabilities of being right."),
        "agree": (labels.agree, "Say how far raters agree."),
        "rubric": (annotate.rubric, "Look at the rubrics of the metric judge."),
        "entailers": (models.entailers, "Measure entailers on your own labelled pairs."),
    },
    "For other programs": {
        "serve": (serve.serve, "Score answers over HTTP."),
        "mcp": (serve.mcp, "Serve a tool that checks answers to an MCP client."),
    },
    "Several machines": {
        "shard": (results.shard, "Divide an input into shards."),
        "merge": (results.merge, "Put the runs of all shards together."),
    },
    OTHERS: {
        "help": (commands.help_command, "Search the guide, or print a page of it."),
        "completion": (commands.completion, "Print a script for completion at the Tab key."),
    },
}
"""By group: each command's function, or its own commands, and its line in ``--help``."""
ANSWERING_AT_ONCE = {"annotate", "serve", "mcp", "entailers", "help", "completion"}
"""Commands whose lines are their result, so that there is nothing to leave out."""
for title, of_group in COMMANDS.items():
    for name, (run, line) in of_group.items():
        if isinstance(run, typer.Typer):
            app.add_typer(run, name=name, short_help=line, rich_help_panel=title)
        else:
            function = run if name in ANSWERING_AT_ONCE else quietable(run)
            app.command(name, short_help=line, rich_help_panel=title)(function)


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
    2 bad input or arguments, nothing was started; 3 score --follow: too many answers beyond the
    threshold; 4 gate: undecided or untestable (its 1: failed); 70 internal error; 130 interrupted,
    run the same command again to continue."""


def main() -> None:
    """Run the command line."""
    prepare_streams()
    try:
        commands.prepare_completion()
        app(prog_name=commands.PROGRAM)
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
