"""Reads the answers of one or several runs with all their scores, one answer a row."""

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from trustassay.calls.backends import MODEL_ROLE
from trustassay.compare.run_scores import read_finished_run
from trustassay.core.assessment import Mean, Quantile
from trustassay.core.json_form import JsonForm, flatten
from trustassay.core.metric import Direction, MetricInfo
from trustassay.core.sample import question_key
from trustassay.errors import RunFolderError
from trustassay.input.recognising import ABSENT, reach
from trustassay.runs.counts import MAX_ANSWERS_SHOWN
from trustassay.runs.folder import RunFolder, load_metrics, read_metric_infos
from trustassay.statistics import Floats, Places
from trustassay.statistics.resampling import cluster_numbers

ColumnKind = Literal["metric", "part", "covariate", "judge", "baseline"]
_DeclaredPart = tuple[str, tuple[float, float] | None, Direction]
"""The description of a score or part, its bounds, and its better direction."""
_AnswerKey = tuple[str, str, str]
"""The id, the model and the response of an answer."""
_ScoreKey = tuple[str, str]
"""The names of a metric and of a part of its score; "" for the score itself."""
TEXT_FIELDS = frozenset({"id", "question", "response"})
MAX_LABEL_CHARS = 60
"""Longest text, in characters, that may be a label."""


@dataclass(frozen=True, slots=True)
class StudyAnswer:
    """One response; runs that scored the same response share it."""

    id: str
    model: str
    question: str
    """The normalised question."""
    words: int
    """The number of words of the response."""
    link: str
    """Its address in a run's report, empty if no report lists it."""
    fields: dict[str, Any] = field(default_factory=dict)
    """The values of the requested fields of the sample."""


@dataclass(frozen=True)
class ScoreColumn:
    """One score of all answers."""

    name: str
    kind: ColumnKind
    """A metric's score, a part of it, a covariate (a part without a better direction, such as a
    count or a length), a judge's ratings, or a baseline."""
    values: Floats
    """Shape (n,); higher is better, NaN where an answer has no score."""
    probability: bool = False
    """Whether it can be read as the probability that an answer is right, from 0 to 1."""
    turned: bool = False
    """Whether lower was better, so that ``values`` are mirrored ``raw`` values."""
    description: str = ""
    """The description of the score."""
    of: str = ""
    """For a part, the name of the column of its metric."""
    missing_by_reason: Mapping[str, int] = field(default_factory=dict)
    """The number of answers without a score, by reason."""
    metric: str = ""
    """The name of the metric in its run."""
    part: str = ""
    """The name of the part, empty for the score itself."""
    settings: str = ""
    """The options and judging models of the run, as JSON."""
    raw: Floats | None = None
    """The values as the metric gave them, where they were mirrored."""
    failed: Collection[int] = ()
    """The places of answers that could not be scored."""

    @property
    def as_given(self) -> Floats:
        """The scores as the metric gave them."""
        return self.values if self.raw is None else self.raw


@dataclass(frozen=True, slots=True)
class MetricCost(JsonForm):
    """The cost of a metric for one sample, averaged over a run."""

    run: str
    metric: str
    samples: int
    """The number of samples of the run."""
    requests: Mapping[str, float]
    """Requests by capability."""
    calls: float
    """Calls of chat models."""
    tokens: float
    """Tokens of chat models, of prompts and replies."""
    usd: float | None
    """``None`` where a price is unknown."""


