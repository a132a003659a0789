"""Options that several commands share, in groups: a command takes a group as one argument."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Optional, get_type_hints

import typer

from trustassay.cli import common
from trustassay.errors import UsageError
from trustassay.progress import quieted
from trustassay.show.terminal import complain, only_last_line

if TYPE_CHECKING:
    from trustassay.answering import Answering
    from trustassay.calls.client import CallOptions

__all__ = [
    "Answers",
    "AtOnce",
    "Backends",
    "Cluster",
    "OldConcurrency",
    "Records",
    "Spending",
    "given",
    "quietable",
    "renamed",
    "with_options",
]

OldConcurrency = Annotated[Optional[int], typer.Option("--concurrency", hidden=True, min=1)]  # noqa: UP045
"""The earlier name of --samples-at-once, and in generate of --calls-at-once."""


def _uri(help_text: str) -> Any:
    return typer.Option(help=help_text, metavar="URI", show_default=False)


def _uris(help_text: str) -> Any:
    return typer.Option(help=help_text, metavar="[NAME=]URI", show_default=False)


@dataclass(frozen=True)
class Backends:
    """The backends to ask; one that is not given is the default, if there is one."""

    model: common.Model = None
    judge: Annotated[
        list[str], _uris("A judge, a URI as for --model. May be given more than once.")
    ] = field(default_factory=list)
    generator: Annotated[
        Optional[str],  # noqa: UP045 - typer reads it
        _uri("A model that writes wrong and corrected answers, a URI as for --model."),
    ] = None
    reference: Annotated[
        list[str],
        _uris(
            "A model whose answers are compared, a URI as for --model. May be given more than once."
        ),
    ] = field(default_factory=list)
    entailer: Annotated[
        Optional[str],  # noqa: UP045
        _uri(
            "The entailment model: embedded (the default), lexical, hf:ID-or-path, "
            "python:MODULE:FUNCTION, or a chat model (openai:MODEL[@BASE_URL][?repeats=N], "
            "chat:hf:ID, ...)."
        ),
    ] = None
    embedder: Annotated[
        Optional[str],  # noqa: UP045
        _uri(
            "The embedding model: embedded (the default), openai:MODEL[@BASE_URL], hf:ID-or-path."
        ),
    ] = None
    similarity: Annotated[
        Optional[str],  # noqa: UP045
        _uri(
            "The similarity of two texts: cosine[:EMBEDDER] (the default), consistency[:ENTAILER], "
            "bertscore:hf:ID-or-path[?layer=N], lexical; of two answers to a question: novel, "
            "agreement[:ENTAILER]; python:MODULE:OBJECT."
        ),
    ] = None
    retriever: Annotated[
        Optional[str],  # noqa: UP045
        _uri(
            "The retriever, for samples without documents and for factcheck: "
            "bm25:PATH[?index=FOLDER]."
        ),
    ] = None
    token_embedder: Annotated[
        Optional[str],  # noqa: UP045
        _uri("The token embedding model: hf:ID-or-path[?layer=N]."),
    ] = None

    linker: Annotated[
        Optional[str],  # noqa: UP045
        _uri("The entity linker: spotlight[:URL], spacy[:MODEL], python:MODULE:OBJECT."),
    ] = None
    distractors: Annotated[
        Optional[str],  # noqa: UP045
        _uri(
            "Sources of words for distractors: embedding[:FILE],pos (the default), "
            "dbpedia[:URL], python:MODULE:OBJECT; several with commas."
        ),
    ] = None

    def named(self) -> dict[str, Any]:
        """Return the backends that were given, by their argument names in Python."""
        found = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        found["references"] = found.pop("reference")
        if len(self.judge) == 1:
            found["judge"] = self.judge[0]
        return {name: choice for name, choice in found.items() if choice not in (None, [])}


@dataclass(frozen=True)
class Records:
    """Which part of the input is read, and how."""

    limit: common.Limit = None
    field: common.Fields = dataclasses.field(default_factory=list)
    skip_bad: common.SkipBad = False

    def read(self) -> dict[str, Any]:
        """Return them as a run's options."""
        fields = common.pairs(self.field, "--field")
        return {"limit": self.limit, "fields": fields, "skip_bad": self.skip_bad}


@dataclass(frozen=True)
class Answers:
    """How models are asked for answers."""

    style: common.Style = "auto"
    prompt: common.PromptFile = None
    examples: common.Examples = None
    temperature: common.Temperature = 0.0
    max_tokens: common.MaxTokens = 300

    def read(self) -> Answering:
        """Return them as they are used; raises as :func:`~trustassay.cli.common.answering`."""
        return common.answering(
            self.style, self.prompt, self.examples, self.temperature, self.max_tokens
        )


@dataclass(frozen=True)
class Spending:
    """Where replies are shared, and what they may cost."""

    cache: common.Cache = ""
    prices: common.PricesFile = None
    budget: common.BudgetText = None
    calls_at_once: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            help="Calls to one endpoint at once, at most. Default: as its URI says, else 64.",
            min=1,
            show_default=False,
        ),
    ] = None

    def read(self) -> CallOptions:
        """Return them as they are used; raises as :func:`~trustassay.cli.common.call_options`."""
        return common.call_options(self.cache, self.prices, self.budget, self.calls_at_once)

    def keywords(self) -> dict[str, Any]:
        """Return them as a run's options."""
        read = self.read()
        names = ("cache", "prices", "budget", "calls_at_once")
        return {name: getattr(read, name) for name in names}


