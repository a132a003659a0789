"""What commands share: options, errors for people, and the printing of a run."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from trustassay.engine.api import Run
    from trustassay.engine.intake import BadInputError
    from trustassay.metric import Figure, Summary

FAULTS_SHOWN = 20
FAILURES_SHOWN = 20

Entailer = Annotated[
    str,
    typer.Option(
        help="Who judges entailment: lexical, embedded, hf:ID-or-path, python:MODULE:FUNCTION.",
        metavar="URI",
    ),
]
Metrics = Annotated[
    list[str],
    typer.Option(
        "--metric",
        help="A metric, with options after a colon: grounding:profile=paper,correctness=em. "
        "May be given more than once.",
        metavar="NAME[:OPTION=VALUE,...]",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON on standard output.")]
Concurrency = Annotated[int, typer.Option(help="Samples in flight at once.", min=1)]


@contextmanager
def errors_for_people() -> Iterator[None]:
    """Turn the errors that a user can mend into a message and exit status 2."""
    from trustassay.capabilities import BackendError
    from trustassay.data.reading import InputError
    from trustassay.engine.folder import RunFolderError
    from trustassay.engine.intake import BadInputError
    from trustassay.metric import UnknownNameError

    try:
        yield
    except KeyboardInterrupt:
        say("interrupted; the same command goes on where this one stopped")
        raise typer.Exit(130) from None
    except BadInputError as error:
        show_faults(error)
        raise typer.Exit(2) from None
    except (InputError, RunFolderError, UnknownNameError, BackendError, ValueError) as error:
        say(f"trustassay: {error}")
        raise typer.Exit(2) from None
    except BrokenPipeError:
        raise  # typer ends quietly then
    except OSError as error:
        say(f"trustassay: {error}")
        raise typer.Exit(2) from None


def show_faults(error: BadInputError) -> None:
    """Print every fault with its place; a kind that fills the file is cut short, and counted."""
    kinds: Counter[str] = Counter()
    for fault in error.faults:
        for problem in fault.problems:
            kind = (
                re.sub(r"\[\d+\]", "[]", problem.field) + ": " + problem.message.split(", got")[0]
            )
            kinds[kind] += 1
            if kinds[kind] <= FAULTS_SHOWN:
                say(one_line(f"{fault.where}: {problem}"))
    for kind, count in kinds.items():
        if count > FAULTS_SHOWN:
            say(one_line(f"... {count - FAULTS_SHOWN} more: {kind}"))
    if error.count > len(error.faults):
        say(f"... only the first {len(error.faults):,} faulty records are listed")
    records = "faulty record" if error.count == 1 else "faulty records"
    say(f"{error.count:,} {records}; nothing was started (--skip-bad goes on without them)")


def say(text: str) -> None:
    """Print a line for people, on standard error, with control characters made visible."""
    shown = "".join(c if c.isprintable() or c in "\n\t" else f"<U+{ord(c):04X}>" for c in text)
    print(shown, file=sys.stderr)


def one_line(text: str) -> str:
    """Return ``text`` with its line breaks made visible: what stands in a file forges no line."""
    return "\u23ce".join(text.splitlines()) if len(text.splitlines()) > 1 else text


def show(run: Run, *, as_json: bool) -> None:
    """Print a finished run and exit with status 1 where samples failed."""
    content = json.loads((run.path / "summary.json").read_bytes())
    failed = sum(summary.failed for summary in run.summaries.values())
    for metric in run.metrics:
        show_summary(metric.title, run.summaries[metric.name], metric.figures)
    if failed:
        show_failures(run, failed)
    if run.outcome.intake.faulty:
        say(f"left out as faulty: {run.outcome.intake.faulty}")
    if (run.path / "report.html").exists():
        say(f"report: {run.path / 'report.html'}")
    say(f"run:    {run.path}")
    if as_json:
        print(json.dumps(content, indent=2, ensure_ascii=False))
    if failed:
        raise typer.Exit(1)


def show_summary(title: str, summary: Summary, figures: Mapping[str, Figure]) -> None:
    """Print the headline figures of a metric as a table, and say what does not apply."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_column("95 % interval", justify="right")
    table.add_column("n", justify="right")
    table.add_column("what it is", overflow="fold")
    for key, value in summary.values.items():
        figure = figures.get(key)
        if figure is None or not figure.headline:
            continue
        interval = summary.intervals.get(key)
        table.add_row(
            key,
            "n/a" if value is None else f"{value:.1f}",
            f"{interval[0]:.1f} to {interval[1]:.1f}" if interval else "",
            str(summary.support.get(key, summary.n)),
            summary.not_applicable.get(key, figure.explanation),
        )
    Console(stderr=True, highlight=False, markup=False).print(table)
    profile = summary.settings.get("profile")
    of = f", profile {profile}" if profile else ""
    say(f"{summary.n - summary.failed} of {summary.n} samples scored{of}")


def show_failures(run: Run, failed: int) -> None:
    """List the samples that failed."""
    say(f"failed: {failed}")
    shown = 0
    for assessment in run.assessments:
        if assessment.error is not None:
            say(one_line(f"  {assessment.id}: {assessment.metric}: {assessment.error}"))
            shown += 1
        if shown == FAILURES_SHOWN:
            if failed > shown:
                say(f"  ... and {failed - shown} more, in assessments.jsonl")
            break


def pairs(options: list[str], flag: str) -> dict[str, str]:
    """Read ``key=value`` options.

    Raises:
        ValueError: one has no equals sign.
    """
    found: dict[str, Any] = {}
    for option in options:
        key, separator, value = option.partition("=")
        if not (separator and key and value):
            raise ValueError(f"{flag}: expected canonical=theirs, got {option!r}")
        found[key] = value
    return found
