"""The entities that a text speaks of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from trustassay.backends import lookups
from trustassay.calls.capability import Capability, Remote, Shared
from trustassay.calls.endpoints import LookupCaller
from trustassay.calls.keeping import text_codec
from trustassay.calls.replies import cleaned
from trustassay.capabilities import Entity, EntityLinker
from trustassay.errors import BackendError

__all__ = ["LINK"]

Found = tuple[Entity, ...]


def compute(linker: EntityLinker, texts: list[str]) -> Sequence[Found]:
    """Return the entities of each text, in reading order.

    Raises:
        BackendError: the linker returned another number of lists, or a span outside of its text.
    """
    lists = linker.link(texts)
    if len(lists) != len(texts):
        raise BackendError(f"{linker.name} did not return the entities of each text")
    return [checked(linker.name, *both) for both in zip(texts, lists, strict=True)]


def checked(name: str, text: str, entities: Sequence[Entity]) -> Found:
    """Return the entities of a text; raises :class:`BackendError` for a span outside of it."""
    for entity in entities:
        if not 0 <= entity.start <= entity.end <= len(text):
            span = f"{entity.start} to {entity.end}"
            raise BackendError(f"{name} returned a span outside its text ({span})")
    return tuple(entities)


def remote(linker: Any, shared: Shared) -> Remote | None:
    """Return how an endpoint is asked: limited and tried again."""
    if isinstance(linker, EntityLinker):
        return None
    endpoint = shared.endpoints.of(linker, linker.endpoint_limits)

    async def asked(text: str) -> Found:
        return checked(linker.name, text, await linker.alink(text))

    return LookupCaller(linker.name, asked, endpoint, shared.ledger)


LINK: Capability[str, Found] = Capability(
    name="link",
    stored_as="linking",
    backend="linker",
    item=str,
    compute=compute,
    codec=text_codec(
        lambda found: json.dumps(cleaned([asdict(one) for one in found])),
        lambda text: tuple(Entity(**one) for one in json.loads(text)),
    ),
    stand_in=lambda _: (),
    load=lookups.linker,
    option="--linker",
    remote=remote,
    remote_items=1,
)
