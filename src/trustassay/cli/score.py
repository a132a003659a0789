"""``trustassay score`` (also for a file that grows), ``plan``, ``rescore`` and ``generate``."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from trustassay.cli import common
from trustassay.cli.common import Json, Metrics
from trustassay.cli.options import Only, list_given_flags, with_options
from trustassay.cli.results import show_plan, show_run
from trustassay.errors import UsageError
from trustassay.report.terminal import complain, one_line, say
from trustassay.runs.options import (
    AnswerOptions,
    BackendChoices,
    CalibratorFile,
    Cluster,
    DrawOptions,
    Engine,
    Pool,
    RecordOptions,
    RescoreOptions,
    ScoreOptions,
    SecondReadingOptions,
    Seed,
    SpendingOptions,
    Turns,
    Unit,
)
from trustassay.text.words import amount


@dataclass(frozen=True)
class Following:
    """Options for scoring a growing file; all but the first need ``--follow``.

    ``options.csv`` describes them under the name of this class.
    """

    follow: bool
    threshold: str | None
    idle: float | None
    once: bool
    opentelemetry: bool
    explanations: bool

    def watch(
        self,
        sources: Sequence[str],
        metric: Sequence[str],
        out: Path | None,
        options: dict[str, Any],
    ) -> None:
        """Score the file until the options say that it ends.

        Args:
            options: further options of :func:`trustassay.watch`.
        """
        if len(sources) > 1 or len(metric) > 1:
            raise UsageError("--follow: expected one file and one metric")
        # Without a threshold there is no alarm, and without a folder nothing to continue.
        if out is None or self.threshold is None:
            missing_flag = "--out" if out is None else "--threshold"
            raise UsageError(f"--follow: needs {missing_flag}")
        from trustassay import api

        result = api.watch(
            Path(sources[0]),
            # The default asks the model again, so that the samples need no passages.
            metric=metric[0] if metric else "harmonicity:perturbations=3",
            out=out,
            threshold=self.threshold,
            idle_s=self.idle,
            once=self.once,
            opentelemetry="explanations" if self.explanations else self.opentelemetry,
            tell=lambda text: say(one_line(text)),
            **options,
        )
        say(
            f"{amount(result.scored, 'answer')} scored, {result.beyond:,} beyond {self.threshold}, "
            f"{result.failed:,} failed, {amount(result.faulty, 'faulty record')}"
        )
        if result.scoreless:
            say(f"{amount(result.scoreless, 'answer')} cannot have a score; the report says why")
        say(f"run:    {out}")
        # Nothing could be scored: the same status as that of other runs.
        if result.failed and not result.scored:
            raise typer.Exit(1)


@with_options
def score(
    sources: common.Sources,
    *,
    metric: common.Metrics,
    backends: BackendChoices,
    out: Path | None,
    seed: Seed,
    unit: Unit,
    turns: Turns,
    records: RecordOptions,
    drawn: DrawOptions,
    pool: Pool,
    answers: AnswerOptions,
    sizes: Annotated[ScoreOptions, Only("samples_at_once", "longest_answer")],
    second: SecondReadingOptions,
    spending: SpendingOptions,
    calibrator: CalibratorFile,
    engine: Engine,
    cluster: Cluster,
    following: Following,
    dry_run: bool,
    as_json: common.Json,
    open_report: common.OpenReport,
) -> None:
    """Score files of answers; the report and all results go into the run's folder."""
    # A growing file: options that only apply to a complete input are refused, not ignored.
    if following.follow:
        other_options: dict[str, Any] = {"unit": unit, "pool": pool, "calibrator": calibrator}
        other_options |= {"engine": engine != "local", "dry_run": dry_run}
        other_options |= {name: records.get(name) for name in ("limit", "skip_bad")}
        other_options |= {"turns": turns == "all", "json": as_json, "open": open_report}
        if flags := list_given_flags(answers, cluster, second, drawn, **other_options):
            raise UsageError(f"{flags[0]}: has no effect with --follow")
        # Only these options apply to a growing file.
        watch_options: dict[str, Any] = {"fields": records.get("fields", {}), "seed": seed}
        watch_options |= {**spending, **sizes, **backends}
        following.watch(sources, metric, out, watch_options)
        return
    # Options of a growing file without --follow would be ignored silently.
    if flags := list_given_flags(following):
        raise UsageError(f"{flags[0]}: has an effect with --follow alone")
    from trustassay import api

    # The default folder depends on the state of the input, so a grown one would get another.
    if "append" in drawn and out is None:
        raise UsageError("--append: needs --out, the folder of the run that grows")
    source, fields = common.join_sources(sources), records.get("fields", {})
    answering = common.build_answering(answers)
    reason = None
    if not metric:
        metric, reason = common.default_metrics(source, fields, backends)
    # What makes another run, and so another default folder. Options at their default are left out,
    # so that folders of earlier versions are found again.
    settings: dict[str, Any] = {"metrics": metric, "seed": seed, **backends}
    settings |= {"unit": unit} if unit else {}
    settings |= {"turns": turns} if turns == "all" else {}
    settings |= drawn
    # How answers are asked for changes them, so it is part of the run's identity.
    if "model" in backends:
        settings["answering"] = answering.settings()
    # Everything for the run; the groups hold only the options that the user gave.
    options: dict[str, Any] = {
        "metrics": metric,
        "out": common.run_folder(out, source, records, **settings),
        "answering": answering,
        "seed": seed,
        "unit": unit,
        "turns": turns,
        "pool": pool,
        "progress": True,
        "command": common.command_line(),
        "why": reason,
        "calibrator": calibrator,
        **sizes,
        **backends,
        **records,
        **drawn,
        **second,
        **spending,
    }
    # Checked here: the local engine would not know these options.
    if cluster and not engine.startswith("ray"):
        raise UsageError(f"--{min(cluster)} needs --engine ray")
    # The same options as the run, so that the plan is of exactly that run.
    if dry_run:
        show_plan(api.plan(source, **options), as_json=as_json)
        return
    run = api.score(source, engine=engine, **options, **cluster)
    show_run(run, as_json=as_json, open_report=open_report)


