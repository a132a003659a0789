"""How long the texts of a sample may be, and where work on a long one is done."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

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
