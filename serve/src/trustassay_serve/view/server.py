"""The routes of ``trustassay view``, and the thread that keeps its table of runs up to date."""

import asyncio
import threading
from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from trustassay.errors import RunFolderError, UnknownNameError
from trustassay.workflows.serving import Hosts, Links, Tell, asset_routes, starlette
from trustassay_serve.view import answers, documents, runs, trend, two
from trustassay_serve.view.index import Index
from trustassay_serve.view.next import routes as rating_routes
from trustassay_serve.view.next import shown
from trustassay_serve.view.pages import ASSETS, Site, prepare

VIEWER = "reads only"
"""Whose token the address has where nobody rates; else it has that of the rater, so that who was
given the link of pages to read cannot rate on those that another process serves.
"""
EVERY_S = 2.0
"""Seconds between two looks at the folder."""


class Keeper:
    """Refreshes an index in a thread of its own until it is closed."""

    def __init__(self, index: Index, tell: Tell) -> None:
        self._index, self._tell = index, tell
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="view-index", daemon=True)
        self.version = 0
        """Rises with each change that was found."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End, and wait for it."""
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        prepare()
        told = ""
        while not self._end.is_set():
            try:
                self.version += self._index.refresh(self._end.is_set)
                told = ""
            except Exception as error:  # the pages go on with what is known
                why = f"the folder could not be read: {type(error).__name__}: {error}"
                if why != told:
                    self._tell(why)
                told = why
            self._end.wait(EVERY_S)


def application(
    site: Site,
    index: Index,
    links: Links,
    tell: Tell,
    hosts: Hosts | None,
    version: Callable[[], int] = lambda: 0,
) -> ASGIApp:
    """Return the ASGI application of the pages; each address begins with the token of ``links``."""

    def page(endpoint: Callable[[Site, Index, Request], Response]) -> Callable[..., object]:
        async def shown(request: Request) -> Response:
            _check(links, request)
            return await asyncio.to_thread(endpoint, site, index, request)

        return shown

    async def state(request: Request) -> Response:
        """Say whether anything has changed since a page was made: of a run, or of any."""
        _check(links, request)
        known = await asyncio.to_thread(_state_of, site, index, request.query_params.get("run", ""))
        return JSONResponse({"version": [*known, version(), index.waiting]})

    routes = [*asset_routes(ASSETS), Route("/{token}/state", state)]
    for path, endpoint in PAGES.items():
        routes.append(Route(f"/{{token}}/{path}", page(endpoint)))
    routes += rating_routes(site, index, links, tell)
    return starlette(routes, tell, hosts)


def _state_of(site: Site, index: Index, key: str) -> list[object]:
    """Return what changes with a run: how much of it was read, or what is wrong with it."""
    row, folder = index.run(key), index.folder(key)
    if row is None or folder is None:
        return []
    try:
        listing = site.listings.of(folder)
    except (RunFolderError, UnknownNameError, OSError) as error:
        return [str(error)]
    return [row.stamp, len(listing), listing.read]


def _check(links: Links, request: Request) -> None:
    if links.owner(request.path_params["token"]) is None:
        raise HTTPException(404)


PAGES: dict[str, Callable[[Site, Index, Request], Response]] = {
    "": runs.shown,
    "trend": trend.shown,
    "compare": two.shown,
    "compare.md": two.exported,
    **dict.fromkeys(documents.MADE, documents.shown),
    "run": answers.listed,
    "answer": answers.one,
    "elsewhere": answers.elsewhere,
    "calls": answers.calls,
    "next": shown,
}
"""By address: what makes the page."""
