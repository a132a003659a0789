"""Which gold answers does a response give? Exact match and list match, pure functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trustassay.metrics.grounding.options import Rules
from trustassay.metrics.grounding.text import (
    contains_part,
    contains_words,
    list_elements,
    list_elements_as_in_paper,
    normalise,
    normalise_squad,
    without_citations,
    without_citations_as_in_paper,
)

Golds = Sequence[Sequence[str]]


def exact_hits(shown: str, golds: Golds, rules: Rules) -> list[bool]:
    """Return, for each gold answer, whether an alias of it is in the response (``em``).

    ``shown`` is the response without citations.
    """
    text = _normal(rules)(shown)
    return [any(_contains(rules)(text, alias) for alias in _aliases(g, rules)) for g in golds]


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
    aliases = [_aliases(gold, rules) for gold in golds]
    known = {alias for names in aliases for alias in names}
    normal = _normal(rules)
    found = [element for element in map(normal, predicted) if element]
    return ListMatch(
        elements=tuple(found),
        precise=sum(element in known for element in found),
        hits=tuple(any(alias in found for alias in names) for names in aliases),
    )


def predictions(response: str, golds: Golds, rules: Rules) -> list[str]:
    """Return the elements of a list answer without citations, as written.

    ``golds`` tells which names hold a comma.
    """
    if not rules.lists_split:
        return list_elements_as_in_paper(without_citations_as_in_paper(response))
    known = {normalise(alias) for gold in golds for alias in gold}
    return [without_citations(e).strip() for e in list_elements(response, known)]


def wrong_in_documents(
    predicted: Sequence[str], supported: Golds, passages: Sequence[str], rules: Rules
) -> float | None:
    """Return the share of wrong list elements that some passage mentions; ``None`` without any.

    An element is wrong when it holds no alias of a supported gold answer (qampari_presence).
    """
    normal, contains = _normal(rules), _contains(rules)
    aliases = [alias for gold in supported for alias in _aliases(gold, rules)]
    found = [normal(p) for p in predicted if p]
    wrong = [p for p in found if not any(contains(p, alias) for alias in aliases)]
    texts = [normal(passage) for passage in passages]
    if not wrong:
        return None
    return sum(any(contains(text, p) for text in texts) for p in wrong) / len(wrong)


def mentions(passage: str, gold: Sequence[str], rules: Rules) -> str | None:
    """Return the first alias of a gold answer that is in a passage, as the user wrote it."""
    text = _normal(rules)(passage)
    contains, normal = _contains(rules), _normal(rules)
    return next((alias for alias in gold if contains(text, normal(alias))), None)


def _aliases(gold: Sequence[str], rules: Rules) -> list[str]:
    normal = _normal(rules)
    return [normal(alias) for alias in gold]


def _normal(rules: Rules) -> Callable[[str], str]:
    return normalise if rules.words else normalise_squad


def _contains(rules: Rules) -> Callable[[str, str], bool]:
    return contains_words if rules.words else contains_part
