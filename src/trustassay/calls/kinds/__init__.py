"""All capabilities, one file each; other packages register theirs as entry points.

A package's entry point in the group ``trustassay.capabilities`` names a
:class:`~trustassay.calls.capability.Capability`; its name is the method of ``models``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from trustassay.calls.capability import Capability
from trustassay.calls.kinds.chat import CHAT
from trustassay.calls.kinds.compare import COMPARE
from trustassay.calls.kinds.embed import EMBED
from trustassay.calls.kinds.entail import ENTAIL
from trustassay.calls.kinds.likelihood import LIKELIHOOD
from trustassay.calls.kinds.link import LINK
from trustassay.calls.kinds.search import SEARCH
from trustassay.calls.kinds.substitute import SUBSTITUTE
from trustassay.calls.kinds.token_vectors import TOKEN_VECTORS
from trustassay.errors import UnknownNameError, did_you_mean

__all__ = ["capabilities", "capability"]

ENTRY_POINT_GROUP = "trustassay.capabilities"
OWN: tuple[Capability[Any, Any], ...] = (
    CHAT,
    ENTAIL,
    EMBED,
    COMPARE,
    SEARCH,
    LINK,
    LIKELIHOOD,
    TOKEN_VECTORS,
    SUBSTITUTE,
)


@cache
def capabilities() -> Mapping[str, Capability[Any, Any]]:
    """Return all capabilities by name, those of other packages as well."""
    others = (entry.load() for entry in entry_points(group=ENTRY_POINT_GROUP))
    return {found.name: found for found in (*others, *OWN)}


def capability(name: str) -> Capability[Any, Any]:
    """Return a capability.

    Raises:
        UnknownNameError: there is none of that name.
    """
    if name not in capabilities():
        raise UnknownNameError(did_you_mean("capability", name, capabilities()))
    return capabilities()[name]
