"""The items of FEWL (Wei et al. 2024)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lab.benchmarks.paper_items.fewl_by_hand import (
    WORDS,
    Measure,
    Thing,
    alike,
    letters,
    make_world,
    softmax,
)
from lab.benchmarks.paper_items.reproduced import compare_pairs
from lab.benchmarks.paper_items.running import Bench, PaperItem, Place, ValuePair

SAME = "--backend similarity=python:scripted:alike --embedder python:scripted:letters"
NEAR = "--max-similarity 1 --neighbours 3"
TWO = {"one": 1, "two": 1}
FIVE = {"asked": 5}
Checks = Callable[[Bench], Iterator[ValuePair]]


def metric_command(options: str, run: str = "run") -> str:
    settings = f"neighbours=3,max_similarity=1{options}"
    return f"trustassay score rows.jsonl --metric fewl:{settings} {SAME} --out {run}"


def experiment(name: str, source: str, others: str = "") -> str:
    return f"trustassay papers experiment {name} {source} {SAME} {NEAR} {others} --json --out out"


def record(thing: Thing, number: int) -> dict[str, Any]:
    return {
        "id": f"q{number}",
        "question": thing.question,
        "references": {name: texts[0] for name, texts in thing.references.items()},
        "wrong_answers": list(thing.wrong),
        "corrected_answers": list(thing.corrected),
        "answers": [[thing.answers[0]]],
        "incorrect_answers": [thing.answers[2]],
    }


def write_answers(bench: Bench) -> None:
    """One answer to each question, of the three kinds in turn, with two references."""
    world = make_world(TWO)
    rows = [
        record(thing, number) | {"response": thing.answers[number % 3]}
        for number, thing in enumerate(world)
    ]
    bench.rows("rows.jsonl", rows)


def scores_by_hand(rule: str = "ours", **form: Any) -> list[float]:
    world = make_world(TWO)
    measure = Measure(world)
    return [
        measure.score(number, thing.answers[number % 3], rule, **form)
        for number, thing in enumerate(world)
    ]


def check_runs(variants: dict[str, dict[str, Any]]) -> Checks:
    """Return a check of the scores of runs, by name, and of their means on the terminal."""

    def check(bench: Bench) -> Iterator[ValuePair]:
        for place, (run, form) in enumerate(variants.items()):
            expected = scores_by_hand(**form)
            yield ValuePair(f"scores, {run}", expected, bench.scores(run), "file", 1e-6)
            printed = bench.row("mean", place)[0]
            yield ValuePair(f"mean, {run}", float(np.mean(expected)), printed, tolerance=6e-4)

    return check


def check_equation(bench: Bench) -> Iterator[ValuePair]:
    yield from check_runs({"run": {}})(bench)
    unpenalised = float(np.mean(scores_by_hand(penalised=False)))
    yield bench.figure("no_penalty", unpenalised, "run", "fewl", 1e-6)


def check_weights(bench: Bench) -> Iterator[ValuePair]:
    """Expertise and its softmax stand beside each reference's answer on the page."""
    world = make_world(TWO)
    measure = Measure(world)
    text = bench.text_of_page("warm/report.html")
    for run, temperature in (("run", 1.0), ("warm", 0.2)):
        rows = bench.assessments(run)
        for number in (0, 7):
            expected = measure.weights(number, "ours", temperature)
            evidence = rows[f"q{number}"]["evidence"]
            values = [one["weight"] for one in evidence if "weight" in one]
            places = [f"{weight:.3f}" in text for weight in expected]
            place: Place = "page" if run == "run" or all(places) else "hidden"
            yield ValuePair(f"weights of q{number}, {run}", expected, values, place, 1e-6)


def check_asked_expertise(bench: Bench) -> Iterator[ValuePair]:
    """A reference that says yes to the corrected and no to the wrong answers has r = 1."""
    rows = bench.assessments("run")
    expected = softmax([1.0, -1.0])
    for name in ("q0", "q5"):
        evidence = [one for one in rows[name]["evidence"] if "weight" in one]
        values = {one["reference"]: one["weight"] for one in evidence}
        place = bench.on_page("run/report.html", f"{expected[0]:.2f}")
        yield ValuePair(f"weights of {name}", expected, list(values.values()), place, 1e-6)
    statements = sum(len(thing.wrong) + len(thing.corrected) for thing in make_world(TWO))
    yield ValuePair("yes or no asked", statements, len(asked_same(bench, "other")), "file")


