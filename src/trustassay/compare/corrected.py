"""The share of right answers, from what a metric says of all and people of some, for all commands
(the estimates: :mod:`trustassay.statistics.corrected`)."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.compare.pairing import read_keys
from trustassay.compare.run_scores import RunScores, changed_judges, read_finished_run, read_scores
from trustassay.core.outcome import PASSED, SCORED
from trustassay.data.ratings import Rating, read_ratings
from trustassay.data.records import InputError
from trustassay.errors import UsageError
from trustassay.runs.counts import UNIT, domain_of, unit_keys
from trustassay.runs.folder import RunFolder, metric_infos
from trustassay.show.text import ends_text
from trustassay.statistics import Bools, Floats, Places
from trustassay.statistics.corrected import (
    Rate,
    difference_of_rates,
    prediction_powered,
    rank_sum_z,
    rogan_gladen,
    strata_of,
)
from trustassay.statistics.intervals import FEWEST, Interval, too_few
from trustassay.statistics.resampling import generator
from trustassay.text.words import amount
from trustassay.workflows.json_form import JsonForm
from trustassay.workflows.label.population import LabelSource, read_labels, read_population

RIGHT = "right"
"""The name of the corrected share as a figure: ``METRIC.right``."""
STRATIFIED, ERRORS = "stratified by outcome", "Rogan-Gladen"
FEWEST_LABELS = 5
"""Labels that an outcome needs, if it has so many answers (benchmarks/results/corrected.json)."""
UNLIKE = 3.29
"""Standard errors from which labelled answers are no random sample of theirs: p = 0.001."""


@dataclass(frozen=True)
class LabelFiles(LabelSource):
    """Labels of some answers; of: whose answers these are, if they are no sample of the others."""

    of: Path | None = None

    @classmethod
    def from_options(cls, **options: Any) -> "LabelFiles | None":
        """Return the options of a command (``GivenLabels``); ``None`` without any; UsageError: one
        without a file."""
        if options and not options.get("labels"):
            raise UsageError(
                "--labels-of, --at-least, --positive and --label-field are about --labels: name it"
            )
        named = [options.get(name) for name in ("right_from", "right_words", "label_columns")]
        of = options.get("labels_of") and Path(options["labels_of"])
        files = [Path(one) for one in options.get("labels", ())]
        return cls(files, "", named[0], named[1] or (), named[2], False, of) if files else None


@dataclass(frozen=True)
class CorrectedRate(JsonForm):
    """The share of right answers of a run or of a group, from 0 to 1, of all its answers.

    labels, right: how many labels there are, and how many of them mean right. passed: the share of
    answers that pass by the metric, if it draws a line. value: ``None`` where ``without`` says why
    there is none. strata: by outcome, the answers and the labels.
    """

    json_names = "name method answers labels right passed value interval without strata".split()

    name: str
    method: str
    answers: int
    labels: int
    right: int
    passed: float | None
    strata: Mapping[str, tuple[int, int]]
    value: float | None = None
    interval: Interval | None = None
    without: str = ""
    rate: Rate | None = None


@dataclass(frozen=True)
class RateChange(JsonForm):
    """The second of two corrected shares less the first, by name; from -1 to 1."""

    first: str
    second: str
    value: float
    interval: Interval | None


@dataclass(frozen=True)
class Corrected(JsonForm):
    """The corrected shares by one metric, and their differences; notes: what has to be true."""

    metric: str
    rates: Sequence[CorrectedRate]
    differences: Sequence[RateChange]
    notes: Sequence[str] = ()

    def in_words(self) -> list[str]:
        """Return the sentences that a command prints, and its page shows."""
        result = []
        for one in self.rates:
            line = f"{one.name}: no share of right answers: {one.without}"
            if one.value is not None:
                line = f"{one.name}: {100 * one.value:.1f} % of {one.answers:,} answers are right "
                line += f"(95 % interval {_ends(one.interval)}), {one.method}, "
                line += f"from {one.labels:,} labels"
            if one.passed is not None:
                line += f"; by {self.metric} {100 * one.passed:.1f} % pass"
            result.append(line)
        for change in self.differences:
            line = f"{change.second} less {change.first}: {100 * change.value:+.1f} points (95 % "
            result.append(f"{line}interval {_ends(change.interval, '+')})".replace("-", "−"))
        return [*result, *self.notes]


def _ends(interval: Interval | None, sign: str = "") -> str:
    return ends_text(interval and (100 * interval[0], 100 * interval[1]), sign, 1) or "none"


@dataclass(frozen=True)
class JudgedAnswers:
    """All answers of a run: what a metric says of them, labels (NaN: none), units and groups; each
    of shape (n,).

    strata: the number of each answer's stratum, an outcome or a part of one; names: of the strata.
    badness: what lists are ordered by; loss: the score, of which less is better; both NaN without a
    score. passed: whether it passes; ``None`` without a line.
    """

    strata: Places
    badness: Floats
    loss: Floats
    passed: Bools | None
    labels: Floats
    units: Places
    groups: np.ndarray[Any, Any]
    names: Sequence[str]

    def among(self, keep: Bools) -> "JudgedAnswers":
        """Return some of the answers."""
        columns = {
            name: value[keep]
            for name, value in vars(self).items()
            if name != "names" and value is not None
        }
        return replace(self, **columns)


def correct(
    paths: Sequence[Path],
    label_files: LabelFiles,
    metrics: Sequence[str] | None = None,
    *,
    by: str = "",
    seed: int = 0,
) -> dict[str, Corrected]:
    """Return the corrected shares of one or two runs by these metrics, else by all in common.

    Args:
        by: a field of the samples: each of its groups by its own labels; the highest is compared
            with the others. Two runs are compared with each other.

    Raises:
        RunFolderError: a folder holds no finished run.
        InputError: labels cannot be read, are of other answers, were chosen with unequal
            probabilities, or are too few; or a rating fits several answers.
        UsageError: files do not fit the runs, or the labelled run was judged in another way.
    """
    # A run that is compared with itself has its labels once.
    owners = list(dict.fromkeys(paths)) if label_files.of is None else [label_files.of]
    runs = {path: read_finished_run(path) for path in (*paths, *owners)}
    names = [
        name
        for name in metrics or runs[paths[0]]["metrics"]
        if all(name in run["metrics"] for run in runs.values())
    ]
    for path in paths if label_files.of else ():
        if differ := changed_judges(runs[owners[0]], runs[path], names):
            raise UsageError(
                f"--labels-of {label_files.of}: was judged in another way than {path} "
                f"({differ[0]}), so its errors there say nothing of those here; score both in the "
                "same way"
            )
    files = [label_files.ratings] if len(owners) == 1 else [[one] for one in label_files.ratings]
    if len(files) not in (1, len(owners)):
        raise UsageError(f"--labels: {len(files)} files for {len(owners)} runs; expected one each")
    if label_files.of and {path.resolve() for path in paths} == {label_files.of.resolve()}:
        raise UsageError(
            f"--labels-of {label_files.of}: is the run itself; leave it out, as its errors have to "
            "be known from other labelled answers"
        )
    files_by_run = files * (len(owners) // len(files))
    labels_by_run, label_notes = _read_labels_of_runs(owners, files_by_run, label_files)
    labels = dict(zip(owners, labels_by_run, strict=True))
    result = {}
    for name in names:
        judged = [_read(path, runs[path], name, labels.get(path), by) for path in paths]
        known = None
        if owner := label_files.of:
            known = _read(owner, runs[owner], name, labels[owner], "")
        parts = [(path.name or str(path), one) for path, one in zip(paths, judged, strict=True)]
        if by:
            groups = dict.fromkeys(judged[0].groups.tolist())
            parts = [(one or "(none)", judged[0].among(judged[0].groups == one)) for one in groups]
        rng = generator(seed, "corrected", name)
        estimates = [_rate(part, one, known, rng) for part, one in parts]
        rates = [rate for rate, _ in estimates]
        notes = [*dict.fromkeys(note for _, note in estimates if note), *label_notes]
        values = [(one.value or 0.0) if by else 0.0 for one in rates]
        best = values.index(max(values)) if by else len(rates) - 1
        differences = [
            RateChange(one.name, rates[best].name, *difference_of_rates(one.rate, other))
            for at, one in enumerate(rates)
            if at != best and one.rate and (other := rates[best].rate)
        ]
        if known and differences:
            notes.append("The same errors are taken for all: labels of each would tell its own.")
        result[name] = Corrected(name, rates, differences, notes)
    return result


def _read_labels_of_runs(
    owners: Sequence[Path], files: Sequence[Sequence[Path]], label_files: LabelFiles
) -> tuple[list[Floats], list[str]]:
    """Return the labels of the answers of each run, and what to say of the files.

    Each rating has to fit one answer alone. Where raters are divided the answer counts as wrong:
    else one who calls everything right would take away what others call wrong.
    """
    result, notes = list[Floats](), list[str]()
    fits = dict[Path, dict[str, Counter[str]]]()
    for path, files_of_run in zip(owners, files, strict=True):
        source = replace(label_files, ratings=files_of_run)
        population = read_population([path], source, "answer", ())
        labels = read_labels(population, source)
        rated = [one for file in files_of_run for one in _ratings_of(file, label_files)]
        times_rated = Counter(one.item for one in rated)
        divided = np.array([times_rated[row.id] > 1 for row in population.answers.rows])
        divided &= np.isnan(labels)
        result.append(np.where(divided, 0.0, labels))
        names = ", ".join(map(str, files_of_run))
        notes.append(
            f"{names}: matched to the answers of {path} by their ids; labels of other answers with "
            "these ids would count as theirs."
        )
        if divided.any():
            notes.append(
                f"{names}: the raters of {amount(int(divided.sum()), 'answer')} are divided; these "
                "count as wrong."
            )
        ids = {row.id for row in population.answers.rows}
        if unknown := sum(one.item not in ids for one in rated):
            notes.append(f"{names}: {amount(unknown, 'rating')} of no answer of {path}.")
        for file in files_of_run:
            models = fits.setdefault(file, {})
            for row in population.answers.rows:
                models.setdefault(row.id, Counter())[row.model] += 1
        there = population.answers.questions[~np.isnan(result[-1])]
        if reason := too_few(f"questions of {path} with a label", len(np.unique(there)), FEWEST):
            raise InputError(
                f"{', '.join(map(str, files_of_run))}: {reason}. `trustassay label {path} "
                "--random` draws answers to rate"
            )
    for file, models in fits.items():
        for one in _ratings_of(file, label_files):
            answers = models.get(one.item, Counter[str]())
            fitting = answers[one.model] + answers[""] if one.model else answers.total()
            if fitting > 1:
                raise InputError(
                    f"{file}: the rating of {one.item[:40]!r} fits several answers; expected a "
                    "column model in ratings and samples, or --labels FILE for each run, in order"
                )
    return result, notes


def _ratings_of(file: Path, label_files: LabelFiles) -> Sequence[Rating]:
    return read_ratings(file, fields=label_files.columns).ratings


def _read(
    path: Path, run: Mapping[str, Any], metric: str, labels: Floats | None, by: str
) -> JudgedAnswers:
    folder = RunFolder(path)
    scores = read_scores(path, run, metric_infos(folder, run)[metric], read_keys(folder, run))
    groups = [str((domain_of(one, by) if by else "") or "") for one in folder.sample_records()]
    units = unit_keys(folder, run.get(UNIT)).view(np.int64)
    known = np.full(len(scores.scores), np.nan) if labels is None else labels
    strata, names = _strata_of(scores)
    passed = scores.has(PASSED) == 1 if scores.outcomes.passed else None
    loss = scores.scores if scores.info.lower_is_better else -scores.scores
    groups_of_answers = np.array(groups)
    return JudgedAnswers(
        strata, scores.badness, loss, passed, known, units, groups_of_answers, names
    )


def _strata_of(scores: RunScores) -> tuple[Places, list[str]]:
    """Return the stratum of each answer, and what the strata are called: its outcome, and where a
    metric draws no line the third of the scores to which it belongs.
    """
    kinds = list(scores.outcomes.shares)
    strata = np.array([kinds.index(kind) for kind in scores.kinds], dtype=np.int64)
    names = [scores.outcomes.words[kind] for kind in kinds]
    if SCORED in kinds and (strata == 0).any():
        there = strata == 0
        thirds = strata_of(scores.badness[there])
        strata[there] = len(names) + thirds
        names += [f"scored, part {place + 1} by score" for place in range(int(thirds.max()) + 1)]
    return strata, names


def _rate(
    name: str, judged: JudgedAnswers, known: JudgedAnswers | None, rng: np.random.Generator
) -> tuple[CorrectedRate, str]:
    """Return a corrected share, and what has to be true for it."""
    source = known or judged
    labelled = ~np.isnan(source.labels)
    right = source.labels[labelled] == 1
    strata = _counts_by_stratum(judged, source)
    passed = None if judged.passed is None else float(judged.passed.mean())
    result = CorrectedRate(
        name,
        ERRORS if known else STRATIFIED,
        len(judged.labels),
        len(right),
        int(right.sum()),
        passed,
        strata,
    )
    reason = too_few("questions with a label", len(np.unique(source.units[labelled])), FEWEST)
    if reason:
        return replace(result, without=reason), ""
    if known:
        return _by_errors(result, judged, known, rng)
    rate, note = stratified_rate(judged, rng)
    if rate is None:
        return replace(result, without=note), ""
    return replace(result, value=rate.value, interval=rate.interval, rate=rate), note


def _counts_by_stratum(judged: JudgedAnswers, source: JudgedAnswers) -> dict[str, tuple[int, int]]:
    """Return for each stratum how many answers there are, and how many labels in ``source``."""
    labelled = source.strata[~np.isnan(source.labels)]
    return {
        judged.names[place]: (int((judged.strata == place).sum()), int((labelled == place).sum()))
        for place in np.unique(judged.strata).tolist()
    }


def stratified_rate(judged: JudgedAnswers, rng: np.random.Generator) -> tuple[Rate | None, str]:
    """Return the share of right answers by strata, and what has to be true for it; or ``None``, and
    why there is none.
    """
    if reason := _missing_labels(_counts_by_stratum(judged, judged)):
        return None, reason
    if reason := _chosen_by_score(judged):
        return None, reason
    # Numbers without gaps: a group of a run may lack an outcome.
    numbers = np.unique(judged.strata, return_inverse=True)[1].astype(np.int64)
    rate = prediction_powered(numbers, judged.labels, judged.units, rng)
    return rate, "Within each outcome the labels must be of answers drawn at random."


def _missing_labels(strata: Mapping[str, tuple[int, int]]) -> str:
    """Return which labels are missing for an estimate; "" if there are enough.

    An outcome without labels has no estimate: what people would say of its answers is not known.
    """
    wants = []
    for name, (answers, labels) in strata.items():
        enough = min(answers, FEWEST_LABELS)
        if labels < enough:
            wants.append(f"{enough - labels:,} more of the {answers:,} answers that are {name}")
    if not wants:
        return ""
    return f"too few labels: it needs labels, drawn at random, of {' and '.join(wants)}"


def _chosen_by_score(judged: JudgedAnswers) -> str:
    """Return why labels that were chosen by score give no share; "" where they were not.

    Within an outcome the labels have to be drawn at random: those of its best answers make the
    share too high, those of its worst ones too low.
    """
    for place in np.unique(judged.strata).tolist():
        # Who chooses answers goes by the order of a list, or by the score.
        for values in (judged.badness, judged.loss):
            here = (judged.strata == place) & ~np.isnan(values)
            labelled = values[here & ~np.isnan(judged.labels)]
            others = values[here & np.isnan(judged.labels)]
            z = rank_sum_z(labelled, others) if len(labelled) and len(others) else 0.0
            if abs(z) > UNLIKE:
                which = "best" if z < 0 else "worst"
                return (
                    f"the labels of the answers that are {judged.names[place]} are of its {which} "
                    "scores: draw them at random (`trustassay label RUN --random`)"
                )
    return ""


def _by_errors(
    result: CorrectedRate, judged: JudgedAnswers, known: JudgedAnswers, rng: np.random.Generator
) -> tuple[CorrectedRate, str]:
    """Return the share by the errors that the metric makes in another labelled run."""
    if judged.passed is None or known.passed is None:
        return replace(result, without="the metric draws no line, so it makes no errors"), ""
    note = "The judge must err here as often as on the labelled answers."
    labelled = ~np.isnan(known.labels)
    errors = (known.passed[labelled], known.labels[labelled] == 1, known.units[labelled])
    rate = rogan_gladen(judged.passed, judged.units, errors, rng)
    without = "" if rate.interval else "its errors on the labelled answers do not explain these"
    if math.isnan(rate.value):
        without = "on the labelled answers the judge is no better than chance"
    value = None if without else rate.value
    interval = rate.interval if value is not None else None
    return replace(result, value=value, interval=interval, without=without, rate=rate), note


def corrected_in_words(path: Path, labels: LabelFiles, domain: str) -> list[str]:
    """Return the sentences of a report: of the run, and of models and domains if it has several."""
    result = list[str]()
    for by in ("", "model", domain):
        for one in correct([path], labels, by=by).values():
            result += one.in_words() if not by or len(one.rates) > 1 else []
    return list(dict.fromkeys(result))
