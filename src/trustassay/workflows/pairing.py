"""Which answer of one run belongs to which of another: by id and question."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.errors import RunFolderError
from trustassay.runs.folder import RunFolder
from trustassay.runs.hashing import hash64
from trustassay.sample import question_key
from trustassay.show.text import amount

__all__ = ["Pairing", "SampleKeys", "pair", "read_keys"]

Places = NDArray[np.int64]


class SampleKeys(NamedTuple):
    """What the samples of a run are paired by, as hashes in input order; 0 for what is missing."""

    ids: NDArray[np.uint64]
    questions: NDArray[np.uint64]
    models: NDArray[np.uint64]


@dataclass(frozen=True)
class Pairing:
    """The answers of two runs to the same questions.

    first, second: the places of each pair in the runs, in the order of the first. units: for each
    pair the number of its question, from 0 on without gaps. by_id, by_question: pairs of the same
    id and question, and those of the same question alone. repeated: of these, pairs of questions
    that a run holds several times. other_question: ids that stand in both runs with different
    questions, which pair nothing. only_first, only_second: samples without a partner.
    """

    first: Places
    second: Places
    units: Places
    by_id: int
    by_question: int
    repeated: int
    other_question: int
    only_first: int
    only_second: int

    @property
    def questions(self) -> int:
        """The number of different questions."""
        return int(self.units.max()) + 1 if len(self.units) else 0

    def only(self, keep: NDArray[np.bool_]) -> Pairing:
        """Return some of the pairs; the counts of the others stay."""
        units = np.unique(self.units[keep], return_inverse=True)[1].astype(np.int64)
        counts = (self.by_id, self.by_question, self.repeated, self.other_question)
        only = (self.only_first, self.only_second)
        return Pairing(self.first[keep], self.second[keep], units, *counts, *only)

    def in_words(self) -> str:
        """Say how many answers were paired by what, and how many not."""
        ways = []
        if self.by_id:
            ways.append(f"{self.by_id:,} by id and question")
        if self.by_question:
            ways.append(f"{self.by_question:,} by question")
        words = f"{amount(len(self.first), 'pair')} of answers"
        words += f" ({', '.join(ways)})" if ways else ""
        if self.repeated:
            words += (
                f"; {self.repeated:,} are of questions that stand in a run several times, paired "
                "by model and order"
            )
        if self.only_first or self.only_second:
            words += (
                f"; without a partner: {self.only_first:,} of the first run and "
                f"{self.only_second:,} of the second"
            )
        if self.other_question:
            words += f"; {amount(self.other_question, 'id')} stand for different questions"
        return words

    def to_dict(self) -> dict[str, int]:
        """Return the JSON form: the counts."""
        names = ("by_id", "by_question", "repeated", "other_question", "only_first", "only_second")
        return {"pairs": len(self.first), "questions": self.questions} | {
            name: getattr(self, name) for name in names
        }


def read_keys(folder: RunFolder) -> SampleKeys:
    """Return what the samples of a run are paired by.

    Raises:
        RunFolderError: the samples are missing or damaged.
    """
    found = SampleKeys(array("Q"), array("Q"), array("Q"))  # type: ignore[arg-type]
    if not folder.samples_path.exists():
        raise RunFolderError(f"{folder.samples_path}: is missing; score the input again")
    for number, record in enumerate(folder.sample_records(), 1):
        try:
            question = question_key(record["question"])
            own = (record["id"], question, record.get("model"))
            for column, text in zip(found, own, strict=True):
                column.append(hash64(text) if text else 0)  # type: ignore[attr-defined]
        except (KeyError, TypeError, AttributeError):
            raise folder.bad_sample(number, "has no id or question") from None
    return SampleKeys(*(np.array(column, dtype=np.uint64) for column in found))


def pair(first: SampleKeys, second: SampleKeys) -> Pairing:
    """Pair the samples of two runs.

    Samples of the same id and question are a pair. The others are paired by their question, whose
    case and white space do not count. Where a question stands in a run several times, its answers
    are paired with those of the same model first, then in the order in which they stand.
    """
    _, in_first, in_second = np.intersect1d(first.ids, second.ids, return_indices=True)
    same = first.questions[in_first] == second.questions[in_second]
    pairs = list(zip(in_first[same].tolist(), in_second[same].tolist(), strict=True))
    by_id = len(pairs)
    rest = [
        np.setdiff1d(np.arange(len(keys.ids)), taken)
        for keys, taken in ((first, in_first[same]), (second, in_second[same]))
    ]
    found = list(_by_question(first, second, rest[0], rest[1]))
    several = [
        {question for question, count in Counter(keys.questions.tolist()).items() if count > 1}
        for keys in (first, second)
    ]
    often = several[0] | several[1]
    pairs = sorted(pairs + found)
    places = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    questions = first.questions[places[:, 0]]
    numbers = np.unique(questions, return_inverse=True)[1].astype(np.int64)
    # Samples without a question have nothing in common but that.
    blank = questions == 0
    numbers[blank] = len(pairs) + np.arange(int(blank.sum()))
    units = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    return Pairing(
        places[:, 0],
        places[:, 1],
        units,
        by_id,
        len(found),
        sum(int(first.questions[one]) in often for one, _ in found),
        int((~same).sum()),
        len(first.ids) - len(pairs),
        len(second.ids) - len(pairs),
    )


def _by_question(
    first: SampleKeys, second: SampleKeys, ours: Places, theirs: Places
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of the same question and model, then those of the same question."""
    left = [place for place in ours.tolist() if first.questions[place]]
    taken: set[int] = set()
    for with_model in (True, False):
        waiting: defaultdict[tuple[int, int], deque[int]] = defaultdict(deque)
        for place in theirs.tolist():
            if place not in taken:
                waiting[_key(second, place, with_model)].append(place)
        unpaired = []
        for place in left:
            if queue := waiting.get(_key(first, place, with_model)):
                taken.add(queue[0])
                yield place, queue.popleft()
            else:
                unpaired.append(place)
        left = unpaired


def _key(keys: SampleKeys, place: int, with_model: bool) -> tuple[int, int]:
    return int(keys.questions[place]), int(keys.models[place]) if with_model else 0
