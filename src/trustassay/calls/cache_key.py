"""The key of a stored call: a digest of capability, backend and the parts of the request."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from json.encoder import encode_basestring_ascii as _quoted
from operator import attrgetter
from typing import Any

from trustassay.capabilities import ChatRequest, Reply

_IF_SET = frozenset({"may_be_empty", "schema"})
"""Fields of a request that count in its key only where they are set."""
_FIELDS = {kind: attrgetter(*kind.__slots__) for kind in (ChatRequest, Reply)}


def fields_of(value: ChatRequest | Reply) -> dict[str, Any]:
    """Return the fields as JSON values; without the copies that ``asdict`` makes."""
    kind = Reply if isinstance(value, Reply) else ChatRequest
    return dict(zip(kind.__slots__, _FIELDS[kind](value), strict=True))


def chat_parts(request: ChatRequest) -> tuple[str]:
    """Return what makes up the key of a request to a chat model: its fields as JSON.

    All but the messages are the same in many requests, and so is their JSON. Fields that came
    later count only where they are set: other keys are as they were without them.
    """
    try:
        messages, *others = _FIELDS[ChatRequest](request)
        turns = [f"[{_quoted(role)}, {_quoted(text)}]" for role, text in messages]
        rest = _as_json(*others)
    except TypeError:  # a list among the fields, or what is no text
        return (json.dumps(_sent_fields(fields_of(request))),)
    return (f'{{"messages": [{", ".join(turns)}], {rest}',)


@lru_cache(1024, typed=True)  # 1, 1.0 and True are equal, but not as JSON
def _as_json(*values: Any) -> str:
    """Return the JSON of a request's fields after the first, without the first brace."""
    fields = dict(zip(ChatRequest.__slots__[1:], values, strict=True))
    return json.dumps(_sent_fields(fields))[1:]


def _sent_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that are sent, those of ``_IF_SET`` only where they say something."""
    return {k: v for k, v in fields.items() if k != "stand_in" and (v or k not in _IF_SET)}


class Keys:
    """Makes the keys of the calls to one backend."""

    def __init__(self, capability: str, backend: str) -> None:
        self._digest = hashlib.blake2b(digest_size=16)
        _update(self._digest, (capability, backend))

    def of(self, parts: Sequence[str]) -> bytes:
        """Return the 16 bytes by which a call is known; each part counts with its length."""
        digest = self._digest.copy()
        _update(digest, parts)
        return digest.digest()


def request_key(capability: str, backend: str, parts: Sequence[str]) -> bytes:
    """Return the key of one call; see :class:`Keys`."""
    return Keys(capability, backend).of(parts)


def _update(digest: hashlib.blake2b, parts: Sequence[str]) -> None:
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)
