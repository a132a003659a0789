"""The votes of a run of ``judge`` as ratings, beside those of people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from trustassay.data.ratings import Rating, Ratings
from trustassay.errors import RunFolderError, UsageError
from trustassay.metrics.judge import Judge
from trustassay.metrics.judge.evidence import VoteRow
from trustassay.metrics.judge.options import RubricError
from trustassay.registry import metric_from_settings
from trustassay.runs.folder import RunFolder
from trustassay.views import Rows

METRIC = "judge"


def votes_of(path: Path) -> Ratings | None:
    """Return the votes of the judges of a run, or ``None`` where it holds none.

    A judge is a rater, a later vote on the same answer a repeat, whichever text stood first. Levels
    that are words are categories in the order of their values.

    Raises:
        RunFolderError: the folder is not a run's, or the run's rubric cannot be read any more.
    """
    folder = RunFolder(path)
    run = folder.read_run()
    if run is None:
        raise RunFolderError(f"{path}: holds no run")
    if METRIC not in run["metrics"]:
        return None
    try:
        metric = metric_from_settings(METRIC, run["metrics"][METRIC])
    except (RubricError, OSError) as error:
        raise RunFolderError(f"{path}: the rubric of its judges cannot be read: {error}") from None
    if not isinstance(metric, Judge) or metric.by != "model":
        return None
    scale = metric.scale
    upwards = sorted(scale.values, key=scale.values.__getitem__)
    places = {
        label: float(label if scale.numeric else place) for place, label in enumerate(upwards)
    }
    models = {one["id"]: str(one.get("model") or "") for one in folder.sample_records()}
    found: list[Rating] = []
    for assessment in folder.assessments(METRIC):
        seen: Counter[str] = Counter()
        for vote in Rows(assessment.evidence, VoteRow).of(VoteRow):
            judge, level = vote.judge, vote.level
            if level is None:
                continue
            if level not in places:
                raise RunFolderError(
                    f"{path}: {assessment.id!r} holds a vote for {level[:40]!r}, which is not a "
                    f"level of the rubric {scale.name}; restore the rubric that it was judged by"
                )
            repeat = seen[judge]
            seen[judge] += 1
            model = models.get(assessment.id, "")
            found.append(Rating(assessment.id, judge, places[level], repeat, model))
    if not found:
        return None
    categories = () if scale.numeric else tuple(upwards)
    return Ratings(found, categories, scale.ordinal, tuple(sorted(places.values())))


def joined(given: Ratings, votes: Ratings) -> Ratings:
    """Return ratings and votes together; an answer is the same where its id is.

    A rating or vote that names no model is of the answer with its id, whichever model wrote that.

    Raises:
        ValueError: a rater has the name of a judge, or words stand beside numbers or other words.
    """
    raters = {one.rater for one in given.ratings}
    if both := sorted(raters & {one.rater for one in votes.ratings}):
        raise UsageError(f"the ratings hold a rater {both[0][:60]!r}, too, as a judge is called")
    if bool(given.categories) != bool(votes.categories):
        kinds = ("words", "numbers") if given.categories else ("numbers", "words")
        raise UsageError(f"the ratings are {kinds[0]}, and the judges' levels {kinds[1]}")
    categories: Sequence[str] = ()
    if given.categories:
        categories = _together(given, votes)
    models: dict[str, set[str]] = {}
    for one in given.ratings:
        models.setdefault(one.item, set()).add(one.model)
    found = [
        Rating(one.item, one.rater, _moved(one.value, given, categories), one.repeat, one.model)
        for one in given.ratings
    ]
    for one in votes.ratings:
        model = one.model
        rated = models.get(one.item, {model})
        if model and model not in rated and "" in rated:
            model = ""
        elif not model and len(rated) == 1:
            (model,) = rated  # a sample without a model, of which annotate names the one asked
        value = _moved(one.value, votes, categories)
        found.append(Rating(one.item, one.rater, value, one.repeat, model))
    ordered = votes.ordered or (given.ordered and bool(given.categories))
    return Ratings(found, categories, ordered, _scale(given, votes, categories), given.missing)


def _scale(given: Ratings, votes: Ratings, categories: Sequence[str]) -> tuple[float, ...]:
    """Return the values of both scales; of one that is known if it has all of the other's ratings,
    else none.
    """
    if given.categories:
        whole = given.scale or set(categories) <= {label.lower() for label in votes.categories}
        return tuple(map(float, range(len(categories)))) if whole else ()
    known = {*given.scale, *votes.scale}
    rated = {one.value for of in (given, votes) for one in of.ratings}
    return tuple(sorted(known)) if rated <= known else ()


def _together(given: Ratings, votes: Ratings) -> tuple[str, ...]:
    """Return the categories of the side that has an order, which then holds the other's."""
    levels = tuple(label.lower() for label in votes.categories)
    if given.ordered and not set(levels) <= set(given.categories):
        strange = next(level for level in levels if level not in given.categories)
        raise UsageError(f"the judges' level {strange!r} is not among the levels that were given")
    if given.ordered:
        return tuple(given.categories)
    if votes.ordered and not set(given.categories) <= set(levels):
        strange = next(word for word in given.categories if word not in levels)
        raise UsageError(f"the rating {strange[:40]!r} is not a level of the run's judges")
    if votes.ordered:
        return levels
    return tuple(dict.fromkeys((*levels, *given.categories)))


def _moved(value: float, of: Ratings, categories: Sequence[str]) -> float:
    """Return the place of a word among other categories; a number stays."""
    if not of.categories:
        return value
    return float(categories.index(of.categories[int(value)].lower()))
