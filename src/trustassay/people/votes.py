"""Votes of a run's judges as ratings, and joined with the ratings of people."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trustassay.core.evidence import EvidenceRows
from trustassay.core.registry import metric_from_settings
from trustassay.errors import RunFolderError, UsageError
from trustassay.input.ratings import Rating, Ratings
from trustassay.metrics.judge import Judge
from trustassay.metrics.judge.options import RubricError
from trustassay.metrics.judge.votes import VoteRow
from trustassay.runs.folder import RunFolder

JUDGE_METRIC = "judge"


def read_votes(path: Path) -> Ratings | None:
    """Read the votes of the judges of a run as ratings; ``None`` where it holds none.

    A judge is a rater; a later vote on the same answer is a repeat, whichever text came first in
    it. Levels that are words are categories in the order of their values.

    Raises:
        RunFolderError: the folder is not a run's, or the run's rubric cannot be read any more.
    """
    folder = RunFolder(path)
    run = folder.read_run()
    if run is None:
        raise RunFolderError(f"{path}: holds no run")
    if JUDGE_METRIC not in run["metrics"]:
        return None
    try:
        metric = metric_from_settings(JUDGE_METRIC, run["metrics"][JUDGE_METRIC])
    except (RubricError, OSError) as error:
        raise RunFolderError(f"{path}: the rubric of its judges cannot be read: {error}") from None
    # An entailer as a judge gives scores, no votes for levels.
    if not isinstance(metric, Judge) or metric.by != "model":
        return None
    scale = metric.scale
    # A rubric lists its levels in any order.
    upwards = sorted(scale.values, key=scale.values.__getitem__)
    places = {
        label: float(label if scale.numeric else place) for place, label in enumerate(upwards)
    }
    models = {record["id"]: str(record.get("model") or "") for record in folder.sample_records()}
    result: list[Rating] = []
    for assessment in folder.assessments(JUDGE_METRIC):
        votes_by_judge: Counter[str] = Counter()
        for vote in EvidenceRows(assessment.evidence, VoteRow).select(VoteRow):
            # The vote could not be read.
            if vote.level is None:
                continue
            # The rubric was edited after the run, so the level has no value any more.
            if vote.level not in places:
                raise RunFolderError(
                    f"{path}: {assessment.id!r} holds a vote for {vote.level[:40]!r}, which is not "
                    f"a level of the rubric {scale.name}; restore the rubric that the run used"
                )
            vote_fields = (
                assessment.id,
                vote.judge,
                places[vote.level],
                votes_by_judge[vote.judge],
            )
            result.append(Rating(*vote_fields, models.get(assessment.id, "")))
            votes_by_judge[vote.judge] += 1
    if not result:
        return None
    categories = () if scale.numeric else tuple(upwards)
    return Ratings(result, categories, scale.ordinal, tuple(sorted(places.values())))


def join_ratings(ratings: Ratings, votes: Ratings) -> Ratings:
    """Join the ratings of people with the votes of judges, matching answers by id.

    A rating or vote without a model belongs to the answer with its id, whichever model wrote it.

    Raises:
        UsageError: a rater has the name of a judge, or one side has words and the other numbers or
            other words.
    """
    raters = {rating.rater for rating in ratings.ratings}
    # Their ratings would become repeats of one rater.
    if both := sorted(raters & {rating.rater for rating in votes.ratings}):
        raise UsageError(
            f"a rater and a judge have the same name {both[0][:60]!r}; rename the rater"
        )
    if bool(ratings.categories) != bool(votes.categories):
        kinds = ("words", "numbers") if ratings.categories else ("numbers", "words")
        raise UsageError(f"the ratings are {kinds[0]}, but the judges' levels are {kinds[1]}")
    categories = _merge_categories(ratings, votes) if ratings.categories else ()
    models: dict[str, set[str]] = {}
    for rating in ratings.ratings:
        models.setdefault(rating.item, set()).add(rating.model)
    result = [
        replace(rating, value=_move_to_categories(rating.value, ratings, categories))
        for rating in ratings.ratings
    ]
    for rating in votes.ratings:
        model = rating.model
        rated = models.get(rating.item, {model})
        # People rated the answer without naming a model, so the vote joins that answer.
        if model and model not in rated and "" in rated:
            model = ""
        elif not model and len(rated) == 1:
            # annotate adds the run's model to samples that name none.
            (model,) = rated
        result.append(
            replace(rating, value=_move_to_categories(rating.value, votes, categories), model=model)
        )
    # Plain numbers of people have an order only if the judges' levels have one.
    ordered = votes.ordered or (ratings.ordered and bool(ratings.categories))
    return Ratings(
        result,
        categories,
        ordered,
        _merge_scales(ratings, votes, categories),
        ratings.missing_count,
        unread=ratings.unread,
    )


def _merge_scales(ratings: Ratings, votes: Ratings, categories: Sequence[str]) -> tuple[float, ...]:
    """Merge the values of both scales; empty where a rating lies outside the known values."""
    if ratings.categories:
        is_complete = ratings.scale or set(categories) <= {
            label.lower() for label in votes.categories
        }
        return tuple(map(float, range(len(categories)))) if is_complete else ()
    scale_values = {*ratings.scale, *votes.scale}
    rated = {rating.value for of in (ratings, votes) for rating in of.ratings}
    return tuple(sorted(scale_values)) if rated <= scale_values else ()


def _merge_categories(ratings: Ratings, votes: Ratings) -> tuple[str, ...]:
    """Return the categories of the side that has an order; it must contain those of the other."""
    levels = tuple(label.lower() for label in votes.categories)
    if ratings.ordered and not set(levels) <= set(ratings.categories):
        strange = next(level for level in levels if level not in ratings.categories)
        raise UsageError(f"the judges' level {strange!r} is not among the levels of the ratings")
    if ratings.ordered:
        return tuple(ratings.categories)
    if votes.ordered and not set(ratings.categories) <= set(levels):
        strange = next(word for word in ratings.categories if word not in levels)
        raise UsageError(f"the rating {strange[:40]!r} is not a level of the run's judges")
    if votes.ordered:
        return levels
    return tuple(dict.fromkeys((*levels, *ratings.categories)))


def _move_to_categories(value: float, of: Ratings, categories: Sequence[str]) -> float:
    """Convert a word to its place among the merged categories; a number stays the same."""
    if not of.categories:
        return value
    return float(categories.index(of.categories[int(value)].lower()))
