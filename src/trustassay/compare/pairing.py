"""Pairs the answers of two runs that belong together.

1. Samples with the same id and question are a pair.
2. The remaining samples are paired by question, ignoring case and white space. Where a run holds a
   question several times, answers of the same model are paired first, then in the order of the
   file.
3. Each pair belongs to a question, and each question to an independent unit.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.core.json_form import fields_as_json
from trustassay.core.sample import question_key
from trustassay.errors import RunFolderError
from trustassay.runs.folder import RunFolder
from trustassay.runs.lines import hash64
from trustassay.runs.units import UNIT, compute_unit_keys
from trustassay.statistics import Bools, Floats, Places
from trustassay.text.numbers import amount

HashColumn = NDArray[np.uint64]


class SampleKeys(NamedTuple):
    """The keys by which the samples of a run are paired, in input order.

    Texts are hashed to 64 bits; 0 stands for a missing value.
    """

    ids: HashColumn
    questions: HashColumn
    """Hashes of the normalised questions."""
    models: HashColumn
    """Hashes of the models that wrote the responses."""
    passages: HashColumn
    """Hashes of the texts of all passages of a sample."""
    words: Places
    """The number of words of each response."""
    question_units: HashColumn
    """Keys of what counts as one question: one instruction for many texts does not
    (``unit_keys``)."""
    units: HashColumn
    """Keys of what is independent, by the unit that the run declares."""


@dataclass(frozen=True)
class RunPairing:
    """The pairs of answers of two runs to the same questions."""

    first: Places
    """The place of each pair in the first run, ascending."""
    second: Places
    """The place of each pair in the second run."""
    questions: Places
    """The number of each pair's question, from 0 on without gaps."""
    units: Places
    """The number of the independent unit of each question, shape (questions,)."""
    by_id: int
    """The number of pairs with the same id and question."""
    by_question: int
    """The number of pairs with the same question only."""
    repeated: int
    """Pairs of ``by_question`` whose question occurs several times in a run."""
    other_question: int
    """Ids that both runs have, with different questions; they pair nothing."""
    only_first: int
    """Samples of the first run without a partner."""
    only_second: int
    """Samples of the second run without a partner."""

    @property
    def question_count(self) -> int:
        """The number of different questions."""
        return len(self.units)

    @property
    def units_of_pairs(self) -> Places:
        """The number of each pair's unit, from 0 on without gaps."""
        return self.units[self.questions]

    def select(self, pairs: Bools) -> "RunPairing":
        """Return the pairs that the mask selects, renumbered; the counts stay as they are."""
        questions_left, numbers = np.unique(self.questions[pairs], return_inverse=True)
        units = np.unique(self.units[questions_left], return_inverse=True)[1].astype(np.int64)
        return replace(
            self,
            first=self.first[pairs],
            second=self.second[pairs],
            questions=numbers.astype(np.int64),
            units=units,
        )

    def means_by_question(self, values: Floats) -> Floats:
        """Average a value of each pair over the pairs of a question, shape (questions,)."""
        sizes = np.bincount(self.questions, minlength=self.question_count)
        return np.bincount(self.questions, values, self.question_count) / sizes

    def in_words(self) -> str:
        """Write how many answers were paired, by what, and how many were not."""
        ways = []
        if self.by_id:
            ways.append(f"{self.by_id:,} by id and question")
        if self.by_question:
            ways.append(f"{self.by_question:,} by question")
        message = f"{amount(len(self.first), 'pair')} of answers"
        message += f" ({', '.join(ways)})" if ways else ""
        if self.question_count < len(self.first):
            message += f" to {amount(self.question_count, 'question')}"
        if self.repeated:
            message += (
                f"; {self.repeated:,} to questions that occur several times in a run, paired by "
                "model and order"
            )
        if self.only_first or self.only_second:
            message += (
                f"; unpaired: {self.only_first:,} in the first run and {self.only_second:,} in the "
                "second"
            )
        if self.other_question:
            message += f"; {amount(self.other_question, 'common id')} with different questions"
        return message

    def to_dict(self) -> dict[str, int]:
        """Return the JSON form: the counts."""
        names = ("by_id", "by_question", "repeated", "other_question", "only_first", "only_second")
        # The places of pairs are left out: they would be as long as the runs.
        counts = fields_as_json(self, *names)
        return {"pairs": len(self.first), "questions": self.question_count} | counts


def read_keys(folder: RunFolder, run: Mapping[str, Any]) -> SampleKeys:
    """Read the pairing keys of a run's samples; raises RunFolderError if missing or damaged."""
    if not folder.samples_path.exists():
        raise RunFolderError(f"{folder.samples_path}: missing; score the input again")
    rows: list[tuple[int, ...]] = []
    for number, record in enumerate(folder.sample_records(), 1):
        try:
            texts = record["id"], question_key(record["question"]), record.get("model")
            passages = [
                str(document.get("text") or "") for document in record.get("documents") or ()
            ]
            words = len(str(record.get("response") or "").split())
        except (KeyError, TypeError, AttributeError):
            raise folder.build_sample_error(number, "has no id or question") from None
        hashes = [hash64(text) if text else 0 for text in texts]
        # Rows of plain integers become one array, which is far smaller than objects for each
        # sample.
        rows.append((*hashes, hash64(*passages) if passages else 0, words))
    columns = np.array(rows, dtype=np.uint64).reshape(-1, 5).T
    words_of_responses = columns[4].astype(np.int64)
    # A run without a declared unit counts each question as independent.
    by_question, unit = compute_unit_keys(folder), run.get(UNIT)
    by_unit = by_question if unit is None else compute_unit_keys(folder, unit)
    ids, questions, models, passages = columns[:4]
    return SampleKeys(ids, questions, models, passages, words_of_responses, by_question, by_unit)


