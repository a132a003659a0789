"""The report page: one HTML file, readable without network and scripts.

The page is written while samples are read one at a time, so memory does not grow with the run. Its
content security policy allows only the style sheet and the script of this package, by their hashes.
"""

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from inspect import getmembers, isfunction
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import ChoiceLoader, Environment, FunctionLoader, PackageLoader, StrictUndefined
from markupsafe import Markup

from trustassay.core.asked import AskedModel
from trustassay.core.files import open_atomic
from trustassay.core.metric import Assessment, Figure, Metric, Summary
from trustassay.core.outcome import Outcomes
from trustassay.core.sample import Sample
from trustassay.judging.differences import compare_claim
from trustassay.judging.entailer_quality import EntailerQuality
from trustassay.report import answers, charts, text
from trustassay.report.answers import AnswerCard
from trustassay.report.columns import ColumnOutcomes
from trustassay.report.distributions import Histogram, ScoreGroups, Series
from trustassay.report.markdown import render_text
from trustassay.report.review import FlagRule, ReviewCounts, Selection
from trustassay.text import numbers
from trustassay.text.numbers import amount, with_error

BUFFERED_PIECES = 200
"""Pieces of a template that are written together."""
MAX_WORST = 5
"""Answers at the top of the page."""


@dataclass(frozen=True)
class ReportMetric:
    """One metric of the run."""

    name: str
    """Its name."""
    title: str
    """Its title, with the settings that scores depend on."""
    summary: Summary
    """The values of its figures."""
    figures: Mapping[str, Figure]
    """The definitions of its figures, by key."""
    histogram: Histogram | None = None
    """Its scores by verdict."""
    groups: ScoreGroups | None = None
    """Its scores by model and domain."""
    metric: Metric | None = None
    """The metric itself, which draws its evidence; ``None`` if it is not installed here."""


@dataclass(frozen=True)
class ReportSample:
    """One sample with its assessments."""

    sample: Sample
    """The sample."""
    assessments: Sequence[Assessment]
    """The results of all metrics."""
    ratings: answers.AnswerRatings | None = None
    """The ratings by people, if there are any."""
    number: int | None = None
    """Its number in the run, from 1; ``None`` if that is its place on the page."""
    chance: answers.AnswerChance | None = None
    """The probability that it is right, by a calibrator."""
    outcome: str = ""
    """Its outcome by the first metric, in the metric's words."""
    groups: Sequence[int] = ()
    """For each column of the run the place of its value, or -1."""


@dataclass(frozen=True)
class ReportRun:
    """The content of the page."""

    title: str
    """The heading."""
    facts: Mapping[str, str]
    """What identifies the run."""
    metrics: Sequence[ReportMetric]
    """The metrics of the run."""
    total: int
    """The number of samples of the run."""
    samples: Iterable[ReportSample] = field(repr=False)
    """The samples on the page, in the order of need; read once, while the page is written."""
    selection: Selection | None = None
    """Which samples are on the page, where it does not hold all."""
    remarks: Sequence[str] = ()
    """Warnings that a reader must see."""
    notes: Sequence[str] = ()
    """Other notes."""
    ratings: answers.RatingsSummary | None = None
    """What ratings were joined to the answers, if any."""
    outcomes: Sequence[Outcomes] = ()
    """The first lines of the page, one for each metric."""
    columns: Sequence[ColumnOutcomes] = ()
    """The columns of the input, by which answers are filtered and grouped."""
    asked: Sequence[AskedModel] = ()
    """Who was asked, those with most missing replies first."""
    looked: ReviewCounts = field(default_factory=lambda: ReviewCounts(lines=False))
    """The counts of answers that need a look."""
    lines: Sequence[FlagRule] = ()
    """The rule of each metric."""
    judge: EntailerQuality | None = None
    """How far the entailer can be believed."""
    chances: answers.ChancesSummary | None = None
    """The findings of a calibrator."""


def write_page(run: ReportRun, path: Path) -> None:
    """Write the page to ``path``; after a crash the file is either the old one or complete."""
    cards = _build_answers(run)
    # The answers are a stream: the first few are shown twice, at the top and in the list.
    worst = list(islice(cards, MAX_WORST))
    flagged = [answer for answer in worst if answer.problem or not run.looked.lines]
    write_template("page.html.jinja", path, run=run, worst=flagged, answers=chain(worst, cards))


