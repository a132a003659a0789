"""Marks the words in which a claim and the nearest sentence of a passage differ.

A reader who checks a verdict sees both texts, one below the other. The steps:

1. Numbers, dates and names of the claim that the sentence lacks are marked, and, as their
   counterparts, those of the sentence that the claim lacks.
2. Other words of the claim that the sentence has in no form are marked, and so are negations that
   only one of both has.
3. Both texts are aligned: words of the sentence at the place of a marked word are marked.

Of texts that share few words only details of the claim and other numbers are marked: all else
differs.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

from rapidfuzz.distance import Indel

from trustassay.judging.details import KnownDetails
from trustassay.text.cleaning import fold_text
from trustassay.text.quantities import read_values
from trustassay.text.words import (
    MIN_STEM_LETTERS,
    content_words,
    has_form,
    is_negation,
    plain_words,
)

MAX_WORDS_COMPARED = 400
"""Words of either text beyond which nothing is marked: the time grows with their product."""
MAX_ADDITIONAL_COUNTERPARTS = 1
"""Words at a place of marked words, in addition to as many as are marked, that are still their
counterparts; more are another phrase."""
MIN_SHARED = 0.5
"""Share of the claim's content words that the sentence must have for single words to be marked."""

Difference = Literal["same", "other", "absent"]

