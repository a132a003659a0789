"""How far a run's entailer agrees with human labels, as measured on published labelled sets.

The numbers are in ``backends/weights/measured.json``, under the name by which a run records its
entailer. New weights have a new name, and no numbers until they are measured and added there.
:data:`WEAKNESSES` has in words what the shipped entailer misses in each kind of file.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from trustassay.judging.input_kind import InputKind
from trustassay.text.numbers import amount, percent_text

LARGER_ENTAILER = "openai:gpt-4o-mini"
"""A larger entailer than the embedded one, for all languages, at a low price."""
LOCAL_SECOND_READER = ("qwen2.5-coder-1.5b", "1.1 GB")
"""A model for a second reader on this machine, which ``trustassay models get`` downloads, and its
size."""
METRICS_WITH_SECOND_READER = frozenset({"faithfulness", "grounding"})
"""The metrics that take a second reader."""
METRICS_OF_PASSAGES = METRICS_WITH_SECOND_READER | {"factcheck", "rag", "tool_use", "trustscore"}
"""The metrics whose entailer compares an answer with passages."""


class MeasuredText(NamedTuple):
    """A measured figure as it is printed."""

    text: str
    """The figure: ``3 %`` or ``10 of 15``."""
    source: str
    """Its file in ``lab/results`` (``measured``: ``measured.json``), and the key in it."""
    is_complement: bool = False
    """Whether the share is 1 minus the measured one."""


class Weakness(NamedTuple):
    """What an entailer misses in one kind of file."""

    text: str
    """What is missed in which kind of file, after the judge's name, with a place for each figure. A
    pair is of a true and a false answer; the true one should have the higher score."""
    figures: tuple[MeasuredText, ...]
    """The figures in the sentence."""
    better: str = "larger"
    """What reads better: ``larger``, a larger model; ``second``, the second reader for this
    machine; or the options of a command."""

    def __str__(self) -> str:
        return self.text.format(*(figure.text for figure in self.figures))


_NEAR_COPIES = "entailer#near_copies/kinds/kind="
_PUBLIC = "public-labels#figures/now/"
_MEASURED = "measured#embedded:9/sets/faithfulness/set="
_AGENTS = f"{_PUBLIC}tau-bench,_reward/all/embedded/"
AGENTS_PAGE = "docs/methods/faithfulness.md"
"""The page about the metrics for chats with tools."""
# "second" only where it was better on the sets of this kind: planted errors in copies
# (second-planted-1.5b.json: of 143 flagged answers 89 wrong ones, before 87 of 161), and replies in
# dialogues (local-judges.json: AUC .85 on Q2, where embedded has .64).
WEAKNESSES: Mapping[str, Mapping[InputKind, Weakness]] = {
    "embedded:9": {
        "copied": Weakness(
            "misses {} swapped roles and {} swapped names in near copies of passages",
            (
                MeasuredText("9 of 15", f"{_NEAR_COPIES}roles/others"),
                MeasuredText("6 of 15", f"{_NEAR_COPIES}swapped_entity/others"),
            ),
            "second",
        ),
        "partly reworded": Weakness(
            "picks the true answer in {} of pairs of partly reworded answers (chance: 50 %)",
            (MeasuredText("79 %", "entailer#sets/set=WiCE,_oracle_packs/auc"),),
        ),
        "reworded": Weakness(
            "passes {} of true and {} of false answers if they are reworded",
            (
                MeasuredText("14 %", "rewording#figures/all/embedded/true_passed"),
                MeasuredText("25 %", "rewording#figures/all/embedded/false_passed"),
            ),
        ),
        "data": Weakness(
            "picks the true text in {} of pairs about data, {} about tables (chance: 50 %)",
            (
                MeasuredText("67 %", f"{_MEASURED}Quintd-1/auc"),
                MeasuredText("48 %", f"{_MEASURED}SciTab/auc"),
            ),
        ),
        "summaries": Weakness(
            "picks the true summary in {} of news pairs, {} of edited pairs (chance: 50 %)",
            (
                MeasuredText("82 %", "entailer#sets/set=XSum_hallucinations/auc"),
                MeasuredText("63 %", "entailer#sets/set=SummEdits,_other_domains/auc"),
            ),
        ),
        "long answers": Weakness(
            "picks the true answer in {} of pairs of long answers (chance: 50 %)",
            (MeasuredText("55 %", "which-metric#sets/ExpertQA/faithfulness.support"),),
        ),
        "long passages": Weakness(
            "misses {} false claims and flags {} true ones if passages are long",
            (
                MeasuredText("5 of 15", f"{_NEAR_COPIES}long_passages/others"),
                MeasuredText("5 of 15", f"{_NEAR_COPIES}long_passages/supported", True),
            ),
        ),
        "chats": Weakness(
            "misses {} wrong pronouns and {} swapped names in chats",
            (
                MeasuredText("11 of 15", f"{_NEAR_COPIES}coreference/others"),
                MeasuredText("6 of 15", f"{_NEAR_COPIES}swapped_entity/others"),
            ),
            "second",
        ),
    },
    # The embedded entailer is better at these: AUC .73, .79 and .64.
    "lexical": {
        "copied": Weakness(
            "picks the true answer in {} of pairs of copied answers (chance: 50 %)",
            (MeasuredText("50 %", "measured#lexical/near_copies/auc"),),
            "--entailer embedded",
        ),
        "partly reworded": Weakness(
            "picks the true answer in {} of pairs of partly reworded answers (chance: 50 %)",
            (MeasuredText("76 %", "measured#lexical/sets/pairs/set=WiCE,_oracle_packs/auc"),),
            "--entailer embedded",
        ),
        "reworded": Weakness(
            "picks the true answer in {} of pairs of reworded answers (chance: 50 %)",
            (MeasuredText("55 %", "measured#lexical/sets/pairs/set=HealthVer/auc"),),
            "--entailer embedded",
        ),
    },
}
"""By entailer and kind of file; the figures of others are in ``measured.json`` alone."""
AGENT_ENTAILERS = frozenset({"embedded:9"})
"""The entailers that :data:`AGENT_WEAKNESSES` were measured with."""
# By the metrics of a run of chats with tools: whether it has faithfulness, and tool_use.
AGENT_WEAKNESSES: Mapping[tuple[bool, bool], Weakness] = {
    (True, False): Weakness(
        "flags {} of successful agent chats and {} of failed ones",
        (
            MeasuredText("88 %", f"{_AGENTS}faithfulness/line/false_alarms/value"),
            MeasuredText("81 %", f"{_AGENTS}faithfulness/line/caught/value"),
        ),
        "--metric tool_use",
    ),
    (False, True): Weakness(
        "flags {} of successful agent chats and {} of failed ones",
        (
            MeasuredText("5 %", f"{_AGENTS}tool_use/line/false_alarms/value"),
            MeasuredText("3 %", f"{_AGENTS}tool_use/line/caught/value"),
        ),
    ),
    (True, True): Weakness(
        "flags {} of successful agent chats; with the metric tool_use alone, {}",
        (
            MeasuredText("88 %", f"{_AGENTS}faithfulness/line/false_alarms/value"),
            MeasuredText("5 %", f"{_AGENTS}tool_use/line/false_alarms/value"),
        ),
        "--metric tool_use",
    ),
}

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
    weakness: Weakness | None = None
    """What it misses in files of the run's kind, if that was measured."""

    @property
    def lines(self) -> tuple[str, str]:
        """Two lines for a terminal: what it misses in files of this kind, and what reads better.

        The second line ends with the page that says more.
        """
        if not self.sets:
            return (
                f"Judge {self.name} has not been compared with human labels",
                "Measure it on your labels: trustassay entailers FILE --entailer URI; "
                f"see {self.page}",
            )
        if self.weakness:
            page = AGENTS_PAGE if self.weakness.better.startswith("--metric") else self.page
            return f"Judge {self.name} {self.weakness}", f"{self._better}; see {page}"
        # An AUC is the share of pairs of a true and a false statement that are ranked right.
        best, worst = self.sets[0], self.sets[-1]
        return (
            f"Judge {self.name} picks the true answer in {percent_text(worst.auc)} ({worst.data}) "
            f"to {percent_text(best.auc)} of pairs (chance: 50 %)",
            f"{self._better}; see {self.page}",
        )

    @property
    def _better(self) -> str:
        """The command that reads better, or a larger model, with what it needs."""
        better = self.weakness.better if self.weakness else "larger"
        name, size = LOCAL_SECOND_READER
        if better == "second" and self.lacks_second:
            return f"Better verdicts: --second {name} ({size}, runs offline)"
        if better.startswith("--"):
            return f"Better verdicts: {better}"
        # Not called better: it was not measured here.
        price = ""
        if self.larger:
            usd = self.larger["usd"]
            price = ", <0.01 USD" if usd < 0.01 else f", {usd:,.2f} USD"
        return f"Larger judge: --entailer {LARGER_ENTAILER} (needs a key{price})"

    @property
    def sentence(self) -> str:
        """How reliable this entailer is, in one to three sentences."""
        if not self.sets:
            return (
                f"The judge {self.name} has not been compared with human labels. "
                "`trustassay entailers FILE --entailer URI` measures it on your own labelled pairs."
            )
        # `sets` is sorted: the best and the worst measurement give the range that a reader may
        # expect.
        best, *weaker = self.sets
        scores = [f"{_format_share(best.auc)} on {best.data}"]
        if weaker:
            scores.append(f"{_format_share(weaker[-1].auc)} on {weaker[-1].data}")
        result = (
            f"The judge {self.name} agrees with human labels with an AUC of {' and '.join(scores)} "
            "(.5 is chance, 1 is perfect)"
        )
        if self.near_copies:
            copies = self.near_copies
            # The upper end of the interval counts: only then is the whole interval close to 0.5.
            qualifier = (
                ", hardly better than chance" if copies.interval[1] < NEAR_CHANCE_AUC else ""
            )
            auc = _format_share(copies.auc, 3)
            result += f". On {copies.n} hand-written minimal pairs its AUC is {auc}{qualifier}"
        if self.weak:
            result += f". It misses {', '.join(self.weak[:-1])} and {self.weak[-1]}"
        return f"{result}."

    @property
    def note(self) -> str:
        """The sentence, the price of a larger judge, and why the run's metric was chosen."""
        return " ".join(filter(None, (self.sentence, self.advice, self.why_metric)))

    @property
    def why_metric(self) -> str:
        """Why the run's metric was chosen; empty if the user named it."""
        return f"Why this metric: {self.metric_reason}." if self.metric_reason else ""

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
            f" A second reader that runs on this machine: {command}, then --second {name}."
            * self.lacks_second
        )
        if not self.larger:
            return f"{message}.{local}"
        samples = self.larger["samples"]
        prices = f" (prices: {self.larger['prices']})" if self.larger["prices"] else ""
        cost = f"{_format_price(self.larger['usd'])} for {amount(samples, 'answer')}"
        return f"{message}, {cost}{prices}.{local}"


