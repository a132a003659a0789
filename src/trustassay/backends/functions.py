"""Python functions and objects as backends, and a check of the meaning of an entailer's labels."""

import asyncio
import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trustassay.backends.chat_text import chat_to_text
from trustassay.backends.vectors import scale_to_unit
from trustassay.core.capabilities import (
    BatchLimits,
    ChatModel,
    ChatRequest,
    DecisionModel,
    Embedder,
    EndpointLimits,
    Entailer,
    EntityLinker,
    LocalChatModel,
    Probabilities,
    Reply,
    Retriever,
    Similarity,
    SubstituteSource,
    TokenEmbedder,
    Vectors,
)
from trustassay.errors import BackendError, did_you_mean


class _Function:
    """A function as a backend."""

    what: ClassVar[str]
    """What it is wrapped as, for messages."""
    may_wait: ClassVar[bool] = False
    """Whether it may be a coroutine function."""

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        """Wrap a function.

        Raises:
            BackendError: it is not a function, or a coroutine function where none is possible.
        """
        if not callable(function) or isinstance(function, type):
            raise BackendError(
                f"expected {self.what} (an object or a function), got {function!r:.60}"
            )
        if inspect.iscoroutinefunction(function) and not self.may_wait:
            raise BackendError(
                f"expected a plain function as {self.what}, got a coroutine function"
            )
        self._function = function
        self.name = name or build_function_name(function)


class FunctionEntailer(_Function):
    """Wraps ``function(premise, hypothesis)`` as an entailer; it is called one pair at a time.

    The function returns a bool, a probability of entailment, or the three probabilities of
    entailment, neutral and contradiction.
    """

    what = "an entailer"
    limits = BatchLimits(items=32, tokens=None)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        """Return shape (n, 3): entailment, neutral, contradiction of n (premise, hypothesis)."""
        return np.array([self._to_probabilities(self._function(*pair)) for pair in pairs]).reshape(
            -1, 3
        )

    def _to_probabilities(self, value: Any) -> tuple[float, float, float]:
        """Return the three probabilities that a function's value stands for."""
        try:
            if np.ndim(value) == 0:
                entailment = float(value)
                return entailment, 1 - entailment, 0.0
            entailment, neutral, contradiction = map(float, value)
        except (TypeError, ValueError):
            raise BackendError(
                f"{self.name} returned {value!r:.60}; expected a bool, a probability or three "
                "probabilities (entailment, neutral, contradiction)"
            ) from None
        return entailment, neutral, contradiction


class FunctionEmbedder(_Function):
    """Wraps ``function(texts)``, which returns an array of shape (n, d), as an embedder."""

    what = "an embedder"

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (n, d).

        Raises:
            BackendError: the function returned anything other than n vectors of finite numbers, or
                one of length 0.
        """
        return scale_to_unit(self.name, texts, self._function(list(texts)))


class FunctionSimilarity(_Function):
    """Wraps ``function(text, reference)`` as a similarity; it is called one pair at a time."""

    limits = BatchLimits(items=32, tokens=None)
    exact = True
    what = "a similarity"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Return shape (n,) for n (text, reference)."""
        return np.array([self._to_number(self._function(*pair)) for pair in pairs], dtype=float)

    def _to_number(self, value: Any) -> float:
        """Return a function's value as a number."""
        try:
            return float(value)
        except (TypeError, ValueError):
            raise BackendError(f"{self.name} returned {value!r:.60}; expected a number") from None


def build_function_name(function: Callable[..., Any]) -> str:
    """Return the name of a backend that is a function."""
    kind = function if hasattr(function, "__qualname__") else type(function)
    module = getattr(kind, "__module__", "builtins")
    return f"function:{module}.{kind.__qualname__}{_code_digest(function)}"


def _code_digest(function: Callable[..., Any]) -> str:
    """Return a digest of the code and values of a function without a name of its own.

    Replies are stored under the backend's name, and all lambdas of a module have the same one.
    """
    code = getattr(function, "__code__", None)
    # "<lambda>" or "<locals>": the name does not say which function it is.
    if code is None or "<" not in function.__qualname__:
        return ""
    enclosed_values = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    values = [*code.co_consts, *enclosed_values, *(getattr(function, "__defaults__", None) or ())]
    # Only plain values: the text of other objects differs between processes.
    constants = [v for v in values if isinstance(v, str | int | float | bytes | None)]
    content = repr((code.co_code, code.co_names, constants)).encode("utf-8", "surrogatepass")
    return "#" + hashlib.blake2b(content, digest_size=4).hexdigest()


