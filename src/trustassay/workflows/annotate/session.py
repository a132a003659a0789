"""What raters do: the file of ratings, what each did so far and does next."""

import asyncio
import errno
import fcntl
import json
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trustassay.data.journal import ACTION, BEGINNING, RUBRIC, SKIP, UNDO, Journal, read_journal
from trustassay.data.records import InputError
from trustassay.files import DiskFullError, is_full, named
from trustassay.sample import clean
from trustassay.workflows.annotate.project import Project, Scale, Step


class RatingsFile:
    """Appends lines to a file that this process alone holds, until it is closed.

    Lines that arrive while others are written are written together: one wait for the disk serves
    many raters.
    """

    def __init__(self, path: Path, wait_s: float = 0.0) -> None:
        """Open and claim a file, or a new one; InputError: another process holds it, after
        ``wait_s`` seconds still.
        """
        self.path = path
        with named(path):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        end = time.monotonic() + wait_s
        while not self._try_lock():
            if time.monotonic() < end:
                time.sleep(0.01)
                continue
            os.close(self._file)
            raise InputError(
                f"{path}: another process writes to this file; end it, or choose another --out"
            )
        self._size = os.fstat(self._file).st_size
        self._queued_lines: list[tuple[bytes, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    def _try_lock(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def begin(self, start: Mapping[str, Any]) -> Journal:
        """Return what the file holds; a line that a killed process left unfinished is cut off. A
        new file gets its first line.

        Raises:
            InputError: it is another kind of file, damaged, or of another input or other options.
            OSError: it cannot be written.
        """
        with self.path.open("rb") as file:
            beginning = file.read(len(BEGINNING))
        if not BEGINNING.startswith(beginning):
            raise InputError(
                f"{self.path}: not a file that `annotate` wrote; nothing was changed; choose "
                "another --out"
            )
        journal = read_journal(self.path)
        if journal.start:
            self._check_start(journal.start, start)
        with named(self.path):
            if journal.sound < self._size:
                os.ftruncate(self._file, journal.sound)
                self._size = journal.sound
        if not journal.start:
            self.write(encoded(start))
            self._sync_folder()
        return journal

    def _check_start(self, result: Mapping[str, Any], start: Mapping[str, Any]) -> None:
        if result.get("input") != start["input"]:
            raise InputError(
                f"{self.path}: holds ratings of another input, or of an earlier state of it; "
                "choose another --out"
            )
        different = [
            f"{name} {result.get(name)!r}, now {start.get(name)!r}"
            for name in {**result, **start}
            if result.get(name) != start.get(name)
        ]
        if different:
            raise InputError(
                f"{self.path}: was made with {'; '.join(different)}; choose another --out, or the "
                "options that it was made with"
            )

    def _sync_folder(self) -> None:
        """Let a new file's name survive a power cut, as its content does."""
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def write(self, lines: bytes) -> None:
        """Write whole lines, and return when they are on disk.

        Raises:
            DiskFullError: there is no room; no part of them is left.
            OSError: the file cannot be written, or is not the one that this process opened.
        """
        with named(self.path):
            self._check_unchanged()
            try:
                if os.write(self._file, lines) != len(lines):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(self._file)
            except OSError as error:
                os.ftruncate(self._file, self._size)
                if is_full(error):
                    raise DiskFullError(self.path) from None
                raise
        self._size += len(lines)

    def _check_unchanged(self) -> None:
        """Raise an :class:`OSError` unless the file stands under its name as it was written."""
        opened_file = os.fstat(self._file)
        if not os.path.samestat(opened_file, self.path.stat()):
            raise OSError(errno.ESTALE, "it was replaced by another file; restore it", self.path)
        if opened_file.st_size != self._size:
            message = "something else changed it; end this process, look at it and run the same"
            raise OSError(errno.ESTALE, f"{message} command again", self.path)

    async def append(self, line: Mapping[str, Any]) -> None:
        """Store one line; it is on disk when this returns; OSError: it could not be stored."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queued_lines.append((encoded(line), stored))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_waiting())
        await stored

    async def _write_waiting(self) -> None:
        while self._queued_lines:
            batch, self._queued_lines = self._queued_lines, []
            error = None
            try:
                await asyncio.to_thread(self.write, b"".join(line for line, _ in batch))
            except OSError as failed:
                error = failed
            for stored in (future for _, future in batch if not future.done()):
                if error:
                    stored.set_exception(error)
                else:
                    stored.set_result(None)

    async def drain(self) -> None:
        """Wait until everything that was appended is on disk."""
        if self._writing is not None:
            await self._writing

    def close(self) -> None:
        """Release the file."""
        os.close(self._file)


def encoded(line: Mapping[str, Any]) -> bytes:
    """Return the line of a file of JSON Lines."""
    return json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n"


LONGEST_NOTE = 2000
"""Characters of a note."""


class NotOfferedError(ValueError):
    """A rater's request names a step or a choice that was not on offer."""


@dataclass(frozen=True, slots=True)
class State:
    """What a rater chose on a scale for a step, ``None`` where it was skipped, and a note."""

    choice: str | None
    note: str = ""


@dataclass
class RaterState:
    """One rater's steps, and the ratings asked for: ``scales`` of each step, numbered through, so
    that rating ``r`` is of the step ``r // scales`` on the scale ``r % scales``.

    ``done`` holds those given and skipped, the latest one last; ``undone`` what was taken back, for
    the note in it.
    """

    name: str
    steps: Sequence[Step]
    scales: int = 1
    done: dict[int, State] = field(default_factory=dict)
    undone: dict[int, State] = field(default_factory=dict)
    _first_open: int = 0

    @property
    def next(self) -> int | None:
        """The rating to give next: the first one that is open; ``None`` at the end."""
        while self._first_open in self.done:
            self._first_open += 1
        return self._first_open if self._first_open < len(self.steps) * self.scales else None

    @property
    def current(self) -> int | None:
        """The step to do next; ``None`` at the end."""
        return None if self.next is None else self.next // self.scales

    def ratings(self, step: int) -> range:
        """Return the numbers of a step's ratings."""
        return range(step * self.scales, (step + 1) * self.scales)

    def note(self, step: int) -> str:
        """Return the note on a step; also of ratings that were taken back."""
        states = [
            states_by_rating.get(rating)
            for states_by_rating in (self.done, self.undone)
            for rating in self.ratings(step)
        ]
        return next((state.note for state in reversed(states) if state and state.note), "")

    @property
    def last(self) -> int | None:
        """The rating that was given last, which can be undone."""
        return next(reversed(self.done), None)

    @property
    def finished(self) -> list[int]:
        """The steps that are rated on all scales or skipped, in order."""
        counts = Counter(rating // self.scales for rating in self.done)
        return sorted(step for step, count in counts.items() if count == self.scales)

    @property
    def skipped(self) -> list[int]:
        """The finished steps that were skipped, on one scale at least, in order."""
        steps_with_skip = {
            rating // self.scales for rating, state in self.done.items() if state.choice is None
        }
        return [step for step in self.finished if step in steps_with_skip]

    @property
    def rated(self) -> int:
        """How many steps are rated on all scales."""
        return len(self.finished) - len(self.skipped)

    def set(self, rating: int, state: State | None) -> None:
        """Take note of what was stored for a rating; ``None``: it was taken back."""
        former = self.done.pop(rating, None)
        if state is not None:
            self.done[rating] = state
            self.undone.pop(rating, None)
        elif former is not None:
            self.undone[rating] = former
            self._first_open = min(self._first_open, rating)


class Session:
    """The raters of a project, and the file that holds what they do."""

    def __init__(self, project: Project, file: RatingsFile, journal: Journal) -> None:
        """Go on with what the file holds; InputError: a line belongs to nothing that was asked."""
        self.project, self._file = project, file
        self.scales = project.scales
        self.raters = {
            name: RaterState(name, steps, len(self.scales)) for name, steps in project.steps.items()
        }
        items = project.items
        places = {
            (name, items[step.item].id, step.repeat): place
            for name, rater in self.raters.items()
            for place, step in enumerate(rater.steps)
        }
        scales = {scale.name: place for place, scale in enumerate(self.scales)}
        for where, line in journal.lines:
            rater = line["rater"]
            if rater not in self.raters and "raters" not in project.start:
                continue  # a rater who takes no part this time
            step = places.get((rater, line["item"], line.get("repeat", 0)))
            if step is None:
                raise InputError(f"{where}: a rating of what {rater[:40]!r} was not asked to rate")
            scale = scales.get(str(line.get(RUBRIC))) if len(scales) > 1 else 0
            if scale is None:
                raise InputError(
                    f"{where}: {RUBRIC}: expected one of {', '.join(scales)}, got "
                    f"{str(line.get(RUBRIC))[:40]!r}"
                )
            rating = self.raters[rater].ratings(step)[scale]
            self.raters[rater].set(rating, self._parse_state(where, rater, rating, line))

    def _parse_state(
        self, where: str, rater: str, rating: int, line: Mapping[str, Any]
    ) -> State | None:
        if line.get(ACTION) == UNDO:
            return None
        note = str(line.get("note") or "")
        if line.get(ACTION) == SKIP:
            return State(None, note)
        step, scale = self._step_and_scale(rater, rating)
        choice = scale.choice_of(step, line.get("rating"))
        if choice is None:
            raise InputError(f"{where}: rating: {str(line.get('rating'))[:40]!r} is not a level")
        return State(choice, note)

    def _step_and_scale(self, rater: str, rating: int) -> tuple[Step, Scale]:
        step, scale = divmod(rating, len(self.scales))
        return self.raters[rater].steps[step], self.scales[scale]

    def offered(self, choice: str) -> tuple[int, str]:
        """Return the place of a choice's scale, and its value there.

        Raises:
            NotOfferedError: there is no such choice.
        """
        several = len(self.scales) > 1
        name, _, value = choice.partition("/") if several else (self.scales[0].name, "", choice)
        for place, scale in enumerate(self.scales):
            if scale.name == name and value in {
                offered_choice.value for offered_choice in scale.choices
            }:
                return place, value
        raise NotOfferedError("that is not one of the levels")

    async def rate(self, rater: str, step: int, choice: str, note: str = "") -> bool:
        """Store a rating; return whether it was new. Of several rubrics ``choice`` names its own:
        ``truthfulness/4``.

        Raises:
            NotOfferedError: there is no such step or choice.
            OSError: it could not be stored; nothing has changed then.
        """
        scale, value = self.offered(choice)
        rating = self._ratings_of_step(rater, step)[scale]
        return await self._store(rater, rating, State(value, tidy(note)))

    async def skip(self, rater: str, step: int, note: str = "") -> None:
        """Leave a step without the ratings that it lacks, without all if it has all."""
        result, ratings = self.raters[rater], self._ratings_of_step(rater, step)
        for rating in [
            rating_of_step for rating_of_step in ratings if rating_of_step not in result.done
        ] or ratings:
            await self._store(rater, rating, State(None, tidy(note)))

    async def undo(self, rater: str, rating: int) -> None:
        """Take back what the rater did last, if that was ``rating``: one rating, or the skip of a
        step. A second request for the same changes nothing.

        Raises:
            OSError: that could not be stored; nothing has changed then.
        """
        result = self.raters[rater]
        if result.last != rating:
            return
        skip = result.done[rating].choice is None
        for rating_of_step in result.ratings(rating // result.scales) if skip else (rating,):
            if rating_of_step == rating or (
                rating_of_step in result.done and result.done[rating_of_step].choice is None
            ):
                await self._take_back(rater, rating_of_step)

    async def reopen(self, rater: str) -> None:
        """Ask again for all that the rater skipped; errors as of :meth:`undo`."""
        states_by_rating = self.raters[rater].done
        for rating in sorted(
            number for number, state in states_by_rating.items() if state.choice is None
        ):
            await self._take_back(rater, rating)

    async def drain(self) -> None:
        """Wait until everything is on disk that was sent there."""
        await self._file.drain()

    def _ratings_of_step(self, rater: str, step: int) -> range:
        if not 0 <= step < len(self.raters[rater].steps):
            raise NotOfferedError("there is no such answer to rate")
        return self.raters[rater].ratings(step)

    async def _take_back(self, rater: str, rating: int) -> None:
        await self._file.append(self.line(rater, rating, State(None), action=UNDO))
        self.raters[rater].set(rating, None)

    async def _store(self, rater: str, rating: int, state: State) -> bool:
        result = self.raters[rater]
        if result.done.get(rating) == state:
            return False  # a request that is sent again, since no reply came
        await self._file.append(self.line(rater, rating, state))
        result.set(rating, state)
        return True

    def line(
        self, rater: str, rating: int, state: State, *, action: str | None = None
    ) -> dict[str, Any]:
        """Return the line that says what a rater did."""
        step, scale = self._step_and_scale(rater, rating)
        item = self.project.items[step.item]
        more: dict[str, object] = {RUBRIC: scale.name} if len(self.scales) > 1 else {}
        if item.model:
            more["model"] = item.model
        if self.project.pairs:
            more["first"] = "b" if step.swapped else "a"
        value = None if state.choice is None else scale.stored(step, state.choice)
        return rating_line(
            item.id, rater, value, state.note, action=action, repeat=step.repeat, **more
        )


def rating_line(
    item: str,
    rater: str,
    rating: str | int | None,
    note: str = "",
    *,
    action: str | None = None,
    repeat: int = 0,
    **more: object,
) -> dict[str, Any]:
    """Return a line of a file of ratings; without a rating it is a skip, or another ``action``."""
    line = {"item": item, "rater": rater, "rating": rating, "repeat": repeat, **more}
    line |= {"note": note, "time": datetime.now(UTC).isoformat(timespec="milliseconds")}
    if rating is None:
        line[ACTION] = action or SKIP
    return line


def tidy(note: str) -> str:
    """Return a note as it is stored."""
    return clean(note).replace("\r\n", "\n").strip()[:LONGEST_NOTE]
