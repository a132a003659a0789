"""Tables 1 to 3 of TrustScore (Zheng et al. 2024): which score agrees with people, by system.

1. Read the answers of one or more systems with a label of people each.
2. Score them: measures that read gold answers, likelihoods, and Trust_BC, Trust_FC and Trust_OV, as
   far as libraries and models for them are there.
3. Correlate each score with the labels of each system (Table 1), compute Cohen's kappa of double
   annotations (Table 2), and count the answers in each cell of the scoring criterion (Table 3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trustassay.core.assessment import Share, compute_interval
from trustassay.input.records import InputError
from trustassay.metrics.trustscore.metric import TABLE
from trustassay.papers.experiments.answers import read_records
from trustassay.papers.reproduce.scoring import refuse_options
from trustassay.papers.reproduce.setup import RECORDED, ReproductionSetup
from trustassay.papers.reproduce.tables import (
    NO_FIGURE,
    ReproducedCell,
    ReproducedRow,
    ReproducedTable,
    Reproduction,
    group_by_reason,
    list_missing_intervals,
)
from trustassay.papers.reproduce.trustscore_raters import (
    NEEDED,
    build_table_2,
    find_double_ratings,
)
from trustassay.papers.reproduce.trustscore_scores import (
    KINDS,
    RECORDED_CHECKS,
    TABLE_1,
    USED_BACKENDS,
    ScoreTables,
    SystemScores,
    compute_scores,
    group_systems,
)
from trustassay.people.study.answers import ScoreColumn
from trustassay.people.study.figures import Resampling, estimate_figures
from trustassay.report.document import Chart, interval_bars
from trustassay.statistics import Floats
from trustassay.statistics.correlation import pearson, pearson_p_value, weighted_pearson
from trustassay.statistics.intervals import Estimate
from trustassay.statistics.resampling import (
    REPLICATES,
    bootstrap_test,
    cluster_weights,
    generator,
)
from trustassay.text.numbers import number, p_equation, with_interval

PAPER = "trustscore"
SOURCE = (
    "Zheng, Liu, Lapata and Pan 2024, TrustScore: Reference-Free Evaluation of LLM Response "
    "Trustworthiness"
)
ANSWER_FILES = ("qa_human_check.json", "answers.jsonl", "answers.json", "answers.csv")
MAX_DIGITS = 12
"""Digits of a difference that are no rounding errors."""


def reproduce(setup: ReproductionSetup) -> Reproduction:
    """Score the answers and build the tables.

    Raises:
        InputError, BadInputError: the data cannot be read, or has no labels.
        UsageError, BackendError: a model cannot be used, or is not one of the data's systems.
    """
    refuse_options(PAPER, setup, "references", "repeats", used_backends=USED_BACKENDS)
    path = setup.find_file(*ANSWER_FILES) or (
        RECORDED / "answers.jsonl" if setup.is_bundled else None
    )
    if path is None:
        raise InputError(
            f"{setup.data}: expected {', '.join(ANSWER_FILES)}, with question, response, model "
            "and label; optional: answers, documents, wrong_answers"
        )
    samples = read_records(path, setup.selection)
    tables = group_systems(samples, str(path))
    # Before anything is paid for, since the file may be faulty.
    ratings = find_double_ratings(setup, samples)
    compute_scores(setup, tables, samples)
    result = [_build_table_1(tables, setup.seed)]
    if ratings is not None:
        result.append(build_table_2(ratings))
    else:
        tables.missing["Table 2"] = NEEDED
    if any(system.verdicts for system in tables.systems):
        result.append(_build_table_3(tables))
    else:
        tables.missing["Table 3"] = "Trust_BC and Trust_FC of the same answers"
    return Reproduction(
        paper=PAPER,
        source=SOURCE,
        data=_describe_data(setup, tables),
        tables=result,
        differences=_list_differences(setup, tables),
        missing=_join_missing(tables.missing),
        settings=setup.describe_settings(),
        charts=_build_charts(tables, result[0]),
    )


def estimate_correlations(
    system: SystemScores, titles: Sequence[str], kind: Any, seed: int
) -> dict[str, Estimate]:
    """Estimate Pearson's r of scores with the labels of a system, with intervals over questions."""
    columns = [ScoreColumn(title, "metric", system.align_scores(title)) for title in titles]
    resampling = Resampling(generator(seed, "reproduce", PAPER, system.name), REPLICATES)
    measures = {"pearson": weighted_pearson}
    result = estimate_figures(columns, system.labels, kind, system.questions, resampling, measures)
    return {title: figures["pearson"] for title, figures in result.items()}


