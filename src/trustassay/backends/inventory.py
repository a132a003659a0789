"""Which backends work here, whether they pass their tests and how fast they are; and plugins."""

import asyncio
import hashlib
import inspect
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, NamedTuple

import numpy as np

from trustassay.backends import registry
from trustassay.backends.embedded import card, weights_folder
from trustassay.backends.endpoint_chat import in_time, then_closed
from trustassay.backends.functions import CHECK_PAIRS, check_labels, imported
from trustassay.backends.registry import Scheme, find, load, load_plugin, package_of, schemes
from trustassay.backends.resolve import blocking
from trustassay.capabilities import ChatRequest, LocalChatModel
from trustassay.errors import BackendError, UnknownNameError

REQUEST = ChatRequest.of("Say yes.", temperature=None, max_tokens=16)


@dataclass(frozen=True, slots=True)
class Found:
    """A backend, what it is for, and what was found; ``broken`` where it should work."""

    name: str
    capability: str
    state: str
    load: str = ""
    speed: str = ""
    broken: bool = False


def tried(uri: str) -> Found:
    """Send a small request to the backend of a URI, and return how long it took.

    ``chat=``, ``embedder=`` or ``entailer=`` before the URI chooses what it is tried as. Otherwise
    an address is a chat model, and for a local model or an object it depends on what it can do.

    Raises:
        UnknownNameError: no such scheme or option.
    """
    capability = ""
    started = time.perf_counter()
    try:
        kind, uri = _kind(uri)
        of_kind, ask = _TRIALS[kind]
        capability = _USED_FOR[of_kind]
        is_asked = not uri.startswith("replay:")  # whatever is asked is not in its file
        backend = load(of_kind, uri)
        loaded = time.perf_counter()
        remark = ask(backend) if is_asked else ""
        asked = time.perf_counter()
    except UnknownNameError:
        raise
    except Exception as error:  # a function of the user's may raise anything
        known = isinstance(error, BackendError)
        reason = str(error) if known else f"{type(error).__name__}: {error}"
        return Found(uri, capability, f"broken: {reason}", broken=True)
    speed = f"{asked - loaded:.2f} s per call" if is_asked else ""
    return Found(uri, capability, f"works{remark}", f"{loaded - started:.2f} s", speed)


def _kind(uri: str) -> tuple[str, str]:
    """Return what a URI is to be tried as, and the URI itself."""
    for kind in _TRIALS:
        if uri.startswith(f"{kind}="):
            return kind, uri.removeprefix(f"{kind}=")
    scheme, _, rest = uri.partition(":")
    if scheme == "hf":
        return _kind_of_model(rest.partition("?")[0]), uri
    if scheme == "python":
        return _kind_of_object(imported(rest)), uri
    fit = (kind for kind, (of_kind, _) in _TRIALS.items() if find(of_kind, uri)[0])
    return next(fit, "chat"), uri


def _kind_of_model(name: str) -> str:
    from trustassay.backends.hf_loading import config_of, one_line

    with one_line(f"hf:{name}", Exception):
        _, config = config_of(name)
    kinds = " ".join(config.architectures or ())
    if "ForSequenceClassification" in kinds:
        return "entailer"
    return "chat" if "For" in kinds or "LMHead" in kinds else "embedder"


def _kind_of_object(found: Any) -> str:
    for kind, methods in (
        ("entailer", ["scores"]),
        ("embedder", ["vectors", "avectors"]),
        ("chat", ["reply", "replies"]),
    ):
        if any(hasattr(found, method) for method in methods):
            return kind
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return "chat"
    needed = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    return "entailer" if len(needed) > 1 else "chat"


def _chat(model: Any) -> str:
    remark = f", takes {model.memory / 1e9:.1f} GB of memory" if hasattr(model, "memory") else ""
    if isinstance(model, LocalChatModel):
        model.replies([REQUEST])
        return remark
    reply = asyncio.run(then_closed(model, in_time(model, model.reply(REQUEST))))
    return remark + (f", without {', '.join(reply.dropped)}" if reply.dropped else "")


def _entailer(entailer: Any) -> str:
    if not hasattr(entailer, "chat_model"):
        entailer.scores(CHECK_PAIRS[:1])
        return ""
    check_labels(entailer)
    told = entailer.scores(CHECK_PAIRS[:1])[0].max() < 1
    return ", with probabilities" if told else ", with verdicts and no probabilities"


def _embedder(embedder: Any) -> str:
    (vector,) = blocking(embedder).vectors([CHECK_PAIRS[0][0]])
    return f", {len(vector)} dimensions"


_USED_FOR = {"entailer": "entailment", "chat model": "chat", "embedder": "embedding"}
"""Kinds of backends that are listed, and what they are used for."""
_TRIALS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "chat": ("chat model", _chat),
    "embedder": ("embedder", _embedder),
    "entailer": ("entailer", _entailer),
}
"""As what a backend is tried: its kind, and how it is asked; that returns a remark."""

MEASURED_S = 1.0
PREMISE = "The observatory on the hill was built by the town between the wars. " * 6
"""About 100 tokens, to measure with."""
SENTENCE = "The town built observatory number {} on the hill."


