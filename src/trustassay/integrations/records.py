"""The records of other tools in a form that :func:`trustassay.score` reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

__all__ = ["simple", "traced"]


def traced(inputs: Any, outputs: Any, gold: Any = None, **others: Any) -> dict[str, Any]:
    """Return the record of a call: what went in, what came out, what would have been right.

    Each is a text, a list of messages, or an object with fields of known names. A whole
    conversation as outputs, without inputs, brings its question along. ``others`` are fields beside
    them (``context``, ``metadata``). Absent ones are left out.
    """
    asked = _conversation(outputs) if inputs is None else inputs
    asked = {"question": asked} if isinstance(asked, str) else asked
    found = {"inputs": asked, "outputs": outputs, "reference_outputs": gold, **others}
    return {name: value for name, value in found.items() if value is not None}


def _conversation(outputs: Any) -> Any:
    messages = outputs.get("messages") if isinstance(outputs, Mapping) else outputs
    if not isinstance(messages, list | tuple):
        return None
    texts = any(isinstance(one, str) for one in messages)
    return None if texts else messages


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
