"""Which of several options a model chooses.

The likelihoods of the letters decide, or the log-probabilities of the first token, or the reply.
"""

import math
import re
from collections.abc import Sequence
from functools import cache
from string import ascii_uppercase
from typing import Any, Literal

from trustassay.core.capabilities import Models, OptionChoice, Reply, Turns
from trustassay.core.event_loop import gather_all
from trustassay.errors import BackendError
from trustassay.text.replies import THIS_ANSWER, ProseReader, ReplyValue, clean_reply

LETTERS = ascii_uppercase
MIN_LETTER_MASS = 0.5
"""Probability that the letters must have together if the first token is not one of them."""
TOP_ALTERNATIVES = 20
"""Likeliest first tokens that are requested; no public endpoint gives more."""
_INITIALS = re.compile(
    r"\b[A-Za-z]\.(?:[A-Za-z]\b\.?)+|\b[A-Z]\.(?: ?[A-Z]\.){1,5}(?=\s?[A-Z][a-z])"
    r"|\b[A-Z]\.(?=\s[a-z])(?!\s(?:because|since|as|it|the|this|that|is|i|no|not|so|and|or|but"
    r"|none)\b)|\b[A-Z]-(?=[a-z])|(?<=\w-)[A-Z]\b"
)
"""Letters that are part of a name or word: ``D.C.``, ``C. S. Lewis``, ``E. coli``, ``A-ha``."""
_BEFORE = (
    "answer choice option reply winner antwort réponse respuesta resposta risposta antwoord "
    "odpowiedź ответ cevap 答案 回答 答え 정답"
).split()
"""Words before the letter of an option."""


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
) -> OptionChoice:
    """Ask which of ``options`` follows the prompt ``text``, which shows them as A, B, C, ...

    1. If the model can compute likelihoods (``likely``), the likeliest letter is the choice.
    2. Otherwise the model is asked for a reply. The log-probabilities of its first token decide if
       they are there for two letters or more, and the token is a letter or letters have half of
       the probability.
    3. Otherwise the option counts that the reply repeats word for word, or whose letter it names.

    Args:
        models: the models of the sample.
        text: the prompt or chat.
        options: 2 to 26 texts.
        likely: whether the model can compute likelihoods.
        by: ``likelihood`` or ``letter`` allows only step 1, or only step 3.
        role: role of the model.
        name: name of the model, if the role has several.
        parameters: other fields of the request.

    Raises:
        ValueError: fewer than two options, or more than there are letters.
        BackendError: ``by`` is ``likelihood``, and the model cannot compute it.
    """
    if not 2 <= len(options) <= len(LETTERS):
        raise ValueError(f"expected 2 to {len(LETTERS)} options, got {len(options)}")
    letters = LETTERS[: len(options)]
    if by == "likelihood" and not likely:
        raise BackendError(
            "by: this model does not return the likelihood of a text; expected letter"
        )
    if likely and by != "letter":
        # Tokenizers have different tokens for "A" and " A", and a model may prefer either.
        spelled = [space + letter for space in ("", " ") for letter in letters]
        result = await gather_all(
            models.likelihood(text, spelling, role=role, name=name) for spelling in spelled
        )
        logs = [likelihood.total for likelihood in result]
        return _choose_likeliest([*map(max, logs[: len(letters)], logs[len(letters) :])])
    if by == "auto":
        parameters |= {"logprobs": TOP_ALTERNATIVES}
    reply = await models.chat(text, role=role, name=name, **parameters)
    logprobs = _score_first_token(reply, letters) if by == "auto" else []
    # With one letter alone there is nothing to compare it with.
    if sum(map(math.isfinite, logprobs)) > 1:
        return _choose_likeliest(logprobs, "logprobs", reply.text)
    return OptionChoice(find_chosen_option(reply.text, options), "letter", (), reply.text)


def find_chosen_option(text: str, options: Sequence[str]) -> int | None:
    """Return the index of the option that a reply repeats word for word, or whose letter it names.

    ``None`` if it does neither. Options are shown as A, B, C, ...
    """
    index = _find_repeated_option(text, options)
    letters = LETTERS[: len(options)]
    if index is None and (letter := find_letter(text, letters)):
        index = letters.index(letter)
    return index


