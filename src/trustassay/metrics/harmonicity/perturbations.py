"""Families of perturbations: changes of a prompt that have no meaning, or hardly any.

Each takes the text and a generator and returns a changed text; the same generator state gives the
same text. ``paraphrase`` and ``embeddings`` need a model and are in ``asking.py``.
"""

import json
import string
import sys
import unicodedata
from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from trustassay.errors import UnknownNameError, UsageError, did_you_mean

Perturb = Callable[[str, np.random.Generator], str]
MAX_CHANGES = 3
"""Maximum number of characters added or words changed (Section 3: one to three)."""
LAST_CONTROL = 31
"""The last code of the control characters, and the default limit of ``codes``."""
MAX_DRAWS = 50
"""Draws after which a text cannot be changed, or not into a new one."""
SURROGATES = range(0xD800, 0xE000)
"""Surrogates: a text that contains one alone cannot be encoded and sent."""

CONTROL = "".join(map(chr, range(LAST_CONTROL + 1)))
WHITESPACE = " \t\n\r\u00a0\u2002\u2003\u2009\u200a\u202f\u205f\u3000"
# Syriac, Sinhala, Ethiopic, Cherokee; Ogham, Glagolitic, Yi, Vai.
_RARE_BLOCKS = ((0x0700, 0x0750), (0x0D80, 0x0E00), (0x1200, 0x1380), (0x13A0, 0x1400),
                (0x1680, 0x16A0), (0x2C00, 0x2C60), (0xA000, 0xA490), (0xA500, 0xA640))  # fmt: skip
# The letters left and right of each on a QWERTY keyboard.
_NEIGHBOURS = {
    letter: "".join(row[max(0, i - 1) : i] + row[i + 1 : i + 2])
    for row in ("qwertyuiop", "asdfghjkl", "zxcvbnm")
    for i, letter in enumerate(row)
}


class NoPerturbationError(UsageError):
    """The text cannot be perturbed by this family; the message says why."""


class Family(NamedTuple):
    """A named way to perturb."""

    name: str
    """Its name, as options and messages have it."""
    apply: Perturb
    """The function of a text and a generator."""
    appends: bool = False
    """Whether it only adds text at the end."""


def perturb(text: str, how: Family, rng: np.random.Generator, used: Collection[str] = ()) -> str:
    """Return a text that differs from ``text``, and if possible from those in ``used``.

    Raises NoPerturbationError if fifty draws did not change the text, or it has nothing to change.
    """
    repeated = None
    for _ in range(MAX_DRAWS):
        changed = how.apply(text, rng)
        if not isinstance(changed, str):
            raise NoPerturbationError(f"{how.name} returned {changed!r:.60} instead of a text")
        if changed != text and changed not in used:
            return changed
        # A short text may have few typos: rather repeat a prompt than fail.
        repeated = changed if changed != text else repeated
    if repeated is None:
        raise NoPerturbationError(f"the perturbation {how.name} does not change this text")
    return repeated


def find_family(
    choice: str | Perturb, length: int = MAX_CHANGES, last: int = LAST_CONTROL
) -> Family:
    """Return a family by name, the function ``python:MODULE:FUNCTION``, or wrap a function.

    length: the most characters that are added or mistyped, or words that are replaced. last: the
    last code that ``codes`` draws. Raises UsageError if either does not apply to the family, and
    UnknownNameError for an unknown name.
    """
    if callable(choice) or choice not in FAMILIES:
        result = _wrap_function(choice)
        check_reach(f"the function {result.name}", length, last)
        return result
    check_reach(choice, length, last)
    how = FAMILIES[choice]
    return Family(choice, lambda text, rng: how(text, rng, length, last), choice in APPENDING)


def check_reach(name: str, length: int, last: int) -> None:
    """Raise UsageError where ``length`` or ``last`` is out of range or does not apply."""
    if length < 1:
        raise UsageError("length: expected 1 or more")
    # The default is accepted everywhere, since options always carry a value.
    if length != MAX_CHANGES and name not in FAMILIES:
        raise UsageError(f"length: does not apply to {name}")
    if not 0 <= last <= sys.maxunicode:
        raise UsageError(f"range: expected 0 to {sys.maxunicode}")
    if last != LAST_CONTROL and name != "codes":
        raise UsageError(f"range: applies to the perturbation codes, not to {name}")


def _wrap_function(choice: str | Perturb) -> Family:
    if callable(choice):
        return Family(getattr(choice, "__qualname__", type(choice).__qualname__), choice)
    if choice.startswith("python:"):
        module, _, name = choice.removeprefix("python:").partition(":")
        try:
            function = getattr(import_module(module), name)
        except Exception as error:  # a module may raise anything
            raise UnknownNameError(f"perturbation {choice}: {error}") from None
        if not callable(function):
            raise UnknownNameError(f"perturbation {choice}: {name} is not a function")
        return Family(choice, function)
    # "paraphrase" comes here from a caller without a model: do not suggest it again.
    names = [
        name_of_family
        for name_of_family in (*FAMILIES, "paraphrase", "embeddings")
        if name_of_family != choice
    ]
    raise UnknownNameError(did_you_mean("perturbation", choice, names))


