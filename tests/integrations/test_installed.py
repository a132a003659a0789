"""What each integration says where its tool is not installed."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.mark.parametrize("tool", ["mlflow", "langfuse"])
def test_an_integration_without_its_tool_says_what_to_install(
    tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, tool, None)
    monkeypatch.delitem(sys.modules, f"trustassay.integrations.{tool}", raising=False)
    with pytest.raises(ImportError, match=f"needs {tool}, .*: pip install {tool}"):
        importlib.import_module(f"trustassay.integrations.{tool}")
