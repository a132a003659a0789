"""Summaries of the measured cells, and the page that shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lab.benchmarks.warranty.measuring import ACCEPT, DECISIONS
from lab.benchmarks.warranty.populations import GENERATORS
from lab.benchmarks.warranty.procedures import DELTA, PROCEDURES, standard_error
from lab.benchmarks.warranty.sets import SETS

Json = dict[str, Any]
MIN_BEFORE = 0.01
"""The accepted share of the procedure before from which a cell's own ratio is taken."""
MEASURABLY = 3
"""Standard errors by which a cell is above what is allowed."""
SENTENCE_ALPHA = 0.1
"""The alpha for which the page says what ``calibrate`` finds on all labels."""
MIN_LIMIT_SHOWN = 0.05
"""The limit from which a cell of a set stands in the table."""
SHOWN_LABELS = (100, 200, 500, 1000)

INTRODUCTION = f"""# What a promise accepts, and how often it is broken

How many answers may be accepted without a person, so that at most a share alpha of them is wrong
(confidence 95 %), by three procedures at equal numbers of labels, and how often the promise is
broken. *Before* is the test that `calibrate` had (at most 20 thresholds, Bonferroni), *walk* is
`trustassay.statistics.warranty.walk`, and *plan* rates the upper half of the scores first
(`label --for calibrate`); from alpha .2 on it is the walk. A threshold's true risk is known, since
labels are drawn from a population: a generator, a curve made to break promises, or all labelled
answers of a set, from which they are drawn one by one with replacement. {100 * DELTA:.0f} % of the
promises may be broken. Everything is in `warranty-simulated.json` and `warranty-sets.json`; the
commands are `python -m lab.benchmarks.warranty simulate --write` and `sets --out FOLDER --write`.
"""


def summarise(cells: Sequence[Json], labels: Sequence[int], draws: int) -> Json:
    """Return the ratios to the procedure before, and the worst cells.

    Args:
        cells: with alpha, limit, and for each procedure the accepted and broken shares by number of
            labels. labels: these numbers. draws: samples a cell.
    """
    possible = [cell for cell in cells if cell["limit"] > 0]
    result: Json = {"cells": len(cells), "cells with a limit": len(possible), "ratios": []}
    before = _stack(possible, "before", "accepted")
    # Of most hostile curves no threshold keeps the promise.
    for place, n in enumerate(labels if possible else ()):
        row: Json = {"labels": n, "before": round(float(before[:, place].mean()), 3)}
        for procedure in PROCEDURES[1:]:
            accepted = _stack(possible, procedure, "accepted")[:, place]
            enough = before[:, place] >= MIN_BEFORE
            row[procedure] = {
                "accepted": round(float(accepted.mean()), 3),
                "ratio of means": _divide(accepted.mean(), before[:, place].mean()),
                "median ratio": _median(accepted[enough] / before[enough, place]),
                "cells in the median": int(enough.sum()),
                "least difference": round(float((accepted - before[:, place]).min()), 4),
            }
        result["ratios"].append(row)
    allowed = DELTA + MEASURABLY * standard_error(DELTA, draws)
    result["allowed"] = round(allowed, 4)
    for procedure in PROCEDURES:
        broken = _stack(cells, procedure, "broken")
        worst = np.unravel_index(int(broken.argmax()), broken.shape)
        cell = cells[int(worst[0])]
        result[f"broken, {procedure}"] = {
            "mean": round(float(broken.mean()), 4),
            "worst": float(broken[worst]),
            "standard error": round(standard_error(float(broken[worst]), draws), 4),
            "worst cell": [_name_cell(cell), labels[int(worst[1])]],
            "above 5 % and three errors": int((broken > allowed).sum()),
        }
    return result


