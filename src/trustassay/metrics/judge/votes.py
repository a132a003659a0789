"""The votes of judges on one answer: asking for them, the numbers computed from them, the evidence.

A vote that cannot be read is asked for once more.
"""

import json
import math
from collections import Counter
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from trustassay.core.absences import ABSENT, Absence
from trustassay.core.asked import UNREADABLE
from trustassay.core.assessment import Assessment
from trustassay.core.capabilities import Message, Models, Reply, TokenLogprob
from trustassay.core.decisions import (
    GIVES_NO_REASON,
    STATE_WARNING,
    YES_NO,
    DecisionQuestion,
    QuestionKind,
    compute_probabilities,
)
from trustassay.core.event_loop import gather_all
from trustassay.core.evidence import EvidenceRow, EvidenceRows
from trustassay.core.metric import UnreadableReply, ask_twice, reply_unless_empty
from trustassay.core.prompts import Prompt, build_fence, load_prompt
from trustassay.core.sample import Sample
from trustassay.errors import BackendError, UnparsedError
from trustassay.metrics.judge.options import JudgeOptions, Rubric
from trustassay.metrics.judge.replies import read_reply
from trustassay.statistics.intervals import binomial_interval

VoteVerdict = Literal["passes", "fails", "undecided"]

MIN_INTERVAL_VOTES = 5
"""Votes from which their interval decides: five that agree are just enough for 95 %."""


class PassingVotes(NamedTuple):
    """A count of votes."""

    passing: int
    """The number of votes that pass."""
    n: int
    """The number of all votes."""

    @property
    def share(self) -> float:
        """The share of votes that pass; n is 1 or more."""
        return self.passing / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of that share, by mid-P like that of every share in this project."""
        return binomial_interval(self.passing, self.n)


def find_majority(labels: Sequence[str], values: Mapping[str, float]) -> str:
    """Return the label that most votes give; of equally frequent ones, that of the least value.

    Args:
        labels: of the votes, 1 or more.
        values: the value of each label, in the order of the rubric. Of equal values the later wins.
    """
    counts = Counter(labels)
    most = max(counts.values())
    # Reversed, and min takes the first: of equal values the later label wins.
    tied = [label for label in reversed(list(values)) if counts[label] == most]
    return min(tied, key=values.__getitem__)


def spread(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation (n - 1) of one judge's votes.

    ``None`` for fewer than two votes.
    """
    return None if len(values) < 2 else float(np.std(values, ddof=1))


def flip_rate(votes: PassingVotes) -> float:
    """Return the percentage of votes on the lesser side of the threshold, 0 to 50."""
    return 100.0 * min(votes.passing, votes.n - votes.passing) / votes.n


def decide_outcome(votes: PassingVotes) -> VoteVerdict:
    """Return the verdict of the votes: passes, fails or undecided.

    From :data:`MIN_INTERVAL_VOTES` on, undecided means that the 95 % interval of the share that
    passes contains one half. Fewer votes decide by majority; a tie is undecided.
    """
    # An interval of four votes contains one half however they fall, so it could never decide.
    if votes.n < MIN_INTERVAL_VOTES:
        doubled = 2 * votes.passing
        return "undecided" if doubled == votes.n else "passes" if doubled > votes.n else "fails"
    low, high = votes.interval
    return "passes" if low > 0.5 else "fails" if high < 0.5 else "undecided"


def is_settled(votes: PassingVotes, remaining: int) -> bool:
    """Whether no outcome of up to ``remaining`` further votes can change the verdict.

    A further vote that passes moves the interval up, any other moves it down. It is therefore
    enough to check the extremes: no further vote, all of them passing, none of them passing.
    """
    # No votes yet: nothing is decided until there are none left to ask.
    if votes.n == 0:
        return remaining == 0
    if votes.n < MIN_INTERVAL_VOTES <= votes.n + remaining:
        return False  # the rule itself is about to change
    current = decide_outcome(votes)
    extremes = (
        PassingVotes(votes.passing + remaining, votes.n + remaining),
        PassingVotes(votes.passing, votes.n + remaining),
    )
    return all(decide_outcome(extreme) == current for extreme in extremes)


