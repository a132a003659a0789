"""``trustassay rank`` through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import jsonl, run_command
from trustassay import score
from trustassay.compare.ranking import describe_ranking, rank
from trustassay.errors import RunFolderError
from trustassay.metrics.fewl import Fewl


def answers(n: int = 60, *, labels: bool = True) -> list[dict[str, Any]]:
    """Three models: one right, one nearly always, one never; the references are right."""
    rows = []
    letters = np.random.default_rng(0).choice(list("abcdefghijklmnopqrstuvwxyz"), (n, 2, 9))
    for i, (town, river) in enumerate(("".join(a), "".join(b)) for a, b in letters):
        for model, right in (("good", True), ("fair-1", i % 20 != 0), ("poor", False)):
            rows.append(
                {
                    "id": f"{i}-{model}",
                    "question": f"what is thing {i}",
                    "response": town if right else river,
                    "model": model,
                    "references": {"one": town, "two": town},
                    "answers": [town],
                    "incorrect_answers": [river],
                    **({"label": int(right)} if labels else {}),
                }
            )
    return rows


METRIC = "fewl:form=agreement"


@pytest.mark.slow
def test_answers_are_scored_and_models_ranked(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "answers.jsonl", answers())
    arguments = ["--backend", "similarity=novel", "--out", str(tmp_path / "run"), "--json"]
    done = run_command(
        "rank", source, *arguments, "--page", tmp_path / "ranking.html", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["model"] for one in found["models"]] == ["good", "fair-1", "poor"]
    assert found["models"][0]["accuracy"] == 1
    assert found["models"][2]["rank_probabilities"] == [0, 0, 1]
    assert found["agreement"]["kendall"] == 1
    by_truth = {one["truth"]: one for one in found["pairs_ordered_alike"]}
    assert by_truth["label"]["alike"] == by_truth["label"]["pairs"] == 60 + 57 + 3
    assert "60 questions scored for all models, ranked by mean score" in done.stderr
    assert "once in 6 times" in done.stderr
    page = (tmp_path / "ranking.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 3
    assert "fair-1" in page
    again = run_command("rank", tmp_path / "run", "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["models"] == found["models"]


def test_models_that_cannot_be_told_apart_are_named(tmp_path: Path) -> None:
    rows = [row for row in answers(labels=False) if row["model"] != "poor"]
    for i, row in enumerate(rows):  # each is wrong as often as the other
        right = (i // 2) % 2 == i % 2
        row["response"] = (row["answers"] if right else row["incorrect_answers"])[0]
    source = jsonl(tmp_path / "answers.jsonl", rows)
    arguments = ["--metric", "fewl:form=agreement,weights=uniform", "--backend", "similarity=novel"]
    done = run_command("rank", source, *arguments, "--out", tmp_path / "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    assert "do not differ significantly" in words
    assert "right by labels, %" not in words  # there are no labels


def test_questions_that_a_model_lacks_are_left_out(tmp_path: Path) -> None:
    rows = [row for row in answers() if row["id"] != "7-good"]
    score(rows, metrics=Fewl(form="agreement"), similarity="novel", out=tmp_path / "run")
    found = rank(tmp_path / "run")
    assert (found.questions, found.left_out) == (59, 1)


def test_accuracy_is_a_share_of_answers(tmp_path: Path) -> None:
    """Labels of 3 and -1 have the mean 1; one of two answers is right, and the other model's not.

    Above 0 is right: the mean label of a question would count as one right answer.
    """
    rows = [
        {**row, "id": f"{row['id']}-{number}", "label": label}
        for row in answers(4)
        if row["model"] != "poor"
        for number, label in enumerate((3, -1) if row["model"] == "good" else (0, 0))
    ]
    score(rows, metrics=Fewl(form="agreement"), similarity="novel", out=tmp_path / "run")
    found = rank(tmp_path / "run").to_dict()
    assert {one["model"]: one["accuracy"] for one in found["models"]} == {"good": 0.5, "fair-1": 0}
    assert not any(one["distinguished"] for one in found["differences"])  # of 4 questions


def test_labels_of_a_ranking_may_be_words(tmp_path: Path) -> None:
    rows = answers(24)
    for row in rows:
        row["label"] = "👍" if row["label"] else "Falsch"
    score(rows, metrics=Fewl(form="agreement"), similarity="novel", out=tmp_path / "run")
    result = rank(tmp_path / "run").to_dict()
    accuracies = {one["model"]: one["accuracy"] for one in result["models"]}
    assert accuracies == {"good": 1, "fair-1": pytest.approx(22 / 24), "poor": 0}
    assert "label_note" not in result


@pytest.mark.parametrize(
    ("count", "note"),
    [
        (3, "labels label: 3 of 72 cannot be read and are left out, the first at '0-good'"),
        (
            40,
            "Labels not used: label label: it is not clear which labels mean right: 'perhaps' (40)",
        ),
    ],
)
def test_labels_of_a_ranking_that_cannot_be_read_are_named(
    tmp_path: Path, count: int, note: str
) -> None:
    rows = answers(24)
    for row in rows[:count]:
        row["label"] = "perhaps"
    score(rows, metrics=Fewl(form="agreement"), similarity="novel", out=tmp_path / "run")
    ranking = rank(tmp_path / "run")
    assert any(line.startswith(note) for line in describe_ranking(ranking))
    assert ranking.to_dict()["label_note"].startswith(note)


def test_failed_samples_do_not_keep_the_others_from_a_ranking(tmp_path: Path) -> None:
    """And the folder depends on what is read of the input."""
    rows = [{**row, "asked": row["question"]} for row in answers(5)]
    rows[0]["response"] = "beyond"
    source = jsonl(tmp_path / "answers.jsonl", rows)
    (tmp_path / "odd.py").write_text(
        "def alike(a, b):\n    return 9 if a == 'beyond' else a == b\n"
    )
    metric = "fewl:penalty=none,weights=uniform,divergence=kl"
    given = ["--metric", metric, "--backend", "similarity=python:odd:alike"]
    folders = set()
    for arguments in ([], ["--limit", 12], ["--field", "question=asked"]):
        done = run_command("rank", source, *given, *arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        words = " ".join(done.stderr.split())
        assert "1 score could not be computed:" in words
        assert "The models cannot be distinguished: too few questions" in done.stdout
        assert "do not differ significantly" not in done.stdout
        folders.add(words.rpartition("run: ")[2].split()[0])
    assert len(folders) == 3


@pytest.mark.parametrize("models", [0, 1])
def test_one_model_cannot_be_ranked(models: int, tmp_path: Path) -> None:
    rows = [row for row in answers(3) if row["model"] == "good"]
    if not models:
        rows = [{k: v for k, v in row.items() if k != "model"} for row in rows]
    score(rows, metrics=Fewl(form="agreement"), similarity="novel", out=tmp_path / "run")
    with pytest.raises(
        RunFolderError, match=f"expected two or more models .* got {models} models?"
    ):
        rank(tmp_path / "run")
    with pytest.raises(RunFolderError, match="holds no run"):
        rank(tmp_path)
    with pytest.raises(RunFolderError, match="metric of this run"):
        rank(tmp_path / "run", metric="grounding")
