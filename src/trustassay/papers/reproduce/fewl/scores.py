"""FEWL's tables of right and wrong answers: 1 to 3 and 8 to 12.

1. Measure the answers once for each group of references.
2. Compute the rows of every table from these numbers.
3. Draw the references anew: a figure is the mean of these repeats, ± their standard deviation.
   No model is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.core.sample import Sample
from trustassay.metrics.fewl import Fewl, maths
from trustassay.papers.experiments.answers import LabelledAnswer
from trustassay.papers.experiments.fewl import (
    LENGTH_RULE,
    QuestionComparisons,
    compare_best_answers,
    pair_by_kind,
)
from trustassay.papers.experiments.measuring import (
    FewlArrays,
    FewlSetup,
    FewlVariant,
    MeasuredAnswers,
    MeasuredExpertise,
    measure,
    measure_expertise,
    resample_references,
    scores_of,
    variants_of,
)
from trustassay.papers.experiments.results import build_share_cells, note_left_out
from trustassay.papers.reproduce.fewl.inputs import (
    NO_PAIRS,
    PAPER_ANSWERS,
    PAPER_PAIRS,
    ReferenceGroup,
)
from trustassay.papers.reproduce.setup import ReproductionSetup
from trustassay.papers.reproduce.tables import (
    NO_FIGURE,
    ReproducedCell,
    ReproducedRow,
    ReproducedTable,
)
from trustassay.statistics import Floats
from trustassay.statistics.intervals import mean_interval
from trustassay.statistics.resampling import generator
from trustassay.text.numbers import amount

REPEATS = 10
"""Repeats behind a ±; the paper does not say how many it has."""
PAIRED_WEIGHTS = ("ours", "single-best")
"""Weights that need wrong and corrected answers of a question."""
RANDOM_NEIGHBOURS = 25
"""Random questions behind the penalty of Table 8."""
NOT_COMPARABLE_REASON = "the authors published no reference answers"
TABLES_WITH_BASELINES = ("Table 1", "Table 3", "Table 10")
"""The first table of each file also has chance and the rule of length."""
COLUMN_NAMES = {
    "right > mid-halu": "non-hallu > half-hallu",
    "right > half-hallu": "non-hallu > half-hallu",
    "right > halu": "non-hallu > hallu",
    "right > hallu": "non-hallu > hallu",
    "right > hallucinated": "non-hallu > hallu",
}
"""The paper's headings for the kinds of answers of its data sets."""


class PaperRow(NamedTuple):
    """A row of the paper, and the variant that it is."""

    name: str
    variant: FewlVariant


def _row(
    name: str, weights: str, penalty: str = "none", divergence: maths.Divergence = "tv"
) -> PaperRow:
    return PaperRow(name, FewlVariant(weights, penalty, "eq1", divergence))  # type: ignore[arg-type]


def _ablation(penalty: str) -> list[PaperRow]:
    return [
        _row("FEWL (Uniform)", "uniform", penalty),
        _row("FEWL (Ours)", "ours", penalty),
        _row("FEWL (Ideal)", "ideal", penalty),
    ]


def _main_rows(divergence: maths.Divergence = "tv") -> list[PaperRow]:
    return [
        _row("single + no penalty", "single", divergence=divergence),
        _row("single + penalty", "single", "nearest", divergence),
        _row("multi + no penalty", "uniform", divergence=divergence),
        _row("FEWL (Ours)", "ours", "nearest", divergence),
    ]


class PairTable(NamedTuple):
    """A table of the paper that one kind of file gives."""

    number: str
    title: str
    rows: Sequence[PaperRow]


