"""FEWL's comparisons of right and wrong answers, by all variants of the score.

Wei et al. 2024, Tables 1, 2, 3, 8, 9, 10, 11 and 12. Length and chance are shown for comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trustassay.core.sample import Sample
from trustassay.input.records import InputError
from trustassay.papers.experiments.answers import (
    LabelledAnswer,
    RecordSelection,
    collect_answers,
    read_records,
)
from trustassay.papers.experiments.measuring import (
    FewlSetup,
    MeasuredAnswers,
    measure,
    scores_of,
    variants_of,
)
from trustassay.papers.experiments.results import (
    Cell,
    ExperimentResult,
    ExperimentRow,
    build_share_cells,
)

Floats = NDArray[np.float64]
LENGTH_RULE = "length: the shorter"
INTERVALS_NOTE = "95 % intervals over questions. A tie is no win."


@dataclass(frozen=True)
class QuestionComparisons:
    """The comparisons of one question's answers, which are named by their indices."""

    first: NDArray[np.int64]
    """Answers that should score higher, shape (n,)."""
    second: NDArray[np.int64]
    """The answers that they are compared with, shape (n,)."""
    together: bool = False
    """Whether all comparisons must hold; else the share that holds counts."""
    number: int = -1
    """The number of the question if a column has several units of it; else -1."""

    @classmethod
    def pairs(cls, right: Sequence[int], wrong: Sequence[int], number: int = -1) -> Self:
        """Compare every right answer with every wrong one."""
        # All pairs at once: outcomes are then one subtraction for each rule.
        grid = np.array([(i, j) for i in right for j in wrong], dtype=np.int64)
        return cls(grid[:, 0], grid[:, 1], number=number)

    @classmethod
    def highest(cls, best: int, rivals: Sequence[int]) -> Self:
        """Compare one answer with all its rivals; it must beat every one."""
        return cls(np.full(len(rivals), best), np.array(rivals), together=True)

    def outcome(self, scores: Floats) -> tuple[float, float]:
        """Return the shares of comparisons that are won and that are tied, from 0 to 1."""
        differences = scores[self.first] - scores[self.second]
        # The smallest difference decides whether the best answer beats all rivals.
        if self.together:
            smallest = differences.min()
            return float(smallest > 0), float(smallest == 0)
        return float((differences > 0).mean()), float((differences == 0).mean())


@dataclass(frozen=True)
class RuleScores:
    """The scores of n answers under one rule."""

    name: str
    scores: Floats
    """Shape (n,)."""
    about: Mapping[str, Any]
    """What the rule is, in JSON."""
    tables: tuple[int, ...] = ()
    """The paper's tables that have the rule."""


def score_all_variants(
    measured: MeasuredAnswers, samples: Sequence[Sample], tables: Sequence[int]
) -> list[RuleScores]:
    """Return the rule of length, and every variant with every similarity.

    Args:
        tables: the paper's tables that the experiment reproduces.
    """
    # A trivial rule to compare with: the shorter answer wins.
    lengths = np.array([-float(len(sample.response or "")) for sample in samples])
    rules = [RuleScores(LENGTH_RULE, lengths, {"rule": "length"})]
    # The name of the similarity is only needed if there are several.
    has_several = len(measured.numbers) > 1
    for similarity, numbers in measured.numbers.items():
        # Answers may be fewer than the measured ones, and in another order.
        index_of_id = {name: index for index, name in enumerate(numbers.ids)}
        indices = [index_of_id[sample.id] for sample in samples]
        for variant in variants_of(numbers):
            name = f"{similarity}: {variant.name}" if has_several else variant.name
            about = {"similarity": similarity, **variant._asdict()}
            tables_here = tuple(table for table in variant.tables if table in tables)
            scores = scores_of(variant, numbers)[indices]
            rules.append(RuleScores(name, scores, about, tables_here))
    return rules


def build_outcome_rows(
    measured: MeasuredAnswers,
    samples: Sequence[Sample],
    columns: Mapping[str, Sequence[QuestionComparisons]],
    tables: Sequence[int],
    chance: Sequence[Cell],
    *,
    count: bool = False,
) -> list[ExperimentRow]:
    """Return a row for chance and for each rule: the share of each column's units that it wins."""
    rules = score_all_variants(measured, samples, tables)
    cells: list[list[Cell]] = []
    for units in columns.values():
        # Shape (rules, units, 2): won and tied.
        outcomes = np.array([[unit.outcome(rule.scores) for unit in units] for rule in rules])
        numbers = np.array([unit.number for unit in units], dtype=np.int64)
        cells.append(build_share_cells(outcomes[..., 0], outcomes[..., 1], numbers, count=count))
    rows = [ExperimentRow("chance", chance, {"rule": "chance"})]
    for index, rule in enumerate(rules):
        rows.append(
            ExperimentRow(rule.name, [column[index] for column in cells], rule.about, rule.tables)
        )
    return rows


