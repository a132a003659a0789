"""The 300 answers of :mod:`lab.benchmarks.planted`, a third of them with errors, as rows."""

from __future__ import annotations

from typing import Any

from lab.benchmarks.planted import planted

PLANTED_ANSWERS = 300


def read_planted_answers(seed: int) -> list[dict[str, Any]]:
    """Return the answers as they are scored and stored; ``label`` is 1 for those without error."""
    return [
        {
            "measure": "planted",
            "set": answer.source,
            "id": answer.id,
            "cluster": answer.id,
            "label": int(not answer.kinds),
            "kinds": list(answer.kinds),
            "question": answer.record["question"],
            "response": answer.record["response"],
            "documents": answer.record["documents"],
        }
        for answer in planted(PLANTED_ANSWERS, seed)
    ]
