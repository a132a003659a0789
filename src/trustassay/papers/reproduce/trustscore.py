"""Tables 1 to 3 of TrustScore (Zheng et al. 2024): which score agrees with people, by system.

1. Read the answers of one or more systems with a label of people each.
2. Score them: measures that read gold answers, likelihoods, and Trust_BC, Trust_FC and Trust_OV, as
   far as libraries and models for them are there.
3. Correlate each score with the labels of each system (Table 1), compute Cohen's kappa of double
   annotations (Table 2), and count the answers in each cell of the scoring criterion (Table 3).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from trustassay.core.assessment import Share, compute_interval
from trustassay.core.metric import Metric
from trustassay.core.sample import Sample, question_key
from trustassay.errors import UsageError
from trustassay.input.labels import read_labels
from trustassay.input.ratings import read_ratings
from trustassay.input.records import InputError
from trustassay.metrics.consistency import Consistency
from trustassay.metrics.factcheck import FactCheck
from trustassay.metrics.reference import Reference
from trustassay.metrics.reference.measures import explain_missing
from trustassay.metrics.reference.metric import golds_of
from trustassay.metrics.trustscore.metric import TABLE, trust_ov
from trustassay.papers.experiments.answers import read_records
from trustassay.papers.reproduce.scoring import (
    ScoredSample,
    assign_samples,
    describe_failures,
    describe_left_out,
    open_recorded_model,
    refuse_options,
    score_samples,
)
from trustassay.papers.reproduce.setup import RECORDED, ReproductionSetup
from trustassay.papers.reproduce.tables import (
    NO_FIGURE,
    ReproducedCell,
    ReproducedRow,
    ReproducedTable,
    Reproduction,
    list_missing_intervals,
)
from trustassay.people.agree import measure_agreement
from trustassay.people.study.answers import ScoreColumn
from trustassay.people.study.figures import Resampling, estimate_figures
from trustassay.report.document import Chart, interval_bars
from trustassay.report.text import p_text, with_interval
from trustassay.runs.needs import name_models
from trustassay.statistics import Floats, Places
from trustassay.statistics.correlation import pearson, pearson_p_value, weighted_pearson
from trustassay.statistics.intervals import Estimate
from trustassay.statistics.resampling import REPLICATES, cluster_numbers, generator

PAPER = "trustscore"
SOURCE = (
    "Zheng, Liu, Lapata and Pan 2024, TrustScore: Reference-Free Evaluation of LLM Response "
    "Trustworthiness"
)
ANSWER_FILES = ("qa_human_check.json", "answers.jsonl", "answers.json", "answers.csv")
RATING_FILES = ("ratings.csv", "ratings.tsv", "ratings.jsonl", "ratings.json")
UNNAMED = "answers"
"""The system of answers that name no model."""
RECORDED_CHECKS = Consistency(sources="given", checks=5, stop=False)
"""The options with which the bundled replies were recorded: others have no recorded reply."""
PAPER_RECIPE: Literal["trustscore-paper"] = "trustscore-paper"

AUTHORS_SYSTEMS: Mapping[str, str] = {
    "16c15a903346f9cb7d209f0f12a7f07238e49ba409187011f93ff5167fd6f4eb": "FLAN-T5",
    "12aafcb8218662862614e72a5239e9c1fcc4eef158b90a9262d49c02fa50c768": "LLaMA",
    "4db13cf619d24bdf97ef893e20c8bc787670cff644e32990f19f0586279fe7a2": "GPT-3.5",
}
"""By digest of the answers and labels in the authors' ``qa_human_check.json``: the system."""
Reads = Literal["gold answers", "the question", "evidence"]
OF_MODELS = (
    "the paper publishes no scores of single answers, and names the model behind GPTScore alone"
)
OF_TRUST = "the paper's distractors, passages and scores of single answers were not published"


@dataclass(frozen=True)
class CorrelationRow:
    """A row of Table 1."""

    title: str
    """Its name in the paper."""
    reads: Reads
    """What the score needs beside the answer."""
    printed: Mapping[str, str]
    """The paper's figure by system."""
    part: str = ""
    """The part of the metric ``reference``; empty for Trust_BC, Trust_FC and Trust_OV."""
    not_comparable: str = ""
    """Why the paper's figure never stands beside ours; empty where it does for the same rows."""


