"""A rating project: its options, the answers, and which rater rates which of them in which
order."""

import hashlib
import json
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trustassay.errors import UsageError
from trustassay.input.journal import ACTION, START
from trustassay.input.records import InputError
from trustassay.metrics.judge.options import Rubric
from trustassay.people.annotate.items import (
    RatingInputOptions,
    RatingItem,
    RatingMaterial,
    read_answer_pairs,
    read_single_answers,
)
from trustassay.people.label.plan import LabelPlan
from trustassay.statistics.resampling import generator

PagePlaces = tuple[int, ...]
"""The places of items that are shown together."""


class RatingStep(NamedTuple):
    """One item that a rater is asked to rate."""

    item: int
    """The place of the item."""
    repeat: int
    """0 when it is shown for the first time, 1 for the second time."""
    page: int
    """Steps with the same number are shown together."""
    swapped: bool = False
    """Whether answer ``b`` of a pair is shown first."""


def draw_per_group(groups: Sequence[Hashable], number: int, seed: int) -> list[int]:
    """Draw ``number`` members from each group, and return their places in ascending order.

    Args:
        groups: the group of each member.
        number: how many members to draw from each group.
        seed: of the draws.

    Raises:
        UsageError: a group has fewer members; the message names the smallest and its size.
    """
    members: dict[Hashable, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(group, []).append(place)
    smallest = min(members, key=lambda group: len(members[group]))
    if len(members[smallest]) < number:
        group_parts = smallest if isinstance(smallest, tuple) else (smallest,)
        name = ", ".join(repr(str(part)[:40]) for part in group_parts if part)
        raise UsageError(
            f"--per-group {number}: the smallest group{f' ({name})' if name else ''} has "
            f"{len(members[smallest]):,}; expected at most that many"
        )
    chosen: list[int] = []
    for group, places in members.items():
        # A generator for each group: a new group does not change the draws of the others.
        rng = generator(seed, "annotate", "group", repr(group))
        chosen += rng.choice(places, number, replace=False).tolist()
    return sorted(chosen)


def divide_pages(
    pages: int, raters: Sequence[str], double: float, seed: int
) -> dict[str, list[int]]:
    """Divide pages among raters.

    A share ``double`` of the pages is for all raters; the others are divided as evenly as possible.
    """
    # Shuffled first, so that no rater gets all pages of one model.
    order = generator(seed, "annotate", "shares").permutation(pages).tolist()
    common = round(double * pages)
    return {
        rater: sorted(order[:common] + order[common + place :: len(raters)])
        for place, rater in enumerate(raters)
    }


def divide_growing_pages(
    pages: int, raters: Sequence[str], double: float, seed: int
) -> dict[str, list[int]]:
    """Divide pages among raters so that later pages do not change who rates earlier ones.

    Each page is for all raters with probability ``double``; otherwise the raters take turns.
    """
    common = generator(seed, "annotate", "plan").random(pages) < double
    return {
        rater: [page for page in range(pages) if common[page] or page % len(raters) == place]
        for place, rater in enumerate(raters)
    }


def build_steps_in_order(
    pages: Sequence[PagePlaces], numbers: Sequence[int], seed: int
) -> list[RatingStep]:
    """Build the steps of a rater for the pages with these numbers, in order, each page shuffled."""
    return [
        RatingStep(item, 0, place)
        for place, number in enumerate(numbers)
        # Seeded by the page's number, so that all raters see a page in the same order and new pages
        # change nothing.
        for item in generator(seed, "annotate", "page", str(number))
        .permutation(pages[number])
        .tolist()
    ]


def draw_order_with_repeats(
    size: int, repeated_share: float, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Draw the order of ``size`` pages, of which a share is shown twice; return (place, repeat).

    At least one page, and as a rule a third of all pages, lies between the two showings of a page.
    A single page is not repeated, since nothing could lie in between.
    """
    order = rng.permutation(size).tolist()
    repeat_count = min(round(repeated_share * size), size) if size > 1 else 0
    # A third of all pages in between: raters should have forgotten their first rating.
    gap = max(2, size // 3)
    early = max(size - gap, 0)
    repeated = (
        rng.choice(max(repeat_count, early), repeat_count, replace=False).tolist()
        if repeat_count
        else []
    )
    # First showings are at whole positions; repeats are inserted between them.
    showings = [(float(place), page, 0) for place, page in enumerate(order)]
    for place in sorted(repeated):
        # The last third is repeated behind everything, in its order.
        position = place + gap + rng.uniform(0, early - place) if place < early else size + place
        showings.append((position, order[place], 1))
    # Of two at one place the first showing is first: the other comes behind, never before.
    return [(page, repeat) for _, page, repeat in sorted(showings, key=lambda s: (s[0], s[2]))]


def build_steps(
    pages: Sequence[PagePlaces],
    rater: str,
    repeated_share: float,
    seed: int,
    *,
    pairs: bool = False,
) -> list[RatingStep]:
    """Build the steps of a rater in random order: of pages, within pages, and of the two sides."""
    rng = generator(seed, "annotate", "order", rater)
    result = []
    for number, (place, repeat) in enumerate(
        draw_order_with_repeats(len(pages), repeated_share, rng)
    ):
        for item in rng.permutation(pages[place]).tolist():
            swapped = bool(pairs and rng.integers(2))
            result.append(RatingStep(item, repeat, number, swapped))
    return result


LEVEL_KEYS = "1234567890qwertyiopd"
"""Keys for levels that are not single digits; none is the key of another action."""


@dataclass(frozen=True, slots=True)
class RatingChoice:
    """One option that a rater can choose."""

    value: str
    """The value that a form sends."""
    label: str
    """The text of the button."""
    keys: tuple[str, ...]
    """The keys that choose it."""
    name: str = ""
    """The name of the level in the rubric."""
    means: str = ""
    """The explanation of the level."""


@dataclass(frozen=True)
class RatingScale:
    """One scale on which answers or pairs are rated."""

    rubric: Rubric | None
    """The meaning of its levels; for pairs a guide to the choice, or ``None``."""
    pairs: bool = False
    """Whether one of two answers is chosen."""

    @property
    def name(self) -> str:
        """The name of the rubric; empty where there is none."""
        return self.rubric.name if self.rubric else ""

    @cached_property
    def choices(self) -> tuple[RatingChoice, ...]:
        """The levels, the highest first; for pairs the sides and a tie."""
        if self.pairs or self.rubric is None:
            return (
                RatingChoice("first", "First", ("ArrowLeft", "1"), means="the first is better"),
                RatingChoice("tie", "Tie", ("t", "0"), means="neither is better"),
                RatingChoice("second", "Second", ("ArrowRight", "2"), means="the second is better"),
            )
        levels = list(self.rubric.levels)
        if self.rubric.ordinal:
            # Nominal levels keep the order of the rubric.
            levels.sort(key=lambda level: -level.value)
        digits = all(level.label.isdigit() and len(level.label) == 1 for level in levels)
        keys = [level.label for level in levels] if digits else LEVEL_KEYS
        return tuple(
            RatingChoice(level.label, level.label, (keys[place],), level.name, level.means)
            for place, level in enumerate(levels)
        )

    @property
    def facts(self) -> Mapping[str, Any]:
        """The description of this scale in the first line of the file of ratings."""
        rubric = self.rubric
        facts: dict[str, Any] = {
            "rubric": f"{rubric.name}/{rubric.version}" if rubric else None,
            "choices": [choice.value for choice in self.choices],
        }
        if rubric is not None and not self.pairs and rubric.ordinal and not rubric.numeric:
            # Words with an order: the file must say which is higher.
            facts["levels"] = sorted(rubric.values, key=rubric.values.__getitem__)
        return facts

    def encode(self, step: RatingStep, choice: str) -> str | int:
        """Convert a choice to its stored form: a number, a word, or for pairs ``a``, ``b``,
        ``tie``."""
        if self.pairs:
            if choice == "tie":
                return choice
            # What is stored does not depend on which side was shown first.
            return "a" if (choice == "first") != step.swapped else "b"
        return int(choice) if self.rubric is not None and self.rubric.numeric else choice

    def decode(self, step: RatingStep, stored: object) -> str | None:
        """Convert a stored rating back to a choice; ``None`` if no choice is stored like this."""
        return next(
            (choice.value for choice in self.choices if self.encode(step, choice.value) == stored),
            None,
        )

    def parse_cell(self, text: str) -> str | None:
        """Parse the cell of a sheet: a level, its name, or a number such as 4.0."""
        if self.pairs or self.rubric is None:
            values = [choice.value for choice in self.choices]
            return text.lower() if text.lower() in values else None
        return self.rubric.label_of(text)


RATER_NAME = re.compile(r"[\w-][\w.-]{,39}")


@dataclass(frozen=True)
class AnnotateOptions:
    """What raters see, and who rates what: the options of ``annotate``."""

    raters: Sequence[str]
    rubrics: Sequence[Rubric]
    gold: bool | None = None
    together: bool = False
    double: float = 1.0
    again: float = 0.0
    per_group: int | None = None
    seed: int = 0
    reading: RatingInputOptions = field(default_factory=RatingInputOptions)
    plan: LabelPlan | None = None

    def __post_init__(self) -> None:
        for name in self.raters:
            if not RATER_NAME.fullmatch(name):
                raise UsageError(
                    "--rater: expected up to 40 letters, digits, _, - or . (not first), got "
                    f"{name[:50]!r}"
                )
        if not self.raters:
            raise UsageError("expected --rater NAME, once per person")
        # Sheets are files named after raters, and some file systems ignore case.
        if len({name.casefold() for name in self.raters}) < len(self.raters):
            raise UsageError(f"--rater: two raters have the same name ({', '.join(self.raters)})")
        names = [rubric.name for rubric in self.rubrics]
        if len(set(names)) < len(names):
            raise UsageError(f"--rubric: two rubrics have the same name ({', '.join(names)})")
        if self.plan is not None and (self.again or self.per_group):
            option = "--again" if self.again else "--per-group"
            raise UsageError(
                f"{option}: the plan fixes what is rated, and in which order; leave it out"
            )
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
class AnnotationProject:
    """The answers to rate, and which rater is asked which of them in which order."""

    options: AnnotateOptions
    material: RatingMaterial
    pairs: bool = False

    @property
    def items(self) -> Sequence[RatingItem]:
        """All items that can be rated."""
        return self.material.items

    @cached_property
    def scales(self) -> tuple[RatingScale, ...]:
        """The scales on which each answer is rated, one for each rubric."""
        return tuple(RatingScale(rubric, self.pairs) for rubric in self.options.rubrics or (None,))

    @cached_property
    def pages(self) -> list[tuple[int, ...]]:
        """The places of the items on each page; with ``per_group``, of the pages that were
        drawn."""
        options, items = self.options, self.items
        if options.plan is not None:
            return _build_planned_pages(options.plan, items, together=options.together)
        by_question: dict[Any, list[int]] = {}
        for place, item in enumerate(items):
            key = item.question_key if options.together else place
            by_question.setdefault(key, []).append(place)
        pages = [tuple(places) for places in by_question.values()]
        if options.per_group is None:
            return pages
        by_model = not (options.together or self.pairs)
        # Pages that show several models are grouped by domain alone.
        groups = [(items[p[0]].model if by_model else "", items[p[0]].domain) for p in pages]
        chosen = draw_per_group(groups, options.per_group, options.seed)
        return [pages[place] for place in chosen]

    @cached_property
    def steps(self) -> Mapping[str, Sequence[RatingStep]]:
        """The steps of each rater, in order."""
        options, pages, seed = self.options, self.pages, self.options.seed
        division = len(pages), options.raters, options.double, seed
        if options.plan is not None:
            # A plan grows while people rate, so the division must not depend on its length.
            return {
                rater: build_steps_in_order(pages, numbers, seed)
                for rater, numbers in divide_growing_pages(*division).items()
            }
        result = {}
        for rater, numbers in divide_pages(*division).items():
            pages_of_rater = [pages[number] for number in numbers]
            result[rater] = build_steps(
                pages_of_rater, rater, options.again, seed, pairs=self.pairs
            )
        return result

    @property
    def start(self) -> dict[str, Any]:
        """The first line of the file of ratings: the settings that must match to continue it."""
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
            # A single scale is described in the line itself, several by their names.
            line |= scales[0].facts
        else:
            line["rubrics"] = {scale.name: scale.facts for scale in scales}
        # Where answers are divided, another list of raters would divide them in another way.
        if options.double < 1:
            line["raters"] = list(options.raters)
        if options.plan is not None:
            line |= {"plan": options.plan.name, "chances": options.plan.start["chances"]}
        return line

    def row_key(self, rater: str, step: int) -> str:
        """Return the key of a step in a sheet, which differs from the keys of all other
        projects."""
        # The key contains the settings, so rows of another project are recognised.
        text = json.dumps([self.start, rater, step], sort_keys=True)
        return "k" + hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _build_planned_pages(
    plan: LabelPlan, items: Sequence[RatingItem], *, together: bool
) -> list[tuple[int, ...]]:
    """Build the pages of a plan from the items: one answer a page, or all answers of a draw."""
    # Answers of a plan may be missing here, when only one of its runs is rated.
    places = {item.id: place for place, item in enumerate(items)}
    pages: list[tuple[int, ...]] = []
    for draw in plan.draws:
        result = []
        for sample, model in draw.answers:
            place = places.get(sample)
            model_of_item = "" if place is None else items[place].model
            # A plan or an input without models matches by id alone.
            if place is not None and (not model or not model_of_item or model == model_of_item):
                result.append(place)
        pages += [tuple(result)] if together and result else [(place,) for place in result]
    return pages


def open_project(
    source: Path | None, options: AnnotateOptions, pairs: tuple[Path, Path] | None = None
) -> AnnotationProject:
    """Read the answers to rate, and check that the options fit them.

    Raises:
        UsageError: the options contradict each other, or do not fit the input.
        BadInputError, InputError, RunFolderError: the input cannot be read.
    """
    # Exactly one of the two must be given.
    if (source is None) == (pairs is None):
        raise UsageError("expected either a file or a run to rate, or two with --pairs")
    if pairs is not None:
        if options.plan is not None:
            raise UsageError(
                "--plan: names answers of one input, so it cannot be used with --pairs"
            )
        if len(options.rubrics) > 1:
            raise UsageError(
                "--rubric: with --pairs expected at most one, as a guide to the choice"
            )
        if options.together:
            raise UsageError("--together: a pair is shown together anyway; leave it out")
        material = read_answer_pairs(*pairs, options.reading)
    else:
        if not options.rubrics:
            raise UsageError("expected at least one --rubric")
        assert source is not None
        material = read_single_answers(source, options.reading)
    project = AnnotationProject(options, material, pairs is not None)
    if options.plan is not None and not project.pages:
        raise InputError(
            f"{options.plan.path}: names no answer of {source}; rate the run of the plan"
        )
    if options.shows_gold and not any(item.golds for item in project.items):
        guided = next((rubric.name for rubric in options.rubrics if "gold" in rubric.shows), "")
        source_of_gold = "--gold" if options.gold else f"the rubric {guided}"
        raise UsageError(
            f"{source_of_gold}: shows gold answers, but no sample has `answers` or `claims`; "
            "choose another --rubric, or add --no-gold"
        )
    # A rater without a page would only see an empty link.
    if empty := [rater for rater, steps_of_rater in project.steps.items() if not steps_of_rater]:
        raise UsageError(f"{', '.join(empty)}: no answers are left to rate; name fewer raters")
    return project
