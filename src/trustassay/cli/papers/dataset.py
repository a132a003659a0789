"""``trustassay papers dataset``: data sets of grounded questions, and MixedQA."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperGroup

from trustassay.cli import common
from trustassay.cli.options import Only, with_options
from trustassay.cli.papers.ending import end_if_stopped, show_failed
from trustassay.cli.results import show_plan
from trustassay.errors import UsageError
from trustassay.report.terminal import one_line, say, show_table
from trustassay.runs.options import (
    INPUT,
    MODELS,
    OUTPUT,
    AnswerOptions,
    Fields,
    Flag,
    Limit,
    Seed,
    SkipBad,
    SpendingOptions,
)
from trustassay.text.numbers import amount

if TYPE_CHECKING:
    from trustassay.papers.mixedqa.building import MixResult


@with_options
def mixedqa(  # noqa: PLR0913 - one argument an option
    *,
    out: Annotated[
        Path,
        Flag(
            "--out",
            "Folder for the data set, the dropped questions, the report and all calls.",
            group=OUTPUT,
        ),
    ],
    nq: Annotated[
        list[str],
        Flag(
            "--nq",
            "Natural Questions (open). SPLIT is test or dev. Default: taken from the file name.",
            metavar="[SPLIT=]PATH",
            group=INPUT,
        ),
    ],
    webq: Annotated[
        list[str], Flag("--webq", "WebQuestions.", metavar="[SPLIT=]PATH", group=INPUT)
    ],
    triviaqa: Annotated[
        list[str], Flag("--triviaqa", "TriviaQA.", metavar="[SPLIT=]PATH", group=INPUT)
    ],
    hotpotqa: Annotated[
        list[str], Flag("--hotpotqa", "HotpotQA.", metavar="[SPLIT=]PATH", group=INPUT)
    ],
    popqa: Annotated[list[str], Flag("--popqa", "PopQA.", metavar="[SPLIT=]PATH", group=INPUT)],
    model: Annotated[
        list[str],
        Flag(
            "--model",
            "A model that answers, a URI as for generate. May be given more than once.",
            metavar="URI",
            group=MODELS,
        ),
    ],
    answers: Annotated[
        list[str],
        Flag(
            "--answers",
            "A file with answers that a model gave earlier, in the formats of score. May be "
            "given more than once.",
            metavar="NAME=FILE",
            group=INPUT,
        ),
    ],
    per_source: Annotated[
        int, Flag("--per-source", "Number of questions to keep from each source.", least=1)
    ] = 200,
    asking: Annotated[AnswerOptions, Only("temperature", "max_tokens")],
    seed: Seed,
    skip_bad: SkipBad,
    spending: Annotated[SpendingOptions, Only("budget")],
    dry_run: common.DryRun = False,
) -> None:
    """Draw a data set like TrustScore's MixedQA: open questions that all models answered.

    Test splits are used before dev splits. Run a stopped command again to continue. File layouts
    and filters: docs/data.md.

    \b
    trustassay papers dataset mixedqa --nq NQ-open.dev.jsonl --popqa popQA.tsv \\
        --out mixed \\
        --model openai:gpt-4o-mini --model hf:MODEL --dry-run
    trustassay papers dataset mixedqa --hotpotqa hotpot_dev_distractor_v1.json \\
        --out mixed \\
        --answers flan=flan.jsonl --answers llama=llama.jsonl --per-source 50
    """
    # Imported here, so that `trustassay --help` is fast.
    from trustassay.calls.client import CallOptions
    from trustassay.papers.mixedqa import building as mixing
    from trustassay.papers.mixedqa.question_sets import QuestionFile

    # 1. The files, the recorded answers, and the options.
    paths_by_set = {
        "nq": nq,
        "webq": webq,
        "triviaqa": triviaqa,
        "hotpotqa": hotpotqa,
        "popqa": popqa,
    }
    # Checked at once, before a model is loaded.
    files = [QuestionFile.of(name, path) for name, paths in paths_by_set.items() for path in paths]
    answer_files = [_parse_answer_file(option) for option in answers]
    options = mixing.MixOptions(
        per_source,
        seed,
        common.build_answering({"style": "closed-book", **asking}),
        skip_bad,
        progress=True,
        calls=CallOptions.of(**spending),
    )
    # 2. A plan only.
    if dry_run:
        # A plan cannot know how many replies the filters will drop.
        plan, beyond = mixing.plan_mix(files, model, out, answer_files, options)
        show_plan(plan, as_json=False)
        say(f"each dropped question is replaced by another one; {beyond:,} are available")
        return
    # 3. Draw; say what failed, what was drawn, and what is missing.
    result = mixing.mix(files, model, out, answer_files, options)
    common.show_endpoints(result.endpoints)
    if result.unfinished:
        _show_unfinished(result.unfinished)
        raise typer.Exit(1)
    _show_counts(result, out)
    # The set is written, but smaller than requested: the status says so.
    if result.short:
        say(
            f"fewer than {amount(per_source, 'question')} answered by all models: "
            f"{', '.join(result.short)}"
        )
        raise typer.Exit(1)


def _parse_answer_file(option: str) -> tuple[str, Path]:
    name, separator, path = option.partition("=")
    if not (separator and name and path):
        raise UsageError(f"--answers: expected NAME=FILE, got {option!r}")
    return name, Path(path)


def _show_unfinished(failed: Mapping[str, str]) -> None:
    for name, error in list(failed.items())[: common.FAILURES_SHOWN]:
        say(one_line(f"  {name}: {error}"))
    if (more := len(failed) - common.FAILURES_SHOWN) > 0:
        say(f"  ... and {more:,} more")
    say(f"failed: {amount(len(failed), 'call')}, so nothing was written; run the command again")


def _show_counts(result: MixResult, out: Path) -> None:
    sources = result.report["sources"]
    filters = sorted(
        {name for source_counts in sources.values() for name in source_counts["dropped"]}
    )
    rows = [
        (
            source,
            f"{source_counts['questions']:,}",
            *(f"{source_counts['dropped'].get(name, 0):,}" for name in filters),
            f"{source_counts['asked']:,}",
            f"{source_counts['kept']:,}",
        )
        for source, source_counts in sources.items()
    ]
    # Only filters that dropped something have a column.
    show_table(("source", "questions", *filters, "asked", "kept"), rows, ())
    rows = []
    for name in result.report["models"]:
        dropped_by_source = [
            source_counts["replies_dropped"][name] for source_counts in sources.values()
        ]
        counts = {
            reason: sum(dropped[reason] for dropped in dropped_by_source)
            for reason in dropped_by_source[0]
        }
        rows.append((name, *(f"{count:,}" for count in counts.values())))
    # One row for each model, summed over the sources.
    show_table(("replies dropped", *counts), rows, (), wide=True)
    say(f"{amount(result.samples, 'sample')} in {out / 'samples.jsonl'}")


DEFAULT_COMMAND = "trust-eval"
"""The command that runs if none is named."""


class _DatasetGroup(TyperGroup):
    """Runs the default command if the first argument is not a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # `dataset questions.jsonl ...` was the whole command before there were two.
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = [DEFAULT_COMMAND, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_DatasetGroup, no_args_is_help=True)


