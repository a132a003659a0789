"""Makes the small set that ``trustassay papers reproduce fewl`` computes the paper's tables from.

    python -m lab.benchmarks.local_models 1.5b
    python -m lab.benchmarks.fewl.recording --out FOLDER --pairs   # goes on where it was stopped
    python -m lab.benchmarks.fewl.recording --out FOLDER           # writes the files

The questions are the sixty of ``demo --files``. Right, half wrong and wrong answers are made by
rule from this project's passages; all else is what two real models replied: their recorded answers,
the five samples of the larger one, and with ``--pairs`` its wrong and corrected answers. Writes
``src/trustassay/input/recorded/fewl``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.benchmarks.local_models import path_of
from lab.benchmarks.recording import NAMES, labels_of, read, write
from trustassay.calls.client import CallOptions
from trustassay.cli.demo import FOLDER, MODEL, OTHER, PROMPT, REPLIES
from trustassay.core.event_loop import run_anywhere
from trustassay.metrics.fewl import Fewl
from trustassay.papers.experiments.answers import RecordSelection
from trustassay.papers.experiments.experts import measure_experts
from trustassay.papers.experiments.measuring import FewlSetup
from trustassay.papers.reproduce.fewl.inputs import BUNDLED
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import RunOptions

Record = dict[str, Any]
OPEN_BOOK = f"{MODEL} with passages"
"""The reference of the tables that compare both models: the larger one, which has read a passage
on the question."""
PAIRS = 3
"""Wrong answers of a question; the paper asks for 25, of which so small a model repeats most."""
PARALLEL = 4
"""Calls at once: replies are kept when all of them are finished."""


def first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".") + "."


def find_similar_gold(records: Sequence[Record], index: int) -> str | None:
    """Return the gold answer of the next question of the same kind; ``None`` if there is none."""
    words = records[index]["question"].split()
    # "In which year" and "In which museum" have answers of different kinds, "Who" has one.
    count = {"What": 4, "In": 3, "On": 3, "Of": 3, "Into": 3}.get(words[0], 2)
    gold = records[index]["answers"][0][0]
    for other in [*records[index + 1 :], *records[:index]]:
        text: str = other["answers"][0][0]
        if other["question"].split()[:count] == words[:count] and text != gold:
            return text
    return None


def build_answers(records: Sequence[Record]) -> dict[str, dict[str, str]]:
    """Return by question the right, the half wrong and the wrong answer.

    Right: the sentence of the passage that has the answer. Half wrong: the same sentence with the
    answer to a similar question. Wrong: the sentence that answers the next question.
    """
    answers = {}
    for index, record in enumerate(records):
        passage, other_passage = record["documents"]
        gold = record["answers"][0][0]
        right = first_sentence(passage)
        right = right if gold.casefold() in right.casefold() else passage
        texts = {"right": right}
        if similar := find_similar_gold(records, index):
            half = re.sub(re.escape(gold), similar, right, count=1, flags=re.IGNORECASE)
            if half != right:
                texts["half-hallu"] = half[0].upper() + half[1:]
        answers[record["id"]] = texts | {"hallu": first_sentence(other_passage)}
    return answers


def read_samples_of_model() -> dict[str, list[str]]:
    """Return by question the answers that the larger model gave at a temperature of 1."""
    prompt = PROMPT.read_text(encoding="utf-8").partition("\n")[2].strip()
    start, _, end = prompt.partition("{{ question }}")
    answers: dict[str, dict[int, str]] = {}
    with gzip.open(REPLIES, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            text = record.get("prompt", "")
            # The first reply is the answer itself, at a temperature of 0.
            if record["repeat"] and text.startswith(start) and text.endswith(end):
                question = text.removeprefix(start).removesuffix(end)
                texts = answers.setdefault(question, {})
                texts[record["repeat"]] = record["reply"]["text"].strip()
    return {question: [texts[n] for n in sorted(texts)] for question, texts in answers.items()}


def record_pairs(records: Sequence[Record], out: Path) -> None:
    """Ask the larger model for wrong answers to each question, with corrected ones."""
    source = out / "questions.jsonl"
    fields = ("id", "question", "answers", "references")
    write(source, [{key: one[key] for key in fields} for one in records])
    uri = f"gguf:{path_of(NAMES[MODEL])}?context=2048&parallel={PARALLEL}&threads=1"
    options = RunOptions(calls=CallOptions(cache=out / "cache", calls_at_once=PARALLEL))
    setup = FewlSetup(generator=uri, metric=Fewl(pairs=PAIRS), options=options)
    run_anywhere(lambda: measure_experts(source, out / "experts", setup, RecordSelection()))


def build_references(records: Sequence[Record], out: Path) -> list[Record]:
    """Return the references by question, and the pairs if they were recorded."""
    samples = read_samples_of_model()
    folder = RunFolder(out / "experts" / "compared")
    filled = {one.question: one for one in folder.samples()} if folder.path.exists() else {}
    lines = []
    for record in records:
        question = record["question"]
        references = {MODEL: samples[question], OTHER: [record["references"][OTHER]]}
        line: Record = {"question": question, "references": references}
        # A reply without any pair leaves the question without these fields.
        for key in ("wrong_answers", "corrected_answers"):
            if texts := getattr(filled.get(question), key, ()):
                line[key] = list(texts)
        lines.append(line)
    return lines


def build_model_answers(
    records: Sequence[Record], wrong: Mapping[str, Sequence[str]]
) -> list[Record]:
    """Return the recorded answers of both models, with labels and the open-book reference."""
    cited = {one["id"]: one["response"] for one in read(FOLDER / "cited.jsonl")}
    others = [{**one, "response": one["references"][OTHER]} for one in records]
    labels = {MODEL: labels_of(records), OTHER: labels_of(others)}
    lines = []
    for record, other in zip(records, others, strict=True):
        reference = re.sub(r"\s*\[\d+\]", "", cited[record["id"]])
        for name, response in ((MODEL, record["response"]), (OTHER, other["response"])):
            line = {"id": f"{record['id']}-{NAMES[name]}", "question": record["question"]}
            line |= {"model": name, "response": response, "label": labels[name][record["id"]]}
            line |= {"answers": record["answers"], "incorrect_answers": wrong[record["id"]]}
            lines.append(line | {"references": {OPEN_BOOK: reference}})
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of runs and replies")
    parser.add_argument("--pairs", action="store_true", help="record the pairs, and write nothing")
    arguments = parser.parse_args()
    records = read(FOLDER / "answers.jsonl")
    if arguments.pairs:
        arguments.out.mkdir(parents=True, exist_ok=True)
        record_pairs(records, arguments.out)
        return
    answers = build_answers(records)
    wrong = {
        one["id"]: [
            *([one["response"]] if one["label"] == 0 else []),
            *(text for kind, text in answers[one["id"]].items() if kind != "right"),
        ]
        for one in records
    }
    labelled, questions, pairs = [], [], []
    for record in records:
        key, question = record["id"], record["question"]
        for kind, text in answers[key].items():
            line = {"id": f"{key}-{kind}", "question": question, "response": text}
            labelled.append(line | {"label": int(kind == "right"), "kind": kind})
        line = {"id": key, "question": question, "answers": [[answers[key]["right"]]]}
        questions.append(line | {"incorrect_answers": wrong[key]})
        # The same sentence as the model's answer, with another name in it.
        for kind, text in (("right", answers[key]["right"]), ("hallu", record["wrong_answers"][0])):
            line = {"id": f"{key}-{kind}", "question": question, "response": text}
            pairs.append(line | {"label": int(kind == "right"), "kind": kind})
    models = build_model_answers(records, wrong)
    BUNDLED.mkdir(exist_ok=True)
    write(BUNDLED / "chale.jsonl", labelled)
    write(BUNDLED / "truthfulqa.jsonl", questions)
    write(BUNDLED / "references.jsonl", build_references(records, arguments.out))
    write(BUNDLED / "halueval.jsonl", pairs)
    write(BUNDLED / "samples.jsonl", models)


if __name__ == "__main__":
    main()
