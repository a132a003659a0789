"""One round trip to the backend that a URI names."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from trustassay.backends import resolve
from trustassay.backends.checking import CHECK_PAIRS, check_labels
from trustassay.backends.functions import imported
from trustassay.capabilities import ChatRequest, EndpointLimits, LocalChatModel, Reply
from trustassay.errors import BackendError, UnknownNameError

__all__ = ["Found", "tried"]

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
    from trustassay.backends.loading import config_of, one_line

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
