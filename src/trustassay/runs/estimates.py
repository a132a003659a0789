"""Estimates of tokens and seconds of calls to chat models, as ranges.

They are learnt from stored replies of the same model, if there are enough, and guessed otherwise.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from trustassay.backends.chat_text import OTHER_BYTES, OWN_BYTES
from trustassay.calls.prices import Prices, TokenCounts, estimate_tokens
from trustassay.calls.store import CallStore, CallUsage
from trustassay.core.capabilities import ChatRequest
from trustassay.core.decisions import DecisionQuestion
from trustassay.text.numbers import amount

MIN_STORED_REPLIES = 4
"""The least number of stored replies to learn from; fewer say too little."""
MAX_STORED_REPLIES = 2000
"""The most stored replies that are read; the latest ones."""
MIN_NEAR_REPLIES = 40
"""The number of replies to prompts of similar length from which only these are used."""
RANGE_PERCENTILES = (10, 90)
"""Percentiles of stored values that bound a range."""
MAX_OPEN_REPLY_TOKENS = 1000
"""The most tokens of a guessed reply, if the request sets no bound."""

# Prompts that want a reply of a word: "yes/no", "true or false", "in one word", "only the label".
_SHORT_REPLY_PATTERN = re.compile(
    r"yes[ /]+(or )?no|true[ /]+(or )?false|(one|a|single) (word|number|letter|digit|label)"
    r"|only the (word|number|letter|digit|label|name|answer)",
    re.IGNORECASE,
)
# Prompts that want a sentence: "in one sentence", "a single short sentence".
_SENTENCE_REPLY_PATTERN = re.compile(r"(one|a single) ([\w-]+ )?sentence", re.IGNORECASE)
DEFAULT_REPLY_TOKENS = 100
"""Tokens of a reply if neither stored replies nor the prompt say anything about its length."""
_EDGE_CHARACTERS = 400
"""Characters at both ends of a prompt in which its wording is searched; the middle is data."""


@dataclass(frozen=True, slots=True)
class Range:
    """A quantity that is expected between two bounds."""

    low: float = 0.0
    """The lower bound."""
    middle: float = 0.0
    """The most likely value."""
    high: float = 0.0
    """The upper bound."""

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.middle + other.middle, self.high + other.high)

    def scale(self, factor: float) -> Range:
        """Return the range with every value multiplied by ``factor``."""
        return Range(self.low * factor, self.middle * factor, self.high * factor)

    def at_least(self, other: Range) -> Range:
        """Return the larger of each of the three values."""
        return Range(
            max(self.low, other.low), max(self.middle, other.middle), max(self.high, other.high)
        )

    def within(self, low: float, high: float) -> Range:
        """Return the range with every value limited to ``low`` and ``high``."""
        return Range(*(min(max(value, low), high) for value in (self.low, self.middle, self.high)))


ZERO_RANGE = Range()
PAID_CAPABILITIES = ("chat", "decision")
"""Capabilities, as calls are stored, whose calls cost money by their tokens."""
DEFAULT_LATENCY_S = Range(0.3, 2.0, 10.0)
"""Seconds of a call if there are not enough stored calls to learn from."""


def stretch_factor(n: int) -> float:
    """Return the factor by which a range observed on ``n`` values is widened: 1 + 2 / √n.

    Future values differ from observed ones, and few values say little about them.
    """
    return 1 + 2 / math.sqrt(n)


def estimate_range(values: Sequence[float]) -> Range:
    """Return the range in which the mean of further values like these is expected.

    It reaches from the 10th to the 90th percentile, includes the mean, and is widened by
    :func:`stretch_factor`. The mean is its middle.
    """
    low, high = np.percentile(values, RANGE_PERCENTILES)
    middle, factor = float(np.mean(values)), stretch_factor(len(values))
    return Range(min(low, middle) / factor, middle, max(high, middle) * factor)


class EstimateSource(NamedTuple):
    """The basis of an estimate."""

    kind: str
    """``like``: replies to requests of the same kind; ``other``: replies to other requests to the
    same model; ``none``: there are too few replies."""
    replies: int
    """The number of stored replies of that kind."""


class CallEstimate(NamedTuple):
    """Tokens and seconds that one call is expected to take."""

    prompt_tokens: Range
    reply_tokens: Range
    """Of all replies that the call asks for together."""
    seconds: Range
    source: EstimateSource
    """The basis of the estimate."""


class _RequestKind(NamedTuple):
    """Requests of one kind have replies of similar length."""

    prompt: str
    """The prompt's file and version."""
    max_tokens: int | None
    """The bound of the reply."""
    n: int
    """The number of replies that are asked for."""


