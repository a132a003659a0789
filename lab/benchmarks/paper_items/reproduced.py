"""Figures of ``papers reproduce`` computed again, from the texts, labels and replies of its runs.

What the metrics gave for single answers (a verdict, a likeness, a level) is read from the files of
the run; each figure that a table makes of them is computed here, and compared with what is printed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from lab.benchmarks.paper_items.fewl_by_hand import equation_1
from lab.benchmarks.paper_items.running import Bench, Json, ValuePair, numbers_of
from lab.benchmarks.paper_items.sets import harmonic_mean
from trustassay.backends import resolve


def folder_of_run(bench: Bench) -> str:
    """Return the folder that the command wrote, relative to the item's."""
    (folder,) = (bench.folder / "trustassay-runs").iterdir()
    return str(folder.relative_to(bench.folder))


def row_below(text: str, heading: str, label: str) -> list[float]:
    """Return the numbers of the first row with a label below a heading; LookupError if none."""
    for line in text.partition(heading)[2].splitlines():
        if line.strip().startswith(f"{label} "):
            return numbers_of(line.strip().removeprefix(label))
    raise LookupError(f"no row {label!r} below {heading!r}")


def compare_trustscore(bench: Bench, table_3: dict[tuple[str, str], float]) -> Iterator[ValuePair]:
    """Trust_OV by the paper's table, its correlation with the labels, and its cells."""
    run = folder_of_run(bench)
    consistency, facts = (bench.assessments(f"{run}/{name}") for name in
                          ("consistency", "factcheck"))  # fmt: skip
    labels = {row["id"]: row["label"] for row in bench.read(f"{run}/factcheck/samples.jsonl")}
    cells = {name: (consistency[name]["verdict"], facts[name]["verdict"]) for name in labels}
    signs = {"support": 1, "neutral": 0, "contradict": -1}
    for title, scores in {
        "Trust_FC": [signs[cells[name][1]] for name in labels],
        "Trust_OV": [table_3[cells[name]] for name in labels],
    }.items():
        r = float(np.corrcoef(np.array(scores), list(labels.values()))[0, 1])
        printed = row_below(bench.terminal, "Table 1: Pearson", title)
        yield ValuePair(f"r of {title}", r, printed[0], tolerance=6e-4)
    for cell, score in table_3.items():
        of_cell = [label for name, label in labels.items() if cells[name] == cell]
        title = ", ".join(cell)
        numbers = row_below(bench.terminal, "Table 3: the scoring", title)
        yield ValuePair(title, [score, len(of_cell)], numbers[:2])
        if of_cell:
            right = 100 * float(np.mean(of_cell))
            yield ValuePair(f"{title}: right, %", right, numbers[2], tolerance=0.051)


def compare_harmonicity(bench: Bench) -> Iterator[ValuePair]:
    """Gamma of each recorded answer by the embedder's vectors, its mean, and the fit of labels."""
    folder = f"{folder_of_run(bench)}/answers-1"
    embedder, gammas = cast(Any, resolve.embedder("embedded")), []
    for row in bench.assessments(folder).values():
        first, *others = row["evidence"]
        texts = [first["original"], *(one["answer"] for one in others)]
        vectors = np.asarray(embedder.vectors(texts), dtype=float)
        total = vectors[1:].sum(axis=0)
        cosine = vectors[0] @ total / np.linalg.norm(vectors[0]) / np.linalg.norm(total)
        gammas.append(float(np.sqrt(max(0.0, 1 - cosine**2))))
    labels = [row["label"] for row in bench.read(f"{folder}/samples.jsonl")]
    below = "Tables 8 to 10"
    mean = row_below(bench.terminal, below, "⟨γ⟩:")[0]
    yield ValuePair("mean gamma", float(np.mean(gammas)), mean, tolerance=6e-4)
    rated = row_below(bench.terminal, below, "⟨R⟩:")[0]
    yield ValuePair("mean label", float(np.mean(labels)), rated, tolerance=6e-3)
    low = row_below(bench.terminal, below, "γ<.05, %:")[0]
    share = 100 * float(np.mean(np.array(gammas) < 0.05))
    yield ValuePair("gamma below .05, %", share, low, tolerance=0.051)
    fit = row_below(bench.terminal, "Figure 1: linear fits", "Qwen2.5-Coder-1.5B-Instruct")
    slope, intercept = map(float, np.polyfit(gammas, labels, 1))
    yield ValuePair("m and b", [slope, intercept], [fit[0], fit[3]], tolerance=6e-3)


