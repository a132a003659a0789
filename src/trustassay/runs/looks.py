"""Which answers of a run need a look, the worst first, each with its reason.

It needs one if a metric says so by its own line (:attr:`~trustassay.metric.Metric.line`), or if it
could not be scored: the count and the sentence are those with which the report opens. Of metrics
without a line the worst scores are listed.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trustassay.metric import Assessment, Metric, MetricInfo
from trustassay.runs.counts import Place, judged
from trustassay.runs.folder import RunFolder
from trustassay.sample import Sample
from trustassay.show.choice import NO_SCORE, Level, need_of, worst_of
from trustassay.show.first_card import Looked
from trustassay.show.notebook import BINS

LONGEST = 120
"""Characters of a question, and of a reason, in the line of the first verdict."""


@dataclass(frozen=True, slots=True)
class WorstAnswer:
    """An answer that needs a look: the sample, what the metric found, and why a reader should look.

    With several metrics it is the one that finds it worst. ``badness`` is 0 to 1, 1 the worst
    (:func:`~trustassay.metric.badness_of`).
    """

    sample: Sample
    assessment: Assessment
    reason: str
    badness: float

    @property
    def id(self) -> str:
        """The sample's id."""
        return self.sample.id

    @property
    def question(self) -> str:
        """The question."""
        return self.sample.question

    @property
    def response(self) -> str:
        """The answer; empty if there is none."""
        return self.sample.response or ""

    @property
    def verdict(self) -> str:
        """The verdict, ``failed`` if it could not be scored; a metric without verdicts gives a
        score.
        """
        return verdict_of(self.assessment)

    def __repr__(self) -> str:
        shown = (self.verdict, self.reason, short(self.question, 60), short(self.response, 60))
        return f"WorstAnswer({self.id!r}, {', '.join(map(repr, shown))})"


class Looks(NamedTuple):
    """How many answers there are, how many need a look or failed, and the worst of them.

    found: how many could be among the worst. verdicts: how often each metric gave which verdict.
    scores: how many of its scores are in each of :data:`~trustassay.show.notebook.BINS` parts of
    its range.
    """

    looked: Looked
    found: int
    worst: Sequence[WorstAnswer]
    verdicts: Mapping[str, Counter[str]]
    scores: Mapping[str, Sequence[int]]

    def sentence(self) -> str:
        """Return what there is to say in one plain sentence."""
        return "; ".join([self.looked.sentence.removesuffix("."), *self.looked.remarks])


def looks_of(folder: RunFolder, metrics: Sequence[Metric], most: int) -> Looks:
    """Return which answers need a look; takes one pass, in which no evidence is read."""
    infos = [MetricInfo.of(metric) for metric in metrics]
    looked, ranking = Looked(), 0
    worst: list[tuple[tuple[float, ...], int, float, int, Place]] = []
    """A heap: what needs a look least is the smallest."""
    verdicts = {info.name: Counter(dict.fromkeys(info.verdicts, 0)) for info in infos}
    scores = {info.name: [0] * BINS for info in infos}
    for place, _, assessments, found in judged(folder, infos, metrics, looked):
        for info, one in zip(infos, assessments, strict=True):
            only_score = one.error is None and one.verdict is None and one.score is not None
            verdicts[info.name]["scored" if only_score else verdict_of(one)] += 1
            if one.score is not None:
                low, high = info.score_range
                part = int(BINS * (one.score - low) / (high - low))
                scores[info.name][min(part, BINS - 1)] += 1
        telling = [one for one in found if one.kind.level != Level.REST]
        chosen = worst_of(telling)
        if chosen is None:
            continue
        ranking += 1
        need = tuple(-number for number in need_of(telling))
        entry = need, -looked.answers, chosen.badness, found.index(chosen), place
        (heapq.heappush if len(worst) < most else heapq.heappushpop)(worst, entry)
    listed = []
    for _, _, badness, number, place in sorted(worst, reverse=True):
        metric = metrics[number]
        own = folder.assessments_at(place.assessments, len(metrics))
        assessment = next(told for told in own if told.metric == metric.name)
        reason, sample = reason_of(metric, assessment), folder.sample_at(place.sample)
        listed.append(WorstAnswer(sample, assessment, reason, badness))
    return Looks(looked, ranking, listed, verdicts, scores)


def reason_of(metric: Metric, assessment: Assessment) -> str:
    """Return in one line why an answer has its verdict; the error of one that failed."""
    if assessment.error is not None:
        return one_line(assessment.error)
    try:
        said = assessment.reason or metric.problem(assessment) or ""
    except Exception as error:  # of another package's metric: the verdict stands
        said = f"the reason is not available: {type(error).__name__}: {error}"
    return one_line(said)


def verdict_of(assessment: Assessment) -> str:
    """Return the verdict, or what stands for it."""
    if assessment.error is not None:
        return "failed"
    if assessment.verdict is not None:
        return assessment.verdict
    return NO_SCORE if assessment.score is None else f"score {assessment.score:.3g}"


def first_verdict(metric: Metric, sample: Sample, assessment: Assessment, total: int) -> str:
    """Return the line that a run shows when the first of its ``total`` answers is judged."""
    question = short(one_line(sample.question), LONGEST)
    message = f"first of {total:,}: {question} – {one_line(verdict_of(assessment))}"
    reason = short(reason_of(metric, assessment), LONGEST)
    return f"{message}: {reason}" if reason else message


def one_line(text: str) -> str:
    """Return text on one line, without characters that a terminal obeys."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def short(text: str, length: int) -> str:
    """Return text of at most ``length`` characters, cut between words if there are any."""
    if len(text) <= length:
        return text
    head = text[: length - 1]
    at = head.rfind(" ")
    return (head[:at] if at > length // 2 else head).rstrip() + "…"
