"""Tokens of calls, what they cost by the user's prices or published ones, and what they may cost.

Published prices are those of the installed package genai-prices. It can fetch newer ones in a
thread, which is never started here, and what another library made it fetch is not read.
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

from trustassay.backends.registry import price_provider
from trustassay.calls.store import Usage
from trustassay.capabilities import ChatRequest
from trustassay.errors import BackendError, CallError, UsageError

_CHECKED = re.compile(r"(?:verified|checked|as of)(?: on)? (20\d\d-\d\d-\d\d)", re.IGNORECASE)
THOUSAND = 1000


class Price(NamedTuple):
    """US dollars for a million tokens."""

    prompt: float
    reply: float

    def of(self, tokens: Tokens) -> float:
        """Return the price of tokens in US dollars."""
        return (self.prompt * tokens.prompt + self.reply * tokens.reply) / MILLION


def published_price(backend: str) -> Price | None:
    """Return the published price of a backend's model; ``None`` if it has none.

    Those of the lowest tier: prompts of up to a thousand tokens, none of them cached. An endpoint
    that the URI names has the price that the table gives for its address, and a local one none.

    Args:
        backend: the name, as ``openai:gpt-4o-mini`` or ``openai:MODEL@https://openrouter.ai/api/v1``.
    """
    provider = price_provider(backend)
    if not provider:
        return None
    model, _, address = backend.partition(":")[2].partition("?")[0].partition("@http")
    where = {"provider_id": None if address else provider}
    where["provider_api_url"] = f"http{address}" if address else None
    from genai_prices import Usage

    usage = Usage(input_tokens=THOUSAND, output_tokens=THOUSAND)
    try:
        result = _table().calc(usage, model, genai_request_timestamp=None, **where)
    except LookupError:
        return None
    return Price(float(result.input_price) * THOUSAND, float(result.output_price) * THOUSAND)


@cache
def table_told() -> str:
    """Return which table it is, and the latest day on which one of its prices was checked."""
    notes = [one.price_comments or "" for one in _table().providers]
    notes += [m.price_comments or "" for one in _table().providers for m in one.models]
    days = [day for note in notes for day in _CHECKED.findall(note)]
    of = f" of {max(days)}" if days else ""
    return f"genai-prices {version('genai-prices')}{of}"


@cache
def _table() -> Any:
    from genai_prices.data import providers
    from genai_prices.data_snapshot import DataSnapshot

    return DataSnapshot(providers=providers, from_auto_update=False)


CHARACTERS_PER_TOKEN = 4
REPLY_TOKENS = 256
"""Tokens of a reply to expect where neither the request nor experience says."""
MILLION = 1_000_000


class Tokens(NamedTuple):
    """Tokens of a call: of what is sent and of what comes back."""

    prompt: int
    reply: int


def estimated_tokens(request: ChatRequest, reply_tokens: int = REPLY_TOKENS) -> Tokens:
    """Return about how many tokens a request will take, four characters to a token."""
    characters = sum([len(message.content) for message in request.messages])
    prompt = characters // CHARACTERS_PER_TOKEN + 4 * len(request.messages)
    return Tokens(prompt, (request.max_tokens or reply_tokens) * request.n)


@dataclass(frozen=True)
class Prices:
    """Prices by model: a model's name, a backend's whole name, or a pattern with ``*``.

    A model that is not in the table has its published price (:func:`published_price`).

    In a file: ``{"gpt-4o-mini": {"prompt": 0.15, "reply": 0.60}, "mistral-*": {...}}``, in US
    dollars for a million tokens.
    """

    table: Mapping[str, Price] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Prices:
        """Read a table of prices.

        Raises:
            ValueError: the file is no such table; names the file and the entry.
            OSError: it cannot be read.
        """
        path = Path(path)
        try:
            result = json.loads(path.read_bytes())
        except ValueError as error:
            raise UsageError(f"{path}: is not JSON ({error})") from None
        if not isinstance(result, dict):
            raise UsageError(f"{path}: expected an object of prices by model")
        table = {}
        for model, price in result.items():
            try:
                pair = Price(float(price["prompt"]), float(price["reply"]))
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
        return self._own(backend) or published_price(backend)

    def basis(self, backend: str) -> str:
        """Return which published table a backend's price is of; empty if it is of none."""
        if self._own(backend) or published_price(backend) is None:
            return ""
        return table_told()

    def _own(self, backend: str) -> Price | None:
        model = re.split(r"@(?=https?://)|\?", backend.partition(":")[2])[0]
        for name in (backend, model):
            if name in self.table:
                return self.table[name]
        for pattern, price in self.table.items():
            if fnmatchcase(backend, pattern) or fnmatchcase(model, pattern):
                return price
        return None

    def usd(self, backend: str, tokens: Tokens) -> float | None:
        """Return what tokens of a backend cost; ``None`` if the price is unknown."""
        price = self.of(backend)
        return None if price is None else price.of(tokens)