def write_template(template: str, path: Path, *, private: bool = True, **context: Any) -> None:
    """Write a page from one of this package's templates, completely or not at all.

    ``private``: False for a page that the user named, see :mod:`trustassay.core.files`.
    """
    # The folder of a report may not exist yet.
    path.parent.mkdir(parents=True, exist_ok=True)
    style, script = _read_asset("report.css"), _read_asset("report.js")
    # Hashes of both assets: an injected script or style in the page is not run.
    style_hash, script_hash = _hash_content(style), _hash_content(script)
    policy = (
        f"default-src 'none'; style-src '{style_hash}'; script-src '{script_hash}';"
        " base-uri 'none'; form-action 'none'"
    )
    context |= {"style": style, "script": script, "policy": policy}
    stream = environment().get_template(template).stream(**context)
    stream.enable_buffering(BUFFERED_PIECES)
    with open_atomic(path, private=private) as file:
        file.writelines(piece.encode() for piece in stream)
        file.flush()
        # On the disk before the new file replaces the old one.
        os.fsync(file.fileno())


def render_template(template: str, **context: Any) -> str:
    """Render one of this package's templates."""
    return environment().get_template(template).render(**context)


def _build_answers(run: ReportRun) -> Iterator[AnswerCard]:
    columns = {}
    for place, metric in enumerate(run.metrics):
        histogram = metric.histogram
        score_range = (histogram.low, histogram.high) if histogram else (0.0, 1.0)
        columns[metric.name] = answers.MetricColumn(place, metric.title, score_range, metric.metric)
    for place, item in enumerate(run.samples):
        position = place + 1 if item.number is None else item.number
        card = answers.answer_of(
            position, place, item.sample, item.assessments, columns, item.ratings, item.chance
        )
        yield replace(card, outcome=item.outcome, groups=item.groups)


def summary_template(metric: ReportMetric) -> str | None:
    """Return the template that draws a summary's details; ``None`` if there are none."""
    if metric.metric is None or not metric.metric.summary_template or not metric.summary.details:
        return None
    return answers.find_template(metric.metric, "summary_template")


def _read_metric_template(name: str) -> str | None:
    """Return the source of a metric's template, by its name from :func:`answers.find_template`."""
    if not name.startswith(answers.METRIC_TEMPLATE_PREFIX):
        return None
    path = Path(name.removeprefix(answers.METRIC_TEMPLATE_PREFIX))
    return path.read_text(encoding="utf-8") if path.is_file() else None


class _TemplateEnvironment(Environment):
    """An environment in which a metric's template may include another's by a relative path."""

    def join_path(self, template: str, parent: str) -> str:
        # Templates of this package are found by name; only paths between metrics are relative.
        if not (parent.startswith(answers.METRIC_TEMPLATE_PREFIX) and template.startswith("../")):
            return template
        folder = Path(parent.removeprefix(answers.METRIC_TEMPLATE_PREFIX)).parent
        return f"{answers.METRIC_TEMPLATE_PREFIX}{os.path.normpath(folder / template)}"


