"""What DBpedia and DBpedia Spotlight share: HTTP services, and types of entities."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from trustassay.backends.http import EndpointAddress, HttpBackend, HttpEndpoint, check_base
from trustassay.core.capabilities import EndpointLimits
from trustassay.errors import CallError

DEFAULT_LIMITS = EndpointLimits(concurrency=4)
"""Limits unless the URI sets others: low, since these are public services."""

_NAMESPACES = {
    "DBpedia": "http://dbpedia.org/ontology/",
    "Schema": "http://schema.org/",
    "Wikidata": "http://www.wikidata.org/entity/",
}
"""Prefixes of the types that are used; all others are ignored."""
# The name goes into a SPARQL query, so nothing but letters, digits, "_" and "-".
_LOCAL_NAME = re.compile(r"[\w-]+")


class DBpediaService(HttpBackend):
    """An HTTP service with an address and limits, and without a key."""

    free = True
    service: ClassVar[str]
    """What the service is called."""

    def __init__(self, address: EndpointAddress) -> None:
        # Attributes that the client reads: limits, endpoint and name.
        self.endpoint_limits = address.limits
        self.endpoint = address.base
        self.name = f"{address.scheme}:{address.base}"
        self._http = HttpEndpoint(address, "Authorization")

    async def ask(self, path: str, fields: Mapping[str, str]) -> Any:
        """Send the fields of a form, and return the reply's JSON.

        Raises:
            CallError: the service cannot be reached or refuses; names it and another choice.
        """
        try:
            return await self._http.post_form(path, fields)
        except CallError as error:
            cause = str(error).removeprefix(f"{self._http.address.name}: ")
            message = (
                f"{self.service} at {self.endpoint}: {cause}; try again later, or give another "
                f"address as {self._http.address.scheme}:URL"
            )
            raise CallError(message, error.kind, error.retry_after_s) from None

    def malformed_reply_error(self, message: str) -> CallError:
        """Return the error for a reply in an unexpected form."""
        return CallError(f"{self.service} at {self.endpoint}: {message}", "malformed")


def iri_of(name: str) -> str | None:
    """Return the IRI of a type such as ``DBpedia:City``; ``None`` if the type is not used."""
    prefix, _, local = name.partition(":")
    if prefix not in _NAMESPACES or not _LOCAL_NAME.fullmatch(local):
        return None
    return _NAMESPACES[prefix] + local


def address_of(target: str, scheme: str, default_url: str) -> EndpointAddress:
    """Return the address in ``SCHEME:[URL][?option=value&...]``, without a key.

    Raises:
        BackendError: the URL is not of HTTP, or an option is unknown.
    """
    url, _, options = target.partition("?")
    if url:
        check_base(url, scheme)
    address = EndpointAddress.parse(
        scheme,
        f"{scheme}@{url or default_url}" + f"?{options}" * bool(options),
        base=default_url,
        key="",
    )
    # `Address.parse` cannot say whether its limit is the default.
    if "concurrency=" in options:
        return address
    limits = replace(address.limits, concurrency=DEFAULT_LIMITS.concurrency)
    return replace(address, limits=limits)
