"""Apply a calibrator to a finished run.

It gives each answer a probability of being right, accepts answers above thresholds, and tests
whether the run is like the one that the calibrator was made from.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trustassay.core.metric import Assessment
from trustassay.core.sample import question_key
from trustassay.input.records import InputError
from trustassay.judging.second_reader import ROLE as SECOND
from trustassay.report.answers import AnswerChance, ChancesSummary
from trustassay.runs.calibrator import AMONG_ACCEPTED, OF_ALL, Calibrator
from trustassay.runs.counts import read_rows
from trustassay.runs.folder import RunFolder, read_metric_infos, to_stored
from trustassay.runs.lines import StepCallback
from trustassay.runs.needs import list_needed_backends
from trustassay.statistics import Bools, Floats, Places
from trustassay.statistics.comparison import compare_distribution
from trustassay.statistics.resampling import cluster_numbers, holm
from trustassay.text.words import amount

CALIBRATED = "calibrated"
"""Key in ``summary.json`` of the result of a calibrator."""
CALIBRATOR = "calibrator.json"
"""The copy of the calibrator in a run's folder."""
FALSE_ALARM_RATE = 0.01
"""The probability, at most, that data of the same kind are called unlike."""
MAX_DIFFERENCES = 3
"""Differing settings that a message names."""