def _hash_content(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@cache
def _read_asset(name: str) -> Markup:
    """Return a style sheet or script of this package as it stands between its tags."""
    source = files(__package__).joinpath("templates", name).read_text(encoding="utf-8")
    # The hash of the policy covers the very text between the tags, line break included.
    return Markup(f"\n{source}")


@cache
def environment() -> Environment:
    """Return the environment of this package's templates; all other text is escaped."""
    environment = _TemplateEnvironment(
        loader=ChoiceLoader(
            [
                PackageLoader(__package__ or "trustassay.report", "templates"),
                FunctionLoader(_read_metric_template),
            ]
        ),
        autoescape=True,
        # Templates do not change while a page is written; checking their files would cost time.
        auto_reload=False,
        finalize=text.spell_out_hidden,
        # A misspelled name in a template is an error and no empty text.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        # Every function of both modules is a filter, every one of charts.py a global function.
        **dict(getmembers(text, isfunction)),
        **dict(getmembers(numbers, isfunction)),
        "score": numbers.score_text,
        "plain": _format_plain,
        "part": _format_part,
        # The templates' names of blocks: "Text", "Table", "Drawing" ...
        "block": lambda block: type(block).__name__.removesuffix("Block"),
    }
    environment.globals |= {
        **dict(getmembers(charts, isfunction)),
        "compare_claim": compare_claim,
        "render_text": render_text,
        "interval_svg": charts.percent_svg,
        "split_long": text.split_long,
        "series": Series.all_of,
        "figure_groups": figure_groups,
        "summary_template": summary_template,
        "too_few": charts.MIN_PEAK_SCORES,
    }
    return environment


def figure_groups(metric: ReportMetric) -> dict[str, list[Figure]]:
    """Return the figures of the summary by group; figures without a definition are ``other``."""
    summary = metric.summary
    groups: dict[str, list[Figure]] = {}
    for key, figure in metric.figures.items():
        if key in summary.values or key in summary.not_applicable:
            groups.setdefault(figure.group or "figures", []).append(figure)
    # A metric of another package may compute figures that it does not declare.
    undefined = [
        Figure(key, "", unit="", group="other")
        for key in summary.values
        if key not in metric.figures
    ]
    if undefined:
        groups.setdefault("other", []).extend(undefined)
    return groups


def _format_part(value: Any) -> str:
    """Format a part of a score; a whole number without decimals."""
    if isinstance(value, float):
        return numbers.number(int(value)) if value.is_integer() else numbers.score_text(value)
    return _format_plain(value)


def _format_plain(value: Any) -> str:
    """Format any JSON value as text."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


class AskedQuestion(NamedTuple):
    """A question with the answers of several models."""

    question: str
    """The question."""
    models: int
    """The number of models that answered it."""
    answers: Sequence[tuple[str, str, AnswerCard]]
    """(model, run, answer), the best answer first."""
    best: float
    """The best score of the first metric."""
    worst: float
    """The worst score of the first metric."""


class PooledMetric(NamedTuple):
    """A metric that all runs have."""

    name: str
    """Its name."""
    title: str
    """Its title."""
    groups: ScoreGroups
    """The scores of all runs by model and domain."""


@dataclass(frozen=True)
class PooledPage:
    """The content of the page of several runs."""

    title: str
    """The heading."""
    facts: Mapping[str, str]
    """What identifies the runs."""
    looked: ReviewCounts
    """The counts of answers that need a look, over all runs."""
    lines: Sequence[FlagRule]
    """The rule of each metric."""
    warnings: Sequence[str]
    """Warnings that a reader must see."""
    metrics: Sequence[PooledMetric]
    """The metrics that all runs have."""
    questions: Sequence[AskedQuestion]
    """Questions on which the models differ most."""
    outcomes: Mapping[str, Sequence[Outcomes]] = field(default_factory=dict)
    """By the name of the run, one for each metric that all runs have."""
    judge: EntailerQuality | None = None
    """How far the entailer can be believed."""
    apart: Mapping[tuple[str | None, str | None], bool] = field(default_factory=dict)
    """Whether two models differ significantly by the first metric, the better one first."""

    @property
    def headline(self) -> str:
        """The number of answers that need a look, as a sentence."""
        return f"{self.looked.sentence}."

    @property
    def models(self) -> str:
        """A sentence on the range of the models' mean scores, and on the best model, if it differs
        significantly from all others; empty for a single model.
        """
        groups = self.metrics[0].groups
        models = [(name.model, group) for name, group in groups.models().items()]
        if len(models) < 2:
            return ""
        range_texts = [
            f"{model or 'no model'} with {with_error(group.scores.mean, group.scores.error)}"
            for model, group in (models[0], models[-1])
        ]
        domains = len({name.domain for name in groups.cells})
        scope = amount(len({name.model for name in groups.cells}), "model")
        if groups.has_domains:
            scope += f" in {amount(domains, 'domain')}"
        best = models[0][0]
        # A pair without a test counts as tied.
        tied = [name for name, _ in models[1:] if not self.apart.get((best, name))]
        if not tied:
            return f"{scope}; the best is {range_texts[0]}, the worst {range_texts[1]}."
        return (
            f"{scope}; mean scores from {range_texts[0]} to {range_texts[1]}. In a paired test "
            f"{best or 'the first'} does not differ significantly from "
            f"{amount(len(tied), 'other model')}, so there is no clear best model."
        )
