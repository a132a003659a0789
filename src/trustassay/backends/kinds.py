"""Things by their kinds, as ``kinds.toml`` lists them: cities, sports, films, musical instruments.

A word is of a kind if it is a member of its list, if the question asks for the kind (``which
strait``), or if a noun of the kind is part of the name (``Torres Strait``).
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

# "BasketballTeam" of a knowledge base is the noun "basketball team".
_CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SECTIONS_OF_TYPE = {"person": ("bodies",), "place": ("places", "pairs")}
_NAME_SECTIONS = ("places", "bodies", "names", "pairs")
_OF_COUNTRY, _OF_STATE = "city of a country", "city of a state"


class Kinds(NamedTuple):
    """The lists, and how to find one."""

    members: Mapping[str, Sequence[str]]
    """The members of each list by its name."""
    lists_of: Mapping[str, Sequence[str]]
    """The names of the lists of a member, which is written in small letters."""
    list_of_noun: Mapping[str, str]
    """The name of the list of a noun (``movie``: ``film``)."""
    section_of: Mapping[str, str]
    """The section of each list: ``places``, ``bodies`` (of persons), ``names``, ``pairs``; or
    common nouns: ``things``, and ``stuff``, which has no plural."""
    same_as: Mapping[str, Collection[str]]
    """Other names of a thing, or of its whole, by its name (``corn``: ``maize``); all in small
    letters."""

    def find(self, words: str, types: Sequence[str] = ()) -> str:
        """Return the list of the kind of some words, or an empty string.

        Args:
            words: a name, or a common noun in the singular. types: of a knowledge base, or the
                nouns by which the question asks for the words, the most specific one first.
        """
        text = words.lower().removeprefix("the ")
        if ", " in text and (of_pair := self._find_pair(text.rpartition(", ")[2])):
            return of_pair
        nouns = [_spell_type(name) for name in types]
        # What answers "who" or "where" is no film, though one is called so.
        sections = {section for noun in nouns for section in _SECTIONS_OF_TYPE.get(noun, ())}
        lists = [
            name
            for name in self.lists_of.get(text, ())
            if not sections or self.section_of[name] in sections
        ]
        # A member of what is asked for, as a baseball team for a team.
        for noun in nouns:
            for name in lists:
                if name.endswith(noun) or self.list_of_noun.get(noun) == name:
                    return name
        of_types = [self.list_of_noun[noun] for noun in nouns if noun in self.list_of_noun]
        # Exeter is an English town first, although the question asks for a capital.
        if lists and self.section_of.get(next(iter(of_types), "")) == "places":
            return next((name for name in lists if self.section_of[name] == "places"), of_types[0])
        if not lists and (of_member := self.find_member(words, types)[1]):
            return of_member
        if not lists and words[:1].isupper() and (of_name := self._find_by_part(text)):
            return of_name
        return next(iter([*of_types, *lists]), "")

    def find_member(self, words: str, types: Sequence[str]) -> tuple[str, str]:
        """Return a word of several that is of the kind asked for, and its list; else empty texts.

        ``fantasy`` of ``fantasy novel`` is a genre of films, and none of music.
        """
        nouns, parts = [_spell_type(name) for name in types], words.split()
        for part in parts if len(parts) > 1 else ():
            for name in self.lists_of.get(part.lower(), ()):
                is_asked = any(
                    name.endswith(f" {noun}") or self.list_of_noun.get(noun) == name
                    for noun in nouns
                )
                if is_asked and not self.is_of_names(name):
                    return part, name
        return "", ""

    def _find_pair(self, region: str) -> str:
        """Return the list of cities with the kind of region that follows a city's name."""
        lists = self.lists_of.get(region, ())
        # "Atlanta, Georgia": most pairs with a name that is both are American.
        if "state" in lists:
            return _OF_STATE
        return _OF_COUNTRY if "country" in lists else ""

    def _find_by_part(self, text: str) -> str:
        """Return the list of names of which a noun in a name is a part: its last word or its
        first."""
        parts = text.split()
        if len(parts) < 2:
            return ""
        # Two words first: "Harvard Law School" is a law school, and no school of any kind.
        ends = (" ".join(parts[-2:]), parts[-1], parts[0])
        lists = (self.list_of_noun.get(noun, "") for noun in ends)
        return next((name for name in lists if self.is_of_names(name)), "")

    def is_same(self, words: str, other: str) -> bool:
        """Whether two names are known to be names of one thing, or of a thing and its whole."""
        first, second = (text.lower().removeprefix("the ") for text in (words, other))
        return second in self.same_as.get(first, ())

    def is_of_names(self, name: str) -> bool:
        """Whether a list is one of names."""
        return self.section_of.get(name) in _NAME_SECTIONS


def _spell_type(name: str) -> str:
    """Return the noun of a type: ``basketball team`` for ``DBpedia:BasketballTeam``."""
    return _CAMEL_CASE.sub(" ", name.rpartition(":")[2]).lower()


@cache
def load_kinds() -> Kinds:
    """Return the lists, which are read once."""
    text = files("trustassay.backends").joinpath("kinds.toml").read_text("utf-8")
    sections: dict[str, Mapping[str, str]] = tomllib.loads(text)
    same_as = defaultdict[str, set[str]](set)
    for group in sections.pop("same")["names"].lower().split(";"):
        names = {" ".join(name.split()) for name in group.split(",")}
        for name in names:
            same_as[name] |= names
    members: dict[str, Sequence[str]] = {}
    lists_of: dict[str, list[str]] = {}
    list_of_noun: dict[str, str] = {}
    section_of: dict[str, str] = {}
    for section, lists in sections.items():
        for nouns, listed in lists.items():
            name, *others = nouns.split(", ")
            section_of[name] = section
            separator = ";" if section == "pairs" else ","
            members[name] = [" ".join(member.split()) for member in listed.split(separator)]
            for noun in (name, *others):
                list_of_noun.setdefault(noun, name)
            for member in members[name]:
                lists_of.setdefault(member.lower().removeprefix("the "), []).append(name)
    return Kinds(members, lists_of, list_of_noun, section_of, same_as)
