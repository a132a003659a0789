"""The metric ``factcheck``: evidence is found for an answer, and judged passage by passage or at
once.

1. :meth:`FactCheck.evidence` retrieves passages for the statement that the answer is correct, or
   takes the sample's own documents.
2. The entailer judges each passage, or a model is shown all of them.
3. :func:`decide_verdict` turns the probabilities into one verdict, which gives the score.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

from trustassay.core.capabilities import Entailment, Message
from trustassay.core.evidence import EvidenceRow, EvidenceRows, Mark, View
from trustassay.core.metric import (
    Assessment,
    Context,
    Figure,
    Mean,
    Metric,
    Need,
    Share,
    Total,
    UnreadableReply,
    ask_twice,
    directions,
    index_figures,
)
from trustassay.core.outcome import NO_PASSAGES, NOT_ANSWERED, REFUSED, Outcome
from trustassay.core.prompts import Prompt, load_prompt, prompt_property
from trustassay.core.sample import Document, Problem, Sample, find_missing, is_blank
from trustassay.errors import AssessmentError, UnparsedError, UsageError, check_choices, check_least
from trustassay.judging.claims import strip_answer
from trustassay.judging.details import KnownDetails
from trustassay.judging.passages import Passages, ask_reader, build_premise, read_passage_text
from trustassay.judging.refusal import NO_ANSWER
from trustassay.judging.second_reader import PART_READ_BY_SECOND, ROLE
from trustassay.text.cleaning import fold_text
from trustassay.text.limits import TextWork
from trustassay.text.numbers import amount
from trustassay.text.refusals import is_no_answer_placeholder
from trustassay.text.sentences import load_splitter
from trustassay.text.verdict_replies import (
    ENTAILMENT_LABELS,
    REPAIR,
    REPAIR_PROMPT,
    EntailmentLabel,
    VerdictMention,
    find_verdict,
)
from trustassay.text.words import list_quoted

By = Literal["entailer", "model"]
Rule = Literal["support", "stronger"]

# Also compared with stored reasons, to tell why a question has no outcome.
NO_EVIDENCE = "not assessable: there is no retriever (--retriever), and the sample has no documents"
PAPER_STATEMENT = "paper"
"""The value of ``statement`` for the query of Zheng et al. 2024, A.5.2."""
MAX_QUOTED_CHARS = 300
DOUBT_MARGIN = 0.1
"""Support whose probability is less than this above the threshold is in doubt."""

SCORES: Mapping[EntailmentLabel, float] = {"support": 1.0, "neutral": 0.5, "contradict": 0.0}
"""Trust_FC of each verdict. Zheng et al. 2024 give no numbers for it alone; any three equidistant
numbers give the same correlations."""


class Decision(NamedTuple):
    """A verdict, and the passage that decided it."""

    verdict: EntailmentLabel
    """Support, neutral or contradict."""
    place: int | None
    """Index of the passage; ``None`` if none decided."""


def decide_verdict(
    rows: Sequence[Entailment], threshold: float, rule: Rule = "support"
) -> Decision:
    """Return the verdict of several passages on one statement, each of which was judged by itself.

    Let E be the largest probability of entailment among the passages, C the largest of
    contradiction, and t the threshold. If only one of E >= t and C >= t holds, it decides: support
    or contradict. If neither does, or there are no passages, the verdict is neutral. If both hold,
    the rule ``support`` decides for support, and the rule ``stronger`` for the larger of the two,
    or for support if they are equal. The first of several passages with equal probabilities
    decides.

    Args:
        rows: the probabilities for each passage. threshold: above 0, up to 1. rule: see above.
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
_VERDICT_AFTER_SECOND: Mapping[EntailmentLabel, str] = {
    "support": "the passages support the answer",
    "contradict": "the passages contradict the answer",
    "neutral": "the passages leave the answer open",
}
_LEFT_OPEN = Mark("none", "○", "leaves the answer open")
_SHOWN = Mark("none", "○", "shown to the judge")
_FAILED = Mark("none", "○", "not judged")
_JUDGED = Mark("none", "○", "does not decide")


@dataclass(frozen=True, slots=True)
class StatementRow(EvidenceRow, row_kind="statement", required=("text",)):
    """The query for passages, and the hypothesis that they were to entail."""

    text: str
    """The query."""
    retrieved: bool
    """Whether passages were searched with it; otherwise they are the sample's own."""
    hypothesis: str = ""
    """What the entailer judged; empty if a model judged."""


