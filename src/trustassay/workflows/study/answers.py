"""The answers of one or several runs with all that was scored of them, an answer a row."""

import json
import math
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from trustassay.assessment import Mean, Quantile
from trustassay.calls.backends import MODEL
from trustassay.compare.run_scores import read_finished_run
from trustassay.data.recognising import ABSENT, reach
from trustassay.errors import RunFolderError
from trustassay.metric import Direction
from trustassay.runs.counts import SHOWN
from trustassay.runs.folder import RunFolder, metric_infos, metrics_of
from trustassay.sample import question_key
from trustassay.statistics import Floats, Places
from trustassay.statistics.resampling import cluster_numbers
from trustassay.workflows.json_form import JsonForm, flattened

ColumnKind = Literal["metric", "part", "covariate", "judge", "baseline"]
_DeclaredPart = tuple[str, tuple[float, float] | None, Direction]
"""What a score or part is, its bounds, and which end of it is better."""
TEXTS = frozenset({"id", "question", "response"})
MAX_LABEL_CHARS = 60
"""Characters of a text up to which a field can be a label."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One response, wherever it was scored; ``link`` leads into a run's report, if that lists it.

    fields: the values of the sample's fields that were asked for.
    """

    id: str
    model: str
    question: str
    words: int
    link: str
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Column:
    """One score of all answers: higher is better, NaN where there is none.

    kind: a metric's score, a part of it, a part of which neither end is better (a covariate: a
    count, a length), a judge's ratings, or a baseline. probability: whether it can be read as the
    probability that an answer is right, from 0 to 1. turned: whether lower was better, and the
    values were turned round, from those that are ``raw``. of: the column of which it is a part.
    why: why there is none, counted. metric, part: what it is in a run; settings: the run's options
    and models. failed: the answers that could not be scored.
    """

    name: str
    kind: ColumnKind
    values: Floats
    probability: bool = False
    turned: bool = False
    about: str = ""
    of: str = ""
    why: Mapping[str, int] = field(default_factory=dict)
    metric: str = ""
    part: str = ""
    settings: str = ""
    raw: Floats | None = None
    failed: Collection[int] = ()

    @property
    def as_given(self) -> Floats:
        """The scores as the metric gives them."""
        return self.values if self.raw is None else self.raw


@dataclass(frozen=True, slots=True)
class Cost(JsonForm):
    """What a metric took for one sample, on average over the ``samples`` of a run.

    requests: by capability. calls, tokens: of chat models. usd: ``None`` where a price is unknown.
    """

    run: str
    metric: str
    samples: int
    requests: Mapping[str, float]
    calls: float
    tokens: float
    usd: float | None


@dataclass(frozen=True)
class Answers:
    """All answers, the columns that runs hold of them, and what these took.

    known: names of the fields by run that could be labels. of_run: the answers of each run.
    notes: what a reader should know.
    """

    rows: Sequence[Answer]
    columns: Sequence[Column]
    costs: Sequence[Cost]
    known: Mapping[str, Sequence[str]]
    of_run: Mapping[str, Sequence[int]]
    notes: Sequence[str] = ()

    @property
    def questions(self) -> Places:
        """The number of each answer's question: of questions that are equal, the same."""
        return cluster_numbers([row.question for row in self.rows])

    def field(self, name: str) -> list[Any]:
        """Return a field of all answers, ``None`` where it is missing."""
        return [row.fields.get(name) for row in self.rows]


@dataclass
class _RunScores:
    """A score as one run or several runs with the same settings hold it."""

    run: str
    metric: str
    settings: str
    about: str
    bounds: tuple[float, float] | None
    direction: Direction
    found: dict[int, float | str] = field(default_factory=dict)
    """Of each answer its score, or why it has none."""


def as_list(option: Any) -> list[Any]:
    """Return an option that is one value or several as a list."""
    return [option] if isinstance(option, str | os.PathLike) else list(option)


def read_answers(runs: Sequence[Path], fields: Sequence[str]) -> Answers:
    """Read finished runs. Answers with the same id, model and response are one answer.

    A metric that several runs hold with the same settings, of different answers, is one column;
    else there is one for each run.

    Args:
        runs: their folders.
        fields: dotted names of the fields of the samples that are kept.
    """
    reading = _RunReader(list(fields))
    for path in runs:
        reading.read(path)
    return reading.answers()


