"""Which backends work here, whether they pass their tests, and how fast they are; and plugins."""

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
from trustassay.backends.embedded import read_card, weights_folder
from trustassay.backends.endpoint_chat import run_blocking, run_in_time
from trustassay.backends.functions import CHECK_PAIRS, check_labels, import_object
from trustassay.backends.http import find_base_variable
from trustassay.backends.registry import Scheme, find, load, load_plugin, package_of, schemes
from trustassay.backends.resolve import make_blocking
from trustassay.core.capabilities import ChatRequest, LocalChatModel
from trustassay.errors import BackendError, UnknownNameError
from trustassay.text.numbers import gigabytes_text

REQUEST = ChatRequest.of("Say yes.", temperature=None, max_tokens=16)


@dataclass(frozen=True, slots=True)
class BackendState:
    """What is known about one backend on this machine."""

    name: str
    """The form of its URI."""
    capability: str
    """What it is used for."""
    state: str
    """Whether it can be used, or what is missing."""
    load: str = ""
    """Time that loading took."""
    speed: str = ""
    """Time of a call, or calls a second."""
    broken: bool = False
    """Whether it does not work although it should."""


def try_backend(uri: str) -> BackendState:
    """Send a small request to the backend of a URI, and return how long it took.

    ``chat=``, ``embedder=`` or ``entailer=`` before the URI chooses what it is tried as. Otherwise
    an address is a chat model, and for a local model or an object it depends on what it can do.

    Raises:
        UnknownNameError: no such scheme or option.
    """
    capability = ""
    started_at = time.perf_counter()
    try:
        kind, uri = _choose_kind(uri)
        of_kind, ask = _TRIALS[kind]
        capability = _USED_FOR[of_kind]
        is_asked = not uri.startswith("replay:")  # whatever is asked is not in its file
        backend = load(of_kind, uri)
        loaded_at = time.perf_counter()
        remark = ask(backend) if is_asked else ""
        answered_at = time.perf_counter()
    # The user's mistake, not a state of the backend.
    except UnknownNameError:
        raise
    except Exception as error:  # a function of the user's may raise anything
        is_ours = isinstance(error, BackendError)
        reason = str(error) if is_ours else f"{type(error).__name__}: {error}"
        return BackendState(uri, capability, f"broken: {reason}", broken=True)
    speed = f"{answered_at - loaded_at:.2f} s per call" if is_asked else ""
    return BackendState(uri, capability, f"works{remark}", f"{loaded_at - started_at:.2f} s", speed)


def _choose_kind(uri: str) -> tuple[str, str]:
    """Return what a URI is tried as, and the URI itself."""
    for kind in _TRIALS:
        if uri.startswith(f"{kind}="):
            return kind, uri.removeprefix(f"{kind}=")
    scheme, _, remainder = uri.partition(":")
    if scheme == "hf":
        return _choose_kind_of_model(remainder.partition("?")[0]), uri
    if scheme == "python":
        return _choose_kind_of_object(import_object(remainder)), uri
    # Chat comes first: an address that can be several things is tried as a chat model.
    fit = (kind for kind, (of_kind, _) in _TRIALS.items() if find(of_kind, uri)[0])
    return next(fit, "chat"), uri


def _choose_kind_of_model(name: str) -> str:
    """Return what a model of the hub is tried as, by the architecture in its config."""
    from trustassay.backends.hf_loading import errors_in_one_line, load_config

    with errors_in_one_line(f"hf:{name}", Exception):
        _, config = load_config(name)
    kinds = " ".join(config.architectures or ())
    if "ForSequenceClassification" in kinds:
        return "entailer"
    return "chat" if "For" in kinds or "LMHead" in kinds else "embedder"


def _choose_kind_of_object(candidate: Any) -> str:
    """Return what an object is tried as: by its methods, or by the parameters of a function."""
    for kind, methods in (
        ("entailer", ["scores"]),
        ("embedder", ["vectors", "avectors"]),
        ("chat", ["reply", "replies"]),
    ):
        if any(hasattr(candidate, method) for method in methods):
            return kind
    try:
        parameters = inspect.signature(candidate).parameters.values()
    except (TypeError, ValueError):
        return "chat"
    # f(premise, hypothesis) or f(prompt)
    needed = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    return "entailer" if len(needed) > 1 else "chat"


