"""Columns of the input: which fields are columns, their groups, and the outcomes of each group."""

from __future__ import annotations

import math
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from trustassay import score
from trustassay.core.progress import SILENT
from trustassay.report.columns import MAX_COLUMNS, MAX_VALUES, ColumnCounter, FileColumn
from trustassay.runs.counts import count_run
from trustassay.runs.folder import RunFolder, load_metrics, read_metric_infos


def columns_of(*samples: dict[str, Any]) -> dict[str, FileColumn]:
    counter = ColumnCounter()
    for sample in samples:
        counter.add(sample)
    return {column.name: column for column in counter.columns()}


def groups_of(*values: Any) -> list[str | None] | None:
    """Return the label of each sample with one of these values; ``None`` if it is no column."""
    columns = columns_of(*({} if value is ... else {"field": value} for value in values))
    if not columns:
        return None
    labels = dict(columns["field"].groups)
    return [labels[place] for place in columns["field"].places]


@pytest.mark.parametrize(
    ("values", "groups"),
    [
        (["up", "down", "up"], ["up", "down", "up"]),
        ([True, False, True], ["true", "false", "true"]),
        (["up", None, " ", math.nan, "up"], ["up", *["no value"] * 3, "up"]),
        (["a", ..., "a"], ["a", "no value", "a"]),
        ([5, 4.0, "5"], ["5", "4", "5"]),
        (["s 1", "s  1\n", "s 2"], ["s 1", "s 1", "s 2"]),
        (["1", "n/a", "1"], ["1", "n/a", "1"]),
        (["2025-11-03", "2025-11-04", "2025-11-03"], ["2025-11-03", "2025-11-04", "2025-11-03"]),
        # No groups: one value for all, ids, lists, objects, long texts.
        (["en", "en", "en"], None),
        (["a", "b", "c"], None),
        ([["a"], ["b"], ["a"]], None),
        ([{"a": {"b": 1}}, {"a": {"b": 2}}, {"a": {"b": 1}}], None),
        (["x" * 61, "y", "y"], None),
        ([None, None], None),
        ([math.inf, -math.inf], None),
    ],
)  # fmt: skip
def test_short_values_are_groups(values: list[Any], groups: list[str] | None) -> None:
    assert groups_of(*values) == groups


def test_many_numbers_are_four_ranges_of_equal_size() -> None:
    values = [100 * n for n in range(1, 41)]
    groups = groups_of(*values, None)
    assert groups
    names = ["100 to 1000", "1100 to 2000", "2100 to 3000", "3100 to 4000"]
    assert groups == [name for name in names for _ in range(10)] + ["no value"]
    # The same as texts of a CSV file, and with values that are mostly equal.
    assert groups_of(*map(str, values), "") == groups
    assert groups_of(*[0] * 90, *range(1, 11)) == ["0"] * 90 + ["1 to 10"] * 10
    assert groups_of(*[20_000 * n for n in range(1, 10)])[0] == "20,000 to 40,000"  # type: ignore[index]


def test_many_dates_are_ranges_in_order() -> None:
    days = [f"2025-{month:02}-{day:02}" for month in (12, 11) for day in range(1, 21)]
    groups = groups_of(*days)
    assert groups
    assert groups[0] == "2025-12-01 to 2025-12-10"
    assert groups[20] == "2025-11-01 to 2025-11-10"
    hours = [f"2025-11-03T{hour:02}:00:00Z" for hour in range(24)]
    assert groups_of(*hours)[0] == "2025-11-03 00:00 to 2025-11-03 05:00"  # type: ignore[index]
    assert groups_of(*[f"2025-99-{n:02}" for n in range(30)]) is None  # dates that are none


def test_a_text_with_too_many_values_is_no_column_whenever_they_come() -> None:
    texts = [f"s-{n}" for n in range(MAX_VALUES)]
    assert groups_of(*texts, "s-0") is not None
    assert groups_of(*texts, "s-0", "one more") is None
    assert groups_of(*range(30), "a text") is None


def test_values_stand_in_their_order_and_the_last_is_none() -> None:
    columns = columns_of(
        {"rating": 10, "thumbs": "up"}, {"rating": 9, "thumbs": "Down"}, {"rating": 9},
        {"thumbs": "up"},
    )  # fmt: skip
    assert list(columns["rating"].labels) == ["9", "10"]
    assert [label for _, label in columns["thumbs"].groups] == ["Down", "up", "no value"]


