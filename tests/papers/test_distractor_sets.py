import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from trustassay.api import plan, score
from trustassay.core.capabilities import SubstitutesRequest
from trustassay.core.metric import Assessment, Context, Figure, Mean, Metric, Need
from trustassay.errors import BackendError
from trustassay.metrics.consistency.distractors import find_distractors

NAMES = ["Anna", "Bert", "Carla", "Dirk"]
RECORDS: list[dict[str, Any]] = [
    {"id": "a", "question": "who wrote it", "response": "Jane wrote it.", "answers": ["Carla"]},
    {"id": "b", "question": "when was it", "response": "It was in 1983.", "model": "m"},
    {"id": "c", "question": "who sang it", "response": "Zoe"},
    {"id": "d", "question": "?", "response": "..."},
]


class Listed:
    """The same names for all, and a note of what was asked; ``fails`` for some words."""

    name = "listed/1"

    def __init__(self, fails: str = "") -> None:
        self.asked: list[str] = []
        self.fails = fails

    def substitutes(self, requests: Sequence[SubstitutesRequest]) -> list[list[str]]:
        self.asked += [one.words for one in requests]
        if any(one.words == self.fails for one in requests):
            raise BackendError("listed is out of order")
        return [NAMES[: one.k] if one.tag == "NNP" else [] for one in requests]


LISTED = Listed()


@dataclass(frozen=True)
class Counting(Metric):
    """Counts the distractors of answers."""

    name: ClassVar[str] = "counting"
    title: ClassVar[str] = "Counting"
    verdicts: ClassVar[Sequence[str]] = ()
    figures: ClassVar[Mapping[str, Figure]] = {
        "mean": Figure("mean", "share of forty", "", headline=True, statistic=Mean())
    }

    def needs(self) -> Sequence[Need]:
        return [Need("substitutes")]

    async def assess(self, context: Context) -> Assessment:
        sample, models = context.sample, context.models
        found = await find_distractors(
            sample.question,
            sample.response or "",
            models,
            sources=models.names("distractors"),
            seed=context.seed,
        )
        return Assessment(sample.id, self.name, len(found) / 40)


def test_a_run_stores_what_was_looked_up_and_goes_on_from_it(tmp_path: Path) -> None:
    source = Listed()
    folder = tmp_path / "run"
    run = score(RECORDS[:3], metrics=Counting(), distractors={"mine": source}, out=folder)
    assert [one.score for one in run.assessments] == [4 / 40, 1.0, 4 / 40]
    assert json.loads((folder / "run.json").read_text())["backends"] == {
        "distractors": {"mine": "listed/1"}
    }
    asked = len(source.asked)
    assert asked
    (folder / "assessments.jsonl").unlink()
    score(RECORDS[:3], metrics=Counting(), distractors={"mine": source}, out=folder)
    assert len(source.asked) == asked


def test_a_plan_counts_what_would_be_looked_up() -> None:
    source = Listed()
    found = plan(RECORDS[:3], metrics=Counting(), distractors={"mine": source}, cache=None)
    (part,) = found.parts
    assert (part.capability, part.backend) == ("substitution", "listed/1")
    assert part.calls >= 2 and not found.unsure
