"""The scorer in inspect_ai's own evaluations: values, failures, logs that are scored again."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="needs inspect_ai: tox run")

from bridge import NOT_SUPPORTED, PASSAGE, REFUSAL, SUPPORTED, Unlucky
from inspect_ai import Task, score
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.solver import generate
from tutorials import run_section, section

from trustassay.live import open_scorers
from trustassay.live.integrations.inspect_ai import trust_scorer


def said(text: str) -> ModelOutput:
    output = ModelOutput.from_content("mockllm/model", text)
    output.usage = ModelUsage()  # else tokens are counted with a downloaded vocabulary
    return output


def evaluated(samples: list[tuple[str, dict[str, Any]]], *scorers: Any, **options: Any) -> Any:
    """Evaluate replies with what is known of each; the log."""
    replies = {f"{number}?": text for number, (text, _) in enumerate(samples)}
    model = get_model(
        "mockllm/model",
        memoize=False,
        custom_outputs=lambda messages, *_: said(replies[messages[-1].text]),
    )
    dataset = [
        Sample(**({"input": f"{number}?", "id": number + 1} | fields))
        for number, (_, fields) in enumerate(samples)
    ]
    task = Task(dataset=dataset, solver=generate(), scorer=list(scorers))
    [log] = evaluate(task, model=model, display="none", log_dir="logs", **options)
    assert log.status == "success", log.error
    return log


def known(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"context": [PASSAGE]}, **fields}


def scores_of(log: Any, name: str = "trust_scorer") -> list[Any]:
    return [
        next(found for key, found in one.scores.items() if key.endswith(name))
        for one in log.samples
    ]


def test_each_metric_has_a_value_and_a_mean() -> None:
    scorer = trust_scorer(["faithfulness", "reference"], entailer="lexical")
    both = [(SUPPORTED, known(target="1911")), (NOT_SUPPORTED, known(target=["7", "nine"]))]
    log = evaluated(both, scorer)
    assert [one.value for one in scores_of(log)] == [
        {"faithfulness": 1.0, "reference": 1.0},
        {"faithfulness": 0.0, "reference": 1.0},
    ]
    means = {one.name: one.metrics["mean"].value for one in log.results.scores}
    assert means == {"faithfulness": 0.5, "reference": 1.0}
    bad = scores_of(log)[1]
    assert "faithfulness: 1 of 1 sentence not found" in bad.explanation
    assert bad.answer == NOT_SUPPORTED
    assert bad.metadata["faithfulness"]["passed"] is False
    assert bad.metadata["faithfulness"]["verdict"] == "not found"
    assert bad.reason is None


@pytest.mark.parametrize(
    ("reply", "fields", "words"),
    [
        (SUPPORTED, {}, "documents: is missing"),
        (SUPPORTED, {"metadata": {"context": 3}}, "context"),
        ("", known(), "response is blank"),
        (NOT_SUPPORTED, known(), "unlucky"),
    ],
)
def test_a_failure_is_unscored_and_counts_in_no_mean(
    reply: str, fields: dict[str, Any], words: str
) -> None:
    scorer = trust_scorer("faithfulness", entailer=Unlucky())
    log = evaluated([(SUPPORTED, known()), (reply, fields)], scorer)
    good, bad = scores_of(log)
    assert good.value == {"faithfulness": 1.0}
    assert math.isnan(bad.value["faithfulness"])
    assert bad.reason == "scoring_failed"
    assert words in bad.explanation
    [found] = log.results.scores
    assert (found.scored_samples, found.unscored_samples) == (1, 1)
    assert found.metrics["mean"].value == 1.0


def test_an_answer_without_a_score_is_unscored_without_having_failed() -> None:
    log = evaluated([(REFUSAL, known())], trust_scorer("faithfulness", entailer="lexical"))
    [found] = scores_of(log)
    assert math.isnan(found.value["faithfulness"])
    assert (found.reason, found.explanation) == (None, "no score: refuses to answer")


def test_fields_name_where_the_passages_are() -> None:
    scorer = trust_scorer(
        "faithfulness", entailer="lexical", fields={"documents": "metadata.found.here"}
    )
    log = evaluated([(SUPPORTED, {"metadata": {"found": {"here": [PASSAGE]}}})], scorer)
    assert scores_of(log)[0].value == {"faithfulness": 1.0}


def test_messages_as_input_and_a_crowded_metadata_are_read() -> None:
    asked = [ChatMessageSystem(content="Be brief."), ChatMessageUser(content="0?")]
    crowded = {"context": [PASSAGE], "label": "easy", "references": [1], "answer": None, "id": {}}
    scorer = trust_scorer("faithfulness", entailer="lexical")
    log = evaluated([(SUPPORTED, {"input": asked, "metadata": crowded})], scorer)
    assert scores_of(log)[0].value == {"faithfulness": 1.0}


def test_fifty_samples_share_one_scorer_and_epochs_are_reduced() -> None:
    fifty = [(f"The stone bridge was opened in {1900 + number}.", known()) for number in range(50)]
    scorer = trust_scorer("faithfulness", entailer="lexical")
    log = evaluated(fifty, scorer, epochs=2, max_samples=50)
    assert len(scores_of(log)) == 100
    [found] = log.results.scores
    assert (found.scored_samples, found.unscored_samples) == (50, 0)
    assert found.metrics["mean"].value == 0.02  # 1911
    assert len(open_scorers._scorers_by_key) == 1


def test_an_epoch_that_failed_counts_in_no_mean() -> None:
    said_in_turn = iter([said(SUPPORTED), said(NOT_SUPPORTED)])
    model = get_model("mockllm/model", memoize=False, custom_outputs=lambda *_: next(said_in_turn))
    scorer = trust_scorer("faithfulness", entailer=Unlucky())
    task = Task(dataset=[Sample("?", **known())], solver=generate(), scorer=scorer, epochs=2)
    [log] = evaluate(task, model=model, display="none", log_dir="logs")
    assert [math.isnan(one.value["faithfulness"]) for one in scores_of(log)] == [False, True]
    [found] = log.results.scores
    assert found.metrics["mean"].value == 1.0


def test_two_scorers_in_one_task() -> None:
    scorers = [trust_scorer(name, entailer="lexical") for name in ("faithfulness", "grounding")]
    log = evaluated([(SUPPORTED + " [1]", known())], *scorers)
    assert {one.name for one in log.results.scores} == {"faithfulness", "grounding"}


def test_the_log_keeps_names_of_options_and_nothing_of_objects() -> None:
    log = evaluated([(SUPPORTED, known())], trust_scorer("faithfulness", entailer=Unlucky()))
    [kept] = log.eval.scorers
    assert kept.options == {"metrics": "faithfulness", "entailer": "unlucky/1"}
    assert "sk-secret" not in log.model_dump_json()


def test_a_log_is_scored_again_in_python() -> None:
    log = evaluated([(SUPPORTED, known())], trust_scorer("faithfulness", entailer="lexical"))
    again = score(log, trust_scorer("grounding", entailer="lexical"), action="append")
    assert [one.name for one in again.results.scores] == ["faithfulness", "grounding"]


def command(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "inspect_ai", *words, "--display", "plain"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_command_of_the_page_scores_a_log() -> None:
    log = evaluated([(SUPPORTED, known())], trust_scorer("grounding", entailer="lexical"))
    Path(log.location).rename("bridge.eval")
    [line] = re.findall(r"`inspect (score [^`]*)`", section("inspect_ai"))
    command(*shlex.split(line))
    scored = read_eval_log("bridge.eval")
    assert [one.name for one in scored.results.scores] == ["grounding", "faithfulness"]


def test_trio_is_served_as_well() -> None:
    pytest.importorskip("trio")
    program = """
import json
from test_tool_inspect_ai import PASSAGE, SUPPORTED, evaluated, known, scores_of, trust_scorer
log = evaluated([(SUPPORTED, known())] * 3, trust_scorer("faithfulness", entailer="lexical"))
print(json.dumps([one.value for one in scores_of(log)]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={
            **os.environ,
            "INSPECT_ASYNC_BACKEND": "trio",
            "PYTHONPATH": str(Path(__file__).parent),
        },
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [{"faithfulness": 1.0}] * 3


def test_wrong_names_are_told_when_the_scorer_is_made() -> None:
    with pytest.raises(ValueError, match="did you mean faithfulness"):
        trust_scorer("faithfullness")


def test_the_tutorial_prints_what_it_says(tmp_path: Path) -> None:
    printed = run_section("inspect_ai", tmp_path)
    assert len(printed) == 1
    assert [one.actual for one in printed if not one.agrees()] == []