_SHARE = "non-hallucinated answers that score higher, in %"
CHALE_TABLES = (
    PairTable("Table 1", _SHARE, _main_rows()),
    PairTable("Table 2", f"{_SHARE}, by weights", _ablation("nearest")),
    PairTable(
        "Table 8",
        f"{_SHARE}; penalty from random questions",
        [
            _row("single + no penalty", "single"),
            _row("single + penalty", "single", "random"),
            _row("multi + no penalty", "uniform"),
            *_ablation("random"),
        ],
    ),
    PairTable(
        "Table 11",
        f"{_SHARE}, with the best reference alone",
        [
            _row("single + no penalty", "single"),
            _row("single-best + no penalty", "single-best"),
            _row("multi + no penalty", "uniform"),
            _row("single + penalty", "single", "nearest"),
            _row("FEWL (Ours)", "ours", "nearest"),
        ],
    ),
    PairTable("Table 12 (JS)", f"{_SHARE}; Jensen-Shannon divergence", _main_rows("js")),
    PairTable("Table 12 (KL)", f"{_SHARE}; KL divergence", _main_rows("kl")),
)
HALUEVAL_TABLES = (PairTable("Table 10", _SHARE, _main_rows()),)
BEST_TABLES = (
    PairTable("Table 3", "questions whose best answer scores highest", _main_rows()),
    PairTable(
        "Table 9", "questions whose best answer scores highest, by weights", _ablation("nearest")
    ),
)


@dataclass(frozen=True)
class GroupScores:
    """The numbers of one group of references, and the comparisons that they decide."""

    name: str
    numbers: FewlArrays
    repeats: Sequence[FewlArrays]
    """The numbers with references drawn anew."""
    has_pairs: NDArray[np.bool_]
    """Which answers have the weights `ours`, shape (n,)."""
    no_pairs: str
    """Why none has them; empty if some have."""
    columns: Mapping[str, Sequence[QuestionComparisons]]
    chances: Mapping[str, float]
    """By column, the share in percent that is won by chance."""
    lengths: Floats
    """Of each answer, negative: the shorter answer wins."""
    notes: Sequence[str]
    filled: Sequence[Sample]
    """The samples with the references and pairs that models wrote."""


def build_fewl_setup(setup: ReproductionSetup) -> FewlSetup:
    """Return the options of an experiment on answers whose references are in the data."""
    return FewlSetup(
        embedder=setup.backends.get("embedder"),
        similarities=(str(setup.backends.get("similarity", "cosine")),),
        options=setup.options,
    )


def build_group_setup(group: ReferenceGroup, setup: ReproductionSetup) -> FewlSetup:
    """Return the options of the paper for a group of references."""
    return replace(
        build_fewl_setup(setup),
        references=[] if group.model is None else [group.model],
        # Algorithm 1, step 2.1: the reference itself writes the wrong answers.
        generator=setup.backends.get("generator", group.model),
        metric=Fewl(pairs=PAPER_PAIRS, answers=1 if group.model is None else PAPER_ANSWERS),
        random_neighbours=RANDOM_NEIGHBOURS,
    )


async def measure_groups(
    answers: Sequence[LabelledAnswer],
    groups: Sequence[ReferenceGroup],
    setup: ReproductionSetup,
    folder: Path,
    *,
    best: bool,
) -> list[GroupScores]:
    """Measure the answers of a file for each group of references.

    Args:
        best: compare the best answer with all others; else right answers with wrong ones by kind.

    Raises:
        InputError: no question has a right and a wrong answer with scores.
        As :func:`~trustassay.papers.experiments.measuring.measure`.
    """
    result = []
    for number, group in enumerate(groups, 1):
        selected = [replace(one, sample=group.select(one.sample)) for one in answers]
        selected = [one for one in selected if one.sample.references or group.model is not None]
        samples = [one.sample for one in selected]
        fewl_setup = build_group_setup(group, setup)
        with setup.selection.report_positions(samples):
            # Without pairs, so that rows that need none count questions that have none.
            plain_setup = replace(fewl_setup, generator=None, weighs_by_pairs=False)
            measured = await measure(samples, plain_setup, folder / f"{number}-references")
            expertise = await measure_expertise(measured, fewl_setup, folder / f"{number}-pairs")
        result.append(_collect_scores(group.name, selected, measured, expertise, setup, best=best))
    return result


