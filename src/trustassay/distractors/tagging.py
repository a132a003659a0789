"""Words of a text with their places and parts of speech, tagged in context by TextBlob.

TextBlob's pattern tagger is a lexicon with rules of context (Brill's form); it brings its data.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

__all__ = ["FUNCTION_TAGS", "FUNCTION_WORDS", "Token", "tagged"]

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*(?:st|nd|rd|th|s)?\b|[^\W_]+(?:['’.&][^\W_]+)*|[^\w\s]|_")

FUNCTION_TAGS = frozenset("CC DT EX IN LS MD PDT POS PRP PRP$ RP SYM TO UH WDT WP WP$ WRB".split())
FUNCTION_WORDS = frozenset(
    "a an the and or but nor not no yes of in on at by for from to into with as than that this "
    "these those there here it its he him his she her they them their we us our you your i me my "
    "who whom whose which what when where why how is are was were be been being am has have had "
    "having do does did doing will would shall should can could may might must also so such then "
    "s t just very more most some any each other own same both all only".split()
)
"""Words that carry no subject of their own."""


class Token(NamedTuple):
    """A word or sign ``text[start:end]`` and its Penn Treebank tag."""

    text: str
    start: int
    end: int
    tag: str

    @property
    def word(self) -> bool:
        """Whether it is a word or a number, and no sign."""
        return self.text[0].isalnum()

    @property
    def functional(self) -> bool:
        """Whether it only holds the sentence together."""
        return self.tag in FUNCTION_TAGS or self.text.lower() in FUNCTION_WORDS


def tagged(text: str) -> list[Token]:
    """Return the tokens of a text.

    A word in small letters that is known only as a name is tagged as one (``wisconsin``).
    """
    found = list(_TOKEN.finditer(text))
    if not found:
        return []
    parser, lexicon = _tagger()
    tags = [str(tag) for _, tag in parser.find_tags([match[0] for match in found])]
    return [
        Token(match[0], match.start(), match.end(), _name_tag(match[0], lexicon) or tag)
        for match, tag in zip(found, tags, strict=True)
    ]


def _name_tag(word: str, lexicon: Any) -> str | None:
    """Return the tag of a name that is known by its capital alone (``Chinese``, ``wisconsin``)."""
    tag = lexicon.get(word.capitalize())
    if tag is None or word.lower() in lexicon:
        return None
    if word.islower():
        return str(tag) if tag in ("NNP", "NNPS") else None
    return "NNP" if word == word.capitalize() and tag in ("JJ", "NN") else None


@cache
def _tagger() -> tuple[Any, Any]:
    from textblob.en import lexicon, parser

    len(lexicon)  # it is read when it is first asked for something
    return parser, lexicon
