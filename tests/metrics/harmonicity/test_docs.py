"""docs/methods/harmonicity.md says what the code does."""

from __future__ import annotations

import dataclasses
import re

import pytest

from tests.support import ROOT
from trustassay.metrics.harmonicity import Harmonicity, SemanticHarmonicity
from trustassay.metrics.harmonicity.perturbations import FAMILIES

PAGE = (ROOT / "docs" / "methods/harmonicity.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", dataclasses.fields(Harmonicity), ids=lambda f: f.name)
def test_every_option_stands_with_its_default(option: dataclasses.Field[object]) -> None:
    row = re.search(rf"^\| `{option.name}` \| (.*?) \|", PAGE, re.MULTILINE)
    assert row
    default = "none" if option.default is None else option.default
    default = "no" if default is False else default
    shown = row[1].split(", ")[0].strip("`")
    assert shown == (f"{default:g}" if isinstance(default, float) else str(default))
    if option.name == "stable_below":
        other = f"{SemanticHarmonicity().stable_below:g} for `semantic_harmonicity`"
        assert other in PAGE


@pytest.mark.parametrize("name", [*FAMILIES, "paraphrase", "embeddings", "python:MODULE:FUNCTION"])
def test_every_family_is_described(name: str) -> None:
    assert f"| `{name}` |" in PAGE
