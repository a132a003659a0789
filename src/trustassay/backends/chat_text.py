"""A chat as plain text, replies without their reasoning, and the packed form of log-probabilities.

Reasoning models write their reasoning between tags, and not every server removes it from the
content. Replies are stored as received, and the reasoning is removed each time one is read.

Packed log-probabilities, in base 85, are a deflated text followed by numbers. The text has for each
token one control character, whose value is the number of characters that the token takes of the
reply. A token that is long, or that is not what comes next in the reply, is a line break followed
by the token. After each tab is an alternative; a quote stands for the token itself. Texts are
escaped as in JSON. The numbers are those of the tokens and alternatives in this order, in single
precision; those of ``"`` are left out.
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

from trustassay.core.capabilities import ChatRequest, Message, Reply, TokenLogprob, Turns
from trustassay.core.sample import clean, is_blank

_SPEAKERS = {"user": "User: ", "assistant": "Assistant: "}


def to_messages(prompt: Turns) -> tuple[Message, ...]:
    """Return a prompt, or a whole chat, as messages."""
    return (Message("user", prompt),) if isinstance(prompt, str) else tuple(prompt)


def chat_to_text(messages: Sequence[Message]) -> str:
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


def shorten(text: str, longest: int = 120) -> str:
    """Return a text on one line, without its middle if it is long."""
    text = " ".join(text.split())
    half = (longest - 5) // 2
    return text if len(text) <= longest else f"{text[:half]} ... {text[-half:]}"


_NAMES = ("think", "thinking", "thought", "reasoning", "seed:think")
_TAGS = {
    **{f"<{name}>": f"</{name}>" for name in _NAMES},
    "[think]": "[/think]",
    "◁think▷": "◁/think▷",
}
"""Tags around the reasoning of models in use, in lower case: opening and closing."""
_FIRST_CHARACTERS = tuple({opening[0] for opening in _TAGS})
_LONE_END = re.compile(rf"^[ \t]*</(?:{'|'.join(_NAMES)})>[ \t]*$", re.IGNORECASE | re.MULTILINE)
_ANY_START = re.compile(rf"<(?:{'|'.join(_NAMES)})>", re.IGNORECASE)
FENCE = "```"


def strip_reasoning(reply: Reply) -> Reply:
    """Return a reply with only the answers as its texts; the first one's reasoning is separate."""
    text, reasoning = split_reasoning(reply.text, reply.finish)
    other_texts = tuple(split_reasoning(other, reply.finish)[0] for other in reply.others)
    if reasoning is None and other_texts == reply.others:
        return reply
    reasoning_parts = [part for part in (reply.reasoning, reasoning) if part]
    return replace(
        reply, text=text, others=other_texts, reasoning="\n\n".join(reasoning_parts) or None
    )


def join_replies(request: ChatRequest, replies: Sequence[Reply]) -> Reply:
    """Return one reply to a request from the replies that were made for it.

    A greedy request has ``n`` equal replies, of which only one was made.
    """
    first, *other_replies = replies
    texts = [reply.text for reply in other_replies] + [first.text] * (request.n - len(replies))
    tokens = sum(reply.reply_tokens or 0 for reply in replies)
    return replace(first, others=tuple(texts), reply_tokens=tokens)


def says_nothing(reply: Reply) -> bool:
    """Whether a reply, without its reasoning, or one of its further replies has no text."""
    read = strip_reasoning(reply)
    return any(map(is_blank, (read.text, *read.others)))


def split_reasoning(text: str, finish: str | None = None) -> tuple[str, str | None]:
    """Return the answer in ``text``, and the reasoning before it, ``None`` if there is none.

    Reasoning is between tags at the very beginning. Its opening tag may be missing if it was part
    of the prompt: then the closing tag must be on its own line, outside a block of code. Its
    closing tag may be missing if the reply was cut (a ``finish`` other than ``stop``) or the line
    ends after the opening tag: then the answer is empty. Later tags belong to the answer.
    """
    parts: list[str] = []
    # Some models write several blocks of reasoning, one after another.
    while result := _split_leading_reasoning(text, finish):
        text = result[1]
        parts.append(result[0])
    if not parts and (result := _split_at_lone_end(text)):
        text = result[1]
        parts.append(result[0])
    return text, ("\n\n".join(filter(None, parts)) if parts else None)


