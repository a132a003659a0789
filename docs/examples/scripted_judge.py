"""A judge for the examples: its votes stand in the files, so that what they come to is known.

trustassay score eras.jsonl --metric judge:repeats=30 --judge python:scripted_judge:rate
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

ROWS = [
    json.loads(line)
    for name in ("eras.jsonl", "fragment.jsonl")
    for line in (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
]
SHAPES = ("{}", "{} - see the reason", "**{}**")


def rate(request: Any) -> str:
    """Return one of the votes on the answer in the prompt: that of the request's repeat."""
    prompt = request.messages[0].content
    answer = prompt.split("===== Answer to rate =====")[1].split("=====")[0].strip()
    row = next(row for row in ROWS if row["response"] == answer)
    rubric = request.prompt.split("+")[1].split("/")[0]
    votes = [level for level, times in row["votes"][rubric].items() for _ in range(times)]
    random.Random(row["id"]).shuffle(votes)
    label = "Verdict" if rubric == "verdict" else "Score"
    said = SHAPES[request.repeat % len(SHAPES)].format(votes[request.repeat])
    return f"{label}: {said}\nReason: a vote of the script, on 3 eras."
