"""Which of the models under assessment is asked about which samples.

An answer belongs to the model that its sample names, so that no other model is asked about it.

1. Count the models of the samples that a run asks about (:class:`ModelCensus`).
2. Give each model of the run the name that it has in the samples (:func:`settle_models`), or
   refuse the run before anything is asked.
3. Refuse single samples whose model was not given (:func:`check_model`).

Samples that arrive one by one are never counted: :class:`ArrivingBackends` compares each name.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from trustassay.backends.registry import schemes
from trustassay.calls.backends import MODEL_ROLE, BackendKey, Backends
from trustassay.core.metric import Metric
from trustassay.core.sample import Sample
from trustassay.errors import ModelNotGivenError, UsageError, did_you_mean, shorten_name
from trustassay.runs.needs import derive_model_name, list_demands

MAX_MODELS_LISTED = 8
"""Models that a message lists."""
_SCHEMES_WITHOUT_MODEL = ("replay", "python")
_SUFFIXES_WITHOUT_MEANING = (":latest", "-latest", ".gguf")
# What providers append to the name of a dated version: 2024-08-06, 20241022, 0613, 2407 or 001.
_MONTH, _DAY = "(?:0[1-9]|1[0-2])", "(?:0[1-9]|[12][0-9]|3[01])"
_DATED_VERSION = re.compile(
    rf"(?P<stem>.+)[-@](?:20\d\d-?{_MONTH}-?{_DAY}|{_MONTH}{_DAY}|2\d{_MONTH}|0\d\d)", re.ASCII
)


class ModelCensus:
    """Counts the models that samples name, ``""`` for none, as far as a run asks them.

    Args:
        metrics: those of the run.
        fills: whether a model answers samples without a response.
        replaces: whether it also answers those with one.
    """

    def __init__(
        self, metrics: Iterable[Metric] = (), *, fills: bool = False, replaces: bool = False
    ) -> None:
        asking = [metric for metric in metrics if asks_model(metric)]
        self._always = replaces or any(map(_always_asks, asking))
        self._asking, self._fills = asking, fills
        self.concerned: Counter[str] = Counter()
        """Samples about which a model may be asked."""
        self.required: Counter[str] = Counter()
        """Those of them that cannot be scored without it."""

    def add(self, sample: Sample) -> None:
        """Count a sample."""
        model = sample.model or ""
        must_ask = (
            self._always
            or (self._fills and not sample.answered)
            or any(metric.problems_without_model(sample) for metric in self._asking)
        )
        self.concerned[model] += must_ask or bool(self._asking)
        self.required[model] += must_ask


def settle_models(
    backends: Backends, census: ModelCensus, *, is_shard: bool = False, is_drawn: bool = False
) -> Backends:
    """Return the backends of a run, its models under assessment under the names in the samples.

    A single model without a name stays so, and answers for all samples, unless these name
    different models. With a name each answers for the samples of that name, and a single one also
    for those that name none.

    Args:
        is_shard: whether the samples are a shard, which may lack some of the models. They stay, as
            all shards of an input have the same settings.
        is_drawn: whether the samples are another part of an input; models that it lacks are left
            out.

    Raises:
        UsageError: no sample has the name of a model, or two models have the same.
    """
    models = {place.name: model for place, model in backends.by_key.items() if _is_model(place)}
    names = [name for name, count in census.concerned.items() if name and count]
    has_nameless = bool(census.concerned[""])
    if not models or len(names) + has_nameless == 0:
        return backends
    if [*models] == [""] and len(names) + has_nameless == 1:
        return backends
    settled: dict[str, str] = {}
    for name, model in models.items():
        new_name = find_same_model(name, model.name, names)
        answers_nameless = has_nameless and len(models) == 1
        if not (new_name or answers_nameless or is_shard):
            if is_drawn and len(models) > 1:
                continue
            # A model that need not be asked may lack answers, unless the user named it.
            if name or +census.required:
                raise UsageError(_describe_unknown(name, model.name, +census.concerned))
        new_name = new_name or name or derive_model_name(model.name)
        if new_name in settled.values():
            text = shorten_name(new_name)
            raise UsageError(f"--model: answers of {text!r} have two models; expected one")
        settled[name] = new_name
    if not settled:
        raise UsageError(_describe_unknown(next(iter(models)), "", +census.concerned))
    by_key = {}
    for place, backend in backends.by_key.items():
        if not _is_model(place):
            by_key[place] = backend
        elif place.name in settled:
            by_key[place._replace(name=settled[place.name])] = backend
    return Backends(by_key)


def _is_model(place: BackendKey) -> bool:
    return place.role == MODEL_ROLE


def check_model(metric: Metric, sample: Sample, backends: Backends) -> None:
    """Raise :class:`ModelNotGivenError` if a metric must ask a sample's model, and it is absent."""
    try:
        backends.find_model(sample.model)
    except ModelNotGivenError:
        if _always_asks(metric) or (asks_model(metric) and metric.problems_without_model(sample)):
            raise


