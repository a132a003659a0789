"""Read published sets of open questions with gold answers.

The user names the set; the layout of a file is recognised by its fields. Passages, contexts and
search results that come with the questions are ignored.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from trustassay.core.sample import Problem, Sample, SampleError, clean, compute_content_id
from trustassay.errors import did_you_mean
from trustassay.input.places import open_text
from trustassay.input.reading import LocatedSample, read_raw_records
from trustassay.input.recognising import parse_values
from trustassay.input.records import InputError, InputFault, RawRecord
from trustassay.input.tables import read_csv_records

Split = Literal["test", "dev"]
SPLITS: tuple[Split, ...] = ("test", "dev")
"""The splits that are read, in the order in which they are drawn from."""
Golds = tuple[tuple[str, ...], ...]
"""Gold answers, each with its aliases."""

# A split as a word of a file's name: `NQ-open.dev.jsonl`, `test-00000.parquet`.
_SPLIT = re.compile(r"(?<![a-z])(test|dev|validation|valid|val|train)(?![a-z])", re.IGNORECASE)
_DPR_COLUMNS = ("question", "column 2")
"""Names for the columns of DPR's tables, which have no header."""
_QUOTED = r'"((?:[^"\\]|\\.)*)"'
# `(description Rome)` and `(description "New York")`.
_DESCRIPTION = re.compile(rf"\(description\s+(?:{_QUOTED}|([^\s()\"]+))\)")
# The whole value: `(list (description Rome) (description "New York"))`.
_DESCRIPTIONS = re.compile(rf"\(list(?:\s+\(description\s+(?:{_QUOTED}|[^\s()\"]+)\))+\)")
_MAX_VALUE_CHARS = 40
"""Maximum characters of a faulty value that a message shows."""


