"""The words of an answer that can be replaced, ranked by how much they tell; and answers of a kind.

First comes the part that answers the question, as far as the question tells: of a person's name and
a place, the place where it asks ``where``. Then by level (Zheng et al. 2024, section 2.1 and
Algorithm 1). Level 1: entities that are only in the answer. Level 2: nouns and numbers that are
only there. Level 3: verbs and adjectives that are only there, then entities, then nouns and numbers
that are in the question as well. Level 4: all other words. A date is of level 1 if the question
asks for one, otherwise the last of level 3.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, combinations, islice
from typing import NamedTuple

from trustassay.core.capabilities import Entity
from trustassay.core.sample import Sample
from trustassay.metrics.consistency.tokens import (
    FUNCTION_TAGS,
    MAX_CACHED_CHARS,
    Slot,
    TaggedToken,
    asks_for_place,
    find_dates,
    find_expected_kind,
    find_likely_types,
    find_noun_asked_for,
    find_numbers,
    find_question_word,
    is_same_answer,
    normalise,
    split_words,
    tag_words,
)
from trustassay.statistics.resampling import generator

MAX_TYPE_SETS = 16
"""Sets of an entity's types that are tried; ten types have a thousand."""

_NAME_CONNECTORS = frozenset(
    "of the de la du van von der den del da di al bin ibn & - ' s .".split()
)
"""Words and signs that may stand between two parts of a name."""
_NAME_TAGS = ("NNP", "NNPS")


class AnswerParts(NamedTuple):
    """The replaceable parts of an answer, each in the order of the text; none overlap."""

    new_entities: Sequence[Slot]
    """Entities that are only in the answer."""
    new_dates: Sequence[Slot]
    new_nouns: Sequence[Slot]
    """Nouns and numbers that are only in the answer."""
    new_verbs: Sequence[Slot]
    """Verbs and adjectives that are only in the answer."""
    repeated_entities: Sequence[Slot]
    """Entities that are in the question as well."""
    repeated_dates: Sequence[Slot]
    repeated_nouns: Sequence[Slot]
    """Nouns and numbers that are in the question as well."""
    others: Sequence[Slot]
    """Other words with a subject of their own."""
    functional: Sequence[Slot]
    """Words that hold the sentence together."""


def sort_parts(question: str, answer: str, linked: Sequence[Entity] = ()) -> AnswerParts:
    """Return the parts of an answer; arguments as of :func:`find_slots`."""
    tokens = tag_words(answer)
    # Overlaps are resolved in this order: dates, linked entities, names, numbers, words.
    dates = find_dates(answer)
    linked_slots = [
        slot
        for slot in _drop_overlapping(_build_linked_slots(linked, answer, tokens), dates)
        # Linkers also link plain numbers, whose neighbours are better drawn than looked up.
        if not _is_number(slot.text)
    ]
    names = _drop_overlapping(_find_names(answer, tokens), [*dates, *linked_slots])
    entities = sorted([*linked_slots, *names], key=lambda slot: slot.start)
    numbers = _drop_overlapping(find_numbers(answer), [*dates, *entities])
    words = [
        _build_word_slot(token) for token in tokens if token.is_word and not token.is_functional
    ]
    words = _drop_overlapping(words, [*dates, *entities, *numbers])
    nouns = sorted(
        [*numbers, *(slot for slot in words if slot.tag.startswith("NN"))],
        key=lambda slot: slot.start,
    )
    # What the question already says tells least: an answer with it replaced is easily seen through.
    shared = frozenset(split_words(question))

    def divide(slots: Sequence[Slot]) -> tuple[list[Slot], list[Slot]]:
        """Return the slots that are only in the answer, and those that the question has, too."""
        new: list[Slot] = []
        repeated: list[Slot] = []
        for slot in slots:
            (repeated if shared.issuperset(split_words(slot.text)) else new).append(slot)
        return new, repeated

    (new_entities, repeated_entities), (new_dates, repeated_dates) = divide(entities), divide(dates)
    new_nouns, repeated_nouns = divide(nouns)
    new_verbs, _ = divide([slot for slot in words if slot.tag[:2] in ("VB", "JJ")])
    used = [*entities, *dates, *nouns, *new_verbs]
    functional = [
        _build_word_slot(token) for token in tokens if token.is_word and token.is_functional
    ]
    return AnswerParts(
        new_entities,
        new_dates,
        new_nouns,
        new_verbs,
        repeated_entities,
        repeated_dates,
        repeated_nouns,
        _drop_overlapping(words, used),
        _drop_overlapping(functional, used),
    )


