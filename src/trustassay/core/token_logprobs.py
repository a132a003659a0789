"""Tokens with log-probabilities, as endpoints and tools write them, and those that spell a text.

1. :func:`find_token_lists` searches a value for lists of tokens, wherever they are in it: the value
   may be such a list, the object around it, or a whole response.
2. The texts of a list are spelled in several ways: as they are, by their bytes, without the marks
   of a tokenizer.
3. :func:`fit_tokens` takes the list and the spelling that contain the text, and of its tokens those
   that spell the text: not an end-of-text token, and not reasoning that was removed from the reply.

Nothing is raised: what cannot be used is a reason, since everything else about a sample can be.
"""

import ast
import codecs
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate, pairwise, zip_longest
from typing import Any, NamedTuple

from trustassay.core.capabilities import TokenLogprob

ANOTHER_TEXT, PART_OF_TEXT = "another_text", "part_of_text"
COUNT, LENGTHS = "count", "lengths"
POSITIVE, NO_NUMBERS, ONE_NUMBER = "positive", "no_numbers", "one_number"
UNREADABLE = "unreadable"
UNUSABLE: Mapping[str, str] = {
    ANOTHER_TEXT: "of another text",
    PART_OF_TEXT: "of only a part of the text",
    COUNT: "with more or fewer numbers than the text can have tokens",
    LENGTHS: "with texts and numbers in lists of different lengths",
    POSITIVE: "with numbers above 0",
    NO_NUMBERS: "without numbers for most tokens",
    ONE_NUMBER: "with one number for the whole text",
    UNREADABLE: "in an unknown format",
}
"""Why log-probabilities cannot be used, in the words of a sentence that counts them. Where several
lists of tokens are tried in vain, the first of their reasons in this order counts."""

# Names in the objects of endpoints and tools, without case and underscores: `logProbability`.
_TEXTS = ("token", "text", "decodedtoken", "tokstr", "tokenstr", "content")
_NUMBERS = ("logprob", "logprobability", "tokenlogprob", "logprobs", "likelihood")
_PROBABILITIES = ("prob", "probability")
_ALTERNATIVES = tuple(
    "toplogprobs outputtoplogprobs toptokens topcandidates topprobs probs alternatives".split()
)
_TOKEN_COLUMNS = ("tokens", "token")
_NUMBER_COLUMNS = ("tokenlogprobs", "logprobs", "logprobabilities", "tokenlogprob", "logprob")
_SUMS = ("avglogprobs", "meanlogprob", "cumulativelogprob", "sumlogprobs")
# Tokens of the prompt are none of the reply, and alternatives are no list of tokens by themselves.
_SKIPPED = (*_ALTERNATIVES, "prefill", "bytes")
_SKIPPED_STARTS = ("prompt", "input")

MAX_DEPTH = 10
"""Levels of objects and lists that are searched; `choices[0].logprobs.content` has four."""
VERY_UNLIKELY = -9999.0
"""OpenAI, vLLM and DeepSeek write this for a token that is too unlikely for a number."""
ROUNDING = 1e-6
"""Some endpoints report a little more than 0 for certain tokens."""
MIN_KNOWN_SHARE = 0.5
"""Share of tokens that must have a number, or the mean says little about the text."""
MIN_TOKENS_PER_WORD, MORE_TOKENS = 0.5, 3
"""Fewest tokens of a word, for numbers without texts; tokens beyond one for each byte, such as
those that begin and end a text."""


class ReadToken(NamedTuple):
    """A token as it was read, before it is fitted to a text."""

    text: str | None
    """Its text; ``None`` where only numbers are known."""
    logprob: float
    """NaN where it is not known, and minus infinity where it is too unlikely for a number."""
    alternatives: tuple[tuple[str, float], ...] = ()
    """Tokens that could have been at its place."""
    raw: bytes | None = None
    """Its bytes, where the endpoint tells them."""


class FittedTokens(NamedTuple):
    """The tokens of a text; if there are none, why."""

    tokens: tuple[TokenLogprob, ...] = ()
    """Their texts together are the text, but for white space. A log-probability is NaN where it is
    not known, and minus infinity where the token is too unlikely for a number."""
    unusable: str = ""
    """A key of :data:`UNUSABLE`; empty if there are tokens, or none were stated."""


