"""The options of ``score`` and its like, each written once: name, type, flag, help and bounds.

A group of options is a :class:`typing.TypedDict`. Type checkers read it as the keywords of a Python
function, :mod:`trustassay.keywords` checks them. The :class:`Flag` of an option is how the
command line takes it (:mod:`trustassay.cli.options`); a command gets the group with the options
that were given, ready to be the keywords of a Python function. The default is that of the dataclass
that an option ends in (:class:`~trustassay.runs.intake.RunOptions` and its parts).
"""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    TypedDict,
    get_args,
    get_origin,
)

from trustassay.backends import DEFAULT_EMBEDDER, DEFAULT_ENTAILER
from trustassay.backends.registry import forms
from trustassay.errors import UsageError
from trustassay.texts import LONGEST_ANSWER

if TYPE_CHECKING:
    from trustassay.answering.styles import Answering, Pairing
    from trustassay.backends.resolve import (
        ChatChoice,
        EmbedderChoice,
        EntailerChoice,
        SimilarityChoice,
    )
    from trustassay.calls.batching import Policy
    from trustassay.calls.budget import Budget
    from trustassay.calls.prices import Prices
    from trustassay.capabilities import EntityLinker, Retriever, SubstituteSource, TokenEmbedder

    Models = ChatChoice | Sequence[ChatChoice] | Mapping[str, ChatChoice] | None
    WordSources = (
        str
        | SubstituteSource
        | Sequence[str | SubstituteSource]
        | Mapping[str, str | SubstituteSource]
        | None
    )

Path_ = str | os.PathLike[str]
MOST = 1_000_000_000
"""The largest number that options which count something take."""
UNSET: Any = inspect.Parameter.empty


@dataclass(frozen=True)
class Flag:
    """How an option is given on the command line, and between which numbers it lies.

    help: without it, it is an option in Python alone. name: the flag, if it is not that of the
    option. kind: what the command line reads, if not the option's type. default: as ``--help``
    shows it. least, most: bounds; the lower one holds in Python as well. read: from what the
    command line read to the option's value; with ``several`` to a mapping of options. old: an
    earlier name of the option. positional: an argument, and no option.
    """

    help: str = ""
    name: str = ""
    metavar: str | None = None
    kind: Any = None
    default: Any = UNSET
    least: float | None = None
    most: float | None = None
    read: Callable[[Any], Any] | None = None
    several: bool = False
    old: str = ""
    hidden: bool = False
    positional: bool = False


def Argument(text: str, metavar: str | None = None) -> Flag:  # noqa: N802 - reads as Flag does
    """Return the :class:`Flag` of an argument."""
    return Flag(text, metavar=metavar, positional=True)


def pairs(given: Sequence[str], flag: str, expected: str = "canonical=theirs") -> dict[str, str]:
    """Read ``key=value`` options.

    Raises:
        UsageError: one has no equals sign.
    """
    found: dict[str, str] = {}
    for option in given:
        key, separator, value = option.partition("=")
        if not (separator and key and value):
            raise UsageError(f"{flag}: expected {expected}, got {option!r}")
        found[key] = value
    return found


def _cache(text: str) -> Path | None:
    return None if text == "off" else Path(text)


def _per_worker(given: Sequence[str]) -> dict[str, float]:
    found = {}
    for one in given:
        name, _, text = one.partition("=")
        try:
            found[{"cpus": "cpus", "gpus": "gpus"}[name]] = float(text)
        except (KeyError, ValueError):
            raise UsageError(f"--per-worker: expected cpus=N or gpus=N, got {one}") from None
    return found


def _uri(text: str, **others: Any) -> Flag:
    return Flag(text, metavar="URI", kind=str | None, **others)


def _uris(text: str, **others: Any) -> Flag:
    return Flag(text, metavar="[NAME=]URI", kind=list[str], default=[], **others)


