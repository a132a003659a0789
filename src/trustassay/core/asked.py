"""Who was asked and did not answer: the outcomes of requests, by role and name.

1. Each assessment, and each sample that was filled, holds the outcomes of its own requests, so that
   they survive a resumed, merged or rescored run.
2. :class:`AskedTotals` adds them up over a run.
3. :class:`AskedModel` is one row of the result, for terminal, summary and pages.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

Asked = Mapping[str, Mapping[str, Mapping[str, int]]]
"""Number of requests by role, name and outcome. Outcomes are :data:`ANSWERED`, and the kinds of
failure in :data:`FAILURE_KINDS`."""
ASKED_FIELD = "asked_models"
"""Field of a sample: the outcomes of the requests that filled it."""
ANSWERED = "answered"
"""The outcome of a request whose reply could be used."""
UNREADABLE = "unparsed"
"""The outcome of a request that was answered by a reply that could not be read."""
OTHER_FAILURE = "error"
"""The outcome of a request that failed in a way that has no name."""
FAILURE_KINDS = {
    "refused": "refused by endpoint or filter",
    "limited": "rate limit",
    "timeout": "no reply in time",
    "connection": "unreachable",
    "closed": "rejects all requests",
    "server": "server error",
    "malformed": "bad reply",
    "oversized": "reply too large",
    "empty": "empty reply",
    UNREADABLE: "unreadable reply",
    OTHER_FAILURE: "other failure",
}
"""What the kinds of failure are called; most are those of
:class:`~trustassay.errors.CallError`."""


def describe_kinds(kinds: Mapping[str, int]) -> str:
    """Return counts by kind of failure in a phrase, the most frequent first: ``timeout: 3``."""
    ordered = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{FAILURE_KINDS.get(kind, kind)}: {count:,}" for kind, count in ordered)


def read_asked(raw: object) -> dict[str, dict[str, dict[str, int]]]:
    """Return outcomes from their JSON form; what has another shape is left out.

    The field may come from a file of the user, in which anything may have its name.
    """
    result: dict[str, dict[str, dict[str, int]]] = {}
    for role, name, kinds in _iterate(raw):
        numbers = {
            str(kind): number
            for kind, number in kinds.items()
            if isinstance(number, int) and not isinstance(number, bool) and number > 0
        }
        if numbers:
            result.setdefault(role, {})[name] = numbers
    return result


def _iterate(raw: object) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield role, name and outcomes."""
    for role, names in raw.items() if isinstance(raw, Mapping) else ():
        for name, kinds in names.items() if isinstance(names, Mapping) else ():
            if isinstance(kinds, Mapping):
                yield str(role), str(name), kinds


def count_failures_once(asked: Asked) -> dict[str, dict[str, dict[str, int]]]:
    """Return the outcomes of a sample that failed: each kind of failure counts once.

    How many requests had ended before the sample failed depends on concurrent work, and a run has
    the same results whatever that is.
    """
    result: dict[str, dict[str, dict[str, int]]] = {}
    for role, name, kinds in _iterate(asked):
        if failures := dict.fromkeys(sorted(kinds.keys() - {ANSWERED}), 1):
            result.setdefault(role, {})[name] = failures
    return result


def replace_asked(earlier: object, later: Asked) -> dict[str, dict[str, dict[str, int]]]:
    """Return outcomes in which those of ``later`` replace those of the same role and name."""
    result = read_asked(earlier)
    for role, name, kinds in _iterate(later):
        result.setdefault(role, {})[name] = dict(kinds)
    return result