def find_slots(question: str, answer: str, linked: Sequence[Entity] = ()) -> list[list[Slot]]:
    """Return the slots of an answer in groups, those that tell most first.

    The first group is the part that answers the question. It may have a longer slot before one
    that is part of it (``Atlanta, Georgia``, ``Atlanta``); no other slots overlap.

    Args:
        question: the question, whose words tell little in the answer.
        answer: the answer.
        linked: entities that a linker found. They replace overlapping entities that were found by
            capital letters, but never dates and numbers. An entity without types gets those
            that the question asks for.
    """
    parts = sort_parts(question, answer, linked)
    likely, wanted = find_likely_types(question), find_expected_kind(question)
    asked = _find_asked_part(question, answer, parts)

    # The noun before a name tells more than the question: "the band the Rolling Stones".
    before = split_words(answer[: asked[0].start])[-1:] if asked else ()
    types = (*(noun.capitalize() for noun in before), *likely)

    def select(level: int, slots: Sequence[Slot]) -> list[Slot]:
        remaining = [slot for slot in slots if slot not in asked]
        return [replace(slot, level=level) for slot in remaining]

    new_nouns = list(parts.new_nouns)
    if wanted == "entity":  # a number answers neither who nor where
        new_nouns.sort(key=lambda slot: slot.kind == "number")
    # Dates stand with the entities only where the question asks for one, or does not tell.
    tells_kind = bool(find_question_word(question)) and wanted != "date"
    top_dates = [] if tells_kind else parts.new_dates
    low_dates = [*(parts.new_dates if tells_kind else ()), *parts.repeated_dates]
    is_adjective = bool(asked) and asked[0].tag == "JJ"
    is_word = bool(asked) and asked[0].kind == "word"
    level = 3 if is_adjective else 1 + is_word
    groups = [
        *([replace(slot, level=level, types=slot.types or types)] for slot in asked),
        select(1, sorted([*parts.new_entities, *top_dates], key=lambda slot: slot.start)),
        select(2, new_nouns),
        select(3, parts.new_verbs),
        select(3, parts.repeated_entities),
        select(3, parts.repeated_nouns),
        select(3, low_dates),
        select(4, parts.others),
        select(4, parts.functional),
    ]
    return [group for group in groups if group]


def _find_asked_part(question: str, answer: str, parts: AnswerParts) -> list[Slot]:
    """Return the slot that answers the question, perhaps after a longer one that contains it.

    Empty if the answer has nothing but words of the question, or only its verbs differ.
    """
    wanted = find_expected_kind(question)
    if wanted == "date" and parts.new_dates:
        return [parts.new_dates[0]]
    numbers = [slot for slot in parts.new_nouns if slot.kind == "number"]
    # Also "in season 3" where the question asks when.
    if wanted in ("number", "date") and numbers:
        return [numbers[0]]
    asked_nouns = find_noun_asked_for(question)
    if wanted is not None or asked_nouns:
        return _find_asked_words(question, answer, parts)
    return []


def _find_asked_words(question: str, answer: str, parts: AnswerParts) -> list[Slot]:
    """Return the entity, noun or adjective that answers a question, as :func:`_find_asked_part`."""
    wanted, asked_nouns = find_expected_kind(question), find_noun_asked_for(question)
    nouns = [slot for slot in parts.new_nouns if slot.kind == "word"]
    # A name of which the question has a part is mostly its subject, spelt or written otherwise.
    shared = frozenset(split_words(question)).difference(asked_nouns)
    fresh = [slot for slot in parts.new_entities if shared.isdisjoint(split_words(slot.text))]
    if nouns:  # "a Russian poet" says more of a poet
        fresh = [slot for slot in fresh if not _modifies_noun(answer, slot, asked_nouns)]
    entities = fresh or ([] if nouns and wanted != "entity" else parts.new_entities)
    if entities:
        slot = min(entities, key=lambda slot: _rank_entity(question, answer, slot))
        # A city with its state or country is replaced as a whole.
        others = [*parts.new_entities, *parts.repeated_entities]
        after_comma = slot.end + 2 if answer.startswith(", ", slot.end) else None
        region = next((other for other in others if other.start == after_comma), None)
        is_list = region and answer[region.end :].startswith((", ", " and "))
        if region and asks_for_place(question) and not is_list:
            text = answer[slot.start : region.end]
            return [replace(slot, text=text, end=region.end), slot]
        return [slot]
    if nouns:
        return _join_noun(answer, parts, nouns[0])
    # "a musical genre": the noun is the question's, so the adjective answers it.
    adjectives = [slot for slot in parts.new_verbs if slot.tag == "JJ"]
    return adjectives[:1] if asked_nouns else []


