"""``trustassay papers attack``: the search along gamma in a folder, with its trace and its page."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from trustassay.backends import resolve
from trustassay.calls.backends import MODEL, Backends, Place
from trustassay.calls.client import shared_file
from trustassay.event_loop import run_anywhere
from trustassay.files import named
from trustassay.runs.folder import RunFolder
from trustassay.runs.needs import load_all
from trustassay_papers.harmonicity.ascent import Ascent, Point, best_seen, climb
from trustassay_papers.harmonicity.ascent_page import AscentPage, write_ascent_page
from trustassay_papers.session import CountedModels, Session, SessionOptions, in_session

GROWING = frozenset({"steps", "max_calls"})
"""Options that may differ when a search is resumed."""


@dataclass(frozen=True)
class Attacked:
    """The prompts that were tried, and the calls that were made for them."""

    points: list[Point]
    session: Session
    trace: Path
    page: Path
    best: Point
    """The best prompt found; with the rule ``extremum`` the search may have gone on from there."""
    most: int | None = None

    @property
    def start(self) -> Point:
        """The prompt as it was given."""
        return self.points[0]

    @property
    def end(self) -> Point:
        """The prompt that the search ended at."""
        return [point for point in self.points if point.kept][-1]

    @property
    def calls(self) -> str:
        """The number of requests sent, how many of them failed, and the maximum."""
        sent, failed = self.session.requests, self.session.failed
        words = f"{sent:,}" + (f" of at most {self.most:,}" if self.most else "")
        return words + (f", {failed:,} of them failed" if failed else "")

    @property
    def warnings(self) -> list[str]:
        """What a reader should know."""
        failed = sum(point.error is not None for point in self.points)
        found = [f"{failed} of {len(self.points)} prompts failed"] if failed else []
        if cut := self.session.cut:
            found.append(f"{cut:,} of {self.session.replies:,} replies were cut at max_tokens")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "start": row(self.start),
            "end": row(self.end),
            "best": row(self.best),
            "requests": self.session.requests,
            "failed_requests": self.session.failed,
            "points": [row(point) for point in self.points],
        }


def open_backends(
    model: resolve.ChatChoice,
    embedder: resolve.EmbedderChoice,
    out: Path,
    options: SessionOptions,
) -> Backends:
    """Load what a search calls; every fault is reported before a model is loaded."""
    stores = [RunFolder(out).calls_path, shared_file(options.calls.cache)]
    wanted = {Place("embed"): embedder, Place("chat", MODEL): model}
    return Backends(run_anywhere(lambda: load_all(wanted, stores=stores)))


def attack(
    prompt: str,
    backends: Backends,
    out: Path,
    how: Ascent,
    options: SessionOptions,
    tell: Callable[[Point], None] = lambda _: None,
) -> Attacked:
    """Search from ``prompt``; the folder ``out`` gets the trace, the page and all calls.

    The same call continues where an interrupted one stopped, and repeats no request.

    Raises:
        RunFolderError: the folder holds something else, or another process works in it.
        BackendError, AssessmentError, NoPerturbationError: the start cannot be measured.
    """
    settings = {one.name: getattr(how, one.name) for one in fields(how) if one.name not in GROWING}
    trace = out / "trace.jsonl"

    async def search(models: CountedModels) -> list[Point]:
        with named(trace), trace.open("w", encoding="utf-8") as file:

            def note(point: Point) -> None:
                file.write(json.dumps(row(point)) + "\n")
                file.flush()
                tell(point)

            return await climb(prompt, models, how, note, lambda: models.used)

    points, session = run_anywhere(
        lambda: in_session(out, {"prompt": prompt, **settings}, backends, options, search)
    )
    page, best = out / "ascent.html", best_seen(points, how)
    found = Attacked(points, session, trace, page, best, how.max_calls)
    _draw_page(found, backends, how)
    return found


def row(point: Point) -> dict[str, Any]:
    """Return a point as it is written in the trace."""
    return {name: getattr(point, name) for name in point.__slots__}


def _draw_page(found: Attacked, backends: Backends, how: Ascent) -> None:
    facts = {
        **backends.names(),
        "calls": found.calls,
        "candidates": f"{how.candidates} a step, {_family(how.candidate, how)}",
        "per gamma": f"{how.perturbations} perturbed prompts, {_family(how.perturbation, how)}",
        "step rule": how.step_rule,
        "seed": str(how.seed),
    }
    page = AscentPage(facts, _headline(found, how), found.warnings, found.points, found.best)
    write_ascent_page(page, found.page)


def _family(family: str, how: Ascent) -> str:
    """Return a family with what was drawn for it."""
    return f"{family} 0 to {how.range}" if family == "codes" else family


def _headline(found: Attacked, how: Ascent) -> str:
    """Return a sentence on the result of the search."""
    start, end, best = found.start, found.end, found.best
    way = "descent" if how.descend else "ascent"
    words = f"The {way} found no {'more' if how.descend else 'less'} stable prompt."
    if end.prompt != start.prompt:
        led = (
            f"The {way} went from gamma {start.gamma:.3f} to {end.gamma:.3f} "
            f"({start.angle_degrees:.1f}° to {end.angle_degrees:.1f}°)."
        )
        words = led if best.prompt != start.prompt else f"{led} {words}"
    if best.prompt not in (start.prompt, end.prompt):
        words += f" The best prompt found has gamma {best.gamma:.3f}, at step {best.step}."
    return words
