"""``trustassay serve`` and ``trustassay mcp``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trustassay.cli.interrupting import INTERRUPTED
from trustassay.cli.options import Only, with_options
from trustassay.errors import UsageError
from trustassay.options import BackendChoices, Fields, ScorerOptions, Spending, pairs, row
from trustassay.show.terminal import say

if TYPE_CHECKING:
    from trustassay.service import Part, Service
    from trustassay.service.verdicts import Blocking


@dataclass(frozen=True)
class Integrations:
    """What is served besides ``/v1/score``, and which answers are withheld there."""

    upstream: str | None
    upstream_key: str
    upstream_timeout: float
    guardrail: bool
    mcp: bool
    documents_in: list[str]
    block_below: list[str]
    block_above: list[str]
    block_unscored: bool
    block_message: str | None

    def parts(
        self, metrics: Sequence[str], tokens: Sequence[str]
    ) -> "list[Callable[[Service], Part]]":
        """Return what makes the parts that were asked for; ``tokens`` are the service's own.

        Raises:
            ValueError: an option does not fit the others, or cannot be read.
            BackendError: the address cannot be used, or a package is missing.
        """
        from trustassay.service.guardrail import guardrail_part
        from trustassay.service.proxy import proxy_part
        from trustassay.service.upstream import Upstream
        from trustassay.service.verdicts import DOCUMENT_ROLES, Judging

        if strange := sorted(set(self.documents_in) - set(DOCUMENT_ROLES)):
            known = " or ".join(DOCUMENT_ROLES)
            raise UsageError(f"--documents-in: expected {known}, got {strange[0]!r}")
        if self.upstream_key and not self.upstream:
            raise UsageError("--upstream-key needs --upstream")
        blocking = self._blocking(metrics)
        if blocking and not (self.upstream or self.guardrail):
            raise UsageError("--block-... need --upstream or --guardrail")
        judging = Judging(self.documents_in, blocking)
        result: list[Callable[[Service], Part]] = []
        if self.upstream:
            upstream = Upstream(self.upstream, self.upstream_key, tokens, self.upstream_timeout)
            result.append(lambda service: proxy_part(service, upstream, judging))
        if self.guardrail:
            result.append(lambda service: guardrail_part(service, judging))
        if self.mcp:
            from trustassay.service.mcp_server import mcp_part

            result.append(mcp_part)
        return result

    def _blocking(self, metrics: Sequence[str]) -> "Blocking":
        from trustassay.registry import metric_from_text
        from trustassay.service.verdicts import Blocking, read_thresholds

        built = [metric_from_text(one) for one in metrics]
        expected = "METRIC=SCORE, as in faithfulness=0.5"
        below = pairs(self.block_below, "--block-below", expected)
        above = pairs(self.block_above, "--block-above", expected)
        thresholds = read_thresholds(below, "below", built) + read_thresholds(above, "above", built)
        said: dict[str, Any] = {"message": self.block_message} if self.block_message else {}
        return Blocking(thresholds, self.block_unscored, **said)


Metrics = Annotated[list[str], row("served_metric", name="--metric")]
Scoring = Annotated[ScorerOptions, Only("seed", "samples_at_once", "longest_answer")]


@with_options
def serve(  # noqa: PLR0913 - one argument an option
    *,
    metric: Metrics,
    backends: BackendChoices,
    out: Path | None,
    host: str,
    port: int,
    capacity: int,
    per_minute: int,
    largest_body: int,
    connections: int,
    slow: float,
    integrations: Integrations,
    scoring: Scoring,
    fields: Fields,
    spending: Spending,
) -> None:
    """Score answers over HTTP: POST /v1/score takes one sample or many."""
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
    options: ScorerOptions = {**scoring, "fields": fields, **spending, **backends}
    door = api.scorer(metrics=metric, out=out, **options)
    with listening(host, port) as at:
        if not is_loopback(host):
            say("warning: nothing is encrypted; put a proxy that speaks TLS before it")
        finished = serve_at(door, settings, at, say, parts)
    if out is not None and finished:
        say(f"run:    {out}")
    if not finished:
        later = "" if out is None else "; run the same command again to score what was accepted"
        say(f"interrupted{later}")
        raise typer.Exit(INTERRUPTED)


@with_options
def mcp(*, metric: Metrics, backends: BackendChoices, scoring: Scoring, spending: Spending) -> None:
    """Serve the tool check_answer to an MCP client, which starts this command itself."""
    from trustassay import api
    from trustassay.service.mcp_server import serve_stdio

    options: ScorerOptions = {**scoring, **spending, **backends}
    serve_stdio(api.scorer(metrics=metric, **options))
