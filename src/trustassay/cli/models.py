"""``trustassay models``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Optional

import typer

from trustassay.cli.common import errors_for_people
from trustassay.show.terminal import one_line, say, show_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trustassay.backends.inventory import Found


def models(
    uris: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer reads it on Python 3.11
        typer.Argument(
            metavar="[URI]...",
            help="Send each of these a small request and show how long it took: openai:MODEL, "
            "hf:ID-or-path, lexical, ... Put chat=, embedder= or entailer= before a URI to choose "
            "what it is tried as.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Load each backend that needs no name, run its self-test, measure its speed.",
        ),
    ] = False,
    plugins: Annotated[
        bool,
        typer.Option(
            "--plugins",
            help="List what installed packages add: schemes of backends, metrics, commands.",
        ),
    ] = False,
) -> None:
    """List the backends that work here and the keys that are set; try the backends given.

    \b
    trustassay models --check
    trustassay models openai:gpt-5-mini hf:Qwen/Qwen3-0.6B
    """
    with errors_for_people():
        if plugins:
            _show_plugins()
            return
        timed = check or bool(uris)
        texts = ["backend", "used for", "available"]
        rows = []
        broken = 0
        for found in _found(uris or [], check):
            broken += found.broken
            cells = [found.name, found.capability, one_line(found.state)]
            rows.append([*cells, *([found.load, found.speed] if timed else [])])
        show_table([*texts, *(["load", "speed"] if timed else [])], rows, texts)
        if broken:
            say(f"{broken} of these failed but should work here")
            raise typer.Exit(1)


def _found(uris: list[str], check: bool) -> Iterator[Found]:
    """Yield the backends that there are, and the results of trying those named in ``uris``."""
    from trustassay.backends import inventory

    if check or not uris:
        yield from inventory.backends(check=check)
    for uri in uris:
        yield inventory.tried(uri)


def _show_plugins() -> None:
    """Show what installed packages add; end with status 1 if something of it cannot be loaded."""
    from trustassay.backends import inventory

    found = list(inventory.plugins())
    if not found:
        say("no installed package adds schemes, metrics or commands")
        return
    texts = ["name", "kind", "package", "used for"]
    rows = [[one.name, one.kind, one.package, one_line(one.state)] for one in found]
    show_table(texts, rows, texts)
    if broken := sum(one.broken for one in found):
        say(f"{broken} of these cannot be loaded")
        raise typer.Exit(1)
