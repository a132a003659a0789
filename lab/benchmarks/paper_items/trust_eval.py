"""The items of Trust-Eval (Song et al., as the page of its LlamaIndex integration shows it)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lab.benchmarks.paper_items.reproduced import compare_grounding
from lab.benchmarks.paper_items.running import Bench, PaperItem, ValuePair
from lab.benchmarks.paper_items.sets import harmonic_mean, save_punkt, save_t5

GROUNDING = "trustassay score rows.jsonl --metric grounding --entailer python:scripted:marks"
SCORED = (f"{GROUNDING} --out run",)
PAPER_SCORED = (
    "trustassay score rows.jsonl --metric grounding:profile=paper "
    "--entailer python:scripted:marks --out run"
)
REFUSAL = "I'm sorry, but the documents do not say anything about this."
PAPER_REFUSAL = "I apologize, but I couldn't find an answer to your question in the search results."
NOTHING = "Nothing is said here of it"


def sample(name: str, claims: list[str], documents: list[str], response: str) -> dict[str, Any]:
    return {
        "id": name,
        "question": f"What is known of thing {name}?",
        "claims": claims,
        "documents": documents,
        "response": response,
    }


def write_rows(refusal: str = REFUSAL) -> Callable[[Bench], None]:
    """Return what writes eight answers: four refusals, and two of four answerable as they are.

    A passage with =k1 entails what speaks of k1 (the entailer ``marks``). Refused are d, e and g,
    which have no answer in their passages, and f, which has one. Answered are a and b, which have
    one, and c and h, which have none.
    """

    def prepare(bench: Bench) -> None:
        blank = [NOTHING] * 3
        rows = [
            sample("a", ["It is k1"], ["Thing is =k1", *blank[1:]], "It is =k1 [1]."),
            sample(
                "b",
                ["It is k2", "It is k3"],
                ["Thing is =k2", "Thing is =k3", NOTHING],
                "It is =k2 [1][2]. It is tall =k9 [3].",
            ),
            sample("c", ["It is k4"], blank, "It is =k4 [1]."),
            sample("h", ["It is k7"], [NOTHING, "Thing is =k8", NOTHING], "It is =k8 [2]."),
            *(sample(name, ["It is k5"], blank, refusal) for name in "deg"),
            sample("f", ["It is k6"], ["Thing is =k6", *blank[1:]], refusal),
        ]
        bench.rows("rows.jsonl", rows)

    return prepare


REJECT = (100 * 3 / 5, 100 * 3 / 4)
"""Recall: d, e, g of c, h, d, e, g. Precision: of d, e, g, f."""
ANSWERABLE = (100 * 2 / 3, 100 * 2 / 4)
"""Recall: a, b of a, b, f. Precision: of a, b, c, h."""
CALIBRATED = (100 * (1 + 1 / 2) / 4, 100 * (1 + 1 / 2) / 3)
"""a has its claim, b one of two; over the four answered, over the three answerable."""
CITED = ((1 + 1 / 2 + 0 + 1), (1 + 1 / 3 + 0 + 1))
"""Sums of citation recall and precision over a, b, c, h: of b one of two statements and one of
three citations, as [2] is redundant beside [1]."""
EXPECTED: dict[str, float] = {
    "num_samples": 8,
    "answered_ratio": 50.0,
    "answered_num": 4,
    "answerable_num": 3,
    "overlapped_num": 2,
    # Words without citations: 3, 7, 3 and 3 of the answers, 11 or 15 of a refusal.
    "answered_length": (3 + 7 + 3 + 3) / 4,
    "reject_rec": REJECT[0],
    "reject_prec": REJECT[1],
    "reject_f1": harmonic_mean(*REJECT),
    "answerable_rec": ANSWERABLE[0],
    "answerable_prec": ANSWERABLE[1],
    "answerable_f1": harmonic_mean(*ANSWERABLE),
    "macro_avg": (REJECT[0] + ANSWERABLE[0]) / 2,
    "macro_f1": (harmonic_mean(*REJECT) + harmonic_mean(*ANSWERABLE)) / 2,
    "regular_claims_nli": 100 * (1 + 1 / 2 + 1 + 0) / 8,
    "answered_claims_nli": 100 * (1 + 1 / 2 + 1 + 0) / 4,
    "calib_answered_claims_nli": CALIBRATED[0],
    "calib_answerable_claims_nli": CALIBRATED[1],
    "calib_claims_nli_f1": harmonic_mean(*CALIBRATED),
    # c gives its claim, and no passage has it.
    "parametric_answered_claims_nli": 100 * 1 / 4,
    "regular_citation_rec": 100 * CITED[0] / 8,
    "regular_citation_prec": 100 * CITED[1] / 8,
    "regular_citation_f1": harmonic_mean(*(100 * part / 8 for part in CITED)),
    "answered_citation_rec": 100 * CITED[0] / 4,
    "answered_citation_prec": 100 * CITED[1] / 4,
    "answered_citation_f1": harmonic_mean(*(100 * part / 4 for part in CITED)),
}
EXPECTED["trust_score"] = (
    EXPECTED["macro_f1"] + EXPECTED["calib_claims_nli_f1"] + EXPECTED["answered_citation_f1"]
) / 3


def check_figures(*names: str) -> Callable[[Bench], Iterator[ValuePair]]:
    """Return a check of figures of the eight answers."""

    def check(bench: Bench) -> Iterator[ValuePair]:
        for name in names:
            yield bench.figure(name, EXPECTED[name], "run", "grounding", 1e-6)

    return check


def check_statistics(bench: Bench) -> Iterator[ValuePair]:
    yield from check_figures(*PAPER_KEYS[:5])(bench)
    yield bench.figure("answered_length", EXPECTED["answered_length"], "run", "grounding")
    words = 4 * EXPECTED["answered_length"] + 4 * len(PAPER_REFUSAL.split())
    yield bench.figure("regular_length", words / 8, "run", "grounding")


def write_exact(bench: Bench) -> None:
    """Three gold answers of which an answer gives two, one in other letters, one inside a word."""
    golds = [["Daei"], ["Bican"], ["Sinclair"]]
    documents = ["Daei, Bican and Sinclair scored most.", NOTHING]
    for name, response in {
        "two": "Ali Daei and then bican [1].",
        "none": "It was Sinclairson [1].",
        "all": "Sinclair, Bican, Daei [1].",
    }.items():
        bench.rows(
            f"{name}.jsonl",
            [
                {
                    "id": name,
                    "question": "Who scored most?",
                    "answers": golds,
                    "documents": [{"text": text, "supports": [1, 1, 1]} for text in documents[:1]],
                    "response": response,
                }
            ],
        )


def check_exact(bench: Bench) -> Iterator[ValuePair]:
    for name, share in {"two": 2 / 3, "none": 0.0, "all": 1.0}.items():
        yield bench.figure("regular_str_em", 100 * share, f"run-{name}", "grounding", 1e-6)


def write_refusals(bench: Bench) -> None:
    """The paper's sentence, near and far variants of it, and an answer that begins alike."""
    texts = {
        "exact": PAPER_REFUSAL,
        "typo": "I apologise, but I could not find an answer to your question in search results.",
        "other": "Nobody knows; the passages are silent.",
        "answer": "I found an answer: it is =k1 [1].",
    }
    rows = [sample(name, ["It is k5"], [NOTHING] * 3, text) for name, text in texts.items()]
    bench.rows("rows.jsonl", rows)


