"""llama.cpp beside OpenVINO on one GGUF file, and which text a second reader is best asked about.

    python -m lab.benchmarks.gguf_engines read --out FOLDER [--n 60]
    python -m lab.benchmarks.gguf_engines report --out FOLDER

``read`` judges development pairs of :func:`lab.benchmarks.second_reader.rows`, two of three by both
engines, with one thread each, in random order: by the windows that a second reader gets, and with
OpenVINO also by the sentences that share a statement's words between them. ``embedded`` reads the
whole passage. Reads stay in the folder, so that it goes on where it stopped.

``report`` writes ``results/gguf-engines.json``: CPU seconds of a read (two questions about one
text), the differences of the engines' log-odds, and AUC by kind of text for each reader and for the
mean of both readers' log-odds, with bootstrap intervals of the differences.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.local_models import path_of
from lab.benchmarks.second_reader import Row, rows
from lab.results import write_result
from trustassay.backends.chat_entailer import (
    ChatEntailer,
    EntailmentOptions,
    compute_yes_probability,
)
from trustassay.backends.resolve import chat, entailer
from trustassay.core.capabilities import Reply
from trustassay.judging.passages import PassageSentence, _choose_joint_sentences, choose_windows
from trustassay.judging.readings import PROBABILITY_MARGIN
from trustassay.statistics.correlation import auroc
from trustassay.statistics.resampling import generator, percentile_interval
from trustassay.text.words import content_words

Floats = NDArray[np.float64]
LogOdds = Sequence[float]
Key = tuple[str, str]
"""A reader (``llama.cpp``, ``openvino``, ``embedded``) and the text that it gets."""
WINDOWS, JOINT, WHOLE = "windows", "joint sentences", "whole passage"
KINDS = {
    "single claims": ("BEGIN", "WiCE, oracle packs", "HealthVer", "ExpertQA", "Fool Me Twice"),
    "article pairs": ("WiCE, whole pages", "FIB"),
    "summaries": ("SummEdits",),
}
LONG_STATEMENT_WORDS = 20
READS_BY_BOTH = 2
"""Of three pairs so many are read by both engines."""
DRAWS = 2000


def choose_texts(row: Row) -> dict[str, str]:
    """Return the texts that a pair may be judged by."""
    windows = choose_windows(row.statement, [row.sentences])
    candidates = [
        PassageSentence(0, place, text, frozenset(content_words(text)))
        for place, text in enumerate(row.sentences)
    ]
    sentences = _choose_joint_sentences(row.statement, candidates)
    window_text = "\n".join(window.text for window in windows)
    joint_text = "\n".join(sentence.text for sentence in sentences)
    return {WINDOWS: window_text, JOINT: joint_text or window_text, WHOLE: row.premise}


def build_reader(uri: str) -> Callable[[str, str], LogOdds]:
    """Return a function that gives the log-odds of yes to both questions about a pair."""
    model: Any = chat(uri)
    judge = ChatEntailer(model, EntailmentOptions(by="odds"))

    def read_pair(text: str, statement: str) -> LogOdds:
        requests = [judge.odds_request((text, statement), end) for end in (False, True)]
        chances = []
        for reply in model.replies(requests):
            assert isinstance(reply, Reply)
            chance = compute_yes_probability(reply)
            assert chance is not None
            chances.append(chance)
        return [float(one) for one in compute_log_odds(chances)]

    return read_pair


def compute_log_odds(chances: Sequence[float]) -> Floats:
    """Return log-odds, of probabilities kept from 0 and 1 as a run does it."""
    p = np.clip(np.array(chances), PROBABILITY_MARGIN, 1 - PROBABILITY_MARGIN)
    return np.asarray(np.log(p / (1 - p)))


def load_reads(path: Path) -> dict[int, dict[Key, Any]]:
    """Return the stored reads by pair, reader and text."""
    result: dict[int, dict[Key, Any]] = defaultdict(dict)
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            read = json.loads(line)
            result[read["pair"]][read["reader"], read["text"]] = read
    return result


def read(options: argparse.Namespace) -> None:
    """Judge what is not judged yet."""
    path = options.out / "reads.jsonl"
    done = load_reads(path)
    file_uri = f"gguf:{path_of('1.5b')}"
    first = entailer("embedded?threads=1")
    readers: dict[str, Callable[[str, str], LogOdds]] = {
        "llama.cpp": build_reader(f"{file_uri}?threads=1&parallel=1"),
        "openvino": build_reader(f"{file_uri}?threads=1&engine=openvino"),
        "embedded": lambda text, statement: [
            float(one) for one in compute_log_odds(first.scores([(text, statement)])[0][:1])
        ],
    }
    for read_pair in readers.values():
        read_pair("The lamp is red.", "It is red.")  # the first read is slower than the others
    with path.open("a", encoding="utf-8") as file:
        for number, row in enumerate(rows("dev", options.n)):
            texts = choose_texts(row)
            wanted = [("embedded", WHOLE), ("openvino", WINDOWS)]
            wanted += [("openvino", JOINT)] * (texts[JOINT] != texts[WINDOWS])
            wanted += [("llama.cpp", WINDOWS)] * (number % 3 < READS_BY_BOTH)
            random.Random(number).shuffle(wanted)
            for name, text in wanted:
                if (name, text) in done[number]:
                    continue
                began = time.process_time()
                log_odds = readers[name](texts[text], row.statement)
                line = {
                    "pair": number,
                    "set": row.name,
                    "label": row.label,
                    "words": len(row.statement.split()),
                    "reader": name,
                    "text": text,
                    "log_odds": log_odds,
                    "cpu_seconds": round(time.process_time() - began, 3),
                    "text_words": len(texts[text].split()),
                }
                file.write(json.dumps(line) + "\n")
                file.flush()


def compare_engines(pairs: Mapping[int, Mapping[Key, Any]]) -> dict[str, Any]:
    """Return CPU seconds of both engines and the differences of their log-odds."""
    both = [
        (read["llama.cpp", WINDOWS], read["openvino", WINDOWS])
        for read in pairs.values()
        if ("llama.cpp", WINDOWS) in read
    ]
    odds = np.array([[one["log_odds"] for one in pair] for pair in both])
    seconds = np.array([[one["cpu_seconds"] for one in pair] for pair in both])
    difference = odds[:, 1] - odds[:, 0]
    labels = np.array([one["label"] for one, _ in both])
    return {
        "n": len(both),
        "median text words": float(np.median([one["text_words"] for one, _ in both])),
        "median cpu seconds": dict(
            zip(
                ("llama.cpp", "openvino"), np.median(seconds, axis=0).round(2).tolist(), strict=True
            )
        ),
        "median ratio": round(float(np.median(seconds[:, 0] / seconds[:, 1])), 2),
        "difference of log-odds": {
            question: {
                "mean": round(float(difference[:, place].mean()), 3),
                "standard deviation": round(float(difference[:, place].std(ddof=1)), 3),
                "largest": round(float(np.abs(difference[:, place]).max()), 3),
                "correlation": round(float(np.corrcoef(odds[:, :, place].T)[0, 1]), 4),
                "other side of 0.5": int(
                    ((odds[:, 0, place] >= 0) != (odds[:, 1, place] >= 0)).sum()
                ),
            }
            for place, question in enumerate(("stated", "contradicted"))
        },
        "auc": {
            name: round(float(auroc(odds[:, place, 0], labels) or 0), 3)
            for place, name in enumerate(("llama.cpp", "openvino"))
        },
    }


def compare_readers(pairs: Sequence[Mapping[Key, Any]]) -> dict[str, Any]:
    """Return AUC of the readers of some pairs, and differences with 95 % intervals."""
    reads = [pair["openvino", WINDOWS] for pair in pairs]
    labels = np.array([one["label"] for one in reads])
    sets = np.array([one["set"] for one in reads])
    first = np.array([pair["embedded", WHOLE]["log_odds"][0] for pair in pairs])
    second = {
        WINDOWS: np.array([one["log_odds"][0] for one in reads]),
        JOINT: np.array(
            [
                pair.get(("openvino", JOINT), pair["openvino", WINDOWS])["log_odds"][0]
                for pair in pairs
            ]
        ),
    }
    readers = {"first": first} | {f"second, {text}": odds for text, odds in second.items()}
    readers |= {f"both, {text}": (first + odds) / 2 for text, odds in second.items()}
    table = {
        name: {
            "auc": round(compute_auc(odds, labels, sets), 3),
            "balanced_accuracy": round(compute_balanced_accuracy(odds, labels), 3),
            "yes": round(float(np.mean(odds >= 0)), 3),
        }
        for name, odds in readers.items()
    }
    differences = {
        name: compare_aucs(readers[one], readers[other], labels, sets)
        for name, one, other in (
            ("joint sentences minus windows", f"second, {JOINT}", f"second, {WINDOWS}"),
            ("both, joint sentences minus windows", f"both, {JOINT}", f"both, {WINDOWS}"),
            ("second minus first", f"second, {WINDOWS}", "first"),
            ("both minus first", f"both, {WINDOWS}", "first"),
        )
    }
    changed = int((second[WINDOWS] != second[JOINT]).sum())
    return {"n": len(pairs), "texts differ": changed, "readers": table, "differences": differences}


def compute_auc(odds: Floats, labels: NDArray[np.bool_], sets: NDArray[np.str_]) -> float:
    """Return the mean over the sets of the AUC in each, since sets differ in their levels."""
    values = [auroc(odds[sets == name], labels[sets == name]) for name in np.unique(sets)]
    return float(np.mean([value for value in values if value is not None]))


def compute_balanced_accuracy(odds: Floats, labels: NDArray[np.bool_]) -> float:
    """Return the mean share of right verdicts at 0.5 over both labels."""
    return float(np.mean([np.mean((odds[labels == label] >= 0) == label) for label in (0, 1)]))


def compare_aucs(
    one: Floats, other: Floats, labels: NDArray[np.bool_], sets: NDArray[np.str_]
) -> dict[str, Any]:
    """Return the difference of two readers' AUC with a percentile interval over drawn pairs."""
    random_numbers = generator(0, "gguf engines")
    draws = []
    for _ in range(DRAWS):
        # Drawn within set and label, so that each draw has both labels in each set.
        places = np.concatenate(list(draw_within(random_numbers, labels, sets)))
        drawn = labels[places], sets[places]
        draws.append(compute_auc(one[places], *drawn) - compute_auc(other[places], *drawn))
    difference = compute_auc(one, labels, sets) - compute_auc(other, labels, sets)
    interval = percentile_interval(draws)
    assert interval is not None
    return {"auc": round(difference, 3), "interval": [round(float(end), 3) for end in interval]}