class BudgetReachedError(BackendError):
    """The call was not made, since it might cost more than is left."""


@dataclass(frozen=True)
class Budget:
    """The most that a run may spend, in US dollars or in tokens."""

    amount: float
    unit: str

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read ``5usd``, ``$0.50``, ``200000``, ``200k``, ``1.5M tokens``.

        Raises:
            ValueError: it is none of these.
        """
        words = text.strip().lower().replace(",", "").replace("_", "")
        money = re.fullmatch(r"\$\s*([\d.]+)|([\d.]+)\s*(?:usd|\$)", words)
        count = re.fullmatch(r"([\d.]+)\s*([km]?)\s*(?:tokens?)?", words)
        try:
            if money:
                return cls(float(money[1] or money[2]), "usd")
            if count:
                return cls(float(count[1]) * {"": 1, "k": 1e3, "m": 1e6}[count[2]], "tokens")
        except ValueError:
            pass
        raise UsageError(f"budget: expected 5usd or 200000 (tokens), got {text!r}")

    @classmethod
    def of(cls, choice: Budget | str | None) -> Budget | None:
        """Return a budget that is given as one, as a text of :meth:`parse`, or not at all.

        Raises:
            ValueError: it is neither.
        """
        if choice is None or isinstance(choice, Budget):
            return choice
        if not isinstance(choice, str):
            raise UsageError(f'budget: expected a text such as "5usd" or "200k", got {choice!r}')
        return cls.parse(choice)

    def __str__(self) -> str:
        return f"{self.amount:g} USD" if self.unit == "usd" else f"{self.amount:,.0f} tokens"


class BudgetLedger:
    """Keeps a budget: a call in progress counts with its maximum cost until its cost is known.

    spent: what this run has already paid for, by backend.
    paid: the backends that cost money; tokens of others are not counted.

    Raises:
        BackendError: a budget in US dollars, and a model without a price.
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
        self._settled = asyncio.Condition()
        if budget:
            for backend in paid:
                usage = spent.get(backend, Usage())
                tokens = Tokens(usage.prompt_tokens, usage.reply_tokens)
                self._spent += self._worth(backend, tokens)

    def _worth(self, backend: str, tokens: Tokens) -> float:
        assert self._budget
        if self._budget.unit == "tokens":
            return sum(tokens)
        usd = self._prices.usd(backend, tokens)
        if usd is None:
            raise BackendError(f"a budget in US dollars needs a price of {backend} (--prices FILE)")
        return usd

    async def reserve(self, backend: str, tokens: Tokens) -> float:
        """Reserve what a call may cost, and return it.

        Raises:
            BudgetReachedError: that is more than is left when no call is in progress.
        """
        if self._budget is None or not sum(tokens):
            return 0.0
        worth = self._worth(backend, tokens)
        async with self._settled:
            while self._spent + self._reserved + worth > self._budget.amount:
                if self._reserved <= 0:
                    raise BudgetReachedError(
                        f"the budget of {self._budget} is reached; to continue, run the same "
                        "command with a larger one"
                    )
                await self._settled.wait()
            self._reserved += worth
        return worth

    async def settle(self, reserved: float, backend: str, tokens: Tokens | None) -> None:
        """Release the reserved amount, and pay for the tokens used; ``None``: none were."""
        if self._budget is None or not (reserved or (tokens and sum(tokens))):
            return
        async with self._settled:
            self._reserved -= reserved
            if self._reserved < 1e-12:
                self._reserved = 0.0
            if tokens is not None:
                self._spent += self._worth(backend, tokens)
            self._settled.notify_all()


class Counted(Protocol):
    """One request, each try of which is counted by whoever limits their number."""

    def check(self) -> None:
        """Raise :class:`CallError` if it was refused, or answered by nothing, before."""

    def admit(self) -> None:
        """Count a try that is about to leave; raise :class:`BudgetReachedError` if none may."""

    def sending(self) -> AbstractContextManager[None]:
        """Count every further request that leaves on behalf of a try that was admitted."""

    def failed(self, error: CallError, *, again: bool = False) -> None:
        """Count a try that failed; ``again`` where it was empty and is sent once more."""


class RequestCounter(Protocol):
    """Counts the requests to chat models."""

    def of(self, backend: str, request: ChatRequest) -> Counted:
        """Return the counter's view of one request."""
