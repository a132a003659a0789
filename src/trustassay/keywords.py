"""The keywords of ``score`` and its like: their names and types stand here alone.

What a function takes is a :class:`typing.TypedDict`, which type checkers read, and
:func:`shows_keywords` lists for ``help`` and notebooks. A wrong one is named with the nearest.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypedDict, TypeVar, get_args, get_origin, get_type_hints

from trustassay.answering import Answering
from trustassay.answering.styles import Pairing
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
from trustassay.errors import UnknownNameError, UsageError, did_you_mean, door
from trustassay.metric import Metric

__all__ = [
    "CLUSTER",
    "BackendChoices",
    "EngineOptions",
    "RescoreOptions",
    "ScoreOptions",
    "ScorerOptions",
    "check_keywords",
    "shows_keywords",
]

F = TypeVar("F", bound=Callable[..., Any])
Path_ = str | os.PathLike[str]
Models = ChatChoice | Sequence[ChatChoice] | Mapping[str, ChatChoice] | None
Source = str | SubstituteSource
Sources = Source | Sequence[Source] | Mapping[str, Source] | None


class BackendChoices(TypedDict, total=False):
    """Backends: each a URI, or an object of the right protocol; ``None`` counts as not given.

    model: the model under assessment. judge, references: one, a list, or a mapping by name.
    backends: those of other packages' capabilities, by name.
    """

    model: Models
    judge: Models
    generator: Models
    references: Models
    entailer: EntailerChoice | None
    embedder: EmbedderChoice | None
    similarity: SimilarityChoice | None
    retriever: str | Retriever | None
    linker: str | EntityLinker | None
    token_embedder: str | TokenEmbedder | None
    distractors: Sources
    backends: Mapping[str, Any]


class RescoreOptions(BackendChoices, total=False):
    """How a stored run is scored again; the meanings are those of :class:`ScoreOptions`."""

    seed: int | None
    unit: str | None
    limit: int | None
    skip_bad: bool
    pool: Path_ | None
    samples_at_once: int | None
    longest_answer: int
    report: bool
    command: str | None
    why: str | None
    progress: bool | None
    answering: Answering
    pairing: Pairing
    documents: int
    diverse: int | None
    cache: Path_ | None
    prices: Prices | Path_ | None
    budget: Budget | str | None
    policy: Policy
    calls_at_once: int | None
    calibrator: Path_ | None


class ScoreOptions(RescoreOptions, total=False):
    """How samples are read, filled, scored and paid for.

    fields: names of the input's fields by ours (``{"response": "answer"}``). limit: only the first
    so many. skip_bad: skip faulty records. pool: samples that a method may compare with.
    seed: of all random choices. unit: what is independent in an interval: ``"question"`` (the
    default), ``"answer"``, or a field of the samples, as a conversation's. samples_at_once: how
    many are in progress at once. longest_answer: characters up to which an answer is assessed, and
    passages in proportion (:class:`~trustassay.texts.TextLimits`). report: whether ``report.html``
    is written; if there is a folder, unless said otherwise. command: what began the run, for
    messages. why: the metric was chosen, where nobody named it. progress: whether it is shown; if
    not said, in a notebook alone. calls_from: a file of calls to start from.
    answering, pairing, documents, diverse: fields of :class:`~trustassay.runs.fill.Filling`.
    cache: the folder of replies that runs share, ``None`` for none. prices: prices by model, or
    their file. budget: the most to spend (``"5usd"``, ``"200k"``). calls_at_once, policy: fields of
    :class:`~trustassay.calls.client.CallOptions`. calibrator: a file of ``calibrate`` that gives
    the answers a probability of being right.
    """

    fields: Mapping[str, str]
    calls_from: Path | None


class EngineOptions(ScoreOptions, total=False):
    """Also those of a run on a cluster, the fields of
    :class:`~trustassay.cluster.ray_cluster.ClusterOptions`.
    """

    workers: int | None
    cpus: float
    gpus: float
    store: str | None
    scratch: str | None
    shards: int | None


CLUSTER = tuple(EngineOptions.__annotations__)[-6:]
"""The keywords that only a run on a cluster takes."""
RENAMED: Mapping[str, str] = {"concurrency": "samples_at_once", "at_once": "calls_at_once"}
"""Earlier names of keywords."""
KINDS: Mapping[Any, tuple[Any, str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a text"),
    Mapping: (Mapping, "a mapping"),
    type(None): (type(None), "None"),
}
"""By a plain kind: what it is, and its name."""


class ScorerOptions(BackendChoices, total=False):
    """Options of a scorer of single samples; the meanings are those of :class:`ScoreOptions`."""

    fields: Mapping[str, str]
    seed: int | None
    samples_at_once: int | None
    longest_answer: int
    report: bool
    cache: Path_ | None
    prices: Prices | Path_ | None
    budget: Budget | str | None
    policy: Policy
    calls_at_once: int | None


def check_keywords(
    given: Mapping[str, Any],
    known: type,
    others: Collection[str] = (),
    metrics: Sequence[Metric] = (),
) -> None:
    """Refuse keywords that are neither of the typed dictionary ``known`` nor among ``others``.

    Raises:
        UnknownNameError: names all of them, each with the nearest; an option of one of the metrics
            with how it is given.
        UsageError: a number, text or switch of another kind; names all of them.
    """
    hints = get_type_hints(known)
    names = {*hints, *others}
    faults = []
    for name in given:
        if name in names:
            continue
        owner = next((one for one in metrics if name in one.__dataclass_fields__), None)  # type: ignore[attr-defined]
        if owner is None:
            faults.append(did_you_mean("keyword", name, names))
        else:
            text = f'metrics="{owner.name}:{name}=..."'
            faults.append(f"{name!r} is an option of the metric {owner.name}; give it by {text}")
    if faults:
        raise UnknownNameError("; ".join(faults))
    if faults := [
        f"{name}: expected {expected}, got {value!r:.60}"
        for name, value in given.items()
        if (expected := _other_kind(value, hints.get(name)))
    ]:
        raise UsageError("; ".join(faults))


def _other_kind(value: Any, hint: Any) -> str | None:
    """Return what is expected where a value is not of a plain kind that is hinted at."""
    kinds = [get_origin(kind) or kind for kind in get_args(hint) or (hint,)]
    if get_origin(hint) is Mapping:
        kinds = [Mapping]
    if hint is None or not all(kind in KINDS for kind in kinds):
        return None
    if isinstance(value, bool):
        fits = bool in kinds
    else:
        fits = isinstance(value, tuple(KINDS[kind][0] for kind in kinds))
    return None if fits else " or ".join(KINDS[kind][1] for kind in kinds)


def shows_keywords(known: type, renamed: Mapping[str, str] = RENAMED) -> Callable[[F], F]:
    """Make a function with ``**options`` a :func:`door`; its signature lists those of ``known``."""

    def listing(inner: F) -> F:
        function = door(renamed)(inner)
        own = inspect.signature(inner)
        kind = inspect.Parameter.KEYWORD_ONLY
        listed = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
        for base in reversed(known.__mro__):
            for name, hint in getattr(base, "__annotations__", {}).items():
                if name not in {one.name for one in listed}:
                    default = inspect.Parameter.empty
                    listed.append(inspect.Parameter(name, kind, default=default, annotation=hint))
        function.__signature__ = own.replace(parameters=listed)  # type: ignore[attr-defined]
        return function

    return listing
