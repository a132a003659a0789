"""Which words of a name are replaced, and by words of which group."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from trustassay.backends.name_kinds import GIVEN, PLACE, SURNAME, TITLES

__all__ = ["UNKNOWN", "Part", "parts_of"]

UNKNOWN = ""
"""The group of a name of no known kind."""

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_INITIAL = "initial"
_KEPT = frozenset("of the de la du van von der den del da di al el bin ibn y and".split()) | TITLES
_DIRECTIONS = frozenset("north south east west new upper lower great central".split())


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
    that are names of a known kind, while all others stay (``University of California``). Else
    every word, by its tag in small letters.
    """
    found = [one for one in _WORD.finditer(words) if one[0].lower() not in _KEPT]
    kinds = [_INITIAL if len(one[0]) == 1 else kind_of(one[0]) for one in found]
    common = [common_tag(one[0]) for one in found]
    if _is_person(kinds, common):
        groups = [_INITIAL if kind == _INITIAL else GIVEN for kind in kinds[:-1]] + [SURNAME]
    elif _is_place(kinds, [one[0] for one in found], common):
        return [Part(found[0].start(), found[-1].end(), PLACE)]
    elif any(kind not in (UNKNOWN, _INITIAL) for kind in kinds):
        groups = [kind or _INITIAL for kind in kinds]
    else:
        groups = common
    return [
        Part(one.start(), one.end(), group)
        for one, group in zip(found, groups, strict=True)
        if group != _INITIAL
    ]


def _is_person(kinds: Sequence[str], common: Sequence[str]) -> bool:
    """Whether a name of several words is a person's.

    One of them is a given name, an initial or a surname, no other is a place or a people, and none
    but the last is a common word only.
    """
    if len(kinds) < 2 or not {GIVEN, SURNAME, _INITIAL} & set(kinds):
        return False
    before = zip(kinds[:-1], common[:-1], strict=True)
    if any(kind == UNKNOWN and tag for kind, tag in before):
        return False
    if kinds[0] == GIVEN and len(kinds) == 2:  # also Jack London, and Irving Berlin
        return kinds[1] in (GIVEN, SURNAME, PLACE, UNKNOWN)
    return {GIVEN, SURNAME, _INITIAL, UNKNOWN}.issuperset(kinds)


def _is_place(kinds: Sequence[str], words: Sequence[str], common: Sequence[str]) -> bool:
    """Whether a name is that of a place, and holds no common word but a direction."""
    if not kinds or PLACE not in kinds or not {PLACE, UNKNOWN}.issuperset(kinds):
        return False
    return not any(
        tag and kind != PLACE and word.lower() not in _DIRECTIONS
        for tag, kind, word in zip(common, kinds, words, strict=True)
    )
