"""From what metrics need, and what a user named, to the backends of a run."""

import asyncio
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from trustassay.backends import resolve
from trustassay.backends.registry import fault_of, load, takes_time
from trustassay.calls.backends import MODEL, Backends, Place, check_embeddings
from trustassay.calls.capability import Capability
from trustassay.calls.client import check_keys, has_replies
from trustassay.calls.kinds import capabilities, capability
from trustassay.capabilities import ChatRequest, Probabilities, Reply, SubstitutesRequest
from trustassay.errors import (
    BackendError,
    CallError,
    FaultsError,
    UnknownNameError,
    UsageError,
    did_you_mean,
)
from trustassay.judging.second_reader import ROLE as SECOND
from trustassay.metric import Inventory, Metric, Need
from trustassay.registry import metric_from_settings

ROLES: Mapping[str, tuple[str, str]] = {
    MODEL: ("--model", "the model under assessment"),
    "judge": ("--judge", "a model that judges"),
    "generator": ("--generator", "a model that makes wrong and corrected answers"),
    "references": ("--reference", "models whose answers are compared"),
    SECOND: ("--second", "a second reader"),
}
"""The roles of chat models, and of the second reader among entailers: the option on the command
line, and a description."""
_NAMED = re.compile(r"(?P<name>[\w.-]+)=(?P<uri>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Demand:
    """What a metric needs of one backend, looked up once.

    asked: the capability. served: the one whose backends serve it.
    """

    metric: Metric
    need: Need
    role: str
    asked: Capability[Any, Any]
    served: Capability[Any, Any]

    @property
    def place(self) -> Place:
        """The place of the backend; of several in a role each has its name as well."""
        return Place(self.served.name, self.role)

    @property
    def word(self) -> str:
        """The option name of the backend."""
        return self.role or self.served.word

    @property
    def default(self) -> str | None:
        """The backend that is taken where none is named."""
        return self.need.default or self.served.default

    def choices(self, given: Mapping[str, Any]) -> dict[Place, Any]:
        """Return the backends by place; empty for an optional need that is not met."""
        if self.served.choices and (self.word in given or not self.need.optional):
            named = self.served.choices(given.get(self.word, self.served.default))
        elif self.word in given:
            choice, many = given[self.word], self.need.many
            named = named_models(choice, self.role, many=many) if self.role else {"": choice}
        elif self.need.optional:
            return {}
        elif self.default is None:
            raise UsageError(f"{self.metric.name}: needs {self.who()}")
        else:
            named = {"": self.default}
        return {self.place._replace(name=name): choice for name, choice in named.items()}

    def who(self) -> str:
        """Return in words who is needed, and the option that names it."""
        words = ROLES[self.role][1] if self.role else self.served.backend
        if not words.startswith(("the ", "a ", "models ")):
            words = f"an {words}" if words[0] in "aeiou" else f"a {words}"
        return f"{words} ({backend_words()[self.word]})"


def demands_of(metrics: Iterable[Metric], given: Container[str] = ()) -> list[Demand]:
    """Return what metrics need in a run with the backends ``given``, by their option names.

    Raises :class:`UnknownNameError` for what does not exist.
    """
    kinds = capabilities()
    demands = []
    for metric in metrics:
        for need in metric.needs():
            if need.beside and need.beside not in given:
                continue
            if need.capability not in {*kinds, "choose"}:
                message = did_you_mean("capability", need.capability, [*kinds, "choose"])
                raise UnknownNameError(f"metric {metric.name} needs an {message}")
            asked = kinds["chat" if need.capability == "choose" else need.capability]
            served = kinds[asked.served_by or asked.name]
            role = need.role or (MODEL if served.name == "chat" else "")
            if role not in ROLES and (role or served.name == "chat"):
                message = did_you_mean("role of a chat model", role, ROLES)
                raise UnknownNameError(f"metric {metric.name} needs an {message}")
            demands.append(Demand(metric, need, role, asked, served))
    return demands


def resolved(
    metrics: Sequence[Metric], inventory: Inventory, backends: Mapping[str, Any]
) -> list[Metric]:
    """Return metrics as they are in a run of these samples and these backends, by their names."""
    return [metric.resolved(inventory).served_by(backends) for metric in metrics]


async def settle(
    metrics: Sequence[Metric],
    named: Mapping[str, Any],
    *,
    stores: Iterable[Path | None] | None = None,
    unanswered: bool = False,
    load: bool = True,
) -> Backends:
    """Return the backends that metrics need, those named and the defaults, loaded.

    ``named`` holds, by a capability's backend (``entailer``, ``token_embedder``) or a chat model's
    role, a URI or an object; for a role also a list of them, or a mapping of models by name.
    ``None`` counts as not given. A ``model`` is loaded even if no metric needs it, since it
    answers samples without a response.

    With ``stores``, files of calls, a missing key is refused as well, unless one of them has
    replies of that backend. The model under assessment is asked where ``unanswered``, or by metrics
    that do not read responses. Without ``load``, what takes time to load is only checked, and
    an :class:`Unloaded` stands for it.

    Raises:
        UnknownNameError: a metric needs a capability or role that does not exist, or ``named``
            holds an unknown word.
        ValueError: a need is not met; a backend is given that no metric uses; several models are
            given where the metric takes one.
        BackendError: a backend cannot be loaded, or cannot do what is needed.
        FaultsError: there are several such faults. None of these faults waits for a model that
            takes time to load.
    """
    given = {word: choice for word, choice in named.items() if choice is not None}
    options = backend_words()
    for word in given:
        if word not in options:
            raise UnknownNameError(did_you_mean("backend", word, options))
    demands = demands_of(metrics, given)
    _check_defaults(demands, given)
    wanted: dict[Place, Any] = {}
    used = {MODEL}
    faults: list[Exception] = []
    for one in demands:
        try:
            if choices := one.choices(given):
                wanted |= choices
                used.add(one.word)
        except UsageError as error:
            faults.append(error)
    if MODEL in given:
        models = named_models(given[MODEL], MODEL, many=False)
        wanted |= {Place("chat", MODEL, name): choice for name, choice in models.items()}
    if not faults and (unused := [word for word in given if word not in used]):
        names = " and ".join(metric.name for metric in metrics)
        faults.append(UsageError(f"{options[unused[0]]} is given, but {names} does not use it"))
    asked = unanswered or not all(metric.reads_response for metric in metrics)
    held = await load_all(
        wanted, faults, stores, lambda place: asked or place.role != MODEL, load=load
    )
    for one in demands:
        for place, backend in held.items():
            if place[:2] == one.place[:2] and not isinstance(backend, Unloaded):
                try:
                    one.asked.check(backend)
                    if one.need.embeddings:
                        check_embeddings(backend)
                except BackendError as error:
                    raise BackendError(f"{one.metric.name}: {error}") from None
    return Backends(held)


async def load_all(
    wanted: Mapping[Place, Any],
    faults: Sequence[Exception] = (),
    stores: Iterable[Path | None] | None = None,
    is_asked: Callable[[Place], bool] = lambda _: True,
    *,
    load: bool = True,
) -> dict[Place, Any]:
    """Load backends, given by their place as URIs or objects.

    What takes time is loaded last, and only if nothing else fails: ``faults`` that are
    known, what cannot be loaded, and with ``stores`` missing keys of those that are asked. Without
    ``load`` it is not loaded.

    Raises:
        The fault if there is one; :class:`FaultsError` if there are several.
    """
    faults = list(faults)
    held: dict[Place, Any] = {}
    paths = None if stores is None else list(stores)
    kinds = {place: capability(place.capability) for place in wanted}
    for place, choice in wanted.items():
        try:
            if takes_time(kinds[place].backend, choice):
                if fault := fault_of(kinds[place].backend, choice):
                    raise BackendError(fault)
                continue
            held[place] = await asyncio.to_thread(kinds[place].load, choice)
            if paths is not None and is_asked(place):
                check_keys(Backends({place: held[place]}).endpoints(), paths)
        except (UsageError, BackendError) as error:
            faults.append(error)
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise FaultsError(list(dict.fromkeys(map(str, faults))))
    for place, choice in wanted.items():
        if place not in held:
            slow = asyncio.to_thread(kinds[place].load, choice) if load else None
            held[place] = await slow if slow else Unloaded(str(choice))
    return {place: held[place] for place in wanted}


@dataclass(frozen=True)
class Unloaded:
    """Stands for a backend that another process loads; ``name`` is its URI."""

    name: str


def needed_words(metric: str, options: Mapping[str, Any], backends: Mapping[str, Any]) -> set[str]:
    """Return those names of backends, as in ``run.json``, that a metric asks; of one that is not
    installed, all."""
    try:
        demands = demands_of([metric_from_settings(metric, options)], backends)
    except (UnknownNameError, TypeError, ValueError):
        return set(backends)
    words = {one.word for one in demands} - {MODEL}
    return words | {word.replace("_", " ") for word in words}


def named_models(choice: Any, role: str, *, many: bool) -> dict[str, Any]:
    """Return the models of a role by name: a single one under the name "", or several.

    Several are given as a mapping, or as a list of URIs and objects. In a list ``NAME=URI`` gives
    a name; otherwise the model's own is used, with a number if two would share it.

    Raises:
        ValueError: several where there may be one, or two of one name.
    """
    if isinstance(choice, Mapping):
        result = dict(choice)
    elif isinstance(choice, Sequence) and not isinstance(choice, str):
        result = {}
        for one in choice:
            name, model = _name_and_model(one)
            if name in result:
                name = next(f"{name}-{n}" for n in range(2, 10**6) if f"{name}-{n}" not in result)
            result[name] = model
    else:
        return {"": choice} if not many else dict([_name_and_model(choice)])
    if not many:
        if len(result) != 1:
            raise UsageError(f"{backend_words()[role]}: expected one model, got {len(result)}")
        return {"": next(iter(result.values()))}
    return result


def _check_defaults(demands: Iterable[Demand], given: Mapping[str, Any]) -> None:
    """Refuse metrics of one run that would take different backends where nobody is named."""
    taken: dict[Place, Demand] = {}
    for one in demands:
        if one.word in given or one.need.optional:
            continue
        first = taken.setdefault(one.place, one)
        if first.default != one.default:
            raise UsageError(
                f"{first.metric.name} would take {first.default} and {one.metric.name} "
                f"{one.default}; one run has one: name it ({backend_words()[one.word]})"
            )


def _name_and_model(choice: Any) -> tuple[str, Any]:
    """Read ``NAME=URI``, or find a name in a URI or an object."""
    if not isinstance(choice, str):
        return str(getattr(choice, "name", None) or getattr(choice, "__name__", "model")), choice
    if (result := _NAMED.fullmatch(choice)) and ":" not in result["name"]:
        return result["name"], result["uri"]
    _, _, rest = choice.partition(":")
    return re.split(r"@(?=https?://)|\?", rest)[0].rsplit("/", 1)[-1] or choice, choice


def backend_words() -> dict[str, str]:
    """Return the names of backends in Python, and the command line's option for each."""
    return {role: option for role, (option, _) in ROLES.items()} | {
        one.word: one.option or one.backend
        for one in capabilities().values()
        if not one.served_by and one.name != "chat"
    }


def check_served(metrics: Iterable[Metric], backends: Backends, inventory: Inventory) -> None:
    """Refuse a run that has neither a backend nor the samples' field that would serve for it.

    Raises:
        UsageError: it is so; the message names both.
    """
    for one in demands_of(metrics):
        field = one.need.field
        if field and not getattr(inventory, field) and one.place not in backends.held:
            raise UsageError(
                f"{one.metric.name}: needs {one.who()}, or {field} in the samples; no sample has "
                "any"
            )


def check_run_keys(
    metrics: Sequence[Metric], backends: Backends, stores: Iterable[Path | None], missing: int = 0
) -> None:
    """Check the keys of a run in which ``missing`` samples have no response.

    If all have one, only metrics that do not read it ask a chat model.
    """
    reads = [metric.reads_response for metric in metrics]
    asks = not all(reads) or (missing > 0 and any(reads))
    check_keys((backends if asks else backends.without("chat")).endpoints(), stores)


def recorded_backends(
    backends: Mapping[str, Any], metrics: Sequence[Metric], calls: Path, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the backends of a run that the metrics need, and the model, but for those given.

    Args:
        backends: as ``run.json`` names them. calls: the run's file of calls.

    Raises:
        UnknownNameError, BackendError: an entailer cannot be loaded, and nothing of it is stored.
    """
    asked = {one.word for one in demands_of(metrics, {*backends, *given})}
    wanted = {MODEL, *asked} - set(given)
    result: dict[str, Any] = {}
    for word, name in backends.items():
        key = word.replace(" ", "_")
        if key not in wanted:
            continue
        if key in ("entailer", SECOND):
            result[key] = _entailer(name, calls, backend_words()[key])
        elif key in ROLES:
            result[key] = _or_absent(resolve.chat, name, _AbsentChat, "--model")
        elif isinstance(name, Mapping):  # the sources of distractors, by name
            sources = partial(load, "distractors")
            result[key] = _or_absent(sources, name, _AbsentSource, "--distractors")
        else:
            result[key] = name
    return result


def _or_absent(load: Callable[[str], Any], name: Any, absent: "type[_Absent]", option: str) -> Any:
    """Return the backend of a name, or of several by name, each as far as it can be loaded."""
    if isinstance(name, Mapping):
        return {key: _or_absent(load, one, absent, option) for key, one in name.items()}
    try:
        return load(name)
    except (UnknownNameError, BackendError) as error:
        return absent(name, str(error), option)


def _entailer(name: str, calls: Path, option: str) -> Any:
    from trustassay.backends.chat_entailer import ChatEntailer, judging_of

    try:
        return resolve.entailer(name)
    except (UnknownNameError, BackendError) as error:
        own, judging = judging_of(name.removeprefix("chat:"))
        if has_replies(calls, own, "chat"):
            scheme = "chat:" if name.startswith("chat:") else ""
            return ChatEntailer(_AbsentChat(own, str(error), option), judging, scheme)
        if has_replies(calls, name, "entailment"):
            return _AbsentEntailer(name, str(error), option)
        raise


@dataclass(eq=False)
class _Absent:
    """A backend of which only the stored replies are available; ``option`` names another one."""

    name: str
    reason: str
    option: str

    def refusal(self, what: str = "") -> str:
        return (
            f"the run's {what}{self.name} cannot be used here ({self.reason}); give {self.option}"
        )


class _AbsentChat(_Absent):
    perturbs_embeddings = True  # by its stored replies

    async def reply(self, request: ChatRequest) -> Reply:  # noqa: ARG002
        raise CallError(self.refusal("model "), "closed")


class _AbsentEntailer(_Absent):
    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:  # noqa: ARG002
        raise BackendError(self.refusal())


class _AbsentSource(_Absent):
    def substitutes(self, requests: Sequence[SubstitutesRequest]) -> list[list[str]]:  # noqa: ARG002
        raise BackendError(self.refusal())
