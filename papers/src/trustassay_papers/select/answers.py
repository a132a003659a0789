"""What is chosen, from answers with their values: pure functions.

Wei et al. 2024 (FEWL), sections 5.1 and 5.2, appendices C.10 and C.11. Values are higher for better
answers, whatever the metric: :mod:`~trustassay_papers.select.answers` sees to that.
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

from trustassay.data.reading import Located, read_samples
from trustassay.data.records import InputError
from trustassay.errors import RunFolderError, UnknownNameError, UsageError, did_you_mean
from trustassay.metric import Assessment, MetricInfo
from trustassay.metrics.fewl.references import nearest
from trustassay.prompts import Prompt
from trustassay.runs.folder import RunFolder, metric_infos
from trustassay.sample import Sample, question_key

Vectors = NDArray[np.float32]
EXAMPLES = 5
"""Examples in a prompt (appendix C.11)."""
TEST_SHARE = 0.2
"""Share of the questions that nothing is trained on (section 5.2)."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer to a question and its value by each way of choosing; higher is better."""

    sample: Sample
    values: Mapping[str, float]

    @property
    def text(self) -> str:
        """The answer itself."""
        return (self.sample.response or "").strip()


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its candidates, in input order; one or more."""

    text: str
    candidates: Sequence[Candidate]


@dataclass(frozen=True, slots=True)
class Example:
    """A question and the answer that was chosen for it."""

    question: str
    response: str
    sample: Sample

    @classmethod
    def of(cls, question: Question, chosen: Candidate) -> Example:
        """Return a question with a candidate of its own."""
        return cls(question.text, chosen.text, chosen.sample)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: the answer's id, question, response, and the model if known."""
        named = {"model": self.sample.model} if self.sample.model else {}
        return {
            "id": self.sample.id,
            "question": self.question,
            "response": self.response,
            **named,
        }


def best(question: Question, way: str) -> Candidate:
    """Return the candidate with the highest value, the first of equal ones."""
    return max(question.candidates, key=lambda one: one.values[way])


def tied(question: Question, way: str) -> bool:
    """Whether another candidate, with another text, has the highest value, too."""
    chosen = best(question, way)
    return any(
        one.values[way] == chosen.values[way] and one.text != chosen.text
        for one in question.candidates
    )


def choose_examples(questions: Sequence[Question], way: str, baseline: str | None) -> list[Example]:
    """Return the questions for which two ways choose different texts, with the answer of ``way``.

    Section 5.1: these show best what the one way adds to the other. ``baseline=None`` keeps all.
    """
    return [
        Example.of(question, best(question, way))
        for question in questions
        if baseline is None or best(question, way).text != best(question, baseline).text
    ]


def nearest_examples(
    asked: Sequence[str],
    asked_vectors: Vectors,
    examples: Sequence[Example],
    example_vectors: Vectors,
    k: int = EXAMPLES,
) -> list[list[Example]]:
    """Return the k examples nearest to each question that is asked, nearest first, by cosine.

    Never one whose question is the asked one, by :func:`~trustassay.sample.question_key`; so fewer
    than k where there are no more.

    Args:
        asked_vectors, example_vectors: unit vectors of the questions, shapes (n, d) and (m, d).
        examples: of different questions.
    """
    places = {question_key(one.question): place for place, one in enumerate(examples)}
    if len(places) < len(examples):
        raise UsageError("two examples have the same question")
    itself = [places.get(question_key(text), -1) for text in asked]
    found = nearest(asked_vectors, example_vectors, k, itself=itself)
    return [[examples[place] for place in row if place >= 0] for row in found.places.tolist()]


def icl_prompt(
    question: str,
    examples: Sequence[Example],
    template: Prompt | None = None,
    sample: Sample | None = None,
) -> str:
    """Return the prompt that shows the examples and asks the question.

    Raises:
        PromptError: the template uses a name other than ``question``, ``examples``, ``sample``.
    """
    found = template or shipped_prompt()
    return found.filled(question=question, examples=examples, sample=sample)


