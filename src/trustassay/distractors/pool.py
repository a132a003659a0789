"""Answers of the same kind to other questions of a file, and what of them fits a slot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from trustassay.distractors.matching import SHORT, normalised, says_the_same, words_of
from trustassay.distractors.questions import asked_for
from trustassay.distractors.slots import slots_of
from trustassay.distractors.tagging import tagged
from trustassay.distractors.values import Slot
from trustassay.sample import Sample
from trustassay.statistics.resampling import generator

__all__ = ["fitting", "same_kind_answers"]

MOST = 200
"""Answers that are handed on."""


def same_kind_answers(sample: Sample, pool: Iterable[Sample], *, seed: int = 0) -> list[str]:
    """Return what answers other questions that ask by the same words as the sample's (``who``).

    Of each answer the words that tell most: the first of its slots of the highest level, the whole
    answer where there is none. Of the kind of the sample's own (a date for a date), those of a
    similar number of words first; at most 200, none twice, none that says what the sample's answer
    or a gold answer says.
    """
    own = _telling(sample.question, sample.response or "")
    asked, length = asked_for(sample.question), len(words_of(own.text))
    golds = [alias for aliases in sample.answers for alias in aliases]
    rng = generator(seed, sample.id, "pool")
    ranked: list[tuple[int, float, str]] = []
    seen: set[str] = set()
    for other in pool:
        if other.question == sample.question or asked_for(other.question) != asked:
            continue
        found = _telling(other.question, other.response or "")
        key = normalised(found.text)
        if found.kind != own.kind or not key or key in seen:
            continue
        seen.add(key)
        if not says_the_same(found.text, own.text, golds):
            longer = abs(len(words_of(found.text)) - length)
            ranked.append((longer, float(rng.random()), found.text))
    return [text for _, _, text in sorted(ranked)[:MOST]]


def _telling(question: str, answer: str) -> Slot:
    """Return the slot of an answer that tells most; the whole answer where nothing does."""
    short = len(question) + len(answer) < SHORT
    return _kept(question, answer) if short else _found(question, answer)


def _found(question: str, answer: str) -> Slot:
    text = answer.strip().rstrip(".")
    return next(
        (slot for group in slots_of(question, answer) for slot in group if slot.level < 3),
        Slot(text, 0, len(text), "word", 4),
    )


_kept = lru_cache(maxsize=8192)(_found)


def fitting(slot: Slot, pool: Sequence[str]) -> list[str]:
    """Return those of a pool that are of the kind of a slot, and at most one word longer."""
    words = len(words_of(slot.text))
    found = []
    for text in pool:
        own = next((one for group in slots_of("", text) for one in group), None)
        if own is None or own.text != text or own.kind != slot.kind:
            continue
        if slot.kind == "word" and tagged(text)[0].tag != slot.tag:
            continue
        if abs(len(words_of(text)) - words) <= 1:
            found.append(text)
    return list(dict.fromkeys(found))
