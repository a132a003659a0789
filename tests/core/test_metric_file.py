"""A metric that is a class in a file of the user: python:FILE.py:CLASS."""

import json
import multiprocessing
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support import lines
from trustassay import plan, rescore, score
from trustassay.core.metric import Metric
from trustassay.core.registry import _loaded, metric_from_settings, metric_from_text
from trustassay.errors import RunFolderError, UnknownNameError, UsageError

FILE = '''
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from trustassay.core.metric import Assessment, Context, Figure, Mean, Metric, Need


@dataclass(frozen=True)
class Relevancy(Metric):
    """Which share of the question's words is in the answer?"""

    name: ClassVar[str] = "relevancy"
    title: ClassVar[str] = "Words of the question"
    verdicts: ClassVar[Sequence[str]] = ("near", "far")
    figures: ClassVar[Mapping[str, Figure]] = {
        "mean": Figure("mean", "mean share of words", "", headline=True, statistic=Mean())
    }

    threshold: float = 0.5
    strict: bool = False

    def needs(self) -> Sequence[Need]:
        return []

    async def assess(self, context: Context) -> Assessment:
        asked = set(context.sample.question.lower().split())
        share = len(asked & set((context.sample.response or "").lower().split())) / len(asked)
        verdict = "near" if share >= self.threshold else "far"
        return Assessment(context.sample.id, self.name, share, verdict=verdict)


class Helper:
    pass
'''
SAMPLES = [
    {"id": "a", "question": "who built the bridge", "response": "Ellen built the bridge"},
    {"id": "b", "question": "who built the bridge", "response": "leek soup"},
]


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    Path("in.jsonl").write_text("".join(json.dumps(one) + "\n" for one in SAMPLES))
    return path


@pytest.fixture
def trustassay() -> Callable[..., tuple[int, str]]:
    from trustassay.cli.main import app

    def run(*words: str) -> tuple[int, str]:
        found = CliRunner().invoke(app, list(words))
        return found.exit_code, " ".join(found.output.split())

    return run


def forget() -> None:
    """Let this process be as one that was told of no file."""
    _loaded.clear()
    for name in [one for one in sys.modules if one.startswith("trustassay_metric_")]:
        del sys.modules[name]


def test_it_is_accepted_where_a_metric_is_named(mine: Path) -> None:
    name = "python:mine.py:Relevancy"
    run = score("in.jsonl", metrics=name, out="run", report=True)
    assert [one.verdict for one in run.assessments] == ["near", "far"]
    assert run.summary["relevancy"]["mean"] == pytest.approx(0.375)
    assert plan("in.jsonl", metrics=[name]).samples == 2
    strict = metric_from_text(f"python:{mine}:Relevancy:threshold=0.9,strict=yes")
    assert strict.settings()["threshold"] == 0.9
    assert strict.settings()["strict"] is True
    with pytest.raises(UnknownNameError, match=r"option of relevancy 'treshold'.*threshold"):
        metric_from_text(f"{name}:treshold=1")


def test_the_settings_name_the_file_its_content_and_the_class(mine: Path) -> None:
    import hashlib

    score("in.jsonl", metrics="python:mine.py:Relevancy", out="run")
    settings = json.loads(Path("run/run.json").read_bytes())["metrics"]["relevancy"]
    assert settings == {
        "threshold": 0.5,
        "strict": False,
        "python": {
            "file": "mine.py",
            "class": "Relevancy",
            "sha256": hashlib.sha256(mine.read_bytes()).hexdigest(),
        },
    }


def test_a_run_goes_on_with_the_same_file_and_is_refused_with_a_changed_one(mine: Path) -> None:
    name = "python:mine.py:Relevancy"
    score("in.jsonl", metrics=name, out="run")
    kept = Path("run/assessments.jsonl").read_bytes()
    Path("run/assessments.jsonl").write_bytes(kept.splitlines(keepends=True)[0])
    score("in.jsonl", metrics=name, out="run")
    assert Path("run/assessments.jsonl").read_bytes() == kept
    score("in.jsonl", metrics=f"python:{mine}:Relevancy", out="run")  # the same file elsewhere
    mine.write_text(FILE.replace(">= self", "> self"))
    with pytest.raises(RunFolderError, match=r"relevancy: mine\.py has changed since the run beg"):
        score("in.jsonl", metrics=name, out="run")
    assert lines(Path("run/assessments.jsonl"))[0]["verdict"] == "near"


