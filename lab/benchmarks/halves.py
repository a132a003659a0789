"""Which half failed, as ``rag`` says, compared with people's labels and with known causes.

    TRUSTASSAY_SHARED=... python -m lab.benchmarks.halves --out FOLDER   # goes on where it stopped
    TRUSTASSAY_SHARED=... python -m lab.benchmarks.halves --out FOLDER --write

**People** (RAGChecker's meta-evaluation, 280 pairs of answers with two annotators each): the
correlation of the difference of a figure between two systems' answers with the label, -2 to 2, of
which is better; beside RAGChecker's own figures (claims by Llama-3-70B) for the same pairs, and of
the words and lengths of the answers. All 560 labels count, as in its paper; 95 % bootstrap
intervals draw questions. The set has no passages, so this compares answer and gold answer alone.

**Known causes** (HaluEval: question, knowledge, right and made-up answer): each question has six
answers, whose cause follows from how they were made: with its knowledge among four passages of
other questions, or five of others; and the right answer, the made-up one, a refusal, or one that a
passage of another question gives.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lab.benchmarks.which_metric.sets import lines, shared
from lab.results import write_result
from trustassay import score
from trustassay.core.metric import Assessment
from trustassay.runs.folder import RunFolder
from trustassay.statistics.correlation import weighted_pearson, weighted_spearman
from trustassay.statistics.intervals import mean_interval, unit_mean
from trustassay.statistics.resampling import cluster_weights, generator, resample_interval

Record = dict[str, Any]
Value = Callable[[Record, str], float]
"""A figure of one of the two answers of a pair."""
LABELS = ("correctness", "completeness", "overall")
SYSTEMS = ("model1", "model2")
MEASURES = {"pearson": weighted_pearson, "spearman": weighted_spearman}
OF_RAG = ("claim_precision", "claim_recall", "f1", "order")
OF_WORDS = ("token_precision", "token_recall", "token_f1")
REPLICATES = 2000
PASSAGES = 5
REFUSAL = "The documents do not mention it."
CAUSES = {
    "knowledge, right answer": "right",
    "others, refusal": "retriever",
    "others, answer of a passage": "retriever",
    "others, made-up answer": "both",
    "knowledge, refusal": "generator: not used",
    "knowledge, made-up answer": "generator: used wrongly",
}
"""What a question's six answers are made of, and what is the cause of each."""


def scored(folder: Path, samples: Sequence[Record], metric: str) -> dict[str, Assessment]:
    """Return the assessments of a run, made or finished if need be."""
    if not (folder / "summary.json").exists():
        score(samples, metrics=metric, out=folder, report=False)
    return {one.id: one for one in RunFolder(folder).assessments()}


def pairs_of(most: int) -> list[list[Record]]:
    """Return the comparisons of the first ``most`` pairs in a random order, two of each."""
    found: dict[int, list[Record]] = defaultdict(list)
    for row in lines("ragchecker-human/pairs"):
        found[row["instance_id"]].append(row)
    order = generator(0, "halves").permutation(len(found))
    keys = sorted(found)
    return [found[keys[place]] for place in sorted(order[:most])]


def published() -> dict[int, Record]:
    """Return RAGChecker's figures of both answers of each pair."""
    path = shared() / "ragchecker-human/ragchecker_metrics.json.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return {row["instance_id"]: row for row in json.load(file)}


def people(out: Path, most: int) -> dict[str, Any]:
    """Return the correlations on so many pairs, and those of what needs no entailer on all."""
    every, known = pairs_of(280), published()
    pairs = pairs_of(most)
    by_words = scored(out / "words", _samples(every), "reference:parts=" + "+".join(OF_WORDS))
    by_rag = scored(out / "people", _samples(pairs), "rag")

    def part(found: Mapping[str, Assessment], name: str) -> Value:
        return lambda own, system: found[f"{own['instance_id']}-{system}"].parts.get(name, 0.0)

    plain = {name: part(by_words, name) for name in OF_WORDS}
    plain["words"] = lambda own, system: len(own[system]["response"].split())
    of_rag = {f"rag.{name}": part(by_rag, name) for name in OF_RAG}
    judged = [one for one in by_rag.values() if one.score is not None]
    return {
        "pairs": len(pairs),
        "answers_without_score": len(by_rag) - len(judged),
        "facts_mean": round(float(np.mean([one.parts["facts"] for one in judged])), 2),
        "correlations": correlations(pairs, of_rag | plain, known),
        "all_pairs": correlations(every, plain, known),
    }


def _samples(pairs: Sequence[Sequence[Record]]) -> list[Record]:
    return [
        {
            "id": f"{own['instance_id']}-{system}",
            "question": own["query"],
            "response": own[system]["response"],
            "answers": [[own["gt_answer"]]],
            "documents": [],
        }
        for own, _ in pairs
        for system in SYSTEMS
    ]