def check_refusals(bench: Bench) -> Iterator[ValuePair]:
    verdicts = {name: row["verdict"] for name, row in bench.assessments("run").items()}
    expected = {"exact": "refused", "typo": "refused", "other": "answered", "answer": "answered"}
    for name, verdict in expected.items():
        place = bench.on_page("run/report.html", verdict)
        yield ValuePair(name, verdict, verdicts[name], place)
    yield bench.figure("answered_num", 2, "run", "grounding")


def write_corpus(bench: Bench) -> None:
    """Six questions with gold answers, and passages of which one in two has the answer."""
    things = ["harbour", "windmill", "observatory", "lighthouse", "granary", "viaduct"]
    bench.rows(
        "questions.jsonl",
        [
            {"id": thing, "question": f"When was the {thing} built?", "answers": [[f"k{n}"]]}
            for n, thing in enumerate(things)
        ],
    )
    bench.rows(
        "corpus.jsonl",
        [
            {"id": f"p{n}", "text": f"The {thing} was built in {'= ' if n % 2 else ''}k{n}."}
            for n, thing in enumerate(things)
        ],
    )


def check_dataset(bench: Bench) -> Iterator[ValuePair]:
    rows = bench.read("data.jsonl")
    yield ValuePair("questions", 6, len(rows), "file")
    yield ValuePair("documents of each", [2] * 6, [len(row["documents"]) for row in rows], "file")
    firsts = [row["documents"][0]["text"].split()[1] for row in rows]
    yield ValuePair("first document", [row["id"] for row in rows], firsts, "file")
    support = [any(any(one["supports"]) for one in row["documents"]) for row in rows]
    # Only passages with an equals sign entail their year.
    yield ValuePair("answerable", [False, True] * 3, support, "file")