@dataclass(frozen=True, slots=True)
class JudgeReplyRow(EvidenceRow, row_kind="reply", required=("text",)):
    """The judge's reply to all passages."""

    text: str
    """The reply."""
    verdict: str
    """Its verdict."""

    @property
    def mark(self) -> Mark:
        """The verdict, for the report."""
        return _DECIDES.get(self.verdict, _LEFT_OPEN)


@dataclass(frozen=True, slots=True)
class PassageRow(EvidenceRow, row_kind="passage", required=("number",)):
    """A passage, and what it says of the answer."""

    number: int
    """Counts from 1."""
    id: str
    """The passage's id."""
    title: str | None = None
    """``None`` for a document of the sample, which has it."""
    text: str | None = None
    """``None`` for a document of the sample, which has it."""
    error: str = ""
    """Why it could not be judged."""
    entailment: float | None = None
    """``None`` if it was not judged by itself."""
    neutral: float | None = None
    """The same."""
    contradiction: float | None = None
    """The same."""
    decides: str = ""
    """The verdict that it decides, if any."""

    @property
    def mark(self) -> Mark:
        """Its judgement, for the report."""
        default = _FAILED if self.error else _SHOWN if self.entailment is None else _JUDGED
        return _DECIDES.get(self.decides, default)


class Facts(NamedTuple):
    """All evidence of a fact check, for the report."""

    statement: StatementRow | None
    """The query and the hypothesis."""
    reply: JudgeReplyRow | None
    """The judge's reply, if one was asked."""
    passages: Sequence[PassageRow]
    """The passages."""
    other_items: Sequence[Mapping[str, Any]]
    """Evidence of any other kind."""

    @classmethod
    def read(cls, evidence: Iterable[Any], documents: int = 0) -> "Facts":
        """Sort the evidence of a sample that has ``documents`` documents."""
        rows = EvidenceRows(evidence, StatementRow, JudgeReplyRow, PassageRow)
        statements, replies = rows.select(StatementRow), rows.select(JudgeReplyRow)
        passages = [
            # A number beyond the documents (edited evidence) has nothing to link to; an empty text
            # is shown.
            row if 1 <= row.number <= documents else replace(row, text=row.text or "")
            for row in rows.select(PassageRow)
        ]
        last = statements[-1] if statements else None
        return cls(last, replies[-1] if replies else None, passages, rows.other_items)


