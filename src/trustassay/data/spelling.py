"""Other spellings of known names, ``Ground Truth``, ``actualOutput``, and those of other languages:
``Réponse``, ``質問``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

from trustassay.data.layouts import LAYOUTS, SPELLINGS
from trustassay.data.translated import TRANSLATED

__all__ = ["known_name", "normal", "respellings"]

_CANONICAL = {"id", "question", "response", "documents", "model"}
_SECTIONS = {"inputs", "outputs", "reference_outputs", "answer"}
_KNOWN = frozenset(
    name
    for name in {
        *_CANONICAL,
        *_SECTIONS,
        *(name for names in SPELLINGS.values() for name in names),
        *(name for layout in LAYOUTS for names in layout.fields.values() for name in names),
    }
    if re.fullmatch(r"[a-z_]+", name)
)
"""Names that other spellings are read as."""


def respellings(names: Collection[str], kept: Collection[str]) -> dict[str, str]:
    """Return the names of a record that are read as known ones, by these.

    No name of ``kept`` is among them, and none that would take the place of another field.
    """
    found: dict[str, str] = {}
    for name in names:
        if isinstance(name, str) and name not in _KNOWN and name not in kept:
            known = known_name(name)
            if known in _KNOWN and known not in names:
                found.setdefault(known, name)
    return found


def known_name(name: str) -> str:
    """Return the English name that a name translates, else the name in its normal form."""
    found = normal(name)
    return _TRANSLATED.get(found, found)


def normal(name: str) -> str:
    """Return a name in small letters without accents, its words joined by one underscore each."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    if not parted.isascii():
        letters = unicodedata.normalize("NFKD", parted)
        parted = "".join(one for one in letters if not unicodedata.combining(one))
    return re.sub(r"[\W_]+", "_", parted).strip("_").lower()


_TRANSLATED = {normal(name): known for name, known in TRANSLATED.items()}
