"""Calibrators: they turn scores into probabilities of being right, and hold thresholds.

A calibrator is a JSON file of a few kB that ``calibrate`` writes and other runs apply. Reading one
checks every field: it may come from another person. Applied to a finished run, it gives each answer
a probability of being right, accepts answers above thresholds, and tests whether the run is like
the one that it was made from.
"""

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from trustassay.core.files import write_atomic
from trustassay.core.metric import Assessment
from trustassay.core.sample import question_key
from trustassay.input.records import InputError
from trustassay.judging.second_reader import ROLE as SECOND
from trustassay.report.answers import AnswerChance, ChancesSummary
from trustassay.runs.counts import read_rows
from trustassay.runs.folder import RunFolder, read_metric_infos, to_stored
from trustassay.runs.lines import StepCallback
from trustassay.runs.needs import list_needed_backends
from trustassay.statistics import Bools, Floats, Places
from trustassay.statistics.calibration import Combination, LogOddsTerm
from trustassay.statistics.comparison import DistributionSummary, compare_distribution
from trustassay.statistics.regression import Isotonic
from trustassay.statistics.resampling import cluster_numbers, holm
from trustassay.text.words import amount

CALIBRATOR_FORMAT = "trustassay calibrator"
CALIBRATOR_VERSION = 1


PromiseKind = Literal["among accepted", "of all"]
AMONG_ACCEPTED: PromiseKind = "among accepted"
OF_ALL: PromiseKind = "of all"


@dataclass(frozen=True)
class CalibratorInput:
    """A score that a calibrator reads: that of a metric, or one of its parts."""

    metric: str
    part: str
    """The name of the part; empty for the score itself."""
    options: Mapping[str, Any]
    """The metric's options with which the score was computed."""
    backends: Mapping[str, Any]
    """The backends with which the score was computed, by their option names."""
    sign: int = 1
    """-1 if lower scores are better. Model and thresholds apply to the score times this sign."""

    @property
    def name(self) -> str:
        """The name in ``study``: ``faithfulness``, ``faithfulness.support``."""
        return f"{self.metric}.{self.part}" if self.part else self.metric


@dataclass(frozen=True)
class ThresholdPromise:
    """A threshold and the promise that it keeps."""

    kind: PromiseKind
    """``among accepted``: with the stated ``confidence``, at most the share ``at_most`` of the
    accepted answers is wrong. ``of all``: on average, at most that share of a question's answers is
    accepted and wrong."""
    at_most: float
    """The promised share, from 0 to 1."""
    confidence: float | None
    """From 0 to 1; ``None`` for ``of all``."""
    above: float | None = None
    """Answers are accepted that rank above it (see :attr:`Calibrator.rank`); ``None``: all that
    have a probability."""
    questions: int = 0
    """Questions of the accepted labelled answers."""
    answers: int = 0
    """Accepted labelled answers."""
    wrong: int = 0
    """Accepted labelled answers that are wrong."""
    without: str = ""
    """Why there is no threshold; empty if there is one."""
    needed: int | None = None
    """About how many labelled questions would suffice for a threshold, if that can be estimated."""

    def accepts(self, ranks: ArrayLike) -> Bools:
        """Return which answers are accepted, by their ranks; NaN, no rank, is never accepted."""
        rank_values = np.asarray(ranks, dtype=np.float64)
        if self.without:
            return np.zeros(rank_values.shape, dtype=bool)
        # NaN is above nothing, so answers without a rank are rejected.
        return rank_values > (-math.inf if self.above is None else self.above)


