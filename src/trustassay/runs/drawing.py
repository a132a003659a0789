"""A part of an input, drawn at random: of which 2,000 answers, or 1 %, are scored.

A unit (all answers to a question, a conversation) is drawn whole, by the smallest hashes of seed
and unit: the order of the input changes nothing, and by a share a unit stays drawn, or not, when
the input grows. Each unit has the same probability, so that figures need no weights.
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

from trustassay.data.records import InputError
from trustassay.errors import UsageError
from trustassay.runs.counts import ANSWER, QUESTION, domain_of
from trustassay.runs.lines import hash64
from trustassay.sample import Sample, question_key
from trustassay.statistics import Bools

HASHES = 2**64
_text = partial(json.dumps, sort_keys=True, default=str)
LARGEST = 100
"""Answers of one unit that may be drawn, also if they are more than half of all."""


def read_size(given: str | int) -> int | float:
    """Return a number of answers, 1 or more, or a share, in (0, 1); UsageError: it is neither."""
    text = str(given).strip().replace(",", "")
    with suppress(ValueError):
        size = float(text[:-1]) / 100 if text.endswith("%") else int(text)
        if size > 0 and (size < 1 or not text.endswith("%")):
            return size
    message = "expected a number of answers (2000), or a share below 100% (1%)"
    raise UsageError(f"sample: {message}, got {given!r}")


class Drawing:
    """Which of the samples are drawn that are given to :meth:`takes`, one after the other.

    Units are those of :func:`~trustassay.runs.counts.read_units`; but answers to one question with
    documents are together if these are the same. ``by`` are fields of strata, with commas. Of what
    is taken, 8 bytes are held, 16 with strata. told: of :meth:`kept`, for ``run.json``.
    """

    def __init__(self, size: str | int, by: str = "", unit: str | None = None, seed: int = 0):
        self._by = [name.strip() for name in by.split(",") if name.strip()]
        self._size, self._unit, self._seed = read_size(size), unit, str(seed)
        self.told: dict[str, Any] = {"sample": str(size), "seed": seed}
        self._bound = HASHES if self._by or self._size >= 1 else int(self._size * HASHES)
        self._of, self._next = 0, 2 * self._size
        self._keys, self._strata = array("Q"), array("Q")
        self._names: dict[str, int] = {}

    def _key(self, sample: Sample) -> int:
        unit = sample.id
        if self._unit in (None, QUESTION):
            texts = sorted(one.text or "" for one in sample.documents or ())
            unit = _text([question_key(sample.question), *texts])
        elif self._unit != ANSWER:
            value = domain_of(sample.to_dict(), str(self._unit))
            unit = _text([sample.id] if value in (None, "", []) else value)
        return hash64("drawn", self._seed, unit)

    def takes(self, sample: Sample) -> bool:
        """Return whether a sample may be drawn, as far as is known by now."""
        self._of += 1
        if (key := self._key(sample)) >= self._bound:
            return False
        self._keys.append(key)
        if self._by:
            record = sample.to_dict()
            values = _text([domain_of(record, name) for name in self._by])
            self._strata.append(self._names.setdefault(values, len(self._names)))
        elif self._size >= 1 and len(self._keys) >= self._next:
            self._bound, self._next = self._limit(), len(self._keys) + self._size
        return True

    def _limit(self) -> int:
        """Return above which hash no unit is drawn: those below hold as many answers as wanted."""
        units, sizes = np.unique(np.array(self._keys, dtype=np.uint64), return_counts=True)
        last = int(np.searchsorted(sizes.cumsum(), self._size))
        return int(units[last + 1]) if last + 1 < len(units) else HASHES

    def kept(self) -> Bools:
        """Return, for each sample that was taken, whether it is drawn, now that all are known.

        Raises:
            InputError: none is drawn, too many are of one unit, or no sample has a field of strata.
        """
        keys = np.array(self._keys, dtype=np.uint64)
        drawn = keys < (HASHES if self._by or self._size < 1 else self._limit())
        if self._by:
            self._draw_strata(keys, drawn)
        units, sizes = np.unique(keys[drawn], return_counts=True)
        total, largest = int(drawn.sum()), int(sizes.max(initial=0))
        if self._of and not total:
            raise InputError(f"sample: none of {self._of:,} answers was drawn; draw more")
        if largest > max(LARGEST, total / 2):
            unit = f"{largest:,} of {total:,} drawn answers belong to one {self._unit or QUESTION}"
            repair = f"--unit {ANSWER} draws each by itself, --unit FIELD those of equal fields"
            raise InputError(f"sample: {unit} and are drawn together; {repair}")
        self.told |= {"answers": total, "of": self._of, "units": len(units)}
        return drawn

    def _draw_strata(self, keys: NDArray[np.uint64], drawn: Bools) -> None:
        """Draw the same share of the units of each stratum, up to less than one unit: numbers are
        those of a systematic draw through all strata from a random start (Madow 1949).
        """
        names = sorted(self._names)
        for place, field in enumerate(self._by):
            if names and all(json.loads(name)[place] is None for name in names):
                raise InputError(f"sample_by: no sample has the field {field!r}")
        strata = np.array(self._strata, dtype=np.int64)
        units = [np.unique(keys[strata == self._names[name]]) for name in names]
        share = self._size if self._size < 1 else min(1, self._size / len(keys))
        start = hash64("start", self._seed) / HASHES
        stops = [floor(share * end + start) for end in accumulate(map(len, units))]
        for name, own, low, high in zip(names, units, [0, *stops], stops, strict=False):
            if high - low < len(own):
                drawn &= (strata != self._names[name]) | (keys < own[high - low])
        self.told |= {"by": self._by, "strata": len(names)}