def pair_samples(first: SampleKeys, second: SampleKeys) -> RunPairing:
    """Pair the samples of two runs."""
    # Ids alone are not enough: two files may number different questions 1, 2, 3.
    _, in_first, in_second = np.intersect1d(first.ids, second.ids, return_indices=True)
    has_same_question = first.questions[in_first] == second.questions[in_second]
    pairs = list(
        zip(
            in_first[has_same_question].tolist(), in_second[has_same_question].tolist(), strict=True
        )
    )
    by_id = len(pairs)
    unpaired_by_run = [
        np.setdiff1d(np.arange(len(keys.ids)), paired_places)
        for keys, paired_places in (
            (first, in_first[has_same_question]),
            (second, in_second[has_same_question]),
        )
    ]
    by_question = list(_pair_by_question(first, second, unpaired_by_run[0], unpaired_by_run[1]))
    # Questions that occur several times are paired by order, which the report has to mention.
    several = [
        {question for question, count in Counter(keys.questions.tolist()).items() if count > 1}
        for keys in (first, second)
    ]
    occurring_often = several[0] | several[1]
    # Sorted by the first run; reshape keeps two columns where there is no pair.
    places = np.array(sorted(pairs + by_question), dtype=np.int64).reshape(-1, 2)
    questions, units = _number_questions_and_units(first, places[:, 0])
    return RunPairing(
        first=places[:, 0],
        second=places[:, 1],
        questions=questions,
        units=units,
        by_id=by_id,
        by_question=len(by_question),
        repeated=sum(int(first.questions[place]) in occurring_often for place, _ in by_question),
        other_question=int((~has_same_question).sum()),
        only_first=len(first.ids) - len(places),
        only_second=len(second.ids) - len(places),
    )


def _number_questions_and_units(first: SampleKeys, places: Places) -> tuple[Places, Places]:
    """Number the questions of the pairs, and the units of the questions, without gaps."""
    keys = first.question_units[places].copy()
    # Samples without a question have nothing in common but that.
    blank = first.questions[places] == 0
    keys[blank] = first.ids[places][blank]
    _, at, questions = np.unique(keys, return_index=True, return_inverse=True)
    units = np.unique(first.units[places][at], return_inverse=True)[1]
    if blank.any():
        # Blank questions get unit numbers that no other unit has: they are not one question.
        units = np.unique(np.where(blank[at], -1 - at, units), return_inverse=True)[1]
    return questions.astype(np.int64), units.astype(np.int64)


def _pair_by_question(
    first: SampleKeys, second: SampleKeys, ours: Places, theirs: Places
) -> Iterator[tuple[int, int]]:
    """Yield the pairs with the same question and model, then those with the same question."""
    waiting_ours = [place for place in ours.tolist() if first.questions[place]]
    paired_theirs: set[int] = set()
    # Two passes: first only answers of the same model, then whatever is left.
    for with_model in (True, False):
        # The default argument binds the loop variable for this pass.
        def key(keys: SampleKeys, place: int, with_model: bool = with_model) -> tuple[int, int]:
            return int(keys.questions[place]), int(keys.models[place]) if with_model else 0

        queues: defaultdict[tuple[int, int], deque[int]] = defaultdict(deque)
        for place in theirs.tolist():
            if place not in paired_theirs:
                queues[key(second, place)].append(place)
        unpaired = []
        for place in waiting_ours:
            if queue := queues.get(key(first, place)):
                paired_theirs.add(queue[0])
                yield place, queue.popleft()
            else:
                unpaired.append(place)
        # Only what the first pass could not pair goes into the second.
        waiting_ours = unpaired


LENGTH_FACTOR = 2.0
"""The factor between the median lengths of answers from which a note mentions it."""


def describe_differences(pairing: RunPairing, first: SampleKeys, second: SampleKeys) -> list[str]:
    """Describe what differs besides the answers: passages of the same questions, and lengths."""
    if not len(pairing.first):
        return []
    result = []
    differ = first.passages[pairing.first] != second.passages[pairing.second]
    questions = len(np.unique(pairing.questions[differ]))
    if questions:
        result.append(
            f"the passages differ in {questions:,} of "
            f"{amount(pairing.question_count, 'question')}, so changes of their scores may be "
            "due to the passages"
        )
    medians = [
        float(np.median(keys.words[places]))
        for keys, places in ((first, pairing.first), (second, pairing.second))
    ]
    low, high = sorted(medians)
    # A median of 0 words would make every factor infinite.
    if high >= LENGTH_FACTOR * max(low, 1.0):
        result.append(f"median length of the answers: {medians[0]:g} → {medians[1]:g} words")
    return result
