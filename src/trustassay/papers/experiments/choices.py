"""Ask models questions with choices and grade the replies; read haltt4llm's published outputs."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any, ClassVar, Literal, NamedTuple

from trustassay.backends import resolve
from trustassay.backends.registry import check_loadable
from trustassay.calls.multiple_choice import find_chosen_option
from trustassay.core.files import open_atomic
from trustassay.core.metric import Assessment, Context, Metric, Need
from trustassay.core.prompts import load_prompt
from trustassay.core.sample import Problem, Sample, clean
from trustassay.input.records import InputError
from trustassay.papers.experiments.answers import RecordSelection, read_records
from trustassay.papers.experiments.measuring import errors_of, execute_run
from trustassay.papers.experiments.results import (
    Cell,
    ExperimentResult,
    ExperimentRow,
    note_left_out,
)
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import RunOptions
from trustassay.runs.needs import name_models
from trustassay.statistics.intervals import MIN_UNITS, binomial_interval
from trustassay.statistics.resampling import generator
from trustassay.text.numbers import amount

Verdict = Literal["right", "wrong", "unknown", "unreadable"]
# In small letters, as replies are compared.
DONT_KNOW = "i don't know"
COLUMNS = ("right", "unknown", "unreadable", "first letter A", "right (published)",
           "unknown (published)", "letters")  # fmt: skip
MAX_TOKENS = 100
"""Of a reply: enough for a letter and a sentence."""
MAX_FILE_BYTES = 64_000_000
"""Maximum bytes of a file of outputs; haltt4llm's have 300,000."""
# `Question 12: ...` begins the block of a question.
_BLOCK = re.compile(r"^Question (\d{1,9}): ", re.MULTILINE)
# The grader's mark at the end of an output: `(incorrect B.)` or `(uncertain)`.
_MARK = re.compile(r"\s*\((incorrect [A-Z]\.|uncertain)\)")
# `A.`, `(B)` or `C:` at the beginning of a reply.
_FIRST_LETTER = re.compile(r"\s*\(?([A-Z])[.):]")


@dataclass(frozen=True)
class QuestionChoices:
    """The choices of a question in the order shown; ``right`` is the index of the right one."""

    texts: tuple[str, ...]
    right: int

    @property
    def lettered(self) -> list[tuple[str, str]]:
        """The choices, each with its letter."""
        return list(zip(ascii_uppercase, self.texts, strict=False))

    def shuffle(self, order: Sequence[int]) -> QuestionChoices:
        """Return the choices in another order; ``order`` holds indices into this one."""
        return QuestionChoices(tuple(self.texts[k] for k in order), list(order).index(self.right))


class Grade(NamedTuple):
    """The grade of a reply; ``choice`` is the index of the choice that it names."""

    verdict: Verdict
    choice: int | None = None


class PublishedOutput(NamedTuple):
    """A published output that haltt4llm did not grade as right, with its verdict."""

    text: str
    verdict: Verdict


def choices_of(sample: Sample) -> QuestionChoices | Problem:
    """Return the choices of a question in haltt4llm's layout, or what is wrong with them."""

    raw_texts = sample.metadata.get("choices")
    if not (
        isinstance(raw_texts, list | tuple)
        and 2 <= len(raw_texts) <= len(ascii_uppercase)
        and all(isinstance(raw_text, str) for raw_text in raw_texts)
    ):
        return Problem("choices", f"expected a list of 2 to {len(ascii_uppercase)} texts")
    # Line breaks in a choice would end it in the prompt.
    texts = tuple(" ".join(clean(raw_text).split()) for raw_text in raw_texts)
    # Its text may be blank, and so be no gold answer.
    right_choice = sample.metadata.get("right_choice")
    if isinstance(right_choice, int) and 0 <= right_choice < len(texts):
        return QuestionChoices(texts, right_choice)
    gold = {" ".join(alias.split()) for aliases in sample.answers for alias in aliases}
    # Records without the field: the one choice that is a gold answer.
    right = [index for index, text in enumerate(texts) if text in gold]
    if len(right) != 1:
        return Problem("answers", f"{len(right)} of the choices are right; expected exactly one")
    return QuestionChoices(texts, right[0])


def grade_reply(reply: str, choices: QuestionChoices) -> Grade:
    """Grade a reply by the choice whose text it repeats or whose letter it names.

    Every text gets a grade. The choice "I don't know" is unknown; a reply that names no choice, or
    several, is unreadable.
    """
    # The same reader of replies as for consistency checks.
    index = find_chosen_option(reply, choices.texts)
    if index is None:
        return Grade("unreadable")
    if index == choices.right:
        return Grade("right", index)
    is_answer = choices.texts[index].casefold() != DONT_KNOW
    # To choose "I don't know" is not an error, but not right either.
    return Grade("wrong" if is_answer else "unknown", index)


