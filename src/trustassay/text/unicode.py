"""Folds Unicode: characters that look the same, or mean the same, become the same characters.

Both an answer and its passages are folded before anything compares or reads them.
"""

import re
import unicodedata

from trustassay.text.mapped import MappedText

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff™®©]"
)
"""Soft hyphens, zero-width characters, marks of direction, variation selectors, trade marks."""
_QUOTES = {"‘": "'", "’": "'", "‚": "'", "‛": "'", "“": '"', "”": '"', "„": '"', "‟": '"'}
_QUOTE = re.compile(f"[{''.join(_QUOTES)}]")
_FRACTION = re.compile(r"(?<=(\d))?[\u00bc-\u00be\u2150-\u215e]")
_POWER = re.compile(r"(?<=[\w)])([⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_MARKS = "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u064b-\u065f\u1160-\u11ff\u3099\u309a]"
_MARKED_LETTER = re.compile(rf".{_MARKS}+", re.DOTALL)
"""A character with combining marks behind it, which is one letter in composed form."""
# Any character outside of ASCII with its marks: these are normalised one by one, so that the
# offsets of a letter stay with it.
_LETTER = re.compile(rf"[^\x00-\x7f]{_MARKS}*|.{_MARKS}+", re.DOTALL)
_MINUS = re.compile(r"(?<![\w)%])(?:−\s?|[–‒—﹣－])(?=[$€£]?\d)|[−‒﹣－\u2010]")
"""A dash before a number with nothing before it ("–5"), signs that are a minus everywhere, and
typographic hyphens."""
# "1914–18": a dash between digits.
_RANGE = re.compile(r"(?<=\d)\s?[–‒—]\s?(?=\d)")
# "minus 20", but not "5 minus 3".
_SPELLED_MINUS = re.compile(r"(?<!\d )\bminus (?=\d)", re.IGNORECASE)
_BOOKED_MINUS = re.compile(r"\((\d[\d.,]*)\)(?=\s?%)")
"""A loss as accountants write it: "(3.2)%"."""


def fold(text: MappedText) -> MappedText:
    """Return a text in composed compatibility form (NFKC), with one sign for each meaning.

    * Invisible characters are dropped. Typographic quotes become ASCII.
    * A minus is a hyphen, whatever dash was written, or "minus 20", or "(3.2)%". A dash between
      digits is a hyphen, too.
    * Fractions are spelled (``½`` is ``1/2``, ``3½`` is ``3 1/2``), and so are powers: ``m²`` is
      ``m^2``.
    """
    if not text.text.isascii():
        # The order matters: invisible characters would part a letter from its marks, and ranges
        # must come before minus signs, which would take their dashes.
        text = text.sub(_INVISIBLE, "")
        text = text.sub(_QUOTE, lambda match: _QUOTES[match[0]])
        text = text.sub(_MARKED_LETTER, lambda match: unicodedata.normalize("NFC", match[0]))
        # NFKC would make "31/2" of "3½", and "m2" of "m²".
        text = text.sub(_FRACTION, _spell_fraction)
        text = text.sub(_POWER, lambda match: "^" + unicodedata.normalize("NFKC", match[0]))
        text = text.sub(_LETTER, lambda match: unicodedata.normalize("NFKC", match[0]))
        text = text.sub(_RANGE, "-").sub(_MINUS, "-")
    return text.sub(_SPELLED_MINUS, "-").sub(_BOOKED_MINUS, r"-\1")


def _spell_fraction(match: re.Match[str]) -> str:
    # NFKC gives U+2044, the fraction slash. A blank parts the fraction from a digit before it.
    spelled = unicodedata.normalize("NFKC", match[0]).replace("\u2044", "/")
    return f" {spelled}" if match[1] else spelled


def fold_text(text: str) -> str:
    """Return a text as :func:`fold` changes it."""
    return fold(MappedText.of(text)).text
