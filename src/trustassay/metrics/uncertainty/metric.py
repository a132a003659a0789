"""The metric ``uncertainty``: collects replies and tokens, and computes the chosen parts."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

import numpy as np

from trustassay.core.assessment import REMARKS, compute_summary
from trustassay.core.capabilities import Entailment, Models, TokenLogprob
from trustassay.core.event_loop import gather_all
from trustassay.core.evidence import View
from trustassay.core.metric import (
    REFUSED_PART,
    Assessment,
    Context,
    Summary,
    directions,
    reply_unless_empty,
)
from trustassay.core.prompts import load_prompt
from trustassay.core.sample import TOKENS_FIELD, Sample, is_blank
from trustassay.core.token_logprobs import FittedTokens, fit_tokens
from trustassay.errors import AssessmentError, CallError
from trustassay.judging.claims import Claim, build_claims, strip_answer
from trustassay.judging.passages import ask_reader
from trustassay.judging.refusal import find_refusal
from trustassay.metrics.harmonicity.asking import PromptPerturber
from trustassay.metrics.uncertainty import maths
from trustassay.metrics.uncertainty.evidence import (
    LEAST_SURE,
    MAX_STORED_TOKENS,
    DoubtfulSentence,
    DoubtfulToken,
    OtherReply,
    StoppingRow,
    view_of,
)
from trustassay.metrics.uncertainty.options import (
    MIN_REPLIES,
    PARTS,
    TOKEN_FAMILIES,
    UncertaintyOptions,
    UncertaintyPart,
)
from trustassay.metrics.uncertainty.tokens import (
    REPLY_LOGPROBS,
    TOKEN_COUNTS,
    TOKENS_UNLIKELY,
    UNUSED,
    ReplyLikelihoods,
    TokenRemarks,
    count_tokens,
    explain_unused,
    read_likelihoods,
    read_tokens,
    relate_alternatives,
)
from trustassay.statistics import Floats, Places
from trustassay.statistics.sequential import decide_sides, min_further_values
from trustassay.text.limits import TextWork
from trustassay.text.numbers import amount

NO_TOKENS = "needs token log-probabilities of the answer"
SUMS_OF_TOKENS = frozenset({"nll", "mean_nll", "cocoa_nll", "cocoa_mean_nll", "ccp"})
"""Parts that need the log-probability of every token, and not only those of alternatives."""


class ComparedTexts(NamedTuple):
    """The answer and k other replies; equal ones are compared only once."""

    claims: Sequence[Claim]
    """The answer's sentences."""
    unlike: Sequence[str]
    """The different texts, the answer first, each as a statement."""
    of: Places
    """The place of each reply in ``unlike``, shape (k,)."""


class ReplyCollector:
    """Asks for replies in a fixed order, so that a smaller number of them is a prefix of a larger.

    Replies to perturbed prompts are those of ``harmonicity`` with its defaults, in its order.
    """

    def __init__(self, options: UncertaintyOptions, context: Context) -> None:
        self._options = options
        self._models, self._question = context.models, context.sample.question
        self._last_repeat = 0  # repeat 0 is the answer itself
        self._perturbed: PromptPerturber | None = None
        if options.replies == "perturbed":
            self._perturbed = PromptPerturber(options.perturbing, context.sample, context.models)

    async def ask_more(self, n: int) -> list[str]:
        """Return the next n replies, an empty text for an empty one.

        Raises:
            AssessmentError: perturbed prompts were refused, or their replies empty, too often.
        """
        if self._perturbed:
            return [item.answer for item in await self._perturbed.ask_more(n)]
        text, name = self._options.asks(self._question)
        temperature, max_tokens = self._options.temperature, self._options.max_tokens
        chat = partial(self._models.chat, text, temperature=temperature, max_tokens=max_tokens)
        first_repeat, self._last_repeat = self._last_repeat + 1, self._last_repeat + n
        calls = (
            chat(prompt=name, repeat=number) for number in range(first_repeat, first_repeat + n)
        )
        replies = await gather_all(reply_unless_empty(item) for item in calls)
        return [reply.text if reply else "" for reply in replies]


