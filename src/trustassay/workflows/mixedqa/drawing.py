"""Which questions of a source are taken: at random, until enough are answered by all models.

Questions are looked at in a random order, so those that are kept are a random sample of all that
every model answers, and no more are asked than that takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from trustassay.data.question_sets import SPLITS
from trustassay.sample import Sample
from trustassay.statistics.resampling import generator
from trustassay.workflows.mixedqa.filters import question_filter, reply_filter, words_of

__all__ = ["DUPLICATE", "NO_REPLY", "Draw", "Dropped", "Recorded", "answered"]
__all__ += ["draws", "key_of"]

DUPLICATE = "duplicate"
"""The filter of questions that an earlier one asks with the same words."""
NO_REPLY = "no-reply"
"""The filter of replies that are not there: not recorded, or refused by the endpoint."""

Recorded = Mapping[str, Mapping[str, Sample]]
"""Answers that are there already: by model, then by :func:`key_of` the question."""


class Dropped(NamedTuple):
    """A question that was left out, by which filter, and where it was for a reply, whose."""

    question: Sample
    filter: str
    model: str | None = None
    reply: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        found = {
            "id": self.question.id,
            "source": self.question.metadata["source"],
            "split": self.question.metadata["split"],
            "question": self.question.question,
            "filter": self.filter,
        }
        return found if self.model is None else {**found, "model": self.model, "reply": self.reply}


@dataclass
class Draw:
    """The questions of one source: those to come, those kept with their answers, those left out.

    asked: questions that were put to models, or whose recorded answers were looked at.
    """

    source: str
    wanted: int
    recorded: Recorded
    questions: int = 0
    coming: list[Sample] = field(default_factory=list)
    asked: int = 0
    kept: list[Sequence[Sample]] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)

    @property
    def eligible(self) -> int:
        """Questions that passed the filters of questions."""
        return self.questions - sum(one.model is None for one in self.dropped)

    @property
    def short(self) -> bool:
        """Whether there are too few questions that all models answered."""
        return len(self.kept) < self.wanted

    def next_questions(self) -> list[Sample]:
        """Take as many questions as are missing, whose recorded answers all are answers.

        Even if all of them are kept, there are no more than wanted.
        """
        found: list[Sample] = []
        while self.coming and len(self.kept) + len(found) < self.wanted:
            question = self.coming.pop()
            self.asked += 1
            if self._passed(question, self._recorded_for(question)):
                found.append(question)
        return found

    def settle(self, question: Sample, replies: Mapping[str, Sample]) -> None:
        """Keep a question if every reply is an answer, else say why not; a missing one is none."""
        if self._passed(question, replies):
            self.kept.append([*replies.values(), *self._recorded_for(question).values()])

    def counts(self) -> Mapping[str, Counter[str]]:
        """Return how many replies of each model each filter dropped."""
        found: dict[str, Counter[str]] = {}
        for one in self.dropped:
            if one.model is not None:
                found.setdefault(one.model, Counter())[one.filter] += 1
        return found

    def _recorded_for(self, question: Sample) -> dict[str, Sample]:
        key = key_of(question.question)
        found = {name: answers.get(key) for name, answers in self.recorded.items()}
        return {
            name: answered(question, name, one.response if one else None)
            for name, one in found.items()
        }

    def _passed(self, question: Sample, replies: Mapping[str, Sample]) -> bool:
        reasons = {
            name: NO_REPLY if one.response is None else reply_filter(one)
            for name, one in replies.items()
        }
        self.dropped += [
            Dropped(question, reason, name, replies[name].response)
            for name, reason in reasons.items()
            if reason is not None
        ]
        return not any(reasons.values())


def answered(question: Sample, model: str, response: str | None) -> Sample:
    """Return a question with a model's reply to it."""
    return replace(question, response=response, model=model)


def key_of(question: str) -> str:
    """Return what two questions share that have the same words."""
    return " ".join(words_of(question)) or question


def draws(
    questions: Iterable[Sample],
    sources: Sequence[str],
    wanted: int,
    seed: int,
    recorded: Recorded,
) -> list[Draw]:
    """Return the draws of the sources, filtered and in a random order, test splits first.

    The order depends on seed and ids alone.
    """
    found = {source: Draw(source, wanted, recorded) for source in sources}
    seen: set[str] = set()
    places = {source: place for place, source in enumerate(sources)}

    def rank(question: Sample) -> tuple[int, int]:
        of = question.metadata
        return places[of["source"]], SPLITS.index(of["split"])

    for question in sorted(questions, key=rank):
        draw = found[question.metadata["source"]]
        draw.questions += 1
        key = key_of(question.question)
        reason = question_filter(question) or (DUPLICATE if key in seen else None)
        if reason is None:
            seen.add(key)
            draw.coming.append(question)
        else:
            draw.dropped.append(Dropped(question, reason))
    for draw in found.values():
        lots = {q.id: float(generator(seed, q.id, "mixedqa").random()) for q in draw.coming}
        # The next question stands last.
        draw.coming.sort(key=lambda q: (rank(q)[1], lots[q.id], q.id), reverse=True)
    return list(found.values())