def test_objects_are_opened_once_and_canonical_fields_are_not_columns() -> None:
    sample = {"id": "1", "question": "Q?", "response": "A", "model": "m", "label": 1.0,
              "metadata": {"session": "s"}, "user": {"plan": "free"},
              "expected": {"": "x"}}  # fmt: skip
    other = {**sample, "model": "n", "label": 0.0, "metadata": {}, "user": {"plan": "paid"}}
    assert list(columns_of(sample, other, sample)) == ["model", "label", "session", "user.plan"]


def test_fields_of_one_name_are_two_columns_and_one_without_a_name_is_none() -> None:
    samples = [
        {"model": f"m{n % 2}", "user": {"plan": "free"}, "user.plan": f"p{n % 2}", " ": n % 2,
         "metadata": {"model": f"x{n % 3}", "label": n % 2, "": n % 2}}
        for n in range(6)
    ]  # fmt: skip
    columns = columns_of(*samples)
    assert list(columns) == ["model", "user.plan", "metadata.model", "label"]
    assert {len(column.places) for column in columns.values()} == {6}
    assert list(columns["metadata.model"].labels) == ["x0", "x1", "x2"]


@pytest.mark.parametrize(
    "end",
    ["9999-12-31T23:59:59.9999999", "9999-12-31T23:59:00-05:00", "0001-01-01T00:00:00+14:00"],
)
def test_dates_at_the_ends_of_the_calendar_stop_nothing(end: str) -> None:
    days = [f"2025-11-{day:02}" for day in range(1, 30)]
    groups = groups_of(*days, end)
    assert groups is None or groups[-1] == "2025-11-23 to 9999-12-31"
    assert groups_of("2025-11-01", end, end) == ["2025-11-01", end, end]


def test_the_number_of_columns_is_bounded() -> None:
    samples = [{f"field {n}": value for n in range(500)} for value in "aab"]
    assert len(columns_of(*samples)) == MAX_COLUMNS


ROWS = [
    {
        "id": f"q{n}",
        "question": f"When was mill {n} built?",
        "response": "" if n % 4 == 0 else f"Mill {n} was built in 190{n % 2}.",
        "documents": [{"text": f"Mill {n} was built in 1901."}],
        "thumbs": "up" if n % 2 else "down",
        "latency_ms": 10 * n,
        "<b>'\"": "&lt;" if n < 6 else "</script>",
    }
    for n in range(48)
]


def test_groups_count_all_questions_and_add_up(tmp_path: Path) -> None:
    run = score(ROWS, metrics="faithfulness", entailer="lexical", out=tmp_path / "run", report=True)
    folder = RunFolder(run.path)
    settings, _ = folder.read_finished()
    infos = list(read_metric_infos(folder, settings).values())
    counted = count_run(
        folder, settings, infos, installed_metrics=load_metrics(settings).values(), steps=SILENT
    )
    columns = {one.column.name: one.groups for one in counted.columns}
    assert list(columns) == ["thumbs", "latency_ms", "<b>'\""]
    whole = counted.outcomes["faithfulness"]
    for groups in columns.values():
        assert sum(group.answers for group in groups) == 48
        for kind, share in whole.shares.items():
            assert sum(one.shares["faithfulness"][kind].answers for one in groups) == share.answers
    down, up = columns["thumbs"]
    assert [group.label for group in (down, up)] == ["down", "up"]
    # Every second answer with "down" is blank; those with "up" say what their passage says.
    assert down.shares["faithfulness"]["not_answered"].percent == 50
    assert up.shares["faithfulness"]["passed"].percent == 100
    assert up.shares["faithfulness"]["passed"].interval is not None
    assert down.questions == 24
    page = (run.path / "report.html").read_text(encoding="utf-8")
    assert "50 %" in re.sub(r"<[^>]+>", "", page.split('data-group="0:0"')[1].split("</tr>")[0])
    assert page.count('data-groups="') == 48
    assert re.findall(r'data-name="([^"]*)"', page)[-1] == "&lt;b&gt;&#39;&#34;"
    assert "<b>'\"" in unescape(page)
