"""Texts: how long one may be, its language, its words, and where work on a long one is done."""

import asyncio
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, ParamSpec, TypeVar

from trustassay.errors import AssessmentError
from trustassay.sample import Sample

T = TypeVar("T")
P = ParamSpec("P")

TOO_LONG = "too_long"
"""The kind of failure of a sample that is too long to assess."""
LONGEST_ANSWER = 100_000
"""Characters; the longest answer of the public sets that the methods are measured on has 3,929."""
TOGETHER = 10
"""All passages of a sample, and all gold and reference answers, may have so many times the
characters of an answer: a million; the longest passages of the public sets have 91,460."""
_PER: dict[str, float] = {
    "statements": 100,
    "citations": 50,
    "passages": 20,
    "characters of an answer that is offered among others": 10,
    "pairs of words of an answer and a gold answer": 0.004,
    "characters to be read for it": 0.002,
    "sentences of its passages": 5,
    "pairs of a passage and a gold answer": 2,
    "gold and reference answers": 50,
}
"""Characters of the longest answer for each thing of a sample that is counted: there may be 1,000
statements, 2,000 citations, 5,000 passages. The largest sample of the public sets has 2,417."""

SHORT_ANSWER = 1_000
SHORT_PASSAGES = 30_000
"""Characters up to which the work on a text takes a few milliseconds."""

_thread = ThreadPoolExecutor(1, thread_name_prefix="trustassay-text")
"""One alone: each further thread of Python code would keep the event loop waiting longer."""


@dataclass(frozen=True, slots=True)
class TextLimits:
    """How much text of a sample is assessed; beyond it the sample is too long to assess.

    answer: characters of its question, of its response, and of each gold or reference answer. The
    other limits are in proportion: ten times as many characters of all passages, and of all gold
    and reference answers, and what is counted.
    """

    answer: int = LONGEST_ANSWER

    def check(self, sample: Sample) -> None:
        """Raise AssessmentError if a sample is too long; reads lengths alone."""
        for name, text in (("question", sample.question), ("response", sample.response or "")):
            self._characters(name, len(text), 1)
        others = list(map(len, _others(sample)))
        self.count("gold and reference answers", len(others))
        self._characters("a gold or reference answer", max(others, default=0), 1)
        self._characters("gold and reference answers", sum(others), TOGETHER)
        documents = sample.documents or ()
        self.count("passages", len(documents))
        lengths = (len(one.text) + len(one.title or "") for one in documents)
        self._characters("passages", sum(lengths), TOGETHER)

    def count(self, what: str, number: int) -> None:
        """Raise AssessmentError if a sample has too many of ``what``."""
        most = max(1, int(self.answer / _PER[what]))
        if number > most:
            raise _too_long(f"{number:,} {what} (at most {most:,})")

    def _characters(self, what: str, length: int, times: int) -> None:
        if length > self.answer * times:
            raise _too_long(f"{what}: {length:,} characters (at most {self.answer * times:,})")


USUAL_LIMITS = TextLimits()


def _too_long(found: str) -> AssessmentError:
    return AssessmentError(f"too long to assess: {found}; --longest-answer allows more", TOO_LONG)


def _others(sample: Sample) -> Iterator[str]:
    """Yield the texts that a response is compared with."""
    for aliases in (*sample.answers, *sample.references.values()):
        yield from aliases
    yield from sample.claims
    yield from sample.wrong_answers
    yield from sample.corrected_answers
    yield from sample.incorrect_answers
    yield from sample.resamples


class TextWork:
    """Calls functions of texts; where the texts are ``long``, in a thread.

    The event loop goes on meanwhile.
    """

    def __init__(self, *, long: bool) -> None:
        self._long = long

    @classmethod
    def on(cls, sample: Sample) -> "TextWork":
        """Return that on the texts of a sample."""
        passages = sum(len(one.text) for one in sample.documents or ())
        longest = max(map(len, (sample.question, sample.response or "", *_others(sample))))
        return cls(long=longest > SHORT_ANSWER or passages > SHORT_PASSAGES)

    async def __call__(self, function: Callable[P, T], /, *given: P.args, **options: P.kwargs) -> T:
        """Return what a function returns."""
        if not self._long:
            return function(*given, **options)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_thread, lambda: function(*given, **options))


REMEMBERED = 10_000
"""Characters of the longest text whose words are kept in memory."""
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)?")
_NEGATIONS = frozenset(
    "no not none never neither nor nobody nothing nowhere cannot without hardly fails".split()
)
_EMPTY_WORDS = frozenset(
    "a an the this that these those it its he she they them his her their i you we who whom which "
    "what where when how is are was were be been being am do does did has have had having will "
    "would can could may might must shall should of in on at by for with from to into onto as and "
    "or but if then than so such there here also very more most some any each both all about "
    "between during after before over under up down out off again just only own same too s".split()
)
_NUMERALS = {
    word: str(value)
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
}


