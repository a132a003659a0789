"""The answers of an experiment: what the input holds of right and wrong answers, by question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trustassay.data.reading import Located, read_samples
from trustassay.data.records import Fault, InputError
from trustassay.runs.intake import BadInputError
from trustassay.sample import Problem, Sample

BEST_ANSWER = ("Best Answer", "best_answer")
"""Names of TruthfulQA's best answer in its two files."""


@dataclass(frozen=True)
class Records:
    """Which part of an input is read; ``limit`` counts questions, not answers.

    ``skipped`` gathers the faulty records that were skipped; ``places`` where samples stand, by id.
    """

    limit: int | None = None
    fields: Mapping[str, str] | None = None
    skip_bad: bool = False
    skipped: list[Fault] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)

    def refuse(self, faults: Sequence[Fault]) -> None:
        """Raise :class:`BadInputError` for faulty records, or note that they are skipped."""
        if faults and not self.skip_bad:
            raise BadInputError(faults, len(faults))
        self.skipped.extend(faults)

    def fault(self, sample: Sample, problems: Iterable[Problem]) -> Fault:
        """Return what is wrong with a sample, at its place in the input."""
        return Fault(self.places.get(sample.id, f"sample {sample.id}"), tuple(problems))

    @contextmanager
    def placing(self, samples: Sequence[Sample]) -> Iterator[None]:
        """Name the faults that a run of these samples tells by their places in the input."""
        wheres = {f"sample {n}": one for n, one in enumerate(samples, 1)}
        try:
            yield
        except BadInputError as error:
            faults = [
                self.fault(wheres[one.where], one.problems) if one.where in wheres else one
                for one in error.faults
            ]
            raise BadInputError(faults, error.count) from None


@dataclass(frozen=True)
class Answer:
    """An answer to a question: the sample that holds it, and what is known of it.

    question: its number in the input. kind: what the data set calls such answers. best: the one
    right answer that counts where a question has several.
    """

    sample: Sample
    question: int
    kind: str
    right: bool
    best: bool


def read_records(source: Path, records: Records) -> list[Sample]:
    """Return the samples of a file, those of the first questions alone where there is a limit.

    Raises:
        InputError: the file cannot be read, or holds no sample.
        BadInputError: records have faults, and ``skip_bad`` is off.
    """
    samples: list[Sample] = []
    faults: list[Fault] = []
    questions: set[str] = set()
    taken: Counter[str] = Counter()
    for found in read_samples(source, fields=records.fields or {}):
        if isinstance(found, Fault):
            faults.append(found)
            continue
        questions.add(found.sample.question.strip())
        if records.limit is not None and len(questions) > records.limit:
            break
        samples.append(_with_own_id(found, taken))
        records.places[samples[-1].id] = found.where
    records.refuse(faults)
    if not samples:
        raise InputError(f"{source}: no usable sample in the input")
    return samples


def _with_own_id(found: Located, taken: Counter[str]) -> Sample:
    """Return the sample; of equal records without an id the later ones get a number."""
    sample = found.sample
    taken[sample.id] += 1
    if found.has_id or taken[sample.id] == 1:
        return sample
    return replace(sample, id=f"{sample.id}-{taken[sample.id]}")


def answers_of(samples: Iterable[Sample], records: Records, *, every: bool) -> list[Answer]:
    """Return the answers that samples hold.

    A sample with a response and a label is one answer; a label above 0 is right. One without a
    response, as of TruthfulQA, gives its best answer and the first wrong one, or, with ``every``,
    all of its right and wrong answers.

    Raises:
        BadInputError: a sample has neither, and ``skip_bad`` is off.
        InputError: no question has a right answer and a wrong one.
    """
    numbers: dict[str, int] = {}
    found: list[Answer] = []
    faults: list[Fault] = []
    for sample in samples:
        number = numbers.setdefault(sample.question.strip(), len(numbers))
        if sample.response is None:
            if problems := _lacks_answers(sample):
                faults.append(records.fault(sample, problems))
            else:
                spread = _spread(sample, number, every=every)
                where = records.places.get(sample.id, f"sample {sample.id}")
                records.places.update({one.sample.id: where for one in spread})
                found += spread
        elif sample.label is None:
            words = "is missing (expected a number: above 0 for a right answer, else a wrong one)"
            faults.append(records.fault(sample, [Problem("label", words)]))
        else:
            kind = sample.metadata.get("kind")
            right = sample.label > 0
            named = kind if isinstance(kind, str) else ("right" if right else "wrong")
            found.append(Answer(sample, number, named, right, best=right))
    records.refuse(faults)
    found = _one_best(found)
    with_right = {one.question for one in found if one.right}
    if not with_right & {one.question for one in found if not one.right}:
        raise InputError(
            "no question has a right and a wrong answer; expected answers with a label, or "
            "questions with `answers` and `incorrect_answers`"
        )
    return found


def _lacks_answers(sample: Sample) -> tuple[Problem, ...]:
    words = "is missing (expected right and wrong answers, or a response with a label)"
    return tuple(
        Problem(name, words)
        for name in ("answers", "incorrect_answers")
        if not getattr(sample, name)
    )


def _spread(sample: Sample, number: int, *, every: bool) -> list[Answer]:
    """Return a question's answers as samples: the best one first, then right, then wrong ones."""
    right = [alias for aliases in sample.answers for alias in aliases]
    texts = [(best_answer(sample), "best", True)]
    texts += [(text, "right", True) for text in right if every]
    texts += [(text, "wrong", False) for text in sample.incorrect_answers[: None if every else 1]]
    kept = {text.strip().casefold(): (text, kind, good) for text, kind, good in reversed(texts)}
    return [
        Answer(
            replace(
                sample,
                id=f"{sample.id}-{place}",
                response=text,
                label=float(good),
                metadata={**sample.metadata, "kind": kind},
            ),
            number,
            kind,
            good,
            best=kind == "best",
        )
        for place, (text, kind, good) in enumerate(reversed(kept.values()), 1)
    ]


def best_answer(sample: Sample) -> str:
    """Return TruthfulQA's best answer, else the first right one; there is one at least."""
    named = (_text(sample.metadata.get(key)) for key in BEST_ANSWER)
    return next(filter(None, named), sample.answers[0][0])


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _one_best(answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers with one best a question: the first that is called so, else is right."""
    best: dict[int, int] = {}
    for place, one in enumerate(answers):
        if one.best and (one.question not in best or one.kind == "best"):
            if one.question in best and answers[best[one.question]].kind == "best":
                continue
            best[one.question] = place
    chosen = set(best.values())
    return [replace(one, best=place in chosen) for place, one in enumerate(answers)]
