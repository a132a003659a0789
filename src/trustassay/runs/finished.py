"""A finished run as Python users see it, and its answers that need a look, the worst first.

An answer needs a look if a metric says so by its line
(:attr:`~trustassay.core.metric.Metric.line`), or if it could not be scored. The report opens with
the same count and sentence. For metrics without a line the worst scores are listed.
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

from trustassay.calls.batching import RequestCounts
from trustassay.calls.retry import Endpoint
from trustassay.core.evidence import JudgedPiece
from trustassay.core.metric import Assessment, Metric, MetricInfo, Summary
from trustassay.core.outcome import Outcomes
from trustassay.core.sample import Sample
from trustassay.errors import install_command
from trustassay.report.notebook import BINS, NotebookMetric, NotebookRun, as_html, as_text
from trustassay.report.review import NO_SCORE, AnswerPriority, ReviewCounts, need_of, worst_of
from trustassay.runs.counts import (
    LOOKED_KEY,
    AnswerPlace,
    build_outcome_columns,
    read_judged_rows,
    read_outcomes,
)
from trustassay.runs.fill import FillOutcome
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import Intake
from trustassay.runs.lines import StoredAssessments

if TYPE_CHECKING:
    import pandas

MAX_VERDICT_CHARACTERS = 120
"""Characters of a question, and of a reason, in the line of the first verdict."""


@dataclass(frozen=True, slots=True)
class WorstAnswer:
    """An answer that needs a look, as the metric sees it that finds it worst."""

    sample: Sample
    assessment: Assessment
    """The assessment by that metric."""
    reason: str
    """Why a reader should look, in one line."""
    badness: float
    """From 0 to 1, 1 the worst (:func:`~trustassay.core.metric.compute_badness`)."""
    piece: JudgedPiece | None = None
    """The sentence of the answer that the metric marks as bad, with its reason, such as what a
    passage says instead: the first that has the answer's verdict, else the first; ``None`` if there
    is no such sentence."""

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
        """The verdict; ``failed`` if the answer could not be scored, or the score in words."""
        return describe_verdict(self.assessment)

    def __repr__(self) -> str:
        texts = (shorten_text(text, 60) for text in (self.question, self.response))
        fields = (self.verdict, self.reason, *texts)
        return f"WorstAnswer({self.id!r}, {', '.join(map(repr, fields))})"


class LookSummary(NamedTuple):
    """How many answers there are, how many need a look or failed, and the worst of them."""

    look_counts: ReviewCounts
    """The counts of answers."""
    candidates: int
    """How many answers were candidates for the list of the worst."""
    unscored: int
    """How many of the candidates could not be scored, and are in the list for that alone."""
    worst: Sequence[WorstAnswer]
    """The worst answers, the worst first."""
    verdicts: Mapping[str, Counter[str]]
    """How often each metric gave each verdict."""
    scores: Mapping[str, Sequence[int]]
    """By metric, the number of scores in each of :data:`~trustassay.report.notebook.BINS` equal
    parts of its range."""

    def sentence(self) -> str:
        """Return how many answers need a look, as one sentence without its full stop."""
        return self.look_counts.sentence


def find_worst_answers(folder: RunFolder, metrics: Sequence[Metric], most: int) -> LookSummary:
    """Find the answers that need a look, in one pass that decodes no evidence.

    Args:
        metrics: those of the run, in its order.
        most: how many of the worst answers are returned.
    """
    infos = [MetricInfo.of(metric) for metric in metrics]
    look_counts, candidates, unscored = ReviewCounts(), 0, 0
    worst: list[tuple[tuple[float, ...], int, float, int, AnswerPlace]] = []
    """A heap of the worst answers so far. Its smallest entry is the one that needs a look least."""
    # Verdicts that did not occur are shown with a count of zero.
    verdicts = {info.name: Counter(dict.fromkeys(info.verdicts, 0)) for info in infos}
    scores = {info.name: [0] * BINS for info in infos}
    for row in read_judged_rows(folder, infos, metrics, look_counts):
        for info, assessment in zip(infos, row.assessments, strict=True):
            # A metric without verdicts: its answers are counted as scored.
            only_score = (
                assessment.error is None
                and assessment.verdict is None
                and assessment.score is not None
            )
            verdicts[info.name]["scored" if only_score else describe_verdict(assessment)] += 1
            if assessment.score is not None:
                low, high = info.score_range
                # The upper end of the range falls into the last part.
                part = int(BINS * (assessment.score - low) / (high - low))
                scores[info.name][min(part, BINS - 1)] += 1
        # Findings of this level say only that an answer was scored: they put it into no list.
        findings = [
            finding for finding in row.findings if finding.kind.level != AnswerPriority.REST
        ]
        worst_finding = worst_of(findings)
        if worst_finding is None:
            continue
        candidates += 1
        unscored += worst_finding.kind.level == AnswerPriority.FAILURE
        # ``need_of`` sorts the neediest first; negated, the neediest is the largest in the heap.
        need = tuple(-number for number in need_of(findings))
        number = row.findings.index(worst_finding)
        # Of equal need the earlier answer wins: the count of answers is its number in the input.
        entry = need, -look_counts.answers, worst_finding.badness, number, row.place
        (heapq.heappush if len(worst) < most else heapq.heappushpop)(worst, entry)
    worst_answers = []
    # Only now samples and evidence are read, for the few that are listed.
    for _, _, badness, number, place in sorted(worst, reverse=True):
        metric = metrics[number]
        stored_assessments = folder.assessments_at(place.assessments, len(metrics))
        assessment = next(item for item in stored_assessments if item.metric == metric.name)
        reason, sample = describe_reason(metric, assessment), folder.sample_at(place.sample)
        piece = _find_bad_piece(metric, sample, assessment)
        worst_answers.append(WorstAnswer(sample, assessment, reason, badness, piece))
    return LookSummary(look_counts, candidates, unscored, worst_answers, verdicts, scores)


def _find_bad_piece(metric: Metric, sample: Sample, assessment: Assessment) -> JudgedPiece | None:
    """Return the sentence that a metric marks as bad: see :attr:`WorstAnswer.piece`."""
    try:
        pieces = metric.view(sample, assessment).judged if assessment.error is None else ()
        bad = [piece for piece in pieces if piece.mark.tone == "bad"]
        of_verdict = [piece for piece in bad if piece.verdict == assessment.verdict]
    # A metric of another package may fail here; its verdict and reason are enough.
    except Exception:
        return None
    return next(iter(of_verdict or bad), None)


def describe_reason(metric: Metric, assessment: Assessment) -> str:
    """Return in one line why an answer has its verdict, or the error if it failed."""
    if assessment.error is not None:
        return one_line(assessment.error)
    try:
        reason = assessment.reason or metric.problem(assessment) or ""
    # A metric of another package may fail here; the verdict stands without its reason.
    except Exception as error:
        reason = f"the reason is not available: {type(error).__name__}: {error}"
    return one_line(reason)


def describe_verdict(assessment: Assessment) -> str:
    """Return the verdict; ``failed``, the score or "no score" if there is none."""
    if assessment.error is not None:
        return "failed"
    if assessment.verdict is not None:
        return assessment.verdict
    # A metric without verdicts: its score says what it found.
    return NO_SCORE if assessment.score is None else f"score {assessment.score:.3g}"


def describe_first_verdict(
    metric: Metric, sample: Sample, assessment: Assessment, total: int
) -> str:
    """Return the line that a run shows when the first of its ``total`` answers is judged."""
    question = shorten_text(one_line(sample.question), MAX_VERDICT_CHARACTERS)
    message = f"first result of {total:,}: {question} – {one_line(describe_verdict(assessment))}"
    reason = shorten_text(describe_reason(metric, assessment), MAX_VERDICT_CHARACTERS)
    return f"{message}: {reason}" if reason else message


def one_line(text: str) -> str:
    """Return text on one line, without control characters, which a terminal would obey."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def shorten_text(text: str, length: int) -> str:
    """Return text of at most ``length`` characters, cut between words if there are any."""
    if len(text) <= length:
        return text
    head = text[: length - 1]
    # A space in the first half would cut away more than it tidies: then the cut is inside a word.
    last_space = head.rfind(" ")
    return (head[:last_space] if last_space > length // 2 else head).rstrip() + "…"


@dataclass(frozen=True)
class RunOutcome:
    """What :func:`~trustassay.runs.execute.execute` did in this process.

    The results themselves are in the folder.
    """

    metrics: Sequence[Metric]
    """The metrics, with their ``auto`` options settled."""
    intake: Intake
    """The result of the first pass over the input."""
    scored_before: int
    """(sample, metric) pairs that an earlier process had scored."""
    counts: Mapping[str, RequestCounts]
    """Counts of calls by capability; empty if nothing was left to do."""
    filled: FillOutcome
    """What the stages filled."""
    endpoints: Mapping[str, Endpoint]
    """The endpoints that were called, by address."""
    seconds: float
    """Duration of this process' part of the run."""


class Run:
    """A finished run. Everything is read from its folder when it is used."""

    def __init__(self, folder: RunFolder, outcome: RunOutcome, index: Any = None) -> None:
        """Take a folder with a finished run.

        Args:
            index: the index of the rows that were scored, if the input was a pandas frame.
        """
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
        """The result of the calibrator; ``None`` without one.

        It says how many answers are accepted, and whether the run is like the one that the
        calibrator was made from. ``to_pandas`` has each answer's probability.
        """
        from trustassay.runs.calibrator import CALIBRATED

        return self.summary_file.get(CALIBRATED)

    def looks(self, most: int = 5) -> LookSummary:
        """Return how many answers need a look, and the ``most`` worst of them."""
        return find_worst_answers(self._folder, self.metrics, most)

    def worst(self, n: int = 5) -> list[WorstAnswer]:
        """Return the ``n`` worst answers, the worst first, each with its reason.

        An answer needs a look if a metric says so by its line, or if it could not be scored; those
        that could not be scored come last. For a metric without a line the worst scores come first.
        """
        return list(self.looks(n).worst)

    def explain_unjudged(self) -> list[str]:
        """Return sentences on the answers that were not judged: why, and what to do."""
        from trustassay.runs.unjudged import explain_unjudged

        settings = self._folder.read_run()
        sentences = explain_unjudged(self.summary_file, settings) if settings else []
        if not sentences and self.summary_file.get(LOOKED_KEY, {}).get("judged") == 0:
            # The metric itself knows best why it cannot assess an answer.
            reasons = (assessment.reason for assessment in self.assessments)
            first_reason = next(filter(None, reasons), "")
            sentences = (
                [f"The first answer was not judged: {first_reason}."] if first_reason else []
            )
        return sentences

    def __repr__(self) -> str:
        """The outcomes, how many answers need a look, the headline figures, and the folder."""
        return as_text(self._build_view(0))

    def _repr_html_(self) -> str:
        """What a notebook shows: the same as a table, the scores as a picture, the worst answers.

        Every text of the samples is escaped.
        """
        return as_html(self._build_view(5))

    def _build_view(self, worst: int) -> NotebookRun:
        from trustassay.runs.report import describe_judge

        result, settings = self.looks(worst), self._folder.read_run()
        judge = describe_judge(settings, self.summary_file) if settings else None
        remarks = self.explain_unjudged()
        failure = None
        if not result.look_counts.judged:
            failure = next(self.assessments.iter_failures(), None)
        if failure is not None:
            remarks.append(f"The first failure: {failure.error}")
        return NotebookRun(
            str(self.path),
            [outcomes.lines for outcomes in self.outcomes.values()],
            result.sentence(),
            [
                NotebookMetric(
                    metric,
                    self.summaries[metric.name],
                    result.verdicts[metric.name],
                    result.scores[metric.name],
                )
                for metric in self.metrics
            ],
            [
                (answer.id, shorten_text(answer.question, 240), answer.verdict, answer.reason)
                for answer in result.worst
            ],
            [*judge.lines, judge.why_metric] if judge else [],
            remarks,
        )

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the assessments as a table: ``id``, ``question``, ``response`` and results.

        ``outcome`` is ``passed``, ``failed`` or ``not_answered``, of a metric without a line
        ``scored`` or ``not_scored``; ``outcome_reason`` says why an answer was not judged.
        If the input was a pandas frame, the table has its index, unless more than 1,000 rows were
        skipped.

        Raises:
            ImportError: pandas is not installed; the message says how to install it.
        """
        try:
            import pandas
        except ImportError as error:
            message = f"to_pandas needs pandas, which is not installed: {install_command('pandas')}"
            raise ImportError(message) from error
        # Imported here: most users of a run never ask for a table.
        import arro3.io

        # arro3 and not pyarrow, which alone takes 170 MB of an installation.
        table = arro3.io.read_parquet(self._folder.parquet_path).read_all()
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
        # The table of a run of an earlier version: its outcomes are counted from the assessments.
        if "outcome" not in columns:
            metrics = {metric.name: metric for metric in self.metrics}
            columns |= build_outcome_columns(metrics, self.assessments)
        # Questions and responses are not in the table; with several metrics a sample has several
        # rows.
        places: dict[str, int] = {}
        texts: dict[str, list[Any]] = {"question": [], "response": []}
        for place, record in enumerate(self._folder.sample_records()):
            places[record["id"]] = place
            for name, result in texts.items():
                result.append(record.get(name))
        rows = [places[sample_id] for sample_id in columns["id"]]
        text_columns = {name: [values[row] for row in rows] for name, values in texts.items()}
        frame = pandas.DataFrame({"id": columns.pop("id"), **text_columns, **columns})
        # The frame's own labels, repeated for each metric, so that users can join on them.
        return frame if self._index is None else frame.set_axis(self._index.take(rows))

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the report page, to ``path`` or into the run's folder, and return where it is."""
        from trustassay.runs.report import write_report

        write_report(self._folder, self.metrics)
        if path is None:
            return self._folder.report_path
        return Path(shutil.copyfile(self._folder.report_path, path))
