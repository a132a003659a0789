"""Choose examples and training targets by the scores of a finished run, and write them.

Wei et al. 2024 (FEWL), sections 5.1 and 5.2, appendices C.10 and C.11. Values are higher for better
answers, whatever the metric: :func:`read_answers` changes the sign of others.

1. Read the answers of a run with their values, by question.
2. Choose the best answer of each question; the nearest such questions are examples.
3. Write prompts with examples (``select_icl``), or data for training and testing (``select_sft``).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

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
from trustassay.core.labels import read_single_label
from trustassay.core.metric import Assessment, MetricInfo
from trustassay.core.progress import Progress
from trustassay.core.prompts import Prompt, load_prompt
from trustassay.core.sample import Sample, question_key
from trustassay.errors import RunFolderError, UnknownNameError, UsageError, did_you_mean
from trustassay.input.reading import LocatedSample, read_samples
from trustassay.input.records import FieldNames, InputError
from trustassay.metrics.fewl.references import find_nearest
from trustassay.runs.answering import OWN_PROMPT
from trustassay.runs.fill import remove_response
from trustassay.runs.folder import RunFolder, read_metric_infos
from trustassay.runs.intake import InputOptions, take_in
from trustassay.runs.lines import encode_sample
from trustassay.text.numbers import amount

Vectors = NDArray[np.float32]
SCORE, LABEL, SINGLE = "score", "label", "single"
"""Ways of choosing: by the score, the human label, or the similarity to one reference
(``single:NAME``). Others are named after a part of the score."""
EXAMPLES = 5
"""Examples in a prompt (appendix C.11)."""
TEST_SHARE = 0.2
"""Share of the questions that are kept for testing (section 5.2)."""
TEXTS_PER_BATCH = 1024
"""Texts that are embedded together."""
TRAIN, TEST, QUESTIONS = "train.jsonl", "test.jsonl", "test_questions.jsonl"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer to a question, with its value by each way of choosing; higher is better."""

    sample: Sample
    values: Mapping[str, float]
    """By the way of choosing."""

    @property
    def text(self) -> str:
        """The answer itself."""
        return (self.sample.response or "").strip()


@dataclass(frozen=True, slots=True)
class QuestionWithCandidates:
    """A question with one or more candidates, in input order."""

    text: str
    candidates: Sequence[Candidate]
    """In input order."""


@dataclass(frozen=True, slots=True)
class Example:
    """A question and the answer that was chosen for it."""

    question: str
    response: str
    sample: Sample
    """The sample of the answer."""

    @classmethod
    def of(cls, question: QuestionWithCandidates, chosen: Candidate) -> Example:
        """Return the example of a question and one of its candidates."""
        return cls(question.text, chosen.text, chosen.sample)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: the answer's id, question, response, and the model if known."""
        model_field = {"model": self.sample.model} if self.sample.model else {}
        return {
            "id": self.sample.id,
            "question": self.question,
            "response": self.response,
            **model_field,
        }


def choose_best(question: QuestionWithCandidates, way: str) -> Candidate:
    """Return the candidate with the highest value, the first of equal ones."""
    return max(question.candidates, key=lambda candidate: candidate.values[way])


def is_tied(question: QuestionWithCandidates, way: str) -> bool:
    """Whether another candidate with a different text also has the highest value."""
    winner = choose_best(question, way)
    return any(
        candidate.values[way] == winner.values[way] and candidate.text != winner.text
        for candidate in question.candidates
    )


def choose_examples(
    questions: Sequence[QuestionWithCandidates], way: str, baseline: str | None
) -> list[Example]:
    """Return the questions for which two ways choose different texts, with the answer of ``way``.

    Section 5.1: such questions show best what one way adds to the other. ``baseline=None`` keeps
    all questions.
    """
    return [
        Example.of(question, choose_best(question, way))
        for question in questions
        if baseline is None
        or choose_best(question, way).text != choose_best(question, baseline).text
    ]


def find_nearest_examples(
    questions: Sequence[str],
    question_vectors: Vectors,
    examples: Sequence[Example],
    example_vectors: Vectors,
    k: int = EXAMPLES,
) -> list[list[Example]]:
    """Return the k examples nearest to each question, nearest first, by cosine.

    An example of the same question, by :func:`~trustassay.core.sample.question_key`, is never
    returned; so there may be fewer than k.

    Args:
        question_vectors, example_vectors: unit vectors of the questions, shapes (n, d) and (m, d).
        examples: of different questions.
    """
    index_of_question = {
        question_key(example.question): index for index, example in enumerate(examples)
    }
    if len(index_of_question) < len(examples):
        raise UsageError("two examples have the same question")
    itself = [index_of_question.get(question_key(text), -1) for text in questions]
    neighbours = find_nearest(question_vectors, example_vectors, k, itself=itself)
    # -1 fills the rows of questions with fewer than k neighbours.
    return [[examples[index] for index in row if index >= 0] for row in neighbours.places.tolist()]


