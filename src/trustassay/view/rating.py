"""Ratings on the pages: storing them, and reading the ratings of an answer.

Ratings have the format of ``annotate``. They are in a file of the run's folder that all raters of a
rubric share, and that is locked only while a line is written: ``ratings-RUBRIC.jsonl``. Ratings of
answers that ``label`` drew are not a random sample, so they are in ``ratings-RUBRIC-plan.jsonl``.
Marks of verdicts are in ``verdicts.jsonl``, with the name of the metric in place of a rubric.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from trustassay.core.labels import parse_number
from trustassay.core.sample import Sample
from trustassay.input.journal import ACTION, RUBRIC, SHOWING, START, UNDO, Journal, read_journal
from trustassay.input.records import InputError
from trustassay.people.annotate.items import RatingMaterial
from trustassay.people.annotate.project import AnnotateOptions, AnnotationProject, RatingStep
from trustassay.people.annotate.session import (
    NotOfferedError,
    RatingsFile,
    build_rating_line,
    encode_line,
    tidy_note,
)
from trustassay.people.label.command import default_plan
from trustassay.people.label.plan import AnswerKey, LabelPlan, read_plan
from trustassay.report.answers import AnswerRatings, MetricResult, RaterRatings
from trustassay.runs.folder import RunFolder, find_run_model
from trustassay.view.index import file_stamp
from trustassay.view.pages import Site

BUSY_S = 2.0
"""Seconds to wait for another process that writes to the file."""
VERDICTS = "verdicts.jsonl"
"""The file of the marks of verdicts."""
RIGHT, WRONG, OPEN = "right", "wrong", "open"
"""The marks of a verdict; ``open`` takes a mark back."""


class PersonRating(NamedTuple):
    """A rating of an answer by a person."""

    model: str
    """The model that gave the answer; empty if it is not known."""
    rater: str
    """Who rated."""
    rubric: str
    """The rubric of the rating."""
    level: str
    """The level; empty where the answer was skipped."""
    note: str
    """A note of the rater."""
    time: str
    """When it was rated, in ISO 8601."""


@lru_cache(maxsize=64)
def _read_ratings(path: Path, _stamp: str) -> Mapping[str, Sequence[PersonRating]]:
    """Return the ratings in a file by the ids of the answers; choices in pairs are left out.

    ``_stamp`` changes with the file, so the cache reads it again.
    """
    result: dict[str, list[PersonRating]] = {}
    journal = read_journal(path)
    # Only the last state of each rating counts; a rating that was taken back has none.
    for _, line in () if journal.start.get("pairs") else journal.last_states():
        rubric = line.get(RUBRIC) or journal.start.get("rubric")
        level = "" if line.get("rating") is None else line["rating"]
        texts = (
            line.get("model"),
            line["rater"],
            rubric,
            level,
            line.get("note"),
            line.get("time"),
        )
        values = ("" if text is None else str(text) for text in texts)
        result.setdefault(line["item"], []).append(PersonRating(*values))
    return result


class PeopleRatings:
    """The ratings of an answer.

    ``own`` is the last rating by the rater of these pages. ``hidden`` says whether scores and other
    ratings are hidden from the rater: in blind mode until the answer is rated. ``shown`` are the
    ratings that are shown beside the scores. ``faults`` says why files of ratings were left out.
    """

    def __init__(self, site: Site, folder: RunFolder, key: AnswerKey) -> None:
        item, model = key
        ratings: list[PersonRating] = []
        self.faults: list[str] = []
        for path in sorted(folder.path.glob("ratings*.jsonl")):
            try:
                ratings += _read_ratings(path, file_stamp(path)).get(item, ())
            except (InputError, OSError) as error:
                self.faults.append(str(error))
        # A rating or an answer without a model matches any.
        ratings = [
            rating for rating in ratings if rating.model == model or not (rating.model and model)
        ]
        who = site.rater, site.scale.facts["rubric"]
        own_ratings = [rating for rating in ratings if (rating.rater, rating.rubric) == who]
        self.own = max(own_ratings, key=lambda rating: rating.time, default=None)
        self.hidden = bool(
            site.find_rater(folder) and site.blind and not (self.own and self.own.level)
        )
        rated = [rating for rating in ratings if rating.level]
        # Levels of different rubrics have no common scale, so they are shown without numbers.
        several = len({rating.rubric for rating in rated}) > 1
        raters = []
        for rating in rated:
            value = None if several else parse_number(rating.level)
            name = f"{rating.rater}, {rating.rubric}" if several else rating.rater
            notes = [rating.note] if rating.note else []
            raters.append(
                RaterRatings(name, [rating.level], [] if value is None else [value], notes)
            )
        self.shown = AnswerRatings(raters) if raters and not self.hidden else None


# storing ratings


def key_of(sample: Sample) -> AnswerKey:
    """Return the key by which plans and ratings name an answer."""
    return sample.id, sample.model or ""


def ratings_paths(site: Site, folder: RunFolder) -> tuple[Path, Path]:
    """Return the files of ratings for the rubric of these pages: the usual one, and the plan's."""
    name = folder.path / f"ratings-{site.scale.name}.jsonl"
    return name, name.with_name(f"{name.stem}-plan.jsonl")


