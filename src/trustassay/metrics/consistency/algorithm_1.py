"""Algorithm 1 of Zheng et al. 2024 (appendix A.5.1): which words are replaced, and by what.

1. The parts of the answer are sorted into levels: entities that are only in it, nouns and numbers
   that are only in it, then verbs and adjectives that are only in it with the entities, nouns and
   numbers that are in the question as well, then all others.
2. Only the first level that the answer has is used, even if it yields no candidate.
3. Entities are replaced by entities of the same DBpedia types; while there are too few candidates,
   then by embedding, then each word of those of several words by embedding, then by random words of
   the same part of speech. Other words are replaced by embedding, then by random words. Numbers and
   dates are replaced by those of the same form, of an embedding that has them or drawn near them.
4. Each distractor has one replacement. Those of all words are taken in turn.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from trustassay.core.capabilities import Models
from trustassay.core.event_loop import gather_all
from trustassay.metrics.consistency.slots import sort_parts, split_entity
from trustassay.metrics.consistency.substitution import (
    DBPEDIA,
    RANDOM_KINDS,
    DistractorCollector,
    Replacements,
    SubstituteSearch,
)
from trustassay.metrics.consistency.tokens import Distractor, Slot

_RANDOM_SOURCE = "pos"


async def find_by_algorithm_1(
    question: str,
    answer: str,
    models: Models,
    collector: DistractorCollector,
    *,
    sources: Sequence[str],
    limit: int,
    seed: int,
) -> list[Distractor]:
    """Return up to ``limit`` wrong answers, by Algorithm 1 with ``limit`` as its number n.

    Args:
        question, answer: the sample's.
        models: asked for substitutes, and for entities if there is a linker.
        collector: drops what says the same as the answer; without a limit of its own.
        sources: ``dbpedia`` and ``pos`` have their places in the algorithm, all others that of
            ``embedding``. Without ``dbpedia``, no entity is looked up by its types.
        limit: number of candidates that are enough. seed: for dates and numbers that are drawn.

    Raises:
        BackendError: a source fails; DBpedia that cannot be reached is not passed over.
    """
    entities = await models.link(answer) if models.names("linker") else ()
    parts = sort_parts(question, answer, entities)
    substitutes = SubstituteSearch(question, answer, models, (), collector.aliases, limit, seed)
    search = _CandidateSearch(substitutes, collector, sources, limit)
    # To the paper, a date is a number like any other.
    nouns = sorted([*parts.new_nouns, *parts.new_dates], key=lambda slot: slot.start)
    repeated_nouns = sorted(
        [*parts.repeated_nouns, *parts.repeated_dates], key=lambda slot: slot.start
    )
    if parts.new_entities:
        await search.find_for_entities(_set_level(1, parts.new_entities))
    elif nouns:
        await search.find_for_words(_set_level(2, nouns))
    elif parts.new_verbs or parts.repeated_entities or repeated_nouns:
        if parts.new_verbs:
            await search.find_for_words(_set_level(3, parts.new_verbs))
        if search.count < limit and parts.repeated_entities:
            await search.find_for_entities(_set_level(3, parts.repeated_entities))
        if search.count < limit and repeated_nouns:
            await search.find_for_words(_set_level(3, repeated_nouns))
    else:
        await search.find_for_words(_set_level(4, [*parts.others, *parts.functional]))
    return search.take_in_turn()


def _set_level(level: int, slots: Sequence[Slot]) -> list[Slot]:
    """Return the slots with another level."""
    return [replace(slot, level=level) for slot in slots]


class _CandidateSearch:
    """The two functions of Algorithm 1, and the dictionary D that both fill."""

    def __init__(
        self,
        search: SubstituteSearch,
        collector: DistractorCollector,
        sources: Sequence[str],
        limit: int,
    ) -> None:
        self._search, self._collector, self._limit = search, collector, limit
        self._near_sources = [s for s in sources if s not in (DBPEDIA, _RANDOM_SOURCE)]
        self._has_dbpedia, self._draws = DBPEDIA in sources, _RANDOM_SOURCE in sources
        self._distractors_of: dict[Slot, list[Distractor]] = {}
        """D: the candidates of each entity or word, as answers."""

    @property
    def count(self) -> int:
        """The number of candidates so far, without those that say the same as the answer."""
        return len(self._collector.found)

    def take_in_turn(self) -> list[Distractor]:
        """Return as many distractors as are enough: the first of each word, then the second."""
        rows = zip_longest(*self._distractors_of.values())
        return [item for row in rows for item in row if item is not None][: self._limit]

    async def find_for_entities(self, entities: Sequence[Slot]) -> None:
        """Fill D with candidates for entities (``Find_candidates_for_entities``)."""
        enough = self.count + self._limit
        if self._has_dbpedia:
            results = await gather_all(map(self._search.find_by_types, entities))
            for entity, candidates in zip(entities, results, strict=True):
                self._add(entity, DBPEDIA, candidates)
        if self.count < enough:
            await self._add_near(entities)
        # The words of entities of several words, except those that hold a name together.
        words_of = {entity: split_entity(entity) for entity in entities}
        if self.count < enough and any(words_of.values()):
            for entity, words in words_of.items():
                await self._add_near(words, entity)
        if self.count < enough:
            await self._add_drawn(entities)

    async def find_for_words(self, words: Sequence[Slot]) -> None:
        """Fill D with candidates for words and numbers (``Find_candidates_for_words``)."""
        enough = self.count + self._limit
        await self._add_near(words)
        if self.count < enough:
            await self._add_drawn(words)

    async def _add_near(self, slots: Sequence[Slot], key: Slot | None = None) -> None:
        """Add candidates by embedding, under ``key`` or each slot; numbers have near ones, too."""
        for source in self._near_sources:
            results = await gather_all(self._search.ask_source(source, slot) for slot in slots)
            for slot, candidates in zip(slots, results, strict=True):
                self._add(key or slot, source, candidates)
        # The paper's vectors have years and numbers in digits; the built-in ones have only words.
        for slot in slots:
            if slot.kind in RANDOM_KINDS:
                drawn = await self._search.candidates(slot.kind, [slot])
                self._add(key or slot, slot.kind, drawn)

    async def _add_drawn(self, slots: Sequence[Slot]) -> None:
        """Add random candidates of the same part of speech; numbers and dates have theirs."""
        for slot in slots if self._draws else ():
            if slot.kind not in RANDOM_KINDS:
                self._add(slot, _RANDOM_SOURCE, await self._search.ask_source(_RANDOM_SOURCE, slot))

    def _add(self, key: Slot, source: str, candidates: Replacements) -> None:
        """Add up to ``limit`` usable candidates to D."""
        of_key = self._distractors_of.setdefault(key, [])
        remaining = self._limit
        for slot, text in candidates:
            if remaining and (distractor := self._collector.add(source, slot, text)):
                of_key.append(distractor)
                remaining -= 1
