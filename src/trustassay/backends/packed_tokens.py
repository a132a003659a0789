"""Tokens of a reply with their log-probabilities as one short text, as stores hold them.

What is packed, in base 85, are a deflated text and numbers. The text has one control character for
each token, which is the number of characters of the reply that it takes; a line break is followed
by a token that is not the reply's next characters, or is long. After each tab is an alternative; a
quote is the token itself. Texts are escaped as in JSON. The numbers are those of the tokens and
alternatives in this order, in single precision; those of ``"`` are left out.
"""

import base64
import json
import re
import zlib
from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import Any

import numpy as np

from trustassay.capabilities import TokenLogprob
from trustassay.sample import clean

OWN_BYTES, OTHER_BYTES = 6.3, 7.5
"""What a token takes, and each of its alternatives (``benchmarks/results/token-logprobs.json``)."""
_LENGTHS = "".join(map(chr, range(14, 32)))
_MARK = re.compile(f"([\n{_LENGTHS}])")


def packed(tokens: Iterable[TokenLogprob], text: str) -> str:
    """Return the tokens of a reply stored as ``text``; their numbers keep seven digits."""
    place, parts, numbers = 0, list[str](), list[float]()
    for token, logprob, others in tokens:
        fits = len(token) < len(_LENGTHS) and text.startswith(token, place)
        parts.append(_LENGTHS[len(token)] if fits else f"\n{_escaped(token)}")
        place += len(token) * fits
        numbers.append(logprob)
        for other, number in others:
            same = (other, number) == (token, logprob)
            parts.append('\t"' if same else f"\t{_escaped(other)}")
            numbers += [] if same else [number]
    with np.errstate(over="ignore"):
        single = np.array(numbers, dtype=np.float32).astype(">f4")
    texts = zlib.compress("".join(parts).encode(), 9, -zlib.MAX_WBITS)
    return base64.b85encode(texts + single.tobytes()).decode()


def _escaped(text: str) -> str:
    return encode_basestring(clean(text))[1:-1]


def unpacked(value: Any, text: str) -> tuple[TokenLogprob, ...]:
    """Read what :func:`packed` returns, or ``[[token, logprob, [[token, logprob], ...]], ...]``.

    Raises:
        LookupError, TypeError, ValueError, zlib.error: it is neither.
    """
    if not isinstance(value, str):
        return tuple(
            TokenLogprob(str(token), float(own), tuple((str(t), float(p)) for t, p in others))
            for token, own, others in value
        )
    texts = zlib.decompressobj(-zlib.MAX_WBITS)
    pieces = _MARK.split(texts.decompress(base64.b85decode(value)).decode())
    single = np.frombuffer(texts.unused_data, dtype=">f4")
    numbers = [float(str(one)) for one in single[::-1]]  # -0.2 is -0.2 again
    place, result = 0, []
    for mark, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        read: list[Any] = [
            None if part == '"' else json.loads(f'"{part}"') for part in piece.split("\t")
        ]
        own, *others = read
        if mark != "\n":
            own = text[place : place + _LENGTHS.index(mark)]
            place += len(own)
        itself = own, numbers.pop()
        told = [itself if one is None else (one, numbers.pop()) for one in others]
        result.append(TokenLogprob(*itself, tuple(told)))
    if numbers or not result:
        raise ValueError("cut, or longer than its tokens")
    return tuple(result)
