"""The rules by which gold answers are looked for in a text."""

from __future__ import annotations

from trustassay.metrics.grounding.options import Rules


def test_gold_answers_match_whole_words_or_any_part_of_a_word() -> None:
    assert Rules().contains("the river nile floods", "nile")
    assert not Rules().contains("juvenile birds", "nile")
    assert not Rules().contains("anything", "")
    assert Rules(words=False).contains("juvenile birds", "nile")
    assert Rules(words=False).contains("anything", "")
