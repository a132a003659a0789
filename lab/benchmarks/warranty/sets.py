"""Public sets of answers with labels, and the scores of several judges for each answer.

The development files are read; of Q2 there is only one file. The scores of our own readers are
stored in a folder, so that a stopped run continues. Stored scores of others come with the sets.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lab.benchmarks.public_labels.rows import ASKED, read_attribution, share_of_words
from lab.benchmarks.which_metric.sets import lines, trustscore, truthfulqa
from trustassay import score
from trustassay.statistics.resampling import generator

Json = dict[str, Any]
MAX_SCORED = 1500
"""Answers of a set that our readers score at most; they are drawn at random."""
ROWS_AT_ONCE = 50
SUPPORT, WORDS = "support", "words"
ENTAILER, RECALL = "judge by entailer", "token recall"


class JudgedAnswer(NamedTuple):
    """An answer with its label and its scores."""

    id: str
    group: str
    """What it shares with answers that are no independent evidence, such as a question."""
    right: bool
    scores: Mapping[str, float]
    """By judge; higher means right. Those of our readers are added by :func:`score_answers`."""
    record: Json
    """The sample for our readers; empty where all scores are stored."""


class JudgedSet(NamedTuple):
    """A set, and how it is read."""

    title: str
    read: Callable[[], Iterator[JudgedAnswer]]
    metric: str
    """What our readers score; empty where all scores are stored."""
    right: str
    """What people call right."""


def _build_claim(row: Mapping[str, Any], number: int, group: str, question: str) -> JudgedAnswer:
    claim, passages = row["hypothesis"], [row["premise"]]
    key = f"{number}"
    record = {"id": key, "question": question, "response": claim, "documents": passages}
    right = row["label"] in (1, "supported")
    return JudgedAnswer(key, group, right, {WORDS: share_of_words(claim, passages)}, record)


def read_begin() -> Iterator[JudgedAnswer]:
    """Replies to snippets of three sources; Generic counts as not attributable."""
    names = ("wow", "cmu", "tc")
    rows = [row for name in names for row in lines(f"attribution/begin_{name}_dev")]
    for number, row in enumerate(rows):
        # Some replies open a dialogue: they have no turn before.
        question = row["message"].strip() or "Tell me more."
        yield _build_claim(row, number, row["premise"], question)


def read_wice() -> Iterator[JudgedAnswer]:
    """Sentences of Wikipedia, each with one of its packs of the cited page."""
    claims = set()
    for number, row in enumerate(lines("attribution/wice_oracle_dev")):
        if row["hypothesis"] not in claims:
            claims.add(row["hypothesis"])
            yield _build_claim(row, number, row["hypothesis"], ASKED)


def read_healthver() -> Iterator[JudgedAnswer]:
    """Claims about health, each with sentences of several abstracts."""
    for number, row in enumerate(lines("attribution/healthver_dev")):
        yield _build_claim(row, number, row["hypothesis"], ASKED)


def read_documents(name: str) -> Callable[[], Iterator[JudgedAnswer]]:
    """Return a reader of claims that name their document."""

    def read() -> Iterator[JudgedAnswer]:
        for number, row in enumerate(lines(name)):
            question = (row.get("context") or "").strip() or ASKED
            yield _build_claim(row, number, row["doc"], question)

    return read


def read_attributionbench() -> Iterator[JudgedAnswer]:
    """Cited claims, in domain and out of it."""
    for part in ("in_domain", "ood"):
        for row in read_attribution(part)():
            scores = {WORDS: row.trivial["words"]}
            record = {**row.record, "id": row.id}
            group = f"{part} {row.cluster}"
            yield JudgedAnswer(row.id, group, row.label == "right", scores, record)


def read_truthfulqa() -> Iterator[JudgedAnswer]:
    """One answer to each question, of a size of GPT-3 that is drawn at random."""
    answers: dict[str, list[Any]] = {}
    for row in truthfulqa():
        answers.setdefault(row.question, []).append(row)
    rng = generator(0, "warranty", "truthfulqa")
    for number, (question, rows) in enumerate(answers.items()):
        row = rows[int(rng.integers(len(rows)))]
        record = {"id": f"{number}", "question": question, "response": row.response}
        record["answers"] = row.fields["answers"]
        yield JudgedAnswer(f"{number}", question, bool(row.label), {}, record)


def read_trustscore() -> Iterator[JudgedAnswer]:
    """GPT-3.5's answers to five sets of questions with gold answers, checked by people."""
    for number, row in enumerate(trustscore()):
        if row.fields["model"] == "gpt":
            record = {"id": f"{number}", "question": row.question, "response": row.response}
            record["answers"] = row.fields["answers"]
            yield JudgedAnswer(f"{number}", row.question, bool(row.label), {}, record)


def read_simpleqa(preset: str) -> Callable[[], Iterator[JudgedAnswer]]:
    """Return a reader of answers of GPT-4o with a vendor's confidence.

    What was not attempted, and what nobody is sure of, counts as wrong.
    """

    def read() -> Iterator[JudgedAnswer]:
        for row in lines("tlm-simpleqa/dev"):
            scores = {f"tlm{preset}": float(row[f"tlm{preset}"])}
            yield JudgedAnswer(row["id"], row["doc"], row[f"label{preset}"] == "right", scores, {})

    return read