@dataclass(frozen=True)
class Uncertainty(UncertaintyOptions):
    """How uncertain is the model about an answer, by other replies and by its tokens?

    Every statistic is a part, and larger with more doubt; one of them is the score. The replies are
    the ``resamples`` of a sample or, without them, those of the model, asked ``samples`` times.
    A short reply is compared as the statement that it makes together with its question.

    Args:
        parts: parts to compute, joined by ``+``: parts (``degree``) and groups: ``sentences``,
            ``meanings``, ``tokens``, ``both``; ``pairs``, ``words``, ``vectors``, ``claims``,
            ``asked``, which take more calls or libraries. ``auto`` is the first four, ``all`` all.
        score: the part that is the score, as a number from 0 to 1; default: ``selfcheck_nli``,
            or else the first one.
        samples: number of replies to ask for, 2 or more; ``auto``: ask until it is known on which
            side of ``doubtful_from`` the score of ``most`` replies lies
            (:mod:`~.statistics.sequential`).
        least, most: the smallest and largest number for ``auto``. confidence: the smallest
            probability with which the verdict is that of ``most`` replies; with 1, stop only when
            the remaining replies cannot change it.
        replies: what to ask if a sample has no ``resamples``: ``resamples``, the question
            again, or ``perturbed``, the prompts of ``harmonicity``, at temperature 0.
        temperature, max_tokens: settings of these calls. prompt: file with a template with the
            ``question``; by default the prompt is the question.
        alternatives: number of alternatives to request for each token of the answer; 0 requests
            none, and -1 requests no tokens at all.
        doubtful_from: the score from which an answer needs a look, and the ``selfcheck_nli`` from
            which a sentence is doubtful.
        splitter: name of a sentence splitter, as for ``grounding``.

    Token probabilities are the sample's ``token_logprobs``. Without them, they are those of the
    model's answer at temperature 0, if it equals the response; otherwise a model in this process
    gives those of the response as its reply, without alternatives. Parts for which something is
    missing are left out, and so is the score if it is such a part: means are over the other
    answers. The same holds for log-probabilities that cannot be used, which the summary counts by
    reason. Empty replies are left out; a sample with more empty replies than others fails. A
    refusal has no score.
    """

    name: ClassVar[str] = "uncertainty"
    title: ClassVar[str] = "Uncertainty of the model that answered"
    lower_is_better: ClassVar[bool] = True
    counts_outcomes: ClassVar[bool] = False
    """Doubt is a degree: where it becomes an error depends on the model and the questions."""
    verdicts: ClassVar[Sequence[str]] = ("sure", "doubtful")
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    part_directions = directions(
        lower=" ".join(PARTS),
        neither=" ".join(
            ["replies empty asked undecided different", *TOKEN_COUNTS, *UNUSED.values()]
        ),
    )

    async def assess(self, context: Context) -> Assessment:
        """Compare the replies; the evidence holds sentences, replies and doubtful tokens."""
        sample, response = context.sample, context.response()
        all_replies, stop = (
            await self._collect_replies(context) if self.reads_replies else ((), None)
        )
        # Raises where most replies are blank: a few are no basis for a score.
        replies, empty = _without_blank(all_replies) if self.reads_replies else ([], 0)
        tokens, unusable = (
            await self._find_tokens(context) if TOKEN_FAMILIES & self.families else FittedTokens()
        )
        reads_likelihoods = "meanings" in self.families
        likelihoods = read_likelihoods(sample) if reads_likelihoods else ReplyLikelihoods()
        texts = await TextWork.for_sample(sample)(
            self._build_texts, sample.question, response, replies
        )
        context.limits.check_count("statements", len(texts.claims))
        reasons = {TOKENS_FIELD: unusable, REPLY_LOGPROBS: likelihoods.unusable}
        token_counts = count_tokens(tokens, reasons)
        parts: dict[str, float] = {"replies": len(replies), "empty": empty, **token_counts}
        parts["different"] = len(set(texts.of.tolist()))
        if stop:
            parts |= {"asked": stop.asked, "undecided": stop.why == "most"}
        rows: list[DoubtfulSentence] = []
        meanings: Sequence[int] = ()
        # "sentences" come first: "both" multiplies token scores by the disagreement found there.
        if self.families & {"sentences", "both", "pairs"}:
            rows = await self._score_sentences(context.models, texts, parts)
        if "meanings" in self.families:
            meanings = await self._score_meanings(
                context.models, texts, likelihoods.logprobs, parts
            )
        if "words" in self.families:
            sentences = [claim.text for claim in texts.claims]
            parts |= maths.compute_word_parts(
                self.chosen, sentences, [response, *replies], self.split
            )
        if "vectors" in self.families:
            parts |= await self._score_vectors(context, texts, replies)
        if tokens:
            await self._score_tokens(context.models, tokens, parts)
        if "asked" in self.families:
            await self._ask_model(context, texts, replies, parts)
        # A family computes all of its parts; those that were not chosen are dropped here.
        counts = ("replies", "empty", "asked", "undecided", "different", *token_counts)
        wanted = (*counts, *self.chosen)
        parts = {name: float(parts[name]) for name in wanted if name in parts}
        if find_refusal(texts.claims):
            parts[REFUSED_PART] = 1.0
        reply_rows = _build_reply_rows(texts, replies, meanings)
        return self._build_assessment(sample, parts, rows, reply_rows, tokens, stop)

    def _build_assessment(
        self,
        sample: Sample,
        parts: dict[str, float],
        rows: Sequence[DoubtfulSentence],
        reply_rows: Sequence[OtherReply],
        tokens: Sequence[TokenLogprob],
        stop: StoppingRow | None,
    ) -> Assessment:
        part, score, verdict = self.scored, None, None
        if parts.get(REFUSED_PART):
            # A model that refuses every time is sure, and yet it answered nothing.
            reason = "not assessable: the response is a refusal"
        elif part.name in parts:
            score = part.score(parts[part.name], int(parts["replies"]))
            verdict = "doubtful" if score >= self.doubtful_from else "sure"
            reason = f"{part.name} {parts[part.name]:.2f}"
            reason += _build_reason(rows, reply_rows, parts)
            reason += f" ({stop.asked} of at most {stop.most} replies asked for)" if stop else ""
        else:
            reason = f"not assessable: {_explain_missing(part, tokens, parts)}"
        # Tokens and response may differ in white space: a token's start is found by counting the
        # other characters before it.
        letters = [n for n, letter in enumerate(sample.response or "") if not letter.isspace()]
        letters_before = accumulate(
            (len("".join(token.token.split())) for token in tokens), initial=0
        )
        unsure = [
            DoubtfulToken(
                token.token, round(p, 4), place, letters[n] if token.token.strip() else None
            )
            for place, (token, n) in enumerate(zip(tokens, letters_before, strict=False))
            if token.token and (p := math.exp(token.logprob)) < LEAST_SURE
        ]
        evidence = (*rows, *reply_rows, *filter(None, [stop]), *unsure[:MAX_STORED_TOKENS])
        return self.build_assessment(
            sample, score, evidence, verdict=verdict, reason=reason, parts=parts
        )

    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:  # noqa: ARG002
        """Return the mean of every part, what parts need that no sample has, and what was not used
        of the samples' log-probabilities."""
        remarks = TokenRemarks()

        # One pass over the assessments, which may be a stream from a file.
        def read() -> Iterator[Assessment]:
            for assessment in assessments:
                if assessment.error is None:
                    remarks.add(assessment.id, assessment.parts)
                yield assessment

        result = compute_summary(self.statistics, read(), self.score_range)
        names = [name for name in result.not_applicable if name in PARTS]
        reasons = dict.fromkeys((n for n in names if PARTS[n].family in TOKEN_FAMILIES), NO_TOKENS)
        sentences = remarks.sentences()
        return replace(
            result.with_settings(self.settings()),
            not_applicable={**result.not_applicable, **reasons},
            details={REMARKS: sentences} if sentences else {},
        )

    def problem(self, assessment: Assessment) -> str | None:
        """Return why an answer is in doubt, in one sentence."""
        if assessment.verdict != "doubtful":
            return None
        # These compare no replies.
        if self.scored.family in TOKEN_FAMILIES | {"asked"}:
            return f"the model is not sure of the answer ({self.scored.name})"
        return f"other replies of the model contradict the answer ({self.scored.name})"

    def view(self, sample: Sample, assessment: Assessment) -> View:  # noqa: ARG002
        """Return the sentences, the other replies and doubtful tokens."""
        return view_of(assessment)

    # ------------------------------------------------------------------- what is read and asked

    async def _collect_replies(self, context: Context) -> tuple[Sequence[str], StoppingRow | None]:
        """Return the replies of the sample or the model, and when asking stopped, with auto."""
        if context.sample.resamples:
            return context.sample.resamples, None
        asking = ReplyCollector(self, context)
        if not self.until_decided:
            return await asking.ask_more(self.most_asked), None
        line = (self.doubtful_from, self.most, self.confidence)
        # Stand-ins are made-up replies of a plan, which counts calls without making them.
        stand_ins_before = context.models.stand_ins
        replies, values, value_by_text = list[str](), list[float](), dict[str, float]()
        wanted = max(self.least, min_further_values([], *line))
        while True:
            replies += await asking.ask_more(wanted)
            new = dict[str, str]()  # equal ones have the value of the first
            # Only replies of this round that are new: each different one is read once.
            for text in replies[len(values) :]:
                if (key := maths.normalise_reply(text)) not in value_by_text:
                    new.setdefault(key, text)
            new_values = await gather_all(self._score_reply(context, text) for text in new.values())
            value_by_text |= dict(zip(new, new_values, strict=True))
            values += [
                value_by_text[maths.normalise_reply(text)] for text in replies[len(values) :]
            ]
            # Four ways to stop: nothing to compare, a plan, a decision, no replies left.
            remaining, reason = self.most - len(replies), ""
            if math.isnan(values[0]):
                return replies, StoppingRow(len(replies), self.most, "no claim")
            if (
                context.models.stand_ins > stand_ins_before
            ):  # a plan counts the most that may be asked
                replies += await asking.ask_more(remaining)
                remaining = 0
            # The verdict may be decided while most replies are blank: then more are asked for.
            elif decide_sides(values, *line)[-1] and _has_enough(replies):
                reason = "certain" if decide_sides(values, *line[:2], 1.0)[-1] else "confident"
            if reason or not remaining:
                return replies, StoppingRow(
                    len(replies), self.most, reason if remaining else "most"
                )
            wanted = min_further_values(values, *line)

    async def _score_reply(self, context: Context, reply: str) -> float:
        """Return the score that one reply gives the answer, 0 to 1; the mean over replies counts.

        A blank reply gives ``doubtful_from`` itself, which moves no mean across it. NaN where no
        sentence claims anything.
        """
        sample, response = context.sample, context.response()
        replies = [] if is_blank(reply) else [reply]
        texts = await TextWork.for_sample(sample)(
            self._build_texts, sample.question, response, replies
        )
        claiming = [str(item.hypothesis) for item in texts.claims if item.hypothesis is not None]
        if not claiming or not replies:
            return self.doubtful_from if claiming else math.nan
        statement = texts.unlike[int(texts.of[0])]
        entailments = await gather_all(
            _entail(context.models, statement, item) for item in claiming
        )
        entailed, _, contradicted = np.array(entailments, dtype=np.float64).T
        if self.scored.name == "selfcheck_nli":
            entailed = maths.ratio(entailed, contradicted)
        return float(np.clip(1 - entailed, 0, 1).mean())

    async def _find_tokens(self, context: Context) -> FittedTokens:
        """Return the answer's tokens, none where they are not known, and why the sample's cannot be
        used."""
        sample, models = context.sample, context.models
        result = read_tokens(sample)
        # -1 says not to ask.
        if result.tokens or self.alternatives < 0 or not models.names("model"):
            return result
        text, name = self.asks(sample.question)
        options: dict[str, Any] = {"max_tokens": self.max_tokens, "logprobs": self.alternatives}
        reply = await reply_unless_empty(models.chat(text, prompt=name, **options))
        response = sample.response or ""
        # Only if the model, asked again, gives the very response: other tokens say nothing of it.
        if reply and reply.text.strip() == response.strip():
            fitted = fit_tokens(reply.logprobs, response)
            if fitted.tokens:
                return result._replace(tokens=fitted.tokens)
        if models.tells_likelihood("model"):
            with suppress(CallError):  # it refuses texts that its tokens cannot spell
                likelihood = await models.likelihood(text, response, role="model")
                tokens = tuple(TokenLogprob("", logprob) for logprob in likelihood.tokens)
                return result._replace(tokens=tokens)
        return result

    def _build_texts(self, question: str, response: str, replies: Sequence[str]) -> ComparedTexts:
        claims = build_claims(question, response, self.split)
        places: dict[str, int] = {}
        unlike: list[str] = []
        of = []
        for text in (response, *replies):
            key = maths.normalise_reply(text)
            # The answer itself comes first, and so has place 0.
            if key not in places:
                places[key] = len(unlike)
                claims_of_text = claims if not unlike else build_claims(question, text, self.split)
                statements = [claim.hypothesis for claim in claims_of_text if claim.hypothesis]
                # A short reply ("Paris") is compared as the statement that it makes with its
                # question.
                unlike.append(
                    statements[0]
                    if len(claims_of_text) == len(statements) == 1
                    else strip_answer(text)
                )
            of.append(places[key])
        return ComparedTexts(claims, unlike, np.array(of[1:], dtype=np.int64))

    # ----------------------------------------------------------------------------- the statistics

    async def _score_sentences(
        self, models: Models, texts: ComparedTexts, parts: dict[str, float]
    ) -> list[DoubtfulSentence]:
        """Compare each sentence with each reply; add the parts, and return the sentences' rows."""
        claiming = [item for item in texts.claims if item.hypothesis is not None]
        if not claiming:
            return [DoubtfulSentence(item.text) for item in texts.claims]
        places = sorted(set(texts.of.tolist()))
        column_of_place = {place: n for n, place in enumerate(places)}
        counts = np.bincount([column_of_place[item] for item in texts.of.tolist()])
        # Equal replies are read once and weigh as often as they were given.
        weights = counts / counts.sum()
        pairs = [(texts.unlike[item], str(c.hypothesis)) for c in claiming for item in places]
        entailments = await gather_all(_entail(models, *pair) for pair in pairs)
        # Last axis: probabilities of entailment, neutral, contradiction.
        table = np.array(entailments, dtype=np.float64).reshape(len(claiming), len(places), 3)
        entailed = table[..., 0]
        agreed = maths.ratio(entailed, table[..., 2])
        disagreement = np.clip(1 - entailed @ weights, 0, 1)  # rounding
        check = np.clip(1 - agreed @ weights, 0, 1)
        parts["selfcheck_nli"], parts["weakest_sentence"] = float(check.mean()), float(check.max())
        parts["disagreement"] = float(disagreement.mean())
        if "pairs" in self.families:
            parts["luq_pair"] = await self._score_pairs(
                models, claiming, [texts.unlike[o] for o in places], weights
            )
        # Numbers of the replies in the evidence: in the order in which they came first.
        number_of_reply = {item: n for n, item in enumerate(dict.fromkeys(texts.of.tolist()), 1)}
        result, row_number = [], 0
        for item in texts.claims:
            if item.hypothesis is None:
                result.append(DoubtfulSentence(item.text))
                continue
            # Rows exist for claiming sentences only, hence the separate number.
            least_agreeing = places[int(agreed[row_number].argmin())]
            value = round(float(check[row_number]), 6)
            doubtful = value >= self.doubtful_from
            unsupported_share = round(float(disagreement[row_number]), 6)
            row = DoubtfulSentence(
                item.text, value, unsupported_share, number_of_reply[least_agreeing], doubtful
            )
            result.append(row)
            row_number += 1
        return result

    async def _score_pairs(
        self,
        models: Models,
        claiming: Sequence[Claim],
        distinct_replies: Sequence[str],
        weights: Floats,
    ) -> float:
        """Return LUQ-pair: for each reply, the sentence that agrees best counts."""
        sentences_of_replies = [
            [
                sentences.hypothesis or sentences.text
                for sentences in build_claims("", t, self.split)
            ]
            for t in distinct_replies
        ]
        # Asked in one batch; the loops below consume the replies in the same order.
        pairs = [
            (sentence, str(claim.hypothesis))
            for claim in claiming
            for sentences in sentences_of_replies
            for sentence in sentences
        ]
        results = iter(await gather_all(_entail(models, *pair) for pair in pairs))
        total = 0.0
        for _ in claiming:
            for weight, sentences in zip(weights, sentences_of_replies, strict=True):
                outcomes = [next(results) for _ in sentences]
                agreed = [
                    maths.ratio(outcome.entailment, outcome.contradiction) for outcome in outcomes
                ]
                total += weight * float(max(agreed, default=0.0))
        return 1 - total / len(claiming)

    async def _score_vectors(
        self, context: Context, texts: ComparedTexts, replies: Sequence[str]
    ) -> dict[str, float]:
        """Compare the token vectors of each sentence with those of the other replies' sentences."""
        places = texts.of.tolist()
        counts = Counter(places)
        # The first of equal replies stands for all of them.
        distinct_replies = [replies[places.index(place)] for place in counts]
        work = TextWork.for_sample(context.sample)
        split = await work(lambda: [[*self.split(text)] for text in distinct_replies])
        groups = [[sentence.text for sentence in texts.claims], *split]
        groups = [
            [sentence.strip() for sentence in group if not is_blank(sentence)] for group in groups
        ]
        # With a leading space, as byte-level tokenizers have learnt words.
        calls = (
            context.models.token_vectors(f" {sentence}") for group in groups for sentence in group
        )
        results = iter(await gather_all(calls))
        answer_vectors, *reply_vectors = [[next(results) for _ in group] for group in groups]
        if not answer_vectors:
            return {}
        characters = sum(len(text) for group in groups for text in group)
        value = await TextWork(characters, long=True)(
            maths.selfcheck_bertscore, answer_vectors, reply_vectors, list(counts.values())
        )
        return {"selfcheck_bertscore": float(value.mean())}

    async def _score_meanings(
        self,
        models: Models,
        texts: ComparedTexts,
        likelihoods: Sequence[float],
        parts: dict[str, float],
    ) -> Sequence[int]:
        """Compare the replies with each other, and add the parts.

        Args:
            models: compares them. texts: the answer and the replies.
            likelihoods: log-probability of each reply; empty if not known.
            parts: gets the values.

        Returns:
            The number of each reply's meaning; 0 is the meaning of the answer.
        """
        n = len(texts.unlike)
        places = [(i, j) for i in range(n) for j in range(n) if i != j]
        entailments = await gather_all(
            _entail(models, texts.unlike[i], texts.unlike[j]) for i, j in places
        )
        entailment, contradiction = np.eye(n), np.zeros((n, n))
        for (i, j), outcome in zip(places, entailments, strict=True):
            entailment[i, j], contradiction[i, j] = outcome.entailment, outcome.contradiction
        unlike = maths.Matrices(entailment, contradiction)
        # From the different texts to all replies: equal ones repeat rows and columns.
        replies = maths.Matrices(*(item[np.ix_(texts.of, texts.of)] for item in unlike))
        weights, meanings = maths.similarities(replies), maths.clusters(replies)
        parts["semantic_sets"] = maths.semantic_sets(replies)
        parts["semantic_entropy"] = maths.semantic_entropy(meanings)
        parts["eigenvalue_sum"] = maths.eigenvalue_sum(weights)
        parts["degree"] = maths.degree(weights)
        parts["eccentricity"] = maths.eccentricity(weights)
        parts["kernel_entropy"] = maths.kernel_entropy(replies)
        parts["luq"] = maths.luq(maths.agreement(replies))
        if likelihoods:
            parts["semantic_entropy_weighted"] = maths.semantic_entropy(meanings, likelihoods)
        # With the answer in front, so that its cluster is number 0. The parts above leave it out.
        places_with_answer = np.concatenate([[0], texts.of])
        with_answer = maths.Matrices(
            *(item[np.ix_(places_with_answer, places_with_answer)] for item in unlike)
        )
        return [int(item) for item in maths.clusters(with_answer)[1:]]

    async def _score_tokens(
        self, models: Models, tokens: Sequence[TokenLogprob], parts: dict[str, float]
    ) -> None:
        known = [item for item in tokens if not math.isnan(item.logprob)]
        logprobs = [item.logprob for item in known]
        parts["weakest_token"] = 1 - math.exp(min(logprobs))
        # Without the least likely token a sum over the others would be too small.
        is_complete = all(map(math.isfinite, logprobs))
        if is_complete:
            parts["nll"], parts["mean_nll"] = maths.sequence_nll(logprobs), maths.mean_nll(logprobs)
        alternatives = [[p for _, p in item.alternatives] for item in known]
        # Entropies need alternatives of every token.
        if all(alternatives):
            entropies = [maths.entropy(item) for item in alternatives]
            parts["mean_entropy"], parts["max_entropy"] = float(np.mean(entropies)), max(entropies)
            parts["self_certainty"] = maths.self_certainty(alternatives)
        if "disagreement" in parts:
            # CoCoA: probability of the tokens times disagreement of the replies.
            cocoa = {
                "cocoa_nll": "nll",
                "cocoa_mean_nll": "mean_nll",
                "cocoa_entropy": "mean_entropy",
            }
            for name, value in cocoa.items():
                if value in parts:
                    parts[name] = parts[value] * parts["disagreement"]
        if "claims" in self.families and all(alternatives) and is_complete:
            parts["ccp"] = maths.claim_conditioned(await relate_alternatives(models, known))

    async def _ask_model(
        self,
        context: Context,
        texts: ComparedTexts,
        replies: Sequence[str],
        parts: dict[str, float],
    ) -> None:
        """Ask the model whether the answer is true, and whether replies support its sentences."""
        sample, models = context.sample, context.models
        if "p_true" in self.chosen:
            prompt = load_prompt(__package__, "p-true")
            text = prompt.fill(
                question=sample.question, answer=sample.response, replies=list(replies)
            )
            choice = await models.choose(text, ["true", "false"], prompt=prompt.name, max_tokens=8)
            # The probability of "true", or the choice itself where there are none: 1 for "false".
            if choice.probabilities:
                parts["p_true"] = 1 - choice.probabilities[0]
            elif choice.index is not None:
                parts["p_true"] = float(choice.index)
        claiming = [
            str(statement.hypothesis)
            for statement in texts.claims
            if statement.hypothesis is not None
        ]
        if "selfcheck_prompt" in self.chosen and claiming:
            prompt = load_prompt(__package__, "selfcheck")
            calls = [
                models.chat(
                    prompt.fill(context=reply, sentence=statement),
                    prompt=prompt.name,
                    max_tokens=8,
                )
                for statement in claiming
                for reply in replies
            ]
            judgements = [maths.score_yes_no(reply.text) for reply in await gather_all(calls)]
            parts["selfcheck_prompt"] = float(np.mean(judgements))


