"""Draw a part of an input at random, such as 2,000 answers or 1 %.

1. Each unit (all answers to a question, a conversation) gets a hash of the seed and the unit.
2. The units with the smallest hashes are drawn, each with all its answers.

So the order of the input changes nothing. With a share, a unit stays drawn, or not drawn, when the
input grows. All units have the same probability, so that figures need no weights.
"""

import json
from array import array
from contextlib import suppress
from functools import partial
from itertools import accumulate
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.core.sample import Sample, question_key
from trustassay.errors import UsageError
from trustassay.input.records import InputError
from trustassay.runs.lines import hash64
from trustassay.runs.units import ANSWER, QUESTION, read_domain, read_unit
from trustassay.statistics import Bools

HASH_COUNT = 2**64
"""The number of different hashes."""
_to_text = partial(json.dumps, sort_keys=True, default=str)
MAX_UNIT_ANSWERS = 100
"""Answers of one unit that may always be drawn, even if they are more than half of all."""


def read_size(size_text: str | int) -> int | float:
    """Read the size of a sample: a number of answers, 1 or more, or a share in (0, 1).

    Raises:
        UsageError: it is neither.
    """
    # "2,000" and "1 %" are common ways to write a size.
    text = str(size_text).strip().replace(",", "")
    with suppress(ValueError):
        size = float(text[:-1]) / 100 if text.endswith("%") else int(text)
        # 100 % is no draw, and 250 % a mistake.
        if size > 0 and (size < 1 or not text.endswith("%")):
            return size
    message = "expected a number of answers (2000) or a share below 100% (1%)"
    raise UsageError(f"sample: {message}, got {size_text!r}")


class SampleDraw:
    """A random draw from a stream of samples.

    Each sample is passed to :meth:`may_draw`; afterwards :meth:`select` says which are drawn. 8
    bytes are held of each sample that may be drawn, 16 with strata. Units are those of
    :func:`~trustassay.runs.units.read_units`, except that answers to one question with documents
    belong together only if the documents are the same.

    Args:
        by: fields of strata, separated by commas.
    """

    def __init__(self, size: str | int, by: str = "", unit: str | None = None, seed: int = 0):
        self._by = [name.strip() for name in by.split(",") if name.strip()]
        self._size, self._unit, self._seed = read_size(size), unit, str(seed)
        self.settings: dict[str, Any] = {"sample": str(size), "seed": seed}
        # A share draws the hashes below a fixed bound. For a number the bound is lowered as samples
        # come; with strata it is known only at the end.
        self._bound = HASH_COUNT if self._by or self._size >= 1 else int(self._size * HASH_COUNT)
        self._of, self._next_update = 0, 2 * self._size
        self._keys, self._strata = array("Q"), array("Q")
        self._names: dict[str, int] = {}

    def _hash_unit(self, sample: Sample) -> int:
        unit = sample.id
        if self._unit in (None, QUESTION):
            # Which answers share a document through others is not known before all are read.
            texts = sorted(document.text or "" for document in sample.documents or ())
            unit = _to_text([question_key(sample.question), *texts])
        elif self._unit != ANSWER:
            value = read_unit(sample.to_dict(), str(self._unit))
            # A sample without the field is a unit by itself.
            unit = _to_text([sample.id] if value is None else value)
        return hash64("drawn", self._seed, unit)

    def may_draw(self, sample: Sample) -> bool:
        """Return whether a sample may be drawn, by the samples seen so far."""
        self._of += 1
        if (key := self._hash_unit(sample)) >= self._bound:
            return False
        self._keys.append(key)
        if self._by:
            record = sample.to_dict()
            values = _to_text([read_domain(record, name) for name in self._by])
            self._strata.append(self._names.setdefault(values, len(self._names)))
        elif self._size >= 1 and len(self._keys) >= self._next_update:
            # Each time that the candidates have grown by the wanted number, the bound is lowered.
            self._bound, self._next_update = self._find_bound(), len(self._keys) + self._size
        return True

    def _find_bound(self) -> int:
        """Return the hash from which on no unit is drawn.

        The units below it have at least as many answers as wanted; without the last of these units
        they would have fewer.
        """
        units, sizes = np.unique(np.array(self._keys, dtype=np.uint64), return_counts=True)
        last = int(np.searchsorted(sizes.cumsum(), self._size))
        return int(units[last + 1]) if last + 1 < len(units) else HASH_COUNT

    def select(self) -> Bools:
        """Return for each sample that :meth:`may_draw` accepted whether it is drawn.

        Raises:
            InputError: none is drawn, one unit has too many of the drawn answers, or no sample has
                a field of the strata.
        """
        keys = np.array(self._keys, dtype=np.uint64)
        # Samples that came before the bound was lowered are tested again.
        is_drawn = keys < (HASH_COUNT if self._by or self._size < 1 else self._find_bound())
        if self._by:
            self._draw_strata(keys, is_drawn)
        units, sizes = np.unique(keys[is_drawn], return_counts=True)
        total, largest = int(is_drawn.sum()), int(sizes.max(initial=0))
        if self._of and not total:
            raise InputError(f"sample: none of {self._of:,} answers was drawn; ask for more")
        # Such a draw is one prompt of a whole log: its figures would be about one unit (decision
        # 162).
        if largest > max(MAX_UNIT_ANSWERS, total / 2):
            unit = f"{largest:,} of {total:,} drawn answers share one {self._unit or QUESTION}"
            repair = f"use --unit {ANSWER} to draw single answers, or --unit FIELD for other units"
            raise InputError(f"sample: {unit}, and are drawn together; {repair}")
        self.settings |= {"answers": total, "of": self._of, "units": len(units)}
        return is_drawn

    def _draw_strata(self, keys: NDArray[np.uint64], is_drawn: Bools) -> None:
        """Draw the same share of the units of each stratum, in place, up to less than one unit.

        The number of units of each stratum is that of a systematic draw through all strata from a
        random start (Madow 1949): a stratum of less than one unit is drawn by chance.
        """
        # Sorted, since the order of the input must not change the draw.
        names = sorted(self._names)
        for place, field in enumerate(self._by):
            if names and all(json.loads(name)[place] is None for name in names):
                raise InputError(f"sample_by: no sample has the field {field!r}")
        strata = np.array(self._strata, dtype=np.int64)
        units = [np.unique(keys[strata == self._names[name]]) for name in names]
        share = self._size if self._size < 1 else min(1, self._size / len(keys))
        start = hash64("start", self._seed) / HASH_COUNT
        # Cumulated units times the share, shifted by the start: the integers passed are units to
        # draw.
        stops = [floor(share * end + start) for end in accumulate(map(len, units))]
        for name, units_of_stratum, low, high in zip(
            names, units, [0, *stops], stops, strict=False
        ):
            if high - low < len(units_of_stratum):
                is_drawn &= (strata != self._names[name]) | (keys < units_of_stratum[high - low])
        self.settings |= {"by": self._by, "strata": len(names)}
