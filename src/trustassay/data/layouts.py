"""What other tools call the fields of a record: layouts, spellings, other languages, guesses.

A record is recognised by its keys (:mod:`trustassay.data.recognising`).
"""

import re
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

from trustassay.sample import CANONICAL_FIELDS, Problem, SampleError

Converter = Callable[[Any], Any]
NAMES: Mapping[str, Any] = tomllib.loads(
    files("trustassay.data").joinpath("names.toml").read_text(encoding="utf-8")
)
"""Names of fields and words of labels, by what they are."""

TEXT_FIELDS, STRUCTURED_FIELDS = CANONICAL_FIELDS[:4], CANONICAL_FIELDS[4:12]
"""Those of one text each, and those of lists and objects."""
PROSE_NAMES = frozenset({"reference", "expected_output", "expectedOutput", "ground_truth", "ideal"})
"""Other tools' names of one text that may fill a list field here."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How one tool writes a record.

    One of the sets of keys in ``telling`` tells the layout if all of them are there; one of
    ``telling_without_question`` does so in a record without ``question``. ``fields`` gives, for a
    canonical field, the tool's names for it, the preferred one first; ``documents`` the same for
    the fields of a document; ``converters`` turn the value of a tool's field into the canonical
    one, and raise ``SampleError`` (with an empty field name) where that cannot be done. Both are
    followed by :data:`SPELLINGS` and :data:`CONVERTERS`, which hold for every layout.
    """

    name: str
    telling: tuple[frozenset[str], ...]
    fields: Mapping[str, tuple[str, ...]]
    documents: Mapping[str, str] = field(default_factory=dict)
    converters: Mapping[str, Converter] = field(default_factory=dict)
    telling_without_question: frozenset[str] = frozenset()


def _short_answers(pairs: Any) -> Any:
    """Turn ALCE's sub-questions, each with its short answers, into lists of aliases."""
    if isinstance(pairs, Mapping):  # columns, as `datasets` may store them
        return pairs.get("short_answers")
    if not isinstance(pairs, list | tuple):
        raise SampleError([Problem("", "expected a list of questions with short_answers")])
    return [p.get("short_answers") if isinstance(p, Mapping) else None for p in pairs]


def _one_question(value: Any) -> Any:
    """Refuse the messages of a conversation; the parser checks everything else."""
    if isinstance(value, list | tuple):
        message = "expected one question, got a list of messages (multi-turn is not supported)"
        raise SampleError([Problem("", message)])
    return value


def _unless_blank(value: Any) -> Any:
    return None if isinstance(value, str) and not value.strip() else value


def _in_list(value: Any) -> Any:
    """Split a list that is written with semicolons; a list stays as it is."""
    if not isinstance(value, str):
        return value
    return [text.strip() for text in value.split(";") if text.strip()]


def _one_of_list(value: Any) -> Any:
    """Return the same as the aliases of one answer: each is right by itself."""
    result = _in_list(value)
    return [result] if result and isinstance(result, list) else result


def _not_hallucinated(value: Any) -> Any:
    """Turn yes or true, there is a hallucination, into the label of a wrong answer."""
    if value is None or isinstance(value, bool):
        return None if value is None else int(not value)
    known = {"yes": 0, "no": 1}
    said = value.strip().casefold() if isinstance(value, str) else ""
    if said not in known:
        message = "expected yes, no, true or false (whether the response is hallucinated)"
        raise SampleError([Problem("", f"{message}, got {str(value)[:40]!r}")])
    return known[said]


def _barred(value: Any) -> Any:
    """Split the passages that DeepEval joins with bars where it writes a table."""
    is_list = not isinstance(value, str) or value.lstrip().startswith("[")
    return value if is_list or not value.strip() else value.split("|")


def _any_of(value: Any) -> Any:
    """Read one right answer, or a list of which each is right by itself."""
    if isinstance(value, list | tuple):
        return [list(value)] if value else None
    return None if _unless_blank(value) is None else [value]


def _several_texts(value: Any) -> Any:
    """Return a list of texts; a number of samples, and anything else, is not what was replied."""
    listed = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    return value if listed else None


SPELLINGS: Mapping[str, tuple[str, ...]] = {
    known: tuple(names) for known, names in NAMES["spellings"].items()
}
"""Names of fields that need no other key beside them, after those of the record's layout."""
CONVERTERS: Mapping[str, Converter] = {
    **dict.fromkeys(SPELLINGS["claims"], _unless_blank),
    **dict.fromkeys(SPELLINGS["resamples"], _several_texts),
    "ideal": _any_of,
}
"""What turns the values of these names into canonical ones."""


AMBIGUOUS = frozenset({"source"})
"""Names of documents that mostly hold a link or a title: they count where they hold prose."""

_CONVERTERS = {
    one.__name__: one
    for one in (_short_answers, _one_question, _unless_blank, _in_list, _one_of_list)
} | {one.__name__: one for one in (_not_hallucinated, _barred)}


def _layout(row: Mapping[str, Any]) -> Layout:
    return Layout(
        row["name"],
        tuple(map(frozenset, row["telling"])),
        {known: tuple(names) for known, names in row["fields"].items()},
        row.get("documents", {}),
        {name: _CONVERTERS[f"_{how}"] for name, how in row.get("converters", {}).items()},
        frozenset(row.get("without_question", ())),
    )


LAYOUTS = tuple(map(_layout, NAMES["layouts"]))
# Its documents may bear Trust-Eval's names: flags must not get lost without a word.
CANONICAL = Layout(
    "canonical", (), {}, next(one.documents for one in LAYOUTS if one.name == "Trust-Eval")
)


# ---- other spellings (Ground Truth, actualOutput) and languages (Réponse, 質問) ----

_KNOWN = frozenset(
    name
    for name in {
        *("id", "question", "response", "documents", "model"),
        *("inputs", "outputs", "reference_outputs", "answer"),
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
    result: dict[str, str] = {}
    for name in names:
        if isinstance(name, str) and name not in _KNOWN and name not in kept:
            known = known_name(name)
            if known in _KNOWN and known not in names:
                result.setdefault(known, name)
    return result


def known_name(name: str) -> str:
    """Return the English name that a name translates, else the name in its normal form."""
    result = normal(name)
    return _TRANSLATED.get(result, result)


def normal(name: str) -> str:
    """Return a name in small letters without accents, its words joined by one underscore each."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    if not parted.isascii():
        letters = unicodedata.normalize("NFKD", parted)
        parted = "".join(one for one in letters if not unicodedata.combining(one))
    return re.sub(r"[\W_]+", "_", parted).strip("_").lower()


_TRANSLATED: Mapping[str, str] = {
    normal(name): known for known, names in NAMES["translations"].items() for name in names.split()
}


# ---- guesses of what unknown fields hold, for messages that propose a command ----

_GUESSED = {name: words.split() for name, words in NAMES["guesses"].items()}
_ABOUT = frozenset(_GUESSED.pop("about"))


@lru_cache(maxsize=256)
def guesses(names: tuple[str, ...], taken: tuple[str, ...] = ()) -> Mapping[str, str]:
    """Return the best guess of a name for the question, the response and the documents; records
    are never read by it.

    ``taken`` are names that are known to hold something else.
    """
    free = {name: known_name(name) for name in names if name not in taken}
    free = {name: known for name, known in free.items() if _ABOUT.isdisjoint(known.split("_"))}
    result: dict[str, str] = {}
    for canonical, words in _GUESSED.items():
        by_word = (name for word in words for name, known in free.items() if word in known)
        if (best := next(by_word, None)) is not None:
            result[canonical] = best
            del free[best]
    return result
