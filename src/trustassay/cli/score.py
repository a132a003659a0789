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
    ASKING,
    CHANCE,
    FOLLOWING,
    OUTPUT,
    AnswerOptions,
    BackendChoices,
    CalibratorFile,
    Cluster,
    DrawOptions,
    Engine,
    Flag,
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
    """Options for scoring a growing file; all but the first need ``--follow``."""

    follow: Annotated[
        bool,
        Flag(
            "--follow",
            "Score one growing file, JSON Lines, as its answers arrive; needs --out and "
            "--threshold. Metric: one, by default harmonicity:perturbations=3. Run the same "
            "command again to continue after the last record read.",
            group=FOLLOWING,
            rare=True,
        ),
    ]
    threshold: Annotated[
        str | None,
        Flag(
            "--threshold",
            "With --follow: answers with scores beyond this, on the worse side, are printed "
            "and counted; with a per cent sign, of the range of the metric's scores.",
            metavar="SCORE[%]",
            group=FOLLOWING,
            rare=True,
        ),
    ]
    idle: Annotated[
        float | None,
        Flag(
            "--idle",
            "With --follow: end after this many seconds without a new record.",
            group=FOLLOWING,
            rare=True,
        ),
    ]
    once: Annotated[
        bool,
        Flag(
            "--once",
            "With --follow: end after the records that are in the file now.",
            group=FOLLOWING,
            rare=True,
        ),
    ]
    opentelemetry: Annotated[
        bool,
        Flag(
            "--opentelemetry",
            "With --follow: send each score as an event to OpenTelemetry, as it is configured "
            "by opentelemetry-instrument (see docs/live/tools.md).",
            group=FOLLOWING,
            rare=True,
        ),
    ]
    explanations: Annotated[
        bool,
        Flag(
            "--opentelemetry-explanations",
            "As --opentelemetry, with the reason of each score, which may quote the answer.",
            group=FOLLOWING,
            rare=True,
        ),
    ]

    def watch(
        self,
        sources: Sequence[str],
        metric: Sequence[str],
        out: Path | None,
        settings: dict[str, Any],
        backends: BackendChoices,
    ) -> None:
        """Score the file until the options say that it ends.

        Args:
            settings: further options of :class:`~trustassay.live.follow.WatchOptions`.
        """
        if len(sources) > 1 or len(metric) > 1:
            raise UsageError("--follow: expected one file and one metric")
        # Without a threshold there is no alarm, and without a folder nothing to continue.
        if out is None or self.threshold is None:
            missing_flag = "--out" if out is None else "--threshold"
            raise UsageError(f"--follow: needs {missing_flag}")
        from trustassay import api
        from trustassay.live.follow import WatchOptions

        options = WatchOptions(
            self.threshold,
            self.idle,
            self.once,
            opentelemetry="explanations" if self.explanations else self.opentelemetry,
            **settings,
        )
        result = api.watch(
            Path(sources[0]),
            # The default asks the model again, so that the samples need no passages.
            metric=metric[0] if metric else "harmonicity:perturbations=3",
            out=out,
            options=options,
            tell=lambda text: say(one_line(text)),
            **backends,
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
    out: Annotated[
        Path | None,
        Flag(
            "--out",
            "The run's folder. Run the same command again with the same folder to continue a "
            "stopped run. Default: one in trustassay-runs, named after the input and the "
            "settings.",
            group=OUTPUT,
        ),
    ],
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
    dry_run: Annotated[
        bool,
        Flag(
            "--dry-run",
            "Show the calls that would be made; make none (see plan).",
            group=OUTPUT,
            rare=True,
        ),
    ],
    as_json: common.Json,
    open_report: common.OpenReport,
) -> None:
    """Score files of answers; the report and all results go into the run's folder.

    With --follow a growing file is scored as its answers arrive, until --once or --idle ends it,
    and answers beyond --threshold are printed. It has no alarm: trustassay monitor has one.

    Without --metric: grounding where most answers cite their documents; else faithfulness, and
    grounding of those that cite; for gold answers without documents judge:by=entailer. Questions
    without an answer are first sent to --model.

    \b
    trustassay score answers.jsonl
    trustassay score small-model.jsonl large-model.jsonl
    trustassay score log.jsonl --sample 2000 --sample-by model
    trustassay score log.jsonl --append --out runs/log
    trustassay score answers.json --metric grounding:profile=paper \\
        --entailer hf:MODEL
    trustassay score ragas.parquet --out runs/one --json > summary.json
    trustassay score mine.csv --field response=answer --field documents=contexts
    trustassay score asked.jsonl --model openai:gpt-4o-mini --budget 2usd \\
        --prices prices.json
    trustassay score asked.jsonl --model openai:qwen3@http://127.0.0.1:8000/v1 \\
        --dry-run
    trustassay score questions.jsonl --model openai:gpt-4o-mini \\
        --retriever bm25:passages.tsv
    trustassay score questions.jsonl --model openai:gpt-4o-mini \\
        --metric harmonicity
    trustassay score new.jsonl --metric faithfulness --calibrator calibrator.json
    trustassay score answers.jsonl --engine ray --workers 4 \\
        --store /mnt/shared/store
    trustassay score log.jsonl --follow --metric grounding --threshold 0.5 \\
        --out runs/live
    opentelemetry-instrument -- trustassay score log.jsonl --follow \\
        --threshold 0.3 --out runs/live --opentelemetry
    """
    # A growing file: options that only apply to a complete input are refused, not ignored.
    if following.follow:
        other_options: dict[str, Any] = {"unit": unit, "pool": pool, "calibrator": calibrator}
        other_options |= {"engine": engine != "local", "dry_run": dry_run}
        other_options |= {name: records.get(name) for name in ("limit", "skip_bad")}
        other_options |= {"turns": turns == "all", "json": as_json, "open": open_report}
        if flags := list_given_flags(answers, cluster, second, drawn, **other_options):
            raise UsageError(f"{flags[0]}: has no effect with --follow")
        from trustassay.calls.client import CallOptions

        # Only these options apply to a growing file.
        watch_settings = {
            "fields": records.get("fields", {}),
            "seed": seed,
            "calls": CallOptions.of(**spending),
            **sizes,
        }
        following.watch(sources, metric, out, watch_settings, backends)
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
    out: Annotated[
        Path | None,
        Flag("--out", "The folder of the run, if it was already started.", group=OUTPUT),
    ],
    turns: Turns,
    records: RecordOptions,
    drawn: Annotated[DrawOptions, Only("sample", "sample_by")],
    pool: Pool,
    answers: AnswerOptions,
    spending: Annotated[SpendingOptions, Only("prices")],
    as_json: common.Json,
) -> None:
    """Show what a run would need: calls, tokens, money and time for each metric. Calls no model.

    Calls that are already stored count with their stored replies, and cost nothing.

    \b
    trustassay plan asked.jsonl --model openai:gpt-4o-mini --prices prices.json
    trustassay plan questions.jsonl --metric harmonicity \\
        --model openai:gpt-4o-mini
    """
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
        "longest_answer",
        *SecondReadingOptions.__annotations__,
        "calibrator",
    )
)


