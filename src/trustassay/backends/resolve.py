"""From what a user names to a backend: ``lexical``, ``hf:ID``, ``python:MODULE:FUNCTION``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from trustassay.backends.functions import FunctionEntailer, imported
from trustassay.backends.lexical import LexicalEntailer
from trustassay.capabilities import BackendError, Entailer
from trustassay.metric import UnknownNameError, did_you_mean

__all__ = ["DEFAULT_ENTAILER", "entailer"]

DEFAULT_ENTAILER = "lexical"

EntailerChoice = str | Entailer | Callable[[str, str], Any]


def entailer(choice: EntailerChoice) -> Entailer:
    """Return the entailer that a URI names, or wrap a function, or pass an entailer through.

    ``lexical``; ``hf:ID-or-path[?option=value&...]`` with the options of
    :class:`~trustassay.backends.huggingface.HuggingFaceEntailer`; ``python:MODULE:FUNCTION``.

    Raises:
        UnknownNameError: no such scheme or option.
        BackendError: the backend cannot be loaded.
    """
    if not isinstance(choice, str):
        return choice if isinstance(choice, Entailer) else FunctionEntailer(choice)
    scheme, _, rest = choice.partition(":")
    if scheme not in _ENTAILERS:
        raise UnknownNameError(did_you_mean("entailer", choice, _ENTAILERS))
    return _ENTAILERS[scheme](rest)


def _lexical(rest: str) -> Entailer:
    if rest:
        raise UnknownNameError(f"entailer lexical takes nothing after its name, got {rest!r}")
    return LexicalEntailer()


def _hugging_face(rest: str) -> Entailer:
    from trustassay.backends.huggingface import HuggingFaceEntailer

    model, _, query = rest.partition("?")
    if not model:
        raise BackendError("hf: needs a model, as in hf:ID or hf:PATH")
    options: dict[str, Any] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in _HF_OPTIONS:
            raise UnknownNameError(did_you_mean("option of hf", key, _HF_OPTIONS))
        try:
            options[key] = _HF_OPTIONS[key](value)
        except ValueError:
            raise UnknownNameError(f"option {key} of hf: cannot be {value!r}") from None
    return HuggingFaceEntailer(model, **options)


def _truth(text: str) -> bool:
    if text in ("yes", "true", "1"):
        return True
    if text in ("no", "false", "0"):
        return False
    raise ValueError(text)


_HF_OPTIONS: dict[str, Callable[[str], Any]] = {
    "check": _truth,
    "device": str,
    "dtype": str,
    "labels": lambda text: text.split(","),
    "batch_tokens": int,
}


def _python(rest: str) -> Entailer:
    found = imported(rest)
    return found if isinstance(found, Entailer) else FunctionEntailer(found)


_ENTAILERS: dict[str, Callable[[str], Entailer]] = {
    "lexical": _lexical,
    "hf": _hugging_face,
    "python": _python,
}
