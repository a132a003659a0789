"""Citation recall and precision of one statement: pure decisions on entailment labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from trustassay.metrics.grounding.options import Rules

WHY = {
    "supports alone": "this passage alone entails the statement",
    "needed": "the other cited passages do not entail the statement without it",
    "covered": "the others are enough, but it supports a gold answer that they also support",
    "redundant": "the other cited passages entail the statement without it",
    "unsupported": "the cited passages together do not entail the statement",
    "invalid": "the document does not exist",
    "beyond limit": "only the first {limit} citations of a statement count",
    "duplicate": "the same document is already cited in this statement",
}


@dataclass(frozen=True, slots=True)
class Citation:
    """One citation: the number as written, the document's index, and the verdict, once known."""

    number: int
    index: int
    verdict: str | None = None
    why: str = ""

    def as_(self, verdict: str, why: str | None = None) -> Citation:
        """Return this citation with its verdict."""
        return replace(self, verdict=verdict, why=why or WHY[verdict])

    @property
    def open(self) -> bool:
        """Whether entailment has to decide."""
        return self.verdict is None


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judged statement: ``points`` of ``counted`` citations are precise."""

    citations: tuple[Citation, ...]
    supported: bool
    points: int
    counted: int
    why: str


def cited(
    numbers: Sequence[int], documents: int, rules: Rules, limit: int | None
) -> list[Citation]:
    """Return the citations of a statement; those that entailment need not judge have verdicts.

    The range check comes before the limit, as in trust_eval 0.1.6 (spec 7.1): a citation of a
    missing document voids its statement even where the limit would have cut it off.
    """
    citations = [_resolved(number, documents, rules) for number in numbers]
    voided = rules.invalid == "void" and any(c.verdict == "invalid" for c in citations)
    seen: set[int] = set()
    judged, kept = [], 0
    for citation in citations:
        if citation.open and voided:
            why = "a citation next to it names a document that does not exist"
            judged.append(citation.as_("unsupported", why))
        elif citation.open and rules.duplicates == "once" and citation.index % documents in seen:
            judged.append(citation.as_("duplicate"))
        elif citation.open and limit is not None and kept >= limit:
            judged.append(citation.as_("beyond limit", WHY["beyond limit"].format(limit=limit)))
        else:
            kept += citation.open
            judged.append(citation)
        if citation.open:
            seen.add(citation.index % documents)  # [0] may be the last document
    return judged


def _resolved(number: int, documents: int, rules: Rules) -> Citation:
    index = number - 1
    if number == 0 and rules.zero == "last" and documents:
        return Citation(number, index)
    citation = Citation(number, index)
    return citation if 0 <= index < documents else citation.as_("invalid")


def rest_of(indices: Sequence[int], position: int) -> list[int]:
    """Return the indices without the first occurrence of the value at ``position``."""
    rest = list(indices)
    rest.remove(indices[position])
    return rest


def covers_the_same(coverage: Sequence[Sequence[int]], index: int, rest: Sequence[int]) -> bool:
    """Return whether ``index`` and a document of ``rest`` support the same gold answer."""
    return any(
        mine and any(coverage[other][gold] for other in rest)
        for gold, mine in enumerate(coverage[index] if coverage else ())
    )


def judged(
    citations: Sequence[Citation],
    joint: bool | None,
    alone: Callable[[int], bool],
    rest: Callable[[int], bool],
    coverage: Sequence[Sequence[int]],
    rules: Rules,
) -> Judgement:
    """Judge a statement's citations (spec 7.1; conditions A and B of Gao et al. 2023).

    Args:
        citations: from :func:`cited`.
        joint: do the passages of the open citations together entail the statement? ``None``
            if there is none.
        alone: does the passage at this position among the open citations, alone?
        rest: do the other open citations entail it without this one?
        coverage: for each document its flags, one for each gold answer; empty where unknown.
        rules: of the profile.
    """
    open_ones = [c for c in citations if c.open]
    indices = [c.index for c in open_ones]
    verdicts = []
    for position, citation in enumerate(open_ones):
        if not joint:
            verdict = "unsupported"
        elif len(open_ones) == 1 or alone(position):
            verdict = "supports alone"
        elif not rest(position):
            verdict = "needed"
        elif rules.precision == "paper" and covers_the_same(
            coverage, citation.index, rest_of(indices, position)
        ):
            verdict = "covered"
        else:
            verdict = "redundant"
        verdicts.append(verdict)
    decided = iter(verdicts)
    final = tuple(c.as_(next(decided)) if c.open else c for c in citations)
    counted = len(open_ones)
    if rules.invalid == "imprecise":
        counted += sum(c.verdict == "invalid" for c in citations)
    return Judgement(
        final,
        supported=bool(joint),
        points=sum(v in ("supports alone", "needed", "covered") for v in verdicts),
        counted=counted,
        why=_why(final, joint),
    )


def _why(citations: Sequence[Citation], joint: bool | None) -> str:
    if not citations:
        return "cites nothing"
    if joint is None:
        return "cites a document that does not exist"
    if joint:
        return "the cited passages entail the statement"
    return WHY["unsupported"]
