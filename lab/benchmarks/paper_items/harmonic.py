"""The items of Harmonic LLMs are Trustworthy (Kersting et al. 2024)."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from statistics import stdev
from typing import Any

import numpy as np

from lab.benchmarks.paper_items.fewl_by_hand import letters
from lab.benchmarks.paper_items.reproduced import compare_harmonicity
from lab.benchmarks.paper_items.running import Bench, PaperItem, ValuePair
from lab.benchmarks.paper_items.servers import serve_embeddings

PLANE = "--embedder python:scripted:directions"
KINDS = ("It is @0.", "It is @20.", "It is @50.")
"""What the model ``wavering`` says; @N is the direction of the answer's vector, in degrees."""
MODELS = ("alpha", "beta")
DOMAINS = ("web", "code", "truth")
RATERS = ("ann", "bo", "cy", "di")


def direction_of(text: str) -> np.ndarray:
    """Return the unit vector that the embedder ``directions`` gives."""
    degrees = float((re.findall(r"@(-?\d+)", text) or ["0"])[-1])
    return np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])


def gamma_of(original: str, others: Sequence[str]) -> float:
    """Return the sine of the angle between an answer's vector and the sum of the others'."""
    first, total = direction_of(original), sum(direction_of(text) for text in others)
    cosine = float(first @ total / np.linalg.norm(first) / np.linalg.norm(total))
    return float(np.sqrt(max(0.0, 1 - cosine**2)))


def write_recorded(bench: Bench) -> None:
    bench.rows("rows.jsonl", RECORDED)


RECORDED: tuple[dict[str, Any], ...] = tuple(
    {
        "id": name,
        "question": f"Which {name}?",
        "response": original,
        "resamples": list(others),
    }
    for name, original, others in (
        # Table 1: ten equal answers. Table 2: a small change. Tables 3 and 4: many.
        ("equal", "It is @0.", ["It is @0."] * 10),
        ("near", "It is @0.", ["It is @0.", *["It is @3."] * 9]),
        ("far", "It is @0.", [f"It is @{10 * n}." for n in range(10)]),
        ("opposite", "It is @10.", [f"It is @{-60 + n}." for n in range(10)]),
    )
)


def check_recorded(bench: Bench) -> Iterator[ValuePair]:
    scores = dict(zip((row["id"] for row in RECORDED), bench.scores("run"), strict=True))
    for row in RECORDED:
        gamma = gamma_of(row["response"], row["resamples"])
        place = bench.on_page("run/report.html", f"{gamma:.2f}")
        yield ValuePair(f"gamma of {row['id']}", gamma, scores[row["id"]], place, 1e-6)
    mean = float(np.mean([gamma_of(row["response"], row["resamples"]) for row in RECORDED]))
    yield ValuePair("mean", mean, bench.row("mean")[0], tolerance=6e-4)


def write_questions(bench: Bench) -> None:
    questions = [
        {"id": f"q{n}", "question": f"How large is the tower number {n} of the city?"}
        for n in range(4)
    ]
    bench.rows("questions.jsonl", questions)
    bench.write("knows.json", json.dumps({"wavering": {"kinds": KINDS}}))


def reply_of(prompt: str) -> str:
    """Return what the model ``wavering`` replies."""
    return KINDS[zlib.crc32(prompt.encode()) % len(KINDS)]


def asked_by_question(bench: Bench) -> dict[str, list[str]]:
    """Return the perturbed prompts that the model received for each question."""
    questions = [row["question"] for row in bench.read("questions.jsonl")]
    texts = [request["text"] for request in bench.asked("wavering")]
    return {
        question: [text for text in texts if text.startswith(question) and text != question]
        for question in questions
    }


