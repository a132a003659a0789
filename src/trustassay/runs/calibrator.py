"""Calibrators: what a score is worth on someone's data, and which answers it lets pass.

A calibrator is a JSON file of a few kB that ``calibrate`` writes and other commands apply. Reading
one checks every field: it may come from another person. Applied to scores, it accepts answers above
a threshold and gives each answer a probability of being right. Applied to a finished run, it also
tests whether the scores are like those that it was made from.
"""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from trustassay.core.files import write_atomic
from trustassay.core.json_form import JsonForm, as_json, read_json
from trustassay.core.metric import Assessment
from trustassay.core.sample import question_key
from trustassay.input.recognising import ABSENT, reach
from trustassay.input.records import InputError
from trustassay.judging.second_reader import ROLE as SECOND
from trustassay.report.answers import AnswerChance, ChancesSummary
from trustassay.runs.counts import read_rows
from trustassay.runs.folder import RunFolder, read_metric_infos, to_stored
from trustassay.runs.lines import StepCallback
from trustassay.runs.needs import list_needed_backends
from trustassay.statistics import Bools, Floats
from trustassay.statistics.comparison import (
    DistributionDistance,
    DistributionSummary,
    compare_distribution,
)
from trustassay.statistics.regression import Isotonic
from trustassay.statistics.resampling import cluster_numbers
from trustassay.text.numbers import amount, p_equation

CALIBRATOR_FORMAT = "trustassay calibrator"
CALIBRATOR_VERSION = 2
MAX_FILE_BYTES = 1 << 20
"""Bytes of a calibrator's file; a real one has a few kB."""
CALIBRATED = "calibrated"
"""Key in ``summary.json`` of the result of a calibrator."""
CALIBRATOR = "calibrator.json"
"""The copy of the calibrator in a run's folder."""
FALSE_ALARM_RATE = 0.01
"""The probability, at most, that data of the same kind are called unlike."""
MAX_DIFFERENCES = 3
"""Differing settings that a message names."""
ACCEPT, ASK = "accept", "ask"
"""The two decisions: accept the answer, or ask a person."""


@dataclass(frozen=True)
class ScoreOrigin(JsonForm):
    """Where a score comes from, so that a changed judge is noticed."""

    kind: Literal["run", "table"]
    """Whether a metric of a run gave it, or it is a column of a table."""
    metric: str = ""
    """Of a run, the metric."""
    part: str = ""
    """Of a run, the part of the metric; empty for the score itself."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of a run, the metric's options."""
    backends: Mapping[str, Any] = field(default_factory=dict)
    """Of a run, the backends that judged, by their option names."""
    judges: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Of a table, the values of the columns that name the judge's model, version or prompt."""


@dataclass(frozen=True)
class CalibratedScore(JsonForm):
    """The score that a calibrator reads."""

    name: str
    """Its name: a column, a metric or a part of one (``faithfulness.support``)."""
    sign: int
    """-1 if lower is better. Thresholds and curve apply to the score times this sign."""
    source: ScoreOrigin


@dataclass(frozen=True)
class LabelRecord(JsonForm):
    """The labels from which a calibrator was made."""

    name: str
    """The columns or fields, separated by commas."""
    n: int
    """Labelled answers that have a score."""
    right: int
    """How many of these are right."""
    chosen: str
    """How answers were chosen for labelling, in words."""
    group: str = ""
    """The field whose equal values depend on each other, such as the question; empty without."""
    digest: str = ""
    """A digest of scores and labels."""
    look: int = 1
    """The number of the last look that was taken."""
    positive: Sequence[str] = ()
    """The words that mean right, if they were named."""
    at_least: float | None = None
    """The smallest number that means right, if it was named."""


