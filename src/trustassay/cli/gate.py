"""``trustassay gate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import typer

from trustassay.cli.common import Json, Seed, errors_for_people
from trustassay.cli.results import show_worse
from trustassay.errors import UsageError
from trustassay.show.terminal import one_line, print_json, say, show_table

if TYPE_CHECKING:
    from trustassay.workflows.rules import Gate

FAILED, UNDECIDED = 1, 4
STATUS = {"pass": 0, "fail": FAILED, "undecided": UNDECIDED, "untestable": UNDECIDED}


def gate(  # noqa: PLR0913 - one argument an option
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="The run's folder (score --out).", show_default=False),
    ],
    *,
    at_least: Annotated[
        list[str],
        typer.Option(
            "--min",
            help="A figure of summary.json and the least value that it may have, in the figure's "
            "unit or with a per cent sign: grounding.trust_score=60, faithfulness.mean=90%. May be "
            "given more than once.",
            metavar="FIGURE=NUMBER[%]",
        ),
    ] = [],  # noqa: B006 - typer copies it
    at_most: Annotated[
        list[str],
        typer.Option(
            "--max",
            help="The same with the largest value: faithfulness.contradicted=5.",
            metavar="FIGURE=NUMBER[%]",
        ),
    ] = [],  # noqa: B006
    no_worse_than: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Option(
            help="An earlier run of the same questions. Questions are paired; the interval of the "
            "paired difference decides.",
            metavar="RUN",
            show_default=False,
        ),
    ] = None,
    figure: Annotated[
        list[str],
        typer.Option(
            help="With --no-worse-than: the figure to compare. May be given more than once. "
            "Default: the first headline figure of each metric that both runs have.",
            metavar="METRIC.FIGURE",
        ),
    ] = [],  # noqa: B006
    margin: Annotated[
        float,
        typer.Option(
            help="With --no-worse-than: how much worse is tolerated, in percent of the figure's "
            "range: 5 is 5 points of a percentage, 0.05 of a score from 0 to 1. Shares of answers "
            "without a score may rise by as much.",
            min=0,
            max=100,
        ),
    ] = 0.0,
    allow_missing: Annotated[
        str,
        typer.Option(
            help="With --no-worse-than: how many answers of the earlier run may have no partner in "
            "this one, as a number or a percentage.",
            metavar="N|P%",
        ),
    ] = "0",
    allow_other_judge: Annotated[
        bool,
        typer.Option(
            "--allow-other-judge",
            help="With --no-worse-than: compare although a metric's options, or the models that "
            "judge, differ between the runs.",
        ),
    ] = False,
    undecided: Annotated[
        Literal["pass", "fail", "undecided"],
        typer.Option(
            help="What an undecided rule counts as, in the exit status and in JUnit. An untestable "
            "one never passes."
        ),
    ] = "undecided",
    markdown: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            help="Write the result as Markdown, for a pull request.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    junit: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Write the result as JUnit XML.", metavar="FILE", show_default=False),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Pass or fail a run, for continuous integration: by bounds, or against an earlier run.

    A rule passes if the whole 95 % interval of its figure is on the right side of the line, fails
    if it is on the wrong one, and is undecided if it reaches both sides (--undecided). With too few
    questions for an interval of a change the verdicts are tested exactly; a rule that nothing could
    decide is untestable. Counts, which have no interval, are compared as they are.

    Against an earlier run only answers that are scored in both are compared. The gate also fails if
    more answers than before are refused, not assessable or failed, beyond chance, or if answers of
    the earlier run have no partner (--allow-missing).

    Exit status: 0 pass; 1 fail; 2 bad arguments, nothing was decided; 4 undecided or untestable.

    \b
    trustassay gate runs/new --min grounding.trust_score=60 --max grounding.failed=0
    trustassay gate runs/new --no-worse-than runs/main --margin 5 --markdown gate.md
    trustassay gate runs/new --no-worse-than runs/main --junit gate.xml --undecided pass
    """
    with errors_for_people():
        from trustassay.workflows import gate as gating
        from trustassay.workflows import rules

        given = {"--figure": figure, "--margin": margin, "--allow-missing": allow_missing != "0"}
        given["--allow-other-judge"] = allow_other_judge
        if no_worse_than is None and any(given.values()):
            name = next(name for name, value in given.items() if value)
            raise UsageError(f"{name}: has an effect with --no-worse-than alone")
        bounds = [rules.parse_bound(one, at_least=True) for one in at_least]
        bounds += [rules.parse_bound(one, at_least=False) for one in at_most]
        earlier = None
        if no_worse_than:
            missing = rules.parse_allowance(allow_missing)
            earlier = rules.Earlier(no_worse_than, figure, margin, missing, allow_other_judge)
        found = gating.gate(run, bounds, earlier, seed=seed)
        _show(found)
        if markdown:
            _write(markdown, rules.markdown(found).encode())
        if junit:
            _write(junit, rules.junit(found, undecided))
        if as_json:
            print_json(found.to_dict() | {"undecided_counts_as": undecided})
        strict = found.result == "untestable" and undecided == "fail"
        result = undecided if found.result == "undecided" or strict else found.result
        if result != found.result:
            say(f"{found.result} counts as {result} (--undecided)")
    raise typer.Exit(STATUS[result])


def _write(path: Path, content: bytes) -> None:
    from trustassay.files import whole

    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as file:
        file.write(content)
    say(f"written: {path}")


def _show(found: Gate) -> None:
    from trustassay.workflows.rules import explained, interval_in_words, value_of
    from trustassay.workflows.two_runs import outcomes_in_words

    rows = [
        (one.name, one.result, value_of(one), interval_in_words(one), one.rule, explained(one))
        for one in found.checks
    ]
    headings = ("figure", "result", "value", "95 % interval", "rule", "why")
    show_table(headings, rows, {"rule", "why"}, wide=True)
    for name, outcomes in found.outcomes.items():
        say(f"{name}: {outcomes_in_words(outcomes)}")
    for name, answers in found.answers.items():
        show_worse(name, answers)
    for note in found.notes:
        say(one_line(f"note: {note}"))
    say(f"gate: {found.result}")