def _build_table_1(tables: ScoreTables, seed: int) -> ReproducedTable:
    titles = [row.title for row in TABLE_1]
    estimates = [
        estimate_correlations(system, titles, tables.kind, seed) for system in tables.systems
    ]
    rows = []
    for row in TABLE_1:
        cells = [ReproducedCell(KINDS[row.reads], {"value": KINDS[row.reads]})]
        for system, of_system in zip(tables.systems, estimates, strict=True):
            printed = "" if row.not_comparable else row.printed.get(system.published, "")
            has_scores = bool(system.scores.get(row.title))
            cells.append(_build_correlation_cell(of_system[row.title], printed, has_scores, system))
        rows.append(ReproducedRow(row.title, cells))
    columns = ["kind", *(system.name for system in tables.systems)]
    counts = ", ".join(f"{one.name} {_count_labels(one):,}" for one in tables.systems)
    notes = [
        "Each cell has Pearson's r with the labels, its 95 % interval from resampled questions, "
        f"and the p-value of r = 0 by Student's t. Labelled answers: {counts}.",
    ]
    notes += [note for system in tables.systems for note in describe_gain(system, seed)]
    notes += [*_list_reasons(columns, rows), *tables.notes]
    published = [system for system in tables.systems if system.published]
    reason = "answers and labels differ from the authors' qa_human_check.json"
    if published:
        names = ", ".join(f"{one.name} ({one.published})" for one in published)
        notes.append(f"Answers and labels of {names} are the authors' own.")
        for why in dict.fromkeys(row.not_comparable for row in TABLE_1 if row.not_comparable):
            of = ", ".join(row.title for row in TABLE_1 if row.not_comparable == why)
            notes.append(f"Not comparable: {of}: {why}.")
        notes += _explain_meteor(published)
        reason = ""
    return ReproducedTable(
        number="Table 1",
        title="Pearson's r of each score with human labels",
        first="score",
        columns=columns,
        rows=rows,
        not_comparable=reason,
        notes=notes,
        texts=columns[:1],
    )


def _list_reasons(columns: Sequence[str], rows: Sequence[ReproducedRow]) -> list[str]:
    """Return a note for each reason why correlations, or their intervals, are missing."""
    computed = Counter(
        column
        for row in rows
        for column, cell in zip(columns, row.cells, strict=True)
        if cell.values.get("n")
    )
    notes = []
    for (what, reason), places in group_by_reason(columns, rows).items():
        by_column: dict[str, list[str]] = {}
        for name, column in places:
            by_column.setdefault(column, []).append(name)
        listed = []
        for column, names in by_column.items():
            are_all = 1 < computed[column] == len(names)
            listed.append(f"{'all scores' if are_all else ', '.join(names)} ({column})")
        notes.append(f"{what} for {'; '.join(listed)}: {reason}.")
    return notes


