"""Options and error messages that several commands share."""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from trustassay.backends import DEFAULT_EMBEDDER, DEFAULT_ENTAILER
from trustassay.backends.registry import describe_forms
from trustassay.cli.interrupting import INTERRUPTED, at_work
from trustassay.core.files import is_disk_full
from trustassay.core.sample import LONGEST_LINE_MIB
from trustassay.core.tracebacks import locate_error, write_internal_error
from trustassay.errors import BackendError, FaultsError, UsageError
from trustassay.report.terminal import INTERNAL, complain, one_line, say
from trustassay.runs.options import (
    AT_LEAST,
    CHANCE,
    FLAGS,
    INPUT,
    LABELS,
    MODELS,
    OUTPUT,
    POSITIVE,
    SERVER,
    TRAINING,
    AnswerOptions,
    Flag,
    RecordOptions,
)
from trustassay.text.numbers import amount

if TYPE_CHECKING:
    from trustassay.calls.retry import Endpoint
    from trustassay.input.records import UnknownFields
    from trustassay.runs.answering import Answering
    from trustassay.runs.intake import BadInputError
# Failures that are listed one by one; all are in the run's folder.
FAILURES_SHOWN = 20
MAX_FIELDS_LISTED = 10
"""Fields of a record that are listed where a missing one cannot be guessed."""

