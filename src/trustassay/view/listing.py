"""The answers of a run: their places in its files, and the orders in which pages list them.

The files of a run are read once, in a thread, and read on where they grow. A few numbers of each
answer stay in memory, but no text.
"""

from __future__ import annotations

import json
import os
import threading
from array import array
from collections import OrderedDict
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.core.metric import Assessment
from trustassay.core.outcome import Outcome
from trustassay.core.sample import Sample
from trustassay.errors import RunFolderError
from trustassay.report.answers import MetricColumn
from trustassay.report.review import (
    FAILED,
    NO_VERDICT,
    AnswerPriority,
    ReviewCounts,
    finding_of,
    problem_of,
)
from trustassay.runs.counts import determine_outcome
from trustassay.runs.folder import SAMPLES_REPAIR, RunFolder, load_metrics, read_metric_infos
from trustassay.runs.lines import build_error_at, decode_object, hash64, parse_sample_id, read_line

Places = NDArray[np.int64]
PATIENCE_S = 0.25
"""Seconds that a page waits for answers that are not read yet."""
MAX_LISTINGS = 6
"""The most runs whose answers stay in memory."""
AT_ONCE = 2000
"""Samples that are read before their assessments, in turns."""
UNKNOWN, OTHERS, FAILURE, FLAGGED = range(4)
"""States of an answer under a metric, by rising need for a look: not assessed yet, no problem, the
metric failed, a problem."""
TIE = 1e-9
"""The weight that a verdict's place has among answers that are equally bad."""


@dataclass(frozen=True)
class AnswerQuery:
    """A query for answers of a run: filters and an order."""

    text: str = ""
    """Answers that contain this text, in the question, the response, a passage or the id."""
    verdict: str = ""
    """Answers with this verdict, as ``METRIC=VERDICT``."""
    model: str = ""
    """Answers of this model."""
    look: bool = False
    """Only answers that need a look."""
    order: str = "need"
    """``need``, ``position``, or ``METRIC:up`` or ``METRIC:down`` for the lowest or the highest
    score first."""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> AnswerQuery:
        """Read the query of an address."""
        return cls(
            query.get("q", "").strip(),
            query.get("verdict", ""),
            query.get("model", ""),
            bool(query.get("look")),
            query.get("order", "") or "need",
        )

    def to_fields(self) -> dict[str, Any]:
        """Return the parts of an address, for :func:`~trustassay.view.pages.address`."""
        order = "" if self.order == "need" else self.order
        look = 1 if self.look else ""
        return {"q": self.text, "verdict": self.verdict, "model": self.model} | {
            "look": look,
            "order": order,
        }


@dataclass
class _MetricResults:
    """The results of one metric, by the answer's place in the input."""

    offsets: array[int] = field(default_factory=lambda: array("q"))
    """The byte at which the assessment begins in its file; -1 before it is read."""
    states: array[int] = field(default_factory=lambda: array("b"))
    """One of :data:`UNKNOWN`, ..., :data:`FLAGGED`."""
    badness: array[float] = field(default_factory=lambda: array("d"))
    """How bad the answer is, for the order by need; 0 is good."""
    scores: array[float] = field(default_factory=lambda: array("d"))
    """The score; NaN without one."""
    verdicts: array[int] = field(default_factory=lambda: array("h"))
    """The number of the verdict in ``names``; -1 before it is read."""
    outcomes: array[int] = field(default_factory=lambda: array("h"))
    """The number of the outcome in the listing; -1 before it is read."""
    names: dict[str, int] = field(default_factory=dict)
    """The verdicts that occur, with their numbers."""

    def add_place(self) -> None:
        """Add an answer that is not assessed yet."""
        self.offsets.append(-1)
        self.states.append(UNKNOWN)
        self.badness.append(0.0)
        self.scores.append(np.nan)
        self.verdicts.append(-1)
        self.outcomes.append(-1)