@with_options
def rescore(
    run: Annotated[Path, Flag("RUN", "A run's folder.")],
    *,
    out: Annotated[Path, Flag("--out", "The new run's folder.", group=OUTPUT)],
    metric: Metrics,
    backends: Annotated[
        BackendChoices, Only("model", "judge", "second", "entailer", "embedder", "backends")
    ],
    seed: Annotated[
        int | None, Flag("--seed", "A seed other than the run's.", group=CHANCE, least=0, rare=True)
    ],
    options: Annotated[RescoreOptions, RESCORED],
    as_json: Json,
) -> None:
    """Score the samples of a run with other settings; stored replies are not requested again.

    A metric or a backend that is not given is the run's own.

    \b
    trustassay rescore runs/one --metric grounding:threshold=0.8 --out runs/strict
    trustassay rescore runs/two --metric harmonicity --embedder hf:MODEL \\
        --out runs/other
    """
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
    out: Annotated[
        Path, Flag("--out", "The answered questions to write, JSON Lines.", group=OUTPUT)
    ],
    answers: AnswerOptions,
    repeats: Annotated[
        int, Flag("--repeats", "Answers per question.", group=ASKING, default=1, least=1)
    ],
    again: Annotated[
        bool, Flag("--again", "Also answer questions that already have an answer.", group=ASKING)
    ],
    records: RecordOptions,
    spending: Annotated[SpendingOptions, Only("cache", "budget", "calls_at_once")],
) -> None:
    """Answer a file of questions. Run a stopped command again to continue: replies are cached.

    \b
    trustassay generate questions.jsonl --model openai:gpt-4o-mini \\
        --out answers.jsonl
    trustassay generate asqa.json --model hf:MODEL --style rag-refusal \\
        --out answers.jsonl
    trustassay generate questions.csv \\
        --model openai:m@http://127.0.0.1:8000/v1 --style icl \\
        --examples chosen.jsonl --out answers.jsonl
    """
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