def _try_chat(model: Any) -> str:
    """Ask a chat model, and return a remark."""
    remark = f", needs {gigabytes_text(model.memory)} of memory" if hasattr(model, "memory") else ""
    # A local model has no connection to close, and no time limit.
    if isinstance(model, LocalChatModel):
        model.replies([REQUEST])
        return remark
    reply = run_blocking(model, run_in_time(model, model.reply(REQUEST)))
    return remark + (f", does not accept {', '.join(reply.dropped)}" if reply.dropped else "")


def _try_entailer(entailer: Any) -> str:
    """Ask an entailer, and return a remark."""
    if not hasattr(entailer, "chat_model"):
        entailer.scores(CHECK_PAIRS[:1])
        return ""
    check_labels(entailer)
    has_probabilities = entailer.scores(CHECK_PAIRS[:1])[0].max() < 1
    return ", with probabilities" if has_probabilities else ", with verdicts only, no probabilities"


def _try_embedder(embedder: Any) -> str:
    """Ask an embedder, and return a remark."""
    (vector,) = make_blocking(embedder).vectors([CHECK_PAIRS[0][0]])
    return f", {len(vector)} dimensions"


_USED_FOR = {
    "entailer": "entailment",
    "chat model": "chat",
    "decision model": "judging",
    "embedder": "embedding",
}
"""Kinds of backends that are listed, and what they are used for."""
_TRIALS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "chat": ("chat model", _try_chat),
    "embedder": ("embedder", _try_embedder),
    "entailer": ("entailer", _try_entailer),
}
"""What a backend can be tried as: its kind, and the function that asks it and returns a remark."""

MEASURED_S = 1.0
TIMING_PREMISE = "The observatory on the hill was built by the town between the wars. " * 6
"""Text of about 100 tokens to measure the speed with."""
TIMING_SENTENCE = "The town built observatory number {} on the hill."


def iterate_backends(*, check: bool) -> Iterator[BackendState]:
    """Yield every backend; with ``check``, those that need no name are loaded, tested and timed."""
    rows: dict[tuple[Any, ...], list[Scheme]] = {}
    for scheme in schemes():
        if scheme.kind in _USED_FOR and scheme.name != "chat":
            separate_kind = scheme.kind if scheme.name in _TESTED else ""
            # One row for all kinds of a scheme, except where each kind is tested by itself.
            rows.setdefault((scheme.name, separate_kind, *(scheme.needs or {})), []).append(scheme)
    for (name, *_), schemes_of_row in rows.items():
        used_for = [_USED_FOR[scheme.kind] for scheme in schemes_of_row]
        if schemes_of_row[0].kind == "chat model" and name not in ("hf", "python"):
            used_for.insert(1, _USED_FOR["entailer"])  # it is asked in words
        yield _describe_state(schemes_of_row[-1], ", ".join(used_for), check=check)


def _describe_state(scheme: Scheme, used_for: str, *, check: bool) -> BackendState:
    """Return the state of a scheme."""
    if missing := scheme.missing():
        pip = [*missing.values()][-1]
        state = f"pip install {pip} ({' and '.join(missing)} missing)"
        return BackendState(scheme.form, used_for, state)
    if scheme.name in _TESTED:
        test = _TESTED[scheme.name].get(scheme.kind)
        return (
            _check_backend(scheme, used_for, test)
            if check
            else BackendState(scheme.name, used_for, "yes")
        )
    return (
        _describe_endpoint(scheme, used_for)
        if scheme.address
        else BackendState(scheme.form, used_for, "yes")
    )


def _describe_endpoint(scheme: Scheme, used_for: str) -> BackendState:
    """Return whether the key of an endpoint is set; never the key itself."""
    assert scheme.address
    try:
        address = scheme.address("MODEL")
    except BackendError as error:  # what the environment says of the address
        return BackendState(scheme.form, used_for, f"broken: {error}", broken=True)
    state = "yes, without a key"
    if address.key:
        state = f"{address.key} is {'set' if os.environ.get(address.key) else 'not set'}"
    if os.environ.get(find_base_variable(address.scheme)):
        state += f"; base URL {address.base}"
    return BackendState(scheme.form, used_for, state)