def describe_gain(system: SystemScores, seed: int) -> list[str]:
    """Say how much higher r of Trust_OV is than that of Trust_FC, by the paired bootstrap.

    The paper compares both without an interval. Empty where one of them has no r.
    """
    both = [system.align_scores("Trust_OV"), system.align_scores("Trust_FC")]
    is_known = ~np.isnan(np.stack([*both, system.labels])).any(axis=0)
    if not is_known.any():
        return []
    labels = system.labels[is_known]
    overall, facts = (weighted_pearson(scores[is_known], labels) for scores in both)

    def subtract(weights: Floats) -> Floats:
        # Rounded, since r of scores that are linear in each other differs in the last digits.
        return np.round(overall(weights) - facts(weights), MAX_DIGITS)

    value = float(subtract(np.ones((1, len(labels))))[0])
    if np.isnan(value):
        return []
    # Both are computed from the same resamples of questions.
    _, questions = np.unique(system.questions[is_known], return_inverse=True)
    rng = generator(seed, "reproduce", PAPER, system.name, "gain")
    drawn = [subtract(weights) for weights in cluster_weights(questions, rng, REPLICATES)]
    test = bootstrap_test(value, np.concatenate(drawn), int(questions.max()) + 1)
    name = f"r(Trust_OV) \N{MINUS SIGN} r(Trust_FC), {system.name}"
    if test.interval is None or test.p is None:
        return [f"{name}: {number(value, 3)}; no interval: {test.without}."]
    return [f"{name}: {with_interval(value, test.interval)}, {p_equation(test.p)}."]


def _explain_meteor(published: Sequence[SystemScores]) -> list[str]:
    """Say what the paper's METEOR of GPT-3.5 is: r with the labels of another system's answers."""
    by_name = {system.published: system for system in published}
    gpt, llama = by_name.get("GPT-3.5"), by_name.get("LLaMA")
    if gpt is None or llama is None or not gpt.scores.get("METEOR"):
        return []
    labels = dict(zip((s.question for s in llama.samples), llama.labels, strict=True))
    other_labels = [labels.get(sample.question, np.nan) for sample in gpt.samples]
    scores = gpt.align_scores("METEOR")
    is_known = ~(np.isnan(scores) | np.isnan(other_labels))
    r = pearson(scores[is_known], np.array(other_labels)[is_known])
    if r is None:
        return []
    return [
        f"METEOR of GPT-3.5: r with the labels of LLaMA's answers is {r:.3f}, so the paper's "
        "figure may belong to them."
    ]


def _count_labels(system: SystemScores) -> int:
    return int((~np.isnan(system.labels)).sum())


def _build_correlation_cell(
    estimate: Estimate, printed: str, has_scores: bool, system: SystemScores
) -> ReproducedCell:
    if not has_scores:
        return ReproducedCell(NO_FIGURE, {"value": None, "n": 0})
    cell = ReproducedCell.of(estimate, paper=printed)
    n, value = estimate.n, estimate.value
    if value is None:
        # Not a missing score, but one that says nothing, as where no answer is an exact match.
        return replace(cell, text="undefined")
    p = pearson_p_value(value, n)
    text = f"{cell.text}, {p_equation(p)}"
    if n != _count_labels(system):
        text += f", n {n:,}"
    return replace(cell, text=text, values={**cell.values, "p": p})


def _build_table_3(tables: ScoreTables) -> ReproducedTable:
    """Build the scoring criterion with the answers of each system in each of its six cells."""
    systems = [system for system in tables.systems if system.verdicts]
    rows = []
    for (verdict, consistent), score in TABLE.items():
        name = f"{'consistent' if consistent else 'inconsistent'}, {verdict}"
        cells = [ReproducedCell(f"{score:g}", {"value": score})]
        for system in systems:
            cells += _build_criterion_cells(system, (verdict, consistent), tables.kind)
        rows.append(ReproducedRow(name, cells))
    columns = ["Trust_OV"]
    for system in systems:
        prefix = f"{system.name}: " if len(systems) > 1 else ""
        columns += [f"{prefix}answers", f"{prefix}right, %"]
    notes = [
        (
            "Trust_OV follows the paper's Table 3. The authors did not publish the answers in each "
            "cell."
        )
    ]
    if tables.kind != "binary":
        notes.append("The share of right answers needs labels of two classes.")
    return ReproducedTable(
        number="Table 3",
        title="the scoring criterion: answers in each cell, and how many are right",
        first="Trust_BC, Trust_FC",
        columns=columns,
        rows=rows,
        not_comparable="the paper prints only the criterion",
        notes=[*notes, *list_missing_intervals(columns, rows)],
    )


