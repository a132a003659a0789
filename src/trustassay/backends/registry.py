"""Backend URIs, ``SCHEME:REST``: the one place that says which there are, and for what.

:func:`scheme` describes a scheme for one kind of backend: how it is loaded, its options, and what
is known before it is loaded. :func:`load` goes from a URI or an object to a backend.

Another package adds schemes by entry points in the group ``trustassay.backends``. The name of an
entry point is the scheme, and its value a module that describes it with :func:`scheme`; it is
imported when the scheme is used::

    @scheme("acme", kind="chat model", form="acme:MODEL", options={"region": str})
    def acme(model: str, region: str = "eu") -> ChatModel: ...
"""

import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from trustassay.backends import DEFAULT_EMBEDDER, DEFAULT_ENTAILER, OF_PAPERS, recommended
from trustassay.errors import BackendError, UnknownNameError, did_you_mean, requirement

ENTRY_POINT_GROUP = "trustassay.backends"
KINDS: Mapping[str, str] = {
    "entailer": "entailer",
    "chat model": "chat model",
    "embedder": "embedder",
    "token embedder": "token embedder",
    "similarity": "similarity",
    "retriever": "retriever",
    "linker": "linker",
    "distractors": "source of distractors",
}
"""What a backend is for, as in ``run.json``; and as in messages."""
ASKED = ("chat model", "entailer")
"""The kinds that a chat model serves as."""

