"""What commands share: options and error messages."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Optional

import typer

from trustassay.cli.interrupting import INTERRUPTED, at_work
from trustassay.errors import UsageError
from trustassay.show.terminal import INTERNAL, complain, one_line, say
from trustassay.tracebacks import keep_internal_error, place_of

if TYPE_CHECKING:
    from trustassay.answering import Answering
    from trustassay.calls.client import CallOptions
    from trustassay.calls.retry import Endpoint
    from trustassay.data.records import Untold
    from trustassay.runs.intake import BadInputError
FAULTS_SHOWN = 20
FAILURES_SHOWN = 20
MOST = 1_000_000_000
"""The largest number that options which count something take."""

Entailer = Annotated[
    str,
    typer.Option(
        help="The entailment model: embedded, lexical, hf:ID-or-path, python:MODULE:FUNCTION, "
        "or a chat model (openai:MODEL, chat:hf:ID, ...).",
        metavar="URI",
    ),
]
Embedder = Annotated[
    str,
    typer.Option(
        help="The embedding model: embedded, openai:MODEL[@BASE_URL], hf:ID-or-path.",
        metavar="URI",
    ),
]
Metrics = Annotated[
    list[str],
    typer.Option(
        "--metric",
        help="A metric and, after a colon, its options: grounding:profile=paper,correctness=em. "
        "May be given more than once. Default: what the samples bring decides.",
        metavar="NAME[:OPTION=VALUE,...]",
    ),
]
Model = Annotated[
    Optional[str],  # noqa: UP045 - typer reads it
    typer.Option(
        help="The model to ask: openai:MODEL[@BASE_URL], anthropic:MODEL, gemini:MODEL, "
        "hf:ID-or-path, replay:FILE, python:MODULE:FUNCTION.",
        metavar="URI",
        show_default=False,
    ),
]
Style = Annotated[
    str,
    typer.Option(
        help="How the model is asked for answers: closed-book, rag, rag-refusal, icl, own; auto "
        "takes own if there is own_prompt, rag-refusal if there are documents, else closed-book.",
    ),
]
PromptFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--prompt", help="Your own template in place of the style's.", show_default=False),
]
Examples = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        help="Answered questions to show before the question; a file like INPUT.",
        show_default=False,
    ),
]
Temperature = Annotated[
    float, typer.Option(help="Sampling temperature; 0 for the most likely answer.", min=0)
]
MaxTokens = Annotated[int, typer.Option(help="Maximum length of an answer, in tokens.", min=1)]
Cache = Annotated[
    str,
    typer.Option(
        help="Folder of the cache in which runs share the replies of endpoints, or off. "
        "Default: TRUSTASSAY_CACHE, else a folder in the user's cache.",
        metavar="DIR|off",
        show_default=False,
    ),
]
PricesFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--prices",
        help="Prices by model, in US dollars per million tokens: "
        '{"MODEL": {"prompt": 1, "reply": 4}}.',
        show_default=False,
    ),
]
BudgetText = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--budget",
        help="Stop before more than this is spent: 5usd, or 200000 (tokens).",
        metavar="USD|TOKENS",
        show_default=False,
    ),
]
Fields = Annotated[
    list[str],
    typer.Option(
        "--field",
        help="Read a field from another name; dots descend into objects. May be given more than "
        "once.",
        metavar="CANONICAL=THEIRS",
    ),
]
RatingFields = Annotated[
    list[str],
    typer.Option(
        "--field",
        help="Where a column of --ratings is called otherwise: item=question_id; if it has several "
        "rubrics, which one: rating=truthfulness. May be given again.",
        metavar="NAME=COLUMN",
        show_default=False,
    ),
]
Limit = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(help="Take only the first N records.", min=1, max=MOST, show_default=False),
]
Seed = Annotated[int, typer.Option(help="Seed of all random choices.", min=0)]
Unit = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        help="What is independent in an interval: question (all answers to one), answer, or a "
        "field of the samples, as the number of a conversation. Default: question.",
        metavar="FIELD",
        show_default=False,
    ),
]
Length = Annotated[
    int,
    typer.Option(
        help="Maximum number of characters that a perturbation adds or mistypes, or of words that "
        "it changes.",
        min=1,
        max=MOST,
    ),
]
LastCode = Annotated[
    int,
    typer.Option(
        "--range", help="The highest code point that the perturbation codes draws.", min=0
    ),
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Skip faulty records, and count them.")]
Source = Annotated[
    Path,
    typer.Argument(
        metavar="INPUT",
        help="Answers: .jsonl, .json, .csv, .tsv, .xlsx, .parquet, a folder saved by datasets, "
        "or - for standard input.",
        show_default=False,
    ),
]
Sources = Annotated[
    list[Path],
    typer.Argument(
        metavar="INPUT...",
        help="Answers: .jsonl, .json, .csv, .tsv, .xlsx, .parquet, a folder saved by datasets, "
        "or - for standard input. Several files are pooled, as those of several models.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON on standard output.")]
CalibratorFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--calibrator",
        help="A file that calibrate wrote: answers get a probability of being right, and those "
        "above its thresholds are accepted.",
        metavar="FILE",
        show_default=False,
    ),
]
LongestAnswer = Annotated[
    int,
    typer.Option(
        help="Characters of the longest answer that is assessed, and a tenth of those of all "
        "passages.",
        min=1,
    ),
]


@contextmanager
def errors_for_people() -> Iterator[None]:
    """Turn the errors that a user can fix into a message and exit status 2, others into 70."""
    import_module("trustassay.api")  # before the work: an import is best not interrupted
    from trustassay.data.records import UntoldError
    from trustassay.errors import BackendError, FaultsError
    from trustassay.files import is_full
    from trustassay.runs.folder import RunFolder
    from trustassay.runs.intake import BadInputError

    RunFolder.last_locked = None
    try:
        with at_work():
            yield
    except KeyboardInterrupt:
        complain("interrupted; run the same command again to continue")
        raise typer.Exit(INTERRUPTED) from None
    except BadInputError as error:
        show_faults(error)
        raise typer.Exit(2) from None
    except FaultsError as error:
        complain(f"trustassay: {len(error.faults)} faults; nothing was started")
        for fault in error.faults:
            complain(one_line(f"  {fault}"))
        raise typer.Exit(2) from None
    except UntoldError as error:
        complain(f"trustassay: {error.message}")
        show_untold(error.untold)
        raise typer.Exit(2) from None
    except (UsageError, BackendError) as error:
        complain(f"trustassay: {error}")
        raise typer.Exit(2) from None
    except BrokenPipeError:
        raise  # typer ends quietly then
    except OSError as error:
        known = error.filename is not None and error.strerror
        complain(
            f"trustassay: {error.filename}: {error.strerror}" if known else f"trustassay: {error}"
        )
        if is_full(error):
            complain(
                "finished work is kept; free some space and run the same command again to continue"
            )
            raise typer.Exit(1) from None
        raise typer.Exit(2) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        internal_error(error)


def command_line() -> str:
    """Return the command that is running, as a user would type it."""
    return shlex.join(["trustassay", *sys.argv[1:]])


def default_metrics(
    source: Path | list[Path], fields: Mapping[str, str], named: Mapping[str, Any]
) -> tuple[list[str], str]:
    """Return the metrics for files where none was named, and why; say both.

    ``named`` are the backends that were.
    """
    from trustassay import api
    from trustassay.workflows.choose_metric import naming

    metrics, why = api.default_metrics(source, fields, retrieves="retriever" in named)
    say(f"{naming(metrics)}: {why}")
    return metrics, why


def source_of(paths: list[Path]) -> Path | list[Path]:
    """Return the path of one file alone, or all of several."""
    return paths[0] if len(paths) == 1 else paths


def end_if_stopped(stopped: str | None) -> None:
    """End with status 1 where work on a file was stopped, and say how it goes on."""
    if stopped is not None:
        complain(f"stopped: {stopped}; run the same command again to continue")
        raise typer.Exit(1)


def end_if_failed(failed: Mapping[str, str]) -> None:
    """End with status 1 where samples have no record, and show the first of them."""
    for sample_id, error in list(failed.items())[:FAILURES_SHOWN]:
        complain(one_line(f"  {sample_id}: {error}"))
    if failed:
        complain(f"failed: {len(failed):,}")
        raise typer.Exit(1)


def show_faults(error: BadInputError) -> None:
    """Print every fault with its place; of a frequent kind only the first ones, and a count."""
    from trustassay.data.records import summarised, untold_of

    kinds: Counter[str] = Counter()
    for line, kind in summarised(error.faults):
        kinds[kind] += 1
        if kinds[kind] <= FAULTS_SHOWN:
            complain(one_line(line))
    for kind, count in kinds.items():
        if count > FAULTS_SHOWN:
            complain(one_line(f"... {count - FAULTS_SHOWN} more: {kind}"))
    if error.count > len(error.faults):
        complain(f"... only the first {len(error.faults):,} faulty records are listed")
    if untold := untold_of(error.faults):
        problems = [problem for one in error.faults for problem in one.problems]
        alone = all(problem.message.startswith("is missing") for problem in problems)
        whole = all(one.untold is not None and one.untold.complete for one in error.faults)
        show_untold(untold._replace(complete=alone and whole))
    records = "faulty record" if error.count == 1 else "faulty records"
    complain(f"{error.count:,} {records}; nothing was started (--skip-bad skips them)")


def show_untold(untold: Untold) -> None:
    """Print the fields that were found, and how to name those that are missing: this command with
    their names, where nothing else stands in its way.
    """
    complain(f"found the fields {untold.found}")
    named = [part for k, v in untold.nameable.items() for part in ("--field", f"{k}={v or 'NAME'}")]
    if named:
        fields = ", ".join(untold.nameable)
        if untold.complete and "-" not in sys.argv:
            complain(f"this names the {fields}:")
            complain(f"  {shlex.join(['trustassay', *sys.argv[1:], *named])}", fold=False)
        else:
            guessed = all(untold.nameable.values())
            put = "" if guessed else ", where NAME is one of these fields"
            complain(f"add what names the {fields}{put}:")
            complain(f"  {shlex.join(named)}", fold=False)
    if "documents" in untold.fields and "documents" not in untold.nameable:
        complain(
            "there are no passages to judge by: give --retriever bm25:FILE with passages, gold "
            "answers beside the answers, or a --metric that needs neither"
        )


def call_options(
    cache: str,
    prices: Path | None = None,
    budget: str | None = None,
    calls_at_once: int | None = None,
) -> CallOptions:
    """Read the options of model calls.

    Raises:
        ValueError, OSError: the budget or the file of prices is not valid.
    """
    from trustassay.calls.budget import Budget
    from trustassay.calls.client import CallOptions
    from trustassay.calls.prices import Prices
    from trustassay.calls.store import default_cache

    return CallOptions(
        default_cache() if cache == "" else None if cache == "off" else Path(cache),
        Prices.read(prices) if prices else Prices(),
        Budget.parse(budget) if budget else None,
        calls_at_once=calls_at_once,
    )


def answering(
    style: str,
    prompt: Path | None,
    examples: Path | None,
    temperature: float,
    max_tokens: int,
) -> Answering:
    """Read the options for asking a model for answers.

    Raises:
        BadInputError, InputError, ValueError: the style, the prompt or the examples are not valid.
    """
    from trustassay.answering import Answering
    from trustassay.data.reading import read_samples
    from trustassay.data.records import Fault
    from trustassay.runs.intake import BadInputError

    shown = list(read_samples(examples, fields={})) if examples else []
    if faults := [found for found in shown if isinstance(found, Fault)]:
        raise BadInputError(faults, len(faults))
    samples = [found.sample for found in shown if not isinstance(found, Fault)]
    return Answering(style, prompt, samples, temperature, max_tokens)


def show_endpoints(endpoints: Mapping[str, Endpoint]) -> None:
    """Print how often endpoints failed, and how."""
    for address, endpoint in endpoints.items():
        if endpoint.failures:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in endpoint.failures.items())
            say(f"{address}: {endpoint.sent:,} tries; failed: {kinds}")


def pairs(options: list[str], flag: str, expected: str = "canonical=theirs") -> dict[str, str]:
    """Read ``key=value`` options.

    Raises:
        ValueError: one has no equals sign.
    """
    found: dict[str, Any] = {}
    for option in options:
        key, separator, value = option.partition("=")
        if not (separator and key and value):
            raise UsageError(f"{flag}: expected {expected}, got {option!r}")
        found[key] = value
    return found


def internal_error(error: Exception) -> NoReturn:
    """Say that the program is at fault and where its traceback is, and exit with status 70.

    The traceback is in the folder of the run that this process worked on, if there is one.
    """
    from trustassay.runs.folder import RunFolder

    kept = keep_internal_error(RunFolder.last_locked, error)
    where = f"; the traceback is in {kept}" if kept else "; its traceback could not be written"
    told = f"internal error, no fault of the input: {type(error).__name__} at {place_of(error)}"
    complain(one_line(f"trustassay: {told}{where}"))
    raise typer.Exit(INTERNAL)
