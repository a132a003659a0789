"""The guardrail that LiteLLM's proxy calls: its "generic guardrail API".

LiteLLM sends the conversation before it asks the model, and the answer alone afterwards, both
under the id of the call. So a conversation is remembered until its answer comes.
"""

import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trustassay.text.limits import SHORT_PASSAGES, TextWork
from trustassay_serve.app import Part
from trustassay_serve.requests import RequestError, encoded, read_json, reply
from trustassay_serve.service import Service
from trustassay_serve.verdicts import Judging

PATH = "/beta/litellm_basic_guardrail_api"
PARAMETERS = "additional_provider_specific_params"
MOST_TEXTS = 128


class _Kept(NamedTuple):
    record: Mapping[str, Any]
    size: int
    since: float


class Conversations:
    """Conversations that wait for their answers, by the id of the call; the oldest are dropped.

    An answer may be judged more than once, as it grows, so that one is kept after its answer.
    """

    def __init__(self, most: int = 10_000, most_bytes: int = 64 * 1024**2, age_s: float = 3600):
        self._most, self._most_bytes, self._age_s = most, most_bytes, age_s
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._bytes = 0

    def keep(self, call: str, record: Mapping[str, Any], now: float) -> None:
        """Remember what was asked in a call."""
        self._drop(call)
        self._kept[call] = _Kept(record, len(encoded(record)), now)
        self._bytes += self._kept[call].size
        while self._kept:
            oldest = next(iter(self._kept))
            old = now - self._kept[oldest].since > self._age_s
            if not old and len(self._kept) <= self._most and self._bytes <= self._most_bytes:
                break
            self._drop(oldest)

    def of(self, call: str) -> Mapping[str, Any] | None:
        """Return what was asked in a call, if it is remembered."""
        kept = self._kept.get(call)
        return kept.record if kept else None

    def _drop(self, call: str) -> None:
        if kept := self._kept.pop(call, None):
            self._bytes -= kept.size


def guardrail_part(service: Service, judging: Judging) -> Part:
    """Return the route that LiteLLM calls."""
    conversations = Conversations()

    async def guardrail(request: Request) -> Response:
        service.refuse_if_closing()
        asked = _checked(await read_json(request))
        documents = (asked.get(PARAMETERS) or {}).get("documents")
        if not isinstance(documents, str | list | None):
            expected = "expected a list of passages, or one text"
            raise RequestError(422, f"{PARAMETERS}.documents: {expected}")
        work = TextWork(long=len(await request.body()) > SHORT_PASSAGES)
        messages, model = asked.get("structured_messages"), asked.get("model")
        record = await work(judging.record, messages, documents, model)
        if asked["input_type"] == "request":
            if not asked.get("litellm_call_id"):
                raise RequestError(422, "litellm_call_id: expected the id of the call")
            conversations.keep(asked["litellm_call_id"], record, time.monotonic())
            return reply({"action": "NONE"})
        earlier = conversations.of(asked.get("litellm_call_id") or "")
        if earlier is None and "question" not in record:
            message = "no conversation of this litellm_call_id came before its answer"
            raise RequestError(422, f"{message}; set the guardrail's mode to [pre_call, post_call]")
        record = {**(earlier or {}), **record}
        verdicts = await judging.verdicts(service, record, filter(None, asked["texts"]))
        blocked = [why for one in verdicts for why in one.blocked]
        # LiteLLM reads no more than these two
        told: dict[str, Any] = {"action": "BLOCKED" if blocked else "NONE"}
        if blocked:
            told["blocked_reason"] = "; ".join(dict.fromkeys(blocked))
        return reply({**told, "trustassay": {"verdicts": [one.to_dict() for one in verdicts]}})

    return Part([Route(PATH, guardrail, methods=["POST"])])


def _checked(asked: Any) -> dict[str, Any]:
    """Return a request whose fields have the types that LiteLLM gives them.

    Raises:
        RequestError: they have others (422).
    """
    if not isinstance(asked, dict):
        raise RequestError(422, "the body: expected an object")
    if asked.get("input_type") not in ("request", "response"):
        raise RequestError(422, "input_type: expected request or response")
    texts = asked.get("texts") or []
    if not (isinstance(texts, list) and all(isinstance(one, str) for one in texts)):
        raise RequestError(422, "texts: expected a list of texts")
    if len(texts) > MOST_TEXTS and asked["input_type"] == "response":
        raise RequestError(422, f"texts: expected {MOST_TEXTS} answers or fewer")
    if not isinstance(asked.get("litellm_call_id"), str | None):
        raise RequestError(422, "litellm_call_id: expected a text")
    if not isinstance(asked.get(PARAMETERS), dict | None):
        raise RequestError(422, f"{PARAMETERS}: expected an object")
    return {**asked, "texts": texts}