def grade_as_published(reply: str, choices: QuestionChoices) -> Verdict:
    """Grade a reply by the rules of haltt4llm.

    Right: the reply contains the text of the right choice, or its letter between a space and a full
    stop, or in brackets. Unknown: it contains "I don't know", or is only "D" or "D.". So a reply
    that begins with "A." is wrong even if A is right, and D counts as unknown although it is "None
    of the above" there.
    """
    # Their rules, kept to the letter: they grade by containment, so that a reply that names
    # several choices may be right.
    letter, text = choices.lettered[choices.right]
    lowered = reply.lower().strip()
    if text.lower().strip() in lowered or f" {letter}." in reply or f"({letter})" in reply:
        return "right"
    return "unknown" if DONT_KNOW in lowered or lowered in ("d", "d.") else "wrong"


def first_letter(reply: str) -> str | None:
    """Return the letter of a choice with which a reply begins, or ``None``."""
    match = _FIRST_LETTER.match(reply)
    return match[1] if match else None


def read_published_outputs(path: Path, questions: Sequence[Sample]) -> dict[int, PublishedOutput]:
    """Read a file of haltt4llm's results: the outputs not graded as right, by question index.

    ``questions`` are those that were asked, in order; blocks beyond them are ignored. A question
    without a block was graded as right, and the reply to it is not published.

    Raises:
        InputError: the file holds no results, or those of other questions.
    """
    # Before reading: the option takes any file.
    if path.stat().st_size > MAX_FILE_BYTES:
        raise InputError(
            f"{path}: is larger than {MAX_FILE_BYTES:,} bytes; expected a file of results"
        )
    text = path.read_text(encoding="utf-8", errors="replace")
    if not text.startswith("Total score:"):
        raise InputError(f"{path}: expected haltt4llm's results, which begin with 'Total score:'")
    # The text before the first block, then a number and a block in turn.
    parts = _BLOCK.split(text)
    outputs: dict[int, PublishedOutput] = {}
    for number, block in zip(parts[1::2], parts[2::2], strict=True):
        index = int(number) - 1
        if not 0 <= index < len(questions):
            continue
        question = questions[index].question.strip()
        # Without this check an input in another order would give wrong grades silently.
        if not block.startswith(question):
            raise InputError(
                f"{path}: question {number} differs from the input's; expected {question[:60]!r}"
            )
        outputs[index] = _parse_output(block[len(question) :], f"{path}: question {number}")
    return outputs


def _parse_output(block: str, location: str) -> PublishedOutput:
    """Return the output in a block, after the question's line and the indented choices."""
    lines = block.partition("\n")[2].splitlines(keepends=True)
    # The choices are indented: two spaces or more before "A. Paris".
    while lines and re.match(r"\s{2,}[A-Z]\. ", lines[0]):
        lines.pop(0)
    # The output itself may contain several lines, so the mark ends it.
    mark = _MARK.search(text := "".join(lines))
    if mark is None:
        raise InputError(f"{location}: expected '(incorrect A.)' or '(uncertain)' after the output")
    return PublishedOutput(
        text[: mark.start()].strip(), "unknown" if mark[1] == "uncertain" else "wrong"
    )


@dataclass(frozen=True)
class FiveChoiceSetup:
    """Whose answers are graded."""

    models: Sequence[Any] = ()
    """Models to ask."""
    outputs: Mapping[str, Path] = field(default_factory=dict)
    """Files of haltt4llm's results, by the name of their model."""
    references: Sequence[Any] = ()
    """Models whose answers become references; without any, those of all models do."""
    shuffle: bool = False
    """Whether to show the choices in a random order."""
    options: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True)
class FiveChoice(Metric):
    """Asks a model a question with choices; the score is 1 if it names the right one.

    A reply without a readable choice has no score.
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
        """Ask once; the evidence holds the reply and the choices as shown."""
        sample = context.sample
        choices = choices_of(sample)
        assert isinstance(choices, QuestionChoices)  # the experiment has checked it
        if self.shuffle:
            # By the id: the order does not depend on the other samples.
            rng = generator(context.seed, sample.id, "choices")
            choices = choices.shuffle(rng.permutation(len(choices.texts)).tolist())
        prompt = load_prompt("trustassay.papers", "five-choice")
        text = prompt.fill(question=sample.question, choices=choices.lettered)
        reply = await context.models.chat(text, max_tokens=MAX_TOKENS, prompt=prompt.name)
        grade = grade_reply(reply.text, choices)
        return Assessment(
            sample.id,
            self.name,
            # No score rather than 0: the reply says nothing about the question.
            None if grade.verdict == "unreadable" else float(grade.verdict == "right"),
            verdict=grade.verdict,
            reason="the reply names no choice" if grade.verdict == "unreadable" else "",
            evidence=[
                {
                    "reply": reply.text,
                    "choices": list(choices.texts),
                    "right": choices.right,
                    "choice": grade.choice,
                }
            ],
        )


@dataclass(frozen=True)
class _GradedReply:
    """A model's reply to one question, graded."""

    verdict: Verdict
    """By our grader."""
    published: Verdict
    """By haltt4llm's grader."""
    text: str
    """The text of the choice that it names, or the whole reply."""
    letter: str | None
    """The letter of that choice."""
    first: str | None
    """The letter that the reply begins with."""


