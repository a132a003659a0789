"""A part of an input, drawn at random: of which 2,000 answers, or 1 %, are scored.

A unit (all answers to a question, a conversation) is drawn whole, by the smallest hashes of seed
and unit: the order of the input changes nothing, and by a share a unit stays drawn, or not, when
the input grows. Each unit has the same probability, so that figures need no weights.
"""

import heapq
import json
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import floor
from typing import Any

import numpy as np

from trustassay.data.records import InputError
from trustassay.errors import UsageError
from trustassay.runs.counts import ANSWER, QUESTION, domain_of
from trustassay.runs.lines import hash64
from trustassay.sample import CANONICAL_FIELDS, Sample, question_key

HASHES = 2**64
LARGEST, LARGEST_SHARE = 100, 0.5
"""Answers of one unit, and their share of all that are drawn, of which one may be exceeded."""


def read_size(given: str | int) -> int | float:
    """Return a number of answers (2000), 1 or more, or a share (``"1%"``) as 0 to 1, both excluded.

    Raises:
        UsageError: it is neither.
    """
    text = str(given).strip().replace(",", "")
    try:
        size = float(text[:-1]) / 100 if text.endswith("%") else int(text)
    except ValueError:
        size = 0
    if not size > 0 or (isinstance(size, float) and size >= 1):
        message = "expected a number of answers (2000), or a share below 100% (1%)"
        raise UsageError(f"sample: {message}, got {given!r}")
    return size


class Drawing:
    """Which of the samples are drawn that are given to :meth:`takes`, one after the other.

    Of a number of answers the units with the smallest hashes are kept that hold so many together,
    so a later sample can displace an earlier one; a share is a bound for the hashes. With strata
    all samples are given to :meth:`count` before.

    Args:
        size: as :func:`read_size` returns it. by: fields whose values part the samples into strata.
        unit: as of :func:`~trustassay.runs.counts.read_units`; but of answers to one question with
            documents only those with the same ones are drawn together.
    """

    def __init__(
        self, size: int | float, by: Sequence[str] = (), unit: str | None = None, seed: int = 0
    ) -> None:
        self.by, self._size, self._unit, self._seed = by, size, unit, seed
        self._of = self._held = 0
        self._bound = HASHES if by or isinstance(size, int) else int(size * HASHES)
        self._counted: dict[str, array[int]] = {}
        self._bounds: dict[str, int] = {}
        self._keys = array("Q")
        self._sizes: Counter[int] = Counter()
        self._heap: list[int] = []

    def _key(self, sample: Sample) -> int:
        """Return the hash of the seed and the sample's unit."""
        if self._unit == ANSWER:
            unit = sample.id
        elif self._unit in (None, QUESTION):
            texts = sorted(one.text or "" for one in sample.documents or ())
            unit = "\x1f".join([question_key(sample.question), *texts])
        else:
            value = _value(sample, str(self._unit))
            alone = value in (None, "", [])
            unit = f"alone:{sample.id}" if alone else json.dumps(value, sort_keys=True, default=str)
        return hash64("drawn", str(self._seed), unit)

    def _stratum(self, sample: Sample) -> str:
        return json.dumps([_value(sample, name) for name in self.by], sort_keys=True, default=str)

    def count(self, sample: Sample) -> None:
        """Count a sample for its stratum."""
        self._counted.setdefault(self._stratum(sample), array("Q")).append(self._key(sample))

    def settle(self) -> None:
        """Give each stratum the same share of its units, by the samples that were counted.

        The numbers are those of a systematic draw through all strata from a random start (Madow
        1949): in each the share, up to less than one unit, and the same probability for each unit.

        Raises:
            InputError: no sample has one of the fields.
        """
        names = sorted(self._counted)
        for place, name in enumerate(self.by):
            if all(json.loads(one)[place] is None for one in names):
                raise InputError(f"sample_by: no sample has the field {name!r}")
        units = [np.unique(np.array(self._counted[name], dtype=np.uint64)) for name in names]
        answers = sum(map(len, self._counted.values()))
        share = self._size if isinstance(self._size, float) else min(1, self._size / answers)
        start = hash64("start", str(self._seed)) / HASHES
        ends = [floor(share * end + start) for end in accumulate(map(len, units))]
        for name, keys, low, high in zip(names, units, [0, *ends], ends, strict=False):
            self._bounds[name] = int(keys[high - low]) if high - low < len(keys) else HASHES
        self._counted.clear()

    def takes(self, sample: Sample) -> bool:
        """Return whether a sample is drawn, as far as is known by now."""
        self._of += 1
        key = self._key(sample)
        bound = self._bounds[self._stratum(sample)] if self.by else self._bound
        if key >= bound:
            return False
        if not self.by and isinstance(self._size, int):
            if key not in self._sizes:
                heapq.heappush(self._heap, -key)
            self._sizes[key] += 1
            self._held += 1
            while self._held - self._sizes[-self._heap[0]] >= self._size:
                self._bound = -heapq.heappop(self._heap)
                self._held -= self._sizes.pop(self._bound)
        if key < self._bound:
            self._keys.append(key)
        return key < self._bound

    def kept(self) -> Iterator[bool]:
        """Return, for each sample that was taken, whether it is drawn, now that all are known.

        Raises:
            InputError: none is drawn, or too many are of one unit.
        """
        sizes = Counter(key for key in self._keys if key < self._bound)
        if self._of and not sizes:
            raise InputError(f"sample: none of {self._of:,} answers was drawn; draw more")
        largest, total = max(sizes.values(), default=0), sizes.total()
        if largest > max(LARGEST, LARGEST_SHARE * total):
            raise InputError(
                f"sample: {largest:,} of {total:,} drawn answers belong to one "
                f"{self._unit or QUESTION} and are drawn together; --unit {ANSWER} draws each by "
                "itself, --unit FIELD those with the same value of a field"
            )
        self.units, self._drawn = len(sizes), total
        return (key < self._bound for key in self._keys)

    def told(self) -> dict[str, Any]:
        """Return what ``run.json`` and ``summary.json`` say, once :meth:`kept` is known."""
        size = self._size if isinstance(self._size, int) else f"{100 * self._size:g}%"
        strata = {"by": list(self.by), "strata": len(self._bounds)} if self.by else {}
        counts = {"answers": self._drawn, "of": self._of, "units": self.units}
        return {**counts, "sample": size, **strata, "seed": self._seed}


def _value(sample: Sample, name: str) -> Any:
    """Return the value of a field; what is kept as metadata is found without the rest."""
    own = name.partition(".")[0] in CANONICAL_FIELDS
    return (
        sample.model
        if name == "model"
        else domain_of(sample.to_dict() if own else sample.metadata, name)
    )
