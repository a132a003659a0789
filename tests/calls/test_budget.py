"""Prices, budgets, and the ledger that keeps them."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.virtual_time import run
from trustassay.calls.prices import (
    Budget,
    BudgetLedger,
    BudgetReachedError,
    Price,
    Prices,
    TokenCounts,
    estimate_tokens,
)
from trustassay.calls.store import Usage
from trustassay.core.capabilities import ChatRequest
from trustassay.errors import BackendError

GPT = "openai:gpt-4o-mini@https://api.openai.com/v1"
TABLE = {"gpt-4o-mini": Price(0.15, 0.60), "mistral-*": Price(1, 2)}


@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        ("5usd", 5, "usd"),
        ("$0.50", 0.5, "usd"),
        ("0.5 USD", 0.5, "usd"),
        ("2$", 2, "usd"),
        ("200000", 200_000, "tokens"),
        ("200,000 tokens", 200_000, "tokens"),
        ("200k", 200_000, "tokens"),
        ("1.5M tokens", 1_500_000, "tokens"),
        ("0", 0, "tokens"),
    ],
)
def test_budgets_are_read(text: str, amount: float, unit: str) -> None:
    assert Budget.parse(text) == Budget(amount, unit)


@pytest.mark.parametrize("text", ["", "five", "-5", "5 eur", "1.2.3", ".", "$", "k", "nan", "inf"])
def test_what_is_no_budget_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="budget: expected for example 5usd or 200000") as error:
        Budget.parse(text)
    assert repr(text) in str(error.value)


def test_a_price_is_found_by_model_by_backend_and_by_pattern() -> None:
    prices = Prices(TABLE)
    # 1,000 tokens of a prompt at 0.15 and 2,000 of a reply at 0.60 USD a million.
    assert prices.usd(GPT, TokenCounts(1000, 2000)) == pytest.approx(0.00135)
    assert prices.of("openai:mistral-7b@http://127.0.0.1:1/v1?api-version=1") == Price(1, 2)
    assert Prices({GPT: Price(7, 7)}).of(GPT) == Price(7, 7)
    assert prices.of("openai:org/mistral-7b@http://h/v1") is None
    assert prices.usd("anthropic:other@https://h", TokenCounts(1, 1)) is None
    assert prices.of("openai:gpt-4o-mini") == Price(0.15, 0.60)
    at = Prices({"m@2024:a/b": Price(3, 3)})
    assert at.of("openai:m@2024:a/b@https://h/v1") == Price(3, 3)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "expected a JSON object with a price for each model"),
        ('{"m": 3}', 'm: expected {"prompt": USD, "reply": USD}'),
        ('{"m": {"prompt": 1}}', "m: expected"),
        ('{"m": {"prompt": 1, "reply": "x"}}', "m: expected"),
        ('{"m": {"prompt": -1, "reply": 1}}', "m: expected"),
        ('{"m": {"prompt": NaN, "reply": 1}}', "m: expected"),
        ('{"m": {"prompt": 1, "reply": 1, "input": 2}}', "m: expected"),
    ],
)
def test_a_table_with_a_fault_is_named(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "prices.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"prices\.json") as error:
        Prices.read(path)
    assert words in str(error.value)


def test_a_table_is_read(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"m": {"prompt": 1, "reply": 4}}))
    assert Prices.read(path).table == {"m": Price(1, 4)}


def test_tokens_are_estimated_by_length() -> None:
    request = ChatRequest.of("x" * 400, system="y" * 40, max_tokens=50, n=3)
    assert estimate_tokens(request) == TokenCounts(440 // 4 + 8, 150)
    assert estimate_tokens(ChatRequest.of("")).reply == 256


# ---- the ledger ----


def ledger(amount: float, unit: str = "tokens", **others: Any) -> BudgetLedger:
    given: dict[str, Any] = {"prices": Prices(TABLE), "spent": {}, "paid": [GPT]} | others
    return BudgetLedger(Budget(amount, unit), **given)


def test_a_budget_in_money_needs_a_price_of_every_paid_backend() -> None:
    with pytest.raises(BackendError, match="needs the price of openai:x"):
        ledger(1, "usd", paid=[GPT, "openai:x"])
    ledger(1, "usd", spent={"hf:local": Usage(5, 100, 100)})
    ledger(1, "tokens", paid=["openai:x"])


def test_what_was_spent_before_counts_and_what_was_local_does_not() -> None:
    async def work() -> None:
        before = {GPT: Usage(1, 600, 300), "hf:local": Usage(9, 10**6, 10**6)}
        mine = ledger(1000, spent=before)
        assert await mine.reserve(GPT, TokenCounts(50, 50)) == 100
        with pytest.raises(BudgetReachedError, match="budget of 999 tokens is reached"):
            mine_two = ledger(999, spent=before)
            await mine_two.reserve(GPT, TokenCounts(50, 50))

    run(work)


def test_who_waits_for_a_reservation_gets_what_is_left_of_it() -> None:
    async def work() -> None:
        mine = ledger(100)
        first = await mine.reserve(GPT, TokenCounts(40, 40))
        second = asyncio.create_task(mine.reserve(GPT, TokenCounts(40, 40)))
        await asyncio.sleep(1)
        assert not second.done()
        await mine.settle(first, GPT, TokenCounts(10, 5))
        assert await second == 80
        with pytest.raises(BudgetReachedError):  # 15 are spent and 80 will not be
            third = asyncio.create_task(mine.reserve(GPT, TokenCounts(40, 40)))
            await asyncio.sleep(0)
            await mine.settle(80, GPT, TokenCounts(40, 30))
            await third

    run(work)


def test_a_failed_call_costs_nothing() -> None:
    async def work() -> None:
        mine = ledger(100)
        for _ in range(50):
            await mine.settle(await mine.reserve(GPT, TokenCounts(50, 50)), GPT, None)

    run(work)


@given(
    st.integers(0, 5000),
    st.lists(st.tuples(st.integers(0, 300), st.floats(0, 1), st.booleans()), max_size=60),
    st.integers(0, 10**6),
)
def test_the_ledger_is_never_overdrawn_and_nobody_waits_for_ever(
    amount: int, asked: list[tuple[int, float, bool]], seed: int
) -> None:
    """Each call costs at most what was set aside for it; some fail, some are cancelled."""

    async def work() -> None:
        rng = random.Random(seed)
        mine = ledger(amount)
        spent = 0

        async def call(most: int, share: float, fails: bool) -> None:
            nonlocal spent
            reserved = await mine.reserve(GPT, TokenCounts(most, 0))
            paid = None
            try:
                await asyncio.sleep(rng.random())
                if not fails:
                    paid = TokenCounts(round(most * share), 0)
                    spent += sum(paid)
            finally:
                await mine.settle(reserved, GPT, paid)

        tasks = [asyncio.create_task(call(*each)) for each in asked]
        for task in tasks:
            if rng.random() < 0.2:
                asyncio.get_running_loop().call_later(rng.random(), task.cancel)
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert spent <= amount
        assert {type(e) for e in found} <= {
            type(None),
            BudgetReachedError,
            asyncio.CancelledError,
        }
        assert mine._reserved == 0
        assert mine._spent == spent

    run(work)