def _modifies_noun(answer: str, slot: Slot, nouns: Sequence[str]) -> bool:
    """Whether a name stands before a common noun that it describes, other than what is asked
    for."""
    # Two words suffice; in a long answer each name would otherwise be followed by all of it.
    following = tag_words(answer[slot.end : slot.end + _CHARACTERS_AROUND])[:2]
    next_word = next(iter(following), None)
    if next_word is None or not next_word.text.islower() or next_word.text in nouns:
        return False
    # "Bergen-Belsen concentration camp" is what is asked for.
    if any(token.text in nouns for token in following):
        return False
    return next_word.tag.startswith(("NN", "JJ")) and not next_word.is_functional


_CHARACTERS_AROUND = 60
_PLACE_PREPOSITIONS = ("in", "at", "on", "from", "to", "near")


def _rank_entity(question: str, answer: str, slot: Slot) -> tuple[bool, bool, int]:
    """Return the rank of an entity by how clearly it answers the question, the least first.

    Beside the noun that the question asks for (``the city of Rome``, ``Torres Strait``), then with
    or without a preposition of place, as a place or a person has one, then the first one.
    """
    nouns, is_place = find_noun_asked_for(question), asks_for_place(question)
    before = split_words(answer[max(0, slot.start - _CHARACTERS_AROUND) : slot.start])[-2:]
    after = split_words(answer[slot.end : slot.end + _CHARACTERS_AROUND])[:2]
    beside = {*before, *after, *split_words(slot.text)}
    after_preposition = bool(before) and before[-1] in _PLACE_PREPOSITIONS
    return (nouns[-1] not in beside if nouns else True, after_preposition != is_place, slot.start)


def _join_noun(answer: str, parts: AnswerParts, first: Slot) -> list[Slot]:
    """Return a noun with the words that belong to it, and the noun alone.

    The nouns and adjectives without anything between are one (``heart attack``); the last is its
    head.
    """
    run = [first]
    for slot in parts.new_nouns:
        if slot.kind == "word" and answer[run[-1].end : slot.start] == " ":
            run.append(slot)
    for slot in reversed(parts.new_verbs):
        if slot.tag == "JJ" and answer[slot.end : run[0].start] == " ":
            run.insert(0, slot)
    head = run[-1]
    starts = [slot.start for slot in run]
    return [replace(head, text=answer[start : head.end], start=start) for start in starts]


def split_entity(slot: Slot) -> list[Slot]:
    """Return the words of an entity of several words that can each be replaced."""
    words = [token for token in tag_words(slot.text) if token.is_word and not token.is_functional]
    # The word would be the whole entity again.
    if len(words) < 2:
        return []
    return [
        replace(
            slot,
            text=token.text,
            start=slot.start + token.start,
            end=slot.start + token.end,
            kind="number" if _is_number(token.text) else slot.kind,
            tag=token.tag if token.tag in _NAME_TAGS else "NNP",
            types=(),
        )
        for token in words
    ]


MAX_WHOLE_ANSWER_WORDS = 5
"""A whole answer of up to this many words is one slot as well, unless a verb makes it a
sentence."""
_FINITE_VERB_TAGS = ("VBZ", "VBP", "VBD", "MD")


def build_whole_slot(answer: str, groups: Sequence[Sequence[Slot]]) -> Slot | None:
    """Return a short answer as one slot; ``None`` for a long one, a sentence, or one without
    slots."""
    tokens = [token for token in tag_words(answer) if token.is_word]
    if (
        not groups
        or len(tokens) > MAX_WHOLE_ANSWER_WORDS
        or any(token.tag in _FINITE_VERB_TAGS for token in tokens)
    ):
        return None
    text = answer.strip().rstrip(".")
    # White space and the full stop around the answer stay in it.
    start = answer.index(text)
    return replace(groups[0][0], text=text, start=start, end=start + len(text))


