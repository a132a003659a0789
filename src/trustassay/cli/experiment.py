"""``trustassay experiment``: the experiments of papers, each a command of the group."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from trustassay.cli import common
from trustassay.cli.common import errors_for_people
from trustassay.cli.options import Records, Spending, with_options
from trustassay.cli.references import References
from trustassay.cli.streams import one_line, print_json, say
from trustassay.cli.tables import show_table

if TYPE_CHECKING:
    from trustassay.runs.options import RunOptions
    from trustassay.workflows.experiments.answers import Records as ReadRecords
    from trustassay.workflows.experiments.measuring import Setup
    from trustassay.workflows.experiments.results import Result

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True)

Source = Annotated[
    Path,
    typer.Argument(
        metavar="INPUT",
        help="Answers or questions, as of score; CHALE, TruthfulQA, HaluEval and haltt4llm as "
        "published.",
        show_default=False,
    ),
]
Out = Annotated[
    Optional[Path],  # noqa: UP045 - typer reads it
    typer.Option(
        help="The folder of the experiment: its table, and the runs behind it.", show_default=False
    ),
]


@app.callback()
def group() -> None:
    """Repeat an experiment of a paper on your data and with your models.

    What is asked is asked once and stored; the same command goes on after an interruption.

    \b
    trustassay experiment fewl-pairs chale.json --reference openai:gpt-4o-mini --answers 5 \\
        --generator openai:gpt-4o-mini
    """


@app.command("fewl-pairs")
@with_options
def fewl_pairs(
    source: Source,
    *,
    references: References,
    records: Records,
    spending: Spending,
    out: Out = None,
    seed: common.Seed = 0,
    as_json: common.Json = False,
) -> None:
    """Hold right answers against wrong ones: the paper's Tables 1, 2, 8, 10, 11, 12 in one.

    \b
    trustassay experiment fewl-pairs chale.json --reference openai:gpt-4o-mini --answers 5
    trustassay experiment fewl-pairs qa_data.json --reference openai:gpt-4o-mini \\
        --generator openai:gpt-4o-mini --similarity cosine --similarity novel
    """
    with errors_for_people():
        from trustassay.workflows.experiments.fewl import pairs

        _carry_out("fewl-pairs", pairs, source, references, records, spending, out, seed, as_json)


@app.command("fewl-best")
@with_options
def fewl_best(
    source: Source,
    *,
    references: References,
    records: Records,
    spending: Spending,
    out: Out = None,
    seed: common.Seed = 0,
    as_json: common.Json = False,
) -> None:
    """Count the questions whose best answer scores highest of all: the paper's Tables 3 and 9.

    \b
    trustassay experiment fewl-best TruthfulQA.csv --reference openai:gpt-4o-mini --answers 5
    """
    with errors_for_people():
        from trustassay.workflows.experiments.fewl import best

        _carry_out("fewl-best", best, source, references, records, spending, out, seed, as_json)


@app.command("fewl-rank")
@with_options
def fewl_rank(
    source: Source,
    *,
    references: References,
    records: Records,
    spending: Spending,
    out: Out = None,
    seed: common.Seed = 0,
    as_json: common.Json = False,
) -> None:
    """Rank models by mean score, against true accuracy where there are labels: Table 4.

    Models are told apart by the field `model`.

    \b
    trustassay experiment fewl-rank answers.jsonl --reference openai:gpt-4o-mini
    """
    with errors_for_people():
        from trustassay.workflows.experiments.models import rank

        _carry_out("fewl-rank", rank, source, references, records, spending, out, seed, as_json)


@app.command("fewl-samples")
@with_options
def fewl_samples(
    source: Source,
    *,
    references: References,
    records: Records,
    spending: Spending,
    out: Out = None,
    seed: common.Seed = 0,
    as_json: common.Json = False,
) -> None:
    """Order two models' answers to each question, against TruthfulQA's metric: Table 5.

    Answers have `model`, `answers` and `incorrect_answers`.

    \b
    trustassay experiment fewl-samples answers.jsonl --reference openai:gpt-4o
    """
    with errors_for_people():
        from trustassay.workflows.experiments.models import samples

        _carry_out(
            "fewl-samples", samples, source, references, records, spending, out, seed, as_json
        )


@app.command("fewl-experts")
@with_options
def fewl_experts(  # noqa: PLR0913 - one argument an option
    source: Source,
    *,
    agrees: Annotated[
        float,
        typer.Option(help="Similarity from which a reference says the same as another answer."),
    ] = 0.8,
    references: References,
    records: Records,
    spending: Spending,
    out: Out = None,
    seed: common.Seed = 0,
    as_json: common.Json = False,
) -> None:
    """Tell how many of the pairs each reference tells apart, and how weights are spread.

    Figures 3 and 4 and appendix C.5; by the first --similarity. The input may hold
    `reference_ratings`, {name: number}, of each question.

    \b
    trustassay experiment fewl-experts TruthfulQA.csv --reference openai:gpt-4o \\
        --reference openai:gpt-4o-mini --generator openai:gpt-4o-mini
    """
    with errors_for_people():
        from functools import partial

        from trustassay.workflows.experiments.experts import experts

        _carry_out(
            "fewl-experts",
            partial(experts, agrees=agrees),
            source,
            references,
            records,
            spending,
            out,
            seed,
            as_json,
            agrees=agrees,
        )


@app.command("fewl-neighbours")
@with_options
def fewl_neighbours(  # noqa: PLR0913 - one argument an option
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
    records: Records,
    spending: Spending,
    out: Out = None,
    seed: common.Seed = 0,
    as_json: common.Json = False,
) -> None:
    """Judge answers to neighbouring questions as answers to the question itself: Figure 2.

    \b
    trustassay experiment fewl-neighbours TruthfulQA.csv --judge openai:gpt-4o
    """
    with errors_for_people():
        from functools import partial

        from trustassay.workflows.experiments.neighbours import neighbours

        _carry_out(
            "fewl-neighbours",
            partial(neighbours, judge=judge, rubric=rubric, of=of),
            source,
            references,
            records,
            spending,
            out,
            seed,
            as_json,
            judge=judge,
            rubric=rubric,
            of=of,
        )


@app.command("five-choice")
@with_options
def five_choice(  # noqa: PLR0913 - one argument an option
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
    records: Records,
    spending: Spending,
    out: Out = None,
    seed: common.Seed = 0,
    as_json: common.Json = False,
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

        files = {name: Path(path) for name, _, path in (one.partition("=") for one in outputs)}
        if not all(name and path.name for name, path in files.items()):
            raise ValueError("--outputs: expected NAME=FILE")
        asked = asking.Asked(model, files, reference, shuffle, _options(seed, spending, records))
        settings = {"model": model, "outputs": outputs, "reference": reference, "seed": seed}
        settings |= {"shuffle": shuffle, **dataclasses.asdict(records)}
        folder = out or _default_folder("five-choice", source, settings)
        work, read = asking.five_choice, _read(records)
        result = run_anywhere(lambda: work(source, folder, asked, read))
        show_result(result.with_skipped(len(read.skipped)), folder, as_json=as_json)


def _carry_out(  # noqa: PLR0913 - what every command has
    name: str,
    experiment: Callable[[Path, Path, Setup, ReadRecords], Coroutine[Any, Any, Result]],
    source: Path,
    references: References,
    records: Records,
    spending: Spending,
    out: Path | None,
    seed: int,
    as_json: bool,
    **others: Any,
) -> None:
    """Carry out an experiment on FEWL, and show its table.

    ``others`` are settings that give it a default folder of its own.
    """
    from trustassay.event_loop import run_anywhere

    settings = {**dataclasses.asdict(references), **dataclasses.asdict(records), "seed": seed}
    folder = out or _default_folder(name, source, settings | others)
    setup, read = references.setup(_options(seed, spending, records)), _read(records)
    result = run_anywhere(lambda: experiment(source, folder, setup, read))
    show_result(result.with_skipped(len(read.skipped)), folder, as_json=as_json)


def _options(seed: int, spending: Spending, records: Records) -> RunOptions:
    from trustassay.runs.options import run_options

    skip = records.skip_bad
    return run_options(seed=seed, skip_bad=skip, progress=True, **spending.keywords())


def _read(records: Records) -> ReadRecords:
    from trustassay.workflows.experiments.answers import Records as ReadRecords

    return ReadRecords(**(records.read()))


def _default_folder(name: str, source: Path, settings: Mapping[str, Any]) -> Path:
    from trustassay.runs.naming import default_folder

    found = default_folder(source, experiment=name, **settings)
    return found.with_name(f"{name}-{found.name}")


def show_result(result: Result, folder: Path, *, as_json: bool) -> None:
    """Print a result, write it into its folder; exit with status 1 if samples are left out."""
    result.write(folder)
    headings, rows = result.texts()
    say(one_line(result.title))
    show_table(headings, rows, (), wide=True)
    for note in result.notes:
        say(one_line(note))
    say(f"table:  {folder / 'experiment.md'}")
    if result.drawings:
        say(f"page:   {folder / 'experiment.html'}")
    if as_json:
        print_json(result.to_dict())
    if result.left_out:
        raise typer.Exit(1)
