"""The application ``trustassay``: its commands, those of other packages, and exit statuses."""

import os
import sys
import textwrap
from functools import cache
from importlib.metadata import EntryPoint, entry_points, version
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from trustassay.cli import annotate, compare, demo, labels, models, results, score
from trustassay.cli.common import internal_error
from trustassay.cli.interrupting import INTERRUPTED
from trustassay.cli.options import quietable, with_options
from trustassay.errors import UsageError
from trustassay.options import Argument
from trustassay.show.terminal import complain, exit_output_failed, prepare_streams
from trustassay.workflows import guide

ENTRY_POINTS = "trustassay.commands"
"""The group of entry points by which a package adds a command: a :class:`typer.Typer`."""
PAPERS = "papers"
MOVED = {"cite": "papers cite", "probe": "papers"}
"""Earlier names of commands that the package of papers has now."""
OTHERS = "More"
"""The group of commands that name none."""
ELSEWHERE = {
    "view": ("Scores", "serve", "See, compare and rate all runs below a folder, on a local page"),
    "monitor": ("Scores", "serve", "Say whether answers got worse, from one run a day"),
    "shard": ("Several machines", "cluster", "Divide an input into shards"),
    "merge": ("Several machines", "cluster", "Put the runs of all shards together"),
    "export": ("Several machines", "cluster", "Write a run's table in folders, also to s3://"),
    "serve": ("For other programs", "serve", "Score answers over HTTP"),
    "push": ("For other programs", "serve", "Send scores to the traces in Langfuse or Phoenix"),
    "pull": ("For other programs", "serve", "Read traces of Langfuse or Phoenix into a file"),
    "mcp": ("For other programs", "serve[mcp]", "Check answers for MCP clients"),
    PAPERS: (OTHERS, "papers", "Repeat experiments of papers"),
}
"""Commands of packages in this repository that may not be installed: group in ``--help``, folder to
install, and a description."""


