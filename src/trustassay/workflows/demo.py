"""The bundled answers of a real model, scored by every method from its recorded replies.

``data/recorded`` holds 60 questions of this project with what two small models replied, to all that
the methods ask of them: ``answers.jsonl`` from what the model knows, ``cited.jsonl`` from passages,
``replies.jsonl.gz``. It is made by ``python -m benchmarks.recording``; a prompt that changes
afterwards has no recorded reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from trustassay.backends.replay import ReplayChat
from trustassay.runs.finished import Run

FOLDER = Path(str(files("trustassay.data") / "recorded"))
PROMPT = FOLDER / "question.jinja"
"""How the model was asked for its answers."""
REPLIES = FOLDER / "replies.jsonl.gz"
MODEL = "Qwen2.5-Coder-1.5B-Instruct"
"""Who answered, and was asked again and as judge."""
OTHER = "Qwen2.5-Coder-0.5B-Instruct"
"""Whose answers are the references of ``fewl``."""
LONGEST = 48
"""Tokens of an answer."""
_CHOICES = "sources=given,checks=5,stop=no"
_NUDGED = f"perturbations=5,prompt={PROMPT},max_tokens={LONGEST},original=response"


class Part(NamedTuple):
    """A file of answers, and what they are scored by."""

    file: str
    metrics: Sequence[str]
    roles: Sequence[str] = ()


PARTS: Mapping[str, Part] = {
    "closed-book": Part(
        "answers.jsonl",
        [
            f"consistency:{_CHOICES}",
            "factcheck",
            f"trustscore:{_CHOICES}",
            f"harmonicity:{_NUDGED}",
            f"semantic_harmonicity:{_NUDGED}",
            "fewl:weights=uniform",
            "judge",
        ],
        ["model", "judge"],
    ),
    "cited": Part("cited.jsonl", ["grounding"]),
}


def score_recorded(out: Path, entailer: str) -> list[Run]:
    """Score both files, each into a folder in ``out``; nothing is asked of a model.

    Raises:
        As :func:`~trustassay.api.score`.
    """
    from trustassay import api

    runs = []
    for name, part in PARTS.items():
        runs.append(
            api.score(
                FOLDER / part.file,
                metrics=part.metrics,
                entailer=entailer,
                out=out / name,
                cache=None,
                progress=True,
                backends=dict.fromkeys(part.roles, Recorded()) if part.roles else {},
            )
        )
    return runs


class Recorded(ReplayChat):
    """The recorded model, under its own name."""

    def __init__(self) -> None:
        super().__init__(str(REPLIES), MODEL)
        self.name = f"{MODEL}, recorded"
