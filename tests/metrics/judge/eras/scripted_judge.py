"""A judge whose votes on the answers stand in a file, so that what they come to is known."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trustassay.papers.reproduce.truthfulness import BUNDLED_ANSWERS

HERE = Path(__file__).parent
VOTES: Mapping[str, Any] = json.loads((HERE / "votes.json").read_text(encoding="utf-8"))
"""By id of an answer and rubric, how often each level is voted for, of 30 times."""
ANSWERS = [
    json.loads(line)
    for path in (BUNDLED_ANSWERS, HERE / "fragment.jsonl")
    for line in path.read_text(encoding="utf-8").splitlines()
]
SHAPES = ("{}", "{} - see the reason", "**{}**")


def rate(request: Any) -> str:
    """Return one of the votes on the answer in the prompt: that of the request's repeat."""
    prompt = request.messages[0].content
    response = prompt.split("===== Answer to rate =====")[1].split("=====")[0].strip()
    answer = next(answer for answer in ANSWERS if answer["response"] == response)
    rubric = request.prompt.split("+")[1].split("/")[0]
    counts = VOTES[answer["id"]][rubric]
    votes = [level for level, times in counts.items() for _ in range(times)]
    random.Random(answer["id"]).shuffle(votes)
    label = "Verdict" if rubric == "verdict" else "Score"
    vote = SHAPES[request.repeat % len(SHAPES)].format(votes[request.repeat])
    return f"{label}: {vote}\nReason: a vote of the script, on 3 eras."
