"""The distractors of a sample: found, asked for, or its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

from trustassay.capabilities import Models
from trustassay.distractors import Distractor, find_distractors, same_kind_answers
from trustassay.distractors.matching import contains, normalised, says_the_same
from trustassay.metric import Context, Pool
from trustassay.metrics.consistency.options import ConsistencyOptions
from trustassay.metrics.consistency.texts import answer_of
from trustassay.sample import Sample
from trustassay.statistics.resampling import generator

__all__ = ["OTHERS", "candidates_of", "others_of"]

OTHERS = 1000
"""Samples whose answers may serve as distractors; each sample goes through all of them."""


async def others_of(pool: Pool, models: Models) -> list[Sample]:
    """Return the samples whose answers may serve as distractors: all, or a draw of many."""
    places: Iterable[int] = range(len(pool))
    if len(pool) > OTHERS:
        drawn = generator(0, "pool").choice(len(pool), OTHERS, replace=False)
        places = sorted(drawn.tolist())
    return await asyncio.gather(*(_answered(pool, place, models) for place in places))


async def _answered(pool: Pool, place: int, models: Models) -> Sample:
    """Return a sample; one of another shard with the response that is asked for there."""
    sample = pool[place]
    if sample.answered or pool.own is not pool:
        return sample
    return await pool.filled(place, models)


async def candidates_of(options: ConsistencyOptions, context: Context) -> list[Distractor]:
    """Return up to ``options.candidates`` distractors of a sample, best first.

    Raises:
        BackendError: a source of distractors failed.
    """
    sample, models = context.sample, context.models
    answer = answer_of(sample)
    aliases = _aliases(sample) if options.aliases else []
    found = _given(sample, aliases) if options.takes("given") else []
    named = options.named_sources
    sources = models.names("distractors") if named is None else named
    asked = [name for name in sources if name not in ("given", "pool")]
    others: Sequence[str] = ()
    if options.takes("pool"):
        golds = sample.answers if options.aliases else ()
        known_as = replace(sample, response=answer, answers=golds)
        others = same_kind_answers(known_as, context.prepared, seed=context.seed)
    if asked or others:
        more = await find_distractors(
            sample.question,
            answer,
            models,
            aliases=aliases,
            pool=others,
            sources=asked,
            limit=options.candidates,
            seed=context.seed,
        )
        known = {normalised(one.text) for one in found}
        found += [one for one in more if normalised(one.text) not in known]
    return found[: options.candidates]


def _given(sample: Sample, aliases: Sequence[str]) -> list[Distractor]:
    """Return the sample's wrong answers, none twice, none that says what the response says."""
    unlike: dict[str, str] = {}
    for text in sample.wrong_answers:
        if not says_the_same(text, answer_of(sample), aliases):
            unlike.setdefault(normalised(text), text)
    return [Distractor(text, "given", 0, "", "") for text in unlike.values()]


def _aliases(sample: Sample) -> list[str]:
    """Return the other wordings of the gold answers that the response holds."""
    own = normalised(answer_of(sample))
    held = (group for group in sample.answers if any(contains(own, normalised(a)) for a in group))
    return [alias for group in held for alias in group]
