"""What the end of a run needs to count: one pass over the samples and their assessments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from trustassay.errors import RunFolderError
from trustassay.metric import Assessment, Metric, MetricInfo
from trustassay.runs.folder import RunFolder, Step, nothing
from trustassay.runs.lines import decoded
from trustassay.show.choice import Choice, finding_of
from trustassay.show.distributions import Groups, Histogram
from trustassay.show.first_card import Looked, problem_of

__all__ = ["DOMAIN", "Counted", "Place", "count", "domain_of", "groups_of", "rows"]

DOMAIN = "domain"
RatingOf = Callable[[Mapping[str, Any]], float | None]
"""The rating of a stored sample, if it has one."""


class Place(NamedTuple):
    """Where a sample and its assessments stand: its number, and the bytes at which they begin."""

    number: int
    sample: int
    assessments: int


@dataclass
class Counted:
    """What was counted.

    histograms, groups: the scores by metric, and by model and domain.
    choice: which answers the report shows. looked: how many need a look.
    requests: how often each capability was asked.
    usage: what the metrics' calls of chat models took, by metric and model.
    parts: the names of all parts, in the order in which they first come.
    """

    histograms: dict[str, Histogram]
    groups: dict[str, Groups]
    choice: Choice[Place]
    looked: Looked = field(default_factory=Looked)
    requests: Counter[str] = field(default_factory=Counter)
    usage: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)
    parts: dict[str, None] = field(default_factory=dict)

    def add(self, assessment: Assessment) -> None:
        """Count what is counted without the sample."""
        self.requests.update(assessment.calls)
        for model, usage in assessment.usage.items():
            models = self.usage.setdefault(assessment.metric, {})
            models.setdefault(model, Counter()).update(usage)
        self.parts.update(dict.fromkeys(assessment.parts))
        if assessment.score is not None or assessment.error is not None:
            self.histograms[assessment.metric].add(assessment.score, assessment.verdict)


def own_label(sample: Mapping[str, Any]) -> float | None:
    """Return the label that a stored sample brings itself."""
    label: float | None = sample.get("label")
    return label


def count(  # noqa: PLR0913 - two callers name them all
    folder: RunFolder,
    run: Mapping[str, Any],
    metrics: Sequence[MetricInfo],
    *,
    domain_field: str = DOMAIN,
    shown: int,
    here: Mapping[str, Metric] | None = None,
    rating_of: RatingOf = own_label,
    step: Step = nothing,
) -> Counted:
    """Count a folder whose assessments are sorted.

    ``here`` are the metrics that are installed, by name: they say which answers need a look.
    A sample's model is the one it names, else the one that the run asked; its domain is in the
    field ``domain_field``, where dots reach inside, or in the one of that name under ``metadata``.

    Raises:
        RunFolderError: not every sample has an assessment of each metric, or a line is damaged.
    """
    found = Counted(
        {m.name: Histogram(*m.score_range, m.verdicts) for m in metrics},
        {m.name: groups_of(m, domain_field) for m in metrics},
        Choice(shown),
    )
    here = here or {}
    drawing = {metric.name: here[metric.name] for metric in metrics if metric.name in here}
    drawing = {name: metric for name, metric in drawing.items() if metric.line}
    found.looked.lines = bool(drawing)
    asked = run["backends"].get("model")
    for place, sample, assessments in rows(folder, metrics):
        domain = domain_of(sample, domain_field)
        for assessment in assessments:
            found.add(assessment)
            if assessment.score is not None:
                found.groups[assessment.metric].add(
                    sample.get("model") or asked, domain, assessment.score, rating_of(sample)
                )
        flags = [
            problem_of(drawing[one.metric], one) is not None if one.metric in drawing else None
            for one in assessments
        ]
        found.looked.add(assessments, [bool(flag) for flag in flags])
        found.choice.add(
            [
                finding_of(metric, one, flagged=flag)
                for metric, one, flag in zip(metrics, assessments, flags, strict=True)
            ],
            place,
        )
        step()
    return found


def groups_of(metric: MetricInfo, domain_field: str) -> Groups:
    """Return the empty groups of a metric."""
    return Groups(
        *metric.score_range,
        lower_is_better=metric.lower_is_better,
        stable_below=metric.stable_below,
        domain_field=domain_field,
    )


def rows(
    folder: RunFolder, metrics: Sequence[MetricInfo]
) -> Iterator[tuple[Place, dict[str, Any], list[Assessment]]]:
    """Yield each sample as it is stored (checking it again would take longer than counting) with
    what each metric said of it, in the order of the metrics and without evidence.
    """
    lines = folder.lines()
    at = 0
    with folder.samples_path.open("rb") as file:
        for number, line in enumerate(file):
            try:
                sample = decoded(line)
            except ValueError as error:
                raise folder.bad_sample(number + 1, f"is not JSON: {error}") from None
            own = list(islice(lines, len(metrics)))
            by_metric = {read.fields["metric"]: read.fields for _, read in own}
            fields = [by_metric.get(metric.name, {}) for metric in metrics]
            if any(one.get("id") != sample["id"] for one in fields):
                raise _out_of_order(folder, sample["id"])
            place = Place(number, at, own[0][0])
            yield place, sample, [Assessment.from_dict(one) for one in fields]
            at += len(line)
    for _, read in lines:
        raise _out_of_order(folder, read.fields["id"])


def _out_of_order(folder: RunFolder, sample_id: str) -> RunFolderError:
    return RunFolderError(
        f"{folder.assessments_path}: {sample_id!r} does not occur once per metric in input "
        "order; delete summary.json and run the command of this run again"
    )


def domain_of(sample: Mapping[str, Any], name: str) -> Any:
    """Return the value of a sample's field ``name``, where dots descend into objects, or of the one
    of that name under ``metadata``; ``None`` if there is none.
    """
    for outer in (sample, sample.get("metadata")):
        value: Any = outer
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    return None
