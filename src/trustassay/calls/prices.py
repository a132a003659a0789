"""Tokens and prices of calls, the user's prices or published ones, and the budget of a run.

Published prices are those of the installed package genai-prices. That package can fetch newer ones
in a thread. The thread is never started here, and prices that another library fetched are not read.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from trustassay.backends.registry import find_price_provider
from trustassay.calls.store import Usage
from trustassay.core.capabilities import ChatRequest
from trustassay.errors import BackendError, CallError, UsageError

# Notes of genai-prices, such as "verified on 2025-08-01".
_DATE_OF_CHECK = re.compile(r"(?:verified|checked|as of)(?: on)? (20\d\d-\d\d-\d\d)", re.IGNORECASE)
THOUSAND = 1000


class Price(NamedTuple):
    """The price of a model."""

    prompt: float
    """US dollars for a million tokens of prompts."""
    reply: float
    """US dollars for a million tokens of replies."""

    def of(self, tokens: TokenCounts) -> float:
        """Return the price of tokens in US dollars."""
        return (self.prompt * tokens.prompt + self.reply * tokens.reply) / MILLION


def find_published_price(backend: str) -> Price | None:
    """Return the published price of a backend's model; ``None`` if it has none.

    It is the price of the lowest tier: prompts of up to a thousand tokens, none of them cached. If
    the URI names an address, the table's price for that address counts; a local address has none.

    Args:
        backend: the name, as ``openai:gpt-4o-mini`` or
            ``openai:MODEL@https://openrouter.ai/api/v1``.
    """
    provider = find_price_provider(backend)
    if not provider:
        return None
    # openai:MODEL@https://HOST/v1?key=NAME has the model MODEL and the address s://HOST/v1.
    model, _, address = backend.partition(":")[2].partition("?")[0].partition("@http")
    where = {"provider_id": None if address else provider}
    where["provider_api_url"] = f"http{address}" if address else None
    # Imported only when a price is looked up.
    from genai_prices import Usage

    usage = Usage(input_tokens=THOUSAND, output_tokens=THOUSAND)
    try:
        result = _load_price_table().calc(usage, model, genai_request_timestamp=None, **where)
    except LookupError:
        return None
    # The prices are for a thousand tokens each. A million would fall into the tier of long prompts.
    return Price(float(result.input_price) * THOUSAND, float(result.output_price) * THOUSAND)


@cache
def describe_price_table() -> str:
    """Return the table's name and version, and the latest day that a price in it was checked."""
    notes = [provider.price_comments or "" for provider in _load_price_table().providers]
    notes += [
        m.price_comments or ""
        for provider in _load_price_table().providers
        for m in provider.models
    ]
    days = [day for note in notes for day in _DATE_OF_CHECK.findall(note)]
    of = f" of {max(days)}" if days else ""
    return f"genai-prices {version('genai-prices')}{of}"


@cache
def _load_price_table() -> Any:
    """Return the table as it was installed."""
    from genai_prices.data import providers
    from genai_prices.data_snapshot import DataSnapshot

    return DataSnapshot(providers=providers, from_auto_update=False)


CHARACTERS_PER_TOKEN = 4
REPLY_TOKENS = 256
"""Tokens of a reply to expect if neither the request nor earlier replies tell."""
MILLION = 1_000_000


class TokenCounts(NamedTuple):
    """Tokens of a call."""

    prompt: int
    """Tokens that are sent."""
    reply: int
    """Tokens that come back."""


def estimate_tokens(request: ChatRequest, reply_tokens: int = REPLY_TOKENS) -> TokenCounts:
    """Return an estimate of the tokens of a request, with four characters to a token.

    ``reply_tokens`` are expected of each reply if the request sets no maximum.
    """
    characters = sum([len(message.content) for message in request.messages])
    prompt = characters // CHARACTERS_PER_TOKEN + 4 * len(request.messages)
    return TokenCounts(prompt, (request.max_tokens or reply_tokens) * request.n)


