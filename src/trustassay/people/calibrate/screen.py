"""A calibration in sentences, and as a page."""

from collections.abc import Iterator, Sequence

import numpy as np

from trustassay.people.calibrate.result import EVENLY_LABELLED, Calibration
from trustassay.report import document
from trustassay.report.charts import NamedCurve, Plot
from trustassay.runs.calibrator import ReliabilityBand, ThresholdPromise, describe_promise
from trustassay.statistics import Floats
from trustassay.statistics.warranty import compute_boundary
from trustassay.text.numbers import amount

ANSWERS_IN_EXAMPLE = 1000
MIN_ANSWERS_OF_POINT = 10
"""Accepted answers from which on their share of wrong ones is drawn."""
MAX_CURVE_POINTS = 300
BAND_COLUMNS = ("answers", "right", "share right", "95 % interval")
PROMISE_COLUMNS = ("accepted answers", "share of all", "labelled", "labelled wrong")


def write_lines(result: Calibration) -> list[str]:
    """Write the promises, the reliability, the price of the check, and what it is valid for."""
    lines: list[str] = []
    for promise in result.calibrator.promises:
        lines += _write_promise(result, promise)
    lines.append(_write_reliability(result))
    if result.promise is None:
        return lines
    lines += _write_price(result, result.promise)
    chance = ""
    if result.calibrator.labels.chosen == EVENLY_LABELLED:
        # A choice by the score would have been noticed, any other one not.
        chance = ", if the labelled answers are a random sample"
    lines.append(f"Valid for answers like these, labelled in the same way{chance}.")
    return lines


def _write_promise(result: Calibration, promise: ThresholdPromise) -> Iterator[str]:
    of = f" of {result.calibrator.by} {promise.of}" if promise.of else ""
    if promise.without:
        share = 100 * promise.at_most
        yield f"No threshold{of} for at most {share:.3g} % wrong: {promise.without}"
        return
    total = "" if promise.of else f" of {result.answers:,}"
    yield (
        f"Accept {describe_threshold(result, promise)}{of}: {100 * promise.share:.0f} %{total} "
        f"need no check by a person;\n{describe_promise(promise)}."
    )
    look = f"; look {promise.look} of {promise.looks}" if promise.looks > 1 else ""
    yield (
        f"  from {amount(result.counted, 'label')} ({result.calibrator.labels.chosen}): "
        f"{promise.accepted:,} accepted, {promise.wrong:,} of them wrong{look}"
    )
    if promise is result.promise and result.lenient_wrong < promise.wrong:
        disputed = promise.wrong - result.lenient_wrong
        yield (
            f"  {disputed:,} of these {promise.wrong:,} count as wrong because raters disagree or "
            "cannot tell; the promise includes them"
        )


def describe_threshold(result: Calibration, promise: ThresholdPromise) -> str:
    """Return which answers a promise accepts, in words."""
    score = result.calibrator.score
    if promise.above is None:
        return "all answers" if promise.share == 1 else "all answers that have a score"
    sign = ">" if score.sign > 0 else "<"
    return f"answers with {score.name} {sign} {score.sign * promise.above:.4g}"


def _write_reliability(result: Calibration) -> str:
    bands = result.calibrator.reliability
    if result.calibrator.score.sign < 0:
        bands = bands[::-1]
    # The ends say most: the scores that people trust, and those that they do not.
    parts = [_describe_band(band) for band in (bands[-1], *bands[:1])[: len(bands)]]
    return "Share of right answers: " + "; ".join(parts)


def _describe_band(band: ReliabilityBand) -> str:
    low, high = band.interval
    share = 100 * band.right / band.n
    return f"{share:.0f} % ({100 * low:.0f} to {100 * high:.0f}) for scores near {band.stated:.2g}"


def _write_price(result: Calibration, promise: ThresholdPromise) -> Iterator[str]:
    asked, passed = 1 - promise.share, promise.share * promise.at_most
    of = f" of {result.calibrator.by} {promise.of}" if promise.of else ""
    line = (
        f"Of {ANSWERS_IN_EXAMPLE:,} answers{of}, {ANSWERS_IN_EXAMPLE * asked:.0f} go to a person "
        f"and at most {ANSWERS_IN_EXAMPLE * passed:.0f} wrong ones are accepted"
    )
    wrong = result.wrong_share
    if not asked:
        return
    # Labels that stand for one part of the scores do not say how many are wrong in all.
    if wrong is None or promise.of or wrong <= passed:
        yield line
        return
    yield f"{line} (without a check: about {ANSWERS_IN_EXAMPLE * wrong:.0f})"
    at_worst = asked / (wrong - passed)
    # With few labels the bound may be worse than chance, and then says nothing.
    if at_worst < 1 / wrong:
        yield (
            f"  Of the answers that go to a person, at least one in {at_worst:.1f} is wrong (of "
            f"all answers: about one in {1 / wrong:.1f})"
        )


