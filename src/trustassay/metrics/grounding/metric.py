"""The metric ``grounding``: correctness, citations and refusals of one answer, and its view."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import ClassVar

from trustassay.core.capabilities import Entailment
from trustassay.core.event_loop import gather_all
from trustassay.core.evidence import EvidenceRow, EvidenceRows, JudgedPiece, View
from trustassay.core.metric import Assessment, Context, Figure, Need, Summary, directions
from trustassay.core.outcome import (
    BLANK,
    NO_CLAIM,
    NOT_ANSWERED,
    REFUSED,
    REFUSED_RIGHTLY,
    REFUSED_WRONGLY,
    Outcome,
)
from trustassay.core.sample import Document, Problem, Sample, find_missing
from trustassay.judging.claims import (
    REASON_NO_PART,
    REASON_REFERENCES,
    Claim,
    build_claim_as_in_paper,
    build_claims,
    build_claims_as_in_paper,
    strip_answer,
)
from trustassay.judging.details import KnownDetails
from trustassay.judging.passages import Passages, add_title, ask_reader, read_passage_text
from trustassay.judging.second_reader import PART_READ_BY_SECOND, ROLE, read_deciding_statements
from trustassay.judging.verdict import correct_for_title, find_covering_sentence
from trustassay.metrics.grounding import evidence, maths
from trustassay.metrics.grounding.evidence import CitedSentence, Coverage, GoldAnswerRow, Refusal
from trustassay.metrics.grounding.options import GroundingOptions
from trustassay.metrics.grounding.summary import FIGURES, WeightedAnswers, summarise
from trustassay.text.citations import (
    cites_document,
    find_citations,
    strip_citations,
    strip_citations_as_in_paper,
)
from trustassay.text.cleaning import fold_text
from trustassay.text.limits import TextWork
from trustassay.text.numbers import amount
from trustassay.text.words import list_quoted

Flags = Sequence[Sequence[int]]


class GroundingAssessor:
    """The state of one assessment; :meth:`result` runs the algorithm."""

    def __init__(self, metric: GroundingOptions, context: Context) -> None:
        sample = context.sample
        self.metric, self.sample, self.models = metric, sample, context.models
        self.second = context.second
        self.limits, self.work = context.limits, TextWork.for_sample(sample)
        self.rules = metric.rules
        self.response = sample.response or ""
        self.documents = sample.documents or ()
        self.golds = metric.golds(sample)
        self.is_list = metric.correctness == "em5"
        self.as_in_paper = not self.rules.lists
        # Reading: done once and on another thread, as a long response takes a while.
        strip = strip_citations_as_in_paper if self.as_in_paper else strip_answer
        self.plain_response = strip(self.response)
        self.texts = [self.read_text(document) for document in self.documents]
        self.titles = [
            document.title if self.as_in_paper else fold_text(document.title)
            for document in self.documents
        ]
        # The premise of the paper's profile names a title even where it is empty.
        self.blocks = [
            add_title(text, title) if self.rules.untitled else f"Title: {title}\n{text}"
            for title, text in zip(self.titles, self.texts, strict=True)
        ]
        text_golds_rules = self.response, self.golds, self.rules
        self.elements = maths.split_plain_list(*text_golds_rules) if self.is_list else []
        self.statements = self.build_statements()
        # Limits are checked before anything is asked; they raise on a sample that is too large.
        self.limits.check_count("statements", len(self.statements))
        self.limits.check_count("citations", sum(len(claim.citations) for claim in self.statements))
        pairs = len(self.blocks) * len(self.golds)
        self.limits.check_count("pairs of a passage and a gold answer", pairs)
        self.refusal = metric.refusal_words(self.response)
        # trust_eval decides refusal twice, on the raw text and on the one without citations.
        self.plain_refusal = (
            self.refusal if self.rules.one_text else metric.refusal_words(self.plain_response)
        )
        self.premises: dict[tuple[int, ...], str] = {}
        self.replies: dict[tuple[str, str], Entailment] = {}
        self.indices_of_pair: dict[tuple[str, str], Sequence[int]] = {}
        """The indices of the passages that a premise is made of, by (premise, hypothesis)."""
        self.first_readings: dict[str, dict[tuple[str, str], float]] = {}
        """The first reader's probabilities by pair, of each hypothesis that both readers read."""
        self.statements_read_twice = 0
        """The number of statements that both readers read."""
        self.characters_read = 0
        """The number of characters of all premises so far."""

    async def result(self) -> Assessment:
        """Decide coverage, correctness and citations, and build the assessment."""
        (coverage, computed), hits, judges = await asyncio.gather(
            self.decide_coverage(), self.decide_hits(), self.judge_statements(self.statements)
        )
        # A refusal has no sentence that a second reader could rescue.
        if self.second and self.refusal is None:
            judges = await self.judge_by_both(coverage, judges)
        return await self.work(self.build_assessment, coverage, hits, judges, computed)

    def build_assessment(
        self,
        coverage: Flags | None,
        hits: Sequence[bool],
        judges: Sequence[_CitationJudge],
        computed: bool,
    ) -> Assessment:
        """Build the assessment from all decisions, with the evidence."""
        refusal, statements = self.refusal, self.statements
        final = [judge(coverage) for judge in judges]
        judged_claims = [
            judgement
            for s, judgement in zip(statements, final, strict=True)
            if self.needs_support(s)
        ]
        parts = {
            "answered": float(refusal is None),
            "answered_stripped": float(self.plain_refusal is None),
            "words": float(len(self.plain_response.split())),
            # No claim: nothing but greetings, references or white space.
            "blank": float(not judged_claims),
            **self.build_gold_parts(coverage, hits),
            **build_citation_parts(judged_claims),
            **({"false_denials": float(len(self.false_denials))} if self.false_denials else {}),
            **({PART_READ_BY_SECOND: float(self.statements_read_twice)} if self.second else {}),
        }
        score, reason = maths.score_answer(parts, self.metric.correctness)
        if refusal is None and not self.documents:
            # In Trust-Eval such an answer fails, though the cause may be a field that was not read.
            reason = f"{reason}; the sample has no passages"
        return self.metric.build_assessment(
            self.sample,
            score,
            self.build_evidence(coverage, hits, final, computed),
            verdict="answered" if refusal is None else "refused",
            reason="; ".join([reason, *self.false_denials.values()]),
            parts=parts,
        )

    # reading

    def read_text(self, document: Document) -> str:
        """Return the text of a passage as the reader gets it."""
        if self.as_in_paper:
            return document.text if document.excerpt is None else document.excerpt
        return read_passage_text(document)

    def build_statements(self) -> list[Claim]:
        """Return the statements of the response: its sentences, or for a list answer "QUESTION
        ELEMENT" for each element.
        """
        split, question = self.metric.split, self.sample.question
        if not self.is_list and self.as_in_paper:
            return build_claims_as_in_paper(self.response, split)
        if not self.is_list:
            rules = self.rules
            return build_claims(
                question, self.response, split, trailing=rules.trailing, lines=rules.lines
            )
        elements = maths.split_answer_list(self.response, self.golds, self.rules)
        if self.as_in_paper:
            return [build_claim_as_in_paper(f"{question} {element}") for element in elements]
        return [
            Claim(
                f"{question} {element}",
                f"{question} {fold_text(strip_citations(element)).strip()}",
                citations=tuple(n for marker in find_citations(element) for n in marker.numbers),
            )
            for element in elements
        ]

    def needs_support(self, claim: Claim) -> bool:
        """Whether a statement is to be supported by what it cites.

        A statement that the passages do not mention a topic needs no citation, unless it is wrong.
        """
        if claim.topic is not None and not claim.citations:
            return self.false_denials.get(claim.text) is not None
        # A list of sources below the answer, and other lines that are no part of it.
        if claim.reason in (REASON_REFERENCES, REASON_NO_PART):
            return False
        if self.refusal is not None and claim.is_refusal:
            return True  # the figures of all responses count it, as Trust-Eval does
        return claim.hypothesis is not None or self.is_list or not self.rules.asides

    @cached_property
    def passages(self) -> Passages:
        """The passages, split into sentences."""
        return Passages(self.documents, self.metric.split)

    @cached_property
    def false_denials(self) -> dict[str, str]:
        """By statement, its false denial: it says that no passage mentions a topic; one does."""
        result: dict[str, str] = {}
        topics = [(claim.text, claim.topic) for claim in self.statements if claim.topic]
        # Splitting all passages costs time: only where a statement denies anything.
        all_sentences = (
            [
                passage_sentence
                for sentences_of_passage in self.passages.sentences
                for passage_sentence in sentences_of_passage
            ]
            if topics
            else []
        )
        for text, topic in topics:
            if sentence := find_covering_sentence(topic, all_sentences):
                result[text] = f"passage [{sentence.passage + 1}] mentions “{topic}”"
        return result

    @cached_property
    def details(self) -> KnownDetails:
        """The numbers, dates and names that the passages and the question have."""
        return KnownDetails(self.texts, self.titles, fold_text(self.sample.question))

    def find_missing(self, hypothesis: str) -> list[str]:
        """Return the details of a statement that no passage has; none in the paper's profile."""
        return [] if self.as_in_paper else self.details.find_missing(hypothesis)

    # asking

    async def ask_entailment(self, pairs: Iterable[tuple[str, str]]) -> list[bool]:
        """Ask about all pairs at once, store the replies, and return which are entailed."""
        pairs = list(pairs)
        self.characters_read += sum(len(premise) for premise, _ in pairs)
        self.limits.check_count("characters to be read for it", self.characters_read)
        replies = await gather_all(map(self.ask_readers, pairs))
        self.replies.update(zip(pairs, replies, strict=True))
        return [self.metric.entails(reply) for reply in replies]

    async def ask_readers(self, pair: tuple[str, str]) -> Entailment:
        """Return the first reader's probabilities; of a statement read twice, those of both."""
        premise, hypothesis = pair
        if self.as_in_paper:
            first = await self.models.entail(*pair)
        else:
            first = await ask_reader(self.models, *pair)
        # A title supports nothing by itself: an entailed pair of cited passages is read once more
        # by its text alone. Pairs of coverage and correctness are not in indices_of_pair.
        if not self.as_in_paper and self.metric.entails(first) and pair in self.indices_of_pair:
            texts, titles = zip(
                *((self.texts[i], self.titles[i]) for i in self.indices_of_pair[pair]), strict=True
            )
            text_and_title = "\n".join(texts), " ".join(titles)
            first = await correct_for_title(
                self.models, hypothesis, *text_and_title, first, self.metric.threshold
            )
        if not self.second or hypothesis not in self.first_readings:
            return first
        # :meth:`judge_by_both` has put the hypothesis in: this is its second round.
        self.first_readings[hypothesis][pair] = round(first.entailment, 2)
        passage = Passages([Document("", premise)], self.metric.split)
        windows = await self.work(passage.choose_windows, hypothesis)
        return await self.second.judge(self.models, windows, hypothesis, first)

    def probability_of(self, premise: str, hypothesis: str) -> float | None:
        """Return the probability of entailment, to two decimals; ``None`` if it is unknown."""
        reply = self.replies.get((premise, hypothesis))
        return None if reply is None else round(reply.entailment, 2)

    async def decide_coverage(self) -> tuple[Flags | None, bool]:
        """Return which document supports which gold answer, and whether that was computed.

        Given flags count, where they are as many as the gold answers. Otherwise entailment
        decides, from the passage to the claim; for short answers an alias must be in the
        passage, and the passage entail the question followed by that alias (Song et al. 2025,
        data construction).
        """
        flags_of_documents = [document.supports or () for document in self.documents]
        number = len(self.golds) or len(flags_of_documents[0] if flags_of_documents else ())
        # Flags of another length belong to other gold answers, and are ignored.
        if (
            self.sample.supports_known
            and number
            and all(len(f) == number for f in flags_of_documents)
        ):
            return flags_of_documents, False
        if not self.golds:
            return None, False
        pairs = await self.work(self.build_coverage_pairs)
        result = [[0] * len(self.golds) for _ in self.blocks]
        for (d, g), label in zip(pairs, await self.ask_entailment(pairs.values()), strict=True):
            result[d][g] = int(label)
        return result, True

    def build_coverage_pairs(self) -> dict[tuple[int, int], tuple[str, str]]:
        """Return what is to be asked of each document and gold answer, by their indices."""
        result = {}
        for (d, block), (g, gold) in product(enumerate(self.blocks), enumerate(self.golds)):
            if self.metric.correctness == "cm":
                result[d, g] = block, gold[0]
            elif (alias := maths.find_mention(block, gold, self.rules)) is not None:
                # A bare name entails nothing; after the question it reads as an answer.
                result[d, g] = block, f"{self.sample.question} {alias}"
        return result

    async def decide_hits(self) -> list[bool]:
        """Return which gold answers the response gives."""
        if self.metric.correctness == "cm":
            return await self.ask_entailment((self.plain_response, gold[0]) for gold in self.golds)
        if self.metric.correctness == "em":
            return await self.work(maths.exact_hits, self.plain_response, self.golds, self.rules)
        if self.is_list:
            return list(maths.list_match(self.elements, self.golds, self.rules).hits)
        return []

    async def judge_statements(self, statements: Sequence[Claim]) -> list[_CitationJudge]:
        """Ask what the verdicts need: all cited passages, each alone, the others without it.

        A question whose answer cannot change a verdict is not asked.
        """
        rules_of_citations = len(self.blocks), self.rules, self.metric.at_most_citations
        judges = [
            _CitationJudge(
                self,
                hypothesis_of(s),
                maths.build_citations(
                    s.citations if self.needs_support(s) else (), *rules_of_citations
                ),
            )
            for s in statements
        ]
        # Three steps over all statements at once, so that a batch is as large as possible. Each
        # generator decides what to ask next from the replies stored meanwhile.
        steps = zip(*(judge.questions() for judge in judges), strict=True)
        while questions := await self.work(next, steps, None):
            await self.ask_entailment(chain.from_iterable(questions))
        return judges

    async def judge_by_both(
        self, coverage: Flags | None, judges: Sequence[_CitationJudge]
    ) -> list[_CitationJudge]:
        """Let the second reader judge the statements that decide.

        Statements that cite nothing are left out: there is nothing to read.
        """

        def is_bad(judge: _CitationJudge) -> bool:
            judgement = judge(coverage)
            return not judgement.supported or judgement.points < judgement.counted

        async def judge_again(place: int) -> _CitationJudge:
            before = judges[place]
            # An entry, even if empty, tells :meth:`ask_readers` to ask the second reader, too.
            self.first_readings[before.hypothesis] = {}
            (judge,) = await self.judge_statements([self.statements[place]])
            return judge

        citing = [
            place for place, judge_of_statement in enumerate(judges) if judge_of_statement.indices
        ]
        result, self.statements_read_twice = await read_deciding_statements(
            judges, citing, is_bad, judge_again
        )
        return result

    # writing down

    def build_gold_parts(self, coverage: Flags | None, hits: Sequence[bool]) -> dict[str, float]:
        """Return the parts that need gold answers or support flags; none if there are none."""
        parts: dict[str, float] = {}
        covered = find_covered_golds(coverage, len(self.golds))
        # Answerable: some document supports some gold answer.
        if covered is not None:
            parts["answerable"] = float(any(covered))
        if not self.golds or self.metric.correctness == "none":
            return parts
        parts |= {"golds": float(len(self.golds)), "hits": float(sum(hits))}
        if covered is not None:
            both = [hit and c for hit, c in zip(hits, covered, strict=True)]
            parts |= {"supported": float(sum(covered)), "supported_hits": float(sum(both))}
        if self.is_list:
            parts |= self.build_list_parts(covered)
        return parts

    def build_list_parts(self, covered: Sequence[int] | None) -> dict[str, float]:
        """Return the parts of a list answer (``em5``)."""
        match = maths.list_match(self.elements, self.golds, self.rules)
        parts = {"elements": float(len(match.elements)), "precise_elements": float(match.precise)}
        if covered is None:
            return parts
        supported = [gold for gold, flag in zip(self.golds, covered, strict=True) if flag]
        supported_match = maths.list_match(self.elements, supported, self.rules)
        parts["supported_elements"] = float(supported_match.precise)
        passages = [document.text for document in self.documents]
        share = maths.wrong_in_documents(self.elements, supported, passages, self.rules)
        return parts if share is None else parts | {"wrong_in_documents": share}

    def build_evidence(
        self,
        coverage: Flags | None,
        hits: Sequence[bool],
        final: Sequence[maths.Judgement],
        computed: bool,
    ) -> Iterator[EvidenceRow]:
        """Yield the rows of evidence: words of a refusal, statements, gold answers, passages.

        The words of a refusal need no support here; they count only in the figures of all
        responses. A statement that claims nothing counts in no figure.
        """
        premise = self.join_counted
        if self.refusal is not None:
            yield Refusal(self.refusal, self.metric.settings()["refusal"])
        for s, judgement in zip(self.statements, final, strict=True):
            counts = self.needs_support(s)
            # A refusal needs no citation, but one that it has is judged.
            is_judged = counts and (self.refusal is None or bool(s.citations))
            hypothesis = hypothesis_of(s)
            joint = premise(judgement.citations), hypothesis
            reason = (
                judgement.reason
                if is_judged
                else "a refusal"
                if counts
                else s.reason or "it claims nothing"
            )
            # A missing number or name overrules the reader, so it is the reason.
            if is_judged and (lacks := self.find_missing(hypothesis)):
                reason = f"no passage contains {list_quoted(lacks)}"
            yield CitedSentence(
                "list item" if self.is_list else "sentence",
                s.text,
                judgement.supported if is_judged else None,
                self.probability_of(*joint),
                self.false_denials.get(s.text, reason) if s.topic else reason,
                [
                    evidence.CitationRow(
                        c.number, c.verdict, self.probability_of(premise([c]), hypothesis), c.reason
                    )
                    for c in judgement.citations
                ],
                self.first_readings.get(hypothesis, {}).get(joint),
            )
        # With correctness=none the sample may still have gold answers, which were not compared.
        golds = self.golds if self.metric.correctness != "none" else ()
        covered = find_covered_golds(coverage, len(golds))
        for g, gold in enumerate(golds):
            supported = None if covered is None else bool(covered[g])
            entailment = self.probability_of(self.plain_response, gold[0])
            yield GoldAnswerRow(gold[0], gold[1:], bool(hits[g]), supported, entailment)
        for number, flags in enumerate(coverage or (), 1):
            yield Coverage(number, list(flags), computed)

    def join_counted(self, citations: Iterable[maths.Citation]) -> str:
        """Join the passages of those citations that count, in their order."""
        uncounted = ("invalid", "beyond limit", "duplicate")
        return self.join_passages(c.index for c in citations if c.verdict not in uncounted)

    def join_passages(self, indices: Iterable[int]) -> str:
        """Return passages as one premise; each combination is built once."""
        key = tuple(indices)
        if key not in self.premises:
            self.premises[key] = "\n".join(self.blocks[i] for i in key)
        return self.premises[key]


