"""``trustassay score``: score answers, also those of a file that grows."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from trustassay.cli import common
from trustassay.cli.options import Only, list_given_flags, with_options
from trustassay.cli.results import show_plan, show_run
from trustassay.errors import UsageError
from trustassay.report.terminal import one_line, say
from trustassay.runs.options import (
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
    ScoreOptions,
    SecondReadingOptions,
    Seed,
    SpendingOptions,
    Turns,
    Unit,
)
from trustassay.text.numbers import amount, verb


@dataclass(frozen=True)
class Following:
    """Options for scoring a growing file; all but the first need ``--follow``."""

    follow: Annotated[
        bool,
        Flag(
            "--follow",
            "Score one growing JSON Lines file as its answers arrive, with one metric (default: "
            "harmonicity:perturbations=3); needs --out and --threshold. Run the same command "
            "again to continue after the last record read.",
            group=FOLLOWING,
        ),
    ]
    threshold: Annotated[
        str | None,
        Flag(
            "--threshold",
            "With --follow: print and count answers whose score is worse than this; with a per "
            "cent sign, a share of the range of the metric's scores.",
            metavar="SCORE[%]",
            group=FOLLOWING,
        ),
    ]
    idle: Annotated[
        float | None,
        Flag(
            "--idle",
            "With --follow: stop after this many seconds without a new record.",
            group=FOLLOWING,
        ),
    ]
    once: Annotated[
        bool,
        Flag(
            "--once",
            "With --follow: stop after the records that are in the file now.",
            group=FOLLOWING,
        ),
    ]
    opentelemetry: Annotated[
        bool,
        Flag(
            "--opentelemetry",
            "With --follow: send each score to OpenTelemetry as an event; "
            "opentelemetry-instrument configures where (see docs/live/tools.md).",
            group=FOLLOWING,
        ),
    ]
    explanations: Annotated[
        bool,
        Flag(
            "--opentelemetry-explanations",
            "Like --opentelemetry, with the reason for each score, which may quote the answer.",
            group=FOLLOWING,
        ),
    ]

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
        from trustassay.runs.remarks import describe_left_out

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
            f"{amount(result.scored, 'answer')} scored, {result.beyond:,} worse than "
            f"{self.threshold}, {result.failed:,} failed, {amount(result.faulty, 'faulty record')}"
        )
        if result.scoreless:
            have = verb(result.scoreless, "has", "have")
            say(f"{amount(result.scoreless, 'answer')} {have} no score; the report says why")
        for sentence in describe_left_out(result.left_out):
            say(one_line(sentence))
        say(f"run:    {out}")
        # Nothing could be scored: the same status as that of other runs.
        if (result.failed or result.left_out) and not result.scored:
            raise typer.Exit(1)


@with_options
def score(  # noqa: PLR0913 - one argument an option
    sources: common.Sources,
    *,
    metric: common.Metrics,
    allow_missing_references: common.AllowMissingReferences,
    backends: BackendChoices,
    out: Annotated[
        Path | None,
        Flag(
            "--out",
            "The folder of the run. To continue a stopped run, run the same command with the same "
            "folder. Default: a folder in trustassay-runs, named after the input and the "
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
    dry_run: common.DryRun,
    as_json: common.Json,
    open_report: common.OpenReport,
) -> None:
    """Score the answers in files, and write the results and a report to the run's folder.

    With --follow, score a growing file as its answers arrive, until --once or --idle ends the run,
    and print answers that are worse than --threshold. For alarms, see trustassay monitor.

    Without --metric, the files decide: grounding if most answers cite their documents, else
    faithfulness (and grounding of the answers that cite); judge:by=entailer for gold answers
    without documents. Questions without an answer are first sent to --model.

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
    if allow_missing_references:
        metric = common.allow_missing_references(metric)
    # A growing file: options that only apply to a complete input are refused, not ignored.
    if following.follow:
        other_options: dict[str, Any] = {"unit": unit, "pool": pool, "calibrator": calibrator}
        other_options |= {"engine": engine != "local", "dry_run": dry_run}
        other_options |= {name: records.get(name) for name in ("limit", "skip_bad", "sheet")}
        other_options |= {"turns": turns == "all", "json": as_json, "open": open_report}
        if flags := list_given_flags(answers, cluster, second, drawn, **other_options):
            raise UsageError(f"{flags[0]}: has no effect with --follow")
        # Only these options apply to a growing file.
        watch_options: dict[str, Any] = {"fields": records.get("fields", {}), "seed": seed}
        of_lines = {"answer_span", "longest_line"}
        watch_options |= {name: value for name, value in records.items() if name in of_lines}
        watch_options |= {**spending, **sizes, **backends}
        following.watch(sources, metric, out, watch_options)
        return
    # Options of a growing file without --follow would be ignored silently.
    if flags := list_given_flags(following):
        raise UsageError(f"{flags[0]}: needs --follow")
    from trustassay import api

    # The default folder depends on the state of the input, so a grown one would get another.
    if "append" in drawn and out is None:
        raise UsageError("--append: needs --out, the folder of the run to extend")
    source = common.join_sources(sources)
    answering = common.build_answering(answers)
    reason = None
    if not metric:
        metric, reason = common.default_metrics(source, records, backends)
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
