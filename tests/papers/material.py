"""Questions with right and wrong answers, references that answer by rule, and a quick embedder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import Result

from tests.support import QUICK, jsonl

SCRIPTED = """
import asyncio
import re
from pathlib import Path

HERE = Path(__file__).parent
TURN = asyncio.Semaphore(1)


def noted(name):
    with (HERE / f"{name}.asked").open("a") as file:
        file.write("x\\n")


def number(prompt):
    return int(re.findall(r"thing (\\d+)", prompt)[-1])


def true(prompt):
    noted("true")
    return f"right {number(prompt)}"


def half(prompt):
    noted("half")
    n = number(prompt)
    return f"right {n}" if n % 2 else f"wrong {n}"


def broken(prompt):
    raise RuntimeError("out of order")


def some(prompt):
    n = number(prompt)
    if n == 3:
        raise RuntimeError("out of order")
    return f"right {n}"


def pairs(prompt):
    noted("pairs")
    n = number(prompt)
    return f"1. Wrong Answer: wrong {n}\\n1. Non-Wrong Answer: right {n}"


def yes_to_three(prompt):
    noted("judge")
    return "Verdict: yes" if "right 3" in prompt else "Verdict: no"


async def slow(prompt):
    # one at a time, so that some are stored while others wait
    async with TURN:
        await asyncio.sleep(0.05)
        noted("slow")
    return f"right {number(prompt)}"


def several(prompt):
    n = number(prompt)
    return f"1. right {n}\\n2. wrong {n}\\n3. wrong {n} indeed"


def first(prompt):
    noted("first")
    return "A"


def mumbling(prompt):
    return "some of them"


def alike(first, second):
    # whole texts, then single words
    if first == second:
        return 1.0
    one, other = set(first.split()), set(second.split())
    return len(one & other) / len(one | other)
"""

Experiment = Callable[..., Result]

SIMILARITY = ["--backend", "similarity=python:scripted:alike"]
EMBEDDER = ["--embedder", "python:quick:embedder"]


def scripted(folder: Path) -> list[str]:
    """Put the modules beside a command's files; return the options that name the backends."""
    (folder / "scripted.py").write_text(SCRIPTED)
    (folder / "quick.py").write_text(QUICK)
    return [*SIMILARITY, *EMBEDDER, "--max-similarity", "1"]


def question(n: int, **others: Any) -> dict[str, Any]:
    return {
        "id": f"q{n}",
        "question": f"what is thing {n}",
        "answers": [[f"right {n}"]],
        "incorrect_answers": [f"wrong {n}", f"odd {n}"],
        **others,
    }


def questions(folder: Path, n: int = 24) -> Path:
    return jsonl(folder / "questions.jsonl", [question(i) for i in range(n)])


def choice_questions(folder: Path, n: int = 24) -> Path:
    rows = [
        {
            "question": f"what is thing {i}",
            "answers": [
                {"text": f"right {i}", "correct": True, "choice": "A"},
                {"text": f"wrong {i}", "correct": False, "choice": "B"},
                {"text": f"odd {i}", "correct": False, "choice": "C"},
                {"text": "None of the above", "correct": False, "choice": "D"},
                {"text": "I don't know", "correct": False, "choice": "E"},
            ],
        }
        for i in range(n)
    ]
    return jsonl(folder / "choices.jsonl", rows)


TRUE = ["--reference", "true=python:scripted:true"]
HALF = ["--reference", "half=python:scripted:half"]


def rows_of(stdout: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads(stdout)["rows"]}
