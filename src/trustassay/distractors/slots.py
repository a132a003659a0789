"""Which words of an answer can be replaced, by how much they tell; and answers of the same kind.

Level 1: entities and dates that are only in the answer. Level 2: nouns and numbers that are only
there. Level 3: verbs and adjectives that are only there, then entities, then nouns and numbers
that are in the question, too. Level 4: all other words. (Zheng et al. 2024, section 2.1 and
Algorithm 1.)
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, combinations, islice

from trustassay.capabilities import Entity
from trustassay.distractors.tokens import (
    FUNCTION_TAGS,
    SHORT,
    Slot,
    Token,
    asked_for,
    date_slots,
    kind_asked_for,
    likely_types,
    normalised,
    number_slots,
    says_the_same,
    tagged,
    words_of,
)
from trustassay.sample import Sample
from trustassay.statistics.resampling import generator

TYPE_SETS = 16
"""Sets of an entity's types that are tried; of ten types there are a thousand."""

_INSIDE = frozenset("of the de la du van von der den del da di al bin ibn & - ' .".split())
"""What may stand between two parts of a name."""
_NAMES = ("NNP", "NNPS")


def slots_of(question: str, answer: str, linked: Sequence[Entity] = ()) -> list[list[Slot]]:
    """Return the slots of an answer in groups, those that tell most first.

    ``linked`` are entities that a linker found; they take the place of those found by capital
    letters that they overlap, never that of dates and numbers. An entity without types has those
    that the question asks for.
    """
    tokens = tagged(answer)
    dated = date_slots(answer)
    likely = likely_types(question)
    known = [
        replace(one, types=one.types or likely)
        for one in _free(_linked(linked, answer, tokens), dated)
        if not _is_number(one.text)
    ]
    names = _free(_names(answer, tokens), [*dated, *known])
    named = [replace(one, types=likely) for one in names]
    entities = sorted([*dated, *known, *named], key=lambda one: one.start)
    counted = _free(number_slots(answer), entities)
    words = [_word(one) for one in tokens if one.word and not one.functional]
    words = _free(words, [*entities, *counted])
    nouns = sorted(
        [*counted, *(one for one in words if one.tag.startswith("NN"))], key=lambda one: one.start
    )
    doing = [one for one in words if one.tag[:2] in ("VB", "JJ")]
    shared = frozenset(words_of(question))

    def is_asked(slot: Slot) -> bool:
        return shared.issuperset(words_of(slot.text))

    wanted = kind_asked_for(question)

    def told(slots: Sequence[Slot]) -> list[Slot]:
        """Return those that are not in the question; of the kind that it asks for first."""
        return sorted((o for o in slots if not is_asked(o)), key=lambda one: one.kind != wanted)

    groups = [
        _level(1, told(entities)),
        _level(2, told(nouns)),
        _level(3, [one for one in doing if not is_asked(one)]),
        _level(3, [one for one in entities if is_asked(one)]),
        _level(3, [one for one in nouns if is_asked(one)]),
    ]
    used = [one for group in groups for one in group]
    functional = [_word(one) for one in tokens if one.word and one.functional]
    groups += [_level(4, _free(words, used)), _level(4, _free(functional, used))]
    return [group for group in groups if group]


def entity_words(slot: Slot) -> list[Slot]:
    """Return the words of an entity of several that can each be replaced."""
    parts = [one for one in tagged(slot.text) if one.word and not one.functional]
    if len(parts) < 2:
        return []
    return [
        replace(
            slot,
            text=one.text,
            start=slot.start + one.start,
            end=slot.start + one.end,
            tag=one.tag if one.tag in _NAMES else "NNP",
            types=(),
        )
        for one in parts
    ]


SHORT_WORDS = 5
"""A whole answer of so many words, without a verb that makes it a sentence, is one slot, too."""
_FINITE = ("VBZ", "VBP", "VBD", "MD")


def whole_answer(answer: str, groups: Sequence[Sequence[Slot]]) -> Slot | None:
    """Return a short answer as one slot; ``None`` for a long one, a sentence, or one of no words.

    ``groups`` are its slots.
    """
    words = [one for one in tagged(answer) if one.word]
    if not groups or len(words) > SHORT_WORDS or any(one.tag in _FINITE for one in words):
        return None
    text = answer.strip().rstrip(".")
    start = answer.index(text)
    return replace(groups[0][0], text=text, start=start, end=start + len(text))


def kinds_of(text: str, start: int, end: int) -> frozenset[str]:
    """Return the kinds of the words ``text[start:end]``: dates, numbers, names, nouns, finite
    verbs, and words that hold a sentence together, but for ``the``.

    Others count where there is none of the first four.
    """
    groups = slots_of("", text)
    result = [o for group in groups for o in group if o.start < end and start < o.end]
    most = max(2, min((one.level for one in result), default=4))
    return frozenset(
        _kind(one)
        for one in result
        if one.text.lower() != "the"
        and (one.level <= most or one.tag in (*FUNCTION_TAGS, *_FINITE))
    )


