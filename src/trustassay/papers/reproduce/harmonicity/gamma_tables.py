"""The tables of Kersting et al. 2024 from answers with gamma: 1 to 4, 7 to 10, 13, Figure 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from trustassay.metrics.harmonicity.asking import PAPER_BOUND
from trustassay.papers.reproduce.harmonicity.answers import (
    GammaAnswer,
    GammaAnswers,
    RatingsScale,
    describe_perturbations,
    tabulate_ratings,
)
from trustassay.papers.reproduce.harmonicity.published import (
    PRINTED_MEANS,
    find_printed_gamma,
)
from trustassay.papers.reproduce.tables import (
    NO_FIGURE,
    ReproducedCell,
    ReproducedRow,
    ReproducedTable,
    list_missing_intervals,
)
from trustassay.report.distributions import ScoreGroups
from trustassay.report.text import cut
from trustassay.statistics import Floats
from trustassay.statistics.agreement import count_categories, fleiss_kappa, item_interval
from trustassay.statistics.correlation import value_of, weighted_spearman
from trustassay.statistics.intervals import (
    MIN_UNITS,
    MIN_UNITS_FOR_MEANS,
    Estimate,
    Interval,
    interval_within_bounds,
    reason_too_few,
    unit_mean,
)
from trustassay.statistics.regression import Moments
from trustassay.text.numbers import amount, number, verb, with_error

NO_EXAMPLES = (
    "prompt, answers or embedder differ from the paper's tables; the paper shortens the answers "
    "of Tables 3 and 4"
)
NO_MEANS = "the paper's 100 questions of each domain, their answers and ratings were not published"
NO_RATINGS = (
    "needs ratings: ratings.csv in the folder (item, rater, rating from 0 to 5), or a label for "
    "each answer"
)
MAX_LISTED_PROMPTS = 10
"""Prompts of the data up to which each is shown with all of its answers."""
MAX_LISTED_ANSWERS = 5
"""Wrong answers that Tables 7 and 13 list."""
MAX_PROMPT_CHARACTERS = 100
MAX_OUTPUT_CHARACTERS = 400
"""Characters of an answer in a table; the JSON has all of it."""
UNCHANGED = 1e-6
"""Gamma up to here is 0: all answers have the same vector, apart from rounding."""


class MeanFigures(NamedTuple):
    """A mean with its standard error and its interval."""

    value: float | None
    n: int
    error: float | None
    interval: Interval | None
    reason: str | None
    """Why there is no interval."""


def estimate_mean(values: Sequence[float], bounds: Interval) -> MeanFigures:
    """Return the mean of numbers within bounds; the error is that of the paper, s / sqrt(n)."""
    if not values:
        return MeanFigures(None, 0, None, None, "there is no such answer")
    table: Floats = np.asarray(values, dtype=np.float64)
    moments = Moments()
    for value in values:
        moments.add(value)
    # Shares of yes and no need fewer answers than means of any numbers do.
    needed = MIN_UNITS if np.isin(table, bounds).all() else MIN_UNITS_FOR_MEANS
    reason = reason_too_few("answers", len(values), needed)
    interval = None if reason else interval_within_bounds(unit_mean(table), bounds)
    return MeanFigures(moments.mean, len(values), moments.error, interval, reason)


def _build_mean_cell(figures: MeanFigures, digits: int) -> ReproducedCell:
    """Return a cell in the paper's form, ``0.063(4)``, and the interval behind it."""
    values = figures._asdict()
    if figures.value is None:
        return ReproducedCell(NO_FIGURE, values)
    text = with_error(figures.value, figures.error, digits)
    if figures.interval:
        low, high = (number(end, digits) for end in figures.interval)
        text += f", {low} to {high}"
    return ReproducedCell(text, values)


