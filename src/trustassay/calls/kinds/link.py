"""The entities that a text speaks of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from trustassay.backends import resolve
from trustassay.calls.capability import Capability
from trustassay.calls.keeping import Codec
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
    for text, entities in zip(texts, lists, strict=True):
        for entity in entities:
            if not 0 <= entity.start <= entity.end <= len(text):
                span = f"{entity.start} to {entity.end}"
                raise BackendError(f"{linker.name} returned a span outside its text ({span})")
    return [tuple(entities) for entities in lists]


LINK: Capability[str, Found] = Capability(
    name="link",
    stored_as="linking",
    backend="linker",
    item=lambda text: text,
    compute=compute,
    codec=Codec(
        parts=lambda text: (text,),
        reply_to_json=lambda found: json.dumps(cleaned([asdict(one) for one in found])),
        reply_from_json=lambda text: tuple(Entity(**one) for one in json.loads(text)),
    ),
    stand_in=lambda _: (),
    load=resolve.linker,
    option="--linker",
)
