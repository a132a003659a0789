"""``trustassay score`` (also of a file that grows), ``plan``, ``rescore`` and ``demo``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from trustassay.backends import DEFAULT_ENTAILER
from trustassay.cli import common
from trustassay.cli.common import (
    CalibratorFile,
    Entailer,
    Json,
    LongestAnswer,
    Metrics,
    Unit,
    errors_for_people,
)
from trustassay.cli.options import (
    Answers,
    AtOnce,
    Backends,
    Cluster,
    Records,
    Spending,
    given,
    with_options,
)
from trustassay.cli.results import show, show_plan
from trustassay.errors import UsageError
from trustassay.show.terminal import one_line, say
from trustassay.texts import LONGEST_ANSWER

ALARM = 3
"""Exit status if too many answers were beyond the threshold."""

Pool = Annotated[
    Optional[Path],  # noqa: UP045 - typer reads it
    typer.Option(
        help="Samples for metrics that compare a sample with others. Default: those of the input. "
        "For a shard, the file that shard --whole writes.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Following:
    """How a growing file is scored; all but the first need ``--follow``."""

    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Score one growing file, JSON Lines, as its answers arrive; needs --out and "
            "--threshold. Metric: one, by default harmonicity:perturbations=3. The same command "
            "goes on after the last record read.",
        ),
    ] = False
    threshold: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="With --follow: scores beyond this, on the worse side, count; with a per cent "
            "sign, of the range of the metric's scores.",
            metavar="SCORE[%]",
            show_default=False,
        ),
    ] = None
    share: Annotated[
        float,
        typer.Option(
            help="With --follow: end with status 3 if more than this share of the last answers "
            "count."
        ),
    ] = 0.2
    window: Annotated[
        int,
        typer.Option(
            help="With --follow: number of last answers to look at.", min=1, max=common.MOST
        ),
    ] = 50
    idle: Annotated[
        Optional[float],  # noqa: UP045 - typer reads it
        typer.Option(
            help="With --follow: end after this many seconds without a new record.",
            show_default=False,
        ),
    ] = None
    once: Annotated[
        bool,
        typer.Option(
            "--once", help="With --follow: end after the records that are in the file now."
        ),
    ] = False
    opentelemetry: Annotated[
        bool,
        typer.Option(
            "--opentelemetry",
            help="With --follow: send each score as an event to OpenTelemetry, as it is "
            "configured by opentelemetry-instrument (see docs/live/tools.md).",
        ),
    ] = False
    explanations: Annotated[
        bool,
        typer.Option(
            "--opentelemetry-explanations",
            help="As --opentelemetry, with the reason of each score, which may quote the answer.",
        ),
    ] = False

    def watch(
        self,
        sources: Sequence[Path],
        metric: Sequence[str],
        out: Path | None,
        settings: dict[str, Any],
        backends: Backends,
    ) -> None:
        """Score the file until the options say that it ends; ``settings`` are other options.

        Raises:
            UsageError: there are several files or metrics, or no folder or threshold.
        """
        if len(sources) > 1 or len(metric) > 1:
            raise UsageError("--follow: expected one file and one metric")
        if out is None or self.threshold is None:
            lacking = "--out" if out is None else "--threshold"
            raise UsageError(f"--follow: needs {lacking}")
        from trustassay import api
        from trustassay.show.text import amount
        from trustassay.workflows.watch import WatchOptions

        options = WatchOptions(
            self.threshold,
            self.share,
            self.window,
            self.idle,
            self.once,
            opentelemetry="explanations" if self.explanations else self.opentelemetry,
            **settings,
        )
        found = api.watch(
            sources[0],
            metric=metric[0] if metric else "harmonicity:perturbations=3",
            out=out,
            options=options,
            tell=lambda text: say(one_line(text)),
            **backends.named(),
        )
        say(
            f"{amount(found.scored, 'answer')} scored, {found.beyond:,} beyond {self.threshold}, "
            f"{found.failed:,} failed, {amount(found.faulty, 'faulty record')}"
        )
        if found.scoreless:
            say(f"{amount(found.scoreless, 'answer')} cannot have a score; the report says why")
        say(f"run:    {out}")
        if found.alarm is not None:
            share = f"{100 * found.alarm:.0f} % of the last {self.window} answers"
            say(f"{share} are beyond {self.threshold}")
            raise typer.Exit(ALARM)
        if found.failed:
            raise typer.Exit(1)


@with_options
def score(  # noqa: PLR0913 - one argument an option
    sources: common.Sources,
    *,
    metric: common.Metrics = [],  # noqa: B006 - typer copies it
    backends: Backends,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            help="The run's folder. Run the same command again with the same folder to continue a "
            "stopped run. Default: one in trustassay-runs, named after the input and the settings.",
            show_default=False,
        ),
    ] = None,
    seed: common.Seed = 0,
    unit: common.Unit = None,
    records: Records,
    pool: Pool = None,
    answers: Answers,
    at_once: AtOnce,
    longest_answer: common.LongestAnswer = LONGEST_ANSWER,
    spending: Spending,
    calibrator: common.CalibratorFile = None,
    cluster: Cluster,
    following: Following,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show the calls that would be made; make none (see plan)."),
    ] = False,
    as_json: common.Json = False,
    open_report: Annotated[
        bool, typer.Option("--open", help="Open the report in a browser.")
    ] = False,
) -> None:
    """Score files of answers; the report and all results go into the run's folder.

    With --follow a growing file is scored as its answers arrive. It ends with status 3 when more
    than --share of the last --window answers are beyond --threshold, with 0 by --once or --idle.

    Without --metric: grounding where most answers cite their documents; else faithfulness, and
    grounding of those that cite; for gold answers without documents judge:by=entailer. Questions
    without an answer are first sent to --model.

    \b
    trustassay score answers.jsonl
    trustassay score small-model.jsonl large-model.jsonl
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
        --share 0.1 --out runs/live
    opentelemetry-instrument -- trustassay score log.jsonl --follow \\
        --threshold 0.3 --out runs/live --opentelemetry
    """
    with errors_for_people():
        if following.follow:
            without: dict[str, Any] = {
                "unit": unit,
                "pool": pool,
                "calibrator": calibrator,
                "dry_run": dry_run,
            }
            without |= {"limit": records.limit, "skip_bad": records.skip_bad}
            without |= {"json": as_json, "open": open_report}
            if flags := given(answers, cluster, **without):
                raise UsageError(f"{flags[0]}: has no effect with --follow")
            followed = {
                "fields": common.pairs(records.field, "--field"),
                "seed": seed,
                "samples_at_once": at_once.read(),
                "calls": spending.read(),
                "longest_answer": longest_answer,
            }
            following.watch(sources, metric, out, followed, backends)
            return
        if flags := given(following):
            raise UsageError(f"{flags[0]}: has an effect with --follow alone")
        from trustassay import api
        from trustassay.runs.intake import default_folder

        source = common.source_of(sources)
        answering, read, named = answers.read(), records.read(), backends.named()
        why = None
        if not metric:
            metric, why = common.default_metrics(source, read["fields"], named)
        settings: dict[str, Any] = {"metrics": metric, "seed": seed, **named}
        settings |= {"limit": read["limit"], "fields": read["fields"]}
        if unit:
            settings |= {"unit": unit}
        if "model" in named:
            settings |= {"answering": answering.settings()}
        options = {
            "metrics": metric,
            "out": out or default_folder(source, **settings),
            "answering": answering,
            "seed": seed,
            "unit": unit,
            "pool": pool,
            "samples_at_once": at_once.read(),
            "longest_answer": longest_answer,
            "progress": True,
            "command": common.command_line(),
            "why": why,
            "calibrator": calibrator,
            **named,
            **read,
            **spending.keywords(),
        }
        on_cluster = cluster.keywords()
        if dry_run:
            show_plan(api.plan(source, **options), as_json=as_json)
            return
        run = api.score(source, **options, **on_cluster)
        if open_report:
            typer.launch(str(run.path / "report.html"))
        show(run, as_json=as_json)


@with_options
def plan(  # noqa: PLR0913
    sources: common.Sources,
    *,
    metric: common.Metrics = [],  # noqa: B006
    backends: Backends,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="The folder of the run, if it was already started.", show_default=False),
    ] = None,
    records: Records,
    pool: Pool = None,
    answers: Answers,
    cache: common.Cache = "",
    prices: common.PricesFile = None,
    as_json: common.Json = False,
) -> None:
    """Show what a run would need: calls, tokens, money and time for each metric. Calls no model.

    Calls that are already stored count with their stored replies, and cost nothing.

    \b
    trustassay plan asked.jsonl --model openai:gpt-4o-mini --prices prices.json
    trustassay plan questions.jsonl --metric harmonicity \\
        --model openai:gpt-4o-mini
    """
    with errors_for_people():
        from trustassay import api

        source = common.source_of(sources)
        spending = Spending(cache, prices)
        read = records.read()
        named = backends.named()
        metric = metric or common.default_metrics(source, read["fields"], named)[0]
        options = {"pool": pool, **named, **read, **spending.keywords()}
        found = api.plan(
            source, metrics=metric, out=out, answering=answers.read(), progress=True, **options
        )
        show_plan(found, as_json=as_json)


@with_options
def rescore(  # noqa: PLR0913 - one argument an option
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder.", show_default=False)],
    *,
    out: Annotated[Path, typer.Option(help="The new run's folder.", show_default=False)],
    metric: Metrics = [],  # noqa: B006 - typer copies it
    backends: Backends,
    seed: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(help="A seed other than the run's.", min=0, show_default=False),
    ] = None,
    unit: Unit = None,
    at_once: AtOnce,
    longest_answer: LongestAnswer = LONGEST_ANSWER,
    calibrator: CalibratorFile = None,
    as_json: Json = False,
) -> None:
    """Score the samples of a run with other settings; stored replies are not requested again.

    A metric or a backend that is not given is the run's own.

    \b
    trustassay rescore runs/one --metric grounding:threshold=0.8 --out runs/strict
    trustassay rescore runs/two --metric harmonicity --embedder hf:MODEL \\
        --out runs/other
    """
    with errors_for_people():
        from trustassay import api

        again = api.rescore(
            run,
            metrics=metric or None,
            out=out,
            seed=seed,
            samples_at_once=at_once.read(),
            longest_answer=longest_answer,
            unit=unit,
            progress=True,
            calibrator=calibrator,
            **backends.named(),
        )
        asked = sum(count.computed for count in again.outcome.counts.values())
        stored = sum(count.from_store for count in again.outcome.counts.values())
        say(f"{stored} replies were stored, {asked} were newly requested")
        show(again, as_json=as_json)


EXAMPLE_FILES = {
    "questions.jsonl": "60 questions with passages and gold answers",
    "answers.jsonl": "the answers of a model, with labels and the answers of three others",
    "ratings.csv": "levels from 1 to 5 by two raters",
    "models.py": "models that need no key: python:models:small, large, judge",
    "replies.jsonl": "what these models reply",
}
"""What ``demo --files`` writes."""


def _write_examples(folder: Path) -> None:
    """Write the example files.

    Raises:
        UsageError: one of them is already there, and differs.
    """
    texts = {
        name: (files("trustassay.data") / "example" / name).read_text(encoding="utf-8")
        for name in EXAMPLE_FILES
    }
    for name, text in texts.items():
        path = folder / name
        if path.exists() and path.read_text(encoding="utf-8", errors="replace") != text:
            raise UsageError(f"{path} already exists and is another file: choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        typer.echo(f"{folder / name}: {EXAMPLE_FILES[name]}")
    typer.echo("All replies, labels and ratings are scripted: no model and no person gave them.")


def demo(
    out: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Option(help="The run's folder. Default: one in trustassay-runs.", show_default=False),
    ] = None,
    entailer: Entailer = DEFAULT_ENTAILER,
    as_json: Json = False,
    open_report: Annotated[
        bool, typer.Option("--open", help="Open the report in a browser.")
    ] = False,
    example_files: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Option(
            "--files",
            metavar="DIR",
            help="Score nothing; write example files into this folder: 60 questions, answers,"
            " ratings and scripted models.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Score the bundled example: 32 cited answers, good ones and bad ones.

    \b
    trustassay demo --open
    trustassay demo --files .
    """
    if example_files is not None:
        with errors_for_people():
            _write_examples(example_files)
        return
    with errors_for_people():
        from trustassay import api
        from trustassay.runs.intake import default_folder

        with as_file(files("trustassay.data") / "demo.jsonl") as source:
            say(f"scoring the bundled answers with the entailer {entailer}")
            folder = out or default_folder(source, metrics=["grounding"], entailer=entailer)
            run = api.score(
                source, metrics=["grounding"], entailer=entailer, out=folder, progress=True
            )
        if open_report:
            typer.launch(str(run.path / "report.html"))
        show(run, as_json=as_json)