def _kind(slot: Slot) -> str:
    if slot.kind in ("date", "number"):
        return slot.kind
    if slot.kind == "entity" or slot.tag == "JJ":
        named = "NN" if slot.kind == "entity" else "JJ"
        return named if slot.text.islower() else "name"
    return slot.tag if slot.tag.startswith("NN") else slot.tag[:2]


def type_sets(types: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the sets of an entity's types to look others up by: all of them, then fewer.

    At most 16; of each size those that keep the first types come first.
    """
    sizes = range(len(types), 0, -1)
    sets = (chosen for size in sizes for chosen in combinations(types, size))
    return list(islice(sets, TYPE_SETS))


def _level(level: int, slots: Sequence[Slot]) -> list[Slot]:
    return [replace(one, level=level) for one in slots]


def _free(slots: Iterable[Slot], taken: Iterable[Slot]) -> list[Slot]:
    """Return the slots that overlap none of those taken."""
    ordered = sorted(taken, key=lambda one: one.start)
    starts = [one.start for one in ordered]
    ends = list(accumulate((one.end for one in ordered), max))

    def is_free(slot: Slot) -> bool:
        before = bisect_left(starts, slot.end)
        return before == 0 or ends[before - 1] <= slot.start

    return [one for one in slots if is_free(one)]


def _is_number(text: str) -> bool:
    """Whether words are a number, perhaps with its unit, and no name (``12 km``, not ``U2``)."""
    result = number_slots(text)
    rest = list(text)
    for one in result:
        rest[one.start : one.end] = " " * len(one.text)
    return bool(result) and not any(sign.isupper() for sign in rest)


def _word(token: Token) -> Slot:
    return Slot(token.text, token.start, token.end, "word", 4, token.tag)


def _linked(entities: Sequence[Entity], answer: str, tokens: Sequence[Token]) -> Iterator[Slot]:
    end = 0
    for one in sorted(entities, key=lambda one: (one.start, -one.end)):
        text = answer[one.start : one.end]
        if one.start < end or not text.strip():
            continue
        end = one.end
        types = tuple(map(str, one.details.get("types", ())))
        last = [token for token in tokens if token.end <= one.end and token.word]
        tag = last[-1].tag if last and last[-1].tag in _NAMES else "NNP"
        yield Slot(text, one.start, one.end, "entity", 1, tag, types)


def _names(answer: str, tokens: Sequence[Token]) -> Iterator[Slot]:
    """Yield runs of names: tagged as such, or with a capital inside a sentence."""
    runs: list[list[Token]] = []
    between: list[Token] | None = None  # what stands behind the last name, if that may go on
    for place, token in enumerate(tokens):
        if _is_name(tokens, place):
            follows = between is not None and not answer[runs[-1][-1].end : token.start].strip()
            if between or follows:
                runs[-1] += [*(between or ()), token]
            else:
                runs.append([token])
            between = []
        elif between is not None and token.text.lower() in _INSIDE and len(between) < 2:
            between.append(token)
        else:
            between = None
    for run in runs:
        start, end = run[0].start, run[-1].end
        tag = run[-1].tag if run[-1].tag in _NAMES else "NNP"
        yield Slot(answer[start:end], start, end, "entity", 1, tag)


def _is_name(tokens: Sequence[Token], place: int) -> bool:
    token = tokens[place]
    after = tokens[place + 1] if place + 1 < len(tokens) else None
    if len(token.text) == 1 and token.text.isupper() and after is not None and after.text == ".":
        return True  # an initial
    if not token.word or token.functional or token.text[0].isdigit():
        return False
    if token.tag in _NAMES or not token.text[0].isupper():
        return token.tag in _NAMES
    begins = place == 0 or tokens[place - 1].text in ".!?:\"“'‘("
    return not begins or (after is not None and after.word and after.text[0].isupper())


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
        result = _telling(other.question, other.response or "")
        key = normalised(result.text)
        if result.kind != own.kind or not key or key in seen:
            continue
        seen.add(key)
        if not says_the_same(result.text, own.text, golds):
            longer = abs(len(words_of(result.text)) - length)
            ranked.append((longer, float(rng.random()), result.text))
    return [text for _, _, text in sorted(ranked)[:MOST]]


def _telling(question: str, answer: str) -> Slot:
    """Return the slot of an answer that tells most; the whole answer where nothing does."""
    short = len(question) + len(answer) < SHORT
    return _found(question, answer) if short else _found.__wrapped__(question, answer)


@lru_cache(maxsize=8192)
def _found(question: str, answer: str) -> Slot:
    text = answer.strip().rstrip(".")
    return next(
        (slot for group in slots_of(question, answer) for slot in group if slot.level < 3),
        Slot(text, 0, len(text), "word", 4),
    )


def fitting(slot: Slot, pool: Sequence[str]) -> list[str]:
    """Return those of a pool that are of the kind of a slot, and at most one word longer."""
    words = len(words_of(slot.text))
    result = []
    for text in pool:
        own = next((one for group in slots_of("", text) for one in group), None)
        if own is None or own.text != text or own.kind != slot.kind:
            continue
        if slot.kind == "word" and tagged(text)[0].tag != slot.tag:
            continue
        if abs(len(words_of(text)) - words) <= 1:
            result.append(text)
    return list(dict.fromkeys(result))
