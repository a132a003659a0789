"""Writes ``results/tables.md`` from the JSON files beside it: the tables that pages link to.

python -m lab.benchmarks.tables        # write it (also by python -m tests.docs.guide)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lab.results import FOLDER

PAGE = FOLDER / "tables.md"
Table = tuple[Sequence[str], Sequence[Sequence[Any]]]
"""The names of the columns, and the rows."""
_HEAD = """\
# Measured figures, by file

Made from the JSON files of this folder by `python -m lab.benchmarks.tables`. Each table names the
file and the command that measured it. The speed of a large answer is that of version 6 of the
entailer, 2026-11-24: the one that ships has the same weights and also compares quantities (1 of 112
ms).
"""


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *_sections()])


def _sections() -> Iterator[str]:
    for title, name, tables in (
        ("Embedded entailer: agreement with people", "entailer", _entailer),
        ("Local models as entailers: AUC on the same pairs", "local-judges", _local_judges),
        ("Speed of a large answer on one core", "capacity", _capacity),
        ("The service", "serving", _serving),
        ("What other callers wait during a batch", "sharing", sharing_tables),
        ("The same, with one token for all", "sharing-one-token", sharing_tables),
        ("The same, with three batches", "sharing-3-batches", sharing_tables),
        ("The same, with requests instead of a list", "sharing-many-small", sharing_tables),
        ("Memory, files and threads of the service", "soak", soak_tables),
        ("Ray and the local engine", "scaling", _scaling),
        ("Labels that a plan saves", "labelling", _labelling),
        ("How often a gate notices", "gate", _gate),
        ("Changes for the worse that merge one after another", "ratchet", _ratchet),
        (
            "Shares corrected by labels: coverage by how the labels were chosen",
            "corrected",
            _corrected,
        ),
        ("Answers taken for the wrong language", "languages", _languages),
        ("Sets of answers called unstable by gamma", "stability", _stability),
        ("Errors that people marked, found by tokens", "mu-shroom", _mu_shroom),
    ):
        path = FOLDER / f"{name}.json"
        if not path.exists():  # not measured yet
            continue
        record = json.loads(path.read_text(encoding="utf-8"))
        yield f"## {title}\n"
        about = [record["date"], f"`{record['command']}`", record.get("data"), record.get("source")]
        yield f"`{name}.json`: {'; '.join(str(one).rstrip('.') for one in about if one)}.\n"
        for columns, rows in tables(record.get("figures", record)):
            yield "\n".join(table_lines(columns, rows)) + "\n"


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield "| --- " * len(columns) + "|"
    for row in rows:
        yield f"| {' | '.join('' if cell is None else str(cell) for cell in row)} |"


def _entailer(record: Mapping[str, Any]) -> Iterator[Table]:
    keys = [key for key in record["sets"][0] if key != "set"]
    titles = [key.replace("_", " ") for key in keys]
    yield (
        ["set", *titles],
        [[one["set"], *(one.get(key, "–") for key in keys)] for one in record["sets"]],
    )
    kinds = record["near_copies"]["kinds"]
    rows = [[one["kind"], one["supported"], one["others"]] for one in kinds]
    yield ["near copies of the kind", "supported ones that pass 0.5", "others that pass"], rows


def _local_judges(figures: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    by = {(one["set"], one["entailer"]): one for one in figures}
    models, sets = dict.fromkeys(m for _, m in by), dict.fromkeys(name for name, _ in by)
    columns = ["set", "pairs", *models, *(f"{model}: seconds a pair" for model in models)]
    rows = []
    for name in sets:
        found = [by.get((name, model)) for model in models]
        aucs = [_with_interval(one["auc"]) if one else None for one in found]
        n = next(one["n"] for one in found if one)
        rows.append([name, n, *aucs, *(one["seconds_a_pair"] if one else None for one in found)])
    yield columns, rows


def _with_interval(measured: Mapping[str, Any]) -> str | None:
    if measured["value"] is None:
        return None
    ends = measured["interval"]
    return f"{measured['value']:.2f}" + (f" ({ends[0]:.2f} to {ends[1]:.2f})" if ends else "")


def _capacity(figures: Mapping[str, Any]) -> Iterator[Table]:
    yield (
        ["entailer", "cores", "answers a second, three runs"],
        [[figures["version_of_entailer"], figures["cores"], figures["answers_a_second"]]],
    )


SERVING_COLUMNS = (
    *("how", "ms_a_sample", "cpu_ms_a_sample", "waits_ms_median", "waits_ms_99"),
    *("requests_per_s", "replies"),
)


def _serving(figures: Mapping[str, Any]) -> Iterator[Table]:
    every = [one for rows in figures.values() for one in rows]
    # Older results have no requests a second.
    keys = [key for key in SERVING_COLUMNS if any(key in one for one in every)]
    titles = [key.replace("_", " ") for key in keys]
    for entailer, rows in figures.items():
        yield ["entailer", *titles], [[entailer, *(one.get(key) for key in keys)] for one in rows]


def sharing_tables(figures: Mapping[str, Mapping[str, Any]]) -> Iterator[Table]:
    """Yield the tables of ``sharing``: what callers waited, and what the batches took."""
    replies = ("statuses", "retry_after_s")
    counts = ("blocked", "not_judged", "unanswered")
    for title, keys in (
        ("caller", ("count", "p50_s", "p99_s", "max_s", *counts)),
        ("batch", ("seconds", "results", "results_per_s", "not_judged")),
    ):
        rows = [
            [version, name, *(part[key] for key in keys), *(_counts(part[key]) for key in replies)]
            for version, parts in figures.items()
            for name, part in parts.items()
            if name.startswith("batch") is (title == "batch")
        ]
        names = [key.replace("_", " ") for key in (*keys, *replies)]
        yield ["version", title, *names], rows


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} x {name}" for name, count in counts.items())


def soak_tables(figures: Mapping[str, Mapping[str, Any]]) -> Iterator[Table]:
    """Yield the tables of ``soak``: what the service held, and its requests."""
    keys = ("first_minute", "last_minute", "slope_a_minute", "slope_a_minute_second_half")
    rows = [
        [entailer, resource, *(values[key][resource] for key in keys)]
        for entailer, values in figures.items()
        for resource in values["first_minute"]
    ]
    yield ["entailer", "resource", *(key.replace("_", " ") for key in keys)], rows
    yield (
        ["entailer", "minutes", "requests", "replies other than 200"],
        [
            [entailer, values["minutes"], values["requests"], _counts(values["other_replies"])]
            for entailer, values in figures.items()
        ],
    )


def _scaling(figures: Mapping[str, Any]) -> Iterator[Table]:
    def of(key: str, engine: str) -> Any:
        return figures[key][engine]

    yield (
        ["engine", "seconds", "answers a second", "with an endpoint: seconds", "a second"],
        [
            [
                engine,
                of("seconds", engine),
                of("samples_a_second", engine),
                of("seconds_endpoint", engine),
                of("samples_a_second_endpoint", engine),
            ]
            for engine in figures["seconds"]
        ],
    )


def _labelling(figures: Mapping[str, Any]) -> Iterator[Table]:
    keys = list(figures["rows"][0])
    titles = [key.replace("_", " ") for key in keys]
    yield titles, [[one[key] for key in keys] for one in figures["rows"]]


def _gate(figures: Mapping[str, Any]) -> Iterator[Table]:
    sizes = [key for key in figures["rows"][0] if key.startswith("n=")]
    columns = ["second run", "metrics", *(f"{size}: fail, undecided, pass" for size in sizes)]
    rows = []
    for one in figures["rows"]:
        cells = [
            ", ".join(str(one[size][result]) for result in ("fail", "undecided", "pass"))
            for size in sizes
        ]
        rows.append([one["second_run"], one["metrics"], *cells])
    yield columns, rows


def _ratchet(figures: Mapping[str, Any]) -> Iterator[Table]:
    columns = ["churn", "each change", "compared with", "of twelve merge", "at most three, %"]
    columns += ["series with 0, 1, 2, ... merged"]
    rows = []
    for one in figures["rows"]:
        change = f"{one['points_worse']:g} points worse" if one["points_worse"] else "as good"
        counts = ", ".join(map(str, one["distribution"]))
        cells = [one["mean"], one["at_most_three"], counts]
        rows.append([one["churn"], change, one["compared_with"], *cells])
    yield columns, rows


def _corrected(figures: Mapping[str, Any]) -> Iterator[Table]:
    columns = ["labels", "questions", "not answered, %", "gives a figure, %", "coverage, %"]
    keys = ("given", "coverage")
    rows = [
        [
            one["choice"],
            one["answers"],
            round(100 * one["not_answered"]),
            *("–" if one[key] is None else one[key] for key in keys),
        ]
        for one in figures["by_not_answered"]
    ]
    yield columns, rows
    columns = ["labels of the outcome with fewest, from", "intervals", "coverage, %"]
    rows = [[one["labels_from"], one["intervals"], one["coverage"]] for one in figures["by_fewest"]]
    yield columns, rows


def _languages(figures: Mapping[str, Any]) -> Iterator[Table]:
    rows = [[name, one["answers"], one["percent"]] for name, one in figures.items()]
    yield ["what", "answers", "wrong, %"], rows


def _stability(figures: Mapping[str, Any]) -> Iterator[Table]:
    keys = ("differ", "of_ten", "median", "unstable", "unstable_at_paper")
    titles = ["answers differ", "of ten", "median gamma", "unstable at 0.18, %", "at 0.05, %"]
    yield titles, [[one[key] for key in keys] for one in figures["sets"]]


def _mu_shroom(figures: Mapping[str, Any]) -> Iterator[Table]:
    columns = [
        *("language", "answers", "IoU: all", "names, numbers", "tokens"),
        *("correlation: names, numbers", "tokens"),
    ]
    cells = [
        *(("all of it", "iou"), ("names and numbers", "iou"), ("token", "iou")),
        *(("names and numbers", "correlation"), ("token", "correlation")),
    ]
    rows = [
        [language, one["answers"], *(_with_interval(one[by][of]) for by, of in cells)]
        for language, one in figures["test"].items()
    ]
    yield columns, rows


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