class Listing:
    """The answers of one run, of which ``read`` of ``total`` assessments are read so far."""

    def __init__(self, folder: RunFolder) -> None:
        """Read the settings of the run.

        Raises:
            RunFolderError: they are missing or damaged.
            UnknownNameError: a run of an earlier version, and a metric of it is not installed.
        """
        run = folder.read_run()
        if run is None:
            raise RunFolderError(f"{folder.path}: holds no run (no run.json)")
        self.folder, self.run = folder, run
        self.infos = read_metric_infos(folder, run)
        self.here = load_metrics(run)
        self.columns = {
            name: MetricColumn(place, info.title, info.score_range, self.here.get(name))
            for place, (name, info) in enumerate(self.infos.items())
        }
        self.total = int(run["samples"].get("samples") or 0) * len(self.infos)
        self.read = 0
        self.models: dict[str, int] = {}
        self._samples, self._model_of = array("q"), array("h")
        # Places by hash of the id: a dictionary of the ids themselves would take many times the
        # memory.
        self._by_id: dict[int, int] = {}
        self._results = {name: _MetricResults() for name in self.infos}
        self._ends = {folder.samples_path: 0, folder.assessments_path: 0}
        self._files = {path: _read_inode(path) for path in self._ends}
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._fault: Exception | None = None
        self._ordered: tuple[int, AnswerQuery, Places] | None = None
        self._outcomes: dict[Outcome, int] = {}
        """The outcomes that occur, with their numbers."""

    # reading

    def is_of_now(self) -> bool:
        """Whether the files are still those that were read: not sorted, replaced or cut since.

        False after a fault as well, since a damaged file may have been repaired.
        """
        return self._fault is None and all(
            _read_inode(path) == was and (was is None or path.stat().st_size >= self._ends[path])
            for path, was in self._files.items()
        )

    def wait(self, seconds: float = PATIENCE_S) -> None:
        """Read new lines in a thread; return when all are read or the time is over.

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
        """Read new samples and assessments in turns, until there are no more."""
        try:
            more = True
            while more:
                before, lines = len(self._samples), self._new_lines(self.folder.samples_path)
                for at, line in islice(lines, AT_ONCE):
                    self._add_sample(at, line)
                lines.close()
                more = len(self._samples) > before
                for at, line in self._new_lines(self.folder.assessments_path):
                    # An assessment may be read before its sample, since the files are read in
                    # turns.
                    if not self._add_assessment(at, line):
                        # goes back, so that the next turn begins with this line
                        self._ends[self.folder.assessments_path] = at
                        if not (more or self._samples_grew()):
                            # All samples are read and the file does not grow: the sample is
                            # missing.
                            raise self._missing_sample_error(line)
                        break  # its sample comes later
        except Exception as error:  # raised by the next `wait`, where a page can show it
            self._fault = error

    def _samples_grew(self) -> bool:
        """Whether there is more in the file of samples, as of a run that is being written."""
        path = self.folder.samples_path
        return path.exists() and path.stat().st_size > self._ends[path]

    def _missing_sample_error(self, line: bytes) -> RunFolderError:
        """Return the error about an assessment whose sample is missing."""
        path, missing_id = self.folder.samples_path, parse_sample_id(line)
        problem = "is missing"
        if path.exists():
            problem = f"has no sample {missing_id[:40]!r}, although it has assessments"
        return RunFolderError(f"{path}: {problem}; {SAMPLES_REPAIR}")

    def _new_lines(self, path: Path) -> Generator[tuple[int, bytes]]:
        """Yield the complete lines that were not read yet, with the byte at which each begins."""
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
        """Note a sample that begins at a byte; RunFolderError if the line is damaged."""
        number = len(self._samples)
        try:
            sample = decode_object(line)
            id_hash = hash64(sample["id"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self.folder.build_sample_error(number + 1, f"is not a sample: {error}") from None
        # Parsed outside of the lock, which pages wait for.
        model = str(sample.get("model") or "")
        with self._lock:
            self._samples.append(at)
            self._by_id[id_hash] = number
            self._model_of.append(self.models.setdefault(model, len(self.models)))
            for results in self._results.values():
                results.add_place()

    def _add_assessment(self, at: int, line: bytes) -> bool:
        """Note an assessment; return whether its sample has been read."""
        path = self.folder.assessments_path
        try:
            assessment = Assessment.from_dict(read_line(line).locate_evidence(path, at))
        except (ValueError, KeyError, TypeError):
            raise build_error_at(path, at) from None
        results, place = (
            self._results.get(assessment.metric),
            self._by_id.get(hash64(assessment.id)),
        )
        if results is None:
            raise build_error_at(path, at)
        if place is None:
            return False
        metric = self.here.get(assessment.metric)
        # A metric that is not installed here, or has no line, leaves the decision to `finding_of`.
        flagged = problem_of(metric, assessment) is not None if metric and metric.line else None
        finding = finding_of(self.infos[assessment.metric], assessment, flagged=flagged)
        word = FAILED if assessment.error is not None else assessment.verdict or NO_VERDICT
        failure = finding.kind.level == AnswerPriority.FAILURE
        outcome = determine_outcome(metric, assessment)
        with self._lock:
            # An assessment that was repeated after a crash replaces the first one, and counts once.
            self.read += results.states[place] == UNKNOWN
            results.offsets[place] = at
            results.states[place] = FAILURE if failure else FLAGGED if finding.flagged else OTHERS
            # the place only breaks ties
            results.badness[place] = finding.badness + TIE * finding.place
            results.scores[place] = np.nan if assessment.score is None else assessment.score
            results.verdicts[place] = results.names.setdefault(word, len(results.names))
            results.outcomes[place] = self._outcomes.setdefault(outcome, len(self._outcomes))
        return True

    # queries of pages

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def verdicts(self) -> list[str]:
        """The verdicts that occur, in the form of :attr:`AnswerQuery.verdict`."""
        with self._lock:
            return sorted(
                f"{metric}={word}"
                for metric, results in self._results.items()
                for word in results.names
            )

    @property
    def looked(self) -> ReviewCounts:
        """The numbers of answers that need a look, counted as in the report."""
        lines = any(metric.line for metric in self.here.values())
        with self._lock:
            states = self._stack_states()
            outcomes = list(self._outcomes)
            numbers = np.array(
                [results.outcomes for results in self._results.values()], dtype=np.int64
            )
        result = ReviewCounts(lines)
        # Answers with the same results by all metrics are counted together: there are few kinds.
        kinds = np.zeros(len(self._samples), dtype=np.int64)
        for of_metric in (*states.astype(np.int64), *numbers):
            codes = kinds * (int(of_metric.max(initial=0)) + 2) + of_metric + 1
            kinds = np.unique(codes, return_inverse=True)[1]
        _, places, counts = np.unique(kinds, return_index=True, return_counts=True)
        for place, count in zip(places.tolist(), counts.tolist(), strict=True):
            states_of_kind = states[:, place]
            if states_of_kind.max() == UNKNOWN:
                continue
            result.add(
                [state == FLAGGED for state in states_of_kind.tolist()],
                [outcomes[number] for number in numbers[:, place].tolist() if number >= 0],
                failed=FAILURE in states_of_kind,
                times=count,
            )
        return result

    def _stack_states(self) -> NDArray[np.int8]:
        return np.array([results.states for results in self._results.values()], dtype=np.int8)

    def places(self, query: AnswerQuery) -> Places:
        """Return the places in the input of the answers that match a query, in its order."""
        with self._lock:
            read = self.read + len(self._samples)
            # The next page of the same list, while nothing new was read.
            if self._ordered is not None and self._ordered[:2] == (read, query):
                return self._ordered[2]
            result = self._sort_places(query.order)
            keep = self._filter(query)
        result = result[keep[result]]
        # Last, since it reads the file of samples.
        if query.text:
            holding = self._find_text(query.text)
            result = np.array([place for place in result.tolist() if place in holding], np.int64)
        self._ordered = (read, query, result)
        return result

    def _filter(self, query: AnswerQuery) -> NDArray[np.bool_]:
        """Return which answers match a query, apart from its text."""
        keep = np.ones(len(self._samples), dtype=np.bool_)
        if query.look:
            keep &= self._stack_states().max(axis=0) >= FAILURE
        if query.verdict:
            metric, _, word = query.verdict.partition("=")
            results = self._results.get(metric, _MetricResults())
            number = results.names.get(word)
            # a verdict that does not occur (yet) matches nothing
            keep &= np.array(results.verdicts) == number if number is not None else False
        if query.model:
            keep &= np.array(self._model_of) == self.models.get(query.model, -1)
        return keep

    def _sort_places(self, order: str) -> Places:
        """Return the places of all answers in an order."""
        position = np.arange(len(self._samples))
        metric, _, way = order.rpartition(":")
        if metric in self._results and len(position):
            scores = np.array(self._results[metric].scores)
            return np.lexsort((position, scores if way == "up" else -scores))  # those without last
        if order == "position" or not len(position):
            return position
        states = self._stack_states()
        badness = np.array([results.badness for results in self._results.values()])
        highest = states.max(axis=0)
        # Like show.choice.need_of: among the metrics with the highest state of an answer, the worst
        # one decides its place. lexsort takes the most important key last.
        worst = np.where(states == highest, badness, -1.0).max(axis=0)
        return np.lexsort((position, -worst, -highest))

    def _find_text(self, text: str) -> set[int]:
        """Return the places of the samples that contain a text, ignoring case."""
        plain = text.isascii()
        needle = json.dumps(text)[1:-1].lower().encode() if plain else b""
        result = set()
        with self.folder.samples_path.open("rb") as file:
            for place, line in enumerate(file):
                # Searching the raw line is fast; only lines that may match are parsed.
                if plain and needle not in line.lower():
                    continue
                if any(
                    text.casefold() in part.casefold() for part in _iter_texts(json.loads(line))
                ):
                    result.add(place)
        return result

    def sample(self, place: int) -> Sample:
        """Return the sample at a place."""
        return self.folder.sample_at(self._samples[place])

    def assessments(self, place: int) -> list[Assessment]:
        """Return the assessments of the sample at a place so far, in the order of the metrics."""
        offsets = [results.offsets[place] for results in self._results.values()]
        return [self.folder.assessments_at(at, 1)[0] for at in offsets if at >= 0]

    def place_of(self, sample_id: str) -> int | None:
        """Return the place of a sample; ``None`` if it does not exist or is not read yet."""
        return self._by_id.get(hash64(sample_id))


def _iter_texts(value: Any) -> Iterator[str]:
    """Yield all texts within a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _iter_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _iter_texts(item)


def _read_inode(path: Path) -> int | None:
    """Return the inode of a file, which changes when the file is replaced."""
    try:
        return path.stat().st_ino
    except OSError:
        return None


class ListingCache:
    """A cache of the listings of the runs that were shown last."""

    def __init__(self) -> None:
        self._listings: OrderedDict[Path, Listing] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, folder: RunFolder, seconds: float = PATIENCE_S) -> Listing:
        """Return the listing of a run, after reading for a limited time; reading goes on after
        that.

        Errors are those of :class:`Listing` and :meth:`Listing.wait`.
        """
        with self._lock:
            result = self._listings.pop(folder.path, None)
            if result is None or not result.is_of_now():
                result = Listing(folder)
            self._listings[folder.path] = result
            while len(self._listings) > MAX_LISTINGS:
                self._listings.popitem(last=False)
        # outside of the lock, so that one large run does not keep other pages waiting
        result.wait(seconds)
        return result
