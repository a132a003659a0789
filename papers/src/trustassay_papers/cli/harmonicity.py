"""``trustassay papers attack`` and ``isotropy``: a prompt's stability, an embedder's sight."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trustassay.cli import common
from trustassay.cli.options import Only, with_options
from trustassay.data.places import name_of
from trustassay.errors import UsageError
from trustassay.options import Argument, Fields, Flag, Limit, MaxTokens, Seed, SkipBad, Spending
from trustassay.show.terminal import complain, one_line, print_json, say, show_rows

if TYPE_CHECKING:
    from trustassay_papers.harmonicity.ascent import Point
    from trustassay_papers.harmonicity.isotropy import Isotropy

ANSWER_SHOWN = 60


Length = Annotated[
    int,
    Flag(
        "Maximum number of characters that a perturbation adds or mistypes, or of words that it "
        "changes.",
        least=1,
        most=1_000_000_000,
    ),
]
LastCode = Annotated[
    int,
    Flag("The highest code point that the perturbation codes draws.", name="--range", least=0),
]


@with_options
def attack(  # noqa: PLR0913 - one argument an option
    prompt: Annotated[str, Argument("The prompt that the search starts from.", metavar="PROMPT")],
    *,
    model: Annotated[str, Flag("The model to test, a URI as for score.", metavar="URI")],
    out: Annotated[Path, Flag("Folder for the page, the trace and all calls.")],
    embedder: common.Embedder,
    steps: Annotated[int, Flag("Number of rounds.", least=1)] = 5,
    candidates: Annotated[int, Flag("Candidates per round.", least=1)] = 8,
    perturbations: Annotated[int, Flag("Perturbed prompts per gamma.", least=1)] = 10,
    perturbation: Annotated[
        str, Flag("How they are made: unicode, codes, control, whitespace, typo, synonym.")
    ] = "unicode",
    candidate: Annotated[
        str,
        Flag(
            "How candidates are made: unicode, codes, words, typo, synonym, ...; ball takes the "
            "perturbed prompts of the current prompt's gamma."
        ),
    ] = "unicode",
    step_rule: Annotated[
        str,
        Flag(
            "uphill moves only to a better candidate, extremum always to a round's best.",
            metavar="uphill|extremum",
        ),
    ] = "uphill",
    length: Length = 3,
    last: LastCode = 31,
    descend: Annotated[
        bool, Flag("Search for prompts with stable answers.", name="--descend")
    ] = False,
    calls: Annotated[
        int | None,
        Flag(
            "Maximum number of requests to the model. Failed tries count; replies from the cache "
            "do not.",
            least=2,
        ),
    ] = None,
    max_tokens: MaxTokens = 512,
    seed: Seed,
    spending: Spending,
    as_json: Annotated[
        bool, Flag("Print the points as JSON on standard output.", name="--json")
    ] = False,
) -> None:
    """Search for prompts that make a model's answer unstable: stochastic ascent in gamma.

    Use it to test your own systems: see docs/methods/harmonicity.md. Run the same command again to
    continue a stopped search. The defaults are not the paper's. The third command runs the paper's
    search as its authors' program does, with the characters of the paper's Table 12; each step
    needs 110 answers, 10 of which are already known.

    \b
    trustassay papers attack "Who sailed around Africa first?" \\
        --model openai:gpt-4o-mini --out attacks/one
    trustassay papers attack "Answer politely: ..." --model hf:MODEL --descend \\
        --out attacks/calm
    trustassay papers attack "Name the 9 quarks." --model hf:MODEL --out attacks/paper \\
        --step-rule extremum --candidate ball --candidates 10 \\
        --perturbation codes --range 4095
    trustassay papers attack "Who built it?" --model hf:MODEL --candidate words \\
        --length 1 --out attacks/w
    """
    from trustassay.calls.client import CallOptions
    from trustassay.errors import AssessmentError
    from trustassay_papers.harmonicity import attack as attacking
    from trustassay_papers.harmonicity.ascent import Ascent
    from trustassay_papers.session import SessionOptions

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


def line(prompt: str, point: Point) -> str:
    """Return a point as one line: what was appended, and the start of the answer."""
    added = point.prompt.removeprefix(prompt) or "(unchanged)"
    mark = "*" if point.kept else " "
    if point.gamma is None:
        return f"{mark} step {point.step}  failed: {point.error}  {added!r}"
    answer = " ".join(point.answer.split())
    answer = answer if len(answer) <= ANSWER_SHOWN else answer[:ANSWER_SHOWN] + "..."
    return f"{mark} step {point.step}  gamma {point.gamma:.3f}  {added!r}  {answer}"


@with_options
def isotropy(  # noqa: PLR0913 - one argument an option
    *,
    source: common.Source,
    perturbation: Annotated[
        list[str],
        Flag(
            "control (the paper's), codes (with a space before, the authors' program), unicode, "
            "whitespace, typo, synonym, python:MODULE:FUNCTION. May be given more than once. "
            "Default: all but functions.",
            metavar="NAME",
        ),
    ],
    embedder: common.Embedder,
    perturbations: Annotated[int, Flag("Perturbed versions per question.", least=1)] = 10,
    length: Length = 3,
    last: LastCode = 31,
    draw: Annotated[int, Flag("Questions to draw at random.", least=1)] = 100,
    limit: Limit,
    seed: Seed,
    fields: Fields,
    skip_bad: SkipBad,
    spending: Annotated[Spending, Only("cache")],
    out: Annotated[Path | None, Flag("Write a page with charts.")],
    as_json: common.Json,
) -> None:
    """Check that a perturbation moves the vectors of questions equally in all directions.

    Harmonic robustness assumes it. By default all perturbations are tried, with one row each that
    says how far the embedder sees the change; a single one is shown in full. The last command is
    the paper's check.

    \b
    trustassay papers isotropy questions.jsonl
    trustassay papers isotropy questions.jsonl --perturbation typo --length 1 \\
        --draw 300 --out even.html
    trustassay papers isotropy questions.jsonl --perturbation codes --range 4095 \\
        --embedder hf:MODEL
    trustassay papers isotropy TruthfulQA.csv --field question=Question \\
        --perturbation control \\
        --perturbations 10 --draw 100 --embedder openai:text-embedding-ada-002
    """
    from trustassay.backends import resolve
    from trustassay.calls.backends import Backends
    from trustassay.calls.client import CallOptions
    from trustassay.metrics.harmonicity.perturbations import FAMILIES
    from trustassay_papers.harmonicity import isotropy_outputs as outputs
    from trustassay_papers.harmonicity.perturbed import (
        drawn_samples,
        families,
        measure_isotropy,
        versions,
    )

    for name in ("paraphrase", "embeddings"):
        if name in perturbation:
            raise UsageError(f"{name.rstrip('s')}s need a model; choose another --perturbation")
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
        outputs.document_of(found, {"input": name_of(source), **facts}, warnings).write(out)
        say(f"page: {out}")
    if as_json:
        families_found = [
            {"perturbation": name, **outputs.to_dict(one)} for name, one in found.items()
        ]
        print_json({**facts, "families": families_found, "warnings": warnings})


def _show_isotropy(found: Mapping[str, Isotropy], embedder: str, warnings: list[str]) -> None:
    from trustassay_papers.harmonicity.isotropy_outputs import (
        AUTHORS,
        figures,
        headline,
        overview,
        seen,
    )

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
