"""How often the promises of ``label --for calibrate`` are broken, and how much they accept.

Scores of right and wrong answers are normal, a distance apart, so that the risk above a threshold
is known. A plan is broken if the promise of any look is; accepted is the share at the last one.
Run ``python -m lab.benchmarks.calibration_plans [PLANS]``.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from trustassay.people.label import calibration_plan as plans
from trustassay.people.label.plan import AnswerKey, LabelPlan, PlanBatch, PlannedDraw
from trustassay.statistics.warranty import walk

NORMAL = NormalDist()
GENERATORS = {"good": (0.2, 0.85), "middle": (0.3, 0.8), "flat": (0.0, 0.5)}
"""The share of wrong answers and the AUROC; the share of flat is just above the promised one."""
CONFIDENCE = 0.95


class Setting:
    """A generator of answers, a promised share, and the looks of a plan."""

    def __init__(self, name: str, alpha: float, looks: tuple[int, ...]) -> None:
        share, auroc = GENERATORS[name]
        self.alpha, self.share = alpha, share or alpha * 1.0001
        self.distance = np.sqrt(2) * NORMAL.inv_cdf(auroc)
        middle, high = -9.0, 9.0
        while high - middle > 1e-9:
            half = (middle + high) / 2
            middle, high = (half, high) if sum(self.tails(half)) > 0.5 else (middle, half)
        self.middle = middle
        self.design = plans.CalibrationDesign(
            alpha, CONFIDENCE, 0.5, False, looks, 0.5, 10**6, 10**6, middle
        )

    def tails(self, above: float) -> tuple[float, float]:
        """Return the shares of all answers that are right, and wrong, above a threshold."""
        right, wrong = (1 - NORMAL.cdf(above + side * self.distance / 2) for side in (-1, 1))
        return (1 - self.share) * right, self.share * wrong

    def assess(
        self, scores: ArrayLike, wrong: ArrayLike, delta: float, floor: float
    ) -> tuple[bool, float]:
        """Return whether the promise of these labels is broken, and the share it accepts."""
        threshold = walk(scores, wrong, alpha=self.alpha, delta=delta)
        if threshold is None:
            return False, 0.0
        right, bad = self.tails(max(threshold.above, floor))
        return bad > self.alpha * (right + bad), right + bad

    def simulate(self, rng: np.random.Generator) -> list[float]:
        """Return broken and accepted of a plan, then of the plain walk."""
        looks = self.design.looks
        wrong = rng.random(3 * looks[-1]) < self.share
        scores = rng.normal(size=len(wrong)) + self.distance * (0.5 - wrong)
        keys: list[AnswerKey] = [(str(place), "") for place in range(len(wrong))]
        parts = [[k for k in keys if (scores[int(k[0])] > self.middle) == up] for up in (1, 0)]
        order = plans.PlanOrder(parts[0], parts[1], 0.5, self.middle)
        start = {"purpose": plans.CALIBRATE, **self.design.to_dict()}
        draws: list[PlannedDraw] = []
        labels: dict[AnswerKey, bool] = {}
        results: dict[int, tuple[bool, float]] = {}
        while batch := plans.draw_next(self.design, order, draws, labels):
            draws += batch
            labels |= {d.answers[0]: bool(wrong[int(d.answers[0][0])]) for d in batch}
            look = plans.last_look(LabelPlan(Path(), start, [PlanBatch([], draws)]), labels)
            if look:
                places = [int(key[0]) for key in look.answers]
                results[look.number] = self.assess(
                    scores[places], wrong[places], look.delta, look.above
                )
        delta = (1 - CONFIDENCE) / len(looks)
        plain = [self.assess(scores[:n], wrong[:n], delta, -np.inf) for n in looks]
        return [
            float(value)
            for each in (list(results.values()), plain)
            for value in (any(broken for broken, _ in each), each[-1][1])
        ]


def measure(cell: tuple[str, float, tuple[int, ...], int]) -> list[float]:
    """Return the means of :meth:`Setting.simulate` over many plans."""
    name, alpha, looks, repeats = cell
    setting, rng = Setting(name, alpha, looks), np.random.default_rng(len(name) * looks[-1])
    rows = [setting.simulate(rng) for _ in range(repeats)]
    return [float(mean) for mean in np.mean(rows, axis=0)]


def main() -> None:
    """Print a table."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    cells = [
        (name, alpha, looks, repeats)
        for name in GENERATORS
        for alpha in (0.05, 0.1)
        for looks in ((100,), (200,), (50, 100, 200, 400, 800))
    ]
    print("generator alpha labels looks | plan: broken accepted | plain walk: broken accepted")
    with ProcessPoolExecutor(2) as pool:
        for (name, alpha, looks, _), row in zip(cells, pool.map(measure, cells), strict=True):
            print(name, alpha, looks[-1], len(looks), *(f"{x:.3f}" for x in row), flush=True)


if __name__ == "__main__":
    main()
