"""From a URI, a function or an object to a backend, for the kinds that may be functions.

Which URIs there are of all kinds: :mod:`trustassay.backends.registry`. A backend and its
dependencies are imported when it is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trustassay.backends import DEFAULT_SIMILARITY
from trustassay.backends.registry import load
from trustassay.capabilities import (
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
    """Return the entailer that a URI names, or wrap a function, or pass an entailer through.

    A chat model is one, too, by its URI, behind ``chat:`` where the scheme is ``hf:`` or
    ``python:``, with the options of :class:`~trustassay.backends.chat_entailer.Judging`. Raises as
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


def blocking(found: Embedder | OpenAIEmbedder) -> Embedder:
    """Return an embedder that can be asked outside an event loop."""
    from trustassay.backends.openai import BlockingEmbedder, OpenAIEmbedder

    return BlockingEmbedder(found) if isinstance(found, OpenAIEmbedder) else found


def chat(choice: ChatChoice) -> ChatModel | LocalChatModel:
    """Return the chat model that a URI names, or wrap a function, or pass a model through.

    Raises as :func:`~trustassay.backends.registry.load`.
    """
    result: ChatModel | LocalChatModel = load("chat model", choice)
    return result


def similarity(choice: SimilarityChoice = DEFAULT_SIMILARITY) -> Similarity:
    """Return a similarity of two texts by name, wrap a function, or pass one through.

    ``novel``, the words that two answers share beside the question's, and ``agreement``, these and
    entailment in both directions, are :class:`~trustassay.capabilities.QuestionSimilarity` and
    score triples. Raises as :func:`~trustassay.backends.registry.load`.
    """
    result: Similarity = load("similarity", choice)
    return result


def named_sources(choice: Any) -> dict[str, Any]:
    """Return the sources of substitutes by name, from what the user named.

    ``embedding,pos,dbpedia:URL``, a list of such URIs and of objects, or a mapping by name. A URI
    is known by its scheme, an object by its name, each also by ``NAME=URI``.

    Raises:
        ValueError: none, or two of one name.
    """
    if isinstance(choice, Mapping):
        return dict(choice)
    ones = [choice] if not isinstance(choice, str | Sequence) else choice
    ones = ones.split(",") if isinstance(ones, str) else ones
    sources: dict[str, Any] = {}
    for one in ones:
        name, uri = getattr(one, "name", None), one
        if isinstance(one, str):
            if given := re.match(r"([\w-]+)=", one):
                name, uri = given[1], one[given.end() :]
            else:
                name = re.split("[:?]", one, maxsplit=1)[0]
        if not name or name in sources:
            message = (
                f"two are called {name!r}; NAME=URI gives another name" if name else "no source"
            )
            raise UsageError(f"sources of distractors: {message}")
        sources[name] = uri
    return sources
