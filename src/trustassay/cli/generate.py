"""``trustassay generate``: answer a file of questions with a model."""

from pathlib import Path
from typing import Annotated

import typer

from trustassay.cli import common
from trustassay.cli.options import Only, with_options
from trustassay.report.terminal import complain, one_line, say
from trustassay.runs.options import (
    OUTPUT,
    AnswerOptions,
    Flag,
    RecordOptions,
    SpendingOptions,
)
from trustassay.text.numbers import amount, verb


@with_options
def generate(  # noqa: PLR0913 - one argument an option
    source: common.Source,
    *,
    model: common.NeededModels,
    out: Annotated[
        Path, Flag("--out", "File for the answered questions (JSON Lines).", group=OUTPUT)
    ],
    answers: AnswerOptions,
    repeats: Annotated[int, Flag("--repeats", "Answers per question.", default=1, least=1)],
    again: Annotated[
        bool, Flag("--again", "Also answer questions that already have an answer in the input.")
    ],
    records: RecordOptions,
    spending: Annotated[SpendingOptions, Only("cache", "budget", "calls_at_once")],
) -> None:
    """Answer a file of questions with a model. To continue a stopped run, repeat the command.

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
    from trustassay.runs.remarks import describe_left_out

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
    for sentence in describe_left_out(result.left_out):
        complain(one_line(sentence))
    total = result.written + len(result.failed)
    # What the answers lack, each with the number of all that were asked.
    if result.cut:
        were = verb(result.cut, "was", "were")
        message = f"{were} cut at {answering.max_tokens} tokens; allow more with --max-tokens"
        say(f"{result.cut:,} of {amount(total, 'answer')} {message}")
    if result.without_tokens:
        have = verb(result.without_tokens, "has", "have")
        message = f"{have} no log-probabilities: the model returned none, or none that fit the text"
        say(f"{result.without_tokens:,} of {amount(total, 'answer')} {message}")
    if result.empty:
        were = verb(result.empty, "was", "were")
        say(f"{result.empty:,} of {amount(total, 'answer')} {were} empty")
    if result.written:
        say(f"{amount(result.written, 'answer')} in {out}")
    if not result.written and (result.failed or result.left_out):
        complain(f"no question was answered, so {out} was not written")
    if result.failed:
        if (more := len(result.failed) - common.FAILURES_SHOWN) > 0:
            complain(f"  ... and {more:,} more")
        failed = amount(len(result.failed), "answer")
        complain(f"{failed} failed; run the same command again to retry only these")
    if not result.written and (result.failed or result.left_out):
        raise typer.Exit(1)
