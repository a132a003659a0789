"""``dbpedia``: entities of given types; ``spotlight`` and ``spacy``: those of a text.

The first two are services over HTTP at any address; how often they are asked is decided elsewhere.
The last is an installed spaCy model. Nothing is downloaded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from trustassay.backends.http import Address, HttpBackend, HttpEndpoint
from trustassay.capabilities import EndpointLimits, Entity, SubstitutesRequest
from trustassay.errors import BackendError, CallError

SPARQL = "https://dbpedia.org/sparql"
SPOTLIGHT = "https://api.dbpedia-spotlight.org/en"
CONFIDENCE = 0.5
"""Below it Spotlight leaves a mention alone; its own default."""
LIMITS = EndpointLimits(concurrency=4)
"""Unless the URI says otherwise: these are public services."""

_NAMESPACES = {
    "DBpedia": "http://dbpedia.org/ontology/",
    "Schema": "http://schema.org/",
    "Wikidata": "http://www.wikidata.org/entity/",
}
"""The only types that are used."""
_LOCAL_NAME = re.compile(r"[\w-]+")
_QUALIFIER = re.compile(r"\([^()]*\)$")


class _Service(HttpBackend):
    """What both have: an address, limits, connections, and no key."""

    free = True

    def __init__(self, address: Address) -> None:
        self.endpoint_limits = address.limits
        self.endpoint = address.base
        self.name = f"{address.scheme}:{address.base}"
        self._http = HttpEndpoint(address, "Authorization")

    def _malformed(self, message: str) -> CallError:
        return CallError(f"{self.name}: {message}", "malformed")


class DBpediaSource(_Service):
    """Entities that have all of some types, those with the most links to them first."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._http.with_headers(
            Accept="application/sparql-results+json",
            Content_Type="application/x-www-form-urlencoded",
        )

    async def asubstitutes(self, request: SubstitutesRequest) -> list[str]:
        """Return the labels of up to k entities that have all types of the request, in one try.

        Raises:
            CallError: the try failed, and how.
        """
        types = [iri for one in request.types if (iri := _iri(one))]
        if not types:
            return []
        found = await self._http.post_form("", {"query": query_of(types, request.k)})
        try:
            labels = [row["label"]["value"] for row in found["results"]["bindings"]]
            if not all(isinstance(label, str) for label in labels):
                raise TypeError
        except (KeyError, TypeError):
            raise self._malformed("a reply without bindings of ?label") from None
        names = dict.fromkeys(filter(None, map(label_of, labels)))
        return list(names)[: request.k]


class SpotlightLinker(_Service):
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
            raise self._malformed("a reply without resources and their places") from None
        return sorted(entities, key=lambda one: one.start)


def query_of(types: Sequence[str], k: int) -> str:
    """Return the SPARQL query for entities of all these types, by the number of links to them."""
    classes = ", ".join(f"<{one}>" for one in types)
    return (
        "SELECT ?label (COUNT(DISTINCT ?from) AS ?links) WHERE { "
        f"?entity a {classes} ; <http://www.w3.org/2000/01/rdf-schema#label> ?label . "
        "?from <http://dbpedia.org/ontology/wikiPageWikiLink> ?entity . "
        'FILTER (LANG(?label) = "en") } '
        f"GROUP BY ?label ORDER BY DESC(?links) LIMIT {int(k)}"
    )


def label_of(label: str) -> str:
    """Return an entity's label without the qualifiers in brackets that tell it from others."""
    label = label.strip()
    while match := _QUALIFIER.search(label):
        label = label[: match.start()].rstrip()
    return label


def _iri(name: str) -> str | None:
    """Return the IRI of a type such as ``DBpedia:City``; ``None`` for any that is not used."""
    prefix, _, local = name.partition(":")
    if prefix not in _NAMESPACES or not _LOCAL_NAME.fullmatch(local):
        return None
    return _NAMESPACES[prefix] + local


def _entity(found: Any, text: str) -> Entity:
    surface, start = str(found["@surfaceForm"]), int(found["@offset"])
    if start < 0 or not text.startswith(surface, start):
        start = _from_utf16(text, start)
        if not text.startswith(surface, start):
            raise ValueError
    end = start + len(surface)
    types = [one.strip() for one in str(found.get("@types", "")).split(",")]
    known = [one for one in dict.fromkeys(types) if _iri(one)]
    uri = str(found["@URI"])
    name = uri.rsplit("/", 1)[-1].replace("_", " ")
    return Entity(uri, name, start, end, {"types": known})


def _from_utf16(text: str, units: int) -> int:
    """Return the place of a character that is counted in units of UTF-16, as Java does it."""
    before = text.encode("utf-16-le", "surrogatepass")[: 2 * max(0, units)]
    return len(before.decode("utf-16-le", "replace")) if units >= 0 else len(text) + 1


def _address(rest: str, scheme: str, base: str) -> Address:
    """Return the address behind a scheme, ``[URL][?option=value&...]``; there is no key."""
    url, _, options = rest.partition("?")
    if url and not url.startswith(("http://", "https://")):
        raise BackendError(f"{scheme}:{url} is not an address; expected http://... or https://...")
    address = Address.parse(
        scheme, f"{scheme}@{url or base}" + f"?{options}" * bool(options), base=base, key=""
    )
    if "concurrency=" in options:
        return address
    limits = replace(address.limits, concurrency=LIMITS.concurrency)
    return replace(address, limits=limits)


dbpedia_address = partial(_address, scheme="dbpedia", base=SPARQL)
spotlight_address = partial(_address, scheme="spotlight", base=SPOTLIGHT)
MODEL = "en_core_web_sm"


class SpacyLinker:
    """Named entities with their label (``PERSON``, ``GPE``, ...) in the place of an entry's id.

    Raises:
        BackendError: spaCy or the model is not installed, or the model finds no entities.
    """

    def __init__(self, model: str = MODEL) -> None:
        try:
            import spacy
        except ImportError as error:
            raise BackendError(f"spacy:{model} needs spaCy ({error}): pip install spacy") from None
        if not spacy.util.is_package(model):
            raise BackendError(f"spacy:{model}: no such model is installed as a package")
        self._read: Any = spacy.load(model)
        if "ner" not in self._read.pipe_names:
            raise BackendError(f"spacy:{model} finds no entities; expected a model with 'ner'")
        version = f"{self._read.meta['version']}+{spacy.__version__}"
        self.name = f"spacy:{model}-{version}"

    def link(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Return the named entities of each text in reading order."""
        return [
            [
                Entity(one.label_, one.text, one.start_char, one.end_char, {"label": one.label_})
                for one in read.ents
            ]
            for read in self._read.pipe(texts)
        ]
