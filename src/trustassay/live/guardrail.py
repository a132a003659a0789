"""The guardrail that LiteLLM's proxy calls: its "generic guardrail API".

LiteLLM sends the conversation before it asks the model, and afterwards only the answer, both under
the id of the call. So a conversation is remembered until its answer comes.
"""

import time
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trustassay.core.fair_queue import CURRENT_FLOW
from trustassay.live.app import Part
from trustassay.live.requests import RequestError, encode_json, read_json, reply, unless_gone
from trustassay.live.service import Service, choose_work_for
from trustassay.live.verdicts import AnswerJudging

PATH = "/beta/litellm_basic_guardrail_api"
PARAMETERS = "additional_provider_specific_params"
MAX_TEXTS = 128
"""The most answers of one request."""


class _Conversation(NamedTuple):
    """A conversation that waits for its answer."""

    record: Mapping[str, Any]
    """The sample without its response."""
    size: int
    """Bytes of the record as JSON."""
    since: float
    """When it came, in seconds of the monotonic clock."""


class PendingConversations:
    """Conversations that wait for their answers, by their caller and the id of the call.

    LiteLLM may have an answer judged several times while it grows, so a conversation stays after
    its first answer. Where there are too many, the oldest of the caller with the most is dropped.

    Args:
        most: the most conversations.
        most_bytes: the most bytes of all conversations together.
        age_s: seconds after which a conversation is dropped.
    """

    def __init__(self, most: int = 10_000, most_bytes: int = 64 * 1024**2, age_s: float = 3600):
        self._most, self._most_bytes, self._age_s = most, most_bytes, age_s
        # Insertion order is order of age: a call that is sent again is dropped first.
        self._by_caller: dict[str, OrderedDict[str, _Conversation]] = {}
        self._bytes: Counter[str] = Counter()
        self._count = 0

    def keep(self, caller: str, call: str, record: Mapping[str, Any], now: float) -> None:
        """Remember the conversation of a call."""
        self._drop(caller, call)
        conversation = _Conversation(record, len(encode_json(record)), now)
        self._by_caller.setdefault(caller, OrderedDict())[call] = conversation
        self._bytes[caller] += conversation.size
        self._count += 1
        for other, earlier in list(self._by_caller.items()):
            while earlier and now - next(iter(earlier.values())).since > self._age_s:
                self._drop(other, next(iter(earlier)))
        while self._count > self._most or self._bytes.total() > self._most_bytes:
            largest = max(self._by_caller, key=lambda other: self._bytes[other])
            self._drop(largest, next(iter(self._by_caller[largest])))

    def find(self, caller: str, call: str) -> Mapping[str, Any] | None:
        """Return the conversation of a caller's call, if it is remembered."""
        conversations = self._by_caller.get(caller)
        conversation = conversations.get(call) if conversations else None
        return conversation.record if conversation else None

    def _drop(self, caller: str, call: str) -> None:
        conversations = self._by_caller.get(caller)
        if not conversations or call not in conversations:
            return
        self._bytes[caller] -= conversations.pop(call).size
        self._count -= 1
        if not conversations:
            del self._by_caller[caller], self._bytes[caller]


def guardrail_part(service: Service, judging: AnswerJudging) -> Part:
    """Return the route that LiteLLM calls."""
    conversations = PendingConversations()

    async def guardrail(request: Request) -> Response:
        service.refuse_if_closing()
        caller = CURRENT_FLOW.get().caller
        content = _check_request(await read_json(request))
        documents = (content.get(PARAMETERS) or {}).get("documents")
        if not isinstance(documents, str | list | None):
            expected = "expected a list of passages, or a text"
            raise RequestError(422, f"{PARAMETERS}.documents: {expected}")
        work = choose_work_for(len(await request.body()))
        messages, model = content.get("structured_messages"), content.get("model")
        record = await work(judging.record, messages, documents, model)
        # before the model is asked: nothing to judge yet
        if content["input_type"] == "request":
            if not content.get("litellm_call_id"):
                raise RequestError(422, "litellm_call_id: is missing; expected the id of the call")
            conversations.keep(caller, content["litellm_call_id"], record, time.monotonic())
            return reply({"action": "NONE"})
        earlier = conversations.find(caller, content.get("litellm_call_id") or "")
        # Without its question an answer would be judged by nothing: better an error than a verdict.
        if earlier is None and "question" not in record:
            message = "litellm_call_id: the conversation did not arrive before its answer"
            raise RequestError(422, f"{message}; set the guardrail's mode to [pre_call, post_call]")
        # fields that came with the answer win over those of the conversation
        record = {**(earlier or {}), **record}
        return await unless_gone(request, judge(record, content["texts"]))

    async def judge(record: Mapping[str, Any], texts: Sequence[str]) -> Response:
        verdicts = await judging.verdicts(service, record, filter(None, texts))
        blocked = [reason for verdict in verdicts for reason in verdict.blocked]
        # LiteLLM reads only `action` and `blocked_reason`; the verdicts are for other callers.
        reply_fields: dict[str, Any] = {"action": "BLOCKED" if blocked else "NONE"}
        if blocked:
            reply_fields["blocked_reason"] = "; ".join(dict.fromkeys(blocked))
        return reply(
            {
                **reply_fields,
                "trustassay": {"verdicts": [verdict.to_dict() for verdict in verdicts]},
            }
        )

    return Part([Route(PATH, guardrail, methods=["POST"])])


def _check_request(content: Any) -> dict[str, Any]:
    """Check that the fields of a request have the types that LiteLLM sends.

    Raises:
        RequestError: a field has another type (422).
    """
    if not isinstance(content, dict):
        raise RequestError(422, "the body: expected an object")
    if content.get("input_type") not in ("request", "response"):
        raise RequestError(422, "input_type: expected request or response")
    texts = content.get("texts") or []
    if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
        raise RequestError(422, "texts: expected a list of texts")
    # Texts of a request are not judged (the structured messages are), so they may be many.
    if len(texts) > MAX_TEXTS and content["input_type"] == "response":
        raise RequestError(422, f"texts: expected {MAX_TEXTS} answers or fewer")
    if not isinstance(content.get("litellm_call_id"), str | None):
        raise RequestError(422, "litellm_call_id: expected a text")
    if not isinstance(content.get(PARAMETERS), dict | None):
        raise RequestError(422, f"{PARAMETERS}: expected an object")
    return {**content, "texts": texts}
