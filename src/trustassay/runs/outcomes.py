"""The outcomes of a run's questions by each of its metrics, counted in one pass."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trustassay.core import outcome as outcomes
from trustassay.core.metric import Assessment, Metric, MetricInfo
from trustassay.core.outcome import Outcome, OutcomeCounter, Outcomes
from trustassay.runs.lines import HashSet, hash64
from trustassay.statistics import Places

MIN_COPIED_WORDS = 8
"""Words from which an answer can be a copy of a passage; a name or a number is none."""


def determine_outcome(metric: Metric | None, assessment: Assessment) -> Outcome:
    """Return the outcome of a question.

    If a metric of another package raises here, the question counts as failed, so that an error
    hides nothing.

    Args:
        metric: ``None`` if it is not installed.
    """
    if metric is not None:
        kinds = outcomes.WITH_LINE if metric.counts_outcomes else outcomes.WITHOUT_LINE
        try:
            outcome = metric.outcome(assessment)
            if outcome.kind in kinds:
                return outcome
        except Exception:
            # Of another package's metric: the question counts as failed below.
            pass
        failed = outcomes.FAILED if metric.counts_outcomes else outcomes.NOT_SCORED
        return Outcome(failed, "the metric failed")
    if assessment.error is None and assessment.score is not None:
        return Outcome(outcomes.SCORED)
    reason = outcomes.ERROR if assessment.error is not None else assessment.verdict
    return Outcome(outcomes.NOT_SCORED, reason or outcomes.NOT_ASSESSABLE)


def build_outcome_columns(
    metrics: Mapping[str, Metric], assessments: Iterable[Assessment]
) -> dict[str, list[str | None]]:
    """Return the columns ``outcome`` and ``outcome_reason`` of a table of assessments.

    Args:
        metrics: the installed ones, by name.
        assessments: one for each row. A row without a reason has ``None``.
    """
    columns: dict[str, list[str | None]] = {"outcome": [], "outcome_reason": []}
    for assessment in assessments:
        outcome = determine_outcome(metrics.get(assessment.metric), assessment)
        columns["outcome"].append(outcome.kind)
        columns["outcome_reason"].append(outcome.reason or None)
    return columns


class RunOutcomes:
    """Counts the outcomes of a run, and answers that are copies, sample by sample in input order.

    Args:
        infos: the metrics of the run, in their order.
        metrics: the installed ones, by name.
        questions, units: as for :meth:`trustassay.core.outcome.OutcomeCounter.outcomes`.
    """

    def __init__(
        self,
        infos: Sequence[MetricInfo],
        metrics: Mapping[str, Metric],
        questions: Places | None,
        units: Places | None,
    ) -> None:
        self._metrics, self._questions, self._units = metrics, questions, units
        self._counters = {info.name: _build_counter(info.name, metrics) for info in infos}
        self._answer_hashes = HashSet()
        self.repeated = 0
        """Answers that equal an earlier one to the same question, by the same model."""
        self.copied = 0
        """Answers that repeat a passage word for word."""

    def add(self, sample: Mapping[str, Any], sample_outcomes: Iterable[Outcome]) -> None:
        """Count a stored sample, with its outcome by each metric, in the order of the metrics."""
        for counter, outcome in zip(self._counters.values(), sample_outcomes, strict=True):
            counter.add(outcome)
        response = " ".join(str(sample.get("response") or "").split())
        if response:
            self._count_repeated(sample, response)
            self.copied += is_copy_of_passage(response, sample.get("documents") or ())

    def _count_repeated(self, sample: Mapping[str, Any], response: str) -> None:
        # Questions count as the same whatever their punctuation, spaces and passages: a copy of an
        # answer under a new id is counted even if these were changed.
        question = "".join(filter(str.isalnum, str(sample.get("question")))).casefold()
        key = hash64(question, str(sample.get("model")), response.casefold())
        if key in self._answer_hashes:
            self.repeated += 1
        self._answer_hashes.add(key)

    def by_metric(self) -> dict[str, Outcomes]:
        """Return the outcomes by the name of the metric."""
        return {
            name: counter.outcomes(self._questions, self._units, self.repeated)
            for name, counter in self._counters.items()
        }


def _build_counter(name: str, metrics: Mapping[str, Metric]) -> OutcomeCounter:
    metric = metrics.get(name)
    if metric is None:
        # A metric that is not installed: where it draws a line is not known.
        words = {outcomes.SCORED: "scored", outcomes.NOT_SCORED: "not scored"}
        return OutcomeCounter(name, words, has_line=False)
    return OutcomeCounter(name, metric.outcome_words, has_line=metric.counts_outcomes)


def is_copy_of_passage(response: str, documents: Iterable[Mapping[str, Any]]) -> bool:
    """Whether an answer stands word for word in a passage and is at least half of it.

    One sentence out of a long passage is a quotation and no copy.

    Args:
        response: the answer, with single spaces.
    """
    if response.count(" ") + 1 < MIN_COPIED_WORDS:
        return False
    for document in documents:
        raw = str(document.get("text") or "")
        # Most passages are far longer than an answer: skip them before splitting them into words.
        if len(raw) > 4 * len(response):
            continue
        text = " ".join(raw.split())
        if response in text and 2 * len(response) >= len(text):
            return True
    return False
