"""Perturbed embeddings in place of characters: what is asked, told, stored and refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import trustassay
from tests.metrics.harmonicity.helpers import Model, Words
from trustassay import Run, plan, rescore, score
from trustassay.core.capabilities import ChatRequest, Reply
from trustassay.core.metric import Assessment, Context, Metric, Need
from trustassay.core.registry import metric_from_text
from trustassay.errors import BackendError

QUESTION = "Who sailed around Africa first?"
BALL = "harmonicity:perturbation=embeddings,radius=0.05"


class Moving:
    """A local model whose embeddings can be moved; it answers by a function of the request."""

    perturbs_embeddings = True

    def __init__(self, answer: Callable[[ChatRequest], str], name: str = "moving") -> None:
        self.name, self.answer = name, answer
        self.asked: list[ChatRequest] = []

    def replies(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        self.asked += requests
        return [Reply(self.answer(request), "stop", 5, 1) for request in requests]


def by_draw(request: ChatRequest) -> str:
    return "Dias did." if request.embedding_radius and request.repeat % 3 == 2 else "Da Gama did."


def scored(model: Any, metrics: Any = BALL, **options: Any) -> Run:
    settings: dict[str, Any] = {"embedder": Words(), "cache": None} | options
    return score([{"id": "q", "question": QUESTION}], metrics=metrics, model=model, **settings)


def test_the_plain_prompt_and_ten_points_of_the_ball_are_asked() -> None:
    model = Moving(by_draw)
    (found,) = scored(model, BALL + ",seed=7").assessments
    plain, *moved = sorted(model.asked, key=lambda one: (one.embedding_radius or 0, one.repeat))
    assert (plain.embedding_radius, plain.seed, plain.repeat) == (None, None, 0)
    assert [(r.embedding_radius, r.seed, r.repeat) for r in moved] == [
        (0.05, 7, draw) for draw in range(10)
    ]
    assert {one.messages[-1].content for one in model.asked} == {QUESTION}
    assert {one.temperature for one in model.asked} == {0}
    assert found.score is not None and found.score > 0
    assert found.parts["perturbations"] == 10 and found.parts["unseen"] == 0
    rows = found.evidence[1:]
    assert [row["answer"] for row in rows] == [by_draw(request) for request in moved]
    assert all(row["change"] == "embeddings, radius 0.05" for row in rows)


def test_both_metrics_share_the_calls_and_a_prompt_is_moved_whole(tmp_path: Path) -> None:
    template = tmp_path / "question.jinja"
    template.write_text("{#- version 1 -#}\nAnswer: {{ question }}")
    model, options = Moving(by_draw), f"perturbation=embeddings,prompt={template}"
    names = [f"harmonicity:{options}", f"semantic_harmonicity:{options}"]
    scored(model, names, entailer=lambda p, h: float(p == h))
    assert len(model.asked) == 11
    assert {one.messages[-1].content for one in model.asked} == {f"Answer: {QUESTION}"}
    assert {one.embedding_radius for one in model.asked} == {None, 0.4}


def test_precision_goes_on_with_further_draws() -> None:
    full, adaptive = Moving(by_draw), Moving(by_draw)
    scored(full)
    scored(adaptive, BALL + ",decided=yes,stable_below=0.01")
    assert 4 <= len(adaptive.asked) < 11
    assert set(adaptive.asked) < set(full.asked)


def test_an_empty_reply_is_told_and_another_point_drawn() -> None:
    model = Moving(lambda one: "" if one.embedding_radius and one.repeat == 1 else "Dias.")
    (found,) = scored(model, BALL + ",perturbations=3").assessments
    assert (found.parts["empty"], found.parts["perturbations"]) == (1, 3)
    assert found.evidence[-1] == {"empty": "embeddings, radius 0.05"}
    assert sorted(one.repeat for one in model.asked if one.embedding_radius) == [0, 1, 2, 3]


def test_the_report_says_in_which_ball_once_an_answer(tmp_path: Path) -> None:
    run = scored(Moving(by_draw), out=tmp_path / "run")
    page = run.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<bdi>embeddings, radius 0.05</bdi>") == 2  # the same answer, and another one
    assert "prompt +" not in page and "<del>Who</del>" not in page


# Again -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_resumed_rescored_and_planned_nothing_is_asked_again(tmp_path: Path) -> None:
    model = Moving(by_draw, "hf:/nowhere")
    first = scored(model, out=tmp_path / "run", report=False)
    assert scored(model, out=tmp_path / "run", report=False).assessments[0].score is not None
    assert len(model.asked) == 11
    second = rescore(  # the model itself cannot be loaded here
        tmp_path / "run", out=tmp_path / "b", embedder="embedded", cache=None, report=False
    )
    told = [[row.get("answer") for row in run.assessments[0].evidence] for run in (first, second)]
    assert told[0] == told[1]
    sample = [{"id": "q", "question": QUESTION}]
    how: dict[str, Any] = {"model": model, "embedder": Words(), "cache": None}
    for metric, cached in ((BALL, 11), (BALL.replace("0.05", "0.06"), 1)):
        (part,) = [
            one
            for one in plan(sample, metrics=metric, out=tmp_path / "run", **how).parts
            if one.capability == "chat"
        ]
        assert (part.calls, part.cached) == (11, cached)
    assert len(model.asked) == 11


def test_a_replayed_run_has_the_replies_to_texts_alone(tmp_path: Path) -> None:
    scored(Moving(by_draw), BALL + ",seed=0", out=tmp_path / "run", report=False)
    chat = trustassay.chat(f"replay:{tmp_path / 'run'}", cache=False)
    plain, third = (chat.ask([QUESTION], repeat=repeat, max_tokens=512)[0] for repeat in (0, 2))
    assert plain.text == "Da Gama did."
    assert "no reply with repeat 2 (only with 0)" in str(third.error)


def test_recorded_resamples_need_no_such_model() -> None:
    sample = {"question": "Q", "response": "a b", "resamples": ["a b", "a c"]}
    results = [
        score([sample], metrics=metric, embedder=Words()).assessments[0].to_dict()
        for metric in (BALL, "harmonicity")
    ]
    assert results[0] == results[1]


def test_other_runs_say_nothing_of_a_radius(tmp_path: Path) -> None:
    scored(Model(), "harmonicity", out=tmp_path / "run", report=False)
    settings = json.loads((tmp_path / "run/run.json").read_text())["metrics"]["harmonicity"]
    assert "radius" not in settings and settings["range"] == 31


# Refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [BALL, BALL.replace("harm", "semantic_harm")])
@pytest.mark.parametrize("door", [score, plan])
def test_any_other_backend_refuses_before_anything_is_asked(
    metric: str, door: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    model = Model()
    for named, name in ((model, "told"), ("openai:gpt-4o-mini", "openai:gpt-4o-mini")):
        words = rf"harmonicity: {name}.*: cannot perturb embeddings \(expected a hf: model\)"
        with pytest.raises(BackendError, match=words):
            door([{"question": QUESTION}], metrics=metric, model=named, cache=None)
    assert not model.asked


@dataclass(frozen=True)
class Careless(Metric):
    """Asks with a radius and does not say that it needs to."""

    name = "careless"
    reads_response = False
    title = "Careless"

    def needs(self) -> Sequence[Need]:
        return [Need("chat", "model")]

    async def assess(self, context: Context) -> Assessment:
        await context.models.chat("Who?", embedding_radius=0.1)
        return Assessment(context.sample.id, self.name, 1.0)


def test_a_model_that_would_ignore_the_radius_is_never_asked() -> None:
    model = Model()
    (found,) = scored(model, Careless(), embedder=None).assessments
    assert found.error == "told: cannot perturb embeddings (expected a hf: model)"
    assert not model.asked
    assert scored(Moving(by_draw), Careless(), embedder=None).assessments[0].score == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("perturbation=embeddings,radius=0", "radius: expected a finite number above 0, got"),
        ("perturbation=embeddings,radius=nan", "radius: expected a finite number above 0, got"),
        ("perturbation=embeddings,radius=inf", "radius: expected a finite number above 0, got"),
        ("radius=0.2", "radius: applies only to the perturbation embeddings"),
        ("perturbation=embeddings,length=2", "length: does not apply to embeddings"),
        ("perturbation=embedings", "did you mean embeddings"),
    ],
)
def test_options_that_make_no_sense(options: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        metric_from_text(f"harmonicity:{options}")
