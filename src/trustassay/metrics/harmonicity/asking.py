"""The original answer and the answers to perturbed prompts: recorded ones, or asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from trustassay.capabilities import CallError, Models, Reply
from trustassay.metric import AssessmentError
from trustassay.metrics.harmonicity.perturbations import NoPerturbationError, perturb, shown
from trustassay.prompts import Prompt
from trustassay.sample import Sample
from trustassay.statistics.randomness import generator

if TYPE_CHECKING:
    from trustassay.metrics.harmonicity.metric import Perturbing

__all__ = ["Answer", "Asking", "recorded"]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a perturbed prompt; ``change`` shows how the prompt was changed.

    ``seen`` is False where the endpoint counted no more tokens for the longer prompt: it may have
    stripped what was added.
    """

    text: str
    change: str = ""
    seen: bool = True


def recorded(sample: Sample) -> tuple[str, list[Answer]]:
    """Return the response and the resamples that came with a sample."""
    if sample.response is None:
        raise AssessmentError("has resamples, but no response to hold them against")
    return sample.response, [Answer(text) for text in sample.resamples]


@dataclass
class Asking:
    """Asks about one sample: the prompt as it is, and perturbed, some at a time."""

    metric: Perturbing
    sample: Sample
    models: Models
    refused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = generator(self.metric.seed, self.sample.id, "perturbation")
        self._original: asyncio.Future[Reply] | None = None
        self._asked = 0

    async def original(self) -> str:
        """Return the answer to the prompt as it is."""
        if self.metric.original == "response" and self.sample.response is not None:
            return self.sample.response
        return (await self._reply(self.sample.question)).text

    async def more(self, n: int) -> list[Answer]:
        """Return the answers to ``n`` further perturbed prompts.

        One that the endpoint refuses is noted and replaced by another; as many may be refused as
        are wanted in all.

        Raises:
            AssessmentError: more are refused than that, or the prompt cannot be perturbed.
            BackendError: a call failed otherwise.
        """
        answers: list[Answer] = []
        while len(answers) < n:
            changed = await self._changed(n - len(answers))
            replies = await asyncio.gather(
                *(self._reply(text) for text in changed), return_exceptions=True
            )
            for text, reply in zip(changed, replies, strict=True):
                change = shown(self.sample.question, text)
                if isinstance(reply, CallError) and reply.kind == "refused":
                    self.refused.append(change)
                elif isinstance(reply, BaseException):
                    raise reply
                else:
                    answers.append(Answer(reply.text, change, await self._seen(reply)))
            if len(self.refused) > self.metric.perturbations:
                last = next(r for r in replies if isinstance(r, CallError))
                raise AssessmentError(f"the endpoint refuses perturbed prompts: {last}")
        return answers

    async def _changed(self, n: int) -> list[str]:
        if self.metric.perturbation == "paraphrase":
            numbers = range(self._asked, self._asked + n)
            self._asked += n
            return list(await asyncio.gather(*map(self._paraphrase, numbers)))
        try:
            return [perturb(self.sample.question, self.metric.family, self._rng) for _ in range(n)]
        except NoPerturbationError as error:
            raise AssessmentError(str(error)) from None

    async def _paraphrase(self, number: int) -> str:
        prompt = _paraphrase_prompt()
        reply = await self.models.chat(
            prompt.filled(text=self.sample.question),
            temperature=1.0,
            max_tokens=self.metric.max_tokens,
            repeat=number,
            prompt=prompt.name,
        )
        return reply.text.strip()

    async def _reply(self, question: str) -> Reply:
        text, version = question, ""
        if self.metric.template:
            text = self.metric.template.filled(question=question, sample=self.sample)
            version = self.metric.template.name
        return await self.models.chat(
            text,
            temperature=self.metric.temperature,
            max_tokens=self.metric.max_tokens,
            prompt=version,
        )

    async def _seen(self, reply: Reply) -> bool:
        """Whether what was added counts among the tokens; unknown counts as seen."""
        if not self.metric.appends or self.metric.original == "response":
            return True
        plain = await self._reply(self.sample.question)
        counts = (plain.prompt_tokens, reply.prompt_tokens)
        return None in counts or counts[1] > counts[0]  # type: ignore[operator]


def texts(original: str, answers: Sequence[Answer]) -> list[str]:
    """Return the original answer and the others, in their order."""
    return [original, *(answer.text for answer in answers)]


def _paraphrase_prompt() -> Prompt:
    home = files("trustassay.metrics.harmonicity")
    with as_file(home / "prompts" / "paraphrase.jinja") as path:
        return Prompt.read(path)
