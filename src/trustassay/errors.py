"""Errors with messages for users, and suggestions for misspelt names."""

from __future__ import annotations

import difflib
import inspect
import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, Literal, TypeVar, cast, get_args

F = TypeVar("F", bound=Callable[..., Any])
MAX_NAME_CHARACTERS = 80
"""Characters of a model's name that a message repeats."""

# The kinds of failed calls. Retry, the budget and the report decide by these words, and stored
# failures contain them, so they are never renamed; `CallError` describes each.
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


class PortableError(BaseException):
    """An error that survives pickling, so that another process can raise it again.

    It keeps class, message and attributes, whatever arguments its ``__init__`` takes.
    """

    def __reduce__(self) -> tuple[object, ...]:
        # BaseException's own reduce calls `type(self)(*self.args)`, which fails for an `__init__`
        # with further required arguments.
        return _rebuild_error, (type(self), self.args, self.__dict__)


def _rebuild_error(
    kind: type[BaseException], args: tuple[object, ...], attributes: dict[str, object]
) -> object:
    # `__init__` is not called: it would need the original arguments, and the state is complete.
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


class BackendError(RuntimeError):
    """A backend cannot be loaded or cannot answer; the message is written for users."""


class CallError(PortableError, BackendError):
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


MODEL_NOT_GIVEN = "model_not_given"
"""The kind of failure of a sample whose model would have to be asked and was not given."""


class ModelNotGivenError(PortableError, BackendError):
    """The model that gave an answer would have to be asked, and the run does not have it.

    ``model`` is its name; empty if the sample names none although the run has several models.
    """

    kind = MODEL_NOT_GIVEN

    def __init__(self, model: str) -> None:
        message = "the run has several models; expected the field model in the sample"
        if model:
            message = f"no --model {shlex.quote(f'{shorten_name(model)}=URI')} was given"
        super().__init__(message)
        self.model = model


class UnparsedError(BackendError):
    """A model answered, but with none of the answers that it was offered."""

    kind = "unparsed"
    """The word under which such failures are counted."""


class UsageError(ValueError):
    """An option, an input or a file is wrong; the message is written for users.

    Commands end with status 2 then. Any other ``ValueError`` is a fault of the program.
    """


class FaultsError(PortableError, BackendError, UsageError):
    """Several faults prevent a run; ``faults`` has one line for each."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


class RunFolderError(UsageError):
    """The folder cannot be used for this run; the message says why and what to do."""


class UnknownNameError(UsageError):
    """A name or an option is unknown; the message suggests the nearest known ones."""


class AssessmentError(PortableError, RuntimeError):
    """Raised by a metric that cannot score a sample; the run records the message and continues.

    ``kind`` names the cause if it is to be counted: ``empty`` for answers without text.
    """

    def __init__(self, message: str, kind: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind


def shorten_name(name: str) -> str:
    """Return a name from the input for a message: on one line, printable and short."""
    text = "".join(character if character.isprintable() else " " for character in name)
    return text if len(text) <= MAX_NAME_CHARACTERS else f"{text[: MAX_NAME_CHARACTERS - 1]}…"


def trim_traceback(function: F) -> F:
    """Mark a function as one that users call: a UsageError is raised without its inner frames."""
    # A coroutine function needs a coroutine as wrapper, or its errors would escape unchanged.
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def wrapper(*args: Any, **options: Any) -> Any:
            try:
                return await function(*args, **options)
            except UsageError as error:
                raise error.with_traceback(None) from None
    else:

        @wraps(function)
        def wrapper(*args: Any, **options: Any) -> Any:
            try:
                return function(*args, **options)
            except UsageError as error:
                raise error.with_traceback(None) from None

    return cast(F, wrapper)


def did_you_mean(what: str, name: str, known_names: Iterable[str]) -> str:
    """Return "unknown WHAT 'NAME'" with the nearest known names, or all when none is near."""
    names = sorted(known_names)
    # Below difflib's default of 0.6, so that a short name with one wrong letter is still found.
    matches = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(matches)}?" if matches else f"known: {', '.join(names)}"
    return f"unknown {what} {name!r}; {hint}"


def check_least(options: Any, **least: float) -> None:
    """Raise :class:`UsageError` if an option of a dataclass is below its lowest value.

    ``None`` passes: it means that the option is not set.
    """
    for name, bound in least.items():
        value = getattr(options, name)
        # `not >=` instead of `<`, so that NaN fails too.
        if value is not None and not value >= bound:
            # Annotations are strings under `from __future__ import annotations`; the text is
            # enough.
            optional = "None" in str(options.__dataclass_fields__[name].type)
            message = f"{bound:g} or more, or none" if optional else f"{bound:g} or more"
            raise UsageError(f"{name}: expected {message}, got {value}")


def check_choices(options: object, **allowed: Any) -> None:
    """Raise :class:`UnknownNameError` if an option has a value that is not allowed.

    Args:
        options: the object that has the options.
        allowed: by option, a ``Literal`` type or a list of values. ``None`` stands for the default,
            and passes.
    """
    for name, choices in allowed.items():
        value, names = getattr(options, name), get_args(choices) or choices
        if value is not None and value not in names:
            raise UnknownNameError(did_you_mean(f"value of {name}", str(value), names))


def install_command(extra: str) -> str:
    """Return the command that installs trustassay with an optional extra, from a clone."""
    return f"pip install {requirement(extra)}"


def requirement(extra: str) -> str:
    """Return the argument of ``pip install`` for trustassay with an optional extra."""
    return f"'.[{extra}]' in a clone of trustassay"
