"""The guardrail of ``trustassay serve``, called by LiteLLM's own code."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

os.environ |= {  # no list of prices is fetched, no connection is left open
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "DISABLE_AIOHTTP_TRANSPORT": "True",
}
pytest.importorskip("litellm")
pytest.importorskip("trustassay.live")
pytest.importorskip("prometheus_client")

from tests.live.chats import BAD, GOOD, PASSAGE, QUESTION, Serving

TOKEN = "token-of-the-service-1"
MESSAGES = [
    {"role": "user", "content": QUESTION},
    {"role": "tool", "tool_call_id": "c", "content": PASSAGE},
]


@pytest.fixture(scope="module")
def service() -> Iterator[Serving]:
    options = ["--guardrail", "--block-below", "faithfulness=0.5"]
    with Serving(options, {"TRUSTASSAY_SERVE_TOKEN": TOKEN}) as found:
        yield found


def call(service: Serving, call_id: str, token: str, *steps: tuple[dict[str, Any], str]) -> Any:
    """Send what LiteLLM's proxy sends in a call; return what is left of the last inputs."""
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler
    from litellm.proxy.guardrails.guardrail_hooks import generic_guardrail_api as found

    logging = SimpleNamespace(litellm_call_id=call_id, litellm_trace_id="t", model_call_details={})

    async def run() -> Any:
        http = AsyncHTTPHandler()
        guardrail = found.GenericGuardrailAPI(
            api_base=service.url, api_key=token, guardrail_name="trustassay", async_handler=http
        )
        try:
            for inputs, kind in steps:
                left = await guardrail.apply_guardrail(
                    inputs=inputs, request_data={}, input_type=kind, logging_obj=logging
                )
            return left
        finally:
            await http.close()

    return asyncio.run(run())


def asked() -> tuple[dict[str, Any], str]:
    return {"texts": [QUESTION, PASSAGE], "structured_messages": MESSAGES}, "request"


def answered(text: str) -> tuple[dict[str, Any], str]:
    return {"texts": [text], "model": "m"}, "response"


def test_a_supported_answer_passes(service: Serving) -> None:
    assert call(service, "a", TOKEN, asked(), answered(GOOD))["texts"] == [GOOD]


def test_an_unsupported_answer_is_blocked(service: Serving) -> None:
    from litellm.exceptions import GuardrailRaisedException

    with pytest.raises(GuardrailRaisedException, match=r"faithfulness 0 is below 0\.5"):
        call(service, "b", TOKEN, asked(), answered(BAD))


def test_what_is_set_up_wrongly_is_an_error(service: Serving) -> None:
    with pytest.raises(Exception, match="422"):
        call(service, "c", TOKEN, answered(GOOD))
    with pytest.raises(Exception, match="401"):
        call(service, "d", "wrong", asked())
