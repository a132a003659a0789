"""The outcomes of a run's questions by each of its metrics, counted in one pass."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trustassay.core import outcome as outcomes
from trustassay.core.outcome import Outcome, OutcomeCounter, Outcomes
from trustassay.metric import Assessment, Metric, MetricInfo
from trustassay.runs.lines import HashSet, hash64
from trustassay.statistics import Places

MIN_COPIED_WORDS = 8
"""Words of an answer from which it can be a copy of a passage; a name or a number is an answer."""


def outcome_of(metric: Metric | None, assessment: Assessment) -> Outcome:
    """Return what became of a question; ``metric`` is ``None`` where it is not installed.

    A metric of another package that fails here counts as failed: an error hides nothing.
    """
    if metric is not None:
        kinds = outcomes.WITH_LINE if metric.counts_outcomes else outcomes.WITHOUT_LINE
        try:
            outcome = metric.outcome(assessment)
            if outcome.kind in kinds:
                return outcome
        except Exception:  # of another package's metric: below it counts as failed
            pass
        failed = outcomes.FAILED if metric.counts_outcomes else outcomes.NOT_SCORED
        return Outcome(failed, "the metric failed")
    if assessment.error is None and assessment.score is not None:
        return Outcome(outcomes.SCORED)
    reason = outcomes.ERROR if assessment.error is not None else assessment.verdict
    return Outcome(outcomes.NOT_SCORED, reason or outcomes.NOT_ASSESSABLE)


def outcome_columns(
    metrics: Mapping[str, Metric], assessments: Iterable[Assessment]
) -> dict[str, list[str | None]]:
    """Return the columns ``outcome`` and ``outcome_reason`` of a table of assessments.

    ``metrics`` are those that are installed, by name. A reason is ``None`` where there is none.
    """
    columns: dict[str, list[str | None]] = {"outcome": [], "outcome_reason": []}
    for assessment in assessments:
        outcome = outcome_of(metrics.get(assessment.metric), assessment)
        columns["outcome"].append(outcome.kind)
        columns["outcome_reason"].append(outcome.reason or None)
    return columns


class RunOutcomes:
    """Counts the outcomes of a run, and answers that are copies, sample by sample in input order.

    Args:
        infos: the metrics of the run, in their order. metrics: those that are installed, by name.
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
        self._counters = {info.name: _counter_of(info.name, metrics) for info in infos}
        self._answers_seen = HashSet()
        self.repeated = 0
        """Answers that say the same as an earlier one to the same question, by the same model."""
        self.copied = 0
        """Answers that are a passage, word for word."""

    def add(self, sample: Mapping[str, Any], sample_outcomes: Iterable[Outcome]) -> None:
        """Count a sample as it is stored, with its outcome by each metric, in their order."""
        for counter, outcome in zip(self._counters.values(), sample_outcomes, strict=True):
            counter.add(outcome)
        response = " ".join(str(sample.get("response") or "").split())
        if response:
            self._count_repeated(sample, response)
            self.copied += is_copy_of_passage(response, sample.get("documents") or ())

    def _count_repeated(self, sample: Mapping[str, Any], response: str) -> None:
        # Marks and spaces in a question, and its passages, do not make another question of it here.
        question = "".join(filter(str.isalnum, str(sample.get("question")))).casefold()
        key = hash64(question, str(sample.get("model")), response.casefold())
        if key in self._answers_seen:
            self.repeated += 1
        self._answers_seen.add(key)

    def by_metric(self) -> dict[str, Outcomes]:
        """Return the outcomes by the name of the metric."""
        return {
            name: counter.outcomes(self._questions, self._units, self.repeated)
            for name, counter in self._counters.items()
        }


def _counter_of(name: str, metrics: Mapping[str, Metric]) -> OutcomeCounter:
    metric = metrics.get(name)
    if metric is None:  # it is not known where it draws a line
        words = {outcomes.SCORED: "scored", outcomes.NOT_SCORED: "not scored"}
        return OutcomeCounter(name, words, has_line=False)
    return OutcomeCounter(name, metric.outcome_words, has_line=metric.counts_outcomes)


def is_copy_of_passage(response: str, documents: Iterable[Mapping[str, Any]]) -> bool:
    """Whether an answer stands word for word in a passage and is at least half of it.

    ``response`` has single spaces. One sentence out of a long passage is a quotation, no copy.
    """
    if response.count(" ") + 1 < MIN_COPIED_WORDS:
        return False
    for document in documents:
        raw = str(document.get("text") or "")
        # Most passages are far longer than an answer; their white space need not be looked at.
        if len(raw) > 4 * len(response):
            continue
        text = " ".join(raw.split())
        if response in text and 2 * len(response) >= len(text):
            return True
    return False
