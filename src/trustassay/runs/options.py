"""The options of ``score`` and similar functions: each is declared once, here.

A group of options is a :class:`typing.TypedDict`. Type checkers read it as the keywords of a Python
function, :func:`check_keywords` checks them at run time, and :mod:`trustassay.cli.options` makes
the options of the command line from it. Options of a single command are declared in its signature.

1. :class:`Flag`, which says how the command line takes an option, and the headings of ``--help``.
2. The options, in groups.
3. The checks of keywords and of bounds.
"""

import dataclasses
import inspect
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
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
from trustassay.core.sample import LONGEST_LINE_MIB
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

# Headings in `--help`.
ARGUMENTS = "Arguments"
OPTIONS = "Options"
INPUT = "Input"
MODELS = "Metrics and models"
SECOND_READER = "Second reader"
ASKING = "Asking a model for answers"
TRAINING = "Training"
LABELS = "Human labels and ratings"
CHANCE = "Randomness"
COST = "Cost and speed"
FOLLOWING = "Growing files"
DISTRIBUTED = "Distributed runs"
SERVER = "Server"
INTEGRATIONS = "Other endpoints"
BLOCKING = "Withheld answers"
OUTPUT = "Output"
HELP = "Help"
HEADINGS = (
    *(ARGUMENTS, OPTIONS, INPUT, MODELS, SECOND_READER, ASKING, TRAINING, LABELS, CHANCE, COST),
    *(FOLLOWING, DISTRIBUTED, SERVER, INTEGRATIONS, BLOCKING, OUTPUT, HELP),
)
"""All headings, in the order of ``--help``; options that only one command has come first."""
RARE_HEADINGS = frozenset(
    {SECOND_READER, ASKING, TRAINING, CHANCE, FOLLOWING, DISTRIBUTED, SERVER, BLOCKING}
)
"""Headings of which all options are rare."""


@dataclass(frozen=True)
class Flag:
    """How an option appears on the command line, and its bounds."""

    name: str = ""
    """The flag, and its short form after a space; a name without dashes makes an argument. Without
    a name the option exists in Python only."""
    help: str = ""
    """Its text in ``--help``."""
    metavar: str | None = None
    """The placeholder for its value in ``--help``."""
    group: str = OPTIONS
    """The heading above it in ``--help``."""
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
    rare: bool = False
    """Whether ``--help-all`` alone shows it, where a command has many options; all options below
    :data:`RARE_HEADINGS` are rare."""


def read_pairs(
    option_texts: Sequence[str],
    flag: str,
    expected: str = "canonical=theirs",
    several: Collection[str] = (),
) -> dict[str, Any]:
    """Read options of the form ``KEY=VALUE``.

    Args:
        option_texts: the values of the flag. flag: its name, for messages.
        expected: the form that a message asks for.
        several: keys that may be given more than once; then their value is a list.

    Raises:
        UsageError: a value has no equals sign, or an empty side; another key is given twice.
    """
    values: dict[str, list[str]] = {}
    for option in option_texts:
        key, separator, value = option.partition("=")
        if not (separator and key and value):
            raise UsageError(f"{flag}: expected {expected}, got {option!r}")
        values.setdefault(key, []).append(value)
    for key, texts in values.items():
        if len(texts) > 1 and key not in several:
            raise UsageError(f"{flag}: {key} is given twice, as {' and '.join(texts)}")
    return {key: texts if len(texts) > 1 else texts[0] for key, texts in values.items()}


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


BACKEND = Flag(
    "--backend",
    "A backend for a role: generator (writes wrong and corrected answers), similarity, retriever, "
    "token-embedder, linker (finds entities), distractors (word sources), or a role that has an "
    "option of its own, such as judge. Can be repeated.",
    metavar="ROLE=URI",
    group=MODELS,
    kind=list[str],
    default=[],
    rare=True,
)
BACKEND_ROLES: Mapping[str, str] = {
    "generator": "generator",
    "similarity": "similarity",
    "retriever": "retriever",
    "token-embedder": "token_embedder",
    "linker": "linker",
    "distractors": "distractors",
    "reference": "references",
    "second": "second",
    "model": "model",
    "judge": "judge",
    "entailer": "entailer",
    "embedder": "embedder",
}
"""The keyword in Python of each role that ``--backend`` takes."""


