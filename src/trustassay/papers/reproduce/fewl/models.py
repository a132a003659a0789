"""FEWL's tables and figures that rank models, ask them, or look at the references.

Tables 4 and 5 (rankings), 6 and 7 (answers after chosen examples, a model tuned on chosen answers),
Figures 2 to 4. Each is an experiment of :mod:`trustassay.papers.experiments`; here its rows become
the paper's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from trustassay.core.event_loop import run_anywhere
from trustassay.core.labels import read_single_label
from trustassay.core.sample import Sample
from trustassay.papers.experiments.answers import RecordSelection, read_records
from trustassay.papers.experiments.choices import (
    FiveChoiceSetup,
    read_published_outputs,
    run_five_choice,
)
from trustassay.papers.experiments.experts import measure_experts
from trustassay.papers.experiments.fewl import order_samples, rank_models_by_score
from trustassay.papers.experiments.neighbours import judge_neighbours
from trustassay.papers.experiments.results import Cell, ExperimentResult, ExperimentRow
from trustassay.papers.reproduce.fewl.inputs import NO_PAIRS, PaperInput, select_weighable
from trustassay.papers.reproduce.fewl.scores import (
    GroupScores,
    build_fewl_setup,
    build_group_setup,
)
from trustassay.papers.reproduce.setup import ReproductionSetup
from trustassay.papers.reproduce.tables import (
    NO_FIGURE,
    ReproducedCell,
    ReproducedRow,
    ReproducedTable,
)
from trustassay.runs.needs import name_models
from trustassay.statistics.intervals import MIN_UNITS, binomial_interval
from trustassay.text.numbers import amount


class PublishedRate(NamedTuple):
    """A true rate of Table 4."""

    text: str
    """As the paper prints it."""
    right: int
    """The number of right answers that it stands for."""
    n: int = 737
    """The number of questions."""


PUBLISHED_RATES: Mapping[str, PublishedRate] = {
    "41dc58c4806c8e32": PublishedRate(".1954", 144),
}
"""By digest of a model's published outputs, the true non-hallucination rate of Table 4. Of its five
models only text-davinci-003 has outputs that were published (by haltt4llm)."""
RANK_REASON = (
    "the answers of Flan-T5 and Flan-Alpaca, and those of the references, were not published"
)
SAMPLE_REASON = "the answers of Flan-T5, GPT-3.5 and GPT-4 were not published"


def _copy_cell(cell: Cell) -> ReproducedCell:
    """Return the cell of an experiment as one of a reproduction."""
    return ReproducedCell(cell.text or NO_FIGURE, dict(cell.values))


def _find_fewl_row(rows: Sequence[ExperimentRow]) -> ExperimentRow:
    """Return the row of equation 1 with the weights `ours`, or else with equal ones."""
    wanted = {"penalty": "nearest", "form": "eq1", "divergence": "tv"}
    matches = {
        row.about["weights"]: row for row in rows if wanted.items() <= dict(row.about).items()
    }
    return matches.get("ours") or matches["uniform"]


# Table 4


def digest_outputs(path: Path, questions: Sequence[Sample]) -> str:
    """Return a digest of a model's published outputs, to recognise them whatever the file's name.

    Raises:
        InputError: the file holds no results, or those of other questions.
    """
    outputs = sorted(read_published_outputs(path, questions).items())
    content = repr([(questions[index].question, *output) for index, output in outputs])
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def build_ranking(
    source: Path, results: Mapping[str, Path], setup: ReproductionSetup, folder: Path
) -> ReproducedTable | str:
    """Return Table 4, or what it needs.

    ``source`` holds questions with choices, or answers of models with `label` and `references`.

    Raises:
        InputError, BadInputError: the input cannot be read.
    """
    samples = read_records(source, setup.selection)
    selection, notes = setup.selection, []
    if "choices" in samples[0].metadata:
        if not (setup.models or results):
            return (
                "needs --model [NAME=]URI, or files test_results_*.txt of models next to the "
                "questions"
            )
        published = {
            name: rate
            for name, path in results.items()
            if (rate := PUBLISHED_RATES.get(digest_outputs(path, samples)))
        }
        rates = _ask_choices(source, published, results, setup, folder / "asked")
        notes += [
            f"{name}: {rates[name].values['count']} of {rates[name].values['n']} are right in the "
            f"file, {rate.right} of {rate.n} in the paper."
            for name, rate in published.items()
        ]
        source = folder / "asked" / "answers.jsonl"
        selection = RecordSelection(skip_bad=selection.skip_bad)
    else:
        notes.append(
            "Answers are free text instead of choices. The labels in the file say which are right."
        )
        labels_by_model = _collect_labels(samples)
        if unused := len(samples) - sum(map(len, labels_by_model.values())):
            notes.append(
                f"Left out of the true rates: {amount(unused, 'answer')} without a model or a "
                "readable label."
            )
        rates = {
            name: _build_rate({"count": sum(labels), "n": len(labels)}, "")
            for name, labels in labels_by_model.items()
        }
    scores: Mapping[str, ReproducedCell] = {}
    if len(rates) > 1:
        scores, rank_notes = _rank(source, selection, setup, folder / "ranked")
        counts = sorted({rate.values["n"] for rate in rates.values()})
        notes.append(
            f"True rates: over {' to '.join(f'{n:,}' for n in counts[:1] + counts[1:][-1:])} "
            f"questions. FEWL, order and tau: over {rank_notes[0]}"
        )
        notes += rank_notes[1:]
    else:
        notes.append("There is only one model, so nothing can be ranked.")
    rows = [
        ReproducedRow(name, [rate, scores.get(name, ReproducedCell(NO_FIGURE))])
        for name, rate in sorted(rates.items(), key=lambda item: -item[1].values["value"])
    ]
    title, columns = "models by true non-hallucination rate and by FEWL", ("true rate", "FEWL")
    return ReproducedTable("Table 4", title, columns, rows, RANK_REASON, "model", notes)


def _ask_choices(
    source: Path,
    published: Mapping[str, PublishedRate],
    results: Mapping[str, Path],
    setup: ReproductionSetup,
    folder: Path,
) -> dict[str, ReproducedCell]:
    """Return the true rate of each model by haltt4llm's grader; the folder has the answers."""
    asking = FiveChoiceSetup(setup.models, results, setup.references, options=setup.options)
    answers = run_anywhere(lambda: run_five_choice(source, folder, asking, setup.selection))
    printed = {name: rate.text for name, rate in published.items()}
    right = answers.columns.index("right (published)")
    references = name_models(list(setup.references), "references", many=True)
    return {
        row.name: _build_rate(row.cells[right].values, printed.get(row.name, ""))
        for row in answers.rows
        if "model" in row.about and row.name not in references
    }