def asked_same(bench: Bench, model: str) -> list[str]:
    return [one["text"] for one in bench.asked(model) if "Statement:" in one["text"]]


def write_asked_expertise(bench: Bench) -> None:
    world = make_world(TWO)
    rows = [
        record(thing, number) | {"response": thing.answers[0], "references": {}}
        for number, thing in enumerate(world)
    ]
    for row in rows:
        del row["references"]
    bench.rows("rows.jsonl", rows)
    right = {text: "Yes" for thing in world for text in thing.corrected}
    wrong = {text: "No" for thing in world for text in thing.wrong}
    opposite = {text: "No" if reply == "Yes" else "Yes" for text, reply in (right | wrong).items()}
    replies = {thing.question: thing.references["one"][0] for thing in world}
    # The statement stands behind the question, and decides where there is one.
    models = {"other": replies | right | wrong, "third": replies | opposite}
    bench.write("knows.json", json.dumps(models))


def check_penalty(bench: Bench) -> Iterator[ValuePair]:
    world = make_world(TWO)
    measure = Measure(world)
    means = [
        float(np.mean(measure.penalties(number, thing.answers[number % 3])))
        for number, thing in enumerate(world)
    ]
    yield bench.figure("penalty", float(np.mean(means)), "run", "fewl", 1e-6)
    rows = bench.assessments("run")
    for number in (0, 9):
        near = [one["neighbour"] for one in rows[f"q{number}"]["evidence"] if "neighbour" in one]
        expected = [world[other].question for other in measure.near[number]]
        yield ValuePair(f"neighbours of q{number}", expected, near, "page")
    # Table 8: random questions, none more alike than 0.8.
    drawn = bench.assessments("random")
    questions = {thing.question: place for place, thing in enumerate(world)}
    for number in (0, 9):
        row = drawn[f"q{number}"]
        near = [one for one in row["evidence"] if "neighbour" in one]
        cosines = [float(letters(world[number].question) @ letters(o["neighbour"])) for o in near]
        yield ValuePair(f"random ones of q{number}", True, max(cosines) <= 0.86 + 1e-6, "page")
        answer = world[number].answers[number % 3]
        likenesses = [
            alike(answer, text)
            for one in near
            for text in measure.texts(questions[one["neighbour"]])
        ]
        penalty = row["parts"]["penalty"]
        yield ValuePair(f"penalty of q{number}", float(np.mean(likenesses)), penalty, "page", 1e-6)


def write_chale(bench: Bench) -> None:
    """CHALE as it is published, a reference that gives five answers, and a generator of pairs."""
    world = make_world(FIVE)
    columns = {
        "Question": [thing.question for thing in world],
        "Short_ans": [thing.answers[0].split()[0] for thing in world],
        "Long_ans": [thing.answers[0] for thing in world],
        "non-halu": [thing.answers[0] for thing in world],
        "mid-halu": [thing.answers[1] for thing in world],
        "halu": [thing.answers[2] for thing in world],
    }
    bench.write("chale.json", json.dumps(columns))
    write_replies(bench, world)
    bench.write("pairs.jinja", PAIRS_PROMPT)
    bench.write("five.jinja", FIVE_PROMPT)


PAIRS_PROMPT = "PAIRS {{ pairs }} of {{ question }}\n"
FIVE_PROMPT = "FIVE {{ answers }} of {{ question }}\n"


def write_replies(bench: Bench, world: list[Thing]) -> None:
    listed, pairs = {}, {}
    for thing in world:
        texts = thing.references["asked"]
        listed[thing.question] = "\n".join(f"{n}. {text}" for n, text in enumerate(texts, 1))
        pairs[thing.question] = "\n".join(
            f"{n}. Wrong Answer: {wrong}\n{n}. Non-Wrong Answer: {corrected}"
            for n, (wrong, corrected) in enumerate(
                zip(thing.wrong, thing.corrected, strict=True), 1
            )
        )
    bench.write("knows.json", json.dumps({"answers": listed, "writer": pairs}))