def backends(*, check: bool) -> Iterator[Found]:
    """Yield every backend; with ``check`` those that need no name are loaded, tested and timed."""
    rows: dict[tuple[Any, ...], list[Scheme]] = {}
    for one in schemes():
        if one.kind in _USED_FOR and one.name != "chat":
            alone = one.kind if one.name in _TESTED else ""
            rows.setdefault((one.name, alone, *(one.needs or {})), []).append(one)
    for (name, *_), described in rows.items():
        used_for = [_USED_FOR[one.kind] for one in described]
        if described[0].kind == "chat model" and name not in ("hf", "python"):
            used_for.insert(1, _USED_FOR["entailer"])  # it is asked in words
        yield _state(described[-1], ", ".join(used_for), check=check)


def _state(one: Scheme, used_for: str, *, check: bool) -> Found:
    if missing := one.missing():
        pip = [*missing.values()][-1]
        state = f"pip install {pip} ({' and '.join(missing)} missing)"
        return Found(one.form, used_for, state)
    if one.name in _TESTED:
        test = _TESTED[one.name].get(one.kind)
        return _checked(one, used_for, test) if check else Found(one.name, used_for, "yes")
    return _endpoint(one, used_for) if one.address else Found(one.form, used_for, "yes")


def _endpoint(one: Scheme, used_for: str) -> Found:
    """Return whether the key of an endpoint is set; never a key."""
    assert one.address
    try:
        address = one.address("MODEL")
    except BackendError as error:  # what the environment says of the address
        return Found(one.form, used_for, f"broken: {error}", broken=True)
    state = f"{address.key} is {'set' if os.environ.get(address.key) else 'not set'}"
    if os.environ.get(f"{address.scheme.upper()}_BASE_URL"):
        state += f"; asks {address.base}"
    return Found(one.form, used_for, state)


class Plugin(NamedTuple):
    """What an installed package adds: its ``kind`` (scheme, metric, ...), and whether it loads."""

    name: str
    kind: str
    package: str
    state: str
    broken: bool


def plugins() -> Iterator[Plugin]:
    """Yield what other installed packages add: schemes, metrics, capabilities and commands."""
    for group, kind in _GROUPS.items():
        for entry in sorted(entry_points(group=group), key=lambda one: one.name):
            if entry.dist and entry.dist.name == "trustassay":
                continue
            state, broken = "", False
            try:
                if kind == "scheme":
                    state = ", ".join(one.kind for one in load_plugin(entry))
                else:
                    entry.load()
            except (Exception, SystemExit) as error:
                known = isinstance(error, BackendError)
                reason = str(error) if known else f"{type(error).__name__}: {error}"
                state, broken = f"broken: {reason}", True
            yield Plugin(entry.name, kind, package_of(entry), state, broken)


def _checked(one: Scheme, used_for: str, test: Callable[[Any], None] | None) -> Found:
    started = time.perf_counter()
    try:
        backend = load(one.kind, one.name)
        seconds = time.perf_counter() - started
        if test:
            test(backend)
    except BackendError as error:
        return Found(one.name, used_for, f"broken: {error}", broken=True)
    if one.kind == "embedder":
        speed = f"{_speed(backend.vectors, SENTENCE.format):.0f} sentences/s"
    else:
        speed = f"{_speed(backend.scores, _pair):.0f} pairs/s"
    return Found(one.name, used_for, "works", f"{seconds:.2f} s", speed)


def _pair(number: int) -> tuple[str, str]:
    return f"Note {number}. {PREMISE}", f"The town built {number} of them."


def _speed(ask: Callable[[list[Any]], Any], item: Callable[[int], Any]) -> float:
    """Return items per second, each seen for the first time, over at least a second."""
    batch, done = 64, 0
    started = time.perf_counter()
    while time.perf_counter() - started < MEASURED_S:
        ask([item(i) for i in range(done, done + batch)])
        done += batch
    return done / (time.perf_counter() - started)


def _test_embedded_entailer(backend: Any) -> None:
    check_labels(backend)
    for name, digest in card()["sha256"].items():
        if hashlib.sha256((weights_folder() / name).read_bytes()).hexdigest() != digest:
            raise BackendError(f"{name} differs from the file that was shipped")


def _test_embedder(backend: Any) -> None:
    """A sentence must be nearer to another about the same than to one about something else."""
    same, other = CHECK_PAIRS[0][1], "The bank raised its interest rates."
    vectors = backend.vectors([CHECK_PAIRS[0][0], same, other])
    if not np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4):
        raise BackendError("its vectors are not of length 1")
    if vectors[0] @ vectors[1] <= vectors[0] @ vectors[2]:
        raise BackendError("its vectors do not distinguish subjects")


_TESTED: dict[str, dict[str, Callable[[Any], None]]] = {
    "embedded": {"entailer": _test_embedded_entailer, "embedder": _test_embedder},
    "lexical": {},
}
"""Schemes that need no name, and their tests."""
_GROUPS = {
    registry.ENTRY_POINT_GROUP: "scheme",
    "trustassay.metrics": "metric",
    "trustassay.capabilities": "capability",
    "trustassay.commands": "command",
}
"""Groups of entry points by which packages add something, and what."""
