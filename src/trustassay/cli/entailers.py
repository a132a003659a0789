"""``trustassay entailers``: measure entailers on labelled pairs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from trustassay.cli import common
from trustassay.cli.options import Only, with_options
from trustassay.report.terminal import one_line, print_json, say, show_table
from trustassay.runs.options import (
    INPUT,
    MODELS,
    Flag,
    SpendingOptions,
)
from trustassay.text.numbers import amount, with_interval

if TYPE_CHECKING:
    from trustassay.people.entailers import EntailerEstimate, MeasuredEntailer, PassedCounts


@with_options
def entailers(
    *,
    source: Annotated[
        Path,
        Flag(
            "FILE",
            "Labelled pairs: .jsonl, .json, .csv or .tsv. Each row has premise, hypothesis and "
            "label (entailment, neutral, contradiction; supported, not_supported; 1, 0), "
            "optionally kind.",
        ),
    ],
    entailer: Annotated[
        list[str],
        Flag(
            "--entailer",
            "An entailment model to measure: embedded, lexical, hf:ID-or-path, "
            "python:MODULE:FUNCTION, or a chat model (openai:MODEL, chat:hf:ID, ...). May be "
            "given again. Default: embedded and lexical.",
            metavar="URI",
            group=MODELS,
        ),
    ],
    fields: Annotated[
        Mapping[str, str],
        Flag(
            "--field",
            "If a column has another name: premise=passage. May be given again.",
            metavar="NAME=COLUMN",
            group=INPUT,
        ),
    ],
    supported: Annotated[
        str,
        Flag(
            "--supported",
            "The label that means supported, if another word; all others mean not supported.",
            metavar="LABEL",
            default="",
        ),
    ],
    spending: Annotated[SpendingOptions, Only("budget")],
    as_json: common.Json,
) -> None:
    """Compare entailment models on your own labelled pairs.

    Prints AUC, balanced accuracy at 0.5 and calibration error with 95 % intervals, the seconds that
    each model took, and for each kind of pair the share of supported and of other hypotheses that
    score 0.5 or more. If the labels separate contradicted from not stated, also how well each model
    distinguishes these two.

    \b
    trustassay entailers pairs.jsonl
    trustassay entailers pairs.csv --entailer embedded --entailer hf:MODEL \\
        --field premise=passage
    """
    from trustassay.backends import resolve
    from trustassay.backends.registry import check_loadable
    from trustassay.calls.client import CallOptions
    from trustassay.input.labelled_pairs import read_pairs
    from trustassay.people.entailers import measure_entailers

    pairs = read_pairs(source, fields=fields, supported=supported)
    # Without a choice, the two that need no download.
    uris = list(dict.fromkeys(entailer or ["embedded", "lexical"]))
    # All of them first: loading one may take minutes, and hf: may download it.
    check_loadable("entailer", uris)
    result = measure_entailers(
        pairs,
        {uri: resolve.entailer(uri) for uri in uris},
        seed=0,
        options=CallOptions.of(**spending),
    )
    _show_entailers(result)
    if as_json:
        entailer_results = [measured.to_dict() for measured in result]
        print_json({"pairs": len(pairs), "entailers": entailer_results})


def _show_entailers(results: "Sequence[MeasuredEntailer]") -> None:
    first = results[0].passed
    say(f"{amount(results[0].n, 'pair')}, {first.supported:,} of them supported")
    headings = ("entailer", "AUC", "balanced accuracy", "calibration error", "seconds")
    rows = []
    for result in results:
        cells = map(
            _format_estimate, (result.auc, result.balanced_accuracy, result.calibration_error)
        )
        rows.append((result.name, *cells, f"{result.seconds:.1f}"))
    show_table(headings, rows, (), wide=True)
    if any(result.contradictions for result in results):
        _show_contradictions(results)
    for result in results:
        if result.failed:
            say(
                one_line(
                    f"{result.name} failed on {amount(result.failed, 'pair')}; the first failure: "
                    f"{result.reason}"
                )
            )
    # All entailers read the same pairs, so they have the same kinds.
    kinds = list(results[0].kinds)
    say("share of pairs that score 0.5 or more (supported / others):")
    heads = ["kind", *(result.name for result in results)]
    table = [[kind, *(_format_shares(result.kinds[kind]) for result in results)] for kind in kinds]
    table.append(["all", *(_format_shares(result.passed) for result in results)])
    show_table(heads, table, (), wide=True)


def _show_contradictions(results: "Sequence[MeasuredEntailer]") -> None:
    say("contradicted versus not stated:")
    headings = ("entailer", "AUC", "calibration error", "0.5 or more: contradicted / others")
    rows = []
    for result in results:
        contradictions = result.contradictions
        if contradictions:
            # All pairs that are not contradicted.
            other_count = contradictions.not_stated + result.passed.supported
            share = contradictions.passed / contradictions.contradicted
            other_share = contradictions.other_passed / other_count
            auc = _format_estimate(contradictions.auc)
            calibration_error = _format_estimate(contradictions.calibration_error)
            rows.append((result.name, auc, calibration_error, f"{share:.2f} / {other_share:.2f}"))
    show_table(headings, rows, (), wide=True)


def _format_estimate(estimate: "EntailerEstimate") -> str:
    return (
        "undefined" if estimate.value is None else with_interval(estimate.value, estimate.interval)
    )


def _format_shares(passed: "PassedCounts") -> str:
    def share(count: int, total: int) -> str:
        return f"{count / total:.2f}" if total else "–"

    supported = share(passed.supported_passed, passed.supported)
    return f"{supported} / {share(passed.other_passed, passed.other)}"
