"""Conversion of results to JSON: fields by name, nested objects, paths as text."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar


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
