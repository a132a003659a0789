"""The page with the list of all runs and their results."""

from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from trustassay.view import trend
from trustassay.view.index import ALL, FigureRow, Index, RunRow, run_condition
from trustassay.view.pages import Site, format_time, read_page_number

A_PAGE = 50
"""Runs on a page."""
HEADLINES = 3
"""The most metrics of a run whose outcomes and first figures the list shows."""
ORDERS = {
    "newest": "made DESC, key",
    # runs without a date come last in each order
    "oldest": "made IS NULL, made, key",
    "name": "key",
    "need": "flagged IS NULL, flagged DESC, made DESC",
    "largest": "samples DESC, made DESC",
}


class RunListEntry(NamedTuple):
    """A run in the list."""

    run: RunRow
    """Its row in the table."""
    made: str
    """When it began, in the time zone of this machine."""
    figures: list[FigureRow]
    """The headline figures of its first metrics."""


def runs_page(site: Site, index: Index, request: Request) -> Response:
    """Return the page with the list, as the query of the address says."""
    params = request.query_params
    condition, values = run_condition(params)
    order = params.get("order", "newest")
    # The order becomes part of the SQL, so only known ones are taken.
    order = order if order in ORDERS else "newest"
    ((count,),) = index.ask(f"SELECT count(*) FROM runs WHERE {condition}", values)
    page = read_page_number(params)
    rows = index.ask(
        # Paged in SQL: a folder may have thousands of runs.
        f"SELECT * FROM runs WHERE {condition} ORDER BY {ORDERS[order]} LIMIT ? OFFSET ?",
        [*values, A_PAGE, A_PAGE * (page - 1)],
    )
    entries = [_build_entry(index, RunRow(*row)) for row in rows]
    counts = dict(index.ask("SELECT state, count(*) FROM runs GROUP BY state"))
    return site.html(
        "runs.html.jinja",
        listed=entries,
        headlines=HEADLINES,
        count=count,
        page=page,
        pages=-(-count // A_PAGE),
        first=A_PAGE * (page - 1) + 1,
        asked={**params},
        order=order,
        orders=ORDERS,
        metrics=_distinct_words(index, "metrics"),
        models=[
            row[0] for row in index.ask("SELECT DISTINCT model FROM runs ORDER BY model") if row[0]
        ],
        counts=counts,
        waiting=index.waiting,
        lines=trend.small_lines(index, params),
    )


def _build_entry(index: Index, run: RunRow) -> RunListEntry:
    # place 0 is the headline figure of each metric
    query = "SELECT * FROM figures WHERE key = ? AND grp = ? AND place = 0 ORDER BY metric LIMIT ?"
    figures = [FigureRow(*row) for row in index.ask(query, (run.key, ALL, HEADLINES))]
    return RunListEntry(run, format_time(run.made), figures)


def _distinct_words(index: Index, column: str) -> list[str]:
    """Return the different words in a column of the table of runs, sorted."""
    rows = index.ask(f"SELECT DISTINCT {column} FROM runs")
    return sorted({word for row in rows for word in row[0].split()})
