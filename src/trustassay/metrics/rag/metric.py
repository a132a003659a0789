"""The metric ``rag``: what stands where, the figures and the verdict from it, and its view."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import ClassVar

import numpy as np

from trustassay.errors import UsageError
from trustassay.event_loop import all_of
from trustassay.judging.claims import Claim
from trustassay.judging.evidence import Statement
from trustassay.judging.verdict import ClaimVerifier, Finding
from trustassay.metric import (
    REFUSED_PART,
    Assessment,
    Context,
    Figure,
    Need,
    directions,
    read_figures,
)
from trustassay.metrics.faithfulness.options import FaithfulnessOptions
from trustassay.sample import Document, Problem, Sample, missing
from trustassay.statistics import Bools
from trustassay.text.limits import TextWork
from trustassay.text.words import amount
from trustassay.views import Judged, Mark, Rows, View

CAUSES = {
    (False, False): "retriever",
    (True, False): "generator: not used",
    (True, True): "generator: used wrongly",
    (False, True): "both",
}
"""Why a fact is missing in a response, by whether a passage says it, and whether the response says
something else in its place."""


def average_precision(relevant: Bools) -> float:
    """Return the mean precision at the ranks of the relevant passages, 0 to 1, as ragas' context
    precision; 0 if none is. ``relevant``: in the order of retrieval, shape (k,).
    """
    ranks = np.flatnonzero(relevant) + 1
    return float((np.arange(1, len(ranks) + 1) / ranks).mean()) if len(ranks) else 0.0


def figures(facts: Bools, said: Bools, relevant: Bools) -> dict[str, float]:
    """Return the figures of an answer, 0 to 1, by the names of ragas and RAGChecker (Ru et al.
    2024); one whose denominator is 0 is absent, but ``f1`` is 0 without a statement.

    Args:
        facts: whether the response, and a passage, says each fact of the gold answer, shape (2, f).
        said: whether the gold answer, a passage, and a relevant passage says each statement of the
            response, shape (3, s).
        relevant: whether each passage says a fact, in the order of retrieval, shape (k,).
    """
    in_answer, in_passages = facts
    right, found, by_relevant = said
    shares = {
        "claim_recall": in_answer,
        "claim_precision": right,
        "context_recall": in_passages,
        "context_utilization": in_answer[in_passages],
        "faithfulness": found,
        "noise_sensitivity_relevant": ~right & by_relevant,
        "noise_sensitivity_irrelevant": ~right & found & ~by_relevant,
        "hallucination": ~right & ~found,
        "self_knowledge": right & ~found,
    }
    result = {name: float(one.mean()) for name, one in shares.items() if len(one)}
    if len(relevant):
        result["context_precision"] = average_precision(relevant)
    recall, precision = result["claim_recall"], result.get("claim_precision", 0.0)
    return result | {"f1": 2 * recall * precision / ((recall + precision) or 1.0)}


OF_ANSWERS = ("right", *CAUSES.values())
"""Verdicts on whole answers; of equally many causes the first is that of the answer."""
_OF_FACTS = {"in the answer": Mark("good", "✓", "in the answer")}
_OF_FACTS |= {cause: Mark("bad", "✕", cause) for cause in CAUSES.values()}
_OF_RESPONSE = {
    "in the gold answer": Mark("good", "✓", "in the gold answer"),
    "noise": Mark("fair", "≈", "in a passage, not in the gold answer"),
    "hallucination": Mark("bad", "✕", "in no passage, nor in the gold answer"),
    "no claim": Mark("none", "○", "claims nothing"),
}


@dataclass(frozen=True)
class Rag(FaithfulnessOptions):
    """Which half of a retrieval system failed: the retriever, or the model that answers?

    The sentences of the gold answer (``claims``, else ``answers``) are its facts, a short one with
    its question. They are looked for in the passages and in the response, and what the response
    says in the gold answer and in the passages. A missing fact that no passage says is the
    ``retriever``'s fault. Another was not used; or used wrongly, where the response contradicts it,
    or has in its place what neither passages nor gold answer say. ``both``: the same of a fact that
    no passage says. The score is the share of facts that are in the response, 0 to 1.

    Args:
        enough: share of the facts that a right answer has at least.

    The others are those of ``faithfulness``; by ``claims=model`` the judge lists facts and claims.
    """

    name: ClassVar[str] = "rag"
    title: ClassVar[str] = "Retriever or generator: which half failed"
    part_directions = directions(
        higher="claim_recall claim_precision f1 context_recall context_precision faithfulness "
        "context_utilization order",
        lower="noise_sensitivity_relevant noise_sensitivity_irrelevant hallucination",
        neither="facts statements self_knowledge",
    )
    fills: ClassVar[tuple[str, ...]] = ("documents",)
    ordered_by: ClassVar[str] = "order"
    verdicts: ClassVar[Sequence[str]] = OF_ANSWERS
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    figures: ClassVar[Mapping[str, Figure]] = read_figures(__package__)

    enough: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.enough <= 1:
            raise UsageError(f"enough: expected a number above 0 and up to 1, got {self.enough}")

    def needs(self) -> Sequence[Need]:
        """An entailer; a retriever, if there is one; for claims=model a judge."""
        needs = Need("entail"), Need("search", optional=True)
        return (*needs, Need("chat", "judge")) if self.claims == "model" else needs

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs a response, documents (which may be an empty list) and a gold answer."""
        golds = {} if sample.claims else {"answers": "the gold answer, or claims"}
        return missing(sample, response="the text to assess", documents="the passages", **golds)

    async def assess(self, context: Context) -> Assessment:
        """Look for facts and claims; the evidence begins with the facts that are missing."""
        sample, response, work = context.sample, context.response(), TextWork.on(context.sample)
        facts = await self._facts(context)
        if not (golds := [form for forms in facts for form in forms]):
            return self.assessed(sample, None, reason="the gold answer claims nothing")
        said = await self.claims_of(context, response)
        refuses = self.refusal_in(response, said)
        said = [] if refuses else said
        claims = [one for one in said if one.hypothesis is not None]
        context.limits.count("statements", len(golds) + len(claims))
        passages = await work(self.verifier, context, sample.documents or ())
        answer = await work(self.verifier, context, _as_passages(claims))
        gold = await work(self.verifier, context, _as_passages(golds))
        answered, retrieved = [await _best(one, facts) for one in (answer, passages)]
        right, found = [await _best(one, [[own] for own in claims]) for one in (gold, passages)]
        pairs = [(part, one.hypothesis or "") for one in golds for part in passages.near(one)]
        read = await all_of(context.models.entail(part.premise, text) for part, text in pairs)
        alone = [one.entailment >= self.threshold for one in read]
        relevant = {part.passage + 1 for part, _ in compress(pairs, alone)}.union(
            *map(_by, retrieved)
        )
        known = _said(right, found)
        said_at = np.array([*known, [bool(relevant & _by(one)) for one in found]], bool)
        listed = np.array([n + 1 in relevant for n in range(len(sample.documents or ()))], bool)
        parts = figures(_said(answered, retrieved), said_at, listed)
        parts |= {"facts": float(len(facts)), "statements": float(len(claims))}
        if refuses:
            parts[REFUSED_PART] = 1.0
        parts["order"] = float(np.mean([one.standing or 0.0 for one in answered]))
        rows = _rows(answered, retrieved, ~(known[0] | known[1]))
        causes = [one.verdict for one in rows if one.verdict in OF_ANSWERS]
        reason = f"it lacks {len(causes)} of {amount(len(facts), 'fact')} of the gold answer"
        if causes:
            reason += f": “{rows[0].hypothesis or rows[0].text}” {rows[0].why}"
        names = np.select([*known], ["in the gold answer", "noise"], "hallucination").tolist()
        judged = iter(zip(found, names, strict=True))
        for one in said:
            row, verdict = next(judged) if one.hypothesis is not None else (None, "no claim")
            rows.append(replace(row.row, verdict=verdict) if row else Statement(one.text, verdict))
        score = parts["claim_recall"]
        verdict = max(OF_ANSWERS[1:], key=causes.count) if score < self.enough else "right"
        return self.assessed(sample, score, rows, verdict=verdict, reason=reason, parts=parts)

    async def _facts(self, context: Context) -> list[list[Claim]]:
        """Return the facts of the gold answer, each in its forms: those of an answer with aliases
        are forms of one, every sentence of another is a fact.
        """
        result: list[list[Claim]] = []
        for aliases in [(one,) for one in context.sample.claims] or context.sample.answers:
            listed = [own for one in aliases for own in await self.claims_of(context, one)]
            claims = [one for one in listed if one.hypothesis is not None]
            result += [[one] for one in claims] if len(aliases) == 1 else [claims]
        return [forms for forms in result if forms]

    passed_word: ClassVar[str] = "complete"
    failed_word: ClassVar[str] = "incomplete"

    @property
    def line(self) -> str:
        """Too few facts of the gold answer."""
        return f"fewer than {self.enough:.0%} of the facts of its gold answer are in it (enough)"

    def problem(self, assessment: Assessment) -> str | None:
        """Return whose fault it is that facts are missing, and how many the answer has."""
        if assessment.verdict in (None, "right"):
            return None
        share = f"{assessment.score or 0.0:.0%} of the facts of the gold answer are in it"
        return f"{assessment.verdict}: {share}"

    def view(self, sample: Sample, assessment: Assessment) -> View:
        """Return facts and statements, each with its verdict and the passage that decides."""
        rows = Rows(assessment.evidence, Statement)
        facts, said = (
            [(one, marks[one.verdict]) for one in rows.of(Statement) if one.verdict in marks]
            for marks in (_OF_FACTS, _OF_RESPONSE)
        )
        told = "".join("".join(one.text for one, _ in said).split())
        return View(
            data={"facts": facts, "said": said, "rest": rows.rest},
            tells_response=bool(told) and told == "".join((sample.response or "").split()),
            judged=[Judged(one.text, mark) for one, mark in said],
        )


