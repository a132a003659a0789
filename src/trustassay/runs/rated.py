"""Ratings joined to the answers of a run, by id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trustassay.data.formats import InputError
from trustassay.data.ratings import Rating, Ratings
from trustassay.runs.folder import RunFolder
from trustassay.show.answers import AnswerRatings, RaterSaid, RatingsTold

__all__ = ["Rated"]


class Rated:
    """The ratings of each answer of a run.

    A rating belongs to the answer with its id; where both name a model, to that model's.

    Args:
        folder: of the run; its samples are read once.
        ratings: by people or anything else.
        source: the name of their file, which is shown.

    Raises:
        InputError: the ratings are choices between two answers.
        RunFolderError: the samples are damaged.
    """

    def __init__(self, folder: RunFolder, ratings: Ratings, source: str) -> None:
        if ratings.pairs:
            raise InputError(
                f"{source}: holds choices between two answers (annotate --pairs); expected ratings "
                "of single answers. `agree` reads choices"
            )
        self._ratings = ratings
        self._by_item: dict[str, list[Rating]] = {}
        for one in ratings.ratings:
            self._by_item.setdefault(one.item, []).append(one)
        answers, rated, used = 0, 0, 0
        raters: set[str] = set()
        unknown = {item: len(own) for item, own in self._by_item.items()}
        for sample in folder.sample_records() if folder.samples_path.exists() else ():
            answers += 1
            own = self._of(sample["id"], sample.get("model"))
            rated += bool(own)
            used += len(own)
            raters.update(one.rater for one in own)
            if own:
                unknown[sample["id"]] -= len(own)
        left = {item: count for item, count in unknown.items() if count > 0}
        numbers = not ratings.categories
        self._told = RatingsTold(source, numbers, len(raters), used, rated, answers, left)

    def told(self) -> RatingsTold:
        """Return what was joined, and what was not."""
        return self._told

    def of(self, sample_id: str, model: str | None) -> AnswerRatings | None:
        """Return the ratings of an answer, ``None`` where it has none."""
        by_rater: dict[str, list[Rating]] = {}
        for one in self._of(sample_id, model):
            by_rater.setdefault(one.rater, []).append(one)
        if not by_rater:
            return None
        return AnswerRatings([self._said(name, own) for name, own in by_rater.items()])

    def mean_of(self, sample: Mapping[str, Any]) -> float | None:
        """Return the mean rating of a stored sample; ``None`` without one, or of words."""
        found = self.of(sample["id"], sample.get("model"))
        return found.mean if found else None

    def _of(self, sample_id: str, model: str | None) -> list[Rating]:
        return [
            one
            for one in self._by_item.get(sample_id, ())
            if not (one.model and model) or one.model == model
        ]

    def _said(self, name: str, own: list[Rating]) -> RaterSaid:
        own = sorted(own, key=lambda one: one.repeat)
        words = self._ratings.categories
        return RaterSaid(
            name,
            [words[int(one.value)] if words else f"{one.value:g}" for one in own],
            () if words else [one.value for one in own],
            [one.note for one in own if one.note],
        )
