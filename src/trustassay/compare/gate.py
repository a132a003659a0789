"""``gate``: decides whether a run is good enough, by bounds and by comparison with earlier runs.

1. Bounds: shares of all questions (``--max failed=10%``), or any figure of the summary.
2. Earlier runs: no rise of the questions that failed or got no answer.
3. All rules together: p-values are corrected for the number of rules
   (:func:`~trustassay.compare.gate_rules.decide_checks`).
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.compare.changes import (
    ONE_SIDED_LEVEL,
    FigureChange,
    OutcomeChange,
    compare_figures,
    compare_outcomes,
    explain_missing_figure,
    find_answer_changes,
)
from trustassay.compare.corrected import (
    RIGHT_FIGURE,
    CorrectedRate,
    CorrectedShares,
    LabelFiles,
    correct,
)
from trustassay.compare.gate_rules import (
    Bound,
    ChangesSinceRun,
    CheckResult,
    EarlierRun,
    Gate,
    GateCheck,
    decide_checks,
    is_right_side,
    p_of_side,
)
from trustassay.compare.pairing import describe_differences, read_keys
from trustassay.compare.question_weighing import QuestionWeighing
from trustassay.compare.run_scores import (
    PairedRuns,
    RunScores,
    choose_headline_figures,
    describe_changed_judges,
    describe_changed_settings,
    describe_copies,
    find_better_direction,
    read_finished_run,
    read_pairs,
    read_scores,
)
from trustassay.core.assessment import INCOMPLETE
from trustassay.core.json_form import flatten
from trustassay.core.metric import Mean, MetricInfo, Share
from trustassay.core.outcome import (
    FAILED,
    NOT_ANSWERED,
    NOT_SCORED,
    PASSED,
    Outcomes,
)
from trustassay.errors import RunFolderError, UsageError, did_you_mean
from trustassay.runs.counts import read_outcomes
from trustassay.runs.folder import ABOUT, RunFolder, load_metrics
from trustassay.runs.remarks import DRAWN, LEFT_OUT, write_left_out, write_metric_remarks
from trustassay.runs.units import ANSWER, UNIT
from trustassay.statistics.comparison import MIN_CHANGED_QUESTIONS, share_rise_p
from trustassay.statistics.intervals import Interval
from trustassay.statistics.sequential import mean_interval_at_any_n
from trustassay.text.numbers import amount

NOTHING_JUDGED = "no answer could be judged"
"""Why a share of failed questions proves nothing."""
WITHIN_LIMIT = "the whole interval is within the limit"
CROSSES_LIMIT = "the interval includes the limit"
"""Reasons of a rule that is decided by its interval alone, and of one that is not."""
MAX_UNSCORED = 5.0
"""Largest share of questions without a score, in per cent, at which a bound on a figure over scored
answers can pass: a model must not pass by refusing the questions that it would get wrong. A bound
on the unscored questions themselves (``--max not_answered``) replaces this limit."""
MISSING_CHECK = "missing"
"""The name of the check that counts answers without a partner."""


def gate(
    path: Path,
    bounds: Sequence[Bound] = (),
    earlier: EarlierRun | Sequence[EarlierRun] = (),
    *,
    labels: LabelFiles | None = None,
    seed: int = 0,
    sequential: bool = False,
) -> Gate:
    """Compare the figures of a finished run with bounds and with earlier runs.

    Args:
        path: the run's folder.
        bounds: limits of its figures.
        earlier: the runs that it must not be worse than.
        labels: with labels, the share of right answers is a figure too: ``METRIC.right``
            (:mod:`~trustassay.compare.corrected`).
        seed: of the resamples.
        sequential: use intervals that hold at all sizes of a growing run together; its questions
            must have been drawn at random.

    Raises:
        RunFolderError: a folder holds no finished run, or is damaged; no metric in common.
        UsageError: no rule is given, or a figure does not exist or cannot be compared.
    """
    earlier_runs = [earlier] if isinstance(earlier, EarlierRun) else list(earlier)
    if not bounds and not earlier_runs:
        raise UsageError(
            "no rule: give --min FIGURE=NUMBER, --max FIGURE=NUMBER or --no-worse-than RUN"
        )
    # 1. The figures of this run, by their dotted names.
    run, folder = read_finished_run(path), RunFolder(path)
    summary = folder.read_summary() or {}
    outcomes = read_outcomes(folder, load_metrics(run).values())
    if sequential:
        _check_sequential(path, run, bool(earlier_runs or labels))
    figures = _GateFigures(path, run, summary, outcomes)
    figures.weigh_by_question({bound.name for bound in bounds}, seed)
    if sequential:
        figures.hold_at_any_size()
    # A file of labels for each run is given in this order: this run first.
    corrected_pairs = [
        correct([path, before.path], labels, seed=seed) if labels else {} for before in earlier_runs
    ]
    # With earlier runs, the correction of each pair already contains this run.
    corrected = correct([path], labels, seed=seed) if labels and not earlier_runs else {}
    corrected = corrected_pairs[0] if corrected_pairs else corrected
    figures.known |= {
        f"{name}.{RIGHT_FIGURE}": _as_known_figure(shares.rates[0])
        for name, shares in corrected.items()
    }
    # 2. The checks of the bounds, then those of each earlier run.
    checks = [check for bound in bounds for check in figures.checks(bound, bounds)]
    compared = [ComparedRuns.read(path, run, before) for before in earlier_runs]
    for pair, corrected_pair in zip(compared, corrected_pairs, strict=True):
        checks += pair.build_checks(seed, corrected_pair, with_run_name=len(compared) > 1)
    # 3. Notes in the order of the checks. All checks are decided together at the end.
    notes = [note for pair in compared for note in pair.describe()]
    notes += [
        f"{shares.metric}: {shares.reasons_in_words}"
        for shares in outcomes.values()
        if shares.reasons
    ]
    notes += [*write_left_out(summary), *write_metric_remarks(summary), *describe_copies([path])]
    notes += [line for shares in corrected.values() for line in shares.in_words()]
    notes += figures.notes
    return Gate(
        path,
        decide_checks(checks),
        outcomes,
        [pair.collect_changes(seed) for pair in compared],
        notes,
    )


def _check_sequential(path: Path, run: Mapping[str, Any], has_other_inputs: bool) -> None:
    """Raise UsageError where the intervals of ``--sequential`` do not hold."""
    if has_other_inputs:
        raise UsageError(
            "--sequential: works only with --min and --max, without labels or another run"
        )
    if "strata" in run.get(DRAWN, {}):
        raise UsageError(
            "--sequential: the questions were drawn by strata; score again without --sample-by"
        )
    if DRAWN not in run:
        raise UsageError(
            f"--sequential: the questions of {path} are not in random order, so early results "
            "may be biased; score with --sample N, then again with a larger N"
        )


# Bounds ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KnownFigure:
    """A figure of a run that a bound may refer to."""

    value: float | None
    """``None`` where the figure does not apply."""
    unit: str = ""
    interval: Interval | None = None
    """The 95 % interval of ``value``."""
    without: str = ""
    """Why there is no interval, or no value."""
    n: int = 0
    """Independent questions behind the figure."""
    range: tuple[float, float] | None = None
    """The smallest and largest value that the figure can have."""
    total: int | None = None
    """For a count, the number that is 100 %."""
    unscored: float = 0.0
    """Per cent of the answers that do not count in the figure."""
    incomplete: float = 0.0
    """Per cent of the answers that count in it without someone who was asked and did not answer."""
    left_out: int = 0
    """Answers that do not count in it since their model was not given, which are all of that
    model."""
    of: str = "question"
    """The thing that ``n`` counts."""


class _GateFigures:
    """Every number of a run's summary, by its dotted name."""

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
        # A metric that is not installed is described by what the run stored about it.
        installed = load_metrics(run)
        for metric, metric_summary in summary["metrics"].items():
            about = run.get(ABOUT, {}).get(metric, {}).get("figures", {})
            if metric in installed:
                figures = MetricInfo.of(installed[metric]).figures
                about = {key: figure.to_dict() for key, figure in figures.items()}
            left_out = sum(summary.get(LEFT_OUT, {}).get(metric, {}).values())
            self._add_metric(metric, metric_summary, about, left_out)
        # Other numbers of the summary, such as usage, can be bounded too, but never hide a figure.
        numbers = flatten({k: v for k, v in summary.items() if k not in ("metrics", "outcomes")})
        for name, value in numbers:
            # bool is a subclass of int, and no figure.
            if isinstance(value, int | float) and not isinstance(value, bool):
                self.known.setdefault(name, KnownFigure(value))

    def _add_metric(
        self,
        metric: str,
        summary: Mapping[str, Any],
        about: Mapping[str, Mapping[str, Any]],
        left_out: int,
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
                # A figure without declared support counts every answer.
                unscored=0.0 if behind is None or not n else 100 * (1 - behind / n),
                incomplete=_share_incomplete(summary),
                left_out=0 if behind is None or behind == n else left_out,
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
        """Recompute the wanted figures so that each question counts once.

        Otherwise copies of good answers under new ids would raise a mean.

        Args:
            wanted: names of figures that bounds refer to; others are left alone, as this is slow.
            seed: of the resamples.
        """
        # With --unit answer each answer counts by itself; a note makes that visible.
        if self.run.get(UNIT) == ANSWER:
            keys = read_keys(RunFolder(self.path), {})
            question_count = len(np.unique(keys.question_units))
            if question_count < len(keys.ids):
                self.notes.append(
                    f"{len(keys.ids):,} answers to {amount(question_count, 'question')}; each "
                    "answer counts separately (--unit answer)"
                )
            return
        metrics_with_repeats = [
            name for name, shares in self.outcomes.items() if shares.questions < shares.answers
        ]
        if not metrics_with_repeats:
            return
        keys = read_keys(RunFolder(self.path), self.run)
        questions = np.unique(keys.question_units, return_inverse=True)[1].astype(np.int64)
        units = np.unique(keys.units, return_inverse=True)[1].astype(np.int64)
        for name in metrics_with_repeats:
            outcomes = self.outcomes[name]
            self.notes.append(
                f"{name}: {outcomes.answers:,} answers to "
                f"{amount(outcomes.questions, 'question')}; each "
                "question counts once"
            )
            bounded = [
                known.removeprefix(f"{name}.")
                for known in self.known
                if known in wanted and known.startswith(f"{name}.")
            ]
            if not bounded:
                continue
            weighed = QuestionWeighing(
                read_scores(self.path, self.run, name, keys), questions, units, seed
            )
            for key in bounded:
                figure, estimate = f"{name}.{key}", weighed.estimate(key)
                figure_before = self.known[figure]
                if figure_before.value is None or estimate is None:
                    continue
                self.known[figure] = replace(
                    figure_before,
                    value=estimate.value,
                    interval=estimate.interval,
                    without=estimate.without,
                    n=estimate.n,
                )

    def hold_at_any_size(self) -> None:
        """Replace the intervals by ones that hold at all sizes of a growing run together."""
        installed = load_metrics(self.run)
        for name, figure_before in self.known.items():
            if figure_before.interval is None:
                continue
            metric, _, key = name.rpartition(".")
            figure = installed[metric].figures.get(key) if metric in installed else None
            statistic = figure.statistic if figure else None
            # The bound on sums assumes independent values, so several answers to one question are
            # excluded.
            shared = self.outcomes[metric].questions < self.outcomes[metric].answers
            is_mean = self._is_outcome(name) or isinstance(statistic, Mean | Share)
            ends = figure_before.range if is_mean else None
            interval, reason = None, ""
            if ends is None or shared or figure_before.value is None or not figure_before.n:
                reason = (
                    "--sequential needs a share or bounded mean, and one answer to each question"
                )
            else:
                width = ends[1] - ends[0]
                # The interval is defined for values from 0 to 1, so scale there and back.
                share = (figure_before.value - ends[0]) / width
                low, high = mean_interval_at_any_n(figure_before.n * share, figure_before.n)
                interval = ends[0] + width * low, ends[0] + width * high
            self.known[name] = replace(figure_before, interval=interval, without=reason)

    def checks(self, bound: Bound, bounds: Sequence[Bound]) -> list[GateCheck]:
        """Return the checks of a bound: one, or one for each metric if it names an outcome
        alone."""
        names = [bound.name]
        # "failed" without a metric means the outcome of every metric that has it.
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
                f"{bound.option}: {message} (expected {', '.join(sorted(shares))}, or "
                f"METRIC.FIGURE from {self.path}/summary.json)"
            )
        return [self._withhold_pass(self._check(bound, name, bounds), bounds) for name in names]

    def _withhold_pass(self, check: GateCheck, bounds: Sequence[Bound]) -> GateCheck:
        """Return a check that is undecided where all answers of a model are left out unbounded."""
        count = self.known[check.name].left_out
        if check.result != "pass" or not count or _has_bound_on_unscored(check.name, bounds):
            return check
        name = self._name_unscored(check.name.rpartition(".")[0])
        message = (
            f"{amount(count, 'answer')} excluded, since the model was not given (see the notes); "
            f"score with --model, or limit such answers with --max {name}=…"
        )
        return replace(check, result="undecided", why=message, fail_p=None)

    def _is_outcome(self, name: str) -> bool:
        """Whether a figure is the share of an outcome among all questions."""
        metric, _, kind = name.rpartition(".")
        return metric in self.outcomes and kind in self.outcomes[metric].shares

    def _explain_failure(self, name: str, bounds: Sequence[Bound]) -> str:
        """Return why a bound fails whatever its interval is, "" where the interval decides."""
        figure, (metric, _, kind) = self.known[name], name.rpartition(".")
        if figure.value is None:
            return f"no value: {figure.without or 'the figure does not apply'}"
        # No failed question, and no error, proves nothing if no question was judged.
        counts_faults = self._is_outcome(name) or (kind == "errors" and metric in self.outcomes)
        proves_nothing = counts_faults and not self.outcomes[metric].judged
        if proves_nothing and kind not in (NOT_ANSWERED, NOT_SCORED):
            return NOTHING_JUDGED
        if figure.unscored > MAX_UNSCORED and not _has_bound_on_unscored(name, bounds):
            return (
                f"{figure.unscored:.1f} % of the questions have no score and are excluded; limit "
                f"them too, with --max {self._name_unscored(metric)}=…"
            )
        if figure.incomplete > MAX_UNSCORED:
            return (
                f"{figure.incomplete:.1f} % of the scores lack the replies of a model (see "
                "the notes); rescore the run when that model answers, or score without it"
            )
        return ""

    def _name_unscored(self, metric: str) -> str:
        """Return the name of the share of questions without a score, as a bound names it."""
        with_line = NOT_ANSWERED in self.outcomes[metric].shares
        return f"{metric}.{NOT_ANSWERED if with_line else NOT_SCORED}"

    def _check(self, bound: Bound, name: str, bounds: Sequence[Bound]) -> GateCheck:
        figure = self.known[name]
        line = _parse_line(bound, figure)
        # No finite sample can show 0 % or 100 %, so such a bound would never pass.
        if self._is_outcome(name) and line == (100.0 if bound.at_least else 0.0):
            raise UsageError(
                f"{bound.option} {bound.name}={line:g}: no sample can prove a share of {line:g} %; "
                f"give a tolerated share, such as {bound.option} {bound.name}={abs(line - 2):g}%. "
                f"To allow no failed samples: --max {name.rpartition('.')[0]}.errors=0"
            )
        rule = f"at {'least' if bound.at_least else 'most'} {line:g}"
        rule += " %" if figure.unit == "%" else ""

        def check(result: CheckResult, message: str, p: float | None = None) -> GateCheck:
            return GateCheck(
                name=name,
                rule=rule,
                value=figure.value,
                interval=figure.interval,
                line=line,
                result=result,
                why=message,
                unit=figure.unit,
                n=figure.n,
                unit_of_n=figure.of,
                fail_p=p,
            )

        if message := self._explain_failure(name, bounds):
            return check("fail", message)
        assert figure.value is not None
        if figure.interval is not None:
            p = p_of_side(figure.value, figure.interval, line, at_least=bound.at_least)
            if is_right_side(figure.interval, line, at_least=bound.at_least):
                return check("pass", WITHIN_LIMIT, p=p)
            message = "" if p < ONE_SIDED_LEVEL else CROSSES_LIMIT
            return check("undecided", message, p)
        if figure.without:
            return check("untestable", f"no interval: {figure.without}")
        # No interval and no reason for its absence: a count, in which chance plays no part.
        is_right = figure.value >= line if bound.at_least else figure.value <= line
        return check("pass" if is_right else "fail", "a count, compared without a test")


