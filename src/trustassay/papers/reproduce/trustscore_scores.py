"""The scores of Table 1 of TrustScore (Zheng et al. 2024) by system, as far as they are computable.

What a score needs beside the answers, a library or a model, is named where it is missing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from trustassay.calls.capability import capability
from trustassay.core.event_loop import run_anywhere
from trustassay.core.metric import Metric
from trustassay.core.sample import Sample, question_key
from trustassay.errors import UsageError
from trustassay.input.labels import read_labels
from trustassay.input.records import InputError
from trustassay.metrics.consistency import Consistency
from trustassay.metrics.factcheck import FactCheck
from trustassay.metrics.reference import Reference
from trustassay.metrics.reference.measures import explain_missing
from trustassay.metrics.reference.metric import golds_of
from trustassay.metrics.trustscore.metric import trust_ov
from trustassay.papers.reproduce.scoring import (
    ModelSamples,
    ScoredSample,
    assign_samples,
    describe_failures,
    describe_left_out,
    open_recorded_model,
    score_samples,
)
from trustassay.papers.reproduce.setup import ReproductionSetup
from trustassay.runs.folder import RunFolder
from trustassay.runs.needs import Unloaded, choose_backends, name_models
from trustassay.statistics import Floats, Places
from trustassay.statistics.resampling import cluster_numbers
from trustassay.text.numbers import amount

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
KINDS: Mapping[Reads, str] = {
    "gold answers": "reference-based",
    "the question": "without evidence",
    "evidence": "with evidence",
}
"""By what a score reads, the group of its row in the paper."""
OF_MODELS = (
    "the paper publishes no scores of single answers, and names only the model behind GPTScore"
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
LEXICAL = ("em", "bleu_1", "bleu_4", "rouge_l", "meteor")
LIKELIHOODS: Mapping[str, str] = {
    "bartscore": "needs --backend judge=bartscore=hf:MODEL (for example facebook/bart-large-cnn)",
    "gptscore": "needs --backend judge=gptscore=hf:MODEL (the paper used google/flan-t5-base)",
}
"""By family, why it is missing: the option that gives its model."""
BERTSCORE_MODEL = "needs --backend token-embedder=hf:MODEL (usually roberta-large)"
USED_BACKENDS = frozenset(
    "token_embedder judge retriever entailer generator distractors linker".split()
)
NO_GOLDS = "no answer in the data has gold answers (answers)"
NO_EVIDENCE = "needs passages: documents in the data, or --backend retriever=bm25:FOLDER"


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
            f"{source}: no answer has a label; expected label (or human_eval): 1 if people call "
            "the answer right, 0 if they call it wrong"
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


@dataclass(frozen=True)
class PlannedRun:
    """A run that asks models: what it scores, how, and by whom."""

    name: str
    """Of its folder."""
    title: str
    """The row of Table 1 that it gives."""
    samples: Sequence[Sample]
    metric: Metric
    backends: Mapping[str, Any]
    part: str = ""
    """The part of the metric that is the row's score; empty for its score."""
    system: str = ""
    """The model that is asked about its answers; empty for a run over all systems."""
    is_recorded: bool = False

    def score(self, setup: ReproductionSetup, tables: ScoreTables) -> list[ScoredSample]:
        """Score its samples, add the scores to the tables, and say which could not be scored."""
        scored = score_samples(
            self.samples,
            self.metric,
            setup,
            self.name,
            self.backends,
            recorded=self.is_recorded,
        )
        tables.add(self.title, scored, self.part)
        name = f"{self.title}, {self.system}" if self.system else self.title
        tables.notes += [f"{name}: {line}" for line in describe_failures(scored)]
        if unassessed := describe_unassessed(scored):
            tables.notes.append(f"{name}: {unassessed}.")
        return scored


def describe_unassessed(scored: Sequence[ScoredSample]) -> str:
    """Say how many answers have no score without an error, and why the first has none."""
    without = [
        one.assessment
        for one in scored
        if one.assessment.error is None and one.assessment.score is None
    ]
    if not without:
        return ""
    reason = without[0].reason.removeprefix("not assessable: ")
    count = f"{len(without):,} of {amount(len(scored), 'answer')}"
    return f"{count} not assessable; reason for the first: {reason}"


