"""Turns a URI, a function or an object into a backend, for kinds that may be functions.

:mod:`trustassay.backends.registry` has the URIs of all kinds. A backend and its dependencies are
imported when it is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trustassay.backends import DEFAULT_SIMILARITY
from trustassay.backends.registry import load
from trustassay.core.capabilities import (
    ChatModel,
    Embedder,
    Entailer,
    LocalChatModel,
    QuestionSimilarity,
    Similarity,
)
from trustassay.errors import UsageError

if TYPE_CHECKING:
    from trustassay.backends.openai import OpenAIEmbedder


EntailerChoice = str | Entailer | ChatModel | LocalChatModel | Callable[[str, str], Any]
ChatChoice = str | ChatModel | LocalChatModel | Callable[[Any], Any]
EmbedderChoice = str | Embedder | Callable[[list[str]], Any]
SimilarityChoice = str | Similarity | QuestionSimilarity | Callable[[str, str], Any]


def entailer(choice: EntailerChoice) -> Entailer:
    """Return the entailer that a URI names, wrap a function, or pass an entailer through.

    A chat model can be one by its URI, with ``chat:`` before it if the scheme is ``hf:`` or
    ``python:``, and with the options of
    :class:`~trustassay.backends.chat_entailer.EntailmentOptions`. Raises as
    :func:`~trustassay.backends.registry.load`.
    """
    result: Entailer = load("entailer", choice)
    return result


def embedder(choice: EmbedderChoice) -> Embedder | OpenAIEmbedder:
    """Return the embedder that a URI names, wrap a function, or pass an embedder through.

    A function takes a list of n texts and returns their vectors, shape (n, d). Raises as
    :func:`~trustassay.backends.registry.load`.
    """
    result: Embedder | OpenAIEmbedder = load("embedder", choice)
    return result


def make_blocking(embedder: Embedder | OpenAIEmbedder) -> Embedder:
    """Return an embedder that can be called outside an event loop."""
    from trustassay.backends.openai import BlockingEmbedder, OpenAIEmbedder

    return BlockingEmbedder(embedder) if isinstance(embedder, OpenAIEmbedder) else embedder


def chat(choice: ChatChoice) -> ChatModel | LocalChatModel:
    """Return the chat model that a URI names, wrap a function, or pass a model through.

    Raises as :func:`~trustassay.backends.registry.load`.
    """
    result: ChatModel | LocalChatModel = load("chat model", choice)
    return result


def similarity(choice: SimilarityChoice = DEFAULT_SIMILARITY) -> Similarity:
    """Return a similarity of two texts by name, wrap a function, or pass one through.

    ``novel`` (the words that two answers share, without the question's) and ``agreement`` (these,
    and entailment in both directions) are :class:`~trustassay.core.capabilities.QuestionSimilarity`
    and score triples. Raises as :func:`~trustassay.backends.registry.load`.
    """
    result: Similarity = load("similarity", choice)
    return result


def resolve_sources(choice: Any) -> dict[str, Any]:
    """Return the sources of substitutes by name, from the user's choice.

    The choice is a text such as ``embedding,pos,dbpedia:URL``, a list of URIs and objects, or a
    mapping by name. The name of a URI is its scheme and that of an object its own, unless
    ``NAME=URI`` gives another one.

    Raises:
        ValueError: there is no source, or two have the same name.
    """
    if isinstance(choice, Mapping):
        return dict(choice)
    # A single object, a text of several URIs, or a list.
    choices = [choice] if not isinstance(choice, str | Sequence) else choice
    choices = choices.split(",") if isinstance(choices, str) else choices
    sources: dict[str, Any] = {}
    for source in choices:
        name, uri = getattr(source, "name", None), source
        if isinstance(source, str):
            # NAME=URI; a URI itself may have = in its options, but only after a colon or question
            # mark.
            if prefix := re.match(r"([\w-]+)=", source):
                name, uri = prefix[1], source[prefix.end() :]
            else:
                name = re.split("[:?]", source, maxsplit=1)[0]
        if not name or name in sources:
            message = (
                f"two have the name {name!r}; rename one with NAME=URI"
                if name
                else "expected at least one"
            )
            raise UsageError(f"sources of distractors: {message}")
        sources[name] = uri
    return sources
