"""Pages with the documents of ``study``, ``calibrate`` and ``gate`` for a run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from trustassay.compare import gate_files, gate_rules
from trustassay.compare.gate import gate
from trustassay.errors import RunFolderError, UnknownNameError
from trustassay.input.records import InputError
from trustassay.people.calibrate import command as calibrating
from trustassay.people.calibrate.screen import build_document
from trustassay.people.study import command as studying
from trustassay.people.study import outputs
from trustassay.report.document import Block, DocumentRow, PageDocument, Section, Table, Text
from trustassay.runs.folder import RunFolder
from trustassay.view.index import Index
from trustassay.view.pages import Site

RATINGS = ("ratings*.jsonl", "verdicts*.jsonl")
"""Patterns of the files with ratings in a run's folder."""


def _make_study(path: Path, ratings: Path | None, options: dict[str, list[str]]) -> PageDocument:
    return outputs.build_document(studying.study(path, labels=options["label"], ratings=ratings))


def _make_calibration(
    path: Path, ratings: Path | None, options: dict[str, list[str]]
) -> PageDocument:
    score = "".join(options["score"][:1])
    result = calibrating.calibrate(path, label=options["label"], score=score, ratings=ratings)
    return build_document(result)


def _make_gate(path: Path, _ratings: Path | None, options: dict[str, list[str]]) -> PageDocument:
    bounds = [gate_rules.parse_bound(rule, at_least=True) for rule in options["min"]]
    bounds += [gate_rules.parse_bound(rule, at_least=False) for rule in options["max"]]
    result = gate(path, bounds)
    sections = [Section("Rules", build_rule_blocks(result, path.parent))]
    return PageDocument("gate", path.name, {}, f"gate: {result.result}", result.notes, sections)


DOCUMENT_COMMANDS: dict[str, tuple[tuple[str, ...], Callable[..., PageDocument]]] = {
    "study": (("label",), _make_study),
    "calibrate": (("label", "score"), _make_calibration),
    "gate": (("min", "max"), _make_gate),
}
"""By command: the fields of its form, and the function that builds its document."""


def document_page(site: Site, index: Index, request: Request) -> Response:
    """Return the page with a command's document, and the form for its options."""
    query, command = request.query_params, request.url.path.rpartition("/")[2]
    run = index.run(query.get("run", ""))
    if run is None:
        return site.problem("No such run", "The run may have been moved or removed.")
    names, make = DOCUMENT_COMMANDS[command]
    form = {name: " ".join(query.getlist(name)).split() for name in names}
    # An address without a score shows the first metric.
    if "score" in form and not form["score"]:
        form["score"] = run.metric_names[:1]
    page, fault = None, ""
    try:
        path = index.folder(run).path
    except RunFolderError as error:
        return site.problem(run.title, str(error), 409)
    files = {
        path_of_ratings.name: path_of_ratings
        for each in RATINGS
        for path_of_ratings in sorted(path.glob(each))
    }
    ratings = files.get(query.get("ratings", ""))
    try:
        counted = (RunFolder(path).read_run() or {}).get("samples", {})
        # Without another source, the labels that came with the samples are used.
        if form.get("label") == [] and ratings is None and counted.get("labels"):
            form["label"] = ["label"]
        # The key changes with the run's files and with the file of ratings, so the page is always
        # current.
        of = (command, run, str(form), ratings and (ratings, ratings.stat().st_mtime_ns))
        page = site.results.get(of, lambda: make(path, ratings, form))
        if page is None:
            # The page reloads until the document is there; the computation goes on meanwhile.
            return site.waiting(f"{command}: {run.title} …")
    except (RunFolderError, InputError, UnknownNameError, ValueError) as error:
        fault = str(error)
    about: dict[str, Any] = {
        "run": run,
        "command": command,
        "given": form,
        "files": files,
        "ratings": ratings,
    }
    return site.html("document_page.html.jinja", **about | {"page": page, "fault": fault})


def build_rule_blocks(gate_result: gate_rules.Gate, root: Path) -> list[Block]:
    """Return the rules of a gate with their results, and advice for the undecided ones.

    Paths of runs are shortened to those below ``root``.
    """

    def below(text: str) -> str:
        return text.replace(f"{root}/", "")

    rows = [
        DocumentRow(
            check.name,
            [check.result, gate_files.value_of(check), gate_files.interval_in_words(check)],
            below(f"{check.rule}: {check.why}"),
        )
        for check in gate_result.checks
    ]
    table = Table("Rule", ("result", "value", "95 % interval"), rows)
    # Only undecided rules have advice.
    open_ = [check for check in gate_result.checks if check.advice]
    return [table, *(Text(f"{check.name}: {below(check.advice)}.") for check in open_)]