def summarise_looks(rows: Sequence[Json], draws: int) -> Json:
    """Return the worst share of broken promises where labels are looked at several times."""
    result: Json = {}
    for procedure in PROCEDURES[1:]:
        worst = max(rows, key=lambda row: row[procedure]["broken"])
        broken = worst[procedure]["broken"]
        result[procedure] = {
            "looks": worst[procedure]["looks"],
            "accepted": round(float(np.mean([row[procedure]["accepted"] for row in rows])), 3),
            "worst": broken,
            "standard error": round(standard_error(broken, draws), 4),
            "worst cell": _name_cell(worst),
        }
    return result


def _stack(cells: Sequence[Json], procedure: str, figure: str) -> Any:
    return np.array([cell[procedure][figure] for cell in cells])


def _divide(above: float, below: float) -> float | None:
    return round(float(above / below), 2) if below > 0 else None


def _median(values: Any) -> float | None:
    return round(float(np.median(values)), 2) if len(values) else None


def _name_cell(cell: Json) -> str:
    if "population" in cell:
        levels = f", {cell['levels']} levels" if cell["levels"] else ""
        return f"{cell['population']}{levels}, alpha {cell['alpha']:g}"
    return f"{cell['set']}, {cell['judge']}, {cell['decision']}, alpha {cell['alpha']:g}"


def list_set_cells(figures: Json) -> list[Json]:
    """Return the cells of all judges with their names."""
    return [{**_name_judge(row), **cell} for row in figures["judges"] for cell in row["cells"]]


def list_set_looks(figures: Json) -> list[Json]:
    """Return the looks of all judges with their names."""
    return [{**_name_judge(row), **row["looks"]} for row in figures["judges"]]


def _name_judge(row: Json) -> Json:
    return {name: row[name] for name in ("set", "judge", "decision")}


def add_summaries(figures: Json) -> Json:
    """Return the figures of a measurement with their summaries in front."""
    labels, draws = figures["labels"], figures["draws"]
    if "judges" in figures:
        cells, looks = list_set_cells(figures), list_set_looks(figures)
        of_sets: Json = {"all": summarise(cells, labels, draws)}
        for decision in DECISIONS:
            of = [cell for cell in cells if cell["decision"] == decision]
            of_sets[decision] = summarise(of, labels, draws)
        of_sets["looks"] = summarise_looks(looks, draws)
        return {"summary": of_sets, **figures}
    of_kind = {
        "generators": [c for c in figures["cells"] if c["population"] in GENERATORS],
        "hostile": [c for c in figures["cells"] if c["population"] not in GENERATORS],
    }
    summary = {kind: summarise(cells, labels, draws) for kind, cells in of_kind.items() if cells}
    return {"summary": {**summary, "looks": summarise_looks(figures["looks"], draws)}, **figures}


def build_page(simulated: Json | None, sets: Json | None) -> str:
    """Return the page; a part without figures is left out."""
    parts = [INTRODUCTION]
    if sets:
        parts += [*_show_sets(sets)]
    if simulated:
        parts += [*_show_simulated(simulated)]
    return "\n".join(parts)


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def _show_ratios(summary: Json) -> str:
    rows = []
    for row in summary["ratios"]:
        cells = [row["labels"], _share(row["before"])]
        for procedure in PROCEDURES[1:]:
            of = row[procedure]
            ratios = [of["ratio of means"], of["median ratio"]]
            cells += [_share(of["accepted"])]
            cells += ["" if ratio is None else f"{ratio:.2f}" for ratio in ratios]
        rows.append(cells)
    header = ["labels", "before"]
    for procedure in PROCEDURES[1:]:
        header += [procedure, "ratio", "median"]
    return _table(header, rows)


def _show_broken(summary: Json) -> str:
    rows = []
    for procedure in PROCEDURES:
        of = summary[f"broken, {procedure}"]
        cell, n = of["worst cell"]
        worst = f"{_share(of['worst'], 4)} ± {_share(of['standard error'], 4)}"
        rows.append([procedure, _share(of["mean"], 4), worst, f"{cell}, {n} labels"])
    return _table(["procedure", "broken, mean", "worst", "where"], rows)


