"""``trustassay papers tune``: fine-tune a local model on chosen answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.report.terminal import print_json, say
from trustassay.runs.options import (
    MODELS,
    OUTPUT,
    Flag,
    Seed,
)
from trustassay.text.numbers import amount


@with_options
def tune(  # noqa: PLR0913 - one argument an option
    data: Annotated[
        Path,
        Flag(
            "DATA",
            "Conversations in the chat format, JSON Lines, as papers select sft writes them.",
        ),
    ],
    *,
    model: Annotated[str, Flag("--model", "The model to tune: hf:ID, or a folder.", group=MODELS)],
    out: Annotated[
        Path,
        Flag(
            "--out",
            "Folder for the tuned model. Run the same command again to continue.",
            group=OUTPUT,
        ),
    ],
    full: common.FullTraining = False,
    epochs: common.Epochs = 3.0,
    steps: common.TrainingSteps = None,
    batch: common.BatchSize = 8,
    learning_rate: common.LearningRate = None,
    max_length: Annotated[
        int,
        Flag(
            "--max-length",
            "Maximum number of tokens in a conversation; longer ones are left out.",
            least=2,
        ),
    ] = 1024,
    seed: Seed,
    as_json: common.Json,
) -> None:
    """Fine-tune a local model on chosen answers, with TRL; needs pip install '.[papers]'.

    The model is trained on the answers only. The result is a complete model, which hf:FOLDER loads.

    \b
    trustassay papers tune chosen/train.jsonl --model hf:facebook/opt-125m \\
        --out tuned
    trustassay generate chosen/test_questions.jsonl --model hf:./tuned \\
        --out answers.jsonl
    """
    from trustassay.papers import tune as tuning

    # 1. The options, in the order of the dataclass.
    options = tuning.TuneOptions(
        full, epochs, steps, batch, learning_rate, max_length, seed, progress=True
    )
    # 2. Train, or continue, or return the finished result.
    result = tuning.tune(data, model, out, options)
    # Only after an interruption.
    if result.resumed:
        say(f"continued from step {result.resumed:,}")
    # 3. What was learnt, and where it is.
    if result.too_long:
        say(
            f"left out: {amount(result.too_long, 'conversation')} longer than {max_length:,} tokens"
        )
    say(
        f"{amount(result.conversations, 'conversation')}, {amount(result.steps, 'step')}; loss "
        f"{result.first_loss:.3f} in the first tenth of the steps, {result.last_loss:.3f} in the "
        "last"
    )
    say(f"model: {out} (hf:{_format_folder(out)}); losses: {out / 'loss.jsonl'}")
    if as_json:
        print_json(result.to_dict())


def _format_folder(path: Path) -> str:
    """Return a folder as in an ``hf:`` URI; without "./" it would be an id of Hugging Face."""
    return str(path) if path.is_absolute() or str(path).startswith(".") else f"./{path}"