def find_kinds(text: str, start: int, end: int) -> frozenset[str]:
    """Return the kinds of the words ``text[start:end]``.

    Dates, numbers, names, nouns, finite verbs, and words that hold a sentence together except
    ``the``. Other kinds count only if there is none of the first four.
    """
    groups = find_slots("", text)
    result = [o for group in groups for o in group if o.start < end and start < o.end]
    max_level = max(2, min((slot.level for slot in result), default=4))
    return frozenset(
        _name_kind(slot)
        for slot in result
        if slot.text.lower() != "the"
        and (slot.level <= max_level or slot.tag in (*FUNCTION_TAGS, *_FINITE_VERB_TAGS))
    )


def _name_kind(slot: Slot) -> str:
    """Return the kind of a slot for the comparison of a replacement with the words it replaces."""
    if slot.kind in ("date", "number"):
        return slot.kind
    if slot.kind == "entity" or slot.tag == "JJ":
        # A name in small letters is indistinguishable from a noun.
        tag = "NN" if slot.kind == "entity" else "JJ"
        return tag if slot.text.islower() else "name"
    return slot.tag if slot.tag.startswith("NN") else slot.tag[:2]


def build_type_sets(types: Sequence[str]) -> list[tuple[str, ...]]:
    """Return sets of an entity's types by which to look up others: all types, then fewer.

    At most 16; among sets of one size those that keep the first types come first.
    """
    sizes = range(len(types), 0, -1)
    sets = (subset for size in sizes for subset in combinations(types, size))
    return list(islice(sets, MAX_TYPE_SETS))


def _drop_overlapping(slots: Iterable[Slot], occupied: Iterable[Slot]) -> list[Slot]:
    """Return the slots that overlap none of the occupied ones."""
    ordered = sorted(occupied, key=lambda slot: slot.start)
    starts = [slot.start for slot in ordered]
    # `ends[i]`: the furthest end among the first i + 1, since occupied slots may overlap each
    # other. A long answer has hundreds of slots, so each is tested by bisection.
    ends = list(accumulate((slot.end for slot in ordered), max))

    def is_free(candidate: Slot) -> bool:
        before = bisect_left(starts, candidate.end)
        return before == 0 or ends[before - 1] <= candidate.start

    return [slot for slot in slots if is_free(slot)]


def _is_number(text: str) -> bool:
    """Whether words are a number, perhaps with a unit, and no name (``12 km``, but not ``U2``)."""
    numbers = find_numbers(text)
    signs = list(text)
    for slot in numbers:
        signs[slot.start : slot.end] = " " * len(slot.text)
    return bool(numbers) and not any(sign.isupper() for sign in signs)


def _build_word_slot(token: TaggedToken) -> Slot:
    """Return the slot of one word."""
    return Slot(token.text, token.start, token.end, "word", 4, token.tag)


def _build_linked_slots(
    entities: Sequence[Entity], answer: str, tokens: Sequence[TaggedToken]
) -> Iterator[Slot]:
    """Yield the slots of linked entities, the first and longest of those that overlap."""
    end = 0
    for entity in sorted(entities, key=lambda entity: (entity.start, -entity.end)):
        text = answer[entity.start : entity.end]
        if entity.start < end or not text.strip():
            continue
        end = entity.end
        types = tuple(map(str, entity.details.get("types", ())))
        # The head of an English name is its last word, so its tag decides between singular and
        # plural.
        words_before_end = [token for token in tokens if token.end <= entity.end and token.is_word]
        tag = (
            words_before_end[-1].tag
            if words_before_end and words_before_end[-1].tag in _NAME_TAGS
            else "NNP"
        )
        yield Slot(text, entity.start, entity.end, "entity", 1, tag, types)


def _find_names(answer: str, tokens: Sequence[TaggedToken]) -> Iterator[Slot]:
    """Yield runs of names: words that are tagged as such, or have a capital inside a sentence."""
    runs: list[list[TaggedToken]] = []
    between: list[TaggedToken] | None = (
        None  # the tokens after the last name, while it may continue
    )
    for index, token in enumerate(tokens):
        if _is_name(tokens, index):
            # Two names with only white space between them are one ("Marie Curie").
            follows = between is not None and not answer[runs[-1][-1].end : token.start].strip()
            if between or follows:
                runs[-1] += [*(between or ()), token]
            else:
                runs.append([token])
            between = []
        # At most two connectors in a row, as in "Duke of the North".
        elif between is not None and token.text.lower() in _NAME_CONNECTORS and len(between) < 2:
            between.append(token)
        else:
            between = None
    for run in runs:
        start, end = run[0].start, run[-1].end
        tag = run[-1].tag if run[-1].tag in _NAME_TAGS else "NNP"
        yield Slot(answer[start:end], start, end, "entity", 1, tag)