def check_asked(bench: Bench) -> Iterator[ValuePair]:
    """The ball: ten times one to three characters of ASCII 0 to 31, at the end of the question."""
    for question, prompts in asked_by_question(bench).items():
        yield ValuePair(f"perturbed prompts of {question}", 10, len(prompts), "file")
        tails = [prompt[len(question) :] for prompt in prompts]
        fits = [1 <= len(tail) <= 3 and all(ord(one) < 32 for one in tail) for tail in tails]
        yield ValuePair("of one to three control characters", [True] * 10, fits, "file")
    rows = {row["id"]: row["score"] for row in bench.assessments("run").values()}
    for number, (question, prompts) in enumerate(asked_by_question(bench).items()):
        gamma = gamma_of(reply_of(question), [reply_of(prompt) for prompt in prompts])
        place = bench.on_page("run/report.html", f"{gamma:.2f}")
        yield ValuePair(f"gamma of q{number}", gamma, rows[f"q{number}"], place, 1e-6)


def check_bare(bench: Bench) -> Iterator[ValuePair]:
    """The question alone, without a system message, at temperature 0; all calls counted."""
    requests = bench.asked("wavering")
    questions = [row["question"] for row in bench.read("questions.jsonl")]
    bare = sorted(one["text"] for one in requests if one["text"] in questions)
    yield ValuePair("bare questions", sorted(questions), bare, "file")
    yield ValuePair("temperatures", [0.0], sorted({one["temperature"] for one in requests}), "file")
    yield ValuePair("turns", [1], sorted({one["turns"] for one in requests}), "file")
    calls = re.findall(r"asked \S+: (\d+) calls", bench.terminal)
    yield ValuePair("calls that are printed", [str(len(questions) * 11)], calls)


def check_ball(bench: Bench) -> Iterator[ValuePair]:
    yield from check_asked(bench)
    yield from check_bare(bench)


def check_sizes(bench: Bench) -> Iterator[ValuePair]:
    """N of 1 and of 100, from the same replies."""
    question = bench.read("questions.jsonl")[0]["question"]
    texts = [one["text"] for one in bench.asked("wavering")]
    others = [text for text in texts if text.startswith(question) and text != question]
    # The larger ball was asked second; its first call may be one of the smaller.
    for run, size, prompts in (("one", 1, others[:1]), ("hundred", 100, others[-100:])):
        [row] = bench.assessments(run).values()
        yield ValuePair(f"size of {run}", size, row["parts"]["perturbations"], "file")
        answers = [one["answer"] for one in row["evidence"] if "answer" in one]
        gamma = gamma_of(reply_of(question), answers)
        yield ValuePair(f"gamma of {run}", gamma, row["score"], "file", 1e-6)
        yield ValuePair(f"replies of {run}", size, len(set(prompts)), "file")


FAMILIES = ("unicode", "codes", "whitespace", "typo", "synonym", "paraphrase")


def check_families(bench: Bench) -> Iterator[ValuePair]:
    """Each family changes the prompt in its own way; gamma follows from the replies."""
    for family in FAMILIES:
        [row] = bench.assessments(f"run-{family}").values()
        answers = [one["answer"] for one in row["evidence"] if "answer" in one]
        original = next(one["original"] for one in row["evidence"] if "original" in one)
        gamma = gamma_of(original, answers)
        place = bench.on_page(f"run-{family}/report.html", f"{gamma:.2f}")
        yield ValuePair(f"gamma by {family}", gamma, row["score"], place, 1e-6)
    texts = [request["text"] for request in bench.asked("wavering")]
    question = bench.read("questions.jsonl")[0]["question"]
    rare = [text for text in texts if any(ord(one) > 127 and one.isalpha() for one in text)]
    yield ValuePair("prompts with rare letters", 5, len(rare), "file")
    codes = [text for text in texts if re.fullmatch(re.escape(question) + r" [\x00-\x1f]+", text)]
    # A blank, tab or line end may come from the family whitespace, too.
    yield ValuePair("prompts with a blank and codes", True, len(codes) >= 5, "file")


