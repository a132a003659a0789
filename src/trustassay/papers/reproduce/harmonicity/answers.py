"""The answers behind the tables: read or asked, with gamma, model, domain and rating."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.core.evidence import EvidenceRows
from trustassay.core.labels import read_single_label
from trustassay.core.metric import Assessment
from trustassay.core.sample import Sample
from trustassay.input.ratings import Ratings, read_ratings
from trustassay.input.records import InputError
from trustassay.metrics.harmonicity import Harmonicity
from trustassay.metrics.harmonicity.asking import DEFAULT_EMBEDDER, OriginalAnswer, PerturbedAnswer
from trustassay.papers.experiments.answers import read_records
from trustassay.papers.reproduce.scoring import (
    MAX_RECORDED_TOKENS,
    ModelSamples,
    ScoredSample,
    assign_samples,
    describe_failures,
    describe_left_out,
    open_recorded_model,
    score_samples,
)
from trustassay.papers.reproduce.setup import (
    RATING_SUFFIXES,
    RECORDED,
    ReproductionSetup,
    describe_backend,
)
from trustassay.statistics import Floats
from trustassay.text.numbers import amount, verb

SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
MAX_RATING = 5.0
"""The best rating of the paper's scales (Tables 5 and 6); 0 is the worst."""
RECORDED_PERTURBATIONS = 5
NO_MODEL = "no model named"
MAX_LISTED_ITEMS = 10
"""Items of ratings that a sentence names."""


@dataclass(frozen=True)
class GammaAnswer:
    """An answer with its gamma."""

    sample: Sample
    """The question; its response is the original answer."""
    assessment: Assessment
    rating: float | None = None
    """The mean rating by people, or the label; ``None`` without one."""

    @property
    def gamma(self) -> float:
        """The sine of the angle; 0 is stable."""
        return float(self.assessment.parts["gamma"])

    @property
    def model(self) -> str:
        """The model that answered."""
        return self.sample.model or NO_MODEL

    @property
    def domain(self) -> str:
        """The domain of the question; empty where none is named."""
        return str(self.sample.metadata.get("domain") or "")

    @property
    def answers(self) -> list[PerturbedAnswer]:
        """The answers to the perturbed prompts, in their order."""
        return EvidenceRows(self.assessment.evidence, PerturbedAnswer).select(PerturbedAnswer)


@dataclass(frozen=True)
class RatingsScale:
    """What R is."""

    name: str
    """Where it comes from, as notes name it."""
    is_label: bool
    """Whether it is 0 or 1 instead of 0 to 5."""

    @property
    def symbol(self) -> str:
        """The heading of its column."""
        return "label" if self.is_label else "R"

    @property
    def bounds(self) -> tuple[float, float]:
        """The worst and the best rating."""
        return (0.0, 1.0) if self.is_label else (0.0, MAX_RATING)

    def is_right(self, rating: float | None) -> bool:
        """Whether an answer is rated as right: 4 or 5, or more right than wrong labels."""
        return rating is not None and (rating > 0.5 if self.is_label else rating >= 4)

    def is_wrong(self, rating: float | None) -> bool:
        """Whether an answer is rated as wrong: 2 or less, or more wrong than right labels."""
        return rating is not None and (rating < 0.5 if self.is_label else rating <= 2)


@dataclass(frozen=True)
class GammaAnswers:
    """All answers of a reproduction."""

    answers: Sequence[GammaAnswer]
    samples: Sequence[Sample]
    """All samples of the data, of which some may have no gamma."""
    scale: RatingsScale | None
    """``None`` without any rating."""
    ratings: Ratings | None = None
    """The ratings of the file, if there is one."""
    notes: Sequence[str] = ()

    def by_domain(self) -> dict[str, list[GammaAnswer]]:
        """Return the answers by domain, in the order of the data."""
        result: dict[str, list[GammaAnswer]] = {}
        for answer in self.answers:
            result.setdefault(answer.domain, []).append(answer)
        return result


def collect_answers(setup: ReproductionSetup) -> GammaAnswers:
    """Return the answers of the data, or of the bundled set, with gamma and ratings.

    Raises:
        InputError, BadInputError: the data or the ratings cannot be read, or do not fit.
        BackendError, UsageError: a model or the embedder cannot be loaded.
    """
    samples = read_data(setup)
    left_out: Mapping[str, int] = {}
    if setup.models:
        parts, left_out = assign_samples(_drop_foreign_answers(samples, setup), setup.models)
    else:
        parts = [ModelSamples("", None, samples)]
    parts = [_drop_unused_labels(part) for part in parts]
    to_score = [sample for part in parts for sample in part.samples]
    # Before any model is asked: what is wrong with the ratings must not cost calls.
    ratings_path = setup.find_ratings()
    ratings: Ratings | None = None
    notes = describe_left_out(left_out)
    if ratings_path is None:
        _check_labels(to_score)
    else:
        ratings = _read_file_of_ratings(ratings_path)
        notes += _check_ratings(ratings_path, ratings, to_score)
    scored: list[ScoredSample] = []
    for number, part in enumerate(parts, 1):
        scored += _score_part(part, setup, f"answers-{number}")
    notes += describe_failures(scored)
    usable = [one for one in scored if one.assessment.score is not None]
    if ratings is None:
        values = [read_single_label(one.sample.label) for one in usable]
    else:
        values = _average_raters(ratings, usable)
    answers = [
        GammaAnswer(_with_original(one), one.assessment, value)
        for one, value in zip(usable, values, strict=True)
    ]
    scale = None
    if ratings is not None or any(value is not None for value in values):
        name = ratings_path.name if ratings_path else "label"
        scale = RatingsScale(name, is_label=_are_labels(values))
    if not answers:
        raise InputError(f"{setup.data or 'bundled set'}: no answer could be scored; {notes[-1]}")
    return GammaAnswers(answers, samples, scale, ratings, notes)


