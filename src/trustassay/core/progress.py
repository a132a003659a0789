"""Progress of long work: a bar in a terminal and in a notebook, plain lines elsewhere.

It goes to standard error. In a notebook one display below the cell is updated, and emptied at the
end.
"""

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from html import escape
from types import TracebackType
from typing import Any, Self

from trustassay.core.remaining_time import RemainingTime, describe_rate, describe_seconds_left

LINE_EVERY_S = 5.0
"""Minimum time between two lines in a log."""
# Columns of a terminal.
MIN_BAR_COLUMNS, MAX_BAR_COLUMNS = 4, 40
COLUMNS_BESIDE_BAR = 60
"""Columns that are left for words and numbers, which a narrow terminal would cut."""
REDRAW_EVERY_S = 0.2
"""Minimum time between two updates of the bar in a notebook."""

_quiet = False


@contextmanager
def silence(quiet: bool = True) -> Iterator[None]:
    """Show neither progress nor lines of :func:`tell` in this process until the end of the
    block."""
    global _quiet  # noqa: PLW0603 - standard error is one
    # A nested block cannot make a silent process speak.
    earlier, _quiet = _quiet, quiet or _quiet
    try:
        yield
    finally:
        _quiet = earlier


class Progress:
    """Counts steps of ``total`` and shows count, rate and remaining time. Use as a context manager.

    Args:
        what: the work, in a few words. total: number of steps; ``None`` if unknown.
        visible: ``False`` is silent; ``None`` shows progress in a notebook only.
        after_s: seconds before anything is shown.
    """

    def __init__(
        self,
        what: str,
        total: int | None = None,
        *,
        visible: bool | None = True,
        after_s: float = 0.0,
    ) -> None:
        self.what, self.total, self.done = what, total, 0
        notebook = visible is not False and in_notebook()
        self._shown = visible = (notebook if visible is None else visible) and not _quiet
        self._first = visible
        self._notebook = _NotebookBar(after_s) if visible and notebook else None
        now = time.monotonic()
        self._remaining = RemainingTime(now)
        # As if a line had been printed before: the first one comes after `after_s`, or
        # LINE_EVERY_S.
        self._last_line = now - (LINE_EVERY_S - after_s if after_s else 0.0)
        # Where standard error is closed, it may be None.
        in_terminal = visible and not notebook and sys.stderr is not None and sys.stderr.isatty()
        self._bar = _build_bar(self) if in_terminal and not after_s else None
        self._bar_from = now + after_s if in_terminal and after_s else math.inf

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()
        if self._notebook:
            self._notebook.end()

    def is_first_call(self) -> bool:
        """Return True for the first call only, and only if progress is shown."""
        first, self._first = self._first, False
        return first

    def resume(self, n: int) -> None:
        """Count ``n`` steps that were done earlier, which say nothing of the rate."""
        self.done += n
        self._remaining = RemainingTime(time.monotonic(), self.done)
        if self._bar:
            self._bar.update(self._bar.task_ids[0], completed=self.done)

    def step(self, n: int = 1) -> None:
        """Count ``n`` more steps, and update the display when it is due."""
        self.done += n
        now = time.monotonic()
        self._remaining.record(self.done, now)
        if self._bar:
            self._bar.update(self._bar.task_ids[0], completed=self.done)
            return
        # The work took longer than `after_s`: from now on it has a bar.
        if now >= self._bar_from:
            self._bar = _build_bar(self)
            self._bar.start()
            return
        if self._notebook:
            if self._notebook.is_time(now):
                self._notebook.draw(self.describe(now), self.done, self.total)
            return
        if self._shown and now - self._last_line >= LINE_EVERY_S:
            self._last_line = now
            tell(self.describe(now))

    def describe(self, now: float) -> str:
        """Return the state in words: count, rate, remaining time."""
        of_total = f"/{self.total}" if self.total else ""
        speed = self.describe_speed(now)
        return f"{self.what}: {self.done}{of_total}{', ' if speed else ''}{speed}"

    def describe_speed(self, now: float) -> str:
        """Return rate and remaining time in words, as far as they are known."""
        rate = self._remaining.rate(now)
        is_going_on = self.total and self.done < self.total
        seconds = self._remaining.seconds_left(self.total or 0, now) if is_going_on else None
        parts = (
            "" if rate is None else describe_rate(rate),
            "" if seconds is None else describe_seconds_left(seconds),
        )
        return ", ".join(filter(None, parts))


