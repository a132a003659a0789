"""From a judge's reply to the level that it names: a total parser, which never guesses.

Every text gives a level, or says which of three faults it has: no level is named, several are, or
what is named is outside of the scale. Digits are never joined or taken out of a longer number. How
a value is told from other numbers and words: :mod:`trustassay.text.replies`.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from typing import Any, Literal, NamedTuple

from trustassay.metrics.judge.options import Rubric
from trustassay.text.patterns import read_patterns
from trustassay.text.replies import ELSEWHERE, LONGEST, OFF, Prose, Value, plain

Fault = Literal["none", "several", "outside"]
"""No level is named; several are; a number or a word that is no level."""
OBJECTS = 20
"""JSON objects of a reply that are looked at."""
SHOWN = 80
"""Characters of a value of JSON that are read."""


class Reading(NamedTuple):
    """What a reply says: the label of a level, or the fault that keeps it from saying one."""

    label: str | None
    fault: Fault | None
    reason: str = ""


def read_reply(text: str, rubric: Rubric) -> Reading:
    """Return what a reply says; never raises, whatever the text."""
    text, reason = _without_json(text)
    if not reason and (match := _REASON.search(text)):
        reason = _SCORE_LINE.split(text[match.end() :], maxsplit=1)[0].strip()
    result = _reader(rubric).read(plain(text))
    if len(result) != 1:
        return Reading(None, "several" if result else "none", reason)
    label = next(iter(result))
    return Reading(label, None, reason) if label else Reading(None, "outside", reason)


# Numbers ----------------------------------------------------------------------------------------

_WORDS = "zero one two three four five six seven eight nine ten".split()
_P = read_patterns("replies.toml", __package__)
_NUMBER = re.compile(_P["number"], re.IGNORECASE)
_OFF = re.compile(_P["off"], re.IGNORECASE)
_UNIT = re.compile(_P["unit"], re.IGNORECASE)
_OF_WHICH = re.compile(_P["of_which"], re.IGNORECASE)
_SCALE = re.compile(_P["scale"], re.IGNORECASE)


class _Levels(Prose):
    """The words and the numbers of one rubric."""

    def __init__(self, rubric: Rubric) -> None:
        super().__init__(
            {word: level.label for level in rubric.levels for word in level.words},
            {rubric.label, rubric.name},
            rf"[-−+]?\d|{_P['words']}" if rubric.numeric else r"(?!)",
        )
        self._offer = rubric.choices
        self._values: Mapping[float, str] = (
            {level.value: level.label for level in rubric.levels} if rubric.numeric else {}
        )

    def read(self, text: str) -> frozenset[str]:
        """Return the labels that a text gives, without the prompt's own line and named scales."""
        text = "\n".join(line for line in text.split("\n") if self._offer not in line)
        if self._values:
            text = _SCALE.sub(lambda match: " " if self._on(match) else ELSEWHERE, text)
        return super().read(text)

    def single(self, text: str, start: int) -> Value | None:
        """Return the level that begins at a place; a number with the scale that it is on."""
        named = super().single(text, start)
        match = None if named or not self._values else _NUMBER.match(text, start)
        if match is None:
            return named
        end = match.end()
        label = self._values.get(_number(match), OFF)
        if off := _OFF.match(text, end):
            return Value(frozenset({OFF}), off.end())
        if unit := _UNIT.match(text, end):
            end = unit.end()
        if which := _OF_WHICH.match(text, end):
            label = label if self._on(which) else OFF
            end = which.end()
            if unit := _UNIT.match(text, end):
                end = unit.end()
        return Value(frozenset({label}), end)

    def _on(self, scale: re.Match[str]) -> bool:
        """Whether a scale that a text names ends where the rubric's does."""
        top = next((group.lower() for group in scale.groups() if group), None)
        number = _WORDS.index(top) if top in _WORDS else top
        return number is None or float(number) == max(self._values)


def _number(match: re.Match[str]) -> float:
    sign, digits, word = match.groups()
    if word:
        return float(_WORDS.index(word.lower()))
    if re.fullmatch(r"\d{1,3}[.,]\d{3}", digits):  # a thousand in some languages
        return math.inf
    return (-1.0 if sign in ("-", "−", "–") else 1.0) * float(digits.replace(",", "."))


_reader = cache(_Levels)


# JSON -------------------------------------------------------------------------------------------

_TOPS = re.compile(_P["tops"], re.IGNORECASE)
_REASON = re.compile(_P["reason"], re.IGNORECASE)
_SCORE_LINE = re.compile(_P["score_line"], re.IGNORECASE)
_OPENING = re.compile(r"```\w{0,10}\s{0,9}$")
_Object = tuple[tuple[str, Any], ...]
"""Keys and values in order, as a key may come twice; lists of JSON stay lists."""
_DECODER = json.JSONDecoder(
    object_pairs_hook=tuple, parse_int=str, parse_float=str, parse_constant=str
)


def _without_json(text: str) -> tuple[str, str]:
    """Return a reply with its JSON objects as lines of key and value, and the reason in them."""
    reason, start = "", 0
    for _ in range(OBJECTS if len(text) <= LONGEST else 0):
        if (start := text.find("{", start)) < 0:
            break
        try:
            content, end = _DECODER.raw_decode(text, start)
            lines = list(_lines(content))
        except (ValueError, RecursionError):
            start += 1
            continue
        reason = reason or next((value for key, value in lines if _is_reason(key)), "")
        message = "\n".join(f"{key}: {value}" for key, value in lines if not _is_reason(key))
        before = _OPENING.sub("", text[:start])
        after = text[end:]
        if len(before) < start:
            after = after.lstrip().removeprefix("```")
        text = f"{before}\n{message}\n{after}"
        start = len(before) + len(message) + 2
    return text, reason


def _lines(content: _Object, within: str = "") -> Iterator[tuple[str, str]]:
    """Yield keys, each behind those that it is within, and values with the scale beside them."""
    pairs = [(re.sub(r"[\W_]+", " ", key).strip(), value) for key, value in content]
    tops = [re.findall(r"\d+", str(value))[-1:] for key, value in pairs if _TOPS.fullmatch(key)]
    scale = "".join(f" (max {top})" for top in chain(*tops[:1]))
    for name, value in pairs:
        key = within if name in ("value", "number") else f"{within}: {name}".removeprefix(": ")
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, tuple):
                yield from _lines(one, key)
            elif _is_reason(name):
                yield name, str(one).strip()
            elif isinstance(one, str | bool) and not _TOPS.fullmatch(name):
                yield key, " ".join(str(one).split())[:SHOWN] + scale


def _is_reason(key: str) -> bool:
    return key.lower().startswith(("reason", "expl", "ration", "justif"))