def read_data(setup: ReproductionSetup) -> list[Sample]:
    """Return the samples of the data; a folder has one file, or one for each domain.

    Raises:
        InputError: there is no such file or folder, or it has no file of samples.
    """
    if setup.is_bundled:
        return read_records(RECORDED / "answers.jsonl", setup.selection)
    assert setup.data is not None
    path = setup.find_file(
        *(f"{stem}{end}" for stem in ("answers", "questions") for end in SUFFIXES)
    )
    if path is not None:
        return read_records(path, setup.selection)
    rating_files = {f"ratings{suffix}" for suffix in RATING_SUFFIXES}
    paths = sorted(
        path
        for path in setup.data.iterdir()
        if path.suffix in SUFFIXES and path.is_file() and path.name not in rating_files
    )
    if not paths:
        raise InputError(
            f"{setup.data}: expected answers.jsonl or questions.jsonl, or one file per domain "
            f"({', '.join(SUFFIXES)}), with question; recorded answers also have response, model "
            "and resamples; ratings.csv (item, rater, rating) gives R"
        )
    samples = []
    for path in paths:
        for sample in read_records(path, setup.selection):
            # The file names the domain where the sample does not.
            domain = sample.metadata.get("domain") or path.stem
            samples.append(replace(sample, metadata={**sample.metadata, "domain": domain}))
    return samples


def _drop_foreign_answers(samples: Sequence[Sample], setup: ReproductionSetup) -> list[Sample]:
    """Return samples without answers that cannot be the model's that is asked."""
    if setup.is_bundled:
        # The user's models are asked the bundled questions, whoever answered them.
        return [replace(s, model=None, response=None, label=None, resamples=()) for s in samples]
    if len(setup.models) == 1:
        return list(samples)
    # Of several models none can be taken for the author of an answer that names nobody.
    return [s if s.model else replace(s, response=None, label=None, resamples=()) for s in samples]


def _score_part(part: ModelSamples, setup: ReproductionSetup, name: str) -> list[ScoredSample]:
    recorded = setup.is_bundled and not setup.models
    backends = dict(setup.backends)
    if recorded:
        # Options and seed equal those of the recording: another prompt has no recorded reply.
        metric = Harmonicity(
            perturbations=RECORDED_PERTURBATIONS,
            prompt=str(RECORDED / "question.jinja"),
            max_tokens=MAX_RECORDED_TOKENS,
            original="response",
        )
        backends["model"] = open_recorded_model()
    else:
        # The paper asks for the original answer, too; one in the data is that answer.
        metric = Harmonicity(
            original="response" if _has_all_answers(part) else "ask", seed=setup.seed
        )
        if part.model is not None:
            backends["model"] = part.model
    return score_samples(part.samples, metric, setup, name, backends, recorded=recorded)


def _drop_unused_labels(part: ModelSamples) -> ModelSamples:
    """Return the samples without labels of answers that are asked for anew.

    A label is about the answer in the data, not about the one that the model gives now.
    """
    if _has_all_answers(part):
        return part
    samples = [s if s.resamples else replace(s, label=None) for s in part.samples]
    return replace(part, samples=samples)


def _has_all_answers(part: ModelSamples) -> bool:
    """Whether the data have every original answer; else the model gives all of them."""
    return all(sample.answered for sample in part.samples)


def _with_original(one: ScoredSample) -> Sample:
    """Return the sample with the original answer as its response."""
    originals = EvidenceRows(one.assessment.evidence, OriginalAnswer).select(OriginalAnswer)
    return replace(one.sample, response=originals[-1].original if originals else None)


def _check_labels(samples: Sequence[Sample]) -> None:
    """Raise InputError if a label is not from 0 to 5."""
    for sample in samples:
        label = read_single_label(sample.label)
        if label is not None and not 0 <= label <= MAX_RATING:
            raise InputError(
                f"{sample.id}: label: {label:g} is not from 0 to {MAX_RATING:g} (1 for right "
                "and 0 for wrong, or a rating by the paper's Tables 5 and 6)"
            )


