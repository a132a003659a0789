"""The metric ``rag``: facts and claims located, figures, the cause of missing facts, and a view."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import ClassVar

import numpy as np

from trustassay.core.event_loop import gather_all
from trustassay.core.evidence import EvidenceRows, JudgedPiece, Mark, View
from trustassay.core.metric import (
    REFUSED_PART,
    Assessment,
    Context,
    Figure,
    Mean,
    Need,
    Share,
    directions,
    index_figures,
)
from trustassay.core.sample import Document, Problem, Sample, find_missing
from trustassay.errors import UsageError
from trustassay.judging.claims import Claim
from trustassay.judging.evidence import JudgedClaim
from trustassay.judging.passages import ask_reader
from trustassay.judging.verdict import ClaimFinding, ClaimVerifier
from trustassay.metrics.faithfulness.metric import FaithfulnessOptions
from trustassay.statistics import Bools
from trustassay.text.limits import TextWork
from trustassay.text.numbers import amount, percent_text

PASSAGES_OF_FACT = 3
"""The passages nearest to a fact, of which each may say it alone."""
CAUSES = {
    (False, False): "retriever",
    (True, False): "generator: not used",
    (True, True): "generator: used wrongly",
    (False, True): "both",
}
"""The cause of a missing fact, by whether a passage says it, and whether the response says
something else instead."""


def average_precision(relevant: Bools) -> float:
    """Return the mean precision at the ranks of the relevant passages, 0 to 1; 0 if there are none.

    This is the context precision of ragas. ``relevant``: whether each passage is, in the order of
    retrieval, shape (k,).
    """
    ranks = np.flatnonzero(relevant) + 1
    return float((np.arange(1, len(ranks) + 1) / ranks).mean()) if len(ranks) else 0.0


def compute_figures(facts: Bools, statements: Bools, relevant: Bools) -> dict[str, float]:
    """Return the figures of an answer, 0 to 1, by their names in ragas and RAGChecker (Ru et al.
    2024). A figure whose denominator is 0 is absent, but ``f1`` is 0 without a statement.

    Args:
        facts: for each fact of the gold answer, whether the response says it (row 0), and whether a
            passage does (row 1), shape (2, f).
        statements: for each statement of the response, whether the gold answer, a passage, and a
            relevant passage says it, shape (3, s).
        relevant: whether each passage says a fact, in the order of retrieval, shape (k,).
    """
    in_answer, in_passages = facts
    in_gold, in_any_passage, in_relevant_passage = statements
    shares = {
        "claim_recall": in_answer,
        "claim_precision": in_gold,
        "context_recall": in_passages,
        "context_utilization": in_answer[in_passages],
        "faithfulness": in_any_passage,
        "noise_sensitivity_relevant": ~in_gold & in_relevant_passage,
        "noise_sensitivity_irrelevant": ~in_gold & in_any_passage & ~in_relevant_passage,
        "hallucination": ~in_gold & ~in_any_passage,
        "self_knowledge": in_gold & ~in_any_passage,
    }
    result = {name: float(values.mean()) for name, values in shares.items() if len(values)}
    if len(relevant):
        result["context_precision"] = average_precision(relevant)
    recall, precision = result["claim_recall"], result.get("claim_precision", 0.0)
    # 1.0 as the denominator where both are 0: an F1 of 0.
    return result | {"f1": 2 * recall * precision / ((recall + precision) or 1.0)}


ANSWER_VERDICTS = ("right", *CAUSES.values())
"""Verdicts on whole answers; of equally frequent causes the first is the verdict."""
_FACT_MARKS = {"in the answer": Mark("good", "✓", "in the answer")}
_FACT_MARKS |= {cause: Mark("bad", "✕", cause) for cause in CAUSES.values()}
_RESPONSE_MARKS = {
    "in the gold answer": Mark("good", "✓", "in the gold answer"),
    "noise": Mark("fair", "≈", "in a passage, not in the gold answer"),
    "hallucination": Mark("bad", "✕", "in no passage, nor in the gold answer"),
    "no claim": Mark("none", "○", "claims nothing"),
}


@dataclass(frozen=True)
class Rag(FaithfulnessOptions):
    """Which half of a retrieval system failed: the retriever, or the model that answers?

    The sentences of the gold answer (``claims``, otherwise ``answers``) are its facts; a short one
    is completed with its question. Each fact is looked for in the passages and in the response,
    and each claim of the response in the gold answer and in the passages. A missing fact that no
    passage states is a fault of the ``retriever``. A missing fact that a passage states was not
    used, or was used wrongly: the response contradicts it, or states something in its place that
    is neither in the passages nor in the gold answer. ``both``: the response does so for a fact
    that no passage states. The score, 0 to 1, is the share of facts that are in the response.

    Args:
        enough: smallest share of the facts that a right answer has.

    The other options are those of ``faithfulness``; with ``claims=model`` the judge lists facts and
    claims.
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
    verdicts: ClassVar[Sequence[str]] = ANSWER_VERDICTS
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    figures: ClassVar[Mapping[str, Figure]] = index_figures(
        Figure("right", "answers that have the facts of the gold answer", headline=True,
            statistic=Share("right"), better="higher"),
        Figure("retriever", "answers whose missing facts are in no passage", headline=True,
            statistic=Share("retriever"), better="lower"),
        Figure("not_used", "answers that leave out facts of the passages", headline=True,
            statistic=Share("generator: not used"), better="lower"),
        Figure("used_wrongly", "answers that state something else where a passage has the fact",
            headline=True, statistic=Share("generator: used wrongly"), better="lower"),
        Figure("both", "answers that state something else where no passage has the fact",
            headline=True, statistic=Share("both"), better="lower"),
        group="Verdicts",
    ) | index_figures(
        Figure("claim_recall", "mean share of the gold answer's facts that the answer states",
            "", headline=True, statistic=Mean("claim_recall", (0.0, 1.0))),
        Figure("claim_precision",
            "mean share of the answer's statements that are in the gold answer", "",
            statistic=Mean("claim_precision", (0.0, 1.0))),
        Figure("f1", "harmonic mean of claim_recall and claim_precision", "",
            statistic=Mean("f1", (0.0, 1.0))),
        group="Answer",
    ) | index_figures(
        Figure("context_recall", "mean share of the gold answer's facts that a passage states", "",
            headline=True, statistic=Mean("context_recall", (0.0, 1.0))),
        Figure("context_precision",
            "whether passages that state a fact come first: mean precision at their ranks",
            "", headline=True, statistic=Mean("context_precision", (0.0, 1.0))),
        group="Retriever",
    ) | index_figures(
        Figure("context_utilization",
            "mean share of the facts in the passages that the answer states", "",
            statistic=Mean("context_utilization", (0.0, 1.0))),
        Figure("faithfulness", "mean share of the answer's statements that a passage states", "",
            statistic=Mean("faithfulness", (0.0, 1.0))),
        Figure("noise_sensitivity_relevant",
            "mean share of statements from a passage with a fact, but not in the gold answer", "",
            statistic=Mean("noise_sensitivity_relevant", (0.0, 1.0)), better="lower"),
        Figure("noise_sensitivity_irrelevant", "the same share for passages without a fact", "",
            statistic=Mean("noise_sensitivity_irrelevant", (0.0, 1.0)), better="lower"),
        Figure("hallucination",
            "mean share of statements that are in neither the passages nor the gold answer", "",
            statistic=Mean("hallucination", (0.0, 1.0)), better="lower"),
        Figure("self_knowledge",
            "mean share of statements that are in the gold answer but in no passage", "",
            statistic=Mean("self_knowledge", (0.0, 1.0))),
        group="Generator",
    )  # fmt: skip

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
        return find_missing(
            sample, response="the text to assess", documents="the passages", **golds
        )

    async def assess(self, context: Context) -> Assessment:
        """Locate facts and claims; the evidence begins with the missing facts."""
        sample = context.sample
        response = context.response()
        work = TextWork.for_sample(context.sample)
        facts = await self._collect_facts(context)
        if not (golds := [form for forms in facts for form in forms]):
            return self.build_assessment(sample, None, reason="the gold answer claims nothing")
        all_claims = await self.claims_of(context, response)
        # Step 1: the claims of the response. A refusal states none, and lacks every fact.
        refuses = self.refusal_in(response, all_claims)
        all_claims = [] if refuses else all_claims
        claims = [item for item in all_claims if item.hypothesis is not None]
        context.limits.check_count("statements", len(golds) + len(claims))
        # Step 2: three verifiers, as claims are judged by the passages, by the response and by the
        # gold answer. The latter two take claims as their "passages".
        passages = await work(self.verifier, context, sample.documents or ())
        answer = await work(self.verifier, context, _build_passages(claims))
        gold = await work(self.verifier, context, _build_passages(golds))
        # Step 3: each fact in the response and in the passages; each claim in the gold answer and
        # in the passages.
        in_answer, facts_in_passages = [
            await _find_best(item, facts) for item in (answer, passages)
        ]
        in_gold, in_passages = [
            await _find_best(item, [[claim] for claim in claims]) for item in (gold, passages)
        ]
        # Step 4: which passages are relevant: each one that entails a fact alone, or with others.
        pairs = [
            (part, text)
            for item in golds
            if (text := item.hypothesis)
            for part in passages.passages.find_nearest(text, PASSAGES_OF_FACT)
        ]
        entailments = await gather_all(
            ask_reader(context.models, part.premise, text) for part, text in pairs
        )
        entails_alone = [item.entailment >= self.threshold for item in entailments]
        relevant = {
            number + 1 for part, _ in compress(pairs, entails_alone) for number in part.passages
        }.union(*map(_supporting_passages, facts_in_passages))
        # Step 5: the figures.
        in_gold_or_passages = _build_support_table(in_gold, in_passages)
        statement_table = np.array(
            [
                *in_gold_or_passages,
                [bool(relevant & _supporting_passages(item)) for item in in_passages],
            ],
            bool,
        )
        relevant_flags = np.array(
            [n + 1 in relevant for n in range(len(sample.documents or ()))], bool
        )
        parts = compute_figures(
            _build_support_table(in_answer, facts_in_passages), statement_table, relevant_flags
        )
        parts |= {"facts": float(len(facts)), "statements": float(len(claims))}
        if refuses:
            parts[REFUSED_PART] = 1.0
        parts["order"] = float(np.mean([item.standing or 0.0 for item in in_answer]))
        # Step 6: the evidence: facts, then the claims. A claim is invented where neither gold
        # answer nor passages say it.
        rows = _build_fact_rows(
            in_answer, facts_in_passages, ~(in_gold_or_passages[0] | in_gold_or_passages[1])
        )
        causes = [item.verdict for item in rows if item.verdict in ANSWER_VERDICTS]
        reason = (
            f"the answer lacks {len(causes)} of {amount(len(facts), 'fact')} of the gold answer"
        )
        if causes:
            reason += f": “{rows[0].hypothesis or rows[0].text}” {rows[0].why}"
        # Of a claim in both the gold answer comes first.
        names = np.select(
            [*in_gold_or_passages], ["in the gold answer", "noise"], "hallucination"
        ).tolist()
        findings = iter(zip(in_passages, names, strict=True))
        # Sentences that claim nothing stay in their places, so that the evidence shows the whole
        # response.
        for item in all_claims:
            row, verdict = next(findings) if item.hypothesis is not None else (None, "no claim")
            rows.append(
                replace(row.row, verdict=verdict) if row else JudgedClaim(item.text, verdict)
            )
        score = parts["claim_recall"]
        # The most frequent cause; max takes the first of equals.
        verdict = max(ANSWER_VERDICTS[1:], key=causes.count) if score < self.enough else "right"
        return self.build_assessment(
            sample, score, rows, verdict=verdict, reason=reason, parts=parts
        )

    async def _collect_facts(self, context: Context) -> list[list[Claim]]:
        """Return the facts of the gold answer, each as a list of forms.

        The aliases of an answer are forms of one fact. Of an answer without aliases every sentence
        is a fact with one form.
        """
        result: list[list[Claim]] = []
        for aliases in [(text,) for text in context.sample.claims] or context.sample.answers:
            claims_of_fact = [
                claim for text in aliases for claim in await self.claims_of(context, text)
            ]
            stating_claims = [text for text in claims_of_fact if text.hypothesis is not None]
            result += [[text] for text in stating_claims] if len(aliases) == 1 else [stating_claims]
        return [forms for forms in result if forms]

    passed_word: ClassVar[str] = "complete"
    failed_word: ClassVar[str] = "incomplete"

    @property
    def line(self) -> str:
        """Too few facts of the gold answer."""
        return f"it has less than {percent_text(self.enough)} of its gold answer's facts (enough)"

    def problem(self, assessment: Assessment) -> str | None:
        """Return the cause of missing facts, and the share of facts that the answer has."""
        if assessment.verdict in (None, "right"):
            return None
        share = f"it has {percent_text(assessment.score or 0.0)} of the facts of the gold answer"
        return f"{assessment.verdict}: {share}"

    def view(self, sample: Sample, assessment: Assessment) -> View:  # noqa: ARG002
        """Return facts and statements, each with its verdict and the passage that decides."""
        rows = EvidenceRows(assessment.evidence, JudgedClaim)
        facts, statements = (
            [
                (statement, marks[statement.verdict])
                for statement in rows.select(JudgedClaim)
                if statement.verdict in marks
            ]
            for marks in (_FACT_MARKS, _RESPONSE_MARKS)
        )
        return View(
            data={"facts": facts, "said": statements, "other_items": rows.other_items},
            judged=[JudgedPiece(statement.text, mark) for statement, mark in statements],
        )


