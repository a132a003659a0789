"""The search for wrong answers: by groups of replaceable words, by sources, until there are enough.

1. The words of the answer are sorted into groups of slots, those that tell most first.
2. The chat model ``llm``, if it is a source, is asked once for whole wrong answers. Its replies are
   read back as one replaced slot, or as another short answer, and the run's entailer drops those
   that are right.
3. For each group each source is asked for substitutes, until there are enough.
4. A substitute is put into the answer so that case and article agree.

This is the priority-based substitution of Zheng et al. 2024 (section 2.1, Algorithm 1), where lower
levels fill up what higher ones lack, as the text of the paper says; duplicates are dropped in the
order of rank.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, zip_longest

from trustassay.core.capabilities import Entity, Models
from trustassay.core.event_loop import gather_all
from trustassay.core.prompts import load_prompt
from trustassay.errors import BackendError, UsageError
from trustassay.metrics.consistency import tokens
from trustassay.metrics.consistency.slots import (
    build_type_sets,
    build_whole_slot,
    find_kinds,
    find_slots,
    select_fitting,
    split_entity,
)
from trustassay.metrics.consistency.tokens import Distractor, Slot
from trustassay.statistics.resampling import generator
from trustassay.text.limits import MAX_SHORT_ANSWER_CHARACTERS, TextWork

EXTRA_TOKENS_PER_ANSWER = 30
"""Tokens allowed for a wrong answer, in addition to two for each word of the answer."""
MAX_GENERATED_ANSWERS = 10
"""Number of wrong answers that the generator is asked for; other sources fill up to this number."""
ENTAILMENT_THRESHOLD = 0.5
RANDOM_KINDS = ("date", "number")
"""Kinds of slots whose replacements are drawn at random near the original."""
MAX_REPLY_LINES = 100
# Signs that a model puts around an answer: quotes, asterisks of Markdown.
_WRAPPING_SIGNS = "\"“”'‘’*_` "
# An item of a list: "1. Rome", "2) Rome", "- Rome".
_LIST_ITEM = re.compile(r"(?:[0-9]{1,3}\s{0,9}[.):]|[-*•])(.+)")


async def ask_generator(
    question: str, answer: str, groups: Sequence[Sequence[Slot]], models: Models, n: int
) -> "Replacements":
    """Ask the generator for n wrong answers, and return which text replaces which slot.

    It is not asked if the most telling part is a date or a number: models then write 1913, 1914 and
    1915 for 1912, so that the smallest one is right.
    """
    prompt = load_prompt(__package__, "distractors")
    # A short answer is replaced as a whole, a longer one at the slot that tells most.
    part = build_whole_slot(answer, groups) or groups[0][0]
    if part.kind in RANDOM_KINDS:
        return []
    reply = await models.chat(
        prompt.fill(question=question, answer=answer, part=part.text, n=n),
        role="generator",
        # A replacement may be longer than the answer, and each item has a number and a line end.
        max_tokens=n * (EXTRA_TOKENS_PER_ANSWER + 2 * len(answer.split())),
        prompt=prompt.name,
    )
    return await TextWork(long=len(answer) > MAX_SHORT_ANSWER_CHARACTERS)(
        read_reply, reply.text, answer, groups
    )


def read_reply(text: str, answer: str, groups: Sequence[Sequence[Slot]]) -> "Replacements":
    """Return which text each line of a reply puts into which slot, the most telling slots first.

    A line may be the answer with one slot replaced, the replacement of the most telling slot, or a
    whole short answer; the replacement has to be of the same kind. Other lines are skipped.
    """
    whole_slot = build_whole_slot(answer, groups)
    # Levels 1 and 2 only, unless the answer has nothing better.
    best = (slot for group in groups for slot in group if slot.level < 3 or group is groups[0])
    slots = [] if whole_slot else [slot for slot in best if slot.kind not in RANDOM_KINDS]
    default_slot = whole_slot or groups[0][0]
    result: Replacements = []
    for reply_line in text.split("\n"):
        if len(result) < MAX_REPLY_LINES and (match := _LIST_ITEM.fullmatch(reply_line.strip())):
            line = match[1].strip().strip(_WRAPPING_SIGNS).rstrip(".")
            replaced_parts = [
                (slot, _text_between(line, answer[: slot.start], answer[slot.end :]))
                for slot in slots
            ]
            # The answer with one slot replaced, or else the line itself as a replacement.
            fitting_parts = (
                pair
                for pair in [*replaced_parts, (default_slot, line)]
                if _is_same_kind(answer, *pair)
            )
            result += islice(fitting_parts, 1)
    return sorted(result, key=lambda pair: pair[0].level)


def _text_between(line: str, before: str, after: str) -> str:
    """Return the text of a line between two parts of an answer; empty if it does not have these
    parts.

    A full stop that only one of them has is no difference, nor are capitals, nor ``an`` for ``a``.
    """
    after = after.rstrip(".")
    is_same = line[: len(before)].casefold() == before.casefold()
    if not is_same and (article := _ARTICLE.search(before)):
        # The other article of the pair: "a" for "an" and "an" for "a", in its case.
        other = article[1][0] if article[1][1:] else f"{article[1]}n"
        before = before[: article.start()] + other + article[2]
    end = max(len(line) - len(after), 0)
    around = line[: len(before)] + line[end:]
    # The first condition: both parts overlap, so the line is shorter than what surrounds the slot.
    if len(before) > end or around.casefold() != (before + after).casefold():
        return ""
    return line[len(before) : end].strip()


def _is_same_kind(answer: str, slot: Slot, replacement: str) -> bool:
    """Whether a replacement is of the kind of the words it replaces, about as long, and new."""
    # A line begins with a capital, which would make a name of a common noun.
    replacement = replacement.lower() if slot.text.islower() else replacement
    old_length = len(tokens.split_words(slot.text))
    new_length = len(tokens.split_words(replacement))
    is_repeated = tokens.contains_words(tokens.normalise(answer), tokens.normalise(replacement))
    if not replacement or is_repeated or abs(new_length - old_length) > max(1, old_length // 2):
        return False
    # The tags depend on the context, so the replacement is judged inside the answer.
    text = answer[: slot.start] + replacement + answer[slot.end :]
    kinds = find_kinds(text, slot.start, slot.start + len(replacement))
    return kinds == find_kinds(answer, slot.start, slot.end)


async def _is_equivalent(
    question: str, text: str, known_texts: Sequence[str], models: Models
) -> bool:
    """Whether a text and one of the known texts entail each other, each after the question.

    Always False in a run without an entailer.
    """
    if not models.names("entailer"):
        return False
    in_context, *known_in_context = (
        f"{question} {other}".strip() for other in (text, *known_texts)
    )
    # The second direction is only asked for those that entail in the first.
    forward = await gather_all(models.entail(in_context, other) for other in known_in_context)
    entailed = [
        other
        for other, entailment in zip(known_in_context, forward, strict=True)
        if entailment.entailment >= ENTAILMENT_THRESHOLD
    ]
    backward = await gather_all(models.entail(other, in_context) for other in entailed)
    return any(entailment.entailment >= ENTAILMENT_THRESHOLD for entailment in backward)


_NUMBER = re.compile(r"[0-9]+(?:,[0-9]{3})*")
_ARTICLE = re.compile(r"\b(an?)(\s+)$", re.IGNORECASE)
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
    article = _ARTICLE.search(before)
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


SOURCES = ("embedding", "pos")
"""The default sources of substitutes; neither uses a network."""
CANDIDATES_PER_WANTED = 2
"""Substitutes that are requested for each one that is wanted, since some are dropped."""
ENOUGH_DISTRACTORS = 6
"""Distractors after which no lower source or slot is asked: they give 20 different triples, twice
those of ten checks."""
SLOTS_PER_BLOCK = 8
"""Slots of a group for which a source is asked at once; the next block only if there are too
few."""
LLM = "llm"
DBPEDIA = "dbpedia"

Replacements = list[tuple[Slot, str]]
"""Slots with the text that could replace each."""


async def find_distractors(  # noqa: PLR0913 - what each sample brings
    question: str,
    answer: str,
    models: Models,
    *,
    aliases: Sequence[str] = (),
    pool: Sequence[str] = (),
    sources: Sequence[str] = SOURCES,
    limit: int = 40,
    seed: int = 0,
) -> list[Distractor]:
    """Return up to ``limit`` wrong answers, those whose replaced words tell most first.

    Those of the chat model ``llm`` come first; with it, other sources only fill up to ten. Among
    the others, dates and numbers come first within a level, then the sources other than
    ``embedding`` and ``pos`` in the given order, then ``pool``, then those two in the given order.
    None equals the answer or an alias after normalisation; one of ``llm`` is also dropped if it and
    the answer, an alias or an earlier distractor entail each other. A lower level is asked only if
    the higher ones gave too few.

    Args:
        question, answer: the sample's.
        models: asked for substitutes, and for entities if there is a linker.
        aliases: other right answers, as far as they are known.
        pool: answers of the same kind to other questions
            (:func:`~trustassay.metrics.consistency.slots.find_same_kind_answers`).
        sources: names of sources of ``models``; ``llm`` is the chat model in the role generator.
        limit: maximum number of distractors. seed: for what is drawn at random.

    Raises:
        BackendError: a source fails, or the run does not have it.
        ValueError: ``limit`` is not positive.
    """
    if limit < 1:
        raise UsageError(f"limit: expected 1 or more, got {limit}")
    _check_sources(models, sources)
    entities: Sequence[Entity] = await models.link(answer) if models.names("linker") else ()
    # Ten give 120 triples, enough for all checks; of forty, three quarters would be near words,
    # which make the choice as easy as before.
    limit = min(limit, MAX_GENERATED_ANSWERS) if LLM in sources else limit
    collector = _DistractorCollector(answer, aliases, limit)
    search = _SubstituteSearch(question, answer, models, pool, limit, seed)
    lowest = [source for source in sources if source in SOURCES]
    higher = [source for source in sources if source not in (*SOURCES, LLM)]
    higher += ["pool"] * bool(pool)
    groups = await TextWork(long=len(answer) > MAX_SHORT_ANSWER_CHARACTERS)(
        find_slots, question, answer, entities
    )
    if LLM in sources and groups:
        for candidate in await ask_generator(question, answer, groups, models, limit):
            # Also compared with the distractors so far: the same wrong answer in other words adds
            # nothing.
            right = [answer, *aliases, *(other.text for other in collector.found)]
            if collector.take(LLM, [candidate]) and await _is_equivalent(
                question, collector.found[-1].text, right, models
            ):
                # Taken first, since `take` puts the text together that the entailer has to read.
                collector.found.pop()
        if collector.enough:
            return collector.found
    # Strictly by rank: the next source, and the next group, only while there are too few.
    for group in groups:
        for source in (*RANDOM_KINDS, *higher, *lowest):
            # What is left tells less, and other options of it are easily seen through.
            if len(collector.found) >= ENOUGH_DISTRACTORS:
                return collector.found
            # A long answer has hundreds of slots; most are never needed.
            for start in range(0, len(group), SLOTS_PER_BLOCK):
                block = group[start : start + SLOTS_PER_BLOCK]
                collector.take(source, await search.candidates(source, block))
                if collector.enough:
                    return collector.found
    return collector.found


def _check_sources(models: Models, sources: Sequence[str]) -> None:
    """Raise :class:`BackendError` for a source that the run cannot ask."""
    source_names = models.names("distractors")
    for source in sources:
        if source == LLM and not models.names("generator"):
            raise BackendError(
                "the source llm asks a chat model: name one with --backend generator=URI"
            )
        if source != LLM and source not in source_names:
            available = ", ".join(source_names) or "none"
            raise BackendError(
                f"no source of distractors is called {source!r} here; known: {available}"
            )
        if source == DBPEDIA and not models.names("linker"):
            message = (
                "the source dbpedia needs the types of entities: name a linker, as "
                "--backend linker=spotlight"
            )
            raise BackendError(message)


@dataclass(frozen=True)
class _SubstituteSearch:
    """Asks the sources for replacements of the slots of one answer."""

    question: str
    answer: str
    models: Models
    pool: Sequence[str]
    """Answers to other questions."""
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
        look_up = (
            self._find_by_types if source == DBPEDIA else partial(self._find_by_source, source)
        )
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
        others = [tokens.find_year(other.text) for other in tokens.find_dates(self.answer)]
        return all(
            other is None or other == old or (other < new) == (other < old) for other in others
        )

    async def _find_by_source(self, source: str, slot: Slot) -> Replacements:
        """Return substitutes of a whole slot, then of each word of an entity of several words."""
        of_whole = await self._ask_source(source, slot)
        # A part of a name is replaced only where the whole has too few substitutes.
        if slot.kind != "entity" or len(of_whole) >= ENOUGH_DISTRACTORS:
            return of_whole
        of_each_word = await gather_all(
            self._ask_source(source, item) for item in split_entity(slot)
        )
        # The first of each word, then the second of each, and so on.
        interleaved = chain.from_iterable(zip_longest(*of_each_word))
        return [*of_whole, *(item for item in interleaved if item is not None)]

    async def _find_by_types(self, slot: Slot) -> Replacements:
        """Return entities that share all types of a slot, then those that share fewer."""
        result: Replacements = []
        of_base = [name for name in slot.types if ":" in name]  # others are guesses of the kind
        for types in build_type_sets(of_base):
            result += await self._ask_source(DBPEDIA, replace(slot, types=types))
            if len(result) >= CANDIDATES_PER_WANTED * self.limit:
                break
        return result

    async def _ask_source(self, source: str, slot: Slot) -> Replacements:
        """Return the substitutes that a source has for a slot."""
        k = CANDIDATES_PER_WANTED * self.limit
        result = await self.models.substitutes(
            slot.text, k=k, source=source, tag=slot.tag, types=slot.types
        )
        return [(slot, text) for text in result]


class _DistractorCollector:
    """Collects candidates in the order of rank, and drops the unusable ones."""

    def __init__(self, answer: str, aliases: Sequence[str], limit: int) -> None:
        self._answer, self._aliases, self._limit = answer, aliases, limit
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
            adapted = match_case(slot, replacement)
            new_words, old_words = tokens.normalise(adapted), tokens.normalise(slot.text)
            # A replacement that contains the old words, or is part of them, is often right as well
            # ("Paris, France" for "Paris").
            if (
                not new_words
                or tokens.contains_words(new_words, old_words)
                or tokens.contains_words(old_words, new_words)
            ):
                continue
            text = replace_slot(self._answer, slot, adapted)
            # The whole answer may equal an earlier one although the replacements differ.
            if tokens.normalise(text) in self._texts or tokens.is_same_answer(
                text, self._answer, self._aliases
            ):
                continue
            earlier = self._replacements_of_slot[slot.start, slot.end]
            # "black cat" after "cat" at the same slot would offer the same option twice.
            if any(
                tokens.contains_words(new_words, text_before)
                or tokens.contains_words(text_before, new_words)
                for text_before in earlier
            ):
                continue
            earlier.append(new_words)
            self._texts.add(tokens.normalise(text))
            self.found.append(Distractor(text, source, slot.level, slot.text, adapted))
        return len(self.found) > count_before
