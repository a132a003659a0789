"""The tables and figures of Kersting et al. 2024, *Harmonic LLMs are Trustworthy*.

1. Read the answers, or ask the models, and compute gamma (:mod:`.answers`).
2. Tables 1 to 4, 7 to 10 and 13, Figure 1 in numbers, agreement (:mod:`.gamma_tables`).
3. Footnote 3, and the ascent of Tables 11 and 12 (:mod:`.searching`).
4. Figures 1 and 2 and the Gamma map (:mod:`.drawings`).
"""

from __future__ import annotations

from trustassay.metrics.harmonicity.asking import PAPER_BOUND, find_measured_bound
from trustassay.papers.reproduce.harmonicity.answers import (
    RECORDED_PERTURBATIONS,
    GammaAnswers,
    collect_answers,
    name_embedder,
)
from trustassay.papers.reproduce.harmonicity.drawings import (
    build_gamma_map,
    draw_distributions,
    draw_ratings,
    group_answers,
)
from trustassay.papers.reproduce.harmonicity.gamma_tables import (
    NO_RATINGS,
    build_agreement,
    build_claims,
    build_examples,
    build_extremes,
    build_fits,
    build_means,
)
from trustassay.papers.reproduce.harmonicity.published import PAPER_EMBEDDER
from trustassay.papers.reproduce.harmonicity.searching import (
    build_ascent,
    build_isotropy,
    embed_questions,
)
from trustassay.papers.reproduce.scoring import RECORDED_MODEL, refuse_options
from trustassay.papers.reproduce.setup import ReproductionSetup
from trustassay.papers.reproduce.tables import ReproducedTable, Reproduction
from trustassay.text.numbers import amount

SOURCE = "Kersting, Rahman, Vedala, Wang: Harmonic LLMs are Trustworthy (2024)"


def reproduce(setup: ReproductionSetup) -> Reproduction:
    """Compute the tables and figures of the paper.

    Raises:
        InputError, BadInputError: data or ratings cannot be read, or do not fit.
        BackendError, UsageError: a model cannot be loaded, or an option is given that is not used.
    """
    refuse_options("harmonicity", setup, "references", "judge", "repeats")
    embedder = name_embedder(setup)
    bound = find_measured_bound(embedder) or PAPER_BOUND
    data = collect_answers(setup)
    examples, no_legitimate_example = build_examples(data, embedder)
    means = build_means(data, bound, embedder)
    extremes, missing_extremes = build_extremes(data)
    missing = dict(missing_extremes)
    if no_legitimate_example:
        missing["Table 4"] = no_legitimate_example
    groups = group_answers(data)
    tables: list[ReproducedTable | None] = [*examples, *means, build_claims(data)]
    tables += [build_agreement(data), *extremes]
    charts = [draw_distributions(groups)]
    if data.scale is None:
        missing["R of Tables 8 to 10 and Figure 1"] = NO_RATINGS
    else:
        tables.append(build_fits(groups))
        charts.insert(0, draw_ratings(groups))
    ascent, no_ascent = build_ascent(setup)
    tables.append(ascent)
    if no_ascent:
        missing["Tables 11 and 12"] = no_ascent
    tables.append(build_isotropy(data.samples, setup))
    vectors = embed_questions([answer.sample for answer in data.answers], setup)
    if gamma_map := build_gamma_map(data, vectors, embedder):
        tables.append(gamma_map[0])
        charts.append(gamma_map[1])
    else:
        missing["Gamma map"] = "needs three prompts"
    return Reproduction(
        "harmonicity",
        SOURCE,
        _describe_data(setup, data),
        [table for table in tables if table is not None],
        _describe_differences(setup, data, embedder, bound),
        missing | _list_missing(data),
        setup.describe_settings(),
        charts,
    )


def _describe_data(setup: ReproductionSetup, data: GammaAnswers) -> str:
    n = len(data.answers)
    models = len({answer.model for answer in data.answers})
    if setup.is_bundled and not setup.models:
        return (
            f"{amount(n, 'bundled answer')} by {RECORDED_MODEL} (4-bit) to questions of this "
            f"project, each with recorded answers to {RECORDED_PERTURBATIONS} perturbed prompts."
        )
    questions = "the bundled questions" if setup.is_bundled else str(setup.data)
    return f"{amount(n, 'answer')} by {amount(models, 'model')} to {questions}."


def _describe_differences(
    setup: ReproductionSetup, data: GammaAnswers, embedder: str, bound: float
) -> list[str]:
    differences = list(data.notes)
    if embedder != PAPER_EMBEDDER:
        differences.append(
            f"The embedder is {embedder} instead of text-embedding-ada-002 (--backend "
            f"embedder={PAPER_EMBEDDER}), so gamma has another scale. The tables keep the paper's "
            f"bound .05; the bound measured for this embedder is {bound:g}."
            if bound != PAPER_BOUND
            else (
                f"The embedder is {embedder} instead of text-embedding-ada-002, so gamma has "
                "another scale. No bound was measured for it."
            )
        )
    if setup.is_bundled and not setup.models:
        differences += [
            f"{RECORDED_PERTURBATIONS} perturbed prompts instead of 10, recorded with seed 0.",
            "A template asks for one short sentence, and an answer has at most 48 tokens; the "
            "paper sends the bare question.",
            "There is one model and one domain. R is 1 or 0: one person judged which answers are "
            "right.",
        ]
    return [
        *differences,
        "Gamma is computed from the angle to the sum of the vectors, which equals the angle to "
        "their mean. An empty reply is replaced by the reply to another perturbed prompt.",
        "Standard errors are s/√n over the answers; the paper does not say how it computes its "
        "own.",
    ]


def _list_missing(data: GammaAnswers) -> dict[str, str]:
    missing = {"Tables 5 and 6": "the paper's rubrics for raters, which contain no figures"}
    missing["Tables 14 to 16"] = (
        "rated answers that the authors chose by hand; Tables 7 and 13 list answers with their "
        "ratings"
    )
    if data.ratings is None:
        missing["Agreement of raters"] = (
            "needs ratings.csv with the ratings of two or more people for each answer"
        )
    return missing
