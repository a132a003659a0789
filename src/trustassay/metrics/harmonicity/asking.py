"""The original answer and the answers to perturbed prompts: recorded ones, or asked for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

import jinja2

from trustassay.capabilities import Models, Reply
from trustassay.errors import AssessmentError, CallError
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
    """Asks about one sample: the prompt as it is, and perturbed, some at a time.

    Which perturbed prompts it asks follows from the metric's seed and the sample's id; those of
    one call of :meth:`more` go on where the last left off.
    """

    metric: Perturbing
    sample: Sample
    models: Models
    refused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = generator(self.metric.seed, self.sample.id, "perturbation")
        self._plain: asyncio.Future[Reply] | None = None
        self._taken: set[str] = set()
        self._paraphrases = 0

    async def original(self) -> str:
        """Return the answer to the prompt as it is."""
        if self.metric.original == "response" and self.sample.response is not None:
            return self.sample.response
        return (await self._plain_reply()).text

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
                    self._refuse(change, str(reply))
                elif isinstance(reply, BaseException):
                    raise reply
                else:
                    answers.append(Answer(reply.text, change, await self._seen(reply)))
        return answers

    def _refuse(self, change: str, why: str) -> None:
        self.refused.append(change)
        if len(self.refused) > self.metric.perturbations:
            raise AssessmentError(f"perturbed prompts are refused: {why}")

    async def _changed(self, n: int) -> list[str]:
        """Return up to ``n`` perturbed questions, each of which changes the prompt."""
        if self.metric.perturbation == "paraphrase":
            return await self._paraphrased(n)
        found = []
        try:
            for _ in range(n):
                found.append(
                    perturb(self.sample.question, self.metric.family, self._rng, self._taken)
                )
                self._taken.add(found[-1])
        except NoPerturbationError as error:
            raise AssessmentError(str(error)) from None
        return found

    async def _paraphrased(self, n: int) -> list[str]:
        """Ask for ``n`` paraphrases; return those that say something, and in other words."""
        prompt, question = _paraphrase_prompt(), self.sample.question
        numbers = range(self._paraphrases, self._paraphrases + n)
        self._paraphrases += n
        replies = await asyncio.gather(
            *(
                self.models.chat(
                    prompt.filled(text=question),
                    temperature=1.0,
                    max_tokens=self.metric.max_tokens,
                    repeat=number,
                    prompt=prompt.name,
                )
                for number in numbers
            )
        )
        found = []
        for text in (reply.text.strip() for reply in replies):
            if text and text != question.strip():
                found.append(text)
            else:
                self._refuse(text, "the model gave no paraphrase of the question")
        return found

    def _prompt(self, question: str) -> tuple[str, str]:
        """Return what is asked, and the name of the prompt that was made for it."""
        template = self.metric.template
        if template is None:
            return question, ""
        try:  # not Prompt.filled, which strips its ends, and so what was appended
            text = template.template.render(question=question, sample=self.sample)
        except jinja2.TemplateError as error:
            raise AssessmentError(f"prompt {template.name}: {error.message}") from None
        return text, template.name

    async def _reply(self, question: str) -> Reply:
        text, name = self._prompt(question)
        if question != self.sample.question and text == self._prompt(self.sample.question)[0]:
            raise AssessmentError(f"the prompt {name} shows nothing of the perturbation")
        return await self.models.chat(
            text,
            temperature=self.metric.temperature,
            max_tokens=self.metric.max_tokens,
            prompt=name,
        )

    def _plain_reply(self) -> asyncio.Future[Reply]:
        if self._plain is None:
            self._plain = asyncio.ensure_future(self._reply(self.sample.question))
        return self._plain

    async def _seen(self, reply: Reply) -> bool:
        """Whether what was added counts among the tokens; unknown counts as seen."""
        if not self.metric.family.appends or self.metric.original == "response":
            return True
        asked, plain = reply.prompt_tokens, (await self._plain_reply()).prompt_tokens
        return asked is None or plain is None or asked > plain


def _paraphrase_prompt() -> Prompt:
    home = files("trustassay.metrics.harmonicity")
    with as_file(home / "prompts" / "paraphrase.jinja") as path:
        return Prompt.read(path)
