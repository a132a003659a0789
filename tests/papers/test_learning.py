"""Arms that learn from chosen answers, against the model as it was: scripted models and judges."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.lazily import Lazily
from tests.support import jsonl
from trustassay.calls.client import CallOptions
from trustassay.input.records import InputError
from trustassay.metrics.fewl import Fewl
from trustassay.papers.experiments.answers import RecordSelection
from trustassay.papers.experiments.learning import LearningSetup, run_icl, run_sft
from trustassay.papers.experiments.measuring import FewlSetup
from trustassay.papers.tune import TuneOptions
from trustassay.runs.answering import Answering
from trustassay.runs.intake import RunOptions

torch = Lazily("torch")


class Axes:
    """Embeds a question by the number in it."""

    name = "axes"

    def vectors(self, texts: Sequence[str]) -> Any:
        angles = np.array([float("".join(filter(str.isdigit, text)) or 0) for text in texts]) / 50
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def source(folder: Path, n: int = 24) -> Path:
    """One reference of three lies, to odd questions; the other two say the truth."""
    rows = [
        {
            "id": f"{i}-{text}",
            "question": f"what is thing {i}",
            "response": text,
            "label": int(text == "town"),
            "references": {"liar": "river" if i % 2 else "town", "one": "town", "two": "town"},
        }
        for i in range(n)
        for text in ("river", "town")
    ]
    return jsonl(folder / "answers.jsonl", rows)


def setup(**options: Any) -> FewlSetup:
    metric = Fewl(form="agreement", penalty="none")
    calls = CallOptions(cache=None)
    return FewlSetup(
        embedder=Axes(),
        similarities=("novel",),
        metric=metric,
        options=RunOptions(report=False, calls=calls),
        **options,
    )


def follows(prompt: str) -> str:
    """Answer as the examples do; without examples say little."""
    shown = re.findall(r"^Answer: (\w+)$", prompt, re.MULTILINE)
    return f"it is a {max(set(shown), key=shown.count)}" if shown else "a rock"


def judge(prompt: str) -> str:
    """Prefer a town, dislike a river."""
    found = re.search(r"Reply A =+\n(.*)\n=+ Reply B =+\n(.*)\n=+ end", prompt, re.DOTALL)
    assert found
    worth = [1 if "town" in text else -1 if "river" in text else 0 for text in found.groups()]
    return "A" if worth[0] > worth[1] else "B" if worth[1] > worth[0] else "C"


def test_examples_that_are_true_make_answers_better(tmp_path: Path) -> None:
    asked = LearningSetup(follows, judge, examples=3)
    result = run_icl(
        source(tmp_path), tmp_path / "out", setup(), RecordSelection(), asked
    ).to_dict()
    rows = {row["name"]: row for row in result["rows"]}
    assert rows["FEWL against vanilla"]["win rate, %"]["value"] == 100
    assert rows["labels against vanilla"]["won, %"]["value"] == 100
    assert rows["baseline against vanilla"]["lost, %"]["value"] == 100
    assert rows["FEWL against baseline"]["won, %"]["value"] == 100
    assert rows["FEWL against vanilla"]["questions"]["value"] == 24
    assert rows["FEWL against vanilla"]["tables"] == [6]
    assert "12 questions used as examples; 24 questions asked" in result["notes"]
    assert "the baseline is the similarity to liar alone, without penalty" in result["notes"]
    prompts = (tmp_path / "out" / "FEWL" / "prompts.jsonl").read_text().splitlines()
    for number, line in enumerate(prompts):
        assert f"thing {number}\nAnswer: " not in json.loads(line)["own_prompt"]


def test_the_same_call_again_asks_nobody(tmp_path: Path) -> None:
    def silent(prompt: str) -> str:
        raise AssertionError("asked")

    path = source(tmp_path)
    first = run_icl(
        path,
        tmp_path / "out",
        setup(),
        RecordSelection(),
        LearningSetup(follows, judge, examples=3),
    )
    silent.__qualname__, silent.__module__ = "follows", follows.__module__
    again = LearningSetup(silent, judge, examples=3)
    assert (
        run_icl(path, tmp_path / "out", setup(), RecordSelection(), again).to_dict()
        == first.to_dict()
    )


def test_questions_of_their_own_and_answers_that_fail(tmp_path: Path) -> None:
    def sometimes(prompt: str) -> str:
        if prompt.endswith("thing 100\nAnswer:"):
            raise RuntimeError("out of order")
        return follows(prompt)

    questions = jsonl(
        tmp_path / "asked.jsonl", [{"id": f"n{i}", "question": f"thing {i}"} for i in (100, 101)]
    )
    asked = LearningSetup(sometimes, judge, examples=3, questions=questions)
    result = run_icl(source(tmp_path), tmp_path / "out", setup(), RecordSelection(), asked)
    assert result.rows[0].cells[-1].values == {"value": 1}
    assert set(result.left_out) == {
        f"{arm}, n100" for arm in ("vanilla", "baseline", "FEWL", "labels")
    }


def test_where_both_choose_the_same_there_is_nothing_to_learn(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the same answer for all 24 questions"):
        run_icl(
            source(tmp_path),
            tmp_path / "out",
            setup(single="one"),
            RecordSelection(),
            LearningSetup("x:y", judge),
        )


@pytest.mark.torch
@pytest.mark.slow
def test_a_tiny_model_is_tuned_by_every_arm(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    from tests.tiny_chat import save_llama

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model = save_llama(tmp_path / "llama")
        asked = LearningSetup(
            str(model),
            judge,
            Answering(max_tokens=12),
            tuning=TuneOptions(full=True, steps=60, batch=6, learning_rate=0.01),
        )
        result = run_sft(
            source(tmp_path), tmp_path / "out", setup(), RecordSelection(), asked
        ).to_dict()
    finally:
        torch.set_num_threads(threads)
    rows = {row["name"]: row for row in result["rows"]}
    assert list(rows) == [f"{arm} against vanilla" for arm in ("baseline", "FEWL", "labels")]
    assert rows["FEWL against vanilla"]["won, %"]["value"] == 100
    assert rows["labels against vanilla"]["won, %"]["value"] == 100
    assert rows["baseline against vanilla"]["won, %"]["value"] < 100
    assert "19 questions for training, 5 for testing" in result["notes"]
