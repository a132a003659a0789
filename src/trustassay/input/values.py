"""Parses values that are written as texts: JSON, and lists and objects as Python prints them."""

import ast
import io
import json
import tokenize
from contextlib import suppress
from typing import Any


def decode_json(value: Any) -> Any:
    """Return a JSON text as its value, and anything else as it is."""
    if isinstance(value, str) and value.startswith(("{", "[", '"')):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def parse_value(text: str) -> Any:
    """Return the list or object that a text is, as JSON or as Python prints it; otherwise ``None``.

    No code is run: Python's form is parsed as literals only.
    """
    if not text.startswith(("[", "{")):
        return None
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    try:
        # Through JSON, so that values which JSON does not have, such as sets, are refused.
        result = json.loads(json.dumps(ast.literal_eval(text)))
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None
    return _parse_elements(text) if result and isinstance(result, list) else result


def _parse_elements(text: str) -> list[Any]:
    """Return the elements of a printed list, also of a NumPy array of texts.

    NumPy prints no commas between elements, and Python would join adjacent texts to one.
    """
    strings = [
        token.string
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.STRING
    ]
    result: list[Any] = ast.literal_eval(text)
    if len(strings) > len(result) and all(isinstance(element, str) for element in result):
        return [ast.literal_eval(element) for element in strings]
    return result
