"""The metric ``factcheck``: evidence is found for an answer, and judged one by one or at once."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

from trustassay.capabilities import Entailment, Message
from trustassay.core.outcome import NO_PASSAGES, NOT_ANSWERED, REFUSED, Outcome
from trustassay.errors import AssessmentError, UnparsedError, UsageError, check_choices, check_least
from trustassay.judging.claims import plain_answer
from trustassay.judging.details import KnownDetails
from trustassay.judging.passages import Passages, passage_premise, passage_text, read
from trustassay.judging.refusal import NO_ANSWER
from trustassay.judging.second_reader import READ, ROLE
from trustassay.metric import (
    Assessment,
    Context,
    Figure,
    Metric,
    Need,
    Unread,
    asked_twice,
    directions,
    read_figures,
)
from trustassay.prompts import shipped_for
from trustassay.sample import Document, Problem, Sample, is_blank, missing
from trustassay.text.limits import TextWork
from trustassay.text.refusals import no_answer
from trustassay.text.sentences import splitter
from trustassay.text.unicode import folded
from trustassay.text.verdict_replies import (
    REPAIR,
    REPAIR_PROMPT,
    VERDICTS,
    Found,
    Verdict,
    verdict_in,
)
from trustassay.text.words import amount
from trustassay.views import EvidenceRow, Mark, Rows, View

By = Literal["entailer", "model"]
Rule = Literal["support", "stronger"]

NO_EVIDENCE = "not assessable: there is no retriever (--retriever), and the sample has no documents"
MAX_QUOTED_CHARS = 300
DOUBT_MARGIN = 0.1
"""Probability above the threshold up to which support is in doubt."""

SCORES: Mapping[Verdict, float] = {"support": 1.0, "neutral": 0.5, "contradict": 0.0}
"""Trust_FC of each verdict. Zheng et al. 2024 give no numbers for it alone; of equal distances any
three give the same correlations.
"""


class Decision(NamedTuple):
    """A verdict, and the place of the passage that decided it; ``None`` where none did."""

    verdict: Verdict
    place: int | None


def decided(rows: Sequence[Entailment], threshold: float, rule: Rule = "support") -> Decision:
    """Return the verdict of several passages on one statement, each judged by itself.

    Let E be the largest probability of entailment among the passages, C the largest of
    contradiction, t the ``threshold``. Where only one of E >= t and C >= t holds, it decides:
    support, or contradict; where neither does, or without passages, the verdict is neutral. Where
    both hold, ``support`` (the rule) takes support, ``stronger`` the larger of the two, and
    support where they are equal. Of passages with equal probabilities the first decides.
    """
    if not rows:
        return Decision("neutral", None)
    places = range(len(rows))
    best = max(places, key=lambda place: rows[place].entailment)
    worst = max(places, key=lambda place: rows[place].contradiction)
    supported = rows[best].entailment >= threshold
    contradicted = rows[worst].contradiction >= threshold
    if supported and contradicted and rule == "stronger":
        supported = rows[best].entailment >= rows[worst].contradiction
    if supported:
        return Decision("support", best)
    return Decision("contradict", worst) if contradicted else Decision("neutral", None)


_DECIDES = {
    "support": Mark("good", "✓", "supports the answer"),
    "contradict": Mark("bad", "✕", "contradicts the answer"),
}
_VERDICT_AFTER_SECOND: Mapping[Verdict, str] = {
    "support": "the passages support the answer",
    "contradict": "the passages contradict the answer",
    "neutral": "the passages leave the answer open",
}
_LEFT_OPEN = Mark("none", "○", "leaves the answer open")
_SHOWN = Mark("none", "○", "shown to the judge")
_FAILED = Mark("none", "○", "not judged")
_JUDGED = Mark("none", "○", "does not decide")


@dataclass(frozen=True, slots=True)
class Statement(EvidenceRow, row_kind="statement", told_by=("text",)):
    """What passages were searched with, if ``retrieved``, and what they were to entail."""

    text: str
    retrieved: bool
    hypothesis: str = ""


@dataclass(frozen=True, slots=True)
class JudgeReply(EvidenceRow, row_kind="reply", told_by=("text",)):
    """What the judge said of all passages, and its verdict."""

    text: str
    verdict: str

    @property
    def mark(self) -> Mark:
        """The verdict, for the report."""
        return _DECIDES.get(self.verdict, _LEFT_OPEN)


@dataclass(frozen=True, slots=True)
class Passage(EvidenceRow, row_kind="passage", told_by=("number",)):
    """A passage, and what it says of the answer.

    number: counts from 1. title, text: ``None`` of a document of the sample, which has them.
    error: why it could not be judged. entailment, neutral, contradiction: ``None`` where it was not
    judged by itself. decides: the verdict that it decides.
    """

    number: int
    id: str
    title: str | None = None
    text: str | None = None
    error: str = ""
    entailment: float | None = None
    neutral: float | None = None
    contradiction: float | None = None
    decides: str = ""

    @property
    def mark(self) -> Mark:
        """What it says, for the report."""
        usual = _FAILED if self.error else _SHOWN if self.entailment is None else _JUDGED
        return _DECIDES.get(self.decides, usual)


class Facts(NamedTuple):
    """All evidence of a fact check: the statement, the judge's reply if one was asked for, and the
    passages; ``rest`` is evidence of any other kind.
    """

    statement: Statement | None
    reply: JudgeReply | None
    passages: Sequence[Passage]
    other_items: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, evidence: Iterable[Any], documents: int = 0) -> "Facts":
        """Read the evidence of a sample that has so many documents."""
        rows = Rows(evidence, Statement, JudgeReply, Passage)
        statements, replies = rows.of(Statement), rows.of(JudgeReply)
        passages = [
            row if 1 <= row.number <= documents else replace(row, text=row.text or "")
            for row in rows.of(Passage)
        ]
        last = statements[-1] if statements else None
        return cls(last, replies[-1] if replies else None, passages, rows.rest)


@dataclass(frozen=True)
class FactCheck(Metric):
    """Do passages found for an answer support it, contradict it, or leave it open?

    Trust_FC of Zheng et al. 2024 (sections 2.2 and A.5.2): a statement that the answer is correct
    is the query, and what the best passages say of question and answer is the verdict. The score
    is 1 for support, 0.5 for neutral, 0 for contradict; the paper gives it no number by itself. A
    run without a retriever takes the sample's own documents for the passages; a sample that has
    none either is not assessable. Marks of citations are no part of the answer.

    Args:
        k: passages that are retrieved, 10 as in the paper. A sample's own documents count all.
        by: the run's ``entailer``, which judges each passage by itself, or a ``model``, the judge,
            which is shown all of them.
        threshold: probability from which a passage entails, or contradicts.
        rule: where one passage supports and another contradicts: ``support``, or the ``stronger``.
        statement: file of a template of the query, with ``question`` and ``answer``.
        hypothesis: file of a template of what the entailer judges, with the same.
        prompt: file of a template for the judge, with ``passages``, ``question`` and ``answer``.
        max_tokens: of the judge's reply.
    """

    name: ClassVar[str] = "factcheck"
    title: ClassVar[str] = "Fact check (Trust_FC)"
    part_directions = directions(
        higher="entailment", lower="contradiction", neither="assessable passages unparsed"
    )
    verdicts: ClassVar[Sequence[str]] = VERDICTS
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    line: ClassVar[str] = "the evidence contradicts it, or there is none to check it against"
    figures: ClassVar[Mapping[str, Figure]] = read_figures(__package__)

    k: int = 10
    by: By = "entailer"
    threshold: float = 0.5
    rule: Rule = "support"
    statement: str | None = None
    hypothesis: str | None = None
    prompt: str | None = None
    max_tokens: int = 256

    def __post_init__(self) -> None:
        check_least(self, k=1, max_tokens=1)
        check_choices(self, by=By, rule=Rule)
        if not 0 < self.threshold <= 1:
            raise UsageError("threshold: expected a number above 0 and up to 1")
        _ = self.statement_template, self.hypothesis_template, self.judge_prompt  # may be faulty

    statement_template = shipped_for(__package__, "statement", "statement")
    """The template of the statement by which passages are searched."""
    hypothesis_template = shipped_for(__package__, "hypothesis", "hypothesis")
    """The template of what a passage is to entail."""
    judge_prompt = shipped_for(__package__, "factcheck")
    """The template around passages, question and answer."""

    def needs(self) -> Sequence[Need]:
        """Who judges, beside an entailer a second reader, if there is one, and a retriever where
        the samples' own documents are not to serve.
        """
        search = Need("search", optional=True, field="documents")
        if self.by == "model":
            return Need("chat", "judge"), search
        return Need("entail"), search, Need("entail", ROLE, optional=True)

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs a response."""
        return missing(sample, response="the answer to check")

    async def assess(self, context: Context) -> Assessment:
        """Find evidence, have it judged, and keep both."""
        return await self.judged(context, await self.evidence(context))

    async def evidence(self, context: Context) -> "Evidence | None":
        """Return what the answer is checked against; ``None`` where there is nothing.

        A retriever is asked for the best passages. Where the run has none, the sample's own
        documents are taken. A blank response raises AssessmentError.
        """
        sample, models = context.sample, context.models
        answer = await TextWork.on(sample)(plain_answer, sample.response or "")
        if is_blank(answer):
            raise AssessmentError("the response is blank", "empty")
        if no_answer(answer):
            return None
        question = sample.question
        statement = self.statement_template.filled(question=question, answer=answer)
        if models.names("retriever"):
            result = await models.search(statement, self.k)
            passages = [Document(passage.id, passage.text, passage.title) for passage in result]
            return Evidence(question, answer, statement, passages, True)
        documents = sample.documents or ()
        if all(document.blank for document in documents):
            return None
        return Evidence(question, answer, statement, documents, False)

    async def judged(self, context: Context, evidence: "Evidence | None") -> Assessment:
        """Have the evidence judged; without any the answer is not assessable."""
        sample = context.sample
        if evidence is None:
            reason = NO_ANSWER if no_answer(sample.response or "") else NO_EVIDENCE
            return self.assessed(sample, None, reason=reason, parts={"assessable": 0.0})
        if evidence.passages:
            judge = _judge_by_model if self.by == "model" else _judge_by_entailer
            verdict, reason, parts, rows = await judge(self, evidence, context)
        else:
            verdict, parts = "neutral", {"passages": 0.0, "unparsed": 0.0}
            reason = "the corpus has no passage with a word of the question or the answer"
            rows = [Statement(evidence.statement, evidence.retrieved)]
        parts, score = {"assessable": 1.0, **parts}, SCORES[verdict]
        return self.assessed(sample, score, rows, verdict=verdict, reason=reason, parts=parts)

    passed_word: ClassVar[str] = "not contradicted"
    failed_word: ClassVar[str] = "contradicted"

    def outcome(self, assessment: Assessment) -> Outcome:
        """Return what became of a question; without a score it was refused, or had no passages."""
        if assessment.reason in (NO_ANSWER, NO_EVIDENCE):
            reason = REFUSED if assessment.reason == NO_ANSWER else NO_PASSAGES
            return Outcome(NOT_ANSWERED, reason)
        return super().outcome(assessment)

    def problem(self, assessment: Assessment) -> str | None:
        """Say where the evidence contradicts an answer."""
        if assessment.verdict == "contradict":
            return "the evidence contradicts the answer"
        if assessment.error is None and assessment.score is None:
            return "there is no evidence to check the answer against"
        return None

    def in_doubt(self, assessment: Assessment) -> bool:
        """Whether a passage supports the answer, and is near the line."""
        near = assessment.parts.get("entailment", 1.0) < min(1.0, self.threshold + DOUBT_MARGIN)
        return assessment.verdict == "support" and near

    def view(self, sample: Sample, assessment: Assessment) -> View:
        """Return the statement and the passages with what each says of it."""
        return View(data=Facts.read(assessment.evidence, len(sample.documents or ())))


