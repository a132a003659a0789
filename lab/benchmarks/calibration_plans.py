"""How often the promises of ``label --for calibrate`` are broken, and how much they accept.

Answers are drawn from the generators of docs/people/calibrate.md: scores of right and wrong answers
are normal, a distance apart. The risk above a threshold is computed exactly. A plan is broken if the
promise of any of its looks is. Run ``python -m lab.benchmarks.calibration_plans [PLANS]``.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from statistics import NormalDist

import numpy as np

from trustassay.people.label import calibration_plan as plans
from trustassay.people.label.plan import LabelPlan, PlanBatch
from trustassay.statistics.warranty import walk

NORMAL = NormalDist()
GENERATORS = {"good": (0.2, 0.85), "middle": (0.3, 0.8), "flat": (None, 0.5)}
"""The share of wrong answers and the AUROC; flat is just above the promised share."""
CONFIDENCE = 0.95


def measure(cell: tuple[str, float, tuple[int, ...], int]) -> tuple[float, ...]:
    """Return broken and accepted of the plan, then of the plain walk, at the last look."""
    name, alpha, looks, repeats = cell
    share, auroc = GENERATORS[name]
    share = share or alpha * 1.0001
    d = np.sqrt(2) * NORMAL.inv_cdf(auroc)
    rng = np.random.default_rng([int(1000 * alpha), len(looks), looks[0], len(name)])

    def tails(above: float) -> tuple[float, float]:
        """Return the shares of all answers that are right, and wrong, above a threshold."""
        right, wrong = 1 - NORMAL.cdf(above - d / 2), 1 - NORMAL.cdf(above + d / 2)
        return (1 - share) * right, share * wrong

    low, high = -9.0, 9.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(tails(middle)) > 0.5 else (low, middle)
    design = plans.CalibrationDesign(
        alpha, CONFIDENCE, 0.5, False, looks, 0.5, 10**6, 10**6, low
    )  # fmt: skip

    def judge(above: float) -> tuple[bool, float]:
        right, wrong = tails(above)
        accepted = right + wrong
        return accepted > 0 and wrong > alpha * accepted, accepted

    result = np.zeros(4)
    for _ in range(repeats):
        n = 3 * looks[-1]
        wrong = rng.random(n) < share
        scores = rng.normal(size=n) + d / 2 - d * wrong
        keys = [(str(i), "") for i in range(n)]
        is_wrong, score_of = (
            dict(zip(keys, wrong, strict=True)),
            dict(zip(keys, scores, strict=True)),
        )
        order = plans.PlanOrder(
            [k for k in keys if score_of[k] > low], [k for k in keys if score_of[k] <= low], 0.5, low
        )  # fmt: skip
        draws, labels, broken, accepted = [], {}, False, 0.0
        while batch := plans.draw_next(design, order, draws, labels):
            draws += batch
            labels |= {draw.answers[0]: bool(is_wrong[draw.answers[0]]) for draw in batch}
            start = {"purpose": plans.CALIBRATE, **design.to_dict()}
            look = plans.last_look(LabelPlan("", start, [PlanBatch([], draws)]), labels)
            if look is None:
                continue
            threshold = walk(
                [score_of[k] for k in look.answers],
                [labels[k] for k in look.answers],
                alpha=alpha,
                delta=look.delta,
            )
            accepted = 0.0
            if threshold:
                is_broken, accepted = judge(max(threshold.above, look.above))
                broken |= is_broken
        result[:2] += broken, accepted
        broken, accepted = False, 0.0
        for labels_of_look in looks:
            threshold = walk(
                scores[:labels_of_look],
                wrong[:labels_of_look],
                alpha=alpha,
                delta=(1 - CONFIDENCE) / len(looks),
            )
            accepted = 0.0
            if threshold:
                is_broken, accepted = judge(threshold.above)
                broken |= is_broken
        result[2:] += broken, accepted
    return tuple(result / repeats)


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
