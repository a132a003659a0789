"""``trustassay papers dataset mixedqa``, from published files to a score."""

# ruff: noqa: F401 - fixtures are imported, and arguments bear their names

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, Said
from tests.cli.serving import one_server, server, uri
from tests.llm_server import LlmServer
from tests.support import command, jsonl, lines

SOURCES = ("NaturalQuestions", "WebQuestions", "TriviaQA", "HotpotQA", "PopQA")

MODELS = '''
"""Two scripted models; what they say follows from the number in the question."""
import re
import threading
import time

ONE = threading.Lock()

def number(prompt):
    return int(re.findall(r"\\d+", prompt)[-1])

def sound(prompt):
    with ONE:
        time.sleep(SLEEP)
        with open("asked.txt", "a") as file:
            file.write(f"{number(prompt)}\\n")
    return f"It is thing {number(prompt)}."

def odd(prompt):
    n = number(prompt)
    said = {0: " ", 1: "thing thing thing thing", 2: "I am not sure."}
    return said.get(n % 6, f"Thing {n}, I think.")

def failing(prompt):
    raise ValueError("no such thing")
'''


def five(folder: Path, n: int = 20) -> list[str]:
    """Write five sets of ``n`` questions, each in its best known layout; return the options."""

    def q(source: int, i: int) -> str:
        return f"Which thing is number {100 * source + i}?"

    jsonl(
        folder / "NQ-open.dev.jsonl",
        [{"question": q(1, i), "answer": [f"thing {i}", "it"]} for i in range(n)],
    )
    (folder / "webquestions.examples.test.json").write_text(
        json.dumps(
            [
                {"utterance": q(2, i), "targetValue": f'(list (description "thing {i}"))'}
                for i in range(n)
            ]
        )
    )
    trivia = [
        {
            "Question": q(3, i),
            "QuestionId": f"t{i}",
            "Answer": {"Value": f"thing {i}", "Aliases": []},
        }
        for i in range(n)
    ]
    (folder / "unfiltered-web-dev.json").write_text(json.dumps({"Data": trivia}))
    bare = [{"Question": "Which was held back?", "QuestionId": "bare"}]
    (folder / "unfiltered-web-test.json").write_text(json.dumps({"Data": bare}))
    hotpot = [{"_id": f"h{i}", "question": q(4, i), "answer": "it"} for i in range(n)]
    hotpot += [{"_id": "c", "question": "Who is older, Al or Bo?", "answer": "Al"}]
    hotpot += [{"_id": "y", "question": "Is Al older?", "answer": "yes"}]
    (folder / "hotpot_dev_distractor_v1.json").write_text(json.dumps(hotpot))
    rows = [f'{i}\t{q(5, i)}\t7\t8\t"[""thing""]"' for i in range(n)]
    header = "id\tquestion\ts_pop\to_pop\tpossible_answers"
    (folder / "popQA.tsv").write_text("\n".join([header, *rows]) + "\n")
    return [
        *("--nq", "NQ-open.dev.jsonl", "--webq", "webquestions.examples.test.json"),
        *("--triviaqa", "unfiltered-web-dev.json", "--triviaqa", "unfiltered-web-test.json"),
        *("--hotpotqa", "hotpot_dev_distractor_v1.json", "--popqa", "popQA.tsv"),
    ]


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Write the scripted models and return the options that name two of them."""
    name = f"scripted_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(f"SLEEP = 0\n{MODELS}")
    monkeypatch.syspath_prepend(tmp_path)
    return ["--model", f"python:{name}:sound", "--model", f"python:{name}:odd"]


def mixed(cli: Cli, *arguments: str | Path) -> Said:
    return cli("papers", "dataset", "mixedqa", *arguments)


def outputs(folder: Path) -> list[bytes]:
    return [
        (folder / name).read_bytes() for name in ("samples.jsonl", "dropped.jsonl", "report.json")
    ]


def test_five_sets_two_models_and_a_score(cli: Cli, tmp_path: Path, models: list[str]) -> None:
    said = mixed(cli, *five(tmp_path), *models, "--out", "mixed", "--per-source", "4")
    assert said.status == 0, said.err
    assert "40 samples in mixed/samples.jsonl" in said.err
    rows = lines(tmp_path / "mixed" / "samples.jsonl")
    assert Counter(row["source"] for row in rows) == dict.fromkeys(SOURCES, 8)
    assert [row["id"] for row in rows[:2]] == [f"{rows[0]['question_id']}#{n}" for n in (1, 2)]
    assert [row["model"].rpartition(":")[2] for row in rows[:2]] == ["sound", "odd"]
    for row in rows:
        number = int("".join(filter(str.isdigit, row["question"])))
        assert number % 6 not in (0, 1, 2)
        expected = f"It is thing {number}." if "sound" in row["model"] else f"Thing {number}, I"
        assert row["response"].startswith(expected)
    assert {row["split"] for row in rows if row["source"] in ("WebQuestions", "PopQA")} == {"test"}
    assert {(row["s_pop"], row["o_pop"]) for row in rows if row["source"] == "PopQA"} == {
        ("7", "8")
    }

    report = json.loads((tmp_path / "mixed" / "report.json").read_bytes())
    dropped = lines(tmp_path / "mixed" / "dropped.jsonl")
    assert report["sources"]["HotpotQA"]["dropped"] == {"comparison": 1, "yes-no": 1}
    assert report["sources"]["TriviaQA"]["dropped"] == {"no-gold": 1}
    assert report["sources"]["TriviaQA"]["questions"] == 21
    for source, found in report["sources"].items():
        listed = [row for row in dropped if row["source"] == source and "model" in row]
        odd = next(name for name in report["models"] if name.endswith(":odd"))
        assert found["asked"] - found["kept"] == len(listed)
        counted = {name: n for name, n in found["replies_dropped"][odd].items() if n}
        assert counted == Counter(row["filter"] for row in listed)
        assert {row["model"] for row in listed} <= {odd}
    assert {row["filter"] for row in dropped} == {
        *("no-gold", "comparison", "yes-no", "blank", "repeats-words", "not-sure"),
    }
    asked = (tmp_path / "asked.txt").read_text().split()
    assert len(asked) == sum(found["asked"] for found in report["sources"].values())

    said = cli("score", "mixed/samples.jsonl", "--metric", "grounding", "--out", "run")
    assert "documents: is missing" in said.err  # a closed-book set, but read as samples


def test_the_same_seed_gives_the_same_set_and_another_one_another(
    cli: Cli, tmp_path: Path, models: list[str]
) -> None:
    arguments = [*five(tmp_path), *models, "--per-source", "4"]
    for out, seed in (("a", "0"), ("b", "0"), ("c", "1")):
        assert mixed(cli, *arguments, "--out", out, "--seed", seed).status == 0
    assert outputs(tmp_path / "a") == outputs(tmp_path / "b")
    questions = [
        {row["question_id"] for row in lines(tmp_path / out / "samples.jsonl")} for out in "ac"
    ]
    assert questions[0] != questions[1]
    asked = (tmp_path / "asked.txt").read_text()
    assert mixed(cli, *arguments, "--out", "a").status == 0  # finished: nothing is asked again
    assert (tmp_path / "asked.txt").read_text() == asked
    said = mixed(cli, *arguments, "--out", "a", "--seed", "1")
    assert said.status == 2
    assert "holds another session; choose another folder, or use the same settings" in said.err
    assert "Different: seed was 0, now 1" in said.err


def test_answers_from_files_alone_or_beside_a_model(
    cli: Cli, tmp_path: Path, models: list[str]
) -> None:
    files = five(tmp_path)[:2]
    given = [
        {"question": f"which thing is number {100 + i}", "response": text, "model": name}
        for i in range(8)
        for name, text in (("old", f"Number {i}."), ("other", "Who knows."))
    ]
    jsonl(tmp_path / "answers.jsonl", given)
    said = mixed(cli, *files, "--answers", "old=answers.jsonl", "--out", "a", "--per-source", "8")
    assert said.status == 0, said.err
    rows = lines(tmp_path / "a" / "samples.jsonl")
    assert {row["response"] for row in rows} == {f"Number {i}." for i in range(8)}
    assert not (tmp_path / "asked.txt").exists()

    arguments = [*files, *models[:2], "--answers", "old=answers.jsonl", "--out", "b"]
    said = mixed(cli, *arguments, "--per-source", "9")
    assert said.status == 1
    assert "fewer than 9 questions answered by all models: NaturalQuestions" in said.err
    assert len(lines(tmp_path / "b" / "samples.jsonl")) == 16
    assert len((tmp_path / "asked.txt").read_text().split()) == 8  # none without a recorded answer
    report = json.loads((tmp_path / "b" / "report.json").read_bytes())
    assert report["sources"]["NaturalQuestions"]["replies_dropped"]["old"]["no-reply"] == 12


def test_what_a_dry_run_says(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
    models: list[str],
) -> None:
    arguments = [*five(tmp_path), "--model", uri(server), *models[:2], "--per-source", "4"]
    said = mixed(cli, *arguments, "--out", "mixed", "--dry-run")
    assert said.status == 0
    assert said.err.count("answering") >= 2
    assert "20 samples" in said.err
    assert "each dropped question is replaced by another one; 80 are available" in said.err
    assert server.stats()["received"] == 0
    assert not (tmp_path / "mixed").exists()
    assert mixed(cli, *arguments, "--out", "mixed").status == 0
    assert server.stats()["received"] == 20
    said = mixed(cli, *arguments, "--out", "mixed", "--dry-run")
    assert "everything is cached" in said.err


def test_a_budget_stops_it_and_a_larger_one_goes_on(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    arguments = [*five(tmp_path), "--model", uri(server, concurrency=1), "--per-source", "4"]
    said = mixed(cli, *arguments, "--out", "mixed", "--budget", "2000")
    assert said.status == 1
    assert "so nothing was written; run the command again" in said.err
    assert "budget" in said.err
    assert not (tmp_path / "mixed" / "samples.jsonl").exists()
    before = server.stats()["received"]
    assert 0 < before < 20
    assert mixed(cli, *arguments, "--out", "mixed", "--budget", "900000").status == 0
    assert server.stats()["received"] == 20
    assert len(lines(tmp_path / "mixed" / "samples.jsonl")) == 20


def test_an_endpoint_that_dies_loses_nothing_and_drops_no_question(
    cli: Cli, tmp_path: Path
) -> None:
    with LlmServer(die_after=7) as mortal:
        model = uri(mortal, patience=0.3, concurrency=2)
        arguments = [*five(tmp_path), "--model", model, "--per-source", "4", "--out", "mixed"]
        said = mixed(cli, *arguments)
        assert said.status == 1
        assert "failed: 13 calls, so nothing was written" in said.err
        mortal.revive()
        mortal.reset()
        assert mixed(cli, *arguments).status == 0
        assert mortal.stats()["received"] == 13
    report = json.loads((tmp_path / "mixed" / "report.json").read_bytes())
    assert sum(found["asked"] for found in report["sources"].values()) == 20


def test_an_endpoint_that_refuses_a_question_for_good_does_not_answer_it(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    server.change(refuse="messages")
    arguments = [*five(tmp_path)[:2], "--model", uri(server), "--per-source", "2"]
    said = mixed(cli, *arguments, "--out", "mixed")
    report = json.loads((tmp_path / "mixed" / "report.json").read_bytes())
    (replies,) = report["sources"]["NaturalQuestions"]["replies_dropped"].values()
    assert (said.status, replies["no-reply"]) == (1, 20)


def test_a_model_that_fails_here_is_told_and_nothing_is_written(
    cli: Cli, tmp_path: Path, models: list[str]
) -> None:
    failing = models[1].replace(":sound", ":failing")
    said = mixed(cli, *five(tmp_path), "--model", failing, "--out", "mixed", "--per-source", "9")
    assert said.status == 1
    assert "ValueError: no such thing" in said.err
    assert "... and 25 more" in said.err
    assert not (tmp_path / "mixed" / "samples.jsonl").exists()


@pytest.mark.parametrize("kind", ["function", "endpoint"])
@pytest.mark.slow
def test_killed_at_work_and_started_again(tmp_path: Path, kind: str) -> None:
    files = five(tmp_path)
    (tmp_path / "scripted.py").write_text(f"SLEEP = 0.02\n{MODELS}")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "TRUSTASSAY_CACHE": "off"}
    with LlmServer(latency_ms=10) as one:
        model = "python:scripted:sound" if kind == "function" else uri(one, concurrency=2)
        options = ["--model", model, "--model", "python:scripted:odd"]
        options += ["--per-source", "7", "--out"]
        asking = command("papers", "dataset", "mixedqa", *files, *options)

        def asked() -> int:
            if kind == "endpoint":
                return int(one.stats()["answered"])
            file = tmp_path / "asked.txt"
            return file.read_text().count("\n") if file.exists() else 0

        with subprocess.Popen(
            [*asking, "mixed"], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL
        ) as process:
            while asked() < 12:
                assert process.poll() is None
                time.sleep(0.002)
            process.kill()
        assert not (tmp_path / "mixed" / "samples.jsonl").exists()
        subprocess.run([*asking, "mixed"], cwd=tmp_path, env=environment, check=True)
        total = asked()
        subprocess.run([*asking, "whole"], cwd=tmp_path, env=environment, check=True)
        again = total - (asked() - total)  # asked twice, since they were under way at the kill
    assert 0 <= again <= 4
    assert outputs(tmp_path / "mixed") == outputs(tmp_path / "whole")
    assert len(lines(tmp_path / "mixed" / "samples.jsonl")) == 70


def test_bad_lines_are_named_and_nothing_is_asked(
    cli: Cli, tmp_path: Path, models: list[str]
) -> None:
    files = five(tmp_path)
    with (tmp_path / "NQ-open.dev.jsonl").open("a") as file:
        file.write('{"question": "Who?"}\n{"question": "Who?", "answer": "Al"}\nnot JSON\n')
    with (tmp_path / "popQA.tsv").open("a") as file:
        file.write('0\tWho else?\t7\t8\t"[""Al""]"\n')
    arguments = [*files, *models, "--out", "mixed", "--per-source", "4"]
    said = mixed(cli, *arguments)
    assert said.status == 2
    assert "NQ-open.dev.jsonl:21: record: has the fields question; NaturalQuestions" in said.err
    assert 'NQ-open.dev.jsonl:22: answer: expected a list of texts, got "Al"' in said.err
    assert "NQ-open.dev.jsonl:23: column 1: is not JSON" in said.err
    assert "popQA.tsv:22: id: 'popqa-test-0' is already used by another question" in said.err
    assert "4 faulty records; nothing was started" in said.err
    assert not (tmp_path / "mixed").exists()
    assert not (tmp_path / "asked.txt").exists()
    assert mixed(cli, *arguments, "--skip-bad").status == 0
    report = json.loads((tmp_path / "mixed" / "report.json").read_bytes())
    assert [(one["path"], one["faulty"]) for one in report["files"] if one["faulty"]] == [
        ("NQ-open.dev.jsonl", 3),
        ("popQA.tsv", 1),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give at least one file of questions"),
        (
            ["--nq", "NQ-open.dev.jsonl"],
            "no model answers; give --model URI or --answers NAME=FILE",
        ),
        (["--nq", "mine.jsonl"], "the name does not say which split it is; write test=mine.jsonl"),
        (["--nq", "NQ-open.train.jsonl"], "is a training split"),
        (["--nq", "dev=none.jsonl"], "none.jsonl: no such file"),
        (["--popqa", "NQ-open.dev.jsonl"], "PopQA has question and possible_answers"),
        (["--answers", "a.jsonl"], "--answers: expected NAME=FILE, got 'a.jsonl'"),
        (["--nq", "NQ-open.dev.jsonl", "--answers", "x=a.jsonl"], "no record of the model x"),
        (
            ["--nq", "NQ-open.dev.jsonl", "--answers", "al=a.jsonl", "--answers", "al=a.jsonl"],
            "al is named twice",
        ),
        (["--nq", "NQ-open.dev.jsonl", "--answers", "bo=a.jsonl"], "a.jsonl:3: question: bo has"),
        (["--nq", "NQ-open.dev.jsonl", "--model", "openia:x"], "did you mean openai"),
    ],
)
def test_what_a_user_gets_wrong(
    cli: Cli, tmp_path: Path, models: list[str], arguments: list[str], words: str
) -> None:
    five(tmp_path)
    rows: list[dict[str, Any]] = [
        {"question": "Who?", "response": "Al", "model": name} for name in ("al", "bo", "bo")
    ]
    jsonl(tmp_path / "a.jsonl", rows)
    if "--popqa" in arguments:
        arguments = [*arguments, *models]
    said = mixed(cli, *arguments, "--out", "mixed")
    assert said.status == 2
    assert words in said.err
    assert not (tmp_path / "mixed").exists()


def test_the_command_without_a_name_is_the_one_for_grounded_sets(cli: Cli) -> None:
    for start in (["q.jsonl"], ["--out", "x", "q.jsonl"], ["trust-eval", "q.jsonl"]):
        said = cli("papers", "dataset", *start, "--out", "x")
        assert "give either --corpus or --retriever" in said.err
    assert "mixedqa" in cli("papers", "dataset", "--help").out
    assert "--corpus" in cli("papers", "dataset", "trust-eval", "-h").out
