"""The tool ``check_answer`` for clients of the Model Context Protocol.

Importing this module raises BackendError if the package ``mcp`` is not installed.
"""
# mcp reads the annotations of the tool, so there is no `from __future__ import annotations` here.

import logging
import sys
from importlib.metadata import version
from typing import Annotated, Any

from starlette.routing import Route

from trustassay.core.event_loop import run_anywhere
from trustassay.core.sample import SampleError
from trustassay.errors import BackendError, did_you_mean
from trustassay.live.app import Part
from trustassay.live.scorer import OpenScorer, ScorerClosedError
from trustassay.live.service import BusyError, ClosingError, Service, ServiceSettings

try:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.transport_security import TransportSecuritySettings
    from mcp_types import ToolAnnotations
    from pydantic import Field
except ImportError:
    needed = "MCP needs the package mcp, version 2.3 or later"
    raise BackendError(f"{needed}; run pip install '.[mcp]' in a clone of trustassay") from None

DESCRIPTION = (
    "Check how far an answer can be trusted, for example whether the passages that it was made "
    "from support each of its sentences. Returns a score, a verdict and a reason for each metric."
)


def mcp_server(service: Service) -> MCPServer[Any]:
    """Return a server with the tool ``check_answer``."""
    # mcp logs arguments of calls, which quote questions and answers.
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)
    # Without subscriptions, as the tool never changes: a stream of news would stay open for ever.
    server = MCPServer(
        "trustassay", version=version("trustassay"), log_level="CRITICAL", subscriptions=False
    )

    async def check_answer(
        question: Annotated[str, Field(description="The question that was asked.")],
        response: Annotated[str, Field(description="The answer to check.")],
        documents: Annotated[
            list[str | dict[str, Any]] | None,
            Field(
                description="The passages that the answer was made from: texts, or objects with "
                "`text` and an optional `title`."
            ),
        ] = None,
        metrics: Annotated[
            list[str] | None,
            Field(description="Return only these metrics. Default: all metrics of the server."),
        ] = None,
    ) -> dict[str, Any]:
        record: dict[str, Any] = {"question": question, "response": response}
        if documents is not None:
            record["documents"] = documents
        try:
            result = service.verdict_of(await service.score(record))
        # A ToolError reaches the model as a result that it can react to.
        except (SampleError, BusyError, ClosingError, ScorerClosedError) as error:
            raise ToolError(str(error)) from None
        results = result["metrics"]
        # A model may ask for a metric that is not scored here; the error names those that are.
        for name in metrics or ():
            if name not in results:
                raise ToolError(did_you_mean("metric", name, list(results)))
        return result | {"metrics": {name: results[name] for name in metrics or results}}

    about = ToolAnnotations(title="Check an answer", read_only_hint=True, open_world_hint=False)
    server.add_tool(check_answer, description=DESCRIPTION, annotations=about)
    return server


def mcp_part(service: Service) -> Part:
    """Return the route ``/mcp``, at which clients reach the tool over HTTP."""
    server = mcp_server(service)
    result = server.streamable_http_app(
        stateless_http=True,
        json_response=True,
        # Sizes of bodies and hosts are checked for all routes, in `live/requests.py`.
        max_request_body_size=sys.maxsize,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    # Only POST. Clients open GET /mcp as a stream for messages that the server sends by itself, and
    # keep it open as long as they run; this server sends none, and the stream would keep it from
    # ending. The specification lets a server answer 405, which clients take as "no stream".
    routes = [
        Route(route.path, route.endpoint, methods=["POST"])
        for route in result.routes
        if isinstance(route, Route)
    ]
    return Part(routes, running=server.session_manager.run)


def serve_stdio(open_scorer: OpenScorer) -> None:
    """Serve a client over standard input and output until it closes them."""

    async def run() -> None:
        async with open_scorer as scorer:
            await mcp_server(Service(scorer, ServiceSettings())).run_stdio_async()

    run_anywhere(run)
