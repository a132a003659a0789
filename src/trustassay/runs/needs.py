"""Choose the backends of a run, from the needs of its metrics and from what the user gave.

1. List the demands: each need of each metric, with its capability and role.
2. Find a backend for each: the given one, else the default.
3. Refuse what cannot work: unknown names, unmet needs, unused backends, missing keys.
4. Load the backends, those that take time last.
"""

import asyncio
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from trustassay.backends import resolve
from trustassay.backends.registry import (
    find_fault,
    is_decision_model,
    load,
    schemes,
    takes_time,
)
from trustassay.calls.backends import MODEL_ROLE, BackendKey, Backends, check_embeddings
from trustassay.calls.capability import Capability, capabilities, capability
from trustassay.calls.client import check_keys, has_replies
from trustassay.core.capabilities import ChatRequest, Probabilities, Reply, SubstitutesRequest
from trustassay.core.metric import Inventory, Metric, Need
from trustassay.core.registry import metric_from_settings
from trustassay.errors import (
    BackendError,
    CallError,
    FaultsError,
    UnknownNameError,
    UsageError,
    did_you_mean,
    shorten_name,
)
from trustassay.judging.second_reader import ROLE as SECOND

ROLES: Mapping[str, tuple[str, str]] = {
    MODEL_ROLE: ("--model", "the model under assessment"),
    "judge": ("--judge", "a judge"),
    "generator": ("--backend generator=URI", "a model that writes wrong and corrected answers"),
    "references": ("--reference", "models whose answers are compared"),
    SECOND: ("--second", "a second reader"),
}
"""By role of a chat model, and of the second reader among entailers: the option on the command
line, and a description."""
# "mine=openai:gpt-4o", but not "openai:gpt-4o?temperature=0": a name has no colon.
_NAMED_URI = re.compile(r"(?P<name>[\w.-]+)=(?P<uri>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Demand:
    """One need of a metric, with the capabilities that it refers to."""

    metric: Metric
    need: Need
    role: str
    """The role of a chat model or entailer; empty for other backends."""
    requested: Capability[Any, Any]
    """The capability that the metric uses."""
    served: Capability[Any, Any]
    """The capability whose backends serve it, often the same."""

    @property
    def place(self) -> BackendKey:
        """The place of the backend. If a role has several, each place has a name too."""
        return BackendKey(self.served.name, self.role)

    @property
    def option_name(self) -> str:
        """The option name of the backend."""
        return self.role or self.served.word

    @property
    def default(self) -> str | None:
        """The backend that is used if the user gives none."""
        return self.need.default or self.served.default

    def choices(self, given_backends: Mapping[str, Any]) -> dict[BackendKey, Any]:
        """Return the backends by place; empty for an optional need that is not met.

        Raises:
            UsageError: no backend is given, and there is no default.
        """
        # A capability may itself turn one value into several backends, as sources of distractors
        # do.
        if self.served.choices and (self.option_name in given_backends or not self.need.optional):
            models = self.served.choices(given_backends.get(self.option_name, self.served.default))
        elif self.option_name in given_backends:
            choice, many = given_backends[self.option_name], self.need.many
            models = name_models(choice, self.role, many=many) if self.role else {"": choice}
        elif self.need.optional:
            return {}
        elif self.default is None:
            raise UsageError(f"{self.metric.name}: needs {self.describe_backend()}")
        else:
            models = {"": self.default}
        return {
            self._find_place(choice)._replace(name=name): choice for name, choice in models.items()
        }

    def _find_place(self, choice: Any) -> BackendKey:
        """Return the place of a choice: that of a decision model, where one can serve, is its own.

        Where none can, loading it as a chat model says so.
        """
        reason = self.need.decisions
        if reason is None or not is_decision_model(choice):
            return self.place
        if reason:
            name = choice if isinstance(choice, str) else choice.name
            raise UsageError(f"{self.metric.name}: {name} is a decision model, which {reason}")
        return BackendKey("decide", self.role)

    def describe_backend(self) -> str:
        """Return a description of the backend, and the option that names it."""
        description = ROLES[self.role][1] if self.role else self.served.backend
        if not description.startswith(("the ", "a ", "models ")):
            description = f"an {description}" if description[0] in "aeiou" else f"a {description}"
        return f"{description} ({list_backend_options()[self.option_name]})"


def list_demands(metrics: Iterable[Metric], given_words: Container[str] = ()) -> list[Demand]:
    """Return the demands of metrics.

    Args:
        given_words: the option names of the backends that the user gave.

    Raises:
        UnknownNameError: a metric needs a capability or a role that does not exist.
    """
    kinds = capabilities()
    demands = []
    for metric in metrics:
        for need in metric.needs():
            # Some needs only arise if the user gives another backend.
            if need.only_with and need.only_with not in given_words:
                continue
            if need.capability not in {*kinds, "choose"}:
                message = did_you_mean("capability", need.capability, [*kinds, "choose"])
                raise UnknownNameError(f"metric {metric.name} needs an {message}")
            # "choose" is served by chat models: it is a chat with options to choose from.
            kind = kinds["chat" if need.capability == "choose" else need.capability]
            serving = kinds[kind.served_by or kind.name]
            # A chat model without a role is the model under assessment.
            role = need.role or (MODEL_ROLE if serving.name == "chat" else "")
            if role not in ROLES and (role or serving.name == "chat"):
                message = did_you_mean("role of a chat model", role, ROLES)
                raise UnknownNameError(f"metric {metric.name} needs an {message}")
            demands.append(Demand(metric, need, role, kind, serving))
    return demands


def can_be_served(metric: Metric, backends_by_option: Mapping[str, Any]) -> bool:
    """Whether the backends that the user gave can serve a metric with these options."""
    given_backends = {k: v for k, v in backends_by_option.items() if v is not None}
    try:
        for demand in list_demands([metric], given_backends):
            demand.choices(given_backends)
    except UsageError:
        return False
    return True


def resolve_metrics(
    metrics: Sequence[Metric], inventory: Inventory, backends: Mapping[str, Any]
) -> list[Metric]:
    """Return the metrics with options that the samples and the backends of the run decide.

    Args:
        backends: their names by option name.
    """
    return [metric.resolve(inventory).with_backends(backends) for metric in metrics]


async def choose_backends(
    metrics: Sequence[Metric],
    backends_by_option: Mapping[str, Any],
    *,
    stores: Iterable[Path | None] | None = None,
    unanswered: bool = False,
    load: bool = True,
) -> Backends:
    """Return the backends that metrics need, the given ones and the defaults, loaded.

    A ``model`` is loaded even if no metric needs it, since it answers samples without a response.

    Args:
        backends_by_option: URIs or objects by option name: the backend of a capability
            (``entailer``, ``token_embedder``) or the role of a chat model. A role may also have a
            list of them, or a mapping of models by name. ``None`` counts as not given.
        stores: files of calls. If given, a missing key is refused, unless one of them has replies
            of that backend.
        unanswered: whether samples lack a response, so that the model under assessment is asked.
        load: without it, backends that take time to load are only checked, and an
            :class:`Unloaded` stands for each.

    Raises:
        UnknownNameError: a metric needs a capability or role that does not exist, or
            ``backends_by_option`` has an unknown option name.
        ValueError: a need is not met; a backend is given that no metric uses; several models are
            given and the metric takes one.
        BackendError: a backend cannot be loaded, or cannot do what is needed.
        FaultsError: there are several of these faults. All are found before a model is loaded that
            takes time.
    """
    # Step 1: what the user gave, and what metrics need.
    given_backends = {
        word: choice for word, choice in backends_by_option.items() if choice is not None
    }
    options = list_backend_options()
    for word in given_backends:
        if word not in options:
            raise UnknownNameError(did_you_mean("backend", word, options))
    demands = list_demands(metrics, given_backends)
    _check_defaults(demands, given_backends)
    # Step 2: the backend of each demand. All faults are collected, so that the user sees them at
    # once.
    choices_by_place: dict[BackendKey, Any] = {}
    used_options = {MODEL_ROLE}
    faults: list[Exception] = []
    for demand in demands:
        try:
            if choices := demand.choices(given_backends):
                choices_by_place |= choices
                used_options.add(demand.option_name)
        except UsageError as error:
            faults.append(error)
    if MODEL_ROLE in given_backends:
        models = name_models(given_backends[MODEL_ROLE], MODEL_ROLE)
        choices_by_place |= {
            BackendKey("chat", MODEL_ROLE, name): choice for name, choice in models.items()
        }
    # A backend that nobody asks is a misunderstanding, most likely of what the metric does.
    if not faults and (
        unused_options := [word for word in given_backends if word not in used_options]
    ):
        names = " and ".join(metric.name for metric in metrics)
        faults.append(
            UsageError(f"{options[unused_options[0]]} is given, but {names} does not use it")
        )
    # Step 3: load them. The key of the model under assessment matters only if it is asked.
    model_is_asked = unanswered or not all(metric.reads_response for metric in metrics)
    loaded = await load_backends(
        choices_by_place,
        faults,
        stores,
        lambda place: model_is_asked or place.role != MODEL_ROLE,
        load=load,
    )
    for demand in demands:
        for place, backend in loaded.items():
            if place[:2] == demand.place[:2] and not isinstance(backend, Unloaded):
                try:
                    demand.requested.check(backend)
                    if demand.need.embeddings:
                        check_embeddings(backend)
                except BackendError as error:
                    raise BackendError(f"{demand.metric.name}: {error}") from None
    return Backends(loaded)


def _check_own_names(choices: Mapping[BackendKey, Any], loaded: Mapping[BackendKey, Any]) -> None:
    """Refuse different objects of one name as models under assessment.

    Replies are found by the name of the backend, so that each would get those of the other one.
    """
    objects_by_name: dict[str, Any] = {}
    for place, choice in choices.items():
        if place.role != MODEL_ROLE or isinstance(choice, str):
            continue
        name = loaded[place].name
        if objects_by_name.setdefault(name, choice) is not choice:
            raise UsageError(f"--model: two models have the name {name}; expected different names")


async def load_backends(
    wanted: Mapping[BackendKey, Any],
    faults: Sequence[Exception] = (),
    stores: Iterable[Path | None] | None = None,
    is_asked: Callable[[BackendKey], bool] = lambda _: True,
    *,
    load: bool = True,
) -> dict[BackendKey, Any]:
    """Load backends; those that take time last, and only if nothing else fails.

    Args:
        wanted: URIs or objects by place.
        faults: those found so far.
        stores: files of calls; if given, missing keys are faults, see :func:`choose_backends`.
        is_asked: whether a backend is called, so that it needs its key.
        load: without it, backends that take time to load are only checked.

    Raises:
        Exception: the fault if there is one; :class:`FaultsError` if there are several.
    """
    faults = list(faults)
    loaded: dict[BackendKey, Any] = {}
    paths = None if stores is None else list(stores)
    place_capabilities = {place: capability(place.capability) for place in wanted}
    for place, choice in wanted.items():
        try:
            if takes_time(place_capabilities[place].backend, choice):
                # Found without loading: a missing package, a file that does not exist.
                if fault := find_fault(place_capabilities[place].backend, choice):
                    raise BackendError(fault)
                continue
            loaded[place] = await asyncio.to_thread(place_capabilities[place].load, choice)
            # Only an endpoint has a key, and it is loaded by now: it takes no time.
            if paths is not None and is_asked(place):
                check_keys(Backends({place: loaded[place]}).endpoints(), paths)
        except (UsageError, BackendError) as error:
            faults.append(error)
    if len(faults) == 1:
        raise faults[0]
    if faults:
        # Two metrics may have the same fault.
        raise FaultsError(list(dict.fromkeys(map(str, faults))))
    for place, choice in wanted.items():
        if place not in loaded:
            loading = asyncio.to_thread(place_capabilities[place].load, choice) if load else None
            loaded[place] = await loading if loading else Unloaded(str(choice))
    _check_own_names(wanted, loaded)
    return {place: loaded[place] for place in wanted}


@dataclass(frozen=True)
class Unloaded:
    """Stands for a backend that another process loads."""

    name: str
    """Its URI."""


def list_needed_backends(
    metric: str, options: Mapping[str, Any], backends: Mapping[str, Any]
) -> set[str]:
    """Return the option names of the backends that a metric asks, as ``run.json`` has them.

    For a metric that is not installed, all backends of the run are returned.
    """
    try:
        demands = list_demands([metric_from_settings(metric, options)], backends)
    except (UnknownNameError, TypeError, ValueError):
        return set(backends)
    option_names = {demand.option_name for demand in demands} - {MODEL_ROLE}
    # In ``run.json`` the names have spaces: "token embedder".
    return option_names | {word.replace("_", " ") for word in option_names}


def name_models(choice: Any, role: str, *, many: bool = False) -> dict[str, Any]:
    """Return the models of a role by name; a single one has the name "".

    There may always be several models under assessment. A single one has the name that the user
    gave it, since it then answers for the samples of that name alone.

    Args:
        choice: a URI or an object, a mapping of them by name, or a list of them. ``NAME=URI``
            gives a name; otherwise the model's own name is used, with a number if two of another
            role would share it.
        many: whether a role of other models may have several.

    Raises:
        UsageError: several are given and there may be one, or two have the same name.
    """
    is_list = isinstance(choice, Sequence) and not isinstance(choice, str)
    if role == MODEL_ROLE and not many:
        if is_list and len(choice) == 1:
            choice = choice[0]
        elif is_list or isinstance(choice, Mapping):
            return name_models(choice, role, many=True)
        name, model = _split_named_uri(choice)
        return {name: model}
    if isinstance(choice, Mapping):
        result = dict(choice)
    elif is_list:
        result = {}
        for item in choice:
            name, model = _name_and_model(item)
            has_own_name = bool(_split_named_uri(item)[0])
            if name in result and (has_own_name or role == MODEL_ROLE):
                option = list_backend_options()[role]
                raise UsageError(
                    f"{option}: {shorten_name(name)} is given twice; give each model another name, "
                    f"as {option} NAME=URI"
                )
            if name in result:
                name = next(f"{name}-{n}" for n in range(2, 10**6) if f"{name}-{n}" not in result)
            result[name] = model
    else:
        return {"": choice} if not many else dict([_name_and_model(choice)])
    if not many:
        if len(result) != 1:
            raise UsageError(
                f"{list_backend_options()[role]}: expected one model, got {len(result)}"
            )
        return {"": next(iter(result.values()))}
    return result


def _check_defaults(demands: Iterable[Demand], given_backends: Mapping[str, Any]) -> None:
    """Refuse metrics of one run whose defaults for the same backend differ."""
    first_demands: dict[BackendKey, Demand] = {}
    for demand in demands:
        if demand.option_name in given_backends or demand.need.optional:
            continue
        first = first_demands.setdefault(demand.place, demand)
        if first.default != demand.default:
            raise UsageError(
                f"{first.metric.name} uses {first.default} by default and {demand.metric.name} "
                f"{demand.default}, but a run has only one; choose it with "
                f"{list_backend_options()[demand.option_name]}"
            )


def _name_and_model(choice: Any) -> tuple[str, Any]:
    """Return name and model from ``NAME=URI``, or derive the name from a URI or an object."""
    name, model = _split_named_uri(choice)
    if name:
        return name, model
    if not isinstance(choice, str):
        return str(getattr(choice, "name", None) or getattr(choice, "__name__", "model")), choice
    return derive_model_name(choice), choice


def _split_named_uri(choice: Any) -> tuple[str, Any]:
    """Return name and model from ``NAME=URI``; the name is empty if none is given."""
    if not isinstance(choice, str):
        return "", choice
    # Names come from the field ``model`` and may have any form ("org/model"), but what follows one
    # begins as a URI does. In "openai:m?stop=hf:" it is the value of an option.
    known_schemes = {scheme.name for scheme in schemes("chat model")}
    for place in (match.start() for match in re.finditer("=", choice)):
        name, uri = choice[:place], choice[place + 1 :]
        is_option = "?" in name and name.partition(":")[0] in known_schemes
        if name and ":" in uri and uri.partition(":")[0] in known_schemes and not is_option:
            return name, uri
    match = _NAMED_URI.fullmatch(choice)
    return (match["name"], match["uri"]) if match else ("", choice)


def derive_model_name(uri: str) -> str:
    """Return the name of the model of a URI: ``model`` of ``openai:org/model@https://host?x=1``."""
    _, _, model_part = uri.partition(":")
    return re.split(r"@(?=https?://)|\?", model_part)[0].rsplit("/", 1)[-1] or uri


def list_backend_options() -> dict[str, str]:
    """Return the option on the command line for each option name in Python."""
    return {role: option for role, (option, _) in ROLES.items()} | {
        kind.word: kind.option or kind.backend
        for kind in capabilities().values()
        # Models of these two have roles.
        if not kind.served_by and kind.name not in ("chat", "decide")
    }


def check_served(metrics: Iterable[Metric], backends: Backends, inventory: Inventory) -> None:
    """Check that each need has a backend, or the field of the samples that replaces it.

    Raises:
        UsageError: there is neither; the message names both.
    """
    for demand in list_demands(metrics):
        field = demand.need.field
        if field and not getattr(inventory, field) and demand.place not in backends.by_key:
            raise UsageError(
                f"{demand.metric.name}: needs {demand.describe_backend()}, or the field {field}, "
                "which no sample has"
            )


def check_run_keys(
    metrics: Sequence[Metric], backends: Backends, stores: Iterable[Path | None], missing: int = 0
) -> None:
    """Check the keys of the endpoints that a run will call.

    Args:
        stores: files that may hold replies already.
        missing: samples without a response. If all have one, only metrics that do not read it ask
            a chat model.
    """
    reads = [metric.reads_response for metric in metrics]
    asks = not all(reads) or (missing > 0 and any(reads))
    check_keys((backends if asks else backends.without("chat")).endpoints(), stores)


def load_recorded_backends(
    backends: Mapping[str, Any],
    metrics: Sequence[Metric],
    calls: Path,
    given_backends: Mapping[str, Any],
) -> dict[str, Any]:
    """Load the backends of a stored run that the metrics need, and its model.

    A chat model that cannot be loaded is replaced by one that only has the stored replies. Named
    models replace those of the same names alone, and the result has them too.

    Args:
        backends: their names in ``run.json``.
        calls: the run's file of calls.
        given_backends: the backends that the user gave, which are not loaded here.

    Raises:
        UnknownNameError, BackendError: an entailer cannot be loaded, and no reply of it is stored.
    """
    demanded = {
        demand.option_name for demand in list_demands(metrics, {*backends, *given_backends})
    }
    wanted_options = {MODEL_ROLE, *demanded} - set(given_backends)
    result: dict[str, Any] = {}
    for word, name in backends.items():
        key = word.replace(" ", "_")
        if key not in wanted_options:
            continue
        if key in ("entailer", SECOND):
            result[key] = _load_recorded_entailer(name, calls, list_backend_options()[key])
        elif key in ROLES:
            result[key] = _load_or_absent(_load_recorded_model, name, _AbsentChat, "--model")
        elif isinstance(name, Mapping):  # the sources of distractors, by name
            sources = partial(load, "distractors")
            result[key] = _load_or_absent(sources, name, _AbsentSource, "--backend distractors=URI")
        else:
            result[key] = name
    recorded_models, choice = backends.get(MODEL_ROLE), given_backends.get(MODEL_ROLE)
    if isinstance(recorded_models, Mapping) and choice is not None:
        models = name_models(choice, MODEL_ROLE)
        other_models = {name: uri for name, uri in recorded_models.items() if name not in models}
        # A single model without a name is the only one.
        if "" not in models:
            loaded = _load_or_absent(resolve.chat, other_models, _AbsentChat, "--model")
            result[MODEL_ROLE] = {**loaded, **models}
    return result


def _load_or_absent(
    load: Callable[[str], Any], name: Any, absent: "type[_Absent]", option: str
) -> Any:
    """Load a backend, or several by name; one that cannot be loaded is replaced by ``absent``."""
    if isinstance(name, Mapping):
        # One URI may stand under two names, and is one backend.
        loaded = {
            item: _load_or_absent(load, item, absent, option)
            for item in dict.fromkeys(name.values())
        }
        return {key: loaded[item] for key, item in name.items()}
    try:
        return load(name)
    except (UnknownNameError, BackendError) as error:
        return absent(name, str(error), option)


def _load_recorded_model(name: str) -> Any:
    """Load the model of a role; a decision model is left to whoever finds its place."""
    return name if is_decision_model(name) else resolve.chat(name)


def _load_recorded_entailer(name: str, calls: Path, option: str) -> Any:
    from trustassay.backends.chat_entailer import ChatEntailer, split_entailment_options

    try:
        return resolve.entailer(name)
    except (UnknownNameError, BackendError) as error:
        # A chat model that judged, perhaps with options in its name: its replies are stored under
        # "chat".
        model_name, judging = split_entailment_options(name.removeprefix("chat:"))
        if has_replies(calls, model_name, "chat"):
            scheme = "chat:" if name.startswith("chat:") else ""
            return ChatEntailer(_AbsentChat(model_name, str(error), option), judging, scheme)
        if has_replies(calls, name, "entailment"):
            return _AbsentEntailer(name, str(error), option)
        raise


@dataclass(eq=False)
class _Absent:
    """A backend of which only the stored replies are available."""

    name: str
    reason: str
    """Why it could not be loaded."""
    option: str
    """The option by which the user can give another one."""

    def refusal(self, what: str = "") -> str:
        return (
            f"the run's {what}{self.name} cannot be used here ({self.reason}); give {self.option}"
        )


class _AbsentChat(_Absent):
    perturbs_embeddings = True  # by its stored replies

    @property
    def tells_first_token(self) -> bool:
        """Whether its stored judgements are odds, as those of a model in a GGUF file are."""
        return self.name.startswith("gguf:")

    async def reply(self, request: ChatRequest) -> Reply:  # noqa: ARG002
        raise CallError(self.refusal("model "), "closed")


class _AbsentEntailer(_Absent):
    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:  # noqa: ARG002
        raise BackendError(self.refusal())


class _AbsentSource(_Absent):
    def substitutes(self, requests: Sequence[SubstitutesRequest]) -> list[list[str]]:  # noqa: ARG002
        raise BackendError(self.refusal())
