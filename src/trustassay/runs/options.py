"""The options of ``score`` and similar functions: name, type, flag, help and bounds of each.

A group of options is a :class:`typing.TypedDict`. Type checkers read it as the keywords of a Python
function, and :func:`check_keywords` checks them at run time. The :class:`Flag` of an option says
how the command line takes it (:mod:`trustassay.cli.options`); a command gets the group with the
options that an option belongs to (:class:`~trustassay.runs.intake.RunOptions` and its parts). The
texts that people read about an option are in ``options.csv``, with its bounds and the default that
``--help`` shows.
"""

import csv
import inspect
import io
import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from numbers import Integral, Real
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ForwardRef,
    Literal,
    TypedDict,
    TypeVar,
    get_args,
    get_origin,
)

from trustassay.backends import DEFAULT_EMBEDDER, DEFAULT_ENTAILER
from trustassay.backends.registry import describe_forms
from trustassay.errors import UnknownNameError, UsageError, did_you_mean, trim_traceback
from trustassay.text.limits import MAX_ANSWER_CHARACTERS

if TYPE_CHECKING:
    from trustassay.backends.resolve import (
        ChatChoice,
        EmbedderChoice,
        EntailerChoice,
        SimilarityChoice,
    )
    from trustassay.calls.batching import BatchingPolicy
    from trustassay.calls.prices import Budget, Prices
    from trustassay.core.capabilities import (
        EntityLinker,
        Retriever,
        SubstituteSource,
        TokenEmbedder,
    )
    from trustassay.core.metric import Metric
    from trustassay.runs.answering import Answering, AnswerPairing

    Models = ChatChoice | Sequence[ChatChoice] | Mapping[str, ChatChoice] | None
    WordSources = (
        str
        | SubstituteSource
        | Sequence[str | SubstituteSource]
        | Mapping[str, str | SubstituteSource]
        | None
    )

F = TypeVar("F", bound=Callable[..., Any])
Path_ = str | os.PathLike[str]
# A marker other than None, which is a default that `--help` may have to show.
UNSET: Any = inspect.Parameter.empty


@dataclass(frozen=True)
class Flag:
    """How an option appears on the command line, and its bounds."""

    help: str = ""
    """Its text in ``--help``; without it the option exists in Python only."""
    name: str = ""
    """The flag, if it is not derived from the option's name."""
    metavar: str | None = None
    """The placeholder for its value in ``--help``."""
    kind: Any = None
    """The type that the command line reads, if not the option's own."""
    default: Any = UNSET
    """The default as ``--help`` shows it."""
    least: float | None = None
    """Lower bound, which holds in Python as well."""
    most: float | None = None
    """Upper bound, on the command line only."""
    read: Callable[[Any], Any] | None = None
    """Converts what the command line read to the option's value."""
    several: bool = False
    """Whether ``read`` returns a mapping of several options."""
    positional: bool = False
    """Whether it is an argument and not an option."""


def Argument(text: str, metavar: str | None = None) -> Flag:
    """Return the :class:`Flag` of a positional argument."""
    return Flag(text, metavar=metavar, positional=True)


def read_pairs(
    option_texts: Sequence[str], flag: str, expected: str = "canonical=theirs"
) -> dict[str, str]:
    """Read options of the form ``KEY=VALUE``.

    Args:
        option_texts: the values of the flag. flag: its name, for messages.
        expected: the form that a message asks for.

    Raises:
        UsageError: a value has no equals sign, or an empty side.
    """
    result: dict[str, str] = {}
    for option in option_texts:
        key, separator, value = option.partition("=")
        if not (separator and key and value):
            raise UsageError(f"{flag}: expected {expected}, got {option!r}")
        result[key] = value
    return result


def _read_per_worker(texts: Sequence[str]) -> dict[str, float]:
    """Read the values of ``--per-worker``: ``cpus=N`` and ``gpus=N``."""
    result = {}
    for item in texts:
        name, _, text = item.partition("=")
        try:
            # The lookup raises KeyError for any other name, which gets the same message as a bad
            # number.
            result[{"cpus": "cpus", "gpus": "gpus"}[name]] = float(text)
        except (KeyError, ValueError):
            raise UsageError(f"--per-worker: expected cpus=N or gpus=N, got {item}") from None
    return result


def _read_rows() -> dict[str, dict[str, Any]]:
    """Return the fields of :class:`Flag` for each option; default and bounds are written as
    JSON."""
    text = files("trustassay.runs").joinpath("options.csv").read_text(encoding="utf-8")
    convert = dict.fromkeys(("default", "least", "most"), json.loads)
    result = {}
    for row in csv.DictReader(io.StringIO(text)):
        option, name = row.pop("option"), row["name"]
        # A name without dashes is the placeholder of an argument, and no flag.
        if name and not name.startswith("-"):
            row |= {"name": "", "metavar": name}
        # Empty cells are left out, so that the defaults of Flag apply.
        result[option] = {key: convert.get(key, str)(cell) for key, cell in row.items() if cell}
        result[option]["positional"] = row["name"] != name
    return result