def show_change(original: str, changed: str) -> str:
    """Return what was added, or the changed text, with unprintable characters made visible."""
    # Unchanged where the prompt was not only appended to.
    tail = changed.removeprefix(original)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in tail)


def _append_characters(
    text: str, rng: np.random.Generator, length: int, characters: str, before: str = ""
) -> str:
    """Append ``before`` and one to ``length`` of some characters."""
    picks = rng.integers(0, len(characters), rng.integers(1, length + 1))
    return text + before + "".join(characters[i] for i in picks)


@cache
def _characters_up_to(last: int) -> str:
    return "".join(chr(code) for code in range(last + 1) if code not in SURROGATES)


@cache
def _rare_letters() -> str:
    """Return letters of scripts that are rare in any training data, assigned and visible."""
    points = (chr(i) for first, last in _RARE_BLOCKS for i in range(first, last))
    return "".join(c for c in points if unicodedata.category(c) in {"Lo", "Lu", "Ll"})


def _make_typos(text: str, rng: np.random.Generator, length: int, _: int) -> str:
    """Swap, drop, double or mistype letters inside words of three or more."""
    letters_of_text = list(text)
    # Letters are counted anew each time, as a drop or a double moves them.
    for count in range(rng.integers(1, length + 1)):
        inner = range(1, len(letters_of_text) - 1)
        # Only letters between letters: first and last letters keep a word readable.
        places = [i for i in inner if all(c.isalpha() for c in letters_of_text[i - 1 : i + 2])]
        if places:
            _mistype(letters_of_text, int(rng.choice(places)), rng)
        elif count == 0:
            raise NoPerturbationError("typo: the text has no word with three letters or more")
    return "".join(letters_of_text)


def _mistype(letters: list[str], i: int, rng: np.random.Generator) -> None:
    kind = int(rng.integers(4))
    if kind == 0:
        letters[i], letters[i + 1] = letters[i + 1], letters[i]
    elif kind == 1:
        del letters[i]
    elif kind == 2:
        letters.insert(i, letters[i])
    else:
        near = _NEIGHBOURS.get(letters[i].lower(), string.ascii_lowercase)
        other = near[int(rng.integers(len(near)))]
        letters[i] = other.upper() if letters[i].isupper() else other


@cache
def _read_synonyms() -> Mapping[str, list[str]]:
    folder = files("trustassay.metrics.harmonicity")
    # A file of groups of synonyms, each word of which may replace any other.
    groups: list[list[str]] = json.loads((folder / "synonyms.json").read_text("utf-8"))
    table: dict[str, list[str]] = {}
    for group in groups:
        for word in group:
            table.setdefault(word, []).extend(other for other in group if other != word)
    return table


def synonym_words() -> list[str]:
    """Return the words of the table of synonyms, in order."""
    return sorted(_read_synonyms())


def _replace_synonyms(text: str, rng: np.random.Generator, length: int, _: int) -> str:
    """Replace words by others of the same meaning, from a small English table."""
    words, table = text.split(" "), _read_synonyms()
    cores = [word.strip(string.punctuation) for word in words]
    places = [i for i, core in enumerate(cores) if core.lower() in table]
    if not places:
        raise NoPerturbationError("synonym: no word of the text is in the table of synonyms")
    for i in rng.permutation(places)[: int(rng.integers(1, length + 1))]:
        synonyms = table[cores[i].lower()]
        synonym = synonyms[int(rng.integers(len(synonyms)))]
        # "Big" becomes "Large"; the punctuation around the core stays.
        synonym = synonym.capitalize() if cores[i][0].isupper() else synonym
        words[i] = words[i].replace(cores[i], synonym, 1)
    return " ".join(words)


FAMILIES: Mapping[str, Callable[[str, np.random.Generator, int, int], str]] = {
    "control": lambda text, rng, length, _: _append_characters(text, rng, length, CONTROL),
    "codes": lambda text, rng, length, last: _append_characters(
        text, rng, length, _characters_up_to(last), " "
    ),
    "unicode": lambda text, rng, length, _: _append_characters(
        text, rng, length, _rare_letters(), " "
    ),
    "whitespace": lambda text, rng, length, _: _append_characters(text, rng, length, WHITESPACE),
    "typo": _make_typos,
    "synonym": _replace_synonyms,
}
"""Each takes also a length, and the last code that it draws. A space comes first where the last
word is to stay whole."""
APPENDING = frozenset({"control", "codes", "unicode", "whitespace"})
