"""How the embedded entailer cuts what is too long for one pass: premises and statements.

A premise becomes windows of whole sentences, counted in words. What still has more tokens than
fit (data, lists of links, scripts without spaces) is cut between tokens, so that every text can
be read. ``training/`` cuts with the same functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from trustassay.backends.encoder import Tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["LONGEST", "UNMATCHED", "cut_pairs", "is_copied", "pair_tokens", "windows"]

LONGEST = 512
"""Tokens that the encoder has positions for."""
STATEMENT = 256
"""Tokens of a statement that are read at once."""
PIECE, PIECE_STEP = 128, 80
"""Tokens of one piece of a window that is too long, and how many later the next begins."""
UNMATCHED = 2
"""Kind of a hypothesis token that is not in the premise."""

_SENTENCE = re.compile(r"(?<=[.!?])[\"'”’)]*\s+|\n+")
_ENDS = " \t.,;:!\"'“”‘’()*-•"
"""What is taken off both ends of a sentence that is compared; a question mark stays."""
FEWEST_WORDS = 3
"""Words of the shortest statement that counts as copied."""


def cut_pairs(
    tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]], size: int, step: int
) -> list[list[list[Tokens]]]:
    """Return by pair, and by part of its hypothesis, every window as the encoder reads it.

    No text is too long: a hypothesis of more than 256 tokens is several parts, and a window that
    does not fit into 512 tokens with the longest part is read in pieces of 128 tokens, a new one
    every 80.
    """
    cut = {premise: windows(premise, size, step) for premise, _ in pairs}
    texts = {text for found in cut.values() for text in found} | {h for _, h in pairs}
    order = sorted(texts)
    encoded = tokenizer.encode_batch(order, add_special_tokens=False)
    ids = {text: one.ids for text, one in zip(order, encoded, strict=True)}
    first, last = tokenizer.encode("").ids
    made = []
    for premise, hypothesis in pairs:
        parts = _pieces(ids[hypothesis], STATEMENT, STATEMENT)
        room = LONGEST - 3 - max(map(len, parts))
        pieces = [
            piece
            for window in cut[premise]
            for piece in (
                [ids[window]]
                if len(ids[window]) <= room
                else _pieces(ids[window], PIECE, PIECE_STEP)
            )
        ]
        made.append([[_pair(first, w, last, part) for w in pieces] for part in parts])
    return made


def _pieces(ids: list[int], size: int, step: int) -> list[list[int]]:
    """Return runs of up to ``size`` ids, a new one every ``step``; the last reaches the end."""
    starts = range(0, max(1, len(ids) - size + step), step)
    return [ids[start : start + size] for start in starts]


def _pair(first: int, premise: list[int], last: int, hypothesis: list[int]) -> Tokens:
    head, tail = [first, *premise, last], [*hypothesis, last]
    return pair_tokens(head + tail, [0] * len(head) + [1] * len(tail))


def pair_tokens(ids: list[int], segments: list[int]) -> Tokens:
    """Return a pair's tokens with their kinds: premise, hypothesis, hypothesis alone."""
    known = {i for i, segment in zip(ids, segments, strict=True) if not segment}
    kinds = [
        UNMATCHED if segment and i not in known else segment
        for i, segment in zip(ids, segments, strict=True)
    ]
    return Tokens(ids, kinds)


def windows(premise: str, size: int, step: int) -> list[str]:
    """Cut a premise into overlapping runs of whole sentences, of about ``size`` words each.

    A window takes sentences until it has ``size`` words; the next begins at the first sentence
    that starts ``step`` words later or more. A sentence of more than ``size`` + ``step`` words is
    cut between words. A first line "Title: ..." is repeated in each window. A premise of up to
    ``size`` + ``step`` / 2 words is one window.
    """
    head, body = "", premise.strip()
    if body.startswith("Title: ") and "\n" in body:
        head, body = body.split("\n", 1)
        head += "\n"
    if len(body.split()) <= size + step // 2:
        return [head + body]
    parts = _parts(body, size, step)
    made, start = [], 0
    while True:
        end, length = start, 0
        while end < len(parts) and length < size:
            length += len(parts[end])
            end += 1
        made.append(head + " ".join(" ".join(part) for part in parts[start:end]))
        if end == len(parts):
            return made
        moved = 0
        while moved < step and start < end:
            moved += len(parts[start])
            start += 1


def is_copied(premise: str, hypothesis: str) -> bool:
    """Return whether every sentence of a hypothesis stands, word for word, in the premise.

    A whole sentence or line: what stands inside a longer one may be reported, denied or supposed.
    Case, spaces and punctuation at both ends do not count; hypotheses of fewer than three words
    are not looked at.
    """
    claimed = _sentences(hypothesis)
    return len(hypothesis.split()) >= FEWEST_WORDS and claimed <= _sentences(premise)


@lru_cache(maxsize=4096)
def _sentences(text: str) -> frozenset[str]:
    """Return the sentences of a text in lower case, without what is around them."""
    found = (" ".join(one.casefold().split()).strip(_ENDS) for one in _SENTENCE.split(text))
    return frozenset(filter(None, found))


def _parts(body: str, size: int, step: int) -> list[list[str]]:
    parts = []
    for sentence in _SENTENCE.split(body):
        words = sentence.split()
        if len(words) > size + step:
            parts += [words[i : i + step] for i in range(0, len(words), step)]
        elif words:
            parts.append(words)
    return parts