def _show_looks(looks: Json) -> str:
    rows = [
        [
            procedure,
            ", ".join(map(str, of["looks"])),
            _share(of["accepted"]),
            f"{_share(of['worst'], 4)} ± {_share(of['standard error'], 4)}",
            of["worst cell"],
        ]
        for procedure, of in looks.items()
    ]
    header = ["procedure", "looks of the worst", "accepted, mean", "any promise broken", "where"]
    return _table(header, rows)


def _show_sets(figures: Json) -> Iterator[str]:
    summary = figures["summary"]["all"]
    judges = {row["judge"] for row in figures["judges"]}
    count = len({row["set"] for row in figures["judges"]})
    yield "## Real labels\n"
    yield (
        f"{count} sets and {len(judges)} judges; {figures['draws']:,} draws a cell. Each judge "
        "accepts answers with high scores, of which at most alpha may be wrong, and rejects "
        "answers with low scores, of which at most alpha may be right. Mean share that is decided "
        f"so, over the {summary['cells with a limit']} of {summary['cells']} cells (set, judge, "
        "decision, alpha) in which a threshold exists; *ratio* is that of these means to *before*, "
        "*median* that of the cells' own ratios where *before* decides "
        f"{100 * MIN_BEFORE:.0f} % or more.\n"
    )
    yield _show_ratios(summary)
    accepting = figures["summary"][ACCEPT]
    of_a_tenth = [
        cell["limit"]
        for cell in list_set_cells(figures)
        if cell["decision"] == ACCEPT and cell["alpha"] == SENTENCE_ALPHA
    ]
    few = sum(limit < MIN_LIMIT_SHOWN for limit in of_a_tenth)
    yield (
        f"Accepting alone ({accepting['cells with a limit']} of {accepting['cells']} cells). At "
        f"alpha {SENTENCE_ALPHA:g}, {few} of {len(of_a_tenth)} judges cannot accept "
        f"{100 * MIN_LIMIT_SHOWN:.0f} % even if all risks are known: in most sets most answers are "
        "wrong.\n"
    )
    yield _show_ratios(accepting)
    yield (
        f"Broken promises, over all cells; {_share(summary['allowed'], 3)} are 5 % and three "
        "standard errors.\n"
    )
    yield _show_broken(summary)
    yield "With five looks at most (alpha .1):\n"
    yield _show_looks(figures["summary"]["looks"])
    yield "### What a judge states, and what is right\n"
    yield (
        "The lowest and the highest fifth of its scores (equal scores stay together), with 95 % "
        "intervals that count what answers share. *At most 10 % wrong*: what `calibrate` says of "
        "all labels of the set.\n"
    )
    yield _table(
        ["set (right)", "judge", "answers", "right", "AUROC", "lowest", "highest", "at most 10 %"],
        [_describe_judge(row) for row in figures["judges"] if row["decision"] == ACCEPT],
    )
    yield "### Share decided by judge\n"
    yield (
        "Before / walk / plan at "
        + ", ".join(map(str, SHOWN_LABELS))
        + " labels; *limit* is what a threshold can decide if all risks are known.\n"
    )
    cells = list_set_cells(figures)
    possible = [cell for cell in cells if cell["limit"] >= MIN_LIMIT_SHOWN]
    yield (
        f"Of {len(cells)} cells {len(cells) - len(possible)} are left out, in which less than "
        f"{100 * MIN_LIMIT_SHOWN:.0f} % can be decided.\n"
    )
    rows = [_describe_cell(cell, figures["labels"]) for cell in possible]
    shown = [f"{n}" for n in SHOWN_LABELS if n in figures["labels"]]
    yield _table(["set", "judge", "decision", "alpha", "limit", *shown, "broken at worst"], rows)
    grouped = [(row, cell) for row in figures["judges"] for cell in row.get("whole groups", ())]
    grouped = [pair for pair in grouped if pair[1]["walk"]["accepted"] >= MIN_BEFORE]
    if grouped:
        yield "### All answers of a group labelled\n"
        yield (
            "Documents, passages or questions are drawn whole, as many labels as named or a few "
            f"more ({grouped[0][1]['draws']} draws). The walk counts their answers as independent, "
            "which they are not; `--group` tests groups. Broken (decided):\n"
        )
        yield _table(
            ["set", "judge", "decision", "alpha", "labels", "walk", "--group"],
            [
                [*_name_judge(row).values(), _share(cell["alpha"]), cell["labels"]]
                + [
                    f"{_share(cell[way]['broken'], 3)} ({_share(cell[way]['accepted'])})"
                    for way in ("walk", "--group")
                ]
                for row, cell in grouped
            ],
        )
    if "time" in figures:
        yield "### From file to sentence\n"
        yield _table(
            ["rows", "with a label", "CPU s", "wall s"],
            [[r["rows"], r["labelled"], r["cpu_s"], r["wall_s"]] for r in figures["time"]],
        )