def compute_expected_value(
    logprobs: Mapping[str, float], values: Mapping[str, float]
) -> tuple[float, float] | None:
    """Return the mean value of the levels by their probabilities, and the sum of these.

    Args:
        logprobs: natural log-probability of each label that is known; other labels count as 0.
        values: the value of every label.

    ``None`` where no label has a probability above 0.
    """
    # Some endpoints report log-probabilities a little above 0.
    weights = {label: math.exp(min(logprobs[label], 0.0)) for label in logprobs if label in values}
    total = math.fsum(weights.values())
    if total <= 0:
        return None
    return math.fsum(weights[k] * values[k] for k in weights) / total, min(total, 1.0)


TOKEN_ALTERNATIVES = 20
"""Alternatives to ask for at each token; no public endpoint gives more."""
MAX_LABEL_TOKENS = 20
"""Tokens equal to the label that are tried as the score; a reply with more is a list."""
PROBLEMS = {
    "none": "Your reply names no score.",
    "several": "Your reply names more than one score.",
    "outside": "Your reply names a score that is not on the scale.",
    "empty": "Your reply was empty.",
}
MAX_REASONS = 12
"""Different reasons of one judge that the report lists."""
FAULTS = {
    "none": "no score",
    "several": "several scores",
    "outside": "off the scale",
    "empty": "empty",
}
ORDERS = ("gold-first", "answer-first")


@dataclass(frozen=True, slots=True)
class VoteRow(EvidenceRow, required=("judge", "order")):
    """One vote: a judge's reply to one prompt."""

    judge: str
    """The name of the judge."""
    order: str
    """One of :data:`ORDERS`: what the judge read first."""
    repeat: int
    """The number of the round, from 0."""
    level: str | None
    """The label of the level; ``None`` if the reply could not be read."""
    reason: str
    """The judge's reason."""
    expected: float | None = None
    """The mean level by log-probabilities."""
    told: float | None = None
    """The sum of the probabilities behind ``expected``."""
    repaired: bool | None = None
    """Whether the second reply could be read, where one was asked for."""
    fault: str = ""
    """A key of :data:`FAULTS`, if the reply could not be read."""
    reply: str | None = None
    """The reply itself, if it could not be read."""
    own: bool = False
    """Whether the judge wrote the answer itself."""
    value: float | None = None
    """The mean value of the levels by the probabilities of a decision model, which counts in place
    of that of the level."""


@dataclass(frozen=True, slots=True)
class GoldRow(EvidenceRow, required=("gold", "entailment", "contradiction")):
    """A gold answer, and the probabilities by which an entailer judged."""

    gold: str
    """The gold answer."""
    entailment: float
    """Probability of entailment, mean of both directions."""
    contradiction: float
    """Probability of contradiction, mean of both directions."""


