"""``trustassay papers reproduce``: the main tables of a paper, from your data or a small set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from trustassay.cli import common
from trustassay.cli.options import Only, with_options
from trustassay.report.terminal import one_line, print_json, say, show_table
from trustassay.runs.options import (
    BACKEND,
    INPUT,
    MODELS,
    OUTPUT,
    Flag,
    RecordOptions,
    Seed,
    SpendingOptions,
    read_backends,
)

if TYPE_CHECKING:
    from trustassay.papers.reproduce.tables import Reproduction


@with_options
def reproduce(  # noqa: PLR0913 - one argument an option
    paper: Annotated[
        str, Flag("PAPER", "trustscore, fewl, harmonicity, trust-eval or truthfulness.")
    ],
    *,
    data: Annotated[
        Path | None,
        Flag(
            "--data",
            "A file or folder with your data; the documentation of the paper lists the files. "
            "Default: a small bundled set with recorded replies, which needs no model and no key.",
            metavar="PATH",
            group=INPUT,
        ),
    ] = None,
    model: Annotated[
        list[str],
        Flag(
            "--model",
            "A model to assess, a URI as for score. May be given more than once. It answers the "
            "rows that name no other model. harmonicity makes 11 calls per question.",
            metavar="[NAME=]URI",
            group=MODELS,
        ),
    ],
    reference: Annotated[
        list[str],
        Flag(
            "--reference",
            "fewl: a reference model, whose answers the others are compared with. May be given "
            "more than once.",
            metavar="[NAME=]URI",
            group=MODELS,
        ),
    ],
    judge: Annotated[
        str | None,
        Flag("--judge", "The judge, a URI as for score.", metavar="URI", group=MODELS),
    ] = None,
    backend: Annotated[list[str], BACKEND],
    repeats: Annotated[
        int | None,
        Flag(
            "--repeats",
            "truthfulness: rounds of judging; fewl: resamplings of the reference answers. "
            "Default: as in the paper, or as recorded for the bundled set.",
            least=1,
            rare=True,
        ),
    ] = None,
    records: Annotated[RecordOptions, Only("limit", "fields", "sheet", "skip_bad")],
    spending: Annotated[SpendingOptions, Only("budget")],
    out: Annotated[
        Path | None,
        Flag("--out", "Folder for the tables and for the runs behind them.", group=OUTPUT),
    ] = None,
    seed: Seed,
    as_json: common.Json = False,
) -> None:
    """Recompute the main tables of a paper, on your data and models or on a small bundled set.

    Each figure has a 95 % interval. The paper's figure is shown beside it only where data and model
    are those of the paper. Differences from the paper are listed. Run the same command again to
    continue after an interruption.

    \b
    trustscore    Zheng et al. 2024: Tables 1 to 3
    fewl          Wei et al. 2024: Tables 1 to 12
    harmonicity   Kersting et al. 2024: Tables 1 to 4 and 7 to 13, Figures 1 and 2,
                  the Gamma map
    trust-eval    Song et al. 2025: the 28 figures of Trust-Eval
    truthfulness  WillowTree 2023: agreement with people, and stability

    \b
    trustassay papers reproduce truthfulness
    trustassay papers reproduce trustscore --data qa_human_check.json
    trustassay papers reproduce harmonicity --data questions/ \\
        --model big=openai:gpt-4o --model small=openai:gpt-4o-mini
    """
    from trustassay.papers.experiments.answers import RecordSelection
    from trustassay.papers.reproduce.setup import ReproductionSetup, load_paper
    from trustassay.papers.reproduce.tables import refuse_other_work
    from trustassay.runs.intake import build_run_options, default_folder

    compute = load_paper(paper)
    selection = RecordSelection.of_options(records)
    backends = read_backends(backend)
    if out is None:
        # Everything that changes the result, so that two reproductions never share a folder.
        settings = [model, reference, judge, backend, repeats, seed, repr(selection)]
        default = default_folder(data or paper, paper=paper, settings=settings)
        out = default.with_name(f"{paper}-{default.name}")
    # Before anything is scored, which may take hours and money.
    refuse_other_work(out, paper)
    setup = ReproductionSetup(
        folder=out,
        data=data,
        models=model,
        references=reference,
        judge=judge,
        backends=backends,
        repeats=repeats,
        seed=seed,
        options=build_run_options(
            seed=seed,
            skip_bad=selection.skip_bad,
            progress=True,
            first_verdict=False,
            **spending,
        ),
        selection=selection,
    )
    result = compute(setup)
    result.write(out)
    show_reproduction(result, out)
    if as_json:
        print_json(result.to_dict())


def show_reproduction(result: Reproduction, folder: Path) -> None:
    """Print the tables of a paper, what differs from it, and where the page is."""
    say(one_line(result.source))
    say(one_line(result.data))
    for table in result.tables:
        headings, rows = table.to_texts()
        say("")
        say(one_line(table.heading))
        show_table(headings, rows, table.texts, wide=True)
        for note in table.list_notes():
            say(one_line(note))
    say("")
    say("Differences from the paper:")
    for difference in result.differences:
        say(one_line(f"- {difference}"))
    for place, reason in result.missing.items():
        say(one_line(f"Not computed: {place}: {reason}"))
    say(f"tables: {folder / 'reproduction.md'}")
    say(f"page:   {folder / 'reproduction.html'}")
