"""The texts of questions and answers as chat models and their frameworks write them.

A value is a text, a list of messages (``{"role": "user", "content": ...}``, also as Anthropic,
OpenAI's responses, OpenTelemetry, LangChain, LangGraph and pydantic-ai write them), an object with
a field of a known name, or an object with one text alone.
"""

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trustassay.data.layouts import NAMES, normal
from trustassay.data.messages import joined, messages_of, spoken_by, turns_in
from trustassay.data.passages import DOCUMENTS
from trustassay.data.values import decode_json
from trustassay.sample import content_id

INSIDE: Mapping[str, Sequence[str]] = NAMES["inside"]
_DEEPEST = 8
"""Levels of objects and lists in which a text is looked for."""


def asked(value: Any) -> tuple[str, str] | None:
    """Return the question in ``value`` and its path there; ``None`` where it cannot be told."""
    return _found(value, "user", INSIDE["questions"])


def said(value: Any) -> tuple[str, str] | None:
    """Return the answer in ``value`` and its path there; ``None`` where it cannot be told."""
    return _found(value, "assistant", INSIDE["answers"])


def _found(value: Any, role: str, names: Sequence[str]) -> tuple[str, str] | None:
    if isinstance(value, Mapping) and not messages_of([value]):
        by_name = {normal(str(name)): name for name in reversed(value)}
        for name in names:
            if name in by_name:
                text = _text(value[by_name[name]], role, names, _DEEPEST)
                if text is not None:
                    return text, str(by_name[name])
        texts = [name for name, one in value.items() if isinstance(one, str)]
        if len(texts) == 1:
            return value[texts[0]], str(texts[0])
        return None
    text = _text(value, role, names, _DEEPEST)
    return None if text is None else (text, "")


def _text(value: Any, role: str, names: Sequence[str], left: int) -> str | None:
    """Return the text of a value: of messages the last one of the role."""
    if isinstance(value, str) or left == 0:
        return value if isinstance(value, str) else None
    if isinstance(value, list | tuple):
        if messages_of(value):
            return spoken_by(value, role)
        return _text(value[0], role, names, left - 1) if len(value) == 1 else joined(value)
    if not isinstance(value, Mapping):
        return None
    if messages_of([value]):
        return spoken_by([value], role)
    inside = (value.get(name) for name in names if name in value)
    texts = (_text(one, role, names, left - 1) for one in inside)
    return next((one for one in texts if one is not None), None)


Record = Mapping[str, Any]


class _Shape(NamedTuple):
    """A tool's record: all keys that tell it, and where its parts are, the best place first;
    ``gold`` are places of right answers alone, ``mixed`` those that hold other things, too."""

    keys: Sequence[str]
    ask: Sequence[str]
    say: Sequence[str]
    gold: Sequence[str] = ()
    mixed: Sequence[str] = ()
    model: Sequence[str] = ()


_SHAPES = tuple(_Shape(**row) for row in NAMES["shapes"])
_COLUMNS = frozenset({"inputs", "outputs", "reference", "reference_outputs", "input", "output"})
"""Objects whose fields tables have as columns: ``inputs.question``."""
CHATS = ("messages", "conversation", "conversations")
"""Names of the messages of a chat log."""
_TELLING = frozenset({"datasource_item", "vars", "inputs", "input", *CHATS})
_TELLING_TOGETHER = ({"event_id", "data"}, {"run", "example"})
_GOLD_ANSWERS = ("answer", "output", "response", "result", "text", "content")
_OWN = ("documents", "steps")  # steps name passages of the chat
_ANSWER_PLACES = ("response", "output", "completion", "choices")
_DEEPEST_PATH = 4
"""Levels of objects of which a path is given."""


def may_be_nested(names: Collection[str]) -> bool:
    """Return whether a record of these names may hold its question inside of an object."""
    if any(told.issubset(names) for told in _TELLING_TOGETHER):
        return True
    return any(str(name).partition(".")[0] in _TELLING for name in names)


