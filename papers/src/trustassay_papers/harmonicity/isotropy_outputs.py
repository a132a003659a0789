"""What a check of isotropy found: sentences, tables, a page, and JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from markupsafe import Markup

from trustassay.show import document
from trustassay.show.charts import Curve, Mark, bars_svg, curves_svg
from trustassay.show.text import number
from trustassay.text.words import amount
from trustassay_papers.harmonicity.isotropy import Cosines, Estimate, Isotropy, Shape
from trustassay_papers.harmonicity.perturbed import Versions

PAPER = "In the paper the mean of ten perturbed sentences lay within 11 degrees of each original."
AUTHORS = "the authors: .9824 ± .0005, with control characters and ada-002 on TruthfulQA"
DROPPED = ("control", "codes", "whitespace")
"""Perturbations whose characters the tokenizer of the embedded model drops."""
ALIKE = 0.99
"""From this cosine on all displacements of a text count as one."""
FIGURE_COLUMNS = ("found", "95 % interval", "isotropic cloud")
ANGLE_BINS = 40
PAPERS_CONE = 11.0
"""Degrees within which all means of perturbed texts lay in the paper (footnote 3)."""
COLUMNS = ("seen", "unchanged, %", "angle, °", "cone, °", "cosine", "dimensions, %")


def warnings_of(
    found: Mapping[str, Isotropy], made: Mapping[str, Versions], embedder: str
) -> list[str]:
    """Return the warnings, one for all perturbations that it applies to."""
    told: dict[str, list[str]] = {}
    for name, one in found.items():
        if left_out := made[name].left_out:
            words = f"cannot be applied to {left_out:,} questions, which are left out"
            told.setdefault(words, []).append(name)
        if words := blindness(one, name, embedder):
            told.setdefault(words, []).append(name)
    alone = len(found) == 1
    return [words if alone else f"{', '.join(names)}: {words}" for words, names in told.items()]


def sight(found: Isotropy) -> str:
    """Return whether the embedder sees a perturbation: yes, no, in part, or not what."""
    share = found.unchanged.value
    if share == 1:
        return "no"
    if share > 0:
        return "in part"
    if found.shape and found.shape.cosine and found.shape.cosine.value > ALIKE:
        return "not what"
    return "yes"


def seen(found: Mapping[str, Isotropy], embedder: str) -> str:
    """Return a sentence on which perturbations the embedder sees, and which it does not."""
    named: dict[str, list[str]] = {}
    for name, one in found.items():
        named.setdefault(sight(one), []).append(name)
    parts = [
        words.format(", ".join(named[kind]))
        for kind, words in (
            ("yes", "sees {}"),
            ("in part", "sees {} in part"),
            ("not what", "sees that {} changed something, but not what"),
            ("no", "does not see {}"),
        )
        if kind in named
    ]
    return f"{embedder} {'; '.join(parts)}."


def overview(found: Mapping[str, Isotropy]) -> document.Table:
    """Return one row for each perturbation: how far the embedder sees it."""
    rows = []
    for name, one in found.items():
        ratio = "–"
        if one.shape and one.expected:
            ratio = f"{100 * one.shape.dimensions.value / one.expected.dimensions.value:.0f}"
        cells = [
            sight(one),
            f"{100 * one.unchanged.value:.1f}",
            f"{one.angle.value:.2f}",
            f"{one.cone.value:.2f}",
            f"{one.cosines.mean.value:.4f}",
            ratio,
        ]
        rows.append(document.Row(name, cells))
    return document.Table("Perturbation", COLUMNS, rows)


def blindness(found: Isotropy, perturbation: str, embedder: str) -> str:
    """Say that the embedder does not see that texts were changed, or how; empty if it does."""
    share = found.unchanged.value
    if sight(found) == "not what":
        return (
            "All perturbed versions of a text have nearly the same vector: the embedder sees that "
            "something was changed, but not what. This happens, for instance, when a tokenizer "
            "maps all unknown characters to the same token."
        )
    if share == 0:
        return ""
    if share == 1:
        words = "Every perturbed text has the same vector as its original"
    else:
        words = f"{100 * share:.1f} % of the perturbed texts have the same vector as their original"
    if embedder.startswith("embedded") and perturbation in DROPPED:
        words += f", since the tokenizer of {embedder} drops such characters"
    if share < 1:
        return f"{words}; they count as angles of 0, and their directions are left out."
    return (
        f"{words}, so this embedder cannot measure this perturbation. Gamma is not affected, since "
        "it compares answers and not prompts."
    )


def headline(found: Isotropy) -> str:
    """Return a sentence on how far and how evenly the perturbed texts spread."""
    if found.shape is None or found.expected is None:
        return "The embedder does not see this perturbation: no vector moves."
    own, cloud = found.shape.dimensions.value, found.expected.dimensions.value
    return (
        f"The mean of {found.perturbations} perturbed versions lies {found.cone.value:.3g}° from "
        f"its original on average, and within {found.within:.3g}° for all {found.texts:,} texts. "
        f"The displacements use {own:.3g} effective dimensions; an isotropic cloud of the same "
        f"size uses {cloud:.3g} ({100 * (own / cloud):.0f} %)."
    )


def figures(found: Isotropy) -> document.Table:
    """Return the table of figures: found, interval, and the value of an isotropic cloud."""

    def row(
        name: str, one: Estimate | None, digits: int, why: str, cloud: Estimate | None = None
    ) -> document.Row:
        if one is None:
            return document.Row(name, ["–", "", ""], why)
        interval = " to ".join(f"{end:.{digits}f}" for end in one.interval or ())
        expected = "" if cloud is None else f"{cloud.value:.{digits}f}"
        return document.Row(name, [f"{one.value:.{digits}f}", interval, expected], why)

    share, cosines = found.unchanged, found.cosines
    percent = Estimate(
        100 * share.value, share.interval and (100 * share.interval[0], 100 * share.interval[1])
    )
    error = "" if cosines.error is None else f"{cosines.error:.4f}"
    rows = [
        row("unchanged, %", percent, 1, "perturbed texts with the same vector as the original"),
        row("angle, °", found.angle, 2, "between a perturbed text and its original, on average"),
        row(
            "cone, °",
            found.cone,
            2,
            "between the mean of a text’s versions and the text, on average",
        ),
        document.Row(
            "largest cone, °", [f"{found.within:.2f}", "", ""], "the paper’s figure: below 11"
        ),
        row(
            "cosine", cosines.mean, 4, f"to the original, mean over each text’s versions; {AUTHORS}"
        ),
        document.Row("± standard error", [error, "", ""], "of that mean"),
        row("its deviation", cosines.deviation, 4, "among the versions of a text, on average"),
        row("cosine of the mean", cosines.of_mean, 4, "of a text’s versions to the original"),
        row("difference", cosines.below, 4, "cosine of the mean less the mean cosine"),
    ]
    for name, key, digits, why in (
        ("mean displacement", "displacement", 3, "length of a text’s mean unit displacement; "
         "0: they cancel out, 1: all in one direction"),
        ("cosine of displacements", "cosine", 3, "between two displacements of a text, on average"),
        ("largest eigenvalue", "largest", 3, "share of the displacement along one direction"),
        ("effective dimensions", "dimensions", 1, "participation ratio of the eigenvalues"),
    ):  # fmt: skip
        one, cloud = (getattr(shape, key, None) for shape in (found.shape, found.expected))
        rows.append(row(name, one, digits, why, cloud))
    return document.Table("Figure", FIGURE_COLUMNS, rows, "In numbers")


def document_of(
    found: Mapping[str, Isotropy], facts: Mapping[str, Any], warnings: list[str]
) -> document.Document:
    """Return the page: of one perturbation its drawings, of several each one's under a table."""
    alone, embedder = len(found) == 1, facts["embedder"]
    sections = []
    if not alone:
        sections.append(
            document.Section("What the embedder sees of each perturbation", [overview(found)])
        )
    for name, one in found.items():
        parts: list[document.Block] = [_angles(one), _directions(one), figures(one)]
        if alone:
            sections.append(document.Section("", parts))
        elif one.shape:
            sections.append(document.Section(name, [document.Text(headline(one)), *parts]))
    first = headline(next(iter(found.values()))) if alone else seen(found, embedder)
    return document.Document(
        "papers isotropy",
        f"Isotropy of {', '.join(found)}, seen by {embedder}",
        {name: str(fact) for name, fact in facts.items()},
        f"{first} {PAPER}",
        warnings,
        sections,
    )