def build_examples(data: GammaAnswers, embedder: str) -> tuple[list[ReproducedTable], str]:
    """Return the overview of Tables 1 to 4, a table of answers for each; why one is missing.

    Data of up to :data:`MAX_LISTED_PROMPTS` prompts are shown in full.
    """
    examples, missing = _choose_examples(data)
    rows = []
    tables = []
    for name, answer in examples:
        texts = [one.answer for one in answer.answers]
        printed = find_printed_gamma(
            answer.sample.question, answer.sample.response or "", texts, embedder
        )
        cell = ReproducedCell(
            f"{answer.gamma:.3f}",
            {
                "value": answer.gamma,
                "id": answer.sample.id,
                "model": answer.model,
                "rating": answer.rating,
            },
            printed.gamma if printed else "",
        )
        rows.append(ReproducedRow(f"{name}: {_shorten_prompt(answer)}", [cell]))
        tables.append(_build_answers_table(name, answer, data.scale))
    overview = ReproducedTable(
        "Tables 1 to 4",
        "gamma of the examples below",
        ["gamma"],
        rows,
        "" if all(row.cells[0].paper for row in rows) else NO_EXAMPLES,
        "Prompt",
        [
            f"N = {describe_perturbations(data.answers)} perturbed prompts for each gamma "
            f"(10 in the paper). Embedder: {embedder}.",
            *_count_unchanged(data),
        ],
    )
    return [overview, *tables], missing


def _count_unchanged(data: GammaAnswers) -> list[str]:
    """Return the sentence on answers of gamma 0, from which Table 1 takes one; none for one."""
    unchanged = [answer for answer in data.answers if answer.gamma <= UNCHANGED]
    if len(unchanged) < 2:
        return []
    scale = data.scale
    wrong = sum(scale.is_wrong(answer.rating) for answer in unchanged) if scale else 0
    rated = f", {wrong:,} of them rated wrong" if scale else ""
    return [f"{len(unchanged):,} answers have gamma 0{rated}; Table 1 shows one of them."]


def _choose_examples(data: GammaAnswers) -> tuple[list[tuple[str, GammaAnswer]], str]:
    """Return the examples with their names, and why Table 4 is missing, or nothing."""
    scale = data.scale
    # Table 1 of the paper is a right answer: of equal gammas those rated right come first.
    remaining = sorted(
        data.answers,
        key=lambda answer: (
            0.0 if answer.gamma <= UNCHANGED else answer.gamma,
            not (scale and scale.is_right(answer.rating)),
        ),
    )
    chosen: list[tuple[str, GammaAnswer]] = []

    def choose(name: str, candidates: Sequence[GammaAnswer]) -> bool:
        if not candidates:
            return False
        chosen.append((name, candidates[0]))
        remaining.remove(candidates[0])
        return True

    choose("Table 1, the smallest gamma", remaining)
    choose("Table 2, a small gamma above 0", [a for a in remaining if a.gamma > UNCHANGED])
    largest_first = remaining[::-1]
    wrong = [a for a in largest_first if scale and scale.is_wrong(a.rating)]
    # Table 3 of the paper has wrong answers; without ratings it is the largest gamma alone.
    what = "the largest gamma rated wrong" if wrong else "the largest gamma"
    choose(f"Table 3, {what}", wrong or largest_first)
    right = [a for a in remaining[::-1] if scale and scale.is_right(a.rating)]
    has_legitimate = choose("Table 4, the largest gamma rated right", right)
    if len(data.answers) <= MAX_LISTED_PROMPTS:
        chosen += [("As Tables 1 to 4", answer) for answer in remaining]
    if has_legitimate:
        return chosen, ""
    return chosen, NO_RATINGS if scale is None else "no further answer is rated right"


def _shorten_prompt(answer: GammaAnswer) -> str:
    return cut(answer.sample.question, MAX_PROMPT_CHARACTERS)


def _build_answers_table(
    name: str, answer: GammaAnswer, scale: RatingsScale | None
) -> ReproducedTable:
    """Return the answers to a prompt and to its perturbed forms, as Tables 1 to 4 have them."""
    original = answer.sample.response or ""
    rows = [
        ReproducedRow(
            f"Orig: “{_shorten_prompt(answer)}”",
            [ReproducedCell(cut(original, MAX_OUTPUT_CHARACTERS), {"answer": original})],
        )
    ]
    for place, one in enumerate(answer.answers, 1):
        # Unprintable characters of a change are spelled out as in \x1f; recorded resamples have
        # no change.
        change = f"<Orig> + “{one.change}”" if one.change else "recorded resample"
        values = {"answer": one.answer, "change": one.change}
        output = ReproducedCell(cut(one.answer, MAX_OUTPUT_CHARACTERS), values)
        rows.append(ReproducedRow(f"P{place}: {change}", [output]))
    rating = ""
    if scale and answer.rating is not None:
        rating = f", {scale.symbol} {answer.rating:g}"
    note = f"gamma {answer.gamma:.3f}, {answer.assessment.parts['angle_degrees']:.1f}°{rating}."
    return ReproducedTable(
        "", name, ["Output"], rows, first=f"Query of {answer.model}", notes=[note], texts=["Output"]
    )


