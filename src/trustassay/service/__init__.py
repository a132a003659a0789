"""The HTTP service: single answers scored over the network by a scorer that stays open."""

from trustassay.service.app import Part, create_app
from trustassay.service.service import BusyError, ClosingError, Service, ServiceSettings

__all__ = ["BusyError", "ClosingError", "Part", "Service", "ServiceSettings", "create_app"]
