"""The position bias and the accuracy of six published judges, from their stored verdicts.

    python -m lab.benchmarks.llmbar            # a second; no model is asked
    python -m lab.benchmarks.llmbar --write

LLMBar (Zeng et al. 2024): pairs of outputs, one better by people, and each judge's winner in both
orders. Accuracy is the mean of both orders, where what could not be read is wrong; positional
agreement the share of equal winners, two unreadable ones among them, as the authors count. Their
own figures of some judges are held against ours. The position bias is that of ``trustassay
audit``: how often output 1 wins when it is read first, less when it is read second.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lab.benchmarks.which_metric.sets import shared
from lab.results import write_result
from trustassay.statistics.comparison import measure_change_effect
from trustassay.statistics.intervals import mean_interval, unit_mean
from trustassay.statistics.resampling import generator, holm

PROMPTS = ("Vanilla_NoRules", "Vanilla", "CoT")
PUBLISHED: Mapping[tuple[str, str], tuple[float, float]] = {
    ("GPT-4/Vanilla", "Natural"): (95.5, 95.0),
    ("PaLM2/Vanilla_NoRules", "Natural"): (82.0, 84.0),
    ("PaLM2/Vanilla_NoRules", "Adversarial/Neighbor"): (51.1, 70.9),
    ("ChatGPT/CoT", "Adversarial/Neighbor"): (22.8, 62.7),
    ("Falcon/CoT", "Adversarial/GPTInst"): (51.6, 8.7),
}
"""Accuracy and agreement in the authors' ``statistics.json``, which their paper reports."""

Row = Mapping[str, Any]


def rows() -> list[Row]:
    """Return the pairs with the verdicts of all judges."""
    path = shared() / "llmbar" / "judgements.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def table_row(some: Sequence[Row], judge: str) -> tuple[float, float]:
    """Return accuracy and positional agreement of a judge on some pairs, in percent."""
    verdicts = [(row["verdicts"][judge], str(row["label"])) for row in some]
    right = sum((a == label) + (b == label) for (a, b), label in verdicts) / 2
    equal = sum(a == b for (a, b), _ in verdicts)
    return round(100 * right / len(some), 1), round(100 * equal / len(some), 1)


def position(some: Sequence[Row], judge: str) -> dict[str, Any]:
    """Return what the order does to a judge, of the pairs that it judged in both."""
    pairs = [row["verdicts"][judge] for row in some if None not in row["verdicts"][judge]]
    wins = np.array([[winner == "1" for winner in pair] for pair in pairs], dtype=np.float64)
    change, flipped = wins[:, 0] - wins[:, 1], wins[:, 0] != wins[:, 1]
    found = measure_change_effect(
        change,
        flipped,
        np.arange(len(pairs)),
        1.0,
        generator(0, "llmbar", judge),
        np.zeros(len(pairs), dtype=bool),
    )
    assert found.shift.interval
    assert found.flips.interval
    return {
        "pairs": len(pairs),
        "unreadable": len(some) - len(pairs),
        "first_less_second": round(100 * (found.shift.value or 0.0), 1),
        "interval": [round(100 * end, 1) for end in found.shift.interval],
        "flips": round(100 * (found.flips.value or 0.0), 1),
        "flips_interval": [round(100 * end, 1) for end in found.flips.interval],
    }


def figures_of(some: Sequence[Row]) -> dict[str, Any]:
    """Return the table of all judges."""
    subsets = list(dict.fromkeys(row["subset"] for row in some))
    names = sorted(name for name in some[0]["verdicts"] if name.split("/")[1] in PROMPTS)
    judges: dict[str, Any] = {}
    for name in names:
        parts = {of: [row for row in some if row["subset"] == of] for of in subsets}
        label = [np.mean([v == str(row["label"]) for v in row["verdicts"][name]]) for row in some]
        accuracy = mean_interval(*unit_mean(np.array(label)))
        own = {of: table_row(part, name) for of, part in parts.items()}
        judges[name.replace("/", " ")] = {
            "accuracy": table_row(some, name)[0],
            "accuracy_interval": [round(100 * end, 1) for end in accuracy],
            "agreement": table_row(some, name)[1],
            "by_subset": own,
            "position": position(some, name),
        }
    changes = {name: one["position"]["first_less_second"] for name, one in judges.items()}
    ps = []
    for name in names:
        pairs = [row["verdicts"][name] for row in some if None not in row["verdicts"][name]]
        change = np.array([(a == "1") - (b == "1") for a, b in pairs], dtype=np.float64)
        rng = generator(0, "llmbar", name, "signs")
        count = np.zeros(len(pairs), dtype=bool)
        ps.append(measure_change_effect(change, count, np.arange(len(pairs)), 1.0, rng, count).p)
    for name, p in zip(names, holm(ps), strict=True):
        judges[name.replace("/", " ")]["position"]["p"] = float(f"{p:.2g}")
    equal = {
        f"{judge}, {subset}": [
            list(judges[judge.replace("/", " ")]["by_subset"][subset]),
            list(own),
        ]
        for (judge, subset), own in PUBLISHED.items()
    }
    return {
        "pairs": len(some),
        "judges": judges,
        "biased_by_position": sum(one["position"]["p"] < 0.05 for one in judges.values()),
        "largest": max(changes, key=lambda name: abs(changes[name])),
        "ours_and_published": equal,
        "published_equal": sum(ours == theirs for ours, theirs in equal.values()),
        "published": len(equal),
    }


def main() -> None:
    """Measure, print, and with --write keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    figures = figures_of(rows())
    for name, one in figures["judges"].items():
        place = one["position"]
        print(
            f"{name:28} accuracy {one['accuracy']:5.1f} {one['accuracy_interval']} agreement "
            f"{one['agreement']:5.1f}; first less second {place['first_less_second']:+6.1f} "
            f"{place['interval']} p {place['p']}"
        )
    print({key: value for key, value in figures.items() if key != "judges"})
    if args.write:
        data = "LLMBar with the published verdicts of six judges, three prompts, both orders"
        write_result("llmbar", "python -m lab.benchmarks.llmbar", data, figures)


if __name__ == "__main__":
    main()