Load = TypeVar("Load", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Scheme:
    """A scheme of URIs for one kind of backend; the fields are those of :func:`scheme`."""

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

    def read(self, rest: str) -> tuple[str, dict[str, Any]]:
        """Return what stands before the options, and the options, which are the loader's keywords.

        Raises:
            UnknownNameError: an option is not known, or has no such value.
            BackendError: nothing is named.
        """
        target, options = rest, {}
        if self.options is not None:
            target, _, query = rest.partition("?")
            for key, value in parse_qsl(query, keep_blank_values=True):
                if key not in self.options:
                    words = did_you_mean(f"option of {self.name}", key, self.options)
                    raise UnknownNameError(words)
                try:
                    options[key] = self.options[key](value)
                except ValueError:
                    words = f"option {key} of {self.name} cannot be {value!r}"
                    raise UnknownNameError(words) from None
        if self.target and not target:
            raise BackendError(f"{self.name}: needs {self.target}")
        if self.form == self.name and target:
            words = f"{KINDS[self.kind]} {self.name} takes nothing after its name, got {target!r}"
            raise UnknownNameError(words)
        return target, options

    def missing(self) -> dict[str, str]:
        """Return the packages that are not installed, each with what to give to ``pip install``."""
        needs = self.needs or {}
        return {name: pip for name, pip in needs.items() if find_spec(name) is None}


_SCHEMES: dict[tuple[str, str], Scheme] = {}
_PLUGIN: ContextVar[tuple[str, str]] = ContextVar("plugin", default=("", ""))
"""The scheme and the package whose entry point is being loaded."""


def scheme(name: str, *, kind: str, **described: Any) -> Callable[[Load], Load]:
    """Register what it decorates as the loader of URIs ``NAME:REST`` for one kind of backend.

    The loader gets the part after the colon, if there is any, and options as keywords. It returns
    an object of the kind's protocol (:mod:`trustassay.capabilities`), or a function to be wrapped.

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
        address: reads what follows the colon into the :class:`~trustassay.backends.http.Address`
            of an endpoint, which says where its key is; the loader gets that.

    Raises:
        ValueError: another package may not describe this scheme, or describes it twice.
    """
    if kind not in KINDS:
        raise ValueError(f"scheme {name}: {did_you_mean('kind of backend', kind, KINDS)}")
    own, package = _PLUGIN.get()
    if (kind, name) in _SCHEMES or (own and name != own):
        raise ValueError(f"scheme {name} is described elsewhere")

    def register(load: Load) -> Load:
        _SCHEMES[kind, name] = Scheme(name, kind, load, package=package, **described)
        return load

    return register


def load(kind: str, choice: Any) -> Any:
    """Return the backend of a kind that a URI names, or wrap a function, or pass an object through.

    Raises:
        UnknownNameError: no such scheme or option.
        BackendError: the backend cannot be loaded.
    """
    from trustassay.backends.functions import as_backend

    if not isinstance(choice, str):
        return as_backend(kind, choice)
    if kind == "entailer" and not find(kind, choice)[0] and find("chat model", choice)[0]:
        return asked(choice, "")
    result, target, options = read(kind, choice)
    if result.wraps:
        given = [load(result.wraps, target or result.default)]
    elif result.address:
        given = [result.address(target)]
    else:
        given = [target] if target else []
    backend = result.load(*given, **options)
    return as_backend(kind, backend, choice) if result.package else backend


def read(kind: str, uri: str) -> tuple[Scheme, str, dict[str, Any]]:
    """Return the scheme of a URI, what it names, and its options.

    Raises:
        UnknownNameError: no such scheme or option.
        BackendError: nothing is named, or a package describes the scheme, and cannot be loaded.
    """
    result, rest = find(kind, uri)
    if result is None:
        raise _unknown(kind, uri)
    return result, *result.read(rest)


def find(kind: str, uri: str) -> tuple[Scheme | None, str]:
    """Return the scheme of a URI for a kind of backend, if there is one, and what follows it.

    Raises:
        BackendError: a package describes it, and cannot be loaded; or a recommended model that is
            not on this machine.
    """
    name, rest = _split(recommended.located(uri) if kind in ASKED else uri)
    if name in OWN or (kind, name) in _SCHEMES:
        return _SCHEMES.get((kind, name)), rest
    for entry in installed().get(name, ()):
        load_plugin(entry)
    return _SCHEMES.get((kind, name)), rest


def fault_of(kind: str, choice: Any) -> str | None:
    """Return why the backend that a URI names cannot be loaded, if that can be told at once.

    A large model takes seconds or minutes to load; a missing package or folder is found before.

    Raises:
        UnknownNameError: an option that it does not have.
    """
    result, uri, rest = _innermost(kind, choice)
    if result is None:
        return None
    target, _ = result.read(rest)
    bare = uri.partition("?")[0]
    if missing := result.missing():
        package, pip = next(iter(missing.items()))
        return f"{bare}: {package} is missing: pip install {pip}"
    path = Path(target.partition("?")[0])
    if result.path == "file" and target and not path.expanduser().exists():
        return f"{uri}: there is no such file"
    named = result.path == "folder" and target.startswith(("/", ".", "~"))
    if named and not path.expanduser().is_dir():
        return f"{bare}: there is no such folder"
    return None


def takes_time(kind: str, choice: Any) -> bool:
    """Return whether a choice names what may take a second or more to load."""
    result, _, _ = _innermost(kind, choice)
    return result is not None and result.slow


def price_provider(backend: str) -> str:
    """Return the provider in the table of published prices of a chat model's name; else ""."""
    return getattr(_SCHEMES.get(("chat model", _split(backend)[0])), "price", "")


def schemes(kind: str = "") -> list[Scheme]:
    """Return what is described so far of a kind, or of all, in the order of description."""
    return [one for one in _SCHEMES.values() if kind in ("", one.kind)]


def forms(kind: str, default: str = "", without: str = "") -> str:
    """Return how URIs of trustassay's own schemes for a kind look, for a help text."""
    texts = []
    for one in (one for one in schemes(kind) if one.name in OWN and one.name != without):
        text = one.form.partition("[?")[0]
        text += "[@BASE_URL]" if one.address and text.endswith(":MODEL") else ""
        texts.append(f"{text} (the default)" if one.name == default else text)
    return ", ".join(texts)


def installed() -> dict[str, list[EntryPoint]]:
    """Return the entry points by which installed packages add schemes, by the scheme."""
    result: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        result.setdefault(entry.name, []).append(entry)
    return result


def package_of(entry: EntryPoint) -> str:
    """Return name and version of the package that an entry point belongs to."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"


def load_plugin(entry: EntryPoint) -> list[Scheme]:
    """Import what another package describes, and return it.

    Raises:
        BackendError: it cannot be imported, or describes something else; names the package.
    """
    package = package_of(entry)
    known = [one for one in schemes() if one.name == entry.name]
    if entry.name not in OWN and known and known[0].package in (package, ""):
        return known
    before = set(_SCHEMES)
    token = _PLUGIN.set((entry.name, package))
    try:
        if known:
            raise ValueError(f"{known[0].package or 'trustassay'} has this scheme already")
        entry.load()
        if not (result := [one for one in schemes() if one.name == entry.name]):
            raise ValueError("it describes no such scheme")
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


def _innermost(kind: str, choice: Any) -> tuple[Scheme | None, str, str]:
    """Return the scheme of a choice, or of the backend inside it, with its URI and its rest."""
    if not isinstance(choice, str):
        return None, "", ""
    result, rest = find(kind, choice)
    if result is not None and result.name == "chat":
        from trustassay.backends.chat_entailer import judging_of

        kind, choice = "chat model", judging_of(rest)[0]
        result, rest = find(kind, choice)
    while result is not None and result.wraps and rest:
        kind, choice = result.wraps, rest
        result, rest = find(kind, choice)
    return result, choice, rest


def _unknown(kind: str, choice: str) -> UnknownNameError:
    """Return the error for a choice of no known scheme, with the one that it may be meant for."""
    what, name = KINDS[kind], _split(choice)[0]
    known = {one.name: one for one in schemes(kind)}
    if kind == "entailer":
        known |= {one.name: one for one in schemes("chat model") if one.name not in known}
    if choice.startswith(("http://", "https://")) and "openai" in known:
        return UnknownNameError(
            f"unknown {what}: an address does not name a model; did you mean openai:MODEL@{choice}?"
        )
    for one in known.values():
        if one.models and re.match(one.models, choice, re.IGNORECASE):
            message = f"unknown {what} {choice!r}; did you mean {one.name}:{choice}?"
            return UnknownNameError(message)
    if others := [one for one in _SCHEMES.values() if one.name == name and one.package]:
        kinds = " and ".join(KINDS[one.kind] for one in others)
        message = f"{name}: the package {others[0].package} has it as {kinds}, and not as {what}"
        return UnknownNameError(message)
    if OF_PAPERS.get(name) == kind:
        return UnknownNameError(
            f"{what} {name}: needs trustassay-papers, pip install ./papers in a clone"
        )
    every = {*known, *installed(), *OF_PAPERS} - {""}
    fit = {one for one in every if OF_PAPERS.get(one, kind) == kind}
    fit |= set(recommended.recommended() if kind in ASKED else ())
    return UnknownNameError(did_you_mean(what, name, fit))


# ------------------------------------------------------------------- the schemes of trustassay


def _lazy(path: str) -> Callable[..., Any]:
    """Return a function that is imported when it is called: ``MODULE:NAME`` of this package."""
    module, _, name = path.partition(":")

    def call(*given: Any, **options: Any) -> Any:
        return attrgetter(name)(import_module(f"trustassay.{module}"))(*given, **options)

    return call


def _truth(text: str) -> bool:
    if text not in ("yes", "true", "1", "no", "false", "0"):
        raise ValueError(text)
    return text in ("yes", "true", "1")


def _count(text: str) -> int:
    if text.isdecimal() and int(text):
        return int(text)
    raise ValueError(text)


def recorded(rest: str) -> Any:
    """Return the chat model that answers from a file."""
    file, _, model = rest.partition("?model=")  # whatever follows: names of models have ? and &
    return _lazy("backends.replay:ReplayChat")(file, model or None)


def asked(uri: str, prefix: str = "chat:") -> Any:
    """Return a chat model as an entailer; ``prefix`` stands before its name."""
    from trustassay.backends.chat_entailer import ChatEntailer, judging_of

    model, judging = judging_of(uri)
    return ChatEntailer(load("chat model", model), judging, prefix)


def near_words(rest: str = "") -> Any:
    """Return the nearest words of the word table; those of a file by the scheme that it has now."""
    if not rest:
        return _lazy("backends.word_substitutes:NearWords")()
    print("the source embedding:FILE is now word2vec:FILE, of trustassay-papers", file=sys.stderr)
    return load("distractors", f"word2vec:{rest}")


def of_python(kind: str, path: str = "") -> Any:
    """Return the backend of a kind that ``MODULE:NAME`` of Python is."""
    from trustassay.backends.functions import as_backend, imported

    return as_backend(kind, imported(path), f"python:{path}")


_READERS: Mapping[str, Callable[[str], Any]] = {
    **{"text": str, "whole": int, "count": _count, "truth": _truth},
    "list": lambda text: text.split(","),
}


def _describe(row: dict[str, Any]) -> None:
    """Register a row of ``schemes.toml``."""
    kinds, name, load_by = row.pop("kind"), row.pop("name"), _lazy(row.pop("load"))
    first = row.pop("first", False)
    if "options" in row:
        row["options"] = {key: _READERS[reader] for key, reader in row["options"].items()}
    row["needs"] = {package: requirement(extra) for package, extra in row.get("needs", {}).items()}
    if row.pop("address", False):
        row["address"] = partial(_lazy("backends.http:service_address"), name)
    if wraps := row.get("wraps"):
        row["default"] = DEFAULT_ENTAILER if wraps == "entailer" else DEFAULT_EMBEDDER
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        scheme(name, kind=kind, **row)(partial(load_by, kind) if first else load_by)


for _row in tomllib.loads(files(__package__).joinpath("schemes.toml").read_text("utf-8"))["scheme"]:
    _describe(_row)

OWN = frozenset(one.name for one in schemes())
"""The schemes that come with trustassay; no other package can have one of these names."""
