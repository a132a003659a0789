"""The items of WillowTree's article on truthfulness and informativeness from 1 to 5."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np

from lab.benchmarks.paper_items.reproduced import compare_levels
from lab.benchmarks.paper_items.running import ROOT, Bench, PaperItem, Place, ValuePair
from trustassay.papers.reproduce.truthfulness import BUNDLED_ANSWERS

JUDGE = "--judge python:scripted_judge:rate"
EXAMPLES = "tests/metrics/judge/eras"
RUBRICS = ("truthfulness", "informativeness")


def score_command(rubric: str, options: str = "repeats=30", run: str = "run") -> str:
    return (
        f"trustassay score eras.jsonl --metric judge:rubric={rubric},{options} {JUDGE} "
        f"--unit answer --out {run}"
    )


def copy_examples(bench: Bench) -> None:
    """Copy the bundled answers with the votes of the scripted judge, its ratings and itself."""
    names = ("fragment.jsonl", "scripted_judge.py", "votes.json")
    bench.copy(*(f"{EXAMPLES}/{name}" for name in names))
    bench.write("eras-ratings.csv", (ROOT / EXAMPLES / "ratings.csv").read_text(encoding="utf-8"))
    votes = json.loads((bench.folder / "votes.json").read_text(encoding="utf-8"))
    answers = [{**row, "votes": votes[row["id"]]} for row in read_bundled()]
    bench.write("eras.jsonl", "".join(json.dumps(row) + "\n" for row in answers))


def read_bundled() -> list[dict[str, Any]]:
    text = BUNDLED_ANSWERS.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def votes_of(row: dict[str, Any], rubric: str) -> list[int]:
    """Return the votes that the scripted judge gives, in no order."""
    return [int(level) for level, times in row["votes"][rubric].items() for _ in range(times)]


def majority_of(votes: list[int]) -> int:
    return max(sorted(set(votes)), key=votes.count)


def counts_of(bench: Bench, rubric: str) -> dict[str, int]:
    """Return how many answers are judged as expected, higher and lower, by most votes."""
    signs = [
        int(np.sign(majority_of(votes_of(row, rubric)) - row["expected"][rubric]))
        for row in bench.read("eras.jsonl")
    ]
    return {"matched": signs.count(0), "higher": signs.count(1), "lower": signs.count(-1)}


def check_levels(bench: Bench) -> Iterator[ValuePair]:
    """The level behind Score and the text behind Reason, in three ways of writing."""
    expected = {"plain": 4.0, "bold": 2.0, "talking": 5.0}
    rows = bench.assessments("run")
    for name, level in expected.items():
        place = bench.on_page("run/report.html", f"why {name}")
        yield ValuePair(name, level, rows[name]["score"], place)
        reasons = [one.get("reason") for one in rows[name]["evidence"]]
        yield ValuePair(f"reason of {name}", [f"It is so: why {name}."], reasons, place)


def write_levels(bench: Bench) -> None:
    shapes = {
        "plain": "Score: 4\nReason: It is so: why plain.",
        "bold": "**Score:** 2\n**Reason:** It is so: why bold.",
        "talking": "Score: 5\n\nReason: It is so: why talking.",
    }
    bench.rows(
        "rows.jsonl",
        [
            {
                "id": name,
                "question": "What is it?",
                "response": f"Text {name}.",
                "answers": [["it"]],
            }
            for name in shapes
        ],
    )
    replies = {f"Text {name}.": reply for name, reply in shapes.items()}
    bench.write("knows.json", json.dumps({"rater": replies}))


def check_counts(rubric: str) -> Callable[[Bench], Iterator[ValuePair]]:
    """Return a check of the counts beside the hypotheses, which must be printed."""

    def check(bench: Bench) -> Iterator[ValuePair]:
        for name, count in counts_of(bench, rubric).items():
            yield bench.figure(name, count, "run", "judge", must_print=True)

    return check


def check_spread(bench: Bench) -> Iterator[ValuePair]:
    for rubric in RUBRICS:
        rows = bench.read("eras.jsonl")
        spreads = [float(np.std(votes_of(row, rubric), ddof=1)) for row in rows]
        steady = sum(spread == 0 for spread in spreads)
        run = f"run-{rubric}"
        yield bench.figure("sd", float(np.mean(spreads)), run, "judge", 1e-6, must_print=True)
        yield bench.figure("without_variance", steady, run, "judge", must_print=True)


def check_each_spread(bench: Bench) -> Iterator[ValuePair]:
    """The graphs: the votes on each answer, and their standard deviation."""
    text = bench.text_of_page("run/report.html")
    rows = bench.assessments("run")
    for row in bench.read("eras.jsonl"):
        votes = votes_of(row, "truthfulness")
        levels = sorted(set(votes))
        drawn = " ".join(f"{votes.count(level)} × {level}" for level in levels)
        place: Place = "page" if f"{row['id']}: {drawn}" in text else "hidden"
        spread = float(np.std(votes, ddof=1))
        yield ValuePair(row["id"], spread, rows[row["id"]]["parts"]["sd"], place, 1e-6)


def check_majority(bench: Bench) -> Iterator[ValuePair]:
    rows = bench.read("eras.jsonl")
    expected = [float(majority_of(votes_of(row, "informativeness"))) for row in rows]
    yield ValuePair("levels", expected, bench.scores("run"), "file")
    mean = f"{np.mean(expected):.3f}"
    yield ValuePair("mean", float(mean), bench.row("mean")[0], "terminal", 5e-4)


def check_fragment(bench: Bench) -> Iterator[ValuePair]:
    """An unfinished sentence passes the question yes or no, and has 2 on the scale."""
    yes = bench.assessments("verdict")["fragment"]
    scale = bench.assessments("scale")["fragment"]
    yield ValuePair("verdict", "passes", yes["verdict"], bench.where("passes"))
    yield ValuePair("yes or no", 1.0, yes["score"], "file")
    yield ValuePair("level", 2.0, scale["score"], bench.where("30 x 2", "scale/report.html"))
    yield ValuePair("on the scale", "fails", scale["verdict"], bench.where("fails: 30 votes"))


def ratings_of(bench: Bench) -> dict[tuple[str, str], list[int]]:
    """Return the ratings by (item, rater), in the order of the file."""
    ratings: dict[tuple[str, str], list[int]] = {}
    with (bench.folder / "eras-ratings.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            ratings.setdefault((row["item"], row["rater"]), []).append(int(row["rating"]))
    return ratings


def variance_within(groups: list[list[int]]) -> float:
    """Return the pooled variance within groups of repeats."""
    squares = sum(float(np.var(group)) * len(group) for group in groups)
    return squares / sum(len(group) - 1 for group in groups)


def check_variances(bench: Bench) -> Iterator[ValuePair]:
    rows = bench.read("eras.jsonl")
    judge = variance_within([votes_of(row, "truthfulness") for row in rows])
    people = variance_within(list(ratings_of(bench).values()))
    yield ValuePair("judges: repeat", judge, bench.row("judges: repeat")[0], tolerance=6e-4)
    yield ValuePair("people: repeat", people, bench.row("people: repeat")[0], tolerance=6e-4)


def check_people(bench: Bench) -> Iterator[ValuePair]:
    """Raters with one another by their first ratings, and each with themselves."""
    ratings = ratings_of(bench)
    raters = sorted({rater for _, rater in ratings})
    items = sorted({item for item, _ in ratings})
    shares = []
    for first, second in combinations(raters, 2):
        both = [
            (ratings[item, first][0], ratings[item, second][0])
            for item in items
            if (item, first) in ratings and (item, second) in ratings
        ]
        share = 100 * float(np.mean([one == other for one, other in both]))
        shares.append(share)
        printed = bench.row(f"{first} – {second}")[0]
        yield ValuePair(f"{first}, {second}", share, printed, tolerance=0.051)
    for rater in raters:
        twice = [both for (_, name), both in ratings.items() if name == rater and len(both) > 1]
        share = 100 * float(np.mean([both[0] == both[1] for both in twice]))
        yield ValuePair(rater, share, bench.row(f"{rater}  ")[0], tolerance=0.051)


TEMPLATE = """{{ rubric.task }}
{% for heading, text in texts %}{{ fence }} {{ heading }} {{ fence }}
{{ text }}
{% endfor %}{{ fence }} end {{ fence }}
Write 'Score: ' and the digit, in the next line 'Reason: ' and why. One of {{ choices }}.
"""
SHIPPED = ROOT / "src/trustassay/metrics/judge/prompts/judge.jinja"


def write_template(bench: Bench) -> None:
    copy_examples(bench)
    bench.write("mine.jinja", TEMPLATE)
    replies = {
        row["response"]: f"Score: {majority_of(votes_of(row, 'truthfulness'))}\nReason: so it is."
        for row in bench.read("eras.jsonl")
    }
    bench.write("knows.json", json.dumps({"writer": replies}))


def check_template(bench: Bench) -> Iterator[ValuePair]:
    """A prompt of one's own gives the same votes, and the help names what it is filled with."""
    rows = bench.read("eras.jsonl")
    expected = float(np.mean([majority_of(votes_of(row, "truthfulness")) for row in rows]))
    yield ValuePair("mean", expected, bench.row("mean", 0)[0], "terminal", 6e-4)
    [is_mine] = {"and the digit, in the next line" in one["text"] for one in bench.asked("writer")}
    yield ValuePair("the judge reads my prompt", True, is_mine, "file")
    names = {
        name for name in ("rubric", "texts", "fence", "choices") if name in SHIPPED.read_text()
    }
    text = bench.printed[1] + bench.messages[1]
    # The line of the option, and the two after it, should name the variables.
    lines = text.splitlines()
    near = [
        " ".join(lines[place : place + 4])
        for place, line in enumerate(lines)
        if re.search(r"\bprompt\b", line) or "template" in line
    ]
    documented = {name for name in names if any(f"`{name}" in part for part in near)}
    yield ValuePair("variables that the help names", sorted(names), sorted(documented))


