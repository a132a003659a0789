"""Parses the level that a judge's reply names. The parser is total, and never guesses.

Every text gives a level or one of three faults: it names no level, several, or one outside of the
scale. Digits are never joined, nor taken out of a longer number. :mod:`trustassay.text.replies` has
the rules that distinguish a value from other numbers and words.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from typing import Any, Literal, NamedTuple

from trustassay.metrics.judge.options import Rubric
from trustassay.text.replies import (
    MAX_REPLY_CHARACTERS,
    OFF_SCALE,
    OTHER_SCALE_MARK,
    ProseReader,
    ReplyValue,
    clean_reply,
)

Fault = Literal["none", "several", "outside"]
"""No level is named; several are; a number or a word that is no level."""
MAX_JSON_OBJECTS = 20
"""JSON objects of a reply that are read."""
MAX_VALUE_CHARACTERS = 80
"""Characters of a JSON value that are read."""


class LevelReading(NamedTuple):
    """The content of a reply: a level, or a fault."""

    label: str | None
    """The label of the level; ``None`` with a fault."""
    fault: Fault | None
    """Why the reply gives no level."""
    reason: str = ""
    """The reason that the judge gives."""


def read_reply(text: str, rubric: Rubric) -> LevelReading:
    """Return the level, or the fault, of a reply; never raises, whatever the text."""
    text, reason = _without_json(text)
    # "Reason: ..." up to a line "Score: ...", as some judges put the score last.
    if not reason and (match := _REASON.search(text)):
        reason = _SCORE_LINE.split(text[match.end() :], maxsplit=1)[0].strip()
    result = _reader_of(rubric).read(clean_reply(text))
    if len(result) != 1:
        return LevelReading(None, "several" if result else "none", reason)
    # OFF is an empty label: a value beside the scale.
    label = next(iter(result))
    return LevelReading(label, None, reason) if label else LevelReading(None, "outside", reason)


# Numbers ----------------------------------------------------------------------------------------

_WORDS = "zero one two three four five six seven eight nine ten".split()
# Of ASCII alone: without regard to case, the dotless i of "fıve" would match, too.
_NUMBER_WORD = r"(?a:zero|one|two|three|four|five|six|seven|eight|nine|ten)"
_NUMBER = re.compile(
    rf"(?<![\d.,])([-−–+]?)(\d+(?:[.,]\d+)?|[.,]\d+)(?![\w]|[.,:]\d)|({_NUMBER_WORD})\b(?![-\w])",
    re.IGNORECASE,
)
# Behind a number: it is no whole one, or a share.
_OFF = re.compile(
    r"\s*(?:%|(?:percent|prozent|процент\w*)\b|and a (?:half|quarter)|\d+\s*/\s*\d+(?!\d)"
    r"|\+(?!\d))|[-−](?!\s*[\w-])",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"\s*(?:stars?|points?|pts|marks|sternen?|punkten?|étoiles|puntos|estrellas|pontos|estrelas"
    r"|punti|stelle|punten|sterren|punkt(?:y|ów)|балл(?:а|ов)?|puan|点|分|점|نقاط)(?!\w)",
    re.IGNORECASE,
)
_TOP = rf"(\d+(?:\.\d+)?|{_NUMBER_WORD})(?!\w|%)"
# Behind a number: the highest of the scale that it is on.
_OF_WHICH = re.compile(
    r"\s*,?\s*[(\[]?\s*(?:/|\b(?:out of|of|in|von|sur|de|em|sobre|su|van|uit|na|z|из|من|über)\b)"
    rf"\s*(?:de\s|a possible\s|a maximum(?: of)?\s|max\w*\.?\s)?\s*{_TOP}(?:\s*[)\]])?",
    re.IGNORECASE,
)
_FROM_TO = rf"(?:\d+|{_NUMBER_WORD})\s*(?:[-–—~]|\.\.|to|and|bis|à|a|до|tot|do|al?|至|到)\s*{_TOP}"
# A scale that is named, before a value or behind it.
_SCALE = re.compile(
    r"(?:[,;]\s*)?(?:\b(?:on|using|from|auf)\s+)?(?:\b(?:an?|the|einer)\s)?\s*(?:"
    r"\b(?:scale|range|skala|échelle|escala|scala|schaal|шкал[аеы]|skali)\b\W*"
    rf"(?:(?:\w+\s+){{0,2}}?{_FROM_TO}|of {_TOP})|[(\[]\s*(?:from\s*)?{_FROM_TO}\s*[)\]]"
    rf"|\b{_TOP}[- ]points?\s+scale|\bmax(?:imum|\.)?(?:\s+\w+)?(?:\s+of|\s+is|:)?\s*{_TOP}"
    r"|\bmin(?:imum|\.)?(?:\s+\w+)?(?:\s+of|\s+is|:)?\s*\d+"
    rf"|[(\[]\s*(?:/|out of|of)\s*(?:max\w*\.?\s*)?{_TOP}\s*[)\]]|(?:满分|总分|滿分)\s*{_TOP}\s*分?"
    rf"|\b{_TOP}\s*(?:=|is|being)\s*(?:the\s+)?(?:best|highest|perfect)\b"
    rf"|\b{_TOP}\s*(?:点満点|点中|分制|üzerinden)中?)",
    re.IGNORECASE,
)


class _LevelReader(ProseReader):
    """The words and the numbers of one rubric."""

    def __init__(self, rubric: Rubric) -> None:
        super().__init__(
            {word: level.label for level in rubric.levels for word in level.words},
            {rubric.label, rubric.name},
            # (?!) matches nothing: without numeric levels, numbers are no values.
            rf"[-−+]?\d|{_NUMBER_WORD}" if rubric.numeric else r"(?!)",
        )
        self._offer = rubric.choices
        self._values: Mapping[float, str] = (
            {level.value: level.label for level in rubric.levels} if rubric.numeric else {}
        )

    def read(self, text: str) -> frozenset[str]:
        """Return the labels that a text gives, without the prompt's own line and named scales."""
        # Some judges repeat the list of levels from the prompt before they answer.
        text = "\n".join(line for line in text.split("\n") if self._offer not in line)
        if self._values:
            # "on a scale from 1 to 5" names no score. A scale with another end makes the value one
            # of elsewhere.
            text = _SCALE.sub(
                lambda match: " " if self._is_on_scale(match) else OTHER_SCALE_MARK, text
            )
        return super().read(text)

    def single_value_at(self, text: str, start: int) -> ReplyValue | None:
        """Return the level that begins at a place; a number with the scale that it is on."""
        word_value = super().single_value_at(text, start)
        match = None if word_value or not self._values else _NUMBER.match(text, start)
        if match is None:
            return word_value
        end = match.end()
        label = self._values.get(_read_number(match), OFF_SCALE)
        # "80 %", "4 and a half", "3+": no level of the scale.
        if off_match := _OFF.match(text, end):
            return ReplyValue(frozenset({OFF_SCALE}), off_match.end())
        if unit_match := _UNIT.match(text, end):
            end = unit_match.end()
        # "4 stars out of 5", "4/5 points": the unit may stand before or behind the scale.
        if scale_match := _OF_WHICH.match(text, end):
            label = label if self._is_on_scale(scale_match) else OFF_SCALE
            end = scale_match.end()
            if unit_match := _UNIT.match(text, end):
                end = unit_match.end()
        return ReplyValue(frozenset({label}), end)

    def _is_on_scale(self, scale: re.Match[str]) -> bool:
        """Whether a scale that a text names ends where the rubric's does."""
        # The pattern has an alternative, and a group, for each way to write the end of a scale.
        top = next((group.lower() for group in scale.groups() if group), None)
        number = _WORDS.index(top) if top in _WORDS else top
        return number is None or float(number) == max(self._values)


