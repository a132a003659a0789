"""Enough English grammar to tell whether words have a finite verb, and so state something.

Parts of speech come from the lexicon of textblob (Brill's, 94,000 words), which is read as a file:
importing textblob takes a second, and nothing else of it is needed here.
"""

import re
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from trustassay.errors import BackendError

BE = frozenset("is are was were am".split())
HAVE = frozenset("has have had".split())
DO = frozenset("do does did".split())
MODALS = frozenset("can could will would should shall may might must cannot".split())
AUXILIARIES = BE | HAVE | DO | MODALS
WH_WORDS = frozenset("who whom whose what which when where why how".split())
DEMONSTRATIVES = frozenset("this that these those".split())
SUBJECT_PRONOUNS = frozenset("it they he she we you i there".split()) | DEMONSTRATIVES
DETERMINERS = frozenset("the a an my your our their his her its".split()) | DEMONSTRATIVES
THIRD_PERSON = frozenset("it he she they its his her their".split()) | DEMONSTRATIVES
"""Words that stand for something named elsewhere."""
PREPOSITIONS = frozenset(
    "at in on for from to into onto until till since by with without within of about under over "
    "between during before after per".split()
)
_TAGGED_AS_NOUNS = frozenset(
    "costs works ends means plans needs takes stays rates ranks stands calls links reaches houses "
    "measures features names lists dates reports states shows counts equals hosts seats stocks "
    "supports limits charges".split()
)
"""Forms of the third person that the lexicon has as nouns."""
_SHORT_FORM = re.compile(
    r"(?:\w+n['’]t|(?:it|he|she|that|there|here|this|who|what)['’]s|\w+['’](?:re|m|ve|ll|d))"
)
"""A word with its auxiliary: "isn't", "it's", "they're"; the "s" of a noun is a genitive."""
# Words before a verb form that show it is not finite: "and sold", "being sold".
_NO_SUBJECT = frozenset("and or not no being been".split())
_ALSO_VERBS = frozenset(
    "open close start run work travel fall rise drive cost cause need help show pay visit play "
    "bark drop use offer charge last end stay rank sound stop".split()
)
"""Words that the lexicon has as nouns or adjectives, and that are verbs behind a plural."""
# "The museum costs extra", "the rate stays up": words by which a noun form is a verb after all.
_BEHIND_VERBS = frozenset(
    "extra free nothing more less up out daily early late only not no".split()
)
_ADVERBS = frozenset("never always often also still already usually ever now then soon".split())
"""Adverbs that may stand between a subject and its verb."""
# Words with inner apostrophes and hyphens ("isn't", "well-known"), and numbers with signs ("-3.5%",
# "$1,000", "15:30").
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|[-+]?[$€£]?\d(?:[\d.,:]*\d)?%?")
# These begin instructions, although the lexicon has several of them as nouns or participles.
_IMPERATIVES = frozenset(
    "use press click set call check turn run try start stop call visit store".split()
)
_NUMBER = re.compile(r"[-+$€£]*\d")
_BEFORE_MONTH = PREPOSITIONS | {""}
"""Words before "May" that make it the month; the empty string stands for the start of a text."""
# "nobody", "anything", "everyone": a form in "s" behind them is a verb.
_ANYBODY = frozenset(
    f"{some}{one}" for some in ("no", "any", "every", "some") for one in ("body", "thing", "one")
) | {"none", "one"}
_PLURAL_PRONOUNS = frozenset("we you they i".split())


def find_words(text: str) -> list[str]:
    """Return the words and numbers of a text as they are written."""
    return _WORD.findall(text)


@cache
def _load_lexicon() -> dict[str, str]:
    spec = find_spec("textblob")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / "en" / "en-lexicon.txt"
        # A line is "WORD TAG [OTHER TAGS]", the most frequent tag first; ";;;" begins a comment.
        lines = path.read_text(encoding="utf-8").splitlines()
        pairs = (line.split(" ", 2)[:2] for line in lines if " " in line and line[0] != ";")
        return dict(pairs)
    raise BackendError("textblob with its English lexicon is missing; install trustassay again")


def find_tag(word: str) -> str:
    """Return the usual part of speech of a word (Penn Treebank), empty for an unknown one."""
    return _load_lexicon().get(word.lower(), "")


def is_known_name(word: str) -> bool:
    """Whether the lexicon has a word as a name."""
    return _load_lexicon().get(word.title(), "").startswith("NNP")


