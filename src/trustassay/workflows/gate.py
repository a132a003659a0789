"""Whether a run is good enough: its figures compared with bounds, or with an earlier run."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from trustassay.errors import RunFolderError, UsageError, did_you_mean
from trustassay.metric import Mean, MetricInfo, Share
from trustassay.runs.folder import ABOUT, RunFolder, metrics_of
from trustassay.statistics.sequential import mean_interval_at_any_n
from trustassay.text.words import amount
from trustassay.workflows import changes, rules, two_runs
from trustassay.workflows.changes import FigureChange
from trustassay.workflows.corrected import RIGHT, Corrected, CorrectedRate, LabelFiles, correct
from trustassay.workflows.json_form import flattened
from trustassay.workflows.rules import Bound, Check, Earlier, Gate
from trustassay.workflows.two_runs import Scored


def gate(
    path: Path,
    bounds: Sequence[Bound] = (),
    earlier: Earlier | None = None,
    *,
    labels: LabelFiles | None = None,
    seed: int = 0,
    sequential: bool = False,
) -> Gate:
    """Compare the figures of a finished run with bounds, and with an earlier run; with labels also
    ``METRIC.right``, the share of right answers (:mod:`~trustassay.workflows.corrected`).

    sequential: the intervals of bounds hold at all sizes together that a growing run has.

    Raises:
        RunFolderError: a folder holds no finished run, or is damaged; no metric in common.
        ValueError: no rule is given, or a figure does not exist or cannot be compared.
    """
    if not bounds and earlier is None:
        raise UsageError(
            "no rule: give --min FIGURE=NUMBER, --max FIGURE=NUMBER or --no-worse-than RUN"
        )
    run = two_runs.finished_run(path)
    summary = RunFolder(path).read_summary() or {}
    if sequential and (earlier or labels):
        raise UsageError(
            "--sequential: is for --min and --max alone, without labels or another run"
        )
    known = _figures(summary, run)
    for name, one in known.items() if sequential else ():
        known[name] = one | (_at_any_size(name, one, run) if "interval" in one else {})
    paths = [path] if earlier is None else [path, earlier.path]
    shares = correct(paths, labels, seed=seed) if labels else {}
    known |= {f"{name}.{RIGHT}": _share(one.rates[0]) for name, one in shares.items()}
    checks = [_check(path, bound, known) for bound in bounds]
    notes = [
        f"{name}: {one['failed']:,} of {one['n']:,} samples failed; they count in no other figure"
        for name, one in summary["metrics"].items()
        if one.get("failed")
    ] + [line for one in shares.values() for line in one.in_words()]
    if earlier is None:
        return Gate(path, checks, notes=notes)
    compared = ComparedRuns.read(path, run, earlier)
    return Gate(
        path,
        [*checks, *compared.checks(seed, shares)],
        compared.outcomes,
        {
            name: changes.answer_changes(*both, compared.pairing)
            for name, both in compared.scored.items()
        },
        [*compared.notes(), *notes],
        earlier.path,
    )


# bounds


def _figures(summary: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return every number of a summary by its dotted name, with its interval or why it has none."""
    result: dict[str, dict[str, Any]] = {}
    installed = metrics_of(run)
    for metric, one in summary["metrics"].items():
        about = run.get(ABOUT, {}).get(metric, {}).get("figures", {})
        if metric in installed:
            about = {k: f.to_dict() for k, f in MetricInfo.of(installed[metric]).figures.items()}
        for key, value in one.get("values", {}).items():
            result[f"{metric}.{key}"] = {
                "value": value,
                "unit": about.get(key, {}).get("unit", ""),
                "interval": one.get("intervals", {}).get(key),
                "without": one.get("without_interval", {}).get(key),
                "absent": one.get("not_applicable", {}).get(key, "it does not apply"),
                "n": one.get("units", {}).get(key) or one.get("support", {}).get(key, one["n"]),
                "range": about.get(key, {}).get("range"),
                "shared": key in one.get("units", {}),
            }
        for key in ("n", "failed"):
            result.setdefault(f"{metric}.{key}", {"value": one.get(key), "whole": one.get("n")})
    for name, value in flattened({k: v for k, v in summary.items() if k != "metrics"}):
        if isinstance(value, int | float) and not isinstance(value, bool):
            result.setdefault(name, {"value": value})
    return result


def _share(one: CorrectedRate) -> dict[str, Any]:
    """Return a corrected share as a figure."""
    ends = one.interval and [100 * end for end in one.interval]
    value = None if one.value is None else 100 * one.value
    told = {"value": value, "unit": "%", "interval": ends, "absent": one.without}
    return told | {"without": one.without or None, "n": one.labels, "what": "labels"}


