"""The report page: one HTML file that needs no network and no scripts to be read.

The page is written while samples are read, one at a time, so its memory does not grow with the run.
Its content security policy allows the style sheet and the script that ship with this package, by
hash, and nothing else.
"""

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from inspect import getmembers, isfunction
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import ChoiceLoader, Environment, FunctionLoader, PackageLoader, StrictUndefined
from markupsafe import Markup

from trustassay.core.outcome import Outcomes
from trustassay.entailer_quality import EntailerQuality
from trustassay.files import whole
from trustassay.metric import Assessment, Figure, Metric, Summary
from trustassay.sample import Sample
from trustassay.show import answers, charts, text
from trustassay.show.answers import Answer
from trustassay.show.choice import Selection
from trustassay.show.distributions import Groups, Histogram, Series
from trustassay.show.first_card import Line, Looked
from trustassay.show.text import with_error
from trustassay.text.words import amount

PIECES_AT_ONCE = 200
WORST = 5
"""Answers with which the page opens."""


@dataclass(frozen=True)
class ReportMetric:
    """The figures of one metric over the run.

    ``histogram`` counts its per-sample scores, ``groups`` those of each model and domain;
    ``metric`` draws its evidence, where it is here.
    """

    name: str
    title: str
    summary: Summary
    figures: Mapping[str, Figure]
    histogram: Histogram | None = None
    groups: Groups | None = None
    metric: Metric | None = None


@dataclass(frozen=True)
class ReportSample:
    """One sample with what each metric said of it, and raters where there were some."""

    sample: Sample
    assessments: Sequence[Assessment]
    ratings: answers.AnswerRatings | None = None
    number: int | None = None
    """Its number in the run, from 1; ``None`` if that is its place on the page."""
    chance: answers.AnswerChance | None = None


@dataclass(frozen=True)
class ReportRun:
    """What the page shows. ``shown`` is read once, while the page is written.

    ``facts`` say what run it was, ``remarks`` what should not pass unseen, ``notes`` what else;
    ``total`` counts the samples of the run. Where ``shown`` does not hold all of them,
    ``selection`` says which it holds. ``ratings`` says what was joined to the answers, where
    something was. ``outcomes``, one for each metric, are the first lines. ``looked`` counts the
    answers that need a look, by the ``lines`` of the metrics;
    ``judge`` says how sure the entailer is, ``chances`` what a calibrator found. The samples come
    in the order of need.
    """

    title: str
    facts: Mapping[str, str]
    metrics: Sequence[ReportMetric]
    total: int
    shown: Iterable[ReportSample] = field(repr=False)
    selection: Selection | None = None
    remarks: Sequence[str] = ()
    notes: Sequence[str] = ()
    ratings: answers.RatingsTold | None = None
    outcomes: Sequence[Outcomes] = ()
    looked: Looked = field(default_factory=lambda: Looked(lines=False))
    lines: Sequence[Line] = ()
    judge: EntailerQuality | None = None
    chances: answers.ChancesTold | None = None


def write_page(run: ReportRun, path: Path) -> None:
    """Write the page to ``path``, which holds either what it held before or the whole page."""
    shown = _answers(run)
    worst = list(islice(shown, WORST))
    first = [answer for answer in worst if answer.problem or not run.looked.lines]
    write_template("page.html.jinja", path, run=run, worst=first, answers=chain(worst, shown))


def write_template(template: str, path: Path, **context: Any) -> None:
    """Write a page from one of this package's templates, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    style, script = _asset("report.css"), _asset("report.js")
    policy = (
        f"default-src 'none'; style-src '{_source(style)}'; script-src '{_source(script)}';"
        " base-uri 'none'; form-action 'none'"
    )
    context |= {"style": style, "script": script, "policy": policy}
    stream = environment().get_template(template).stream(**context)
    stream.enable_buffering(PIECES_AT_ONCE)
    with whole(path) as file:
        file.writelines(piece.encode() for piece in stream)
        file.flush()
        os.fsync(file.fileno())


def rendered(template: str, **context: Any) -> str:
    """Return what one of this package's templates makes of its context."""
    return environment().get_template(template).render(**context)


def _answers(run: ReportRun) -> Iterator[Answer]:
    columns = {}
    for place, metric in enumerate(run.metrics):
        one = metric.histogram
        within = (one.low, one.high) if one else (0.0, 1.0)
        columns[metric.name] = answers.Column(place, metric.title, within, metric.metric)
    for place, shown in enumerate(run.shown):
        position = place + 1 if shown.number is None else shown.number
        yield answers.answer_of(
            position, place, shown.sample, shown.assessments, columns, shown.ratings, shown.chance
        )


def summary_template(metric: ReportMetric) -> str | None:
    """Return the template that draws a summary's details, where there are some to draw."""
    if metric.metric is None or not metric.metric.summary_template or not metric.summary.details:
        return None
    return answers.beside(metric.metric, "summary_template")