def _split_leading_reasoning(text: str, finish: str | None) -> tuple[str, str] | None:
    """Return the reasoning at the beginning of ``text``, and what follows it."""
    remainder = text.lstrip()
    # A cheap test first: nearly all replies fail it.
    if not remainder.startswith(_FIRST_CHARACTERS):
        return None
    for opening, closing in _TAGS.items():
        if remainder[: len(opening)].lower() != opening:
            continue
        remainder = remainder[len(opening) :]
        if end := re.search(re.escape(closing), remainder, re.IGNORECASE):
            return remainder[: end.start()].strip(), remainder[end.end() :].lstrip()
        # No closing tag: cut while it was thinking, or a tag alone on its line.
        if finish != "stop" or remainder.startswith(("\n", "\r")):
            return remainder.strip(), ""
        return None
    return None


def _split_at_lone_end(text: str) -> tuple[str, str] | None:
    """Return reasoning of which ``text`` has only the end, and what follows it."""
    end = _LONE_END.search(text) if "</" in text else None
    if end is None:
        return None
    before = text[: end.start()]
    # With an opening tag, or inside a block of code, the tag is part of the answer.
    if _ANY_START.search(before) or before.count(FENCE) % 2:
        return None
    return before.strip(), text[end.end() :].lstrip()


OWN_BYTES, OTHER_BYTES = 6.3, 7.5
"""Stored bytes of a token, and of each alternative (``lab/results/token-logprobs.json``)."""
_LENGTHS = "".join(map(chr, range(14, 32)))
_TOKEN_MARK = re.compile(f"([\n{_LENGTHS}])")


def pack_logprobs(tokens: Iterable[TokenLogprob], text: str) -> str:
    """Return the packed tokens of a reply with the text ``text``; numbers keep seven digits."""
    position, parts, numbers = 0, list[str](), list[float]()
    for token, logprob, alternatives in tokens:
        # Most tokens are the next characters of the reply, so their length is enough.
        fits = len(token) < len(_LENGTHS) and text.startswith(token, position)
        parts.append(_LENGTHS[len(token)] if fits else f"\n{_escape(token)}")
        position += len(token) * fits
        numbers.append(logprob)
        for other, number in alternatives:
            # The token itself is mostly the likeliest alternative.
            same = (other, number) == (token, logprob)
            parts.append('\t"' if same else f"\t{_escape(other)}")
            numbers += [] if same else [number]
    # A number beyond single precision becomes infinite.
    with np.errstate(over="ignore"):
        single = np.array(numbers, dtype=np.float32).astype(">f4")
    texts = zlib.compress("".join(parts).encode(), 9, -zlib.MAX_WBITS)
    return base64.b85encode(texts + single.tobytes()).decode()


def _escape(text: str) -> str:
    """Return a text as in JSON, without the quotes."""
    return encode_basestring(clean(text))[1:-1]


def unpack_logprobs(value: Any, text: str) -> tuple[TokenLogprob, ...]:
    """Read packed log-probabilities, or ``[[token, logprob, [[token, logprob], ...]], ...]``.

    Raises:
        LookupError, TypeError, ValueError, zlib.error: it is neither.
    """
    # The form of older stores, and of files that users write.
    if not isinstance(value, str):
        return tuple(
            TokenLogprob(
                str(token), float(token_text), tuple((str(t), float(p)) for t, p in alternatives)
            )
            for token, token_text, alternatives in value
        )
    texts = zlib.decompressobj(-zlib.MAX_WBITS)
    pieces = _TOKEN_MARK.split(texts.decompress(base64.b85decode(value)).decode())
    single = np.frombuffer(texts.unused_data, dtype=">f4")
    # From single precision by its shortest text, so that -0.2 is -0.2 again. Reversed for pop().
    numbers = [float(str(number)) for number in single[::-1]]  # -0.2 is -0.2 again
    position, result = 0, []
    for mark, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        read: list[Any] = [
            None if part == '"' else json.loads(f'"{part}"') for part in piece.split("\t")
        ]
        token_text, *alternatives = read
        if mark != "\n":
            token_text = text[position : position + _LENGTHS.index(mark)]
            position += len(token_text)
        itself = token_text, numbers.pop()
        alternatives_read = [
            itself if alternative is None else (alternative, numbers.pop())
            for alternative in alternatives
        ]
        result.append(TokenLogprob(*itself, tuple(alternatives_read)))
    # Texts and numbers must fit exactly, or the value is damaged.
    if numbers or not result:
        raise ValueError("cut, or longer than its tokens")
    return tuple(result)
