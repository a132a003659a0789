"""Whether a run is good enough: its figures held against bounds, or against an earlier run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from trustassay.errors import RunFolderError, did_you_mean
from trustassay.metric import Figure, Mean, MetricInfo, Quantile
from trustassay.runs.folder import RunFolder
from trustassay.runs.infos import ABOUT
from trustassay.statistics.intervals import Interval
from trustassay.workflows.changes import (
    AnswerChanges,
    FigureChange,
    Scored,
    answer_changes,
    better_of,
    figure_changes,
    why_not_resampled,
)
from trustassay.workflows.pairing import Pairing
from trustassay.workflows.two_runs import differing_settings, finished_run, headlines, paired_runs

__all__ = ["Bound", "Check", "Earlier", "Gate", "Result", "decide", "gate", "parse_bound"]

Result = Literal["pass", "fail", "undecided"]


@dataclass(frozen=True)
class Bound:
    """A figure by its dotted name, and what it has to be: at least or at most a value."""

    name: str
    value: float
    at_least: bool

    def in_words(self) -> str:
        """Say the rule in words."""
        return f"at {'least' if self.at_least else 'most'} {self.value:g}"


@dataclass(frozen=True)
class Earlier:
    """A run that this one must not be worse than.

    figures: dotted names, METRIC.FIGURE; none: of each metric that both runs have, the first
    headline figure of which it is known whether more is better. margin: how much worse is
    tolerated, in percent of a figure's range.
    """

    path: Path
    figures: Sequence[str] = ()
    margin: float = 0.0


@dataclass(frozen=True)
class Check:
    """One rule, and what came of it.

    value: the figure, or its change since the earlier run; ``None`` where it has none. interval:
    its 95 % interval. line: what it is held against. why: the result in words.
    """

    name: str
    rule: str
    value: float | None
    interval: Interval | None
    line: float
    result: Result
    why: str
    unit: str = ""
    change: FigureChange | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        names = ("name", "rule", "value", "line", "result", "why", "unit")
        found = {name: getattr(self, name) for name in names}
        found["interval"] = None if self.interval is None else list(self.interval)
        return found | ({"change": self.change.to_dict()} if self.change else {})


@dataclass(frozen=True)
class Gate:
    """The result of all rules: fail if one fails, else undecided if one is, else pass.

    A rule about a figure without a value fails: nothing was measured that could pass.

    answers: by metric, the answers that changed since the earlier run. notes: the pairs of both
    runs, settings that differ, and samples that failed.
    """

    path: Path
    checks: Sequence[Check]
    answers: Mapping[str, AnswerChanges] = field(default_factory=dict)
    notes: Sequence[str] = ()
    earlier: Path | None = None

    @property
    def result(self) -> Result:
        """The worst result of a rule."""
        results = {check.result for check in self.checks}
        return next((one for one in ("fail", "undecided") if one in results), "pass")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "run": str(self.path),
            "no_worse_than": None if self.earlier is None else str(self.earlier),
            "result": self.result,
            "checks": [check.to_dict() for check in self.checks],
            "answers": {name: one.to_dict() for name, one in self.answers.items()},
            "notes": list(self.notes),
        }


def parse_bound(text: str, *, at_least: bool) -> Bound:
    """Read ``NAME=VALUE``.

    Raises:
        ValueError: it is not of this form, or the value is not a finite number.
    """
    option = "--min" if at_least else "--max"
    name, separator, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not separator or not name.strip() or not math.isfinite(value):
        raise ValueError(
            f"{option}: expected FIGURE=NUMBER, as in {option} grounding.trust_score=60, "
            f"got {text!r}"
        )
    return Bound(name.strip(), value, at_least)


def decide(interval: Interval, line: float, *, at_least: bool) -> Result:
    """Return pass if the whole interval is on the right side of the line, the line included; fail
    if it is on the other; undecided if it reaches both.
    """
    low, high = interval if at_least else (-interval[1], -interval[0])
    line = line if at_least else -line
    return "pass" if low >= line else "fail" if high < line else "undecided"


def gate(
    path: Path, bounds: Sequence[Bound] = (), earlier: Earlier | None = None, *, seed: int = 0
) -> Gate:
    """Hold the figures of a finished run against bounds, and against an earlier run.

    Raises:
        RunFolderError: a folder holds no finished run, or is damaged; no metric in common.
        ValueError: no rule is given, or a figure does not exist or cannot be compared.
    """
    if not bounds and earlier is None:
        raise ValueError(
            "no rule: give --min FIGURE=NUMBER, --max FIGURE=NUMBER or --no-worse-than RUN"
        )
    run = finished_run(path)
    summary = RunFolder(path).read_summary() or {}
    known = _figures(summary, run)
    checks = [_check(path, bound, known) for bound in bounds]
    notes = [
        f"{name}: {one['failed']:,} of {one['n']:,} samples failed; they count in no other figure"
        for name, one in summary["metrics"].items()
        if one.get("failed")
    ]
    if earlier is None:
        return Gate(path, checks, notes=notes)
    compared = _Compared.read(path, run, earlier)
    checks += compared.checks(earlier, seed)
    return Gate(
        path, checks, compared.answers(), [*compared.notes(earlier.path), *notes], earlier.path
    )


# bounds


def _figures(summary: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return every number of a summary by its dotted name, with its interval or why it has none."""
    found: dict[str, dict[str, Any]] = {}
    for metric, one in summary["metrics"].items():
        about = run.get(ABOUT, {}).get(metric, {}).get("figures", {})
        for key, value in one.get("values", {}).items():
            found[f"{metric}.{key}"] = {
                "value": value,
                "unit": about.get(key, {}).get("unit", ""),
                "interval": one.get("intervals", {}).get(key),
                "without": one.get("without_interval", {}).get(key),
                "absent": one.get("not_applicable", {}).get(key, "it does not apply"),
            }
        for key in ("n", "failed"):
            found.setdefault(f"{metric}.{key}", {"value": one.get(key)})
    _flatten({k: v for k, v in summary.items() if k != "metrics"}, "", found)
    return found


