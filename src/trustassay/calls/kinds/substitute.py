"""Words that can stand in the place of others, from one of several named sources."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from trustassay.backends import lookups
from trustassay.calls.capability import Capability, Remote, Shared
from trustassay.calls.endpoints import LookupCaller
from trustassay.calls.keeping import Codec
from trustassay.calls.replies import cleaned
from trustassay.capabilities import SubstituteSource, SubstitutesRequest
from trustassay.errors import BackendError

__all__ = ["SUBSTITUTE"]

Found = tuple[str, ...]
LONGEST = 200
"""Characters of a substitute that is taken: a source's labels are others' text."""


def item(words: str, k: int, tag: str = "", types: Sequence[str] = ()) -> SubstitutesRequest:
    """Return the request for up to ``k`` substitutes of ``words``."""
    return SubstitutesRequest(words, k, tag, tuple(types))


def compute(source: SubstituteSource, requests: list[SubstitutesRequest]) -> Sequence[Found]:
    """Return the substitutes of each request.

    Raises:
        BackendError: the source returned another number of lists, too many, or no text.
    """
    lists = source.substitutes(requests)
    if len(lists) != len(requests):
        raise BackendError(f"{source.name} did not return the substitutes of each request")
    return [checked(source.name, *both) for both in zip(requests, lists, strict=True)]


def checked(name: str, request: SubstitutesRequest, found: Sequence[str]) -> Found:
    """Return what a source found; raises :class:`BackendError` where that cannot be used."""
    if len(found) > request.k or not all(isinstance(one, str) and one.strip() for one in found):
        raise BackendError(f"{name} did not return up to {request.k} substitutes, all text")
    return tuple(one for one in found if len(one) <= LONGEST)


def remote(source: Any, shared: Shared) -> Remote | None:
    """Return how an endpoint is asked: limited and tried again."""
    if isinstance(source, SubstituteSource):
        return None
    endpoint = shared.endpoints.of(source, source.endpoint_limits)

    async def asked(request: SubstitutesRequest) -> Found:
        return checked(source.name, request, await source.asubstitutes(request))

    return LookupCaller(source.name, asked, endpoint, shared.ledger)


SUBSTITUTE: Capability[SubstitutesRequest, Found] = Capability(
    name="substitutes",
    stored_as="substitution",
    backend="distractors",
    item=item,
    compute=compute,
    codec=Codec(
        parts=lambda one: (one.words, str(one.k), one.tag, *one.types),
        reply_to_json=lambda found: json.dumps(cleaned(list(found))),
        reply_from_json=lambda text: tuple(json.loads(text)),
    ),
    stand_in=lambda one: tuple(f"Substitute{i}" for i in range(one.k)),
    load=lookups.substitute_source,
    choices=lookups.named_sources,
    default="embedding,pos",
    option="--distractors",
    remote=remote,
    remote_items=1,
)
