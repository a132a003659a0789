"""``trustassay papers distractors``: show the wrong answers that a consistency check offers."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

from trustassay.cli import common
from trustassay.cli.options import Only, with_options
from trustassay.cli.papers.ending import end_if_stopped, show_failed
from trustassay.report.terminal import exit_output_failed, one_line, say, visible
from trustassay.runs.options import (
    BACKEND,
    INPUT,
    OUTPUT,
    Flag,
    RecordOptions,
    Seed,
    SpendingOptions,
    group_backends,
)
from trustassay.text.numbers import amount

MAX_DISTRACTORS_SHOWN = 8
"""Distractors of an answer that are printed without --json."""


@with_options
def distractors(  # noqa: PLR0913 - one argument an option
    *,
    source: common.Source,
    sources: Annotated[
        str,
        Flag(
            "--source",
            "Sources of substitutes, separated by commas: embedding (nearest words), pos (words "
            "of the same part of speech), word2vec:FILE, dbpedia[:URL] (entities of the same "
            "types; needs --backend linker=URI), llm (needs --backend generator=URI), "
            "python:MODULE:OBJECT. They are used in the given order, with embedding and pos last.",
            metavar="NAME,...",
        ),
    ] = "embedding,pos",
    backend: Annotated[list[str], BACKEND],
    pool: Annotated[
        bool, Flag("--pool", "Also use answers to other questions in the file.", group=INPUT)
    ] = False,
    algorithm: Annotated[
        Literal["asked", "paper"],
        Flag(
            "--algorithm",
            "asked first replaces the words that the question asks for; paper follows Algorithm "
            "1 of Zheng et al. 2024.",
        ),
    ] = "asked",
    most: Annotated[
        int, Flag("--most", "Maximum number of distractors for an answer.", least=1)
    ] = 40,
    out: Annotated[
        Path | None,
        Flag(
            "--out",
            "Write all distractors to this file, JSON Lines, instead of printing some.",
            group=OUTPUT,
        ),
    ] = None,
    as_json: Annotated[
        bool,
        Flag("--json", "Print all distractors as JSON Lines on standard output.", group=OUTPUT),
    ] = False,
    seed: Seed,
    records: RecordOptions,
    spending: Annotated[SpendingOptions, Only("budget")],
) -> None:
    """Show wrong answers that resemble the given ones, as a consistency check offers them.

    One word or entity is replaced at a time, the most informative first. Gold answers are never
    distractors. With --out, run a stopped command again to continue.

    \b
    trustassay papers distractors answers.jsonl --limit 5
    trustassay papers distractors answers.jsonl --out distractors.jsonl --pool
    trustassay papers distractors answers.jsonl \\
        --source embedding=word2vec:vectors.bin,pos --json
    trustassay papers distractors answers.jsonl --source dbpedia,embedding,pos \\
        --backend linker=spotlight
    """
    from trustassay.calls.client import CallOptions
    from trustassay.papers import distractors as finding

    # 1. The sources and what they need.
    roles = group_backends(backend, ("linker", "generator"))
    linker, generator = (roles.get(role, [None])[-1] for role in ("linker", "generator"))
    backends, names = finding.load_backends(sources, linker, generator)
    options = finding.DistractorOptions(
        sources=names,
        pool=pool,
        algorithm=algorithm,
        most=most,
        seed=seed,
        progress=True,
        calls=CallOptions.of(**spending),
        **records,
    )
    # Without --out the records go through a temporary file: printing and writing share all code.
    with TemporaryDirectory(prefix="trustassay-") as temporary_folder:
        path = out or Path(temporary_folder) / "distractors.jsonl"
        # 2. Find the distractors of all answers.
        result = finding.find_in_file(source, path, backends, options)
        end_if_stopped(result.stopped)
        if out is None:
            _print_records(path, as_json=as_json)
    # 3. Counts.
    if result.resumed:
        say(f"{amount(result.resumed, 'answer')} already done")
    say(
        f"{amount(result.counts['distractors'], 'distractor')} for "
        f"{amount(result.written + len(result.failed), 'answer')}" + f" in {out}" * bool(out)
    )
    # With a chat model the counts tell how much each source added.
    if counts_by_source := [
        f"{n:,} {key}" for key, n in result.counts.items() if key not in finding.COUNT_KEYS
    ]:
        say(one_line(f"by source: {', '.join(counts_by_source)}"))
    if too_few := result.written - result.counts["assessable"]:
        say(
            f"not assessable: {amount(too_few, 'answer')} with fewer than "
            f"{finding.MIN_DISTRACTORS} distractors"
        )
    show_failed(result.failed, result.written)


def _print_records(path: Path, *, as_json: bool) -> None:
    try:
        with path.open(encoding="utf-8") as file:
            for line in file:
                # The records are already JSON Lines.
                print(line.rstrip("\n") if as_json else _format_record(json.loads(line)))
        # A closed pipe, as of `head`, must raise here and not at exit.
        print(end="", flush=True)
    except OSError as error:
        exit_output_failed(error)


def _format_record(record: dict[str, Any]) -> str:
    """Return an answer and its first distractors as readable lines."""
    distractors = record["distractors"]
    lines = [f"{record['id']}: {record['question']}", f"  {record['response']}"]
    for distractor in distractors[:MAX_DISTRACTORS_SHOWN]:
        origin = f"level {distractor['level']}, {distractor['source']}"
        lines.append(f"    {distractor['replaced']} -> {distractor['replacement']}  ({origin})")
    if len(distractors) > MAX_DISTRACTORS_SHOWN:
        lines.append(f"    ... and {len(distractors) - MAX_DISTRACTORS_SHOWN} more")
    if not distractors:
        lines.append("    no distractors: not assessable")
    return "\n".join(visible(one_line(line)) for line in lines) + "\n"
