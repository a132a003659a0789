"""Puts measured figures into pages, from the files that hold them.

A page writes a figure as ``<!-- figure: FILE#KEY/KEY -->.923<!-- /figure -->``. FILE is a JSON file
below the repository's root, or a name in ``lab/results`` without ``.json``; ``measured`` is
``src/trustassay/backends/weights/measured.json``. A KEY of a list is a number, or ``FIELD=VALUE``
for the entry with that value; its spaces are written as ``_``. ``KEY&KEY`` at the end takes several
numbers of one object, and of an interval both ends: ``auroc&interval`` of ``.80 (.74 to .86)``.
A share between the marks may be a count: ``2 of 40``.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / "src/trustassay/backends/weights/measured.json"
RESULTS = ROOT / "lab/results"
IMAGES = ROOT / "docs/images"
PICTURES = Path(__file__).with_name("pictures.json")
"""The entailer that each picture shows, and the picture's checksum, as they were taken."""
_FIGURE = re.compile(
    r"(<!-- figure: (?P<file>[\w./-]+)#(?P<keys>[^>]+?) -->)(?P<shown>[^<]*)(<!-- /figure -->)"
)


class NoFigureError(LookupError):
    """A page names a figure that no file holds."""


def value_of(file: str, keys: str) -> Any:
    """Return the value that a marker names.

    Raises:
        NoFigureError: no file holds it.
    """
    path = MEASURED if file == "measured" else RESULTS / f"{file}.json"
    path = ROOT / file if file.endswith(".json") else path
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        for key in keys.split("/"):
            if isinstance(value, list) and "=" in key:
                field, _, wanted = key.partition("=")
                value = next(one for one in value if _word(str(one[field])) == wanted)
            elif isinstance(value, list):
                value = value[int(key)]
            else:
                named = {_word(name): one for name, one in value.items()}
                several = [named[name] for name in key.split("&")]
                value = several[0] if len(several) == 1 else _flat(several)
    except (LookupError, StopIteration, TypeError, AttributeError, ValueError, OSError) as error:
        raise NoFigureError(f"no file holds the figure {file}#{keys}: {error!r}") from None
    return value


def _flat(values: list[Any]) -> list[float]:
    return [one for value in values for one in (value if isinstance(value, list) else [value])]


def _word(key: str) -> str:
    return key.replace(" ", "_")


def shown(value: Any, before: str) -> str:
    """Write a value with as many decimals as the page has now, and shares as ``.92``.

    Of a text such as ``0.921 (0.901 to 0.937)`` the value alone where the page shows that alone.
    Several numbers are written in the places of those that the page has now.
    """
    if isinstance(value, list):
        parts = re.split(r"([\d.]*\d)", before)
        if len(parts) != 2 * len(value) + 1:
            raise NoFigureError(f"expected {len(value)} numbers between the marks, got {before!r}")
        parts[1::2] = [shown(one, old) for one, old in zip(value, parts[1::2], strict=True)]
        return "".join(parts)
    if count := re.fullmatch(r"\d+ of (\d+)", before):
        return f"{value * int(count[1]):.0f} of {count[1]}"
    if isinstance(value, str) and re.fullmatch(r"\.\d+", before):
        value = float(value.split()[0])
    if isinstance(value, float) and before.isdigit():
        return f"{value:,.0f}"
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    decimals = len(before.partition(".")[2]) or 3
    text = f"{value:.{decimals}f}"
    return text.removeprefix("0") if not before.startswith("0") else text


def with_figures(text: str) -> str:
    """Return a page with the figures of today's files.

    Raises:
        NoFigureError: the page names a figure that no file holds.
    """

    def figure(match: re.Match[str]) -> str:
        value = shown(value_of(match["file"], match["keys"]), match["shown"])
        return f"{match[1]}{value}{match[5]}"

    return _FIGURE.sub(figure, text)


def checksum(picture: Path) -> str:
    """Return the checksum by which a picture is known."""
    return hashlib.sha256(picture.read_bytes()).hexdigest()[:16]


def old_pictures(entailer: str, images: Path = IMAGES) -> list[str]:
    """Return the pictures that show another entailer, or that were not taken by the program."""
    known = json.loads(PICTURES.read_text(encoding="utf-8"))
    return [
        path.name
        for path in sorted(images.glob("*.png"))
        if known.get(path.name) != {"entailer": entailer, "sha256": checksum(path)}
    ]
