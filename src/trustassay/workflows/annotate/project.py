"""What a rating session is: options, answers, and what each rater is asked in which order."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from trustassay.data.journal import ACTION, START
from trustassay.data.records import InputError
from trustassay.errors import UsageError
from trustassay.metrics.judge.rubric import Rubric
from trustassay.workflows.annotate.items import (
    Item,
    Material,
    Reading,
    one_by_one,
    side_by_side,
)
from trustassay.workflows.annotate.plan import (
    Step,
    drawn_per_group,
    shares,
    shares_in_order,
    steps,
    steps_in_order,
)
from trustassay.workflows.annotate.scales import Scale
from trustassay.workflows.label.plan_file import LabelPlan

__all__ = ["AnnotateOptions", "Project", "open_project"]

NAME = re.compile(r"[\w-][\w.-]{,39}")


@dataclass(frozen=True)
class AnnotateOptions:
    """What raters see, and who rates what.

    raters: their names. rubrics: what is rated of each answer, and what a level means; of pairs
        the guide to the choice, or none.
    gold: show the gold answers; ``None``: where the rubric cannot do without.
    together: all answers to a question are shown together.
    double: share of the answers (of the questions where they are shown together) that all raters
        rate; the others are divided among them.
    again: share of a rater's answers that this rater is shown a second time, later.
    per_group: this many are drawn from each model and domain.
    plan: of ``label``: which answers are rated, in its order, and no others.
    """

    raters: Sequence[str]
    rubrics: Sequence[Rubric]
    gold: bool | None = None
    together: bool = False
    double: float = 1.0
    again: float = 0.0
    per_group: int | None = None
    seed: int = 0
    reading: Reading = field(default_factory=Reading)
    plan: LabelPlan | None = None

    def __post_init__(self) -> None:
        for name in self.raters:
            if not NAME.fullmatch(name):
                raise UsageError(
                    "--rater: expected up to 40 letters, digits, _, - and . (not first), got "
                    f"{name[:50]!r}"
                )
        if not self.raters:
            raise UsageError("expected a --rater; give it once for each person")
        if len({name.casefold() for name in self.raters}) < len(self.raters):
            raise UsageError(f"--rater: two have the same name ({', '.join(self.raters)})")
        names = [rubric.name for rubric in self.rubrics]
        if len(set(names)) < len(names):
            raise UsageError(f"--rubric: two have the same name ({', '.join(names)})")
        if self.plan is not None and (self.again or self.per_group):
            option = "--again" if self.again else "--per-group"
            raise UsageError(f"{option}: the plan says what is rated in which order; leave it out")
        for option, share in (("--double", self.double), ("--again", self.again)):
            if not 0 <= share <= 1:
                raise UsageError(f"{option}: expected a share from 0 to 1, got {share:g}")

    @property
    def shows_gold(self) -> bool:
        """Whether raters see the gold answers."""
        if self.gold is not None:
            return self.gold
        return any("gold" in rubric.shows for rubric in self.rubrics)


@dataclass(frozen=True)
class Project:
    """Answers to rate, and who is asked which of them in which order."""

    options: AnnotateOptions
    material: Material
    pairs: bool = False

    @property
    def items(self) -> Sequence[Item]:
        """All that can be rated."""
        return self.material.items

    @cached_property
    def scales(self) -> tuple[Scale, ...]:
        """What is rated of each answer, one or more: a scale for each rubric."""
        return tuple(Scale(rubric, self.pairs) for rubric in self.options.rubrics or (None,))

    @cached_property
    def pages(self) -> list[tuple[int, ...]]:
        """What is shown together: places of items. Drawn from each group where that is wanted."""
        options, items = self.options, self.items
        if options.plan is not None:
            return _planned_pages(options.plan, items, together=options.together)
        by_question: dict[Any, list[int]] = {}
        for place, item in enumerate(items):
            key = item.question_key if options.together else place
            by_question.setdefault(key, []).append(place)
        pages = [tuple(places) for places in by_question.values()]
        if options.per_group is None:
            return pages
        alone = not (options.together or self.pairs)
        groups = [(items[p[0]].model if alone else "", items[p[0]].domain) for p in pages]
        chosen = drawn_per_group(groups, options.per_group, options.seed)
        return [pages[place] for place in chosen]

    @cached_property
    def steps(self) -> Mapping[str, Sequence[Step]]:
        """What each rater is asked, in order."""
        options = self.options
        if options.plan is not None:
            planned = shares_in_order(len(self.pages), options.raters, options.double, options.seed)
            return {
                rater: steps_in_order(self.pages, numbers, options.seed)
                for rater, numbers in planned.items()
            }
        divided = shares(len(self.pages), options.raters, options.double, options.seed)
        return {
            rater: steps(
                [self.pages[place] for place in places],
                rater,
                options.again,
                options.seed,
                pairs=self.pairs,
            )
            for rater, places in divided.items()
        }

    @property
    def start(self) -> dict[str, Any]:
        """The first line of the file of ratings: what has to be the same to go on with it."""
        options, scales = self.options, self.scales
        line: dict[str, Any] = {
            ACTION: START,
            "input": self.material.sha256[:16],
            "pairs": self.pairs,
            "together": options.together,
            "gold": options.shows_gold,
            "double": options.double,
            "again": options.again,
            "per_group": options.per_group,
            "seed": options.seed,
        }
        if len(scales) == 1:
            line |= scales[0].facts
        else:
            line["rubrics"] = {scale.name: scale.facts for scale in scales}
        if options.double < 1:  # where answers are divided, who takes part decides who gets what
            line["raters"] = list(options.raters)
        if options.plan is not None:
            line |= {"plan": options.plan.name, "chances": options.plan.start["chances"]}
        return line

    def row_key(self, rater: str, step: int) -> str:
        """Return the name of a step in a sheet. It says nothing of the answer, and no other session
        has it.
        """
        text = json.dumps([self.start, rater, step], sort_keys=True)
        return "k" + hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _planned_pages(
    plan: LabelPlan, items: Sequence[Item], *, together: bool
) -> list[tuple[int, ...]]:
    """Return the answers of a plan that are among the items, in its order: one a page, or all of a
    draw together.
    """
    places = {item.id: place for place, item in enumerate(items)}
    pages: list[tuple[int, ...]] = []
    for draw in plan.draws:
        found = []
        for sample, model in draw.answers:
            place = places.get(sample)
            own = "" if place is None else items[place].model
            if place is not None and (not model or not own or model == own):
                found.append(place)
        pages += [tuple(found)] if together and found else [(place,) for place in found]
    return pages


def open_project(
    source: Path | None, options: AnnotateOptions, pairs: tuple[Path, Path] | None = None
) -> Project:
    """Read what is to be rated, and check that the options fit it.

    Raises:
        ValueError: the options do not go together, or do not fit the input.
        BadInputError, InputError, RunFolderError: the input cannot be read.
    """
    if (source is None) == (pairs is None):
        raise UsageError("expected either a file or a run to rate, or two with --pairs")
    if pairs is not None and options.plan is not None:
        raise UsageError("--plan: names answers of one input; expected no --pairs")
    if pairs is None and not options.rubrics:
        raise UsageError("expected a --rubric")
    if pairs is not None and len(options.rubrics) > 1:
        raise UsageError("--rubric: is the guide to the choice in a pair; expected one at most")
    if pairs is not None and options.together:
        raise UsageError("--together: a pair is shown together anyway; leave it out")
    material = side_by_side(*pairs, options.reading) if pairs else _one_by_one(source, options)
    project = Project(options, material, pairs is not None)
    if options.plan is not None and not project.pages:
        raise InputError(f"{options.plan.path}: names no answer of {source}; name its run")
    if options.shows_gold and not any(item.golds for item in project.items):
        guided = next((one.name for one in options.rubrics if "gold" in one.shows), "")
        why = "--gold" if options.gold else f"the rubric {guided}"
        raise UsageError(
            f"{why}: shows gold answers, and no sample has one in `answers` or `claims`; take "
            "another --rubric, or --no-gold"
        )
    if empty := [rater for rater, asked in project.steps.items() if not asked]:
        raise UsageError(f"{', '.join(empty)}: nothing is left to rate; fewer raters will do")
    return project


def _one_by_one(source: Path | None, options: AnnotateOptions) -> Material:
    assert source is not None, "checked by open_project"
    return one_by_one(source, options.reading)