def compute_scores(
    setup: ReproductionSetup, tables: ScoreTables, samples: Sequence[Sample]
) -> None:
    """Add all scores that can be computed, and say what the others need.

    Raises:
        BadInputError, UsageError, BackendError: a model cannot be used, or is not one of the data's
            systems; no answer was scored yet.
    """
    likelihoods = _plan_likelihoods(setup, tables, samples)
    choices = _plan_consistency(setup, tables, samples)
    facts = _plan_facts(setup, tables, samples)
    check_models(setup, [*likelihoods, *choices, *facts])
    _score_lexical(setup, tables, samples)
    for run in likelihoods:
        run.score(setup, tables)
    _score_trust(setup, tables, choices, facts)


def check_models(setup: ReproductionSetup, runs: Sequence[PlannedRun]) -> None:
    """Check that the models of all runs can be used, before any is asked.

    Raises:
        UsageError, BackendError: one cannot be, or its key is missing.
    """
    for run in runs:
        stores = setup.options.stores(RunFolder(setup.folder / run.name))
        chosen = run_anywhere(
            partial(choose_backends, [run.metric], run.backends, stores=stores, load=False)
        )
        for place, backend in chosen.by_key.items():
            # Whether a module has the function is only known when it is imported.
            if isinstance(backend, Unloaded) and backend.name.startswith("python:"):
                capability(place.capability).load(backend.name)


def assign_models(
    setup: ReproductionSetup, tables: ScoreTables, samples: Sequence[Sample]
) -> Sequence[ModelSamples]:
    """Return the answers of each model, and note and list those of models that are not given."""
    if len(setup.models) > 1 and any(not sample.model for sample in samples):
        raise InputError(
            "several --model, but answers without the field model; expected the name of the "
            "model that gave the answer"
        )
    models, left_out = assign_samples(samples, setup.models)
    tables.notes += [f"Trust_BC and Trust_OV: {line}" for line in describe_left_out(left_out)]
    for name in left_out:
        tables.missing[f"Trust_BC and Trust_OV of {name}"] = f"needs its model: --model {name}=URI"
    return models


def name_likelihood_models(setup: ReproductionSetup) -> Mapping[str, Any]:
    """Return the models of BARTScore and GPTScore by family.

    Raises:
        UsageError: one of them is named otherwise.
    """
    choices = setup.backends.get("judge") or []
    models = name_models(choices if isinstance(choices, list) else [choices], "judge", many=True)
    if strange := [name for name in models if name not in LIKELIHOODS]:
        raise UsageError(
            f"--backend judge: expected bartscore=URI or gptscore=URI, got {strange[0][:60]!r}; "
            "for the model of the fact check use --judge URI"
        )
    return models


def _score_lexical(
    setup: ReproductionSetup, tables: ScoreTables, samples: Sequence[Sample]
) -> None:
    """Score by the measures of common words, as the paper computed them."""
    rows = [row for row in TABLE_1 if row.part in LEXICAL]
    with_golds = [sample for sample in samples if golds_of(sample)]
    for row in rows:
        reason = explain_missing(row.part, PAPER_RECIPE) if with_golds else NO_GOLDS
        if reason:
            tables.missing[row.title] = reason.removeprefix(f"{row.part}: ")
    computable = [row for row in rows if row.title not in tables.missing]
    # METEOR in a run of its own: where its data is faulty, the others are still scored.
    for name, parts in (("reference", LEXICAL[:-1]), ("meteor", LEXICAL[-1:])):
        of_run = [row for row in computable if row.part in parts]
        if not of_run:
            continue
        metric = Reference(
            parts="+".join(row.part for row in of_run), score=of_run[0].part, recipe=PAPER_RECIPE
        )
        scored = score_samples(with_golds, metric, setup, name, {})
        for row in of_run:
            tables.add(row.title, scored, row.part)
        tables.notes += describe_failures(scored)


def _plan_likelihoods(
    setup: ReproductionSetup, tables: ScoreTables, samples: Sequence[Sample]
) -> list[PlannedRun]:
    """Plan the measures that need a model on this machine, as far as it is given."""
    models = name_likelihood_models(setup)
    retriever = setup.backends.get("retriever")
    with_golds = [sample for sample in samples if golds_of(sample)]
    readable: Mapping[Reads, Sequence[Sample]] = {
        "gold answers": with_golds,
        "the question": samples,
        "evidence": [s for s in samples if retriever or s.documents],
    }
    runs = []
    for row in TABLE_1:
        family = row.part.partition("_")[0]
        if family not in LIKELIHOODS and family != "bertscore":
            continue
        backends: dict[str, Any] = {}
        if family == "bertscore" and "token_embedder" in setup.backends:
            backends["token_embedder"] = setup.backends["token_embedder"]
        elif family in models:
            backends["judge"] = {family: models[family]}
        if not backends:
            tables.missing[row.title] = LIKELIHOODS.get(family, BERTSCORE_MODEL)
        elif not readable[row.reads]:
            tables.missing[row.title] = NO_GOLDS if row.reads == "gold answers" else NO_EVIDENCE
        else:
            if row.reads == "evidence" and retriever:
                backends["retriever"] = retriever
            metric = Reference(parts=row.part, score=row.part)
            runs.append(
                PlannedRun(
                    row.part, row.title, readable[row.reads], metric, backends, part=row.part
                )
            )
    return runs