def group_backends(
    texts: Sequence[str], roles: Collection[str] = BACKEND_ROLES
) -> dict[str, list[str]]:
    """Return the URIs of ``--backend ROLE=URI`` by role.

    Args:
        roles: those that the command has.

    Raises:
        UsageError: a value is not of this form, or the command has no such role.
    """
    result: dict[str, list[str]] = {}
    for text in texts:
        role, _, uri = text.partition("=")
        if not uri:
            raise UsageError(f"--backend: expected ROLE=URI, got {text!r}")
        if role not in roles:
            raise UsageError(f"--backend: {did_you_mean('role', role, roles)}")
        result.setdefault(role, []).append(uri)
    return result


def read_models(uris: Sequence[str]) -> str | Sequence[str]:
    """Return the models of an option as Python functions take them: one alone, or a list."""
    return uris[0] if len(uris) == 1 else uris


def read_backends(texts: Sequence[str]) -> dict[str, Any]:
    """Return the values of ``--backend`` as keywords of Python functions."""
    result: dict[str, Any] = {}
    for role, uris in group_backends(texts).items():
        # Several models can be assessed, judges and references; of other roles there is one.
        if len(uris) > 1 and role not in ("reference", "judge", "model"):
            raise UsageError(f"--backend {role}: expected one, got {len(uris)}")
        result[BACKEND_ROLES[role]] = uris if len(uris) > 1 or role == "reference" else uris[0]
    return result


class BackendChoices(TypedDict, total=False):
    """Backends: each a URI, or an object of the right protocol; ``None`` counts as not given.

    model, judge, references: one, a list, or a mapping by name. backends: those of other packages'
    capabilities, by name.
    """

    model: Annotated[
        "Models",
        Flag(
            "--model",
            f"The model to ask: {describe_forms('chat model')}. If the samples name several "
            "models, give each by its name: small=openai:small-1@URL.",
            metavar="[NAME=]URI",
            group=MODELS,
            kind=list[str],
            read=read_models,
        ),
    ]
    judge: Annotated[
        "Models",
        Flag(
            "--judge",
            "A judge: a URI as for --model, or a decision model "
            f"({describe_forms('decision model')}). Can be repeated.",
            metavar="[NAME=]URI",
            group=MODELS,
            kind=list[str],
            read=read_models,
        ),
    ]
    generator: "Models"
    references: Annotated[
        "Models",
        Flag(
            "--reference",
            "A model whose answers serve as references, a URI as for --model. Can be repeated.",
            metavar="[NAME=]URI",
            group=MODELS,
            kind=list[str],
            rare=True,
        ),
    ]
    second: Annotated[
        "EntailerChoice | None",
        Flag(
            "--second",
            "A second entailment model, better and slower, a URI as for --entailer. It reads the "
            "answers that the first one flags or doubts, and a random part of the others. The "
            "verdict on a statement combines both.",
            metavar="URI",
            group=MODELS,
            kind=str | None,
            rare=True,
        ),
    ]
    entailer: Annotated[
        "EntailerChoice | None",
        Flag(
            "--entailer",
            f"The entailment model: {describe_forms('entailer', DEFAULT_ENTAILER, 'chat')}, "
            "or a chat model (openai:MODEL[@BASE_URL][?repeats=N], chat:hf:ID, ...).",
            metavar="URI",
            group=MODELS,
            kind=str | None,
        ),
    ]
    embedder: Annotated[
        "EmbedderChoice | None",
        Flag(
            "--embedder",
            f"The embedding model: {describe_forms('embedder', DEFAULT_EMBEDDER)}.",
            metavar="URI",
            group=MODELS,
            kind=str | None,
            rare=True,
        ),
    ]
    similarity: "SimilarityChoice | None"
    retriever: Annotated[
        "str | Retriever | None",
        Flag(
            "--retriever",
            "The retriever, for samples without documents and for the metric factcheck: "
            "bm25:PATH[?index=FOLDER].",
            metavar="URI",
            group=MODELS,
            kind=str | None,
            rare=True,
        ),
    ]
    token_embedder: "str | TokenEmbedder | None"
    linker: "str | EntityLinker | None"
    distractors: "WordSources"
    backends: Annotated[
        Mapping[str, Any], dataclasses.replace(BACKEND, read=read_backends, several=True)
    ]


