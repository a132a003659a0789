"""Translate commands with typed options into what typer reads, and the values back.

A parameter of a command is an option or a group of options. An option has its
:class:`~trustassay.runs.options.Flag` in the annotation. A group is a typed dictionary or a
dataclass: from a typed dictionary the command gets the options that the user gave, as keywords for
Python; from a dataclass it gets all of them.
"""

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, get_args, get_origin, get_type_hints, is_typeddict

import typer
from typer.core import TyperCommand

from trustassay.cli.common import errors_for_people
from trustassay.errors import UsageError
from trustassay.runs.options import (
    ARGUMENTS,
    BACKEND_ROLES,
    HEADINGS,
    HELP,
    RARE_HEADINGS,
    UNSET,
    Flag,
    find_flag,
    read_annotation,
    read_pairs,
)


class Only:
    """In the annotation of a group: the command has only these options of it."""

    def __init__(self, *names: str) -> None:
        self.names = names


@dataclass(frozen=True)
class CommandOption:
    """An option of a command."""

    key: str
    """Its keyword in Python."""
    flag: Flag
    """Its name and help on the command line."""
    kind: Any
    """Its type, as typer reads it."""
    default: Any

    @classmethod
    def of(cls, key: str, hint: Any, default: Any = UNSET) -> "CommandOption":
        """Read an option from its annotation.

        Args:
            default: that of the parameter, which takes precedence over the one of the flag.
        """
        kind, flag = read_annotation(hint)
        kind = flag.kind or kind
        default = flag.default if default is UNSET else default
        # Typer knows no mappings: the option is repeated as NAME=VALUE.
        if get_origin(kind) is Mapping:
            kind, name = list[str], flag.name
            read = flag.read or (lambda texts: read_pairs(texts, name))
            flag = dataclasses.replace(flag, read=read)
        if default is UNSET:
            # Without a default the type says whether the option may be left out.
            if type(None) in get_args(kind):
                default = None
            elif get_origin(kind) is list and flag.name.startswith("-"):
                default = []
            elif kind is bool:
                default = False
        return cls(key, flag, kind, default)

    def parameter(self) -> inspect.Parameter:
        """Return the parameter for typer."""
        flag = self.flag
        if flag.name.startswith("-"):
            typer_info = typer.Option(
                # "--out -o" gives two names.
                *flag.name.split(),
                help=flag.help,
                metavar=flag.metavar,
                min=flag.least,
                max=flag.most,
                show_default=self.default not in (UNSET, None, "", []),
            )
        else:
            typer_info = typer.Argument(metavar=flag.name, help=flag.help, show_default=False)
        return inspect.Parameter(
            self.key,
            inspect.Parameter.KEYWORD_ONLY,
            default=self.default,
            annotation=Annotated[self.kind, typer_info],
        )


@dataclass(frozen=True)
class OptionGroup:
    """The options of a command, of a dataclass or of a typed dictionary."""

    owner: Callable[..., Any]
    """The command, the dataclass or the typed dictionary."""
    parts: Mapping[str, "CommandOption | OptionGroup"]
    """By the name of the parameter, the field or the key."""

    @classmethod
    def of(cls, hint: Any) -> "OptionGroup":
        """Read a group from its type hint, which may be annotated with :class:`Only`."""
        owner, *metadata = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if is_typeddict(owner):
            chosen = next((item.names for item in metadata if isinstance(item, Only)), None)
            keys = chosen or owner.__annotations__
            options = (CommandOption.of(key, owner.__annotations__[key]) for key in keys)
            # An option without a flag exists for Python users only.
            return cls(owner, {option.key: option for option in options if option.flag.name})
        hints = get_type_hints(owner, include_extras=True)
        parts: dict[str, CommandOption | OptionGroup] = {}
        for name, default in _read_defaults(owner).items():
            kind = get_args(hints[name])[0] if get_origin(hints[name]) is Annotated else hints[name]
            is_group = is_typeddict(kind) or dataclasses.is_dataclass(kind)
            parts[name] = (
                cls.of(hints[name]) if is_group else CommandOption.of(name, hints[name], default)
            )
        return cls(owner, parts)

    def __iter__(self) -> Iterator[CommandOption]:
        for part in self.parts.values():
            yield from (part,) if isinstance(part, CommandOption) else part

    def build(self, values: Mapping[str, Any]) -> Any:
        """Build the group from the values of all options that typer read; or call the command."""
        result: dict[str, Any] = {}
        for name, part in self.parts.items():
            if isinstance(part, OptionGroup):
                result[name] = part.build(values)
                continue
            value, flag = values[part.key], part.flag
            # Left out of a typed dictionary, so that the default of the Python function applies.
            if is_typeddict(self.owner) and value == part.default:
                continue
            value = flag.read(value) if flag.read else value
            added = value if flag.several else {name: value}
            if twice := result.keys() & added.keys():
                flag_text = find_flag(min(twice))
                raise UsageError(f"{flag_text}: is given twice, by its option and by --backend")
            result |= added
        return self.owner(**result)