async def _entail(models: Models, premise: str, hypothesis: str) -> Entailment:
    """Return an entailer's probabilities; a text entails itself."""
    if premise.strip() == hypothesis.strip():
        return Entailment(1.0, 0.0, 0.0)
    return await ask_reader(models, premise, hypothesis)


def _has_enough(replies: Sequence[str]) -> bool:
    """Whether enough replies are not blank: two or more, and no fewer than the blank ones."""
    empty = sum(map(is_blank, replies))
    return len(replies) - empty >= max(empty, MIN_REPLIES)


def _without_blank(replies: Sequence[str]) -> tuple[list[str], int]:
    """Return the replies that are not blank, and the number of those that are."""
    texts = [text for text in replies if not is_blank(text)]
    empty = len(replies) - len(texts)
    if not _has_enough(replies):
        raise AssessmentError(f"{empty} of {len(replies)} replies are blank", "empty")
    return texts, empty


def _build_reply_rows(
    texts: ComparedTexts, replies: Sequence[str], meanings: Sequence[int]
) -> list[OtherReply]:
    """Return a row for each different reply, in the order in which they came first."""
    places = texts.of.tolist()
    firsts = [(places.index(place), times) for place, times in Counter(places).items()]
    return [OtherReply(replies[n], k, meanings[n] if meanings else None) for n, k in firsts]


