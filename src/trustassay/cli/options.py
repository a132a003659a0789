"""Options that several commands share, in groups: a command takes a group as one argument."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, get_type_hints

__all__ = ["with_options"]


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command in which every argument that is a group stands as the group's options.

    A group is a dataclass whose fields are annotated as typer's options.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name in groups:
            parameters += _of_group(groups[parameter.name])
        else:
            hint = hints[parameter.name]
            parameters.append(parameter.replace(annotation=hint, kind=parameter.KEYWORD_ONLY))

    @wraps(command)
    def with_groups(**values: Any) -> Any:
        for name, group in groups.items():
            own = {one.name: values.pop(one.name) for one in dataclasses.fields(group)}
            values[name] = group(**own)
        return command(**values)

    del with_groups.__wrapped__  # type: ignore[attr-defined] - typer would look behind it
    with_groups.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_groups.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_groups


def _of_group(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    found = []
    for one in dataclasses.fields(group):
        default = one.default
        if one.default_factory is not dataclasses.MISSING:
            default = one.default_factory()
        if default is dataclasses.MISSING:
            default = inspect.Parameter.empty
        keyword = inspect.Parameter.KEYWORD_ONLY
        found.append(
            inspect.Parameter(one.name, keyword, default=default, annotation=hints[one.name])
        )
    return found
