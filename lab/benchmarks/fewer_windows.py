"""What the built-in entailer loses if it reads only those windows that hold a statement's words.

    TRUSTASSAY_SHARED=... python -m lab.benchmarks.fewer_windows [--rows 300]

Up to 300 pairs of each development set with long passages. Each passage is cut into windows as
always, and all are read; then the AUC is told that follows from some of them: those with most of
the statement's content words, words of few windows counting more. Rules: the first k, by words, by
the cosine of the embedded model's vectors or by the mean of both ranks; of those by words, those
with a share of the best one's; and reading on until one supports beyond doubt. A second table is of
sentences and their three nearest passages, as ``faithfulness`` reads them, stopping at the first
that supports: of planted answers, and of claims about WiCE's pages. It writes
``results/fewer-windows.json``.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from lab.benchmarks.faithfulness import rows_of
from lab.benchmarks.planted import planted
from lab.results import write_result
from lab.training.measure import items
from trustassay.backends.embedded import (
    EmbeddedEmbedder,
    EmbeddedEntailer,
    apply_quantities,
    compute_log_odds,
    cut_windows,
)
from trustassay.core.sample import Document
from trustassay.judging.passages import Passages
from trustassay.statistics.resampling import generator
from trustassay.text.sentences import load_splitter
from trustassay.text.words import content_words

Floats = NDArray[np.float64]
SETS = (
    *("fib_dev", "xsum_dev", "summedits_dev", "diasumfact_dev", "expertqa_dev"),
    *("wice_oracle_dev", "begin_cmu_dev"),
)
WINDOW = (80, 50)
"""Words of a window, and how many later the next begins, as in ``entailer.json``."""
ALL, NEVER = 99, 99.0


By = Literal["words", "vectors", "both"]


class Rule(NamedTuple):
    """Read the first ``most`` windows with ``share`` of the best one's words, until ``sure``. by:
    what puts them in order."""

    most: int = ALL
    share: float = 0.0
    sure: float = NEVER
    by: By = "words"

    @property
    def words(self) -> str:
        told = [f"the first {self.most}" if self.most < ALL else "all"]
        told += [f"with {self.share:g} of the best one's words"] if self.share else []
        told += [f"until log-odds of {self.sure:g}"] if self.sure < NEVER else []
        told += [f"by {self.by}"] if self.by != "words" else []
        return ", ".join(told)


RULES = (
    *(Rule(1), Rule(2), Rule(3), Rule(4)),
    *(Rule(k, by="vectors") for k in (1, 2, 3)),
    *(Rule(k, by="both") for k in (1, 2, 3)),
    *(Rule(4, 0.3), Rule(3, 0.3), Rule(4, 0.5)),
    *(Rule(sure=3.0), Rule(sure=2.0), Rule(3, sure=3.0)),
)
STOPS = (0.5, 0.7, 0.8, 0.9)


def weights(statement: str, texts: Sequence[str]) -> list[float]:
    """Return how much of a statement's content words each window holds, rarer ones more."""
    wanted = set(content_words(statement))
    held = [wanted & set(content_words(text)) for text in texts]
    among = Counter(word for words in held for word in words)
    rare = {word: math.log((len(texts) + 1) / (n + 0.5)) for word, n in among.items()}
    return [sum(rare[word] for word in sorted(words)) for words in held]


def orders(
    statement: str, texts: Sequence[str], embedder: EmbeddedEmbedder
) -> dict[By, list[float]]:
    """Return for each way how near each window is to a statement, for what :func:`chosen` needs."""
    vectors = embedder.vectors([statement, *texts])
    cosines = vectors[1:] @ vectors[0]
    words = weights(statement, texts)
    ranks = np.argsort(np.argsort(cosines)) + np.argsort(np.argsort(words))
    return {"words": words, "vectors": cosines.tolist(), "both": ranks.tolist()}


def chosen(rule: Rule, held: Sequence[float], odds: Floats) -> list[int]:
    """Return the windows that are read."""
    order = sorted(range(len(held)), key=lambda place: -held[place])
    read: list[int] = []
    for place in order[: rule.most]:
        if rule.share and held[place] < rule.share * held[order[0]]:
            break
        read.append(place)
        if odds[place] >= rule.sure:
            break
    return sorted(read)