Model = Annotated[str | None, replace(FLAGS["model"], kind=str | None, read=None, metavar="URI")]
# Typer asks for a value where the default is an ellipsis.
NeededModels = Annotated[list[str], replace(FLAGS["model"], default=...)]
Entailer = Annotated[
    str,
    Flag(
        "--entailer",
        f"The entailment model: {describe_forms('entailer', without='chat')}, or a chat model "
        "(openai:MODEL, chat:hf:ID, ...).",
        metavar="URI",
        group=MODELS,
        default=DEFAULT_ENTAILER,
    ),
]
Embedder = Annotated[
    str,
    Flag(
        "--embedder",
        f"The embedding model: {describe_forms('embedder')}.",
        metavar="URI",
        group=MODELS,
        default=DEFAULT_EMBEDDER,
        rare=True,
    ),
]
FullTraining = Annotated[
    bool, Flag("--full", "Train all weights instead of LoRA adapters.", group=TRAINING)
]
Epochs = Annotated[float, Flag("--epochs", "Passes over the training data.", group=TRAINING)]
TrainingSteps = Annotated[
    int | None,
    Flag("--steps", "Optimizer steps, instead of --epochs.", group=TRAINING, least=1),
]
BatchSize = Annotated[int, Flag("--batch", "Conversations per step.", group=TRAINING, least=1)]
LearningRate = Annotated[
    float | None,
    Flag("--learning-rate", "Learning rate. Default: 2e-4; with --full, 2e-5.", group=TRAINING),
]
TestShare = Annotated[
    float,
    Flag("--test-share", "Share of questions kept for testing, from 0 to below 1.", group=TRAINING),
]
Metrics = Annotated[
    list[str],
    Flag(
        "--metric",
        "A metric and, after a colon, its options: grounding:profile=paper,correctness=em. "
        "Can be repeated. Default: chosen from the fields of the samples.",
        metavar="NAME[:OPTION=VALUE,...]",
        group=MODELS,
    ),
]
AllowMissingReferences = Annotated[
    bool,
    Flag(
        "--allow-missing-references",
        "fewl: also score answers for which some references failed, from the references that "
        "answered, and count the failures. Short for fewl:allow_missing_references=yes.",
        group=MODELS,
        rare=True,
    ),
]
RatingFields = Annotated[
    Mapping[str, str],
    Flag(
        "--field",
        "Read a column of the ratings under its own name: item=question_id. With several rubrics, "
        "choose one: rating=truthfulness. Can be repeated.",
        metavar="NAME=COLUMN",
        group=INPUT,
        rare=True,
    ),
]
Domain = Annotated[
    str,
    Flag(
        "--domain",
        "The field that holds a sample's domain; dots lead into nested fields.",
        group=INPUT,
        default="domain",
        rare=True,
    ),
]
OpenReport = Annotated[bool, Flag("--open", "Open the report in a browser.", group=OUTPUT)]
FinishedRuns = Annotated[list[Path], Flag("RUN...", "Folders of finished runs.")]
RunsOrTable = Annotated[
    list[str],
    Flag(
        "SOURCE...",
        "Folders of finished runs, or one file with a row for each answer and a column for each "
        "score and label: .csv, .tsv, .xlsx, .jsonl, .json, .parquet, or traces.",
    ),
]
RankMetric = Annotated[
    str | None,
    Flag(
        "--metric",
        "The metric to use, if the run has several; for files of answers, the metric to score them "
        "with. Default: fewl:form=agreement.",
        metavar="NAME[:OPTION=VALUE,...]",
        group=MODELS,
    ),
]
Page = Annotated[
    Path | None,
    Flag("--page", "Write a web page with tables and charts.", metavar="FILE", group=OUTPUT),
]
DryRun = Annotated[
    bool,
    Flag("--dry-run", "Estimate the calls, and make none.", group=OUTPUT, rare=True),
]
LABEL = Flag(
    "--label",
    "The field or column (with --ratings, of that file) that says whether an answer is right or "
    "how good it is: 0 and 1, a level, a number, or words such as yes and no. Dots lead into "
    "nested fields. Default of study and calibrate without --ratings: label.",
    metavar="FIELD",
    group=LABELS,
)
RATINGS = Flag(
    "--ratings",
    "Human ratings, as `annotate` writes them or `agree` reads them, pooled into one label per "
    "answer; or a table with a column id and the column that --label names.",
    group=LABELS,
)
Ratings = Annotated[Path | None, RATINGS]
Positive = Annotated[list[str], POSITIVE]
AtLeast = Annotated[float | None, AT_LEAST]
Machine = Annotated[
    list[str],
    Flag(
        "--machine",
        "A rater that is a judge, not a person. Can be repeated.",
        metavar="RATER",
        group=LABELS,
        rare=True,
    ),
]
Levels = Annotated[
    str | None,
    Flag(
        "--levels",
        "All levels of the scale, the lowest first, separated by commas: 1..5, numbers or words. "
        "Without it, words are categories without an order.",
        metavar="LEVELS",
        group=LABELS,
    ),
]
RUBRIC = Flag(
    "--rubric",
    "The rubric: truthfulness, informativeness, verdict, answer, code, categories, or a YAML file. "
    "Default: answer; for pairs, none.",
    metavar="NAME|FILE",
    group=LABELS,
)
Resamples = Annotated[
    int,
    Flag(
        "--resamples", "How often questions are resampled.", group=CHANCE, default=2000, least=100
    ),
]
Host = Annotated[
    str,
    Flag(
        "--host",
        "The address to listen on; 0.0.0.0 admits other machines.",
        group=SERVER,
        default="127.0.0.1",
    ),
]
WriteOthers = Annotated[
    bool,
    Flag("--write-others", "Also write ratings to runs and files that others own.", rare=True),
]
Port = Annotated[
    int,
    Flag("--port", "The port to listen on; 0 picks a free one.", group=SERVER, least=0, most=65535),
]
Public = Annotated[
    str,
    Flag(
        "--public",
        "The host name under which a proxy serves the page, such as rate.example.org. Requests "
        "for other names are refused.",
        metavar="HOST",
        group=SERVER,
    ),
]
Source = Annotated[
    str,
    Flag(
        "INPUT",
        "Answers: .jsonl, .json, .csv, .tsv, .xlsx, .parquet, a folder, a pattern in "
        "quotes, s3://..., duckdb:SELECT ..., or - for standard input.",
    ),
]
Sources = Annotated[
    list[str],
    Flag(
        "INPUT...",
        "Answers: .jsonl, .json, .csv, .tsv, .xlsx, .parquet, a folder, a pattern in "
        "quotes, s3://..., duckdb:SELECT ..., or - for standard input. Several files are "
        "pooled, for example one for each model.",
    ),
]
Json = Annotated[
    bool, Flag("--json", "Print the summary as JSON on standard output.", group=OUTPUT)
]


