"""Values of other libraries as the plain ones that JSON knows: text, numbers, lists, objects."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

__all__ = ["from_arrow", "is_nan", "plain"]

_PLAIN = frozenset({str, int, float, bool, type(None)})


def plain(value: Any) -> Any:
    """Return ``value`` in JSON's types; bytes, dates, decimals become text.

    An object of an unknown type is not changed.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value), key=str)
    if isinstance(value, np.generic | np.ndarray):
        return _from_numpy(value)
    return _as_text(value)


def from_arrow(value: Any) -> Any:
    """Return a value that came from Arrow in JSON's types.

    Arrow gives every object all fields that any object has: empty ones are left out. A map comes as
    a list of pairs and becomes an object.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, dict):
        return {key: from_arrow(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        if value and all(type(item) is tuple for item in value):
            return {str(key): from_arrow(item) for key, item in value if item is not None}
        return [from_arrow(item) for item in value]
    return plain(value)


def is_nan(value: Any) -> bool:
    """Whether ``value`` is NaN, which is how pandas and others write an empty cell."""
    return isinstance(value, float) and math.isnan(value)


def _from_numpy(value: Any) -> Any:
    listed = value.tolist()
    return listed if isinstance(listed, np.generic) else plain(listed)


def _as_text(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "backslashreplace")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta | Decimal | UUID):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    return value
