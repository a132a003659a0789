"""FEWL's forms side by side on data with labels: ``docs/fewl.md`` says what came of it.

    python -m benchmarks.fewl trustscore [--work FOLDER] [--limit N]

``trustscore``, ``chale``, ``truthfulqa``, ``halueval`` are data sets, found by TRUSTASSAY_SHARED,
else ../shared; ``speed`` and ``neighbours`` measure the seconds of made-up ones. Runs are kept in
``--work``: a second start goes on where the first stopped.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import resource
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trustassay.api import Run, rescore, score
from trustassay.backends.embedded import EmbeddedEmbedder
from trustassay.metrics.fewl import Fewl
from trustassay.metrics.fewl.neighbours import nearest
from trustassay.statistics.bootstrap import percentile_interval
from trustassay.statistics.correlation import auroc
from trustassay.statistics.randomness import generator

SHARED = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")) / "data"
REPLICATES = 1000
Record = dict[str, Any]


class Variant(NamedTuple):
    """One way to score: its name in the tables, the metric, the similarity."""

    name: str
    metric: Fewl
    similarity: str


def published(similarity: str) -> list[Variant]:
    """Return the published forms by one similarity."""
    return [
        Variant("no penalty", Fewl(weights="uniform", penalty="none"), similarity),
        Variant("eq1", Fewl(weights="uniform"), similarity),
        Variant("theory", Fewl(weights="uniform", form="theory"), similarity),
    ]


VARIANTS = [
    *published("cosine"),
    *published("novel"),
    Variant("agreement, no penalty", Fewl(form="agreement", penalty="none"), "novel"),
    Variant("agreement", Fewl(form="agreement"), "novel"),
    Variant("no penalty", Fewl(weights="uniform", penalty="none"), "agreement"),
    Variant("agreement, no penalty", Fewl(form="agreement", penalty="none"), "agreement"),
]


# ---- data ----


def trustscore(limit: int | None) -> list[Record]:
    """Return the answers of three systems; the references of each are the other two."""
    rows = json.loads((SHARED / "trustscore" / "qa_human_check.json").read_text())[:limit]
    systems = ("flan", "llama", "gpt")
    return [
        {
            "id": f"{number}-{one}",
            "question": row["question"],
            "response": row[one]["pred"],
            "model": one,
            "label": int(row[one]["human_eval"]),
            "references": {other: row[other]["pred"] for other in systems if other != one},
            "source": row["source"],
            "number": number,
        }
        for number, row in enumerate(rows)
        for one in systems
    ]


CHALE_REFERENCES = {
    "short": [1.0],
    "half": [0.5] * 5,
    "mixed": [0.1, 0.3, 0.5, 0.7, 0.9],
}


def chale(limit: int | None, kind: str) -> list[Record]:
    """Return three answers to each of the first 940 questions, with stand-ins for references.

    A reference of accuracy p gives the right short answer with that probability, else the short
    answer to the nearest other question.
    """
    path = SHARED / "chale" / "hallucinated_ans_final_filtered.json.gz"
    columns = json.loads(gzip.decompress(path.read_bytes()))
    questions = columns["Question"][: limit or 940]
    vectors = EmbeddedEmbedder().vectors(questions)
    itself = np.arange(len(questions))
    near = nearest(vectors, vectors, 1, max_similarity=0.8, itself=itself).places[:, 0]
    rng = generator(0, "chale", kind)
    found = []
    for number, question in enumerate(questions):
        references = {}
        for place, accuracy in enumerate(CHALE_REFERENCES[kind]):
            right = rng.random() < accuracy or near[number] < 0
            shown = number if right else int(near[number])
            references[f"reference {place + 1}"] = columns["Short_ans"][shown]
        for field, label in (("non-halu", 1), ("mid-halu", 0), ("halu", 0)):
            found.append(
                {
                    "id": f"{number}-{field}",
                    "question": question,
                    "response": columns[field][number],
                    "label": label,
                    "references": references,
                    "number": number,
                    "kind": field,
                }
            )
    return found


def truthfulqa(limit: int | None) -> list[Record]:
    """Return the best and the first incorrect answer; the references are four GPT-3 models."""
    answers: dict[int, dict[str, str]] = defaultdict(dict)
    path = SHARED / "truthfulqa-gpt3-answers" / "gpt3_base_answers_annotated.csv"
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            text = row["model_answer"].strip().removeprefix("A:").strip()
            answers[int(row["row"])][row["model"]] = text
    found = []
    path = SHARED / "truthfulqa" / "TruthfulQA_817_original.csv"
    with path.open(newline="", encoding="utf-8-sig") as file:
        for number, row in enumerate(csv.DictReader(file)):
            both = (row["Best Answer"], row["Incorrect Answers"].split(";")[0].strip())
            for kind, text, label in zip(("best", "incorrect"), both, (1, 0), strict=True):
                found.append(
                    {
                        "id": f"{number}-{kind}",
                        "question": row["Question"],
                        "response": text,
                        "label": label,
                        "references": answers[number],
                        "number": number,
                        "kind": kind,
                    }
                )
    return found[: 2 * limit if limit else None]


def halueval(limit: int | None) -> list[Record]:
    """Return the right and the hallucinated answer; the knowledge stands for one reference."""
    text = (SHARED / "halueval" / "qa_data_first1000.json").read_text(encoding="utf-8")
    return [
        {
            "id": f"{number}-{kind}",
            "question": row["question"],
            "response": row[kind],
            "label": label,
            "references": {"knowledge": row["knowledge"]},
            "number": number,
            "kind": kind,
        }
        for number, row in enumerate(map(json.loads, text.splitlines()[:limit]))
        for kind, label in (("right_answer", 1), ("hallucinated_answer", 0))
    ]


# ---- scoring ----


def runs(records: Sequence[Record], work: Path) -> Iterator[tuple[Variant, dict[str, float]]]:
    """Score the records in every way; what was compared once is not compared again."""
    first: dict[str, Path] = {}
    for number, variant in enumerate(VARIANTS):
        folder = work / f"{number:02}"
        options: dict[str, Any] = {"metrics": variant.metric, "out": folder}
        options |= {"similarity": variant.similarity, "progress": True, "report": False}
        run: Run
        if variant.similarity in first:
            run = rescore(first[variant.similarity], **options)
        else:
            first[variant.similarity] = folder
            run = score(records, **options)
        yield variant, {a.id: a.score for a in run.assessments if a.score is not None}


def show(name: str, cells: Sequence[str]) -> None:
    """Print a row."""
    print(f"{name:40}", *(f"{cell:>26}" for cell in cells), flush=True)


def by_system(records: Sequence[Record], work: Path) -> None:
    """Print the AUROC against the label for each system, their mean, and that within sources."""
    systems = sorted({one["model"] for one in records}, key=["flan", "llama", "gpt"].index)
    rules: list[tuple[str, dict[str, float]]] = [
        ("length: the shorter", {one["id"]: -len(one["response"]) for one in records}),
    ]
    show("", [*systems, "mean", "even, odd questions", "within source"])
    for variant, scores in runs(records, work):
        rules.append((f"{variant.name}, {variant.similarity}", scores))
    numbers = np.array(sorted({one["number"] for one in records}))
    sources = {one["number"]: one["source"] for one in records}
    labels = {one["id"]: one["label"] for one in records}

    def measured(scores: Mapping[str, float], chosen: Any) -> list[float]:
        return [
            100
            * (
                auroc(
                    [scores.get(f"{n}-{one}", 0.0) for n in chosen],
                    [labels[f"{n}-{one}"] for n in chosen],
                )
                or 0.5
            )
            for one in systems
        ]

    for name, scores in rules:
        rng = generator(0, "by system")
        drawn = np.array(
            [measured(scores, rng.choice(numbers, len(numbers))) for _ in range(REPLICATES // 5)]
        )
        drawn = np.column_stack([drawn, drawn.mean(axis=1)])
        values = measured(scores, numbers)
        cells = [
            with_interval(value, column)
            for value, column in zip([*values, float(np.mean(values))], drawn.T, strict=True)
        ]
        halves = [np.mean(measured(scores, numbers[numbers % 2 == rest])) for rest in (0, 1)]
        within = [
            measured(scores, [n for n in numbers if sources[n] == source])
            for source in sorted(set(sources.values()))
        ]
        inside = " ".join(f"{value:.1f}" for value in np.mean(within, axis=0))
        show(name, [*cells, " ".join(f"{half:.1f}" for half in halves), inside])


def by_pairs(records: Sequence[Record], work: Path) -> None:
    """Print how often the right answer to a question scores higher than each of the others.

    In square brackets a tie counts half.
    """
    wrong = [kind for kind in dict.fromkeys(r["kind"] for r in records) if kind != _right(records)]
    shorter = {one["id"]: -float(len(one["response"])) for one in records}
    show("", [f"{_right(records)} > {kind}" for kind in wrong])
    show("length: the shorter", _pairs(records, shorter, wrong))
    for variant, scores in runs(records, work):
        show(f"{variant.name}, {variant.similarity}", _pairs(records, scores, wrong))


def _right(records: Sequence[Record]) -> str:
    return next(str(one["kind"]) for one in records if one["label"])


def _pairs(
    records: Sequence[Record], scores: Mapping[str, float], wrong: Sequence[str]
) -> list[str]:
    right = _right(records)
    numbers = sorted({one["number"] for one in records})
    cells = []
    for kind in wrong:
        apart = np.array(
            [scores.get(f"{n}-{right}", 0.0) - scores.get(f"{n}-{kind}", 0.0) for n in numbers]
        )
        won, tied = apart > 0, apart == 0
        rng = generator(0, "by pairs")
        drawn = [100 * rng.choice(won, len(won)).mean() for _ in range(REPLICATES)]
        half = 100 * (won + tied / 2).mean()
        cells.append(f"{with_interval(100 * won.mean(), drawn)} [{half:.1f}]")
    return cells


def with_interval(value: float, drawn: Any) -> str:
    """Write a percentage with its bootstrap interval."""
    interval = percentile_interval(drawn)
    assert interval is not None
    return f"{value:.1f} ({interval[0]:.1f}-{interval[1]:.1f})"


# ---- seconds ----


def speed(limit: int | None) -> None:
    """Score made-up questions with 5 references, 25 pairs and 10 neighbours; beside plain loops."""
    n = limit or 1000
    records = [_made_up(number) for number in range(n)]
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        run = score(records, metrics=Fewl(max_similarity=1.0), out=folder, report=False)
        seconds = time.perf_counter() - started
        assert all(one.error is None for one in run.assessments)
    print(f"{n} questions: {seconds:.1f} s, {1000 * seconds / n:.0f} ms each")
    few = records[:5]
    near = nearest_questions(records)
    vectors = EmbeddedEmbedder().vectors

    def alike(first: str, second: str) -> float:
        a, b = vectors([first]), vectors([second])
        return float(a[0] @ b[0])

    started = time.perf_counter()
    for number, one in enumerate(few):
        for name, text in one["references"].items():
            alike(one["response"], text)
            for other in (*one["wrong_answers"], *one["corrected_answers"]):
                alike(text, other)
            for place in near[number]:
                alike(one["response"], records[place]["references"][name])
    plain = (time.perf_counter() - started) / len(few)
    print(f"a plain loop: {1000 * plain:.0f} ms each, {plain * n / seconds:.1f} times as long")


def nearest_questions(records: Sequence[Record]) -> Any:
    """Return the places of ten neighbours of each question."""
    vectors = EmbeddedEmbedder().vectors([one["question"] for one in records])
    return nearest(vectors, vectors, 10, itself=np.arange(len(vectors))).places


def _made_up(number: int) -> Record:
    town = f"town {number}"
    return {
        "id": f"q{number}",
        "question": f"When was the observatory of {town} built?",
        "response": f"The observatory of {town} was built in {1800 + number % 200}.",
        "references": {
            f"reference {i}": f"It was in {1800 + (number + i * (number % 3)) % 200}, in {town}."
            for i in range(5)
        },
        "wrong_answers": [f"It was built in {1300 + i} by the king of {town}." for i in range(25)],
        "corrected_answers": [f"No king of {town} built it in {1300 + i}." for i in range(25)],
    }


def neighbours(limit: int | None) -> None:
    """Find the neighbours of made-up vectors of 384 numbers."""
    n = limit or 100_000
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((n, 384), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    nearest(vectors, vectors, 10, max_similarity=0.8, itself=np.arange(n))
    seconds = time.perf_counter() - started
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{n:,} questions: {seconds:.0f} s; {more:.0f} MB beside their {vectors.nbytes >> 20} MB")


def _chale(kind: str) -> Callable[[int | None, Path], None]:
    return lambda limit, work: by_pairs(chale(limit, kind), work)


SETS: Mapping[str, Callable[[int | None, Path], None]] = {
    "trustscore": lambda limit, work: by_system(trustscore(limit), work),
    **{f"chale-{kind}": _chale(kind) for kind in CHALE_REFERENCES},
    "truthfulqa": lambda limit, work: by_pairs(truthfulqa(limit), work),
    "halueval": lambda limit, work: by_pairs(halueval(limit), work),
    "speed": lambda limit, _: speed(limit),
    "neighbours": lambda limit, _: neighbours(limit),
}


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=SETS)
    parser.add_argument("--work", type=Path, help="folder of the runs; default: a temporary one")
    parser.add_argument("--limit", type=int, help="take the first N questions alone")
    parser.add_argument("--only", help="similarities to measure, joined by commas")
    given = parser.parse_args()
    if given.what not in ("speed", "neighbours") and not SHARED.is_dir():
        print(f"no data at {SHARED}; set TRUSTASSAY_SHARED", file=sys.stderr)
        sys.exit(2)
    if given.only:
        wanted = given.only.split(",")
        VARIANTS[:] = [variant for variant in VARIANTS if variant.similarity in wanted]
    with tempfile.TemporaryDirectory() as folder:
        SETS[given.what](given.limit, given.work or Path(folder))


if __name__ == "__main__":
    main()
