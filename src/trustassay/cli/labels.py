"""``trustassay study``, ``calibrate``, ``label`` and ``agree``: commands on labels by people."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.errors import UsageError, did_you_mean
from trustassay.options import Seed
from trustassay.show.terminal import one_line, print_json, say, show_rows, show_table
from trustassay.show.text import ends_text
from trustassay.text.words import amount

if TYPE_CHECKING:
    from trustassay.data.ratings import Ratings
    from trustassay.workflows.agree import Agreement, Dispute
    from trustassay.workflows.label.command import Labelling
    from trustassay.workflows.label.population import LabelFigure, Need
    from trustassay.workflows.study.command import LabelStudy

CASES = 3
"""Answers that are listed for each disagreement of two scores."""
PARTING = 8
"""Disagreements of two scores that are listed, the most frequent first."""


@with_options
def study(  # noqa: PLR0913 - one argument an option
    *,
    runs: list[Path],
    label: list[str],
    ratings: Path | None,
    by: list[str],
    positive: list[str],
    at_least: float | None,
    levels: str | None,
    machine: list[str],
    fields: common.RatingFields,
    page: Path | None,
    table: Path | None,
    resamples: int,
    seed: Seed,
    as_json: common.Json,
) -> None:
    """Say which scores of a run to believe: each compared with labels by people."""
    from trustassay.workflows.study import outputs
    from trustassay.workflows.study.command import study as hold

    # Before the study, which may take minutes.
    if table is not None and table.suffix.lower() not in (".csv", ".tsv", ".md"):
        raise UsageError(f"--table {table}: expected a name that ends with .csv, .tsv or .md")
    result = hold(
        runs,
        labels=label,
        ratings=ratings,
        by=by,
        positive=positive,
        at_least=at_least,
        levels=[word for word in (levels or "").split(",") if word.strip()],
        machines=machine,
        fields=fields,
        seed=seed,
        resamples=resamples,
    )
    say(
        f"{amount(result.answers, 'answer')} to {amount(result.questions, 'question')}; intervals "
        f"from {result.resamples:,} resamples of questions, seed {result.seed}"
    )
    for note in result.notes:
        say(one_line(note))
    for one in result.labels:
        _show_label(one)
    rows = [(cost.metric, *outputs.cost_row(cost)) for cost in result.costs]
    show_table(("a sample takes", *outputs.COST_COLUMNS), rows, ("requests",))
    if page:
        outputs.write_page(result, page)
        say(f"page: {page}")
    if table:
        outputs.write_figures(result, table)
        say(f"table: {table}")
    if as_json:
        print_json(result.to_dict())


def _show_label(one: LabelStudy) -> None:
    from trustassay.workflows.study import outputs

    say("")
    say(one_line(f"label {outputs.label_title(one)}"))
    shown = outputs.shown_figures(one)
    # The first figure is the one by which scores are ranked; only it has an interval here.
    headline, *others = [outputs.FIGURES[name] for name in shown]
    with_interval = ("n", headline, "95 % interval")
    show_rows("score", (*with_interval, *others), outputs.score_rows(one, shown))
    for reason in outputs.missing(one):
        say(one_line(reason))
    of = f"{headline} of"
    if one.tests:
        show_rows(of, outputs.TEST_COLUMNS, outputs.test_rows(one), (of,))
    if one.covariates:
        what = "covariate (neither end is better)"
        show_rows(what, outputs.COVARIATE_COLUMNS, outputs.covariate_rows(one))
    say(one_line(outputs.headline(one)))
    for by in one.groups:
        show_rows(by, with_interval, outputs.group_rows(one, by, shown[:1]))
    _show_parting(one)


def _show_parting(one: LabelStudy) -> None:
    parting = sorted(one.parting, key=lambda each: -each.count)[:PARTING]
    rows = [
        (
            f"{each.first} right, {each.second} wrong",
            f"{each.count:,}",
            f"{each.wrong:,}",
            " ".join(case.id for case in each.cases[:CASES]),
        )
        for each in parting
        if each.count
    ]
    if rows:
        show_table(("answers", "count", "of errors", "such as"), rows, ("such as",))


@with_options
def calibrate(  # noqa: PLR0913 - one argument an option
    *,
    runs: list[Path],
    label: str,
    metric: list[str],
    lower: list[str],
    at_most: list[float],
    confidence: float,
    method: str,
    ratings: Path | None,
    positive: list[str],
    at_least: float | None,
    machine: list[str],
    fields: common.RatingFields,
    out: Path,
    page: Path | None,
    resamples: int,
    seed: Seed,
    as_json: common.Json,
) -> None:
    """Make scores into probabilities of being right, from labelled answers."""
    from trustassay.workflows.calibrate import command

    result = command.calibrate(
        runs,
        label=label,
        metrics=metric,
        lower=lower,
        at_most=at_most,
        confidence=confidence,
        method=method,
        ratings=ratings,
        positive=positive,
        at_least=at_least,
        machines=machine,
        fields=fields,
        seed=seed,
        resamples=resamples,
    )
    say(one_line(command.headline(result)))
    for note in result.notes:
        say(one_line(note))
    show_rows("probability", list(command.FIGURES.values()), command.figure_rows(result))
    promises = command.promise_rows(result.calibrator)
    show_rows("accepted with", command.PROMISES, promises, ("threshold",))
    if page:
        command.write_page(result, page)
        say(f"page: {page}")
    say(f"calibrator: {result.write(out)}")
    if as_json:
        print_json(result.to_dict())


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

    # Typer would accept any text here.
    if unit not in ("question", "answer"):
        raise UsageError(f"--unit: expected question or answer, got {unit[:40]!r}")
    result = find(
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
    # The options that the proposed commands below must repeat, so that they continue this plan.
    given = [
        ("--label", [label] if label else []),
        ("--at-least", [] if at_least is None else [f"{at_least:g}"]),
        ("--positive", positive),
        ("--auroc", [auroc] if auroc else []),
        ("--field", [f"{name}={column}" for name, column in fields.items()]),
    ]
    repeated = [word for name, values in given for value in values for word in (name, value)]
    repeated += ["--compare", *compare] if compare else []
    _show_labelling(result, runs, ratings, repeated)
    if as_json:
        print_json(result.to_dict())


def _show_labelling(
    found: Labelling, runs: list[Path], ratings: list[Path], repeated: list[str]
) -> None:
    for outcome_line in found.outcome_lines:
        say(one_line(outcome_line))
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
    # What the user does next: rate what is drawn, or draw more.
    if found.rated < found.drawn:
        say(f"{amount(found.drawn - found.rated, 'answer')} to rate now:")
        for run in runs:
            say(f"  {_command('annotate', run, '--plan', found.plan, *_rate(runs, run, ratings))}")
        if not ratings:
            files = [word for run in runs for word in ("--ratings", _file(runs, run))]
            # Without gold answers ratings are levels from 1 to 5: those from 4 on count as right.
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
    # Three intervals: for these answers, for questions like them, and without scores to choose by.
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
    """Whether the samples have gold answers or claims for raters to compare with."""
    from trustassay.runs.folder import RunFolder

    first = next(iter(RunFolder(run).sample_records()), {})
    return bool(first.get("answers") or first.get("claims"))


def _named(found: Labelling, runs: list[Path]) -> list[str]:
    from trustassay.workflows.label.command import default_plan

    return [] if found.plan == default_plan(runs[0]) else ["--plan", str(found.plan)]


def _command(*words: object) -> str:
    return "trustassay " + shlex.join(map(str, words))


MOST_LISTED = 12
"""Levels that are listed one by one; of more, the first and the last are shown."""


@with_options
def agree(  # noqa: PLR0913 - one argument an option
    *,
    source: Path | None,
    fields: Mapping[str, str],
    rater: list[str],
    levels: str | None,
    run: Path | None,
    machine: list[str],
    page: Path | None,
    top: int,
    as_json: common.Json,
) -> None:
    """Say how far raters agree: each pair, all together, each with themselves; and where not."""
    from trustassay.workflows.agree import agreement, links_into, units_of_items
    from trustassay.workflows.agree_outputs import document_of

    ratings, judges = _gathered(source, run, fields, rater, levels, machine)
    units = units_of_items(run) if run else None
    result = agreement(ratings, machines=judges, units=units, progress=True)
    disputes = links_into(run, result.disputes) if run else result.disputes
    _show_agreement(result, disputes, top)
    if page:
        if document := document_of(result, source, run):
            document.write(page)
            say(f"page: {page}")
        else:
            say("no page: categories without an order have no variance")
    if as_json:
        print_json(result.to_dict() | {"disputes": [one.to_dict() for one in disputes]})


def _gathered(
    source: Path | None,
    run: Path | None,
    fields: Mapping[str, str],
    raters: list[str],
    levels: str | None,
    machines: list[str],
) -> tuple[Ratings, set[str]]:
    """Return the ratings of the file and by the judges of the run, and the names of the judges.

    Raises:
        InputError: there are no ratings, or a judge is named that is no rater.
    """
    from trustassay.data.ratings import read_ratings
    from trustassay.data.records import InputError
    from trustassay.workflows.judges import joined, votes_of

    votes = votes_of(run) if run else None
    if source is None:
        if votes is None:
            where = f"{run}: holds no votes of judges" if run else "no ratings"
            raise InputError(f"{where}; expected FILE, or --run with a run of judge")
        if machines or fields or raters or levels:
            raise InputError("--machine, --field, --rater and --levels are about FILE: name it")
        return votes, {one.rater for one in votes.ratings}
    ratings = read_ratings(
        source,
        fields=fields,
        raters=raters,
        levels=[word for word in (levels or "").split(",") if word.strip()],
    )
    # Agreement on hard answers is lower, so that it says little about all answers.
    if ratings.chosen:
        say(
            f"warning: {source}: `label` chose these answers with unequal probabilities, the less "
            "certain ones more often: raters may agree more on the others"
        )
    known = {one.rater for one in ratings.ratings}
    for name in machines:
        if name not in known:
            raise InputError(f"--machine: {did_you_mean('rater', name, sorted(known))}")
    if votes is None:
        return ratings, set(machines)
    try:
        # The scales may differ: then only the file is used.
        both = joined(ratings, votes)
    except UsageError as error:
        say(one_line(f"the votes of the run's judges are left out: {error}"))
        return ratings, set(machines)
    return both, {*machines, *(one.rater for one in votes.ratings)}


def _show_agreement(found: Agreement, disputes: Sequence[Dispute], top: int) -> None:
    from trustassay.workflows import agree_outputs as outputs

    given = ", ".join(f"{name} {count:,}" for name, count in found.raters.items())
    say(one_line(f"{found.items:,} items; ratings of each rater: {given}"))
    if found.missing:
        say(f"missing ratings: {found.missing:,}")
    if found.categories and not found.ordered:
        say(one_line(f"categories without an order: {', '.join(found.categories)}"))
    # Weighted kappas depend on the whole scale, so the source of the levels is reported.
    elif found.levels_declared:
        say(one_line(f"levels: {_listed(found.levels)}"))
    else:
        say(
            one_line(
                f"levels that occur: {_listed(found.levels)}; the whole scale is not known, so "
                "weighted kappas and AC1 use these levels; --levels 1..5 gives the scale"
            )
        )
    if found.overall:
        table = outputs.overall(found)
        show_rows(table.first, table.columns, table.rows)
        for words in sorted({one.without for one in found.overall.values() if one.without}):
            say(f"no interval: {words}")
    for table in outputs.groups(found):
        show_rows(table.first, table.columns, table.rows, wide=True)
    if found.variance:
        if rows := outputs.variance(found.variance).rows:
            show_rows("variance of ratings", outputs.VARIANCE, rows, wide=True)
        for note in outputs.variance_notes(found.variance):
            say(one_line(note))
        say(one_line(found.variance.in_words()))
    if disputes and top:
        say(f"raters disagree on {len(disputes):,} of {found.items:,} items; the largest first:")
        for dispute in disputes[:top]:
            said = ", ".join(f"{rater} {value}" for rater, value in dispute.ratings.items())
            name = f"{dispute.item} ({dispute.model})" if dispute.model else dispute.item
            say(one_line(f"  {name}: {said}" + (f"  {dispute.link}" if dispute.link else "")))


def _listed(levels: Sequence[str]) -> str:
    """Return levels separated by commas; of many, the first ones and the last."""
    if len(levels) <= MOST_LISTED:
        return ", ".join(levels)
    return f"{', '.join(levels[:3])}, ..., {levels[-1]} ({len(levels):,} levels)"
