"""The JSON form of results: what their fields hold, by name."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar


class JsonForm:
    """A dataclass whose JSON form has these of its attributes, else all of its fields in order."""

    __slots__ = ()
    json_names: ClassVar[Sequence[str]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return fields_as_json(self, *self.json_names)


def fields_as_json(value: Any, *names: str) -> dict[str, Any]:
    """Return these attributes of a dataclass, by default its fields, as :func:`as_json` does."""
    chosen = names or [one.name for one in dataclasses.fields(value)]
    return {name: as_json(getattr(value, name)) for name in chosen}


def flattened(content: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what nested objects hold, by dotted names."""
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def as_json(value: Any) -> Any:
    """Return a value with the JSON forms of what it holds, paths as text, sequences as lists."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: as_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    return str(value) if isinstance(value, Path) else value


def difference_as_json(difference: Any) -> dict[str, Any]:
    """Return a change, its interval, and why it has none."""
    interval = None if difference.interval is None else list(difference.interval)
    reason = {} if interval else {"without_interval": difference.without}
    return {"change": difference.value, "interval": interval, **reason}
