"""Formats values as text that is safe to show.

Every text on a page may be hostile. Characters that a browser would hide, or that would reorder the
text around them, are spelled out as in ``U+202E``.
"""

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


def _spell_out(run: str) -> str:
    parts = []
    for character, repeats in groupby(run):
        times = sum(1 for _ in repeats)
        parts.append(f"U+{ord(character):04X}" + (f" ×{times:,}" if times > 1 else ""))
    return " ".join(parts)
