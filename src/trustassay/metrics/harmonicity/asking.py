"""The original answer and the answers to perturbed prompts, recorded or requested."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import as_file, files

import jinja2

from trustassay.capabilities import Models, Reply
from trustassay.errors import AssessmentError, CallError
from trustassay.metrics.harmonicity.options import PerturbingOptions
from trustassay.metrics.harmonicity.perturbations import NoPerturbationError, perturb, shown
from trustassay.prompts import Prompt
from trustassay.sample import Sample, is_blank
from trustassay.statistics.resampling import generator

__all__ = ["Answer", "Asking", "recorded"]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a perturbed prompt; ``change`` shows how the prompt was changed.

    ``seen`` is False where the endpoint counted no more tokens for the longer prompt: it may have
    stripped what was added. ``cut`` at ``max_tokens``.
    """

    text: str
    change: str = ""
    seen: bool = True
    cut: bool = False


def recorded(sample: Sample) -> tuple[str, list[Answer], list[str]]:
    """Return the response, the resamples that say something, and the names of those that do not.

    Raises:
        AssessmentError: the response is blank, or more resamples are than are not.
    """
    if sample.response is None:
        raise AssessmentError("has resamples, but no response to compare them with")
    if is_blank(sample.response):
        raise AssessmentError("the response is blank", "empty")
    answers = [Answer(text) for text in sample.resamples if not is_blank(text)]
    blank = [f"resamples[{i}]" for i, text in enumerate(sample.resamples) if is_blank(text)]
    if len(blank) > len(answers):
        words = f"{len(blank)} of {len(sample.resamples)} resamples are blank"
        raise AssessmentError(words, "empty")
    return sample.response, answers, blank


@dataclass
class Asking:
    """Makes the calls for one sample: the original prompt, and perturbed ones in steps.

    Which perturbed prompts it asks follows from the metric's seed and the sample's id; those of
    one call of :meth:`more` go on where the last left off.
    """

    metric: PerturbingOptions
    sample: Sample
    models: Models
    refused: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = generator(self.metric.seed, self.sample.id, "perturbation")
        self._plain: asyncio.Future[Reply] | None = None
        self._taken: set[str] = set()
        self._paraphrases = 0

    async def original(self) -> str:
        """Return the answer to the original prompt."""
        if self.metric.original == "response" and self.sample.response is not None:
            if not self.sample.answered:
                raise AssessmentError("the response is blank", "empty")
            return self.sample.response
        return (await self._plain_reply()).text

    def cut(self, answers: Sequence[Answer]) -> int:
        """Return how many answers were cut at ``max_tokens``, with the original one."""
        plain = self._plain.result() if self._plain and self._plain.done() else None
        return sum(answer.cut for answer in answers) + (plain is not None and is_cut(plain))

    async def more(self, n: int) -> list[Answer]:
        """Return the answers to ``n`` further perturbed prompts.

        One that the endpoint refuses, or whose reply is empty, is recorded and replaced by another;
        at most as many may be lost in this way as are wanted in total.

        Raises:
            AssessmentError: more are lost than that, or the prompt cannot be perturbed.
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
                if isinstance(reply, BaseException):
                    self._lose(change, reply)
                else:
                    seen = await self._seen(reply)
                    answers.append(Answer(reply.text, change, seen, is_cut(reply)))
        return answers

    def _lose(self, change: str, error: BaseException) -> None:
        """Record a prompt that was refused or got an empty reply; raise any other error."""
        kind = error.kind if isinstance(error, CallError) else None
        if kind not in ("refused", "empty"):
            raise error
        (self.empty if kind == "empty" else self.refused).append(change)
        if len(self.refused) + len(self.empty) > self.metric.perturbations:
            how = "answered with an empty reply" if kind == "empty" else "refused"
            raise AssessmentError(f"perturbed prompts are {how}: {error}", kind)

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
        """Ask for ``n`` paraphrases; return those that are not blank and not the question."""
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
            ),
            return_exceptions=True,
        )
        found = []
        for reply in replies:
            if isinstance(reply, BaseException):
                self._lose("", reply)
            elif is_cut(reply) or reply.text.strip() == question.strip():
                words = "the model gave no paraphrase of the question"
                self._lose(reply.text.strip(), CallError(words, "refused"))
            else:
                found.append(reply.text.strip())
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
            raise AssessmentError(f"the prompt {name} does not contain the perturbation")
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


def is_cut(reply: Reply) -> bool:
    """Whether a reply ended because its tokens were used up."""
    return reply.finish == "length"


def _paraphrase_prompt() -> Prompt:
    home = files("trustassay.metrics.harmonicity")
    with as_file(home / "prompts" / "paraphrase.jinja") as path:
        return Prompt.read(path)
