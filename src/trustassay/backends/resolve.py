"""From a URI, a function or an object to a backend, a function for each kind of backend.

Which URIs there are: :mod:`trustassay.backends.registry`. A backend and its dependencies are
imported when it is used.
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
    EntityLinker,
    LocalChatModel,
    QuestionSimilarity,
    Retriever,
    Similarity,
    SubstituteSource,
    TokenEmbedder,
)
from trustassay.errors import UsageError

if TYPE_CHECKING:
    from trustassay.backends.knowledge_bases import DBpediaSource, SpotlightLinker
    from trustassay.backends.openai import OpenAIEmbedder


EntailerChoice = str | Entailer | ChatModel | LocalChatModel | Callable[[str, str], Any]
ChatChoice = str | ChatModel | LocalChatModel | Callable[[Any], Any]
EmbedderChoice = str | Embedder | Callable[[list[str]], Any]
SimilarityChoice = str | Similarity | QuestionSimilarity | Callable[[str, str], Any]


def entailer(choice: EntailerChoice) -> Entailer:
    """Return the entailer that a URI names, or wrap a function, or pass an entailer through.

    ``embedded[?threads=N]``; ``lexical``; ``hf:ID-or-path[?option=value&...]`` with the options of
    :class:`~trustassay.backends.hf_entailer.HuggingFaceEntailer`; ``python:MODULE:FUNCTION``; a
    chat model by its URI, as of :func:`chat`, behind ``chat:`` where the scheme is ``hf:`` or
    ``python:``, with the options of :class:`~trustassay.backends.chat_entailer.Judging`.

    Raises:
        UnknownNameError: no such scheme or option.
        BackendError: the backend cannot be loaded.
    """
    found: Entailer = load("entailer", choice)
    return found


def embedder(choice: EmbedderChoice) -> Embedder | OpenAIEmbedder:
    """Return the embedder that a URI names, wrap a function, or pass an embedder through.

    A function takes a list of n texts and returns their vectors, shape (n, d).
    ``embedded[?threads=N]``; ``openai:MODEL[@BASE_URL][?option=value&...]``;
    ``hf:ID-or-path[?option=value&...]`` with the options of
    :class:`~trustassay.backends.hf_embedders.SentenceTransformerEmbedder`;
    ``python:MODULE:OBJECT``.

    Raises:
        UnknownNameError: no such scheme or option.
        BackendError: the backend cannot be loaded.
    """
    found: Embedder | OpenAIEmbedder = load("embedder", choice)
    return found


def blocking(found: Embedder | OpenAIEmbedder) -> Embedder:
    """Return an embedder that can be asked outside an event loop."""
    from trustassay.backends.openai import BlockingEmbedder, OpenAIEmbedder

    return BlockingEmbedder(found) if isinstance(found, OpenAIEmbedder) else found


def chat(choice: ChatChoice) -> ChatModel | LocalChatModel:
    """Return the chat model that a URI names, or wrap a function, or pass a model through.

    ``openai:``, ``anthropic:`` and ``gemini:MODEL[@BASE_URL][?option=value&...]`` with the options
    of :class:`~trustassay.backends.http.Address`; ``hf:ID-or-path[?option=value&...]`` with those
    of :class:`~trustassay.backends.hf_chat.HuggingFaceChat`; ``replay:FILE[?model=NAME]``;
    ``python:MODULE:FUNCTION``.

    Raises:
        UnknownNameError: no such scheme or option.
        BackendError: the backend cannot be loaded.
    """
    found: ChatModel | LocalChatModel = load("chat model", choice)
    return found


def similarity(choice: SimilarityChoice = DEFAULT_SIMILARITY) -> Similarity:
    """Return a similarity of two texts by name, wrap a function, or pass one through.

    ``cosine[:EMBEDDER]`` of their vectors; ``consistency[:ENTAILER]``, the probability that the
    reference entails the text; ``bertscore:TOKEN-EMBEDDER``, whose URI is that of
    :func:`token_embedder`; ``lexical``, the words they share. Of two answers to a question:
    ``novel``, the words they share beside the question's; ``agreement[:ENTAILER]``, these and
    entailment in both directions; both are
    :class:`~trustassay.capabilities.QuestionSimilarity` and score triples. And
    ``python:MODULE:OBJECT``, also a function of text and reference.

    Raises:
        UnknownNameError: no such similarity.
        BackendError: the backend behind it cannot be loaded.
    """
    found: Similarity = load("similarity", choice)
    return found


def token_embedder(choice: str | TokenEmbedder) -> TokenEmbedder:
    """Return the embedder of tokens that a URI names, or pass one through.

    ``hf:ID-or-path[?layer=N&...]`` with the options of
    :class:`~trustassay.backends.hf_embedders.HuggingFaceTokenEmbedder`; ``python:MODULE:OBJECT``.

    Raises:
        UnknownNameError: another scheme or option.
        BackendError: it cannot be loaded.
    """
    found: TokenEmbedder = load("token embedder", choice)
    return found


def retriever(choice: str | Retriever) -> Retriever:
    """Return the retriever that ``bm25:PATH[?index=FOLDER]`` or ``python:MODULE:OBJECT`` names,
    or pass one through.

    Raises:
        UnknownNameError: no such scheme or option.
        InputError, BackendError: the corpus or its index cannot be used.
    """
    found: Retriever = load("retriever", choice)
    return found


def linker(choice: str | EntityLinker) -> EntityLinker | SpotlightLinker:
    """Return the linker that a URI names, or pass one through.

    ``spotlight[:BASE_URL][?option=value&...]``; ``spacy[:MODEL]`` with an installed model;
    ``python:MODULE:OBJECT``.

    Raises:
        UnknownNameError: another scheme or option.
        BackendError: it cannot be loaded.
    """
    found: EntityLinker | SpotlightLinker = load("linker", choice)
    return found


def substitute_source(choice: str | SubstituteSource) -> SubstituteSource | DBpediaSource:
    """Return the source of substitutes that a URI names, or pass one through.

    ``embedding[:FILE]``, a file in word2vec's text or binary format, else the word list;
    ``pos``; ``dbpedia[:URL][?option=value&...]``, a SPARQL endpoint with the limits of
    :class:`~trustassay.backends.http.Address`; ``python:MODULE:OBJECT``.

    Raises:
        UnknownNameError: no such scheme or option.
        BackendError: the source cannot be loaded.
    """
    found: SubstituteSource | DBpediaSource = load("distractors", choice)
    return found


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
            words = f"two are called {name!r}; NAME=URI gives another name" if name else "no source"
            raise UsageError(f"sources of distractors: {words}")
        sources[name] = uri
    return sources
