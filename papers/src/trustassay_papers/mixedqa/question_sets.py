"""Published sets of open questions as people have them on disk: questions with gold answers.

Each set is told by its user; which of its published layouts a file has is told by its fields.
Passages, contexts and search results that come with the questions are left out.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from trustassay.data.reading import Located, raw_records
from trustassay.data.recognising import with_values
from trustassay.data.records import Fault, InputError, Raw
from trustassay.data.source_files import opened
from trustassay.data.tables import csv_records
from trustassay.errors import did_you_mean
from trustassay.sample import Problem, Sample, SampleError, clean, content_id

Split = Literal["test", "dev"]
SPLITS: tuple[Split, ...] = ("test", "dev")
"""The splits that are read, in the order in which they are drawn from."""
Golds = tuple[tuple[str, ...], ...]
"""Gold answers, each with its aliases."""

_SPLIT = re.compile(r"(?<![a-z])(test|dev|validation|valid|val|train)(?![a-z])", re.IGNORECASE)
_HEADERLESS = ("question", "column 2")
"""Columns of DPR's tables, which have no names in the file."""
_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_DESCRIPTION = re.compile(rf"\(description\s+(?:{_QUOTED}|([^\s()\"]+))\)")
_DESCRIPTIONS = re.compile(rf"\(list(?:\s+\(description\s+(?:{_QUOTED}|[^\s()\"]+)\))+\)")
_SHOWN = 40
"""Characters of a faulty value that a message shows."""


@dataclass(frozen=True, slots=True)
class QuestionLayout:
    """One published form of a set.

    ``question`` and ``answers`` are the fields that tell it, ``golds`` reads the second, ``ids``
    are fields with an id of the question, ``kept`` go to the sample's metadata. ``bare`` is the
    field that tells it where the publishers held the answers back; a layout with one may have a
    question without an answer.
    """

    question: str
    answers: str
    golds: Callable[[Any], Golds]
    ids: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    bare: str | None = None

    def fits(self, record: Mapping[str, Any]) -> bool:
        """Whether a record is written so."""
        told = self.answers in record or (self.bare is not None and self.bare in record)
        return self.question in record and told


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A set of questions: its short name, its name in full, and its layouts."""

    name: str
    title: str
    layouts: tuple[QuestionLayout, ...]
    only_split: Split | None = None
    """Where the set has one split, what that is taken for."""


class QuestionFile(NamedTuple):
    """A file of a set; ``split`` is read from its name where that is not given."""

    set: QuestionSet
    path: str
    split: Split

    @classmethod
    def of(cls, name: str, path: str) -> QuestionFile:
        """Return the file ``path``, or ``SPLIT=path``, of the set of that name.

        Raises:
            InputError: no such set, or no split that is read.
        """
        if name not in QUESTION_SETS:
            raise InputError(did_you_mean("set of questions", name, QUESTION_SETS))
        found = QUESTION_SETS[name]
        given, separator, rest = path.partition("=")
        if separator and given in SPLITS:
            return cls(found, rest, given)
        return cls(found, path, _split_of(Path(path), found))


def read_questions(file: QuestionFile) -> Iterator[Located | Fault]:
    """Read the questions of a file in any of its set's layouts, in their order.

    A sample's id is made of the set, the split and the question's own id, or else of its words; its
    metadata hold ``source`` and ``split``.

    Raises:
        InputError: the file is not there, of no known kind, or broken.
    """
    found = False
    for raw in _raws(file.path):
        found = True
        yield _question(with_values(raw, {}), file)
    if not found:
        raise InputError(f"{file.path}: no records in it")


def _split_of(path: Path, found: QuestionSet) -> Split:
    for name in (path.name, path.parent.name):
        named = {word.lower() for word in _SPLIT.findall(name)}
        splits = {"dev" if word.startswith("val") else word for word in named}
        if len(splits) == 1:
            split = splits.pop()
            if split == "train":
                raise InputError(f"{path}: is a training split; expected the test or dev split")
            return cast(Split, split)
        if splits:
            break
    if found.only_split:
        return found.only_split
    raise InputError(
        f"{path}: the name does not say which split it is; write test={path} or dev={path}"
    )


def _raws(name: str) -> Iterator[Raw]:
    path = Path(name)
    kinds = [suffix.lower() for suffix in path.suffixes[-2:] if suffix.lower() != ".gz"]
    if kinds and kinds[-1] in {".csv", ".tsv"} and path.is_file():
        with opened(path, name) as stream:
            first = stream.readline().rstrip(b"\r\n").split(b"\t")
        if len(first) == len(_HEADERLESS) and first[1].lstrip(b'"').startswith(b"["):
            return csv_records(path, name, {}, "\t", list(_HEADERLESS))
    return raw_records(name, {})


def _question(raw: Raw, file: QuestionFile) -> Located | Fault:
    record = raw.record
    if not isinstance(record, Mapping):
        return Fault(raw.where, raw.problems or (Problem("record", "expected an object"),))
    layout = next((one for one in file.set.layouts if one.fits(record)), None)
    if layout is None:
        return Fault(raw.where, (_unknown(record, file.set),))
    problems = list(raw.problems)
    golds: Golds = ()
    value = record.get(layout.answers)
    if value is not None:
        try:
            golds = layout.golds(value)
        except SampleError as error:
            problems += [Problem(layout.answers + p.field, p.message) for p in error.problems]
    if not golds and layout.bare is None and not problems:
        problems.append(Problem(layout.answers, "is missing (expected a gold answer)"))
    question = record[layout.question]
    if not isinstance(question, str) or not question.strip():
        words = f"expected text, got {_shown(question)}"
        return Fault(raw.where, (*problems, Problem(layout.question, words)))
    if problems:
        return Fault(raw.where, tuple(Problem(clean(p.field), p.message) for p in problems))
    own = next((str(record[key]) for key in layout.ids if record.get(key) is not None), None)
    sample = Sample(
        id=clean(f"{file.set.name}-{file.split}-{own or content_id({'question': question})}"),
        question=clean(question.strip()),
        answers=golds,
        metadata={
            "source": file.set.title,
            "split": file.split,
            **{key: record[key] for key in layout.kept if record.get(key) is not None},
        },
    )
    return Located(raw.where, sample, has_id=own is not None)


def _unknown(record: Mapping[str, Any], found: QuestionSet) -> Problem:
    known = " or ".join(f"{one.question} and {one.answers}" for one in found.layouts)
    fields = ", ".join(clean(str(key)) for key in record)
    return Problem("record", f"has the fields {fields[:80]}; {found.title} has {known}")


# ---- gold answers; each function raises SampleError with fields inside the value ----


def _fault(expected: str, value: Any, field: str = "") -> SampleError:
    return SampleError([Problem(field, f"expected {expected}, got {_shown(value)}")])


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _texts(value: Any) -> tuple[str, ...]:
    """Return the texts of a list, each once; blank ones are no names of an answer and dropped."""
    if not isinstance(value, list):
        raise _fault("a list of texts", value)
    for place, item in enumerate(value):
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            raise _fault("text", item, f"[{place}]")
    return tuple(dict.fromkeys(text for item in value if (text := clean(str(item)).strip())))


def _aliases(value: Any) -> Golds:
    """Read a list of names of one gold answer."""
    texts = _texts(value)
    if not texts:
        raise _fault("a list of texts", value)
    return (texts,)


def _several(value: Any) -> Golds:
    """Read a list of gold answers, all of them right."""
    return tuple((text,) for text in _aliases(value)[0])


def _one(value: Any) -> Golds:
    """Read one gold answer."""
    if not isinstance(value, str) or not value.strip():
        raise _fault("text", value)
    return ((clean(value.strip()),),)


def _valued(value: Any) -> Golds:
    """Read TriviaQA's answer: a value and its aliases; ``<unk>`` is an answer held back."""
    if not isinstance(value, Mapping):
        raise _fault("an object with a value and aliases", value)
    of = {str(key).lower(): item for key, item in value.items()}
    first, aliases = of.get("value"), of.get("aliases") or []
    try:
        names = _texts(aliases)
    except SampleError as error:
        raise SampleError([Problem(f".aliases{p.field}", p.message) for p in error.problems]) from (
            None
        )
    if first is None or first == "<unk>":
        return ()
    return (tuple(dict.fromkeys((*_one(first)[0], *names))),)


