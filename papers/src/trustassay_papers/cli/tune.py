"""``trustassay papers tune``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from trustassay.cli import common
from trustassay.cli.common import errors_for_people
from trustassay.show.terminal import print_json, say


def tune(  # noqa: PLR0913 - one argument an option
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="Conversations in the chat format, JSON Lines, as select sft writes them.",
            show_default=False,
        ),
    ],
    *,
    model: Annotated[
        str,
        typer.Option(help="The model to tune: hf:ID, or a folder.", show_default=False),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="The folder of the tuned model. Run the same command again to continue.",
            show_default=False,
        ),
    ],
    full: Annotated[
        bool, typer.Option("--full", help="Train all weights in place of LoRA adapters.")
    ] = False,
    epochs: Annotated[float, typer.Option(help="Passes over the data.")] = 3.0,
    steps: Annotated[
        Optional[int],  # noqa: UP045 - typer reads it
        typer.Option(
            help="Steps of the optimizer, in place of --epochs.", min=1, show_default=False
        ),
    ] = None,
    batch: Annotated[int, typer.Option(help="Conversations of a step.", min=1)] = 8,
    learning_rate: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(help="Default: 2e-4, with --full 2e-5.", show_default=False),
    ] = None,
    max_length: Annotated[
        int,
        typer.Option(help="Tokens of a conversation; longer ones are left out.", min=2),
    ] = 1024,
    seed: common.Seed = 0,
    as_json: common.Json = False,
) -> None:
    """Fine-tune a local model on chosen answers, with TRL; needs pip install '.[papers]'.

    Only the answers are learnt. The result is a whole model, which hf:FOLDER loads.

    \b
    trustassay papers tune chosen/train.jsonl --model hf:facebook/opt-125m --out tuned
    trustassay generate chosen/test_questions.jsonl --model hf:./tuned \\
        --out answers.jsonl
    """
    with errors_for_people():
        from trustassay_papers import tune as tuning

        options = tuning.TuneOptions(
            full, epochs, steps, batch, learning_rate, max_length, seed, progress=True
        )
        found = tuning.tune(data, model, out, options)
        if found.resumed:
            say(f"went on from step {found.resumed:,}")
        if found.too_long:
            say(f"left out: {found.too_long:,} conversations that are too long")
        say(
            f"{found.conversations:,} conversations, {found.steps:,} steps; loss "
            f"{found.first_loss:.3f} in the first tenth, {found.last_loss:.3f} in the last"
        )
        say(f"model: {out} (hf:{_shown(out)}); losses: {out / 'loss.jsonl'}")
        if as_json:
            print_json(found.to_dict())


def _shown(path: Path) -> str:
    """Return a folder as an hf: URI names it."""
    return str(path) if path.is_absolute() or str(path).startswith(".") else f"./{path}"