class Evidence(NamedTuple):
    """What an answer is checked against.

    retrieved: the passages were searched for with ``statement``, and are not the sample's own.
    """

    question: str
    answer: str
    statement: str
    passages: Sequence[Document]
    retrieved: bool

    @property
    def shown(self) -> list[Passage]:
        """The passages as they stand in the evidence, not judged yet."""
        return [
            Passage(number, passage.id, *((passage.title, passage.text) if self.retrieved else ()))
            for number, passage in enumerate(self.passages, 1)
        ]

    @property
    def lacks(self) -> list[str]:
        """Numbers, dates and names of the answer that no passage has."""
        texts = [passage_text(passage) for passage in self.passages]
        titles = [folded(passage.title or "") for passage in self.passages]
        return KnownDetails(texts, titles, folded(self.question)).missing(self.answer)

    @property
    def blocks(self) -> list[str]:
        """The passages as they are put to a judge, each under its title if it has one."""
        return [passage_premise(passage) for passage in self.passages]


class Checked(NamedTuple):
    """The verdict on an answer, why, and what it is made of."""

    verdict: Verdict
    reason: str
    parts: Mapping[str, float]
    evidence: Sequence[EvidenceRow]


async def _judge_by_entailer(options: FactCheck, evidence: Evidence, context: Context) -> Checked:
    """Judge each passage by itself, and, where the run's second reader reads the answer, what is
    nearest to it in all passages once more. One whose judgement named no verdict fails the answer,
    unless another one decides: that an answer is left open is only known if all are judged.
    """
    models = context.models
    hypothesis = options.hypothesis_template.filled(
        question=evidence.question, answer=evidence.answer
    )

    async def judge_block(passage: Document, block: str) -> Entailment:
        blank = Entailment(0.0, 1.0, 0.0)
        return blank if passage.blank else await read(models, block, hypothesis)

    replies = await asyncio.gather(
        *map(judge_block, evidence.passages, evidence.blocks), return_exceptions=True
    )
    errors = [reply for reply in replies if isinstance(reply, BaseException)]
    for error in errors:
        if not isinstance(error, UnparsedError):
            raise error
    judged = [(place, r) for place, r in enumerate(replies) if isinstance(r, Entailment)]
    places, rows = [place for place, _ in judged], [row for _, row in judged]
    verdict, index = decided(rows, options.threshold, options.rule)
    if errors and verdict == "neutral":
        raise errors[0]
    decisive: int | None = None
    reason = "no passage supports or contradicts the answer"
    if index is not None:
        decisive, row = places[index], rows[index]
        value = row.entailment if verdict == "support" else row.contradiction
        reason = f"passage {decisive + 1} {_DECIDES[verdict].word} ({value:.2f})"
    if errors:
        reason += f"; {amount(len(errors), 'passage')} could not be judged"
    parts = {
        "passages": float(len(replies)),
        "unparsed": float(len(errors)),
        "entailment": max(row.entailment for row in rows),
        "contradiction": max(row.contradiction for row in rows),
    }
    if context.second:
        passages = await TextWork(long=True)(Passages, evidence.passages, splitter("sentencex"))
        windows = await TextWork(long=True)(passages.windows, hypothesis)
        first = Entailment(parts["entailment"], 0.0, parts["contradiction"])
        both = await context.second.verdict(models, windows, hypothesis, first)
        verdict, decisive = decided([both], options.threshold, options.rule).verdict, None
        parts |= {"entailment": both.entailment, "contradiction": both.contradiction, READ: 1.0}
        probabilities = f"entailment {both.entailment:.2f}, contradiction {both.contradiction:.2f}"
        conclusion = _VERDICT_AFTER_SECOND[verdict]
        reason = f"read twice: {conclusion} ({probabilities}; the first reader: {reason})"
    if verdict == "support" and (lacks := evidence.lacks):
        verdict, decisive = "neutral", None
        reason = f"no passage has {', '.join(lacks[:6])} of the answer"
    judged_passages = []
    for place, (passage, reply) in enumerate(zip(evidence.shown, replies, strict=True)):
        result: dict[str, Any] = {"error": str(reply)}
        if isinstance(reply, Entailment):
            result = {name: round(value, 4) for name, value in reply._asdict().items()}
        decides = verdict if place == decisive else ""
        judged_passages.append(replace(passage, **result, decides=decides))
    statement = Statement(evidence.statement, evidence.retrieved, hypothesis)
    return Checked(verdict, reason, parts, [statement, *judged_passages])


