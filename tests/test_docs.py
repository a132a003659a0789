"""docs/grounding.md says what the code does. Commands and links: tests/docs."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from trustassay.metrics.grounding.citations import WHY
from trustassay.metrics.grounding.keys import FIGURES
from trustassay.metrics.grounding.rules import PROFILES, Rules

ROOT = Path(__file__).parent.parent
GROUNDING = (ROOT / "docs" / "grounding.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("figure", FIGURES.values(), ids=lambda figure: figure.key)
def test_every_key_is_explained_as_in_the_code(figure) -> None:  # type: ignore[no-untyped-def]
    assert f"| `{figure.key}` | {figure.unit} | {figure.explanation} |" in GROUNDING


@pytest.mark.parametrize("rule", [f.name for f in dataclasses.fields(Rules)])
def test_every_rule_stands_with_its_value_in_both_profiles(rule: str) -> None:
    row = re.search(rf"^\| `{rule}` \| (.*?) \| (.*?) \|", GROUNDING, re.MULTILINE)
    assert row, rule
    for shown, profile in zip(row.groups(), ("default", "paper"), strict=True):
        value = getattr(PROFILES[profile], rule)
        expected = {True: "yes", False: "no"}.get(value, f"`{value}`")
        assert shown == expected


@pytest.mark.parametrize("verdict", WHY)
def test_every_verdict_is_explained(verdict: str) -> None:
    assert f"| {verdict} |" in GROUNDING