class _RunReader:
    def __init__(self, fields: list[str]) -> None:
        self.fields = fields
        self.rows: list[Answer] = []
        self.places: dict[tuple[str, str, str], int] = {}
        self.scored: dict[tuple[str, str], list[_RunScores]] = {}
        self.costs: list[Cost] = []
        self.known: dict[str, list[str]] = {}
        self.of_run: dict[str, list[int]] = {}
        self.notes: list[str] = []

    def read(self, path: Path) -> None:
        folder, name, run = RunFolder(path), str(path), read_finished_run(path)
        if name in self.of_run:
            raise RunFolderError(f"{path}: is named twice")
        self._read_assessments(folder, run, name, self._read_samples(folder, name))

    def _read_samples(self, folder: RunFolder, name: str) -> dict[str, int]:
        """Add the samples of a run and return their places by id."""
        linked = folder.report_path.exists()
        place_by_id: dict[str, int] = {}
        label_fields: dict[str, None] = {}
        for number, record in enumerate(folder.sample_records(), 1):
            response = str(record.get("response") or "")
            model = str(record.get("model") or "")
            key = (record["id"], model, response)
            place = self.places.setdefault(key, len(self.rows))
            if place == len(self.rows):
                question = question_key(str(record.get("question") or ""))
                link = f"{folder.report_path}#a{number}" if linked else ""
                words = len(response.split())
                self.rows.append(Answer(record["id"], model, question, words, link))
            stored_fields = self.rows[place].fields
            for field_wanted in self.fields:
                value = reach(record, field_wanted)
                if value is not ABSENT and value is not None:
                    stored_fields.setdefault(field_wanted, value)
            place_by_id[record["id"]] = place
            for field_name, value in flattened(record):
                short = isinstance(value, str) and len(value) <= MAX_LABEL_CHARS
                if isinstance(value, bool | int | float) or (short and field_name not in TEXTS):
                    label_fields[field_name] = None
        if len(place_by_id) > SHOWN:  # the report lists a selection, under numbers of its own
            for place in place_by_id.values():
                if self.rows[place].link.startswith(f"{folder.report_path}#"):
                    self.rows[place] = replace(self.rows[place], link="")
        self.known[name] = sorted(label_fields)
        self.of_run[name] = list(place_by_id.values())
        return place_by_id

    def _read_assessments(
        self, folder: RunFolder, run: Mapping[str, Any], name: str, place_by_id: Mapping[str, int]
    ) -> None:
        infos = metric_infos(folder, run)
        parts = _read_declared_parts(run)
        backends = {k: v for k, v in run["backends"].items() if k != MODEL}
        result: dict[tuple[str, str], _RunScores] = {}
        for metric, info in infos.items():
            settings = json.dumps([run["metrics"][metric], backends], sort_keys=True, default=str)
            if metric not in parts:
                self.notes.append(f"{name}: {metric} is not installed, so its parts are left out")
            better: Direction = "lower" if info.lower_is_better else "higher"
            columns = {"": (info.title, info.score_range, better), **parts.get(metric, {})}
            for part, declared in columns.items():
                result[metric, part] = _RunScores(name, metric, settings, *declared)
        requests: dict[str, Counter[str]] = {metric: Counter() for metric in infos}
        for _, line in folder.lines():
            metric, place = line.fields["metric"], place_by_id.get(line.fields["id"])
            if place is None or metric not in infos:
                continue
            requests[metric].update(line.fields["calls"])
            for (of, part), scored in result.items():
                if of == metric:
                    scored.found[place] = _parse_score(line.fields, part)
        for key, scored in result.items():
            self._add_scores(key, scored)
        usage = (folder.read_summary() or {}).get("usage", {})
        if "prices" in usage:
            self.notes.append(f"{name}: prices of {usage['prices']}")
        used = usage.get("metrics", {})
        self.costs += [
            _cost(name, metric, len(place_by_id), requests[metric], used.get(metric, {}))
            for metric in infos
        ]

    def _add_scores(self, key: tuple[str, str], scored: _RunScores) -> None:
        """Add what one run holds to that of another with the same settings and other answers."""
        columns_of_part = self.scored.setdefault(key, [])
        for other in columns_of_part:
            if other.settings == scored.settings and not other.found.keys() & scored.found.keys():
                other.found |= scored.found
                return
        columns_of_part.append(scored)

    def answers(self) -> Answers:
        columns = []
        for (metric, part), several in self.scored.items():
            for run_scores in several:
                if part and all(isinstance(value, str) for value in run_scores.found.values()):
                    continue  # a part that these settings do not give
                short = Path(run_scores.run).name  # the path, where others are called the same
                same = [Path(other.run).name for other in several].count(short) > 1
                of_run = f" ({run_scores.run if same else short})" if len(several) > 1 else ""
                columns.append(self._build_column(f"{metric}{of_run}", part, of_run, run_scores))
        return Answers(self.rows, columns, self.costs, self.known, self.of_run, self.notes)

    def _build_column(
        self, metric_name: str, part: str, of_run: str, run_scores: _RunScores
    ) -> Column:
        values = np.full(len(self.rows), math.nan)
        for place, value in run_scores.found.items():
            values[place] = math.nan if isinstance(value, str) else value
        raw, turned = values, run_scores.direction == "lower"
        if turned:
            ends = (
                run_scores.bounds
                if run_scores.bounds and all(map(math.isfinite, run_scores.bounds))
                else ()
            )
            values = sum(ends) - raw
        attributes: dict[str, Any] = {
            "about": run_scores.about,
            "why": dict(
                Counter(
                    value_or_reason
                    for value_or_reason in run_scores.found.values()
                    if isinstance(value_or_reason, str)
                )
            ),
            "metric": run_scores.metric,
            "part": part,
            "settings": run_scores.settings,
            "raw": raw if turned else None,
            "turned": turned,
            "probability": run_scores.bounds == (0.0, 1.0),
            "failed": frozenset(at for at, value in run_scores.found.items() if value == FAILED),
        }
        if not part:
            return Column(metric_name, "metric", values, **attributes)
        kind: ColumnKind = "part" if run_scores.direction else "covariate"
        return Column(
            f"{run_scores.metric}.{part}{of_run}", kind, values, of=metric_name, **attributes
        )


