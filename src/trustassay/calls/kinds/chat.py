"""The reply of a chat model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trustassay.backends import resolve
from trustassay.calls.capability import Capability, Remote, Shared, cleaned
from trustassay.calls.counting import chat_parts, fields_of
from trustassay.calls.endpoints import ChatCaller
from trustassay.calls.gathering import Codec
from trustassay.capabilities import (
    ChatRequest,
    EndpointLimits,
    LocalChatModel,
    Message,
    Reply,
    TokenLogprob,
)

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


def remote(model: Any, shared: Shared) -> Remote | None:
    """Return how an endpoint is asked: limited, tried again, paid for."""
    if isinstance(model, LocalChatModel):
        return None
    endpoint = shared.endpoints.of(model, getattr(model, "limits", EndpointLimits()))
    return ChatCaller(model, endpoint, shared.purse, shared.tally)


def stand_in(request: ChatRequest) -> Reply:
    """Return what a plan takes for a reply."""
    return Reply(STAND_IN, others=(STAND_IN,) * (request.n - 1))


def _reply(fields: Mapping[str, Any]) -> Reply:
    """Return a stored reply; the inverse of its fields as JSON."""
    told = fields["logprobs"]
    if told is not None:
        told = tuple(TokenLogprob(t, p, tuple((a, q) for a, q in others)) for t, p, others in told)
    return Reply(
        **{
            **fields,
            "others": tuple(fields["others"]),
            "logprobs": told,
            "dropped": tuple(fields["dropped"]),
        }
    )


CHAT: Capability[ChatRequest, Reply] = Capability(
    name="chat",
    stored_as="chat",
    backend="chat model",
    item=chat_request,
    compute=compute,
    codec=Codec(
        parts=chat_parts,
        reply_to_json=lambda reply: json.dumps(cleaned(fields_of(reply))),
        reply_from_json=lambda text: _reply(json.loads(text)),
        tokens=lambda reply: (reply.prompt_tokens, reply.reply_tokens),
    ),
    stand_in=stand_in,
    load=resolve.chat,
    option="--model",
    remote=remote,
    remote_items=1,
)
