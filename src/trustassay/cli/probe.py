"""``trustassay probe``: what makes answers, embedders and consistency checks go wrong."""

from __future__ import annotations

import typer

from trustassay.cli import attack, distractors, isotropy
from trustassay.cli.options import quietable

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True)


@app.callback()
def group() -> None:
    """Look at what scores rest on: prompts, perturbations, and wrong answers to choose from.

    \b
    trustassay probe attack "Who built it?" --model hf:MODEL --out attacks/one
    trustassay probe isotropy questions.jsonl
    trustassay probe distractors answers.jsonl --limit 5
    """


app.command("attack")(quietable(attack.attack))
app.command("isotropy")(quietable(isotropy.isotropy))
app.command("distractors")(quietable(distractors.distractors))
