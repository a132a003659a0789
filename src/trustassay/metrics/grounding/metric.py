"""The grounding metric: correct, supported by what it cites, and refused when it should be."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import ClassVar

from trustassay.capabilities import Entailment
from trustassay.core.outcome import (
    BLANK,
    NO_CLAIM,
    NOT_ANSWERED,
    REFUSED,
    REFUSED_RIGHTLY,
    REFUSED_WRONGLY,
    Outcome,
)
from trustassay.event_loop import all_of
from trustassay.judging.claims import (
    NO_PART,
    REFERENCES,
    Claim,
    build_claims,
    claim_as_in_paper,
    claims_as_in_paper,
    plain_answer,
)
from trustassay.judging.details import KnownDetails
from trustassay.judging.passages import Passages, passage_text, read, titled
from trustassay.judging.second_reader import READ, ROLE, read_again
from trustassay.judging.verdict import speaking_of, supported_by_text
from trustassay.metric import Assessment, Context, Figure, Need, Summary, directions
from trustassay.metrics.grounding import evidence, maths
from trustassay.metrics.grounding.evidence import Coverage, Gold, Refusal, Sentence
from trustassay.metrics.grounding.options import GroundingOptions
from trustassay.metrics.grounding.summary import FIGURES, WeightedAnswers, summarise
from trustassay.sample import Document, Problem, Sample, missing
from trustassay.text.citations import (
    citation_markers,
    cites,
    without_citations,
    without_citations_as_in_paper,
)
from trustassay.text.limits import TextWork
from trustassay.text.unicode import folded
from trustassay.text.words import amount
from trustassay.views import EvidenceRow, Judged, Rows, View

Flags = Sequence[Sequence[int]]


class Assessing:
    """The state of one assessment; :meth:`result` is the algorithm."""

    def __init__(self, metric: GroundingOptions, context: Context) -> None:
        sample = context.sample
        self.metric, self.sample, self.models = metric, sample, context.models
        self.second = context.second
        self.limits, self.work = context.limits, TextWork.on(sample)
        self.rules = metric.rules
        self.response = sample.response or ""
        self.documents = sample.documents or ()
        self.golds = metric.golds(sample)
        self.listed = metric.correctness == "em5"
        self.as_in_paper = not self.rules.lists
        strip = without_citations_as_in_paper if self.as_in_paper else plain_answer
        self.shown = strip(self.response)
        self.texts = [self.text(document) for document in self.documents]
        self.titles = [self.title(document) for document in self.documents]
        self.blocks = [self.block(*pair) for pair in zip(self.titles, self.texts, strict=True)]
        given = self.response, self.golds, self.rules
        self.elements = maths.predictions(*given) if self.listed else []
        self.found = self.statements()
        self.limits.count("statements", len(self.found))
        self.limits.count("citations", sum(len(one.citations) for one in self.found))
        pairs = len(self.blocks) * len(self.golds)
        self.limits.count("pairs of a passage and a gold answer", pairs)
        self.refusal = metric.refusal_words(self.response)
        self.stripped = self.refusal if self.rules.one_text else metric.refusal_words(self.shown)
        self.premises: dict[tuple[int, ...], str] = {}
        self.asked: dict[tuple[str, str], Entailment] = {}
        self.made_of: dict[tuple[str, str], Sequence[int]] = {}
        """The places of the passages that a premise is made of."""
        self.twice: dict[str, dict[tuple[str, str], float]] = {}
        self.read_twice = 0
        self.read = 0

    async def result(self) -> Assessment:
        """Decide coverage, correctness and citations."""
        (coverage, computed), hits, judges = await asyncio.gather(
            self.coverage(), self.hits(), self.judged(self.found)
        )
        if self.second and self.refusal is None:
            judges = await self.by_both(coverage, judges)
        return await self.work(self.assessment, coverage, hits, judges, computed)

    def assessment(
        self, coverage: Flags | None, hits: Sequence[bool], judges: Sequence[_Judge], computed: bool
    ) -> Assessment:
        """Return what was found, with the evidence."""
        refusal, result = self.refusal, self.found
        final = [judge(coverage) for judge in judges]
        claims = [judgement for s, judgement in zip(result, final, strict=True) if self.claims(s)]
        parts = {
            "answered": float(refusal is None),
            "answered_stripped": float(self.stripped is None),
            "words": float(len(self.shown.split())),
            "blank": float(not claims),
            **self.gold_parts(coverage, hits),
            **citation_parts(claims),
            **({"false_denials": float(len(self.denied))} if self.denied else {}),
            **({READ: float(self.read_twice)} if self.second else {}),
        }
        score, reason = maths.scored(parts, self.metric.correctness)
        return self.metric.assessed(
            self.sample,
            score,
            self.evidence(coverage, hits, final, computed),
            verdict="answered" if refusal is None else "refused",
            reason="; ".join([reason, *self.denied.values()]),
            parts=parts,
        )

    # reading

    def text(self, document: Document) -> str:
        """Return the text of a passage as it is read."""
        if self.as_in_paper:
            return document.text if document.excerpt is None else document.excerpt
        return passage_text(document)

    def title(self, document: Document) -> str:
        """Return the title of a passage as it is read."""
        return document.title if self.as_in_paper else folded(document.title)

    def block(self, title: str, text: str) -> str:
        """Return the premise for a passage; the paper's has a title even where it is empty."""
        return titled(text, title) if self.rules.untitled else f"Title: {title}\n{text}"

    def statements(self) -> list[Claim]:
        """Return the statements of the response: sentences, or "question element" for each element
        of a list.
        """
        split, question = self.metric.split, self.sample.question
        if not self.listed and self.as_in_paper:
            return claims_as_in_paper(self.response, split)
        if not self.listed:
            rules = self.rules
            return build_claims(
                question, self.response, split, trailing=rules.trailing, lines=rules.lines
            )
        elements = maths.listed(self.response, self.golds, self.rules)
        if self.as_in_paper:
            return [claim_as_in_paper(f"{question} {element}") for element in elements]
        return [
            Claim(
                f"{question} {element}",
                f"{question} {folded(without_citations(element)).strip()}",
                citations=tuple(n for marker in citation_markers(element) for n in marker.numbers),
            )
            for element in elements
        ]

    def claims(self, claim: Claim) -> bool:
        """Whether a statement is to be supported by what it cites.

        What says that the passages do not speak of a topic needs no citation, unless it is wrong.
        """
        if claim.topic is not None and not claim.citations:
            return self.denied.get(claim.text) is not None
        if claim.why in (REFERENCES, NO_PART):
            return False
        if self.refusal is not None and claim.refuses:
            return True  # the figures of all responses count it, as Trust-Eval does
        return claim.hypothesis is not None or self.listed or not self.rules.asides

    @cached_property
    def passages(self) -> Passages:
        """The passages, parted into sentences."""
        return Passages(self.documents, self.metric.split)

    @cached_property
    def denied(self) -> dict[str, str]:
        """What statements deny that a passage speaks of, and the passage does, in words."""
        result: dict[str, str] = {}
        topics = [(claim.text, claim.topic) for claim in self.found if claim.topic]
        every = [one for own in self.passages.sentences for one in own] if topics else []
        for text, topic in topics:
            if sentence := speaking_of(topic, every):
                result[text] = f"passage [{sentence.passage + 1}] speaks of “{topic}”"
        return result

    @cached_property
    def details(self) -> KnownDetails:
        """The numbers, dates and names of the passages."""
        return KnownDetails(self.texts, self.titles, folded(self.sample.question))

    def lacks(self, hypothesis: str) -> list[str]:
        """Return the details of a statement that no passage has; the paper looks for none."""
        return [] if self.as_in_paper else self.details.missing(hypothesis)

    # asking

    async def entail(self, pairs: Iterable[tuple[str, str]]) -> list[bool]:
        """Ask for all pairs at once; the probabilities are kept for the evidence."""
        pairs = list(pairs)
        self.read += sum(len(premise) for premise, _ in pairs)
        self.limits.count("characters to be read for it", self.read)
        replies = await all_of(map(self.reply, pairs))
        self.asked.update(zip(pairs, replies, strict=True))
        return [self.metric.entails(reply) for reply in replies]

    async def reply(self, pair: tuple[str, str]) -> Entailment:
        """Return the first reader's probabilities; of a statement that both read, theirs."""
        premise, hypothesis = pair
        if self.as_in_paper:
            first = await self.models.entail(*pair)
        else:
            first = await read(self.models, *pair)
        if not self.as_in_paper and self.metric.entails(first) and pair in self.made_of:
            texts, titles = zip(
                *((self.texts[i], self.titles[i]) for i in self.made_of[pair]), strict=True
            )
            how = "\n".join(texts), " ".join(titles)
            first = await supported_by_text(
                self.models, hypothesis, *how, first, self.metric.threshold
            )
        if not self.second or hypothesis not in self.twice:
            return first
        self.twice[hypothesis][pair] = round(first.entailment, 2)
        own = Passages([Document("", premise)], self.metric.split)
        shown = await self.work(own.windows, hypothesis)
        return await self.second.verdict(self.models, shown, hypothesis, first)

    def probability(self, premise: str, hypothesis: str) -> float | None:
        """Return the probability that was replied, to two decimals, if it was asked for."""
        reply = self.asked.get((premise, hypothesis))
        return None if reply is None else round(reply.entailment, 2)

    async def coverage(self) -> tuple[Flags | None, bool]:
        """Return which document supports which gold answer, and whether that was computed.

        Given flags count, where they are as many as the gold answers. Otherwise entailment
        decides, from the passage to the claim; for short answers an alias must be in the
        passage, and the passage entail the question followed by that alias (Song et al. 2025,
        data construction).
        """
        given = [document.supports or () for document in self.documents]
        number = len(self.golds) or len(given[0] if given else ())
        if self.sample.supports_known and number and all(len(f) == number for f in given):
            return given, False
        if not self.golds:
            return None, False
        pairs = await self.work(self.coverage_pairs)
        result = [[0] * len(self.golds) for _ in self.blocks]
        for (d, g), label in zip(pairs, await self.entail(pairs.values()), strict=True):
            result[d][g] = int(label)
        return result, True

    def coverage_pairs(self) -> dict[tuple[int, int], tuple[str, str]]:
        """Return what is to be asked of each document and gold answer, by their indices."""
        result = {}
        for (d, block), (g, gold) in product(enumerate(self.blocks), enumerate(self.golds)):
            if self.metric.correctness == "cm":
                result[d, g] = block, gold[0]
            elif (alias := maths.mentions(block, gold, self.rules)) is not None:
                result[d, g] = block, f"{self.sample.question} {alias}"
        return result

    async def hits(self) -> list[bool]:
        """Return which gold answers the response gives."""
        if self.metric.correctness == "cm":
            return await self.entail((self.shown, gold[0]) for gold in self.golds)
        if self.metric.correctness == "em":
            return await self.work(maths.exact_hits, self.shown, self.golds, self.rules)
        if self.listed:
            return list(maths.list_match(self.elements, self.golds, self.rules).hits)
        return []

    async def judged(self, statements: Sequence[Claim]) -> list[_Judge]:
        """Ask what the verdicts of statements need: joint, each alone, the others without it.

        A question whose answer cannot matter is not asked.
        """
        given = len(self.blocks), self.rules, self.metric.at_most_citations
        judges = [
            _Judge(
                self, hypothesis_of(s), maths.cited(s.citations if self.claims(s) else (), *given)
            )
            for s in statements
        ]
        steps = zip(*(judge.questions() for judge in judges), strict=True)
        while questions := await self.work(next, steps, None):
            await self.entail(chain.from_iterable(questions))
        return judges

    async def by_both(self, coverage: Flags | None, judges: Sequence[_Judge]) -> list[_Judge]:
        """Return the verdicts of both readers on the statements that decide (:func:`read_again`);
        those that cite nothing have nothing to be read.
        """

        def bad(judge: _Judge) -> bool:
            judgement = judge(coverage)
            return not judgement.supported or judgement.points < judgement.counted

        async def again(place: int) -> _Judge:
            before = judges[place]
            self.twice[before.hypothesis] = {}
            (judge,) = await self.judged([self.found[place]])
            return judge

        cite = [place for place, one in enumerate(judges) if one.indices]
        result, self.read_twice = await read_again(judges, cite, bad, again)
        return result

    # writing down

    def gold_parts(self, coverage: Flags | None, hits: Sequence[bool]) -> dict[str, float]:
        """Return the parts that need gold answers or support flags; none if there are none."""
        parts: dict[str, float] = {}
        covered = covered_golds(coverage, len(self.golds))
        if covered is not None:
            parts["answerable"] = float(any(covered))
        if not self.golds or self.metric.correctness == "none":
            return parts
        parts |= {"golds": float(len(self.golds)), "hits": float(sum(hits))}
        if covered is not None:
            both = [hit and c for hit, c in zip(hits, covered, strict=True)]
            parts |= {"supported": float(sum(covered)), "supported_hits": float(sum(both))}
        if self.listed:
            parts |= self.list_parts(covered)
        return parts

    def list_parts(self, covered: Sequence[int] | None) -> dict[str, float]:
        """Return the parts of a list answer."""
        whole = maths.list_match(self.elements, self.golds, self.rules)
        parts = {"elements": float(len(whole.elements)), "precise_elements": float(whole.precise)}
        if covered is None:
            return parts
        supported = [gold for gold, flag in zip(self.golds, covered, strict=True) if flag]
        backed = maths.list_match(self.elements, supported, self.rules)
        parts["supported_elements"] = float(backed.precise)
        passages = [document.text for document in self.documents]
        share = maths.wrong_in_documents(self.elements, supported, passages, self.rules)
        return parts if share is None else parts | {"wrong_in_documents": share}

    def evidence(
        self,
        coverage: Flags | None,
        hits: Sequence[bool],
        final: Sequence[maths.Judgement],
        computed: bool,
    ) -> Iterator[EvidenceRow]:
        """Yield what was found: the words of a refusal, statements, gold answers, passages.

        The words of a refusal need no support; they count in the figures of all responses alone.
        What claims nothing counts in none.
        """
        premise = self.premise
        if self.refusal is not None:
            yield Refusal(self.refusal, self.metric.settings()["refusal"])
        for s, judgement in zip(self.found, final, strict=True):
            claims = self.claims(s)
            needed = claims and (self.refusal is None or bool(s.citations))
            hypothesis = hypothesis_of(s)
            joint = premise(judgement.citations), hypothesis
            why = (
                judgement.why if needed else "a refusal" if claims else s.why or "it claims nothing"
            )
            if needed and (lacks := self.lacks(hypothesis)):
                why = f"no passage has {', '.join(lacks[:6])}"
            yield Sentence(
                "list item" if self.listed else "sentence",
                s.text,
                judgement.supported if needed else None,
                self.probability(*joint),
                self.denied.get(s.text, why) if s.topic else why,
                [
                    evidence.Cited(
                        c.number, c.verdict, self.probability(premise([c]), hypothesis), c.why
                    )
                    for c in judgement.citations
                ],
                self.twice.get(hypothesis, {}).get(joint),
            )
        golds = self.golds if self.metric.correctness != "none" else ()
        covered = covered_golds(coverage, len(golds))
        for g, gold in enumerate(golds):
            supported = None if covered is None else bool(covered[g])
            entailment = self.probability(self.shown, gold[0])
            yield Gold(gold[0], gold[1:], bool(hits[g]), supported, entailment)
        for number, flags in enumerate(coverage or (), 1):
            yield Coverage(number, list(flags), computed)

    def premise(self, citations: Iterable[maths.Citation]) -> str:
        """Join the passages that count among these citations, in their order."""
        uncounted = ("invalid", "beyond limit", "duplicate")
        return self.joined(c.index for c in citations if c.verdict not in uncounted)

    def joined(self, indices: Iterable[int]) -> str:
        """Return passages as one premise, made once."""
        key = tuple(indices)
        if key not in self.premises:
            self.premises[key] = "\n".join(self.blocks[i] for i in key)
        return self.premises[key]


