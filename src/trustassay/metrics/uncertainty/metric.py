"""The metric ``uncertainty``."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

import numpy as np

from trustassay.capabilities import Entailment, Models, TokenLogprob, spell
from trustassay.errors import AssessmentError, CallError
from trustassay.event_loop import all_of
from trustassay.judging.claims import Claim, build_claims, plain_answer
from trustassay.judging.passages import read
from trustassay.metric import Assessment, Context, Summary, directions, unless_empty
from trustassay.metrics.uncertainty import maths, words
from trustassay.metrics.uncertainty.evidence import (
    KEPT_TOKENS,
    LEAST_SURE,
    OtherReply,
    Sentence,
    Stop,
    Token,
    view_of,
)
from trustassay.metrics.uncertainty.options import (
    FEWEST,
    OF_TOKENS,
    PARTS,
    Part,
    UncertaintyOptions,
)
from trustassay.metrics.uncertainty.tokens import read_likelihoods, read_tokens, relations
from trustassay.metrics.uncertainty.words import OtherReplies
from trustassay.prompts import shipped
from trustassay.sample import Sample, is_blank
from trustassay.statistics import Floats, Places
from trustassay.statistics.sequential import decisions, fewest_more
from trustassay.text.limits import TextWork
from trustassay.text.words import amount
from trustassay.views import View

NO_TOKENS = "needs token log-probabilities of the answer"


class Texts(NamedTuple):
    """The answer and the other replies: ``of`` gives each reply's place among the ``unlike`` ones.

    claims: the answer's sentences. unlike: texts that differ, the answer's first, each as a
    statement. of: shape (k,).
    """

    claims: Sequence[Claim]
    unlike: Sequence[str]
    of: Places


@dataclass(frozen=True)
class Uncertainty(UncertaintyOptions):
    """How much do other replies to the question, and its own tokens, leave an answer in doubt?

    Every statistic is a part, and larger where there is more doubt; one is the score. Replies are
    the ``resamples`` of a sample or, without them, those of the model, asked ``samples`` times.
    A short reply is compared as the statement that it makes with its question.

    Args:
        parts: which, by name, joined by ``+``: parts (``degree``) and groups: ``sentences``,
            ``meanings``, ``tokens``, ``both``; ``pairs``, ``words``, ``vectors``, ``claims``,
            ``asked``, which take more calls or libraries. ``auto`` is the first four, ``all`` all.
        score: the part that is the score, as a number from 0 to 1; by default ``selfcheck_nli``,
            or else the first one.
        samples: replies to ask for, 2 or more; ``auto``: until it is known on which side of
            ``doubtful_from`` the score of ``most`` replies lies (:mod:`~.statistics.sequential`).
        least, most: the fewest and the most of ``auto``. confidence: the least probability with
            which the verdict is that of ``most`` replies; 1: where the others cannot change it.
        replies: what is asked for where a sample has no ``resamples``: ``resamples``, the question
            again, or ``perturbed``, what ``harmonicity`` asks, at temperature 0.
        temperature, max_tokens: of these calls. prompt: file of a template with the ``question``;
            without it the prompt is the question.
        alternatives: of each token, to ask for where the answer's tokens are asked for; 0 to ask
            for none, and -1 not to ask for tokens at all.
        doubtful_from: the score from which an answer needs a look, and the ``selfcheck_nli`` from
            which a sentence does.
        splitter: sentence splitter by name, as of ``grounding``.

    Probabilities of tokens are the sample's ``token_logprobs`` or, without them, those of the
    model's answer at temperature 0, if that is the response, or else, by a model in this process,
    those of the response as its reply, without alternatives. Parts that need what is not known are
    left out: their means hold for the others alone. If it is the score, there is none. An empty
    reply is left out; a sample with more empty replies than others fails.
    """

    name: ClassVar[str] = "uncertainty"
    title: ClassVar[str] = "Uncertainty of the model that answered"
    lower_is_better: ClassVar[bool] = True
    counts_outcomes: ClassVar[bool] = False
    """Doubt is a degree: where it becomes an error depends on the model and the questions."""
    verdicts: ClassVar[Sequence[str]] = ("sure", "doubtful")
    evidence_template: ClassVar[str] = "evidence.html.jinja"
    part_directions = directions(
        lower=" ".join(PARTS), neither="replies empty asked undecided different tokens"
    )

    async def assess(self, context: Context) -> Assessment:
        """Compare the replies; sentences, replies and doubtful tokens stand in the evidence."""
        sample, response = context.sample, context.response()
        given, stop = await self._given(context) if self.reads_replies else ((), None)
        replies, empty = _said(given) if self.reads_replies else ([], 0)
        tokens = await self._tokens(context) if OF_TOKENS & self.families else ()
        texts = await TextWork.on(sample)(self._texts, sample.question, response, replies)
        context.limits.count("statements", len(texts.claims))
        parts: dict[str, float] = {"replies": len(replies), "empty": empty, "tokens": len(tokens)}
        parts["different"] = len(set(texts.of.tolist()))
        if stop:
            parts |= {"asked": stop.asked, "undecided": stop.why == "most"}
        rows: list[Sentence] = []
        meanings: Sequence[int] = ()
        if self.families & {"sentences", "both", "pairs"}:
            rows = await self._sentences(context.models, texts, parts)
        if "meanings" in self.families:
            meanings = await self._meanings(context.models, texts, sample, parts)
        if "words" in self.families:
            of_words = words.parts(self.chosen, texts.claims, [response, *replies], self.split)
            parts |= of_words
        if "vectors" in self.families:
            parts |= await self._vectors(context, texts, replies)
        if tokens:
            await self._of_tokens(context.models, tokens, parts)
        if "asked" in self.families:
            await self._asked(context, texts, replies, parts)
        wanted = ("replies", "empty", "asked", "undecided", "different", "tokens", *self.chosen)
        parts = {name: float(parts[name]) for name in wanted if name in parts}
        others = _others(texts, replies, meanings)
        return self._assessment(sample, parts, rows, others, tokens, stop)

    def _assessment(
        self,
        sample: Sample,
        parts: dict[str, float],
        rows: Sequence[Sentence],
        others: Sequence[OtherReply],
        tokens: Sequence[TokenLogprob],
        stop: Stop | None,
    ) -> Assessment:
        part, score, verdict = self.scored, None, None
        if part.name in parts:
            score = part.score(parts[part.name], int(parts["replies"]))
            verdict = "doubtful" if score >= self.doubtful_from else "sure"
            reason = f"{part.name} {parts[part.name]:.2f}"
            reason += _reason(rows, others, parts)
            reason += f" ({stop.asked} of up to {stop.most} asked)" if stop else ""
        else:
            reason = f"not assessable: {_lacking(part, tokens)}"
        letters = [n for n, letter in enumerate(sample.response or "") if not letter.isspace()]
        before = accumulate((len("".join(one.token.split())) for one in tokens), initial=0)
        unsure = [
            Token(one.token, round(p, 4), place, letters[n] if one.token.strip() else None)
            for place, (one, n) in enumerate(zip(tokens, before, strict=False))
            if one.token and (p := math.exp(one.logprob)) < LEAST_SURE
        ]
        shown = (*rows, *others, *filter(None, [stop]), *unsure[:KEPT_TOKENS])
        return self.assessed(sample, score, shown, verdict=verdict, reason=reason, parts=parts)

    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:
        """Return the mean of every part, and what a part needs that no sample has."""
        result = super().summarise(assessments, seed=seed)
        names = [name for name in result.not_applicable if name in PARTS]
        reasons = dict.fromkeys((n for n in names if PARTS[n].family in OF_TOKENS), NO_TOKENS)
        return replace(result, not_applicable={**result.not_applicable, **reasons})

    def problem(self, assessment: Assessment) -> str | None:
        """Say where an answer is in doubt."""
        if assessment.verdict != "doubtful":
            return None
        if self.scored.family in OF_TOKENS | {"asked"}:
            return f"the model is not sure of it ({self.scored.name})"
        return f"asked again, the model says something else ({self.scored.name})"

    def view(self, sample: Sample, assessment: Assessment) -> View:
        """Return the sentences, the other replies and doubtful tokens."""
        return view_of(sample, assessment)

    # ------------------------------------------------------------------- what is read and asked

    async def _given(self, context: Context) -> tuple[Sequence[str], Stop | None]:
        """Return the replies of the sample or the model, and why no more were asked for."""
        if context.sample.resamples:
            return context.sample.resamples, None
        asking = OtherReplies(self, context)
        if not self.until_decided:
            return await asking.ask_more(self.most_asked), None
        line = (self.doubtful_from, self.most, self.confidence)
        before = context.models.stand_ins
        given, values, known = list[str](), list[float](), dict[str, float]()
        wanted = max(self.least, fewest_more([], *line))
        while True:
            given += await asking.ask_more(wanted)
            new = dict[str, str]()  # equal ones have the value of the first
            for text in given[len(values) :]:
                if (key := words.normal(text)) not in known:
                    new.setdefault(key, text)
            read = await all_of(self._value(context, text) for text in new.values())
            known |= dict(zip(new, read, strict=True))
            values += [known[words.normal(text)] for text in given[len(values) :]]
            left, why = self.most - len(given), ""
            if math.isnan(values[0]):
                return given, Stop(len(given), self.most, "no claim")
            if context.models.stand_ins > before:  # a plan counts the most that may be asked
                given += await asking.ask_more(left)
                left = 0
            elif decisions(values, *line)[-1] and _enough(given):
                why = "certain" if decisions(values, *line[:2], 1.0)[-1] else "confident"
            if why or not left:
                return given, Stop(len(given), self.most, why if left else "most")
            wanted = fewest_more(values, *line)

    async def _value(self, context: Context, reply: str) -> float:
        """Return what one reply says of the answer, 0 to 1: the mean over replies is the score.

        One that is blank counts as the line itself, which moves no mean over it; NaN where no
        sentence claims anything.
        """
        sample, response = context.sample, context.response()
        given = [] if is_blank(reply) else [reply]
        texts = await TextWork.on(sample)(self._texts, sample.question, response, given)
        claiming = [str(one.hypothesis) for one in texts.claims if one.hypothesis is not None]
        if not claiming or not given:
            return self.doubtful_from if claiming else math.nan
        said = texts.unlike[int(texts.of[0])]
        read = await all_of(_entail(context.models, said, one) for one in claiming)
        entailed, _, contradicted = np.array(read, dtype=np.float64).T
        if self.scored.name == "selfcheck_nli":
            entailed = maths.ratio(entailed, contradicted)
        return float(np.clip(1 - entailed, 0, 1).mean())

    async def _tokens(self, context: Context) -> Sequence[TokenLogprob]:
        """Return the answer's tokens; none where they are not known."""
        sample, models = context.sample, context.models
        if result := read_tokens(sample):
            return result
        if self.alternatives < 0 or not models.names("model"):
            return ()
        text, name = self.asks(sample.question)
        options: dict[str, Any] = {"max_tokens": self.max_tokens, "logprobs": self.alternatives}
        reply = await unless_empty(models.chat(text, prompt=name, **options))
        said, tokens = sample.response or "", reply.logprobs if reply else None
        if reply and reply.text.strip() == said.strip() and spell(tokens or (), reply.text):
            return tokens or ()
        if models.tells_likelihood("model"):
            with suppress(CallError):  # refused: its tokens do not spell every text
                likely = await models.likelihood(text, said, role="model")
                return [TokenLogprob("", one) for one in likely.tokens]
        return ()

    def _texts(self, question: str, response: str, replies: Sequence[str]) -> Texts:
        claims = build_claims(question, response, self.split)
        places: dict[str, int] = {}
        unlike: list[str] = []
        of = []
        for text in (response, *replies):
            key = words.normal(text)
            if key not in places:
                places[key] = len(unlike)
                own = claims if not unlike else build_claims(question, text, self.split)
                said = [one.hypothesis for one in own if one.hypothesis]
                unlike.append(said[0] if len(own) == len(said) == 1 else plain_answer(text))
            of.append(places[key])
        return Texts(claims, unlike, np.array(of[1:], dtype=np.int64))

    # ----------------------------------------------------------------------------- the statistics

    async def _sentences(
        self, models: Models, texts: Texts, parts: dict[str, float]
    ) -> list[Sentence]:
        """Compare each sentence with each reply; add the parts and return the sentences."""
        claiming = [one for one in texts.claims if one.hypothesis is not None]
        if not claiming:
            return [Sentence(one.text) for one in texts.claims]
        others = sorted(set(texts.of.tolist()))
        place = {other: n for n, other in enumerate(others)}
        counts = np.bincount([place[one] for one in texts.of.tolist()])
        weights = counts / counts.sum()
        pairs = [(texts.unlike[one], str(c.hypothesis)) for c in claiming for one in others]
        read = await all_of(_entail(models, *pair) for pair in pairs)
        table = np.array(read, dtype=np.float64).reshape(len(claiming), len(others), 3)
        entailed = table[..., 0]
        agreed = maths.ratio(entailed, table[..., 2])
        disagreement = np.clip(1 - entailed @ weights, 0, 1)  # rounding
        check = np.clip(1 - agreed @ weights, 0, 1)
        parts["selfcheck_nli"], parts["weakest_sentence"] = float(check.mean()), float(check.max())
        parts["disagreement"] = float(disagreement.mean())
        if "pairs" in self.families:
            parts["luq_pair"] = await self._pairs(
                models, claiming, [texts.unlike[o] for o in others], weights
            )
        shown = {one: n for n, one in enumerate(dict.fromkeys(texts.of.tolist()), 1)}
        result, number = [], 0
        for one in texts.claims:
            if one.hypothesis is None:
                result.append(Sentence(one.text))
                continue
            least = others[int(agreed[number].argmin())]
            value = round(float(check[number]), 6)
            doubtful = value >= self.doubtful_from
            unsaid = round(float(disagreement[number]), 6)
            row = Sentence(one.text, value, unsaid, shown[least], doubtful)
            result.append(row)
            number += 1
        return result

    async def _pairs(
        self, models: Models, claiming: Sequence[Claim], others: Sequence[str], weights: Floats
    ) -> float:
        """Return LUQ-pair: of each reply the sentence that agrees best counts."""
        own = [
            [one.hypothesis or one.text for one in build_claims("", t, self.split)] for t in others
        ]
        pairs = [(said, str(claim.hypothesis)) for claim in claiming for one in own for said in one]
        read = iter(await all_of(_entail(models, *pair) for pair in pairs))
        total = 0.0
        for _ in claiming:
            for weight, one in zip(weights, own, strict=True):
                outcomes = [next(read) for _ in one]
                agreed = [maths.ratio(found.entailment, found.contradiction) for found in outcomes]
                total += weight * float(max(agreed, default=0.0))
        return 1 - total / len(claiming)

    async def _vectors(
        self, context: Context, texts: Texts, replies: Sequence[str]
    ) -> dict[str, float]:
        """Compare the tokens of each sentence with those of each sentence of the other replies."""
        places = texts.of.tolist()
        counts = Counter(places)
        others = [replies[places.index(place)] for place in counts]
        work = TextWork.on(context.sample)
        split = await work(lambda: [[*self.split(text)] for text in others])
        groups = [[one.text for one in texts.claims], *split]
        groups = [[one.strip() for one in group if not is_blank(one)] for group in groups]
        asked = (context.models.token_vectors(f" {one}") for group in groups for one in group)
        read = iter(await all_of(asked))
        said, *of_others = [[next(read) for _ in group] for group in groups]
        if not said:
            return {}
        value = await TextWork(long=True)(
            maths.selfcheck_bertscore, said, of_others, list(counts.values())
        )
        return {"selfcheck_bertscore": float(value.mean())}

    async def _meanings(
        self, models: Models, texts: Texts, sample: Sample, parts: dict[str, float]
    ) -> Sequence[int]:
        """Compare the replies with each other; return the meaning of each, from 0, the answer's
        own first.
        """
        n = len(texts.unlike)
        places = [(i, j) for i in range(n) for j in range(n) if i != j]
        read = await all_of(_entail(models, texts.unlike[i], texts.unlike[j]) for i, j in places)
        entailment, contradiction = np.eye(n), np.zeros((n, n))
        for (i, j), outcome in zip(places, read, strict=True):
            entailment[i, j], contradiction[i, j] = outcome.entailment, outcome.contradiction
        unlike = maths.Matrices(entailment, contradiction)
        replies = maths.Matrices(*(one[np.ix_(texts.of, texts.of)] for one in unlike))
        weights, meanings = maths.similarities(replies), maths.clusters(replies)
        parts["semantic_sets"] = maths.semantic_sets(replies)
        parts["semantic_entropy"] = maths.semantic_entropy(meanings)
        parts["eigenvalue_sum"] = maths.eigenvalue_sum(weights)
        parts["degree"] = maths.degree(weights)
        parts["eccentricity"] = maths.eccentricity(weights)
        parts["kernel_entropy"] = maths.kernel_entropy(replies)
        parts["luq"] = maths.luq(maths.agreement(replies))
        if likelihoods := read_likelihoods(sample):
            parts["semantic_entropy_weighted"] = maths.semantic_entropy(meanings, likelihoods)
        every = np.concatenate([[0], texts.of])
        both = maths.Matrices(*(one[np.ix_(every, every)] for one in unlike))
        return [int(one) for one in maths.clusters(both)[1:]]

    async def _of_tokens(
        self, models: Models, tokens: Sequence[TokenLogprob], parts: dict[str, float]
    ) -> None:
        own = [one.logprob for one in tokens]
        parts["nll"], parts["mean_nll"] = maths.sequence_nll(own), maths.mean_nll(own)
        parts["weakest_token"] = 1 - math.exp(min(own))
        known = [[p for _, p in one.alternatives] for one in tokens]
        if all(known):
            entropies = [maths.entropy(one) for one in known]
            parts["mean_entropy"], parts["max_entropy"] = float(np.mean(entropies)), max(entropies)
            parts["self_certainty"] = maths.self_certainty(known)
        if "disagreement" in parts:
            for name, value in (("cocoa_nll", "nll"), ("cocoa_mean_nll", "mean_nll")):
                parts[name] = parts[value] * parts["disagreement"]
            if "mean_entropy" in parts:
                parts["cocoa_entropy"] = parts["mean_entropy"] * parts["disagreement"]
        if "claims" in self.families and all(known):
            parts["ccp"] = maths.claim_conditioned(await relations(models, tokens))

    async def _asked(
        self, context: Context, texts: Texts, replies: Sequence[str], parts: dict[str, float]
    ) -> None:
        """Ask the model whether the answer is true, and whether replies support its sentences."""
        sample, models = context.sample, context.models
        if "p_true" in self.chosen:
            prompt = shipped(__package__, "p-true")
            text = prompt.filled(
                question=sample.question, answer=sample.response, replies=list(replies)
            )
            choice = await models.choose(text, ["true", "false"], prompt=prompt.name, max_tokens=8)
            if choice.probabilities:
                parts["p_true"] = 1 - choice.probabilities[0]
            elif choice.index is not None:
                parts["p_true"] = float(choice.index)
        claiming = [str(one.hypothesis) for one in texts.claims if one.hypothesis is not None]
        if "selfcheck_prompt" in self.chosen and claiming:
            prompt = shipped(__package__, "selfcheck")
            asked = [
                models.chat(
                    prompt.filled(context=reply, sentence=one), prompt=prompt.name, max_tokens=8
                )
                for one in claiming
                for reply in replies
            ]
            said = [words.unsupported(reply.text) for reply in await all_of(asked)]
            parts["selfcheck_prompt"] = float(np.mean(said))


