"""From a URI to a backend: ``embedded``, ``openai:MODEL``, ``hf:ID``, ``python:...``.

A backend's module and its dependencies are imported when it is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl

from trustassay.backends import DEFAULT_EMBEDDER, DEFAULT_ENTAILER, DEFAULT_SIMILARITY
from trustassay.backends.embedded import card
from trustassay.backends.functions import (
    FunctionEmbedder,
    FunctionEntailer,
    FunctionSimilarity,
    imported,
    of_type,
)
from trustassay.backends.lexical import LexicalEntailer
from trustassay.capabilities import (
    ChatModel,
    Embedder,
    Entailer,
    LocalChatModel,
    QuestionSimilarity,
    Similarity,
    TokenEmbedder,
)
from trustassay.errors import BackendError, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from trustassay.backends.openai import OpenAIEmbedder
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trustassay.capabilities import EntityLinker, Retriever, SubstituteSource
from trustassay.errors import UsageError

if TYPE_CHECKING:
    from trustassay.backends.knowledge_bases import DBpediaSource, SpotlightLinker

EntailerChoice = str | Entailer | ChatModel | LocalChatModel | Callable[[str, str], Any]
_TELLING = (
    (r"(gpt-|chatgpt|o[1-9](-|$)|text-embedding-)", "openai"),
    (r"claude-", "anthropic"),
    (r"gemini-", "gemini"),
    (r"[\w.-]+/[\w.-]+(\?|$)", "hf"),
)
"""Prefixes of model names that identify the service, and the form of names on the hub."""

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
    if not isinstance(choice, str):
        return _from_object(choice)
    scheme, _, rest = choice.replace("embedded?", "embedded:?", 1).partition(":")
    if scheme not in _ENTAILERS:
        raise _unknown("entailer", choice, choice, _ENTAILERS)
    return _ENTAILERS[scheme](rest)


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
    if not isinstance(choice, str):
        return _embedder_from_object(choice)
    scheme, _, rest = choice.replace("embedded?", "embedded:?", 1).partition(":")
    if scheme not in _EMBEDDERS:
        raise _unknown("embedder", choice, choice, _EMBEDDERS)
    return _EMBEDDERS[scheme](rest)


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
    if not isinstance(choice, str):
        return _chat_from_object(choice)
    scheme, _, rest = choice.partition(":")
    if scheme not in _CHATS:
        raise _unknown("chat model", scheme, choice, _CHATS)
    return _CHATS[scheme](rest)


def _unknown(what: str, name: str, choice: str, schemes: Collection[str]) -> UnknownNameError:
    """Return the error for a choice of no known scheme.

    It suggests the scheme that the choice indicates, else those similar to ``name``.
    """
    if choice.startswith(("http://", "https://")) and "openai" in schemes:
        words = (
            f"unknown {what}: an address does not name a model; did you mean openai:MODEL@{choice}?"
        )
        return UnknownNameError(words)
    for pattern, scheme in _TELLING:
        if scheme in schemes and re.match(pattern, choice, re.IGNORECASE):
            return UnknownNameError(f"unknown {what} {choice!r}; did you mean {scheme}:{choice}?")
    return UnknownNameError(did_you_mean(what, name, schemes))


def blocking(found: Embedder | OpenAIEmbedder) -> Embedder:
    """Return an embedder that can be asked outside an event loop."""
    from trustassay.backends.openai import BlockingEmbedder, OpenAIEmbedder

    return BlockingEmbedder(found) if isinstance(found, OpenAIEmbedder) else found


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
    if not isinstance(choice, str):
        return _similarity_from_object(choice)
    name, _, rest = choice.partition(":")
    if name not in _SIMILARITIES or (rest and name in ("lexical", "novel")):
        raise UnknownNameError(did_you_mean("similarity", choice, _SIMILARITIES))
    found: Any = _SIMILARITIES[name](rest)
    return cast(Similarity, found)


def _cosine(rest: str) -> Similarity:
    from trustassay.backends.similarity import CosineSimilarity, EndpointCosineSimilarity

    found = embedder(rest or DEFAULT_EMBEDDER)
    if isinstance(found, Embedder):
        return CosineSimilarity(found)
    return EndpointCosineSimilarity(found)


def _bertscore(rest: str) -> Similarity:
    from trustassay.backends.similarity import BertScoreSimilarity

    if not rest:
        raise BackendError("bertscore: needs a model, as in bertscore:hf:ID or bertscore:hf:PATH")
    return BertScoreSimilarity(token_embedder(rest))


def _consistency(rest: str) -> Similarity:
    from trustassay.backends.similarity import ConsistencySimilarity

    return ConsistencySimilarity(entailer(rest or DEFAULT_ENTAILER))


def _lexical_similarity(_: str) -> Similarity:
    from trustassay.backends.similarity import LexicalSimilarity

    return LexicalSimilarity()


def _agreement(rest: str) -> QuestionSimilarity:
    from trustassay.backends.similarity import AgreementSimilarity

    found = entailer(rest or DEFAULT_ENTAILER)
    if hasattr(found, "chat_model"):
        raise BackendError(f"agreement: {found.name} is a chat model; expected a local entailer")
    return AgreementSimilarity(found)


def _novel(_: str) -> QuestionSimilarity:
    from trustassay.backends.similarity import NovelWordsSimilarity

    return NovelWordsSimilarity()


def _similarity_from_object(found: Any, name: str | None = None) -> Similarity:
    if isinstance(found, type):
        raise BackendError(f"{found.__name__} is a class; expected a similarity object or function")
    return found if isinstance(found, Similarity) else FunctionSimilarity(found, name)


def token_embedder(choice: str | TokenEmbedder) -> TokenEmbedder:
    """Return the embedder of tokens that a URI names, or pass one through.

    ``hf:ID-or-path[?layer=N&...]`` with the options of
    :class:`~trustassay.backends.hf_embedders.HuggingFaceTokenEmbedder`; ``python:MODULE:OBJECT``.

    Raises:
        UnknownNameError: another scheme or option.
        BackendError: it cannot be loaded.
    """
    found: Any = choice
    if isinstance(choice, str):
        scheme, _, rest = choice.partition(":")
        if scheme == "hf":
            from trustassay.backends.hf_embedders import HuggingFaceTokenEmbedder

            model, options = _model_and_options(rest, _HF_EMBEDDER_OPTIONS | {"layer": int})
            return HuggingFaceTokenEmbedder(model, **options)
        if scheme != "python":
            raise UnknownNameError(did_you_mean("token embedder", choice, ["hf:ID", "python:..."]))
        found = imported(rest)
    words = "expected a token embedder with name and token_vectors"
    checked: TokenEmbedder = of_type(found, TokenEmbedder, words)
    return checked


def _embedded(rest: str) -> Entailer:
    from trustassay.backends.embedded import EmbeddedEntailer

    return EmbeddedEntailer(_embedded_threads(rest))


def _embedded_embedder(rest: str) -> Embedder:
    from trustassay.backends.embedded import EmbeddedEmbedder

    return EmbeddedEmbedder(_embedded_threads(rest))


def _embedded_threads(rest: str) -> int | None:
    """Read the part after ``embedded``: a version, and the number of threads."""
    version, _, query = rest.partition("?")
    if version not in ("", carried := str(card()["version"])):
        raise BackendError(f"embedded:{version} is not installed; this installation has {carried}")
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
    from trustassay.backends.hf_entailer import HuggingFaceEntailer

    model, options = _model_and_options(rest, _HF_OPTIONS)
    return HuggingFaceEntailer(model, **options)


def _hugging_face_chat(rest: str) -> LocalChatModel:
    from trustassay.backends.hf_chat import HuggingFaceChat

    model, options = _model_and_options(rest, _HF_CHAT_OPTIONS)
    return HuggingFaceChat(model, **options)


def _hugging_face_embedder(rest: str) -> Embedder:
    from trustassay.backends.hf_embedders import SentenceTransformerEmbedder

    model, options = _model_and_options(rest, _HF_EMBEDDER_OPTIONS)
    return SentenceTransformerEmbedder(model, **options)


def _model_and_options(
    rest: str, known: Mapping[str, Callable[[str], Any]]
) -> tuple[str, dict[str, Any]]:
    """Read the part after ``hf:``."""
    model, _, query = rest.partition("?")
    if not model:
        raise BackendError("hf: needs a model, as in hf:ID or hf:PATH")
    options: dict[str, Any] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in known:
            raise UnknownNameError(did_you_mean("option of hf", key, known))
        try:
            options[key] = known[key](value)
        except ValueError:
            raise UnknownNameError(f"option {key} of hf: cannot be {value!r}") from None
    return model, options


def _truth(text: str) -> bool:
    if text in ("yes", "true", "1"):
        return True
    if text in ("no", "false", "0"):
        return False
    raise ValueError(text)


_HF_EMBEDDER_OPTIONS: dict[str, Callable[[str], Any]] = {
    "device": str,
    "dtype": str,
    "batch_tokens": int,
}
_HF_CHAT_OPTIONS = _HF_EMBEDDER_OPTIONS | {"template": str, "max_tokens": int}
_HF_OPTIONS = _HF_EMBEDDER_OPTIONS | {"check": _truth, "labels": lambda text: text.split(",")}


def check_hugging_face(backend: str, rest: str) -> None:
    """Check the part after ``hf:`` for what it is for: entailer, chat model or embedder.

    Raises:
        UnknownNameError, BackendError: an option that it does not have; no model is named.
    """
    if backend == "chat model":  # as an entailer it has options of its own, too
        from trustassay.backends.chat_entailer import judging_of

        rest = judging_of(rest)[0]
    known = {
        "chat model": _HF_CHAT_OPTIONS,
        "entailer": _HF_OPTIONS,
        "token embedder": _HF_EMBEDDER_OPTIONS | {"layer": int},
    }
    _model_and_options(rest, known.get(backend, _HF_EMBEDDER_OPTIONS))


def _openai(rest: str) -> ChatModel:
    from trustassay.backends.openai import OpenAIChat, openai_address

    return OpenAIChat(openai_address(rest))


def _openai_embedder(rest: str) -> OpenAIEmbedder:
    from trustassay.backends.openai import OpenAIEmbedder, openai_address

    return OpenAIEmbedder(openai_address(rest))


def _anthropic(rest: str) -> ChatModel:
    from trustassay.backends.anthropic import AnthropicChat, anthropic_address

    return AnthropicChat(anthropic_address(rest))


def _gemini(rest: str) -> ChatModel:
    from trustassay.backends.gemini import GeminiChat, gemini_address

    return GeminiChat(gemini_address(rest))


def _replay(rest: str) -> ChatModel:
    from trustassay.backends.replay import ReplayChat

    file, _, model = rest.partition("?model=")  # whatever follows: names of models have ? and &
    if not file:
        raise BackendError("replay: needs a file, as in replay:FILE")
    return ReplayChat(file, model or None)


def _chat_from_object(found: Any, name: str | None = None) -> ChatModel | LocalChatModel:
    from trustassay.backends.functions import FunctionChat

    if isinstance(found, type):
        raise BackendError(f"{found.__name__} is a class; expected a chat model object or function")
    return found if isinstance(found, ChatModel | LocalChatModel) else FunctionChat(found, name)


def _embedder_from_object(found: Any, name: str | None = None) -> Embedder:
    if isinstance(found, type):
        raise BackendError(f"{found.__name__} is a class; expected an embedder object or function")
    if hasattr(found, "vectors") or hasattr(found, "avectors"):
        return cast(Embedder, found)
    return FunctionEmbedder(found, name)


def _asked(uri: str, scheme: str = "") -> Entailer:
    from trustassay.backends.chat_entailer import ChatEntailer, judging_of

    own, judging = judging_of(uri)
    return ChatEntailer(chat(own), judging, scheme)


def _python(rest: str) -> Entailer:
    return _from_object(imported(rest), f"python:{rest}")


def _from_object(found: Any, name: str | None = None) -> Entailer:
    if isinstance(found, type):
        raise BackendError(f"{found.__name__} is a class; expected an entailer object or function")
    if isinstance(found, Entailer):
        return found
    if isinstance(found, ChatModel | LocalChatModel):
        from trustassay.backends.chat_entailer import ChatEntailer

        return ChatEntailer(found)
    return FunctionEntailer(found, name)


_EMBEDDERS: dict[str, Callable[[str], Embedder | OpenAIEmbedder]] = {
    "embedded": _embedded_embedder,
    "hf": _hugging_face_embedder,
    "openai": _openai_embedder,
    "python": lambda rest: _embedder_from_object(imported(rest), f"python:{rest}"),
}
_CHATS: dict[str, Callable[[str], ChatModel | LocalChatModel]] = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "hf": _hugging_face_chat,
    "openai": _openai,
    "python": lambda rest: _chat_from_object(imported(rest), f"python:{rest}"),
    "replay": _replay,
}
_SIMILARITIES: dict[str, Callable[[str], Similarity | QuestionSimilarity]] = {
    "agreement": _agreement,
    "bertscore": _bertscore,
    "consistency": _consistency,
    "cosine": _cosine,
    "lexical": _lexical_similarity,
    "novel": _novel,
    "python": lambda rest: _similarity_from_object(imported(rest), f"python:{rest}"),
}
_ENTAILERS: dict[str, Callable[[str], Entailer]] = {
    "embedded": _embedded,
    "lexical": _lexical,
    "hf": _hugging_face,
    "python": _python,
    "anthropic": lambda rest: _asked(f"anthropic:{rest}"),
    "gemini": lambda rest: _asked(f"gemini:{rest}"),
    "openai": lambda rest: _asked(f"openai:{rest}"),
    "replay": lambda rest: _asked(f"replay:{rest}"),
    "chat": lambda rest: _asked(rest, "chat:"),
}


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
            from trustassay.retrieval.bm25 import bm25_retriever_of

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
            from trustassay.backends.knowledge_bases import SpotlightLinker

            return SpotlightLinker.at(rest)
        if scheme == "spacy":
            from trustassay.backends.knowledge_bases import SpacyLinker

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
            from trustassay.backends.knowledge_bases import DBpediaSource

            return DBpediaSource.at(rest)
        if scheme == "embedding":
            if rest:
                from trustassay.backends.word2vec import near_words_of_file

                return near_words_of_file(rest)
            from trustassay.backends.word_substitutes import NearWords

            return NearWords()
        if choice == "pos":
            from trustassay.backends.word_substitutes import DrawnWords

            return DrawnWords()
        if scheme != "python":
            known = ["embedding", "embedding:FILE", "pos", "dbpedia:URL", "python:MODULE:OBJECT"]
            raise UnknownNameError(did_you_mean("source of distractors", choice, known))
        found = imported(rest)
    checked: SubstituteSource = of_type(
        found, SubstituteSource, "expected a source of distractors with name and substitutes"
    )
    return checked
