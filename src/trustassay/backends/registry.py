"""Backend URIs, ``SCHEME:REST``: which schemes there are, and for which kinds of backends.

:func:`scheme` describes a scheme for one kind of backend: how it is loaded, its options, and what
is known before it is loaded. :func:`load` turns a URI or an object into a backend.

Another package adds schemes by entry points in the group ``trustassay.backends``. The name of an
entry point is the scheme, and its value a module that describes it with :func:`scheme`. The module
is imported when the scheme is used::

    @scheme("acme", kind="chat model", form="acme:MODEL", options={"region": str})
    def acme(model: str, region: str = "eu") -> ChatModel: ...
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from trustassay.backends import DEFAULT_EMBEDDER, DEFAULT_ENTAILER, recommended
from trustassay.errors import (
    BackendError,
    FaultsError,
    UnknownNameError,
    did_you_mean,
    requirement,
)

ENTRY_POINT_GROUP = "trustassay.backends"
KINDS: Mapping[str, str] = {
    "entailer": "entailer",
    "chat model": "chat model",
    "decision model": "decision model",
    "embedder": "embedder",
    "token embedder": "token embedder",
    "similarity": "similarity",
    "retriever": "retriever",
    "linker": "linker",
    "distractors": "source of distractors",
}
"""Kinds of backends, as in ``run.json``, and their names in messages."""
CHAT_MODEL_KINDS = ("chat model", "entailer")
"""Kinds of backends that a chat model can be."""

Load = TypeVar("Load", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Scheme:
    """A scheme of URIs for one kind of backend; :func:`scheme` explains the fields."""

    name: str
    kind: str
    load: Callable[..., Any]
    form: str = ""
    options: Mapping[str, Callable[[str], Any]] | None = None
    target: str = ""
    needs: Mapping[str, str] | None = None
    path: str = ""
    slow: bool = False
    wraps: str = ""
    default: str = ""
    models: str = ""
    price: str = ""
    address: Callable[[str], Any] | None = None
    package: str = ""

    def read(self, remainder: str) -> tuple[str, dict[str, Any]]:
        """Return the part before the options, and the options, which are the loader's keywords.

        Raises:
            UnknownNameError: an option is not known, or cannot have this value.
            BackendError: the part before the options is missing.
        """
        target, options = remainder, {}
        # Without declared options, the loader gets the text as it is and reads it by itself.
        if self.options is not None:
            target, _, query = remainder.partition("?")
            for key, value in parse_qsl(query, keep_blank_values=True):
                if key not in self.options:
                    message = did_you_mean(f"option of {self.name}", key, self.options)
                    raise UnknownNameError(message)
                try:
                    options[key] = self.options[key](value)
                except ValueError:
                    message = f"option {key} of {self.name} cannot be {value!r}"
                    raise UnknownNameError(message) from None
        if self.target and not target:
            raise BackendError(f"{self.name}: needs {self.target}")
        # The form is only the name, as of lexical.
        if self.form == self.name and target:
            message = f"{KINDS[self.kind]} {self.name} takes nothing after its name, got {target!r}"
            raise UnknownNameError(message)
        return target, options

    def missing(self) -> dict[str, str]:
        """Return the packages that are not installed, each with what to ``pip install``."""
        needs = self.needs or {}
        return {name: pip for name, pip in needs.items() if find_spec(name) is None}

    def describe_missing(self) -> str | None:
        """Return which package is missing and how to install it; ``None`` if none is."""
        for package, pip in self.missing().items():
            return f"{package} is missing: pip install {pip}"
        return None


_SCHEMES: dict[tuple[str, str], Scheme] = {}
_PLUGIN: ContextVar[tuple[str, str]] = ContextVar("plugin", default=("", ""))
"""Scheme and package of the entry point that is being loaded."""


def scheme(name: str, *, kind: str, **fields: Any) -> Callable[[Load], Load]:
    """Register what it decorates as the loader of URIs ``NAME:REST`` for one kind of backend.

    The loader gets the part after the colon, if there is any, and options as keywords. It returns
    an object of the kind's protocol (:mod:`trustassay.core.capabilities`), or a function to be
    wrapped.

    Args:
        name: the scheme.
        kind: one of :data:`KINDS`.
        form: how a URI looks, as in ``acme:MODEL[?region=NAME]``; the name alone if nothing may
            follow it.
        options: what reads the value of each option behind a ``?``; raises :class:`ValueError`.
            ``None``: the loader gets the part after the colon as it is.
        target: what must be named, for the message if it is not: ``a model, as in acme:MODEL``.
        needs: the packages without which it cannot be loaded, and what to ``pip install`` for each.
        path: ``file`` or ``folder``, if it names one that must exist. A folder may also be the ID
            of a model; it is a folder if it begins with ``/``, ``.`` or ``~``.
        slow: whether loading may take a second or more. What would fail is then looked for first.
        wraps: the kind of the backend whose URI follows the colon; the loader gets that backend.
        default: the URI of that backend if none follows.
        models: a pattern of names of models that suggest this scheme.
        price: the provider's ID in the table of published prices.
        address: reads what follows the colon into the
            :class:`~trustassay.backends.http.EndpointAddress` of an endpoint, which says where its
            key is; the loader gets that.

    Raises:
        ValueError: another package may not describe this scheme, or describes it twice.
    """
    if kind not in KINDS:
        raise ValueError(f"scheme {name}: {did_you_mean('kind of backend', kind, KINDS)}")
    plugin_scheme, package = _PLUGIN.get()
    if (kind, name) in _SCHEMES or (plugin_scheme and name != plugin_scheme):
        raise ValueError(f"scheme {name} is described elsewhere")

    def register(load: Load) -> Load:
        _SCHEMES[kind, name] = Scheme(name, kind, load, package=package, **fields)
        return load

    return register


def load(kind: str, choice: Any) -> Any:
    """Return the backend that a URI names, wrap a function, or pass an object through.

    Raises:
        UnknownNameError: no such scheme or option.
        BackendError: the backend cannot be loaded.
    """
    from trustassay.backends.functions import wrap_as_backend

    if not isinstance(choice, str):
        return wrap_as_backend(kind, choice)
    # Any chat model can be an entailer, unless its scheme already names one.
    if kind == "entailer" and not find(kind, choice)[0] and find("chat model", choice)[0]:
        return wrap_chat_as_entailer(choice, "")
    result, target, options = read(kind, choice)
    if result.wraps:
        args = [load(result.wraps, target or result.default)]
    elif result.address:
        args = [result.address(target)]
    else:
        args = [target] if target else []
    backend = result.load(*args, **options)
    # Other packages may return functions; built-in loaders return backends.
    return wrap_as_backend(kind, backend, choice) if result.package else backend


def read(kind: str, uri: str) -> tuple[Scheme, str, dict[str, Any]]:
    """Return the scheme of a URI, the part before its options, and its options.

    Raises:
        UnknownNameError: no such scheme or option.
        BackendError: nothing is named, or the package that describes the scheme cannot be loaded.
    """
    result, remainder = find(kind, uri)
    if result is None:
        raise _unknown_scheme_error(kind, uri)
    return result, *result.read(remainder)


def find(kind: str, uri: str) -> tuple[Scheme | None, str]:
    """Return the scheme of a URI for a kind of backend, if there is one, and the part after it.

    Raises:
        BackendError: the package that describes it cannot be loaded, or it is a recommended model
            that is not on this machine.
    """
    name, remainder = _split(recommended.locate_model(uri) if kind in CHAT_MODEL_KINDS else uri)
    if name in BUILT_IN_SCHEMES or (kind, name) in _SCHEMES:
        return _SCHEMES.get((kind, name)), remainder
    # Only the package of this scheme is imported, and only now.
    for entry in find_entry_points().get(name, ()):
        load_plugin(entry)
    return _SCHEMES.get((kind, name)), remainder


def is_decision_model(choice: Any) -> bool:
    """Whether a URI or an object is a decision model, and no chat model."""
    if not isinstance(choice, str):
        # Imports numpy, which help texts need not wait for.
        from trustassay.core.capabilities import DecisionModel

        return isinstance(choice, DecisionModel)
    return bool(find("decision model", choice)[0]) and not find("chat model", choice)[0]


def find_fault(kind: str, choice: Any) -> str | None:
    """Return why a URI's backend cannot be loaded, if that is known without loading it.

    A large model takes seconds or minutes to load; a missing package or folder is found before.

    Raises:
        UnknownNameError: an option that the backend does not have.
    """
    result, uri, remainder = _find_innermost(kind, choice)
    if result is None:
        return None
    # This also checks the options.
    target, _ = result.read(remainder)
    bare = uri.partition("?")[0]
    if missing := result.describe_missing():
        return f"{bare}: {missing}"
    # Loaders that read their options themselves leave them in the target.
    path = Path(target.partition("?")[0])
    if result.path == "file" and target and not path.expanduser().exists():
        return f"{uri}: there is no such file"
    is_local_path = result.path == "folder" and target.startswith(("/", ".", "~"))
    if is_local_path and not path.expanduser().is_dir():
        return f"{bare}: there is no such folder"
    return None


def check_loadable(kind: str, choices: Iterable[Any]) -> None:
    """Check several choices before the first one is loaded, downloaded or asked.

    Raises:
        UnknownNameError: no such scheme or option.
        BackendError: a choice cannot be loaded (:func:`find_fault`); :class:`FaultsError` if
            several cannot.
    """
    faults = list(filter(None, (find_fault(kind, choice) for choice in choices)))
    if len(faults) > 1:
        raise FaultsError(faults)
    if faults:
        raise BackendError(faults[0])


def takes_time(kind: str, choice: Any) -> bool:
    """Whether a choice names a backend that may take a second or more to load."""
    result, _, _ = _find_innermost(kind, choice)
    return result is not None and result.slow


def find_price_provider(backend: str) -> str:
    """Return a chat model's provider in the table of published prices; empty if it has none."""
    return getattr(_SCHEMES.get(("chat model", _split(backend)[0])), "price", "")