def _rank(
    source: Path, selection: RecordSelection, setup: ReproductionSetup, folder: Path
) -> tuple[dict[str, ReproducedCell], list[str]]:
    """Return the mean score of each model, and notes: first of which questions, then the order."""
    fewl_setup = build_fewl_setup(setup)
    ranked = run_anywhere(lambda: rank_models_by_score(source, folder, fewl_setup, selection))
    row = _find_fewl_row(ranked.rows)
    cells = dict(zip(ranked.columns, row.cells, strict=True))
    agreement = cells.pop("Kendall's tau").text
    order = cells.pop("order").text
    notes = [
        ranked.notes[0],
        f"FEWL has the weights `{row.about['weights']}`; order: {order}; Kendall's tau with the "
        f"true rates {agreement}.",
        ranked.notes[2],
    ]
    return {name: _copy_cell(cell) for name, cell in cells.items()}, notes


def _collect_labels(samples: Sequence[Sample]) -> dict[str, list[bool]]:
    """Return by model which answers are right, of those with a model and a label."""
    labels: dict[str, list[bool]] = {}
    for sample in samples:
        label = read_single_label(sample.label)
        if sample.model is not None and label is not None:
            labels.setdefault(sample.model, []).append(label > 0)
    return labels


def _build_rate(counts: Mapping[str, Any], paper: str) -> ReproducedCell:
    """Return the share of right answers with four digits, as the paper has it."""
    count, n = int(counts["count"]), int(counts["n"])
    interval = binomial_interval(count, n) if n >= MIN_UNITS else None
    rate = count / n if n else 0.0
    return ReproducedCell.of_estimate(rate, interval, digits=4, paper=paper, count=count, n=n)


# Table 5


def order_pairs(source: Path, setup: ReproductionSetup, folder: Path) -> ReproducedTable:
    """Return Table 5: how often the score orders two models' answers as TruthfulQA's metric does.

    Raises:
        InputError, BadInputError: as :func:`order_samples`.
    """
    references = list(setup.references)
    fewl_setup = replace(build_fewl_setup(setup), references=references, weighs_by_pairs=False)
    ordered = run_anywhere(lambda: order_samples(source, folder, fewl_setup, setup.selection))
    # The paper has the pairs as rows, the experiment as columns.
    rows_of_table = [row for row in ordered.rows if 5 in row.tables]
    headings = {"none": "FEWL w/o penalty", "nearest": "FEWL"}
    columns = [headings[row.about["penalty"]] for row in rows_of_table]
    rows = [
        ReproducedRow(pair, [_copy_cell(row.cells[index]) for row in rows_of_table])
        for index, pair in enumerate(ordered.columns)
    ]
    return ReproducedTable(
        "Table 5",
        "pairs of answers in the order of TruthfulQA's metric, in %",
        columns,
        rows,
        SAMPLE_REASON,
        "models",
        ordered.notes,
    )


# Tables 6 and 7


def learn_from_examples(
    paper_input: PaperInput, setup: ReproductionSetup, folder: Path
) -> ReproducedTable:
    """Return Table 6: answers after examples that FEWL chose, against those of the baseline.

    Raises:
        InputError: FEWL and the baseline choose the same answer to every question.
    """
    from trustassay.papers.experiments.learning import run_icl

    rows: list[ReproducedRow] = []
    notes: list[str] = []
    for name, result in _learn(run_icl, paper_input, setup, folder):
        direct = next(row for row in result.rows if row.about["against"] == "baseline")
        won, lost, tied = direct.cells[:3]
        cells = [_copy_cell(cell) for cell in (lost, won, tied)]
        rows.append(ReproducedRow(f"{result.settings['judge']} ({name})", cells))
        notes += result.notes
    columns = ("baseline, %", "FEWL, %", "tie, %")
    title = "win rates of answers with chosen examples in the prompt"
    reason = "the authors published neither the examples nor the answers"
    return ReproducedTable("Table 6", title, columns, rows, reason, "judge", notes)


