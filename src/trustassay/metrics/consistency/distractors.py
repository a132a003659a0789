"""The search for wrong answers: by groups of replaceable words and sources, until there are enough.

1. The words of the answer are sorted into groups of slots: first the part that answers the
   question, then those that tell most.
2. The chat model ``llm``, if it is a source, is asked once for whole wrong answers. Its replies are
   read back as one replaced slot, or as another short answer, and the run's entailer drops those
   that are right.
3. For each group each source is asked for substitutes, until there are enough.

This is the priority-based substitution of Zheng et al. 2024 (section 2.1), in which the question
decides what comes first, and lower levels fill up what higher ones lack. Their Algorithm 1 itself
is in :mod:`~trustassay.metrics.consistency.algorithm_1`.
"""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Literal

from trustassay.core.capabilities import Entity, Models
from trustassay.core.event_loop import gather_all
from trustassay.core.prompts import load_prompt
from trustassay.errors import BackendError, UsageError
from trustassay.metrics.consistency import tokens
from trustassay.metrics.consistency.algorithm_1 import find_by_algorithm_1
from trustassay.metrics.consistency.slots import build_whole_slot, find_kinds, find_slots
from trustassay.metrics.consistency.substitution import (
    ARTICLE,
    DBPEDIA,
    ENOUGH_DISTRACTORS,
    RANDOM_KINDS,
    DistractorCollector,
    Replacements,
    SubstituteSearch,
)
from trustassay.metrics.consistency.tokens import Distractor, Slot
from trustassay.text.limits import MAX_SHORT_ANSWER_CHARACTERS, TextWork

Algorithm = Literal["asked", "paper"]
"""How distractors are searched for: the part that the question asks for first, or Algorithm 1."""

EXTRA_TOKENS_PER_ANSWER = 30
"""Tokens allowed for a wrong answer, in addition to two for each word of the answer."""
MAX_GENERATED_ANSWERS = 10
"""Number of wrong answers that the generator is asked for; other sources fill up to this number."""
ENTAILMENT_THRESHOLD = 0.5
MAX_REPLY_LINES = 100
# Signs that a model puts around an answer: quotes, asterisks of Markdown.
_WRAPPING_SIGNS = "\"“”'‘’*_` "
# An item of a list: "1. Rome", "2) Rome", "- Rome".
_LIST_ITEM = re.compile(r"(?:[0-9]{1,3}\s{0,9}[.):]|[-*•])(.+)")


async def ask_generator(
    question: str, answer: str, groups: Sequence[Sequence[Slot]], models: Models, n: int
) -> Replacements:
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
    return await TextWork(len(answer), long=len(answer) > MAX_SHORT_ANSWER_CHARACTERS)(
        read_reply, reply.text, answer, groups
    )


def read_reply(text: str, answer: str, groups: Sequence[Sequence[Slot]]) -> Replacements:
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
    if not is_same and (article := ARTICLE.search(before)):
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


SOURCES = ("embedding", "pos")
"""The default sources of substitutes; neither uses a network."""
SLOTS_PER_BLOCK = 8
"""Slots of a group for which a source is asked at once; the next block only if there are too
few."""
LLM = "llm"


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
    algorithm: Algorithm = "asked",
) -> list[Distractor]:
    """Return up to ``limit`` wrong answers, those whose replaced words tell most first.

    Those of the chat model ``llm`` come first; with it, other sources only fill up to ten. For each
    group of slots the sources other than ``embedding`` and ``pos`` are asked in the given order,
    then ``pool``, then those two in the given order. With six distractors the search ends.
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
        algorithm: ``paper`` is Algorithm 1, which has neither ``pool`` nor ``llm``.

    Raises:
        BackendError: a source fails, or the run does not have it.
        ValueError: ``limit`` is not positive, or the algorithm does not have a source.
    """
    if limit < 1:
        raise UsageError(f"limit: expected 1 or more, got {limit}")
    _check_sources(models, sources)
    if algorithm == "paper":
        check_sources_of_paper([*sources, *["pool"] * bool(pool)])
        collector = DistractorCollector(answer, aliases)
        return await find_by_algorithm_1(
            question, answer, models, collector, sources=sources, limit=limit, seed=seed
        )
    entities: Sequence[Entity] = await models.link(answer) if models.names("linker") else ()
    # Ten give 120 triples, enough for all checks; of forty, three quarters would be near words,
    # which make the choice as easy as before.
    limit = min(limit, MAX_GENERATED_ANSWERS) if LLM in sources else limit
    collector = DistractorCollector(answer, aliases, limit)
    search = SubstituteSearch(question, answer, models, pool, aliases, limit, seed)
    lowest = [source for source in sources if source in SOURCES]
    higher = [source for source in sources if source not in (*SOURCES, LLM)]
    higher += ["pool"] * bool(pool)
    groups = await TextWork(len(answer), long=len(answer) > MAX_SHORT_ANSWER_CHARACTERS)(
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


def check_sources_of_paper(sources: Sequence[str]) -> None:
    """Raise :class:`UsageError` for a source that Algorithm 1 does not have."""
    if others := [source for source in sources if source in (LLM, "pool")]:
        raise UsageError(
            f"algorithm: paper has no source {others[0]}; leave it out, or use algorithm=asked"
        )


def _check_sources(models: Models, sources: Sequence[str]) -> None:
    """Raise :class:`BackendError` for a source that the run cannot ask."""
    source_names = models.names("distractors")
    for source in sources:
        if source == LLM and not models.names("generator"):
            raise BackendError(
                "the source llm asks a chat model; name one with --backend generator=URI"
            )
        if source != LLM and source not in source_names:
            available = ", ".join(source_names) or "none"
            raise BackendError(
                f"unknown source of distractors {source!r}; this run has: {available}"
            )
        if source == DBPEDIA and not models.names("linker"):
            message = (
                "the source dbpedia needs the types of entities; name a linker, for example "
                "--backend linker=spotlight"
            )
            raise BackendError(message)
