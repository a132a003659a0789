"""The 28 figures of Trust-Eval as its LlamaIndex page prints them (Song et al. 2025).

Each table has a column for each system, the sample's ``model``:

1. the figures by the rules of trust_eval 0.1.6 (``profile=paper``), correctness by NLI;
2. the same by this program's default rules;
3. correctness by exact match, where gold answers are short;
4. the page's own example, recomputed from the counts that it prints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from trustassay.core.metric import Inventory, Summary
from trustassay.core.sample import Sample
from trustassay.errors import BackendError
from trustassay.input.records import InputError
from trustassay.metrics.grounding import Grounding
from trustassay.metrics.grounding.maths import CORRECTNESS_F1, figures
from trustassay.papers.experiments.answers import read_records
from trustassay.papers.reproduce.scoring import (
    ModelSamples,
    ScoredSample,
    assign_samples,
    describe_failures,
    describe_left_out,
    refuse_options,
    score_samples,
)
from trustassay.papers.reproduce.setup import RECORDED, ReproductionSetup, describe_backend
from trustassay.papers.reproduce.tables import (
    NO_FIGURE,
    ReproducedCell,
    ReproducedRow,
    ReproducedTable,
    Reproduction,
    list_missing_intervals,
)
from trustassay.text.numbers import amount

SOURCE = "Song et al.: Trust-Eval (ICLR 2025), the page of its LlamaIndex integration"
PRINTED: Mapping[str, float] = {
    "num_samples": 6,
    "answered_ratio": 50.0,
    "answered_num": 3,
    "answerable_num": 2,
    "overlapped_num": 2,
    "regular_length": 87.0,
    "answered_length": 90.66666666666667,
    "reject_rec": 75.0,
    "reject_prec": 100.0,
    "reject_f1": 85.71428571428571,
    "answerable_rec": 100.0,
    "answerable_prec": 66.66666666666667,
    "answerable_f1": 80.0,
    "macro_avg": 87.5,
    "macro_f1": 82.85714285714286,
    "regular_claims_nli": 33.33333333333333,
    "answered_claims_nli": 33.33333333333333,
    "calib_answered_claims_nli": 33.33333333333333,
    "calib_answerable_claims_nli": 50.0,
    "calib_claims_nli_f1": 40.0,
    "parametric_answered_claims_nli": 0.0,
    "regular_citation_rec": 32.5,
    "regular_citation_prec": 63.33333333333333,
    "regular_citation_f1": 42.95652173913043,
    "answered_citation_rec": 50.0,
    "answered_citation_prec": 76.66666666666666,
    "answered_citation_f1": 60.526315789473685,
    "trust_score": 61.127819548872175,
}
"""The example of the page, in its order: the 28 keys."""
EXACT_MATCH_KEYS = (
    "regular_str_em",
    "answered_str_em",
    "calib_answered_str_em",
    "calib_answerable_str_em",
    "calib_str_em_f1",
    "parametric_str_em",
    "trust_score",
)
"""What the page names as the other setting; with it these keys replace those of claims."""
COUNT_KEYS = ("num_samples", "answered_num", "answerable_num", "overlapped_num")
LENGTH_KEYS = ("regular_length", "answered_length")
DATA_FILES = tuple(
    f"{stem}{suffix}"
    for stem in ("answers", "responses", "questions", "custom_data")
    for suffix in (".jsonl", ".json", ".csv", ".parquet")
)
"""Names of files that hold the answers in the data's folder, the preferred one first."""
NO_EXAMPLE = (
    "the page prints figures for six responses, but neither the responses nor their documents"
)
ALL_SYSTEMS = "all"
PAPER_ENTAILER = "hf:google/t5_xxl_true_nli_mixture"


def reproduce(setup: ReproductionSetup) -> Reproduction:
    """Compute the figures of Trust-Eval for each system of the data.

    Raises:
        InputError, BadInputError: the data cannot be read, or lack what the figures need.
        UsageError: an option is given that they do not use.
    """
    refuse_options("trust-eval", setup, "references", "judge", "repeats")
    parts, left_out = _collect_systems(setup)
    samples = [sample for part in parts for sample in part.samples]
    inventory = Inventory()
    for sample in samples:
        inventory.add(sample)
    has_golds = bool(inventory.claims or inventory.answers)
    claims = Grounding(correctness="cm" if has_golds else "none")
    paper_rules, splitter_note = _apply_paper_rules(claims)
    differences = _describe_differences(setup, splitter_note)
    tables, notes = [], [*describe_left_out(left_out)]
    for profile, metric in (("paper", paper_rules), ("default", claims)):
        scored = _score_systems(parts, metric, setup, f"{profile}-{metric.correctness}")
        # What a model answered in the first run is assessed by the other rules, too.
        parts = _take_responses(parts, scored)
        notes += [note for note in describe_failures(scored) if note not in notes]
        title = f"The 28 figures, profile={profile}"
        table = _build_table(title, metric, scored, tuple(PRINTED))
        tables.append(replace(table, notes=[*table.notes, *notes]))
    missing = {
        "Lists (QAMPARI)": "not among the page's figures; use --metric grounding:correctness=em5",
        "The paper's own tables": (
            "they need models' answers to ASQA, QAMPARI and ELI5, given with --data"
        ),
    }
    if not has_golds:
        missing["Correctness and trust_score"] = (
            f"no sample has `answers` or `claims`; {CORRECTNESS_F1['cm']} and trust_score need them"
        )
    # Gold answers that are sentences are hardly ever in a response word for word.
    if inventory.answers and inventory.sentence_answers * 2 <= inventory.answers:
        metric = replace(paper_rules, correctness="em")
        scored = _score_systems(parts, metric, setup, "paper-em")
        title = "Correctness by exact match, profile=paper"
        tables.append(_build_table(title, metric, scored, EXACT_MATCH_KEYS))
        differences.append(
            "The gold answers are short, and the claim figures use each one as a claim. The "
            "page's claims are sentences."
        )
    else:
        missing["Correctness by exact match"] = (
            "needs short gold answers in `answers`; those in the data are sentences or claims"
        )
    tables.append(recompute_example())
    return Reproduction(
        "trust-eval",
        SOURCE,
        _describe_data(setup, samples),
        tables,
        differences,
        missing,
        setup.describe_settings(),
    )


