"""Finds questions and answers in values as chat models and their frameworks write them.

A value is a text, a list of messages (``{"role": "user", "content": ...}``, also as Anthropic,
OpenAI's responses, OpenTelemetry, LangChain, LangGraph and pydantic-ai write them), an object with
a field of a known name, or an object with a single text.
"""

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trustassay.core.sample import compute_content_id
from trustassay.input.layouts import NAMES, normalise_name
from trustassay.input.messages import (
    find_chat,
    find_last_text,
    find_passages,
    join_part_texts,
    read_messages,
    read_turns,
)
from trustassay.input.passages import DOCUMENTS
from trustassay.input.prompts import split_prompt
from trustassay.input.records import decode_json

INSIDE: Mapping[str, Sequence[str]] = NAMES["inside"]
_MAX_DEPTH = 8
"""Levels of objects and lists that are searched for a text."""


def find_question(value: Any) -> tuple[str, str] | None:
    """Return the question in a value and its path in it; ``None`` where there is no clear one."""
    return _find_text(value, "user", INSIDE["questions"])


def find_answer(value: Any) -> tuple[str, str] | None:
    """Return the answer in a value and its path in it; ``None`` where there is no clear one."""
    return _find_text(value, "assistant", INSIDE["answers"])


def _find_text(value: Any, role: str, names: Sequence[str]) -> tuple[str, str] | None:
    if isinstance(value, Mapping) and not read_messages([value]):
        # Reversed, so that of two names with the same normal form the first one counts.
        by_name = {normalise_name(str(name)): name for name in reversed(value)}
        for name in names:
            if name in by_name:
                text = _read_text(value[by_name[name]], role, names, _MAX_DEPTH)
                if text is not None:
                    return text, str(by_name[name])
        # No known name: an object with a single text is taken for that text.
        texts = [name for name, inner_value in value.items() if isinstance(inner_value, str)]
        if len(texts) == 1:
            return value[texts[0]], str(texts[0])
        return None
    text = _read_text(value, role, names, _MAX_DEPTH)
    return None if text is None else (text, "")


def _read_text(value: Any, role: str, names: Sequence[str], levels_left: int) -> str | None:
    """Return the text of a value; in a list of messages, the last text of the role."""
    if isinstance(value, str) or levels_left == 0:
        return value if isinstance(value, str) else None
    if isinstance(value, list | tuple):
        if read_messages(value):
            return find_last_text(value, role)
        return (
            _read_text(value[0], role, names, levels_left - 1)
            if len(value) == 1
            else join_part_texts(value)
        )
    if not isinstance(value, Mapping):
        return None
    if read_messages([value]):
        return find_last_text([value], role)
    inside = (value.get(name) for name in names if name in value)
    texts = (_read_text(inner_value, role, names, levels_left - 1) for inner_value in inside)
    return next((inner_value for inner_value in texts if inner_value is not None), None)


Record = Mapping[str, Any]


class _NestedRecord(NamedTuple):
    """The nested record of a tool; paths have dots."""

    keys: Sequence[str]
    """The keys that identify it; all must be present."""
    ask: Sequence[str]
    """Paths of the question, the best one first."""
    say: Sequence[str]
    """Paths of the answer, the best one first."""
    gold: Sequence[str] = ()
    """Paths that hold only right answers."""
    mixed: Sequence[str] = ()
    """Paths that hold right answers beside other values."""
    model: Sequence[str] = ()
    """Paths of the name of the model."""


