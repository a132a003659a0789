"""``trustassay gate``: pass or fail a run, for continuous integration."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from trustassay.cli.common import Json
from trustassay.cli.options import list_given_flags, with_options
from trustassay.cli.results import show_worse
from trustassay.core.files import write_atomic
from trustassay.errors import UsageError
from trustassay.report.terminal import (
    complain,
    one_line,
    print_json,
    results_on_output,
    say,
    show_table,
)
from trustassay.runs.options import (
    OUTPUT,
    Flag,
    KnownLabelOptions,
    Seed,
)

if TYPE_CHECKING:
    from trustassay.compare.gate_rules import Gate


# Undecided has a status of its own, so that a pipeline can rerun with more answers.
FAILED, UNDECIDED = 1, 4


STATUS = {"pass": 0, "fail": FAILED, "undecided": UNDECIDED, "untestable": UNDECIDED}


@with_options
def gate(  # noqa: PLR0913 - one argument an option
    run: Annotated[Path, Flag("RUN", "The run's folder (score --out).")],
    *,
    at_least: Annotated[
        list[str],
        Flag(
            "--min",
            "The least value of a share of all questions (passed, failed, not_answered) or of "
            "a figure of summary.json, in its unit or with a per cent sign: passed=80%, "
            "grounding.trust_score=60, faithfulness.mean=90%. May be given more than once.",
            metavar="FIGURE=NUMBER[%]",
        ),
    ],
    at_most: Annotated[
        list[str],
        Flag(
            "--max",
            "The same with the largest value: failed=10%, not_answered=5%, faithfulness.errors=0.",
            metavar="FIGURE=NUMBER[%]",
        ),
    ],
    no_worse_than: Annotated[
        list[Path],
        Flag(
            "--no-worse-than",
            "An earlier run of the same questions; may be given more than once, as the last "
            "run and a pinned one. Questions are paired: more that failed, or have no answer, "
            "beyond chance fail the gate.",
            metavar="RUN",
        ),
    ],
    figure: Annotated[
        list[str],
        Flag(
            "--figure",
            "With --no-worse-than: a figure that must not be worse besides the shares of all "
            "questions. May be given more than once.",
            metavar="METRIC.FIGURE",
        ),
    ],
    margin: Annotated[
        float,
        Flag(
            "--margin",
            "With --no-worse-than: how much worse is tolerated, below 100: points by which a "
            "share of all questions may rise, per cent of the range of a named figure.",
            default=0.0,
            least=0,
            most=100,
        ),
    ],
    allow_missing: Annotated[
        str,
        Flag(
            "--allow-missing",
            "With --no-worse-than: how many answers of the earlier run may have no partner in "
            "this one, as a number or a percentage.",
            metavar="N|P%",
            default="0",
            rare=True,
        ),
    ],
    allow_other_judge: Annotated[
        bool,
        Flag(
            "--allow-other-judge",
            "With --no-worse-than: compare although a metric's options, or the models that "
            "judge, differ between the runs.",
            rare=True,
        ),
    ],
    sequential: Annotated[
        bool,
        Flag(
            "--sequential",
            "With --min and --max: intervals that hold however often one looks while the run "
            "grows; they are wider.",
            rare=True,
        ),
    ],
    undecided: Annotated[
        Literal["pass", "fail", "undecided"],
        Flag(
            "--undecided",
            "What an undecided rule counts as, in the exit status and in JUnit. An untestable "
            "one never passes.",
            default="undecided",
            rare=True,
        ),
    ],
    markdown: Annotated[
        Path | None,
        Flag(
            "--markdown",
            "Write the result as Markdown, for a pull request.",
            metavar="FILE",
            group=OUTPUT,
        ),
    ],
    junit: Annotated[
        Path | None, Flag("--junit", "Write the result as JUnit XML.", metavar="FILE", group=OUTPUT)
    ],
    labels: KnownLabelOptions,
    seed: Seed,
    as_json: Json,
) -> None:
    """Pass or fail a run, for continuous integration: by bounds, or against earlier runs.

    A rule fails if its figure is on the wrong side of the line beyond chance, passes if the whole
    95 % interval is on the right one, and is undecided otherwise (--undecided); it then says how
    many more questions would decide it. All rules of a call are tested together (Holm), so that a
    run that is no worse fails in at most 2.5 of 100 cases. A rule that nothing could decide is
    untestable. Counts, such as METRIC.errors, have no interval and are compared as they are.

    Bounds are for shares of all questions first: passed, failed and not_answered (scored and
    not_scored of a metric without a line), of each metric, or METRIC.failed of one. A bound on a
    mean or another figure over scored answers fails where more than 5 % of the questions have no
    score, and is undecided where a model's answers were left out (no --model), unless --max
    not_answered (not_scored) is given. With --labels METRIC.right is the share of right answers,
    which is not what the metric calls good.

    Against an earlier run questions are paired, whether answered or not. The gate fails if more of
    them failed, or more were not answered, beyond chance (McNemar's test; Tango's with --margin),
    or if answers of the earlier run have no partner (--allow-missing).

    Exit status: 0 pass; 1 fail; 2 bad arguments, nothing was decided, or it passed and a file could
    not be written; 4 undecided or untestable.

    \b
    trustassay gate runs/new --max failed=10% --max not_answered=5%
    trustassay gate runs/new --min grounding.trust_score=60 \\
        --max grounding.errors=0
    trustassay gate runs/new --labels ratings.jsonl --min faithfulness.right=80%
    trustassay gate runs/new --no-worse-than runs/main --margin 5 \\
        --markdown gate.md
    trustassay gate runs/new --no-worse-than runs/main --junit gate.xml \\
        --undecided pass
    trustassay gate runs/new --no-worse-than runs/anchor --undecided pass
    """
    from trustassay.compare import gate_files, gate_rules
    from trustassay.compare.corrected import LabelFiles
    from trustassay.compare.gate import gate as gate_run

    # The default "0" is true as a text, so that it is compared here.
    other_flags = {"allow_missing": allow_missing != "0", "allow_other_judge": allow_other_judge}
    flags = list_given_flags(figure=figure, margin=margin, **other_flags)
    # These options are about earlier runs: without one they would be ignored.
    if flags and not no_worse_than:
        raise UsageError(f"{flags[0]}: has an effect with --no-worse-than alone")
    bounds = [gate_rules.parse_bound(text, at_least=True) for text in at_least]
    bounds += [gate_rules.parse_bound(text, at_least=False) for text in at_most]
    missing = gate_rules.parse_allowance(allow_missing)
    earlier = [
        gate_rules.EarlierRun(path, figure, margin, missing, allow_other_judge)
        for path in no_worse_than
    ]
    label_files = LabelFiles.from_options(**labels)
    result = gate_run(run, bounds, earlier, labels=label_files, seed=seed, sequential=sequential)
    # ``--undecided fail`` fails an untestable rule too; no option lets one pass.
    strict = result.result == "untestable" and undecided == "fail"
    counted_result = undecided if result.result == "undecided" or strict else result.result
    with results_on_output(not as_json):
        _show_gate(result)
        if counted_result != result.result:
            say(f"{result.result} counts as {counted_result} (--undecided)")
    if as_json:
        print_json(result.to_dict() | {"undecided_counts_as": undecided})
    # After the decision, which a file that cannot be written must not hide.
    status = STATUS[counted_result]
    if markdown:
        status = _write_file(markdown, gate_files.render_markdown(result).encode(), status)
    if junit:
        status = _write_file(junit, gate_files.render_junit(result, undecided), status)
    # After all files are written: a failed gate has a report too.
    raise typer.Exit(status)


def _write_file(path: Path, content: bytes, status: int) -> int:
    """Write a file, and return the exit status: that of the gate, or 2 if it passed."""
    try:
        write_atomic(path, content, private=False)
        say(f"written: {path}")
    except OSError as error:
        complain(one_line(f"{path}: {error.strerror or error}"))
        return status or 2
    return status


def _show_gate(result: "Gate") -> None:
    from trustassay.compare.changes import describe_outcome_changes
    from trustassay.compare.gate_files import interval_in_words, reason_of, value_of
    from trustassay.text.numbers import format_figure

    for outcomes in result.outcomes.values():
        say(one_line(outcomes.sentence))
    rows = [
        (
            item.name,
            item.result,
            value_of(item),
            interval_in_words(item),
            item.rule,
            reason_of(item),
        )
        for item in result.checks
    ]
    headings = ("figure", "result", "value", "95 % interval", "rule", "why")
    show_table(headings, rows, {"rule", "why"}, wide=True)
    for earlier in result.against:
        for name, changes in earlier.outcomes.items():
            say(one_line(f"{name} since {earlier.path}: {describe_outcome_changes(changes)}"))
        for name, figures in earlier.figures.items():
            # The first figure is the mean. It leaves answers out, so it follows the shares.
            for change in list(figures.values())[:1]:
                unit = change.figure.unit
                sides = [format_figure(item, unit) for item in (change.first, change.second)]
                values = " → ".join(sides) + (f" {unit}" if unit else "")
                say(
                    f"  {name}.{change.key} over the {change.questions:,} questions that it counts "
                    f"in both: {values} ({change.verdict})"
                )
        for name, answers in earlier.answers.items():
            show_worse(name, answers)
    for note in result.notes:
        say(one_line(f"note: {note}"))
    say(f"gate: {result.result}")