ROW_OF_OPTION = _read_rows()
"""The content of ``options.csv``: fields of :class:`Flag` by option. Options of a single command
have its name in front of theirs; a name without dashes makes an argument, which is shown by this
name."""


def build_flag(option: str, kind: Any = None, **other_fields: Any) -> Flag:
    """Return the flag of an option in ``options.csv``.

    Args:
        option: its name. kind: the type that the command line reads.
        other_fields: fields of :class:`Flag` that the table cannot express.
    """
    return Flag(kind=kind, **ROW_OF_OPTION[option] | other_fields)


def _backend_flag(option: str, uri_forms: str = "") -> Flag:
    """Return the flag of a backend; ``uri_forms`` lists the forms of its URIs for the help text."""
    return build_flag(
        option, str | None, help=ROW_OF_OPTION[option]["help"].replace("FORMS", uri_forms)
    )


class BackendChoices(TypedDict, total=False):
    """Backends: each a URI, or an object of the right protocol; ``None`` counts as not given.

    judge, references: one, a list, or a mapping by name. backends: those of other packages'
    capabilities, by name.
    """

    model: Annotated["Models", _backend_flag("model", describe_forms("chat model"))]
    judge: Annotated[
        "Models",
        build_flag("judge", list[str], read=lambda given: given[0] if len(given) == 1 else given),
    ]
    generator: Annotated["Models", _backend_flag("generator")]
    references: Annotated["Models", build_flag("references", list[str])]
    second: Annotated["EntailerChoice | None", _backend_flag("second")]
    entailer: Annotated[
        "EntailerChoice | None",
        _backend_flag("entailer", describe_forms("entailer", DEFAULT_ENTAILER, "chat")),
    ]
    embedder: Annotated[
        "EmbedderChoice | None",
        _backend_flag("embedder", describe_forms("embedder", DEFAULT_EMBEDDER)),
    ]
    similarity: Annotated["SimilarityChoice | None", _backend_flag("similarity")]
    retriever: Annotated["str | Retriever | None", _backend_flag("retriever")]
    token_embedder: Annotated["str | TokenEmbedder | None", _backend_flag("token_embedder")]
    linker: Annotated[
        "str | EntityLinker | None", _backend_flag("linker", describe_forms("linker"))
    ]
    distractors: Annotated["WordSources", _backend_flag("distractors")]
    backends: Mapping[str, Any]


Limit = Annotated[int | None, build_flag("limit")]
SkipBad = Annotated[bool, build_flag("skip_bad")]
Fields = Annotated[Mapping[str, str], build_flag("fields")]
Turns = Annotated[Literal["last", "all"], build_flag("turns", str)]
Seed = Annotated[int, build_flag("seed")]
Unit = Annotated[str | None, build_flag("unit")]
Pool = Annotated[Path_ | None, build_flag("pool", Path | None)]
SamplesAtOnce = Annotated[int | None, build_flag("samples_at_once")]
LongestAnswer = Annotated[int, build_flag("longest_answer", default=MAX_ANSWER_CHARACTERS)]
MaxTokens = Annotated[int, build_flag("max_tokens")]
CalibratorFile = Annotated[Path_ | None, build_flag("calibrator", Path | None)]


class RecordOptions(TypedDict, total=False):
    """Which part of the input is read, and how."""

    limit: Limit
    fields: Fields
    skip_bad: SkipBad


class DrawOptions(TypedDict, total=False):
    """Which part of the samples is drawn at random, and how a grown input is treated."""

    append: Annotated[bool, build_flag("append")]
    sample: Annotated[str | int | None, build_flag("sample", str | None)]
    sample_by: Annotated[str | None, build_flag("sample_by")]


class SpendingOptions(TypedDict, total=False):
    """Where replies are shared, what they may cost, and how many are asked for at once.

    policy: the optimisations in use (:class:`~trustassay.calls.batching.BatchingPolicy`).
    """

    cache: Annotated[
        Path_ | None,
        build_flag(
            "cache", str, default="", read=lambda text: None if text == "off" else Path(text)
        ),
    ]
    prices: Annotated["Prices | Path_ | None", build_flag("prices", Path | None)]
    budget: Annotated["Budget | str | None", build_flag("budget", str | None)]
    calls_at_once: Annotated[int | None, build_flag("calls_at_once")]
    policy: "BatchingPolicy"