_GOLD_PLACES = (
    *("reference_outputs", "reference", "example.outputs", "expected_output", "expectedOutput"),
)
_NESTED_RECORDS = (
    _NestedRecord(
        ("datasource_item", "sample"),
        ask=("datasource_item.item", "datasource_item", "sample.input"),
        say=("sample.output",),
        mixed=("datasource_item.item", "datasource_item"),
        model=("sample.model",),
    ),
    _NestedRecord(("data", "event_id", "type"), ask=("data.prompt",), say=("data.sampled",)),
    _NestedRecord(
        ("vars",),
        ask=("vars", "prompt.raw", "prompt"),
        say=("response.output", "output"),
        mixed=("vars",),
        model=("provider.label", "provider.id", "provider"),
    ),
    _NestedRecord(
        ("example", "run"),
        ask=("run.inputs", "example.inputs"),
        say=("run.outputs",),
        gold=("example.outputs",),
        mixed=("example.inputs",),
    ),
    # An example: its outputs are the right ones.
    _NestedRecord(
        ("dataset_id", "inputs"),
        ask=("inputs",),
        say=(),
        gold=("outputs",),
        mixed=("inputs", "metadata"),
    ),
    _NestedRecord(
        ("inputs",),
        ask=("inputs",),
        say=("outputs", "output"),
        gold=_GOLD_PLACES,
        mixed=("inputs", "outputs", "metadata"),
        model=("extra.metadata.ls_model_name",),
    ),
    _NestedRecord(
        ("input",),
        ask=("input",),
        say=("output",),
        gold=_GOLD_PLACES,
        mixed=("input", "output", "metadata"),
    ),
)
"""The first one whose keys a record has counts: the keys of later ones are less certain."""
_COLUMNS = frozenset({"inputs", "outputs", "reference", "reference_outputs", "input", "output"})
"""Objects whose fields may be columns of a table: ``inputs.question``."""
CHATS = ("messages", "conversation", "conversations")
"""Names of the messages of a chat log."""
_NESTED_NAMES = frozenset({"datasource_item", "vars", "inputs", "input", *CHATS})
_NESTED_NAME_SETS = ({"event_id", "data"}, {"run", "example"})
_GOLD_ANSWERS = ("answer", "output", "response", "result", "text", "content")
_CHAT_FIELDS = ("documents", "steps")
"""Fields of a turn that a record's own documents replace; steps refer to passages of the chat."""
_ANSWER_PLACES = ("response", "output", "completion", "choices")
"""Fields of a chat log that hold its last answer."""
_MAX_PATH_DEPTH = 4
"""Levels of objects along a path from which a value is removed."""


def may_be_nested(names: Collection[str]) -> bool:
    """Whether a record with these names may have its question inside an object."""
    if any(names_together.issubset(names) for names_together in _NESTED_NAME_SETS):
        return True
    return any(str(name).partition(".")[0] in _NESTED_NAMES for name in names)


def is_no_answer(record: Record) -> bool:
    """Whether a record is a line of an OpenAI evals log without an answer.

    These are the settings, the final report, and events other than ``sampling``.
    """
    # An event of the log; only "sampling" events have a prompt and a completion.
    if {"event_id", "sample_id", "type", "data"} <= record.keys():
        return bool(record["type"] != "sampling")
    return len(record) == 1 and ("spec" in record or "final_report" in record)


def flatten_record(
    record: Record, *, answered: bool = False
) -> tuple[dict[str, Any], dict[str, str]] | None:
    """Return a nested record as a flat one, and the paths of the fields that were inside objects.

    ``None`` where the record is not of a known tool, is flat already, or has no clear question.

    Args:
        record: the record.
        answered: take the last answered question of a chat, and not one without an answer behind
            it.
    """
    record = _parse_json_fields(_gather_columns(record))
    for shape in _NESTED_RECORDS:
        if record.keys() >= set(shape.keys):
            return _flatten_shape(record, shape)
    return _flatten_chat(record, answered=answered)


def _flatten_chat(
    record: Record, *, answered: bool
) -> tuple[dict[str, Any], dict[str, str]] | None:
    """Return the last turn of a chat log; an answer or documents of the record itself win."""
    name = _find_chat_field(record)
    # ``deque(..., 2)`` keeps the last turns of the iterator; only the last one may lack an answer.
    turns = deque(read_turns(record[name], name) if name else (), 2)
    turn = turns.pop() if turns else {}
    if answered and "response" not in turn and turns:
        turn = turns.pop()
    if "question" not in turn:
        return None
    if answer := _find_first(record, _ANSWER_PLACES, find_answer):
        turn["response"] = answer[0]
    if _names_documents(record):
        turn = {k: v for k, v in turn.items() if k not in _CHAT_FIELDS}
    return {**record, **turn}, dict.fromkeys(turn, name)


