"""The metric ``pairwise``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from trustassay.errors import AssessmentError, UsageError
from trustassay.metric import Assessment, Context, Figure, Metric, Need, Summary, directions
from trustassay.metrics.pairwise.asking import Asking, Verdict, shipped
from trustassay.metrics.pairwise.maths import CHOICES, Outcome, outcome
from trustassay.metrics.pairwise.summary import FIGURES, summarise
from trustassay.metrics.pairwise.view import Compared
from trustassay.prompts import Prompt
from trustassay.sample import Problem, Sample
from trustassay.views import View

__all__ = ["OTHER_MODEL", "OTHER_RESPONSE", "Pairwise"]

OTHER_RESPONSE = "other_response"
"""Field of a sample with the answer that its response is compared with."""
OTHER_MODEL = "other_model"
"""Field with the name of the model that gave that answer."""
_REASONS: Mapping[Outcome, str] = {
    "win": "preferred in both orders",
    "loss": "the other answer is preferred in both orders",
    "unsure": "the judge is not sure, in one order at least",
    "inconsistent": "the judge prefers whichever answer it reads {place}",
    "unreadable": "a reply of the judge names no choice, also when asked once more",
}


@dataclass(frozen=True)
class Pairwise(Metric):
    """Does a judge prefer the answer to another one, in whichever order it reads them?

    1 for a win, 0 for a loss. Where the judge is not sure, prefers a place and not an answer, or
    cannot be read, there is no score, and the verdict says which of these it is. Answers that are
    equal are unsure without a call. ``parts`` hold the places of both choices in
    :data:`~trustassay.metrics.pairwise.maths.CHOICES`, and whether the answers are equal.

    Args:
        prompt: file of a template in place of the one that ships; filled with ``question``,
            ``first``, ``second``, ``fence`` and ``sample``.
        temperature, max_tokens: of every call; a temperature of ``None`` leaves it to the judge.
    """

    name: ClassVar[str] = "pairwise"
    title: ClassVar[str] = "Preferred to another answer (win rate)"
    part_directions = directions(neither="first swapped equal")
    verdicts: ClassVar[Sequence[str]] = ("win", "unsure", "inconsistent", "unreadable", "loss")
    figures: ClassVar[Mapping[str, Figure]] = FIGURES
    evidence_template: ClassVar[str] = "evidence.html.jinja"

    prompt: str | None = None
    temperature: float | None = 0.0
    max_tokens: int = 300

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise UsageError(f"max_tokens: expected 1 or more, got {self.max_tokens}")
        if self.temperature is not None and self.temperature < 0:
            raise UsageError("temperature: expected 0 or more, or none")
        _ = self.template  # a faulty file is to fail here

    @cached_property
    def template(self) -> Prompt:
        """The prompt that the judge is asked with."""
        return shipped("pairwise") if self.prompt is None else Prompt.read(self.prompt)

    def needs(self) -> Sequence[Need]:
        """One judge."""
        return (Need("chat", "judge"),)

    def problems(self, sample: Sample) -> list[Problem]:
        """Both answers have to be there."""
        found = []
        if not sample.answered:
            found.append(Problem("response", "is missing or blank (expected an answer)"))
        other = sample.metadata.get(OTHER_RESPONSE)
        if not isinstance(other, str) or not other.strip():
            words = "is missing or blank (expected the answer to compare with)"
            found.append(Problem(OTHER_RESPONSE, words))
        return found

    async def assess(self, context: Context) -> Assessment:
        """Ask in both orders; both replies stand in the evidence."""
        sample = context.sample
        answer, other = sample.response or "", sample.metadata.get(OTHER_RESPONSE)
        if not sample.answered or not isinstance(other, str):
            raise AssessmentError("one of the two answers is missing", "empty")
        if answer.split() == other.split():
            return self._assessed(sample, None)
        asking = Asking(context.models, self.template, self.temperature, self.max_tokens)
        return self._assessed(sample, await asking.both(sample, answer, other))

    def _assessed(self, sample: Sample, found: tuple[Verdict, Verdict] | None) -> Assessment:
        """Say what two verdicts amount to; ``None`` of equal answers."""
        choices = ("C", "C") if found is None else (found[0].choice, found[1].choice)
        result = outcome(*choices)
        reason = _REASONS[result].format(place="first" if choices[0] == "A" else "second")
        return Assessment(
            sample.id,
            self.name,
            {"win": 1.0, "loss": 0.0}.get(result),
            verdict=result,
            reason=reason if found else "the answers are equal; the judge was not asked",
            parts={
                "first": CHOICES.index(choices[0]),
                "swapped": CHOICES.index(choices[1]),
                "equal": int(found is None),
            },
            evidence=[
                {
                    "other": sample.metadata.get(OTHER_RESPONSE),
                    "by": sample.metadata.get(OTHER_MODEL),
                },
                *(one.to_dict() for one in found or ()),
            ],
        )

    def summarise(self, assessments: Collection[Assessment], *, seed: int = 0) -> Summary:  # noqa: ARG002
        """Return the win rate in both conventions, and what the order of the answers did."""
        return summarise(self, assessments)

    @property
    def line(self) -> str:
        """The rule of :meth:`problem`."""
        return (
            "the judge prefers the other answer, chooses by the order of the two, or gives no "
            "choice that can be read"
        )

    def problem(self, assessment: Assessment) -> str | None:
        """Say what a reader should look at."""
        return {
            "loss": "the judge prefers the other answer",
            "inconsistent": "the judge's choice changes with the order",
            "unreadable": "the judge's reply could not be read",
        }.get(assessment.verdict or "")

    def view(self, sample: Sample, assessment: Assessment) -> View:  # noqa: ARG002
        """Return the other answer and both choices."""
        return View(data=Compared.read(assessment.evidence))
