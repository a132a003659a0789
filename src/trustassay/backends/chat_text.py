"""A chat as plain text; a reply without the reasoning before its answer, and its packed tokens.

Reasoning models write their reasoning between tags, and not every server removes it from the
content. The reply is stored as received; it is removed each time the reply is read.

Of packed tokens, in base 85, there are a deflated text and numbers. The text has one control
character for each token, which is the number of characters of the reply that it takes; a line break
is followed by a token that is not the reply's next characters, or is long. After each tab is an
alternative; a quote is the token itself. Texts are escaped as in JSON. The numbers are those of the
tokens and alternatives in this order, in single precision; those of ``"`` are left out.
"""

import base64
import json
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from json.encoder import encode_basestring
from typing import Any

import numpy as np

from trustassay.capabilities import ChatRequest, Message, Reply, TokenLogprob
from trustassay.sample import clean, is_blank

_SPEAKERS = {"user": "User: ", "assistant": "Assistant: "}


def plain(messages: Sequence[Message]) -> str:
    """Return the messages' texts with a blank line between them.

    If there is an assistant message, every turn except the system's begins with its speaker, and
    the text ends where the assistant is to continue.
    """
    if all(message.role != "assistant" for message in messages):
        return "\n\n".join(message.content for message in messages)
    turns = [_SPEAKERS.get(message.role, "") + message.content for message in messages]
    if messages[-1].role != "assistant":
        turns.append("Assistant:")
    return "\n\n".join(turns)


def shortened(text: str, longest: int = 120) -> str:
    """Return a text in one line, without its middle if it is long."""
    text = " ".join(text.split())
    half = (longest - 5) // 2
    return text if len(text) <= longest else f"{text[:half]} ... {text[-half:]}"


_NAMES = ("think", "thinking", "thought", "reasoning", "seed:think")
_TAGS = {
    **{f"<{name}>": f"</{name}>" for name in _NAMES},
    "[think]": "[/think]",
    "◁think▷": "◁/think▷",
}
"""What opens and closes the reasoning of models in use, in lower case."""
_FIRST = tuple({opening[0] for opening in _TAGS})
_LONE_END = re.compile(rf"^[ \t]*</(?:{'|'.join(_NAMES)})>[ \t]*$", re.IGNORECASE | re.MULTILINE)
_ANY_START = re.compile(rf"<(?:{'|'.join(_NAMES)})>", re.IGNORECASE)
FENCE = "```"


def as_read(reply: Reply) -> Reply:
    """Return a reply whose texts are only the answers; the first one's reasoning is separate."""
    text, reasoning = split_reasoning(reply.text, reply.finish)
    others = tuple(split_reasoning(other, reply.finish)[0] for other in reply.others)
    if reasoning is None and others == reply.others:
        return reply
    told = [part for part in (reply.reasoning, reasoning) if part]
    return replace(reply, text=text, others=others, reasoning="\n\n".join(told) or None)


def joined(request: ChatRequest, replies: Sequence[Reply]) -> Reply:
    """Return one reply to a request from those that were made for it: of a greedy one, whose
    replies are equal, a single one."""
    first, *others = replies
    texts = [reply.text for reply in others] + [first.text] * (request.n - len(replies))
    tokens = sum(reply.reply_tokens or 0 for reply in replies)
    return replace(first, others=tuple(texts), reply_tokens=tokens)


def says_nothing(reply: Reply) -> bool:
    """Return whether a reply, when read, or one of its further replies has no text."""
    read = as_read(reply)
    return any(map(is_blank, (read.text, *read.others)))


def split_reasoning(text: str, finish: str | None = None) -> tuple[str, str | None]:
    """Return the answer in ``text``, and the reasoning before it, ``None`` if there is none.

    Reasoning is between tags at the very beginning. Its opening tag may be missing if it was part
    of the prompt: then the closing tag must be on its own line, outside a block of code. Its
    closing tag may be missing if the reply was cut (a ``finish`` other than ``stop``) or the line
    ends after the opening tag: then the answer is empty. Later tags belong to the answer.
    """
    parts: list[str] = []
    while result := _leading(text, finish):
        text = result[1]
        parts.append(result[0])
    if not parts and (result := _without_start(text)):
        text = result[1]
        parts.append(result[0])
    return text, ("\n\n".join(filter(None, parts)) if parts else None)


def _leading(text: str, finish: str | None) -> tuple[str, str] | None:
    """Return the reasoning that ``text`` begins with, and what follows it."""
    rest = text.lstrip()
    if not rest.startswith(_FIRST):
        return None
    for opening, closing in _TAGS.items():
        if rest[: len(opening)].lower() != opening:
            continue
        rest = rest[len(opening) :]
        if end := re.search(re.escape(closing), rest, re.IGNORECASE):
            return rest[: end.start()].strip(), rest[end.end() :].lstrip()
        if finish != "stop" or rest.startswith(("\n", "\r")):
            return rest.strip(), ""
        return None
    return None


def _without_start(text: str) -> tuple[str, str] | None:
    """Return reasoning that only ends in ``text``, and what follows it."""
    end = _LONE_END.search(text) if "</" in text else None
    if end is None:
        return None
    before = text[: end.start()]
    if _ANY_START.search(before) or before.count(FENCE) % 2:
        return None
    return before.strip(), text[end.end() :].lstrip()


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