def find_letter(text: str, letters: str) -> str | None:
    """Return the letter that a reply names; ``None`` if it names none, or several.

    A letter is named at the beginning ("B", "(b)", "B. Paris", "B is correct"), or after "answer
    is", "choice:", "option", "I choose" and the like. "A" before a word ("A river ...") is an
    article, and initials are part of a name. A list of several options names none.
    """
    result = _reader(letters).read(_INITIALS.sub("_", clean_reply(text)))
    return next(iter(result)) if len(result) == 1 else None


class _Letters(ProseReader):
    """Reads the letter that a reply names: a capital, or a small one where only that can stand."""

    scores = "score|verdict"
    before = (
        rf"{THIS_ANSWER}(?:'s|\s+is|\s+was|\s+must be|\s+would be)\s+"
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
            # A capital that is not the start of a word ("C'est", "A+"); a small letter before a
            # bracket or full stop, at the end, or before "because"; or a small one after "option".
            rf"(?<!\w)(?:[{letters}](?![\w'+])|[{small}](?=[)\].:]|\s*$|\s+because\b)"
            rf"|(?<=option )[{small}](?!\w))"
        )

    def single_value_at(self, text: str, start: int) -> ReplyValue | None:
        """Return the letter at a position, if there is one."""
        result = self._letter.match(text, start)
        return ReplyValue(frozenset({result[0].upper()}), result.end()) if result else None


_reader = cache(_Letters)


def _find_repeated_option(text: str, options: Sequence[str]) -> int | None:
    """Return the index of the one option that a reply repeats word for word; case does not matter.

    The option's letter may stand before it ("C. river, since ...") or after it ("river (C)"). A
    single character is a letter, not an option.
    """
    words = _words(text)
    if len("".join(words)) < 2:
        return None
    lettered_options = list(zip(LETTERS.lower(), map(_words, options), strict=False))
    # 1. The whole reply is an option, perhaps followed by its letter.
    alike = [
        i
        for i, (letter, option) in enumerate(lettered_options)
        if words in (option, [*option, letter])
    ]
    if not alike:
        # 2. Skip a lead such as "the final answer is" or "my answer is".
        answer_words = words
        for part in (("the", "my"), ("final", "correct"), ("answer",), ("is",)):
            answer_words = (
                answer_words[1:] if answer_words[:1] and answer_words[0] in part else answer_words
            )
        # The trailing space makes a match end at the end of a word.
        answer = f"{' '.join(answer_words)} "
        spelled = [
            f"{' '.join((letter, *option))} " if option else "?"
            for letter, option in lettered_options
        ]
        # 3. Options with their letters, anywhere in the reply; one of them must be at its
        # beginning.
        alike = [
            i
            for i, lettered in enumerate(spelled)
            if answer.startswith(lettered) or f" {lettered}" in answer
        ]
        alike = alike if any(map(answer.startswith, spelled)) else []
    return alike[0] if len(alike) == 1 else None


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _score_first_token(reply: Reply, letters: str) -> list[float]:
    """Return the log-probability of each letter as the first token; minus infinity if unknown.

    Empty if the token is not a letter and the letters have less than half of the probability, or if
    the reply continues differently: "A" may be an article.
    """
    result = [-math.inf] * len(letters)
    if not reply.logprobs:
        return result
    first = reply.logprobs[0]
    letter_mass = 0.0
    for token, logprob in dict(reversed(first.known)).items():
        index = letters.find(token.strip()) if len(token.strip()) == 1 else -1
        if index >= 0:  # with and without a space before it: the likelier one speaks for both
            result[index] = max(result[index], logprob)
            letter_mass += math.exp(min(logprob, 0))
    # The reply shows whether the emitted letter was an answer or an article.
    emitted = first.token.strip()
    if len(emitted) == 1 and emitted in letters:
        return result if find_letter(reply.text, letters) == emitted else []
    return result if letter_mass >= MIN_LETTER_MASS else []


def _choose_likeliest(
    logs: Sequence[float], way: Any = "likelihood", reply: str = ""
) -> OptionChoice:
    """Return the choice with the largest log-probability, and the probabilities of all options."""
    # Subtracting the maximum keeps exp() from underflowing.
    best = max(logs)
    weights = [math.exp(value - best) for value in logs]
    total = sum(weights)
    return OptionChoice(logs.index(best), way, tuple(weight / total for weight in weights), reply)