def hypothesis_of(claim: Claim) -> str:
    """Return what is judged of a statement; of one that claims nothing its text."""
    return claim.text if claim.hypothesis is None else claim.hypothesis


class _Judge:
    """The citations of one statement, and the questions that they raise."""

    def __init__(self, answer: Assessing, hypothesis: str, citations: list[maths.Citation]) -> None:
        self.answer, self.hypothesis, self.citations = answer, hypothesis, citations
        self.indices = [c.index for c in citations if c.open]
        self.lacks = bool(answer.lacks(hypothesis)) if self.indices else False

    def pair(self, indices: Iterable[int]) -> tuple[str, str]:
        indices = list(indices)
        pair = self.answer.joined(indices), self.hypothesis
        self.answer.made_of[pair] = indices
        return pair

    def entails(self, indices: Iterable[int]) -> bool:
        reply = self.answer.asked[self.pair(indices)]
        return not self.lacks and self.answer.metric.entails(reply)

    def questions(self) -> Iterator[list[tuple[str, str]]]:
        """Yield what is asked in three steps, each by the replies to the one before."""
        own = self.indices
        yield [self.pair(own)] if own else []
        each = own if len(own) > 1 and self.entails(own) else []
        yield [self.pair([index]) for index in each]
        needed = [place for place, index in enumerate(each) if not self.entails([index])]
        yield [self.pair(maths.rest_of(own, place)) for place in needed]

    def __call__(self, coverage: Flags | None) -> maths.Judgement:
        return maths.judged(self.citations, self.entails, coverage or (), self.answer.rules)


