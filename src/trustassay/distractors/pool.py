"""Answers of the same kind to other questions of a file, and what of them fits a slot."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from trustassay.distractors import dates, numbers
from trustassay.distractors.matching import normalised, says_the_same, words_of
from trustassay.distractors.slots import slots_of
from trustassay.distractors.values import Slot
from trustassay.sample import Sample
from trustassay.statistics.randomness import generator

__all__ = ["asked_for", "fitting", "same_kind_answers"]

MOST = 200
"""Answers that are handed on."""
_WORD = re.compile(
    r"\b(who|whom|whose|when|where|why|how (?:many|much|long|old|often|far|tall)|how|which|what)\b"
)


def asked_for(question: str) -> str:
    """Return the word by which a question asks: ``who``, ``when``, ``how many``, ..., else empty.

    With ``which`` and ``what`` goes the word after them (``what year``), which tells the kind.
    """
    text = question.lower()
    if not (match := _WORD.search(text)):
        return ""
    after = re.match(r"\s+([a-z]+)", text[match.end() :])
    if match[1] in ("which", "what") and after:
        return f"what {after[1]}"
    return "who" if match[1] in ("whom", "whose") else match[1]


def same_kind_answers(sample: Sample, pool: Iterable[Sample], *, seed: int = 0) -> list[str]:
    """Return answers to other questions that are of the kind of the sample's own.

    Those to questions that ask by the same word first, of them those of a similar length; at most
    200, none twice, none that says what the sample's answer or a gold answer says.
    """
    own = sample.response or ""
    kind, form, length = asked_for(sample.question), _form(own), len(words_of(own))
    golds = [alias for aliases in sample.answers for alias in aliases]
    rng = generator(seed, sample.id, "pool")
    ranked: list[tuple[tuple[float, ...], str]] = []
    seen: set[str] = set()
    for other in pool:
        text = (other.response or "").strip()
        key = normalised(text)
        if not text or other.question == sample.question or key in seen:
            continue
        seen.add(key)
        if says_the_same(text, own, golds):
            continue
        unlike = float(asked_for(other.question) != kind) + float(_form(text) != form)
        longer = abs(len(words_of(text)) - length)
        ranked.append(((unlike, float(longer), float(rng.random())), text))
    return [text for _, text in sorted(ranked)[:MOST]]


def fitting(slot: Slot, answer: str, pool: Sequence[str]) -> list[str]:
    """Return what can stand in a slot out of other answers: whole ones, or their dates, names, ....

    A whole answer fits where the slot is the whole answer, too.
    """
    whole = slot.text.strip(" .") == answer.strip(" .")
    found = []
    for text in pool:
        if whole and len(words_of(text)) <= len(words_of(answer)) + 2:
            found.append(text.strip().rstrip("."))
        else:
            found += [one.text for one in _of_kind(slot, text)]
    return list(dict.fromkeys(found))


def _of_kind(slot: Slot, text: str) -> list[Slot]:
    if slot.kind == "date":
        return dates.found(text)
    if slot.kind == "number":
        return numbers.found(text)
    if slot.kind == "word":
        return []
    groups = slots_of("", text)
    names = [one for group in groups for one in group if one.kind == "entity"]
    words = len(words_of(slot.text))
    return [one for one in names if abs(len(words_of(one.text)) - words) <= 1]


def _form(text: str) -> str:
    if dates.found(text):
        return "date"
    return "number" if numbers.found(text) else "words"