class BackendChoices(TypedDict, total=False):
    """Backends: each a URI, or an object of the right protocol; ``None`` counts as not given.

    judge, references: one, a list, or a mapping by name. backends: those of other packages'
    capabilities, by name.
    """

    model: Annotated["Models", _uri(f"The model to ask: {forms('chat model')}.")]
    judge: Annotated[
        "Models",
        _uris(
            "A judge, a URI as for --model. May be given more than once.",
            read=lambda given: given[0] if len(given) == 1 else given,
        ),
    ]
    generator: Annotated[
        "Models", _uri("A model that writes wrong and corrected answers, a URI as for --model.")
    ]
    references: Annotated[
        "Models",
        _uris(
            "A model whose answers are compared, a URI as for --model. May be given more than "
            "once.",
            name="--reference",
        ),
    ]
    entailer: Annotated[
        "EntailerChoice | None",
        _uri(
            f"The entailment model: {forms('entailer', DEFAULT_ENTAILER, 'chat')}, or a chat model "
            "(openai:MODEL[@BASE_URL][?repeats=N], chat:hf:ID, ...)."
        ),
    ]
    embedder: Annotated[
        "EmbedderChoice | None",
        _uri(f"The embedding model: {forms('embedder', DEFAULT_EMBEDDER)}."),
    ]
    similarity: Annotated[
        "SimilarityChoice | None",
        _uri(
            "The similarity of two texts: cosine[:EMBEDDER] (the default), consistency[:ENTAILER], "
            "bertscore:hf:ID-or-path[?layer=N], lexical; of two answers to a question: novel, "
            "agreement[:ENTAILER]; python:MODULE:OBJECT."
        ),
    ]
    retriever: Annotated[
        "str | Retriever | None",
        _uri(
            "The retriever, for samples without documents and for factcheck: "
            "bm25:PATH[?index=FOLDER]."
        ),
    ]
    token_embedder: Annotated[
        "str | TokenEmbedder | None",
        _uri("The token embedding model: hf:ID-or-path[?layer=N]."),
    ]
    linker: Annotated[
        "str | EntityLinker | None",
        _uri(f"The entity linker: {forms('linker')}."),
    ]
    distractors: Annotated[
        "WordSources",
        _uri(
            "Sources of words for distractors: embedding[:FILE],pos (the default), dbpedia[:URL], "
            "python:MODULE:OBJECT; several with commas."
        ),
    ]
    backends: Mapping[str, Any]


Limit = Annotated[int | None, Flag("Take only the first N records.", least=1, most=MOST)]
SkipBad = Annotated[bool, Flag("Skip faulty records, and count them.", default=False)]
Fields = Annotated[
    Mapping[str, str],
    Flag(
        "Read a field from another name; dots descend into objects. May be given more than once.",
        "--field",
        "CANONICAL=THEIRS",
        kind=list[str],
        default=[],
        read=lambda given: pairs(given, "--field"),
    ),
]
Seed = Annotated[int, Flag("Seed of all random choices.", default=0, least=0)]
Unit = Annotated[
    str | None,
    Flag(
        "What is independent in an interval: question (all answers to one), answer, or a field of "
        "the samples, as the number of a conversation. Default: question.",
        metavar="FIELD",
    ),
]
Pool = Annotated[
    Path_ | None,
    Flag(
        "Samples for metrics that compare a sample with others. Default: those of the input. For a "
        "shard, the file that shard --whole writes.",
        kind=Path | None,
    ),
]
SamplesAtOnce = Annotated[
    int | None,
    Flag(
        "Samples in progress at once. Default: enough to keep the endpoints busy.",
        least=1,
        old="concurrency",
    ),
]
LongestAnswer = Annotated[
    int,
    Flag(
        "Characters of the longest answer that is assessed, and a tenth of those of all passages.",
        default=LONGEST_ANSWER,
        least=1,
    ),
]
MaxTokens = Annotated[int, Flag("Maximum length of an answer, in tokens.", default=300, least=1)]
CalibratorFile = Annotated[
    Path_ | None,
    Flag(
        "A file that calibrate wrote: answers get a probability of being right, and those above "
        "its thresholds are accepted.",
        "--calibrator",
        "FILE",
        kind=Path | None,
    ),
]


class Records(TypedDict, total=False):
    """Which part of the input is read, and how."""

    limit: Limit
    fields: Fields
    skip_bad: SkipBad


class Spending(TypedDict, total=False):
    """Where replies are shared, what they may cost, and how many are asked for at once.

    policy: the optimisations in use (:class:`~trustassay.calls.batching.Policy`).
    """

    cache: Annotated[
        Path_ | None,
        Flag(
            "Folder of the cache in which runs share the replies of endpoints, or off. Default: "
            "TRUSTASSAY_CACHE, else a folder in the user's cache.",
            metavar="DIR|off",
            kind=str,
            default="",
            read=_cache,
        ),
    ]
    prices: Annotated[
        "Prices | Path_ | None",
        Flag(
            "Prices by model, in US dollars per million tokens: "
            '{"MODEL": {"prompt": 1, "reply": 4}}.',
            kind=Path | None,
        ),
    ]
    budget: Annotated[
        "Budget | str | None",
        Flag(
            "Stop before more than this is spent: 5usd, or 200000 (tokens).",
            metavar="USD|TOKENS",
            kind=str | None,
        ),
    ]
    calls_at_once: Annotated[
        int | None,
        Flag("Calls to one endpoint at once, at most. Default: as its URI says, else 64.", least=1),
    ]
    policy: "Policy"


class ScorerOptions(BackendChoices, Spending, total=False):
    """Options of a scorer of single samples."""

    fields: Fields
    seed: Seed | None
    samples_at_once: SamplesAtOnce
    longest_answer: LongestAnswer
    report: bool


class RescoreOptions(BackendChoices, Spending, total=False):
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
    pairing: "Pairing"
    documents: Annotated[int, Flag(least=1)]
    diverse: Annotated[int | None, Flag(least=1)]