def _read_number(match: re.Match[str]) -> float:
    sign, digits, word = match.groups()
    if word:
        return float(_WORDS.index(word.lower()))
    if re.fullmatch(r"\d{1,3}[.,]\d{3}", digits):  # a thousand in some languages
        return math.inf
    return (-1.0 if sign in ("-", "−", "–") else 1.0) * float(digits.replace(",", "."))


_reader_of = cache(_LevelReader)


# JSON -------------------------------------------------------------------------------------------

# Keys of JSON: the highest level, or the scale.
_TOPS = re.compile(
    r"(?:(?:max\w*|scale|out of|of|range|total|possible|best)(?: (?:score|rating|points|max))?)",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:reason(?:ing)?|explanation|rationale|justification)\b\W{0,6}[:=]\W{0,3}", re.IGNORECASE
)
_SCORE_LINE = re.compile(
    r"\n[^\w\n]{0,6}(?:final |overall )?(?:score|rating|verdict|category)\b", re.IGNORECASE
)
# The start of a fenced block just before an object: "```json\n".
_OPENING = re.compile(r"```\w{0,10}\s{0,9}$")
_Object = tuple[tuple[str, Any], ...]
"""Keys and values in order, as a key may come twice; lists of JSON stay lists."""
_DECODER = json.JSONDecoder(
    # Numbers stay as written, so that 4.0 or 1e2 meet the same rules as in prose.
    object_pairs_hook=tuple,
    parse_int=str,
    parse_float=str,
    parse_constant=str,
)


