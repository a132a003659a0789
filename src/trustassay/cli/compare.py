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
    MODELS,
    OUTPUT,
    BackendChoices,
    Flag,
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
    first: Annotated[
        Path,
        Flag(
            "RUN", "The earlier run's folder; with --judge answers of any kind: a file, or a run."
        ),
    ],
    second: Annotated[
        Path, Flag("RUN", "The later run's folder; with --judge the answers to compare with.")
    ],
    *,
    metric: Annotated[
        str | None,
        Flag(
            "--metric",
            "The metric to compare, if the runs share several.",
            metavar="NAME",
            group=MODELS,
        ),
    ],
    labels: KnownLabelOptions,
    seed: Seed,
    as_json: Json,
    out: Annotated[
        Path | None,
        Flag(
            "--page --out",
            "Write a page: shares of all questions, figures and changed answers; with --judge "
            "all pairs.",
            metavar="FILE",
            group=OUTPUT,
        ),
    ],
    judge: Annotated[
        str | None,
        Flag(
            "--judge",
            "A judge that says whose answer is better, a URI as for --model of score: the win "
            "rate is reported, and no scores are compared.",
            metavar="URI",
            group=MODELS,
        ),
    ],
    prompt: Annotated[
        Path | None,
        Flag(
            "--prompt",
            "With --judge: your own template; filled with question, first, second and fence.",
            group=MODELS,
        ),
    ],
    run: Annotated[
        Path | None,
        Flag(
            "--run",
            "With --judge: the folder of the calls and verdicts. Run the same command again to "
            "continue. Default: one in trustassay-runs.",
        ),
    ],
    records: RecordOptions,
    spending: Annotated[SpendingOptions, Only("budget")],
    dry_run: Annotated[
        bool,
        Flag(
            "--dry-run", "With --judge: show the calls that would be made.", group=OUTPUT, rare=True
        ),
    ],
) -> None:
    """Compare two runs: what became of all questions, figures, and single answers; or answers by
    a judge.

    The first line says which share of all questions changed: passed, failed or not answered.
    Answers are paired by id and question, else by question. Means are compared over the pairs that
    have a score in both runs. The answers that got worse follow.

    With --judge the answers to the same questions are compared in both orders, and the win rate of
    the first input is reported. With --labels the shares of right answers are compared, too.

    \b
    trustassay compare runs/monday runs/tuesday
    trustassay compare runs/monday runs/tuesday --labels monday.jsonl \\
        --labels tuesday.jsonl
    trustassay compare runs/monday runs/tuesday --metric harmonicity \\
        --page change.html
    trustassay compare tuned.jsonl vanilla.jsonl --judge openai:gpt-4o-mini \\
        --budget 2usd
    """
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
    from trustassay.compare import pages
    from trustassay.compare.corrected import LabelFiles
    from trustassay.compare.two_runs import compare as compare_runs

    label_files = LabelFiles.from_options(**labels)
    comparison = compare_runs(first, second, metric=metric, labels=label_files, seed=seed)
    with results_on_output(not as_json):
        _show_comparison(comparison)
    if out:
        pages.build_document(comparison).write(out)
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
    from trustassay.compare import pages

    say(one_line(comparison.headline))
    paths = " and ".join(str(side.path) for side in comparison.scores)
    say(one_line(f"{comparison.metric.title}: {paths}"))
    if comparison.pairing.only_first or comparison.pairing.only_second:
        # The table below covers only the questions of both runs, so all are reported first.
        for side in comparison.scores:
            say(one_line(f"{side.path}, {side.outcomes.sentence}"))
    table = pages.build_outcomes_table(comparison)
    show_rows("of all questions", table.columns, table.rows, wide=True)
    say(comparison.pairing.in_words())
    if comparison.figures:
        table = pages.build_figures_table(comparison)
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
    sources: Annotated[
        list[str],
        Flag(
            "INPUT...",
            "A run's folder, or answers of several models, identified by the field model, or "
            "by their files.",
        ),
    ],
    *,
    metric: Annotated[
        str | None,
        Flag(
            "--metric",
            "The metric, where the run has several; for answers what to score them with, as "
            "for score. Default: fewl:form=agreement.",
            metavar="NAME[:OPTION=VALUE,...]",
            group=MODELS,
        ),
    ],
    labels: KnownLabelOptions,
    backends: Annotated[BackendChoices, Only("model", "judge", "entailer", "backends")],
    out: Annotated[
        Path | None, Flag("--out", "The folder of the run that scores answers.", group=OUTPUT)
    ],
    page: Annotated[
        Path | None, Flag("--page", "Write a page with the ranking drawn.", group=OUTPUT)
    ],
    records: RecordOptions,
    as_json: Json,
) -> None:
    """Rank models by what became of the same questions, and say how sure that is.

    Models are ranked by the share of the questions that passed, among those that all were asked: an
    answer that was refused did not pass. Of a metric without a line (fewl, reference) they are
    ranked by the mean score, over the questions that every model has a score for.

    If the answers have labels, the order is compared with true accuracy.

    \b
    trustassay rank runs/one
    trustassay rank small-model.jsonl large-model.jsonl --metric faithfulness
    trustassay rank answers.jsonl --metric fewl:form=agreement --page ranking.html
    """
    from trustassay.compare import ranking
    from trustassay.compare.corrected import LabelFiles

    folder, name, _ = score_run(join_sources(sources), metric, backends, records, out=out, seed=0)
    label_files = LabelFiles.from_options(**labels)
    result = ranking.rank(folder, metric=name, labels=label_files, seed=0)
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
    metric: Annotated[
        str | None,
        Flag(
            "--metric",
            "The metric that judges: judge (the default with --judge), pairwise, faithfulness "
            "with an entailer, or any that judges each answer by itself.",
            metavar="NAME[:OPTION=VALUE,...]",
            group=MODELS,
        ),
    ],
    backends: Annotated[BackendChoices, Only("judge", "entailer", "backends")],
    out: Annotated[
        Path | None,
        Flag(
            "--out",
            "The folder of the runs, one of the answers and some of requests. Run the same "
            "command again to continue. Default: one in trustassay-runs.",
            group=OUTPUT,
        ),
    ],
    page: Annotated[
        Path | None,
        Flag(
            "--page", "The page. Default: audit.html in the folder.", metavar="FILE", group=OUTPUT
        ),
    ],
    seed: Seed,
    records: RecordOptions,
    spending: Annotated[SpendingOptions, Only("budget")],
    dry_run: Annotated[
        bool, Flag("--dry-run", "Show the calls that would be made.", group=OUTPUT, rare=True)
    ],
    as_json: Json,
) -> None:
    """Measure what moves a judge that must not: answers are changed in one thing at a time.

    Your own answers are changed in one thing that must not matter (length, markdown, polite words,
    experts, citation marks, what the person who asks believes, a sentence to the judge), or the
    request is (asked anew, temperature, order, wording). The first line names the largest effect,
    beside that of a planted error, which must matter. INPUT may be a run, whose replies are used.

    \b
    trustassay audit answers.jsonl --judge openai:gpt-4o-mini --limit 200 \\
        --dry-run
    trustassay audit answers.jsonl --judge openai:gpt-4o-mini --limit 200 \\
        --budget 2usd
    trustassay audit answers.jsonl --metric faithfulness --entailer embedded
    trustassay audit runs/pairs --metric pairwise --judge openai:gpt-4o-mini
    """
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
    run: Annotated[Path, Flag("RUN", "The run's folder (score --out).")],
    *,
    at_least: Annotated[
        list[str],
        Flag(
            "--min",
            "The least value of a share of all questions (passed, failed, not_answered) or of "
            "a figure of summary.json, in its unit or with a per cent sign: passed=80%, "
            "grounding.trust_score=60, faithfulness.mean=90%. May be given more than once.",
            metavar="FIGURE=NUMBER[%]",
        ),
    ],
    at_most: Annotated[
        list[str],
        Flag(
            "--max",
            "The same with the largest value: failed=10%, not_answered=5%, faithfulness.errors=0.",
            metavar="FIGURE=NUMBER[%]",
        ),
    ],
    no_worse_than: Annotated[
        list[Path],
        Flag(
            "--no-worse-than",
            "An earlier run of the same questions; may be given more than once, as the last "
            "run and a pinned one. Questions are paired: more that failed, or have no answer, "
            "beyond chance fail the gate.",
            metavar="RUN",
        ),
    ],
    figure: Annotated[
        list[str],
        Flag(
            "--figure",
            "With --no-worse-than: a figure that must not be worse besides the shares of all "
            "questions. May be given more than once.",
            metavar="METRIC.FIGURE",
        ),
    ],
    margin: Annotated[
        float,
        Flag(
            "--margin",
            "With --no-worse-than: how much worse is tolerated, below 100: points by which a "
            "share of all questions may rise, per cent of the range of a named figure.",
            default=0.0,
            least=0,
            most=100,
        ),
    ],
    allow_missing: Annotated[
        str,
        Flag(
            "--allow-missing",
            "With --no-worse-than: how many answers of the earlier run may have no partner in "
            "this one, as a number or a percentage.",
            metavar="N|P%",
            default="0",
            rare=True,
        ),
    ],
    allow_other_judge: Annotated[
        bool,
        Flag(
            "--allow-other-judge",
            "With --no-worse-than: compare although a metric's options, or the models that "
            "judge, differ between the runs.",
            rare=True,
        ),
    ],
    sequential: Annotated[
        bool,
        Flag(
            "--sequential",
            "With --min and --max: intervals that hold however often one looks while the run "
            "grows; they are wider.",
            rare=True,
        ),
    ],
    undecided: Annotated[
        Literal["pass", "fail", "undecided"],
        Flag(
            "--undecided",
            "What an undecided rule counts as, in the exit status and in JUnit. An untestable "
            "one never passes.",
            default="undecided",
            rare=True,
        ),
    ],
    markdown: Annotated[
        Path | None,
        Flag(
            "--markdown",
            "Write the result as Markdown, for a pull request.",
            metavar="FILE",
            group=OUTPUT,
        ),
    ],
    junit: Annotated[
        Path | None, Flag("--junit", "Write the result as JUnit XML.", metavar="FILE", group=OUTPUT)
    ],
    labels: KnownLabelOptions,
    as_json: Json,
) -> None:
    """Pass or fail a run, for continuous integration: by bounds, or against earlier runs.

    A rule fails if its figure is on the wrong side of the line beyond chance, passes if the whole
    95 % interval is on the right one, and is undecided otherwise (--undecided); it then says how
    many more questions would decide it. All rules of a call are tested together (Holm), so that a
    run that is no worse fails in at most 2.5 of 100 cases. A rule that nothing could decide is
    untestable. Counts, such as METRIC.errors, have no interval and are compared as they are.

    Bounds are for shares of all questions first: passed, failed and not_answered (scored and
    not_scored of a metric without a line), of each metric, or METRIC.failed of one. A bound on a
    mean or another figure over scored answers fails where more than 5 % of the questions have no
    score, unless --max not_answered is given. With --labels METRIC.right is the share of right
    answers, which is not what the metric calls good.

    Against an earlier run questions are paired, whether answered or not. The gate fails if more of
    them failed, or more were not answered, beyond chance (McNemar's test; Tango's with --margin),
    or if answers of the earlier run have no partner (--allow-missing).

    Exit status: 0 pass; 1 fail; 2 bad arguments, nothing was decided; 4 undecided or untestable.

    \b
    trustassay gate runs/new --max failed=10% --max not_answered=5%
    trustassay gate runs/new --min grounding.trust_score=60 \\
        --max grounding.errors=0
    trustassay gate runs/new --labels ratings.jsonl --min faithfulness.right=80%
    trustassay gate runs/new --no-worse-than runs/main --margin 5 \\
        --markdown gate.md
    trustassay gate runs/new --no-worse-than runs/main --junit gate.xml \\
        --undecided pass
    trustassay gate runs/new --no-worse-than runs/anchor --undecided pass
    """
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
    result = gate_run(run, bounds, earlier, labels=label_files, seed=0, sequential=sequential)
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
    from trustassay.compare.gate_files import interval_in_words, reason_of, value_of
    from trustassay.compare.outcome_changes import describe_outcome_changes
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