ASKED = (
    "--reference asked=python:scripted:answers --answers 5 "
    "--backend generator=python:scripted:writer --pairs 3"
)
RULES: dict[str, tuple[str, bool]] = {
    "single, no penalty, tv": ("single", False),
    "single, nearest, tv": ("single", True),
    "uniform, no penalty, eq1, tv": ("uniform", False),
    "ours, nearest, eq1, tv": ("ours", True),
}
"""The rows of Table 1."""
MORE_RULES = RULES | {
    "uniform, nearest, eq1, tv": ("uniform", True),
    "single-best, no penalty, tv": ("single-best", False),
}
"""Those of Tables 2 and 11, too."""


def rows_of(bench: Bench, number: int = 0) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in bench.json(number)["rows"]}


def check_chale(rules: dict[str, tuple[str, bool]]) -> Checks:
    def check(bench: Bench) -> Iterator[ValuePair]:
        rows, measure = rows_of(bench), Measure(make_world(FIVE))
        for name, (rule, penalised) in rules.items():
            for kind, column in ((1, "right > mid-halu"), (2, "right > halu")):
                expected = measure.won(0, kind, rule, penalised=penalised)
                yield ValuePair(f"{name}: {column}", expected, rows[name][column]["value"])
        row = rows["ideal, nearest, eq1, tv"]
        values = [row[column]["value"] for column in ("right > mid-halu", "right > halu")]
        # The paper does not say whether half hallucinated answers count for the ideal weights.
        allowed = [
            [measure.won(0, kind, rule, penalised=True) for kind in (1, 2)]
            for rule in ("ideal", "ideal, half")
        ]
        expected_values = values if values in allowed else allowed[0]
        yield ValuePair("ideal, from non-halu and halu", expected_values, values)

    return check


def check_divergences(bench: Bench) -> Iterator[ValuePair]:
    rows, measure = rows_of(bench), Measure(make_world(FIVE))
    for divergence in ("js", "kl"):
        for stem, (rule, penalised) in RULES.items():
            name = stem.removesuffix("tv") + divergence
            expected = measure.won(0, 2, rule, penalised=penalised, divergence=divergence)
            yield ValuePair(name, expected, rows[name]["right > halu"]["value"])


def check_pairs(bench: Bench) -> Iterator[ValuePair]:
    """The pairs come from one call a question, which asks for 25 unless told another number."""
    texts = [one["text"] for one in bench.asked("writer")]
    yield ValuePair("calls of the generator", [24, 24], [len(texts[:24]), len(texts[24:])], "file")
    yield ValuePair("asks for 25", True, all(re.search(r"\b25\b", t) for t in texts[:24]), "file")
    measure = Measure(make_world(FIVE))
    scores = list(bench.assessments("run").values())
    world = make_world(FIVE)
    expected = [measure.score(n, thing.answers[0]) for n, thing in enumerate(world)]
    yield ValuePair("scores", expected, [row["score"] for row in scores], "file", 1e-6)
    # A prompt of one's own, as that of appendix C.1.
    by_my_prompt = [text for text in texts[24:] if text.startswith("PAIRS 3 of Who built")]
    yield ValuePair("calls with my prompt", 24, len(by_my_prompt), "file")
    yield ValuePair("the same scores", expected, bench.scores("mine"), "file", 1e-6)


def write_responses(bench: Bench) -> None:
    write_chale(bench)
    rows = [
        {"id": f"q{n}", "question": thing.question, "response": thing.answers[0]}
        for n, thing in enumerate(make_world(FIVE))
    ]
    bench.rows("rows.jsonl", rows)


def check_five(bench: Bench) -> Iterator[ValuePair]:
    """Five answers of a reference in one call, by our prompt and by one's own."""
    texts = [one["text"] for one in bench.asked("answers")]
    yield ValuePair("calls", [24, 24], [len(texts[:24]), len(texts[24:])], "file")
    yield ValuePair("asks for 5", True, all(re.search(r"\b5\b", t) for t in texts[:24]), "file")
    by_my_prompt = [text for text in texts[24:] if text.startswith("FIVE 5 of Who built")]
    yield ValuePair("calls with my prompt", 24, len(by_my_prompt), "file")
    yield bench.figure("references", 5.0, "run", "fewl")
    expected = [
        Measure(make_world(FIVE)).score(n, thing.answers[0], "uniform")
        for n, thing in enumerate(make_world(FIVE))
    ]
    yield ValuePair("scores", expected, bench.scores("run"), "file", 1e-6)
    yield ValuePair("scores by my prompt", expected, bench.scores("mine"), "file", 1e-6)


