"""Apply a calibrator to a finished run.

It gives each answer a probability of being right, accepts answers above thresholds, and tests
whether the run is like the one that the calibrator was made from.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trustassay.data.records import InputError
from trustassay.judging.second_reader import ROLE as SECOND
from trustassay.metric import Assessment
from trustassay.runs.calibrator import AMONG_ACCEPTED, OF_ALL, Calibrator
from trustassay.runs.counts import rows
from trustassay.runs.folder import RunFolder, as_stored, metric_infos
from trustassay.runs.lines import Step, nothing
from trustassay.runs.needs import needed_words
from trustassay.sample import question_key
from trustassay.show.answers import AnswerChance, ChancesTold
from trustassay.statistics import Bools, Floats, Places
from trustassay.statistics.comparison import unlikeness
from trustassay.statistics.resampling import cluster_numbers, holm
from trustassay.text.words import amount

CALIBRATED = "calibrated"
"""Key in ``summary.json`` of the result of a calibrator."""
CALIBRATOR = "calibrator.json"
"""The copy of the calibrator in a run's folder."""
FALSE_ALARMS = 0.01
"""The probability, at most, that data of the same kind are called unlike."""
TOLD = 3
"""Differing settings that a message names."""


@dataclass(frozen=True)
class Calibrated:
    """The result of a calibrator for the answers of a run, in input order."""

    calibrator: Calibrator
    probabilities: Floats
    """The probability that each answer is right, shape (n,), NaN where there is none."""
    accepted: Sequence[Bools]
    """By promise, which answers are accepted, each of shape (n,)."""
    failed: int
    """Answers without a probability since a metric failed."""
    without: int
    """Answers without a probability since a metric gave no score."""
    unlike: Mapping[str, Mapping[str, float]]
    """By score and part: ``distance`` of the distributions, and corrected ``p``-value."""

    def of(self, number: int) -> AnswerChance:
        """Return the probability of an answer and whether it is accepted.

        Args:
            number: of the answer, from 0.
        """
        probability = float(self.probabilities[number])
        # An answer is accepted or not by the first promise that has a threshold.
        shown = next((at for at, one in enumerate(self.calibrator.promises) if not one.without), -1)
        accepted = bool(self.accepted[shown][number]) if shown >= 0 else None
        return AnswerChance(None if math.isnan(probability) else probability, accepted)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, without single answers."""
        there = self.probabilities[~np.isnan(self.probabilities)]
        return {
            "fingerprint": self.calibrator.fingerprint,
            "label": self.calibrator.label,
            "method": self.calibrator.method,
            "labelled": self.calibrator.answers,
            "answers": len(self.probabilities),
            "with_probability": len(there),
            "failed": self.failed,
            "without_score": self.without,
            "mean_probability": float(there.mean()) if len(there) else None,
            "accepted": [
                {
                    "kind": promise.kind,
                    "at_most": promise.at_most,
                    "confidence": promise.confidence,
                    "above": promise.above,
                    "accepted": None if promise.without else int(taken.sum()),
                    "without": promise.without,
                }
                for promise, taken in zip(self.calibrator.promises, self.accepted, strict=True)
            ],
            "likeness": {name: dict(found) for name, found in self.unlike.items()},
            "unlike": [name for name, found in self.unlike.items() if found["p"] < FALSE_ALARMS],
        }


def check_calibrator(
    calibrator: Calibrator,
    metrics: Mapping[str, Mapping[str, Any]],
    backends: Mapping[str, Any],
    where: str,
) -> None:
    """Refuse a calibrator of other metrics, options or backends.

    Args:
        metrics: options by name, as in ``run.json``.
        backends: names by option name, as in ``run.json``.
        where: the beginning of the message.

    Raises:
        InputError: they differ.
    """
    for one in calibrator.inputs:
        if one.metric not in metrics:
            has = ", ".join(metrics) or "none"
            raise InputError(
                f"{where}: the calibrator is of the metric {one.metric}; this run has {has}"
            )
        # A calibrator that was made without a second reader does not fit a run with one.
        asked = needed_words(one.metric, metrics[one.metric], backends) & {SECOND}
        named = {name: backends.get(name) for name in (*one.backends, *asked)}
        for what, same, theirs, here in (
            ("options", "options", one.options, metrics[one.metric]),
            ("models", "ones", one.backends, named),
        ):
            if differing := _differing(theirs, as_stored(here)):
                raise InputError(
                    f"{where}: {one.metric} has other {what} than the calibrator was made with: "
                    f"{differing}. Score with the same {same}, or calibrate on a run with these"
                )


def _differing(theirs: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    names = [name for name in {**theirs, **here} if theirs.get(name) != here.get(name)]
    told = [f"{name} {here.get(name)!r}, not {theirs.get(name)!r}" for name in names]
    return "; ".join(told[:TOLD])[:300]


def calibrated_run(folder: RunFolder, calibrator: Calibrator, step: Step = nothing) -> Calibrated:
    """Apply a calibrator to a finished run.

    Raises:
        RunFolderError: the folder holds no finished run.
        InputError: the calibrator is of other metrics, options or models.
    """
    run, _ = folder.read_finished()
    check_calibrator(calibrator, run["metrics"], run["backends"], str(folder.path))
    infos = list(metric_infos(folder, run).values())
    names = list(dict.fromkeys([*(one.name for one in calibrator.inputs), *calibrator.spreads]))
    values: list[list[float]] = []
    failed: list[bool] = []
    questions: list[str] = []
    for _, sample, assessments in rows(folder, infos):
        by_metric = {one.metric: one for one in assessments}
        values.append([_value(by_metric, name) for name in names])
        failed.append(any(by_metric[name].error is not None for name in calibrator.metrics))
        questions.append(question_key(str(sample.get("question") or "")))
        step()
    # The reshape matters for a run without samples.
    table = np.array(values, dtype=np.float64).reshape(len(values), len(names))
    out = np.array(failed, dtype=bool)
    # An answer that failed in one metric has no probability, even if others scored it.
    inputs = np.where(out[:, None], np.nan, table[:, : len(calibrator.inputs)])
    probabilities, ranks = calibrator.probabilities(inputs), calibrator.ranks(inputs)
    # Without a probability an answer is never accepted.
    ranks = np.where(np.isnan(probabilities), np.nan, ranks)
    return Calibrated(
        calibrator,
        probabilities,
        [promise.accepts(ranks) for promise in calibrator.promises],
        int(out.sum()),
        int((np.isnan(probabilities) & ~out).sum()),
        _unlike(calibrator, names, table[~out], cluster_numbers(questions)[~out]),
    )


def _value(by_metric: Mapping[str, Assessment], name: str) -> float:
    metric, _, part = name.partition(".")
    one = by_metric[metric]
    result = one.parts.get(part) if part else one.score
    return math.nan if result is None else float(result)


def _unlike(
    calibrator: Calibrator, names: Sequence[str], table: Floats, questions: Places
) -> dict[str, dict[str, float]]:
    # Many scores are tested at once, so that the p-values are corrected (Holm).
    spreads = calibrator.spreads
    result = {
        name: unlikeness(spreads[name], table[:, names.index(name)], questions) for name in spreads
    }
    corrected = holm([one.p for one in result.values()])
    return {
        name: {"distance": one.distance, "p": p}
        for (name, one), p in zip(result.items(), corrected, strict=True)
    }


# in words


def promise_in_words(kind: str, at_most: float, confidence: float | None) -> str:
    """Return a promise in words."""
    if kind == AMONG_ACCEPTED:
        sure = 100 * (confidence or 0)
        return f"at most {100 * at_most:.3g} % of them wrong (confidence {sure:.3g} %)"
    return f"at most {100 * at_most:.3g} % of all answers accepted and wrong, on average"


def chances_told(found: Mapping[str, Any]) -> ChancesTold:
    """Return sentences and warnings on the result of a calibrator.

    Args:
        found: the block ``calibrated`` of ``summary.json``.
    """
    n = found["with_probability"]
    kinds = (("failed", "failed"), ("without_score", "without a score"))
    left = ", ".join(f"{found[name]:,} {words}" for name, words in kinds if found[name])
    sentences = [
        f"Probability of being right ({found['label']}), {found['method']}, from "
        f"{amount(found['labelled'], 'labelled answer')}: "
        + (f"mean {found['mean_probability']:.3f} of {amount(n, 'answer')}" if n else "none")
        + (f"; no probability: {left}" if left else "")
    ]
    for one in found["accepted"]:
        promise = promise_in_words(one["kind"], one["at_most"], one["confidence"])
        # The promises on average share one sentence below.
        if one["kind"] != AMONG_ACCEPTED:
            continue
        if one["without"]:
            sentences.append(f"Accepted with {promise}: no threshold; {one['without']}")
        else:
            sentences.append(
                f"Accepted with {promise}: {one['accepted']:,} of {found['answers']:,}"
            )
    average = [one for one in found["accepted"] if one["kind"] == OF_ALL and not one["without"]]
    if average:
        shares = " / ".join(f"{100 * one['at_most']:.3g}" for one in average)
        counts = " / ".join(f"{one['accepted']:,}" for one in average)
        sentences.append(
            f"With at most {shares} % of all answers accepted and wrong, on average: {counts} "
            "accepted"
        )
    warnings = []
    for name in found["unlike"]:
        distance, p = found["likeness"][name]["distance"], found["likeness"][name]["p"]
        message = "< 0.0001" if p < 0.0001 else f"{p:.2g}"
        warnings.append(
            f"{name}: its distribution here is unlike that of the labelled answers (largest "
            f"distance {distance:.2f}, p {message}); the probabilities and promises may not hold "
            "here"
        )
    return ChancesTold(sentences, warnings)
