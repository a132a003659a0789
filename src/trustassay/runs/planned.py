"""The content of a plan: calls, and ranges of tokens, money and time with their basis."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trustassay.calls.prices import Prices, Tokens
from trustassay.runs.estimates import NOTHING, Estimate, Range

__all__ = ["Part", "Plan", "Planned"]


@dataclass(frozen=True, slots=True)
class Planned:
    """The calls of one metric to one backend.

    ``cached`` of the ``calls`` are already stored; tokens, money and time are for the others. Each
    is one likely value, and a range in which it is expected. ``usd`` is ``None`` if no price is
    known; ``measured`` says whether the time was measured. ``basis`` describes the basis of the
    estimate, ``learnt_from`` is the number of stored replies used; a ``guess`` used none.
    """

    metric: str
    capability: str
    backend: str
    calls: int
    cached: int
    prompt_tokens: int
    prompt_tokens_range: tuple[int, int]
    reply_tokens: int
    reply_tokens_range: tuple[int, int]
    usd: float | None
    usd_range: tuple[float, float] | None
    seconds: float
    seconds_range: tuple[float, float]
    measured: bool
    guess: bool
    learnt_from: int
    basis: str

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True)
class Plan:
    """The calls of a run by metric and backend; a request that two share counts for the first.

    ``unsure`` counts samples for each metric whose rehearsal ended early, at a stand-in reply.
    """

    samples: int
    parts: Sequence[Planned]
    unsure: Mapping[str, int] = field(default_factory=dict)

    @property
    def usd(self) -> float | None:
        """The likely price of all, if all prices are known."""
        prices = [part.usd for part in self.parts if part.capability == "chat"]
        return None if None in prices else sum(filter(None, prices))

    @property
    def usd_range(self) -> tuple[float, float] | None:
        """The lowest and highest price of all calls, if all prices are known."""
        ranges = [part.usd_range for part in self.parts if part.capability == "chat"]
        known = [found for found in ranges if found is not None]
        return _summed(known) if len(known) == len(ranges) else None

    @property
    def seconds(self) -> float:
        """The likely time of all, one backend after the other."""
        return sum(part.seconds for part in self.parts)

    @property
    def seconds_range(self) -> tuple[float, float]:
        """The shortest and longest time of all calls."""
        return _summed([part.seconds_range for part in self.parts])

    @property
    def guess(self) -> bool:
        """Whether any part of it is a guess."""
        return any(part.guess for part in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "samples": self.samples,
            "parts": [part.to_dict() for part in self.parts],
            "unsure": dict(self.unsure),
            "usd": self.usd,
            "usd_range": self.usd_range,
            "seconds": round(self.seconds, 1),
            "seconds_range": self.seconds_range,
            "guess": self.guess,
        }


def _summed(ranges: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return sum(low for low, _ in ranges), sum(high for _, high in ranges)


@dataclass(slots=True)
class Part:
    """Adds up the calls of one metric to one backend."""

    metric: str
    capability: str
    backend: str
    calls: int = 0
    cached: int = 0
    prompt: Range = NOTHING
    reply: Range = NOTHING
    seconds: Range = NOTHING
    """Of all calls one after the other."""
    sources: Counter[str] = field(default_factory=Counter)
    replies: int = 0

    @property
    def new(self) -> int:
        """The calls that are not stored."""
        return self.calls - self.cached

    def add(self, estimate: Estimate) -> None:
        """Add a call to a chat model that is not stored."""
        self.prompt += estimate.prompt_tokens
        self.reply += estimate.reply_tokens
        self.seconds += estimate.seconds
        self.sources[estimate.source.kind] += 1
        self.replies = max(self.replies, estimate.source.replies)

    def chat(self, prices: Prices, seconds: Range) -> Planned:
        """Return the part of a chat model, whose calls take ``seconds`` together."""
        low, middle, high = (
            Tokens(whole(prompt), whole(reply))
            for whole, prompt, reply in (
                (math.floor, self.prompt.low, self.reply.low),
                (round, self.prompt.middle, self.reply.middle),
                (math.ceil, self.prompt.high, self.reply.high),
            )
        )
        least, likely, most = (
            prices.usd(self.backend, tokens) if self.new else 0.0 for tokens in (low, middle, high)
        )
        return self._planned(
            (low, middle, high),
            likely,
            None if least is None or most is None else (least, most),
            seconds,
            "; price: ".join(filter(None, (self._basis(), prices.basis(self.backend)))),
        )

    def local(self, seconds: Range, measured_on: int) -> Planned:
        """Return the part of any other model; ``measured_on`` requests of which the time is."""
        basis = "everything is cached" if not self.new else "guess: not measured"
        if measured_on and self.new:
            basis = f"measured on {measured_on:,} request{'s' if measured_on > 1 else ''}"
        return self._planned((Tokens(0, 0),) * 3, None, None, seconds, basis)

    def _planned(
        self,
        tokens: tuple[Tokens, Tokens, Tokens],
        usd: float | None,
        usd_range: tuple[float, float] | None,
        seconds: Range,
        basis: str,
    ) -> Planned:
        low, middle, high = tokens
        guess = basis.startswith("guess")
        return Planned(
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
        )

    def _basis(self) -> str:
        """Return in words what the tokens and the time of a chat model are based on."""
        if not self.new:
            return "everything is cached"
        if self.sources["none"]:
            if self.replies == 0:
                return "guess: no reply of this model is stored yet"
            are = "reply of this model is" if self.replies == 1 else "replies of this model are"
            return f"guess: only {self.replies} {are} stored yet"
        words = f"based on {self.replies:,} stored replies"
        if others := self.sources["other"]:
            words += " to other prompts"
            if self.sources["like"]:
                words += f" for {others:,} of {self.new:,} calls"
        return words
