"""The sample: a question, the response to assess, and the evidence that came with it.

A record is read once, checked completely, and never changed. All faults of a record are reported
together, each with its field, so that a user can correct a file in one go.
"""

import dataclasses
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trustassay.core.labels import normalise_label
from trustassay.errors import UsageError


class Problem(NamedTuple):
    """One fault of a record."""

    field: str
    """The field, as in ``documents[1].text``."""
    message: str
    """What is wrong with it, and what was expected."""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def find_missing(sample: "Sample", **expected: str) -> list[Problem]:
    """Return a problem for each of these fields that a sample lacks.

    An empty response or list of documents counts as present; any other empty field does not.

    Args:
        sample: the sample. expected: by field, what is expected there, for the message.
    """
    return [
        Problem(name, f"is missing (expected {what})")
        for name, what in expected.items()
        if (value := getattr(sample, name)) is None
        or not (value or name in ("response", "documents"))
    ]


class SampleError(UsageError):
    """A record is not a sample; ``problems`` lists every fault that was found in it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Document:
    """A passage that a response may cite; the one at position ``i`` is cited as ``[i + 1]``."""

    id: str
    """Its id; the position from 1 if the record has none."""
    text: str
    """Its text."""
    title: str = ""
    """Its title, which supports nothing by itself."""
    supports: tuple[int, ...] | None = None
    """For each gold answer or claim 1 if this passage supports it, otherwise 0; ``None`` if not
    annotated."""
    excerpt: str | None = None
    """A part of the text that is used for entailment instead of it, if present."""

    @property
    def blank(self) -> bool:
        """Whether it has no text; a title alone says nothing."""
        return is_blank(self.text) and is_blank(self.excerpt or "")

    def to_dict(self) -> dict[str, Any]:
        """Return the canonical JSON form without absent fields."""
        values = {
            f: _to_json_value(getattr(self, f))
            for f in ("id", "title", "text", "excerpt", "supports")
        }
        return {f: value for f, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Sample:
    """One question, the response to assess, and the evidence that came with it.

    Build one with :meth:`parse`, which checks everything.
    """

    id: str
    """Identifies the sample in a run."""
    question: str
    """The question; never blank."""
    response: str | None = None
    """The response to assess; ``None`` if it is still to be requested."""
    model: str | None = None
    """Who wrote the response."""
    answers: tuple[tuple[str, ...], ...] = ()
    """For each gold answer its aliases."""
    claims: tuple[str, ...] = ()
    """Gold claims."""
    documents: tuple[Document, ...] | None = None
    """The passages; ``None`` if the record has no such field."""
    references: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Answers of other models, by model."""
    wrong_answers: tuple[str, ...] = ()
    """Wrong answers that were made up without knowing the truth."""
    corrected_answers: tuple[str, ...] = ()
    """Their corrections, in the same order."""
    incorrect_answers: tuple[str, ...] = ()
    """Answers that are known to be wrong."""
    resamples: tuple[str, ...] = ()
    """Further responses of the same model to the same question."""
    expected: Mapping[str, str] = field(default_factory=dict)
    """The level that a judge should give, by the name of the rubric; under the empty name it holds
    for any rubric."""
    label: float | str | None = None
    """A human label as it was written, a number where it is one; what it means is for
    :mod:`trustassay.input.labels` to say."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """All other fields of the record."""

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> "Sample":
        """Check a record in canonical fields and return the sample; unknown fields go to the
        metadata.

        Raises:
            SampleError: with every fault of the record, each with its field.
        """
        return _SampleParser(raw).build_sample()

    @property
    def answered(self) -> bool:
        """Whether there is a response that is not blank."""
        return self.response is not None and not is_blank(self.response)

    @property
    def supports_known(self) -> bool:
        """Whether the documents say which gold answers they support."""
        return bool(self.documents) and all(d.supports is not None for d in self.documents or ())

    def to_dict(self) -> dict[str, Any]:
        """Return the canonical JSON form; ``Sample.parse`` of it gives an equal sample."""
        values = {f: _to_json_value(getattr(self, f)) for f in CANONICAL_FIELDS}
        # An empty response or list of documents is information, an empty list of claims is not.
        fields = {
            f: value
            for f, value in values.items()
            if value or (value is not None and f in _MAY_BE_EMPTY)
        }
        return fields | dict(self.metadata)


LONGEST_LINE_MIB = 64
"""MiB of a record that is read: thirty times the longest texts that are assessed together."""
CANONICAL_FIELDS = tuple(f.name for f in dataclasses.fields(Sample) if f.name != "metadata")
TOKENS_FIELD = "token_logprobs"
"""Field of a sample with the tokens of its response and their log-probabilities, in any form that
:mod:`trustassay.core.token_logprobs` reads."""
UNANSWERED_FIELD = "unanswered_message"
"""Field of an answer; true if the user's next message, the last of a chat, has no answer. That
message is no sample, so that it is counted with the answer before it."""
_MAY_BE_EMPTY = ("id", "question", "response", "model", "documents", "label")
"""Fields that may be empty or 0, which does not make them absent."""


def compute_content_id(raw: Mapping[str, Any]) -> str:
    """Return an id for a record without one: 12 hexadecimal digits made from its content.

    ``steps`` do not count: they repeat what other fields were built from. Values count as what they
    are in a CSV file: numbers as texts, and empty ones not at all.
    """
    content = {
        name: _write_numbers(value)
        for name, value in raw.items()
        if name != "steps" and value is not None and value != ""
    }
    # Sorted and ASCII, so that the order of fields and the encoding of the file do not matter: the
    # same record in another file resumes the same run.
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _write_numbers(value: Any) -> Any:
    if isinstance(value, int | float):
        return write_number(value)
    if isinstance(value, Mapping):
        return {name: _write_numbers(item) for name, item in value.items() if item is not None}
    return list(map(_write_numbers, value)) if isinstance(value, list | tuple) else value


class _SampleParser:
    """Reads one record, collects problems, and builds the sample if there are none."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.problems: list[Problem] = []

    def build_sample(self) -> Sample:
        """Return the sample, or raise SampleError with all problems."""
        raw = self.raw
        # Every field is read, even after a fault: the user sees all faults at once.
        question = self.read_text("question", required=True)
        answers = self.read_answers()
        claims = self.read_texts("claims")
        documents = self.read_documents(len(answers), len(claims))
        sample_id = raw.get("id")
        if sample_id is None:
            sample_id = compute_content_id(raw)
        elif isinstance(sample_id, float) and sample_id.is_integer():
            sample_id = write_number(sample_id)
        # bool first, since it is a subclass of int.
        elif isinstance(sample_id, bool) or not isinstance(sample_id, str | int):
            self.add_fault("id", "expected text or a whole number", sample_id)
        elif not str(sample_id).strip():
            self.problems.append(Problem("id", "is blank"))
        # No metric needs a label, so a label is never a fault. One of the fields of an object may
        # be the label (`--label label.human`), so the object is kept with the other fields.
        label = raw.get("label")
        fields_read: Collection[str] = CANONICAL_FIELDS
        if isinstance(label, Mapping | list | tuple):
            label, fields_read = None, set(CANONICAL_FIELDS) - {"label"}
        sample = Sample(
            id=clean(str(sample_id)),
            question=question or "",
            response=self.read_text("response"),
            model=self.read_text("model"),
            answers=answers,
            claims=claims,
            documents=documents,
            references=self.read_references(),
            wrong_answers=self.read_texts("wrong_answers"),
            corrected_answers=self.read_texts("corrected_answers"),
            incorrect_answers=self.read_texts("incorrect_answers"),
            resamples=self.read_texts("resamples", blank_allowed=True),
            expected=self.read_expected(),
            label=normalise_label(clean(label) if isinstance(label, str) else label),
            metadata={k: v for k, v in raw.items() if k not in fields_read},
        )
        if self.problems:
            raise SampleError(self.problems)
        return sample

    def add_fault(self, where: str, expected: str, value: Any) -> None:
        """Record a problem with what was expected and the value that was found."""
        self.problems.append(Problem(where, f"{expected}, got {describe_value(value)}"))

    def read_text(self, name: str, *, required: bool = False) -> str | None:
        """Return a field's text, or ``None`` if it is absent or faulty.

        A number becomes a text, except where a text is required: no question is a number.
        """
        value = self.raw.get(name)
        if value is None:
            if required:
                self.problems.append(Problem(name, "is missing (expected text)"))
            return None
        if isinstance(value, int | float) and not required:
            value = write_number(value)
        if not isinstance(value, str):
            self.add_fault(name, "expected text", value)
            return None
        if required and not value.strip():
            self.problems.append(Problem(name, "is blank (expected text)"))
        return clean(value)

    def read_texts(self, name: str, *, blank_allowed: bool = False) -> tuple[str, ...]:
        """Return the texts of a field that is one text or a list of texts."""
        value = self.raw.get(name)
        return (
            () if value is None else self.read_text_list(value, name, blank_allowed=blank_allowed)
        )

    def read_text_list(
        self, value: Any, where: str, *, blank_allowed: bool = False
    ) -> tuple[str, ...]:
        """Accept one text or a list of texts; a number becomes a text."""
        items = value if isinstance(value, list | tuple) else [value]
        texts = []
        for index, item in enumerate(items):
            item_field = f"{where}[{index}]" if isinstance(value, list | tuple) else where
            if isinstance(item, str):
                if not (blank_allowed or item.strip()):
                    self.problems.append(Problem(item_field, "is blank"))
                texts.append(clean(item))
            elif isinstance(item, int | float):
                texts.append(write_number(item))
            else:
                self.add_fault(item_field, "expected text", item)
        return tuple(texts)

    def read_answers(self) -> tuple[tuple[str, ...], ...]:
        """Accept one gold answer, a list of them, or a list of lists of aliases."""
        value = self.raw.get("answers")
        if value is None:
            return ()
        if not isinstance(value, list | tuple):
            return (self.read_text_list(value, "answers"),)
        result = []
        for index, item in enumerate(value):
            aliases = self.read_text_list(item, f"answers[{index}]")
            if isinstance(item, list | tuple) and not item:
                self.problems.append(
                    Problem(f"answers[{index}]", "has no alias (expected one or more)")
                )
            result.append(aliases)
        return tuple(result)

    def read_documents(self, answers: int, claims: int) -> tuple[Document, ...] | None:
        """Return the documents; one with ``supports`` demands it of all others.

        Args:
            answers, claims: how many there are, which the flags must match.
        """
        value = self.raw.get("documents")
        if value is None:
            return None
        if isinstance(value, Mapping):
            # `datasets` stores a list of records as a record of lists.
            value = columns_to_rows(value)
        if not isinstance(value, list | tuple):
            self.add_fault("documents", "expected a list of documents", value)
            return None
        result = [self.read_document(item, i, answers, claims) for i, item in enumerate(value)]
        # Faulty documents have been reported; they are dropped so that reading can go on.
        documents = tuple(d for d in result if d is not None)
        if any(d.supports is not None for d in documents):
            for index, document in enumerate(documents):
                if document.supports is None:
                    where = f"documents[{index}].supports"
                    self.problems.append(Problem(where, "is missing, but other documents have it"))
        return documents

    def read_document(self, item: Any, index: int, answers: int, claims: int) -> Document | None:
        """Return one document; a plain text is a document without a title."""
        where = f"documents[{index}]"
        if isinstance(item, str):
            item = {"text": item}
        if not isinstance(item, Mapping):
            self.add_fault(where, "expected a document or its text", item)
            return None
        parts: dict[str, str] = {}
        for name in ("text", "title", "excerpt"):
            value = item.get(name)
            if isinstance(value, str):
                parts[name] = clean(value)
            elif value is not None:
                self.add_fault(f"{where}.{name}", "expected text", value)
            elif name == "text":
                self.problems.append(Problem(f"{where}.text", "is missing (expected text)"))
        supports = None
        if item.get("supports") is not None:
            supports = self.read_supports(item["supports"], f"{where}.supports", answers, claims)
        identifier = item.get("id")
        return Document(
            id=clean(str(index + 1 if identifier is None else identifier)),
            text=parts.get("text", ""),
            title=parts.get("title", ""),
            supports=supports,
            excerpt=parts.get("excerpt"),
        )

    def read_supports(self, value: Any, where: str, answers: int, claims: int) -> tuple[int, ...]:
        """Return the flags of a document, one for each gold answer or claim."""
        if not isinstance(value, list | tuple):
            self.add_fault(where, "expected a list of 0 and 1", value)
            return ()
        flags = []
        for index, flag in enumerate(value):
            if isinstance(flag, bool | int | float) and flag in (0, 1):
                flags.append(int(flag))
            else:
                self.add_fault(f"{where}[{index}]", "expected 0 or 1", flag)
        # A record may have both; then the flags may be about either.
        allowed = {n for n in (answers, claims) if n}
        if allowed and len(value) not in allowed:
            golds = " or ".join(
                f"{n} {what}" for n, what in ((answers, "answers"), (claims, "claims")) if n
            )
            self.problems.append(Problem(where, f"has {len(value)} flags for {golds}"))
        return tuple(flags)

    def read_references(self) -> dict[str, tuple[str, ...]]:
        """Return the answers of other models by model; one text or a list for each."""
        value = self.raw.get("references")
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.add_fault("references", "expected answers by model name", value)
            return {}
        return {
            clean(str(name)): self.read_text_list(texts, f"references.{name}", blank_allowed=True)
            for name, texts in value.items()
            if texts is not None
        }

    def read_expected(self) -> dict[str, str]:
        """Accept a level, a number or a word, or an object of levels by rubric."""
        value = self.raw.get("expected")
        if value is None or value == "":
            return {}
        levels = value if isinstance(value, Mapping) else {"": value}
        result = {}
        for name, level in levels.items():
            where = f"expected.{name}" if name else "expected"
            if isinstance(level, bool) or not isinstance(level, str | int | float):
                self.add_fault(where, "expected the level of a rubric", level)
            elif text := (level if isinstance(level, str) else write_number(level)).strip():
                result[clean(str(name))] = clean(text)
        return result