def build_means(data: GammaAnswers, bound: float, embedder: str) -> list[ReproducedTable]:
    """Return Tables 8 to 10: the means by model, a table for each domain.

    bound: gamma below which answers are stable with the embedder that is used.
    """
    columns = ["⟨γ⟩", "⟨γ | γ<.05⟩", "⟨R⟩", "⟨R | γ<.05⟩", "γ<.05, %", "n"]
    if bound != PAPER_BOUND:
        columns[5:5] = [f"⟨R | γ<{bound:g}⟩", f"γ<{bound:g}, %"]
    table_numbers = {_fold(domain): table for domain, (table, _) in PRINTED_MEANS.items()}
    tables: list[ReproducedTable] = []
    for domain, answers in data.by_domain().items():
        by_model: dict[str, list[GammaAnswer]] = {}
        for answer in answers:
            by_model.setdefault(answer.model, []).append(answer)
        means = {name: float(np.mean([a.gamma for a in group])) for name, group in by_model.items()}
        rows = [
            ReproducedRow(name, _build_mean_cells(by_model[name], data.scale, bound))
            # In the paper's order: the smallest mean gamma first.
            for name in sorted(by_model, key=means.__getitem__)
        ]
        # The legend is the same for all domains: once is enough.
        notes = [] if tables else _note_means(data, bound, embedder)
        tables.append(
            ReproducedTable(
                table_numbers.get(_fold(domain), "Tables 8 to 10"),
                f"means by model, {domain}" if domain else "means by model",
                columns,
                rows,
                NO_MEANS,
                "Model",
                [*notes, *list_missing_intervals(columns, rows)],
            )
        )
    return tables


def _fold(domain: str) -> str:
    return "".join(filter(str.isalnum, domain.lower()))


def _build_mean_cells(
    answers: Sequence[GammaAnswer], scale: RatingsScale | None, bound: float
) -> list[ReproducedCell]:
    """Return the cells of one model: gamma and R, of all answers and of stable ones."""
    low = [answer for answer in answers if answer.gamma < PAPER_BOUND]
    low_gamma = estimate_mean([a.gamma for a in low], (0.0, PAPER_BOUND))
    if low and max(answer.gamma for answer in low) <= UNCHANGED:
        # A bound on such a mean would come from the limits of gamma alone.
        low_gamma = low_gamma._replace(interval=None, reason=f"all {len(low):,} are 0")
    cells = [
        _build_mean_cell(estimate_mean([a.gamma for a in answers], (0.0, 1.0)), 3),
        _build_mean_cell(low_gamma, 3),
        _build_rating_cell(answers, scale),
        _build_rating_cell(low, scale),
        _estimate_share_below(answers, PAPER_BOUND),
    ]
    if bound != PAPER_BOUND:
        cells += [
            _build_rating_cell([a for a in answers if a.gamma < bound], scale),
            _estimate_share_below(answers, bound),
        ]
    return [*cells, ReproducedCell.of_count(len(answers))]


def _build_rating_cell(
    answers: Sequence[GammaAnswer], scale: RatingsScale | None
) -> ReproducedCell:
    ratings = [answer.rating for answer in answers if answer.rating is not None]
    if scale is None:
        return ReproducedCell(NO_FIGURE, {"value": None, "reason": NO_RATINGS})
    return _build_mean_cell(estimate_mean(ratings, scale.bounds), 2)


def _estimate_share_below(answers: Sequence[GammaAnswer], bound: float) -> ReproducedCell:
    figures = estimate_mean([float(a.gamma < bound) for a in answers], (0.0, 1.0))
    assert figures.value is not None  # a model without answers has no row
    interval = figures.interval and (100 * figures.interval[0], 100 * figures.interval[1])
    return ReproducedCell.of_estimate(
        100 * figures.value, interval, digits=1, n=figures.n, reason=figures.reason
    )