@dataclass
class VoteCollector:
    """Collects votes on one sample in rounds; in a round each judge votes once in each order."""

    options: JudgeOptions
    sample: Sample
    models: Models
    votes: list[VoteRow] = field(default_factory=list)
    """The votes so far, unreadable ones included."""
    cut: int = 0
    """The number of replies that count and ended at ``max_tokens``."""

    @cached_property
    def judges(self) -> tuple[str, ...]:
        """The names of the judges."""
        return self.models.names("judge")

    @cached_property
    def orders(self) -> tuple[str, ...]:
        """The orders of gold answer and answer that are asked."""
        if self.options.order != "both":
            return (self.options.order,)
        # Without a gold answer both orders are the same prompt.
        return ORDERS if self.sample.answers or self.sample.claims else ORDERS[:1]

    @property
    def votes_per_round(self) -> int:
        """The number of votes in one round."""
        return len(self.judges) * len(self.orders)

    async def ask_rounds(self, first: int, last: int) -> None:
        """Ask the rounds ``first`` to ``last - 1``, all at once."""
        calls = [
            self._ask_vote(judge, order, number)
            for number in range(first, last)
            for judge in self.judges
            for order in self.orders
        ]
        for vote, cut in await gather_all(calls):
            self.votes.append(vote)
            self.cut += cut

    async def _ask_vote(self, judge: str, order: str, number: int) -> tuple[VoteRow, bool]:
        """Ask for one vote; return it, and whether its reply was cut."""
        if self.models.decides("judge", judge):
            return await self._ask_decision(VoteRow(judge, order, number, None, "")), False
        prompt, name = self._build_prompt(order)
        blank_vote = VoteRow(judge, order, number, None, "")

        async def ask(turns: Sequence[Message], name: str) -> tuple[VoteRow, bool]:
            reply = await reply_unless_empty(self._chat(turns, name, blank_vote))
            vote = self._read_vote(blank_vote, reply)
            # An empty reply has failed as a call, and is counted as that.
            if reply is not None and vote.level is None:
                self.models.note_unreadable("judge", judge)
            return vote, reply is not None and reply.finish == "length"

        (first, cut), second = await ask_twice(ask, prompt, name, self._build_repair)
        if second is None:
            return first, cut
        second_vote, second_cut = second
        if second_vote.level is None:  # the first reply says more of what is wrong
            return replace(first, repaired=False), cut
        # The repair asks for one line, without a reason.
        return replace(
            second_vote, repaired=True, reason=second_vote.reason or first.reason
        ), second_cut

    async def _ask_decision(self, vote: VoteRow) -> VoteRow:
        """Ask a decision model for one vote; raises :class:`CallError` if it refuses."""
        question = build_judge_question(self.options.scale, self.sample, vote.order)
        answer = await self.models.decide(question, role="judge", name=vote.judge)
        try:
            chances = compute_probabilities(vote.judge or "the judge", question, answer)
        except BackendError as error:
            self.models.note_unreadable("judge", vote.judge)
            if isinstance(error, UnparsedError):
                return replace(vote, fault="none", reply=str(error))
            raise
        # The lower one of two equally likely levels, as of votes.
        labels = {name.lower(): name for name in self.options.scale.upwards}
        chance_by_label = dict(zip(question.names, chances, strict=True))
        chance_by_label = {labels[name.lower()]: p for name, p in chance_by_label.items()}
        level = max(self.options.scale.upwards, key=chance_by_label.__getitem__)
        reason = f"P({level}) {chance_by_label[level]:.2f}; {GIVES_NO_REASON}"
        if not self.options.scale.ordinal:
            return replace(vote, level=level, reason=reason)
        values = self.options.scale.values
        value = math.fsum(p * values[label] for label, p in chance_by_label.items())
        return replace(vote, level=level, reason=reason, expected=value, value=value)

    def _build_repair(self, vote_and_cut: tuple[VoteRow, bool]) -> UnreadableReply | None:
        vote, _ = vote_and_cut
        if vote.level is not None:
            return None
        scale, repair = self.options.scale, load_prompt(__package__, "repair")
        problem = PROBLEMS[vote.fault or "none"]
        message = repair.fill(problem=problem, rubric=scale, choices=scale.choices)
        return UnreadableReply(vote.reply or "", message, f"judge-{repair.name}")

    def _chat(self, turns: Sequence[Message], name: str, vote: VoteRow) -> Awaitable[Reply]:
        options, scale = self.options, self.options.scale
        labels = scale.upwards
        # Two of three pass, which leaves a verdict open for longest: a plan says what may be asked.
        stand_in = f"{scale.label}: {labels[0 if vote.repeat % 3 == 2 else -1]}\nReason: a stand-in"
        return self.models.chat(
            turns,
            role="judge",
            name=vote.judge,
            temperature=options.temperature,
            max_tokens=options.max_tokens,
            logprobs=TOKEN_ALTERNATIVES if options.logprobs else None,
            schema=_build_schema(scale) if options.constrained else "",
            repeat=vote.repeat,
            prompt=name,
            stand_in=stand_in,
        )

    def _read_vote(self, vote: VoteRow, reply: Reply | None) -> VoteRow:
        if reply is None:
            return replace(vote, fault="empty", reply="")
        result = read_reply(reply.text, self.options.scale)
        if result.label is None:
            return replace(vote, fault=result.fault or "", reason=result.reason, reply=reply.text)
        # A vote that can be read keeps its label; the reply itself is among the stored calls.
        vote = replace(vote, level=result.label, reason=result.reason)
        if not reply.logprobs:
            return vote
        # Only with logprobs=yes, and from an endpoint that gives them.
        logprobs = level_logprobs(reply.logprobs, self.options.scale, result.label)
        expected = compute_expected_value(logprobs, self.options.scale.values)
        return replace(vote, expected=expected[0], told=expected[1]) if expected else vote

    def _build_prompt(self, order: str) -> tuple[str, str]:
        """Return the prompt, and its name and version in the stored call."""
        scale = self.options.scale
        template = self.options.template or load_prompt(__package__, "judge")
        name = template.name
        # The rubric is part of our prompt: its version has to change the stored name, too.
        if self.options.template is None:
            name = f"{name}+{scale.name}/{scale.version}"
        return build_judge_prompt(scale, self.sample, order, template), name


