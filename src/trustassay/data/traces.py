"""Records of tracing and evaluation tools, whose questions and answers are inside of objects.

LangSmith's runs and examples (``inputs``, ``outputs``), Langfuse's traces and dataset items
(``input``, ``output``, ``expectedOutput``), promptfoo's results (``vars``, ``response.output``),
OpenAI's evals (``input`` of messages, ``sampling`` events, output items). They become flat records
under names that the layouts know.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from trustassay.data.messages import DOCUMENTS, asked, last_turn, said, spoken_by
from trustassay.data.spelling import normal

__all__ = ["CHATS", "is_no_answer", "may_be_nested", "unfolded"]

Record = Mapping[str, Any]


class _Shape(NamedTuple):
    """A tool's record: keys that tell it, all of them; where its parts are, the best place first.

    ``gold`` are places of right answers alone, ``mixed`` those that hold other things, too.
    """

    keys: frozenset[str]
    ask: tuple[str, ...]
    say: tuple[str, ...]
    gold: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()
    model: tuple[str, ...] = ()


_ITEM = ("datasource_item.item", "datasource_item")
_GOLD = ("reference_outputs", "reference", "example.outputs", "expected_output", "expectedOutput")
_SHAPES = (
    _Shape(
        frozenset({"datasource_item", "sample"}),
        ask=(*_ITEM, "sample.input"),
        say=("sample.output",),
        mixed=_ITEM,
        model=("sample.model",),
    ),
    _Shape(frozenset({"event_id", "data", "type"}), ask=("data.prompt",), say=("data.sampled",)),
    _Shape(
        frozenset({"vars"}),
        ask=("vars", "prompt.raw", "prompt"),
        say=("response.output", "output"),
        mixed=("vars",),
        model=("provider.label", "provider.id", "provider"),
    ),
    _Shape(
        frozenset({"run", "example"}),
        ask=("run.inputs", "example.inputs"),
        say=("run.outputs",),
        gold=("example.outputs",),
        mixed=("example.inputs",),
    ),
    _Shape(
        frozenset({"inputs", "dataset_id"}),  # an example: its outputs are the right ones
        ask=("inputs",),
        say=(),
        gold=("outputs",),
        mixed=("inputs", "metadata"),
    ),
    _Shape(
        frozenset({"inputs"}),
        ask=("inputs",),
        say=("outputs", "output"),
        gold=_GOLD,
        mixed=("inputs", "outputs", "metadata"),
        model=("extra.metadata.ls_model_name",),
    ),
    _Shape(
        frozenset({"input"}),
        ask=("input",),
        say=("output",),
        gold=_GOLD,
        mixed=("input", "output", "metadata"),
    ),
)
_COLUMNS = frozenset({"inputs", "outputs", "reference", "reference_outputs", "input", "output"})
"""Objects whose fields tables have as columns: ``inputs.question``."""
CHATS = ("messages", "conversation", "conversations")
"""Names of the messages of a chat log."""
_TELLING = frozenset({"datasource_item", "vars", "inputs", "input", *CHATS})
_TELLING_TOGETHER = ({"event_id", "data"}, {"run", "example"})
_GOLDS: tuple[str, ...] = (
    *("expected_output", "expected_answer", "expected", "reference_answer", "reference"),
    *("ground_truth", "ideal", "gold", "correct_answer"),
)
_ANSWERS = ("answer", "output", "response", "result", "text", "content")
_ANSWER_PLACES = ("response", "output", "completion", "choices")
_DEEPEST = 4
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
        if shape.keys <= record.keys():
            return _flat(record, shape)
    return _chat(record)


def _chat(record: Record) -> tuple[dict[str, Any], dict[str, str]] | None:
    """Return the last turn of a chat log; what the record itself says has precedence."""
    name = next((name for name in CHATS if isinstance(record.get(name), list)), None)
    if name is None or "question" in record:
        return None
    turn = last_turn(record[name])
    if "question" not in turn:
        return None
    if answer := _first(record, _ANSWER_PLACES, said):
        turn["response"] = answer[0]
    if _names_documents(record):
        turn.pop("documents", None)
    return {**record, **turn}, dict.fromkeys(turn, name)


def _flat(record: Record, shape: _Shape) -> tuple[dict[str, Any], dict[str, str]] | None:
    nested = {place.partition(".")[0] for place in (*shape.ask, *shape.say, *shape.mixed)}
    if all(isinstance(record.get(name), str | None) for name in nested):
        return None  # flat already
    found: dict[str, tuple[Any, str]] = {}
    question = _first(record, shape.ask, asked)
    if question is None:
        return None
    found["question"] = question
    if response := _first(record, shape.say, said):
        found["response"] = response
    if documents := _documents(record, (*shape.mixed, *shape.say)):
        found["documents"] = documents
    if gold := _gold(record, shape):
        found["reference"] = gold
    if model := _first(record, shape.model, lambda value: (value, "") if value else None):
        found["model"] = model
    flat = _without(record, {name: path for name, (_, path) in found.items()})
    if isinstance(flat.get("response"), Mapping):  # what promptfoo writes beside the text
        flat["response_details"] = flat.pop("response")
    return (
        {**flat, **{name: value for name, (value, _) in found.items()}},
        {name: path for name, (_, path) in found.items()},
    )


def _first(record: Record, places: tuple[str, ...], read: Any) -> tuple[Any, str] | None:
    """Return what ``read`` finds at the first of these places that it finds something at."""
    for place in places:
        found = read(_at(record, place))
        if found is not None:
            value, inside = found
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
        names = _GOLDS + (_ANSWERS if place in shape.gold else ())
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
    if not any("." in name for name in record):
        return record
    found: dict[str, Any] = {}
    for name, value in record.items():
        root, dot, rest = name.partition(".")
        if dot and root in _COLUMNS and root not in record:
            found.setdefault(root, {})[rest] = value
        else:
            found[name] = value
    return found


def _opened(record: Record) -> Record:
    """Return a record whose objects are read where they are written as JSON in a text."""
    opened = {name: _json_of(value) for name, value in record.items() if name in _JSON_NAMES}
    return {**record, **opened} if opened else record


_JSON_NAMES = frozenset(
    {"vars", "metadata", "expected_output", "expectedOutput", *CHATS, *_COLUMNS}
)


def _json_of(value: Any) -> Any:
    if not (isinstance(value, str) and value.startswith(("{", "["))):
        return value
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return found if _is_record(found) else value


def _is_record(value: Any) -> bool:
    """Whether JSON in a text holds fields or messages, and is not itself the text of an answer."""
    if isinstance(value, Mapping):
        return asked(value) is not None or said(value) is not None or _names_documents(value)
    return isinstance(value, list) and bool(spoken_by(value, "user", "assistant"))


def _names_documents(value: Record) -> bool:
    return any(normal(str(name)) in DOCUMENTS for name in value)


def _without(record: Record, paths: Mapping[str, str]) -> dict[str, Any]:
    """Return a record without what is at these paths; the messages of a conversation stay."""
    found = dict(record)
    for field, path in paths.items():
        for place, (parent, name) in enumerate(_parents(found, path)):
            value = parent.get(name)
            is_text = field == "documents" or not isinstance(value, list | Mapping)
            if (place == 0 and (is_text or _one_text(value))) or value == {}:
                parent.pop(name, None)
    return found


def _one_text(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 1 and isinstance(value[0], str)


def _parents(record: dict[str, Any], path: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the objects along a path, copied, with the name that leads on; the innermost first."""
    names = path.split(".")[:_DEEPEST]
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
