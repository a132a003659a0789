"""``trustassay probe``: what makes answers, embedders and consistency checks go wrong."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from trustassay.backends import DEFAULT_EMBEDDER
from trustassay.cli import common, isotropy
from trustassay.cli.common import errors_for_people
from trustassay.cli.options import Spending, quietable, with_options
from trustassay.show.terminal import complain, one_line, output_failed, print_json, say, visible

if TYPE_CHECKING:
    from trustassay.metrics.harmonicity.ascent import Point
ANSWER_SHOWN = 60


@with_options
def attack(  # noqa: PLR0913 - one argument an option
    prompt: Annotated[
        str, typer.Argument(metavar="PROMPT", help="The prompt that the search starts from.")
    ],
    *,
    model: Annotated[
        str,
        typer.Option(
            help="The model to test, a URI as for score.", metavar="URI", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the page, the trace and all calls.")],
    embedder: common.Embedder = DEFAULT_EMBEDDER,
    steps: Annotated[int, typer.Option(help="Number of rounds.", min=1)] = 5,
    candidates: Annotated[int, typer.Option(help="Candidates per round.", min=1)] = 8,
    perturbations: Annotated[int, typer.Option(help="Perturbed prompts per gamma.", min=1)] = 10,
    perturbation: Annotated[
        str,
        typer.Option(help="How they are made: unicode, codes, control, whitespace, typo, synonym."),
    ] = "unicode",
    candidate: Annotated[
        str,
        typer.Option(
            help="How candidates are made: unicode, codes, words, typo, synonym, ...; ball takes "
            "the perturbed prompts of the current prompt's gamma."
        ),
    ] = "unicode",
    step_rule: Annotated[
        str,
        typer.Option(
            help="uphill moves only to a better candidate, extremum always to a round's best.",
            metavar="uphill|extremum",
        ),
    ] = "uphill",
    length: common.Length = 3,
    last: common.LastCode = 31,
    descend: Annotated[
        bool, typer.Option("--descend", help="Search for prompts with stable answers.")
    ] = False,
    calls: Annotated[
        Optional[int],  # noqa: UP045 - typer reads it
        typer.Option(
            help="Maximum number of requests to the model. Failed tries count; replies from the "
            "cache do not.",
            min=2,
            show_default=False,
        ),
    ] = None,
    max_tokens: common.MaxTokens = 512,
    seed: common.Seed = 0,
    spending: Spending,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the points as JSON on standard output.")
    ] = False,
) -> None:
    """Search for prompts that make a model's answer unstable: stochastic ascent in gamma.

    Use it to test your own systems: see docs/methods/harmonicity.md. Run the same command again to
    continue a stopped search. The defaults are not the paper's. The third command runs the paper's
    search as its authors' program does, with the characters of the paper's Table 12; each step
    needs 110 answers, 10 of which are already known.

    \b
    trustassay probe attack "Who sailed around Africa first?" \\
        --model openai:gpt-4o-mini --out attacks/one
    trustassay probe attack "Answer politely: ..." --model hf:MODEL --descend \\
        --out attacks/calm
    trustassay probe attack "Name the 9 quarks." --model hf:MODEL --out attacks/paper \\
        --step-rule extremum --candidate ball --candidates 10 \\
        --perturbation codes --range 4095
    trustassay probe attack "Who built it?" --model hf:MODEL --candidate words \\
        --length 1 --out attacks/w
    """
    with errors_for_people():
        from trustassay.errors import AssessmentError
        from trustassay.metrics.harmonicity.ascent import Ascent
        from trustassay.workflows import probe as attacking
        from trustassay.workflows.resumable import SessionOptions

        how = Ascent(
            steps=steps,
            candidates=candidates,
            perturbations=perturbations,
            perturbation=perturbation,
            candidate=candidate,
            descend=descend,
            max_calls=calls,
            max_tokens=max_tokens,
            seed=seed,
            step_rule=step_rule,  # type: ignore[arg-type]  # checked there
            length=length,
            range=last,
        )
        options = SessionOptions(spending.read(), calls)
        backends = attacking.open_backends(model, embedder, out, options)
        try:
            found = attacking.attack(
                prompt, backends, out, how, options, lambda point: say(line(prompt, point))
            )
        except AssessmentError as error:
            complain(f"trustassay: {error}")
            raise typer.Exit(1) from None
        common.show_endpoints(found.endpoints)
        say(f"gamma {found.start.gamma:.3f} -> {found.end.gamma:.3f}, calls: {found.calls}")
        if found.best.prompt != found.end.prompt:
            say(f"best prompt found: gamma {found.best.gamma:.3f} at step {found.best.step}")
        if found.cut:
            say(found.warnings[-1])
        say(f"trace: {found.trace}")
        say(f"page:  {found.page}")
        if as_json:
            print_json(found.to_dict())
        if failed := sum(point.error is not None for point in found.points):
            complain(f"failed: {failed} of {len(found.points)} prompts, see the trace")
            raise typer.Exit(1)


def line(prompt: str, point: Point) -> str:
    """Return a point as one line: what was appended, and the start of the answer."""
    added = point.prompt.removeprefix(prompt) or "(unchanged)"
    mark = "*" if point.kept else " "
    if point.gamma is None:
        return f"{mark} step {point.step}  failed: {point.error}  {added!r}"
    answer = " ".join(point.answer.split())
    answer = answer if len(answer) <= ANSWER_SHOWN else answer[:ANSWER_SHOWN] + "..."
    return f"{mark} step {point.step}  gamma {point.gamma:.3f}  {added!r}  {answer}"


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
            f"{amount(done.counts['distractors'], 'distractor')} of "
            f"{amount(done.written, 'answer')}" + f" in {out}" * bool(out)
        )
        if few := done.written - done.counts["assessable"]:
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


app = typer.Typer(no_args_is_help=True)


@app.callback()
def group() -> None:
    """Look at what scores rest on: prompts, perturbations, and wrong answers to choose from.

    \b
    trustassay probe attack "Who built it?" --model hf:MODEL --out attacks/one
    trustassay probe isotropy questions.jsonl
    trustassay probe distractors answers.jsonl --limit 5
    """


app.command("attack")(quietable(attack))
app.command("isotropy")(quietable(isotropy.isotropy))
app.command("distractors")(quietable(distractors))
