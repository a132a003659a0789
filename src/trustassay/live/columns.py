"""Scoring as a function from columns to columns: for frames, Ray Data, Spark and DuckDB."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Unpack
from uuid import uuid4

from trustassay.api import Metrics, build_metrics, scorer
from trustassay.core.metric import Metric
from trustassay.core.sample import Problem, SampleError
from trustassay.errors import UsageError
from trustassay.input.arrow import Columns
from trustassay.input.reading import LocatedSample, read_samples
from trustassay.input.records import InputFault
from trustassay.live.open_scorers import get_open_scorer
from trustassay.live.scorer import Assay, OpenScorer
from trustassay.runs.finished import describe_reason, one_line
from trustassay.runs.options import ScorerOptions, shows_keywords

FAILED = "failed"


class Batch:
    """Scores the rows of tables; made by :func:`batch`. Can be pickled."""

    def __init__(self, metrics: Metrics, options: ScorerOptions) -> None:
        # Names are resolved here, so that a wrong one is reported where the function is made and
        # not in a worker, where the traceback would be far away.
        self._metrics = build_metrics(metrics)
        self._options = options
        # Workers unpickle this object for every partition; the key finds the scorer that the
        # process has already opened, with its loaded models.
        self._key = uuid4().hex
        if "out" in options:
            raise UsageError(
                "out: batch cannot write a run, since several processes may score its rows at once"
            )
        # Opened once to check the options, and dropped: models are loaded when its block begins.
        self._open_scorer()

    def _open_scorer(self) -> OpenScorer:
        return scorer(metrics=self._metrics, **self._options)

    def __call__(self, table: Any) -> dict[str, list[Any]]:
        """Return the new columns of a table: a mapping of columns, a frame, or an Arrow table.

        Raises:
            InputError: no column is a question, or the columns differ in length.
            ValueError, BackendError: the scorer cannot be opened.
        """
        # A frame or an Arrow table knows how to be read; plain columns are wrapped.
        rows_read = Columns(table) if isinstance(table, Mapping) else table
        # An empty partition, as Spark hands out, must not load the models.
        rows = self._score_rows(rows_read) if len(rows_read) else []
        return {
            f"{metric.name}_{name}": [_read_cell(name, metric, row) for row in rows]
            for metric in self._metrics
            for name in ("score", "verdict", "reason")
        }

    def _score_rows(self, table: Any) -> list[Assay | str]:
        """Return, for each row, its assessments or the reason why the row is not a sample."""
        threads = get_open_scorer(self._key, self._open_scorer())
        futures: list[Future[Assay] | None] = [None] * len(table)
        # Rows keep their place; one that yields no record stays `None` and is reported as such.
        records: list[LocatedSample | InputFault | None] = [None] * len(table)
        options = self._options
        fields, answer_span = options.get("fields") or {}, options.get("answer_span")
        for record in read_samples(table, fields=fields, answer_span=answer_span):
            # `where` reads "table: row 12", counted from 1.
            row = int(record.where.split(": ")[1].removeprefix("row ")) - 1
            fault = InputFault(record.where, (Problem("row", "has several answers, expected one"),))
            # A chat log can hold several answers in a row. The output has one value a row, so which
            # of them it would be about is undefined.
            records[row] = fault if records[row] else record
        try:
            # All rows are submitted before the first is awaited, so that they are scored in
            # batches.
            for row, record_of_row in enumerate(records):
                if isinstance(record_of_row, LocatedSample):
                    futures[row] = threads.submit(record_of_row.sample)
            pairs = zip(records, futures, strict=True)
            return [_collect_row(number, *pair) for number, pair in enumerate(pairs, 1)]
        finally:
            for future in futures:
                if future is not None:
                    future.cancel()  # after an interruption; a finished one stays as it is


def _collect_row(
    number: int, record: LocatedSample | InputFault | None, future: Future[Assay] | None
) -> Assay | str:
    """Wait for the result of a row, or return why there is none, with the row's number from 1."""
    if isinstance(record, InputFault):
        problems: Sequence[Problem] = record.problems
    elif record is None or future is None:
        problems = (Problem("row", "has no answer"),)
    else:
        try:
            return future.result()
        except SampleError as error:
            # Fields are named as in the user's table, not as in our canonical form.
            problems = [record.use_original_names(problem) for problem in error.problems]
    return one_line(f"row {number}: " + "; ".join(map(str, problems)))


def _read_cell(name: str, metric: Metric, row: Assay | str) -> Any:
    """Return the value of one of a metric's three columns for a row."""
    # The row is no sample; `row` is the reason.
    if isinstance(row, str):
        return {"score": None, "verdict": FAILED, "reason": row}[name]
    assessment = row[metric.name]
    if name == "reason":
        return describe_reason(metric, assessment)
    if assessment.error is not None:
        return FAILED if name == "verdict" else None
    return assessment.verdict if name == "verdict" else assessment.score


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