def _is_name(tokens: Sequence[TaggedToken], index: int) -> bool:
    """Whether a token is a name or a part of one."""
    token = tokens[index]
    next_token = tokens[index + 1] if index + 1 < len(tokens) else None
    if (
        len(token.text) == 1
        and token.text.isupper()
        and next_token is not None
        and next_token.text == "."
    ):
        return True  # an initial
    if not token.is_word or token.is_functional or token.text[0].isdigit():
        return False
    if token.tag in _NAME_TAGS or not token.text[0].isupper():
        return token.tag in _NAME_TAGS
    # A capital at the beginning of a sentence proves nothing, unless the next word has one as well.
    starts_sentence = index == 0 or tokens[index - 1].text in ".!?:\"“'‘("
    return not starts_sentence or (
        next_token is not None and next_token.is_word and next_token.text[0].isupper()
    )


MAX_POOL_ANSWERS = 200
"""Answers to other questions that are returned for one sample."""


def find_same_kind_answers(sample: Sample, pool: Iterable[Sample], *, seed: int = 0) -> list[str]:
    """Return the answers to other questions that begin like the sample's question (``who``).

    Of each answer the most telling words are returned: the first slot of the highest level, or the
    whole answer if it has none. They are of the kind of the sample's own (a date for a date), those
    with a similar number of words first; at most 200, without repetitions, and none that says the
    same as the sample's answer or a gold answer.
    """
    own_slot = _find_telling_slot(sample.question, sample.response or "")
    question_word, length = find_question_word(sample.question), len(split_words(own_slot.text))
    golds = [alias for aliases in sample.answers for alias in aliases]
    rng = generator(seed, sample.id, "pool")
    ranked: list[tuple[int, float, str]] = []
    answers_used: set[str] = set()
    for other in pool:
        if other.question == sample.question or find_question_word(other.question) != question_word:
            continue
        result = _find_telling_slot(other.question, other.response or "")
        key = normalise(result.text)
        if result.kind != own_slot.kind or not key or key in answers_used:
            continue
        answers_used.add(key)
        if not is_same_answer(result.text, own_slot.text, golds):
            length_difference = abs(len(split_words(result.text)) - length)
            # Equal lengths are in random order, or the first samples of the file would always be
            # taken.
            ranked.append((length_difference, float(rng.random()), result.text))
    return [text for _, _, text in sorted(ranked)[:MAX_POOL_ANSWERS]]


def _find_telling_slot(question: str, answer: str) -> Slot:
    """Return the slot of an answer that tells most; the whole answer if nothing does."""
    # Each sample goes through all others, so the result is cached; long texts are not kept in
    # memory.
    short = len(question) + len(answer) < MAX_CACHED_CHARS
    return (
        _search_telling_slot(question, answer)
        if short
        else _search_telling_slot.__wrapped__(question, answer)
    )


@lru_cache(maxsize=8192)
def _search_telling_slot(question: str, answer: str) -> Slot:
    text = answer.strip().rstrip(".")
    return next(
        (slot for group in find_slots(question, answer) for slot in group if slot.level < 3),
        Slot(text, 0, len(text), "word", 4),
    )


def select_fitting(slot: Slot, pool: Sequence[str]) -> list[str]:
    """Return the answers of a pool of a slot's kind, with at most one word more or less."""
    length = len(split_words(slot.text))
    result = []
    for text in pool:
        first_slot = next((part for group in find_slots("", text) for part in group), None)
        # Only an answer that is one slot as a whole fits in the place of one.
        if first_slot is None or first_slot.text != text or first_slot.kind != slot.kind:
            continue
        # A noun for a noun, a plural for a plural.
        if slot.kind == "word" and tag_words(text)[0].tag != slot.tag:
            continue
        if abs(len(split_words(text)) - length) <= 1:
            result.append(text)
    return list(dict.fromkeys(result))
