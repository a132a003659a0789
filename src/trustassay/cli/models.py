"""``trustassay models``, ``trustassay models get`` and ``trustassay entailers``."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from trustassay.cli import common
from trustassay.cli.options import Only, quietable, with_options
from trustassay.options import Seed, Spending
from trustassay.show.terminal import one_line, print_json, say, show_table
from trustassay.show.text import with_interval

if TYPE_CHECKING:
    from trustassay.workflows.entailers import Estimate, MeasuredEntailer, Passed


UNNAMED = "list"
"""The command of ``trustassay models`` that runs if none is named."""


class _Group(TyperGroup):
    """A group that runs the command :data:`UNNAMED` if the first argument names none."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = args and args[0] in self.commands
        return super().parse_args(ctx, args if named else [UNNAMED, *args])


group = typer.Typer(cls=_Group)


@group.command(UNNAMED)
@with_options
def models(*, uris: list[str] | None, check: bool, plugins: bool) -> None:
    """List the backends that work here and the keys that are set; try the backends given."""
    from trustassay.backends import inventory

    if plugins:
        added = list(inventory.plugins())
        if not added:
            say("no installed package adds schemes, metrics or commands")
            return
        texts = ["name", "kind", "package", "used for"]
        rows = [[one.name, one.kind, one.package, one_line(one.state)] for one in added]
        show_table(texts, rows, texts)
        if broken := sum(one.broken for one in added):
            say(f"{broken} of these cannot be loaded")
            raise typer.Exit(1)
        return
    # A backend is tried only if the user asks for it: loading a model takes time.
    timed = check or bool(uris)
    texts = ["backend", "used for", "available"]
    rows = []
    broken = 0
    # Backends that the user names are tried alone, unless all are to be checked too.
    listed = inventory.backends(check=check) if check or not uris else ()
    for result in chain(listed, map(inventory.tried, uris or ())):
        broken += result.broken
        cells = [result.name, result.capability, one_line(result.state)]
        rows.append([*cells, *([result.load, result.speed] if timed else [])])
    show_table([*texts, *(["load", "speed"] if timed else [])], rows, texts)
    if broken:
        say(f"{broken} of these failed but should work here")
        raise typer.Exit(1)


@group.command("get")
@quietable
@with_options
def get(*, name: str | None, check: bool, as_json: bool) -> None:
    """Fetch a recommended model, which then serves by its name; without a name, list them."""
    from trustassay.backends.recommended import named_model, recommended
    from trustassay.backends.registry import fault_of
    from trustassay.workflows.fetch_model import fetch_model

    if name is None:
        result = recommended().values()
        texts = ["name", "what it is", "licence", "measured as a judge"]
        rows = [
            (
                *(one.name, one.what, one.licence, one.measured),
                *(one.size, "yes" if one.path.exists() else "no"),
            )
            for one in result
        ]
        show_table([*texts, "size", "here"], rows, texts)
        if as_json:
            print_json({"models": [one.to_dict() for one in result]})
        return
    model = named_model(name)
    say(f"{name} ({model.size}, {model.licence}) from {model.address}")
    # A file of the right size is not fetched again; ``--check`` verifies its digest.
    done = "fetched and checked" if fetch_model(model, check=check) else "it was here already"
    say(f"{done}: {model.path}; to use it: --second {name}, --entailer {name}, --judge {name}")
    if fault := fault_of("chat model", name):
        say(fault)
    if as_json:
        print_json(model.to_dict())


@with_options
def entailers(
    *,
    source: Path,
    entailer: list[str],
    fields: Mapping[str, str],
    supported: str,
    spending: Annotated[Spending, Only("cache", "prices", "budget")],
    seed: Seed,
    as_json: common.Json,
) -> None:
    """Measure entailers on your own labelled pairs, side by side."""
    from trustassay.backends import resolve
    from trustassay.calls.client import CallOptions
    from trustassay.data.labelled_pairs import read_pairs
    from trustassay.workflows.entailers import measure_entailers

    labelled = read_pairs(source, fields=fields, supported=supported)
    # Without a choice, the two that need no download.
    uris = list(dict.fromkeys(entailer or ["embedded", "lexical"]))
    result = measure_entailers(
        labelled,
        {uri: resolve.entailer(uri) for uri in uris},
        seed=seed,
        options=CallOptions.of(**spending),
    )
    _show(result)
    if as_json:
        print_json({"pairs": len(labelled), "entailers": [one.to_dict() for one in result]})


def _show(found: "Sequence[MeasuredEntailer]") -> None:
    first = found[0].passed
    say(f"{found[0].n:,} pairs, {first.supported:,} of them supported")
    headings = ("entailer", "AUC", "balanced accuracy", "calibration error", "seconds")
    rows = []
    for one in found:
        cells = map(_cell, (one.auc, one.balanced_accuracy, one.calibration_error))
        rows.append((one.name, *cells, f"{one.seconds:.1f}"))
    show_table(headings, rows, (), wide=True)
    if any(one.contradictions for one in found):
        _show_contradictions(found)
    for one in found:
        if one.failed:
            say(one_line(f"{one.name} failed on {one.failed:,} pairs; the first: {one.reason}"))
    # All entailers read the same pairs, so they have the same kinds.
    kinds = list(found[0].kinds)
    say("passed 0.5, of the supported / of the others:")
    heads = ["kind", *(one.name for one in found)]
    table = [[kind, *(_shares(one.kinds[kind]) for one in found)] for kind in kinds]
    table.append(["all", *(_shares(one.passed) for one in found)])
    show_table(heads, table, (), wide=True)


def _show_contradictions(found: "Sequence[MeasuredEntailer]") -> None:
    say("contradicted against not stated:")
    headings = ("entailer", "AUC", "calibration error", "passed 0.5: contradicted / others")
    rows = []
    for one in found:
        told = one.contradictions
        if told:
            # All pairs that are not contradicted.
            others = told.not_stated + one.passed.supported
            share = f"{told.passed / told.contradicted:.2f} / {told.other_passed / others:.2f}"
            rows.append((one.name, _cell(told.auc), _cell(told.calibration_error), share))
    show_table(headings, rows, (), wide=True)


def _cell(one: "Estimate") -> str:
    return "undefined" if one.value is None else with_interval(one.value, one.interval)


def _shares(one: "Passed") -> str:
    def share(count: int, of: int) -> str:
        return f"{count / of:.2f}" if of else "–"

    return f"{share(one.supported_passed, one.supported)} / {share(one.other_passed, one.other)}"
