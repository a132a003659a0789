"""Which one of a closed set of values a model's prose gives: total, and it never guesses.

A value counts where it is given, and nowhere else: behind a word such as "score", behind "I give
it", at the beginning, or alone on the last line. All that stands between the beginning of its
clause and the value, and directly behind it, is held to short lists, so that "almost a 4",
"5. Juni" and "4 of the facts" give nothing. Neither does a value with a condition, one that is
reported, or one of something else; a second one in its sentence makes it several.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, islice
from typing import ClassVar, NamedTuple

from trustassay.text.patterns import read_patterns

LONGEST = 50_000
"""Characters of a reply, beyond which it is not read: no reply that was asked for is so long."""
MOST = 20
"""Values of one reply, and of one range, that are looked at; a reply with more is a list."""
NEAR = 300
"""Characters before and behind a value that are looked through for what changes its meaning."""
ELSEWHERE = "\ue000"
"""Stands in a plain text where another scale is named: values of its sentence are off the scale."""
OFF = ""
"""The label of a value that is not on offer, such as a number off the scale."""


class Value(NamedTuple):
    """The labels of a value at a place of a text, several of a range, and where it ends."""

    labels: frozenset[str]
    end: int


_P = read_patterns("replies.toml", __package__)
_SCORE, _SCORE_CJK, _OWN, _FINAL, _FINAL_CJK, _BECAUSE, _HEADINGS = islice(_P.values(), 7)
_LEAD = re.compile(_P["lead"], re.IGNORECASE)
THIS = _P["this"]
_GIVES = _P["gives"]
_ABOUT = re.compile(_P["about"], re.IGNORECASE)
_LINK = _P["link"]
_FOR_THIS = _P["for_this"]

# What takes a value back, or adds another -------------------------------------------------------

CONDITION = re.compile(_P["condition"], re.IGNORECASE)
_REPORTED = re.compile(_P["reported"], re.IGNORECASE)
_GOLD = re.compile(r"\b(?:gold\w*|reference)\b.*\b(?:it|that|which)$", re.IGNORECASE)
"""From the beginning of a sentence to the subject of its value, which may not be the answer."""
_WISH = re.compile(r"\b(?:with(?:out)?|were|had|ignoring)\b", re.IGNORECASE)
_BUT = re.compile(r"\W*(?:but|however|though|yet)\b", re.IGNORECASE)
"""Before and behind "I would give it a 5": it is not given."""
_RETRACTED = re.compile(_P["retracted"], re.IGNORECASE)
_YES = re.compile(r"\b(?:yes|true|correct)$", re.IGNORECASE)
_ALTERNATIVE = re.compile(_P["alternative"], re.IGNORECASE)
_REVISES = _P["revises"]
_NEXT = re.compile(_P["next"], re.IGNORECASE)
_NAMED = re.compile(r"\s*[-–—:=(,\[|]*\s*")
"""What leads from a value to the same one in other words: "4 (mostly truthful)"."""
_TAIL = _P["tail"]
_STOP = re.compile(rf"\b(?:{_BECAUSE})\b|[.!](?=\s|$)|[\n。]|\b\w+\s*[:=]", re.IGNORECASE)
"""Where what belongs to a value ends, and its reason begins."""
_SENTENCE = re.compile(r"(?<![.…])[.!](?=\s)|。")
_ENDS = re.compile(r"[.!?](?=\s)|。")
_CLAUSE = re.compile(
    r"(?:^|(?<=\d)\s(?=[A-Z])|[,;:()\[\]{}|—–、]|\s-\s"
    r"|\b(?:so|thus|therefore|hence|and|but|that)\b)\s*"
)
_BULLET = re.compile(r"(?:[\s>#•|:,✅⭐✔]|[-–—+*](?=\s)){0,20}")
_ITEM = re.compile(r"\s*[.)\]、]+[ \t]*(?=\w)")
"""Behind a number at the beginning of a line: it counts an item, or is an ordinal."""


class Prose:
    """Reads which of some words a text gives; a subclass adds values of another kind."""

    scores: ClassVar[str] = _SCORE
    """A pattern of what stands before a value, such as "score"."""
    before: ClassVar[str] = r"(?!)"
    approved: ClassVar[str] = r"(?!)"
    """Patterns of what else may stand before a value, and behind it."""

    def __init__(
        self, words: Mapping[str, str], labels: Collection[str] = (), begins: str = r"(?!)"
    ) -> None:
        """Read ``words``, each with the label that it stands for.

        Args:
            words: the words on offer.
            labels: what stands before a value, beside "score" and the like.
            begins: a pattern of what the values of a subclass begin with.
        """
        self._words = {_spaced(plain(word)): label for word, label in words.items()}
        longest = sorted(map(re.escape, self._words), key=len, reverse=True)
        listed = "|".join(longest).replace(r"\ ", r"\s+") or r"(?!)"
        own = "|".join(re.escape(plain(label)) for label in labels) or r"(?!)"
        name = (
            rf"(?:(?:{_OWN}|{_FINAL}|{own})\s+|gesamt|end|eind)*(?:{self.scores}|{own})s?(?!\w)"
            rf"(?:\s+(?:{_FINAL})(?!\w))*{_FOR_THIS}(?:\s*\((?:\W|{own}){{0,9}}\)|{ELSEWHERE})?"
        )
        name_cjk = rf"(?:{_FINAL_CJK}|\s)*(?:{_SCORE_CJK})"
        self._word = _pattern(rf"(?<!\w)(?:{listed})(?!\w)(?!(?<=no)\.\s*\d)")
        self._tail = _pattern(rf"{_TAIL}|\s*(?:{self.approved})")
        self._other_tail = _pattern(
            rf"{_TAIL}|\s*(?:if|when|with|without|for|in)\b|\s*(?:{self.approved})"
        )
        self._head = _pattern(
            rf"{name}{_LINK}|{name}(?<!note)(?<!nota)\s+|{name_cjk}\s*[はが为是]?(?:{_LINK})?\s*"
            rf"|\[result\]\s*|{self.before}"
            rf"|{_GIVES}\s+(?:(?:an?|the|my)\s+)?(?:(?:{_FINAL})\s+)*(?:(?:{self.scores})\s+(?:of\s+)?)?"
        )
        self._headed = _pattern(
            rf"\s*(?!.*\b(?:{_SCORE}|{_HEADINGS}|{own})s?\b)\w[\w ]{{0,30}}:\s*"
        )
        self._is = _pattern(rf"{THIS}(?:'s| is| was| must be)\s+(?=\D)")
        self._keyword = _pattern(rf"{_SCORE}|{own}|{_SCORE_CJK}|\[result\]|{_GIVES}|{self.before}")
        self._revises = _pattern(
            rf"{_REVISES}[^\n.\d]{{0,30}}?(?<![\w.,+−-])(?=(?i:{listed})(?!\w)|{begins})"
        )
        self._announces = _pattern(rf"\b(?:i|my|we|our|{_SCORE}|{own})\b")
        self._heading = _pattern(
            rf"(?m)^([^\w\n]{{0,9}}(?:{name}|{name_cjk}))[ :=.|#-]*\n(?!\d+[.)]+[ \t]*\w)"
        )

    def read(self, text: str) -> frozenset[str]:
        """Return the labels that a plain text gives, :data:`OFF` for a value off the scale.

        Those behind a word such as "score" or "I give it", with what takes them back later; where
        there are none, a value at the beginning with those of other lines, or a last line of its
        own.
        """
        text = self._word.sub(lambda match: match[0].replace("\n", " "), text)
        text = self._heading.sub(r"\1: ", text)
        given = list(islice(self._labelled(text), MOST))
        if given:
            ends = (text.partition("\n")[0], text.rpartition("\n")[2])
            given += [value for line in ends if "=" not in line and (value := self._whole(line))]
        else:
            given = list(islice(self._bare(text), MOST))
        result = frozenset(label for value in given for label in value.labels)
        if len(given) >= MOST:
            return result | {OFF}
        return result | self._revised(text) if result - {OFF} else result

    def single(self, text: str, start: int) -> Value | None:
        """Return the one value that begins at a place."""
        named = self._word.match(text, start)
        label = self._words.get(_spaced(named[0])) if named else None
        return Value(frozenset({label}), named.end()) if named and label else None

    def value_at(self, text: str, start: int) -> Value | None:
        """Return the value at a place, with all that a range or a choice adds to it."""
        value = self.single(text, start)
        for _ in range(MOST if value else 0):
            assert value is not None
            following = self._following(text, value.end)
            if following is None:
                break
            value = Value(value.labels | following.labels, following.end)
        return value

    def _about_at(self, text: str, start: int) -> Value | None:
        """Return the value at a place, or behind "about" and the like there."""
        about = _ABOUT.match(text, start)
        return self.value_at(text, start) or (self.value_at(text, about.end()) if about else None)

    def _following(self, text: str, end: int) -> Value | None:
        for way in (_NAMED, _NEXT):
            link = way.match(text, end)
            value = self.single(text, link.end()) if link and link[0] else None
            known = value and (way is _NEXT or OFF not in value.labels)
            if value and known and self._tail.match(text, value.end):
                return value
        return None

    def _labelled(self, text: str) -> Iterator[Value]:
        previous = ""
        for line in text.split("\n"):
            if self._keyword.search(line):
                said = previous if previous.endswith(":") else ""
                for sentence in _SENTENCE.split(line):
                    yield from self._given(sentence, said)
                    said = sentence if "gnore" in sentence else ""
            previous = line

    def _given(self, sentence: str, said: str) -> Iterator[Value]:
        """Yield the values behind a word such as "score", each from the beginning of a clause."""
        for clause in _CLAUSE.finditer(sentence):
            bullet = _BULLET.match(sentence, clause.end())
            start = bullet.end() if bullet else clause.end()
            if lead := _LEAD.match(sentence, start):
                start = lead.end()
            head = self._head.match(sentence, start)
            value = head and self._about_at(sentence, head.end())
            if not head or not value or not self._tail.match(sentence, value.end):
                continue
            own = sentence[max(0, start - NEAR) : start]
            wished = "would" in head[0] or "'d" in head[0]
            if wished and (_WISH.search(own) or _BUT.match(sentence, value.end)):
                continue
            subject = own + "".join(head[0].split()[:1])
            if _REPORTED.search(f"{said} {own}") or _GOLD.search(subject):
                continue
            if not CONDITION.search(own) and not self._headed.fullmatch(own):
                yield from self._with_others(sentence, value)

    def _with_others(self, sentence: str, value: Value) -> Iterator[Value]:
        """Yield a value with the others of its sentence; none if it is taken back there."""
        rest = sentence[value.end : value.end + NEAR]
        if stop := _STOP.search(rest):
            rest = rest[: stop.start()]
        turned = _YES.search(sentence, max(0, value.end - 9), value.end) and re.search(
            r"\bbut\b", rest
        )
        if _RETRACTED.match(rest) or turned:
            return
        others = [value]
        for match in chain(_ALTERNATIVE.finditer(rest), self._is.finditer(rest)):
            place = match.end()
            other = self.value_at(rest, place)
            if other and OFF not in other.labels and self._other_tail.match(rest, other.end):
                others.append(other)
        if len(others) == 1 and CONDITION.search(rest):
            return
        off = ELSEWHERE in sentence[max(0, value.end - NEAR) : value.end + NEAR]
        yield from (Value(frozenset({OFF}), value.end) if off else one for one in others)

    def _revised(self, text: str) -> frozenset[str]:
        """Return labels that are given after a change of mind."""
        values = (
            value
            for match in self._revises.finditer(text)
            if (value := self.value_at(text, match.end())) and self._tail.match(text, value.end)
        )
        return frozenset(label for value in values for label in value.labels if label != OFF)

    def _bare(self, text: str) -> Iterator[Value]:
        """Yield a value at the beginning and those of other lines; else that of the last line."""
        lines = [line for raw in text.split("\n") if (line := _BULLET.sub("", raw, 1).strip())]
        if lines and (first := list(self._leading(lines[0]))):
            yield from first
            for line in lines[1:]:
                yield from self._leading(re.sub(r"^(?:or|and|to) ", "", line))
            return
        before, last = ["", "", *lines][-2:]
        value = self._whole(last)
        announced = not before.endswith((":", "=")) or self._announces.search(before)
        if value and announced and not before.endswith("="):
            yield value

    def _whole(self, line: str) -> Value | None:
        """Return the value that a line, or a sentence, holds and nothing else."""
        value = self.value_at(line, len(line) - len(line.lstrip("([{ ")))
        return value if value and not line[value.end :].strip(" .;!)]}") else None

    def _leading(self, line: str) -> Iterator[Value]:
        lead = _LEAD.match(line)
        start = lead.end() if lead else 0
        said = self._is.match(line, start)
        value = self._about_at(line, said.end() if said else start)
        if value is None or not self._tail.match(line, value.end):
            return
        if line[: value.end].strip("([ ").isdigit():
            item = _ITEM.match(line, value.end)
            if item and not self._word.match(line, item.end()):
                return
            rest = line[value.end :]
            if rest.startswith(",") and re.search(r"\d", rest.partition(". ")[0]):
                return
        yield from self._with_others(line, value)
        sentences = _ENDS.split(line[value.end :])[1:]  # "Yes? No."
        yield from (other for one in sentences if (other := self._whole(one)))


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _spaced(word: str) -> str:
    return re.sub(r"\s+", " ", word.lower())


# The text itself --------------------------------------------------------------------------------

_CHARACTERS = str.maketrans(
    dict.fromkeys(
        "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\ufe0f\u20e3\u202a\u202b\u202c\u202d\u202e"
        + ELSEWHERE
    )
    | dict.fromkeys("“”„«»「」『』", '"')
    | dict.fromkeys("\u2028\u2029\x85\v\f", "\n")
    | {"’": "'", "‘": "'", "⁄": "/", "٫": ".", "٪": "%", "،": ",", "؛": ";", "‐": "-", "‑": "-"}
)
_VULGAR = re.compile(r"\s?[¼½¾⅐-⅞]")
_FENCED = re.compile(r"(?m)^```[^\n]*\n((?:(?!```).*\n)*?)```")
CITED = re.compile(r"(?<=\w )([\"'])[^\"'\n]{0,200}[:=][^\"'\n]{0,200}\1")
"""A quotation, within a sentence, of what looks like a reply."""
_STRUCK = re.compile(r"~~[^~\n]*~~")
_BOLD = re.compile(r"\*\*([^*\n]*[^*\n\s:=])\*\*(?= +[A-Z])")
"""Bold type with a sentence behind it: it ends where the type ends."""
_MARKS = re.compile(
    r"</?(?:b|i|u|em|strong|code|p|span)>|[*`\"]|(?<!\w)'|'(?!\w)|(?<=\d)'|\\[\[\]()]"
)
_NUMBER_IN_TAG = re.compile(r"<\s*([-+]?[\d.,/]+)\s*>")
_TAG = re.compile(r"<(/?)([a-z_ ]{1,30})((?:\s[^<>]{0,60})?)/?>", re.IGNORECASE)
_TOP_OF_TAG = re.compile(r"max\w*=\W*(\d+)")
_LATEX = (
    (re.compile(r"\\d?frac\{(\d+)\}\{(\d+)\}"), r"\1/\2"),
    (re.compile(r"\\(?:text|mathrm|textbf|mathbf)\{([^{}\n]{0,40})\}"), r"\1"),
    (re.compile(r"\\boxed\{(?:\w+:\s*)?([^{}\n]{0,40})\}"), r"\nscore: \1\n"),
    (re.compile(r"\$([^$\n]{1,40})\$"), r"\1"),
)
_CJK = "\u3040-\u30fb\u4e00-\u9fff\uac00-\ud7a3"
_BESIDE_CJK = re.compile(rf"(?<=\d)(?=[{_CJK}])|(?<=[{_CJK}])(?=\d)")


def plain(text: str) -> str:
    """Return a reply without marks of emphasis, quotations, tags and unusual forms of digits.

    Empty where it is longer than :data:`LONGEST`.
    """
    text = text.strip()
    if len(text) <= LONGEST:
        text = unicodedata.normalize("NFKC", _VULGAR.sub(".5", text)).translate(_CHARACTERS)
    if len(text) > LONGEST:  # some characters stand for many
        return ""
    text = re.sub(r"\r\n?", "\n", text)
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", " ")
    for pattern, plainly in _LATEX:
        text = pattern.sub(plainly, text)
    fenced = _FENCED.sub("", text)
    text = fenced if re.search(r"\w", fenced) else re.sub(r"(?m)^```\w*$", "", text)
    text = CITED.sub(" ", _STRUCK.sub(" ", text))
    text = _MARKS.sub("", _BOLD.sub(r"\1.", text).replace("_", " "))
    text = _TAG.sub(_without_tag, _NUMBER_IN_TAG.sub(r"\1", text))
    text = re.sub(r"[^\S\n]+", " ", _BESIDE_CJK.sub(" ", text))
    return re.sub(r"(?: ?\n)+ ?", "\n", text).strip()


def _without_tag(match: re.Match[str]) -> str:
    if match[1]:
        return "\n"
    top = _TOP_OF_TAG.search(match[3])
    return f"\n{match[2]}{f' (max {top[1]})' if top else ''}: "


_NUMBERED = re.compile(
    r"^[ \t*_#>-]*(?:(?:answer|claim|fact)\s*)?\(?(\d{1,3})\s*[.):](?!\d)[^\S\n]*[*_]*"
    r"(?P<text>.*)$",
    re.IGNORECASE | re.MULTILINE,
)


def numbered(text: str) -> list[re.Match[str]]:
    """Return the lines of a list, each with its ``text``: those that count on from 1.

    A line with another number is none: "2. Weltkrieg" begins with an ordinal, "10:30" with a time.
    """
    result: list[re.Match[str]] = []
    for line in _NUMBERED.finditer(text):
        if int(line[1]) in (1, len(result) + 1):
            result.append(line)
    return result
