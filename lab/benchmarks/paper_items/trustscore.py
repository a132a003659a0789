"""The items of TrustScore (Zheng et al. 2024)."""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from lab.benchmarks.paper_items.reproduced import compare_trustscore
from lab.benchmarks.paper_items.running import Bench, PaperItem, ValuePair
from lab.benchmarks.paper_items.servers import answer_as_dbpedia, start_server
from lab.benchmarks.paper_items.sets import save_wordnet

SYSTEMS = ("flan", "llama", "gpt")
Json = dict[str, Any]


# ---- behavioural consistency ----

CHOSEN = {"steady": None, "twice": 2, "never": 0}
"""How often the model takes its own answer; ``None`` is always."""
MAX_CHECKS = 10


def write_checked(bench: Bench) -> None:
    """Three answers with thirty distractors each; the model takes its own as often as it says."""
    rows, knows = [], {}
    for name, times in CHOSEN.items():
        question, answer = f"Who built the {name} tower?", f"Ida Roth built the {name} tower."
        rows.append(
            {
                "id": name,
                "question": question,
                "response": answer,
                "wrong_answers": [f"Otto Kern{n:02d} built the {name} tower." for n in range(30)],
            }
        )
        knows[question] = {"answer": answer} | ({} if times is None else {"times": times})
    bench.rows("rows.jsonl", rows)
    bench.write("knows.json", json.dumps({"chooser": knows}))


def check_consistency(bench: Bench) -> Iterator[ValuePair]:
    """1 after ten choices of itself, 0 at the first other one, where the checks end."""
    rows = bench.assessments("run")
    expected_calls = {"steady": MAX_CHECKS, "twice": 3, "never": 1}
    for name in CHOSEN:
        expected = 1.0 if name == "steady" else 0.0
        place = bench.on_page("run/report.html", f"{expected:.2f}")
        yield ValuePair(f"Trust_BC of {name}", expected, rows[name]["score"], place)
        calls = [one for one in bench.asked("chooser") if f"the {name} tower?" in one["text"]]
        yield ValuePair(f"checks of {name}", expected_calls[name], len(calls), "file")
    printed = re.findall(r"asked \S+: (\d+) calls", bench.terminal)
    yield ValuePair("calls that are printed", [str(sum(expected_calls.values()))], printed)
    yield bench.figure("mean", 1 / 3, "run", "consistency", 1e-6)


def check_options(bench: Bench) -> Iterator[ValuePair]:
    """Three distractors, the answer and none of them; other distractors at each check."""
    row = bench.assessments("run")["steady"]
    checks = [one for one in row["evidence"] if "options" in one]
    sizes = [len(check["options"]) for check in checks]
    yield ValuePair("options besides the last", [4] * MAX_CHECKS, sizes, "page")
    distractors = [o["text"] for check in checks for o in check["options"] if "source" in o]
    yield ValuePair("different distractors", 3 * MAX_CHECKS, len(set(distractors)), "page")
    last = [one["text"].rpartition("E) ")[2].split("\n")[0] for one in bench.asked("chooser")]
    yield ValuePair("fifth option", ["None of the above."], sorted(set(last)), "file")
    text = bench.text_of_page("run/report.html")
    marks = [text.count("built the steady tower. its answer") > 0, "None of the above" in text]
    yield ValuePair("the page marks the answer and the last option", [True, True], marks, "page")


# ---- the fact check, and both ----

VERDICTS = {"support": "= k1", "neutral": "nothing", "contradict": "! k1"}
PAIRS = tuple((bc, fc) for fc in VERDICTS for bc in ("consistent", "inconsistent"))
TABLE_3 = dict(zip(PAIRS, (1.0, 0.8, 0.6, 0.4, 0.2, 0.0), strict=True))
"""Table 3 of the paper."""


def write_table_3(bench: Bench, extra: tuple[tuple[str, str], ...] = ()) -> None:
    """An answer for each row of Table 3, and some more."""
    rows, knows = [], {}
    for number, (bc, fc) in enumerate((*PAIRS, *extra)):
        question, answer = f"What is number {number}?", f"It is k1 of sort {number}."
        rows.append(
            {
                "id": f"{bc}-{fc}-{number}",
                "question": question,
                "response": answer,
                "documents": [f"Here stands {VERDICTS[fc]} of it."],
                "wrong_answers": [f"It is k2 of sort{n:02d} {number}." for n in range(30)],
                "label": int(fc == "support"),
            }
        )
        times = {} if bc == "consistent" else {"times": 0}
        knows[question] = {"answer": answer} | times
    bench.rows("rows.jsonl", rows)
    bench.write("knows.json", json.dumps({"chooser": knows}))


def check_table_3(bench: Bench) -> Iterator[ValuePair]:
    rows = list(bench.assessments("run").values())
    for (bc, fc), row in zip(PAIRS, rows, strict=True):
        score = TABLE_3[bc, fc]
        place = bench.on_page("run/report.html", f"{score:.2f}")
        yield ValuePair(f"{bc}, {fc}", score, row["score"], place)
    yield bench.figure("mean", float(np.mean(list(TABLE_3.values()))), "run", "trustscore", 1e-6)
    for bc, fc in PAIRS:
        yield bench.figure(f"{fc}_{bc}", 100 / 6, "run", "trustscore", 1e-6)


