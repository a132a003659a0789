"""Translate commands with typed options into what typer reads, and the values back.

A parameter of a command is an option or a group of options. An option has its
:class:`~trustassay.runs.options.Flag` in the annotation, or in ``options.csv`` under
``COMMAND.PARAMETER``. A group is a typed dictionary or a dataclass. From a typed dictionary the
command gets the options that the user gave, as keywords for Python. From a dataclass it gets all of
them; ``options.csv`` has these under the name of the class in lower case.
"""

import dataclasses
import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from importlib.resources import files
from typing import Annotated, Any, get_args, get_origin, get_type_hints, is_typeddict

import typer

from trustassay.cli.common import errors_for_people
from trustassay.core.progress import silence
from trustassay.report.terminal import only_last_line
from trustassay.runs.options import UNSET, Flag, build_flag, find_flag, read_annotation, read_pairs

HELP = tomllib.loads(files("trustassay.cli").joinpath("help.toml").read_text(encoding="utf-8"))
"""By command, the text and the examples in ``--help`` below its docstring."""


class Only:
    """In the annotation of a group: the command has only these options of it."""

    def __init__(self, *names: str) -> None:
        self.names = names


def list_given_flags(*groups: Any, **single_options: Any) -> list[str]:
    """Return the flags of the options that the user set.

    Args:
        groups: groups of options; those with another value than their default count as set.
        others: single options by name; true values count as set.
    """
    flags = [f"--{name.replace('_', '-')}" for name, value in single_options.items() if value]
    for group in groups:
        # A typed dictionary holds only the options that the user gave.
        if isinstance(group, Mapping):
            flags += map(find_flag, group)
            continue
        for option in _options(type(group)):
            if getattr(group, option.key) != option.default:
                flags.append(option.name)
    return flags


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command as typer reads it, with errors turned into messages.

    A group is a dataclass whose fields are options or groups, or a typed dictionary of options.
    Errors are handled by :func:`~trustassay.cli.common.errors_for_people`.
    """

    @wraps(command)
    def with_groups(**values: Any) -> Any:
        with errors_for_people():
            return _fill_group(command, values)

    more = HELP.get(command.__name__, {})
    # The character \b keeps click from joining the lines of the examples.
    examples = f"\b\n{more['examples']}" if more else ""
    texts = (inspect.getdoc(command), more.get("text"), examples)
    with_groups.__doc__ = "\n\n".join(filter(None, texts))
    return _present_to_typer(with_groups, [option.parameter() for option in _options(command)])


def quietable(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with the option ``--quiet``."""
    parameters = [*inspect.signature(command).parameters.values()]
    parameters.append(_Option.of("quiet", Annotated[bool, build_flag("quiet")]).parameter())

    @wraps(command)
    def with_quiet(*, quiet: bool, **values: Any) -> Any:
        with silence(quiet), only_last_line(quiet):
            return command(**values)

    return _present_to_typer(with_quiet, parameters)


def _present_to_typer(
    command: Callable[..., Any], parameters: list[inspect.Parameter]
) -> Callable[..., Any]:
    # Typer would follow this attribute to the undecorated command, whose groups it cannot read.
    del command.__wrapped__  # type: ignore[attr-defined]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


@dataclass(frozen=True)
class _Option:
    """An option of a command."""

    key: str
    """Its keyword in Python."""
    flag: Flag
    """Its name and help on the command line."""
    kind: Any
    """Its type, as typer reads it."""
    default: Any

    @classmethod
    def of(cls, key: str, hint: Any, default: Any = UNSET, owner: str = "") -> "_Option":
        kind, flag = read_annotation(hint)
        # No flag in the annotation: the row in options.csv has it.
        if owner and flag == Flag():
            flag = build_flag(f"{owner}.{key}")
        default = flag.default if default is UNSET else default
        kind = flag.kind or kind
        # Typer knows no mappings: the option is repeated as NAME=VALUE.
        if get_origin(kind) is Mapping:
            kind, name = list[str], flag.name
            flag = replace(flag, read=lambda texts: read_pairs(texts, name))
        if default is UNSET:
            # Without a default the type says whether the option may be left out.
            if type(None) in get_args(kind):
                default = None
            elif get_origin(kind) is list and not flag.positional:
                default = []
            elif kind is bool:
                default = False
        return cls(key, flag, kind, default)

    @property
    def name(self) -> str:
        return self.flag.name.split()[0] if self.flag.name else f"--{self.key.replace('_', '-')}"

    def parameter(self) -> inspect.Parameter:
        """Return the parameter for typer."""
        # "--out -o" gives two names; without a name typer makes one from the parameter.
        flag, names = self.flag, self.flag.name.split()
        if flag.positional:
            typer_info = typer.Argument(metavar=flag.metavar, help=flag.help, show_default=False)
        else:
            typer_info = typer.Option(
                *(names or [self.name] if self.kind is bool else names),
                help=flag.help,
                metavar=flag.metavar,
                min=flag.least,
                max=flag.most,
                show_default=self.default not in (UNSET, None, "", []),
            )
        return inspect.Parameter(
            self.key,
            inspect.Parameter.KEYWORD_ONLY,
            default=self.default,
            annotation=Annotated[self.kind, typer_info],
        )

    def value(self, values: dict[str, Any]) -> Any:
        """Remove the option's value from the values that typer read, and return it."""
        value = values.pop(self.key)
        return self.flag.read(value) if self.flag.read else value


def _read_parts(owner: Any) -> dict[str, Any]:
    """Return the options and groups of a command, or of a dataclass, by name.

    A group is returned as its type hint.
    """
    hints = get_type_hints(owner, include_extras=True)
    fields = dataclasses.fields(owner) if dataclasses.is_dataclass(owner) else ()
    factories = {field.name: field.default_factory for field in fields}
    result = {}
    for name, parameter in inspect.signature(owner).parameters.items():
        # Annotated types carry the flag or the choice of options, and stand around the type itself.
        kind = get_args(hints[name])[0] if get_origin(hints[name]) is Annotated else hints[name]
        if is_typeddict(kind) or dataclasses.is_dataclass(kind):
            result[name] = hints[name]
            continue
        # The signature of a dataclass shows a placeholder for a default that a factory makes.
        factory = factories.get(name, dataclasses.MISSING)
        default = parameter.default if factory is dataclasses.MISSING else factory()
        result[name] = _Option.of(name, hints[name], default, owner.__name__.lower())
    return result


def _options(hint: Any) -> list[_Option]:
    """Return all options of a group, or of a command, also those in nested groups."""
    group, *metadata = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if not is_typeddict(group):
        result: list[_Option] = []
        for part in _read_parts(group).values():
            result += [part] if isinstance(part, _Option) else _options(part)
        return result
    only = next((item.names for item in metadata if isinstance(item, Only)), group.__annotations__)
    every = [_Option.of(name, group.__annotations__[name]) for name in only]
    # An option without help exists for Python users only.
    return [option for option in every if option.flag.help]


def _fill_group(hint: Any, values: dict[str, Any]) -> Any:
    """Build a group from its values, which are removed from ``values``; or call a command so."""
    group = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if not is_typeddict(group):
        return group(
            **{
                name: part.value(values) if isinstance(part, _Option) else _fill_group(part, values)
                for name, part in _read_parts(group).items()
            }
        )
    result: dict[str, Any] = {}
    for option in _options(hint):
        # Left out, so that the default of the Python function applies.
        if values[option.key] == option.default:
            del values[option.key]
        elif (value := option.value(values)) != option.default:
            result |= value if option.flag.several else {option.key: value}
    return result