FAILED = "failed"
"""Why an answer has no score: the metric failed."""


def _parse_score(fields: Mapping[str, Any], part: str) -> float | str:
    """Return the score in a line of assessments, or a part of it; else why there is none."""
    if fields["error"] is not None:
        return FAILED
    value = fields["parts"].get(part) if part else fields["score"]
    if value is None:
        return "without this part" if part else "without a score"
    return float(value)


def _read_declared_parts(run: Mapping[str, Any]) -> dict[str, dict[str, _DeclaredPart]]:
    """Return, by metric, the parts that figures declare."""
    result: dict[str, dict[str, _DeclaredPart]] = {}
    for name, metric in metrics_of(run).items():
        parts_of_metric = result.setdefault(name, {})
        for figure in metric.figures.values():
            match figure.statistic:
                case Mean(of=part, bounds=bounds) if part != "score":
                    parts_of_metric[part] = (
                        figure.explanation,
                        bounds,
                        metric.direction_of(part) or "",
                    )
                case Quantile(of=part) if part != "score":
                    direction = metric.direction_of(part) or ""
                    parts_of_metric.setdefault(part, (figure.explanation, None, direction))
    return result


def _cost(
    run: str, metric: str, n: int, requests: Counter[str], used: Mapping[str, Mapping[str, Any]]
) -> Cost:
    samples = max(n, 1)
    calls = sum(usage["calls"] for usage in used.values())
    tokens = sum(usage["prompt_tokens"] + usage["reply_tokens"] for usage in used.values())
    prices = [usage["usd"] for usage in used.values()]
    usd = None if None in prices else sum(prices) / samples
    each = {name: count / samples for name, count in sorted(requests.items())}
    return Cost(run, metric, n, each, calls / samples, tokens / samples, usd)