def covered_golds(coverage: Flags | None, golds: int) -> list[int] | None:
    """Return for each gold answer whether some document supports it, if that is known."""
    if coverage is None:
        return None
    return [int(any(flags)) for flags in zip(*coverage, strict=True)] or [0] * golds


def citation_parts(final: Sequence[maths.Judgement]) -> dict[str, float]:
    """Return what the citation figures are made of."""
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
            list), ``cm`` (gold claims that the response entails), ``none``; ``auto`` takes ``cm``
            if samples have claims or their answers are whole sentences, else ``em``.
        splitter: sentence splitter by name (``sentencex``, ``punkt``, ``lines``; a language may
            follow, as in ``sentencex:de``) or a function; ``None``: the profile's.
        refusal: refusal detector by name (``phrases``, ``paper``) or a function of the response.
        threshold: probability from which a pair counts as entailed.
        at_most_citations: citations of a statement that count; ``None``: all.
        cited_only: an answer that cites none of its documents has no score.
        others: see :class:`~trustassay.metrics.grounding.options.Rules`; ``None``: the profile's.
    """

    title: ClassVar[str] = "Grounding of cited answers (Trust-Eval)"
    part_directions = directions(neither=" ".join(maths.PARTS))
    fills: ClassVar[tuple[str, ...]] = ("documents",)
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    verdicts: ClassVar[tuple[str, ...]] = ("answered", "refused")
    figures: ClassVar[Mapping[str, Figure]] = FIGURES

    def problems(self, sample: Sample) -> list[Problem]:
        """A sample needs a response and documents (which may be an empty list)."""
        result = missing(sample, response="the text to assess", documents="the passages shown")
        flags = {len(document.supports or ()) for document in sample.documents or ()}
        if len(flags) > 1 and not self.golds(sample):
            result.append(Problem("documents", "have lists of supports that differ in length"))
        return result

    def needs(self) -> Sequence[Need]:
        """An entailer; a second reader, and a retriever for samples without documents, if any."""
        return (Need("entail"), Need("entail", ROLE, optional=True), Need("search", optional=True))

    async def assess(self, context: Context) -> Assessment:
        """Score one answer; the trace of every decision is in the evidence."""
        sample = context.sample
        if self.cited_only and not cites(sample.response or "", len(sample.documents or ())):
            return self.assessed(sample, None, reason="cites no document")
        return await (await TextWork.on(sample)(Assessing, self, context)).result()

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
            "the passages cited by one of its sentences do not entail it (probability below "
            f"{self.threshold:g}, threshold), a citation is not needed or incorrect, it is blank, "
            "or it refuses what the passages answer"
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
                return "it denies that the passages speak of what they do speak of"
            return "refused, though it could be answered" if assessment.score == 0 else None
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
        rows = Rows(assessment.evidence, Sentence, Gold, Coverage, Refusal)
        trace = evidence.Trace(
            rows.of(Sentence),
            rows.of(Gold),
            {one.document: one for one in rows.of(Coverage)},
            rows.of(Refusal),
            rows.rest,
            len(documents),
        )
        text = "".join(sentence.text for sentence in trace.sentences)
        told = "".join(text.split()) == "".join((sample.response or "").split())
        return View(
            data=trace,
            tells_response=bool(text) and told,
            tells_golds=bool(trace.golds),
            judged=[Judged(one.text, one.mark, one.why) for one in trace.sentences],
            mark=evidence.judgement_of(assessment, self.problem(assessment)),
            passages={
                number: evidence.note_on(number, document.supports, sample, trace)
                for number, document in enumerate(documents, start=1)
            },
        )

    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:  # noqa: ARG002
        """Return every figure of Trust-Eval, with intervals over answers; nothing is random."""
        return summarise(self, assessments)

    def weighted(self, assessments: Iterable[Assessment]) -> WeightedAnswers:
        """Return every figure, the Trust-Score with all that it is made of, over resamples."""
        return WeightedAnswers.of(self, assessments)
