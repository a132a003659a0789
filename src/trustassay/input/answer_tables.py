"""Reads tables of answers with scores and labels, whatever columns they have besides.

A source is a file, a frame, an iterable of records, or traces. Traces hold their scores and the
feedback of people in lists (Langfuse: ``scores``, Phoenix: ``annotations``, MLflow:
``assessments``, LangSmith: ``feedback``); each name in such a list is read as a column.

A trace is one row, unless several of its spans have what the user names.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trustassay.core.sample import LONGEST_LINE_MIB, Sample, SampleError
from trustassay.errors import did_you_mean
from trustassay.input.reading import (
    paths_of,
    read_raw_records,
    read_records_in_memory,
    refuse_many_fields,
)
from trustassay.input.recognising import ABSENT, reach, recognise
from trustassay.input.records import (
    InputError,
    RawRecord,
    decode_json,
    parse_value,
    raise_faults,
)
from trustassay.input.spans import TraceSpan
from trustassay.input.traces import find_spans, is_trace, read_traces

_SCORE_LISTS = (
    *("scores", "annotations", "span_annotations", "assessments", "info.assessments"),
    *("feedback", "feedbacks", "feedback_stats"),
)
"""Fields that hold scores of a trace or of one of its spans."""
_NAMES = ("name", "key", "assessment_name", "assessmentName")
# Beside a category, Langfuse's `value` is the number of it, and LangSmith's `score` is the number
# that it stands for.
_VALUES = (
    *("result.score", "result.label", "feedback.value", "expectation.value"),
    *("score", "stringValue", "string_value", "value", "label"),
)
"""Fields of an item in such a list with its name and its value, the preferred ones first."""
_RATERS = (
    *("annotator_kind", "source.source_type", "source.sourceType", "feedback_source.type"),
    "source",
)
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
        # Where both use the name, an answer that one of them left out has no value of it.
        strict = self.has_two_raters(name)
        values = [
            self._read_cell(row, name, by_person=by_person, strict=strict) for row in self.rows
        ]
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

    def has_two_raters(self, name: str) -> bool:
        """Whether both people and others gave scores of this name."""
        scores = (score for row in self.rows for score in row.scores if score.name == name)
        return len({score.by_person for score in scores}) > 1

    def _read_cell(self, row: TableRow, name: str, *, by_person: bool, strict: bool) -> Any:
        value = reach(row.record, name)
        if value not in (ABSENT, None, ""):
            return value
        scores = [score for score in row.scores if score.name == name]
        if strict:
            scores = [score for score in scores if score.by_person == by_person]
        values = list(dict.fromkeys(score.value for score in scores))
        if len(values) > 1:
            raise InputError(
                f"{row.where}: expected one value of {name} for an answer, got {len(values)}: "
                f"{values[:3]}"
            )
        return values[0] if values else None


def read_answer_table(
    source: Any,
    wanted: Collection[str],
    sheet: str = "",
    longest_line: int = LONGEST_LINE_MIB,
) -> AnswerTable:
    """Read a table.

    Args:
        source: a path or URL (CSV, TSV, Excel, JSON, JSON Lines, Parquet, traces), a frame, or an
            iterable of records.
        wanted: the columns that the user names, by which a header is known.
        sheet: the sheet of a workbook; empty for the one with a wanted column.
        longest_line: MiB of the longest record.

    Raises:
        InputError: it cannot be read, has no rows, or some of its rows cannot be read. A damaged
            table is refused as a whole: missing rows would look like missing labels.
    """
    # Without a name the first row is the header: such a table needs no question.
    columns = {name.partition(".")[0] for name in wanted} | set(wanted) or {"id"}
    if paths := paths_of(source):
        name = ", ".join(paths)
        raws: Iterable[RawRecord] = (
            raw
            for path in paths
            for raw in read_raw_records(path, {}, sheet, columns, longest_line)
        )
    else:
        raws, name = read_records_in_memory(source, {})
    faults: list[str] = []
    rows = list(_read_rows(raws, name, set(wanted), faults))
    raise_faults(faults)
    if not rows:
        raise InputError(f"{name}: contains no records")
    names = {column: None for row in rows for column in row.record}
    names |= {score.name: None for row in rows for score in row.scores}
    return AnswerTable(name, rows, list(names))


def _read_rows(
    raws: Iterable[RawRecord], name: str, wanted: Collection[str], faults: list[str]
) -> Iterator[TableRow]:
    of_traces: list[RawRecord] = []
    for raw in refuse_many_fields(raws):
        if raw.problems:
            problem = raw.problems[0]
            faults.append(f"{raw.where}: {problem.field}: {problem.message}")
        elif not isinstance(raw.record, Mapping):
            faults.append(f"{raw.where}: expected an object")
        elif is_trace(trace := decode_json(raw.record.get("trace"))):
            # MLflow's table of traces has the whole trace as JSON.
            of_traces.append(RawRecord(raw.where, trace))
        elif is_trace(raw.record):
            of_traces.append(raw)
        else:
            yield _build_row(raw.where, raw.record, read_trace_scores(raw.record))
    if of_traces:
        yield from _read_trace_rows(of_traces, name, wanted)


def _read_trace_rows(
    raws: Sequence[RawRecord], name: str, wanted: Collection[str]
) -> Iterator[TableRow]:
    """Yield a row for each trace, or for each span of it that has scores of the ``wanted`` names.

    1. The spans of each trace are collected with their scores, and those beside the spans.
    2. Where a span of the table has all names, it is an answer. So a trace is split if one of its
       spans has all of them, or if all spans with scores have the same: a judge scored each, and
       nobody has labelled them.
    3. Any other trace is one row with the scores of all its spans.
    """
    traces: dict[str, list[tuple[TraceSpan, list[TraceScore]]]] = {}
    beside: dict[str, list[TraceScore]] = {}
    places: dict[str, str] = {}
    trace_by_line: dict[int, str] = {}
    for raw in raws:
        for span in find_spans(raw.record):
            trace = span.trace or raw.where
            at_span = read_trace_scores(span.raw)
            traces.setdefault(trace, []).append((span, at_span))
            places.setdefault(trace, f"{raw.where}: trace {trace:.80}")
            # MLflow writes the scores of a trace beside its spans.
            if id(raw.record) not in trace_by_line and span.raw is not raw.record:
                beside.setdefault(trace, []).extend(read_trace_scores(raw.record))
            trace_by_line.setdefault(id(raw.record), trace)
    records: dict[str, Mapping[str, Any]] = {}
    for raw in read_traces(raws, name):
        # A trace whose answer cannot be found may still have a score and a label.
        if isinstance(raw.record, Mapping):
            trace = trace_by_line.get(id(raw.record)) or str(raw.record.get("id"))
            records.setdefault(trace, raw.record)
    scores = (score for parts in traces.values() for _, at_span in parts for score in at_span)
    names = {score.name for score in scores}.intersection(wanted)
    has_answers = any(_has_all(at_span, names) for p in traces.values() for _, at_span in p)
    for trace, parts in traces.items():
        at_trace = [*beside.get(trace, ()), *(score for _, at_span in parts for score in at_span)]
        row = TableRow(places[trace], trace, "", "", "", {}, at_trace)
        if trace in records:
            row = _build_row(places[trace], records[trace], at_trace)
        scored = [(span, at_span) for span, at_span in parts if _names_of(at_span) & names]
        kinds = {frozenset(_names_of(at_span) & names) for _, at_span in scored}
        is_split = len(kinds) == 1 or any(_has_all(at_span, names) for _, at_span in scored)
        if not (has_answers and is_split and len(scored) > 1):
            yield row
            continue
        for span, at_span in scored:
            # Answers of a trace depend on each other, as those to one question do.
            yield TableRow(
                f"{row.where}, span {span.id:.80}",
                span.id,
                row.question or trace,
                span.text("model") or row.model,
                span.text("output"),
                span.raw,
                at_span,
            )


def _names_of(scores: Iterable[TraceScore]) -> set[str]:
    return {score.name for score in scores}


def _has_all(scores: Sequence[TraceScore], names: Collection[str]) -> bool:
    """Whether scores have all names; of a single one, that of a person and that of a judge."""
    raters = {score.by_person for score in scores if score.name in names}
    return bool(names) and _names_of(scores) >= set(names) and (len(names) > 1 or len(raters) > 1)


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
    for path in _SCORE_LISTS:
        content = reach(record, path)
        # Tables hold such lists as JSON, or as Python prints them.
        content = parse_value(content) if isinstance(content, str) else content
        if isinstance(content, Mapping):
            items = [item for key, value in content.items() for item in _list_values(key, value)]
        else:
            items = content if isinstance(content, list) else []
        result += [score for item in items if (score := _read_score(item)) is not None]
    return result


def _list_values(key: str, value: Any) -> list[Mapping[str, Any]]:
    """Return the items of ``{"helpful": 1}``, or of the counts that LangSmith writes."""
    if not isinstance(value, Mapping):
        return [{"key": key, "value": value}]
    if "n" not in value:
        return [{"key": key, **value}]
    ends = [value.get("min"), value.get("max")]
    values = ends if None not in ends else [value.get("avg")]
    if values == [None]:
        values = list(value["values"]) if isinstance(value.get("values"), Mapping) else []
    return [{"key": key, **value, "value": each} for each in values]


def _read_score(item: Any) -> TraceScore | None:
    # MLflow keeps an assessment that another one has replaced.
    if not isinstance(item, Mapping) or item.get("valid") is False:
        return None
    name, value = _first(item, _NAMES), _first(item, _VALUES)
    if name is None or value is None:
        return None
    kind = str(_first(item, _RATERS)).casefold()
    return TraceScore(str(name), value, kind in _PEOPLE)


def _first(item: Mapping[str, Any], paths: Iterable[str]) -> Any:
    """Return the first number or text that is there, of fields by their paths."""
    values = (reach(item, path) for path in paths)
    return next((v for v in values if isinstance(v, int | float | str) and v != ""), None)
