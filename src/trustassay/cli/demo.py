"""``trustassay demo``: check 60 answers of a small model; with ``--all`` by every method.

``input/recorded`` holds 60 questions of this project and all replies of two small models that the
methods need: ``answers.jsonl`` (answers from the model's knowledge), ``cited.jsonl`` (from
passages) and ``replies.jsonl.gz``. The files are made by ``python -m lab.benchmarks.recording``. A
prompt that is changed afterwards has no recorded reply.
"""

import gzip
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from trustassay.cli import common
from trustassay.cli.common import Entailer, Json
from trustassay.cli.options import with_options
from trustassay.cli.results import print_run
from trustassay.errors import UsageError
from trustassay.report.terminal import advise, complain, print_json, say
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
NEXT_STEPS = (
    "Next, with your own answers (columns question, answer, passages; other names: --field):",
    "  trustassay score answers.csv --out runs/one        which answers need a look, and why",
    "  trustassay view runs                               read them in the browser, rate a few",
    "  trustassay gate runs/one --max failed=10%          pass or fail a build",
)
"""The last lines of the demo: what to do with one's own file."""
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
    typer.echo("qwen*: recorded replies of real models (Apache-2.0).")
    typer.echo("All other answers, replies, labels and ratings are made up, for practice only.")


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
            "Score nothing; write example files into this folder: questions, answers, labels, "
            "ratings and models, as the pages of the guide use them.",
            metavar="DIR",
            group=OUTPUT,
        ),
    ],
    every: Annotated[
        bool,
        Flag(
            "--all",
            "Score the answers by every method; those that ask a model read its recorded replies.",
        ),
    ],
) -> None:
    """Show the main job on an example: which of 60 answers are wrong, and why.

    The answers are those of a small language model to questions of general knowledge. Each is
    compared with two short passages. No key and no download is needed.

    \b
    trustassay demo
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
        folder = out or default_folder(FOLDER, metrics=["all"], entailer=entailer)
        _score_by_every_method(folder, entailer, as_json=as_json, open_report=open_report)
        return
    say(f"A small model ({MODEL}) answered 60 questions of general knowledge.")
    say(f"The judge {entailer} compares each answer with two short passages.")
    answers = FOLDER / "answers.jsonl"
    default = default_folder(answers, metrics=["faithfulness"], entailer=entailer)
    folder = out or default.with_name(default.name.replace(answers.stem, "demo", 1))
    run = api.score(answers, metrics=["faithfulness"], entailer=entailer, out=folder, progress=True)
    status = print_run(run, as_json=as_json)
    if open_report:
        typer.launch(str(run.path / "report.html"))
    for line in NEXT_STEPS:
        advise(line)
    if status:
        raise typer.Exit(status)


def _score_by_every_method(
    folder: Path, entailer: str, *, as_json: bool, open_report: bool
) -> None:
    """Score the recorded answers by every method, and print how to compare the methods."""
    say(f"scoring 60 answers of {MODEL} from its recorded replies; references: {OTHER}")
    say("the replies are the models' text (Apache-2.0); a person labelled each answer")
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
        f"{MODEL} chooses none of the options in {none:.0f} % of its choices, also for right "
        "answers: consistency says little about so small a model"
    )
    say("to compare the methods with the labels:")
    complain(f"  trustassay study {runs[0].path} --label label", fold=False)
    # Status 1 only if nothing could be judged in either file.
    if all(statuses):
        raise typer.Exit(1)
