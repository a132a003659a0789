"""``trustassay probe attack``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from trustassay.backends import DEFAULT_EMBEDDER
from trustassay.cli import common
from trustassay.cli.common import errors_for_people
from trustassay.cli.options import Spending, with_options
from trustassay.show.terminal import complain, print_json, say

if TYPE_CHECKING:
    from trustassay.metrics.harmonicity.ascent import Point

ANSWER_SHOWN = 60


@with_options
def attack(  # noqa: PLR0913 - one argument an option
    prompt: Annotated[
        str, typer.Argument(metavar="PROMPT", help="The prompt that the search starts from.")
    ],
    *,
    model: Annotated[
        str,
        typer.Option(
            help="The model to test, a URI as for score.", metavar="URI", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the page, the trace and all calls.")],
    embedder: common.Embedder = DEFAULT_EMBEDDER,
    steps: Annotated[int, typer.Option(help="Number of rounds.", min=1)] = 5,
    candidates: Annotated[int, typer.Option(help="Candidates per round.", min=1)] = 8,
    perturbations: Annotated[int, typer.Option(help="Perturbed prompts per gamma.", min=1)] = 10,
    perturbation: Annotated[
        str,
        typer.Option(help="How they are made: unicode, codes, control, whitespace, typo, synonym."),
    ] = "unicode",
    candidate: Annotated[
        str,
        typer.Option(
            help="How candidates are made: unicode, codes, words, typo, synonym, ...; ball takes "
            "the perturbed prompts of the current prompt's gamma."
        ),
    ] = "unicode",
    step_rule: Annotated[
        str,
        typer.Option(
            help="uphill moves only to a better candidate, extremum always to a round's best.",
            metavar="uphill|extremum",
        ),
    ] = "uphill",
    length: common.Length = 3,
    last: common.LastCode = 31,
    descend: Annotated[
        bool, typer.Option("--descend", help="Search for prompts with stable answers.")
    ] = False,
    calls: Annotated[
        Optional[int],  # noqa: UP045 - typer reads it
        typer.Option(
            help="Maximum number of requests to the model. Failed tries count; replies from the "
            "cache do not.",
            min=2,
            show_default=False,
        ),
    ] = None,
    max_tokens: common.MaxTokens = 512,
    seed: common.Seed = 0,
    spending: Spending,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the points as JSON on standard output.")
    ] = False,
) -> None:
    """Search for prompts that make a model's answer unstable: stochastic ascent in gamma.

    Use it to test your own systems: see docs/attack.md. Run the same command again to continue a
    stopped search. The defaults are not the paper's. The third command runs the paper's search as
    its authors' program does, with the characters of the paper's Table 12; each step needs 110
    answers, 10 of which are already known.

    \b
    trustassay probe attack "Who sailed around Africa first?" \\
        --model openai:gpt-4o-mini --out attacks/one
    trustassay probe attack "Answer politely: ..." --model hf:MODEL --descend \\
        --out attacks/calm
    trustassay probe attack "Name the 9 quarks." --model hf:MODEL --out attacks/paper \\
        --step-rule extremum --candidate ball --candidates 10 \\
        --perturbation codes --range 4095
    trustassay probe attack "Who built it?" --model hf:MODEL --candidate words \\
        --length 1 --out attacks/w
    """
    with errors_for_people():
        from trustassay.errors import AssessmentError
        from trustassay.metrics.harmonicity.ascent import Ascent
        from trustassay.workflows import probe as attacking
        from trustassay.workflows.resumable import SessionOptions

        how = Ascent(
            steps=steps,
            candidates=candidates,
            perturbations=perturbations,
            perturbation=perturbation,
            candidate=candidate,
            descend=descend,
            max_calls=calls,
            max_tokens=max_tokens,
            seed=seed,
            step_rule=step_rule,  # type: ignore[arg-type]  # checked there
            length=length,
            range=last,
        )
        options = SessionOptions(spending.read(), calls)
        backends = attacking.open_backends(model, embedder, out, options)
        try:
            found = attacking.attack(
                prompt, backends, out, how, options, lambda point: say(line(prompt, point))
            )
        except AssessmentError as error:
            complain(f"trustassay: {error}")
            raise typer.Exit(1) from None
        common.show_endpoints(found.endpoints)
        say(f"gamma {found.start.gamma:.3f} -> {found.end.gamma:.3f}, calls: {found.calls}")
        if found.best.prompt != found.end.prompt:
            say(f"best prompt found: gamma {found.best.gamma:.3f} at step {found.best.step}")
        if found.cut:
            say(found.warnings[-1])
        say(f"trace: {found.trace}")
        say(f"page:  {found.page}")
        if as_json:
            print_json(found.to_dict())
        if failed := sum(point.error is not None for point in found.points):
            complain(f"failed: {failed} of {len(found.points)} prompts, see the trace")
            raise typer.Exit(1)


def line(prompt: str, point: Point) -> str:
    """Return a point as one line: what was appended, and the start of the answer."""
    added = point.prompt.removeprefix(prompt) or "(unchanged)"
    mark = "*" if point.kept else " "
    if point.gamma is None:
        return f"{mark} step {point.step}  failed: {point.error}  {added!r}"
    answer = " ".join(point.answer.split())
    answer = answer if len(answer) <= ANSWER_SHOWN else answer[:ANSWER_SHOWN] + "..."
    return f"{mark} step {point.step}  gamma {point.gamma:.3f}  {added!r}  {answer}"