Limit = Annotated[
    int | None,
    Flag("--limit", "Read only the first N records.", group=INPUT, least=1, most=1000000000),
]
SkipBad = Annotated[
    bool,
    Flag("--skip-bad", "Skip and count faulty records.", group=INPUT, default=False, rare=True),
]
Fields = Annotated[
    Mapping[str, str | Sequence[str]],
    Flag(
        "--field",
        "Read a field under the name that it has in your file; dots lead into nested fields. Can "
        "be repeated; several names for documents are combined.",
        metavar="CANONICAL=THEIRS",
        group=INPUT,
        read=lambda texts: read_pairs(texts, "--field", several=["documents"]),
    ),
]
Sheet = Annotated[
    str | int | None,
    Flag(
        "--sheet",
        "The sheet of a workbook, by title or number. Default: the sheet with a question column.",
        metavar="NAME|N",
        group=INPUT,
        kind=str | None,
        rare=True,
    ),
]
LongestLine = Annotated[
    int,
    Flag(
        "--longest-line",
        "The longest line, row or cell that is read, in MiB; a .json file may be eight times as "
        "large.",
        group=INPUT,
        default=LONGEST_LINE_MIB,
        least=1,
        most=1024,
        rare=True,
    ),
]
AnswerSpan = Annotated[
    str | None,
    Flag(
        "--answer-span",
        "The span of a trace whose output is the answer, by name. Default: the root span if it has "
        "an output, else the last model call, except guardrails, titles and the like.",
        metavar="NAME",
        group=INPUT,
        rare=True,
    ),
]
Turns = Annotated[
    Literal["last", "all"],
    Flag(
        "--turns",
        "Which answers of a chat log are scored. With all, each answer is judged by the passages "
        "up to it, and the conversation is the unit.",
        metavar="last|all",
        group=INPUT,
        kind=str,
        default="last",
        rare=True,
    ),
]
Seed = Annotated[
    int, Flag("--seed", "Seed of all random choices.", group=CHANCE, default=0, least=0)
]
Unit = Annotated[
    str | None,
    Flag(
        "--unit",
        "What intervals treat as independent: question (all its answers are one unit), answer, or "
        "a field of the samples, such as the number of the conversation. Default: question.",
        metavar="FIELD",
        group=INPUT,
        rare=True,
    ),
]
Pool = Annotated[
    Path_ | None,
    Flag(
        "--pool",
        "Samples with which some metrics compare each sample. Default: the input. For a shard, "
        "the file that shard --whole writes.",
        group=INPUT,
        kind=Path | None,
        rare=True,
    ),
]
SamplesAtOnce = Annotated[
    int | None,
    Flag(
        "--samples-at-once",
        "Samples in progress at once. Default: enough to keep the endpoints busy.",
        group=COST,
        least=1,
        rare=True,
    ),
]
LongestAnswer = Annotated[
    int,
    Flag(
        "--longest-answer",
        "The longest answer that is judged, in characters; its passages may have ten times that.",
        group=COST,
        default=MAX_ANSWER_CHARACTERS,
        least=1,
        rare=True,
    ),
]
MaxTokens = Annotated[
    int,
    Flag(
        "--max-tokens",
        "Maximum length of an answer, in tokens.",
        group=ASKING,
        default=300,
        least=1,
    ),
]
CalibratorFile = Annotated[
    Path_ | None,
    Flag(
        "--calibrator",
        "A file that calibrate wrote. Answers get a probability of being right, and are accepted "
        "above its thresholds.",
        metavar="FILE",
        group=MODELS,
        kind=Path | None,
        rare=True,
    ),
]
SecondAlone = Annotated[
    bool,
    Flag(
        "--second-alone",
        "The second reader's verdict replaces the first one's, instead of being combined with it.",
        group=SECOND_READER,
    ),
]


