"""``openai:MODEL[@BASE_URL]``: every endpoint with OpenAI's API.

OpenAI itself, Azure (``.../openai/v1``), vLLM, SGLang, llama.cpp, Ollama, OpenRouter and others.
The key is in ``OPENAI_API_KEY``, or in the variable that ``?key=NAME`` names.
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import urlsplit

import numpy as np

from trustassay.backends.endpoint_chat import EndpointChat, run_blocking, run_in_time, sum_tokens
from trustassay.backends.http import EndpointAddress, HttpBackend, HttpEndpoint
from trustassay.core.capabilities import BatchLimits, ChatRequest, Message, Reply, Vectors
from trustassay.core.token_logprobs import read_token_list
from trustassay.errors import CallError

VECTOR_BYTES = 256_000
"""Bytes that the vector of one text may take in a reply, even if the limit of replies is lower."""


def _build_endpoint(address: EndpointAddress) -> HttpEndpoint:
    """Return the endpoint of an address, with the header in which it expects the key."""
    if (urlsplit(address.base).hostname or "").endswith(".azure.com"):
        return HttpEndpoint(address, "api-key")
    return HttpEndpoint(address, "Authorization", "Bearer ")


class OpenAIChat(EndpointChat):
    """A chat model behind ``/chat/completions``."""

    path = "/chat/completions"
    together: ClassVar = {"top_logprobs": "logprobs"}
    second_names: ClassVar = {"max_tokens": "max_completion_tokens"}

    def __init__(self, address: EndpointAddress) -> None:
        super().__init__(address, _build_endpoint(address))

    async def models(self) -> list[str]:
        """Return the names of the models that the endpoint offers; raises :class:`CallError`."""
        result = await self._http.get("/models")
        # Some servers have other fields than OpenAI's, so nothing is taken for granted.
        rows = result.get("data") if isinstance(result, dict) else None
        return [str(row.get("id")) for row in rows or [] if isinstance(row, dict)]

    def parameters(self, request: ChatRequest) -> dict[str, tuple[str, Any]]:
        """Return the parameters under OpenAI's names."""
        return {
            "temperature": ("temperature", request.temperature),
            "max_tokens": ("max_tokens", request.max_tokens),
            "seed": ("seed", request.seed),
            "stop": ("stop", list(request.stop) or None),
            "n": ("", request.n if request.n > 1 else None),
            "logprobs": ("logprobs", True if request.logprobs is not None else None),
            "top_logprobs": ("logprobs", request.logprobs or None),
            "response_format": (
                "schema",
                restrict_to_schema(request.schema) if request.schema else None,
            ),
        }

    def body(self, messages: Sequence[Message], parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of a request."""
        turns = [{"role": message.role, "content": message.content} for message in messages]
        return {"model": self._model, "messages": turns, **parameters}

    def read(self, body_json: Any) -> Reply:
        """Return the reply in a body; raises as :meth:`EndpointChat.read`."""
        reply = parse_reply(body_json)
        if not reply.text and reply.finish == "content_filter":
            raise self.build_refusal("blocked by the endpoint's content filter")
        return reply


class OpenAIEmbedder(HttpBackend):
    """An embedding model behind ``/embeddings``; its vectors are scaled to unit vectors."""

    def __init__(self, address: EndpointAddress) -> None:
        self.name, self.endpoint = address.name, address.base
        self.limits = BatchLimits(items=256, tokens=100_000)
        self.endpoint_limits = address.limits
        self._model = address.model
        # A batch of vectors is larger than any chat reply may be.
        max_reply_bytes = max(address.limits.reply_bytes, VECTOR_BYTES * self.limits.items)
        roomy = replace(address, limits=replace(address.limits, reply_bytes=max_reply_bytes))
        self._http = _build_endpoint(roomy)

    async def avectors(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (n, d), of n texts; raises :class:`CallError`."""
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        result = await self._http.post("/embeddings", body)
        try:
            # The API does not promise the order of the texts.
            rows = sorted(result["data"], key=lambda row: int(row["index"]))
            vectors = np.array([_read_vector(row["embedding"]) for row in rows], dtype=np.float32)
            is_finite = np.isfinite(vectors).all()
            if vectors.ndim != 2 or len(vectors) != len(texts) or not is_finite:
                raise ValueError
        except (KeyError, TypeError, ValueError, binascii.Error):
            raise CallError(
                f"{self.name}: the reply does not have a vector of finite numbers for each text",
                "malformed",
            ) from None
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)


class BlockingEmbedder:
    """An :class:`OpenAIEmbedder` for callers outside an event loop; each batch is tried once."""

    def __init__(self, embedder: OpenAIEmbedder) -> None:
        self.name, self.limits, self._embedder = embedder.name, embedder.limits, embedder

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (n, d), of n texts; raises :class:`CallError`."""
        vectors = run_in_time(self._embedder, self._embedder.avectors(texts))
        return run_blocking(self._embedder, vectors)


def parse_reply(body_json: Any) -> Reply:
    """Return the reply in the body of a chat completion."""
    first, *other_choices = body_json["choices"]
    message, usage, finish = first["message"], body_json.get("usage"), first.get("finish_reason")
    reasoning = message.get("reasoning_content") or message.get("reasoning")  # of open models
    return Reply(
        _read_text(first),
        finish if isinstance(finish, str) else None,
        sum_tokens(usage, "prompt_tokens"),
        sum_tokens(usage, "completion_tokens"),
        tuple(map(_read_text, other_choices)),
        read_token_list(first.get("logprobs")),
        reasoning=reasoning if isinstance(reasoning, str) and reasoning else None,
    )


def _read_text(choice: Mapping[str, Any]) -> str:
    """Return the text of a choice: its content, the texts of its parts, or the model's refusal.

    Empty without content if a filter blocked it: the refusal is then a text of the filter.
    """
    message = choice["message"]
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    if content is None:
        is_blocked = choice.get("finish_reason") == "content_filter"
        return "" if is_blocked else str(message.get("refusal") or "")
    if not isinstance(content, str):
        raise TypeError
    return content


def restrict_to_schema(schema: str) -> dict[str, Any]:
    """Return the parameter that restricts a reply to a JSON schema."""
    named_schema = {"name": "reply", "strict": True, "schema": json.loads(schema)}
    return {"type": "json_schema", "json_schema": named_schema}


def _read_vector(value: Any) -> Any:
    """Return the numbers of a vector; some endpoints send base64 although floats are requested."""
    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value), dtype="<f4")
    return value
