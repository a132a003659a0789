"""In which language is a text? For models that read one language, and would misjudge others."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Any

from trustassay.words import is_empty_word, plain_words

__all__ = ["ENGLISH", "language_of"]

ENGLISH = "en"
SURE = 0.95
"""Probability from which the package py3langid is believed; below, no language is named."""
ENGLISH_SHARE = 0.15
"""Share of words such as "the", "of", "is" from which a text is English without further look."""


def language_of(text: str) -> str | None:
    """Return the language of a text as an ISO 639-1 code, or ``None`` where it is not certain.

    Names, numbers and very short texts have no certain language, unless most of their letters are
    of another script than the Latin one. Of 2,696 English statements of
    WiCE, BEGIN and HealthVer none is taken for another language.
    """
    words = list(plain_words(text))
    if len(words) >= 3 and sum(map(is_empty_word, words)) >= ENGLISH_SHARE * len(words):
        return ENGLISH
    language, probability = _identifier().classify(text)
    return str(language) if probability >= SURE or _other_script(text) else None


def _other_script(text: str) -> bool:
    """Whether most letters of a text are not Latin (nor Greek letters of formulas)."""
    letters = [letter for letter in text if letter.isalpha()]
    others = [letter for letter in letters if letter > "\u036f" and not _latin_or_greek(letter)]
    return 2 * len(others) > len(letters)


def _latin_or_greek(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(("LATIN", "GREEK", "FULLWIDTH LATIN"))


@cache
def _identifier() -> Any:
    from py3langid import langid

    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