@cache
def shipped_prompt() -> Prompt:
    """Return the template of this package."""
    with as_file(files("trustassay_papers") / "prompts" / "icl.jinja") as path:
        return Prompt.read(path)


def choose_targets(questions: Sequence[Question], way: str) -> list[Example]:
    """Return each question with its best answer (section 5.2)."""
    return [Example.of(question, best(question, way)) for question in questions]


def split(
    examples: Sequence[Example], test_share: float = TEST_SHARE, seed: int = 0
) -> tuple[list[Example], list[Example]]:
    """Return the examples to train on, and those to test with, both in their order.

    A question's side depends on its text and the seed; only the number of questions and the share
    decide how many there are, rounded to the nearest.

    Raises:
        ValueError: a share below 0, or of 1 or more.
    """
    if not 0 <= test_share < 1:
        raise UsageError(f"test share: expected 0 to below 1, got {test_share}")
    order = sorted(range(len(examples)), key=lambda i: _drawn(examples[i].question, seed))
    test = set(order[: round(test_share * len(examples))])
    kept = [one for place, one in enumerate(examples) if place not in test]
    return kept, [examples[place] for place in sorted(test)]


def _drawn(question: str, seed: int) -> bytes:
    text = f"{seed}\x1f{question_key(question)}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def chat_record(example: Example) -> dict[str, Any]:
    """Return a line of a training file in the chat format, as TRL and the OpenAI API read it."""
    turns = (("user", example.question), ("assistant", example.response))
    return {"messages": [{"role": role, "content": text} for role, text in turns]}


SCORE, LABEL, SINGLE = "score", "label", "single"


@dataclass(slots=True)
class Answers:
    """The questions with two candidates or more, and what was left out.

    metric: whose scores these are. asked: the first sample of every question of the run.
    reference: the one behind ``single``, where that is a way. blank: answers without text; without:
    by way, answers that have no such value; alone: questions with fewer than two answers left.
    """

    metric: MetricInfo
    questions: list[Question] = field(default_factory=list)
    asked: list[Sample] = field(default_factory=list)
    reference: str | None = None
    blank: int = 0
    without: Counter[str] = field(default_factory=Counter)
    alone: int = 0


