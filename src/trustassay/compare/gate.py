"""Whether a run is good enough: compared with bounds, and with earlier runs.

1. Bounds: shares of all questions first (``--max failed=10%``), then any figure of the summary.
2. Each earlier run: a rise of the questions that failed, and of those without an answer.
3. All rules together: corrected for their number (:func:`~trustassay.compare.gate_rules.decided`).
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.compare.answer_changes import answer_changes
from trustassay.compare.corrected import RIGHT, Corrected, CorrectedRate, LabelFiles, correct
from trustassay.compare.figure_changes import FigureChange, figure_changes, why_not_compared
from trustassay.compare.gate_rules import (
    Against,
    Bound,
    Check,
    Earlier,
    Gate,
    Result,
    decided,
    is_right_side,
    p_of_side,
)
from trustassay.compare.outcome_changes import ONE_SIDED, OutcomeChange, outcome_changes
from trustassay.compare.pairing import read_keys, what_differs
from trustassay.compare.run_scores import (
    PairedRuns,
    RunScores,
    better_of,
    changed_judges,
    changed_settings,
    copies_in_words,
    headline_figures,
    read_finished_run,
    read_pairs,
    read_scores,
)
from trustassay.core.outcome import NOT_ANSWERED, NOT_SCORED, PASSED, Outcomes, question_weights
from trustassay.errors import RunFolderError, UsageError, did_you_mean
from trustassay.metric import Mean, MetricInfo, Quantile, Share
from trustassay.runs.counts import ANSWER, DRAWN, UNIT, read_outcomes
from trustassay.runs.folder import ABOUT, RunFolder, metric_infos, metrics_of
from trustassay.statistics.comparison import FEWEST_CHANGED, share_rise_p
from trustassay.statistics.intervals import FEWEST, Interval, too_few
from trustassay.statistics.resampling import drawn_counts, expanded_interval, generator
from trustassay.statistics.sequential import mean_interval_at_any_n
from trustassay.text.words import amount
from trustassay.workflows.json_form import flattened

MAX_UNSCORED = 5.0
"""Per cent of the questions that may have no score where a figure over scored answers is bounded:
a model that refuses what it would get wrong must not pass by it. ``--max not_answered`` says
otherwise."""
MISSING = "missing"
"""The name of the check of answers that have no partner."""


def gate(
    path: Path,
    bounds: Sequence[Bound] = (),
    earlier: Earlier | Sequence[Earlier] = (),
    *,
    labels: LabelFiles | None = None,
    seed: int = 0,
    sequential: bool = False,
) -> Gate:
    """Compare the figures of a finished run with bounds, and with earlier runs; with labels also
    ``METRIC.right``, the share of right answers (:mod:`~trustassay.compare.corrected`).

    sequential: the intervals of bounds hold at all sizes together that a growing run has, whose
    questions were drawn at random.

    Raises:
        RunFolderError: a folder holds no finished run, or is damaged; no metric in common.
        UsageError: no rule is given, or a figure does not exist or cannot be compared.
    """
    earlier_runs = [earlier] if isinstance(earlier, Earlier) else list(earlier)
    if not bounds and not earlier_runs:
        raise UsageError(
            "no rule: give --min FIGURE=NUMBER, --max FIGURE=NUMBER or --no-worse-than RUN"
        )
    run, folder = read_finished_run(path), RunFolder(path)
    summary = folder.read_summary() or {}
    outcomes = read_outcomes(folder, metrics_of(run).values())
    if sequential:
        _check_sequential(path, run, bool(earlier_runs or labels))
    figures = _Figures(path, run, summary, outcomes)
    figures.weigh_by_question({bound.name for bound in bounds}, seed)
    if sequential:
        figures.hold_at_any_size()
    # A file of labels for each run is given in this order: this run first.
    corrected_pairs = [
        correct([path, one.path], labels, seed=seed) if labels else {} for one in earlier_runs
    ]
    corrected = correct([path], labels, seed=seed) if labels and not earlier_runs else {}
    corrected = corrected_pairs[0] if corrected_pairs else corrected
    figures.known |= {
        f"{name}.{RIGHT}": _corrected_share(one.rates[0]) for name, one in corrected.items()
    }
    checks = [check for bound in bounds for check in figures.checks(bound, bounds)]
    compared = [ComparedRuns.read(path, run, one) for one in earlier_runs]
    for one, corrected_pair in zip(compared, corrected_pairs, strict=True):
        checks += one.checks(seed, corrected_pair, named=len(compared) > 1)
    notes = [note for one in compared for note in one.notes()]
    notes += [f"{one.metric}: {one.reasons_in_words}" for one in outcomes.values() if one.reasons]
    notes += copies_in_words([path])
    notes += [line for one in corrected.values() for line in one.in_words()]
    notes += figures.notes
    return Gate(path, decided(checks), outcomes, [one.against(seed) for one in compared], notes)


def _check_sequential(path: Path, run: Mapping[str, Any], others: bool) -> None:
    """Refuse ``--sequential`` where its intervals do not hold."""
    if others:
        raise UsageError(
            "--sequential: is for --min and --max alone, without labels or another run"
        )
    if "strata" in run.get(DRAWN, {}):
        raise UsageError("--sequential: the questions were drawn by strata; draw them without --by")
    if DRAWN not in run:
        raise UsageError(
            f"--sequential: the order of the questions of {path} was not drawn at random, so a "
            "stop at a good moment would be no accident; score with --sample N, and go on with "
            "larger N"
        )


# Bounds ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KnownFigure:
    """A figure of a run that can be bounded."""

    value: float | None
    unit: str = ""
    interval: Interval | None = None
    without: str = ""
    """Why there is no interval, or no value."""
    n: int = 0
    """Independent questions behind it."""
    range: tuple[float, float] | None = None
    total: int | None = None
    """Of a count, what 100 % of it is."""
    unscored: float = 0.0
    """Per cent of the answers that are not behind it."""
    of: str = "question"
    """What ``n`` counts."""


class _Figures:
    """Every number of a run's summary by its dotted name."""

    def __init__(
        self,
        path: Path,
        run: Mapping[str, Any],
        summary: Mapping[str, Any],
        outcomes: Mapping[str, Outcomes],
    ) -> None:
        self.path, self.run, self.outcomes = path, run, outcomes
        self.notes: list[str] = []
        self.known: dict[str, KnownFigure] = {}
        installed = metrics_of(run)
        for metric, one in summary["metrics"].items():
            about = run.get(ABOUT, {}).get(metric, {}).get("figures", {})
            if metric in installed:
                figures = MetricInfo.of(installed[metric]).figures
                about = {key: figure.to_dict() for key, figure in figures.items()}
            self._add_metric(metric, one, about)
        numbers = flattened({k: v for k, v in summary.items() if k not in ("metrics", "outcomes")})
        for name, value in numbers:
            if isinstance(value, int | float) and not isinstance(value, bool):
                self.known.setdefault(name, KnownFigure(value))

    def _add_metric(
        self, metric: str, summary: Mapping[str, Any], about: Mapping[str, Mapping[str, Any]]
    ) -> None:
        outcomes, n = self.outcomes[metric], summary["n"]
        self.known[f"{metric}.n"] = KnownFigure(n)
        self.known[f"{metric}.errors"] = KnownFigure(summary["failed"], total=n)
        for key, value in summary.get("values", {}).items():
            behind = summary.get("support", {}).get(key)
            ends, span = summary.get("intervals", {}).get(key), about.get(key, {}).get("range")
            reasons = summary.get("without_interval", {}), summary.get("not_applicable", {})
            self.known[f"{metric}.{key}"] = KnownFigure(
                value,
                about.get(key, {}).get("unit", ""),
                None if ends is None else (float(ends[0]), float(ends[1])),
                reasons[0].get(key) or reasons[1].get(key, ""),
                summary.get("units", {}).get(key) or behind or n,
                None if span is None else (float(span[0]), float(span[1])),
                unscored=0.0 if behind is None or not n else 100 * (1 - behind / n),
            )
        # The shares of all questions come last: they have these names whatever a figure is called.
        for kind, share in outcomes.shares.items():
            self.known[f"{metric}.{kind}"] = KnownFigure(
                share.percent,
                "%",
                share.interval,
                share.without_interval,
                outcomes.questions,
                (0.0, 100.0),
            )

    def weigh_by_question(self, wanted: Container[str], seed: int) -> None:
        """Let each question count once in these figures, where some have several answers.

        Else copies of good answers under new ids would raise a mean.
        """
        if self.run.get(UNIT) == ANSWER:
            keys = read_keys(RunFolder(self.path), {})
            asked = len(np.unique(keys.question_units))
            if asked < len(keys.ids):
                self.notes.append(
                    f"{len(keys.ids):,} answers to {asked:,} questions; each answer counts by "
                    "itself (--unit answer)"
                )
            return
        several = [name for name, one in self.outcomes.items() if one.questions < one.answers]
        if not several:
            return
        folder = RunFolder(self.path)
        keys = read_keys(folder, self.run)
        questions = np.unique(keys.question_units, return_inverse=True)[1].astype(np.int64)
        weights = question_weights(questions, len(questions))
        units = np.unique(keys.units, return_inverse=True)[1].astype(np.int64)
        for name in several:
            info = metric_infos(folder, self.run)[name]
            scores = read_scores(self.path, self.run, info, keys)
            outcomes = self.outcomes[name]
            self.notes.append(
                f"{name}: {outcomes.answers:,} answers to {outcomes.questions:,} questions; each "
                "question counts once"
            )
            resampled = sorted(scores.weighted.keys())
            bounded = [key for key in resampled if f"{name}.{key}" in wanted]
            if not bounded:
                continue
            whole = scores.weighted.figures(weights[None])
            rng = generator(seed, "gate", name, "questions")
            count = int(units.max()) + 1
            draws = [
                scores.weighted.figures(times[:, units] * weights)
                for times in drawn_counts(count, rng)
            ]
            for key in bounded:
                figure, statistic = f"{name}.{key}", scores.figures[key].statistic
                known = self.known.get(figure)
                # A quantile of answers with unequal weights is not defined here.
                if known is None or known.value is None or isinstance(statistic, Quantile):
                    continue
                value = float(whole[key][0])
                drawn = np.concatenate([one[key] for one in draws])
                drawn = drawn[~np.isnan(drawn)]
                reason = too_few("questions", count, FEWEST)
                ends = None if reason or not len(drawn) else expanded_interval(drawn, count)
                self.known[figure] = KnownFigure(
                    None if np.isnan(value) else value,
                    known.unit,
                    ends,
                    reason or known.without,
                    count,
                    known.range,
                    unscored=known.unscored,
                )

    def hold_at_any_size(self) -> None:
        """Take intervals that hold at all sizes of a growing run together."""
        for name, one in self.known.items():
            if one.interval is None:
                continue
            metric, _, key = name.rpartition(".")
            info = metrics_of(self.run).get(metric)
            figure = info.figures.get(key) if info else None
            statistic = figure.statistic if figure else None
            is_share = metric in self.outcomes and key in self.outcomes[metric].shares
            shared = self.outcomes[metric].questions < self.outcomes[metric].answers
            ends = one.range if is_share or isinstance(statistic, Mean | Share) else None
            interval, reason = None, ""
            if ends is None or shared or one.value is None or not one.n:
                reason = "--sequential is for shares, and means within bounds, of one answer each"
            else:
                width = ends[1] - ends[0]
                share = (one.value - ends[0]) / width
                low, high = mean_interval_at_any_n(one.n * share, one.n)
                interval = ends[0] + width * low, ends[0] + width * high
            self.known[name] = KnownFigure(
                one.value, one.unit, interval, reason, one.n, one.range, one.total, one.unscored
            )

    def checks(self, bound: Bound, bounds: Sequence[Bound]) -> list[Check]:
        """Return the checks of a bound: of an outcome without a metric's name, one for each metric
        that has it.
        """
        names = [bound.name]
        if bound.name not in self.known:
            names = [
                f"{metric}.{bound.name}"
                for metric, outcomes in self.outcomes.items()
                if bound.name in outcomes.shares
            ]
        if not names:
            shares = {kind for outcomes in self.outcomes.values() for kind in outcomes.shares}
            message = did_you_mean("figure", bound.name, [*sorted(shares), *self.known])
            raise UsageError(
                f"{bound.option}: {message} (expected {', '.join(sorted(shares))} or a "
                f"METRIC.FIGURE of {self.path}/summary.json)"
            )
        return [self._check(bound, name, bounds) for name in names]

    def _why_it_fails(self, name: str, bounds: Sequence[Bound]) -> str:
        """Return why a bound fails whatever the interval is; "" where that decides."""
        figure, (metric, _, kind) = self.known[name], name.rpartition(".")
        if figure.value is None:
            return f"it has no value: {figure.without or 'it does not apply'}"
        is_share = metric in self.outcomes and kind in self.outcomes[metric].shares
        if is_share and kind not in (NOT_ANSWERED, NOT_SCORED) and not self.outcomes[metric].judged:
            return "nothing could be judged"
        if figure.unscored > MAX_UNSCORED and not _allows_unscored(name, bounds):
            return (
                f"{figure.unscored:.1f} % of the questions have no score and are not in it; bound "
                "those too, with --max not_answered=…"
            )
        return ""

    def _check(self, bound: Bound, name: str, bounds: Sequence[Bound]) -> Check:
        figure = self.known[name]
        line = _line_of(bound, figure)
        metric, _, kind = name.rpartition(".")
        is_share = metric in self.outcomes and kind in self.outcomes[metric].shares
        if is_share and line == (100.0 if bound.at_least else 0.0):
            raise UsageError(
                f"{bound.option} {bound.name}={line:g}: no number of questions shows a share of "
                f"{line:g} %; give what is tolerated, as in {bound.option} {bound.name}="
                f"{abs(line - 2):g}%, or for samples that could not be scored --max "
                f"{metric}.errors=0"
            )
        rule = f"at {'least' if bound.at_least else 'most'} {line:g}"
        rule += " %" if figure.unit == "%" else ""

        def check(result: Result, why: str, p: float | None = None) -> Check:
            return Check(
                name,
                rule,
                figure.value,
                figure.interval,
                line,
                result,
                why,
                figure.unit,
                n=figure.n,
                unit_of_n=figure.of,
                fail_p=p,
            )

        if why := self._why_it_fails(name, bounds):
            return check("fail", why)
        assert figure.value is not None
        if figure.interval is not None:
            p = p_of_side(figure.value, figure.interval, line, at_least=bound.at_least)
            if is_right_side(figure.interval, line, at_least=bound.at_least):
                return check("pass", "the whole interval is on the right side of the line", p=p)
            why = "" if p < ONE_SIDED else "the interval reaches both sides of the line"
            return check("undecided", why, p)
        if figure.without:
            return check("untestable", f"it has no interval: {figure.without}")
        is_right = figure.value >= line if bound.at_least else figure.value <= line
        return check("pass" if is_right else "fail", "a count: it is compared as it is")