def plan_of(folder: RunFolder) -> LabelPlan | None:
    """Return the plan that ``label`` made of a run, if there is one.

    Raises:
        InputError: it cannot be read, or is a symbolic link, which may have been sent.
    """
    path = default_plan(folder.path.resolve())
    if path.is_symlink():
        raise InputError(f"{path}: is a symbolic link, which is not followed; put a file there")
    return _read_plan(path, file_stamp(path)) if path.exists() and path.stat().st_size else None


@lru_cache(maxsize=32)
def _read_plan(path: Path, _stamp: str) -> LabelPlan:
    return read_plan(path)


@lru_cache(maxsize=32)
def _hash_samples(path: Path, _stamp: str) -> str:
    """Return the digest of a run's samples; ``annotate`` encodes them in the same way."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _append_line(
    site: Site, path: Path, start: Mapping[str, Any], line: Callable[[Journal], dict[str, Any]]
) -> None:
    """Add a line to a file of ratings, unless the file says the same already.

    Args:
        site: says whether the file may belong to another user.
        path: the file.
        start: its first line, if it is new.
        line: makes the line from what the file holds.
    """
    with closing(RatingsFile(path, BUSY_S, write_others=site.write_others)) as file:
        journal = file.begin(start)
        new = line(journal)
        last: dict[str, Any] = {}
        for _, stored in journal.last_states():
            if all(stored.get(name) == new.get(name) for name in SHOWING):
                last = stored
        # A second click sends the same rating at another time: only the rating itself is compared.
        passing = {"time", "blind"}
        same = {name: last.get(name) for name in new.keys() - passing}
        wanted = {name: new[name] for name in new.keys() - passing}
        # Without an earlier line there is nothing to take back.
        if same != wanted and (last or new.get(ACTION) != UNDO):
            file.write(encode_line(new))


def store_rating(
    site: Site, folder: RunFolder, sample: Sample, act: str, choice: str, note: str
) -> None:
    """Store a rating; it is on disk when this returns.

    Args:
        site: has the rater and the rubric.
        folder: the run.
        sample: the answer.
        act: ``rate``, ``skip``, or ``undo``, which takes the last rating back.
        choice: the level.
        note: a note of the rater.

    Raises:
        NotOfferedError: there is no such act or choice.
        InputError, OSError: it could not be stored; then nothing has changed.
    """
    scale, value = site.scale, None
    if act == "rate":
        if choice not in {level.value for level in scale.choices}:
            raise NotOfferedError("the rubric has no such level")
        value = scale.encode(RatingStep(0, 0, 0), choice)
    elif act not in ("skip", UNDO):
        raise NotOfferedError("expected rate, skip or undo")
    key, plan = key_of(sample), plan_of(folder)
    # An answer outside of the plan belongs to the usual file: it was not drawn.
    if plan and not any(key in draw.answers for draw in plan.draws):
        plan = None
    assert scale.rubric
    options = AnnotateOptions([site.rater], [scale.rubric], plan=plan)
    digest = _hash_samples(folder.samples_path, file_stamp(folder.samples_path))
    start = AnnotationProject(options, RatingMaterial([], digest)).start
    more = {**_model_field(folder, sample), "blind": PeopleRatings(site, folder, key).hidden}
    line = build_rating_line(sample.id, site.rater, value, tidy_note(note), action=act, **more)
    _append_line(site, ratings_paths(site, folder)[plan is not None], start, lambda _: line)


def _model_field(folder: RunFolder, sample: Sample) -> dict[str, Any]:
    """Return the field with the model of an answer: the sample's, else the run's; may be empty."""
    model = sample.model or find_run_model(folder.read_run() or {})
    return {"model": model} if model else {}


# marks of verdicts


def verdicts_of(
    site: Site,
    folder: RunFolder,
    sample: Sample,
    results: Sequence[MetricResult],
    faults: list[str],
) -> list[tuple[MetricResult, dict[int, str]]]:
    """Return the results with a verdict, each with the marks of the rater.

    Marks are by number: 0 is the verdict itself, statements that it judged count from 1. A file
    that cannot be read is added to the ``faults``.
    """
    path = folder.path / VERDICTS
    try:
        # No file yet is the same as an empty one.
        journal = read_journal(path) if path.exists() else Journal(path, {}, (), 0)
    except (InputError, OSError) as error:
        faults.append(str(error))
        return []
    judged = [
        result
        for result in results
        if result.mark.tone != "none" and result.assessment.error is None
    ]
    return [(result, _read_marks(journal, site.rater, sample.id, result.name)) for result in judged]


def _read_marks(journal: Journal, rater: str, item: str, metric: str) -> dict[int, str]:
    """Return a rater's marks of a metric's verdict on an answer; the last mark of each counts."""
    result = {
        number if isinstance(number := line.get("statement"), int) else 0: str(line.get("verdict"))
        for _, line in journal.lines
        if (line["rater"], line["item"], line.get("metric")) == (rater, item, metric)
    }
    return {
        number: mark_text for number, mark_text in result.items() if mark_text in (RIGHT, WRONG)
    }


def label_of(marks: Mapping[int, str], result: MetricResult) -> str | None:
    """Return whether an answer is right in the sense of its metric, as the marks imply it.

    A mark of the verdict decides. With marks of statements only: if one that passed is marked
    wrong, the answer is wrong; if all that were found bad are marked wrong, it is right.

    Returns:
        ``yes``, ``no``, or ``None`` where neither follows.
    """
    if verdict_mark := marks.get(0):
        return "no" if (result.problem is not None) == (verdict_mark == RIGHT) else "yes"
    bad = {at for at, statement in enumerate(result.view.judged, 1) if statement.mark.tone == "bad"}
    wrong = {number for number, mark_of_number in marks.items() if mark_of_number == WRONG}
    if wrong - bad:
        return "no"
    return "yes" if bad and wrong == bad else None


def store_mark(
    site: Site, folder: RunFolder, sample: Sample, result: MetricResult, number: int, verdict: str
) -> None:
    """Store a mark of a verdict, or of that on a statement; errors as of :func:`store_rating`.

    Args:
        site: has the rater.
        folder: the run.
        sample: the answer.
        result: the metric's result.
        number: 0 for the verdict, else the number of a statement.
        verdict: the mark.
    """
    if not 0 <= number <= len(result.view.judged) or verdict not in (RIGHT, WRONG, OPEN):
        raise NotOfferedError("there is no such verdict")
    metrics = (folder.read_run() or {})["metrics"]
    facts = {metric: {"choices": ["yes", "no"], "levels": ["no", "yes"]} for metric in metrics}
    digest = _hash_samples(folder.samples_path, file_stamp(folder.samples_path))
    start: dict[str, Any] = {ACTION: START, "input": digest[:16], "pairs": False}
    # With several metrics each is a rubric of the file; with one, the file has that rubric alone.
    start |= {"rubrics": facts} if len(facts) > 1 else facts[result.name]
    more: dict[str, Any] = {RUBRIC: result.name} if len(facts) > 1 else {}
    more |= {**_model_field(folder, sample), "metric": result.name, "statement": number}

    def line(journal: Journal) -> dict[str, Any]:
        marks = _read_marks(journal, site.rater, sample.id, result.name) | {number: verdict}
        set_marks = {
            at: mark_of_number for at, mark_of_number in marks.items() if mark_of_number != OPEN
        }
        return build_rating_line(
            sample.id, site.rater, label_of(set_marks, result), **more, verdict=verdict
        )

    _append_line(site, folder.path / VERDICTS, start, line)
