"""Which backends work on this machine, whether they pass their tests, and how fast they are."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from trustassay.backends import resolve
from trustassay.backends.embedded import card, weights_folder
from trustassay.backends.functions import CHECK_PAIRS, check_labels, imported
from trustassay.capabilities import ChatRequest, EndpointLimits, LocalChatModel, Reply
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
        capability, load, ask = _KINDS[kind]
        backend = load(uri)
        loaded = time.perf_counter()
        remark = ask(backend) if ask else ""
        asked = time.perf_counter()
    except UnknownNameError:
        raise
    except Exception as error:  # a function of the user's may raise anything
        known = isinstance(error, BackendError)
        reason = str(error) if known else f"{type(error).__name__}: {error}"
        return Found(uri, capability, f"broken: {reason}", broken=True)
    speed = f"{asked - loaded:.2f} s per call" if ask else ""
    return Found(uri, capability, f"works{remark}", f"{loaded - started:.2f} s", speed)


def _kind(uri: str) -> tuple[str, str]:
    """Return what a URI is to be tried as, and the URI itself."""
    for kind in _KINDS:
        if uri.startswith(f"{kind}="):
            return kind, uri.removeprefix(f"{kind}=")
    scheme, _, rest = uri.partition(":")
    if scheme.partition("?")[0] in ("embedded", "lexical"):
        return "entailer", uri
    if scheme == "replay":
        return "replay", uri
    if scheme == "hf":
        return _kind_of_model(rest.partition("?")[0]), uri
    if scheme == "python":
        return _kind_of_object(imported(rest)), uri
    return "chat", uri


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
    if isinstance(model, LocalChatModel):
        (reply,) = model.replies([REQUEST])
    else:
        reply = asyncio.run(_replied(model))
    return f", without {', '.join(reply.dropped)}" if reply.dropped else ""


async def _replied(model: Any) -> Reply:
    limits = getattr(model, "limits", EndpointLimits())
    try:
        async with asyncio.timeout(limits.timeout_s):
            reply: Reply = await model.reply(REQUEST)
            return reply
    except TimeoutError:
        raise BackendError(f"{model.name}: no reply within {limits.timeout_s:g} s") from None
    finally:
        if close := getattr(model, "close", None):
            await close()


def _entailer(entailer: Any) -> str:
    if not hasattr(entailer, "chat_model"):
        entailer.scores(CHECK_PAIRS[:1])
        return ""
    check_labels(entailer)
    told = entailer.scores(CHECK_PAIRS[:1])[0].max() < 1
    return ", with probabilities" if told else ", with verdicts and no probabilities"


def _embedder(embedder: Any) -> str:
    (vector,) = resolve.blocking(embedder).vectors([CHECK_PAIRS[0][0]])
    return f", {len(vector)} dimensions"


class _Kind(NamedTuple):
    """What a backend is for, how it is loaded, and how it is asked; returns a remark."""

    capability: str
    load: Callable[[str], Any]
    ask: Callable[[Any], str] | None


_KINDS = {
    "chat": _Kind("chat", resolve.chat, _chat),
    "embedder": _Kind("embedding", resolve.embedder, _embedder),
    "entailer": _Kind("entailment", resolve.entailer, _entailer),
    "replay": _Kind("chat", resolve.chat, None),  # whatever is asked is not in the file
}


MEASURED_S = 1.0
PREMISE = "The observatory on the hill was built by the town between the wars. " * 6
"""About 100 tokens, to measure with."""


def backends(*, check: bool) -> Iterator[Found]:
    """Yield every backend; with ``check`` those that need no name are loaded, tested and timed."""
    packages = [name for name in ("onnxruntime", "tokenizers") if find_spec(name) is None]
    for capability, load, test, run, unit in (
        ("entailment", resolve.entailer, _test_embedded_entailer, _entail, "pairs/s"),
        ("embedding", resolve.embedder, _test_embedder, _embed, "sentences/s"),
    ):
        if packages:
            yield Found("embedded", capability, _missing("embedded", packages))
        elif check:
            yield _checked("embedded", capability, load, test, run, unit)
        else:
            yield Found("embedded", capability, "yes")
    if check:
        yield _checked(
            "lexical", "entailment", resolve.entailer, lambda _: None, _entail, "pairs/s"
        )
    else:
        yield Found("lexical", "entailment", "yes")
    yield from _local()
    yield from _endpoints()
    yield Found("replay:FILE", "chat, entailment", "yes")
    yield Found("python:MODULE:FUNCTION", "entailment, chat, embedding", "yes")


def _local() -> Iterator[Found]:
    """Yield the backends that run models of the Hugging Face hub."""
    for extra, capability, packages in (
        ("hf", "entailment, chat", ("torch", "transformers")),
        (
            "sentence-transformers",
            "embedding",
            ("torch", "transformers", "sentence_transformers"),
        ),
    ):
        missing = [name for name in packages if find_spec(name) is None]
        yield Found("hf:ID-or-path", capability, _missing(extra, missing) if missing else "yes")


def _endpoints() -> Iterator[Found]:
    """Yield the endpoints, and whether their keys are set; never a key."""
    from trustassay.backends.anthropic import anthropic_address
    from trustassay.backends.gemini import gemini_address
    from trustassay.backends.openai import openai_address

    for address_of, capability in (
        (openai_address, "chat, entailment, embedding"),
        (anthropic_address, "chat, entailment"),
        (gemini_address, "chat, entailment"),
    ):
        try:
            address = address_of("MODEL")
        except BackendError as error:  # what the environment says of the address
            name = address_of.__name__.removesuffix("_address")
            yield Found(f"{name}:MODEL", capability, f"broken: {error}", broken=True)
            continue
        state = f"{address.key} is {'set' if os.environ.get(address.key) else 'not set'}"
        if os.environ.get(f"{address.scheme.upper()}_BASE_URL"):
            state += f"; asks {address.base}"
        yield Found(f"{address.scheme}:MODEL", capability, state)


def _missing(extra: str, packages: list[str]) -> str:
    return f"pip install 'trustassay[{extra}]' ({' and '.join(packages)} missing)"


def _checked(
    name: str,
    capability: str,
    load: Callable[[str], Any],
    test: Callable[[Any], None],
    run: Callable[[Any, int, int], None],
    unit: str,
) -> Found:
    started = time.perf_counter()
    try:
        backend = load(name)
        seconds = time.perf_counter() - started
        test(backend)
    except BackendError as error:
        return Found(name, capability, f"broken: {error}", broken=True)
    return Found(
        name, capability, "works", f"{seconds:.2f} s", f"{_speed(backend, run):.0f} {unit}"
    )


def _speed(backend: Any, run: Callable[[Any, int, int], None]) -> float:
    """Return items per second, over at least a second."""
    batch, done = 64, 0
    started = time.perf_counter()
    while time.perf_counter() - started < MEASURED_S:
        run(backend, done, batch)
        done += batch
    return done / (time.perf_counter() - started)


def _entail(backend: Any, start: int, n: int) -> None:
    """Ask for ``n`` pairs that nothing has seen before."""
    numbers = range(start, start + n)
    backend.scores([(f"Note {i}. {PREMISE}", f"The town built {i} of them.") for i in numbers])


def _embed(backend: Any, start: int, n: int) -> None:
    numbers = range(start, start + n)
    backend.vectors([f"The town built observatory number {i} on the hill." for i in numbers])


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
