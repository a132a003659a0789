"""Replies in the form in which they are stored, and storing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Generic, TypeVar

from trustassay.calls.store import Calls, CallStoreError, Keys, StoredCall
from trustassay.errors import BackendError
from trustassay.files import DiskFullError

__all__ = ["Codec", "Keeper", "text_codec"]

Item = TypeVar("Item")
Reply = TypeVar("Reply")


@dataclass(frozen=True, slots=True)
class Codec(Generic[Item, Reply]):
    """How a capability's requests and replies are identified, stored and counted.

    as_stored: a reply as its JSON will be read back, where that is known without reading it.
    """

    parts: Callable[[Item], Sequence[str]]
    reply_to_json: Callable[[Reply], str]
    reply_from_json: Callable[[str], Reply]
    as_stored: Callable[[Reply, str], Reply | None] = lambda _, __: None
    tokens: Callable[[Reply], tuple[int | None, int | None]] = lambda _: (None, None)


def text_codec(
    reply_to_json: Callable[[Reply], str], reply_from_json: Callable[[str], Reply]
) -> Codec[str, Reply]:
    """Return the codec of a capability whose request is one text."""
    return Codec(lambda text: (text,), reply_to_json, reply_from_json)


class Keeper(Generic[Item, Reply]):
    """Turns the replies of one backend into rows and back, and stores them if there is a store.

    Replies pass through their stored form, so that a reply from the store and a fresh one are the
    same to the last digit.
    """

    def __init__(
        self, capability: str, backend: str, codec: Codec[Item, Reply], store: Calls | None
    ) -> None:
        self.keys = Keys(capability, backend)
        self._capability, self._backend = capability, backend
        self._codec, self._store = codec, store

    def read(self, text: str) -> Reply | None:
        """Return a stored reply; ``None`` if it is damaged."""
        try:
            return self._codec.reply_from_json(text)
        except Exception:
            return None

    def written(
        self, key: bytes, parts: Sequence[str], reply: Reply, seconds: float
    ) -> tuple[Reply, list[StoredCall]]:
        """Return a reply as it will be read back, and its row."""
        text = self._codec.reply_to_json(reply)
        stored = self._codec.as_stored(reply, text)
        if stored is None:
            stored = self._codec.reply_from_json(text)
        if not self._store:
            return stored, []
        request = f"[{', '.join(map(encode_basestring, parts))}]"
        tokens = self._codec.tokens(reply)
        row = (key, self._capability, self._backend, request, text, seconds, *tokens)
        return stored, [StoredCall(*row)]

    def store(self, parts: Sequence[list[StoredCall]]) -> list[Exception | None]:
        """Store the calls of several batches; return what came of each.

        All in one transaction; where one batch cannot be stored, the others still are.
        """
        try:
            if self._store and any(parts):
                self._store.add([row for rows in parts for row in rows])
            return [None] * len(parts)
        except (CallStoreError, DiskFullError) as error:  # the file is at fault, and not a call
            return [error] * len(parts)
        except Exception as error:
            if len(parts) == 1:
                return [BackendError(f"a reply could not be stored ({error})")]
            return [failure for rows in parts for failure in self.store([rows])]