class SecondReadingOptions(TypedDict, total=False):
    """How much a second reader reads:
    :class:`~trustassay.judging.second_reader.SecondReaderOptions`."""

    second_share: Annotated[float, build_flag("second_share")]
    second_budget: Annotated[str | None, build_flag("second_budget")]
    second_alone: Annotated[bool, build_flag("second_alone")]


class ScorerOptions(BackendChoices, SpendingOptions, total=False):
    """Options of a scorer of single samples."""

    fields: Fields
    seed: Seed | None
    samples_at_once: SamplesAtOnce
    longest_answer: LongestAnswer
    second_alone: Annotated[bool, build_flag("second_alone")]
    report: bool


class RescoreOptions(BackendChoices, SpendingOptions, SecondReadingOptions, total=False):
    """How a stored run is scored again; the meanings are those of :class:`ScoreOptions`."""

    limit: Limit
    skip_bad: SkipBad
    seed: Seed | None
    unit: Unit
    pool: Pool
    samples_at_once: SamplesAtOnce
    longest_answer: LongestAnswer
    calibrator: CalibratorFile
    report: bool
    command: str | None
    why: str | None
    progress: bool | None
    answering: "Answering"
    pairing: "AnswerPairing"
    documents: Annotated[int, Flag(least=1)]
    diverse: Annotated[int | None, Flag(least=1)]


class ScoreOptions(RescoreOptions, DrawOptions, total=False):
    """How samples are read, filled, scored and paid for; see ``trustassay score --help``.

    fields: names of the input's fields by ours (``{"response": "answer"}``). unit: ``"question"``
    (the default), ``"answer"``, or a field of the samples. turns: ``"last"``, or ``"all"`` answers
    of a chat log, whose unit is then the conversation. longest_answer: see
    :class:`~trustassay.text.limits.TextLimits`. report: whether to
    write ``report.html``; by default if there is a folder. command: what began the run, for
    messages. why: the metric was chosen, where nobody named it. progress: whether it is
    shown; if not said, in a notebook alone.
    sample: how many answers are drawn, 2000 or ``"1%"``. sample_by: fields of strata, with commas.
    append: ``out`` may hold the run of the input when it had fewer samples. drawn: of what a
    rescored run was. calls_from: a file of calls to start from. answering, pairing, documents,
    diverse: fields of :class:`~trustassay.runs.fill.FillOptions`. cache: ``None`` for none. prices:
    prices by model, or their file. budget: ``"5usd"``, ``"200k"``.
    """

    fields: Fields
    turns: Turns
    drawn: Mapping[str, Any] | None
    calls_from: Path | None


Engine = Annotated[str, build_flag("engine")]
"""Where samples are scored: by this process, or by workers on a cluster."""


class Cluster(TypedDict, total=False):
    """What the workers on a cluster are, and where they keep their shards."""

    workers: Annotated[int | None, build_flag("workers")]
    cpus: Annotated[float, build_flag("cpus", list[str], read=_read_per_worker, several=True)]
    gpus: Annotated[float, Flag(least=0)]
    shards: Annotated[int | None, build_flag("shards")]
    store: Annotated[str | None, build_flag("store")]
    scratch: Annotated[str | None, build_flag("scratch")]


class EngineOptions(ScoreOptions, Cluster, total=False):
    """Also those of a run on a cluster, of Ray."""


class KnownLabelOptions(TypedDict, total=False):
    """Labels of some answers, which correct a judge's share of good ones."""

    labels: Annotated[Sequence[Path_], build_flag("labels", list[Path])]
    labels_of: Annotated[Path_ | None, build_flag("labels_of", Path | None)]
    right_from: Annotated[float | None, build_flag("right_from")]
    right_words: Annotated[Sequence[str], build_flag("right_words", list[str])]
    label_columns: Annotated[Mapping[str, str], build_flag("label_columns")]


class AnswerOptions(TypedDict, total=False):
    """How models are asked for answers: fields of :class:`~trustassay.runs.answering.Answering`."""

    style: Annotated[str, build_flag("style")]
    prompt: Annotated[Path_ | None, build_flag("prompt", Path | None)]
    examples: Annotated[Path_ | None, build_flag("examples", Path | None)]
    temperature: Annotated[float, build_flag("temperature")]
    max_tokens: MaxTokens
    logprobs: Annotated[int | None, build_flag("logprobs", int | None)]


CLUSTER = tuple(Cluster.__annotations__)
"""The keywords that only a run on a cluster takes."""