def write_number(value: float) -> str:
    """Return a number or a boolean as a table writes it.

    3.0 becomes "3": workbooks, and columns of frames with empty cells, store whole numbers so.
    """
    # From 2**53 on, a float no longer tells adjacent whole numbers apart.
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return str(int(value) if is_whole else value)


def clean(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded in a file, by U+FFFD."""
    # The usual case, which Python knows without looking at the characters.
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # Through UTF-16, since two escaped halves of one character ("\ud83d\ude00" in JSON) become
        # that character, and only a half without a partner is replaced.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def is_blank(text: str) -> bool:
    """Whether a text has no visible characters: only white space, control characters and the
    like."""
    return not any(c.isprintable() and not c.isspace() for c in text)


def question_key(text: str) -> str:
    """Return a text that is equal for equal questions: white space and case do not count."""
    return " ".join(text.split()).casefold()


def columns_to_rows(value: Mapping[str, Any]) -> Any:
    """Turn a mapping of equally long columns (as `datasets` stores lists of records) into rows."""
    columns = {k: v for k, v in value.items() if isinstance(v, list | tuple)}
    # Not columns: the value is returned as it is, and reported by the caller.
    if not columns or len({len(v) for v in columns.values()}) != 1:
        return value
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def describe_value(value: Any) -> str:
    """Return a short description of a JSON value for a message."""
    kinds: dict[type, str] = {dict: "an object", list: "a list"}
    if kind := kinds.get(type(value)):
        return kind if value else f"an empty {kind.split()[-1]}"
    text = json.dumps(value, default=str, ensure_ascii=True)
    return text if len(text) <= 40 else text[:37] + "..."


def _to_json_value(value: Any) -> Any:
    """Return documents and tuples as JSON has them; text stays as it is."""
    if isinstance(value, Document):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: _to_json_value(item) for name, item in value.items()}
    return [_to_json_value(item) for item in value] if isinstance(value, tuple | list) else value