def hypothesis_of(claim: Claim) -> str:
    """Return the hypothesis that is judged for a statement; its text if it claims nothing."""
    return claim.text if claim.hypothesis is None else claim.hypothesis


class _CitationJudge:
    """The citations of one statement, and the questions to the reader that they need."""

    def __init__(
        self, answer: GroundingAssessor, hypothesis: str, citations: list[maths.Citation]
    ) -> None:
        self.answer, self.hypothesis, self.citations = answer, hypothesis, citations
        self.indices = [c.index for c in citations if c.open]
        self.lacks_details = bool(answer.find_missing(hypothesis)) if self.indices else False

    def pair(self, indices: Iterable[int]) -> tuple[str, str]:
        indices = list(indices)
        pair = self.answer.join_passages(indices), self.hypothesis
        self.answer.indices_of_pair[pair] = indices
        return pair

    def entails(self, indices: Iterable[int]) -> bool:
        reply = self.answer.replies[self.pair(indices)]
        # With a number or name that no passage has a statement is unsupported, whatever the reader
        # says.
        return not self.lacks_details and self.answer.metric.entails(reply)

    def questions(self) -> Iterator[list[tuple[str, str]]]:
        """Yield the pairs to ask in three steps, each chosen by the replies to the one before."""
        indices = self.indices
        yield [self.pair(indices)] if indices else []
        # Alone: only if several passages together entail it. Of a single one the answer is known.
        alone_candidates = indices if len(indices) > 1 and self.entails(indices) else []
        yield [self.pair([index]) for index in alone_candidates]
        # Without it: only for those that do not support alone.
        needed = [
            place for place, index in enumerate(alone_candidates) if not self.entails([index])
        ]
        yield [self.pair(maths.indices_without(indices, place)) for place in needed]

    def __call__(self, coverage: Flags | None) -> maths.Judgement:
        return maths.judge_citations(
            self.citations, self.entails, coverage or (), self.answer.rules
        )


