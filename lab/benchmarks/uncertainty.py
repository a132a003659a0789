"""``uncertainty`` on passages about people, of which labels of people say which sentences are true.

    python -m lab.benchmarks.uncertainty --out FOLDER            # some 20 minutes; goes on
    python -m lab.benchmarks.uncertainty --out FOLDER --entailer hf:MODEL
    python -m lab.benchmarks.uncertainty --out FOLDER --recorded # the 60 answers of `demo --all`
    python -m lab.benchmarks.uncertainty --out FOLDER --tokens   # SelfCheck-BERTScore alone, a
    minute

119 passages of GPT-3 with ten other replies each and a label for each sentence (Manakul et al.
2023; ``selfcheck-wikibio`` of the shared data). Of each part: the correlation with the labels of
passages (0 accurate, 1/2 minor, 1 major, mean over sentences), and the area under the
precision-recall curve by sentence: non-factual (minor and major), non-factual* (major), factual.
Beside them the scores of SelfCheckGPT's own methods that stand in the file. The same with the first
5, 3 and 2 of the ten replies. Intervals resample passages. Writes
``results/uncertainty-wikibio.json``, into which ``--tokens`` puts ``selfcheck_bertscore`` by the
included embedder; of the recorded answers, the AUROC of each part against what was read by eye,
``results/uncertainty-recorded.json``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.which_metric.sets import lines
from lab.results import read_result, write_result
from trustassay import score, study
from trustassay.backends.registry import load
from trustassay.cli.demo import score_recorded
from trustassay.metrics.uncertainty import Uncertainty
from trustassay.metrics.uncertainty.maths import selfcheck_bertscore
from trustassay.runs.folder import RunFolder
from trustassay.statistics.correlation import WEIGHTED_MEASURES
from trustassay.statistics.resampling import cluster_weights, generator, resample_interval
from trustassay.text.sentences import load_splitter

Floats = NDArray[np.float64]
LABELS = {"accurate": 0.0, "minor_inaccurate": 0.5, "major_inaccurate": 1.0}
REPLIES = (10, 5, 3, 2)
PARTS = "sentences+selfcheck_ngram"
COMMAND = "python -m lab.benchmarks.uncertainty --out FOLDER --entailer"
DATA = "119 passages about people by GPT-3, ten other replies each, labels of sentences by people"
BY_SENTENCE = ("disagreement", "selfcheck_nli")


def record(row: Mapping[str, Any], place: int, k: int) -> dict[str, Any]:
    """Return a passage as a sample with ``k`` replies; each sentence is a line of its own."""
    return {
        "id": f"passage-{place}",
        "question": "Who is this passage about?",
        "response": "\n".join(one.strip() for one in row["main_sentences"]),
        "resamples": row["sample_passages"][:k],
    }


def by_sentence(folder: Path, rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Floats]]:
    """Return the parts of each passage's sentences; those of SelfCheckGPT begin with "stored"."""
    found: dict[str, list[Floats]] = {}
    scored = {one.id: one for one in RunFolder(folder).assessments()}
    for place, row in enumerate(rows):
        evidence = [one for one in scored[f"passage-{place}"].evidence if one["kind"] == "sentence"]
        for name in BY_SENTENCE:
            own = np.array([_of(sentence, evidence, name) for sentence in row["main_sentences"]])
            own[np.isnan(own)] = np.nanmean(own)  # one that claims nothing
            found.setdefault(name, []).append(own)
        for name, scores in row["scores"].items():
            found.setdefault(f"stored {name}", []).append(np.array(scores, dtype=float))
    return found


def _of(sentence: str, evidence: Sequence[Mapping[str, Any]], name: str) -> float:
    """Return the mean of what was judged of a sentence: parts of it, or what it is a part of."""
    whole = "".join(sentence.split())
    texts = ["".join(one["text"].split()) for one in evidence]
    places = [i for i, text in enumerate(texts) if text in whole or whole in text]
    values = [evidence[i][name] for i in places if evidence[i].get(name) is not None]
    return float(np.mean(values)) if values else np.nan


def figure(measure: str, scores: Floats, labels: Floats, of: NDArray[np.int64]) -> dict[str, Any]:
    """Return a measure with its interval; ``of``: the passage of each row, which is resampled."""
    weighted = WEIGHTED_MEASURES[measure](scores, labels)
    weights = cluster_weights(of, generator(0, "wikibio", measure), 2000)
    drawn = np.concatenate([weighted(some) for some in weights])
    interval = resample_interval(drawn, int(of.max()) + 1)
    value = float(weighted(np.ones((1, len(of))))[0])
    told = interval if isinstance(interval, str) else [round(float(x), 4) for x in interval]
    return {"value": round(value, 4), "interval": told}


