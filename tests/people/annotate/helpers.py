"""Answers to rate, and a session that rates them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import jsonl
from trustassay.metrics.judge import read_rubric
from trustassay.people.annotate.items import RatingInputOptions
from trustassay.people.annotate.project import AnnotateOptions, AnnotationProject, open_project
from trustassay.people.annotate.session import AnnotationSession, RatingsFile

MODELS = ("secret-model-a", "secret-model-b")


def answers(questions: int, models: Sequence[str] = MODELS) -> list[dict[str, Any]]:
    """Return an answer of each model to each question; two domains in turn."""
    return [
        {
            "id": f"hidden-{q}-{model}",
            "question": f"Question number {q}?",
            "response": f"Answer {q}{model[-1]}.",
            "model": model,
            "domain": ("web", "code")[q % 2],
            "answers": [["gold", f"also gold {q}"]],
            "documents": [{"title": f"Title {q}", "text": f"Passage {q}."}],
            "label": 0.123456,
        }
        for q in range(questions)
        for model in models
    ]


def project(
    folder: Path, rows: Sequence[dict[str, Any]] | None = None, **options: Any
) -> AnnotationProject:
    """Return a project of these answers; ``pairs`` names two files in place of them."""
    pairs = options.pop("pairs", None)
    rubrics = options.pop("rubrics", [options.pop("rubric", None if pairs else "answer")])
    source = None if pairs else jsonl(folder / "answers.jsonl", rows or answers(4))
    made = AnnotateOptions(
        options.pop("raters", ["anna", "bela"]),
        [read_rubric(name) for name in rubrics if name],
        reading=RatingInputOptions(**options.pop("reading", {})),
        **options,
    )
    return open_project(source, made, pairs)


def two_files(folder: Path, questions: int = 4) -> tuple[Path, Path]:
    """Write the answers of each model to a file, under the same ids."""
    found = []
    for model in MODELS:
        rows = [row | {"id": f"q{n}"} for n, row in enumerate(answers(questions, [model]))]
        found.append(jsonl(folder / f"{model[-1]}.jsonl", rows))
    return found[0], found[1]


@contextmanager
def session(made: AnnotationProject, path: Path) -> Iterator[AnnotationSession]:
    """Open a session, as the command does; the file is free again at the end."""
    file = RatingsFile(path)
    try:
        yield AnnotationSession(made, file, file.begin(made.start))
    finally:
        file.close()
