"""The checks of one sample: choices between the model's answer and distractors, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trustassay.capabilities import Models
from trustassay.distractors import Distractor
from trustassay.metrics.consistency import maths
from trustassay.metrics.consistency.maths import LETTERS, Check
from trustassay.metrics.consistency.options import NONE_OF_THEM, ConsistencyOptions
from trustassay.metrics.consistency.texts import answer_of, one_line
from trustassay.sample import Sample
from trustassay.statistics.randomness import generator
from trustassay.together import all_of

__all__ = ["Done", "Offer", "check", "offers"]

STOP = ("\nQuestion:",)
"""Where a base model goes on with a question of its own."""
LONGEST = 500
"""Characters of a reply in the evidence; the stored call holds it whole."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What one check offers: four texts, ``None`` where the answer stands among the distractors."""

    distractors: tuple[Distractor | None, ...]

    @property
    def right(self) -> int:
        """Where the answer stands."""
        return self.distractors.index(None)

    def texts(self, answer: str) -> list[str]:
        """Return the five options, each in one line."""
        texts = [answer if one is None else one_line(one.text) for one in self.distractors]
        return [*texts, NONE_OF_THEM]


@dataclass(frozen=True, slots=True)
class Done:
    """A check that was made, and its row of the evidence."""

    check: Check
    row: dict[str, Any]


def offers(sample_id: str, found: Sequence[Distractor], n: int, seed: int) -> list[Offer]:
    """Return what up to ``n`` checks offer: fewer where there are fewer triples of distractors.

    They follow from the seed, the sample's id and the distractors; those of a smaller ``n`` are
    the first of a larger one.
    """
    triples = maths.triples(len(found), n, generator(seed, sample_id, "triples"))
    places = maths.places(len(triples), generator(seed, sample_id, "places"))
    made = []
    for triple, place in zip(triples, places, strict=True):
        options: list[Distractor | None] = [found[i] for i in triple]
        options.insert(place, None)
        made.append(Offer(tuple(options)))
    return made


async def check(
    options: ConsistencyOptions, sample: Sample, models: Models, to_make: Sequence[Offer]
) -> list[Done]:
    """Make the checks: one after the other until one decides, or all at once.

    Raises:
        BackendError: a call failed.
        PromptError: the template asks for something that there is not.
    """
    if not options.stop:
        return await all_of(_checked(options, sample, models, o) for o in to_make)
    done: list[Done] = []
    for offer in to_make:
        done.append(await _checked(options, sample, models, offer))
        if maths.decided(done[-1].check, unparsed_counts=options.unparsed == "inconsistent"):
            break
    return done


async def _checked(
    options: ConsistencyOptions, sample: Sample, models: Models, offer: Offer
) -> Done:
    texts = offer.texts(answer_of(sample))
    prompt = options.template.filled(
        question=one_line(sample.question), options=texts, examples=options.examples
    )
    choice = await models.choose(
        prompt,
        texts,
        by=options.by,
        expected=offer.right,
        max_tokens=options.max_tokens,
        stop=STOP,
        prompt=options.template.name,
        may_be_empty=True,
    )
    chosen = choice.index
    if options.parser == "exact" and choice.way == "letter":
        bare = choice.reply.strip()
        chosen = LETTERS.index(bare) if bare in tuple(LETTERS) else None
    row: dict[str, Any] = {
        "options": [
            _option(one, text) for one, text in zip(offer.distractors, texts, strict=False)
        ],
        "right": LETTERS[offer.right],
        "chosen": None if chosen is None else LETTERS[chosen],
        "way": choice.way,
    }
    if choice.way == "likelihood":
        row["probabilities"] = [round(p, 4) for p in choice.probabilities]
    else:
        row["reply"] = choice.reply[:LONGEST]
    return Done(Check(offer.right, chosen), row)


def _option(distractor: Distractor | None, text: str) -> dict[str, Any]:
    if distractor is None:
        return {"text": text}
    return {"text": text, "source": distractor.source, "level": distractor.level}
