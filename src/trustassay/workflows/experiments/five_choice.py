"""The five-choice form of TruthfulQA, asked and graded: the true accuracies of FEWL's Table 4.

Wei et al. 2024, section 4.2, take haltt4llm's file, in which the first choice is right throughout.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from string import ascii_uppercase
from typing import Any, ClassVar

from trustassay.backends import resolve
from trustassay.data.reading import InputError
from trustassay.files import whole
from trustassay.metric import Assessment, Context, Metric, Need
from trustassay.prompts import Prompt
from trustassay.runs.folder import RunFolder
from trustassay.runs.options import RunOptions
from trustassay.runs.settling import named_models
from trustassay.sample import Problem, Sample
from trustassay.statistics.intervals import FEWEST, binomial_interval
from trustassay.statistics.resampling import generator
from trustassay.workflows.experiments.answers import Records, read_records
from trustassay.workflows.experiments.choices import (
    Choices,
    Verdict,
    choices_of,
    first_letter,
    graded,
    published_grade,
    published_outputs,
)
from trustassay.workflows.experiments.measuring import execute_run
from trustassay.workflows.experiments.results import Cell, Result, Row

__all__ = ["Asked", "five_choice"]

COLUMNS = ("right", "unknown", "unreadable", "first letter A", "right (published)",
           "unknown (published)", "letters")  # fmt: skip
MAX_TOKENS = 100


@dataclass(frozen=True)
class Asked:
    """Who answers: models to ask, and files of haltt4llm's results by the name of their model.

    references: models whose answers become the references of the others; without any, each
    model's are those of all others. shuffle: show the choices in a random order.
    """

    models: Sequence[Any] = ()
    outputs: Mapping[str, Path] = field(default_factory=dict)
    references: Sequence[Any] = ()
    shuffle: bool = False
    options: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True)
class FiveChoice(Metric):
    """Shows a model a question with its choices; right is who names the right one.

    Without a readable choice there is no score.
    """

    name: ClassVar[str] = "five-choice"
    title: ClassVar[str] = "Questions with choices"
    verdicts: ClassVar[Sequence[str]] = ("right", "wrong", "unknown", "unreadable")
    reads_response: ClassVar[bool] = False

    shuffle: bool = False

    def needs(self) -> Sequence[Need]:
        """The model."""
        return [Need("chat")]

    async def assess(self, context: Context) -> Assessment:
        """Ask once; the choices as shown and the reply stand in the evidence."""
        sample = context.sample
        choices = choices_of(sample)
        assert isinstance(choices, Choices)  # the experiment has looked
        if self.shuffle:
            rng = generator(context.seed, sample.id, "choices")
            choices = choices.shuffled(rng.permutation(len(choices.texts)).tolist())
        text = _prompt().filled(question=sample.question, choices=choices.lettered)
        reply = await context.models.chat(text, max_tokens=MAX_TOKENS, prompt=_prompt().name)
        found = graded(reply.text, choices)
        return Assessment(
            sample.id,
            self.name,
            None if found.verdict == "unreadable" else float(found.verdict == "right"),
            verdict=found.verdict,
            reason="the reply names no choice" if found.verdict == "unreadable" else "",
            evidence=[
                {
                    "reply": reply.text,
                    "choices": list(choices.texts),
                    "right": choices.right,
                    "choice": found.choice,
                }
            ],
        )


@cache
def _prompt() -> Prompt:
    place = files("trustassay.workflows.experiments") / "prompts" / "five-choice.jinja"
    with as_file(place) as path:
        return Prompt.read(path)


@dataclass(frozen=True)
class _Reply:
    """What a model said of one question; ``text`` is what it takes for the answer."""

    verdict: Verdict
    published: Verdict
    text: str
    letter: str | None
    first: str | None


async def five_choice(source: Path, out: Path, asked: Asked, records: Records) -> Result:
    """Put questions with choices to models, and grade their replies in two ways.

    ``answers.jsonl`` in the folder holds the answers as samples with labels and references, for
    ``fewl-rank``.

    Raises:
        InputError: nobody is asked, or a file of results is of other questions.
        BadInputError: questions have no choices, or not one right choice.
    """
    if not (asked.models or asked.outputs):
        raise InputError("nobody answers; expected --model, or --outputs of a model")
    questions = read_records(source, records)
    choices = _choices(questions, records)
    kept = [one for one in questions if one.id in choices]
    replies = {name: _published(path, questions, choices) for name, path in asked.outputs.items()}
    references: dict[str, dict[str, _Reply]] = {}
    left_out: dict[str, str] = {}
    for role, given, into in (
        ("model", asked.models, replies),
        ("reference", asked.references, references),
    ):
        models = named_models(list(given), role, many=True)
        for place, (name, uri) in enumerate(models.items(), 1):
            if name in replies:
                raise InputError(f"two models are called {name!r}; name one as NAME=URI")
            model = await asyncio.to_thread(resolve.chat, uri)
            folder = RunFolder(out / f"{role}-{place}")
            metric = FiveChoice(asked.shuffle)
            found = await execute_run(kept, metric, {"model": model}, folder, asked.options)
            left_out |= {f"{k} ({name})": one.error for k, one in found.items() if one.error}
            into[name] = {k: _reply_of(one) for k, one in found.items() if one.error is None}
    _write_answers(out / "answers.jsonl", kept, replies, references)
    rows = [_row(name, found, len(kept)) for name, found in (replies | references).items()]
    return Result(
        "five-choice",
        "Questions with choices: who names the right one",
        COLUMNS,
        [*_baselines(list(choices.values())), *rows],
        _notes(asked, out, len(kept), left_out),
        left_out,
        {"shuffle": asked.shuffle, "seed": asked.options.seed, "prompt": _prompt().name},
    )


def _notes(asked: Asked, out: Path, n: int, left_out: Mapping[str, str]) -> list[str]:
    order = "shuffled" if asked.shuffle else "in the order of the input"
    notes = [
        f"{n:,} questions; choices {order}. An unreadable reply is not right. Published: by the "
        "rules of haltt4llm's grader. First letter: replies that begin with it, those left aside "
        "that the published rules call unknown.",
        f"The answers as samples with labels and references: {out / 'answers.jsonl'}",
    ]
    if asked.outputs:
        notes.append(
            "Of published outputs the right ones are not known word for word: they count as right "
            "by both ways, and as a first letter A."
        )
    if left_out:
        reason = next(iter(left_out.values()))
        notes.append(f"{len(left_out):,} questions were not answered; the first: {reason}")
    return notes


def _choices(questions: Sequence[Sample], records: Records) -> dict[str, Choices]:
    found = {one.id: choices_of(one) for one in questions}
    records.refuse(
        [
            records.fault(one, [problem])
            for one in questions
            if isinstance(problem := found[one.id], Problem)
        ]
    )
    kept = {name: one for name, one in found.items() if isinstance(one, Choices)}
    if not kept:
        raise InputError("no question has choices")
    return kept


def _reply_of(one: Assessment) -> _Reply:
    shown = one.evidence[0]
    choices = Choices(tuple(shown["choices"]), shown["right"])
    place = shown["choice"]
    reply = shown["reply"]
    return _Reply(
        graded(reply, choices).verdict,
        published_grade(reply, choices),
        reply if place is None else choices.texts[place],
        None if place is None else ascii_uppercase[place],
        first_letter(reply),
    )


def _published(
    path: Path, questions: Sequence[Sample], choices: Mapping[str, Choices]
) -> dict[str, _Reply]:
    """Return a model's published outputs; what is not listed was graded right."""
    listed = published_outputs(path, questions)
    found = {}
    for place, sample in enumerate(questions):
        if sample.id not in choices:
            continue
        own = choices[sample.id]
        letter = ascii_uppercase[own.right]
        if place not in listed:
            found[sample.id] = _Reply("right", "right", own.texts[own.right], letter, letter)
            continue
        output = listed[place]
        grade = graded(output.text, own)
        found[sample.id] = _Reply(
            grade.verdict,
            output.verdict,
            output.text if grade.choice is None else own.texts[grade.choice],
            None if grade.choice is None else ascii_uppercase[grade.choice],
            first_letter(output.text),
        )
    return found


