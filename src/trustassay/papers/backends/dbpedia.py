"""``dbpedia``: entities of given types, from a SPARQL service over HTTP."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from trustassay.backends.http import EndpointAddress
from trustassay.backends.registry import scheme
from trustassay.core.capabilities import SubstitutesRequest
from trustassay.papers.backends.knowledge_base import DBpediaService, address_of, iri_of

SPARQL = "https://dbpedia.org/sparql"
# The end of "Paris (Texas)".
_QUALIFIER = re.compile(r"\([^()]*\)$")


class DBpediaSource(DBpediaService):
    """Entities that have all requested types, the most linked ones first."""

    service = "DBpedia"

    def __init__(self, address: EndpointAddress) -> None:
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
        types = [iri for name in request.types if (iri := iri_of(name))]
        if not types:
            return []
        reply = await self.ask("", {"query": query_of(types, request.k)})
        try:
            labels = [row["label"]["value"] for row in reply["results"]["bindings"]]
            if not all(isinstance(label, str) for label in labels):
                raise TypeError
        except (KeyError, TypeError):
            raise self.malformed_reply_error("a reply without bindings of ?label") from None
        # Labels that differ only in their qualifier become one.
        names = dict.fromkeys(filter(None, map(label_of, labels)))
        return list(names)[: request.k]


def query_of(types: Sequence[str], k: int) -> str:
    """Return the SPARQL query for entities of all these types, ordered by links to them."""
    classes = ", ".join(f"<{type_iri}>" for type_iri in types)
    return (
        "SELECT ?label (COUNT(DISTINCT ?from) AS ?links) WHERE { "
        f"?entity a {classes} ; <http://www.w3.org/2000/01/rdf-schema#label> ?label . "
        "?from <http://dbpedia.org/ontology/wikiPageWikiLink> ?entity . "
        'FILTER (LANG(?label) = "en") } '
        f"GROUP BY ?label ORDER BY DESC(?links) LIMIT {int(k)}"
    )


def label_of(label: str) -> str:
    """Return an entity's label without the qualifiers in brackets that disambiguate it."""
    label = label.strip()
    while match := _QUALIFIER.search(label):
        label = label[: match.start()].rstrip()
    return label


dbpedia_address = partial(address_of, scheme="dbpedia", default_url=SPARQL)
# Registers the class for URIs `dbpedia:...`.
scheme("dbpedia", kind="distractors", form="dbpedia[:URL]", address=dbpedia_address)(DBpediaSource)