async def _find_best(
    verifier: ClaimVerifier, facts: Sequence[Sequence[Claim]]
) -> list[ClaimFinding]:
    """Return the finding for each fact: that of the form that is best supported."""
    order = ("not found", "contradicted", "supported")
    findings = await gather_all(gather_all(map(verifier.judge, forms)) for forms in facts)
    return [
        max(f, key=lambda x: (order.index(x.row.verdict), x.entailment or 0.0)) for f in findings
    ]


def _supporting_passages(finding: ClaimFinding) -> set[int]:
    """Return the numbers, from 1, of the passages that support a statement."""
    return set(finding.row.passages or ()) if finding.row.verdict == "supported" else set()


def _build_support_table(*findings_by_source: Sequence[ClaimFinding]) -> Bools:
    return np.array(
        [
            [bool(_supporting_passages(finding)) for finding in findings]
            for findings in findings_by_source
        ],
        bool,
    )


def _build_passages(claims: Iterable[Claim]) -> list[Document]:
    """Return claims as the passages by which other claims are judged."""
    return [Document(str(n), claim.hypothesis or "") for n, claim in enumerate(claims)]


def _build_fact_rows(
    answered: Sequence[ClaimFinding], retrieved: Sequence[ClaimFinding], invented: Bools
) -> list[JudgedClaim]:
    """Build the rows of the facts, the missing ones first.

    A row has the passages that say the fact, the cause of its absence, and the response's words.

    Args:
        answered: each fact, judged by the response.
        retrieved: each fact, judged by the passages.
        invented: whether each claim of the response is supported by nothing, shape (s,).
    """
    result = []
    for of_answer, of_passages in zip(answered, retrieved, strict=True):
        row, near = of_answer.row, [number - 1 for number in of_answer.row.passages or ()]
        # Used wrongly: contradicted, or the nearest claims (all, where none is near) hold an
        # invention.
        is_used_wrongly = row.verdict == "contradicted" or bool(invented[near or slice(None)].any())
        cause = CAUSES[bool(_supporting_passages(of_passages)), is_used_wrongly]
        message = (
            f"the answer says “{row.quote}”" if row.quote else "the answer says nothing similar"
        )
        reason = f"{of_passages.row.why}; {message} (entailment {row.entailment:.2f})"
        verdict = "in the answer" if _supporting_passages(of_answer) else cause
        result.append(replace(of_passages.row, verdict=verdict, why=reason))
    return sorted(result, key=lambda row_of_fact: row_of_fact.verdict == "in the answer")