def _find_chat_field(record: Record) -> str:
    """Return the name of the field with the messages of a chat log; empty for other records."""
    names = (name for name in CHATS if isinstance(record.get(name), list))
    return "" if "question" in record else next(names, "")


def split_turns(record: Record, known_as: Any, *, answered: bool = False) -> list[dict[str, Any]]:
    """Return a record for each answer of a chat log; an empty list for other records.

    Each record has its number as ``turn`` and the chat's id as ``conversation``, unless the log
    names a conversation itself. Fields of the log about an answer belong to the last one, which
    also keeps the messages.

    Args:
        record: the chat log.
        known_as: the log's id; where it is ``None``, an id is computed from the first turn, so that
            it stays the same while a chat grows.
        answered: leave out a last question without an answer.

    Raises:
        SampleError: as :func:`~trustassay.input.messages.read_turns`.
    """
    record = _parse_json_fields(record)
    name = _find_chat_field(record)
    turns = list(read_turns(record[name], name)) if name else []
    if answered and turns and "response" not in turns[-1]:
        del turns[-1]
    if not turns:
        return []
    fields_of_chat = {key: value for key, value in record.items() if key != name}
    common = {key: value for key, value in fields_of_chat.items() if key not in _ANSWER_PLACES}
    own_fields = _CHAT_FIELDS if _names_documents(record) else ()
    earlier = [{k: v for k, v in turn.items() if k not in own_fields} for turn in turns[:-1]]
    # The first turn does not change when the chat is continued.
    chat = compute_content_id(turns[0]) if known_as is None else known_as
    if not isinstance(chat, str | int):
        return []  # the parser of samples reports what is wrong with the id
    unit = fields_of_chat.get("conversation") or chat
    parts = [
        *({**common, **turn} for turn in earlier),
        {**fields_of_chat, "messages": record[name]},
    ]
    return [
        {**turn, "id": f"{chat}-{number}", "turn": number, "conversation": unit}
        for number, turn in enumerate(parts, 1)
    ]


def _flatten_shape(
    record: Record, shape: _NestedRecord
) -> tuple[dict[str, Any], dict[str, str]] | None:
    nested = {place.partition(".")[0] for place in (*shape.ask, *shape.say, *shape.mixed)}
    if all(isinstance(record.get(name), str | None) for name in nested):
        return None  # flat already
    parts = {
        "question": _find_first(record, shape.ask, find_question),
        "response": _find_first(record, shape.say, find_answer),
        "documents": _find_documents(record, (*shape.mixed, *shape.say)),
        "reference": _find_gold_answer(record, shape),
        "model": _find_first(record, shape.model, lambda value: (value, "") if value else None),
    }
    result = {name: part for name, part in parts.items() if part}
    if "question" not in result:
        return None
    flat = _remove_paths(record, {name: path for name, (_, path) in result.items()})
    if "documents" not in result and not _names_documents(record):
        result |= _read_shown_passages(record, shape, *result["question"])
    # promptfoo's object keeps other values beside the text; it makes room for the text.
    if isinstance(flat.get("response"), Mapping):
        flat["response_details"] = flat.pop("response")
    return (
        {**flat, **{name: value for name, (value, _) in result.items()}},
        {name: path for name, (_, path) in result.items()},
    )


def _read_shown_passages(
    record: Record, shape: _NestedRecord, question: str, path: str
) -> dict[str, tuple[Any, str]]:
    """Return the passages in the messages of a record, and the question without them."""
    chats = (read_messages(find_chat(_value_at(record, place))) for place in shape.ask)
    passages = [passage for _, passage in find_passages(next(filter(None, chats), []))]
    if not passages:
        return {}
    return {
        "question": (split_prompt(question).question or question, path),
        "documents": (passages, path),
    }


def _find_first(record: Record, places: Sequence[str], read: Any) -> tuple[Any, str] | None:
    """Return the value and path that ``read`` finds at the first place where it finds anything."""
    for place in places:
        result = read(_value_at(record, place))
        if result is not None:
            value, inside = result
            return value, f"{place}.{inside}" if inside else place
    return None