def _collect_systems(setup: ReproductionSetup) -> tuple[list[ModelSamples], Mapping[str, int]]:
    """Return the samples of each system, and how many of other systems are left out."""
    samples = _read_data(setup)
    if setup.models:
        # A model that is given answers the questions anew.
        questions = [replace(s, response=None, label=None) for s in samples]
        if setup.is_bundled:
            # The user's models are asked the bundled questions, whoever answered them.
            questions = [replace(s, model=None) for s in questions]
        return assign_samples(questions, setup.models)
    names = dict.fromkeys(sample.model or "" for sample in samples)
    return [
        ModelSamples(name, None, [s for s in samples if (s.model or "") == name]) for name in names
    ], {}


def _read_data(setup: ReproductionSetup) -> list[Sample]:
    if setup.is_bundled:
        sources = [RECORDED / "cited.jsonl", RECORDED.parent / "example" / "citations.jsonl"]
        return [sample for path in sources for sample in read_records(path, setup.selection)]
    path = setup.find_file(*DATA_FILES)
    if path is None:
        raise InputError(
            f"{setup.data}: expected one of {', '.join(DATA_FILES)}: cited answers with question, "
            "documents, response and model; correctness needs answers or claims"
        )
    return read_records(path, setup.selection)


def _apply_paper_rules(metric: Grounding) -> tuple[Grounding, str]:
    """Return the metric with trust_eval's rules, and what differs if Punkt is not installed."""
    try:
        return replace(metric, profile="paper"), ""
    except BackendError as error:
        return replace(metric, profile="paper", splitter="sentencex"), (
            "profile=paper splits sentences with sentencex here instead of trust_eval's Punkt, "
            f"which can change the citation figures: {error}"
        )


def _score_systems(
    parts: Sequence[ModelSamples], metric: Grounding, setup: ReproductionSetup, name: str
) -> list[ScoredSample]:
    if not setup.models:
        # One run: recorded answers of all systems need no model.
        samples = [sample for part in parts for sample in part.samples]
        return score_samples(samples, metric, setup, name, setup.backends)
    scored = []
    for number, part in enumerate(parts, 1):
        backends = dict(setup.backends)
        if part.model is not None:
            backends["model"] = part.model
        # Models have folders by number: a name may be no name of a folder.
        scored += score_samples(part.samples, metric, setup, f"{name}-{number}", backends)
    return scored


def _take_responses(
    parts: Sequence[ModelSamples], scored: Sequence[ScoredSample]
) -> list[ModelSamples]:
    """Return the samples that have a response, by system; raise InputError if there is none."""
    answered = [one.sample for one in scored if one.sample.response is not None]
    if not answered:
        raise InputError(f"no question has a response; {' '.join(describe_failures(scored))}")
    by_system = [
        ModelSamples(part.name, None, [s for s in answered if (s.model or "") == part.name])
        for part in parts
    ]
    return [part for part in by_system if part.samples]


def _build_table(
    title: str, metric: Grounding, scored: Sequence[ScoredSample], keys: Sequence[str]
) -> ReproducedTable:
    """Return the table of some figures, with a column for each system and one for all."""
    by_system: dict[str, list[ScoredSample]] = {}
    for one in scored:
        by_system.setdefault(one.sample.model or "no model named", []).append(one)
    # A list of pairs, since a system may be called "all".
    columns = list(by_system.items())
    if len(columns) > 1:
        columns.insert(0, (ALL_SYSTEMS, list(scored)))
    summaries = [metric.summarise([one.assessment for one in group]) for _, group in columns]
    rows = [
        ReproducedRow(key, [_build_cell(key, summary) for summary in summaries]) for key in keys
    ]
    names = [name for name, _ in columns]
    notes = [
        f"Figures are in percent, lengths in words. Rules: profile={metric.profile}.",
        *_list_missing(names, rows),
    ]
    return ReproducedTable("", title, names, rows, NO_EXAMPLE, "Key", notes)