def _row(
    title: str, reads: Reads, flan: str, llama: str, gpt: str, part: str = "", why: str = ""
) -> CorrelationRow:
    printed = {"FLAN-T5": flan, "LLaMA": llama, "GPT-3.5": gpt}
    return CorrelationRow(title, reads, printed, part, why)


TABLE_1: Sequence[CorrelationRow] = (
    _row("Exact Match", "gold answers", "0.635", "NaN", "NaN", "em"),
    _row("BLEU-1", "gold answers", "0.655", "0.435", "0.289", "bleu_1"),
    _row("BLEU-4", "gold answers", "0.536", "0.376", "0.228", "bleu_4"),
    _row("ROUGE-L", "gold answers", "0.607", "0.533", "0.382", "rouge_l"),
    _row("METEOR", "gold answers", "0.603", "0.536", "0.106", "meteor"),
    _row("BERTScore", "gold answers", "0.573", "0.266", "0.087", "bertscore", OF_MODELS),
    _row("BARTScore-ref", "gold answers", "0.570", "0.474", "0.368", "bartscore_ref", OF_MODELS),
    _row("GPTScore-ref", "gold answers", "0.610", "0.575", "0.453", "gptscore_ref", OF_MODELS),
    _row("BARTScore-src", "the question", "-0.075", "-0.099", "-0.151", "bartscore_src", OF_MODELS),
    _row("GPTScore-src", "the question", "-0.055", "-0.081", "-0.139", "gptscore_src", OF_MODELS),
    _row("Trust_BC", "the question", "0.313", "0.133", "0.353", why=OF_TRUST),
    _row("BARTScore-evid", "evidence", "0.070", "0.091", "-0.013", "bartscore_evid", OF_MODELS),
    _row("GPTScore-evid", "evidence", "0.075", "0.186", "0.024", "gptscore_evid", OF_MODELS),
    _row("Trust_FC", "evidence", "0.593", "0.533", "0.449", why=OF_TRUST),
    _row("Trust_OV", "evidence", "0.613", "0.539", "0.484", why=OF_TRUST),
)  # fmt: skip
"""Zheng et al. 2024, Table 1: Pearson's r with the labels of people."""
SIGNIFICANT_P = 0.01
"""The paper marks correlations whose p is not below it."""
LEXICAL = ("em", "bleu_1", "bleu_4", "rouge_l", "meteor")
LIKELIHOODS: Mapping[str, str] = {
    "bartscore": "--backend judge=bartscore=hf:MODEL (as facebook/bart-large-cnn)",
    "gptscore": "--backend judge=gptscore=hf:MODEL (the paper took google/flan-t5-base)",
}
"""By family, the option that gives its model."""
USED_BACKENDS = frozenset(
    "token_embedder judge retriever entailer generator distractors linker".split()
)
NO_GOLDS = "no answer in the data has gold answers (answers)"
NO_EVIDENCE = "passages: documents in the data, or --backend retriever=bm25:FOLDER"


@dataclass
class SystemScores:
    """The answers of one system, and their scores."""

    name: str
    samples: Sequence[Sample]
    labels: Floats
    """Shape (n,); NaN where an answer has no label."""
    published: str = ""
    """The paper's name of it if these are the authors' answers and labels."""
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    """By title of a row, the score of each answer by id."""
    verdicts: dict[str, tuple[Any, bool]] = field(default_factory=dict)
    """By id, the verdict of the facts and whether the model is consistent."""

    @property
    def questions(self) -> Places:
        """The number of each answer's question, shape (n,)."""
        return cluster_numbers([question_key(sample.question) for sample in self.samples])

    def align_scores(self, title: str) -> Floats:
        """Return the scores of a row in the order of the answers, NaN where there is none."""
        by_id = self.scores.get(title, {})
        return np.array([by_id.get(sample.id, np.nan) for sample in self.samples])


@dataclass
class ScoreTables:
    """All scores that could be computed, and why others could not."""

    systems: Sequence[SystemScores]
    kind: Any
    """The kind of the labels."""
    missing: dict[str, str] = field(default_factory=dict)
    """By title of a row, what it would need."""
    notes: list[str] = field(default_factory=list)

    def add(self, title: str, scored: Sequence[ScoredSample], part: str = "") -> None:
        """Add the scores, or one part of them, to the systems of the answers."""
        values = {}
        for one in scored:
            value = one.assessment.parts.get(part) if part else one.assessment.score
            if one.assessment.error is None and value is not None:
                values[one.sample.id] = float(value)
        for system in self.systems:
            ids = {sample.id for sample in system.samples}
            system.scores.setdefault(title, {}).update(
                {key: value for key, value in values.items() if key in ids}
            )


