"""``trustassay label``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.errors import UsageError
from trustassay.options import Seed
from trustassay.show.terminal import one_line, print_json, say, show_table
from trustassay.show.text import amount, ends_text

if TYPE_CHECKING:
    from trustassay.workflows.label.command import Labelling
    from trustassay.workflows.label.population import LabelFigure, Need


@with_options
def label(  # noqa: PLR0913 - one argument an option
    *,
    runs: list[Path],
    number: int | None,
    plan: Path | None,
    ratings: list[Path],
    label: str,
    at_least: float | None,
    positive: list[str],
    compare: tuple[str, str] | None,
    auroc: str,
    score: list[str],
    unit: str,
    random: bool,
    width: float,
    beyond: bool,
    fields: common.RatingFields,
    seed: Seed,
    as_json: common.Json,
) -> None:
    """Choose the answers that people should rate next, and estimate the result for all."""
    from trustassay.workflows.label.command import label as find

    if unit not in ("question", "answer"):
        raise UsageError(f"--unit: expected question or answer, got {unit[:40]!r}")
    found = find(
        runs,
        propose=number,
        plan=plan,
        ratings=ratings,
        field=label,
        at_least=at_least,
        positive=positive,
        columns=dict(fields),
        scores=score,
        compare=compare,
        auroc=auroc,
        unit="answer" if unit == "answer" else "question",
        equal=random,
        width=width,
        beyond=beyond,
        seed=seed,
    )
    given = [
        ("--label", [label] if label else []),
        ("--at-least", [] if at_least is None else [f"{at_least:g}"]),
        ("--positive", positive),
        ("--auroc", [auroc] if auroc else []),
        ("--field", [f"{name}={column}" for name, column in fields.items()]),
    ]
    repeated = [word for name, values in given for value in values for word in (name, value)]
    repeated += ["--compare", *compare] if compare else []
    _show(found, runs, ratings, repeated)
    if as_json:
        print_json(found.to_dict())


def _show(found: Labelling, runs: list[Path], ratings: list[Path], repeated: list[str]) -> None:
    say(
        f"{amount(found.answers, 'answer')}, {amount(found.units, found.unit)} to draw from; plan "
        f"{found.plan}: {found.drawn:,} drawn, {found.rated:,} of them rated"
    )
    for note in found.notes:
        say(one_line(note))
    if found.figures:
        say(f"from {amount(found.used, 'label')}, weighted:")
        rows = [_row(figure) for figure in found.figures]
        named = ("figure", "value", "these answers", "questions like them", "random labels")
        show_table(named, rows, ())
        for figure in found.figures:
            if figure.without:
                say(one_line(f"no interval: {figure.figure.title}: {figure.without}"))
    for need in found.needs:
        say(f"for {need.goal}: {_words(need)}")
    if found.proposed:
        say(f"{amount(len(found.proposed), 'answer')} added to the plan")
    if found.rated < found.drawn:
        say(f"{amount(found.drawn - found.rated, 'answer')} to rate now:")
        for run in runs:
            say(f"  {_command('annotate', run, '--plan', found.plan, *_rate(runs, run, ratings))}")
        if not ratings:
            files = [word for run in runs for word in ("--ratings", _file(runs, run))]
            if "--at-least" not in repeated and not all(map(_has_golds, runs)):
                repeated = [*repeated, "--at-least", "4"]
            say(f"then: {_command('label', *runs, *_named(found, runs), *files, *repeated)}")
    elif any(need.more for need in found.needs) or not found.figures:
        files = [str(word) for path in ratings for word in ("--ratings", path)]
        same = [*_named(found, runs), *files, *repeated]
        more = _command("label", *runs, *same, "--number", 50)
        say(f"all of the plan is rated; for more: {more}")


def _row(figure: LabelFigure) -> tuple[str, ...]:
    sign = "+" if figure.figure.signed else ""
    value = "–" if figure.value is None else f"{figure.value:{sign}.3f}"
    ends = [ends_text(one, sign) for one in (figure.interval, figure.beyond, figure.evenly)]
    return (figure.figure.title, value.replace("-", "−"), *ends)


def _words(need: Need) -> str:
    if need.more == 0:
        return "reached"
    more = "not reached with all answers labelled"
    if need.more is not None:
        more = f"about {need.more:,} labels more"
    even = "not at all" if need.evenly is None else f"about {need.evenly:,}"
    return f"{more} (random labels without scores: {even})"


def _rate(runs: list[Path], run: Path, ratings: list[Path]) -> list[str]:
    file = ratings[runs.index(run)] if len(ratings) == len(runs) else _file(runs, run)
    rubric = ["--rubric", "verdict"] if _has_golds(run) else []
    return ["--rater", "NAME", *rubric, "--out", str(file)]


def _file(runs: list[Path], run: Path) -> str:
    return "ratings.jsonl" if len(runs) == 1 else f"ratings-{run.name}.jsonl"


def _has_golds(run: Path) -> bool:
    """Whether raters can hold an answer against gold ones."""
    from trustassay.runs.folder import RunFolder

    first = next(iter(RunFolder(run).sample_records()), {})
    return bool(first.get("answers") or first.get("claims"))


def _named(found: Labelling, runs: list[Path]) -> list[str]:
    from trustassay.workflows.label.command import default_plan

    return [] if found.plan == default_plan(runs[0]) else ["--plan", str(found.plan)]


def _command(*words: object) -> str:
    return "trustassay " + shlex.join(map(str, words))
