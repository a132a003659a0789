"""From what metrics need, and what a user named, to the backends of a run."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trustassay.backends.registry import fault_of, takes_time
from trustassay.calls.backends import MODEL, Backends, Place, place_of
from trustassay.calls.client import check_keys
from trustassay.calls.kinds import capabilities, capability
from trustassay.errors import BackendError, FaultsError, UnknownNameError, UsageError, did_you_mean
from trustassay.metric import Inventory, Metric, Need

ROLES: Mapping[str, tuple[str, str]] = {
    MODEL: ("--model", "the model under assessment"),
    "judge": ("--judge", "a model that judges"),
    "generator": ("--generator", "a model that makes wrong and corrected answers"),
    "references": ("--reference", "models whose answers are compared"),
}
"""The roles of chat models: the option on the command line, and a description."""
_NAMED = re.compile(r"(?P<name>[\w.-]+)=(?P<uri>.+)", re.DOTALL)


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
    _check_words(given)
    needs = check_needs(metrics)
    wanted: dict[Place, tuple[str, Any]] = {}
    _check_defaults(needs, given)
    faults: list[Exception] = []
    for metric, need in needs:
        try:
            for place, choice in _choices(metric, need, given).items():
                wanted[place] = (place.capability, choice)
        except UsageError as error:
            faults.append(error)
    if MODEL in given:
        wanted |= {
            Place("chat", MODEL, name): ("chat", choice)
            for name, choice in named_models(given[MODEL], MODEL, many=False).items()
        }
    used = {_word(place) for place in wanted}
    if not faults and (unused := [word for word in given if word not in used]):
        names = " and ".join(metric.name for metric in metrics)
        faults.append(UsageError(f"{_option(unused[0])} is given, but {names} does not use it"))
    asked = unanswered or not all(metric.reads_response for metric in metrics)
    held = await load_all(
        wanted, faults, stores, lambda place: asked or place.role != MODEL, load=load
    )
    for metric, need in needs:
        backends = [b for p, b in held.items() if p[:2] == place_of(need.capability, need.role)[:2]]
        for backend in backends:
            if not isinstance(backend, Unloaded):
                _check_able(metric, need, backend)
    return Backends(held)


async def load_all(
    wanted: Mapping[Place, tuple[str, Any]],
    faults: Sequence[Exception] = (),
    stores: Iterable[Path | None] | None = None,
    is_asked: Callable[[Place], bool] = lambda _: True,
    *,
    load: bool = True,
) -> dict[Place, Any]:
    """Load backends, given by their place as the capability that loads them and the choice.

    What takes time is loaded last, and only if nothing else fails: ``faults`` that are
    known, what cannot be loaded, and with ``stores`` missing keys of those that are asked. Without
    ``load`` it is not loaded.

    Raises:
        The fault if there is one; :class:`FaultsError` if there are several.
    """
    found = list(faults)
    held: dict[Place, Any] = {}
    paths = None if stores is None else list(stores)
    for place, (name, choice) in wanted.items():
        try:
            if takes_time(capability(name).backend, choice):
                if fault := fault_of(capability(name).backend, choice):
                    raise BackendError(fault)
                continue
            held[place] = await asyncio.to_thread(capability(name).load, choice)
            if paths is not None and is_asked(place):
                check_keys(Backends({place: held[place]}).endpoints(), paths)
        except (UsageError, BackendError) as error:
            found.append(error)
    if len(found) == 1:
        raise found[0]
    if found:
        raise FaultsError(list(dict.fromkeys(map(str, found))))
    for place, (name, choice) in wanted.items():
        if place not in held:
            held[place] = (
                await asyncio.to_thread(capability(name).load, choice)
                if load
                else Unloaded(str(choice))
            )
    return {place: held[place] for place in wanted}


@dataclass(frozen=True)
class Unloaded:
    """Stands for a backend that another process loads; ``name`` is its URI."""

    name: str


def check_needs(metrics: Iterable[Metric]) -> list[tuple[Metric, Need]]:
    """Return what metrics need; raises :class:`UnknownNameError` for what does not exist."""
    found = []
    for metric in metrics:
        for need in metric.needs():
            if need.capability not in {*capabilities(), "choose"}:
                words = did_you_mean("capability", need.capability, [*capabilities(), "choose"])
                raise UnknownNameError(f"metric {metric.name} needs an {words}")
            served_by_chat = need.capability == "choose" or (
                place_of(need.capability).capability == "chat"
            )
            role = need.role or (MODEL if served_by_chat else "")
            if served_by_chat and role not in ROLES:
                words = did_you_mean("role of a chat model", role, ROLES)
                raise UnknownNameError(f"metric {metric.name} needs an {words}")
            chat = "chat" if need.capability == "choose" else need.capability
            found.append((metric, dataclasses.replace(need, capability=chat, role=role)))
    return found


def asked_words(metrics: Iterable[Metric]) -> set[str]:
    """Return the option names of the backends that metrics need."""
    return {_word(place_of(need.capability, need.role)) for _, need in check_needs(metrics)}


def named_models(choice: Any, role: str, *, many: bool) -> dict[str, Any]:
    """Return the models of a role by name: a single one under the name "", or several.

    Several are given as a mapping, or as a list of URIs and objects. In a list ``NAME=URI`` gives
    a name; otherwise the model's own is used, with a number if two would share it.

    Raises:
        ValueError: several where there may be one, or two of one name.
    """
    if isinstance(choice, Mapping):
        found = dict(choice)
    elif isinstance(choice, Sequence) and not isinstance(choice, str):
        found = {}
        for one in choice:
            name, model = _name_and_model(one)
            if name in found:
                name = next(f"{name}-{n}" for n in range(2, 10**6) if f"{name}-{n}" not in found)
            found[name] = model
    else:
        return {"": choice} if not many else dict([_name_and_model(choice)])
    if not many:
        if len(found) != 1:
            raise UsageError(f"{_option(role)}: expected one model, got {len(found)}")
        return {"": next(iter(found.values()))}
    return found


def _check_defaults(needs: Sequence[tuple[Metric, Need]], given: Mapping[str, Any]) -> None:
    """Refuse metrics of one run that would take different backends where nobody is named."""
    taken: dict[Place, tuple[Metric, str | None]] = {}
    for metric, need in needs:
        place = place_of(need.capability, need.role)
        default = need.default or capability(place.capability).default
        if _word(place) in given or need.optional:
            continue
        first, other = taken.setdefault(place, (metric, default))
        if other != default:
            raise UsageError(
                f"{first.name} would take {other} and {metric.name} {default}; one run has one: "
                f"name it ({_option(_word(place))})"
            )


def _name_and_model(choice: Any) -> tuple[str, Any]:
    """Read ``NAME=URI``, or find a name in a URI or an object."""
    if not isinstance(choice, str):
        return str(getattr(choice, "name", None) or getattr(choice, "__name__", "model")), choice
    if (found := _NAMED.fullmatch(choice)) and ":" not in found["name"]:
        return found["name"], found["uri"]
    _, _, rest = choice.partition(":")
    return re.split(r"@(?=https?://)|\?", rest)[0].rsplit("/", 1)[-1] or choice, choice


def _choices(metric: Metric, need: Need, given: Mapping[str, Any]) -> dict[Place, Any]:
    """Return the backends of a need by place; empty for an optional need that is not met."""
    place = place_of(need.capability, need.role)
    word = _word(place)
    choices = capability(place.capability).choices
    if choices and (word in given or not need.optional):
        named = choices(given.get(word, capability(place.capability).default))
        return {place._replace(name=name): choice for name, choice in named.items()}
    if word in given:
        if not need.role:
            return {place: given[word]}
        models = named_models(given[word], need.role, many=need.many)
        return {place._replace(name=name): model for name, model in models.items()}
    default = need.default or capability(place.capability).default
    if need.optional:
        return {}
    if default is None:
        who = ROLES[need.role][1] if need.role else capability(place.capability).backend
        raise UsageError(f"{metric.name}: needs {_article(who)} ({_option(word)})")
    return {place: default}


def _check_able(metric: Metric, need: Need, backend: Any) -> None:
    try:
        capability(need.capability).check(backend)
    except BackendError as error:
        raise BackendError(f"{metric.name}: {error}") from None


def _word(place: Place) -> str:
    """Return the option name of the backend of a place."""
    return place.role or capability(place.capability).backend.replace(" ", "_")


def backend_words() -> dict[str, str]:
    """Return the names of backends in Python, and the command line's option for each."""
    others = [found for found in capabilities().values() if not found.served_by]
    return {role: option for role, (option, _) in ROLES.items()} | {
        found.backend.replace(" ", "_"): found.option or found.backend
        for found in others
        if found.name != "chat"
    }


def _option(word: str) -> str:
    return backend_words()[word]


def _check_words(given: Mapping[str, Any]) -> None:
    for word in given:
        if word not in backend_words():
            raise UnknownNameError(did_you_mean("backend", word, backend_words()))


def _article(words: str) -> str:
    if words.startswith(("the ", "a ", "an ")) or words.startswith("models "):
        return words
    return f"an {words}" if words[0] in "aeiou" else f"a {words}"


def check_served(metrics: Iterable[Metric], backends: Backends, inventory: Inventory) -> None:
    """Refuse a run that has neither a backend nor the samples' field that would serve for it.

    Raises:
        ValueError: it is so; the words name both.
    """
    for metric, need in check_needs(metrics):
        place = place_of(need.capability, need.role)
        if need.field is None or getattr(inventory, need.field):
            continue
        if backends.find(place.capability, place.role) is None:
            who = _article(capability(place.capability).backend)
            raise UsageError(
                f"{metric.name}: needs {who} ({_option(_word(place))}), or {need.field} in the "
                "samples; no sample has any"
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
