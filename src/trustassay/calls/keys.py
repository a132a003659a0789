"""Keys of stored calls: digests of the capability, the backend's name, and the texts of a request.

A chat request is one text, the JSON of its fields (:func:`chat_parts`). The texts of the other
capabilities' requests are in :mod:`trustassay.calls.capability`, as ``parts`` of each codec. A key
must never change, or replies that were paid for would be requested again.
"""

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from operator import attrgetter
from typing import Any

from trustassay.core.capabilities import ChatRequest

KEY_BYTES = 16
_KEY_FIELDS_IF_SET = frozenset({"may_be_empty", "schema", "embedding_radius"})
"""Fields of a request that are only part of its key if they are set and not 0."""
_REQUEST_FIELDS = attrgetter(*ChatRequest.__slots__)


class Keys:
    """Computes the keys of the calls to one backend: digests of capability, backend and request."""

    def __init__(self, capability: str, backend: str) -> None:
        self._digest = hashlib.blake2b(digest_size=KEY_BYTES)
        _update(self._digest, (capability, backend))

    def of(self, parts: Sequence[str]) -> bytes:
        """Return the key of a request, 16 bytes.

        The length of each part is part of the digest, so that ("ab", "c") and ("a", "bc") differ.
        """
        digest = self._digest.copy()
        _update(digest, parts)
        return digest.digest()


def _update(digest: hashlib.blake2b, parts: Sequence[str]) -> None:
    for part in parts:
        # Lone surrogates occur in scraped text, and must not fail here.
        data = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)


def chat_parts(request: ChatRequest) -> tuple[str]:
    """Return the text from which a chat request's key is computed: its fields as JSON.

    The fields other than the messages are equal in many requests, so their JSON is cached. Fields
    that were added in later versions only count if they are set, so that older keys stay valid.
    """
    messages, *other_fields = _REQUEST_FIELDS(request)
    try:
        # The same text as json.dumps() of the pairs, at a fraction of its time.
        turns = [
            f"[{encode_basestring_ascii(role)}, {encode_basestring_ascii(text)}]"
            for role, text in messages
        ]
        return (f'{{"messages": [{", ".join(turns)}], {_other_fields_json(*other_fields)}',)
    except TypeError:  # a list among the fields, or what is no text
        sent = {"messages": messages, **_select_key_fields(other_fields)}
        return (json.dumps(sent),)


@lru_cache(1024, typed=True)  # 1, 1.0 and True are equal, but not as JSON
def _other_fields_json(*values: Any) -> str:
    """Return the JSON of a request's fields after the messages, without the opening brace."""
    return json.dumps(_select_key_fields(values))[1:]


def _select_key_fields(values: Sequence[Any]) -> dict[str, Any]:
    """Return the fields after the messages; those of :data:`_KEY_FIELDS_IF_SET` only if set."""
    fields = zip(ChatRequest.__slots__[1:], values, strict=True)
    return {k: v for k, v in fields if k != "stand_in" and (v or k not in _KEY_FIELDS_IF_SET)}
