"""The map of the code is what runs, and names what is there."""

from __future__ import annotations

import re

from tests.docs import life
from tests.docs.pages import DOCS, ROOT

PACKAGE = ROOT / "src/trustassay"


def test_the_life_of_a_sentence_is_as_it_runs() -> None:
    match = life.BLOCK.search(life.PAGE.read_text(encoding="utf-8"))
    assert match and match[2] == life.lines(), "python -m tests.docs.life writes it"


def test_every_step_is_called_in_its_order() -> None:
    assert [step.target for step in life.trace()] == [step.target for step in life.STEPS]


def test_paths_are_there() -> None:
    for page in ("architecture.md", "design.md"):
        text = (DOCS / page).read_text(encoding="utf-8")
        paths = re.findall(
            r"`([a-z_]+/(?:[a-z_]+/)*(?:[a-z_.]+\.(?:py|jinja))?|[a-z_]+\.py)`", text
        )
        assert paths
        for path in paths:
            assert (PACKAGE / path).exists() or (ROOT / path).exists(), f"{page}: {path}"


def test_every_room_is_on_the_map() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    rooms = [path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()]
    assert [room for room in rooms if f"| `{room}/` |" not in text] == []
