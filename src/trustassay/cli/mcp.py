"""``trustassay mcp``: a tool for MCP clients that checks answers."""

from typing import Annotated

from trustassay.cli.options import Only, with_options
from trustassay.cli.serve import Metrics
from trustassay.runs.options import (
    BackendChoices,
    SpendingOptions,
)


@with_options
def mcp(
    *,
    metric: Metrics,
    backends: Annotated[BackendChoices, Only("model", "judge", "entailer", "backends")],
    spending: Annotated[SpendingOptions, Only("budget")],
) -> None:
    """Serve the tool check_answer to an MCP client, which starts this command itself.

    The server uses standard input and output (the transport "stdio"). It needs pip install '.[mcp]'
    in a clone of trustassay. To serve the tool over HTTP, use trustassay serve --mcp.

    \b
    trustassay mcp
    trustassay mcp --metric faithfulness --metric grounding
    trustassay mcp --metric harmonicity:perturbations=1 --model openai:gpt-4o-mini
    """
    from trustassay import api
    from trustassay.live.mcp import serve_stdio

    serve_stdio(api.scorer(metrics=metric, **spending, **backends))
