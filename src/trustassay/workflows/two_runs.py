"""Two finished runs, read to be compared: their settings, their pairs, and a metric's scores."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from trustassay.calls.backends import MODEL
from trustassay.errors import RunFolderError
from trustassay.runs.folder import RunFolder
from trustassay.runs.infos import ABOUT, metric_infos
from trustassay.workflows.changes import Scored, read_scored
from trustassay.workflows.pairing import Pairing, pair, read_keys

__all__ = ["differing_settings", "finished_run", "headlines", "paired_runs"]

_OF_INPUT = {"input", "samples", "skipped", "metrics", "backends", "command", ABOUT}
"""What run.json says of its input, or what is compared by itself."""


def finished_run(path: Path, otherwise: str = "") -> dict[str, Any]:
    """Return the settings of a run; ``otherwise`` says what a file may be given with.

    Raises:
        RunFolderError: it is a file, or holds no finished run.
    """
    if path.is_file():
        raise RunFolderError(f"{path}: is a file; expected a run's folder{otherwise}")
    folder = RunFolder(path)
    run = folder.read_run()
    if run is None:
        raise RunFolderError(f"{path}: holds no run; expected the folder of a run (score --out)")
    if folder.read_summary() is None:
        raise RunFolderError(f"{path}: the run is not finished; run its command again to finish it")
    return run


def paired_runs(
    paths: tuple[Path, Path],
    runs: tuple[Mapping[str, Any], Mapping[str, Any]],
    names: Sequence[str],
) -> tuple[Pairing, dict[str, tuple[Scored, Scored]]]:
    """Pair the answers of two runs, and read what metrics of both said of them.

    Raises:
        RunFolderError: samples or assessments are damaged.
        UnknownNameError: a run of an earlier version, and the metric is not installed.
    """
    folders = [RunFolder(path) for path in paths]
    keys = [read_keys(folder) for folder in folders]
    infos = [metric_infos(*both) for both in zip(folders, runs, strict=True)]
    found = {}
    for name in names:
        first, second = (read_scored(paths[i], runs[i], infos[i][name], keys[i]) for i in range(2))
        found[name] = (first, second)
    return pair(keys[0], keys[1]), found


def headlines(
    scored: tuple[Scored, Scored], wanted: Collection[str] = ()
) -> tuple[list[str], dict[str, str]]:
    """Return the headline figures, or those wanted, that have a value in both summaries, and of
    the others why not.
    """
    name = scored[0].info.name
    keys = list(wanted) or [key for key, one in scored[1].info.figures.items() if one.headline]
    there: list[str] = []
    absent: dict[str, str] = {}
    summaries = [
        (RunFolder(one.path).read_summary() or {})["metrics"].get(name, {}) for one in scored
    ]
    for key in keys:
        if not wanted and not any(key in one.get("values", {}) for one in summaries):
            continue  # of another setting of the metric
        for side, summary in zip(scored, summaries, strict=True):
            if summary.get("values", {}).get(key) is None:
                why = summary.get("not_applicable", {}).get(key, "it is not in the summary")
                absent.setdefault(key, f"{side.path}: {why}")
        if key not in absent:
            there.append(key)
    return there, absent


def differing_settings(
    first: Mapping[str, Any], second: Mapping[str, Any], names: Sequence[str]
) -> list[str]:
    """Say which settings of two runs differ; the seeds of the metrics do not count."""
    found = []
    for name in names:
        options = [run["metrics"][name] for run in (first, second)]
        for option in dict.fromkeys([*options[0], *options[1]]):
            values = [one.get(option) for one in options]
            if values[0] != values[1] and option != "seed":
                found.append(f"{name}: {option} was {values[0]}, then {values[1]}")
    backends = {*first["backends"], *second["backends"]}
    for backend in sorted(backends, key=lambda one: (one == MODEL, one)):
        before, after = (run["backends"].get(backend) for run in (first, second))
        if before != after:
            found.append(f"the {backend} was {_words(before)}, then {_words(after)}")
    for name in sorted({*first, *second} - _OF_INPUT):
        before, after = first.get(name), second.get(name)
        if before != after:
            found.append(f"{name} was {_words(before)}, then {_words(after)}")
    return found


def _words(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={one}" for key, one in value.items())
    return str(value)
