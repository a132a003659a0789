"""How likely a model of this machine finds a continuation of a prompt."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence

from trustassay.backends import resolve
from trustassay.calls.capability import Capability, numbers
from trustassay.calls.keeping import Codec
from trustassay.capabilities import Likelihood, LikelihoodModel, Message
from trustassay.errors import BackendError

__all__ = ["LIKELIHOOD"]

Asked = tuple[tuple[Message, ...], str]
"""A chat, and what may follow it."""


def item(prompt: str | Sequence[Message], continuation: str) -> Asked:
    """Return the request that a prompt, one user message or a chat, and a continuation make."""
    chat = (Message("user", prompt),) if isinstance(prompt, str) else tuple(prompt)
    return chat, continuation


def compute(model: LikelihoodModel, asked: list[Asked]) -> Sequence[Likelihood]:
    """Return the log-probabilities of each continuation; those of one prompt are asked together.

    Raises:
        BackendError: the model returned something else.
    """
    places: defaultdict[tuple[Message, ...], list[int]] = defaultdict(list)
    for place, (chat, _) in enumerate(asked):
        places[chat].append(place)
    found: list[Likelihood] = [Likelihood(())] * len(asked)
    for chat, own in places.items():
        rows = model.token_loglikelihoods(chat, [asked[place][1] for place in own])
        finite = all(math.isfinite(value) for row in rows for value in row)
        if len(rows) != len(own) or not finite:
            raise BackendError(f"{model.name} did not return finite log-probabilities for each")
        for place, row in zip(own, rows, strict=True):
            found[place] = Likelihood(tuple(row))
    return found


LIKELIHOOD: Capability[Asked, Likelihood] = Capability(
    name="likelihood",
    stored_as="likelihood",
    backend="chat model",
    item=item,
    compute=compute,
    codec=Codec(
        parts=lambda asked: (json.dumps(asked[0]), asked[1]),
        reply_to_json=lambda found: numbers(found.tokens),
        reply_from_json=lambda text: Likelihood(tuple(json.loads(text))),
    ),
    stand_in=lambda _: Likelihood((-1.0,)),
    load=resolve.chat,
    option="--model",
    served_by="chat",
    able=LikelihoodModel,
)
