"""``trustassay rubric``: the rubrics of the metric judge."""

from typing import Annotated

import typer

from trustassay.cli.options import with_options
from trustassay.errors import UsageError
from trustassay.report.terminal import say, show_table
from trustassay.runs.options import (
    Flag,
)

rubric = typer.Typer(no_args_is_help=True)


# The sample with which a checked rubric is filled in.
EXAMPLE = {
    "question": "The question.",
    "answers": [["The gold answer."]],
    "response": "The answer to rate.",
    "documents": [{"title": "A title", "text": "A passage."}],
}


@rubric.callback()
def group() -> None:
    """Check rubrics of the metric judge.

    \b
    trustassay rubric check mine.yaml
    """


@rubric.command("check")
@with_options
def check(
    *, file: Annotated[str, Flag("FILE", "File of a rubric, or the name of a built-in one.")]
) -> None:
    """Check a rubric: list its faults, or show its levels and the prompt.

    \b
    trustassay rubric check mine.yaml
    trustassay rubric check truthfulness
    """
    from trustassay.core.sample import Sample
    from trustassay.metrics.judge import read_rubric
    from trustassay.metrics.judge.replies import read_reply
    from trustassay.metrics.judge.votes import build_judge_prompt

    result = read_rubric(file)
    rows = []
    for level in result.levels:
        other_readings = ", ".join(word for word in level.words if word != level.label)
        passes = level.value >= result.passes
        rows.append((level.label, f"{level.value:g}", "yes" if passes else "no", other_readings))
    say(f"{result.title} ({result.name}/{result.version})")
    show_table(("level", "value", "passes", "also accepted"), rows, {"also accepted"})
    for level in result.levels:
        # The rubric is tried on replies that it invites: each must be read as its own level.
        for reply_text in (f"{result.label}: {level.label}", *level.words):
            reading = read_reply(reply_text, result)
            if reading.label != level.label:
                understood = reading.fault or reading.label
                raise UsageError(
                    f"{file}: the reply {reply_text!r} is read as {understood!r} and not as "
                    f"{level.label!r}; use another word for this level"
                )
    say("the prompt with an example sample:\n")
    say(build_judge_prompt(result, Sample.parse(EXAMPLE)))