def _of_metric(name: str) -> str | None:
    """Return the source of a metric's template, by the name that :func:`beside` gave it."""
    if not name.startswith(answers.OF_METRICS):
        return None
    path = Path(name.removeprefix(answers.OF_METRICS))
    return path.read_text(encoding="utf-8") if path.is_file() else None


class _Environment(Environment):
    """Templates by name; one of a metric may include another metric's by a relative path."""

    def join_path(self, template: str, parent: str) -> str:
        if not (parent.startswith(answers.OF_METRICS) and template.startswith("../")):
            return template
        folder = Path(parent.removeprefix(answers.OF_METRICS)).parent
        return f"{answers.OF_METRICS}{os.path.normpath(folder / template)}"


def _source(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@cache
def _asset(name: str) -> Markup:
    """Return a file of this package as it stands between its tags."""
    source = files(__package__).joinpath("templates", name).read_text(encoding="utf-8")
    return Markup(f"\n{source}")


@cache
def environment() -> Environment:
    """Return the templates of this package, with what they may call; foreign text is escaped."""
    environment = _Environment(
        loader=ChoiceLoader(
            [
                PackageLoader(__package__ or "trustassay.show", "templates"),
                FunctionLoader(_of_metric),
            ]
        ),
        autoescape=True,
        auto_reload=False,
        finalize=text.finalized,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        **dict(getmembers(text, isfunction)),
        "amount": amount,
        "score": text.score_text,
        "plain": _plain,
        "part": _part,
        "block": lambda block: type(block).__name__,
    }
    environment.globals |= {
        **dict(getmembers(charts, isfunction)),
        "interval_svg": charts.percent_svg,
        "split_long": text.split_long,
        "series": Series.all_of,
        "figure_groups": figure_groups,
        "summary_template": summary_template,
        "too_few": charts.TOO_FEW,
    }
    return environment


def figure_groups(metric: ReportMetric) -> dict[str, list[Figure]]:
    """Return the figures that the summary has, by group; one without a definition is ``other``."""
    summary = metric.summary
    groups: dict[str, list[Figure]] = {}
    for key, figure in metric.figures.items():
        if key in summary.values or key in summary.not_applicable:
            groups.setdefault(figure.group or "figures", []).append(figure)
    undefined = [
        Figure(key, "", unit="", group="other")
        for key in summary.values
        if key not in metric.figures
    ]
    if undefined:
        groups.setdefault("other", []).extend(undefined)
    return groups


def _part(value: Any) -> str:
    """Write a part of a score; a whole number without decimals."""
    if isinstance(value, float):
        return text.number(int(value)) if value.is_integer() else text.score_text(value)
    return _plain(value)


def _plain(value: Any) -> str:
    """Write any JSON value as text."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


class AskedQuestion(NamedTuple):
    """A question with the answers of several models, best first: model, run, answer.

    ``models`` answered it; the best and the worst score are those of the first metric.
    """

    question: str
    models: int
    answers: Sequence[tuple[str, str, Answer]]
    best: float
    worst: float


class PooledMetric(NamedTuple):
    """A metric that all runs have, with the scores of all of them."""

    name: str
    title: str
    groups: Groups


@dataclass(frozen=True)
class PooledPage:
    """What the page of several runs shows."""

    title: str
    facts: Mapping[str, str]
    looked: Looked
    lines: Sequence[Line]
    warnings: Sequence[str]
    metrics: Sequence[PooledMetric]
    questions: Sequence[AskedQuestion]
    outcomes: Mapping[str, Sequence[Outcomes]] = field(default_factory=dict)
    """By the name of the run, one for each metric that all runs have."""
    judge: EntailerQuality | None = None
    apart: Mapping[tuple[str | None, str | None], bool] = field(default_factory=dict)
    """Whether a test tells two models apart by the first metric, the better one first."""

    @property
    def headline(self) -> str:
        """How many answers need a look."""
        return f"{self.looked.sentence}."

    @property
    def models(self) -> str:
        """Between which scores the models' means lie, and which is the best, if a test tells it
        from all others; empty for a single one.
        """
        groups = self.metrics[0].groups
        models = [(name.model, one) for name, one in groups.models().items()]
        if len(models) < 2:
            return ""
        ends = [
            f"{model or 'no model named'} with {with_error(one.scores.mean, one.scores.error)}"
            for model, one in (models[0], models[-1])
        ]
        domains = len({name.domain for name in groups.cells})
        over = amount(len({name.model for name in groups.cells}), "model")
        if groups.has_domains:
            over += f" in {amount(domains, 'domain')}"
        best = models[0][0]
        tied = [name for name, _ in models[1:] if not self.apart.get((best, name))]
        if not tied:
            return f"{over}; the best is {ends[0]}, the last {ends[1]}."
        return (
            f"{over}; mean scores from {ends[0]} to {ends[1]}. In a paired test "
            f"{best or 'the first'} does not differ significantly from "
            f"{amount(len(tied), 'other model')}, so none is the best."
        )
