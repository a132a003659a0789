"""Columns in, columns out: scoring as a function of frames, of Ray Data, of Spark and of DuckDB."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Unpack
from uuid import uuid4

from trustassay.api import Metrics, scorer
from trustassay.data.arrow import Columns
from trustassay.data.reading import Located, read_samples
from trustassay.data.records import Fault
from trustassay.errors import UsageError
from trustassay.metric import Metric
from trustassay.options import ScorerOptions, shows_keywords
from trustassay.registry import metric_from_text
from trustassay.runs.finished import one_line, reason_of
from trustassay.sample import Problem, SampleError
from trustassay.workflows.open_scorers import opened
from trustassay.workflows.scorer import Assay, OpenScorer

FAILED = "failed"


class Batch:
    """Scores the rows of tables; made by :func:`batch`, and may be pickled."""

    def __init__(self, metrics: Metrics, options: ScorerOptions) -> None:
        several = [metrics] if isinstance(metrics, str | Metric) else metrics
        self._metrics = [metric_from_text(m) if isinstance(m, str) else m for m in several]
        self._options = options
        self._key = uuid4().hex  # of one scorer a process, however often it is unpickled there
        if "out" in options:
            raise UsageError("out: not for batch, whose rows several processes may score at once")
        self._door()

    def _door(self) -> OpenScorer:
        return scorer(metrics=self._metrics, **self._options)

    def __call__(self, table: Any) -> dict[str, list[Any]]:
        """Return the new columns of a table: a mapping of columns, a frame, or an Arrow table.

        Raises:
            InputError: no column is a question, or the columns differ in length.
            ValueError, BackendError: the scorer cannot be opened.
        """
        read = Columns(table) if isinstance(table, Mapping) else table
        rows = self._scored(read) if len(read) else []
        return {
            f"{metric.name}_{name}": [_cell(name, metric, row) for row in rows]
            for metric in self._metrics
            for name in ("score", "verdict", "reason")
        }

    def _scored(self, table: Any) -> list[Assay | str]:
        """Return for each row what was found, or why it is no sample."""
        threads = opened(self._key, self._door())
        begun: list[Future[Assay] | None] = [None] * len(table)
        found: list[Located | Fault | None] = [None] * len(table)
        for one in read_samples(table, fields=self._options.get("fields") or {}):
            row = int(one.where.split(": ")[1].removeprefix("row ")) - 1
            several = Fault(one.where, (Problem("row", "holds several answers"),))
            found[row] = several if found[row] else one
        try:
            for row, read in enumerate(found):
                if isinstance(read, Located):
                    begun[row] = threads.submit(read.sample)
            pairs = zip(found, begun, strict=True)
            return [_finished(number, *pair) for number, pair in enumerate(pairs, 1)]
        finally:
            for future in begun:
                if future is not None:
                    future.cancel()  # after an interruption; a finished one stays as it is


def _finished(number: int, one: Located | Fault | None, begun: Future[Assay] | None) -> Assay | str:
    if isinstance(one, Fault):
        problems: Sequence[Problem] = one.problems
    elif one is None or begun is None:
        problems = (Problem("row", "holds no answer of its own"),)
    else:
        try:
            return begun.result()
        except SampleError as error:
            problems = [one.in_own_words(problem) for problem in error.problems]
    return one_line(f"row {number}: " + "; ".join(map(str, problems)))


def _cell(name: str, metric: Metric, row: Assay | str) -> Any:
    if isinstance(row, str):
        return {"score": None, "verdict": FAILED, "reason": row}[name]
    found = row[metric.name]
    if name == "reason":
        return reason_of(metric, found)
    if found.error is not None:
        return FAILED if name == "verdict" else None
    return found.verdict if name == "verdict" else found.score


@shows_keywords(ScorerOptions)
def batch(metrics: Metrics, **options: Unpack[ScorerOptions]) -> Batch:
    """Return a function that takes a table's columns and returns new ones.

    Each metric gives ``NAME_score``, ``NAME_verdict`` and ``NAME_reason``, one value a row, in the
    order of the rows. A row that is no sample, or could not be scored, has no score, the verdict
    ``failed``, and the reason why, which names the row by its number in the table. Models are
    loaded once a process, by its first rows; also in workers, where the function is pickled.

        faithful = batch("faithfulness")
        frame.assign(**faithful(frame))                                 # pandas
        data.map_batches(lambda part: {**part, **faithful(part)})       # Ray Data

    Args:
        metrics: as of :func:`trustassay.score`; none that looks at all samples together.
        options: as of :func:`trustassay.scorer`, except ``out``.

    Raises:
        UnknownNameError, ValueError: a name or an option is wrong.
    """
    return Batch(metrics, options)
