"""Which gold answers does a response give? Exact match and list match, pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trustassay.metrics.grounding.options import Rules
from trustassay.metrics.grounding.text import (
    list_elements,
    list_elements_as_in_paper,
    normalise,
    without_citations,
    without_citations_as_in_paper,
)

Golds = Sequence[Sequence[str]]


def exact_hits(shown: str, golds: Golds, rules: Rules) -> list[bool]:
    """Return, for each gold answer, whether an alias of it is in the response (``em``).

    ``shown`` is the response without citations.
    """
    text = rules.normal(shown)
    return [any(rules.contains(text, rules.normal(alias)) for alias in gold) for gold in golds]


@dataclass(frozen=True, slots=True)
class ListMatch:
    """The elements of a list answer, which of them are gold, and which golds they hit."""

    elements: tuple[str, ...]
    precise: int
    hits: tuple[bool, ...]


def list_match(predicted: Sequence[str], golds: Golds, rules: Rules) -> ListMatch:
    """Match the elements of a list answer with gold answers (``em5``, spec 6.3).

    ``predicted`` comes from :func:`predictions`. A pair matches when the normalised texts are
    equal. Duplicates count each time.
    """
    aliases = [list(map(rules.normal, gold)) for gold in golds]
    known = {alias for names in aliases for alias in names}
    found = [element for element in map(rules.normal, predicted) if element]
    return ListMatch(
        elements=tuple(found),
        precise=sum(element in known for element in found),
        hits=tuple(any(alias in found for alias in names) for names in aliases),
    )


def listed(response: str, golds: Golds, rules: Rules) -> list[str]:
    """Return the elements of a list answer, as written; ``golds`` tells which hold a comma."""
    if not rules.lists_split:
        return list_elements_as_in_paper(response)
    return list_elements(response, {normalise(alias) for gold in golds for alias in gold})


def predictions(response: str, golds: Golds, rules: Rules) -> list[str]:
    """Return the elements of a list answer without citations."""
    if not rules.lists_split:
        return listed(without_citations_as_in_paper(response), golds, rules)
    return [without_citations(e).strip() for e in listed(response, golds, rules)]


def wrong_in_documents(
    predicted: Sequence[str], supported: Golds, passages: Sequence[str], rules: Rules
) -> float | None:
    """Return the share of wrong list elements that some passage mentions; ``None`` without any.

    An element is wrong when it holds no alias of a supported gold answer (qampari_presence).
    """
    normal, contains = rules.normal, rules.contains
    aliases = [normal(alias) for gold in supported for alias in gold]
    found = [normal(p) for p in predicted if p]
    wrong = [p for p in found if not any(contains(p, alias) for alias in aliases)]
    texts = [normal(passage) for passage in passages]
    if not wrong:
        return None
    return sum(any(contains(text, p) for text in texts) for p in wrong) / len(wrong)


def mentions(passage: str, gold: Sequence[str], rules: Rules) -> str | None:
    """Return the first alias of a gold answer that is in a passage, as the user wrote it."""
    text = rules.normal(passage)
    return next((alias for alias in gold if rules.contains(text, rules.normal(alias))), None)