def _collect_scores(
    name: str,
    answers: Sequence[LabelledAnswer],
    measured: MeasuredAnswers,
    expertise: MeasuredExpertise,
    setup: ReproductionSetup,
    *,
    best: bool,
) -> GroupScores:
    numbers, has_pairs = expertise.numbers, expertise.has_pairs
    answer_of = {answer.sample.id: answer for answer in answers}
    scored = [answer_of[key] for key in numbers.ids]
    if best:
        units, chances = compare_best_answers(scored)
        columns = {"best answer highest": units}
        chance_of_column = {"best answer highest": 100 * float(np.mean(chances))}
    else:
        columns = pair_by_kind(scored)
        chance_of_column = dict.fromkeys(columns, 50.0)
    questions = np.array([answer.question for answer in scored], dtype=np.int64)
    rng = generator(setup.seed, "reproduce", "fewl", name)
    # One answer of each question cannot be drawn anew.
    most = int(numbers.present.sum(axis=1).max())
    count = 0 if most < 2 else setup.repeats or REPEATS
    repeats = [resample_references(numbers, questions, rng) for _ in range(count)]
    notes = [
        f"{name}: {amount(len(set(questions.tolist())), 'question')} with up to "
        f"{amount(most, 'reference answer')} each."
    ]
    if most < 2:
        notes[0] += " Rows for several references are empty."
    notes += note_left_out(measured.left_out, "answer")
    no_pairs = ""
    if not has_pairs.any():
        no_pairs = next(iter(expertise.errors.values()), NO_PAIRS)
    elif not has_pairs.all():
        count = len(set(questions[has_pairs].tolist()))
        notes.append(
            f"{name}: FEWL (Ours) and single-best use the {amount(count, 'question')} that have "
            "wrong and corrected answers; other rows use all questions (reproduction.json has "
            "both)."
        )
        notes += note_left_out(expertise.errors, "answer", "without them")
    lengths = np.array([-float(len(answer.sample.response or "")) for answer in scored])
    return GroupScores(
        name,
        numbers,
        repeats,
        has_pairs,
        no_pairs,
        columns,
        chance_of_column,
        lengths,
        notes,
        expertise.samples,
    )


def build_tables(
    table: PairTable, groups: Sequence[GroupScores], notes: Sequence[str], *, count: bool = False
) -> list[ReproducedTable]:
    """Return a table of the paper, without the groups of references that give none of its rows.

    Where a group of references has several columns, it has a table of its own.
    """
    parts = [groups]
    if any(len(group.columns) > 1 for group in groups):
        parts = [[group] for group in groups]
    tables = [_build_table(table, part, notes, count=count) for part in parts]
    return [one for one in tables if any(_has_figures(row) for row in one.rows)]


def _has_figures(row: ReproducedRow) -> bool:
    return any(cell.values["value"] is not None for cell in row.cells)


def _build_table(
    table: PairTable, groups: Sequence[GroupScores], notes: Sequence[str], *, count: bool
) -> ReproducedTable:
    columns = [
        (group, column, units) for group in groups for column, units in group.columns.items()
    ]
    rows = [
        ReproducedRow(
            row.name,
            [_build_cell(row.variant, group, units, count=count) for group, _, units in columns],
        )
        for row in table.rows
    ]
    if table.number in TABLES_WITH_BASELINES:
        lengths = [
            _share_cell(_count_outcomes(units, group.lengths), [], count=count)
            for group, _, units in columns
        ]
        chances = [group.chances[column] for group, column, _ in columns]
        cells = [ReproducedCell(f"{chance:.1f} %", {"value": chance}) for chance in chances]
        rows.append(ReproducedRow(f"{LENGTH_RULE} (not in the paper)", lengths))
        rows.append(ReproducedRow("chance (not in the paper)", cells))
    title, headings = table.title, [group.name for group, *_ in columns]
    if len(groups) == 1:
        title = f"{title}; references: {groups[0].name}"
        headings = [COLUMN_NAMES.get(column, column) for _, column, _ in columns]
    all_notes = [*notes, *(note for group in groups for note in group.notes)]
    return ReproducedTable(
        table.number, title, headings, rows, NOT_COMPARABLE_REASON, "answers", all_notes
    )


