"""Evaluate the answers of a running query engine through LlamaIndex's instrumentation."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from llama_index.core.base.response.schema import PydanticResponse, Response
from llama_index.core.evaluation import EvaluationResult
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.query import QueryEndEvent
from llama_index.evaluation.trust_eval.evaluators import TrustMetricEvaluator
from pydantic import PrivateAttr

__all__ = ["TrustEvaluationHandler"]

KEPT = 1000
"""Results that a handler keeps; older ones are dropped."""


class TrustEvaluationHandler(BaseEventHandler):
    """Evaluates every answer of the engines to whose dispatcher it is added, in the background.

    The engine does not wait. ``on_result`` is called with the name of the evaluator and its result,
    from another thread; the last thousand results are in ``results``. A stream is not read, since
    it is for the engine's own caller: it counts in ``skipped``. ::

        handler = TrustEvaluationHandler({"faithfulness": GroundedFaithfulnessEvaluator()})
        llama_index.core.instrumentation.get_dispatcher().add_event_handler(handler)
    """

    _evaluators: dict[str, TrustMetricEvaluator] = PrivateAttr()
    _on_result: Callable[[str, EvaluationResult], object] | None = PrivateAttr()
    _results: deque[tuple[str, EvaluationResult]] = PrivateAttr()
    _idle: threading.Condition = PrivateAttr()
    _waiting: int = PrivateAttr(default=0)
    _skipped: int = PrivateAttr(default=0)

    def __init__(
        self,
        evaluators: dict[str, TrustMetricEvaluator],
        on_result: Callable[[str, EvaluationResult], object] | None = None,
    ) -> None:
        super().__init__()
        self._evaluators, self._on_result = evaluators, on_result
        # Bounded: a handler may live as long as a server.
        self._results = deque(maxlen=KEPT)
        self._idle = threading.Condition()

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex registers the class."""
        return "TrustEvaluationHandler"

    @property
    def results(self) -> list[tuple[str, EvaluationResult]]:
        """The last results, each with the name of its evaluator, in the order of finishing."""
        with self._idle:
            return list(self._results)

    @property
    def skipped(self) -> int:
        """The number of answers that were streams."""
        return self._skipped

    def handle(self, event: Any, **_: Any) -> None:
        """Start to evaluate an answer; ignore other events."""
        if not isinstance(event, QueryEndEvent):
            return
        # A stream can be read only once, and the caller needs it.
        if not isinstance(event.response, Response | PydanticResponse):
            self._skipped += 1
            return
        for name, evaluator in self._evaluators.items():
            with self._idle:
                # Before the evaluation starts, so that `wait` never returns too early.
                self._waiting += 1
            evaluator.begin(event.query, event.response, partial(self._record_result, name))

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until no evaluation is in progress; return ``False`` after the timeout."""
        with self._idle:
            return self._idle.wait_for(lambda: self._waiting == 0, timeout_s)

    def _record_result(self, name: str, result: EvaluationResult) -> None:
        try:
            # The result counts as finished also if the callback raises, so that `wait` ends.
            if self._on_result is not None:
                self._on_result(name, result)
        finally:
            with self._idle:
                self._results.append((name, result))
                self._waiting -= 1
                self._idle.notify_all()