def build_judge_prompt(
    scale: Rubric, sample: Sample, order: str = ORDERS[0], template: Prompt | None = None
) -> str:
    """Return the prompt for a judge; raises as :meth:`Prompt.fill`."""
    texts = _list_texts(scale, sample, order)
    return (template or load_prompt(__package__, "judge")).fill(
        rubric=scale,
        texts=texts,
        choices=scale.choices,
        fence=build_fence(text for _, text in texts),
        sample=sample,
    )


def build_judge_question(scale: Rubric, sample: Sample, order: str = ORDERS[0]) -> DecisionQuestion:
    """Return the question to a decision model: yes or no, a level, or a category."""
    texts = _list_texts(scale, sample, order)
    fence = build_fence(text for _, text in texts)
    state = "\n".join(f"{fence} {heading} {fence}\n{text}" for heading, text in texts)
    kind: QuestionKind = "score" if scale.ordinal else "choice"
    meanings = {level.label: level.means for level in scale.levels}
    options = [(label, meanings[label]) for label in scale.upwards]
    if scale.is_yes_no:
        kind, by_name = "yes_no", {label.lower(): means for label, means in options}
        options = [(name, by_name[name]) for name in YES_NO]
    instructions = f"Rate the answer in the input. {scale.task}\n{STATE_WARNING}"
    return DecisionQuestion(state, kind, instructions, tuple(options))


def _list_texts(scale: Rubric, sample: Sample, order: str) -> list[tuple[str, str]]:
    """Return the texts that a judge reads, in their order, each with its heading."""
    text_by_name = {
        "question": ("Question", sample.question),
        "documents": ("Passages", _format_documents(sample)),
        "gold": ("Gold answer", gold_text(sample)),
        "answer": ("Answer to rate", sample.response or ""),
    }
    names = [name for name in text_by_name if name in (*scale.shows, *scale.shows_if_there)]
    if order == "answer-first" and "gold" in names:
        # The answer moves to the place just before the gold answer.
        names.remove("answer")
        names.insert(names.index("gold"), "answer")
    # Texts that the sample lacks are left out; the answer is always shown.
    return [text_by_name[name] for name in names if name == "answer" or text_by_name[name][1]]


