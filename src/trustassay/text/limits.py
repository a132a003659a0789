"""Limits on the length of a sample's texts, and a thread for the work on long ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from trustassay.core.fair_queue import FairThread, run_in_turn
from trustassay.core.sample import Sample
from trustassay.errors import AssessmentError

T = TypeVar("T")
P = ParamSpec("P")

TOO_LONG = "too_long"
"""The kind of failure of a sample that is too long to assess."""
MAX_ANSWER_CHARACTERS = 100_000
"""Characters of an answer; the longest in the public sets that the methods are measured on has
3,929."""
TOTAL_CHARACTERS_FACTOR = 10
"""Factor: all passages of a sample together, and all its gold and reference answers together, may
have ten times the characters of an answer, a million. The longest passages of a sample in the
public sets have 91,460."""
_CHARACTERS_PER: dict[str, float] = {
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
"""Characters of the longest answer for each counted item of a sample: with 100,000 characters there
may be 1,000 statements, 2,000 citations and 5,000 passages. The largest sample of the public sets
has 2,417."""

MAX_SHORT_ANSWER_CHARACTERS = 1_000
MAX_SHORT_PASSAGES_CHARACTERS = 30_000
"""Characters up to which the work on a text takes a few milliseconds."""

_thread = FairThread("trustassay-text")
"""A single thread: each further thread that runs Python code delays the event loop more."""


@dataclass(frozen=True, slots=True)
class TextLimits:
    """How much text a sample may have; a longer one fails with the kind ``too_long``."""

    answer: int = MAX_ANSWER_CHARACTERS
    """Characters of the question, of the response, and of each gold or reference answer. The other
    limits are in proportion: ten times as many characters of all passages together and of all gold
    and reference answers together, and the counts in ``_CHARACTERS_PER``."""

    def check(self, sample: Sample) -> None:
        """Raise AssessmentError if a sample is too long; only lengths are read."""
        # Three kinds of limit: on each text by itself, on texts together, and on how many there
        # are. The order decides which limit the message names.
        for name, text in (("question", sample.question), ("response", sample.response or "")):
            self._check_characters(name, len(text), 1)
        compared_lengths = list(map(len, _iterate_compared_texts(sample)))
        self.check_count("gold and reference answers", len(compared_lengths))
        self._check_characters("a gold or reference answer", max(compared_lengths, default=0), 1)
        self._check_characters(
            "gold and reference answers", sum(compared_lengths), TOTAL_CHARACTERS_FACTOR
        )
        documents = sample.documents or ()
        self.check_count("passages", len(documents))
        lengths = (len(document.text) + len(document.title or "") for document in documents)
        self._check_characters("passages", sum(lengths), TOTAL_CHARACTERS_FACTOR)

    def check_count(self, what: str, number: int) -> None:
        """Raise AssessmentError if a sample has too many of ``what``."""
        # At least one, so that a small limit does not exclude every sample.
        most = max(1, int(self.answer / _CHARACTERS_PER[what]))
        if number > most:
            raise _build_too_long_error(f"{number:,} {what} (at most {most:,})")

    def _check_characters(self, what: str, length: int, times: int) -> None:
        if length > self.answer * times:
            raise _build_too_long_error(
                f"{what}: {length:,} characters (at most {self.answer * times:,})"
            )


USUAL_LIMITS = TextLimits()


def _build_too_long_error(excess: str) -> AssessmentError:
    return AssessmentError(f"too long to assess: {excess}; --longest-answer allows more", TOO_LONG)


def _iterate_compared_texts(sample: Sample) -> Iterator[str]:
    """Yield the texts that a response is compared with."""
    for aliases in (*sample.answers, *sample.references.values()):
        yield from aliases
    yield from sample.claims
    yield from sample.wrong_answers
    yield from sample.corrected_answers
    yield from sample.incorrect_answers
    yield from sample.resamples


class TextWork:
    """Calls functions that work on texts in the event loop, or in a thread where they are long.

    Both serve their callers in turn, and neither blocks the event loop.

    Args:
        characters: the length of the texts, by which turns are shared.
        long: whether to use the thread.
    """

    def __init__(self, characters: int, *, long: bool) -> None:
        self._long, self._characters = long, characters

    @classmethod
    def for_sample(cls, sample: Sample) -> "TextWork":
        """Return the one for a sample, by the length of its texts."""
        # Lengths are enough to decide, and cost nothing.
        passages = sum(len(document.text) for document in sample.documents or ())
        lengths = [*map(len, (sample.question, sample.response or ""))]
        lengths += map(len, _iterate_compared_texts(sample))
        long = max(lengths) > MAX_SHORT_ANSWER_CHARACTERS
        return cls(passages + sum(lengths), long=long or passages > MAX_SHORT_PASSAGES_CHARACTERS)

    async def __call__(self, function: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
        """Call a function with these arguments and return its result."""
        run = _thread.run if self._long else run_in_turn
        return await run(lambda: function(*args, **options), max(self._characters, 1))