def read_annotation(hint: Any) -> tuple[Any, Flag]:
    """Return the type of an option and its flag, from its annotation."""
    if get_origin(hint) is Annotated:
        kind, *metadata = get_args(hint)
        return kind, next((item for item in metadata if isinstance(item, Flag)), Flag())
    # In `Seed | None` the Annotated type is a member of a union.
    for part in get_args(hint):
        if get_origin(part) is Annotated:
            kind, flag = read_annotation(part)
            return kind | None, flag
    return hint, Flag()


# ScoreOptions and its bases are part of EngineOptions: `__annotations__` of a TypedDict includes
# those of its bases.
FLAGS = {
    name: read_annotation(hint)[1]
    for group in (EngineOptions, AnswerOptions)
    for name, hint in group.__annotations__.items()
}


def find_flag(name: str) -> str:
    """Return the command-line flag of an option, by its name in Python."""
    return FLAGS.get(name, Flag()).name or f"--{name.replace('_', '-')}"


def check_bounds(options: Mapping[str, Any]) -> None:
    """Raise :class:`UsageError` if an option is below its lower bound; unknown options are
    ignored."""
    for name, value in options.items():
        bound = FLAGS[name].least if name in FLAGS else None
        if value is not None and bound is not None and value < bound:
            raise UsageError(f"{name}: expected {bound} or more, got {value:g}")


# Keywords of Python functions --------------------------------------------------------------------


# Numbers are checked against the abstract types, so that numpy's numbers pass.
KINDS: Mapping[Any, tuple[Any, str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a text"),
    Mapping: (Mapping, "a mapping"),
    type(None): (type(None), "None"),
}
"""By plain type: the class that a value must have, and its name in messages."""


def check_keywords(
    keywords: Mapping[str, Any],
    group: type,
    other_names: Collection[str] = (),
    metrics: "Sequence[Metric]" = (),
) -> None:
    """Refuse keywords that are unknown, or whose value has a wrong plain type.

    Args:
        keywords: as the user gave them.
        group: the ``TypedDict`` of allowed options. other_names: further allowed names.
        metrics: the metrics in use.

    Raises:
        UnknownNameError: names all unknown keywords, each with the nearest known one; for an
            option of one of the metrics it says how to pass it.
        UsageError: names all numbers, texts and switches of a wrong type.
    """
    hints = group.__annotations__
    names = {*hints, *other_names}
    faults = []
    for name in keywords:
        if name in names:
            continue
        # A frequent mistake: `score(samples, profile="paper")` instead of
        # "grounding:profile=paper".
        owner = next((metric for metric in metrics if name in metric.__dataclass_fields__), None)  # type: ignore[attr-defined]
        if owner is None:
            faults.append(did_you_mean("keyword", name, names))
        else:
            text = f'metrics="{owner.name}:{name}=..."'
            faults.append(f"{name!r} is an option of the metric {owner.name}; give it by {text}")
    if faults:
        raise UnknownNameError("; ".join(faults))
    if faults := [
        f"{name}: expected {expected}, got {value!r:.60}"
        for name, value in keywords.items()
        if name in hints
        and (expected := _find_expected_kind(value, read_annotation(hints[name])[0]))
    ]:
        raise UsageError("; ".join(faults))


def _find_expected_kind(value: Any, hint: Any) -> str | None:
    """Return the names of the expected types if a value has none of them, otherwise ``None``."""
    kinds = [get_origin(kind) or kind for kind in get_args(hint) or (hint,)]
    if get_origin(hint) is Mapping:
        kinds = [Mapping]
    # Protocols, dataclasses and sequences are left to whoever uses the option.
    if not all(kind in KINDS for kind in kinds):
        return None
    # bool is a subclass of int, but `limit=True` is a mistake.
    if isinstance(value, bool):
        fits = bool in kinds
    else:
        fits = isinstance(value, tuple(KINDS[kind][0] for kind in kinds))
    return None if fits else " or ".join(KINDS[kind][1] for kind in kinds)


def shows_keywords(group: type) -> Callable[[F], F]:
    """Decorate a function with ``**options``: its signature lists the options of ``group``.

    The function also becomes an entry point for users (:func:`trustassay.errors.trim_traceback`).
    """

    def decorate(inner: F) -> F:
        function = trim_traceback(inner)
        signature = inspect.signature(inner)
        # `**options` is replaced by its contents, for `help()`, notebooks and the documentation.
        parameters = {k: v for k, v in signature.parameters.items() if v.kind is not v.VAR_KEYWORD}
        for name, hint in group.__annotations__.items():
            kind = read_annotation(hint)[0]
            # Types behind TYPE_CHECKING are quoted; the text is shown without importing them.
            text = kind.__forward_arg__ if isinstance(kind, ForwardRef) else kind
            option = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=text)
            parameters.setdefault(name, option)
        function.__signature__ = signature.replace(parameters=[*parameters.values()])  # type: ignore[attr-defined]
        return function

    return decorate