def reproduce(setup: ReproductionSetup) -> Reproduction:
    """Score the answers and build the tables.

    Raises:
        InputError, BadInputError: the data cannot be read, or has no labels.
        UsageError, BackendError: a model cannot be used, or is not one of the data's systems.
    """
    refuse_options(PAPER, setup, "references", "repeats")
    if unused := sorted(set(setup.backends) - USED_BACKENDS):
        raise UsageError(f"--backend {unused[0]}: the tables of {PAPER} do not use it")
    path = setup.find_file(*ANSWER_FILES) or (
        RECORDED / "answers.jsonl" if setup.is_bundled else None
    )
    if path is None:
        raise InputError(
            f"{setup.data}: expected {', '.join(ANSWER_FILES)}: question, response, model, label, "
            "and as far as there are: answers, documents, wrong_answers"
        )
    samples = read_records(path, setup.selection)
    tables = group_systems(samples, str(path))
    _score_lexical(setup, tables, samples)
    _score_by_models(setup, tables, samples)
    _score_trust(setup, tables, samples)
    result = [_build_table_1(tables, setup.seed)]
    if (agreement := _build_table_2(setup, tables)) is not None:
        result.append(agreement)
    if any(system.verdicts for system in tables.systems):
        result.append(_build_table_3(tables))
    else:
        tables.missing["Table 3"] = "Trust_BC and Trust_FC of the same answers"
    return Reproduction(
        paper=PAPER,
        source=SOURCE,
        data=_describe_data(setup, tables),
        tables=result,
        differences=_list_differences(setup),
        missing=_join_missing(tables.missing),
        settings=setup.describe_settings(),
        charts=_build_charts(tables, result[0]),
    )


def compute_digest(samples: Sequence[Sample], labels: Sequence[float]) -> str:
    """Return a digest of questions, gold answers, responses and labels, in any order."""
    rows = sorted(
        json.dumps([sample.question, sample.answers, sample.response, label])
        for sample, label in zip(samples, labels, strict=True)
    )
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def group_systems(samples: Sequence[Sample], source: str) -> ScoreTables:
    """Return the answers by the system that gave them, with their labels.

    Raises:
        InputError: no answer has a label, or labels cannot be read.
    """
    if all(sample.label is None for sample in samples):
        raise InputError(
            f"{source}: no answer has a label; expected label (or human_eval), 1 for an answer "
            "that people call right and 0 for a wrong one"
        )
    read = read_labels("label", [s.label for s in samples], ids=[s.id for s in samples])
    values = np.array(read.values)
    names = [sample.model or UNNAMED for sample in samples]
    systems = []
    for name in dict.fromkeys(names):
        places = [place for place, other in enumerate(names) if other == name]
        of_system = [samples[place] for place in places]
        labels = values[places]
        published = AUTHORS_SYSTEMS.get(compute_digest(of_system, labels.tolist()), "")
        systems.append(SystemScores(name, of_system, labels, published))
    notes = [read.unread.describe("labels")] if read.unread else []
    return ScoreTables(systems, read.kind, notes=notes)


def _score_lexical(
    setup: ReproductionSetup, tables: ScoreTables, samples: Sequence[Sample]
) -> None:
    """Score by the measures of common words, as the paper computed them."""
    rows = [row for row in TABLE_1 if row.part in LEXICAL]
    with_golds = [sample for sample in samples if golds_of(sample)]
    for row in rows:
        reason = explain_missing(row.part, PAPER_RECIPE) if with_golds else NO_GOLDS
        if reason:
            tables.missing[row.title] = reason
    computable = [row for row in rows if row.title not in tables.missing]
    # METEOR in a run of its own: where its data is faulty, the others are still scored.
    for name, parts in (("reference", LEXICAL[:-1]), ("meteor", LEXICAL[-1:])):
        of_run = [row for row in computable if row.part in parts]
        if not of_run:
            continue
        metric = Reference(
            parts="+".join(row.part for row in of_run), score=of_run[0].part, recipe=PAPER_RECIPE
        )
        _, scored = score_samples(with_golds, metric, setup, name, {})
        for row in of_run:
            tables.add(row.title, scored, row.part)
        tables.notes += describe_failures(scored)


