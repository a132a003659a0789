"""Python functions and objects as backends, and a check of what an entailer's labels mean."""

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

from trustassay.backends.chat_text import plain
from trustassay.capabilities import (
    BatchLimits,
    ChatModel,
    ChatRequest,
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
    """A function as a backend; ``what`` it is wrapped as, and whether that may wait for others."""

    what: ClassVar[str]
    may_wait: ClassVar[bool] = False

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        """Wrap a function; raises :class:`BackendError` for what is none, or may not wait."""
        if not callable(function) or isinstance(function, type):
            raise BackendError(
                f"expected {self.what} (an object or a function), got {function!r:.60}"
            )
        if inspect.iscoroutinefunction(function) and not self.may_wait:
            raise BackendError(
                f"expected a plain function as {self.what}, got a coroutine function"
            )
        self._function = function
        self.name = name or function_name(function)


class FunctionEntailer(_Function):
    """Wraps ``function(premise, hypothesis)`` as an entailer; it is called one pair at a time.

    The function returns a bool, a probability of entailment, or the three probabilities
    of entailment, neutral and contradiction.
    """

    what = "an entailer"
    limits = BatchLimits(items=32, tokens=None)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        """Return shape (n, 3): entailment, neutral, contradiction of n (premise, hypothesis)."""
        return np.array([self._row(self._function(*pair)) for pair in pairs]).reshape(-1, 3)

    def _row(self, value: Any) -> tuple[float, float, float]:
        try:
            if np.ndim(value) == 0:
                entailment = float(value)
                return entailment, 1 - entailment, 0.0
            entailment, neutral, contradiction = map(float, value)
        except (TypeError, ValueError):
            raise BackendError(
                f"{self.name} returned {value!r:.60}; expected a bool, a probability, or "
                "three probabilities"
            ) from None
        return entailment, neutral, contradiction


class FunctionEmbedder(_Function):
    """Wraps ``function(texts)``, which returns an array of shape (n, d), as an embedder."""

    what = "an embedder"

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (n, d).

        Raises:
            BackendError: the function returned something else than n vectors of finite numbers,
                or one of length 0.
        """
        message = f"{self.name}: expected {len(texts)} vectors of finite numbers"
        given = self._function(list(texts))
        try:
            result = np.asarray(given, dtype=float)
        except (TypeError, ValueError) as error:
            raise BackendError(f"{message}: {error}") from None
        if result.ndim != 2 or len(result) != len(texts) or not np.isfinite(result).all():
            raise BackendError(f"{message}, got an array of shape {result.shape}")
        lengths = np.linalg.norm(result, axis=1, keepdims=True)
        if not lengths.all():
            raise BackendError(f"{message}, none of length 0")
        return np.asarray(result / lengths, dtype=np.float32)


class FunctionSimilarity(_Function):
    """Wraps ``function(text, reference)`` as a similarity; it is called one pair at a time."""

    limits = BatchLimits(items=32, tokens=None)
    exact = True
    what = "a similarity"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Return shape (n,) for n (text, reference)."""
        return np.array([self._number(self._function(*pair)) for pair in pairs], dtype=float)

    def _number(self, value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            raise BackendError(f"{self.name} returned {value!r:.60}; expected a number") from None


def function_name(function: Callable[..., Any]) -> str:
    """Return the name of a backend that is a function."""
    kind = function if hasattr(function, "__qualname__") else type(function)
    module = getattr(kind, "__module__", "builtins")
    return f"function:{module}.{kind.__qualname__}{_mark(function)}"


def _mark(function: Callable[..., Any]) -> str:
    """Return a mark of the code of a function without a name of its own, with the plain values that
    it was made with: replies are stored under a name, and all lambdas of a module share one."""
    code = getattr(function, "__code__", None)
    if code is None or "<" not in function.__qualname__:
        return ""
    held = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    values = [*code.co_consts, *held, *(getattr(function, "__defaults__", None) or ())]
    constants = [v for v in values if isinstance(v, str | int | float | bytes | None)]
    content = repr((code.co_code, code.co_names, constants)).encode("utf-8", "surrogatepass")
    return "#" + hashlib.blake2b(content, digest_size=4).hexdigest()


def imported(path: str) -> Any:
    """Return the object that ``package.module:name`` names.

    Modules in the working folder are also found, as with ``python -m``.

    Raises:
        BackendError: there is none, or its module cannot be imported.
    """
    module, _, name = path.partition(":")
    if not (module and name) or module.startswith("."):
        raise BackendError(f"python:{path}: expected python:MODULE:FUNCTION")
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
        near = [known for known in dir(result) if not known.startswith("_")]
        raise BackendError(
            f"python:{path}: {did_you_mean(f'name in {module}', name, near)}"
        ) from None


class FunctionChat(_Function):
    """Wraps ``function(prompt)``, plain or async, which returns a text or a :class:`Reply`.

    It receives the text of the chat (:func:`~trustassay.backends.chat_text.plain`), or, if its
    first parameter is called ``request`` or annotated as :class:`ChatRequest`, the whole request
    with temperature, seed and the other parameters. It is called once for each of ``n`` replies,
    unless it returns them all in one :class:`Reply`. A plain function is called in threads,
    several at a time.
    """

    what = "a chat model"
    may_wait = True
    shared = False  # what it calls may change under its name
    limits = EndpointLimits(concurrency=64, timeout_s=600, deadline_s=1800)

    def __init__(self, function: Callable[[Any], Any], name: str | None = None) -> None:
        super().__init__(function, name)
        self._whole = _wants_request(function)
        called = function if inspect.isroutine(function) else function.__call__  # type: ignore[operator]
        self._waits = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
        self._threads: ThreadPoolExecutor | None = None

    async def reply(self, request: ChatRequest) -> Reply:
        """Answer one request.

        Raises:
            BackendError: the function raised an exception, or returned a wrong type. A
                :class:`CallError` that it raises is passed on.
        """
        first = await self._called(request)
        given = 1 + len(first.others)
        if given >= request.n:
            return first
        if given > 1:
            raise BackendError(f"{self.name} returned {given} replies instead of {request.n}")
        others = await asyncio.gather(*(self._called(request) for _ in range(request.n - 1)))
        return replace(first, others=tuple(other.text for other in others))

    async def close(self) -> None:
        """Release the threads; calls in progress continue, but their results are not used."""
        if self._threads:
            self._threads.shutdown(wait=False, cancel_futures=True)
        self._threads = None

    async def _called(self, request: ChatRequest) -> Reply:
        given = request if self._whole else plain(request.messages)
        try:
            if self._waits:
                result = await self._function(given)
            else:
                if self._threads is None:
                    most = self.limits.concurrency
                    self._threads = ThreadPoolExecutor(most, "trustassay-function")
                loop = asyncio.get_running_loop()
                result = await loop.run_in_executor(self._threads, _carried, self._function, given)
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


def _carried(function: Callable[[Any], Any], given: Any) -> Any:
    """Call a function in a thread; no future can carry a StopIteration, before Python 3.12."""
    try:
        return function(given)
    except StopIteration as error:
        raise RuntimeError(f"StopIteration {error}".strip()) from error


def _wants_request(function: Callable[[Any], Any]) -> bool:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some built-in functions do not tell
        return False
    if not parameters:
        return False
    note = parameters[0].annotation
    annotated = note is ChatRequest or str(note).rpartition(".")[2] == "ChatRequest"
    return annotated or parameters[0].name == "request"


_WRAPPED: Mapping[str, tuple[Any, Any]] = {
    "chat model": (ChatModel | LocalChatModel, FunctionChat),
    "entailer": (Entailer, FunctionEntailer),
    "embedder": (Embedder, FunctionEmbedder),
    "similarity": (Similarity, FunctionSimilarity),
}
"""Kinds of backends that may be functions: the protocol of an object, and what wraps a function."""
_OBJECTS: Mapping[str, tuple[type, str]] = {
    "token embedder": (TokenEmbedder, "a token embedder with name and token_vectors"),
    "retriever": (Retriever, "a retriever with name and search"),
    "linker": (EntityLinker, "a linker with name and link"),
    "distractors": (SubstituteSource, "a source of distractors with name and substitutes"),
}
"""Kinds of backends that are objects alone: their protocol, and what it says."""
_REMOTE = {"embedder": "avectors", "linker": "alink", "distractors": "asubstitutes"}
"""Methods of endpoints in the place of the protocol's."""


def as_backend(kind: str, found: Any, name: str | None = None) -> Any:
    """Return an object as a backend of a kind, or wrap a function as one with that name.

    Raises:
        BackendError: it can be neither.
    """
    if not isinstance(found, type) and hasattr(found, _REMOTE.get(kind, "-")):
        return found
    if kind in _OBJECTS:
        protocol, what = _OBJECTS[kind]
        if isinstance(found, type) or not isinstance(found, protocol):
            raise BackendError(f"expected {what}, got {found!r:.60}")
        return found
    protocol, wrapper = _WRAPPED[kind]
    if isinstance(found, type):
        message = f"expected {wrapper.what} object or function"
        raise BackendError(f"{found.__name__} is a class; {message}")
    if isinstance(found, protocol) or (kind == "embedder" and hasattr(found, "vectors")):
        return found
    if kind == "entailer" and isinstance(found, ChatModel | LocalChatModel):
        from trustassay.backends.chat_entailer import ChatEntailer

        return ChatEntailer(found)
    return wrapper(found, name)


_STAGE = "A woman is playing the guitar on a stage in front of a large crowd."
CHECK_PAIRS = (
    (_STAGE, "A woman is playing a musical instrument."),
    (_STAGE, "The woman has two younger brothers."),
    (_STAGE, "There is nobody on the stage."),
)
"""An entailed, a neutral and a contradicted pair, by which a label order is checked."""


def check_labels(entailer: Entailer, *, labels: int = 3, advice: str = "") -> None:
    """Score the three pairs: each label must have its highest probability for its own pair.

    With two ``labels`` contradiction is not checked.

    Raises:
        BackendError: it has not; the message has the probabilities, and ``advice``.
    """
    rows = entailer.scores(CHECK_PAIRS)
    for label, column in (("entailment", 0), ("contradiction", 2)):
        seen = rows[:, column]  # the pair of this label has the column's number
        if column < labels and seen[column] <= np.delete(seen, column).max():
            raise BackendError(
                f"{entailer.name}: the labels look wrong: P({label}) of an entailed, a neutral "
                f"and a contradicted pair is {seen[0]:.3f}, {seen[1]:.3f}, {seen[2]:.3f}{advice}"
            )