def _json_list(value: Any) -> Golds:
    """Read PopQA's answers: a list, or its JSON as text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise _fault("a list of texts as JSON", value) from None
    return _aliases(value)


def _python_list(value: Any) -> tuple[str, ...]:
    """Read DPR's answers: a list as Python writes it; nothing in it is evaluated."""
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            raise _fault("a list of texts as Python writes it", value) from None
    return _aliases(value)[0]


def _described(value: Any) -> Golds:
    """Read the target value of WebQuestions: ``(list (description Rome) (description "..."))``."""
    if not isinstance(value, str) or not _DESCRIPTIONS.fullmatch(value.strip()):
        raise _fault('(list (description "...") ...)', value)
    found = (
        re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else match[2]
        for match in _DESCRIPTION.finditer(value)
    )
    return _several(list(found))


def _trivia(question: str, answers: str, own: str) -> QuestionLayout:
    return QuestionLayout(question, answers, _valued, ids=(own,), bare=own)


_DPR_ALIASES = (
    QuestionLayout("question", "answers", _aliases, ids=("id",)),
    QuestionLayout("question", "column 2", lambda value: (_python_list(value),)),
)

QUESTION_SETS: Mapping[str, QuestionSet] = {
    one.name: one
    for one in (
        QuestionSet(
            "nq",
            "NaturalQuestions",
            (QuestionLayout("question", "answer", _aliases), *_DPR_ALIASES),
        ),
        QuestionSet(
            "webq",
            "WebQuestions",
            (
                QuestionLayout("utterance", "targetValue", _described),
                QuestionLayout("qText", "answers", _several, ids=("qId",)),
                QuestionLayout("question", "answers", _several, ids=("id",)),
                QuestionLayout(
                    "question", "column 2", lambda value: _several(list(_python_list(value)))
                ),
            ),
        ),
        QuestionSet(
            "triviaqa",
            "TriviaQA",
            (
                _trivia("Question", "Answer", "QuestionId"),
                _trivia("question", "answer", "question_id"),
                *_DPR_ALIASES,
            ),
        ),
        QuestionSet(
            "hotpotqa",
            "HotpotQA",
            (
                QuestionLayout(
                    "question", "answer", _one, ids=("_id", "id"), kept=("type",), bare="_id"
                ),
            ),
        ),
        QuestionSet(
            "popqa",
            "PopQA",
            (
                QuestionLayout(
                    "question", "possible_answers", _json_list, ids=("id",), kept=("s_pop", "o_pop")
                ),
            ),
            only_split="test",
        ),
    )
}
"""The five sets that MixedQA is drawn from (TrustScore, appendix A.3), in its order."""