def import_object(path: str) -> Any:
    """Return the object that ``package.module:name`` names.

    Modules in the working folder are found, too, as with ``python -m``.

    Raises:
        BackendError: there is none, or its module cannot be imported.
    """
    module, _, name = path.partition(":")
    if not (module and name) or module.startswith("."):
        raise BackendError(f"python:{path}: expected python:MODULE:FUNCTION")
    # Appended, so that a local file cannot hide an installed package.
    if not {"", str(Path.cwd())} & set(sys.path):
        sys.path.append(str(Path.cwd()))
    try:
        result = importlib.import_module(module)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise BackendError(f"python:{path}: cannot import {module} ({reason})") from None
    try:
        return attrgetter(name)(result)
    except AttributeError:
        near = [public_name for public_name in dir(result) if not public_name.startswith("_")]
        raise BackendError(
            f"python:{path}: {did_you_mean(f'name in {module}', name, near)}"
        ) from None


class FunctionChat(_Function):
    """Wraps ``function(prompt)``, plain or async, which returns a text or a :class:`Reply`.

    The function receives the text of the chat
    (:func:`~trustassay.backends.chat_text.chat_to_text`). If its first parameter is called
    ``request`` or annotated as :class:`ChatRequest`, it receives the whole request, with
    temperature, seed and the other parameters. It is called once for each of ``n`` replies, unless
    it returns them all in one :class:`Reply`. A plain function is called in threads, several at a
    time.
    """

    what = "a chat model"
    may_wait = True
    shared = False  # what it calls may change under its name
    limits = EndpointLimits(concurrency=64, timeout_s=600, deadline_s=1800)

    def __init__(self, function: Callable[[Any], Any], name: str | None = None) -> None:
        super().__init__(function, name)
        self._passes_request = _wants_request(function)
        # An object with an async __call__ is no coroutine function itself.
        called = function if inspect.isroutine(function) else function.__call__  # type: ignore[operator]
        self._waits = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
        self._threads: ThreadPoolExecutor | None = None

    async def reply(self, request: ChatRequest) -> Reply:
        """Answer one request.

        Raises:
            BackendError: the function raised an exception, or returned a wrong type. A
                :class:`CallError` that it raises is passed on.
        """
        first = await self._call(request)
        reply_count = 1 + len(first.others)
        if reply_count >= request.n:
            return first
        # It returns several replies in one Reply, so calling it again would not complete them.
        if reply_count > 1:
            raise BackendError(f"{self.name} returned {reply_count} replies instead of {request.n}")
        other_replies = await asyncio.gather(*(self._call(request) for _ in range(request.n - 1)))
        return replace(first, others=tuple(other.text for other in other_replies))

    async def close(self) -> None:
        """Release the threads; calls in progress continue, but their results are not used."""
        if self._threads:
            self._threads.shutdown(wait=False, cancel_futures=True)
        self._threads = None

    async def _call(self, request: ChatRequest) -> Reply:
        """Call the function once, and return its value as a reply."""
        argument = request if self._passes_request else chat_to_text(request.messages)
        try:
            if self._waits:
                result = await self._function(argument)
            else:
                # Created late, as close() may have released them between two runs.
                if self._threads is None:
                    thread_count = self.limits.concurrency
                    self._threads = ThreadPoolExecutor(thread_count, "trustassay-function")
                loop = asyncio.get_running_loop()
                result = await loop.run_in_executor(
                    self._threads, _call_in_thread, self._function, argument
                )
                # A lambda, for example, may return a coroutine.
                if inspect.isawaitable(result):
                    result = await result
        except BackendError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".rstrip(": ")
            raise BackendError(f"{self.name} failed: {reason}") from error
        if isinstance(result, str):
            return Reply(result)
        if not isinstance(result, Reply):
            raise BackendError(f"{self.name} returned {result!r:.60}; expected a text or a Reply")
        return result


def _call_in_thread(function: Callable[[Any], Any], argument: Any) -> Any:
    """Call a function in a thread, and turn StopIteration into an error that a future can carry.

    Python 3.12 does the same by itself.
    """
    try:
        return function(argument)
    except StopIteration as error:
        raise RuntimeError(f"StopIteration {error}".strip()) from error