def _at_any_size(name: str, one: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the interval of a mean or a share that holds at all sizes of its run together."""
    metric, _, key = name.rpartition(".")
    info = metrics_of(run).get(metric)
    figure = info.figures.get(key) if info else None
    ends = figure.within(info.score_range) if info and figure else None
    if not ends or not isinstance(figure and figure.statistic, Mean | Share) or one["shared"]:
        why = "--sequential is for shares, and means within bounds, of one answer to a question"
        return {"interval": None, "without": why}
    low, width, n = ends[0], ends[1] - ends[0], one["n"]
    held = mean_interval_at_any_n(n * (one["value"] - low) / width, n) if n else ()
    return {"interval": [low + width * end for end in held] or None}


def _check(path: Path, bound: Bound, known: Mapping[str, Mapping[str, Any]]) -> Check:
    if bound.name not in known:
        words = did_you_mean("figure", bound.name, known)
        raise UsageError(
            f"{bound.option}: {words} (expected a METRIC.FIGURE of {path}/summary.json)"
        )
    one = known[bound.name]
    line = _line(bound, one)
    value, interval, unit = one["value"], one.get("interval"), one.get("unit", "")
    rule = f"at {'least' if bound.at_least else 'most'} {line:g}{' %' if unit == '%' else ''}"
    without = one.get("without")

    def check(result: rules.Result, why: str, advice: str = "") -> Check:
        ends = None if interval is None else (float(interval[0]), float(interval[1]))
        return Check(bound.name, rule, value, ends, line, result, why, unit, advice=advice)

    if value is None:
        return check("fail", f"it has no value: {one['absent']}")
    if interval is not None:
        result = rules.decide((interval[0], interval[1]), line, at_least=bound.at_least)
        advice = ""
        if result == "undecided":
            more = rules.more_samples(value, interval, line, int(one["n"]))
            side = "pass" if (value >= line) == bound.at_least else "fail"
            if more:
                what = one.get("what", "samples")
                advice = f"about {more:,} more {what} would make it {side}, at the same value"
        return check(result, rules.SIDES[result], advice)
    if without is not None:
        return check("untestable", f"it has no interval: {without}")
    right = value >= line if bound.at_least else value <= line
    return check("pass" if right else "fail", "a count: it is compared as it is")


def _line(bound: Bound, one: Mapping[str, Any]) -> float:
    """Return the value of a bound in the unit of its figure, if it can be meant in one way only."""
    unit, ends, value = one.get("unit", ""), one.get("range"), bound.value
    if unit == "%":
        if bound.percent or value == 0 or value > 1 or value < 0:
            return value
        raise UsageError(
            f"{bound.option} {bound.name}={value:g}: the figure is in per cent, so this is "
            f"{value:g} % and not {100 * value:g} %; write {bound.name}={value:g}% or "
            f"{bound.name}={100 * value:g}%"
        )
    if ends is None:
        if bound.percent and (whole := one.get("whole")) is not None:
            return value / 100 * float(whole)
        if bound.percent:
            raise UsageError(
                f"{bound.option} {bound.name}={value:g}%: the figure is not a share, so there is "
                f"no percentage of it; write a number"
            )
        return value
    low, high = ends
    if bound.percent:
        return float(low + value / 100 * (high - low))
    if low <= value <= high:
        return value
    other = f" or {bound.name}={value:g}%" if high == 1 and 1 < value <= 100 else ""
    raise UsageError(
        f"{bound.option} {bound.name}={value:g}: the figure lies between {low:g} and {high:g}, so "
        f"the bound decides nothing; expected a number between them{other}"
    )


# an earlier run


@dataclass(frozen=True)
class ComparedRuns:
    """The metrics that two runs share, paired."""

    path: Path
    runs: tuple[Mapping[str, Any], Mapping[str, Any]]
    pairing: two_runs.Pairing
    scored: Mapping[str, tuple[Scored, Scored]]
    earlier: Earlier

    @classmethod
    def read(cls, path: Path, run: Mapping[str, Any], earlier: Earlier) -> "ComparedRuns":
        """Pair a run with an earlier one.

        Raises:
            RunFolderError: no metric or question in common, or a folder is damaged.
            ValueError: a figure does not exist, or the runs were judged in different ways.
        """
        before = two_runs.finished_run(earlier.path)
        shared = [name for name in run["metrics"] if name in before["metrics"]]
        if not shared:
            held = [", ".join(one["metrics"]) or "none" for one in (before, run)]
            raise RunFolderError(
                f"{earlier.path} and {path} have no metric in common ({held[0]}; {held[1]}); score "
                "both with the same --metric"
            )
        wanted = {_metric_of(name, shared) for name in earlier.figures} or set(shared)
        names = [name for name in shared if name in wanted]
        if not earlier.other_judge and (differ := changes.other_judges(before, run, names)):
            raise UsageError(
                f"{earlier.path} and {path} were judged in different ways: {'; '.join(differ)}. "
                "A change of the judge is not a change of the answers: score both runs in the same "
                "way, or accept it with --allow-other-judge"
            )
        pairing, scored = two_runs.paired_runs((earlier.path, path), (before, run), names)
        if not len(pairing.first):
            raise RunFolderError(
                f"{earlier.path} and {path} have no question in common; expected runs of the same "
                "questions, whose texts may differ in case and white space alone"
            )
        return cls(path, (before, run), pairing, scored, earlier)

    @cached_property
    def outcomes(self) -> dict[str, list[two_runs.Outcome]]:
        """What became of the answers of both runs, by metric."""
        margin = self.earlier.margin / 100
        return {
            name: two_runs.outcome_changes(*both, self.pairing, margin)
            for name, both in self.scored.items()
        }

    def checks(self, seed: int, right: Mapping[str, Corrected]) -> list[Check]:
        """Return the checks of figures, of unscored answers, of answers without a partner, and of
        corrected shares."""
        result: list[Check] = []
        for name, scored in self.scored.items():
            result += [*self._figures(name, scored, seed, name in right), *self._shares(name)]
        of_these = {name: one for name, one in right.items() if name in self.scored}
        return [*result, self._missing(), *self._shares_right(of_these)]

    def _figures(
        self, name: str, scored: tuple[Scored, Scored], seed: int, right: bool
    ) -> list[Check]:
        figures = scored[1].figures
        of = f"{name}."
        keys = [one.removeprefix(of) for one in self.earlier.figures if one.startswith(of)]
        if right and RIGHT in keys and not (keys := [key for key in keys if key != RIGHT]):
            return []
        for key in keys:
            if key not in figures:
                known = [f"{name}.{one}" for one in figures]
                raise UsageError(f"--figure: {did_you_mean('figure', f'{name}.{key}', known)}")
            if not two_runs.better_of(figures[key], scored[1].info):
                raise UsageError(
                    f"--figure {name}.{key}: it is not known whether more of it is better; use "
                    "--min or --max"
                )
        chosen, absent = two_runs.headlines(scored, keys)
        if not keys:
            info = scored[1].info
            chosen = [k for k in chosen if k in figures and two_runs.better_of(figures[k], info)][
                :1
            ]
            why = "no headline figure has a value and a better side; name one with --figure"
            absent = {} if chosen else {"figures": why}
        moved = changes.figure_changes(*scored, self.pairing, chosen, seed)
        why = changes.why_not_resampled(self.pairing, *scored)
        absent |= {key: why for key in chosen if key not in moved}
        result = [self._no_worse(name, one, scored[1].info) for one in moved.values()]
        return result + [
            Check(f"{name}.{key}", self._rule, None, None, 0.0, "fail", f"it has no change: {why}")
            for key, why in absent.items()
        ]

    def _shares_right(self, found: Mapping[str, Corrected]) -> list[Check]:
        """Return a check of each change of the corrected share, in points."""
        result, line = list[Check](), -self.earlier.margin
        for key, one in ((f"{name}.{RIGHT}", one) for name, one in found.items()):
            value, interval = next(((d.value, d.interval) for d in one.differences), (None, None))
            if value is None or interval is None:
                why = next((rate.without for rate in one.rates if rate.without), "")
                result.append(Check(key, self._rule, None, None, line, "untestable", why, "%"))
                continue
            ends = -100 * interval[1], -100 * interval[0]  # this run less the earlier one
            side = rules.decide(ends, line, at_least=True)
            told = (line, side, rules.SIDES[side], "%")
            result.append(Check(key, self._rule, -100 * value, ends, *told))
        return result

    @property
    def _rule(self) -> str:
        margin = self.earlier.margin
        message = f", by {margin:g} % of its range at most" if margin else ""
        return f"no worse than {self.earlier.path}{message}"

    def _no_worse(self, name: str, change: FigureChange, info: MetricInfo) -> Check:
        """Return the check of a change: is its interval above the line of what is tolerated?"""
        ends = change.figure.within(info.score_range)
        margin = self.earlier.margin
        if margin and ends is None:
            raise UsageError(
                f"--margin: the range of {name}.{change.key} is not known, so there is no "
                "percentage of it; leave the margin out, or use --min or --max"
            )
        width = ends[1] - ends[0] if ends else 1.0
        higher = change.better == "higher"
        line = (-1 if higher else 1) * margin / 100 * width
        interval = change.difference.interval
        if interval is None:
            result, why, advice = self._by_verdicts(change)
        else:
            result, advice = rules.decide(interval, line, at_least=higher), ""
            why = rules.SIDES[result]
            if result == "undecided":
                advice = self._advice(change, line, width if ends else None)
        key, value, unit = f"{name}.{change.key}", change.difference.value, change.figure.unit
        told = (result, why, unit, change, advice)
        return Check(key, self._rule, value, interval, line, *told)

    def _by_verdicts(self, change: FigureChange) -> tuple[rules.Result, str, str]:
        """Decide by the verdicts of the answers what has too few of them for an interval."""
        verdicts, margin = change.verdicts, self.earlier.margin / 100
        why = f"it has no interval ({change.difference.without})"
        if verdicts is None or (verdicts.of == "score" and margin):
            return "untestable", f"{why}, and no verdicts that could be tested", ""
        if not verdicts.can_decide(margin):
            message = f"{why}, and {amount(verdicts.questions, 'question')} cannot show a change"
            return "untestable", message, "score more questions, or test single answers"
        worse, kept = verdicts.worse_p(margin), verdicts.kept_p(margin)
        why += f"; by an exact test of the verdicts: {verdicts.in_words()}, p = {worse:.2g}"
        if worse < changes.ONE_SIDED:
            return "fail", why, ""
        return ("pass", why, "") if kept < changes.ONE_SIDED else ("undecided", why, "")

    def _advice(self, change: FigureChange, line: float, width: float | None) -> str:
        """Say what would decide a change whose interval reaches both sides of the line."""
        value, interval = change.difference.value, change.difference.interval
        assert interval is not None
        assert change.verdicts is not None
        result = []
        if more := rules.more_samples(value, interval, line, change.verdicts.questions):
            side = "pass" if (value >= line) == (change.better == "higher") else "fail"
            stays = f"if the difference stays {value:+.3g}"
            result.append(f"about {more:,} more questions would make it {side}, {stays}")
        if width:
            far = -interval[0] if change.better == "higher" else interval[1]
            margin = math.ceil(1000 * far / width) / 10
            result.append(
                f"with a margin of {margin:g} it would pass: trustassay gate {self.path} "
                f"--no-worse-than {self.earlier.path} --margin {margin:g}"
            )
        return "; ".join(result)

    def _shares(self, name: str) -> list[Check]:
        """Return a check of each outcome whose share of answers rises beyond chance."""
        result = []
        for one in self.outcomes[name]:
            if one.p is None or one.p >= changes.ONE_SIDED:
                continue
            shares = [100 * one.first / one.of_first, 100 * one.second / one.of_second]
            margin = f", by {self.earlier.margin:g} points" if self.earlier.margin else ""
            result.append(
                Check(
                    f"{name}: {one.name}",
                    f"no more than in {self.earlier.path}{margin}",
                    shares[1] - shares[0],
                    None,
                    self.earlier.margin,
                    "fail",
                    f"{one.first:,} of {one.of_first:,} answers, then {one.second:,} of "
                    f"{one.of_second:,}: more in {one.risen:,} of {one.questions:,} questions, "
                    f"fewer in {one.fallen:,}, p = {one.p:.2g}; such answers are in no mean",
                    "%",
                )
            )
        return result

    def _missing(self) -> Check:
        """Return the check of answers of the earlier run that have no partner."""
        lost, total = self.pairing.only_first, self.pairing.only_first + len(self.pairing.first)
        most = self.earlier.missing.of(total)
        rule = f"at most {self.earlier.missing} answers without a partner (--allow-missing)"
        why = f"{lost:,} of the {total:,} answers of {self.earlier.path} have no partner"
        return Check(
            two_runs.MISSING, rule, lost, None, most, "pass" if lost <= most else "fail", why
        )

    def notes(self) -> list[str]:
        """Say what was paired, which metrics were not, and which settings differ."""
        words = [f"against {self.earlier.path}: {self.pairing.in_words()}"]
        if lost := [one for one in self.runs[0]["metrics"] if one not in self.runs[1]["metrics"]]:
            words.append(f"not in this run, so not compared: {', '.join(lost)}")
        return [*words, *changes.differing_settings(*self.runs, list(self.scored))]


def _metric_of(name: str, shared: Sequence[str]) -> str:
    """Return the metric of a figure's dotted name."""
    if result := [metric for metric in shared if name.startswith(f"{metric}.")]:
        return result[0]
    metric = name.partition(".")[0]
    if metric in shared:
        raise UsageError(f"--figure: expected METRIC.FIGURE, as in {metric}.mean, got {name!r}")
    known = did_you_mean("metric of both runs", metric, shared)
    raise UsageError(f"--figure: {known}; expected METRIC.FIGURE")
