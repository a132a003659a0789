"""Templates of the pages, and what all pages have: the frame, the script, and its style sheets."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, wait
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from jinja2 import ChoiceLoader, Environment, PackageLoader
from starlette.responses import HTMLResponse

from trustassay.metrics.judge import Rubric, read_rubric
from trustassay.show.markdown import markdown_html
from trustassay.show.page import environment as report_environment
from trustassay.show.text import figure as with_unit
from trustassay.workflows.annotate.project import Scale
from trustassay.workflows.serving import NUMBER
from trustassay_serve.view.listing import Listings

T = TypeVar("T")
MOST_KEPT = 6
PATIENCE_S = 1.0
"""Seconds that a page waits for what is computed."""
ASSETS = {
    "view.css": (
        ("trustassay.show", "report.css"),
        (__package__, "view.css"),
        (__package__, "rate.css"),
        (__package__, "two.css"),
    ),
    "view.js": ((__package__, "view.js"), (__package__, "rate.js")),
}


@cache
def environment() -> Environment:
    """Return the templates of these pages, which extend and include those of the report."""
    result = report_environment().overlay()
    shared = report_environment().loader
    assert shared is not None
    result.loader = ChoiceLoader([PackageLoader(__package__, "templates"), shared])
    result.filters = {**result.filters, "markdown": markdown_html}
    result.globals = {**result.globals, "address": address, "with_unit": with_unit, "when": when}
    return result


def prepare() -> None:
    """Compile the templates of these pages, so that the first page does not wait for it."""
    for name in PackageLoader(__package__, "templates").list_templates():
        if name.endswith(".jinja"):
            environment().get_template(name)


def address(base: str, to: str, /, **query: object) -> str:
    """Return the address of a page with what it is asked for; empty values are left out."""
    given = {
        name: value
        for name, value in query.items()
        if value is not False and value not in ("", None)
    }
    return f"{base}/{to}" + (f"?{urlencode(given)}" if given else "")


def when(seconds: float | None) -> str:
    """Return a time as people of this machine's time zone write it."""
    return "no date" if seconds is None else f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"


def page_of(query: Mapping[str, str]) -> int:
    """Return the number of the page that an address asks for, from 1."""
    given = query.get("page", "")
    return max(1, int(given)) if NUMBER.fullmatch(given) else 1


class Kept:
    """What pages have computed, one thing at a time; the last few things stay."""

    def __init__(self) -> None:
        self._lock, self._working = threading.Lock(), threading.Lock()
        self._made = OrderedDict[Hashable, Future[Any]]()

    def get(self, of: Hashable, make: Callable[[], T], patience_s: float = PATIENCE_S) -> T | None:
        """Return what ``make`` makes of ``of``; ``None`` if it takes longer: it goes on, and is
        there for who asks again. What it raises is raised here, and tried again the next time.
        """

        def work(future: Future[T]) -> None:
            with self._working:
                try:
                    future.set_result(make())
                except Exception as error:  # raised to who asks
                    future.set_exception(error)

        with self._lock:
            if (future := self._made.pop(of, None)) is None:
                future = Future()
                threading.Thread(target=work, args=(future,), daemon=True).start()
            self._made[of] = future
            while len(self._made) > MOST_KEPT:
                self._made.popitem(last=False)
        wait([future], patience_s)
        if future.done() and future.exception():
            with self._lock:
                self._made.pop(of, None)
        return future.result() if future.done() else None


class Site:
    """What all pages know: the folder that is served, and where its pages begin.

    base: ``/TOKEN``. rater: who rates here; empty where nobody does. scale: what is rated. blind:
    whether scores are hidden until an answer is rated.
    """

    def __init__(
        self,
        root: Path,
        base: str,
        rater: str = "",
        rubric: Rubric | None = None,
        *,
        blind: bool = True,
    ) -> None:
        self.root, self.base, self.rater, self.blind = root, base, rater, blind
        self.scale = Scale(rubric or read_rubric("answer"))
        self.kept = Kept()
        self.listings = Listings()

    def html(self, template: str, status: int = 200, **context: Any) -> HTMLResponse:
        """Return a page."""
        text = environment().get_template(template).render(site=self, base=self.base, **context)
        return HTMLResponse(text, status)

    def problem(self, title: str, said: str, status: int = 404) -> HTMLResponse:
        """Return a page that says what is wrong and how to go on."""
        return self.html("problem.html.jinja", status, title=title, said=said)

    def waiting(self, title: str) -> HTMLResponse:
        """Return a page that asks again each second, for what is not computed yet."""
        result = self.html("waiting.html.jinja", title=title)
        result.headers["refresh"] = "1"
        return result
