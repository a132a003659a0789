"""The pages that a rater sees, as HTML: blind to models, scores and ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from trustassay.sample import Document, is_blank
from trustassay.show import text
from trustassay.workflows.annotate import markdown
from trustassay.workflows.annotate.plan import Step
from trustassay.workflows.annotate.project import Project
from trustassay.workflows.annotate.scales import Scale
from trustassay.workflows.annotate.session import LONGEST_NOTE, RaterState

__all__ = ["asset", "list_page", "page"]

STYLES = (("trustassay.show", "report.css"), (__package__, "annotate.css"))
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Shown:
    """One answer on the page. given: what the rater chose for it. current: it is rated now."""

    title: str
    text: str
    current: bool
    given: str | None = None

    @property
    def blank(self) -> bool:
        """Whether there is nothing to read in it."""
        return is_blank(self.text)


@dataclass(frozen=True, slots=True)
class ShownScale:
    """A scale on the page. prefix: of the values of its choices, where there are several scales.
    given: the choice that is stored, ``former`` one that was taken back. active: keys are for it.
    """

    scale: Scale
    prefix: str
    given: str | None
    former: str | None
    active: bool


@dataclass(frozen=True, slots=True)
class Task:
    """What the page asks: the question with its answers, one of which is rated now. again: the
    rater went back to it.
    """

    step: int
    question: str
    answers: Sequence[Shown]
    scales: Sequence[ShownScale]
    golds: Sequence[Sequence[str]]
    documents: Sequence[Document]
    note: str
    again: bool


@dataclass(frozen=True, slots=True)
class Listed:
    """An answer in the list of those that a rater has rated or skipped."""

    step: int
    question: str
    answer: str
    ratings: str
    note: str


def page(
    project: Project, rater: RaterState, token: str, step: int | None = None, scale: int = 0
) -> str:
    """Return the page of a rater as it is now, or that of an earlier ``step``."""
    task = _task(project, rater, step, scale)
    return _rendered("annotate.html.jinja", project, rater, token, task=task)


def list_page(project: Project, rater: RaterState, token: str) -> str:
    """Return the list of all answers that a rater has rated or skipped, the latest shown first."""
    steps = sorted({rating // rater.scales for rating in rater.done}, reverse=True)
    listed = [_listed(project, rater, step) for step in steps]
    return _rendered("ratings.html.jinja", project, rater, token, listed=listed)


def _rendered(
    template: str, project: Project, rater: RaterState, token: str, **more: object
) -> str:
    return (
        _environment()
        .get_template(template)
        .render(
            rater=rater,
            base=f"/{token}",
            pairs=project.pairs,
            shows_gold=project.options.shows_gold,
            total=len(rater.steps),
            longest_note=LONGEST_NOTE,
            **more,
        )
    )


def _listed(project: Project, rater: RaterState, step: int) -> Listed:
    asked = rater.steps[step]
    item = project.items[asked.item]
    answers = reversed(item.answers) if asked.swapped else item.answers
    return Listed(
        step, item.question, " | ".join(answers), _given(project, rater, step), rater.note(step)
    )


def _given(project: Project, rater: RaterState, step: int) -> str:
    """Return what a rater gave a step, on all scales; empty where that is nothing yet."""
    states = [rater.done.get(rating) for rating in rater.ratings(step)]
    if not any(states):
        return ""
    words = ["open" if one is None else one.choice or "skipped" for one in states]
    if len(set(words)) == 1 and (len(words) == 1 or words[0] == "skipped"):
        return words[0]
    named = zip(project.scales, words, strict=True)
    return ", ".join(f"{scale.name} {word}" for scale, word in named)


@cache
def asset(name: str) -> str:
    """Return the style sheet (that of the report comes first) or the script of the page."""
    sources = STYLES if name == "annotate.css" else ((__package__, name),)
    return "\n".join(
        files(package).joinpath("templates", file).read_text(encoding="utf-8")
        for package, file in sources
    )


def _task(project: Project, rater: RaterState, step: int | None, scale: int) -> Task | None:
    current = rater.current if step is None else step
    if current is None:
        return None
    asked = rater.steps[current]
    item = project.items[asked.item]
    if project.pairs:
        first, second = reversed(item.answers) if asked.swapped else item.answers
        answers = [Shown("First", first, current=True), Shown("Second", second, current=True)]
    else:
        answers = _answers(project, rater, current)
    return Task(
        current,
        item.question,
        answers,
        _scales(project, rater, current, scale),
        item.golds if project.options.shows_gold else (),
        item.documents,
        rater.note(current),
        step is not None,
    )


def _scales(project: Project, rater: RaterState, step: int, scale: int) -> list[ShownScale]:
    """Return a step's scales: active is the first open one, else the one at place ``scale``."""
    ratings = rater.ratings(step)
    still = [place for place, rating in enumerate(ratings) if rating not in rater.done]
    active = still[0] if still else scale
    found = []
    for place, (rating, one) in enumerate(zip(ratings, project.scales, strict=True)):
        given, former = rater.done.get(rating), rater.undone.get(rating)
        found.append(
            ShownScale(
                one,
                f"{one.name}/" if len(ratings) > 1 else "",
                given.choice if given else None,
                former.choice if former else None,
                place == active,
            )
        )
    return found


def _answers(project: Project, rater: RaterState, current: int) -> list[Shown]:
    """Return the answers that are shown together, in the order in which they are asked for."""
    same = [place for place, step in _around(rater.steps, current)]
    found = []
    for letter, place in enumerate(same):
        title = f"Answer {LETTERS[letter] if letter < len(LETTERS) else letter + 1}"
        found.append(
            Shown(
                title if len(same) > 1 else "Answer",
                project.items[rater.steps[place].item].answers[0],
                place == current,
                None if place == current else _given(project, rater, place) or None,
            )
        )
    return found


def _around(steps: Sequence[Step], current: int) -> list[tuple[int, Step]]:
    """Return the steps of the page of step ``current``: they follow each other."""
    page = steps[current].page
    first = current
    while first > 0 and steps[first - 1].page == page:
        first -= 1
    end = current
    while end < len(steps) and steps[end].page == page:
        end += 1
    return [(place, steps[place]) for place in range(first, end)]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        finalize=text.finalized,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"visible": text.visible, "amount": text.amount, "cut": text.cut}
    environment.filters["markdown"] = markdown.shown
    return environment
