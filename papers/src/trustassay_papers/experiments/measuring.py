"""Every variant and ablation of the FEWL paper, as formulas on numbers that were measured once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.calls.backends import Place
from trustassay.data.records import InputError
from trustassay.metric import Assessment, Metric
from trustassay.metrics.fewl import Fewl, maths
from trustassay.runs.execute import execute
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import RunOptions
from trustassay.runs.needs import load_all, named_models, settle
from trustassay.sample import Sample

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Weighting = Literal["single", "uniform", "ours", "ideal", "single-best", "agreement"]


@dataclass(frozen=True)
class Penalty:
    """Mean likeness to each reference's answers to other questions, shape (n, N), and of which
    references there is one.
    """

    values: Floats
    there: Mask


@dataclass(frozen=True)
class Numbers:
    """What is measured of n answers and N references; all arrays have shape (n, N).

    present: which references answered. similarity: of the answer to each reference's. single: the
    one reference that counts where only one does. ours: expertise by wrong and corrected answers;
    ideal: by labelled ones; ability: by agreement over the file; ``None`` where the input has not
    what it is made of. nearest and random: penalties of such neighbours. temperature: of weights
    by expertise.
    """

    ids: Sequence[str]
    names: Sequence[str]
    present: Mask
    single: Mask
    similarity: Floats
    nearest: Penalty
    random: Penalty
    ability: Floats
    ours: Floats | None = None
    ideal: Floats | None = None
    temperature: float = 1.0


class Variant(NamedTuple):
    """One way to score."""

    weights: Weighting
    penalty: Literal["none", "nearest", "random"]
    form: maths.Form
    divergence: maths.Divergence

    @property
    def name(self) -> str:
        """As people read it."""
        penalty = {"none": "no penalty", "nearest": "nearest", "random": "random"}[self.penalty]
        if self.form == "agreement":
            return f"agreement, {penalty}"
        form = () if self.weights in ALONE else (self.form,)
        return ", ".join((self.weights, penalty, *form, self.divergence))

    @property
    def tables(self) -> tuple[int, ...]:
        """The paper's tables that have this row."""
        if self.form != "eq1":
            return ()
        return PUBLISHED.get((self.weights, self.penalty, self.divergence), ())


ALONE = ("single", "single-best")
"""With one reference the forms eq1 and theory are the same."""
PENALTIES: tuple[Literal["none", "nearest", "random"], ...] = ("none", "nearest", "random")
PUBLISHED = {
    ("single", "none", "tv"): (1, 3, 5, 8, 10, 11),
    ("single", "nearest", "tv"): (1, 3, 5, 10, 11),
    ("single", "random", "tv"): (8,),
    ("single-best", "none", "tv"): (11,),
    ("uniform", "none", "tv"): (1, 3, 8, 10, 11),
    ("uniform", "nearest", "tv"): (2, 9),
    ("uniform", "random", "tv"): (8,),
    ("ours", "nearest", "tv"): (1, 2, 3, 4, 9, 10, 11),
    ("ours", "random", "tv"): (8,),
    ("ideal", "nearest", "tv"): (2, 9),
    ("ideal", "random", "tv"): (8,),
    **{
        (weights, penalty, divergence): (12,)
        for divergence in ("js", "kl")
        for weights, penalty in (
            ("single", "none"),
            ("single", "nearest"),
            ("uniform", "none"),
            ("ours", "nearest"),
        )
    },
}


def variants_of(numbers: Numbers) -> list[Variant]:
    """Return all variants that the numbers allow: weights, penalties, forms, divergences."""
    weights: list[Weighting] = ["single", "uniform"]
    if numbers.ours is not None:
        weights += ["single-best", "ours"]
    if numbers.ideal is not None:
        weights.append("ideal")
    forms: tuple[maths.Form, ...] = ("eq1", "theory")
    found = [
        Variant(weighting, penalty, form, divergence)
        for divergence in maths.DIVERGENCES
        for weighting in weights
        for form in (forms[:1] if weighting in ALONE else forms)
        for penalty in PENALTIES
    ]
    return found + [Variant("agreement", penalty, "agreement", "tv") for penalty in PENALTIES]


def scores_of(variant: Variant, numbers: Numbers) -> Floats:
    """Return the score of each answer, shape (n,), as the metric gives it with these options."""
    present, weights = _weighed(variant, numbers)
    penalty = {"none": None, "nearest": numbers.nearest, "random": numbers.random}[variant.penalty]
    return maths.score(
        numbers.similarity,
        weights,
        None if penalty is None else penalty.values,
        divergence=variant.divergence,
        form=variant.form,
        present=present,
        has_penalty=None if penalty is None else penalty.there,
    )


def _weighed(variant: Variant, numbers: Numbers) -> tuple[Mask, Floats]:
    """Return which references count, and their weights."""
    present = numbers.present
    if variant.weights == "single":
        return numbers.single, numbers.single.astype(float)
    if variant.weights == "uniform":
        return present, maths.uniform_weights(present)
    if variant.weights == "agreement":
        return present, maths.ability_weights(numbers.ability, present)
    expertise = numbers.ideal if variant.weights == "ideal" else numbers.ours
    assert expertise is not None  # variants_of offers none without
    if variant.weights == "single-best":
        best = maths.best_alone(expertise, present)
        return best, best.astype(float)
    return present, maths.softmax_weights(expertise, numbers.temperature, present)


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
    wanted = {Place("chat", "references", name): uri for name, uri in named.items()}
    writes = Place("chat", "generator")
    held = await load_all(wanted if generator is None else wanted | {writes: generator})
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
        As :func:`~trustassay.runs.execute.execute`.
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