# Items may take microseconds; redrawing for each would cost more than the work itself.
ITEMS_PER_UPDATE = 16
SHOW_AFTER_S = 1.0


class StoppedError(Exception):
    """Raised by a step of work that was asked to stop."""


class StepProgress:
    """Shows those steps of a piece of work that take longer than a second.

    Args:
        visible: as for :class:`Progress`.
        stop: once it is set, every step ends with a :class:`StoppedError`.
    """

    def __init__(
        self, *, visible: bool | None = False, stop: threading.Event | None = None
    ) -> None:
        self._shown, self._stop = visible, stop or threading.Event()

    @contextmanager
    def begin(self, what: str, total: int | None = None) -> Iterator[Callable[[], None]]:
        """Begin a step, and return the function to call for each of its ``total`` items."""
        self._raise_if_stopped()
        waiting = 0
        with Progress(what, total, visible=self._shown, after_s=SHOW_AFTER_S) as progress:

            def step() -> None:
                nonlocal waiting
                waiting += 1
                if waiting == ITEMS_PER_UPDATE:
                    self._raise_if_stopped()
                    progress.step(waiting)
                    waiting = 0

            yield step
            # The rest of the last block of items. Without any complete block the step was too short
            # to show.
            if progress.done:
                progress.step(waiting)

    def _raise_if_stopped(self) -> None:
        if self._stop.is_set():
            raise StoppedError


SILENT = StepProgress()
"""Steps that are not shown and cannot be stopped."""


def tell(line: str) -> None:
    """Print a line on standard error; if that is closed or full, the line is lost."""
    if sys.stderr is not None and not _quiet:
        with suppress(OSError, ValueError):
            print(line, file=sys.stderr, flush=True)


_topics: set[str] = set()
"""Topics of the lines that :func:`tell_once` has printed."""


def tell_once(topic: str, line: str) -> None:
    """Print a line unless one on this topic was printed: an input is read more than once."""
    if topic not in _topics:
        _topics.add(topic)
        tell(line)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    # Looked up, not imported: in a notebook it is loaded already, elsewhere it may be missing.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    # IPython in a terminal has a shell without a kernel.
    return shell is not None and hasattr(shell, "kernel")


class _NotebookBar:
    """One display below a cell, created when it is first drawn, after ``after_s`` seconds."""

    def __init__(self, after_s: float) -> None:
        self._next = time.monotonic() + after_s
        self._display: Any = None

    def is_time(self, now: float) -> bool:
        """Whether it is time to redraw; then the next redraw is scheduled."""
        if now < self._next:
            return False
        self._next = now + REDRAW_EVERY_S
        return True

    def draw(self, message: str, completed: int, total: int | None) -> None:
        """Show the message and how much of the work is completed."""
        attributes = f' value="{completed}" max="{total}"' if total else ""
        self._show(f"<progress{attributes}></progress> {escape(message)}", message)

    def end(self) -> None:
        """Empty the display."""
        if self._display is not None:
            self._show("", "")

    def _show(self, html: str, text: str) -> None:
        from IPython.display import display

        bundle = {"text/html": html, "text/plain": text}
        if self._display is None:
            self._display = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._display.update(bundle, raw=True)


def _build_bar(progress: Progress):  # type: ignore[no-untyped-def]
    """Return a rich progress bar; rich is imported only where a bar is shown."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class SpeedColumn(ProgressColumn):
        """Rate and remaining time, as plain lines have them."""

        def render(self, task: Task) -> Text:  # noqa: ARG002
            return Text(progress.describe_speed(time.monotonic()))

    console = Console(stderr=True)
    bar = Bar(
        TextColumn("{task.description}"),
        # A narrow terminal keeps the numbers and gets a shorter bar.
        BarColumn(max(MIN_BAR_COLUMNS, min(MAX_BAR_COLUMNS, console.width - COLUMNS_BESIDE_BAR))),
        MofNCompleteColumn(),
        SpeedColumn(),
        console=console,
    )
    bar.add_task(progress.what, total=progress.total, completed=progress.done)
    return bar


def format_duration(seconds: float) -> str:
    """Return a duration in words: ``12 s``, ``3 min``, ``2 h 05 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