async def run_five_choice(
    source: Path, out: Path, setup: FiveChoiceSetup, records: RecordSelection
) -> ExperimentResult:
    """Ask models questions with choices, and grade their replies by our rules and by haltt4llm's.

    ``answers.jsonl`` in the folder holds the answers as samples with labels and references, for
    ``fewl-rank``.

    Raises:
        InputError: no models and no results, or results of other questions.
        BadInputError: questions have no choices, or not one right choice.
    """
    if not (setup.models or setup.outputs):
        raise InputError("no model answers; give --model, or --outputs with published results")
    # The first model is asked before the second one is loaded, so faults are looked for first.
    roles = (("model", setup.models), ("reference", setup.references))
    check_loadable(
        "chat model",
        [uri for role, uris in roles for uri in name_models(list(uris), role, many=True).values()],
    )
    # 1. Questions, their choices, and published outputs.
    questions = read_records(source, records)
    choices = _collect_choices(questions, records)
    usable = [sample for sample in questions if sample.id in choices]
    replies = {
        name: _read_published(path, questions, choices) for name, path in setup.outputs.items()
    }
    references: dict[str, dict[str, _GradedReply]] = {}
    left_out: dict[str, str] = {}
    # 2. Ask models and references, each in a run of its own.
    for role, uris, replies_by_model in (
        ("model", setup.models, replies),
        ("reference", setup.references, references),
    ):
        models = name_models(list(uris), role, many=True)
        for number, (name, uri) in enumerate(models.items(), 1):
            # Rows of the table and samples are named by the model.
            if name in replies:
                raise InputError(f"two models are called {name!r}; rename one as NAME=URI")
            model = await asyncio.to_thread(resolve.chat, uri)
            folder = RunFolder(out / f"{role}-{number}")
            metric = FiveChoice(setup.shuffle)
            assessments = await execute_run(usable, metric, {"model": model}, folder, setup.options)
            errors = errors_of(assessments.values())
            left_out |= {f"{key} ({name})": error for key, error in errors.items()}
            replies_by_model[name] = {
                key: _grade_assessment(assessment)
                for key, assessment in assessments.items()
                if key not in errors
            }
    # 3. Write the answers, and the table.
    prompt = load_prompt("trustassay.papers", "five-choice")
    _write_samples(out / "answers.jsonl", usable, replies, references)
    rows = [
        _build_row(name, graded_replies, len(usable))
        for name, graded_replies in (replies | references).items()
    ]
    return ExperimentResult(
        "five-choice",
        "Questions with choices: how often each model names the right one",
        COLUMNS,
        [*_build_baselines(list(choices.values())), *rows],
        _build_notes(setup, out, len(usable), left_out),
        left_out,
        {"shuffle": setup.shuffle, "seed": setup.options.seed, "prompt": prompt.name},
    )


def _build_notes(
    setup: FiveChoiceSetup, out: Path, n: int, left_out: Mapping[str, str]
) -> list[str]:
    order = "shuffled" if setup.shuffle else "in the order of the input"
    notes = [
        f"{amount(n, 'question')}; choices {order}. An unreadable reply does not count as right. "
        "Published: by the rules of haltt4llm's grader. First letter A: replies that begin with "
        "A, except those that the published rules call unknown.",
        f"Answers as samples with labels and references: {out / 'answers.jsonl'}",
    ]
    if setup.outputs:
        notes.append(
            "Published outputs do not contain the right replies. These count as right by both "
            "graders, and as beginning with the letter of the right choice."
        )
    return notes + note_left_out(left_out, "question", "not answered")


def _collect_choices(
    questions: Sequence[Sample], records: RecordSelection
) -> dict[str, QuestionChoices]:
    # Faults of all questions are reported at once.
    results = {sample.id: choices_of(sample) for sample in questions}
    records.refuse(
        [
            records.fault(sample, [problem])
            for sample in questions
            if isinstance(problem := results[sample.id], Problem)
        ]
    )
    choices_of_question = {
        key: choices for key, choices in results.items() if isinstance(choices, QuestionChoices)
    }
    if not choices_of_question:
        raise InputError("no question has choices")
    return choices_of_question


def _grade_assessment(assessment: Assessment) -> _GradedReply:
    row = assessment.evidence[0]
    # In the order in which this question was shown.
    choices = QuestionChoices(tuple(row["choices"]), row["right"])
    return _grade_text(row["reply"], choices, grade_as_published(row["reply"], choices))