@dataclass(frozen=True)
class ThresholdPromise(JsonForm):
    """A threshold, and what is promised about the answers above it."""

    at_most: float
    """The largest share of accepted answers that is wrong, from 0 to 1."""
    confidence: float
    """How often such a promise holds, from 0 to 1."""
    exact: bool = True
    """Whether it holds at least so often; else about so often (several answers to a question)."""
    above: float | None = None
    """Answers with a higher score times the sign are accepted; ``None``: all that have a score."""
    share: float = 0.0
    """The accepted share of all answers, labelled or not, from 0 to 1."""
    accepted: int = 0
    """Accepted labelled answers."""
    wrong: int = 0
    """How many of these are wrong."""
    look: int = 1
    """The number of the look at the labels, from 1."""
    looks: int = 1
    """How many looks were planned."""
    delta: float = 0.05
    """How often this look may fail."""
    without: str = ""
    """Why there is no threshold; empty if there is one."""
    needed: int | None = None
    """About how many labels would do, if that can be estimated."""
    missed: float = 0.0
    """The share of wrong answers that raters may call right, if adjudicated labels say it; the
    promise includes these."""
    of: str = ""
    """The value of the calibrator's ``by`` that it is about; empty for all answers."""

    def accepts(self, scores: ArrayLike) -> Bools:
        """Return which scores, times the sign, are accepted; NaN never is."""
        values = np.asarray(scores, dtype=np.float64)
        if self.without:
            return np.zeros(values.shape, dtype=bool)
        return values > (-math.inf if self.above is None else self.above)


@dataclass(frozen=True)
class ReliabilityBand(JsonForm):
    """Labelled answers with similar scores."""

    low: float
    """Their lowest score."""
    high: float
    """Their highest score."""
    stated: float
    """Their mean score."""
    n: int
    """How many they are."""
    right: int
    """How many of them are right."""
    interval: Sequence[float]
    """The 95 % interval of the share that is right: two numbers."""


@dataclass(frozen=True)
class AuditStatus(JsonForm):
    """What became of the promise since, as ``monitor --audit`` writes it."""

    status: Literal["holds", "suspended", "withdrawn"]
    day: str
    """The day from which on it is so."""
    reason: str = ""
    """Why it does not hold."""


@dataclass(frozen=True)
class Calibrator(JsonForm):
    """A score with its thresholds and probabilities."""

    score: CalibratedScore
    labels: LabelRecord
    promises: Sequence[ThresholdPromise]
    reliability: Sequence[ReliabilityBand]
    """Bands of scores, the lowest first."""
    curve: Isotonic
    """The probability of being right, by the score times the sign."""
    spread: DistributionSummary
    """The distribution of all scores as the judge gave them, to notice other data."""
    by: str = ""
    """The field for whose values there are promises of their own."""
    audit: AuditStatus | None = None
    """``None`` before the first audit."""
    made_by: str = ""
    """The version of the program."""

    def probabilities(self, scores: ArrayLike) -> Floats:
        """Return the probability that each answer is right, shape (n,); NaN without a score.

        Args:
            scores: as the judge gives them, shape (n,), NaN where there is none.
        """
        return self.curve.at(np.asarray(scores, dtype=np.float64) * self.score.sign)

    def is_other_scale(self, scores: ArrayLike) -> Bools:
        """Return which scores are not from 0 to 1 although all scores of the calibration were.

        A judge that now says 93 in place of .93 would pass any threshold.

        Args:
            scores: as the judge gives them, shape (n,).
        """
        values, points = np.asarray(scores, dtype=np.float64), self.spread.points
        if not points or points[0] < 0 or points[-1] > 1:
            return np.zeros(values.shape, dtype=bool)
        return (values < 0) | (values > 1)

    def find_promise(self, of: str = "") -> ThresholdPromise | None:
        """Return the first promise with a threshold, for answers whose ``by`` has this value."""
        of_value = [promise for promise in self.promises if promise.of == (of if self.by else "")]
        return next((promise for promise in of_value if not promise.without), None)

    @property
    def is_valid(self) -> bool:
        """Whether no audit has suspended or withdrawn the promises."""
        return self.audit is None or self.audit.status == "holds"

    def accepts(self, scores: ArrayLike, of: Sequence[str] | None = None) -> Bools:
        """Return which answers the first promise with a threshold accepts, shape (n,).

        Nothing is accepted without a promise, while an audit has suspended or withdrawn it, or on
        another scale.

        Args:
            scores: as the judge gives them, shape (n,), NaN where there is none.
            of: the value of ``by`` of each answer.
        """
        values = np.asarray(scores, dtype=np.float64) * self.score.sign
        result = np.zeros(values.shape, dtype=bool)
        values_of = np.asarray(of if self.by and of is not None else [""] * len(values))
        for value in np.unique(values_of).tolist() if self.is_valid else ():
            promise = self.find_promise(value)
            if promise is not None:
                result |= promise.accepts(values) & (values_of == value)
        return result & ~self.is_other_scale(scores)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        content = super().to_dict()
        curve = {"knots": list(self.curve.knots), "values": list(self.curve.values)}
        spread = {name: as_json(getattr(self.spread, name)) for name in self.spread.__slots__}
        head = {"format": CALIBRATOR_FORMAT, "version": CALIBRATOR_VERSION}
        return head | content | {"curve": curve, "spread": spread}


