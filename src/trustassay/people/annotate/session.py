"""A rating session: the file of ratings, and what each rater has done and does next."""

import asyncio
import errno
import fcntl
import json
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trustassay.core.files import (
    DiskFullError,
    is_disk_full,
    is_foreign,
    name_in_errors,
    open_unlinked,
)
from trustassay.core.sample import clean
from trustassay.input.journal import ACTION, BEGINNING, RUBRIC, SKIP, UNDO, Journal, read_journal
from trustassay.input.records import InputError
from trustassay.people.annotate.project import AnnotationProject, RatingScale, RatingStep
from trustassay.people.label.plan import LabelPlan


class RatingsFile:
    """Appends lines to a file that is locked by this process until it is closed.

    Lines that arrive while others are being written are written together, so that many raters share
    one wait for the disk.
    """

    def __init__(self, path: Path, wait_s: float = 0.0, *, write_others: bool = True) -> None:
        """Open or create a file, and lock it.

        Args:
            path: the file; a symbolic link is not followed, as its folder may have been sent.
            wait_s: seconds to wait for the lock.
            write_others: whether the file may belong to another user.

        Raises:
            InputError: another process still holds the lock, or another user owns the file.
            OSError: it is a symbolic link or a pipe, or cannot be opened.
        """
        self.path = path
        # Before it is opened, which takes permissions from everybody but its owner.
        if not write_others and is_foreign(path):
            raise InputError(f"{path}: belongs to another user; add --write-others to write to it")
        with name_in_errors(path):
            # O_APPEND: every write goes to the end, whatever another process does.
            self._file = open_unlinked(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        end = time.monotonic() + wait_s
        while not self._try_lock():
            if time.monotonic() < end:
                time.sleep(0.01)
                continue
            os.close(self._file)
            raise InputError(
                f"{path}: another process is writing to this file; stop it, or choose another --out"
            )
        self._size = os.fstat(self._file).st_size
        self._queued_lines: list[tuple[bytes, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    def _try_lock(self) -> bool:
        try:
            # The lock ends with the process, so a crash leaves none behind.
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def begin(self, start: Mapping[str, Any]) -> Journal:
        """Read the file, cut off a line that a killed process left unfinished, or start a new file.

        Raises:
            InputError: it is another kind of file, damaged, or has another input or other options.
            OSError: it cannot be written.
        """
        # Checked before parsing: a user may name any file by mistake, and it must not be changed.
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
        with name_in_errors(self.path):
            # Only a last line without its end may be cut: it was never confirmed to the rater.
            if journal.sound_bytes < self._size:
                os.ftruncate(self._file, journal.sound_bytes)
                self._size = journal.sound_bytes
        if not journal.start:
            # Written and synchronised before the first rater sees a page.
            self.write(encode_line(start))
            self._sync_folder()
        return journal

    def _check_start(self, result: Mapping[str, Any], start: Mapping[str, Any]) -> None:
        if result.get("input") != start["input"]:
            raise InputError(
                f"{self.path}: holds ratings of another input, or of an earlier version of this "
                "one; choose another --out"
            )
        # Every difference is listed, so that the user can decide what to change back.
        different = [
            f"{name} {result.get(name)!r} (now {start.get(name)!r})"
            for name in {**result, **start}
            if result.get(name) != start.get(name)
        ]
        if different:
            raise InputError(
                f"{self.path}: was made with other options: {'; '.join(different)}; use the same "
                "options, or another --out"
            )

    def _sync_folder(self) -> None:
        """Make the name of a new file survive a power cut, as its content does."""
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def write(self, lines: bytes) -> None:
        """Write complete lines, and return when they are on disk.

        Raises:
            DiskFullError: there is no room; no part of the lines remains in the file.
            OSError: the file cannot be written, or is not the one that this process opened.
        """
        with name_in_errors(self.path):
            self._check_unchanged()
            try:
                # A full disk may accept a part of the bytes without an error.
                if os.write(self._file, lines) != len(lines):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(self._file)
            except OSError as error:
                # Remove what was written in part, so that the next line does not join it.
                os.ftruncate(self._file, self._size)
                if is_disk_full(error):
                    raise DiskFullError(self.path) from None
                raise
        self._size += len(lines)

    def _check_unchanged(self) -> None:
        """Raise :class:`OSError` if the file was replaced, moved or changed by something else."""
        opened_file = os.fstat(self._file)
        if not os.path.samestat(opened_file, self.path.stat()):
            raise OSError(errno.ESTALE, "it was replaced by another file; restore it", self.path)
        if opened_file.st_size != self._size:
            message = (
                "another program changed it; stop this process, check the file and run the same"
            )
            raise OSError(errno.ESTALE, f"{message} command again", self.path)

    async def append(self, line: Mapping[str, Any]) -> None:
        """Store one line; it is on disk when this returns; raises OSError if it could not be
        stored."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queued_lines.append((encode_line(line), stored))
        # A running task takes this line with its next batch.
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_waiting())
        await stored

    async def _write_waiting(self) -> None:
        while self._queued_lines:
            # Lines that arrive during the write go into a new list.
            batch, self._queued_lines = self._queued_lines, []
            error = None
            try:
                # In a thread: fsync takes milliseconds to seconds, and other raters must not wait.
                await asyncio.to_thread(self.write, b"".join(line for line, _ in batch))
            except OSError as failed:
                error = failed
            # A future may be cancelled, when its browser closed the connection; the line is stored
            # all the same.
            for stored in (future for _, future in batch if not future.done()):
                if error:
                    stored.set_exception(error)
                else:
                    stored.set_result(None)

    async def drain(self) -> None:
        """Wait until all appended lines are on disk."""
        if self._writing is not None:
            await self._writing

    def close(self) -> None:
        """Release the file."""
        os.close(self._file)


def encode_line(line: Mapping[str, Any]) -> bytes:
    """Encode a line of a file of JSON Lines."""
    return json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n"


MAX_NOTE_CHARS = 2000
"""Longest note, in characters."""


class NotOfferedError(ValueError):
    """A rater's request names a step or a choice that does not exist."""


@dataclass(frozen=True, slots=True)
class RatingState:
    """A rater's rating of a step on one scale."""

    choice: str | None
    """``None`` where the rating was skipped."""
    note: str = ""


@dataclass
class RaterState:
    """The steps of one rater, and the ratings so far.

    Each step has one rating for each scale. Ratings are numbered through: rating ``r`` is that of
    step ``r // scales`` on scale ``r % scales``.
    """

    name: str
    steps: Sequence[RatingStep]
    scales: int = 1
    """The number of scales."""
    states: dict[int, RatingState] = field(default_factory=dict)
    """Ratings that were given or skipped, the latest last."""
    undone_states: dict[int, RatingState] = field(default_factory=dict)
    """Ratings that were taken back; their notes are offered again."""
    _first_open: int = 0
    """No rating before this number is open."""

    @property
    def next(self) -> int | None:
        """The first open rating; ``None`` at the end."""
        # Ratings are mostly given in order, so the search continues where it stopped.
        while self._first_open in self.states:
            self._first_open += 1
        return self._first_open if self._first_open < len(self.steps) * self.scales else None

    @property
    def current(self) -> int | None:
        """The step of the first open rating; ``None`` at the end."""
        return None if self.next is None else self.next // self.scales

    def ratings(self, step: int) -> range:
        """Return the numbers of a step's ratings."""
        return range(step * self.scales, (step + 1) * self.scales)

    def note(self, step: int) -> str:
        """Return the note on a step, also from ratings that were taken back."""
        states = [
            states_by_rating.get(rating)
            for states_by_rating in (self.states, self.undone_states)
            for rating in self.ratings(step)
        ]
        return next((state.note for state in reversed(states) if state and state.note), "")

    @property
    def last(self) -> int | None:
        """The latest rating, which can be undone."""
        return next(reversed(self.states), None)

    @property
    def finished(self) -> list[int]:
        """The steps that are rated or skipped on all scales, in order."""
        counts = Counter(rating // self.scales for rating in self.states)
        return sorted(step for step, count in counts.items() if count == self.scales)

    @property
    def skipped(self) -> list[int]:
        """The finished steps that were skipped on at least one scale, in order."""
        steps_with_skip = {
            rating // self.scales for rating, state in self.states.items() if state.choice is None
        }
        return [step for step in self.finished if step in steps_with_skip]

    @property
    def rated(self) -> int:
        """The number of steps that are rated on all scales."""
        return len(self.finished) - len(self.skipped)

    def set(self, rating: int, state: RatingState | None) -> None:
        """Record what was stored for a rating; ``None`` means that it was taken back."""
        # Removed first, so that a changed rating moves to the end of the dictionary, which is the
        # order of undo.
        former = self.states.pop(rating, None)
        if state is not None:
            self.states[rating] = state
            self.undone_states.pop(rating, None)
        elif former is not None:
            self.undone_states[rating] = former
            # An undone rating is open again and comes first.
            self._first_open = min(self._first_open, rating)


class AnnotationSession:
    """The raters of a project, and the file that records what they do."""

    def __init__(self, project: AnnotationProject, file: RatingsFile, journal: Journal) -> None:
        """Restore the state from the file; raises InputError if a line fits no step."""
        self.project, self._file = project, file
        self.scales = project.scales
        self.raters = {
            name: RaterState(name, steps, len(self.scales)) for name, steps in project.steps.items()
        }
        items = project.items
        # Lines name items by id, so the file survives a change of the order of steps.
        places = {
            (name, items[step.item].id, step.repeat): place
            for name, rater in self.raters.items()
            for place, step in enumerate(rater.steps)
        }
        scales = {scale.name: place for place, scale in enumerate(self.scales)}
        for where, line in journal.lines:
            rater = line["rater"]
            if rater not in self.raters and "raters" not in project.start:
                # The rater takes no part this time; their ratings stay in the file.
                continue
            step = places.get((rater, line["item"], line.get("repeat", 0)))
            if step is None:
                raise InputError(f"{where}: {rater[:40]!r} was not asked to rate this answer")
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
    ) -> RatingState | None:
        if line.get(ACTION) == UNDO:
            return None
        note = str(line.get("note") or "")
        if line.get(ACTION) == SKIP:
            return RatingState(None, note)
        step, scale = self._step_and_scale(rater, rating)
        choice = scale.decode(step, line.get("rating"))
        if choice is None:
            raise InputError(f"{where}: rating: {str(line.get('rating'))[:40]!r} is not a level")
        return RatingState(choice, note)

    def _step_and_scale(self, rater: str, rating: int) -> tuple[RatingStep, RatingScale]:
        step, scale = divmod(rating, len(self.scales))
        return self.raters[rater].steps[step], self.scales[scale]

    def parse_choice(self, choice: str) -> tuple[int, str]:
        """Parse a choice: return the place of its scale, and its value there.

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
        raise NotOfferedError("this is not one of the levels")

    async def rate(self, rater: str, step: int, choice: str, note: str = "") -> bool:
        """Store a rating, and return whether it was new.

        With several rubrics, ``choice`` contains the rubric: ``truthfulness/4``.

        Raises:
            NotOfferedError: there is no such step or choice.
            OSError: it could not be stored; then nothing has changed.
        """
        scale, value = self.parse_choice(choice)
        rating = self._ratings_of_step(rater, step)[scale]
        return await self._store(rater, rating, RatingState(value, tidy_note(note)))

    async def skip(self, rater: str, step: int, note: str = "") -> None:
        """Skip the open ratings of a step, or all of them if none is open."""
        result, ratings = self.raters[rater], self._ratings_of_step(rater, step)
        for rating in [
            rating_of_step for rating_of_step in ratings if rating_of_step not in result.states
        ] or ratings:
            await self._store(rater, rating, RatingState(None, tidy_note(note)))

    async def undo(self, rater: str, rating: int) -> None:
        """Take back the rater's latest action if that was ``rating``: a rating, or the skip of a
        step.

        A repeated request changes nothing.

        Raises:
            OSError: it could not be stored; then nothing has changed.
        """
        result = self.raters[rater]
        # The button was pressed twice, or in an outdated tab.
        if result.last != rating:
            return
        # A skip covers all open scales of a step, and is undone as a whole.
        skip = result.states[rating].choice is None
        for rating_of_step in result.ratings(rating // result.scales) if skip else (rating,):
            if rating_of_step == rating or (
                rating_of_step in result.states and result.states[rating_of_step].choice is None
            ):
                await self._take_back(rater, rating_of_step)

    async def reopen(self, rater: str) -> None:
        """Ask again for everything that the rater skipped; raises the same errors as
        :meth:`undo`."""
        states_by_rating = self.raters[rater].states
        for rating in sorted(
            number for number, state in states_by_rating.items() if state.choice is None
        ):
            await self._take_back(rater, rating)

    def follow(self, plan: LabelPlan) -> None:
        """Go on with a plan that has grown; what was asked before keeps its place."""
        options = self.project.options
        if options.plan is None or len(plan.draws) > len(options.plan.draws):
            self.project = replace(self.project, options=replace(options, plan=plan))
            for name, steps in self.project.steps.items():
                self.raters[name].steps = steps

    async def drain(self) -> None:
        """Wait until everything that was sent to the file is on disk."""
        await self._file.drain()

    def _ratings_of_step(self, rater: str, step: int) -> range:
        if not 0 <= step < len(self.raters[rater].steps):
            raise NotOfferedError("there is no such answer to rate")
        return self.raters[rater].ratings(step)

    async def _take_back(self, rater: str, rating: int) -> None:
        await self._file.append(self.build_line(rater, rating, RatingState(None), action=UNDO))
        self.raters[rater].set(rating, None)

    async def _store(self, rater: str, rating: int, state: RatingState) -> bool:
        result = self.raters[rater]
        if result.states.get(rating) == state:
            # The browser sent the request again, since it got no reply.
            return False
        # Stored before it is recorded in memory: the page never shows what a crash could lose.
        await self._file.append(self.build_line(rater, rating, state))
        result.set(rating, state)
        return True

    def build_line(
        self, rater: str, rating: int, state: RatingState, *, action: str | None = None
    ) -> dict[str, Any]:
        """Build the line that records an action of a rater."""
        step, scale = self._step_and_scale(rater, rating)
        item = self.project.items[step.item]
        more: dict[str, object] = {RUBRIC: scale.name} if len(self.scales) > 1 else {}
        if item.model:
            more["model"] = item.model
        if self.project.pairs:
            more["first"] = "b" if step.swapped else "a"
        value = None if state.choice is None else scale.encode(step, state.choice)
        return build_rating_line(
            item.id, rater, value, state.note, action=action, repeat=step.repeat, **more
        )


def build_rating_line(
    item: str,
    rater: str,
    rating: str | int | None,
    note: str = "",
    *,
    action: str | None = None,
    repeat: int = 0,
    **more: object,
) -> dict[str, Any]:
    """Build a line of a file of ratings; without a rating it is a skip, or another ``action``."""
    line = {"item": item, "rater": rater, "rating": rating, "repeat": repeat, **more}
    line |= {"note": note, "time": datetime.now(UTC).isoformat(timespec="milliseconds")}
    if rating is None:
        line[ACTION] = action or SKIP
    return line


def tidy_note(note: str) -> str:
    """Normalise a note to the form in which it is stored."""
    return clean(note).replace("\r\n", "\n").strip()[:MAX_NOTE_CHARS]