@contextmanager
def errors_for_people() -> Iterator[None]:
    """Turn errors that a user can fix into a message and exit status 2, others into status 70."""
    import_module("trustassay.api")  # before the work: an import is best not interrupted
    from trustassay.input.records import UnknownFieldsError
    from trustassay.runs.folder import RunFolder
    from trustassay.runs.intake import BadInputError

    # A traceback belongs to the run of this command, not to an earlier one of this process.
    RunFolder.last_locked = None
    try:
        with at_work():
            yield
    except KeyboardInterrupt:
        complain("interrupted; run the same command again to continue")
        raise typer.Exit(INTERRUPTED) from None
    except (UsageError, BackendError, FaultsError, UnknownFieldsError, BadInputError) as error:
        if isinstance(error, BadInputError):
            show_faults(error)
        elif isinstance(error, FaultsError):
            complain(f"trustassay: {len(error.faults)} faults; nothing was started")
            for fault in error.faults:
                complain(one_line(f"  {fault}"))
        elif isinstance(error, UnknownFieldsError):
            complain(f"trustassay: {error.message}")
            show_unknown_fields(error.unknown_fields)
        else:
            complain(f"trustassay: {error}")
        raise typer.Exit(2) from None
    except (BrokenPipeError, typer.Exit, typer.Abort):
        raise  # typer ends quietly at a broken pipe
    except OSError as error:
        # Errors of the system have a file and a reason; others only a message.
        is_from_system = error.filename is not None and error.strerror
        complain(
            f"trustassay: {error.filename}: {error.strerror}"
            if is_from_system
            else f"trustassay: {error}"
        )
        # A full disk is no mistake in the command: status 1, and the run can be continued.
        if is_disk_full(error):
            complain(
                "finished work is kept; free some space, then run the same command to continue"
            )
            raise typer.Exit(1) from None
        raise typer.Exit(2) from None
    except Exception as error:
        internal_error(error)


def command_line() -> str:
    """Return the command that is running, as a user would type it."""
    return shlex.join(["trustassay", *sys.argv[1:]])


def default_metrics(
    source: str | list[str], records: RecordOptions, given_backends: Mapping[str, Any]
) -> tuple[list[str], str]:
    """Choose, print and return the metrics for files if the user named none, and the reason.

    Args:
        records: how the user wants the files to be read.
        given_backends: the backends that the user gave.
    """
    from trustassay.input.reading import InputFiles
    from trustassay.runs.choose_metric import choose_metric, describe_metrics

    result = choose_metric(
        InputFiles.from_paths(source),
        records.get("fields"),
        sheet=records.get("sheet"),
        answer_span=records.get("answer_span"),
        longest_line=records.get("longest_line", LONGEST_LINE_MIB),
        retrieves="retriever" in given_backends,
    )
    say(f"{describe_metrics(result.metrics)}: {result.reason}")
    return result.metrics, result.reason


def join_sources(paths: list[str]) -> str | list[str]:
    """Return the path itself if there is only one, else all of them."""
    return paths[0] if len(paths) == 1 else paths


def run_folder(
    out: Path | None, source: str | Path | list[str], records: RecordOptions, **settings: Any
) -> Path:
    """Return the folder that the user gave, or one that the same command finds again.

    Args:
        records: options of the input, which change the folder.
        settings: whatever else makes it another run.
    """
    from trustassay.runs.intake import default_folder

    settings |= {"limit": records.get("limit"), "fields": records.get("fields", {})}
    # Without these options, folders of earlier versions are found again.
    settings |= {name: records[name] for name in ("sheet", "answer_span") if name in records}
    return out or default_folder(source, **settings)


def show_faults(error: "BadInputError") -> None:
    """Print every fault with its place; of a frequent kind, the first ones and a count."""
    from trustassay.input.records import find_common_unknown_fields, summarise_faults

    for line in summarise_faults(error.faults, error.records):
        complain(one_line(line))
    if error.count > len(error.faults):
        complain(f"... only the first {len(error.faults):,} faulty records are shown")
    # Skipping all records would leave nothing to score.
    hint = "" if error.count == error.records else " (--skip-bad skips them)"
    outcome = f"{amount(error.count, 'faulty record')}; nothing was started{hint}"
    if unknown_fields := find_common_unknown_fields(error.faults):
        problems = [problem for fault in error.faults for problem in fault.problems]
        # A complete repair can be proposed only if missing fields are the only fault in all
        # records.
        only_missing = all(problem.message.startswith("is missing") for problem in problems)
        is_complete = all(
            fault.unknown_fields is not None and fault.unknown_fields.complete
            for fault in error.faults
        )
        complete = unknown_fields._replace(complete=only_missing and is_complete)
        show_unknown_fields(complete, outcome)
    else:
        complain(outcome)


