"""Reads tables of answers with scores and labels, whatever columns they have besides.

A source is a file, a frame, an iterable of records, or traces. Traces hold their scores and the
feedback of people in lists (Langfuse: ``scores``, Phoenix: ``annotations``, MLflow:
``assessments``, LangSmith: ``feedback``); each name in such a list is read as a column.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trustassay.core.sample import Sample, SampleError
from trustassay.errors import did_you_mean
from trustassay.input.reading import paths_of, read_raw_records, read_records_in_memory
from trustassay.input.recognising import ABSENT, reach, recognise
from trustassay.input.records import InputError, RawRecord, decode_json, raise_faults
from trustassay.input.traces import find_spans, is_trace, read_traces

_SCORE_LISTS = (
    *("scores", "annotations", "span_annotations", "assessments"),
    *("feedback", "feedbacks", "feedback_stats"),
)
"""Fields that hold scores of a trace or of one of its spans."""
_NAMES = ("name", "key", "assessment_name", "assessmentName")
_VALUES = (
    *("result.score", "result.label", "feedback.value", "expectation.value"),
    *("value", "score", "stringValue", "string_value", "label", "avg"),
)
"""Fields of an item in such a list with its name and its value, the preferred ones first."""
_RATERS = ("annotator_kind", "source.source_type", "source.sourceType", "feedback_source.type")
_PEOPLE = frozenset({"human", "annotation", "app", "user"})
"""Kinds of raters that are people, in small letters."""


class TraceScore(NamedTuple):
    """A score or a label in a trace."""

    name: str
    """Its name."""
    value: Any
    """A number, a boolean or a text."""
    by_person: bool
    """Whether a person gave it."""


class TableRow(NamedTuple):
    """One answer."""

    where: str
    """Its place in the input, for messages."""
    id: str
    """The id of the record; as ``score`` computes it from the content if the record has none."""
    question: str
    """Empty if the record has none."""
    model: str
    """Empty if the record names none."""
    response: str
    """Empty if the record has none."""
    record: Mapping[str, Any]
    """All columns."""
    scores: Sequence[TraceScore] = ()
    """The scores in lists."""


@dataclass(frozen=True)
class AnswerTable:
    """Answers with their columns."""

    name: str
    """The source, for messages."""
    rows: Sequence[TableRow]
    """At least one."""
    names: Sequence[str] = field(default_factory=list)
    """The names of all columns, and of scores in lists."""

    def column(self, name: str, *, by_person: bool = False) -> list[Any]:
        """Return a column, with ``None`` where an answer has no value.

        Args:
            name: of a column, of a field in one (``user.rating``), or of a score in a trace.
            by_person: which of two scores of this name in one trace counts, that of a person or the
                other one.

        Raises:
            InputError: no answer has it, or one answer has several values.
        """
        values = [self._read_cell(row, name, by_person=by_person) for row in self.rows]
        if name not in self.names and all(value is None for value in values):
            raise InputError(f"{self.name}: {did_you_mean('column', name, self.names)}")
        return values

    def list_records(self) -> list[tuple[str, dict[str, Any]]]:
        """Return all columns of each answer, scores in lists among them, with its place.

        Where people and judges use the same name, that of people has "(people)" after it.
        """
        scores = [score for row in self.rows for score in row.scores]
        both = {s.name for s in scores if s.by_person} & {s.name for s in scores if not s.by_person}
        columns = {score.name: self.column(score.name) for score in scores}
        columns |= {f"{name} (people)": self.column(name, by_person=True) for name in both}
        return [
            (row.where, {**row.record, **{name: column[at] for name, column in columns.items()}})
            for at, row in enumerate(self.rows)
        ]

    def _read_cell(self, row: TableRow, name: str, *, by_person: bool) -> Any:
        value = reach(row.record, name)
        if value not in (ABSENT, None, ""):
            return value
        scores = [score for score in row.scores if score.name == name]
        # A person and a judge may use the same name.
        preferred = [score for score in scores if score.by_person == by_person] or scores
        values = list(dict.fromkeys(score.value for score in preferred))
        if len(values) > 1:
            raise InputError(
                f"{row.where}: has {len(values)} values of {name}: {values[:3]}; expected one an "
                "answer"
            )
        return values[0] if values else None


def read_answer_table(source: Any, wanted: Collection[str], sheet: str = "") -> AnswerTable:
    """Read a table.

    Args:
        source: a path or URL (CSV, TSV, Excel, JSON, JSON Lines, Parquet, traces), a frame, or an
            iterable of records.
        wanted: the columns that the user names, by which a header is known.
        sheet: the sheet of a workbook; empty for the one with a wanted column.

    Raises:
        InputError: it cannot be read, has no rows, or some of its rows cannot be read. A damaged
            table is refused as a whole: missing rows would look like missing labels.
    """
    # Without a name the first row is the header: such a table needs no question.
    columns = {name.partition(".")[0] for name in wanted} | set(wanted) or {"id"}
    if paths := paths_of(source):
        name = ", ".join(paths)
        raws: Iterable[RawRecord] = (
            raw for path in paths for raw in read_raw_records(path, {}, sheet, columns)
        )
    else:
        raws, name = read_records_in_memory(source, {})
    faults: list[str] = []
    rows = list(_read_rows(raws, name, faults))
    raise_faults(faults)
    if not rows:
        raise InputError(f"{name}: contains no records")
    names = {column: None for row in rows for column in row.record}
    names |= {score.name: None for row in rows for score in row.scores}
    return AnswerTable(name, rows, list(names))


def _read_rows(raws: Iterable[RawRecord], name: str, faults: list[str]) -> Iterator[TableRow]:
    of_traces: list[RawRecord] = []
    for raw in raws:
        if raw.problems:
            problem = raw.problems[0]
            faults.append(f"{raw.where}: {problem.field}: {problem.message}")
        elif not isinstance(raw.record, Mapping):
            faults.append(f"{raw.where}: expected an object")
        elif is_trace(raw.record):
            of_traces.append(raw)
        else:
            yield _build_row(raw.where, raw.record, read_trace_scores(raw.record))
    if of_traces:
        yield from _read_trace_rows(of_traces, name)


def _read_trace_rows(raws: Sequence[RawRecord], name: str) -> Iterator[TableRow]:
    """Yield a row for each trace, with the scores of all its spans."""
    scores: dict[str, list[TraceScore]] = {}
    for raw in raws:
        spans = list(find_spans(raw.record))
        for span in spans:
            scores.setdefault(span.trace or raw.where, []).extend(read_trace_scores(span.raw))
        # MLflow has the assessments of a trace beside its spans, or in ``info``.
        beside = [raw.record, raw.record.get("info")]
        for holder in beside:
            if isinstance(holder, Mapping) and all(span.raw is not holder for span in spans):
                trace = spans[0].trace if spans else ""
                scores.setdefault(trace or raw.where, []).extend(read_trace_scores(holder))
    own_lines = {id(raw.record) for raw in raws}
    for raw in read_traces(raws, name):
        # A trace whose answer cannot be found may still have a score and a label.
        if not isinstance(raw.record, Mapping):
            trace = raw.where.rpartition("trace ")[2].partition(",")[0]
            yield TableRow(raw.where, trace, "", "", "", {}, scores.get(trace, ()))
        elif id(raw.record) in own_lines:
            yield _build_row(raw.where, raw.record, read_trace_scores(raw.record))
        else:
            of_trace = scores.get(str(raw.record.get("id")), ())
            yield _build_row(raw.where, raw.record, of_trace)


def _build_row(where: str, record: Mapping[str, Any], scores: Sequence[TraceScore]) -> TableRow:
    try:
        sample = Sample.parse(recognise(record, {}).record)
    except (SampleError, ValueError, RecursionError):
        # A table of scores needs neither a question nor an answer.
        known_as = record.get("id")
        return TableRow(
            where, where if known_as is None else str(known_as), "", "", "", record, scores
        )
    response = sample.response or ""
    return TableRow(where, sample.id, sample.question, sample.model or "", response, record, scores)


def read_trace_scores(record: Mapping[str, Any]) -> list[TraceScore]:
    """Return the scores and labels in the lists of a record; empty for most records."""
    result = []
    for name in _SCORE_LISTS:
        content = decode_json(record.get(name))
        if isinstance(content, Mapping):
            # ``{"helpful": 1}`` or ``{"helpful": {"avg": 1, "n": 1}}``.
            items = [
                {"key": key, **(value if isinstance(value, Mapping) else {"value": value})}
                for key, value in content.items()
            ]
        else:
            items = content if isinstance(content, list) else []
        result += [score for item in items if (score := _read_score(item)) is not None]
    return result


def _read_score(item: Any) -> TraceScore | None:
    if not isinstance(item, Mapping):
        return None
    name, value = _first(item, _NAMES), _first(item, _VALUES)
    if name is None or not isinstance(value, int | float | str):
        return None
    kind = _first(item, _RATERS) or item.get("source")
    return TraceScore(str(name), value, str(kind).casefold() in _PEOPLE)


def _first(item: Mapping[str, Any], paths: Iterable[str]) -> Any:
    """Return the first value that is there, of fields by their paths."""
    values = (reach(item, path) for path in paths)
    return next((value for value in values if value not in (ABSENT, None, "")), None)