def fill_icl_prompt(
    question: str,
    examples: Sequence[Example],
    template: Prompt | None = None,
    sample: Sample | None = None,
) -> str:
    """Return the prompt that shows the examples and asks the question.

    Raises:
        PromptError: the template uses a name other than ``question``, ``examples``, ``sample``.
    """
    prompt_template = template or load_prompt("trustassay.papers", "icl")
    return prompt_template.fill(question=question, examples=examples, sample=sample)


def choose_targets(questions: Sequence[QuestionWithCandidates], way: str) -> list[Example]:
    """Return each question with its best answer (section 5.2)."""
    return [Example.of(question, choose_best(question, way)) for question in questions]


def split_train_test(
    examples: Sequence[Example], test_share: float = TEST_SHARE, seed: int = 0
) -> tuple[list[Example], list[Example]]:
    """Return the examples to train on, and those to test with, both in their order.

    A question's side depends on its text and the seed. The number of test questions is the share of
    all questions, rounded to the nearest.

    Raises:
        ValueError: a share below 0, or of 1 or more.
    """
    # At 1 nothing would be left to train on.
    if not 0 <= test_share < 1:
        raise UsageError(f"test share: expected at least 0 and below 1, got {test_share}")
    # By hash, so that the order of the file, and questions added later, hardly change the sides.
    order = sorted(range(len(examples)), key=lambda i: _hash_question(examples[i].question, seed))
    test_indices = set(order[: round(test_share * len(examples))])
    train = [example for index, example in enumerate(examples) if index not in test_indices]
    return train, [examples[index] for index in sorted(test_indices)]


def _hash_question(question: str, seed: int) -> bytes:
    text = f"{seed}\x1f{question_key(question)}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def chat_record(example: Example) -> dict[str, Any]:
    """Return a line of a training file in the chat format, as TRL and the OpenAI API read it."""
    turns = (("user", example.question), ("assistant", example.response))
    return {"messages": [{"role": role, "content": text} for role, text in turns]}


@dataclass(slots=True)
class CandidateAnswers:
    """The questions with two candidates or more, and what was left out."""

    metric: MetricInfo
    """The metric whose scores these are."""
    questions: list[QuestionWithCandidates] = field(default_factory=list)
    question_samples: list[Sample] = field(default_factory=list)
    """The first sample of every question of the run."""
    reference: str | None = None
    """The reference behind the way ``single``, if that is used."""
    blank: int = 0
    """The number of answers without text."""
    missing_values: Counter[str] = field(default_factory=Counter)
    """By way: the number of answers without such a value."""
    too_few_answers: int = 0
    """The number of questions with fewer than two answers left."""


def read_answers(path: Path, ways: Sequence[str], *, metric: str | None = None) -> CandidateAnswers:
    """Read the answers of a finished run, each with its value by every one of ``ways``.

    An answer counts only if it has all values, so that all ways choose among the same answers. If
    low scores of the metric are good, values change their sign: higher is always better.

    Raises:
        RunFolderError: no finished run, or not the metric; or no question has two answers with all
            values.
        UnknownNameError: a way that no answer has a value by.
        ValueError: the run has several metrics, and none is named.
    """
    folder = RunFolder(path)
    run = folder.read_run()
    if run is None:
        raise RunFolderError(f"{path}: holds no run")
    if folder.read_summary() is None:
        raise RunFolderError(f"{path}: the run is not finished; run its command again")
    # A run may have scored several metrics.
    name = _choose_metric(path, list(run["metrics"]), metric)
    answers = CandidateAnswers(read_metric_infos(folder, run)[name])
    single = next((way for way in ways if way.partition(":")[0] == SINGLE), None)
    # `single` alone means the reference that most answers have a similarity to.
    if single is not None:
        answers.reference = single.partition(":")[2] or _find_commonest_reference(folder, name)
    values = _read_values(folder, name, ways, answers)
    _group_by_question(folder, ways, values, answers)
    for way in ways:
        # A misspelt way would otherwise look like a run without answers.
        if values and answers.missing_values[way] == len(values):
            raise UnknownNameError(_explain_missing_value(folder, name, way))
    # The message has the counts, since the cause may be any of them.
    if not answers.questions:
        raise RunFolderError(
            f"{path}: no question has two answers to choose from "
            f"({len(answers.question_samples):,} questions, {answers.too_few_answers:,} with "
            f"fewer than two answers left; {_describe_left_out(answers)}); expected several "
            "answers per question"
        )
    return answers