def _share_incomplete(summary: Mapping[str, Any]) -> float:
    """Return the per cent of answers that a metric scored without someone who did not answer.

    Args:
        summary: the metric's block of ``summary.json``.
    """
    count = summary.get("details", {}).get(INCOMPLETE, 0)
    return 100 * count / summary["n"] if summary["n"] else 0.0


def _has_bound_on_unscored(name: str, bounds: Sequence[Bound]) -> bool:
    metric = name.rpartition(".")[0]
    accepted_names = {
        name_of_bound
        for kind in (NOT_ANSWERED, NOT_SCORED)
        for name_of_bound in (kind, f"{metric}.{kind}")
    }
    return any(bound.name in accepted_names and not bound.at_least for bound in bounds)


def _as_known_figure(rate: CorrectedRate) -> KnownFigure:
    """Convert a corrected share, from 0 to 1, to a figure in per cent."""
    ends = rate.interval and (100 * rate.interval[0], 100 * rate.interval[1])
    value = None if rate.value is None else 100 * rate.value
    span = (0.0, 100.0)
    return KnownFigure(value, "%", ends, rate.without, rate.labels, span, of="label")


def _parse_line(bound: Bound, figure: KnownFigure) -> float:
    """Return the value of a bound in the unit of its figure; raises UsageError if ambiguous."""
    value = bound.value
    if figure.unit == "%":
        # A number from 0 to 1 without a sign may mean a share or per cent, so it is refused.
        if bound.percent or value == 0 or value > 1 or value < 0:
            return value
        raise UsageError(
            f"{bound.option} {bound.name}={value:g}: the figure is in per cent, so {value:g} could "
            f"mean {value:g} % or {100 * value:g} %; write {bound.name}={value:g}% or "
            f"{bound.name}={100 * value:g}%"
        )
    if figure.range is None:
        # A percentage of a count, such as errors, refers to all samples.
        if bound.percent and figure.total is not None:
            return value / 100 * figure.total
        if bound.percent:
            raise UsageError(
                f"{bound.option} {bound.name}={value:g}%: the figure is not a share; write a "
                "number without a per cent sign"
            )
        return value
    low, high = figure.range
    if bound.percent:
        # Of a score, per cent are per cent of its range: 90 % of a score from -1 to 1 is 0.8.
        return float(low + value / 100 * (high - low))
    if low <= value <= high:
        return value
    # Somebody who writes 90 for a score from 0 to 1 most likely means 90 %.
    other = f" or {bound.name}={value:g}%" if high == 1 and 1 < value <= 100 else ""
    raise UsageError(
        f"{bound.option} {bound.name}={value:g}: the figure is always between {low:g} and "
        f"{high:g}, so this bound has no effect; expected a number in that range{other}"
    )


