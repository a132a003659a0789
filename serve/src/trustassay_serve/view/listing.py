"""The answers of a run: where each stands on disk, and in which order they need a look.

A run's files are read once, in a thread, and further where they grow; of an answer some numbers
are kept, no text.
"""

from __future__ import annotations

import json
import os
import threading
from array import array
from collections import Counter, OrderedDict
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.core.outcome import Outcome
from trustassay.errors import RunFolderError
from trustassay.metric import Assessment
from trustassay.runs.folder import SAMPLES_REPAIR, RunFolder, metric_infos, metrics_of
from trustassay.runs.lines import damaged_at, decoded, hash64, read_line, sample_id
from trustassay.runs.outcomes import outcome_of
from trustassay.sample import Sample
from trustassay.show.answers import Column
from trustassay.show.choice import FAILED, NO_VERDICT, Level, finding_of
from trustassay.show.first_card import Looked, problem_of

Places = NDArray[np.int64]
PATIENCE_S = 0.25
"""Seconds that a page waits for what is not read yet."""
KEPT = 6
"""Runs whose answers are kept."""
AT_ONCE = 2000
"""Samples that are read before what was found of them."""
UNKNOWN, OTHERS, FAILURE, FLAGGED = range(4)
"""What a metric found of an answer: nothing yet, nothing to look at, that it failed, a problem."""
TIE = 1e-9
"""The weight of a verdict's place between answers that are equally bad."""


@dataclass(frozen=True)
class Asked:
    """Which answers are asked for, and in which order.

    text: is in the question, the response, a passage or the id. verdict: ``METRIC=VERDICT``. look:
    those alone that need a look. order: ``need``, ``position``, or ``METRIC:up`` or
    ``METRIC:down`` for the lowest or the highest score first.
    """

    text: str = ""
    verdict: str = ""
    model: str = ""
    look: bool = False
    order: str = "need"

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Asked:
        """Read what an address asks for."""
        return cls(
            query.get("q", "").strip(),
            query.get("verdict", ""),
            query.get("model", ""),
            bool(query.get("look")),
            query.get("order", "") or "need",
        )

    def query(self) -> dict[str, Any]:
        """Return what an address asks for, for :func:`~trustassay_serve.view.pages.address`."""
        order = "" if self.order == "need" else self.order
        look = 1 if self.look else ""
        return {"q": self.text, "verdict": self.verdict, "model": self.model} | {
            "look": look,
            "order": order,
        }


@dataclass
class _Found:
    """What one metric found of each answer, by the answer's place in the input."""

    offsets: array[int] = field(default_factory=lambda: array("q"))
    states: array[int] = field(default_factory=lambda: array("b"))
    badness: array[float] = field(default_factory=lambda: array("d"))
    scores: array[float] = field(default_factory=lambda: array("d"))
    verdicts: array[int] = field(default_factory=lambda: array("h"))
    outcomes: array[int] = field(default_factory=lambda: array("h"))
    """The number of each answer's outcome; -1 where nothing is known yet."""
    names: dict[str, int] = field(default_factory=dict)
    """The numbers of the verdicts that occur."""

    def add_place(self) -> None:
        self.offsets.append(-1)
        self.states.append(UNKNOWN)
        self.badness.append(0.0)
        self.scores.append(np.nan)
        self.verdicts.append(-1)
        self.outcomes.append(-1)


