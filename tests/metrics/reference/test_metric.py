"""The metric through the public door: options, needs, problems, runs, the report."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import command, jsonl, killed_at_work, results, run_command
from trustassay import score
from trustassay.api import plan, rescore
from trustassay.core.capabilities import Message, TokenVectors
from trustassay.core.metric import Inventory
from trustassay.core.registry import metric_from_settings, metric_from_text
from trustassay.core.sample import Sample
from trustassay.errors import BackendError
from trustassay.metrics import Reference
from trustassay.metrics.reference import measures
from trustassay.metrics.reference.measures import LEXICAL, PARTS
from trustassay.runs.intake import BadInputError

TOKENS = [name for name in LEXICAL if PARTS[name].family == "tokens"]
SAMPLES = [
    {
        "id": f"q{i}",
        "question": "Who built the first saxophone?",
        "response": response,
        "answers": [["Adolphe Sax", "Sax"], ["a Belgian"]],
    }
    for i, response in enumerate(["Adolphe Sax built it.", "A Belgian!", "nobody knows", " "])
]


class Judge:
    """Finds every token of a text likelier, the shorter its prompt; notes what it was asked."""

    name = "judge"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def replies(self, requests: Sequence[Any]) -> list[Any]:
        raise AssertionError("nobody asks for words")

    def token_loglikelihoods(
        self, prompt: str | Sequence[Message], options: Sequence[str]
    ) -> list[list[float]]:
        assert not isinstance(prompt, str)
        text = prompt[-1].content
        self.asked += [(text, option) for option in options]
        return [[-len(text) / 100 - place for place, _ in enumerate(o.split())] for o in options]


class Letters:
    """Gives each word the vector of its letters; notes what it was asked."""

    name = "letters"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        self.asked += texts
        return [self._one(text.lower().split()) for text in texts]

    def _one(self, words: Sequence[str]) -> TokenVectors:
        rows = np.zeros((len(words), 128), dtype=np.float32)
        for row, word in zip(rows, words, strict=True):
            for letter in word:
                row[ord(letter) % 128] += 1
        return TokenVectors(tuple(words), rows)


# ---- what is chosen ----


def test_auto_takes_what_is_installed_and_the_summary_says_what_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = {"sacrebleu", "rouge_score", "nltk"}
    monkeypatch.setattr(measures, "find_spec", lambda name: None if name in gone else object())
    run = score(SAMPLES, metrics="reference", out=tmp_path / "run")
    summary = run.summaries["reference"]
    assert list(run.assessments[0].parts) == TOKENS
    absent = [name for name in LEXICAL if name not in TOKENS]
    for name in absent:
        assert summary.values[name] is None
        assert "pip install '.[reference]'" in summary.not_applicable[name]
    assert summary.settings["parts"] == "lexical"
    assert summary.settings["without"].split("+") == absent
    assert summary.settings["score"] == "token_recall"
    stored = json.loads((tmp_path / "run" / "run.json").read_text())["metrics"]["reference"]
    assert metric_from_settings("reference", stored).settings() == stored


def test_a_part_asked_for_by_name_is_never_left_out_silently(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(measures, "find_spec", lambda name: None)
    for metric in ("reference:parts=rouge_l", "reference:score=bleu_4", "reference:parts=lexical"):
        with pytest.raises(BackendError, match=r"pip install '\.\[reference\]'"):
            score(SAMPLES, metrics=metric, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    score(SAMPLES, metrics="reference:parts=tokens", out=tmp_path / "run")


def test_without_wordnet_meteor_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("nltk", reason="pip install '.[reference]'")
    monkeypatch.setattr(measures, "wordnet_folder", lambda: None)
    with pytest.raises(BackendError, match=r"nltk.downloader wordnet.*wordnet-base"):
        score(SAMPLES, metrics="reference:parts=meteor")
    settled = Reference().resolve(Inventory())
    assert "meteor" in settled.without.split("+")


def test_the_score_is_the_part_that_was_named_or_the_best_that_is_there() -> None:
    assert Reference(parts="tokens").scored.name == "token_recall"
    assert Reference(parts="rouge_l+em").scored.name == "em"
    assert Reference(parts="em", score="token_f1").chosen == ("em", "token_f1")
    assert Reference(parts="bertscore").score_range == (0, 1)
    assert Reference(parts="bertscore", score="bertscore_recall").score_range == (-1, 1)
    assert Reference(parts="gptscore_src").score_range == (0, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("parts=rouge", "did you mean rouge_l"),
        ("score=tokens_f1", "did you mean token_f1"),
        ("aggregate=worst", "unknown value of aggregate"),
        ("recipe=trustscore", "did you mean trustscore-paper"),
        ("parts=em,without=em", "no part is left"),
        ("score=em,without=em", "em is left out"),
        ("passages=0", "expected 1 or more"),
    ],
)
def test_options_that_make_no_sense_are_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        metric_from_text(f"reference:{text}")


def test_needs_follow_from_the_parts() -> None:
    def needs(parts: str) -> list[tuple[str, str]]:
        return [(need.capability, need.role) for need in Reference(parts=parts).needs()]

    assert needs("tokens") == []
    assert needs("bertscore_recall") == [("token_vectors", "")]
    assert needs("gptscore_ref") == [("likelihood", "judge")]
    assert needs("bartscore_evid") == [("likelihood", "judge"), ("search", "")]
    assert Reference(parts="bartscore_evid").fills == ("documents",)
    assert Reference(parts="bartscore_src").fills == ()


# ---- problems ----


def problems(parts: str, **fields: Any) -> str:
    record = {"id": "x", "question": "Q?", "response": "A.", **fields}
    with pytest.raises(BadInputError) as error:
        score([record], metrics=Reference(parts=parts), judge=Judge() if "score" in parts else None)
    return str(error.value)


def test_what_a_sample_lacks_is_told_before_anything_starts() -> None:
    assert "answers: is missing" in problems("em")
    assert "answers: is missing" in problems("gptscore_ref+gptscore_src")
    assert "documents: is missing" in problems("gptscore_evid")
    assert "documents: is missing" in problems("gptscore_evid", documents=[])
    assert "response: is missing" in problems("em", response=None, answers=["A"])
    run = score(
        [{"id": "x", "question": "Q?", "response": "A."}],
        metrics=Reference(parts="gptscore_src"),
        judge=Judge(),
    )
    assert run.assessments[0].error is None


def test_claims_stand_in_for_answers_that_are_not_there() -> None:
    record = {"question": "Q?", "response": "It is red.", "claims": ["It is red.", "It is big."]}
    [found] = score([record], metrics=Reference(parts="em")).assessments
    assert found.score == 1
    [found] = score([{**record, "answers": ["blue"]}], metrics=Reference(parts="em")).assessments
    assert found.score == 0


# ---- runs ----


def test_assessments_say_what_each_gold_answer_gives() -> None:
    run = score(SAMPLES, metrics=Reference(parts="tokens"))
    first, second, third, blank = run.assessments
    assert first.reason == "token_recall 1.00 against the best of 3 gold answers"
    assert [row["gold"] for row in first.evidence] == ["Adolphe Sax", "Sax", "a Belgian"]
    assert [row["token_recall"] for row in first.evidence] == [1, 1, 0]
    assert second.parts["em"] == 1
    assert third.score == blank.score == 0
    assert blank.error is None
    assert run.summary["reference"]["em"] == 0.25


def test_the_mean_of_each_part_has_an_interval() -> None:
    many = [{**SAMPLES[i % 4], "id": str(i)} for i in range(80)]
    found = score(many, metrics=Reference(parts="tokens"), unit="answer")
    summary = found.summaries["reference"]
    assert summary.values["token_recall"] == 0.5
    low, high = summary.intervals["token_recall"]
    assert 0.35 < low < 0.5 < high < 0.65


def test_a_plan_counts_all_calls_and_asks_a_few_to_measure_their_time() -> None:
    judge, letters = Judge(), Letters()
    metric = Reference(parts="bertscore+gptscore_ref+gptscore_src")
    many = [{**SAMPLES[0], "id": str(i), "response": f"answer {i}"} for i in range(60)]
    found = plan(many, metrics=metric, judge=judge, token_embedder=letters)
    calls = {part.backend: part.calls for part in found.parts}
    assert calls["judge"] == 60 * (2 * 3 + 1)  # three golds there and back, and the question
    assert calls["letters"] == 60 + 3  # each gold answer once
    assert len(judge.asked) < calls["judge"] / 2


def test_scored_again_with_another_aggregate_nobody_is_asked(tmp_path: Path) -> None:
    judge, letters = Judge(), Letters()
    metric = Reference(parts="em+bertscore+gptscore_ref")
    who: dict[str, Any] = {"judge": judge, "token_embedder": letters}
    score(SAMPLES[:3], metrics=metric, out=tmp_path / "run", **who)
    assert judge.asked and letters.asked
    judge.asked.clear()
    letters.asked.clear()
    other = Reference(parts="em+bertscore_recall+gptscore_ref", aggregate="mean")
    again = rescore(tmp_path / "run", metrics=other, out=tmp_path / "again", **who)
    fresh = score(SAMPLES[:3], metrics=other, judge=Judge(), token_embedder=Letters())
    assert not judge.asked
    assert not letters.asked
    assert [a.parts for a in again.assessments] == [a.parts for a in fresh.assessments]
    assert [a.parts for a in again.assessments][1]["em"] == pytest.approx(1 / 3)


@pytest.mark.slow
def test_a_killed_run_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    many = [
        {**SAMPLES[i % 3], "id": str(i), "question": f"{SAMPLES[0]['question']} {i}"}
        for i in range(200)
    ]
    file = jsonl(tmp_path / "in.jsonl", many)
    (tmp_path / "mine.py").write_text(
        "import time\n"
        "from tests.metrics.reference.test_metric import Judge\n"
        "class Slow(Judge):\n"
        "    def token_loglikelihoods(self, prompt, options):\n"
        "        time.sleep(0.01)\n"
        "        return super().token_loglikelihoods(prompt, options)\n"
        "judge = Slow()\n"
    )
    root = str(Path(__file__).parents[3])
    path = ":".join((str(tmp_path), root, os.environ.get("PYTHONPATH", str(Path(root, "src")))))
    metric = "reference:parts=tokens+gptscore_src"
    arguments = ["score", str(file), "--metric", metric, "--judge", "python:mine:judge"]
    whole = run_command(*arguments, "--out", tmp_path / "whole", cwd=tmp_path, PYTHONPATH=path)
    assert whole.returncode == 0, whole.stderr
    begun = command(*arguments, "--out", tmp_path / "run", "--samples-at-once", "8")
    part = tmp_path / "run" / "assessments.jsonl"
    killed_at_work(begun, part, cwd=tmp_path, PYTHONPATH=path)
    assert part.read_bytes().count(b"\n") < 200
    again = run_command(*arguments, "--out", tmp_path / "run", cwd=tmp_path, PYTHONPATH=path)
    assert again.returncode == 0, again.stderr
    assert results(tmp_path / "run") == results(tmp_path / "whole")


# ---- the report ----


def test_the_report_shows_each_gold_answer_and_escapes_it(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    samples = [*SAMPLES, {**SAMPLES[0], "id": "h", "response": hostile, "answers": [hostile, "b"]}]
    run = score(samples, metrics=Reference(parts="tokens"), out=tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert hostile not in page
    assert "alert(1)" in page
    assert page.count("token_recall 1.00") >= 3
    assert "the whole" in page
    assert "it has nothing in common with any gold answer" in str(
        [Reference(parts="tokens").problem(one) for one in run.assessments]
    )
    assert Reference(parts="tokens").problem(run.assessments[0]) is None


def test_evidence_of_any_form_is_drawn() -> None:
    pytest.importorskip("sacrebleu", reason="pip install '.[reference]'")
    metric = Reference(parts="bleu_1")
    [found] = score(SAMPLES[:1], metrics=metric).assessments
    sample = Sample.parse(SAMPLES[0])
    view = metric.view(sample, found)
    assert [gold.value for gold in view.data.golds] == [None] * 3
    assert view.shows_golds
    odd = dataclasses.replace(found, evidence=[{"gold": 3}, {"gold": "x", "bleu_1": "y"}, 7])  # type: ignore[list-item]
    view = metric.view(sample, odd)
    assert [gold.text for gold in view.data.golds] == ["x"]
    assert view.data.other_items == [{"gold": 3}, {"value": 7}]
