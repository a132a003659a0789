"""An answer on its way to a verdict: evidence is found, and judged one by one or at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trustassay.capabilities import Entailment, Models, repair_turns
from trustassay.errors import UnparsedError
from trustassay.metrics.factcheck.maths import decided
from trustassay.metrics.factcheck.options import FactCheckOptions
from trustassay.sample import Document, Sample
from trustassay.verdicts import REPAIR, REPAIR_PROMPT, Verdict, verdict_in

__all__ = ["NO_EVIDENCE", "Checked", "Evidence", "checked", "evidence_for"]

NO_EVIDENCE = "not assessable: there is no retriever (--retriever), and the sample has no documents"
SHOWN = 300
_WORDS: Mapping[Verdict, str] = {
    "support": "supports the answer",
    "neutral": "leaves the answer open",
    "contradict": "contradicts the answer",
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an answer is checked against.

    retrieved: the passages were searched for with ``statement``, and are not the sample's own.
    """

    question: str
    answer: str
    statement: str
    passages: Sequence[Document]
    retrieved: bool

    @property
    def blocks(self) -> list[str]:
        """The passages as they are put to a judge, each under its title if it has one."""
        texts = (one.text if one.excerpt is None else one.excerpt for one in self.passages)
        return [
            f"Title: {one.title}\n{text}" if one.title else text
            for one, text in zip(self.passages, texts, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdict on an answer, why, and what it is made of."""

    verdict: Verdict
    reason: str
    parts: Mapping[str, float]
    rows: Sequence[Mapping[str, Any]]


async def evidence_for(
    options: FactCheckOptions, sample: Sample, answer: str, models: Models
) -> Evidence | None:
    """Return what ``answer`` is checked against; ``None`` where there is nothing.

    A retriever is asked for the best passages. Where the run has none, the sample's own documents
    are taken.

    Raises:
        BackendError: the retriever failed.
    """
    question = sample.question
    statement = options.statement_template.filled(question=question, answer=answer)
    if models.names("retriever"):
        found = await models.search(statement, options.k)
        passages = [Document(one.id, one.text, one.title) for one in found]
        return Evidence(question, answer, statement, passages, True)
    documents = sample.documents or ()
    if all(document.blank for document in documents):
        return None
    return Evidence(question, answer, statement, documents, False)


async def checked(options: FactCheckOptions, evidence: Evidence, models: Models) -> Checked:
    """Return the verdict on an answer.

    Raises:
        UnparsedError: the judge named no verdict.
        BackendError: it could not be asked.
    """
    if not evidence.passages:
        words = "the corpus has no passage with a word of the question or the answer"
        row = _statement_row(evidence)
        return Checked("neutral", words, {"passages": 0.0, "unparsed": 0.0}, [row])
    if options.by == "model":
        return await _by_model(options, evidence, models)
    return await _by_entailer(options, evidence, models)


async def _by_entailer(options: FactCheckOptions, evidence: Evidence, models: Models) -> Checked:
    """Judge each passage by itself.

    A passage whose judgement named no verdict is noted. It fails the answer, unless another one
    supports or contradicts it: that an answer is left open is only known if all are judged.
    """
    hypothesis = options.hypothesis_template.filled(
        question=evidence.question, answer=evidence.answer
    )
    blocks = evidence.blocks

    async def judged_block(place: int) -> Entailment:
        if evidence.passages[place].blank:
            return Entailment(0.0, 1.0, 0.0)
        return await models.entail(blocks[place], hypothesis)

    replies = await asyncio.gather(
        *map(judged_block, range(len(evidence.passages))), return_exceptions=True
    )
    judged: dict[int, Entailment] = {}
    unparsed: dict[int, UnparsedError] = {}
    for place, reply in enumerate(replies):
        if isinstance(reply, UnparsedError):
            unparsed[place] = reply
        elif isinstance(reply, BaseException):
            raise reply
        else:
            judged[place] = reply
    places, rows = list(judged), list(judged.values())
    verdict, index = decided(rows, options.threshold, options.rule)
    decisive = None if index is None else places[index]
    if unparsed and verdict == "neutral":
        raise next(iter(unparsed.values()))
    reason = "no passage supports or contradicts the answer"
    if index is not None and decisive is not None:
        row = rows[index]
        value = row.entailment if verdict == "support" else row.contradiction
        reason = f"passage {decisive + 1} {_WORDS[verdict]} ({value:.2f})"
    if unparsed:
        reason += f"; {_amount(len(unparsed))} could not be judged"
    parts = {
        "passages": float(len(replies)),
        "unparsed": float(len(unparsed)),
        "entailment": max(row.entailment for row in rows),
        "contradiction": max(row.contradiction for row in rows),
    }
    return Checked(
        verdict,
        reason,
        parts,
        [
            _statement_row(evidence, hypothesis=hypothesis),
            *(
                _passage_row(evidence, place)
                | (
                    {"error": str(unparsed[place])}
                    if place in unparsed
                    else _probabilities(judged[place])
                )
                | ({"decides": verdict} if place == decisive else {})
                for place in range(len(replies))
            ),
        ],
    )


async def _by_model(options: FactCheckOptions, evidence: Evidence, models: Models) -> Checked:
    """Show a model all passages at once."""
    prompt = options.judge_prompt
    text = prompt.filled(
        passages=evidence.blocks, question=evidence.question, answer=evidence.answer
    )
    how: dict[str, Any] = {"role": "judge", "max_tokens": options.max_tokens, "stand_in": "NEITHER"}
    reply = await models.chat(text, **how, prompt=prompt.name)
    found = verdict_in(reply.text)
    if found is None:
        turns = repair_turns(text, reply.text, REPAIR)
        again = await models.chat(turns, **how, prompt=REPAIR_PROMPT)
        if found := verdict_in(again.text):
            reply = again
    said = " ".join(reply.text.split())
    said = said if len(said) <= SHOWN else said[:SHOWN] + "..."
    if found is None:
        words = "the judge's reply names none of supports, contradicts and neither"
        raise UnparsedError(f"{words}: {said!r}")
    rows = [
        _statement_row(evidence),
        {"kind": "reply", "text": reply.text, "verdict": found.verdict},
        *(_passage_row(evidence, place) for place in range(len(evidence.passages))),
    ]
    parts = {"passages": float(len(evidence.passages)), "unparsed": 0.0}
    return Checked(found.verdict, f"the judge says: {said}", parts, rows)


def _statement_row(evidence: Evidence, **others: Any) -> dict[str, Any]:
    return {
        "kind": "statement",
        "text": evidence.statement,
        "retrieved": evidence.retrieved,
        **others,
    }


def _passage_row(evidence: Evidence, place: int) -> dict[str, Any]:
    """Return what stands of a passage; the text of the sample's own is in the sample."""
    passage = evidence.passages[place]
    row: dict[str, Any] = {"kind": "passage", "number": place + 1, "id": passage.id}
    if evidence.retrieved:
        row |= {"title": passage.title, "text": passage.text}
    return row


def _probabilities(found: Entailment) -> dict[str, float]:
    return {
        "entailment": round(found.entailment, 4),
        "neutral": round(found.neutral, 4),
        "contradiction": round(found.contradiction, 4),
    }


def _amount(n: int) -> str:
    return "1 passage" if n == 1 else f"{n} passages"
