"""The checks of one sample: choices between the model's answer and distractors, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trustassay.capabilities import Choice, Models, repair_turns
from trustassay.distractors import Distractor
from trustassay.metrics.consistency import maths
from trustassay.metrics.consistency.maths import LETTERS, Check
from trustassay.metrics.consistency.options import NONE_OF_THEM, ConsistencyOptions
from trustassay.metrics.consistency.texts import answer_of, one_line
from trustassay.sample import Sample
from trustassay.statistics.resampling import generator
from trustassay.together import all_of

__all__ = ["Done", "Offer", "Offers", "check", "offers"]

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

    def turned(self, place: int) -> Offer:
        """Return the same distractors in another order, and the answer at another place."""
        first, *others = (one for one in self.distractors if one is not None)
        return _offer([*others, first], place)


@dataclass(frozen=True, slots=True)
class Offers:
    """What the checks of a sample offer, and what the checks do that stand in for others.

    places: where the answer stands in each of ``spare``, and in those that follow them.
    """

    wanted: Sequence[Offer]
    spare: Sequence[Offer]
    places: Sequence[int]

    def instead_of(self, unread: Offer, number: int) -> Offer:
        """Return what the check of this number, from 0, offers that stands in for another one:
        other distractors, or the same in another order where there are no others.
        """
        if number < len(self.spare):
            return self.spare[number]
        return unread.turned(self.places[number])


@dataclass(frozen=True, slots=True)
class Done:
    """A check that was made, and its row of the evidence."""

    offer: Offer
    check: Check
    row: dict[str, Any]


def offers(sample_id: str, found: Sequence[Distractor], n: int, seed: int) -> Offers:
    """Return what up to ``n`` checks offer: fewer where there are fewer triples of distractors.

    They follow from the seed, the sample's id and the distractors; those of a smaller ``n`` are
    the first of a larger one.
    """
    wanted = maths.most_checks(len(found), n)
    most = wanted + maths.most_replaced(wanted)
    triples = maths.triples(len(found), most, generator(seed, sample_id, "triples"))
    places = maths.places(most, generator(seed, sample_id, "places"))
    made = [
        _offer([found[i] for i in triple], place)
        for triple, place in zip(triples, places, strict=False)
    ]
    return Offers(made[:wanted], made[wanted:], places[wanted:])


def _offer(distractors: Sequence[Distractor], place: int) -> Offer:
    options: list[Distractor | None] = list(distractors)
    options.insert(place, None)
    return Offer(tuple(options))


async def check(
    options: ConsistencyOptions, sample: Sample, models: Models, offers: Offers
) -> list[Done]:
    """Make the checks: one after the other until one decides, or all at once.

    Where ``options.unparsed`` is ``again``, a reply that names no option is asked for once more;
    if that one names none either, another check takes its place. With more such replies than may
    be replaced the answer stays open, and no more is asked.

    Raises:
        BackendError: a call failed.
        PromptError: the template asks for something that there is not.
    """
    waiting, done, replaced = list(offers.wanted), [], 0
    while waiting:
        batch = waiting[:1] if options.stop else waiting
        made = await all_of(_checked(options, sample, models, offer) for offer in batch)
        del waiting[: len(batch)]
        done += made
        counts = options.unparsed == "inconsistent"
        if options.stop and maths.decided(made[0].check, unparsed_counts=counts):
            break
        if options.unparsed == "again":
            unread = [one.offer for one in made if one.check.chosen is None]
            first, replaced = replaced, replaced + len(unread)
            if replaced > len(offers.places):
                break
            waiting += [offers.instead_of(one, first + i) for i, one in enumerate(unread)]
    return done


async def _checked(
    options: ConsistencyOptions, sample: Sample, models: Models, offer: Offer
) -> Done:
    texts = offer.texts(answer_of(sample))
    template = options.template
    prompt = template.filled(
        question=one_line(sample.question), options=texts, examples=options.examples
    )

    async def chosen(turns: Any, name: str) -> tuple[Choice, int | None]:
        choice = await models.choose(
            turns,
            texts,
            by=options.by,
            expected=offer.right,
            max_tokens=options.max_tokens,
            stop=STOP,
            prompt=name,
            may_be_empty=True,
        )
        if options.parser == "exact" and choice.way == "letter":
            bare = choice.reply.strip()
            return choice, LETTERS.index(bare) if bare in tuple(LETTERS) else None
        return choice, choice.index

    choice, index = await chosen(prompt, template.name)
    first = None
    if index is None and options.unparsed == "again":
        first = choice.reply
        repair = options.repair
        turns = repair_turns(prompt, first, repair.filled())
        choice, index = await chosen(turns, f"{template.name}+{repair.name}")
    row: dict[str, Any] = {
        "options": [
            _option(one, text) for one, text in zip(offer.distractors, texts, strict=False)
        ],
        "right": LETTERS[offer.right],
        "chosen": None if index is None else LETTERS[index],
        "way": choice.way,
    }
    if choice.way == "likelihood":
        row["probabilities"] = [round(p, 4) for p in choice.probabilities]
    else:
        row["reply"] = choice.reply[:LONGEST]
    if first is not None:
        row["first_reply"] = first[:LONGEST]
    return Done(offer, Check(offer.right, index, first is not None), row)


def _option(distractor: Distractor | None, text: str) -> dict[str, Any]:
    if distractor is None:
        return {"text": text}
    return {"text": text, "source": distractor.source, "level": distractor.level}