def correlations(
    pairs: Sequence[Sequence[Record]], figures: Mapping[str, Value], known: Mapping[int, Record]
) -> dict[str, Any]:
    """Return, for each label, the correlation with the difference of each figure, and by how much
    Spearman's is above that of RAGChecker's own figure for the label.
    """
    clusters = np.repeat(np.arange(len(pairs)), 2)
    weights = np.concatenate([*cluster_weights(clusters, generator(0, "halves"), REPLICATES)])
    result: dict[str, Any] = {}
    for label in LABELS:
        key = f"{label}_label"
        given = np.array([row[key] for pair in pairs for row in pair], float)

        def theirs(one: Record, system: str, key: str = key) -> float:
            return float(known[one["instance_id"]][system]["ragchecker"][key])

        own: dict[str, Value] = {"ragchecker": theirs}
        result[label], drawn = {}, dict[str, Any]()
        for name, value in (own | dict(figures)).items():
            each = [[value(one, system) for system in SYSTEMS] for one, _ in pairs]
            apart = np.repeat(np.diff(np.array(each, float), axis=1)[:, 0], 2)
            row: dict[str, Any] = {}
            for kind, measure in MEASURES.items():
                figure = measure(apart, given)
                drawn[name] = figure(weights)
                middle = float(figure(np.ones((1, len(clusters))))[0])
                interval = _interval(drawn[name], len(pairs))
                row[kind] = {"value": round(middle, 3), "interval": interval}
            if name not in own:
                less = drawn[name] - drawn["ragchecker"]
                row["spearman_less_ragchecker"] = _interval(less, len(pairs))
            result[label][name] = row
    return result


def _interval(drawn: Any, clusters: int) -> list[float] | str:
    found = resample_interval(drawn, clusters)
    return found if isinstance(found, str) else [round(end, 3) for end in found]


def made(questions: int) -> list[Record]:
    """Return six answers to each of so many questions, with the cause of each."""
    path = shared() / "halueval/qa_one-turn_data.json"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rng = generator(0, "halves, causes")
    chosen = rng.permutation(len(rows))
    result = []
    for number, place in enumerate(chosen[:questions].tolist()):
        row = rows[place]
        others = [rows[at] for at in rng.choice(chosen[questions:], PASSAGES, replace=False)]
        passages = [one["knowledge"].strip() for one in others]
        with_own = [*passages]
        with_own[int(rng.integers(PASSAGES))] = row["knowledge"].strip()
        told = passages[0].split(". ")[0].rstrip(".") + "."
        answers = [row["right_answer"], REFUSAL, told, row["hallucinated_answer"], REFUSAL]
        answers.append(row["hallucinated_answer"])
        for kind, answer in zip(CAUSES, answers, strict=True):
            result.append(
                {
                    "id": f"{number}: {kind}",
                    "question": row["question"],
                    "answers": [[row["right_answer"]]],
                    "documents": with_own if kind.startswith("knowledge") else passages,
                    "response": answer,
                }
            )
    return result


def causes(out: Path, questions: int) -> dict[str, Any]:
    """Return the verdicts on answers whose cause is known, and the shares that are right."""
    samples = made(questions)
    found = scored(out / "causes", samples, "rag")
    table: dict[str, Counter[str]] = {kind: Counter() for kind in CAUSES}
    exact, halves, units = [], [], []
    for sample in samples:
        number, kind = sample["id"].split(": ", 1)
        verdict = found[sample["id"]].verdict or "no verdict"
        table[kind][verdict] += 1
        exact.append(verdict == CAUSES[kind])
        units.append(int(number))
        halves.append(_blamed(verdict) == _blamed(CAUSES[kind]))
    by_kind = {
        kind: {"cause": CAUSES[kind], "right": counts[CAUSES[kind]], "verdicts": dict(counts)}
        for kind, counts in table.items()
    }
    retrieved = [
        found[one["id"]].parts["context_recall"] == one["id"].split(": ")[1].startswith("knowledge")
        for one in samples
        if found[one["id"]].score is not None
    ]
    return {
        "questions": questions,
        "answers": len(samples),
        "cause_right": _share(exact, units),
        "half_right": _share(halves, units),
        "passages_right": round(float(np.mean(retrieved)), 3),
        "by_kind": by_kind,
    }


def _blamed(verdict: str) -> tuple[bool, bool]:
    """Return whether the retriever, and whether the generator, is at fault."""
    both = verdict == "both"
    return verdict == "retriever" or both, verdict.startswith("generator") or both


def _share(right: Sequence[bool], units: Sequence[int]) -> dict[str, Any]:
    mean = unit_mean(np.array(right, float), np.array(units))
    return {
        "value": round(float(np.mean(right)), 3),
        "interval": [round(end, 3) for end in mean_interval(*mean)],
    }


def show(found: Mapping[str, Any]) -> None:
    """Print the tables."""
    for title in ("correlations", "all_pairs"):
        print(f"people, {title} (of {found['people']['pairs']} pairs); Pearson and Spearman")
        for label, rows in found["people"][title].items():
            for name, row in rows.items():
                values = [f"{row[kind]['value']:.3f} {row[kind]['interval']}" for kind in MEASURES]
                print(f"  {label:12} {name:20}", *values, row.get("spearman_less_ragchecker", ""))
    own = found["causes"]
    print(f"causes: {own['answers']} answers, cause {own['cause_right']}, half {own['half_right']}")
    for kind, row in own["by_kind"].items():
        print(f"  {kind:28} {row['right']:4}  {row['verdicts']}")


def main() -> None:
    """Measure, print, and with --write keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=280)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    found = {
        "causes": causes(args.out, args.questions),
        "people": people(args.out, args.pairs),
    }
    show(found)
    if args.write:
        write_result(
            "halves",
            f"python -m lab.benchmarks.halves --pairs {args.pairs} --questions {args.questions}",
            "RAGChecker's human preferences; HaluEval QA with known causes; entailer embedded",
            found,
        )


if __name__ == "__main__":
    main()
