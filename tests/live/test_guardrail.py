"""The guardrail, asked as LiteLLM's documentation describes it, and as its version 1.106 asks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.routing import Route

from tests.live.chats import BAD, GOOD, PASSAGE, QUESTION, Serving
from tests.live.running import Reply
from trustassay import scorer
from trustassay.live import Service, ServiceSettings
from trustassay.live.guardrail import PendingConversations, guardrail_part
from trustassay.live.verdicts import AnswerJudging, BlockingRules

pytest.importorskip("prometheus_client")
PATH = "/beta/litellm_basic_guardrail_api"
TOKEN = "token-of-the-service-1"
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": QUESTION},
    {"role": "tool", "tool_call_id": "c", "content": PASSAGE},
]


@pytest.fixture(scope="module")
def running() -> Iterator[Serving]:
    options = ["--guardrail", "--block-below", "faithfulness=0.5"]
    with Serving(options, {"TRUSTASSAY_SERVE_TOKEN": TOKEN}) as found:
        yield found
    for secret in (TOKEN, PASSAGE, GOOD, BAD, QUESTION):
        assert secret not in found.said


@pytest.fixture
def ask(running: Serving) -> Any:
    def asked(**body: Any) -> Reply:
        return running.post(PATH, request(**body), x_api_key=TOKEN)

    return asked


def request(**changes: Any) -> dict[str, Any]:
    """Return a request with every field of LiteLLM's request model."""
    return {
        "input_type": "request",
        "litellm_call_id": "call-1",
        "litellm_trace_id": "trace-1",
        "structured_messages": None,
        "images": None,
        "tools": None,
        "texts": None,
        "request_data": {"user_api_key_hash": "88dc", "user_api_key_user_id": "someone"},
        "request_headers": {"user-agent": "x", "authorization": "[present]"},
        "litellm_version": "1.106.2",
        "additional_provider_specific_params": {},
        "tool_calls": None,
        "model": "m",
        **changes,
    }


def before(**changes: Any) -> dict[str, Any]:
    texts = [one["content"] for one in MESSAGES]
    return {"texts": texts, "structured_messages": MESSAGES, **changes}


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "action"), [(GOOD, "NONE"), (BAD, "BLOCKED")])
def test_an_answer_is_judged_by_the_conversation_before_it(
    answer: str, action: str, ask: Any
) -> None:
    call = f"call-{action}"
    first = ask(**before(litellm_call_id=call))
    assert (first.status, first.json) == (200, {"action": "NONE"})
    for _ in range(2):  # a stream is judged more than once
        found = ask(litellm_call_id=call, input_type="response", texts=[answer])
        assert (found.status, found.json["action"]) == (200, action)
    if action == "BLOCKED":
        assert found.json["blocked_reason"] == "faithfulness 0 is below 0.5"
        assert answer.encode() not in found.body
    else:
        (verdict,) = found.json["trustassay"]["verdicts"]
        assert verdict["metrics"]["faithfulness"]["score"] == 1


@pytest.mark.slow
def test_one_bad_answer_of_several_blocks(ask: Any) -> None:
    ask(**before(litellm_call_id="several"))
    found = ask(litellm_call_id="several", input_type="response", texts=[GOOD, "", BAD])
    assert found.json["action"] == "BLOCKED"
    found = ask(litellm_call_id="several", input_type="response", texts=[])
    assert found.json["action"] == "NONE"


@pytest.mark.slow
def test_passages_can_be_parameters(ask: Any) -> None:
    given = {"additional_provider_specific_params": {"documents": [PASSAGE]}}
    messages = MESSAGES[:2]
    ask(**before(litellm_call_id="given", structured_messages=messages, **given))
    found = ask(litellm_call_id="given", input_type="response", texts=[BAD])
    assert found.json["action"] == "BLOCKED"


@pytest.mark.slow
def test_an_answer_may_bring_its_conversation(ask: Any) -> None:
    found = ask(
        litellm_call_id=None, input_type="response", texts=[BAD], structured_messages=MESSAGES
    )
    assert found.json["action"] == "BLOCKED"


@pytest.mark.slow
def test_an_answer_without_passages_is_let_through_with_the_reason(ask: Any) -> None:
    ask(**before(litellm_call_id="none", structured_messages=MESSAGES[:2]))
    found = ask(litellm_call_id="none", input_type="response", texts=[BAD])
    assert found.json["action"] == "NONE"
    (verdict,) = found.json["trustassay"]["verdicts"]
    assert verdict["error"]["problems"][0]["field"] == "documents"


