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
            "Minimum of a share of all questions (passed, failed, not_answered) or of a figure of "
            "summary.json, in its unit or with a per cent sign: passed=80%, "
            "grounding.trust_score=60, faithfulness.mean=90%. May be given more than once.",
            metavar="FIGURE=NUMBER[%]",
        ),
    ],
    at_most: Annotated[
        list[str],
        Flag(
            "--max",
            "Maximum, as for --min: failed=10%, not_answered=5%, faithfulness.errors=0.",
            metavar="FIGURE=NUMBER[%]",
        ),
    ],
    no_worse_than: Annotated[
        list[Path],
        Flag(
            "--no-worse-than",
            "Earlier run of the same questions. The gate fails if significantly more questions "
            "failed or were not answered than there; questions are paired. May be given more "
            "than once, for example for the last run and for a pinned run.",
            metavar="RUN",
        ),
    ],
    figure: Annotated[
        list[str],
        Flag(
            "--figure",
            "With --no-worse-than: another figure that must not get worse, besides the shares of "
            "all questions. May be given more than once.",
            metavar="METRIC.FIGURE",
        ),
    ],
    margin: Annotated[
        float,
        Flag(
            "--margin",
            "With --no-worse-than: tolerated worsening, below 100; for a share in percentage "
            "points, for a figure of --figure in per cent of its range.",
            default=0.0,
            least=0,
            most=100,
        ),
    ],
    allow_missing: Annotated[
        str,
        Flag(
            "--allow-missing",
            "With --no-worse-than: how many answers of the earlier run may be unpaired, that is, "
            "missing in this run; a number or a percentage.",
            metavar="N|P%",
            default="0",
            rare=True,
        ),
    ],
    allow_other_judge: Annotated[
        bool,
        Flag(
            "--allow-other-judge",
            "With --no-worse-than: compare runs although their judges or the options of a metric "
            "differ.",
            rare=True,
        ),
    ],
    sequential: Annotated[
        bool,
        Flag(
            "--sequential",
            "With --min and --max: use wider intervals, which stay valid if you check a growing "
            "run repeatedly.",
            rare=True,
        ),
    ],
    undecided: Annotated[
        Literal["pass", "fail", "undecided"],
        Flag(
            "--undecided",
            "How an undecided rule counts in the exit status and in JUnit. An untestable rule "
            "never passes.",
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
    """Pass or fail a run in continuous integration, by limits or against earlier runs.

    A rule fails if its figure is significantly beyond the limit, passes if the whole 95 % interval
    is within the limit, and is undecided otherwise (--undecided). An undecided rule says how many
    more questions would decide it. The p-values of all rules are corrected together (Holm), so that
    a run that is no worse fails in at most 2.5 of 100 cases. A rule without enough data for a test
    is untestable. Counts such as METRIC.errors have no interval and are compared without a test.

    Limits apply to shares of all questions: passed, failed and not_answered (for a metric without a
    pass threshold: scored and not_scored), for each metric, or METRIC.failed for one metric. They
    also apply to means and other figures over scored answers: such a rule fails if more than 5 % of
    the questions have no score, and is undecided if the answers of a model were excluded (no
    --model), unless --max not_answered (not_scored) is given. With --labels, METRIC.right is the
    share of answers that are right by the labels.

    Compared with an earlier run, questions are paired, whether answered or not. The gate fails if
    significantly more of them failed or were not answered (McNemar's test; Tango's with --margin),
    or if answers of the earlier run are unpaired (--allow-missing).

    Exit status: 0 pass; 1 fail; 2 bad arguments, no decision, or it passed but a file could not be
    written; 4 undecided or untestable.

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
        raise UsageError(f"{flags[0]}: works only with --no-worse-than")
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
    from trustassay.text.numbers import amount, format_figure

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
    headings = ("figure", "result", "value", "95 % interval", "rule", "reason")
    show_table(headings, rows, {"rule", "reason"}, wide=True)
    for earlier in result.against:
        for name, changes in earlier.outcomes.items():
            changes_text = describe_outcome_changes(changes)
            say(one_line(f"{name} compared with {earlier.path}: {changes_text}"))
        for name, figures in earlier.figures.items():
            # The first figure is the mean. It leaves answers out, so it follows the shares.
            for change in list(figures.values())[:1]:
                unit = change.figure.unit
                sides = [format_figure(item, unit) for item in (change.first, change.second)]
                values = " → ".join(sides) + (f" {unit}" if unit else "")
                questions = amount(change.questions, "question")
                say(
                    f"  {name}.{change.key} over {questions} scored in both runs: {values} "
                    f"({change.verdict})"
                )
        for name, answers in earlier.answers.items():
            show_worse(name, answers)
    for note in result.notes:
        say(one_line(f"note: {note}"))
    say(f"gate: {result.result}")
