"""The votes of judges on one answer, the numbers that are made of them, and their evidence.

A vote is asked for, read, and asked for once more where it cannot be read.
"""

import json
import math
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from trustassay.capabilities import Message, Models, Reply, TokenLogprob
from trustassay.event_loop import all_of
from trustassay.metric import Unread, asked_twice, unless_empty
from trustassay.metrics.judge.options import JudgeOptions, Rubric
from trustassay.metrics.judge.replies import read_reply
from trustassay.prompts import Prompt, fence, shipped
from trustassay.sample import Sample
from trustassay.statistics.intervals import binomial_interval
from trustassay.views import EvidenceRow

Outcome = Literal["passes", "fails", "undecided"]

FEWEST_VOTES = 5
"""Votes from which on their interval decides; five that agree are just enough for 95 %."""


class Passing(NamedTuple):
    """How many of n votes pass."""

    passing: int
    n: int

    @property
    def share(self) -> float:
        """The share of votes that pass; n is 1 or more."""
        return self.passing / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of that share: mid-P, as of all shares here."""
        return binomial_interval(self.passing, self.n)


def majority(labels: Sequence[str], values: Mapping[str, float]) -> str:
    """Return the label that most votes give; of several such, that of the least value.

    ``labels`` has 1 or more; ``values`` gives the value of each, in the order of the rubric, the
    later of which wins among equal values.
    """
    counts = Counter(labels)
    most = max(counts.values())
    tied = [label for label in reversed(list(values)) if counts[label] == most]
    return min(tied, key=values.__getitem__)


def spread(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation of one judge's votes, n - 1 below the sum of squares.

    ``None`` for fewer than two votes, of which nothing can be said.
    """
    return None if len(values) < 2 else float(np.std(values, ddof=1))


def flip_rate(votes: Passing) -> float:
    """Return the percentage of votes on the lesser side of the threshold, 0 to 50."""
    return 100.0 * min(votes.passing, votes.n - votes.passing) / votes.n


def outcome(votes: Passing) -> Outcome:
    """Return what the votes decide: passes or fails, or neither.

    From :data:`FEWEST_VOTES` on it is undecided where the 95 % interval of the share that passes
    holds one half. Fewer votes decide by their majority, and a tie does not.
    """
    if votes.n < FEWEST_VOTES:
        doubled = 2 * votes.passing
        return "undecided" if doubled == votes.n else "passes" if doubled > votes.n else "fails"
    low, high = votes.interval
    return "passes" if low > 0.5 else "fails" if high < 0.5 else "undecided"


def settled(votes: Passing, left: int) -> bool:
    """Whether up to ``left`` further votes cannot change what is decided, however they fall.

    A further vote that passes moves the interval up, one that does not moves it down, so it is
    enough to look at the ends: none, all passing, none passing.
    """
    if votes.n == 0:
        return left == 0
    if votes.n < FEWEST_VOTES <= votes.n + left:
        return False  # the rule itself is about to change
    now = outcome(votes)
    ends = (Passing(votes.passing + left, votes.n + left), Passing(votes.passing, votes.n + left))
    return all(outcome(end) == now for end in ends)


def expected_value(
    logprobs: Mapping[str, float], values: Mapping[str, float]
) -> tuple[float, float] | None:
    """Return the mean value of the levels by their probabilities, and how much those sum up to.

    Args:
        logprobs: natural log-probability of the labels that were told; others count as 0.
        values: of all labels.

    ``None`` where no label has a probability above 0.
    """
    weights = {label: math.exp(min(logprobs[label], 0.0)) for label in logprobs if label in values}
    total = math.fsum(weights.values())
    if total <= 0:
        return None
    return math.fsum(weights[k] * values[k] for k in weights) / total, min(total, 1.0)