def draw_within(
    random_numbers: np.random.Generator, labels: NDArray[np.bool_], sets: NDArray[np.str_]
) -> Iterator[NDArray[np.intp]]:
    for name in np.unique(sets):
        for label in (False, True):
            (places,) = np.nonzero((sets == name) & (labels == label))
            if len(places):
                yield random_numbers.choice(places, len(places))


def report(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of the pairs of which all reads are there."""
    pairs = load_reads(options.out / "reads.jsonl")
    complete = {
        number: pair
        for number, pair in pairs.items()
        if {("openvino", WINDOWS), ("embedded", WHOLE)} <= pair.keys()
    }
    by_kind = {
        kind: [pair for pair in complete.values() if pair["openvino", WINDOWS]["set"] in names]
        for kind, names in KINDS.items()
    }
    by_length: dict[str, list[Mapping[Key, Any]]] = {"short statements": [], "long statements": []}
    for pair in complete.values():
        is_long = pair["openvino", WINDOWS]["words"] >= LONG_STATEMENT_WORDS
        by_length["long statements" if is_long else "short statements"].append(pair)
    return {
        "engines": compare_engines(complete),
        "lengths": {length: compare_readers(of_length) for length, of_length in by_length.items()},
        "kinds": {kind: compare_readers(of_kind) for kind, of_kind in by_kind.items()},
        "all": compare_readers(list(complete.values())),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=["read", "report"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--n", type=int, default=60, help="pairs of each set")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.command == "read":
        read(options)
        return
    figures = report(options)
    command = "python -m lab.benchmarks.gguf_engines report --out FOLDER"
    processor = "one thread of an AMD EPYC (AVX-512 VNNI and BF16, no AMX)"
    write_result("gguf-engines", command, f"dev parts of public sets; {processor}", figures)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
