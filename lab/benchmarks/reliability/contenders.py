"""Who asks: trustassay through its command line, and plain loops."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lab.benchmarks.reliability.counting import ROOT
from lab.benchmarks.reliability.plain import answered

LIMIT_S = 900
"""A command that takes longer hangs, and is ended."""
WORDS = "river mountain copper market winter letter harbour wheel candle bridge".split()


@dataclass(frozen=True)
class Work:
    """Questions to put to an endpoint; every contender has its own folder and its own endpoint.

    words: of the questions, from and to.
    """

    folder: Path
    url: str
    calls: int
    at_once: int = 50
    timeout_s: float = 120.0
    words: tuple[int, int] = (8, 8)

    @property
    def questions(self) -> Path:
        return self.folder / "questions.jsonl"

    @property
    def out(self) -> Path:
        return self.folder / "answers.jsonl"

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def prompt(self) -> Path:
        return self.folder / "prompt.jinja"

    def prepare(self) -> None:
        """Write the questions, and a prompt that holds nothing but the question."""
        self.folder.mkdir(parents=True, exist_ok=True)
        texts = questions(self.calls, self.words)
        rows = (
            {"id": f"q{i}", "question": text, "documents": [f"A document about {i}."]}
            for i, text in enumerate(texts)
        )
        self.questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
        self.prompt.write_text("{{ question }}")

    @property
    def asking(self) -> list[str]:
        """The options of a command that asks the endpoint."""
        options = f"?concurrency={self.at_once}&timeout={self.timeout_s:g}"
        model = f"openai:test@{self.url}{options}"
        return [
            *("--model", model, "--prompt", str(self.prompt)),
            *("--calls-at-once", str(self.at_once), "--cache", str(self.cache)),
        ]


def questions(calls: int, words: tuple[int, int]) -> list[str]:
    """Return different questions of so many words."""
    rng = random.Random(1)
    return [
        " ".join([f"Question {i}:", *rng.choices(WORDS, k=rng.randint(*words)), "?"])
        for i in range(calls)
    ]


class Contender(NamedTuple):
    """A command, and how many of its questions are answered where it left off."""

    name: str
    command: Callable[[Work], list[str]]
    answered: Callable[[Work], int]


def _generate(work: Work) -> list[str]:
    command = [sys.executable, "-m", "trustassay", "generate", str(work.questions)]
    return [*command, "--out", str(work.out), *work.asking]


def _score(work: Work) -> list[str]:
    command = [sys.executable, "-m", "trustassay", "score", str(work.questions)]
    return [*command, "--out", str(work.run), "--entailer", "lexical", *work.asking]


def _plain(work: Work, tries: int) -> list[str]:
    return [
        *(sys.executable, "-m", "lab.benchmarks.reliability.plain", str(work.questions)),
        *(str(work.out), work.url, "--at-once", str(work.at_once)),
        *("--tries", str(tries), "--timeout-s", str(work.timeout_s)),
    ]


def _in_file(work: Work) -> int:
    return len(answered(work.out))


def _scored(work: Work) -> int:
    path = work.run / "assessments.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else ()
    return sum(json.loads(line)["error"] is None for line in lines)


GENERATE = Contender("trustassay generate", _generate, _in_file)
SCORE = Contender("trustassay score", _score, _scored)
PLAIN = Contender("plain loop, 8 tries", lambda work: _plain(work, 8), _in_file)
FOR_EVER = Contender("plain loop, for ever", lambda work: _plain(work, 0), _in_file)


def start(command: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    """Start a command of this checkout; what it says is added to a file in ``folder``."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    with (folder / "said.txt").open("ab") as said:
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": paths},
            stdout=said,
            stderr=said,
        )


def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end of a command, and return its status."""
    try:
        return process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
