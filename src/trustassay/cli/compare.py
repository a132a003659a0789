"""``trustassay compare``, ``rank``, ``gate`` and ``audit``: two runs, models, or a judge."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from trustassay.cli.common import Json, Source, default_metrics, run_folder, source_of
from trustassay.cli.options import Only, given, with_options
from trustassay.cli.results import scored_run, show_plan, show_worse, tell
from trustassay.errors import UsageError
from trustassay.files import write_whole
from trustassay.options import BackendChoices, GivenLabels, Records, Seed, Spending
from trustassay.show.terminal import complain, one_line, print_json, say, show_rows, show_table

if TYPE_CHECKING:
    from trustassay.workflows.compare import Comparison
    from trustassay.workflows.rules import Gate


@with_options
def compare(  # noqa: PLR0913 - one argument an option
    first: Path,
    second: Path,
    *,
    metric: str | None,
    labels: GivenLabels,
    seed: Seed,
    as_json: Json,
    out: Path | None,
    judge: str | None,
    prompt: Path | None,
    run: Path | None,
    records: Records,
    spending: Spending,
    dry_run: bool,
) -> None:
    """Compare two runs: figures, single answers, and the distribution of scores; or answers by a
    judge."""
    if judge is not None:
        if metric is not None or labels:
            flag = "--labels" if labels else "--metric"
            raise UsageError(f"{flag}: a judge compares answers, not scores")
        _by_judge(
            (first, second, judge), prompt, run, out, seed, records, spending, dry_run, as_json
        )
        return
    if flags := given(records, spending, prompt=prompt, run=run, dry_run=dry_run):
        raise UsageError(f"{flags[0]}: has an effect with --judge alone")
    from trustassay.workflows import compare as comparing
    from trustassay.workflows import compare_outputs
    from trustassay.workflows.corrected import LabelFiles

    given_labels = LabelFiles.given(**labels)
    result = comparing.compare(first, second, metric=metric, labels=given_labels, seed=seed)
    _show_comparison(result)
    if out:
        compare_outputs.document_of(result).write(out)
        say(f"page: {out}")
    if as_json:
        print_json(result.to_dict())


def _by_judge(  # noqa: PLR0913 - the options of compare
    inputs: tuple[Path, Path, str],
    prompt: Path | None,
    folder: Path | None,
    page: Path | None,
    seed: int,
    records: Records,
    spending: Spending,
    dry_run: bool,
    as_json: bool,
) -> None:
    from trustassay.api import Run
    from trustassay.calls.client import CallOptions
    from trustassay.metrics.pairwise import Pairwise
    from trustassay.runs.folder import RunFolder
    from trustassay.runs.intake import default_folder
    from trustassay.workflows import compare as comparing
    from trustassay.workflows.compare_outputs import win_rate_headline

    first, second, judge = inputs
    metric = Pairwise(None if prompt is None else str(prompt))
    options = comparing.WinRateOptions(
        metric, seed, progress=True, calls=CallOptions.of(**spending), **records
    )
    state = default_folder(second).name  # which changes with the file
    settings = {"second": state, "judge": judge, "metrics": metric.settings(), "seed": seed}
    out = run_folder(folder, first, records, **settings)
    if dry_run:
        show_plan(comparing.plan_win_rate(*inputs, out, options), as_json=as_json)
        return
    result = comparing.win_rate(*inputs, out, options)
    run = Run(RunFolder(result.path), result.outcome)
    failed = tell(run, as_json=False, worst=False)
    for count, words in (
        (result.pairs.only_first, f"questions of {first} alone"),
        (result.pairs.only_second, f"questions of {second} alone"),
        (result.pairs.blank, "questions to which one of them has no answer"),
    ):
        if count:
            say(one_line(f"left out: {count:,} {words}"))
    say(one_line(win_rate_headline(result, first, second)))
    if page:
        page.parent.mkdir(parents=True, exist_ok=True)
        say(f"page: {run.report(page)}")
    if as_json:
        print_json(result.to_dict())
    if failed:
        raise typer.Exit(1)


def _show_comparison(found: "Comparison") -> None:
    from trustassay.workflows import compare_outputs as outputs

    say(one_line(f"{found.metric.title}: {found.first.path} and {found.second.path}"))
    say(outputs.paired_in_words(found))
    show_rows("answers", outputs.OF_OUTCOMES, outputs.outcomes(found).rows)
    if found.figures:
        show_rows("figure of the pairs", outputs.OF_FIGURES, outputs.figures(found).rows)
    for key, why in found.not_compared.items():
        say(one_line(f"{key} is not compared: {why}"))
    if len(found.pairing.first):
        show_worse(found.metric.name, found.answers)
    show_rows("all scores", outputs.COLUMNS, outputs.scores(found).rows)
    sizes = [f"{len(side.scores):,}" for side in (found.first, found.second)]
    say(f"{sizes[0]} and {sizes[1]} scores, {found.pairs:,} of them paired")
    say(outputs.headline(found))
    for line in found.corrected.in_words() if found.corrected else ():
        say(one_line(line))
    for warning in found.warnings:
        say(one_line(f"note: {warning}"))


@with_options
def rank(  # noqa: PLR0913 - one argument an option
    sources: list[str],
    *,
    metric: str | None,
    labels: GivenLabels,
    backends: BackendChoices,
    out: Path | None,
    page: Path | None,
    seed: Seed,
    records: Records,
    as_json: Json,
) -> None:
    """Rank models by their mean score over the same questions, and say how sure that is."""
    from trustassay.workflows import rank as ranking
    from trustassay.workflows.corrected import LabelFiles

    given_labels = LabelFiles.given(**labels)
    folder, name, failed = scored_run(
        source_of(sources), metric, backends, records, out=out, seed=seed
    )
    result = ranking.rank(folder, metric=name, labels=given_labels, seed=seed)
    say(one_line(f"{result.metric.title}: {result.questions:,} questions that all models answered"))
    if result.left_out:
        say(f"{result.left_out:,} questions are left out: not every model has a score for them")
    table = ranking.table_of(result)
    show_rows("model", table.columns, table.rows)
    for line in ranking.statements(result):
        say(one_line(line))
    if page:
        ranking.document_of(result, sources).write(page)
        say(f"page: {page}")
    if as_json:
        print_json(result.to_dict())
    if failed:
        raise typer.Exit(1)


@with_options
def audit(  # noqa: PLR0913 - one argument an option
    source: Source,
    *,
    metric: str | None,
    backends: Annotated[BackendChoices, Only("judge", "entailer", "model", "embedder")],
    out: Path | None,
    page: Path | None,
    seed: Seed,
    records: Records,
    spending: Spending,
    dry_run: bool,
    as_json: Json,
) -> None:
    """Measure what moves a judge that must not: answers are changed in one thing at a time."""
    from trustassay.calls.client import CallOptions
    from trustassay.registry import metric_from_text
    from trustassay.runs.intake import InputOptions
    from trustassay.workflows.audit import experiment

    fields = records.get("fields", {})
    chosen = metric or (
        "judge" if "judge" in backends else default_metrics(source, fields, {})[0][0]
    )
    folder = run_folder(out, source, records, audit=chosen, seed=seed, **backends)
    options = InputOptions(progress=True, calls=CallOptions.of(**spending), **records)
    auditing = experiment.Audit(source, metric_from_text(chosen), backends, folder, options, seed)
    if dry_run:
        show_plan(auditing.plan(), as_json=as_json)
        return
    audited = auditing.run()
    say(one_line(experiment.headline(audited)))
    table = experiment.table(audited)
    show_rows("changed", table.columns, table.rows, wide=True)
    for line in experiment.notes(audited):
        say(one_line(line))
    experiment.document_of(audited).write(page or folder / "audit.html")
    say(f"page: {page or folder / 'audit.html'}")
    if as_json:
        print_json(audited.to_dict())
    if audited.failed:
        complain(
            f"failed: {audited.failed:,}, in flips; run the same command again to retry only these"
        )
        raise typer.Exit(1)


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
    sequential: bool,
    undecided: Literal["pass", "fail", "undecided"],
    markdown: Path | None,
    junit: Path | None,
    labels: GivenLabels,
    seed: Seed,
    as_json: Json,
) -> None:
    """Pass or fail a run, for continuous integration: by bounds, or against an earlier run."""
    from trustassay.workflows import gate as gating
    from trustassay.workflows import rules
    from trustassay.workflows.corrected import LabelFiles

    others = {"allow_missing": allow_missing != "0", "allow_other_judge": allow_other_judge}
    flags = given(figure=figure, margin=margin, **others)
    if flags and no_worse_than is None:
        raise UsageError(f"{flags[0]}: has an effect with --no-worse-than alone")
    bounds = [rules.parse_bound(one, at_least=True) for one in at_least]
    bounds += [rules.parse_bound(one, at_least=False) for one in at_most]
    earlier = None
    if no_worse_than:
        missing = rules.parse_allowance(allow_missing)
        earlier = rules.Earlier(no_worse_than, figure, margin, missing, allow_other_judge)
    found = gating.gate(
        run, bounds, earlier, labels=LabelFiles.given(**labels), seed=seed, sequential=sequential
    )
    _show_gate(found)
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


def _show_gate(found: "Gate") -> None:
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
