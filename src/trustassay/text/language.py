"""The language of an answer, where it is certain."""

import math
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

from trustassay.text.grammar import tag_of

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
_QUOTED = re.compile(r"[\"“„«][^\"”“»\n]{1,200}[\"”“»]")
_NAMES = re.compile(r"\b[^\W\d_a-zß-öø-ÿ][^\W\d_]+")
"""Words that begin with a capital letter."""
_ENGLISH = frozenset("the it costs cost is are of per from and with opens closes total".split())
"""Words one of which short English answers have."""
READ = 1000
"""Characters that are read of a text, and of a text with its context."""


def language_of(text: str, context: Sequence[str] = ()) -> str | None:
    """Return the language of an answer as an ISO 639 code, or ``None`` where it is not certain.

    An answer of up to five words, one of names, and one whose words leave it open, has the language
    of what stands around it: names, numbers and quotations have none of their own. A text of which
    most letters are of another script than the Latin one needs no context.

    Args:
        text: the answer.
        context: what it answers: the question, then the passages.
    """
    text = text[:READ]
    if _other_script(text):
        return _odds(text)[1]
    words = _ENGLISH_WORD.findall(text)
    names = sum(word[0].isupper() for word in words)
    has_own = len(words) > SHORT and 10 * names < 9 * len(words)  # not made of names alone
    if has_own:
        odds, other = _odds(text)
        if odds <= ALONE or odds >= CERTAIN:
            return other if odds <= ALONE else ENGLISH
    if not any(map(_ENGLISH_WORD.search, context)):
        return None
    texts = [text, *context]
    if not has_own:
        texts = [_NAMES.sub(" ", _QUOTED.sub(" ", one)) for one in texts]
    odds, other = _odds("\n".join(texts))
    is_other = odds < IN_CONTEXT and not (_has_english_words(text) and not has_own)
    return other if is_other else ENGLISH


def _has_english_words(text: str) -> bool:
    """Whether nearly all words of a text are English: of few words the odds are those of chance."""
    words = [word.lower() for word in _ENGLISH_WORD.findall(text)]
    english = sum(tag_of(word) != "" for word in words)
    return len(words) > 1 and not _ENGLISH.isdisjoint(words) and 3 * english >= 2 * len(words)


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
    names = (unicodedata.name(one, "") for one in letters if one > "\u036f")
    return 2 * sum(not name.startswith(latin) for name in names) > len(letters)


@cache
def _identifier() -> Any:
    """Return the identifier for the languages of ISO 639-1: with those that have a code of three
    letters, English is often taken for a Creole, and Chinese for Wu.
    """
    from py3langid import langid

    result = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
    result.set_languages([code for code in result.labels if len(code) == 2 and code != LATIN])
    return result
