"""docs/methods/trustscore.md says what the code of ``consistency`` does."""

from __future__ import annotations

import dataclasses
import re

import pytest
from lab.results import read_result

from tests.support import ROOT
from trustassay.metrics import Consistency

PAGE = (ROOT / "docs" / "methods/trustscore.md").read_text(encoding="utf-8")
PAGE = PAGE[PAGE.index("## Options") :]


@pytest.mark.parametrize("option", dataclasses.fields(Consistency), ids=lambda f: f.name)
def test_every_option_stands_with_its_default(option: dataclasses.Field[object]) -> None:
    row = re.search(rf"^\| `{option.name}` \| (.*?) \|", PAGE, re.MULTILINE)
    assert row
    default = {True: "yes", False: "no", None: "none"}.get(option.default, option.default)  # type: ignore[call-overload]
    assert row[1].strip("`") == str(default)


def test_intervals_hold_where_replies_cannot_be_read() -> None:
    rows = [row for row in read_result("unreadable")["rows"] if row["unparsed"] == "again"]
    assert {0.02, 0.05, 0.1} <= {row["share"] for row in rows}
    for row in rows:
        for own in row["consistency"]["samples"].values():
            assert own["held"] >= 93
