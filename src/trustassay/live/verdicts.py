"""Verdicts on the answers that pass through the service, and whether an answer is withheld."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from trustassay.core.fair_queue import CURRENT_FLOW
from trustassay.core.metric import Metric
from trustassay.core.registry import read_score
from trustassay.core.sample import Sample, SampleError
from trustassay.errors import UsageError
from trustassay.input.messages import read_messages
from trustassay.input.passages import read_documents, read_passages
from trustassay.input.prompts import read_prompt
from trustassay.live.requests import ERROR_TYPES, build_error, problems_json
from trustassay.live.scorer import ScorerClosedError
from trustassay.live.service import BusyError, Service, choose_text_work

SCORED, NOT_JUDGED, BLOCKED = "scored", "not_judged", "blocked"


@dataclass(frozen=True)
class ScoreThreshold:
    """A limit on the score of a metric, beyond which an answer is withheld."""

    metric: str
    """The name of the metric."""
    limit: float
    """The limit, in the metric's own range."""
    side: Literal["below", "above"]
    """Whether scores below or above the limit are withheld."""


def read_thresholds(
    limits: Mapping[str, float | str], side: Literal["below", "above"], metrics: Sequence[Metric]
) -> list[ScoreThreshold]:
    """Return the thresholds that ``--block-below`` or ``--block-above`` sets.

    Args:
        limits: the limit of each metric, by the metric's name.
        side: which scores are withheld.
        metrics: the metrics that are scored.

    Raises:
        UsageError: a metric is not scored, scores on this side are its good ones, or a limit is
            outside of its range.
    """
    metric_by_name = {metric.name: metric for metric in metrics}
    for name in limits:
        if name not in metric_by_name:
            message = f"expected a metric of this service ({', '.join(metric_by_name)})"
            raise UsageError(f"--block-{side}: {message}, got {name!r}")
        # Such a threshold would withhold the best answers.
        if metric_by_name[name].lower_is_better is (side == "below"):
            other = "above" if side == "below" else "below"
            level = "low" if side == "below" else "high"
            message = f"{level} scores of this metric are good; use --block-{other}"
            raise UsageError(f"--block-{side} {name}: {message}")
    return [
        ScoreThreshold(
            name, read_score(metric_by_name[name], f"--block-{side} {name}", limit), side
        )
        for name, limit in limits.items()
    ]


FAILED_CHECK_MESSAGE = (
    "This answer was withheld because it did not pass an automatic check of its trustworthiness."
)


@dataclass(frozen=True)
class BlockingRules:
    """The rules by which answers are withheld. It is false if no answer ever is."""

    thresholds: Sequence[ScoreThreshold] = ()
    """Answers beyond any of these are withheld."""
    unscored: bool = False
    """Whether answers without a verdict are withheld as well."""
    message: str = ""
    """The text that takes the place of a withheld answer; empty: one that says why."""

    def __bool__(self) -> bool:
        return bool(self.thresholds) or self.unscored

    def decide(self, content: Mapping[str, Any]) -> "AnswerVerdict":
        """Return the verdict with the decision whether its answer is withheld.

        Args:
            content: the JSON object of :meth:`Service.verdict_of`, or an ``error``.
        """
        if failed_checks := self._list_failed_checks(content):
            return AnswerVerdict(content, failed_checks, self.message or FAILED_CHECK_MESSAGE)
        if not (self.unscored and _lacks_score(content)):
            return AnswerVerdict(content)
        reason = f"not judged: {_explain_missing_score(content)}"
        message = self.message or f"This answer was withheld because it was {reason}."
        return AnswerVerdict(content, [reason], message, is_judged=False)

    def _list_failed_checks(self, verdict: Mapping[str, Any]) -> list[str]:
        """List the thresholds that a verdict is beyond."""
        metrics = verdict.get("metrics", {})
        result = []
        for threshold in self.thresholds:
            score = metrics.get(threshold.metric, {}).get("score")
            # A metric without a score cannot exceed a limit; `unscored` decides about those below.
            if score is None:
                continue
            if score < threshold.limit if threshold.side == "below" else score > threshold.limit:
                result.append(
                    f"{threshold.metric} {score:.4g} is {threshold.side} {threshold.limit:g}"
                )
        return result


class AnswerVerdict(NamedTuple):
    """The verdict on one answer."""

    content: Mapping[str, Any]
    """The JSON object of :meth:`Service.verdict_of`, or an ``error`` where there is no verdict."""
    blocked: Sequence[str] = ()
    """Why the answer is withheld; empty if it is not."""
    message: str = ""
    """What is said in place of a withheld answer."""
    is_judged: bool = True
    """False for an answer that is withheld only because there is no verdict on it."""

    @property
    def status(self) -> str:
        """``blocked`` by a check, ``not_judged`` if it or a metric failed, else ``scored``."""
        if self.blocked and self.is_judged:
            return BLOCKED
        return NOT_JUDGED if _lacks_score(self.content) else SCORED

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which quotes nothing of a withheld answer."""
        if not self.blocked:
            return {"status": self.status, **self.content}
        metrics = {
            name: {key: result[key] for key in ("score", "verdict")}
            for name, result in self.content.get("metrics", {}).items()
        }
        return {"status": self.status, "blocked": list(self.blocked), "metrics": metrics}


async def _wait_for_verdict(service: Service, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Score an answer; wait as long as the service is busy."""
    sample = await choose_text_work(record)(Sample.parse, record)
    while True:
        try:
            # late: a chat that began before the service was closed still gets its verdict.
            return service.verdict_of(await service.score(sample, late=True))
        except BusyError as error:
            # The pause is short although the estimate may be long: a client waits for this answer.
            await asyncio.sleep(min(error.retry_after_s, 1))