def _grade_text(text: str, choices: QuestionChoices, published: Verdict) -> _GradedReply:
    verdict, choice = grade_reply(text, choices)
    if choice is None:
        return _GradedReply(verdict, published, text, None, first_letter(text))
    letter = ascii_uppercase[choice]
    return _GradedReply(verdict, published, choices.texts[choice], letter, first_letter(text))


def _read_published(
    path: Path, questions: Sequence[Sample], choices: Mapping[str, QuestionChoices]
) -> dict[str, _GradedReply]:
    """Return a model's published outputs, graded; questions that are not listed were right."""
    outputs = read_published_outputs(path, questions)
    replies = {}
    for index, sample in enumerate(questions):
        if sample.id not in choices:
            continue
        question_choices = choices[sample.id]
        if index in outputs:
            output = outputs[index]
            replies[sample.id] = _grade_text(output.text, question_choices, output.verdict)
        else:
            # The reply itself is not published: assume the choice and its letter.
            letter, text = question_choices.lettered[question_choices.right]
            replies[sample.id] = _GradedReply("right", "right", text, letter, letter)
    return replies


def _build_row(
    name: str, replies: Mapping[str, _GradedReply], question_count: int
) -> ExperimentRow:
    n = len(replies)
    our_verdicts = Counter(graded_reply.verdict for graded_reply in replies.values())
    published_verdicts = Counter(graded_reply.published for graded_reply in replies.values())
    first = sum(
        graded_reply.first == "A" and graded_reply.published != "unknown"
        for graded_reply in replies.values()
    )
    letters = Counter(
        graded_reply.letter for graded_reply in replies.values() if graded_reply.letter
    )
    letter_counts = " ".join(f"{letter} {count}" for letter, count in sorted(letters.items()))
    cells = [
        _share_cell(our_verdicts["right"], n),
        _count_cell(our_verdicts["unknown"]),
        _count_cell(our_verdicts["unreadable"]),
        _count_cell(first),
        _share_cell(published_verdicts["right"], n),
        _count_cell(published_verdicts["unknown"]),
        Cell(letter_counts, dict(letters)),
    ]
    return ExperimentRow(name, cells, {"model": name, "n": n, "asked": question_count})


def _build_baselines(choices: Sequence[QuestionChoices]) -> list[ExperimentRow]:
    n = len(choices)
    # Questions may have different numbers of choices.
    chance = sum(1 / len(question_choices.texts) for question_choices in choices) / n
    blanks = [Cell("", {}) for _ in COLUMNS[1:]]
    first = sum(question_choices.right == 0 for question_choices in choices)
    return [
        ExperimentRow("chance", [Cell(f"{100 * chance:.1f} %", {"value": 100 * chance}), *blanks]),
        ExperimentRow("always the first choice of the input", [_share_cell(first, n), *blanks]),
    ]


def _share_cell(count: int, n: int) -> Cell:
    if not n:
        return Cell("–", {"count": 0, "n": 0, "value": None})
    share = 100 * count / n
    values: dict[str, Any] = {"count": count, "n": n, "value": share, "interval": None}
    interval_text = ""
    # Fewer questions give no useful interval.
    if n >= MIN_UNITS:
        low, high = (100 * end for end in binomial_interval(count, n))
        values["interval"], interval_text = [low, high], f", {low:.1f} to {high:.1f}"
    return Cell(f"{count} of {n} ({share:.2f} %{interval_text})", values)


def _count_cell(count: int) -> Cell:
    return Cell(str(count), {"count": count})


def _write_samples(
    path: Path,
    questions: Sequence[Sample],
    replies: Mapping[str, Mapping[str, _GradedReply]],
    references: Mapping[str, Mapping[str, _GradedReply]],
) -> None:
    """Write each model's answers as samples with labels.

    The references are the answers of the reference models, or else of all models.
    """
    # With references of its own choice the user decides; otherwise every model is judged by all.
    reference_replies = references or replies
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_atomic(path, private=False) as file:
        for sample in questions:
            references_of_sample = {
                name: (replies_of_model[sample.id].text,)
                for name, replies_of_model in reference_replies.items()
                if sample.id in replies_of_model
            }
            for number, (name, replies_of_model) in enumerate(replies.items(), 1):
                if sample.id in replies_of_model:
                    answer_sample = replace(
                        sample,
                        id=f"{sample.id}-{number}",
                        model=name,
                        response=replies_of_model[sample.id].text,
                        label=float(replies_of_model[sample.id].verdict == "right"),
                        references=references_of_sample,
                    )
                    content = answer_sample.to_dict()
                    line = clean(json.dumps(content, ensure_ascii=False, default=str))
                    file.write((line + "\n").encode())
