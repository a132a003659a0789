"""``trustassay attack``."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from trustassay.backends import DEFAULT_EMBEDDER
from trustassay.cli import common
from trustassay.cli.common import errors_for_people, say

if TYPE_CHECKING:
    from trustassay.metrics.harmonicity.ascent import Ascent, Point

ANSWER_SHOWN = 60


def attack(  # noqa: PLR0913 - one argument an option
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="Where the search starts.")],
    model: Annotated[
        str,
        typer.Option(help="The model to test, as for score.", metavar="URI", show_default=False),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the page, the trace and all calls.")],
    embedder: common.Embedder = DEFAULT_EMBEDDER,
    steps: Annotated[int, typer.Option(help="Rounds of candidates.", min=1)] = 5,
    candidates: Annotated[int, typer.Option(help="Candidates of a round.", min=1)] = 8,
    perturbations: Annotated[int, typer.Option(help="Nudged prompts behind a gamma.", min=1)] = 10,
    perturbation: Annotated[
        str, typer.Option(help="Their family: unicode, control, whitespace, typo, synonym.")
    ] = "unicode",
    candidate: Annotated[
        str, typer.Option(help="What makes candidates: unicode, words, typo, synonym, ...")
    ] = "unicode",
    descend: Annotated[
        bool, typer.Option("--descend", help="Search for prompts that are hard to move.")
    ] = False,
    calls: Annotated[
        Optional[int],  # noqa: UP045 - typer reads it
        typer.Option(
            help="The most requests to the model: all that leave, also each try that fails; "
            "replies from the cache are none.",
            min=2,
            show_default=False,
        ),
    ] = None,
    max_tokens: common.MaxTokens = 512,
    seed: common.Seed = 0,
    cache: common.Cache = "",
    prices: common.PricesFile = None,
    budget: common.BudgetText = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the points as JSON on standard output.")
    ] = False,
) -> None:
    """Search for prompts that make a model's answer unstable: stochastic ascent in gamma.

    For testing systems of your own: see docs/attack.md. The same command goes on where it stopped.

    \b
    trustassay attack "Who sailed around Africa first?" --model openai:gpt-4o-mini --out attacks/one
    trustassay attack "Answer politely: ..." --model hf:MODEL --descend --out attacks/calm
    """
    with errors_for_people():
        from trustassay.backends import resolve
        from trustassay.engine.anywhere import run_anywhere
        from trustassay.engine.models import Backends
        from trustassay.engine.session import CountedModels, SessionOptions, in_session
        from trustassay.metric import AssessmentError
        from trustassay.metrics.harmonicity.ascent import Ascent, climb

        how = Ascent(
            steps,
            candidates,
            perturbations,
            perturbation,
            candidate,
            descend,
            calls,
            max_tokens=max_tokens,
            seed=seed,
        )
        backends = Backends(
            embedder=resolve.embedder(embedder), chat={"model": resolve.chat(model)}
        )
        settings = {
            "prompt": prompt,
            **{f.name: getattr(how, f.name) for f in fields(how) if f.name not in GROWING},
        }
        trace = out / "trace.jsonl"
        out.mkdir(parents=True, exist_ok=True)

        async def search(models: CountedModels) -> list[Point]:
            with trace.open("w", encoding="utf-8") as file:

                def note(point: Point) -> None:
                    file.write(json.dumps(vars_of(point)) + "\n")
                    file.flush()
                    say(line(prompt, point))

                return await climb(prompt, models, how, note, lambda: models.used)

        options = SessionOptions(**common.spending(cache, prices, budget), calls=calls)
        try:
            points, session = run_anywhere(
                lambda: in_session(out, settings, backends, options, search)
            )
        except AssessmentError as error:
            say(f"trustassay: {error}")
            raise typer.Exit(1) from None
        common.show_endpoints(session.endpoints)
        start, end = points[0], [point for point in points if point.kept][-1]
        asked = counted(session.requests, session.failed, calls)
        say(f"gamma {start.gamma:.3f} -> {end.gamma:.3f}, calls: {asked}")
        page = out / "ascent.html"
        facts = {"model": model, "embedder": embedder, "calls": asked}
        _write(page, points, how, facts)
        say(f"trace: {trace}")
        say(f"page:  {page}")
        if as_json:
            content = {
                "start": vars_of(start),
                "end": vars_of(end),
                "requests": session.requests,
                "failed_requests": session.failed,
                "points": [vars_of(point) for point in points],
            }
            print(json.dumps(content, indent=2))
        if failed := sum(point.error is not None for point in points):
            say(f"failed: {failed} of {len(points)} prompts, see the trace")
            raise typer.Exit(1)


GROWING = frozenset({"steps", "max_calls"})
"""Options that may differ when a search is gone on with."""


def counted(calls: int, failed: int, most: int | None) -> str:
    """Say how many requests left, how many of them failed, and how many might have left."""
    words = f"{calls:,}" + (f" of at most {most:,}" if most is not None else "")
    return words + (f", {failed:,} of them failed" if failed else "")


def headline(start: Point, end: Point, how: Ascent) -> str:
    """Say in a sentence how far the search came."""
    way = "descent" if how.descend else "ascent"
    if end is start:
        return f"The {way} found no {'steadier' if how.descend else 'less steady'} prompt."
    return (
        f"The {way} led from gamma {start.gamma:.3f} to {end.gamma:.3f} "
        f"({start.angle_degrees:.1f}° to {end.angle_degrees:.1f}°)."
    )


def _write(path: Path, points: list[Point], how: Ascent, facts: dict[str, str]) -> None:
    from trustassay.report.ascent import AscentPage, write_ascent_page

    kept = [point for point in points if point.kept]
    facts |= {
        "candidates": f"{how.candidates} a step, {how.candidate}",
        "behind a gamma": f"{how.perturbations} nudged prompts, {how.perturbation}",
        "seed": str(how.seed),
    }
    failed = sum(point.error is not None for point in points)
    warnings = [f"{failed} of {len(points)} prompts failed"] if failed else []
    page = AscentPage(facts, headline(kept[0], kept[-1], how), warnings, points)
    write_ascent_page(page, path)


def vars_of(point: Point) -> dict[str, object]:
    """Return the fields of a point."""
    return {name: getattr(point, name) for name in point.__slots__}


def line(prompt: str, point: Point) -> str:
    """Return a point in one line; what was appended, and the beginning of the answer."""
    added = point.prompt.removeprefix(prompt) or "(as it is)"
    mark = "*" if point.kept else " "
    if point.gamma is None:
        return f"{mark} step {point.step}  failed: {point.error}  {added!r}"
    answer = " ".join(point.answer.split())
    answer = answer if len(answer) <= ANSWER_SHOWN else answer[:ANSWER_SHOWN] + "..."
    return f"{mark} step {point.step}  gamma {point.gamma:.3f}  {added!r}  {answer}"
