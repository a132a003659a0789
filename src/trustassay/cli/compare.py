"""``trustassay compare``, ``rank``, ``gate`` and ``audit``: two runs, models, or a judge."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from trustassay.cli.common import Json, Source, default_metrics, join_sources, run_folder
from trustassay.cli.options import Only, list_given_flags, with_options
from trustassay.cli.results import print_run, score_run, show_plan, show_worse
from trustassay.core.files import write_atomic
from trustassay.errors import UsageError
from trustassay.report.terminal import (
    complain,
    one_line,
    print_json,
    results_on_output,
    say,
    show_rows,
    show_table,
)
from trustassay.runs.options import (
    BackendChoices,
    KnownLabelOptions,
    RecordOptions,
    Seed,
    SpendingOptions,
)

if TYPE_CHECKING:
    from trustassay.compare.gate_rules import Gate
    from trustassay.compare.ranking import Ranking
    from trustassay.compare.two_runs import RunComparison


@with_options
def compare(
    first: Path,
    second: Path,
    *,
    metric: str | None,
    labels: KnownLabelOptions,
    seed: Seed,
    as_json: Json,
    out: Path | None,
    judge: str | None,
    prompt: Path | None,
    run: Path | None,
    records: RecordOptions,
    spending: SpendingOptions,
    dry_run: bool,
) -> None:
    """Compare two runs: what became of all questions, figures, and single answers; or answers by
    a judge."""
    if judge is not None:
        if metric is not None or labels:
            flag = "--labels" if labels else "--metric"
            raise UsageError(f"{flag}: a judge compares answers, not scores")
        # A judge compares the answers themselves: the two paths are files of answers and not runs.
        _compare_by_judge(
            (first, second, judge), prompt, run, out, seed, records, spending, dry_run, as_json
        )
        return
    # Options for calls of a judge would be ignored when two runs are compared.
    if flags := list_given_flags(records, spending, prompt=prompt, run=run, dry_run=dry_run):
        raise UsageError(f"{flags[0]}: has an effect with --judge alone")
    from trustassay.compare import two_runs
    from trustassay.compare.corrected import LabelFiles

    label_files = LabelFiles.from_options(**labels)
    comparison = two_runs.compare(first, second, metric=metric, labels=label_files, seed=seed)
    with results_on_output(not as_json):
        _show_comparison(comparison)
    if out:
        two_runs.build_document(comparison).write(out)
        say(f"page: {out}")
    if as_json:
        print_json(comparison.to_dict())


def _compare_by_judge(
    inputs: tuple[Path, Path, str],
    prompt: Path | None,
    folder: Path | None,
    page: Path | None,
    seed: int,
    records: RecordOptions,
    spending: SpendingOptions,
    dry_run: bool,
    as_json: bool,
) -> None:
    from trustassay.api import Run
    from trustassay.calls.client import CallOptions
    from trustassay.compare import preferences
    from trustassay.metrics.pairwise import Pairwise
    from trustassay.runs.folder import RunFolder
    from trustassay.runs.intake import default_folder

    first, second, judge = inputs
    metric = Pairwise(None if prompt is None else str(prompt))
    options = preferences.WinRateOptions(
        metric, seed, progress=True, calls=CallOptions.of(**spending), **records
    )
    # The name has a hash of the file's state: a changed second file makes another run.
    state = default_folder(second).name
    settings = {"second": state, "judge": judge, "metrics": metric.settings(), "seed": seed}
    out = run_folder(folder, first, records, **settings)
    if dry_run:
        show_plan(preferences.plan_win_rate(*inputs, out, options), as_json=as_json)
        return
    result = preferences.win_rate(*inputs, out, options)
    # A win rate is stored as a run of the metric pairwise, and is printed like one.
    run = Run(RunFolder(result.path), result.outcome)
    status = print_run(run, as_json=False, worst=False)
    for count, description in (
        (result.pairs.only_first, f"questions of {first} alone"),
        (result.pairs.only_second, f"questions of {second} alone"),
        (result.pairs.blank, "questions to which one of them has no answer"),
    ):
        if count:
            say(one_line(f"left out: {count:,} {description}"))
    say(one_line(preferences.win_rate_headline(result, first, second)))
    if page:
        page.parent.mkdir(parents=True, exist_ok=True)
        say(f"page: {run.report(page)}")
    if as_json:
        print_json(result.to_dict())
    if status:
        raise typer.Exit(status)


def _show_comparison(comparison: "RunComparison") -> None:
    from trustassay.compare.two_runs import build_figures_table, build_outcomes_table

    say(one_line(comparison.headline))
    paths = " and ".join(str(side.path) for side in comparison.scores)
    say(one_line(f"{comparison.metric.title}: {paths}"))
    if comparison.pairing.only_first or comparison.pairing.only_second:
        # The table below covers only the questions of both runs, so all are reported first.
        for side in comparison.scores:
            say(one_line(f"{side.path}, {side.outcomes.sentence}"))
    table = build_outcomes_table(comparison)
    show_rows("of all questions", table.columns, table.rows, wide=True)
    say(comparison.pairing.in_words())
    if comparison.figures:
        table = build_figures_table(comparison)
        show_rows("figures of the pairs", table.columns, table.rows, wide=True)
    # Figures that only one run has, or that have no pairs, are named with the reason.
    for key, reason in comparison.not_compared.items():
        say(one_line(f"{key} is not compared: {reason}"))
    if len(comparison.pairing.first):
        show_worse(comparison.metric.name, comparison.answers)
    for line in comparison.corrected.in_words() if comparison.corrected else ():
        say(one_line(line))
    for note in comparison.notes:
        say(one_line(f"note: {note}"))


@with_options
def rank(
    sources: list[str],
    *,
    metric: str | None,
    labels: KnownLabelOptions,
    backends: BackendChoices,
    out: Path | None,
    page: Path | None,
    seed: Seed,
    records: RecordOptions,
    as_json: Json,
) -> None:
    """Rank models by what became of the same questions, and say how sure that is."""
    from trustassay.compare import ranking
    from trustassay.compare.corrected import LabelFiles

    folder, name, _ = score_run(
        join_sources(sources), metric, backends, records, out=out, seed=seed
    )
    label_files = LabelFiles.from_options(**labels)
    result = ranking.rank(folder, metric=name, labels=label_files, seed=seed)
    with results_on_output(not as_json):
        _show_ranking(result)
    if page:
        ranking.build_document(result, sources).write(page)
        say(f"page: {page}")
    if as_json:
        print_json(result.to_dict())


def _show_ranking(result: "Ranking") -> None:
    from trustassay.compare import ranking

    # By shares all questions count; by a figure only those that every model has a score for.
    verb = "were asked" if result.by_share else "have a score for"
    say(
        one_line(
            f"{result.metric.title}: {result.questions:,} questions that all models {verb}, "
            f"ranked by {'the share ' if result.by_share else ''}{result.by}"
        )
    )
    if result.left_out:
        say(f"{result.left_out:,} questions are left out: not all models {verb} them")
    table = ranking.build_table(result)
    show_rows("model", table.columns, table.rows, wide=True)
    for line in ranking.describe_ranking(result):
        say(one_line(line))


@with_options
def audit(
    source: Source,
    *,
    metric: str | None,
    backends: Annotated[BackendChoices, Only("judge", "entailer", "model", "embedder")],
    out: Path | None,
    page: Path | None,
    seed: Seed,
    records: RecordOptions,
    spending: SpendingOptions,
    dry_run: bool,
    as_json: Json,
) -> None:
    """Measure what moves a judge that must not: answers are changed in one thing at a time."""
    from trustassay.calls.client import CallOptions
    from trustassay.core.registry import metric_from_text
    from trustassay.people.audit import experiment
    from trustassay.runs.intake import InputOptions

    fields = records.get("fields", {})
    metric_text = metric or (
        # A given judge is what the user wants to audit.
        "judge" if "judge" in backends else default_metrics(source, fields, {})[0][0]
    )
    folder = run_folder(out, source, records, audit=metric_text, seed=seed, **backends)
    options = InputOptions(progress=True, calls=CallOptions.of(**spending), **records)
    auditing = experiment.Audit(
        source, metric_from_text(metric_text), backends, folder, options, seed
    )
    if dry_run:
        show_plan(auditing.plan(), as_json=as_json)
        return
    result = auditing.run()
    say(one_line(experiment.headline(result)))
    table = experiment.build_table(result)
    show_rows("changed", table.columns, table.rows, wide=True)
    for line in experiment.describe_notes(result):
        say(one_line(line))
    experiment.build_document(result).write(page or folder / "audit.html")
    say(f"page: {page or folder / 'audit.html'}")
    if as_json:
        print_json(result.to_dict())
    if result.failed:
        complain(
            f"failed: {result.failed:,}, in flips; run the same command again to retry only these"
        )


# Undecided has a status of its own, so that a pipeline can rerun with more answers.
FAILED, UNDECIDED = 1, 4
STATUS = {"pass": 0, "fail": FAILED, "undecided": UNDECIDED, "untestable": UNDECIDED}


@with_options
def gate(
    run: Path,
    *,
    at_least: list[str],
    at_most: list[str],
    no_worse_than: list[Path],
    figure: list[str],
    margin: float,
    allow_missing: str,
    allow_other_judge: bool,
    sequential: bool,
    undecided: Literal["pass", "fail", "undecided"],
    markdown: Path | None,
    junit: Path | None,
    labels: KnownLabelOptions,
    seed: Seed,
    as_json: Json,
) -> None:
    """Pass or fail a run, for continuous integration: by bounds, or against earlier runs."""
    from trustassay.compare import gate_files, gate_rules
    from trustassay.compare.corrected import LabelFiles
    from trustassay.compare.gate import gate as gate_run

    # The default "0" is true as a text, so that it is compared here.
    other_flags = {"allow_missing": allow_missing != "0", "allow_other_judge": allow_other_judge}
    flags = list_given_flags(figure=figure, margin=margin, **other_flags)
    # These options are about earlier runs: without one they would be ignored.
    if flags and not no_worse_than:
        raise UsageError(f"{flags[0]}: has an effect with --no-worse-than alone")
    bounds = [gate_rules.parse_bound(text, at_least=True) for text in at_least]
    bounds += [gate_rules.parse_bound(text, at_least=False) for text in at_most]
    missing = gate_rules.parse_allowance(allow_missing)
    earlier = [
        gate_rules.EarlierRun(path, figure, margin, missing, allow_other_judge)
        for path in no_worse_than
    ]
    label_files = LabelFiles.from_options(**labels)
    result = gate_run(run, bounds, earlier, labels=label_files, seed=seed, sequential=sequential)
    # ``--undecided fail`` fails an untestable rule too; no option lets one pass.
    strict = result.result == "untestable" and undecided == "fail"
    counted_result = undecided if result.result == "undecided" or strict else result.result
    with results_on_output(not as_json):
        _show_gate(result)
        if counted_result != result.result:
            say(f"{result.result} counts as {counted_result} (--undecided)")
    if markdown:
        _write_file(markdown, gate_files.render_markdown(result).encode())
    if junit:
        _write_file(junit, gate_files.render_junit(result, undecided))
    if as_json:
        print_json(result.to_dict() | {"undecided_counts_as": undecided})
    # After all files are written: a failed gate has a report too.
    raise typer.Exit(STATUS[counted_result])


def _write_file(path: Path, content: bytes) -> None:
    write_atomic(path, content)
    say(f"written: {path}")


def _show_gate(result: "Gate") -> None:
    from trustassay.compare.changes import describe_outcome_changes
    from trustassay.compare.gate_files import interval_in_words, reason_of, value_of
    from trustassay.report.text import format_figure

    for outcomes in result.outcomes.values():
        say(one_line(outcomes.sentence))
    rows = [
        (
            item.name,
            item.result,
            value_of(item),
            interval_in_words(item),
            item.rule,
            reason_of(item),
        )
        for item in result.checks
    ]
    headings = ("figure", "result", "value", "95 % interval", "rule", "why")
    show_table(headings, rows, {"rule", "why"}, wide=True)
    for earlier in result.against:
        for name, changes in earlier.outcomes.items():
            say(one_line(f"{name} since {earlier.path}: {describe_outcome_changes(changes)}"))
        for name, figures in earlier.figures.items():
            # The first figure is the mean. It leaves answers out, so it follows the shares.
            for change in list(figures.values())[:1]:
                unit = change.figure.unit
                sides = [format_figure(item, unit) for item in (change.first, change.second)]
                values = " → ".join(sides) + (f" {unit}" if unit else "")
                say(
                    f"  {name}.{change.key} over the {change.questions:,} questions that it counts "
                    f"in both: {values} ({change.verdict})"
                )
        for name, answers in earlier.answers.items():
            show_worse(name, answers)
    for note in result.notes:
        say(one_line(f"note: {note}"))
    say(f"gate: {result.result}")