def schemes(kind: str = "") -> list[Scheme]:
    """Return the schemes that are described so far, for one kind or for all, in that order."""
    return [known_scheme for known_scheme in _SCHEMES.values() if kind in ("", known_scheme.kind)]


def describe_forms(kind: str, default: str = "", without: str = "") -> str:
    """Return the forms of the URIs of built-in schemes for a kind, for a help text."""
    texts = []
    for known_scheme in schemes(kind):
        if known_scheme.name not in BUILT_IN_SCHEMES - {without}:
            continue
        text = known_scheme.form.partition("[?")[0]
        text += "[@BASE_URL]" if known_scheme.address and text.endswith(":MODEL") else ""
        texts.append(f"{text} (the default)" if known_scheme.name == default else text)
    return ", ".join(texts)


def find_entry_points() -> dict[str, list[EntryPoint]]:
    """Return the entry points of installed packages that add schemes, by scheme."""
    result: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        result.setdefault(entry.name, []).append(entry)
    return result


def package_of(entry: EntryPoint) -> str:
    """Return name and version of the package that an entry point belongs to."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"


def load_plugin(entry: EntryPoint) -> list[Scheme]:
    """Import the schemes that another package describes, and return them.

    Raises:
        BackendError: they cannot be imported, or are others; the message names the package.
    """
    package = package_of(entry)
    earlier = [known_scheme for known_scheme in schemes() if known_scheme.name == entry.name]
    # It has been loaded already.
    if entry.name not in BUILT_IN_SCHEMES and earlier and earlier[0].package in (package, ""):
        return earlier
    # What a package has described before it fails is removed again.
    before = set(_SCHEMES)
    # scheme() reads this, as a decorator cannot know which entry point imports its module.
    token = _PLUGIN.set((entry.name, package))
    try:
        # Two packages, or a package and trustassay, have the same scheme.
        if earlier:
            raise ValueError(f"{earlier[0].package or 'trustassay'} already defines this scheme")
        entry.load()
        result = [known_scheme for known_scheme in schemes() if known_scheme.name == entry.name]
        if not result:
            raise ValueError("it defines no scheme of this name")
    except (Exception, SystemExit) as error:
        for key in set(_SCHEMES) - before:
            del _SCHEMES[key]
        reason = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
        message = f"{entry.name}: the scheme of the package {package} cannot be loaded ({reason})"
        raise BackendError(" ".join(message.split())) from error
    finally:
        _PLUGIN.reset(token)
    return result


def _split(uri: str) -> tuple[str, str]:
    """Return a URI's scheme, and what follows its colon; ``embedded?threads=2`` has none."""
    name = re.split("[:?]", uri, maxsplit=1)[0]
    return name, uri[len(name) :].removeprefix(":")