def refuse_single_answers(path: Path, fields: FieldNames, limit: int | None = None) -> None:
    """Refuse a file in which no question has two answers, before anything is scored.

    Faulty records are ignored here; scoring reports them.

    Raises:
        InputError: no question has two answers, or the file cannot be read.
    """
    records = islice(read_samples(path, fields=fields), limit)
    samples = (record.sample for record in records if isinstance(record, LocatedSample))
    counts = Counter(question_key(sample.question) for sample in samples if sample.answered)
    # An empty or faulty file is left to the reader of the run, which names the faults.
    if counts and max(counts.values()) < 2:
        raise InputError(
            f"{path}: no question has two answers to choose from "
            f"({amount(len(counts), 'question')} with one); expected several answers per question"
        )


def _choose_metric(path: Path, metric_names: Sequence[str], requested: str | None) -> str:
    if requested is not None and requested not in metric_names:
        raise RunFolderError(
            f"{path}: {did_you_mean('metric of this run', requested, metric_names)}"
        )
    # With several metrics a default would be a guess.
    if requested is None and len(metric_names) != 1:
        raise UsageError(
            f"{path}: the run has {' and '.join(metric_names)}; name one with --metric"
        )
    return requested or metric_names[0]


def _find_commonest_reference(folder: RunFolder, metric: str) -> str:
    """Return the reference that most answers were compared with; of equal ones the first."""
    counts: Counter[str] = Counter()
    for assessment in folder.assessments(metric):
        counts.update(_read_similarities(assessment).keys())
    if not counts:
        raise UnknownNameError(
            f"{folder.path}: {metric} uses no references, so `single` cannot be the baseline; "
            "choose another one"
        )
    return counts.most_common(1)[0][0]


def _read_similarities(assessment: Assessment) -> Mapping[str, float]:
    """Return the similarity to each reference in the evidence of ``fewl``; never raises."""
    similarities: dict[str, float] = {}
    # The evidence also has rows about neighbours; files may come from other versions.
    for row in assessment.evidence:
        if isinstance(row, Mapping):
            name, value = row.get("reference"), row.get("similarity")
            if isinstance(name, str) and isinstance(value, int | float):
                # Of two references with one name the first counts.
                similarities.setdefault(name, float(value))
    return similarities


def _read_values(
    folder: RunFolder, metric: str, ways: Sequence[str], answers: CandidateAnswers
) -> dict[str, dict[str, float]]:
    """Return the values of every assessed sample by its id, without labels."""
    sign = -1.0 if answers.metric.lower_is_better else 1.0
    values: dict[str, dict[str, float]] = {}
    for assessment in folder.assessments(metric):
        answer_values = values.setdefault(assessment.id, {})
        # A failed answer has no value, but it is an answer of the run.
        if assessment.error is not None:
            continue
        for way in ways:
            if way.partition(":")[0] == SINGLE:
                value = _read_similarities(assessment).get(answers.reference or "")
            else:
                value = assessment.score if way == SCORE else assessment.parts.get(way)
                # `label` is always the human label, never a part of that name.
                value = None if value is None or way == LABEL else sign * value
            if value is not None:
                answer_values[way] = value
    return values


def _group_by_question(
    folder: RunFolder,
    ways: Sequence[str],
    values: Mapping[str, dict[str, float]],
    answers: CandidateAnswers,
) -> None:
    groups: dict[str, list[Candidate]] = {}
    for sample in folder.samples():
        # Questions that differ in case or spaces are one.
        key = question_key(sample.question)
        if key not in groups:
            groups[key] = []
            answers.question_samples.append(sample)
        answer_values = dict(values.get(sample.id, {}))
        if LABEL in ways and (label := read_single_label(sample.label)) is not None:
            answer_values[LABEL] = label
        missing = [way for way in ways if way not in answer_values]
        answers.missing_values.update(missing)
        if not sample.answered:
            answers.blank += 1
        # Only answers with every value are candidates.
        elif not missing:
            groups[key].append(Candidate(sample, answer_values))
    for sample_of_question, candidates in zip(
        answers.question_samples, groups.values(), strict=True
    ):
        # Nothing can be chosen from a single answer.
        if len(candidates) > 1:
            answers.questions.append(
                QuestionWithCandidates(sample_of_question.question.strip(), candidates)
            )
        else:
            answers.too_few_answers += 1


def _explain_missing_value(folder: RunFolder, metric: str, way: str) -> str:
    parts = sorted({name for assessment in folder.assessments(metric) for name in assessment.parts})
    # Each way has its own cause, and its own advice.
    if way == SCORE:
        return f"{folder.path}: no answer has a score of {metric}"
    if way.partition(":")[0] == SINGLE:
        names = sorted(
            {
                name
                for assessment in folder.assessments(metric)
                for name in _read_similarities(assessment)
            }
        )
        return f"{folder.path}: {did_you_mean('reference', way.partition(':')[2], names)}"
    if way == LABEL:
        return f"{folder.path}: no answer has a label"
    # A part of the metric may have one of these names.
    ways = dict.fromkeys((SCORE, LABEL, SINGLE, *parts))
    return f"{folder.path}: {did_you_mean('way of choosing', way, ways)}"


