"""Recommended judges: GGUF files that ``trustassay models get NAME`` downloads.

``recommended.toml`` lists them. Once its file has been downloaded, the name of a model is a URI of
a chat model and of an entailer, the same as ``gguf:PATH``. Nothing is downloaded here.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from trustassay.errors import BackendError, UnknownNameError, did_you_mean
from trustassay.text.numbers import gigabytes_text

HUB = "https://huggingface.co"


@dataclass(frozen=True, slots=True)
class RecommendedModel:
    """One file of a model at a fixed revision of its repository."""

    name: str
    """Name by which users choose it."""
    what: str
    """Description for users."""
    repository: str
    """Repository on the hub."""
    revision: str
    """Revision of the repository."""
    file: str
    """Name of the file."""
    bytes: int
    """Size of the file."""
    sha256: str
    """Checksum of the file."""
    licence: str
    """Licence of the model."""
    measured: str
    """How well it judges, as measured here."""
    languages: tuple[str, ...] = ()
    """Languages in which it judges well enough; empty if that was not measured."""
    auc_by_language: Mapping[str, float] = field(default_factory=dict)
    """AUC on statements in each language other than English, as measured here."""
    cost: str = ""
    """What reading one sentence takes, as measured here; empty if that was not measured."""

    @property
    def address(self) -> str:
        """URL of the file: on the hub, or on its mirror that ``HF_ENDPOINT`` names."""
        from trustassay.backends.http import check_base

        hub = check_base(os.environ.get("HF_ENDPOINT") or HUB, "HF_ENDPOINT")
        return f"{hub}/{self.repository}/resolve/{self.revision}/{self.file}"

    @property
    def path(self) -> Path:
        """Path of the file on this machine, once it is downloaded."""
        return models_folder() / f"{self.name}.gguf"

    @property
    def size(self) -> str:
        """The size of the file in GB, as ``1.1 GB``."""
        return gigabytes_text(self.bytes)

    def to_dict(self) -> dict[str, Any]:
        """Return its fields, its path, and whether the file is there, as JSON values."""
        return asdict(self) | {"path": str(self.path), "here": self.path.exists()}


def models_folder() -> Path:
    """Return the folder of downloaded models: ``TRUSTASSAY_MODELS``, or one in the user's data."""
    if folder := os.environ.get("TRUSTASSAY_MODELS"):
        return Path(folder).expanduser()
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "trustassay" / "models"


@cache
def load_recommended() -> dict[str, RecommendedModel]:
    """Return the recommended models by name, the smallest first."""
    text = files("trustassay.backends").joinpath("recommended.toml").read_text(encoding="utf-8")
    return {name: RecommendedModel(name, **row) for name, row in tomllib.loads(text).items()}


def find_recommended(name: str) -> RecommendedModel:
    """Return the recommended model of a name; raises :class:`UnknownNameError` if there is none."""
    if name not in load_recommended():
        raise UnknownNameError(did_you_mean("recommended model", name, load_recommended()))
    return load_recommended()[name]


def find_languages(size: int) -> tuple[str, ...]:
    """Return the languages in which a file judges well; empty if not measured.

    The file is recognised by its size in bytes.
    """
    # By its size, since the checksum of a file of gigabytes takes long to compute.
    return next((tuple(m.languages) for m in load_recommended().values() if m.bytes == size), ())


def locate_model(uri: str) -> str:
    """Return ``gguf:PATH``, with its options, for the name of a recommended model, else the URI.

    Raises:
        BackendError: the model is not on this machine; the message says how to download it.
    """
    # NAME?threads=4 becomes gguf:PATH?threads=4.
    name, mark, options = uri.partition("?")
    if (model := load_recommended().get(name)) is None:
        return uri
    if not model.path.exists():
        raise BackendError(
            f"{name} is not on this machine: run trustassay models get {name} ({model.size})"
        )
    return f"gguf:{model.path}{mark}{options}"
