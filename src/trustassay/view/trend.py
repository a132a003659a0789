"""Figures over time: lines over the runs, and the places where they clearly changed.

Only runs with mostly the same questions are joined by a line; between others, a difference may come
from the questions. So one drawing, in the order of time, may contain several series of runs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from trustassay.compare.run_scores import describe_changed_judges, describe_changed_settings
from trustassay.errors import RunFolderError
from trustassay.report.charts import ticks
from trustassay.runs.folder import ABOUT, RunFolder
from trustassay.runs.units import read_sketch, share_questions
from trustassay.statistics.levels import LevelEstimate, LevelStep, find_level_steps
from trustassay.view.index import ALL, FigureRow, Index, run_condition
from trustassay.view.pages import Site, read_page_number

MAX_RUNS, MAX_SMALL_RUNS = 300, 60
"""The most runs of a line: on its own page, where more points could not be told apart, and in a
small drawing above the list of runs."""
MAX_SMALL_LINES = 6
"""The most small drawings above the list."""
WHOLE_SIZE, SMALL_SIZE = (960.0, 280.0), (180.0, 36.0)
WHOLE_ROOM, SMALL_ROOM = (44.0, 12.0, 28.0, 26.0), (3.0, 5.0, 5.0, 5.0)
"""The margins of a drawing: left, right, top and bottom."""
VERSION = "trustassay"
"""The key of the version in the settings of a run."""
OF = "FROM runs CROSS JOIN figures USING (key) WHERE metric = ? AND figure = ? AND grp = ? AND"
"""CROSS JOIN makes SQLite go through the runs in the order of time, so that the newest ones are
found without reading all others."""
DATED = "made IS NOT NULL"
ORDER = "ORDER BY made DESC, key LIMIT ? OFFSET ?"


class TrendPoint(NamedTuple):
    """A run on a line."""

    figure: FigureRow
    """Its figure."""
    run: str
    """Its title."""
    model: str
    """The models that gave its answers."""
    made: float
    """When it began, in seconds since 1970."""
    stamp: str
    """The stamp of its files."""
    place: int
    """Its number in the order of time."""
    series: int
    """The number of the series to which it is joined."""


@dataclass(frozen=True)
class TrendChange:
    """A change between two runs of a series."""

    at: int
    """The place of the run after the change."""
    before: TrendPoint
    """The run before it."""
    after: TrendPoint
    """The run after it."""
    settings: Sequence[str]
    """What differs between the settings of the runs, in words."""
    step: LevelStep | None = None
    """The clear change of the figure; ``None`` where the judge changed, so that the runs are not
    compared."""

    @property
    def kind(self) -> str:
        """``judge``, ``better``, ``worse``, or ``changed`` where no side is better."""
        better = self.after.figure.better
        if self.step is None or not better:
            return "judge" if self.step is None else "changed"
        return "better" if (self.step.rise > 0) == (better == "higher") else "worse"


@dataclass(frozen=True)
class TrendLine:
    """A figure over runs, and its changes."""

    metric: str
    """The name of the metric."""
    figure: str
    """The name of the figure."""
    points: Sequence[TrendPoint]
    """The runs, oldest first."""
    changes: Sequence[TrendChange]
    """The changes, oldest first."""
    undated: int = 0
    """The number of runs without a date, which are left out."""

    @property
    def series(self) -> list[TrendPoint]:
        """The runs, one series after another."""
        return sorted(self.points, key=lambda point: point.series)

    @property
    def clear(self) -> list[TrendChange]:
        """Where something clear changed, the newest first."""
        return [change for change in self.changes if change.step][::-1]

    def axes(
        self, size: tuple[float, float], room: tuple[float, float, float, float]
    ) -> tuple[list[float], list[float], Callable[[float], float]]:
        """Return the geometry of a drawing.

        Args:
            size: its width and height.
            room: its margins: left, right, top and bottom.

        Returns:
            The marks of the y axis, the x of each run, and a function from values to y.
        """
        ends = [(point.figure.value, point.figure.low, point.figure.high) for point in self.points]
        values = [end for each in ends for end in each if end is not None]
        marks = ticks(min(values), max(values))
        (width, height), (left_room, right_room, top, bottom) = size, room
        # Runs stand at equal distances, not by time: days without runs would take most of the room.
        across = (width - left_room - right_room) / max(len(ends) - 1, 1)

        def y(value: float) -> float:
            share = (value - marks[0]) / (marks[-1] - marks[0])
            return height - bottom - (height - top - bottom) * share

        return marks, [left_room + across * at for at in range(len(ends))], y


def trend_page(site: Site, index: Index, request: Request) -> Response:
    """Return the page of one line, as the query of the address says."""
    params = request.query_params

    def choose(name: str, column: str, order: str, **of: str) -> tuple[list[str], str]:
        """Return the choices of a field, and the current one: the address's, else the first."""
        where = " AND ".join(["1", *(f"{field_name} = ?" for field_name in of)])
        query = f"SELECT {column} FROM figures WHERE {where} GROUP BY {column} ORDER BY {order}"
        options = [row[0] for row in index.ask(query, list(of.values()))]
        wanted = params.get(name, ALL)
        return options, wanted if wanted in options else next(iter(options), "")

    # Each choice narrows the next: groups of the metric, figures of both.
    metrics = choose("metric", "metric", "count(*) DESC, metric")
    groups = choose("group", "grp", "grp", metric=metrics[1])
    figures = choose("figure", "figure", "min(place), figure", metric=metrics[1], grp=groups[1])
    page, of = read_page_number(params), (metrics[1], figures[1], groups[1])
    condition, values = run_condition({**params, "metric": of[0]})
    query = f"SELECT count(*) {OF} {DATED} AND {condition}"
    ((total,),) = index.ask(query, [*of, *values])
    line = line_of(index, of, params, MAX_RUNS, MAX_RUNS * (page - 1))
    return site.html(
        "trend.html.jinja",
        line=line,
        axes=line.axes(WHOLE_SIZE, WHOLE_ROOM) if line.points else None,
        size=WHOLE_SIZE,
        asked={**params},
        choices={"metric": metrics, "figure": figures, "group": groups},
        models=[row[0] for row in index.ask("SELECT DISTINCT model FROM runs ORDER BY 1")],
        page=page,
        total=total,
        pages=-(-total // MAX_RUNS),
    )


def line_of(
    index: Index, of: tuple[str, str, str], params: Mapping[str, str], most: int, skip: int = 0
) -> TrendLine:
    """Return the line of a figure over the newest runs that an address asks for.

    Args:
        index: the table of runs.
        of: metric, figure and group.
        params: the query of the address.
        most: the most runs.
        skip: newer runs to skip.
    """
    condition, values = run_condition({**params, "metric": of[0]})
    columns = "figures.*, runs.title, model, made, stamp, questions"
    query = f"SELECT {columns} {OF} {DATED} AND {condition} {ORDER}"
    # read newest first, because of the limit; drawn oldest first
    rows = index.ask(query, [*of, *values, most, skip])[::-1]
    series = _number_series([row[-1] for row in rows])
    figure_columns = len(FigureRow._fields)
    points = [
        TrendPoint(FigureRow(*row[:figure_columns]), *(*row[figure_columns:-1], place, number))
        for place, (row, number) in enumerate(zip(rows, series, strict=True))
    ]
    ((undated,),) = index.ask(f"SELECT count(*) {OF} NOT ({DATED}) AND {condition}", [*of, *values])
    return TrendLine(*of[:2], points, _find_changes(index, of[0], points), undated)


def _number_series(sketches: Sequence[str]) -> list[int]:
    """Return the number of the series of each run, oldest first.

    A run joins the series of the newest earlier run that shares its questions; otherwise it begins
    a new series.

    Args:
        sketches: the sketch of the questions of each run.
    """
    result = list[int]()
    # The questions of the last run of each series; the series with the newest run comes last. Only
    # the last run counts, so a series may change its questions slowly.
    last = dict[int, frozenset[str]]()
    for sketch in sketches:
        questions = read_sketch(sketch)
        matches = (number for number in reversed(last) if share_questions(last[number], questions))
        number = next(matches, len(last))
        last.pop(number, None)
        last[number] = questions
        result.append(number)
    return result


def _find_changes(index: Index, metric: str, in_time: Sequence[TrendPoint]) -> list[TrendChange]:
    """Return the places where the judge changed, and where the figure clearly changed.

    The series are tested as one line with breaks between them, so that the correction for many
    tests covers the whole drawing.
    """
    points = sorted(in_time, key=lambda point: point.series)
    first_of_series = [
        at for at in range(1, len(points)) if points[at].series != points[at - 1].series
    ]
    settings = [_read_settings(index.path_of(point.figure.key), point.stamp) for point in points]

    def differ(first: int, second: int, *, judge: bool) -> list[str]:
        both = settings[first], settings[second]
        # A damaged run has no settings: nothing can be said about the difference.
        if not all(metric in settings_of_run.get("metrics", ()) for settings_of_run in both):
            return []
        if not judge:
            return describe_changed_settings(*both, [metric])
        versions = [settings_of_run.get(VERSION) for settings_of_run in both]
        other = [f"{VERSION} changed: {versions[0]} → {versions[1]}"]
        return describe_changed_judges(*both, [metric]) + other * (versions[0] != versions[1])

    result, breaks = list[TrendChange](), list(first_of_series)
    for at in range(1, len(points)):
        if at in first_of_series:
            continue
        # Another judge, or version: figures on both sides cannot be compared, so the line breaks
        # here.
        if differences := differ(at - 1, at, judge=True):
            result.append(TrendChange(points[at].place, points[at - 1], points[at], differences))
            breaks.append(at)
    line, places = list[LevelEstimate](), list[int]()
    for at, (figure, *_) in enumerate(points):
        if figure.low is not None and figure.high is not None:
            line.append(LevelEstimate(figure.value, figure.low, figure.high, figure.n))
            places.append(at)
    # Runs without an interval are not tested, so the breaks are renumbered.
    broken = [sum(place < at for place in places) for at in breaks]
    for step in find_level_steps(line, broken):
        first, second = places[step.at - 1], places[step.at]
        models = points[first].model, points[second].model
        reasons = [f"answering model changed: {models[0]} → {models[1]}"] * (models[0] != models[1])
        reasons += differ(first, second, judge=False)
        result.append(
            TrendChange(points[second].place, points[first], points[second], reasons, step)
        )
    return sorted(result, key=lambda change: change.at)


@lru_cache(maxsize=4096)
def _read_settings(path: Path, _stamp: str) -> dict[str, Any]:
    """Return the settings of a run without the descriptions of its metrics; empty if damaged."""
    try:
        run = RunFolder(path).read_run() or {}
    except RunFolderError:
        run = {}
    return {name: value for name, value in run.items() if name != ABOUT}


def small_lines(index: Index, params: Mapping[str, str]) -> list[tuple[TrendLine, Any]]:
    """Return small drawings: the headline figure of each metric over the newest runs.

    Args:
        index: the table of runs.
        params: the query of the address, which selects the runs.

    Returns:
        Each line with the axes of a small drawing; lines of a single run are left out.
    """
    query = "SELECT metric, figure FROM figures WHERE grp = ? AND place = 0 GROUP BY 1, 2"
    figure_of_metric = dict(index.ask(f"{query} ORDER BY count(*), metric DESC", [ALL]))
    # the most frequent metrics first
    wanted = [metric for metric in figure_of_metric if params.get("metric", "") in ("", metric)][
        ::-1
    ]
    lines = [
        line_of(index, (metric, figure_of_metric[metric], ALL), params, MAX_SMALL_RUNS)
        for metric in wanted[:MAX_SMALL_LINES]
    ]
    return [(line, line.axes(SMALL_SIZE, SMALL_ROOM)) for line in lines if len(line.points) > 1]
