"""Figures over time: lines over the runs, and the places where something clear changed.

Runs whose questions are mostly the same are joined: between others a difference may come from the
questions alone. So several series of runs may stand in one drawing, which is in the order of time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from trustassay.compare.run_scores import changed_judges, changed_settings
from trustassay.errors import RunFolderError
from trustassay.runs.folder import ABOUT, RunFolder
from trustassay.runs.questions import read_sketch, share_questions
from trustassay.show.charts import ticks
from trustassay.statistics.levels import Estimate, Step, steps
from trustassay_serve.view.index import ALL, FigureRow, Index, chosen
from trustassay_serve.view.pages import Site, page_of

DRAWN, SMALL = 300, 60
"""Runs of a line on its page, where more points could not be told apart, and above the list."""
MOST_SMALL = 6
"""Lines above the list."""
WHOLE_SIZE, SMALL_SIZE = (960.0, 280.0), (180.0, 36.0)
WHOLE_ROOM, SMALL_ROOM = (44.0, 12.0, 28.0, 26.0), (3.0, 5.0, 5.0, 5.0)
"""Room of a drawing on its left, right, top and bottom."""
VERSION = "trustassay"
OF = "FROM runs CROSS JOIN figures USING (key) WHERE metric = ? AND figure = ? AND grp = ? AND"
"""CROSS: through the runs in the order of time, so that the newest are found without the others."""
DATED = "made IS NOT NULL"
ORDER = "ORDER BY made DESC, key LIMIT ? OFFSET ?"


class Point(NamedTuple):
    """A run on a line: its figure, title, models, when it began, and the state of its files.

    place: its number in the order of time. series: the number of the series that it is joined to.
    """

    figure: FigureRow
    run: str
    model: str
    made: float
    stamp: str
    place: int
    series: int


@dataclass(frozen=True)
class Change:
    """A place between two runs of a series; ``at`` is the place of the run after it.

    settings: what differs between the runs. step: what clearly changed; ``None`` where the judge
    did, so that nothing is compared.
    """

    at: int
    before: Point
    after: Point
    settings: Sequence[str]
    step: Step | None = None

    @property
    def kind(self) -> str:
        """``judge``, ``better``, ``worse``, or ``changed`` where no side is better."""
        better = self.after.figure.better
        if self.step is None or not better:
            return "judge" if self.step is None else "changed"
        return "better" if (self.step.rise > 0) == (better == "higher") else "worse"


@dataclass(frozen=True)
class Line:
    """A figure over runs, the oldest first, and its changes. undated: runs that have no place in
    time, and are left out."""

    metric: str
    figure: str
    points: Sequence[Point]
    changes: Sequence[Change]
    undated: int = 0

    @property
    def series(self) -> list[Point]:
        """The runs, one series after another."""
        return sorted(self.points, key=lambda one: one.series)

    @property
    def clear(self) -> list[Change]:
        """Where something clear changed, the newest first."""
        return [one for one in self.changes if one.step][::-1]

    def axes(
        self, size: tuple[float, float], room: tuple[float, float, float, float]
    ) -> tuple[list[float], list[float], Callable[[float], float]]:
        """Return the marks of the y axis, where each run stands across, and where a value does."""
        ends = [(one.figure.value, one.figure.low, one.figure.high) for one in self.points]
        known = [end for each in ends for end in each if end is not None]
        marks = ticks(min(known), max(known))
        (width, height), (left, right, top, bottom) = size, room
        across = (width - left - right) / max(len(ends) - 1, 1)

        def y(value: float) -> float:
            share = (value - marks[0]) / (marks[-1] - marks[0])
            return height - bottom - (height - top - bottom) * share

        return marks, [left + across * at for at in range(len(ends))], y


def shown(site: Site, index: Index, request: Request) -> Response:
    """Return the page of one line; what is asked for stays in the address."""
    asked = request.query_params

    def choose(name: str, column: str, order: str, **of: str) -> tuple[list[str], str]:
        """Return what can be chosen, and what is: what is asked for, else the first."""
        where = " AND ".join(["1", *(f"{one} = ?" for one in of)])
        query = f"SELECT {column} FROM figures WHERE {where} GROUP BY {column} ORDER BY {order}"
        known = [row[0] for row in index.ask(query, list(of.values()))]
        given = asked.get(name, ALL)
        return known, given if given in known else next(iter(known), "")

    metrics = choose("metric", "metric", "count(*) DESC, metric")
    groups = choose("group", "grp", "grp", metric=metrics[1])
    figures = choose("figure", "figure", "min(place), figure", metric=metrics[1], grp=groups[1])
    page, of = page_of(asked), (metrics[1], figures[1], groups[1])
    condition, values = chosen({**asked, "metric": of[0]})
    query = f"SELECT count(*) {OF} {DATED} AND {condition}"
    ((total,),) = index.ask(query, [*of, *values])
    line = line_of(index, of, asked, DRAWN, DRAWN * (page - 1))
    return site.html(
        "trend.html.jinja",
        line=line,
        axes=line.axes(WHOLE_SIZE, WHOLE_ROOM) if line.points else None,
        size=WHOLE_SIZE,
        asked={**asked},
        choices={"metric": metrics, "figure": figures, "group": groups},
        models=[row[0] for row in index.ask("SELECT DISTINCT model FROM runs ORDER BY 1")],
        page=page,
        total=total,
        pages=-(-total // DRAWN),
    )


def line_of(
    index: Index, of: tuple[str, str, str], asked: Mapping[str, str], most: int, skip: int = 0
) -> Line:
    """Return a figure, named by metric, figure and group, over the newest ``most`` of the runs that
    an address asks for, after some. Runs without a date are counted and left out.
    """
    condition, values = chosen({**asked, "metric": of[0]})
    columns = "figures.*, runs.title, model, made, stamp, questions"
    query = f"SELECT {columns} {OF} {DATED} AND {condition} {ORDER}"
    rows = index.ask(query, [*of, *values, most, skip])[::-1]
    series = _number_series([row[-1] for row in rows])
    figure_columns = len(FigureRow._fields)
    points = [
        Point(FigureRow(*row[:figure_columns]), *(*row[figure_columns:-1], place, number))
        for place, (row, number) in enumerate(zip(rows, series, strict=True))
    ]
    ((undated,),) = index.ask(f"SELECT count(*) {OF} NOT ({DATED}) AND {condition}", [*of, *values])
    return Line(*of[:2], points, _changes(index.root, of[0], points), undated)


def _number_series(sketches: Sequence[str]) -> list[int]:
    """Return for each run, the oldest first, the number of its series: that of the newest run
    before it that shares questions with it, else a new one."""
    result = list[int]()
    # the questions of the last run of each series, the series with the newest run at the end
    last = dict[int, frozenset[str]]()
    for sketch in sketches:
        questions = read_sketch(sketch)
        matches = (number for number in reversed(last) if share_questions(last[number], questions))
        number = next(matches, len(last))
        last.pop(number, None)
        last[number] = questions
        result.append(number)
    return result


def _changes(root: Path, metric: str, in_time: Sequence[Point]) -> list[Change]:
    """Return the places where the judge changed, and where the figure did under one judge.

    The series are tested as one line that is broken where a series ends, so that the correction
    for many tests covers all that stands in one drawing.
    """
    points = sorted(in_time, key=lambda one: one.series)
    first_of_series = [
        at for at in range(1, len(points)) if points[at].series != points[at - 1].series
    ]
    settings = [_settings(root / one.figure.key, one.stamp) for one in points]

    def differ(first: int, second: int, *, judge: bool) -> list[str]:
        both = settings[first], settings[second]
        if not all(metric in one.get("metrics", ()) for one in both):
            return []
        if not judge:
            return changed_settings(*both, [metric])
        versions = [one.get(VERSION) for one in both]
        other = [f"{VERSION} was {versions[0]}, then {versions[1]}"]
        return changed_judges(*both, [metric]) + other * (versions[0] != versions[1])

    result, breaks = list[Change](), list(first_of_series)
    for at in range(1, len(points)):
        if at in first_of_series:
            continue
        if why := differ(at - 1, at, judge=True):
            result.append(Change(points[at].place, points[at - 1], points[at], why))
            breaks.append(at)
    line, places = list[Estimate](), list[int]()
    for at, (one, *_) in enumerate(points):
        if one.low is not None and one.high is not None:
            line.append(Estimate(one.value, one.low, one.high, one.n))
            places.append(at)
    broken = [sum(place < at for place in places) for at in breaks]
    for step in steps(line, broken):
        first, second = places[step.at - 1], places[step.at]
        models = points[first].model, points[second].model
        told = [f"the answers were of {models[0]}, then of {models[1]}"] * (models[0] != models[1])
        told += differ(first, second, judge=False)
        result.append(Change(points[second].place, points[first], points[second], told, step))
    return sorted(result, key=lambda one: one.at)


@lru_cache(maxsize=4096)
def _settings(path: Path, _stamp: str) -> dict[str, Any]:
    """Return the settings of a run, without what describes its metrics; none if it is damaged."""
    try:
        run = RunFolder(path).read_run() or {}
    except RunFolderError:
        run = {}
    return {name: value for name, value in run.items() if name != ABOUT}


def small_lines(index: Index, asked: Mapping[str, str]) -> list[tuple[Line, Any]]:
    """Return the headline figure of each metric over the newest runs that are asked for, with the
    axes of a small drawing.
    """
    query = "SELECT metric, figure FROM figures WHERE grp = ? AND place = 0 GROUP BY 1, 2"
    named = dict(index.ask(f"{query} ORDER BY count(*), metric DESC", [ALL]))
    wanted = [one for one in named if asked.get("metric", "") in ("", one)][::-1]
    lines = [line_of(index, (one, named[one], ALL), asked, SMALL) for one in wanted[:MOST_SMALL]]
    return [(line, line.axes(SMALL_SIZE, SMALL_ROOM)) for line in lines if len(line.points) > 1]