def _explain_missing(
    part: UncertaintyPart, tokens: Sequence[TokenLogprob], parts: Mapping[str, float]
) -> str:
    """Return why a part has no value."""
    if part.family in TOKEN_FAMILIES and not tokens:
        return NO_TOKENS + explain_unused(parts, TOKENS_FIELD)
    if TOKENS_UNLIKELY in parts and part.name in SUMS_OF_TOKENS:
        return "the endpoint gives no number for a very unlikely token"
    if part.family in ("tokens", "claims"):
        return "needs alternatives of every token"
    if part.name == "semantic_entropy_weighted":
        reason = explain_unused(parts, REPLY_LOGPROBS)
        return f"needs the log-probability of each reply ({REPLY_LOGPROBS}){reason}"
    if part.name == "p_true":
        return "the model answered neither true nor false"
    return "no sentence claims anything"


def _build_reason(
    rows: Sequence[DoubtfulSentence], reply_rows: Sequence[OtherReply], parts: Mapping[str, float]
) -> str:
    """Return the second half of the reason: doubtful sentences, meanings, blank replies."""
    doubtful, message = sum(row.doubtful for row in rows), ""
    if len(rows) > 1 and doubtful:
        message = f"; doubtful sentences: {doubtful} of {len(rows)}"
    if reply_rows and reply_rows[0].meaning is not None:
        same = sum(row_of_reply.times for row_of_reply in reply_rows if row_of_reply.meaning == 0)
        message += f"; other replies with the same meaning: {same} of {parts['replies']:.0f}"
    if empty := int(parts["empty"]):
        message += f"; {amount(empty, 'empty reply', 'empty replies')} left out"
    return message
