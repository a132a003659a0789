"""The verdict on an answer that passes through, and whether it is to be withheld."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from trustassay.data.messages import messages_of
from trustassay.data.passages import read_documents, read_passages, read_prompt
from trustassay.errors import UsageError
from trustassay.metric import Metric
from trustassay.registry import read_score
from trustassay.sample import Sample, SampleError
from trustassay.workflows.scorer import ScorerClosedError
from trustassay_serve.requests import KINDS, problems_json
from trustassay_serve.service import BusyError, Service, work_on

SCORED, NOT_SCORED, BLOCKED = "scored", "not_scored", "blocked"


@dataclass(frozen=True)
class Threshold:
    """Answers whose score of a metric is below ``limit``, or above it, are withheld."""

    metric: str
    limit: float
    side: Literal["below", "above"]


def read_thresholds(
    given: Mapping[str, float | str], side: Literal["below", "above"], metrics: Sequence[Metric]
) -> list[Threshold]:
    """Return the thresholds of ``METRIC=NUMBER``.

    Raises:
        UsageError: no such metric is scored, scores on this side are its better ones, or it has no
            such score.
    """
    known = {metric.name: metric for metric in metrics}
    for name in given:
        if name not in known:
            message = f"expected a metric that is scored ({', '.join(known)})"
            raise UsageError(f"--block-{side}: {message}, got {name!r}")
        if known[name].lower_is_better is (side == "below"):
            other = "above" if side == "below" else "below"
            raise UsageError(f"--block-{side} {name}: these scores are good; use --block-{other}")
    return [
        Threshold(name, read_score(known[name], f"--block-{side} {name}", limit), side)
        for name, limit in given.items()
    ]


@dataclass(frozen=True)
class Blocking:
    """Which answers are withheld: those beyond a threshold, and with ``unscored`` those without a
    verdict. ``message`` is what is said in their place.
    """

    thresholds: Sequence[Threshold] = ()
    unscored: bool = False
    message: str = "This answer was withheld: it did not pass a check of how far it can be trusted."

    def __bool__(self) -> bool:
        return bool(self.thresholds) or self.unscored

    def reasons(self, told: Mapping[str, Any]) -> list[str]:
        """Return why an answer with this verdict is withheld; empty if it is not."""
        metrics = told.get("metrics", {})
        result = []
        for one in self.thresholds:
            score = metrics.get(one.metric, {}).get("score")
            if score is None:
                continue
            if score < one.limit if one.side == "below" else score > one.limit:
                result.append(f"{one.metric} {score:.4g} is {one.side} {one.limit:g}")
        if self.unscored and not result and _unscored(told):
            result.append("there is no verdict on it")
        return result


class Verdict(NamedTuple):
    """What was found in one answer (``told``, a JSON object), and why it is withheld."""

    told: Mapping[str, Any]
    blocked: Sequence[str] = ()

    @property
    def status(self) -> str:
        """``blocked``, ``not_scored`` if it or a metric failed, else ``scored``."""
        if self.blocked:
            return BLOCKED
        return NOT_SCORED if _unscored(self.told) else SCORED

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; of an answer that is withheld nothing that may quote it."""
        if not self.blocked:
            return {"status": self.status, **self.told}
        metrics = {
            name: {key: one[key] for key in ("score", "verdict")}
            for name, one in self.told.get("metrics", {}).items()
        }
        return {"status": BLOCKED, "blocked": list(self.blocked), "metrics": metrics}


def no_verdict(message: str, kind: str = "not_scored", **others: Any) -> dict[str, Any]:
    """Return what is told in place of a verdict."""
    return {"error": {"type": kind, "message": message, **others}}


async def _told(service: Service, record: Mapping[str, Any]) -> Mapping[str, Any]:
    sample = await work_on(record)(Sample.parse, record)
    while True:
        try:
            return service.verdict_of(await service.score(sample, late=True))
        except BusyError as error:
            await asyncio.sleep(min(error.retry_after_s, 1))


def _unscored(told: Mapping[str, Any]) -> bool:
    """Whether there is no verdict, or a metric failed."""
    return "error" in told or any(one["error"] for one in told["metrics"].values())


DOCUMENT_ROLES = ("tool", "system")
"""Whose messages may be passages, by the name of an option."""
VERDICT_S = 60.0
"""Seconds in which there must be a verdict on an answer; a busy service is asked again."""


@dataclass(frozen=True)
class Judging:
    """How answers that pass through are judged.

    documents_in: whose messages are passages as well, names of :data:`DOCUMENT_ROLES`.
    """

    documents_in: Collection[str]
    blocking: Blocking

    def record(self, messages: Any, documents: Any, model: Any) -> dict[str, Any]:
        """Return the record of a chat without its answer, in canonical fields.

        The question is the last text of the user. ``documents`` that were sent as such come first;
        then those of the messages of the roles named by ``documents_in``: what a tool returned, and
        what an instruction shows, or else all of it. A field is absent where there is nothing for
        it.

        Raises:
            SampleError: ``documents`` is a text that begins as a list and is none.
        """
        told = messages_of(messages) if _is_list(messages) else []
        asked = [one.content for one in told if one.role == "user"]
        result: dict[str, Any] = {"question": asked[-1]} if asked and asked[-1] else {}
        passages = read_documents(documents) or []
        for one in told:
            if one.role in self.documents_in and one.content:
                shown = read_prompt(one.content) if one.role == "system" else ()
                passages += shown or read_passages(one.content)
        if passages or documents is not None:
            result["documents"] = passages
        if isinstance(model, str) and model:
            result["model"] = model
        return result

    async def verdicts(
        self, service: Service, record: Mapping[str, Any], answers: Iterable[str | None]
    ) -> list[Verdict]:
        """Return the verdict on each answer to a chat; where there is none, why is in it."""
        return await asyncio.gather(*(self._verdict(service, record, one) for one in answers))

    async def _verdict(
        self, service: Service, record: Mapping[str, Any], answer: str | None
    ) -> Verdict:
        if answer is None:
            return Verdict(no_verdict("the answer has no text", "no_text"))
        told: Mapping[str, Any]
        try:
            async with asyncio.timeout(VERDICT_S):
                told = await _told(service, {**record, "response": answer})
        except TimeoutError:
            told = no_verdict(f"there was no verdict within {VERDICT_S:g} seconds", "timeout")
        except SampleError as error:
            problems = problems_json(error.problems)
            told = no_verdict("the sample cannot be scored", KINDS[422], problems=problems)
        except ScorerClosedError as error:
            told = no_verdict(str(error), KINDS[503])
        return Verdict(told, self.blocking.reasons(told))


def answer_of(message: Any) -> str | None:
    """Return the text of an answer's message, or its refusal; ``None`` for a call of tools."""
    if not isinstance(message, Mapping):
        return None
    content = message.get("content")
    if isinstance(content, str) and content:
        return content
    if _is_list(content) and (text := messages_of([{**message, "role": "assistant"}])[-1].content):
        return str(text)
    refusal = message.get("refusal")
    return refusal if isinstance(refusal, str) and refusal else None


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