def five_command(options: str, run: str, reference: str = "answers") -> str:
    settings = f"neighbours=3,max_similarity=1,answers=5{options}"
    return (
        f"trustassay score rows.jsonl --metric fewl:{settings} "
        f"{SAME} --reference asked=python:scripted:{reference} --out {run}"
    )


def write_best(bench: Bench) -> None:
    world = make_world(TWO)
    rows = []
    for number, thing in enumerate(world):
        row = record(thing, number)
        row |= {"answers": [[thing.answers[0]]], "incorrect_answers": list(thing.answers[1:])}
        rows.append(row)
    bench.rows("rows.jsonl", rows)


def check_best(bench: Bench) -> Iterator[ValuePair]:
    """Table 3, and Table 9's uniform weights: the best answer is above all others."""
    rows, world = rows_of(bench), make_world(TWO)
    measure = Measure(world)
    for name, (rule, penalised) in (
        RULES | {"uniform, nearest, eq1, tv": ("uniform", True)}
    ).items():
        count = 0
        for number, thing in enumerate(world):
            scores = [measure.score(number, a, rule, penalised=penalised) for a in thing.answers]
            count += scores[0] > max(scores[1:]) + 1e-12
        yield ValuePair(name, count, rows[name]["best answer highest"]["count"])


def write_ranked(bench: Bench) -> None:
    """Questions with five choices, and models that take the first, the second, or by turns."""
    world = make_world(TWO)
    choices = [
        {
            "question": thing.question,
            "answers": [
                {"text": thing.answers[0], "correct": True, "choice": "A"},
                {"text": thing.answers[1], "correct": False, "choice": "B"},
                {"text": thing.answers[2], "correct": False, "choice": "C"},
                {"text": "None of the above", "correct": False, "choice": "D"},
                {"text": "I don't know", "correct": False, "choice": "E"},
            ],
        }
        for thing in world
    ]
    bench.rows("choices.jsonl", choices)
    turns = {thing.question: "AC"[n % 2] for n, thing in enumerate(world)}
    bench.write(
        "knows.json", json.dumps({"answers": {"": "A"}, "other": {"": "C"}, "third": turns})
    )
    rows = []
    for model, kinds in {"good": [0] * 24, "fair": [0, 2] * 12, "poor": [2] * 24}.items():
        for number, thing in enumerate(world):
            row = record(thing, number) | {"id": f"{model}-{number}", "model": model}
            row |= {"response": thing.answers[kinds[number]], "label": int(kinds[number] == 0)}
            rows.append(row)
    bench.rows("rows.jsonl", rows)


def check_ranked(bench: Bench) -> Iterator[ValuePair]:
    rows = rows_of(bench, 0)
    for name, count in {"good": 24, "fair": 12, "poor": 0}.items():
        yield ValuePair(f"right choices of {name}", count, rows[name]["right"]["count"])
    ranked, world = rows_of(bench, 1), make_world(TWO)
    measure, row = Measure(world), ranked["ours, nearest, eq1, tv"]
    means = {}
    for model, kinds in {"good": [0] * 24, "fair": [0, 2] * 12, "poor": [2] * 24}.items():
        scores = [measure.score(n, thing.answers[kinds[n]]) for n, thing in enumerate(world)]
        means[model] = float(np.mean(scores))
        yield ValuePair(f"mean of {model}", means[model], row[model]["mean"], "terminal", 1e-6)
        accuracy = 100 * float(np.mean([kind == 0 for kind in kinds]))
        yield ValuePair(f"accuracy of {model}", accuracy, ranked["true accuracy"][model]["value"])
    order = sorted(means, key=lambda name: -means[name])
    yield ValuePair("order", order, row["order"]["order"])


def check_pairs_of_models(bench: Bench) -> Iterator[ValuePair]:
    """Table 5: shares of pairs that the score orders as the TQA metric, by two rules."""
    rows, world = rows_of(bench), make_world(TWO)
    measure = Measure(world)
    for name in ("single, no penalty, tv", "single, nearest, tv"):
        hits = []
        for number, thing in enumerate(world):
            golds, wrongs = thing.answers[:1], thing.answers[2:]
            first, second = thing.answers[0], thing.answers[2]
            truths = [
                max(alike(text, gold) for gold in golds) - max(alike(text, bad) for bad in wrongs)
                for text in (first, second)
            ]
            penalised = "nearest" in name
            scores = [
                measure.score(number, text, "single", penalised=penalised)
                for text in (first, second)
            ]
            hits.append((scores[0] - scores[1]) * (truths[0] - truths[1]) > 1e-15)
        expected = 100 * float(np.mean(hits))
        yield ValuePair(name, expected, rows[name]["good v. poor"]["value"])