def _list_missing(names: Sequence[str], rows: Sequence[ReproducedRow]) -> list[str]:
    """Return a note for each reason why the figures of a system, or intervals, are missing."""
    notes = []
    for place, name in enumerate(names):
        cells = {row.name: row.cells[place] for row in rows if row.name not in COUNT_KEYS}
        if len({cell.values.get("reason") for cell in cells.values()}) == 1:
            # With few answers no key has an interval: one note is enough.
            cells = {"all figures": next(iter(cells.values()))}
        notes += list_missing_intervals(list(cells), [ReproducedRow(name, list(cells.values()))])
    return notes


def _build_cell(key: str, summary: Summary) -> ReproducedCell:
    value = summary.values.get(key)
    if value is None:
        return ReproducedCell(
            NO_FIGURE,
            {"value": None, "reason": summary.not_applicable.get(key, "needs gold answers")},
        )
    if key in COUNT_KEYS:
        return ReproducedCell.of_count(int(value))
    interval = summary.intervals.get(key)
    reason = summary.without_interval.get(key)
    return ReproducedCell.of_estimate(
        value, interval, digits=1, n=summary.support.get(key), reason=reason
    )


def recompute_example() -> ReproducedTable:
    """Return the page's printed ratios beside ours, from the counts and means that it prints."""
    counts = {key: PRINTED[key] for key in COUNT_KEYS}
    n, answered = counts["num_samples"], counts["answered_num"]
    answerable, both = counts["answerable_num"], counts["overlapped_num"]
    refused, unanswerable = n - answered, n - answerable
    # Of the refused questions those that are not answerable.
    rightly_refused = refused - (answerable - both)
    sums = {
        "answered_ratio": (answered, n),
        "reject_rec": (rightly_refused, unanswerable),
        "reject_prec": (rightly_refused, refused),
        "answerable_rec": (both, answerable),
        "answerable_prec": (both, answered),
    }
    # Means over answers are printed, but no counts behind them: they are taken as they are.
    means = {
        key: (PRINTED[key] / 100, 1.0)
        for key in PRINTED
        if key.endswith(("_nli", "citation_rec", "citation_prec"))
    } | {key: (PRINTED[key], 1.0) for key in LENGTH_KEYS}
    terms = sums | means
    result = figures(
        {key: np.array(total) for key, (total, _) in terms.items()},
        {key: np.array(size) for key, (_, size) in terms.items()},
        "cm",
        undefined_f1_zero=True,
    )
    derived = [key for key in PRINTED if key not in means and key not in counts]
    rows = [
        ReproducedRow(
            key,
            [
                ReproducedCell(
                    f"{float(result[key]):.10g}",
                    {"value": float(result[key])},
                    f"{PRINTED[key]:.10g}",
                )
            ],
        )
        for key in derived
    ]
    return ReproducedTable(
        "",
        "The page's own example, recomputed from its counts",
        ["figure"],
        rows,
        first="Key",
        notes=[
            f"From the printed counts ({n:g} questions, {answered:g} answered, {answerable:g} "
            f"answerable, {both:g} both) and the printed means of claims and citations, the "
            f"formulas here give the other {len(derived)} figures."
        ],
    )


def _describe_data(setup: ReproductionSetup, samples: Sequence[Sample]) -> str:
    n = len(samples)
    if setup.is_bundled and setup.models:
        return (
            f"{amount(n, 'answer')} by the given models to the bundled questions, from their "
            "passages."
        )
    if setup.is_bundled:
        return (
            f"{amount(n, 'bundled cited answer')}. Those of Qwen2.5-Coder-1.5B-Instruct were "
            "generated by the model. Good and bad ones were written for this project as those of "
            "model-a and model-b."
        )
    return f"{amount(n, 'answer')} of {setup.data}."


def _describe_differences(setup: ReproductionSetup, splitter_note: str) -> list[str]:
    entailer = describe_backend(setup.backends.get("entailer", "embedded"))
    differences = [
        "The page does not say which release computed its figures. profile=paper has the rules "
        "of trust_eval 0.1.6. The names reject_... come from 0.1.1, which ignores calibration "
        "for exact match.",
        "profile=default recognises more forms of citations and refusals. "
        "docs/methods/grounding.md lists the rules of both.",
        "A gold answer is the whole text. trust_eval's data set builder stores a text where its "
        "scorer expects a list, so the scorer compares only the first letter.",
        "Passages come from the data; the page retrieves five from Wikipedia for each question.",
        "Intervals are over answers and do not include errors of the entailer.",
    ]
    if entailer != PAPER_ENTAILER:
        differences.insert(
            0,
            f"The entailer is {entailer}; the page uses google/t5_xxl_true_nli_mixture, which "
            f"needs 22 GB: --backend entailer={PAPER_ENTAILER}",
        )
    return [*differences, *([splitter_note] if splitter_note else [])]
