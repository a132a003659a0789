"""Which of several options a model takes: by likelihood, by log-probabilities, or by its letter."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any

from trustassay.capabilities import Choice, Models, Reply

__all__ = ["choose", "letter_of"]

LETTERS = ascii_uppercase
ALTERNATIVES = 20
"""Likeliest first tokens that are asked for; no public endpoint gives more."""
MARKED = r"(?:answer|choice|option)\s*(?:is|:)?\s*[\"'(*\[]*\s*"


async def choose(
    models: Models,
    prompt: str,
    options: Sequence[str],
    likely: bool,
    *,
    role: str,
    name: str,
    **parameters: Any,
) -> Choice:
    """Ask which of ``options`` follows ``prompt``, which shows them as A, B, C, ... in order.

    By the likelihood of the letters where ``likely`` says that the model gives it. Else the model
    is asked for a reply: the log-probabilities of its first token decide where they tell of two
    letters or more, else the letter that the reply names, if it names one.

    Raises:
        ValueError: fewer than two options, or more than there are letters.
    """
    if not 2 <= len(options) <= len(LETTERS):
        raise ValueError(f"expected 2 to {len(LETTERS)} options, got {len(options)}")
    letters = LETTERS[: len(options)]
    if likely:
        found = await asyncio.gather(
            *(models.likelihood(prompt, letter, role=role, name=name) for letter in letters)
        )
        return _likeliest([one.total for one in found])
    reply = await models.chat(prompt, role=role, name=name, logprobs=ALTERNATIVES, **parameters)
    told = _first_token(reply, letters)
    if sum(map(math.isfinite, told)) > 1:
        return _likeliest(told, "logprobs", reply.text)
    letter = letter_of(reply.text, letters)
    return Choice(None if letter is None else letters.index(letter), "letter", (), reply.text)


def letter_of(text: str, letters: str) -> str | None:
    """Return the letter that a reply names; ``None`` if it names none, or several.

    A reply that begins with a letter by itself ("B", "(b)", "B. Paris") names it; else one behind
    "answer", "choice" or "option"; else the only capital letter that stands by itself. "A" at the
    beginning of a sentence ("A river ...") is an article and names nothing.
    """
    choices = f"[{letters}{letters.lower()}]"
    bare = text.strip().strip("*_`\"'")
    if found := re.match(rf"[(\[]?({choices})(?:[)\].:,]|$|\s*$|\s*[-–—\n])", bare):
        return found[1].upper()
    marked = {m[1].upper() for m in re.finditer(rf"\b{MARKED}({choices})\b", text, re.IGNORECASE)}
    if marked:
        return marked.pop() if len(marked) == 1 else None
    alone = set(re.findall(rf"(?<![\w'])([{letters}])(?![\w'])(?!\s+(?!or\b|and\b)[a-z])", text))
    return alone.pop() if len(alone) == 1 else None


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
