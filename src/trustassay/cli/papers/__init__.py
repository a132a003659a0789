"""``trustassay papers``: experiments of papers, and their data sets."""

import typer

from trustassay.cli.papers import (
    cite,
    dataset,
    distractors,
    experiment,
    harmonicity,
    reproduce,
    select,
    tune,
)

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True)


@app.callback()
def group() -> None:
    """Recompute the tables of papers, and build their data sets.

    \b
    trustassay papers reproduce truthfulness
    trustassay papers dataset questions.jsonl --corpus texts/ --out data.jsonl
    trustassay papers experiment fewl-pairs chale.json \\
        --reference openai:gpt-4o-mini
    """


app.add_typer(dataset.app, name="dataset")
app.add_typer(select.app, name="select")
app.command("reproduce")(reproduce.reproduce)
app.command("experiment")(experiment.experiment)
app.command("tune")(tune.tune)
app.command("cite")(cite.cite)
app.command("distractors")(distractors.distractors)
app.command("attack")(harmonicity.attack)
app.command("isotropy")(harmonicity.isotropy)