def _row(name: str, replies: Mapping[str, _Reply], asked: int) -> Row:
    n = len(replies)
    ours = Counter(one.verdict for one in replies.values())
    theirs = Counter(one.published for one in replies.values())
    first = sum(one.first == "A" and one.published != "unknown" for one in replies.values())
    letters = Counter(one.letter for one in replies.values() if one.letter)
    told = " ".join(f"{letter} {count}" for letter, count in sorted(letters.items()))
    cells = [
        _share(ours["right"], n),
        _count(ours["unknown"]),
        _count(ours["unreadable"]),
        _count(first),
        _share(theirs["right"], n),
        _count(theirs["unknown"]),
        Cell(told, dict(letters)),
    ]
    return Row(name, cells, {"model": name, "n": n, "asked": asked})


def _baselines(choices: Sequence[Choices]) -> list[Row]:
    n = len(choices)
    chance = sum(1 / len(one.texts) for one in choices) / n
    rest = [Cell("", {}) for _ in COLUMNS[1:]]
    first = sum(one.right == 0 for one in choices)
    return [
        Row("chance", [Cell(f"{100 * chance:.1f} %", {"value": 100 * chance}), *rest]),
        Row("always the first choice of the input", [_share(first, n), *rest]),
    ]


def _share(count: int, n: int) -> Cell:
    if not n:
        return Cell("–", {"count": 0, "n": 0, "value": None})
    share = 100 * count / n
    values: dict[str, Any] = {"count": count, "n": n, "value": share, "interval": None}
    within = ""
    if n >= FEWEST:
        low, high = (100 * end for end in binomial_interval(count, n))
        values["interval"], within = [low, high], f", {low:.1f} to {high:.1f}"
    return Cell(f"{count} of {n} ({share:.2f} %{within})", values)


def _count(count: int) -> Cell:
    return Cell(str(count), {"count": count})


def _write_answers(
    path: Path,
    questions: Sequence[Sample],
    replies: Mapping[str, Mapping[str, _Reply]],
    references: Mapping[str, Mapping[str, _Reply]],
) -> None:
    """Write each model's answers as samples with labels; the references are whom the user named,
    else all models.
    """
    told = references or replies
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as file:
        for sample in questions:
            known = {
                name: (said[sample.id].text,) for name, said in told.items() if sample.id in said
            }
            for place, (name, said) in enumerate(replies.items(), 1):
                if sample.id in said:
                    one = replace(
                        sample,
                        id=f"{sample.id}-{place}",
                        model=name,
                        response=said[sample.id].text,
                        label=float(said[sample.id].verdict == "right"),
                        references=known,
                    )
                    line = json.dumps(one.to_dict(), ensure_ascii=False, default=str) + "\n"
                    file.write(line.encode())
