"""Pages run in folders of their own, wherever the project lies."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from tests.docs import pages


def test_modules_of_the_project_stay_where_it_lies_beside_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a worktree below the folder of temporary files: its modules were loaded twice."""
    for name in ("page", "project"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(pages, "ROOT", tmp_path / "project")
    for name, place in (("of_project", "project"), ("of_other_page", "other")):
        module = types.ModuleType(name)
        module.__file__ = str(tmp_path / place / f"{name}.py")
        monkeypatch.setitem(sys.modules, name, module)
    with pages.inside(tmp_path / "page"):
        assert "of_other_page" not in sys.modules
        assert "of_project" in sys.modules
