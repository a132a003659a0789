"""What turns the scores of a run into probabilities of being right, and its thresholds."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay.statistics.calibration import Combination
from trustassay.statistics.comparison import Spread
from trustassay.statistics.regression import Isotonic

__all__ = [
    "AMONG_ACCEPTED",
    "OF_ALL",
    "Calibrator",
    "Input",
    "Promise",
]

Floats = NDArray[np.float64]
T = TypeVar("T")
FORMAT = "trustassay calibrator"
VERSION = 1


Kind = Literal["among accepted", "of all"]
AMONG_ACCEPTED: Kind = "among accepted"
OF_ALL: Kind = "of all"


@dataclass(frozen=True)
class Input:
    """A score that is read: a metric's, or a part of it.

    options, backends: with which it was computed. sign: -1 where lower is better; it is the score
    times this that the model and the thresholds are about.
    """

    metric: str
    part: str
    options: Mapping[str, Any]
    backends: Mapping[str, Any]
    sign: int = 1

    @property
    def name(self) -> str:
        """As ``study`` names it: ``faithfulness``, ``faithfulness.support``."""
        return f"{self.metric}.{self.part}" if self.part else self.metric


@dataclass(frozen=True)
class Promise:
    """A threshold and what it promises.

    kind: ``among accepted``: with the stated ``confidence``, at most the share ``at_most`` of the
    accepted answers is wrong. ``of all``: on average, at most that share of a question's answers is
    accepted and wrong (``confidence`` is ``None``). above: accepted is what ranks above it (see
    :attr:`Calibrator.rank`); ``None``: all that have a probability. questions, answers, wrong: of
    the labelled answers that are accepted. without: why there is no threshold; empty if there is
    one. needed: about how many labelled questions would do, where that can be said.
    """

    kind: Kind
    at_most: float
    confidence: float | None
    above: float | None = None
    questions: int = 0
    answers: int = 0
    wrong: int = 0
    without: str = ""
    needed: int | None = None

    def accepts(self, ranks: ArrayLike) -> NDArray[np.bool_]:
        """Return which answers are accepted, by their ranks; none of those that have no rank."""
        given = np.asarray(ranks, dtype=np.float64)
        if self.without:
            return np.zeros(given.shape, dtype=bool)
        return given > (-math.inf if self.above is None else self.above)


@dataclass(frozen=True)
class Calibrator:
    """What turns scores into probabilities.

    label: its name. answers, questions, right: those that it was made from. inputs: the scores.
    model: of one score an isotonic or a logistic curve, of several a logistic regression.
    promises: thresholds. spreads: the distributions of all scores and parts of the metrics, by
    name. figures: how good the probabilities are, out of fold: value and interval by name.
    """

    label: str
    answers: int
    questions: int
    right: float
    inputs: Sequence[Input]
    model: Isotonic | Combination
    promises: Sequence[Promise]
    spreads: Mapping[str, Spread]
    figures: Mapping[str, Any] = field(default_factory=dict)
    made_by: str = ""

    @property
    def method(self) -> str:
        """``isotonic``, ``logistic``, or ``combination`` of several scores."""
        if isinstance(self.model, Isotonic):
            return "isotonic"
        return "logistic" if len(self.inputs) == 1 else "combination"

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics."""
        return list(dict.fromkeys(one.metric for one in self.inputs))

    @property
    def fingerprint(self) -> str:
        """The same for all calibrators of the same scores and settings."""
        told = [_input_dict(one) for one in self.inputs]
        text = json.dumps(told, sort_keys=True, default=str)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def oriented(self, table: ArrayLike) -> Floats:
        """Return scores, shape (n, d), each with the sign by which higher is better."""
        signs = np.array([one.sign for one in self.inputs], dtype=np.float64)
        return np.asarray(np.asarray(table, dtype=np.float64) * signs)

    def probabilities(self, table: ArrayLike) -> Floats:
        """Return the probability of being right of each answer, shape (n,), from its scores as the
        metrics give them, shape (n, d), NaN where there is none.

        NaN where the only score is missing, or one that no labelled answer was without.
        """
        x = self.oriented(table)
        if isinstance(self.model, Isotonic):
            return self.model.at(x[:, 0])
        return self.model.probabilities(x)

    def ranks(self, table: ArrayLike) -> Floats:
        """Return what thresholds are about: of one score the score itself (times its sign), of
        several the probability."""
        return self.oriented(table)[:, 0] if len(self.inputs) == 1 else self.probabilities(table)

    @property
    def rank(self) -> str:
        """Say what the ranks are."""
        if len(self.inputs) > 1:
            return "probability"
        return self.inputs[0].name if self.inputs[0].sign > 0 else f"-{self.inputs[0].name}"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "made_by": self.made_by,
            "label": self.label,
            "answers": self.answers,
            "questions": self.questions,
            "right": self.right,
            "fingerprint": self.fingerprint,
            "inputs": [_input_dict(one) for one in self.inputs],
            "method": self.method,
            "model": _model_dict(self.model),
            "rank": self.rank,
            "promises": [dict(vars(one)) for one in self.promises],
            "figures": dict(self.figures),
            "spreads": {
                name: {
                    "size": one.size,
                    "missing": one.missing,
                    "points": list(one.points),
                    "shares": list(one.shares),
                }
                for name, one in self.spreads.items()
            },
        }


def _input_dict(one: Input) -> dict[str, Any]:
    return {
        "metric": one.metric,
        "part": one.part,
        "options": dict(one.options),
        "backends": dict(one.backends),
        "sign": one.sign,
    }


def _model_dict(model: Isotonic | Combination) -> dict[str, Any]:
    if isinstance(model, Isotonic):
        return {"knots": list(model.knots), "values": list(model.values)}
    names = ("centre", "scale", "coefficient", "missing")
    terms = [{name: getattr(term, name) for name in names} for term in model.terms]
    return {"intercept": model.intercept, "terms": terms}