@dataclass(frozen=True)
class CalibrationResult:
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

    def chance_of(self, number: int) -> AnswerChance:
        """Return the probability of an answer and whether it is accepted.

        Args:
            number: of the answer, from 0.
        """
        probability = float(self.probabilities[number])
        # An answer is accepted or not by the first promise that has a threshold.
        number_of_promise = next(
            (
                position
                for position, promise in enumerate(self.calibrator.promises)
                if not promise.without
            ),
            -1,
        )
        accepted = (
            bool(self.accepted[number_of_promise][number]) if number_of_promise >= 0 else None
        )
        return AnswerChance(None if math.isnan(probability) else probability, accepted)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, without single answers."""
        known_probabilities = self.probabilities[~np.isnan(self.probabilities)]
        return {
            "fingerprint": self.calibrator.fingerprint,
            "label": self.calibrator.label,
            "method": self.calibrator.method,
            "labelled": self.calibrator.answers,
            "answers": len(self.probabilities),
            "with_probability": len(known_probabilities),
            "failed": self.failed,
            "without_score": self.without,
            "mean_probability": float(known_probabilities.mean())
            if len(known_probabilities)
            else None,
            "accepted": [
                {
                    "kind": promise.kind,
                    "at_most": promise.at_most,
                    "confidence": promise.confidence,
                    "above": promise.above,
                    "accepted": None if promise.without else int(is_accepted.sum()),
                    "without": promise.without,
                }
                for promise, is_accepted in zip(
                    self.calibrator.promises, self.accepted, strict=True
                )
            ],
            # Distances and p-values of all scores, and the names of those that differ.
            "likeness": {name: dict(likeness) for name, likeness in self.unlike.items()},
            "unlike": [
                name for name, likeness in self.unlike.items() if likeness["p"] < FALSE_ALARM_RATE
            ],
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
    for score_input in calibrator.inputs:
        if score_input.metric not in metrics:
            has = ", ".join(metrics) or "none"
            raise InputError(
                f"{where}: the calibrator is of the metric {score_input.metric}; this run has {has}"
            )
        # A calibrator that was made without a second reader does not fit a run with one.
        needed = list_needed_backends(score_input.metric, metrics[score_input.metric], backends)
        model_names = {
            name: backends.get(name) for name in (*score_input.backends, *(needed & {SECOND}))
        }
        for kind, plural, calibrator_settings, run_settings in (
            ("options", "options", score_input.options, metrics[score_input.metric]),
            ("models", "ones", score_input.backends, model_names),
        ):
            if differing := _describe_differences(calibrator_settings, to_stored(run_settings)):
                raise InputError(
                    f"{where}: {score_input.metric} has other {kind} than the calibrator was made "
                    f"with: {differing}. Score with the same {plural}, or calibrate on a run with "
                    "these"
                )


def _describe_differences(
    calibrator_settings: Mapping[str, Any], run_settings: Mapping[str, Any]
) -> str:
    names = [
        name
        for name in {**calibrator_settings, **run_settings}
        if calibrator_settings.get(name) != run_settings.get(name)
    ]
    differences = [
        f"{name} {run_settings.get(name)!r}, not {calibrator_settings.get(name)!r}"
        for name in names
    ]
    return "; ".join(differences[:MAX_DIFFERENCES])[:300]


def calibrate_run(
    folder: RunFolder, calibrator: Calibrator, step: StepCallback = lambda: None
) -> CalibrationResult:
    """Apply a calibrator to a finished run.

    Raises:
        RunFolderError: the folder holds no finished run.
        InputError: the calibrator is of other metrics, options or models.
    """
    run, _ = folder.read_finished()
    check_calibrator(calibrator, run["metrics"], run["backends"], str(folder.path))
    infos = list(read_metric_infos(folder, run).values())
    # The inputs first: the columns of the table in front are those that the model reads.
    names = list(dict.fromkeys([*(item.name for item in calibrator.inputs), *calibrator.spreads]))
    values: list[list[float]] = []
    failures: list[bool] = []
    questions: list[str] = []
    for _, sample, assessments in read_rows(folder, infos):
        by_metric = {item.metric: item for item in assessments}
        values.append([_read_value(by_metric, name) for name in names])
        # One failed metric fails the probability: the others cannot stand for it.
        failures.append(any(by_metric[name].error is not None for name in calibrator.metrics))
        questions.append(question_key(str(sample.get("question") or "")))
        step()
    # The reshape matters for a run without samples.
    table = np.array(values, dtype=np.float64).reshape(len(values), len(names))
    has_failed = np.array(failures, dtype=bool)
    # An answer that failed in one metric has no probability, even if others scored it.
    inputs = np.where(has_failed[:, None], np.nan, table[:, : len(calibrator.inputs)])
    probabilities, ranks = calibrator.probabilities(inputs), calibrator.ranks(inputs)
    # Without a probability an answer is never accepted.
    ranks = np.where(np.isnan(probabilities), np.nan, ranks)
    return CalibrationResult(
        calibrator,
        probabilities,
        [promise.accepts(ranks) for promise in calibrator.promises],
        int(has_failed.sum()),
        int((np.isnan(probabilities) & ~has_failed).sum()),
        _test_unlikeness(
            calibrator, names, table[~has_failed], cluster_numbers(questions)[~has_failed]
        ),
    )


def _read_value(by_metric: Mapping[str, Assessment], name: str) -> float:
    metric, _, part = name.partition(".")
    assessment = by_metric[metric]
    result = assessment.parts.get(part) if part else assessment.score
    return math.nan if result is None else float(result)


def _test_unlikeness(
    calibrator: Calibrator, names: Sequence[str], table: Floats, questions: Places
) -> dict[str, dict[str, float]]:
    # Many scores are tested at once, so that the p-values are corrected (Holm).
    spreads = calibrator.spreads
    result = {
        name: compare_distribution(spreads[name], table[:, names.index(name)], questions)
        for name in spreads
    }
    corrected = holm([test.p for test in result.values()])
    return {
        name: {"distance": test.distance, "p": p}
        for (name, test), p in zip(result.items(), corrected, strict=True)
    }


# in words


def describe_promise(kind: str, at_most: float, confidence: float | None) -> str:
    """Return a promise in words."""
    if kind == AMONG_ACCEPTED:
        sure = 100 * (confidence or 0)
        return f"at most {100 * at_most:.3g} % of them wrong (confidence {sure:.3g} %)"
    return f"at most {100 * at_most:.3g} % of all answers accepted and wrong, on average"


def describe_calibration(calibrated: Mapping[str, Any]) -> ChancesSummary:
    """Return sentences and warnings on the result of a calibrator.

    Args:
        calibrated: the block ``calibrated`` of ``summary.json``.
    """
    n = calibrated["with_probability"]
    # Counts of zero are not mentioned.
    kinds = (("failed", "failed"), ("without_score", "without a score"))
    without_probability = ", ".join(
        f"{calibrated[name]:,} {description}" for name, description in kinds if calibrated[name]
    )
    sentences = [
        f"Probability of being right ({calibrated['label']}), {calibrated['method']}, from "
        f"{amount(calibrated['labelled'], 'labelled answer')}: "
        + (f"mean {calibrated['mean_probability']:.3f} of {amount(n, 'answer')}" if n else "none")
        + (f"; no probability: {without_probability}" if without_probability else "")
    ]
    for acceptance in calibrated["accepted"]:
        promise = describe_promise(
            acceptance["kind"], acceptance["at_most"], acceptance["confidence"]
        )
        # The promises on average share one sentence below.
        if acceptance["kind"] != AMONG_ACCEPTED:
            continue
        if acceptance["without"]:
            sentences.append(f"Accepted with {promise}: no threshold; {acceptance['without']}")
        else:
            sentences.append(
                f"Accepted with {promise}: {acceptance['accepted']:,} of {calibrated['answers']:,}"
            )
    average = [
        acceptance
        for acceptance in calibrated["accepted"]
        if acceptance["kind"] == OF_ALL and not acceptance["without"]
    ]
    if average:
        shares = " / ".join(f"{100 * acceptance['at_most']:.3g}" for acceptance in average)
        counts = " / ".join(f"{acceptance['accepted']:,}" for acceptance in average)
        sentences.append(
            f"With at most {shares} % of all answers accepted and wrong, on average: {counts} "
            "accepted"
        )
    warnings = []
    for name in calibrated["unlike"]:
        distance, p = calibrated["likeness"][name]["distance"], calibrated["likeness"][name]["p"]
        # More digits would suggest a precision that the test does not have.
        message = "< 0.0001" if p < 0.0001 else f"{p:.2g}"
        warnings.append(
            f"{name}: its distribution here is unlike that of the labelled answers (largest "
            f"distance {distance:.2f}, p {message}); the probabilities and promises may not hold "
            "here"
        )
    return ChancesSummary(sentences, warnings)
