"""Templates of the pages, and what all pages have: the frame, the script, and its style sheets."""

from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import ChoiceLoader, Environment, PackageLoader
from starlette.responses import HTMLResponse

from trustassay.metrics.judge import Rubric, read_rubric
from trustassay.show.markdown import markdown_html
from trustassay.show.page import environment as report_environment
from trustassay.show.text import figure as with_unit
from trustassay.workflows.annotate.project import Scale
from trustassay.workflows.view.listing import Listings

ASSETS = {
    "view.css": (
        ("trustassay.show", "report.css"),
        (__package__, "view.css"),
        (__package__, "rate.css"),
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
    result.globals = {**result.globals, "address": address, "with_unit": with_unit}
    return result


def address(base: str, to: str, /, **query: object) -> str:
    """Return the address of a page with what it is asked for; empty values are left out."""
    given = {
        name: value
        for name, value in query.items()
        if value is not False and value not in ("", None)
    }
    return f"{base}/{to}" + (f"?{urlencode(given)}" if given else "")


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
        self.listings = Listings()

    def html(self, template: str, status: int = 200, **context: Any) -> HTMLResponse:
        """Return a page."""
        text = environment().get_template(template).render(site=self, base=self.base, **context)
        return HTMLResponse(text, status)

    def problem(self, title: str, said: str, status: int = 404) -> HTMLResponse:
        """Return a page that says what is wrong and how to go on."""
        return self.html("problem.html.jinja", status, title=title, said=said)
