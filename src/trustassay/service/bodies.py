"""The records of a request's body: JSON of one or many, or JSON Lines."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from starlette.requests import Request

from trustassay.service.replies import RequestError
from trustassay.texts import SHORT_PASSAGES, TextWork

__all__ = ["Records", "parse_json", "parsed", "read_json", "read_records"]

JSON = "application/json"
JSON_LINES = ("application/x-ndjson", "application/jsonl", "application/x-jsonlines")
DEEPEST = 64
"""Objects and lists inside one another; the deepest layout that `score` reads has about ten."""


class Records(NamedTuple):
    """What a body holds; ``many`` also if a list has a single record."""

    records: Sequence[Any]
    many: bool


async def read_records(request: Request, most: int) -> Records:
    """Read a body: an object is one record, a list or JSON Lines are many, ``most`` or fewer.

    Raises:
        RequestError: it is not that, is of another type, is too large (413) or comes too slowly
            (408).
    """
    kind = _kind(request, (JSON, *JSON_LINES))
    body = await request.body()
    if kind == JSON:
        content = await parsed(body, "the body")
        found = Records(content, True) if isinstance(content, list) else Records([content], False)
        _bound(len(found.records), most)
        return found
    lines = [(n, line) for n, line in enumerate(body.split(b"\n"), 1) if line.strip()]
    _bound(len(lines), most)
    return Records([parse_json(line, f"line {n}") for n, line in lines], True)


async def read_json(request: Request) -> Any:
    """Read a body of JSON alone.

    Raises:
        RequestError: as :func:`read_records`.
    """
    _kind(request, (JSON,))
    return await parsed(await request.body(), "the body")


def _bound(records: int, most: int) -> None:
    if not records:
        raise RequestError(400, "the body holds no sample")
    if records > most:
        raise RequestError(413, f"send {most:,} samples or fewer at once")


def _kind(request: Request, known: Sequence[str]) -> str:
    """Return the type of a body; one that a page of another site may send unasked is refused."""
    given = request.headers.get("content-type", "")
    kind, *options = (part.strip().lower() for part in given.split(";"))
    if kind not in known:
        raise RequestError(415, f"expected the header Content-Type: {' or '.join(known)}")
    charset = next((one.partition("=")[2] for one in options if one.startswith("charset=")), "")
    if charset.strip('"') not in ("", "utf-8", "utf8"):
        raise RequestError(415, "expected the body in UTF-8")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise RequestError(415, "expected the body without Content-Encoding")
    return kind


async def parsed(text: bytes, where: str) -> Any:
    """Return what :func:`parse_json` does; a long text is read in a thread."""
    return await TextWork(long=len(text) > SHORT_PASSAGES)(parse_json, text, where)


def parse_json(text: bytes, where: str) -> Any:
    """Return what JSON in UTF-8 holds.

    Raises:
        RequestError: it is not that, or not as deep and finite as can be written again.
    """
    try:
        found = json.loads(text.decode("utf-8-sig"), parse_constant=_refuse, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise RequestError(400, f"{where}: byte {error.start + 1} is not UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise RequestError(400, f"{where}: is not JSON ({place}: {error.msg})") from None
    except RecursionError:
        raise RequestError(400, _too_deep(where)) from None
    except ValueError:
        words = "a number is not finite, or has too many digits"
        raise RequestError(400, f"{where}: {words}") from None
    if _is_deep(found):
        raise RequestError(400, _too_deep(where))
    return found


def _is_deep(content: Any) -> bool:
    level = [content]
    for _ in range(DEEPEST):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _too_deep(where: str) -> str:
    return f"{where}: more than {DEEPEST} objects and lists are inside one another"


def _finite(text: str) -> float:
    found = float(text)
    return found if math.isfinite(found) else _refuse(text)


def _refuse(_text: str) -> NoReturn:
    raise ValueError
