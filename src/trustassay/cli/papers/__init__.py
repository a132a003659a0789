"""``trustassay papers``: the command line finds it by the entry point ``trustassay.commands``."""

from __future__ import annotations

import typer

from trustassay.cli.options import quietable
from trustassay.cli.papers import cite, dataset, distractors, experiment, harmonicity, select, tune

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True)


@app.callback()
def group() -> None:
    """Repeat experiments of papers, and make their data sets.

    \b
    trustassay papers dataset questions.jsonl --corpus texts/ --out data.jsonl
    trustassay papers experiment fewl-pairs chale.json \\
        --reference openai:gpt-4o-mini
    """


app.add_typer(experiment.app, name="experiment")
app.add_typer(dataset.app, name="dataset")
app.add_typer(select.app, name="select")
app.command("tune")(tune.tune)
app.command("cite")(cite.cite)
app.command("distractors")(distractors.distractors)
app.command("attack")(harmonicity.attack)
app.command("isotropy")(harmonicity.isotropy)
# Every command takes --quiet; typer keeps callbacks in lists, so it is added at the end.
for subapp in (app, dataset.app, select.app, experiment.app):
    for command in subapp.registered_commands:
        if command.callback:
            command.callback = quietable(command.callback)