@dataclass(frozen=True)
class AskedModel:
    """A row: one model, or another source, in one role of a run."""

    role: str
    """Its role, as in ``run.json``: ``references``, ``judge``, ``entailer``, ..."""
    name: str
    """Its name among several of a role, else that of the backend."""
    backend: str
    """The name of the backend."""
    answered: int
    """Requests with a reply that could be used, also those found among stored calls."""
    missing: Mapping[str, int]
    """The other requests by kind of failure."""
    samples: int
    """Samples for which at least one request brought no usable reply."""
    at_least: bool = False
    """Whether the counts of requests are lower bounds: of a sample that failed, each kind of
    failure counts once (:func:`count_failures_once`)."""

    @property
    def unanswered(self) -> int:
        """Requests without a reply that could be used."""
        return sum(self.missing.values())

    @property
    def asked(self) -> int:
        """Requests that ended; those that were cancelled do not count."""
        return self.answered + self.unanswered

    @property
    def kinds(self) -> str:
        """The missing replies by kind, in a phrase; without their numbers if these are unknown."""
        if self.at_least:
            return ", ".join(FAILURE_KINDS.get(kind, kind) for kind in sorted(self.missing))
        return describe_kinds(self.missing)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, without role and name; ``at_least`` only if it is so."""
        result = {
            "backend": self.backend,
            "asked": self.asked,
            "answered": self.answered,
            "unanswered": self.unanswered,
            "samples": self.samples,
            "missing": dict(sorted(self.missing.items())),
        }
        return {**result, "at_least": True} if self.at_least else result

    @classmethod
    def from_dict(cls, role: str, name: str, raw: Mapping[str, Any]) -> Self:
        """Return the row from the output of :meth:`to_dict`."""
        counts = raw["answered"], raw["missing"], raw["samples"]
        return cls(role, name, raw["backend"], *counts, raw.get("at_least", False))


class AskedTotals:
    """Adds up outcomes over the samples of a run."""

    def __init__(self) -> None:
        self._outcomes: dict[tuple[str, str], Counter[str]] = {}
        self._samples: Counter[tuple[str, str]] = Counter()
        self._at_least: set[tuple[str, str]] = set()

    def add(
        self, outcomes: Iterable[Asked], failed: Iterable[Asked] = (), *, of_all: int = 0
    ) -> None:
        """Add the outcomes that belong to one sample, by all its metrics and stages, or to all.

        Args:
            failed: those of failures, from :func:`count_failures_once`.
            of_all: the number of all samples if the outcomes belong to all, as those of a
                preparation do.
        """
        touched = set()
        failures = list(failed)
        self._at_least.update(
            (role, name) for asked in failures for role, name, _ in _iterate(asked)
        )
        for asked in (*outcomes, *failures):
            for role, name, kinds in _iterate(asked):
                self._outcomes.setdefault((role, name), Counter()).update(kinds)
                if kinds.keys() - {ANSWERED}:
                    touched.add((role, name))
        for key in touched:
            self._samples[key] = of_all or self._samples[key] + 1

    def rows(self, backends: Mapping[str, Any]) -> list[AskedModel]:
        """Return the rows, those with most missing replies first.

        Args:
            backends: the names of backends by role, as in ``run.json``.
        """
        result = []
        for (role, name), counts in self._outcomes.items():
            of_role = backends.get(role)
            backend = of_role.get(name, name) if isinstance(of_role, Mapping) else of_role or name
            missing = {kind: n for kind, n in counts.items() if kind != ANSWERED}
            answered, samples = counts[ANSWERED], self._samples[role, name]
            at_least = (role, name) in self._at_least
            row = AskedModel(role, name, str(backend), answered, missing, samples, at_least)
            result.append(row)
        return sorted(result, key=lambda row: (-row.unanswered, row.role, row.name))


def store_rows(rows: Iterable[AskedModel]) -> dict[str, dict[str, Any]]:
    """Return the JSON form of rows, by role and name."""
    result: dict[str, dict[str, Any]] = {}
    for row in rows:
        result.setdefault(row.role, {})[row.name] = row.to_dict()
    return result


def load_rows(raw: Mapping[str, Mapping[str, Any]]) -> list[AskedModel]:
    """Return rows from the output of :func:`store_rows`, those with most missing replies first."""
    rows = [AskedModel.from_dict(role, name, row) for role, name, row in _iterate(raw)]
    return sorted(rows, key=lambda row: (-row.unanswered, row.role, row.name))