EXTRA = (("consistent", "contradict"),)
NUMBERS = {"support": 1.0, "neutral": 0.5, "contradict": 0.0}


def write_parts(bench: Bench) -> None:
    write_table_3(bench, EXTRA)


def check_parts(bench: Bench) -> Iterator[ValuePair]:
    """Trust_BC and Trust_FC stand beside Trust_OV, in the run and in a study."""
    bc = [1.0 if one == "consistent" else 0.0 for one, _ in (*PAIRS, *EXTRA)]
    fc = [NUMBERS[one] for _, one in (*PAIRS, *EXTRA)]
    for name, values in (("trust_bc", bc), ("trust_fc", fc)):
        yield bench.figure(name, float(np.mean(values)), "run", "trustscore", 1e-6)
        parts = [row["parts"].get(name) for row in bench.assessments("run").values()]
        place = bench.where(f"trustscore.{name}")
        yield ValuePair(f"{name} of each answer", values, parts, place)


TSV_WORDS = ("granite", "lighthouse", "keeper", "storm")


def write_evidence(bench: Bench) -> None:
    """Fourteen passages of the same length with fewer and fewer of the answer's words."""
    lines = ["id\ttext\ttitle"]
    for number in range(14):
        present = [TSV_WORDS[place] for place in range(len(TSV_WORDS)) for _ in range(4)]
        count = 14 - number
        words = present[:count] + [f"filler{number}w{place}" for place in range(20 - count)]
        lines.append(f"{number}\t{' '.join(words)}\tPage {number}")
    bench.write("wiki.tsv", "\n".join(lines) + "\n")
    answer = "The granite lighthouse keeper saw the storm."
    bench.rows("rows.jsonl", [{"id": "a", "question": "Who saw it?", "response": answer}])


def check_evidence(bench: Bench) -> Iterator[ValuePair]:
    """Ten passages come, ranked as by BM25 with its published formula."""
    row = bench.assessments("run")["a"]
    ids = [one["id"] for one in row["evidence"] if one.get("kind") == "passage"]
    yield ValuePair("passages", 10, len(ids), "page")
    lines = (bench.folder / "wiki.tsv").read_text().splitlines()[1:]
    texts = {line.split("\t")[0]: " ".join(line.split("\t")[1:]).lower().split() for line in lines}
    query = next(one["text"] for one in row["evidence"] if one.get("kind") == "statement")
    ranked = rank_by_bm25(re.findall(r"\w+", query.lower()), texts)
    yield ValuePair("the ten best", sorted(ranked[:10]), sorted(ids), "page")
    yield ValuePair("the best", ranked[0], ids[0], "page")


def rank_by_bm25(query: list[str], texts: dict[str, list[str]]) -> list[str]:
    """Rank texts by BM25 (Robertson) with k1 = 1.2 and b = 0.75, best first."""
    mean_length = float(np.mean([len(words) for words in texts.values()]))
    scores = {}
    for name, words in texts.items():
        counts = Counter(words)
        scores[name] = 0.0
        for word in set(query):
            frequency = sum(word in other for other in texts.values())
            idf = math.log(1 + (len(texts) - frequency + 0.5) / (frequency + 0.5))
            norm = 1.2 * (1 - 0.75 + 0.75 * len(words) / mean_length)
            scores[name] += idf * counts[word] * 2.2 / (counts[word] + norm)
    return sorted(scores, key=lambda name: -scores[name])


def check_statement(bench: Bench) -> Iterator[ValuePair]:
    """The words of the query are those of appendix A.5.2, whatever their order."""
    [row] = bench.assessments("run").values()
    query = next(one["text"] for one in row["evidence"] if one.get("kind") == "statement")
    sample = bench.read("rows.jsonl")[0]
    paper = f"{sample['response']} correctly answers the question of {sample['question']}"
    expected = sorted(re.findall(r"\w+", paper.lower()))
    place = bench.on_page("run/report.html", query)
    yield ValuePair("words", expected, sorted(re.findall(r"\w+", query.lower())), place)
    text = " ".join(bench.printed[-1].split())
    yield ValuePair(
        "the option is documented", True, bool(re.search(r"statement.{0,90}paper", text))
    )


RELATIONS = {"support": 1.0, "neutral": 0.5, "contradict": 0.0}
FACT_PROMPT = """{% for passage in passages %}Evidence: {{ passage }}
{% endfor %}Question: {{ question }}
Answer: {{ answer }}
Say support, contradict or neutral.
Relation:"""


