"""``trustassay models``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Optional

import typer

from trustassay.cli.common import errors_for_people
from trustassay.cli.streams import one_line, say
from trustassay.cli.tables import show_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trustassay.backends.inventory import Found


def models(
    uris: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer reads it on Python 3.11
        typer.Argument(
            metavar="[URI]...",
            help="Ask these one small thing each and say how long it took: openai:MODEL, "
            "hf:ID-or-path, lexical, ... chat=, embedder= or entailer= before a URI says what to "
            "try it as.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Load each that needs no name, run its self-test, measure its speed."
        ),
    ] = False,
) -> None:
    """Say which backends work here and which keys are set; try those that are named.

    \b
    trustassay models --check
    trustassay models openai:gpt-5-mini hf:Qwen/Qwen3-0.6B
    """
    with errors_for_people():
        timed = check or bool(uris)
        texts = ["backend", "what for", "here"]
        rows = []
        broken = 0
        for found in _found(uris or [], check):
            broken += found.broken
            cells = [found.name, found.capability, one_line(found.state)]
            rows.append([*cells, *([found.load, found.speed] if timed else [])])
        show_table([*texts, *(["load", "speed"] if timed else [])], rows, texts)
        if broken:
            say(f"{broken} of them should work here and do not")
            raise typer.Exit(1)


def _found(uris: list[str], check: bool) -> Iterator[Found]:
    """Yield what there is, and what came of trying those named; all where none is named."""
    from trustassay.backends import inventory

    if check or not uris:
        yield from inventory.backends(check=check)
    for uri in uris:
        yield inventory.tried(uri)
