"""``trustassay compare`` and ``rank``: two runs, answers by a judge, or models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from trustassay.cli.common import Json, source_of
from trustassay.cli.options import given, with_options
from trustassay.cli.results import scored_run, show_plan, show_worse, tell
from trustassay.errors import UsageError
from trustassay.options import BackendChoices, Records, Seed, Spending
from trustassay.show.terminal import one_line, print_json, say, show_rows

if TYPE_CHECKING:
    from trustassay.workflows.compare import Comparison, WinRate
    from trustassay.workflows.rank import Ranking


@dataclass(frozen=True)
class Judged:
    """What is compared by whom; ``page`` is where the page goes, ``run`` the folder of the run."""

    first: Path
    second: Path
    judge: str
    prompt: Path | None
    run: Path | None
    page: Path | None
    seed: int


def show_win_rate(
    asked: Judged, records: Records, spending: Spending, *, dry_run: bool, as_json: bool
) -> None:
    """Compare and print; raises as :func:`~trustassay.workflows.compare.win_rate`."""
    from trustassay.api import Run
    from trustassay.calls.client import CallOptions
    from trustassay.metrics.pairwise import Pairwise
    from trustassay.runs.folder import RunFolder
    from trustassay.workflows import compare
    from trustassay.workflows.compare_outputs import win_rate_headline

    metric = Pairwise(None if asked.prompt is None else str(asked.prompt))
    options = compare.WinRateOptions(
        metric, asked.seed, progress=True, calls=CallOptions.of(**spending), **records
    )
    out = asked.run or _default_folder(asked, metric.settings(), records)
    inputs = asked.first, asked.second, asked.judge
    if dry_run:
        show_plan(compare.plan_win_rate(*inputs, out, options), as_json=as_json)
        return
    found = compare.win_rate(*inputs, out, options)
    run = Run(RunFolder(found.path), found.outcome)
    failed = tell(run, as_json=False, worst=False)
    for line in _left_out(found, asked):
        say(one_line(line))
    say(one_line(win_rate_headline(found, asked.first, asked.second)))
    if asked.page:
        asked.page.parent.mkdir(parents=True, exist_ok=True)
        say(f"page: {run.report(asked.page)}")
    if as_json:
        print_json(found.to_dict())
    if failed:
        raise typer.Exit(1)


def _default_folder(asked: Judged, settings: Any, records: Records) -> Path:
    from trustassay.runs.intake import default_folder

    other = default_folder(asked.second).name  # which changes with the file
    return default_folder(
        asked.first,
        second=other,
        judge=asked.judge,
        metrics=settings,
        seed=asked.seed,
        limit=records.get("limit"),
        fields=records.get("fields", {}),
    )


def _left_out(found: WinRate, asked: Judged) -> list[str]:
    pairs = found.pairs
    counts = (
        (pairs.only_first, f"questions of {asked.first} alone"),
        (pairs.only_second, f"questions of {asked.second} alone"),
        (pairs.blank, "questions to which one of them has no answer"),
    )
    return [f"left out: {count:,} {words}" for count, words in counts if count]


@with_options
def compare(  # noqa: PLR0913 - one argument an option
    first: Path,
    second: Path,
    *,
    metric: str | None,
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
        if metric is not None:
            raise UsageError("--metric: a judge compares answers, not scores")
        asked = Judged(first, second, judge, prompt, run, out, seed)
        show_win_rate(asked, records, spending, dry_run=dry_run, as_json=as_json)
        return
    if flags := given(records, spending, prompt=prompt, run=run, dry_run=dry_run):
        raise UsageError(f"{flags[0]}: has an effect with --judge alone")
    from trustassay.workflows import compare as comparing
    from trustassay.workflows import compare_outputs

    found = comparing.compare(first, second, metric=metric, seed=seed)
    _show_comparison(found)
    if out:
        compare_outputs.document_of(found).write(out)
        say(f"page: {out}")
    if as_json:
        print_json(found.to_dict())


def _show_comparison(found: Comparison) -> None:
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
    for warning in found.warnings:
        say(one_line(f"note: {warning}"))


@with_options
def rank(  # noqa: PLR0913 - one argument an option
    sources: list[Path],
    *,
    metric: str | None,
    backends: BackendChoices,
    out: Path | None,
    page: Path | None,
    seed: Seed,
    records: Records,
    as_json: Json,
) -> None:
    """Rank models by their mean score over the same questions, and say how sure that is."""
    from trustassay.workflows import rank as ranking

    folder, name, failed = scored_run(
        source_of(sources), metric, backends, records, out=out, seed=seed
    )
    found = ranking.rank(folder, metric=name, seed=seed)
    _show_ranking(found)
    if page:
        ranking.document_of(found, sources).write(page)
        say(f"page: {page}")
    if as_json:
        print_json(found.to_dict())
    if failed:
        raise typer.Exit(1)


def _show_ranking(found: Ranking) -> None:
    from trustassay.workflows.rank import statements, table_of

    say(one_line(f"{found.metric.title}: {found.questions:,} questions that all models answered"))
    if found.left_out:
        say(f"{found.left_out:,} questions are left out: not every model has a score for them")
    table = table_of(found)
    show_rows("model", table.columns, table.rows)
    for line in statements(found):
        say(one_line(line))
