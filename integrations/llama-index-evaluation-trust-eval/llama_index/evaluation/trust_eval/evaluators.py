"""The metrics of trustassay as LlamaIndex evaluators: one answer in, one result out."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, ClassVar

from llama_index.core.base.response.schema import PydanticResponse, Response
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.schema import QueryBundle
from llama_index.evaluation.trust_eval.models import (
    as_embedder,
    as_model,
    as_retriever,
    settings_llm,
)
from llama_index.evaluation.trust_eval.nodes import (
    documents_of,
    documents_of_texts,
    question_of,
    response_text,
)

import trustassay
from trustassay import Assay, Assessment
from trustassay.core.metric import Metric
from trustassay.core.outcome import NOT_ANSWERED, PASSED
from trustassay.core.registry import metric_from_text
from trustassay.live.scorer import ThreadScorer

__all__ = [
    "BehaviouralTrustScoreEvaluator",
    "ConsistencyEvaluator",
    "FactCheckEvaluator",
    "GroundedFaithfulnessEvaluator",
    "GroundingEvaluator",
    "HarmonicityEvaluator",
    "PreferenceEvaluator",
    "ReferenceEvaluator",
    "RetrieverOrGeneratorEvaluator",
    "RubricEvaluator",
    "SemanticHarmonicityEvaluator",
    "ToolUseEvaluator",
    "TrustMetricEvaluator",
    "UncertaintyEvaluator",
]

_SAMPLE_FIELDS = {
    "answers",
    "claims",
    "references",
    "resamples",
    "wrong_answers",
    "other_response",
    "id",
    "steps",
}
"""Fields of a sample that may be given in addition to question, response and contexts."""
_IGNORED_ARGUMENTS = {"sleep_time_in_seconds"}
"""Arguments of LlamaIndex's own evaluators that have no effect here."""


