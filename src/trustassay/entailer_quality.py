"""How far a run's entailer agrees with people, as measured on published labelled sets.

The figures are in ``backends/weights/measured.json``, by the name under which a run records its
entailer. A new version of the weights has a new name, and no figures until they are put there.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

BETTER = "openai:gpt-4o-mini"
"""An entailer that reads all languages and more closely than the embedded one, at a low price."""
LOCAL = ("qwen2.5-coder-1.5b", "1.1 GB")
"""A model for a second reader on this machine that ``trustassay models get`` fetches; its size."""
READ_TWICE = frozenset({"faithfulness", "grounding"})
"""The metrics that take a second reader."""

CHANCE = 0.6
"""An interval that ends below it is called hardly better than chance, which is 0.5."""
PAIRS = "pairs"
"""The sets of passages and statements, for metrics without figures of their own."""


class Agreement(NamedTuple):
    """The AUC on one labelled set, 0.5 for chance and 1 at best, with its 95 % interval."""

    data: str
    set: str
    n: int
    auc: float
    interval: Sequence[float]


@dataclass(frozen=True)
class EntailerQuality:
    """How sure the entailer of a run is.

    sets: what was measured, best first; empty for an entailer that was not measured here.
    near_copies: the AUC on pairs of a supported statement and a near copy that is not. weak: what
    it does not see. page: where the documentation says more. larger: what a larger judge would cost
    for the same run, as in ``summary.json``. why: the metric was chosen, if nobody named it.
    alone: the run could have had a second reader, and had none.
    """

    name: str
    larger: Mapping[str, Any] | None = None
    why: str = ""
    sets: tuple[Agreement, ...] = ()
    near_copies: Agreement | None = None
    weak: tuple[str, ...] = ()
    page: str = "docs/models/entailers.md"
    alone: bool = False

    @property
    def sentence(self) -> str:
        """How sure this judge is, in one sentence."""
        if not self.sets:
            return (
                f"The agreement of {self.name} with people was not measured here; "
                "`trustassay entailers FILE --entailer URI` measures it on your own labelled pairs."
            )
        best, *others = self.sets
        words = [f"{_short(best.auc)} on {best.data}"]
        if others:
            words.append(f"{_short(others[-1].auc)} on {others[-1].data}")
        result = (
            f"The entailer {self.name} agrees with people at an AUC of {' and '.join(words)} "
            "(.5 is chance, 1 is perfect)"
        )
        if self.near_copies:
            copies = self.near_copies
            how = "hardly better than chance, " if copies.interval[1] < CHANCE else ""
            result += f"; on {copies.n} hand-written minimal pairs {how}AUC {_short(copies.auc, 3)}"
        if self.weak:
            result += f"; it misses {', '.join(self.weak[:-1])} and {self.weak[-1]}"
        return f"{result}."

    @property
    def note(self) -> str:
        """The sentence, what a larger judge costs, and why the run's metric was chosen."""
        why = f"Why this metric: {self.why}." if self.why else ""
        return " ".join(filter(None, (self.sentence, self.way_out, why)))

    @property
    def way_out(self) -> str:
        """How to have the same answers judged by a larger model, and what it costs; empty where the
        entailer is not one that was measured here.
        """
        if not self.sets:
            return ""
        message = f"A larger judge: --entailer {BETTER}"
        name, size = LOCAL
        get = f"`trustassay models get {name}` ({size})"
        local = f" A second reader on this machine: {get}, then --second {name}." * self.alone
        if not self.larger:
            return f"{message}.{local}"
        usd, samples = self.larger["usd"], self.larger["samples"]
        price = "less than 0.01" if usd < 0.01 else f"about {usd:,.2f}"
        of = f" (prices: {self.larger['prices']})" if self.larger["prices"] else ""
        of = f"{'this 1' if samples == 1 else f'these {samples:,}'}{of}"
        return f"{message}, {price} USD for {of}.{local}"


def entailer_quality(
    entailer: str,
    metrics: Collection[str],
    larger: Mapping[str, Any] | None = None,
    why: str = "",
    second: str | None = None,
) -> EntailerQuality:
    """Return how sure an entailer is, by the name in ``run.json``, for a run of these metrics.

    second: the name of the run's second reader, if it has one.
    """
    raw = _figures().get(entailer)
    if raw is None:
        return EntailerQuality(entailer, why=why)
    own = next((name for name in metrics if name in raw["sets"]), PAIRS)
    result = [Agreement(**one) for one in raw["sets"][own]]
    copies = Agreement("near copies", "hand-written minimal pairs", **raw["near_copies"])
    result.sort(key=lambda one: -one.auc)
    alone = not second and not READ_TWICE.isdisjoint(metrics)
    return EntailerQuality(
        entailer, larger, why, tuple(result), copies, tuple(raw["weak"]), raw["page"], alone
    )


@cache
def _figures() -> dict[str, Any]:
    source = files("trustassay.backends").joinpath("weights", "measured.json")
    result: dict[str, Any] = json.loads(source.read_text(encoding="utf-8"))
    return result


def _short(value: float, digits: int = 2) -> str:
    """Write a share as the field does: ``.91``."""
    return f"{value:.{digits}f}".removeprefix("0")