def _flatten(content: Mapping[str, Any], before: str, found: dict[str, dict[str, Any]]) -> None:
    for key, value in content.items():
        if isinstance(value, Mapping):
            _flatten(value, f"{before}{key}.", found)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.setdefault(f"{before}{key}", {"value": value})


def _check(path: Path, bound: Bound, known: Mapping[str, Mapping[str, Any]]) -> Check:
    if bound.name not in known:
        option = "--min" if bound.at_least else "--max"
        words = did_you_mean("figure", bound.name, known)
        raise ValueError(f"{option}: {words} (expected a METRIC.FIGURE of {path}/summary.json)")
    one = known[bound.name]
    value, interval, rule = one["value"], one.get("interval"), bound.in_words()
    without = one.get("without")

    def check(result: Result, why: str) -> Check:
        ends = None if interval is None else (float(interval[0]), float(interval[1]))
        unit = one.get("unit", "")
        return Check(bound.name, rule, value, ends, bound.value, result, why, unit)

    if value is None:
        return check("fail", f"it has no value: {one['absent']}")
    if interval is not None:
        result = decide((interval[0], interval[1]), bound.value, at_least=bound.at_least)
        return check(result, _SIDES[result])
    if without is not None:
        return check("undecided", f"it has no interval: {without}")
    right = value >= bound.value if bound.at_least else value <= bound.value
    return check("pass" if right else "fail", "a count: it is compared as it is")


_SIDES: Mapping[Result, str] = {
    "pass": "the whole interval is on the right side of the line",
    "fail": "the whole interval is on the wrong side of the line",
    "undecided": "the interval reaches both sides of the line; more samples make it narrower",
}


# an earlier run