@dataclass(frozen=True)
class AtOnce:
    """How many samples are in progress at once."""

    samples_at_once: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            help="Samples in progress at once. Default: enough to keep the endpoints busy.",
            min=1,
            show_default=False,
        ),
    ] = None
    concurrency: OldConcurrency = None

    def read(self) -> int | None:
        """Return the number; say how the option is called now."""
        return renamed(self.concurrency, "--samples-at-once") or self.samples_at_once


def renamed(concurrency: int | None, name: str) -> int | None:
    """Return the number of the option's old name; say how it is called now."""
    if concurrency:
        complain(f"--concurrency is now called {name}; the old name will be removed")
    return concurrency


@dataclass(frozen=True)
class Cluster:
    """Where samples are scored: by this process, or by workers on a cluster."""

    engine: Annotated[
        str,
        typer.Option(
            help="local, or ray for workers on a Ray cluster: the one at ADDRESS or RAY_ADDRESS, "
            "else one that is started on this machine (see docs/big-runs.md).",
            metavar="local|ray[:ADDRESS]",
        ),
    ] = "local"
    workers: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            help="Workers of --engine ray. Default: as many as have room.",
            min=1,
            show_default=False,
        ),
    ] = None
    per_worker: Annotated[
        list[str],
        typer.Option(
            help="What each worker takes: cpus=2, gpus=1 (or a part, gpus=0.5). Default: one CPU.",
            metavar="cpus=N|gpus=N",
        ),
    ] = field(default_factory=list)
    shards: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            help="Shards of a new run of --engine ray. Default: four for each worker, more if "
            "they would be larger than 5,000 samples.",
            min=1,
            show_default=False,
        ),
    ] = None
    store: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="Where workers keep copies of their shards: a folder that all machines reach, or "
            "a URL of fsspec (s3://..., gs://...). Not needed on one machine.",
            metavar="DIR|URL",
            show_default=False,
        ),
    ] = None
    scratch: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="Folder on each machine's own disk for shards in progress. Default: the "
            "temporary folder.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None

    def keywords(self) -> dict[str, Any]:
        """Return them as options of ``trustassay.score``; those not given are left out.

        Raises:
            ValueError: they are given without ``--engine ray``, or one cannot be read.
        """
        found: dict[str, Any] = {
            name: value
            for name in ("workers", "shards", "store", "scratch")
            if (value := getattr(self, name)) is not None
        }
        for given in self.per_worker:
            name, _, text = given.partition("=")
            try:
                found[{"cpus": "cpus", "gpus": "gpus"}[name]] = float(text)
            except (KeyError, ValueError):
                words = f"--per-worker: expected cpus=N or gpus=N, got {given}"
                raise UsageError(words) from None
        if found and not self.engine.startswith("ray"):
            raise UsageError(f"--{min(found)} needs --engine ray")
        return {"engine": self.engine, **found}


def given(*groups: Any, **others: Any) -> list[str]:
    """Return the flags of options that have another value than the default of their group.

    ``others`` are options outside of groups, by the names of their flags; true ones count.
    """
    flags = [f"--{name.replace('_', '-')}" for name, value in others.items() if value]
    for group in groups:
        hints = get_type_hints(type(group), include_extras=True)
        for parameter in _of_group(type(group)):
            if getattr(group, parameter.name) != parameter.default:
                (option,) = hints[parameter.name].__metadata__
                named = [one for one in option.param_decls or () if one.startswith("--")]
                flags.append(named[0] if named else f"--{parameter.name.replace('_', '-')}")
    return flags


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with each group argument replaced by the options of the group.

    A group is a dataclass whose fields are annotated as typer's options, or are groups themselves.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {k: v for k, v in hints.items() if dataclasses.is_dataclass(v)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name in groups:
            parameters += _of_group(groups[parameter.name])
        else:
            hint = hints[parameter.name]
            parameters.append(parameter.replace(annotation=hint, kind=parameter.KEYWORD_ONLY))

    @wraps(command)
    def with_groups(**values: Any) -> Any:
        for name, group in groups.items():
            values[name] = _filled(group, values)
        return command(**values)

    del with_groups.__wrapped__  # typer would look behind it
    with_groups.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_groups.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_groups


Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Print faults and the last line alone, which names the result."
    ),
]


def quietable(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with the option ``--quiet``."""
    hints = get_type_hints(command, include_extras=True)
    parameters = [
        one.replace(annotation=hints[one.name])
        for one in inspect.signature(command).parameters.values()
    ]
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters.append(inspect.Parameter("quiet", keyword, default=False, annotation=Quiet))

    @wraps(command)
    def with_quiet(*, quiet: bool, **values: Any) -> Any:
        with quieted(quiet), only_last_line(quiet):
            return command(**values)

    del with_quiet.__wrapped__  # typer would look behind it
    with_quiet.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_quiet.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_quiet


def _filled(group: Any, values: dict[str, Any]) -> Any:
    """Return the group with its values, which are taken out of ``values``."""
    hints = get_type_hints(group, include_extras=True)
    own = {}
    for one in dataclasses.fields(group):
        hint = hints[one.name]
        inner = dataclasses.is_dataclass(hint)
        own[one.name] = _filled(hint, values) if inner else values.pop(one.name)
    return group(**own)


def _of_group(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    found: list[inspect.Parameter] = []
    for one in dataclasses.fields(group):
        if dataclasses.is_dataclass(hints[one.name]):
            found += _of_group(hints[one.name])
            continue
        default = one.default
        if one.default_factory is not dataclasses.MISSING:
            default = one.default_factory()
        if default is dataclasses.MISSING:
            default = inspect.Parameter.empty
        keyword = inspect.Parameter.KEYWORD_ONLY
        found.append(
            inspect.Parameter(one.name, keyword, default=default, annotation=hints[one.name])
        )
    return found