# Earlier runs ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ComparedRuns:
    """A run paired with an earlier one, with the metrics that both have."""

    path: Path
    runs: tuple[Mapping[str, Any], Mapping[str, Any]]
    """The settings of the earlier run and of this one."""
    paired: PairedRuns
    earlier: EarlierRun
    """How the earlier run is compared."""
    incomplete: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """By metric, the percentages of questions in both runs that were scored without someone who did
    not answer."""

    @classmethod
    def read(cls, path: Path, run: Mapping[str, Any], earlier: EarlierRun) -> "ComparedRuns":
        """Pair a run with an earlier one.

        Raises:
            RunFolderError: no metric or question in common, or a folder is damaged.
            UsageError: a figure does not exist, or the runs were judged in different ways.
        """
        before = read_finished_run(earlier.path)
        names = [name for name in run["metrics"] if name in before["metrics"]]
        if not names:
            lists = [", ".join(run_settings["metrics"]) or "none" for run_settings in (before, run)]
            raise RunFolderError(
                f"{earlier.path} and {path} have no metric in common ({lists[0]}; {lists[1]}); "
                "score both with the same --metric"
            )
        # A different judge shifts scores even of unchanged answers.
        if not earlier.other_judge and (differ := describe_changed_judges(before, run, names)):
            raise UsageError(
                f"{earlier.path} and {path} were judged differently: {'; '.join(differ)}. "
                "Score both runs in the same way, or compare them anyway with --allow-other-judge"
            )
        paired = read_pairs((earlier.path, path), (before, run), names)
        # Two runs of different questions cannot be compared, whatever their figures are.
        if not len(paired.pairing.first):
            raise RunFolderError(
                f"{earlier.path} and {path} have no question in common; expected runs of the same "
                "questions (their texts may differ only in case and white space)"
            )
        summaries = [RunFolder(folder).read_summary() or {} for folder in (earlier.path, path)]
        incomplete = {}
        for name in names:
            shares = [_share_incomplete(summary["metrics"][name]) for summary in summaries]
            incomplete[name] = shares[0], shares[1]
        return cls(path, (before, run), paired, earlier, incomplete)

    def collect_changes(self, seed: int) -> ChangesSinceRun:
        """Collect the changes for people to read."""
        pairing, scores = self.paired.pairing, self.paired.scores
        return ChangesSinceRun(
            self.earlier.path,
            {name: compare_outcomes(*both, pairing) for name, both in scores.items()},
            {
                name: compare_figures(*both, pairing, choose_headline_figures(both)[0], seed)
                for name, both in scores.items()
            },
            {name: find_answer_changes(*both, pairing) for name, both in scores.items()},
        )

    def build_checks(
        self, seed: int, rates: Mapping[str, CorrectedShares], *, with_run_name: bool
    ) -> list[GateCheck]:
        """Return the checks of outcomes, requested figures, corrected shares and missing answers.

        Args:
            seed: of the resamples.
            rates: the corrected shares of both runs, by metric.
            with_run_name: whether the names of the checks contain the earlier run.
        """
        self._check_figure_names(with_labels=bool(rates))
        result: list[GateCheck] = []
        for name, scores in self.paired.scores.items():
            changes = compare_outcomes(*scores, self.paired.pairing, self.earlier.margin)
            has_judged = scores[1].outcomes.judged > 0
            result += [
                self._check_no_rise(name, change, has_judged=has_judged)
                for change in changes
                if change.is_unwanted
            ]
            result += self._check_figures(name, scores, seed)
            result += self._check_incomplete(name)
        result += [self._check_no_less_right(name, shares) for name, shares in rates.items()]
        return [*result, self._check_missing(with_run_name=with_run_name)]

    @property
    def _rule(self) -> str:
        margin = self.earlier.margin
        allowed = f" (margin {margin:g} % of its range)" if margin else ""
        return f"no worse than {self.earlier.path}{allowed}"

    def _check_no_rise(self, name: str, change: OutcomeChange, *, has_judged: bool) -> GateCheck:
        """Check that an unwanted outcome did not become more frequent.

        Args:
            has_judged: whether any question of the later run was judged.
        """
        margin, value = self.earlier.margin, change.change.value
        interval, p = change.change.interval, change.rise_p
        counts = f"rose in {change.risen:,} of {amount(change.units, 'question')}, fell in "
        counts += f"{change.fallen:,}"
        result: CheckResult = "undecided"
        if not change.risen + change.fallen:
            # Nothing changed, so nothing got worse; of very few questions that says nothing.
            # Even a rise in every unit would not be significant: then "no change" means nothing.
            can_decide = share_rise_p(change.units, 0, change.units, margin / 100) < ONE_SIDED_LEVEL
            result, p = ("pass" if can_decide else "untestable"), None
            counts = f"no change in {amount(change.units, 'question')}"
            if not can_decide:
                counts = f"too few to show a change: {amount(change.units, 'question')}"
        elif interval is not None and is_right_side(interval, margin, at_least=False):
            result = "pass"
        # No failed question proves nothing if no question was judged.
        if change.kind == FAILED and not has_judged:
            result, p, counts = "fail", None, NOTHING_JUDGED
        if not margin and change.risen + change.fallen < MIN_CHANGED_QUESTIONS:
            # So few changes cannot raise an alarm, so the other rules are not corrected for this
            # one (Tarone 1990): six metrics find a loss in 30 questions nearly as often as one.
            p = None
        allowed = f" (margin {margin:g} points)" if margin else ""
        return GateCheck(
            name=f"{name}.{change.kind}",
            rule=f"not higher than in {self.earlier.path}{allowed}",
            value=value,
            interval=interval,
            line=margin,
            result=result,
            why=counts,
            unit="%",
            before_after=(change.first, change.second),
            n=change.units,
            fail_p=p,
        )

    def _check_figure_names(self, *, with_labels: bool) -> None:
        """Raise UsageError for figures that do not exist, or that have no better direction."""
        for name in self.earlier.figures:
            metric, _, key = name.partition(".")
            if metric not in self.paired.scores:
                hint = did_you_mean("metric of both runs", metric, list(self.paired.scores))
                raise UsageError(f"--figure: {hint}; expected METRIC.FIGURE")
            if not key:
                raise UsageError(
                    f"--figure: expected METRIC.FIGURE, as in {metric}.mean, got {name!r}"
                )
            second = self.paired.scores[metric][1]
            if key == RIGHT_FIGURE and with_labels:
                continue
            if key not in second.figures:
                all_names = [f"{metric}.{key_of_metric}" for key_of_metric in second.figures]
                raise UsageError(f"--figure: {did_you_mean('figure', name, all_names)}")
            if not find_better_direction(second.figures[key], second.info):
                raise UsageError(
                    f"--figure {name}: whether higher is better is unknown for this figure; use "
                    "--min or --max"
                )

    def _check_figures(
        self, name: str, scores: tuple[RunScores, RunScores], seed: int
    ) -> list[GateCheck]:
        """Return the checks of the figures of one metric that ``--figure`` names.

        Of a metric without a line, its first headline figure is checked by default, since it has no
        outcome that could get worse.
        """
        second = scores[1]
        keys = [
            figure.removeprefix(f"{name}.")
            for figure in self.earlier.figures
            if figure.startswith(f"{name}.") and figure != f"{name}.{RIGHT_FIGURE}"
        ]
        # With a line the outcomes are checked already, so figures are checked on request only.
        if not keys and PASSED in second.outcomes.shares:
            return []
        chosen, absent = choose_headline_figures(scores, keys)
        if not keys:
            # A metric of other settings may lack the figure in one run.
            keys_in_both = [key for key in chosen if key in second.figures]
            with_side = [
                key
                for key in keys_in_both
                if find_better_direction(second.figures[key], second.info)
            ]
            chosen, absent = with_side[:1], {}
        changed = compare_figures(*scores, self.paired.pairing, chosen, seed)
        reason = explain_missing_figure(self.paired.pairing, *scores)
        absent |= {key: reason for key in chosen if key not in changed}
        result = [self._check_no_worse(name, change, second.info) for change in changed.values()]
        # A figure that should be checked and has no change fails: losing it must not let a run
        # pass.
        return result + [
            GateCheck(
                name=f"{name}.{key}",
                rule=self._rule,
                value=None,
                interval=None,
                line=0.0,
                result="fail",
                why=f"the change could not be computed: {reason_of_key}",
            )
            for key, reason_of_key in absent.items()
        ]

    def _check_incomplete(self, name: str) -> list[GateCheck]:
        """Check that no more answers than before were scored without someone who did not answer.

        No check if there are none in either run.
        """
        before, now = self.incomplete.get(name, (0.0, 0.0))
        if not before and not now:
            return []
        check = GateCheck(
            name=f"{name}.{INCOMPLETE}",
            rule=f"not higher than in {self.earlier.path}",
            value=now - before,
            interval=None,
            line=0.0,
            result="fail" if now > before else "pass",
            why="scored without a model that did not answer; a count, compared without a test",
            unit="%",
            before_after=(before, now),
            n=self.paired.scores[name][1].outcomes.answers,
        )
        return [check]

    def _check_no_worse(self, name: str, change: FigureChange, info: MetricInfo) -> GateCheck:
        """Check that a figure, over pairs that count in it in both runs, did not get worse."""
        ends, margin = change.figure.value_range(info.score_range), self.earlier.margin
        if margin and ends is None:
            raise UsageError(
                f"--margin: the range of {name}.{change.key} is unknown, so a margin in per cent "
                "of it is undefined; remove --margin, or use --min or --max"
            )
        # Without a margin the width does not matter, since it is multiplied by 0.
        width = ends[1] - ends[0] if ends else 1.0
        higher = change.better == "higher"
        # The line is a change: slightly below 0 where higher is better, slightly above it
        # otherwise.
        line = (-1 if higher else 1) * margin / 100 * width
        value, interval = change.difference.value, change.difference.interval
        result: CheckResult = "untestable"
        message, p = f"no interval: {change.difference.without}", None
        if interval is not None:
            p = p_of_side(value, interval, line, at_least=higher)
            result, message = "undecided", "" if p < ONE_SIDED_LEVEL else CROSSES_LIMIT
            if is_right_side(interval, line, at_least=higher):
                result, message = "pass", WITHIN_LIMIT
        both = change.first, change.second
        unit = change.figure.unit
        key = f"{name}.{change.key}"
        n = change.questions
        return GateCheck(
            key, self._rule, value, interval, line, result, message, unit, both, n, fail_p=p
        )

    def _check_no_less_right(self, name: str, corrected: CorrectedShares) -> GateCheck:
        """Check the change of the corrected share of right answers, in points."""
        key, line = f"{name}.{RIGHT_FIGURE}", -self.earlier.margin
        difference = next(iter(corrected.differences), None)
        if difference is None or difference.interval is None:
            reason = next((rate.without for rate in corrected.rates if rate.without), "")
            return GateCheck(key, self._rule, None, None, line, "untestable", reason, "%")
        # The difference is earlier minus this run, since this run comes first in the pair.
        value = -100 * difference.value
        ends = -100 * difference.interval[1], -100 * difference.interval[0]
        p = p_of_side(value, ends, line, at_least=True)
        is_right = is_right_side(ends, line, at_least=True)
        result: CheckResult = "pass" if is_right else "undecided"
        message = WITHIN_LIMIT
        if not is_right:
            message = "" if p < ONE_SIDED_LEVEL else CROSSES_LIMIT
        after, before = (100 * (rate.value or 0.0) for rate in corrected.rates)
        return GateCheck(
            key, self._rule, value, ends, line, result, message, "%", (before, after), fail_p=p
        )

    def _check_missing(self, *, with_run_name: bool) -> GateCheck:
        """Check how many answers of the earlier run have no partner."""
        pairing = self.paired.pairing
        lost, total = pairing.only_first, pairing.only_first + len(pairing.first)
        allowed = self.earlier.missing.of(total)
        rule = f"at most {self.earlier.missing} unpaired answers (--allow-missing)"
        message = f"unpaired: {lost:,} of {amount(total, 'answer')} of {self.earlier.path}"
        name = f"{MISSING_CHECK} since {self.earlier.path}" if with_run_name else MISSING_CHECK
        return GateCheck(
            name, rule, lost, None, allowed, "pass" if lost <= allowed else "fail", message
        )

    def describe(self) -> list[str]:
        """Describe what was paired, which metrics were left out, and what else differs."""
        before, after = self.runs
        lines = [f"compared with {self.earlier.path}: {self.paired.pairing.in_words()}"]
        if lost := [metric for metric in before["metrics"] if metric not in after["metrics"]]:
            lines.append(f"metrics missing in this run, so not compared: {', '.join(lost)}")
        lines += describe_changed_settings(before, after, list(self.paired.scores))
        return [*lines, *describe_differences(self.paired.pairing, *self.paired.keys)]