def _are_labels(values: Sequence[float | None]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and max(present) <= 1


def _read_file_of_ratings(path: Path) -> Ratings:
    """Return the ratings of a file; raise InputError if they are not numbers from 0 to 5."""
    ratings = read_ratings(path)
    if ratings.categories:
        raise InputError(
            f"{path}: rating: expected numbers from 0 to {MAX_RATING:g} (Tables 5 and 6), got "
            f"{', '.join(ratings.categories)[:100]}"
        )
    for one in ratings.ratings:
        if not 0 <= one.value <= MAX_RATING:
            raise InputError(
                f"{path}: item {one.item}, rater {one.rater}: rating {one.value:g} is not from 0 "
                f"to {MAX_RATING:g} (Tables 5 and 6)"
            )
    return ratings


def _check_ratings(path: Path, ratings: Ratings, samples: Sequence[Sample]) -> list[str]:
    """Return sentences on ratings of no answer, and on answers without a rating.

    Raises:
        InputError: no item is in the data, or it is not clear which model's answer was rated.
    """
    models_by_item: defaultdict[str, set[str]] = defaultdict(set)
    for sample in samples:
        models_by_item[sample.id].add(sample.model or "")
    rated: set[tuple[str, str]] = set()
    unknown: Counter[str] = Counter()
    for rating in ratings.ratings:
        models = models_by_item.get(rating.item, set())
        if not rating.model and len(models) > 1:
            raise InputError(
                f"{path}: item {rating.item} has answers of {amount(len(models), 'model')}; "
                "expected a column model that names the model of the rated answer"
            )
        model = rating.model or next(iter(models), "")
        if model in models:
            rated.add((rating.item, model))
        else:
            unknown[f"{rating.item} of model {model}" if model else rating.item] += 1
    if not rated:
        raise InputError(
            f"{path}: no item is the id of an answer in the data; the first item is "
            f"{next(iter(unknown), 'missing')}, the first id in the data is {samples[0].id}"
        )
    sentences = []
    if unknown:
        names = ", ".join(list(unknown)[:MAX_LISTED_ITEMS])
        more = ", …" if len(unknown) > MAX_LISTED_ITEMS else ""
        sentences.append(
            f"Left out: {amount(unknown.total(), 'rating')} of {amount(len(unknown), 'item')} "
            f"that {verb(len(unknown), 'is', 'are')} not in the data: {names}{more}."
        )
    if unrated := len({(s.id, s.model or "") for s in samples} - rated):
        sentences.append(f"{unrated:,} of {amount(len(samples), 'answer')} without a rating.")
    return sentences


def _average_raters(ratings: Ratings, scored: Sequence[ScoredSample]) -> list[float | None]:
    """Return the mean over raters for each answer; a rater's repeats are averaged first.

    ratings: as :func:`_check_ratings` accepts them.
    """
    model_by_item = {one.sample.id: one.sample.model or "" for one in scored}
    by_answer: defaultdict[tuple[str, str], defaultdict[str, list[float]]]
    by_answer = defaultdict(lambda: defaultdict(list))
    for rating in ratings.ratings:
        model = rating.model or model_by_item.get(rating.item, "")
        by_answer[rating.item, model][rating.rater].append(rating.value)
    means = []
    for one in scored:
        raters = by_answer.get((one.sample.id, one.sample.model or ""))
        means.append(
            float(np.mean([np.mean(values) for values in raters.values()])) if raters else None
        )
    return means


def tabulate_ratings(ratings: Ratings, answers: Sequence[GammaAnswer]) -> tuple[list[str], Floats]:
    """Return the raters of some answers and their first ratings, shape (raters, answers)."""
    places = {(answer.sample.id, answer.sample.model or ""): n for n, answer in enumerate(answers)}
    without_model: dict[str, int] = {answer.sample.id: n for n, answer in enumerate(answers)}
    rows: defaultdict[str, Floats] = defaultdict(lambda: np.full(len(answers), np.nan))
    counts: Counter[tuple[str, int]] = Counter()
    for rating in ratings.ratings:
        place = (
            places.get((rating.item, rating.model))
            if rating.model
            else without_model.get(rating.item)
        )
        if place is None:
            continue
        counts[rating.rater, place] += 1
        if counts[rating.rater, place] == 1:
            rows[rating.rater][place] = rating.value
    names = sorted(rows)
    return names, np.array([rows[name] for name in names]).reshape(len(names), len(answers))


def describe_perturbations(answers: Sequence[GammaAnswer]) -> str:
    """Return how many perturbed prompts are behind each gamma: N of the paper."""
    counts = sorted({int(answer.assessment.parts["perturbations"]) for answer in answers})
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def find_embedder(setup: ReproductionSetup) -> Any:
    """Return the embedder of the setup, or the default one."""
    return setup.backends.get("embedder", DEFAULT_EMBEDDER)


def name_embedder(setup: ReproductionSetup) -> str:
    """Return the URI or the name of the embedder."""
    return describe_backend(find_embedder(setup))