def _find_innermost(kind: str, choice: Any) -> tuple[Scheme | None, str, str]:
    """Return the scheme of a choice or of the backend inside it, its URI, and the part after it."""
    if not isinstance(choice, str):
        return None, "", ""
    result, remainder = find(kind, choice)
    # Any chat model can be an entailer, as gguf:FILE?repeats=3 or chat:URI?repeats=3: the options
    # of the entailer are mixed with the model's own.
    if kind == "entailer" and (result is None or result.name == "chat"):
        from trustassay.backends.chat_entailer import split_entailment_options

        uri = choice if result is None else remainder
        kind, choice = "chat model", split_entailment_options(uri)[0]
        result, remainder = find(kind, choice)
    # cosine:hf:ID wraps an embedder, so faults of hf:ID are faults of the choice.
    while result is not None and result.wraps and remainder:
        kind, choice = result.wraps, remainder
        result, remainder = find(kind, choice)
    return result, choice, remainder


def _unknown_scheme_error(kind: str, choice: str) -> UnknownNameError:
    """Return the error for a choice of no known scheme, with the scheme that may be meant."""
    what, name = KINDS[kind], _split(choice)[0]
    schemes_by_name = {known_scheme.name: known_scheme for known_scheme in schemes(kind)}
    if kind == "entailer":
        for chat_scheme in schemes("chat model"):
            schemes_by_name.setdefault(chat_scheme.name, chat_scheme)
    # From the most likely mistake to the least.
    if choice.startswith(("http://", "https://")) and "openai" in schemes_by_name:
        from trustassay.backends.http import check_base

        # Its query is not repeated, as it may hold a key.
        address = check_base(choice.partition("?")[0], what)
        advice = f"did you mean openai:MODEL@{address}?"
        return UnknownNameError(f"unknown {what}: an address does not name a model; {advice}")
    if is_decision_model(choice):
        return UnknownNameError(
            f"{name}: a decision model returns probabilities, not text; use it as --entailer, "
            "as --second, or as --judge of the metrics judge and pairwise"
        )
    for known_scheme in schemes_by_name.values():
        if known_scheme.models and re.match(known_scheme.models, choice, re.IGNORECASE):
            message = f"unknown {what} {choice!r}; did you mean {known_scheme.name}:{choice}?"
            return UnknownNameError(message)
    if of_package := [
        known_scheme
        for known_scheme in _SCHEMES.values()
        if known_scheme.name == name and known_scheme.package
    ]:
        kinds = " and ".join(KINDS[known_scheme.kind] for known_scheme in of_package)
        message = f"{name}: {of_package[0].package} defines it for {kinds}, not for {what}"
        return UnknownNameError(message)
    # Suggestions are limited to schemes of this kind. The schemes of the papers are loaded to know
    # theirs; those of other packages are suggested by name, since they may not load.
    others = set()
    for plugin_name, entries in find_entry_points().items():
        for entry in entries:
            if entry.dist and entry.dist.name == "trustassay":
                load_plugin(entry)
            else:
                others.add(plugin_name)
    fit = {known_scheme.name for known_scheme in schemes(kind)} | {*schemes_by_name, *others}
    fit.discard("")
    fit |= set(recommended.load_recommended() if kind in CHAT_MODEL_KINDS else ())
    return UnknownNameError(did_you_mean(what, name, fit))