@dataclass(frozen=True)
class FactCheck(Metric):
    """Do the passages found for an answer support it, contradict it, or leave it open?

    Trust_FC of Zheng et al. 2024 (sections 2.2 and A.5.2): the query is a statement that the
    answer is correct, and the best passages give the verdict. The score is 1 for support, 0.5 for
    neutral and 0 for contradict; the paper defines no number for this part. Without a retriever
    the sample's own documents are the passages; a sample without documents is then not
    assessable. Citation marks are removed from the answer first.

    Args:
        k: number of passages to retrieve, 10 as in the paper. A sample's own documents are all
            used.
        by: the run's ``entailer``, which judges each passage by itself, or the judge (``model``),
            which is shown all of them.
        threshold: probability from which a passage entails, or contradicts.
        rule: which verdict wins if one passage supports and another contradicts: ``support``, or
            the ``stronger``.
        statement: file with a template of the query, with ``question`` and ``answer``; ``paper``
            has the words of the paper's query in another order, which BM25 does not notice.
        hypothesis: file with a template of what the entailer judges, with the same variables.
        prompt: file with a template for the judge, with ``passages``, ``question`` and ``answer``.
        max_tokens: limit of the judge's reply.
    """

    name: ClassVar[str] = "factcheck"
    title: ClassVar[str] = "Fact check (Trust_FC)"
    part_directions = directions(
        higher="entailment", lower="contradiction", neither="assessable passages unparsed"
    )
    verdicts: ClassVar[Sequence[str]] = ENTAILMENT_LABELS
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    line: ClassVar[str] = "the evidence contradicts it, or there is no evidence"
    figures: ClassVar[Mapping[str, Figure]] = index_figures(
        Figure("mean", "mean score, Trust_FC", "", headline=True, statistic=Mean()),
        Figure("support", "answers that the evidence supports", headline=True,
            statistic=Share("support")),
        Figure("neutral", "answers that the evidence leaves open", statistic=Share("neutral")),
        Figure("contradict", "answers that the evidence contradicts", headline=True,
            statistic=Share("contradict")),
        Figure("assessable", "share of answers for which there is evidence", "",
            statistic=Mean("assessable", (0.0, 1.0))),
        Figure("passages", "passages per answer", "", statistic=Mean("passages")),
        Figure("unparsed", "passages whose judgement names no verdict", "",
            statistic=Total("unparsed")),
    )  # fmt: skip

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
        # Templates of the user are read and compiled now, before a run starts.
        _ = self.statement_template, self.hypothesis_template, self.judge_prompt  # may be faulty

    @cached_property
    def statement_template(self) -> Prompt:
        """The template of the statement by which passages are searched."""
        if self.statement == PAPER_STATEMENT:
            return load_prompt(__package__, "statement-paper")
        return load_prompt(__package__, "statement", self.statement, "question answer")

    hypothesis_template = prompt_property(
        __package__, "hypothesis", "hypothesis", variables="question answer"
    )
    """The template of what a passage is to entail."""
    judge_prompt = prompt_property(__package__, "factcheck", variables="passages question answer")
    """The template around passages, question and answer."""

    def needs(self) -> Sequence[Need]:
        """The judge, a retriever unless the samples' own documents serve, and perhaps a second
        reader."""
        search = Need("search", optional=True, field="documents")
        if self.by == "model":
            return Need("chat", "judge"), search
        return Need("entail"), search, Need("entail", ROLE, optional=True)

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs a response."""
        return find_missing(sample, response="the answer to check")

    async def assess(self, context: Context) -> Assessment:
        """Find evidence and have it judged."""
        return await self.judge_evidence(context, await self.evidence(context))

    async def evidence(self, context: Context) -> "FactEvidence | None":
        """Return what the answer is checked against; ``None`` if there is nothing.

        A retriever is asked for the best passages. If the run has none, the sample's own documents
        are used. A refusal is not checked.

        Raises:
            AssessmentError: the response is blank.
        """
        sample, models = context.sample, context.models
        # Without citations and Markdown, which are no part of the statement.
        answer = await TextWork.for_sample(sample)(strip_answer, sample.response or "")
        # A response of citations alone is blank only after they are removed.
        if is_blank(answer):
            raise AssessmentError("the response is blank", "empty")
        if is_no_answer_placeholder(answer):
            return None
        question = sample.question
        statement = self.statement_template.fill(question=question, answer=answer)
        if models.names("retriever"):
            result = await models.search(statement, self.k)
            passages = [Document(passage.id, passage.text, passage.title) for passage in result]
            return FactEvidence(question, answer, statement, passages, True)
        documents = sample.documents or ()
        if all(document.blank for document in documents):
            return None
        return FactEvidence(question, answer, statement, documents, False)

    async def judge_evidence(self, context: Context, evidence: "FactEvidence | None") -> Assessment:
        """Judge the evidence; without any the answer is not assessable."""
        sample = context.sample
        if evidence is None:
            reason = NO_ANSWER if is_no_answer_placeholder(sample.response or "") else NO_EVIDENCE
            return self.build_assessment(sample, None, reason=reason, parts={"assessable": 0.0})
        if evidence.passages:
            judge = _judge_by_model if self.by == "model" else _judge_by_entailer
            verdict, reason, parts, rows = await judge(self, evidence, context)
        else:
            verdict, parts = "neutral", {"passages": 0.0, "unparsed": 0.0}
            reason = "no passage of the corpus shares a word with the question or the answer"
            rows = [StatementRow(evidence.statement, evidence.retrieved)]
        parts, score = {"assessable": 1.0, **parts}, SCORES[verdict]
        return self.build_assessment(
            sample, score, rows, verdict=verdict, reason=reason, parts=parts
        )

    passed_word: ClassVar[str] = "not contradicted"
    failed_word: ClassVar[str] = "contradicted"

    def outcome(self, assessment: Assessment) -> Outcome:
        """Return the outcome of a question; without a score it was refused, or had no passages."""
        if assessment.reason in (NO_ANSWER, NO_EVIDENCE):
            reason = REFUSED if assessment.reason == NO_ANSWER else NO_PASSAGES
            return Outcome(NOT_ANSWERED, reason)
        return super().outcome(assessment)

    def problem(self, assessment: Assessment) -> str | None:
        """Say that the evidence contradicts an answer, or that there is none."""
        if assessment.verdict == "contradict":
            return "the evidence contradicts the answer"
        if assessment.error is None and assessment.score is None:
            return "there is no evidence to check the answer against"
        return None

    def in_doubt(self, assessment: Assessment) -> bool:
        """Whether a passage supports the answer with a probability just above the threshold."""
        # Without the part a model judged, whose verdicts are never in doubt.
        is_near = assessment.parts.get("entailment", 1.0) < min(1.0, self.threshold + DOUBT_MARGIN)
        return assessment.verdict == "support" and is_near

    def view(self, sample: Sample, assessment: Assessment) -> View:
        """Return the statement and the passages, each with what it says of the statement."""
        return View(data=Facts.read(assessment.evidence, len(sample.documents or ())))


class FactEvidence(NamedTuple):
    """What an answer is checked against."""

    question: str
    """The sample's question."""
    answer: str
    """The answer without citations."""
    statement: str
    """The query: that the answer is correct."""
    passages: Sequence[Document]
    """The passages."""
    retrieved: bool
    """Whether they were searched for with ``statement``, and are not the sample's own."""

    @property
    def passage_rows(self) -> list[PassageRow]:
        """The passages as rows of evidence, not judged yet."""
        return [
            PassageRow(
                number, passage.id, *((passage.title, passage.text) if self.retrieved else ())
            )
            for number, passage in enumerate(self.passages, 1)
        ]

    @property
    def missing_details(self) -> list[str]:
        """Numbers, dates and names of the answer that no passage contains."""
        texts = [read_passage_text(passage) for passage in self.passages]
        titles = [fold_text(passage.title or "") for passage in self.passages]
        return KnownDetails(texts, titles, fold_text(self.question)).find_missing(self.answer)

    @property
    def blocks(self) -> list[str]:
        """The passages as they are shown to a judge, each below its title if it has one."""
        return [build_premise(passage) for passage in self.passages]


