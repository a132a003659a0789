"""The page that a rater sees, as HTML: blind to models, scores and ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from trustassay.report import text
from trustassay.sample import Document, is_blank
from trustassay.workflows.annotate.plan import Step
from trustassay.workflows.annotate.project import Project
from trustassay.workflows.annotate.session import LONGEST_NOTE, RaterState

__all__ = ["asset", "page"]

STYLES = (("trustassay.report", "report.css"), (__package__, "annotate.css"))
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
class Task:
    """What the page asks: the question with its answers, one of which is rated now."""

    step: int
    question: str
    answers: Sequence[Shown]
    golds: Sequence[Sequence[str]]
    documents: Sequence[Document]
    note: str = ""
    former: str | None = None


def page(project: Project, rater: RaterState, token: str) -> str:
    """Return the page of a rater as it is now."""
    return (
        _environment()
        .get_template("annotate.html.jinja")
        .render(
            task=_task(project, rater),
            rater=rater,
            base=f"/{token}",
            rubric=project.options.rubric,
            choices=project.choices,
            pairs=project.pairs,
            shows_gold=project.options.shows_gold,
            total=len(rater.steps),
            longest_note=LONGEST_NOTE,
        )
    )


@cache
def asset(name: str) -> str:
    """Return the style sheet (that of the report comes first) or the script of the page."""
    sources = STYLES if name == "annotate.css" else ((__package__, name),)
    return "\n".join(
        files(package).joinpath("templates", file).read_text(encoding="utf-8")
        for package, file in sources
    )


def _task(project: Project, rater: RaterState) -> Task | None:
    current = rater.current
    if current is None:
        return None
    step = rater.steps[current]
    item = project.items[step.item]
    if project.pairs:
        first, second = reversed(item.answers) if step.swapped else item.answers
        answers = [Shown("First", first, current=True), Shown("Second", second, current=True)]
    else:
        answers = _answers(project, rater, current)
    former = rater.undone.get(current)
    return Task(
        current,
        item.question,
        answers,
        item.golds if project.options.shows_gold else (),
        item.documents,
        former.note if former else "",
        former.choice if former else None,
    )


def _answers(project: Project, rater: RaterState, current: int) -> list[Shown]:
    """Return the answers that are shown together, in the order in which they are asked for."""
    same = [place for place, step in _around(rater.steps, current)]
    found = []
    for letter, place in enumerate(same):
        state = rater.done.get(place)
        title = f"Answer {LETTERS[letter] if letter < len(LETTERS) else letter + 1}"
        found.append(
            Shown(
                title if len(same) > 1 else "Answer",
                project.items[rater.steps[place].item].answers[0],
                place == current,
                None if state is None else state.choice or "skipped",
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
    return environment