@pytest.mark.slow
def test_an_answer_whose_conversation_is_not_known_is_an_error(ask: Any) -> None:
    found = ask(litellm_call_id="unknown", input_type="response", texts=[BAD])
    assert found.status == 422
    assert "[pre_call, post_call]" in found.json["error"]["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"input_type": "other"}, "input_type"),
        ({"input_type": None}, "input_type"),
        ({"texts": "text"}, "texts"),
        ({"texts": [7]}, "texts"),
        ({"texts": ["x"] * 200, "input_type": "response"}, "texts"),
        ({"litellm_call_id": 7}, "litellm_call_id"),
        ({"litellm_call_id": None}, "litellm_call_id"),
        ({"additional_provider_specific_params": []}, "additional_provider_specific_params"),
        ({"additional_provider_specific_params": {"documents": 7}}, "documents"),
    ],
)
def test_wrong_fields_are_named(change: dict[str, Any], field: str, ask: Any) -> None:
    found = ask(**change)
    assert found.status == 422
    assert field in found.json["error"]["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "messages", [7, "text", [7, None, {}], [{"role": [], "content": {}}], {"role": "user"}]
)
def test_strange_messages_are_no_failure(messages: Any, ask: Any) -> None:
    assert ask(**before(structured_messages=messages)).status == 200


@pytest.mark.slow
def test_a_token_is_needed(running: Serving) -> None:
    assert running.post(PATH, request()).status == 401
    assert running.post(PATH, request(), x_api_key=TOKEN + "x").status == 401
    assert running.post(PATH, request(), Authorization=f"Bearer {TOKEN}").status == 200
    assert running.post(PATH, b"[" * 100_000, x_api_key=TOKEN).status == 400
    assert running.post(PATH, b"x" * 10_000_000, x_api_key=TOKEN).status == 413


def record(size: int) -> dict[str, str]:
    return {"question": "x" * size}


def test_conversations_are_few_small_and_young() -> None:
    kept = PendingConversations(most=3, most_bytes=1000, age_s=10)
    for i in range(5):
        kept.keep("a", f"c{i}", record(10), now=float(i))
    assert [i for i in range(5) if kept.find("a", f"c{i}")] == [2, 3, 4]
    kept.keep("a", "c2", record(20), now=5.0)
    kept.keep("a", "c5", record(10), now=6.0)
    assert [i for i in range(6) if kept.find("a", f"c{i}")] == [2, 4, 5]
    assert kept.find("a", "c2") == record(20)
    kept.keep("a", "large", record(900), now=7.0)
    assert kept.find("a", "large")
    assert kept.find("a", "c4") is None
    kept.keep("a", "later", record(1), now=18.0)
    assert kept.find("a", "large") is None
    kept.keep("a", "too large", record(2000), now=19.0)
    assert kept.find("a", "too large") is None


def test_one_caller_cannot_push_the_conversations_of_another_out() -> None:
    waiting = PendingConversations(most=5, most_bytes=10_000, age_s=100)
    waiting.keep("few", "call", record(10), now=0.0)
    for i in range(50):
        waiting.keep("many", f"c{i}", record(10), now=float(i))
    assert waiting.find("few", "call")
    assert [i for i in range(50) if waiting.find("many", f"c{i}")] == [46, 47, 48, 49]
    # ids of calls are the caller's alone
    waiting.keep("many", "call", record(20), now=60.0)
    assert waiting.find("few", "call") == record(10)
    waiting.keep("many", "later", record(10), now=101.0)
    assert waiting.find("few", "call") is None


def test_the_work_for_a_client_that_is_gone_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def judge(*_: object) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    monkeypatch.setattr(AnswerJudging, "verdicts", judge)

    async def run() -> int:
        body = request(input_type="response", texts=[GOOD], **{"structured_messages": MESSAGES})
        messages = [{"type": "http.request", "body": json.dumps(body).encode()}]

        async def receive() -> dict[str, Any]:
            if messages:
                return messages.pop()
            await begun.wait()
            return {"type": "http.disconnect"}

        headers = [(b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "headers": headers}
        async with scorer(metrics="faithfulness", entailer="lexical") as opened:
            service = Service(opened, ServiceSettings())
            [route] = guardrail_part(service, AnswerJudging((), BlockingRules())).routes
            assert isinstance(route, Route)
            reply = await route.endpoint(Request(scope, receive))
        return int(reply.status_code)

    assert asyncio.run(asyncio.wait_for(run(), 5)) == 400
    assert ended.is_set()
