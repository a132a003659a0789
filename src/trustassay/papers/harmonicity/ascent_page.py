"""The page of a search along gamma: the chart, the path, and all prompts that were tried."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import Path

from markupsafe import Markup

from trustassay.core.evidence import Piece, diff_words
from trustassay.papers.harmonicity.ascent import AscentPoint
from trustassay.report.answers import METRIC_TEMPLATE_PREFIX
from trustassay.report.charts import LEFT, RIGHT, Scale, draw_macro, ticks
from trustassay.report.page import write_template
from trustassay.report.text import HIDDEN, cut, spell_out_hidden
from trustassay.text.numbers import amount, score_text

SIZE = (640.0, 290.0)
TOP, BOTTOM = 28.0, 46.0
"""Pixels for the name of the axis above, and for two lines below: steps and calls."""
CANDIDATE_SPREAD = 0.7
"""Share of a step's width over which its candidates are spread."""
MAX_TOOLTIP_CHARS = 120
"""Characters of an answer in the tooltip of a dot."""


@dataclass(frozen=True)
class AscentPage:
    """What the page shows; the template calls the methods."""

    facts: Mapping[str, str]
    """Settings by name, shown at the top."""
    headline: str
    warnings: Sequence[str]
    points: Sequence[AscentPoint]
    """The start, then the points of each step together."""
    best: AscentPoint | None = None
    """The point that lies furthest in the direction of the search."""

    @property
    def title(self) -> str:
        """The start, on one line."""
        return cut(self.points[0].prompt, 80)

    @property
    def kept(self) -> list[AscentPoint]:
        """The points from which the search continued, the start first."""
        return [point for point in self.points if point.kept]

    @property
    def tried(self) -> list[tuple[int, list[AscentPoint]]]:
        """The points of each step after the start."""
        # Points of a step stand together, in the order of the trace.
        by_step = groupby(self.points[1:], key=lambda point: point.step)
        return [(step, list(points)) for step, points in by_step]

    @property
    def turned(self) -> bool:
        """Whether an angle lies beyond 90 degrees, where gamma falls again."""
        return any((point.angle_degrees or 0) > 90 for point in self.points)

    def text_behind_start(self, point: AscentPoint) -> str:
        """Return the text behind the start in a prompt, or "" if it begins differently."""
        start = self.points[0].prompt
        return point.prompt.removeprefix(start) if point.prompt.startswith(start) else ""

    def change(self, point: AscentPoint) -> Sequence[Piece]:
        """Return how a prompt differs from the one it was made from.

        For a prompt that only grew, this covers the text behind the start; else the whole prompt.
        """
        base = [point_before for point_before in self.kept if point_before.step < point.step][-1]
        before, tail = self.text_behind_start(base), self.text_behind_start(point)
        # Most candidates only append; comparing word by word would hide single characters.
        if tail and tail.startswith(before):
            pieces = [Piece("same", before), Piece("new", tail.removeprefix(before))]
            return [piece for piece in pieces if piece.text]
        return diff_words(base.prompt, point.prompt) or [Piece("same", point.prompt)]

    def new_text(self, point: AscentPoint) -> str:
        """Return all new text in a prompt."""
        return "".join(piece.text for piece in self.change(point) if piece.kind == "new")

    def name_characters(self, point: AscentPoint) -> str:
        """Return the names of the characters that :meth:`spell_characters` spells."""
        odd = dict.fromkeys(_find_odd_characters(self.new_text(point)))
        return ", ".join(unicodedata.name(c, f"U+{ord(c):04X}").lower() for c in odd)

    def spell_characters(self, point: AscentPoint) -> str:
        """Return the code points of new characters that fonts may not show: rare letters, spaces.

        Hidden characters are left out, since the page spells them in place.
        """
        if self.change(point) == [Piece("same", point.prompt)]:
            return "differs in white space"
        return " ".join(f"U+{ord(c):04X}" for c in _find_odd_characters(self.new_text(point)))

    @property
    def failed(self) -> int:
        """The prompts that could not be measured."""
        return sum(point.gamma is None for point in self.points)

    @cached_property
    def drawing(self) -> Markup:
        """The chart: gamma of every prompt by step, and the path of the search."""
        width, height = SIZE
        last = max(self.points[-1].step, 1)
        # From 0 to a round number at or above the largest gamma.
        gamma_ticks = ticks(
            0.0, max((p.gamma for p in self.points if p.gamma is not None), default=1.0)
        )
        # Candidates are spread around the tick of their step.
        candidates_of_step = {step: len(points) for step, points in self.tried}

        def x(step: float) -> float:
            return LEFT + (width - LEFT - RIGHT) * (step + CANDIDATE_SPREAD / 2) / (
                last + CANDIDATE_SPREAD
            )

        def y(gamma: float) -> float:
            return height - BOTTOM - (height - TOP - BOTTOM) * gamma / gamma_ticks[-1]

        def place(point: AscentPoint) -> float:
            n = candidates_of_step.get(point.step, 0)
            return x(
                point.step + (CANDIDATE_SPREAD * ((point.candidate - 0.5) / n - 0.5) if n else 0.0)
            )

        # 1. Grid, names of the axes, and the ticks with steps and calls.
        content = [draw_macro("grid", marks=gamma_ticks, y=y, left=LEFT, right=width - RIGHT)]
        calls = {point.step: point.calls for point in self.points}
        content += [
            draw_macro("label_at", x=0, y=x_at, text=name, anchor="start")
            for name, x_at in (("gamma", TOP - 14), ("step", height - 24), ("calls", height - 6))
        ]
        content += [
            draw_macro("label_at", x=x(step), y=height - below, text=text)
            for step in ticks(0, last, 10)
            if step <= last and step.is_integer()
            for below, text in ((24, f"{step:g}"), (6, f"{calls.get(int(step), 0):,}"))
        ]
        # 2. The path, below the dots.
        content.append(self._draw_path(last, x, place, y))
        # 3. A dot for each prompt, the kept ones on top; a cross for those that failed.
        for point in sorted(self.points, key=lambda point: point.kept):
            x_at, title = place(point), spell_out_hidden(_build_tooltip(point))
            if point.gamma is None:
                shape = Markup('<path class="failed" d="M{:.1f} {:.1f}l7 7m0 -7l-7 7"/>').format(
                    x_at - 3.5, y(0) - 3.5
                )
            else:
                kind = "dot" if point.kept else "dot single"
                shape = Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="4"/>').format(
                    kind, x_at, y(point.gamma)
                )
            content.append(Markup("<g><title>{}</title>{}</g>").format(title, shape))
        return draw_macro(
            "svg", kind="ratings ascent", size=SIZE, label=self._label, content=content
        )

    def _draw_path(
        self, last: int, x: Scale, x_of_point: Callable[[AscentPoint], float], y: Scale
    ) -> Markup:
        """Draw the line between kept points, level in steps in which the search did not move."""
        moves = self.kept
        path = [f"M{x_of_point(moves[0]):.1f} {y(moves[0].gamma or 0.0):.1f}"]
        for before, after in pairwise(moves):
            # Level while the search stayed, then a line to the point of the move.
            if after.step - before.step > 1:
                path.append(f"H{x(after.step - 1):.1f}")
            path.append(f"L{x_of_point(after):.1f} {y(after.gamma or 0.0):.1f}")
        # The search ended without a move: draw on to the last step.
        if moves[-1].step < last:
            path.append(f"H{x(last + CANDIDATE_SPREAD / 2):.1f}")
        return Markup('<path class="fit" d="{}"/>').format("".join(path))

    @property
    def _label(self) -> str:
        steps = ", ".join(f"{score_text(p.gamma)} at step {p.step}" for p in self.kept)
        failed = f", {self.failed:,} of them failed" if self.failed else ""
        calls = amount(self.points[-1].calls, "call")
        return (
            f"Gamma of {amount(len(self.points), 'prompt')}{failed}, {calls}. The search "
            f"continued from: {steps}."
        )


def _find_odd_characters(text: str) -> str:
    """Return the characters that a reader may not see or recognise; the page shows hidden ones."""
    has_crlf = "\r\n" in text  # the page shows this as a single line end
    odd = [c for c in text if not ("!" <= c <= "~" or (HIDDEN.match(c) and not has_crlf))]
    # A space is only worth spelling out in a text of nothing but spaces.
    return "".join(c for c in odd if c != " " or not text.strip())


def _build_tooltip(point: AscentPoint) -> str:
    if point.gamma is None:
        return f"step {point.step}, failed: {cut(point.error or '', MAX_TOOLTIP_CHARS)}"
    text = f"step {point.step}, gamma {score_text(point.gamma)}"
    # Readers would take a falling gamma for a step back.
    if point.angle_degrees is not None and point.angle_degrees > 90:
        text += f", angle {point.angle_degrees:.0f}°, where gamma falls again"
    return f"{text}: {cut(point.answer, MAX_TOOLTIP_CHARS)}"


def write_ascent_page(page: AscentPage, path: Path) -> None:
    """Write the page of a search, in full or not at all."""
    template = Path(__file__).with_name("ascent.html.jinja")
    write_template(f"{METRIC_TEMPLATE_PREFIX}{template}", path, page=page)
