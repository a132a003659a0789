"""Which answers of two runs belong together.

1. Samples of the same id and question are a pair.
2. The others are paired by their question, whose case and white space do not count; where a run
   holds a question several times, answers of the same model first, then in the order of the file.
3. Each pair belongs to a question, and each question to an independent unit.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.errors import RunFolderError
from trustassay.runs.counts import UNIT, unit_keys
from trustassay.runs.folder import RunFolder
from trustassay.runs.lines import hash64
from trustassay.sample import question_key
from trustassay.statistics import Bools, Floats, Places
from trustassay.text.words import amount
from trustassay.workflows.json_form import fields_as_json

Keys = NDArray[np.uint64]


class SampleKeys(NamedTuple):
    """What the samples of a run are paired by, as hashes in input order; 0 for what is missing."""

    ids: Keys
    questions: Keys
    models: Keys
    passages: Keys
    """Of the texts of all passages."""
    words: Places
    """Words of each response."""
    question_units: Keys
    """What is one question, where one instruction for many texts is not (``unit_keys``)."""
    units: Keys
    """What is independent, by the run's own unit."""


@dataclass(frozen=True)
class Pairing:
    """The answers of two runs to the same questions.

    first, second: the places of each pair in the runs, in the order of the first. questions: for
    each pair the number of its question, from 0 on without gaps. units: for each question the
    number of what is independent. by_id, by_question: pairs of the same id and question, and those
    of the same question alone. repeated: of these, pairs of questions that a run holds several
    times. other_question: ids that both runs hold with different questions, which pair nothing.
    only_first, only_second: samples without a partner.
    """

    first: Places
    second: Places
    questions: Places
    units: Places
    by_id: int
    by_question: int
    repeated: int
    other_question: int
    only_first: int
    only_second: int

    @property
    def question_count(self) -> int:
        """The number of different questions."""
        return len(self.units)

    @property
    def units_of_pairs(self) -> Places:
        """The number of each pair's unit, from 0 on without gaps."""
        return self.units[self.questions]

    def keep(self, pairs: Bools) -> "Pairing":
        """Return some of the pairs; the counts of the others stay."""
        kept, numbers = np.unique(self.questions[pairs], return_inverse=True)
        units = np.unique(self.units[kept], return_inverse=True)[1].astype(np.int64)
        return replace(
            self,
            first=self.first[pairs],
            second=self.second[pairs],
            questions=numbers.astype(np.int64),
            units=units,
        )

    def means_by_question(self, values: Floats) -> Floats:
        """Return the mean of a value of each pair by question, shape (questions,)."""
        sizes = np.bincount(self.questions, minlength=self.question_count)
        return np.bincount(self.questions, values, self.question_count) / sizes

    def in_words(self) -> str:
        """Say how many answers were paired by what, and how many not."""
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
                f"; {self.repeated:,} are of questions that occur in a run several times, paired "
                "by model and order"
            )
        if self.only_first or self.only_second:
            message += (
                f"; without a partner: {self.only_first:,} of the first run and "
                f"{self.only_second:,} of the second"
            )
        if self.other_question:
            message += f"; {amount(self.other_question, 'id')} with different questions"
        return message

    def to_dict(self) -> dict[str, int]:
        """Return the JSON form: the counts."""
        names = ("by_id", "by_question", "repeated", "other_question", "only_first", "only_second")
        counts = fields_as_json(self, *names)
        return {"pairs": len(self.first), "questions": self.question_count} | counts


def read_keys(folder: RunFolder, run: Mapping[str, Any]) -> SampleKeys:
    """Return what a run's samples are paired by; RunFolderError: they are missing or damaged."""
    if not folder.samples_path.exists():
        raise RunFolderError(f"{folder.samples_path}: is missing; score the input again")
    rows: list[tuple[int, ...]] = []
    for number, record in enumerate(folder.sample_records(), 1):
        try:
            texts = record["id"], question_key(record["question"]), record.get("model")
            passages = [str(one.get("text") or "") for one in record.get("documents") or ()]
            words = len(str(record.get("response") or "").split())
        except (KeyError, TypeError, AttributeError):
            raise folder.bad_sample(number, "has no id or question") from None
        hashes = [hash64(text) if text else 0 for text in texts]
        rows.append((*hashes, hash64(*passages) if passages else 0, words))
    columns = np.array(rows, dtype=np.uint64).reshape(-1, 5).T
    words_of_responses = columns[4].astype(np.int64)
    by_question, unit = unit_keys(folder), run.get(UNIT)
    by_unit = by_question if unit is None else unit_keys(folder, unit)
    ids, questions, models, passages = columns[:4]
    return SampleKeys(ids, questions, models, passages, words_of_responses, by_question, by_unit)