def read_fields_of_run(run: str) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of all fields of the samples of a run."""
    for record in RunFolder(Path(run)).sample_records():
        yield from flatten(record)


def may_be_label(name: str, value: Any) -> bool:
    """Whether a field is a number or a short text; the question and the response never are."""
    short = isinstance(value, str) and len(value) <= MAX_LABEL_CHARS and name not in TEXT_FIELDS
    return short or isinstance(value, bool | int | float)


@dataclass(frozen=True)
class StudyAnswers:
    """All answers of some runs or of a table, with their scores and costs."""

    rows: Sequence[StudyAnswer]
    columns: Sequence[ScoreColumn]
    costs: Sequence[MetricCost]
    label_fields: Mapping[str, Sequence[str]]
    """The names of the fields that could be labels, by run, or by the name of the table."""
    places_by_run: Mapping[str, Sequence[int]]
    """The places of the answers of each run."""
    notes: Sequence[str] = ()
    """Remarks for the reader."""
    rated_fields: Collection[str] = ()
    """The fields whose values are mappings from the rater to the value."""
    read_fields: Callable[[str], Iterable[tuple[str, Any]]] = read_fields_of_run
    """Returns the names and values of all fields of a run, or of the table."""

    @property
    def questions(self) -> Places:
        """The number of each answer's question, the same for equal questions."""
        return cluster_numbers([row.question for row in self.rows])

    def field(self, name: str) -> list[Any]:
        """Return a field of all answers, ``None`` where it is missing."""
        return [row.fields.get(name) for row in self.rows]


@dataclass
class _RunScores:
    """A score in one run, or in several runs with the same settings."""

    run: str
    metric: str
    settings: str
    about: str
    bounds: tuple[float, float] | None
    direction: Direction
    values: dict[int, float | str] = field(default_factory=dict)
    """The score of each answer, or the reason why it has none."""


def as_list(option: Any) -> list[Any]:
    """Return an option, which is one value or several, as a list."""
    return [option] if isinstance(option, str | os.PathLike) else list(option)


def as_paths(option: Any) -> list[Path]:
    """Return an option, which is no path, one or several, as a list of paths."""
    return [] if option is None else [Path(path) for path in as_list(option)]


def read_answers(runs: Sequence[Path], fields: Sequence[str]) -> StudyAnswers:
    """Read finished runs; answers with the same id, model and response are one answer.

    A metric that several runs have with the same settings, for different answers, is one column;
    otherwise there is a column for each run.

    Args:
        runs: their folders.
        fields: dotted names of the fields of the samples to keep.
    """
    rows: dict[_AnswerKey, StudyAnswer] = {}
    label_fields: dict[str, list[str]] = {}
    places_by_run: dict[str, list[int]] = {}
    scores: dict[_ScoreKey, list[_RunScores]] = {}
    costs: list[MetricCost] = []
    notes: list[str] = []
    for path in runs:
        folder, name, run = RunFolder(path), str(path), read_finished_run(path)
        # The answers would count twice.
        if name in places_by_run:
            raise RunFolderError(f"{path}: is named twice")
        place_by_id, label_fields[name] = _add_samples(rows, folder, fields)
        places_by_run[name] = list(place_by_id.values())
        infos, parts = read_metric_infos(folder, run), _read_declared_parts(run)
        # Which parts a metric has, only its code knows; the score itself can be read.
        notes += [
            f"{name}: {metric} is not installed, so its parts are left out"
            for metric in infos
            if metric not in parts
        ]
        scores_of_run = _prepare_scores(name, run, infos, parts)
        requests = _read_assessments(folder, place_by_id, scores_of_run)
        # After all lines are read, so that the sets of answers can be compared.
        for key, scored in scores_of_run.items():
            _merge_scores(scores.setdefault(key, []), scored)
        usage = (folder.read_summary() or {}).get("usage", {})
        if "prices" in usage:
            notes.append(f"{name}: prices of {usage['prices']}")
        used = usage.get("metrics", {})
        costs += [
            _average_cost(name, metric, len(place_by_id), requests[metric], used.get(metric, {}))
            for metric in infos
        ]
    columns = _build_columns(scores, len(rows))
    return StudyAnswers(list(rows.values()), columns, costs, label_fields, places_by_run, notes)


