"""trustassay for other programs: a scoring service, integrations with other tools, and alarms.

The service is in :mod:`~.app`, integrations with evaluation tools are in :mod:`~.integrations`, and
alarms from one run a day in :mod:`~.monitor`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trustassay.live.app import Part, create_app
    from trustassay.live.service import BusyError, ClosingError, Service, ServiceSettings

__all__ = ["BusyError", "ClosingError", "Part", "Service", "ServiceSettings", "create_app"]

_HOMES = {"Part": "app", "create_app": "app"}
"""The modules of the names that are not in ``service``."""


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, so that help texts and integrations load no server."""
    if name not in __all__:
        raise AttributeError(f"module 'trustassay.live' has no attribute {name!r}")
    home = _HOMES.get(name, "service")
    return getattr(importlib.import_module(f"trustassay.live.{home}"), name)


def __dir__() -> list[str]:
    return __all__