class ArrivingBackends(Backends):
    """The backends for samples that arrive one by one, each naming any model."""

    def find_model(self, model: str | None) -> str:
        """Return the name of the model under assessment that answers for a sample.

        A single model without a name answers for samples that do not name clearly another one.

        Raises:
            ModelNotGivenError: the sample's model was not given.
        """
        names = self.names_of_role(MODEL_ROLE)
        if not (model and names) or model in names:
            return super().find_model(model)
        if "" in names:
            if is_other_model(model, self.by_key[BackendKey("chat", MODEL_ROLE)].name):
                raise ModelNotGivenError(model)
            return ""
        if name := find_same_model(model, "", names):
            return name
        raise ModelNotGivenError(model)


def find_same_model(name: str, backend_name: str, names: Sequence[str]) -> str:
    """Return the name among ``names`` that a model has there; empty if there is none, or several.

    The same spelling comes first; otherwise case, folders and ``:latest`` do not matter. A dated
    version is the model of the name without a date, and differs from other dated versions.

    Args:
        name: the one that the user gave to the model; empty if none.
        backend_name: the one of its backend, such as ``openai:big@https://host/v1``.
    """
    derived_name = "" if name else derive_model_name(backend_name)
    for exact_name in (name, backend_name, derived_name):
        if exact_name and exact_name in names:
            return exact_name
    key = _simplify_name(name or backend_name)
    keys = [_simplify_name(other) for other in names]
    undated_key = _remove_date(key)
    matches = [other for other, other_key in zip(names, keys, strict=True) if other_key == key]
    matches = matches or [
        other
        for other, other_key in zip(names, keys, strict=True)
        if undated_key == other_key or key == _remove_date(other_key)
    ]
    return matches[0] if len(matches) == 1 else ""


def is_other_model(model: str, backend_name: str) -> bool:
    """Whether a backend's name says that it is not the model that a sample names.

    The names of functions and of files of replies say nothing of a model.
    """
    scheme = backend_name.partition(":")[0]
    is_silent = scheme in _SCHEMES_WITHOUT_MODEL or scheme not in _list_schemes()
    return not is_silent and not find_same_model("", backend_name, [model])


def find_asked_instead(model: str, name: str, backend_name: str) -> str:
    """Return the model that is asked about a sample that does not name it; empty if it does.

    Args:
        model: the one that the sample names; empty if none.
        name: the one of the model that is asked, if the user gave it one.
        backend_name: the one of its backend.
    """
    if not model:
        return name or backend_name
    return backend_name if not name and is_other_model(model, backend_name) else ""


class AskedInstead:
    """Counts the answers about which another model is asked than the one that they name.

    Answers without a model count only beside some with one: where none names any, nobody expects
    several.
    """

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, Counter[str]]] = {}
        self._has_named_models = False

    def note_sample(self, model: str) -> None:
        """Note the model that a sample names, empty for none."""
        self._has_named_models |= bool(model)

    def add(self, metric: str, model: str, asked: str) -> None:
        """Count an answer; ``asked`` is the result of :func:`find_asked_instead`."""
        if asked:
            self._counts.setdefault(metric, {}).setdefault(asked, Counter())[model] += 1

    def to_dict(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return the counts by metric, by the model that is asked, and by the one in the sample."""
        result: dict[str, dict[str, dict[str, int]]] = {}
        for metric, counts_by_asked in self._counts.items():
            for asked, counts in counts_by_asked.items():
                remarkable = {m: n for m, n in counts.items() if m or self._has_named_models}
                if remarkable:
                    result.setdefault(metric, {})[asked] = remarkable
        return result


def list_models(counts: Mapping[str, int]) -> str:
    """Return the models of samples with their numbers, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    texts = [f"{shorten_name(name) or 'none named'} ({count:,})" for name, count in ordered]
    more = len(texts) - MAX_MODELS_LISTED
    return ", ".join(texts[:MAX_MODELS_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def _list_schemes() -> set[str]:
    return {scheme.name for scheme in schemes("chat model")}


def _simplify_name(name: str) -> str:
    scheme, separator, _ = name.partition(":")
    if separator and scheme in _list_schemes():
        name = derive_model_name(name)
    name = name.rsplit("/", 1)[-1].casefold()
    for suffix in _SUFFIXES_WITHOUT_MEANING:
        name = name.removesuffix(suffix)
    return name


def _remove_date(name: str) -> str:
    match = _DATED_VERSION.fullmatch(name)
    return match["stem"] if match else name


def _describe_unknown(name: str, backend_name: str, counts: Mapping[str, int]) -> str:
    if name and not any(counts):
        return (
            f"--model {shorten_name(name)}=URI: no sample names the model of its answer\n"
            "add the field model (or --field model=THEIRS), or give one model without a name"
        )
    listed = f"the answers come from {list_models(counts)}"
    names = [shorten_name(known) for known in [*counts][:MAX_MODELS_LISTED] if known]
    if name:
        unknown = did_you_mean("model", shorten_name(name), names)
        return f"--model: {unknown}\n{listed}; give the model of each as --model NAME=URI"
    example = shlex.quote(f"{names[0] if names else 'NAME'}={backend_name}")
    return (
        f"--model {backend_name}: {listed}; none of them matches\n"
        f"name the model that it stands for, as --model {example}; other models' answers are left "
        "out"
    )


def asks_model(metric: Metric) -> bool:
    """Whether a metric may ask the model under assessment."""
    return any(demand.role == MODEL_ROLE for demand in list_demands([metric]))


def _always_asks(metric: Metric) -> bool:
    demands = list_demands([metric])
    return any(demand.role == MODEL_ROLE and not demand.need.optional for demand in demands)
