"""``trustassay papers experiment``: the experiments of papers, each a command of the group."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trustassay.cli.options import with_options
from trustassay.cli.papers.experimenting import ExperimentOptions, ReferenceOptions, Source
from trustassay.errors import UsageError
from trustassay.runs.options import (
    ASKING,
    INPUT,
    LABELS,
    MODELS,
    Flag,
    MaxTokens,
)

if TYPE_CHECKING:
    from trustassay.papers.experiments.answers import RecordSelection
    from trustassay.papers.experiments.learning import LearningSetup
    from trustassay.papers.experiments.measuring import FewlSetup
    from trustassay.papers.experiments.results import ExperimentResult

app = typer.Typer(no_args_is_help=True)


@app.callback()
def group() -> None:
    """Repeat an experiment of a paper on your data and with your models.

    Every reply is stored. Run the same command again to continue after an interruption.

    \b
    trustassay papers experiment fewl-pairs chale.json --reference openai:gpt-4o-mini \\
        --answers 5 \\
        --generator openai:gpt-4o-mini
    """


@app.command("fewl-pairs")
@with_options
def fewl_pairs(
    source: Source,
    *,
    references: ReferenceOptions,
    running: ExperimentOptions,
) -> None:
    """Compare right answers with wrong ones: the paper's Tables 1, 2, 8, 10, 11, 12 in one.

    \b
    trustassay papers experiment fewl-pairs chale.json --reference openai:gpt-4o-mini \\
        --answers 5
    trustassay papers experiment fewl-pairs qa_data.json --reference openai:gpt-4o-mini \\
        --generator openai:gpt-4o-mini --similarity cosine --similarity novel
    """
    from trustassay.papers.experiments.fewl import compare_pairs

    running.run_fewl_experiment("fewl-pairs", compare_pairs, source, references)


@app.command("fewl-best")
@with_options
def fewl_best(
    source: Source,
    *,
    references: ReferenceOptions,
    running: ExperimentOptions,
) -> None:
    """Count the questions whose best answer scores highest of all: the paper's Tables 3 and 9.

    \b
    trustassay papers experiment fewl-best TruthfulQA.csv \\
        --reference openai:gpt-4o-mini --answers 5
    """
    from trustassay.papers.experiments.fewl import count_best_answers

    running.run_fewl_experiment("fewl-best", count_best_answers, source, references)


@app.command("fewl-rank")
@with_options
def fewl_rank(
    source: Source,
    *,
    references: ReferenceOptions,
    running: ExperimentOptions,
) -> None:
    """Rank models by mean score, against true accuracy where there are labels: Table 4.

    Models are identified by the field `model`.

    \b
    trustassay papers experiment fewl-rank answers.jsonl --reference openai:gpt-4o-mini
    """
    from trustassay.papers.experiments.rankings import rank_models_by_score

    running.run_fewl_experiment("fewl-rank", rank_models_by_score, source, references)


@app.command("fewl-samples")
@with_options
def fewl_samples(
    source: Source,
    *,
    references: ReferenceOptions,
    running: ExperimentOptions,
) -> None:
    """Order two models' answers to each question, against TruthfulQA's metric: Table 5.

    Answers have `model`, `answers` and `incorrect_answers`.

    \b
    trustassay papers experiment fewl-samples answers.jsonl --reference openai:gpt-4o
    """
    from trustassay.papers.experiments.rankings import order_samples

    running.run_fewl_experiment("fewl-samples", order_samples, source, references)


@app.command("fewl-experts")
@with_options
def fewl_experts(
    source: Source,
    *,
    agrees: Annotated[
        float,
        Flag("--agrees", "Similarity from which a reference says the same as another answer."),
    ] = 0.8,
    references: ReferenceOptions,
    running: ExperimentOptions,
) -> None:
    """Say how many of the pairs each reference distinguishes, and how weights are spread.

    Figures 3 and 4 and appendix C.5; by the first --similarity. The input may hold
    `reference_ratings`, {name: number}, of each question.

    \b
    trustassay papers experiment fewl-experts TruthfulQA.csv --reference openai:gpt-4o \\
        --reference openai:gpt-4o-mini --generator openai:gpt-4o-mini
    """
    from trustassay.papers.experiments.experts import measure_experts

    running.run_fewl_experiment("fewl-experts", measure_experts, source, references, agrees=agrees)


@app.command("fewl-neighbours")
@with_options
def fewl_neighbours(
    source: Source,
    *,
    judge: Annotated[
        str | None,
        Flag(
            "--judge",
            "A model that judges whether a neighbour's answer is right of the question. "
            "Without one, answers count that the input itself calls right or wrong, word for word.",
            metavar="URI",
            group=MODELS,
        ),
    ] = None,
    rubric: Annotated[
        str,
        Flag(
            "--rubric",
            "How the judge judges: a rubric's name or file, of two levels.",
            group=LABELS,
        ),
    ] = "verdict",
    of: Annotated[
        str,
        Flag("--of", "Whose answers to the neighbours: best (the input's) or references."),
    ] = "best",
    references: ReferenceOptions,
    running: ExperimentOptions,
) -> None:
    """Judge answers to neighbouring questions as answers to the question itself: Figure 2.

    \b
    trustassay papers experiment fewl-neighbours TruthfulQA.csv --judge openai:gpt-4o
    """
    from trustassay.papers.experiments.neighbours import judge_neighbours

    settings = {"judge": judge, "rubric": rubric, "of": of}
    running.run_fewl_experiment("fewl-neighbours", judge_neighbours, source, references, **settings)


@app.command("five-choice")
@with_options
def five_choice(
    source: Source,
    *,
    model: Annotated[
        list[str],
        Flag(
            "--model",
            "A model that answers, a URI as for score. May be given more than once.",
            metavar="[NAME=]URI",
            group=MODELS,
        ),
    ],
    outputs: Annotated[
        list[str],
        Flag(
            "--outputs",
            "Results that haltt4llm published for a model. May be given more than once.",
            metavar="NAME=FILE",
        ),
    ],
    reference: Annotated[
        list[str],
        Flag(
            "--reference",
            "A model whose answers become the references in answers.jsonl; without one each "
            "model has the others.",
            metavar="[NAME=]URI",
            group=MODELS,
        ),
    ],
    shuffle: Annotated[bool, Flag("--shuffle", "Show the choices in a random order.")] = False,
    running: ExperimentOptions,
) -> None:
    """Put questions with choices to models and grade them: the true accuracies of Table 4.

    Graded by ours, which reads any reply, and by haltt4llm's rules. answers.jsonl, beside the
    table, is an input of fewl-rank.

    \b
    trustassay papers experiment five-choice truthfulqa_trivia_questions.json \\
        --model openai:gpt-4o-mini --shuffle
    """
    from trustassay.core.event_loop import run_anywhere
    from trustassay.papers.experiments import choices as asking

    choice_setup = asking.FiveChoiceSetup(
        model, _parse_files(outputs), reference, shuffle, running.build_run_options()
    )
    # Everything that changes the result is part of the default folder's name.
    settings = {"model": model, "outputs": outputs, "reference": reference, "shuffle": shuffle}
    folder = running.choose_folder("five-choice", source, settings)
    # `read` collects the records that were skipped, for the closing lines.
    work, read = asking.run_five_choice, running.select_records()
    result = run_anywhere(lambda: work(source, folder, choice_setup, read))
    running.show(result, read, folder)


def _parse_files(outputs: Sequence[str]) -> dict[str, Path]:
    """Return files by the name of their model.

    Raises:
        ValueError: one is not NAME=FILE, or two have the same name.
    """
    files: dict[str, Path] = {}
    for option in outputs:
        name, _, path = option.partition("=")
        if not (name and path):
            raise UsageError(f"--outputs {option}: expected NAME=FILE")
        # The name is the model of its rows.
        if name in files:
            raise UsageError(f"--outputs: two files are called {name!r}; give each its own name")
        files[name] = Path(path)
    return files


JudgeUri = Annotated[
    str,
    Flag("--judge", "The judge of the win rates, a URI as for score.", metavar="URI", group=MODELS),
]


@app.command("fewl-icl")
@with_options
def fewl_icl(
    source: Source,
    *,
    model: Annotated[
        str,
        Flag("--model", "The model that answers, a URI as for score.", metavar="URI", group=MODELS),
    ],
    judge: JudgeUri,
    questions: Annotated[
        Path | None,
        Flag("--questions", "The questions to ask. Default: those of the input.", group=INPUT),
    ] = None,
    examples: Annotated[
        int, Flag("--examples", "Examples in a prompt.", group=ASKING, least=1)
    ] = 5,
    max_tokens: MaxTokens = 300,
    references: ReferenceOptions,
    running: ExperimentOptions,
) -> None:
    """Compare answers after examples that FEWL chooses with answers without: Table 6.

    \b
    trustassay papers experiment fewl-icl chale.json --reference openai:gpt-4o-mini \\
        --answers 5 \\
        --model openai:gpt-4o-mini --judge openai:gpt-4o
    """
    from trustassay.papers.experiments import learning
    from trustassay.runs.answering import Answering

    learning_setup = learning.LearningSetup(
        model, judge, Answering(max_tokens=max_tokens), examples, questions
    )
    settings = {"model": model, "judge": judge, "questions": str(questions)}
    settings |= {"examples": str(examples), "max_tokens": str(max_tokens)}
    _run_learning_experiment(
        "fewl-icl", learning.run_icl, learning_setup, settings, source, references, running
    )


@app.command("fewl-sft")
@with_options
def fewl_sft(
    source: Source,
    *,
    model: Annotated[
        str,
        Flag("--model", "The model that is tuned: hf:ID, or a folder.", group=MODELS),
    ],
    judge: JudgeUri,
    full: Annotated[bool, Flag("--full", "Train all weights in place of LoRA adapters.")] = False,
    epochs: Annotated[float, Flag("--epochs", "Passes over the data.")] = 10.0,
    steps: Annotated[
        int | None,
        Flag("--steps", "Steps of the optimizer, in place of --epochs.", least=1),
    ] = None,
    batch: Annotated[int, Flag("--batch", "Conversations of a step.", least=1)] = 8,
    learning_rate: Annotated[
        float | None,
        Flag("--learning-rate", "Default: 2e-4, with --full 2e-5."),
    ] = None,
    test_share: Annotated[
        float, Flag("--test-share", "Share of the questions to test with.")
    ] = 0.2,
    max_tokens: MaxTokens = 300,
    references: ReferenceOptions,
    running: ExperimentOptions,
) -> None:
    """Compare a model tuned on answers that FEWL chooses with the model as it was: Table 7.

    Needs pip install '.[papers]'.

    \b
    trustassay papers experiment fewl-sft TruthfulQA.csv \\
        --reference openai:gpt-4o-mini --answers 5 \\
        --model hf:facebook/opt-1.3b --judge openai:gpt-4o
    """
    from trustassay.papers.experiments import learning
    from trustassay.papers.tune import TuneOptions
    from trustassay.runs.answering import Answering

    # By position: the first options of the dataclass are those of the command.
    tuning = TuneOptions(
        full, epochs, steps, batch, learning_rate, seed=running.seed, progress=True
    )
    learning_setup = learning.LearningSetup(
        model,
        judge,
        Answering(max_tokens=max_tokens),
        tuning=tuning,
        test_share=test_share,
    )
    settings = {"model": model, "judge": judge, "max_tokens": str(max_tokens)}
    settings |= {"tuning": str(tuning), "test_share": str(test_share)}
    _run_learning_experiment(
        "fewl-sft", learning.run_sft, learning_setup, settings, source, references, running
    )


def _run_learning_experiment(
    name: str,
    work: Callable[[Path, Path, FewlSetup, RecordSelection, LearningSetup], ExperimentResult],
    learning_setup: LearningSetup,
    settings: dict[str, str],
    source: Path,
    references: ReferenceOptions,
    running: ExperimentOptions,
) -> None:
    # The default folder depends on all options, so a changed one starts a new experiment.
    folder = running.choose_folder(name, source, dataclasses.asdict(references) | settings)
    read = running.select_records()
    result = work(
        source, folder, references.build_setup(running.build_run_options()), read, learning_setup
    )
    running.show(result, read, folder)
