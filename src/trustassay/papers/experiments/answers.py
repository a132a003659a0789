"""Read the right and wrong answers of an experiment's input, by question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trustassay.core.labels import read_single_label
from trustassay.core.sample import Problem, Sample
from trustassay.input.reading import LocatedSample, read_samples
from trustassay.input.records import FieldNames, InputError, InputFault
from trustassay.runs.intake import BadInputError

BEST_ANSWER_FIELDS = ("Best Answer", "best_answer")
"""Names of the field of the best answer in the two files of TruthfulQA."""
HALF_WRONG_KINDS = frozenset({"mid-halu", "half-hallu"})
"""Kinds of half hallucinated answers, by the name in CHALE and in the bundled set."""


@dataclass(frozen=True)
class RecordSelection:
    """Which part of an input is read, and what was skipped."""

    limit: int | None = None
    """Maximum number of questions; of answers where a command says so."""
    fields: FieldNames | None = None
    """Names of the fields, as for ``score``."""
    sheet: str | int | None = None
    """The sheet of a workbook, as for ``score``."""
    skip_bad: bool = False
    """Whether to skip faulty records."""
    skipped: list[InputFault] = field(default_factory=list)
    """The faulty records that were skipped."""
    positions: dict[str, str] = field(default_factory=dict)
    """Positions of samples in the input, by id."""

    @classmethod
    def of_options(cls, options: Mapping[str, Any]) -> RecordSelection:
        """Return what the options of a command select; a missing one was not given."""
        names = ("limit", "fields", "sheet", "skip_bad")
        return cls(**{name: options[name] for name in names if name in options})

    def refuse(self, faults: Sequence[InputFault]) -> None:
        """Raise :class:`BadInputError` for faulty records, or note that they are skipped."""
        if faults and not self.skip_bad:
            raise BadInputError(faults, len(faults))
        # The final table says how many records were skipped.
        self.skipped.extend(faults)

    def fault(self, sample: Sample, problems: Iterable[Problem]) -> InputFault:
        """Return the fault of a sample, with its position in the input."""
        return InputFault(self.positions.get(sample.id, f"sample {sample.id}"), tuple(problems))

    @contextmanager
    def report_positions(self, samples: Sequence[Sample]) -> Iterator[None]:
        """Replace positions among ``samples`` in a run's faults by positions in the input."""
        sample_of_where = {f"sample {n}": sample for n, sample in enumerate(samples, 1)}
        try:
            yield
        except BadInputError as error:
            faults = [
                self.fault(sample_of_where[fault.where], fault.problems)
                if fault.where in sample_of_where
                else fault
                for fault in error.faults
            ]
            # The position in the experiment's own list would mean nothing to the user.
            raise BadInputError(faults, error.count) from None


@dataclass(frozen=True)
class LabelledAnswer:
    """An answer that is known to be right or wrong."""

    sample: Sample
    """The question with this answer as its response."""
    question: int
    """The number of the question in the input."""
    kind: str
    """What the data set calls such answers."""
    right: bool
    best: bool
    """Whether it is the one right answer that counts if a question has several."""


def read_records(
    source: Path, records: RecordSelection, *, limits_answers: bool = False
) -> list[Sample]:
    """Return the samples of a file, or only those of its first ``limit`` questions.

    Args:
        limits_answers: whether ``limit`` counts answers, as where all are to one question.

    Raises:
        InputError: the file cannot be read, or holds no sample.
        BadInputError: records have faults, and ``skip_bad`` is off.
    """
    samples: list[Sample] = []
    faults: list[InputFault] = []
    questions: set[str] = set()
    id_counts: Counter[str] = Counter()
    for record in read_samples(source, fields=records.fields or {}, sheet=records.sheet):
        if isinstance(record, InputFault):
            faults.append(record)
            continue
        # Reading stops at the first record of one question, or answer, too many.
        questions.add(record.sample.question.strip())
        count = len(samples) + 1 if limits_answers else len(questions)
        if records.limit is not None and count > records.limit:
            break
        samples.append(_number_duplicate_id(record, id_counts))
        # Kept for faults that are only found later, by a metric.
        records.positions[samples[-1].id] = record.where
    records.refuse(faults)
    if not samples:
        raise InputError(f"{source}: no usable sample in the input")
    return samples


def read_distinct_questions(source: Path, records: RecordSelection) -> list[Sample]:
    """Return the questions of a file without responses, each once; raise as :func:`read_records`.

    Of several answers to one question the first record counts.
    """
    questions: dict[str, Sample] = {}
    for record in read_records(source, records):
        questions.setdefault(record.question.strip(), replace(record, response=None, model=None))
    return list(questions.values())


def _number_duplicate_id(record: LocatedSample, id_counts: Counter[str]) -> Sample:
    """Return the sample; if equal records have no id, later ones get a number."""
    sample = record.sample
    id_counts[sample.id] += 1
    # Ids that follow from the content are equal for equal records, and a run refuses them.
    if record.has_id or id_counts[sample.id] == 1:
        return sample
    return replace(sample, id=f"{sample.id}-{id_counts[sample.id]}")


