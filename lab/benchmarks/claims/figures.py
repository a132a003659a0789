"""Figures of stored rows, and their paired differences; pure functions of rows and arrays.

Resamples draw whole clusters, and both sides of a difference are computed from the same draws.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lab.benchmarks.claims.storage import ResultRow, group_by
from lab.benchmarks.ordering import first_wrong
from trustassay.statistics import Floats, Places
from trustassay.statistics.correlation import WeightedFigure, weighted_auroc
from trustassay.statistics.resampling import (
    PairedTest,
    bootstrap_test,
    cluster_numbers,
    cluster_weights,
    generator,
    holm,
    resample_interval,
)

RESAMPLES = 2000
FIRST_ANSWERS = 20
"""Answers that a reader looks at first."""
PairedRows = Sequence[tuple[ResultRow, ResultRow]]
Json = dict[str, Any]


def supports_of(rows: Sequence[ResultRow]) -> Floats:
    """Return the support of each answer, shape (n,); 0 of one that was not scored."""
    return np.array([row["support"] or 0.0 for row in rows])


def calls_of(rows: Sequence[ResultRow]) -> Floats:
    """Return 1 for answers whose verdict is supported and 0 for all others, shape (n,).

    A refusal, an answer without claims and one that failed count as not supported.
    """
    return np.array([float(row["verdict"] == "supported") for row in rows])


def flags_of(rows: Sequence[ResultRow]) -> Floats:
    """Return 1 for answers of which the metric reports a problem, shape (n,)."""
    return np.array([float(row["flagged"]) for row in rows])


def orders_of(rows: Sequence[ResultRow]) -> Floats:
    """Return what puts answers in order, the worst first, shape (n,).

    An answer that was not scored is 1: a reader of the worst answers does not come to see it.
    """
    return np.array([1.0 if row["order"] is None else row["order"] for row in rows])


def labels_of(rows: Sequence[ResultRow]) -> Floats:
    """Return the labels, shape (n,)."""
    return np.array([float(row["label"]) for row in rows])


def weighted_share(values: ArrayLike, among: ArrayLike) -> WeightedFigure:
    """The share of ``values`` (0 or 1) among the answers for which ``among`` is 1."""
    chosen = np.asarray(among, dtype=np.float64)
    hits = np.asarray(values, dtype=np.float64) * chosen

    def figure(weights: Floats) -> Floats:
        total = weights @ chosen
        share = np.full(len(weights), np.nan)
        return np.asarray(np.divide(weights @ hits, total, out=share, where=total > 0))

    return figure


def weighted_balanced_accuracy(calls: ArrayLike, labels: ArrayLike) -> WeightedFigure:
    """The mean of the shares of supported and of unsupported answers that are called so."""
    called, true = np.asarray(calls, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    of_supported = weighted_share(called, true)
    of_others = weighted_share(1 - called, 1 - true)
    return lambda weights: (of_supported(weights) + of_others(weights)) / 2


class PairedFigure(NamedTuple):
    """A figure before and after, the difference, and its resamples, shape (B,)."""

    before: float
    after: float
    difference: PairedTest
    draws: Floats

    def to_dict(self) -> Json:
        """Return the JSON form."""
        return {
            "before": rounded(self.before),
            "after": rounded(self.after),
            **tested_dict(self.difference),
        }


def rounded(value: float | None) -> float | None:
    """Return a value with four decimals; ``None`` where it is not defined."""
    return None if value is None or np.isnan(value) else round(float(value), 4)


def tested_dict(tested: PairedTest) -> Json:
    """Return the JSON form of a difference; why it has no interval, if it has none."""
    interval = None if tested.interval is None else [rounded(end) for end in tested.interval]
    p = None if tested.p is None else float(f"{tested.p:.2g}")
    result = {"difference": rounded(tested.value), "interval": interval, "p": p}
    return result | ({"without": tested.without} if tested.without else {})


def compare_figures(
    before: WeightedFigure,
    after: WeightedFigure,
    clusters: Places,
    purpose: str,
    resamples: int = RESAMPLES,
) -> PairedFigure:
    """Compare a figure of the same answers before and after.

    Args:
        clusters: number of each answer's cluster, from 0 without gaps, shape (n,).
        purpose: of the random numbers; figures of one set have the same, and so the same draws.
    """
    once = np.ones((1, len(clusters)))
    value_before, value_after = float(before(once)[0]), float(after(once)[0])
    weights = cluster_weights(clusters, generator(0, "lab.benchmarks.claims", purpose), resamples)
    draws = np.concatenate([after(part) - before(part) for part in weights])
    difference = bootstrap_test(value_after - value_before, draws, int(clusters.max()) + 1)
    return PairedFigure(value_before, value_after, difference, draws)


def estimate(
    figure: WeightedFigure,
    clusters: Places,
    purpose: str,
    resamples: int = RESAMPLES,
    rarer: int | None = None,
) -> Json:
    """Return a figure with its interval, or with the reason why it has none.

    rarer: answers of the rarer label, for figures of two classes.
    """
    value = float(figure(np.ones((1, len(clusters))))[0])
    weights = cluster_weights(clusters, generator(0, "lab.benchmarks.claims", purpose), resamples)
    draws = np.concatenate([figure(part) for part in weights])
    interval = resample_interval(draws, int(clusters.max()) + 1, rarer=rarer)
    if isinstance(interval, str):
        return {"value": rounded(value), "interval": None, "without": interval}
    return {"value": rounded(value), "interval": [rounded(end) for end in interval]}


def count_verdicts(rows: Sequence[ResultRow]) -> dict[str, int]:
    """Return how often each verdict was given, the most frequent first.

    An answer in a language that the entailer does not read has neither verdict nor error.
    """
    verdicts = (row["verdict"] or "not assessable" for row in rows)
    return dict(Counter(verdicts).most_common())


def share_unscored(rows: Sequence[ResultRow]) -> float:
    """Return the share of answers without a score."""
    return round(float(np.mean([row["score"] is None for row in rows])), 4)


def describe_set(rows: Sequence[ResultRow]) -> Json:
    """Return the sizes of a set."""
    return {
        "n": len(rows),
        "supported": int(labels_of(rows).sum()),
        "clusters": len({row["cluster"] for row in rows}),
    }


# Labelled answers ---------------------------------------------------------------------------------


def measure_labelled(rows: Sequence[ResultRow], resamples: int = RESAMPLES) -> Json:
    """Return the figures of each set of labelled answers, by split and set."""
    figures: Json = {}
    for split, rows_of_split in group_by(rows, "split").items():
        for name, rows_of_set in group_by(rows_of_split, "set").items():
            clusters = cluster_numbers([row["cluster"] for row in rows_of_set])
            labels = labels_of(rows_of_set)
            rarer = int(min(labels.sum(), len(labels) - labels.sum()))
            auc = weighted_auroc(supports_of(rows_of_set), labels)
            balanced = weighted_balanced_accuracy(calls_of(rows_of_set), labels)
            figures.setdefault(split, {})[name] = describe_set(rows_of_set) | {
                "auc": estimate(auc, clusters, name, resamples, rarer),
                "balanced_accuracy": estimate(balanced, clusters, name, resamples, rarer),
                "unscored": share_unscored(rows_of_set),
                "verdicts": count_verdicts(rows_of_set),
            }
    return figures


def compare_labelled(pairs: PairedRows, resamples: int = RESAMPLES) -> Json:
    """Return the differences of each set of labelled answers, and of the mean over a split's sets.

    ``p_holm`` is the p-value corrected for the number of sets of the split. The mean treats the
    sets as independent, which sets that share documents (as two files of one source) are not quite.
    """
    figures: Json = {}
    for split, pairs_of_split in group_pairs(pairs, "split").items():
        sets: Json = {}
        compared: dict[str, dict[str, PairedFigure]] = {}
        for name, pairs_of_set in group_pairs(pairs_of_split, "set").items():
            sets[name] = describe_pairs(pairs_of_set)
            for figure, paired in compare_set(name, pairs_of_set, resamples).items():
                compared.setdefault(figure, {})[name] = paired
        for figure, of_sets in compared.items():
            corrected = correct_for_number(of_sets)
            for name, paired in of_sets.items():
                sets[name][figure] = paired.to_dict() | {"p_holm": corrected[name]}
        clusters_of_split = sum(one["clusters"] for one in sets.values())
        means = {
            figure: average(list(of_sets.values()), clusters_of_split).to_dict()
            for figure, of_sets in compared.items()
        }
        figures[split] = {"sets": sets, "mean": means}
    return figures


def group_pairs(pairs: PairedRows, field: str) -> dict[str, list[tuple[ResultRow, ResultRow]]]:
    """Return pairs by the value of a field of the later row."""
    groups: dict[str, list[tuple[ResultRow, ResultRow]]] = {}
    for before, after in pairs:
        groups.setdefault(str(after[field]), []).append((before, after))
    return groups


def describe_pairs(pairs: PairedRows) -> Json:
    """Return the sizes of a set, and the verdicts of both versions."""
    before, after = [one for one, _ in pairs], [one for _, one in pairs]
    return describe_set(after) | {
        "unscored": {"before": share_unscored(before), "after": share_unscored(after)},
        "verdicts": {"before": count_verdicts(before), "after": count_verdicts(after)},
    }


def compare_set(name: str, pairs: PairedRows, resamples: int) -> dict[str, PairedFigure]:
    """Return the figures of one set before and after."""
    before, after = [one for one, _ in pairs], [one for _, one in pairs]
    clusters = cluster_numbers([row["cluster"] for row in after])
    labels = labels_of(after)
    auc_before = weighted_auroc(supports_of(before), labels)
    auc_after = weighted_auroc(supports_of(after), labels)
    balanced_before = weighted_balanced_accuracy(calls_of(before), labels)
    balanced_after = weighted_balanced_accuracy(calls_of(after), labels)
    return {
        "auc": compare_figures(auc_before, auc_after, clusters, name, resamples),
        "balanced_accuracy": compare_figures(
            balanced_before, balanced_after, clusters, name, resamples
        ),
    }


def correct_for_number(figures: Mapping[str, PairedFigure]) -> dict[str, float | None]:
    """Return the p-value of each figure, corrected for their number (Holm 1979)."""
    p_values = {name: one.difference.p for name, one in figures.items()}
    tested = {name: p for name, p in p_values.items() if p is not None}
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    return {
        name: float(f"{corrected[name]:.2g}") if name in corrected else None for name in p_values
    }


def average(figures: Sequence[PairedFigure], clusters: int) -> PairedFigure:
    """Return the mean of a figure over sets, each of which was resampled by itself."""
    defined = [one for one in figures if not np.isnan(one.before) and not np.isnan(one.after)]
    before = float(np.mean([one.before for one in defined]))
    after = float(np.mean([one.after for one in defined]))
    draws = np.mean([one.draws for one in defined], axis=0)
    return PairedFigure(before, after, bootstrap_test(after - before, draws, clusters), draws)


# Empty replies ------------------------------------------------------------------------------------


def measure_empty(rows: Sequence[ResultRow], resamples: int = RESAMPLES) -> Json:
    """Return how often each empty reply was called supported, and flagged; and all together."""
    replies = {
        reply: {
            "n": len(rows_of_reply),
            "supported": rounded(calls_of(rows_of_reply).mean()),
            "flagged": rounded(flags_of(rows_of_reply).mean()),
            "verdicts": count_verdicts(rows_of_reply),
        }
        for reply, rows_of_reply in group_by(rows, "reply").items()
    }
    clusters = cluster_numbers([row["cluster"] for row in rows])
    everyone = np.ones(len(rows))
    shares = {
        "supported": estimate(weighted_share(calls_of(rows), everyone), clusters, "e", resamples),
        "flagged": estimate(weighted_share(flags_of(rows), everyone), clusters, "e", resamples),
    }
    return {"replies": replies, "all": {"n": len(rows), "verdicts": count_verdicts(rows), **shares}}


def compare_empty(pairs: PairedRows, resamples: int = RESAMPLES) -> Json:
    """Return the shares of each empty reply before and after, and the difference of all."""
    before, after = [one for one, _ in pairs], [one for _, one in pairs]
    clusters = cluster_numbers([row["cluster"] for row in after])
    everyone = np.ones(len(after))
    measured = [measure_empty(rows, resamples)["replies"] for rows in (before, after)]
    replies = {
        reply: {
            figure: {"before": measured[0][reply][figure], "after": measured[1][reply][figure]}
            for figure in ("supported", "flagged")
        }
        for reply in measured[1]
    }
    differences = {
        figure: compare_figures(
            weighted_share(values(before), everyone),
            weighted_share(values(after), everyone),
            clusters,
            "empty",
            resamples,
        ).to_dict()
        for figure, values in (("supported", calls_of), ("flagged", flags_of))
    }
    return {"replies": replies, "all": {"n": len(after), **differences}}


# Planted errors -----------------------------------------------------------------------------------


def planted_figures(rows: Sequence[ResultRow]) -> dict[str, WeightedFigure]:
    """Return what is measured of answers with planted errors.

    ``auc``: of ``order``. ``errors flagged`` and ``false alarms``: the shares of answers with and
    without errors that the metric flags.
    """
    labels = labels_of(rows)
    return {
        "auc": weighted_auroc(orders_of(rows), labels),
        "errors flagged": weighted_share(flags_of(rows), 1 - labels),
        "false alarms": weighted_share(flags_of(rows), labels),
    }


def count_planted(rows: Sequence[ResultRow]) -> Json:
    """Return the counts of the planted errors; of equal orders among the first their share."""
    wrong = 1 - labels_of(rows)
    flagged = flags_of(rows)
    return {
        "answers": len(rows),
        "with errors": int(wrong.sum()),
        f"wrong among the first {FIRST_ANSWERS}": round(
            first_wrong(orders_of(rows), labels_of(rows).astype(int).tolist(), FIRST_ANSWERS), 2
        ),
        "flagged, with errors": int((flagged * wrong).sum()),
        "flagged, without error": int((flagged * (1 - wrong)).sum()),
        "not scored": sum(row["score"] is None for row in rows),
    }


def measure_planted(rows: Sequence[ResultRow], resamples: int = RESAMPLES) -> Json:
    """Return the figures of the planted errors."""
    clusters = cluster_numbers([row["cluster"] for row in rows])
    figures = {
        name: estimate(figure, clusters, "planted", resamples)
        for name, figure in planted_figures(rows).items()
    }
    return {"counts": count_planted(rows), **figures}


def compare_planted(pairs: PairedRows, resamples: int = RESAMPLES) -> Json:
    """Return the figures of the planted errors before and after."""
    before, after = [one for one, _ in pairs], [one for _, one in pairs]
    clusters = cluster_numbers([row["cluster"] for row in after])
    figures_before, figures_after = planted_figures(before), planted_figures(after)
    compared = {
        name: compare_figures(figures_before[name], figure, clusters, "planted", resamples)
        for name, figure in figures_after.items()
    }
    counts = {"before": count_planted(before), "after": count_planted(after)}
    return {"counts": counts} | {name: one.to_dict() for name, one in compared.items()}


# Speed --------------------------------------------------------------------------------------------


def measure_speed(rows: Sequence[ResultRow], _resamples: int = RESAMPLES) -> Json:
    """Return CPU seconds by kind and length."""
    fields = ("claims_s", "claims", "score_s", "verdict", "error", "by_default", "stopped")
    return {
        kind: {
            row["id"]: {name: row[name] for name in fields if row.get(name) is not None}
            for row in rows_of_kind
        }
        for kind, rows_of_kind in group_by(rows, "set").items()
    }


def compare_speed(pairs: PairedRows, _resamples: int = RESAMPLES) -> Json:
    """Return CPU seconds by kind and length, before and after."""
    before = measure_speed([one for one, _ in pairs])
    after = measure_speed([one for _, one in pairs])
    return {
        kind: {size: {"before": before[kind][size], "after": one} for size, one in sizes.items()}
        for kind, sizes in after.items()
    }


MEASURES: Mapping[str, Callable[[Sequence[ResultRow], int], Json]] = {
    "labelled": measure_labelled,
    "empty": measure_empty,
    "planted": measure_planted,
    "speed": measure_speed,
}
COMPARISONS: Mapping[str, Callable[[PairedRows, int], Json]] = {
    "labelled": compare_labelled,
    "empty": compare_empty,
    "planted": compare_planted,
    "speed": compare_speed,
}
