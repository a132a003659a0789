"""The keywords of ``score`` and its like: their names and types stand here alone.

What a function takes is a :class:`typing.TypedDict`, which type checkers read, and
:func:`shows_keywords` lists for ``help`` and notebooks. A wrong one is named with the nearest.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, TypeVar, get_type_hints

from trustassay.answering import Answering
from trustassay.answering.pairs import Pairing
from trustassay.backends.resolve import (
    ChatChoice,
    EmbedderChoice,
    EntailerChoice,
    SimilarityChoice,
)
from trustassay.calls.gathering import Policy
from trustassay.calls.spending import Budget, Prices
from trustassay.capabilities import EntityLinker, Retriever, SubstituteSource, TokenEmbedder
from trustassay.errors import UnknownNameError, did_you_mean
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
    limit: int | None
    skip_bad: bool
    pool: Path_ | None
    concurrency: int | None
    report: bool
    command: str | None
    progress: bool | None
    answering: Answering
    pairing: Pairing
    documents: int
    diverse: int | None
    cache: Path_ | None
    prices: Prices | Path_ | None
    budget: Budget | str | None
    policy: Policy
    at_once: int | None
    calibrator: Path_ | None


class ScoreOptions(RescoreOptions, total=False):
    """How samples are read, filled, scored and paid for.

    fields: names of the input's fields by ours (``{"response": "answer"}``). limit: only the first
    so many. skip_bad: skip faulty records. pool: samples that a method may compare with.
    seed: of all random choices. concurrency: samples in progress at once. report: whether
    ``report.html`` is written; if there is a folder, unless said otherwise. command: what began
    the run, for messages. progress: whether it
    is shown; if not said, in a notebook alone. calls_from: a file of calls to start from.
    answering, pairing, documents, diverse: fields of :class:`~trustassay.runs.stages.Filling`.
    cache: the folder of replies that runs share, ``None`` for none. prices: prices by model, or
    their file. budget: the most to spend (``"5usd"``, ``"200k"``). at_once, policy: fields of
    :class:`~trustassay.calls.opening.CallOptions`. calibrator: a file of ``calibrate`` that gives
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


class ScorerOptions(BackendChoices, total=False):
    """Options of a scorer of single samples; the meanings are those of :class:`ScoreOptions`."""

    fields: Mapping[str, str]
    seed: int | None
    concurrency: int | None
    report: bool
    cache: Path_ | None
    prices: Prices | Path_ | None
    budget: Budget | str | None
    policy: Policy
    at_once: int | None


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
    """
    names = {*known.__annotations__, *get_type_hints(known), *others}
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


def shows_keywords(known: type) -> Callable[[F], F]:
    """Give a function with ``**options`` a signature that lists the keywords of ``known``."""

    def listing(function: F) -> F:
        own = inspect.signature(function)
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