def of_set(
    model: EmbeddedEntailer, embedder: EmbeddedEmbedder, name: str, rows: int
) -> dict[str, Any]:
    """Return for each rule the AUC that is lost, and the share of the windows that is read."""
    own = items(name, rows)
    labels = np.array([one.label == 0 for one in own])
    scores: dict[str, list[float]] = {rule.words: [] for rule in (Rule(), *RULES)}
    read = Counter[str]()
    for one in own:
        (logits,) = model.logits([(one.premise, one.hypothesis)])
        texts = cut_windows(one.premise, *WINDOW)
        cut = len(texts) == len(logits) > 1
        held = orders(one.hypothesis, texts, embedder) if cut else {}
        for rule in (Rule(), *RULES):
            places = (
                chosen(rule, held[rule.by], compute_log_odds(logits)) if cut else range(len(logits))
            )
            # of one window of several, the weights of several still count
            part = logits[[*places] * (2 if cut and len(places) == 1 else 1)]
            pair = one.premise, one.hypothesis
            row = model._combine(part, *pair)
            scores[rule.words].append(apply_quantities(row, *pair, model.quantities)[0])
            read[rule.words] += len(places)
    whole = roc_auc_score(labels, scores[Rule().words])
    return {"n": len(own), "auc": round(float(whole), 3)} | {
        rule.words: {
            "auc_change": round(float(roc_auc_score(labels, scores[rule.words]) - whole), 4),
            "read": round(read[rule.words] / read[Rule().words], 2),
        }
        for rule in RULES
    }


def sentences(name: str) -> Iterator[tuple[str, Sequence[str], bool]]:
    """Yield statements, their passages, and whether these support them."""
    if name == "planted answers":
        for answer in planted(60):
            for text in answer.sentences:
                yield text, answer.passages, text not in answer.planted
        return
    own = list(rows_of("wice_dev"))
    for place in generator(0, "fewer windows").permutation(len(own))[:250]:
        yield own[place].answer, own[place].passages, own[place].supported


def stopping(model: EmbeddedEntailer, name: str) -> dict[str, Any]:
    """Return what stopping at the first passage that supports loses, and how much it reads."""
    split = load_splitter("sentencex")
    labels, first, best, counts = [], [], [], []
    for text, passages, label in sentences(name):
        documents = [Document(str(n), passage) for n, passage in enumerate(passages)]
        nearest = Passages(documents, split).find_nearest(text, 3)
        near = [excerpt.premise for excerpt, _ in nearest]
        chances = model.scores([(premise, text) for premise in near])[:, 0]
        labels.append(label)
        first.append(float(chances[0]))
        best.append(float(chances.max()))
        counts.append(len(near) + (best[-1] < STOPS[0]))  # joined sentences are read then, too
    whole, all_read = roc_auc_score(labels, best), sum(counts)
    table = {}
    for stop in STOPS:
        values = [one if one >= stop else most for one, most in zip(first, best, strict=True)]
        read = sum(1 if one >= stop else n for one, n in zip(first, counts, strict=True))
        change = round(float(roc_auc_score(labels, values) - whole), 4)
        table[str(stop)] = {"auc_change": change, "read": round(read / all_read, 2)}
    return {"n": len(labels), "auc": round(float(whole), 3)} | table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=300)
    options = parser.parse_args()
    model, vectors = EmbeddedEntailer(), EmbeddedEmbedder()
    figures: dict[str, Any] = {"windows": {}, "passages": {}}
    for name in SETS:
        figures["windows"][name] = of_set(model, vectors, name, options.rows)
        print(name, json.dumps(figures["windows"][name]), flush=True)
    for name in ("planted answers", "WiCE pages"):
        figures["passages"][name] = stopping(model, name)
        print(name, json.dumps(figures["passages"][name]), flush=True)
    command = f"python -m lab.benchmarks.fewer_windows --rows {options.rows}"
    write_result("fewer-windows", command, "development files; planted answers", figures)


if __name__ == "__main__":
    main()
