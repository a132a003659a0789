"""Measures the three procedures on sets of real labels, and how long ``calibrate`` takes.

A set is a population: labels are drawn from it one by one, with replacement, so that each draw is
independent whatever its answers share, and the promise is about the answers of the set.

Each judge decides in two ways without a person: it accepts answers with high scores, of which at
most alpha may be wrong, or it rejects answers with low scores, of which at most alpha may be right
(``calibrate --lower --positive wrong``).
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lab.benchmarks.public_labels.figures import LabelledScores, measure_auroc
from lab.benchmarks.warranty.populations import Population
from lab.benchmarks.warranty.procedures import (
    DELTA,
    PROCEDURES,
    choose_thresholds,
    judge_looks,
    judge_thresholds,
)
from lab.benchmarks.warranty.sets import SETS, JudgedAnswer, score_answers, write_table
from lab.benchmarks.warranty.simulation import ALPHAS, LABELS, LOOKS, LOOKS_ALPHA
from trustassay import calibrate
from trustassay.runs.calibrator import ReliabilityBand
from trustassay.statistics import Floats, Places
from trustassay.statistics.resampling import cluster_numbers, generator
from trustassay.statistics.warranty import find_grouped_threshold, walk

Json = dict[str, Any]
DRAWS = 1000
GROUPED_DRAWS, GROUPED_LABELS = 300, (200, 1000)
GROUPED_FROM = 1.5
"""Answers of a group, on average, from which whole groups are drawn as well."""
ROWS_TIMED = 10_000
ACCEPT, REJECT = DECISIONS = ("accept", "reject")


def measure_sets(
    out: Path,
    names: Sequence[str] = tuple(SETS),
    labels: Sequence[int] = LABELS,
    draws: int = DRAWS,
) -> Json:
    """Return the figures of every judge of each set.

    Args:
        out: the folder of the scores. names: of sets. labels: numbers of labels.
        draws: samples a cell.
    """
    rows = []
    for name in names:
        answers = score_answers(name, out)
        for judge in answers[0].scores:
            for decision in DECISIONS:
                rows.append(measure_judge(name, judge, decision, answers, labels, draws))
                print(rows[-1], file=sys.stderr, flush=True)
    return {"draws": draws, "labels": list(labels), "judges": rows}


def measure_judge(
    name: str,
    judge: str,
    decision: str,
    answers: Sequence[JudgedAnswer],
    labels: Sequence[int],
    draws: int,
) -> Json:
    """Return what a judge states, what is right, and what the procedures make of it.

    Args:
        name: the set. judge: the score. decision: one of :data:`DECISIONS`.
        answers: of the set. labels: numbers of labels. draws: samples a cell.
    """
    is_reject = decision == REJECT
    sign = -1 if is_reject else 1
    scores = sign * np.array([answer.scores[judge] for answer in answers])
    wrong = np.array([answer.right == is_reject for answer in answers], np.float64)
    groups = cluster_numbers([answer.group for answer in answers])
    population = Population(scores, wrong)
    row: Json = {
        "set": name,
        "judge": judge,
        "decision": decision,
        "answers": len(answers),
        "groups": int(groups.max()) + 1,
        "right": round(float(np.mean([answer.right for answer in answers])), 3),
        "auroc": measure_auroc(LabelledScores(scores, wrong == 0, groups)),
        **_calibrate_all(answers, judge, is_reject),
        "cells": [
            _measure_cell(population, [name, judge, decision], alpha, labels, draws)
            for alpha in ALPHAS
        ],
        "looks": _measure_looks(population, [name, judge, decision], draws),
    }
    if len(answers) >= GROUPED_FROM * row["groups"]:
        row["whole groups"] = [
            _draw_groups(scores, wrong, groups, alpha, number)
            for alpha in ALPHAS
            for number in GROUPED_LABELS
        ]
    return row


def _calibrate_all(answers: Sequence[JudgedAnswer], judge: str, is_reject: bool) -> Json:
    """Return what ``calibrate`` says of all labels of a set."""
    repeats = len({answer.group for answer in answers}) < len(answers)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.csv"
        write_table(answers, path)
        # Labels of answers that share a question are no independent evidence about new ones.
        calibrator = calibrate(
            path,
            score=judge,
            label="human",
            positive="wrong" if is_reject else "right",
            lower=is_reject,
            at_most=ALPHAS,
            group="group" if repeats else "none",
        ).calibrator
    promises = [
        {
            "at_most": promise.at_most,
            "above": promise.above,
            "share": round(promise.share, 3),
            "accepted": promise.accepted,
            "wrong": promise.wrong,
            "without": promise.without,
        }
        for promise in calibrator.promises
    ]
    if is_reject:
        return {"promises": promises}
    bands = calibrator.reliability
    return {"bottom": _build_band(bands[0]), "top": _build_band(bands[-1]), "promises": promises}


def _build_band(band: ReliabilityBand) -> Json:
    return {
        "stated": round(band.stated, 3),
        "answers": band.n,
        "right": round(band.right / band.n, 3),
        "interval": [round(end, 3) for end in band.interval],
    }


def _measure_cell(
    population: Population, names: Sequence[str], alpha: float, labels: Sequence[int], draws: int
) -> Json:
    rng = generator(0, "warranty", *names, str(alpha))
    cell: Json = {"alpha": alpha, "limit": round(population.limit(alpha), 4)}
    for procedure in PROCEDURES:
        cell[procedure] = {"accepted": [], "broken": []}
    for n in labels:
        samples = population.draw((draws, n), rng)
        for procedure in PROCEDURES:
            thresholds = choose_thresholds(procedure, samples, population, alpha, rng)
            outcome = judge_thresholds(thresholds, population, alpha)
            cell[procedure]["accepted"].append(round(outcome.accepted, 4))
            cell[procedure]["broken"].append(round(outcome.broken, 4))
    return cell


def _measure_looks(population: Population, names: Sequence[str], draws: int) -> Json:
    result: Json = {"alpha": LOOKS_ALPHA}
    for procedure in ("walk", "plan"):
        rng = generator(0, "warranty, looks", *names)
        numbers, outcome = judge_looks(procedure, population, LOOKS_ALPHA, LOOKS, draws, rng)
        accepted, broken = round(outcome.accepted, 4), round(outcome.broken, 4)
        result[procedure] = {"looks": numbers, "accepted": accepted, "broken": broken}
    return result


def _draw_groups(scores: Floats, wrong: Floats, groups: Places, alpha: float, labels: int) -> Json:
    """Return the figures where all answers of a group are labelled, with and without ``--group``.

    Groups are drawn with replacement until there are so many labels.
    """
    members = [np.flatnonzero(groups == number) for number in range(int(groups.max()) + 1)]
    rng = generator(0, "warranty, groups", str(alpha))
    figures: dict[str, list[tuple[float, bool]]] = {"walk": [], "--group": []}
    largest = partial(_count_largest, scores, groups)
    for _ in range(GROUPED_DRAWS):
        drawn: list[Places] = []
        while sum(map(len, drawn)) < labels:
            drawn.append(members[int(rng.integers(len(members)))])
        places = np.concatenate(drawn)
        names = np.repeat(np.arange(len(drawn)), [len(one) for one in drawn])
        of = scores[places], wrong[places]
        thresholds = {
            "walk": walk(*of, alpha=alpha, delta=DELTA),
            "--group": find_grouped_threshold(
                *of, names, alpha=alpha, delta=DELTA, count_largest=largest
            ),
        }
        for way, threshold in thresholds.items():
            accepted = scores > (np.inf if threshold is None else threshold.above)
            risk = float(wrong[accepted].mean()) if accepted.any() else 0.0
            figures[way].append((float(accepted.mean()), risk > alpha + 1e-9))
    largest_group = int(np.bincount(groups).max())
    row: Json = {
        "alpha": alpha,
        "largest group": largest_group,
        "labels": labels,
        "draws": GROUPED_DRAWS,
    }
    for way, outcomes in figures.items():
        accepted, broken = np.mean(outcomes, axis=0).tolist()
        row[way] = {"accepted": round(accepted, 4), "broken": round(broken, 4)}
    return row


def _count_largest(scores: Floats, groups: Places, above: float) -> int:
    return int(np.bincount(groups[scores > above]).max(initial=1))


def time_command(rows: int = ROWS_TIMED, labelled: int = ROWS_TIMED) -> Json:
    """Return the seconds of ``trustassay calibrate`` from a CSV to the sentence, in a new process.

    Args:
        rows: of the file. labelled: rows with a label.
    """
    rng = generator(0, "warranty, time")
    scores = rng.random(rows)
    right = rng.random(rows) < 0.5 + scores / 2
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "question", "response", "jev", "human"])
            for place in range(rows):
                label = str(int(right[place])) if place < labelled else ""
                text = f"What is {place}?", f"It is {place}."
                writer.writerow([place, *text, f"{scores[place]:.6f}", label])
        command = [sys.executable, "-m", "trustassay", "calibrate", "scores.csv"]
        began, before = time.perf_counter(), os.times()
        output = subprocess.run(
            [*command, "--score", "jev", "--label", "human"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        ).stderr
        wall, after = time.perf_counter() - began, os.times()
    cpu = after.children_user + after.children_system
    cpu -= before.children_user + before.children_system
    return {
        "rows": rows,
        "labelled": labelled,
        "cpu_s": round(cpu, 1),
        "wall_s": round(wall, 1),
        "sentence": " ".join(output.splitlines()[:2]),
    }