class RecordOptions(TypedDict, total=False):
    """Which part of the input is read, and how."""

    limit: Limit
    fields: Fields
    sheet: Sheet
    skip_bad: SkipBad
    answer_span: AnswerSpan
    longest_line: LongestLine


class DrawOptions(TypedDict, total=False):
    """Which part of the samples is drawn at random, and how a grown input is treated."""

    append: Annotated[
        bool,
        Flag(
            "--append",
            "Score the records that were added to the input since --out was scored, and show the "
            "figures before and now. A changed or missing record is an error.",
            group=INPUT,
            rare=True,
        ),
    ]
    sample: Annotated[
        str | int | None,
        Flag(
            "--sample",
            "Score a random sample of the answers: 2000, or 1%. Answers of one unit (--unit) are "
            "drawn together.",
            metavar="N|P%",
            group=INPUT,
            kind=str | None,
        ),
    ]
    sample_by: Annotated[
        str | None,
        Flag(
            "--sample-by",
            "Draw the same share for each value of these fields: model,language.",
            metavar="FIELD,...",
            group=INPUT,
            rare=True,
        ),
    ]


class SpendingOptions(TypedDict, total=False):
    """Where replies are shared, what they may cost, and how many are asked for at once.

    policy: the optimisations in use (:class:`~trustassay.calls.batching.BatchingPolicy`).
    """

    cache: Annotated[
        Path_ | None,
        Flag(
            "--cache",
            "Folder of the cache through which runs share replies of endpoints and GGUF models, "
            "or off. Default: TRUSTASSAY_CACHE, else a folder in your user cache.",
            metavar="DIR|off",
            group=COST,
            kind=str,
            default="",
            read=lambda text: None if text == "off" else Path(text),
            rare=True,
        ),
    ]
    prices: Annotated[
        "Prices | Path_ | None",
        Flag(
            "--prices",
            'Prices by model, in US dollars per million tokens: {"MODEL": {"prompt": 1, '
            '"reply": 4}}.',
            group=COST,
            kind=Path | None,
            rare=True,
        ),
    ]
    budget: Annotated[
        "Budget | str | None",
        Flag(
            "--budget",
            "Stop before the run spends more than this: 5usd, or 200000 (tokens).",
            metavar="USD|TOKENS",
            group=COST,
            kind=str | None,
        ),
    ]
    calls_at_once: Annotated[
        int | None,
        Flag(
            "--calls-at-once",
            "Maximum number of calls to one endpoint at once. Default: as its URI says, else 64.",
            group=COST,
            least=1,
            rare=True,
        ),
    ]
    policy: "BatchingPolicy"


class SecondReadingOptions(TypedDict, total=False):
    """How much a second reader reads:
    :class:`~trustassay.judging.second_reader.SecondReaderOptions`."""

    second_share: Annotated[
        float,
        Flag(
            "--second-share",
            "Share of all answers that the second reader reads at random, at least 20 answers. "
            "From them comes the interval of the share of answers that need a look. 0: none.",
            group=SECOND_READER,
            default=0.1,
            least=0,
            most=1,
        ),
    ]
    second_budget: Annotated[
        str | None,
        Flag(
            "--second-budget",
            "How many answers the second reader reads: 300, 25%, or as many as fit into 600s; the "
            "most doubtful come first. Default: the random ones, all that need a look or nearly "
            "do, and those in a language that the entailer does not read.",
            metavar="N|N%|SECONDSs",
            group=SECOND_READER,
        ),
    ]
    second_alone: SecondAlone


