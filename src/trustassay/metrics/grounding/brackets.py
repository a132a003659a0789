"""Numbers in brackets that cite nothing: in code, and in the list of references of an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["masked", "unmasked", "without_references"]

_CODE = re.compile(
    r"(?P<fence>`{3,}|~{3,}).*?(?:(?P=fence)|\Z)|`[^`\n]+`"
    r"|(?<![\w.])(?:[a-z]|[a-z]\w{0,40}_\w{0,40})(?:\[[0-9]{1,9}\])+"
    r"|\w(?:\[[0-9]{1,9}\])+(?=\s?(?:[-+*/]?=|\+\+|--)|\.\w{1,99}\()"
    r"|=\s?\[[^\[\]\n]*\]",
    re.DOTALL,
)
"""Code between backticks; an index of a variable with a name of one letter or with underscores, or
before an assignment or a call; a list that is assigned."""
_OPENING = str.maketrans("[【", "\ue000\ue001")
_OPENED = str.maketrans("\ue000\ue001", "[【")
_ENTRY = re.compile(
    r"\s*(?:[-*•]\s+|\d{1,3}[.)]\s+)?(?:\[\^?\d{1,3}\]|【\d{1,3}】)(?P<colon>:?).*", re.ASCII
)
_HEADING = re.compile(
    r"\W*(?:list of )?(?:sources?|references?|citations?|bibliography|works cited|footnotes?"
    r"|quellen|literatur|références|fuentes|referencias|fontes|referências|fonti|bronnen"
    r"|参考文献|出典|来源)\W*",
    re.IGNORECASE,
)


def masked(text: str) -> str:
    """Return a text of the same length in which brackets of code begin no citation."""
    if "[" not in text and "【" not in text:
        return text
    return _CODE.sub(lambda code: code.group().translate(_OPENING), text)


def unmasked(text: str) -> str:
    """Return a text, or a part of it, as it was before :func:`masked`."""
    return text.translate(_OPENED)


def without_references(text: str) -> str:
    """Return a response without the list of references that ends it.

    That is lines which begin with a marker, below a heading such as "Sources:", or each with a
    colon after the marker or a link in it.
    """
    lines = text.splitlines(keepends=True)
    end = len(lines)
    while end and _is_entry(lines[end - 1]):
        end -= 1
    entries = [line for line in lines[end:] if line.strip()]
    headed = end > 0 and _HEADING.fullmatch(lines[end - 1].rstrip()) is not None
    body = "".join(lines[: end - headed])
    if not entries or not body.strip() or not (headed or _are_references(entries)):
        return text
    return body


def _is_entry(line: str) -> bool:
    return not line.strip() or _ENTRY.fullmatch(line.rstrip()) is not None


def _are_references(entries: Sequence[str]) -> bool:
    found = (_ENTRY.fullmatch(line.rstrip()) for line in entries)
    return all(one and (one["colon"] or "://" in one.group()) for one in found)