@dataclass(frozen=True)
class Prices:
    """Prices by model: by a model's name, a backend's whole name, or a pattern with ``*``.

    A model that is not in the table has its published price (:func:`find_published_price`).

    In a file: ``{"gpt-4o-mini": {"prompt": 0.15, "reply": 0.60}, "mistral-*": {...}}``, in US
    dollars for a million tokens.
    """

    table: Mapping[str, Price] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Prices:
        """Read a file of prices.

        Raises:
            ValueError: the file has another content; the message names the file and the entry.
            OSError: it cannot be read.
        """
        path = Path(path)
        try:
            result = json.loads(path.read_bytes())
        except ValueError as error:
            raise UsageError(f"{path}: is not JSON ({error})") from None
        if not isinstance(result, dict):
            raise UsageError(f"{path}: expected a JSON object with a price for each model")
        table = {}
        for model, price in result.items():
            try:
                pair = Price(float(price["prompt"]), float(price["reply"]))
                # float() accepts nan and inf, and no price is negative.
                if set(price) != {"prompt", "reply"} or not all(0 <= x < math.inf for x in pair):
                    raise ValueError
            except (TypeError, KeyError, ValueError):
                raise UsageError(
                    f'{path}: {model}: expected {{"prompt": USD, "reply": USD}} per million '
                    f"tokens, got {json.dumps(price)[:60]}"
                ) from None
            table[model] = pair
        return cls(table)

    def of(self, backend: str) -> Price | None:
        """Return the price of a backend's model; ``None`` if it is not known."""
        return self._find_user_price(backend) or find_published_price(backend)

    def basis(self, backend: str) -> str:
        """Return the published table that a price comes from; empty for the user's price."""
        if self._find_user_price(backend) or find_published_price(backend) is None:
            return ""
        return describe_price_table()

    def _find_user_price(self, backend: str) -> Price | None:
        """Return the user's price; exact names come before patterns."""
        # openai:gpt-4o@https://HOST/v1?rpm=5 and openai:gpt-4o are both the model gpt-4o.
        model = re.split(r"@(?=https?://)|\?", backend.partition(":")[2])[0]
        for name in (backend, model):
            if name in self.table:
                return self.table[name]
        # In the order of the file: the first pattern that fits counts.
        for pattern, price in self.table.items():
            if fnmatchcase(backend, pattern) or fnmatchcase(model, pattern):
                return price
        return None

    def usd(self, backend: str, tokens: TokenCounts) -> float | None:
        """Return what tokens of a backend cost in US dollars; ``None`` if the price is unknown."""
        price = self.of(backend)
        return None if price is None else price.of(tokens)


class BudgetReachedError(BackendError):
    """The call was not made, since it might cost more than is left of the budget."""


