"""Records the small set that ``trustassay papers reproduce fewl`` computes the paper's tables from.

    python -m lab.benchmarks.local_models
    python -m lab.benchmarks.fewl.recording --out FOLDER          # goes on where it was stopped

The questions are the sixty of ``demo --files``. Right, half wrong and wrong answers are made by
rule from this project's passages; all else is what two real models replied: five sampled answers of
each, wrong answers with corrected ones, answers to questions with choices, and the recorded
answers of the demo. Writes ``src/trustassay/input/recorded/fewl``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.benchmarks.local_models import path_of
from lab.benchmarks.recording import NAMES, read, write
from trustassay import score
from trustassay.backends.replay import read_run_replies
from trustassay.calls.client import CallOptions
from trustassay.cli.demo import FOLDER, MAX_ANSWER_TOKENS, MODEL, OTHER, PROMPT, REPLIES
from trustassay.core.event_loop import run_anywhere
from trustassay.metrics.fewl import Fewl
from trustassay.papers.experiments.answers import RecordSelection
from trustassay.papers.experiments.choices import FiveChoiceSetup, run_five_choice
from trustassay.papers.experiments.experts import measure_experts
from trustassay.papers.experiments.measuring import FewlSetup
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import RunOptions

Record = dict[str, Any]
TARGET = FOLDER / "fewl"
OPEN_BOOK = f"{MODEL} with passages"
"""The reference of the tables that compare both models: the larger one, which has read a passage
on the question."""
ANSWERS, PAIRS = 5, 3
PARALLEL = 4
"""Calls at once: replies are kept when all of them are finished."""
"""Answers of each reference, as in the paper; wrong answers of a question, of which it has 25."""


def uri(short: str) -> str:
    return f"gguf:{path_of(short)}?context=2048&parallel={PARALLEL}&threads=1"


def first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".") + "."


def find_similar_golds(records: Sequence[Record], index: int, words: int) -> list[str]:
    """Return the gold answers of the following questions that begin with the same words."""
    start = records[index]["question"].split()[:words]
    gold = records[index]["answers"][0][0]
    following = [*records[index + 1 :], *records[:index]]
    golds = [
        other["answers"][0][0] for other in following if other["question"].split()[:words] == start
    ]
    return [text for text in dict.fromkeys(golds) if text != gold]


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
        texts = {"right": right, "hallu": first_sentence(other_passage)}
        # "In which year" and "In which museum" have answers of different kinds, "Who" has one.
        start = record["question"].split()[0]
        words = {"What": 4, "In": 3, "On": 3, "Of": 3, "Into": 3}.get(start, 2)
        if similar := find_similar_golds(records, index, words):
            pattern = re.compile(re.escape(gold), re.IGNORECASE)
            half = pattern.sub(similar[0], right, count=1)
            if half != right:
                texts["half-hallu"] = half[0].upper() + half[1:]
        answers[record["id"]] = texts
    return answers


def build_choices(records: Sequence[Record]) -> list[Record]:
    """Return the questions with five choices, the right one first, in the layout of haltt4llm."""
    questions = []
    for index, record in enumerate(records):
        similar = find_similar_golds(records, index, words=2)
        similar += find_similar_golds(records, index, words=1)
        golds = [other["answers"][0][0] for other in [*records[index + 1 :], *records[:index]]]
        wrong = list(dict.fromkeys([*similar, *golds]))[:2]
        choices = [record["answers"][0][0], *wrong, "None of the above", "I don't know"]
        question = {"id": record["id"], "question": record["question"], "choices": choices}
        questions.append({**question, "right_choice": 0, "answers": record["answers"]})
    return questions


def read_replies(calls: Path) -> Iterator[tuple[str, int, str]]:
    """Yield prompt, number and text of the replies of a run, or of the recorded ones."""
    if calls.suffix == ".sqlite":
        for recorded in read_run_replies(calls):
            yield recorded.messages[-1].content, recorded.repeat, recorded.reply.text
        return
    with gzip.open(calls, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if "prompt" in record:
                yield record["prompt"], record["repeat"], record["reply"]["text"]


def read_sampled_answers(calls: Path) -> dict[str, list[str]]:
    """Return by question the answers that were sampled at a temperature of 1."""
    prompt = PROMPT.read_text(encoding="utf-8").partition("\n")[2].strip()
    start, _, end = prompt.partition("{{ question }}")
    answers: dict[str, dict[int, str]] = {}
    for text, repeat, reply in read_replies(calls):
        # The first reply is the answer itself, at a temperature of 0.
        if repeat and text.startswith(start) and text.endswith(end):
            question = text.removeprefix(start).removesuffix(end)
            answers.setdefault(question, {})[repeat] = reply.strip()
    return {question: [texts[n] for n in sorted(texts)] for question, texts in answers.items()}


def record_samples(records: Sequence[Record], out: Path, options: RunOptions) -> None:
    """Sample five answers of the smaller model; the larger one's were recorded already."""
    score(
        [{key: one[key] for key in ("id", "question")} | {"response": one["references"][OTHER]}
         for one in records],
        metrics=[f"uncertainty:samples={ANSWERS},prompt={PROMPT},max_tokens={MAX_ANSWER_TOKENS}"],
        out=out / "sampled",
        cache=options.calls.cache,
        report=False,
        model=uri(NAMES[OTHER]),
        calls_at_once=PARALLEL,
    )  # fmt: skip