def write_judged(bench: Bench) -> None:
    rows = [
        {
            "id": name,
            "question": "Which?",
            "response": f"Text of {name}.",
            "documents": [f"First {name} page.", f"Second {name} page."],
        }
        for name in RELATIONS
    ]
    bench.rows("rows.jsonl", rows)
    bench.write("fact.jinja", FACT_PROMPT)
    replies = {f"Text of {name}.": name for name in RELATIONS}
    ours = {"support": "SUPPORTS", "neutral": "NEITHER", "contradict": "CONTRADICTS"}
    worded_replies = {text: f"{ours[name]}\nSo says passage 1." for text, name in replies.items()}
    bench.write("knows.json", json.dumps({"rater": worded_replies, "reader": replies}))


def check_judged(bench: Bench) -> Iterator[ValuePair]:
    """A chat model reads all passages at once, by our prompt and by the paper's three words."""
    for run, model in (("ours", "rater"), ("paper", "reader")):
        rows = bench.assessments(run)
        for name, score in RELATIONS.items():
            place = bench.on_page(f"{run}/report.html", f"{score:.2f}")
            yield ValuePair(f"{name} by {run}", score, rows[name]["score"], place)
        texts = [one["text"] for one in bench.asked(model)]
        both = ["First" in text and "Second" in text for text in texts]
        yield ValuePair(f"both passages in a prompt of {run}", [True] * 3, both, "file")


# ---- distractors ----

ENTITIES = {
    "Ida Roth": ("Architect Artist Person", 10),
    "Otto Kern": ("Architect Artist Person", 900),
    "Lena Voss": ("Architect Artist Person", 700),
    "Paul Brandt": ("Painter Artist Person", 950),
    "Marie Falk": ("Chemist Person", 990),
    "Altstadt": ("City Place", 500),
}
"""Types and links of what the DBpedia on this machine knows."""


def write_entities(bench: Bench) -> None:
    answer = "Ida Roth built the tower of the harbour."
    question = "Who built the tower of the harbour?"
    bench.rows("rows.jsonl", [{"id": "a", "question": question, "response": answer}])
    start_server(bench, answer_as_dbpedia(ENTITIES))


def distractors_of(bench: Bench, number: int = 0) -> list[Json]:
    """Return the distractors of the first answer, as --json prints them."""
    row: Json = json.loads(bench.printed[number].splitlines()[0])
    rows: list[Json] = row["distractors"]
    return rows


def texts_of(rows: list[Json]) -> list[str]:
    return [row["text"] if isinstance(row, dict) else row for row in rows]


def check_entities(bench: Bench) -> Iterator[ValuePair]:
    """Those of all types first, by links; then of fewer; never another kind of thing."""
    frame = "{} built the tower of the harbour."
    names = ("Otto Kern", "Lena Voss", "Paul Brandt", "Marie Falk")
    expected = [frame.format(name) for name in names]
    yield ValuePair("substitutes", expected, texts_of(distractors_of(bench)))


VECTORS = {
    "Florence": (1.0, 0.0, 0.0),
    "Siena": (0.88, 0.475, 0.0),
    "Pisa": (0.8, 0.6, 0.0),
    "Lucca": (0.6, 0.8, 0.0),
    "Prato": (0.28, 0.96, 0.0),
    "Arezzo": (0.0, 1.0, 0.0),
}


def write_vectors(bench: Bench) -> None:
    shuffled = sorted(VECTORS, key=lambda word: word[::-1])
    lines = [f"{len(VECTORS)} 3"]
    lines += [f"{word} {' '.join(map(str, VECTORS[word]))}" for word in shuffled]
    bench.write("vectors.txt", "\n".join(lines) + "\n")
    row = {"id": "a", "question": "Where was she born?", "response": "She was born in Florence."}
    bench.rows("rows.jsonl", [row])


def check_vectors(bench: Bench) -> Iterator[ValuePair]:
    """The nearest by cosine come first."""
    of_florence = np.array(VECTORS["Florence"])
    others = [word for word in VECTORS if word != "Florence"]
    ranked = sorted(others, key=lambda word: -float(of_florence @ np.array(VECTORS[word])))
    texts = texts_of(distractors_of(bench))
    yield ValuePair("by cosine", [f"She was born in {word}." for word in ranked[:4]], texts[:4])


def write_levels(bench: Bench) -> None:
    rows = [
        {
            "id": "year",
            "question": "When was the harbour bridge opened?",
            "response": "The harbour bridge was opened in 1911.",
        },
        {
            "id": "verb",
            "question": "Is the bridge open?",
            "response": "The bridge closed.",
        },
    ]
    bench.rows("rows.jsonl", rows)


def check_levels(bench: Bench) -> Iterator[ValuePair]:
    """Words of the question stay; numbers before verbs; one part is replaced at a time."""
    rows = {row["id"]: row["distractors"] for row in map(json.loads, bench.printed[0].splitlines())}
    for name, pattern in {
        "year": r"The harbour bridge was opened in \d{3,4}\.",
        "verb": r"The bridge \w+\.",
    }.items():
        texts = texts_of(rows[name])
        fits = [bool(re.fullmatch(pattern, text)) for text in texts]
        yield ValuePair(f"{name}: at least nine", True, len(texts) >= 9)
        yield ValuePair(f"{name}: one part alone is other", [True] * len(texts), fits)
        yield ValuePair(f"{name}: all different", len(texts), len(set(texts)))


