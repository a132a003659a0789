"""Templates of the pages, and what all pages have: the frame, the script, and its style sheets."""

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import ChoiceLoader, Environment, PackageLoader
from starlette.responses import HTMLResponse

from trustassay.show.page import environment as report_environment
from trustassay.show.text import figure as with_unit
from trustassay.workflows.view.listing import Listings

STYLES = (("trustassay.show", "report.css"), (__package__, "view.css"))
ASSETS = {"view.css": "text/css", "view.js": "text/javascript"}


@cache
def asset(name: str) -> str:
    """Return the style sheet, that of the report first, or the script of the pages."""
    sources = STYLES if name == "view.css" else ((__package__, name),)
    return "\n".join(
        files(package).joinpath("templates", file).read_text(encoding="utf-8")
        for package, file in sources
    )


@cache
def environment() -> Environment:
    """Return the templates of these pages, which extend and include those of the report."""
    result = report_environment().overlay()
    shared = report_environment().loader
    assert shared is not None
    result.loader = ChoiceLoader([PackageLoader(__package__, "templates"), shared])
    result.globals = {**result.globals, "address": address, "with_unit": with_unit}
    return result


def address(base: str, to: str, /, **query: object) -> str:
    """Return the address of a page with what it is asked for; empty values are left out."""
    given = {name: value for name, value in query.items() if value not in ("", None, False)}
    return f"{base}/{to}" + (f"?{urlencode(given)}" if given else "")


class Site:
    """What all pages know: the folder that is served, and where its pages begin.

    base: ``/TOKEN``. rater: who rates here; empty where nobody does.
    """

    def __init__(self, root: Path, base: str, rater: str = "") -> None:
        self.root, self.base, self.rater = root, base, rater
        self.listings = Listings()

    def html(self, template: str, status: int = 200, **context: Any) -> HTMLResponse:
        """Return a page."""
        text = environment().get_template(template).render(site=self, base=self.base, **context)
        return HTMLResponse(text, status)

    def problem(self, title: str, said: str, status: int = 404) -> HTMLResponse:
        """Return a page that says what is wrong and how to go on."""
        return self.html("problem.html.jinja", status, title=title, said=said)