def pair_samples(first: SampleKeys, second: SampleKeys) -> Pairing:
    """Pair the samples of two runs."""
    _, in_first, in_second = np.intersect1d(first.ids, second.ids, return_indices=True)
    same = first.questions[in_first] == second.questions[in_second]
    pairs = list(zip(in_first[same].tolist(), in_second[same].tolist(), strict=True))
    by_id = len(pairs)
    rest = [
        np.setdiff1d(np.arange(len(keys.ids)), taken)
        for keys, taken in ((first, in_first[same]), (second, in_second[same]))
    ]
    by_question = list(_pairs_by_question(first, second, rest[0], rest[1]))
    several = [
        {question for question, count in Counter(keys.questions.tolist()).items() if count > 1}
        for keys in (first, second)
    ]
    occurring_often = several[0] | several[1]
    places = np.array(sorted(pairs + by_question), dtype=np.int64).reshape(-1, 2)
    questions, units = _questions_and_units(first, places[:, 0])
    return Pairing(
        places[:, 0],
        places[:, 1],
        questions,
        units,
        by_id,
        len(by_question),
        sum(int(first.questions[one]) in occurring_often for one, _ in by_question),
        int((~same).sum()),
        len(first.ids) - len(places),
        len(second.ids) - len(places),
    )


def _questions_and_units(first: SampleKeys, places: Places) -> tuple[Places, Places]:
    """Return the number of each pair's question, and the number of each question's unit."""
    keys = first.question_units[places].copy()
    # Samples without a question have nothing in common but that.
    blank = first.questions[places] == 0
    keys[blank] = first.ids[places][blank]
    _, at, questions = np.unique(keys, return_index=True, return_inverse=True)
    units = np.unique(first.units[places][at], return_inverse=True)[1]
    if blank.any():
        units = np.unique(np.where(blank[at], -1 - at, units), return_inverse=True)[1]
    return questions.astype(np.int64), units.astype(np.int64)


def _pairs_by_question(
    first: SampleKeys, second: SampleKeys, ours: Places, theirs: Places
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of the same question and model, then those of the same question."""
    left = [place for place in ours.tolist() if first.questions[place]]
    taken: set[int] = set()
    for with_model in (True, False):

        def key(keys: SampleKeys, place: int, with_model: bool = with_model) -> tuple[int, int]:
            return int(keys.questions[place]), int(keys.models[place]) if with_model else 0

        waiting: defaultdict[tuple[int, int], deque[int]] = defaultdict(deque)
        for place in theirs.tolist():
            if place not in taken:
                waiting[key(second, place)].append(place)
        unpaired = []
        for place in left:
            if queue := waiting.get(key(first, place)):
                taken.add(queue[0])
                yield place, queue.popleft()
            else:
                unpaired.append(place)
        left = unpaired


LENGTH_FACTOR = 2.0
"""How many times longer or shorter the median answer must be to be named."""


def what_differs(pairing: Pairing, first: SampleKeys, second: SampleKeys) -> list[str]:
    """Say what changed besides the answers: passages of the same questions, and lengths."""
    if not len(pairing.first):
        return []
    result = []
    differ = first.passages[pairing.first] != second.passages[pairing.second]
    questions = len(np.unique(pairing.questions[differ]))
    if questions:
        result.append(
            f"the passages differ in {questions:,} of "
            f"{amount(pairing.question_count, 'question')}: a change there is no change of the "
            "answers alone"
        )
    medians = [
        float(np.median(keys.words[places]))
        for keys, places in ((first, pairing.first), (second, pairing.second))
    ]
    low, high = sorted(medians)
    if high >= LENGTH_FACTOR * max(low, 1.0):
        result.append(f"the median length of an answer went {medians[0]:g} → {medians[1]:g} words")
    return result
