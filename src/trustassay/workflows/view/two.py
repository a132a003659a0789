"""Two runs: which answers got worse or better, are refused, failed or gone, each pair beside the
other, and what ``compare`` and ``gate`` say of both."""

from array import array
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from trustassay.errors import RunFolderError, UnknownNameError
from trustassay.runs.counts import DOMAIN, domain_of
from trustassay.runs.folder import RunFolder
from trustassay.runs.lines import decoded, located_lines
from trustassay.show.document import ChangedAnswer, ChangedAnswers, Document, Section
from trustassay.workflows import changes, compare_outputs, rules
from trustassay.workflows.compare import compare
from trustassay.workflows.gate import gate
from trustassay.workflows.two_runs import Scored
from trustassay.workflows.view import documents
from trustassay.workflows.view.index import Index, RunRow
from trustassay.workflows.view.pages import PATIENCE_S, Site, page_of

A_PAGE = 50
KINDS = ("worse", "better", "refused", "failed", "other", "same", "gone", "new")
"""What became of an answer, as :func:`~trustassay.workflows.changes.kinds_of` says; gone: it has no
partner in the second run; new: in the first."""
LONGEST_S = 600.0
"""Seconds that an export waits for the comparison."""


class Row(NamedTuple):
    """An answer of both runs or of one: its kind, what changed, and its places in the runs."""

    kind: str
    change: changes.AnswerChange
    shown: ChangedAnswer
    places: tuple[int, int]


class Texts:
    """The answers of a run: where each is on disk, and its group, as the index names it."""

    def __init__(self, scored: Scored, asked: object) -> None:
        """Read where they are; ``asked`` is the model of those that name none."""
        self._folder, self._offsets, self.groups = RunFolder(scored.path), array("q"), list[str]()
        self._assessments = self._folder.assessments(scored.info.name, evidence_later=True)
        for at, line in located_lines(self._folder.samples_path):
            sample = decoded(line)
            parts = (sample.get("model") or asked, domain_of(sample, DOMAIN))
            self._offsets.append(at)
            self.groups.append(" / ".join(str(part) for part in parts if part))

    def told(self, place: int) -> tuple[str, str, str, float | None, str, str]:
        """Return question, id, response, score, verdict and reason; all empty for place -1."""
        if place < 0:
            return "", "", "", None, "", ""
        sample = self._folder.sample_at(self._offsets[place])
        one = self._assessments[place]
        reason = one.reason if one.error is None else one.error
        return (
            sample.question,
            sample.id,
            sample.response or "",
            one.score,
            one.verdict or "",
            reason,
        )


@dataclass(frozen=True)
class TwoRuns:
    """Two runs, compared. document: the page of ``compare``, without the answers. gate: ``None``
    where ``fault`` says why there is none.

    Of each answer, the largest change first: places, in both runs, shape (n, 2), -1 where a run has
    none; kinds, the number of its kind in :data:`KINDS`; groups.
    """

    document: Document
    gate: rules.Gate | None
    fault: str
    texts: tuple[Texts, Texts]
    places: NDArray[np.int64]
    kinds: NDArray[np.int64]
    groups: NDArray[np.str_]

    @classmethod
    def read(
        cls, paths: tuple[Path, Path], metric: str, margin: float, *, other: bool
    ) -> "TwoRuns":
        """Compare two runs; ``other`` accepts another judge. Errors as of
        :func:`~trustassay.workflows.compare.compare`.
        """
        found = compare(*paths, metric=metric)
        first, second = found.scored
        asked = [(RunFolder(path).read_run() or {})["backends"].get("model") for path in paths]
        texts = Texts(first, asked[0]), Texts(second, asked[1])
        pairing = found.pairing
        ways, order = changes.kinds_of(first, second, pairing)
        names = ("worse", "better", "refused", "failed_now", "other")
        kinds = np.select([ways[name] for name in names], range(len(names)), KINDS.index("same"))
        gone = np.setdiff1d(np.arange(len(first.scores)), pairing.first)
        new = np.setdiff1d(np.arange(len(second.scores)), pairing.second)
        places = np.full((len(order) + len(gone) + len(new), 2), -1)
        places[: len(order)] = np.stack([pairing.first, pairing.second], axis=1)[order]
        places[len(order) : len(order) + len(gone), 0] = gone
        places[len(places) - len(new) :, 1] = new
        alone = [KINDS.index("gone")] * len(gone) + [KINDS.index("new")] * len(new)
        groups = [texts[1].groups[b] if b >= 0 else texts[0].groups[a] for a, b in places.tolist()]
        decision, fault = None, ""
        try:
            earlier = rules.Earlier(paths[0], margin=margin, other_judge=other)
            decision = gate(paths[1], (), earlier)
        except (RunFolderError, ValueError) as error:
            fault = str(error)
        document = compare_outputs.document_of(found)
        whole = np.concatenate([kinds[order], np.array(alone, dtype=np.int64)])
        return cls(document, decision, fault, texts, places, whole, np.array(groups, np.str_))

    @property
    def sections(self) -> list[Section]:
        """The sections of the document without the answers, which the page has itself."""
        return [
            Section(one.title, [part for part in one.parts if not isinstance(part, ChangedAnswers)])
            for one in self.document.sections
        ]

    def counts(self) -> dict[str, Counter[str]]:
        """Return how many answers there are of each kind, by group; in all under the empty name."""
        result: dict[str, Counter[str]] = {"": Counter()}
        pairs = zip(self.groups.tolist(), self.kinds.tolist(), strict=True)
        for (group, kind), n in Counter(pairs).items():
            result[""][KINDS[kind]] += n
            result.setdefault(group or "no group", Counter())[KINDS[kind]] += n
        return result

    def rows(self, kind: str, group: str, page: int) -> tuple[list[Row], int]:
        """Return a page of the answers of a kind and a group, where they are given, and how many
        there are on all pages.
        """
        keep = np.ones(len(self.kinds), dtype=np.bool_)
        if kind in KINDS:
            keep &= self.kinds == KINDS.index(kind)
        if group:
            keep &= self.groups == ("" if group == "no group" else group)
        found = np.flatnonzero(keep)
        return [self._row(at) for at in found[A_PAGE * (page - 1) :][:A_PAGE].tolist()], len(found)

    def _row(self, at: int) -> Row:
        places = (int(self.places[at, 0]), int(self.places[at, 1]))
        sides = [texts.told(place) for texts, place in zip(self.texts, places, strict=True)]
        questions, *told = zip(*sides, strict=True)
        change = changes.AnswerChange(questions[1] or questions[0], *told)
        shown = ChangedAnswer(
            change.question, change.ids[1], change.in_words(), change.reasons, change.responses
        )
        return Row(KINDS[self.kinds[at]], change, shown, places)


