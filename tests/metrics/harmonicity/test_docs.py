"""docs/methods/harmonicity.md says what the code does."""

from __future__ import annotations

import dataclasses
import re

import pytest

from tests.support import ROOT
from trustassay.metric import Figure
from trustassay.metrics.harmonicity import Harmonicity, SemanticHarmonicity
from trustassay.metrics.harmonicity.metric import FIGURES, SEMANTIC_FIGURES
from trustassay.metrics.harmonicity.perturbations import FAMILIES

PAGE = (ROOT / "docs" / "methods/harmonicity.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "figure", [*FIGURES.values(), *SEMANTIC_FIGURES.values()], ids=lambda f: f.key
)
def test_every_key_is_explained_as_in_the_code(figure: Figure) -> None:
    assert f"| `{figure.key}` | {figure.unit} | {figure.explanation} |" in PAGE


@pytest.mark.parametrize("option", dataclasses.fields(Harmonicity), ids=lambda f: f.name)
def test_every_option_stands_with_its_default(option: dataclasses.Field[object]) -> None:
    row = re.search(rf"^\| `{option.name}` \| (.*?) \|", PAGE, re.MULTILINE)
    assert row
    default = "none" if option.default is None else option.default
    default = "no" if default is False else default
    shown = row[1].split(", ")[0].strip("`")
    assert shown == (f"{default:g}" if isinstance(default, float) else str(default))
    if option.name == "stable_below":
        assert row[1].endswith(f"semantic {SemanticHarmonicity().stable_below:g}")


@pytest.mark.parametrize("name", [*FAMILIES, "paraphrase", "python:MODULE:FUNCTION"])
def test_every_family_is_described(name: str) -> None:
    assert f"| `{name}` |" in PAGE