class ScoreOptions(RescoreOptions, total=False):
    """How samples are read, filled, scored and paid for; see ``trustassay score --help``.

    fields: names of the input's fields by ours (``{"response": "answer"}``). unit: ``"question"``
    (the default), ``"answer"``, or a field of the samples. longest_answer: see
    :class:`~trustassay.texts.TextLimits`. report: whether ``report.html`` is written; if there is a
    folder, unless said otherwise. command: what began the run, for messages. why: the metric was
    chosen, where nobody named it. progress: whether it is shown; if not said, in a notebook alone.
    calls_from: a file of calls to start from. answering, pairing, documents, diverse: fields of
    :class:`~trustassay.runs.fill.Filling`. cache: ``None`` for none. prices: prices by model, or
    their file. budget: ``"5usd"``, ``"200k"``.
    """

    fields: Fields
    calls_from: Path | None


Engine = Annotated[
    str,
    Flag(
        "local, or ray for workers on a Ray cluster: the one at ADDRESS or RAY_ADDRESS, else "
        "one that is started on this machine (see docs/big-runs.md).",
        metavar="local|ray[:ADDRESS]",
        default="local",
    ),
]
"""Where samples are scored: by this process, or by workers on a cluster."""


class Cluster(TypedDict, total=False):
    """What the workers on a cluster are, and where they keep their shards."""

    workers: Annotated[
        int | None,
        Flag("Workers of --engine ray. Default: as many as have room.", least=1),
    ]
    cpus: Annotated[
        float,
        Flag(
            "What each worker takes: cpus=2, gpus=1 (or a part, gpus=0.5). Default: one CPU.",
            "--per-worker",
            "cpus=N|gpus=N",
            kind=list[str],
            default=[],
            least=0,
            read=_per_worker,
            several=True,
        ),
    ]
    gpus: Annotated[float, Flag(least=0)]
    shards: Annotated[
        int | None,
        Flag(
            "Shards of a new run of --engine ray. Default: four for each worker, more if they "
            "would be larger than 5,000 samples.",
            least=1,
        ),
    ]
    store: Annotated[
        str | None,
        Flag(
            "Where workers keep copies of their shards: a folder that all machines reach, or a URL "
            "of fsspec (s3://..., gs://...). Not needed on one machine.",
            metavar="DIR|URL",
        ),
    ]
    scratch: Annotated[
        str | None,
        Flag(
            "Folder on each machine's own disk for shards in progress. Default: the temporary "
            "folder.",
            metavar="DIR",
        ),
    ]


class EngineOptions(ScoreOptions, Cluster, total=False):
    """Also those of a run on a cluster: :class:`~trustassay.cluster.ray_cluster.ClusterOptions`."""


class AnswerOptions(TypedDict, total=False):
    """How models are asked for answers: fields of :class:`~trustassay.answering.Answering`."""

    style: Annotated[
        str,
        Flag(
            "How the model is asked for answers: closed-book, rag, rag-refusal, icl, own; auto "
            "takes own if there is own_prompt, rag-refusal if there are documents, else "
            "closed-book.",
            default="auto",
        ),
    ]
    prompt: Annotated[
        Path_ | None, Flag("Your own template in place of the style's.", kind=Path | None)
    ]
    examples: Annotated[
        Path_ | None,
        Flag(
            "Answered questions to show before the question; a file like INPUT.", kind=Path | None
        ),
    ]
    temperature: Annotated[
        float, Flag("Sampling temperature; 0 for the most likely answer.", default=0.0, least=0)
    ]
    max_tokens: MaxTokens


CLUSTER = tuple(Cluster.__annotations__)
"""The keywords that only a run on a cluster takes."""


def declared(hint: Any) -> tuple[Any, Flag]:
    """Return the type of an option and its flag, from its annotation."""
    if get_origin(hint) is Annotated:
        kind, *metadata = get_args(hint)
        return kind, next((one for one in metadata if isinstance(one, Flag)), Flag())
    for part in get_args(hint):  # Seed | None
        if get_origin(part) is Annotated:
            kind, flag = declared(part)
            return kind | None, flag
    return hint, Flag()


FLAGS = {
    name: declared(hint)[1]
    for group in (EngineOptions, AnswerOptions)
    for name, hint in group.__annotations__.items()
}


def flag_of(name: str) -> str:
    """Return the flag of an option by its name in Python."""
    return FLAGS.get(name, Flag()).name or f"--{name.replace('_', '-')}"


def check_bounds(given: Mapping[str, Any]) -> None:
    """Raise :class:`UsageError` if an option is below its lowest value; others are ignored."""
    for name, value in given.items():
        least = FLAGS[name].least if name in FLAGS else None
        if value is not None and least is not None and value < least:
            raise UsageError(f"{name}: expected {least} or more, got {value:g}")
