"""The metric ``tool_use``: failed calls, ignored results, arguments, an agent against itself."""

from trustassay.metrics.tool_use.metric import ToolUse

__all__ = ["ToolUse"]
