"""A server for the commands that ask, and questions to ask."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.llm_server import LlmServer, Options
from tests.support import jsonl, record

DEFAULTS = {k: v for k, v in dataclasses.asdict(Options()).items() if k not in ("port", "keep")}
LEXICAL = ("--entailer", "lexical")


@pytest.fixture(scope="module")
def one_server() -> Iterator[LlmServer]:
    with LlmServer() as server:
        yield server


@pytest.fixture
def server(one_server: LlmServer) -> LlmServer:
    """Return a healthy server that has heard of nobody."""
    one_server.revive()
    one_server.change(**DEFAULTS)
    one_server.reset()
    return one_server


def question(i: int, **others: Any) -> dict[str, Any]:
    """Return a sample without a response."""
    found = record(i, **others)
    if "response" not in others:
        del found["response"]
    return found


def questions(path: Path, n: int) -> Path:
    return jsonl(path, [question(i) for i in range(n)])


def uri(server: LlmServer, **options: Any) -> str:
    query = "&".join(f"{name}={value}" for name, value in options.items())
    return f"openai:test@{server.base_url}" + (f"?{query}" if query else "")