class FactVerdict(NamedTuple):
    """The verdict on an answer, with its reason, numbers and rows."""

    verdict: EntailmentLabel
    """Support, neutral or contradict."""
    reason: str
    """Why, in a sentence."""
    parts: Mapping[str, float]
    """Numbers for the summary."""
    evidence: Sequence[EvidenceRow]
    """Rows for the report."""


async def _judge_by_entailer(
    options: FactCheck, evidence: FactEvidence, context: Context
) -> FactVerdict:
    """Judge each passage by itself, and with a second reader what is nearest to the answer once
    more.

    A passage for which the judge named no verdict fails the answer, unless another passage decides:
    only if all passages are judged is it known that an answer is left open.
    """
    models = context.models
    hypothesis = options.hypothesis_template.fill(
        question=evidence.question, answer=evidence.answer
    )

    # A passage without text entails nothing; its title alone is not put to the entailer.
    async def judge_block(passage: Document, block: str) -> Entailment:
        blank = Entailment(0.0, 1.0, 0.0)
        return blank if passage.blank else await ask_reader(models, block, hypothesis)

    # return_exceptions: an unreadable judgement of one passage must not discard those of others.
    replies = await asyncio.gather(
        *map(judge_block, evidence.passages, evidence.blocks), return_exceptions=True
    )
    errors = [reply for reply in replies if isinstance(reply, BaseException)]
    for error in errors:
        # A failed call, unlike an unreadable reply, may succeed when the run is continued.
        if not isinstance(error, UnparsedError):
            raise error
    # The verdict is that of the passages that were judged; their places are needed for the report.
    judged = [(place, r) for place, r in enumerate(replies) if isinstance(r, Entailment)]
    places, rows = [place for place, _ in judged], [row for _, row in judged]
    verdict, index = decide_verdict(rows, options.threshold, options.rule)
    # "Neutral" says that no passage decides, which an unread passage might have done.
    if errors and verdict == "neutral":
        raise errors[0]
    decisive: int | None = None
    reason = "no passage supports or contradicts the answer"
    if index is not None:
        decisive, row = places[index], rows[index]
        what = "entailment" if verdict == "support" else "contradiction"
        value = getattr(row, what)
        reason = f"passage {decisive + 1} {_DECIDES[verdict].word} ({what} {value:.2f})"
    if errors:
        reason += f"; {amount(len(errors), 'passage')} could not be judged"
    parts = {
        "passages": float(len(replies)),
        "unparsed": float(len(errors)),
        "entailment": max(row.entailment for row in rows),
        "contradiction": max(row.contradiction for row in rows),
    }
    # The second reader judges the windows of all passages that are nearest to the hypothesis. No
    # single passage is then decisive.
    if context.second:
        characters = sum(len(passage.text) for passage in evidence.passages)
        work = TextWork(characters, long=True)
        passages = await work(Passages, evidence.passages, load_splitter("sentencex"))
        windows = await work(passages.choose_windows, hypothesis)
        # The largest probabilities of the first reader; they may be of two passages, so their sum
        # is not 1.
        first = Entailment(parts["entailment"], 0.0, parts["contradiction"])
        combined = await context.second.judge(models, windows, hypothesis, first)
        verdict = decide_verdict([combined], options.threshold, options.rule).verdict
        decisive = None
        parts |= {
            "entailment": combined.entailment,
            "contradiction": combined.contradiction,
            PART_READ_BY_SECOND: 1.0,
        }
        probabilities = (
            f"entailment {combined.entailment:.2f}, contradiction {combined.contradiction:.2f}"
        )
        conclusion = _VERDICT_AFTER_SECOND[verdict]
        reason = f"both readers: {conclusion} ({probabilities}; first reader: {reason})"
    # An entailer misses some wrong numbers, dates and names, so support needs each of them in some
    # passage.
    if verdict == "support" and (lacks := evidence.missing_details):
        verdict, decisive = "neutral", None
        reason = f"no passage contains {list_quoted(lacks)}, which the answer states"
    judged_passages = []
    # Each passage gets its probabilities or its error, and the decisive one its mark.
    for place, (passage, reply) in enumerate(zip(evidence.passage_rows, replies, strict=True)):
        result: dict[str, Any] = {"error": str(reply)}
        if isinstance(reply, Entailment):
            result = {name: round(value, 4) for name, value in reply._asdict().items()}
        decides = verdict if place == decisive else ""
        judged_passages.append(replace(passage, **result, decides=decides))
    statement = StatementRow(evidence.statement, evidence.retrieved, hypothesis)
    return FactVerdict(verdict, reason, parts, [statement, *judged_passages])


