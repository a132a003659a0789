"""A chat as plain text, for base models, functions and error messages."""

from __future__ import annotations

from collections.abc import Sequence

from trustassay.capabilities import Message

__all__ = ["plain", "shortened"]

_SPEAKERS = {"user": "User: ", "assistant": "Assistant: "}


def plain(messages: Sequence[Message]) -> str:
    """Return the messages' texts with a blank line between them.

    If there is an assistant message, every turn except the system's begins with its speaker, and
    the text ends where the assistant is to continue.
    """
    if all(message.role != "assistant" for message in messages):
        return "\n\n".join(message.content for message in messages)
    turns = [_SPEAKERS.get(message.role, "") + message.content for message in messages]
    if messages[-1].role != "assistant":
        turns.append("Assistant:")
    return "\n\n".join(turns)


def shortened(text: str, longest: int = 120) -> str:
    """Return a text in one line, without its middle if it is long."""
    text = " ".join(text.split())
    half = (longest - 5) // 2
    return text if len(text) <= longest else f"{text[:half]} ... {text[-half:]}"
