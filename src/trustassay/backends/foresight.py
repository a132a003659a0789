"""What can be said of a backend before it is loaded: a package, a folder, or an option is wrong.

A large model takes seconds or minutes to load, so what would fail afterwards is looked for first.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from trustassay.backends.resolve import check_hugging_face

__all__ = ["fault_of", "takes_time"]

WRAPPED = {
    "chat": "chat model",
    "cosine": "embedder",
    "consistency": "entailer",
    "agreement": "entailer",
    "bertscore": "token embedder",
}
"""Schemes before the URI of another backend, and what that is for."""
SLOW = ("hf", "embedded", "bm25", "embedding", "spacy", "python")
"""Schemes of what may take a second or more to load."""


def takes_time(choice: Any) -> bool:
    """Return whether a choice names what may take a second or more to load."""
    if not isinstance(choice, str):
        return False
    _, uri = _unwrapped("", choice)
    return uri.partition(":")[0].partition("?")[0] in SLOW


def fault_of(backend: str, choice: Any) -> str | None:
    """Return why the backend that a URI names cannot be loaded, if that can be told at once.

    ``backend`` is what it is for: ``entailer``, ``chat model``, ``embedder``, ...

    Raises:
        UnknownNameError: an option that it does not have.
    """
    if not isinstance(choice, str):
        return None
    backend, uri = _unwrapped(backend, choice)
    scheme, _, rest = uri.partition(":")
    target = rest.partition("?")[0]
    if scheme == "hf":
        check_hugging_face(backend, rest)
        return _hugging_face(backend, target)
    if scheme == "bm25" and target and not Path(target).expanduser().exists():
        return f"{uri}: there is no such file"
    if scheme == "embedding" and target and not Path(target).expanduser().exists():
        return f"{uri}: there is no such file"
    if scheme == "spacy" and find_spec("spacy") is None:
        return f"{uri}: spacy is missing: pip install spacy"
    return None


def _unwrapped(backend: str, choice: str) -> tuple[str, str]:
    """Return the URI of a backend behind the schemes around it, and what it is for."""
    scheme, _, rest = choice.partition(":")
    while scheme in WRAPPED and rest:
        backend, choice = WRAPPED[scheme], rest
        scheme, _, rest = choice.partition(":")
    return backend, choice


def _hugging_face(backend: str, model: str) -> str | None:
    needed = {"torch": "hf", "transformers": "hf"}
    if backend == "embedder":
        needed["sentence_transformers"] = "sentence-transformers"
    for package, extra in needed.items():
        if find_spec(package) is None:
            return f"hf:{model}: {package} is missing: pip install 'trustassay[{extra}]'"
    if model.startswith(("/", ".", "~")) and not Path(model).expanduser().is_dir():
        return f"hf:{model}: there is no such folder"
    return None
