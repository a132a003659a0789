"""What ``study``, ``calibrate`` and ``gate`` say of a run, from the documents that they write."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from trustassay.compare import gate_files, gate_rules
from trustassay.compare.gate import gate
from trustassay.data.records import InputError
from trustassay.errors import RunFolderError, UnknownNameError
from trustassay.runs.folder import RunFolder
from trustassay.show.document import Block, Document, Row, Section, Table, Text
from trustassay.workflows.calibrate import command as calibrating
from trustassay.workflows.study import command as studying
from trustassay.workflows.study import outputs
from trustassay_serve.view.index import Index
from trustassay_serve.view.pages import Site

RATINGS = ("ratings*.jsonl", "verdicts*.jsonl")
"""The files in a run's folder that hold what people said."""


def _study(path: Path, ratings: Path | None, given: dict[str, list[str]]) -> Document:
    return outputs.document_of(studying.study(path, labels=given["label"], ratings=ratings))


def _calibrate(path: Path, ratings: Path | None, given: dict[str, list[str]]) -> Document:
    label, metrics = "".join(given["label"][:1]), given["metric"]
    made = calibrating.calibrate(path, label=label, metrics=metrics, ratings=ratings)
    return calibrating.document_of(made)


def _gate(path: Path, _ratings: Path | None, given: dict[str, list[str]]) -> Document:
    bounds = [gate_rules.parse_bound(one, at_least=True) for one in given["min"]]
    bounds += [gate_rules.parse_bound(one, at_least=False) for one in given["max"]]
    result = gate(path, bounds)
    sections = [Section("Rules", checks(result, path.parent))]
    return Document("gate", path.name, {}, f"gate: {result.result}", result.notes, sections)


MADE: dict[str, tuple[tuple[str, ...], Callable[..., Document]]] = {
    "study": (("label",), _study),
    "calibrate": (("label", "metric"), _calibrate),
    "gate": (("min", "max"), _gate),
}
"""By command: what its form asks for, and what makes its document."""


def shown(site: Site, index: Index, request: Request) -> Response:
    """Return the page of a command's document, with a form for what it is made from."""
    query, command = request.query_params, request.url.path.rpartition("/")[2]
    run = index.run(query.get("run", ""))
    if run is None:
        return site.problem("There is no such run", "It may have been moved or removed.")
    names, make = MADE[command]
    given = {name: " ".join(query.getlist(name)).split() for name in names}
    if "metric" in given and not given["metric"]:
        given["metric"] = run.metric_names[:1]
    path, page, fault = site.root / run.key, None, ""
    files = {one.name: one for each in RATINGS for one in sorted(path.glob(each))}
    ratings = files.get(query.get("ratings", ""))
    try:
        counted = (RunFolder(path).read_run() or {}).get("samples", {})
        if given.get("label") == [] and ratings is None and counted.get("labels"):
            given["label"] = ["label"]
        of = (command, run, str(given), ratings and (ratings, ratings.stat().st_mtime_ns))
        page = site.kept.get(of, lambda: make(path, ratings, given))
        if page is None:
            return site.waiting(f"{command}: {run.title} …")
    except (RunFolderError, InputError, UnknownNameError, ValueError) as error:
        fault = str(error)
    about: dict[str, Any] = {
        "run": run,
        "command": command,
        "given": given,
        "files": files,
        "ratings": ratings,
    }
    return site.html("document_page.html.jinja", **about | {"page": page, "fault": fault})


def checks(found: gate_rules.Gate, root: Path) -> list[Block]:
    """Return the rules of a gate with their results, and how to decide those that are open; runs
    are named below ``root``.
    """

    def below(text: str) -> str:
        return text.replace(f"{root}/", "")

    rows = [
        Row(
            one.name,
            [one.result, gate_files.value_of(one), gate_files.interval_in_words(one)],
            below(f"{one.rule}: {one.why}"),
        )
        for one in found.checks
    ]
    table = Table("Rule", ("result", "value", "95 % interval"), rows)
    open_ = [one for one in found.checks if one.advice]
    return [table, *(Text(f"To decide {one.name}: {below(one.advice)}.") for one in open_)]
