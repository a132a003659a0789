"""From what a user names to a backend: ``embedded``, ``lexical``, ``hf:ID``, ``python:...``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from trustassay.backends.encoder import card
from trustassay.backends.functions import FunctionEntailer, imported
from trustassay.backends.lexical import LexicalEntailer
from trustassay.capabilities import (
    BackendError,
    ChatModel,
    Embedder,
    Entailer,
    LocalChatModel,
    Similarity,
)
from trustassay.metric import UnknownNameError, did_you_mean

__all__ = [
    "DEFAULT_EMBEDDER",
    "DEFAULT_ENTAILER",
    "DEFAULT_SIMILARITY",
    "ChatChoice",
    "EntailerChoice",
    "chat",
    "embedder",
    "entailer",
    "similarity",
]

DEFAULT_ENTAILER = "lexical"

DEFAULT_EMBEDDER = "embedded"
DEFAULT_SIMILARITY = "cosine"

EntailerChoice = str | Entailer | Callable[[str, str], Any]
ChatChoice = str | ChatModel | LocalChatModel | Callable[[str], Any]


def entailer(choice: EntailerChoice) -> Entailer:
    """Return the entailer that a URI names, or wrap a function, or pass an entailer through.

    ``embedded[?threads=N]``; ``lexical``; ``hf:ID-or-path[?option=value&...]`` with the options of
    :class:`~trustassay.backends.huggingface.HuggingFaceEntailer`; ``python:MODULE:FUNCTION``.

    Raises:
        UnknownNameError: no such scheme or option.
        BackendError: the backend cannot be loaded.
    """
    if not isinstance(choice, str):
        return _from_object(choice)
    scheme, _, rest = choice.replace("embedded?", "embedded:?", 1).partition(":")
    if scheme not in _ENTAILERS:
        raise UnknownNameError(did_you_mean("entailer", choice, _ENTAILERS))
    return _ENTAILERS[scheme](rest)


def embedder(choice: str | Embedder) -> Embedder:
    """Return the embedder that a URI names (``embedded[?threads=N]``), or pass one through.

    Raises:
        UnknownNameError: no such scheme or option.
        BackendError: the backend cannot be loaded.
    """
    if not isinstance(choice, str):
        return choice
    if not choice.startswith("embedded"):
        raise UnknownNameError(did_you_mean("embedder", choice, ["embedded"]))
    from trustassay.backends.embedded import EmbeddedEmbedder

    return EmbeddedEmbedder(_embedded_threads(choice.removeprefix("embedded").lstrip(":")))


def chat(choice: ChatChoice) -> ChatModel | LocalChatModel:
    """Return the chat model that a URI names, or pass one through.

    Raises:
        UnknownNameError: no such scheme or option.
        BackendError: the backend cannot be loaded.
    """
    if not isinstance(choice, str):
        assert isinstance(choice, ChatModel | LocalChatModel)
        return choice
    scheme, _, rest = choice.partition(":")
    if scheme != "openai":
        raise UnknownNameError(did_you_mean("chat model", choice, ["openai"]))
    from trustassay.backends.openai import OpenAIChat, openai_address

    return OpenAIChat(openai_address(rest))


def similarity(choice: str | Similarity = DEFAULT_SIMILARITY) -> Similarity:
    """Return a similarity of two texts by name, or pass one through.

    ``cosine[:EMBEDDER]`` of their vectors; ``consistency[:ENTAILER]``, the probability that the
    reference entails the text; ``lexical``, the words they share.

    Raises:
        UnknownNameError: no such similarity.
        BackendError: the backend behind it cannot be loaded.
    """
    if not isinstance(choice, str):
        return choice
    from trustassay.backends import similarity as kinds

    name, _, rest = choice.partition(":")
    if name == "cosine":
        return kinds.CosineSimilarity(embedder(rest or DEFAULT_EMBEDDER))
    if name == "consistency":
        return kinds.ConsistencySimilarity(entailer(rest or DEFAULT_ENTAILER))
    if choice == "lexical":
        return kinds.LexicalSimilarity()
    names = ["cosine", "consistency", "lexical"]
    raise UnknownNameError(did_you_mean("similarity", choice, names))


def _embedded(rest: str) -> Entailer:
    from trustassay.backends.embedded import EmbeddedEntailer

    return EmbeddedEntailer(_embedded_threads(rest))


def _embedded_threads(rest: str) -> int | None:
    """Read what may stand behind ``embedded``: a version, and the number of threads."""
    version, _, query = rest.partition("?")
    if version not in ("", carried := str(card()["version"])):
        raise BackendError(f"embedded:{version} is not here; this installation carries {carried}")
    options = dict(parse_qsl(query, keep_blank_values=True))
    threads = options.pop("threads", None)
    if options:
        raise UnknownNameError(did_you_mean("option of embedded", next(iter(options)), ["threads"]))
    if threads is not None and not (threads.isdecimal() and int(threads)):
        raise UnknownNameError(f"option threads of embedded cannot be {threads!r}")
    return int(threads) if threads else None


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
    return _from_object(imported(rest), f"python:{rest}")


def _from_object(found: Any, name: str | None = None) -> Entailer:
    if isinstance(found, type):
        raise BackendError(f"{found.__name__} is a class; an entailer is an object or a function")
    return found if isinstance(found, Entailer) else FunctionEntailer(found, name)


_ENTAILERS: dict[str, Callable[[str], Entailer]] = {
    "embedded": _embedded,
    "lexical": _lexical,
    "hf": _hugging_face,
    "python": _python,
}