def _read_defaults(owner: Any) -> dict[str, Any]:
    """Return the parameters of a function or a dataclass with their defaults."""
    defaults = {
        name: parameter.default for name, parameter in inspect.signature(owner).parameters.items()
    }
    for field in dataclasses.fields(owner) if dataclasses.is_dataclass(owner) else ():
        # The signature of a dataclass shows a placeholder for a default that a factory makes.
        if field.default_factory is not dataclasses.MISSING:
            defaults[field.name] = field.default_factory()
    return defaults


def list_given_flags(*groups: Any, **single_options: Any) -> list[str]:
    """Return the flags of the options that the user set.

    Args:
        groups: groups of options; those with another value than their default count as set.
        single_options: single options by name; true values count as set.
    """
    flags = [f"--{name.replace('_', '-')}" for name, value in single_options.items() if value]
    for group in groups:
        # A typed dictionary holds only the options that the user gave.
        if isinstance(group, Mapping):
            flags += map(find_flag, group)
            continue
        for option in OptionGroup.of(type(group)):
            if getattr(group, option.key) != option.default:
                flags.append(option.flag.name)
    return flags


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command as typer reads it, with errors turned into messages.

    Errors are handled by :func:`~trustassay.cli.common.errors_for_people`.
    """
    options = OptionGroup.of(command)

    @wraps(command)
    def with_groups(**values: Any) -> Any:
        with errors_for_people():
            return options.build(values)

    # Typer would follow this attribute to the undecorated command, whose groups it cannot read.
    del with_groups.__wrapped__
    parameters = [option.parameter() for option in options]
    with_groups.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_groups.__annotations__ = {item.name: item.annotation for item in parameters}
    with_groups.flags = {option.key: option.flag for option in options}  # type: ignore[attr-defined]
    return with_groups


HELP_ALL = "--help-all"
"""Shows all options of a command in place of the most used ones."""
OPTIONS_SHOWN = 10
"""Options that ``--help`` shows: rare ones are left out where a command has more."""


class OptionsCommand(TyperCommand):
    """A command whose ``--help`` shows the options under headings, and rare ones on request."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; ``--help-all`` is a ``--help`` with all options."""
        ctx.meta[HELP_ALL] = HELP_ALL in args
        try:
            return super().parse_args(ctx, ["--help"] if ctx.meta[HELP_ALL] else args)
        except Exception as error:
            # Rare backends have one option together; who names one is told its form.
            role = str(getattr(error, "option_name", "")).removeprefix("--")
            has_backend = any("--backend" in parameter.opts for parameter in self.params)
            if role in BACKEND_ROLES and has_backend:
                error.possibilities = [f"--backend {role}=URI"]  # type: ignore[attr-defined]
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options, each under its heading."""
        flags: Mapping[str, Flag] = getattr(self.callback, "flags", {})
        hidden = set() if ctx.meta.get(HELP_ALL) else find_hidden(flags)
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in HEADINGS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            flag = flags.get(str(parameter.name), Flag(group=HELP))
            if record is not None and parameter.name not in hidden:
                is_argument = parameter.param_type_name == "argument"
                sections[ARGUMENTS if is_argument else flag.group].append(record)
        if hidden:
            sections[HELP].append((HELP_ALL, f"Show {len(hidden)} more options, too."))
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def find_hidden(flags: Mapping[str, Flag]) -> set[str]:
    """Return the options that ``--help`` leaves out: rare ones, where a command has many."""
    options = [key for key, flag in flags.items() if flag.name.startswith("-")]
    rare = [key for key in options if flags[key].rare or flags[key].group in RARE_HEADINGS]
    # A command with few common options shows the first of its rare ones, too.
    room = max(0, OPTIONS_SHOWN - (len(options) - len(rare)))
    return set(rare[room:])