def _add_samples(
    rows: dict[_AnswerKey, StudyAnswer], folder: RunFolder, fields: Sequence[str]
) -> tuple[dict[str, int], list[str]]:
    """Add the samples of a run; return their places by id, and the fields that could be labels."""
    # Links are only offered to a report that is there.
    linked = folder.report_path.exists()
    places = {key: place for place, key in enumerate(rows)}
    keys_of_run: dict[str, _AnswerKey] = {}
    label_fields: dict[str, None] = {}
    for number, record in enumerate(folder.sample_records(), 1):
        response = str(record.get("response") or "")
        model = str(record.get("model") or "")
        # The response is part of the key: one id may have been answered again.
        key = (record["id"], model, response)
        if key not in rows:
            question = question_key(str(record.get("question") or ""))
            link = f"{folder.report_path}#a{number}" if linked else ""
            words = len(response.split())
            places[key] = len(rows)
            rows[key] = StudyAnswer(record["id"], model, question, words, link)
        for field_wanted in fields:
            value = reach(record, field_wanted)
            if value is not ABSENT and value is not None:
                # The first run that has a value wins; a later run may lack the field.
                rows[key].fields.setdefault(field_wanted, value)
        keys_of_run[record["id"]] = key
        for field_name, value in flatten(record):
            if may_be_label(field_name, value):
                label_fields[field_name] = None
    # The report of a long run shows a selection with other numbers, so no link would be right.
    if len(keys_of_run) > MAX_ANSWERS_SHOWN:
        for key in keys_of_run.values():
            if rows[key].link.startswith(f"{folder.report_path}#"):
                rows[key] = replace(rows[key], link="")
    return {name: places[key] for name, key in keys_of_run.items()}, sorted(label_fields)


def _prepare_scores(
    name: str,
    run: Mapping[str, Any],
    infos: Mapping[str, MetricInfo],
    parts: Mapping[str, Mapping[str, _DeclaredPart]],
) -> dict[_ScoreKey, _RunScores]:
    """Return the scores and parts of a run's metrics, still without values."""
    # Without the model under test: runs of two models that are judged alike share a column.
    backends = {k: v for k, v in run["backends"].items() if k != MODEL_ROLE}
    result: dict[_ScoreKey, _RunScores] = {}
    for metric, info in infos.items():
        settings = json.dumps([run["metrics"][metric], backends], sort_keys=True, default=str)
        better: Direction = "lower" if info.lower_is_better else "higher"
        columns = {"": (info.title, info.score_range, better), **parts.get(metric, {})}
        for part, declared in columns.items():
            result[metric, part] = _RunScores(name, metric, settings, *declared)
    return result


def _read_assessments(
    folder: RunFolder, place_by_id: Mapping[str, int], scores: Mapping[_ScoreKey, _RunScores]
) -> dict[str, Counter[str]]:
    """Fill in the values of all scores in one pass; return the requests of each metric."""
    requests: dict[str, Counter[str]] = {metric: Counter() for metric, _ in scores}
    for _, line in folder.lines():
        metric, place = line.fields["metric"], place_by_id.get(line.fields["id"])
        # Lines of samples or metrics that are not part of the finished run.
        if place is None or metric not in requests:
            continue
        requests[metric].update(line.fields["calls"])
        for (of, part), scored in scores.items():
            if of == metric:
                scored.values[place] = _parse_score(line.fields, part)
    return requests


def _merge_scores(columns_of_part: list[_RunScores], scored: _RunScores) -> None:
    """Merge a score into that of another run with the same settings and different answers."""
    for other in columns_of_part:
        # With a common answer the two scores would overwrite each other.
        if other.settings == scored.settings and not other.values.keys() & scored.values.keys():
            other.values |= scored.values
            return
    columns_of_part.append(scored)


