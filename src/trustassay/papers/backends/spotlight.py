"""``spotlight``: the entities of a text, from DBpedia Spotlight at any address."""

from __future__ import annotations

from functools import partial
from typing import Any

from trustassay.backends.http import EndpointAddress
from trustassay.backends.registry import scheme
from trustassay.core.capabilities import Entity
from trustassay.papers.backends.knowledge_base import DBpediaService, address_of, iri_of

SPOTLIGHT = "https://api.dbpedia-spotlight.org/en"
MIN_CONFIDENCE = 0.5
"""Confidence below which Spotlight does not link a mention; its own default."""


class SpotlightLinker(DBpediaService):
    """Finds the entities of a text and their types with DBpedia Spotlight."""

    service = "DBpedia Spotlight"

    def __init__(self, address: EndpointAddress) -> None:
        super().__init__(address)
        self._http.with_headers(
            Accept="application/json", Content_Type="application/x-www-form-urlencoded"
        )

    async def alink(self, text: str) -> list[Entity]:
        """Return the entities of a text in reading order, in one try; raises :class:`CallError`."""
        if not text.strip():
            return []
        fields = {"text": text, "confidence": str(MIN_CONFIDENCE)}
        reply = await self.ask("/annotate", fields)
        try:
            # Spotlight repeats the text; without it the reply is another document.
            if not isinstance(reply["@text"], str):
                raise TypeError
            entities = [_parse_entity(resource, text) for resource in reply.get("Resources", ())]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self.malformed_reply_error("a reply without resources and their places") from None
        return sorted(entities, key=lambda entity: entity.start)


def _parse_entity(resource: Any, text: str) -> Entity:
    surface, start = str(resource["@surfaceForm"]), int(resource["@offset"])
    # Offsets are in UTF-16 units: an emoji before the mention counts twice.
    if start < 0 or not text.startswith(surface, start):
        start = _index_from_utf16(text, start)
        if not text.startswith(surface, start):
            raise ValueError
    end = start + len(surface)
    types = [type_name.strip() for type_name in str(resource.get("@types", "")).split(",")]
    used_types = [type_name for type_name in dict.fromkeys(types) if iri_of(type_name)]
    uri = str(resource["@URI"])
    name = uri.rsplit("/", 1)[-1].replace("_", " ")
    return Entity(uri, name, start, end, {"types": used_types})


def _index_from_utf16(text: str, units: int) -> int:
    """Return the index of a character from its offset in UTF-16 units, which Java counts."""
    before = text.encode("utf-16-le", "surrogatepass")[: 2 * max(0, units)]
    # A negative offset gives an index at which nothing matches.
    return len(before.decode("utf-16-le", "replace")) if units >= 0 else len(text) + 1


spotlight_address = partial(address_of, scheme="spotlight", default_url=SPOTLIGHT)
scheme("spotlight", kind="linker", form="spotlight[:URL]", address=spotlight_address)(
    SpotlightLinker
)