def tune_on_choices(
    paper_input: PaperInput, setup: ReproductionSetup, folder: Path
) -> ReproducedTable:
    """Return Table 7: win rates of a model tuned on chosen answers over the model as it was.

    Raises:
        UsageError: no question is left to train on, or to test with.
    """
    from trustassay.papers.experiments.learning import run_sft

    rows: list[ReproducedRow] = []
    notes: list[str] = []
    names = {"baseline": "Baseline", "FEWL": "FEWL", "labels": "Ground-truth labels"}
    for name, result in _learn(run_sft, paper_input, setup, folder):
        rate = result.columns.index("win rate, %")
        rows += [
            ReproducedRow(f"{names[row.about['arm']]} ({name})", [_copy_cell(row.cells[rate])])
            for row in result.rows
        ]
        notes += result.notes
    title = "win rate of the tuned model over the untuned model"
    reason = "the authors published neither the chosen answers nor the tuned models"
    return ReproducedTable("Table 7", title, ("win rate, %",), rows, reason, "answers", notes)


def _learn(
    work: Callable[..., ExperimentResult],
    paper_input: PaperInput,
    setup: ReproductionSetup,
    folder: Path,
) -> list[tuple[str, ExperimentResult]]:
    """Run an experiment for each group of references; return the results by their names."""
    from trustassay.papers.experiments.learning import LearningSetup

    model = next(iter(name_models(list(setup.models), "model", many=True).values()))
    results = []
    for number, group in enumerate(paper_input.groups, 1):
        samples = [group.select(sample) for sample in paper_input.samples]
        samples = [one for one in samples if one.references or group.model is not None]
        fewl_setup = build_group_setup(group, setup)
        samples = select_weighable(samples, fewl_setup.generator)
        source = paper_input.write(folder / f"{number}.jsonl", samples)
        learning = LearningSetup(model, setup.judge)
        selection = RecordSelection(skip_bad=setup.selection.skip_bad)
        result = work(source, folder / str(number), fewl_setup, selection, learning)
        results.append((group.name, result))
    return results


# Figures


def judge_lazy_answers(source: Path, setup: ReproductionSetup, folder: Path) -> ReproducedTable:
    """Return Figure 2: how many answers to neighbouring questions are right of the question.

    Raises:
        InputError: no question has a neighbour.
    """
    fewl_setup = build_fewl_setup(setup)
    result = run_anywhere(
        lambda: judge_neighbours(source, folder, fewl_setup, setup.selection, judge=setup.judge)
    )
    # The ranks between the nearest and the farthest are in the drawing.
    rows = [
        ReproducedRow(row.name, [_copy_cell(cell) for cell in row.cells])
        for row in (result.rows[0], result.rows[-1])
    ]
    title = "answers to neighbouring questions, judged as answers to the question"
    reason = "Figure 2 prints no numbers, and the judge was GPT-4"
    return ReproducedTable(
        "Figure 2",
        title,
        result.columns,
        rows,
        reason,
        "answers to",
        result.notes,
        charts=result.drawings,
    )


def compare_references(
    groups: Sequence[GroupScores], setup: ReproductionSetup, folder: Path
) -> ReproducedTable | str:
    """Return Figures 3 and 4: how references agree with wrong and corrected answers.

    Each reference has its first answer, as in the paper.
    """
    merged: dict[str, dict[str, Any]] = {}
    for group in groups:
        for sample in group.filled:
            record = merged.setdefault(sample.question, sample.to_dict() | {"references": {}})
            record["references"] |= {name: [texts[0]] for name, texts in sample.references.items()}
    records = [record for record in merged.values() if record.get("corrected_answers")]
    if not records:
        return next((group.no_pairs for group in groups if group.no_pairs), NO_PAIRS)
    source = folder / "references.jsonl"
    samples = [Sample.parse(record) for record in records]
    PaperInput(source, samples, (), ()).write(source)
    fewl_setup, compared = build_fewl_setup(setup), folder / "compared"
    result = run_anywhere(lambda: measure_experts(source, compared, fewl_setup, RecordSelection()))
    wanted = ("told apart", "agrees with wrong", "agrees with corrected", "expertise", "rating")
    places = [result.columns.index(name) for name in wanted]
    rows = [
        ReproducedRow(row.name, [_copy_cell(row.cells[place]) for place in places])
        for row in result.rows
    ]
    title = "agreement of references with wrong and corrected answers, and ratings of their answers"
    reason = "the figures print no numbers"
    return ReproducedTable(
        "Figures 3 and 4",
        title,
        wanted,
        rows,
        reason,
        "reference",
        result.notes,
        charts=result.drawings,
    )