def write_calibrator(calibrator: Calibrator, path: Path) -> None:
    """Write the file; it is complete or not there."""
    write_atomic(path, _format_json(calibrator.to_dict()).encode())


def _format_json(content: Mapping[str, Any]) -> str:
    """Return JSON with one field per line, and lists of numbers on one line.

    A person should be able to read the file, and to compare two of them line by line.
    """

    def format_value(item: Any, indent: str) -> str:
        inner = indent + "  "
        if isinstance(item, Mapping) and item:
            items = [
                f"{inner}{json.dumps(str(k))}: {format_value(v, inner)}" for k, v in item.items()
            ]
            return "{\n" + ",\n".join(items) + f"\n{indent}}}"
        # Only lists of objects get a line for each item.
        if isinstance(item, list) and item and isinstance(item[0], Mapping):
            return "[\n" + ",\n".join(inner + json.dumps(v) for v in item) + f"\n{indent}]"
        return json.dumps(item, ensure_ascii=False, allow_nan=False)

    return format_value(content, "") + "\n"


def read_calibrator(path: Path) -> Calibrator:
    """Read a calibrator.

    Raises:
        InputError: the file is damaged, of another kind or of another version; the message names
            the file and the field.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        # One byte more than allowed tells a file that is too large, without reading all of it.
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise InputError(f"{path}: larger than 1 MB; expected a calibrator of a few kB")
    try:
        # ``json`` accepts NaN and Infinity, which are not JSON and would pass comparisons.
        result = json.loads(content, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON: {error}; run calibrate again") from None
    if not isinstance(result, dict) or result.get("format") != CALIBRATOR_FORMAT:
        raise InputError(f"{path}: is not a calibrator; expected a file that `calibrate` wrote")
    if result.get("version") != CALIBRATOR_VERSION:
        raise InputError(
            f"{path}: version: expected {CALIBRATOR_VERSION}, got {result.get('version')!r:.40}; "
            "its promises were computed differently: run calibrate again"
        )
    try:
        calibrator: Calibrator = read_json(Calibrator, result)
        _check_values(calibrator)
    except ValueError as error:
        raise InputError(f"{path}: {error}; run calibrate again") from None
    return calibrator


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def _check_values(calibrator: Calibrator) -> None:
    """Raise ValueError for a number that is out of its range, or lists that do not fit."""
    curve, spread = calibrator.curve, calibrator.spread
    shares = {"curve.values": curve.values, "spread.shares": spread.shares}
    shares["spread.missing"] = (spread.missing,)
    for place, promise in enumerate(calibrator.promises):
        numbers = (promise.at_most, promise.confidence, promise.share, promise.missed)
        shares[f"promises[{place}]"] = numbers
    for name, values in shares.items():
        if not all(0 <= value <= 1 for value in values):
            raise ValueError(f"{name}: expected numbers from 0 to 1, got {list(values)!r:.60}")
    if calibrator.score.sign not in (1, -1):
        raise ValueError(f"score.sign: expected 1 or -1, got {calibrator.score.sign}")
    for name, points, values in (
        ("curve", curve.knots, curve.values),
        ("spread", spread.points, spread.shares),
    ):
        rises = all(a < b for a, b in itertools.pairwise(points))
        if len(points) != len(values) or not rises or list(values) != sorted(values):
            raise ValueError(f"{name}: expected as many rising numbers in both lists")
    if not curve.knots:
        raise ValueError("curve.knots: expected one number or more")


@dataclass(frozen=True)
class CalibrationResult:
    """The result of a calibrator for the answers of a run, in input order."""

    calibrator: Calibrator
    probabilities: Floats
    """The probability that each answer is right, shape (n,), NaN where there is none."""
    accepted: Bools
    """Which answers are accepted, shape (n,)."""
    failed: int
    """Answers without a probability since the metric failed."""
    without: int
    """Answers without a probability since the metric gave no score."""
    likeness: DistributionDistance
    """How far the scores are from those of the labelled run."""

    def chance_of(self, number: int) -> AnswerChance:
        """Return the probability of an answer and whether it is accepted.

        Args:
            number: of the answer, from 0.
        """
        probability = float(self.probabilities[number])
        has_promise = any(not promise.without for promise in self.calibrator.promises)
        accepted = bool(self.accepted[number]) if has_promise else None
        return AnswerChance(None if math.isnan(probability) else probability, accepted)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, without single answers."""
        known = self.probabilities[~np.isnan(self.probabilities)]
        calibrator = self.calibrator
        return {
            "score": calibrator.score.name,
            "label": calibrator.labels.name,
            "labelled": calibrator.labels.n,
            "answers": len(self.probabilities),
            "with_probability": len(known),
            "failed": self.failed,
            "without_score": self.without,
            "mean_probability": float(known.mean()) if len(known) else None,
            "accepted": int(self.accepted.sum()),
            "promises": as_json(calibrator.promises),
            "audit": as_json(calibrator.audit),
            "distance": self.likeness.distance,
            "distance_p": self.likeness.p,
        }