class TrustMetricEvaluator(BaseEvaluator):
    """Evaluates answers by one metric of trustassay, with models that are loaded once.

    Args:
        metric: a metric or its name with options, as in ``"faithfulness:threshold=0.6"``.
        llm: a LlamaIndex LLM, or a model as trustassay names it (``"openai:gpt-4o-mini"``), for
            the chat model that the metric needs; without it ``Settings.llm`` if that was set.
        embed_model: a LlamaIndex embedding for a metric that compares meanings; without it
            trustassay's embedded one.
        retriever: a LlamaIndex retriever or index for a metric that searches.
        threshold: a result passes from this score on (or up to it, if low scores of the metric are
            good); by default the outcome or the verdict of the metric decides.
        options: everything else that :func:`trustassay.scorer` takes: ``entailer``, ``judge``,
            ``out`` (a folder to which all answers and assessments are added), ``budget``, ...

    A failure is a result with ``invalid_result``; only wrong arguments of the evaluator raise.
    ``score`` is the metric's own: for some metrics low scores are good.
    """

    def __init__(
        self,
        metric: str | Metric,
        *,
        llm: Any = None,
        embed_model: Any = None,
        retriever: Any = None,
        threshold: float | None = None,
        **options: Any,
    ) -> None:
        self.metric = metric_from_text(metric) if isinstance(metric, str) else metric
        self._threshold = threshold
        # The user's options win over backends of LlamaIndex.
        self._options = _choose_backends(self.metric, llm, embed_model, retriever) | options
        self._thread_scorer: ThreadScorer | None = None
        self._opening = threading.Lock()
        # A wrong option must raise here, and not at the first answer.
        if not self._opens_later:
            self._open_scorer()

    _opens_later: ClassVar[bool] = False

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        """Evaluate one answer to a question, with the texts that it was written from.

        ``reference`` is the gold answer, or several; other fields of a sample can be given by
        their names (``claims``, ``resamples``, ...).
        """
        # No contexts differs from an empty list: then there is nothing to judge by.
        documents = None if contexts is None else documents_of_texts(contexts)
        return await self._await_result(question_of(query), response, documents, kwargs)

    async def aevaluate_response(
        self, query: str | None = None, response: Any = None, **kwargs: Any
    ) -> EvaluationResult:
        """Evaluate what a query engine returned; its source nodes are the documents.

        The titles of nodes are kept, and what a CitationQueryEngine puts before a text is removed.
        """
        try:
            text, nodes = (None, []) if response is None else await response_text(response)
            documents = None if response is None else documents_of(nodes)
        except Exception as error:
            return _build_invalid_result(
                question_of(query), None, None, f"{type(error).__name__}: {error}"
            )
        return await self._await_result(question_of(query), text, documents, kwargs)

    def evaluate_response(
        self, query: str | None = None, response: Any = None, **kwargs: Any
    ) -> EvaluationResult:
        """Call :meth:`aevaluate_response`, and wait for the result."""
        from llama_index.core.async_utils import asyncio_run

        result: EvaluationResult = asyncio_run(self.aevaluate_response(query, response, **kwargs))
        return result

    def close(self) -> None:
        """Finish evaluations in progress, and write the results of a folder (``out``)."""
        opened, self._thread_scorer = self._thread_scorer, None
        if opened is not None:
            opened.close()

    def begin(
        self,
        query: str | QueryBundle | None,
        response: Response | PydanticResponse,
        on_result: Callable[[EvaluationResult], object],
    ) -> None:
        """Start to evaluate a response; ``on_result`` gets the result in another thread."""
        text = str(response) if isinstance(response, PydanticResponse) else response.response
        documents = documents_of(response.source_nodes)
        future = self._submit(question_of(query), text, documents, {})
        future.add_done_callback(lambda finished: on_result(finished.result()))

    async def _await_result(
        self,
        query: str | None,
        response: str | None,
        documents: Sequence[Mapping[str, str]] | None,
        fields: Mapping[str, Any],
    ) -> EvaluationResult:
        return await asyncio.wrap_future(self._submit(query, response, documents, fields))

    def _submit(
        self,
        query: str | None,
        response: str | None,
        documents: Sequence[Mapping[str, str]] | None,
        fields: Mapping[str, Any],
    ) -> Future[EvaluationResult]:
        # LlamaIndex shows the contexts of a result as texts.
        texts = None if documents is None else [document["text"] for document in documents]
        result: Future[EvaluationResult] = Future()

        def finish(assay: Future[Assay]) -> None:
            with suppress(InvalidStateError):  # the caller has cancelled
                try:
                    assessment = assay.result()[self.metric.name]
                # Whatever happens in the scorer, the waiting caller must get a result.
                except BaseException as error:
                    message = str(error) or type(error).__name__
                    result.set_result(_build_invalid_result(query, response, texts, message))
                else:
                    result.set_result(self._build_result(query, response, texts, assessment))

        try:
            work = self._open_scorer().submit(_build_record(query, response, documents, fields))
        except Exception as error:
            result.set_result(_build_invalid_result(query, response, texts, str(error)))
        else:
            work.add_done_callback(finish)
            # A caller that stops waiting also stops the work.
            result.add_done_callback(lambda future: future.cancelled() and work.cancel())
        return result

    def _build_result(
        self,
        query: str | None,
        response: str | None,
        texts: Sequence[str] | None,
        assessment: Assessment,
    ) -> EvaluationResult:
        # LlamaIndex has no score of `None`: it counts as invalid.
        if assessment.error is not None or assessment.score is None:
            return _build_invalid_result(
                query, response, texts, assessment.error or assessment.reason or "no score"
            )
        feedback = [assessment.reason, self.metric.problem(assessment) or ""]
        return EvaluationResult(
            query=query,
            response=response,
            contexts=texts,
            score=assessment.score,
            passing=self._passes(assessment.score, assessment),
            feedback="; ".join(dict.fromkeys(text for text in feedback if text))
            or assessment.verdict,
        )

    def _passes(self, score: float, assessment: Assessment) -> bool | None:
        """Return whether an answer passed; ``None`` if it does not answer, or nothing decides it.

        The user's threshold decides, or else the outcome that a run counts, or else the verdict.
        """
        # The user's threshold wins over the metric's own outcome.
        if self._threshold is not None:
            lower = self.metric.lower_is_better
            return score <= self._threshold if lower else score >= self._threshold
        if self.metric.counts_outcomes:
            kind = self.metric.outcome(assessment).kind
            return None if kind == NOT_ANSWERED else kind == PASSED
        # The first verdict of a metric is its best one.
        best = next(iter(self.metric.verdicts), None)
        verdict = assessment.verdict
        return None if verdict is None or best is None else verdict == best

    def _open_scorer(self) -> ThreadScorer:
        # Two threads may evaluate for the first time at once; only one scorer may be opened.
        with self._opening:
            if self._thread_scorer is None:
                door = trustassay.scorer(metrics=self.metric, **self._options)
                self._thread_scorer = door.__enter__()
                # `stop` does not wait: garbage may be collected in the scorer's own thread.
                # An evaluator has no end that its user must call; the thread must not outlive it.
                weakref.finalize(self, self._thread_scorer.stop)
            return self._thread_scorer

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        """Prompts of metrics are files, which a metric's own options replace."""


def _build_invalid_result(
    query: str | None, response: str | None, contexts: Sequence[str] | None, reason: str
) -> EvaluationResult:
    return EvaluationResult(
        query=query,
        response=response,
        contexts=contexts,
        invalid_result=True,
        invalid_reason=reason,
        feedback=reason,
    )


