"""Errors with messages for users, and suggestions for unknown names."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, Literal, TypeVar, cast, get_args

F = TypeVar("F", bound=Callable[..., Any])

CallFault = Literal[
    "limited",
    "server",
    "connection",
    "timeout",
    "malformed",
    "refused",
    "closed",
    "empty",
    "oversized",
]


class Portable(BaseException):
    """An error that another process raises again: it keeps its class, message and attributes,
    whatever its ``__init__`` takes."""

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[BaseException], args: tuple[object, ...], own: dict[str, object]) -> object:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(own)
    return error


class BackendError(RuntimeError):
    """A backend cannot be loaded or cannot answer; the message is written for users."""


class CallError(Portable, BackendError):
    """One call to an endpoint failed; ``kind`` says how, and the engine decides what to do.

    ``limited`` (429, with the seconds that the endpoint asks to wait), ``server`` (5xx),
    ``connection``, ``timeout`` and ``malformed`` (no reply could be read) may pass; ``refused``
    (the endpoint will never answer this request), ``oversized`` (the reply is larger than allowed)
    and ``closed`` (it will answer no request: key, model or quota) do not. ``empty``: the reply
    has no text.
    """

    def __init__(self, message: str, kind: CallFault, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after_s = retry_after_s


class UnparsedError(BackendError):
    """A model answered, and its reply is none of the answers that were on offer.

    ``kind`` is what such failures are counted under.
    """

    kind = "unparsed"


class UsageError(ValueError):
    """An option, an input or a file is wrong; the message is written for users.

    Commands end with status 2 then. Any other ``ValueError`` is a fault of the program.
    """


class FaultsError(Portable, BackendError, UsageError):
    """Several things stand in the way of a run; ``faults`` has a line for each."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


class RunFolderError(UsageError):
    """The folder cannot be used for this run; the message says why and what to do."""


class UnknownNameError(UsageError):
    """A name or an option is unknown; the message suggests the nearest known ones."""


class AssessmentError(Portable, RuntimeError):
    """Raised by a metric that cannot score a sample; the run records the message and continues.

    ``kind`` names the cause if it is to be counted: ``empty`` for answers without text.
    """

    def __init__(self, message: str, kind: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind


def door(function: F) -> F:
    """Make a function one that users call: bad input is raised without the frames below it."""
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def opened(*args: Any, **options: Any) -> Any:
            try:
                return await function(*args, **options)
            except UsageError as error:
                raise error.with_traceback(None) from None
    else:

        @wraps(function)
        def opened(*args: Any, **options: Any) -> Any:
            try:
                return function(*args, **options)
            except UsageError as error:
                raise error.with_traceback(None) from None

    return cast(F, opened)


def did_you_mean(what: str, name: str, known: Iterable[str]) -> str:
    """Return "unknown WHAT 'NAME'" with the nearest known names, or all when none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"
    return f"unknown {what} {name!r}; {hint}"


def check_least(options: Any, **least: float) -> None:
    """Raise :class:`UsageError` where an option of a dataclass is below its least value; ``None``
    is not.
    """
    for name, bound in least.items():
        value = getattr(options, name)
        if value is not None and not value >= bound:
            optional = "None" in str(options.__dataclass_fields__[name].type)
            message = f"{bound:g} or more, or none" if optional else f"{bound:g} or more"
            raise UsageError(f"{name}: expected {message}, got {value}")


def check_choices(options: object, **known: Any) -> None:
    """Raise :class:`UnknownNameError` where an option is not among the values of a ``Literal``, or
    of a list; ``None`` stands for the default.
    """
    for name, choices in known.items():
        value, names = getattr(options, name), get_args(choices) or choices
        if value is not None and value not in names:
            raise UnknownNameError(did_you_mean(f"value of {name}", str(value), names))


def install(extra: str) -> str:
    """Return how trustassay is installed with an optional part: from a clone of it."""
    return f"pip install {requirement(extra)}"


def requirement(extra: str) -> str:
    """Return what to give to ``pip install`` for trustassay with an optional part."""
    return f"'.[{extra}]' in a clone of trustassay"
