"""How well gamma tells erratic answers from stable ones, on a model whose sensitivity is known.

    python -m lab.benchmarks.sensitivity                  # 200 questions, about two minutes

The model answers half of the questions stably: of these, half word for word, and half in one of
five wordings that say the same. To the other half it is erratic: a perturbed prompt gets another
answer with a probability of 0.1, 0.2, ... 1 (ten questions each), drawn by the prompt's hash. All
names are invented. Perturbations are the paper's; embedder and entailer are the embedded ones.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay import score
from trustassay.backends.resolve import embedder, entailer
from trustassay.core.capabilities import BatchLimits
from trustassay.metrics.harmonicity import Harmonicity, SemanticHarmonicity
from trustassay.metrics.harmonicity.asking import PAPER_BOUND
from trustassay.statistics.resampling import percentile_interval

Floats = NDArray[np.float64]
KINDS = (
    (
        "What is the capital of {x}?",
        "The capital of {x} is {y}.",
        "{y} is the capital of {x}.",
        "{x}'s capital is {y}.",
        "It is {y}.",
        "The capital city of {x} is {y}.",
    ),
    (
        "Who wrote the novel {x}?",
        "The novel {x} was written by {y}.",
        "{y} wrote the novel {x}.",
        "{x} is a novel by {y}.",
        "It was written by {y}.",
        "The author of the novel {x} is {y}.",
    ),
    (
        "Which river flows through the town of {x}?",
        "The river {y} flows through {x}.",
        "{x} lies on the river {y}.",
        "It is the river {y}.",
        "The town of {x} is crossed by the river {y}.",
        "Through {x} flows the {y}.",
    ),
    (
        "Who invented the {x}?",
        "The {x} was invented by {y}.",
        "{y} invented the {x}.",
        "The inventor of the {x} was {y}.",
        "It was invented by {y}.",
        "The {x} is an invention of {y}.",
    ),
)
SYLLABLES = "ba ce do fu gri ha lo mi nar pel quo ra sti tor ula vem wyn xa yor zin".split()


class Item(NamedTuple):
    """A question, its right answer, and how the model behaves when it is perturbed."""

    question: str
    wordings: Sequence[str]
    wrong: Sequence[str]
    severity: float
    rephrases: bool


def items(n: int, rng: np.random.Generator) -> list[Item]:
    """Return ``n`` questions: a quarter literal, a quarter rephrased, half erratic."""

    def name() -> str:
        return "".join(rng.choice(SYLLABLES, 3)).capitalize()

    found = []
    for i in range(n):
        question, *wordings = KINDS[i // 2 % len(KINDS)]
        x, y = name(), name()
        erratic = i % 2 == 1
        found.append(
            Item(
                question.format(x=x),
                [wording.format(x=x, y=y) for wording in wordings],
                [wordings[0].format(x=x, y=name()) for _ in range(5)],
                (i // 2 % 10 + 1) / 10 if erratic else 0.0,
                rephrases=not erratic and i // 2 % 2 == 1,
            )
        )
    return found


class Model:
    """Answers as the items say; what it draws follows from the prompt alone."""

    name, shared = "known", False

    def __init__(self, known: Sequence[Item]) -> None:
        self._items = {item.question: item for item in known}

    async def reply(self, request: Any) -> Any:
        """Answer one request."""
        from trustassay.core.capabilities import Reply

        text = request.messages[-1].content
        item = self._items[re.sub(r"[\x00-\x1f]+$", "", text)]
        return Reply(self._answer(item, text), "stop", len(text), 1)

    def _answer(self, item: Item, text: str) -> str:
        if text == item.question:
            return item.wordings[0]
        draw, which = np.random.default_rng(
            int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        ).random(2)
        if item.rephrases:
            return item.wordings[int(which * len(item.wordings))]
        return (
            item.wrong[int(which * len(item.wrong))] if draw < item.severity else item.wordings[0]
        )


class Kept:
    """A backend that computes nothing twice, in all runs."""

    stored, limits = False, BatchLimits()

    def __init__(self, backend: Any, method: str) -> None:
        self.name = backend.name
        self._compute, self._known = getattr(backend, method), dict[Any, Any]()
        setattr(self, method, self._looked_up)

    def _looked_up(self, asked: Sequence[Any]) -> Any:
        new = [key for key in dict.fromkeys(asked) if key not in self._known]
        if new:
            self._known |= zip(new, self._compute(new), strict=True)
        return np.stack([self._known[key] for key in asked])


class Found(NamedTuple):
    """The scores of every question, and the perturbed prompts asked; shape (questions,) each."""

    scores: Mapping[str, Floats]
    asked: Floats


class Bench:
    """The questions, and the models that every run shares."""

    def __init__(self, n: int) -> None:
        self.items = items(n, np.random.default_rng(0))
        self.erratic = np.array([item.severity > 0 for item in self.items])
        self._model = Model(self.items)
        self._backends: dict[str, Any] = {
            "embedder": Kept(embedder("embedded"), "vectors"),
            "entailer": Kept(entailer("embedded"), "scores"),
        }

    def run(self, *metrics: Any) -> Found:
        """Score all questions."""
        samples = [{"id": str(i), "question": item.question} for i, item in enumerate(self.items)]
        both = any(isinstance(metric, SemanticHarmonicity) for metric in metrics)
        used = {name: one for name, one in self._backends.items() if both or name == "embedder"}
        run = score(samples, metrics=metrics, model=self._model, cache=None, **used)
        scores: dict[str, list[float]] = {}
        asked = []
        for found in run.assessments:
            if found.score is None:
                raise SystemExit(f"{found.id}: {found.error}")
            scores.setdefault(found.metric, []).append(found.score)
            if found.metric == "harmonicity":
                scores.setdefault("pairwise_distance", []).append(found.parts["pairwise_distance"])
                asked.append(found.parts["perturbations"])
        return Found({key: np.array(values) for key, values in scores.items()}, np.array(asked))

    def auroc(self, scores: Floats, *, literal: bool = False) -> tuple[float, tuple[float, float]]:
        """Return the AUROC for erratic questions, ties counting half, with its 95% interval.

        The interval is the percentile bootstrap's over questions, erratic and stable ones apart.
        ``literal`` leaves out the stable questions that are rephrased.
        """
        stable = ~self.erratic
        if literal:
            stable = stable & ~np.array([item.rephrases for item in self.items])
        difference = scores[self.erratic][:, None] - scores[stable][None, :]
        wins = (difference > 0) + 0.5 * (difference == 0)
        rng = np.random.default_rng(1)
        rows, columns = (rng.multinomial(n, np.full(n, 1 / n), size=2000) for n in wins.shape)
        resampled = np.einsum("bi,ij,bj->b", rows, wins, columns, optimize=True) / wins.size
        interval = percentile_interval(resampled)
        assert interval
        return float(wins.mean()), interval

    def most(self, n: int) -> float:
        """Return the AUROC of a score that errs in nothing but what ``n`` prompts cannot show."""
        missed = [(1 - item.severity) ** n for item in self.items if item.severity]
        return 1 - float(np.mean(missed)) / 2


def shown(found: tuple[float, tuple[float, float]]) -> str:
    value, (low, high) = found
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def compared(bench: Bench) -> None:
    """Print the AUROC of the three scores for fixed numbers of perturbations."""
    names = ("harmonicity", "pairwise_distance", "semantic_harmonicity")
    for literal in (True, False):
        print(f"\n{'stable answers repeated word for word' if literal else 'all questions'}\n")
        print("| N | gamma | pairwise_distance | semantic_harmonicity | the most that N allows |")
        print("| --- | --- | --- | --- | --- |")
        for n in (1, 3, 10, 30):
            found = bench.run(Harmonicity(perturbations=n), SemanticHarmonicity(perturbations=n))
            cells = [shown(bench.auroc(found.scores[name], literal=literal)) for name in names]
            print(f"| {n} | {' | '.join(cells)} | {bench.most(n):.3f} |", flush=True)


def adaptive(bench: Bench) -> None:
    """Print what the adaptive modes ask, and how well they do, beside fixed numbers.

    Calls saved are those of as many stable as erratic questions, against ``perturbations`` for
    each; the error is that of gamma to gamma of 100 perturbations, on average.
    """
    literal = np.array([not item.rephrases for item in bench.items])
    reference = bench.run(Harmonicity(perturbations=100)).scores["harmonicity"]
    print("\nadaptive modes; erratic and literal stable questions unless it says all\n")
    print("| options | asked, stable | asked, erratic | calls saved | AUROC | all | error |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    rows: list[dict[str, Any]] = [{"perturbations": n} for n in (3, 5, 10, 30)]
    rows += [{"perturbations": n, "decided": "yes"} for n in (10, 30)]
    rows += [{**one, "stable_below": PAPER_BOUND} for one in rows[-2:]]
    rows += [
        {"perturbations": 30, "precision": precision, "first": first}
        for first in (3, 5)
        for precision in (0.02, 0.1)
    ]
    for options in rows:
        text = ",".join(f"{name}={value}" for name, value in options.items())
        found = bench.run(f"harmonicity:{text}")
        gamma = found.scores["harmonicity"]
        stable = found.asked[literal & ~bench.erratic].mean()
        erratic = found.asked[bench.erratic].mean()
        saved = 1 - (1 + (stable + erratic) / 2) / (1 + options["perturbations"])
        cells = (
            text.replace(",", ", "),
            f"{stable:.1f}",
            f"{erratic:.1f}",
            f"{100 * saved:.0f}%",
            shown(bench.auroc(gamma, literal=True)),
            shown(bench.auroc(gamma)),
            f"{np.abs(gamma - reference)[literal].mean():.3f}",
        )
        print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--questions", type=int, default=200)
    args = parser.parse_args()
    bench = Bench(args.questions)
    compared(bench)
    adaptive(bench)


if __name__ == "__main__":
    main()
