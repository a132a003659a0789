"""A secret for each rater: who has the link can rate under that name."""

from __future__ import annotations

import hmac
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from trustassay.data.records import InputError
from trustassay.files import whole

__all__ = ["Links"]

BYTES = 18


class Links:
    """The tokens of raters, kept in ``.NAME.links`` beside the file of ratings, so that links stay
    the same when the command is run again. Only its owner can read that file.
    """

    def __init__(self, ratings: Path, raters: Sequence[str]) -> None:
        """Read the tokens that there are, and make those that are missing.

        Raises:
            InputError: the file is damaged.
            OSError: it cannot be read or written.
        """
        path = ratings.with_name(f".{ratings.name}.links")
        known = _read(path)
        new = {name: secrets.token_urlsafe(BYTES) for name in raters if name not in known}
        if new:
            with whole(path) as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(json.dumps(known | new, indent=2).encode() + b"\n")
        self.tokens: Mapping[str, str] = {name: (known | new)[name] for name in raters}

    def rater(self, token: str) -> str | None:
        """Return whose token it is; ``None`` if nobody's. The time it takes tells nothing."""
        found = None
        for name, known in self.tokens.items():
            if hmac.compare_digest(known.encode(), token.encode(errors="replace")):
                found = name
        return found


def _read(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(
        isinstance(token, str) and len(token) >= BYTES for token in found.values()
    ):
        raise InputError(f"{path}: damaged; remove it, and all raters get new links")
    return found