def gold_text(sample: Sample) -> str:
    """Return the gold answers as a judge reads them, or the gold claims where there are none."""
    golds = [" / ".join(aliases) for aliases in sample.answers] or list(sample.claims)
    return golds[0] if len(golds) == 1 else "\n".join(f"- {gold}" for gold in golds)


def _format_documents(sample: Sample) -> str:
    return "\n\n".join(
        f"[{number}] {document.title}\n{document.text}".strip()
        for number, document in enumerate(sample.documents or (), 1)
    )


def level_logprobs(
    tokens: Sequence[TokenLogprob], scale: Rubric, label: str
) -> Mapping[str, float]:
    """Return the log-probability of each label at the token that gives ``label`` as the score.

    That is the first token that equals the label and with which, and the token after it, the reply
    reads as that label. Where a label occurs with and without a space the likelier one counts.
    Empty where no token is the label.
    """
    label_by_text = {name.lower(): name for name in scale.values}
    before, label_tokens = "", 0
    for token, following in zip(tokens, (*tokens[1:], None), strict=True):
        is_label = token.token.strip().lower() == label.lower()
        label_tokens += is_label
        if label_tokens > MAX_LABEL_TOKENS:
            break
        # With the next token, since "4" of "4.5" is no level. A "1" in "I give 1 of ..." is
        # skipped.
        text_so_far = before + token.token + (following.token if following else "")
        if is_label and read_reply(text_so_far, scale).label == label:
            logprob_by_label: dict[str, float] = {}
            for text, logprob in token.known:
                name = label_by_text.get(text.strip().lower())
                if name is not None:
                    logprob_by_label[name] = max(logprob, logprob_by_label.get(name, logprob))
            return logprob_by_label
        before += token.token
    return {}


def _build_schema(scale: Rubric) -> str:
    """Return the JSON schema of a reply: the score, one of the levels, and the reason."""
    key = scale.label.lower()
    # A numeric label is an integer in JSON, so that constrained decoding allows no quotes.
    labels: list[Any] = [int(label) if scale.numeric else label for label in scale.values]
    kind = "integer" if scale.numeric else "string"
    return json.dumps(
        {
            "type": "object",
            "properties": {key: {"type": kind, "enum": labels}, "reason": {"type": "string"}},
            "required": [key, "reason"],
            "additionalProperties": False,
        }
    )


def read_absences(assessment: Assessment) -> Iterator[Absence]:
    """Yield the judges none of whose votes on an answer can be read."""
    rows = EvidenceRows(assessment.evidence, VoteRow).select(VoteRow)
    heard = {row.judge for row in rows if row.level is not None}
    # A judge is silent in one way: that of its first vote.
    first_votes = {row.judge: row for row in reversed(rows) if row.judge not in heard}
    for name, row in sorted(first_votes.items()):
        yield Absence(name, "empty" if row.fault == "empty" else UNREADABLE)


def labels_of(votes: Sequence[VoteRow]) -> list[str]:
    """Return the labels that votes give; unreadable ones give none."""
    return [vote.level for vote in votes if vote.level is not None]


def values_of(options: JudgeOptions, votes: Sequence[VoteRow]) -> list[float]:
    """Return the values of the levels that votes give; of a decision model, their means."""
    values = options.scale.values
    return [
        values[vote.level] if vote.value is None else vote.value
        for vote in votes
        if vote.level is not None
    ]


