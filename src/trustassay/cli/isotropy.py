"""``trustassay isotropy``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from trustassay.cli import common
from trustassay.cli.common import errors_for_people, one_line, say
from trustassay.cli.streams import print_json
from trustassay.cli.tables import show_table

if TYPE_CHECKING:
    from trustassay.report.pages import Row
    from trustassay.statistics.isotropy import Estimate, Isotropy, Shape

PAPER = "In the paper the mean of ten perturbed sentences lay within 11 degrees of each original."


def isotropy(  # noqa: PLR0913 - one argument an option
    source: common.Source,
    perturbation: Annotated[
        str,
        typer.Option(
            help="control, unicode, whitespace, typo, synonym, python:MODULE:FUNCTION.",
            metavar="NAME",
        ),
    ] = "control",
    embedder: common.Embedder = "embedded",
    perturbations: Annotated[
        int, typer.Option(help="Perturbed versions of each question.", min=1)
    ] = 10,
    limit: Annotated[int, typer.Option(help="Take the first N records.", min=1)] = 100,
    seed: common.Seed = 0,
    field: common.Fields = [],  # noqa: B006 - typer copies it
    skip_bad: common.SkipBad = False,
    cache: common.Cache = "",
    out: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Option(help="Write a page with pictures.", show_default=False),
    ] = None,
    as_json: common.Json = False,
) -> None:
    """Check that a perturbation pushes the vectors of questions in all directions alike.

    Harmonic robustness takes it for granted: see docs/monitoring.md.

    \b
    trustassay isotropy questions.jsonl
    trustassay isotropy questions.jsonl --perturbation unicode --embedder hf:MODEL --out even.html
    """
    with errors_for_people():
        from trustassay.backends import resolve
        from trustassay.engine.isotropy import measure_isotropy, sound_samples
        from trustassay.engine.models import Backends
        from trustassay.metrics.harmonicity.isotropy import versions
        from trustassay.metrics.harmonicity.perturbations import family

        if perturbation == "paraphrase":
            raise ValueError("paraphrases are asked of a model; take another --perturbation")
        how = family(perturbation)
        samples = sound_samples(
            source, fields=common.pairs(field, "--field"), limit=limit, skip_bad=skip_bad
        )
        made = versions(samples, how, perturbations, seed)
        found = measure_isotropy(
            made.texts,
            made.perturbed,
            Backends(embedder=resolve.embedder(embedder)),
            seed=seed,
            cache=common.spending(cache, None, None)["cache"],
        )
        warnings = []
        if made.left_out:
            warnings.append(f"{made.left_out:,} questions cannot be perturbed so and are left out")
        warnings += blindness(found, perturbation, embedder)
        _show(found, f"{perturbation} and {embedder}", warnings)
        if out:
            _write(found, out, _facts(source, perturbation, embedder, found, seed), warnings)
            say(f"page: {out}")
        if as_json:
            facts = {"perturbation": perturbation, "embedder": embedder, "seed": seed}
            content = {**facts, **_json(found), "warnings": warnings}
            print_json(content)


def blindness(found: Isotropy, perturbation: str, embedder: str) -> list[str]:
    """Say plainly where the embedder does not see that a text was changed, or what was."""
    share = found.unchanged.value
    if share == 0:
        if found.shape and found.shape.cosine and found.shape.cosine.value > 0.99:
            return [
                "All perturbed versions of a text have nearly the same vector: the embedder sees "
                "that something was changed, but not what, as where a tokenizer takes every "
                "character that it does not know for the same one."
            ]
        return []
    if share == 1:
        words = "No perturbed text has another vector than its original: the embedder sees the same"
    else:
        words = (
            f"{100 * share:.1f} % of the perturbed texts are to the embedder the original itself"
        )
    if embedder.startswith("embedded") and perturbation in ("control", "whitespace"):
        words += f", since the tokenizer of {embedder} drops such characters"
    if share == 1:
        words += (
            ". It can say nothing about this perturbation; gamma, which compares answers and not "
            "prompts, is not touched by that"
        )
    else:
        words += "; they count as angles of 0, and their directions are left out"
    return [words + "."]


def headline(found: Isotropy) -> str:
    """Say in a sentence how far and how evenly the perturbed texts lie about their originals."""
    if found.shape is None or found.expected is None:
        return "The embedder does not see this perturbation: no vector moves."
    words = (
        f"The mean of {found.perturbations} perturbed versions lies {found.cone.value:.3g}° from "
        f"its original on average, and within {found.within:.3g}° for all {found.texts:,} texts. "
    )
    ratio = found.shape.dimensions.value / found.expected.dimensions.value
    words += (
        f"The displacements use {found.shape.dimensions.value:.3g} effective dimensions, an "
        f"isotropic cloud of their size {found.expected.dimensions.value:.3g} "
        f"({100 * ratio:.0f} %)."
    )
    return words


def rows(found: Isotropy) -> list[Row]:
    """Return the table of figures: found, interval, and what an isotropic cloud would have."""
    from trustassay.report.pages import Row

    def row(
        name: str, one: Estimate | None, digits: int, why: str, cloud: Estimate | None = None
    ) -> Row:
        if one is None:
            return Row(name, ["–", "", ""], why)
        low, high = one.interval or (None, None)
        interval = "" if low is None else f"{low:.{digits}f} to {high:.{digits}f}"
        expected = "" if cloud is None else f"{cloud.value:.{digits}f}"
        return Row(name, [f"{one.value:.{digits}f}", interval, expected], why)

    def of(shape: Shape | None, name: str) -> Estimate | None:
        return None if shape is None else getattr(shape, name)

    def share(one: Estimate) -> Estimate:
        interval = one.interval and (100 * one.interval[0], 100 * one.interval[1])
        return type(one)(100 * one.value, interval)

    shape, cloud = found.shape, found.expected
    table = [
        row(
            "unchanged, %", share(found.unchanged), 1, "perturbed texts with the original’s vector"
        ),
        row("angle, °", found.angle, 2, "between a perturbed text and its original, on average"),
        row("cone, °", found.cone, 2, "between the mean of a text’s versions and it, on average"),
        Row("largest cone, °", [f"{found.within:.2f}", "", ""], "the paper’s figure: below 11"),
    ]
    for name, key, digits, why in (
        ("mean displacement", "displacement", 3, "length of a text’s mean unit displacement; "
         "0 cancels out, 1 is one direction"),
        ("cosine", "cosine", 3, "between two displacements of a text, on average"),
        ("largest eigenvalue", "largest", 3, "share of the displacement along one direction"),
        ("effective dimensions", "dimensions", 1, "participation ratio of the eigenvalues"),
    ):  # fmt: skip
        table.append(row(name, of(shape, key), digits, why, of(cloud, key)))
    return table


def _show(found: Isotropy, title: str, warnings: list[str]) -> None:
    say(one_line(title))
    headings = ("figure", "found", "95 % interval", "isotropic cloud")
    show_table(headings, [(row.name, *row.cells) for row in rows(found)], ())
    say(f"{found.texts:,} texts, {found.perturbations} perturbed versions of each")
    say(headline(found))
    for warning in warnings:
        say(one_line(f"mind: {warning}"))


def _facts(
    source: Path, perturbation: str, embedder: str, found: Isotropy, seed: int
) -> dict[str, str]:
    return {
        "input": source.name,
        "perturbation": perturbation,
        "embedder": embedder,
        "texts": f"{found.texts:,}",
        "versions of each": str(found.perturbations),
        "seed": str(seed),
    }


def _write(found: Isotropy, path: Path, facts: dict[str, str], warnings: list[str]) -> None:
    from trustassay.report.pages import IsotropyPage, write_isotropy_page

    title = f"Isotropy of {facts['perturbation']}, seen by {facts['embedder']}"
    page = IsotropyPage(title, facts, f"{headline(found)} {PAPER}", warnings, rows(found), found)
    write_isotropy_page(page, path)


def _json(found: Isotropy) -> dict[str, Any]:
    def of(shape: Shape | None) -> dict[str, Any] | None:
        if shape is None:
            return None
        return {
            field.name: estimate(getattr(shape, field.name))
            for field in dataclasses.fields(shape)
            if field.name != "spectrum"
        }

    def estimate(one: Estimate | None) -> dict[str, Any] | None:
        return one and one._asdict()

    return {
        "texts": found.texts,
        "perturbations": found.perturbations,
        "dimensions": found.width,
        "unchanged": estimate(found.unchanged),
        "angle_degrees": estimate(found.angle),
        "cone_degrees": estimate(found.cone),
        "largest_cone_degrees": found.within,
        "displacements": of(found.shape),
        "isotropic_cloud": of(found.expected),
    }
