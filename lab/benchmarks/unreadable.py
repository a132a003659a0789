"""What replies that cannot be read do to the mean of consistency and TrustScore.

    python -m lab.benchmarks.unreadable

A made model keeps to half of 3,000 answers in every choice, and takes its own answer of the others
in half of the choices; so the true mean of Trust_BC is .5 + .5 * .5^10 = .5005. Facts support,
leave open and contradict a third of the answers each. Some of its replies name no option:

* ``reply``: a share of all replies, each by itself, also when asked again;
* ``choice``: a share of the choices, also when asked again;
* ``answer``: all replies about a share of the answers.

All answers are scored by the metric itself, through a run, with three rules of ``unparsed``. Then
2,000 samples of 100 and of 250 answers are drawn from each population and summarised.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.results import write_result
from trustassay import score
from trustassay.core.capabilities import ChatRequest, Reply
from trustassay.core.metric import Assessment
from trustassay.metrics import Consistency, TrustScore
from trustassay.metrics.consistency.checks import Unparsed
from trustassay.metrics.trustscore.metric import TABLE
from trustassay.statistics.resampling import generator
from trustassay.text.verdict_replies import ENTAILMENT_LABELS

COMMAND = "python -m lab.benchmarks.unreadable"
KEPT_BY_CHANCE = 0.5
TRUTH = 0.5 + 0.5 * KEPT_BY_CHANCE**10
SIZES = (100, 250)
RATES = (0.0, 0.02, 0.05, 0.10)
KINDS = ("reply", "choice", "answer")
RULES: tuple[Unparsed, ...] = ("apart", "again")


class Model:
    """Chooses as the page above says; its own answer is the option without a number."""

    name = "made"
    shared = False

    def __init__(self, kind: str, rate: float) -> None:
        self.kind, self.rate = kind, rate

    async def reply(self, request: ChatRequest) -> Reply:
        prompt, *again = (message.content for message in request.messages)
        question, *lines = prompt.rsplit("Question: ", 1)[1].splitlines()
        number = int(question.split()[3])
        rng = generator(0, prompt, "chosen")
        about = {"reply": [prompt, *again], "choice": [prompt], "answer": [question]}[self.kind]
        unread = generator(1, *about).random() < self.rate
        own = next(line[0] for line in lines[:4] if "red" in line)
        taken = number % 2 == 0 or rng.random() < KEPT_BY_CHANCE
        return Reply("I would rather not say." if unread else own if taken else "E")


def population(kind: str, rate: float, rule: Unparsed, answers: int) -> list[Assessment]:
    """Return the assessments of all answers."""
    rows = [
        {
            "id": f"a{i}",
            "question": f"Where does lamp {i} stand?",
            "response": "The lamp stands in the red house.",
            "wrong_answers": [f"The lamp stands in house {chr(65 + k)}{k}." for k in range(26)],
        }
        for i in range(answers)
    ]
    metric = Consistency(sources="given", unparsed=rule)
    run = score(rows, metrics=metric, model=Model(kind, rate), cache=None)
    return list(run.assessments)


def whole(one: Assessment, place: int) -> Assessment:
    """Return the assessment of TrustScore; the facts say each verdict of a third of the answers."""
    verdict = ENTAILMENT_LABELS[place % 3]
    low, high = TABLE[verdict, False], TABLE[verdict, True]
    ends = {None: (low, high), 0.0: (low, low), 1.0: (high, high)}[one.score]
    parts = {"lowest": ends[0], "highest": ends[1], "open": float(one.score is None)}
    found = None if one.score is None else ends[0]
    return Assessment(one.id, "trustscore", found, parts=parts)


def drawn(metric: Any, made: Sequence[Assessment], truth: float, n: int, draws: int) -> Any:
    """Return the mean over samples of n answers, and how often intervals hold the truth."""
    rng = generator(0, metric.name, str(n))
    held: Counter[str] = Counter()
    means = []
    for _ in range(draws):
        some = [made[i] for i in rng.integers(len(made), size=n)]
        found = metric.summarise(some)
        means.append(found.values["mean"])
        for key, first, last in (("mean", "mean", "mean"), ("bounds", "mean_low", "mean_high")):
            held[key] += found.intervals[first][0] <= truth <= found.intervals[last][1]
    return {
        "mean": round(float(np.mean(means)), 4),
        "held": round(100 * held["mean"] / draws, 1),
        "held_by_bounds": round(100 * held["bounds"] / draws, 1),
    }


def measured(answers: int, draws: int) -> list[dict[str, Any]]:
    """Return a row for each rate, kind and rule."""
    found = []
    for kind, rate, rule in (
        (kind, rate, rule) for kind in KINDS for rate in RATES for rule in RULES
    ):
        if rate == 0 and (kind, rule) != (KINDS[0], RULES[-1]):
            continue
        made = population(kind, rate, rule, answers)
        both = [whole(one, place // 2) for place, one in enumerate(made)]
        row: dict[str, Any] = {"unreadable": kind, "share": rate, "unparsed": rule}
        row["calls"] = round(sum(one.calls["chat"] for one in made) / answers, 2)
        for metric, own, truth in (
            (Consistency(unparsed=rule), made, TRUTH),
            (TrustScore(), both, 0.4 + 0.2 * TRUTH),
        ):
            summary = metric.summarise(own)
            values = {k: summary.values[k] for k in ("mean", "mean_low", "mean_high")}
            row[metric.name] = {
                "truth": truth,
                "open": summary.values["open"],
                **{key: round(float(value or 0), 4) for key, value in values.items()},
                "samples": {n: drawn(metric, own, truth, n, draws) for n in SIZES},
            }
        print(row, flush=True)
        found.append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answers", type=int, default=3000)
    parser.add_argument("--draws", type=int, default=2000)
    given = parser.parse_args()
    figures = {"answers": given.answers, "draws": given.draws, "rows": None}
    figures["rows"] = measured(given.answers, given.draws)
    data = "simulated: lab/benchmarks/unreadable.py"
    print(write_result("unreadable", COMMAND, data, figures))


if __name__ == "__main__":
    main()
