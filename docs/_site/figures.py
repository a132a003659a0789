"""Puts measured figures into pages, from the files that hold them.

``figures.csv`` has a row for each figure of a page: ``page`` (its path from the root), ``before``
and ``after`` (the text directly before and after the number, on the same line) and ``source``
(``FILE#KEY/KEY``). In ``before`` and ``after``, ``{}`` stands for any figure;
one that is empty is the line's beginning or end.

FILE is a JSON file below the repository's root, or a name in ``lab/results`` without ``.json``;
``measured`` is ``src/trustassay/backends/weights/measured.json``. A KEY of a list is a number, or
``FIELD=VALUE`` for the entry with that value; its spaces are written as ``_``. ``KEY&KEY`` at the
end takes several numbers of one object, and of an interval both ends: ``auroc&interval`` of
``.80 (.74 to .86)``. A share may be written as a count: ``2 of 40``.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / "src/trustassay/backends/weights/measured.json"
RESULTS = ROOT / "lab/results"
IMAGES = ROOT / "docs/images"
PICTURES = Path(__file__).with_name("pictures.json")
"""The entailer that each picture shows, and the picture's checksum, as they were taken."""
TABLE = Path(__file__).with_name("figures.csv")
_TABLE_NAME = TABLE.relative_to(ROOT).as_posix()
_NUMBER = r"(?<!\d)(?<!\d[.,])-?\.?\d(?:[\d.,]*\d)?(?![.,]?\d)"
_BETWEEN = r"(?: to | and | of | \(| \[|(?: %)?, (?:\*\*)?)"
_FIGURE = rf"(?:{_NUMBER}(?:{_BETWEEN}{_NUMBER})*?(?:[)\]]|\*\*)??)"
"""A number, or several as pages write them together; as few as what stands around them allows."""


class FigurePlace(NamedTuple):
    """A row of the table: a figure's page, the text around it, and where its value is."""

    page: str
    before: str
    after: str
    source: str

    def spans(self, text: str) -> set[tuple[int, int]]:
        """Return where the figure stands in the text of its page: once, if all is well."""
        # An empty text is the line's beginning or end. Only whole words count: "in" is not found
        # at the end of "within".
        start, end = "" if self.before else "^", "" if self.after else "$"
        if self.before[:1].isalnum():
            start = r"(?<!\w)"
        if self.after[-1:].isalnum():
            end = r"(?!\w)"
        before, after = (
            re.escape(side).replace(r"\{\}", _FIGURE) for side in (self.before, self.after)
        )
        # A look ahead lets one match begin within another, so that no second place is missed.
        place = f"(?={start}{before}(?P<figure>{_FIGURE}){after}{end})"
        return {match.span("figure") for match in re.finditer(place, text, re.MULTILINE)}


class NoFigureError(LookupError):
    """A row of the table names a value that no file holds, or a place that its page lacks."""


@cache
def read_table() -> tuple[FigurePlace, ...]:
    """Return the rows of ``figures.csv``."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(FigurePlace(**row) for row in csv.DictReader(file))


def value_of(file: str, keys: str) -> Any:
    """Return the value that a source ``FILE#KEYS`` names.

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
            raise NoFigureError(f"expected {len(value)} numbers in the page, got {before!r}")
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


def find_places(
    text: str, page: str, table: Sequence[FigurePlace]
) -> list[tuple[int, int, FigurePlace]]:
    """Return where each figure of a page begins and ends in its text, in order.

    Args:
        text: the page's text.
        page: its path from the root.
        table: rows of all pages.

    Raises:
        NoFigureError: a row's place is not in the text once, or two rows name the same place.
    """
    places = []
    for row in table:
        if row.page != page:
            continue
        spans = row.spans(text)
        if len(spans) != 1:
            advice = "write more of the text into" if spans else "the sentence was changed: change"
            raise NoFigureError(
                f"{page}: expected a figure once, got it {len(spans)} times\n"
                f"between {row.before!r} and {row.after!r}\n{advice} its row in {_TABLE_NAME}"
            )
        places.append((*spans.pop(), row))
    places.sort()
    for (_, end, row), (start, _, other) in itertools.pairwise(places):
        if start < end:
            raise NoFigureError(
                f"{page}: two rows name the same place: {row.source} and {other.source}\n"
                f"after {row.before!r}\nremove one of them from {_TABLE_NAME}"
            )
    return places


def with_figures(text: str, page: str, table: Sequence[FigurePlace] | None = None) -> str:
    """Return a page with the figures of today's files.

    Args:
        text: the page's text.
        page: its path from the root.
        table: rows of all pages, those of ``figures.csv`` if not given.

    Raises:
        NoFigureError: a row names a value that no file holds, or a place that the page lacks.
    """
    # From the last on, so that the places before it stay where they are.
    for start, end, row in reversed(
        find_places(text, page, read_table() if table is None else table)
    ):
        value = shown(value_of(*row.source.split("#", 1)), text[start:end])
        if not re.fullmatch(_FIGURE, value):
            raise NoFigureError(
                f"{page}: {row.source} is not a number that a page can show: {value}"
            )
        text = text[:start] + value + text[end:]
    return text


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