def _build_columns(scores: Mapping[_ScoreKey, Sequence[_RunScores]], n: int) -> list[ScoreColumn]:
    columns = []
    for (metric, part), several in scores.items():
        for run_scores in several:
            # All values are reasons: the settings of this run do not produce the part.
            if part and all(isinstance(value, str) for value in run_scores.values.values()):
                continue
            # The whole path, where several runs have the same folder name.
            short = Path(run_scores.run).name
            same = [Path(other.run).name for other in several].count(short) > 1
            of_run = f" ({run_scores.run if same else short})" if len(several) > 1 else ""
            columns.append(_build_column(f"{metric}{of_run}", part, of_run, run_scores, n))
    return columns


def _build_column(
    metric_name: str, part: str, of_run: str, run_scores: _RunScores, n: int
) -> ScoreColumn:
    values = np.full(n, math.nan)
    reasons: list[str] = []
    for place, value in run_scores.values.items():
        if isinstance(value, str):
            reasons.append(value)
        else:
            values[place] = value
    raw, turned = values, run_scores.direction == "lower"
    if turned:
        ends = run_scores.bounds or ()
        # Mirrored within the bounds, so that a probability stays one; without bounds negated.
        values = (sum(ends) if all(map(math.isfinite, ends)) else 0) - raw
    attributes: dict[str, Any] = {
        "description": run_scores.about,
        "missing_by_reason": dict(Counter(reasons)),
        "metric": run_scores.metric,
        "part": part,
        "settings": run_scores.settings,
        "raw": raw if turned else None,
        "turned": turned,
        "probability": run_scores.bounds == (0.0, 1.0),
        # Failed answers are told apart from those that have no score by design.
        "failed": frozenset(
            at for at, value in run_scores.values.items() if value == FAILED_REASON
        ),
    }
    if not part:
        return ScoreColumn(metric_name, "metric", values, **attributes)
    # Without a better direction a part cannot be right or wrong, only correlate.
    kind: ColumnKind = "part" if run_scores.direction else "covariate"
    name = f"{run_scores.metric}.{part}{of_run}"
    return ScoreColumn(name, kind, values, of=metric_name, **attributes)


FAILED_REASON = "failed"
"""The reason of an answer without a score whose metric failed."""


def _parse_score(fields: Mapping[str, Any], part: str) -> float | str:
    """Return the score in a line of assessments, or a part of it, or why there is none."""
    if fields["error"] is not None:
        return FAILED_REASON
    value = fields["parts"].get(part) if part else fields["score"]
    if value is None:
        return "without this part" if part else "without a score"
    return float(value)


def _read_declared_parts(run: Mapping[str, Any]) -> dict[str, dict[str, _DeclaredPart]]:
    """Return the parts that the figures of each metric declare, by metric."""
    result: dict[str, dict[str, _DeclaredPart]] = {}
    for name, metric in load_metrics(run).items():
        parts_of_metric = result.setdefault(name, {})
        for figure in metric.figures.values():
            match figure.statistic:
                case Mean(of=part, bounds=bounds) if part != "score":
                    parts_of_metric[part] = (
                        figure.explanation,
                        bounds,
                        metric.direction_of(part) or "",
                    )
                # setdefault: a mean of the same part, which knows its bounds, takes precedence.
                case Quantile(of=part) if part != "score":
                    direction = metric.direction_of(part) or ""
                    parts_of_metric.setdefault(part, (figure.explanation, None, direction))
    return result


def _average_cost(
    run: str, metric: str, n: int, requests: Counter[str], used: Mapping[str, Mapping[str, Any]]
) -> MetricCost:
    # An empty run costs nothing and must not divide by 0.
    samples = max(n, 1)
    calls = sum(usage["calls"] for usage in used.values())
    tokens = sum(usage["prompt_tokens"] + usage["reply_tokens"] for usage in used.values())
    prices = [usage["usd"] for usage in used.values()]
    # One unknown price makes the sum unknown.
    usd = None if None in prices else sum(prices) / samples
    each = {name: count / samples for name, count in sorted(requests.items())}
    return MetricCost(run, metric, n, each, calls / samples, tokens / samples, usd)
