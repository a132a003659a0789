"""Write chosen answers as prompts with examples, or as training data."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np

from trustassay.backends import DEFAULT_EMBEDDER, resolve
from trustassay.calls.backends import Backends
from trustassay.calls.client import (
    CallOptions,
    SampleModels,
    build_cache_path,
    check_keys,
    open_calls,
)
from trustassay.core.capabilities import Models
from trustassay.core.event_loop import run_anywhere
from trustassay.core.files import open_atomic
from trustassay.core.progress import Progress
from trustassay.core.prompts import Prompt
from trustassay.core.sample import Sample, question_key
from trustassay.errors import UsageError
from trustassay.papers.select.answers import (
    EXAMPLES,
    SCORE,
    SINGLE,
    TEST_SHARE,
    CandidateAnswers,
    Example,
    Vectors,
    chat_record,
    choose_examples,
    choose_targets,
    fill_icl_prompt,
    find_nearest_examples,
    is_tied,
    load_default_prompt,
    read_answers,
    split_train_test,
)
from trustassay.runs.answering import OWN_PROMPT
from trustassay.runs.fill import remove_response
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import InputOptions, take_in
from trustassay.runs.lines import encode_sample

TEXTS_PER_BATCH = 1024
"""Texts that are embedded together."""


@dataclass(frozen=True)
class IclOptions:
    """How examples are chosen.

    by, baseline: ways of choosing, as of :mod:`~trustassay.papers.select.answers`; ``baseline``
        is ``None`` to keep every question as an example. metric: whose scores, of several.
    examples: in each prompt. prompt: a template in place of the one that ships.
    fields: names of the fields of the file of questions.
    """

    by: str = SCORE
    baseline: str | None = SINGLE
    metric: str | None = None
    examples: int = EXAMPLES
    prompt: Path | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    progress: bool = False
    calls: CallOptions = field(default_factory=CallOptions)

    def __post_init__(self) -> None:
        if self.examples < 1:
            raise UsageError(f"examples: expected 1 or more, got {self.examples}")


@dataclass(slots=True)
class IclResult:
    """What :func:`select_icl` wrote."""

    answers: CandidateAnswers
    prompts: int = 0
    """The number of prompts."""
    examples: int = 0
    """The number of examples that were chosen from."""
    ties: int = 0
    """How many examples have another answer with the same value."""
    short: int = 0
    """The number of prompts with fewer examples than requested."""
    repeated: int = 0
    """The number of questions that repeat an earlier one."""


def select_icl(
    run: Path,
    out: str | os.PathLike[str],
    embedder: resolve.EmbedderChoice = DEFAULT_EMBEDDER,
    questions: Path | None = None,
    options: IclOptions | None = None,
) -> IclResult:
    """Write a prompt for each question, with the nearest examples of a finished run.

    The questions are those of ``questions``, or of the run. A line of ``out`` is a sample without a
    response, with ``own_prompt``, which ``generate`` sends unchanged, and with ``examples``.

    Raises:
        RunFolderError, UnknownNameError, ValueError: as :func:`read_answers`; or no question is
            left as an example.
        BadInputError, InputError: the file of questions has faults.
        PromptError, OSError: the template cannot be read or filled.
    """
    return run_anywhere(
        lambda: _write_prompts(run, Path(out), embedder, questions, options or IclOptions())
    )


async def _write_prompts(
    run: Path,
    out: Path,
    embedder: resolve.EmbedderChoice,
    questions: Path | None,
    options: IclOptions,
) -> IclResult:
    # Checked first: embedding may take long.
    if out.is_dir():
        raise IsADirectoryError(f"{out}: is a folder; expected a file to write")
    template = load_default_prompt() if options.prompt is None else Prompt.read(options.prompt)
    # Without a baseline all questions are examples.
    ways = [options.by] if options.baseline is None else [options.by, options.baseline]
    result = IclResult(read_answers(run, list(dict.fromkeys(ways)), metric=options.metric))
    answers = result.answers
    # Examples come only from questions on which the two ways disagree.
    examples = choose_examples(answers.questions, options.by, options.baseline)
    if not examples:
        raise UsageError(
            f"{run}: {options.by} and {options.baseline} choose the same answer to all "
            f"{len(answers.questions):,} questions, so none is an example; --all keeps all"
        )
    result.examples = len(examples)
    example_keys = {question_key(example.question) for example in examples}
    # Ties are counted: with many of them the choice is nearly arbitrary.
    result.ties = sum(
        is_tied(question, options.by)
        for question in answers.questions
        if question_key(question.text) in example_keys
    )
    # The questions of the run may be asked again with examples of others.
    if questions is None:
        question_samples = [question_of(sample) for sample in answers.question_samples]
    else:
        question_samples, result.repeated = await read_questions(questions, options)
    # Questions and examples in one list: equal texts are embedded once.
    texts = [
        *(sample.question for sample in question_samples),
        *(example.question for example in examples),
    ]
    vectors = await embed_questions(texts, embedder, options)
    nearest_rows = find_nearest_examples(
        [sample.question for sample in question_samples],
        vectors[: len(question_samples)],
        examples,
        vectors[len(question_samples) :],
        options.examples,
    )
    # Only now, so that a refused run leaves no folder behind.
    out.parent.mkdir(parents=True, exist_ok=True)
    with open_atomic(out) as file:
        for sample, nearest in zip(question_samples, nearest_rows, strict=True):
            # Few examples: the prompt is written anyway, and the count is reported.
            result.short += len(nearest) < options.examples
            file.write(encode_sample(with_prompt(sample, nearest, template)))
            result.prompts += 1
    return result


def with_prompt(
    sample: Sample, examples: Sequence[Example], template: Prompt | None = None
) -> Sample:
    """Return a question with its prompt of examples, which ``generate`` sends unchanged."""
    prompt_fields = {
        "examples": [example.to_dict() for example in examples],
        OWN_PROMPT: fill_icl_prompt(sample.question, examples, template, sample),
    }
    return replace(sample, metadata={**sample.metadata, **prompt_fields})


def question_of(sample: Sample) -> Sample:
    """Return the question without the fields that describe one of its answers."""
    return replace(sample, response=None, model=None, label=None, resamples=(), metadata={})


async def read_questions(path: Path, options: IclOptions) -> tuple[list[Sample], int]:
    """Return the questions of a file, each once, and the number of repetitions."""
    with TemporaryDirectory(prefix="trustassay-") as temporary_folder:
        folder = RunFolder(Path(temporary_folder))
        await take_in(path, folder.samples_path, InputOptions(fields=options.fields))
        samples = list(folder.samples())
    sample_by_key: dict[str, Sample] = {}
    for sample in samples:
        # The first of equal questions is kept.
        sample_by_key.setdefault(
            question_key(sample.question), replace(remove_response(sample), label=None)
        )
    return list(sample_by_key.values()), len(samples) - len(sample_by_key)


async def embed_questions(
    texts: Sequence[str], embedder: resolve.EmbedderChoice, options: IclOptions
) -> Vectors:
    """Return the unit vectors of texts, shape (n, d); equal texts are embedded once.

    Raises:
        BackendError, UnknownNameError: no such embedder, or its key is missing.
    """
    backends = Backends.of(embed=await asyncio.to_thread(resolve.embedder, embedder))
    # A missing key is reported before the first request.
    check_keys(backends.endpoints(), [build_cache_path(options.calls.cache)])
    rows = []
    async with open_calls(backends, options.calls) as client:
        models = cast(Models, SampleModels(client))
        remaining = iter(texts)
        with Progress("embedding", len(texts), visible=options.progress) as progress:
            # Chunks keep the number of pending futures small for large files.
            while chunk := list(islice(remaining, TEXTS_PER_BATCH)):
                # Together, so that the embedder can batch them.
                rows += await asyncio.gather(*(models.embed(text) for text in chunk))
                progress.step(len(chunk))
    return np.stack(rows).astype(np.float32)


TRAIN, TEST, QUESTIONS = "train.jsonl", "test.jsonl", "test_questions.jsonl"


@dataclass(slots=True)
class SftResult:
    """What :func:`select_sft` wrote."""

    answers: CandidateAnswers
    train: int
    """The number of questions to train on."""
    test: int
    """The number of questions to test with."""
    ties: int
    """How many of both have another answer with the same value."""


def select_sft(
    run: Path,
    out: Path,
    *,
    by: str = SCORE,
    metric: str | None = None,
    test_share: float = TEST_SHARE,
    seed: int = 0,
) -> SftResult:
    """Write the best answer of each question of a finished run into the folder ``out``.

    ``train.jsonl`` and ``test.jsonl`` are in the chat format. ``test_questions.jsonl`` has the test
    questions for ``generate``; each is its own prompt, as in training.

    Args:
        by: a way of choosing, as of :mod:`~trustassay.papers.select.answers`.

    Raises:
        RunFolderError, UnknownNameError, ValueError: as :func:`read_answers` and
            :func:`split_train_test`.
    """
    answers = read_answers(run, [by], metric=metric)
    train, test = split_train_test(choose_targets(answers.questions, by), test_share, seed)
    write_targets(out, train, test)
    ties = sum(is_tied(question, by) for question in answers.questions)
    return SftResult(answers, len(train), len(test), ties)


def write_targets(out: Path, train: Sequence[Example], test: Sequence[Example]) -> None:
    """Write the three files of :func:`select_sft` into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    _write_records(out / TRAIN, map(chat_record, train))
    _write_records(out / TEST, map(chat_record, test))
    with open_atomic(out / QUESTIONS) as file:
        file.writelines(map(_encode_question, test))


def _write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    with open_atomic(path) as file:
        for record in records:
            file.write((json.dumps(record, ensure_ascii=False) + "\n").encode())


def _encode_question(example: Example) -> bytes:
    """Return the line of a question without its answer and the fields that describe it."""
    sample = replace(
        example.sample,
        response=None,
        model=None,
        label=None,
        resamples=(),
        # The question alone is the prompt: no style of answering is added, as in training.
        metadata={OWN_PROMPT: example.question},
    )
    return encode_sample(sample)