def build_document(result: Calibration) -> document.PageDocument:
    """Build the page of a calibration."""
    calibrator = result.calibrator
    facts = {
        "source": result.source,
        "score": calibrator.score.name,
        "label": calibrator.labels.name,
        "labelled answers": f"{calibrator.labels.n:,}",
        "all answers": f"{result.answers:,}",
    }
    lines = [" ".join(line.split()) for line in write_lines(result)]
    promises = document.Table(
        "Promised share wrong",
        PROMISE_COLUMNS,
        [_build_promise_row(result, promise) for promise in calibrator.promises],
        "Accepted answers",
        "The last two columns count the accepted answers among those labelled for the promise.",
    )
    bands = document.Table(
        "Mean score (range)",
        BAND_COLUMNS,
        [_build_band_row(band) for band in calibrator.reliability],
        "Right answers by score",
        "Labelled answers in bands of similar scores.",
    )
    plots = document.curves([calibrator.score.name, "tolerated"], list(_build_plots(result)))
    section = document.Section("", [document.ListBlock(lines[1:]), *plots, promises, bands])
    return document.PageDocument(
        "calibrate",
        f"Calibration of {calibrator.score.name}",
        facts,
        lines[0],
        result.notes,
        [section],
    )


def _build_promise_row(result: Calibration, promise: ThresholdPromise) -> document.DocumentRow:
    name = " ".join(filter(None, (promise.of, f"{100 * promise.at_most:.3g} %")))
    if promise.without:
        return document.DocumentRow(name, [f"none: {promise.without}", "", "", ""])
    cells = [
        describe_threshold(result, promise),
        f"{100 * promise.share:.0f} %",
        f"{promise.accepted:,}",
        f"{promise.wrong:,}",
    ]
    return document.DocumentRow(name, cells)


def _build_band_row(band: ReliabilityBand) -> document.DocumentRow:
    low, high = band.interval
    return document.DocumentRow(
        f"{band.stated:.3g} ({band.low:.3g} to {band.high:.3g})",
        [
            f"{band.n:,}",
            f"{band.right:,}",
            f"{100 * band.right / band.n:.0f} %",
            f"{100 * low:.0f} to {100 * high:.0f} %",
        ],
    )


def _build_plots(result: Calibration) -> Iterator[Plot]:
    bands, name = result.calibrator.reliability, result.calibrator.score.name
    # Only a score from 0 to 1 states a probability that can be compared with a share.
    if min(band.low for band in bands) >= 0 and max(band.high for band in bands) <= 1:
        points = [(band.stated, band.right / band.n) for band in bands]
        yield Plot(
            "Reliability",
            "Share of right answers among answers with similar scores. On the diagonal, the score "
            "equals this share.",
            name,
            "share right",
            [NamedCurve(name, points, 0, dots=True)],
            diagonal=True,
        )
    n = len(result.wrong)
    if n <= MIN_ANSWERS_OF_POINT:
        return
    order = np.argsort(-result.scores, kind="stable")
    counts = np.arange(1, n + 1)
    risk = np.cumsum(result.wrong[order]) / counts
    lines = [NamedCurve(name, _thin(counts / n, risk), 0)]
    promise = result.calibrator.promises[0]
    if not result.calibrator.labels.group:
        tolerated = compute_boundary(n, promise.at_most, promise.delta).at_each(n)
        limit = np.where(tolerated < 0, np.nan, tolerated / counts)
        lines.append(NamedCurve("tolerated", _thin(counts / n, limit), 1))
    highest = max(0.05, *(y for line in lines for _, y in line.points))
    yield Plot(
        "Wrong answers among those accepted",
        "Answers are accepted from the best score down. A threshold is possible where the share of "
        "wrong answers among them is not above the share that the test tolerates for "
        f"{100 * promise.at_most:.3g} %.",
        "share of labelled answers accepted",
        "share wrong",
        lines,
        (0.0, highest),
    )


def _thin(x: Floats, y: Floats) -> Sequence[tuple[float, float]]:
    """Return at most :data:`MAX_CURVE_POINTS` points of a curve that are there, from 10 answers."""
    places = np.unique(np.linspace(0, len(x) - 1, MAX_CURVE_POINTS).round().astype(int))
    places = places[(places >= MIN_ANSWERS_OF_POINT - 1) & ~np.isnan(y[places])]
    return list(zip(x[places].tolist(), y[places].tolist(), strict=True))
