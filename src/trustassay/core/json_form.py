"""Conversion of results to JSON and back: fields by name, nested objects, paths as text."""

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn

MAX_NUMBER = 1e100
"""The largest absolute value of a number that is read: products of two stay finite."""
MAX_ITEMS = 5000
"""Items of a list, and characters of a text, that are read at most."""


class JsonForm:
    """Base of dataclasses whose JSON form has the attributes in ``json_names``, by default all
    fields.
    """

    __slots__ = ()
    json_names: ClassVar[Sequence[str]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return fields_as_json(self, *self.json_names)


def fields_as_json(value: Any, *names: str) -> dict[str, Any]:
    """Return attributes of a dataclass as JSON values, by default all fields in order."""
    attribute_names = names or [field.name for field in dataclasses.fields(value)]
    return {name: as_json(getattr(value, name)) for name in attribute_names}


def flatten(content: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested objects with their dotted names."""
    for key, value in content.items():
        if isinstance(value, Mapping):
            # Lists are values: their elements have no names.
            yield from flatten(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def as_json(value: Any) -> Any:
    """Convert a value to JSON: objects by ``to_dict``, paths as text, sequences as lists."""
    # First, since an object with its own form may be a tuple or a mapping as well.
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def difference_as_json(difference: Any) -> dict[str, Any]:
    """Convert a difference to JSON: the change, and its interval or the reason why it has none."""
    interval = None if difference.interval is None else list(difference.interval)
    reason = {} if interval else {"without_interval": difference.without}
    return {"change": difference.value, "interval": interval, **reason}


def read_json(kind: Any, content: Any, where: str = "") -> Any:
    """Build a dataclass from its JSON form, or check a value; the inverse of :func:`as_json`.

    Args:
        kind: a dataclass, or the type of a field: numbers, texts, ``None``, sequences, mappings,
            literals and unions of them.
        content: as ``json`` returned it. Fields with a default may be missing.
        where: the path of the value, for messages.

    Raises:
        ValueError: it does not fit; the message names the path, what was expected and the value.
    """
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _read_fields(kind, content, where)
    if origin in (types.UnionType, typing.Union):
        choices = [choice for choice in args if choice is not type(None)]
        return None if content is None else read_json(choices[0], content, where)
    if origin is typing.Literal and content not in args:
        _refuse(where, " or ".join(map(repr, args)), content)
    if origin is typing.Literal or kind is Any:
        return content
    return (
        _read_items(origin, args, content, where) if origin else _read_plain(kind, content, where)
    )


def _read_items(origin: Any, args: Sequence[Any], content: Any, where: str) -> Any:
    kind, title = (dict, "an object") if issubclass(origin, Mapping) else (list, "a list")
    if not isinstance(content, kind) or len(content) > MAX_ITEMS:
        _refuse(where, f"{title} of at most {MAX_ITEMS:,} items", content)
    if isinstance(content, dict):
        return {key: read_json(args[1], value, f"{where}.{key}") for key, value in content.items()}
    return tuple(read_json(args[0], item, f"{where}[{i}]") for i, item in enumerate(content))


def _read_fields(kind: Any, content: Any, where: str) -> Any:
    if not isinstance(content, dict):
        _refuse(where, "an object", content)
    hints = typing.get_type_hints(kind)
    values = {}
    for item in dataclasses.fields(kind):
        path = f"{where}.{item.name}" if where else item.name
        if item.name in content:
            values[item.name] = read_json(hints[item.name], content[item.name], path)
        elif item.default is item.default_factory is dataclasses.MISSING:
            raise ValueError(f"{path}: is missing")
    return kind(**values)


def _read_plain(kind: Any, content: Any, where: str) -> Any:
    # In Python a bool is an int; in JSON ``true`` is no number.
    is_number = isinstance(content, int | float) and not isinstance(content, bool)
    if kind in (int, float):
        # False for NaN, and right for integers of any size.
        if not is_number or not -MAX_NUMBER <= content <= MAX_NUMBER or kind(content) != content:
            _refuse(where, "a whole number" if kind is int else "a number", content)
        return kind(content)
    if not isinstance(content, kind) or (kind is str and len(content) > MAX_ITEMS):
        _refuse(where, "true or false" if kind is bool else "a text", content)
    return content


def _refuse(where: str, expected: str, value: Any) -> NoReturn:
    # A message of one line, whatever the file holds.
    text = repr(value)
    text = text if len(text) < 60 else f"{text[:57]}..."
    raise ValueError(f"{where or 'the file'}: expected {expected}, got {text}")
