"""The HTTP service: single answers scored over the network by a scorer that stays open.

Beside it :mod:`~.monitor`: alarms from one run a day.
"""

from trustassay_serve.app import Part, create_app
from trustassay_serve.service import BusyError, ClosingError, Service, ServiceSettings

__all__ = ["BusyError", "ClosingError", "Part", "Service", "ServiceSettings", "create_app"]