class Asked(NamedTuple):
    """What an address asks for: two runs, a metric of both, and how far worse is tolerated."""

    runs: tuple[RunRow, RunRow]
    metrics: tuple[str, ...]
    metric: str
    margin: float
    other: bool

    @classmethod
    def read(cls, index: Index, query: Mapping[str, str]) -> "Asked":
        """Read an address; HTTPException: it names a run that is not there."""
        first, second = (index.run(query.get(name, "")) for name in ("first", "second"))
        if first is None or second is None:
            raise HTTPException(404)
        common = tuple(one for one in first.metric_names if one in second.metric_names)
        metric, margin = query.get("metric", ""), 0.0
        with suppress(ValueError):
            margin = min(100.0, max(0.0, float(query.get("margin", "0"))))
        chosen = metric if metric in common else next(iter(common), metric)
        return cls((first, second), common, chosen, margin, query.get("other", "") == "1")

    def compared(self, site: Site, patience_s: float = PATIENCE_S) -> TwoRuns | None:
        """Return the comparison; ``None`` if it takes longer."""
        first, second = (site.root / run.key for run in self.runs)
        return site.kept.get(
            self,
            lambda: TwoRuns.read((first, second), self.metric, self.margin, other=self.other),
            patience_s,
        )


def shown(site: Site, index: Index, request: Request) -> Response:
    """Return the page of two runs; what is asked for stays in the address."""
    asked, query = Asked.read(index, request.query_params), request.query_params
    try:
        found = asked.compared(site)
    except (RunFolderError, UnknownNameError, ValueError) as error:
        return site.problem("These runs cannot be compared", str(error), 409)
    if found is None:
        return site.waiting(f"Comparing {asked.runs[0].title} and {asked.runs[1].title} …")
    kind, group = query.get("show", "worse"), query.get("group", "")
    page = page_of(query)
    rows, count = found.rows(kind, group, page)
    kept = {"first": asked.runs[0].key, "second": asked.runs[1].key, "metric": asked.metric}
    kept |= {"margin": f"{asked.margin:g}", "other": "1" if asked.other else ""}
    return site.html(
        "compare.html.jinja",
        found=found,
        asked=asked,
        kept=kept,
        kind=kind,
        group=group,
        counts=found.counts(),
        checks=found.gate and documents.checks(found.gate, site.root),
        rows=rows,
        count=count,
        page=page,
        pages=-(-count // A_PAGE),
    )


def exported(site: Site, index: Index, request: Request) -> Response:
    """Return the decision of ``gate`` as the Markdown that a pull request takes."""
    asked = Asked.read(index, request.query_params)
    try:
        found = asked.compared(site, LONGEST_S)
    except (RunFolderError, UnknownNameError, ValueError) as error:
        return site.problem("These runs cannot be compared", str(error), 409)
    if found is None or found.gate is None:
        return site.problem("There is no decision", found.fault if found else "not done", 409)
    text = rules.markdown(found.gate).replace(f"{site.root}/", "")
    headers = {"content-disposition": 'attachment; filename="gate.md"'}
    return PlainTextResponse(text, media_type="text/markdown", headers=headers)
