"""Which words of a name are replaced, and by words of which group."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from trustassay.backends.name_kinds import GIVEN, HALVES, PEOPLE, PLACE, SURNAME, TITLES

__all__ = ["UNKNOWN", "Part", "parts_of"]

UNKNOWN = ""
"""The group of a name of no known kind."""

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_INITIAL = "initial"
_KEPT = frozenset("of the de la du van von der den del da di al el bin ibn y and".split()) | TITLES
_BESIDE = frozenset(
    "north south east west new upper lower great central united states kingdom republic union "
    "saint city island islands".split()
)
"""Common words in the names of places."""
_TELLING = (GIVEN, SURNAME, PLACE, PEOPLE)


class Part(NamedTuple):
    """Characters ``words[start:end]`` of a name, and the group of what may replace them."""

    start: int
    end: int
    group: str


def parts_of(
    words: str, kind_of: Callable[[str], str], common_tag: Callable[[str], str]
) -> list[Part]:
    """Return the parts of a name of one or several words that are replaced together.

    A person: all given names and the surname. A place of names alone: the whole. Else the words
    that are names of a known kind, while all others stay (``University of California``), or that
    are known as no common word. Else every word, by its tag in small letters.
    """
    found = [one for one in _WORD.finditer(words) if one[0].lower() not in _KEPT]
    kinds = [_kind(one[0], kind_of) for one in found]
    common = [common_tag(one[0]) for one in found]
    if _is_person(kinds, common):
        groups = [_INITIAL if kind == _INITIAL else GIVEN for kind in kinds[:-1]] + [SURNAME]
    elif _is_place(kinds, [one[0] for one in found], common):
        return [Part(found[0].start(), found[-1].end(), PLACE)]
    elif any(kind in _TELLING for kind in kinds):  # the Supreme Court of Canada
        groups = [kind if kind in _TELLING else _INITIAL for kind in kinds]
    elif any(kind not in (UNKNOWN, _INITIAL) for kind in kinds):
        groups = [kind or _INITIAL for kind in kinds]
    else:  # Lake Tahoe keeps its lake, but of Black Sea both are replaced
        unknown = "" in common
        groups = [_INITIAL if tag and unknown else tag for tag in common]
    return [
        Part(one.start(), one.end(), group)
        for one, group in zip(found, groups, strict=True)
        if group != _INITIAL
    ]


def _kind(word: str, kind_of: Callable[[str], str]) -> str:
    if len(word) == 1:
        return _INITIAL
    return PLACE if word.lower() in HALVES else kind_of(word)


def _is_person(kinds: Sequence[str], common: Sequence[str]) -> bool:
    """Whether a name of several words is a person's.

    One of them is a given name, an initial or a surname, no other is a place or a people, and none
    but the last is a common word only.
    """
    if len(kinds) < 2 or not {GIVEN, SURNAME, _INITIAL} & set(kinds):
        return False
    if kinds[0] == GIVEN and len(kinds) == 2:  # also Jack London, and Irving Berlin
        return True
    before = zip(kinds[:-1], common[:-1], strict=True)
    if any(kind == UNKNOWN and tag for kind, tag in before):
        return False
    return {GIVEN, SURNAME, _INITIAL, UNKNOWN}.issuperset(kinds)


def _is_place(kinds: Sequence[str], words: Sequence[str], common: Sequence[str]) -> bool:
    """Whether a name is that of a place, and holds no common word but a direction."""
    own = [
        (kind, tag)
        for kind, word, tag in zip(kinds, words, common, strict=True)
        if word.lower() not in _BESIDE
    ]
    if not own:
        return len(words) > 1
    return PLACE in kinds and all(kind == PLACE or not (kind or tag) for kind, tag in own)
