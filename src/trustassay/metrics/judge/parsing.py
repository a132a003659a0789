"""From a judge's reply to the level that it names: a total parser, which never guesses.

Every text gives a level, or says which of three faults it has: no level is named, several are, or
what is named is outside of the scale. A number counts as a score only where it stands as one:
behind a word such as "score", at the beginning, on a last line of its own, or where the judge says
that it gives it. Digits are never joined or taken out of a longer number.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

from trustassay.metrics.judge.rubric import Rubric

__all__ = ["Fault", "Reading", "read_reply"]

Fault = Literal["none", "several", "outside"]
"""No level is named; several are; a number or a word that is no level."""


class Reading(NamedTuple):
    """What a reply says: the label of a level, or the fault that keeps it from saying one."""

    label: str | None
    fault: Fault | None
    reason: str = ""


class _Value(NamedTuple):
    """A value at a place of a text: its labels (none: outside of the scale) and where it ends."""

    labels: frozenset[str]
    end: int


def read_reply(text: str, rubric: Rubric) -> Reading:
    """Return what a reply says; never raises, whatever the text."""
    grammar = _grammar(rubric)
    plain = _plain(text)
    found = grammar.scores(plain)
    reason = _reason(text)
    labels = {label for value in found for label in value.labels}
    outside = any(not value.labels for value in found)
    if not found:
        return Reading(None, "none", reason)
    if len(labels) > 1 or (labels and outside):
        return Reading(None, "several", reason)
    return Reading(labels.pop(), None, reason) if labels else Reading(None, "outside", reason)


# Words that stand before a score ----------------------------------------------------------------

_WORDS = "zero one two three four five six seven eight nine ten".split()
_ONE_OF_WORDS = f"(?a:{'|'.join(_WORDS)})"
"""Of ASCII alone: without regard to case, the dotless i of "fıve" would match, too."""
_BEFORE = r"(?:final|overall|total|my|the|our|truthfulness|informativeness)[ \t]+"
_OWN = "score|rating|grade|verdict|category|judge?ment|evaluation"
_PAREN = r"(?:[ \t]*\([^()\n]{0,40}\))?"
_LINK = (
    r"(?:\s*(?:=>|-+>|[:=|→])\s*|\s+[-–—]\s+|\s+(?:is|was|are|of|at|would be|should be|will be|"
    r"to be|equals|remains)(?:\s+for (?:this|the) (?:answer|response)(?: is)?)?\s+)+"
)
_ABOUT = (
    r"(?:(?:a|an|about|around|approximately|roughly|exactly|clearly|definitely|solid|strong|"
    r"level)\s+|(?:[≈#]|~(?!~))\s*)*[\[({]*\s*"
)
_GIVES = re.compile(
    r"\b(?:(?:i|we)(?:'d| would| will|'ll| have)?(?: like to)?\s+(?:give|rate|score|grade|assign|"
    r"award|say|choose|pick|go with)|(?:rated|scored|graded|deserves|merits|earns|gets|receives|"
    r"warrants)|(?:this|it)(?: is|'s)(?= an? ))"
    r"(?:\s+(?:(?:this|the) (?:answer|response)|it|this|that))?\s+(?:(?:as|at|with)\s+)?"
    r"(?:(?:a|the)\s+(?:score|rating|grade) of\s+)?" + _ABOUT,
    re.IGNORECASE,
)
_REVISES = re.compile(
    rf"\b(?:no,|(?:no:|\? no[.!])\s*(?=\d|{_ONE_OF_WORDS})|hm+|wait|"
    r"on (?:second thoughts?|reflection)|actually|or rather|correction|make (?:it|that)|"
    r"revised?(?: (?:it|this|that|my score))?(?: to)?|chang(?:e|ed|ing) (?:it|that|this|my score) "
    r"to|upgraded?|downgraded?|(?:rais|lower)(?:e|ed|ing)(?: (?:it|this|that|my score))? to|"
    r"reconsider\w*|instead|after all|though maybe|but perhaps|could also be)"
    r"[^\n.]{0,30}?(?<![\w.,])",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"(?:\bnot|n't|\bnever|\bcannot|\bif|\bnor|\bwithout|\bthan|\binstead of|\bunlike|\bprevious|"
    r"\bfor example|\bat least|\bat most|\bup to|\bmaximum|\bminimum|\bno)"
    r"[ \t]+(?:[\w']+[ \t]+){0,3}$",
    re.IGNORECASE,
)
"""Before a score, on the same line: it is not the one that is given."""
_ONLY_SPOKEN_OF = re.compile(
    r"\s*(?:\([^()\n]*\)\s*)?(?:would|means|indicates|signals|denotes|requires|could|might|can|if|"
    r"of (?:the|its|those|these)|(?:is|was) (?:for|reserved|given|too|not)|points? (?:off|lost))\b"
    r"|\s+[a-z]+s\s+(?:are|were|have)\b|\s+(?:\w+\s+)?(?:errors?|mistakes?|issues?|omissions?|"
    r"inaccuracies|facts?|claims?|statements?|points? (?:wrong|right))\b",
    re.IGNORECASE,
)
"""Behind a number: it is explained, or counts something, and is not given."""
_BY_ITSELF = re.compile(
    r"\s*(?:$|[\n.;:!?)\]}|,]|[-–—](?=\s)|\(|"
    r"(?:stars?|points?)\b(?=\s*(?:$|[\n.;:!?)\]},]|out of\b|because\b))|"
    r"(?:because|since|as|on (?:a|the) scale|overall|for (?:this|the) (?:answer|response))\b)",
    re.IGNORECASE,
)
"""Behind a value without a label: it stands by itself, and counts nothing."""
_ALONE = re.compile(
    r"(?!\s*(?:\w|[×÷<>=]\s*\d))|[ \t]*\n|[ \t]+(?:because\b|since\b|as\b|overall\b|due to\b|"
    r"based on\b|on (?:a|the) scale\b|(?:for|to) (?:this|the) (?:answer|response)(?!['\w])|"
    r"(?:is|was|seems|feels) (?:\w+ly )?(?:appropriate|warranted|justified|fair|fitting|deserved|"
    r"reasonable|right)|(?:stars?|points?)(?=\s*(?:$|[\n.;:!?)\]},|(]|because|for|out of))|"
    r"(?:reason|explanation|rationale|justification)\w*[ \t]*[:=]|"
    r"(?-i:[A-Z])\w*(?: \w+)?[ \t]*[:=])",
    re.IGNORECASE,
)
"""Behind a value with a label: it stands by itself, and no word goes on with it."""
_FIRST_ITEM = re.compile(r"1[.)]+(?:[ \t]+(?=\w)|(?=[^\W\d]))")
_REST_OF_LINE = re.compile(r"[ \t]*[.;!)\]}]*[ \t]*(?:\n|$)")


# Values -----------------------------------------------------------------------------------------

_NUMBER = re.compile(r"([-−–+]?)(\d+(?:[.,]\d+)?|[.,]\d+)(?![\w%]|[.,]\d|\s*(?:%|percent\b))")
_ANY_NUMBER = re.compile(r"[-−–+]?[.,]?\d[\d.,]*\s*(?:%|percent\b)?")
_WORD_NUMBER = re.compile(rf"({_ONE_OF_WORDS})\b(?![-\w])", re.IGNORECASE)
_OR_NUMBER = re.compile(
    rf"\s*(?:\b(?:or|to|and)\b|[-–—/])\s*(?:\d|{_ONE_OF_WORDS}\b)", re.IGNORECASE
)
_TOP_NUMBER = rf"(\d+(?:\.\d+)?|{_ONE_OF_WORDS})(?![\w%])"
_FROM_TO = rf"(?:\d+|{_ONE_OF_WORDS})\s*(?:-|–|—|\bto\b|\band\b)\s*"
_OPENS = r"[,;]?\s*[(\[]?\s*(?:\b(?:on|using|from) )?(?:an? |the )?"
_OF_WHICH = re.compile(
    r"\s*(?:stars?\b|points?\b)?\s*(?:(?:[(\[]?\s*(?:/|\b(?:out of|of|in)\b)|,\s*out of\b)\s*"
    rf"(?:a (?:possible|maximum(?: of)?)\s+)?{_TOP_NUMBER}|{_OPENS}\b(?:scale|range)\b:?\s*"
    rf"(?:(?:of|from|between|is) )?{_FROM_TO}{_TOP_NUMBER}|[(\[]\s*{_FROM_TO}{_TOP_NUMBER}"
    rf"|{_OPENS}\b{_TOP_NUMBER}[- ]points? scale\b"
    rf"|{_OPENS}\bmax(?:imum|\.)?(?: score)?(?: of| is|:)?\s*{_TOP_NUMBER})",
    re.IGNORECASE,
)
"""Behind a number: the highest of the scale that it is on."""
_HALF = re.compile(r"\s*(?:and a half|and a quarter|\d+\s*/\s*\d+(?!\d)|\+(?!\d))", re.IGNORECASE)
_NEXT = re.compile(
    r"(?:\s*(?:\s(?:to|or|and|through|but (?:maybe|perhaps)|maybe|perhaps)\s|->|=>|[-–—~/|&→])\s*"
    r"|\s+)"
    r"(?:maybe |perhaps |even |an? )?",
    re.IGNORECASE,
)
"""What leads from one value to the next of a range or a choice."""
_COMMA = re.compile(
    r"\s*(?:[,;]|\.{2,}|…)\s*(?:(?:or|and|maybe|perhaps|possibly|even)\s+)?", re.IGNORECASE
)
_REMARK = re.compile(r"\s+[-–—]\s+\d+\s+(?!out of|stars?\b|points?\b)[a-z]", re.IGNORECASE)
_TOP = re.compile(
    rf"\([^()]{{0,24}}?(?:{_FROM_TO}|/|\bout of\s*|\bof\s+|\bmax(?:imum|\.)?(?: of)?:?\s*)"
    rf"{_TOP_NUMBER}|\([^()]{{0,24}}?\b{_TOP_NUMBER}[- ]points?\b",
    re.IGNORECASE,
)
"""The top of a scale that a label names: "Score (1-10):", "Score (out of 10):"."""
_SCALE_BEFORE = re.compile(
    rf"\bscale (?:of|from|between)? ?{_FROM_TO}{_TOP_NUMBER}|\b{_TOP_NUMBER}[- ]point scale\b",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\s*[-–—:=(,\[|]*\s*")


@dataclass(frozen=True)
class _Grammar:
    """The scores of one rubric's replies."""

    values: Mapping[float, str]
    """Label by number, of a scale whose labels are numbers."""
    words: Mapping[str, str]
    """Label by word, in small letters."""
    named: re.Pattern[str]
    labelled: re.Pattern[str]

    def scores(self, text: str) -> Sequence[_Value]:
        """Return what stands as a score: the labelled ones, else those that stand by themselves."""
        given = list(self._labelled(text)) or list(self._bare(text))
        levels = [value for value in given if value.labels]
        return [*given, *self._revised(text)] if levels else given

    def _labelled(self, text: str) -> Iterator[_Value]:
        for match in self.labelled.finditer(text):
            value = None if self._lists(text, match.end()) else self.value_at(text, match.end())
            if value and self._given(text, match.start(), value, _ALONE):
                yield self._on_scale(value, _TOP.search(match[0]) or self._scale(text, match))
        for match in _GIVES.finditer(text):
            value = self.value_at(text, match.end())
            if value and self._given(text, match.start(), value, _BY_ITSELF):
                yield self._on_scale(value, self._scale(text, match))

    def _scale(self, text: str, match: re.Match[str]) -> re.Match[str] | None:
        """Return the scale that is named on a line before a score."""
        line = max(text.rfind("\n", 0, match.start()) + 1, match.start() - 60)
        return _SCALE_BEFORE.search(text, line, match.end())

    def _on_scale(self, value: _Value, told: re.Match[str] | None) -> _Value:
        other = told and self.values and _top(told) != max(self.values)
        return _Value(frozenset(), value.end) if other else value

    def _given(self, text: str, start: int, value: _Value, behind: re.Pattern[str]) -> bool:
        before = text[max(0, start - 60) : start]
        spoken_of = _DENIED.search(before) or _ONLY_SPOKEN_OF.match(text, value.end)
        return bool(behind.match(text, value.end) and not spoken_of)

    def _revised(self, text: str) -> Iterator[_Value]:
        """Return levels that the judge names after a change of mind."""
        for match in _REVISES.finditer(text):
            for place in re.finditer(r"(?<![\w.,+−-])\w", text[match.start() : match.end() + 40]):
                value = self.value_at(text, match.start() + place.start())
                if value and value.labels and _BY_ITSELF.match(text, value.end):
                    yield value
                if "\n" in text[match.start() : match.start() + place.start()]:
                    break

    def _bare(self, text: str) -> Iterator[_Value]:
        """Return a value at the beginning, at those of other lines beside it, and a last line."""
        lines = [line for raw in text.split("\n") if (line := _BULLET.sub("", raw).strip())]
        starts = [self._leading(line) for line in lines]
        if starts and starts[0]:
            yield from (value for value in starts if value)
            return
        if lines and (last := starts[-1]) and _REST_OF_LINE.fullmatch(lines[-1], last.end):
            yield last

    def _leading(self, line: str) -> _Value | None:
        said = re.match(
            r"(?:(?:the|this) (?:answer|response) |it |this |that )(?:is|was) (?!\d)",
            line,
            re.IGNORECASE,
        )
        value = self.value_at(line, said.end() if said else 0)
        if value is None or self._lists(line, 0):
            return None
        if re.match(
            r",?\s*(?:if|unless|except|provided|apart|were|only)\b",
            line[value.end :],
            re.IGNORECASE,
        ):
            return None
        return value if _BY_ITSELF.match(line, value.end) else None

    def _lists(self, text: str, start: int) -> bool:
        """Return whether a 1 at the beginning of a line counts the first item of a list."""
        item = _FIRST_ITEM.match(text, start)
        begins = not text[text.rfind("\n", 0, start) + 1 : start].strip()
        return bool(item and begins and not self._word(text, item.end()))

    def value_at(self, text: str, start: int) -> _Value | None:
        """Return the value at a place, with all that a range or a choice adds to it."""
        first = self._single(text, start)
        if first is None:
            return None
        labels, end, outside = set(first.labels), first.end, not first.labels
        while following := self._following(text, end):
            labels |= following.labels
            outside |= not following.labels
            end = following.end
        if labels and (outside or len(labels) > 1):
            return _Value(frozenset((*labels, "and another")), end)
        return _Value(frozenset(labels), end)

    def _following(self, text: str, end: int) -> _Value | None:
        if match := _NAMED.match(text, end):  # "4 (mostly truthful)", "mostly truthful: 4"
            if named := self._word(text, match.end()):
                return named
            bracket = match[0].strip().startswith(("(", ":", "=", "["))
            if bracket and (value := self._single(text, match.end())) and value.labels:
                return value if _BY_ITSELF.match(text, value.end) else None
        if _REMARK.match(text, end):
            return None
        if match := _NEXT.match(text, end):
            value = self._single(text, match.end())
            if value and (match[0].strip() or _BY_ITSELF.match(text, value.end)):
                return value
        if match := _COMMA.match(text, end):
            value = self._single(text, match.end())
            if value and re.match(r"\s*(?:$|[\n.;,!?)\]}]|stars?|points?)", text[value.end :]):
                return value
        return None

    def _single(self, text: str, start: int) -> _Value | None:
        if named := self._word(text, start):
            return named
        if not self.values:
            return None
        if match := _NUMBER.match(text, start):
            sign = -1.0 if match[1] in ("-", "−", "–") else 1.0
            thousands = re.fullmatch(r"\d{1,3},\d{3}", match[2])
            digits = match[2].replace(",", "" if thousands else ".")
            return self._number(text, sign * float(digits), match.end())
        if match := _ANY_NUMBER.match(text, start):
            after = text[match.end() : match.end() + 1]
            return None if after.isalpha() else _Value(frozenset(), match.end())
        if match := _WORD_NUMBER.match(text, start):
            end = match.end()
            value = self._number(text, float(_WORDS.index(match[1].lower())), end)
            alone = value.end > end or _BY_ITSELF.match(text, end) or _OR_NUMBER.match(text, end)
            return value if alone else None
        return None

    def _word(self, text: str, start: int) -> _Value | None:
        named = self.named.match(text, start)
        label = self.words.get(_spaced(named[0])) if named else None
        return _Value(frozenset({label}), named.end()) if named and label else None

    def _number(self, text: str, number: float, end: int) -> _Value:
        if half := _HALF.match(text, end):
            return _Value(frozenset(), half.end())
        label = self.values.get(number)
        if which := _OF_WHICH.match(text, end):
            if _top(which) != max(self.values):
                label = None
            end = which.end()
        return _Value(frozenset() if label is None else frozenset({label}), end)