async def _judge_by_model(
    options: FactCheck, evidence: FactEvidence, context: Context
) -> FactVerdict:
    """Show a model all passages at once.

    Raises:
        UnparsedError: neither its reply nor a second one names a verdict.
    """
    prompt = options.judge_prompt
    text = prompt.fill(passages=evidence.blocks, question=evidence.question, answer=evidence.answer)

    async def ask(turns: Sequence[Message], name: str) -> tuple[str, VerdictMention | None]:
        reply = await context.models.chat(
            turns, role="judge", max_tokens=options.max_tokens, stand_in="NEITHER", prompt=name
        )
        return reply.text, find_verdict(reply.text)

    def unread(first_try: tuple[str, VerdictMention | None]) -> UnreadableReply | None:
        return None if first_try[1] else UnreadableReply(first_try[0], REPAIR, REPAIR_PROMPT)

    first_try, second_try = await ask_twice(ask, text, prompt.name, unread)
    # An unreadable second reply is no better than the first, which is then the one to show.
    reply, result = second_try if second_try and second_try[1] else first_try
    reply_text = " ".join(reply.split())
    reply_text = (
        reply_text if len(reply_text) <= MAX_QUOTED_CHARS else reply_text[:MAX_QUOTED_CHARS] + "..."
    )
    if result is None:
        message = "the judge's reply names none of supports, contradicts and neither"
        raise UnparsedError(f"{message}: {reply_text!r}")
    rows = [
        StatementRow(evidence.statement, evidence.retrieved),
        JudgeReplyRow(reply, result.verdict),
        *evidence.passage_rows,
    ]
    parts = {"passages": float(len(evidence.passages)), "unparsed": 0.0}
    return FactVerdict(result.verdict, f"the judge says: {reply_text}", parts, rows)
