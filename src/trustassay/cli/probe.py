"""``trustassay probe``: what makes answers, embedders and consistency checks go wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trustassay.cli import common
from trustassay.cli.options import Only, quietable, with_options
from trustassay.errors import UsageError
from trustassay.options import Fields, Limit, MaxTokens, Records, Seed, SkipBad, Spending
from trustassay.show.terminal import (
    complain,
    one_line,
    output_failed,
    print_json,
    say,
    show_rows,
    visible,
)

if TYPE_CHECKING:
    from trustassay.statistics.isotropy import Isotropy
    from trustassay.views import Point
ANSWER_SHOWN = 60


@with_options
def attack(  # noqa: PLR0913 - one argument an option
    prompt: str,
    *,
    model: str,
    out: Path,
    embedder: common.Embedder,
    steps: int,
    candidates: int,
    perturbations: int,
    perturbation: str,
    candidate: str,
    step_rule: str,
    length: common.Length,
    last: common.LastCode,
    descend: bool,
    calls: int | None,
    max_tokens: MaxTokens = 512,
    seed: Seed,
    spending: Spending,
    as_json: bool,
) -> None:
    """Search for prompts that make a model's answer unstable: stochastic ascent in gamma."""
    from trustassay.calls.client import CallOptions
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
    options = SessionOptions(CallOptions.of(**spending), calls)
    backends = attacking.open_backends(model, embedder, out, options)
    try:
        found = attacking.attack(
            prompt, backends, out, how, options, lambda point: say(line(prompt, point))
        )
    except AssessmentError as error:
        complain(f"trustassay: {error}")
        raise typer.Exit(1) from None
    common.show_endpoints(found.session.endpoints)
    say(f"gamma {found.start.gamma:.3f} -> {found.end.gamma:.3f}, calls: {found.calls}")
    if found.best.prompt != found.end.prompt:
        say(f"best prompt found: gamma {found.best.gamma:.3f} at step {found.best.step}")
    if found.session.cut:
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


@with_options
def distractors(  # noqa: PLR0913 - one argument an option
    *,
    source: common.Source,
    sources: str,
    linker: str | None,
    generator: str | None,
    pool: bool,
    most: int,
    out: Path | None,
    as_json: bool,
    seed: Seed,
    records: Records,
    spending: Annotated[Spending, Only("cache", "prices", "budget")],
) -> None:
    """Show wrong answers that look like the given ones: what a consistency check is made of."""
    from trustassay.calls.client import CallOptions
    from trustassay.show.text import amount
    from trustassay.workflows import probe as finding

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
        common.end_if_stopped(done.stopped)
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


@with_options
def isotropy(  # noqa: PLR0913 - one argument an option
    *,
    source: common.Source,
    perturbation: list[str],
    embedder: common.Embedder,
    perturbations: int,
    length: common.Length,
    last: common.LastCode,
    draw: int,
    limit: Limit,
    seed: Seed,
    fields: Fields,
    skip_bad: SkipBad,
    spending: Annotated[Spending, Only("cache")],
    out: Path | None,
    as_json: common.Json,
) -> None:
    """Check that a perturbation moves the vectors of questions equally in all directions."""
    from trustassay.backends import resolve
    from trustassay.calls.backends import Backends
    from trustassay.calls.client import CallOptions
    from trustassay.metrics.harmonicity.perturbations import FAMILIES, families, versions
    from trustassay.workflows import isotropy_outputs as outputs
    from trustassay.workflows.probe import drawn_samples, measure_isotropy

    if "paraphrase" in perturbation:
        raise UsageError("paraphrases need a model; choose another --perturbation")
    chosen = families(dict.fromkeys(perturbation or FAMILIES), length, last)
    samples = drawn_samples(
        source, draw, seed=seed, fields=dict(fields), limit=limit, skip_bad=skip_bad
    )
    made = {family.name: versions(samples, family, perturbations, seed) for family in chosen}
    unfit = [name for name, one in made.items() if not one.texts] if len(made) > 1 else []
    made = {name: one for name, one in made.items() if name not in unfit}
    figures = measure_isotropy(
        [(one.texts, one.perturbed) for one in made.values()],
        Backends.of(embed=resolve.embedder(embedder)),
        seed=seed,
        options=CallOptions.of(**spending),
    )
    found = dict(zip(made, figures, strict=True))
    warnings = outputs.warnings_of(found, made, embedder)
    warnings += [f"{name}: cannot be applied to any of the questions" for name in unfit]
    _show_isotropy(found, embedder, warnings)
    facts = {
        "embedder": embedder,
        "seed": seed,
        "drawn": len(samples),
        "perturbations": perturbations,
        "length": length,
        "range": last,
    }
    if out:
        outputs.document_of(found, {"input": source.name, **facts}, warnings).write(out)
        say(f"page: {out}")
    if as_json:
        families_found = [
            {"perturbation": name, **outputs.to_dict(one)} for name, one in found.items()
        ]
        print_json({**facts, "families": families_found, "warnings": warnings})


def _show_isotropy(found: Mapping[str, Isotropy], embedder: str, warnings: list[str]) -> None:
    from trustassay.workflows.isotropy_outputs import AUTHORS, figures, headline, overview, seen

    only, alone = next(iter(found.values())), len(found) == 1
    if alone:
        say(one_line(f"{next(iter(found))} and {embedder}"))
    table = figures(only) if alone else overview(found)
    show_rows(table.first.lower(), table.columns, table.rows)
    if alone:
        say(f"the cosine of {AUTHORS}")
    most = max(one.texts for one in found.values())
    say(f"{most:,} texts, {only.perturbations} perturbed versions of each")
    if alone:
        say(headline(only))
    else:
        say(one_line(seen(found, embedder)))
        say("--perturbation NAME shows one of them in full")
    for warning in warnings:
        say(one_line(f"note: {warning}"))


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
app.command("isotropy")(quietable(isotropy))
app.command("distractors")(quietable(distractors))
