"""The application by itself: parts of others, and errors that nobody foresaw."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.support import record
from trustassay import scorer
from trustassay.live import BusyError, ClosingError, Part, Service, ServiceSettings, create_app
from trustassay.live import requests as requests_module
from trustassay.live.app import build_openapi, scoring_part
from trustassay.live.requests import JSON, JSON_LINES, read_json, reply
from trustassay.live.scorer import Scorer

SECRET = "words-of-a-sample"


def asked(*requests: tuple[str, str, Any], settings: ServiceSettings | None = None) -> Any:
    """Return the replies to requests, what was told, and what was counted."""
    told: list[str] = []
    counted: list[tuple[str, int]] = []

    async def run() -> list[Any]:
        from httpx2 import ASGITransport, AsyncClient

        async with scorer(metrics="faithfulness", entailer="lexical") as found:
            service = Service(found, settings or ServiceSettings())

            async def check(request: Request) -> Response:
                assay = await service.score(await read_json(request))
                return reply({"checked": service.verdict_of(assay)["id"]})

            async def broken(_request: Request) -> Response:
                raise RuntimeError(SECRET)

            async def busy(_request: Request) -> Response:
                raise BusyError("later", 7)

            async def closing(_request: Request) -> Response:
                raise ClosingError("closing")

            routes = [
                Route("/check", check, methods=["POST"]),
                Route("/broken", broken),
                Route("/busy", busy),
                Route("/closing", closing),
            ]
            part = Part(routes)
            app = create_app(
                service, service.settings, [part], told.append, lambda *one: counted.append(one)
            )
            transport = ASGITransport(app, raise_app_exceptions=False)
            async with AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return [await client.request(m, path, json=body) for m, path, body in requests]

    return asyncio.run(run()), told, counted


def test_a_part_has_its_routes() -> None:
    (checked, document), _, _ = asked(("POST", "/check", record(4)), ("GET", "/openapi.json", None))
    assert checked.json() == {"checked": "q4"}
    assert set(document.json()["paths"]) == {"/health", "/openapi.json"}
    assert set(document.json()["components"]["schemas"]) == {"Health", "Error"}


def test_the_document_tells_of_the_paths_that_are_served_and_of_their_schemas() -> None:
    document = build_openapi(["/health", "/v1/score", "/mcp"], asks_token=False)
    assert set(document["paths"]) == {"/health", "/v1/score"}
    schemas = {"Health", "Error", "Document", "Passage", "Sample", "Found", "Result", "Line"}
    assert set(document["components"]["schemas"]) == schemas
    responses = document["paths"]["/v1/score"]["post"]["responses"]
    assert set(responses) == set("200 400 401 408 413 415 421 422 429 500 503".split())
    assert [k for k, one in responses.items() if "headers" in one] == ["429", "503"]
    assert "security" not in document
    both = build_openapi(["/health", "/beta/litellm_basic_guardrail_api"], asks_token=True)
    assert set(both["components"]["schemas"]) == {"Health", "Error"} | {
        "GuardrailRequest",
        "GuardrailDecision",
    }
    assert both["security"] == [{"token": []}]


def test_errors_of_a_part_are_answered() -> None:
    (invalid, busy, closing), told, counted = asked(
        ("POST", "/check", {"question": 1}), ("GET", "/busy", None), ("GET", "/closing", None)
    )
    assert invalid.status_code == 422
    assert (busy.status_code, busy.headers["retry-after"]) == (429, "7")
    assert (closing.status_code, closing.headers["retry-after"]) == (503, "5")
    assert told == []
    assert counted == [("/check", 422), ("/busy", 429), ("/closing", 503)]


def test_an_error_that_nobody_foresaw_is_told_without_its_words() -> None:
    (broken, other), told, counted = asked(("GET", "/broken", None), ("GET", f"/{SECRET}", None))
    assert broken.status_code == 500
    assert other.status_code == 404
    (line,) = told
    assert "RuntimeError at broken:" in line
    assert SECRET not in line + broken.text + other.text
    assert counted == [("/broken", 500), ("other", 404)]


@pytest.mark.parametrize("kind", [JSON, JSON_LINES[0]])
def test_a_long_list_is_read_and_checked_outside_the_event_loop(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = set[tuple[str, threading.Thread]]()
    parse, check = requests_module.parse_json, Scorer.check

    def note_parse(text: bytes, where: str) -> Any:
        threads.add(("parse", threading.current_thread()))
        return parse(text, where)

    def note_check(scorer: Scorer, sample: Any) -> Any:
        threads.add(("check", threading.current_thread()))
        return check(scorer, sample)

    monkeypatch.setattr(requests_module, "parse_json", note_parse)
    monkeypatch.setattr(Scorer, "check", note_check)
    # Each is short; all together are not.
    records = [record(number, response="It opened in 1911. " * 40) for number in range(100)]
    lines = b"\n".join(json.dumps(one).encode() for one in records)
    body = lines if kind in JSON_LINES else json.dumps(records).encode()

    async def run() -> int:
        from httpx2 import ASGITransport, AsyncClient

        async with scorer(metrics="faithfulness", entailer="lexical") as opened:
            service = Service(opened, ServiceSettings())
            app = create_app(service, service.settings, [scoring_part(service)])
            transport = ASGITransport(app)
            async with AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                headers = {"Content-Type": kind}
                return (await client.post("/v1/score", content=body, headers=headers)).status_code

    assert asyncio.run(run()) == 200
    assert {step for step, _ in threads} == {"parse", "check"}
    assert threading.current_thread() not in {thread for _, thread in threads}
