"""A finished run as Python users have it, and which of its answers need a look, the worst first.

An answer needs one if a metric says so by its own line (:attr:`~trustassay.metric.Metric.line`), or
if it could not be scored: the count and the sentence are those with which the report opens. Of
metrics without a line the worst scores are listed.
"""

import heapq
import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trustassay.calls.batching import Counts
from trustassay.calls.retry import Endpoint
from trustassay.core.outcome import Outcomes
from trustassay.errors import install
from trustassay.metric import Assessment, Metric, MetricInfo, Summary
from trustassay.runs.counts import Place, judged, read_outcomes
from trustassay.runs.fill import Outcome
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import Intake
from trustassay.runs.lines import StoredAssessments
from trustassay.runs.outcomes import outcome_columns
from trustassay.sample import Sample
from trustassay.show.choice import NO_SCORE, Level, need_of, worst_of
from trustassay.show.first_card import Looked
from trustassay.show.notebook import BINS, MetricShown, RunShown, as_html, as_text

if TYPE_CHECKING:
    import pandas

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
        """Return what there is to say in one plain sentence, without its full stop."""
        return self.looked.sentence


def looks_of(folder: RunFolder, metrics: Sequence[Metric], most: int) -> Looks:
    """Return which answers need a look; takes one pass, in which no evidence is read."""
    infos = [MetricInfo.of(metric) for metric in metrics]
    looked, ranking = Looked(), 0
    worst: list[tuple[tuple[float, ...], int, float, int, Place]] = []
    """A heap: what needs a look least is the smallest."""
    verdicts = {info.name: Counter(dict.fromkeys(info.verdicts, 0)) for info in infos}
    scores = {info.name: [0] * BINS for info in infos}
    for row in judged(folder, infos, metrics, looked):
        for info, one in zip(infos, row.assessments, strict=True):
            only_score = one.error is None and one.verdict is None and one.score is not None
            verdicts[info.name]["scored" if only_score else verdict_of(one)] += 1
            if one.score is not None:
                low, high = info.score_range
                part = int(BINS * (one.score - low) / (high - low))
                scores[info.name][min(part, BINS - 1)] += 1
        telling = [one for one in row.findings if one.kind.level != Level.REST]
        chosen = worst_of(telling)
        if chosen is None:
            continue
        ranking += 1
        need = tuple(-number for number in need_of(telling))
        number = row.findings.index(chosen)
        entry = need, -looked.answers, chosen.badness, number, row.place
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


@dataclass(frozen=True)
class RunOutcome:
    """What :func:`~trustassay.runs.execute.execute` did in this process; the results themselves are
    in the folder.
    """

    metrics: Sequence[Metric]
    intake: Intake
    scored_before: int
    counts: Mapping[str, Counts]
    filled: Outcome
    endpoints: Mapping[str, Endpoint]
    seconds: float


