"""docs/methods/judge.md says what the code does."""

from __future__ import annotations

import dataclasses
import re

import pytest

from tests.support import ROOT
from trustassay.metrics import Judge
from trustassay.metrics.judge.options import SHIPPED, read_rubric

PAGE = (ROOT / "docs" / "methods/judge.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", dataclasses.fields(Judge), ids=lambda f: f.name)
def test_every_option_stands_with_its_default(option: dataclasses.Field[object]) -> None:
    row = re.search(rf"^\| `{option.name}` \| (.*?) \|", PAGE, re.MULTILINE)
    assert row
    assert row[1] == ("none" if option.default is None else str(option.default))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_rubric_stands_with_the_level_that_passes(name: str) -> None:
    row = re.search(rf"^\| `{name}` \| (.*?) \| (.*?) \|", PAGE, re.MULTILINE)
    assert row
    scale = read_rubric(name)
    passing = [level.label for level in scale.levels if level.value >= scale.passes]
    assert row[2] == passing[-1]


def test_the_number_of_replies_is_no_exaggeration() -> None:
    assert (ROOT / "tests/text/replies.jsonl").read_text(encoding="utf-8").count("\n") > 2000
    assert "2,000 replies" in PAGE