def write_near(bench: Bench) -> None:
    """Of 20 questions the first four share an answer, which is wrong of all others."""
    bench.rows(
        "rows.jsonl",
        [
            {
                "id": f"q{n}",
                "question": f"what is thing {n}",
                "answers": [["right 3" if n < 4 else f"right {n}"]],
                "incorrect_answers": [f"right {10 if n < 4 else 3}"],
            }
            for n in range(20)
        ],
    )


def check_near(bench: Bench) -> Iterator[ValuePair]:
    row = rows_of(bench)["all"]
    # All 19 others are neighbours: four questions have three of their answer.
    yield ValuePair("right, %", 100 * 12 / 380, row["right, %"]["value"], tolerance=1e-6)
    yield ValuePair("wrong, %", 100 * (4 + 64) / 380, row["wrong, %"]["value"], tolerance=1e-6)


def check_experts(bench: Bench) -> Iterator[ValuePair]:
    """Figures 3 and 4, and the concentration of weights in appendix C.5."""
    rows, world = rows_of(bench), make_world(TWO)
    measure = Measure(world)
    for place, name in enumerate(TWO):
        weights = [measure.weights(n, "ours")[place] for n in range(len(world))]
        yield ValuePair(
            f"weight of {name}",
            float(np.mean(weights)),
            rows[name]["weight"]["mean"],
            "terminal",
            1e-5,
        )
        apart = [
            float(np.mean([alike(text, good) > alike(text, bad) for bad, good in pairs]))
            for thing in world
            for text in thing.references[name]
            for pairs in [list(zip(thing.wrong, thing.corrected, strict=True))]
        ]
        value = rows[name]["told apart"]["mean"]
        # The count is of three pairs; some versions print a share.
        scale = 3 if value > 1 or float(np.mean(apart)) * 3 == value else 1
        yield ValuePair(
            f"pairs told apart by {name}", scale * float(np.mean(apart)), value, "terminal", 0.51
        )


LEARNER = """
import re

def model(prompt):
    return "a long answer" if re.search(r"^Answer: .", prompt, re.M) else "no"

def judge(prompt):
    replies = re.search(r"Reply A =+\\n(.*?)\\n=+ Reply B =+\\n(.*?)\\n=+ end", prompt, re.S)
    a, b = map(len, replies.groups())
    return "A" if a > b else "B" if b > a else "C"
"""


def write_icl(bench: Bench) -> None:
    """Two references agree on the right answer, the first one says another: FEWL and the single
    reference choose differently of every question."""
    rows = []
    for number in range(12):
        right, wrong = WORDS[number], WORDS[(number + 1) % 12]
        common = {
            "question": f"what grows in place {number}",
            "references": {"liar": wrong, "one": right, "two": right},
        }
        rows += [
            common | {"id": f"{number}-{text}", "response": text, "label": int(text == right)}
            for text in (right, wrong)
        ]
    bench.rows("rows.jsonl", rows)
    bench.write("learner.py", LEARNER)


def check_icl(bench: Bench) -> Iterator[ValuePair]:
    rows = rows_of(bench)
    yield ValuePair("FEWL won, %", 100.0, rows["FEWL against vanilla"]["won, %"]["value"])
    yield ValuePair("baseline won, %", 100.0, rows["baseline against vanilla"]["won, %"]["value"])
    prompts = bench.read("prompts.jsonl")
    counts = {prompt["own_prompt"].count("Answer:") - 1 for prompt in prompts}
    yield ValuePair("examples in a prompt", [5], sorted(counts), "file")
    texts = {f"Answer: {WORDS[n]}\n" for n in range(12)}
    first = prompts[0]["own_prompt"]
    examples = re.findall(r"Question: what grows in place (\d+)\nAnswer: (\w+)", first)
    yield ValuePair("examples have the best answers", [WORDS[int(n)] for n, _ in examples],
                    [word for _, word in examples], "file")  # fmt: skip
    yield ValuePair("its own question is none of them", True, len(texts) == 12 and "0" not in
                    [n for n, _ in examples], "file")  # fmt: skip


