"""Report a check of isotropy: sentences, tables, a page, and JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from markupsafe import Markup

from trustassay.papers.harmonicity.isotropy import (
    CosineFigures,
    DisplacementShape,
    Isotropy,
    IsotropyEstimate,
)
from trustassay.papers.harmonicity.perturbed import PerturbedVersions
from trustassay.report import document
from trustassay.report.charts import ChartMark, Curve, bars_svg, curves_svg
from trustassay.text.numbers import amount, number

PAPER = "In the paper, the mean of ten perturbed sentences is within 11 degrees of every original."
AUTHORS = ".9824 ± .0005 in the paper, with control characters and ada-002 on TruthfulQA"
DROPPED_FAMILIES = ("control", "codes", "whitespace")
"""Perturbations whose characters the tokenizer of the embedded model drops."""
MIN_ALIKE_COSINE = 0.99
"""Mean cosine from which all displacements of a text count as the same."""
FIGURE_COLUMNS = ("measured", "95 % interval", "isotropic cloud")
ANGLE_BINS = 40
PAPERS_CONE_DEGREES = 11.0
"""Degrees within which all means of perturbed texts lay in the paper (footnote 3)."""
COLUMNS = ("seen", "unchanged, %", "angle, °", "cone, °", "cosine", "dimensions, %")


def collect_warnings(
    results: Mapping[str, Isotropy],
    versions_by_name: Mapping[str, PerturbedVersions],
    embedder: str,
) -> list[str]:
    """Return the warnings; each names all perturbations that it applies to."""
    names_by_warning: dict[str, list[str]] = {}
    for name, result in results.items():
        # A family may need letters or words that a question does not have.
        if left_out := versions_by_name[name].left_out:
            warning = f"cannot be applied to {amount(left_out, 'question')}, left out here"
            names_by_warning.setdefault(warning, []).append(name)
        if warning := describe_blindness(result, name, embedder):
            names_by_warning.setdefault(warning, []).append(name)
    is_single = len(results) == 1
    return [
        warning if is_single else f"{', '.join(names)}: {warning}"
        for warning, names in names_by_warning.items()
    ]


def classify_sight(result: Isotropy) -> str:
    """Return how far the embedder sees a perturbation: yes, no, partly, or one vector.

    "one vector": all versions of a text move to the same vector.
    """
    share = result.unchanged.value
    # No vector moved at all.
    if share == 1:
        return "no"
    if share > 0:
        return "partly"
    # All versions moved to the same place: the tokenizer maps unknown characters to one token.
    if result.shape and result.shape.cosine and result.shape.cosine.value > MIN_ALIKE_COSINE:
        return "one vector"
    return "yes"


def describe_sight(results: Mapping[str, Isotropy], embedder: str) -> str:
    """Return a sentence on which perturbations the embedder sees, and which it does not."""
    names_by_sight: dict[str, list[str]] = {}
    for name, result in results.items():
        # Grouped, so that the sentence names each kind once.
        names_by_sight.setdefault(classify_sight(result), []).append(name)
    parts = [
        template.format(", ".join(names_by_sight[kind]))
        for kind, template in (
            ("yes", "sees {}"),
            ("partly", "sees {} partly"),
            ("one vector", "gives all versions by {} the same vector"),
            ("no", "does not see {}"),
        )
        if kind in names_by_sight
    ]
    return f"{embedder} {'; '.join(parts)}."


def build_overview(results: Mapping[str, Isotropy]) -> document.Table:
    """Return one row for each perturbation: how far the embedder sees it."""
    rows = []
    for name, result in results.items():
        # Without a displacement there is nothing to compare.
        ratio = "–"
        if result.shape and result.cloud_shape:
            ratio = (
                f"{100 * result.shape.dimensions.value / result.cloud_shape.dimensions.value:.0f}"
            )
        cells = [
            classify_sight(result),
            f"{100 * result.unchanged.value:.1f}",
            f"{result.angle.value:.2f}",
            f"{result.cone.value:.2f}",
            f"{result.cosines.mean.value:.4f}",
            ratio,
        ]
        rows.append(document.DocumentRow(name, cells))
    return document.Table("Perturbation", COLUMNS, rows)


def describe_blindness(result: Isotropy, perturbation: str, embedder: str) -> str:
    """Return a warning if the embedder does not see the change; an empty text if it does."""
    share = result.unchanged.value
    if classify_sight(result) == "one vector":
        return (
            "All perturbed versions of a text have nearly the same vector: the embedder sees "
            "that something changed, but not what. This happens, for example, if a tokenizer "
            "maps all unknown characters to one token."
        )
    if share == 0:
        return ""
    if share == 1:
        sentence = "Every perturbed text has the same vector as its original"
    else:
        sentence = (
            f"{100 * share:.1f} % of the perturbed texts have the same vector as their original"
        )
    # Known only of the embedded model; for others the cause is open.
    if embedder.startswith("embedded") and perturbation in DROPPED_FAMILIES:
        sentence += f", because the tokenizer of {embedder} drops such characters"
    if share < 1:
        return f"{sentence}. Such texts count as angles of 0, and their directions are left out."
    return (
        f"{sentence}. This embedder therefore cannot measure this perturbation. Gamma is not "
        "affected, because it compares answers, not prompts."
    )


def build_headline(result: Isotropy) -> str:
    """Return a sentence on how far and how evenly the perturbed texts spread."""
    # Nothing moved, so there are no directions.
    if result.shape is None or result.cloud_shape is None:
        return "The embedder does not see this perturbation: no vector changes."
    dimensions, cloud = result.shape.dimensions.value, result.cloud_shape.dimensions.value
    return (
        f"The mean of {result.perturbations} perturbed versions lies {result.cone.value:.3g}° from "
        f"its original on average, and within {result.largest_cone:.3g}° for all "
        f"{result.texts:,} texts. "
        f"The displacements use {dimensions:.3g} effective dimensions; an isotropic cloud of the "
        f"same size uses {cloud:.3g} ({100 * (dimensions / cloud):.0f} %)."
    )


def build_figures_table(result: Isotropy) -> document.Table:
    """Return the table of figures: found, interval, and the value of an isotropic cloud."""

    def row(
        name: str,
        estimate: IsotropyEstimate | None,
        digits: int,
        explanation: str,
        cloud: IsotropyEstimate | None = None,
    ) -> document.DocumentRow:
        # The cosine needs a text that moved twice.
        if estimate is None:
            return document.DocumentRow(name, ["–", "", ""], explanation)
        interval = " to ".join(f"{end:.{digits}f}" for end in estimate.interval or ())
        expected = "" if cloud is None else f"{cloud.value:.{digits}f}"
        return document.DocumentRow(
            name, [f"{estimate.value:.{digits}f}", interval, expected], explanation
        )

    share, cosines = result.unchanged, result.cosines
    # The share in percent, with its interval.
    percent = IsotropyEstimate(
        100 * share.value, share.interval and (100 * share.interval[0], 100 * share.interval[1])
    )
    error = "" if cosines.error is None else f"{cosines.error:.4f}"
    rows = [
        row("unchanged, %", percent, 1, "perturbed texts with the same vector as the original"),
        row("angle, °", result.angle, 2, "between a perturbed text and its original, on average"),
        row(
            "cone, °",
            result.cone,
            2,
            "between the mean of a text’s versions and the text, on average",
        ),
        document.DocumentRow(
            "largest cone, °",
            [f"{result.largest_cone:.2f}", "", ""],
            "the paper’s figure: below 11",
        ),
        row(
            "cosine", cosines.mean, 4, f"to the original, mean over each text’s versions; {AUTHORS}"
        ),
        document.DocumentRow("± standard error", [error, "", ""], "of that mean"),
        row(
            "deviation of the cosine",
            cosines.deviation,
            4,
            "among the versions of a text, on average",
        ),
        row("cosine of the mean", cosines.of_mean, 4, "of a text’s versions to the original"),
        row("difference", cosines.below, 4, "cosine of the mean less the mean cosine"),
    ]
    # The figures that are compared with an isotropic cloud.
    for name, key, digits, explanation in (
        ("mean displacement", "displacement", 3, "length of a text’s mean unit displacement; "
         "0: they cancel out, 1: all in one direction"),
        ("cosine of displacements", "cosine", 3, "between two displacements of a text, on average"),
        ("largest eigenvalue", "largest", 3, "share of the displacement along one direction"),
        ("effective dimensions", "dimensions", 1, "participation ratio of the eigenvalues"),
    ):  # fmt: skip
        estimate, cloud = (
            getattr(shape, key, None) for shape in (result.shape, result.cloud_shape)
        )
        rows.append(row(name, estimate, digits, explanation, cloud))
    return document.Table("Figure", FIGURE_COLUMNS, rows, "In numbers")


def build_document(
    results: Mapping[str, Isotropy], facts: Mapping[str, Any], warnings: list[str]
) -> document.PageDocument:
    """Return the page: the drawings of a perturbation; for several, an overview first."""
    is_single, embedder = len(results) == 1, facts["embedder"]
    sections = []
    # Several families: an overview first, and then each in full.
    if not is_single:
        sections.append(
            document.Section(
                "How much of each perturbation the embedder sees", [build_overview(results)]
            )
        )
    for name, result in results.items():
        parts: list[document.Block] = [
            _draw_angles(result),
            _draw_directions(result),
            build_figures_table(result),
        ]
        if is_single:
            sections.append(document.Section("", parts))
        elif result.shape:
            sections.append(document.Section(name, [document.Text(build_headline(result)), *parts]))
    first = (
        build_headline(next(iter(results.values())))
        if is_single
        else describe_sight(results, embedder)
    )
    return document.PageDocument(
        "papers isotropy",
        f"Isotropy of {', '.join(results)} in the vectors of {embedder}",
        {name: str(fact) for name, fact in facts.items()},
        f"{first} {PAPER}",
        warnings,
        sections,
    )


def _draw_angles(result: Isotropy) -> document.Chart:
    """Draw the angles of single versions, and of the mean of each text's versions."""
    largest = float(result.angles.max(initial=0.0))
    # A round end of the axis at or above the largest angle.
    widest = next((m for m in (1, 2, 5, 10, 15, 20, 30, 45, 60, 90) if m >= largest), 180)
    bars = []
    for style, name, angles in (
        ("one", "each perturbed text", result.angles),
        ("two", "the mean of a text’s perturbed versions (its cone)", result.cones),
    ):
        counts, edges = np.histogram(angles, bins=ANGLE_BINS, range=(0, widest))
        titles = [
            f"{a:.3g} to {b:.3g}°: {n:,}"
            for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
        # The limit of the paper is only drawn if it lies on the axis.
        marks = [ChartMark("mean", float(angles.mean()) / widest)]
        if widest > PAPERS_CONE_DEGREES:
            marks.append(ChartMark("bound", PAPERS_CONE_DEGREES / widest))
        label = f"{amount(len(angles), 'angle')}, mean {angles.mean():.3g}°"
        shares = (counts / max(counts.max(), 1)).tolist()
        drawing = bars_svg(shares, 1.0, label, marks, "ridge tall", titles)
        text = f"mean {angles.mean():.3g}°, largest {angles.max():.3g}°"
        bars.append(document.Bar(name, text, drawing, style=style))
    bound = Markup(', <span class="sign bound"></span> 11°, the limit of all means in the paper')
    note = Markup("{}mean{}. The heights of each row have their own scale.").format(
        document.MEAN, bound if widest > PAPERS_CONE_DEGREES else ""
    )
    axis = ("0°", f"{widest / 2:g}°", f"{widest:g}°")
    return document.Chart(
        "Angle to the original text, in degrees", note, [document.Bars(bars, axis, "pair")]
    )


def _draw_directions(result: Isotropy) -> document.Chart:
    """Draw the cumulative shares of the eigenvalues next to those of an isotropic cloud."""
    title = "Share of the displacement in the first directions"
    if result.shape is None or result.cloud_shape is None:
        nothing = document.Text("No vector changed, so there are no directions.", "empty")
        return document.Chart(title, "", [nothing])
    curves = []
    for kind, shape in (("second", result.cloud_shape), ("first", result.shape)):
        # From the origin: no direction holds no displacement.
        reached = np.concatenate([[0.0], np.cumsum(shape.spectrum.shares)])
        positions = np.linspace(0, 1, len(reached))
        curves.append(Curve(kind, list(zip(positions.tolist(), reached.tolist(), strict=True))))
    eigenvalues = len(result.shape.spectrum.shares)
    # The number of directions that hold half of the displacement, for readers without the drawing.
    half = int(np.searchsorted(np.cumsum(result.shape.spectrum.shares), 0.5)) + 1
    label = f"{amount(half, 'direction')} of {eigenvalues:,} contain half of the displacement"
    note = Markup(
        '<span class="sign first"></span> these displacements, <span class="sign second"></span> '
        "an isotropic cloud of the same size: as many versions at the same angles, in random "
        "directions. The higher the curve of these displacements, the fewer directions the "
        "perturbation uses."
    )
    axis = ("0", number(eigenvalues / 2, 0), f"{eigenvalues:,} directions")
    return document.Chart(
        title, note, [document.DrawingBlock(curves_svg(curves, label), "percent", axis)]
    )


def to_dict(result: Isotropy) -> dict[str, Any]:
    """Return all figures, as ``--json`` prints them."""

    def of(figures: DisplacementShape | CosineFigures | None) -> dict[str, Any] | None:
        if figures is None:
            return None
        # The spectrum has as many numbers as the vectors have dimensions; it is left to the page.
        names = [field.name for field in dataclasses.fields(figures) if field.name != "spectrum"]
        return {name: estimate(getattr(figures, name)) for name in names}

    def estimate(value: IsotropyEstimate | float | None) -> dict[str, Any] | float | None:
        return value if value is None or isinstance(value, float) else value._asdict()

    return {
        "texts": result.texts,
        "perturbations": result.perturbations,
        "dimensions": result.width,
        "unchanged": estimate(result.unchanged),
        "angle_degrees": estimate(result.angle),
        "cone_degrees": estimate(result.cone),
        "largest_cone_degrees": result.largest_cone,
        "cosines": of(result.cosines),
        "displacements": of(result.shape),
        "isotropic_cloud": of(result.cloud_shape),
    }