# ------------------------------------------------------------------- the schemes of trustassay


def _loader(name: str, *args: str) -> Callable[..., Any]:
    """Return a function that calls ``MODULE:NAME`` of this folder, with ``args`` before its own.

    The module is imported when the function is called, as it may import torch.
    """
    module, _, attribute = name.partition(":")

    def call(*uri_args: Any, **options: Any) -> Any:
        imported = import_module(f"trustassay.backends.{module}")
        return getattr(imported, attribute)(*args, *uri_args, **options)

    return call


def _parse_yes_or_no(text: str) -> bool:
    """Read yes or no."""
    if text not in ("yes", "true", "1", "no", "false", "0"):
        raise ValueError(text)
    return text in ("yes", "true", "1")


def _parse_count(text: str) -> int:
    """Read a number of 1 or more."""
    if text.isdecimal() and int(text):
        return int(text)
    raise ValueError(text)


def _split_at_commas(text: str) -> list[str]:
    """Read a list."""
    return text.split(",")


def load_replay_chat(remainder: str) -> Any:
    """Return the chat model that answers from a file."""
    from trustassay.backends.replay import ReplayChat

    # Whatever follows is the name of a model, which may have ? and & in it.
    file, _, model = remainder.partition("?model=")
    return ReplayChat(file, model or None)


