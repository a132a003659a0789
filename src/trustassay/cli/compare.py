"""``trustassay compare``: two runs by their scores, or answers by a judge."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trustassay.cli.common import Json
from trustassay.cli.options import given, with_options
from trustassay.cli.results import show_plan, show_worse, tell
from trustassay.errors import UsageError
from trustassay.options import Argument, Flag, Records, Seed, Spending
from trustassay.show.terminal import one_line, print_json, say, show_rows

if TYPE_CHECKING:
    from trustassay.show.document import Block, Row
    from trustassay.statistics.comparison import Difference
    from trustassay.workflows.compare import Comparison, Side, WinRate


@dataclass(frozen=True)
class Judged:
    """What is compared by whom; ``page`` is where the page goes, ``run`` the folder of the run."""

    first: Path
    second: Path
    judge: str
    prompt: Path | None
    run: Path | None
    page: Path | None
    seed: int


def show_win_rate(
    asked: Judged, records: Records, spending: Spending, *, dry_run: bool, as_json: bool
) -> None:
    """Compare and print; raises as :func:`~trustassay.workflows.compare.win_rate`."""
    from trustassay.api import Run
    from trustassay.calls.client import CallOptions
    from trustassay.metrics.pairwise import Pairwise
    from trustassay.runs.folder import RunFolder
    from trustassay.workflows import compare

    metric = Pairwise(None if asked.prompt is None else str(asked.prompt))
    options = compare.WinRateOptions(
        metric, asked.seed, progress=True, calls=CallOptions.of(**spending), **records
    )
    out = asked.run or _default_folder(asked, metric.settings(), records)
    inputs = asked.first, asked.second, asked.judge
    if dry_run:
        show_plan(compare.plan_win_rate(*inputs, out, options), as_json=as_json)
        return
    found = compare.win_rate(*inputs, out, options)
    run = Run(RunFolder(found.path), found.outcome)
    failed = tell(run, as_json=False, worst=False)
    for line in _left_out(found, asked):
        say(one_line(line))
    say(one_line(win_rate_headline(found, asked)))
    if asked.page:
        asked.page.parent.mkdir(parents=True, exist_ok=True)
        say(f"page: {run.report(asked.page)}")
    if as_json:
        print_json(found.to_dict())
    if failed:
        raise typer.Exit(1)


def _default_folder(asked: Judged, settings: Any, records: Records) -> Path:
    from trustassay.runs.intake import default_folder

    other = default_folder(asked.second).name  # which changes with the file
    return default_folder(
        asked.first,
        second=other,
        judge=asked.judge,
        metrics=settings,
        seed=asked.seed,
        limit=records.get("limit"),
        fields=records.get("fields", {}),
    )


def _left_out(found: WinRate, asked: Judged) -> list[str]:
    pairs = found.pairs
    counts = (
        (pairs.only_first, f"questions of {asked.first} alone"),
        (pairs.only_second, f"questions of {asked.second} alone"),
        (pairs.blank, "questions to which one of them has no answer"),
    )
    return [f"left out: {count:,} {words}" for count, words in counts if count]


def win_rate_headline(found: WinRate, asked: Judged) -> str:
    """Return a sentence on who is preferred, and how sure that is."""
    summary = found.summary
    rate, values = summary.values["win_rate"], summary.values
    dropped = {name: values[name] for name in ("unsure", "inconsistent", "unreadable")}
    why = ", ".join(f"{count} {name}" for name, count in dropped.items() if count)
    rest = f"{sum(int(count or 0) for count in dropped.values())} dropped"
    rest += (f" ({why})" if why else "") + (f", {summary.failed} failed" if summary.failed else "")
    if rate is None:
        return f"Nothing was won or lost in both orders: {rest}."
    counts = f"{values['wins']} won, {values['losses']} lost, {rest}"
    words = f"{asked.first} wins {rate:.1f} % against {asked.second}: {counts}"
    if reason := summary.without_interval.get("win_rate"):
        return f"{words}; whether that is a real difference is unknown ({reason})."
    low, high = summary.intervals["win_rate"]
    clear = "" if low > 50 or high < 50 else ", which is no clear difference"
    return f"{words}{clear} (95 % interval {low:.1f} to {high:.1f})."


COLUMNS = ("first", "second", "change", "95 % interval", "p")
ON_PAGE = 200
"""Changed answers of a kind on the page."""
OF_OUTCOMES = ("first", "second", "change", "p of a rise")
OF_FIGURES = ("first", "second", "change", "95 % interval", "")


@with_options
def compare(  # noqa: PLR0913 - one argument an option
    first: Annotated[
        Path,
        Argument(
            "The earlier run's folder; with --judge answers of any kind: a file, or a run.",
            metavar="RUN",
        ),
    ],
    second: Annotated[
        Path,
        Argument(
            "The later run's folder; with --judge the answers to compare with.", metavar="RUN"
        ),
    ],
    *,
    metric: Annotated[
        str | None,
        Flag("The metric to compare, if the runs share several.", metavar="NAME"),
    ] = None,
    seed: Seed,
    as_json: Json,
    out: Annotated[
        Path | None,
        Flag(
            "Write a page: changed answers and both distributions, or all pairs.",
            name="--page --out",
            metavar="FILE",
        ),
    ] = None,
    judge: Annotated[
        str | None,
        Flag(
            "A judge that says whose answer is better, a URI as for --model of score: the "
            "win rate is reported, and no scores are compared.",
            metavar="URI",
        ),
    ] = None,
    prompt: Annotated[
        Path | None,
        Flag("With --judge: your own template; filled with question, first, second and fence."),
    ] = None,
    run: Annotated[
        Path | None,
        Flag(
            "With --judge: the folder of the calls and verdicts. Run the same command again "
            "to continue. Default: one in trustassay-runs.",
            name="--run",
        ),
    ] = None,
    records: Records,
    spending: Spending,
    dry_run: Annotated[
        bool,
        Flag("With --judge: show the calls that would be made.", name="--dry-run"),
    ] = False,
) -> None:
    """Compare two runs: figures, single answers, and the distribution of scores; or answers by a
    judge.

    Answers are paired by id and question, else by question. The answers that got worse come first.
    With --judge the answers to the same questions are compared in both orders, and the win rate of
    the first input is reported.

    \b
    trustassay compare runs/monday runs/tuesday
    trustassay compare runs/monday runs/tuesday --metric harmonicity \\
        --page change.html
    trustassay compare tuned.jsonl vanilla.jsonl --judge openai:gpt-4o-mini \\
        --budget 2usd
    """
    if judge is not None:
        if metric is not None:
            raise UsageError("--metric: a judge compares answers, not scores")
        asked = Judged(first, second, judge, prompt, run, out, seed)
        show_win_rate(asked, records, spending, dry_run=dry_run, as_json=as_json)
        return
    if flags := given(records, spending, prompt=prompt, run=run, dry_run=dry_run):
        raise UsageError(f"{flags[0]}: has an effect with --judge alone")
    from trustassay.workflows import compare as comparing

    found = comparing.compare(first, second, metric=metric, seed=seed)
    _show(found)
    if out:
        write_comparison(found, out)
        say(f"page: {out}")
    if as_json:
        print_json(found.to_dict())


def headline(found: Comparison) -> str:
    """Return a sentence on how the mean and the distribution changed."""
    from trustassay.show.text import p_text

    change = found.paired or found.mean
    a, b = (float(side.scores.mean()) for side in (found.first, found.second))
    words = f"The mean went from {a:.3f} to {b:.3f}"
    low, high = change.interval or (-math.inf, math.inf)
    if change.interval is None:
        words += f"; whether that is a real change is unknown ({change.without})"
    elif low <= 0 <= high:
        words += f"; that is no clear change (95 % interval {low:+.3f} to {high:+.3f})"
    else:
        better = (change.value < 0) == found.metric.lower_is_better
        words += f", which is {'better' if better else 'worse'}: by {change.value:+.3f}"
        words += f" (95 % interval {low:+.3f} to {high:+.3f})"
    p = found.distribution.p
    if p is None:
        words += ". The distributions are not tested: several answers belong to one question"
    else:
        differ = "differ" if p < 0.05 else "do not differ significantly"
        words += f". The distributions {differ} (p = {p_text(p)})"
    return f"{words}.".replace("-", "−")


def rows(found: Comparison) -> list[Row]:
    """Return the table of figures."""
    import numpy as np

    from trustassay.show.document import Row
    from trustassay.show.text import p_text

    def row(name: str, of: list[float], change: Difference, digits: int, why: str) -> Row:
        cells = [f"{value:.{digits}f}" for value in of]
        cells += [f"{change.value:+.{digits}f}", _interval(change, digits), ""]
        return Row(name, [cell.replace("-", "−") for cell in cells], why)

    def both(figure) -> list[float]:  # type: ignore[no-untyped-def]
        return [float(figure(side)) for side in (found.first, found.second)]

    def below(side: Side) -> float:
        return side.share_below(found.stable_below or 0.0)

    table = [
        row("mean", both(lambda s: s.scores.mean()), found.mean, 3, "of all scores in a run"),
        row("median", both(lambda s: np.median(s.scores)), found.median, 3, ""),
    ]
    if found.stable:
        words = f"answers whose score is below {found.stable_below:g}"
        table.append(row("stable share, %", both(below), found.stable, 1, words))
    if found.paired and found.paired_p is not None:
        cells = ["", "", f"{found.paired.value:+.3f}", _interval(found.paired, 3)]
        why = (
            f"mean difference over {found.pairs:,} samples that both runs scored; p from sign flips"
        )
        cells = [cell.replace("-", "−") for cell in cells]
        table.append(Row("paired difference", [*cells, p_text(found.paired_p)], why))
    far = found.distribution
    why = "largest distance of the distribution functions (Kolmogorov-Smirnov); p from permutations"
    p = "" if far.p is None else p_text(far.p)
    table.append(Row("distance", ["", "", f"{far.statistic:.3f}", "", p], why))
    return table


def _interval(change: Difference, digits: int) -> str:
    if change.interval is None:
        return "too few"
    low, high = change.interval
    return f"{low:+.{digits}f} to {high:+.{digits}f}"


def figure_rows(found: Comparison) -> list[Row]:
    """Return the table of headline figures over the pairs."""
    from trustassay.show.document import Row
    from trustassay.show.text import rounded

    table = []
    for key, one in found.figures.items():
        digits = 1 if one.figure.unit in ("%", "°") else 3
        cells = [rounded(value, one.figure.unit) for value in (one.first, one.second)]
        cells += [f"{one.difference.value:+.{digits}f}", _interval(one.difference, digits)]
        cells = [cell.replace("-", "−") for cell in (*cells, one.verdict)]
        table.append(Row(key, cells, one.figure.explanation))
    return table


def outcome_rows(found: Comparison) -> list[Row]:
    """Return the table of what became of the answers: scored, refused, failed, missing, ..."""
    from trustassay.show.document import Row
    from trustassay.show.text import p_text

    table = []
    for one in found.outcomes:
        change = 100 * (one.second / one.of_second - one.first / one.of_first)
        cells = [f"{one.first:,}", f"{one.second:,}", f"{change:+.1f} %".replace("-", "−")]
        why = "" if one.p is None else f"more in {one.risen:,} of {one.questions:,} questions"
        table.append(Row(one.name, [*cells, "" if one.p is None else p_text(one.p)], why))
    return table


def paired_in_words(found: Comparison) -> str:
    """Say what was paired, and over what figures and answers are compared."""
    words = found.pairing.in_words()
    if not len(found.pairing.first):
        return f"{words}; the runs are compared as independent samples"
    return words


def _show(found: Comparison) -> None:
    say(one_line(f"{found.metric.title}: {found.first.path} and {found.second.path}"))
    say(paired_in_words(found))
    show_rows("answers", OF_OUTCOMES, outcome_rows(found))
    if found.figures:
        show_rows("figure of the pairs", OF_FIGURES, figure_rows(found))
    for key, why in found.not_compared.items():
        say(one_line(f"{key} is not compared: {why}"))
    if len(found.pairing.first):
        show_worse(found.metric.name, found.answers)
    show_rows("all scores", COLUMNS, rows(found))
    sizes = [f"{len(side.scores):,}" for side in (found.first, found.second)]
    say(f"{sizes[0]} and {sizes[1]} scores, {found.pairs:,} of them paired")
    say(headline(found))
    for warning in found.warnings:
        say(one_line(f"note: {warning}"))


def write_comparison(found: Comparison, path: Path) -> None:
    """Write the page of a comparison."""
    from trustassay.show.document import Document, Section, Table, Text

    names = [side.path.name or str(side.path) for side in (found.first, found.second)]
    note = (
        "Only scored answers are in a mean. p: one-sided, that the share did not rise, over "
        "questions with answers in both runs."
    )
    outcomes: list[Block] = [Table("Answers", OF_OUTCOMES, outcome_rows(found)), Text(note, "note")]
    sections = [Section("What became of the answers", outcomes)]
    if found.figures or len(found.pairing.first):
        sections.append(Section("Answers to the same questions", [*_answer_parts(found)]))
    table = Table("Figure", COLUMNS, rows(found), "In numbers")
    sections.append(Section(f"{found.metric.title}: all scores", [*_distributions(found), table]))
    Document(
        "compare",
        f"{names[0]} → {names[1]}",
        {
            "first run": str(found.first.path),
            "second run": str(found.second.path),
            "scores": f"{len(found.first.scores):,} and {len(found.second.scores):,}",
            "paired": paired_in_words(found),
        },
        headline(found).replace("p = ", "p\xa0=\xa0").replace("95 %", "95\xa0%"),
        found.warnings,
        sections,
    ).write(path)


def _answer_parts(found: Comparison) -> Iterator[Block]:
    """Yield the figures over pairs of answers, and the answers that changed, some of each kind."""
    from trustassay.show.document import ChangedAnswer, ChangedAnswers, Table, Text

    if found.figures:
        yield Table("Figure", OF_FIGURES, figure_rows(found))
    for key, why in found.not_compared.items():
        yield Text(f"{key} is not compared: {why}", "note")
    answers = found.answers
    if not len(found.pairing.first):
        return
    yield Text(f"{answers.in_words()}.")
    for kind, title, changes in (
        ("worse", "Worse", answers.worse),
        ("better", "Better", answers.better),
        ("other", "Another verdict, and no score in one of the runs", answers.other),
    ):
        shown = [
            ChangedAnswer(one.question, one.ids[1], one.in_words(), one.reasons, one.responses)
            for one in changes[:ON_PAGE]
        ]
        if shown:
            yield ChangedAnswers(title, shown, answers.counts[kind], folded=kind != "worse")


def _distributions(found: Comparison) -> list[Block]:
    """Draw the scores of both runs, and both distribution functions."""
    import numpy as np
    from markupsafe import Markup

    from trustassay.show.charts import (
        TOO_FEW,
        Curve,
        Mark,
        beyond,
        curves_svg,
        ridge_svg,
        ridges_of,
    )
    from trustassay.show.document import MEAN, Bar, Bars, Chart, Drawing
    from trustassay.show.text import number, visible, with_error

    groups = found.groups
    ridges = ridges_of(groups)
    top = groups.value(ridges.axis)
    axis = [f"{end:g}" for end in (groups.low, groups.value(ridges.axis / 2), top)]
    bars, curves, names = [], [], []
    for style, kind, (name, group) in zip(
        ("one", "two"), ("first", "second"), groups.cells.items(), strict=True
    ):
        past = beyond(ridges, group)
        mean = with_error(group.scores.mean, group.scores.error)
        after = f"{past:,} beyond →" if past else ""
        drawing = ridge_svg(groups, group, ridges)
        bars.append(Bar(name.model or "", mean, drawing, group.n, style, after))
        shares = np.cumsum(group.counts)[: ridges.axis] / max(group.n, 1)
        points = [(0.0, 0.0)]
        for place, share in enumerate(shares.tolist()):
            points += [(place / ridges.axis, share), ((place + 1) / ridges.axis, share)]
        curves.append(Curve(kind, points))
        sign = Markup('<span class="sign {}"></span> <bdi>{}</bdi>, ')
        names.append(sign.format(kind, visible(name.model or "")))
    note = Markup(
        "Across: the score; height: share of the run’s answers, the tallest bar {} %{}. {}mean{}."
    ).format(
        number(100 * ridges.peak),
        f", where bars of groups of fewer than {TOO_FEW} are cut" if ridges.cut else "",
        MEAN,
        Markup(', <span class="sign bound"></span> stable below {:g}').format(groups.stable_below)
        if groups.stable_below is not None
        else "",
    )
    at, far = found.distribution.at, found.distribution.statistic
    bound = Mark("bound", (at - groups.low) / (top - groups.low))
    label = f"Share of answers up to a score: the runs are {number(far, 3)} apart at {at:.3g}"
    apart = Markup('{}<span class="sign bound"></span> furthest apart, by {} at {:.3g}.').format(
        Markup("").join(names), number(far, 3), at
    )
    drawing = curves_svg(curves, label, [bound] if at <= top else ())
    return [
        Chart("Both distributions", note, [Bars(bars, axis, "pair")]),
        Chart("Share of answers up to a score", apart, [Drawing(drawing, "percent", axis)]),
    ]
