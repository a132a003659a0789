"""A comparison of two runs: sentences, tables and a page; and a win rate in a sentence."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from markupsafe import Markup

from trustassay.show import document
from trustassay.show.charts import TOO_FEW, Curve, Mark, beyond, curves_svg, ridge_svg, ridges_of
from trustassay.show.text import ends_text, number, p_text, rounded, visible, with_error
from trustassay.statistics.comparison import Difference
from trustassay.workflows.compare import Comparison, Side, WinRate

COLUMNS = ("first", "second", "change", "95 % interval", "p")
ON_PAGE = 200
"""Changed answers of a kind on the page."""
OF_OUTCOMES = ("first", "second", "change", "p of a rise")
OF_FIGURES = ("first", "second", "change", "95 % interval", "")


def win_rate_headline(found: WinRate, first: Path, second: Path) -> str:
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
    message = f"{first} wins {rate:.1f} % against {second}: {counts}"
    if reason := summary.without_interval.get("win_rate"):
        return f"{message}; whether that is a real difference is unknown ({reason})."
    low, high = summary.intervals["win_rate"]
    clear = "" if low > 50 or high < 50 else ", which is not a clear difference"
    return f"{message}{clear} (95 % interval {low:.1f} to {high:.1f})."


def headline(found: Comparison) -> str:
    """Return a sentence on how the mean and the distribution changed."""
    change = found.paired or found.mean
    a, b = (float(side.scores.mean()) for side in (found.first, found.second))
    message = f"The mean went from {a:.3f} to {b:.3f}"
    within = f"95 % interval {ends_text(change.interval, '+')}"
    if change.interval is None:
        message += f"; whether that is a real change is unknown ({change.without})"
    elif change.interval[0] <= 0 <= change.interval[1]:
        message += f"; that is not a clear change ({within})"
    else:
        better = (change.value < 0) == found.metric.lower_is_better
        message += (
            f", which is {'better' if better else 'worse'}: by {change.value:+.3f} ({within})"
        )
    p = found.distribution.p
    if p is None:
        message += ". The distributions are not tested: several answers belong to one question"
    else:
        differ = "differ" if p < 0.05 else "do not differ significantly"
        message += f". The distributions {differ} (p = {p_text(p)})"
    return f"{message}.".replace("-", "−")


def scores(found: Comparison) -> document.Table:
    """Return the table of figures."""

    def row(
        name: str, figure: Callable[[Side], float], change: Difference, why: str, digits: int = 3
    ) -> document.Row:
        cells = [f"{figure(side):.{digits}f}" for side in (found.first, found.second)]
        cells = [cell.replace("-", "−") for cell in cells]
        return document.Row(name, [*cells, *_change(change, digits), ""], why)

    rows = [
        row("mean", lambda side: float(side.scores.mean()), found.mean, "of all scores in a run"),
        row("median", lambda side: float(np.median(side.scores)), found.median, ""),
    ]
    if found.stable and found.stable_below is not None:
        bound = found.stable_below
        why = f"answers whose score is below {bound:g}"
        rows.append(
            row("stable share, %", lambda side: side.share_below(bound), found.stable, why, 1)
        )
    if found.paired and found.paired_p is not None:
        why = (
            f"mean difference over {found.pairs:,} samples that both runs scored; p from sign flips"
        )
        cells = ["", "", *_change(found.paired, 3), p_text(found.paired_p)]
        rows.append(document.Row("paired difference", cells, why))
    far = found.distribution
    why = "largest distance of the distribution functions (Kolmogorov-Smirnov); p from permutations"
    p = "" if far.p is None else p_text(far.p)
    rows.append(document.Row("distance", ["", "", f"{far.statistic:.3f}", "", p], why))
    return document.Table("Figure", COLUMNS, rows, "In numbers")


def _change(change: Difference, digits: int) -> list[str]:
    value = f"{change.value:+.{digits}f}".replace("-", "−")
    return [value, ends_text(change.interval, "+", digits) or "too few"]


def figures(found: Comparison) -> document.Table:
    """Return the table of headline figures over the pairs."""
    rows = []
    for key, one in found.figures.items():
        unit = one.figure.unit
        sides = [rounded(value, unit).replace("-", "−") for value in (one.first, one.second)]
        change = _change(one.difference, 1 if unit in ("%", "°") else 3)
        rows.append(document.Row(key, [*sides, *change, one.verdict], one.figure.explanation))
    return document.Table("Figure", OF_FIGURES, rows)


def outcomes(found: Comparison) -> document.Table:
    """Return the table of what became of the answers: scored, refused, failed, missing, ..."""
    rows = []
    for one in found.outcomes:
        change = 100 * (one.second / one.of_second - one.first / one.of_first)
        cells = [f"{one.first:,}", f"{one.second:,}", f"{change:+.1f} %".replace("-", "−")]
        why = "" if one.p is None else f"more in {one.risen:,} of {one.questions:,} questions"
        rows.append(document.Row(one.name, [*cells, "" if one.p is None else p_text(one.p)], why))
    return document.Table("Answers", OF_OUTCOMES, rows)


def paired_in_words(found: Comparison) -> str:
    """Say what was paired, and over what figures and answers are compared."""
    words = found.pairing.in_words()
    alone = "; the runs are compared as independent samples"
    return words if len(found.pairing.first) else words + alone


def document_of(found: Comparison) -> document.Document:
    """Return the page of a comparison."""
    names = [side.path.name or str(side.path) for side in (found.first, found.second)]
    note = (
        "Only scored answers are in a mean. p: one-sided, that the share did not rise, over "
        "questions with answers in both runs."
    )
    answers: list[document.Block] = [outcomes(found), document.Text(note, "note")]
    sections = [document.Section("What became of the answers", answers)]
    if found.figures or len(found.pairing.first):
        sections.append(document.Section("Answers to the same questions", [*_answer_parts(found)]))
    sections.append(
        document.Section(
            f"{found.metric.title}: all scores", [*_distributions(found), scores(found)]
        )
    )
    if found.corrected:
        lines = list(map(document.Text, found.corrected.in_words()))
        sections.insert(0, document.Section("Right answers, by labels", lines))
    return document.Document(
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
    )


def _answer_parts(found: Comparison) -> Iterator[document.Block]:
    """Yield the figures over pairs of answers, and the answers that changed, some of each kind."""
    if found.figures:
        yield figures(found)
    for key, why in found.not_compared.items():
        yield document.Text(f"{key} is not compared: {why}", "note")
    answers = found.answers
    if not len(found.pairing.first):
        return
    yield document.Text(f"{answers.in_words()}.")
    for kind, title, changes in (
        ("worse", "Worse", answers.worse),
        ("better", "Better", answers.better),
        ("other", "Another verdict, and no score in one of the runs", answers.other),
    ):
        shown = [
            document.ChangedAnswer(
                one.question, one.ids[1], one.in_words(), one.reasons, one.responses
            )
            for one in changes[:ON_PAGE]
        ]
        if shown:
            yield document.ChangedAnswers(
                title, shown, answers.counts[kind], folded=kind != "worse"
            )


def _distributions(found: Comparison) -> list[document.Block]:
    """Draw the scores of both runs, and both distribution functions."""
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
        bars.append(document.Bar(name.model or "", mean, drawing, group.n, style, after))
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
        document.MEAN,
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
        document.Chart("Both distributions", note, [document.Bars(bars, axis, "pair")]),
        document.Chart(
            "Share of answers up to a score", apart, [document.Drawing(drawing, "percent", axis)]
        ),
    ]
