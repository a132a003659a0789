"""Runs of an experiment: everything is asked once, then all that variants need is measured.

Three runs of the metric ``fewl`` for each similarity lie in the experiment's folder. The first asks
references and generator, and its samples hold what they said; the others start from its samples
and calls, so they ask nobody. Each is stored and resumed as any run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.calls.backends import Place
from trustassay.data.records import InputError
from trustassay.metric import Assessment, Metric
from trustassay.metrics.fewl import Fewl
from trustassay.runs.folder import RunFolder
from trustassay.runs.options import RunOptions
from trustassay.runs.run import execute
from trustassay.runs.settling import load_all, named_models, settle
from trustassay.sample import Sample
from trustassay.workflows.experiments.variants import Numbers, Penalty

__all__ = ["FAULTY", "Measured", "Setup", "execute_run", "load_models", "measure"]


FAULTY = "is skipped as faulty"
"""Why a sample without references, say, is left out where faulty ones are skipped."""


@dataclass(frozen=True)
class Setup:
    """What is asked, and by what is compared.

    references, generator, embedder: as for a run; models are loaded once. similarities: each
    gives a block of rows. metric: the options that all variants share. single: the reference that
    counts where one alone does; by default the first that answered. options: how runs are made.
    """

    references: Sequence[Any] = ()
    generator: Any = None
    embedder: Any = None
    similarities: Sequence[str] = ("cosine",)
    metric: Fewl = field(default_factory=Fewl)
    single: str | None = None
    options: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True)
class Measured:
    """The numbers by similarity, and why samples are left out, by id.

    missing: what the input lacks for some variants, in sentences.
    """

    numbers: Mapping[str, Numbers]
    left_out: Mapping[str, str]
    missing: Sequence[str]
    runs: Mapping[str, Path]


async def load_models(
    references: Sequence[Any], generator: Any = None
) -> tuple[dict[str, Any], Any]:
    """Load the references, by the names that they have in a run, and the generator.

    Raises:
        UnknownNameError, BackendError: a model cannot be loaded.
    """
    named = named_models(list(references), "references", many=True)
    wanted = {Place("chat", "references", name): ("chat", uri) for name, uri in named.items()}
    writes = Place("chat", "generator")
    held = await load_all(wanted if generator is None else wanted | {writes: ("chat", generator)})
    return {name: held[Place("chat", "references", name)] for name in named}, held.get(writes)


async def execute_run(
    samples: Sequence[Sample],
    metric: Metric,
    named: Mapping[str, Any],
    folder: RunFolder,
    options: RunOptions,
) -> dict[str, Assessment]:
    """Score samples into a folder, or go on there; return the assessments by the sample's id."""
    chosen = {word: choice for word, choice in named.items() if choice not in (None, {}, [])}
    backends = await settle([metric], chosen)
    await execute(samples, [metric], backends, folder, replace(options, report=False))
    return {one.id: one for one in folder.assessments(metric.name)}


async def measure(samples: Sequence[Sample], setup: Setup, out: Path) -> Measured:
    """Measure all that the variants need, for every similarity.

    Raises:
        BadInputError: samples lack references, and none are asked.
        InputError: no sample could be scored.
        As :func:`~trustassay.runs.run.execute`.
    """
    references, generator = await load_models(setup.references, setup.generator)
    base, missing = _base_metric(samples, setup)
    asked = {"references": references, "generator": generator}
    left_out: dict[str, str] = {}
    numbers: dict[str, Numbers] = {}
    runs: dict[str, Path] = {}
    options = setup.options
    for place, similarity in enumerate(setup.similarities, 1):
        named = {"similarity": similarity, "embedder": setup.embedder}
        folder = RunFolder(out / f"{place}-nearest")
        runs[similarity] = folder.path
        first = await execute_run(samples, base, asked | named, folder, options)
        faulty = {one.id: FAULTY for one in samples if one.id not in first}
        samples, reasons = _scored(folder, first, setup.single)
        left_out |= faulty | reasons
        if not samples:
            raise InputError(
                f"no answer could be scored; the first: {next(iter(reasons.values()))}"
            )
        options = replace(options, calls_from=folder.calls_path)
        ideal = all(one.answers and one.incorrect_answers for one in samples)
        second = await execute_run(
            samples,
            replace(setup.metric, weights="ideal" if ideal else "uniform", penalty="random"),
            named,
            RunFolder(out / f"{place}-random"),
            options,
        )
        agreed = replace(setup.metric, form="agreement", weights="agreement", penalty="none")
        third = await execute_run(
            samples,
            agreed,
            {"similarity": similarity},
            RunFolder(out / f"{place}-agreement"),
            options,
        )
        found = [(first[s.id], second[s.id], third[s.id]) for s in samples]
        failed = {one.id: one.error for row in found for one in row if one.error is not None}
        left_out |= failed
        kept = [row for row in found if row[0].id not in failed]
        numbers[similarity] = _numbers(kept, base, setup, ideal=ideal)
        asked = {}
    if not ideal:
        missing.append("no weights `ideal`: not all samples have `answers` and `incorrect_answers`")
    return Measured(numbers, left_out, missing, runs)


