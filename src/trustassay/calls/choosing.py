"""Which of several options a model takes: by likelihood, by log-probabilities, or by its letter."""

from __future__ import annotations

import asyncio
import math
import re
import unicodedata
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any, Literal

from trustassay.capabilities import Choice, Models, Reply
from trustassay.errors import BackendError

__all__ = ["choose", "letter_of"]

LETTERS = ascii_uppercase
ALTERNATIVES = 20
"""Likeliest first tokens that are asked for; no public endpoint gives more."""
MARKED = r"(?:answer|choice|option)\s*(?:is|:)?\s*[\"'(*\[]*\s*"
BEFORE = r"(?<![\w'])(?<!\bnot )(?<!\bnor )(?<!\bneither )(?<!n't )"
"""What stands before a letter by itself; one that is denied ("not A") is not named."""


async def choose(
    models: Models,
    text: str,
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
    letters or more, else the letter that the reply names, or the option that it repeats word for
    word. ``by`` can say that nothing but likelihood, or nothing but the reply, is to decide.

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
        found = await asyncio.gather(
            *(models.likelihood(text, spelling, role=role, name=name) for spelling in spelled)
        )
        logs = [one.total for one in found]
        return _likeliest([*map(max, logs[: len(letters)], logs[len(letters) :])])
    if by == "auto":
        parameters |= {"logprobs": ALTERNATIVES}
    reply = await models.chat(text, role=role, name=name, **parameters)
    told = _first_token(reply, letters) if by == "auto" else []
    if sum(map(math.isfinite, told)) > 1:
        return _likeliest(told, "logprobs", reply.text)
    letter = letter_of(reply.text, letters)
    index = _repeated(reply.text, options) if letter is None else letters.index(letter)
    return Choice(index, "letter", (), reply.text)


def letter_of(text: str, letters: str) -> str | None:
    """Return the letter that a reply names; ``None`` if it names none, or several.

    A reply that begins with a letter by itself ("B", "(b)", "B. Paris", "B is correct") names it;
    else one behind "answer", "choice" or "option"; else the only capital letter that stands by
    itself and is not denied. "A" at the beginning of a sentence ("A river ...") is an article and
    names nothing.
    """
    text = unicodedata.normalize("NFKC", text)
    choices = f"[{letters}{letters.lower()}]"
    bare = text.strip().strip("*_`\"'")
    if re.match(rf"[{letters}]\s*(?:[,/]|or\b|and\b)\s*(?:or\s+|and\s+)?[{letters}]\b(?!')", bare):
        return None  # a list of several
    if found := re.match(rf"[(\[]?({choices})(?:[)\].:,]|$|\s*$|\s*[-–—\n])", bare):
        return found[1].upper()
    if found := re.match(
        rf"({choices})\s+(?:because\b|is (?:the )?(?:correct|right|best|true)\b)", bare
    ):
        return found[1].upper()
    marked = {m[1].upper() for m in re.finditer(rf"\b{MARKED}({choices})\b", text, re.IGNORECASE)}
    if marked:
        return marked.pop() if len(marked) == 1 else None
    alone = set(re.findall(rf"{BEFORE}([{letters}])(?![\w'+=])(?!\s+(?!or\b|and\b)[a-z])", text))
    return alone.pop() if len(alone) == 1 else None


def _repeated(text: str, options: Sequence[str]) -> int | None:
    """Return the option that a reply repeats word for word, and no other; case is no matter."""
    words = re.findall(r"\w+", text.casefold())
    alike = [
        i for i, option in enumerate(options) if re.findall(r"\w+", option.casefold()) == words
    ]
    return alike[0] if len(alike) == 1 and words else None


def _first_token(reply: Reply, letters: str) -> list[float]:
    """Return the log-probability of each letter as the first token; minus infinity if unknown."""
    found = [-math.inf] * len(letters)
    if not reply.logprobs:
        return found
    first = reply.logprobs[0]
    for token, logprob in ((first.token, first.logprob), *first.alternatives):
        place = letters.find(token.strip()) if len(token.strip()) == 1 else -1
        if place >= 0:  # with and without a space before it: the likelier one speaks for both
            found[place] = max(found[place], logprob)
    return found


def _likeliest(logs: Sequence[float], way: Any = "likelihood", reply: str = "") -> Choice:
    best = max(logs)
    weights = [math.exp(value - best) for value in logs]
    total = sum(weights)
    return Choice(logs.index(best), way, tuple(weight / total for weight in weights), reply)