class Plugin(NamedTuple):
    """What an installed package adds."""

    name: str
    """Name of the addition."""
    kind: str
    """``scheme``, ``metric``, ``capability`` or ``command``."""
    package: str
    """Name and version of the package."""
    state: str
    """Kinds of backends of a scheme, or why it cannot be loaded."""
    broken: bool
    """Whether it cannot be loaded."""


def iterate_plugins() -> Iterator[Plugin]:
    """Yield what other installed packages add: schemes, metrics, capabilities and commands."""
    for group, kind in _ENTRY_POINT_GROUPS.items():
        for entry in sorted(entry_points(group=group), key=lambda point: point.name):
            # The built-in ones are no plugins.
            if entry.dist and entry.dist.name == "trustassay":
                continue
            state, broken = "", False
            try:
                if kind == "scheme":
                    state = ", ".join(point.kind for point in load_plugin(entry))
                else:
                    entry.load()
            except (Exception, SystemExit) as error:
                is_ours = isinstance(error, BackendError)
                reason = str(error) if is_ours else f"{type(error).__name__}: {error}"
                state, broken = f"broken: {reason}", True
            yield Plugin(entry.name, kind, package_of(entry), state, broken)


def _check_backend(
    scheme: Scheme, used_for: str, test: Callable[[Any], None] | None
) -> BackendState:
    """Load, test and time a backend."""
    started = time.perf_counter()
    try:
        backend = load(scheme.kind, scheme.name)
        seconds = time.perf_counter() - started
        if test:
            test(backend)
    except BackendError as error:
        return BackendState(scheme.name, used_for, f"broken: {error}", broken=True)
    if scheme.kind == "embedder":
        speed = f"{_measure_speed(backend.vectors, TIMING_SENTENCE.format):.0f} sentences/s"
    else:
        speed = f"{_measure_speed(backend.scores, _build_pair):.0f} pairs/s"
    return BackendState(scheme.name, used_for, "works", f"{seconds:.2f} s", speed)


def _build_pair(number: int) -> tuple[str, str]:
    """Return a pair to time an entailer with."""
    return f"Note {number}. {TIMING_PREMISE}", f"The town built {number} of them."


def _measure_speed(ask: Callable[[list[Any]], Any], item: Callable[[int], Any]) -> float:
    """Return items per second over at least a second; no item is used twice."""
    # New items every time: an embedder or an engine may remember earlier ones.
    batch, item_count = 64, 0
    started = time.perf_counter()
    while time.perf_counter() - started < MEASURED_S:
        ask([item(i) for i in range(item_count, item_count + batch)])
        item_count += batch
    return item_count / (time.perf_counter() - started)


def _test_embedded_entailer(backend: Any) -> None:
    """Check the labels, and the checksums of the weights."""
    check_labels(backend)
    for name, digest in read_card()["sha256"].items():
        if hashlib.sha256((weights_folder() / name).read_bytes()).hexdigest() != digest:
            raise BackendError(f"{name} differs from the file that was shipped")


def _test_embedder(backend: Any) -> None:
    """Check that a sentence is nearer to one about the same subject than to another."""
    same, other = CHECK_PAIRS[0][1], "The bank raised its interest rates."
    vectors = backend.vectors([CHECK_PAIRS[0][0], same, other])
    if not np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4):
        raise BackendError("its vectors are not of length 1")
    if vectors[0] @ vectors[1] <= vectors[0] @ vectors[2]:
        raise BackendError("its vectors do not tell sentences on different subjects apart")


_TESTED: dict[str, dict[str, Callable[[Any], None]]] = {
    "embedded": {"entailer": _test_embedded_entailer, "embedder": _test_embedder},
    "lexical": {},
}
"""Schemes that need no name, and their tests."""
_ENTRY_POINT_GROUPS = {
    registry.ENTRY_POINT_GROUP: "scheme",
    "trustassay.metrics": "metric",
    "trustassay.capabilities": "capability",
    "trustassay.commands": "command",
}
"""Groups of entry points, and what packages add by them."""
