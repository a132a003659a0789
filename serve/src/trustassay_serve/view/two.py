"""Two runs: which answers got worse or better, are refused, failed or gone, each pair beside the
other, and what ``compare`` and ``gate`` say of both."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from trustassay.compare import gate_files, gate_rules, pages
from trustassay.compare.answer_changes import AnswerChange, kinds_of_changes
from trustassay.compare.gate import gate
from trustassay.compare.two_runs import compare
from trustassay.errors import RunFolderError, UnknownNameError
from trustassay.runs.counts import DOMAIN, domain_of
from trustassay.runs.folder import RunFolder
from trustassay.show.document import ChangedAnswer, ChangedAnswers, Document, Section
from trustassay_serve.view import documents
from trustassay_serve.view.index import Index, RunRow
from trustassay_serve.view.listing import Asked as Wanted
from trustassay_serve.view.listing import Listing
from trustassay_serve.view.pages import PATIENCE_S, Site, page_of
from trustassay_serve.view.rating import Rated, key_of

A_PAGE = 50
KINDS = {"errors_now": "not scored", "unanswered": "not answered", "worse": "worse"}
KINDS |= {"better": "better", "other": "other"}
"""What became of a pair, by its name in ``kinds_of_changes``; the first that holds."""
SAME, GONE, NEW, NO_GROUP = "same", "gone", "new", "no group"
LONGEST_S = 600.0
"""Seconds that an export waits for the comparison."""
NO_RUN = ("Two runs are needed", "Mark one as first and another as second in the list of runs.")
REFUSALS = (RunFolderError, UnknownNameError, ValueError)


class Answer(NamedTuple):
    """An answer of two runs: what became of it, its group, and its places, -1 where it is not."""

    kind: str
    group: str
    places: tuple[int, int]


@dataclass(frozen=True)
class TwoRuns:
    """Two runs, compared. answers: those that changed most first, those of one run alone last.

    document: of ``compare``. gate: ``None`` where ``fault`` says why there is no decision.
    """

    metric: str
    document: Document
    answers: Sequence[Answer]
    gate: gate_rules.Gate | None
    fault: str

    @classmethod
    def read(cls, paths: tuple[Path, Path], asked: "Asked") -> "TwoRuns":
        """Compare two runs; errors as of :func:`~trustassay.compare.two_runs.compare`."""
        found = compare(*paths, metric=asked.metric or None)
        first, second = found.scores
        groups = [_groups(path) for path in paths]
        ways, order = kinds_of_changes(first, second, found.pairing)
        kinds = np.select([ways[name] for name in KINDS], list(KINDS.values()), SAME)
        pairs = [one[order].tolist() for one in (kinds, found.pairing.first, found.pairing.second)]
        answers = [Answer(kind, groups[1][b], (a, b)) for kind, a, b in zip(*pairs, strict=True)]
        gone = np.setdiff1d(np.arange(len(first.scores)), found.pairing.first)
        new = np.setdiff1d(np.arange(len(second.scores)), found.pairing.second)
        answers += [Answer(GONE, groups[0][place], (place, -1)) for place in gone.tolist()]
        answers += [Answer(NEW, groups[1][place], (-1, place)) for place in new.tolist()]
        decision, fault = None, ""
        earlier = gate_rules.Earlier(paths[0], margin=asked.margin, other_judge=asked.other)
        try:
            decision = gate(paths[1], (), earlier)
        except REFUSALS as error:
            fault = str(error)
        return cls(asked.metric, pages.document_of(found), answers, decision, fault)

    @property
    def sections(self) -> list[Section]:
        """The sections of the document without the answers, which the page has itself."""
        return [
            Section(one.title, [part for part in one.parts if not isinstance(part, ChangedAnswers)])
            for one in self.document.sections
        ]

    def counts(self) -> dict[str, Counter[str]]:
        """Return how many answers there are of each kind, by group; of all under the empty name."""
        result: dict[str, Counter[str]] = {"": Counter(one.kind for one in self.answers)}
        for (group, kind), n in sorted(Counter((a.group, a.kind) for a in self.answers).items()):
            result.setdefault(group, Counter())[kind] = n
        return result

    def shown(
        self, site: Site, answer: Answer, listings: Sequence[Listing]
    ) -> tuple[ChangedAnswer, list[str]]:
        """Return an answer with its texts, and its ids in both runs; who rates it blind, and has
        not yet, sees no verdict.
        """
        hidden, sides = False, list[tuple[str, str, str, float | None, str, str]]()
        for place, listing in zip(answer.places, listings, strict=True):
            if place < 0:
                sides.append(("", "", "", None, "", ""))
                continue
            sample = listing.sample(place)
            (one,) = (each for each in listing.assessments(place) if each.metric == self.metric)
            judged = (one.score, one.verdict or "", one.error or one.reason)
            sides.append((sample.question, sample.id, sample.response or "", *judged))
            hidden |= Rated(site, listing.folder, key_of(sample)).hidden
        questions, *told = zip(*sides, strict=True)
        change = AnswerChange(questions[1] or questions[0], *told)
        said = ("not rated by you yet", ("", "")) if hidden else (change.in_words(), change.reasons)
        shown = ChangedAnswer(change.question, change.ids[1], *said, change.responses)
        return shown, [*change.ids]


def _groups(path: Path) -> list[str]:
    """Return the group of each sample of a run: its model and domain, as the index names it."""
    folder = RunFolder(path)
    asked = (folder.read_run() or {"backends": {}})["backends"].get("model")
    named = [(one.get("model") or asked, domain_of(one, DOMAIN)) for one in folder.sample_records()]
    return [" / ".join(str(part) for part in parts if part) or NO_GROUP for parts in named]


class Asked(NamedTuple):
    """What an address asks for: two runs, a metric of both, how far worse is tolerated, in points,
    and whether another judge is accepted.
    """

    runs: tuple[RunRow, RunRow]
    metrics: tuple[str, ...]
    metric: str
    margin: float
    other: bool

    @classmethod
    def of(cls, index: Index, query: Mapping[str, str]) -> "Asked | None":
        """Read an address; ``None`` if it names a run that is not there, or one run twice."""
        first, second = (index.run(query.get(name, "")) for name in ("first", "second"))
        if first is None or second is None or first.key == second.key:
            return None
        common = tuple(one for one in first.metric_names if one in second.metric_names)
        metric, margin = query.get("metric", ""), 0.0
        with suppress(ValueError):
            margin = min(99.9, max(0.0, float(query.get("margin", "0"))))
        chosen = metric if metric in common else next(iter(common), "")
        return cls((first, second), common, chosen, margin, query.get("other", "") == "1")

    def compared(self, site: Site, patience_s: float = PATIENCE_S) -> TwoRuns | Response | None:
        """Return the comparison, the page that says why there is none, or ``None`` if it takes
        longer.
        """
        first, second = (site.root / run.key for run in self.runs)
        try:
            return site.kept.get(self, lambda: TwoRuns.read((first, second), self), patience_s)
        except REFUSALS as error:
            return site.problem("These runs cannot be compared", str(error), 409)


def shown(site: Site, index: Index, request: Request) -> Response:
    """Return the page of two runs; what is asked for stays in the address."""
    query = request.query_params
    asked = Asked.of(index, query)
    if asked is None:
        return (
            site.waiting("The folder is being read …") if index.waiting else site.problem(*NO_RUN)
        )
    found = asked.compared(site)
    if found is None:
        return site.waiting(f"Comparing {asked.runs[0].title} and {asked.runs[1].title} …")
    if isinstance(found, Response):
        return found
    kind, group, page = query.get("show", "worse"), query.get("group", ""), page_of(query)
    kept = {"first": asked.runs[0].key, "second": asked.runs[1].key, "metric": asked.metric}
    kept |= {"margin": f"{asked.margin:g}", "other": "1" if asked.other else ""}
    listings = [site.listings.of(RunFolder(site.root / run.key), LONGEST_S) for run in asked.runs]
    answers = [
        one
        for one in found.answers
        if kind in (one.kind, "all") and (not group or one.group == group)
    ]
    if text := query.get("q", "").strip():
        held = [{*each.places(Wanted(text=text)).tolist()} for each in listings]
        answers = [one for one in answers if one.places[0] in held[0] or one.places[1] in held[1]]
    return site.html(
        "compare.html.jinja",
        found=found,
        asked=asked,
        kept=kept,
        kind=kind,
        group=group,
        text=text,
        counts=found.counts(),
        checks=found.gate and documents.checks(found.gate, site.root),
        rows=[
            (one, *found.shown(site, one, listings))
            for one in answers[A_PAGE * (page - 1) :][:A_PAGE]
        ],
        count=len(answers),
        page=page,
        pages=-(-len(answers) // A_PAGE),
    )


def exported(site: Site, index: Index, request: Request) -> Response:
    """Return the decision of ``gate`` as the Markdown that a pull request takes."""
    asked = Asked.of(index, request.query_params)
    found = asked.compared(site, LONGEST_S) if asked else site.problem(*NO_RUN)
    if isinstance(found, Response):
        return found
    if found is None or found.gate is None:
        return site.problem("There is no decision", found.fault if found else "", 409)
    text = gate_files.markdown(found.gate).replace(f"{site.root}/", "")
    headers = {"content-disposition": 'attachment; filename="gate.md"'}
    return PlainTextResponse(text, media_type="text/markdown", headers=headers)
