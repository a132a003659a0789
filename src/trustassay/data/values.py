"""Values that are written in texts: JSON, and lists and objects as Python prints them."""

import ast
import io
import json
import tokenize
from contextlib import suppress
from typing import Any


def decode_json(value: Any) -> Any:
    """Return what a text says that is JSON; anything else as it is."""
    if isinstance(value, str) and value.startswith(("{", "[", '"')):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def parse_value(text: str) -> Any:
    """Return the list or object in a text, as JSON or as Python prints it; ``None`` if neither.

    Nothing is run: Python's form is read as literals alone.
    """
    if not text.startswith(("[", "{")):
        return None
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    try:
        result = json.loads(json.dumps(ast.literal_eval(text)))  # a set, say, has no place here
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None
    return _elements(text) if result and isinstance(result, list) else result


def _elements(text: str) -> list[Any]:
    """Return the elements of a list, also where an array of NumPy was printed, without commas:
    Python would join its texts.
    """
    strings = [
        token.string
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.STRING
    ]
    result: list[Any] = ast.literal_eval(text)
    if len(strings) > len(result) and all(isinstance(one, str) for one in result):
        return [ast.literal_eval(one) for one in strings]
    return result