@cache
def _grammar(rubric: Rubric) -> _Grammar:
    words = {word.lower(): level.label for level in rubric.levels for word in level.words}
    longest = sorted(words, key=len, reverse=True)
    listed = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in longest) or r"(?!)"
    own = sorted(
        {re.escape(rubric.label.lower()), re.escape(rubric.name.lower()), *_OWN.split("|")}
    )
    label = rf"\b(?:{_BEFORE})*(?:{'|'.join(own)})s?\b"
    bare = r"(?<![\w])"
    return _Grammar(
        {level.value: level.label for level in rubric.levels} if rubric.numeric else {},
        {_spaced(word): owner for word, owner in words.items()},
        re.compile(rf"{bare}(?:{listed})(?![\w])", re.IGNORECASE),
        re.compile(
            rf"(?:{label}{_PAREN}{_LINK}|{label}{_PAREN}[ \t]+|(?<![^\n])[^\w\n]*{label}{_PAREN}"
            rf"[^\w\n]*\n\s*){_ABOUT}",
            re.IGNORECASE,
        ),
    )


def _top(told: re.Match[str]) -> float:
    top = next(group for group in told.groups() if group).lower()
    return float(_WORDS.index(top)) if top in _WORDS else float(top)


def _spaced(word: str) -> str:
    return re.sub(r"\s+", " ", word.lower())