LAKERS = "Kobe Bryant won a ring with the Lakers in 2009."


def write_lakers(bench: Bench) -> None:
    """Asked who, an entity that the answer alone has; asked when, none: then nouns and numbers."""
    bench.rows(
        "rows.jsonl",
        [
            {"id": "who", "question": "Who won a ring with the Lakers?", "response": LAKERS},
            {
                "id": "when",
                "question": "When did Kobe Bryant win with the Lakers?",
                "response": LAKERS,
            },
        ],
    )


def check_lakers(bench: Bench) -> Iterator[ValuePair]:
    """Algorithm 1: an answer with an entity of its own has that one replaced, no other level."""
    rows = {row["id"]: row["distractors"] for row in map(json.loads, bench.printed[0].splitlines())}
    texts = texts_of(rows["who"])
    yield ValuePair("who: at least nine", True, len(texts) >= 9)
    kept = [text.endswith(" won a ring with the Lakers in 2009.") for text in texts]
    yield ValuePair("who: the year stays", [True] * len(texts), kept)
    texts = texts_of(rows["when"])
    yield ValuePair("when: at least nine", True, len(texts) >= 9)
    # Only "ring" and "2009" stand in the answer alone; the entities are those of the question.
    frame = re.compile(r"Kobe Bryant won an? (.+) with the Lakers in (.+)\.")
    pairs = [match.groups() if (match := frame.fullmatch(text)) else ("", "") for text in texts]
    single = [(noun == "ring") != (year == "2009") for noun, year in pairs]
    yield ValuePair("when: one noun or number goes", [True] * len(texts), single)


# ---- prompts and data ----


def write_prompted(bench: Bench) -> None:
    write_checked(bench)
    bench.rows("questions.jsonl", [{"id": "q", "question": "Who built the steady tower?"}])
    knows = json.loads((bench.folder / "knows.json").read_text())
    knows["answers"] = {"steady tower": "Ida Roth built the steady tower."}
    bench.write("knows.json", json.dumps(knows))


def check_prompted(bench: Bench) -> Iterator[ValuePair]:
    """Tables 4 and 5: five worked examples; with options, each letter is right once."""
    [request] = bench.asked("answers")
    yield ValuePair(
        "examples of closed-book answers", 5, request["text"].count("Question:") - 1, "file"
    )
    yield ValuePair("a full sentence is asked for", True, "sentence" in request["text"], "file")
    yield ValuePair("longest answer", 1042, request["max_tokens"], "file")
    [row] = bench.read("answers.jsonl")
    yield ValuePair("answer", "Ida Roth built the steady tower.", row["response"], "file")
    checks = bench.asked("chooser")
    letters = sorted(re.findall(r"^Answer: ([A-E])$", checks[0]["text"], re.MULTILINE))
    yield ValuePair("right letters of the examples", list("ABCDE"), letters, "file")
    parameters = [(one["temperature"], one["max_tokens"]) for one in checks]
    yield ValuePair("temperature and length", [0.0, 1042], list(min(parameters)), "file")
    yield ValuePair("of all calls", 1, len(set(parameters)), "file")


SETS = ("nq", "webq", "triviaqa", "hotpotqa", "popqa")
PER_SET = 4


def mixed_question(place: int, number: int) -> str:
    return f"Which thing has the number {100 * place + number}?"


def write_mixed(bench: Bench) -> None:
    """Five sets of eight open questions, with two that are not open; three models' answers, of
    which some say nothing."""
    asked = [[mixed_question(place, n) for n in range(8)] for place in range(5)]
    closed = ["Who is older, Al or Bo?", "Is Al older?"]
    bench.rows(
        "NQ-open.dev.jsonl", [{"question": q, "answer": ["thing"]} for q in asked[0] + closed]
    )
    webq = [
        {"utterance": q, "targetValue": '(list (description "thing"))'} for q in asked[1] + closed
    ]
    bench.write("webquestions.examples.test.json", json.dumps(webq))
    trivia = [
        {"Question": q, "QuestionId": f"t{n}", "Answer": {"Value": "thing", "Aliases": []}}
        for n, q in enumerate(asked[2] + closed)
    ]
    bench.write("unfiltered-web-dev.json", json.dumps({"Data": trivia}))
    hotpot = [
        {"_id": f"h{n}", "question": q, "answer": "thing"} for n, q in enumerate(asked[3] + closed)
    ]
    bench.write("hotpot_dev_distractor_v1.json", json.dumps(hotpot))
    rows = [f'{n}\t{q}\t7\t8\t"[""thing""]"' for n, q in enumerate(asked[4] + closed)]
    header = "id\tquestion\ts_pop\to_pop\tpossible_answers"
    bench.write("popQA.tsv", "\n".join([header, *rows]) + "\n")
    silent = {"flan": "thing thing thing thing thing thing", "llama": None, "gpt": "I am not sure."}
    for place, name in enumerate(SYSTEMS):
        answers = []
        for question in (q for part in asked for q in part):
            number = int(re.findall(r"\d+", question)[0]) % 100
            # Each model says nothing of one question in eight: one repeats a word, one the
            # question, one is not sure.
            text = f"It is thing {number}, says {name}."
            if number == place:
                text = silent[name] or question
            answers.append({"question": question, "response": text})
        bench.rows(f"{name}.jsonl", answers)


