"""Choose examples and training targets by the scores of a finished run.

Wei et al. 2024 (FEWL), sections 5.1 and 5.2, appendices C.10 and C.11. Values are higher for better
answers, whatever the metric: :func:`read_answers` changes the sign of others.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import as_file, files
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.core.metric import Assessment, MetricInfo
from trustassay.core.prompts import Prompt
from trustassay.core.sample import Sample, question_key
from trustassay.errors import RunFolderError, UnknownNameError, UsageError, did_you_mean
from trustassay.input.reading import LocatedSample, read_samples
from trustassay.input.records import InputError
from trustassay.metrics.fewl.references import find_nearest
from trustassay.runs.folder import RunFolder, read_metric_infos

Vectors = NDArray[np.float32]
EXAMPLES = 5
"""Examples in a prompt (appendix C.11)."""
TEST_SHARE = 0.2
"""Share of the questions that are kept for testing (section 5.2)."""


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
    prompt_template = template or load_default_prompt()
    return prompt_template.fill(question=question, examples=examples, sample=sample)


@cache
def load_default_prompt() -> Prompt:
    """Return the template that comes with this package."""
    with as_file(files("trustassay.papers") / "prompts" / "icl.jinja") as path:
        return Prompt.read(path)


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
        raise UsageError(f"test share: expected 0 to below 1, got {test_share}")
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


SCORE, LABEL, SINGLE = "score", "label", "single"


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
            f"{path}: no question has two answers to choose between "
            f"({len(answers.question_samples):,} questions, {answers.too_few_answers:,} with "
            "fewer than two answers "
            f"left; "
            f"{_describe_left_out(answers)}); expected samples with the same question"
        )
    return answers


def refuse_single_answers(path: Path, fields: Mapping[str, str], limit: int | None = None) -> None:
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
            f"{path}: no question has two answers to choose between ({len(counts):,} questions "
            "with one); expected samples with the same question"
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
            f"{folder.path}: {metric} compares with no references, so no single one can be the "
            "baseline; name another one"
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
                similarities.setdefault(
                    name, float(value)
                )  # of two references with one name the first counts
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
        if LABEL in ways and sample.label is not None:
            answer_values[LABEL] = sample.label
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
    ways = dict.fromkeys(
        (SCORE, LABEL, SINGLE, *parts)
    )  # a part of the metric may have one of these names
    return f"{folder.path}: {did_you_mean('way of choosing', way, ways)}"


def _describe_left_out(answers: CandidateAnswers) -> str:
    parts = [f"{n:,} answers without {way}" for way, n in answers.missing_values.items()]
    if answers.blank:
        parts.append(f"{answers.blank:,} blank answers")
    return ", ".join(parts) or "no answer was left out"
