"""``trustassay demo``: score the bundled answers; with ``--all`` a real model's, by every method.

``data/recorded`` holds 60 questions of this project and all replies of two small models that the
methods need: ``answers.jsonl`` (answers from the model's knowledge), ``cited.jsonl`` (from
passages) and ``replies.jsonl.gz``. The files are made by ``python -m lab.benchmarks.recording``. A
prompt that is changed afterwards has no recorded reply.
"""

import gzip
import json
from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from trustassay.cli import common
from trustassay.cli.common import Entailer, Json
from trustassay.cli.options import with_options
from trustassay.cli.results import print_run, show_run
from trustassay.errors import UsageError
from trustassay.report.terminal import complain, print_json, say
from trustassay.runs.options import (
    OUTPUT,
    Flag,
)

if TYPE_CHECKING:
    from trustassay.runs.finished import Run

FOLDER = Path(str(files("trustassay") / "input" / "recorded"))
_EXAMPLES = FOLDER.parent / "example"
PROMPT = FOLDER / "question.jinja"
"""The prompt with which the model was asked for its answers."""
REPLIES = FOLDER / "replies.jsonl.gz"
MODEL = "Qwen2.5-Coder-1.5B-Instruct"
"""The model that gave the answers; it is also asked again, and as judge."""
OTHER = "Qwen2.5-Coder-0.5B-Instruct"
"""The model whose answers are the references of ``fewl``."""
MAX_ANSWER_TOKENS = 48
"""Tokens of an answer at most."""
# Options of metrics, equal to those of the recording: another prompt has no recorded reply.
_CHOICES = "sources=given,checks=5,stop=no"
_ASKED = f"prompt={PROMPT},max_tokens={MAX_ANSWER_TOKENS}"
_NUDGED = f"perturbations=5,{_ASKED},original=response"


class DemoPart(NamedTuple):
    """A file of answers in the demo, and its metrics."""

    file: str
    metrics: Sequence[str]
    roles: Sequence[str] = ()
    """Roles that the recorded model has."""


PARTS: Mapping[str, DemoPart] = {
    "closed-book": DemoPart(
        "answers.jsonl",
        [
            f"consistency:{_CHOICES}",
            "factcheck",
            f"trustscore:{_CHOICES}",
            f"harmonicity:{_NUDGED}",
            f"semantic_harmonicity:{_NUDGED}",
            f"uncertainty:samples=5,{_ASKED}",
            "fewl:weights=uniform",
            "judge",
        ],
        ["model", "judge"],
    ),
    "cited": DemoPart("cited.jsonl", ["grounding"]),
}


def score_recorded(out: Path, entailer: str) -> "list[Run]":
    """Score both files, each into a folder in ``out``, without a call to a chat model.

    Raises:
        Exception: as :func:`~trustassay.api.score`.
    """
    from trustassay import api
    from trustassay.backends.replay import ReplayChat

    recorded = ReplayChat(str(REPLIES), MODEL)
    # Reports must not look as if the model had been called.
    recorded.name = f"{MODEL}, recorded"
    return [
        api.score(
            FOLDER / part.file,
            metrics=part.metrics,
            entailer=entailer,
            out=out / name,
            # Recorded replies must not get into the cache that other runs share.
            cache=None,
            progress=True,
            backends=dict.fromkeys(part.roles, recorded),
        )
        for name, part in PARTS.items()
    ]


EXAMPLE_FILES: Mapping[str, str] = json.loads((_EXAMPLES / "files.json").read_text("utf-8"))
"""The files that ``demo --files`` writes, with a description of each."""
_RECORDED = {
    "qwen.jsonl": FOLDER / "answers.jsonl",
    "qwen-replies.jsonl": REPLIES,
    "qwen-prompt.jinja": PROMPT,
}


def _content(name: str) -> bytes:
    """Return the content of an example file; recorded replies are unpacked."""
    path = _RECORDED.get(name, _EXAMPLES / name)
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def _write_examples(folder: Path) -> None:
    contents = {name: _content(name) for name in EXAMPLE_FILES}
    for name, content in contents.items():
        path = folder / name
        # All files are checked before the first is written.
        if path.exists() and path.read_bytes() != content:
            raise UsageError(f"{path} already exists and is another file: choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
        typer.echo(f"{folder / name}: {EXAMPLE_FILES[name]}")
    typer.echo("The files qwen* hold text of models under Apache-2.0, as they wrote it.")
    typer.echo("Other replies, labels and ratings are scripted: no model and no person gave them.")


@with_options
def demo(
    *,
    out: Annotated[
        Path | None,
        Flag("--out", "The run's folder. Default: one in trustassay-runs.", group=OUTPUT),
    ],
    entailer: Entailer,
    as_json: Json,
    open_report: common.OpenReport,
    example_files: Annotated[
        Path | None,
        Flag(
            "--files",
            "Score nothing; write example files into this folder: 60 questions, answers, "
            "ratings and scripted models.",
            metavar="DIR",
            group=OUTPUT,
        ),
    ],
    every: Annotated[
        bool,
        Flag(
            "--all",
            "Score 60 recorded answers of a real model, by every method that asks a model too.",
        ),
    ],
) -> None:
    """Score the bundled example: 32 cited answers, good ones and bad ones.

    \b
    trustassay demo --open
    trustassay demo --all --open
    trustassay demo --files .
    """
    if example_files is not None:
        _write_examples(example_files)
        return
    from trustassay import api
    from trustassay.runs.intake import default_folder

    if every:
        say(f"scoring 60 answers of {MODEL} from its recorded replies; references: {OTHER}")
        say("the replies are text of models under Apache-2.0; right or wrong was read by eye")
        folder = out or default_folder(FOLDER, metrics=["all"], entailer=entailer)
        runs = score_recorded(folder, entailer)
        statuses = []
        for run in runs:
            if open_report:
                typer.launch(str(run.path / "report.html"))
            statuses.append(print_run(run, as_json=False))
        if as_json:
            print_json({run.path.name: run.summary_file for run in runs})
        none = runs[0].summaries["consistency"].values["none_chosen"]
        say(
            f"{MODEL} takes none of the options in {none:.0f} % of its choices, of right answers "
            "too: so small a model says little by consistency, and that rule finds all answers"
        )
        say("this compares the methods with what is right:")
        complain(f"  trustassay study {runs[0].path} --label label", fold=False)
        # Status 1 only if nothing could be judged in either file.
        if all(statuses):
            raise typer.Exit(1)
        return
    with as_file(files("trustassay.input") / "demo.jsonl") as source:
        say(f"scoring the bundled answers with the entailer {entailer}")
        folder = out or default_folder(source, metrics=["grounding"], entailer=entailer)
        run = api.score(source, metrics=["grounding"], entailer=entailer, out=folder, progress=True)
    show_run(run, as_json=as_json, open_report=open_report)
