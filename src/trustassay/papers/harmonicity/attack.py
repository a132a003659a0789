"""``trustassay papers attack``: run the search along gamma in a folder; write trace and page."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from trustassay.backends import resolve
from trustassay.calls.backends import MODEL_ROLE, BackendKey, Backends
from trustassay.calls.client import build_cache_path
from trustassay.core.event_loop import run_anywhere
from trustassay.core.files import name_in_errors, open_new
from trustassay.papers.harmonicity.ascent import AscentOptions, AscentPoint, climb, find_best
from trustassay.papers.harmonicity.ascent_page import AscentPage, write_ascent_page
from trustassay.papers.session import CountedModels, SessionOptions, SessionSummary, run_in_session
from trustassay.runs.folder import RunFolder
from trustassay.runs.needs import load_backends
from trustassay.text.numbers import amount

EXTENDABLE_OPTIONS = frozenset({"steps", "max_calls"})
"""Options that may change when a search is resumed: it then just goes further."""


@dataclass(frozen=True)
class AttackResult:
    """The result of a search."""

    points: list[AscentPoint]
    """The prompts that were tried, the start first."""
    session: SessionSummary
    trace: Path
    """The file with a line for each point."""
    page: Path
    best: AscentPoint
    """The best prompt found; with the rule ``extremum`` the search may have moved on."""
    max_requests: int | None = None
    """The limit of requests, if there was one."""

    @property
    def start(self) -> AscentPoint:
        """The prompt that the search started from."""
        return self.points[0]

    @property
    def end(self) -> AscentPoint:
        """The prompt that the search ended at."""
        return [point for point in self.points if point.kept][-1]

    @property
    def calls(self) -> str:
        """The number of requests, how many failed, and the limit, as text."""
        sent, failed = self.session.requests, self.session.failed
        text = f"{sent:,}" + (f" of at most {self.max_requests:,}" if self.max_requests else "")
        return text + (f", {failed:,} of them failed" if failed else "")

    @property
    def warnings(self) -> list[str]:
        """What a reader must know to interpret the result."""
        failed = sum(point.error is not None for point in self.points)
        messages = [f"{failed} of {amount(len(self.points), 'prompt')} failed"] if failed else []
        if cut := self.session.cut:
            messages.append(f"{cut:,} of {self.session.replies:,} replies were cut at max_tokens")
        return messages

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "start": point_record(self.start),
            "end": point_record(self.end),
            "best": point_record(self.best),
            "requests": self.session.requests,
            "failed_requests": self.session.failed,
            "points": [point_record(point) for point in self.points],
        }


def open_backends(
    model: resolve.ChatChoice,
    embedder: resolve.EmbedderChoice,
    out: Path,
    options: SessionOptions,
) -> Backends:
    """Load the models of a search; report every fault before the first one is loaded."""
    # A key is not needed if all replies are stored.
    stores = [RunFolder(out).calls_path, build_cache_path(options.calls.cache)]
    choice_by_place = {BackendKey("embed"): embedder, BackendKey("chat", MODEL_ROLE): model}
    return Backends(run_anywhere(lambda: load_backends(choice_by_place, stores=stores)))


def attack(
    prompt: str,
    backends: Backends,
    out: Path,
    ascent: AscentOptions,
    options: SessionOptions,
    on_point: Callable[[AscentPoint], None] = lambda _: None,
) -> AttackResult:
    """Search from ``prompt``; the folder ``out`` gets the trace, the page and all calls.

    The same call continues where an interrupted one stopped, and repeats no request.

    Raises:
        RunFolderError: the folder holds something else, or another process works in it.
        BackendError, AssessmentError, NoPerturbationError: the start cannot be measured.
    """
    settings = {
        field.name: getattr(ascent, field.name)
        for field in fields(ascent)
        if field.name not in EXTENDABLE_OPTIONS
    }
    trace = out / "trace.jsonl"

    # The trace is read by people while the search runs, so each point is flushed.
    async def search(models: CountedModels) -> list[AscentPoint]:
        # Written anew each time: a resumed search repeats its points from stored replies.
        with name_in_errors(trace), open_new(trace) as file:

            def note(point: AscentPoint) -> None:
                file.write(json.dumps(point_record(point)).encode() + b"\n")
                file.flush()
                on_point(point)

            return await climb(prompt, models, ascent, note, lambda: models.counter.used)

    points, session = run_anywhere(
        lambda: run_in_session(out, {"prompt": prompt, **settings}, backends, options, search)
    )
    # The page is written once, after the search.
    page, best = out / "ascent.html", find_best(points, ascent)
    result = AttackResult(points, session, trace, page, best, ascent.max_calls)
    _write_page(result, backends, ascent)
    return result


def point_record(point: AscentPoint) -> dict[str, Any]:
    """Return a point as the trace holds it."""
    # The fields of a point are the keys of the trace.
    return {name: getattr(point, name) for name in point.__slots__}


def _write_page(result: AttackResult, backends: Backends, ascent: AscentOptions) -> None:
    facts = {
        **backends.names(),
        "calls": result.calls,
        "candidates": f"{ascent.candidates} per step, {_describe_family(ascent.candidate, ascent)}",
        "per gamma": (
            f"{ascent.perturbations} perturbed prompts, "
            f"{_describe_family(ascent.perturbation, ascent)}"
        ),
        "step rule": ascent.step_rule,
        "seed": str(ascent.seed),
    }
    page = AscentPage(
        facts, _build_headline(result, ascent), result.warnings, result.points, result.best
    )
    write_ascent_page(page, result.page)


def _describe_family(family: str, ascent: AscentOptions) -> str:
    """Return the name of a family with the range of its codes."""
    return f"{family} 0 to {ascent.range}" if family == "codes" else family


def _build_headline(result: AttackResult, ascent: AscentOptions) -> str:
    """Return a sentence on the result of the search."""
    start, end, best = result.start, result.end, result.best
    direction = "descent" if ascent.descend else "ascent"
    sentence = (
        f"The {direction} found no prompt with {'more' if ascent.descend else 'less'} stable "
        "answers."
    )
    # The search moved; with `extremum` it may still have found nothing better.
    if end.prompt != start.prompt:
        moved = (
            f"The {direction} went from gamma {start.gamma:.3f} to {end.gamma:.3f} "
            f"({start.angle_degrees:.1f}° to {end.angle_degrees:.1f}°)."
        )
        sentence = moved if best.prompt != start.prompt else f"{moved} {sentence}"
    # Under `extremum` the best prompt may lie in the middle of the path.
    if best.prompt not in (start.prompt, end.prompt):
        sentence += f" The best prompt found has gamma {best.gamma:.3f}, at step {best.step}."
    return sentence
