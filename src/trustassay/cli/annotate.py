"""``trustassay annotate``: ratings by people, in the browser."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.errors import UsageError
from trustassay.report.terminal import say
from trustassay.runs.options import (
    LABELS,
    OUTPUT,
    AnswerSpan,
    Fields,
    Flag,
    Limit,
    LongestLine,
    Seed,
    SkipBad,
)
from trustassay.text.numbers import amount

if TYPE_CHECKING:
    from trustassay.people.annotate.project import AnnotationProject
    from trustassay.people.annotate.session import AnnotationSession
    from trustassay.people.label.calibration_work import CalibrationPromise


@with_options
def annotate(  # noqa: PLR0913 - one argument an option
    *,
    source: Annotated[
        Path | None,
        Flag("INPUT", "Answers to rate: a file as for `score`, or the folder of a run."),
    ],
    rater: Annotated[
        list[str],
        Flag("--rater", "A person who rates. Give one per person.", metavar="NAME", group=LABELS),
    ],
    rubric: Annotated[list[str], common.RUBRIC],
    out: Annotated[
        Path,
        Flag(
            "--out",
            "File of ratings. The same command continues it.",
            group=OUTPUT,
            default="ratings.jsonl",
        ),
    ],
    gold: Annotated[
        bool | None,
        Flag(
            "--gold/--no-gold",
            "Show the gold answers as a guide. Default: on if the rubric compares with them.",
            rare=True,
        ),
    ],
    together: Annotated[bool, Flag("--together", "Show all answers to a question on one page.")],
    pairs: Annotated[
        tuple[Path, Path] | None,
        Flag(
            "--pairs",
            "Two files or runs with answers to the same questions, in place of INPUT. Raters see "
            "two answers side by side and choose the better one.",
            metavar="A B",
        ),
    ],
    double: Annotated[
        float,
        Flag(
            "--double",
            "Share of the answers that all raters rate; the others are divided among them.",
            default=1.0,
            least=0,
            most=1,
            rare=True,
        ),
    ],
    again: Annotated[
        float,
        Flag(
            "--again",
            "Share of the answers that a rater sees a second time, later.",
            default=0.0,
            least=0,
            most=1,
            rare=True,
        ),
    ],
    per_group: Annotated[
        int | None,
        Flag(
            "--per-group",
            "Draw this many answers per model and domain (with --together and --pairs: "
            "questions per domain).",
            least=1,
            rare=True,
        ),
    ],
    plan: Annotated[
        Path | None,
        Flag(
            "--plan",
            "Rate only the answers of a plan of `label`, in its order. The plan may grow.",
        ),
    ],
    domain: common.Domain,
    fields: Fields,
    answer_span: AnswerSpan,
    limit: Limit,
    skip_bad: SkipBad,
    longest_line: LongestLine,
    seed: Seed,
    write_others: common.WriteOthers,
    host: common.Host,
    port: common.Port = 8765,
    public: common.Public = "",
    export: Annotated[
        Path | None,
        Flag(
            "--export",
            "Write a CSV sheet to fill in for each rater, then exit.",
            group=OUTPUT,
            rare=True,
        ),
    ],
    sheets: Annotated[
        list[Path],
        Flag(
            "--import",
            "Store the ratings of a filled sheet of --export, then exit. May be given again.",
            metavar="SHEET",
            rare=True,
        ),
    ],
) -> None:
    """Let people rate answers in the browser; each rater gets a private link.

    Raters see no model name, score or id. Each rating is stored immediately. After an interruption,
    run the same command again; the links stay the same. `agree` reads the file of ratings.

    \b
    trustassay annotate answers.jsonl --rater anna --rater bela
    trustassay annotate runs/one --rater anna --rubric truthfulness \\
        --rubric informativeness --again 0.1
    trustassay annotate --pairs runs/a runs/b --rater anna --rater bela \\
        --out pairs.jsonl
    trustassay annotate runs/one --plan runs/one.label.jsonl --rater anna
    trustassay annotate answers.jsonl --rater anna --export sheet.csv
    """
    from trustassay.metrics.judge import read_rubric
    from trustassay.people.annotate.items import RatingInputOptions
    from trustassay.people.annotate.project import AnnotateOptions, open_project
    from trustassay.people.label.plan import read_plan

    # Files of ratings go one way at a time: out to people, or back from them.
    if export and sheets:
        raise UsageError("--export and --import: expected only one of them")
    options = AnnotateOptions(
        rater,
        # Choices between two answers need no rubric; single answers have a general one by default.
        [read_rubric(name) for name in rubric or ([] if pairs else ["answer"])],
        gold,
        together,
        double,
        again,
        per_group,
        seed,
        RatingInputOptions(
            fields=fields,
            answer_span=answer_span,
            limit=limit,
            domain=domain,
            skip_bad=skip_bad,
            longest_line=longest_line,
        ),
        read_plan(plan) if plan else None,
    )
    out = _find_output(out, write_others=write_others)
    if options.plan and options.plan.purpose and not write_others:
        _check_owner(options.plan.path, "--plan")  # it grows
    project = open_project(source, options, pairs)
    for remark in project.material.remarks:
        say(remark)
    if export:
        from trustassay.people.annotate.sheets import write_sheets

        for name, path in zip(project.steps, write_sheets(project, export), strict=True):
            say(f"{name}: {amount(len(project.steps[name]), 'row')}: {path}")
    elif sheets:
        _import_sheets(project, out, sheets)
    else:
        _serve(project, out, host, port, public, _open_promise(source, project, out))


def _find_output(out: Path, *, write_others: bool) -> Path:
    """Return the file of ratings; refuse one of another user, or in a run with harmful links."""
    from trustassay.core.files import is_run_folder, resolve_output
    from trustassay.runs.folder import RunFolder

    if is_run_folder(out.parent):
        RunFolder(out.parent).check_entries()
        if not write_others:
            _check_owner(out.parent, "--out")
    if not write_others:
        _check_owner(out, "--out")
    return resolve_output(out)


def _check_owner(path: Path, option: str) -> None:
    from trustassay.core.files import is_foreign

    if is_foreign(path):
        advice = "add --write-others to write to it, or choose another file"
        raise UsageError(f"{option}: {path} belongs to another user; {advice}")


def _import_sheets(project: "AnnotationProject", out: Path, sheets: Sequence[Path]) -> None:
    import asyncio

    from trustassay.people.annotate.sheets import read_sheet, store_rows

    # All sheets are read before a rating is stored: a fault in the last one stores nothing.
    rows = [row for path in sheets for row in read_sheet(project, path)]
    if not rows:
        raise UsageError(f"{', '.join(map(str, sheets))}: no row has a rating; nothing was stored")
    with _open_session(project, out) as session:
        new_count = asyncio.run(store_rows(session, rows))
    say(f"stored {new_count:,} new or changed of {amount(len(rows), 'rating')}: {out}")


@contextmanager
def _open_session(project: "AnnotationProject", out: Path) -> "Iterator[AnnotationSession]":
    """Open the file of ratings, locked for this process until the block ends, and continue it."""
    from trustassay.core.files import make_private_folder
    from trustassay.people.annotate.session import AnnotationSession, RatingsFile

    make_private_folder(out.parent)
    # The file is locked while it is open, so that two servers cannot mix their ratings.
    with closing(RatingsFile(out)) as file:
        yield AnnotationSession(project, file, file.begin(project.start))


def _open_promise(
    source: Path | None, project: "AnnotationProject", out: Path
) -> "CalibrationPromise | None":
    """Return what is promised while people rate a plan for calibrate; ``None`` for others."""
    from trustassay.people.label.calibration_work import open_promise

    plan, rubrics = project.options.plan, project.options.rubrics
    if plan is None or plan.purpose == "" or source is None:
        return None
    if len(rubrics) > 1:
        raise UsageError(
            "--rubric: a plan for calibrate takes one label per answer; name one rubric"
        )
    return open_promise(source, plan, [out], rubrics[0])


def _serve(
    project: "AnnotationProject",
    out: Path,
    host: str,
    port: int,
    public: str,
    promise: "CalibrationPromise | None",
) -> None:
    import asyncio

    from trustassay.people.annotate.server import build_annotation_application, follow_plan
    from trustassay.report import serving
    from trustassay.report.serving import open_listener

    # The port first: if it is taken, the file of ratings is not touched.
    with open_listener(host, port) as listener, _open_session(project, out) as session:
        if promise:
            asyncio.run(follow_plan(session, promise))
            say(promise.missing)
        # Each rater has a link with a secret token, which stays the same when the command runs
        # again.
        links = serving.AccessLinks(out, list(project.steps))
        if warning := serving.warn_of_exposure(host):
            say(warning)
        for rater, state in session.raters.items():
            progress = f"{state.rated:,} of {len(state.steps):,} rated"
            say(
                f"{rater}: {serving.format_address(host, listener)}/{links.tokens[rater]} "
                f"({progress})"
            )
        say(f"ratings: {out}; Ctrl-C ends; run the same command again to continue")
        web_application = build_annotation_application(
            session, links, say, serving.AllowedHosts(host, public), promise
        )
        serving.serve(web_application, listener, session.drain)
