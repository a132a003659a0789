"""``trustassay experiment fewl-icl`` and ``fewl-sft``: what chosen answers are good for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from trustassay.cli import common
from trustassay.cli.common import errors_for_people
from trustassay.cli.experimenting import Running, Source
from trustassay.cli.options import with_options
from trustassay.cli.references import References

if TYPE_CHECKING:
    from trustassay.workflows.experiments.answers import Records
    from trustassay.workflows.experiments.learning import Asked
    from trustassay.workflows.experiments.measuring import Setup
    from trustassay.workflows.experiments.results import Result

__all__ = ["fewl_icl", "fewl_sft"]

JudgeUri = Annotated[
    str,
    typer.Option(
        help="The judge of the win rates, a URI as for score.", metavar="URI", show_default=False
    ),
]


@with_options
def fewl_icl(  # noqa: PLR0913 - one argument an option
    source: Source,
    *,
    model: Annotated[
        str,
        typer.Option(
            help="The model that answers, a URI as for score.", metavar="URI", show_default=False
        ),
    ],
    judge: JudgeUri,
    questions: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Option(help="The questions to ask. Default: those of the input.", show_default=False),
    ] = None,
    examples: Annotated[int, typer.Option(help="Examples in a prompt.", min=1)] = 5,
    max_tokens: common.MaxTokens = 300,
    references: References,
    running: Running,
) -> None:
    """Hold answers after examples that FEWL chooses against answers without: Table 6.

    \b
    trustassay experiment fewl-icl chale.json --reference openai:gpt-4o-mini \\
        --answers 5 \\
        --model openai:gpt-4o-mini --judge openai:gpt-4o
    """
    with errors_for_people():
        from trustassay.answering import Answering
        from trustassay.workflows.experiments import learning

        asked = learning.Asked(model, judge, Answering(max_tokens=max_tokens), examples, questions)
        settings = {"model": model, "judge": judge, "questions": str(questions)}
        settings |= {"examples": str(examples), "max_tokens": str(max_tokens)}
        _carry_out("fewl-icl", learning.icl, asked, settings, source, references, running)


@with_options
def fewl_sft(  # noqa: PLR0913
    source: Source,
    *,
    model: Annotated[
        str,
        typer.Option(help="The model that is tuned: hf:ID, or a folder.", show_default=False),
    ],
    judge: JudgeUri,
    full: Annotated[
        bool, typer.Option("--full", help="Train all weights in place of LoRA adapters.")
    ] = False,
    epochs: Annotated[float, typer.Option(help="Passes over the data.")] = 10.0,
    steps: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            help="Steps of the optimizer, in place of --epochs.", min=1, show_default=False
        ),
    ] = None,
    batch: Annotated[int, typer.Option(help="Conversations of a step.", min=1)] = 8,
    learning_rate: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(help="Default: 2e-4, with --full 2e-5.", show_default=False),
    ] = None,
    test_share: Annotated[float, typer.Option(help="Share of the questions to test with.")] = 0.2,
    max_tokens: common.MaxTokens = 300,
    references: References,
    running: Running,
) -> None:
    """Hold a model tuned on answers that FEWL chooses against the model as it was: Table 7.

    Needs trustassay[tune].

    \b
    trustassay experiment fewl-sft TruthfulQA.csv \\
        --reference openai:gpt-4o-mini --answers 5 \\
        --model hf:facebook/opt-1.3b --judge openai:gpt-4o
    """
    with errors_for_people():
        from trustassay.answering import Answering
        from trustassay.workflows.experiments import learning
        from trustassay.workflows.tune import TuneOptions

        tuning = TuneOptions(
            full, epochs, steps, batch, learning_rate, seed=running.seed, progress=True
        )
        asked = learning.Asked(
            model,
            judge,
            Answering(max_tokens=max_tokens),
            tuning=tuning,
            test_share=test_share,
        )
        settings = {"model": model, "judge": judge, "max_tokens": str(max_tokens)}
        settings |= {"tuning": str(tuning), "test_share": str(test_share)}
        _carry_out("fewl-sft", learning.sft, asked, settings, source, references, running)


def _carry_out(
    name: str,
    work: Callable[[Path, Path, Setup, Records, Asked], Result],
    asked: Asked,
    settings: dict[str, str],
    source: Path,
    references: References,
    running: Running,
) -> None:
    folder = running.folder(name, source, dataclasses.asdict(references) | settings)
    read = running.read()
    result = work(source, folder, references.setup(running.options()), read, asked)
    running.show(result, read, folder)
