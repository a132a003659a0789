"""Endpoints on 127.0.0.1 that items ask: embeddings, DBpedia, Spotlight."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import numpy as np

from lab.benchmarks.paper_items.running import Bench, Prepare

Answer = Callable[[str, bytes], Any]
"""From the path and the body of a request to a value in JSON; ``None`` is not found."""


def start_server(bench: Bench, answer: Answer) -> None:
    """Serve until the item's end; ``SERVER`` in its commands becomes the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            value = answer(self.path, body)
            text = json.dumps({} if value is None else value).encode()
            self.send_response(404 if value is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *arguments: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    bench.server = f"http://127.0.0.1:{server.server_address[1]}"
    bench.on_exit.append(server.shutdown)


def serve_embeddings(prepare: Prepare) -> Prepare:
    """Return ``prepare`` with an endpoint of embeddings, whose vectors are those of @N degrees."""

    def embed(path: str, body: bytes) -> Any:
        if not path.endswith("/embeddings"):
            return None
        request = json.loads(body)
        texts = request["input"] if isinstance(request["input"], list) else [request["input"]]
        rows = []
        for index, text in enumerate(texts):
            degrees = np.radians(float((re.findall(r"@(-?\d+)", text) or ["0"])[-1]))
            vector = [float(np.cos(degrees)), float(np.sin(degrees))]
            rows.append({"object": "embedding", "index": index, "embedding": vector})
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return {"object": "list", "data": rows, "model": request["model"], "usage": usage}

    def both(bench: Bench) -> None:
        prepare(bench)
        start_server(bench, embed)

    return both


def answer_as_dbpedia(entities: Mapping[str, tuple[str, int]]) -> Answer:
    """Return an endpoint of SPARQL and of Spotlight that knows some entities.

    Args:
        entities: types, divided by blanks, and the number of links, by label.
    """

    def sparql(query: str) -> Any:
        wanted = set(re.findall(r"<http://dbpedia.org/ontology/(\w+)>", query))
        wanted -= {"wikiPageWikiLink"}
        limit = int(query.rsplit("LIMIT ", 1)[1])
        ranked = sorted(
            (-links, label)
            for label, (types, links) in entities.items()
            if wanted <= set(types.split())
        )
        bindings = [
            {"label": {"type": "literal", "xml:lang": "en", "value": label}}
            for _, label in ranked[:limit]
        ]
        return {"head": {"vars": ["label"]}, "results": {"bindings": bindings}}

    def annotate(text: str) -> Any:
        resources = [
            {
                "@URI": f"http://dbpedia.org/resource/{label.replace(' ', '_')}",
                "@types": ",".join(f"DBpedia:{one}" for one in types.split()),
                "@surfaceForm": label,
                "@offset": str(text.index(label)),
            }
            for label, (types, _) in entities.items()
            if label in text
        ]
        return {"@text": text, **({"Resources": resources} if resources else {})}

    def answer(path: str, body: bytes) -> Any:
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        if path.startswith("/sparql"):
            return sparql(form["query"])
        return annotate(form["text"]) if path.startswith("/annotate") else None

    return answer