async def _judge_by_model(options: FactCheck, evidence: Evidence, context: Context) -> Checked:
    """Show a model all passages at once; raises UnparsedError if its reply names no verdict."""
    prompt = options.judge_prompt
    text = prompt.filled(
        passages=evidence.blocks, question=evidence.question, answer=evidence.answer
    )

    async def ask(turns: Sequence[Message], name: str) -> tuple[str, Found | None]:
        reply = await context.models.chat(
            turns, role="judge", max_tokens=options.max_tokens, stand_in="NEITHER", prompt=name
        )
        return reply.text, verdict_in(reply.text)

    def unread(first_try: tuple[str, Found | None]) -> Unread | None:
        return None if first_try[1] else Unread(first_try[0], REPAIR, REPAIR_PROMPT)

    first_try, second_try = await asked_twice(ask, text, prompt.name, unread)
    reply, result = second_try if second_try and second_try[1] else first_try
    reply_text = " ".join(reply.split())
    reply_text = (
        reply_text if len(reply_text) <= MAX_QUOTED_CHARS else reply_text[:MAX_QUOTED_CHARS] + "..."
    )
    if result is None:
        message = "the judge's reply names none of supports, contradicts and neither"
        raise UnparsedError(f"{message}: {reply_text!r}")
    rows = [
        Statement(evidence.statement, evidence.retrieved),
        JudgeReply(reply, result.verdict),
        *evidence.shown,
    ]
    parts = {"passages": float(len(evidence.passages)), "unparsed": 0.0}
    return Checked(result.verdict, f"the judge says: {reply_text}", parts, rows)
