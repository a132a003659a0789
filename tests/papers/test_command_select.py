"""``trustassay papers select`` through the command line, from answers or a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.support import jsonl, lines, quick_embedder, run_command
from trustassay import score
from trustassay.core.metric import Assessment, Context, Metric, Need
from trustassay.errors import RunFolderError, UnknownNameError
from trustassay.metrics.fewl import Fewl
from trustassay.papers.select import IclOptions, read_answers, select_icl, select_sft


class Axes:
    """Embeds a question by the number in it: 7 is nearest to 6 and 8."""

    name = "axes"

    def vectors(self, texts: Sequence[str]) -> Any:
        angles = np.array([float("".join(filter(str.isdigit, text)) or 0) for text in texts]) / 50
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def answers(n: int = 12, **others: Any) -> list[dict[str, Any]]:
    """Three models. Two references of three say the truth; the one named first never does.

    Even questions: the liar agrees with nobody. Odd ones: with the poor model.
    """
    rows = []
    for i in range(n):
        lie = "zzz" if i % 2 == 0 else "river"
        for model, text in (("good", "town"), ("poor", "river"), ("mute", "  ")):
            rows.append(
                {
                    "id": f"{i}-{model}",
                    "question": f"what is thing {i}",
                    "response": text,
                    "model": model,
                    "references": {"liar": lie, "one": "town", "two": "town"},
                    "label": int(model == "good"),
                    **others,
                }
            )
    return rows


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("select") / "run"
    metric = Fewl(form="agreement", weights="uniform", penalty="none")
    score(answers(), metrics=metric, similarity="novel", out=path)
    return path


def test_examples_of_a_run(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "prompts.jsonl"
    found = select_icl(run, out, Axes(), options=IclOptions(examples=2))
    # Liar, one and two stand behind every answer; the first of them is the baseline.
    assert found.answers.reference == "liar"
    assert (found.prompts, found.examples, found.answers.blank) == (12, 6, 12)
    rows = lines(out)
    assert [row["question"] for row in rows] == [f"what is thing {i}" for i in range(12)]
    shown = [[one["question"].split()[-1] for one in row["examples"]] for row in rows]
    assert shown[7] == ["5", "9"] or shown[7] == ["9", "5"]
    for number, row in enumerate(rows):
        assert str(number) not in shown[number]
        assert all(int(one) % 2 for one in shown[number])  # only there do the two ways differ
        assert all(one["response"] == "town" for one in row["examples"])
        assert row["own_prompt"].count("Question:") == 3
        assert "response" not in row and "model" not in row and "label" not in row


def test_all_questions_and_another_baseline(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "prompts.jsonl"
    assert select_icl(run, out, Axes(), options=IclOptions(baseline=None)).examples == 12
    with pytest.raises(ValueError, match="choose the same answer for all 12 questions"):
        select_icl(run, out, Axes(), options=IclOptions(baseline="single:one"))
    by_label = IclOptions(by="label", baseline="single:liar")
    assert select_icl(run, out, Axes(), options=by_label).examples == 6


def test_questions_of_their_own(run: Path, tmp_path: Path) -> None:
    asked = [
        {"id": "a", "question": "What is  THING 7", "response": "old", "topic": "t"},
        {"id": "b", "question": "what is 7 then"},
        {"id": "c", "question": "what is thing 7"},
    ]
    out = tmp_path / "prompts.jsonl"
    source = jsonl(tmp_path / "asked.jsonl", asked)
    found = select_icl(run, out, Axes(), source, IclOptions(examples=1))
    first, second = lines(out)
    assert found.repeated == 1
    assert (first["id"], first["topic"], "response" in first) == ("a", "t", False)
    assert first["examples"][0]["question"] != "what is thing 7"
    assert second["examples"][0]["question"] == "what is thing 7"


def test_targets_are_split_by_question(run: Path, tmp_path: Path) -> None:
    found = select_sft(run, tmp_path / "chosen", test_share=0.25, seed=3)
    assert (found.train, found.test) == (9, 3)
    train, test = (lines(tmp_path / "chosen" / f"{name}.jsonl") for name in ("train", "test"))
    assert set(train[0]) == {"messages"}
    assert all(row["messages"][1] == {"role": "assistant", "content": "town"} for row in train)
    asked = lines(tmp_path / "chosen" / "test_questions.jsonl")
    assert [row["own_prompt"] for row in asked] == [row["messages"][0]["content"] for row in test]
    assert "response" not in asked[0] and "label" not in asked[0]
    others = [{row["messages"][0]["content"] for row in part} for part in (train, test)]
    assert len(others[0]) == 9 and not others[0] & others[1]
    by_liar = select_sft(run, tmp_path / "liar", by="single", test_share=0)
    assert by_liar.ties == 6  # even questions: it agrees with neither
    texts = [row["messages"][1]["content"] for row in lines(tmp_path / "liar" / "train.jsonl")]
    assert texts == ["town", "river"] * 6


def test_a_lower_score_may_be_the_better_one(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Length(Metric):
        name: ClassVar[str] = "length"
        title: ClassVar[str] = "Length"
        lower_is_better: ClassVar[bool] = True
        score_range: ClassVar[tuple[float, float]] = (0.0, 100.0)

        def needs(self) -> Sequence[Need]:
            return ()

        async def assess(self, context: Context) -> Assessment:
            text = context.sample.response or ""
            parts: Mapping[str, float] = {"letters": len(text)}
            value = None if text == "none" else float(len(text))
            return Assessment(context.sample.id, self.name, value, parts=parts)

    rows = [
        {"id": f"{i}", "question": f"q{i // 2}", "response": text}
        for i, text in enumerate(["long one", "short", "a", "none", "bb", "ccc"])
    ]
    score(rows, metrics=Length(), out=tmp_path / "run")
    found = read_answers(tmp_path / "run", ["score"])
    assert [one.text for one in found.questions] == ["q0", "q2"]
    assert (found.missing_values["score"], found.too_few_answers) == (1, 1)
    select_sft(tmp_path / "run", tmp_path / "chosen", test_share=0)
    chosen = [row["messages"][1]["content"] for row in lines(tmp_path / "chosen" / "train.jsonl")]
    assert chosen == ["short", "bb"]
    with pytest.raises(UnknownNameError, match="uses no references"):
        read_answers(tmp_path / "run", ["score", "single"])


@pytest.mark.parametrize(
    ("ways", "words"),
    [
        (["score", "no_penalti"], "did you mean no_penalty"),
        (["single:lair"], "did you mean liar"),
        (["zzz"], r"known: .*, label, [^l]"),
    ],
)
def test_a_way_that_does_not_exist(run: Path, ways: list[str], words: str) -> None:
    with pytest.raises(UnknownNameError, match=words):
        read_answers(run, ways)


def test_labels_that_are_words_are_numbers(run: Path, tmp_path: Path) -> None:
    words = [{**row, "label": "👍" if row["label"] else "falsch"} for row in answers()]
    metric = Fewl(form="agreement", weights="uniform", penalty="none")
    score(words, metrics=metric, similarity="novel", out=tmp_path / "words")
    numbers, worded = (
        [candidate.values for question in found.questions for candidate in question.candidates]
        for found in (read_answers(path, ["label"]) for path in (run, tmp_path / "words"))
    )
    assert numbers == worded
    assert {"label": 1.0} in worded


def test_one_answer_a_question_leaves_nothing_to_choose(tmp_path: Path) -> None:
    rows = [row for row in answers() if row["model"] == "good"]
    for row in rows:
        del row["label"]
    metric = Fewl(form="agreement", penalty="none")
    score(rows, metrics=metric, similarity="novel", out=tmp_path / "run")
    with pytest.raises(RunFolderError, match="12 with fewer than two answers left"):
        select_sft(tmp_path / "run", tmp_path / "chosen")
    with pytest.raises(UnknownNameError, match="no answer has a label"):
        select_sft(tmp_path / "run", tmp_path / "chosen", by="label")
    assert not (tmp_path / "chosen").exists()


@pytest.mark.slow
def test_from_answers_to_prompts_that_generate_sends(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "answers.jsonl", answers())
    embedder = quick_embedder(tmp_path)
    metric = ["--metric", "fewl:form=agreement,penalty=none", "--backend", "similarity=novel"]
    arguments: list[str | Path] = [source, *metric, *embedder, "--run", "run", "--json"]
    done = run_command("papers", "select", "icl", *arguments, "--out", "p.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["prompts"], found["examples"], found["reference"]) == (12, 6, "liar")
    assert "6 of 12 questions used as examples" in " ".join(done.stderr.split())
    assert "12 blank answers" in done.stderr
    (tmp_path / "echo.py").write_text("def echo(prompt):\n    return str(prompt.count('town'))\n")
    done = run_command(
        "generate", "p.jsonl", "--model", "python:echo:echo", "--out", "a.jsonl", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert {row["response"] for row in lines(tmp_path / "a.jsonl")} == {"5"}
    done = run_command("papers", "select", "sft", "run", "--out", "chosen", cwd=tmp_path)
    assert "10 questions for training and 2 for testing" in " ".join(done.stderr.split())
    done = run_command(
        "papers", "select", "sft", "run", "--backend", "judge=x", "--out", "c", cwd=tmp_path
    )
    assert done.returncode == 2
    assert "--judge has no effect" in " ".join(done.stderr.split())


def test_one_answer_a_question_is_refused_before_it_is_scored(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "one.jsonl", [row for row in answers() if row["model"] == "good"])
    done = run_command("papers", "select", "sft", source, "--out", "chosen", cwd=tmp_path)
    assert done.returncode == 2
    assert "no question has two answers to choose from (12 questions" in " ".join(
        done.stderr.split()
    )
    assert {path.name for path in tmp_path.iterdir()} == {"one.jsonl"}


@pytest.mark.parametrize("option", [["--limit", "2"], ["--skip-bad"], ["--run", "other"]])
def test_a_run_is_not_scored_again(run: Path, tmp_path: Path, option: list[str]) -> None:
    done = run_command("papers", "select", "sft", run, "--out", "chosen", *option, cwd=tmp_path)
    assert done.returncode == 2
    assert f"is a scored run; {option[0]} has no effect" in " ".join(done.stderr.split())
