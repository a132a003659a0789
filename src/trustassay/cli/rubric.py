"""``trustassay rubric``."""

from __future__ import annotations

from typing import Annotated

import typer

from trustassay.cli.options import with_options
from trustassay.errors import UsageError
from trustassay.options import Argument
from trustassay.show.terminal import say, show_table

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True)

EXAMPLE = {
    "question": "The question.",
    "answers": [["The gold answer."]],
    "response": "The answer to rate.",
    "documents": [{"title": "A title", "text": "A passage."}],
}


@app.callback()
def group() -> None:
    """Look at the rubrics of the metric judge.

    \b
    trustassay rubric check mine.yaml
    """


@app.command("check")
@with_options
def check(
    *,
    file: Annotated[
        str,
        Argument("A rubric's file, or the name of one that ships.", "FILE"),
    ],
) -> None:
    """Name all faults of a rubric's file, or show its levels and the prompt that it makes.

    \b
    trustassay rubric check mine.yaml
    trustassay rubric check truthfulness
    """
    from trustassay.metrics.judge import read_rubric
    from trustassay.metrics.judge.replies import read_reply
    from trustassay.metrics.judge.votes import filled_prompt
    from trustassay.sample import Sample

    found = read_rubric(file)
    rows = []
    for level in found.levels:
        words = ", ".join(word for word in level.words if word != level.label)
        passes = level.value >= found.passes
        rows.append((level.label, f"{level.value:g}", "yes" if passes else "no", words))
    say(f"{found.title} ({found.name}/{found.version})")
    show_table(("level", "counts as", "passes", "also read as"), rows, {"also read as"})
    for level in found.levels:
        for words in (f"{found.label}: {level.label}", *level.words):
            read = read_reply(words, found)
            if read.label != level.label:
                what = read.fault or read.label
                raise UsageError(
                    f"{file}: the reply {words!r} is read as {what!r} and not as "
                    f"{level.label!r}; take another word for it"
                )
    say("the prompt, filled in with a sample:\n")
    say(filled_prompt(found, Sample.parse(EXAMPLE)))
