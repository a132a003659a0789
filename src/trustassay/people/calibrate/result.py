"""The result of ``calibrate``."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trustassay.core.json_form import JsonForm
from trustassay.runs.calibrator import Calibrator, ThresholdPromise, write_calibrator
from trustassay.statistics import Floats

ALL_ANSWERS = "all answers"
"""How answers were chosen for labelling, if all that have a score are labelled."""
EVENLY_LABELLED = "evenly over the scores"
"""The same if some are, as far as can be seen by chance."""


@dataclass(frozen=True)
class Calibration(JsonForm):
    """What a score is worth on a source; ``trustassay.calibrate`` returns it."""

    json_names = ("source", "answers", "notes", "lines", "calibrator")
    calibrator: Calibrator
    source: str
    """The name of the source."""
    answers: int
    """All answers, labelled or not."""
    scores: Floats
    """The labelled scores, times the sign, shape (n,)."""
    wrong: Floats
    """1 where a labelled answer is wrong, else 0, shape (n,)."""
    counted: int
    """Labels that count for the promise."""
    wrong_share: float | None
    """The share of wrong answers without a check; ``None`` if the labels cannot say it."""
    lenient_wrong: int
    """Accepted labelled answers that all who could tell call wrong."""
    notes: Sequence[str] = ()
    """Remarks on the input."""
    lines: Sequence[str] = ()
    """The promise, its price and what it is valid for, in sentences."""

    @property
    def promise(self) -> ThresholdPromise | None:
        """The first promise that has a threshold."""
        promises = self.calibrator.promises
        return next((promise for promise in promises if not promise.without), None)

    @property
    def above(self) -> float | None:
        """The threshold as the judge gives its scores: answers above it are accepted, or those
        below it where lower is better; ``None`` without a promise, -inf or inf if all are."""
        if self.promise is None:
            return None
        above = -math.inf if self.promise.above is None else self.promise.above
        return self.calibrator.score.sign * above

    @property
    def share(self) -> float:
        """The share of all answers that is accepted, 0 to 1."""
        return self.promise.share if self.promise else 0.0

    @property
    def text(self) -> str:
        """:attr:`lines` as one text."""
        return "\n".join(self.lines)

    def accept(self, score: float, of: str = "") -> bool:
        """Return whether an answer with this score is accepted.

        Args:
            score: as the judge gives it.
            of: the value of ``by`` of the answer.
        """
        return bool(self.calibrator.accepts([score], [of])[0])

    def probability(self, score: float) -> float:
        """Return the probability, 0 to 1, that an answer with this score is right."""
        return float(self.calibrator.probabilities([score])[0])

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the calibrator as a small JSON file, and return its path."""
        write_calibrator(self.calibrator, Path(path))
        return Path(path)