class _StoredReply(NamedTuple):
    """A stored call in numbers."""

    kind: _RequestKind
    length: int
    """Characters of the prompt."""
    ratio: float | None
    """Counted tokens of the prompt, divided by those estimated; ``None`` if not counted."""
    tokens: float
    """Tokens of one reply."""
    seconds: float
    """Duration of the call."""
    cut: bool
    """Whether the reply is as long as was allowed."""


class CallEstimator:
    """Estimates calls from the calls in ``stores`` to the same model."""

    def __init__(self, stores: Iterable[CallStore]) -> None:
        self._stores = list(stores)
        self._models: dict[str, _ModelHistory] = {}

    def estimate(self, backend: str, request: ChatRequest) -> CallEstimate:
        """Return the estimate for a request to the model ``backend``."""
        if backend not in self._models:
            latest = (store.latest("chat", backend, MAX_STORED_REPLIES) for store in self._stores)
            # A call may be in the run's store and in the shared cache: by key it counts once.
            calls_by_key = {call.key: call for calls in latest for call in calls}
            self._models[backend] = _ModelHistory(
                [reply for call in calls_by_key.values() if (reply := _read_stored_call(call))]
            )
        return self._models[backend].estimate(request)


def _read_stored_call(call: CallUsage) -> _StoredReply | None:
    """Return a stored call in numbers; ``None`` without a count of tokens, or if it is damaged."""
    if call.reply_tokens is None:
        return None
    try:
        fields = json.loads(json.loads(call.request)[0])
        characters = [len(content) for _, content in fields["messages"]]
        kind = _RequestKind(fields["prompt"], fields["max_tokens"], fields["n"])
        tokens = call.reply_tokens / kind.n
    except (ValueError, LookupError, TypeError, ZeroDivisionError):
        return None
    # The estimate of :func:`~trustassay.calls.prices.estimate_tokens`: 4 characters a token, and 4
    # tokens around each message.
    estimated = max(1, sum(characters) // 4 + 4 * len(characters))
    ratio = None if call.prompt_tokens is None else call.prompt_tokens / estimated
    cut = kind.max_tokens is not None and tokens >= kind.max_tokens
    return _StoredReply(kind, sum(characters), ratio, tokens, call.seconds, cut)


class _ModelHistory:
    """The stored calls of one model, as the basis of estimates."""

    def __init__(self, replies: Sequence[_StoredReply]) -> None:
        self._replies = replies
        self._learnt_by_kind: dict[
            tuple[_RequestKind, int], tuple[Range, Range, bool, EstimateSource]
        ] = {}

    def estimate(self, request: ChatRequest) -> CallEstimate:
        if len(self._replies) < MIN_STORED_REPLIES:
            source = EstimateSource("none", len(self._replies))
            return CallEstimate(
                _guess_prompt(request), guess_reply(request), DEFAULT_LATENCY_S, source
            )
        kind = _RequestKind(request.prompt, request.max_tokens, request.n)
        length = sum(len(message.content) for message in request.messages)
        # Prompts between two powers of 2 share one estimate, so that few are computed.
        size = max(1, length).bit_length()
        if (kind, size) not in self._learnt_by_kind:
            # Keyed without the text: a run has thousands of requests, and few kinds.
            self._learnt_by_kind[kind, size] = self._learn(kind, length)
        tokens, seconds, cut, source = self._learnt_by_kind[kind, size]
        # No estimate is longer than the request allows.
        most = float(request.max_tokens or math.inf)
        if cut:
            # Many replies were cut off, and this request may allow longer ones: how long they
            # would have been is not known.
            tokens = Range(tokens.low, tokens.middle, max(tokens.high, guess_reply(request).high))
        replies = tokens.within(1, most).scale(request.n)
        return CallEstimate(self._estimate_prompt(request), replies, seconds, source)

    def _learn(self, kind: _RequestKind, length: int) -> tuple[Range, Range, bool, EstimateSource]:
        """Return tokens, seconds and source learnt from replies, and whether many were cut."""
        replies: Sequence[_StoredReply] = [reply for reply in self._replies if reply.kind == kind]
        source = EstimateSource("like", len(replies))
        if len(replies) < MIN_STORED_REPLIES:
            replies, source = self._replies, EstimateSource("other", len(self._replies))
        # The length of a reply often depends on that of the prompt.
        near = [reply for reply in replies if length / 2 <= reply.length <= 2 * length]
        replies = near if len(near) >= MIN_NEAR_REPLIES else replies
        cut = sum(reply.cut for reply in replies) > len(replies) / 10
        tokens, seconds = ([getattr(s, name) for s in replies] for name in ("tokens", "seconds"))
        return estimate_range(tokens), estimate_range(seconds), cut, source

    def _estimate_prompt(self, request: ChatRequest) -> Range:
        if self._prompt_ratio is None:
            return _guess_prompt(request)
        return self._prompt_ratio.scale(max(1, estimate_tokens(request).prompt))

    @cached_property
    def _prompt_ratio(self) -> Range | None:
        ratios = [reply.ratio for reply in self._replies if reply.ratio is not None]
        return estimate_range(ratios) if len(ratios) >= MIN_STORED_REPLIES else None


def _guess_prompt(request: ChatRequest) -> Range:
    """Return the tokens of a prompt: from one per six characters to one per three bytes.

    The first holds for English with long words, the second for a script in which each character is
    a token.
    """
    texts = [message.content for message in request.messages]
    low = sum(map(len, texts)) / 6
    high = sum(len(text.encode("utf-8", "replace")) for text in texts) / 3 + 8 * len(texts)
    middle = float(estimate_tokens(request).prompt)
    return Range(low, min(max(middle, low), high), high)


def estimate_decision(question: DecisionQuestion) -> CallEstimate:
    """Return the estimate for a question to a decision model.

    A state that several questions share is counted once by some servers, and for each by others.
    """
    alone = _guess_prompt(ChatRequest.of(question.instructions))
    whole = _guess_prompt(ChatRequest.of(f"{question.state}\n{question.instructions}"))
    prompt = Range(alone.low, whole.middle, whole.high)
    return CallEstimate(prompt, Range(0, 1, 1), DEFAULT_LATENCY_S, EstimateSource("none", 0))


def guess_reply(request: ChatRequest) -> Range:
    """Return the tokens of a reply without stored ones: from 1 to what the request allows.

    The middle depends on what the prompt asks for: a word, a sentence, or a paragraph.
    """
    most = float(request.max_tokens or MAX_OPEN_REPLY_TOKENS)
    text = request.messages[-1].content if request.messages else ""
    ends = f"{text[:_EDGE_CHARACTERS]}\n{text[-_EDGE_CHARACTERS:]}"
    middle = DEFAULT_REPLY_TOKENS
    if _SHORT_REPLY_PATTERN.search(ends):
        middle = 5
    elif _SENTENCE_REPLY_PATTERN.search(ends):
        middle = 40
    return Range(1, min(middle, most), most).scale(request.n)


@dataclass(frozen=True, slots=True)
class PlannedCalls:
    """The planned calls of one metric to one backend.

    Tokens, money and time are for the calls that are not stored. Each has one likely value, and a
    range in which it is expected.
    """

    metric: str
    """The metric, or the stage that fills samples."""
    capability: str
    backend: str
    calls: int
    """All calls, the stored ones included."""
    cached: int
    """Calls that are stored already."""
    prompt_tokens: int
    prompt_tokens_range: tuple[int, int]
    reply_tokens: int
    reply_tokens_range: tuple[int, int]
    usd: float | None
    """US dollars; ``None`` if no price is known."""
    usd_range: tuple[float, float] | None
    seconds: float
    seconds_range: tuple[float, float]
    measured: bool
    """Whether the time is based on measured calls."""
    guess: bool
    """Whether the estimate is based on no stored reply and no measurement."""
    learnt_from: int
    """The number of stored replies that were used."""
    basis: str
    """The basis of the estimate in words."""
    logprob_bytes: int
    """What log-probabilities add to the store; they take no tokens."""


@dataclass(frozen=True)
class Plan:
    """The planned calls of a run."""

    samples: int
    """The number of samples."""
    parts: Sequence[PlannedCalls]
    """The calls by metric and backend; a request that two metrics share counts for the first."""
    unsure: Mapping[str, int] = field(default_factory=dict)
    """By metric, the samples whose rehearsal ended early, at a stand-in reply."""
    unread: Mapping[str, int] = field(default_factory=dict)
    """By metric, the samples in languages that its models do not read: nothing is asked for
    them."""
    second: str | None = None
    """The name of a second reader. Its calls depend on the findings of the first one, and are not
    counted."""
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By metric, the samples that are left out since their model is not given, by its name."""
    asked_instead: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    """By metric, the samples about which a model is asked that they do not name, by that model and
    by the name in the samples."""

    @property
    def usd(self) -> float | None:
        """The likely price of all, if all prices are known."""
        # Other models cost no money; one unknown price makes the sum unknown.
        prices = [part.usd for part in self.parts if part.capability in PAID_CAPABILITIES]
        return None if None in prices else sum(filter(None, prices))

    @property
    def usd_range(self) -> tuple[float, float] | None:
        """The lowest and highest price of all calls, if all prices are known."""
        ranges = [part.usd_range for part in self.parts if part.capability in PAID_CAPABILITIES]
        return None if None in ranges else _sum_ranges(list(filter(None, ranges)))

    @property
    def seconds(self) -> float:
        """The likely time of all, one backend after the other."""
        return sum(part.seconds for part in self.parts)

    @property
    def seconds_range(self) -> tuple[float, float]:
        """The shortest and longest time of all calls."""
        return _sum_ranges([part.seconds_range for part in self.parts])

    @property
    def guess(self) -> bool:
        """Whether any part of it is a guess."""
        return any(part.guess for part in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "samples": self.samples,
            "parts": [asdict(part) for part in self.parts],
            "unsure": dict(self.unsure),
            **({"unread": dict(self.unread)} if self.unread else {}),
            **({"second": self.second} if self.second else {}),
            **({"left_out": self.left_out} if self.left_out else {}),
            **({"asked_instead": self.asked_instead} if self.asked_instead else {}),
            "usd": self.usd,
            "usd_range": self.usd_range,
            "seconds": round(self.seconds, 1),
            "seconds_range": self.seconds_range,
            "guess": self.guess,
        }


def _sum_ranges(ranges: Sequence[tuple[float, float]]) -> tuple[float, float]:
    # All lower bounds together: the calls of several backends need not be low at once, so that the
    # range is wide.
    return sum(low for low, _ in ranges), sum(high for _, high in ranges)


@dataclass(slots=True)
class CallTotals:
    """Adds up the calls of one metric to one backend."""

    metric: str
    capability: str
    backend: str
    calls: int = 0
    """All calls, the stored ones included."""
    cached: int = 0
    """Calls that are stored already."""
    prompt: Range = ZERO_RANGE
    """Tokens of all prompts."""
    reply: Range = ZERO_RANGE
    """Tokens of all replies."""
    seconds: Range = ZERO_RANGE
    """Of all calls, one after the other."""
    sources: Counter[str] = field(default_factory=Counter)
    """How many estimates have which kind of source."""
    replies: int = 0
    """The largest number of stored replies that an estimate is based on."""
    logprob_bytes: float = 0.0
    """What log-probabilities add to the store."""

    @property
    def new(self) -> int:
        """The calls that are not stored."""
        return self.calls - self.cached

    def add(self, estimate: CallEstimate, request: ChatRequest | None = None) -> None:
        """Add a call to a chat model that is not stored; without a request to a decision model."""
        # For each token the store holds the chosen one and ``logprobs`` others.
        if request is not None and request.logprobs is not None:
            each = OWN_BYTES + OTHER_BYTES * request.logprobs
            self.logprob_bytes += each * estimate.reply_tokens.middle / request.n
        self.prompt += estimate.prompt_tokens
        self.reply += estimate.reply_tokens
        self.seconds += estimate.seconds
        self.sources[estimate.source.kind] += 1
        self.replies = max(self.replies, estimate.source.replies)

    def plan_paid(self, prices: Prices, seconds: Range) -> PlannedCalls:
        """Return the planned calls to a chat model or a decision model.

        Args:
            seconds: duration of all calls together, some of them at once.
        """
        low, middle, high = (
            TokenCounts(rounding(prompt), rounding(reply))
            for rounding, prompt, reply in (
                (math.floor, self.prompt.low, self.reply.low),
                (round, self.prompt.middle, self.reply.middle),
                (math.ceil, self.prompt.high, self.reply.high),
            )
        )
        least, likely, most = (
            prices.usd(self.backend, tokens) if self.new else 0.0 for tokens in (low, middle, high)
        )
        # Cheapest and dearest: few tokens of both kinds, and many of both.
        between = None if least is None or most is None else (least, most)
        basis = "; price: ".join(filter(None, (self._describe_basis(), prices.basis(self.backend))))
        return self._build_planned((low, middle, high), likely, between, seconds, basis)

    def plan_local(self, seconds: Range, measured_on: int) -> PlannedCalls:
        """Return the planned requests to any other model, which take no tokens.

        Args:
            seconds: duration of all requests.
            measured_on: the number of requests that were timed; 0 if none was.
        """
        # The order matters: with nothing new, neither a measurement nor a guess is used.
        basis = "everything is cached" if not self.new else "guess: speed not measured"
        if measured_on and self.new:
            basis = f"measured on {amount(measured_on, 'request')}"
        return self._build_planned((TokenCounts(0, 0),) * 3, None, None, seconds, basis)

    def _build_planned(
        self,
        tokens: tuple[TokenCounts, TokenCounts, TokenCounts],
        usd: float | None,
        usd_range: tuple[float, float] | None,
        seconds: Range,
        basis: str,
    ) -> PlannedCalls:
        low, middle, high = tokens
        guess = basis.startswith("guess")
        return PlannedCalls(
            self.metric,
            self.capability,
            self.backend,
            self.calls,
            self.cached,
            middle.prompt,
            (low.prompt, high.prompt),
            middle.reply,
            (low.reply, high.reply),
            usd,
            usd_range,
            seconds.middle,
            (seconds.low, seconds.high),
            not guess,
            guess,
            0 if guess or self.capability != "chat" else self.replies,
            basis,
            round(self.logprob_bytes),
        )

    def _describe_basis(self) -> str:
        """Return the basis of tokens and time of a chat model in words."""
        if not self.new:
            return "everything is cached"
        # One estimate without a basis makes the whole part a guess.
        if self.sources["none"]:
            if self.replies == 0:
                return "guess: no reply of this model is stored yet"
            replies = amount(self.replies, "stored reply", "stored replies")
            return f"guess: only {replies} of this model"
        # Replies to other prompts are a weaker basis, which the user should know of.
        message = f"based on {amount(self.replies, 'stored reply', 'stored replies')}"
        if to_other_prompts := self.sources["other"]:
            message += " to other prompts"
            if self.sources["like"]:
                message += f" for {to_other_prompts:,} of {self.new:,} calls"
        return message
