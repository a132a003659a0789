"""The language of an answer, where it is certain."""

import math
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

from trustassay.text.grammar import find_tag

ENGLISH = "en"
# Names of the most used languages by their ISO 639 codes.
_LANGUAGE_NAMES = {
    "af": "Afrikaans", "ar": "Arabic", "az": "Azerbaijani", "be": "Belarusian", "bg": "Bulgarian",
    "bn": "Bengali", "bs": "Bosnian", "ca": "Catalan", "cs": "Czech", "cy": "Welsh",
    "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish",
    "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French",
    "ga": "Irish", "gl": "Galician", "gu": "Gujarati", "he": "Hebrew", "hi": "Hindi",
    "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian", "is": "Icelandic",
    "it": "Italian", "ja": "Japanese", "ka": "Georgian", "kk": "Kazakh", "km": "Khmer",
    "kn": "Kannada", "ko": "Korean", "lb": "Luxembourgish", "lt": "Lithuanian", "lv": "Latvian",
    "mk": "Macedonian", "ml": "Malayalam", "mn": "Mongolian", "mr": "Marathi", "ms": "Malay",
    "ne": "Nepali", "nl": "Dutch", "nn": "Norwegian Nynorsk", "no": "Norwegian", "pa": "Punjabi",
    "pl": "Polish", "ps": "Pashto", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
    "si": "Sinhala", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian",
    "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai",
    "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese",
    "zh": "Chinese",
}  # fmt: skip
OTHER_LANGUAGE = "other_language"
"""The name of the assessment part for an answer in another language, which no model judges."""
LATIN = "la"
"""Left out: names of species and elements, markup and filler text are taken for it."""
MAX_SHORT_ANSWER_WORDS = 5
"""Words up to which an answer is too short for its language to be told without the question."""
MIN_LOG_ODDS_ALONE, MIN_LOG_ODDS_IN_CONTEXT = -2.0, -1.0
"""Log-odds of English below which a text is in another language, alone and with its context."""
CERTAIN_LOG_ODDS = 0.7
"""Log-odds of English from which a longer text is English without a look at its context."""
_ENGLISH_WORD = re.compile(r"[^\W\d_]{2,}")
_QUOTED = re.compile(r"[\"“„«][^\"”“»\n]{1,200}[\"”“»]")
_NAMES = re.compile(r"\b[^\W\d_a-zß-öø-ÿ][^\W\d_]+")
"""Words that begin with a capital letter."""
_ENGLISH = frozenset("the it costs cost is are of per from and with opens closes total".split())
"""Function words; a short English answer has at least one of them."""
MAX_CHARACTERS_READ = 1000
"""Characters that are read of a text, and of a text with its context."""


def name_language(code: str) -> str:
    """Return the English name of a language; of a rare one its code: ``the language wa``."""
    return _LANGUAGE_NAMES.get(code, f"the language {code}")


def detect_language(text: str, context: Sequence[str] = ()) -> str | None:
    """Return the language of an answer as an ISO 639 code, or ``None`` where it is not certain.

    The language of an answer of up to five words, of an answer that consists of names, and of an
    answer whose words do not decide is told together with its context, because names, numbers and
    quotations have no language of their own. A text in another script than the Latin one needs no
    context.

    Args:
        text: the answer; only its first 1,000 characters are read.
        context: the question, then the passages.
    """
    text = text[:MAX_CHARACTERS_READ]
    if _is_other_script(text):
        return _compute_log_odds(text)[1]
    words = _ENGLISH_WORD.findall(text)
    names = sum(word[0].isupper() for word in words)
    # Nine capitalised words out of ten are a list of names: "Marta Lind, Olof Berg". Such a text
    # does not show its language.
    is_names = 10 * names >= 9 * len(words)
    has_own_language = len(words) > MAX_SHORT_ANSWER_WORDS and not is_names
    if has_own_language:
        odds, other = _compute_log_odds(text)
        # Between the two thresholds the words of the answer leave it open, and the context decides.
        if odds <= MIN_LOG_ODDS_ALONE:
            # Foreign names do not make an English sentence one in another language.
            is_english = _compute_log_odds(_NAMES.sub(" ", text))[0] >= CERTAIN_LOG_ODDS
            return ENGLISH if is_english else other
        if odds >= CERTAIN_LOG_ODDS:
            return ENGLISH
    # A context without words, such as numbers alone, cannot decide anything.
    if not any(map(_ENGLISH_WORD.search, context)):
        return None
    texts = [text, *context]
    # Names and quotations in another language do not make the answer one in that language.
    if not has_own_language:
        texts = [_NAMES.sub(" ", _QUOTED.sub(" ", context_text)) for context_text in texts]
    # The texts are read as one, up to the limit of characters; the answer comes first.
    odds, other = _compute_log_odds("\n".join(texts))
    # An answer of English words stays English, whatever the language of its passages is.
    is_other = odds < MIN_LOG_ODDS_IN_CONTEXT and not _has_english_words(text)
    return other if is_other else ENGLISH


def _has_english_words(text: str) -> bool:
    """Whether at least two thirds of the words are English, among them a function word.

    The log-odds of a text of a few words depend on chance, so the lexicon decides here.
    """
    words = [word.lower() for word in _ENGLISH_WORD.findall(text)]
    english = sum(find_tag(word) != "" for word in words)
    return len(words) > 1 and not _ENGLISH.isdisjoint(words) and 3 * english >= 2 * len(words)


def _compute_log_odds(text: str) -> tuple[float, str]:
    """Return the log-odds of English against the likeliest other language, and which that is."""
    chances = dict(_load_identifier().rank(text[:MAX_CHARACTERS_READ]))
    english = chances.pop(ENGLISH)
    other = max(chances, key=chances.__getitem__)
    # The addend keeps the ratio finite where the identifier gives a probability of 0.
    return math.log((english + 1e-9) / (chances[other] + 1e-9)), other


def _is_other_script(text: str) -> bool:
    """Whether most letters of a text are not Latin (nor Greek letters of formulas)."""
    letters = [character for character in text if character.isalpha()]
    latin = ("LATIN", "GREEK", "FULLWIDTH LATIN")
    # Letters up to U+036F are Latin, with their modifiers; only later ones need the slow look-up.
    names = (unicodedata.name(letter, "") for letter in letters if letter > "\u036f")
    return 2 * sum(not name.startswith(latin) for name in names) > len(letters)


@cache
def _load_identifier() -> Any:
    """Return the identifier for the languages of ISO 639-1: with those that have a code of three
    letters, English is often taken for a Creole, and Chinese for Wu.
    """
    from py3langid import langid

    result = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
    result.set_languages([code for code in result.labels if len(code) == 2 and code != LATIN])
    return result
