"""``trustassay experiment``: the experiments of papers, each a command of the group."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer

from trustassay.cli.common import errors_for_people
from trustassay.cli.experimenting import Running, Source
from trustassay.cli.options import with_options
from trustassay.cli.references import References
from trustassay.errors import UsageError

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True)


@app.callback()
def group() -> None:
    """Repeat an experiment of a paper on your data and with your models.

    What is asked is asked once and stored; the same command goes on after an interruption.

    \b
    trustassay experiment fewl-pairs chale.json --reference openai:gpt-4o-mini \\
        --answers 5 \\
        --generator openai:gpt-4o-mini
    """


@app.command("fewl-pairs")
@with_options
def fewl_pairs(
    source: Source,
    *,
    references: References,
    running: Running,
) -> None:
    """Hold right answers against wrong ones: the paper's Tables 1, 2, 8, 10, 11, 12 in one.

    \b
    trustassay experiment fewl-pairs chale.json --reference openai:gpt-4o-mini \\
        --answers 5
    trustassay experiment fewl-pairs qa_data.json --reference openai:gpt-4o-mini \\
        --generator openai:gpt-4o-mini --similarity cosine --similarity novel
    """
    with errors_for_people():
        from trustassay.workflows.experiments.fewl import pairs

        running.of_fewl("fewl-pairs", pairs, source, references)


@app.command("fewl-best")
@with_options
def fewl_best(
    source: Source,
    *,
    references: References,
    running: Running,
) -> None:
    """Count the questions whose best answer scores highest of all: the paper's Tables 3 and 9.

    \b
    trustassay experiment fewl-best TruthfulQA.csv \\
        --reference openai:gpt-4o-mini --answers 5
    """
    with errors_for_people():
        from trustassay.workflows.experiments.fewl import best

        running.of_fewl("fewl-best", best, source, references)


@app.command("fewl-rank")
@with_options
def fewl_rank(
    source: Source,
    *,
    references: References,
    running: Running,
) -> None:
    """Rank models by mean score, against true accuracy where there are labels: Table 4.

    Models are told apart by the field `model`.

    \b
    trustassay experiment fewl-rank answers.jsonl --reference openai:gpt-4o-mini
    """
    with errors_for_people():
        from trustassay.workflows.experiments.models import rank

        running.of_fewl("fewl-rank", rank, source, references)


@app.command("fewl-samples")
@with_options
def fewl_samples(
    source: Source,
    *,
    references: References,
    running: Running,
) -> None:
    """Order two models' answers to each question, against TruthfulQA's metric: Table 5.

    Answers have `model`, `answers` and `incorrect_answers`.

    \b
    trustassay experiment fewl-samples answers.jsonl --reference openai:gpt-4o
    """
    with errors_for_people():
        from trustassay.workflows.experiments.models import samples

        running.of_fewl("fewl-samples", samples, source, references)


@app.command("fewl-experts")
@with_options
def fewl_experts(
    source: Source,
    *,
    agrees: Annotated[
        float,
        typer.Option(help="Similarity from which a reference says the same as another answer."),
    ] = 0.8,
    references: References,
    running: Running,
) -> None:
    """Tell how many of the pairs each reference tells apart, and how weights are spread.

    Figures 3 and 4 and appendix C.5; by the first --similarity. The input may hold
    `reference_ratings`, {name: number}, of each question.

    \b
    trustassay experiment fewl-experts TruthfulQA.csv --reference openai:gpt-4o \\
        --reference openai:gpt-4o-mini --generator openai:gpt-4o-mini
    """
    with errors_for_people():
        from trustassay.workflows.experiments.experts import experts

        running.of_fewl("fewl-experts", experts, source, references, agrees=agrees)


@app.command("fewl-neighbours")
@with_options
def fewl_neighbours(
    source: Source,
    *,
    judge: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="A model that judges whether a neighbour's answer is right of the question. "
            "Without one, answers count that the input itself calls right or wrong, word for word.",
            metavar="URI",
            show_default=False,
        ),
    ] = None,
    rubric: Annotated[
        str, typer.Option(help="How the judge judges: a rubric's name or file, of two levels.")
    ] = "verdict",
    of: Annotated[
        str, typer.Option(help="Whose answers to the neighbours: best (the input's) or references.")
    ] = "best",
    references: References,
    running: Running,
) -> None:
    """Judge answers to neighbouring questions as answers to the question itself: Figure 2.

    \b
    trustassay experiment fewl-neighbours TruthfulQA.csv --judge openai:gpt-4o
    """
    with errors_for_people():
        from trustassay.workflows.experiments.neighbours import neighbours

        own = {"judge": judge, "rubric": rubric, "of": of}
        running.of_fewl("fewl-neighbours", neighbours, source, references, **own)


@app.command("five-choice")
@with_options
def five_choice(
    source: Source,
    *,
    model: Annotated[
        list[str],
        typer.Option(
            help="A model that answers, a URI as for score. May be given more than once.",
            metavar="[NAME=]URI",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    outputs: Annotated[
        list[str],
        typer.Option(
            help="Results that haltt4llm published for a model. May be given more than once.",
            metavar="NAME=FILE",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    reference: Annotated[
        list[str],
        typer.Option(
            help="A model whose answers become the references in answers.jsonl; without one each "
            "model has the others.",
            metavar="[NAME=]URI",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    shuffle: Annotated[
        bool, typer.Option("--shuffle", help="Show the choices in a random order.")
    ] = False,
    running: Running,
) -> None:
    """Put questions with choices to models and grade them: the true accuracies of Table 4.

    Graded by ours, which reads any reply, and by haltt4llm's rules. answers.jsonl, beside the
    table, is an input of fewl-rank.

    \b
    trustassay experiment five-choice truthfulqa_trivia_questions.json \\
        --model openai:gpt-4o-mini --shuffle
    """
    with errors_for_people():
        from trustassay.event_loop import run_anywhere
        from trustassay.workflows.experiments import five_choice as asking

        asked = asking.Asked(model, _files(outputs), reference, shuffle, running.options())
        settings = {"model": model, "outputs": outputs, "reference": reference, "shuffle": shuffle}
        folder = running.folder("five-choice", source, settings)
        work, read = asking.five_choice, running.read()
        result = run_anywhere(lambda: work(source, folder, asked, read))
        running.show(result, read, folder)


def _files(outputs: Sequence[str]) -> dict[str, Path]:
    """Return files by the name of their model.

    Raises:
        ValueError: one is not NAME=FILE, or two have the same name.
    """
    files: dict[str, Path] = {}
    for one in outputs:
        name, _, path = one.partition("=")
        if not (name and path):
            raise UsageError(f"--outputs {one}: expected NAME=FILE")
        if name in files:
            raise UsageError(f"--outputs: two files are called {name!r}; give each its own name")
        files[name] = Path(path)
    return files