def read_answers(path: Path, ways: Sequence[str], *, metric: str | None = None) -> Answers:
    """Read the answers of a finished run, each with its value by every one of ``ways``.

    An answer counts only if it has all values; so all ways choose among the same. Values are
    higher for better answers: those of a metric of which lower is better change their sign.

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
    name = _metric(path, list(run["metrics"]), metric)
    found = Answers(metric_infos(folder, run)[name])
    single = next((way for way in ways if way.partition(":")[0] == SINGLE), None)
    if single is not None:
        found.reference = single.partition(":")[2] or _commonest_reference(folder, name)
    values = _values(folder, name, ways, found)
    _group(folder, ways, values, found)
    for way in ways:
        if values and found.without[way] == len(values):
            raise UnknownNameError(_no_value(folder, name, way))
    if not found.questions:
        raise RunFolderError(
            f"{path}: no question has two answers to choose between "
            f"({len(found.asked):,} questions, {found.alone:,} with fewer than two answers left; "
            f"{_left_out(found)}); expected samples with the same question"
        )
    return found


def refuse_single_answers(path: Path, fields: Mapping[str, str], limit: int | None = None) -> None:
    """Refuse a file in which no question has two answers, before anything is scored.

    Faulty records are left to the scoring.

    Raises:
        InputError: that is so, or the file cannot be read.
    """
    read = islice(read_samples(path, fields=fields), limit)
    samples = (one.sample for one in read if isinstance(one, Located))
    counts = Counter(question_key(one.question) for one in samples if one.answered)
    if counts and max(counts.values()) < 2:
        raise InputError(
            f"{path}: no question has two answers to choose between ({len(counts):,} questions "
            "with one); expected samples with the same question"
        )


def _metric(path: Path, held: Sequence[str], wanted: str | None) -> str:
    if wanted is not None and wanted not in held:
        raise RunFolderError(f"{path}: {did_you_mean('metric of this run', wanted, held)}")
    if wanted is None and len(held) != 1:
        raise UsageError(f"{path}: the run has {' and '.join(held)}; name one with --metric")
    return wanted or held[0]


def _commonest_reference(folder: RunFolder, metric: str) -> str:
    """Return the reference that most answers were compared with, the first of equal ones."""
    counts: Counter[str] = Counter()
    for assessment in folder.assessments(metric):
        counts.update(_similarities(assessment).keys())
    if not counts:
        raise UnknownNameError(
            f"{folder.path}: {metric} compares with no references, so no single one can be the "
            "baseline; name another one"
        )
    return counts.most_common(1)[0][0]


def _similarities(assessment: Assessment) -> Mapping[str, float]:
    """Return the likeness to each reference, as the evidence of ``fewl`` has it; total."""
    found: dict[str, float] = {}
    for row in assessment.evidence:
        if isinstance(row, Mapping):
            name, value = row.get("reference"), row.get("similarity")
            if isinstance(name, str) and isinstance(value, int | float):
                found.setdefault(name, float(value))  # of equal names the first counts
    return found


def _values(
    folder: RunFolder, metric: str, ways: Sequence[str], found: Answers
) -> dict[str, dict[str, float]]:
    """Return the values of every assessed sample by its id, labels apart."""
    sign = -1.0 if found.metric.lower_is_better else 1.0
    values: dict[str, dict[str, float]] = {}
    for assessment in folder.assessments(metric):
        own = values.setdefault(assessment.id, {})
        if assessment.error is not None:
            continue
        for way in ways:
            if way.partition(":")[0] == SINGLE:
                value = _similarities(assessment).get(found.reference or "")
            else:
                value = assessment.score if way == SCORE else assessment.parts.get(way)
                value = None if value is None or way == LABEL else sign * value
            if value is not None:
                own[way] = value
    return values


def _group(
    folder: RunFolder,
    ways: Sequence[str],
    values: Mapping[str, dict[str, float]],
    found: Answers,
) -> None:
    groups: dict[str, list[Candidate]] = {}
    for sample in folder.samples():
        key = question_key(sample.question)
        if key not in groups:
            groups[key] = []
            found.asked.append(sample)
        own = dict(values.get(sample.id, {}))
        if LABEL in ways and sample.label is not None:
            own[LABEL] = sample.label
        lacking = [way for way in ways if way not in own]
        found.without.update(lacking)
        if not sample.answered:
            found.blank += 1
        elif not lacking:
            groups[key].append(Candidate(sample, own))
    for first, candidates in zip(found.asked, groups.values(), strict=True):
        if len(candidates) > 1:
            found.questions.append(Question(first.question.strip(), candidates))
        else:
            found.alone += 1


def _no_value(folder: RunFolder, metric: str, way: str) -> str:
    parts = sorted({name for one in folder.assessments(metric) for name in one.parts})
    if way == SCORE:
        return f"{folder.path}: no answer has a score of {metric}"
    if way.partition(":")[0] == SINGLE:
        names = sorted({n for one in folder.assessments(metric) for n in _similarities(one)})
        return f"{folder.path}: {did_you_mean('reference', way.partition(':')[2], names)}"
    if way == LABEL:
        return f"{folder.path}: no answer has a label"
    known = dict.fromkeys((SCORE, LABEL, SINGLE, *parts))  # a part may be called so, too
    return f"{folder.path}: {did_you_mean('way of choosing', way, known)}"


def _left_out(found: Answers) -> str:
    words = [f"{n:,} answers without {way}" for way, n in found.without.items()]
    if found.blank:
        words.append(f"{found.blank:,} blank answers")
    return ", ".join(words) or "no answer was left out"
