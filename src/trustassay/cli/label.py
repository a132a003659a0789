"""``trustassay label``: choose the answers that people should rate next."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.core.labels import parse_number, parse_percent
from trustassay.errors import UsageError
from trustassay.report.terminal import one_line, print_json, say, show_table
from trustassay.runs.options import (
    INPUT,
    Flag,
    Seed,
)
from trustassay.text.numbers import amount, ends_text

if TYPE_CHECKING:
    from trustassay.people.label.calibration_work import CalibrationPlanOptions
    from trustassay.people.label.command import Labelling
    from trustassay.people.label.population import LabelFigure, LabelNeed
    from trustassay.people.study.labels import LabelSource


def read_share(text: str) -> float:
    """Read a share such as 10% or 0.1; raises UsageError if it is neither."""
    percent = parse_percent(text)
    share = parse_number(text) if percent is None else percent / 100
    if share is None or not 0 < share < 1:
        raise UsageError(f"expected a share between 0 and 1, such as 10% or 0.1, got {text[:40]!r}")
    return share


@with_options
def label(  # noqa: PLR0913 - one argument an option
    *,
    runs: common.FinishedRuns,
    purpose: Annotated[
        str,
        Flag(
            "--for",
            "calibrate: choose the answers whose labels let `calibrate` accept most answers by "
            "--score. Takes a run, or a table with questions, responses and the score.",
            metavar="calibrate",
            default="",
        ),
    ],
    number: Annotated[
        int | None,
        Flag(
            "--number",
            "About how many answers to add to the plan; with --for, the number of labels in all. "
            "Default: 50 for a new plan, none for an existing one; with --for 200.",
            least=1,
        ),
    ],
    plan: Annotated[
        Path | None,
        Flag("--plan", "File of the plan. Default: RUN.label.jsonl beside the first run."),
    ],
    ratings: Annotated[list[Path], common.RATINGS],
    label: Annotated[str, common.LABEL] = "",
    at_least: common.AtLeast,
    positive: common.Positive,
    compare: Annotated[
        tuple[str, str] | None,
        Flag(
            "--compare",
            "Choose answers to compare two models (share of right answers to the same questions) "
            "or two scores (AUROC).",
            metavar="A B",
        ),
    ],
    auroc: Annotated[
        str,
        Flag(
            "--auroc",
            "Choose answers to estimate the AUROC of this score.",
            metavar="SCORE",
            default="",
            rare=True,
        ),
    ],
    score: Annotated[
        list[str],
        Flag(
            "--score",
            "A score that predicts the labels; fixed once the plan exists. Default: all metrics "
            "of the runs. May be given again.",
        ),
    ],
    unit: Annotated[
        str,
        Flag(
            "--unit",
            "The unit to draw: question (with all its answers), or answer (each on its own); "
            "fixed once the plan exists.",
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
            "Draw with equal probabilities, so that `study` can use the ratings.",
            rare=True,
        ),
    ],
    at_most: Annotated[
        str,
        Flag(
            "--at-most",
            "With --for: the largest share of accepted answers that may be wrong, 10% or 0.1. "
            "Default: 10%.",
            metavar="SHARE",
            default="",
        ),
    ],
    looks: Annotated[
        int | None,
        Flag(
            "--looks",
            "With --for: how many times to test the promise, after 50, 100, 200, ... labels. "
            "Default: once, after --number labels.",
            least=1,
            most=10,
        ),
    ],
    hope: Annotated[
        str,
        Flag(
            "--hope",
            "With --for: the share of the answers to rate first, those with the best scores. "
            "Default: 50%.",
            metavar="SHARE",
            default="",
            rare=True,
        ),
    ],
    lower: Annotated[
        bool, Flag("--lower", "With --for: lower values of --score are better.", rare=True)
    ],
    width: Annotated[
        float,
        Flag(
            "--width",
            "The wanted width of the 95 % interval, as a share.",
            default=0.05,
            rare=True,
        ),
    ],
    beyond: Annotated[
        bool,
        Flag(
            "--beyond",
            "Plan for similar questions in general, not only for the answers of these runs.",
            rare=True,
        ),
    ],
    fields: common.RatingFields,
    seed: Seed,
    as_json: common.Json,
) -> None:
    """Choose the answers that people should rate next, and estimate the result for all.

    Answers with less certain scores are drawn more often, with known probabilities, so that few
    ratings give an unbiased estimate of the share of right answers. The plan is a file;
    `annotate --plan` shows its answers in order.

    \b
    trustassay label runs/one                      # proposes 50 answers
    trustassay annotate runs/one --plan runs/one.label.jsonl --rater anna \\
        --rubric verdict
    trustassay label runs/one --ratings ratings.jsonl --width 0.1
    trustassay label runs/one --ratings ratings.jsonl --number 100
    trustassay label runs/one --ratings ratings.jsonl --compare model-a model-b
    trustassay label answers.csv --for calibrate --score confidence
    """
    from trustassay.people.label.command import label as run_label

    # Typer would accept any text here.
    if purpose not in ("", "calibrate"):
        raise UsageError(f"--for: expected calibrate, got {purpose[:40]!r}")
    # An option of the other kind of plan would be ignored, so it is a mistake.
    of_estimates = {"--compare": compare, "--auroc": auroc, "--random": random, "--beyond": beyond}
    of_promises = {"--at-most": at_most, "--looks": looks, "--hope": hope, "--lower": lower}
    for flag, value in (of_estimates if purpose else of_promises).items():
        if value:
            raise UsageError(
                f"{flag}: only possible {'without' if purpose else 'with'} --for calibrate"
            )
    # A plan for promises has its own file and its own figures.
    if purpose:
        from trustassay.people.label.calibration_work import CalibrationPlanOptions
        from trustassay.people.study.labels import LabelSource

        if len(runs) > 1 or len(score) > 1:
            raise UsageError("--for calibrate: expected one source and one --score")
        options = CalibrationPlanOptions(
            "".join(score),
            lower,
            number,
            read_share(at_most) if at_most else None,
            looks,
            read_share(hope) if hope else None,
            seed,
        )
        source = LabelSource(
            ratings,
            [label] if label else [],
            dict(fields),
            positive=positive,
            at_least=at_least,
            weighted=True,
        )
        _label_for_calibration(runs[0], plan, source, options, as_json=as_json)
        return
    # The rest is about plans for estimates.
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


def _label_for_calibration(
    source: Path,
    plan: Path | None,
    labels: LabelSource,
    options: CalibrationPlanOptions,
    *,
    as_json: bool,
) -> None:
    """Begin or continue a plan for calibrate, and print what to rate and what comes then."""
    from trustassay.input.journal import is_journal
    from trustassay.people.label.calibration_work import CalibrationWork
    from trustassay.people.label.command import default_plan

    path = plan or default_plan(source)
    work = CalibrationWork(source, path, labels, options)
    wrong = work.read_wrong()
    work.advance(wrong)
    progress = work.measure_progress(wrong)
    drawn = progress.rated + len(progress.waiting)
    say(f"plan {path}: {amount(drawn, 'answer')} drawn, {progress.rated:,} of them rated")
    say(work.describe_missing(progress))
    is_run = source.is_dir()
    files = list(labels.ratings) or [Path("ratings.jsonl")]
    # `annotate` continues no file that it did not write.
    journals = [path for path in files if not path.exists() or is_journal(path)]
    journal = journals[0] if journals else Path("ratings.jsonl")
    has_golds = is_run and _has_golds(source)
    if progress.waiting:
        say(f"{amount(len(progress.waiting), 'answer')} to rate now; the plan grows as you rate:")
        rubric = ["--rubric", "verdict"] if has_golds else []
        rate = ("annotate", source, "--plan", path, "--rater", "NAME", *rubric, "--out", journal)
        say(f"  {_format_command(*rate)}")
        if is_run and path == default_plan(source):
            say(f"  or {_format_command('view', source, '--rate', 'NAME', *rubric)}")
    words: list[object] = ["calibrate", source, "--score", work.score, "--plan", path]
    # The shipped rubric without gold answers has levels from 0 to 5, of which 4 and 5 pass.
    at_least = labels.at_least
    if at_least is None and not (has_golds or labels.ratings or labels.fields):
        at_least = 4
    words += [word for name in labels.fields for word in ("--label", name)]
    words += [word for file in files if not labels.fields for word in ("--ratings", file)]
    words += [] if at_least is None else ["--at-least", f"{at_least:g}"]
    words += [word for text in labels.positive for word in ("--positive", text)]
    say(f"then: {_format_command(*words)}")
    if as_json:
        print_json(work.to_dict(progress))


def _show_labelling(
    labelling: Labelling, runs: list[Path], ratings: list[Path], repeated_options: list[str]
) -> None:
    for outcome_line in labelling.outcome_lines:
        say(one_line(outcome_line))
    say(
        f"{amount(labelling.answers, 'answer')}, {amount(labelling.units, labelling.unit)} to draw "
        f"from; plan {labelling.plan}: {amount(labelling.drawn, 'answer')} drawn, "
        f"{labelling.rated:,} of them rated"
    )
    for note in labelling.notes:
        say(one_line(note))
    if labelling.figures:
        say(f"estimates from {amount(labelling.used, 'label')} (weighted), with 95 % intervals:")
        rows = [_build_row(figure) for figure in labelling.figures]
        headings = ("figure", "value", "these answers", "similar questions", "random labels")
        show_table(headings, rows, ())
        for figure in labelling.figures:
            if figure.without:
                say(one_line(f"no interval: {figure.figure.title}: {figure.without}"))
    for need in labelling.needs:
        say(f"{need.goal}: {_describe_need(need)}")
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
        say(f"all answers of the plan are rated; to add more: {more}")


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
    more = "not reached even if all answers are labelled"
    if need.more is not None:
        more = f"needs about {amount(need.more, 'more label')}"
    even = "not reached" if need.evenly is None else f"about {need.evenly:,}"
    return f"{more} (with randomly chosen answers: {even})"


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
