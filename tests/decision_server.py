"""A server on 127.0.0.1 that speaks as OpenAI, vLLM, SGLang, llama.cpp and TypeSafe decide.

    with DecisionServer("vllm") as server:
        load("entailer", f"systemone:m@{server.url}").scores([("a premise", "a statement")])

What a question is worth stands in its instructions, or in the state: ``{.7 .2 .1}`` are the
probabilities of its options. ``{mass .3}`` is their mass, ``{refuse}`` a refusal, ``{lose}`` an
answer that is left out, and ``{bad}`` a question that the server refuses by name.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Json = dict[str, Any]
Response = tuple[int, Any, Mapping[str, str]]
MARK = re.compile(r"\{([^{}]*)\}")
CONFIDENCE = 0.999
"""Of every answer: whoever reads it gets another number than the probabilities say."""


def marks(*texts: Any) -> dict[str, list[float]]:
    """Return the marks of the first text that has any: words by name, numbers under "".

    Of several marks of a name the first counts.
    """
    for text in texts:
        result: dict[str, list[float]] = {}
        for mark in MARK.findall(str(text)):
            words = mark.split()
            name = words[0] if words and words[0].isalpha() else ""
            try:
                result.setdefault(name, [float(word) for word in words[bool(name) :]])
            except ValueError:
                continue
        if result:
            return result
    return {}


def chances(result: Mapping[str, list[float]], n: int) -> list[float]:
    return result.get("") or [round(1 / n, 4)] * n


class DecisionServer:
    """One dialect; ``first`` are responses that come before any answer."""

    def __init__(
        self, dialect: str, *first: Response, model: str = "jev-1.13.0", names: bool = True
    ) -> None:
        self.dialect, self.first, self.model, self.names = dialect, list(first), model, names
        self.requests: list[tuple[str, Json, Mapping[str, str]]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["Content-Length"]))
                body = json.loads(text)
                server.requests.append((self.path, body, dict(self.headers)))
                fixed = server.first.pop(0) if server.first else None
                status, reply, headers = fixed or server.respond(self.path, body)
                data = json.dumps(reply).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def bodies(self) -> list[Json]:
        return [body for _, body, _ in self.requests]

    def respond(self, path: str, body: Json) -> Response:
        if path == "/v1/systemone" and self.dialect != "openai":
            return self._systemone(body)
        if path == "/v1/decisions" and self.dialect in ("openai", "vllm"):
            return self._decisions(body)
        if path == "/v1/decisions" and self.dialect == "sglang":
            return self._sglang_decisions(body)
        return 404, {"detail": "Not Found"}, {}

    def _refuse(self, message: str, key: str) -> Response:
        """Refuse the question ``key`` as each server words it."""
        if self.dialect in ("typesafe", "sglang"):
            where = {"loc": ["body", "questions", key], "msg": message, "type": "value_error"}
            return 422, {"detail": [where]}, {}
        param = f"questions[{key}]" if key.isdigit() else f"questions.{key}"
        return 400, {"error": {"message": f"{param}: {message}", "param": param}}, {}

    def _systemone(self, body: Json) -> Response:
        if set(body) != {"model", "state", "questions"}:
            return 422, {"detail": "expected model, state and questions"}, {}
        if self.dialect == "llamacpp" and "chat" in body["model"]:
            return 501, {"error": {"message": "not a decision model"}}, {}
        answers, diagnostics = {}, {}
        for key, question in body["questions"].items():
            result = marks(question["instructions"], body["state"])
            if not question["instructions"].strip():
                return self._refuse("instructions are required", key)
            if "bad" in result:
                return self._refuse("cannot be asked", key)
            if "lose" in result:
                continue
            mass = result.get("mass", [0.98])[0]
            kind, criteria = question["type"], question.get("criteria")
            if kind == "noul":
                answer: Json = {"noul": chances(result, 2)[0]}
            elif kind == "choice":
                assert 2 <= len(criteria) <= 26
                names = list(criteria)
                answer = {
                    "probabilities": dict(zip(names, chances(result, len(names)), strict=True))
                }
                answer["choice"] = max(answer["probabilities"], key=answer["probabilities"].get)
            else:
                assert kind == "score" and isinstance(criteria, list)
                row = chances(result, len(criteria))
                answer = {"probabilities": {str(i): p for i, p in enumerate(row)}, "legend": {}}
                answer["score"] = sum(i * p for i, p in enumerate(row))
            if kind != "noul" or self.dialect == "vllm":
                answer["confidence"] = CONFIDENCE
            if self.dialect == "sglang":
                answer["x_label_mass"] = mass
            diagnostics[key] = {"label_mass": mass, "argmax_is_label": True}
            answers[key] = {"type": kind, **answer}
        reply: Json = {"model": self.model, "answers": answers}
        reply["usage"] = {"input_tokens": 100, "output_tokens": len(answers)}
        if self.dialect == "vllm":
            reply |= {"id": "x", "object": "structured_decision", "created": 1}
            reply["diagnostics"] = diagnostics
        return 200, reply, {}

    def _decisions(self, body: Json) -> Response:
        if set(body) != {"model", "input", "questions"} or not isinstance(body["input"], str):
            return 400, {"error": {"message": "Unknown parameter"}}, {}
        answers = []
        for place, question in enumerate(body["questions"]):
            assert question.get("name", "x") is not None
            result = marks(question["instructions"], body["input"])
            if "bad" in result:
                return self._refuse("cannot be asked", str(place))
            if "lose" in result:
                continue
            kind = question["type"]
            answer: Json = {"type": kind, "name": question["name"] if self.names else None}
            if "refuse" in result and self.dialect == "openai":
                answer["refusal"] = "I cannot judge this."
            elif kind == "predicate":
                answer["probability"] = chances(result, 2)[0]
            else:
                options = question["choices" if kind == "choice" else "levels"]
                row = chances(result, len(options))
                answer["probabilities"] = [
                    {"value": option.get("value", i), "probability": p}
                    | ({"label": option["label"]} if kind == "score" else {})
                    for i, (option, p) in enumerate(zip(options, row, strict=True))
                ]
                answer["confidence"] = CONFIDENCE
            answers.append(answer)
        usage = {"input_tokens": 100, "output_tokens": 0, "total_tokens": 100}
        return 200, {"model": self.model, "answers": answers, "usage": usage}, {}

    def _sglang_decisions(self, body: Json) -> Response:
        for place, question in enumerate(body["questions"]):
            if "id" not in question or "question" not in question:
                where = {"loc": ["body", "questions", place, "id"], "msg": "Field required"}
                return 400, {"detail": [where]}, {}
        return 200, {"answers": {}, "usage": {"prompt_tokens": 1}}, {}