def wrap_chat_as_entailer(uri: str, prefix: str = "chat:") -> Any:
    """Return a chat model as an entailer; ``prefix`` stands before its name."""
    from trustassay.backends.chat_entailer import ChatEntailer, split_entailment_options

    model, judging = split_entailment_options(uri)
    # Odds only need the first token of a reply, which another engine may compute faster.
    if judging.by != "words" and find("chat model", model)[0] is _SCHEMES[_GGUF]:
        from trustassay.backends.gguf_engines import choose_engine

        model = choose_engine(model)
    return ChatEntailer(load("chat model", model), judging, prefix)


def load_python_object(kind: str, path: str = "") -> Any:
    """Return the backend that ``MODULE:NAME`` of Python is."""
    from trustassay.backends.functions import import_object, wrap_as_backend

    return wrap_as_backend(kind, import_object(path), f"python:{path}")


_GGUF = ("chat model", "gguf")
_EMBEDDED = partial(
    Scheme,
    "embedded",
    form="embedded[?threads=N]",
    options={"threads": _parse_count},
    slow=True,
)
_HF_PACKAGES = {"torch": requirement("hf"), "transformers": requirement("hf")}
_HF_OPTIONS: dict[str, Callable[[str], Any]] = {"device": str, "dtype": str, "batch_tokens": int}
_HF = partial(
    Scheme,
    "hf",
    form="hf:ID-or-path",
    target="a model, as in hf:ID or hf:PATH",
    path="folder",
    slow=True,
    models=r"[\w.-]+/[\w.-]+(\?|$)",
)
_OPENAI_MODELS = "(gpt-|chatgpt|o[1-9](-|$)|text-embedding-)"


def _endpoint(
    name: str,
    kind: str,
    loader: str,
    *,
    models: str = "",
    price: str = "",
    address_reader: str = "http:service_address",
) -> Scheme:
    """Return the scheme of an endpoint: its loader gets the address that follows the colon."""
    address = _loader(address_reader, name)
    form = f"{name}:MODEL"
    return Scheme(
        name, kind, _loader(loader), form=form, models=models, price=price, address=address
    )


