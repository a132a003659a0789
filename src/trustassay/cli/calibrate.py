"""``trustassay calibrate``: a threshold for a judge's score, with a promise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.core.labels import parse_number, parse_percent
from trustassay.errors import UsageError
from trustassay.input.records import InputError
from trustassay.report.terminal import complain, one_line, print_json, say
from trustassay.runs.options import (
    CHANCE,
    INPUT,
    LABELS,
    OUTPUT,
    Flag,
    LongestLine,
    Seed,
)
from trustassay.text.numbers import amount

if TYPE_CHECKING:
    from trustassay.runs.calibrator import Calibrator


def read_shares(texts: list[str]) -> list[float]:
    """Read shares that are written as 0.1 or 10%.

    Raises:
        UsageError: one is neither.
    """
    result = []
    for text in texts:
        percent = parse_percent(text)
        share = parse_number(text) if percent is None else percent / 100
        if share is None:
            raise UsageError(f"--at-most: expected a share such as 0.1 or 10%, got {text[:40]!r}")
        result.append(share)
    return result


SOURCE = Flag(
    "SOURCE...",
    "A table of answers (.csv, .tsv, .xlsx, .parquet, .jsonl, .json), traces, or folders of "
    "finished runs.",
)


@with_options
def calibrate(  # noqa: PLR0913 - one argument an option
    *,
    sources: Annotated[list[str], SOURCE],
    score: Annotated[
        str,
        Flag(
            "--score",
            "The judge's score: a column, a score in traces, or a metric of runs or a part of "
            "it (faithfulness.support). Optional if there is only one.",
            metavar="NAME",
            default="",
        ),
    ],
    label: Annotated[list[str], common.LABEL],
    at_most: Annotated[
        list[float],
        Flag(
            "--at-most",
            "The largest share of accepted answers that may be wrong: 10% or 0.1. May be given "
            "again for several promises. Default: that of --plan, or 10%.",
            metavar="SHARE",
            kind=list[str],
            read=read_shares,
        ),
    ],
    lower: Annotated[bool, Flag("--lower", "Lower scores are better.")],
    group: Annotated[
        str,
        Flag(
            "--group",
            "The field that groups answers that depend on each other. Default: the question; "
            "`none` takes all answers as independent.",
            metavar="FIELD",
            group=CHANCE,
            default="",
        ),
    ],
    by: Annotated[
        str,
        Flag(
            "--by",
            "Make a promise for each value of a field, such as a language; all hold together.",
            metavar="FIELD",
            default="",
        ),
    ],
    looks: Annotated[
        int,
        Flag(
            "--looks",
            "How many times you will test the promise as labels arrive: at 50, 100, 200, ... "
            "labels. The file of --out remembers the last look.",
            group=CHANCE,
            default=1,
            least=1,
            most=10,
        ),
    ],
    exact: Annotated[
        bool,
        Flag(
            "--exact",
            "Use one random answer per group: the promise is exact, but needs more labels.",
            group=CHANCE,
            rare=True,
        ),
    ],
    confidence: Annotated[
        float,
        Flag(
            "--confidence",
            "The probability that a promise holds.",
            group=CHANCE,
            default=0.95,
            rare=True,
        ),
    ],
    plan: Annotated[
        Path | None,
        Flag(
            "--plan",
            "The plan of `label --for calibrate` that chose the answers to rate.",
            group=LABELS,
        ),
    ],
    ratings: Annotated[list[Path], common.RATINGS],
    positive: common.Positive,
    at_least: common.AtLeast,
    machine: common.Machine,
    fields: common.RatingFields,
    judge: Annotated[
        list[str],
        Flag(
            "--judge",
            "A column with the judge's model, version or prompt. If its value is new, --apply "
            "accepts nothing. May be given again.",
            metavar="FIELD",
            rare=True,
        ),
    ],
    truth: Annotated[
        str,
        Flag(
            "--truth",
            "A field with adjudicated labels of some rated answers; the promise then includes "
            "errors that raters miss.",
            metavar="FIELD",
            group=LABELS,
            default="",
            rare=True,
        ),
    ],
    sheet: Annotated[str, Flag("--sheet", "The sheet of a workbook.", group=INPUT, default="")],
    longest_line: LongestLine,
    apply: Annotated[
        Path | None,
        Flag(
            "--apply",
            "Apply this calibrator to SOURCE instead of making one; --out then has the rows with "
            "a decision (accept or ask) and a probability.",
            metavar="FILE",
        ),
    ],
    out: Annotated[
        Path | None,
        Flag(
            "--out",
            "The file to write. Default: calibrator.json; with --apply decided.csv.",
            metavar="FILE",
            group=OUTPUT,
        ),
    ],
    page: common.Page,
    seed: Seed,
    as_json: common.Json,
) -> None:
    """Find which answers you can accept by a judge's score, without asking a person.

    Takes any score (a vendor's confidence, a score of a trace, a metric of trustassay) and human
    labels. Prints the threshold above which at most 10 % (--at-most) of the accepted answers are
    wrong, how many answers still go to a person, and how many answers with high and low scores are
    right. No model is asked.

    Exit status: 0 if there is a threshold; 2 if there is none (the reason is printed) or if the
    input is faulty.

    \b
    trustassay calibrate scores.csv --score confidence --label human
    trustassay calibrate scores.csv --score confidence --label anna \\
        --label bela --at-most 5% --page worth.html
    trustassay calibrate runs/labelled --score faithfulness.support
    trustassay calibrate traces.jsonl --score helpful --label correctness
    trustassay calibrate new.csv --apply calibrator.json --out decided.csv
    """
    inputs = [*map(Path, sources), *ratings]
    # A calibrator that is there is applied; nothing is fitted.
    if apply is not None:
        if label or at_most:
            raise UsageError("--apply: the calibrator fixes --label and --at-most; leave them out")
        out = out or Path("decided.csv")
        _keep_inputs([*inputs, apply], [("--out", out)])
        _apply(apply, sources, score, sheet, longest_line, out, as_json)
        return
    from trustassay.people.calibrate.command import calibrate as run_calibrate
    from trustassay.people.calibrate.command import is_another_look
    from trustassay.people.calibrate.screen import build_document

    # 1. Nothing that is read is overwritten, and a look before is noticed.
    out = out or Path("calibrator.json")
    outputs = [("--out", out), *([("--page", Path(page))] if page else [])]
    _keep_inputs([*inputs, *([plan] if plan else [])], outputs)
    last = _read_last(out) if plan is None and looks == 1 else None
    # 2. The promises; with several looks, after those of the last one.
    result = run_calibrate(
        sources,
        score=score,
        label=label,
        at_most=at_most,
        lower=lower,
        group=group,
        by=by,
        exact=exact,
        confidence=confidence,
        looks=looks,
        previous=out if looks > 1 and out.exists() else None,
        plan=plan,
        ratings=ratings,
        positive=positive,
        at_least=at_least,
        machines=machine,
        fields=fields,
        sheet=sheet,
        longest_line=longest_line,
        judge=judge,
        truth=truth,
        seed=seed,
    )
    # 3. What was read comes first, since the promise is about it.
    for note in result.notes:
        complain(one_line(note))
    for line in result.lines:
        say(line)
    if last is not None and is_another_look(last, result.calibrator):
        complain(
            f"{out}: an earlier calibrator from {amount(last.labels.n, 'label')} of "
            f"{last.labels.name} is replaced; each further look can break the promise: plan "
            "several with --looks"
        )
    accepts = "" if result.promise else " (gives probabilities, accepts nothing)"
    say(f"calibrator: {result.write(out)}{accepts}")
    # What comes next, and the same for other programs.
    if result.promise:
        say(f"to check the promise later: trustassay monitor DAY.csv --audit {out}")
    if page:
        build_document(result).write(page)
        say(f"page: {page}")
    if as_json:
        print_json(result.to_dict())
    if result.promise is None:
        raise typer.Exit(2)


def _keep_inputs(inputs: Sequence[Path], outputs: Sequence[tuple[str, Path]]) -> None:
    """Raise UsageError if an output would replace what is read, such as people's labels."""
    known = {path.resolve() for path in inputs}
    for option, path in outputs:
        if path.resolve() in known:
            raise UsageError(f"{option} {path}: would overwrite the input; choose another name")


def _read_last(out: Path) -> Calibrator | None:
    """Return the calibrator that is about to be replaced; ``None`` for anything else."""
    from trustassay.runs.calibrator import read_calibrator

    try:
        return read_calibrator(out) if out.is_file() else None
    except InputError:
        return None


def _apply(
    calibrator: Path,
    sources: list[str],
    score: str,
    sheet: str,
    longest_line: int,
    out: Path,
    as_json: bool,
) -> None:
    from trustassay.people.calibrate.apply import apply_to_table

    if len(sources) > 1 or Path(sources[0]).is_dir():
        raise UsageError(
            f"--apply takes one table; for a run: trustassay report {sources[0]} --calibrator "
            f"{calibrator}"
        )
    result = apply_to_table(
        calibrator, sources[0], score=score, sheet=sheet, longest_line=longest_line
    )
    result.write(out)
    count, n = int(result.accepted.sum()), len(result.accepted)
    say(f"{amount(n, 'answer')}: {count:,} accepted, {n - count:,} to be checked by a person")
    for line in result.promises:
        say(line)
    for warning in result.warnings:
        complain(one_line(warning))
    say(f"decisions: {out}")
    if as_json:
        print_json(
            {
                "answers": n,
                "accepted": count,
                "promises": [promise.to_dict() for promise in result.calibrator.promises],
                "warnings": list(result.warnings),
            }
        )
