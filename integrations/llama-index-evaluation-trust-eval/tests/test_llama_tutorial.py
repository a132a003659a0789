"""The tutorial: its code is run in order, and prints what stands below it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

pytest.importorskip("llama_index.core", reason="needs llama-index-core: tox run")

PAGE = Path(__file__).parents[3] / "docs" / "live/llamaindex.md"
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


@pytest.mark.slow
def test_the_tutorial_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from llama_index.core.instrumentation import get_dispatcher

    monkeypatch.chdir(tmp_path)
    root = get_dispatcher()
    # The tutorial adds a handler, which must not stay.
    monkeypatch.setattr(root, "event_handlers", list(root.event_handlers))
    # One namespace: later blocks use the names of earlier ones.
    names: dict[str, object] = {"__name__": "tutorial"}
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == 5
    for number, (code, printed) in enumerate(blocks, 1):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, f"{PAGE.name}: block {number}", "exec"), names)
        assert out.getvalue() == printed
