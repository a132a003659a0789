"""The tables of docs/which-metric.md, as Markdown by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median

import numpy as np

from lab.benchmarks.which_metric.combining import (
    Difference,
    Scores,
    auroc_with_interval,
    compared,
    left_out_gain,
    out_of_fold_gain,
    wrong_together,
)
from lab.benchmarks.which_metric.studying import Studied
from trustassay.statistics.intervals import Estimate, Interval
from trustassay.statistics.resampling import holm

NONE = "–"
PASSAGE_COLUMNS = {
    "faithfulness": "`faithfulness`",
    "faithfulness.support": "`faithfulness.support`",
    "faithfulness-lexical.support": "`.support`, `lexical` entailer",
    "factcheck": "`factcheck`",
    "words": "words",
    "cosine": "cosine",
    "length": "length",
    "source": "system",
}
GOLD_COLUMNS = {
    "reference": "`reference` (`token_recall`)",
    "reference.em": "`.em`",
    "reference.contains": "`.contains`",
    "reference.token_f1": "`.token_f1`",
    "reference.novel_token_f1": "`.novel_token_f1`",
    "reference.bleu_4": "`.bleu_4`",
    "reference.rouge_l": "`.rouge_l`",
    "reference.chrf": "`.chrf`",
    "judge-entailer": "`judge:by=entailer`",
    "fewl-agreement": "`fewl:form=agreement`",
    "fewl-agreement.no_penalty": "the same, no penalty",
    "fewl-eq1": "`fewl:weights=uniform`",
    "fewl-eq1.no_penalty": "the same, no penalty",
    "length": "length",
    "source": "source and model",
}
COST_ROWS = {
    "words": "words",
    "cosine": "cosine",
    "faithfulness-lexical": "`faithfulness`, `lexical` entailer",
    "faithfulness": "`faithfulness`",
    "factcheck": "`factcheck`, own passages",
    "factcheck-searched": "`factcheck`, searched among 1,000 passages",
    "grounding": "`grounding:correctness=none`",
    "reference": "`reference`",
    "judge-entailer": "`judge:by=entailer`",
    "fewl-agreement": "`fewl:form=agreement`",
    "fewl-eq1": "`fewl:weights=uniform`",
}
COMBINED_PASSAGES = (
    "faithfulness",
    "faithfulness.support",
    "faithfulness-lexical.support",
    "factcheck",
)
COMBINED_BASELINES = (*COMBINED_PASSAGES, "words", "cosine")
COMBINED_GOLD = ("reference", "reference.novel_token_f1", "reference.chrf", "judge-entailer")
COMBINED_ALL = (*COMBINED_GOLD, "fewl-agreement", "fewl-eq1")
ALONE = ("faithfulness.support", "words", "cosine")
FEWEST_OF_KIND = 20
"""Wrong answers of a kind from which it is told."""
LEVEL = 0.05
PAIRS = (
    ("faithfulness.support", "words"),
    ("faithfulness.support", "cosine"),
    ("faithfulness.support", "faithfulness-lexical.support"),
    ("faithfulness.support", "faithfulness"),
    ("faithfulness.support", "factcheck"),
    ("judge-entailer", "reference"),
    ("judge-entailer", "fewl-agreement"),
    ("fewl-agreement", "reference"),
    ("fewl-agreement", "fewl-eq1"),
)


def all_tables(sets: Sequence[Studied], resamples: int) -> dict[str, str]:
    """Return every table by its name in the page."""
    passages = [one for one in sets if "faithfulness" in one.public.columns]
    gold = [one for one in sets if "reference" in one.public.columns]
    return {
        "sets": markdown(sets_table(sets)),
        "passages": markdown(figure_table(passages, PASSAGE_COLUMNS, "auroc")),
        "passages-prr": markdown(figure_table(passages, PASSAGE_COLUMNS, "prr")),
        "others": markdown(others_table(sets)),
        "gold": markdown(turned(figure_table(gold, GOLD_COLUMNS, "auroc", "prr"))),
        "pairs-passages": markdown(pairs_table(passages, resamples)),
        "pairs-gold": markdown(pairs_table(gold, resamples)),
        "combined": markdown(combined_table(passages, gold, resamples)),
        "left-out": markdown(left_out_table(passages, gold, resamples)),
        "kinds": markdown(kinds_table(passages, resamples)),
        "together": markdown(together_table(passages, gold)),
        "costs": markdown(cost_table(sets)),
    }


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a table, the first one as its head."""
    head, *body = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *body])


