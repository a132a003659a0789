"""Recommended judges: GGUF files that ``trustassay models get NAME`` fetches.

Which there are: ``recommended.toml``. Once its file is there, a name is a URI of a chat model and
of an entailer, the same as ``gguf:PATH``. Nothing is fetched here.
"""

import os
import tomllib
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from trustassay.errors import BackendError, UnknownNameError, did_you_mean

HUB = "https://huggingface.co"


@dataclass(frozen=True, slots=True)
class Recommended:
    """One file of a model at a fixed revision of its repository.

    bytes, sha256: of the file. measured: how well it judges, as measured here. languages: in which
    it judges well enough; empty where that was not measured.
    """

    name: str
    what: str
    repository: str
    revision: str
    file: str
    bytes: int
    sha256: str
    licence: str
    measured: str
    languages: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """Where the file is: on the hub, or on its mirror that ``HF_ENDPOINT`` names."""
        hub = (os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")
        return f"{hub}/{self.repository}/resolve/{self.revision}/{self.file}"

    @property
    def path(self) -> Path:
        """Where the file is on this machine, once it is fetched."""
        return models_folder() / f"{self.name}.gguf"

    @property
    def size(self) -> str:
        """The size of the file in GB, as ``1.1 GB``."""
        return f"{self.bytes / 1e9:.1f} GB"

    def to_dict(self) -> dict[str, Any]:
        """Return its fields, its path, and whether that is there, as JSON values."""
        return asdict(self) | {"path": str(self.path), "here": self.path.exists()}


def models_folder() -> Path:
    """Return the folder of fetched models: ``TRUSTASSAY_MODELS``, or one in the user's data."""
    if named := os.environ.get("TRUSTASSAY_MODELS"):
        return Path(named).expanduser()
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "trustassay" / "models"


@cache
def recommended() -> dict[str, Recommended]:
    """Return the recommended models by name, the smallest first."""
    text = files("trustassay.backends").joinpath("recommended.toml").read_text(encoding="utf-8")
    return {name: Recommended(name, **row) for name, row in tomllib.loads(text).items()}


def named_model(name: str) -> Recommended:
    """Return the recommended model of a name; raises :class:`UnknownNameError` if there is none."""
    if name not in recommended():
        raise UnknownNameError(did_you_mean("recommended model", name, recommended()))
    return recommended()[name]


def languages_of(size: int) -> tuple[str, ...]:
    """Return the languages in which a file judges, known by its bytes; empty if not measured."""
    return next((tuple(m.languages) for m in recommended().values() if m.bytes == size), ())


def located(uri: str) -> str:
    """Return ``gguf:PATH``, with its options, for the name of a recommended model; else the URI.

    Raises:
        BackendError: the model is not on this machine; says how it is fetched.
    """
    name, mark, options = uri.partition("?")
    if (model := recommended().get(name)) is None:
        return uri
    if not model.path.exists():
        raise BackendError(
            f"{name} is not on this machine: run trustassay models get {name} ({model.size})"
        )
    return f"gguf:{model.path}{mark}{options}"
