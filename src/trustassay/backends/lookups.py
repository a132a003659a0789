"""From a URI to what looks things up: retrievers, entity linkers, sources of substitutes.

A backend's module and its dependencies are imported when it is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trustassay.backends.functions import imported, of_type
from trustassay.capabilities import EntityLinker, Retriever, SubstituteSource
from trustassay.errors import UnknownNameError, UsageError, did_you_mean

if TYPE_CHECKING:
    from trustassay.backends.dbpedia import DBpediaSource, SpotlightLinker

__all__ = ["linker", "named_sources", "retriever", "substitute_source"]


def retriever(choice: str | Retriever) -> Retriever:
    """Return the retriever that ``bm25:PATH[?index=FOLDER]`` or ``python:MODULE:OBJECT`` names,
    or pass one through.

    Raises:
        UnknownNameError: no such scheme or option.
        InputError, BackendError: the corpus or its index cannot be used.
    """
    found: Any = choice
    if isinstance(choice, str):
        if not choice.startswith("python:"):
            from trustassay.retrieval.retriever import bm25_retriever_of

            return bm25_retriever_of(choice)
        found = imported(choice.removeprefix("python:"))
    checked: Retriever = of_type(found, Retriever, "expected a retriever with name and search")
    return checked


def linker(choice: str | EntityLinker) -> EntityLinker | SpotlightLinker:
    """Return the linker that a URI names, or pass one through.

    ``spotlight[:BASE_URL][?option=value&...]``; ``spacy[:MODEL]`` with an installed model;
    ``python:MODULE:OBJECT``.

    Raises:
        UnknownNameError: another scheme or option.
        BackendError: it cannot be loaded.
    """
    found: Any = choice
    if isinstance(choice, str):
        scheme, _, rest = choice.replace("spotlight?", "spotlight:?", 1).partition(":")
        if scheme == "spotlight":
            from trustassay.backends.dbpedia import SpotlightLinker

            return SpotlightLinker.at(rest)
        if scheme == "spacy":
            from trustassay.backends.spacy_linker import SpacyLinker

            return SpacyLinker(rest) if rest else SpacyLinker()
        if scheme != "python":
            known = ["spotlight:BASE_URL", "spacy:MODEL", "python:MODULE:OBJECT"]
            raise UnknownNameError(did_you_mean("linker", choice, known))
        found = imported(rest)
    checked: EntityLinker = of_type(found, EntityLinker, "expected a linker with name and link")
    return checked


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
    found: dict[str, Any] = {}
    for one in ones:
        name = getattr(one, "name", None)
        uri = one
        if isinstance(one, str):
            if given := re.match(r"([\w-]+)=", one):
                name, uri = given[1], one[given.end() :]
            else:
                name = re.split("[:?]", one, maxsplit=1)[0]
        if not name or name in found:
            words = f"two are called {name!r}; NAME=URI gives another name" if name else "no source"
            raise UsageError(f"sources of distractors: {words}")
        found[name] = uri
    return found


def substitute_source(choice: Any) -> SubstituteSource | DBpediaSource:
    """Return the source of substitutes that a URI names, or pass one through.

    ``embedding[:FILE]``, a file in word2vec's text or binary format, else the word list;
    ``pos``; ``dbpedia[:URL][?option=value&...]``, a SPARQL endpoint with the limits of
    :class:`~trustassay.backends.http.Address`; ``python:MODULE:OBJECT``.

    Raises:
        UnknownNameError: no such scheme or option.
        BackendError: the source cannot be loaded.
    """
    found = choice
    if isinstance(choice, str):
        scheme, _, rest = re.sub(r"^dbpedia\?", "dbpedia:?", choice).partition(":")
        if scheme == "dbpedia":
            from trustassay.backends.dbpedia import DBpediaSource

            return DBpediaSource.at(rest)
        if scheme == "embedding":
            if rest:
                from trustassay.backends.near_words import near_words_of_file

                return near_words_of_file(rest)
            from trustassay.backends.listed_words import NearWords

            return NearWords()
        if choice == "pos":
            from trustassay.backends.listed_words import DrawnWords

            return DrawnWords()
        if scheme != "python":
            known = ["embedding", "embedding:FILE", "pos", "dbpedia:URL", "python:MODULE:OBJECT"]
            raise UnknownNameError(did_you_mean("source of distractors", choice, known))
        found = imported(rest)
    checked: SubstituteSource = of_type(
        found, SubstituteSource, "expected a source of distractors with name and substitutes"
    )
    return checked