@dataclass(frozen=True)
class Calibrator:
    """A model that turns scores into probabilities, with its thresholds."""

    label: str
    """The name of the label that says which answers are right."""
    answers: int
    """Labelled answers from which it was made."""
    questions: int
    """Questions of these answers."""
    right: float
    """The share of these answers that is right, from 0 to 1."""
    inputs: Sequence[CalibratorInput]
    """The scores that it reads."""
    model: Isotonic | Combination
    """For one score an isotonic or a logistic curve, for several a logistic regression."""
    promises: Sequence[ThresholdPromise]
    """Its thresholds."""
    spreads: Mapping[str, DistributionSummary]
    """By name, the distributions of all scores and parts of the metrics, to notice other data."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """How good the probabilities are, out of fold: value and interval by name."""
    made_by: str = ""
    """The version of the program."""

    @property
    def method(self) -> str:
        """``isotonic``, ``logistic``, or ``combination`` of several scores."""
        if isinstance(self.model, Isotonic):
            return "isotonic"
        return "logistic" if len(self.inputs) == 1 else "combination"

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics."""
        return list(dict.fromkeys(score_input.metric for score_input in self.inputs))

    @property
    def fingerprint(self) -> str:
        """A digest of the inputs, equal for all calibrators of the same scores and settings."""
        inputs = [asdict(score_input) for score_input in self.inputs]
        # Sorted keys: equal settings give equal texts, in whatever order they were given.
        text = json.dumps(inputs, sort_keys=True, default=str)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def orient(self, table: ArrayLike) -> Floats:
        """Return scores, shape (n, d), with their signs changed so that higher is better."""
        signs = np.array([score_input.sign for score_input in self.inputs], dtype=np.float64)
        return np.asarray(np.asarray(table, dtype=np.float64) * signs)

    def probabilities(self, table: ArrayLike) -> Floats:
        """Return the probability that each answer is right, shape (n,).

        It is NaN if the only score is missing, or if a score is missing that all labelled answers
        had.

        Args:
            table: the scores as the metrics return them, shape (n, d), NaN where there is none.
        """
        # The model was fitted to scores of which higher ones are better.
        x = self.orient(table)
        if isinstance(self.model, Isotonic):
            return self.model.at(x[:, 0])
        return self.model.probabilities(x)

    def ranks(self, table: ArrayLike) -> Floats:
        """Return the values that thresholds apply to, shape (n,).

        With one score this is the score times its sign, with several it is the probability.
        """
        # An isotonic curve has steps: thresholds on the score can lie within a step.
        return self.orient(table)[:, 0] if len(self.inputs) == 1 else self.probabilities(table)

    @property
    def rank(self) -> str:
        """The name of the values that thresholds apply to."""
        if len(self.inputs) > 1:
            return "probability"
        return self.inputs[0].name if self.inputs[0].sign > 0 else f"-{self.inputs[0].name}"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "format": CALIBRATOR_FORMAT,
            "version": CALIBRATOR_VERSION,
            "made_by": self.made_by,
            "label": self.label,
            "answers": self.answers,
            "questions": self.questions,
            "right": self.right,
            # These and the method follow from the inputs; they are checked when the file is read.
            "fingerprint": self.fingerprint,
            "inputs": [asdict(score_input) for score_input in self.inputs],
            "method": self.method,
            "model": asdict(self.model),
            "rank": self.rank,
            "promises": [asdict(promise) for promise in self.promises],
            "figures": dict(self.figures),
            "spreads": {name: asdict(spread) for name, spread in self.spreads.items()},
        }


T = TypeVar("T")
MAX_FILE_BYTES = 1 << 20
"""Bytes of a calibrator's file; a real one has a few kB."""
MAX_NUMBER = 1e100
"""The largest absolute value of a number: products of two stay finite."""
MAX_ITEMS = 5000
"""Items of a list, and characters of a text, at most."""


def write_calibrator(calibrator: Calibrator, path: Path) -> None:
    """Write the file; it is complete or not there."""
    write_atomic(path, _format_json(calibrator.to_dict()).encode())


def _format_json(content: Mapping[str, Any]) -> str:
    """Return JSON with one field per line, and lists of numbers on one line.

    A person should be able to read the file, and to compare two of them line by line.
    """

    # Only lists of objects get a line for each item: lists of numbers are long and not read by
    # people.
    def format_value(item: Any, indent: str) -> str:
        if isinstance(item, Mapping) and item:
            inner = indent + "  "
            items = [
                f"{inner}{json.dumps(str(k))}: {format_value(v, inner)}" for k, v in item.items()
            ]
            return "{\n" + ",\n".join(items) + f"\n{indent}}}"
        if isinstance(item, list | tuple) and item and isinstance(item[0], Mapping):
            inner = indent + "  "
            return "[\n" + ",\n".join(inner + format_value(v, inner) for v in item) + f"\n{indent}]"
        return json.dumps(item, ensure_ascii=False, allow_nan=False)

    return format_value(content, "") + "\n"