@dataclass(frozen=True)
class _Compared:
    """The metrics that two runs share, paired."""

    paths: tuple[Path, Path]
    runs: tuple[Mapping[str, Any], Mapping[str, Any]]
    pairing: Pairing
    scored: Mapping[str, tuple[Scored, Scored]]

    @classmethod
    def read(cls, path: Path, run: Mapping[str, Any], earlier: Earlier) -> _Compared:
        before = finished_run(earlier.path)
        shared = [name for name in run["metrics"] if name in before["metrics"]]
        if not shared:
            held = [", ".join(one["metrics"]) or "none" for one in (before, run)]
            raise RunFolderError(
                f"{earlier.path} and {path} have no metric in common ({held[0]}; {held[1]}); score "
                "both with the same --metric"
            )
        wanted = {_metric_of(name, shared) for name in earlier.figures} or set(shared)
        names = [name for name in shared if name in wanted]
        pairing, scored = paired_runs((earlier.path, path), (before, run), names)
        if not len(pairing.first):
            raise RunFolderError(
                f"{earlier.path} and {path} have no question in common; expected runs of the same "
                "questions, whose texts may differ in case and white space alone"
            )
        return cls((earlier.path, path), (before, run), pairing, scored)

    def checks(self, earlier: Earlier, seed: int) -> list[Check]:
        """Return the check of every figure that is compared."""
        found = []
        for name, scored in self.scored.items():
            figures = scored[1].figures
            keys = [one.removeprefix(f"{name}.") for one in earlier.figures if _is_of(one, name)]
            for key in keys:
                if key not in figures:
                    known = [f"{name}.{one}" for one in figures]
                    raise ValueError(f"--figure: {did_you_mean('figure', f'{name}.{key}', known)}")
                if not better_of(figures[key], scored[1].info):
                    raise ValueError(
                        f"--figure {name}.{key}: it is not known whether more of it is better; "
                        "use --min or --max"
                    )
            chosen, absent = headlines(scored, keys)
            if not keys:
                info = scored[1].info
                chosen = [k for k in chosen if k in figures and better_of(figures[k], info)][:1]
                why = "no headline figure has a value and a better side; name one with --figure"
                absent = {} if chosen else {"figures": why}
            changes = figure_changes(*scored, self.pairing, chosen, seed)
            for key in chosen:
                absent |= {} if key in changes else {key: why_not_resampled(self.pairing, *scored)}
            found += [
                _no_worse(name, changes[key], scored[1].info, earlier)
                for key in chosen
                if key in changes
            ]
            found += [_absent(f"{name}.{key}", why, earlier) for key, why in absent.items()]
        return found

    def answers(self) -> dict[str, AnswerChanges]:
        """Return the answers that changed, by metric."""
        return {name: answer_changes(*scored, self.pairing) for name, scored in self.scored.items()}

    def notes(self, earlier: Path) -> list[str]:
        """Say what was paired, and which settings differ."""
        words = f"against {earlier}: {self.pairing.in_words()}"
        return [words, *differing_settings(*self.runs, list(self.scored))]


def _metric_of(name: str, shared: Sequence[str]) -> str:
    found = next((metric for metric in shared if _is_of(name, metric)), None)
    if found is None:
        metric, _, figure = name.partition(".")
        if metric in shared and not figure:
            raise ValueError(f"--figure: expected METRIC.FIGURE, as in {metric}.mean, got {name!r}")
        raise ValueError(
            f"--figure: {did_you_mean('metric of both runs', metric, shared)}; "
            "expected METRIC.FIGURE"
        )
    return found


def _is_of(name: str, metric: str) -> bool:
    return name.startswith(f"{metric}.")


def _rule(earlier: Earlier) -> str:
    margin = f", by {earlier.margin:g} % of its range at most" if earlier.margin else ""
    return f"no worse than {earlier.path}{margin}"


def _absent(name: str, why: str, earlier: Earlier) -> Check:
    return Check(name, _rule(earlier), None, None, 0.0, "fail", f"it has no change: {why}")


def _no_worse(name: str, change: FigureChange, info: MetricInfo, earlier: Earlier) -> Check:
    """Return the check of a change: is the interval above the line of what is tolerated?"""
    line = 0.0
    if earlier.margin:
        line = earlier.margin / 100 * _range(name, change.figure, info)
    higher = change.better == "higher"
    line = -line if higher else line
    result: Result = "undecided"
    if change.difference.interval is None:
        why = f"it has no interval: {change.difference.without}"
    else:
        result = decide(change.difference.interval, line, at_least=higher)
        why = _SIDES[result]
    return Check(
        f"{name}.{change.key}",
        _rule(earlier),
        change.difference.value,
        change.difference.interval,
        line,
        result,
        why,
        change.figure.unit,
        change,
    )


def _range(name: str, figure: Figure, info: MetricInfo) -> float:
    """Return how far a figure's least and largest value lie apart.

    Raises:
        ValueError: that is not known.
    """
    if figure.unit == "%":
        return 100.0
    statistic, bounds = figure.statistic, None
    if isinstance(statistic, Mean | Quantile) and statistic.of == "score":
        bounds = info.score_range
    elif isinstance(statistic, Mean):
        bounds = statistic.bounds
    if bounds is None or not all(map(math.isfinite, bounds)):
        raise ValueError(
            f"--margin: the range of {name}.{figure.key} is not known, so there is no percentage "
            "of it; leave the margin out, or use --min or --max"
        )
    return float(bounds[1] - bounds[0])