def check_isotropy(bench: Bench) -> Iterator[ValuePair]:
    """Cosine of each question with the mean of its perturbed vectors, and the angle of its cone."""
    family = bench.json(0)["families"][0]
    texts = [row["text"] for row in bench.read("embedded.jsonl")]
    questions = [row["question"] for row in bench.read("questions.jsonl")]
    cones, cosines = [], []
    for question in questions:
        others = [
            codes_of(text) for text in texts if text.startswith(question) and text != question
        ]
        first = codes_of(question)
        mean = np.mean([one / np.linalg.norm(one) for one in others], axis=0)
        cosines.append(cosine_of(first, mean))
        cones.append(np.degrees(np.arccos(min(1.0, cosine_of(first, mean)))))
    value = family["cosines"]["of_mean"]["value"]
    printed = bench.row("cosine of the mean")[0]
    yield ValuePair("cosine of the mean", float(np.mean(cosines)), value, "terminal", 1e-5)
    yield ValuePair("printed", float(np.mean(cosines)), printed, "terminal", 6e-5)
    cone = family["cone_degrees"]["value"]
    yield ValuePair("cone, degrees", float(np.mean(cones)), cone, "terminal", 0.02)
    below = "11" in bench.terminal
    yield ValuePair("the paper's 11 degrees stand beside it", True, below)


def codes_of(text: str) -> np.ndarray:
    """Return counts of characters by code modulo 61, as the embedder of this item does."""
    return np.bincount([ord(one) % 61 for one in text], minlength=61) + 0.01


def cosine_of(first: np.ndarray, second: np.ndarray) -> float:
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


CODES = """
import json
from pathlib import Path
import numpy as np

class Codes:
    name = "codes"

    def vectors(self, texts):
        with (Path(__file__).parent / "embedded.jsonl").open("a") as file:
            file.writelines(json.dumps({"text": text}) + "\\n" for text in texts)
        rows = [np.bincount([ord(one) % 61 for one in text], minlength=61) for text in texts]
        return np.array(rows, dtype=np.float32) + 0.01

codes = Codes()
"""


def write_isotropy(bench: Bench) -> None:
    questions = [
        {"id": f"q{n}", "question": f"How old is the {n + 2}nd bridge?"} for n in range(30)
    ]
    bench.rows("questions.jsonl", questions)
    bench.write("codes.py", CODES)


