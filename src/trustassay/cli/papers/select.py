"""``trustassay papers select``: choose examples for prompts, or targets for tuning, by a score."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trustassay.cli import common
from trustassay.cli.options import Only, with_options
from trustassay.cli.results import score_run
from trustassay.errors import UsageError
from trustassay.report.terminal import one_line, print_json, say
from trustassay.runs.options import (
    ASKING,
    INPUT,
    OUTPUT,
    BackendChoices,
    Flag,
    RecordOptions,
    Seed,
    find_flag,
)

if TYPE_CHECKING:
    from trustassay.papers.select import CandidateAnswers

app = typer.Typer(no_args_is_help=True)

Scored = Annotated[
    Path,
    Flag("INPUT", "A run's folder, or several answers to each question, which are scored first."),
]

By = Annotated[
    str,
    Flag(
        "--by",
        "What to choose by: score, label, single[:REFERENCE] (likeness to one reference "
        "alone), or a part of the metric (no_penalty).",
        metavar="WAY",
        rare=True,
    ),
]
RunFolder = Annotated[Path | None, Flag("--run", "The folder of the run that scores answers.")]


@app.callback()
def group() -> None:
    """Choose data by a score that needs no gold answers: icl, or sft.

    \b
    trustassay papers select icl runs/models --out prompts.jsonl
    trustassay papers select sft runs/models --out chosen
    """


@app.command("icl")
@with_options
def icl(  # noqa: PLR0913 - one argument an option
    source: Scored,
    *,
    out: Annotated[Path, Flag("--out", "The prompts to write, JSON Lines.", group=OUTPUT)],
    questions: Annotated[
        Path | None,
        Flag(
            "--questions",
            "The questions to write prompts for. Default: those of the input.",
            group=INPUT,
        ),
    ] = None,
    metric: common.RankMetric = None,
    by: By = "score",
    baseline: Annotated[
        str,
        Flag(
            "--baseline",
            "Only questions for which this chooses another answer become examples; as --by.",
            metavar="WAY",
            rare=True,
        ),
    ] = "single",
    keep_all: Annotated[bool, Flag("--all", "Keep all questions as examples.", rare=True)] = False,
    examples: Annotated[
        int, Flag("--examples", "Examples in a prompt.", group=ASKING, least=1)
    ] = 5,
    prompt: Annotated[
        Path | None,
        Flag(
            "--prompt",
            "Your own template in place of the one that ships; filled with question, "
            "examples and sample.",
            group=ASKING,
        ),
    ] = None,
    backends: Annotated[BackendChoices, Only("entailer", "embedder", "backends")],
    run: RunFolder = None,
    records: Annotated[RecordOptions, Only("limit", "fields", "skip_bad")],
    as_json: common.Json,
) -> None:
    """Write prompts with the nearest examples of chosen answers, for trustassay generate.

    A question is never among its own examples.

    \b
    trustassay papers select icl runs/models --out prompts.jsonl
    trustassay papers select icl answers.jsonl --questions asked.jsonl \\
        --out prompts.jsonl
    """
    from trustassay.backends import DEFAULT_EMBEDDER
    from trustassay.calls.client import CallOptions
    from trustassay.papers import select as selecting
    from trustassay.text.numbers import amount

    # 1. Score the answers, unless the input is a run.
    scoring_backends = _choose_scoring_backends(source, metric, backends, records, run)
    # A run as it is; a file of answers is scored first, into a folder of its own.
    folder, name, status = score_run(
        str(source), metric, scoring_backends, records, out=run, seed=0
    )
    # 2. Choose examples, and write the prompts.
    options = selecting.IclOptions(
        by,
        None if keep_all else baseline,
        name,
        examples,
        prompt,
        records.get("fields", {}),
        progress=True,
        calls=CallOptions(),
    )
    embedder = backends.get("embedder") or DEFAULT_EMBEDDER
    result = selecting.select_icl(folder, out, embedder, questions, options)
    # 3. Say what was chosen and what was left out.
    _show_answers(result.answers)
    summary = f"{result.examples:,} of {len(result.answers.questions):,} questions are examples"
    explanation = (
        ""
        if keep_all
        else f": {by} chooses another answer than {_describe_baseline(result, baseline)}"
    )
    say(one_line(summary + explanation))
    if result.ties:
        say(f"{result.ties:,} of them have several answers of the best value; the first counts")
    if result.repeated:
        say(f"{amount(result.repeated, 'repeated question')} left out")
    if result.short:
        say(f"{amount(result.short, 'prompt')} with fewer than {examples} examples")
    say(f"{result.prompts:,} prompts in {out}")
    # JSON has the same counts as the messages.
    if as_json:
        counts = ("prompts", "examples", "ties", "short", "repeated")
        print_json({n: getattr(result, n) for n in counts} | _count_answers(result.answers))
    if status:
        # The status of the scoring: failed samples are no reason to write nothing.
        raise typer.Exit(status)


@app.command("sft")
@with_options
def sft(  # noqa: PLR0913
    source: Scored,
    *,
    out: Annotated[
        Path,
        Flag(
            "--out",
            "The folder for train.jsonl, test.jsonl and test_questions.jsonl.",
            group=OUTPUT,
        ),
    ],
    metric: common.RankMetric = None,
    by: By = "score",
    test_share: common.TestShare = 0.2,
    backends: Annotated[BackendChoices, Only("entailer", "embedder", "backends")],
    run: RunFolder = None,
    seed: Seed,
    records: Annotated[RecordOptions, Only("limit", "fields", "skip_bad")],
    as_json: common.Json,
) -> None:
    """Write the best answer of each question as training data, in the chat format.

    The files suit trustassay papers tune, TRL and the OpenAI API; test_questions.jsonl suits
    trustassay generate.

    \b
    trustassay papers select sft runs/models --out chosen
    trustassay papers select sft answers.jsonl --test-share 0.1 --seed 7 \\
        --out chosen
    """
    from trustassay.papers import select as selecting

    # Before scoring, which may take hours.
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out}: is a file; expected a folder to write into")
    scoring_backends = _choose_scoring_backends(source, metric, backends, records, run)
    folder, name, status = score_run(
        str(source), metric, scoring_backends, records, out=run, seed=seed
    )
    result = selecting.select_sft(folder, out, by=by, metric=name, test_share=test_share, seed=seed)
    _show_answers(result.answers)
    if result.ties:
        message = "questions have several answers of the best value; the first counts"
        say(f"{result.ties:,} {message}")
    say(f"{result.train:,} questions to train on and {result.test:,} to test with in {out}")
    if as_json:
        counts = ("train", "test", "ties")
        print_json({n: getattr(result, n) for n in counts} | _count_answers(result.answers))
    if status:
        raise typer.Exit(status)


def _choose_scoring_backends(
    source: Path,
    metric: str | None,
    backends: BackendChoices,
    records: RecordOptions,
    run: Path | None,
) -> BackendChoices:
    """Return the backends for scoring: none for a run; the embedder only if the metric uses one.

    Raises:
        ValueError: an option of scoring is set, but the input is a run and already scored.
        InputError: no question of a file has two answers; no model was asked.
        UnknownNameError: no such metric.
    """
    from trustassay.cli.results import DEFAULT_RANK_METRIC
    from trustassay.core.files import is_run_folder
    from trustassay.core.registry import metric_from_text
    from trustassay.papers.select import refuse_single_answers

    scoring_backends = backends.copy()
    # The same argument takes a run or a file.
    is_run = is_run_folder(source)
    if is_run or not any(
        need.capability == "embed"
        for need in metric_from_text(metric or DEFAULT_RANK_METRIC).needs()
    ):
        # The embedder then only finds the nearest examples.
        scoring_backends.pop("embedder", None)
    if not is_run:
        refuse_single_answers(source, records.get("fields", {}), records.get("limit"))
        return scoring_backends
    other_options = {"limit": records.get("limit"), "skip-bad": records.get("skip_bad"), "run": run}
    useless_options = [
        *map(find_flag, scoring_backends),
        *(f"--{name}" for name, value in other_options.items() if value is not None),
    ]
    # Better an error than an option without effect.
    if useless_options:
        raise UsageError(f"{source}: is scored already; {useless_options[0]} has no effect")
    return scoring_backends


def _describe_baseline(result: Any, baseline: str) -> str:
    reference = result.answers.reference
    return f"{baseline} ({reference})" if baseline == "single" else baseline


def _count_answers(answers: CandidateAnswers) -> dict[str, Any]:
    return {
        "questions": len(answers.questions),
        "reference": answers.reference,
        "left_out": {
            "blank": answers.blank,
            "without": dict(answers.missing_values),
            "fewer_than_two": answers.too_few_answers,
        },
    }


def _show_answers(answers: CandidateAnswers) -> None:
    """Print how many answers were chosen between, and what was left out."""
    answer_count = sum(len(question.candidates) for question in answers.questions)
    say(
        one_line(
            f"{answers.metric.title}: {answer_count:,} answers to "
            f"{len(answers.questions):,} questions "
            "to choose between"
        )
    )
    for way, count in answers.missing_values.items():
        if count:
            say(one_line(f"left out: {count:,} answers without {way}"))
    if answers.blank:
        say(f"left out: {answers.blank:,} blank answers")
    if answers.too_few_answers:
        say(f"left out: {answers.too_few_answers:,} questions with fewer than two answers")