def _score_by_models(
    setup: ReproductionSetup, tables: ScoreTables, samples: Sequence[Sample]
) -> None:
    """Score by the measures that need a model on this machine, as far as it is given."""
    with_golds = [sample for sample in samples if golds_of(sample)]
    if embedder := setup.backends.get("token_embedder"):
        if with_golds:
            metric = Reference(parts="bertscore", score="bertscore")
            backends = {"token_embedder": embedder}
            _, scored = score_samples(with_golds, metric, setup, "bertscore", backends)
            tables.add("BERTScore", scored, "bertscore")
        else:
            tables.missing["BERTScore"] = NO_GOLDS
    else:
        tables.missing["BERTScore"] = "--backend token-embedder=hf:MODEL (roberta-large as usual)"
    judges = setup.backends.get("judge") or []
    given = name_models(judges if isinstance(judges, list) else [judges], "judge", many=True)
    if strange := [name for name in given if name not in LIKELIHOODS]:
        raise UsageError(
            f"--backend judge: expected bartscore=URI or gptscore=URI, got {strange[0][:60]!r}; "
            "the model of the fact check is --judge URI"
        )
    retriever = setup.backends.get("retriever")
    readable = {
        "gold answers": with_golds,
        "the question": list(samples),
        "evidence": [s for s in samples if retriever or s.documents],
    }
    for row in TABLE_1:
        family = row.part.partition("_")[0]
        if family not in LIKELIHOODS:
            continue
        if family not in given:
            tables.missing[row.title] = LIKELIHOODS[family]
        elif not readable[row.reads]:
            tables.missing[row.title] = NO_GOLDS if row.reads == "gold answers" else NO_EVIDENCE
        else:
            metric = Reference(parts=row.part, score=row.part)
            backends = {"judge": {family: given[family]}}
            if row.reads == "evidence" and retriever:
                backends["retriever"] = retriever
            _, scored = score_samples(readable[row.reads], metric, setup, row.part, backends)
            tables.add(row.title, scored, row.part)
            tables.notes += describe_failures(scored)


def _score_trust(setup: ReproductionSetup, tables: ScoreTables, samples: Sequence[Sample]) -> None:
    """Score by Trust_BC, Trust_FC and, of answers that have both, Trust_OV."""
    consistency = _score_consistency(setup, tables, samples)
    facts = _score_facts(setup, tables, samples)
    if not (consistency and facts):
        absent = [title for title in ("Trust_BC", "Trust_FC") if title in tables.missing]
        tables.missing["Trust_OV"] = f"{' and '.join(absent)}, which it combines"
        return
    verdicts = {one.sample.id: one.assessment.verdict for one in facts}
    choices = {one.sample.id: one.assessment.verdict for one in consistency}
    for system in tables.systems:
        for sample in system.samples:
            verdict: Any = verdicts.get(sample.id)
            choice = choices.get(sample.id)
            # Where one part is not assessable, neither is the whole.
            if verdict and choice:
                system.verdicts[sample.id] = verdict, choice == "consistent"
        system.scores["Trust_OV"] = {
            key: trust_ov(verdict, consistent=consistent)
            for key, (verdict, consistent) in system.verdicts.items()
        }


def _score_consistency(
    setup: ReproductionSetup, tables: ScoreTables, samples: Sequence[Sample]
) -> list[ScoredSample]:
    if setup.is_bundled and not setup.models:
        model = open_recorded_model()
        _, scored = score_samples(
            samples, RECORDED_CHECKS, setup, "consistency", {"model": model}, recorded=True
        )
        tables.add("Trust_BC", scored)
        tables.notes += describe_failures(scored)
        return scored
    if not setup.models:
        tables.missing["Trust_BC"] = "the model that gave the answers: --model NAME=URI"
        return []
    if len(setup.models) > 1 and any(not sample.model for sample in samples):
        raise InputError(
            "several --model, and answers without a model: expected the field model, the name "
            "of the model that gave the answer"
        )
    parts, left_out = assign_samples(samples, setup.models)
    tables.notes += [f"Trust_BC and Trust_OV: {line}" for line in describe_left_out(left_out)]
    scored = []
    for number, part in enumerate(parts, 1):
        has_distractors = all(sample.wrong_answers for sample in part.samples)
        metric = Consistency(sources="given" if has_distractors else None)
        backends = _select_backends(setup, "generator", "distractors", "linker")
        _, of_model = score_samples(
            part.samples, metric, setup, f"consistency-{number}", {**backends, "model": part.model}
        )
        scored += of_model
        tables.notes += describe_failures(of_model)
    tables.add("Trust_BC", scored)
    return scored