async def _entail(models: Models, premise: str, hypothesis: str) -> Entailment:
    """Return what an entailer says; a text entails itself."""
    if premise.strip() == hypothesis.strip():
        return Entailment(1.0, 0.0, 0.0)
    return await read(models, premise, hypothesis)


def _enough(given: Sequence[str]) -> bool:
    """Whether some of the replies say something, and no fewer than those that do not."""
    empty = sum(map(is_blank, given))
    return len(given) - empty >= max(empty, FEWEST)


def _said(given: Sequence[str]) -> tuple[list[str], int]:
    """Return the replies that say something, and how many do not."""
    result = [text for text in given if not is_blank(text)]
    empty = len(given) - len(result)
    if not _enough(given):
        raise AssessmentError(f"{empty} of {len(given)} replies are blank", "empty")
    return result, empty


def _others(texts: Texts, replies: Sequence[str], meanings: Sequence[int]) -> list[OtherReply]:
    """Return the replies that differ, in the order in which they came first."""
    places = texts.of.tolist()
    firsts = [(places.index(place), times) for place, times in Counter(places).items()]
    return [OtherReply(replies[n], k, meanings[n] if meanings else None) for n, k in firsts]


def _lacking(part: Part, tokens: Sequence[TokenLogprob]) -> str:
    """Say why a part has no value."""
    if part.family in OF_TOKENS and not tokens:
        return NO_TOKENS
    if part.family in ("tokens", "claims"):
        return "needs alternatives of every token"
    if part.name == "semantic_entropy_weighted":
        return "needs the log-probability of each reply (resample_logprobs)"
    if part.name == "p_true":
        return "the model said neither true nor false"
    return "no sentence claims anything"


def _reason(
    rows: Sequence[Sentence], others: Sequence[OtherReply], parts: Mapping[str, float]
) -> str:
    """Say what became of the sentences and of the replies."""
    doubtful, message = sum(row.doubtful for row in rows), ""
    if len(rows) > 1 and doubtful:
        message = f"; {doubtful} of {len(rows)} sentences in doubt"
    if others and others[0].meaning is not None:
        same = sum(one.times for one in others if one.meaning == 0)
        message += f"; {same} of {parts['replies']:.0f} other replies mean the same"
    if empty := int(parts["empty"]):
        message += f"; {amount(empty, 'empty reply', 'empty replies')} left out"
    return message