def _build_criterion_cells(
    system: SystemScores, cell: tuple[Any, bool], kind: str
) -> list[ReproducedCell]:
    is_in = np.array([system.verdicts.get(sample.id) == cell for sample in system.samples])
    count = ReproducedCell.of_count(int(is_in.sum()), n=len(system.verdicts))
    is_labelled = is_in & ~np.isnan(system.labels)
    n = int(is_labelled.sum())
    if not n or kind != "binary":
        return [count, ReproducedCell(NO_FIGURE, {"value": None, "n": n})]
    right = system.labels[is_labelled]
    interval = compute_interval(
        Share("right"), right, system.questions[is_labelled], (0.0, 1.0), "answers"
    )
    # Only a total needs no interval.
    assert interval is not None
    share = Estimate.of(100 * float(right.mean()), n, interval)
    return [count, ReproducedCell.of(share, digits=1)]


def _join_missing(missing: Mapping[str, str]) -> dict[str, str]:
    """Return what is missing with all rows of one reason together."""
    titles: dict[str, list[str]] = {}
    for title, reason in missing.items():
        titles.setdefault(reason, []).append(title)
    return {", ".join(names): reason for reason, names in titles.items()}


def _describe_data(setup: ReproductionSetup, tables: ScoreTables) -> str:
    counts = ", ".join(f"{one.name} {len(one.samples):,}" for one in tables.systems)
    if setup.is_bundled:
        return (
            f"{counts} answers to questions of this project, with recorded replies. One person "
            "judged which are right."
        )
    return f"Answers of {setup.data} by system: {counts}."


def _list_differences(setup: ReproductionSetup, tables: ScoreTables) -> list[str]:
    """Say what differs from the paper, of the scores that were computed."""
    by_title = {
        "Exact Match": (
            "Lexical scores follow the rules that yield the paper's figures on the authors' "
            "file. Exact Match uses normalised words and any gold answer. BLEU uses raw words "
            "and all gold answers (BLEU-4 with smoothing 4). The others use the first gold "
            "answer."
        ),
        "Trust_BC": (
            "Trust_BC: a choice with an unreadable reply is asked again, then replaced by "
            "another choice. The authors' program counts such a reply as inconsistent."
        ),
        "Trust_FC": (
            "Trust_FC: an entailer judges the passages one by one. --judge URI judges all at "
            "once, as in the paper. The query is worded differently from the paper's."
        ),
    }
    result = [
        difference
        for title, difference in by_title.items()
        if any(system.scores.get(title) for system in tables.systems)
    ]
    if setup.is_bundled:
        result += [
            "One model with 1.5 billion weights replaces FLAN-T5, LLaMA and GPT-3.5, and 60 "
            "questions replace 1,000.",
            f"For each answer, {RECORDED_CHECKS.checks} choices were recorded (the paper: up to "
            "10), with distractors from the data.",
        ]
    return result


def _build_charts(tables: ScoreTables, table_1: ReproducedTable) -> list[Chart]:
    """Draw r and its interval of each score, a chart a system."""
    charts = []
    for place, system in enumerate(tables.systems):
        estimates = []
        for row in table_1.rows:
            # The first column is the kind of score.
            values = row.cells[place + 1].values
            if values["value"] is not None:
                estimates.append((row.name, values["value"], values["interval"]))
        if estimates:
            charts.append(
                Chart(
                    f"{system.name}: r of each score with the labels",
                    "Bar: 95 % interval. Line: r.",
                    [interval_bars(estimates)],
                )
            )
    return charts