def _score_facts(
    setup: ReproductionSetup, tables: ScoreTables, samples: Sequence[Sample]
) -> list[ScoredSample]:
    backends = _select_backends(setup, "retriever", "entailer")
    if not ("retriever" in backends or any(sample.documents for sample in samples)):
        tables.missing["Trust_FC"] = NO_EVIDENCE
        return []
    metric: Metric = FactCheck()
    if setup.judge is not None:
        metric = FactCheck(by="model")
        backends = {"judge": setup.judge, **_select_backends(setup, "retriever")}
    _, scored = score_samples(samples, metric, setup, "factcheck", backends)
    tables.add("Trust_FC", scored)
    tables.notes += describe_failures(scored)
    return scored


def _select_backends(setup: ReproductionSetup, *names: str) -> dict[str, Any]:
    return {name: setup.backends[name] for name in names if name in setup.backends}


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
        cells = []
        for system, of_system in zip(tables.systems, estimates, strict=True):
            printed = "" if row.not_comparable else row.printed.get(system.published, "")
            has_scores = bool(system.scores.get(row.title))
            cells.append(_build_correlation_cell(of_system[row.title], printed, has_scores, system))
        rows.append(ReproducedRow(row.title, cells))
    columns = [system.name for system in tables.systems]
    counts = ", ".join(f"{one.name} {_count_labels(one):,}" for one in tables.systems)
    notes = [
        "Pearson's r with the labels, 95 % interval from resampled questions. The p of r = 0 is "
        f"below {SIGNIFICANT_P:g} where none is given. Labelled answers: {counts}.",
        f"Gold answers are read by the scores up to {_last_row('gold answers')}, evidence by those "
        f"after {_last_row('the question')}, and only the question by those between.",
    ]
    notes += [*list_missing_intervals(columns, rows), *tables.notes]
    published = [system for system in tables.systems if system.published]
    reason = "these are not the answers and labels of the authors' qa_human_check.json"
    if published:
        names = ", ".join(f"{one.name} ({one.published})" for one in published)
        notes.append(f"Answers and labels are the authors' own of {names}.")
        for why in dict.fromkeys(row.not_comparable for row in TABLE_1 if row.not_comparable):
            of = ", ".join(row.title for row in TABLE_1 if row.not_comparable == why)
            notes.append(f"Not comparable: {of}: {why}.")
        notes += _explain_meteor(published)
        reason = ""
    return ReproducedTable(
        number="Table 1",
        title="Pearson's r of each score with the labels of people",
        first="score",
        columns=columns,
        rows=rows,
        not_comparable=reason,
        notes=notes,
    )


def _last_row(reads: Reads) -> str:
    return [row.title for row in TABLE_1 if row.reads == reads][-1]


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
        "figure may be of those."
    ]


def _count_labels(system: SystemScores) -> int:
    return int((~np.isnan(system.labels)).sum())


def _build_correlation_cell(
    estimate: Estimate, printed: str, has_scores: bool, system: SystemScores
) -> ReproducedCell:
    if not has_scores:
        return ReproducedCell(NO_FIGURE, {"value": None, "n": 0})
    n, value = estimate.n, estimate.value
    if value is None:
        # Not a missing score, but one that says nothing, as where no answer is an exact match.
        values = {"value": None, "n": n, "reason": estimate.without}
        return ReproducedCell("undefined", values, printed)
    p = pearson_p_value(value, n)
    text = with_interval(value, estimate.interval)
    # As the paper marks them: all other correlations are significant.
    if p >= SIGNIFICANT_P:
        text += f", p {p_text(p)}"
    if n != _count_labels(system):
        text += f", n {n:,}"
    return ReproducedCell(
        text,
        {
            "value": value,
            "interval": estimate.interval,
            "p": p,
            "n": n,
            "reason": estimate.without,
        },
        printed,
    )