def recorded(out: Path, entailer: str) -> None:
    """Score the recorded answers; write the AUROC of each part with its interval."""
    score_recorded(out / "recorded", entailer)
    found = study([out / "recorded" / "closed-book"], labels="label").labels[0]
    figures = {
        name: {"auroc": one.value, "interval": one.interval}
        for name, measures in found.figures.items()
        if (one := measures["auroc"]).value is not None
    }
    data = "60 answers of Qwen2.5-Coder-1.5B-Instruct, right or wrong read by eye"
    command = "python -m lab.benchmarks.uncertainty --out FOLDER --recorded"
    write_result("uncertainty-recorded", command, data, figures)


def tokens(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of SelfCheck-BERTScore, by sentence and by passage."""
    embedder, split = load("token embedder", "embedded"), load_splitter("sentencex")
    own = []
    for row in rows:
        said = embedder.token_vectors([one.strip() for one in row["main_sentences"]])
        replies = [
            embedder.token_vectors([one.strip() for one in split(text) if one.strip()])
            for text in row["sample_passages"]
        ]
        own.append(selfcheck_bertscore(said, replies, np.ones(len(replies))))
    labels = [np.array([LABELS[one] for one in row["annotation"]]) for row in rows]
    of, alone = np.repeat(np.arange(len(rows)), list(map(len, labels))), np.arange(len(rows))
    means, columns = (np.array([one.mean() for one in some]) for some in (labels, own))
    measures = ("pearson", "spearman")
    return {
        "by sentence": of_sentences(np.concatenate(own), np.concatenate(labels), of),
        "by passage": {name: figure(name, columns, means, alone) for name in measures},
    }


def of_sentences(scores: Floats, labels: Floats, of: NDArray[np.int64]) -> dict[str, Any]:
    """Return the areas under the precision-recall curve for each kind of sentence."""
    targets = {"non-factual": labels > 0, "non-factual*": labels == 1, "factual": labels == 0}
    return {
        target: figure("auprc", -scores if target == "factual" else scores, own.astype(float), of)
        for target, own in targets.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--entailer", default="embedded")
    parser.add_argument("--passages", type=int, default=119)
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("--tokens", action="store_true")
    options = parser.parse_args()
    if options.recorded:
        recorded(options.out, options.entailer)
        return
    rows = list(lines("selfcheck-wikibio/passages"))[: options.passages]
    if options.tokens:
        figures = read_result("uncertainty-wikibio")
        for kind, found in tokens(rows).items():
            figures[kind]["selfcheck_bertscore"] = found
        write_result("uncertainty-wikibio", f"{COMMAND} embedded, then --tokens", DATA, figures)
        return
    name = f"{options.entailer.replace('/', '-').replace(':', '-')}-{len(rows)}"
    folders = {k: options.out / f"{name}-{k}" for k in REPLIES}
    for k, folder in folders.items():  # the fewer replies are some of the ten: all is stored
        score(
            [record(row, place, k) for place, row in enumerate(rows)],
            metrics=[Uncertainty(parts=PARTS)],
            entailer=options.entailer,
            out=folder,
            cache=options.out / "cache",
            report=False,
            progress=True,
        )
    folder = folders[max(REPLIES)]
    labels = [np.array([LABELS[one] for one in row["annotation"]]) for row in rows]
    of = np.repeat(np.arange(len(rows)), [len(one) for one in labels])
    each = np.concatenate(labels)
    sentences = by_sentence(folder, rows)
    figures = {"passages": len(rows), "sentences": len(each), "by sentence": {}}
    for name, values in sentences.items():
        figures["by sentence"][name] = of_sentences(np.concatenate(values), each, of)
    means = np.array([one.mean() for one in labels])
    scored = {one.id: one for one in RunFolder(folder).assessments()}
    columns = {name: np.array([one.mean() for one in v]) for name, v in sentences.items()}
    for part in ("weakest_sentence", "selfcheck_ngram"):
        columns[part] = np.array([scored[f"passage-{i}"].parts[part] for i in range(len(rows))])
    alone = np.arange(len(rows))
    figures["by passage"] = {
        name: {
            measure: figure(measure, values, means, alone) for measure in ("pearson", "spearman")
        }
        for name, values in columns.items()
    }
    figures["pearson by replies"] = {
        str(k): {
            part: figure("pearson", column, means, alone)
            for part in BY_SENTENCE
            if (column := np.array([one.mean() for one in by_sentence(few, rows)[part]])).size
        }
        for k, few in folders.items()
    }
    if len(rows) == 119:
        write_result("uncertainty-wikibio", f"{COMMAND} {options.entailer}", DATA, figures)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
