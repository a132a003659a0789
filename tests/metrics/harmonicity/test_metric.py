"""The metrics through the public door: recorded answers, and asked ones."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lab.results import read_result

from tests.metrics.harmonicity.helpers import Model, Stripping, Words, refusing
from tests.support import ROOT
from trustassay import Assessment, Run, score
from trustassay.api import plan, rescore
from trustassay.backends.embedded import EmbeddedEmbedder
from trustassay.core.capabilities import ChatRequest, Reply, Vectors
from trustassay.core.prompts import PromptError
from trustassay.core.registry import metric_from_text
from trustassay.errors import CallError
from trustassay.metrics.harmonicity import Harmonicity, SemanticHarmonicity
from trustassay.metrics.harmonicity.asking import STABILITY_BOUNDS

QUESTION = "What big city is near the famous road?"


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def questions(n: int) -> list[dict[str, str]]:
    return [{"id": f"q{i}", "question": f"{QUESTION} ({i})"} for i in range(n)]


def asked(model: Any, samples: Any = 1, metrics: Any = "harmonicity", **options: Any) -> Run:
    samples = questions(samples) if isinstance(samples, int) else samples
    settings: dict[str, Any] = {"embedder": Words(), "cache": None} | options
    return score(samples, metrics=metrics, model=model, **settings)


def only(run: Run) -> Assessment:
    (assessment,) = run.assessments
    return assessment


def answers(assessment: Assessment) -> list[str]:
    return [row["answer"] for row in assessment.evidence if "answer" in row]


def recorded(response: str, resamples: Sequence[str], **options: Any) -> Assessment:
    sample = {"question": "Q", "response": response, "resamples": list(resamples)}
    settings: dict[str, Any] = {"metrics": "harmonicity"} | options
    if settings["metrics"] == "harmonicity":
        settings.setdefault("embedder", Words())
    return only(score([sample], **settings))


# Recorded answers --------------------------------------------------------------------------------


def test_recorded_answers_need_no_model() -> None:
    found = recorded("a", ["a", "b"])
    assert found.score == pytest.approx(math.sqrt(0.5), abs=1e-6)
    assert found.parts["angle_degrees"] == pytest.approx(45, abs=1e-4)
    # The mean of (1, 0) and (0, 1) lies half of (1, -1) from the first.
    assert found.parts["gamma_length"] == pytest.approx(math.sqrt(0.5), abs=1e-6)
    assert found.parts["pairwise_distance"] == pytest.approx(2 / 3, abs=1e-5)
    assert found.parts["gamma_low"] == 0
    assert found.parts["gamma_high"] == pytest.approx(1, abs=0.01)
    assert found.verdict == "unstable"
    assert found.reason.startswith("1 of 2 answers")
    assert found.evidence == [{"original": "a"}, {"answer": "a"}, {"answer": "b"}]
    assert found.calls == {"embedding": 3}


def test_one_recorded_answer_has_an_interval_without_width() -> None:
    found = recorded("a", ["a b"])
    assert found.parts["gamma_low"] == found.parts["gamma_high"] == pytest.approx(found.score)


@pytest.mark.parametrize(
    ("response", "resamples", "words"),
    [
        ("", ["", " \n"], "the response is blank"),
        ("\u200b", ["yes"], "the response is blank"),
        ("yes", ["", " \n"], "2 of 2 resamples are blank"),
        ("yes", ["", "yes", "\x00"], "2 of 3 resamples are blank"),
    ],
)
@pytest.mark.parametrize("metric", ["harmonicity", "semantic_harmonicity"])
def test_recorded_silence_is_not_stable(
    response: str, resamples: list[str], words: str, metric: str
) -> None:
    options: dict[str, Any] = {"metrics": metric}
    if metric == "semantic_harmonicity":
        options["entailer"] = lambda p, h: 1.0
    found = recorded(response, resamples, **options)
    assert (found.score, found.error, found.fault) == (None, words, "empty")


def test_a_blank_resample_is_left_out_and_counted() -> None:
    found = recorded("yes", ["", "yes", "no"])
    assert found.score == recorded("yes", ["yes", "no"]).score
    assert (found.parts["empty"], found.parts["perturbations"]) == (1, 2)
    assert "empty answers left out: 1" in found.reason
    assert found.evidence[-1] == {"empty": "resamples[0]"}


class Signed:
    """A vector per word of a text: ``+`` and ``-`` point to opposite sides."""

    name = "signed"

    def vectors(self, texts: Sequence[str]) -> Vectors:
        table = {"+": (0, 1), "-": (0, -1), "o": (1, 0), "x": (-1, 0), "0": (0, 0)}
        return np.array([table[text] for text in texts], dtype=np.float32)


def test_without_an_angle_the_sample_fails() -> None:
    for original, others, message in [
        ("o", ["+", "-"], "no angle"),
        ("0", ["o"], "length 0 for text 1"),
        ("o", ["0"], "length 0 for text"),
    ]:
        found = recorded(original, others, embedder=Signed())
        assert found.score is None
        assert message in (found.error or "")


def test_beyond_a_right_angle_the_angle_tells() -> None:
    found = recorded("o", ["x", "x"], embedder=Signed())
    assert (found.score, found.parts["angle_degrees"]) == (0.0, 180.0)
    assert found.parts["gamma_length"] == 2.0
    assert found.verdict == "unstable"
    assert "beyond 90" in found.reason


HOSTILE = ["\x00", "\ud800", "a" * 100_000, "\u202e[1]", "{{ x }}", "<script>", "\x1b[2J", "𝄞"]


@pytest.mark.parametrize("embedder", [Words(), "embedded"], ids=["words", "embedded"])
def test_hostile_answers(embedder: Any) -> None:
    found = recorded("{% x %}", HOSTILE, embedder=embedder)
    assert found.score is not None
    assert len(answers(found)) == len(HOSTILE) - 1  # NUL alone shows nothing
    assert found.parts["empty"] == 1


# Asked answers -----------------------------------------------------------------------------------


def test_a_stable_model_has_gamma_zero_and_each_prompt_is_asked_once() -> None:
    model = Model()
    found = only(asked(model))
    assert found.score == 0.0
    assert found.verdict == "stable"
    assert len(model.asked) == 11
    assert set(model.asked.values()) == {1}
    assert found.calls["chat"] == found.usage["told"]["calls"] == 11
    changes = [row["change"] for row in found.evidence if "answer" in row]
    assert len(set(changes)) == 10
    assert all(c.isascii() and c.isprintable() for c in changes)


def test_both_metrics_share_the_calls() -> None:
    model = Model(lambda text: f"Answer {len(text)}.")
    run = asked(
        model, 5, ["harmonicity", "semantic_harmonicity"], entailer=lambda p, h: float(p == h)
    )
    assert set(model.asked.values()) == {1}
    assert len(model.asked) == 55
    first, second = (
        [answers(a) for a in run.assessments if a.metric == name] for name in run.summary
    )
    assert first == second


def test_meaning_takes_the_smaller_of_two_directions() -> None:
    def entails(premise: str, hypothesis: str) -> float:
        return 0.9 if premise == "long" else 0.2

    found = recorded("long", ["long", "short"], metrics="semantic_harmonicity", entailer=entails)
    assert found.score == pytest.approx(1 - (1 + 0.2) / 2)
    assert found.parts["entails_others"] == pytest.approx(0.95)
    assert found.parts["entailed_by_others"] == pytest.approx(0.6)
    assert found.verdict == "stable"
    assert found.calls == {"entailment": 2}


@pytest.mark.parametrize("family", ["unicode", "whitespace", "typo", "synonym"])
def test_other_families(family: str) -> None:
    model = Model()
    found = only(asked(model, metrics=f"harmonicity:perturbations=3,perturbation={family}"))
    assert found.score == 0.0
    assert len(model.asked) == 4


def test_codes_put_a_space_before_what_control_appends() -> None:
    model = Model()
    asked(model, metrics="harmonicity:perturbation=codes,length=1,perturbations=5")
    tails = [text.removeprefix(f"{QUESTION} (0)") for text in model.asked]
    assert sorted(map(len, tails)) == [0, 2, 2, 2, 2, 2]
    assert all(tail[0] == " " and tail[1] <= "\x1f" for tail in tails if tail)
    wide = Model()
    asked(wide, metrics="harmonicity:perturbation=codes,range=4095,perturbations=30")
    drawn = "".join(text.removeprefix(f"{QUESTION} (0)") for text in wide.asked)
    assert "\x7f" < max(drawn) <= "\u0fff"


def test_a_function_as_perturbation() -> None:
    def numbered(text: str, rng: np.random.Generator) -> str:
        return f"{text} {rng.integers(10**9)}"

    model = Model()
    run = asked(model, metrics=Harmonicity(perturbation=numbered, perturbations=2))
    assert all(
        text.removeprefix(f"{QUESTION} (0)").strip().isdigit()
        for text in model.asked
        if text != f"{QUESTION} (0)"
    )
    assert only(run).score == 0.0
    assert run.summaries["harmonicity"].settings["perturbation"].endswith("numbered")


def test_what_cannot_be_perturbed_fails_alone() -> None:
    samples = [{"id": "a", "question": "1 + 1?"}, {"id": "b", "question": "Who built it?"}]
    run = asked(Model(), samples, "harmonicity:perturbation=typo,perturbations=2")
    assert [a.error is None for a in run.assessments] == [False, True]
    assert "no word with three letters" in (run.assessments[0].error or "")


class Paraphraser(Model):
    """Paraphrases by number; now and then it says nothing, or the same."""

    async def reply(self, request: ChatRequest) -> Reply:
        text = request.messages[-1].content
        if not text.startswith("Say the following"):
            return await super().reply(request)
        assert request.prompt == "paraphrase/1"
        asked = text.rsplit("\n", 1)[1]
        said = ["", asked, f"{asked} In other words, once.", f"{asked} Put differently."]
        return Reply(said[request.repeat] if request.repeat < 4 else f"{asked} {request.repeat}")


def test_paraphrases_are_asked_of_the_model_and_idle_ones_replaced() -> None:
    model = Paraphraser()
    found = only(asked(model, metrics="harmonicity:perturbation=paraphrase,perturbations=3"))
    assert (found.parts["refused"], found.parts["empty"]) == (1, 1)
    assert len(model.asked) == 4
    assert [row["change"] for row in found.evidence if "answer" in row][-1] == " 4"


def test_a_model_that_cannot_paraphrase_fails_the_sample() -> None:
    found = only(asked(Model(lambda text: ""), metrics="harmonicity:perturbation=paraphrase"))
    assert "the reply is empty" in (found.error or "")

    def repeats(text: str) -> str:
        return text.rsplit("\n", 1)[1] if text.startswith("Say the following") else "Paris."

    found = only(asked(Model(repeats), metrics="harmonicity:perturbation=paraphrase"))
    assert "no paraphrase" in (found.error or "")


class Cutting(Paraphraser):
    """Says that every reply was cut."""

    async def reply(self, request: ChatRequest) -> Reply:
        return replace(await super().reply(request), finish="length")


def test_a_paraphrase_that_was_cut_is_none() -> None:
    found = only(asked(Cutting(), metrics="harmonicity:perturbation=paraphrase"))
    assert "no paraphrase" in (found.error or "")


# Silence and cut answers -------------------------------------------------------------------------


def test_a_model_that_says_nothing_is_not_stable() -> None:
    model = Model(lambda text: "")
    run = asked(model, 2)
    assert [(a.score, a.fault) for a in run.assessments] == [(None, "empty")] * 2
    assert run.summaries["harmonicity"].failed == 2
    assert set(model.asked.values()) == {2}  # each was asked once more


def test_silence_at_a_perturbed_prompt_is_noted_and_the_prompt_replaced() -> None:
    model = Model(lambda text: "" if "\x00" in text else "Paris.")
    run = asked(model, 20)
    assert all(a.error is None for a in run.assessments)
    lost = [row["empty"] for a in run.assessments for row in a.evidence if "empty" in row]
    assert lost
    assert all(r"\x00" in change for change in lost)
    assert run.summary["harmonicity"]["empty"] == len(lost)
    assert run.summary["harmonicity"]["refused"] == 0
    assert run.summary["harmonicity"]["perturbations"] == 10
    assert any("empty answers replaced: " in a.reason for a in run.assessments)


def test_a_model_that_is_silent_at_every_perturbed_prompt_fails_the_sample() -> None:
    found = only(asked(Model(lambda text: "Paris." if text.isprintable() else "")))
    assert found.fault == "empty"
    words = "too many perturbed prompts were answered with an empty reply: told: the reply is empty"
    words += " (after 2 tries)"
    assert found.error == words


def test_a_blank_response_cannot_stand_for_the_original_answer() -> None:
    sample = {"question": QUESTION, "response": " "}
    found = only(asked(Model(), [sample], "harmonicity:original=response,perturbations=1"))
    assert (found.error, found.fault) == ("the response is blank", "empty")


def test_cut_answers_are_counted() -> None:
    run = asked(Cutting(), 2, "harmonicity:perturbations=3,max_tokens=7")
    assert [a.parts["cut"] for a in run.assessments] == [4, 4]
    assert run.summary["harmonicity"]["cut"] == 8
    assert "answers cut at 7 tokens: 4" in run.assessments[0].reason
    assert [row.get("cut") for row in run.assessments[0].evidence] == [None, True, True, True]


def test_reasoning_is_no_part_of_the_answer() -> None:
    def thinking(text: str) -> str:
        return f"<think>\nThey ask {text!r}.\n</think>\n\nParis."

    found = only(asked(Model(thinking)))
    assert found.score == 0.0
    assert set(answers(found)) == {"Paris."}


def test_the_response_can_stand_for_the_original_answer() -> None:
    model = Model()
    sample = {"question": QUESTION, "response": "Rome."}
    found = only(asked(model, [sample], "harmonicity:original=response,perturbations=1"))
    assert found.score == pytest.approx(1)
    assert QUESTION not in model.asked
    assert len(model.asked) == 1


# Templates ---------------------------------------------------------------------------------------


def template(folder: Path, text: str) -> str:
    path = folder / "own.jinja"
    path.write_text(text)
    return f"harmonicity:perturbations=5,prompt={path}"


def test_a_template_keeps_what_stands_at_the_end(tmp_path: Path) -> None:
    model = Model()
    found = only(asked(model, metrics=template(tmp_path, "Be brief.\n\n{{ question }}\n")))
    assert found.error is None
    plain = f"Be brief.\n\n{QUESTION} (0)"
    tails = [text.removeprefix(plain) for text in model.asked]
    assert sorted(map(bool, tails)) == [False] + [True] * 5
    assert all(set(tail) <= set(map(chr, range(32))) for tail in tails)


def test_a_template_that_cannot_be_used(tmp_path: Path) -> None:
    result = only(asked(Model(), metrics=template(tmp_path, "{{ sample.question }}")))
    assert "does not contain the perturbation" in (result.error or "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ other }}", "the variables are question, sample"),
        ("{{ question }}{{ sample.other }}", r"own\.jinja:1: sample has no field 'other'"),
    ],
)
def test_a_template_with_an_unknown_variable_asks_nothing(
    tmp_path: Path, text: str, message: str
) -> None:
    model = Model()
    with pytest.raises(PromptError, match=message):
        asked(model, metrics=template(tmp_path, text))
    assert not model.asked


# Refused and stripped ----------------------------------------------------------------------------


def test_refused_prompts_are_found_out_noted_and_replaced() -> None:
    model = Model(refusing("NUL is not allowed", lambda text: "\x00" in text))
    run = asked(model, 20)
    assert all(a.error is None for a in run.assessments)
    refused = [row["refused"] for a in run.assessments for row in a.evidence if "refused" in row]
    assert refused
    assert all(r"\x00" in change for change in refused)
    assert run.summary["harmonicity"]["refused"] == len(refused)
    assert run.summary["harmonicity"]["perturbations"] == 10
    noted = next(a for a in run.assessments if a.parts["refused"])
    assert "refused and replaced" in noted.reason
    assert noted.parts["perturbations"] == 10


def test_an_endpoint_that_refuses_all_perturbed_prompts_fails_the_sample() -> None:
    model = Model(refusing("odd bytes", lambda text: not text.isprintable()))
    found = only(asked(model))
    assert found.error == "too many perturbed prompts were refused: odd bytes"
    assert len(model.asked) <= 1 + 20


def test_a_refused_original_fails_the_sample() -> None:
    assert "odd bytes" in (only(asked(Model(refusing("odd bytes")))).error or "")


def test_stripped_prompts_are_counted() -> None:
    found = only(asked(Stripping()))
    assert found.parts["unseen"] == 10
    assert all(row["unseen"] for row in found.evidence if "answer" in row)
    assert only(asked(Model())).parts["unseen"] == 0
    assert only(asked(Model(tokens=False))).parts["unseen"] == 0


# Adaptive ----------------------------------------------------------------------------------------


def erratic(text: str) -> str:
    if text.isprintable():
        return "Paris."
    return ("Paris.", "Rome, perhaps.", "Paris, I think.", "Nobody knows.")[sum(text.encode()) % 4]


def test_adaptive_mode_asks_little_for_stable_answers_and_all_for_erratic_ones() -> None:
    adaptive = Harmonicity(perturbations=30, precision=0.02)
    stable, unstable = Model(), Model(erratic)
    assert only(asked(stable, metrics=adaptive)).parts["perturbations"] == 3
    assert len(stable.asked) == 4
    counts = [a.parts["perturbations"] for a in asked(unstable, 20, adaptive).assessments]
    assert sum(unstable.asked.values()) == sum(counts) + 20
    assert max(counts) == 30
    assert np.median(counts) == 30  # three answers can be alike by chance, and pass for clear


def test_adaptive_mode_stops_where_the_interval_is_narrow_enough() -> None:
    mixed = Model(lambda text: "a b c d" if len(text) % 2 else "a b c d e")
    found = only(asked(mixed, metrics=Harmonicity(perturbations=100, precision=0.1)))
    assert 3 < found.parts["perturbations"] < 100
    assert found.parts["gamma_high"] - found.parts["gamma_low"] <= 0.2


def test_an_answer_known_to_be_unstable_is_asked_no_further() -> None:
    decided = Harmonicity(perturbations=12, decided=True)
    assert only(asked(Model(), metrics=decided)).parts["perturbations"] == 12
    found = asked(Model(erratic), 20, decided).assessments
    early = [a for a in found if a.parts["perturbations"] < 12]
    assert len(early) > 10
    assert {a.verdict for a in early} == {"unstable"}
    full = asked(Model(erratic), 20, Harmonicity(perturbations=12)).assessments
    assert [a.verdict for a in found] == [a.verdict for a in full]
    assert all(a.calls["embedding"] == a.calls["chat"] for a in found)


def test_adaptive_mode_begins_with_the_prompts_of_the_full_one() -> None:
    full, adaptive = Model(), Model()
    asked(full, 3)
    asked(adaptive, 3, Harmonicity(precision=0.02))
    assert adaptive.asked.keys() < full.asked.keys()


# Again -------------------------------------------------------------------------------------------


def test_rescored_with_another_embedder_no_model_is_asked(tmp_path: Path) -> None:
    model = Model(erratic)
    first = asked(model, 3, out=tmp_path / "a", report=False)
    count = model.asked.total()
    second = rescore(
        tmp_path / "a",
        metrics="harmonicity",
        out=tmp_path / "b",
        embedder="embedded",
        model=model,
        cache=None,
        report=False,
    )
    assert model.asked.total() == count
    assert [answers(a) for a in first.assessments] == [answers(a) for a in second.assessments]
    assert [a.score for a in first.assessments] != [a.score for a in second.assessments]
    for a in second.assessments:  # found by the stored answers, and by the other embedder
        vectors = EmbeddedEmbedder().vectors([a.evidence[0]["original"], *answers(a)])
        expected = np.linalg.norm(vectors[0] - vectors[1:].mean(axis=0))
        assert a.parts["gamma_length"] == pytest.approx(expected, abs=1e-5)
    mean = np.mean([a.parts["gamma_length"] for a in second.assessments])
    assert second.summary["harmonicity"]["gamma_length"] == pytest.approx(mean)


@pytest.mark.parametrize("concurrency", [1, 7])
def test_results_do_not_depend_on_order_or_concurrency(concurrency: int) -> None:
    samples = questions(8)
    expected = {a.id: a.to_dict() for a in asked(Model(erratic), samples).assessments}
    found = asked(Model(erratic), samples[::-1], samples_at_once=concurrency).assessments
    assert {a.id: a.to_dict() for a in found} == expected


# Options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("perturbations=0", "perturbations: expected 1 or more"),
        ("original=answer", "unknown value of original .answer.; known: ask, response"),
        ("stable_below=1", "stable_below"),
        ("precision=0", "precision"),
        ("first=1", "first"),
        ("replicates=0", "replicates"),
        ("perturbation=tipo", "did you mean typo"),
        ("length=0", "length: expected 1 or more"),
        ("range=40", "range: applies to the perturbation codes, not to control"),
        ("perturbation=paraphrase,length=1", "length: does not apply to paraphrase"),
        ("prompt=none.jinja", "none.jinja"),
        ("seed=-1", "seed: expected 0 or more"),
        ("max_tokens=0", "max_tokens: expected 1 or more"),
    ],
)
def test_options_that_make_no_sense(options: str, words: str) -> None:
    with pytest.raises((ValueError, OSError), match=words):
        metric_from_text(f"harmonicity:{options}")


def test_without_resamples_and_model_the_input_is_at_fault() -> None:
    for metric in (Harmonicity(), SemanticHarmonicity()):
        with pytest.raises(ValueError, match="resamples: is missing"):
            score([{"question": "Q", "response": "A"}], metrics=metric)
    with pytest.raises(ValueError, match="response: is missing"):
        score([{"question": "Q", "resamples": ["A"]}], metrics="harmonicity")


def test_a_closed_endpoint_fails_the_samples() -> None:
    def closed(text: str) -> str:
        raise CallError("no such model", "closed")

    assert "no such model" in (only(asked(Model(closed))).error or "")


def test_a_plan_counts_each_prompt_once() -> None:
    model = Model()
    planned = plan(
        questions(4),
        metrics=["harmonicity:perturbations=5", "semantic_harmonicity:perturbations=5"],
        embedder=Words(),
        entailer=lambda premise, hypothesis: 1.0,
        model=model,
        cache=None,
    )
    chats = {part.metric: part.calls for part in planned.parts if part.capability == "chat"}
    assert sum(chats.values()) == 4 * 6
    assert not planned.unsure
    assert not model.asked


# The bound --------------------------------------------------------------------------------------


class Named(Words):
    """The same vectors under another name."""

    def __init__(self, name: str) -> None:
        self.name = name


MOVED = {
    "question": "Q",
    "response": "a b c d e f",
    "resamples": ["a b c d e f"] * 4 + ["a b c d e g"],
}
"""Gamma is .11: between the paper's bound and that of the embedded embedder."""


