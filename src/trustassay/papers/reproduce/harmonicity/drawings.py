"""Figures 1 and 2 of Kersting et al. 2024, and the Gamma map of their outlook, as drawings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trustassay.metrics.harmonicity.asking import PAPER_BOUND
from trustassay.papers.harmonicity.gamma_map import (
    MIN_PROMPTS,
    draw_gamma_map,
    project_prompts,
)
from trustassay.papers.reproduce.harmonicity.answers import GammaAnswer, GammaAnswers
from trustassay.papers.reproduce.tables import ReproducedCell, ReproducedRow, ReproducedTable
from trustassay.report.charts import (
    beyond,
    line_text,
    rating_svg,
    ratings_of,
    ridge_svg,
    ridges_of,
)
from trustassay.report.distributions import ScoreGroups
from trustassay.report.document import Bar, Bars, Chart, DrawingBlock, Panels
from trustassay.text.numbers import number, score_text, with_error


def group_answers(data: GammaAnswers) -> ScoreGroups:
    """Return gamma and ratings by model and domain; stable is below the paper's .05."""
    groups = ScoreGroups(lower_is_better=True, stable_below=PAPER_BOUND)
    for answer in data.answers:
        groups.add(answer.model, answer.domain, answer.gamma, answer.rating)
    return groups


def draw_ratings(groups: ScoreGroups) -> Chart:
    """Draw Figure 1: the mean rating in bins of gamma, with the least-squares line."""
    axes = ratings_of(groups)
    charts = []
    for column in groups.columns():
        for row in column.rows:
            if not row.group.ratings.n:
                continue
            line = row.group.line
            title = ", ".join(filter(None, (column.title, row.title)))
            note = line_text(line) if line else "no line: too few ratings, or all at the same gamma"
            drawing = DrawingBlock(rating_svg(groups, row.group, axes, "gamma"))
            charts.append(Chart(title, note, [drawing]))
    note = (
        "Points: mean rating in bins of gamma, at the mean gamma of the bin, with standard "
        "errors. Line: least-squares fit to the single ratings, R = m γ + b, with 95 % "
        "intervals. Dashed: the paper's bound .05."
    )
    return Chart("Figure 1: ratings by gamma", note, [Panels(charts)])


def draw_distributions(groups: ScoreGroups) -> Chart:
    """Draw Figure 2: the distribution of gamma by model and domain."""
    ridges = ridges_of(groups)
    axis = [f"{groups.value(place):g}" for place in (0, ridges.axis / 2, ridges.axis)]
    charts = []
    for column in groups.columns():
        bars = [
            Bar(
                row.title,
                with_error(row.group.scores.mean, row.group.scores.error),
                ridge_svg(groups, row.group, ridges),
                row.group.n,
                after=f"{past:,} beyond →" if (past := beyond(ridges, row.group)) else "",
            )
            for row in column.rows
        ]
        charts.append(Chart(column.title or "all answers", "", [Bars(bars, axis)]))
    note = (
        "Across: gamma. Height: share of the answers; the tallest bar is "
        f"{number(100 * ridges.peak)} %. Solid line: mean. Dashed line: the paper's bound .05."
    )
    return Chart("Figure 2: distribution of gamma", note, [Panels(charts)])


@dataclass(frozen=True)
class MappedPrompt:
    """A prompt of the Gamma map."""

    answer: GammaAnswer
    """The first answer to it."""
    gamma: float
    """The mean over all models that answered."""


def _collect_prompts(data: GammaAnswers) -> list[MappedPrompt]:
    """Return the different prompts of the data, in their order."""
    by_question: dict[str, list[GammaAnswer]] = {}
    for answer in data.answers:
        by_question.setdefault(answer.sample.question, []).append(answer)
    return [
        MappedPrompt(answers[0], float(np.mean([answer.gamma for answer in answers])))
        for answers in by_question.values()
    ]


def build_gamma_map(
    data: GammaAnswers, vectors: Mapping[str, ArrayLike], embedder: str
) -> tuple[ReproducedTable, Chart] | None:
    """Return the Gamma map with its table; ``None`` for fewer than three prompts.

    Args:
        vectors: by question.
    """
    prompts = _collect_prompts(data)
    if len(prompts) < MIN_PROMPTS:
        return None
    plane = project_prompts(
        np.stack([vectors[prompt.answer.sample.question] for prompt in prompts])
    )
    # All gammas may be 0: every dot is then empty.
    top = max(prompt.gamma for prompt in prompts) or 1.0
    charts, rows = [], []
    # One map for each domain, all with the same axes and colours.
    for domain in dict.fromkeys(prompt.answer.domain for prompt in prompts):
        numbers = [n for n, prompt in enumerate(prompts) if prompt.answer.domain == domain]
        of_domain, places = [prompts[n] for n in numbers], plane.places[numbers]
        gammas = [prompt.gamma for prompt in of_domain]
        texts = [prompt.answer.sample.question for prompt in of_domain]
        drawing = draw_gamma_map(places, gammas, texts, plane.places, top)
        name = domain or "all prompts"
        charts.append(Chart(name, "", [drawing]))
        points = [
            {"id": prompt.answer.sample.id, "x": x, "y": y, "gamma": prompt.gamma}
            for prompt, (x, y) in zip(of_domain, places.tolist(), strict=True)
        ]
        count = ReproducedCell.of_count(len(of_domain), points=points)
        rows.append(
            ReproducedRow(name, [count, ReproducedCell.of_estimate(float(np.mean(gammas)))])
        )
    across, upwards = (100 * share for share in plane.shares)
    note = (
        "Each dot is a prompt, placed by the two largest principal components of its vector by "
        f"{embedder} ({across:.0f} % and {upwards:.0f} % of the variance). A fuller dot means a "
        "larger gamma, averaged over the models: an empty dot is 0, a full one "
        f"{score_text(top)}. Point at a dot to read the prompt."
    )
    table = ReproducedTable(
        "Outlook",
        "the Gamma map",
        ["prompts", "⟨γ⟩"],
        rows,
        "the paper proposes the map but prints none",
        "Domain",
        ["The map is on the page; reproduction.json has the position and gamma of each prompt."],
    )
    return table, Chart("The Gamma map", note, [Panels(charts)])
