"""``trustassay serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from trustassay.cli import common
from trustassay.cli.common import errors_for_people
from trustassay.cli.integrations import Integrations
from trustassay.cli.interrupting import INTERRUPTED
from trustassay.cli.options import AtOnce, Backends, Spending, with_options
from trustassay.errors import UsageError
from trustassay.show.terminal import say
from trustassay.texts import LONGEST_ANSWER

PORT = 8770


@with_options
def serve(  # noqa: PLR0913 - one argument an option
    *,
    metric: Annotated[
        list[str],
        typer.Option(
            help="A metric and its options. May be given more than once.",
            metavar="NAME[:OPTION=VALUE,...]",
        ),
    ] = ["faithfulness"],  # noqa: B006 - typer copies it
    backends: Backends,
    out: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Option(
            help="A run's folder to which all samples and results are added.", show_default=False
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(help="The address to listen at; other than this machine needs a token."),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="The port to listen at; 0 takes a free one.", min=0, max=65535)
    ] = PORT,
    capacity: Annotated[
        int, typer.Option(help="Samples accepted and not finished, at once.", min=1)
    ] = 1024,
    per_minute: Annotated[
        int, typer.Option(help="Requests of one token or address in a minute.", min=1)
    ] = 6000,
    largest_body: Annotated[int, typer.Option(help="Bytes of a request's body.", min=1)] = 4
    * 1024**2,
    connections: Annotated[
        int, typer.Option(help="Connections that are open at once.", min=1)
    ] = 2048,
    slow: Annotated[
        float,
        typer.Option(help="Seconds in which a client must have sent a request.", min=0.1),
    ] = 10.0,
    integrations: Integrations,
    seed: common.Seed = 0,
    at_once: AtOnce,
    longest_answer: common.LongestAnswer = LONGEST_ANSWER,
    field: common.Fields = [],  # noqa: B006
    spending: Spending,
) -> None:
    """Score answers over HTTP: POST /v1/score takes one sample or many.

    Also /health, /metrics for Prometheus, and /openapi.json. With --upstream, --guardrail and --mcp
    answers are judged between a program and its model. With TRUSTASSAY_SERVE_TOKEN set, each
    request needs the token (several, with commas); --host other than this machine needs it set.
    SIGTERM or Ctrl-C ends when everything accepted is answered. With --out, what was accepted and
    not scored when the process was killed is scored at the next start.

    \b
    trustassay serve
    trustassay serve --metric faithfulness --metric grounding --out runs/live
    trustassay serve --metric harmonicity:perturbations=1 --model openai:gpt-4o-mini
    trustassay serve --upstream https://api.openai.com/v1 \\
        --block-below faithfulness=0.5
    TRUSTASSAY_SERVE_TOKEN=... trustassay serve --host 0.0.0.0
    """
    with errors_for_people():
        import os

        from trustassay import api
        from trustassay.service.server import serve as serve_at
        from trustassay.service.service import TOKEN_VARIABLE, ServiceSettings, read_tokens
        from trustassay.workflows.listening import is_loopback, listening

        tokens = read_tokens(os.environ.get(TOKEN_VARIABLE, ""))
        if not tokens and not is_loopback(host):
            raise UsageError(
                f"--host {host}: other machines could send requests; set a token for them in "
                f"{TOKEN_VARIABLE} (16 characters or more), or leave --host out"
            )
        parts = integrations.parts(metric, tokens)
        settings = ServiceSettings(tokens, capacity, largest_body, per_minute, connections, slow)
        door = api.scorer(
            metrics=metric,
            out=out,
            seed=seed,
            samples_at_once=at_once.read(),
            longest_answer=longest_answer,
            fields=common.pairs(field, "--field"),
            **spending.keywords(),
            **backends.named(),
        )
        with listening(host, port) as at:
            if not is_loopback(host):
                say("warning: nothing is encrypted; put a proxy that speaks TLS before it")
            finished = serve_at(door, settings, at, say, parts)
        if out is not None and finished:
            say(f"run:    {out}")
    if not finished:
        later = "" if out is None else "; the same command scores what was accepted"
        say(f"interrupted{later}")
        raise typer.Exit(INTERRUPTED)