def check_mixed(bench: Bench) -> Iterator[ValuePair]:
    rows = bench.read("mixed/samples.jsonl")
    yield ValuePair("answers", 5 * PER_SET * 3, len(rows), "file")
    counts = Counter((row["source"], row["model"]) for row in rows)
    yield ValuePair("of each set and model", [PER_SET] * 15, list(counts.values()), "file")
    numbers = {int(re.findall(r"\d+", row["question"])[0]) % 100 for row in rows}
    yield ValuePair("none without an answer of all", True, not numbers & {0, 1, 2}, "file")
    closed = [row["question"] for row in rows if "older" in row["question"]]
    yield ValuePair("none with a choice or yes and no", [], closed, "file")


# ---- people, and Table 1 ----


def write_double(bench: Bench) -> None:
    """Fifty answers of each system with the marks of two annotators."""
    rng = np.random.default_rng(4)
    lines = ["item,rater,rating,model"]
    for system in SYSTEMS:
        for number in range(50):
            first = int(rng.random() < 0.5)
            second = first if rng.random() < 0.93 else 1 - first
            lines.append(f"{system}{number},ann,{first},{system}")
            lines.append(f"{system}{number},bo,{second},{system}")
    bench.write("double.csv", "\n".join(lines) + "\n")


def cohens_kappa(pairs: list[tuple[int, int]]) -> float:
    array = np.array(pairs)
    agreement = float((array[:, 0] == array[:, 1]).mean())
    shares = array.mean(axis=0)
    chance = float(shares.prod() + (1 - shares).prod())
    return (agreement - chance) / (1 - chance)


def check_double(bench: Bench) -> Iterator[ValuePair]:
    with (bench.folder / "double.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    pairs = {
        system: [
            (int(one["rating"]), int(two["rating"]))
            for one, two in zip(rows[::2], rows[1::2], strict=True)
            if one["model"] == system
        ]
        for system in SYSTEMS
    }
    everything = [pair for part in pairs.values() for pair in part]
    overall = bench.row("Cohen's kappa, mean of pairs")[0]
    yield ValuePair("overall", cohens_kappa(everything), overall, tolerance=6e-4)
    for system in SYSTEMS:
        printed = row_under(bench.terminal, system, "Cohen's kappa")
        yield ValuePair(system, cohens_kappa(pairs[system]), printed, tolerance=6e-4)


def row_under(text: str, heading: str, label: str) -> float | None:
    """Return the number of a row below a heading, or in the column of that name."""
    blocks = re.split(rf"^{heading}\s*$", text, flags=re.MULTILINE)
    if len(blocks) > 1:
        match = re.search(rf"{re.escape(label)}[^:\n]*:\s*(-?[\d.]+)", blocks[1])
        return float(match[1]) if match else None
    match = re.search(rf"^{heading}\s+[\d.]+\s+(-?[\d.]+)", text, re.MULTILINE)
    return float(match[1]) if match else None


def write_labelled(bench: Bench) -> None:
    """Answers of three systems with labels; llama's are never equal to the gold answer."""
    rng = np.random.default_rng(11)
    golds = ("granite lighthouse", "copper mill", "wooden jetty", "glass church")
    rows = []
    for place, system in enumerate(SYSTEMS):
        for number in range(40):
            gold = golds[number % 4]
            label = int(rng.random() < 0.5)
            noise = rng.random()
            text = gold if label and noise < 0.7 and system != "llama" else f"some {gold} there"
            if not label or noise > 0.9:
                text = " ".join(rng.choice(["stone", "river", "mill", "glass"], 3, replace=False))
            rows.append(
                {
                    "id": f"{place}-{number}",
                    "model": system,
                    "question": f"What stands at place {number}?",
                    "answers": [[gold]],
                    "response": text,
                    "label": label,
                }
            )
    bench.rows("rows.jsonl", rows)


def check_correlations(bench: Bench) -> Iterator[ValuePair]:
    """Pearson's r of each system in the table; no number where every value is the same."""
    rows = bench.read("rows.jsonl")
    with (bench.folder / "table.csv").open(newline="") as file:
        table = [row for row in csv.DictReader(file) if row["figure"] == "Pearson"]
    text = bench.terminal
    for system in SYSTEMS:
        chosen = [row for row in rows if row["model"] == system]
        labels = np.array([row["label"] for row in chosen], dtype=float)
        exact = np.array([row["response"] == row["answers"][0][0] for row in chosen], dtype=float)
        cells = [r for r in table if r["group"] == system and r["score"] in ("reference.em", "em")]
        value = float(cells[0]["value"]) if cells and cells[0]["value"] else math.nan
        if exact.std() == 0:
            yield ValuePair(f"{system}: NaN", math.nan, value, "file")
            continue
        expected = float(np.corrcoef(labels, exact)[0, 1])
        yield ValuePair(f"r of {system}", expected, value, "file", 1e-9)
        printed = f"{expected:.3f}" in text
        yield ValuePair(f"r of {system} is printed", True, printed or "table" in text)
    has_p = any(cell.get("p") for cell in table)
    yield ValuePair("p of r", True, has_p or bool(re.search(r"Pearson.{0,80}\bp\b", text)))


