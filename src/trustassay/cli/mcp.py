"""``trustassay mcp``."""

from __future__ import annotations

from typing import Annotated

import typer

from trustassay.cli import common
from trustassay.cli.common import errors_for_people
from trustassay.cli.options import AtOnce, Backends, Spending, with_options
from trustassay.texts import LONGEST_ANSWER


@with_options
def mcp(
    *,
    metric: Annotated[
        list[str],
        typer.Option(
            help="A metric and its options. May be given more than once.",
            metavar="NAME[:OPTION=VALUE,...]",
        ),
    ] = ["faithfulness"],  # noqa: B006 - typer copies it
    backends: Backends,
    seed: common.Seed = 0,
    at_once: AtOnce,
    longest_answer: common.LongestAnswer = LONGEST_ANSWER,
    spending: Spending,
) -> None:
    """Serve the tool check_answer to an MCP client, which starts this command itself.

    The client and the server talk over standard input and output (the transport "stdio"). Needs
    trustassay[mcp]. Over HTTP: trustassay serve --mcp.

    \b
    trustassay mcp
    trustassay mcp --metric faithfulness --metric grounding
    trustassay mcp --metric harmonicity:perturbations=1 --model openai:gpt-4o-mini
    """
    with errors_for_people():
        from trustassay import api
        from trustassay.service.mcp_server import serve_stdio

        door = api.scorer(
            metrics=metric,
            seed=seed,
            samples_at_once=at_once.read(),
            longest_answer=longest_answer,
            **spending.keywords(),
            **backends.named(),
        )
        serve_stdio(door)
