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
from trustassay.report.serving import (
    AccessLinks,
    AllowedHosts,
    MessageWriter,
    build_application,
    build_asset_routes,
)
from trustassay.view import answers, documents, runs, trend, two
from trustassay.view.index import Index
from trustassay.view.next import next_page
from trustassay.view.next import routes as rating_routes
from trustassay.view.pages import ASSETS, PageError, Site, prepare

VIEWER = "reads only"
"""The owner of the address's token where nobody rates. Otherwise the owner is the rater. So a
person who was given a link for reading cannot rate on the pages of another process.
"""
REFRESH_EVERY_S = 2.0
"""Seconds between two refreshes of the table."""


class IndexRefresher:
    """Refreshes an index in a thread of its own until it is closed."""

    def __init__(self, index: Index, tell: MessageWriter) -> None:
        self._index, self._tell = index, tell
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="view-index", daemon=True)
        self.version = 0
        """A number that rises with each change of the table."""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread, and wait for its end."""
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        """Refresh the table until the end; print each new error once."""
        prepare()
        last_message = ""
        while not self._end.is_set():
            try:
                # `refresh` stops between two batches when the server ends.
                self.version += self._index.refresh(self._end.is_set)
                last_message = ""
            # A folder may be on a network that comes back.
            except Exception as error:  # the pages still show what was read
                message = f"the folder could not be read: {type(error).__name__}: {error}"
                if message != last_message:
                    self._tell(message)
                last_message = message
            self._end.wait(REFRESH_EVERY_S)


def application(
    site: Site,
    index: Index,
    links: AccessLinks,
    tell: MessageWriter,
    hosts: AllowedHosts | None,
    version: Callable[[], int] = lambda: 0,
) -> ASGIApp:
    """Return the ASGI application of the pages.

    Args:
        site: the context of the pages.
        index: the table of runs.
        links: has the tokens with which addresses begin.
        tell: prints messages.
        hosts: the host names that requests may name.
        version: returns a number that rises with each change of the table.
    """

    def page(endpoint: Callable[[Site, Index, Request], Response]) -> Callable[..., object]:
        async def show_page(request: Request) -> Response:
            _check_token(links, request)
            # Pages read files and SQLite, so they are built in a thread.
            try:
                return await asyncio.to_thread(endpoint, site, index, request)
            except PageError as error:
                return site.problem(*error.args)

        return show_page

    async def state(request: Request) -> Response:
        """Return a version that changes with a run, or with any run; the pages' script polls it."""
        _check_token(links, request)
        state_values = await asyncio.to_thread(
            _read_state, site, index, request.query_params.get("run", "")
        )
        return JSONResponse({"version": [*state_values, version(), index.waiting]})

    # Assets need no token: they hold nothing of a run.
    routes = [*build_asset_routes(ASSETS), Route("/{token}/state", state)]
    for path, endpoint in PAGES.items():
        routes.append(Route(f"/{{token}}/{path}", page(endpoint)))
    routes += rating_routes(site, index, links, tell)
    return build_application(routes, tell, hosts)


def _read_state(site: Site, index: Index, key: str) -> list[object]:
    """Return values that change with a run: how much of it was read, or what is wrong with it."""
    row = index.run(key)
    if row is None:
        return []
    try:
        listing = site.listings.of(index.folder(row))
    except (RunFolderError, UnknownNameError, OSError) as error:
        return [str(error)]
    # The page's script reloads the answers when any of these differs.
    return [row.stamp, len(listing), listing.read]


def _check_token(links: AccessLinks, request: Request) -> None:
    """Refuse a request without a valid token, as if there were no such page."""
    if links.find_owner(request.path_params["token"]) is None:
        raise HTTPException(404)


PAGES: dict[str, Callable[[Site, Index, Request], Response]] = {
    "": runs.runs_page,
    "trend": trend.trend_page,
    "compare": two.compare_page,
    "compare.md": two.gate_markdown,
    **dict.fromkeys(documents.DOCUMENT_COMMANDS, documents.document_page),
    "run": answers.answers_page,
    "answer": answers.answer_page,
    "elsewhere": answers.elsewhere_page,
    "calls": answers.calls_page,
    "next": next_page,
}
"""The function that builds the page of each address."""