def _allows_unscored(name: str, bounds: Sequence[Bound]) -> bool:
    metric = name.rpartition(".")[0]
    wanted = {one for kind in (NOT_ANSWERED, NOT_SCORED) for one in (kind, f"{metric}.{kind}")}
    return any(bound.name in wanted and not bound.at_least for bound in bounds)


def _corrected_share(one: CorrectedRate) -> KnownFigure:
    """Return a corrected share as a figure."""
    ends = one.interval and (100 * one.interval[0], 100 * one.interval[1])
    value = None if one.value is None else 100 * one.value
    span = (0.0, 100.0)
    return KnownFigure(value, "%", ends, one.without, one.labels, span, of="label")


def _line_of(bound: Bound, figure: KnownFigure) -> float:
    """Return the value of a bound in the unit of its figure, if it can be meant in one way only."""
    value = bound.value
    if figure.unit == "%":
        if bound.percent or value == 0 or value > 1 or value < 0:
            return value
        raise UsageError(
            f"{bound.option} {bound.name}={value:g}: the figure is in per cent, so this is "
            f"{value:g} % and not {100 * value:g} %; write {bound.name}={value:g}% or "
            f"{bound.name}={100 * value:g}%"
        )
    if figure.range is None:
        if bound.percent and figure.total is not None:
            return value / 100 * figure.total
        if bound.percent:
            raise UsageError(
                f"{bound.option} {bound.name}={value:g}%: the figure is not a share, so there is "
                f"no percentage of it; write a number"
            )
        return value
    low, high = figure.range
    if bound.percent:
        return float(low + value / 100 * (high - low))
    if low <= value <= high:
        return value
    other = f" or {bound.name}={value:g}%" if high == 1 and 1 < value <= 100 else ""
    raise UsageError(
        f"{bound.option} {bound.name}={value:g}: the figure lies between {low:g} and {high:g}, so "
        f"the bound decides nothing; expected a number between them{other}"
    )


