"""``trustassay study``, ``calibrate``, ``label`` and ``agree``: commands on labels by people."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.errors import UsageError, did_you_mean
from trustassay.report.terminal import one_line, print_json, say, show_rows, show_table
from trustassay.report.text import ends_text
from trustassay.runs.options import Seed
from trustassay.text.words import amount

if TYPE_CHECKING:
    from trustassay.input.ratings import Ratings
    from trustassay.people.agree import RaterAgreement, RatingDispute
    from trustassay.people.label.command import Labelling
    from trustassay.people.label.population import LabelFigure, LabelNeed
    from trustassay.people.study.command import LabelStudy

MAX_CASES = 3
"""Answers that are listed for each disagreement of two scores."""
MAX_DISAGREEMENTS = 8
"""Disagreements of two scores that are listed, the most frequent first."""


@with_options
def study(
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
    from trustassay.people.study import outputs
    from trustassay.people.study.command import study as run_study

    # Before the study, which may take minutes.
    if table is not None and table.suffix.lower() not in (".csv", ".tsv", ".md"):
        raise UsageError(f"--table {table}: expected a name that ends with .csv, .tsv or .md")
    result = run_study(
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
    for label_study in result.labels:
        _show_label(label_study)
    # What a score costs belongs beside how good it is.
    rows = [(cost.metric, *outputs.build_cost_row(cost)) for cost in result.costs]
    show_table(("a sample takes", *outputs.COST_COLUMNS), rows, ("requests",))
    if page:
        outputs.build_document(result, page.parent).write(page)
        say(f"page: {page}")
    if table:
        outputs.write_figures(result, table)
        say(f"table: {table}")
    if as_json:
        print_json(result.to_dict())


def _show_label(label_study: LabelStudy) -> None:
    from trustassay.people.study import outputs

    say("")
    say(one_line(f"label {outputs.describe_label(label_study)}"))
    figure_keys = outputs.choose_figures(label_study)
    # The first figure is the one by which scores are ranked; only it has an interval here.
    headline, *other_headings = [outputs.FIGURE_TITLES[name] for name in figure_keys]
    with_interval = ("n", headline, "95 % interval")
    show_rows(
        "score",
        (*with_interval, *other_headings),
        outputs.build_score_rows(label_study, figure_keys),
    )
    for reason in outputs.describe_missing(label_study):
        say(one_line(reason))
    of_headline = f"{headline} of"
    if label_study.tests:
        show_rows(
            of_headline, outputs.TEST_COLUMNS, outputs.build_test_rows(label_study), (of_headline,)
        )
    if label_study.covariates:
        covariate_heading = "covariate (neither end is better)"
        show_rows(
            covariate_heading, outputs.COVARIATE_COLUMNS, outputs.build_covariate_rows(label_study)
        )
    say(one_line(outputs.headline(label_study)))
    for by in label_study.groups:
        show_rows(by, with_interval, outputs.build_group_rows(label_study, by, figure_keys[:1]))
    _show_parting(label_study)


def _show_parting(label_study: LabelStudy) -> None:
    disagreements = sorted(label_study.parting, key=lambda disagreement: -disagreement.count)[
        :MAX_DISAGREEMENTS
    ]
    rows = [
        (
            f"{disagreement.first} right, {disagreement.second} wrong",
            f"{disagreement.count:,}",
            f"{disagreement.wrong:,}",
            " ".join(case.id for case in disagreement.cases[:MAX_CASES]),
        )
        for disagreement in disagreements
        if disagreement.count
    ]
    if rows:
        show_table(("answers", "count", "of errors", "such as"), rows, ("such as",))


@with_options
def calibrate(
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
    from trustassay.people.calibrate import command

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
    show_rows(
        "probability", list(command.FIGURE_TITLES.values()), command.build_figure_rows(result)
    )
    promises = command.build_promise_rows(result.calibrator)
    show_rows("accepted with", command.PROMISE_COLUMNS, promises, ("threshold",))
    if page:
        command.build_document(result).write(page)
        say(f"page: {page}")
    say(f"calibrator: {result.write(out)}")
    if as_json:
        print_json(result.to_dict())


@with_options
def label(
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
    from trustassay.people.label.command import label as run_label

    # Typer would accept any text here.
    if unit not in ("question", "answer"):
        raise UsageError(f"--unit: expected question or answer, got {unit[:40]!r}")
    result = run_label(
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
    repeated_options = [
        ("--label", [label] if label else []),
        ("--at-least", [] if at_least is None else [f"{at_least:g}"]),
        ("--positive", positive),
        ("--auroc", [auroc] if auroc else []),
        ("--field", [f"{name}={column}" for name, column in fields.items()]),
    ]
    repeated = [
        word for name, values in repeated_options for value in values for word in (name, value)
    ]
    repeated += ["--compare", *compare] if compare else []
    _show_labelling(result, runs, ratings, repeated)
    if as_json:
        print_json(result.to_dict())


def _show_labelling(
    labelling: Labelling, runs: list[Path], ratings: list[Path], repeated_options: list[str]
) -> None:
    for outcome_line in labelling.outcome_lines:
        say(one_line(outcome_line))
    say(
        f"{amount(labelling.answers, 'answer')}, {amount(labelling.units, labelling.unit)} to draw "
        f"from; plan {labelling.plan}: {labelling.drawn:,} drawn, {labelling.rated:,} of them rated"
    )
    for note in labelling.notes:
        say(one_line(note))
    if labelling.figures:
        say(f"from {amount(labelling.used, 'label')}, weighted:")
        rows = [_build_row(figure) for figure in labelling.figures]
        headings = ("figure", "value", "these answers", "questions like them", "random labels")
        show_table(headings, rows, ())
        for figure in labelling.figures:
            if figure.without:
                say(one_line(f"no interval: {figure.figure.title}: {figure.without}"))
    for need in labelling.needs:
        say(f"for {need.goal}: {_describe_need(need)}")
    if labelling.proposed:
        say(f"{amount(len(labelling.proposed), 'answer')} added to the plan")
    # What the user does next: rate what is drawn, or draw more.
    if labelling.rated < labelling.drawn:
        say(f"{amount(labelling.drawn - labelling.rated, 'answer')} to rate now:")
        for run in runs:
            rate_options = _build_rate_options(runs, run, ratings)
            say(f"  {_format_command('annotate', run, '--plan', labelling.plan, *rate_options)}")
        if not ratings:
            # No ratings yet: the file that the proposed annotate command writes.
            files = [word for run in runs for word in ("--ratings", _ratings_file(runs, run))]
            # Without gold answers the rubric has levels from 0 to 5, of which 4 and 5 pass.
            if "--at-least" not in repeated_options and not all(map(_has_golds, runs)):
                repeated_options = [*repeated_options, "--at-least", "4"]
            plan_options = [*_build_plan_options(labelling, runs), *files, *repeated_options]
            say(f"then: {_format_command('label', *runs, *plan_options)}")
    elif any(need.more for need in labelling.needs) or not labelling.figures:
        files = [str(word) for path in ratings for word in ("--ratings", path)]
        plan_options = [*_build_plan_options(labelling, runs), *files, *repeated_options]
        more = _format_command("label", *runs, *plan_options, "--number", 50)
        say(f"all of the plan is rated; for more: {more}")


def _build_row(figure: LabelFigure) -> tuple[str, ...]:
    sign = "+" if figure.figure.signed else ""
    value = "–" if figure.value is None else f"{figure.value:{sign}.3f}"
    # Three intervals: for these answers, for questions like them, and without scores to choose by.
    ends = [
        ends_text(interval, sign) for interval in (figure.interval, figure.beyond, figure.evenly)
    ]
    return (figure.figure.title, value.replace("-", "−"), *ends)


def _describe_need(need: LabelNeed) -> str:
    if need.more == 0:
        return "reached"
    # ``None``: even labels of all answers would not reach the goal.
    more = "not reached with all answers labelled"
    if need.more is not None:
        more = f"about {need.more:,} labels more"
    even = "not at all" if need.evenly is None else f"about {need.evenly:,}"
    return f"{more} (random labels without scores: {even})"


def _build_rate_options(runs: list[Path], run: Path, ratings: list[Path]) -> list[str]:
    file = ratings[runs.index(run)] if len(ratings) == len(runs) else _ratings_file(runs, run)
    rubric = ["--rubric", "verdict"] if _has_golds(run) else []
    return ["--rater", "NAME", *rubric, "--out", str(file)]


def _ratings_file(runs: list[Path], run: Path) -> str:
    return "ratings.jsonl" if len(runs) == 1 else f"ratings-{run.name}.jsonl"


def _has_golds(run: Path) -> bool:
    """Whether the samples have gold answers or claims for raters to compare with."""
    from trustassay.runs.folder import RunFolder

    first = next(iter(RunFolder(run).sample_records()), {})
    return bool(first.get("answers") or first.get("claims"))


def _build_plan_options(labelling: Labelling, runs: list[Path]) -> list[str]:
    from trustassay.people.label.command import default_plan

    return [] if labelling.plan == default_plan(runs[0]) else ["--plan", str(labelling.plan)]


def _format_command(*arguments: object) -> str:
    return "trustassay " + shlex.join(map(str, arguments))


MAX_LEVELS_LISTED = 12
"""Levels that are listed one by one; of more, the first and the last are shown."""


@with_options
def agree(
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
    from trustassay.people.agree import (
        add_report_links,
        build_document,
        measure_agreement,
        read_units_of_items,
    )

    ratings, judges = _gather_ratings(source, run, fields, rater, levels, machine)
    # The unit of intervals is the question, and only the run knows the questions.
    units = read_units_of_items(run) if run else None
    result = measure_agreement(ratings, machines=judges, units=units, progress=True)
    disputes = add_report_links(run, result.disputes) if run else result.disputes
    _show_agreement(result, disputes, top)
    if page:
        if document := build_document(result, source, run):
            document.write(page)
            say(f"page: {page}")
        else:
            say("no page: categories without an order have no variance")
    if as_json:
        print_json(result.to_dict() | {"disputes": [dispute.to_dict() for dispute in disputes]})


def _gather_ratings(
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
    from trustassay.input.ratings import read_ratings
    from trustassay.input.records import InputError
    from trustassay.people.votes import join_ratings, read_votes

    votes = read_votes(run) if run else None
    if source is None:
        if votes is None:
            location = f"{run}: holds no votes of judges" if run else "no ratings"
            raise InputError(f"{location}; expected FILE, or --run with a run of judge")
        if machines or fields or raters or levels:
            raise InputError("--machine, --field, --rater and --levels are about FILE: name it")
        return votes, {rating.rater for rating in votes.ratings}
    ratings = read_ratings(
        source,
        fields=fields,
        raters=raters,
        levels=[word for word in (levels or "").split(",") if word.strip()],
    )
    # Agreement on hard answers is lower, so that it says little about all answers.
    if ratings.has_unequal_chances:
        say(
            f"warning: {source}: `label` chose these answers with unequal probabilities, the less "
            "certain ones more often: raters may agree more on the others"
        )
    names = {rating.rater for rating in ratings.ratings}
    for name in machines:
        if name not in names:
            raise InputError(f"--machine: {did_you_mean('rater', name, sorted(names))}")
    if votes is None:
        return ratings, set(machines)
    try:
        # The scales may differ: then only the file is used.
        all_ratings = join_ratings(ratings, votes)
    except UsageError as error:
        say(one_line(f"the votes of the run's judges are left out: {error}"))
        return ratings, set(machines)
    return all_ratings, {*machines, *(rating.rater for rating in votes.ratings)}


def _show_agreement(agreement: RaterAgreement, disputes: Sequence[RatingDispute], top: int) -> None:
    from trustassay.people.agree import (
        VARIANCE_COLUMNS,
        build_group_tables,
        build_overall_table,
        build_variance_table,
        describe_variance,
    )

    rater_counts = ", ".join(f"{name} {count:,}" for name, count in agreement.raters.items())
    say(one_line(f"{agreement.items:,} items; ratings of each rater: {rater_counts}"))
    if agreement.missing:
        say(f"missing ratings: {agreement.missing:,}")
    if agreement.categories and not agreement.ordered:
        say(one_line(f"categories without an order: {', '.join(agreement.categories)}"))
    # Weighted kappas depend on the whole scale, so the source of the levels is reported.
    elif agreement.levels_declared:
        say(one_line(f"levels: {_list_levels(agreement.levels)}"))
    else:
        say(
            one_line(
                f"levels that occur: {_list_levels(agreement.levels)}; the whole scale is not known"
                ", so weighted kappas and AC1 use these levels; --levels 1..5 gives the scale"
            )
        )
    if agreement.overall:
        table = build_overall_table(agreement)
        show_rows(table.first, table.columns, table.rows)
        for reason in sorted(
            {figure.without for figure in agreement.overall.values() if figure.without}
        ):
            say(f"no interval: {reason}")
    for table in build_group_tables(agreement):
        show_rows(table.first, table.columns, table.rows, wide=True)
    if agreement.variance:
        if rows := build_variance_table(agreement.variance).rows:
            show_rows("variance of ratings", VARIANCE_COLUMNS, rows, wide=True)
        for note in describe_variance(agreement.variance):
            say(one_line(note))
        say(one_line(agreement.variance.in_words()))
    # Disputed items are what people should talk about, so that they are listed.
    if disputes and top:
        say(
            f"raters disagree on {len(disputes):,} of {agreement.items:,} items; the largest first:"
        )
        for dispute in disputes[:top]:
            values = ", ".join(f"{rater} {value}" for rater, value in dispute.ratings.items())
            name = f"{dispute.item} ({dispute.model})" if dispute.model else dispute.item
            say(one_line(f"  {name}: {values}" + (f"  {dispute.link}" if dispute.link else "")))


def _list_levels(levels: Sequence[str]) -> str:
    """Return levels separated by commas; of many, the first ones and the last."""
    if len(levels) <= MAX_LEVELS_LISTED:
        return ", ".join(levels)
    return f"{', '.join(levels[:3])}, ..., {levels[-1]} ({len(levels):,} levels)"