@dataclass(frozen=True, slots=True)
class QuestionLayout:
    """One published form of a set."""

    question: str
    """Field of the question; it must be present."""
    answers: str
    """Field of the gold answers; it must be present too, unless ``unanswered_field`` is."""
    read_golds: Callable[[Any], Golds]
    """Reads the gold answers; raises :class:`SampleError` with fields inside the value."""
    id_fields: tuple[str, ...] = ()
    """Fields that may hold the id of the question, in order of preference."""
    metadata_fields: tuple[str, ...] = ()
    """Fields that are copied to the sample's metadata."""
    unanswered_field: str | None = None
    """Field that identifies the layout if the publishers withheld the answers. A question of such a
    layout may have no answer."""

    def fits(self, record: Mapping[str, Any]) -> bool:
        """Whether a record has this layout."""
        has_answers = self.answers in record or (
            self.unanswered_field is not None and self.unanswered_field in record
        )
        return self.question in record and has_answers


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A published set of questions."""

    name: str
    """The short name, as in the option ``--nq``."""
    title: str
    """The full name."""
    layouts: tuple[QuestionLayout, ...]
    """The first one that fits a record is used."""
    only_split: Split | None = None
    """The split of a set that is published without splits."""


class QuestionFile(NamedTuple):
    """A file of a set; ``split`` follows from its name unless the user names it."""

    set: QuestionSet
    path: str
    split: Split

    @classmethod
    def of(cls, name: str, path: str) -> QuestionFile:
        """Return the file ``path``, or ``SPLIT=path``, of the set of that name.

        Raises:
            InputError: no such set, or the split is unknown or for training.
        """
        if name not in QUESTION_SETS:
            raise InputError(did_you_mean("set of questions", name, QUESTION_SETS))
        question_set = QUESTION_SETS[name]
        split, separator, file_path = path.partition("=")
        # A path may contain "=" itself, as in `day=1/dev.json`.
        if separator and split in SPLITS:
            return cls(question_set, file_path, split)
        return cls(question_set, path, _detect_split(Path(path), question_set))


def read_questions(file: QuestionFile) -> Iterator[LocatedSample | InputFault]:
    """Read the questions of a file in any of its set's layouts, in their order.

    A sample's id consists of the set, the split and the question's own id, or else a hash of its
    text. Its metadata hold ``source`` and ``split``.

    Raises:
        InputError: the file is missing, of an unknown format, or broken.
    """
    has_records = False
    for raw in _read_raw_records(file.path):
        has_records = True
        yield _parse_question(parse_values(raw, {}), file)
    if not has_records:
        raise InputError(f"{file.path}: has no records")


def _detect_split(path: Path, question_set: QuestionSet) -> Split:
    # The file's name wins over its folder's.
    for name in (path.name, path.parent.name):
        split_words = {word.lower() for word in _SPLIT.findall(name)}
        # Published names of one split: dev, val, valid, validation.
        splits = {"dev" if word.startswith("val") else word for word in split_words}
        if len(splits) == 1:
            split = splits.pop()
            if split == "train":
                # The paper draws from test and dev splits only.
                raise InputError(f"{path}: is a training split; expected the test or dev split")
            return cast(Split, split)
        if splits:
            break
    if question_set.only_split:
        return question_set.only_split
    raise InputError(
        f"{path}: the name does not say which split it is; write test={path} or dev={path}"
    )


def _read_raw_records(name: str) -> Iterator[RawRecord]:
    path = Path(name)
    # `.csv.gz` is a table too.
    kinds = [suffix.lower() for suffix in path.suffixes[-2:] if suffix.lower() != ".gz"]
    if kinds and kinds[-1] in {".csv", ".tsv"} and path.is_file():
        with open_text(path, name) as stream:
            first = stream.readline().rstrip(b"\r\n").split(b"\t")
        # DPR's tables have a question and a Python list, and no header.
        if len(first) == len(_DPR_COLUMNS) and first[1].lstrip(b'"').startswith(b"["):
            return read_csv_records(path, name, {}, "\t", list(_DPR_COLUMNS))
    return read_raw_records(name, {})


def _parse_question(raw: RawRecord, file: QuestionFile) -> LocatedSample | InputFault:
    record = raw.record
    if not isinstance(record, Mapping):
        return InputFault(raw.where, raw.problems or (Problem("record", "expected an object"),))
    # Layouts of one set differ in their fields, so at most one fits.
    layout = next((candidate for candidate in file.set.layouts if candidate.fits(record)), None)
    if layout is None:
        return InputFault(raw.where, (_describe_unknown(record, file.set),))
    problems = list(raw.problems)
    golds: Golds = ()
    value = record.get(layout.answers)
    if value is not None:
        try:
            golds = layout.read_golds(value)
        except SampleError as error:
            problems += [Problem(layout.answers + p.field, p.message) for p in error.problems]
    # Without a problem so far: a value that could not be read is reported only once.
    if not golds and layout.unanswered_field is None and not problems:
        problems.append(Problem(layout.answers, "is missing (expected a gold answer)"))
    question = record[layout.question]
    if not isinstance(question, str) or not question.strip():
        message = f"expected text, got {_shorten(question)}"
        return InputFault(raw.where, (*problems, Problem(layout.question, message)))
    if problems:
        return InputFault(raw.where, tuple(Problem(clean(p.field), p.message) for p in problems))
    # Not every layout has ids; then the text gives one.
    own_id = next(
        (str(record[key]) for key in layout.id_fields if record.get(key) is not None), None
    )
    sample = Sample(
        id=clean(
            f"{file.set.name}-{file.split}-{own_id or compute_content_id({'question': question})}"
        ),
        question=clean(question.strip()),
        answers=golds,
        metadata={
            "source": file.set.title,
            "split": file.split,
            **{key: record[key] for key in layout.metadata_fields if record.get(key) is not None},
        },
    )
    return LocatedSample(raw.where, sample, has_id=own_id is not None)


def _describe_unknown(record: Mapping[str, Any], question_set: QuestionSet) -> Problem:
    expected = " or ".join(
        f"{layout.question} and {layout.answers}" for layout in question_set.layouts
    )
    fields = ", ".join(clean(str(key)) for key in record)
    return Problem("record", f"has the fields {fields[:80]}; {question_set.title} has {expected}")


# Gold answers: each function raises SampleError with fields inside the value.


def _build_error(expected: str, value: Any, field: str = "") -> SampleError:
    return SampleError([Problem(field, f"expected {expected}, got {_shorten(value)}")])


def _shorten(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= _MAX_VALUE_CHARS else text[: _MAX_VALUE_CHARS - 3] + "..."


def _read_texts(value: Any) -> tuple[str, ...]:
    """Return the distinct texts of a list; blank ones are dropped."""
    if not isinstance(value, list):
        raise _build_error("a list of texts", value)
    for index, item in enumerate(value):
        # `True` is an int in Python, but no answer.
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            raise _build_error("text", item, f"[{index}]")
    return tuple(dict.fromkeys(text for item in value if (text := clean(str(item)).strip())))


def _read_aliases(value: Any) -> Golds:
    """Read a list of aliases of one gold answer."""
    texts = _read_texts(value)
    if not texts:
        raise _build_error("a list of texts", value)
    return (texts,)


def _read_several(value: Any) -> Golds:
    """Read a list of gold answers, each right by itself."""
    return tuple((text,) for text in _read_aliases(value)[0])


def _read_one(value: Any) -> Golds:
    """Read one gold answer."""
    if not isinstance(value, str) or not value.strip():
        raise _build_error("text", value)
    return ((clean(value.strip()),),)


def _read_value_and_aliases(value: Any) -> Golds:
    """Read TriviaQA's answer: a value and its aliases; ``<unk>`` is a withheld answer."""
    if not isinstance(value, Mapping):
        raise _build_error("an object with a value and aliases", value)
    # The two published versions differ in case: `Value`, `value`.
    fields = {str(key).lower(): item for key, item in value.items()}
    first, aliases = fields.get("value"), fields.get("aliases") or []
    try:
        names = _read_texts(aliases)
    except SampleError as error:
        raise SampleError([Problem(f".aliases{p.field}", p.message) for p in error.problems]) from (
            None
        )
    # The publishers withhold the answers of test splits.
    if first is None or first == "<unk>":
        return ()
    return (tuple(dict.fromkeys((*_read_one(first)[0], *names))),)