def _describe_left_out(answers: CandidateAnswers) -> str:
    parts = [f"{amount(n, 'answer')} without {way}" for way, n in answers.missing_values.items()]
    if answers.blank:
        parts.append(f"{amount(answers.blank, 'blank answer')}")
    return ", ".join(parts) or "no answer was left out"


@dataclass(frozen=True)
class IclOptions:
    """How examples are chosen.

    by, baseline: ways of choosing, as of :mod:`~trustassay.papers.select`; ``baseline``
        is ``None`` to keep every question as an example. metric: whose scores, of several.
    examples: in each prompt. prompt: a template in place of the one that ships.
    fields: names of the fields of the file of questions.
    """

    by: str = SCORE
    baseline: str | None = SINGLE
    metric: str | None = None
    examples: int = EXAMPLES
    prompt: Path | None = None
    fields: FieldNames = field(default_factory=dict)
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
    out, options = Path(out), options or IclOptions()
    # Checked first: embedding may take long.
    if out.is_dir():
        raise IsADirectoryError(f"{out}: is a folder; expected a file to write")
    template = load_prompt("trustassay.papers", "icl", options.prompt, "question examples sample")
    # Without a baseline all questions are examples.
    ways = [options.by] if options.baseline is None else [options.by, options.baseline]
    result = IclResult(read_answers(run, list(dict.fromkeys(ways)), metric=options.metric))
    answers = result.answers
    # Examples come only from questions on which the two ways disagree.
    examples = choose_examples(answers.questions, options.by, options.baseline)
    if not examples:
        raise UsageError(
            f"{run}: {options.by} and {options.baseline} choose the same answer for all "
            f"{len(answers.questions):,} questions, so there are no examples; --all uses all "
            "questions"
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
        question_samples, result.repeated = read_questions(questions, options)
    nearest_rows = find_examples(question_samples, examples, embedder, options)
    # Only now, so that a refused run leaves no folder behind.
    out.parent.mkdir(parents=True, exist_ok=True)
    with open_atomic(out, private=False) as file:
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


def read_questions(path: Path, options: IclOptions) -> tuple[list[Sample], int]:
    """Return the questions of a file, each once, and the number of repetitions."""
    with TemporaryDirectory(prefix="trustassay-") as temporary_folder:
        folder = RunFolder(Path(temporary_folder))
        input_options = InputOptions(fields=options.fields)
        run_anywhere(lambda: take_in(path, folder.samples_path, input_options))
        samples = list(folder.samples())
    sample_by_key: dict[str, Sample] = {}
    for sample in samples:
        # The first of equal questions is kept.
        sample_by_key.setdefault(
            question_key(sample.question), replace(remove_response(sample), label=None)
        )
    return list(sample_by_key.values()), len(samples) - len(sample_by_key)


def find_examples(
    questions: Sequence[Sample],
    examples: Sequence[Example],
    embedder: resolve.EmbedderChoice,
    options: IclOptions,
) -> list[list[Example]]:
    """Return the nearest examples of each question, nearest first.

    Raises:
        BackendError, UnknownNameError: no such embedder, or its key is missing.
    """
    texts = [sample.question for sample in questions]
    # Questions and examples in one call: equal texts are embedded once.
    all_texts = [*texts, *(example.question for example in examples)]
    vectors = run_anywhere(lambda: _embed_texts(all_texts, embedder, options))
    cut = len(texts)
    return find_nearest_examples(texts, vectors[:cut], examples, vectors[cut:], options.examples)


async def _embed_texts(
    texts: Sequence[str], embedder: resolve.EmbedderChoice, options: IclOptions
) -> Vectors:
    """Return the unit vectors of texts, shape (n, d); equal texts are embedded once."""
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
        by: a way of choosing, as of :mod:`~trustassay.papers.select`.

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
    with open_atomic(out / QUESTIONS, private=False) as file:
        file.writelines(map(_encode_question, test))


def _write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    with open_atomic(path, private=False) as file:
        for record in records:
            file.write((json.dumps(record, ensure_ascii=False) + "\n").encode())


def _encode_question(example: Example) -> bytes:
    """Return the line of a question without its answer and the fields that describe it."""
    # The question alone is the prompt: no style of answering is added, as in training.
    sample = replace(question_of(example.sample), metadata={OWN_PROMPT: example.question})
    return encode_sample(sample)
