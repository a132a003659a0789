"""The share of right answers, from what a metric says of all and people of some, for all commands
(the estimates: :mod:`trustassay.statistics.corrected`)."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.data.ratings import read_ratings
from trustassay.data.records import InputError
from trustassay.errors import UsageError
from trustassay.runs.counts import UNIT, domain_of, unit_keys
from trustassay.runs.folder import RunFolder, metric_infos
from trustassay.show.text import ends_text, p_text
from trustassay.statistics import Bools, Floats, Places
from trustassay.statistics.corrected import (
    Rate,
    difference_of_rates,
    prediction_powered,
    rogan_gladen,
    strata_of,
)
from trustassay.statistics.intervals import FEWEST, Interval, effective_size, too_few
from trustassay.statistics.resampling import generator
from trustassay.workflows.changes import other_judges
from trustassay.workflows.json_form import JsonForm
from trustassay.workflows.label.population import LabelSource, read_labels, read_population
from trustassay.workflows.two_runs import finished_run, read_keys, read_scored

RIGHT = "right"
"""The name of the corrected share as a figure: ``METRIC.right``."""
SAMPLE, ERRORS = "prediction-powered", "Rogan-Gladen"
UNLIKE = 3.29
"""Standard errors from which labelled answers are no random sample: p = 0.001."""


@dataclass(frozen=True)
class LabelFiles(LabelSource):
    """Labels of some answers; of: whose answers these are, if they are no sample of the others."""

    of: Path | None = None

    @classmethod
    def given(cls, **options: Any) -> "LabelFiles | None":
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
    """The share of right answers of a run or of a group, from 0 to 1.

    labels, right: how many there are, and mean right. judged: the share that the metric calls good,
    if it has verdicts. without: why there is no value or interval.
    """

    json_names = "name method answers labels right judged value interval without".split()

    name: str
    method: str
    answers: int
    labels: int
    right: int
    judged: float | None
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
            if one.judged is not None:
                line += f"; {self.metric} calls {100 * one.judged:.1f} % good"
            result.append(line)
        for change in self.differences:
            line = f"{change.second} less {change.first}: {100 * change.value:+.1f} points (95 % "
            result.append(f"{line}interval {_ends(change.interval, '+')})".replace("-", "−"))
        return [*result, *self.notes]


def _ends(interval: Interval | None, sign: str = "") -> str:
    return ends_text(interval and (100 * interval[0], 100 * interval[1]), sign, 1) or "none"


@dataclass(frozen=True)
class _Judged:
    """The answers that a metric scored: what it says (1 good and 0 not, else a score), labels (NaN:
    none), units, groups; each of shape (n,)."""

    said: Floats
    labels: Floats
    units: Places
    groups: np.ndarray[Any, Any]
    verdicts: bool

    def among(self, keep: Bools) -> "_Judged":
        parts = {k: v[keep] for k, v in vars(self).items() if k != "verdicts"}
        return replace(self, **parts)


def correct(
    paths: Sequence[Path],
    given: LabelFiles,
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
    owners = list(paths) if given.of is None else [given.of]
    runs = {path: finished_run(path) for path in (*paths, *owners)}
    names = [
        name
        for name in metrics or runs[paths[0]]["metrics"]
        if all(name in run["metrics"] for run in runs.values())
    ]
    for path in paths if given.of else ():
        if differ := other_judges(runs[owners[0]], runs[path], names):
            raise UsageError(
                f"--labels-of {given.of}: was judged in another way than {path} ({differ[0]}), so "
                "its errors there say nothing of those here; score both in the same way"
            )
    files = [given.ratings] if len(owners) == 1 else [[one] for one in given.ratings]
    if len(files) not in (1, len(owners)):
        raise UsageError(f"--labels: {len(files)} files for {len(owners)} runs; expected one each")
    labels = dict(
        zip(owners, _labels(owners, files * (len(owners) // len(files)), given), strict=True)
    )
    result = {}
    for name in names:
        told = [_read(path, runs[path], name, labels.get(path), by) for path in paths]
        known = _read(given.of, runs[given.of], name, labels[given.of], "") if given.of else None
        parts = [(path.name or str(path), one) for path, one in zip(paths, told, strict=True)]
        if by:
            groups = dict.fromkeys(told[0].groups.tolist())
            parts = [(one or "(none)", told[0].among(told[0].groups == one)) for one in groups]
        rng = generator(seed, "corrected", name)
        made = [_rate(part, one, known, rng) for part, one in parts]
        rates, notes = [one for one, _ in made], list(dict.fromkeys(n for _, n in made if n))
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


def _labels(
    owners: Sequence[Path], files: Sequence[Sequence[Path]], given: LabelFiles
) -> list[Floats]:
    """Return the labels of the answers of each run; each rating has to fit one answer alone."""
    result, fits = [], dict[Path, dict[str, Counter[str]]]()
    for path, own in zip(owners, files, strict=True):
        source = replace(given, ratings=own)
        population = read_population([path], source, "answer", ())
        result.append(read_labels(population, source))
        for file in own:
            models = fits.setdefault(file, {})
            for row in population.answers.rows:
                models.setdefault(row.id, Counter())[row.model] += 1
        there = population.answers.questions[~np.isnan(result[-1])]
        if reason := too_few(f"questions of {path} with a label", len(np.unique(there)), FEWEST):
            raise InputError(
                f"{', '.join(map(str, own))}: {reason}. `trustassay label {path} --random` draws "
                "answers to rate"
            )
    for file, models in fits.items():
        for one in read_ratings(file, fields=given.columns).ratings:
            held = models.get(one.item, Counter[str]())
            if (held[one.model] + held[""] if one.model else held.total()) > 1:
                raise InputError(
                    f"{file}: the rating of {one.item[:40]!r} fits several answers; expected a "
                    "column model in ratings and samples, or --labels FILE for each run, in order"
                )
    return result


def _read(
    path: Path, run: Mapping[str, Any], metric: str, labels: Floats | None, by: str
) -> _Judged:
    folder = RunFolder(path)
    scored = read_scored(path, run, metric_infos(folder, run)[metric], read_keys(folder))
    said = scored.scores if scored.flagged is None else 1 - scored.flagged
    groups = [str((domain_of(one, by) if by else "") or "") for one in folder.sample_records()]
    units = unit_keys(folder, run.get(UNIT)).view(np.int64)
    known = np.full(len(said), np.nan) if labels is None else labels
    whole = _Judged(said, known, units, np.array(groups), scored.flagged is not None)
    return whole.among(~np.isnan(said))


def _rate(
    name: str, told: _Judged, known: _Judged | None, rng: np.random.Generator
) -> tuple[CorrectedRate, str]:
    """Return a corrected share, and what has to be true for it."""
    source, there = known or told, ~np.isnan(told.labels)
    labelled = source.among(~np.isnan(source.labels))
    right, unlike = labelled.labels == 1, 0.0 if known else _unlike(told, there)
    method = ERRORS if known or unlike > UNLIKE else SAMPLE
    judged = float(told.said.mean()) if told.verdicts and len(there) else None
    result = CorrectedRate(name, method, len(there), len(right), int(right.sum()), judged)
    reason = too_few("questions with a label", len(np.unique(labelled.units)), FEWEST)
    if not reason and method == ERRORS and not told.verdicts:
        reason = "the labelled answers are no random sample, and the metric has no verdicts"
    if reason:
        return replace(result, without=reason), ""
    if method == SAMPLE:
        note = "The labels must be of a random sample of the answers."
        rate = prediction_powered(strata_of(told.said), told.labels, told.units, rng)
    else:
        note = "The judge must err on the labelled answers as often as on all."
        if not known:
            p = p_text(math.erfc(unlike / math.sqrt(2)))
            note = f"{name}: the labelled answers are no random sample (p = {p}). {note}"
        errors = (labelled.said == 1, right, labelled.units)
        rate = rogan_gladen(told.said == 1, told.units, errors, rng)
    without = "" if rate.interval else "its errors on the labelled answers do not explain these"
    if math.isnan(rate.value):
        without = "on the labelled answers the judge is no better than chance"
    value = None if without else rate.value
    interval = rate.interval if value is not None else None
    return replace(result, value=value, interval=interval, without=without, rate=rate), note


def _unlike(told: _Judged, there: Bools) -> float:
    """Return by how many standard errors labelled answers are judged otherwise than the others."""
    if there.all() or not there.any() or not told.said.std():
        return 0.0
    size = sum(1 / effective_size(told.units[one]) for one in (there, ~there))
    apart = told.said[there].mean() - told.said[~there].mean()
    return float(abs(apart) / (told.said.std() * math.sqrt(size)))


def told_by_group(path: Path, given: LabelFiles, domain: str) -> list[str]:
    """Return the sentences of a report: of the run, and of models and domains if it has several."""
    result = list[str]()
    for by in ("", "model", domain):
        for one in correct([path], given, by=by).values():
            result += one.in_words() if not by or len(one.rates) > 1 else []
    return list(dict.fromkeys(result))
