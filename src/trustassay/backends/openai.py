"""``openai:MODEL[@BASE_URL]``: every endpoint with OpenAI's API.

OpenAI itself, Azure (``.../openai/v1``), vLLM, SGLang, llama.cpp, Ollama, OpenRouter and others.
The key is in ``OPENAI_API_KEY``, or in the variable that ``?key=NAME`` names.
"""

import asyncio
import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import urlsplit

import numpy as np

from trustassay.backends.endpoint_chat import EndpointChat, counted, in_time, then_closed
from trustassay.backends.http import Address, HttpBackend, HttpEndpoint
from trustassay.capabilities import BatchLimits, ChatRequest, Message, Reply, TokenLogprob, Vectors
from trustassay.errors import CallError

VECTOR_BYTES = 256_000
"""What the vector of one text may take in a reply, whatever the limit for replies is."""


def _endpoint(address: Address) -> HttpEndpoint:
    if (urlsplit(address.base).hostname or "").endswith(".azure.com"):
        return HttpEndpoint(address, "api-key")
    return HttpEndpoint(address, "Authorization", "Bearer ")


class OpenAIChat(EndpointChat):
    """A chat model behind ``/chat/completions``."""

    path = "/chat/completions"
    together: ClassVar = {"top_logprobs": "logprobs"}
    second_names: ClassVar = {"max_tokens": "max_completion_tokens"}

    def __init__(self, address: Address) -> None:
        super().__init__(address, _endpoint(address))

    async def models(self) -> list[str]:
        """Return the names of the models that the endpoint offers; raises :class:`CallError`."""
        result = await self._http.get("/models")
        rows = result.get("data") if isinstance(result, dict) else None
        return [str(row.get("id")) for row in rows or [] if isinstance(row, dict)]

    def parameters(self, request: ChatRequest) -> dict[str, tuple[str, Any]]:
        """Return the parameters as OpenAI calls them."""
        return {
            "temperature": ("temperature", request.temperature),
            "max_tokens": ("max_tokens", request.max_tokens),
            "seed": ("seed", request.seed),
            "stop": ("stop", list(request.stop) or None),
            "n": ("", request.n if request.n > 1 else None),
            "logprobs": ("logprobs", True if request.logprobs is not None else None),
            "top_logprobs": ("logprobs", request.logprobs or None),
            "response_format": ("schema", held_to(request.schema) if request.schema else None),
        }

    def body(self, messages: Sequence[Message], parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of a request."""
        turns = [{"role": message.role, "content": message.content} for message in messages]
        return {"model": self._model, "messages": turns, **parameters}

    def read(self, found: Any) -> Reply:
        """Return the reply that a body holds; raises as :meth:`EndpointChat.read`."""
        reply = reply_of(found)
        if not reply.text and reply.finish == "content_filter":
            raise self.failed("blocked by the endpoint's content filter")
        return reply


class OpenAIEmbedder(HttpBackend):
    """An embedding model behind ``/embeddings``; its vectors are made unit vectors."""

    def __init__(self, address: Address) -> None:
        self.name, self.endpoint = address.name, address.base
        self.limits = BatchLimits(items=256, tokens=100_000)
        self.endpoint_limits = address.limits
        self._model = address.model
        most = max(address.limits.reply_bytes, VECTOR_BYTES * self.limits.items)
        roomy = replace(address, limits=replace(address.limits, reply_bytes=most))
        self._http = _endpoint(roomy)

    async def avectors(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (n, d), of n texts; raises :class:`CallError`."""
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        result = await self._http.post("/embeddings", body)
        try:
            rows = sorted(result["data"], key=lambda row: int(row["index"]))
            vectors = np.array([_vector(row["embedding"]) for row in rows], dtype=np.float32)
            if vectors.ndim != 2 or len(vectors) != len(texts):
                raise ValueError
        except (KeyError, TypeError, ValueError, binascii.Error):
            raise CallError(
                f"{self.name}: the reply does not have a vector for each text", "malformed"
            ) from None
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)


class BlockingEmbedder:
    """An :class:`OpenAIEmbedder` for callers outside an event loop; each batch is tried once."""

    def __init__(self, embedder: OpenAIEmbedder) -> None:
        self.name, self.limits, self._embedder = embedder.name, embedder.limits, embedder

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (n, d), of n texts; raises :class:`CallError`."""
        asked = in_time(self._embedder, self._embedder.avectors(texts))
        with ThreadPoolExecutor(1) as alone:  # the caller's own thread may run a loop
            return alone.submit(asyncio.run, then_closed(self._embedder, asked)).result()


def reply_of(found: Any) -> Reply:
    """Return the reply that the body of a chat completion holds."""
    first, *others = found["choices"]
    message, usage, finish = first["message"], found.get("usage"), first.get("finish_reason")
    told = message.get("reasoning_content") or message.get("reasoning")  # of open models
    return Reply(
        _text(message),
        finish if isinstance(finish, str) else None,
        counted(usage, "prompt_tokens"),
        counted(usage, "completion_tokens"),
        tuple(_text(choice["message"]) for choice in others),
        _logprobs(first.get("logprobs")),
        reasoning=told if isinstance(told, str) and told else None,
    )


def _text(message: Mapping[str, Any]) -> str:
    """Return the words of a message: its content, its parts', or the refusal in its place."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    if content is None:
        return str(message.get("refusal") or "")
    if not isinstance(content, str):
        raise TypeError
    return content


def held_to(schema: str) -> dict[str, Any]:
    """Return the parameter that holds a reply to a JSON schema."""
    named = {"name": "reply", "strict": True, "schema": json.loads(schema)}
    return {"type": "json_schema", "json_schema": named}


def _logprobs(found: Any) -> tuple[TokenLogprob, ...] | None:
    if not isinstance(found, Mapping) or not isinstance(found.get("content"), list):
        return None
    rows = [(token, *(token.get("top_logprobs") or ())) for token in found["content"]]
    read = [[(str(one["token"]), float(one["logprob"])) for one in row] for row in rows]
    return tuple(TokenLogprob(*own, tuple(others)) for own, *others in read)


def _vector(value: Any) -> Any:
    """Return the numbers of a vector; some endpoints send base64 whatever they are asked for."""
    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value), dtype="<f4")
    return value
