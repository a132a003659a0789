"""Substitutes for the slots of an answer, and the wrong answers that they make of it.

1. :class:`SubstituteSearch` asks the sources for substitutes.
2. :func:`replace_slot` puts one into the answer so that case and article agree.
3. :class:`DistractorCollector` keeps what says something else than the answer, by rank.
"""

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, zip_longest

from trustassay.core.capabilities import Models
from trustassay.core.event_loop import gather_all
from trustassay.metrics.consistency import tokens
from trustassay.metrics.consistency.slots import build_type_sets, select_fitting, split_entity
from trustassay.metrics.consistency.tokens import Distractor, Slot
from trustassay.statistics.resampling import generator

RANDOM_KINDS = ("date", "number")
"""Kinds of slots whose replacements are drawn at random near the original."""
CANDIDATES_PER_WANTED = 2
"""Substitutes that are requested for each one that is wanted, since some are dropped."""
ENOUGH_DISTRACTORS = 6
"""Distractors after which no lower source or slot is asked: they give 20 different triples, twice
those of ten checks."""
DBPEDIA = "dbpedia"

Replacements = list[tuple[Slot, str]]
"""Slots with the text that could replace each."""

_NUMBER = re.compile(r"[0-9]+(?:,[0-9]{3})*")
ARTICLE = re.compile(r"\b(an?)(\s+)$", re.IGNORECASE)
# "the" at the end of a text, with the space after it.
_THE = re.compile(r"\bthe\s+$", re.IGNORECASE)
_WORD = re.compile(r"\s+(\w+)")
_SENTENCE_START = re.compile(r"(?:^|[.!?:\"“'‘(\n])\s*$")
"""Matches what comes before the first word of a sentence."""
# "an hour", "an honest man" begin with a silent h; "a university", "a European", "a one-way street"
# begin with a vowel that is spoken as a consonant, but "an uninvited guest" and "an unimportant"
# not.
_VOWEL_SOUND = re.compile(r"[aeiou]|hour|honest|honou?r|heir", re.IGNORECASE)
_CONSONANT_SOUND = re.compile(r"uni(?!n|m)|us[aeiu]|eu|one\b|once\b|ut[ei]", re.IGNORECASE)


def replace_slot(answer: str, slot: Slot, replacement: str) -> str:
    """Return the answer with the words of the slot replaced; ``a`` or ``an`` before them agrees.

    A capital within a sentence is no article (``Vitamin A deficiency``). A word next to the slot is
    not repeated (``the The Beatles``), and a name of one word in place of several loses ``the``
    (``The United States``, ``France``).
    """
    before, after = answer[: slot.start], answer[slot.end :]
    if slot.kind == "entity" and " " in slot.text and " " not in replacement:
        before = _THE.sub("", before)
    replacement = _drop_repeats(replacement, before, after)
    article = ARTICLE.search(before)
    # "A" with a capital is an article at the beginning of a sentence only.
    if article and (article[1].islower() or _SENTENCE_START.search(before[: article.start()])):
        new_article = "an" if _starts_with_vowel_sound(replacement) else "a"
        if article[1][0].isupper():
            new_article = new_article.capitalize()
        before = before[: article.start()] + new_article + article[2]
    return before + replacement + after


def _drop_repeats(replacement: str, before: str, after: str) -> str:
    """Return a substitute without a first or last word that the text next to it already has."""
    word_before, word_after = before.split()[-1:], _WORD.match(after)
    first_word, _, remainder = replacement.partition(" ")
    if remainder and word_before and first_word.casefold() == word_before[0].casefold():
        replacement = remainder
    beginning, _, last_word = replacement.rpartition(" ")
    if beginning and word_after and last_word.casefold() == word_after[1].casefold():
        return beginning
    return replacement


def match_case(slot: Slot, replacement: str) -> str:
    """Return a substitute in the case of the words that it replaces.

    All small if those are; with a capital if they begin with one.
    """
    if slot.text.islower():
        return replacement.lower()
    if slot.text[:1].isupper() and replacement[:1].islower():
        # Not capitalize(), which would make small letters of the rest ("van Gogh").
        return replacement[:1].upper() + replacement[1:]
    return replacement


def _starts_with_vowel_sound(text: str) -> bool:
    """Whether words begin with a vowel when spoken; of numbers these are eight, eleven and
    eighteen."""
    if not (number := _NUMBER.match(text)):
        return bool(_VOWEL_SOUND.match(text)) and not _CONSONANT_SOUND.match(text)
    digits = number[0].replace(",", "")
    leading_digits = digits[: len(digits) % 3 or 3]  # 11 of 11,000
    hundreds = digits[:2] if len(number[0]) == 4 else ""  # 1888 is eighteen hundred and more
    return leading_digits[0] == "8" or leading_digits in ("11", "18") or hundreds in ("11", "18")


