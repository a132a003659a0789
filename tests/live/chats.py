"""A service that is asked for chats, and texts to ask it about."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.live.running import JSON, LEXICAL, Reply, Running, rest_of, serving

PASSAGE = "The stone bridge over the river was opened in 1911."
QUESTION = "When was the bridge opened?"
GOOD = "The stone bridge over the river was opened in 1911."
BAD = "The mayor of the town sold nine hundred red bicycles."
MESSAGES = [{"role": "user", "content": QUESTION}]


@dataclass
class Serving:
    """``with Serving(["--upstream", url]) as service``; the entailer is ``lexical``.

    It must end by SIGTERM without an error.
    """

    options: list[str]
    environment: dict[str, str] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        environment = {"TRUSTASSAY_CACHE": "off", **self.environment}
        self.running: Running = self._stack.enter_context(
            serving(folder, *LEXICAL, *self.options, port=0, **environment)
        )
        return self

    def __exit__(self, *_: object) -> None:
        with self._stack:
            assert self.running.end() == 0, self.said
            assert not re.search("Traceback|error", self.said), self.said

    @property
    def address(self) -> tuple[str, int]:
        return self.running.host, self.running.port

    @property
    def url(self) -> str:
        return f"http://{self.running.host}:{self.running.port}"

    @property
    def said(self) -> str:
        return self.running.said

    def post(self, path: str, content: Any, **headers: str) -> Reply:
        """Send bytes, or JSON; an underscore in a header's name stands for a hyphen."""
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.running.ask("POST", path, data, {**JSON, **named})

    def get(self, path: str, **headers: str) -> Reply:
        return self.running.ask("GET", path, None, headers)

    def chat(self, headers: Mapping[str, str] | None = None, **body: Any) -> Reply:
        """Ask for a completion, with the passage unless other documents are given."""
        given = {"model": "m", "messages": MESSAGES, "documents": [PASSAGE], **body}
        content = {name: value for name, value in given.items() if value is not None}
        return self.post("/v1/chat/completions", content, **(headers or {}))

    def raw(self, data: bytes, wait_s: float = 10.0) -> bytes:
        """Send bytes as they are, and return what comes until the connection or the time ends."""
        with self.running.connected(wait_s) as connection, suppress(TimeoutError):
            connection.sendall(data)
            return rest_of(connection)
        return b""
