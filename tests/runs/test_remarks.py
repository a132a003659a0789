"""Remarks below the figures of a run."""

from __future__ import annotations

from trustassay.runs.remarks import write_remarks


def test_blank_answers_are_counted_once() -> None:
    counts = {"answers": {"blank": 2, "cut": 1}, "faults": {"judge": {"empty": 2, "timeout": 1}}}
    cut, late = (
        "1 of 9 answers was cut at max_tokens",
        "judge: 1 of 9 samples failed: no reply in time",
    )
    assert write_remarks(counts, 9) == ["2 of 9 answers were blank", cut, late]
    # The outcomes, which are printed first, count them.
    assert write_remarks(counts | {"outcomes": {"judge": {"reasons": {"blank": 2}}}}, 9) == [
        cut,
        late,
    ]
    # Empty replies of a model are another count.
    counts["faults"]["judge"]["empty"] = 3  # type: ignore[index]
    assert "judge: 3 of 9 answers were empty" in write_remarks(counts, 9)
