"""The figures of a data set: the win rate in both conventions, and the effect of the order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from trustassay.metric import Assessment, Figure, Metric, Summary
from trustassay.metrics.pairwise import maths
from trustassay.statistics.intervals import FEWEST, too_few
from trustassay.statistics.randomness import generator

__all__ = ["FIGURES", "summarise"]

_RATES: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "win_rate": (maths.win_rate, "questions that were won or lost"),
    "win_share": (lambda table: maths.shares(table)[..., 0], "questions"),
    "loss_share": (lambda table: maths.shares(table)[..., 1], "questions"),
    "tie_share": (lambda table: maths.shares(table)[..., 2], "questions"),
    "first_chosen": (maths.first_chosen, "questions with a choice"),
}


def _figures(*rows: tuple[str, str, str, bool]) -> dict[str, Figure]:
    return {key: Figure(key, words, unit, headline=main) for key, words, unit, main in rows}


FIGURES: Mapping[str, Figure] = _figures(
    ("win_rate", "won among those that were won or lost; 50 for equals", "%", True),
    ("wins", "questions won: preferred in both orders", "", True),
    ("losses", "questions lost: the other answer preferred in both orders", "", True),
    ("unsure", "dropped: not sure in one order or both, or equal answers", "", True),
    ("inconsistent", "dropped: the same place chosen in both orders", "", True),
    ("unreadable", "dropped: a reply that names no choice", "", True),
    ("first_both", "of the inconsistent: the first place chosen twice", "", False),
    ("second_both", "of the inconsistent: the second place chosen twice", "", False),
    ("equal", "of the unsure: answers that are equal, which nobody was asked about", "", False),
    ("win_share", "won, if ties are kept; the three shares sum to 100", "%", True),
    ("loss_share", "lost, if ties are kept", "%", True),
    ("tie_share", "tied: neither won nor lost in both orders", "%", True),
    ("first_chosen", "choices for the answer that is read first; 50 without a bias", "%", True),
)


def summarise(metric: Metric, assessments: Collection[Assessment], seed: int) -> Summary:
    """Return the figures over the questions that were judged, read once."""
    n = failed = equal = 0
    choices = []
    for one in assessments:
        n += 1
        failed += one.error is not None
        if one.error is None:
            places = (int(one.parts["first"]), int(one.parts["swapped"]))
            choices.append((maths.CHOICES[places[0]], maths.CHOICES[places[1]]))
            equal += int(one.parts["equal"])
    table = maths.counted(choices)
    counts = maths.outcomes(table)
    values: dict[str, float | int | None] = {
        "wins": counts["win"],
        "losses": counts["loss"],
        "unsure": counts["unsure"],
        "inconsistent": counts["inconsistent"],
        "unreadable": counts["unreadable"],
        "first_both": int(table[0, 0]),
        "second_both": int(table[1, 1]),
        "equal": equal,
    }
    decided = counts["win"] + counts["loss"]
    read = int(table[:3, :3].sum())
    with_choice = int(table.sum() - table[2:, 2:].sum())
    support = dict.fromkeys(values, int(table.sum()))
    support |= {"win_rate": decided, "first_chosen": with_choice}
    support |= dict.fromkeys(("win_share", "loss_share", "tie_share"), read)
    intervals: dict[str, tuple[float, float]] = {}
    without: dict[str, str] = {}
    missing: dict[str, str] = {}
    for key, (figure, what) in _RATES.items():
        if not support[key]:
            values[key] = None
            missing[key] = f"no {what}"
            continue
        values[key] = float(figure(table))
        if reason := too_few(what, support[key], FEWEST):
            without[key] = reason
        elif found := maths.interval(figure, table, generator(seed, "pairwise", key)):
            intervals[key] = found
        else:
            without[key] = "every question says the same"
    return Summary(
        {key: values[key] for key in FIGURES},
        n,
        failed,
        intervals,
        support,
        missing,
        metric.settings(),
        without,
    )