class Listing:
    """The answers of one run. ``read`` of ``total`` assessments are known; models: by number."""

    def __init__(self, folder: RunFolder) -> None:
        """Read the run's settings.

        Raises:
            RunFolderError: they are missing or damaged.
            UnknownNameError: a run of an earlier version, and a metric of it is not installed.
        """
        run = folder.read_run()
        if run is None:
            raise RunFolderError(f"{folder.path}: holds no run")
        self.folder, self.run = folder, run
        self.infos = metric_infos(folder, run)
        self.here = metrics_of(run)
        self.columns = {
            name: Column(place, info.title, info.score_range, self.here.get(name))
            for place, (name, info) in enumerate(self.infos.items())
        }
        self.total = int(run["samples"].get("samples") or 0) * len(self.infos)
        self.read = 0
        self.models: dict[str, int] = {}
        self._samples, self._model_of = array("q"), array("h")
        self._by_id: dict[int, int] = {}
        self._found = {name: _Found() for name in self.infos}
        self._ends = {folder.samples_path: 0, folder.assessments_path: 0}
        self._files = {path: _inode(path) for path in self._ends}
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._fault: Exception | None = None
        self._ordered: tuple[int, Asked, Places] | None = None
        self._outcomes: dict[Outcome, int] = {}
        """The numbers of the outcomes that occur."""

    # reading

    def is_of_now(self) -> bool:
        """Whether the files are those that were read: not sorted, replaced or cut since. What was
        damaged may have been repaired.
        """
        return self._fault is None and all(
            _inode(path) == was and (was is None or path.stat().st_size >= self._ends[path])
            for path, was in self._files.items()
        )

    def wait(self, seconds: float = PATIENCE_S) -> None:
        """Read what is new, in a thread; return when it is read or the time is over.

        Raises:
            RunFolderError: a line is damaged.
        """
        with self._lock:  # two pages at once read it once
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._advance, daemon=True)
                self._thread.start()
        self._thread.join(seconds)
        if self._fault is not None:
            raise self._fault

    def _advance(self) -> None:
        try:
            more = True
            while more:
                before, lines = len(self._samples), self._new_lines(self.folder.samples_path)
                for at, line in islice(lines, AT_ONCE):
                    self._add_sample(at, line)
                lines.close()
                more = len(self._samples) > before
                for at, line in self._new_lines(self.folder.assessments_path):
                    if not self._add_assessment(at, line):
                        self._ends[self.folder.assessments_path] = at
                        if not (more or self._samples_grew()):
                            raise self._without_sample(line)
                        break  # its sample comes later
        except Exception as error:  # told to who asks next, where there is a page to tell it
            self._fault = error

    def _samples_grew(self) -> bool:
        """Whether there is more in the file of samples, as of a run that is being written."""
        path = self.folder.samples_path
        return path.exists() and path.stat().st_size > self._ends[path]

    def _without_sample(self, line: bytes) -> RunFolderError:
        path, own = self.folder.samples_path, sample_id(line)
        why = f"has no sample {own[:40]!r}" if path.exists() else "is missing"
        return RunFolderError(f"{path}: {why}, which has assessments; {SAMPLES_REPAIR}")

    def _new_lines(self, path: Path) -> Generator[tuple[int, bytes]]:
        """Yield the whole lines that were not read, each with the byte at which it begins."""
        if not path.exists():
            return
        with path.open("rb") as file:
            self._files[path] = os.fstat(file.fileno()).st_ino
            at = file.seek(self._ends[path])
            for line in file:
                if not line.endswith(b"\n"):
                    return  # it is being written
                self._ends[path] = at + len(line)
                yield at, line
                at += len(line)

    def _add_sample(self, at: int, line: bytes) -> None:
        number = len(self._samples)
        try:
            sample = decoded(line)
            own = hash64(sample["id"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self.folder.bad_sample(number + 1, f"is not a sample: {error}") from None
        model = str(sample.get("model") or "")
        with self._lock:
            self._samples.append(at)
            self._by_id[own] = number
            self._model_of.append(self.models.setdefault(model, len(self.models)))
            for found in self._found.values():
                found.add_place()

    def _add_assessment(self, at: int, line: bytes) -> bool:
        """Note what a metric found; return whether the sample is known."""
        path = self.folder.assessments_path
        try:
            one = Assessment.from_dict(read_line(line).located(path, at))
        except (ValueError, KeyError, TypeError):
            raise damaged_at(path, at) from None
        found, place = self._found.get(one.metric), self._by_id.get(hash64(one.id))
        if found is None:
            raise damaged_at(path, at)
        if place is None:
            return False
        metric = self.here.get(one.metric)
        flagged = problem_of(metric, one) is not None if metric and metric.line else None
        told = finding_of(self.infos[one.metric], one, flagged=flagged)
        word = FAILED if one.error is not None else one.verdict or NO_VERDICT
        failure = told.kind.level == Level.FAILURE
        outcome = outcome_of(metric, one)
        with self._lock:
            self.read += found.states[place] == UNKNOWN
            found.offsets[place] = at
            found.states[place] = FAILURE if failure else FLAGGED if told.flagged else OTHERS
            found.badness[place] = told.badness + TIE * told.place
            found.scores[place] = np.nan if one.score is None else one.score
            found.verdicts[place] = found.names.setdefault(word, len(found.names))
            found.outcomes[place] = self._outcomes.setdefault(outcome, len(self._outcomes))
        return True

    # what a page asks

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def verdicts(self) -> list[str]:
        """The verdicts that occur, as :attr:`Asked.verdict` names them."""
        with self._lock:
            return sorted(
                f"{metric}={word}" for metric, one in self._found.items() for word in one.names
            )

    @property
    def looked(self) -> Looked:
        """How many of the answers that were read need a look, counted as in the report."""
        lines = any(metric.line for metric in self.here.values())
        with self._lock:
            states = self._states()
            outcomes = list(self._outcomes)
            numbers = np.array([one.outcomes for one in self._found.values()], dtype=np.int64)
        known = states.max(axis=0) != UNKNOWN
        flagged = states.max(axis=0) >= FAILURE
        # The last value is for the number -1, an answer of which nothing is known yet.
        is_judged = np.array([*(outcome.is_judged for outcome in outcomes), False])
        judged = is_judged[numbers].any(axis=0)
        reasons: Counter[str] = Counter()
        if not judged.any():  # the sentence gives reasons only then
            reasons.update(outcomes[number].reason for number in numbers[0] if number >= 0)
        return Looked(
            lines,
            answers=int(known.sum()),
            flagged=int(flagged.sum()),
            failed=int((states == FAILURE).any(axis=0).sum()),
            judged=int(judged.sum()),
            not_judged=int((known & ~judged & ~flagged).sum()),
            reasons=reasons,
        )

    def _states(self) -> NDArray[np.int8]:
        return np.array([one.states for one in self._found.values()], dtype=np.int8)

    def places(self, asked: Asked) -> Places:
        """Return the places in the input of the answers that are asked for, in that order."""
        with self._lock:
            read = self.read + len(self._samples)
            if self._ordered is not None and self._ordered[:2] == (read, asked):
                return self._ordered[2]
            result = self._sorted(asked.order)
            keep = self._kept(asked)
        result = result[keep[result]]
        if asked.text:
            holding = self._holding(asked.text)
            result = np.array([place for place in result.tolist() if place in holding], np.int64)
        self._ordered = (read, asked, result)
        return result

    def _kept(self, asked: Asked) -> NDArray[np.bool_]:
        keep = np.ones(len(self._samples), dtype=np.bool_)
        if asked.look:
            keep &= (
                np.max([np.array(one.states) for one in self._found.values()], axis=0) >= FAILURE
            )
        if asked.verdict:
            metric, _, word = asked.verdict.partition("=")
            found = self._found.get(metric, _Found())
            number = found.names.get(word)
            keep &= np.array(found.verdicts) == number if number is not None else False
        if asked.model:
            keep &= np.array(self._model_of) == self.models.get(asked.model, -1)
        return keep

    def _sorted(self, order: str) -> Places:
        position = np.arange(len(self._samples))
        metric, _, way = order.rpartition(":")
        if metric in self._found and len(position):
            scores = np.array(self._found[metric].scores)
            return np.lexsort((position, scores if way == "up" else -scores))  # those without last
        if order == "position" or not len(position):
            return position
        states = self._states()
        badness = np.array([one.badness for one in self._found.values()])
        highest = states.max(axis=0)
        # As show.choice.need_of: of what counts highest for an answer the worst says where it is.
        worst = np.where(states == highest, badness, -1.0).max(axis=0)
        return np.lexsort((position, -worst, -highest))

    def _holding(self, text: str) -> set[int]:
        """Return the places of the samples that hold a text, in any case."""
        plain = text.isascii()
        needle = json.dumps(text)[1:-1].lower().encode() if plain else b""
        result = set()
        with self.folder.samples_path.open("rb") as file:
            for place, line in enumerate(file):
                if plain and needle not in line.lower():
                    continue
                if any(text.casefold() in one.casefold() for one in _texts(json.loads(line))):
                    result.add(place)
        return result

    def sample(self, place: int) -> Sample:
        """Return the sample at a place."""
        return self.folder.sample_at(self._samples[place])

    def assessments(self, place: int) -> list[Assessment]:
        """Return what the metrics said of it so far, in their order."""
        offsets = [one.offsets[place] for one in self._found.values()]
        return [self.folder.assessments_at(at, 1)[0] for at in offsets if at >= 0]

    def place_of(self, sample_id: str) -> int | None:
        """Return the place of a sample; ``None`` if there is none, or it was not read yet."""
        return self._by_id.get(hash64(sample_id))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


class Listings:
    """The runs that were looked at last, with what was read of them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Path, Listing] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, folder: RunFolder, seconds: float = PATIENCE_S) -> Listing:
        """Return the answers of a run as far as they can be read in this time; the rest is read
        meanwhile. Errors as of :class:`Listing` and :meth:`Listing.wait`.
        """
        with self._lock:
            result = self._kept.pop(folder.path, None)
            if result is None or not result.is_of_now():
                result = Listing(folder)
            self._kept[folder.path] = result
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        result.wait(seconds)
        return result