def _plan_consistency(
    setup: ReproductionSetup, tables: ScoreTables, samples: Sequence[Sample]
) -> list[PlannedRun]:
    """Plan Trust_BC, a run for each model; the bundled replies are of one.

    Raises:
        InputError, UsageError: a model fits no answer, or distractors are asked for without one.
    """
    title = "Trust_BC"
    backends = _select_backends(setup, "generator", "distractors", "linker")
    if backends and not setup.models:
        raise UsageError(
            f"--backend {next(iter(backends))}: only the distractors of Trust_BC use it, and "
            "Trust_BC needs --model"
        )
    if setup.is_bundled and not setup.models:
        recorded = {"model": open_recorded_model()}
        name = "consistency"
        return [PlannedRun(name, title, samples, RECORDED_CHECKS, recorded, is_recorded=True)]
    if not setup.models:
        tables.missing[title] = "needs the model that gave the answers: --model NAME=URI"
        return []
    runs = []
    for number, part in enumerate(assign_models(setup, tables, samples), 1):
        has_distractors = all(sample.wrong_answers for sample in part.samples)
        metric = Consistency(sources="given" if has_distractors else None)
        of_model = {**backends, "model": part.model}
        name = f"consistency-{number}"
        runs.append(PlannedRun(name, title, part.samples, metric, of_model, system=part.name))
    return runs


def _plan_facts(
    setup: ReproductionSetup, tables: ScoreTables, samples: Sequence[Sample]
) -> list[PlannedRun]:
    """Plan Trust_FC, one run over all systems; none without passages.

    Raises:
        UsageError: an entailer is given beside a judge, which takes its place.
    """
    if setup.judge is not None and "entailer" in setup.backends:
        raise UsageError(
            "--backend entailer: --judge replaces it in the fact check; give only one of them"
        )
    backends = _select_backends(setup, "retriever", "entailer")
    if not ("retriever" in backends or any(sample.documents for sample in samples)):
        tables.missing["Trust_FC"] = NO_EVIDENCE
        return []
    metric = FactCheck()
    if setup.judge is not None:
        metric = FactCheck(by="model")
        backends["judge"] = setup.judge
    return [PlannedRun("factcheck", "Trust_FC", samples, metric, backends)]


def _score_trust(
    setup: ReproductionSetup,
    tables: ScoreTables,
    choice_runs: Sequence[PlannedRun],
    fact_runs: Sequence[PlannedRun],
) -> None:
    """Score by Trust_BC, Trust_FC and, of answers that have both, Trust_OV."""
    choices: dict[str, str | None] = {}
    for run in choice_runs:
        scored = run.score(setup, tables)
        choices |= {one.sample.id: one.assessment.verdict for one in scored}
        if not any(one.assessment.verdict for one in scored):
            reason = describe_unassessed(scored) or describe_failures(scored)[0].rstrip(".")
            of = f" of {run.system}" if run.system else ""
            tables.missing[f"Trust_BC and Trust_OV{of}"] = reason
    verdicts: dict[str, Any] = {}
    for run in fact_runs:
        scored = run.score(setup, tables)
        verdicts |= {one.sample.id: one.assessment.verdict for one in scored}
    if not (choice_runs and fact_runs):
        absent = [title for title in ("Trust_BC", "Trust_FC") if title in tables.missing]
        tables.missing["Trust_OV"] = f"needs {' and '.join(absent)}"
        return
    for system in tables.systems:
        for sample in system.samples:
            verdict, choice = verdicts.get(sample.id), choices.get(sample.id)
            # Where one part is not assessable, neither is the whole.
            if verdict and choice:
                system.verdicts[sample.id] = verdict, choice == "consistent"
        system.scores["Trust_OV"] = {
            key: trust_ov(verdict, consistent=consistent)
            for key, (verdict, consistent) in system.verdicts.items()
        }


def _select_backends(setup: ReproductionSetup, *names: str) -> dict[str, Any]:
    return {name: setup.backends[name] for name in names if name in setup.backends}
