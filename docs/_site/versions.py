"""Finds versions of the entailer that a text names, other than the one that ships."""

from __future__ import annotations

import json
import re
from pathlib import Path

WEIGHTS = Path(__file__).parents[2] / "src/trustassay/backends/weights"
SHIPPED = str(json.loads((WEIGHTS / "entailer.json").read_text(encoding="utf-8"))["version"])
_NAMED = re.compile(
    r"\bembedded:(\d+)\b"
    r"|\b(?:entailer|entailment model)\b[^.\n]{0,40}?\bversion (\d+)\b(?!\.\d)"
    r"|\bversion (\d+)\b(?!\.\d)[^.\n]{0,40}?\b(?:entailer|entailment model)\b",
    re.IGNORECASE,
)


def others(text: str) -> list[str]:
    """Return the versions of the entailer that a text names, without the shipped one."""
    named = ["".join(filter(None, match.groups())) for match in _NAMED.finditer(text)]
    return [version for version in named if version != SHIPPED]
