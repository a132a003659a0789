"""Drawings of an experiment's page: boxes and bars stand where their numbers say."""

from __future__ import annotations

import re
from pathlib import Path

from trustassay.papers.experiments.results import (
    Cell,
    ExperimentResult,
    ExperimentRow,
    build_box_bar,
    build_chart,
    build_count_bar,
)


def test_a_box_holds_the_quartiles() -> None:
    drawn = build_box_bar("one", [0, 5, 10, 15, 20], max_value=20)
    assert drawn.figure == "median 10.00"
    places = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawn.drawing)
    assert places == [("0.00", "400.00"), ("100.00", "200.00")]  # of a width of 400
    assert 'd="M200.00 0V100"' in drawn.drawing
    assert "quartiles 5.00, 10.00, 15.00" in drawn.drawing


def test_equal_values_and_no_counts_are_drawn() -> None:
    assert 'width="0.50"' in build_box_bar("one", [3, 3], max_value=5).drawing
    assert "<rect" not in build_count_bar("none", [0, 0], ["a", "b"], "").drawing


def test_names_of_the_input_are_no_markup(tmp_path: Path) -> None:
    name = "<script>x</script>"
    result = ExperimentResult(
        experiment="fewl-experts",
        title=name,
        columns=["one"],
        rows=[ExperimentRow(name, [Cell(name, {})])],
        notes=[name, name],
        settings={"of": name},
        drawings=[
            build_chart("title", "note", [build_count_bar(name, [1], [name], name)], (name, "1"))
        ],
    )
    result.write(tmp_path)
    assert "<script>" not in (tmp_path / "experiment.html").read_text(encoding="utf-8")