class Run:
    """A finished run; everything is read from its folder when it is used."""

    def __init__(self, folder: RunFolder, outcome: RunOutcome, index: Any = None) -> None:
        """``index`` is that of a data frame's rows that were scored."""
        self._folder = folder
        self._index = index
        self.outcome = outcome
        self.metrics = tuple(outcome.metrics)

    @property
    def path(self) -> Path:
        """The run's folder; without ``out`` it is temporary, and is removed when this object and
        its assessments are no longer referenced.
        """
        return self._folder.path

    @cached_property
    def summary_file(self) -> dict[str, Any]:
        """The content of ``summary.json``."""
        return self._folder.read_summary() or {"metrics": {}}

    @cached_property
    def summaries(self) -> Mapping[str, Summary]:
        """The summary of each metric, with intervals and the samples behind each figure."""
        return {k: Summary(**v) for k, v in self.summary_file["metrics"].items()}

    @property
    def summary(self) -> Mapping[str, Mapping[str, float | int | None]]:
        """The figures of each metric: ``run.summary["grounding"]["trust_score"]``."""
        return {name: summary.values for name, summary in self.summaries.items()}

    @cached_property
    def outcomes(self) -> Mapping[str, Outcomes]:
        """What became of all questions, by metric: ``run.outcomes["faithfulness"].failed.percent``.

        The shares of questions that passed, failed and were not answered add up to 100 %.
        """
        return read_outcomes(self._folder, self.metrics)

    @property
    def assessments(self) -> StoredAssessments:
        """The assessments in input order, a sequence that is read from disk."""
        return self._folder.assessments()

    @property
    def calibrated(self) -> Mapping[str, Any] | None:
        """What the calibrator found, ``None`` without one: how many answers it accepts, and whether
        the run is like the one that it was made from. ``to_pandas`` has each answer's probability.
        """
        from trustassay.runs.probabilities import CALIBRATED

        return self.summary_file.get(CALIBRATED)

    def looks(self, most: int = 5) -> Looks:
        """Return how many answers need a look, and the worst ``most`` of them."""
        return looks_of(self._folder, self.metrics, most)

    def worst(self, n: int = 5) -> list[WorstAnswer]:
        """Return the ``n`` answers that need a look most, the worst first, each with its reason.

        An answer needs a look if a metric says so by its line, or if it could not be scored; those
        come last. Of a metric without a line the worst scores come first.
        """
        return list(self.looks(n).worst)

    def __repr__(self) -> str:
        """The outcomes, how many answers need a look, the headline figures, and the folder."""
        return as_text(self._shown(0))

    def _repr_html_(self) -> str:
        """What a notebook shows: the same as a table, the scores as a picture, the worst answers.

        Every text of the samples is escaped.
        """
        return as_html(self._shown(5))

    def _shown(self, worst: int) -> RunShown:
        from trustassay.runs.report import judge_of

        result = self.looks(worst)
        settings = self._folder.read_run()
        judge = judge_of(settings, self.summary_file) if settings else None
        return RunShown(
            str(self.path),
            [outcomes.lines for outcomes in self.outcomes.values()],
            result.sentence(),
            [
                MetricShown(
                    metric,
                    self.summaries[metric.name],
                    result.verdicts[metric.name],
                    result.scores[metric.name],
                )
                for metric in self.metrics
            ],
            [(one.id, short(one.question, 240), one.verdict, one.reason) for one in result.worst],
            judge.note if judge else "",
        )

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the assessments as a table: ``id``, ``question``, ``response``, what was found.

        ``outcome`` is ``passed``, ``failed`` or ``not_answered``, of a metric without a line
        ``scored`` or ``not_scored``; ``outcome_reason`` says why an answer was not judged.
        That of a pandas frame has the frame's index, unless more than 1,000 rows were skipped.

        Raises:
            ImportError: pandas is not installed; the message says how to install it.
        """
        try:
            import pandas
        except ImportError as error:
            message = f"to_pandas needs pandas, which is not installed: {install('pandas')}"
            raise ImportError(message) from error
        import arro3.io

        table = arro3.io.read_parquet(self._folder.parquet_path).read_all()
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
        if "outcome" not in columns:  # the table of a run of an earlier version
            metrics = {metric.name: metric for metric in self.metrics}
            columns |= outcome_columns(metrics, self.assessments)
        places: dict[str, int] = {}
        texts: dict[str, list[Any]] = {"question": [], "response": []}
        for place, record in enumerate(self._folder.sample_records()):
            places[record["id"]] = place
            for name, result in texts.items():
                result.append(record.get(name))
        rows = [places[one] for one in columns["id"]]
        shown = {name: [found[row] for row in rows] for name, found in texts.items()}
        frame = pandas.DataFrame({"id": columns.pop("id"), **shown, **columns})
        return frame if self._index is None else frame.set_axis(self._index.take(rows))

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the report page, to ``path`` or into the run's folder, and return where it is."""
        from trustassay.runs.report import write_report

        write_report(self._folder, self.metrics)
        if path is None:
            return self._folder.report_path
        return Path(shutil.copyfile(self._folder.report_path, path))
