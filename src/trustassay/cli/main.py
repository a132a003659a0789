"""The application ``trustassay``: its commands, those of other packages, and exit statuses.

A command is imported when it is used, so that ``--help`` and each command start quickly.
"""

import importlib
import sys
from functools import cache
from importlib.metadata import EntryPoint, entry_points, version
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from trustassay.cli.common import internal_error
from trustassay.cli.completion import PROGRAM, prepare_completion
from trustassay.cli.interrupting import INTERRUPTED
from trustassay.core.progress import silence
from trustassay.report.terminal import exit_output_failed, only_last_line, prepare_streams

ENTRY_POINTS = "trustassay.commands"
"""The group of entry points by which another package adds a command: a :class:`typer.Typer`."""
QUIET = ("--quiet", "-q")
"""The option of the program that may stand anywhere."""
MORE = "More"
"""The group in ``--help`` of commands that name none."""


class CommandEntry(NamedTuple):
    """A command that is not yet imported."""

    target: str
    """``module:name`` of its function, or of a :class:`typer.Typer` with commands of its own; the
    module is one of :mod:`trustassay.cli`."""
    line: str
    """What it does, for ``trustassay --help``."""
    group: str
    """The heading above it in ``trustassay --help``."""
    quiet: bool = True
    """Whether ``--quiet`` is taken: not where all lines that it prints are its result."""


def _list_entries() -> dict[str, CommandEntry]:
    """Return the commands by name, in the order of ``--help``."""
    scores, before, people = "Scores and reports", "Before a run", "Human labels and judges"
    programs, machines = "Services and integrations", "Several machines"
    rows: dict[str, tuple[Any, ...]] = {
        "score": (
            "score:score",
            "Score the answers in files, or with --follow as they arrive.",
            scores,
        ),
        "report": (
            "report:report",
            "Rebuild the report of a run, or put several runs on one page.",
            scores,
        ),
        "gate": ("gate:gate", "Pass or fail a run in continuous integration.", scores),
        "compare": (
            "compare:compare",
            "Compare two runs, or with --judge two files of answers.",
            scores,
        ),
        "rank": ("rank:rank", "Rank models by their answers to the same questions.", scores),
        "rescore": (
            "rescore:rescore",
            "Score the answers of a run again, with other settings.",
            scores,
        ),
        "demo": (
            "demo:demo",
            "Show wrong answers of a small model, and why they are wrong.",
            scores,
        ),
        "generate": (
            "generate:generate",
            "Ask a model the questions in a file and save its answers.",
            before,
        ),
        "plan": (
            "plan:plan",
            "Estimate the calls, tokens, cost and time of a run.",
            before,
        ),
        "models": (
            "models:group",
            "List the models that work here, test one or download one.",
            before,
        ),
        "annotate": (
            "annotate:annotate",
            "Rate answers in the browser, alone or with others.",
            people,
            False,
        ),
        "label": ("label:label", "Choose the answers that are most useful to rate next.", people),
        "study": ("study:study", "Measure how well each score agrees with human labels.", people),
        "calibrate": (
            "calibrate:calibrate",
            "Turn scores into probabilities that an answer is right.",
            people,
        ),
        "agree": ("agree:agree", "Measure how well raters agree with each other.", people),
        "audit": (
            "audit:audit",
            "Measure which irrelevant changes affect a judge's scores.",
            people,
        ),
        "rubric": ("rubric:rubric", "Check or show a rubric of the metric judge.", people),
        "entailers": (
            "entailers:entailers",
            "Measure entailment models on your own labelled pairs.",
            people,
            False,
        ),
        "help": ("guide:help_command", "Search the guide, or print one of its pages.", MORE, False),
        "completion": (
            "completion:completion",
            "Print a script for tab completion in your shell.",
            MORE,
            False,
        ),
        "view": (
            "view:view",
            "Browse, compare and rate runs on a local web page.",
            scores,
            False,
        ),
        "monitor": (
            "monitor:monitor",
            "Raise an alarm if answers get worse from day to day.",
            scores,
        ),
        "shard": ("shard:shard", "Split an input into shards.", machines),
        "merge": ("merge:merge", "Merge the runs of all shards into one run.", machines),
        "export": ("export:export", "Write the table of a run to a folder or to s3://.", machines),
        "serve": ("serve:serve", "Score answers over HTTP.", programs, False),
        "push": ("push:push", "Send scores to traces in Langfuse or Phoenix.", programs),
        "pull": ("pull:pull", "Download traces from Langfuse or Phoenix to a file.", programs),
        "mcp": ("mcp:mcp", "Let MCP clients check answers with a tool.", programs, False),
        "papers": (
            "papers:app",
            "Reproduce experiments of papers and build their data sets.",
            MORE,
        ),
    }
    return {name: CommandEntry(*row) for name, row in rows.items()}


COMMANDS = _list_entries()


