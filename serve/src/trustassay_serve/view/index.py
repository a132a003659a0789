"""The runs below a folder, in a table that is made of their ``run.json`` and ``summary.json``.

The table is a file of SQLite; nothing is lost with it, since it is made again. It is kept up to
date by looking at the times and sizes of those files; what lies in a run besides is not read.
When a run was is what its ``run.json`` says, never the time of a file, which copies lose.
"""

import hashlib
import json
import math
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from trustassay.compare.run_scores import better_of
from trustassay.core.outcome import Outcomes
from trustassay.data.records import InputError
from trustassay.errors import RunFolderError, UnknownNameError
from trustassay.metric import Figure, MetricInfo
from trustassay.runs.counts import LOOKED, OUTCOMES
from trustassay.runs.folder import RunFolder, metric_infos, metrics_of, start_of
from trustassay.runs.questions import QUESTIONS
from trustassay.statistics.intervals import UnitMean, bounded_interval

LAYOUT = 3
"""The number of this layout; a file of another one is made anew."""
TABLES = """
CREATE TABLE runs (
    key TEXT PRIMARY KEY, stamp TEXT NOT NULL, title TEXT NOT NULL, made REAL,
    model TEXT NOT NULL, judge TEXT NOT NULL, metrics TEXT NOT NULL, samples INTEGER NOT NULL,
    scored INTEGER NOT NULL, flagged INTEGER, outcomes TEXT NOT NULL, state TEXT NOT NULL,
    fault TEXT NOT NULL, questions TEXT NOT NULL
) STRICT;
CREATE INDEX runs_made ON runs (made DESC, key);
CREATE TABLE figures (
    key TEXT NOT NULL, metric TEXT NOT NULL, figure TEXT NOT NULL, grp TEXT NOT NULL,
    title TEXT NOT NULL, value REAL NOT NULL, low REAL, high REAL, n INTEGER NOT NULL,
    unit TEXT NOT NULL, better TEXT NOT NULL, place INTEGER NOT NULL,
    PRIMARY KEY (key, metric, figure, grp)
) STRICT, WITHOUT ROWID;
CREATE INDEX figures_of ON figures (metric, figure, grp);
"""
FINISHED, OPEN, DAMAGED = "finished", "not finished", "damaged"
ALL = ""
"""The group that all answers are in."""
MEAN = "mean score"
"""The figure of a group: ``summary.json`` has the mean score of each."""
AT_ONCE = 200
"""Runs that are read between two commits, so that a page shows what is known so far."""
SKIPPED = {"node_modules", "__pycache__"}


class RunRow(NamedTuple):
    """A run as the list shows it.

    key: its path below the folder that is served, ``.`` for that folder. made: when the run began,
    in seconds since 1970; ``None`` for runs of earlier versions, which do not say it. model: the
    answers' models. judge: what gave verdicts. scored: assessments so far. flagged: answers that
    need a look; ``None`` if not known. outcomes: JSON, see :attr:`outcome_lines`. fault: why it is
    damaged. questions: the sketch of what was asked, empty where it is not known.
    """

    key: str
    stamp: str
    title: str
    made: float | None
    model: str
    judge: str
    metrics: str
    samples: int
    scored: int
    flagged: int | None
    outcomes: str
    state: str
    fault: str
    questions: str = ""

    @property
    def metric_names(self) -> list[str]:
        """The names of its metrics."""
        return self.metrics.split()

    @property
    def outcome_lines(self) -> list[list[str]]:
        """The first lines about the run, for each metric; empty before it is finished, and of a run
        of an earlier version.
        """
        lines: list[list[str]] = json.loads(self.outcomes)
        return lines


class FigureRow(NamedTuple):
    """A figure of a run; ``low`` and ``high`` are its 95 % interval, ``None`` without one.

    grp: the model or domain that it is about, :data:`ALL` for all answers. better: ``higher``,
    ``lower`` or empty. place: its number among the figures of its metric; the first is headline.
    """

    key: str
    metric: str
    figure: str
    grp: str
    title: str
    value: float
    low: float | None
    high: float | None
    n: int
    unit: str
    better: str
    place: int


LIKE = "LIKE ? ESCAPE '\\'"


def chosen(asked: Mapping[str, str]) -> tuple[str, list[object]]:
    """Return the condition of the runs that an address asks for, and its values."""
    where, values = ["1"], list[object]()
    if text := asked.get("q", "").strip():
        where.append(
            f"({' OR '.join(f'runs.{name} {LIKE}' for name in ('key', 'model', 'judge'))})"
        )
        values += [_like(text)] * 3
    if metric := asked.get("metric", ""):
        where.append(f"' ' || metrics || ' ' {LIKE}")
        values.append(_like(f" {metric} "))
    for name in ("model", "state"):
        if given := asked.get(name, ""):
            where.append(f"{name} = ?")
            values.append(given)
    return " AND ".join(where), values