def fit_tokens(value: Any, text: str) -> FittedTokens:
    """Return the tokens of ``text`` among the log-probabilities in a value of any known form.

    Args:
        value: lists of tokens in any form and depth, or log-probabilities alone. A value that is
            blank states nothing, which is no fault.
        text: what the tokens must spell.
    """
    if isinstance(value, str):
        value = _parse_printed(value)
    if _states_nothing(value):
        return FittedTokens()
    lists, reasons = list[list[ReadToken]](), set[str]()
    # Objects may be nested deeper than Python can follow.
    with suppress(RecursionError):
        for item in find_token_lists(value):
            lists.append(item) if isinstance(item, list) else reasons.add(item)
    # Those with texts first: texts are a proof, and numbers alone are not.
    lists.sort(key=lambda tokens: all(token.text is None for token in tokens))
    for tokens in lists:
        result = _fit_list(tokens, text)
        if result.tokens:
            return result
        reasons.add(result.unusable)
    return FittedTokens(unusable=next((r for r in UNUSABLE if r in reasons), UNREADABLE))


def read_token_list(value: Any) -> tuple[TokenLogprob, ...] | None:
    """Return the first list of tokens in an endpoint's reply; ``None`` unless each has a text.

    A log-probability is NaN where it is not known, which costs the other tokens nothing.
    """
    tokens = next((item for item in find_token_lists(value) if isinstance(item, list)), [])
    result = [TokenLogprob(t.text, t.logprob, t.alternatives) for t in tokens if t.text is not None]
    return tuple(result) if result and len(result) == len(tokens) else None


def _states_nothing(value: Any, depth: int = MAX_DEPTH) -> bool:
    """Whether a value has no number and no text: ``{"content": null, "refusal": null}``."""
    # A setting of the request, as in "logprobs": true or 5.
    if value is None or isinstance(value, bool) or (isinstance(value, int) and value > 0):
        return True
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple) and depth:
        return all(_states_nothing(item, depth - 1) for item in value)
    return value == "" or (isinstance(value, float) and math.isnan(value))


_BLANK_CELLS = ("", "null", "n/a", "na", "-")


