"""Reads from a model's reply whether a text supports a statement, contradicts it, or neither.

The reader is total: every text gives one of the three verdicts, or ``None`` where it names none of
them, or several.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, get_args

from trustassay.text.patterns import read_patterns
from trustassay.text.replies import CITED, CONDITION

Verdict = Literal["support", "neutral", "contradict"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""In the order of the probabilities of an entailment."""
REPAIR = (
    "Your reply names none of the three, or more than one. Reply once more, with one word and "
    "nothing else: SUPPORTS, CONTRADICTS or NEITHER."
)
"""What asks once more after a reply that names no verdict."""
REPAIR_PROMPT = "verdict-again/1"
"""Its name and version, in the stored call."""


class Found(NamedTuple):
    """A verdict, and where in the reply its word stands."""

    verdict: Verdict
    start: int


_P = read_patterns("verdict_replies.toml", __package__)
_NAMED = re.compile(rf"(?<![\w-])(?:{_P['any']})(?![\w-])", re.IGNORECASE)
_NEGATION = re.compile(_P["negation"], re.IGNORECASE)
_DISMISSED = re.compile(_P["dismissed"], re.IGNORECASE)
_DENIED = re.compile(_P["denied"], re.IGNORECASE)
_BREAK = re.compile(_P["break"], re.IGNORECASE)
_OPEN = re.compile(r"\b(?:whether|if)\b[^.!?;:]*$", re.IGNORECASE)
"""The beginning of a question that the reply only repeats: "whether the passage supports"."""
_NEITHER_NOR = re.compile(_P["neither_nor"], re.IGNORECASE)
_MARKED = re.compile(_P["marked"], re.IGNORECASE)
_ALONE = re.compile(_P["alone"], re.IGNORECASE)
_WHOLE = re.compile(_P["whole"], re.IGNORECASE)
REACH = 60
"""Characters before a verdict's word in which what leaves it open is looked for."""
CLAUSE = 300
"""Characters before a verdict's word in which its clause is looked through."""


def verdict_in(text: str) -> Found | None:
    """Return the verdict that a reply names, and where.

    A word behind "verdict", "relation", "label", "answer" and the like decides, where all such
    places agree; else lines that hold nothing but such a word, where they agree. Else the first
    line with a verdict's word in it: it names one if it begins with it alone ("SUPPORTS. ..."), or
    if all words in it mean the same. A word that is taken back ("no passage supports", "partly
    supports", "supports: no"), left open ("whether it supports", "could support") or under a
    condition counts for nothing: it is none of the three.
    """
    text = CITED.sub(lambda match: " " * len(match[0]), text.replace("_", " "))
    marked = [_found(match) for match in _MARKED.finditer(text) if _stands(text, match)]
    if marked:
        return _agreed(marked)
    lines = text.splitlines(keepends=True)
    if whole := list(_whole_lines(lines)):
        return _agreed(whole)
    start = 0
    for line in lines:
        named = _named(line)
        if named:
            if (alone := _ALONE.match(line.rstrip())) and _stands(line, alone):
                named = [_found(alone), *_whole_lines(re.split(r"(?<=[.!?])\s", line)[1:])]
            first = _agreed(named)
            return first and Found(first.verdict, start + first.start)
        start += len(line)
    return None


def _stands(text: str, match: re.Match[str]) -> bool:
    """Whether what a place says is not denied, dismissed or under a condition there."""
    end = match.end(match.lastgroup or 0)
    rest = _BREAK.split(text[end : end + CLAUSE], maxsplit=1)[0]
    return not (
        _DISMISSED.match(text, end) or CONDITION.search(rest) or _denied(text, match.start())
    )


def _agreed(found: list[Found]) -> Found | None:
    """Return the first of those that were found, ``None`` where they are not all the same."""
    return found[0] if len({one.verdict for one in found}) == 1 else None


def _whole_lines(lines: Iterable[str]) -> Iterator[Found]:
    """Yield the verdicts that stand alone in their lines."""
    start = 0
    for line in lines:
        if match := _WHOLE.fullmatch(line):
            result = _found(match)
            yield Found(result.verdict, start + result.start)
        start += len(line)


def _named(line: str) -> list[Found]:
    """Return the verdicts that stand in a line and are not taken back there; "neither supports nor
    contradicts" is one verdict, and its three words are none."""
    both = [(match.start(), match.end()) for match in _NEITHER_NOR.finditer(line)]
    named = [Found("neutral", start) for start, _ in both]
    bare = _NEITHER_NOR.sub(lambda match: " " * len(match[0]), line) if both else line
    named += [_found(one) for one in _NAMED.finditer(bare) if not _taken_back(bare, one)]
    return sorted(named, key=lambda one: one.start)


def _taken_back(line: str, match: re.Match[str]) -> bool:
    before = line[max(0, match.start() - REACH) : match.start()]
    if _NEGATION.search(before) or _OPEN.search(before) or _DISMISSED.match(line, match.end()):
        return True
    if CONDITION.search(_BREAK.split(line[match.end() : match.end() + CLAUSE], maxsplit=1)[0]):
        return True
    return not match["neutral"] and _denied(line, match.start())


def _denied(text: str, place: int) -> bool:
    """Whether something is denied earlier in the clause of the word at a place."""
    first = max(0, place - CLAUSE)
    near = text[first : place + REACH]  # a break may depend on the word itself
    ends = (match.end() for match in _BREAK.finditer(near))
    start = max((end for end in ends if end <= place - first), default=0)
    return bool(_DENIED.search(near[: place - first], start))


def _found(match: re.Match[str]) -> Found:
    verdict = next(one for one in VERDICTS if match[one] is not None)
    return Found(verdict, match.start(verdict))