def write_choices(bench: Bench) -> None:
    """Three answers to each question, of which the best is known by hand."""
    world = make_world(TWO)
    rows = [
        record(thing, number) | {"id": f"{number}-{kind}", "response": text}
        for number, thing in enumerate(world)
        for kind, text in enumerate(thing.answers)
    ]
    bench.rows("rows.jsonl", rows)
    for name, kind in (("tuned", 0), ("pretrained", 2)):
        bench.rows(
            f"{name}.jsonl",
            [
                {
                    "id": f"q{n}",
                    "question": t.question,
                    "response": t.answers[kind] + " x" * (n % 3),
                }
                for n, t in enumerate(world)
            ],
        )
    bench.write("learner.py", LEARNER)


def check_chosen(bench: Bench) -> Iterator[ValuePair]:
    """Table 7: the best answer of each question, four questions in five; wins in both orders."""
    world = make_world(TWO)
    measure = Measure(world)
    train = bench.read("chosen/train.jsonl")
    yield ValuePair("questions to train and to test with", [19, 5], [
        len(train), len(bench.read("chosen/test_questions.jsonl"))], "file")  # fmt: skip
    best = {}
    for number, thing in enumerate(world):
        scores = {text: measure.score(number, text) for text in thing.answers}
        best[thing.question] = max(scores, key=scores.__getitem__)
    chosen = {row["messages"][-2]["content"]: row["messages"][-1]["content"] for row in train}
    right = sum(
        text == next((b for q, b in best.items() if q in prompt), "")
        for prompt, text in chosen.items()
    )
    yield ValuePair("best answers chosen", len(train), right, "file")
    firsts, seconds = bench.read("tuned.jsonl"), bench.read("pretrained.jsonl")
    signs = [
        int(np.sign(len(one["response"]) - len(two["response"])))
        for one, two in zip(firsts, seconds, strict=True)
    ]
    won, lost = signs.count(1), signs.count(-1)
    share = 100 * won / (won + lost)
    yield ValuePair("win rate", share, bench.row("win_rate", 1)[0], tolerance=0.06)
    yield ValuePair("won", True, f"{won} won, {lost} lost" in bench.terminal)


def save_tuning(bench: Bench) -> None:
    from tests.tiny_chat import TEMPLATE, save_llama

    save_llama(bench.folder / "llama", positions=256, template=TEMPLATE)
    bench.rows(
        "train.jsonl",
        [
            {
                "messages": [
                    {"role": "user", "content": f"What is thing {n}?"},
                    {"role": "assistant", "content": "the cat sat on the mat"},
                ]
            }
            for n in range(8)
        ],
    )


def check_tuned(bench: Bench) -> Iterator[ValuePair]:
    """The likelihood of the chosen answers, computed with torch before and after."""
    before, after = (log_likelihood(bench, name) for name in ("llama", "tuned"))
    yield ValuePair("tuning raises the answers' likelihood", True, after > before + 0.5, "file")
    losses = re.findall(r"loss\D{0,20}(\d+\.\d+)", bench.terminal)
    printed = float(losses[-1]) if losses else math.nan
    yield ValuePair("the last loss is printed", True, bool(losses) and printed > 0)


