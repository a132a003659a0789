"""Which figure of ``faithfulness`` puts answers in order: the wrong ones first?

    python -m lab.benchmarks.ordering --out FOLDER             # some minutes; goes on where it
    stopped
    python -m lab.benchmarks.ordering --out FOLDER --write     # into lab/results/

Planted errors (:mod:`lab.benchmarks.planted`) and the public sets of docs/which-metric.md that have
passages. Of each candidate: the AUROC, how many of the first twentieth are wrong (of equal figures
their share), and the choice that leaves one set out: the candidate with the best mean AUROC on the
others of its kind. The oracle is a reader that knows which sentences were planted.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.planted import Answer, planted
from lab.benchmarks.which_metric.sets import SETS, records
from lab.results import write_result
from trustassay import score
from trustassay.core.metric import Assessment
from trustassay.runs.folder import RunFolder
from trustassay.statistics.correlation import auroc

Floats = NDArray[np.float64]


class Rows(NamedTuple):
    """The scored answers of a set; labels: 1 for right ones. kinds: the planted edits."""

    assessments: Sequence[Assessment]
    labels: Sequence[int]
    kinds: Sequence[Sequence[str]]


def supports(assessment: Assessment) -> Floats:
    """Return the probability of support of each sentence that claims something, shape (n,)."""
    found = [row["entailment"] for row in assessment.evidence if "entailment" in row]
    return np.array(found, dtype=np.float64)


def _of_supports(formula: Callable[[Floats], float]) -> Callable[[Assessment], float]:
    return lambda assessment: float(formula(supports(assessment)))


CANDIDATES: Mapping[str, Callable[[Assessment], float]] = {
    "share": lambda one: float(one.score or 0.0),
    "mean support": lambda one: one.parts["support"],
    "weakest": lambda one: one.parts["weakest"],
    "two weakest": _of_supports(lambda p: float(np.sort(p)[:2].mean())),
    "product": _of_supports(lambda p: float(p.prod())),
    "geometric mean": _of_supports(lambda p: float(p.prod() ** (1 / len(p)))),
    "weakest, length-corrected": _of_supports(lambda p: 1 - (1 - p.min()) ** len(p)),
    "noisy-or": _of_supports(lambda p: 1 - (1 - p).prod()),
    "order": lambda one: one.parts["order"],
}


def first_wrong(values: Floats, labels: Sequence[int], first: int) -> float:
    """Return how many wrong answers to expect among the ``first`` lowest; ties are drawn."""
    wrong = 1.0 - np.asarray(labels)
    line = np.sort(values)[first - 1]
    below, equal = values < line, values == line
    return float(wrong[below].sum() + (first - below.sum()) * wrong[equal].mean())


def scored(
    folder: Path, samples: Sequence[Mapping[str, Any]], entailer: Any = None
) -> dict[str, Assessment]:
    """Return the assessments of a run, made if the folder has none."""
    if not (folder / "summary.json").exists():
        bare = [{k: v for k, v in one.items() if k != "label"} for one in samples]
        given = {"entailer": entailer} if entailer else {}
        score(bare, metrics="faithfulness", out=folder, report=False, **given)
    return {one.id: one for one in RunFolder(folder).assessments()}


def rows_of(
    found: Mapping[str, Assessment], known: Sequence[tuple[str, int, Sequence[str]]]
) -> Rows:
    kept = [one for one in known if found[one[0]].score is not None]
    return Rows([found[i] for i, *_ in kept], [y for _, y, _ in kept], [k for *_, k in kept])


def aurocs(rows: Rows) -> dict[str, float]:
    """Return the AUROC of each candidate on a set."""
    found = {
        name: auroc([figure(one) for one in rows.assessments], rows.labels)
        for name, figure in CANDIDATES.items()
    }
    return {name: round(value, 3) for name, value in found.items() if value is not None}


def left_out(table: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, Any]]:
    """Return for each set what is best on the others, its AUROC here, and that of the share."""
    found = {}
    for name, here in table.items():
        others = [row for other, row in table.items() if other != name]
        best = max(CANDIDATES, key=lambda one: np.mean([row[one] for row in others]))
        found[name] = {"chosen": best, "auroc": here[best], "share": here["share"]}
    return found


def of_planted(folder: Path, answers: Sequence[Answer], entailer: Any = None) -> Rows:
    """Return the scored answers with planted errors."""
    found = scored(folder, [one.record for one in answers], entailer)
    return rows_of(found, [(one.id, int(not one.kinds), one.kinds) for one in answers])


def oracle(answers: Sequence[Answer]) -> Callable[[str, str], float]:
    """Return a reader that supports every sentence but those that were planted."""
    wrong = [(text, " ".join(one.passages)) for one in answers for text in one.planted]

    def reads(premise: str, hypothesis: str) -> float:
        first, bare = premise.split("\n", 1)[0], hypothesis.rstrip(".")
        # a splitter may part a sentence, or take its number off
        planted = ((text in hypothesis or bare in text) and first in said for text, said in wrong)
        return 0.05 if any(planted) else 0.95

    return reads


def figures_of(out: Path, answers: int, public: int) -> dict[str, Any]:
    """Measure everything."""
    made = planted(answers)
    whole = of_planted(out / "planted", made)
    source = {one.id: one.source for one in made}
    apart: dict[str, Rows] = {}
    for row in zip(*whole, strict=True):
        own = apart.setdefault(source[row[0].id], Rows([], [], []))
        for column, value in zip(own, row, strict=True):
            column.append(value)  # type: ignore[attr-defined]
    by_source = {name: aurocs(rows) for name, rows in apart.items()}
    kinds = sorted({kind for one in whole.kinds for kind in one})
    by_kind = {}
    for kind in kinds:
        of_kind = [r for r in zip(*whole, strict=True) if r[1] or kind in r[2]]
        by_kind[kind] = aurocs(Rows(*map(list, zip(*of_kind, strict=True))))
    first = max(1, round(len(whole.labels) / 20))
    told = of_planted(out / "oracle", made, oracle(made))
    wrong = told.labels.count(0)
    sets = {}
    for one in SETS:
        if "faithfulness" in one.columns:
            samples = records(one, public)
            found = scored(out / one.name, samples)
            known = [(str(row["id"]), int(row["label"]), ()) for row in samples]
            sets[one.name] = aurocs(rows_of(found, known))
            print(one.name, sets[one.name], flush=True)
    return {
        "planted": {
            "answers": len(whole.labels),
            "wrong": whole.labels.count(0),
            "auroc": aurocs(whole),
            "first": first,
            "wrong_among_first": {
                name: round(
                    first_wrong(np.array([f(a) for a in whole.assessments]), whole.labels, first), 2
                )
                for name, f in CANDIDATES.items()
            },
            "by_source": by_source,
            "by_kind": by_kind,
            "left_out": left_out(by_source),
        },
        "oracle": {
            name: first_wrong(np.array([f(a) for a in told.assessments]), told.labels, wrong)
            for name, f in CANDIDATES.items()
        }
        | {"of": wrong},
        "public": {
            "answers_a_set": public,
            "auroc": sets,
            "mean": {
                name: round(float(np.mean([row[name] for row in sets.values()])), 3)
                for name in CANDIDATES
            },
            "left_out": left_out(sets),
        },
    }


def show(found: Mapping[str, Any]) -> None:
    """Print the tables."""
    one = found["planted"]
    print(f"planted: {one['answers']} answers, {one['wrong']} wrong; first {one['first']}")
    for name in CANDIDATES:
        print(
            f"  {name:26} {one['auroc'][name]:.3f} {one['wrong_among_first'][name]:6.2f}"
            f"  oracle {found['oracle'][name]:.0f} of {found['oracle']['of']}"
            f"  public mean {found['public']['mean'][name]:.3f}"
        )
    for title, key in (("by source", "by_source"), ("by kind", "by_kind")):
        print(title)
        for name, row in one[key].items():
            print(f"  {name:15}", {k: row[k] for k in ("share", "weakest", "order")})
    for title, rows in (("planted", one["left_out"]), ("public", found["public"]["left_out"])):
        print(f"one set left out, {title}")
        for name, row in rows.items():
            print(f"  {name:20} {row}")


def main() -> None:
    """Measure, print, and with --write keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--answers", type=int, default=300)
    parser.add_argument("--public", type=int, default=150)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    found = figures_of(args.out, args.answers, args.public)
    show(found)
    if args.write:
        write_result(
            "ordering",
            f"python -m lab.benchmarks.ordering --answers {args.answers} --public {args.public}",
            "answers of real documents with planted errors, and public sets; entailer embedded",
            found,
        )


if __name__ == "__main__":
    main()