def _note_means(data: GammaAnswers, bound: float, embedder: str) -> list[str]:
    notes = [
        "0.076(21) is a mean with its standard error in the last digits. The 95 % interval "
        f"follows it if there are at least {MIN_UNITS_FOR_MEANS} answers ({MIN_UNITS} for shares "
        "and labels).",
    ]
    if bound == PAPER_BOUND:
        notes.append(
            f"The paper's bound .05 is for text-embedding-ada-002; the embedder here is {embedder}."
        )
    else:
        notes.append(
            "The paper's bound .05 is for text-embedding-ada-002. The bound measured for "
            f"{embedder} is {bound:g}."
        )
    if data.scale and data.scale.is_label:
        notes.append(
            f"R is the {data.scale.name}, 1 for right and 0 for wrong, instead of the paper's "
            "ratings from 0 to 5 by four people."
        )
    elif data.scale:
        notes.append(f"R is the mean over the raters of each answer, from {data.scale.name}.")
    turned = sum(answer.assessment.parts["angle_degrees"] > 90 for answer in data.answers)
    if turned:
        notes.append(
            f"The angle exceeds 90°, where gamma falls again, for {amount(turned, 'answer')}."
        )
    return notes


def build_claims(data: GammaAnswers) -> ReproducedTable:
    """Return what section 4 says of the means, counted in the paper's tables and in the data."""
    rows = []
    for domain, (table, printed_rows) in PRINTED_MEANS.items():
        means = np.array([row.means for row in printed_rows])
        rows.append(_build_claims_row(f"{domain}, from the paper's {table}", means[:, [0, 2, 3]]))
    for domain, answers in data.by_domain().items():
        rows.append(_build_claims_row(f"{domain or 'all answers'}, here", _average_models(answers)))
    return ReproducedTable(
        "Section 4",
        "is R higher at low gamma, and does gamma rank models?",
        ["models", "R higher at γ<.05", "Spearman's rho of ⟨γ⟩ and ⟨R⟩"],
        rows,
        first="Domain",
        notes=[
            "Counted from the means alone, without their errors. The paper says that R is best "
            "at low gamma within its uncertainties, and that gamma does not rank models. A rho "
            "near −1 would mean that it does. Models with equal R are not counted."
        ],
    )


def _average_models(answers: Sequence[GammaAnswer]) -> Floats:
    """Return mean gamma, mean R, and mean R at low gamma of each rated model, shape (models, 3).

    The last is NaN for a model without answers of low gamma.
    """
    by_model: dict[str, list[tuple[float, float]]] = {}
    for answer in answers:
        if answer.rating is not None:
            by_model.setdefault(answer.model, []).append((answer.gamma, answer.rating))
    means = []
    for pairs in by_model.values():
        low = [rating for gamma, rating in pairs if gamma < PAPER_BOUND]
        means.append([*np.mean(pairs, axis=0), np.mean(low) if low else np.nan])
    return np.array(means, dtype=np.float64).reshape(len(means), 3)


def _build_claims_row(name: str, means: Floats) -> ReproducedRow:
    """Return a row from means as of :func:`_average_models`."""
    n = len(means)
    # A comparison with NaN is false, so that models without low gamma are not counted; neither
    # are those whose R is the same, as where all answers are of low gamma.
    difference = means[:, 2] - means[:, 1]
    higher = int((difference > UNCHANGED).sum())
    compared = higher + int((difference < -UNCHANGED).sum())
    rho = value_of(weighted_spearman, means[:, 0], means[:, 1]) if n > 2 else None
    share = f"{higher} of {compared}" if compared else NO_FIGURE
    reason = None if rho is not None else "needs at least three models with ratings"
    return ReproducedRow(
        name,
        [
            ReproducedCell.of_count(n),
            ReproducedCell(share, {"value": higher, "n": compared}),
            ReproducedCell.of_estimate(rho, digits=2, n=n, reason=reason),
        ],
    )


def build_agreement(data: GammaAnswers) -> ReproducedTable | None:
    """Return the agreement of the raters by domain; ``None`` without a file of ratings."""
    if data.ratings is None:
        return None
    columns, rows = ["Fleiss' kappa", "raters", "answers rated by all"], []
    for domain, answers in data.by_domain().items():
        raters, table = tabulate_ratings(data.ratings, answers)
        rows.append(_build_agreement_row(domain or "all answers", raters, table))
    note = "The paper reports about 0.6 for each domain, with four raters."
    return ReproducedTable(
        "Section 4",
        "agreement of the raters",
        columns,
        rows,
        NO_MEANS,
        "Domain",
        [note, *list_missing_intervals(columns, rows)],
    )