def write_asked(bench: Bench) -> None:
    bench.rows(
        "asked.jsonl",
        [
            {
                "id": "one",
                "question": "How long is the viaduct?",
                "documents": ["The viaduct has 12 arches.", "The viaduct is 210 metres long."],
            }
        ],
    )
    bench.write("knows.json", '{"answers": {"How long": "It is 210 metres long [2]."}}')


def check_generated(bench: Bench) -> Iterator[ValuePair]:
    [row] = bench.read("answers.jsonl")
    yield ValuePair("answer", "It is 210 metres long [2].", row["response"], "file")
    [request] = bench.asked("answers")
    numbers = [f"[{n}]" in request["text"] for n in (1, 2)]
    yield ValuePair("both documents are numbered in the prompt", [True, True], numbers, "file")
    yield ValuePair("temperature", 0.0, request["temperature"], "file")


PAPER_KEYS = (
    "num_samples answered_ratio answered_num answerable_num overlapped_num regular_length "
    "answered_length reject_rec reject_prec reject_f1 answerable_rec answerable_prec answerable_f1 "
    "macro_avg macro_f1 regular_claims_nli answered_claims_nli calib_answered_claims_nli "
    "calib_answerable_claims_nli calib_claims_nli_f1 parametric_answered_claims_nli "
    "regular_citation_rec regular_citation_prec regular_citation_f1 answered_citation_rec "
    "answered_citation_prec answered_citation_f1 trust_score"
).split()
"""The 28 keys of the page's output."""


def prepare_paper(bench: Bench) -> None:
    write_rows(PAPER_REFUSAL)(bench)
    save_punkt(bench)


def check_paper_keys(bench: Bench) -> Iterator[ValuePair]:
    values = bench.json(0)["metrics"]["grounding"]["values"]
    yield ValuePair("keys that are missing", [], [key for key in PAPER_KEYS if key not in values])
    # In the paper's profile a blank between words and marks, and nothing else here, differs.
    for key in sorted(set(EXPECTED) - {"answered_length"}):
        yield ValuePair(key, EXPECTED[key], values.get(key), "terminal", 1e-4)


def check_profiles(bench: Bench) -> Iterator[ValuePair]:
    """A citation after the full stop: a sentence of its own in the paper's profile."""
    yield bench.figure("answered_citation_rec", 100.0, "default", "grounding", 1e-6)
    # "It is =k1." cites nothing; "[1]" cites, and says nothing that could be entailed.
    yield bench.figure("answered_citation_rec", 0.0, "paper", "grounding", 1e-6)


def prepare_profiles(bench: Bench) -> None:
    save_punkt(bench)
    documents = ["Thing is =k1", NOTHING, NOTHING]
    bench.rows("rows.jsonl", [sample("a", ["It is k1"], documents, "It is =k1. [1]")])


def check_t5(bench: Bench) -> Iterator[ValuePair]:
    """The tiny T5 was trained to write 1 where the red car stands in the premise."""
    rows = bench.assessments("run")
    scores = [rows[name]["score"] for name in ("red", "none")]
    texts = [f"{score:.2f}" for score in scores]
    place = bench.on_page("run/report.html", texts[0])
    yield ValuePair("supported, unsupported", [1.0, 0.0], [round(s) for s in scores], place)


REPRODUCED = "trustassay papers reproduce trust-eval"


