"""Ratings that are made on the pages: what is stored, and what people gave an answer so far.

A rating is one of ``annotate``. It stands in a file of the run's folder that all raters by the same
rubric share and that is held only while a line is written: ``ratings-RUBRIC.jsonl``, or of answers
that ``label`` drew, which are no sample, ``ratings-RUBRIC-plan.jsonl``. What is said of verdicts
stands in ``verdicts.jsonl``, with the name of each metric as that of a rubric.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from trustassay.data.journal import ACTION, RUBRIC, SHOWING, START, UNDO, Journal, read_journal
from trustassay.data.labels import as_number
from trustassay.data.records import InputError
from trustassay.runs.folder import RunFolder
from trustassay.sample import Sample
from trustassay.show.answers import AnswerRatings, RaterSaid, Result
from trustassay.workflows.annotate.items import Material
from trustassay.workflows.annotate.project import AnnotateOptions, Project, Step
from trustassay.workflows.annotate.session import (
    NotOfferedError,
    RatingsFile,
    encoded,
    rating_line,
    tidy,
)
from trustassay.workflows.label.command import default_plan
from trustassay.workflows.label.plan import AnswerKey, LabelPlan, read_plan
from trustassay_serve.view.index import stamp
from trustassay_serve.view.pages import Site

BUSY_S = 2.0
"""Seconds that a line waits for another process which writes to the file."""
VERDICTS = "verdicts.jsonl"
RIGHT, WRONG, OPEN = "right", "wrong", "open"
"""What can be said of a verdict; ``open`` takes it back."""


class Given(NamedTuple):
    """What a person gave an answer; ``said`` is empty where it was skipped."""

    model: str
    rater: str
    rubric: str
    said: str
    note: str
    time: str


@lru_cache(maxsize=64)
def _given(path: Path, _stamp: str) -> Mapping[str, Sequence[Given]]:
    """Return what a file of ratings says, by the answers' ids; of choices in pairs nothing."""
    result: dict[str, list[Given]] = {}
    journal = read_journal(path)
    for _, line in () if journal.start.get("pairs") else journal.last_states():
        rubric = line.get(RUBRIC) or journal.start.get("rubric")
        said = "" if line.get("rating") is None else line["rating"]
        texts = (line.get("model"), line["rater"], rubric, said, line.get("note"), line.get("time"))
        words = ("" if text is None else str(text) for text in texts)
        result.setdefault(line["item"], []).append(Given(*words))
    return result


class Rated:
    """What people gave an answer: its rater's ``own``, all that is ``shown`` beside its scores, and
    whether these are ``hidden`` from its rater: in blind mode until it is rated. faults: why files
    of ratings were left out.
    """

    def __init__(self, site: Site, folder: RunFolder, key: AnswerKey) -> None:
        item, model = key
        given: list[Given] = []
        self.faults: list[str] = []
        for path in sorted(folder.path.glob("ratings*.jsonl")):
            try:
                given += _given(path, stamp(path)).get(item, ())
            except (InputError, OSError) as error:
                self.faults.append(str(error))
        given = [one for one in given if one.model == model or not (one.model and model)]
        who = site.rater, site.scale.facts["rubric"]
        own = [one for one in given if (one.rater, one.rubric) == who]
        self.own = max(own, key=lambda one: one.time, default=None)
        self.hidden = bool(site.rater and site.blind and not (self.own and self.own.said))
        told = [one for one in given if one.said]
        several = len({one.rubric for one in told}) > 1
        raters = []
        for one in told:
            value = None if several else as_number(one.said)
            name = f"{one.rater}, {one.rubric}" if several else one.rater
            notes = [one.note] if one.note else []
            raters.append(RaterSaid(name, [one.said], [] if value is None else [value], notes))
        self.shown = AnswerRatings(raters) if raters and not self.hidden else None


# what is stored


def key_of(sample: Sample) -> AnswerKey:
    """Return how plans and ratings name an answer."""
    return sample.id, sample.model or ""


def ratings_paths(site: Site, folder: RunFolder) -> tuple[Path, Path]:
    """Return the files of ratings by the rubric of these pages, the second that of the plan."""
    name = folder.path / f"ratings-{site.scale.name}.jsonl"
    return name, name.with_name(f"{name.stem}-plan.jsonl")


def plan_of(folder: RunFolder) -> LabelPlan | None:
    """Return the plan that ``label`` made of a run, if there is one."""
    path = default_plan(folder.path.resolve())
    return _plan(path, stamp(path)) if path.exists() and path.stat().st_size else None


@lru_cache(maxsize=32)
def _plan(path: Path, _stamp: str) -> LabelPlan:
    return read_plan(path)