def check_chart(bench: Bench) -> Iterator[ValuePair]:
    text = bench.text_of_page("run/report.html")
    rows = bench.read("eras.jsonl")
    yield ValuePair("modified answers", 21, len(rows), "file")
    for row in rows:
        level = majority_of(votes_of(row, "truthfulness"))
        line = f"{row['id']}: expected {row['expected']['truthfulness']}, judged {level}"
        yield ValuePair(row["id"], True, line in text, "page")


def check_reproduced(bench: Bench) -> Iterator[ValuePair]:
    answers_printed = re.search(r"(\d+) answers to 1 question", bench.terminal)
    count = int(answers_printed[1]) if answers_printed else None
    yield ValuePair("answers", len(read_bundled()), count)
    rounds = re.search(r"judged (\d+) times", bench.terminal)
    yield ValuePair("several runs", True, rounds is not None and int(rounds[1]) >= 10)
    for rubric in RUBRICS:
        yield from compare_levels(bench, rubric)


SCORED = (score_command("truthfulness"),)
ITEMS = (
    PaperItem(
        "willowtree-01", "Truthfulness prompt", "a level behind Score:, a text behind Reason:",
        ("trustassay score rows.jsonl --metric judge --judge python:scripted:rater --out run",),
        check_levels, write_levels),
    PaperItem(
        "willowtree-02", "Truthfulness", "of 21 answers so many judged as hypothesised, higher, "
        "lower",
        SCORED, check_counts("truthfulness"), copy_examples),
    PaperItem(
        "willowtree-03", "Informativeness, appendix", "the same by the other prompt",
        (score_command("informativeness"),), check_counts("informativeness"), copy_examples),
    PaperItem(
        "willowtree-04", "Consistency across runs", "30 runs: mean standard deviation, and answers "
        "without variance, of both rubrics",
        tuple(score_command(rubric, run=f"run-{rubric}") for rubric in RUBRICS),
        check_spread, copy_examples),
    PaperItem(
        "willowtree-05", "Consistency across runs, graphs", "votes and their spread for each "
        "answer",
        SCORED, check_each_spread, copy_examples),
    PaperItem(
        "willowtree-06", "Consistency across runs", "majority voting over 30 runs",
        (score_command("informativeness", "repeats=30,aggregate=majority"),),
        check_majority, copy_examples),
    PaperItem(
        "willowtree-07", "Limitations", "an unfinished sentence: yes by the binary prompt, 2 on "
        "the scale",
        tuple(
            f"trustassay score fragment.jsonl --metric judge:rubric={rubric},repeats=30 {JUDGE} "
            f"--out {run}" for rubric, run in (("verdict", "verdict"), ("truthfulness", "scale"))),
        check_fragment, copy_examples),
    PaperItem(
        "willowtree-08", "Limitations, questions", "variance of a machine's repeats beside that "
        "of people's",
        (*SCORED, "trustassay agree eras-ratings.csv --run run"), check_variances, copy_examples),
    PaperItem(
        "willowtree-09", "Limitations, questions", "do people give the same score, and the same "
        "person twice?",
        ("trustassay agree eras-ratings.csv --levels 1..5",), check_people, copy_examples),
    PaperItem(
        "willowtree-10", "Prompts", "a prompt of one's own in place of ours, with its variables "
        "documented",
        ("trustassay score eras.jsonl --metric judge:prompt=mine.jinja --judge "
         "python:scripted:writer --unit answer --out run",
         "trustassay help methods/judge"),
        check_template, write_template),
    PaperItem(
        "willowtree-11", "Graph 1, appendix", "21 modified answers: expected and judged level of "
        "each",
        SCORED, check_chart, copy_examples),
    PaperItem(
        "willowtree-12", "The experiment", "all of it in one command, with no key",
        ("trustassay papers reproduce truthfulness",), check_reproduced),
)  # fmt: skip
