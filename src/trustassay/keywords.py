"""Keywords of Python functions: a wrong one is named with the nearest, and ``help`` lists all."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ForwardRef, TypeVar, get_args, get_origin

from trustassay.errors import UnknownNameError, UsageError, did_you_mean, door
from trustassay.metric import Metric
from trustassay.options import declared

F = TypeVar("F", bound=Callable[..., Any])
KINDS: Mapping[Any, tuple[Any, str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a text"),
    Mapping: (Mapping, "a mapping"),
    type(None): (type(None), "None"),
}
"""By a plain kind: what it is, and its name."""


def check_keywords(
    given: Mapping[str, Any],
    known: type,
    others: Collection[str] = (),
    metrics: Sequence[Metric] = (),
) -> None:
    """Refuse keywords that are neither of the group ``known`` nor among ``others``.

    Raises:
        UnknownNameError: names all of them, each with the nearest; an option of one of the metrics
            with how it is given.
        UsageError: a number, text or switch of another kind; names all of them.
    """
    hints = known.__annotations__
    names = {*hints, *others}
    faults = []
    for name in given:
        if name in names:
            continue
        owner = next((one for one in metrics if name in one.__dataclass_fields__), None)  # type: ignore[attr-defined]
        if owner is None:
            faults.append(did_you_mean("keyword", name, names))
        else:
            text = f'metrics="{owner.name}:{name}=..."'
            faults.append(f"{name!r} is an option of the metric {owner.name}; give it by {text}")
    if faults:
        raise UnknownNameError("; ".join(faults))
    if faults := [
        f"{name}: expected {expected}, got {value!r:.60}"
        for name, value in given.items()
        if name in hints and (expected := _other_kind(value, declared(hints[name])[0]))
    ]:
        raise UsageError("; ".join(faults))


def _other_kind(value: Any, hint: Any) -> str | None:
    """Return what is expected where a value is not of a plain kind that is hinted at."""
    kinds = [get_origin(kind) or kind for kind in get_args(hint) or (hint,)]
    if get_origin(hint) is Mapping:
        kinds = [Mapping]
    if not all(kind in KINDS for kind in kinds):
        return None
    if isinstance(value, bool):
        fits = bool in kinds
    else:
        fits = isinstance(value, tuple(KINDS[kind][0] for kind in kinds))
    return None if fits else " or ".join(KINDS[kind][1] for kind in kinds)


def shows_keywords(known: type) -> Callable[[F], F]:
    """Make a function with ``**options`` a :func:`door`; its signature lists those of ``known``."""

    def listing(inner: F) -> F:
        function = door(inner)
        own = inspect.signature(inner)
        listed = {k: v for k, v in own.parameters.items() if v.kind is not v.VAR_KEYWORD}
        for name, hint in known.__annotations__.items():
            kind = declared(hint)[0]
            text = kind.__forward_arg__ if isinstance(kind, ForwardRef) else kind
            option = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=text)
            listed.setdefault(name, option)
        function.__signature__ = own.replace(parameters=[*listed.values()])  # type: ignore[attr-defined]
        return function

    return listing
