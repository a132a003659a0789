"""The example data of the package: a small corpus, and questions about it."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["CORPUS", "example_questions"]

CORPUS = Path(__file__).with_name("corpus.jsonl")
"""Twenty-eight passages with titles, written for this package."""


def example_questions() -> tuple[list[str], list[str]]:
    """Return ten questions and their answers; the last four cannot be answered from the corpus."""
    path = CORPUS.with_name("questions.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row["question"] for row in rows], [row["answer"] for row in rows]
