"""Prompts: files with a name and a version, which is part of every stored call."""

import dataclasses
import hashlib
import json
import os
import re
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import jinja2

from trustassay.core.sample import Sample
from trustassay.errors import UsageError

# Matches a first line `{# version 2 #}`, also with Jinja's white-space signs: `{#- version 2 -#}`.
_VERSION_COMMENT = re.compile(r"\{#-?\s*version\s+(\S+?)\s*-?#\}")


class PromptError(UsageError):
    """A prompt's file cannot be read or filled in; the message names file, line and fault."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A Jinja template; the values that are filled in are text and never read as templates."""

    name: str
    """``STEM/VERSION`` of its file."""
    template: jinja2.Template
    """The compiled template."""
    path: Path
    """Its file."""

    @classmethod
    def read(cls, path: str | os.PathLike[str], variables: str = "") -> "Prompt":
        """Read a prompt from a file.

        Its name is ``STEM/VERSION``, with the version from its first line (``{# version 2 #}``);
        without such a line the version is a digest of the content.

        Args:
            path: the file. variables: the names that will be filled in, separated by spaces; empty
                where they are not checked.

        Raises:
            PromptError: it is not a template, or uses another name.
            OSError: it cannot be read.
        """
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise PromptError(f"{path}: not UTF-8 ({error.reason})") from None
        result = _VERSION_COMMENT.match(text)
        # A user's prompt without a version gets a new name with every change, so that replies to
        # the old text are not taken for replies to the new one.
        digest = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
        try:
            template = _build_environment().from_string(text)
        except jinja2.TemplateSyntaxError as error:
            raise PromptError(f"{path}:{error.lineno}: {error.message}") from None
        if variables:
            _check_variables(path, text, variables.split())
        return cls(f"{path.stem}/{result[1] if result else digest}", template, path)

    def fill(self, **values: Any) -> str:
        """Return the text of the prompt, without white space at its ends.

        Raises:
            PromptError: the template uses a name that does not exist, or an expression in it fails.
        """
        return self.render(**values).strip()

    def render(self, **values: Any) -> str:
        """Return the text of the prompt with white space at its ends; raises as :meth:`fill`."""
        try:
            return self.template.render(**values)
        except jinja2.UndefinedError as error:
            message = f"{error.message}; the variables are {', '.join(values)}"
            raise PromptError(f"{self._find_place(error)}: {message}") from None
        except jinja2.TemplateError as error:
            raise PromptError(f"{self._find_place(error)}: {error.message}") from None
        except Exception as error:  # a template may compute: 1 / 0, or call what is not a function
            place = self._find_place(error)
            raise PromptError(f"{place}: {type(error).__name__}: {error}") from None

    def _find_place(self, error: Exception) -> str:
        """Return the file and the line of the template at which an error was raised."""
        # Jinja gives the frames of a template its lines, and "<template>" for the file.
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == self.template.filename]
        return f"{self.path}:{lines[-1]}" if lines else str(self.path)


def _check_variables(path: Path, text: str, variables: Sequence[str]) -> None:
    """Raise PromptError for the first name in a template that is not among the variables.

    Found before a run starts, also where only some samples reach the name.
    """
    from jinja2 import meta, nodes

    tree = _build_environment().parse(text)
    unknown = meta.find_undeclared_variables(tree) - set(variables)
    for name in tree.find_all(nodes.Name):
        if name.name in unknown:
            known = ", ".join(variables)
            raise PromptError(
                f"{path}:{name.lineno}: {name.name!r} is undefined; the variables are {known}"
            )
    fields = [field.name for field in dataclasses.fields(Sample)]
    for access in tree.find_all(nodes.Getattr):
        of_sample = isinstance(access.node, nodes.Name) and access.node.name == "sample"
        # Properties of a sample are no fields, and can be used as well.
        if of_sample and not hasattr(Sample, access.attr) and access.attr not in fields:
            raise PromptError(
                f"{path}:{access.lineno}: sample has no field {access.attr!r}; it has "
                f"{', '.join(fields)}"
            )


def load_prompt(
    package: str,
    name: str,
    user_file: str | os.PathLike[str] | None = None,
    variables: str = "",
) -> Prompt:
    """Return the prompt ``prompts/NAME.jinja`` of a package, or the user's own file instead.

    ``variables`` are checked in the user's file, as by :meth:`Prompt.read`.

    Raises:
        PromptError, OSError: the user's file cannot be read.
    """
    if user_file is None:
        return _load_shipped(package, name)
    return Prompt.read(user_file, variables)


def prompt_property(
    package: str, name: str, option: str = "prompt", *, variables: str
) -> cached_property[Prompt]:
    """Return a cached property with a package's prompt, or with the user's file if an option names
    one.

    Args:
        package, name, variables: as for :func:`load_prompt`, whose errors the property raises.
        option: the attribute of the object that holds the user's file, or ``None``.
    """
    return cached_property(
        lambda options: load_prompt(package, name, getattr(options, option), variables)
    )


@cache
def _load_shipped(package: str, name: str) -> Prompt:
    """Read a prompt of the package, once per process."""
    with as_file(files(package) / "prompts" / f"{name}.jinja") as path:
        return Prompt.read(path)


@cache
def load_examples(package: str) -> list[dict[str, Any]]:
    """Return the examples of a package, ``prompts/examples.jsonl``."""
    text = (files(package) / "prompts" / "examples.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@cache
def _build_environment() -> jinja2.Environment:
    """Return the Jinja environment: a template of a user cannot reach Python objects."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # Prompts are plain text, so `<` must stay `<`: no escaping. StrictUndefined turns a misspelt
    # name into an error instead of an empty text.
    return ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
    )


def build_fence(texts: Iterable[str]) -> str:
    """Return a run of equals signs, at least five, that is longer than any in the texts.

    A text between two such fences cannot end its own fence.
    """
    longest = max((len(run) for text in texts for run in re.findall("=+", text)), default=0)
    return "=" * max(5, longest + 1)
