"""``check_answer`` as clients of MCP see it: in memory, over standard input, over HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.lazily import needed
from tests.live.chats import BAD, GOOD, PASSAGE, QUESTION, Serving
from tests.live.running import LEXICAL, Running, serving, waiting_entailer
from trustassay import scorer
from trustassay.live import Service, ServiceSettings

needed("mcp")
TOKEN = "token-of-the-service-1"
GIVEN = {"question": QUESTION, "response": GOOD, "documents": [PASSAGE]}


def in_memory(use: Callable[[Any, Service], Awaitable[None]], *metrics: str) -> None:
    from mcp import Client

    from trustassay.live.mcp import mcp_server

    async def run() -> None:
        metrics_of = list(metrics) or ["faithfulness"]
        async with scorer(metrics=metrics_of, entailer="lexical", cache="off") as opened:
            service = Service(opened, ServiceSettings(capacity=2))
            async with Client(mcp_server(service)) as client:
                await use(client, service)

    asyncio.run(run())


def words(result: Any) -> str:
    return " ".join(one.text for one in result.content)


def test_the_tool_is_described() -> None:
    async def use(client: Any, _service: Service) -> None:
        (tool,) = (await client.list_tools()).tools
        assert tool.name == "check_answer"
        assert (
            "the passages that it was made from support each of its sentences" in tool.description
        )
        assert tool.annotations.read_only_hint is True
        properties = tool.input_schema["properties"]
        assert set(properties) == {"question", "response", "documents", "metrics"}
        assert all(one["description"] for one in properties.values())
        assert tool.input_schema["required"] == ["question", "response"]

    in_memory(use)


@pytest.mark.parametrize(
    ("response", "documents", "score"),
    [
        (GOOD, [PASSAGE], 1.0),
        (BAD, [PASSAGE], 0.0),
        (GOOD, [{"title": "Bridges", "text": PASSAGE}], 1.0),
    ],
)
def test_an_answer_is_checked(response: str, documents: Any, score: float) -> None:
    async def use(client: Any, _service: Service) -> None:
        asked = {"question": QUESTION, "response": response, "documents": documents}
        found = await client.call_tool("check_answer", asked)
        assert not found.is_error
        told = found.structured_content["metrics"]["faithfulness"]
        assert told["score"] == score
        assert told["reason"]
        assert json.loads(words(found)) == found.structured_content

    in_memory(use)


def test_metrics_can_be_chosen() -> None:
    async def use(client: Any, _service: Service) -> None:
        everything = await client.call_tool("check_answer", GIVEN)
        assert set(everything.structured_content["metrics"]) == {"faithfulness", "grounding"}
        found = await client.call_tool("check_answer", {**GIVEN, "metrics": ["grounding"]})
        assert set(found.structured_content["metrics"]) == {"grounding"}
        wrong = await client.call_tool("check_answer", {**GIVEN, "metrics": ["groundin"]})
        assert wrong.is_error
        assert "did you mean grounding?" in words(wrong)

    in_memory(use, "faithfulness", "grounding")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"documents": None}, "documents: is missing"),
        ({"question": " "}, "question"),
        ({"documents": [{"title": "no text"}]}, "documents[0].text"),
        ({"documents": "text"}, "documents"),
        ({"response": None}, "response"),
    ],
)
def test_what_is_missing_is_told_to_the_client_alone(
    change: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(client: Any, _service: Service) -> None:
        found = await client.call_tool("check_answer", {**GIVEN, **change})
        assert found.is_error
        assert said in words(found)

    with caplog.at_level(logging.DEBUG):
        in_memory(use)
    assert PASSAGE not in caplog.text
    assert QUESTION not in caplog.text
    assert not [one for one in caplog.records if one.name.startswith("mcp")]


def test_a_full_and_a_closing_service_say_so() -> None:
    async def use(client: Any, service: Service) -> None:
        service.close()
        found = await client.call_tool("check_answer", GIVEN)
        assert found.is_error
        assert "closing" in words(found)

    in_memory(use)


def test_a_failure_inside_quotes_nothing() -> None:
    async def use(client: Any, service: Service) -> None:
        error = RuntimeError(f"cannot handle {PASSAGE}")
        with patch.object(service, "verdict_of", side_effect=error):
            found = await client.call_tool("check_answer", GIVEN)
        assert found.is_error
        assert PASSAGE not in words(found)

    in_memory(use)


@pytest.mark.slow
def test_over_standard_input(tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters, stdio_client

    errors = tmp_path / "errors"

    async def run() -> None:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "trustassay", "mcp", "--entailer", "lexical"],
            cwd=tmp_path,
            env={**os.environ, "TRUSTASSAY_CACHE": "off"},
        )
        with errors.open("w") as told:
            async with Client(stdio_client(server, errlog=told)) as client:
                asked = [
                    client.call_tool("check_answer", {**GIVEN, "response": text})
                    for text in (GOOD, BAD) * 10
                ]
                found = await asyncio.gather(*asked)
                wrong = await client.call_tool("check_answer", {**GIVEN, "question": ""})
        scores = [one.structured_content["metrics"]["faithfulness"]["score"] for one in found]
        assert scores == [1.0, 0.0] * 10
        assert wrong.is_error

    asyncio.run(asyncio.wait_for(run(), 60))
    assert errors.read_text() == ""


@pytest.mark.slow
def test_over_http_with_a_token() -> None:
    import httpx2
    from mcp import Client, MCPError
    from mcp.client.streamable_http import streamable_http_client

    pytest.importorskip("prometheus_client")

    async def check(url: str, token: str) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            return await client.call_tool("check_answer", GIVEN)

    with Serving(
        ["--mcp", "--largest-body", "100000"], {"TRUSTASSAY_SERVE_TOKEN": TOKEN}
    ) as service:
        found = asyncio.run(check(service.url, TOKEN))
        assert found.structured_content["metrics"]["faithfulness"]["score"] == 1
        with pytest.raises((MCPError, ExceptionGroup)):
            asyncio.run(check(service.url, "wrong-token-of-16-letters"))
        key = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json"}
        for body in (b"{", b"[" * 100_000, b'{"jsonrpc": "2.0"}', b"\xff"):
            assert 400 <= service.post("/mcp", body, **key).status < 500
        assert service.post("/mcp", b"x" * 10_000_000, **key).status == 413
        assert service.post("/mcp", b"{}", **key, Content_Type="text/plain").status in (400, 415)
        # A stream that stays open would keep the service from its end.
        assert service.get("/mcp", **{**key, "Accept": "text/event-stream"}).status == 405
        assert service.get("/health").status == 200
    assert PASSAGE not in service.said


@pytest.mark.slow
def test_a_client_that_stays_connected_does_not_keep_the_service_from_ending(
    tmp_path: Path,
) -> None:
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    stream = b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"

    async def stay_connected(one: Running) -> int:
        async with Client(streamable_http_client(f"http://{one.host}:{one.port}/mcp")) as client:
            result = await client.call_tool("check_answer", GIVEN)
            assert result.structured_content["metrics"]["faithfulness"]["score"] == 1
            return await asyncio.to_thread(one.end)

    with serving(tmp_path, *LEXICAL, "--mcp") as one, one.connected() as raw:
        # As the SDKs ask for messages that the server sends by itself; this one sends none.
        raw.sendall(stream)
        assert raw.recv(100).startswith(b"HTTP/1.1 405 ")
        assert asyncio.run(asyncio.wait_for(stay_connected(one), 15)) == 0
        assert "after the signal (--grace)" not in one.said


@pytest.mark.slow
def test_calls_of_a_client_count_for_its_share(tmp_path: Path) -> None:
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    options = (*waiting_entailer(tmp_path), "--mcp", "--per-caller", "1")

    async def call_twice(one: Running) -> list[Any]:
        async with Client(streamable_http_client(f"http://{one.host}:{one.port}/mcp")) as client:
            first = asyncio.create_task(client.call_tool("check_answer", GIVEN))
            await asyncio.to_thread(one.until, "trustassay_samples_in_progress", 1)
            second = await client.call_tool("check_answer", GIVEN)
            (tmp_path / "go").touch()
            return [await first, second]

    with serving(tmp_path, *options) as one:
        first, second = asyncio.run(asyncio.wait_for(call_twice(one), 30))
    assert not first.is_error
    assert second.is_error
    assert "at most 1 are allowed per caller" in words(second)


@pytest.mark.slow
def test_there_is_no_stream_of_news_about_the_tools(tmp_path: Path) -> None:
    import httpx2

    meta = "io.modelcontextprotocol/"
    about = {"protocolVersion": "2026-07-28", "clientCapabilities": {}}
    params = {"_meta": {meta + k: v for k, v in about.items()}, "notifications": {}}
    listen = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "subscriptions/listen",
    }
    with serving(tmp_path, *LEXICAL, "--mcp") as one:
        url = f"http://{one.host}:{one.port}/mcp"
        reply = httpx2.post(url, json=listen, headers=headers, timeout=10)
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, -32601)
        assert one.end() == 0


def test_the_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from trustassay.cli.main import app

    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    monkeypatch.delitem(sys.modules, "trustassay.live.mcp", raising=False)
    for command in (["mcp"], ["serve", "--mcp"]):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 2
        assert "pip install '.[mcp]'" in result.output