def _wants_request(function: Callable[[Any], Any]) -> bool:
    """Whether the first parameter of a function is a request, by its name or annotation."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some built-in functions do not tell
        return False
    if not parameters:
        return False
    note = parameters[0].annotation
    annotated = note is ChatRequest or str(note).rpartition(".")[2] == "ChatRequest"
    return annotated or parameters[0].name == "request"


_WRAPPERS: Mapping[str, tuple[Any, Any]] = {
    "chat model": (ChatModel | LocalChatModel, FunctionChat),
    "entailer": (Entailer, FunctionEntailer),
    "embedder": (Embedder, FunctionEmbedder),
    "similarity": (Similarity, FunctionSimilarity),
}
"""Kinds of backends that may be functions: an object's protocol, and a function's class."""
_OBJECT_PROTOCOLS: Mapping[str, tuple[type, str]] = {
    "decision model": (DecisionModel, "a decision model (an object with name and adecide)"),
    "token embedder": (TokenEmbedder, "a token embedder (an object with name and token_vectors)"),
    "retriever": (Retriever, "a retriever (an object with name and search)"),
    "linker": (
        EntityLinker,
        "a linker (an object with name and link(texts), which returns for each text a list of "
        "entities with id, name, start, end)",
    ),
    "distractors": (
        SubstituteSource,
        "a source of distractors (an object with name and substitutes)",
    ),
}
"""Kinds of backends that must be objects: their protocol, and its description."""
_ENDPOINT_METHODS = {"embedder": "avectors", "linker": "alink", "distractors": "asubstitutes"}
"""Methods that an endpoint has instead of the protocol's, by kind of backend."""


def wrap_as_backend(kind: str, candidate: Any, name: str | None = None) -> Any:
    """Return an object as a backend of a kind, or wrap a function as one with that name.

    Raises:
        BackendError: neither is possible.
    """
    # An endpoint has async methods, and does not fit the protocol below.
    if not isinstance(candidate, type) and hasattr(candidate, _ENDPOINT_METHODS.get(kind, "-")):
        return candidate
    if kind in _OBJECT_PROTOCOLS:
        protocol, what = _OBJECT_PROTOCOLS[kind]
        if isinstance(candidate, type) or not isinstance(candidate, protocol):
            raise BackendError(f"expected {what}, got {candidate!r:.60}")
        return candidate
    protocol, wrapper = _WRAPPERS[kind]
    # A class fits the protocol by its attributes, but cannot be called like an instance.
    if isinstance(candidate, type):
        message = f"expected {wrapper.what} object or function"
        raise BackendError(f"{candidate.__name__} is a class; {message}")
    if isinstance(candidate, protocol) or (kind == "embedder" and hasattr(candidate, "vectors")):
        return candidate
    if kind == "entailer" and isinstance(candidate, ChatModel | LocalChatModel):
        from trustassay.backends.chat_entailer import ChatEntailer

        return ChatEntailer(candidate)
    return wrapper(candidate, name)


_CHECK_PREMISE = "A woman is playing the guitar on a stage in front of a large crowd."
CHECK_PAIRS = (
    (_CHECK_PREMISE, "A woman is playing a musical instrument."),
    (_CHECK_PREMISE, "The woman has two younger brothers."),
    (_CHECK_PREMISE, "There is nobody on the stage."),
)
"""An entailed, a neutral and a contradicted pair, which show the order of the labels."""


def check_labels(entailer: Entailer, *, labels: int = 3, advice: str = "") -> None:
    """Score the three pairs: each label must have its highest probability for its own pair.

    With two ``labels`` contradiction is not checked.

    Raises:
        BackendError: one has not; the message has the probabilities, and ``advice``.
    """
    rows = entailer.scores(CHECK_PAIRS)
    for label, column in (("entailment", 0), ("contradiction", 2)):
        chances = rows[:, column]  # the pair of this label has the column's number
        if column < labels and chances[column] <= np.delete(chances, column).max():
            raise BackendError(
                f"{entailer.name}: its labels look wrong: P({label}) of an "
                "entailed, a neutral and a contradicted test pair is "
                f"{chances[0]:.3f}, {chances[1]:.3f}, {chances[2]:.3f}"
                f"{advice}"
            )
