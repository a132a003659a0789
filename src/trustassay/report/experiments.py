"""The page of an experiment: its drawings and its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from trustassay.report.page import write_template
from trustassay.report.pages import Row
from trustassay.report.plots import bars_svg, box_svg
from trustassay.report.text import amount, number

__all__ = ["Drawing", "Drawings", "ExperimentPage", "bars", "boxes", "write_experiment_page"]


class Drawing(NamedTuple):
    """One row of a figure: whose it is, a number beside it, and what is drawn."""

    name: str
    number: str
    picture: Markup


class Drawings(NamedTuple):
    """A figure: rows on one axis. ``note`` says what is drawn, ``axis`` holds the ends' labels."""

    title: str
    note: str
    rows: Sequence[Drawing]
    axis: tuple[str, str]


@dataclass(frozen=True)
class ExperimentPage:
    """What the page shows; the cells of ``rows`` stand as ``columns``."""

    title: str
    experiment: str
    facts: Mapping[str, str]
    headline: str
    warnings: Sequence[str]
    notes: Sequence[str]
    figures: Sequence[Drawings]
    columns: Sequence[str]
    rows: Sequence[Row]


def boxes(name: str, values: ArrayLike, most: float) -> Drawing:
    """Return the least, the quartiles and the largest of values from 0 to ``most``, drawn.

    There is at least one value.
    """
    found = np.quantile(np.asarray(values, dtype=float), (0, 0.25, 0.5, 0.75, 1)).tolist()
    words = [number(one, 2) for one in found]
    label = f"least {words[0]}, quartiles {', '.join(words[1:4])}, largest {words[4]}"
    return Drawing(name, f"median {words[2]}", box_svg([one / most for one in found], label))


def bars(name: str, counts: Sequence[int], labels: Sequence[str], beside: str) -> Drawing:
    """Return counts as bars; ``labels`` name them, ``beside`` is the number beside the drawing."""
    titles = [f"{label}: {count:,}" for label, count in zip(labels, counts, strict=True)]
    label = f"{amount(sum(counts), 'value')}: {'; '.join(titles)}"
    return Drawing(
        name, beside, bars_svg([float(c) for c in counts], max(*counts, 1), label, titles=titles)
    )


def write_experiment_page(page: ExperimentPage, path: Path) -> None:
    """Write the page of an experiment, whole or not at all."""
    write_template("experiment.html.jinja", path, page=page)
