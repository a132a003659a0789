"""Two finished runs, read to be compared: their pairs, scores, and what became of answers."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.assessment import Direction, Weighted, WeightedColumns
from trustassay.errors import RunFolderError, UnknownNameError, UsageError, did_you_mean
from trustassay.metric import Assessment, Figure, Mean, MetricInfo, Quantile, Share, badness_of
from trustassay.registry import metric_from_settings
from trustassay.runs.folder import RunFolder, metric_infos
from trustassay.runs.lines import hash64
from trustassay.sample import question_key
from trustassay.statistics import Bools, Floats, Places
from trustassay.statistics.comparison import share_rise_p
from trustassay.statistics.resampling import holm
from trustassay.text.words import amount
from trustassay.workflows.json_form import fields_as_json


class SampleKeys(NamedTuple):
    """What the samples of a run are paired by, as hashes in input order; 0 for what is missing."""

    ids: NDArray[np.uint64]
    questions: NDArray[np.uint64]
    models: NDArray[np.uint64]


@dataclass(frozen=True)
class Pairing:
    """The answers of two runs to the same questions.

    first, second: the places of each pair in the runs, in the order of the first. units: for each
    pair the number of its question, from 0 on without gaps. by_id, by_question: pairs of the same
    id and question, and those of the same question alone. repeated: of these, pairs of questions
    that a run holds several times. other_question: ids that both runs hold with different
    questions, which pair nothing. only_first, only_second: samples without a partner.
    """

    first: Places
    second: Places
    units: Places
    by_id: int
    by_question: int
    repeated: int
    other_question: int
    only_first: int
    only_second: int

    @property
    def questions(self) -> int:
        """The number of different questions."""
        return int(self.units.max()) + 1 if len(self.units) else 0

    def only(self, keep: Bools) -> Pairing:
        """Return some of the pairs; the counts of the others stay."""
        units = np.unique(self.units[keep], return_inverse=True)[1].astype(np.int64)
        return replace(self, first=self.first[keep], second=self.second[keep], units=units)

    def in_words(self) -> str:
        """Say how many answers were paired by what, and how many not."""
        ways = []
        if self.by_id:
            ways.append(f"{self.by_id:,} by id and question")
        if self.by_question:
            ways.append(f"{self.by_question:,} by question")
        message = f"{amount(len(self.first), 'pair')} of answers"
        message += f" ({', '.join(ways)})" if ways else ""
        if self.repeated:
            message += (
                f"; {self.repeated:,} are of questions that occur in a run several times, paired "
                "by model and order"
            )
        if self.only_first or self.only_second:
            message += (
                f"; without a partner: {self.only_first:,} of the first run and "
                f"{self.only_second:,} of the second"
            )
        if self.other_question:
            message += f"; {amount(self.other_question, 'id')} with different questions"
        return message

    def to_dict(self) -> dict[str, int]:
        """Return the JSON form: the counts."""
        names = ("by_id", "by_question", "repeated", "other_question", "only_first", "only_second")
        counts = fields_as_json(self, *names)
        return {"pairs": len(self.first), "questions": self.questions} | counts


def read_keys(folder: RunFolder) -> SampleKeys:
    """Return what a run's samples are paired by; RunFolderError: they are missing or damaged."""
    result = SampleKeys(array("Q"), array("Q"), array("Q"))  # type: ignore[arg-type]
    if not folder.samples_path.exists():
        raise RunFolderError(f"{folder.samples_path}: is missing; score the input again")
    for number, record in enumerate(folder.sample_records(), 1):
        try:
            question = question_key(record["question"])
            own = (record["id"], question, record.get("model"))
            for column, text in zip(result, own, strict=True):
                column.append(hash64(text) if text else 0)  # type: ignore[attr-defined]
        except (KeyError, TypeError, AttributeError):
            raise folder.bad_sample(number, "has no id or question") from None
    return SampleKeys(*(np.array(column, dtype=np.uint64) for column in result))


