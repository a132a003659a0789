"""What these tests share with those of trustassay."""

from tests.cli.conftest import cli
from tests.conftest import commands_built_once, encoded_once, own_cache

__all__ = ["cli", "commands_built_once", "encoded_once", "own_cache"]
