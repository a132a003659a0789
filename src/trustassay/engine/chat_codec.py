"""How requests to chat models and their replies are stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trustassay.capabilities import ChatRequest, Reply, TokenLogprob
from trustassay.engine.keeping import Codec
from trustassay.engine.tally import chat_parts, fields_of
from trustassay.sample import clean

__all__ = ["CHAT"]


def _reply_to_json(reply: Reply) -> str:
    text = json.dumps(fields_of(reply))
    if r"\ud" in text:  # a surrogate, maybe a lone one
        text = json.dumps(_cleaned(fields_of(reply)))
    return text


def _reply_as_stored(reply: Reply, text: str) -> Reply | None:
    """Return the reply itself where reading its JSON would give nothing else."""
    same = (
        type(reply) is Reply
        and reply.logprobs is None
        and type(reply.others) is tuple
        and type(reply.dropped) is tuple
        and r"\ufffd" not in text  # what may stand for a lone surrogate
    )
    return reply if same else None


def _cleaned(value: Any) -> Any:
    """Return a reply's fields without what no file can hold, lone surrogates."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {name: _cleaned(part) for name, part in value.items()}
    return [_cleaned(part) for part in value] if isinstance(value, list | tuple) else value


def _reply(fields: dict[str, Any]) -> Reply:
    logprobs = fields["logprobs"]
    return Reply(
        **fields
        | {
            "others": tuple(fields["others"]),
            "dropped": tuple(fields["dropped"]),
            "logprobs": None
            if logprobs is None
            else tuple(TokenLogprob(t, p, tuple(map(tuple, others))) for t, p, others in logprobs),
        }
    )


CHAT: Codec[ChatRequest, Reply] = Codec(
    parts=chat_parts,
    reply_to_json=_reply_to_json,
    reply_from_json=lambda text: _reply(json.loads(text)),
    as_stored=_reply_as_stored,
    tokens=lambda reply: (reply.prompt_tokens, reply.reply_tokens),
)
