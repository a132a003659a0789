"""The list of all runs: what each found, the newest first."""

from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from trustassay_serve.view import trend
from trustassay_serve.view.index import ALL, FigureRow, Index, RunRow, chosen
from trustassay_serve.view.pages import Site, page_of, when

A_PAGE = 50
"""Runs on a page."""
HEADLINES = 3
"""Metrics of a run of which the list shows the outcomes and the first figure."""
ORDERS = {
    "newest": "made DESC, key",
    # runs without a date come last in each order
    "oldest": "made IS NULL, made, key",
    "name": "key",
    "need": "flagged IS NULL, flagged DESC, made DESC",
    "largest": "samples DESC, made DESC",
}


class Listed(NamedTuple):
    """A run with the figures that the list shows."""

    run: RunRow
    made: str
    figures: list[FigureRow]


def shown(site: Site, index: Index, request: Request) -> Response:
    """Return the list; what is asked for stays in the address."""
    asked = request.query_params
    condition, values = chosen(asked)
    order = asked.get("order", "newest")
    order = order if order in ORDERS else "newest"
    ((count,),) = index.ask(f"SELECT count(*) FROM runs WHERE {condition}", values)
    page = page_of(asked)
    rows = index.ask(
        f"SELECT * FROM runs WHERE {condition} ORDER BY {ORDERS[order]} LIMIT ? OFFSET ?",
        [*values, A_PAGE, A_PAGE * (page - 1)],
    )
    listed = [_listed(index, RunRow(*row)) for row in rows]
    counts = dict(index.ask("SELECT state, count(*) FROM runs GROUP BY state"))
    return site.html(
        "runs.html.jinja",
        listed=listed,
        headlines=HEADLINES,
        count=count,
        page=page,
        pages=-(-count // A_PAGE),
        first=A_PAGE * (page - 1) + 1,
        asked={**asked},
        order=order,
        orders=ORDERS,
        metrics=_words(index, "metrics"),
        models=[
            row[0] for row in index.ask("SELECT DISTINCT model FROM runs ORDER BY model") if row[0]
        ],
        counts=counts,
        waiting=index.waiting,
        lines=trend.small_lines(index, asked),
    )


def _listed(index: Index, run: RunRow) -> Listed:
    query = "SELECT * FROM figures WHERE key = ? AND grp = ? AND place = 0 ORDER BY metric LIMIT ?"
    figures = [FigureRow(*row) for row in index.ask(query, (run.key, ALL, HEADLINES))]
    return Listed(run, when(run.made), figures)


def _words(index: Index, column: str) -> list[str]:
    rows = index.ask(f"SELECT DISTINCT {column} FROM runs")
    return sorted({word for row in rows for word in row[0].split()})
