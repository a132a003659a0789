"""Which commands there are: the project's own and those of other packages; help and completion."""

from __future__ import annotations

import os
import textwrap
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from trustassay.cli.options import with_options
from trustassay.errors import UsageError
from trustassay.options import Argument
from trustassay.show.terminal import complain
from trustassay.workflows import guide

ENTRY_POINTS = "trustassay.commands"
"""The group of entry points by which a package adds a command: a :class:`typer.Typer`."""
PAPERS = "papers"
MOVED = {"cite": "papers cite", "probe": "papers"}
"""Earlier names of commands that the package of papers has now."""
OTHERS = "More"
"""The group of commands that name none."""


class Commands(TyperGroup):
    """The project's commands, and those that installed packages add by entry points."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names for ``--help`` and completion."""
        return [*super().list_commands(ctx), *sorted({PAPERS, *_added()})]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands of ``--help`` in their groups, in the order of the first of each."""
        groups: dict[str, list[tuple[str, str]]] = {}
        names = self.list_commands(ctx)
        width = max(map(len, names))
        for name in names:
            command = self.get_command(ctx, name)
            title = getattr(command, "rich_help_panel", None)
            title = title if isinstance(title, str) else OTHERS
            text = command.get_short_help_str(formatter.width - width - 6)
            groups.setdefault(title, []).append((name.ljust(width), text))
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl(rows)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; what other packages add is imported here."""
        if (own := super().get_command(ctx, cmd_name)) is not None:
            return own
        if cmd_name in _added():
            return _loaded(cmd_name)
        if cmd_name != PAPERS and cmd_name not in MOVED:
            return None
        if PAPERS not in _added():
            return _missing_papers()
        complain(f"trustassay: {cmd_name} is now: trustassay {MOVED[cmd_name]}")
        papers = _loaded(PAPERS)
        return papers if cmd_name == "probe" else papers.get_command(ctx, cmd_name)


@cache
def _added() -> dict[str, EntryPoint]:
    return {one.name: one for one in entry_points(group=ENTRY_POINTS)}


@cache
def _loaded(name: str) -> Any:
    added: typer.Typer = _added()[name].load()
    added.rich_markup_mode = None  # the help looks like that of the other commands
    command = typer.main.get_group(added)
    command.name = name
    return command


@cache
def _missing_papers() -> Any:
    """Return a command that says how the experiments of papers are installed."""
    missing = typer.Typer(rich_markup_mode=None)

    @missing.command(
        PAPERS,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        add_help_option=False,
    )
    def papers() -> None:
        """Experiments and data sets of papers; not installed: pip install ./papers in a clone."""
        complain(
            "trustassay: papers is a package of its own, which is not installed; in a clone of "
            "trustassay: pip install ./papers"
        )
        raise typer.Exit(2)

    return typer.main.get_command(missing)


PROGRAM = "trustassay"
VARIABLE = "_TRUSTASSAY_COMPLETE"
"""The environment variable by which a shell's script asks what may come next."""


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
    """Let typer answer if a shell's script started this process; it reads the commands itself."""
    if VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()


SHOWN = 5
"""Pages that a search lists."""


@with_options
def help_command(
    words: Annotated[
        list[str] | None,
        Argument("What to look for, or the name of a page, which is then printed."),
    ],
) -> None:
    """Search the guide, which is installed with the program; without words, list its pages."""
    pages = {one.name: one for one in guide.pages()}
    if not words:
        for one in pages.values():
            typer.echo(f"{one.name:<28} {one.title}")
        return
    if len(words) == 1 and words[0] in pages:
        typer.echo(pages[words[0]].text)
        return
    query = " ".join(words)
    result = guide.search(query, list(pages.values()))[:SHOWN]
    if not result:
        raise UsageError(f"no page has {query!r}; `trustassay help` lists the pages")
    for one in result:
        typer.echo(f"{one.name}: {one.title}")
        for line in textwrap.wrap(guide.excerpt(one, query), 92)[:2]:
            typer.echo(f"    {line}")
    typer.echo(f"\nto read one: trustassay help {result[0].name}")