def _compute_kappa(table: Floats, times: Floats) -> float | None:
    return fleiss_kappa(count_categories(table), times)


def _build_agreement_row(name: str, raters: Sequence[str], table: Floats) -> ReproducedRow:
    # Fleiss' kappa takes the same number of ratings of each answer.
    complete = table[:, ~np.isnan(table).any(axis=0)] if raters else table
    n = complete.shape[1]
    counts = [ReproducedCell.of_count(len(raters)), ReproducedCell.of_count(n)]
    reason: str | None = None
    if len(raters) < 2:
        reason = f"{amount(len(raters), 'rater')}: agreement needs at least two for an answer"
    elif not n:
        reason = "no answer is rated by all raters"
    if reason:
        values = {"value": None, "raters": len(raters), "reason": reason}
        return ReproducedRow(name, [ReproducedCell(NO_FIGURE, values), *counts])
    interval = item_interval(_compute_kappa, complete)
    kappa = Estimate.of(_compute_kappa(complete, np.ones(n)), n, interval)
    return ReproducedRow(name, [ReproducedCell.of(kappa, digits=2, raters=len(raters)), *counts])


def build_fits(groups: ScoreGroups) -> ReproducedTable:
    """Return Figure 1 in numbers: R = m gamma + b, by domain and model and over all of them."""
    rows = []
    for column in groups.columns():
        for row in column.rows:
            line = row.group.line
            n = row.group.ratings.n
            if line is None:
                why = reason_too_few("ratings", n, 2) or "all ratings have the same gamma"
                cells = [ReproducedCell(NO_FIGURE, {"value": None, "reason": why})] * 2
            else:
                few = None if line.slope_interval else reason_too_few("ratings", n, 3)
                cells = [
                    ReproducedCell.of_estimate(value, interval, digits=2, n=n, reason=few)
                    for value, interval in (
                        (line.slope, line.slope_interval),
                        (line.intercept, line.intercept_interval),
                    )
                ]
            name = ", ".join(filter(None, (column.title, row.title)))
            rows.append(ReproducedRow(name, [*cells, ReproducedCell.of_count(n)]))
    columns = ["m", "b", "n"]
    return ReproducedTable(
        "Figure 1",
        "linear fits of R by gamma",
        columns,
        rows,
        NO_MEANS,
        "Answers",
        [
            "Least squares on the ratings of single answers, with Student's intervals. In the "
            "paper, m is negative and b is above 4.",
            *list_missing_intervals(columns, rows),
        ],
    )


def build_extremes(data: GammaAnswers) -> tuple[list[ReproducedTable], Mapping[str, str]]:
    """Return Tables 7 and 13, the wrong answers of largest and smallest gamma; what is missing."""
    scale = data.scale
    wrong = [answer for answer in data.answers if scale and scale.is_wrong(answer.rating)]
    if scale is None or not wrong:
        reason = NO_RATINGS if scale is None else "no answer is rated wrong"
        return [], {"Tables 7 and 13": reason}

    low = sum(answer.gamma < PAPER_BOUND for answer in wrong)

    def build(name: str, title: str, key: Callable[[GammaAnswer], float]) -> ReproducedTable:
        rows = [
            ReproducedRow(
                cut(answer.sample.question, MAX_PROMPT_CHARACTERS),
                [
                    ReproducedCell(
                        cut(answer.sample.response or "", MAX_OUTPUT_CHARACTERS),
                        {"value": answer.sample.response},
                    ),
                    ReproducedCell(f"{answer.gamma:.3f}", {"value": answer.gamma}),
                    ReproducedCell(f"{answer.rating:g}", {"value": answer.rating}),
                    ReproducedCell(answer.model, {"value": answer.model}),
                ],
            )
            for answer in sorted(wrong, key=key)[:MAX_LISTED_ANSWERS]
        ]
        columns = ["Response", "γ", scale.symbol, "Model"]
        note = (
            f"Shown: {len(rows)} of {amount(len(wrong), 'answer')} rated wrong. Of all answers "
            f"rated wrong, {low:,} {verb(low, 'has', 'have')} γ < .05."
        )
        return ReproducedTable(
            name, title, columns, rows, "", "Prompt", [note], ["Response", "Model"]
        )

    return [
        build("Table 7", "wrong answers with the largest gamma", lambda answer: -answer.gamma),
        build("Table 13", "wrong answers with the smallest gamma", lambda answer: answer.gamma),
    ], {}