def find_entailer_quality(
    entailer: str,
    metrics: Collection[str],
    larger: Mapping[str, Any] | None = None,
    metric_reason: str = "",
    second: str | None = None,
    kind: InputKind | None = None,
) -> EntailerQuality:
    """Return the quality of an entailer for a run.

    Args:
        entailer: the name in ``run.json``. metrics: names of the run's metrics.
        larger: the cost of a larger judge. metric_reason: why the metric was chosen.
        second: the name of the run's second reader, if it has one.
        kind: the kind of the run's answers, if it is known.
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
        _find_weakness(entailer, metrics, kind),
    )


def _find_weakness(
    entailer: str, metrics: Collection[str], kind: InputKind | None
) -> Weakness | None:
    """Return what an entailer misses; ``None`` where that was not measured by kind of file."""
    if kind is None or METRICS_OF_PASSAGES.isdisjoint(metrics):
        return None
    # The figures on chats with tools are those of the shipped entailer.
    if kind == "tools" and entailer in AGENT_ENTAILERS:
        return AGENT_WEAKNESSES.get(("faithfulness" in metrics, "tool_use" in metrics))
    return WEAKNESSES.get(entailer, {}).get(kind)


@cache
def _read_measured() -> dict[str, Any]:
    source = files("trustassay.backends").joinpath("weights", "measured.json")
    result: dict[str, Any] = json.loads(source.read_text(encoding="utf-8"))
    return result


def _format_price(usd: float) -> str:
    return "less than 0.01 USD" if usd < 0.01 else f"about {usd:,.2f} USD"


def _format_share(value: float, digits: int = 2) -> str:
    """Write a share as the field does: ``.91``."""
    return f"{value:.{digits}f}".removeprefix("0")
