"""The reply of a chat model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trustassay.backends import resolve
from trustassay.calls.capability import Capability, Remote, Shared
from trustassay.calls.endpoints import ChatCaller, limits_of
from trustassay.calls.replies import CHAT_CODEC, checked_replies, keeper
from trustassay.capabilities import ChatRequest, LocalChatModel, Message, Reply

__all__ = ["CHAT", "chat_request"]

STAND_IN = "A stand-in reply."


def chat_request(text: str | Sequence[Message], **parameters: Any) -> ChatRequest:
    """Return the request that one user message or a whole chat makes."""
    if isinstance(text, str):
        return ChatRequest.of(text, **parameters)
    return ChatRequest(tuple(text), **parameters)


def compute(model: LocalChatModel, requests: list[ChatRequest]) -> Sequence[Reply]:
    """Return the replies of a model in this process."""
    return model.replies(requests)


def local(model: LocalChatModel, shared: Shared) -> Any:
    """Return how a model in this process is asked: its empty replies are kept, and are errors."""
    return checked_replies(model, keeper(model.name, shared.calls_of(model)))


def remote(model: Any, shared: Shared) -> Remote | None:
    """Return how an endpoint is asked: limited, tried again, paid for."""
    if isinstance(model, LocalChatModel):
        return None
    endpoint = shared.endpoints.of(model, limits_of(model))
    keep = keeper(model.name, shared.calls_of(model))
    return ChatCaller(model, endpoint, shared.ledger, keep, shared.counter)


def stand_in(request: ChatRequest) -> Reply:
    """Return what a plan takes for a reply."""
    return Reply(STAND_IN, others=(STAND_IN,) * (request.n - 1))


CHAT: Capability[ChatRequest, Reply] = Capability(
    name="chat",
    stored_as="chat",
    backend="chat model",
    item=chat_request,
    compute=compute,
    codec=CHAT_CODEC,
    stand_in=stand_in,
    load=resolve.chat,
    option="--model",
    local=local,
    remote=remote,
    remote_items=1,
)
