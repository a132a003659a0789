"""How often an answer in another language is judged as English, and an English one is not judged.

    TRUSTASSAY_SHARED=... python -m lab.benchmarks.languages

Answers in other languages: Mu-SHROOM (Vázquez et al. 2025). English answers: those of Mu-SHROOM,
TrustScore, TruthfulQA, ExpertQA and HaluEval. Each answer is read whole, and cut to its first
words. With ``english question`` the longer answers in other languages have an English question of
TrustScore in place of their own. Writes ``results/languages.json``.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from lab.results import write_result
from trustassay.text.language import ENGLISH, MAX_SHORT_ANSWER_WORDS, detect_language

COMMAND = "python -m lab.benchmarks.languages"
DATA = "Mu-SHROOM; English also of TrustScore, TruthfulQA, ExpertQA and HaluEval"
CUTS = (None, 5, 3, 2, 1)


class Answer(NamedTuple):
    """An answer with the language that its data set gives it."""

    data: str
    language: str
    question: str
    text: str


def shared() -> Path:
    return Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")) / "data"


def lines(path: Path) -> Iterator[Any]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def answers(data: Path) -> Iterator[Answer]:
    for path in sorted((data / "mu-shroom").glob("*.jsonl.gz")):
        for row in lines(path):
            language = row["lang"].lower()
            yield Answer("mu-shroom", language, row["model_input"], row["model_output_text"])
    for row in json.loads((data / "trustscore" / "qa_human_check.json").read_bytes()):
        for model in ("flan", "llama", "gpt"):
            yield Answer("trustscore", ENGLISH, row["question"], row[model]["pred"])
    for part in ("dev", "test"):
        for row in lines(data / "expertqa" / f"samples_{part}.jsonl.gz"):
            yield Answer("expertqa", ENGLISH, row["question"], row["response"])
    with (data / "truthfulqa" / "TruthfulQA_817_original.csv").open(encoding="utf-8-sig") as file:
        for row in csv.DictReader(file):
            for text in f"{row['Correct Answers']};{row['Incorrect Answers']}".split(";"):
                yield Answer("truthfulqa", ENGLISH, row["Question"], text)
    for row in lines(data / "halueval" / "qa_data_first1000.json"):
        for key in ("right_answer", "hallucinated_answer"):
            yield Answer("halueval", ENGLISH, row["question"], row[key])


def measured(found: list[Answer], words: int | None, question: str | None = None) -> dict[str, Any]:
    """Return, in percent, how many answers are taken for the wrong kind, and where."""
    wrong, total = Counter[str](), Counter[str]()
    began = time.process_time()
    for one in found:
        text = one.text if words is None else " ".join(one.text.split()[:words])
        english = one.language == ENGLISH
        place = one.data if english else one.language
        total[place] += 1
        context = one.question if question is None else question
        wrong[place] += (detect_language(text, [context]) in (ENGLISH, None)) != english
    seconds = time.process_time() - began
    return {
        "answers": total.total(),
        "percent": round(100 * wrong.total() / total.total(), 2),
        "wrong": {place: f"{count} of {total[place]}" for place, count in wrong.items() if count},
        "microseconds": round(1e6 * seconds / len(found)),
    }


def main() -> None:
    every = [one for one in answers(shared()) if one.text.strip()]
    detect_language("a first text loads the model")
    others = [one for one in every if one.language != ENGLISH]
    english = [one for one in every if one.language == ENGLISH]
    longer = [one for one in others if len(one.text.split()) > MAX_SHORT_ANSWER_WORDS]
    question = next(one.question for one in english if one.data == "trustscore")
    figures: dict[str, Any] = {
        f"{name}, {'whole' if words is None else f'first {words} words'}": measured(of, words)
        for name, of in (("other languages as English", others), ("English refused", english))
        for words in CUTS
    }
    figures["other languages as English, english question"] = measured(longer, None, question)
    for name, row in figures.items():
        print(f"{name}: {row}")
    print(write_result("languages", COMMAND, DATA, figures))


if __name__ == "__main__":
    main()