def _without_json(text: str) -> tuple[str, str]:
    """Return a reply with its JSON objects as lines of key and value, and the reason in them."""
    reason, start = "", 0
    # raw_decode at each brace is quadratic in the worst case: long texts are read as prose.
    for _ in range(MAX_JSON_OBJECTS if len(text) <= MAX_REPLY_CHARACTERS else 0):
        if (start := text.find("{", start)) < 0:
            break
        try:
            content, end = _DECODER.raw_decode(text, start)
            lines = list(_flatten_json(content))
        except (ValueError, RecursionError):
            start += 1
            continue
        reason = reason or next((value for key, value in lines if _is_reason(key)), "")
        # "score: 4" is what the prose rules read.
        message = "\n".join(f"{key}: {value}" for key, value in lines if not _is_reason(key))
        before = _OPENING.sub("", text[:start])
        after = text[end:]
        if len(before) < start:
            after = after.lstrip().removeprefix("```")
        text = f"{before}\n{message}\n{after}"
        # Continue behind what was put in: the message and two line ends.
        start = len(before) + len(message) + 2
    return text, reason


def _flatten_json(content: _Object, outer_key: str = "") -> Iterator[tuple[str, str]]:
    """Yield pairs: keys with their outer keys, values with the scale of their object."""
    pairs = [(re.sub(r"[\W_]+", " ", key).strip(), value) for key, value in content]
    # {"score": 4, "max": 5} becomes "score: 4 (max 5)".
    tops = [re.findall(r"\d+", str(value))[-1:] for key, value in pairs if _TOPS.fullmatch(key)]
    scale = "".join(f" (max {top})" for top in chain(*tops[:1]))
    for own_key, value in pairs:
        # {"score": {"value": 4}}: the outer key says what it is.
        key = (
            outer_key
            if own_key in ("value", "number")
            else f"{outer_key}: {own_key}".removeprefix(": ")
        )
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, tuple):
                yield from _flatten_json(item, key)
            elif _is_reason(own_key):
                yield own_key, str(item).strip()
            elif isinstance(item, str | bool) and not _TOPS.fullmatch(own_key):
                yield key, " ".join(str(item).split())[:MAX_VALUE_CHARACTERS] + scale


def _is_reason(key: str) -> bool:
    return key.lower().startswith(("reason", "expl", "ration", "justif"))