def _lacks_score(verdict: Mapping[str, Any]) -> bool:
    """Whether the verdict is missing, or a metric failed."""
    return "error" in verdict or any(result["error"] for result in verdict["metrics"].values())


def _explain_missing_score(verdict: Mapping[str, Any]) -> str:
    """Say in a few words why there is no score; errors of metrics may quote the answer."""
    if error := verdict.get("error"):
        # Only the names of fields: a problem's message may quote what is in them.
        fields = dict.fromkeys(problem["field"] for problem in error.get("problems", ()))
        return f"{error['message']} ({', '.join(fields)})" if fields else str(error["message"])
    failed = [name for name, result in verdict["metrics"].items() if result["error"]]
    return f"{', '.join(failed)} failed"


DOCUMENT_ROLES = ("tool", "system")
"""Roles whose messages may be passages; ``--documents-in`` takes these names."""
VERDICT_TIMEOUT_S = 60.0
"""Seconds within which an answer needs a verdict, including the wait for a busy service."""


@dataclass(frozen=True)
class AnswerJudging:
    """How answers that pass through the service are judged."""

    documents_in: Collection[str]
    """The roles whose messages are passages as well, of :data:`DOCUMENT_ROLES`."""
    blocking: BlockingRules
    """The rules by which answers are withheld."""

    def record(self, messages: Any, documents: Any, model: Any) -> dict[str, Any]:
        """Return the record of a chat without its answer, in canonical fields.

        The question is the last text of the user. The passages are first the ``documents`` of the
        request, then those in messages of the roles ``documents_in``: the results of tools, and the
        passages that a system prompt shows, or all of it if it shows none. A field without a value
        is absent.

        Raises:
            SampleError: ``documents`` is a text that begins like a list but is not one.
        """
        chat = read_messages(messages) if _is_list(messages) else []
        user_texts = [message.content for message in chat if message.role == "user"]
        result: dict[str, Any] = (
            {"question": user_texts[-1]} if user_texts and user_texts[-1] else {}
        )
        passages = read_documents(documents) or []
        for message in chat:
            if message.role in self.documents_in and message.content:
                shown_passages = read_prompt(message.content) if message.role == "system" else ()
                passages += shown_passages or read_passages(message.content)
        # An empty list that was sent says "no passages"; a missing one says nothing.
        if passages or documents is not None:
            result["documents"] = passages
        if isinstance(model, str) and model:
            result["model"] = model
        return result

    async def verdicts(
        self, service: Service, record: Mapping[str, Any], answers: Iterable[str | None]
    ) -> list[AnswerVerdict]:
        """Return the verdict on each answer to a chat; a failure is a verdict with an error."""
        return await asyncio.gather(*(self._verdict(service, record, answer) for answer in answers))

    async def _verdict(
        self, service: Service, record: Mapping[str, Any], answer: str | None
    ) -> AnswerVerdict:
        if answer is None:
            return AnswerVerdict(build_error("the answer has no text", "no_text"))
        # In a task of its own, so that only this sample is in the flow of verdicts.
        CURRENT_FLOW.set(CURRENT_FLOW.get().as_verdict())
        content: Mapping[str, Any]
        try:
            # The client waits for the answer itself, so a slow verdict is given up.
            async with asyncio.timeout(VERDICT_TIMEOUT_S):
                content = await _wait_for_verdict(service, {**record, "response": answer})
        except TimeoutError:
            content = build_error(
                f"there was no verdict within {VERDICT_TIMEOUT_S:g} seconds", "timeout"
            )
        except SampleError as error:
            problems = problems_json(error.problems)
            content = build_error(
                "the sample cannot be scored", ERROR_TYPES[422], problems=problems
            )
        # the service is ending
        except ScorerClosedError as error:
            content = build_error(str(error), ERROR_TYPES[503])
        return self.blocking.decide(content)


def answer_of(message: Any) -> str | None:
    """Return the text of an assistant message, or its refusal; ``None`` for a call of tools."""
    if not isinstance(message, Mapping):
        return None
    content = message.get("content")
    if isinstance(content, str) and content:
        return content
    # Content may be a list of parts, some of them images: only the texts are judged.
    if _is_list(content) and (
        text := read_messages([{**message, "role": "assistant"}])[-1].content
    ):
        return str(text)
    # OpenAI sends a refusal in a field of its own, with no content.
    refusal = message.get("refusal")
    return refusal if isinstance(refusal, str) and refusal else None


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
