"""Passages for a query."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict

from trustassay.backends import lookups
from trustassay.calls.capability import Capability
from trustassay.calls.keeping import Codec
from trustassay.calls.replies import cleaned
from trustassay.capabilities import Passage, Retriever
from trustassay.errors import BackendError

__all__ = ["SEARCH"]

STAND_IN = " ".join(["stand-in"] * 98 + ["passage"])
"""What a plan takes for a passage: as many words as one of a corpus that is cut, and a number."""

Query = tuple[str, int]
Found = tuple[Passage, ...]


def compute(retriever: Retriever, queries: list[Query]) -> Sequence[Found]:
    """Return the k best passages of each (query, k), best first.

    Raises:
        BackendError: the retriever returned another number of lists, or more than k passages.
    """
    places: defaultdict[int, list[int]] = defaultdict(list)
    for place, (_, k) in enumerate(queries):
        places[k].append(place)
    found: list[Found] = [()] * len(queries)
    for k, own in places.items():
        lists = retriever.search([queries[place][0] for place in own], k)
        if len(lists) != len(own) or any(len(passages) > k for passages in lists):
            raise BackendError(f"{retriever.name} did not return up to {k} passages for each query")
        for place, passages in zip(own, lists, strict=True):
            found[place] = tuple(passages)
    return found


SEARCH: Capability[Query, Found] = Capability(
    name="search",
    stored_as="retrieval",
    backend="retriever",
    item=lambda query, k: (query, k),
    compute=compute,
    codec=Codec(
        parts=lambda query: (query[0], str(query[1])),
        reply_to_json=lambda found: json.dumps(cleaned([asdict(one) for one in found])),
        reply_from_json=lambda text: tuple(Passage(**one) for one in json.loads(text)),
    ),
    stand_in=lambda query: tuple(
        Passage(f"stand-in-{i}", f"{STAND_IN} {i}.") for i in range(query[1])
    ),
    load=lookups.retriever,
    option="--retriever",
)