def read_selfcheck() -> Iterator[JudgedAnswer]:
    """Sentences of passages by GPT-3 with the stored scores of SelfCheckGPT's methods."""
    for place, row in enumerate(lines("selfcheck-wikibio/passages")):
        for number, label in enumerate(row["annotation"]):
            # Their scores are of inconsistency.
            scores = {name: 1 - float(of[number]) for name, of in row["scores"].items()}
            right = label == "accurate"
            yield JudgedAnswer(f"{place}-{number}", f"{place}", right, scores, {})


FAITHFULNESS = "faithfulness"
SETS: Mapping[str, JudgedSet] = {
    "tlm-simpleqa": JudgedSet("SimpleQA, GPT-4o", read_simpleqa(""), "", "has the gold answer"),
    "tlm-simpleqa-best": JudgedSet(
        "SimpleQA, preset best", read_simpleqa("_best"), "", "has the gold answer"
    ),
    "selfcheck-wikibio": JudgedSet("WikiBio, GPT-3", read_selfcheck, "", "accurate sentence"),
    "begin": JudgedSet("BEGIN", read_begin, FAITHFULNESS, "fully attributable"),
    "wice": JudgedSet("WiCE", read_wice, FAITHFULNESS, "fully supported"),
    "healthver": JudgedSet("HealthVer", read_healthver, FAITHFULNESS, "supported"),
    "q2": JudgedSet(
        "Q²", read_documents("dialogue-grounding/q2_wow_test"), FAITHFULNESS, "consistent"
    ),
    "xsum": JudgedSet(
        "XSum", read_documents("xsum-hallucination/dev"), FAITHFULNESS, "nothing made up"
    ),
    "fib": JudgedSet("FIB", read_documents("fib/dev"), FAITHFULNESS, "consistent"),
    "attributionbench": JudgedSet(
        "AttributionBench", read_attributionbench, FAITHFULNESS, "attributable"
    ),
    "truthfulqa": JudgedSet("TruthfulQA, GPT-3", read_truthfulqa, ENTAILER, "true or mostly true"),
    "trustscore": JudgedSet("TrustScore's GPT-3.5", read_trustscore, ENTAILER, "correct"),
}
"""The sets by their names. People labelled them; only most labels of SimpleQA are by gold words."""


def draw_answers(name: str) -> list[JudgedAnswer]:
    """Return the answers of a set, at most :data:`MAX_SCORED` where our readers score them."""
    answers = list(SETS[name].read())
    if not SETS[name].metric or len(answers) <= MAX_SCORED:
        return answers
    order = generator(0, "warranty", name).permutation(len(answers))
    return [answers[place] for place in sorted(order[:MAX_SCORED].tolist())]


def score_answers(name: str, out: Path) -> list[JudgedAnswer]:
    """Return the answers of a set with all scores; those that no reader scored are left out.

    Args:
        name: the set. out: the folder of the scores, which are added where they are missing.
    """
    answers = draw_answers(name)
    if not SETS[name].metric:
        return answers
    path = out / f"{name}.jsonl"
    stored = _read_stored(path)
    missing = [answer for answer in answers if answer.id not in stored]
    for start in range(0, len(missing), ROWS_AT_ONCE):
        rows = _score_records(name, [answer.record for answer in missing[start:][:ROWS_AT_ONCE]])
        out.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        print(name, start + len(rows), "of", len(missing), file=sys.stderr, flush=True)
    stored = _read_stored(path)
    return [
        answer._replace(scores={**answer.scores, **stored[answer.id]})
        for answer in answers
        if stored[answer.id]
    ]


def _read_stored(path: Path) -> dict[str, dict[str, float]]:
    if not path.exists():
        return {}
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {row["id"]: row["scores"] for row in rows}


def _score_records(name: str, records: Sequence[Json]) -> list[Json]:
    """Return the id and the scores of each record; no scores where a metric did not judge it."""
    if SETS[name].metric == FAITHFULNESS:
        run = score(records, metrics=FAITHFULNESS, report=False, skip_bad=True)
        scores = {a.id: {SUPPORT: a.parts.get("support")} for a in run.assessments}
    else:
        run = score(
            records, metrics=["judge:by=entailer", "reference"], report=False, skip_bad=True
        )
        scores = {record["id"]: {} for record in records}
        for a in run.assessments:
            is_judge = a.metric == "judge"
            value = a.score if is_judge else a.parts.get("token_recall")
            scores[a.id][ENTAILER if is_judge else RECALL] = value
    return [
        {"id": key, "scores": {} if None in values.values() else values}
        for key, values in scores.items()
    ]


def write_table(answers: Sequence[JudgedAnswer], path: Path) -> None:
    """Write the labels and scores of answers as the CSV that ``trustassay calibrate`` reads."""
    judges = list(answers[0].scores)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "group", "human", *judges])
        for answer in answers:
            label = "right" if answer.right else "wrong"
            values = [answer.scores[judge] for judge in judges]
            writer.writerow([answer.id, answer.group, label, *values])
