"""Keywords in Python: each has a type, and a wrong one is named with the near right one."""

from __future__ import annotations

import asyncio
import builtins
import dataclasses
import inspect
from pathlib import Path
from typing import Any

import pytest

import trustassay
from tests.support import Recorder, records
from trustassay import (
    UnknownNameError,
    UsageError,
    ascore,
    plan,
    rescore,
    score,
    watch,
)
from trustassay.calls.chat import chat
from trustassay.runs.answering import Answering
from trustassay.runs.intake import RunOptions
from trustassay.runs.options import CLUSTER, FLAGS, Engine, ScoreOptions, read_annotation


@pytest.mark.parametrize(
    ("options", "names"),
    [(RunOptions, "seed skip_bad longest_answer"), (Answering, "style temperature max_tokens")],
)
def test_the_default_that_help_shows_is_that_of_the_program(options: type, names: str) -> None:
    """A value equal to the default of the flag counts as not given."""
    defaults = {one.name: one.default for one in dataclasses.fields(options)}
    for name in names.split():
        assert FLAGS[name].default == defaults[name], name


def test_the_default_engine_is_that_of_help() -> None:
    assert (
        inspect.signature(score).parameters["engine"].default == read_annotation(Engine)[1].default
    )


@pytest.mark.parametrize("function", [score, ascore, plan])
def test_the_signature_lists_every_keyword(function: Any) -> None:
    names = set(inspect.signature(function).parameters) - {"engine", *CLUSTER}
    assert names == {"samples", "metrics", "out", *ScoreOptions.__annotations__}
    assert {"entailer", "seed", "budget", "fields"} <= names


def test_a_wrong_keyword_is_named_before_anything_starts() -> None:
    recorder = Recorder()
    rows = records(1)
    with pytest.raises(UnknownNameError, match="unknown keyword 'entialer'; did you mean entailer"):
        score(rows, metrics="grounding", entialer=recorder)  # type: ignore[call-arg]
    with pytest.raises(UnknownNameError, match=r"'sed'.*seed.*; .*'lmit'.*limit"):
        score(rows, metrics="grounding", sed=1, lmit=2)  # type: ignore[call-arg]
    with pytest.raises(UnknownNameError, match="'fields'"):  # a stored run has its own
        _rescore(rows)
    assert not recorder.batches


def _rescore(rows: list[dict[str, Any]]) -> None:
    run = score(rows, metrics="grounding", entailer=Recorder())
    rescore(run.path, out=run.path / "again", fields={})  # type: ignore[call-arg]


def test_an_option_of_the_metric_is_told_with_how_it_is_given() -> None:
    words = "'threshold' is an option of the metric grounding; write metrics=\"grounding:thr"
    with pytest.raises(UnknownNameError, match=words):
        score(records(1), metrics="grounding", threshold=0.4)  # type: ignore[call-arg]


def test_watch_and_chat_know_their_keywords() -> None:
    assert "entailer" in inspect.signature(watch).parameters
    with pytest.raises(TypeError, match="conc"):
        chat("replay:none", concurency=3)  # type: ignore[call-arg]
    model = chat(lambda prompt: "Yes.", cache=False)
    with pytest.raises(TypeError, match="'temprature'; did you mean temperature"):
        model.ask(["Why?"], temprature=0)  # type: ignore[call-arg]


def test_what_the_documentation_names_is_exported() -> None:
    for name in trustassay.__all__:
        assert getattr(trustassay, name) is not None
    errors = [n for n in trustassay.__all__ if n.endswith("Error")]
    assert all(issubclass(getattr(trustassay, name), Exception) for name in errors)
    assert {"BadInputError", "BackendError", "UnknownNameError", "FaultsError"} <= set(errors)


def test_a_frame_without_pandas_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    run = score(records(1), metrics="grounding", entailer=Recorder())
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "pandas":
            raise ImportError("No module named 'pandas'")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install '\.\[pandas\]'"):
        run.to_pandas()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"metric": "grounding"}, "unknown keyword 'metric'; did you mean metrics"),
        ({"ot": "folder"}, "unknown keyword 'ot'; did you mean out"),
        ({"limit": "5"}, r"limit: expected a whole number or None, got '5'"),
        (
            {"seed": 1.5, "skip_bad": 1},
            r"seed: .* got 1.5; skip_bad: expected True or False, got 1",
        ),
        ({"report": "no", "fields": "answer"}, "report: expected True .*; fields: expected a map"),
    ],
)
def test_what_people_mistype_is_refused_in_their_own_frame(
    given: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words) as error:
        score(records(1), **given)
    frames = [Path(frame.path).name for frame in error.traceback]
    assert frames == ["test_keywords.py", "errors.py"]  # of ours the door alone
    assert error.value.__suppress_context__


def test_a_door_stays_a_coroutine() -> None:
    assert inspect.iscoroutinefunction(ascore)
    with pytest.raises(UsageError, match="limit") as error:
        asyncio.run(ascore(records(1), limit="5"))  # type: ignore[arg-type]
    assert Path(error.traceback[-1].path).name == "errors.py"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("study", {"labels": ["correct"]}),
        ("calibrate", {"label": "correct"}),
        ("label", {"plan": "p.jsonl"}),
    ],
)
def test_what_reads_runs_refuses_in_the_callers_frame(
    name: str, given: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as error:
        getattr(trustassay, name)(tmp_path / "none", **given)
    assert len(error.traceback) == 2