def show_unknown_fields(unknown_fields: "UnknownFields", outcome: str = "") -> None:
    """Print the options that name the missing fields, and what is read with them.

    Without a guess, the fields of the input and the beginnings of their values are printed.

    Args:
        unknown_fields: the missing fields.
        outcome: what happened, to be printed before them in the same line.
    """
    lead = f"{outcome}; " if outcome else ""
    fields = ", ".join(unknown_fields.nameable)
    name_options = [
        part
        for field, name in unknown_fields.nameable.items()
        for part in ("--field", f"{field}={name or 'NAME'}")
    ]
    has_names = all(unknown_fields.nameable.values())
    if unknown_fields.shape:
        complain(one_line(f"{lead}{unknown_fields.shape}"))
    elif name_options and not (has_names or unknown_fields.values):
        complain(f"{lead}add the field {fields} to these records")
    elif name_options:
        # The whole command again, to be copied; standard input cannot be read twice.
        if unknown_fields.complete and "-" not in sys.argv:
            complain(f"{lead}this command names the {fields}:")
            name_options = ["trustassay", *sys.argv[1:], *name_options]
        else:
            which = "" if has_names else ", where NAME is one of the fields below"
            complain(f"{lead}name the field with the {fields}{which}:")
        # Not folded: a line break would be copied too.
        complain(f"  {shlex.join(name_options)}", fold=False)
    elif outcome:
        # One of them may hold the passages.
        heading = "; the records also have these fields:" if unknown_fields.values else ""
        complain(f"{outcome}{heading}")
    if name_options and has_names and not unknown_fields.shape:
        for field, beginning in unknown_fields.preview.items():
            complain(one_line(f"  {field} read: {beginning}"))
    else:
        for name, beginning in islice(unknown_fields.values.items(), MAX_FIELDS_LISTED):
            complain(one_line(f"  {name}: {beginning}"))
        if len(unknown_fields.values) > MAX_FIELDS_LISTED:
            left_out = len(unknown_fields.values) - MAX_FIELDS_LISTED
            complain(f"  and {amount(left_out, 'other field')}")
    if "documents" in unknown_fields.fields and "documents" not in unknown_fields.nameable:
        complain(
            "there are no passages to judge by: give --retriever bm25:FILE, gold answers in the "
            "field `answers`, or a --metric that needs neither"
        )


def build_answering(answer_options: AnswerOptions) -> "Answering":
    """Return how a model is asked for answers, from the options of the command.

    Raises:
        BadInputError, InputError, UsageError: the style, the prompt or the examples are not valid.
    """
    from trustassay.input.reading import read_samples
    from trustassay.input.records import InputFault
    from trustassay.runs.answering import Answering
    from trustassay.runs.intake import BadInputError

    options: dict[str, Any] = dict(answer_options)
    if path := options.pop("examples", None):
        records = list(read_samples(path, fields={}))
        if faults := [record for record in records if isinstance(record, InputFault)]:
            raise BadInputError(faults, len(faults))
        options["examples"] = [
            record.sample for record in records if not isinstance(record, InputFault)
        ]
    return Answering(**options)


def show_endpoints(endpoints: "Mapping[str, Endpoint]") -> None:
    """Print how often calls to each endpoint failed, by kind of failure."""
    for address, endpoint in endpoints.items():
        if endpoint.failures:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in endpoint.failures.items())
            say(f"{address}: {amount(endpoint.sent, 'try', 'tries')}; failed: {kinds}")


def internal_error(error: Exception) -> NoReturn:
    """Report an error of the program itself, and exit with status 70.

    The traceback is written into the folder of the run that this process worked on, if there is
    one; the message says where it is.
    """
    from trustassay.runs.folder import RunFolder

    path = write_internal_error(RunFolder.last_locked, error)
    location = f"; traceback: {path}" if path else "; the traceback could not be written"
    message = (
        f"internal error, not caused by the input: {type(error).__name__} at {locate_error(error)}"
    )
    complain(one_line(f"trustassay: {message}{location}"))
    raise typer.Exit(INTERNAL)


def allow_missing_references(metrics: Sequence[str]) -> list[str]:
    """Return metrics as ``--metric`` takes them, with the option of ``fewl`` that is asked for.

    Raises:
        UsageError: ``fewl`` is not among them.
    """
    result = []
    for metric in metrics:
        name, _, options = metric.partition(":")
        if name == "fewl":
            options = ",".join(filter(None, (options, "allow_missing_references=yes")))
        result.append(f"{name}:{options}" if options else name)
    if result == list(metrics):
        raise UsageError("--allow-missing-references: needs --metric fewl")
    return result
