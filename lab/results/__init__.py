"""Measured figures: one JSON file a measurement, with version, date, command and data set."""

from __future__ import annotations

import datetime
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "read_result", "write_result"]

FOLDER = Path(__file__).parent


def write_result(name: str, command: str, data: str, figures: Any) -> Path:
    """Write ``NAME.json`` and return its path.

    Args:
        name: of the measurement. command: that made the figures. data: the data set that they
            were measured on, or how it was simulated. figures: JSON values.
    """
    content = {
        "name": name,
        "version": version("trustassay"),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": command,
        "data": data,
        "figures": figures,
    }
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return path


def read_result(name: str) -> Any:
    """Return the figures of a measurement; FileNotFoundError if there is none of this name."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["figures"]