def _build_record(
    query: str | None,
    response: str | None,
    documents: Sequence[Mapping[str, str]] | None,
    arguments: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the record of a sample.

    Raises:
        ValueError: an argument is unknown.
    """
    fields = {name: value for name, value in arguments.items() if name not in _IGNORED_ARGUMENTS}
    reference = fields.pop("reference", None)
    # A misspelt field would otherwise be ignored.
    if strange := sorted(set(fields) - _SAMPLE_FIELDS):
        allowed = ", ".join(sorted(_SAMPLE_FIELDS | {"reference"}))
        raise ValueError(f"unknown argument {strange[0]!r}; known: {allowed}")
    record = {"question": query, "response": response, "documents": documents, **fields}
    # LlamaIndex has one reference; trustassay takes several answers with aliases.
    if reference is not None:
        golds = [reference] if isinstance(reference, str) else list(reference)
        record["answers"] = [[gold] if isinstance(gold, str) else gold for gold in golds]
    # A missing field differs from an empty one.
    return {name: value for name, value in record.items() if value is not None}


def _choose_backends(metric: Metric, llm: Any, embed_model: Any, retriever: Any) -> dict[str, Any]:
    """Return the backends that a metric needs, of those that LlamaIndex brings.

    Raises:
        ValueError: a backend is given that the metric does not use.
    """
    need_of_capability = {need.capability: need for need in metric.needs()}
    roles = [
        need.role or "model" for need in metric.needs() if need.capability in ("chat", "choose")
    ]
    backends: dict[str, Any] = {}
    for name, value, is_used in (
        ("llm", llm, bool(roles)),
        ("embed_model", embed_model, "embed" in need_of_capability),
        ("retriever", retriever, "search" in need_of_capability),
    ):
        if value is not None and not is_used:
            raise ValueError(f"{name} is given, but {metric.name} does not use it")
    # The LLM of the settings is optional: only metrics with a role for it use it.
    llm = llm if llm is not None else settings_llm()
    if llm is not None:
        backends |= dict.fromkeys(roles, as_model(llm))
    if embed_model is not None:
        backends["embedder"] = as_embedder(embed_model)
    if retriever is not None:
        backends["retriever"] = as_retriever(retriever)
    return backends


class _NamedMetricEvaluator(TrustMetricEvaluator):
    """An evaluator of one metric; its options are those of the metric and of the base class."""

    _metric: ClassVar[str]

    def __init__(self, metric_options: str = "", **options: Any) -> None:
        """``metric_options`` as on the command line: ``"threshold=0.6,claims=model"``."""
        text = f"{self._metric}:{metric_options}" if metric_options else self._metric
        super().__init__(text, **options)


class GroundedFaithfulnessEvaluator(_NamedMetricEvaluator):
    """Does the answer say only what its passages say? (``faithfulness``)"""

    _metric = "faithfulness"


class GroundingEvaluator(_NamedMetricEvaluator):
    """Is a cited answer correct, supported by what it cites, or rightly refused? (``grounding``)"""

    _metric = "grounding"


class FactCheckEvaluator(_NamedMetricEvaluator):
    """Do passages that a retriever finds support the answer? (``factcheck``)"""

    _metric = "factcheck"


class RetrieverOrGeneratorEvaluator(_NamedMetricEvaluator):
    """Which half lost a fact of the gold answer, the retriever or the generator? (``rag``)"""

    _metric = "rag"


class ToolUseEvaluator(_NamedMetricEvaluator):
    """Does the answer go with the calls of tools before it, given as ``steps``? (``tool_use``)"""

    _metric = "tool_use"


class ReferenceEvaluator(_NamedMetricEvaluator):
    """How alike are the answer and the gold answer? (``reference``)"""

    _metric = "reference"


class RubricEvaluator(_NamedMetricEvaluator):
    """What does a judge say of the answer, by a rubric? (``judge``)"""

    _metric = "judge"


class PreferenceEvaluator(_NamedMetricEvaluator):
    """Which of two answers does a judge prefer? The other one is ``other_response``."""

    _metric = "pairwise"


class HarmonicityEvaluator(_NamedMetricEvaluator):
    """Does the model's answer stay the same when the question is changed a little? Low is good."""

    _metric = "harmonicity"


class SemanticHarmonicityEvaluator(_NamedMetricEvaluator):
    """The same by entailment between the answers. Low is good."""

    _metric = "semantic_harmonicity"


class ConsistencyEvaluator(_NamedMetricEvaluator):
    """Does the model choose its own answer among similar ones? (``consistency``)"""

    _metric = "consistency"


class BehaviouralTrustScoreEvaluator(_NamedMetricEvaluator):
    """Behavioural consistency and a fact check in one score. (``trustscore``)"""

    _metric = "trustscore"


class UncertaintyEvaluator(_NamedMetricEvaluator):
    """Does the model say the same when it is asked again? Low scores are good."""

    _metric = "uncertainty"
