"""The options by which ``trustassay serve`` judges answers of other programs on their way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from trustassay.cli.common import pairs
from trustassay.errors import UsageError

if TYPE_CHECKING:
    from trustassay.service import Part, Service
    from trustassay.service.verdicts import Blocking

__all__ = ["Integrations"]


@dataclass(frozen=True)
class Integrations:
    """What is served besides ``/v1/score``, and which answers are withheld there."""

    upstream: Annotated[
        Optional[str],  # noqa: UP045 - typer reads it
        typer.Option(
            help="Pass chats on to this address of OpenAI's API, and add verdicts to the answers: "
            "POST /v1/chat/completions.",
            metavar="URL",
            show_default=False,
        ),
    ] = None
    upstream_key: Annotated[
        str,
        typer.Option(
            help="The environment variable with the key for --upstream. Default: the key that the "
            "client sends.",
            metavar="NAME",
            show_default=False,
        ),
    ] = ""
    upstream_timeout: Annotated[
        float, typer.Option(help="Seconds that --upstream has for an answer.", min=0.1)
    ] = 600.0
    guardrail: Annotated[
        bool, typer.Option("--guardrail", help="Answer LiteLLM's generic guardrail API.")
    ] = False
    mcp: Annotated[
        bool, typer.Option("--mcp", help="Serve the tool check_answer to MCP clients at /mcp.")
    ] = False
    documents_in: Annotated[
        list[str],
        typer.Option(
            help="Whose messages in a chat are passages, besides its `documents`: tool, system. "
            "May be given more than once.",
            metavar="ROLE",
        ),
    ] = field(default_factory=lambda: ["tool"])
    block_below: Annotated[
        list[str],
        typer.Option(
            help="Withhold answers whose score of a metric is below this.", metavar="METRIC=SCORE"
        ),
    ] = field(default_factory=list)
    block_above: Annotated[
        list[str],
        typer.Option(
            help="The same for a metric whose lower scores are better.", metavar="METRIC=SCORE"
        ),
    ] = field(default_factory=list)
    block_unscored: Annotated[
        bool, typer.Option("--block-unscored", help="Withhold answers without a verdict, too.")
    ] = False
    block_message: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="What is said in place of an answer that is withheld.", show_default=False
        ),
    ] = None

    def parts(
        self, metrics: Sequence[str], tokens: Sequence[str]
    ) -> list[Callable[[Service], Part]]:
        """Return what makes the parts that were asked for; ``tokens`` are the service's own.

        Raises:
            ValueError: an option does not fit the others, or cannot be read.
            BackendError: the address cannot be used, or a package is missing.
        """
        from trustassay.service.guardrail import GuardrailSettings, guardrail_part
        from trustassay.service.proxy import ProxySettings, proxy_part
        from trustassay.service.upstream import Upstream
        from trustassay.service.verdicts import DOCUMENT_ROLES

        if strange := sorted(set(self.documents_in) - set(DOCUMENT_ROLES)):
            known = " or ".join(DOCUMENT_ROLES)
            raise UsageError(f"--documents-in: expected {known}, got {strange[0]!r}")
        if self.upstream_key and not self.upstream:
            raise UsageError("--upstream-key needs --upstream")
        blocking = self._blocking(metrics)
        if blocking and not (self.upstream or self.guardrail):
            raise UsageError("--block-... need --upstream or --guardrail")
        found: list[Callable[[Service], Part]] = []
        if self.upstream:
            upstream = Upstream(self.upstream, self.upstream_key, tokens)
            passing = ProxySettings(self.documents_in, blocking, self.upstream_timeout)
            found.append(lambda service: proxy_part(service, upstream, passing))
        if self.guardrail:
            guarding = GuardrailSettings(self.documents_in, blocking)
            found.append(lambda service: guardrail_part(service, guarding))
        if self.mcp:
            from trustassay.service.mcp_server import mcp_part

            found.append(mcp_part)
        return found

    def _blocking(self, metrics: Sequence[str]) -> Blocking:
        from trustassay.registry import metric_from_text
        from trustassay.service.verdicts import Blocking, read_thresholds

        built = [metric_from_text(one) for one in metrics]
        below = pairs(self.block_below, "--block-below", "METRIC=SCORE, as in faithfulness=0.5")
        above = pairs(self.block_above, "--block-above", "METRIC=SCORE, as in faithfulness=0.5")
        thresholds = [
            *read_thresholds(below, "below", built),
            *read_thresholds(above, "above", built),
        ]
        said: dict[str, Any] = {"message": self.block_message} if self.block_message else {}
        return Blocking(thresholds, self.block_unscored, **said)