@dataclass(frozen=True)
class Budget:
    """The most that a run may spend."""

    amount: float
    """In ``unit``."""
    unit: str
    """``usd`` or ``tokens``."""

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read ``5usd``, ``$0.50``, ``200000``, ``200k``, ``1.5M tokens``.

        Raises:
            ValueError: it is none of these.
        """
        words = text.strip().lower().replace(",", "").replace("_", "")
        # $5, $ 0.50, 5usd, 5 $
        money = re.fullmatch(r"\$\s*([\d.]+)|([\d.]+)\s*(?:usd|\$)", words)
        # 200000, 200k, 1.5m tokens
        count = re.fullmatch(r"([\d.]+)\s*([km]?)\s*(?:tokens?)?", words)
        try:
            if money:
                return cls(float(money[1] or money[2]), "usd")
            if count:
                return cls(float(count[1]) * {"": 1, "k": 1e3, "m": 1e6}[count[2]], "tokens")
        except ValueError:
            pass
        raise UsageError(f"budget: expected for example 5usd or 200000 (tokens), got {text!r}")

    @classmethod
    def of(cls, choice: Budget | str | None) -> Budget | None:
        """Return a budget from a budget, a text for :meth:`parse`, or ``None`` for no budget.

        Raises:
            ValueError: it is none of these.
        """
        if choice is None or isinstance(choice, Budget):
            return choice
        if not isinstance(choice, str):
            raise UsageError(f'budget: expected for example "5usd" or "200k", got {choice!r}')
        return cls.parse(choice)

    def __str__(self) -> str:
        return f"{self.amount:g} USD" if self.unit == "usd" else f"{self.amount:,.0f} tokens"


class BudgetLedger:
    """Keeps a run within its budget.

    A call in progress counts with its maximum cost until its cost is known, so that calls that run
    at the same time cannot exceed the budget together.

    Args:
        budget: ``None``: nothing is limited.
        prices: the prices of models.
        spent: what this run has already paid for, by backend.
        paid: the backends that cost money; tokens of others are not counted.

    Raises:
        BackendError: the budget is in US dollars, and a model has no price.
    """

    def __init__(
        self,
        budget: Budget | None,
        prices: Prices,
        spent: Mapping[str, Usage],
        paid: Collection[str],
    ) -> None:
        self._budget, self._prices = budget, prices
        self._reserved = 0.0
        self._spent = 0.0
        self._settled_condition = asyncio.Condition()
        if budget:
            # This raises for a model without a price before any call is made.
            for backend in paid:
                usage = spent.get(backend, Usage())
                tokens = TokenCounts(usage.prompt_tokens, usage.reply_tokens)
                self._spent += self._cost_in_unit(backend, tokens)

    def _cost_in_unit(self, backend: str, tokens: TokenCounts) -> float:
        """Return what tokens count in the unit of the budget."""
        assert self._budget
        if self._budget.unit == "tokens":
            return sum(tokens)
        usd = self._prices.usd(backend, tokens)
        if usd is None:
            advice = "add it with --prices, or set the budget in tokens (--budget 200000)"
            raise BackendError(f"a budget in US dollars needs the price of {backend}; {advice}")
        return usd

    async def reserve(self, backend: str, tokens: TokenCounts) -> float:
        """Reserve the maximum cost of a call, and return it.

        Wait while the amounts reserved for calls in progress leave too little.

        Raises:
            BudgetReachedError: it is more than is left when no call is in progress.
        """
        if self._budget is None or not sum(tokens):
            return 0.0
        cost = self._cost_in_unit(backend, tokens)
        async with self._settled_condition:
            while self._spent + self._reserved + cost > self._budget.amount:
                # With calls in progress, some of what they hold may be released: wait for that.
                if self._reserved <= 0:
                    raise BudgetReachedError(
                        f"the budget of {self._budget} is reached; to continue, run the same "
                        "command with a larger budget"
                    )
                await self._settled_condition.wait()
            self._reserved += cost
        return cost

    async def settle(self, reserved: float, backend: str, tokens: TokenCounts | None) -> None:
        """Release a reserved amount, and pay for ``tokens``; ``None`` if the call used none."""
        if self._budget is None or not (reserved or (tokens and sum(tokens))):
            return
        async with self._settled_condition:
            self._reserved -= reserved
            # Sums of floats do not return to 0 exactly, and reserve() tests for 0.
            if self._reserved < 1e-12:
                self._reserved = 0.0
            if tokens is not None:
                self._spent += self._cost_in_unit(backend, tokens)
            # Wake all: a small call may fit where the first in the queue does not.
            self._settled_condition.notify_all()


class CountedRequest(Protocol):
    """One request to a chat model; each try is counted, since their number may be limited."""

    def check(self) -> None:
        """Raise :class:`CallError` if the request has failed for good before, or had no answer."""

    def admit(self) -> None:
        """Count a try that is about to leave; raise :class:`BudgetReachedError` if none may."""

    def sending(self) -> AbstractContextManager[None]:
        """Count every further request that leaves on behalf of a try that was admitted."""

    def record_failure(self, error: CallError, *, retry: bool = False) -> None:
        """Count a failed try; ``retry``: its reply was empty, and it is sent once more."""


class RequestLimiter(Protocol):
    """Counts the requests to chat models, and limits their number."""

    def of(self, backend: str, request: ChatRequest) -> CountedRequest:
        """Return the counts of one request."""
