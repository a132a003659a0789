"""Budgets: the most that calls may cost in money or tokens."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from trustassay.calls.prices import Prices, Tokens
from trustassay.calls.store import Usage
from trustassay.capabilities import ChatRequest
from trustassay.errors import BackendError, CallError, UsageError


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