ALTERNATIVES = 20
"""Likeliest tokens that are asked for; no public endpoint gives more."""
PLACES = 20
"""Tokens of a reply that are looked at as its level: a list of more is no reply."""
PROBLEMS = {
    "none": "Your reply names no score.",
    "several": "Your reply names more than one score.",
    "outside": "Your reply names a score that is not on the scale.",
    "empty": "Your reply was empty.",
}
REASONS_SHOWN = 12
"""Different reasons of one judge that are listed."""
FAULTS = {
    "none": "no score",
    "several": "several scores",
    "outside": "off the scale",
    "empty": "empty",
}
ORDERS = ("gold-first", "answer-first")


@dataclass(frozen=True, slots=True)
class VoteRow(EvidenceRow, told_by=("judge", "order")):
    """One judge's reply to one question: the label of a ``level``, or the ``fault`` of the reply,
    which then stands there itself.

    expected, told: the mean level by log-probabilities, and the probability that those sum up to.
    repaired: whether the second reply could be read, where one was asked for. own: the judge wrote
    the answer itself.
    """

    judge: str
    order: str
    repeat: int
    level: str | None
    reason: str
    expected: float | None = None
    told: float | None = None
    repaired: bool | None = None
    fault: str = ""
    reply: str | None = None
    own: bool = False


@dataclass(frozen=True, slots=True)
class GoldRow(EvidenceRow, told_by=("gold", "entailment", "contradiction")):
    """A gold answer, and the probabilities by which an entailer judged."""

    gold: str
    entailment: float
    contradiction: float


@dataclass
class Asking:
    """Asks all judges about one sample, a round at a time: each judge once in each order."""

    options: JudgeOptions
    sample: Sample
    models: Models
    votes: list[VoteRow] = field(default_factory=list)
    cut: int = 0
    """How many of the replies that count ended at ``max_tokens``."""

    @cached_property
    def judges(self) -> tuple[str, ...]:
        """The names of the judges."""
        return self.models.names("judge")

    @cached_property
    def orders(self) -> tuple[str, ...]:
        """The orders of gold answer and answer."""
        if self.options.order != "both":
            return (self.options.order,)
        return ORDERS if self.sample.answers or self.sample.claims else ORDERS[:1]

    @property
    def a_round(self) -> int:
        """The votes of one round."""
        return len(self.judges) * len(self.orders)

    async def rounds(self, first: int, last: int) -> None:
        """Ask the rounds from ``first`` to before ``last``, all at once."""
        calls = [
            self._vote(judge, order, number)
            for number in range(first, last)
            for judge in self.judges
            for order in self.orders
        ]
        for vote, cut in await all_of(calls):
            self.votes.append(vote)
            self.cut += cut

    async def _vote(self, judge: str, order: str, number: int) -> tuple[VoteRow, bool]:
        """Return a vote, and whether its reply was cut."""
        prompt, name = self._prompt(order)
        asked = VoteRow(judge, order, number, None, "")

        async def ask(turns: Sequence[Message], name: str) -> tuple[VoteRow, bool]:
            reply = await unless_empty(self._reply(turns, name, asked))
            return self._read(asked, reply), reply is not None and reply.finish == "length"

        (first, cut), again = await asked_twice(ask, prompt, name, self._unread)
        if again is None:
            return first, cut
        vote, its_cut = again
        if vote.level is None:  # the first reply says more of what is wrong
            return replace(first, repaired=False), cut
        return replace(vote, repaired=True, reason=vote.reason or first.reason), its_cut

    def _unread(self, read: tuple[VoteRow, bool]) -> Unread | None:
        vote, _ = read
        if vote.level is not None:
            return None
        scale, repair = self.options.scale, shipped(__package__, "repair")
        problem = PROBLEMS[vote.fault or "none"]
        words = repair.filled(problem=problem, rubric=scale, choices=scale.choices)
        return Unread(vote.reply or "", words, f"judge-{repair.name}")

    def _reply(self, turns: Sequence[Message], name: str, vote: VoteRow) -> Awaitable[Reply]:
        options, scale = self.options, self.options.scale
        ends = scale.upwards
        # Two of three pass, which leaves a verdict open for longest: a plan says what may be asked.
        stand_in = f"{scale.label}: {ends[0 if vote.repeat % 3 == 2 else -1]}\nReason: a stand-in"
        return self.models.chat(
            turns,
            role="judge",
            name=vote.judge,
            temperature=options.temperature,
            max_tokens=options.max_tokens,
            logprobs=ALTERNATIVES if options.logprobs else None,
            schema=_schema(scale) if options.constrained else "",
            repeat=vote.repeat,
            prompt=name,
            stand_in=stand_in,
        )

    def _read(self, vote: VoteRow, reply: Reply | None) -> VoteRow:
        if reply is None:
            return replace(vote, fault="empty", reply="")
        result = read_reply(reply.text, self.options.scale)
        if result.label is None:
            return replace(vote, fault=result.fault or "", reason=result.reason, reply=reply.text)
        vote = replace(vote, level=result.label, reason=result.reason)
        if not reply.logprobs:
            return vote
        logprobs = level_logprobs(reply.logprobs, self.options.scale, result.label)
        told = expected_value(logprobs, self.options.scale.values)
        return replace(vote, expected=told[0], told=told[1]) if told else vote

    def _prompt(self, order: str) -> tuple[str, str]:
        """Return the prompt, and its name and version in the stored call."""
        scale = self.options.scale
        template = self.options.template or shipped(__package__, "judge")
        name = template.name
        if self.options.template is None:
            name = f"{name}+{scale.name}/{scale.version}"
        return filled_prompt(scale, self.sample, order, template), name