# The text itself --------------------------------------------------------------------------------

_BULLET = re.compile(r"^(?:[ \t>#•|(\[{]|[-–—+](?=\s))+")
_TAG = re.compile(r"<(/?)([a-z_ ]{1,30})/?>", re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\{([^{}\n]{0,40})\}")
_VULGAR = re.compile(r"\s?[¼½¾⅐-⅞]")
_MARKS = re.compile(r"[*`\"“”„«»\u200b\u200c\u200d\u2060\ufeff]|(?<!\w)'|'(?!\w)|(?<=\d)'")
_BOLD = re.compile(
    r"(\*\*[^*\n:=]{1,40}[:=] *[^\s*][^*\n]{0,40}|"
    r"[:=](?:\*\*)? *\*\*[^\s*][^*\n]{0,40})\*\*(?= +[A-Z])"
)
"""A score in bold type, and a sentence behind it: the type ends the score."""
_FENCE = re.compile(r"^\s*```\w*\s*|\s*```\s*$")


def _plain(text: str) -> str:
    """Return a reply without marks of emphasis, quotes, tags and unusual forms of digits."""
    text = _FENCE.sub("", _VULGAR.sub(".5", text))
    text = unicodedata.normalize("NFKC", text).replace("⁄", "/").replace("’", "'")
    text = _MARKS.sub("", _BOLD.sub(r"\1;", text).replace("_", " "))
    text = re.sub(r"<\s*([-+]?[\d.,/]+)\s*>", r"\1", text)
    text = _TAG.sub(lambda match: "\n" if match[1] else f"\n{match[2]}: ", text)
    text = _BOXED.sub(r"score: \1", text)
    return re.sub(r"[ \t\r\f\v\xa0]+", " ", re.sub(r"\r\n?|\u2028|\u2029", "\n", text)).strip()


_REASON = re.compile(
    r"\b(?:reason(?:ing)?|explanation|rationale|justification)\b\W{0,6}[:=]\W{0,3}(.+?)\s*"
    r"(?=\n\W*(?:final |overall )?(?:score|rating|verdict|category)\b|\Z)",
    re.IGNORECASE | re.DOTALL,
)


def _reason(text: str) -> str:
    """Return the reason that a reply gives; empty where none is marked as one."""
    try:
        content = json.loads(_FENCE.sub("", text))
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, dict):
        for key, value in content.items():
            if str(key).lower().startswith(("reason", "expl", "ration", "justif")):
                return value.strip() if isinstance(value, str) else ""
        return ""
    found = _REASON.search(text)
    return found[1].strip() if found else ""