def _angles(found: Isotropy) -> document.Chart:
    """Draw the angles of single perturbed texts, and of the mean of each text's."""
    largest = float(found.angles.max(initial=0.0))
    widest = next((m for m in (1, 2, 5, 10, 15, 20, 30, 45, 60, 90) if m >= largest), 180)
    bars = []
    for style, name, angles in (
        ("one", "each perturbed text", found.angles),
        ("two", "the mean of a text’s perturbed versions (its cone)", found.cones),
    ):
        counts, edges = np.histogram(angles, bins=ANGLE_BINS, range=(0, widest))
        titles = [
            f"{a:.3g} to {b:.3g}°: {n:,}"
            for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
        marks = [Mark("mean", float(angles.mean()) / widest)]
        if widest > PAPERS_CONE:
            marks.append(Mark("bound", PAPERS_CONE / widest))
        label = f"{amount(len(angles), 'angle')}, mean {angles.mean():.3g}°"
        shares = (counts / max(counts.max(), 1)).tolist()
        drawing = bars_svg(shares, 1.0, label, marks, "ridge tall", titles)
        text = f"mean {angles.mean():.3g}°, largest {angles.max():.3g}°"
        bars.append(document.Bar(name, text, drawing, style=style))
    bound = Markup(', <span class="sign bound"></span> 11°, the limit of all means in the paper')
    note = Markup("{}mean{}. Each row has its own scale of heights.").format(
        document.MEAN, bound if widest > PAPERS_CONE else ""
    )
    axis = ("0°", f"{widest / 2:g}°", f"{widest:g}°")
    return document.Chart(
        "Angle to the original text, in degrees", note, [document.Bars(bars, axis, "pair")]
    )


def _directions(found: Isotropy) -> document.Chart:
    """Draw the cumulative shares of the eigenvalues next to those of an isotropic cloud."""
    title = "Share of the displacement in the first directions"
    if found.shape is None or found.expected is None:
        nothing = document.Text("No perturbed text moved, so there are no directions.", "empty")
        return document.Chart(title, "", [nothing])
    curves = []
    for kind, shape in (("second", found.expected), ("first", found.shape)):
        reached = np.concatenate([[0.0], np.cumsum(shape.spectrum.shares)])
        places = np.linspace(0, 1, len(reached))
        curves.append(Curve(kind, list(zip(places.tolist(), reached.tolist(), strict=True))))
    eigenvalues = len(found.shape.spectrum.shares)
    half = int(np.searchsorted(np.cumsum(found.shape.spectrum.shares), 0.5)) + 1
    label = f"{amount(half, 'direction')} of {eigenvalues:,} contain half of the displacement"
    note = Markup(
        '<span class="sign first"></span> these displacements, <span class="sign second"></span> '
        "an isotropic cloud of the same size: as many versions at the same angles, in random "
        "directions. The higher the curve of these displacements, the fewer directions the "
        "perturbation uses."
    )
    axis = ("0", number(eigenvalues / 2, 0), f"{eigenvalues:,} directions")
    return document.Chart(
        title, note, [document.Drawing(curves_svg(curves, label), "percent", axis)]
    )


def to_dict(found: Isotropy) -> dict[str, Any]:
    """Return all figures, as ``--json`` prints them."""

    def of(figures: Shape | Cosines | None) -> dict[str, Any] | None:
        if figures is None:
            return None
        names = [field.name for field in dataclasses.fields(figures) if field.name != "spectrum"]
        return {name: estimate(getattr(figures, name)) for name in names}

    def estimate(one: Estimate | float | None) -> dict[str, Any] | float | None:
        return one if one is None or isinstance(one, float) else one._asdict()

    return {
        "texts": found.texts,
        "perturbations": found.perturbations,
        "dimensions": found.width,
        "unchanged": estimate(found.unchanged),
        "angle_degrees": estimate(found.angle),
        "cone_degrees": estimate(found.cone),
        "largest_cone_degrees": found.within,
        "cosines": of(found.cosines),
        "displacements": of(found.shape),
        "isotropic_cloud": of(found.expected),
    }