def filled_prompt(
    scale: Rubric, sample: Sample, order: str = ORDERS[0], template: Prompt | None = None
) -> str:
    """Return the prompt that a judge is asked with; raises as :meth:`Prompt.filled`."""
    shown = {
        "question": ("Question", sample.question),
        "documents": ("Passages", _documents(sample)),
        "gold": ("Gold answer", gold_text(sample)),
        "answer": ("Answer to rate", sample.response or ""),
    }
    names = [name for name in shown if name in (*scale.shows, *scale.shows_if_there)]
    if order == "answer-first" and "gold" in names:
        names.remove("answer")
        names.insert(names.index("gold"), "answer")
    texts = [shown[name] for name in names if name == "answer" or shown[name][1]]
    return (template or shipped(__package__, "judge")).filled(
        rubric=scale,
        texts=texts,
        choices=scale.choices,
        fence=fence(text for _, text in texts),
        sample=sample,
    )


def gold_text(sample: Sample) -> str:
    """Return the gold answers as a judge reads them, or the gold claims where there are none."""
    golds = [" / ".join(aliases) for aliases in sample.answers] or list(sample.claims)
    return golds[0] if len(golds) == 1 else "\n".join(f"- {gold}" for gold in golds)


def _documents(sample: Sample) -> str:
    return "\n\n".join(
        f"[{number}] {document.title}\n{document.text}".strip()
        for number, document in enumerate(sample.documents or (), 1)
    )


def level_logprobs(
    tokens: Sequence[TokenLogprob], scale: Rubric, label: str
) -> Mapping[str, float]:
    """Return the log-probability of each label at the token that names ``label`` as the score.

    That is the first token which is the label itself, and with which, and the token behind it, the
    reply is read as that label. Of a label with and without a space the likelier one counts. Empty
    where no token is a label.
    """
    known = {name.lower(): name for name in scale.values}
    before, places = "", 0
    for token, following in zip(tokens, (*tokens[1:], None), strict=True):
        named = token.token.strip().lower() == label.lower()
        places += named
        if places > PLACES:
            break
        so_far = before + token.token + (following.token if following else "")
        if named and read_reply(so_far, scale).label == label:
            told: dict[str, float] = {}
            for text, logprob in ((token.token, token.logprob), *token.alternatives):
                name = known.get(text.strip().lower())
                if name is not None:
                    told[name] = max(logprob, told.get(name, logprob))
            return told
        before += token.token
    return {}


def _schema(scale: Rubric) -> str:
    """Return the JSON schema of a reply: the score, one of the levels, and the reason."""
    key = scale.label.lower()
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


