"""The page of a search along gamma: its chart, its steps, and all prompts tried."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import Path

from markupsafe import Markup

from trustassay.show.answers import OF_METRICS
from trustassay.show.charts import LEFT, RIGHT, Scale, drawn, ticks
from trustassay.show.page import write_template
from trustassay.show.text import HIDDEN, cut, finalized, score_text
from trustassay.text.words import amount
from trustassay.views import Piece, word_differences
from trustassay_papers.harmonicity.ascent import Point

SIZE = (640.0, 290.0)
TOP, BOTTOM = 28.0, 46.0
"""Room for the name of the axis, and for two lines below it: steps and calls."""
SPREAD = 0.7
"""Share of a step's width over which its candidates are set apart."""
TOLD = 120
"""Characters of an answer in the tooltip of a dot."""


@dataclass(frozen=True)
class AscentPage:
    """What the page shows. ``points`` begin with the start, the points of a step together.

    ``best`` is the one that lies furthest in the direction of the search.
    """

    facts: Mapping[str, str]
    headline: str
    warnings: Sequence[str]
    points: Sequence[Point]
    best: Point | None = None

    @property
    def title(self) -> str:
        """The start, on one line."""
        return cut(self.points[0].prompt, 80)

    @property
    def kept(self) -> list[Point]:
        """The points that the search went on from, the start first."""
        return [point for point in self.points if point.kept]

    @property
    def tried(self) -> list[tuple[int, list[Point]]]:
        """The points of each step but the start."""
        by_step = groupby(self.points[1:], key=lambda point: point.step)
        return [(step, list(points)) for step, points in by_step]

    @property
    def turned(self) -> bool:
        """Whether an angle lies beyond 90 degrees, where gamma falls again."""
        return any((point.angle_degrees or 0) > 90 for point in self.points)

    def appended(self, point: Point) -> str:
        """Return what a prompt has behind the start, if it begins with that."""
        start = self.points[0].prompt
        return point.prompt.removeprefix(start) if point.prompt.startswith(start) else ""

    def change(self, point: Point) -> Sequence[Piece]:
        """Return how a prompt differs from the one it was made from.

        Of a prompt that only grew, what stands behind the start; else the whole prompt.
        """
        base = [kept for kept in self.kept if kept.step < point.step][-1]
        before, tail = self.appended(base), self.appended(point)
        if tail and tail.startswith(before):
            pieces = [Piece("same", before), Piece("new", tail.removeprefix(before))]
            return [piece for piece in pieces if piece.text]
        return word_differences(base.prompt, point.prompt) or [Piece("same", point.prompt)]

    def changed(self, point: Point) -> str:
        """Return all that is new in a prompt."""
        return "".join(piece.text for piece in self.change(point) if piece.kind == "new")

    def names(self, point: Point) -> str:
        """Return the names of the characters that :meth:`spelled` spells."""
        odd = dict.fromkeys(_odd(self.changed(point)))
        return ", ".join(unicodedata.name(c, f"U+{ord(c):04X}").lower() for c in odd)

    def spelled(self, point: Point) -> str:
        """Return the code points of what is new and not every font shows: rare letters, spaces.

        Hidden characters are left out, since the page spells them where they stand.
        """
        if self.change(point) == [Piece("same", point.prompt)]:
            return "differs in white space"
        return " ".join(f"U+{ord(c):04X}" for c in _odd(self.changed(point)))

    @property
    def failed(self) -> int:
        """The prompts that could not be measured."""
        return sum(point.gamma is None for point in self.points)

    @cached_property
    def drawing(self) -> Markup:
        """Gamma of every prompt by step, and the path of the search."""
        width, height = SIZE
        last = max(self.points[-1].step, 1)
        marks = ticks(0.0, max((p.gamma for p in self.points if p.gamma is not None), default=1.0))
        size = {step: len(points) for step, points in self.tried}

        def x(step: float) -> float:
            return LEFT + (width - LEFT - RIGHT) * (step + SPREAD / 2) / (last + SPREAD)

        def y(gamma: float) -> float:
            return height - BOTTOM - (height - TOP - BOTTOM) * gamma / marks[-1]

        def place(point: Point) -> float:
            n = size.get(point.step, 0)
            return x(point.step + (SPREAD * ((point.candidate - 0.5) / n - 0.5) if n else 0.0))

        content = [drawn("grid", marks=marks, y=y, left=LEFT, right=width - RIGHT)]
        calls = {point.step: point.calls for point in self.points}
        content += [
            drawn("label_at", x=0, y=at, text=name, anchor="start")
            for name, at in (("gamma", TOP - 14), ("step", height - 24), ("calls", height - 6))
        ]
        content += [
            drawn("label_at", x=x(step), y=height - below, text=text)
            for step in ticks(0, last, 10)
            if step <= last and step.is_integer()
            for below, text in ((24, f"{step:g}"), (6, f"{calls.get(int(step), 0):,}"))
        ]
        content.append(self._way(last, x, place, y))
        for point in sorted(self.points, key=lambda point: point.kept):
            at, title = place(point), finalized(_told(point))
            if point.gamma is None:
                shape = Markup('<path class="failed" d="M{:.1f} {:.1f}l7 7m0 -7l-7 7"/>').format(
                    at - 3.5, y(0) - 3.5
                )
            else:
                kind = "dot" if point.kept else "dot single"
                shape = Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="4"/>').format(
                    kind, at, y(point.gamma)
                )
            content.append(Markup("<g><title>{}</title>{}</g>").format(title, shape))
        return drawn("svg", kind="ratings ascent", size=SIZE, label=self._label, content=content)

    def _way(self, last: int, x: Scale, place: Callable[[Point], float], y: Scale) -> Markup:
        """Draw the line from kept point to kept point; it stays level until the next move."""
        kept = self.kept
        path = [f"M{place(kept[0]):.1f} {y(kept[0].gamma or 0.0):.1f}"]
        for before, after in pairwise(kept):
            if after.step - before.step > 1:
                path.append(f"H{x(after.step - 1):.1f}")
            path.append(f"L{place(after):.1f} {y(after.gamma or 0.0):.1f}")
        if kept[-1].step < last:
            path.append(f"H{x(last + SPREAD / 2):.1f}")
        return Markup('<path class="fit" d="{}"/>').format("".join(path))

    @property
    def _label(self) -> str:
        steps = ", ".join(f"{score_text(p.gamma)} at step {p.step}" for p in self.kept)
        failed = f", {self.failed:,} of them failed" if self.failed else ""
        calls = amount(self.points[-1].calls, "call")
        return f"Gamma of {amount(len(self.points), 'prompt')}{failed}, {calls}; kept: {steps}."


def _odd(text: str) -> str:
    """Return the characters of a text that a reader may not see or know; those hidden are shown."""
    ends = "\r\n" in text  # the page shows it as one line end
    found = [c for c in text if not ("!" <= c <= "~" or (HIDDEN.match(c) and not ends))]
    return "".join(c for c in found if c != " " or not text.strip())


def _told(point: Point) -> str:
    if point.gamma is None:
        return f"step {point.step}, failed: {cut(point.error or '', TOLD)}"
    words = f"step {point.step}, gamma {score_text(point.gamma)}"
    if point.angle_degrees is not None and point.angle_degrees > 90:
        words += f", angle {point.angle_degrees:.0f}°, where gamma falls again"
    return f"{words}: {cut(point.answer, TOLD)}"


def write_ascent_page(page: AscentPage, path: Path) -> None:
    """Write the page of a search, in full or not at all."""
    template = Path(__file__).with_name("ascent.html.jinja")
    write_template(f"{OF_METRICS}{template}", path, page=page)
