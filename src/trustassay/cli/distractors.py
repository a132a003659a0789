"""``trustassay probe distractors``."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Optional

import typer

from trustassay.cli import common
from trustassay.cli.common import errors_for_people
from trustassay.show.terminal import one_line, output_failed, say, visible

SHOWN = 8
"""Distractors of an answer that are printed for people."""


def distractors(  # noqa: PLR0913 - one argument an option
    source: common.Source,
    sources: Annotated[
        str,
        typer.Option(
            "--source",
            help="Where substitutes come from, with commas: embedding[:FILE] (nearest words), pos "
            "(the same part of speech), dbpedia[:URL] (entities of the same types; needs "
            "--linker), llm (needs --generator), python:MODULE:OBJECT. In this order, but "
            "embedding and pos last.",
            metavar="NAME,...",
        ),
    ] = "embedding,pos",
    linker: Annotated[
        Optional[str],  # noqa: UP045 - typer reads it
        typer.Option(
            help="Who finds entities: spotlight[:URL], spacy[:MODEL], python:MODULE:OBJECT. "
            "Without: runs of capital letters and known names.",
            metavar="URI",
            show_default=False,
        ),
    ] = None,
    generator: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="The chat model of the source llm, a URI as of generate's --model.",
            metavar="URI",
            show_default=False,
        ),
    ] = None,
    pool: Annotated[
        bool,
        typer.Option("--pool", help="Use answers to other questions of the file, too."),
    ] = False,
    most: Annotated[int, typer.Option(help="Distractors of an answer, at most.", min=1)] = 40,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Write all as JSON Lines instead of printing.", show_default=False),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all as JSON Lines on standard output.")
    ] = False,
    seed: common.Seed = 0,
    limit: common.Limit = None,
    field: common.Fields = [],  # noqa: B006
    skip_bad: common.SkipBad = False,
    cache: common.Cache = "",
    prices: common.PricesFile = None,
    budget: common.BudgetText = None,
) -> None:
    """Show wrong answers that look like the given ones: what a consistency check is made of.

    One word or entity is replaced at a time, those that tell most first. Gold answers are kept out.
    With --out a stopped command goes on where it was.

    \b
    trustassay probe distractors answers.jsonl --limit 5
    trustassay probe distractors answers.jsonl --out distractors.jsonl --pool
    trustassay probe distractors answers.jsonl --source embedding:vectors.bin,pos --json
    trustassay probe distractors answers.jsonl --source dbpedia,embedding,pos \\
        --linker spotlight
    """
    with errors_for_people():
        from trustassay.show.text import amount
        from trustassay.workflows import probe as finding

        backends, names = finding.loaded(sources, linker, generator)
        options = finding.DistractorOptions(
            sources=names,
            pool=pool,
            most=most,
            seed=seed,
            fields=common.pairs(field, "--field"),
            limit=limit,
            skip_bad=skip_bad,
            progress=True,
            calls=common.call_options(cache, prices, budget),
        )
        with TemporaryDirectory(prefix="trustassay-") as place:
            path = out or Path(place) / "distractors.jsonl"
            done = finding.find_in_file(source, path, backends, options)
            common.end_if_stopped(done.stopped)
            if out is None:
                _print(path, as_json=as_json)
        if done.resumed:
            say(f"{amount(done.resumed, 'answer')} done already")
        say(
            f"{amount(done.distractors, 'distractor')} of {amount(done.answers, 'answer')}"
            + f" in {out}" * bool(out)
        )
        if few := done.answers - done.assessable:
            say(f"{few:,} answers have fewer than {finding.ENOUGH} distractors: not assessable")
        common.end_if_failed(done.failed)


def _print(path: Path, *, as_json: bool) -> None:
    try:
        with path.open(encoding="utf-8") as file:
            for line in file:
                print(line.rstrip("\n") if as_json else _readable(json.loads(line)))
        print(end="", flush=True)
    except OSError as error:
        output_failed(error)


def _readable(record: dict[str, Any]) -> str:
    """Return an answer and its first distractors as lines for people."""
    found = record["distractors"]
    lines = [f"{record['id']}: {record['question']}", f"  {record['response']}"]
    for one in found[:SHOWN]:
        origin = f"level {one['level']}, {one['source']}"
        lines.append(f"    {one['replaced']} -> {one['replacement']}  ({origin})")
    if len(found) > SHOWN:
        lines.append(f"    ... and {len(found) - SHOWN} more")
    if not found:
        lines.append("    none: not assessable")
    return "\n".join(visible(one_line(line)) for line in lines) + "\n"
