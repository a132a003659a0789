"""A small DBpedia and Spotlight over HTTP, in the test's own loop, which can fail in many ways."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

ENTITIES = {
    # label: (types, links to it)
    "Jane Austen": ("Novelist Writer Person", 900),
    "Mary Shelley": ("Novelist Writer Person", 700),
    "Leo Tolstoy": ("Novelist Writer Person", 800),
    "Homer (poet)": ("Poet Writer Person", 950),
    "Sappho": ("Poet Writer Person", 100),
    "Marie Curie": ("Scientist Person", 990),
    "Rome": ("City Place", 1000),
    "Oslo": ("City Place", 300),
}


class KnowledgeBase:
    """Answers ``/sparql`` and ``/annotate``; ``fate`` says how: ok, 500, 404, slow, garbage,
    not-json, empty. The first ``fails`` requests meet it, then all is well."""

    def __init__(self) -> None:
        self.fate = "ok"
        self.fails: int | None = None
        self.queries: list[str] = []
        self.texts: list[str] = []
        self.url = ""

    async def _met(self) -> web.Response | None:
        if self.fate == "ok" or self.fails == 0:
            return None
        if self.fails is not None:
            self.fails -= 1
        if self.fate == "slow":
            await asyncio.sleep(5)
        bodies = {"garbage": '{"results": [1, 2]}', "not-json": "<html>busy</html>"}
        if self.fate in bodies:
            return web.Response(text=bodies[self.fate], content_type="application/json")
        status = int(self.fate) if self.fate.isdecimal() else 503
        return web.Response(status=status, text="out of order")

    async def sparql(self, request: web.Request) -> web.Response:
        query = str((await request.post())["query"])
        self.queries.append(query)
        if met := await self._met():
            return met
        assert request.headers["Accept"] == "application/sparql-results+json"
        wanted = set(re.findall(r"<http://dbpedia.org/ontology/(\w+)>", query)) - {
            "wikiPageWikiLink"
        }
        limit = int(query.rsplit("LIMIT ", 1)[1])
        found = sorted(
            (-links, label)
            for label, (types, links) in ENTITIES.items()
            if wanted <= set(types.split())
        )
        rows: list[Any] = [
            {"label": {"type": "literal", "xml:lang": "en", "value": label}}
            for _, label in found[:limit]
        ]
        return web.json_response({"head": {"vars": ["label"]}, "results": {"bindings": rows}})

    async def annotate(self, request: web.Request) -> web.Response:
        text = str((await request.post())["text"])
        self.texts.append(text)
        if met := await self._met():
            return met
        resources = [
            {
                "@URI": f"http://dbpedia.org/resource/{label.replace(' ', '_')}",
                "@types": ",".join(f"DBpedia:{one}" for one in types.split()) + ",Http://x/Y",
                "@surfaceForm": label,
                "@offset": str(text.index(label)),
            }
            for label, (types, _) in ENTITIES.items()
            if label in text
        ]
        return web.json_response({"@text": text, **({"Resources": resources} if resources else {})})


@asynccontextmanager
async def knowledge_base() -> AsyncIterator[KnowledgeBase]:
    """Serve one at a free port of this machine."""
    base = KnowledgeBase()
    app = web.Application()
    app.router.add_post("/sparql", base.sparql)
    app.router.add_post("/annotate", base.annotate)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    base.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield base
    finally:
        await runner.cleanup()
