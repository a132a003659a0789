"""What needs prompts alone, or a model that is asked anew: footnote 3, Tables 11 and 12."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from numpy.typing import ArrayLike

from trustassay.backends import resolve
from trustassay.calls.backends import Backends
from trustassay.core.event_loop import run_anywhere
from trustassay.core.sample import Sample
from trustassay.errors import AssessmentError, BackendError
from trustassay.metrics.harmonicity.perturbations import find_family, show_change
from trustassay.papers.harmonicity.ascent import AscentOptions, AscentPoint
from trustassay.papers.harmonicity.attack import attack, open_backends
from trustassay.papers.harmonicity.isotropy import Isotropy, IsotropyEstimate
from trustassay.papers.harmonicity.isotropy_outputs import describe_blindness
from trustassay.papers.harmonicity.perturbed import (
    embed_in_batches,
    measure_isotropy,
    perturb_samples,
)
from trustassay.papers.reproduce.harmonicity.answers import (
    find_embedder,
    name_embedder,
)
from trustassay.papers.reproduce.harmonicity.gamma_tables import MAX_OUTPUT_CHARACTERS
from trustassay.papers.reproduce.harmonicity.published import (
    PAPER_EMBEDDER,
    PRINTED_CONE,
    PRINTED_COSINE,
    TRUTHFULQA_DIGEST,
    digest_questions,
)
from trustassay.papers.reproduce.scoring import MAX_RECORDED_TOKENS, open_recorded_model
from trustassay.papers.reproduce.setup import ReproductionSetup
from trustassay.papers.reproduce.tables import ReproducedCell, ReproducedRow, ReproducedTable
from trustassay.papers.session import SessionOptions
from trustassay.report.text import cut
from trustassay.statistics.resampling import generator
from trustassay.text.numbers import with_error

ISOTROPY_PROMPTS = 100
"""Questions that footnote 3 draws, each perturbed ten times."""
ISOTROPY_PERTURBATIONS = 10
ISOTROPY_FAMILIES = ("control", "typo")
"""The paper's, and one that embedders see whose tokenizer drops control characters."""
ISOTROPY_ROWS = (
    "cone of the mean of ten, °",
    "largest cone, °",
    "one perturbed prompt, °",
    "cosine, mean with its error",
    "cosine to the mean of ten",
)
RECORDED_ASCENT = AscentOptions(
    steps=2,
    candidates=5,
    perturbations=5,
    max_tokens=MAX_RECORDED_TOKENS,
    perturbation="codes",
    candidate="ball",
    step_rule="extremum",
    range=0xFFF,
)
"""The search of Tables 11 and 12 as the authors' program does it, with the codes of Table 12 and
two steps as in Table 11, but 5 candidates and perturbed prompts in place of 10."""
ASCENT_COMMAND = (
    "the search needs over 200 answers for one prompt, so run it separately: `trustassay papers "
    "attack PROMPT --model URI --out FOLDER --step-rule extremum --candidate ball --candidates "
    "10 --perturbation codes --range 4095`"
)
"""How to compute Tables 11 and 12 with a model."""
RECORDED_ASCENT_PROMPT = "Tell me about the four moons of the planet Venus."
RECORDED_ASCENT_REPLIES = "ascent-replies.jsonl.gz"


def embed_questions(samples: Sequence[Sample], setup: ReproductionSetup) -> dict[str, ArrayLike]:
    """Return vectors by question."""
    embedder = Backends.of(embed=resolve.embedder(find_embedder(setup)))
    texts = list(dict.fromkeys(sample.question for sample in samples))
    return {**run_anywhere(lambda: embed_in_batches(texts, embedder, setup.options.calls))}