def log_likelihood(bench: Bench, name: str) -> float:
    """Return the mean log-probability of the tokens of the answer that is learnt."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(bench.folder / name)
    model = AutoModelForCausalLM.from_pretrained(bench.folder / name, dtype=torch.float32).eval()
    turn = [{"role": "user", "content": "What is thing 3?"}]
    text = tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
    start = tokenizer(text, add_special_tokens=False)["input_ids"]
    answer = tokenizer("the cat sat on the mat", add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        logits = model(torch.tensor([start + answer])).logits[0].log_softmax(-1)
    return float(
        np.mean([float(logits[len(start) - 1 + n, token]) for n, token in enumerate(answer)])
    )


def write_halueval(bench: Bench) -> None:
    world = make_world(FIVE)
    bench.rows(
        "qa_data.json",
        [
            {
                "knowledge": "What is known.",
                "question": thing.question,
                "right_answer": thing.answers[0],
                "hallucinated_answer": thing.answers[2],
            }
            for thing in world
        ],
    )
    write_replies(bench, world)


def check_halueval(bench: Bench) -> Iterator[ValuePair]:
    rows, measure = rows_of(bench), Measure(make_world(FIVE))
    for name, (rule, penalised) in RULES.items():
        expected = measure.won(0, 2, rule, penalised=penalised)
        yield ValuePair(name, expected, rows[name]["right > hallucinated"]["value"])


CATEGORIES = {"sound": 5, "inaccurate": 3, "irrelevant": 2, "self-contradicting": 1}


def write_categories(bench: Bench) -> None:
    kinds = [name for name, count in CATEGORIES.items() for _ in range(count)]
    bench.rows(
        "rows.jsonl",
        [
            {"id": f"q{n}", "question": f"Which {n}?", "response": f"Text {n}.", "answers": [["x"]]}
            for n in range(len(kinds))
        ],
    )
    replies = {f"Text {n}.": f"Verdict: {kind}\nReason: so." for n, kind in enumerate(kinds)}
    bench.write("knows.json", json.dumps({"rater": replies}))


def check_categories(bench: Bench) -> Iterator[ValuePair]:
    total = sum(CATEGORIES.values())
    verdicts = [row["verdict"] for row in bench.assessments("run").values()]
    for name, count in CATEGORIES.items():
        yield ValuePair(name, count, verdicts.count(name), "page")
        printed = re.search(rf"\b{name} ([\d.]+) %", bench.terminal)
        share = float(printed[1]) if printed else None
        yield ValuePair(f"{name}, %", 100 * count / total, share, "terminal", 0.06)


def check_spreads(bench: Bench) -> Iterator[ValuePair]:
    """Table 1 has every share with its spread over repeats."""
    lines = [line for line in bench.terminal.splitlines() if "±" in line]
    yield ValuePair("rows with ±", True, len(lines) >= 4)
    kinds = ("single", "multi", "FEWL")
    yield ValuePair("rows by name", [True] * 3, [any(k in line for line in lines) for k in kinds])


def check_reproduced(bench: Bench) -> Iterator[ValuePair]:
    for table in range(1, 13):
        is_there = bool(re.search(rf"Tables? (\d|,| |to|and)*\b{table}\b", bench.terminal))
        spans = re.findall(r"Tables? (\d+) to (\d+)", bench.terminal)
        is_there |= any(int(first) <= table <= int(last) for first, last in spans)
        yield ValuePair(f"Table {table}", True, is_there)
    yield ValuePair("not comparable is said", True, "not comparable" in bench.terminal.lower())
    yield from compare_pairs(bench)


REPRODUCED = ("trustassay papers reproduce fewl",)
VARIANTS: dict[str, dict[str, Any]] = {
    "js": {"divergence": "js"},
    "kl": {"divergence": "kl"},
    "theory": {"form": "theory"},
}
WEIGHTS: dict[str, dict[str, Any]] = {
    name: {"rule": name} for name in ("uniform", "ideal", "single-best")
}
ITEMS = (
    PaperItem(
        "wei-01", "Equation 1, Algorithm 1", "the score of answers with two references, total "
        "variation",
        (metric_command(""),), check_equation, write_answers),
    PaperItem(
        "wei-02", "Algorithm 1, step 2; appendix C.5", "weights by expertise, at two temperatures",
        (metric_command(""), metric_command(",temperature=0.2", "warm")),
        check_weights, write_answers),
    PaperItem(
        "wei-03", "Section 2.1, footnote 4", "expertise by asking the references yes or no",
        (metric_command(",expertise=ask") + " --reference other=python:scripted:other "
         "--reference third=python:scripted:third",),
        check_asked_expertise, write_asked_expertise),
    PaperItem(
        "wei-04", "Section 2.2, Table 8", "laziness penalty by the nearest, and by random "
        "questions that are not alike",
        (metric_command(""), metric_command(",penalty=random", "random").replace(
            "max_similarity=1", "max_similarity=0.86")),
        check_penalty, write_answers),
    PaperItem(
        "wei-05", "Appendix C.9, section 3.1", "Jensen-Shannon, Kullback-Leibler, and weights "
        "before the divergence",
        tuple(
            metric_command(f",{'form' if name == 'theory' else 'divergence'}={name}", name)
            for name in VARIANTS),
        check_runs(VARIANTS), write_answers),
    PaperItem(
        "wei-06", "Tables 2, 9 and 11", "weights uniform, ideal and of the best reference alone",
        tuple(metric_command(f",weights={name}", name) for name in WEIGHTS),
        check_runs(WEIGHTS), write_answers),
    PaperItem(
        "wei-07", "Tables 1, 2 and 11", "CHALE, one reference with five answers: shares that are "
        "higher than half and whole hallucinations, by four rules and three ablations",
        (experiment("fewl-pairs", "chale.json", ASKED),), check_chale(MORE_RULES), write_chale),
    PaperItem(
        "wei-08", "Table 12", "the same by Jensen-Shannon and Kullback-Leibler",
        (experiment("fewl-pairs", "chale.json", ASKED),), check_divergences, write_chale),
    PaperItem(
        "wei-09", "Tables 1 to 3, ±", "the spread over repeats",
        REPRODUCED, check_spreads),
    PaperItem(
        "wei-10", "Tables 3 and 9", "questions whose best answer scores highest",
        (experiment("fewl-best", "rows.jsonl"),), check_best, write_best),
    PaperItem(
        "wei-11", "Table 4", "accuracy with five choices, and models by mean score",
        ("trustassay papers experiment five-choice choices.jsonl --model "
         "good=python:scripted:answers --model fair=python:scripted:third --model "
         "poor=python:scripted:other --json --out choices",
         experiment("fewl-rank", "rows.jsonl")),
        check_ranked, write_ranked),
    PaperItem(
        "wei-12", "Table 5", "answers of two models in order, by the TQA metric",
        (experiment("fewl-samples", "rows.jsonl"),), check_pairs_of_models, write_ranked),
    PaperItem(
        "wei-13", "Figure 2", "answers to neighbouring questions are seldom right",
        ("trustassay papers experiment fewl-neighbours rows.jsonl --neighbours 19 --max-similarity "
         "1 --embedder python:scripted:letters --json --out out",),
        check_near, write_near),
    PaperItem(
        "wei-14", "Figures 3 and 4, appendix C.4 and C.5", "pairs that each reference tells apart, "
        "and its weight",
        (experiment("fewl-experts", "rows.jsonl"),), check_experts, write_best),
    PaperItem(
        "wei-15", "Appendix C.1", "25 wrong and corrected answers in one call, by our prompt or "
        "one's own",
        (five_command("", "run") + " --backend generator=python:scripted:writer",
         five_command(",pairs=3,pairs_prompt=pairs.jinja", "mine")
         + " --backend generator=python:scripted:writer --cache off"),
        check_pairs, write_responses),
    PaperItem(
        "wei-16", "Section 4.1", "five answers of one reference in one call, by our prompt or "
        "one's own",
        (five_command(",weights=uniform", "run"),
         five_command(",weights=uniform,answers_prompt=five.jinja", "mine") + " --cache off"),
        check_five, write_responses),
    PaperItem(
        "wei-17", "Section 5.1, Table 6", "in-context examples chosen by the score",
        ("trustassay papers experiment fewl-icl rows.jsonl --backend similarity=novel --examples 2 "
         "--embedder python:scripted:letters --model python:learner:model --judge "
         "python:learner:judge --json --out out",
         "trustassay papers select icl rows.jsonl --backend similarity=novel --embedder "
         "python:scripted:letters --all --by score --out prompts.jsonl"),
        check_icl, write_icl),
    PaperItem(
        "wei-18", "Section 5.2, Table 7, appendix C.10", "training data by the score, and a "
        "judge's win rate in both orders",
        ("trustassay papers select sft rows.jsonl --metric fewl:neighbours=3,max_similarity=1 "
         f"{SAME} --out chosen",
         "trustassay compare tuned.jsonl pretrained.jsonl --judge python:learner:judge "
         "--run pairs"),
        check_chosen, write_choices),
    PaperItem(
        "wei-19", "Section 5.2", "a local model tuned on chosen answers",
        ("trustassay papers tune train.jsonl --model hf:llama --full --steps 30 --learning-rate "
         "0.01 --out tuned",),
        check_tuned, save_tuning, slow=True),
    PaperItem(
        "wei-20", "Table 10", "HaluEval as it is published",
        (experiment("fewl-pairs", "qa_data.json", ASKED),), check_halueval, write_halueval),
    PaperItem(
        "wei-21", "Appendix A", "categories of hallucinations, by a judge",
        ("trustassay score rows.jsonl --metric judge:rubric=categories --judge "
         "python:scripted:rater --out run",),
        check_categories, write_categories),
    PaperItem(
        "wei-22", "Tables 1 to 12", "all tables in one command, with no key",
        REPRODUCED, check_reproduced),
)  # fmt: skip
