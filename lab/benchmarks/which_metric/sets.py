"""The public sets as records of the library, and the seeded sample of each that is scored.

``study`` resamples questions. A sample therefore holds answers whose questions stand for
independent pieces: of answers about one document only those to one question are kept, and where a
set has claims in place of questions, each piece has a question of its own.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lab.benchmarks.faithfulness import cut
from trustassay.statistics.resampling import generator

Record = dict[str, Any]
TRUE = ("true", "mostly true")
FALSE = ("false", "mostly untrue", "mostly false")
SYSTEMS = ("flan", "llama", "gpt")
ASKED = "What does the source say?"
"""What stands in the place of a question where a set has none."""
MARK = re.compile(r"\[(\d+(?:,\s*\d+)*)\]")


class Row(NamedTuple):
    """An answer; ``cluster``: what it shares with answers that are no independent evidence."""

    cluster: str
    question: str
    response: str
    label: int
    fields: Mapping[str, Any]


class PublicSet(NamedTuple):
    """A set, what its answers and labels are, and the metrics that fit it, by their columns."""

    name: str
    title: str
    answers: str
    right: str
    rows: Callable[[], Iterator[Row]]
    columns: Sequence[str]


def shared() -> Path:
    """Return the folder of the public sets, which may be absent."""
    return Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")) / "data"


def lines(name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file of JSON lines."""
    with gzip.open(shared() / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def claim(row: Mapping[str, Any], cluster: str, passages: Sequence[str]) -> Row:
    """Return a claim with its passages."""
    right = row["label"] in (1, "supported")
    fields = {"documents": list(passages), "model": row.get("model"), "kind": kind(row)}
    return Row(cluster, ASKED, row["hypothesis"], int(right), fields)


def kind(row: Mapping[str, Any]) -> str | None:
    """Return what is wrong with an answer, as its annotators called it; ``None`` if not told."""
    edits = row.get("edit_types")
    if edits:
        return str(edits[0]).replace("_", " ") if len(edits) == 1 else "several edits"
    told = None if row.get("source") == "q2_wow" else row.get("orig_label")  # there: a file's name
    return str(told).replace("_", " ").lower() if told else None


def turn(row: Mapping[str, Any], before: str, cluster: str) -> Row:
    """Return a turn of a dialogue; its question is the turn before."""
    found = claim(row, cluster, [row["premise"]])
    return found._replace(question=before.strip() or "Tell me more.")


def begin() -> Iterator[Row]:
    for row in lines("attribution/begin_wow_test"):
        yield turn(row, row["message"], row["premise"])


def dialogue(name: str) -> Callable[[], Iterator[Row]]:
    def rows() -> Iterator[Row]:
        for row in lines(f"dialogue-grounding/{name}_test"):
            yield turn(row, row["context"], row["doc"])

    return rows


def wice() -> Iterator[Row]:
    for row in lines("attribution/wice_oracle_test"):
        yield claim(row, row["hypothesis"], [row["premise"]])


def pages() -> Iterator[Row]:
    for row in lines("attribution/wice_test"):
        yield claim(row, row["hypothesis"], cut(row["premise_sentences"]))


def healthver() -> Iterator[Row]:
    for row in lines("attribution/healthver_test"):
        yield claim(row, row["hypothesis"], [row["premise"]])


def summaries(name: str) -> Callable[[], Iterator[Row]]:
    def rows() -> Iterator[Row]:
        for row in lines(name):
            yield claim(row, row["doc"], [row["premise"]])

    return rows


def expertqa() -> Iterator[Row]:
    for name in ("samples_train", "samples_dev", "samples_test"):
        for row in lines(f"expertqa/{name}"):
            if row["label"] is not None:
                fields = {
                    "documents": [one["text"] for one in row["documents"]],
                    "model": row["model"],
                }
                right = int(row["label"] == "supported")
                yield Row(row["question"], row["question"], renumbered(row), right, fields)


def expertqa_sentences() -> Iterator[Row]:
    for name in ("train", "dev", "test"):
        for row in lines(f"expertqa/{name}"):
            yield claim(row, row["doc"], [row["premise"]])._replace(question=row["question"])


def renumbered(row: Mapping[str, Any]) -> str:
    """Return an answer whose citations name the places of its documents; those of passages that
    the set does not hold are taken out."""
    places = {one["upstream_number"]: place for place, one in enumerate(row["documents"], 1)}

    def mark(found: re.Match[str]) -> str:
        held = [places[one] for one in re.findall(r"\d+", found[1]) if one in places]
        return "".join(f"[{place}]" for place in held)

    return MARK.sub(mark, row["response"])


def halueval() -> Iterator[Row]:
    path = shared() / "halueval" / "qa_data_first1000.json"
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for kind, right in (("right_answer", 1), ("hallucinated_answer", 0)):
            fields = {"documents": [row["knowledge"]]}
            yield Row(row["question"], row["question"], row[kind], right, fields)


def trustscore() -> Iterator[Row]:
    rows = json.loads((shared() / "trustscore" / "qa_human_check.json").read_text("utf-8"))
    for row in rows:
        for one in SYSTEMS:
            fields = {
                "answers": [row["answers"]],
                "references": {other: row[other]["pred"] for other in SYSTEMS if other != one},
                "model": one,
                "source": row["source"],
            }
            right = int(row[one]["human_eval"])
            yield Row(row["question"], row["question"], row[one]["pred"], right, fields)


def truthfulqa() -> Iterator[Row]:
    """Answers that a person called true or false outright; those between are left out."""
    path = shared() / "truthfulqa" / "TruthfulQA_817_original.csv"
    with path.open(newline="", encoding="utf-8-sig") as file:
        golds = [row["Correct Answers"].split(";") for row in csv.DictReader(file)]
    given: dict[int, dict[str, tuple[str, str]]] = defaultdict(dict)
    questions = {}
    path = shared() / "truthfulqa-gpt3-answers" / "gpt3_base_answers_annotated.csv"
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            answer = row["model_answer"].strip().removeprefix("A:").strip()
            said = row["Truthfulness"].strip().lower()
            if answer:
                given[int(row["row"])][row["model"]] = answer, said
                questions[int(row["row"])] = row["question"]
    for number, answers in given.items():
        for model, (answer, said) in answers.items():
            true = said.startswith(TRUE)
            if not true and not said.startswith(FALSE):
                continue
            fields = {
                "answers": [[text.strip() for text in golds[number] if text.strip()]],
                "references": {name: text for name, (text, _) in answers.items() if name != model},
                "model": model,
            }
            yield Row(questions[number], questions[number], answer, int(true), fields)


PASSAGES = ("faithfulness", "faithfulness-lexical", "factcheck", "words", "cosine")
TURNS = (*PASSAGES, "factcheck-alone")
GOLD = ("reference", "judge-entailer", "fewl-agreement", "fewl-eq1")
SETS = (
    PublicSet(
        "begin",
        "BEGIN",
        "replies of dialogue models to a snippet of Wikipedia",
        "fully attributable to the snippet",
        begin,
        TURNS,
    ),
    PublicSet(
        "q2",
        "Q²",
        "replies of two dialogue models to a snippet of Wikipedia",
        "consistent with it; opinions count as consistent",
        dialogue("q2_wow"),
        TURNS,
    ),
    PublicSet(
        "faithdial",
        "FaithDial audit",
        "replies of dialogue models and people to snippets",
        "entailed; opinions and chat count as hallucination",
        dialogue("faithdial_audit"),
        TURNS,
    ),
    PublicSet(
        "dialfact",
        "DialFact",
        "replies, written by people and generated, with evidence from Wikipedia",
        "supported, not refuted and not open",
        dialogue("dialfact_sample"),
        TURNS,
    ),
    PublicSet(
        "halueval",
        "HaluEval QA",
        "gold answers, and wrong ones that ChatGPT was told to make up, with their passage",
        "the gold answer (by construction, no person rated it)",
        halueval,
        (*PASSAGES, "factcheck-searched"),
    ),
    PublicSet(
        "wice",
        "WiCE",
        "sentences of Wikipedia with about 250 words of the page that they cite",
        "fully supported",
        wice,
        PASSAGES,
    ),
    PublicSet(
        "wice-pages",
        "WiCE, whole pages",
        "the same sentences with the whole page, in passages of 100 words",
        "fully supported",
        pages,
        PASSAGES,
    ),
    PublicSet(
        "healthver",
        "HealthVer",
        "claims about health with a sentence of an abstract",
        "supported, not neutral and not refuted",
        healthver,
        PASSAGES,
    ),
    PublicSet(
        "expertqa",
        "ExpertQA",
        "long cited answers of GPT-4 with what it cites",
        "an expert found every sentence completely supported",
        expertqa,
        (*PASSAGES, "grounding"),
    ),
    PublicSet(
        "expertqa-sentences",
        "ExpertQA, sentences",
        "single sentences of these answers with the passages that they cite",
        "an expert found the sentence completely supported",
        expertqa_sentences,
        PASSAGES,
    ),
    PublicSet(
        "xsum",
        "XSum",
        "one-sentence summaries of news by four systems and by the paper itself, with the article",
        "at most one of three people marked anything in it",
        summaries("xsum-hallucination/test"),
        PASSAGES,
    ),
    PublicSet(
        "summedits",
        "SummEdits",
        "summaries and edited copies of them, with the meeting, call or paper",
        "consistent",
        summaries("summedits/test"),
        PASSAGES,
    ),
    PublicSet(
        "trustscore",
        "TrustScore's systems",
        "answers of FLAN-T5, LLaMA and GPT-3.5 to five sets of questions",
        "a person called it correct",
        trustscore,
        GOLD,
    ),
    PublicSet(
        "truthfulqa",
        "TruthfulQA, GPT-3",
        "answers of four sizes of GPT-3 to TruthfulQA",
        "a person called it true or mostly true",
        truthfulqa,
        GOLD,
    ),
)


def records(public: PublicSet, answers: int) -> list[Record]:
    """Return a seeded sample of at least ``answers`` answers, or all; see :func:`drawn`."""
    return drawn(list(public.rows()), answers, public.name)


def drawn(rows: Sequence[Row], answers: int, name: str) -> list[Record]:
    """Return whole pieces in seeded order until there are so many answers.

    Of a piece with several questions the answers to one are kept, and every two pieces have
    different questions.
    """
    pieces: dict[str, list[Row]] = {}
    for row in rows:
        pieces.setdefault(row.cluster, []).append(row)
    names = list(pieces)
    order = generator(0, "which-metric", name).permutation(len(names))
    found: list[Record] = []
    seen: set[str] = set()
    for place in order:
        if len(found) >= answers:
            break
        piece = pieces[names[place]]
        first = piece[0].question
        question = f"{first} ({place})" if first in seen else first
        seen.add(first)
        same = [row for row in piece if row.question == first]
        found += [
            {
                "id": f"{name}-{place}-{number}",
                "question": question,
                "response": row.response,
                "label": row.label,
                **{key: value for key, value in row.fields.items() if value is not None},
            }
            for number, row in enumerate(same)
        ]
    return found
