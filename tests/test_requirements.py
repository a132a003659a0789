"""The pinned versions fit what the package declares."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_lowest_versions_are_those_that_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [re.sub(r">=([\d.]+).*", r"==\1.*", name) for name in project["dependencies"]]
    lines = (ROOT / "requirements/lowest.txt").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == declared


def test_every_dependency_is_pinned_for_the_demo() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = (ROOT / "requirements/core.txt").read_text().lower().replace("_", "-")
    for name in project["dependencies"]:
        assert f"\n{name.partition('>=')[0]}==" in core