def pair(first: SampleKeys, second: SampleKeys) -> Pairing:
    """Pair the samples of two runs.

    Samples of the same id and question are a pair. The others are paired by their question, whose
    case and white space do not count. Where a run holds a question several times, its answers
    are paired with those of the same model first, then in the order in which they stand.
    """
    _, in_first, in_second = np.intersect1d(first.ids, second.ids, return_indices=True)
    same = first.questions[in_first] == second.questions[in_second]
    pairs = list(zip(in_first[same].tolist(), in_second[same].tolist(), strict=True))
    by_id = len(pairs)
    rest = [
        np.setdiff1d(np.arange(len(keys.ids)), taken)
        for keys, taken in ((first, in_first[same]), (second, in_second[same]))
    ]
    result = list(_by_question(first, second, rest[0], rest[1]))
    several = [
        {question for question, count in Counter(keys.questions.tolist()).items() if count > 1}
        for keys in (first, second)
    ]
    often = several[0] | several[1]
    pairs = sorted(pairs + result)
    places = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    questions = first.questions[places[:, 0]]
    numbers = np.unique(questions, return_inverse=True)[1].astype(np.int64)
    # Samples without a question have nothing in common but that.
    blank = questions == 0
    numbers[blank] = len(pairs) + np.arange(int(blank.sum()))
    units = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    return Pairing(
        places[:, 0],
        places[:, 1],
        units,
        by_id,
        len(result),
        sum(int(first.questions[one]) in often for one, _ in result),
        int((~same).sum()),
        len(first.ids) - len(pairs),
        len(second.ids) - len(pairs),
    )


