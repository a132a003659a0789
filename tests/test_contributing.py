"""The worked examples of CONTRIBUTING.md, run as they stand there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from trustassay import score
from trustassay.calls import kinds
from trustassay.metric import Assessment, Context, Metric, Need

PAGE = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
SAMPLES = [
    {"id": "a", "question": "which town", "response": "which town"},
    {"id": "b", "question": "which town", "response": "Paris"},
]


def example(name: str) -> SimpleNamespace:
    """Return what a block of the page defines."""
    (code,) = re.findall(rf"```python {name}\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {"__name__": f"contributing_{name}"}
    import sys
    import types

    module = types.ModuleType(names["__name__"])
    sys.modules[module.__name__] = module
    exec(compile(code, f"CONTRIBUTING.md: {name}", "exec"), module.__dict__)
    return SimpleNamespace(**module.__dict__)


def test_the_metric_and_the_backend() -> None:
    metric, backend = example("metric").Echo(), example("backend").WordOverlap()
    run = score(SAMPLES, metrics=metric, similarity=backend)
    assert [(a.score, a.verdict) for a in run.assessments] == [(1.0, "echo"), (0.0, "new")]
    assert run.summary["echo"] == {"mean": 0.5, "echo": 50.0}
    assert metric.problem(run.assessments[0]) == "it repeats the question"


@pytest.fixture
def with_detect(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    own = kinds.capabilities()
    found = {**own, "detect": example("capability").DETECT}
    monkeypatch.setattr(kinds.capabilities, "__wrapped__", lambda: found, raising=False)
    kinds.capabilities.cache_clear()
    monkeypatch.setattr("trustassay.calls.kinds.OWN", (*own.values(), found["detect"]))
    yield
    kinds.capabilities.cache_clear()


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
