"""What DBpedia and its Spotlight have in common: services over HTTP, and types of entities."""

from __future__ import annotations

import re
from dataclasses import replace

from trustassay.backends.http import Address, HttpBackend, HttpEndpoint
from trustassay.capabilities import EndpointLimits
from trustassay.errors import BackendError, CallError

LIMITS = EndpointLimits(concurrency=4)
"""Unless the URI says otherwise: these are public services."""

_NAMESPACES = {
    "DBpedia": "http://dbpedia.org/ontology/",
    "Schema": "http://schema.org/",
    "Wikidata": "http://www.wikidata.org/entity/",
}
"""The only types that are used."""
_LOCAL_NAME = re.compile(r"[\w-]+")


class Service(HttpBackend):
    """What both have: an address, limits, connections, and no key."""

    free = True

    def __init__(self, address: Address) -> None:
        self.endpoint_limits = address.limits
        self.endpoint = address.base
        self.name = f"{address.scheme}:{address.base}"
        self._http = HttpEndpoint(address, "Authorization")

    def malformed(self, message: str) -> CallError:
        """Return the error for a reply of another form."""
        return CallError(f"{self.name}: {message}", "malformed")


def iri_of(name: str) -> str | None:
    """Return the IRI of a type such as ``DBpedia:City``; ``None`` for any that is not used."""
    prefix, _, local = name.partition(":")
    if prefix not in _NAMESPACES or not _LOCAL_NAME.fullmatch(local):
        return None
    return _NAMESPACES[prefix] + local


def address_of(rest: str, scheme: str, base: str) -> Address:
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