def _parse_printed(text: str) -> Any:
    """Return the value that Python printed, with ``nan`` and ``inf``, or else the text."""
    if text.strip().casefold() in _BLANK_CELLS:
        return None
    # Literals only. Python prints what it cannot read: nan, and inf, which 1e999 is.
    literal = re.sub(r"(?<![\w'\"])nan(?![\w'\"])", "None", text)
    literal = re.sub(r"(?<![\w'\"])inf(?![\w'\"])", "1e999", literal)
    with suppress(ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return ast.literal_eval(literal)
    return text


# ---- 1. lists of tokens in a value ----


def find_token_lists(
    value: Any, name: str = "logprobs", depth: int = MAX_DEPTH
) -> Iterator[list[ReadToken] | str]:
    """Yield every list of tokens in a value, and a key of :data:`UNUSABLE` for what is none.

    Args:
        value: the value. name: what it is called, as numbers alone count only where the name says
            that they are log-probabilities. depth: levels that are searched.
    """
    if depth == 0:
        return
    if isinstance(value, int | float) and not isinstance(value, bool) and name in _NUMBER_COLUMNS:
        yield ONE_NUMBER
    elif isinstance(value, Mapping):
        yield from _search_object(value, depth)
    elif isinstance(value, list | tuple):
        tokens = _read_list(value, numbers_alone=name in _NUMBER_COLUMNS)
        if tokens and _has_number(tokens):
            yield tokens
            return
        if tokens:
            yield NO_NUMBERS
        for item in value:
            # The only item is what the list is called; of several, numbers mean anything.
            yield from find_token_lists(item, name if len(value) == 1 else "", depth - 1)


def _search_object(value: Mapping[Any, Any], depth: int) -> Iterator[list[ReadToken] | str]:
    by_name = _by_plain_name(value)
    texts, numbers = (_first_list(by_name, names) for names in (_TOKEN_COLUMNS, _NUMBER_COLUMNS))
    alternatives = _first_list(by_name, _ALTERNATIVES) or []
    used = set()
    # Columns of texts and numbers, as OpenAI's completions have them.
    if texts and numbers and all(isinstance(text, str | int) for text in texts):
        used = {*_TOKEN_COLUMNS, *_NUMBER_COLUMNS}
        tokens = _read_list(numbers, numbers_alone=True) or []
        if len(texts) == len(numbers) == len(tokens):
            tokens = [
                token._replace(text=_read_text(text))
                for token, text in zip(tokens, texts, strict=True)
            ]
            yield _add_alternatives(tokens, alternatives)
        else:
            yield LENGTHS
    if any(isinstance(by_name.get(name), int | float) for name in _SUMS):
        yield ONE_NUMBER
    for name, item in by_name.items():
        if name in used or name in _SKIPPED or name.startswith(_SKIPPED_STARTS):
            continue
        for tokens_or_reason in find_token_lists(item, name, depth - 1):
            if isinstance(tokens_or_reason, list):
                # Gemini and TGI write alternatives beside the list, one item for each token.
                yield _add_alternatives(tokens_or_reason, alternatives)
            else:
                yield tokens_or_reason


def _by_plain_name(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return an object by its names without case and underscores."""
    return dict(zip(_plain_names(tuple(value)), value.values(), strict=True))


# Cached, as all tokens of all replies have the same names.
@lru_cache(maxsize=1024)
def _plain_names(names: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(str(name).replace("_", "").replace("-", "").lower() for name in names)


def _first_list(by_name: Mapping[str, Any], names: Sequence[str]) -> Sequence[Any] | None:
    lists = (by_name[name] for name in names if isinstance(by_name.get(name), list | tuple))
    return next(lists, None)


def _add_alternatives(tokens: list[ReadToken], alternatives: Sequence[Any]) -> list[ReadToken]:
    """Return tokens with the alternatives in a list beside them; Gemini's may end earlier."""
    if len(alternatives) > len(tokens):
        return tokens
    return [
        token if token.alternatives else token._replace(alternatives=_read_alternatives(item))
        for token, item in zip_longest(tokens, alternatives)
    ]


def _read_list(items: Sequence[Any], *, numbers_alone: bool) -> list[ReadToken] | None:
    """Return the tokens that a list holds; ``None`` if an item is none."""
    result: list[ReadToken] = []
    for item in items:
        tokens = _read_item(item, numbers_alone=numbers_alone)
        if tokens is None:
            return None
        result += tokens
    return result


def _has_number(tokens: Sequence[ReadToken]) -> bool:
    return any(not math.isnan(token.logprob) for token in tokens)


def _read_item(item: Any, *, numbers_alone: bool) -> Sequence[ReadToken] | None:
    # The first token of a prompt has no number: completions with echo write null in its place.
    if item is None:
        return [ReadToken(None, math.nan)]
    if isinstance(item, Mapping):
        return _read_object(item)
    if isinstance(item, list | tuple):
        token = _read_pair(item)
        return None if token is None else [token]
    number = read_logprob(item)
    is_number = not math.isnan(number) or str(item).lower() == "nan"
    return [ReadToken(None, number)] if numbers_alone and is_number else None


def _read_pair(item: Sequence[Any]) -> ReadToken | None:
    """Read [text, number, alternatives], or [number, id, text] as of SGLang."""
    if len(item) == 3 and type(item[1]) is int and not isinstance(item[0], str):
        return ReadToken(_read_text(item[2]), read_logprob(item[0]))
    if not 1 <= len(item) <= 3 or not isinstance(item[0], str | int | None):
        return None
    text, number, alternatives = (*item, None, None)[:3]
    return ReadToken(_read_text(text), read_logprob(number), _read_alternatives(alternatives))


def _read_object(item: Mapping[Any, Any]) -> Sequence[ReadToken] | None:
    """Read a token that is an object; ``None`` if it is none."""
    # OpenAI's form and that of most servers, without a look at other names: a long reply has
    # thousands of tokens and alternatives.
    text, number = item.get("token"), item.get("logprob")
    if isinstance(text, str) and isinstance(number, float):
        alternatives = _read_alternatives(item["top_logprobs"]) if "top_logprobs" in item else ()
        raw = _read_bytes(item.get("bytes"))
        return [ReadToken(_read_text(text), read_logprob(number), alternatives, raw)]
    by_name = _by_plain_name(item)
    text = next((by_name[name] for name in _TEXTS if isinstance(by_name.get(name), str)), None)
    alternatives = _read_alternatives(_first_present(by_name, _ALTERNATIVES))
    number = _first_present(by_name, _NUMBERS)
    # Cohere writes a piece of text with a number for each of its tokens.
    if isinstance(number, list | tuple):
        tokens = _read_list(number, numbers_alone=True) or []
        if any(token.text is not None for token in tokens):
            return None  # a message with its tokens, which are found inside it
        # Tokens without text count here, unlike those of endpoints that end a text.
        return [
            token._replace(text="", raw=b"") if place else token._replace(text=text)
            for place, token in enumerate(tokens)
        ]
    logprob = read_logprob(number)
    probability = read_logprob(_first_present(by_name, _PROBABILITIES))
    # llama.cpp writes probabilities, in an earlier form only those of the alternatives.
    if math.isnan(logprob) and 0 <= probability <= 1:
        logprob = math.log(probability) if probability else -math.inf
    if math.isnan(logprob) and number is None:
        logprob = dict(alternatives).get(str(text), math.nan)
    if text is None and number is None:
        return _read_position(item)
    return [ReadToken(_read_text(text), logprob, alternatives, _read_bytes(by_name.get("bytes")))]


def _read_position(item: Mapping[Any, Any]) -> Sequence[ReadToken] | None:
    """Read the tokens of one position by id, as vLLM writes them; the chosen one is the first."""
    pairs = _read_alternatives(item)
    return [ReadToken(_read_text(pairs[0][0]), pairs[0][1], pairs)] if pairs else None


def _read_alternatives(value: Any) -> tuple[tuple[str, float], ...]:
    """Return the tokens of one position; empty if the value holds anything else.

    It is a list of tokens in any form, an object of numbers by token, or one of tokens by id.
    """
    if isinstance(value, Mapping):
        lists = [item for item in value.values() if isinstance(item, list | tuple)]
        if len(lists) == len(value) == 1:  # Gemini: {"candidates": [...]}
            return _read_alternatives(lists[0])
        items = [
            item if isinstance(item, Mapping) else (str(name), item) for name, item in value.items()
        ]
    elif isinstance(value, list | tuple):
        items = list(value)
    else:
        return ()
    tokens = _read_list(items, numbers_alone=False) if items else None
    # A token that cannot be at the place adds nothing to its entropy: 0 log 0 is 0.
    return tuple((t.text or "", min(t.logprob, 0.0)) for t in tokens or () if t.logprob > -math.inf)


def _first_present(by_name: Mapping[str, Any], names: Sequence[str]) -> Any:
    for name in names:
        if (value := by_name.get(name)) is not None:
            return value
    return None


def _read_text(text: Any) -> str | None:
    """Return the text of a token; vLLM can write ``token_id:791`` in its place."""
    is_id = not isinstance(text, str) or (text.startswith("token_id:") and text[9:].isdigit())
    return None if is_id else text


def _read_bytes(value: Any) -> bytes | None:
    with suppress(TypeError, ValueError):
        return bytes(value) if value and isinstance(value, list) else None
    return None


def read_logprob(value: Any) -> float:
    """Return a log-probability as a number, NaN for what is none.

    It may be minus infinity, and a finite number above 0, which no log-probability is.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        result = float(value)
    except (ValueError, OverflowError):
        return math.nan
    if result <= VERY_UNLIKELY:
        return -math.inf
    # A server that failed to compute it: no token is more than certain.
    if result == math.inf:
        return math.nan
    return 0.0 if 0 < result <= ROUNDING else result


# ---- 2. how the texts of a list may be spelled ----


Decode = Callable[[str], bytes]
"""Returns the bytes that a token stands for."""


def _spell(tokens: Sequence[ReadToken]) -> Iterator[tuple[list[str], Decode]]:
    """Yield the texts of tokens in each spelling, and how an alternative is spelled beside them.

    The texts as they are come first: a text may have a tokenizer's mark in it, or ``\\xe2``.
    """
    texts = [token.text or "" for token in tokens]
    yield texts, _encode
    encoded = [_encode(text) for text in texts]
    if any(token.raw for token in tokens):
        pieces = (token.raw or piece for token, piece in zip(tokens, encoded, strict=True))
        yield _decode_pieces([*pieces]), _encode
    for decode in (_decode_marks, _decode_byte_letters):
        decoded = [decode(text) for text in texts]
        if decoded != encoded:
            yield _decode_pieces(decoded), decode


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


_ESCAPED_BYTE = re.compile(r"\\x([0-9a-fA-F]{2})|<0x([0-9a-fA-F]{2})>")


def _decode_marks(text: str) -> bytes:
    r"""Return the bytes of a token of sentencepiece (``▁the``, ``<0xF0>``) or as ``bytes:\xf0``."""
    text = text.removeprefix("bytes:").replace("▁", " ")
    result, position = bytearray(), 0
    for match in _ESCAPED_BYTE.finditer(text):
        result += _encode(text[position : match.start()])
        result.append(int(match[1] or match[2], 16))
        position = match.end()
    return bytes(result) + _encode(text[position:])


def _byte_letters() -> dict[str, int]:
    """Return the byte of each letter of GPT-2's: those from U+0100 on are not printable bytes."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in printable)
    letters = {chr(0x100 + n): byte for n, byte in enumerate(others)}
    return {chr(byte): byte for byte in printable} | letters


_BYTE_OF_LETTER = _byte_letters()


def _decode_byte_letters(text: str) -> bytes:
    """Return the bytes of a token of a byte-level tokenizer (``Ġthe``); others stay as they are."""
    if all(letter in _BYTE_OF_LETTER for letter in text):
        return bytes(_BYTE_OF_LETTER[letter] for letter in text)
    return _encode(text)


def _decode_pieces(pieces: Sequence[bytes]) -> list[str]:
    """Decode tokens that may end inside a character; the token that completes it gets it."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    result = [decoder.decode(piece) for piece in pieces]
    result[-1] += decoder.decode(b"", final=True)
    return result


# ---- 3. the tokens that spell a text ----


def _fit_list(tokens: list[ReadToken], text: str) -> FittedTokens:
    """Return those tokens of a list that spell a text."""
    # Nothing comes before the first token of a text, so some endpoints make its number up: it is
    # null, infinite or, with Together, positive.
    if len(tokens) > 1 and (tokens[0].logprob > 0 or math.isinf(tokens[0].logprob)):
        tokens = [tokens[0]._replace(logprob=math.nan), *tokens[1:]]
    if all(token.text is None and token.raw is None for token in tokens):
        least = MIN_TOKENS_PER_WORD * len(text.split())
        most = len(_encode(_squeeze(text))) + MORE_TOKENS
        if not least <= len(tokens) <= most:
            return FittedTokens(unusable=COUNT)
        return _check_numbers([TokenLogprob("", t.logprob, t.alternatives) for t in tokens])
    reason = ANOTHER_TEXT
    for pieces, decode in _spell(tokens):
        result = _find_span(tokens, pieces, text) or _match_with_holes(tokens, pieces, text)
        if result:
            return _check_numbers(
                [
                    TokenLogprob(piece, tokens[place].logprob, _respell(tokens[place], decode))
                    for place, piece in result
                ]
            )
        spelled = _squeeze("".join(pieces))
        if spelled and spelled in _squeeze(text):
            reason = PART_OF_TEXT
    return FittedTokens(unusable=reason)


def _respell(token: ReadToken, decode: Decode) -> tuple[tuple[str, float], ...]:
    """Return the alternatives of a token, spelled as the tokens are."""
    return tuple((decode(text).decode("utf-8", "replace"), p) for text, p in token.alternatives)


def _check_numbers(tokens: Sequence[TokenLogprob]) -> FittedTokens:
    """Return the tokens unless too few of their numbers can be used."""
    if any(token.logprob > 0 for token in tokens):
        return FittedTokens(unusable=POSITIVE)
    known = sum(not math.isnan(token.logprob) for token in tokens)
    if known < MIN_KNOWN_SHARE * len(tokens):
        return FittedTokens(unusable=NO_NUMBERS)
    return FittedTokens(tuple(tokens))


def _squeeze(text: str) -> str:
    """Return a text without white space, about which tokens and replies often disagree."""
    return "".join(text.split())


def _find_span(
    tokens: Sequence[ReadToken], pieces: Sequence[str], text: str
) -> list[tuple[int, str]] | None:
    """Return place and text of the tokens that spell a text; ``None`` if no tokens do.

    Of several places the last one counts: reasoning, or a repeated prompt, may hold the text too.
    """
    squeezed, target = [_squeeze(piece) for piece in pieces], _squeeze(text)
    ends = list(accumulate(map(len, squeezed)))
    spelled = "".join(squeezed)
    # The tokens that begin and end at each character. White space is no end of a text, nor is a
    # token without text, but a part of a character is, which is decoded to nothing.
    first_at, last_at = dict[int, int](), dict[int, int]()
    for place, (piece, token) in enumerate(zip(squeezed, tokens, strict=True)):
        if piece or (not pieces[place] and _is_something(token)):
            first_at.setdefault(ends[place] - len(piece), place)
            last_at[ends[place]] = place
    at = spelled.rfind(target)
    while target and at >= 0:
        first, last = first_at.get(at), last_at.get(at + len(target))
        if first is not None and last is not None and _is_apart(pieces, first, last):
            # White space at the ends belongs to the text if the tokens spell nothing else.
            if at == 0:
                first = min(n for n, token in enumerate(tokens) if _is_something(token))
            if at + len(target) == len(spelled):
                last = max(n for n, token in enumerate(tokens) if _is_something(token))
            return [(place, pieces[place]) for place in range(first, last + 1)]
        at = spelled.rfind(target, 0, at + len(target) - 1)
    return None


def _is_something(token: ReadToken) -> bool:
    """Whether a token has a text; that which ends a text often has none."""
    return bool(token.text) or token.raw is not None


def _is_apart(pieces: Sequence[str], first: int, last: int) -> bool:
    """Whether no word goes on before the first or behind the last of some tokens."""
    before = next((pieces[n] for n in range(first - 1, -1, -1) if pieces[n]), "")[-1:]
    behind = next((pieces[n] for n in range(last + 1, len(pieces)) if pieces[n]), "")[:1]
    begins_inside = before.isalnum() and pieces[first][:1].isalnum()
    return not begins_inside and not (pieces[last][-1:].isalnum() and behind.isalnum())


_SPECIAL_TOKEN = re.compile(r"<[^\s<>]{1,40}>|\[[A-Z]{2,10}\]")
"""A token that begins or ends a text: ``</s>``, ``<|im_end|>``, ``[EOS]``."""
_HOLE = "\ufffd"


def _match_with_holes(
    tokens: Sequence[ReadToken], pieces: Sequence[str], text: str
) -> list[tuple[int, str]] | None:
    """Return place and text of tokens that spell a text but for characters that were cut in parts.

    Ollama, vLLM and TGI write U+FFFD, or nothing, for a token that is a part of a character.
    """
    texts = [
        _squeeze(piece) or (_HOLE if token.text == "" else "")
        for piece, token in zip(pieces, tokens, strict=True)
    ]
    target = _squeeze(text)
    first, behind = 0, len(texts)
    while first < behind and (not texts[first] or _SPECIAL_TOKEN.fullmatch(texts[first])):
        first += 1
    while first < behind and _SPECIAL_TOKEN.fullmatch(texts[behind - 1]):
        behind -= 1
    spelled = "".join(texts[first:behind])
    if _HOLE not in spelled:
        return None
    # By character of `spelled`, what it stands for; of a hole, its last one stands for all.
    meant, at = list[str](), 0
    segments = re.findall(f"{_HOLE}+|[^{_HOLE}]+", spelled)
    for segment, following in zip(segments, [*segments[1:], ""], strict=True):
        if segment[0] != _HOLE:
            if not target.startswith(segment, at):
                return None
            meant += segment
            at += len(segment)
            continue
        # A character has at least one token, and only those that are not ASCII have more bytes.
        end = target.find(following, at, at + len(segment) + len(following))
        end = end if following else len(target)
        if not at <= end <= at + len(segment) or any(map(str.isascii, target[at:end])):
            return None
        meant += [""] * (len(segment) - 1) + [target[at:end]]
        at = end
    if at < len(target):
        return None
    ends = [0, *accumulate(len(piece) for piece in texts[first:behind])]
    result = [
        (first + n, "".join(meant[begin:end])) for n, (begin, end) in enumerate(pairwise(ends))
    ]
    # A token without text at the end that stands for nothing ended the text.
    while result and not result[-1][1] and not tokens[result[-1][0]].text:
        result.pop()
    return result
