"""The error of an integration whose tool is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["needs"]


@contextmanager
def needs(module: str, package: str) -> Iterator[None]:
    """Around the imports of a tool: say what to install where its ``module`` is missing.

    Raises:
        ImportError: it is not installed. Any other failure of an import is raised as it is.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        words = f"this integration needs {package}, which is not installed: pip install {package}"
        raise ImportError(words, name=module) from error