class Commands(TyperGroup):
    """The project's commands, and those that installed packages add by entry points."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names for ``--help`` and completion."""
        return [
            *super().list_commands(ctx),
            *dict.fromkeys((*ELSEWHERE, *sorted(_find_entry_points()))),
        ]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands of ``--help`` in their groups, in the order of the first of each."""
        groups: dict[str, list[tuple[str, str]]] = {}
        names = self.list_commands(ctx)
        # One column of names over all groups.
        width = max(map(len, names))
        for name in names:
            command = self.get_command(ctx, name)
            title = getattr(command, "rich_help_panel", None)
            title = title if isinstance(title, str) else OTHERS
            text = command.get_short_help_str(formatter.width - width - 6)
            groups.setdefault(title, []).append((name.ljust(width), text))
        for title in sorted(groups, key=lambda title: title == OTHERS):
            with formatter.section(title):
                formatter.write_dl(groups[title])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the user named; for an unknown name, suggest similar ones."""
        # Typer suggests names from ``commands``, which lacks the commands of other packages.
        core_commands: Any = self.commands
        self.commands = {name: core_commands.get(name) for name in self.list_commands(ctx)}
        try:
            return super().resolve_command(ctx, args)
        finally:
            self.commands = core_commands

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command. A command of another package is imported here, and not before."""
        if (core_command := super().get_command(ctx, cmd_name)) is not None:
            return core_command
        if cmd_name in _find_entry_points():
            return _load_command(cmd_name)
        # A command that has moved is found under its new name, with a note.
        if (name := PAPERS if cmd_name in MOVED else cmd_name) not in ELSEWHERE:
            return None
        # The package is not installed: the command says how to install it.
        if name not in _find_entry_points():
            return _build_missing_command(name)
        complain(f"trustassay: {cmd_name} is now: trustassay {MOVED[cmd_name]}")
        papers = _load_command(PAPERS)
        return papers if cmd_name == "probe" else papers.get_command(ctx, cmd_name)


@cache
def _find_entry_points() -> dict[str, EntryPoint]:
    """Return the commands of installed packages by name, not loaded."""
    return {entry_point.name: entry_point for entry_point in entry_points(group=ENTRY_POINTS)}


@cache
def _load_command(name: str) -> Any:
    application: typer.Typer = _find_entry_points()[name].load()
    application.rich_markup_mode = None  # the help looks like that of the other commands
    group = typer.main.get_group(application)
    # An application with one command and no callback is that command itself, as typer decides too.
    is_single_command = len(group.commands) == 1 and application.registered_callback is None
    command = next(iter(group.commands.values())) if is_single_command else group
    command.name = name
    return command


@cache
def _build_missing_command(name: str) -> Any:
    """Return a command that tells how to install the package of the real one."""
    group, folder, line = ELSEWHERE[name]
    missing = typer.Typer(rich_markup_mode=None)

    @missing.command(
        name,
        help=f"{line} (pip install ./{folder}).",
        rich_help_panel=group,
        # Any arguments are accepted: the user typed those of the real command.
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        add_help_option=False,
    )
    def tell() -> None:
        package = folder.partition("[")[0]
        complain(
            f"trustassay: {name} is of the package trustassay-{package}, which is not installed; "
            f"in a clone of trustassay: pip install ./{folder}"
        )
        raise typer.Exit(2)

    return typer.main.get_command(missing)


PROGRAM = "trustassay"
VARIABLE = "_TRUSTASSAY_COMPLETE"
"""The environment variable by which a shell's script asks for completions."""


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        typer.Argument(help="The shell that is to complete commands."),
    ],
) -> None:
    """Print a script that makes a shell complete commands and options at the Tab key.

    \b
    trustassay completion bash >> ~/.bashrc
    trustassay completion zsh >> ~/.zshrc
    trustassay completion fish > ~/.config/fish/completions/trustassay.fish
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    typer.echo(get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell))


def prepare_completion() -> None:
    """Let typer answer with completions if a shell's script started this process.

    Typer then reads the commands itself.
    """
    if VARIABLE in os.environ:
        # Only now: the import takes time that every other start would pay.
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()


MAX_PAGES_SHOWN = 5
"""Pages of the guide that a search lists."""


@with_options
def help_command(
    words: Annotated[
        list[str] | None,
        Argument("What to look for, or the name of a page, which is then printed."),
    ],
) -> None:
    """Search the guide, which is installed with the program; without words, list its pages."""
    pages = {page.name: page for page in guide.read_pages()}
    if not words:
        for page in pages.values():
            typer.echo(f"{page.name:<28} {page.title}")
        return
    # The name of a page prints it; every other word is searched for.
    if len(words) == 1 and words[0] in pages:
        typer.echo(pages[words[0]].text)
        return
    query = " ".join(words)
    result = guide.search(query, list(pages.values()))[:MAX_PAGES_SHOWN]
    if not result:
        raise UsageError(f"no page has {query!r}; `trustassay help` lists the pages")
    for page in result:
        typer.echo(f"{page.name}: {page.title}")
        for line in textwrap.wrap(guide.find_excerpt(page, query), 92)[:2]:
            typer.echo(f"    {line}")
    typer.echo(f"\nto read one: trustassay help {result[0].name}")


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
        "rank": (compare.rank, "Rank models by what became of the same questions."),
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
        "audit": (compare.audit, "Say what moves a judge that must not."),
        "rubric": (annotate.rubric, "Look at the rubrics of the metric judge."),
        "entailers": (models.entailers, "Measure entailers on your own labelled pairs."),
    },
    OTHERS: {
        "help": (help_command, "Search the guide, or print a page of it."),
        "completion": (completion, "Print a script for completion at the Tab key."),
    },
}
"""By group in ``--help``: the function of each command, or its group of commands, and its line."""
WITHOUT_QUIET = {"annotate", "entailers", "help", "completion"}
"""Commands without ``--quiet``: all lines that they print are their result."""
# ``--quiet`` is added to all commands, except those whose lines are their result.
for title, of_group in COMMANDS.items():
    for name, (run, line) in of_group.items():
        if isinstance(run, typer.Typer):
            app.add_typer(run, name=name, short_help=line, rich_help_panel=title)
        else:
            function = run if name in WITHOUT_QUIET else quietable(run)
            app.command(name, short_help=line, rich_help_panel=title)(function)


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
) -> None:
    """Exit status: 0 finished, also if samples failed; 1 nothing could be judged, or stopped by a
    full disk; 2 bad input or arguments, nothing was started; 3 an alarm of monitor; 4 gate:
    undecided or untestable (its 1: failed); 70 internal error; 130 interrupted, run the same
    command again to continue."""


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