def is_common_word(word: str) -> bool:
    """Whether a word is known in small letters, other than as a name."""
    return not find_tag(word).startswith("NNP") and find_tag(word) != ""


def find_finite_verb(words: Sequence[str]) -> int | None:
    """Return the place of the first finite verb among words; ``None`` if there is none."""
    lower = [word.lower() for word in words]
    for place, word in enumerate(lower):
        # Adverbs do not part a subject from its verb: "the pool never closes".
        before = next(
            (lower[at] for at in range(place - 1, -1, -1) if lower[at] not in _ADVERBS), ""
        )
        after, second = (*words[place + 1 : place + 3], "", "")[:2]
        if word in AUXILIARIES or _SHORT_FORM.fullmatch(word):
            # "May 3", "3 May" and "in May" are dates; "you may go" has a verb.
            month = words[place] == "May" and (
                _NUMBER.match(after) or _NUMBER.match(before) or before in _BEFORE_MONTH
            )
            # "10 am"
            hour = word == "am" and _NUMBER.match(before)
            letter = place > 0 and words[place - 1] == "A"  # "A is larger than B"
            # Behind "the" an auxiliary is a noun ("the will", "the can"); behind "this" it is a
            # verb.
            if not month and not hour and (letter or before not in DETERMINERS - SUBJECT_PRONOUNS):
                return place
        # The first word of a text is no finite verb, unless it is an auxiliary: it has no subject.
        elif before and _may_be_verb(word, before, after.lower(), second):
            return place
    return None


def _may_be_verb(word: str, before: str, after: str, second: str) -> bool:
    """Whether a word among others, two of them behind it, is a finite verb that is no auxiliary."""
    tag, tag_before = find_tag(word), find_tag(before)
    # "the costs", "of works", "not sold": a noun or a participle.
    if before in DETERMINERS - SUBJECT_PRONOUNS or before in PREPOSITIONS | _NO_SUBJECT:
        return False
    # Behind a pronoun nearly any form is a verb: "she costs", "who works". "this" and "that" are
    # left out, because they also stand before nouns: "this works manager".
    if before in SUBJECT_PRONOUNS - DEMONSTRATIVES or before == "who":
        noun_as_verb = tag == "NN" and before in _PLURAL_PRONOUNS  # "we offer"
        return tag.startswith("VB") or noun_as_verb or word.endswith("s")
    if tag == "VBD" or (tag in ("VBN", "") and word.endswith("ed")):
        # "fell by", "increased by 3 percent"; but "effects reported by patients"
        return after != "by" or not word.endswith("ed") or _NUMBER.match(second) is not None
    anybody = before in _ANYBODY and word.endswith("s")  # "nobody knows", "no one lives there"
    # "Marta sold the map"; "maps sold in Lund" need not be a sentence
    if anybody or tag == "VBZ" or (tag == "VBN" and after in DETERMINERS | SUBJECT_PRONOUNS):
        return True
    if word in _TAGGED_AS_NOUNS:
        return bool(_NUMBER.match(after)) or after in DETERMINERS | PREPOSITIONS | _BEHIND_VERBS
    # "rules apply", "tickets cost": a plural before a base form is its subject.
    plural = tag_before in ("NNS", "NNPS") or before.endswith("s")
    is_last_participle = tag == "VBN" and not after  # "half of the tenants left"
    is_listed = word in _ALSO_VERBS or f"{word}s" in _TAGGED_AS_NOUNS
    return plural and (tag in ("VB", "VBP") or is_listed or is_last_participle)


def is_imperative(words: Sequence[str]) -> bool:
    """Whether words tell somebody what to do: "Hold the red button"."""
    if len(words) < 2:
        return False
    first, tag = words[0].lower(), find_tag(words[0])
    # "Hold the button" (a verb), "Press 3" (listed above), "Toast the bread" (a noun before a
    # determiner).
    return (
        tag in ("VB", "VBP")
        or first in _IMPERATIVES
        or (tag == "NN" and words[1].lower() in DETERMINERS)
    )


def is_statement(text: str) -> bool:
    """Whether a text is a sentence with a subject and a finite verb, and no question."""
    words = find_words(text)
    place = find_finite_verb(words)
    # A verb in the first place has no subject, except in a short form: "It's closed".
    subject = place is not None and (
        place > 0 or _SHORT_FORM.fullmatch(words[0].lower()) is not None
    )
    return subject and words[0].lower() not in WH_WORDS and not text.rstrip().endswith("?")