def _find_documents(record: Record, places: tuple[str, ...]) -> tuple[Any, str] | None:
    for place in places:
        value = _value_at(record, place)
        for name in value if isinstance(value, Mapping) else ():
            # Any object beside the question or answer may hold the passages.
            if normalise_name(str(name)) in DOCUMENTS and value[name] is not None:
                return value[name], f"{place}.{name}"
    return None


def _find_gold_answer(record: Record, shape: _NestedRecord) -> tuple[Any, str] | None:
    for place in (*shape.gold, *shape.mixed):
        value = _value_at(record, place)
        # A place that holds only right answers may call them "output" or "text"; elsewhere these
        # names mean something else.
        names = (*INSIDE["golds"], *(_GOLD_ANSWERS if place in shape.gold else ()))
        if isinstance(value, Mapping):
            by_name = {normalise_name(str(name)): name for name in reversed(value)}
            for name in names:
                text = value.get(by_name.get(name, name))
                if isinstance(text, str) and text.strip():
                    return text, f"{place}.{by_name.get(name, name)}"
        elif place in shape.gold and (text := find_last_text(value, "assistant")):
            return text, place
    return None


def _value_at(record: Record, place: str) -> Any:
    value: Any = record
    for name in place.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _gather_columns(record: Record) -> Record:
    """Return a record in which columns such as ``inputs.question`` are fields of an object."""
    result: dict[str, Any] = {}
    for name, value in record.items():
        root, dot, field_name = name.partition(".")
        if dot and root in _COLUMNS and root not in record:
            result.setdefault(root, {})[field_name] = value
        else:
            result[name] = value
    return result


def _parse_json_fields(record: Record) -> Record:
    """Return a record in which objects and messages that are written as JSON texts are parsed."""
    return {
        name: _parse_json(value) if name in _JSON_NAMES else value for name, value in record.items()
    }


_JSON_NAMES = frozenset(
    {"vars", "metadata", "expected_output", "expectedOutput", *CHATS, *_COLUMNS}
)


def _parse_json(value: Any) -> Any:
    result = decode_json(value)
    return result if isinstance(value, str) and _is_record(result) else value


def _is_record(value: Any) -> bool:
    """Whether parsed JSON has known fields or messages; otherwise the text may be an answer."""
    if isinstance(value, Mapping):
        return (
            find_question(value) is not None
            or find_answer(value) is not None
            or _names_documents(value)
        )
    return isinstance(value, list) and bool(find_last_text(value, "user", "assistant"))


def _names_documents(value: Record) -> bool:
    return any(normalise_name(str(name)) in DOCUMENTS for name in value)


def _remove_paths(record: Record, paths: Mapping[str, str]) -> dict[str, Any]:
    """Return a copy of a record without the values at some paths; messages of a chat stay."""
    result = dict(record)
    for field, path in paths.items():
        # From the inside out, so that an object that has become empty is removed as well.
        for place, (parent, name) in enumerate(_parents_along(result, path)):
            value = parent.get(name)
            # Lists and objects stay, since they may hold more than the text that was taken; objects
            # that are empty now go.
            is_text = field == "documents" or not isinstance(value, list | Mapping)
            is_single_text = (
                isinstance(value, list) and len(value) == 1 and isinstance(value[0], str)
            )
            if (place == 0 and (is_text or is_single_text)) or value == {}:
                parent.pop(name, None)
    return result


def _parents_along(record: dict[str, Any], path: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the objects along a path with the next name of the path, the innermost first.

    Each object below ``record`` is replaced by a copy, so that the input is not changed.
    """
    names = path.split(".")[:_MAX_PATH_DEPTH]
    chain: list[tuple[dict[str, Any], str]] = []
    parent = record
    for name in names:
        if name not in parent:
            break
        chain.append((parent, name))
        inside = parent[name]
        if not isinstance(inside, Mapping):
            break
        parent[name] = parent = dict(inside)
    yield from reversed(chain)
