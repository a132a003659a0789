"""Assertions on answers in pytest: ``pytest -p trustassay.pytest_plugin``.

def test_capital(assert_trust):
    answer = my_system("Where is the Louvre?")
    assert_trust(
        {"question": "…", "response": answer.text, "documents": answer.passages},
        "faithfulness",
        at_least=0.9,
    )
"""

import math
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from trustassay.core.metric import Assessment, Metric
from trustassay.core.outcome import Outcomes
from trustassay.core.sample import Sample
from trustassay.errors import UsageError

MAX_EVIDENCE_ITEMS, MAX_ITEM_CHARS = 20, 240
"""Pieces of evidence in a message, and characters of each piece."""


class AssertTrust:
    """Scores single samples and compares the score with bounds; each local model is loaded once.

    Args:
        backends: as for :func:`trustassay.score`: ``entailer``, ``judge``, ...; a metric receives
            those that it uses.
    """

    def __init__(self, backends: Mapping[str, Any]) -> None:
        self._backends = dict(backends)
        self._loaded: dict[tuple[str, str], Any] = {}

    def __call__(
        self,
        sample: Sample | Mapping[str, Any],
        metric: Metric | str,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> Assessment:
        """Score a sample and return its assessment.

        Args:
            sample: in any layout that ``score`` reads.
            metric: a metric, or its name with options as on the command line.
            at_least, at_most: bounds of the score, in the metric's own range.

        Raises:
            AssertionError: the score is out of bounds, or there is none; the message has the
                reason and the evidence.
            ValueError: no bound is given, or one that is outside the metric's range; and as
                ``score``.
        """
        # pytest then shows the failure at the line of the user's test.
        __tracebackhide__ = True
        from trustassay.api import score
        from trustassay.core.registry import metric_from_text, read_score

        # Without a bound the assertion could never fail.
        if at_least is None and at_most is None:
            raise UsageError("assert_trust: expected a bound of the score, at_least= or at_most=")
        metric_object = metric_from_text(metric) if isinstance(metric, str) else metric
        low = -math.inf if at_least is None else read_score(metric_object, "at_least", at_least)
        high = math.inf if at_most is None else read_score(metric_object, "at_most", at_most)
        run = score([sample], metrics=metric_object, **self._load_backends(metric_object))
        result = run.assessments[0]
        if result.error is None and result.score is not None and low <= result.score <= high:
            return result
        outcome = run.outcomes[metric_object.name]
        raise AssertionError("\n".join(_build_message(result, outcome, at_least, at_most)))

    def _load_backends(self, metric: Metric) -> dict[str, Any]:
        """Return the backends that a metric uses; local ones are loaded, once each."""
        from trustassay.runs.needs import list_demands

        demands = list_demands([metric], self._backends)
        used_names = {demand.option_name for demand in demands}
        result = {word: backend for word, backend in self._backends.items() if word in used_names}
        for demand in demands:
            kind = demand.served
            choice = result.get(kind.backend, None if demand.need.optional else demand.default)
            # Chat models are opened by the run itself; objects are loaded already.
            if kind.name == "chat" or not isinstance(choice, str):
                continue
            key = (kind.backend, choice)
            if key not in self._loaded:
                self._loaded[key] = kind.load(choice)
            result[kind.backend] = self._loaded[key]
        return result


def _build_message(
    assessment: Assessment, outcomes: Outcomes, at_least: float | None, at_most: float | None
) -> Iterator[str]:
    """Yield the lines of a failed assertion: scores, bounds, verdict, reason and evidence."""
    bounds = [("at least", at_least), ("at most", at_most)]
    expected = " and ".join(f"{label} {bound:g}" for label, bound in bounds if bound is not None)
    score = "no score" if assessment.score is None else f"score {assessment.score:.3g}"
    yield f"{assessment.metric}: {_describe_outcome(outcomes)}; {score}, expected {expected}"
    if assessment.error is not None:
        yield f"could not be scored: {assessment.error}"
    if assessment.verdict:
        yield f"verdict: {assessment.verdict}"
    if assessment.reason:
        yield f"reason: {assessment.reason}"
    if assessment.evidence:
        yield "evidence:"
    for item in assessment.evidence[:MAX_EVIDENCE_ITEMS]:
        message = "; ".join(
            f"{key}: {value}" for key, value in item.items() if value not in (None, "", [])
        )
        yield f"  - {textwrap.shorten(message, MAX_ITEM_CHARS, placeholder=' …')}"
    if len(assessment.evidence) > MAX_EVIDENCE_ITEMS:
        yield f"  ... and {len(assessment.evidence) - MAX_EVIDENCE_ITEMS} more"


def _describe_outcome(outcomes: Outcomes) -> str:
    """Return the outcome of the only question in the metric's own words."""
    word = next(outcomes.words[kind] for kind, share in outcomes.shares.items() if share.answers)
    return f"{word} ({next(iter(outcomes.reasons))})" if outcomes.reasons else word


@pytest.fixture(scope="session")
def trust_backends() -> Mapping[str, Any]:
    """The backends of ``assert_trust``; override it to name others: ``{"entailer": "lexical"}``."""
    return {}


@pytest.fixture(scope="session")
def assert_trust(trust_backends: Mapping[str, Any]) -> AssertTrust:
    """Return ``assert_trust(sample, metric, at_least=...)``; models are loaded once a session."""
    return AssertTrust(trust_backends)
