"""The parts that ask models: BERTScore, BARTScore and GPTScore."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from trustassay.capabilities import Models
from trustassay.errors import AssessmentError
from trustassay.metrics.reference import maths
from trustassay.metrics.reference.parts import Form
from trustassay.prompts import Prompt
from trustassay.sample import Document, Sample
from trustassay.token_matching import greedy_match

__all__ = ["JUDGE", "Likelihoods", "bertscore", "prompt_of"]

JUDGE = "judge"
"""The role of the models whose likelihoods are BARTScore and GPTScore."""


async def bertscore(models: Models, answer: str, golds: Sequence[str]) -> dict[str, list[float]]:
    """Return BERTScore's parts of an answer against each gold answer.

    A text is asked for with a space before it: that is how models with byte-level tokenizers
    learnt to read a word, and changes nothing for others. A blank answer has 0.
    """
    if not answer.strip():
        return {name: [0.0] * len(golds) for name in _BERTSCORE}
    texts = [answer, *golds]
    ours, *theirs = await asyncio.gather(*(models.token_vectors(f" {t.strip()}") for t in texts))
    found = [greedy_match(ours.vectors, one.vectors, ours.special, one.special) for one in theirs]
    columns = zip(*found, strict=True)
    return {name: list(column) for name, column in zip(_BERTSCORE, columns, strict=True)}


_BERTSCORE = ("bertscore_precision", "bertscore_recall", "bertscore")


@dataclass(frozen=True)
class Likelihoods:
    """BARTScore or GPTScore of one answer.

    family: ``bartscore``, whose prompt is the source text alone, or ``gptscore``, whose prompt says
    what is to be done with it. passages: how many documents are shown at most. prompts: a folder
    of the user's own prompts for GPTScore.
    """

    family: str
    models: Models
    sample: Sample
    answer: str
    passages: int
    prompts: str | None = None

    async def parts(self, form: Form, golds: Sequence[str]) -> dict[str, list[float]]:
        """Return the parts of a form: against each gold answer for ``ref``, else one value.

        Raises:
            AssessmentError: the answer is blank, there is nothing to be conditioned on, or the
                run's models do not say which of them is to be asked.
        """
        if not self.answer.strip():
            raise AssessmentError("the response is blank: no likelihood", "empty")
        if form != "ref":
            value = await self._likelihood(self._prompt(form), self.answer)
            return {f"{self.family}_{form}": [value]}
        there = [self._likelihood(self._prompt(form, gold), self.answer) for gold in golds]
        back = self._prompt(form, self.answer)
        values = await asyncio.gather(*there, *(self._likelihood(back, gold) for gold in golds))
        precisions, recalls = values[: len(golds)], values[len(golds) :]
        return {
            f"{self.family}_ref": [(p + r) / 2 for p, r in zip(precisions, recalls, strict=True)],
            f"{self.family}_ref_precision": precisions,
            f"{self.family}_ref_recall": recalls,
        }

    async def _likelihood(self, prompt: str, text: str) -> float:
        found = await self.models.likelihood(prompt, text.strip(), role=JUDGE, name=self._judge())
        try:
            return maths.mean_log_probability(found.tokens)
        except ValueError:
            raise AssessmentError(f"{self.family}: the model reads no token in {text!r}") from None

    def _judge(self) -> str:
        """Return the name of the judge of this family, or of the only one that there is."""
        names = self.models.names(JUDGE)
        if self.family in names:
            return self.family
        if len(names) == 1:
            return names[0]
        raise AssessmentError(
            f"{self.family}: none of the judges ({', '.join(names)}) is called so; name them as in "
            f"--judge {self.family}=hf:MODEL"
        )

    def _prompt(self, form: Form, text: str = "") -> str:
        """Return what the likelihood is conditioned on."""
        passages = [_shown(one) for one in (self.sample.documents or ())[: self.passages]]
        if form == "evid" and not passages:
            raise AssessmentError(f"{self.family}_evid: the sample has no passage")
        question = self.sample.question.strip()
        if self.family == "bartscore":
            return {"ref": text.strip(), "src": question, "evid": "\n".join(passages)}[form]
        prompt = prompt_of(form, self.prompts)
        # The answer stands on a line of its own, so that no token reaches across its beginning.
        return prompt.filled(text=text.strip(), question=question, passages=passages) + "\n"


def _shown(document: Document) -> str:
    return ": ".join(filter(None, (document.title.strip(), document.text.strip())))


@cache
def prompt_of(form: Form, folder: str | None) -> Prompt:
    """Return GPTScore's prompt for a form, from a folder of the user's or ours.

    Raises:
        PromptError, OSError: it cannot be read.
    """
    name = f"gptscore-{form}.jinja"
    if folder is not None:
        return Prompt.read(Path(folder) / name)
    with as_file(files("trustassay.metrics.reference") / "prompts" / name) as path:
        return Prompt.read(path)