@pytest.mark.parametrize(
    ("embedder", "options", "bound", "whose"),
    [
        ("embedded:9", {}, 0.18, "stable_below, measured for embedded:9"),
        ("openai:text-embedding-ada-002", {}, 0.05, "measured for openai:text-embedding-ada-002"),
        ("openai:text-embedding-ada-002@http://x/v1?rpm=5", {}, 0.05, "measured for openai:text-"),
        ("words", {}, 0.05, "stable_below from the paper; not measured for words"),
        ("embedded:9", {"stable_below": 0.05}, 0.05, "0.05 or more (stable_below)"),
        ("words", {"stable_below": 0.3}, 0.3, "0.3 or more (stable_below)"),
    ],
)
def test_the_bound_is_that_of_the_embedder(
    embedder: str, options: dict[str, Any], bound: float, whose: str, tmp_path: Path
) -> None:
    metric = Harmonicity(**options)
    run = score([MOVED], metrics=metric, embedder=Named(embedder), out=tmp_path / "run")
    (found,) = run.assessments
    assert 0.05 < found.parts["gamma"] < 0.18
    assert found.verdict == ("stable" if bound > 0.1 else "unstable")
    (used,) = run.metrics
    assert whose in used.line
    assert used.title == f"Harmonic robustness (gamma; embedder {embedder}, stable below {bound:g})"
    about = read_json(tmp_path / "run" / "run.json")["about"]["harmonicity"]
    assert (about["stable_below"], about["title"]) == (bound, used.title)
    assert used.title in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert read_json(tmp_path / "run" / "run.json")["metrics"]["harmonicity"] == metric.settings()


