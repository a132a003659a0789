"""Published prices of models: the table that the package genai-prices brings along.

It is read from the installed package alone. The package can fetch newer prices in a thread, which
is never started here, and what another library made it fetch in this process is not read.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import version
from typing import Any

__all__ = ["published_price", "table_told"]

_PROVIDERS = {"openai": "openai", "anthropic": "anthropic", "gemini": "google"}
"""The table's names of the endpoints that models are asked at where their URI names no other."""
_CHECKED = re.compile(r"(?:verified|checked|as of)(?: on)? (20\d\d-\d\d-\d\d)", re.IGNORECASE)
THOUSAND = 1000


def published_price(backend: str) -> tuple[float, float] | None:
    """Return the US dollars for a million tokens sent and received; ``None`` if it has no price.

    Those of the lowest tier: prompts of up to a thousand tokens, none of them cached. An endpoint
    that the URI names has the price that the table gives for its address, and a local one none.

    Args:
        backend: the name, as ``openai:gpt-4o-mini`` or ``openai:MODEL@https://openrouter.ai/api/v1``.
    """
    scheme, _, rest = backend.partition(":")
    if scheme not in _PROVIDERS:
        return None
    model, _, address = re.split(r"\?", rest)[0].partition("@http")
    where = {"provider_id": None if address else _PROVIDERS[scheme]}
    where["provider_api_url"] = f"http{address}" if address else None
    from genai_prices import Usage

    usage = Usage(input_tokens=THOUSAND, output_tokens=THOUSAND)
    try:
        found = _table().calc(usage, model, genai_request_timestamp=None, **where)
    except LookupError:
        return None
    return float(found.input_price) * THOUSAND, float(found.output_price) * THOUSAND


@cache
def table_told() -> str:
    """Return which table it is, and the latest day on which one of its prices was checked."""
    notes = [one.price_comments or "" for one in _table().providers]
    notes += [m.price_comments or "" for one in _table().providers for m in one.models]
    days = [day for note in notes for day in _CHECKED.findall(note)]
    of = f" of {max(days)}" if days else ""
    return f"genai-prices {version('genai-prices')}{of}"


@cache
def _table() -> Any:
    from genai_prices.data import providers
    from genai_prices.data_snapshot import DataSnapshot

    return DataSnapshot(providers=providers, from_auto_update=False)