def record_pairs(records: Sequence[Record], out: Path, options: RunOptions) -> None:
    """Ask the larger model for wrong answers to each question, with corrected ones."""
    source = out / "questions.jsonl"
    fields = ("id", "question", "answers", "references")
    write(source, [{key: one[key] for key in fields} for one in records])
    setup = FewlSetup(generator=uri(NAMES[MODEL]), metric=Fewl(pairs=PAIRS), options=options)
    run_anywhere(lambda: measure_experts(source, out / "experts", setup, RecordSelection()))


def build_references(records: Sequence[Record], out: Path) -> list[Record]:
    """Return the sampled answers and the pairs, by question."""
    sampled = {
        MODEL: read_sampled_answers(REPLIES),
        OTHER: read_sampled_answers(out / "sampled" / "calls.sqlite"),
    }
    filled = {one.question: one for one in RunFolder(out / "experts" / "compared").samples()}
    lines = []
    for record in records:
        question = record["question"]
        references = {name: texts[question] for name, texts in sampled.items()}
        line = {"question": question, "references": references}
        # A reply without any pair leaves the question without these fields.
        for key in ("wrong_answers", "corrected_answers"):
            if texts := getattr(filled[question], key):
                line[key] = list(texts)
        lines.append(line)
    return lines


def record_choices(records: Sequence[Record], out: Path, options: RunOptions) -> None:
    """Ask both models the questions with choices, which are shuffled."""
    source = out / "choices.jsonl"
    write(source, build_choices(records))
    models = [f"{name}={uri(short)}" for name, short in NAMES.items()]
    setup = FiveChoiceSetup(models=models, shuffle=True, options=options)
    work = run_five_choice
    run_anywhere(lambda: work(source, out / "five-choice", setup, RecordSelection()))


PARTS = {"pairs": record_pairs, "samples": record_samples, "choices": record_choices}


def build_model_answers(records: Sequence[Record], wrong: Mapping[str, list[str]]) -> list[Record]:
    """Return the recorded answers of both models, with right and wrong answers to compare with."""
    lines = []
    for record in records:
        responses = {MODEL: record["response"], OTHER: record["references"][OTHER]}
        for name, response in responses.items():
            line = {"id": f"{record['id']}-{NAMES[name]}", "question": record["question"]}
            line |= {"model": name, "response": response, "answers": record["answers"]}
            lines.append(line | {"incorrect_answers": wrong[record["id"]]})
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of runs and replies")
    parser.add_argument("--only", choices=PARTS, help="record one part, and write nothing")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    options = RunOptions(calls=CallOptions(cache=arguments.out / "cache", calls_at_once=PARALLEL))
    records = read(FOLDER / "answers.jsonl")
    cited = {one["id"]: one["response"] for one in read(FOLDER / "cited.jsonl")}
    for name, record in PARTS.items():
        if arguments.only in (None, name):
            record(records, arguments.out, options)
    if arguments.only:
        return
    references = build_references(records, arguments.out)
    fields = ("id", "question", "model", "response", "label", "answers")
    asked = read(arguments.out / "five-choice" / "answers.jsonl")
    choices = [{key: one[key] for key in fields} for one in asked]
    answers = build_answers(records)
    labelled = [
        {"id": f"{one['id']}-{kind}", "question": one["question"],
         "response": answers[one["id"]][kind], "label": int(kind == "right"), "kind": kind}
        for one in records for kind in ("right", "half-hallu", "hallu")
        if kind in answers[one["id"]]
    ]  # fmt: skip
    wrong = {
        one["id"]: [
            *([one["response"]] if one["label"] == 0 else []),
            *(text for kind, text in answers[one["id"]].items() if kind != "right"),
        ]
        for one in records
    }
    questions = [
        {"id": one["id"], "question": one["question"], "answers": [[answers[one["id"]]["right"]]],
         "incorrect_answers": wrong[one["id"]]}
        for one in records
    ]  # fmt: skip
    marks = re.compile(r"\s*\[\d+\]")
    text_of_question = {one["id"]: one["question"] for one in records}
    open_book = {text_of_question[key]: marks.sub("", text) for key, text in cited.items()}
    models = [
        {**one, "references": {OPEN_BOOK: open_book[one["question"]]}}
        for one in build_model_answers(records, wrong)
    ]
    five_choice = [
        {**one, "references": {OPEN_BOOK: open_book[one["question"]]}} for one in choices
    ]
    TARGET.mkdir(exist_ok=True)
    for name, lines in (
        ("chale", labelled), ("truthfulqa", questions), ("references", references),
        ("samples", models), ("five-choice", five_choice),
    ):  # fmt: skip
        write(TARGET / f"{name}.jsonl", lines)
        print(f"{name}: {json.dumps(lines[0], ensure_ascii=False)[:200]}")


if __name__ == "__main__":
    main()