class Commands(TyperGroup):
    """The project's commands, and those that installed packages add by entry points."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names for ``--help`` and completion."""
        return [*dict.fromkeys((*COMMANDS, *sorted(_find_entry_points())))]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands of ``--help`` in their groups, in the order of the first of each."""
        groups: dict[str, list[tuple[str, str]]] = {}
        names = self.list_commands(ctx)
        # One column of names over all groups.
        width = max(map(len, names))
        for name in names:
            command = self.get_command(ctx, name)
            title = getattr(command, "rich_help_panel", None)
            title = title if isinstance(title, str) else MORE
            text = command.get_short_help_str(formatter.width - width - 6)
            groups.setdefault(title, []).append((name.ljust(width), text))
        for title in sorted(groups, key=lambda title: title == MORE):
            with formatter.section(title):
                formatter.write_dl(groups[title])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take ``--quiet`` out of the arguments, where it may stand anywhere, and read the rest."""
        # Behind `--` all are values.
        end = args.index("--") if "--" in args else len(args)
        names = [word for word in args[:end] if word not in QUIET]
        # A command that prints nothing but its result reads the option itself, and refuses it.
        is_loud = bool(names) and names[0] in COMMANDS and not COMMANDS[names[0]].quiet
        ctx.meta[QUIET] = len(names) < end and not is_loud
        return super().parse_args(ctx, names + args[end:] if ctx.meta[QUIET] else args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the user named, quietly if ``--quiet`` is given."""
        with silence(ctx.meta[QUIET]), only_last_line(ctx.meta[QUIET]):
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the user named; for an unknown name, suggest similar ones."""
        # Typer suggests names from ``commands``, where none is before it is used.
        self.commands = dict.fromkeys(self.list_commands(ctx))  # type: ignore[assignment]
        try:
            return super().resolve_command(ctx, args)
        finally:
            self.commands = {}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Return a command; it is imported here, and not before."""
        if cmd_name in COMMANDS:
            return _load_command(cmd_name)
        return _load_plugin(cmd_name) if cmd_name in _find_entry_points() else None


@cache
def _find_entry_points() -> dict[str, EntryPoint]:
    """Return the commands of installed packages by name, not loaded."""
    return {entry_point.name: entry_point for entry_point in entry_points(group=ENTRY_POINTS)}


@cache
def _load_command(name: str) -> Any:
    from trustassay.cli.options import OptionsCommand

    entry = COMMANDS[name]
    module, _, attribute = entry.target.partition(":")
    thing = getattr(importlib.import_module(f"trustassay.cli.{module}"), attribute)
    if isinstance(thing, typer.Typer):
        thing.rich_markup_mode, thing._add_completion = None, False
        # Typer has no option for the class of all commands of an application.
        for application in (thing, *(group.typer_instance for group in thing.registered_groups)):
            for info in application.registered_commands if application else ():
                info.cls = OptionsCommand
        command: Any = typer.main.get_group(thing)
        command.short_help, command.rich_help_panel = entry.line, entry.group
    else:
        application = typer.Typer(rich_markup_mode=None, add_completion=False)
        application.command(cls=OptionsCommand, short_help=entry.line, rich_help_panel=entry.group)(
            thing
        )
        command = typer.main.get_command(application)
    command.name = name
    return command


@cache
def _load_plugin(name: str) -> Any:
    application: typer.Typer = _find_entry_points()[name].load()
    application.rich_markup_mode = None  # the help looks like that of the other commands
    group = typer.main.get_group(application)
    # An application with one command and no callback is that command itself, as typer decides too.
    is_single_command = len(group.commands) == 1 and application.registered_callback is None
    command = next(iter(group.commands.values())) if is_single_command else group
    command.name = name
    return command


app = typer.Typer(
    name=PROGRAM,
    cls=Commands,
    help="Find the answers of a language model that you cannot trust, and why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"trustassay {version('trustassay')}")
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True),
    ] = False,
    __: Annotated[
        bool,
        typer.Option(
            *QUIET,
            help="Print only errors and the last line, which names the result. It can stand "
            "anywhere in the command.",
        ),
    ] = False,
) -> None:
    """Exit status: 0 finished, also if some samples failed; 1 nothing could be judged, or the disk
    is full (of gate: failed); 2 bad input or arguments, nothing was started; 3 an alarm of monitor;
    4 gate is undecided or untestable; 70 internal error; 130 interrupted, run the same command
    again to continue."""


def main() -> None:
    """Run the command line."""
    # First of all: errors below are printed, also in characters that a terminal may not have.
    prepare_streams()
    try:
        prepare_completion()
        app(prog_name=PROGRAM)
    except KeyboardInterrupt:
        print("interrupted; run the same command again to continue", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except OSError as error:
        # Of standard output: commands report all others themselves.
        exit_output_failed(error)
    except Exception as error:
        # Raised before or after the command itself, which reports its own errors.
        try:
            internal_error(error)
        except typer.Exit as leaving:
            sys.exit(leaving.exit_code)