@lru_cache(maxsize=32)
def _digest(path: Path, _stamp: str) -> str:
    """Return the digest of a run's samples, which are stored as ``annotate`` encodes them."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _append(
    path: Path, start: Mapping[str, Any], line: Callable[[Journal], dict[str, Any]]
) -> None:
    """Add a line to a file, made of what it holds, unless it says the same already."""
    with closing(RatingsFile(path, BUSY_S)) as file:
        journal = file.begin(start)
        new = line(journal)
        last: dict[str, Any] = {}
        for _, known in journal.last_states():
            if all(known.get(name) == new.get(name) for name in SHOWING):
                last = known
        passing = {"time", "blind"}
        same = {name: last.get(name) for name in new.keys() - passing}
        wanted = {name: new[name] for name in new.keys() - passing}
        if same != wanted and (last or new.get(ACTION) != UNDO):
            file.write(encoded(new))


def rate(site: Site, folder: RunFolder, sample: Sample, act: str, choice: str, note: str) -> None:
    """Store a rating (``act`` is ``rate``), a ``skip``, or that one is taken back (``undo``). It is
    on disk when this returns.

    Raises:
        NotOfferedError: there is no such act or choice.
        InputError, OSError: it could not be stored; nothing has changed then.
    """
    scale, value = site.scale, None
    if act == "rate":
        if choice not in {one.value for one in scale.choices}:
            raise NotOfferedError("that is not one of the levels")
        value = scale.stored(Step(0, 0, 0), choice)
    elif act not in ("skip", UNDO):
        raise NotOfferedError("expected rate, skip or undo")
    key, plan = key_of(sample), plan_of(folder)
    if plan and not any(key in draw.answers for draw in plan.draws):
        plan = None
    assert scale.rubric
    options = AnnotateOptions([site.rater], [scale.rubric], plan=plan)
    digest = _digest(folder.samples_path, stamp(folder.samples_path))
    start = Project(options, Material([], digest)).start
    more = {**_model(folder, sample), "blind": Rated(site, folder, key).hidden}
    line = rating_line(sample.id, site.rater, value, tidy(note), action=act, **more)
    _append(ratings_paths(site, folder)[plan is not None], start, lambda _: line)


def _model(folder: RunFolder, sample: Sample) -> dict[str, Any]:
    asked = (folder.read_run() or {}).get("backends", {}).get("model")
    model = sample.model or (asked if isinstance(asked, str) else "")
    return {"model": model} if model else {}


# what is said of verdicts


def verdicts_of(
    site: Site, folder: RunFolder, sample: Sample, results: Sequence[Result], faults: list[str]
) -> list[tuple[Result, dict[int, str]]]:
    """Return the results that say whether an answer needs a look, each with what its rater says of
    it: of its verdict at 0, of the statements that it judged by their numbers, from 1. A file that
    cannot be read is added to the ``faults``.
    """
    path = folder.path / VERDICTS
    try:
        journal = read_journal(path) if path.exists() else Journal(path, {}, (), 0)
    except (InputError, OSError) as error:
        faults.append(str(error))
        return []
    judged = [one for one in results if one.mark.tone != "none" and one.assessment.error is None]
    return [(one, _said(journal, site.rater, sample.id, one.name)) for one in judged]


def _said(journal: Journal, rater: str, item: str, metric: str) -> dict[int, str]:
    result = {
        number if isinstance(number := line.get("statement"), int) else 0: str(line.get("verdict"))
        for _, line in journal.lines
        if (line["rater"], line["item"], line.get("metric")) == (rater, item, metric)
    }
    return {number: said for number, said in result.items() if said in (RIGHT, WRONG)}


def label_of(said: Mapping[int, str], result: Result) -> str | None:
    """Return whether an answer is right, as its metric means it, by what was said of its verdict:
    ``yes``, ``no``, or ``None`` where that does not follow. Of statements alone: one that passed
    wrongly makes it wrong; if none of those that were found bad is, it is right.
    """
    if whole := said.get(0):
        return "no" if (result.problem is not None) == (whole == RIGHT) else "yes"
    bad = {at for at, one in enumerate(result.view.judged, 1) if one.mark.tone == "bad"}
    wrong = {number for number, one in said.items() if one == WRONG}
    if wrong - bad:
        return "no"
    return "yes" if bad and wrong == bad else None


def mark(
    site: Site, folder: RunFolder, sample: Sample, result: Result, number: int, verdict: str
) -> None:
    """Store what is said of a verdict, or of that on a statement; errors as of :func:`rate`."""
    if not 0 <= number <= len(result.view.judged) or verdict not in (RIGHT, WRONG, OPEN):
        raise NotOfferedError("there is no such verdict")
    metrics = (folder.read_run() or {})["metrics"]
    facts = {one: {"choices": ["yes", "no"], "levels": ["no", "yes"]} for one in metrics}
    digest = _digest(folder.samples_path, stamp(folder.samples_path))
    start: dict[str, Any] = {ACTION: START, "input": digest[:16], "pairs": False}
    start |= {"rubrics": facts} if len(facts) > 1 else facts[result.name]
    more: dict[str, Any] = {RUBRIC: result.name} if len(facts) > 1 else {}
    more |= {**_model(folder, sample), "metric": result.name, "statement": number}

    def line(journal: Journal) -> dict[str, Any]:
        said = _said(journal, site.rater, sample.id, result.name) | {number: verdict}
        known = {at: one for at, one in said.items() if one != OPEN}
        return rating_line(sample.id, site.rater, label_of(known, result), **more, verdict=verdict)

    _append(folder.path / VERDICTS, start, line)
