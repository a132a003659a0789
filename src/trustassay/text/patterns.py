"""Regular expressions that are kept in files of TOML, with names for their parts."""

import re
import tomllib
from importlib.resources import files


def read_patterns(name: str, package: str) -> dict[str, str]:
    """Return the patterns of a file of a package: ``<<name>>`` stands for an earlier one, and the
    end of a line for nothing."""
    result: dict[str, str] = {}
    text = files(package).joinpath(name).read_text(encoding="utf-8")
    for key, pattern in tomllib.loads(text).items():
        result[key] = pattern.replace("\n", "")
        for earlier in re.findall(r"<<(\w+)>>", pattern):
            result[key] = result[key].replace(f"<<{earlier}>>", result[earlier])
    return result
