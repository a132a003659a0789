"""``trustassay papers distractors``: what consistency checks are made of."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from trustassay.cli import common
from trustassay.cli.options import Only, with_options
from trustassay.options import Flag, Records, Seed, Spending
from trustassay.show.terminal import one_line, output_failed, say, visible
from trustassay_papers.cli.ending import end_if_stopped, show_failed

SHOWN = 8
"""Distractors of an answer that are printed for people."""


@with_options
def distractors(  # noqa: PLR0913 - one argument an option
    *,
    source: common.Source,
    sources: Annotated[
        str,
        Flag(
            "Where substitutes come from, with commas: embedding (nearest words), pos (the same "
            "part of speech), word2vec:FILE, dbpedia[:URL] (entities of the same types; needs "
            "--linker), llm (needs --generator), python:MODULE:OBJECT. In this order, but "
            "embedding and pos last.",
            name="--source",
            metavar="NAME,...",
        ),
    ] = "embedding,pos",
    linker: Annotated[
        str | None,
        Flag(
            "Who finds entities: spotlight[:URL], spacy[:MODEL], python:MODULE:OBJECT. Without: "
            "runs of capital letters and known names.",
            metavar="URI",
        ),
    ] = None,
    generator: Annotated[
        str | None,
        Flag(
            "A chat model whose wrong answers come first, the source llm; a URI as of generate's "
            "--model. Other sources then fill up to ten.",
            metavar="URI",
        ),
    ] = None,
    pool: Annotated[
        bool, Flag("Also use answers to other questions of the file.", name="--pool")
    ] = False,
    most: Annotated[int, Flag("Distractors of an answer, at most.", least=1)] = 40,
    out: Annotated[Path | None, Flag("Write all as JSON Lines instead of printing.")] = None,
    as_json: Annotated[
        bool, Flag("Print all as JSON Lines on standard output.", name="--json")
    ] = False,
    seed: Seed,
    records: Records,
    spending: Annotated[Spending, Only("cache", "prices", "budget")],
) -> None:
    """Show wrong answers that look like the given ones: what a consistency check is made of.

    One word or entity is replaced at a time, the most informative first. Gold answers are kept out.
    With --out, run a stopped command again to continue.

    \b
    trustassay papers distractors answers.jsonl --limit 5
    trustassay papers distractors answers.jsonl --out distractors.jsonl --pool
    trustassay papers distractors answers.jsonl \\
        --source embedding=word2vec:vectors.bin,pos --json
    trustassay papers distractors answers.jsonl --source dbpedia,embedding,pos \\
        --linker spotlight
    """
    from trustassay.calls.client import CallOptions
    from trustassay.text.words import amount
    from trustassay_papers import distractors as finding

    backends, names = finding.loaded(sources, linker, generator)
    options = finding.DistractorOptions(
        sources=names,
        pool=pool,
        most=most,
        seed=seed,
        progress=True,
        calls=CallOptions.of(**spending),
        **records,
    )
    with TemporaryDirectory(prefix="trustassay-") as place:
        path = out or Path(place) / "distractors.jsonl"
        done = finding.find_in_file(source, path, backends, options)
        end_if_stopped(done.stopped)
        if out is None:
            _print(path, as_json=as_json)
    if done.resumed:
        say(f"{amount(done.resumed, 'answer')} done already")
    say(
        f"{amount(done.counts['distractors'], 'distractor')} of "
        f"{amount(done.written, 'answer')}" + f" in {out}" * bool(out)
    )
    if by := [f"{n:,} {key}" for key, n in done.counts.items() if key not in finding.COUNTED]:
        say(one_line(f"by source: {', '.join(by)}"))
    if few := done.written - done.counts["assessable"]:
        say(f"{few:,} answers have fewer than {finding.ENOUGH} distractors: not assessable")
    show_failed(done.failed, done.written)


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
