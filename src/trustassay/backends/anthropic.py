"""``anthropic:MODEL[@BASE_URL]``: Anthropic's Messages API.

The key is in ``ANTHROPIC_API_KEY``, or in the variable that ``?key=NAME`` names. The API has no
seed, no log-probabilities and only one reply per request, and it requires a maximum length:
``max_tokens`` is 1,024 if a request gives none.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from trustassay.backends.endpoint_chat import EndpointChat, read_finish, split_system, sum_tokens
from trustassay.backends.http import EndpointAddress, HttpEndpoint
from trustassay.core.capabilities import ChatRequest, Message, Reply

API_VERSION = "2023-06-01"
DEFAULT_MAX_TOKENS = 1024
MAX_TEMPERATURE = 1.0
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "refusal": "content_filter",
}


class AnthropicChat(EndpointChat):
    """A chat model behind ``/v1/messages``."""

    path = "/v1/messages"

    def __init__(self, address: EndpointAddress) -> None:
        http = HttpEndpoint(address, "x-api-key").with_headers(anthropic_version=API_VERSION)
        super().__init__(address, http)

    def parameters(self, request: ChatRequest) -> dict[str, tuple[str, Any]]:
        """Return the parameters under Anthropic's names; raises :class:`CallError` for n > 1."""
        if request.n > 1:
            raise self.build_refusal(
                "returns one reply per request; send the request again with another repeat"
            )
        temperature = request.temperature
        return {
            # The empty name means that it must not be dropped: the API requires it.
            "max_tokens": (
                "",
                DEFAULT_MAX_TOKENS if request.max_tokens is None else request.max_tokens,
            ),
            "temperature": (
                "temperature",
                None if temperature is None else min(temperature, MAX_TEMPERATURE),
            ),
            "stop_sequences": ("stop", list(request.stop) or None),
        }

    def find_unsupported_fields(self, request: ChatRequest) -> tuple[str, ...]:
        """Return seed, log-probabilities and schema if requested, and a temperature above 1."""
        is_requested = {
            "seed": request.seed is not None,
            "logprobs": request.logprobs is not None,
            "schema": bool(request.schema),
            "temperature": request.temperature is not None
            and request.temperature > MAX_TEMPERATURE,
        }
        return tuple(name for name, requested in is_requested.items() if requested)

    def body(self, messages: Sequence[Message], parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of a request; the system message is separate."""
        system, turns = split_system(messages)
        return {
            "model": self._model,
            "messages": [{"role": turn.role, "content": turn.content} for turn in turns],
            **({"system": system} if system else {}),
            **parameters,
        }

    def read(self, content: Any) -> Reply:
        """Return the reply in a body; raises as :meth:`EndpointChat.read`."""
        # Content has parts of several types; thinking and tool calls are not part of the answer.
        parts = [part["text"] for part in content["content"] if part["type"] == "text"]
        thoughts = [str(part.get("thinking") or "") for part in content["content"]]
        text, reason = "".join(parts), content.get("stop_reason")
        # A refusal with a text is an answer; one without is not.
        if not text and reason == "refusal":
            raise self.build_refusal("blocked by the endpoint (refusal)")
        usage = content.get("usage")
        return Reply(
            text,
            read_finish(reason, _FINISH),
            # Tokens that went into or came from the cache are not in input_tokens, but are paid
            # for.
            sum_tokens(
                usage, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"
            ),
            sum_tokens(usage, "output_tokens"),
            reasoning="\n\n".join(filter(None, thoughts)) or None,
        )