def read_calibrator(path: Path) -> Calibrator:
    """Read a calibrator.

    Raises:
        InputError: the file is damaged, of another kind or of a later version; the message names
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
    return _CalibratorFields(path, "", result).read_calibrator()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


class _CalibratorFields:
    """Reads the fields of one object of the file; errors name the path of the field."""

    def __init__(self, path: Path, where: str, content: Any) -> None:
        self.path, self.where = path, where
        if not isinstance(content, dict):
            self.refuse(where or "the file", "an object", content)
        self.content: dict[str, Any] = content

    def refuse(self, name: str, expected: str, value: Any) -> NoReturn:
        # A message of one line, whatever the file holds.
        text = repr(value)
        text = text if len(text) < 60 else f"{text[:57]}..."
        raise InputError(f"{self.path}: {name}: expected {expected}, got {text}")

    def _path_of(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where else name

    def require(self, name: str) -> Any:
        if name not in self.content:
            raise InputError(f"{self.path}: {self._path_of(name)}: is missing")
        return self.content[name]

    def read_text(self, name: str) -> str:
        value = self.require(name)
        if not isinstance(value, str) or len(value) > MAX_ITEMS:
            self.refuse(self._path_of(name), f"a text of at most {MAX_ITEMS} characters", value)
        return value

    def read_object(self, name: str) -> "_CalibratorFields":
        return _CalibratorFields(self.path, self._path_of(name), self.require(name))

    def read_number(
        self, name: str, low: float = -MAX_NUMBER, high: float = MAX_NUMBER, value: Any = None
    ) -> float:
        # ``value`` is given for the items of a list, which have no field of their own.
        value = self.require(name) if value is None else value
        # In Python a bool is an int; in JSON ``true`` is no number.
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        # This comparison works for integers of any size, and is false for NaN.
        if not plain or not low <= value <= high:
            # The default bounds are no information for the user.
            span = "" if (low, high) == (-MAX_NUMBER, MAX_NUMBER) else f" from {low:g} to {high:g}"
            self.refuse(self._path_of(name), f"a number{span}", value)
        return float(value)

    def read_integer(self, name: str, low: int = 0) -> int:
        value = self.read_number(name, low, 1e15)
        if value != int(value):
            self.refuse(self._path_of(name), "a whole number", value)
        return int(value)

    def read_optional(self, name: str, read: Callable[[str], T]) -> T | None:
        return None if self.require(name) is None else read(name)

    def read_items(self, name: str, fewest: int = 0) -> list[Any]:
        value = self.require(name)
        if not isinstance(value, list) or not fewest <= len(value) <= MAX_ITEMS:
            self.refuse(self._path_of(name), f"a list of {fewest} to {MAX_ITEMS} items", value)
        return value

    def read_numbers(
        self, name: str, low: float, high: float, *, falls: bool, fewest: int = 1
    ) -> tuple[float, ...]:
        """Return increasing numbers; with ``falls`` equal neighbours are allowed as well."""
        result = [self.read_number(name, low, high, item) for item in self.read_items(name, fewest)]
        for previous, following in itertools.pairwise(result):
            if following < previous or (following == previous and not falls):
                self.refuse(self._path_of(name), "rising numbers", result)
        return tuple(result)

    def read_objects(self, name: str, fewest: int = 0) -> "list[_CalibratorFields]":
        return [
            _CalibratorFields(self.path, f"{self._path_of(name)}[{place}]", item)
            for place, item in enumerate(self.read_items(name, fewest))
        ]

    def read_calibrator(self) -> Calibrator:
        if self.content.get("format") != CALIBRATOR_FORMAT:
            self.refuse(
                "format",
                f"{CALIBRATOR_FORMAT!r}, as calibrate writes it",
                self.content.get("format"),
            )
        if self.require("version") != CALIBRATOR_VERSION:
            self.refuse(
                "version",
                f"{CALIBRATOR_VERSION}, which this version reads",
                self.require("version"),
            )
        inputs = [fields.read_input() for fields in self.read_objects("inputs", 1)]
        spreads = self.read_object("spreads")
        # Spreads are named after the metric, or after metric and part: "faithfulness.support".
        metrics = {score_input.metric for score_input in inputs}
        # A spread of another metric would be compared with scores that the run does not have.
        for name in spreads.content:
            if name.partition(".")[0] not in metrics:
                self.refuse("spreads", f"names of {' and '.join(sorted(metrics))}", name)
        result = Calibrator(
            self.read_text("label"),
            self.read_integer("answers", 1),
            self.read_integer("questions", 1),
            self.read_number("right", 0, 1),
            inputs,
            self.read_object("model").read_model(len(inputs)),
            [fields.read_promise() for fields in self.read_objects("promises")],
            {name: spreads.read_object(name).read_spread() for name in spreads.content},
            self.read_object("figures").content,
            self.read_text("made_by"),
        )
        # These two follow from the other fields: a difference shows that the file was edited by
        # hand.
        if result.method != self.require("method"):
            self.refuse("method", repr(result.method), self.require("method"))
        if result.fingerprint != self.require("fingerprint"):
            self.refuse(
                "fingerprint",
                f"{result.fingerprint!r}, that of the inputs",
                self.require("fingerprint"),
            )
        return result

    def read_input(self) -> CalibratorInput:
        sign = self.require("sign")
        if sign not in (1, -1):
            self.refuse(self._path_of("sign"), "1 or -1", sign)
        return CalibratorInput(
            self.read_text("metric"),
            self.read_text("part"),
            self.read_object("options").content,
            self.read_object("backends").content,
            int(sign),
        )

    def read_model(self, inputs: int) -> Isotonic | Combination:
        # An isotonic curve is stored by its knots, a regression by its terms.
        if "knots" in self.content:
            knots = self.read_numbers("knots", -MAX_NUMBER, MAX_NUMBER, falls=False)
            values = self.read_numbers("values", 0, 1, falls=True)
            # An isotonic curve has one value for each knot, and reads one score.
            if len(values) != len(knots) or inputs != 1:
                self.refuse(self._path_of("values"), f"{len(knots)} numbers, of one input", values)
            return Isotonic(knots, values)
        terms = tuple(fields.read_term() for fields in self.read_objects("terms", 1))
        if len(terms) != inputs:
            self.refuse(self._path_of("terms"), f"one for each of {inputs} inputs", len(terms))
        return Combination(self.read_number("intercept"), terms)

    def read_term(self) -> LogOddsTerm:
        return LogOddsTerm(
            self.read_number("centre"),
            # Scores are divided by it.
            self.read_number("scale", 1e-100),
            self.read_number("coefficient"),
            self.read_optional("missing", self.read_number),
        )

    def read_promise(self) -> ThresholdPromise:
        kind = self.require("kind")
        if kind not in (AMONG_ACCEPTED, OF_ALL):
            self.refuse(self._path_of("kind"), f"{AMONG_ACCEPTED!r} or {OF_ALL!r}", kind)
        return ThresholdPromise(
            kind,
            self.read_number("at_most", 0, 1),
            self.read_optional("confidence", lambda name: self.read_number(name, 0, 1)),
            self.read_optional("above", self.read_number),
            self.read_integer("questions"),
            self.read_integer("answers"),
            self.read_integer("wrong"),
            self.read_text("without"),
            self.read_optional("needed", self.read_integer),
        )

    def read_spread(self) -> DistributionSummary:
        points = self.read_numbers("points", -MAX_NUMBER, MAX_NUMBER, falls=False, fewest=0)
        shares = self.read_numbers("shares", 0, 1, falls=True, fewest=0)
        # A spread is a step function: the share of scores up to each point.
        if len(points) != len(shares):
            self.refuse(self._path_of("shares"), f"{len(points)} numbers", shares)
        return DistributionSummary(
            self.read_number("size", 0), self.read_number("missing", 0, 1), points, shares
        )


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
        decisions = zip(self.calibrator.promises, self.accepted, strict=True)
        # An answer is accepted or not by the first promise that has a threshold.
        by_threshold = (
            bool(accepts[number]) for promise, accepts in decisions if not promise.without
        )
        accepted = next(by_threshold, None)
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
