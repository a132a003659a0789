"""How far a run's entailer agrees with human labels, as measured on published labelled sets.

The numbers are in ``backends/weights/measured.json``, under the name by which a run records its
entailer. New weights have a new name, and no numbers until they are measured and added there.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

LARGER_ENTAILER = "openai:gpt-4o-mini"
"""An entailer for all languages that is more accurate than the embedded one, at a low price."""
LOCAL_SECOND_READER = ("qwen2.5-coder-1.5b", "1.1 GB")
"""A model for a second reader on this machine, which ``trustassay models get`` downloads, and its
size."""
METRICS_WITH_SECOND_READER = frozenset({"faithfulness", "grounding"})
"""The metrics that take a second reader."""

NEAR_CHANCE_AUC = 0.6
"""An AUC whose interval ends below this is called hardly better than chance, which is 0.5."""
PAIR_SETS = "pairs"
"""Key of the sets of passages and statements, for metrics without measurements of their own."""


class BenchmarkAuc(NamedTuple):
    """How well an entailer separates supported from unsupported statements on one labelled set."""

    data: str
    """Name of the labelled set, as a reader sees it."""
    set: str
    """Key of the set in the measurements."""
    n: int
    """Number of labelled pairs."""
    auc: float
    """Area under the ROC curve: 0.5 for chance, 1 at best."""
    interval: Sequence[float]
    """95 % interval of ``auc``: lower and upper end."""


@dataclass(frozen=True)
class EntailerQuality:
    """How reliable the entailer of a run is, and what would be better."""

    name: str
    """The name under which the run records its entailer."""
    larger: Mapping[str, Any] | None = None
    """The cost of the same run with a larger judge, as in ``summary.json``."""
    metric_reason: str = ""
    """Why the metric was chosen, if the user named none."""
    sets: tuple[BenchmarkAuc, ...] = ()
    """The measurements, best first; empty for an entailer that was not measured."""
    near_copies: BenchmarkAuc | None = None
    """AUC on pairs of a supported statement and a nearly identical unsupported one."""
    weak: tuple[str, ...] = ()
    """Kinds of errors that the entailer misses."""
    page: str = "docs/models/entailers.md"
    """The page of the documentation that says more."""
    lacks_second: bool = False
    """Whether the run could have had a second reader, and had none."""

    @property
    def sentence(self) -> str:
        """How reliable this entailer is, in one sentence."""
        if not self.sets:
            return (
                f"The agreement of {self.name} with people was not measured here; "
                "`trustassay entailers FILE --entailer URI` measures it on your own labelled pairs."
            )
        # `sets` is sorted: the best and the worst measurement give the range that a reader may
        # expect.
        best, *weaker = self.sets
        scores = [f"{_format_share(best.auc)} on {best.data}"]
        if weaker:
            scores.append(f"{_format_share(weaker[-1].auc)} on {weaker[-1].data}")
        result = (
            f"The entailer {self.name} agrees with people at an AUC of {' and '.join(scores)} "
            "(.5 is chance, 1 is perfect)"
        )
        if self.near_copies:
            copies = self.near_copies
            # The upper end of the interval counts: only then is the whole interval close to 0.5.
            qualifier = (
                "hardly better than chance, " if copies.interval[1] < NEAR_CHANCE_AUC else ""
            )
            auc = _format_share(copies.auc, 3)
            result += f"; on {copies.n} hand-written minimal pairs {qualifier}AUC {auc}"
        if self.weak:
            result += f"; it misses {', '.join(self.weak[:-1])} and {self.weak[-1]}"
        return f"{result}."

    @property
    def note(self) -> str:
        """The sentence, the price of a larger judge, and why the run's metric was chosen."""
        metric_reason = f"Why this metric: {self.metric_reason}." if self.metric_reason else ""
        return " ".join(filter(None, (self.sentence, self.advice, metric_reason)))

    @property
    def advice(self) -> str:
        """How to have the same answers judged by a larger model, and the price.

        Empty if the entailer was not measured: then it may be the larger one already.
        """
        if not self.sets:
            return ""
        message = f"A larger judge: --entailer {LARGER_ENTAILER}"
        name, size = LOCAL_SECOND_READER
        command = f"`trustassay models get {name}` ({size})"
        # `* self.alone` leaves the advice out where the run has a second reader, or can have none.
        local = (
            f" A second reader on this machine: {command}, then --second {name}."
            * self.lacks_second
        )
        if not self.larger:
            return f"{message}.{local}"
        usd, samples = self.larger["usd"], self.larger["samples"]
        price = "less than 0.01" if usd < 0.01 else f"about {usd:,.2f}"
        for_samples = f" (prices: {self.larger['prices']})" if self.larger["prices"] else ""
        for_samples = f"{'this 1' if samples == 1 else f'these {samples:,}'}{for_samples}"
        return f"{message}, {price} USD for {for_samples}.{local}"


def find_entailer_quality(
    entailer: str,
    metrics: Collection[str],
    larger: Mapping[str, Any] | None = None,
    metric_reason: str = "",
    second: str | None = None,
) -> EntailerQuality:
    """Return the quality of an entailer for a run.

    Args:
        entailer: the name in ``run.json``. metrics: names of the run's metrics.
        larger: the cost of a larger judge. why: why the metric was chosen.
        second: the name of the run's second reader, if it has one.
    """
    raw = _read_measured().get(entailer)
    if raw is None:
        return EntailerQuality(entailer, metric_reason=metric_reason)
    # The first metric with measurements of its own decides; others use the sets of plain pairs.
    set_name = next((name for name in metrics if name in raw["sets"]), PAIR_SETS)
    agreements = [BenchmarkAuc(**measurement) for measurement in raw["sets"][set_name]]
    copies = BenchmarkAuc("near copies", "hand-written minimal pairs", **raw["near_copies"])
    # The measurements are stored by set; `sentence` relies on the best coming first.
    agreements.sort(key=lambda measurement: -measurement.auc)
    lacks_second = not second and not METRICS_WITH_SECOND_READER.isdisjoint(metrics)
    return EntailerQuality(
        entailer,
        larger,
        metric_reason,
        tuple(agreements),
        copies,
        tuple(raw["weak"]),
        raw["page"],
        lacks_second,
    )


@cache
def _read_measured() -> dict[str, Any]:
    source = files("trustassay.backends").joinpath("weights", "measured.json")
    result: dict[str, Any] = json.loads(source.read_text(encoding="utf-8"))
    return result


def _format_share(value: float, digits: int = 2) -> str:
    """Write a share as the field does: ``.91``."""
    return f"{value:.{digits}f}".removeprefix("0")
