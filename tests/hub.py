"""A server on this machine that stands for the hub: it serves one file, and fails as it is told."""

from __future__ import annotations

import hashlib
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from trustassay.backends.recommended import RecommendedModel

SERVED = ("file", "drop", "stall", "whole", "again", "other")


@dataclass
class Hub:
    """Serves ``content`` from the byte that a request names.

    replies: what the next requests meet, one each; when they are used up, the file is served.
    A number is a status; ``drop`` sends half of what was asked for and closes the connection;
    ``stall`` sends half and waits; ``whole`` ignores the range, ``again`` too, and then drops;
    ``other`` answers another range; any other text is the address of a redirect. always: what every
    request meets. asked: ranges of all requests, "" without one. headers, path: of the last one.
    """

    content: bytes
    replies: list[Any] = field(default_factory=list)
    always: Any = None
    asked: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    path: str = ""
    sent: int = 0

    def __enter__(self) -> Self:
        self.half_sent, self.go_on = threading.Event(), threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"


def model_of(content: bytes, name: str = "tiny-1b", **others: Any) -> RecommendedModel:
    """Return a model whose file has this content."""
    fields: dict[str, Any] = {
        "what": "Tiny",
        "repository": "some/tiny",
        "revision": "0a" * 20,
        "file": "tiny.gguf",
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "licence": "Apache-2.0",
        "measured": "not measured here",
    }
    return RecommendedModel(name, **fields | others)


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range", "")
            hub.asked.append(asked)
            hub.headers, hub.path = dict(self.headers), self.path
            reply = hub.always or (hub.replies.pop(0) if hub.replies else "file")
            if isinstance(reply, int):
                self.send_error(reply)
            elif reply not in SERVED:
                self.send_response(302)
                self.send_header("Location", reply)
                self.end_headers()
            else:
                self._serve(reply, asked)

        def _serve(self, reply: str, asked: str) -> None:
            known = reply not in ("whole", "again")
            ranged = re.fullmatch(r"bytes=(\d+)-", asked) if known else None
            start = int(ranged[1]) if ranged else 0
            if start >= len(hub.content):
                self.send_error(416)
                return
            self.send_response(206 if ranged else 200)
            end, size = len(hub.content) - 1, len(hub.content)
            if ranged:
                told = start + 1 if reply == "other" else start
                self.send_header("Content-Range", f"bytes {told}-{end}/{size}")
            self.send_header("Content-Length", str(size - start))
            self.end_headers()
            half = (start + size) // 2 if reply in ("drop", "stall", "again") else size
            # Counted before it is sent: whoever has it may look at the count at once.
            hub.sent += half - start
            self.wfile.write(hub.content[start:half])
            if reply == "stall":
                self.wfile.flush()
                hub.half_sent.set()
                hub.go_on.wait(60)
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    return Handler