def build_result(
    experiment: str,
    title: str,
    columns: Sequence[str],
    rows: Sequence[ExperimentRow],
    measured: MeasuredAnswers,
    setup: FewlSetup,
    notes: Sequence[str],
) -> ExperimentResult:
    """Return the result with the notes and settings that all experiments of FEWL share."""
    first = next(iter(measured.numbers.values()))
    # The list can be long if each sample names its own references.
    names = ", ".join(first.names[:10]) + (" ..." if len(first.names) > 10 else "")
    all_notes = [
        *notes,
        f"References: {names}. `single` is {setup.single or 'the first that answered'}.",
        *measured.missing,
    ]
    # One reason as an example; the JSON has all of them.
    if measured.left_out:
        reason = next(iter(measured.left_out.values()))
        all_notes.append(f"{len(measured.left_out):,} answers are left out; the first: {reason}")
    settings = {
        "similarities": list(setup.similarities),
        "single": setup.single,
        "seed": setup.options.seed,
        **{
            name: getattr(setup.metric, name)
            for name in ("temperature", "neighbours", "max_similarity", "pairs", "answers")
        },
    }
    return ExperimentResult(
        experiment, title, columns, rows, all_notes, measured.left_out, settings
    )


PAIRS_TABLES = (1, 2, 8, 10, 11, 12)
BEST_TABLES = (3, 9)
MAX_KIND_COLUMNS = 6
"""Maximum number of kinds of wrong answers with a column each; more share one column."""


async def compare_pairs(
    source: Path, out: Path, setup: FewlSetup, records: RecordSelection
) -> ExperimentResult:
    """Compare the right answers to a question with its wrong ones, kind by kind.

    A question counts once in a column; with several pairs, by the share that the right answer wins.
    For a question without responses the best answer is compared with the first wrong one.

    Raises:
        InputError, BadInputError: the input cannot be read, or has no right and wrong answers.
        As :func:`~trustassay.papers.experiments.measuring.measure`.
    """
    answers = collect_answers(read_records(source, records), records, every=False)
    samples = [answer.sample for answer in answers]
    # Faults are reported by their position in the input, not in the experiment's own samples.
    with records.report_positions(samples):
        measured = await measure(samples, setup, out)
    scored = _keep_scored(answers, measured)
    # In the order in which they occur in the input.
    kinds: Sequence[str | None] = list(
        dict.fromkeys(answer.kind for answer in scored if not answer.right)
    )
    if len(kinds) > MAX_KIND_COLUMNS:
        kinds = [None]
    columns = {
        f"right > {kind or 'wrong'}": _build_units(scored, kind)
        for kind in kinds
        if _build_units(scored, kind)
    }
    if not columns:
        raise InputError("no question is left with a right and a wrong answer that have scores")
    # A coin would win half of the comparisons.
    chance = [Cell("50.0", {"value": 50.0}) for _ in columns]
    rows = build_outcome_rows(
        measured, [answer.sample for answer in scored], columns, PAIRS_TABLES, chance
    )
    title = "Right answers that score strictly higher than wrong ones, in %"
    return build_result("fewl-pairs", title, list(columns), rows, measured, setup, [INTERVALS_NOTE])


async def count_best_answers(
    source: Path, out: Path, setup: FewlSetup, records: RecordSelection
) -> ExperimentResult:
    """Count the questions whose best answer scores strictly higher than all others.

    Raises:
        As :func:`compare_pairs`.
    """
    answers = collect_answers(read_records(source, records), records, every=True)
    samples = [answer.sample for answer in answers]
    with records.report_positions(samples):
        measured = await measure(samples, setup, out)
    scored = _keep_scored(answers, measured)
    units, chances = [], []
    for indices in _group_by_question(scored):
        best_indices = [index for index in indices if scored[index].best]
        rivals = [index for index in indices if not scored[index].best]
        if best_indices and rivals:
            # Questions with a best answer but no other one cannot be lost, so they are left out.
            units.append(QuestionComparisons.highest(best_indices[0], rivals))
            # By chance each of the answers is the highest equally often.
            chances.append(1 / len(indices))
    if not units:
        raise InputError("no question is left whose best answer and another one have scores")
    share = 100 * float(np.mean(chances))
    chance = Cell(
        f"{sum(chances):.1f} of {len(units)} ({share:.1f} %)",
        {"value": share, "count": sum(chances), "n": len(units)},
    )
    columns = {"best answer highest": units}
    rows = build_outcome_rows(
        measured,
        [answer.sample for answer in scored],
        columns,
        BEST_TABLES,
        [chance],
        count=True,
    )
    title = "Questions whose best answer scores strictly highest"
    return build_result("fewl-best", title, list(columns), rows, measured, setup, [INTERVALS_NOTE])


def _keep_scored(
    answers: Sequence[LabelledAnswer], measured: MeasuredAnswers
) -> list[LabelledAnswer]:
    """Return the answers that were measured with every similarity."""
    return [answer for answer in answers if answer.sample.id not in measured.left_out]


def _group_by_question(answers: Sequence[LabelledAnswer]) -> list[list[int]]:
    indices_of_question: dict[int, list[int]] = {}
    for index, answer in enumerate(answers):
        indices_of_question.setdefault(answer.question, []).append(index)
    return list(indices_of_question.values())


def _build_units(answers: Sequence[LabelledAnswer], kind: str | None) -> list[QuestionComparisons]:
    """Return the questions with right answers and wrong ones of a kind (``None``: any kind)."""
    units = []
    for indices in _group_by_question(answers):
        right = [index for index in indices if answers[index].right]
        wrong = [
            index
            for index in indices
            if not answers[index].right and kind in (None, answers[index].kind)
        ]
        if right and wrong:
            units.append(QuestionComparisons.pairs(right, wrong))
    return units
