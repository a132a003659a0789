"""The page of two runs: their answers side by side, and the results of ``compare`` and ``gate``.

Answers are grouped by what became of them: worse, better, not answered, not scored, gone or new.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from trustassay.compare import gate_files, gate_rules
from trustassay.compare.changes import AnswerChange, classify_changes
from trustassay.compare.gate import gate
from trustassay.compare.two_runs import build_document, compare
from trustassay.errors import RunFolderError, UnknownNameError
from trustassay.report.document import ChangedAnswer, ChangedAnswers, PageDocument, Section
from trustassay.runs.counts import DOMAIN
from trustassay.runs.folder import RunFolder, find_run_model
from trustassay.runs.units import read_domain
from trustassay.view import documents
from trustassay.view.index import Index, RunRow
from trustassay.view.listing import AnswerQuery as Wanted
from trustassay.view.listing import Listing
from trustassay.view.pages import PATIENCE_S, PageError, Site, read_page_number
from trustassay.view.rating import PeopleRatings, key_of

A_PAGE = 50
"""Pairs on a page."""
KINDS = {"errors_now": "not scored", "unanswered": "not answered", "worse": "worse"}
KINDS |= {"better": "better", "other": "other"}
"""What became of a pair: the page's words by the names of ``kinds_of_changes``. Where several
apply, the first one counts."""
SAME, GONE, NEW, NO_GROUP = "same", "gone", "new", "no group"
EXPORT_PATIENCE_S = 600.0
"""Seconds that an export waits for the comparison, as nobody asks again for it."""
NO_RUN = ("Choose two runs", "In the list of runs, mark one as first and another one as second.")
REFUSALS = (RunFolderError, UnknownNameError, ValueError)
"""Errors that say why two runs cannot be compared."""


class PairedAnswer(NamedTuple):
    """An answer in two runs."""

    kind: str
    """What became of it: a value of :data:`KINDS`, ``same``, ``gone`` or ``new``."""
    group: str
    """The model and domain of the sample."""
    places: tuple[int, int]
    """Its place in each run; -1 in a run that does not have it."""


class AnswerSide(NamedTuple):
    """An answer in one of the runs; empty in a run that does not have it."""

    question: str = ""
    """The question."""
    sample_id: str = ""
    """The id of its sample."""
    response: str = ""
    """The answer."""
    score: float | None = None
    """Its score."""
    verdict: str = ""
    """Its verdict."""
    reason: str = ""
    """The reason of the score, or why there is none."""


@dataclass(frozen=True)
class TwoRuns:
    """The comparison of two runs."""

    metric: str
    """The metric that is compared."""
    document: PageDocument
    """The document of ``compare``."""
    answers: Sequence[PairedAnswer]
    """The answers that changed most first; those that only one run has last."""
    gate: gate_rules.Gate | None
    """The decision of ``gate``; ``None`` if there is none."""
    fault: str
    """Why there is no decision."""

    @classmethod
    def read(cls, paths: tuple[Path, Path], query: "TwoRunsQuery") -> "TwoRuns":
        """Compare two runs; errors as of :func:`~trustassay.compare.two_runs.compare`."""
        comparison = compare(*paths, metric=query.metric or None)
        first, second = comparison.scores
        # The group of a pair is that of the second run, which is the newer one.
        groups = [_read_groups(path) for path in paths]
        # `order` puts the largest changes first; it applies to all three columns below
        ways, order = classify_changes(first, second, comparison.pairing)
        kinds = np.select([ways[name] for name in KINDS], list(KINDS.values()), SAME)
        pairs = [
            column[order].tolist()
            for column in (kinds, comparison.pairing.first, comparison.pairing.second)
        ]
        answers = [
            PairedAnswer(kind, groups[1][b], (a, b)) for kind, a, b in zip(*pairs, strict=True)
        ]
        # answers that only one of the runs has
        gone = np.setdiff1d(np.arange(len(first.scores)), comparison.pairing.first)
        new = np.setdiff1d(np.arange(len(second.scores)), comparison.pairing.second)
        answers += [PairedAnswer(GONE, groups[0][place], (place, -1)) for place in gone.tolist()]
        answers += [PairedAnswer(NEW, groups[1][place], (-1, place)) for place in new.tolist()]
        # The gate may refuse what `compare` accepts, such as another judge: the page shows the
        # rest.
        decision, fault = None, ""
        earlier = gate_rules.EarlierRun(paths[0], margin=query.margin, other_judge=query.other)
        try:
            decision = gate(paths[1], (), earlier)
        except REFUSALS as error:
            fault = str(error)
        return cls(query.metric, build_document(comparison), answers, decision, fault)

    @property
    def sections(self) -> list[Section]:
        """The sections of the document without the answers, which the page lists itself."""
        return [
            Section(
                section.title,
                [part for part in section.parts if not isinstance(part, ChangedAnswers)],
            )
            for section in self.document.sections
        ]

    def counts(self) -> dict[str, Counter[str]]:
        """Count the answers of each kind, by group; the empty name stands for all groups."""
        result: dict[str, Counter[str]] = {"": Counter(answer.kind for answer in self.answers)}
        for (group, kind), n in sorted(Counter((a.group, a.kind) for a in self.answers).items()):
            result.setdefault(group, Counter())[kind] = n
        return result

    def build_change(
        self, site: Site, answer: PairedAnswer, listings: Sequence[Listing]
    ) -> tuple[ChangedAnswer, list[str]]:
        """Return an answer with its texts, and its ids in both runs.

        The verdicts are left out while they are hidden from a person who rates blind.
        """
        hidden, sides = False, list[AnswerSide]()
        for place, listing in zip(answer.places, listings, strict=True):
            if place < 0:
                sides.append(AnswerSide())
                continue
            # Only the pairs of the current page are read from disk.
            sample = listing.sample(place)
            (assessment,) = (
                each for each in listing.assessments(place) if each.metric == self.metric
            )
            reason = assessment.error or assessment.reason
            judged = (assessment.score, assessment.verdict or "", reason)
            sides.append(AnswerSide(sample.question, sample.id, sample.response or "", *judged))
            hidden |= PeopleRatings(site, listing.folder, key_of(sample)).hidden
        questions, *columns = zip(*sides, strict=True)
        change = AnswerChange(questions[1] or questions[0], *columns)
        verdict_texts = (
            ("not yet rated by you", ("", "")) if hidden else (change.in_words(), change.reasons)
        )
        changed = ChangedAnswer(change.question, change.ids[1], *verdict_texts, change.responses)
        return changed, [*change.ids]


def _read_groups(path: Path) -> list[str]:
    """Return the group of each sample of a run: its model and domain, as in the index."""
    folder = RunFolder(path)
    # Samples without a model were answered by the run's own.
    default_model = find_run_model(folder.read_run() or {})
    parts_of_samples = [
        (record.get("model") or default_model, read_domain(record, DOMAIN))
        for record in folder.sample_records()
    ]
    return [
        " / ".join(str(part) for part in parts if part) or NO_GROUP for parts in parts_of_samples
    ]


class TwoRunsQuery(NamedTuple):
    """The query of an address of the page."""

    runs: tuple[RunRow, RunRow]
    """The two runs."""
    metrics: tuple[str, ...]
    """The metrics that both runs have."""
    metric: str
    """The one that is compared; empty if they have none in common."""
    margin: float
    """How many percentage points of worsening the gate tolerates."""
    other: bool
    """Whether the gate accepts different judges."""

    @classmethod
    def of(cls, index: Index, query: Mapping[str, str]) -> "TwoRunsQuery | None":
        """Read an address; ``None`` if it names an unknown run, or the same run twice."""
        # A run is compared with another one only: with itself nothing can change.
        first, second = (index.run(query.get(name, "")) for name in ("first", "second"))
        if first is None or second is None or first.key == second.key:
            return None
        common = tuple(
            metric_name for metric_name in first.metric_names if metric_name in second.metric_names
        )
        metric, margin = query.get("metric", ""), 0.0
        with suppress(ValueError):
            # An address may be typed by hand: anything that is no number means 0.
            margin = min(99.9, max(0.0, float(query.get("margin", "0"))))
        chosen = metric if metric in common else next(iter(common), "")
        return cls((first, second), common, chosen, margin, query.get("other", "") == "1")

    def find_comparison(
        self, site: Site, index: Index, patience_s: float = PATIENCE_S
    ) -> TwoRuns | None:
        """Return the comparison; PageError if there is none.

        ``None`` if the comparison takes longer than ``patience_s`` seconds; it then goes on.
        """
        try:
            first, second = (index.folder(run).path for run in self.runs)
            return site.results.get(self, lambda: TwoRuns.read((first, second), self), patience_s)
        except REFUSALS as error:
            raise PageError("These runs cannot be compared", str(error), 409) from None


def compare_page(site: Site, index: Index, request: Request) -> Response:
    """Return the page of two runs, as the query of the address says."""
    query = request.query_params
    two_query = TwoRunsQuery.of(index, query)
    if two_query is None:
        return (
            site.waiting("The folder is being read …") if index.waiting else site.problem(*NO_RUN)
        )
    comparison = two_query.find_comparison(site, index)
    if comparison is None:
        return site.waiting(f"Comparing {two_query.runs[0].title} and {two_query.runs[1].title} …")
    kind, group, page = query.get("show", "worse"), query.get("group", ""), read_page_number(query)
    fixed_fields = {
        "first": two_query.runs[0].key,
        "second": two_query.runs[1].key,
        "metric": two_query.metric,
    }
    fixed_fields |= {"margin": f"{two_query.margin:g}", "other": "1" if two_query.other else ""}
    listings = [site.listings.of(index.folder(run), EXPORT_PATIENCE_S) for run in two_query.runs]
    answers = [
        answer
        for answer in comparison.answers
        if kind in (answer.kind, "all") and (not group or answer.group == group)
    ]
    # The text may be in either answer of a pair.
    if text := query.get("q", "").strip():
        matching_places = [{*each.places(Wanted(text=text)).tolist()} for each in listings]
        answers = [
            answer
            for answer in answers
            if answer.places[0] in matching_places[0] or answer.places[1] in matching_places[1]
        ]
    return site.html(
        "compare.html.jinja",
        found=comparison,
        asked=two_query,
        kept=fixed_fields,
        kind=kind,
        group=group,
        text=text,
        counts=comparison.counts(),
        checks=comparison.gate and documents.build_rule_blocks(comparison.gate, site.root),
        rows=[
            (answer, *comparison.build_change(site, answer, listings))
            for answer in answers[A_PAGE * (page - 1) :][:A_PAGE]
        ],
        count=len(answers),
        page=page,
        pages=-(-len(answers) // A_PAGE),
    )


def gate_markdown(site: Site, index: Index, request: Request) -> Response:
    """Return the decision of ``gate`` as Markdown for a pull request."""
    two_query = TwoRunsQuery.of(index, request.query_params)
    if two_query is None:
        raise PageError(*NO_RUN)
    comparison = two_query.find_comparison(site, index, EXPORT_PATIENCE_S)
    if comparison is None or comparison.gate is None:
        return site.problem("There is no decision", comparison.fault if comparison else "", 409)
    # paths below the folder, since readers of the file do not have this machine's folders
    text = gate_files.render_markdown(comparison.gate).replace(f"{site.root}/", "")
    headers = {"content-disposition": 'attachment; filename="gate.md"'}
    return PlainTextResponse(text, media_type="text/markdown", headers=headers)