def _describe_judge(row: Json) -> list[str]:
    promise = next(p for p in row["promises"] if p["at_most"] == SENTENCE_ALPHA)
    text = promise["without"]
    if not text:
        text = f"accepts {_share(promise['share'])}"
    bands = [
        f"{band['stated']:.2g}: {_share(band['right'])} "
        f"({_share(band['interval'][0])} to {_share(band['interval'][1])})"
        for band in (row["bottom"], row["top"])
    ]
    title = f"{row['set']} ({SETS[row['set']].right})"
    low, high = row["auroc"]["interval"]
    auroc = f"{_share(row['auroc']['value'])} ({_share(low)} to {_share(high)})"
    return [title, row["judge"], f"{row['answers']:,}", _share(row["right"]), auroc, *bands, text]


def _describe_cell(cell: Json, labels: Sequence[int]) -> list[str]:
    shown = [labels.index(n) for n in SHOWN_LABELS if n in labels]
    shares = [
        " / ".join(_share(cell[procedure]["accepted"][place]) for procedure in PROCEDURES)
        for place in shown
    ]
    broken = " / ".join(_share(max(cell[p]["broken"]), 3) for p in PROCEDURES)
    alpha = _share(cell["alpha"], 2)
    return [*_name_judge(cell).values(), alpha, _share(cell["limit"]), *shares, broken]


def _show_simulated(figures: Json) -> Iterator[str]:
    summary, draws = figures["summary"], figures["draws"]
    yield "## Simulated\n"
    yield (
        f"{draws:,} draws a cell: a share of .05 has a standard error of "
        f"{_share(standard_error(DELTA, draws), 4)}. Six generators and six hostile curves, each "
        "with continuous scores and with 7 and 21 levels, alpha .05, .1 and .2, 50 to 1,000 "
        "labels. The generators, means over the cells in which a threshold exists; *ratio* is that "
        "of these means to *before*, *median* that of the cells' own ratios where *before* accepts "
        f"{100 * MIN_BEFORE:.0f} % or more:\n"
    )
    yield _show_ratios(summary["generators"])
    yield _show_broken(summary["generators"])
    yield (
        "The hostile curves (most or all thresholds just above alpha, so that any acceptance "
        f"breaks the promise; {_share(summary['hostile']['allowed'], 4)} are 5 % and three "
        "standard errors):\n"
    )
    yield _show_broken(summary["hostile"])
    yield "Worst share of broken promises of each population, over levels, alphas and labels:\n"
    names = list(dict.fromkeys(cell["population"] for cell in figures["cells"]))
    rows = []
    for name in names:
        of = [cell for cell in figures["cells"] if cell["population"] == name]
        worst = [_share(float(_stack(of, p, "broken").max()), 4) for p in PROCEDURES]
        rows.append([name, *worst])
    yield _table(["population", *PROCEDURES], rows)
    yield "With five looks at most, from 50 labels on (alpha .1), over all of these:\n"
    yield _show_looks(summary["looks"])


def _share(value: float, digits: int = 2) -> str:
    """Return a share without its zero, such as .05."""
    return f"{value:.{digits}f}".removeprefix("0")
