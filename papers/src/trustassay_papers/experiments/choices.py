"""Questions with choices: how replies are graded, and the outputs that haltt4llm published."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from string import ascii_uppercase
from typing import Any, ClassVar, Literal, NamedTuple

from trustassay.backends import resolve
from trustassay.calls.multiple_choice import chosen
from trustassay.data.records import InputError
from trustassay.files import whole
from trustassay.metric import Assessment, Context, Metric, Need
from trustassay.prompts import Prompt
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import RunOptions
from trustassay.runs.needs import named_models
from trustassay.sample import Problem, Sample, clean
from trustassay.statistics.intervals import FEWEST, binomial_interval
from trustassay.statistics.resampling import generator
from trustassay_papers.experiments.answers import Records, read_records
from trustassay_papers.experiments.measuring import execute_run
from trustassay_papers.experiments.results import Cell, Result, Row

Verdict = Literal["right", "wrong", "unknown", "unreadable"]
DONT_KNOW = "i don't know"
LONGEST_FILE = 64_000_000
"""Bytes of a file of outputs; haltt4llm's have 300,000."""
_BLOCK = re.compile(r"^Question (\d{1,9}): ", re.MULTILINE)
_MARK = re.compile(r"\s*\((incorrect [A-Z]\.|uncertain)\)")
_FIRST = re.compile(r"\s*\(?([A-Z])[.):]")


@dataclass(frozen=True)
class Choices:
    """The choices of a question in the order shown; ``right`` is the place of the right one."""

    texts: tuple[str, ...]
    right: int

    @property
    def lettered(self) -> list[tuple[str, str]]:
        """Each with its letter."""
        return list(zip(ascii_uppercase, self.texts, strict=False))

    def shuffled(self, order: Sequence[int]) -> Choices:
        """Return the choices in another order, given as places in this one."""
        return Choices(tuple(self.texts[k] for k in order), list(order).index(self.right))


class Grade(NamedTuple):
    """What a reply amounts to; ``choice`` is the place of the choice that it names."""

    verdict: Verdict
    choice: int | None = None


class Output(NamedTuple):
    """A published output that its grader did not call right, and what it called it."""

    text: str
    verdict: Verdict


def choices_of(sample: Sample) -> Choices | Problem:
    """Return the choices of a question as haltt4llm's file has them, or what is wrong with them."""

    given = sample.metadata.get("choices")
    if not (
        isinstance(given, list | tuple)
        and 2 <= len(given) <= len(ascii_uppercase)
        and all(isinstance(one, str) for one in given)
    ):
        return Problem("choices", f"expected 2 to {len(ascii_uppercase)} texts")
    texts = tuple(" ".join(clean(one).split()) for one in given)
    marked = sample.metadata.get("right_choice")  # it may be blank, and so be no answer
    if isinstance(marked, int) and 0 <= marked < len(texts):
        return Choices(texts, marked)
    gold = {" ".join(alias.split()) for aliases in sample.answers for alias in aliases}
    right = [place for place, text in enumerate(texts) if text in gold]
    if len(right) != 1:
        return Problem("answers", f"{len(right)} of the choices are right; expected one")
    return Choices(texts, right[0])


def graded(reply: str, choices: Choices) -> Grade:
    """Return what a reply amounts to: the choice that it repeats, or whose letter it names.

    Any text gives a grade. "I don't know" as a choice is unknown; a reply that names no choice, or
    several, is unreadable.
    """
    place = chosen(reply, choices.texts)
    if place is None:
        return Grade("unreadable")
    if place == choices.right:
        return Grade("right", place)
    known = choices.texts[place].casefold() != DONT_KNOW
    return Grade("wrong" if known else "unknown", place)


def published_grade(reply: str, choices: Choices) -> Verdict:
    """Return what haltt4llm's grader says of a reply.

    Right: the reply contains the right choice's words, or its letter behind a space and before a
    full stop, or in brackets. Else unknown: it contains "I don't know", or is no more than "D" or
    "D.". So "A." before other words is wrong even if A is right, and D, which is "None of the
    above" there, means that nothing is known.
    """
    letter, text = choices.lettered[choices.right]
    said = reply.lower().strip()
    if text.lower().strip() in said or f" {letter}." in reply or f"({letter})" in reply:
        return "right"
    return "unknown" if DONT_KNOW in said or said in ("d", "d.") else "wrong"


def first_letter(reply: str) -> str | None:
    """Return the capital letter that a reply begins with as the label of a choice, if it does."""
    found = _FIRST.match(reply)
    return found[1] if found else None


def published_outputs(path: Path, questions: Sequence[Sample]) -> dict[int, Output]:
    """Read a file of haltt4llm's results: the outputs that were not graded right, by place.

    ``questions`` are those of the file that was asked, in its order. Blocks beyond them are left
    out. A question that has no block was graded right; what was replied to it is not published.

    Raises:
        InputError: the file is not one of results, or belongs to other questions.
    """
    if path.stat().st_size > LONGEST_FILE:
        raise InputError(
            f"{path}: is larger than {LONGEST_FILE:,} bytes; expected a file of results"
        )
    text = path.read_text(encoding="utf-8", errors="replace")
    if not text.startswith("Total score:"):
        raise InputError(f"{path}: expected haltt4llm's results, which begin with 'Total score:'")
    parts = _BLOCK.split(text)
    found: dict[int, Output] = {}
    for number, block in zip(parts[1::2], parts[2::2], strict=True):
        place = int(number) - 1
        if not 0 <= place < len(questions):
            continue
        question = questions[place].question.strip()
        if not block.startswith(question):
            raise InputError(
                f"{path}: question {number} is not that of the input; expected {question[:60]!r}"
            )
        found[place] = _output(block[len(question) :], f"{path}: question {number}")
    return found


def _output(block: str, where: str) -> Output:
    """Return the output behind the question's line and those of the choices, which are indented."""
    lines = block.partition("\n")[2].splitlines(keepends=True)
    while lines and re.match(r"\s{2,}[A-Z]\. ", lines[0]):
        lines.pop(0)
    mark = _MARK.search(said := "".join(lines))
    if mark is None:
        raise InputError(f"{where}: expected '(incorrect A.)' or '(uncertain)' behind the output")
    return Output(said[: mark.start()].strip(), "unknown" if mark[1] == "uncertain" else "wrong")


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
    place = files("trustassay_papers") / "prompts" / "five-choice.jinja"
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
