"""Formats values as text that is safe to show.

Every text on a page may be hostile. Characters that a browser would hide, or that would reorder the
text around them, are spelled out as in ``U+202E``.
"""

import math
import re
import unicodedata
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape

# Controls, bidirectional marks, embeddings and isolates, invisible separators, lone surrogates,
# and the tag characters that carry text nobody sees. The joiners U+200C and U+200D stay: scripts
# and emoji are spelled with them.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]+"
)
HIDDEN_CHIP = Markup('<span class="hidden-character" title="{}">{}</span>')

NOT_A_NUMBER = "–"
NO_BREAK = "\N{NARROW NO-BREAK SPACE}"

LONG_TEXT = 900
"""Characters up to which a text is shown without folding; of a longer one two thirds of them are
visible before a reader opens it."""


def visible(text: str) -> Markup:
    """Return ``text`` escaped, with each run of hidden characters as one visible chip."""
    text = text.replace("\r\n", "\n")
    pieces = []
    position = 0
    for match in HIDDEN.finditer(text):
        # Twenty names are enough for a title; a run may have thousands of characters.
        names = (unicodedata.name(c, "control character").lower() for c in match[0][:20])
        chip = HIDDEN_CHIP.format(cut(", ".join(dict.fromkeys(names)), 200), _spell_out(match[0]))
        pieces += [escape(text[position : match.start()]), chip]
        position = match.end()
    return Markup("").join([*pieces, escape(text[position:])])


def split_code(text: str) -> list[str]:
    """Return the pieces of a text between its backticks: every second one is code.

    Without a pair for each backtick the text is one piece.
    """
    pieces = text.split("`")
    return pieces if len(pieces) % 2 else [text]


def mark_code(text: str) -> Markup:
    """Return ``text`` like :func:`visible`, with what stands between backticks as code."""
    return Markup("").join(
        Markup("<code>{}</code>").format(visible(piece)) if place % 2 else visible(piece)
        for place, piece in enumerate(split_code(text))
    )


def spell_out_hidden(value: Any) -> Any:
    """Spell out hidden characters in plain text, for text and attributes.

    The templates' environment passes every expression through this function, so that a template
    that forgets :func:`visible` is still safe and can still be encoded.
    """
    if isinstance(value, str) and not isinstance(value, Markup):
        return HIDDEN.sub(lambda match: f"‹{_spell_out(match[0])}›", value)
    return value


def cut(text: str, length: int) -> str:
    """Return ``text`` on one line, shortened to ``length`` characters with an ellipsis."""
    # Cut first: splitting a megabyte to show sixty characters would be slow.
    text = " ".join(text[: 4 * length].split())
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def cut_between_words(text: str, length: int) -> str:
    """Return the first ``length`` characters of a text up to the end of a word, with an ellipsis
    if it goes on."""
    if len(text) <= length:
        return text
    # One character more: the last word may end there.
    return f"{text[: length + 1].rpartition(' ')[0] or text[:length]}…"


def split_long(text: str, longest: int = LONG_TEXT) -> tuple[str, str]:
    """Return ``text`` in two parts, the second one empty unless the text is long.

    The cut is at white space if there is any; the two parts joined are the text.
    """
    if len(text) <= longest:
        return text, ""
    at = 2 * longest // 3
    # In the second half of the head, so that it does not get too short.
    space = max(text.rfind(mark, at // 2, at) for mark in " \n\t")
    if space > 0:
        at = space + 1
    # A combining accent must not be separated from its letter.
    while at < len(text) and unicodedata.combining(text[at]):
        at += 1
    return text[:at], text[at:]


def number(value: float, digits: int = 1) -> str:
    """Format a number with thousands separators; an integer without decimals."""
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return NOT_A_NUMBER
    text = f"{value:,.{digits}f}"
    # "-0.0" after rounding is "0.0".
    return text.removeprefix("-") if not text.strip("-0.,") else text


def figure(value: float, unit: str, digits: int = 1) -> str:
    """Format a figure; one without a unit between -1 and 1, such as gamma, with three decimals."""
    # Counts (int) and percentages keep their format.
    if not unit and not isinstance(value, int) and abs(value) < 1:
        digits = 3
    return measure(value, unit, digits)


def format_figure(value: float, unit: str, sign: str = "") -> str:
    """Format a figure: percentages and degrees with one decimal, other numbers with three.

    sign: ``+`` for a change, which is then written with its sign.
    """
    # Counts have separators; a change of a count is written with its sign and decimals.
    if isinstance(value, int) and not sign:
        return f"{value:,}"
    return f"{value:{sign}.{1 if unit in ('%', '°') else 3}f}"


def measure(value: float, unit: str, digits: int = 1) -> str:
    """Format a number with its unit, joined by a space that does not break."""
    return f"{number(value, digits)}{NO_BREAK}{unit}" if unit else number(value, digits)


def score_text(score: float | None) -> str:
    """Format a score: two decimals, or an exponent where it would read as zero."""
    if score is None or not math.isfinite(score):
        return NOT_A_NUMBER
    # It would be rounded to 0.00.
    if 0 < abs(score) < 0.005:
        return f"{score:.1e}"
    return number(float(score), 2)


def p_text(p: float) -> str:
    """Format a p-value: two decimals, small ones with two digits, or "<0.0001"."""
    if p < 0.0001:
        return "<0.0001"
    return f"{p:.2f}" if p >= 0.1 else f"{p:.2g}"


def ends_text(interval: tuple[float, float] | None, sign: str = "", digits: int = 3) -> str:
    """Format the ends of an interval, ``0.650 to 0.770``; empty without one."""
    if interval is None:
        return ""
    return " to ".join(f"{end:{sign}.{digits}f}" for end in interval).replace("-", "−")


def with_interval(value: float, interval: tuple[float, float] | None, digits: int = 3) -> str:
    """Format an estimate with its interval: ``0.712 (0.650 to 0.774)``."""
    text = number(value, digits)
    if interval:
        text += f" ({number(interval[0], digits)} to {number(interval[1], digits)})"
    return text


def with_error(value: float, error: float | None, digits: int = 3) -> str:
    """Format a mean with its standard error in its last digits: 0.063 and 0.004 as ``0.063(4)``.

    Where an error above 0 would round to 0, there are more decimals, up to ten. An error of exactly
    0 is ``(0)``. Without an error, as of a single value, the value has no parentheses.
    """
    if not math.isfinite(value):
        return NOT_A_NUMBER
    if error is None or not math.isfinite(error):
        return number(float(value), digits)
    # Up to ten decimals: an error of 1e-12 is shown as (0).
    while error > 0 and round(error * 10**digits) == 0 and digits < 10:
        digits += 1
    return f"{number(float(value), digits)}({round(error * 10**digits)})"


def _spell_out(run: str) -> str:
    parts = []
    for character, repeats in groupby(run):
        times = sum(1 for _ in repeats)
        parts.append(f"U+{ord(character):04X}" + (f" ×{times:,}" if times > 1 else ""))
    return " ".join(parts)