def is_no_answer(record: Record) -> bool:
    """Return whether a record is a line of an OpenAI evals log that holds no answer: the settings,
    the final report, and events other than ``sampling``.
    """
    if {"event_id", "sample_id", "type", "data"} <= record.keys():
        return bool(record["type"] != "sampling")
    return len(record) == 1 and ("spec" in record or "final_report" in record)


def unfolded(record: Record) -> tuple[dict[str, Any], dict[str, str]] | None:
    """Return a nested record as a flat one, and the paths of the fields taken out of objects.

    ``None`` where it is no record of these tools, is flat already, or holds no question that can
    be told.
    """
    record = _opened(_gathered(record))
    for shape in _SHAPES:
        if record.keys() >= set(shape.keys):
            return _flat(record, shape)
    return _chat(record)


def _chat(record: Record) -> tuple[dict[str, Any], dict[str, str]] | None:
    """Return the last turn of a chat log; what the record itself says has precedence."""
    name = _chat_of(record)
    turn = next(iter(deque(turns_in(record[name], name), 1)), {}) if name else {}
    if "question" not in turn:
        return None
    if answer := _first(record, _ANSWER_PLACES, said):
        turn["response"] = answer[0]
    if _names_documents(record):
        turn = {k: v for k, v in turn.items() if k not in _OWN}
    return {**record, **turn}, dict.fromkeys(turn, name)


def _chat_of(record: Record) -> str:
    """Return the field of a chat log that holds the messages; empty where it is none."""
    names = (name for name in CHATS if isinstance(record.get(name), list))
    return "" if "question" in record else next(names, "")


def turns_of(record: Record, known_as: Any) -> list[dict[str, Any]]:
    """Return a record for each answer of a chat log; none where the record is no chat.

    Each has its number as ``turn`` and the chat as ``conversation``, unless the record names one:
    ``known_as``, the record's id, or, where that is ``None``, one made of the first turn, which
    stays the same while a chat grows.
    What the record says of its answer is of the last one, which keeps the messages.

    Raises:
        SampleError: as :func:`~trustassay.data.messages.turns_in`.
    """
    record = _opened(record)
    name = _chat_of(record)
    turns = list(turns_in(record[name], name)) if name else []
    if not turns:
        return []
    rest = {key: value for key, value in record.items() if key != name}
    common = {key: value for key, value in rest.items() if key not in _ANSWER_PLACES}
    told = _OWN if _names_documents(record) else ()
    earlier = [{k: v for k, v in one.items() if k not in told} for one in turns[:-1]]
    chat = content_id(turns[0]) if known_as is None else known_as
    if not isinstance(chat, str | int):
        return []  # the reader says what is wrong with it
    unit = rest.get("conversation") or chat
    parts = [*({**common, **one} for one in earlier), {**rest, "messages": record[name]}]
    return [
        {**one, "id": f"{chat}-{number}", "turn": number, "conversation": unit}
        for number, one in enumerate(parts, 1)
    ]


def _flat(record: Record, shape: _Shape) -> tuple[dict[str, Any], dict[str, str]] | None:
    nested = {place.partition(".")[0] for place in (*shape.ask, *shape.say, *shape.mixed)}
    if all(isinstance(record.get(name), str | None) for name in nested):
        return None  # flat already
    parts = {
        "question": _first(record, shape.ask, asked),
        "response": _first(record, shape.say, said),
        "documents": _documents(record, (*shape.mixed, *shape.say)),
        "reference": _gold(record, shape),
        "model": _first(record, shape.model, lambda value: (value, "") if value else None),
    }
    result = {name: part for name, part in parts.items() if part}
    if "question" not in result:
        return None
    flat = _without(record, {name: path for name, (_, path) in result.items()})
    if isinstance(flat.get("response"), Mapping):  # what promptfoo writes beside the text
        flat["response_details"] = flat.pop("response")
    return (
        {**flat, **{name: value for name, (value, _) in result.items()}},
        {name: path for name, (_, path) in result.items()},
    )


