"""``trustassay completion``."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer

__all__ = ["asked", "completion", "prepare"]

PROGRAM = "trustassay"
VARIABLE = "_TRUSTASSAY_COMPLETE"
"""The environment variable by which a shell's script asks what may come next."""


class Shell(StrEnum):
    """A shell that can ask the command for what may come next."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell that is to complete commands.")],
) -> None:
    """Print a script that makes a shell complete commands and options at the Tab key.

    \b
    trustassay completion bash >> ~/.bashrc
    trustassay completion zsh >> ~/.zshrc
    trustassay completion fish > ~/.config/fish/completions/trustassay.fish
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell.value)
    typer.echo(script)


def asked() -> bool:
    """Return whether this process was started by a shell's script to complete a command."""
    return VARIABLE in os.environ


def prepare() -> None:
    """Let typer answer the scripts of the shells; it reads commands and options itself."""
    from typer.completion import completion_init  # type: ignore[attr-defined]

    completion_init()
