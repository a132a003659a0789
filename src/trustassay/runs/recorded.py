"""The backends of a stored run, by the names that it recorded.

One that cannot be loaded here is replaced by one of that name, under which its earlier replies are
stored; what was never asked it refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trustassay.backends import resolve
from trustassay.calls.backends import MODEL
from trustassay.calls.client import has_replies
from trustassay.capabilities import ChatRequest, Probabilities, Reply, SubstitutesRequest
from trustassay.errors import BackendError, CallError, UnknownNameError
from trustassay.metric import Metric
from trustassay.runs.needs import ROLES, asked_words


def recorded_backends(
    backends: Mapping[str, Any], metrics: Sequence[Metric], calls: Path, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the backends of a run that the metrics need, and the model, but for those given.

    Args:
        backends: as ``run.json`` names them. calls: the run's file of calls.

    Raises:
        UnknownNameError, BackendError: an entailer cannot be loaded, and nothing of it is stored.
    """
    wanted = {MODEL, *asked_words(metrics)} - set(given)
    found: dict[str, Any] = {}
    for word, name in backends.items():
        key = word.replace(" ", "_")
        if key not in wanted:
            continue
        if key == "entailer":
            found[key] = _entailer(name, calls)
        elif key in ROLES:
            found[key] = _each(name, lambda one: _or_absent(resolve.chat, one, _AbsentChat))
        elif isinstance(name, Mapping):  # the sources of distractors, by name
            found[key] = _each(
                name, lambda one: _or_absent(resolve.substitute_source, one, _AbsentSource)
            )
        else:
            found[key] = name
    return found


def _each(names: Any, load: Callable[[str], Any]) -> Any:
    several = isinstance(names, Mapping)
    return {key: load(name) for key, name in names.items()} if several else load(names)


def _or_absent(load: Callable[[str], Any], name: str, absent: type[_Absent]) -> Any:
    try:
        return load(name)
    except (UnknownNameError, BackendError) as error:
        return absent(name, str(error))


def _entailer(name: str, calls: Path) -> Any:
    from trustassay.backends.chat_entailer import ChatEntailer, judging_of

    try:
        return resolve.entailer(name)
    except (UnknownNameError, BackendError) as error:
        own, judging = judging_of(name.removeprefix("chat:"))
        if has_replies(calls, own, "chat"):
            scheme = "chat:" if name.startswith("chat:") else ""
            return ChatEntailer(_AbsentChat(own, str(error), "--entailer"), judging, scheme)
        if has_replies(calls, name, "entailment"):
            return _AbsentEntailer(name, str(error))
        raise


class _Absent:
    """A backend of which only the stored replies are available."""

    option = ""

    def __init__(self, name: str, reason: str, option: str = "") -> None:
        self.name, self._reason = name, reason
        self.option = option or self.option

    def _refusal(self, what: str = "") -> str:
        return (
            f"the run's {what}{self.name} cannot be used here ({self._reason}); give {self.option}"
        )


class _AbsentChat(_Absent):
    option = "--model"

    async def reply(self, request: ChatRequest) -> Reply:  # noqa: ARG002
        raise CallError(self._refusal("model "), "closed")


class _AbsentEntailer(_Absent):
    option = "--entailer"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:  # noqa: ARG002
        raise BackendError(self._refusal())


class _AbsentSource(_Absent):
    option = "--distractors"

    def substitutes(self, requests: Sequence[SubstitutesRequest]) -> list[list[str]]:  # noqa: ARG002
        raise BackendError(self._refusal())
