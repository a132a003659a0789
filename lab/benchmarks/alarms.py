"""How often ``monitor`` raises a false alarm in a year, and how soon it tells a change.

    python -m lab.benchmarks.alarms --out FILE            # some ten minutes; goes on where it
    stopped
    python -m lab.benchmarks.alarms --out FILE --write    # into lab/results/

A year is a baseline of 28 days and 365 more, with a look on each. The rules beside it: ``answer``,
with answers alone as units; a test of each day's share against the baseline's at 1 % (two
proportions, one-sided), as of a sample of fixed size; and a CUSUM of the same z-scores (Page 1954,
allowance 0.5, limit 5). All look for more bad answers than in the baseline.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.results import write_result
from trustassay.statistics import eprocess

Floats = NDArray[np.float64]
Rng = np.random.Generator
BASELINE, YEAR, PROMISE = 28, 365, 0.01
DAYS = BASELINE + YEAR
DAY = np.arange(DAYS)
RULES = ("day", "answer", "test", "cusum")


class Scenario(NamedTuple):
    """What days are like without a change: levels of shape (years, figures, days), answers a day.

    promised: whether the promise of ``day`` covers it.
    """

    name: str
    levels: Callable[[Rng, int, int], Floats]
    answers: Floats
    figures: int = 1
    promised: bool = True


def steady(level: float = 0.1) -> Callable[[Rng, int, int], Floats]:
    return lambda _, years, figures: np.full((years, figures, DAYS), level)


def many(_: Rng, years: int, figures: int) -> Floats:
    return np.broadcast_to(np.linspace(0.02, 0.3, figures)[:, None], (years, figures, DAYS))


def weekly(rng: Rng, years: int, figures: int) -> Floats:
    """Each weekday has a level of its own, within 3 points of the figure's."""
    own = rng.uniform(-0.03, 0.03, (years, figures, 7))[..., DAY % 7]
    return np.clip(many(rng, years, figures) + own, 0.005, 1)


def wobbling(draw: Callable[[Rng, tuple[int, ...]], Floats]) -> Callable[[Rng, int, int], Floats]:
    """Each day moves the log-odds of 10 %."""

    def levels(rng: Rng, years: int, figures: int) -> Floats:
        odds = math.log(0.1 / 0.9) + draw(rng, (years, figures, DAYS))
        return np.asarray(1 / (1 + np.exp(-odds)))

    return levels


def following(rho: float, spread: float) -> Callable[[Rng, tuple[int, ...]], Floats]:
    """Days that resemble the day before."""

    def draw(rng: Rng, shape: tuple[int, ...]) -> Floats:
        found = rng.normal(0, spread, shape)
        for i in range(1, shape[-1]):
            found[..., i] = rho * found[..., i - 1] + math.sqrt(1 - rho**2) * found[..., i]
        return found

    return draw


def yearly(_: Rng, years: int, figures: int) -> Floats:
    return np.broadcast_to(0.1 + 0.02 * np.sin(2 * np.pi * DAY / 365), (years, figures, DAYS))


EQUAL = np.full(DAYS, 1000.0)
SCENARIOS = (
    Scenario("steady", steady(), EQUAL),
    Scenario("20 figures", many, EQUAL, 20),
    Scenario("weekly season", weekly, EQUAL),
    Scenario("weekly season, 20 figures", weekly, EQUAL, 20),
    Scenario("rare: 1 % of 100 a day", steady(0.01), np.full(DAYS, 100.0)),
    Scenario("a tenth of the answers at weekends", steady(), np.where(DAY % 7 < 5, 1000.0, 100.0)),
    Scenario("days differ by 1.8 points", wobbling(lambda r, s: r.normal(0, 0.2, s)), EQUAL),
    Scenario(
        "days differ, some a lot",
        wobbling(lambda r, s: 0.12 * r.standard_t(3, s)),
        EQUAL,
        promised=False,
    ),
    Scenario(
        "days resemble the last, 0.3", wobbling(following(0.3, 0.2)), EQUAL, 1, promised=False
    ),
    Scenario(
        "days resemble the last, 0.7", wobbling(following(0.7, 0.2)), EQUAL, 1, promised=False
    ),
    Scenario("yearly season of 2 points", yearly, EQUAL, 1, promised=False),
)


