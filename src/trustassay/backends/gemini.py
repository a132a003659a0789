"""``gemini:MODEL[@BASE_URL]``: Google's ``generateContent`` API.

The key is in ``GEMINI_API_KEY``, else in ``GOOGLE_API_KEY``, or in the variable that ``?key=NAME``
names. It is sent in a header, never in a URL.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

from trustassay.backends.endpoint_chat import EndpointChat, read_finish, split_system, sum_tokens
from trustassay.backends.http import EndpointAddress, HttpEndpoint
from trustassay.core.capabilities import ChatRequest, Message, Reply
from trustassay.core.token_logprobs import read_token_list
from trustassay.errors import BackendError

COLLECTIONS = ("models", "tunedModels")
_FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}
_BLOCKED = {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"}


class GeminiChat(EndpointChat):
    """A chat model behind ``:generateContent``."""

    together: ClassVar = {
        "responseLogprobs": "logprobs",
        "logprobs": "responseLogprobs",
        "responseMimeType": "responseJsonSchema",
        "responseJsonSchema": "responseMimeType",
    }

    def __init__(self, address: EndpointAddress) -> None:
        super().__init__(address, HttpEndpoint(address, "x-goog-api-key"))
        parts = address.model.split("/")
        # An empty part, "." or ".." would change the path of the URL.
        if not all(part.strip(".") for part in parts):
            raise BackendError(f"gemini: {address.model!r} is not a valid name of a model")
        parts = parts if parts[0] in COLLECTIONS else ["models", *parts]
        self.path = f"/v1beta/{'/'.join(quote(part, safe='') for part in parts)}:generateContent"

    def parameters(self, request: ChatRequest) -> dict[str, tuple[str, Any]]:
        """Return the parameters under Gemini's names."""
        schema = json.loads(request.schema) if request.schema else None
        return {
            "temperature": ("temperature", request.temperature),
            "maxOutputTokens": ("max_tokens", request.max_tokens),
            "seed": ("seed", request.seed),
            "stopSequences": ("stop", list(request.stop) or None),
            "candidateCount": ("", request.n if request.n > 1 else None),
            "responseLogprobs": ("logprobs", None if request.logprobs is None else True),
            "logprobs": ("logprobs", request.logprobs),
            "responseMimeType": ("schema", "application/json" if request.schema else None),
            "responseJsonSchema": ("schema", schema),
        }

    def body(self, messages: Sequence[Message], parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of a request; the system message is separate."""
        system, turns = split_system(messages)
        roles = {"assistant": "model"}
        return {
            "contents": [
                {"role": roles.get(turn.role, turn.role), "parts": [{"text": turn.content}]}
                for turn in turns
            ],
            **({"systemInstruction": {"parts": [{"text": system}]}} if system else {}),
            **({"generationConfig": dict(parameters)} if parameters else {}),
        }

    def read(self, body_json: Any) -> Reply:
        """Return the reply in a body; raises as :meth:`EndpointChat.read`."""
        feedback = body_json.get("promptFeedback") or {}
        # A blocked prompt has feedback and no candidates. Without both, the body is malformed.
        candidates = body_json.get("candidates") if feedback else body_json["candidates"]
        if not candidates:
            raise self.build_refusal(
                f"blocked the prompt ({feedback.get('blockReason', 'no reason given')})"
            )
        first, reason = candidates[0], read_finish(candidates[0].get("finishReason"), _FINISH)
        text = _join_text(first)
        if not text and reason in _BLOCKED:
            raise self.build_refusal(f"blocked its own reply ({reason})")
        usage = body_json.get("usageMetadata")
        # A reply that was blocked in its middle is kept, marked as such.
        finish = "content_filter" if reason in _BLOCKED else reason
        return Reply(
            text,
            finish,
            sum_tokens(usage, "promptTokenCount"),
            sum_tokens(usage, "candidatesTokenCount", "thoughtsTokenCount"),
            tuple(_join_text(candidate) for candidate in candidates[1:]),
            read_token_list(first.get("logprobsResult")),
            reasoning=_join_text(first, thought=True) or None,
        )


def _join_text(candidate: Mapping[str, Any], *, thought: bool = False) -> str:
    """Return the text of a candidate, or of its thoughts; empty if it was cut at once."""
    parts = (candidate.get("content") or {}).get("parts") or ()
    return "".join(part.get("text", "") for part in parts if bool(part.get("thought")) is thought)
