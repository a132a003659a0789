"""What the tests of all metrics share: each part that a metric writes is declared."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from importlib.metadata import entry_points

import pytest

from trustassay.core.metric import Assessment, Context, Metric
from trustassay.core.registry import ENTRY_POINT_GROUP, load_metric_class

OWN = sorted(
    entry.name
    for entry in entry_points(group=ENTRY_POINT_GROUP)
    if entry.value.startswith("trustassay.")
)


@pytest.fixture(autouse=True)
def parts_are_declared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test in which a metric writes a part that `part_directions` does not name."""
    undeclared: set[str] = set()

    def watch(cls: type[Metric]) -> None:
        assess = cls.assess

        @functools.wraps(assess)
        async def watched(self: Metric, context: Context) -> Assessment:
            found = await assess(self, context)
            undeclared.update(
                f"{cls.name}: {part}" for part in found.parts if self.direction_of(part) is None
            )
            return found

        monkeypatch.setattr(cls, "assess", watched)

    for name in OWN:
        watch(load_metric_class(name))
    yield
    assert not undeclared


@pytest.fixture(params=OWN)
def own_metric(request: pytest.FixtureRequest) -> type[Metric]:
    """Each metric of the registry."""
    return load_metric_class(request.param)
