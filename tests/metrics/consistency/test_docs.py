"""docs/methods/trustscore.md says what the code of ``consistency`` does."""

from __future__ import annotations

import dataclasses
import re

import pytest
from benchmarks.results import read_result

from tests.support import ROOT
from trustassay.metric import Figure
from trustassay.metrics import Consistency
from trustassay.metrics.consistency.metric import FIGURES

PAGE = (ROOT / "docs" / "methods/trustscore.md").read_text(encoding="utf-8")
PAGE = PAGE[PAGE.index("## consistency") :]


@pytest.mark.parametrize("figure", FIGURES.values(), ids=lambda f: f.key)
def test_every_key_is_explained_as_in_the_code(figure: Figure) -> None:
    assert f"| `{figure.key}` | {figure.unit} | {figure.explanation} |" in PAGE


@pytest.mark.parametrize("option", dataclasses.fields(Consistency), ids=lambda f: f.name)
def test_every_option_stands_with_its_default(option: dataclasses.Field[object]) -> None:
    row = re.search(rf"^\| `{option.name}` \| (.*?) \|", PAGE, re.MULTILINE)
    assert row
    default = {True: "yes", False: "no", None: "none"}.get(option.default, option.default)  # type: ignore[call-overload]
    assert row[1].strip("`") == str(default)


def test_the_example_gives_what_it_says() -> None:
    (code,) = re.findall(r"```python\n((?:(?!```).)*consistency(?:(?!```).)*)```", PAGE, re.DOTALL)
    *lines, last = code.strip().splitlines()
    names: dict[str, object] = {}
    exec("\n".join(lines), names)
    expression, _, said = last.partition("  # ")
    assert repr(eval(expression, names)) == said


def test_the_table_of_unreadable_replies_is_what_was_measured() -> None:
    rows = {
        (row["unreadable"], row["share"], row["unparsed"]): row
        for row in read_result("unreadable")["rows"]
    }
    for share in (0.02, 0.05, 0.1):
        apart, again = (rows["choice", share, rule] for rule in ("apart", "again"))
        cells = [
            cell
            for row in (apart, again)
            for own in [row["consistency"]["samples"]["250"]]
            for cell in (f"{own['mean']:.3f}", f"{own['held']:.1f} %")
        ]
        assert f"| {100 * share:g} % | {' | '.join(cells)} | {again['calls']:.1f} |" in PAGE
        for own in again["consistency"]["samples"].values():
            assert own["held"] >= 93
