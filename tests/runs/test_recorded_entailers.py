"""Entailers of a run that cannot be loaded any more: their stored replies are used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from trustassay import rescore, score
from trustassay.core.capabilities import ChatRequest, Reply, TokenLogprob
from trustassay.metrics import Faithfulness


class Teller:
    """A model in a GGUF file that is gone: it answers yes, and is asked for odds."""

    name = "gguf:none.gguf?file=1-ab&engine=openvino"
    tells_first_token = True

    def replies(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        odds = (("Yes", math.log(0.9)), ("No", math.log(0.1)))
        return [Reply("Yes", logprobs=(TokenLogprob(*odds[0], odds),)) for _ in requests]


def test_a_model_in_a_file_that_is_gone_answers_by_its_stored_odds(tmp_path: Path) -> None:
    rows = [
        {
            "question": f"Where is lamp {number}?",
            "response": f"Lamp {number} stands in the old barn.",
            "documents": [f"There is a barn, which is old; it has lamp {number} in it."],
        }
        for number in range(3)
    ]
    first = score(rows, metrics=Faithfulness(), entailer=Teller(), out=tmp_path / "a", cache=None)
    again = rescore(tmp_path / "a", out=tmp_path / "b")
    scores = [[(one.score, one.error) for one in run.assessments] for run in (first, again)]
    assert scores == [[(1.0, None)] * 3] * 2
