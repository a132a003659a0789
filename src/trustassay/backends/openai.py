"""``openai:MODEL[@BASE_URL]``: every endpoint that speaks OpenAI's wire.

OpenAI itself, Azure (``.../openai/v1``), vLLM, SGLang, llama.cpp, Ollama, OpenRouter and others.
The key stands in ``OPENAI_API_KEY``, or in the variable that ``?key=NAME`` names.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from trustassay.backends.http import Address, HttpEndpoint, parameter_refused
from trustassay.capabilities import (
    BatchLimits,
    CallError,
    ChatRequest,
    Reply,
    TokenLogprob,
    Vectors,
)

__all__ = ["OpenAIChat", "OpenAIEmbedder", "openai_address"]

BASE = "https://api.openai.com/v1"
DROPPABLE = ("temperature", "seed", "stop", "logprobs", "top_logprobs", "max_tokens")
MAX_TOKENS = ("max_tokens", "max_completion_tokens")
"""The old and the new name of one parameter; models know one or the other."""


def openai_address(rest: str) -> Address:
    """Return the address behind ``openai:``; raises as :meth:`Address.parse`."""
    base = os.environ.get("OPENAI_BASE_URL") or BASE
    return Address.parse("openai", rest, base=base, key="OPENAI_API_KEY")


def _endpoint(address: Address) -> HttpEndpoint:
    if (urlsplit(address.base).hostname or "").endswith(".azure.com"):
        return HttpEndpoint(address, "api-key")
    return HttpEndpoint(address, "Authorization", "Bearer ")


class OpenAIChat:
    """A chat model behind ``/chat/completions``."""

    def __init__(self, address: Address) -> None:
        self.name, self.endpoint, self.limits = address.name, address.base, address.limits
        self._model = address.model
        self._http = _endpoint(address)
        self._refused: dict[str, str | None] = {}

    async def reply(self, request: ChatRequest) -> Reply:
        """Answer one request; a parameter that the endpoint refuses is left out from then on.

        Raises:
            CallError: the try failed.
        """
        while True:
            body = self._body(request)
            try:
                found = await self._http.post("/chat/completions", body)
            except CallError as error:
                learnt = body != self._body(request)  # another call has met the same refusal
                if not (learnt or self._give_up(parameter_refused(error, body))):
                    raise
                continue
            return self._read(found, request)

    async def models(self) -> list[str]:
        """Return the names of the models that the endpoint offers."""
        found = await self._http.get("/models")
        rows = found.get("data") if isinstance(found, dict) else None
        return [str(row.get("id")) for row in rows or [] if isinstance(row, dict)]

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        wanted: dict[str, Any] = {
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
            "seed": request.seed,
            "stop": list(request.stop) or None,
            "n": request.n if request.n > 1 else None,
            "logprobs": True if request.logprobs is not None else None,
            "top_logprobs": request.logprobs or None,
        }
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [message._asdict() for message in request.messages],
        }
        for name, value in wanted.items():
            known_as = self._refused.get(name, name)
            if value is not None and known_as is not None:
                body[known_as] = value
        return body

    def _give_up(self, name: str | None) -> bool:
        """Leave a refused parameter out from now on, or use its other name; say if that helps."""
        if name == MAX_TOKENS[0] and name not in self._refused:
            self._refused[name] = MAX_TOKENS[1]
        elif name in MAX_TOKENS and self._refused.get(MAX_TOKENS[0]) == MAX_TOKENS[1]:
            self._refused[MAX_TOKENS[0]] = None
        elif name in DROPPABLE:
            self._refused[name] = None
            if name == "logprobs":
                self._refused["top_logprobs"] = None
        else:
            return False
        return True

    def _read(self, found: Any, request: ChatRequest) -> Reply:
        try:
            choices = found["choices"]
            texts = [_text(choice["message"]) for choice in choices]
            first = choices[0]
            finish = first.get("finish_reason")
            logprobs = _logprobs(first.get("logprobs"))
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            raise CallError(f"{self.name}: a reply without choices", "malformed") from None
        if len(texts) < request.n:
            words = f"{self.name}: {len(texts)} replies in place of {request.n}"
            raise CallError(words, "refused")
        usage = found.get("usage")
        usage = usage if isinstance(usage, Mapping) else {}
        return Reply(
            texts[0],
            finish if isinstance(finish, str) else None,
            _count(usage.get("prompt_tokens")),
            _count(usage.get("completion_tokens")),
            tuple(texts[1 : request.n]),
            logprobs,
            self._dropped(request),
        )

    def _dropped(self, request: ChatRequest) -> tuple[str, ...]:
        asked = {
            "temperature": request.temperature is not None,
            "max_tokens": request.max_tokens is not None,
            "seed": request.seed is not None,
            "stop": bool(request.stop),
            "logprobs": request.logprobs is not None,
        }
        gone = {name for name, known_as in self._refused.items() if known_as is None}
        return tuple(sorted(name for name in gone if asked.get(name)))


class OpenAIEmbedder:
    """An embedding model behind ``/embeddings``; its vectors are made unit vectors."""

    def __init__(self, address: Address) -> None:
        self.name, self.endpoint = address.name, address.base
        self.limits = BatchLimits(items=256, tokens=100_000)
        self.endpoint_limits = address.limits
        self._model = address.model
        self._http = _endpoint(address)

    async def avectors(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (n, d), of n texts; raises :class:`CallError`."""
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        found = await self._http.post("/embeddings", body)
        try:
            rows = sorted(found["data"], key=lambda row: int(row["index"]))
            vectors = np.array([_vector(row["embedding"]) for row in rows], dtype=np.float32)
            if vectors.ndim != 2 or len(vectors) != len(texts):
                raise ValueError
        except (KeyError, TypeError, ValueError, binascii.Error):
            raise CallError(f"{self.name}: a reply without the vectors", "malformed") from None
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


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


def _logprobs(found: Any) -> tuple[TokenLogprob, ...] | None:
    if not isinstance(found, Mapping) or not isinstance(found.get("content"), list):
        return None
    return tuple(
        TokenLogprob(
            str(token["token"]),
            float(token["logprob"]),
            tuple(
                (str(other["token"]), float(other["logprob"]))
                for other in token.get("top_logprobs") or ()
            ),
        )
        for token in found["content"]
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _vector(value: Any) -> Any:
    """Return the numbers of a vector; some endpoints send base64 whatever they are asked for."""
    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value), dtype="<f4")
    return value
