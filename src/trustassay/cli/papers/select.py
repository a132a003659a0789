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
from trustassay.text.numbers import amount

if TYPE_CHECKING:
    from trustassay.papers.select import CandidateAnswers

app = typer.Typer(no_args_is_help=True)

Scored = Annotated[
    Path,
    Flag(
        "INPUT",
        "A run's folder, or a file with several answers to each question, which are scored first.",
    ),
]

By = Annotated[
    str,
    Flag(
        "--by",
        "The value to choose by: score, label, single[:REFERENCE] (similarity to one reference "
        "alone), or a part of the metric, for example no_penalty.",
        metavar="WAY",
        rare=True,
    ),
]
RunFolder = Annotated[Path | None, Flag("--run", "Folder for the run that scores the answers.")]


@app.callback()
def group() -> None:
    """Choose examples for prompts (icl) or training data (sft) by a score without gold answers.

    \b
    trustassay papers select icl runs/models --out prompts.jsonl
    trustassay papers select sft runs/models --out chosen
    """


@app.command("icl")
@with_options
def icl(  # noqa: PLR0913 - one argument an option
    source: Scored,
    *,
    out: Annotated[Path, Flag("--out", "File for the prompts, JSON Lines.", group=OUTPUT)],
    questions: Annotated[
        Path | None,
        Flag(
            "--questions",
            "The questions to write prompts for. Default: those in the input.",
            group=INPUT,
        ),
    ] = None,
    metric: common.RankMetric = None,
    by: By = "score",
    baseline: Annotated[
        str,
        Flag(
            "--baseline",
            "Use as examples only questions for which this baseline chooses another answer. "
            "Takes the values of --by.",
            metavar="WAY",
            rare=True,
        ),
    ] = "single",
    keep_all: Annotated[
        bool,
        Flag("--all", "Use all questions as examples, whatever the baseline chooses.", rare=True),
    ] = False,
    examples: Annotated[
        int, Flag("--examples", "Number of examples in a prompt.", group=ASKING, least=1)
    ] = 5,
    prompt: Annotated[
        Path | None,
        Flag(
            "--prompt",
            "Your own template, filled with question, examples and sample. Default: the built-in "
            "one.",
            group=ASKING,
        ),
    ] = None,
    backends: Annotated[BackendChoices, Only("entailer", "embedder", "backends")],
    run: RunFolder = None,
    records: Annotated[RecordOptions, Only("limit", "fields", "skip_bad")],
    as_json: common.Json,
) -> None:
    """Write prompts that contain the nearest examples of chosen answers, for trustassay generate.

    A question is never one of its own examples.

    \b
    trustassay papers select icl runs/models --out prompts.jsonl
    trustassay papers select icl answers.jsonl --questions asked.jsonl \\
        --out prompts.jsonl
    """
    from trustassay.backends import DEFAULT_EMBEDDER
    from trustassay.calls.client import CallOptions
    from trustassay.papers import select as selecting

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
    summary = (
        f"{result.examples:,} of {amount(len(result.answers.questions), 'question')} used as "
        "examples"
    )
    explanation = (
        ""
        if keep_all
        else f": for them, {by} and {_describe_baseline(result, baseline)} choose different answers"
    )
    say(one_line(summary + explanation))
    if result.ties:
        say(
            f"ties: {amount(result.ties, 'question')} with several best answers; the first one is "
            "used"
        )
    if result.repeated:
        say(f"{amount(result.repeated, 'repeated question')} left out")
    if result.short:
        say(f"{amount(result.short, 'prompt')} with fewer than {examples} examples")
    say(f"{amount(result.prompts, 'prompt')} in {out}")
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
            "Folder for train.jsonl, test.jsonl and test_questions.jsonl.",
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
        ties = amount(result.ties, "question")
        say(f"ties: {ties} with several best answers; the first one is used")
    say(f"{amount(result.train, 'question')} for training and {result.test:,} for testing in {out}")
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
        raise UsageError(f"{source}: is a scored run; {useless_options[0]} has no effect")
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
            f"{answers.metric.title}: {amount(answer_count, 'answer')} to "
            f"{amount(len(answers.questions), 'question')} to choose from"
        )
    )
    for way, count in answers.missing_values.items():
        if count:
            say(one_line(f"left out: {amount(count, 'answer')} without {way}"))
    if answers.blank:
        say(f"left out: {amount(answers.blank, 'blank answer')}")
    if answers.too_few_answers:
        say(f"left out: {amount(answers.too_few_answers, 'question')} with fewer than two answers")
