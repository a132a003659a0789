"""Models that answer by a rule and note what they were asked, and an endpoint that does the same.

A reply follows from the prompt, the number of the repeat and the model's name alone. Each call adds
a line to ``asked.log`` in the working folder. The environment variable GOLDEN_STOP=SIGNAL@N sends
the signal to the own process at call N; GOLDEN_SILENT makes each call of a function an error.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

ASKED = "asked.log"
PORT = 18763
"""Part of the name of an endpoint, and so of the key of each stored call: it is always the same."""
_lock = Lock()
_calls = 0


def draw(*texts: object) -> int:
    """Return a number that follows from the texts alone."""
    return int.from_bytes(hashlib.sha256("\0".join(map(str, texts)).encode()).digest()[:6])


def reply(name: str, prompt: str, repeat: int = 0) -> str:  # noqa: PLR0911
    """Return what the model ``name`` replies; one reply in thirty cannot be read."""
    number = draw(name, prompt, repeat)
    levels = re.search(r"^(\w+): (?:one of )?(\S+(?:, \S+)+)$", prompt, re.MULTILINE)
    folded = prompt.upper()
    if number % 30 == 7:
        return "I would rather not say."
    if levels:
        choices = levels[2].split(", ")
        return f"{levels[1]}: {choices[number % len(choices)]}\nReason: it is number {number % 9}."
    if "NEITHER" in folded and "CONTRADICT" in folded:
        return ("SUPPORTS", "CONTRADICTS", "NEITHER")[number % 3]
    if "Non-Wrong Answer" in prompt:
        layout = "{0}. Wrong Answer: It was no {0}.\n{0}. Non-Wrong Answer: It was {0}."
        return "\n".join(layout.format(n) for n in range(1, 26))
    if "Yes or No" in prompt:
        return ("Yes", "No")[number % 2]
    if re.search(r"^A[.):] ", prompt, re.MULTILINE):
        return "ABC"[number % 3]
    if "LIST" in folded:
        return "\n".join(f"{n}. It has part {n}." for n in range(1, 4))
    return f"It is number {number % 7} and red [1]."


def _refuse() -> None:
    if os.environ.get("GOLDEN_SILENT"):
        raise RuntimeError("this call should have been stored")


def note(name: str, prompt: str, repeat: int) -> None:
    """Note a call before it is answered; stop the process where that is wanted."""
    global _calls  # noqa: PLW0603
    _refuse()
    with _lock, Path(ASKED).open("a") as log:
        _calls += 1
        log.write(f"{name} {repeat} {hashlib.sha256(prompt.encode()).hexdigest()[:24]}\n")
        kind, _, wanted = os.environ.get("GOLDEN_STOP", "").partition("@")
        if wanted and _calls == int(wanted):
            os.kill(os.getpid(), signal.Signals[kind])


def _model(name: str) -> Callable[[Any], str]:
    def model(request: Any) -> str:
        prompt = "\n\n".join(message.content for message in request.messages)
        note(name, prompt, request.repeat)
        return reply(name, prompt, request.repeat)

    model.__name__ = model.__qualname__ = name
    return model


one, two, judge, strict, generator = map(_model, ("one", "two", "judge", "strict", "generator"))


def entails(premise: str, hypothesis: str) -> tuple[float, float, float]:
    """Return the share of the hypothesis' words in the premise, and a part of the rest."""
    _refuse()
    words = hypothesis.lower().strip(".").split()
    share = sum(word in premise.lower() for word in words) / max(len(words), 1)
    rest = (1 - share) * (draw(premise, hypothesis) % 10) / 10
    return share, 1 - share - rest, rest


def vectors(texts: list[str]) -> np.ndarray[Any, Any]:
    """Return unit vectors, shape (n, 8), that follow from the texts."""
    _refuse()
    rows = np.array([np.random.default_rng(draw(text)).normal(size=8) for text in texts])
    unit: np.ndarray[Any, Any] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


class Endpoint(BaseHTTPRequestHandler):
    """Speaks as OpenAI, Anthropic and Gemini; keeps what it was sent in ``bodies.log``."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        sent = json.loads(raw)
        with _lock, Path("bodies.log").open("a") as log:
            log.write(f"{self.path} {json.dumps(sent, sort_keys=True)}\n")
        answer = json.dumps(self._answer(sent)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _answer(self, sent: dict[str, Any]) -> dict[str, Any]:
        if self.path.endswith("/embeddings"):
            rows = vectors(sent["input"]).tolist()
            data = [{"object": "embedding", "index": i, "embedding": r} for i, r in enumerate(rows)]
            usage = {"prompt_tokens": 3, "total_tokens": 3}
            return {"object": "list", "model": "m", "data": data, "usage": usage}
        if "contents" in sent:
            text = reply("gemini", sent["contents"][-1]["parts"][0]["text"])
            content = {"role": "model", "parts": [{"text": text}]}
            usage = {"promptTokenCount": 7, "candidatesTokenCount": 5, "totalTokenCount": 12}
            candidates = [{"content": content, "finishReason": "STOP", "index": 0}]
            return {"candidates": candidates, "usageMetadata": usage, "modelVersion": "m"}
        prompt = sent["messages"][-1]["content"]
        text = reply("endpoint", prompt if isinstance(prompt, str) else prompt[0]["text"])
        if self.path.endswith("/messages"):
            usage = {"input_tokens": 7, "output_tokens": 5}
            kind = {"id": "m", "type": "message", "role": "assistant", "model": "m"}
            return {
                **kind,
                "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn",
                "usage": usage,
            }
        said = {"role": "assistant", "content": text}
        choices = [
            {"index": i, "message": said, "finish_reason": "stop"}
            for i in range(sent.get("n") or 1)
        ]
        usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
        return {"id": "c", "object": "chat.completion", "choices": choices, "usage": usage}

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


class Server(ThreadingHTTPServer):
    """Serves :class:`Endpoint` at PORT."""

    daemon_threads = True
    request_queue_size = 256
