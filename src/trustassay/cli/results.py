"""Print runs, plans and changes, for all commands."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from trustassay.cli.common import run_folder, show_endpoints
from trustassay.core.files import is_run_folder
from trustassay.core.progress import format_duration
from trustassay.core.tracebacks import TRACEBACKS
from trustassay.errors import MODEL_NOT_GIVEN
from trustassay.report.terminal import (
    complain,
    console_width,
    one_line,
    print_json,
    say,
    show_table,
)
from trustassay.runs.options import (
    RecordOptions,
)
from trustassay.text.numbers import amount, verb, with_error

if TYPE_CHECKING:
    from trustassay.api import Run
    from trustassay.compare.changes import AnswerChanges
    from trustassay.core.metric import Figure, Summary
    from trustassay.runs.estimates import Plan, PlannedCalls
    from trustassay.runs.finished import LookSummary, WorstAnswer
    from trustassay.runs.options import BackendChoices


DEFAULT_RANK_METRIC = "fewl:form=agreement"
"""The metric of ``rank`` if the user names none."""


WORST_SHOWN = 3
"""Answers that are listed for a single metric; the report and ``run.worst`` have the others."""


MAX_TEXT_CHARACTERS = 240
"""Characters of a question, and of a reason, that are printed."""


GROUPS_SHOWN, CHANGES_SHOWN = 8, 10
"""Groups, and answers that got worse, that are printed: the end of a run fits on half a screen."""


MIN_WIDTH_WITH_MEANING = 100
"""Columns of a terminal from which figures are printed with what they mean."""


FAILURE_KINDS_SHOWN, MAX_FAILURE_KINDS = 3, 1000
"""Reasons of failures that are printed, and that are counted."""


CHANGED_QUESTION, CHANGED_ID, CHANGED_REASON = 100, 40, 200
"""Characters of each that are printed of a changed answer."""


def score_run(
    source: str | list[str],
    metric: str | None,
    backends: BackendChoices,
    records: RecordOptions,
    *,
    out: Path | None,
    seed: int,
) -> tuple[Path, str | None, int]:
    """Return a run of the source: its folder, the name of the metric, and an exit status.

    A source that is a run is used as it is. Anything else is scored into ``out``, or into a folder
    that the same command finds again.

    Raises:
        Exception: as :func:`trustassay.score`.
    """
    from trustassay import api
    from trustassay.input.places import scheme_of

    # A URI such as s3://... is an input and never a folder of a run.
    run_path = isinstance(source, str) and not scheme_of(source) and Path(source)
    if run_path and is_run_folder(run_path):
        return run_path, metric, 0

    metric_text = metric or DEFAULT_RANK_METRIC
    folder = run_folder(out, source, records, metrics=[metric_text], seed=seed, **backends)
    run = api.score(
        source, metrics=metric_text, out=folder, seed=seed, progress=True, **backends, **records
    )
    return folder, metric_text.partition(":")[0], print_run(run, as_json=False)


def show_run(run: Run, *, as_json: bool, open_report: bool = False) -> None:
    """Print a finished run and exit with status 1 if nothing in it could be judged."""
    if open_report:
        typer.launch(str(run.path / "report.html"))
    if status := print_run(run, as_json=as_json):
        raise typer.Exit(status)


def print_run(run: Run, *, as_json: bool, worst: bool = True) -> int:
    """Print a finished run, its outcomes first, and return its exit status.

    The status is 0 even if samples failed, so that a script continues to the command that decides
    about the run. It is 1 only if no metric could judge any answer.

    Args:
        worst: whether the worst answers are listed.
    """
    from trustassay.runs.folder import RunFolder
    from trustassay.runs.remarks import write_notes, write_remarks
    from trustassay.runs.report import describe_judge

    content, settings = run.summary_file, RunFolder(run.path).read_run() or {}
    # The lines of several metrics take the room of the others.
    looks = run.looks(WORST_SHOWN if len(run.metrics) == 1 else 1)
    answers, judged = looks.look_counts.answers, looks.look_counts.judged
    # The question that a reader has first: which answers cannot be trusted?
    show_outcomes(run, with_reasons=judged > 0 or len(run.metrics) > 1)
    if judged:
        show_worst(looks, listed=worst)
    else:
        # That is a failure, which --quiet must not hide.
        complain(f"{looks.sentence()}.")
    _show_failures(run)
    show = say if judged else complain
    for sentence in run.explain_unjudged():
        show(one_line(sentence))
    # Figures of no answer say nothing.
    if judged:
        _show_figures(run, settings)
    show_calibrated(content)
    _show_calls(run, content.get("usage", {}), settings)
    # Remarks after the figures that they qualify.
    for line in (*write_notes(content), *write_remarks(content, answers)):
        say(one_line(line))
    if run.outcome.intake.faulty:
        say(f"{amount(run.outcome.intake.faulty, 'faulty record')} skipped")
    # How far the judge can be believed, unless most answers were not judged at all.
    judge = describe_judge(settings, content) if settings and 0 < answers <= 2 * judged else None
    for line in judge.lines if judge else ():
        say(one_line(line))
    if (run.path / "report.html").exists():
        say(f"report: {run.path / 'report.html'}")
    say(f"run:    {run.path}")
    if as_json:
        print_json(content)
    return 0 if judged else 1


def _show_figures(run: Run, settings: Mapping[str, Any]) -> None:
    """Print the figures of each metric, with those of groups.

    Args:
        settings: the content of ``run.json``.
    """
    from trustassay.runs.remarks import GROWN
    from trustassay.runs.units import UNIT

    content, unit = run.summary_file, settings.get(UNIT)
    grown = content.get(GROWN, {}).get("metrics", {})
    for metric in run.metrics:
        summary, figures_before = run.summaries[metric.name], grown.get(metric.name)
        if summary.error:
            complain(summary.error)
        is_wide = console_width() >= MIN_WIDTH_WITH_MEANING and len(run.metrics) == 1
        show_summary(
            metric.title, summary, metric.figures, unit, figures_before, with_meaning=is_wide
        )
        if groups := content.get("groups", {}).get(metric.name):
            show_groups(metric.title, groups)
        if reason := _find_reason_without_score(run, metric.name):
            complain(f"no answer has a score for {metric.name}; the first one: {reason}")


def show_outcomes(run: Run, *, with_reasons: bool = True) -> None:
    """Print the first lines on a run: for each metric, the outcomes of all questions.

    Args:
        with_reasons: whether the reasons of questions without an answer are printed.
    """
    for outcomes in run.outcomes.values():
        say(one_line(f"{outcomes.sentence}."))
        if outcomes.reasons and with_reasons:
            say(one_line(f"  {outcomes.reasons_in_words}"))


def show_worst(looks: LookSummary, *, listed: bool = True) -> None:
    """Print how many answers need a look, and the worst of them, each with its reason.

    Args:
        listed: whether the worst answers are listed, without those that could not be scored.
    """
    from trustassay.runs.finished import shorten_text

    answers = [answer for answer in looks.worst if answer.assessment.error is None]
    answers = answers if listed else []
    say(f"{looks.sentence()}{':' if answers else '.'}")
    for answer in answers:
        say(
            one_line(
                f"  {shorten_text(answer.question.strip(), MAX_TEXT_CHARACTERS)} ({answer.id})"
            )
        )
        for line in _describe_worst(answer):
            say(one_line(f"    {shorten_text(line, MAX_TEXT_CHARACTERS)}"))
    if listed and (rest := looks.candidates - looks.unscored - len(answers)):
        say(f"  ... and {rest:,} more")


def _describe_worst(answer: WorstAnswer) -> list[str]:
    """Return one or two lines: the verdict with its reason, the sentence and why it is bad."""
    piece = answer.piece
    if piece is None or not (piece.reason and answer.reason):
        return [f"{answer.verdict}: {answer.reason}" if answer.reason else answer.verdict]
    sentence = "“" + " ".join(piece.text.split()) + "”"
    # The verdict of the answer is that of the sentence: its reason only repeats the sentence's.
    if piece.verdict == answer.verdict:
        return [f"{answer.verdict}: {sentence}", piece.reason]
    return [f"{answer.verdict}: {answer.reason}", f"{sentence}: {piece.reason}"]


def show_summary(
    title: str,
    summary: Summary,
    figures: Mapping[str, Figure],
    unit: str | None,
    before: Mapping[str, Any] | None = None,
    *,
    with_meaning: bool,
) -> None:
    """Print the headline figures of a metric, and which of them have no interval.

    Args:
        title: of the metric.
        unit: the field that defines units, if the user chose one.
        before: the summary before the run grew; its figures are printed next to the new ones.
        with_meaning: whether each figure is printed with what it means.
    """
    from trustassay.report.notebook import headline_rows

    rows = [row for row in headline_rows(summary, figures) if summary.values[row[0]] is not None]
    # The figures of a single answer are its score, and without a value there is no figure.
    if not rows or (summary.n == 1 and not before):
        return
    profile = summary.settings.get("profile")
    say(f"{title}, profile {profile}" if profile else title)
    with_interval = [key for key, _, interval, *_ in rows if interval]
    if before:
        _show_grown(rows, headline_rows(type(summary)(**before), figures))
    elif with_interval:
        headings = ["figure", "value", "95 % interval", "n", "meaning"]
        # On a narrow terminal each meaning would take several lines; the report has them, too.
        columns = 5 if with_meaning else 4
        show_table(headings[:columns], [row[:columns] for row in rows], {"meaning"})
    else:
        say(f"  {', '.join(_with_count(key, value, summary) for key, value, *_ in rows)}")
    # Intervals over fewer units than samples are wider than readers expect.
    unit_counts = [summary.units[key] for key, *_ in rows if key in summary.units]
    shared = f"with the same {unit}" if unit else "to the same question"
    if with_interval and unit_counts:
        say(
            f"intervals: answers {shared} count as one unit, so {summary.n:,} answers are "
            f"{max(unit_counts):,} independent units (--unit)"
        )
    # Figures with the same reason share one line.
    without: dict[str, list[str]] = {}
    for key, *_ in rows:
        if reason := summary.without_interval.get(key):
            without.setdefault(reason, []).append(key)
    if without and not with_interval:
        # The reason of most figures stands for all: they only differ in the number needed.
        say(f"  no interval: {max(without, key=lambda reason: len(without[reason]))}")
    else:
        for reason, keys in without.items():
            say(f"no interval for {', '.join(keys)}: {reason}")
    _show_without_value(summary, figures)


def _with_count(key: str, value: str, summary: Summary) -> str:
    """Return a figure; with its number of answers where it is not of all, as the outcomes are."""
    n = summary.support.get(key, summary.n)
    return f"{key} {value}" if n == summary.n else f"{key} {value} (of {n:,})"


def _show_grown(
    rows: Sequence[tuple[str, str, str, str, str]],
    rows_before: Sequence[tuple[str, str, str, str, str]],
) -> None:
    """Print the figures before a run grew and now."""
    cells_before = {key: cells[:3] for key, *cells in rows_before}
    headings = ["figure", "before", "interval", "n", "now", "interval", "n"]
    show_table(
        headings,
        [(key, *cells_before.get(key, [""] * 3), *cells[:3]) for key, *cells in rows],
        (),
    )


def _show_without_value(summary: Summary, figures: Mapping[str, Figure]) -> None:
    """Print which headline figures have no value, and why."""
    keys_by_reason: dict[str, list[str]] = {}
    for key, value in summary.values.items():
        if value is None and key in figures and figures[key].headline:
            reason = summary.not_applicable.get(key, "")
            keys_by_reason.setdefault(reason, []).append(key)
    for reason, keys in keys_by_reason.items():
        say(f"no value for {' and '.join(keys)}{': ' if reason else ''}{reason}")


def show_groups(title: str, groups_block: Mapping[str, Any]) -> None:
    """Print the means of each model and domain with their standard errors: 0.063(4).

    A single group is not printed, since it would repeat the figures above.

    Args:
        groups_block: the block of a metric under ``groups`` in ``summary.json``.
    """
    groups = groups_block["groups"]
    if len(groups) < 2:
        return
    stable = groups_block.get("stable_below")
    columns = {"score": ("score", 3)}
    if stable is not None:
        columns["stable_score"] = (f"score\n< {stable:g}", 3)
    if "rating" in groups_block["all"]:
        columns["rating"] = ("rating", 2)
        if stable is not None:
            columns["stable_rating"] = (f"rating,\nscore < {stable:g}", 2)
    # A column of which all cells would be empty is left out.
    names = [n for n in ("model", "domain") if any(group[n] is not None for group in groups)]
    groups_shown = groups[:GROUPS_SHOWN]
    rows = []
    # The last row is the mean over all groups.
    for group in [*groups_shown, {**groups_block["all"], names[0]: "all"}]:
        cells = [_make_printable(group.get(name) or "") for name in names]
        for key, (_, digits) in columns.items():
            part = group.get(key)
            cells.append(with_error(part["mean"], part["error"], digits) if part else "–")
        rows.append([*cells, f"{group['score']['n']:,}"])
    say(f"{title}: means by {' and '.join(names)} (standard error of the last digits)")
    headings = [*names, *(heading for heading, _ in columns.values()), "n"]
    show_table(headings, rows, names)
    if more := len(groups) - len(groups_shown):
        say(f"... and {amount(more, 'smaller group')}, in summary.json")


def _make_printable(text: str) -> str:
    """Return a name from the data as one line without control characters."""
    return "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in one_line(text))[:80]


def _find_reason_without_score(run: Run, metric: str) -> str:
    """Return why the first sample has no score, where none has one and not all failed."""
    summary = run.summaries[metric]
    # If all failed, the failures are listed instead.
    if summary.failed == summary.n or summary.values.get("mean", 0.0) is not None:
        return ""
    # Read one after the other: the first one is enough.
    result = (a for a in run.assessments if a.metric == metric and a.error is None)
    return next((a.reason for a in result if a.score is None), "")


def show_calibrated(summary: Mapping[str, Any]) -> None:
    """Print the result of a calibrator, if one was applied."""
    from trustassay.runs.calibrator import CALIBRATED, describe_calibration

    if CALIBRATED in summary:
        lines = describe_calibration(summary[CALIBRATED])
        for sentence in lines.sentences:
            say(one_line(sentence))
        for warning in lines.warnings:
            complain(one_line(f"warning: {warning}"))


def _show_calls(run: Run, usage: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    names_by_role = settings.get("backends", {}).values()
    used_models = {name for names in usage.get("metrics", {}).values() for name in names}
    for names in names_by_role:
        used_models |= set(names.values() if isinstance(names, Mapping) else [names])
    for model, model_usage in usage.get("models", {}).items():
        # A run that is scored again has the replies of models that others replaced.
        if not model_usage["calls"] and model not in used_models:
            continue
        price = "price unknown" if model_usage["usd"] is None else f"{model_usage['usd']:.4f} USD"
        prompt_tokens, reply_tokens = model_usage["prompt_tokens"], model_usage["reply_tokens"]
        tokens = f"{prompt_tokens:,} prompt + {reply_tokens:,} reply tokens"
        cached = f", {model_usage['cached']:,} cached" if model_usage["cached"] else ""
        say(f"asked {model}: {amount(model_usage['calls'], 'call')}{cached}, {tokens}, {price}")
    if table := usage.get("prices"):
        say(f"prices: {table}")
    show_endpoints(run.outcome.endpoints)
    # "without logprobs", "without n", ...: features that an endpoint refused.
    dropped_counts: Counter[str] = Counter()
    for models in usage.get("metrics", {}).values():
        for model_usage in models.values():
            dropped_counts.update(
                {k: v for k, v in model_usage.items() if k.startswith("without ")}
            )
    for name, count in dropped_counts.items():
        say(f"{amount(count, 'call')} {name}, which the endpoint refused")


def _show_failures(run: Run) -> None:
    """Print the most frequent reasons of failures, each with the first answer that has it."""
    counts: Counter[tuple[str, str]] = Counter()
    first_ids: dict[tuple[str, str], str] = {}
    failed_count = 0
    for assessment in run.assessments.iter_failures():
        # Answers of models that were not given are in the remarks, by model.
        if assessment.fault == MODEL_NOT_GIVEN:
            continue
        failed_count += 1
        kind = (assessment.metric, one_line(assessment.error or ""))
        # Bounds the memory: errors of a user's function may all be different.
        if kind in counts or len(counts) < MAX_FAILURE_KINDS:
            counts[kind] += 1
            first_ids.setdefault(kind, one_line(assessment.id))
    if not failed_count:
        return
    complain(f"{amount(failed_count, 'score')} could not be computed:")
    for (metric, error), count in counts.most_common(FAILURE_KINDS_SHOWN):
        others = f" (and {amount(count - 1, 'other')})" if count > 1 else ""
        complain(f"  {first_ids[metric, error]}: {metric}: {error}{others}")
    if (more := failed_count - sum(n for _, n in counts.most_common(FAILURE_KINDS_SHOWN))) > 0:
        complain(f"  ... and {more:,} more, in assessments.jsonl")
    if (tracebacks := run.path / TRACEBACKS).exists():
        complain(f"tracebacks of internal errors: {tracebacks}")


def show_worse(metric: str, answers: AnswerChanges) -> None:
    """Print how many answers changed, and those that got worse."""

    def short(text: str, length: int) -> str:
        return textwrap.shorten(text, length, placeholder=" …")

    say(f"{metric}: {answers.in_words()}")
    # Only answers that got worse: these are what a reader must act on.
    for change in answers.worse[:CHANGES_SHOWN]:
        name = short(change.ids[1], CHANGED_ID)
        say(f"  {short(change.question, CHANGED_QUESTION)} ({name})")
        reason = short(change.reasons[1], CHANGED_REASON)
        say(f"    {change.in_words()}{': ' if reason else ''}{reason}")
    if (count := answers.counts["worse"]) > CHANGES_SHOWN:
        say(f"  ... and {count - CHANGES_SHOWN:,} more (--json lists them)")


def show_plan(plan: Plan, *, as_json: bool) -> None:
    """Print the calls that a run would make, and the basis of the estimate."""
    from trustassay.runs.remarks import describe_asked_models

    columns = (
        "metric", "model", "calls", "cached", "prompt tokens", "reply tokens", "USD", "time"
    )  # fmt: skip
    show_table(columns, [*_build_plan_rows(plan.parts)], {"model"}, wide=True)
    for part in plan.parts:
        say(f"{part.metric}, {part.capability} ({part.backend}): {part.basis}")
        if size := part.logprob_bytes:
            say(f"  log-probabilities add {size / 1000:,.1f} kB to the store, and no tokens")
    price = (
        "" if plan.usd_range is None else f", {_format_range(plan.usd_range, _format_money)} USD"
    )
    mark = " (a guess)" if plan.guess else ""
    samples, seconds = (
        amount(plan.samples, "sample"),
        _format_range(plan.seconds_range, format_duration),
    )
    say(f"{samples}{price}, {seconds}{mark}; no call was made")
    if plan.second:
        say(
            f"not included: the second reader ({plan.second}), which reads more or less depending "
            "on the first one's verdicts; --second-budget sets a limit"
        )
    for metric, count in plan.unread.items():
        are = verb(count, "is", "are")
        say(
            f"{metric}: {count:,} of {samples} {are} in a language that its models do not read, "
            "and will not be judged"
        )
    for sentence in describe_asked_models(plan.left_out, plan.asked_instead, "is"):
        say(one_line(sentence))
    for metric, count in plan.unsure.items():
        say(f"{metric}: {amount(count, 'sample')} may need more calls, depending on the replies")
    if as_json:
        print_json(plan.to_dict())


def _build_plan_rows(parts: Sequence[PlannedCalls]) -> Iterator[tuple[str, ...]]:
    from trustassay.runs.needs import derive_model_name

    # The model's name only where it tells rows apart: the lines below the table have all URIs.
    backend_counts = Counter((part.metric, part.capability) for part in parts)
    for part in parts:
        model = part.capability
        if backend_counts[part.metric, part.capability] > 1:
            model = f"{model} {_make_printable(derive_model_name(part.backend))}"
        yield part.metric, model, *_build_plan_cells(part)


def _build_plan_cells(part: PlannedCalls) -> Iterator[str]:
    from trustassay.runs.estimates import PAID_CAPABILITIES

    yield from (f"{part.calls:,}", f"{part.cached:,}")
    if part.capability in PAID_CAPABILITIES:
        yield _format_range(part.prompt_tokens_range, "{:,.0f}".format)
        yield _format_range(part.reply_tokens_range, "{:,.0f}".format)
        yield "unknown" if part.usd_range is None else _format_range(part.usd_range, _format_money)
    else:
        yield from ("", "", "")
    yield _format_range(part.seconds_range, format_duration)


def _format_range(values: tuple[float, float], format_value: Callable[[float], str]) -> str:
    """Return ``low to high``, or one value if both have the same text."""
    low, high = map(format_value, values)
    return low if low == high else f"{low} to {high}"


def _format_money(value: float) -> str:
    """Return an amount of money; one below a cent with two significant digits."""
    return f"{value:,.2f}" if value == 0 or value >= 0.01 else f"{value:.2g}"
