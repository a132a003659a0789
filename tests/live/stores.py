"""Langfuse and Phoenix as far as their public APIs say what they demand, in a thread."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]
KEYS = {"LANGFUSE_PUBLIC_KEY": "pk-lf-1", "LANGFUSE_SECRET_KEY": "sk-lf-very-secret"}
BASIC = "Basic " + base64.b64encode(":".join(KEYS.values()).encode()).decode()
KINDS: dict[str, Any] = {"NUMERIC": (int, float), "CATEGORICAL": str, "BOOLEAN": (int, float)}
SCORE = {"id", "traceId", "observationId", "name", "value", "dataType", "comment", "metadata"}
SCORE |= {"timestamp", "environment"}


class Store:
    """``with Store() as store``: what was posted is in ``asked``, what is kept in ``kept``.

    ``before`` may answer a request in its place: a status, headers and a text.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, Json]] = []
        self.kept: dict[tuple[str, ...], Json] = {}
        self.spans: list[Json] = []
        self.scores: list[Json] = []
        self.score_queries: list[dict[str, list[str]]] = []
        self.queries: list[dict[str, str]] = []
        self.unknown: set[str] = set()
        self.before: Callable[[Json], tuple[int, dict[str, str], str] | None] = lambda _: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        store = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                store.asked.append((self.path, body))
                self._reply(*(store.before(body) or store.posted(self.path, self.headers, body)))

            def do_GET(self) -> None:
                self._reply(*store.listed(self.path))

            def _reply(self, status: int, headers: dict[str, str], text: str) -> None:
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(text.encode()))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join(20)
        self._server.server_close()

    def posted(self, path: str, headers: Any, body: Json) -> tuple[int, dict[str, str], str]:
        if path == "/api/public/scores":
            if headers["Authorization"] != BASIC:
                return 401, {}, '{"message": "Invalid credentials"}'
            return self._score(body)
        assert path == "/v1/span_annotations?sync=true"
        missing = [one["span_id"] for one in body["data"] if one["span_id"] in self.unknown]
        if missing:
            return 404, {}, f"Spans with IDs {', '.join(missing)} do not exist."
        for one in body["data"]:
            assert one["annotator_kind"] in {"LLM", "CODE", "HUMAN"}
            assert set(one["result"]) <= {"label", "score", "explanation"}
            self.kept[one["name"], one["span_id"], one["identifier"]] = one
        return 200, {}, json.dumps({"data": [{"id": "x"} for _ in body["data"]]})

    def _score(self, body: Json) -> tuple[int, dict[str, str], str]:
        if strange := set(body) - SCORE:
            return 400, {}, json.dumps({"message": f"unrecognized: {sorted(strange)}"})
        if not isinstance(body["value"], KINDS[body["dataType"]]):
            return 400, {}, '{"message": "value has the wrong type"}'
        day = ""
        if "timestamp" in body:
            time = datetime.fromisoformat(body["timestamp"])
            if time.tzinfo is None:
                return 400, {}, '{"message": "timestamp has no offset"}'
            day = time.date().isoformat()
        self.kept[body["id"], body["name"], day] = body  # what makes a score of Langfuse one
        return 200, {}, json.dumps({"id": body["id"]})

    @staticmethod
    def _target(score: Json) -> str:
        """The span of an annotation, or the trace of a score."""
        subject = score.get("subject") or {}
        return str(score.get("span_id") or subject.get("traceId") or subject.get("id"))

    def listed(self, path: str) -> tuple[int, dict[str, str], str]:
        """Two entries a page, each page with the cursor of the next."""
        values = parse_qs(urlsplit(path).query)
        query = {k: v[0] for k, v in values.items()}
        entries = self.spans
        if "/scores" in path or "/span_annotations" in path:
            self.score_queries.append(values)
            ids = values.get("span_ids") or query["traceId"].split(",")
            entries = [one for one in self.scores if self._target(one) in ids]
            if int(query["limit"]) > (100 if "/scores" in path else 10_000):
                return 400, {}, '{"message": "limit is too large"}'
        else:
            self.queries.append(query)
        start = int(query.get("cursor", "0"))
        cursor = str(start + 2) if start + 2 < len(entries) else None
        reply: Json = {"data": entries[start : start + 2]}
        reply |= {"next_cursor": cursor} if "/v1/" in path else {"meta": {"cursor": cursor}}
        return 200, {}, json.dumps(reply)


class Collector:
    """Takes log records; ``statuses`` are those of its first replies, then it takes all."""

    def __init__(self, statuses: list[int]) -> None:
        self.statuses = statuses
        self.taken: list[Json] = []
        self.keys: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1/logs"

    def __enter__(self) -> Self:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status = collector.statuses.pop(0) if collector.statuses else 200
                collector.keys.append(self.headers["x-api-key"])
                if status == 200:
                    collector.taken.append(body)
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join(20)
        self._server.server_close()
