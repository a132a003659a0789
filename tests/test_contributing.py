"""The worked examples of CONTRIBUTING.md, run as they stand there."""

from __future__ import annotations

import re
import sys
import tomllib
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from trustassay import score
from trustassay.calls import capability
from trustassay.core import registry
from trustassay.core.metric import Assessment, Context, Metric, Need
from trustassay.errors import UsageError

PAGE = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
SAMPLES = [
    {"id": "a", "question": "which town", "response": "which town"},
    {"id": "b", "question": "which town", "response": "Paris"},
]


def example(name: str) -> SimpleNamespace:
    """Return what a block of the page defines."""
    (code,) = re.findall(rf"```python {name}\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {"__name__": f"contributing_{name}"}
    module = types.ModuleType(names["__name__"])
    sys.modules[module.__name__] = module
    exec(compile(code, f"CONTRIBUTING.md: {name}", "exec"), module.__dict__)
    return SimpleNamespace(**module.__dict__)


def block(kind: str, name: str) -> str:
    """Return a block of the page as it stands there."""
    (found,) = re.findall(rf"```{kind} {name}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install the plugin of the page, as ``pip`` would; return its folder."""
    package, info = tmp_path / "echo_metric", tmp_path / "echo_metric-0.1.0.dist-info"
    project = tomllib.loads(block("toml", "plugin"))["project"]
    package.mkdir()
    info.mkdir()
    (package / "__init__.py").write_text(block("python", "metric"), encoding="utf-8")
    (package / "echo.html.jinja").write_text(block("jinja", "template"), encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-metric\nVersion: 0.1.0\n")
    (entry,) = project["entry-points"]["trustassay.metrics"].items()
    (info / "entry_points.txt").write_text("[trustassay.metrics]\n" + " = ".join(entry) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry._read_entry_points.cache_clear()
    yield tmp_path
    registry._read_entry_points.cache_clear()
    sys.modules.pop("echo_metric", None)


def test_the_plugin_keeps_the_contract_and_has_a_name(installed: Path) -> None:
    tests = example("contract")
    for contract in (tests.TestEcho(), tests.TestEchoOfAnswers()):
        for rule in (name for name in dir(contract) if name.startswith("test_")):
            getattr(contract, rule)()
    run = score(SAMPLES, metrics="echo:threshold=0.8", similarity="lexical", out=installed / "run")
    assert [one.verdict for one in run.assessments] == ["echo", "new"]
    page = run.report().read_text("utf-8")
    assert "1.00 like “which town”" in page
    assert "repeats the question" in page
    with pytest.raises(UsageError, match="unknown value of of 'answer'; did you mean answers"):
        score(SAMPLES, metrics="echo:of=answer")
    with pytest.raises(UsageError, match="answers: is missing"):
        score(SAMPLES, metrics="echo:of=answers")


def test_the_metric_and_the_backend() -> None:
    metric, backend = example("metric").Echo(), example("backend").WordOverlap()
    run = score(SAMPLES, metrics=metric, similarity=backend)
    assert [(a.score, a.verdict) for a in run.assessments] == [(1.0, "echo"), (0.0, "new")]
    assert run.summary["echo"] == {"mean": 0.5, "echo": 50.0}
    assert metric.problem(run.assessments[0]) == "it repeats the question"


@pytest.fixture
def with_detect(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    own = capability.capabilities()
    found = {**own, "detect": example("capability").DETECT}
    monkeypatch.setattr(capability.capabilities, "__wrapped__", lambda: found, raising=False)
    capability.capabilities.cache_clear()
    monkeypatch.setattr(
        "trustassay.calls.capability.BUILT_IN_CAPABILITIES", (*own.values(), found["detect"])
    )
    yield
    capability.capabilities.cache_clear()


@dataclass(frozen=True)
class English(Metric):
    name: ClassVar[str] = "english"
    title: ClassVar[str] = "English"

    def needs(self) -> Sequence[Need]:
        return [Need("detect")]

    async def assess(self, context: Context) -> Assessment:
        found = await context.models.detect(context.sample.response)  # type: ignore[attr-defined]
        return Assessment(context.sample.id, self.name, float(found == "en"), verdict=found)


class Detector:
    name = "detector/1"

    def languages(self, texts: Sequence[str]) -> list[str]:
        return ["fr" if text == "Paris" else "en" for text in texts]


@pytest.mark.usefixtures("with_detect")
def test_the_capability(tmp_path: Path) -> None:
    run = score(SAMPLES, metrics=English(), backends={"detector": Detector()}, out=tmp_path / "run")
    assert [a.verdict for a in run.assessments] == ["en", "fr"]
    assert [dict(a.calls) for a in run.assessments] == [{"language": 1}] * 2
    with pytest.raises(ValueError, match="english: needs a detector"):
        score(SAMPLES, metrics=English())