def parts_of(
    asking: VoteCollector, votes: Sequence[VoteRow], passing: PassingVotes
) -> dict[str, float]:
    """Return the parts; ``votes`` are those that can be read, 1 or more."""
    options, judges = asking.options, asking.judges
    values = values_of(options, votes)
    parts: dict[str, float] = {
        "votes": len(votes),
        "unreadable": len(asking.votes) - len(votes),
        "repairs": sum(vote.repaired is not None for vote in asking.votes),
        "cut": asking.cut,
        "mean": _compute_mean(values),
        "median": float(np.median(values)),
        "level_place": _majority_place(options, votes),
        "passing": passing.share,
        "passing_low": passing.interval[0],
        "passing_high": passing.interval[1],
    }
    if silent := len(judges) - len({vote.judge for vote in votes}):
        parts[ABSENT] = silent
    for label in options.scale.values:
        if count := sum(vote.level == label for vote in votes):
            parts[f"votes:{label}"] = count
    for fault in PROBLEMS:
        if count := sum(vote.fault == fault for vote in asking.votes):
            parts[f"unreadable_{fault}"] = count
    if len(votes) > 1:
        parts["flip_rate"] = flip_rate(passing)
    if expected_values := [vote.expected for vote in votes if vote.expected is not None]:
        parts["expected_score"] = _compute_mean(expected_values)
    for judge in judges if len(judges) > 1 else ():
        if votes_of_judge := [vote for vote in votes if vote.judge == judge]:
            parts[f"mean:{judge}"] = _compute_mean(values_of(options, votes_of_judge))
            parts[f"place:{judge}"] = _majority_place(options, votes_of_judge)
    # Votes of one judge in one order differ by chance alone: their spread is the judge's noise.
    groups = [
        [vote for vote in votes if (vote.judge, vote.order) == judge_and_order]
        for judge_and_order in product(judges, asking.orders)
    ]
    spreads = [spread(values_of(options, votes_of_judge)) for votes_of_judge in groups]
    if known_spreads := [spread for spread in spreads if spread is not None]:
        parts["sd"] = _compute_mean(known_spreads)
        # Whether every judge gave the same vote each time.
        parts["steady"] = int(max(known_spreads) == 0)
    # Difference of the means of both orders; only where both have votes.
    sides = [values_of(options, [v for v in votes if v.order == o]) for o in asking.orders]
    if len(sides) > 1 and all(sides):
        parts["order_difference"] = _compute_mean(sides[0]) - _compute_mean(sides[1])
    return parts


def _majority_place(options: JudgeOptions, votes: Sequence[VoteRow]) -> int:
    values = options.scale.values
    return list(values).index(find_majority(labels_of(votes), values))


def _compute_mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


@dataclass(slots=True)
class JudgeVotes:
    """The votes of one judge, as the report shows them."""

    name: str
    """The name of the judge."""
    wrote_answer: bool = False
    """Whether the judge wrote the answer itself."""
    shares: Sequence[tuple[str, int, float]] = ()
    """(level, votes, percentage of the most frequent level)."""
    reasons: Sequence[tuple[str, str, int]] = ()
    """(level, reason, number of votes with it), the most frequent first."""
    left_out: int = 0
    """The number of reasons that are not shown."""
    unreadable: Sequence[tuple[str, str]] = ()
    """(fault, reply) of votes that could not be read."""
    repaired: int = 0
    """The number of votes that could be read only after a second reply."""


def votes_of(name: str, rows: Sequence[VoteRow]) -> JudgeVotes:
    """Return the votes of one judge, by its rows of evidence."""
    levels_and_reasons = [(row.level, row.reason.strip()) for row in rows if row.level is not None]
    levels = Counter(level for level, _ in levels_and_reasons)
    most = max(levels.values(), default=1)
    reasons = Counter((level, text) for level, text in levels_and_reasons if text)
    reasons_with_counts = [(*key, times) for key, times in reasons.most_common()]
    faulty = [row for row in rows if row.level is None and row.fault]
    return JudgeVotes(
        name,
        any(row.own for row in rows),
        [(level, n, 100 * n / most) for level, n in sorted(levels.items())],
        reasons_with_counts[:MAX_REASONS],
        max(0, len(reasons_with_counts) - MAX_REASONS),
        [(FAULTS.get(row.fault, "unreadable"), row.reply or "") for row in faulty],
        sum(row.repaired is True for row in rows),
    )