async def _best(looked: ClaimVerifier, facts: Sequence[Sequence[Claim]]) -> list[Finding]:
    """Return what was found of each fact, of its nearest form."""
    order = ("not found", "contradicted", "supported")
    found = await all_of(all_of(map(looked.verdict, forms)) for forms in facts)
    return [max(f, key=lambda x: (order.index(x.row.verdict), x.entailment or 0.0)) for f in found]


def _by(one: Finding) -> set[int]:
    """Return the numbers of what supports a statement, from 1."""
    return set(one.row.passages or ()) if one.row.verdict == "supported" else set()


def _said(*places: Sequence[Finding]) -> Bools:
    return np.array([[bool(_by(one)) for one in found] for found in places], bool)


def _as_passages(claims: Iterable[Claim]) -> list[Document]:
    """Return claims as the passages by which others are judged."""
    return [Document(str(n), one.hypothesis or "") for n, one in enumerate(claims)]


def _rows(
    answered: Sequence[Finding], retrieved: Sequence[Finding], invented: Bools
) -> list[Statement]:
    """Return the rows of the facts, the missing ones first: those of the passages, with the cause
    and what the response says; ``invented``: which of its statements nothing supports.
    """
    result = []
    for of_answer, of_passages in zip(answered, retrieved, strict=True):
        row, near = of_answer.row, [number - 1 for number in of_answer.row.passages or ()]
        wrongly = row.verdict == "contradicted" or bool(invented[near or slice(None)].any())
        cause = CAUSES[bool(_by(of_passages)), wrongly]
        words = f"the answer says “{row.quote}”" if row.quote else "the answer says nothing near"
        why = f"{of_passages.row.why}; {words} ({row.entailment:.2f})"
        verdict = "in the answer" if _by(of_answer) else cause
        result.append(replace(of_passages.row, verdict=verdict, why=why))
    return sorted(result, key=lambda one: one.verdict == "in the answer")