@app.callback()
def group() -> None:
    """Build a data set: trust-eval (the default) or mixedqa.

    \b
    trustassay papers dataset questions.jsonl --corpus texts/ --out data.jsonl
    trustassay papers dataset mixedqa --nq NQ-open.dev.jsonl \\
        --model openai:gpt-4o-mini --out mixed
    """


@app.command(DEFAULT_COMMAND)
@with_options
def trust_eval(  # noqa: PLR0913 - one argument an option
    *,
    source: Annotated[
        Path,
        Flag(
            "QUESTIONS",
            "Questions with gold answers or claims: .jsonl, .json, .csv, .tsv, .parquet, or "
            "a folder saved by datasets.",
        ),
    ],
    out: Annotated[Path, Flag("--out", "File for the data set, JSON Lines.", group=OUTPUT)],
    corpus: Annotated[
        Path | None,
        Flag(
            "--corpus",
            "The source of the documents: a folder of texts, .jsonl, .csv, .tsv, .parquet, "
            "or an index.",
        ),
    ] = None,
    retriever: Annotated[
        str | None,
        Flag(
            "--retriever",
            "A retriever instead of --corpus: bm25:PATH or bm25:PATH?index=FOLDER.",
            metavar="URI",
            group=MODELS,
            rare=True,
        ),
    ] = None,
    words: Annotated[
        int | None,
        Flag(
            "--words",
            "Cut documents into passages of N words. Default: 100 for plain text; "
            "records are not cut.",
            least=1,
            rare=True,
        ),
    ] = None,
    claims: Annotated[
        str,
        Flag(
            "--claims",
            "Gold claims: given (those in the records, or else the gold answers), sentences (of "
            "the gold answers), or model (written by --model).",
            rare=True,
        ),
    ] = "given",
    entailer: common.Entailer,
    model: common.Model = None,
    candidates: Annotated[
        int,
        Flag(
            "--candidates", "Number of passages to retrieve for each question.", least=1, rare=True
        ),
    ] = 100,
    documents: Annotated[
        int,
        Flag(
            "--documents", "Number of retrieved passages to keep as documents.", least=1, rare=True
        ),
    ] = 5,
    threshold: Annotated[
        float,
        Flag(
            "--threshold",
            "Entailment probability at which a passage counts as supporting.",
            rare=True,
        ),
    ] = 0.5,
    limit: Limit,
    seed: Seed,
    fields: Fields,
    skip_bad: SkipBad,
    spending: Annotated[SpendingOptions, Only("budget")],
) -> None:
    """Build a grounded data set from questions, gold answers and a corpus.

    Run a stopped command again to continue. Score answers to the result with --metric grounding.

    \b
    trustassay papers dataset questions.jsonl --corpus texts/ --out data.jsonl
    trustassay papers dataset eli5.jsonl --corpus wiki.tsv --claims sentences \\
        --entailer embedded \\
        --out data.jsonl
    trustassay papers dataset questions.csv \\
        --retriever "bm25:wiki.tsv?index=wiki.bm25" --out data.jsonl
    """
    from trustassay.backends.bm25 import bm25_retriever
    from trustassay.backends.registry import read
    from trustassay.calls.client import CallOptions
    from trustassay.papers import dataset as datasets

    # 1. The options; they are checked before the corpus is read.
    if (corpus is None) == (retriever is None):
        raise UsageError("give either --corpus or --retriever")
    options = datasets.BuildOptions(
        claims=cast("datasets.Claims", claims),
        candidates=candidates,
        documents=documents,
        threshold=threshold,
        seed=seed,
        fields=fields,
        limit=limit,
        skip_bad=skip_bad,
        progress=True,
        calls=CallOptions.of(**spending),
    )
    # 2. The retriever: an index of the corpus, or one that exists.
    if corpus is not None:
        passage_retriever = bm25_retriever(corpus, words=words, progress=True)
    else:
        # `bm25:PATH?index=FOLDER`: the path and the options of the URI.
        _, path, bm25_options = read("retriever", retriever or "")
        passage_retriever = bm25_retriever(path, **bm25_options, words=words, progress=True)
    # 3. Build; an unfinished data set ends with a message and status 1.
    built = datasets.build(source, out, passage_retriever, entailer, model, options)
    if built.resumed:
        say(f"{amount(built.resumed, 'question')} already done")
    common.show_endpoints(built.endpoints)
    end_if_stopped(built.stopped)
    say(
        f"{amount(built.written, 'question')} in {out}, {built.counts['answerable']:,} of them "
        f"answerable from {amount(documents, 'document')}"
    )
    show_failed(built.failed, built.written)


app.command("mixedqa")(mixedqa)
