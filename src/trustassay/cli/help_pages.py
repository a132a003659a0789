"""``trustassay help``: the guide in the terminal."""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer

from trustassay.cli.common import errors_for_people
from trustassay.errors import UsageError
from trustassay.workflows import guide

SHOWN = 5
"""Pages that a search lists."""


def help_command(
    words: Annotated[
        list[str] | None,
        typer.Argument(help="What to look for, or the name of a page, which is then printed."),
    ] = None,
) -> None:
    """Search the guide, which is installed with the program; without words, list its pages.

    \b
    trustassay help compare two models
    trustassay help errands/ci
    """
    with errors_for_people():
        pages = guide.pages()
        if not words:
            for one in pages:
                typer.echo(f"{one.name:<28} {one.title}")
        elif len(words) == 1 and words[0] in {one.name for one in pages}:
            typer.echo(guide.page(words[0], pages).text)
        else:
            _show(" ".join(words), pages)


def _show(query: str, pages: list[guide.GuidePage]) -> None:
    result = guide.search(query, pages)[:SHOWN]
    if not result:
        raise UsageError(f"no page has {query!r}; `trustassay help` lists the pages")
    for one in result:
        typer.echo(f"{one.name}: {one.title}")
        for line in textwrap.wrap(guide.excerpt(one, query), 92)[:2]:
            typer.echo(f"    {line}")
    typer.echo(f"\nto read one: trustassay help {result[0].name}")
