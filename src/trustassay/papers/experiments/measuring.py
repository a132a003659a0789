"""Every variant and ablation of the FEWL paper, computed from numbers that are measured once.

Three runs of the metric give all numbers of n answers and N references: one with nearest
neighbours, one with random ones, one with weights by agreement. No variant asks a model again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.calls.backends import BackendKey
from trustassay.core.metric import Assessment, Metric
from trustassay.core.sample import Sample
from trustassay.input.records import InputError
from trustassay.metrics.fewl import Fewl, maths
from trustassay.papers.experiments.answers import RecordSelection
from trustassay.runs.execute import execute
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import RunOptions
from trustassay.runs.needs import choose_backends, load_backends, name_models

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Weighting = Literal["single", "uniform", "ours", "ideal", "single-best", "agreement"]
FAULTY_REASON = "the record is faulty and was skipped"
"""The reason for a sample that the run skipped as faulty, for example without references."""


@dataclass(frozen=True)
class Penalty:
    """Penalties of n answers by N references."""

    values: Floats
    """Mean similarity to the reference's answers to other questions, shape (n, N)."""
    present: Mask
    """Where there is a penalty, shape (n, N)."""


@dataclass(frozen=True)
class FewlArrays:
    """Measurements of n answers by N references; all arrays have shape (n, N)."""

    ids: Sequence[str]
    """The ids of the answers."""
    names: Sequence[str]
    """The names of the references."""
    present: Mask
    """Which references answered."""
    single: Mask
    """The one reference that counts in variants with a single one."""
    similarity: Floats
    """Similarity of the answer to each reference's."""
    nearest: Penalty
    """Penalties by nearest neighbours."""
    random: Penalty
    """Penalties by random neighbours."""
    ability: Floats
    """Expertise by agreement over the file."""
    ours: Floats | None = None
    """Expertise by wrong and corrected answers; ``None`` if the input lacks them."""
    ideal: Floats | None = None
    """Expertise by labelled answers; ``None`` if the input lacks them."""
    temperature: float = 1.0
    """Of the weights by expertise."""


class FewlVariant(NamedTuple):
    """One way to score."""

    weights: Weighting
    penalty: Literal["none", "nearest", "random"]
    form: maths.Form
    divergence: maths.Divergence

    @property
    def name(self) -> str:
        """The name as people read it."""
        penalty = {"none": "no penalty", "nearest": "nearest", "random": "random"}[self.penalty]
        if self.form == "agreement":
            return f"agreement, {penalty}"
        # Not shown where it makes no difference.
        form = () if self.weights in SINGLE_WEIGHTINGS else (self.form,)
        return ", ".join((self.weights, penalty, *form, self.divergence))

    @property
    def tables(self) -> tuple[int, ...]:
        """The paper's tables that have this variant as a row."""
        if self.form != "eq1":
            return ()
        return PUBLISHED_TABLES.get((self.weights, self.penalty, self.divergence), ())


