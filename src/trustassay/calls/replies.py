"""Replies of chat models between store and metric: stored as received, read as answers.

An empty reply is a failure of the kind ``empty``, unless its request allows it. It is stored
under a separate key with its request and tokens, so that no later run uses it as an answer.
"""

import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trustassay.backends.chat_text import pack_logprobs, strip_reasoning, unpack_logprobs
from trustassay.calls.batching import Codec
from trustassay.calls.keys import KEY_BYTES, chat_parts
from trustassay.calls.store import Calls, StoredCall
from trustassay.core.capabilities import ChatRequest, LocalChatModel, Reply
from trustassay.core.sample import clean, is_blank
from trustassay.errors import BackendError, CallError

_REPLY_FIELDS_IF_SET = ("reasoning", "may_be_empty")
"""Fields of a reply that are only written if they are set, as older stores lack them."""


def reply_to_json(reply: Reply) -> str:
    """Return the stored form of a reply: as received, with packed log-probabilities."""
    result = {name: getattr(reply, name) for name in Reply.__slots__}
    if reply.logprobs:
        result["logprobs"] = pack_logprobs(reply.logprobs, clean(reply.text))
    # Dropped where empty, so that a reply has the same text as in older stores.
    for name in _REPLY_FIELDS_IF_SET:
        if not result[name]:
            del result[name]
    text = json.dumps(result)
    return (
        json.dumps(clean_value(result)) if r"\ud" in text else text
    )  # a surrogate, maybe a lone one


def reply_from_json(text: str) -> Reply:
    """Read a stored reply, without the reasoning in its text.

    Raises:
        ValueError: it is empty, and was not allowed to be.
    """
    fields = json.loads(text)
    for name in ("others", "dropped"):
        fields[name] = tuple(fields[name])
    if fields["logprobs"] is not None:
        fields["logprobs"] = unpack_logprobs(fields["logprobs"], fields["text"])
    reply = strip_reasoning(Reply(**fields))
    # A damaged or older row: the batcher asks again.
    if not reply.may_be_empty and is_blank(reply.text):
        raise ValueError("an empty reply")
    return reply


CHAT_CODEC: Codec[ChatRequest, Reply] = Codec(
    parts=chat_parts,
    reply_to_json=reply_to_json,
    reply_from_json=reply_from_json,
    tokens=lambda reply: (reply.prompt_tokens, reply.reply_tokens),
)


def find_empty_reply_error(name: str, request: ChatRequest, reply: Reply) -> CallError | None:
    """Return the error of a reply that is empty and should not be; ``None`` for others."""
    # Reasoning does not count as text.
    read = strip_reasoning(reply)
    blank = [is_blank(text) for text in (read.text, *read.others)]
    if request.may_be_empty or not any(blank):
        return None
    message = "the reply is empty"
    if len(blank) > 1:
        message = f"{sum(blank)} of {len(blank)} replies are empty"
    if read.finish == "length":
        limit = f" ({request.max_tokens:,})" if request.max_tokens else ""
        message += f": it reached the token limit before an answer began; raise max_tokens{limit}"
    else:
        message += " except for its reasoning" if read.reasoning else ""
        message += f" (finish: {read.finish})" if read.finish not in (None, "stop") else ""
    return CallError(f"{name}: {message}", "empty")


def store_empty_reply(
    name: str, calls: Calls, request: ChatRequest, reply: Reply, seconds: float
) -> None:
    """Store an empty reply of a model, and the seconds that it took."""
    # A random key: no request can find this row, but its tokens count as paid for.
    key = secrets.token_bytes(KEY_BYTES)
    request_json = json.dumps(list(chat_parts(request)), ensure_ascii=False)
    tokens = (reply.prompt_tokens, reply.reply_tokens)
    calls.add([StoredCall(key, "chat", name, request_json, reply_to_json(reply), seconds, *tokens)])


def mark_allowed_empty(request: ChatRequest, reply: Reply) -> Reply:
    """Return the reply, marked as possibly empty if its request allows that."""
    return replace(reply, may_be_empty=True) if request.may_be_empty else reply


def build_checked_replies(
    model: LocalChatModel, calls: Calls
) -> Callable[[list[ChatRequest]], Sequence[Reply | BackendError]]:
    """Return a function that answers a batch, with an error in place of each empty reply.

    Nothing is tried again: a local model gives the same reply to the same request.
    """

    def compute(requests: list[ChatRequest]) -> Sequence[Reply | BackendError]:
        began = time.perf_counter()
        replies = model.replies(requests)
        if len(replies) != len(requests):
            return replies  # the batcher raises for that
        seconds = (time.perf_counter() - began) / len(requests)
        result: list[Reply | BackendError] = []
        for request, reply in zip(requests, replies, strict=True):
            if isinstance(reply, BackendError):
                result.append(reply)
                continue
            error = find_empty_reply_error(model.name, request, reply)
            if error:
                store_empty_reply(model.name, calls, request, reply, seconds)
            result.append(error or mark_allowed_empty(request, reply))
        return result

    return compute


def clean_value(value: Any) -> Any:
    """Return a reply's fields without lone surrogates, which no file can hold."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {name: clean_value(part) for name, part in value.items()}
    return [clean_value(part) for part in value] if isinstance(value, list | tuple) else value