def _like(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def index_path(root: Path) -> Path:
    """Return where the table of a folder's runs is kept: below ``XDG_CACHE_HOME``."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    digest = hashlib.blake2b(os.fsencode(root.resolve()), digest_size=12).hexdigest()
    return cache / "trustassay" / "view" / f"{digest}.sqlite"


class Index:
    """The table of the runs below a folder. One thread may :meth:`refresh`, any may read."""

    def __init__(self, root: Path, path: Path) -> None:
        """Open the table at ``path``, or make it; a damaged one is made anew; InputError: there is
        no room for it, or it may not be written.
        """
        self.root, self._path = root, path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._writing = threading.Lock()
        self.waiting = 0
        """Runs that are known and not yet read."""
        self.complete = threading.Event()
        """Whether all was read once since this process began."""
        try:
            self._prepare(path)
        except sqlite3.OperationalError as error:  # full, locked, not to be written
            why = f"the table of runs cannot be written ({error})"
            raise InputError(
                f"{path}: {why}; make room, or name another folder in XDG_CACHE_HOME"
            ) from None
        path.chmod(0o600)

    def _prepare(self, path: Path) -> None:
        try:
            if self._layout() == LAYOUT:
                return
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            pass  # not a table, or damaged
        for old in path.parent.glob(f"{path.name}*"):
            old.unlink()
        with self._open() as database:
            database.executescript(TABLES)
            database.execute(f"PRAGMA user_version = {LAYOUT}")

    def _layout(self) -> int:
        with self._open() as database:
            return int(database.execute("PRAGMA user_version").fetchone()[0])

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=30)) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            with database:
                yield database

    # what is asked

    def ask(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        """Return the rows of a query."""
        with self._open() as database:
            return database.execute(query, values).fetchall()

    def run(self, key: str) -> RunRow | None:
        """Return one run; ``None`` if there is none of this key."""
        rows = self.ask("SELECT * FROM runs WHERE key = ?", (key,))
        return RunRow(*rows[0]) if rows else None

    def folder(self, key: str) -> RunFolder | None:
        """Return the folder of a run that is in the table; ``None`` for any other text."""
        return RunFolder(self.root / key) if self.run(key) else None

    def figures(self, key: str, group: str | None = ALL) -> list[FigureRow]:
        """Return the figures of a run, of one group or, with ``None``, of all."""
        chosen = "" if group is None else "AND grp = ?"
        query = f"SELECT * FROM figures WHERE key = ? {chosen} ORDER BY metric, grp, place"
        return [
            FigureRow(*row) for row in self.ask(query, (key, *([] if group is None else [group])))
        ]

    # how it is kept

    def refresh(self, stop: Callable[[], bool] = lambda: False) -> bool:
        """Read what is new or has changed, forget what is gone; return whether anything did."""
        with self._writing:
            found = dict(_stamps(self.root))
            known = dict(self.ask("SELECT key, stamp FROM runs"))
            gone = known.keys() - found.keys()
            new = [key for key, stamp in found.items() if known.get(key) != stamp]
            self.waiting = len(new)
            for start in range(0, len(new), AT_ONCE):
                rows = [_read(self.root, key, found[key]) for key in new[start : start + AT_ONCE]]
                with self._open() as database:
                    _drop(database, [row.key for row, _ in rows])
                    _insert(database, "runs", [row for row, _ in rows])
                    _insert(database, "figures", [one for _, own in rows for one in own])
                self.waiting -= len(rows)
                if stop():
                    break
            if gone:
                with self._open() as database:
                    _drop(database, sorted(gone))
            self.waiting = 0
            self.complete.set()
        return bool(gone or new)


def _drop(database: sqlite3.Connection, keys: Sequence[str]) -> None:
    for table in ("runs", "figures"):
        database.executemany(f"DELETE FROM {table} WHERE key = ?", [(key,) for key in keys])


def _insert(database: sqlite3.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        database.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)


def _stamps(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the key of each run, and what tells whether it has changed."""
    for folder, below, names in os.walk(root):
        below[:] = sorted(one for one in below if not one.startswith(".") and one not in SKIPPED)
        if "run.json" in names:
            below.clear()
            path = Path(folder)
            watched = ["run.json", "summary.json"]
            if "summary.json" not in names:
                watched.append("assessments.jsonl")
            yield path.relative_to(root).as_posix(), " ".join(stamp(path / one) for one in watched)


def stamp(path: Path) -> str:
    """Return what changes with a file."""
    try:
        found = path.stat()
    except OSError:
        return "-"
    return f"{found.st_mtime_ns}.{found.st_size}"


def _read(root: Path, key: str, stamp: str) -> tuple[RunRow, list[FigureRow]]:
    folder = RunFolder(root / key)
    title = folder.path.resolve().name if key == "." else key
    row = RunRow(key, stamp, title, None, "", "", "", 0, 0, None, "[]", OPEN, "")
    try:
        run, summary = folder.read_run(), folder.read_summary()
        if run is None:
            return row._replace(state=DAMAGED, fault="run.json is missing"), []
        start = start_of(run)
        row = row._replace(
            made=start.timestamp() if start else None,
            model=_models(run, summary),
            judge=_judge(run),
            metrics=" ".join(run["metrics"]),
            samples=int(run["samples"].get("samples") or 0),
        )
        if summary is None:
            return row._replace(scored=_count_lines(folder.assessments_path)), []
        infos = metric_infos(folder, run)
        infos |= {name: MetricInfo.of(metric) for name, metric in metrics_of(run).items()}
        figures = [one for info in infos.values() for one in _figures(key, info, summary)]
        looked = summary.get(LOOKED) or {}
        stored = summary.get(OUTCOMES) or {}
        outcome_lines = [Outcomes.from_dict(name, one).lines for name, one in stored.items()]
        row = row._replace(
            scored=row.samples * len(infos),
            flagged=looked.get("flagged"),
            outcomes=json.dumps(outcome_lines),
            state=FINISHED,
            questions=str(summary.get(QUESTIONS) or ""),
        )
        return row, figures
    except (RunFolderError, UnknownNameError) as error:
        return row._replace(state=DAMAGED, fault=str(error)), []
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        fault = f"{type(error).__name__}: {error}"
        return row._replace(state=DAMAGED, fault=f"{folder.path}: damaged ({fault})"), []


def _models(run: Mapping[str, Any], summary: Mapping[str, Any] | None) -> str:
    """Return the models whose answers a run holds, as far as its two files say."""
    asked = run["backends"].get("model")
    names = {str(asked)} if asked else set()
    for told in ((summary or {}).get("groups") or {}).values():
        names |= {str(one["model"]) for one in told["groups"] if one.get("model")}
    return ", ".join(sorted(names))


def _judge(run: Mapping[str, Any]) -> str:
    """Return what gave the verdicts: the backends other than the models that answered."""
    named = []
    for name, value in run["backends"].items():
        if name not in ("model", "embedder") and value:
            named += list(map(str, value.values())) if isinstance(value, dict) else [str(value)]
    return ", ".join(dict.fromkeys(named))


def _figures(key: str, info: MetricInfo, summary: Mapping[str, Any]) -> Iterator[FigureRow]:
    told = summary["metrics"][info.name]
    defined = dict(info.figures) | {
        name: Figure(name, "", unit="") for name in told["values"] if name not in info.figures
    }
    ordered = sorted(defined.items(), key=lambda each: not each[1].headline)
    for place, (name, figure) in enumerate(ordered):
        value = told["values"].get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        low, high = told["intervals"].get(name) or (None, None)
        n = int(told["support"].get(name) or 0)
        better = better_of(figure, info)
        yield FigureRow(
            key,
            info.name,
            name,
            ALL,
            figure.name or name,
            float(value),
            low,
            high,
            n,
            figure.unit,
            better,
            place,
        )
    yield from _groups(key, info, summary)


def _groups(key: str, info: MetricInfo, summary: Mapping[str, Any]) -> Iterator[FigureRow]:
    """Yield the mean score of each model in each domain, and of each model and domain alone."""
    cells: dict[str, list[tuple[int, float, float | None]]] = {}
    for one in ((summary.get("groups") or {}).get(info.name) or {}).get("groups") or ():
        score = one.get("score") or {}
        parts = [str(one[part]) for part in ("model", "domain") if one.get(part)]
        for name in dict.fromkeys([*parts, " / ".join(parts)] if parts else ()):
            if score.get("mean") is not None:
                own = (score["n"], score["mean"], score.get("error"))
                cells.setdefault(name, []).append(own)
    better = "lower" if info.lower_is_better else "higher"
    for name, of in cells.items():
        total = sum(n for n, _, _ in of)
        mean = sum(n * value for n, value, _ in of) / total
        errors = [n * error / total for n, _, error in of if error is not None]
        ends = None
        if len(errors) == len(of):
            known = UnitMean(mean, math.hypot(*errors) ** 2, total)
            ends = bounded_interval(known, info.score_range)
        told = (MEAN, mean, *(ends or (None, None)), total, "", better, 0)
        yield FigureRow(key, info.name, MEAN, name, *told)


def _count_lines(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    except OSError:
        return 0


__all__ = ["ALL", "FigureRow", "Index", "RunRow", "chosen", "index_path", "stamp"]
