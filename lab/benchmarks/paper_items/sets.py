"""Small sets and models that items of several papers need."""

from __future__ import annotations

from lab.benchmarks.paper_items.running import Bench


def harmonic_mean(recall: float, precision: float) -> float:
    """Return F1; 0 where both are 0."""
    total = recall + precision
    return 2 * recall * precision / total if total else 0.0


def save_punkt(bench: Bench) -> None:
    """Train NLTK's Punkt on a few sentences, and save it where the commands look for it."""
    import nltk.data
    from nltk.tokenize.punkt import PunktTrainer, save_punkt_params

    # NLTK writes only below its own folders of data.
    nltk.data.path.append(str(bench.folder / "nltk_data"))
    trainer = PunktTrainer()
    trainer.train("Dr. Ott met Mr. Lee. They ate at 5 p.m. in town. He left. " * 40, finalize=True)
    target = bench.folder / "nltk_data" / "tokenizers" / "punkt_tab" / "english"
    target.parent.mkdir(parents=True, mode=0o700)
    save_punkt_params(trainer.get_params(), dir=str(target))


def save_t5(bench: Bench) -> None:
    """Save a tiny T5 entailer that knows whether a premise names a red car."""
    from tests.tiny_models import HYPOTHESIS, NONE, RED, train_true

    train_true(bench.folder / "t5")
    premises = {"red": RED, "none": NONE}
    bench.rows(
        "rows.jsonl",
        [
            {"id": name, "question": "Who owns it?", "response": HYPOTHESIS, "documents": [text]}
            for name, text in premises.items()
        ],
    )


def save_wordnet(bench: Bench) -> None:
    """Write a WordNet in which dog and hound are one noun, where NLTK looks for it."""
    name = "nltk_data/corpora/wordnet"
    parts = ("adj", "adv", "noun", "verb")
    empty = ["cntlist.rev", "index.sense", "lexnames", *(f"{part}.exc" for part in parts)]
    empty += [f"{kind}.{part}" for kind in ("index", "data") for part in parts]
    for file in empty:
        bench.write(f"{name}/{file}", "")
    bench.write(f"{name}/data.noun", "00000000 05 n 02 dog 0 hound 0 000 | an animal\n")
    lines = "dog n 1 0 1 0 00000000\nhound n 1 0 1 0 00000000\n"
    bench.write(f"{name}/index.noun", lines)
