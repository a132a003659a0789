"""docs/methods/trustscore.md says what the code does."""

from __future__ import annotations

import dataclasses
import re

import pytest

from tests.support import ROOT
from trustassay.metrics import FactCheck
from trustassay.metrics.trustscore.metric import TABLE
from trustassay.text.verdict_replies import ENTAILMENT_LABELS

PAGE = (ROOT / "docs" / "methods/trustscore.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", dataclasses.fields(FactCheck), ids=lambda option: option.name)
def test_every_option_stands_with_its_default(option: dataclasses.Field[object]) -> None:
    rows = re.findall(rf"^\| `{option.name}` \| (.*?) \|", PAGE, re.MULTILINE)
    shown = "none" if option.default is None else str(option.default)
    assert shown in [row.strip("`") for row in rows]


def test_table_3_stands_as_it_is() -> None:
    for verdict in ENTAILMENT_LABELS:
        consistent, inconsistent = TABLE[verdict, True], TABLE[verdict, False]
        assert f"| {verdict} | {consistent:g} | {inconsistent:g} |" in PAGE
