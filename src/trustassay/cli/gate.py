"""``trustassay gate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from trustassay.cli.common import Json
from trustassay.cli.options import with_options
from trustassay.cli.results import show_worse
from trustassay.errors import UsageError
from trustassay.files import write_whole
from trustassay.options import Seed
from trustassay.show.terminal import one_line, print_json, say, show_table

if TYPE_CHECKING:
    from trustassay.workflows.rules import Gate

FAILED, UNDECIDED = 1, 4
STATUS = {"pass": 0, "fail": FAILED, "undecided": UNDECIDED, "untestable": UNDECIDED}


@with_options
def gate(  # noqa: PLR0913 - one argument an option
    run: Path,
    *,
    at_least: list[str],
    at_most: list[str],
    no_worse_than: Path | None,
    figure: list[str],
    margin: float,
    allow_missing: str,
    allow_other_judge: bool,
    undecided: Literal["pass", "fail", "undecided"],
    markdown: Path | None,
    junit: Path | None,
    seed: Seed,
    as_json: Json,
) -> None:
    """Pass or fail a run, for continuous integration: by bounds, or against an earlier run."""
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
    write_whole(path, content)
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
