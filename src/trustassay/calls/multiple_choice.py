"""Which of several options a model takes: by likelihood, by log-probabilities, or by its letter."""

import math
import re
from collections.abc import Sequence
from functools import cache
from string import ascii_uppercase
from typing import Any, Literal

from trustassay.capabilities import Choice, Models, Reply, Turns
from trustassay.errors import BackendError
from trustassay.event_loop import all_of
from trustassay.text.patterns import read_patterns
from trustassay.text.replies import THIS, Prose, Value, plain

LETTERS = ascii_uppercase
HALF = 0.5
"""Of the probability, which letters are to hold if the first token itself is none."""
ALTERNATIVES = 20
"""Likeliest first tokens that are asked for; no public endpoint gives more."""
_P = read_patterns("replies.toml", "trustassay.text")
_INITIALS = re.compile(_P["initials"])
"""Letters that are no answer: ``D.C.``, ``C. S. Lewis``, ``E. coli``, ``A-ha``."""
_BEFORE = _P["before_letters"].split("|")


async def choose(
    models: Models,
    text: Turns,
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
        result = await all_of(
            models.likelihood(text, spelling, role=role, name=name) for spelling in spelled
        )
        logs = [one.total for one in result]
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

    A letter at the beginning ("B", "(b)", "B. Paris", "B is correct") is named, or one behind
    "answer is", "choice:", "option", "I choose" and the like. "A" before a word ("A river ...")
    is an article, initials are part of a name; of a list of several options none is named.
    """
    result = _reader(letters).read(_INITIALS.sub("_", plain(text)))
    return next(iter(result)) if len(result) == 1 else None


class _Letters(Prose):
    """The letters of options: capital, or small where nothing but a letter can stand."""

    scores = "score|verdict"
    before = (
        rf"{THIS}(?:'s|\s+is|\s+was|\s+must be|\s+would be)\s+"
        r"|(?<=\bso )|(?<=\bthus )|(?<=\bhence )|(?<=\btherefore )"
    )
    approved = (
        r"(?:wins|for sure|(?:is|was|seems|looks) (?:(?:clearly|slightly|much|the|only) )*"
        r"(?:correct|right|best|better|true|more))\b"
    )

    def __init__(self, letters: str) -> None:
        super().__init__({}, _BEFORE, rf"[{letters}](?!\w)")
        small = letters.lower()
        self._letter = re.compile(
            rf"(?<!\w)(?:[{letters}](?![\w'+])|[{small}](?=[)\].:]|\s*$|\s+because\b)"
            rf"|(?<=option )[{small}](?!\w))"
        )

    def single(self, text: str, start: int) -> Value | None:
        result = self._letter.match(text, start)
        return Value(frozenset({result[0].upper()}), result.end()) if result else None


_reader = cache(_Letters)


def _repeated(text: str, options: Sequence[str]) -> int | None:
    """Return the option that a reply repeats word for word, and no other; case is no matter.

    Its letter may stand before it ("C. river, since ...") or behind it ("river (C)"). A single
    character is a letter.
    """
    words = _words(text)
    if len("".join(words)) < 2:
        return None
    own = list(zip(LETTERS.lower(), map(_words, options), strict=False))
    alike = [i for i, (letter, option) in enumerate(own) if words in (option, [*option, letter])]
    if not alike:
        named = words
        for part in (("the", "my"), ("final", "correct"), ("answer",), ("is",)):
            named = named[1:] if named[:1] and named[0] in part else named
        said = f"{' '.join(named)} "
        spelled = [f"{' '.join((letter, *option))} " if option else "?" for letter, option in own]
        alike = [i for i, one in enumerate(spelled) if said.startswith(one) or f" {one}" in said]
        alike = alike if any(map(said.startswith, spelled)) else []
    return alike[0] if len(alike) == 1 else None


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _first_token(reply: Reply, letters: str) -> list[float]:
    """Return the log-probability of each letter as the first token; minus infinity if unknown.

    Nothing where the token is no letter and the letters hold less than half of the probability, or
    where the reply goes on otherwise: "A" may be an article.
    """
    result = [-math.inf] * len(letters)
    if not reply.logprobs:
        return result
    first = reply.logprobs[0]
    held = 0.0
    for token, logprob in dict([*first.alternatives, (first.token, first.logprob)]).items():
        place = letters.find(token.strip()) if len(token.strip()) == 1 else -1
        if place >= 0:  # with and without a space before it: the likelier one speaks for both
            result[place] = max(result[place], logprob)
            held += math.exp(min(logprob, 0))
    emitted = first.token.strip()
    if len(emitted) == 1 and emitted in letters:
        return result if letter_of(reply.text, letters) == emitted else []
    return result if held >= HALF else []


def _likeliest(logs: Sequence[float], way: Any = "likelihood", reply: str = "") -> Choice:
    best = max(logs)
    weights = [math.exp(value - best) for value in logs]
    total = sum(weights)
    return Choice(logs.index(best), way, tuple(weight / total for weight in weights), reply)
