"""``trustassay study``, ``calibrate``, ``label`` and ``agree``: commands on labels by people."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.errors import UsageError, did_you_mean
from trustassay.report.terminal import one_line, print_json, say, show_rows, show_table
from trustassay.report.text import ends_text
from trustassay.runs.options import (
    CHANCE,
    INPUT,
    LABELS,
    MODELS,
    OUTPUT,
    Flag,
    Seed,
)
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
    runs: Annotated[
        list[Path], Flag("RUN...", "Folders of finished runs: of the same answers, or of others.")
    ],
    label: Annotated[
        list[str],
        Flag(
            "--label",
            "The field of the samples that says how good an answer is: 0 and 1, a level, a "
            "number, or words such as yes and no; dots descend into objects. Or a column of "
            "--ratings. May be given again.",
            metavar="FIELD",
            group=LABELS,
        ),
    ],
    ratings: Annotated[
        Path | None,
        Flag(
            "--ratings",
            "Ratings by people as `annotate` writes them or `agree` reads them, pooled to one "
            "label; or a table keyed by id, whose columns --label names.",
            group=LABELS,
        ),
    ],
    by: Annotated[
        list[str],
        Flag(
            "--by",
            "Give all figures also for each value of a field: source, model, ... May be given "
            "again.",
            metavar="FIELD",
        ),
    ],
    positive: Annotated[
        list[str],
        Flag(
            "--positive",
            "A word of a label that means right; all others of that label then mean wrong. May "
            "be given again.",
            metavar="WORD",
            group=LABELS,
        ),
    ],
    at_least: Annotated[
        float | None,
        Flag(
            "--at-least",
            "Labels are right from this number on, where they are numbers.",
            group=LABELS,
        ),
    ],
    levels: Annotated[
        str | None,
        Flag(
            "--levels",
            "Words of an ordinal scale, the lowest first, with commas between them.",
            group=LABELS,
        ),
    ],
    machine: Annotated[
        list[str],
        Flag(
            "--machine",
            "A rater of --ratings that is a judge: a score to be studied, not a label. May be "
            "given again.",
            metavar="RATER",
            group=LABELS,
            rare=True,
        ),
    ],
    fields: common.RatingFields,
    page: Annotated[
        Path | None, Flag("--page", "Write a page with curves and tables.", group=OUTPUT)
    ],
    table: Annotated[
        Path | None, Flag("--table", "Write all figures: .csv, .tsv or .md.", group=OUTPUT)
    ],
    resamples: Annotated[
        int,
        Flag(
            "--resamples",
            "How often questions are drawn anew.",
            group=CHANCE,
            default=2000,
            least=100,
            rare=True,
        ),
    ],
    seed: Seed,
    as_json: common.Json,
) -> None:
    """Say which scores of a run to believe: each compared with labels by people.

    AUROC, AUPRC and PRR (tau-b for levels and numbers), with 95 % intervals over questions;
    differences between scores with p-values corrected for their number; baselines (length, source,
    chance), what people reach, what each score takes, and which is right where another is wrong.
    --table and --json also have tau-b, Spearman, Pearson, and for probabilities Brier and
    calibration error.

    \b
    trustassay study runs/one --label label
    trustassay study runs/one runs/two --label labels.correct --by source \\
        --by model
    trustassay study runs/one --ratings ratings.jsonl --machine gpt-4o \\
        --page study.html
    trustassay study runs/one --ratings gold.csv --label verdict \\
        --positive grounded --table all.csv
    """
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
        outputs.write_page(result, page)
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
    runs: Annotated[list[Path], Flag("RUN...", "Folders of finished runs with labelled answers.")],
    label: Annotated[
        str,
        Flag(
            "--label",
            "The field of the samples that says whether an answer is right: two classes, as "
            "study reads them. Or a column of --ratings.",
            metavar="FIELD",
            group=LABELS,
            default="",
        ),
    ],
    metric: Annotated[
        list[str],
        Flag(
            "--metric",
            "A score of the runs: a metric, or a part of one (faithfulness.support). Given "
            "again, they are combined. Not needed where the runs have one metric.",
            metavar="NAME",
            group=MODELS,
        ),
    ],
    lower: Annotated[
        list[str],
        Flag(
            "--lower",
            "A part named by --metric of which lower is better, if its metric does not say so.",
            metavar="NAME",
            rare=True,
        ),
    ],
    at_most: Annotated[
        list[float],
        Flag(
            "--at-most",
            "Find a threshold above which at most this share is wrong. May be given again; the "
            "report shows the first. Default: 0.05, 0.1 and 0.2.",
            metavar="SHARE",
        ),
    ],
    confidence: Annotated[
        float,
        Flag(
            "--confidence",
            "How surely a promise about accepted answers holds.",
            group=CHANCE,
            default=0.95,
            rare=True,
        ),
    ],
    method: Annotated[
        str,
        Flag(
            "--method",
            "isotonic, logistic, or auto: the one with the lower log loss out of fold.",
            default="auto",
            rare=True,
        ),
    ],
    ratings: Annotated[
        Path | None,
        Flag(
            "--ratings",
            "Ratings by people, pooled to one label; or a table keyed by id, whose column "
            "--label names. As of study.",
            group=LABELS,
        ),
    ],
    positive: Annotated[
        list[str],
        Flag(
            "--positive",
            "A word of the label that means right; all others then mean wrong. May be given again.",
            metavar="WORD",
            group=LABELS,
        ),
    ],
    at_least: Annotated[
        float | None,
        Flag(
            "--at-least",
            "Labels are right from this number on, where they are numbers.",
            group=LABELS,
        ),
    ],
    machine: Annotated[
        list[str],
        Flag(
            "--machine",
            "A rater of --ratings that is a judge, and does not count. May be given again.",
            metavar="RATER",
            group=LABELS,
            rare=True,
        ),
    ],
    fields: common.RatingFields,
    out: Annotated[
        Path,
        Flag(
            "--out", "The file to write.", metavar="FILE", group=OUTPUT, default="calibrator.json"
        ),
    ],
    page: Annotated[
        Path | None, Flag("--page", "Write a page with curves and tables.", group=OUTPUT)
    ],
    resamples: Annotated[
        int,
        Flag(
            "--resamples",
            "How often questions are drawn anew.",
            group=CHANCE,
            default=2000,
            least=100,
            rare=True,
        ),
    ],
    seed: Seed,
    as_json: common.Json,
) -> None:
    """Make scores into probabilities of being right, from labelled answers.

    The file that is written holds the curve, thresholds with a guarantee (above this one, at most 5
    % of what is accepted is wrong), and what the scores looked like. score, rescore and report
    apply it with --calibrator, refuse it for another metric or other options, and warn if the new
    scores look unlike those that it was made from. Too few labels are refused, with the number that
    would do. No model is asked.

    \b
    trustassay calibrate runs/labelled --label label
    trustassay calibrate runs/labelled --label correct \\
        --metric faithfulness.support --at-most 0.05
    trustassay calibrate runs/one runs/two --label label \\
        --metric faithfulness --metric reference
    trustassay calibrate runs/one --ratings ratings.jsonl --out good.json \\
        --page good.html
    trustassay score new.jsonl --metric faithfulness --calibrator calibrator.json
    """
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
        command.write_page(result, page)
        say(f"page: {page}")
    say(f"calibrator: {result.write(out)}")
    if as_json:
        print_json(result.to_dict())


@with_options
def label(
    *,
    runs: Annotated[list[Path], Flag("RUN...", "Folders of finished runs.")],
    number: Annotated[
        int | None,
        Flag(
            "--number",
            "Add about this many answers to the plan. Default: 50 where there is no plan yet, "
            "else none.",
            least=1,
        ),
    ],
    plan: Annotated[
        Path | None,
        Flag("--plan", "The file of the plan. Default: RUN.label.jsonl beside the first run."),
    ],
    ratings: Annotated[
        list[Path],
        Flag(
            "--ratings",
            "Ratings as `annotate` writes them or `agree` reads them. May be given again.",
            group=LABELS,
        ),
    ],
    label: Annotated[
        str,
        Flag(
            "--label",
            "A field of the samples that says whether an answer is right, in place of "
            "--ratings or beside them.",
            metavar="FIELD",
            group=LABELS,
            default="",
        ),
    ],
    at_least: Annotated[
        float | None,
        Flag(
            "--at-least",
            "Labels are right from this number on, where they are numbers.",
            group=LABELS,
        ),
    ],
    positive: Annotated[
        list[str],
        Flag(
            "--positive",
            "A word that means right; all others then mean wrong. May be given again.",
            metavar="WORD",
            group=LABELS,
        ),
    ],
    compare: Annotated[
        tuple[str, str] | None,
        Flag(
            "--compare",
            "Two models, whose shares of right answers to the same questions are compared, or "
            "two scores, whose AUROCs are.",
            metavar="A B",
        ),
    ],
    auroc: Annotated[
        str,
        Flag(
            "--auroc",
            "Choose answers for the AUROC of this score.",
            metavar="SCORE",
            default="",
            rare=True,
        ),
    ],
    score: Annotated[
        list[str],
        Flag(
            "--score",
            "What predicts the labels; fixed with the plan. Default: all metrics of the runs. "
            "May be given again.",
        ),
    ],
    unit: Annotated[
        str,
        Flag(
            "--unit",
            "What is drawn: question (with all its answers), or answer (each by itself); fixed "
            "with the plan.",
            metavar="question|answer",
            group=INPUT,
            default="question",
            rare=True,
        ),
    ],
    random: Annotated[
        bool,
        Flag(
            "--random",
            "Draw with equal probabilities: `study` can read the ratings then.",
            rare=True,
        ),
    ],
    width: Annotated[
        float,
        Flag(
            "--width",
            "The width of the interval that is wanted, as a share.",
            default=0.05,
            rare=True,
        ),
    ],
    beyond: Annotated[
        bool,
        Flag(
            "--beyond",
            "Count questions like these for the goals, not the answers of the runs alone.",
            rare=True,
        ),
    ],
    fields: common.RatingFields,
    seed: Seed,
    as_json: common.Json,
) -> None:
    """Choose the answers that people should rate next, and estimate the result for all.

    Answers of which the scores are less certain are drawn more often, with known probabilities, so
    that the share of right answers is estimated without bias from few ratings. The plan is a file;
    `annotate --plan` shows its answers in order.

    \b
    trustassay label runs/one                      # proposes 50 answers
    trustassay annotate runs/one --plan runs/one.label.jsonl --rater anna \\
        --rubric verdict
    trustassay label runs/one --ratings ratings.jsonl --width 0.1
    trustassay label runs/one --ratings ratings.jsonl --number 100
    trustassay label runs/one --ratings ratings.jsonl --compare model-a model-b
    """
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


MAX_DISPUTES = 10
"""Items on which raters disagree that are listed, the largest disagreement first."""
MAX_LEVELS_LISTED = 12
"""Levels that are listed one by one; of more, the first and the last are shown."""


@with_options
def agree(
    *,
    source: Annotated[
        Path | None,
        Flag(
            "FILE",
            "Ratings: .csv, .tsv, .jsonl or .json. A row has item, rater and rating, and maybe "
            "repeat and model; or item, and a column of numbers for each rater. May be left "
            "out if --run has votes of judges.",
        ),
    ],
    fields: Annotated[
        Mapping[str, str],
        Flag(
            "--field",
            "If a column has another name: item=question_id; if FILE has several rubrics, "
            "which one: rating=truthfulness. May be given again.",
            metavar="NAME=COLUMN",
            group=INPUT,
        ),
    ],
    rater: Annotated[
        list[str],
        Flag(
            "--rater",
            "Read the ratings of FILE by this rater alone; of a wide table the column that "
            "holds them. May be given again.",
            metavar="NAME",
            group=LABELS,
        ),
    ],
    levels: Annotated[
        str | None,
        Flag(
            "--levels",
            "All levels of the scale: 1..5, numbers, or words, the lowest first, with commas "
            "between them. Needed for weights where the ratings do not use all levels. Other "
            "words are categories without an order.",
            metavar="LEVELS",
            group=LABELS,
        ),
    ],
    run: Annotated[
        Path | None,
        Flag(
            "--run",
            "Folder of the run that was rated: disputes link to its report, and the votes of "
            "its judges, if it has any, are ratings like those of FILE.",
        ),
    ],
    machine: Annotated[
        list[str],
        Flag(
            "--machine",
            "A rater of FILE that is a judge and not a person: the variance of judges is given "
            "separately. May be given more than once.",
            metavar="RATER",
            group=LABELS,
            rare=True,
        ),
    ],
    page: Annotated[
        Path | None, Flag("--page", "Write a page with the variance drawn.", group=OUTPUT)
    ],
    as_json: common.Json,
) -> None:
    """Say how far raters agree: each pair, all together, each with themselves; and where not.

    Cohen's and Fleiss's kappa, Krippendorff's alpha, Gwet's AC1, intraclass correlations,
    percentages, and mean differences, with 95 % intervals over items. Raters are compared by the
    first rating of an item; a later one of the same rater is a repeat. Each judge is compared with
    all people. The variance of the ratings is decomposed into what comes from answers, raters and
    repeats, of people and of judges.

    \b
    trustassay agree ratings.csv
    trustassay agree wide.csv --field item=question --rater anna --rater bela \\
        --rater judge
    trustassay agree ratings.csv --levels 1..5
    trustassay agree ratings.jsonl --levels poor,fair,good --run runs/one --json
    trustassay agree --run runs/judged --page variance.html
    """
    from trustassay.people.agree import add_report_links, measure_agreement, read_units_of_items
    from trustassay.people.agree_outputs import build_document

    ratings, judges = _gather_ratings(source, run, fields, rater, levels, machine)
    # The unit of intervals is the question, and only the run knows the questions.
    units = read_units_of_items(run) if run else None
    result = measure_agreement(ratings, machines=judges, units=units, progress=True)
    disputes = add_report_links(run, result.disputes) if run else result.disputes
    _show_agreement(result, disputes)
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
    from trustassay.people.judges import join_ratings, read_votes

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


def _show_agreement(agreement: RaterAgreement, disputes: Sequence[RatingDispute]) -> None:
    from trustassay.people import agree_outputs as outputs

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
        table = outputs.build_overall_table(agreement)
        show_rows(table.first, table.columns, table.rows)
        for reason in sorted(
            {figure.without for figure in agreement.overall.values() if figure.without}
        ):
            say(f"no interval: {reason}")
    for table in outputs.build_group_tables(agreement):
        show_rows(table.first, table.columns, table.rows, wide=True)
    if agreement.variance:
        if rows := outputs.build_variance_table(agreement.variance).rows:
            show_rows("variance of ratings", outputs.VARIANCE_COLUMNS, rows, wide=True)
        for note in outputs.describe_variance(agreement.variance):
            say(one_line(note))
        say(one_line(agreement.variance.in_words()))
    # Disputed items are what people should talk about, so that they are listed.
    if disputes:
        say(
            f"raters disagree on {len(disputes):,} of {agreement.items:,} items; the largest first:"
        )
        for dispute in disputes[:MAX_DISPUTES]:
            values = ", ".join(f"{rater} {value}" for rater, value in dispute.ratings.items())
            name = f"{dispute.item} ({dispute.model})" if dispute.model else dispute.item
            say(one_line(f"  {name}: {values}" + (f"  {dispute.link}" if dispute.link else "")))


def _list_levels(levels: Sequence[str]) -> str:
    """Return levels separated by commas; of many, the first ones and the last."""
    if len(levels) <= MAX_LEVELS_LISTED:
        return ", ".join(levels)
    return f"{', '.join(levels[:3])}, ..., {levels[-1]} ({len(levels):,} levels)"