def _read_json_list(value: Any) -> Golds:
    """Read PopQA's answers: a list, or its JSON as text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise _build_error("a list of texts as JSON", value) from None
    return _read_aliases(value)


def _read_python_list(value: Any) -> tuple[str, ...]:
    """Read DPR's answers: a list as Python prints it; only literals are evaluated."""
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            raise _build_error("a list of texts in Python syntax", value) from None
    return _read_aliases(value)[0]


def _read_descriptions(value: Any) -> Golds:
    """Read the target value of WebQuestions: ``(list (description Rome) (description "..."))``."""
    if not isinstance(value, str) or not _DESCRIPTIONS.fullmatch(value.strip()):
        raise _build_error('(list (description "...") ...)', value)
    texts = (
        re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else match[2]
        for match in _DESCRIPTION.finditer(value)
    )
    return _read_several(list(texts))


def _build_trivia_layout(question: str, answers: str, id_field: str) -> QuestionLayout:
    return QuestionLayout(
        question, answers, _read_value_and_aliases, id_fields=(id_field,), unanswered_field=id_field
    )


_DPR_ALIASES = (
    QuestionLayout("question", "answers", _read_aliases, id_fields=("id",)),
    QuestionLayout("question", "column 2", lambda value: (_read_python_list(value),)),
)

QUESTION_SETS: Mapping[str, QuestionSet] = {
    one.name: one
    for one in (
        QuestionSet(
            "nq",
            "NaturalQuestions",
            (QuestionLayout("question", "answer", _read_aliases), *_DPR_ALIASES),
        ),
        QuestionSet(
            "webq",
            "WebQuestions",
            (
                QuestionLayout("utterance", "targetValue", _read_descriptions),
                QuestionLayout("qText", "answers", _read_several, id_fields=("qId",)),
                QuestionLayout("question", "answers", _read_several, id_fields=("id",)),
                QuestionLayout(
                    "question",
                    "column 2",
                    lambda value: _read_several(list(_read_python_list(value))),
                ),
            ),
        ),
        QuestionSet(
            "triviaqa",
            "TriviaQA",
            (
                _build_trivia_layout("Question", "Answer", "QuestionId"),
                _build_trivia_layout("question", "answer", "question_id"),
                *_DPR_ALIASES,
            ),
        ),
        QuestionSet(
            "hotpotqa",
            "HotpotQA",
            (
                QuestionLayout(
                    "question",
                    "answer",
                    _read_one,
                    id_fields=("_id", "id"),
                    metadata_fields=("type",),
                    unanswered_field="_id",
                ),
            ),
        ),
        QuestionSet(
            "popqa",
            "PopQA",
            (
                QuestionLayout(
                    "question",
                    "possible_answers",
                    _read_json_list,
                    id_fields=("id",),
                    metadata_fields=("s_pop", "o_pop"),
                ),
            ),
            only_split="test",
        ),
    )
}
"""The five sets that MixedQA is drawn from (TrustScore, appendix A.3), in its order."""
