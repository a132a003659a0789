"""How replies of models are read: as a careful reader would, not at all, or wrongly.

    TRUSTASSAY_SHARED=... python -m lab.benchmarks.replies [--before SRC]

The replies of ``tests/text/replies.jsonl``; GPT-4's 160 comparisons of two answers, which end in
1, 2 or 3 (qlora); and the 1,931 outputs of five models to questions with choices that haltt4llm
published, of which it is not known what they mean: how many name a choice. ``--before`` counts the
same with the package of another folder, such as one of ``git worktree``. Writes
``results/replies.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lab.results import write_result

REPLIES = Path(__file__).parents[2] / "tests/text/replies.jsonl"


def shared() -> Path:
    return Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")) / "data"


def counted() -> dict[str, Any]:
    """Count with the package that is imported."""
    from trustassay.calls.multiple_choice import find_letter
    from trustassay.metrics.fewl.references import read_yes_or_no
    from trustassay.metrics.judge.options import SHIPPED, read_rubric
    from trustassay.metrics.judge.replies import read_reply
    from trustassay.text.verdict_replies import find_verdict

    rubrics = {name: read_rubric(name) for name in SHIPPED}

    def read(reader: str, text: str) -> str | None:
        if reader == "letters":
            return find_letter(text, "ABC")
        if reader == "entailment":
            return found.verdict if (found := find_verdict(text)) else None
        if reader == "yes-no":
            return {True: "yes", False: "no", None: None}[read_yes_or_no(text)]
        return read_reply(text, rubrics[reader]).label

    found: dict[str, Counter[str]] = {}
    for line in REPLIES.read_text(encoding="utf-8").split("\n"):
        if line:
            row = json.loads(line)
            own = "shapes" if row["why"] == "shape" else row["reader"]
            reader = own if own in ("letters", "entailment", "yes-no", "shapes") else "judge"
            outcome = _outcome(read(row["reader"], row["reply"]), row["means"])
            found.setdefault(reader, Counter())[outcome] += 1
    return {
        **{name: dict(sorted(counts.items())) for name, counts in found.items()},
        "qlora": dict(sorted(_comparisons().items())),
        "haltt4llm": _choices(),
    }


def _outcome(read: str | None, means: str | None) -> str:
    if read == means:
        return "as meant" if means else "rightly not read"
    return "misread" if read else "clear, not read"


def _comparisons() -> Counter[str]:
    from trustassay.metrics.judge.options import Rubric, RubricLevel
    from trustassay.metrics.judge.replies import read_reply

    levels = tuple(RubricLevel(str(value), float(value), "better") for value in (1, 2, 3))
    rubric = Rubric("better", "1", "", "", levels)
    rows = [
        json.loads(line)
        for path in sorted((shared() / "pairwise-judgements").glob("*.jsonl"))
        for line in path.open(encoding="utf-8")
    ]
    return Counter(_outcome(read_reply(r["text"], rubric).label, str(r["score"])) for r in rows)


def _choices() -> dict[str, int]:
    from trustassay.calls.multiple_choice import find_chosen_option
    from trustassay.papers.experiments.choices import read_published_outputs

    folder = shared() / "haltt4llm"
    questions = json.loads((folder / "truthfulqa_trivia_questions.json").read_text("utf-8"))
    asked: Any = [SimpleNamespace(question=one["question"]) for one in questions]
    named: Counter[str] = Counter()
    for path in sorted(folder.glob("test_results_*.txt")):
        for place, output in read_published_outputs(path, asked).items():
            options = [" ".join(one["text"].split()) for one in questions[place]["answers"]]
            named[
                "named" if find_chosen_option(output.text, options) is not None else "none named"
            ] += 1
    return dict(sorted(named.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", help="folder with another version of the package")
    parser.add_argument("--count", action="store_true", help="print the counts and write nothing")
    given = parser.parse_args()
    figures = {"now": counted()}
    if given.count:
        print(json.dumps(figures["now"]))
        return
    if given.before:
        command = [sys.executable, "-m", "lab.benchmarks.replies", "--count"]
        old = os.environ | {"PYTHONPATH": given.before}
        figures["before"] = json.loads(subprocess.check_output(command, env=old))
    command_line = "python -m lab.benchmarks.replies" + (" --before SRC" if given.before else "")
    data = "tests/text/replies.jsonl; qlora's GPT-4 comparisons; haltt4llm's published outputs"
    print(write_result("replies", command_line, data, figures))
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