def _build_cell(
    variant: FewlVariant,
    group: GroupScores,
    units: Sequence[QuestionComparisons],
    *,
    count: bool,
) -> ReproducedCell:
    """Return the figure of a variant with its ± and its interval."""
    several = variant.weights not in ("single", "single-best")
    if variant not in variants_of(group.numbers):
        reason = "no labels" if variant.weights == "ideal" else group.no_pairs
        return ReproducedCell(NO_FIGURE, {"value": None, "reason": reason})
    paired = [unit for unit in units if _has_pairs(unit, group.has_pairs)]
    if variant.weights in PAIRED_WEIGHTS:
        units = paired
    if not units:
        return ReproducedCell(NO_FIGURE, {"value": None, "reason": NO_PAIRS})
    # With one answer a row of several would repeat the row of one.
    if several and not group.repeats:
        return ReproducedCell(NO_FIGURE, {"value": None, "reason": "one reference answer"})
    cell = _score_units(variant, group, units, count=count)
    if 0 < len(paired) < len(units):
        same = _score_units(variant, group, paired, count=count)
        cell = replace(cell, values={**cell.values, "questions_with_pairs": same.values})
    return cell


def _score_units(
    variant: FewlVariant, group: GroupScores, units: Sequence[QuestionComparisons], *, count: bool
) -> ReproducedCell:
    outcomes = _count_outcomes(units, scores_of(variant, group.numbers))
    repeats = [_count_outcomes(units, scores_of(variant, numbers)) for numbers in group.repeats]
    return _share_cell(outcomes, repeats, count=count)


def _has_pairs(unit: QuestionComparisons, has_pairs: NDArray[np.bool_]) -> bool:
    return bool(has_pairs[unit.first].all() and has_pairs[unit.second].all())


def _count_outcomes(units: Sequence[QuestionComparisons], scores: Floats) -> Floats:
    """Return what each unit wins and ties, shape (2, n)."""
    return np.array([unit.outcome(scores) for unit in units]).T


def _share_cell(outcomes: Floats, repeats: Sequence[Floats], *, count: bool) -> ReproducedCell:
    """Return the mean share, or number, that is won over repeats, ± its standard deviation.

    The interval is that of the same mean, over questions. With fewer than two repeats the figure is
    that of the references as they were recorded, which ``as_recorded`` has otherwise.

    Args:
        outcomes: with the references as recorded, shape (2, n). repeats: the same for each repeat.
    """
    recorded = build_share_cells(outcomes[:1], outcomes[1:], count=count)[0]
    if len(repeats) < 2:
        return ReproducedCell(recorded.text, {**recorded.values, "sd": None})
    averaged = np.mean(repeats, axis=0)
    cell = build_share_cells(averaged[:1], averaged[1:], count=count)[0]
    n, value = outcomes.shape[1], cell.values["value"]
    interval = cell.values["interval"]
    # Means need more questions for an interval than yes and no, as large ones may have gone unseen.
    # In each repeat these are yes and no: their variance is an upper bound.
    if interval is None and recorded.values["interval"] is not None:
        share = value / 100
        low, high = mean_interval(share, share * (1 - share) / n, n)
        interval = (100 * low, 100 * high)
    sd = float(np.std([100 * won.mean() for won, _ in repeats], ddof=1))
    values = {
        **cell.values,
        "interval": interval,
        "mean_of_repeats": value,
        "sd": sd,
        "repeats": len(repeats),
        "as_recorded": dict(recorded.values),
    }
    interval_text = f"{interval[0]:.1f} to {interval[1]:.1f}" if interval else ""
    text = f"{value:.1f} ± {sd:.2f}" + (f" ({interval_text})" if interval_text else "")
    if count:
        values["count_sd"] = sd * n / 100
        parts = [f"{value:.1f} %", *filter(None, [interval_text])]
        text = f"{values['count']:.1f} ± {values['count_sd']:.2f} of {n} ({', '.join(parts)})"
    if ties := values["ties"]:
        text += f", ties {ties:.1f}"
    return ReproducedCell(text, values)
