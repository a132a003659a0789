"""Prices without a file: those of the installed table, which no network is asked for."""

import re
import subprocess
import sys

import pytest

from trustassay.calls.prices import (
    Price,
    Prices,
    TokenCounts,
    describe_price_table,
    find_published_price,
)

PUBLIC = "openai:gpt-4o-mini@https://api.openai.com/v1"


def test_a_model_of_a_public_endpoint_has_a_price() -> None:
    found = find_published_price("openai:gpt-4o-mini")
    assert found is not None
    assert 0 < found[0] < found[1] < 100
    assert find_published_price(PUBLIC) == find_published_price(f"{PUBLIC}?seed=1") == found
    assert find_published_price("anthropic:claude-sonnet-4-5") is not None
    assert find_published_price("gemini:gemini-2.5-flash") is not None


@pytest.mark.parametrize(
    "backend",
    [
        "openai:gpt-4o-mini@http://127.0.0.1:8000/v1",
        "openai:no-such-model",
        "hf:gpt-4o-mini",
        "python:openai:gpt-4o-mini",
        "embedded:9",
        "",
    ],
)
def test_what_the_table_does_not_hold_has_none(backend: str) -> None:
    assert find_published_price(backend) is None
    assert Prices().usd(backend, TokenCounts(1, 1)) is None
    assert Prices().basis(backend) == ""


def test_a_table_of_ones_own_goes_before_it() -> None:
    own = Prices({"gpt-4o-mini": Price(0.0, 2.0)})
    assert own.usd(PUBLIC, TokenCounts(1_000_000, 1_000_000)) == 2
    assert own.basis(PUBLIC) == ""
    assert own.basis("anthropic:claude-sonnet-4-5") == describe_price_table()


def test_the_table_says_its_day() -> None:
    assert re.fullmatch(r"genai-prices [\d.]+ of 20\d\d-\d\d-\d\d", describe_price_table())


def test_no_connection_is_opened() -> None:
    code = """
import socket, sys, threading
def refuse(event, args):
    if event.startswith("socket.") and event != "socket.__new__": sys.exit(f"asked: {event}")
sys.addaudithook(refuse)
from trustassay.calls.prices import describe_price_table, find_published_price
assert find_published_price("openai:gpt-4o-mini") and describe_price_table()
assert threading.active_count() == 1, threading.enumerate()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
