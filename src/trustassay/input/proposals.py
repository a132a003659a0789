"""Proposes names for the fields that a record lacks, for messages with a command.

1. Names of texts are guessed by their words. A right answer, a judgement or an id is never guessed
   to be the response.
2. The record is read with these names. A name whose value cannot be read is not proposed.
3. Where a name stays open, the message lists what the record has.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from trustassay.core.sample import CANONICAL_FIELDS, Problem, Sample, SampleError
from trustassay.input import layouts
from trustassay.input.chats import CHATS
from trustassay.input.messages import read_messages
from trustassay.input.passages import is_prose
from trustassay.input.recognising import (
    RecognisedRecord,
    find_rival_answer,
    list_names,
    reach,
    recognise,
)
from trustassay.input.records import UnknownFields, decode_json

_SCORABLE_FIELDS = ("question", "response", "documents")
"""The fields that a record needs for most metrics."""
MAX_TEXT_CHARACTERS = 40
"""Characters of a value that a message shows."""
MAX_PREVIEW_CHARACTERS = 60
"""Characters of a question and a response that a message shows."""
MAX_MESSAGES_READ = 20
"""Elements of a list that are read to know whether it is a chat."""
_SPAN_WORDS = frozenset({"span", "trace"})


def find_unknown_fields(
    recognised: RecognisedRecord, problems: Iterable[Problem]
) -> UnknownFields | None:
    """Return the fields that some problems miss because the record has no known name for them.

    Other fields that the user may want to name at the same time are included. ``None`` if every
    missing field has a known name.

    Args:
        recognised: the record.
        problems: its problems, by canonical field.
    """
    missing = [problem.field for problem in problems if problem.message.startswith("is missing")]
    unknown_fields = [name for name in missing if recognised.lacks_name_for(name)]
    if not unknown_fields:
        return None
    names = list_names(recognised.original)
    free = _find_free_names(recognised, names)
    guesses = {
        field: name
        for field, name in _guess_names(recognised.original, free).items()
        if recognised.lacks_name_for(field)
    }
    parts = _read_parts(recognised.original, {**recognised.fields, **guesses})
    guesses = {field: name for field, name in guesses.items() if field in parts}
    # What a tool never writes need not be named.
    unknown_fields = [
        field
        for field in unknown_fields
        if field in guesses or not layouts.explain_missing(field, recognised.original)
    ]
    if not unknown_fields:
        return None
    fields = {field: guesses.get(field, "") for field in (*unknown_fields, *guesses)}
    # With all of these the message can propose a full command.
    is_complete = all(
        field in parts or (field == "documents" and not recognised.lacks_name_for(field))
        for field in _SCORABLE_FIELDS
    )
    return UnknownFields(
        names,
        fields,
        len(unknown_fields) == len(missing) and all(fields.values()) and is_complete,
        {name: parts[name] for name in ("question", "response") if name in parts},
        {name: _describe_value(reach(recognised.original, name)) for name in free},
        "" if {"question", "response"} <= parts.keys() else _describe_shape(recognised.original),
    )


def _find_free_names(recognised: RecognisedRecord, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of a record that have no meaning yet."""
    canonical_names = {
        name for name in recognised.record if name in CANONICAL_FIELDS and name in recognised.raw
    }
    names_read = {
        recognised.names.get(name, name)
        for name in canonical_names | set(recognised.sources.values())
    }
    return tuple(name for name in names if name not in names_read)


def _guess_names(record: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, str]:
    """Return guesses of the names of fields, by canonical field."""
    if find_rival_answer(record):
        names = tuple(name for name in names if name != "answer")
    values = {name: reach(record, name) for name in names}
    # A value of another type is not proposed.
    no_texts = tuple(name for name, value in values.items() if not _may_be_text(name, value))
    return {
        field: name
        for field, name in layouts.guess_fields(names, no_texts).items()
        if field == "documents" or isinstance(values[name], str)
    }


def _may_be_text(name: str, value: Any) -> bool:
    """Whether a field may contain a text or passages."""
    if layouts.translate_name(name) in layouts.AMBIGUOUS:
        return is_prose(decode_json(value))
    if isinstance(value, list):
        return bool(value) and all(isinstance(text, str) for text in value)
    return isinstance(value, str)


def _read_parts(record: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields that can be read with some names, each as the beginning of its text."""
    values = recognise(record, fields).record
    result: dict[str, str] = {}
    for name in _SCORABLE_FIELDS:
        # Each by itself, so that a fault in one field does not hide another.
        with suppress(SampleError):
            if values.get(name):
                sample = Sample.parse({"id": 1, "question": "?", name: values[name]})
                value = getattr(sample, name)
                text = value if isinstance(value, str) else value[0].text
                if text.strip():
                    result[name] = shorten(text, MAX_PREVIEW_CHARACTERS)
    return result


def shorten(text: str, length: int) -> str:
    """Return the beginning of a text in one line."""
    # More is cut off first: a text may be long.
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def _describe_value(value: Any) -> str:
    if isinstance(value, Mapping):
        value = f"an object with {', '.join(map(str, islice(value, MAX_TEXT_CHARACTERS)))}"
    if isinstance(value, list):
        first = value[0] if value and isinstance(value[0], str) else ""
        value = f"a list of {len(value):,}{f': {first}' if first else ''}"
    return shorten(
        value if isinstance(value, str) else json.dumps(value, default=str), MAX_TEXT_CHARACTERS
    )


def _describe_shape(record: Mapping[str, Any]) -> str:
    """Return what to do with a record that is a message, or holds a chat or spans; else empty."""
    if {"role", "content"} <= record.keys():
        return (
            "each record is one message; expected one record per chat, with all its messages: "
            '{"messages": [{"role": "user", "content": "..."}, ...]}'
        )
    for name, value in record.items():
        # A chat under a name that is read already needs no other one.
        messages = None if name in CHATS else decode_json(value)
        if isinstance(messages, list) and any(
            message.role == "assistant" for message in read_messages(messages[:MAX_MESSAGES_READ])
        ):
            return f"{name} holds the messages of a chat: rename it to messages"
    words = {word for name in record for word in layouts.normalise_name(str(name)).split("_")}
    if words & _SPAN_WORDS:
        return (
            "it looks like a trace; expected spans as their exporter writes them, with trace_id "
            "and span_id, or with run_type and trace_id"
        )
    return ""
