"""docs/methods/fewl.md says what the code does."""

from __future__ import annotations

import dataclasses
import re

import pytest

from tests.support import ROOT
from trustassay.metrics.fewl import Fewl

PAGE = (ROOT / "docs" / "methods/fewl.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", dataclasses.fields(Fewl), ids=lambda f: f.name)
def test_every_option_stands_with_its_default(option: dataclasses.Field[object]) -> None:
    row = re.search(rf"^\| `{option.name}` \| (.*?) \|", PAGE, re.MULTILINE)
    assert row
    default = option.default
    shown = f"{default:g}" if isinstance(default, float) else str(default)
    assert row[1].strip("`") == ("none" if default is None else shown)