# Scripts without spaces are compared letter by letter: Thai, kana, Chinese characters.
_WORD = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]|[^\W_]+(?:['’.,][^\W_]+)*")


class ComparedPiece(NamedTuple):
    """A stretch of a claim or of a sentence."""

    text: str
    """Its text; the pieces of a text add up to it."""
    difference: Difference
    """``other``: the other text has something else; ``absent``: no passage has it."""


class Comparison(NamedTuple):
    """A claim and a sentence of a passage, with the words in which they differ."""

    claim: Sequence[ComparedPiece]
    """The claim in pieces."""
    sentence: Sequence[ComparedPiece]
    """The sentence in pieces."""
    shared: float
    """The share of the claim's content words that the sentence has, 0 to 1."""

    @property
    def is_near(self) -> bool:
        """Whether the texts share so many words that each one that differs is marked."""
        return self.shared >= MIN_SHARED

    @property
    def differs(self) -> bool:
        """Whether any word is marked."""
        return any(piece.difference != "same" for piece in (*self.claim, *self.sentence))


class _TextWord(NamedTuple):
    start: int
    end: int
    forms: Sequence[str]
    """The stems of its content words; none for a function word or a negation."""
    key: str
    """Equal for the same words of both texts."""
    negates: bool


class _FlaggedText:
    """A text with one flag for each character that differs."""

    def __init__(self, text: str) -> None:
        self.text, self.flags = text, bytearray(len(text))

    @cached_property
    def words(self) -> list[_TextWord]:
        """The words of the text."""
        return list(_read_words(self.text))

    @cached_property
    def stems(self) -> list[str]:
        """The stems of its content words, sorted."""
        return sorted({form for word in self.words for form in word.forms})

    def flag(self, start: int, end: int) -> None:
        self.flags[start:end] = b"\1" * (end - start)

    def flag_words(self, words: Iterable[_TextWord]) -> None:
        for word in words:
            self.flag(word.start, word.end)

    def flag_texts(self, parts: Iterable[str]) -> None:
        for part in filter(None, parts):
            for match in re.finditer(rf"(?<!\w){re.escape(part)}(?!\w)", self.text):
                self.flag(*match.span())


def compare_claim(
    claim: str, sentence: str, title: str = "", absent: Iterable[str] = ()
) -> Comparison:
    """Return a claim and a sentence of a passage, both folded, with the words in which they differ.

    Args:
        claim: the claim as it was judged.
        sentence: the sentence of the passage.
        title: the title of the passage; its words may complete the sentence.
        absent: words of the claim that no passage has, as written.
    """
    ours, theirs = _FlaggedText(fold_text(claim)), _FlaggedText(fold_text(sentence))
    no_passage = _FlaggedText(ours.text)
    no_passage.flag_texts(absent)
    shared = 1.0
    if max(len(ours.words), len(theirs.words)) <= MAX_WORDS_COMPARED:
        lacking, shared = _find_lacking(ours, theirs, _FlaggedText(fold_text(title)))
        _flag_details(ours, theirs, fold_text(title), with_names=shared >= MIN_SHARED)
        if shared >= MIN_SHARED:
            ours.flag_words(lacking)
            _flag_negations(ours, theirs)
            _flag_counterparts(ours, theirs)
    nothing = bytearray(len(theirs.text))
    return Comparison(
        list(_cut_pieces(ours.text, ours.flags, no_passage.flags)),
        list(_cut_pieces(theirs.text, theirs.flags, nothing)),
        shared,
    )


def _read_words(text: str) -> Iterator[_TextWord]:
    for match in _WORD.finditer(text):
        plain, forms = list(plain_words(match[0])), content_words(match[0])
        negates = any(map(is_negation, plain))
        yield _TextWord(*match.span(), forms, " ".join(forms or plain), negates)


def _find_lacking(claim: _FlaggedText, *others: _FlaggedText) -> tuple[list[_TextWord], float]:
    """Return the words of a claim that no other text has, and the share of those that one has."""
    content = [word for word in claim.words if word.forms]
    lacking = [word for word in content if all(_is_lacking(word, text.stems) for text in others)]
    # Words of a number, date or time are compared by value: "3 pm" is 15:00.
    values = {at for value in read_values(claim.text) for at in range(value.start, value.end)}
    plain = [word for word in lacking if word.start not in values]
    return plain, 1.0 - len(lacking) / max(1, len(content))


def _is_lacking(word: _TextWord, stems: Sequence[str]) -> bool:
    """Whether no form of a content word is among the sorted stems of a text."""
    return bool(word.forms) and not any(_has_form_of(form, stems) for form in word.forms)


def _has_form_of(form: str, stems: Sequence[str]) -> bool:
    """Whether sorted stems have a stem, one that begins with it, or its beginning."""
    if not form.isalpha():
        place = bisect_left(stems, form)
        return stems[place : place + 1] == [form]
    # A longer form is found by its beginning; a shorter one by each beginning of this form.
    return has_form(stems, form) or any(
        form[:length] in stems for length in range(MIN_STEM_LETTERS, len(form))
    )


def _flag_details(
    ours: _FlaggedText, theirs: _FlaggedText, title: str, *, with_names: bool
) -> None:
    """Flag details of the claim that the sentence lacks, and their counterparts of the same kind.

    Details of the sentence are no counterparts where the claim has no other detail of their kind.
    """
    in_sentence = KnownDetails([theirs.text], [title], "")
    in_claim = KnownDetails([ours.text], [], "")
    if values := in_sentence.find_missing_values(ours.text):
        ours.flag_texts(values)
        theirs.flag_texts(in_claim.find_missing_values(theirs.text))
    if names := in_sentence.find_missing_names(ours.text):
        ours.flag_texts(names)
        if with_names:
            theirs.flag_texts(in_claim.find_missing_names(theirs.text))


def _flag_negations(ours: _FlaggedText, theirs: _FlaggedText) -> None:
    negations = [[word for word in text.words if word.negates] for text in (ours, theirs)]
    # Two negations are none: "It is not true that it never rains".
    if (len(negations[0]) - len(negations[1])) % 2:
        ours.flag_words(negations[0])
        theirs.flag_words(negations[1])


def _flag_counterparts(ours: _FlaggedText, theirs: _FlaggedText) -> None:
    """Flag words of the sentence that stand where the claim has a flagged word."""
    keys = [[word.key for word in text.words] for text in (ours, theirs)]
    # Removed and new words are collected up to the next equal word: they stand at one place.
    removed: list[_TextWord] = []
    new: list[_TextWord] = []
    for step in (*Indel.opcodes(*keys), None):
        if step is not None and step.tag != "equal":
            removed += ours.words[step.src_start : step.src_end]
            new += theirs.words[step.dest_start : step.dest_end]
            continue
        counterparts = [word for word in new if _is_lacking(word, ours.stems)]
        marked = sum(ours.flags[word.start] for word in removed)
        if marked and len(counterparts) <= marked + MAX_ADDITIONAL_COUNTERPARTS:
            theirs.flag_words(counterparts)
        removed, new = [], []


def _cut_pieces(text: str, flags: bytearray, absent: bytearray) -> Iterator[ComparedPiece]:
    """Yield a text in pieces of one kind; the space between two marked words is marked, too."""
    kinds: list[Difference] = [
        "absent" if is_absent else "other" if is_other else "same"
        for is_other, is_absent in zip(flags, absent, strict=True)
    ]
    for gap in re.finditer(r"(?<=\w)\s+(?=\w)", text):
        if kinds[gap.start() - 1] == kinds[gap.end()]:
            kinds[gap.start() : gap.end()] = [kinds[gap.end()]] * len(gap[0])
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or kinds[end] != kinds[start]:
            yield ComparedPiece(text[start:end], kinds[start])
            start = end
