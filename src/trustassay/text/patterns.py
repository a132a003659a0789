"""Reads regular expressions from TOML files, in which parts of patterns have names."""

import re
import tomllib
from importlib.resources import files


def read_patterns(name: str, package: str) -> dict[str, str]:
    """Read the patterns of a TOML file by name.

    ``<<name>>`` stands for an earlier pattern of the file. Line ends are removed, so that a long
    pattern can be written in several lines.

    Args:
        name: the name of the file.
        package: the package that contains it.
    """
    result: dict[str, str] = {}
    text = files(package).joinpath(name).read_text(encoding="utf-8")
    for key, pattern in tomllib.loads(text).items():
        result[key] = pattern.replace("\n", "")
        # Earlier patterns are complete by now, so one pass is enough.
        for earlier in re.findall(r"<<(\w+)>>", pattern):
            result[key] = result[key].replace(f"<<{earlier}>>", result[earlier])
    return result