def test_scored_anew_with_another_embedder_the_bound_is_that_ones(tmp_path: Path) -> None:
    score([MOVED], metrics=Harmonicity(), embedder=Named("embedded:9"), out=tmp_path / "run")
    again = rescore(tmp_path / "run", embedder=Named("words"), out=tmp_path / "again")
    assert [a.verdict for a in again.assessments] == ["unstable"]


def test_a_meaning_is_stable_below_a_half_whatever_the_embedder() -> None:
    assert (
        SemanticHarmonicity(stable_below=None).stability_bound
        == SemanticHarmonicity().stability_bound
        == 0.5
    )
    run = score([MOVED], metrics=SemanticHarmonicity(), entailer="lexical", cache=None)
    assert run.metrics[0].title == "Harmonic robustness of meaning (entailment)"


def test_the_bound_is_the_measured_one_of_the_shipped_embedder() -> None:
    """New weights have a new name: run ``python -m lab.benchmarks.stability`` for them."""
    told = read_result("stability")
    assert told["embedder"] == EmbeddedEmbedder().name
    assert STABILITY_BOUNDS["embedded"] == math.floor(100 * told["threshold"]) / 100
    page = (ROOT / "docs" / "methods/harmonicity.md").read_text(encoding="utf-8")
    low, high = told["interval"]
    assert f"{told['threshold']} (95 % interval {low} to {high}" in page
    for row in told["sets"]:
        (line,) = re.findall(rf"^\| {row['of_ten']} of 10 \|.*", page, re.MULTILINE)
        assert f"| {row['unstable']} %, {row['unstable_at_paper']} % |" in line