SINGLE_WEIGHTINGS = ("single", "single-best")
"""With one reference the forms eq1 and theory are the same."""
PENALTIES: tuple[Literal["none", "nearest", "random"], ...] = ("none", "nearest", "random")
PUBLISHED_TABLES = {
    # By weights, penalty and divergence: the tables of the paper with this row.
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


def variants_of(numbers: FewlArrays) -> list[FewlVariant]:
    """Return all variants that the numbers allow: weights, penalties, forms, divergences."""
    weights: list[Weighting] = ["single", "uniform"]
    if numbers.ours is not None:
        weights += ["single-best", "ours"]
    if numbers.ideal is not None:
        weights.append("ideal")
    forms: tuple[maths.Form, ...] = ("eq1", "theory")
    variants = [
        FewlVariant(weighting, penalty, form, divergence)
        for divergence in maths.DIVERGENCES
        for weighting in weights
        # One reference: both forms give the same score, so one row is enough.
        for form in (forms[:1] if weighting in SINGLE_WEIGHTINGS else forms)
        for penalty in PENALTIES
    ]
    # Agreement has its own form and divergence.
    return variants + [
        FewlVariant("agreement", penalty, "agreement", "tv") for penalty in PENALTIES
    ]


def scores_of(variant: FewlVariant, numbers: FewlArrays) -> Floats:
    """Return the score of each answer, shape (n,), as the metric gives it with these options."""
    # References that did not answer have no weight.
    present, weights = _select_weights(variant, numbers)
    penalty = {"none": None, "nearest": numbers.nearest, "random": numbers.random}[variant.penalty]
    return maths.score(
        numbers.similarity,
        weights,
        None if penalty is None else penalty.values,
        divergence=variant.divergence,
        form=variant.form,
        present=present,
        has_penalty=None if penalty is None else penalty.present,
    )


def resample_references(
    numbers: FewlArrays, questions: NDArray[np.int64], rng: np.random.Generator
) -> FewlArrays:
    """Return the numbers with references drawn anew, as if each question had been asked again.

    For each question as many references are drawn with replacement as answered; the single one is
    the first that is drawn. All answers to a question get the same references.

    Args:
        questions: the number of each answer's question, shape (n,).
    """
    counts = numbers.present.sum(axis=1)
    draws = rng.random((int(questions.max()) + 1, len(numbers.names)))[questions]
    # Places of the references that answered come first, so that a draw is a place among them.
    places = np.argsort(~numbers.present, axis=1, kind="stable")
    drawn = np.take_along_axis(places, (draws * counts[:, None]).astype(np.int64), axis=1)

    def take(values: Floats) -> Floats:
        return np.take_along_axis(values, drawn, axis=1)

    def take_penalty(penalty: Penalty) -> Penalty:
        return Penalty(take(penalty.values), np.take_along_axis(penalty.present, drawn, axis=1))

    places_used = np.arange(len(numbers.names))
    return replace(
        numbers,
        present=places_used < counts[:, None],
        single=np.tile(places_used == 0, (len(counts), 1)),
        similarity=take(numbers.similarity),
        nearest=take_penalty(numbers.nearest),
        random=take_penalty(numbers.random),
        ability=take(numbers.ability),
        ours=None if numbers.ours is None else take(numbers.ours),
        ideal=None if numbers.ideal is None else take(numbers.ideal),
    )


def _select_weights(variant: FewlVariant, numbers: FewlArrays) -> tuple[Mask, Floats]:
    """Return which references count, and their weights."""
    present = numbers.present
    if variant.weights == "single":
        return numbers.single, numbers.single.astype(float)
    if variant.weights == "uniform":
        return present, maths.uniform_weights(present)
    if variant.weights == "agreement":
        return present, maths.ability_weights(numbers.ability, present)
    expertise = numbers.ideal if variant.weights == "ideal" else numbers.ours
    assert expertise is not None  # `variants_of` returns no such variant without it
    # The reference with the highest expertise, per question.
    if variant.weights == "single-best":
        best = maths.find_best_reference(expertise, present)
        return best, best.astype(float)
    return present, maths.softmax_weights(expertise, numbers.temperature, present)


@dataclass(frozen=True)
class FewlSetup:
    """The models and settings of an experiment on FEWL."""

    references: Sequence[Any] = ()
    """Models as for a run; they are loaded once."""
    generator: Any = None
    """Writes wrong and corrected answers, as for a run."""
    embedder: Any = None
    """Finds neighbours, as for a run."""
    similarities: Sequence[str] = ("cosine",)
    """Each gives a block of rows."""
    metric: Fewl = field(default_factory=Fewl)
    """The options that all variants share."""
    random_neighbours: int | None = None
    """Questions behind the random penalty; ``None``: as many as behind the nearest one."""
    single: str | None = None
    """The reference of the variants with a single one; by default the first that answered."""
    weighs_by_pairs: bool = True
    """Whether the first run measures the weights `ours`; else :func:`measure_expertise` does."""
    options: RunOptions = field(default_factory=RunOptions)
    """The options of the runs."""


@dataclass(frozen=True)
class MeasuredAnswers:
    """What was measured."""

    numbers: Mapping[str, FewlArrays]
    """By similarity."""
    left_out: Mapping[str, str]
    """Why samples are left out, by id."""
    missing: Sequence[str]
    """Sentences on what the input lacks for some variants."""
    runs: Mapping[str, Path]
    """The folder of the first run, by similarity."""


async def load_models(
    references: Sequence[Any], generator: Any = None
) -> tuple[dict[str, Any], Any]:
    """Load the references, by their names in a run, and the generator.

    Raises:
        UnknownNameError, BackendError: a model cannot be loaded.
    """
    uri_by_name = name_models(list(references), "references", many=True)
    backend_by_place = {
        BackendKey("chat", "references", name): uri for name, uri in uri_by_name.items()
    }
    generator_place = BackendKey("chat", "generator")
    # All models are loaded before the first request, so that an error costs nothing.
    models = await load_backends(
        backend_by_place if generator is None else backend_by_place | {generator_place: generator}
    )
    return {
        name: models[BackendKey("chat", "references", name)] for name in uri_by_name
    }, models.get(generator_place)


async def execute_run(
    samples: Sequence[Sample],
    metric: Metric,
    backend_choices: Mapping[str, Any],
    folder: RunFolder,
    options: RunOptions,
) -> dict[str, Assessment]:
    """Score samples into a folder, or continue there; return the assessments by sample id."""
    # Models that the user does not name are optional.
    named_choices = {
        role: choice for role, choice in backend_choices.items() if choice not in (None, {}, [])
    }
    # A missing key is found before the run begins, unless its replies are stored.
    backends = await choose_backends([metric], named_choices, stores=options.stores(folder))
    await execute(samples, [metric], backends, folder, replace(options, report=False))
    return {assessment.id: assessment for assessment in folder.assessments(metric.name)}


async def assess_questions(
    questions: Sequence[Sample],
    records: RecordSelection,
    metric: Metric,
    backend_choices: Mapping[str, Any],
    folder: RunFolder,
    options: RunOptions,
) -> tuple[dict[str, Assessment], dict[str, str]]:
    """Score questions; return the assessments by id, and by id why questions have no score."""
    with records.report_positions(questions):
        assessments = await execute_run(questions, metric, backend_choices, folder, options)
    left_out = {sample.id: FAULTY_REASON for sample in questions if sample.id not in assessments}
    left_out |= {
        key: assessment.error or assessment.reason
        for key, assessment in assessments.items()
        if assessment.score is None
    }
    return assessments, left_out


def errors_of(assessments: Iterable[Assessment]) -> dict[str, str]:
    """Return the errors of the assessments that failed, by sample id."""
    return {
        assessment.id: assessment.error
        for assessment in assessments
        if assessment.error is not None
    }


async def measure(samples: Sequence[Sample], setup: FewlSetup, out: Path) -> MeasuredAnswers:
    """Measure all that the variants need, for every similarity.

    Raises:
        BadInputError: samples lack references, and no models write them.
        InputError: no sample could be scored.
        As :func:`~trustassay.runs.execute.execute`.
    """
    references, generator = await load_models(setup.references, setup.generator)
    # The experiment goes on without the weights that the input does not allow.
    base, missing = _choose_base_metric(samples, setup)
    chat_choices = {"references": references, "generator": generator}
    left_out: dict[str, str] = {}
    numbers: dict[str, FewlArrays] = {}
    runs: dict[str, Path] = {}
    options = setup.options
    for number, similarity in enumerate(setup.similarities, 1):
        other_choices = {"similarity": similarity, "embedder": setup.embedder}
        folder = RunFolder(out / f"{number}-nearest")
        runs[similarity] = folder.path
        # 1. The metric with nearest neighbours. It fills references and pairs, which the runs
        # below reuse.
        first = await execute_run(samples, base, chat_choices | other_choices, folder, options)
        faulty = {sample.id: FAULTY_REASON for sample in samples if sample.id not in first}
        # All variants must be compared on the same samples.
        samples, reasons = _select_scored(folder, first, setup.single)
        left_out |= faulty | reasons
        if not samples:
            raise InputError(
                f"no answer could be scored; reason for the first: {next(iter(reasons.values()))}"
            )
        # Calls of the first run are taken over: the others ask nothing twice.
        options = replace(options, calls_from=folder.calls_path)
        ideal = all(sample.answers and sample.incorrect_answers for sample in samples)
        # 2. The same with random neighbours, and with ideal weights if there are labels.
        random_metric = replace(
            setup.metric,
            weights="ideal" if ideal else "uniform",
            penalty="random",
            neighbours=setup.random_neighbours or setup.metric.neighbours,
        )
        second = await execute_run(
            samples,
            random_metric,
            other_choices,
            RunFolder(out / f"{number}-random"),
            options,
        )
        agreement_metric = replace(
            setup.metric, form="agreement", weights="agreement", penalty="none"
        )
        # 3. Weights by agreement, which need neither neighbours nor pairs.
        third = await execute_run(
            samples,
            agreement_metric,
            {"similarity": similarity},
            RunFolder(out / f"{number}-agreement"),
            options,
        )
        assessments = [(first[s.id], second[s.id], third[s.id]) for s in samples]
        failed = errors_of(assessment for row in assessments for assessment in row)
        # A failure in any of the three runs removes the sample from all of them.
        left_out |= failed
        complete = [row for row in assessments if row[0].id not in failed]
        numbers[similarity] = _build_arrays(complete, base, setup, ideal=ideal)
        # The samples are filled now, so further similarities ask no model.
        chat_choices = {}
    if not ideal:
        # Said once, not for each similarity.
        missing.append(
            "weights `ideal` are not computed: not all samples have `answers` and "
            "`incorrect_answers`"
        )
    return MeasuredAnswers(numbers, left_out, missing, runs)


class MeasuredExpertise(NamedTuple):
    """The weights `ours` of the answers whose questions have wrong and corrected answers."""

    numbers: FewlArrays
    """The numbers with `ours`, which is 0 where there are no pairs; without any, as they were."""
    has_pairs: Mask
    """Of which answers `ours` is known, shape (n,)."""
    errors: Mapping[str, str]
    """Why answers for which pairs were expected have none, by id."""
    samples: Sequence[Sample]
    """The samples with their pairs; those of the first run where no sample can have any."""


async def measure_expertise(
    measured: MeasuredAnswers, setup: FewlSetup, out: Path
) -> MeasuredExpertise:
    """Measure the weights `ours` of answers that were measured without them.

    Answers without pairs keep all other numbers: a generator that fails costs these weights alone.

    Args:
        measured: with one similarity. setup: its generator writes pairs that the samples lack.

    Raises:
        As :func:`~trustassay.runs.execute.execute`.
    """
    ((similarity, numbers),) = measured.numbers.items()
    base = RunFolder(measured.runs[similarity])
    _, generator = await load_models((), setup.generator)
    has_pairs = np.zeros(len(numbers.ids), dtype=bool)
    index_of_id = {key: index for index, key in enumerate(numbers.ids)}
    everyone = [sample for sample in base.samples() if sample.id in index_of_id]
    samples = [
        sample
        for sample in everyone
        if generator is not None or (sample.wrong_answers and sample.corrected_answers)
    ]
    if not samples:
        return MeasuredExpertise(numbers, has_pairs, {}, everyone)
    folder = RunFolder(out)
    assessments = await execute_run(
        samples,
        replace(setup.metric, weights="ours", penalty="none"),
        {"generator": generator, "similarity": similarity},
        folder,
        replace(setup.options, calls_from=base.calls_path),
    )
    ours = np.zeros(numbers.similarity.shape)
    for key, assessment in assessments.items():
        if assessment.score is None:
            continue
        index = index_of_id[key]
        has_pairs[index] = True
        rows = zip(_unique_names(assessment), _reference_rows(assessment), strict=True)
        for name, row in rows:
            ours[index, numbers.names.index(name)] = row["expertise"]
    if has_pairs.any():
        numbers = replace(numbers, ours=ours)
    errors = errors_of(assessments.values())
    return MeasuredExpertise(numbers, has_pairs, errors, list(folder.samples()))


def _choose_base_metric(samples: Sequence[Sample], setup: FewlSetup) -> tuple[Fewl, list[str]]:
    """Return the metric of the first run, and a note if it has no weights `ours`."""
    if not setup.weighs_by_pairs:
        return replace(setup.metric, weights="uniform"), []
    if setup.generator is not None or all(s.wrong_answers and s.corrected_answers for s in samples):
        return replace(setup.metric, weights="ours"), []
    message = (
        "weights `ours` and `single-best` are not computed: not all samples have `wrong_answers` "
        "and `corrected_answers`, and there is no --backend generator=URI"
    )
    return replace(setup.metric, weights="uniform"), [message]


def _select_scored(
    folder: RunFolder, assessments: Mapping[str, Assessment], single: str | None
) -> tuple[list[Sample], dict[str, str]]:
    """Return the samples with a score, filled by the run, and by id why others are left out."""
    samples, reasons = [], {}
    for sample in folder.samples():
        assessment = assessments[sample.id]
        if assessment.error is not None or assessment.score is None:
            reasons[sample.id] = assessment.error or assessment.reason
        # The variants with one reference would lack a score.
        elif single is not None and single not in _unique_names(assessment):
            reasons[sample.id] = f"no answer by the reference {single!r}"
        else:
            samples.append(sample)
    return samples, reasons


def _reference_rows(assessment: Assessment) -> list[Mapping[str, Any]]:
    return [row for row in assessment.evidence if "reference" in row]


def _unique_names(assessment: Assessment) -> list[str]:
    """Return the names of an answer's references; equal names are numbered."""
    names: list[str] = []
    for row in _reference_rows(assessment):
        name = str(row["reference"])
        names.append(name if name not in names else f"{name} ({names.count(name) + 1})")
    return names


def _build_arrays(
    rows: Sequence[tuple[Assessment, Assessment, Assessment]],
    base: Fewl,
    setup: FewlSetup,
    *,
    ideal: bool,
) -> FewlArrays:
    """Return the arrays of the numbers in the evidence of the three runs."""
    columns: dict[str, int] = {}
    for first, _, _ in rows:
        for name in _unique_names(first):
            # A column for each reference that any answer has.
            columns.setdefault(name, len(columns))
    shape = (len(rows), len(columns))
    # Missing references stay False, with similarity 0, which no variant reads.
    present, single = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)

    # One number of every answer and reference.
    def table(run: int, key: str, missing: float = 0.0) -> Floats:
        values = np.full(shape, missing)
        for index, row in enumerate(rows):
            for name, reference_row in zip(
                _unique_names(row[run]), _reference_rows(row[run]), strict=True
            ):
                values[index, columns[name]] = reference_row.get(key, missing)
        return values

    def penalty(run: int) -> Penalty:
        # A penalty of 0 differs from none: no neighbour was near enough.
        values = table(run, "penalty", missing=np.nan)
        return Penalty(np.nan_to_num(values), ~np.isnan(values))

    for index, (first, _, _) in enumerate(rows):
        names = _unique_names(first)
        present[index, [columns[name] for name in names]] = True
        # The requested reference, or the first one that answered this question.
        single[index, columns[setup.single or names[0]]] = True
    return FewlArrays(
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