@with_options
def plan(
    sources: common.Sources,
    *,
    metric: common.Metrics,
    backends: BackendChoices,
    out: Path | None,
    turns: Turns,
    records: RecordOptions,
    drawn: Annotated[DrawOptions, Only("sample", "sample_by")],
    pool: Pool,
    answers: AnswerOptions,
    spending: Annotated[SpendingOptions, Only("cache", "prices")],
    as_json: common.Json,
) -> None:
    """Show what a run would need: calls, tokens, money and time for each metric. Calls no model."""
    from trustassay import api

    source = common.join_sources(sources)
    metric = metric or common.default_metrics(source, records.get("fields", {}), backends)[0]
    result = api.plan(
        source,
        metrics=metric,
        out=out,
        answering=common.build_answering(answers),
        turns=turns,
        pool=pool,
        progress=True,
        **backends,
        **records,
        **drawn,
        **spending,
    )
    show_plan(result, as_json=as_json)


# Samples, backends and replies come from the run: only these options can change.
RESCORED = Only(
    *(
        "unit",
        "samples_at_once",
        "longest_answer",
        *SecondReadingOptions.__annotations__,
        "calibrator",
    )
)


@with_options
def rescore(
    run: Path,
    *,
    out: Path,
    metric: Metrics,
    backends: BackendChoices,
    seed: int | None,
    options: Annotated[RescoreOptions, RESCORED],
    as_json: Json,
) -> None:
    """Score the samples of a run with other settings; stored replies are not requested again."""
    from trustassay import api

    rescore_options: RescoreOptions = {**options, **backends, "seed": seed, "progress": True}
    rescored = api.rescore(run, metrics=metric or None, out=out, **rescore_options)
    computed = sum(count.computed for count in rescored.outcome.counts.values())
    stored_replies = sum(count.from_store for count in rescored.outcome.counts.values())
    say(f"{stored_replies} replies were stored, {computed} were newly requested")
    show_run(rescored, as_json=as_json)


@with_options
def generate(
    source: common.Source,
    *,
    model: common.NeededModel,
    out: Path,
    answers: AnswerOptions,
    repeats: int,
    again: bool,
    records: RecordOptions,
    spending: SpendingOptions,
) -> None:
    """Answer a file of questions. Run a stopped command again to continue: replies are cached."""
    from trustassay.calls.client import CallOptions
    from trustassay.runs import generate as generating

    answering = common.build_answering(answers)
    options = generating.GenerateOptions(
        answering=answering,
        repeats=repeats,
        again=again,
        progress=True,
        calls=CallOptions.of(**spending),
        **records,
    )
    # Finished answers are written even if others failed.
    result = generating.generate(source, model, out, options)
    common.show_endpoints(result.endpoints)
    for sample_id, error in list(result.failed.items())[: common.FAILURES_SHOWN]:
        complain(one_line(f"  {sample_id}: {error}"))
    total = result.written + len(result.failed)
    # What the answers lack, each with the number of all that were asked.
    if result.cut:
        message = f"answers were cut at {answering.max_tokens} tokens (--max-tokens)"
        say(f"{result.cut:,} of {total:,} {message}")
    if result.without_tokens:
        message = "answers have no log-probabilities: the model gave none, or those of another text"
        say(f"{result.without_tokens:,} of {total:,} {message}")
    if result.empty:
        say(f"{result.empty:,} of {total:,} answers were empty")
    if result.written:
        say(f"{result.written:,} answers in {out}")
    if result.failed:
        if (more := len(result.failed) - common.FAILURES_SHOWN) > 0:
            complain(f"  ... and {more:,} more")
        if not result.written:
            complain(f"no question was answered; {out} was not written")
        complain(f"failed: {len(result.failed):,}; run the same command again to retry only these")
        if not result.written:
            raise typer.Exit(1)