def _first(record: Record, places: Sequence[str], read: Any) -> tuple[Any, str] | None:
    """Return what ``read`` finds at the first of these places that it finds something at."""
    for place in places:
        result = read(_at(record, place))
        if result is not None:
            value, inside = result
            return value, f"{place}.{inside}" if inside else place
    return None


def _documents(record: Record, places: tuple[str, ...]) -> tuple[Any, str] | None:
    for place in places:
        value = _at(record, place)
        for name in value if isinstance(value, Mapping) else ():
            if normal(str(name)) in DOCUMENTS and value[name] is not None:
                return value[name], f"{place}.{name}"
    return None


def _gold(record: Record, shape: _Shape) -> tuple[Any, str] | None:
    for place in (*shape.gold, *shape.mixed):
        value = _at(record, place)
        names = (*INSIDE["golds"], *(_GOLD_ANSWERS if place in shape.gold else ()))
        if isinstance(value, Mapping):
            by_name = {normal(str(name)): name for name in reversed(value)}
            for name in names:
                text = value.get(by_name.get(name, name))
                if isinstance(text, str) and text.strip():
                    return text, f"{place}.{by_name.get(name, name)}"
        elif place in shape.gold and (text := spoken_by(value, "assistant")):
            return text, place
    return None


def _at(record: Record, place: str) -> Any:
    value: Any = record
    for name in place.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _gathered(record: Record) -> Record:
    """Return a record whose columns ``inputs.question`` are fields of an object ``inputs``."""
    result: dict[str, Any] = {}
    for name, value in record.items():
        root, dot, rest = name.partition(".")
        if dot and root in _COLUMNS and root not in record:
            result.setdefault(root, {})[rest] = value
        else:
            result[name] = value
    return result


def _opened(record: Record) -> Record:
    """Return a record whose objects are read where they are written as JSON in a text."""
    return {name: _json_of(one) if name in _JSON_NAMES else one for name, one in record.items()}


_JSON_NAMES = frozenset(
    {"vars", "metadata", "expected_output", "expectedOutput", *CHATS, *_COLUMNS}
)


def _json_of(value: Any) -> Any:
    result = decode_json(value)
    return result if isinstance(value, str) and _is_record(result) else value


def _is_record(value: Any) -> bool:
    """Whether JSON in a text holds fields or messages, and is not itself the text of an answer."""
    if isinstance(value, Mapping):
        return asked(value) is not None or said(value) is not None or _names_documents(value)
    return isinstance(value, list) and bool(spoken_by(value, "user", "assistant"))


def _names_documents(value: Record) -> bool:
    return any(normal(str(name)) in DOCUMENTS for name in value)


def _without(record: Record, paths: Mapping[str, str]) -> dict[str, Any]:
    """Return a record without what is at these paths; the messages of a conversation stay."""
    result = dict(record)
    for field, path in paths.items():
        for place, (parent, name) in enumerate(_parents(result, path)):
            value = parent.get(name)
            is_text = field == "documents" or not isinstance(value, list | Mapping)
            one = isinstance(value, list) and len(value) == 1 and isinstance(value[0], str)
            if (place == 0 and (is_text or one)) or value == {}:
                parent.pop(name, None)
    return result


def _parents(record: dict[str, Any], path: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the objects along a path, copied, with the name that leads on; the innermost first."""
    names = path.split(".")[:_DEEPEST_PATH]
    chain: list[tuple[dict[str, Any], str]] = []
    here = record
    for name in names:
        if name not in here:
            break
        chain.append((here, name))
        inside = here[name]
        if not isinstance(inside, Mapping):
            break
        here[name] = here = dict(inside)
    yield from reversed(chain)