@dataclass(frozen=True)
class SubstituteSearch:
    """Asks the sources for replacements of the slots of one answer."""

    question: str
    answer: str
    models: Models
    pool: Sequence[str]
    """Answers to other questions."""
    aliases: Sequence[str]
    """Right answers to the question."""
    limit: int
    """Number of distractors that are wanted."""
    seed: int
    """For what is drawn at random."""

    async def candidates(self, source: str, group: Sequence[Slot]) -> Replacements:
        """Return the replacements that a source has for the slots of a group, in the order of
        slots."""
        if source in (*RANDOM_KINDS, "pool"):
            return [(slot, text) for slot in group for text in self._draw_or_pick(source, slot)]
        slots = [slot for slot in group if slot.kind in ("entity", "word")]
        look_up = self.find_by_types if source == DBPEDIA else partial(self._find_by_source, source)
        return list(chain.from_iterable(await gather_all(map(look_up, slots))))

    def _draw_or_pick(self, source: str, slot: Slot) -> list[str]:
        """Return replacements that need no model: neighbours of dates and numbers, or answers of
        the pool."""
        if source == "pool":
            return select_fitting(slot, self.pool)
        # A stream of its own for each slot: the draw depends on nothing that was asked before.
        rng = generator(self.seed, self.question, self.answer, slot.text, source)
        neighbours = (
            tokens.draw_date_neighbours if source == "date" else tokens.draw_number_neighbours
        )
        if source != slot.kind:
            return []
        drawn = neighbours(slot.text, CANDIDATES_PER_WANTED * self.limit, rng)
        return [text for text in drawn if self._keeps_order(slot, text)]

    def _keeps_order(self, slot: Slot, text: str) -> bool:
        """Whether a date stays before or after each other date of the answer, as it was.

        An answer that ends before it begins is seen through without knowledge.
        """
        old, new = tokens.find_year(slot.text), tokens.find_year(text)
        if slot.kind != "date" or old is None or new is None:
            return True
        years = {tokens.find_year(other.text) for other in tokens.find_dates(self.answer)}
        return all(
            other != new and (other < new) == (other < old)
            for other in years
            if other is not None and other != old
        )

    async def _find_by_source(self, source: str, slot: Slot) -> Replacements:
        """Return substitutes of a whole slot, then of each word of an entity of several words."""
        of_whole = await self.ask_source(source, slot)
        # A part of a name is replaced only where the whole has too few substitutes.
        if slot.kind != "entity" or len(of_whole) >= ENOUGH_DISTRACTORS:
            return of_whole
        of_each_word = await gather_all(
            self.ask_source(source, item) for item in split_entity(slot)
        )
        # The first of each word, then the second of each, and so on.
        interleaved = chain.from_iterable(zip_longest(*of_each_word))
        return [*of_whole, *(item for item in interleaved if item is not None)]

    async def find_by_types(self, slot: Slot) -> Replacements:
        """Return entities that share all types of a slot, then those that share fewer."""
        result: Replacements = []
        # Sets of fewer types repeat the entities of larger ones, and all have the slot's own: only
        # those that make a new distractor count.
        distractors = DistractorCollector(self.answer, self.aliases)
        of_base = [name for name in slot.types if ":" in name]  # others are guesses of the kind
        for types in build_type_sets(of_base):
            candidates = await self.ask_source(DBPEDIA, replace(slot, types=types))
            result += [one for one in candidates if distractors.add(DBPEDIA, *one)]
            if len(result) >= self.limit:
                break
        return result

    async def ask_source(self, source: str, slot: Slot) -> Replacements:
        """Return the substitutes that a source has for a slot, those of a number in its form."""
        k = CANDIDATES_PER_WANTED * self.limit
        result = await self.models.substitutes(
            slot.text, k=k, source=source, tag=slot.tag, types=slot.types
        )
        return [(slot, text) for text in tokens.select_same_form(slot.text, result)]


class DistractorCollector:
    """Collects candidates in the order of rank, and drops the unusable ones."""

    def __init__(self, answer: str, aliases: Sequence[str], limit: float = math.inf) -> None:
        self._answer, self._limit = answer, limit
        self.aliases = aliases
        self._texts: set[str] = set()
        self._replacements_of_slot = defaultdict[tuple[int, int], list[str]](list)
        self.found: list[Distractor] = []

    @property
    def enough(self) -> bool:
        """Whether there are as many distractors as wanted."""
        return len(self.found) >= self._limit

    def take(self, source: str, candidates: Replacements) -> bool:
        """Add candidates of a source until there are enough; return whether any was added."""
        count_before = len(self.found)
        for slot, replacement in candidates:
            if self.enough:
                break
            self.add(source, slot, replacement)
        return len(self.found) > count_before

    def add(self, source: str, slot: Slot, replacement: str) -> Distractor | None:
        """Add one candidate and return it as a distractor; ``None`` if it is unusable."""
        adapted = match_case(slot, replacement)
        new_words, old_words = tokens.normalise(adapted), tokens.normalise(slot.text)
        # A replacement that contains the old words, or is part of them, is often right as well
        # ("Paris, France" for "Paris").
        if (
            not new_words
            or tokens.contains_words(new_words, old_words)
            or tokens.contains_words(old_words, new_words)
            or any(tokens.is_same_number(adapted, right) for right in (slot.text, *self.aliases))
        ):
            return None
        text = replace_slot(self._answer, slot, adapted)
        # The whole answer may equal an earlier one although the replacements differ.
        if tokens.normalise(text) in self._texts or tokens.is_same_answer(
            text, self._answer, self.aliases
        ):
            return None
        earlier = self._replacements_of_slot[slot.start, slot.end]
        # "black cat" after "cat" at the same slot would offer the same option twice.
        if any(
            tokens.contains_words(new_words, text_before)
            or tokens.contains_words(text_before, new_words)
            for text_before in earlier
        ):
            return None
        earlier.append(new_words)
        self._texts.add(tokens.normalise(text))
        distractor = Distractor(text, source, slot.level, slot.text, adapted)
        self.found.append(distractor)
        return distractor
