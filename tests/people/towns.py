"""Runs about towns: in some, junk stands in place of every third answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trustassay import score

JUNK = "Purple elephants sing opera beneath frozen volcanoes [1]."


def towns(n: int, *, junk: bool = False, ids: str = "t") -> Iterator[dict[str, Any]]:
    """Yield answered questions about n towns, which the lexical entailer finds supported."""
    for i in range(n):
        fact = f"Town {i} lies on the river Arve. It has {100 + i} houses and one mill."
        told = f"Town {i} lies on the river Arve [1]. It has {100 + i} houses [1]."
        response = JUNK if junk and i % 3 == 0 else told
        yield {
            "id": f"{ids}{i}",
            "question": f"Where is town {i}?",
            "response": response,
            "documents": [fact],
        }


def town_run(out: Path, rows: Iterator[dict[str, Any]], metrics: Any = "grounding") -> Path:
    """Score the towns into a folder."""
    score(list(rows), metrics=metrics, entailer="lexical", out=out, report=False)
    return out