def check_reproduced(bench: Bench) -> Iterator[ValuePair]:
    printed = [key for key in PAPER_KEYS if key in bench.terminal]
    yield ValuePair("keys printed", PAPER_KEYS, printed)
    names_profile = "profile=paper" in bench.terminal or "profile paper" in bench.terminal
    yield ValuePair("both profiles are named", True, names_profile and "default" in bench.terminal)
    for rules in ("paper", "default"):
        yield from compare_grounding(bench, rules)


ITEMS = (
    PaperItem(
        "song-01", "Output, basic statistics", "counts, and mean length of all and of answered "
        "responses",
        (PAPER_SCORED,), check_statistics, prepare_paper),
    PaperItem(
        "song-02", "Output, refusal groundedness", "recall, precision and F1 of refusing and of "
        "answering",
        SCORED, check_figures(*PAPER_KEYS[7:13]), write_rows()),
    PaperItem(
        "song-03", "Output, refusal groundedness", "macro_avg and macro_f1",
        SCORED, check_figures("macro_avg", "macro_f1"), write_rows()),
    PaperItem(
        "song-04", "Metrics, correctness by NLI", "claims that the response entails, of all "
        "responses, of answered ones, and by parametric knowledge; the mode without an option",
        SCORED, check_figures(*PAPER_KEYS[15:17], "parametric_answered_claims_nli"), write_rows()),
    PaperItem(
        "song-05", "Output, response correctness", "calibrated correctness over answered, over "
        "answerable questions, and F1",
        SCORED, check_figures(*PAPER_KEYS[17:20]), write_rows()),
    PaperItem(
        "song-06", "Metrics, quality of citations", "citation recall, precision and F1, over all "
        "and over answered; [2] is redundant, [3] unsupported",
        SCORED, check_figures(*PAPER_KEYS[21:27]), write_rows()),
    PaperItem(
        "song-07", "Output, trust_score", "mean of macro_f1, calibrated F1 and citation F1",
        SCORED, check_figures("trust_score"), write_rows()),
    PaperItem(
        "song-08", "Metrics, correctness by exact match", "two, none and all of three short gold "
        "answers",
        tuple(
            f"trustassay score {name}.jsonl --metric grounding:correctness=em --entailer "
            f"python:scripted:marks --out run-{name}" for name in ("two", "none", "all")),
        check_exact, write_exact),
    PaperItem(
        "song-09", "Metrics, refusal", "refusals by likeness to one sentence",
        ("trustassay score rows.jsonl --metric grounding:refusal=paper --entailer "
         "python:scripted:marks --out run",),
        check_refusals, write_refusals),
    PaperItem(
        "song-10", "Usage, create_dataset", "a data set from questions and gold answers: passages "
        "retrieved, answerability by the entailer",
        ("trustassay papers dataset questions.jsonl --corpus corpus.jsonl --documents 2 "
         "--entailer python:scripted:marks --out data.jsonl",),
        check_dataset, write_corpus),
    PaperItem(
        "song-11", "Usage, run", "a model answers from numbered documents with citations",
        ("trustassay generate asked.jsonl --style rag-refusal --model python:scripted:answers "
         "--out answers.jsonl",),
        check_generated, write_asked),
    PaperItem(
        "song-12", "Output, all keys", "the 28 keys by name, with the paper's profile",
        (f"{PAPER_SCORED} --json",),
        check_paper_keys, prepare_paper),
    PaperItem(
        "song-13", "Metrics, quality of citations", "where both profiles differ: a citation after "
        "the full stop",
        tuple(
            f"trustassay score rows.jsonl --metric grounding:profile={name} --entailer "
            f"python:scripted:marks --out {name}" for name in ("default", "paper")),
        check_profiles, prepare_profiles),
    PaperItem(
        "song-14", "Metrics, the NLI model", "a T5 that writes 1 or 0 as entailer, as "
        "t5_xxl_true_nli_mixture does",
        ("trustassay score rows.jsonl --metric faithfulness --entailer hf:t5 --out run",),
        check_t5, save_t5, slow=True),
    PaperItem(
        "song-15", "Usage and output", "the page's example in one command, with no key",
        (REPRODUCED,), check_reproduced),
)  # fmt: skip
