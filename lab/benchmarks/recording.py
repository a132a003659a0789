"""Records what two real models reply to all that ``trustassay demo --all`` asks.

    python -m lab.benchmarks.local_models
    python -m lab.benchmarks.recording --out FOLDER          # goes on where it was stopped
    python -m lab.benchmarks.recording --out FOLDER --add uncertainty   # one more metric

The questions and passages are the sixty of ``demo --files``, which this project wrote. The larger
model answers them from what it knows and from the passages, chooses among its own answer and
distractors, answers perturbed prompts and judges; the smaller one gives references. Writes
``src/trustassay/input/recorded``. Which answers are right is read by eye: ``recording_labels.csv``
has the word for each, and an answer that is not in it stops the recording with a list to fill in.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lab.benchmarks.local_methods import uri
from trustassay import score
from trustassay.backends.replay import read_run_replies
from trustassay.calls.client import CallOptions
from trustassay.cli.demo import FOLDER, MAX_ANSWER_TOKENS, MODEL, OTHER, PARTS, PROMPT, REPLIES
from trustassay.runs.answering import Answering
from trustassay.runs.generate import GenerateOptions, generate

Record = dict[str, Any]
QUESTIONS = FOLDER.parent / "example" / "questions.jsonl"
LABELS = Path(__file__).with_name("recording_labels.csv")
NAMES = {MODEL: "1.5b", OTHER: "0.5b"}
DISTRACTORS = 8


def read(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def answered(asked: Sequence[Record], model: str, out: Path, **how: Any) -> dict[str, str]:
    """Return a model's answer to each question, by id."""
    options = GenerateOptions(
        answering=Answering(**how), calls=CallOptions(cache=out / "cache"), progress=True
    )
    path = out / f"{NAMES[model]}-{how['style']}.jsonl"
    generate(asked, uri(NAMES[model]), path, options)
    return {one["id"]: one["response"] for one in read(path)}


def with_distractors(samples: Sequence[Record]) -> None:
    """Give each answer the distractors that the standing sources find for it.

    They are kept in the file, since the order in which an embedder finds them depends on the
    processor by the last digits.
    """
    run = score(
        [{k: v for k, v in one.items() if k != "references"} for one in samples],
        metrics=["consistency:checks=5,stop=no,sources=pool+embedding+pos"],
        model=lambda _: "E",
        report=False,
    )
    found: dict[str, list[str]] = {}
    for one in run.assessments:
        found[one.id] = list(dict.fromkeys(offered(one.evidence)))[:DISTRACTORS]
    for sample in samples:
        sample["wrong_answers"] = found[sample["id"]]


def offered(evidence: Sequence[Any]) -> Iterator[str]:
    for row in evidence:
        yield from (option["text"] for option in row["options"] if option.get("source"))


def labels_of(samples: Sequence[Record]) -> dict[str, int]:
    """Return which answers are right, as a person read them.

    Raises:
        SystemExit: answers were not read yet; prints the lines to complete.
    """
    told = {}
    if LABELS.exists():
        with LABELS.open(newline="", encoding="utf-8") as file:
            told = {(row["id"], row["response"]): int(row["right"]) for row in csv.DictReader(file)}
    unread = [one for one in samples if (one["id"], one["response"]) not in told]
    if unread:
        writer = csv.writer(sys.stdout)
        writer.writerows([one["id"], one["response"], ""] for one in unread)
        raise SystemExit(f"{LABELS}: add the lines above, with 1 for right and 0 for wrong")
    return {one["id"]: told[one["id"], one["response"]] for one in samples}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of runs and replies")
    parser.add_argument("--limit", type=int, default=60, help="questions")
    parser.add_argument("--add", metavar="METRIC", help="record what this one asks of the answers")
    given = parser.parse_args()
    if given.add:
        add(given.add, given.out)
        return
    asked = read(QUESTIONS)[: given.limit]
    bare = [{k: v for k, v in one.items() if k != "documents"} for one in asked]
    how = {"style": "closed-book", "prompt": PROMPT, "max_tokens": MAX_ANSWER_TOKENS}
    own, others = (answered(bare, model, given.out, **how) for model in NAMES)
    cited = answered(asked, MODEL, given.out, style="rag-refusal", max_tokens=80)
    samples = [
        {**one, "response": own[one["id"]], "references": {OTHER: others[one["id"]]}}
        for one in asked
    ]
    with_distractors(samples)
    part = PARTS["closed-book"]
    runs = given.out / "run"
    score(
        samples,
        metrics=part.metrics,
        out=runs,
        cache=given.out / "cache",
        report=False,
        progress=True,
        backends=dict.fromkeys(part.roles, uri(NAMES[MODEL])),
    )
    right = labels_of(samples)
    for one in samples:
        one |= {"model": MODEL, "label": right[one["id"]]}
    write(FOLDER / "answers.jsonl", samples)
    both = [{**one, "response": cited[one["id"]], "model": MODEL} for one in asked]
    write(FOLDER / "cited.jsonl", both)
    write_replies(replies(runs))


def add(metric: str, out: Path) -> None:
    """Record what one metric asks of the recorded answers, beside the replies that are there."""
    part = PARTS["closed-book"]
    chosen = [one for one in part.metrics if one.partition(":")[0] == metric]
    score(
        FOLDER / part.file,
        metrics=chosen,
        out=out / metric,
        cache=out / "cache",
        report=False,
        progress=True,
        model=uri(NAMES[MODEL]),
    )
    with gzip.open(REPLIES, "rt", encoding="utf-8") as file:
        known = [line.rstrip("\n") for line in file]
    write_replies([*known, *replies(out / metric)])


def write_replies(found: Iterable[str], path: Path = REPLIES) -> None:
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        for line in sorted(set(found)):
            file.write(line.encode() + b"\n")
    print(f"{path}: {path.stat().st_size:,} bytes")


def replies(run: Path) -> Iterator[str]:
    """Yield the replies of a run as lines of ``replay:``."""
    for one in read_run_replies(run / "calls.sqlite"):
        messages = [turn._asdict() for turn in one.messages]
        asked: Record = {"messages": messages}
        if [turn["role"] for turn in messages] == ["user"]:
            asked = {"prompt": messages[0]["content"]}
        told = one.reply
        reply: Record = {
            "text": told.text,
            "finish": told.finish,
            "prompt_tokens": told.prompt_tokens,
            "reply_tokens": told.reply_tokens,
        }
        if told.logprobs is not None:
            reply["logprobs"] = [
                [t, round(p, 4), [[other, round(q, 4)] for other, q in others]]
                for t, p, others in told.logprobs
            ]
        record = {"model": MODEL, "repeat": one.repeat, **asked, "reply": reply}
        yield json.dumps(record, ensure_ascii=False)


def write(path: Path, records: Sequence[Record]) -> None:
    text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
