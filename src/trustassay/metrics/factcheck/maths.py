"""The formulas of the fact check: from passages' probabilities to a verdict, and its score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from trustassay.capabilities import Entailment
from trustassay.verdicts import Verdict

Rule = Literal["support", "stronger"]

SCORES: Mapping[Verdict, float] = {"support": 1.0, "neutral": 0.5, "contradict": 0.0}
"""Trust_FC of each verdict. Zheng et al. 2024 give no numbers for it alone; of equal distances any
three give the same correlations.
"""


class Decision(NamedTuple):
    """A verdict, and the place of the passage that decided it; ``None`` where none did."""

    verdict: Verdict
    place: int | None


def decided(rows: Sequence[Entailment], threshold: float, rule: Rule = "support") -> Decision:
    """Return the verdict of several passages on one statement, each judged by itself.

    Let E be the largest probability of entailment among the passages, C the largest of
    contradiction, t the ``threshold``. Where only one of E >= t and C >= t holds, it decides:
    support, or contradict; where neither does, or without passages, the verdict is neutral. Where
    both hold, ``support`` (the rule) takes support, ``stronger`` the larger of the two, and
    support where they are equal. Of passages with equal probabilities the first decides.
    """
    if not rows:
        return Decision("neutral", None)
    places = range(len(rows))
    best = max(places, key=lambda place: rows[place].entailment)
    worst = max(places, key=lambda place: rows[place].contradiction)
    supported = rows[best].entailment >= threshold
    contradicted = rows[worst].contradiction >= threshold
    if supported and contradicted and rule == "stronger":
        supported = rows[best].entailment >= rows[worst].contradiction
    if supported:
        return Decision("support", best)
    return Decision("contradict", worst) if contradicted else Decision("neutral", None)