def labels_of(votes: Sequence[VoteRow]) -> list[str]:
    """Return the labels that votes give; unreadable ones give none."""
    return [vote.level for vote in votes if vote.level is not None]


def values_of(options: JudgeOptions, votes: Sequence[VoteRow]) -> list[float]:
    """Return the values of the levels that votes give."""
    return [options.scale.values[label] for label in labels_of(votes)]


def parts_of(asking: Asking, votes: Sequence[VoteRow], passing: Passing) -> dict[str, float]:
    """Return the parts; ``votes`` are those that can be read, 1 or more."""
    options, judges = asking.options, asking.judges
    values = values_of(options, votes)
    parts: dict[str, float] = {
        "votes": len(votes),
        "unreadable": len(asking.votes) - len(votes),
        "repairs": sum(vote.repaired is not None for vote in asking.votes),
        "cut": asking.cut,
        "mean": _mean(values),
        "median": float(np.median(values)),
        "level_place": _place(options, votes),
        "passing": passing.share,
        "passing_low": passing.interval[0],
        "passing_high": passing.interval[1],
    }
    for label in options.scale.values:
        if count := sum(vote.level == label for vote in votes):
            parts[f"votes:{label}"] = count
    for fault in PROBLEMS:
        if count := sum(vote.fault == fault for vote in asking.votes):
            parts[f"unreadable_{fault}"] = count
    if len(votes) > 1:
        parts["flip_rate"] = flip_rate(passing)
    if told := [vote.expected for vote in votes if vote.expected is not None]:
        parts["expected_score"] = _mean(told)
    for judge in judges if len(judges) > 1 else ():
        if own := [vote for vote in votes if vote.judge == judge]:
            parts[f"mean:{judge}"] = _mean(values_of(options, own))
            parts[f"place:{judge}"] = _place(options, own)
    alike = [
        [vote for vote in votes if (vote.judge, vote.order) == both]
        for both in product(judges, asking.orders)
    ]
    spreads = [spread(values_of(options, own)) for own in alike]
    if known := [spread for spread in spreads if spread is not None]:
        parts["sd"] = _mean(known)
        parts["steady"] = int(max(known) == 0)
    sides = [values_of(options, [v for v in votes if v.order == o]) for o in asking.orders]
    if len(sides) > 1 and all(sides):
        parts["order_difference"] = _mean(sides[0]) - _mean(sides[1])
    return parts


def _place(options: JudgeOptions, votes: Sequence[VoteRow]) -> int:
    values = options.scale.values
    return list(values).index(majority(labels_of(votes), values))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


@dataclass(slots=True)
class JudgeVotes:
    """The votes of one judge: how often each level, the reasons, and replies that were unreadable.

    ``shares`` holds (level, votes, percentage of the largest), ``reasons`` (level, reason, how
    often); ``left_out`` counts reasons that are not shown.
    """

    name: str
    own: bool = False
    shares: Sequence[tuple[str, int, float]] = ()
    reasons: Sequence[tuple[str, str, int]] = ()
    left_out: int = 0
    unreadable: Sequence[tuple[str, str]] = ()
    repaired: int = 0


def votes_of(name: str, rows: Sequence[VoteRow]) -> JudgeVotes:
    """Return the votes of one judge, by its rows of evidence."""
    given = [(row.level, row.reason.strip()) for row in rows if row.level is not None]
    levels = Counter(level for level, _ in given)
    most = max(levels.values(), default=1)
    reasons = Counter((level, text) for level, text in given if text)
    listed = [(*key, times) for key, times in reasons.most_common()]
    faulty = [row for row in rows if row.level is None and row.fault]
    return JudgeVotes(
        name,
        any(row.own for row in rows),
        [(level, n, 100 * n / most) for level, n in sorted(levels.items())],
        listed[:REASONS_SHOWN],
        max(0, len(listed) - REASONS_SHOWN),
        [(FAULTS.get(row.fault, "unreadable"), row.reply or "") for row in faulty],
        sum(row.repaired is True for row in rows),
    )