def _base_metric(samples: Sequence[Sample], setup: Setup) -> tuple[Fewl, list[str]]:
    """Return the metric of the first run, and why it leaves weights out."""
    if setup.generator is not None or all(s.wrong_answers and s.corrected_answers for s in samples):
        return replace(setup.metric, weights="ours"), []
    words = (
        "no weights `ours` and `single-best`: not all samples have `wrong_answers` and "
        "`corrected_answers`, and there is no --generator"
    )
    return replace(setup.metric, weights="uniform"), [words]


def _scored(
    folder: RunFolder, assessments: Mapping[str, Assessment], single: str | None
) -> tuple[list[Sample], dict[str, str]]:
    """Return the samples that can be compared, filled as they were asked, and why others not."""
    samples, reasons = [], {}
    for sample in folder.samples():
        one = assessments[sample.id]
        if one.error is not None or one.score is None:
            reasons[sample.id] = one.error or one.reason
        elif single is not None and single not in _shown(one):
            reasons[sample.id] = f"has no answer of the reference {single!r}"
        else:
            samples.append(sample)
    return samples, reasons


def _rows(one: Assessment) -> list[Mapping[str, Any]]:
    return [row for row in one.evidence if "reference" in row]


def _shown(one: Assessment) -> list[str]:
    """Return the references of an answer by their names; equal names are numbered."""
    names: list[str] = []
    for row in _rows(one):
        name = str(row["reference"])
        names.append(name if name not in names else f"{name} ({names.count(name) + 1})")
    return names


def _numbers(
    rows: Sequence[tuple[Assessment, Assessment, Assessment]],
    base: Fewl,
    setup: Setup,
    *,
    ideal: bool,
) -> Numbers:
    """Return the numbers in the evidence of the three runs."""
    columns: dict[str, int] = {}
    for first, _, _ in rows:
        for name in _shown(first):
            columns.setdefault(name, len(columns))
    shape = (len(rows), len(columns))
    present, single = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)

    def table(run: int, key: str) -> Any:
        found = np.zeros(shape)
        for place, row in enumerate(rows):
            for name, one in zip(_shown(row[run]), _rows(row[run]), strict=True):
                found[place, columns[name]] = one.get(key, 0.0)
        return found

    def penalty(run: int) -> Penalty:
        there = np.zeros(shape, dtype=bool)
        for place, row in enumerate(rows):
            for name, one in zip(_shown(row[run]), _rows(row[run]), strict=True):
                there[place, columns[name]] = "penalty" in one
        return Penalty(table(run, "penalty"), there)

    for place, (first, _, _) in enumerate(rows):
        names = _shown(first)
        present[place, [columns[name] for name in names]] = True
        single[place, columns[setup.single or names[0]]] = True
    return Numbers(
        [first.id for first, _, _ in rows],
        list(columns),
        present,
        single,
        table(0, "similarity"),
        penalty(0),
        penalty(1),
        ability=table(2, "expertise"),
        ours=table(0, "expertise") if base.weighting == "ours" else None,
        ideal=table(1, "expertise") if ideal else None,
        temperature=setup.metric.temperature,
    )
