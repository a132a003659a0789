"""``trustassay completion``: a script that makes a shell complete commands and options."""

import os
from typing import Annotated, Literal

import typer

PROGRAM = "trustassay"
VARIABLE = "_TRUSTASSAY_COMPLETE"
"""The environment variable by which a shell's script asks for completions."""


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        typer.Argument(help="The shell to write the script for."),
    ],
) -> None:
    """Print a script with which a shell completes commands and options at the Tab key.

    \b
    trustassay completion bash >> ~/.bashrc
    trustassay completion zsh >> ~/.zshrc
    trustassay completion fish > ~/.config/fish/completions/trustassay.fish
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    typer.echo(get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell))


def prepare_completion() -> None:
    """Let typer answer with completions if a shell's script started this process.

    Typer then reads the commands itself.
    """
    if VARIABLE in os.environ:
        # Only now: the import takes time that every other start would pay.
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
