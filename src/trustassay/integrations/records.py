"""The records of other tools in a form that :func:`trustassay.score` reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

__all__ = ["simple", "traced"]


def traced(inputs: Any, outputs: Any, gold: Any = None, **others: Any) -> dict[str, Any]:
    """Return the record of a call: what went in, what came out, what would have been right.

    Each is a text, a list of messages, or an object with fields of known names. ``others`` are
    fields beside them (``context``, ``metadata``). Absent ones are left out.
    """
    asked = {"question": inputs} if isinstance(inputs, str) else inputs
    found = {"inputs": asked, "outputs": outputs, "reference_outputs": gold, **others}
    return {name: value for name, value in found.items() if value is not None}


def simple(value: Any) -> Any:
    """Return ``value`` with the objects in it as mappings: models of pydantic, as LangChain's
    messages and documents are, and dataclasses.
    """
    if isinstance(value, Mapping):
        return {name: simple(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [simple(one) for one in value]
    if not isinstance(value, type):
        if callable(dump := getattr(value, "model_dump", None)):
            return simple(dump())
        if dataclasses.is_dataclass(value):
            own = dataclasses.fields(value)
            return {one.name: simple(getattr(value, one.name)) for one in own}
    return value
