"""The two configuration files of Trust-Eval, as far as their settings have an effect here."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trustassay.errors import UnknownNameError, did_you_mean

__all__ = ["EvalConfig", "GeneratorConfig", "eval_config", "generator_config"]

Given = str | os.PathLike[str] | Mapping[str, Any] | None
MOST_BYTES = 100_000
KINDS = {"asqa": "em", "qampari": "em5", "eli5": "cm"}
"""Kind of correctness by benchmark; for other data it is ``cm``."""
FLAG = "I apologize, but I couldn't find an answer"

_GENERATOR_ONLY = frozenset(
    "data_type max_length top_p vllm shot no_demo retry num_samples posthoc posthoc_retriever"
    " overwrite max_retry data_generation sft_model prompt_file data_file".split()
)
"""Settings of vLLM, of its prompts and of post-hoc citations, which have no effect here."""
_EVAL_FIXED: Mapping[str, Any] = {
    "refusal_flag": FLAG,
    "refusal_threshold": 85,
    "calib": True,
    "parametric": True,
    "compute_citations": True,
}
"""Settings with only one possible value here."""


@dataclass(frozen=True)
class GeneratorConfig:
    """How responses are made.

    model: as trustassay names models; a name without a scheme is one of Hugging Face's. ndoc:
    documents for each question. eval_file: the data set, written by ``create_dataset`` and read by
    ``run`` where that was not called. output_path: where ``run`` saves responses.
    """

    model: str | None = None
    ndoc: int = 5
    seed: int | None = 42
    temperature: float = 0.5
    max_new_tokens: int = 300
    eval_file: str | None = None
    output_path: str | None = None


@dataclass(frozen=True)
class EvalConfig:
    """How responses are evaluated.

    eval_type: ``em``, ``em5``, ``cm`` or ``none``; without it that of ``data_type``, else ``cm``.
    autoais_model: the entailer as trustassay names it, or a model of Hugging Face's; without it
    the embedded one. profile: of the grounding metric: ``default``, or ``paper`` for the numbers of
    trust_eval 0.1.6. eval_file: responses to evaluate where ``run`` was not called.
    """

    data_type: str | None = None
    eval_type: str | None = None
    is_qampari: bool = False
    autoais_model: str | None = None
    at_most_citations: int | None = 3
    compute_correctness: bool = True
    profile: str = "default"
    eval_file: str | None = None
    output_path: str | None = None

    @property
    def correctness(self) -> str:
        """The kind of correctness; a kind that is named wins over that of the data."""
        if not self.compute_correctness:
            return "none"
        # QAMPARI's lists need their own kind, unless another one is named.
        if self.is_qampari and self.eval_type in (None, "em5"):
            return "em5"
        return self.eval_type or KINDS.get(self.data_type or "", "cm")


def generator_config(source: Given) -> GeneratorConfig:
    """Read the configuration of the generator: a file, a mapping, or nothing.

    Raises:
        FileNotFoundError, ValueError, UnknownNameError: no such file, no YAML mapping, no such key.
    """
    values, location = _read_values(source, "generator_config.yaml")
    names = set(GeneratorConfig.__dataclass_fields__)
    _check_keys(values, names | _GENERATOR_ONLY, location)
    # A setting without effect is worth a warning, since the figures may be expected to follow it.
    if ignored := sorted(_GENERATOR_ONLY & set(values)):
        warnings.warn(f"{location}: without effect here: {', '.join(ignored)}", stacklevel=3)
    config = GeneratorConfig(**{k: v for k, v in values.items() if k in names})
    if not isinstance(config.ndoc, int) or config.ndoc < 1:
        raise ValueError(f"{location}: ndoc: expected 1 or more, got {config.ndoc!r}")
    return config


def eval_config(source: Given) -> EvalConfig:
    """Read the configuration of the evaluation: a file, a mapping, or nothing.

    Raises:
        FileNotFoundError, ValueError, UnknownNameError: no such file, no YAML mapping, no such key,
            or a value that is not available here.
    """
    values, location = _read_values(source, "eval_config.yaml")
    names = set(EvalConfig.__dataclass_fields__)
    _check_keys(values, names | set(_EVAL_FIXED), location)
    # Another value would change the figures; ignoring it would be worse than an error.
    for name, only in _EVAL_FIXED.items():
        if name in values and values[name] != only:
            raise ValueError(
                f"{location}: {name}: only {only!r} is available, got {values[name]!r}"
            )
    config = EvalConfig(**{k: v for k, v in values.items() if k in names})
    if config.correctness not in ("em", "em5", "cm", "none"):
        raise UnknownNameError(
            f"{location}: " + did_you_mean("eval_type", config.correctness, ["em", "em5", "cm"])
        )
    return config


def _read_values(source: Given, default_name: str) -> tuple[dict[str, Any], str]:
    """Return the values, and a name for their source in messages.

    The file with the default name may be missing; a file that the caller names may not.
    """
    if source is None:
        return {}, default_name
    if isinstance(source, Mapping):
        return dict(source), "the configuration"
    path = Path(source)
    # The defaults are the names in Trust-Eval's README.
    if os.fspath(source) == default_name and not path.exists():
        return {}, default_name
    with path.open("rb") as file:
        # A wrong path may lead to a huge file, and YAML is slow.
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"{path}: is larger than {MOST_BYTES:,} bytes")
    try:
        # Safe: a configuration cannot create Python objects.
        values = yaml.safe_load(content)
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: is not YAML: {' '.join(str(error).split())}") from None
    if values is None:
        return {}, str(path)
    if not isinstance(values, dict):
        raise ValueError(f"{path}: expected keys and values, got {type(values).__name__}")
    return {str(key): value for key, value in values.items()}, str(path)


def _check_keys(values: Mapping[str, Any], known_keys: set[str], location: str) -> None:
    for key in values:
        if key not in known_keys:
            raise UnknownNameError(f"{location}: {did_you_mean('key', key, known_keys)}")