def _build_table_2(setup: ReproductionSetup, tables: ScoreTables) -> ReproducedTable | None:
    """Build the agreement of raters by system; ``None`` without ratings."""
    path = None
    if setup.data is not None and setup.data.is_dir():
        path = setup.find_file(*RATING_FILES)
    if path is None:
        tables.missing["Table 2"] = (
            f"ratings of two raters, {RATING_FILES[0]} in --data: item, model, rater, rating; "
            "the authors' fifty double annotations were not published"
        )
        return None
    ratings = read_ratings(path)
    raters = list(dict.fromkeys(rating.rater for rating in ratings.ratings))
    counts = Counter(rating.model for rating in ratings.ratings)
    names = [*(name for name in counts if name and len(counts) > 1), "Overall"]
    notes = []
    if len(raters) < 2:
        cells = [ReproducedCell(NO_FIGURE, {"value": None, "n": 0})] * 2
        rows = [ReproducedRow(name, cells) for name in names]
        notes.append(
            f"{path.name}: one rater ({raters[0]}). Cohen's kappa needs a second rater of the same "
            "answers."
        )
    else:
        agreement = measure_agreement(ratings)
        by_name = {**agreement.models, "Overall": agreement.overall}
        rows = [_build_kappa_row(name, by_name[name]["mean_kappa"]) for name in names]
        if len(raters) > 2:
            notes.append(f"{len(raters)} raters: the mean of kappa over their pairs.")
    columns = ["answers", "Cohen's kappa"]
    return ReproducedTable(
        number="Table 2",
        title="agreement of the annotators",
        first="system",
        columns=columns,
        rows=rows,
        not_comparable="the authors' double annotations were not published",
        notes=[*notes, *list_missing_intervals(columns, rows)],
    )


def _build_kappa_row(name: str, kappa: Estimate) -> ReproducedRow:
    cell = ReproducedCell.of_estimate(kappa.value, kappa.interval, n=kappa.n, reason=kappa.without)
    return ReproducedRow(name, [ReproducedCell.of_count(kappa.n), cell])


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
        columns += [f"{system.name}: answers", f"{system.name}: right, %"]
    notes = ["Trust_OV is the paper's Table 3. Its answers by cell were not published."]
    if tables.kind != "binary":
        notes.append("The share of right answers needs labels of two classes.")
    return ReproducedTable(
        number="Table 3",
        title="the scoring criterion: answers in each cell, and how many are right",
        first="Trust_BC, Trust_FC",
        columns=columns,
        rows=rows,
        not_comparable="the paper prints the criterion alone",
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
    reason = interval if isinstance(interval, str) else ""
    return [
        count,
        ReproducedCell.of_estimate(
            100 * float(right.mean()),
            None if reason else interval,  # type: ignore[arg-type]
            digits=1,
            n=n,
            reason=reason,
        ),
    ]


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
            f"Answers of {counts} to questions of this project, with its recorded replies; one "
            "person read which answers are right."
        )
    return f"Answers of {setup.data} by system: {counts}."


def _list_differences(setup: ReproductionSetup) -> list[str]:
    result = [
        "Exact Match, BLEU, ROUGE-L and METEOR follow the recipe that gives the paper's figures "
        "on the authors' file: normalised and any gold answer for Exact Match, raw words and all "
        "gold answers for BLEU (BLEU-4 with smoothing 4), the first gold answer for the others.",
        "Trust_BC: an unreadable reply is asked for again, then replaced by another choice; the "
        "authors' program counts it as inconsistent.",
        "Trust_FC: passages are judged one by one by an entailer; --judge URI judges all at once, "
        "as in the paper. The query is in other words than the paper's.",
    ]
    if setup.is_bundled:
        result += [
            "One model of 1.5 billion weights in place of FLAN-T5, LLaMA and GPT-3.5, and 60 "
            "questions in place of 1,000.",
            f"Recorded were {RECORDED_CHECKS.checks} choices an answer (the paper: up to 10), "
            "among distractors that stand in the data.",
        ]
    return result


def _build_charts(tables: ScoreTables, table_1: ReproducedTable) -> list[Chart]:
    """Draw r and its interval of each score, a chart a system."""
    charts = []
    for place, system in enumerate(tables.systems):
        estimates = []
        for row in table_1.rows:
            values = row.cells[place].values
            if values["value"] is not None:
                estimates.append((row.name, values["value"], values["interval"]))
        if estimates:
            charts.append(
                Chart(
                    f"{system.name}: r of each score with the labels",
                    "A bar is the 95 % interval, its line r. 0: no relation.",
                    [interval_bars(estimates)],
                )
            )
    return charts