def find_covered_golds(coverage: Flags | None, golds: int) -> list[int] | None:
    """Return for each gold answer whether some document supports it, if that is known."""
    if coverage is None:
        return None
    return [int(any(flags)) for flags in zip(*coverage, strict=True)] or [0] * golds


def build_citation_parts(final: Sequence[maths.Judgement]) -> dict[str, float]:
    """Return the parts that the citation figures are computed from."""
    citations = [c for judgement in final for c in judgement.citations]
    return {
        "statements": float(len(final)),
        "supported_statements": float(sum(j.supported for j in final)),
        "citations": float(sum(j.counted for j in final)),
        "precise_citations": float(sum(j.points for j in final)),
        "invalid_citations": float(sum(c.verdict == "invalid" for c in citations)),
    }


@dataclass(frozen=True)
class Grounding(GroundingOptions):
    """Is a cited answer correct, supported by its citations, and refused when it should be?

    Args:
        profile: ``default``, or ``paper`` for the numbers of trust_eval 0.1.6, with its errors.
        correctness: ``em`` (short gold answers are in the response), ``em5`` (the response is a
            list), ``cm`` (the response entails gold claims), ``none``; ``auto`` is ``cm`` if
            samples have claims or their answers are whole sentences, otherwise ``em``.
        splitter: name of a sentence splitter (``sentencex``, ``punkt``, ``lines``; a language may
            follow, as in ``sentencex:de``) or a function; default: that of the profile.
        refusal: name of a refusal detector (``phrases``, ``paper``) or a function of the response.
        threshold: probability from which a pair counts as entailed.
        at_most_citations: number of citations of a statement that count; ``None``: all.
        cited_only: give no score to an answer that cites none of its documents.
        others: see :class:`~trustassay.metrics.grounding.options.Rules`; default: the profile's.
    """

    title: ClassVar[str] = "Grounding of cited answers (Trust-Eval)"
    part_directions = directions(neither=" ".join(maths.PARTS))
    fills: ClassVar[tuple[str, ...]] = ("documents",)
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    verdicts: ClassVar[tuple[str, ...]] = ("answered", "refused")
    figures: ClassVar[Mapping[str, Figure]] = FIGURES

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs a response and documents (which may be an empty list)."""
        result = find_missing(sample, response="the text to assess", documents="the passages shown")
        # Without gold answers the flags alone say how many there are, so they must agree.
        flags = {len(document.supports or ()) for document in sample.documents or ()}
        if len(flags) > 1 and not self.golds(sample):
            result.append(Problem("documents", "have lists in `supports` that differ in length"))
        return result

    def needs(self) -> Sequence[Need]:
        """An entailer; a second reader, and a retriever for samples without documents, if any."""
        return (Need("entail"), Need("entail", ROLE, optional=True), Need("search", optional=True))

    async def assess(self, context: Context) -> Assessment:
        """Score one answer; the evidence holds every decision."""
        sample = context.sample
        if self.cited_only and not cites_document(
            sample.response or "", len(sample.documents or ())
        ):
            return self.build_assessment(sample, None, reason="the answer cites no document")
        # Building the state reads the whole response, so it runs on the thread for long texts.
        return await (await TextWork.for_sample(sample)(GroundingAssessor, self, context)).result()

    passed_word: ClassVar[str] = "supported"
    failed_word: ClassVar[str] = "not supported"

    def outcome(self, assessment: Assessment) -> Outcome:
        """Return what became of a question; of a refusal also whether it was right, if known."""
        if assessment.verdict != "refused" or assessment.parts.get("false_denials"):
            # A refusal may have the part too: what it says is no claim.
            if assessment.error is None and assessment.parts.get("blank"):
                return Outcome(NOT_ANSWERED, NO_CLAIM if assessment.parts.get("words") else BLANK)
            return super().outcome(assessment)
        if assessment.score is None:
            return Outcome(NOT_ANSWERED, REFUSED)
        is_wrong = self.problem(assessment) is not None
        return Outcome(NOT_ANSWERED, REFUSED_WRONGLY if is_wrong else REFUSED_RIGHTLY)

    @property
    def line(self) -> str:
        """A sentence or citation that does not hold, or a wrong refusal."""
        return (
            "the passages that a sentence cites do not entail it (probability below "
            f"{self.threshold:g}, threshold), a citation is not needed or incorrect, it is blank, "
            "or it refuses a question that the passages answer"
        )

    def problem(self, assessment: Assessment) -> str | None:
        """Return what is wrong with an answer, in one sentence: a wrong refusal, or what its
        sentences or citations lack.
        """
        if assessment.score is None and assessment.verdict is None:
            return None
        parts = assessment.parts
        if assessment.verdict == "refused":
            if parts.get("false_denials"):
                return "it says that the passages do not mention something that they mention"
            return (
                "it refuses a question that the documents answer" if assessment.score == 0 else None
            )
        if parts.get("blank"):
            return "not answered: it is blank, or claims nothing"
        sentences, supported, citations, precise = (
            int(parts.get(name, 0))
            for name in ("statements", "supported_statements", "citations", "precise_citations")
        )
        result = []
        if wrong := max(0, sentences - supported):
            result.append(f"{wrong} of {amount(sentences, 'sentence')} not supported")
        if wrong := max(0, citations - precise):
            result.append(f"{wrong} of {amount(citations, 'citation')} not needed or incorrect")
        return "; ".join(result) or None

    def view(self, sample: Sample, assessment: Assessment) -> View:
        """Return the sentences with their citations, the gold answers, and notes on passages."""
        documents = sample.documents or ()
        rows = EvidenceRows(assessment.evidence, CitedSentence, GoldAnswerRow, Coverage, Refusal)
        sentences = rows.select(CitedSentence)
        trace = evidence.GroundingTrace(
            sentences,
            rows.select(GoldAnswerRow),
            {item.document: item for item in rows.select(Coverage)},
            rows.select(Refusal),
            rows.other_items,
            len(documents),
            evidence.find_nearest(sentences, documents, self.split),
        )
        return View(
            data=trace,
            shows_golds=bool(trace.golds),
            judged=[JudgedPiece(item.text, item.mark, item.why) for item in trace.sentences],
            mark=evidence.judgement_of(assessment, self.problem(assessment)),
            passages={
                number: evidence.note_on(number, document.supports, sample, trace)
                for number, document in enumerate(documents, start=1)
            },
        )

    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:  # noqa: ARG002
        """Return every figure of Trust-Eval, with intervals over answers; nothing is random."""
        return summarise(self, assessments)

    def build_weighted_figures(self, assessments: Iterable[Assessment]) -> WeightedAnswers:
        """Return every figure, the Trust-Score with all that it is made of, over resamples."""
        return WeightedAnswers.of(self, assessments)