def collect_answers(
    samples: Iterable[Sample], records: RecordSelection, *, every: bool
) -> list[LabelledAnswer]:
    """Return the answers that samples hold.

    A sample with a response and a label is one answer; it is right if the label is above 0. A
    sample without a response, as in TruthfulQA, gives its best answer and the first wrong one, or
    with ``every`` all of its right and wrong answers. The samples list the right and wrong answers
    that the weights ``ideal`` read.

    Raises:
        BadInputError: a sample has neither, and ``skip_bad`` is off.
        InputError: no question has a right answer and a wrong one.
    """
    numbers: dict[str, int] = {}
    answers: list[LabelledAnswer] = []
    faults: list[InputFault] = []
    questions_with_kinds: set[int] = set()
    for sample in samples:
        # Questions are numbered in the order of their first answer.
        number = numbers.setdefault(sample.question.strip(), len(numbers))
        if sample.response is None:
            # A question without a response must bring its own right and wrong answers.
            if problems := _find_missing_answers(sample):
                faults.append(records.fault(sample, problems))
            else:
                expanded = _expand_question(sample, number, every=every)
                position = records.positions.get(sample.id, f"sample {sample.id}")
                records.positions.update({answer.sample.id: position for answer in expanded})
                answers += expanded
        elif (label := read_single_label(sample.label)) is None:
            state = "is missing" if sample.label is None else f"is {str(sample.label)[:40]!r}"
            message = f"{state} (expected a number: above 0 for a right answer, otherwise wrong)"
            faults.append(records.fault(sample, [Problem("label", message)]))
        else:
            # Data sets name kinds of wrong answers, as CHALE does; the table has a column for
            # each.
            kind = sample.metadata.get("kind")
            right = label > 0
            if isinstance(kind, str):
                questions_with_kinds.add(number)
            kind_name = kind if isinstance(kind, str) else ("right" if right else "wrong")
            answers.append(LabelledAnswer(sample, number, kind_name, right, best=right))
    records.refuse(faults)
    # After all answers are known: the best may come behind other right ones.
    answers = _list_labelled_answers(_mark_one_best(answers), questions_with_kinds)
    _check_both_sides(answers)
    return answers


def _check_both_sides(answers: Sequence[LabelledAnswer]) -> None:
    """Raise InputError if no question has both a right and a wrong answer."""
    with_right = {answer.question for answer in answers if answer.right}
    with_wrong = {answer.question for answer in answers if not answer.right}
    if with_right & with_wrong:
        return
    counts = (
        f"{len(with_right):,} with only right answers, {len(with_wrong):,} with only wrong ones"
    )
    raise InputError(
        f"no question has both a right and a wrong answer: {counts}. Give several answers to a "
        "question, one record each with `response` and `label`, or questions without `response` "
        "that list `answers` and `incorrect_answers`"
    )


def _list_labelled_answers(
    answers: Sequence[LabelledAnswer], questions_with_kinds: Set[int]
) -> list[LabelledAnswer]:
    """Return answers whose samples list the labelled answers of their question.

    Wei et al. 2024, before Table 2: the ideal weights read the non-hallucinated and hallucinated
    answers. The paper tells these from half hallucinated ones, which therefore are neither. Where
    records name the kinds of their answers, what they list is something else (in CHALE a short
    answer that is none of the three); other samples keep their own lists.
    """
    texts: dict[tuple[int, bool], list[str]] = {}
    for answer in answers:
        if answer.kind not in HALF_WRONG_KINDS:
            texts.setdefault((answer.question, answer.right), []).append(
                answer.sample.response or ""
            )
    result = []
    for answer in answers:
        right, wrong = (texts.get((answer.question, side), []) for side in (True, False))
        sample = answer.sample
        has_kinds = answer.question in questions_with_kinds
        if right and wrong and (has_kinds or not sample.incorrect_answers):
            sample = replace(
                sample,
                answers=tuple((text,) for text in right),
                incorrect_answers=tuple(wrong),
            )
        result.append(replace(answer, sample=sample))
    return result


def _find_missing_answers(sample: Sample) -> tuple[Problem, ...]:
    message = "is missing (expected right and wrong answers, or a response with a label)"
    return tuple(
        Problem(name, message)
        for name in ("answers", "incorrect_answers")
        if not getattr(sample, name)
    )


def _expand_question(sample: Sample, number: int, *, every: bool) -> list[LabelledAnswer]:
    """Return a question's answers as samples: the best one, then right ones, then wrong ones."""
    right = [alias for aliases in sample.answers for alias in aliases]
    # The best answer has no separate label in TruthfulQA, so it comes first.
    texts = [(best_answer(sample), "best", True)]
    texts += [(text, "right", True) for text in right if every]
    texts += [(text, "wrong", False) for text in sample.incorrect_answers[: None if every else 1]]
    # In reverse, so that of equal texts the first one stays: the best answer is usually also among
    # the right ones.
    unique = {
        text.strip().casefold(): (text, kind, is_right) for text, kind, is_right in reversed(texts)
    }
    return [
        LabelledAnswer(
            replace(
                sample,
                id=f"{sample.id}-{position}",
                response=text,
                label=float(is_right),
                metadata={**sample.metadata, "kind": kind},
            ),
            number,
            kind,
            is_right,
            best=kind == "best",
        )
        for position, (text, kind, is_right) in enumerate(reversed(unique.values()), 1)
    ]


def best_answer(sample: Sample) -> str:
    """Return TruthfulQA's best answer, or else the first right one."""
    candidates = (sample.metadata.get(key) for key in BEST_ANSWER_FIELDS)
    texts = (text.strip() for text in candidates if isinstance(text, str))
    return next(filter(None, texts), sample.answers[0][0])


def _mark_one_best(answers: Sequence[LabelledAnswer]) -> list[LabelledAnswer]:
    """Mark one answer a question as best: the first of kind "best", or else the first right one."""
    best: dict[int, int] = {}
    for index, answer in enumerate(answers):
        if not answer.best:
            continue
        # An answer of kind "best" replaces an earlier right one, but never another "best".
        earlier = best.get(answer.question)
        if earlier is None or (answer.kind == "best" and answers[earlier].kind != "best"):
            best[answer.question] = index
    best_indices = set(best.values())
    return [replace(answer, best=index in best_indices) for index, answer in enumerate(answers)]