def plain_words(text: str) -> Iterator[str]:
    """Yield the words of a text in order, folded; numerals and numbers as digits: ``1,000`` and
    ``1000`` are the same word, and so are ``two`` and ``2``.
    """
    for match in _WORD.finditer(unicodedata.normalize("NFKC", text).casefold()):
        word = match.group()
        bare = _NUMERALS.get(word, word).replace("’", "'")
        yield bare.replace(",", "").rstrip(".") if bare[0].isdigit() else bare


def is_negation(word: str) -> bool:
    """Whether a word as :func:`plain_words` gives it negates."""
    return word in _NEGATIONS or word.endswith("n't")


def is_empty_word(word: str) -> bool:
    """Whether a word as :func:`plain_words` gives it says nothing by itself, as "the" and "is"."""
    return word in _EMPTY_WORDS


def content_words(text: str) -> tuple[str, ...]:
    """Return the different content words of a text in order, without common English endings:
    "elephants" is "elephant" and "lived" is "liv". Negations and words that say nothing by
    themselves are left out.
    """
    return _content_words(text) if len(text) <= REMEMBERED else _content_words.__wrapped__(text)


@lru_cache(maxsize=8192)
def _content_words(text: str) -> tuple[str, ...]:
    result: dict[str, None] = {}
    for word in plain_words(text):
        if word[0].isdigit():
            result[word] = None
        elif not is_negation(word) and word not in _EMPTY_WORDS:
            result[stem(word)] = None
    return tuple(result)


def stem(word: str) -> str:
    """Return a word in lower case without common English endings."""
    word = word.removesuffix("'s")
    for ending in ("ingly", "edly", "ing", "ies", "ied", "es", "ed", "ly", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def amount(n: int, one: str, several: str = "") -> str:
    """Return ``1 reply``, ``2 replies``: by default the plural ends in an s."""
    return f"{n:.0f} {one if n == 1 else several or one + 's'}"


ENGLISH = "en"
OTHER_LANGUAGE = "other_language"
"""The only part of the assessment of an answer that a metric's models do not read."""
LATIN = "la"
"""Left out: names of species and elements, markup and filler text are taken for it."""
SHORT = 5
"""Words up to which an answer's language is told with what it answers."""
ALONE, IN_CONTEXT = -2.0, -1.0
"""Log-odds of English below which a text is in another language, alone and with its context."""
CERTAIN = 0.7
"""Log-odds of English from which a longer text is English without a look at its context."""
_ENGLISH_WORD = re.compile(r"[^\W\d_]{2,}")
READ = 1000
"""Characters that are read of a text, and of a text with its context."""


def language_of(text: str, context: Sequence[str] = ()) -> str | None:
    """Return the language of an answer as an ISO 639 code, or ``None`` where it is not certain.

    An answer of up to five words, and one whose words leave it open, has the language of what
    stands around it: names and numbers have none of their own. A text of which most letters are
    of another script than the Latin one needs no context.

    Args:
        text: the answer. context: what it answers: the question, then the passages.
    """
    text = text[:READ]
    if _other_script(text):
        return _odds(text)[1]
    if len(_ENGLISH_WORD.findall(text)) > SHORT:
        odds, other = _odds(text)
        if odds <= ALONE or odds >= CERTAIN:
            return other if odds <= ALONE else ENGLISH
    if not any(map(_ENGLISH_WORD.search, context)):
        return None
    odds, other = _odds("\n".join((text, *context)))
    return other if odds < IN_CONTEXT else ENGLISH


def _odds(text: str) -> tuple[float, str]:
    """Return the log-odds of English against the likeliest other language, and which that is."""
    chances = dict(_identifier().rank(text[:READ]))
    english = chances.pop(ENGLISH)
    other = max(chances, key=chances.__getitem__)
    return math.log((english + 1e-9) / (chances[other] + 1e-9)), other


def _other_script(text: str) -> bool:
    """Whether most letters of a text are not Latin (nor Greek letters of formulas)."""
    letters = [letter for letter in text if letter.isalpha()]
    latin = ("LATIN", "GREEK", "FULLWIDTH LATIN")
    named = (unicodedata.name(one, "") for one in letters if one > "\u036f")
    return 2 * sum(not name.startswith(latin) for name in named) > len(letters)


@cache
def _identifier() -> Any:
    """Return the identifier for the languages of ISO 639-1: with those that have a code of three
    letters, English is often taken for a Creole, and Chinese for Wu.
    """
    from py3langid import langid

    result = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
    result.set_languages([code for code in result.labels if len(code) == 2 and code != LATIN])
    return result
