"""The doors of other tools without the tools; with them: ``tox run``."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from tests.support import ROOT
from trustassay.live.integrations.langsmith import async_trust_evaluator, trust_evaluator
from trustassay.live.integrations.resident import close_all

PASSAGE = "The stone bridge was opened in 1911."
ASKED = {"question": "When?"}


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    close_all()


@pytest.mark.parametrize(
    ("module", "tool", "package"),
    [
        ("inspect_ai", "inspect_ai", "inspect-ai"),
        ("deepeval", "deepeval", "deepeval"),
        ("mlflow", "mlflow", "mlflow"),
        ("langfuse", "langfuse", "langfuse"),
    ],
)
def test_a_door_without_its_tool_says_what_to_install(
    module: str, tool: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_spec(tool):
        pytest.skip(f"{tool} is installed")
    with pytest.raises(ImportError, match=rf"pip install {package}$"):
        importlib.import_module(f"trustassay.live.integrations.{module}")


def test_nothing_of_a_tool_is_imported_with_trustassay() -> None:
    program = (
        "import sys, trustassay.api, trustassay.live.integrations.langsmith\n"
        "tools = {'langsmith', 'openevals', 'inspect_ai', 'deepeval', 'starlette', 'uvicorn'}\n"
        "print(*tools & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == ""


def evaluated(metrics: Any, **given: Any) -> Any:
    """Return what the evaluator returns; the asynchronous one returns the same."""
    found = trust_evaluator(metrics, entailer="lexical")(**given)
    later = async_trust_evaluator(metrics, entailer="lexical")
    assert asyncio.run(later(**given)) == found  # type: ignore[arg-type]
    return found


def test_an_evaluator_returns_key_score_and_comment() -> None:
    assert evaluated("faithfulness", inputs=ASKED, outputs=PASSAGE, context=PASSAGE) == {
        "key": "faithfulness",
        "score": 1.0,
        "comment": "the passages support the answer",
        "metadata": {
            "verdict": "supported",
            "passed": True,
            "lower_is_better": False,
            "parts": {
                "statements": 1.0,
                "supported": 1.0,
                "contradicted": 0.0,
                "support": pytest.approx(0.9, abs=0.1),
                "weakest": pytest.approx(0.9, abs=0.1),
                "order": pytest.approx(0.9, abs=0.1),
            },
        },
    }


def test_an_evaluator_of_several_metrics_returns_a_list() -> None:
    found = evaluated(["faithfulness", "grounding"], inputs=ASKED, outputs="x", context=PASSAGE)
    assert [one["key"] for one in found] == ["faithfulness", "grounding"]


def test_a_failure_has_no_score_and_is_marked() -> None:
    found = evaluated("faithfulness", inputs=ASKED, outputs=None, context=PASSAGE)
    assert (found["score"], found["extra"]) == (None, {"error": True})
    assert "response: is missing" in found["comment"]


def test_outputs_that_are_nested_too_deeply_are_a_failure() -> None:
    deep: dict[str, Any] = {}
    for _ in range(50_000):
        deep = {"messages": deep}
    found = evaluated("faithfulness", outputs=deep)
    assert "nested too deeply" in found["comment"]


def test_inspect_ai_finds_the_scorer_by_its_entry_point() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = tomllib.loads(text)["project"]["entry-points"]["inspect_ai"]
    assert found == {"trustassay": "trustassay.live.integrations.inspect_ai"}
    assert find_spec(found["trustassay"])
