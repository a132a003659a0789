"""Makes the files that ``trustassay demo --files`` writes, from a table of sixty facts.

    python -m lab.benchmarks.example_files

All replies, labels and ratings are scripted: no model gave them and no person.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

FACTS = Path(__file__).with_name("example_facts.txt")
FOLDER = Path(__file__).parents[2] / "src/trustassay/input/example"
FIELDS = ("id", "question", "sentence", "gold", "wrong", "other", "passage", "detail")
KNOWN = {"small": 0.65, "large": 0.85}
"""Share of the questions to which each scripted model has the right answer."""
REFERENCES = {"model-a": 0.95, "model-b": 0.85, "model-c": 0.7}
WORDINGS = ("It was {}.", "{}, as far as is known.", "The answer is {}.")
INVENTED = "A small museum nearby tells visitors about it every summer."
REFUSAL = "I apologize, but I couldn't find an answer to your question in the search results."


def facts() -> list[dict[str, str]]:
    """Return the table, one dictionary for each of its sixty lines."""
    lines = FACTS.read_text(encoding="utf-8").splitlines()
    return [dict(zip(FIELDS, line.split("|"), strict=True)) for line in lines]


def knowledge(generator: np.random.Generator, n: int, share: float) -> list[bool]:
    """Return which of n questions somebody knows: exactly the share of them, in random order."""
    known = np.arange(n) < round(share * n)
    return [bool(one) for one in generator.permutation(known)]


def said(fact: Mapping[str, str], key: str) -> str:
    """Return the sentence that answers a question with the given value."""
    return fact["sentence"].format(fact[key])


def main() -> None:
    table = facts()
    generator = np.random.default_rng(30)
    known = {name: knowledge(generator, len(table), p) for name, p in KNOWN.items()}
    shared = {name: knowledge(generator, len(table), p) for name, p in REFERENCES.items()}
    questions, replies, answers = [], [], []
    for n, fact in enumerate(table):
        answerable = n % 10 != 9
        near = [table[(n + step) % len(table)]["passage"] for step in (1, 2)]
        own = f"{fact['passage']} {fact['detail']}"
        question = {
            "id": fact["id"],
            "question": fact["question"],
            "answers": [[fact["gold"]]],
            "documents": [own, near[0]] if answerable else near,
        }
        reply = {
            "id": fact["id"],
            "question": fact["question"],
            "gold": fact["gold"],
            "right": said(fact, "gold"),
            "wrong": said(fact, "wrong"),
            "other": said(fact, "other"),
            "detail": fact["detail"] if n % 4 == 0 else INVENTED if n % 7 == 0 else "",
            "refusal": "" if answerable else REFUSAL,
            **{name: known[name][n] for name in KNOWN},
        }
        is_right = known["small"][n]
        small = reply["right"] if is_right else reply["wrong"]
        refuses = not answerable and is_right
        label = int(is_right)
        answers.append(
            {
                **question,
                "response": REFUSAL if refuses else f"{small} {reply['detail']}".strip(),
                "model": "small",
                "label": label,
                "references": {
                    name: WORDINGS[place].format(fact["gold" if shared[name][n] else "wrong"])
                    for place, name in enumerate(REFERENCES)
                },
                "wrong_answers": [said(fact, "wrong"), said(fact, "other")],
                "corrected_answers": [said(fact, "gold")] * 2,
            }
        )
        questions.append(question)
        replies.append(reply)
    FOLDER.mkdir(exist_ok=True)
    for name, records in (("questions", questions), ("answers", answers), ("replies", replies)):
        write(FOLDER / f"{name}.jsonl", records)
    ratings(FOLDER / "ratings.csv", answers, generator)


def ratings(
    path: Path, answers: Sequence[Mapping[str, Any]], generator: np.random.Generator
) -> None:
    """Write levels from 1 to 5 of two scripted raters; each rates every third answer twice."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["item", "rater", "rating"])
        for n, answer in enumerate(answers):
            deserved = 4.6 if answer["label"] else 1.6
            deserved += generator.normal(0, 0.5)
            for rater, strict in (("anna", 0.0), ("bela", 0.4)):
                for _ in range(2 if n % 3 == 0 else 1):
                    level = round(deserved - strict + generator.normal(0, 0.5))
                    writer.writerow([answer["id"], rater, min(max(level, 1), 5)])


def write(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Write JSON Lines."""
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
