"""The common part of all pages: templates, style sheets, scripts, and the cache of results."""

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

from trustassay.core.files import is_foreign
from trustassay.metrics.judge import Rubric, read_rubric
from trustassay.people.annotate.project import RatingScale
from trustassay.people.label.command import default_plan
from trustassay.report.markdown import markdown_html
from trustassay.report.page import environment as report_environment
from trustassay.report.serving import FORM_NUMBER
from trustassay.runs.folder import RunFolder
from trustassay.text.numbers import figure as with_unit
from trustassay.view.listing import ListingCache

T = TypeVar("T")
MAX_RESULTS = 6
"""The most results in the cache."""
PATIENCE_S = 1.0
"""Seconds that a page waits for a computation."""
ASSETS = {
    "view.css": (
        ("trustassay.report", "report.css"),
        (__package__, "view.css"),
        (__package__, "rate.css"),
        (__package__, "two.css"),
    ),
    "view.js": ((__package__, "view.js"), (__package__, "rate.js")),
}


@cache
def environment() -> Environment:
    """Return the templates of these pages, which extend and include those of the report.

    It is an overlay: the report's own environment stays as it is.
    """
    result = report_environment().overlay()
    shared = report_environment().loader
    assert shared is not None
    result.loader = ChoiceLoader([PackageLoader(__package__, "templates"), shared])
    result.filters = {**result.filters, "markdown": markdown_html}
    result.globals = {
        **result.globals,
        "address": address,
        "with_unit": with_unit,
        "when": format_time,
    }
    return result


def prepare() -> None:
    """Compile all templates, so that the first page does not have to wait for it."""
    for name in PackageLoader(__package__, "templates").list_templates():
        if name.endswith(".jinja"):
            environment().get_template(name)


def address(base: str, to: str, /, **query: object) -> str:
    """Return the address of a page with its query; empty values are left out."""
    present = {
        name: value
        for name, value in query.items()
        # 0 is a value (0 == False, hence `is not`)
        if value is not False and value not in ("", None)
    }
    return f"{base}/{to}" + (f"?{urlencode(present)}" if present else "")


def format_time(seconds: float | None) -> str:
    """Return a time in the time zone of this machine, such as 2026-11-28 09:30."""
    return "no date" if seconds is None else f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"


def read_page_number(query: Mapping[str, str]) -> int:
    """Return the number of the page that an address asks for, from 1."""
    text = query.get("page", "")
    return max(1, int(text)) if FORM_NUMBER.fullmatch(text) else 1


class ResultCache:
    """A cache of what pages have computed; one computation runs at a time."""

    def __init__(self) -> None:
        self._lock, self._working = threading.Lock(), threading.Lock()
        self._futures = OrderedDict[Hashable, Future[Any]]()

    def get(self, of: Hashable, make: Callable[[], T], patience_s: float = PATIENCE_S) -> T | None:
        """Return the cached result for a key, computing it if needed.

        Args:
            of: the key.
            make: computes the result. Its errors are raised here, and it is called again the next
                time.
            patience_s: seconds to wait.

        Returns:
            The result; ``None`` if it takes longer. The computation goes on, for the next call.
        """

        def work(future: Future[T]) -> None:
            # One computation at a time, however many pages are open.
            with self._working:
                try:
                    future.set_result(make())
                except Exception as error:  # raised again in `get`
                    future.set_exception(error)

        with self._lock:
            # Popping and inserting again keeps the most recently used result last.
            if (future := self._futures.pop(of, None)) is None:
                future = Future()
                threading.Thread(target=work, args=(future,), daemon=True).start()
            self._futures[of] = future
            # the least recently used goes; its thread, if it still runs, ends by itself
            while len(self._futures) > MAX_RESULTS:
                self._futures.popitem(last=False)
        # outside of the lock, so that other pages can be served meanwhile
        wait([future], patience_s)
        # An error is not cached: the file that caused it may be repaired.
        if future.done() and future.exception():
            with self._lock:
                self._futures.pop(of, None)
        return future.result() if future.done() else None


class PageError(Exception):
    """Says why a page cannot be shown, and what to do next.

    The arguments are those of :meth:`Site.problem`, which builds the page that is shown instead.
    """

    def __init__(self, title: str, message: str, status: int = 404) -> None:
        super().__init__(title, message, status)


class Site:
    """The context of all pages.

    ``root`` is the folder that is served, ``base`` the beginning of all addresses, ``/TOKEN``.
    ``rater`` is the person who rates, or empty; ``scale`` has the levels of the rubric. ``blind``
    says whether scores are hidden until an answer is rated, ``write_others`` whether runs of other
    users may be rated.
    """

    def __init__(
        self,
        root: Path,
        base: str,
        rater: str = "",
        rubric: Rubric | None = None,
        *,
        blind: bool = True,
        write_others: bool = False,
    ) -> None:
        self.root, self.base, self.rater, self.blind = root, base, rater, blind
        self.write_others = write_others
        self.scale = RatingScale(rubric or read_rubric("answer"))
        self.results = ResultCache()
        self.listings = ListingCache()

    def explain_read_only(self, folder: RunFolder) -> str:
        """Return why a run may not be rated; empty if it may, and where nobody rates."""
        # A service that runs as root could write everywhere: it asks its operator first.
        paths = (folder.path, default_plan(folder.path.resolve()))
        if not self.rater or self.write_others or not any(map(is_foreign, paths)):
            return ""
        return "Read-only: this run belongs to another user. --write-others allows rating it."

    def find_rater(self, folder: RunFolder) -> str:
        """Return who rates a run; empty if nobody may."""
        return "" if self.explain_read_only(folder) else self.rater

    def html(self, template: str, status: int = 200, **context: Any) -> HTMLResponse:
        """Return a page."""
        text = environment().get_template(template).render(site=self, base=self.base, **context)
        return HTMLResponse(text, status)

    def problem(self, title: str, message: str, status: int = 404) -> HTMLResponse:
        """Return a page that says what is wrong, and what to do next."""
        return self.html("problem.html.jinja", status, title=title, said=message)

    def waiting(self, title: str) -> HTMLResponse:
        """Return a page that reloads every second, while a result is being computed."""
        result = self.html("waiting.html.jinja", title=title)
        result.headers["refresh"] = "1"
        return result
