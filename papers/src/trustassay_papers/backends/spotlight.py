"""``spotlight``: the entities of a text, from DBpedia Spotlight at any address."""

from __future__ import annotations

from functools import partial
from typing import Any

from trustassay.backends.http import Address
from trustassay.backends.registry import scheme
from trustassay.capabilities import Entity
from trustassay_papers.backends.knowledge_base import Service, address_of, iri_of

SPOTLIGHT = "https://api.dbpedia-spotlight.org/en"
CONFIDENCE = 0.5
"""Below it Spotlight leaves a mention alone; its own default."""


class SpotlightLinker(Service):
    """Entities of a text by DBpedia Spotlight, with their types."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._http.with_headers(
            Accept="application/json", Content_Type="application/x-www-form-urlencoded"
        )

    async def alink(self, text: str) -> list[Entity]:
        """Return the entities of a text in reading order, in one try; raises :class:`CallError`."""
        if not text.strip():
            return []
        fields = {"text": text, "confidence": str(CONFIDENCE)}
        found = await self._http.post_form("/annotate", fields)
        try:
            if not isinstance(found["@text"], str):
                raise TypeError
            entities = [_entity(one, text) for one in found.get("Resources", ())]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self.malformed("a reply without resources and their places") from None
        return sorted(entities, key=lambda one: one.start)


def _entity(found: Any, text: str) -> Entity:
    surface, start = str(found["@surfaceForm"]), int(found["@offset"])
    if start < 0 or not text.startswith(surface, start):
        start = _from_utf16(text, start)
        if not text.startswith(surface, start):
            raise ValueError
    end = start + len(surface)
    types = [one.strip() for one in str(found.get("@types", "")).split(",")]
    known = [one for one in dict.fromkeys(types) if iri_of(one)]
    uri = str(found["@URI"])
    name = uri.rsplit("/", 1)[-1].replace("_", " ")
    return Entity(uri, name, start, end, {"types": known})


def _from_utf16(text: str, units: int) -> int:
    """Return the place of a character that is counted in units of UTF-16, as Java does it."""
    before = text.encode("utf-16-le", "surrogatepass")[: 2 * max(0, units)]
    return len(before.decode("utf-16-le", "replace")) if units >= 0 else len(text) + 1


spotlight_address = partial(address_of, scheme="spotlight", base=SPOTLIGHT)
scheme("spotlight", kind="linker", form="spotlight[:URL]", address=spotlight_address)(
    SpotlightLinker
)
