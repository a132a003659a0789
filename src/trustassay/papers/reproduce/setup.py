"""What a reproduction computes from: the data, the models, and the options of its runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from trustassay.errors import UnknownNameError, did_you_mean
from trustassay.input.records import InputError
from trustassay.papers.experiments.answers import RecordSelection
from trustassay.papers.reproduce.tables import Reproduction
from trustassay.runs.intake import RunOptions

RECORDED = Path(str(files("trustassay") / "input" / "recorded"))
"""60 questions of this project, and all replies of two small models that the methods need."""
RATING_SUFFIXES = (".csv", ".tsv", ".jsonl", ".json")
PAPER_MODULES: Mapping[str, str] = {
    "trustscore": "trustscore",
    "fewl": "fewl",
    "harmonicity": "harmonicity",
    "trust-eval": "trust_eval",
    "truthfulness": "truthfulness",
}
"""By name of the paper, the module of this package with its ``reproduce(setup)``."""


@dataclass(frozen=True)
class ReproductionSetup:
    """The data, the models and the options of a reproduction."""

    folder: Path
    """Where its runs and tables are written."""
    data: Path | None = None
    """The user's file or folder; ``None``: the bundled set."""
    models: Sequence[str] = ()
    """Models under assessment, ``[NAME=]URI``."""
    references: Sequence[str] = ()
    """Models whose answers are compared (FEWL), ``[NAME=]URI``."""
    judge: str | None = None
    """The model that judges."""
    backends: Mapping[str, Any] = field(default_factory=dict)
    """Other backends by keyword: ``entailer``, ``embedder``, ``generator``, ``similarity`` ..."""
    repeats: int | None = None
    """How often what varies is repeated; ``None``: as in the paper, or as the bundled set has."""
    seed: int = 0
    options: RunOptions = field(default_factory=RunOptions)
    """The options of its runs."""
    selection: RecordSelection = field(default_factory=RecordSelection)
    """Which part of the data is read."""

    @property
    def is_bundled(self) -> bool:
        """Whether the bundled set is used."""
        return self.data is None

    def find_file(self, *names: str) -> Path | None:
        """Return the first file of these names in the data's folder; ``None`` if it has none.

        Data that is a single file has every name.

        Raises:
            InputError: the data does not exist.
        """
        if self.data is None:
            return None
        if not self.data.exists():
            raise InputError(f"{self.data}: no such file or folder")
        if self.data.is_file():
            return self.data
        paths = (self.data / name for name in names)
        return next((path for path in paths if path.is_file()), None)

    def find_ratings(self, stem: str = "ratings") -> Path | None:
        """Return the file of people's ratings in the data's folder; ``None`` if it has none."""
        # Data that is a single file has every name, and is no file of ratings.
        if self.data is None or self.data.is_file():
            return None
        return self.find_file(*(f"{stem}{suffix}" for suffix in RATING_SUFFIXES))

    def describe_settings(self) -> dict[str, Any]:
        """Return the settings that the result shows, without those that are not given."""
        settings = {
            "data": str(self.data) if self.data else "bundled set",
            "models": [describe_backend(model) for model in self.models],
            "references": [describe_backend(model) for model in self.references],
            "judge": self.judge and describe_backend(self.judge),
            **{name: describe_backend(backend) for name, backend in self.backends.items()},
            "repeats": self.repeats,
            "seed": self.seed,
            "limit": self.selection.limit,
        }
        return {name: value for name, value in settings.items() if value not in (None, [])}


def describe_backend(choice: Any) -> str:
    """Return the URI of a backend, or the name of an object."""
    return choice if isinstance(choice, str) else str(getattr(choice, "name", choice))


def load_paper(name: str) -> Callable[[ReproductionSetup], Reproduction]:
    """Return the function that computes the tables of a paper.

    Raises:
        UnknownNameError: there is no paper of this name.
    """
    if name not in PAPER_MODULES:
        raise UnknownNameError(did_you_mean("paper", name, PAPER_MODULES))
    # Imported only now: some papers need packages that others do not.
    module = import_module(f"trustassay.papers.reproduce.{PAPER_MODULES[name]}")

    def compute(setup: ReproductionSetup) -> Reproduction:
        result: Reproduction = module.reproduce(setup)
        # Several steps may read a file, or a run for each of several models skip a sample.
        skipped_places = {fault.where for fault in setup.selection.skipped}
        return result.with_skipped(len(skipped_places))

    return compute