class ScorerOptions(BackendChoices, SpendingOptions, total=False):
    """Options of a scorer of single samples."""

    fields: Fields
    answer_span: AnswerSpan
    seed: Seed | None
    samples_at_once: SamplesAtOnce
    longest_answer: LongestAnswer
    second_alone: SecondAlone
    report: bool


class WatchOptions(ScorerOptions, total=False):
    """Options of a scorer of the records of a growing file."""

    longest_line: LongestLine


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

    fields: names of the input's fields by ours (``{"response": "answer"}``); of the documents also
    a list of names. sheet: of a workbook, its title or number. unit: ``"question"`` (the default),
    ``"answer"``, or a field of the samples. turns: ``"last"``, or ``"all"`` answers of a chat log,
    whose unit is then the conversation. answer_span: the name of the span of a trace whose output
    is the answer. longest_line: see :mod:`trustassay.input.bounds`. longest_answer: see
    :class:`~trustassay.text.limits.TextLimits`. report: whether to write ``report.html``; by
    default if there is a folder. command: what began the run, for messages. why: the metric was
    chosen, where nobody named it. progress: whether it is shown; by default only in a notebook.

    sample: how many answers are drawn, 2000 or ``"1%"``. sample_by: fields of strata, with commas.
    append: ``out`` may hold the run of the input when it had fewer samples. drawn: of what a
    rescored run was. calls_from: a file of calls to start from. answering, pairing, documents,
    diverse: fields of :class:`~trustassay.runs.fill.FillOptions`. cache: ``None`` for none. prices:
    prices by model, or their file. budget: ``"5usd"``, ``"200k"``.
    """

    fields: Fields
    sheet: Sheet
    turns: Turns
    answer_span: AnswerSpan
    longest_line: LongestLine
    drawn: Mapping[str, Any] | None
    calls_from: Path | None


Engine = Annotated[
    str,
    Flag(
        "--engine",
        "Where to score: local, or ray for workers on the Ray cluster at ADDRESS or RAY_ADDRESS, "
        "else on one started on this machine (see docs/big-runs.md).",
        metavar="local|ray[:ADDRESS]",
        group=DISTRIBUTED,
        default="local",
    ),
]
"""Where samples are scored: by this process, or by workers on a cluster."""


class Cluster(TypedDict, total=False):
    """What the workers on a cluster are, and where they keep their shards."""

    workers: Annotated[
        int | None,
        Flag(
            "--workers",
            "Number of workers of --engine ray. Default: as many as the cluster has room for.",
            group=DISTRIBUTED,
            least=1,
        ),
    ]
    cpus: Annotated[
        float,
        Flag(
            "--per-worker",
            "Resources of each worker: cpus=2, gpus=1 (or a part, gpus=0.5). Default: one CPU.",
            metavar="cpus=N|gpus=N",
            group=DISTRIBUTED,
            kind=list[str],
            least=0,
            read=_read_per_worker,
            several=True,
        ),
    ]
    gpus: Annotated[float, Flag(least=0)]
    shards: Annotated[
        int | None,
        Flag(
            "--shards",
            "Number of shards of a new run of --engine ray. Default: four for each worker, or more "
            "so that none exceeds 5,000 samples.",
            group=DISTRIBUTED,
            least=1,
        ),
    ]
    store: Annotated[
        str | None,
        Flag(
            "--store",
            "Where workers keep copies of their shards: a folder that all machines can reach, or "
            "an fsspec URL (s3://..., gs://...). Not needed on one machine.",
            metavar="DIR|URL",
            group=DISTRIBUTED,
        ),
    ]
    scratch: Annotated[
        str | None,
        Flag(
            "--scratch",
            "Folder on each machine's local disk for shards in progress. Default: the temporary "
            "folder.",
            metavar="DIR",
            group=DISTRIBUTED,
        ),
    ]


class EngineOptions(ScoreOptions, Cluster, total=False):
    """Also those of a run on a cluster, of Ray."""


AT_LEAST = Flag(
    "--at-least",
    "For labels that are numbers other than 0 and 1: an answer is right from this number on.",
    metavar="NUMBER",
    group=LABELS,
    rare=True,
)
POSITIVE = Flag(
    "--positive",
    "A label word that means right; all other words then mean wrong. Can be repeated.",
    metavar="WORD",
    group=LABELS,
    kind=list[str],
    rare=True,
)


class KnownLabelOptions(TypedDict, total=False):
    """Labels of some answers, which correct a judge's share of good ones."""

    labels: Annotated[
        Sequence[Path_],
        Flag(
            "--labels",
            "Human ratings of some answers, drawn at random within each outcome, in a file that "
            "agree reads. They give an estimate of the share of right answers among all. For two "
            "runs, give one file for each, in order, or one file that names the models.",
            metavar="FILE",
            group=LABELS,
            kind=list[Path],
        ),
    ]
    labels_of: Annotated[
        Path_ | None,
        Flag(
            "--labels-of",
            "Another run, judged in the same way, whose answers --labels rates. The judge's "
            "errors there correct the share that passes here (Rogan-Gladen).",
            metavar="RUN",
            group=LABELS,
            kind=Path | None,
            rare=True,
        ),
    ]
    right_from: Annotated[float | None, AT_LEAST]
    right_words: Annotated[Sequence[str], POSITIVE]
    label_columns: Annotated[
        Mapping[str, str],
        Flag(
            "--label-field",
            "Read a column of --labels under its own name: item=question_id. With several "
            "rubrics, choose one: rating=truthfulness. Can be repeated.",
            metavar="NAME=COLUMN",
            group=LABELS,
            rare=True,
        ),
    ]