# In the order in which lists show them.
for _built_in in (
    *(
        _EMBEDDED(kind, _loader("embedded:load_embedded_model", kind))
        for kind in ("entailer", "embedder", "token embedder")
    ),
    Scheme("lexical", "entailer", _loader("lexical:LexicalEntailer"), form="lexical"),
    _HF(
        "entailer",
        _loader("hf_entailer:HuggingFaceEntailer"),
        options=_HF_OPTIONS | {"check": _parse_yes_or_no, "labels": _split_at_commas},
        needs=_HF_PACKAGES,
    ),
    _HF(
        "chat model",
        _loader("hf_chat:HuggingFaceChat"),
        options=_HF_OPTIONS | {"template": str, "max_tokens": int},
        needs=_HF_PACKAGES,
    ),
    _HF(
        "embedder",
        _loader("hf_embedders:SentenceTransformerEmbedder"),
        options=_HF_OPTIONS,
        needs=_HF_PACKAGES | {"sentence_transformers": requirement("sentence-transformers")},
    ),
    _HF(
        "token embedder",
        _loader("hf_embedders:HuggingFaceTokenEmbedder"),
        options=_HF_OPTIONS | {"layer": int},
        needs=_HF_PACKAGES,
    ),
    Scheme(
        "gguf",
        "chat model",
        _loader("gguf_engines:load_gguf"),
        form="gguf:FILE",
        options={"template": str, "file": str, "engine": str}
        | dict.fromkeys(("threads", "parallel", "context", "max_tokens"), _parse_count),
        target="a file, as in gguf:model.gguf",
        needs={"xllamacpp": requirement("gguf")},
        path="file",
        slow=True,
        models=r".*\.gguf$",
    ),
    _endpoint("openai", "chat model", "openai:OpenAIChat", models=_OPENAI_MODELS, price="openai"),
    _endpoint(
        "anthropic", "chat model", "anthropic:AnthropicChat", models="claude-", price="anthropic"
    ),
    _endpoint("gemini", "chat model", "gemini:GeminiChat", models="gemini-", price="google"),
    _endpoint("ollama", "chat model", "openai:OpenAIChat"),
    _endpoint("llamafile", "chat model", "openai:OpenAIChat"),
    _endpoint("openai", "embedder", "openai:OpenAIEmbedder", models=_OPENAI_MODELS),
    *(
        _endpoint(name, kind, loader, address_reader="decision_models:decision_address")
        for kind, loader in (
            ("entailer", "decision_models:DecisionEntailer"),
            ("decision model", "decision_models:EndpointDecisions"),
        )
        for name in ("systemone", "decisions")
    ),
    Scheme(
        "replay",
        "chat model",
        load_replay_chat,
        form="replay:FILE",
        target="a file, as in replay:FILE",
    ),
    Scheme("chat", "entailer", wrap_chat_as_entailer, form="chat:MODEL"),
    Scheme(
        "cosine",
        "similarity",
        _loader("similarity:CosineSimilarity"),
        form="cosine[:EMBEDDER]",
        wraps="embedder",
        default=DEFAULT_EMBEDDER,
    ),
    Scheme(
        "consistency",
        "similarity",
        _loader("similarity:ConsistencySimilarity"),
        form="consistency[:ENTAILER]",
        wraps="entailer",
        default=DEFAULT_ENTAILER,
    ),
    Scheme(
        "agreement",
        "similarity",
        _loader("similarity:AgreementSimilarity"),
        form="agreement[:ENTAILER]",
        wraps="entailer",
        default=DEFAULT_ENTAILER,
    ),
    Scheme(
        "bertscore",
        "similarity",
        _loader("similarity:BertScoreSimilarity"),
        form="bertscore[:hf:ID-or-path[?layer=N]]",
        wraps="token embedder",
        default=DEFAULT_EMBEDDER,
    ),
    Scheme("lexical", "similarity", _loader("similarity:LexicalSimilarity"), form="lexical"),
    Scheme("novel", "similarity", _loader("similarity:NovelWordsSimilarity"), form="novel"),
    Scheme(
        "bm25",
        "retriever",
        _loader("bm25:bm25_retriever"),
        form="bm25:PATH[?index=FOLDER]",
        options={"index": str},
        target="a corpus, as in bm25:PATH",
        path="file",
        slow=True,
    ),
    Scheme(
        "embedding",
        "distractors",
        _loader("word_substitutes:NearWords"),
        form="embedding",
        slow=True,
    ),
    Scheme("pos", "distractors", _loader("word_substitutes:DrawnWords"), form="pos"),
    *(
        Scheme(
            "python",
            kind,
            partial(load_python_object, kind),
            form="python:MODULE:FUNCTION",
            slow=True,
        )
        # What python:MODULE:FUNCTION names as a judge is a chat model.
        for kind in KINDS
        if kind != "decision model"
    ),
):
    _SCHEMES[_built_in.kind, _built_in.name] = _built_in

BUILT_IN_SCHEMES = frozenset(one.name for one in schemes())
"""The built-in schemes; no other package can have one of these names."""