def _by_question(
    first: SampleKeys, second: SampleKeys, ours: Places, theirs: Places
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of the same question and model, then those of the same question."""
    left = [place for place in ours.tolist() if first.questions[place]]
    taken: set[int] = set()
    for with_model in (True, False):

        def key(keys: SampleKeys, place: int, with_model: bool = with_model) -> tuple[int, int]:
            return int(keys.questions[place]), int(keys.models[place]) if with_model else 0

        waiting: defaultdict[tuple[int, int], deque[int]] = defaultdict(deque)
        for place in theirs.tolist():
            if place not in taken:
                waiting[key(second, place)].append(place)
        unpaired = []
        for place in left:
            if queue := waiting.get(key(first, place)):
                taken.add(queue[0])
                yield place, queue.popleft()
            else:
                unpaired.append(place)
        left = unpaired


SCORED, NOT_ASSESSABLE, FAILED, MISSING = "scored", "not assessable", "failed", "missing"


@dataclass(frozen=True)
class Outcome:
    """What became of answers in two runs: how many of each run's samples.

    risen, fallen: of ``questions`` with answers in both runs, those with more and with fewer
    answers of this outcome in the second run. p: one-sided, that the share did not rise by more
    than the margin, corrected for the number of outcomes that are tested (Holm 1979); ``None``
    where it is not tested: scored answers, whose share falls where another rises, missing ones,
    which have no partner, and what did not change.
    """

    name: str
    first: int
    second: int
    of_first: int
    of_second: int
    risen: int = 0
    fallen: int = 0
    questions: int = 0
    p: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        tested = () if self.p is None else ("risen", "fallen", "questions", "p")
        return fields_as_json(self, "first", "second", *tested)


def outcome_changes(
    first: Scored, second: Scored, pairing: Pairing, margin: float = 0.0
) -> list[Outcome]:
    """Return the outcomes of two runs, scored ones first, failed and missing ones last.

    Args:
        margin: by how much a share may rise, from 0 to 1.

    An answer of one run that has no partner counts as missing in the other.
    """
    counts = [Counter(first.outcomes), Counter(second.outcomes)]
    totals = (len(first.outcomes), len(second.outcomes))
    between = sorted({*counts[0], *counts[1]} - {SCORED, FAILED, NOT_ASSESSABLE})
    result, tested = [Outcome(SCORED, counts[0][SCORED], counts[1][SCORED], *totals)], []
    for name in (*between, NOT_ASSESSABLE, FAILED):
        one, other = counts[0][name], counts[1][name]
        if one or other or name == FAILED:
            risen, fallen, questions = _moved(name, first, second, pairing)
            changed = risen + fallen > 0  # what did not change can raise no alarm (Tarone 1990)
            p = share_rise_p(risen, fallen, questions, margin) if changed else None
            tested.append(Outcome(name, one, other, *totals, risen, fallen, questions, p))
    corrected = iter(holm([one.p for one in tested if one.p is not None]))
    result += [one if one.p is None else replace(one, p=next(corrected)) for one in tested]
    return [*result, Outcome(MISSING, pairing.only_second, pairing.only_first, *totals)]


def _moved(name: str, first: Scored, second: Scored, pairing: Pairing) -> tuple[int, int, int]:
    """Return in how many questions there are more and fewer of an outcome, and all questions."""
    before, after = (
        np.array([run.outcomes[place] == name for place in own.tolist()], dtype=np.float64)
        for run, own in ((first, pairing.first), (second, pairing.second))
    )
    change = np.bincount(pairing.units, after - before)
    return int((change > 0).sum()), int((change < 0).sum()), len(change)


def outcomes_in_words(outcomes: Sequence[Outcome]) -> str:
    """Write the outcomes of both runs: ``scored 50 → 40, refused 0 → 10``."""
    return ", ".join(f"{one.name} {one.first:,} → {one.second:,}" for one in outcomes)


def finished_run(path: Path, otherwise: str = "") -> dict[str, Any]:
    """Return the settings of a run; ``otherwise`` says what a file may be given with.

    Raises:
        RunFolderError: it is a file, or holds no finished run.
    """
    if path.is_file():
        raise RunFolderError(f"{path}: is a file; expected a run's folder{otherwise}")
    folder = RunFolder(path)
    run = folder.read_run()
    if run is None:
        raise RunFolderError(f"{path}: holds no run; expected the folder of a run (score --out)")
    if folder.read_summary() is None:
        raise RunFolderError(f"{path}: the run is not finished; run its command again to finish it")
    return run


def common_metric(
    paths: Sequence[Path], runs: Sequence[Mapping[str, Any]], wanted: str | None
) -> str:
    """Return the metric that is read of a run or of both: the wanted one, else the only one.

    Raises:
        RunFolderError: a run lacks it, or two runs have none in common.
        ValueError: there are several, and none is named.
    """
    held = [list(run["metrics"]) for run in runs]
    if wanted is not None:
        for path, names in zip(paths, held, strict=True):
            if wanted not in names:
                raise RunFolderError(f"{path}: {did_you_mean('metric of this run', wanted, names)}")
        return wanted
    common: list[str] = [name for name in held[0] if name in held[-1]]
    if not common:
        what = " and ".join(", ".join(names) or "none" for names in held)
        raise RunFolderError(f"the runs have no metric in common (they have {what})")
    if len(common) > 1:
        who = "the runs share" if len(paths) > 1 else f"{paths[0]}: the run has"
        raise UsageError(f"{who} {' and '.join(common)}; name one with --metric")
    return common[0]


@dataclass(frozen=True)
class Scored:
    """What a metric said of all samples of a run, in input order.

    scores: NaN where there is none, as in badness (:func:`~trustassay.metric.badness_of`). failed:
    whether the sample could not be scored. verdicts: "" where there is none. outcomes: what became
    of each sample (:mod:`~trustassay.workflows.two_runs`). flagged: 1 for a scored answer that
    needs a look, 0 for another, NaN without a score; ``None`` where the metric draws no line.
    weighted: the figures that can be resampled.
    """

    path: Path
    info: MetricInfo
    figures: Mapping[str, Figure]
    scores: Floats
    failed: Bools
    verdicts: Sequence[str]
    outcomes: Sequence[str]
    flagged: Floats | None
    weighted: Weighted
    badness: Floats


def read_scored(path: Path, run: Mapping[str, Any], info: MetricInfo, keys: SampleKeys) -> Scored:
    """Read the assessments of a metric once.

    Of a metric that is not installed only the mean is known, if it is that of its scores.

    Raises:
        RunFolderError: the assessments are damaged, or not those of the samples.
    """
    metric, folder = None, RunFolder(path)
    with suppress(UnknownNameError, TypeError, ValueError):
        metric = metric_from_settings(info.name, run["metrics"][info.name])
    scores, failed, verdicts, outcomes = array("d"), array("b"), list[str](), list[str]()
    badness = array("d")
    flagged = array("d") if metric is not None and metric.line else None

    def noting(assessments: Iterable[Assessment]) -> Iterator[Assessment]:
        for place, one in enumerate(assessments):
            if place >= len(keys.ids):
                raise RunFolderError(
                    f"{folder.samples_path}: {len(keys.ids):,} samples, but there is an assessment "
                    f"of {one.id!r} besides; run the run's command again"
                )
            if hash64(one.id) != keys.ids[place]:
                raise RunFolderError(
                    f"{folder.assessments_path}: the assessment of {one.id!r} belongs to no sample "
                    "in its place; run the run's command again"
                )
            scores.append(np.nan if one.score is None or one.error else one.score)
            bad = None if one.error else badness_of(info, one)
            badness.append(np.nan if bad is None else bad)
            failed.append(one.error is not None)
            verdicts.append(one.verdict or "")
            unscored = FAILED if one.error is not None else one.verdict or NOT_ASSESSABLE
            outcomes.append(SCORED if one.error is None and one.score is not None else unscored)
            if flagged is not None:
                looked = metric is not None and metric.problem(one) is not None
                flagged.append(np.nan if outcomes[-1] != SCORED else float(looked))
            yield one

    stored = noting(folder.assessments(info.name, evidence_later=True))
    if metric is None:
        weighted: Weighted = WeightedColumns.of({"mean": Mean()}, stored)
        figures = _mean_alone(path, info, weighted)
    else:
        figures, weighted = dict(metric.figures), metric.weighted(stored)
    if len(scores) != len(keys.ids):
        raise RunFolderError(
            f"{folder.assessments_path}: {len(scores):,} assessments of {info.name} of "
            f"{len(keys.ids):,} samples; run the run's command again"
        )
    return Scored(
        path,
        info,
        figures,
        np.array(scores),
        np.array(failed, dtype=np.bool_),
        verdicts,
        outcomes,
        None if flagged is None else np.array(flagged),
        weighted,
        np.array(badness),
    )


def _mean_alone(path: Path, info: MetricInfo, weighted: Weighted) -> dict[str, Figure]:
    told = (RunFolder(path).read_summary() or {})["metrics"].get(info.name, {})
    mean = told.get("values", {}).get("mean")
    own = weighted.figures(np.ones((1, len(weighted.inputs("mean")))))["mean"][0]
    if mean is None or abs(mean - own) > 1e-6:
        return {}
    return {"mean": Figure("mean", "mean score", "", headline=True, statistic=Mean())}


def better_of(figure: Figure, info: MetricInfo) -> Direction:
    """Return whether more of a figure is better, as it says itself or by its statistic."""
    statistic = figure.statistic
    if figure.better:
        return figure.better
    if isinstance(statistic, Mean | Quantile) and statistic.of == "score":
        return "lower" if info.lower_is_better else "higher"
    first = info.verdicts[0] if info.verdicts else None
    return "higher" if isinstance(statistic, Share) and statistic.verdict == first else ""


def paired_runs(
    paths: tuple[Path, Path],
    runs: tuple[Mapping[str, Any], Mapping[str, Any]],
    names: Sequence[str],
) -> tuple[Pairing, dict[str, tuple[Scored, Scored]]]:
    """Pair the answers of two runs, and read what metrics of both said of them."""
    folders = [RunFolder(path) for path in paths]
    keys = [read_keys(folder) for folder in folders]
    infos = [metric_infos(*both) for both in zip(folders, runs, strict=True)]
    result = {}
    for name in names:
        first, second = (read_scored(paths[i], runs[i], infos[i][name], keys[i]) for i in range(2))
        result[name] = (first, second)
    return pair(keys[0], keys[1]), result


def headlines(
    scored: tuple[Scored, Scored], wanted: Collection[str] = ()
) -> tuple[list[str], dict[str, str]]:
    """Return the headline (or wanted) figures with a value in both summaries, else why not."""
    name = scored[0].info.name
    keys = list(wanted) or [key for key, one in scored[1].info.figures.items() if one.headline]
    there: list[str] = []
    absent: dict[str, str] = {}
    summaries = [
        (RunFolder(one.path).read_summary() or {})["metrics"].get(name, {}) for one in scored
    ]
    for key in keys:
        if not wanted and not any(key in one.get("values", {}) for one in summaries):
            continue  # of another setting of the metric
        for side, summary in zip(scored, summaries, strict=True):
            if summary.get("values", {}).get(key) is None:
                why = summary.get("not_applicable", {}).get(key, "it is not in the summary")
                absent.setdefault(key, f"{side.path}: {why}")
        if key not in absent:
            there.append(key)
    return there, absent