# Earlier runs ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ComparedRuns:
    """The metrics that a run shares with an earlier one, paired."""

    path: Path
    runs: tuple[Mapping[str, Any], Mapping[str, Any]]
    paired: PairedRuns
    earlier: Earlier

    @classmethod
    def read(cls, path: Path, run: Mapping[str, Any], earlier: Earlier) -> "ComparedRuns":
        """Pair a run with an earlier one.

        Raises:
            RunFolderError: no metric or question in common, or a folder is damaged.
            UsageError: a figure does not exist, or the runs were judged in different ways.
        """
        before = read_finished_run(earlier.path)
        names = [name for name in run["metrics"] if name in before["metrics"]]
        if not names:
            lists = [", ".join(one["metrics"]) or "none" for one in (before, run)]
            raise RunFolderError(
                f"{earlier.path} and {path} have no metric in common ({lists[0]}; {lists[1]}); "
                "score both with the same --metric"
            )
        if not earlier.other_judge and (differ := changed_judges(before, run, names)):
            raise UsageError(
                f"{earlier.path} and {path} were judged in different ways: {'; '.join(differ)}. "
                "A change of the judge is not a change of the answers: score both runs in the same "
                "way, or accept it with --allow-other-judge"
            )
        paired = read_pairs((earlier.path, path), (before, run), names)
        if not len(paired.pairing.first):
            raise RunFolderError(
                f"{earlier.path} and {path} have no question in common; expected runs of the same "
                "questions, whose texts may differ in case and white space alone"
            )
        return cls(path, (before, run), paired, earlier)

    def against(self, seed: int) -> Against:
        """Return what changed, for people to read."""
        pairing, scores = self.paired.pairing, self.paired.scores
        return Against(
            self.earlier.path,
            {name: outcome_changes(*both, pairing) for name, both in scores.items()},
            {
                name: figure_changes(*both, pairing, headline_figures(both)[0], seed)
                for name, both in scores.items()
            },
            {name: answer_changes(*both, pairing) for name, both in scores.items()},
        )

    def checks(self, seed: int, rates: Mapping[str, Corrected], *, named: bool) -> list[Check]:
        """Return the checks of outcomes, of the figures that were named, of corrected shares, and
        of answers without a partner.

        named: whether the earlier run is named in the names of the checks.
        """
        self._check_figure_names(with_labels=bool(rates))
        result: list[Check] = []
        for name, scores in self.paired.scores.items():
            changes = outcome_changes(*scores, self.paired.pairing, self.earlier.margin)
            result += [self._no_rise(name, one) for one in changes if one.is_unwanted]
            result += self._figures(name, scores, seed)
        result += [self._no_less_right(name, one) for name, one in rates.items()]
        return [*result, self._missing(named=named)]

    @property
    def _rule(self) -> str:
        margin = self.earlier.margin
        allowed = f", by {margin:g} % of its range at most" if margin else ""
        return f"no worse than {self.earlier.path}{allowed}"

    def _no_rise(self, name: str, change: OutcomeChange) -> Check:
        """Return the check of an outcome that must not be more frequent."""
        margin, value = self.earlier.margin, change.change.value
        interval, p = change.change.interval, change.rise_p
        counts = f"more in {change.risen:,} of {amount(change.units, 'question')}, fewer in "
        counts += f"{change.fallen:,}"
        result: Result = "undecided"
        if not change.risen + change.fallen:
            # Nothing changed, so nothing got worse; of very few questions that says nothing.
            can_decide = share_rise_p(change.units, 0, change.units, margin / 100) < ONE_SIDED
            result, p = ("pass" if can_decide else "untestable"), None
            counts = f"the same in all {amount(change.units, 'question')}"
            if not can_decide:
                counts = f"{amount(change.units, 'question')} cannot show a change"
        elif interval is not None and is_right_side(interval, margin, at_least=False):
            result = "pass"
        if not margin and change.risen + change.fallen < FEWEST_CHANGED:
            # So few changes cannot raise an alarm, so the other rules are not corrected for this
            # one (Tarone 1990): six metrics find a loss in 30 questions nearly as often as one.
            p = None
        allowed = f", by {margin:g} points at most" if margin else ""
        return Check(
            f"{name}.{change.kind}",
            f"no more than in {self.earlier.path}{allowed}",
            value,
            interval,
            margin,
            result,
            counts,
            "%",
            (change.first, change.second),
            change.units,
            fail_p=p,
        )

    def _check_figure_names(self, *, with_labels: bool) -> None:
        """Refuse names of figures that are of no metric, or of which no side is better."""
        for name in self.earlier.figures:
            metric, _, key = name.partition(".")
            if metric not in self.paired.scores:
                known = did_you_mean("metric of both runs", metric, list(self.paired.scores))
                raise UsageError(f"--figure: {known}; expected METRIC.FIGURE")
            if not key:
                raise UsageError(
                    f"--figure: expected METRIC.FIGURE, as in {metric}.mean, got {name!r}"
                )
            second = self.paired.scores[metric][1]
            if key == RIGHT and with_labels:
                continue
            if key not in second.figures:
                all_names = [f"{metric}.{one}" for one in second.figures]
                raise UsageError(f"--figure: {did_you_mean('figure', name, all_names)}")
            if not better_of(second.figures[key], second.info):
                raise UsageError(
                    f"--figure {name}: it is not known whether more of it is better; use --min or "
                    "--max"
                )

    def _figures(self, name: str, scores: tuple[RunScores, RunScores], seed: int) -> list[Check]:
        """Return the checks of the figures that were named; of a metric without a line that of its
        first headline figure, as it has no other way to get worse."""
        second = scores[1]
        keys = [
            one.removeprefix(f"{name}.")
            for one in self.earlier.figures
            if one.startswith(f"{name}.") and one != f"{name}.{RIGHT}"
        ]
        if not keys and PASSED in second.outcomes.shares:
            return []
        chosen, absent = headline_figures(scores, keys)
        if not keys:
            known = [key for key in chosen if key in second.figures]
            with_side = [key for key in known if better_of(second.figures[key], second.info)]
            chosen, absent = with_side[:1], {}
        changed = figure_changes(*scores, self.paired.pairing, chosen, seed)
        reason = why_not_compared(self.paired.pairing, *scores)
        absent |= {key: reason for key in chosen if key not in changed}
        result = [self._no_worse(name, one, second.info) for one in changed.values()]
        return result + [
            Check(f"{name}.{key}", self._rule, None, None, 0.0, "fail", f"it has no change: {why}")
            for key, why in absent.items()
        ]

    def _no_worse(self, name: str, change: FigureChange, info: MetricInfo) -> Check:
        """Return the check of a figure over the pairs that are behind it in both runs."""
        ends, margin = change.figure.within(info.score_range), self.earlier.margin
        if margin and ends is None:
            raise UsageError(
                f"--margin: the range of {name}.{change.key} is not known, so there is no "
                "percentage of it; leave the margin out, or use --min or --max"
            )
        width = ends[1] - ends[0] if ends else 1.0
        higher = change.better == "higher"
        line = (-1 if higher else 1) * margin / 100 * width
        value, interval = change.difference.value, change.difference.interval
        result: Result = "untestable"
        why, p = f"it has no interval: {change.difference.without}", None
        if interval is not None:
            p = p_of_side(value, interval, line, at_least=higher)
            result, why = "undecided", "" if p < ONE_SIDED else "the interval reaches both sides"
            if is_right_side(interval, line, at_least=higher):
                result, why = "pass", "the whole interval is on the right side of the line"
        both = change.first, change.second
        unit = change.figure.unit
        key = f"{name}.{change.key}"
        n = change.questions
        return Check(key, self._rule, value, interval, line, result, why, unit, both, n, fail_p=p)

    def _no_less_right(self, name: str, corrected: Corrected) -> Check:
        """Return the check of the change of the corrected share of right answers, in points."""
        key, line = f"{name}.{RIGHT}", -self.earlier.margin
        difference = next(iter(corrected.differences), None)
        if difference is None or difference.interval is None:
            reason = next((rate.without for rate in corrected.rates if rate.without), "")
            return Check(key, self._rule, None, None, line, "untestable", reason, "%")
        value = -100 * difference.value  # this run less the earlier one
        ends = -100 * difference.interval[1], -100 * difference.interval[0]
        p = p_of_side(value, ends, line, at_least=True)
        is_right = is_right_side(ends, line, at_least=True)
        result: Result = "pass" if is_right else "undecided"
        why = "the whole interval is on the right side of the line"
        if not is_right:
            why = "" if p < ONE_SIDED else "the interval reaches both sides of the line"
        after, before = (100 * (rate.value or 0.0) for rate in corrected.rates)
        return Check(
            key, self._rule, value, ends, line, result, why, "%", (before, after), fail_p=p
        )

    def _missing(self, *, named: bool) -> Check:
        """Return the check of answers of the earlier run that have no partner."""
        pairing = self.paired.pairing
        lost, total = pairing.only_first, pairing.only_first + len(pairing.first)
        allowed = self.earlier.missing.of(total)
        rule = f"at most {self.earlier.missing} answers without a partner (--allow-missing)"
        why = f"{lost:,} of the {total:,} answers of {self.earlier.path} have no partner"
        name = f"{MISSING} since {self.earlier.path}" if named else MISSING
        return Check(name, rule, lost, None, allowed, "pass" if lost <= allowed else "fail", why)

    def notes(self) -> list[str]:
        """Say what was paired, which metrics were not, and what differs besides the answers."""
        before, after = self.runs
        lines = [f"against {self.earlier.path}: {self.paired.pairing.in_words()}"]
        if lost := [one for one in before["metrics"] if one not in after["metrics"]]:
            lines.append(f"not in this run, so not compared: {', '.join(lost)}")
        lines += changed_settings(before, after, list(self.paired.scores))
        return [*lines, *what_differs(self.paired.pairing, *self.paired.keys)]
