"""What raters did so far, what each does next, and what that adds to the file of ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from trustassay.data.journal import ACTION, SKIP, UNDO, Journal
from trustassay.data.reading import InputError
from trustassay.sample import clean
from trustassay.workflows.annotate.plan import Step
from trustassay.workflows.annotate.project import Project
from trustassay.workflows.annotate.ratings_file import RatingsFile

__all__ = ["NotOfferedError", "RaterState", "Session", "State"]

LONGEST_NOTE = 2000
"""Characters of a note."""


class NotOfferedError(ValueError):
    """A rater's request names a step or a choice that was not on offer."""


@dataclass(frozen=True, slots=True)
class State:
    """What a rater made of a step: the choice, ``None`` where it was skipped, and a note."""

    choice: str | None
    note: str = ""


@dataclass
class RaterState:
    """One rater's steps. ``done`` holds those rated and skipped, the latest one last; ``undone``
    what was taken back, for the note in it.
    """

    name: str
    steps: Sequence[Step]
    done: dict[int, State] = field(default_factory=dict)
    undone: dict[int, State] = field(default_factory=dict)
    _first: int = 0

    @property
    def current(self) -> int | None:
        """The step to do next: the first one that is open; ``None`` at the end."""
        while self._first in self.done:
            self._first += 1
        return self._first if self._first < len(self.steps) else None

    @property
    def last(self) -> int | None:
        """The step that was done last, which can be undone."""
        return next(reversed(self.done), None)

    @property
    def skipped(self) -> list[int]:
        """The steps that were skipped, in order."""
        return sorted(step for step, state in self.done.items() if state.choice is None)

    @property
    def rated(self) -> int:
        """How many steps are rated."""
        return sum(state.choice is not None for state in self.done.values())

    def set(self, step: int, state: State | None) -> None:
        """Take note of what was stored for a step; ``None``: it was taken back."""
        former = self.done.pop(step, None)
        if state is not None:
            self.done[step] = state
            self.undone.pop(step, None)
        elif former is not None:
            self.undone[step] = former
            self._first = min(self._first, step)


class Session:
    """The raters of a project, and the file that holds what they do."""

    def __init__(self, project: Project, file: RatingsFile, journal: Journal) -> None:
        """Go on with what the file holds.

        Raises:
            InputError: a line of it belongs to nothing that was asked.
        """
        self.project, self._file = project, file
        self.raters = {name: RaterState(name, steps) for name, steps in project.steps.items()}
        self._take_up(journal)

    def _take_up(self, journal: Journal) -> None:
        items = self.project.items
        places = {
            (name, items[step.item].id, step.repeat): place
            for name, rater in self.raters.items()
            for place, step in enumerate(rater.steps)
        }
        known = set(self.raters)
        for where, line in journal.lines:
            rater = line["rater"]
            if rater not in known and "raters" not in self.project.start:
                continue  # a rater who takes no part this time
            place = places.get((rater, line["item"], line.get("repeat", 0)))
            if place is None:
                raise InputError(f"{where}: a rating of what {rater[:40]!r} was not asked to rate")
            self.raters[rater].set(place, self._state(where, rater, place, line))

    def _state(self, where: str, rater: str, place: int, line: Mapping[str, Any]) -> State | None:
        if line.get(ACTION) == UNDO:
            return None
        note = str(line.get("note") or "")
        if line.get(ACTION) == SKIP:
            return State(None, note)
        step = self.raters[rater].steps[place]
        choice = self.project.choice_of(step, line.get("rating"))
        if choice is None:
            raise InputError(f"{where}: rating: {str(line.get('rating'))[:40]!r} is not on offer")
        return State(choice, note)

    async def rate(self, rater: str, step: int, choice: str, note: str = "") -> bool:
        """Store a rating; return whether it was new.

        Raises:
            NotOfferedError: there is no such step or choice.
            OSError: it could not be stored; nothing has changed then.
        """
        if choice not in {one.value for one in self.project.choices}:
            raise NotOfferedError("that is not one of the levels")
        return await self._store(rater, step, State(choice, _tidy(note)))

    async def skip(self, rater: str, step: int, note: str = "") -> bool:
        """Leave a step without a rating; as :meth:`rate`."""
        return await self._store(rater, step, State(None, _tidy(note)))

    async def undo(self, rater: str, step: int) -> None:
        """Take back what the rater did last, if that was ``step``; a second request for the same
        changes nothing.

        Raises:
            OSError: that could not be stored; nothing has changed then.
        """
        if self.raters[rater].last == step:
            await self._take_back(rater, step)

    async def reopen(self, rater: str) -> None:
        """Ask again for all that the rater skipped; errors as of :meth:`undo`."""
        for step in self.raters[rater].skipped:
            await self._take_back(rater, step)

    async def drain(self) -> None:
        """Wait until everything is on disk that was sent there."""
        await self._file.drain()

    async def _take_back(self, rater: str, step: int) -> None:
        await self._file.append(self.line(rater, step, State(None), action=UNDO))
        self.raters[rater].set(step, None)

    async def _store(self, rater: str, step: int, state: State) -> bool:
        found = self.raters[rater]
        if not 0 <= step < len(found.steps):
            raise NotOfferedError("there is no such answer to rate")
        if found.done.get(step) == state:
            return False  # a request that is sent again, since no reply came
        await self._file.append(self.line(rater, step, state))
        found.set(step, state)
        return True

    def line(
        self, rater: str, step: int, state: State, *, action: str | None = None
    ) -> dict[str, Any]:
        """Return the line that says what a rater did."""
        asked = self.raters[rater].steps[step]
        item = self.project.items[asked.item]
        line: dict[str, Any] = {
            "item": item.id,
            "rater": rater,
            "rating": None if state.choice is None else self.project.stored(asked, state.choice),
            "repeat": asked.repeat,
        }
        if item.model:
            line["model"] = item.model
        if self.project.pairs:
            line["first"] = "b" if asked.swapped else "a"
        line |= {"note": state.note, "time": datetime.now(UTC).isoformat(timespec="milliseconds")}
        if state.choice is None:
            line[ACTION] = action or SKIP
        return line


def _tidy(note: str) -> str:
    return clean(note).replace("\r\n", "\n").strip()[:LONGEST_NOTE]