def write_rated(bench: Bench) -> None:
    """Three domains, two models, four raters from 0 to 5; gamma rises with the number."""
    rows, ratings = [], ["item,rater,rating"]
    for n in range(48):
        angle = (n * 5) % 60 if n % 2 else (n * 7) % 50
        rows.append(
            {
                "id": f"r{n}",
                "model": MODELS[n % 2],
                "domain": DOMAINS[n // 2 % 3],
                "question": f"Which tower is number {n}?",
                "response": "It is @0.",
                "resamples": [f"It is @{angle}."] * 2,
            }
        )
        for place, rater in enumerate(RATERS):
            level = 5 - angle // 12 - (1 if (n + place) % 5 == 0 else 0)
            ratings.append(f"r{n},{rater},{max(0, level)}")
    bench.rows("rows.jsonl", rows)
    for model in MODELS:
        bench.rows(f"{model}.jsonl", [row for row in rows if row["model"] == model])
    bench.write("ratings.csv", "\n".join(ratings) + "\n")


def rated_rows(bench: Bench) -> list[dict[str, Any]]:
    """Return model, domain, gamma and mean rating of each answer."""
    ratings: dict[str, list[int]] = {}
    for line in (bench.folder / "ratings.csv").read_text().splitlines()[1:]:
        item, _, rating = line.split(",")
        ratings.setdefault(item, []).append(int(rating))
    return [
        row
        | {
            "gamma": gamma_of(row["response"], row["resamples"]),
            "ratings": ratings[row["id"]],
            "rating": float(np.mean(ratings[row["id"]])),
        }
        for row in bench.read("rows.jsonl")
    ]


def check_kappa(bench: Bench) -> Iterator[ValuePair]:
    """Fleiss's kappa of four annotators over six levels."""
    counts = np.array(
        [[row["ratings"].count(level) for level in range(6)] for row in rated_rows(bench)]
    )
    raters = counts.sum(axis=1)[0]
    agreement = ((counts**2).sum(axis=1) - raters) / (raters * (raters - 1))
    chance = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    kappa = (float(agreement.mean()) - chance) / (1 - chance)
    yield ValuePair("Fleiss's kappa", kappa, bench.row("Fleiss's kappa")[0], tolerance=6e-4)


def bracketed(values: Sequence[float], digits: int) -> str:
    """Write a mean with its standard error in units of the last digit: 0.063(4)."""
    error = stdev(values) / len(values) ** 0.5
    return f"{np.mean(values):.{digits}f}({round(error * 10**digits)})"


def check_tables(bench: Bench) -> Iterator[ValuePair]:
    """Tables 8 to 10: of each model and domain the means of gamma and rating, and those of gamma
    below 0.05, as the paper writes them."""
    text = bench.text_of_page("run/report.html")
    start = text.index("By model and domain")
    table = text[start : start + 4000]
    rows = rated_rows(bench)
    for domain in DOMAINS:
        part = table[table.index(f" {domain} ") :]
        for model in MODELS:
            chosen = [row for row in rows if row["domain"] == domain and row["model"] == model]
            stable = [row for row in chosen if row["gamma"] < 0.05]
            cells = part[part.index(f"{model} ") :].split()[1:7]
            expected = [bracketed([row["gamma"] for row in chosen], 3)]
            expected.append(bracketed_or_dash([row["gamma"] for row in stable], 3))
            expected.append(f"{100 * len(stable) / len(chosen):.1f}")
            expected.append(bracketed([row["rating"] for row in chosen], 2))
            expected.append(bracketed_or_dash([row["rating"] for row in stable], 2))
            expected.append(str(len(chosen)))
            yield ValuePair(f"{domain}, {model}", expected, cells, "page")


def bracketed_or_dash(values: Sequence[float], digits: int) -> str:
    if not values:
        return "–"
    return bracketed(values, digits) if len(values) > 1 else f"{values[0]:.{digits}f}"


def check_line(bench: Bench) -> Iterator[ValuePair]:
    """Figure 1: mean rating of each bin of gamma, and the line with m and b, of all answers."""
    rows = rated_rows(bench)
    gammas, ratings = (np.array([row[key] for row in rows]) for key in ("gamma", "rating"))
    slope, intercept = np.polyfit(gammas, ratings, 1)
    text = bench.text_of_page("run/report.html").replace("−", "-")
    part = text[text.index("Human ratings by score") :]
    printed = [float(re.search(rf"{name} = (-?[\d.]+)", part)[1]) for name in "mb"]  # type: ignore[index]
    yield ValuePair("m, b", [float(slope), float(intercept)], printed, "page", 6e-3)
    edges = re.findall(r"([\d.]+) to ([\d.]+): ([\d.]+)\S* of (\d+) rating", part)[:10]
    bins = [(float(low), float(high)) for low, high, _, _ in edges]
    last = max(index for index, (low, _) in enumerate(bins) if low >= bins[0][0])
    first_chart = bins[: next((k for k in range(1, last + 1) if bins[k] < bins[k - 1]), last + 1)]
    for place, (low, high) in enumerate(first_chart):
        # The edges are printed with two digits.
        inside = [r for g, r in zip(gammas, ratings, strict=True) if low - 6e-3 <= g < high + 6e-3]
        count = int(edges[place][3])
        if count == len(inside):
            mean = float(edges[place][2])
            yield ValuePair(
                f"rating of {low} to {high}", float(np.mean(inside)), mean, "page", 6e-3
            )


def check_distributions(bench: Bench) -> Iterator[ValuePair]:
    """Figure 2: how gamma is distributed, by model and domain."""
    text = bench.text_of_page("models.html")
    part = text[text.index("Scores by model and domain") :]
    rows = rated_rows(bench)
    for domain in DOMAINS:
        of_domain = part[part.index(f" {domain} ") :]
        for model in MODELS:
            chosen = [r["gamma"] for r in rows if r["domain"] == domain and r["model"] == model]
            of_model = of_domain[of_domain.index(f"{model} ") :]
            cells = of_model.split()[1:4]
            expected = [bracketed(chosen, 3), "n", str(len(chosen))]
            yield ValuePair(f"{domain}, {model}", expected, cells, "page")
            drawn = re.match(rf"{model} \S+ n \d+ ((?:[\d.]+ to [\d.]+: [\d.]+ % ?)+)", of_model)
            bins = re.findall(r"([\d.]+) to [\d.]+: ([\d.]+) %", drawn[1] if drawn else "")
            total = sum(float(share) for _, share in bins)
            yield ValuePair(f"shares of {domain}, {model}", 100.0, total, "page", 0.5)
            high = max(float(low) for low, _ in bins)
            # The bins' edges are printed with two digits.
            share = sum(float(share) for low, share in bins if float(low) == high)
            above = 100 * float(np.mean([gamma >= high - 6e-3 for gamma in chosen]))
            yield ValuePair(f"last bin of {domain}, {model}", above, share, "page", 0.06)


def check_attack(bench: Bench) -> Iterator[ValuePair]:
    """Ascent in gamma: every round starts from the best candidate of the one before."""
    lines = [
        (line.startswith("*"), float(line.split("gamma")[1].split()[0]))
        for line in bench.terminal.splitlines()
        if re.match(r"[* ] step \d+  gamma", line)
    ]
    taken = [gamma for is_taken, gamma in lines if is_taken]
    yield ValuePair("gamma rises with each step that is taken", sorted(taken), taken)
    trace = bench.read("attack/trace.jsonl")
    flat = json.dumps(trace)
    yield ValuePair("steps in the trace", True, flat.count("gamma") >= len(lines), "file")
    last = re.search(r"gamma ([\d.]+) -> ([\d.]+)", bench.terminal)
    ends = [float(last[1]), float(last[2])] if last else []
    yield ValuePair("first and best gamma", [taken[0], max(taken)], ends, tolerance=6e-4)
    prompt = "Name the highest tower."
    nearby = [one["text"] for one in bench.asked("wavering") if one["text"].startswith(prompt)]
    ball = [text for text in nearby if text != prompt][:10]
    gamma = gamma_of(reply_of(prompt), [reply_of(text) for text in ball])
    yield ValuePair("gamma of the prompt itself", gamma, taken[0], tolerance=6e-4)


def write_wavering(bench: Bench) -> None:
    bench.write("knows.json", json.dumps({"wavering": {"kinds": KINDS}}))


def check_descent(bench: Bench) -> Iterator[ValuePair]:
    taken = [
        float(line.split("gamma")[1].split()[0])
        for line in bench.terminal.splitlines()
        if re.match(r"\* step \d+  gamma", line)
    ]
    yield ValuePair("gamma falls", sorted(taken, reverse=True), taken)
    last = re.search(r"gamma ([\d.]+) -> ([\d.]+)", bench.terminal)
    ends = [float(last[1]), float(last[2])] if last else []
    yield ValuePair("first and least gamma", [taken[0], min(taken)], ends, tolerance=6e-4)


def write_meanings(bench: Bench) -> None:
    """Answers that say k1 in other words, and such as say another thing."""
    cases = {
        "reworded": ["It is =k1 k1.", "Yes, =k1 k1.", "So =k1 k1."],
        "other": ["It is =k2 k2.", "Well, =k3 k3.", "It is =k4 k4."],
        "half": ["It is =k1 k1.", "It is =k2 k2."],
    }
    rows = [
        {"id": name, "question": "Which?", "response": "Here =k1 k1.", "resamples": texts}
        for name, texts in cases.items()
    ]
    bench.rows("rows.jsonl", rows)


def check_meanings(bench: Bench) -> Iterator[ValuePair]:
    """By meaning a reworded answer is stable, and another one is not."""
    rows = bench.assessments("run")
    expected = {"reworded": "stable", "other": "unstable"}
    for name, verdict in expected.items():
        place = bench.on_page("run/report.html", verdict)
        yield ValuePair(f"verdict of {name}", verdict, rows[name]["verdict"], place)
    scores = [rows[name]["score"] for name in ("reworded", "half", "other")]
    # The entailer says 0.9 of what is the same, 0.05 of what is not, either way round.
    same, different = 0.9, 0.05
    means = [1 - same, 1 - (same + different) / 2, 1 - different]
    place = bench.on_page("run/report.html", f"{means[0]:.2f}")
    yield ValuePair("1 less the mean entailment", means, scores, place, 1e-6)


def save_llama(bench: Bench) -> None:
    from tests.tiny_chat import save_llama as save

    save(bench.folder / "llama", positions=512)
    bench.rows("questions.jsonl", [{"id": f"q{n}", "question": f"cat {n} sat"} for n in range(3)])


def check_white_box(bench: Bench) -> Iterator[ValuePair]:
    """At radius 0 nothing moves; the same replies come twice; gamma follows from the answers."""
    still = bench.scores("still")
    yield ValuePair("gamma at a tiny radius", [0.0] * 3, still, bench.where("0.000"), 1e-6)
    yield ValuePair("the same again", bench.scores("first"), bench.scores("second"), "file")
    for row in bench.assessments("first").values():
        answers = [one["answer"] for one in row["evidence"] if "answer" in one]
        original = next(one["original"] for one in row["evidence"] if "original" in one)
        gamma = letters_gamma(original, answers)
        place = bench.on_page("first/report.html", f"{gamma:.2f}")
        yield ValuePair(f"gamma of {row['id']}", gamma, row["score"], place, 1e-5)
    moved = [score > 0 for score in bench.scores("first")]
    yield ValuePair("a large radius moves an answer", True, any(moved), "file")


def letters_gamma(original: str, others: Sequence[str]) -> float:
    """Return gamma by counts of letters."""

    first, total = letters(original), np.sum([letters(text) for text in others], axis=0)
    return float(np.sqrt(max(0.0, 1 - cosine_of(first, total) ** 2)))


def check_ada(bench: Bench) -> Iterator[ValuePair]:
    """The embedding of an endpoint by the name of the paper's, with the paper's bound."""
    check_rows = list(check_recorded(bench))
    yield from check_rows
    yield ValuePair("bound", True, "stable below 0.05" in bench.terminal)
    share = float(np.mean([gamma_of(r["response"], r["resamples"]) < 0.05 for r in RECORDED]))
    yield bench.figure("stable_share", 100 * share, "run", "harmonicity")


def write_two_models(bench: Bench) -> None:
    """The answers of two models to the same questions; ``answers`` is steady, ``wavering`` not."""
    rows = [
        {"id": f"{model}-{n}", "model": model, "question": f"How high is tower {n}?"}
        for model in ("steady", "loose")
        for n in range(6)
    ]
    for row in rows:
        row["response"] = "It is @0." if row["model"] == "steady" else reply_of(row["question"])
    bench.rows("rows.jsonl", rows)
    bench.write(
        "knows.json", json.dumps({"wavering": {"kinds": KINDS}, "answers": {"tower": "It is @0."}})
    )


def check_two_models(bench: Bench) -> Iterator[ValuePair]:
    """Each model's row comes from its own replies."""
    steady = {one["text"] for one in bench.asked("answers")}
    loose = [one["text"] for one in bench.asked("wavering")]
    gammas = []
    for n in range(6):
        question = f"How high is tower {n}?"
        others = [text for text in loose if text.startswith(question) and text != question]
        gammas.append(gamma_of(reply_of(question), [reply_of(text) for text in others]))
    yield ValuePair("prompts of the steady model", True, len(steady) >= 60, "file")
    yield ValuePair("steady", 0.0, bench.row("steady")[0], tolerance=6e-4)
    yield ValuePair("loose", float(np.mean(gammas)), bench.row("loose")[0], tolerance=6e-4)


def check_reproduced(bench: Bench) -> Iterator[ValuePair]:
    for table in (1, 2, 3, 4, 8, 9, 10, 11, 12, 13):
        pattern = rf"Tables? (\d|,| |to|and)*\b{table}\b"
        is_there = bool(re.search(pattern, bench.terminal)) or spans_table(bench.terminal, table)
        yield ValuePair(f"Table {table}", True, is_there)
    yield ValuePair("map by gamma", True, bool(re.search(r"(?i)gamma map", bench.terminal)))
    yield from compare_harmonicity(bench)


def spans_table(text: str, table: int) -> bool:
    """Whether "Tables A to B" covers a table."""
    spans = re.findall(r"Tables? (\d+) to (\d+)", text)
    return any(int(first) <= table <= int(last) for first, last in spans)


def check_rubrics(bench: Bench) -> Iterator[ValuePair]:
    """Both scales from 0 to 5, and what a judge's level comes to."""
    for number in (0, 1):
        levels = [
            int(line.split()[0])
            for line in (bench.printed[number] + bench.messages[number]).splitlines()
            if re.match(r"\s*\d\s+\d\s+(yes|no)", line)
        ]
        yield ValuePair(f"levels of scale {number + 1}", [5, 4, 3, 2, 1, 0], levels)
    for run, level in (("answer", 3.0), ("code", 4.0)):
        [score] = bench.scores(run)
        place = bench.on_page(f"{run}/report.html", f"{level:.2f}")
        yield ValuePair(f"level by {run}", level, score, place)
        prompts = [one["text"] for one in bench.asked("rater") if run in one["prompt"]]
        yield ValuePair(f"prompts by {run}", 1, len(prompts), "file")


def write_judged(bench: Bench) -> None:
    bench.rows("rows.jsonl", [{"id": "a", "question": "Sum two numbers.", "response": "a + b"}])
    replies = {"code": "Score: 4\nReason: r", "": "Score: 3\nReason: r"}
    bench.write("knows.json", json.dumps({"rater": replies}))


def harmonic(options: str, run: str, model: str = "python:scripted:wavering") -> str:
    return (
        f"trustassay score questions.jsonl --metric harmonicity{options} --model {model} {PLANE} "
        f"--out {run}"
    )


def one_question(bench: Bench) -> None:
    write_questions(bench)
    bench.rows("questions.jsonl", bench.read("questions.jsonl")[:1])


RATED = (
    f"trustassay score rows.jsonl --metric harmonicity {PLANE} --out run",
    "trustassay report run --ratings ratings.csv",
)
ATTACK = (
    f"trustassay papers attack 'Name the highest tower.' --model python:scripted:wavering {PLANE} "
    "--steps 3 --candidates 4"
)
Checks = Callable[[Bench], Iterator[ValuePair]]
ITEMS = (
    PaperItem(
        "kersting-01", "Algorithm 1, Tables 1 to 4", "gamma of recorded answers: equal, near, far",
        (f"trustassay score rows.jsonl --metric harmonicity {PLANE} --out run",),
        check_recorded, write_recorded),
    PaperItem(
        "kersting-02", "Sections 1, 3 and 4", "the bare question at temperature 0, ten prompts "
        "with one to three control characters at the end, and gamma of the replies",
        (harmonic("", "run"),), check_ball, write_questions),
    PaperItem(
        "kersting-03", "Section 6, N", "balls of 1 and of 100",
        (harmonic(":perturbations=1", "one"), harmonic(":perturbations=100", "hundred")),
        check_sizes, one_question),
    PaperItem(
        "kersting-04", "Section 6, perturbations", "rare letters, misspellings, synonyms, "
        "paraphrases",
        tuple(
            harmonic(f":perturbation={family},perturbations=5", f"run-{family}")
            for family in FAMILIES),
        check_families, one_question),
    PaperItem(
        "kersting-05", "Section 3, footnote 3", "isotropy: the cone of perturbed questions",
        ("trustassay papers isotropy questions.jsonl --perturbation control --perturbations 10 "
         "--embedder python:codes:codes --json",),
        check_isotropy, write_isotropy),
    PaperItem(
        "kersting-06", "Tables 5 and 6", "scales from 0 to 5 for answers and for code",
        ("trustassay rubric check answer", "trustassay rubric check code",
         "trustassay score rows.jsonl --metric judge:rubric=answer --judge python:scripted:rater "
         "--out answer",
         "trustassay score rows.jsonl --metric judge:rubric=code --judge python:scripted:rater "
         "--out code"),
        check_rubrics, write_judged),
    PaperItem(
        "kersting-07", "Section 4", "Fleiss's kappa of four annotators",
        ("trustassay agree ratings.csv --levels 0..5",), check_kappa, write_rated),
    PaperItem(
        "kersting-08", "Tables 8 to 10", "gamma and rating of each model and domain, all and below "
        "0.05, with standard errors",
        RATED, check_tables, write_rated),
    PaperItem(
        "kersting-09", "Figure 1", "ratings by bins of gamma, with the line's m and b",
        RATED, check_line, write_rated),
    PaperItem(
        "kersting-10", "Figure 2", "distributions of gamma by model and domain",
        (*(f"trustassay score {name}.jsonl --metric harmonicity {PLANE} --out {name}"
           for name in MODELS),
         "trustassay report alpha beta --out models.html"),
        check_distributions, write_rated),
    PaperItem(
        "kersting-11", "Section 5, Tables 11 and 12", "adversarial prompts by ascent in gamma",
        (f"{ATTACK} --out attack",), check_attack, write_wavering),
    PaperItem(
        "kersting-12", "Section 6", "stable prompts by descent",
        (f"{ATTACK} --descend --out attack",), check_descent, write_wavering),
    PaperItem(
        "kersting-13", "Section 6", "a semantic interpreter in place of the angle",
        ("trustassay score rows.jsonl --metric semantic_harmonicity --entailer "
         "python:scripted:marks --out run",),
        check_meanings, write_meanings),
    PaperItem(
        "kersting-14", "Section 1 and 6, white box", "perturbed input embeddings of a local model",
        tuple(
            f"trustassay score questions.jsonl --metric harmonicity:perturbation=embeddings,"
            f"radius={radius},max_tokens=12,perturbations=4 --model hf:llama --embedder "
            f"python:scripted:letters --out {run}"
            for run, radius in (("still", "0.000001"), ("first", 2), ("second", 2))),
        check_white_box, save_llama, slow=True),
    PaperItem(
        "kersting-15", "Section 3, ada-002", "embeddings of an endpoint under the paper's name, "
        "bound 0.05",
        ("trustassay score rows.jsonl --metric harmonicity --embedder "
         "'openai:text-embedding-ada-002@SERVER/v1?key=' --out run",),
        check_ada, serve_embeddings(write_recorded)),
    PaperItem(
        "kersting-16", "Section 4", "several models in one run, each asked for its own rows",
        ("trustassay score rows.jsonl --metric harmonicity --model steady=python:scripted:answers "
         f"--model loose=python:scripted:wavering {PLANE} --out run",),
        check_two_models, write_two_models),
    PaperItem(
        "kersting-17", "Tables 1 to 4, 8 to 13, outlook", "all tables and the map coloured by "
        "gamma in one command, with no key",
        ("trustassay papers reproduce harmonicity",), check_reproduced),
)  # fmt: skip
