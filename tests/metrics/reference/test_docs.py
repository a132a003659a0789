"""The page says what the metric does."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from trustassay.metrics import Reference
from trustassay.metrics.reference.measures import PARTS

PAGE = (Path(__file__).parents[3] / "docs" / "methods/reference.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("part", PARTS)
def test_every_part_is_explained(part: str) -> None:
    assert re.search(rf"^\|[^|]*`{part}`[^|]*\|", PAGE, re.MULTILINE)


def test_every_option_stands_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", PAGE.split("## Options")[1], re.MULTILINE))
    settings = Reference().settings()
    assert set(rows) == {field.name for field in dataclasses.fields(Reference)}
    told = {name: value.strip("` ") for name, value in rows.items()}
    for name in ("parts", "aggregate", "recipe", "passages"):
        assert told[name] == str(settings[name])
    assert (told["without"], settings["without"]) == ("none", "")
    assert told["score"] == Reference().scored.name