def build_isotropy(samples: Sequence[Sample], setup: ReproductionSetup) -> ReproducedTable:
    """Return footnote 3: how far perturbations move the vectors of questions."""
    name = name_embedder(setup)
    is_papers = digest_questions(samples) == TRUTHFULQA_DIGEST and name == PAPER_EMBEDDER
    drawn = list({sample.question: sample for sample in samples}.values())
    if len(drawn) > ISOTROPY_PROMPTS:
        rng = generator(setup.seed, "isotropy", "texts")
        places = sorted(rng.choice(len(drawn), ISOTROPY_PROMPTS, replace=False).tolist())
        drawn = [drawn[place] for place in places]
    versions = {
        family: perturb_samples(drawn, find_family(family), ISOTROPY_PERTURBATIONS, setup.seed)
        for family in ISOTROPY_FAMILIES
    }
    # A family that fits no question, as typos in "2+2?", has no column.
    usable = {family: texts for family, texts in versions.items() if texts.texts}
    figures = measure_isotropy(
        [(family_versions.texts, family_versions.perturbed) for family_versions in usable.values()],
        Backends.of(embed=resolve.embedder(find_embedder(setup))),
        seed=setup.seed,
        options=setup.options.calls,
    )
    results = dict(zip(usable, figures, strict=True))
    notes = [
        f"{len(drawn)} questions, each perturbed {ISOTROPY_PERTURBATIONS} times; vectors by {name}."
    ]
    for family, result in results.items():
        if warning := describe_blindness(result, family, name):
            notes.append(f"{family}: {warning}")
    columns = [
        _build_isotropy_cells(result, is_papers=is_papers and family == "control")
        for family, result in results.items()
    ]
    rows = [
        ReproducedRow(title, list(cells))
        for title, *cells in zip(ISOTROPY_ROWS, *columns, strict=True)
    ]
    return ReproducedTable(
        "Footnote 3",
        "isotropy of the perturbed prompts, by perturbation",
        list(results),
        rows,
        "" if is_papers else "the paper uses 100 questions of TruthfulQA and ada-002",
        notes=notes,
    )


def _build_isotropy_cells(result: Isotropy, *, is_papers: bool) -> list[ReproducedCell]:
    """Return the cells of a perturbation, one for each of :data:`ISOTROPY_ROWS`."""
    cosines = result.cosines

    def build(estimate: IsotropyEstimate, digits: int, printed: str = "") -> ReproducedCell:
        paper = printed if is_papers else ""
        return ReproducedCell.of_estimate(
            estimate.value, estimate.interval, digits=digits, paper=paper, n=result.texts
        )

    cosine = build(cosines.mean, 4, PRINTED_COSINE)
    return [
        build(result.cone, 2, PRINTED_CONE),
        build(IsotropyEstimate(result.largest_cone, None), 2),
        build(result.angle, 2),
        replace(cosine, text=with_error(cosines.mean.value, cosines.error, 4)),
        build(cosines.of_mean, 4),
    ]


def build_ascent(setup: ReproductionSetup) -> tuple[ReproducedTable | None, str]:
    """Return Tables 11 and 12 from the recorded search of the bundled set, or why they are missing.

    A model of the user is not searched: that takes over 200 calls, which nobody asked for.
    """
    if setup.models or not setup.is_bundled:
        return None, ASCENT_COMMAND
    model = open_recorded_model(RECORDED_ASCENT_REPLIES)
    options, start = RECORDED_ASCENT, RECORDED_ASCENT_PROMPT
    # Recorded replies must not get into the cache that other runs share.
    calls = replace(setup.options.calls, cache=None)
    out = setup.folder / "ascent"
    session = SessionOptions(calls, None)
    backends = open_backends(model, find_embedder(setup), out, session)
    try:
        result = attack(start, backends, out, options, session)
    except (AssessmentError, BackendError) as error:
        return None, f"the search could not start: {error}"
    path = [point for point in result.points if point.kept]
    asked = ", ".join(backends.names().values())
    table = ReproducedTable(
        "Tables 11 and 12",
        "stochastic ascent in gamma",
        ["Response", "γ"],
        [_build_step_row(start, point) for point in path],
        "prompt and model differ from the paper's",
        "Prompt",
        [
            f"Models: {asked}. Each of {options.steps} steps moves to the best of "
            f"{options.candidates} prompts that end in random characters up to U+0FFF, even if "
            "its gamma is lower (the rule of the authors' program). ascent/ascent.html shows all "
            "prompts.",
            f"The largest gamma found is {result.best.gamma:.3f}, at step {result.best.step}.",
        ],
        ["Response"],
    )
    return table, ""


def _build_step_row(start: str, point: AscentPoint) -> ReproducedRow:
    prompt = "“" + start + "”" if not point.step else f"+ “{show_change(start, point.prompt)}”"
    return ReproducedRow(
        f"{point.step}: {prompt}",
        [
            ReproducedCell(
                cut(point.answer, MAX_OUTPUT_CHARACTERS),
                {"prompt": point.prompt, "answer": point.answer},
            ),
            ReproducedCell(
                "–" if point.gamma is None else f"{point.gamma:.3f}", {"value": point.gamma}
            ),
        ],
    )
