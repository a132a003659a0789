"""In which language is a text? For models that read one language, and would misjudge others."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

__all__ = ["ENGLISH", "OTHER_LANGUAGE", "language_of"]

ENGLISH = "en"
OTHER_LANGUAGE = "other_language"
"""The only part of the assessment of an answer that a metric's models do not read."""
LATIN = "la"
"""Left out: names of species and elements, markup and filler text are taken for it."""
SHORT = 5
"""Words up to which an answer's language is told with what it answers."""
ALONE, TOGETHER = -2.0, -1.0
"""Log-odds of English below which a text is in another language, alone and with its context."""
CERTAIN = 0.7
"""Log-odds of English from which a longer text is English without a look at its context."""
_WORD = re.compile(r"[^\W\d_]{2,}")
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
    if len(_WORD.findall(text)) > SHORT:
        odds, other = _odds(text)
        if odds <= ALONE or odds >= CERTAIN:
            return other if odds <= ALONE else ENGLISH
    if not any(map(_WORD.search, context)):
        return None
    odds, other = _odds("\n".join((text, *context)))
    return other if odds < TOGETHER else ENGLISH


def _odds(text: str) -> tuple[float, str]:
    """Return the log-odds of English against the likeliest other language, and which that is."""
    chances = dict(_identifier().rank(text[:READ]))
    english = chances.pop(ENGLISH)
    other = max(chances, key=chances.__getitem__)
    return math.log((english + 1e-9) / (chances[other] + 1e-9)), other


def _other_script(text: str) -> bool:
    """Whether most letters of a text are not Latin (nor Greek letters of formulas)."""
    letters = [letter for letter in text if letter.isalpha()]
    others = [letter for letter in letters if letter > "\u036f" and not _latin_or_greek(letter)]
    return 2 * len(others) > len(letters)


def _latin_or_greek(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(("LATIN", "GREEK", "FULLWIDTH LATIN"))


@cache
def _identifier() -> Any:
    """Return the identifier for the languages of ISO 639-1: with those that have a code of three
    letters, English is often taken for a Creole, and Chinese for Wu.
    """
    from py3langid import langid

    found = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
    found.set_languages([code for code in found.labels if len(code) == 2 and code != LATIN])
    return found