class AnswerOptions(TypedDict, total=False):
    """How models are asked for answers: fields of :class:`~trustassay.runs.answering.Answering`."""

    style: Annotated[
        str,
        Flag(
            "--style",
            "How the model is asked for answers: closed-book, rag, rag-refusal, icl, own or auto. "
            "auto means own for samples with own_prompt, rag-refusal for samples with documents, "
            "else closed-book.",
            group=ASKING,
            default="auto",
        ),
    ]
    prompt: Annotated[
        Path_ | None,
        Flag(
            "--prompt",
            "Your own prompt template, instead of that of the style; its variables are question, "
            "sample, examples and refusal.",
            group=ASKING,
            kind=Path | None,
        ),
    ]
    examples: Annotated[
        Path_ | None,
        Flag(
            "--examples",
            "A file like INPUT with answered questions, which the prompt shows as examples.",
            group=ASKING,
            kind=Path | None,
        ),
    ]
    temperature: Annotated[
        float,
        Flag(
            "--temperature",
            "Sampling temperature; 0 gives the most likely answer.",
            group=ASKING,
            default=0.0,
            least=0,
        ),
    ]
    max_tokens: MaxTokens
    logprobs: Annotated[
        int | None,
        Flag(
            "--logprobs",
            "Also ask for the log-probabilities of the answer's tokens, with this many "
            "alternatives each (0 to 20), for the metric uncertainty.",
            group=ASKING,
            kind=int | None,
            least=0,
            most=20,
        ),
    ]


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
    roles = [role for role, keyword in BACKEND_ROLES.items() if keyword == name]
    other_flag = f"--backend {roles[0]}" if roles else f"--{name.replace('_', '-')}"
    return FLAGS.get(name, Flag()).name or other_flag


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
    str: (str, "text"),
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
            faults.append(f"{name!r} is an option of the metric {owner.name}; write {text}")
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