def z_scores(s: Floats, n: Floats) -> Floats:
    """Return the z of each day's share against the baseline's, shape (..., YEAR)."""
    s0, n0 = s[..., :BASELINE].sum(-1, keepdims=True), n[..., :BASELINE].sum(-1, keepdims=True)
    s, n = s[..., BASELINE:], n[..., BASELINE:]
    pooled = (s + s0) / (n + n0)
    error = np.sqrt(np.maximum(pooled * (1 - pooled), 1e-9) * (1 / n + 1 / n0))
    return np.asarray((s / n - s0 / n0) / error)


def at_own_level(s: Floats, n: Floats) -> Floats:
    """Return log E with the baseline's own level alone in place of the least over all levels."""
    tried, eprocess.LEVELS = eprocess.LEVELS, np.zeros(1)
    try:
        return eprocess.answers_evidence(s, n, BASELINE)
    finally:
        eprocess.LEVELS = tried


def alarms(s: Floats, n: Floats, figures: int = 1) -> dict[str, Floats]:
    """Return the day of the first alarm of each rule, from 0 behind the baseline; inf if none.

    Args:
        s, n: shape (rows, DAYS). figures: that share the promise.
    """
    needed = math.log(figures / PROMISE)
    logs = at_own_level(s, n)
    rows = np.flatnonzero((logs >= needed).any(axis=-1))  # elsewhere the least is below it, too
    for part in np.array_split(rows, len(rows) // 500 + 1):
        logs[part] = eprocess.answers_evidence(s[part], n[part], BASELINE)
    by_days = np.full(len(s), np.inf)
    for day in range(YEAR):
        rows = np.flatnonzero((logs[:, day] >= needed) & np.isinf(by_days))
        end = BASELINE + day + 1
        for part in np.array_split(rows, len(rows) // 500 + 1):
            starts = eprocess.starts_evidence(s[part, :end], n[part, :end], DAY[:end] % 7, BASELINE)
            over = np.logaddexp.reduce(starts, axis=-1) + eprocess.LOG_DAY_SHARE >= needed
            by_days[part[over]] = day
    z, total = z_scores(s, n), np.zeros(len(s))
    sums = np.empty(z.shape)
    for day in range(YEAR):
        total = np.maximum(total + z[:, day] - 0.5, 0)
        sums[:, day] = total
    found = {"answer": logs >= needed, "test": z >= 2.326, "cusum": sums >= 5}
    first = {k: np.where(v.any(-1), v.argmax(-1), np.inf) for k, v in found.items()}
    return {"day": by_days, **first}


def false_alarms(what: Scenario, years: int) -> dict[str, Any]:
    """Return the per cent of years with any alarm, by rule; a fifth of the years where nothing is
    promised."""
    years = years if what.promised else years // 5
    rng = np.random.default_rng([11, SCENARIOS.index(what)])
    levels = what.levels(rng, years, what.figures).reshape(-1, DAYS)
    n = np.broadcast_to(what.answers, levels.shape)
    s = rng.binomial(n.astype(np.int64), levels).astype(np.float64)
    found = alarms(s, n, what.figures)
    told = {k: np.isfinite(v).reshape(years, what.figures).any(-1).mean() for k, v in found.items()}
    shares = {rule: round(100 * float(told[rule]), 1) for rule in RULES}
    return {"promised": what.promised, "years": years, **shares}


def delay(answers: int, rise: float, wobble: float, years: int) -> dict[str, Any]:
    """Return days until a rise from 20 % is told: the median, and the share within 90 days, of
    years without an earlier alarm; and how often the interval of its day holds."""
    rng = np.random.default_rng([12, answers, int(100 * rise), int(100 * wobble)])
    began = rng.integers(30, 200, years)
    after = DAY[:YEAR] >= began[:, None]
    levels = np.full((years, DAYS), 0.2)
    levels[:, BASELINE:] += rise * after
    odds = np.log(levels / (1 - levels)) + rng.normal(0, wobble, levels.shape)
    s = rng.binomial(answers, 1 / (1 + np.exp(-odds))).astype(np.float64)
    n = np.full(s.shape, float(answers))
    found: dict[str, Any] = {"years": years}
    first = alarms(s, n)
    for rule in RULES:
        late = first[rule] - began + 1
        late = late[first[rule] >= began]
        if not len(late):
            late = np.array([np.inf])
        median = float(np.median(late))
        found[rule] = median if math.isfinite(median) else "none"
        found[f"{rule}, false before"] = round(100 * float((first[rule] < began).mean()), 1)
        found[f"{rule}, within 90 days"] = round(100 * float((late <= 90).mean()), 1)
    held, width = [], []
    for i in np.flatnonzero(np.isfinite(first["day"]) & (first["day"] >= began)):
        end = BASELINE + int(first["day"][i]) + 1
        starts = eprocess.starts_evidence(s[i, :end], n[i, :end], DAY[:end] % 7, BASELINE)
        _, low, high = eprocess.change_day(starts)
        held.append(low <= began[i] <= high)
        width.append(high - low + 1)
    if held:
        found["interval holds"] = round(100 * float(np.mean(held)), 1)
        found["interval days"] = float(np.median(width))
    return found


def probes(moved: int, flips: float, years: int, count: int = 50) -> dict[str, Any]:
    """Return the per cent of years with an alarm, and the median days until one, of probes with
    verdicts that flip with this probability a day; from the second day on some are all turned."""
    rng = np.random.default_rng([13, moved, int(100 * flips)])
    usual = rng.random((years, 1, count)) < 0.7
    values = (usual ^ (rng.random((years, YEAR + 1, count)) < flips)).astype(np.float64)
    values[:, 1:, :moved] = 0.0
    apart = values[:, 1:] - values[:, :1]
    logs = np.array([[eprocess.probe_evidence(day) for day in year] for year in apart])
    over = np.logaddexp.accumulate(logs, axis=1) + eprocess.LOG_DAY_SHARE >= math.log(1 / PROMISE)
    first = np.where(over.any(axis=1), over.argmax(axis=1) + 1, np.inf)
    median = float(np.median(first))
    told = round(100 * float(np.isfinite(first).mean()), 1)
    return {"years": years, "alarms": told, "days": median if math.isfinite(median) else "none"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--years", type=int, default=1000)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    lines = args.out.read_text().splitlines() if args.out.exists() else []
    done: dict[str, dict[str, Any]] = {one["name"]: one for one in map(json.loads, lines)}

    def row(name: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if name not in done:
            done[name] = {"name": name, **measure()}
            with args.out.open("a") as file:
                file.write(json.dumps(done[name]) + "\n")
        print(done[name], flush=True)
        return done[name]

    false = [row(one.name, partial(false_alarms, one, args.years)) for one in SCENARIOS]
    delays = [
        row(
            f"{answers}, {rise:.0%}, {wobble}",
            partial(delay, answers, rise, wobble, args.years // 10),
        )
        for wobble in (0.0, 0.1)
        for answers in (100, 1000, 10_000)
        for rise in (0.02, 0.05, 0.1)
    ]
    drift = [
        row(
            f"{moved} of 50 probes, {flips:.0%} flip",
            partial(probes, moved, flips, args.years // scale),
        )
        for moved, scale in ((0, 1), (10, 10), (20, 10), (30, 10))
        for flips in (0.0, 0.1)
    ]
    if args.write:
        data = "simulated years of daily shares (lab/benchmarks/alarms.py)"
        command = f"python -m lab.benchmarks.alarms --years {args.years}"
        write_result(
            "alarms", command, data, {"false_alarms": false, "delays": delays, "probes": drift}
        )


if __name__ == "__main__":
    main()