def check_calibrator(
    calibrator: Calibrator,
    metrics: Mapping[str, Mapping[str, Any]],
    backends: Mapping[str, Any],
    where: str,
) -> None:
    """Refuse a calibrator of another score, or of a metric with other options or backends.

    Args:
        metrics: options by name, as in ``run.json``.
        backends: names by option name, as in ``run.json``.
        where: the beginning of the message.

    Raises:
        InputError: they differ.
    """
    source, name = calibrator.score.source, calibrator.score.name
    if source.kind == "table":
        raise InputError(
            f"{where}: the calibrator was made for the column {name} of a table, not for a run; "
            "apply it to a table with `trustassay calibrate TABLE --apply FILE`"
        )
    if source.metric not in metrics:
        has = ", ".join(metrics) or "none"
        raise InputError(
            f"{where}: the calibrator was made for the metric {source.metric}; this run has {has}"
        )
    # A calibrator that was made without a second reader does not fit a run with one.
    needed = list_needed_backends(source.metric, metrics[source.metric], backends)
    model_names = {key: backends.get(key) for key in (*source.backends, *(needed & {SECOND}))}
    for kind, calibrator_settings, run_settings in (
        ("options", source.options, metrics[source.metric]),
        ("models", source.backends, model_names),
    ):
        if differing := _describe_differences(calibrator_settings, to_stored(run_settings)):
            raise InputError(
                f"{where}: {source.metric} has other {kind} than the calibrator: {differing}. "
                f"Score with the {kind} of the calibrator, or calibrate on a run with these"
            )


def _describe_differences(
    calibrator_settings: Mapping[str, Any], run_settings: Mapping[str, Any]
) -> str:
    differences = [
        f"{name} {run_settings.get(name)!r}, not {calibrator_settings.get(name)!r}"
        for name in {**calibrator_settings, **run_settings}
        if calibrator_settings.get(name) != run_settings.get(name)
    ]
    return "; ".join(differences[:MAX_DIFFERENCES])[:300]