def compare_grounding(bench: Bench, rules: str) -> Iterator[ValuePair]:
    """Counts, shares and means of all answers by one profile, from what was counted of each."""
    rows = bench.assessments(f"{folder_of_run(bench)}/{rules}-cm").values()
    parts = [row["parts"] for row in rows]
    answered = [part for part in parts if part["answered"]]
    answerable = [part for part in parts if part["answerable"]]
    both = [part for part in answered if part["answerable"]]
    silent = [part for part in parts if not part["answered"] and not part["answerable"]]

    def percent(count: float, total: float) -> float:
        return 100 * count / total

    def mean(over: Sequence[Json], part: str, whole: str) -> float:
        return 100 * float(np.mean([one[part] / one[whole] if one[whole] else 0 for one in over]))

    refused = len(parts) - len(answered)
    reject = percent(len(silent), len(parts) - len(answerable)), percent(len(silent), refused)
    answer = percent(len(both), len(answerable)), percent(len(both), len(answered))
    supported = 100 * sum(one["supported_hits"] / one["golds"] for one in both)
    claims = harmonic_mean(supported / len(answered), supported / len(answerable))
    # trust_eval leaves a blank response out of the figures of citations.
    with_text = [part for part in answered if rules == "default" or not part["blank"]]
    cited = harmonic_mean(mean(with_text, "supported_statements", "statements"),
                          mean(with_text, "precise_citations", "citations"))  # fmt: skip
    macro = (harmonic_mean(*reject) + harmonic_mean(*answer)) / 2
    expected = {
        "answered_num": len(answered),
        "answerable_num": len(answerable),
        "overlapped_num": len(both),
        "reject_rec": reject[0],
        "reject_prec": reject[1],
        "answerable_rec": answer[0],
        "answerable_prec": answer[1],
        "macro_f1": macro,
        "regular_claims_nli": mean(parts, "hits", "golds"),
        "calib_claims_nli_f1": claims,
        "answered_citation_f1": cited,
        "trust_score": (macro + claims + cited) / 3,
    }
    for key, value in expected.items():
        printed = row_below(bench.terminal, f"The 28 figures, profile={rules}", key)[0]
        yield ValuePair(f"{key} ({rules})", value, printed, tolerance=0.051)


def compare_levels(bench: Bench, rubric: str) -> Iterator[ValuePair]:
    """Matched, lower and higher by most votes, and the mean deviation, from the single votes."""
    folder = f"{folder_of_run(bench)}/{rubric}"
    expected = {
        row["id"]: int(row["expected"][rubric]) for row in bench.read(f"{folder}/samples.jsonl")
    }
    votes = {
        name: [int(vote["level"]) for vote in row["evidence"] if vote.get("level")]
        for name, row in bench.assessments(folder).items()
    }
    signs = [
        int(np.sign(max(sorted(set(levels)), key=levels.count) - expected[name]))
        for name, levels in votes.items()
    ]
    label = f"{rubric}, majority of 10 runs"
    printed = row_below(bench.terminal, "Graph 1: the judge", label)
    # A row: answers, then three counts, each with the number of answers and two bounds.
    yield ValuePair(f"{rubric}: matched, lower, higher", [signs.count(n) for n in (0, -1, 1)],
                    printed[1:12:4])  # fmt: skip
    deviations = [float(np.std(levels, ddof=1)) for levels in votes.values()]
    spread = row_below(bench.terminal, "LLM Consistency", rubric)
    yield ValuePair(f"{rubric}: mean deviation", float(np.mean(deviations)), spread[1],
                    tolerance=6e-4)  # fmt: skip


def compare_pairs(bench: Bench) -> Iterator[ValuePair]:
    """Pairs that one reference tells apart, with and without the penalty, and by length."""
    folder = f"{folder_of_run(bench)}/chale/2-references/1-nearest"
    assessed = bench.assessments(folder)
    answers_of: dict[str, dict[str, Json]] = defaultdict(dict)
    for row in bench.read(f"{folder}/samples.jsonl"):
        answers_of[row["question"]][row["kind"]] = row

    def find_reference(row: Json) -> Json:
        references: list[Json] = assessed[row["id"]]["evidence"]
        (reference,) = (one for one in references if "reference" in one)
        return reference

    columns: dict[str, list[float]] = defaultdict(list)
    for kind in ("half-hallu", "hallu"):
        pairs = [(one["right"], one[kind]) for one in answers_of.values() if kind in one]
        likeness = [tuple(find_reference(row)["similarity"] for row in pair) for pair in pairs]
        scores = [
            tuple(
                equation_1(
                    [find_reference(row)["similarity"]], [1], [find_reference(row)["penalty"]]
                )
                for row in pair
            )
            for pair in pairs
        ]
        lengths = [tuple(-len(row["response"]) for row in pair) for pair in pairs]
        for label, values in {
            "single + no penalty": likeness,
            "single + penalty": scores,
            "length: the shorter (not in the paper)": lengths,
        }.items():
            columns[label].append(
                100 * float(np.mean([first > second for first, second in values]))
            )
    heading = (
        "Table 1: non-hallucinated answers that score higher, in %; references: "
        "Qwen2.5-Coder-0.5B-Instruct"
    )
    for label, expected in columns.items():
        numbers = row_below(bench.terminal, heading, label)
        # A cell has the share and two bounds; that of the length its ties, too.
        step = len(numbers) // 2
        yield ValuePair(label, expected, numbers[::step], tolerance=0.051)