def test_no_file_is_executed_because_a_run_names_it(
    mine: Path, trustassay: Callable[..., tuple[int, str]]
) -> None:
    name = "python:mine.py:Relevancy"
    score("in.jsonl", metrics=name, out="run")
    forget()
    mine.write_text("from pathlib import Path\nPath('executed').touch()\n" + FILE)
    settings = json.loads(Path("run/run.json").read_bytes())["metrics"]["relevancy"]
    with pytest.raises(
        UnknownNameError, match=r"not executed only because a run names it.*--metric"
    ):
        metric_from_settings("relevancy", settings)
    with pytest.raises(UnknownNameError, match=r"give --metric python:mine.py:Relevancy"):
        rescore("run", out="again")
    status, told = trustassay("rescore", "run", "--out", "again")
    assert status == 2
    assert "give --metric python:mine.py:Relevancy" in told
    status, _ = trustassay("report", "run")
    assert status == 0
    assert not Path("executed").exists()
    forget()
    mine.write_text(FILE)
    again = rescore("run", metrics=f"{name}:threshold=0.9", out="again")
    assert [one.verdict for one in again.assessments] == ["far", "far"]


def test_a_worker_process_gets_it_without_the_file(mine: Path) -> None:
    metric = metric_from_text("python:mine.py:Relevancy:threshold=0.9").with_backends({"chat": "x"})
    mine.unlink()
    stored = pickle.dumps(metric)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        settings, backends = pool.apply(described, (stored,))
    assert settings == metric.settings()
    assert backends == {"chat": "x"}
    assert pickle.loads(stored) == metric


def described(stored: bytes) -> tuple[object, object]:
    metric: Metric = pickle.loads(stored)
    return metric.settings(), metric.backend_names


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("python:none.py:Relevancy", FILE, r"none\.py: no such file"),
        ("python:mine.py:Relevance", FILE, "did you mean Relevancy"),
        ("python:mine.py:Relevance", "x = 1", "mine.py has no class Relevance"),
        ("python:mine.py:Helper", FILE, "is not a subclass of trustassay.Metric"),
        ("python:mine.py:Metric", FILE, "does not define assess, needs"),
        ("python:mine.py:Relevancy", FILE.replace('= "relevancy"', '= "judge"'), "metric judge"),
        ("python:mine.py:Relevancy", FILE.replace('[str] = "relevancy"', "[str]"), "`name`"),
        ("python:mine.py:Relevancy", FILE.replace("title: ", "other: "), "`title`"),
        ("python:mine.py:Relevancy", FILE.replace("@dataclass(frozen=True)", ""), "@dataclass"),
        (
            "python:mine.py:Relevancy",
            FILE.replace(
                "    def needs(self) -> Sequence[Need]:\n        return []", "    needs = 3"
            ),
            r"a method needs\(self\), got 3",
        ),
        ("python:mine.py:Relevancy", "\n\nimport nothing_at_all\n", r"mine\.py, line 3: ModuleNot"),
        ("python:mine.py:Relevancy", "x = 1\ndef f(:\n", r"mine\.py, line 2: SyntaxError: inv"),
        ("python:mine.py:Relevancy", "def f():\n    1 / 0\nf()\n", "line 2: ZeroDivisionError"),
        ("python:mine.py:Relevancy", "raise SystemExit(3)", "line 1: SystemExit: 3"),
        ("python:mine.py", FILE, "expected python:FILE.py:CLASS"),
        ("python:mine:Relevancy", FILE, "expected python:FILE.py:CLASS"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(
    mine: Path,
    name: str,
    content: str,
    message: str,
    trustassay: Callable[..., tuple[int, str]],
) -> None:
    mine.write_text(content)
    with pytest.raises(UsageError, match=message):
        metric_from_text(name)
    status, told = trustassay("score", "in.jsonl", "--metric", name, "--out", "run")
    assert status == 2
    assert "Traceback" not in told
    assert name in told
    assert not Path("run").exists()


def test_a_class_that_was_wrong_is_read_again_when_its_file_was_mended(mine: Path) -> None:
    mine.write_text("1 / 0")
    with pytest.raises(UsageError, match="line 1"):
        metric_from_text("python:mine.py:Relevancy")
    mine.write_text(FILE)
    assert metric_from_text("python:mine.py:Relevancy").name == "relevancy"


def test_a_template_that_is_not_beside_the_file_is_told_where_it_would_be_shown(mine: Path) -> None:
    mine.write_text(
        FILE.replace(
            "    threshold", '    evidence_template: ClassVar[str] = "own.jinja"\n    threshold', 1
        )
    )
    score("in.jsonl", metrics=["python:mine.py:Relevancy"], out="run")
    page = Path("run/report.html").read_text("utf-8")
    assert "evidence_template: no file own.jinja beside mine.py" in page