def calibrate_run(
    folder: RunFolder, calibrator: Calibrator, step: StepCallback = lambda: None
) -> CalibrationResult:
    """Apply a calibrator to a finished run.

    Raises:
        RunFolderError: the folder holds no finished run.
        InputError: the calibrator is of another score, or of other options or models.
    """
    run, _ = folder.read_finished()
    check_calibrator(calibrator, run["metrics"], run["backends"], str(folder.path))
    source = calibrator.score.source
    info = read_metric_infos(folder, run)[source.metric]
    values: list[float] = []
    failures: list[bool] = []
    questions: list[str] = []
    parts: list[str] = []
    for _, sample, (assessment,) in read_rows(folder, [info]):
        values.append(read_score_part(assessment, source.part))
        failures.append(assessment.error is not None)
        questions.append(question_key(str(sample.get("question") or "")))
        parts.append(read_group_value(sample, calibrator.by))
        step()
    scores, has_failed = np.array(values), np.array(failures, dtype=bool)
    groups = cluster_numbers(questions)
    return CalibrationResult(
        calibrator,
        calibrator.probabilities(scores),
        calibrator.accepts(scores, parts),
        int(has_failed.sum()),
        int((np.isnan(scores) & ~has_failed).sum()),
        compare_distribution(calibrator.spread, scores[~has_failed], groups[~has_failed]),
    )


def read_group_value(record: Mapping[str, Any], name: str) -> str:
    """Return a field of an answer as the value of ``by``; empty without."""
    value = reach(record, name) if name else None
    return "" if value is ABSENT or value is None else str(value)


def read_score_part(assessment: Assessment, part: str) -> float:
    """Return the score of an answer, or a part of it; NaN where there is none."""
    result = assessment.parts.get(part) if part else assessment.score
    return math.nan if result is None or assessment.error is not None else float(result)


# in words


def describe_promise(promise: ThresholdPromise) -> str:
    """Return a promise in words."""
    about = "" if promise.exact else "about "
    basis = " according to the human labels"
    if promise.missed:
        basis = f", including the errors that raters miss (up to {100 * promise.missed:.0f} %)"
    return (
        f"at most {100 * promise.at_most:.3g} % of the accepted answers are wrong{basis} "
        f"(confidence {about}{100 * promise.confidence:.3g} %)"
    )


def describe_calibration(calibrated: Mapping[str, Any]) -> ChancesSummary:
    """Return sentences and warnings on the result of a calibrator.

    Args:
        calibrated: the block ``calibrated`` of ``summary.json``.
    """
    n, answers = calibrated["with_probability"], calibrated["answers"]
    kinds = (("failed", "failed"), ("without_score", "without a score"))
    without_probability = ", ".join(
        f"{calibrated[name]:,} {description}" for name, description in kinds if calibrated[name]
    )
    sentences = [
        f"Probability of being right ({calibrated['label']}), from "
        f"{amount(calibrated['labelled'], 'labelled answer')}: "
        + (f"mean {calibrated['mean_probability']:.3f} of {amount(n, 'answer')}" if n else "none")
        + (f"; no probability: {without_probability}" if without_probability else "")
    ]
    promises: list[ThresholdPromise] = [
        read_json(ThresholdPromise, content) for content in calibrated["promises"]
    ]
    with_threshold = [promise for promise in promises if not promise.without]
    if with_threshold:
        sentences.append(
            f"Accepted by {calibrated['score']}: {calibrated['accepted']:,} of {answers:,}; "
            f"{describe_promise(with_threshold[0])}"
        )
    sentences += [
        f"No threshold for at most {100 * promise.at_most:.3g} % wrong"
        + (f" of {promise.of}" if promise.of else "")
        + f": {promise.without}"
        for promise in promises
        if promise.without
    ]
    warnings = []
    if (audit := calibrated["audit"]) and audit["status"] != "holds":
        warnings.append(
            f"The promise has been {audit['status']} since {audit['day']}, so nothing is accepted: "
            f"{audit['reason']}"
        )
    if calibrated["distance_p"] < FALSE_ALARM_RATE:
        p = p_equation(calibrated["distance_p"])
        warnings.append(
            f"{calibrated['score']}: the scores are distributed differently from those of the "
            f"calibration (largest distance {calibrated['distance']:.2f}, {p}); the promise and "
            "the probabilities may not hold here"
        )
    return ChancesSummary(sentences, warnings)
