"""The runs behind a reproduction: which samples each model answers, and their assessments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from trustassay.backends.replay import ReplayChat
from trustassay.core.event_loop import run_anywhere
from trustassay.core.metric import Assessment, Metric
from trustassay.core.sample import Sample
from trustassay.errors import UsageError
from trustassay.input.records import InputError
from trustassay.papers.reproduce.setup import RECORDED, ReproductionSetup
from trustassay.runs.execute import execute
from trustassay.runs.folder import RunFolder
from trustassay.runs.needs import choose_backends, name_models
from trustassay.text.numbers import amount

RECORDED_MODEL = "Qwen2.5-Coder-1.5B-Instruct"
"""The model that gave the recorded answers, and whose replies are recorded."""
MAX_RECORDED_TOKENS = 48
"""``max_tokens`` of the recording: another value has no recorded reply."""


def open_recorded_model(file: str = "replies.jsonl.gz") -> ReplayChat:
    """Return the model whose replies are recorded; its name says that they are."""
    model = ReplayChat(str(RECORDED / file), RECORDED_MODEL)
    model.name = f"{RECORDED_MODEL}, recorded"
    return model


def refuse_options(
    paper: str, setup: ReproductionSetup, *names: str, used_backends: Set[str] | None = None
) -> None:
    """Raise UsageError if an option is given that a paper's tables do not use.

    Args:
        names: fields of the setup: ``references``, ``judge``, ``repeats``.
        used_backends: the backends that the tables use; ``None``: a run refuses the others.
    """
    flags = [
        name if name == "repeats" else name.removesuffix("s")
        for name in names
        if getattr(setup, name)
    ]
    if used_backends is not None:
        flags += [f"backend {name}" for name in sorted(set(setup.backends) - used_backends)]
    if flags:
        raise UsageError(f"--{flags[0]}: has no effect on the tables of {paper}")


@dataclass(frozen=True)
class ModelSamples:
    """The samples that one model is asked about."""

    name: str
    model: Any
    """Its URI or object."""
    samples: Sequence[Sample]


def assign_samples(
    samples: Sequence[Sample], models: Sequence[Any]
) -> tuple[list[ModelSamples], Counter[str]]:
    """Return the samples of each model, and how many answers of other models are left out.

    A sample that names its model belongs to that one; the others are questions for every model.

    Args:
        models: URIs, each with or without ``NAME=``.

    Raises:
        InputError: no sample is for any of the models; names those that the samples have.
    """
    by_name = name_models(list(models), "model", many=True)
    parts = [
        ModelSamples(
            name,
            model,
            [replace(s, model=name) for s in samples if s.model in (None, "", name)],
        )
        for name, model in by_name.items()
    ]
    left_out = Counter(s.model for s in samples if s.model and s.model not in by_name)
    if idle := [part.name for part in parts if not part.samples]:
        raise InputError(
            f"--model {idle[0]}: no row in the data names this model; all name others "
            f"({', '.join(sorted(left_out))[:200]}). --model answers only rows that name it (as "
            "--model NAME=URI) or no model. Responses in the data need no --model"
        )
    return parts, left_out


def describe_left_out(left_out: Mapping[str, int]) -> list[str]:
    """Return the sentence on answers of models that are not given; none if there are none."""
    if not left_out:
        return []
    counts = ", ".join(f"{name} {count:,}" for name, count in sorted(left_out.items()))
    return [f"Left out, because --model does not name their models: answers by {counts}."]


@dataclass(frozen=True)
class ScoredSample:
    """A sample and its assessment."""

    sample: Sample
    assessment: Assessment


def score_samples(
    samples: Sequence[Sample],
    metric: Metric,
    setup: ReproductionSetup,
    name: str,
    backends: Mapping[str, Any],
    *,
    recorded: bool = False,
) -> list[ScoredSample]:
    """Score samples in the run ``name`` of the setup's folder, or continue that run.

    Args:
        backends: URIs or objects by option name, as for ``score``.
        recorded: the replies are recorded ones, which must not get into the shared cache.

    Raises:
        BadInputError: samples lack what the metric needs; nothing was started.
        BackendError, UsageError: as :func:`~trustassay.runs.needs.choose_backends`.
    """
    folder = RunFolder(setup.folder / name)
    options = replace(setup.options, command="papers reproduce")
    if recorded:
        options = replace(options, calls=replace(options.calls, cache=None))
    unanswered = "model" in backends and any(sample.response is None for sample in samples)

    async def run() -> None:
        chosen = await choose_backends(
            [metric], backends, stores=options.stores(folder), unanswered=unanswered
        )
        await execute(samples, [metric], chosen, folder, options)

    with setup.selection.report_positions(samples):
        run_anywhere(run)
    by_id = {sample.id: sample for sample in folder.samples()}
    # Samples that lack what the metric needs are in no run, and count as skipped.
    setup.selection.refuse([setup.selection.fault(s, ()) for s in samples if s.id not in by_id])
    return [ScoredSample(by_id[a.id], a) for a in folder.assessments()]


def describe_failures(scored: Sequence[ScoredSample]) -> list[str]:
    """Return the sentence on answers that could not be scored, with the first reason."""
    errors = [one.assessment.error for one in scored if one.assessment.error is not None]
    if not errors:
        return []
    return [
        f"{amount(len(errors), 'answer')} could not be scored; reason for the first: {errors[0]}"
    ]
