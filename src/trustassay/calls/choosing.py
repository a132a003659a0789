"""Which of several options a model takes: by likelihood, by log-probabilities, or by its letter."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any, Literal

from trustassay.capabilities import Choice, Message, Models, Reply
from trustassay.errors import BackendError
from trustassay.together import all_of

__all__ = ["choose", "chosen", "letter_of"]

LETTERS = ascii_uppercase
HALF = 0.5
"""Of the probability, which letters are to hold if the first token itself is none."""
ALTERNATIVES = 20
"""Likeliest first tokens that are asked for; no public endpoint gives more."""
_TO = r"(?:because|since|as|it|the|this|that|is|i|no|not|so|and|or|but|none)\b"
_INITIALS = re.compile(
    r"\b[A-Za-z]\.(?:[A-Za-z]\b\.?)+|\b[A-Z]\.(?: ?[A-Z]\.){1,5}(?=\s?[A-Z][a-z])"
    rf"|\b[A-Z]\.(?=\s[a-z])(?!\s{_TO})|\b[A-Z]-(?=[a-z])|(?<=\w-)[A-Z]\b"
)
"""Letters that are no answer: ``D.C.``, ``C. S. Lewis``, ``E. coli``, ``A-ha``."""
_ARTICLE = (
    r"(?!(?<=[AI])\s+(?!(?:is|was|or|and|because|since|seems|looks|appears|sounds|fits|matches"
    r"|makes|would|over|rather|instead)\b)[a-z])(?!(?<=[ai])\s+(?!(?:because|since)\b)\w)"
)
"""Behind a letter: it is no article, and no pronoun."""
_DENIED = re.compile(
    r"\b(?:not|never|nor|neither|cannot|no|none(?!\sof\sthe\sabove)|without|except|unlike|eliminate[sd]?|exclude[sd]?"
    r"|reject(?:s|ed)?|rules? out|ruled out)\b(?!\s+(?:an?\s+|any\s+)?doubt\b)|n't\b",
    re.IGNORECASE,
)
"""What takes back the letters behind it in its clause."""
_BREAK = re.compile(
    r"[.;:!?](?=\s|$)|\n|\s[-–—]\s|,(?!\s*(?:(?:or|nor|and)\s+)?[A-Z]\b)"
    r"|\b(?:but|because|since|so|therefore)\b",
    re.IGNORECASE,
)
_REJECTED = re.compile(r"\b(?:than|over|instead of|against|versus|vs\.?)\s+[\w\s]{0,12}[(\[]?$")
"""Before a letter that another one is preferred to."""
CLAUSE = 200
"""Characters before a letter in which its clause is looked through."""


async def choose(
    models: Models,
    text: str | Sequence[Message],
    options: Sequence[str],
    likely: bool,
    *,
    by: Literal["auto", "letter", "likelihood"],
    role: str,
    name: str,
    **parameters: Any,
) -> Choice:
    """Ask which of ``options`` follows the prompt ``text``, which shows them as A, B, C, ...

    By the likelihood of the letters where ``likely`` says that the model gives it. Else the model
    is asked for a reply: the log-probabilities of its first token decide where they tell of two
    letters or more and the token is one, or letters hold half of the probability; else the option
    that the reply repeats word for word, or the letter that it names. ``by`` can say that nothing
    but likelihood, or nothing but the reply, is to decide.

    Raises:
        ValueError: fewer than two options, or more than there are letters.
        BackendError: likelihood is to decide, and the model does not give it.
    """
    if not 2 <= len(options) <= len(LETTERS):
        raise ValueError(f"expected 2 to {len(LETTERS)} options, got {len(options)}")
    letters = LETTERS[: len(options)]
    if by == "likelihood" and not likely:
        raise BackendError("this model does not give the likelihood of a text; choose by letter")
    if likely and by != "letter":
        spelled = [space + letter for space in ("", " ") for letter in letters]
        found = await all_of(
            models.likelihood(text, spelling, role=role, name=name) for spelling in spelled
        )
        logs = [one.total for one in found]
        return _likeliest([*map(max, logs[: len(letters)], logs[len(letters) :])])
    if by == "auto":
        parameters |= {"logprobs": ALTERNATIVES}
    reply = await models.chat(text, role=role, name=name, **parameters)
    told = _first_token(reply, letters) if by == "auto" else []
    if sum(map(math.isfinite, told)) > 1:
        return _likeliest(told, "logprobs", reply.text)
    return Choice(chosen(reply.text, options), "letter", (), reply.text)


def chosen(text: str, options: Sequence[str]) -> int | None:
    """Return the option that a reply repeats word for word, else that whose letter it names.

    ``None`` if it does neither. Options are shown as A, B, C, ...
    """
    index = _repeated(text, options)
    letters = LETTERS[: len(options)]
    if index is None and (letter := letter_of(text, letters)):
        index = letters.index(letter)
    return index


def letter_of(text: str, letters: str) -> str | None:
    """Return the letter that a reply names; ``None`` if it names none, or several.

    A reply that begins with a letter by itself ("B", "(b)", "B. Paris", "B is correct") names it;
    else one behind "the answer is" or "choice:"; else the only letter that stands by itself, or
    behind "option". One that is denied ("not A") is not named, and where one is preferred to
    another none is. "A" before a word ("A river ...") is an article, initials are part of a name.
    """
    text = _INITIALS.sub("_", unicodedata.normalize("NFKC", text))
    choices = f"[{letters}{letters.lower()}]"
    bare = text.strip().strip("*_`\"'")
    several = rf"[)\].]?\s*(?:[,/&]|or\b|and\b)\s*(?:or\s+|and\s+)?(?:option\s+)?[(\[]?[{letters}]"
    if re.match(rf"[(\[]?[{letters}]{several}\b(?!')", bare):
        return None
    if found := re.match(rf"[(\[]?({choices})(?:[)\].:,]|\s*$|\s*[–—\n]|\s*-(?!\w))", bare):
        return found[1].upper()
    if found := re.match(
        rf"(?:(?:option|choice|answer)\s)?({choices})\s+"
        r"(?:because\b|is (?:the )?(?:correct|right|best|true)\b)",
        bare,
        re.IGNORECASE,
    ):
        return found[1].upper()
    marked = {
        "" if re.match(rf"{several}\b(?!')(?!\s[a-z])", text[m.end() :]) else m[1].upper()
        for m in re.finditer(
            rf"\b(?i:answer|choice|option)\s{{0,9}}(?:(?i:is)\b|:)[\s\"'(*\[]{{0,9}}"
            rf"(?:(?i:option)\s{{1,9}}\W{{0,3}})?({choices})\b(?!'\w){_ARTICLE}",
            text,
        )
        if not _denied(text, m.start(1))
    }
    if marked:
        return marked.pop() or None if len(marked) == 1 else None
    alone = [
        m
        for m in re.finditer(
            rf"(?<![\w'])(?:[{letters}]|(?<=(?i:option) )[{letters.lower()}])(?![\w'+=]){_ARTICLE}",
            text,
        )
        if not _denied(text, m.start())
    ]
    if len({m[0].upper() for m in alone}) != 1:
        return None
    rejected = any(_REJECTED.search(text[max(0, m.start() - 40) : m.start()]) for m in alone)
    return None if rejected else alone[0][0].upper()


def _denied(text: str, place: int) -> bool:
    """Whether the letter at a place is denied by what stands before it in its clause."""
    near = text[max(0, place - CLAUSE) : place + 1]
    start = max((match.end() for match in _BREAK.finditer(near)), default=0)
    return bool(_DENIED.search(near, start))


def _repeated(text: str, options: Sequence[str]) -> int | None:
    """Return the option that a reply repeats word for word, and no other; case is no matter.

    Its letter may stand before it ("C. river, since ..."). A single character is a letter.
    """
    words = _words(text)
    if len("".join(words)) < 2:
        return None
    own = [_words(option) for option in options]
    alike = [i for i, option in enumerate(own) if option == words]
    if not alike:
        named = words
        for part in (("the", "my"), ("final", "correct"), ("answer",), ("is",)):
            named = named[1:] if named[:1] and named[0] in part else named
        alike = [
            i
            for i, (letter, option) in enumerate(zip(LETTERS.lower(), own, strict=False))
            if option and named[: len(option) + 1] == [letter, *option]
        ]
    return alike[0] if len(alike) == 1 else None


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _first_token(reply: Reply, letters: str) -> list[float]:
    """Return the log-probability of each letter as the first token; minus infinity if unknown.

    Nothing where the token is no letter and the letters hold less than half of the probability.
    """
    found = [-math.inf] * len(letters)
    if not reply.logprobs:
        return found
    first = reply.logprobs[0]
    held = 0.0
    for token, logprob in dict([*first.alternatives, (first.token, first.logprob)]).items():
        place = letters.find(token.strip()) if len(token.strip()) == 1 else -1
        if place >= 0:  # with and without a space before it: the likelier one speaks for both
            found[place] = max(found[place], logprob)
            held += math.exp(min(logprob, 0))
    emitted = first.token.strip()
    return found if held >= HALF or (len(emitted) == 1 and emitted in letters) else []


def _likeliest(logs: Sequence[float], way: Any = "likelihood", reply: str = "") -> Choice:
    best = max(logs)
    weights = [math.exp(value - best) for value in logs]
    total = sum(weights)
    return Choice(logs.index(best), way, tuple(weight / total for weight in weights), reply)