CAT = "the cat sat on the mat"
RUG = "the cat sat on the rug"
DOG = "a dog ran"


def write_lexical(bench: Bench) -> None:
    rows = [
        {"id": name, "question": "What sat where?", "answers": [[RUG]], "response": text}
        for name, text in {"near": CAT, "same": RUG, "far": DOG}.items()
    ]
    bench.rows("rows.jsonl", rows)


LEXICAL = {
    # Five of six words; 4 of 5 pairs, 3 of 4 threes, 2 of 3 fours; the longest common part has 5.
    "near": {
        "em": 0.0,
        "bleu_1": 5 / 6,
        "bleu_4": (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25,
        "rouge_l": 5 / 6,
    },
    "same": {"em": 1.0, "bleu_1": 1.0, "bleu_4": 1.0, "rouge_l": 1.0},
    "far": {"em": 0.0, "bleu_1": 0.0, "bleu_4": 0.0, "rouge_l": 0.0},
}


def check_lexical(bench: Bench) -> Iterator[ValuePair]:
    rows = bench.assessments("run")
    for name in ("em", "bleu_1", "bleu_4", "rouge_l"):
        values = [rows[sample]["parts"][name] for sample in LEXICAL]
        expected = [LEXICAL[sample][name] for sample in LEXICAL]
        place = bench.on_page("run/report.html", f"{expected[0]:.2f}"[:4])
        yield ValuePair(f"{name} of each", expected, values, place, 1e-6)
        yield bench.figure(name, float(np.mean(expected)), "run", "reference", 1e-6)


def write_meteor(bench: Bench) -> None:
    write_lexical(bench)
    save_wordnet(bench)
    rows = bench.read("rows.jsonl")
    rows.append(
        {
            "id": "synonym",
            "question": "What?",
            "answers": [["the dog sat"]],
            "response": "the hound sat",
        }
    )
    bench.rows("rows.jsonl", rows)


def meteor(matches: int, length: int, gold_length: int, chunks: int) -> float:
    """Return METEOR with alpha 0.9, beta 3 and gamma 0.5 (Banerjee and Lavie)."""
    precision, recall = matches / length, matches / gold_length
    mean = precision * recall / (0.9 * precision + 0.1 * recall)
    return mean * (1 - 0.5 * (chunks / matches) ** 3)


def check_meteor(bench: Bench) -> Iterator[ValuePair]:
    expected = {
        "near": meteor(5, 6, 6, 1),
        "same": meteor(6, 6, 6, 1),
        "far": 0.0,
        # dog and hound are one synset of the small WordNet.
        "synonym": meteor(3, 3, 3, 1),
    }
    rows = bench.assessments("run")
    for name, value in expected.items():
        place = bench.on_page("run/report.html", f"{value:.2f}")
        yield ValuePair(name, value, rows[name]["parts"]["meteor"], place, 1e-9)
    yield bench.figure("meteor", float(np.mean(list(expected.values()))), "run", "reference", 1e-6)


def save_encoder(bench: Bench) -> None:
    from tests.tiny_chat import save_roberta

    save_roberta(bench.folder / "roberta")
    write_lexical(bench)


def check_bertscore(bench: Bench) -> Iterator[ValuePair]:
    """Precision, recall and F of the best cosines, with torch, special tokens in no mean."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(bench.folder / "roberta").eval()
    tokenizer = AutoTokenizer.from_pretrained(bench.folder / "roberta")

    def vectors(text: str) -> Any:
        inputs = tokenizer(f" {text}", return_tensors="pt", return_token_type_ids=False)
        with torch.inference_mode():
            states = model(**inputs).last_hidden_state[0].double()
        return (states / states.norm(dim=-1, keepdim=True)).numpy()

    rows, gold = bench.assessments("run"), vectors(RUG)
    for name, text in {"near": CAT, "same": RUG, "far": DOG}.items():
        of_answer = vectors(text)
        cosines = of_answer @ gold.T
        precision = float(cosines[1:-1].max(axis=1).mean())
        recall = float(cosines[:, 1:-1].max(axis=0).mean())
        expected = [precision, recall, 2 * precision * recall / (precision + recall)]
        parts = rows[name]["parts"]
        values = [parts[f"bertscore{end}"] for end in ("_precision", "_recall", "")]
        place = bench.on_page("run/report.html", f"{expected[2]:.2f}")
        yield ValuePair(f"P, R, F of {name}", expected, values, place, 1e-4)


def save_generators(bench: Bench) -> None:
    from tests.tiny_chat import save_bart, save_t5

    save_bart(bench.folder / "bart")
    save_t5(bench.folder / "t5", factor=0.7)
    row = {
        "id": "near",
        "question": "What sat where?",
        "answers": [[RUG]],
        "response": CAT,
        "documents": ["The cat is here.", "The mat is there."],
    }
    bench.rows("rows.jsonl", [row])


def mean_logprob(folder: Any, prompt: str, text: str) -> float:
    """Return the mean log-probability of a text's tokens after a prompt, by encoder-decoders."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    before = tokenizer(prompt, return_tensors="pt", return_token_type_ids=False)
    tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
    # BART's decoder begins with </s> and <s>, T5's with the padding.
    start = [2, 1] if folder.name == "bart" else [0]
    with torch.inference_mode():
        read = torch.tensor([[*start, *tokens]])
        logits = model(**before, decoder_input_ids=read).logits[0].log_softmax(-1)
    offset = len(start) - 1
    return float(np.mean([float(logits[offset + n, token]) for n, token in enumerate(tokens)]))


def check_generators(bench: Bench) -> Iterator[ValuePair]:
    """BARTScore of gold, question and evidence; GPTScore after a prompt, which the run stores."""
    parts = bench.assessments("bart-run")["near"]["parts"]
    bart = bench.folder / "bart"
    evidence = "\n".join(row for row in bench.read("rows.jsonl")[0]["documents"])
    cases = {
        "bartscore_ref_precision": (RUG, CAT),
        "bartscore_ref_recall": (CAT, RUG),
        "bartscore_src": ("What sat where?", CAT),
        "bartscore_evid": (evidence, CAT),
    }
    for name, (prompt, text) in cases.items():
        expected = mean_logprob(bart, prompt, text)
        place = bench.on_page("bart-run/report.html", f"{expected:.2f}".replace("-", "−"))
        place = (
            "page" if place == "page" else bench.on_page("bart-run/report.html", f"{expected:.2f}")
        )
        yield ValuePair(name, expected, parts[name], place, 1e-4)
    parts = bench.assessments("t5-run")["near"]["parts"]
    prompts = {
        "gptscore_ref_precision": (f"Again: {RUG} ->", CAT),
        "gptscore_ref_recall": (f"Again: {CAT} ->", RUG),
        "gptscore_src": ("Asked: What sat where? ->", CAT),
    }
    for name, (prompt, text) in prompts.items():
        # The program puts a line end between a prompt and what follows.
        expected = mean_logprob(bench.folder / "t5", prompt + "\n", text)
        place = bench.on_page("t5-run/report.html", f"{expected:.2f}")
        yield ValuePair(name, expected, parts[name], place, 1e-4)


def save_prompted_generators(bench: Bench) -> None:
    save_generators(bench)
    bench.write("prompts/gptscore-ref.jinja", "Again: {{ text }} ->")
    bench.write("prompts/gptscore-src.jinja", "Asked: {{ question }} ->")
    bench.write("prompts/gptscore-evid.jinja", "Read {{ passages | length }}: {{ question }} ->")


def check_reproduced(bench: Bench) -> Iterator[ValuePair]:
    for table in (1, 2, 3):
        yield ValuePair(
            f"Table {table}",
            True,
            bool(re.search(rf"Tables? (\d|,| |to|and)*\b{table}\b", bench.terminal)),
        )
    names = ("Exact", "BLEU-1", "BLEU-4", "ROUGE-L", "Trust_BC", "Trust_FC", "Trust_OV")
    missing = [name for name in names if name.lower() not in bench.terminal.lower()]
    yield ValuePair("rows of Table 1 that are missing", [], missing)
    yield ValuePair("p of a correlation", True, bool(re.search(r"\bp\s*[<=]", bench.terminal)))
    yield ValuePair("not comparable is said", True, "not comparable" in bench.terminal.lower())
    yield from compare_trustscore(bench, TABLE_3)


CHOOSER = "--model python:scripted:chooser"
CONSISTENCY = f"trustassay score rows.jsonl --metric consistency:sources=given {CHOOSER} --out run"
TRUST = (
    f"trustassay score rows.jsonl --metric trustscore:sources=given {CHOOSER} "
    "--entailer python:scripted:marks --out run"
)
ITEMS = (
    PaperItem(
        "zheng-01", "Section 2.1, appendix A.5.4", "Trust_BC: 1 after ten choices of itself, 0 at "
        "the first other, where it ends",
        (CONSISTENCY,), check_consistency, write_checked),
    PaperItem(
        "zheng-02", "Figure 1, Table 7", "five options, other distractors each time, shown with "
        "their kind",
        (CONSISTENCY,), check_options, write_checked),
    PaperItem(
        "zheng-03", "Table 3", "the six scores of Trust_OV",
        (TRUST,), check_table_3, write_table_3),
    PaperItem(
        "zheng-04", "Section 2.2, Table 1", "Trust_BC and Trust_FC beside Trust_OV",
        (TRUST, "trustassay study run --label label"), check_parts, write_parts),
    PaperItem(
        "zheng-05", "Appendix A.5.2", "ten passages by BM25 from a table as wikipedia-dpr",
        ("trustassay score rows.jsonl --metric factcheck --retriever bm25:wiki.tsv --entailer "
         "python:scripted:marks --out run",),
        check_evidence, write_evidence),
    PaperItem(
        "zheng-06", "Appendix A.5.2", "the words of the paper's query",
        ("trustassay score rows.jsonl --metric factcheck:statement=paper --retriever bm25:wiki.tsv "
         "--entailer python:scripted:marks --out run",
         "trustassay help methods/trustscore"),
        check_statement, write_evidence),
    PaperItem(
        "zheng-07", "Appendix A.5.2, Table 6", "a chat model as entailment model, by our words and "
        "by the paper's",
        ("trustassay score rows.jsonl --metric factcheck:by=model --judge python:scripted:rater "
         "--out ours",
         "trustassay score rows.jsonl --metric factcheck:by=model,prompt=fact.jinja --judge "
         "python:scripted:reader --out paper"),
        check_judged, write_judged),
    PaperItem(
        "zheng-08", "Appendix A.5.1, find_dbpedia_ents", "entities of the same types, all of them "
        "first",
        ("trustassay papers distractors rows.jsonl --source dbpedia:SERVER/sparql --backend "
         "linker=spotlight:SERVER --most 4 --json",),
        check_entities, write_entities),
    PaperItem(
        "zheng-09", "Appendix A.5.1, find_candidates_by_embedding", "nearest words of a word2vec "
        "file by cosine",
        ("trustassay papers distractors rows.jsonl --source word2vec:vectors.txt --most 4 --json",),
        check_vectors, write_vectors),
    PaperItem(
        "zheng-10", "Section 2.1, priorities", "words of the answer alone; numbers and nouns "
        "before verbs; one part at a time",
        ("trustassay papers distractors rows.jsonl --most 12 --json",),
        check_levels, write_levels),
    PaperItem(
        "zheng-11", "Algorithm 1, Main", "levels in the paper's order with its else; the year only "
        "where it is asked",
        ("trustassay papers distractors rows.jsonl --most 20 --algorithm paper --json",),
        check_lakers, write_lakers),
    PaperItem(
        "zheng-12", "Tables 4 and 5, appendix A.5.4", "five examples in both prompts, greedy, "
        "1,042 tokens",
        ("trustassay generate questions.jsonl --style closed-book --max-tokens 1042 --model "
         "python:scripted:answers --out answers.jsonl",
         "trustassay score rows.jsonl --metric "
         "consistency:sources=given,parser=exact,unparsed=inconsistent,max_tokens=1042 "
         f"{CHOOSER} --out run"),
        check_prompted, write_prompted),
    PaperItem(
        "zheng-13", "Section 3, appendix A.3", "MixedQA: open questions of five sets that three "
        "models answered, as many of each",
        ("trustassay papers dataset mixedqa --nq NQ-open.dev.jsonl --webq "
         "webquestions.examples.test.json --triviaqa unfiltered-web-dev.json --hotpotqa "
         "hotpot_dev_distractor_v1.json --popqa popQA.tsv "
         + " ".join(f"--answers {name}={name}.jsonl" for name in SYSTEMS)
         + f" --per-source {PER_SET} --out mixed",),
        check_mixed, write_mixed),
    PaperItem(
        "zheng-14", "Appendix A.4, Table 2", "Cohen's kappa of two annotators, by system and over "
        "all",
        ("trustassay agree double.csv",), check_double, write_double),
    PaperItem(
        "zheng-15", "Section 4, Table 1", "Pearson's r with labels by system, p, and NaN where all "
        "are 0",
        ("trustassay score rows.jsonl --metric reference:parts=em --out run",
         "trustassay study run --label label --by model --table table.csv"),
        check_correlations, write_labelled),
    PaperItem(
        "zheng-16", "Table 1, lexical", "exact match, BLEU-1, BLEU-4, ROUGE-L",
        ("trustassay score rows.jsonl --metric "
         "reference:recipe=trustscore-paper,parts=em+bleu_1+bleu_4+rouge_l --out run",),
        check_lexical, write_lexical),
    PaperItem(
        "zheng-17", "Table 1, METEOR", "METEOR with a small WordNet",
        ("trustassay score rows.jsonl --metric reference:parts=meteor --out run",),
        check_meteor, write_meteor),
    PaperItem(
        "zheng-18", "Table 1, BERTScore", "precision, recall and F by a small RoBERTa",
        ("trustassay score rows.jsonl --metric reference:parts=bertscore --backend "
         "token-embedder=hf:roberta --out run",),
        check_bertscore, save_encoder, slow=True),
    PaperItem(
        "zheng-19", "Table 1, BARTScore and GPTScore", "by gold answer, question and evidence",
        ("trustassay score rows.jsonl --metric reference:parts=bartscore --judge hf:bart --out "
         "bart-run",
         "trustassay score rows.jsonl --metric reference:parts=gptscore,prompts=prompts --judge "
         "hf:t5 --out t5-run"),
        check_generators, save_prompted_generators, slow=True),
    PaperItem(
        "zheng-20", "Tables 1 to 3", "all tables in one command, with no key",
        ("trustassay papers reproduce trustscore",), check_reproduced),
)  # fmt: skip