def turned(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return a table with its columns as rows."""
    return [list(row) for row in zip(*rows, strict=True)]


def told(value: Estimate | None) -> str:
    """Return a figure with its interval."""
    if value is None or value.value is None:
        return NONE
    if value.interval is None:
        return f"{value.value:.3f}"
    return f"{value.value:.3f} ({value.interval[0]:.3f} to {value.interval[1]:.3f})"


def sets_table(sets: Sequence[Studied]) -> list[list[str]]:
    rows = [["set", "answers", "questions", "right", "what is judged", "right means"]]
    for one in sets:
        counts = [f"{one.answers:,}", f"{one.questions:,}", f"{one.right:.3f}"]
        rows.append([one.public.title, *counts, one.public.answers, one.public.right])
    return rows


def figure_table(
    sets: Sequence[Studied], columns: Mapping[str, str], *figures: str
) -> list[list[str]]:
    """Return a row for each set and figure; the highest of its scores is bold, and the number of
    answers stands behind a figure of fewer than all of the set.
    """
    rows = [["set", *columns.values()]]
    for one in sets:
        for figure in figures:
            cells = {name: one.figures.get(name, {}).get(figure) for name in columns}
            known = {name: e.value for name, e in cells.items() if e and e.value is not None}
            best = max(known, key=known.__getitem__)
            name = one.public.title + (f", {figure.upper()}" if len(figures) > 1 else "")
            rows.append([name])
            for column, estimate in cells.items():
                text = told(estimate)
                text = f"**{text}**" if column == best else text
                fewer = estimate and estimate.value is not None and estimate.n < one.answers
                rows[-1].append(f"{text}, n = {estimate.n:,}" if fewer and estimate else text)
    return rows


def others_table(sets: Sequence[Studied]) -> list[list[str]]:
    """Return the figures of columns that only one set has."""
    rows = [["set", "score", "n", "AUROC", "AUPRC", "PRR"]]
    shown = {
        "grounding": "`grounding:correctness=none`",
        "factcheck-alone": "`factcheck`, the reply without the turn before",
        "factcheck-searched": "`factcheck`, ten passages found among those of the whole set",
    }
    for one in sets:
        for name, title in shown.items():
            if figures := one.figures.get(name):
                cells = [told(figures[figure]) for figure in ("auroc", "auprc", "prr")]
                rows.append([one.public.title, title, f"{figures['auroc'].n:,}", *cells])
    return rows


def pairs_table(sets: Sequence[Studied], resamples: int) -> list[list[str]]:
    """Return differences in AUROC, a row for each set and a column for each pair that it has; a
    star where p, corrected for all tests of the table, is below 0.05.
    """
    pairs = [pair for pair in PAIRS if any(set(pair) <= set(one.scores.columns) for one in sets)]
    found = [compared(one.scores, *pair, resamples) for one in sets for pair in pairs]
    corrected = iter(holm([1.0 if one.p is None else one.p for one in found]))
    cells = iter(found)
    rows = [["set", *(f"{title(first)} less {title(second)}" for first, second in pairs)]]
    for one in sets:
        texts = [apart(next(cells)) + ("*" if next(corrected) < LEVEL else "") for _ in pairs]
        rows.append([one.public.title, *texts])
    return rows


def title(column: str) -> str:
    """Return how a column is called in the page."""
    name = (PASSAGE_COLUMNS | GOLD_COLUMNS).get(column, f"`{column}`").partition(" (")[0]
    run, _, part = column.partition(".")
    return f"`{run}.{part}`" if part and name.startswith("`.") else name


def apart(found: Difference) -> str:
    """Return a difference with its interval and sign."""
    if found.interval is None:
        return f"{found.value:+.3f}"
    return f"{found.value:+.3f} ({found.interval[0]:+.3f} to {found.interval[1]:+.3f})"


def adjusted(found: Sequence[Difference]) -> list[str]:
    """Return p-values corrected for their number, as text."""
    places = [place for place, one in enumerate(found) if one.p is not None]
    texts = [NONE] * len(found)
    for place, p in zip(places, holm([found[k].p or 0.0 for k in places]), strict=True):
        texts[place] = "< 0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.01 else f"{p:.2f}"
    return texts


def combinations(
    passages: Sequence[Studied], gold: Sequence[Studied]
) -> Iterator[tuple[str, Sequence[Scores]]]:
    """Yield what is combined: a name, and the sets that share these columns."""
    yield "metrics of passages", [one.scores.only(COMBINED_PASSAGES) for one in passages]
    yield "the same, words, cosine", [one.scores.only(COMBINED_BASELINES) for one in passages]
    yield "metrics of gold answers", [one.scores.only(COMBINED_GOLD) for one in gold]
    yield "the same, `fewl`", [one.scores.only(COMBINED_ALL) for one in gold]


def combined_table(
    passages: Sequence[Studied], gold: Sequence[Studied], resamples: int
) -> list[list[str]]:
    """Return the out-of-fold gain of each set."""

    def gain(scores: Scores, _: Sequence[Scores]) -> Difference:
        return out_of_fold_gain(scores, resamples)

    return _gains([*passages, *gold], combinations(passages, gold), gain)


def left_out_table(
    passages: Sequence[Studied], gold: Sequence[Studied], resamples: int
) -> list[list[str]]:
    """Return the gain on each set by what was fitted on the others."""

    def gain(scores: Scores, all_sets: Sequence[Scores]) -> Difference | None:
        others = [one for one in all_sets if family(one.name) != family(scores.name)]
        return left_out_gain(scores, others, resamples) if others else None

    return _gains([*passages, *gold], combinations(passages, gold), gain)


def family(name: str) -> str:
    """Return what sets with the same claims have in common: the name up to its first hyphen."""
    return name.partition("-")[0]


def _gains(
    sets: Sequence[Studied],
    what: Iterator[tuple[str, Sequence[Scores]]],
    gain: Callable[[Scores, Sequence[Scores]], Difference | None],
) -> list[list[str]]:
    titles = {one.public.name: one.public.title for one in sets}
    head = ["combined", "set", "n", "best single one", "its AUROC", "combination"]
    rows = [[*head, "gain", "p, corrected"]]
    found = [
        (name, one, gained) for name, group in what for one in group if (gained := gain(one, group))
    ]
    texts = adjusted([difference for *_, difference in found])
    for (name, scores, one), p in zip(found, texts, strict=True):
        chosen = max(one.chosen, key=lambda column: one.chosen[column])
        times, most = sum(one.chosen.values()), one.chosen[chosen]
        often = "" if most == times else f" ({100 * most / times:.0f} %)"
        cells = [f"{one.n:,}", title(chosen) + often, f"{one.second:.3f}", f"{one.first:.3f}"]
        rows.append([name, titles[scores.name], *cells, apart(one), p])
    return rows


def together_table(passages: Sequence[Studied], gold: Sequence[Studied]) -> list[list[str]]:
    """Return the answers about which all scores are wrong at once."""
    head = ["set", "scores", "wrong answers", "accepted by all", "right answers", "by none"]
    rows = [head]
    for sets, columns in (
        (passages, ALONE),
        (gold, ("reference", "judge-entailer", "fewl-agreement")),
    ):
        for one in sets:
            scores = one.scores.only(columns)
            accepted, refused = wrong_together(scores)
            right = int(scores.labels.sum())
            wrong = len(scores.labels) - right
            cells = [f"{wrong:,}", share(accepted, wrong), f"{right:,}", share(refused, right)]
            rows.append([one.public.title, ", ".join(map(title, columns)), *cells])
    return rows


def kinds_table(sets: Sequence[Studied], resamples: int) -> list[list[str]]:
    """Return how well the right answers are told from each kind of wrong ones."""
    rows = [["set", "wrong answers", "n", *map(title, ALONE)]]
    for one in sets:
        scores, kinds = one.scores, np.array(one.kinds)
        wrong = Counter(kinds[(scores.labels == 0) & (kinds != "")].tolist())
        named = [kind for kind, n in wrong.most_common() if n >= FEWEST_OF_KIND]
        for kind in named if len(named) > 1 else []:
            here = (scores.labels > 0) | (kinds == kind)
            cells = []
            for name in ALONE:
                part = scores._replace(
                    table=scores.table[here],
                    labels=scores.labels[here],
                    questions=scores.questions[here],
                ).only([name])
                found = auroc_with_interval(
                    part.table[:, 0], part.labels, part.questions, resamples
                )
                cells.append(told(Estimate(found[0], len(part.labels), _interval(found[1]))))
            rows.append([one.public.title, kind, f"{wrong[kind]:,}", *cells])
    return rows


def _interval(found: Interval | str) -> Interval | None:
    return None if isinstance(found, str) else found


def share(part: int, whole: int) -> str:
    return f"{part:,} ({100 * part / max(whole, 1):.0f} %)"


def cost_table(sets: Sequence[Studied]) -> list[list[str]]:
    """Return requests and milliseconds an answer, the least, the median and the most of the sets.

    Costs are zero in money and calls of chat models; a run that had any would be refused here.
    """
    rows = [["score", "requests an answer", "ms of processor an answer", "sets"]]
    for run, name in COST_ROWS.items():
        there = [one for one in sets if run in one.costs]
        if not there:
            continue
        if any(one.costs[run].calls for one in there):
            raise ValueError(f"{run}: expected no calls of chat models")
        each = [one.costs[run].requests for one in there]
        kinds = dict.fromkeys(kind for requests in each for kind in requests)
        asked = [f"{kind}: {spread([one.get(kind, 0.0) for one in each])}" for kind in kinds]
        taken = [1000 * s for one in there if (s := one.seconds[run]) is not None]
        cells = ["; ".join(asked) or "none", spread(taken) if taken else NONE, str(len(there))]
        rows.append([name, *cells])
    return rows


def spread(values: Sequence[float]) -> str:
    """Return the median, and the least and most in brackets."""
    if len(values) == 1:
        return f"{values[0]:.3g}"
    return f"{median(values):.3g} ({min(values):.2g} to {max(values):.3g})"
