"""``trustassay papers attack`` and ``isotropy``: stability of prompts, and what embedders see."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trustassay.cli import common
from trustassay.cli.options import Only, with_options
from trustassay.errors import UsageError
from trustassay.input.places import name_of
from trustassay.report.terminal import complain, one_line, print_json, say, show_rows
from trustassay.runs.options import (
    COST,
    INPUT,
    MODELS,
    OUTPUT,
    Fields,
    Flag,
    MaxTokens,
    Seed,
    SpendingOptions,
)
from trustassay.text.numbers import amount

if TYPE_CHECKING:
    from trustassay.papers.harmonicity.ascent import AscentPoint
    from trustassay.papers.harmonicity.isotropy import Isotropy

MAX_ANSWER_CHARS = 60
"""Characters of an answer that a line shows."""


Length = Annotated[
    int,
    Flag(
        "--length",
        "Maximum number of characters that a perturbation adds or mistypes, or of words that it "
        "changes.",
        least=1,
        most=1_000_000_000,
        rare=True,
    ),
]
LastCode = Annotated[
    int,
    Flag("--range", "Highest code point for the perturbation codes.", least=0, rare=True),
]


@with_options
def attack(  # noqa: PLR0913 - one argument an option
    prompt: Annotated[str, Flag("PROMPT", "The prompt that the search starts from.")],
    *,
    model: Annotated[
        str, Flag("--model", "The model to test, a URI as for score.", metavar="URI", group=MODELS)
    ],
    out: Annotated[
        Path, Flag("--out", "Folder for the report page, the trace and all calls.", group=OUTPUT)
    ],
    embedder: common.Embedder,
    steps: Annotated[int, Flag("--steps", "Number of rounds.", least=1)] = 5,
    candidates: Annotated[
        int, Flag("--candidates", "Number of candidates per round.", least=1, rare=True)
    ] = 8,
    perturbations: Annotated[
        int, Flag("--perturbations", "Number of perturbed prompts for each gamma.", least=1)
    ] = 10,
    perturbation: Annotated[
        str,
        Flag(
            "--perturbation",
            "How prompts are perturbed: unicode, codes, control, whitespace, typo, synonym.",
            rare=True,
        ),
    ] = "unicode",
    candidate: Annotated[
        str,
        Flag(
            "--candidate",
            "How candidates are made: unicode, codes, words, typo, synonym, ... The value ball "
            "reuses the perturbed prompts of the current prompt's gamma.",
            rare=True,
        ),
    ] = "unicode",
    step_rule: Annotated[
        str,
        Flag(
            "--step-rule",
            "uphill moves only to a better candidate; extremum always moves to a round's best one.",
            metavar="uphill|extremum",
            rare=True,
        ),
    ] = "uphill",
    length: Length = 3,
    last: LastCode = 31,
    descend: Annotated[
        bool, Flag("--descend", "Search for prompts with more stable answers instead.", rare=True)
    ] = False,
    calls: Annotated[
        int | None,
        Flag(
            "--calls",
            "Maximum number of requests to the model. Failed tries count; replies from the cache "
            "do not.",
            group=COST,
            least=2,
            rare=True,
        ),
    ] = None,
    max_tokens: MaxTokens = 512,
    seed: Seed,
    spending: Annotated[SpendingOptions, Only("budget")],
    as_json: common.Json,
) -> None:
    """Search for prompts that make a model's answer unstable: stochastic ascent in gamma.

    Use it to test your own systems: see docs/methods/harmonicity.md. Run the same command again to
    continue a stopped search. The defaults differ from the paper's. The third command below runs
    the search of the authors' program, with the characters of the paper's Table 12. Each of its
    steps needs 110 answers, 10 of which are already known.

    \b
    trustassay papers attack "Who sailed around Africa first?" \\
        --model openai:gpt-4o-mini --out attacks/one
    trustassay papers attack "Answer politely: ..." --model hf:MODEL --descend \\
        --out attacks/calm
    trustassay papers attack "Name the 9 quarks." --model hf:MODEL \\
        --out attacks/paper \\
        --step-rule extremum --candidate ball --candidates 10 \\
        --perturbation codes --range 4095
    trustassay papers attack "Who built it?" --model hf:MODEL --candidate words \\
        --length 1 --out attacks/w
    """
    from trustassay.calls.client import CallOptions
    from trustassay.errors import AssessmentError
    from trustassay.papers.harmonicity import attack as attacking
    from trustassay.papers.harmonicity.ascent import AscentOptions
    from trustassay.papers.session import SessionOptions

    # 1. The options of the search, and the models.
    ascent = AscentOptions(
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
        # 2. Search; each point is printed as soon as it is known.
        result = attacking.attack(
            prompt, backends, out, ascent, options, lambda point: say(format_point(prompt, point))
        )
    except AssessmentError as error:
        complain(f"trustassay: {error}")
        raise typer.Exit(1) from None
    # 3. What was found, and where it is stored.
    common.show_endpoints(result.session.endpoints)
    say(f"gamma {result.start.gamma:.3f} -> {result.end.gamma:.3f}, calls: {result.calls}")
    if result.best.prompt != result.end.prompt:
        say(f"best prompt found: gamma {result.best.gamma:.3f} at step {result.best.step}")
    if result.session.cut:
        say(result.warnings[-1])
    say(f"trace: {result.trace}")
    say(f"page:  {result.page}")
    if as_json:
        print_json(result.to_dict())
    # Last, so that it is not overlooked.
    if failed := sum(point.error is not None for point in result.points):
        complain(
            f"failed: {failed} of {amount(len(result.points), 'prompt')}; the errors are in "
            f"{out / 'trace.jsonl'}"
        )


def format_point(prompt: str, point: AscentPoint) -> str:
    """Return a point as one line: the appended text and the beginning of the answer."""
    appended = point.prompt.removeprefix(prompt) or "(unchanged)"
    mark = "*" if point.kept else " "
    # A failed candidate is shown with its error.
    if point.gamma is None:
        return f"{mark} step {point.step}  failed: {point.error}  {appended!r}"
    answer = " ".join(point.answer.split())
    answer = answer if len(answer) <= MAX_ANSWER_CHARS else answer[:MAX_ANSWER_CHARS] + "..."
    return f"{mark} step {point.step}  gamma {point.gamma:.3f}  {appended!r}  {answer}"


@with_options
def isotropy(  # noqa: PLR0913 - one argument an option
    *,
    source: common.Source,
    perturbation: Annotated[
        list[str],
        Flag(
            "--perturbation",
            "control (as in the paper), codes (as in the authors' program, after a space), "
            "unicode, whitespace, typo, synonym, python:MODULE:FUNCTION. May be given more than "
            "once. Default: all except functions.",
            metavar="NAME",
        ),
    ],
    embedder: common.Embedder,
    perturbations: Annotated[
        int, Flag("--perturbations", "Number of perturbed versions per question.", least=1)
    ] = 10,
    length: Length = 3,
    last: LastCode = 31,
    draw: Annotated[
        int, Flag("--draw", "Number of questions to draw at random.", group=INPUT, least=1)
    ] = 100,
    seed: Seed,
    fields: Fields,
    out: Annotated[Path | None, Flag("--out", "Write a page with charts.", group=OUTPUT)],
    as_json: common.Json,
) -> None:
    """Check that a perturbation moves the vectors of questions equally in all directions.

    Harmonic robustness assumes this. By default all perturbations are tested, with one row each
    that says whether the embedder sees the change. A single perturbation is shown in full. The
    last command below is the paper's check.

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
    from trustassay.papers.harmonicity import isotropy_outputs as outputs
    from trustassay.papers.harmonicity.perturbed import (
        draw_samples,
        measure_isotropy,
        perturb_samples,
        resolve_families,
    )

    # 1. The texts and their perturbed versions.
    for name in ("paraphrase", "embeddings"):
        if name in perturbation:
            raise UsageError(f"{name.rstrip('s')}s need a model; choose another --perturbation")
    chosen_families = resolve_families(dict.fromkeys(perturbation or FAMILIES), length, last)
    samples = draw_samples(source, draw, seed=seed, fields=fields)
    versions_by_family = {
        family.name: perturb_samples(samples, family, perturbations, seed)
        for family in chosen_families
    }
    # A family that fits no question is a warning among several, and an error alone.
    unfit = (
        [name for name, family_versions in versions_by_family.items() if not family_versions.texts]
        if len(versions_by_family) > 1
        else []
    )
    versions_by_family = {
        name: family_versions
        for name, family_versions in versions_by_family.items()
        if name not in unfit
    }
    # 2. Vectors and figures.
    figures = measure_isotropy(
        [
            (family_versions.texts, family_versions.perturbed)
            for family_versions in versions_by_family.values()
        ],
        Backends.of(embed=resolve.embedder(embedder)),
        seed=seed,
        options=CallOptions(),
    )
    results = dict(zip(versions_by_family, figures, strict=True))
    # 3. Warnings, the table, and the page.
    warnings = outputs.collect_warnings(results, versions_by_family, embedder)
    warnings += [f"{name}: cannot be applied to any of the questions" for name in unfit]
    _show_isotropy(results, embedder, warnings)
    facts = {
        "embedder": embedder,
        "seed": seed,
        "drawn": len(samples),
        "perturbations": perturbations,
        "length": length,
        "range": last,
    }
    if out:
        outputs.build_document(results, {"input": name_of(source), **facts}, warnings).write(out)
        say(f"page: {out}")
    if as_json:
        families_found = [
            {"perturbation": name, **outputs.to_dict(result)} for name, result in results.items()
        ]
        print_json({**facts, "families": families_found, "warnings": warnings})


def _show_isotropy(results: Mapping[str, Isotropy], embedder: str, warnings: list[str]) -> None:
    from trustassay.papers.harmonicity.isotropy_outputs import (
        AUTHORS,
        build_figures_table,
        build_headline,
        build_overview,
        describe_sight,
    )

    # One family is shown in full, several as a row each.
    only, is_single = next(iter(results.values())), len(results) == 1
    if is_single:
        say(one_line(f"{next(iter(results))} and {embedder}"))
    table = build_figures_table(only) if is_single else build_overview(results)
    show_rows(table.first.lower(), table.columns, table.rows)
    if is_single:
        say(f"cosine: {AUTHORS}")
    # Families may apply to different numbers of questions.
    text_count = max(result.texts for result in results.values())
    say(
        f"{amount(text_count, 'text')}, each with {amount(only.perturbations, 'perturbed version')}"
    )
    if is_single:
        say(build_headline(only))
    else:
        say(one_line(describe_sight(results, embedder)))
        say("To see one perturbation in full, give --perturbation NAME.")
    for warning in warnings:
        say(one_line(f"note: {warning}"))
