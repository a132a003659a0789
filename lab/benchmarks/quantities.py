"""How often the comparison of quantities speaks, how often it is right, and what it changes.

    python -m lab.benchmarks.quantities --part dev --out lab/results/quantities-dev.json
    python -m lab.benchmarks.quantities --part test --out lab/results/quantities.json

1. On labelled pairs, with the texts as they come: the share of pairs that the comparison supports
   or contradicts, how many of these people judge alike, and the AUC of the built-in entailer
   without and with it. Verdicts are counted on all rows of a set, the AUC on ``--rows`` of them.
2. On statements whose quantity is altered: statements that people found supported, and sentences of
   the passages themselves, are said in another way (a unit is converted, digits become words, a
   date is shortened) and altered so that they are false. Patterns of this file find and alter the
   quantities, not the code that is measured.

The development part, by which rules and weights are chosen, is of development files and of the rows
``choose`` of the public sets; the test part is of test files and of the rows ``report``. VitaminC
and the like, which have one file, are split by passage for the altered statements. The data is
found by TRUSTASSAY_SHARED, else ../shared; nothing of it is written.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.public_labels.rows import read_rows
from lab.training import data, measure, probes, sets
from lab.training.agreement import auc
from trustassay.backends.embedded import EmbeddedEntailer, apply_quantities, is_copied
from trustassay.backends.verifier import compute_verdict
from trustassay.text.quantities import _read
from trustassay.text.tables import spell_data

Rng = np.random.Generator
Row = dict[str, Any]
Scores = NDArray[np.float64]
Change = tuple[str, str, str]
"""What stands in the statement, and what it becomes in the true and in the false one."""

PER_KIND = 150
LONGEST = 250
"""Words of the longest passage that is used."""
PARTS = {
    "dev": ("fib/dev", "expertqa/dev", "summedits/dev", "attribution/wice_oracle_dev",
            "attribution/begin_wow_dev", "attribution/begin_cmu_dev", "attribution/begin_tc_dev"),
    "test": ("fib/test", "expertqa/test", "summedits/test", "attribution/wice_oracle_test",
             "attribution/begin_wow_test", "dialogue-grounding/q2_wow_test", "fool-me-twice/test"),
}  # fmt: skip
"""Files by part; besides, half of the passages of VitaminC's development file each."""
DEV_SETS = (
    "begin_wow_dev", "begin_cmu_dev", "begin_tc_dev", "fib_dev", "xsum_dev", "summedits_dev",
    "expertqa_dev", "diasumfact_dev", "wice_oracle_dev", "healthver_dev", "fm2_held",
    "faithdial_held", "vitaminc", "fever_symmetric",
)  # fmt: skip
"""Development sets whose texts have quantities, named as in ``lab.training.measure``."""
PUBLIC_SETS = {
    "attributionbench-in": "right",
    "attributionbench-ood": "right",
    "scitab": "supported",
}
"""Sets of ``lab.benchmarks.public_labels``, with the label of a statement that is supported."""

WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
).split()
ORDINALS = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
).split()
MONTHS = (
    "January February March April May June July August September October November December"
).split()
UNITS: dict[str, dict[str, float]] = {
    "length": {"miles": 1609.344, "kilometres": 1000, "metres": 1, "feet": 0.3048, "yards": 0.9144},
    "short": {"inches": 0.0254, "centimetres": 0.01, "feet": 0.3048, "millimetres": 0.001},
    "mass": {"kilograms": 1, "pounds": 0.45359, "tonnes": 1000},
    "time": {"minutes": 60, "hours": 3600, "days": 86400, "weeks": 604800},
    "age": {"years": 12, "months": 1},
    "area": {"acres": 4046.86, "hectares": 10000},
}
SPELT = {
    "mile": "miles", "km": "kilometres", "kilometre": "kilometres", "kilometer": "kilometres",
    "kilometers": "kilometres", "metre": "metres", "meters": "metres", "meter": "metres",
    "m": "metres", "foot": "feet", "ft": "feet", "yard": "yards", "inch": "inches",
    "cm": "centimetres", "mm": "millimetres", "kg": "kilograms", "pound": "pounds", "lb": "pounds",
    "lbs": "pounds", "minute": "minutes", "hour": "hours", "day": "days", "week": "weeks",
    "year": "years", "month": "months", "acre": "acres", "hectare": "hectares", "tonne": "tonnes",
}  # fmt: skip
_UNIT = re.compile(
    r"(?<![\w.,$£€-])(?P<n>\d[\d,]*(?:\.\d+)?|" + "|".join(WORDS[2:]) + r") (?P<u>"
    + "|".join({u for t in UNITS.values() for u in t} | set(SPELT)) + r")\b(?! old| ago| later)"
)  # fmt: skip
_COUNT = re.compile(
    r"(?<![\w.,$£€/-])(?<!\bin )(?P<n>\d{1,3}(?:,\d{3})+|\d{1,3}|"
    + "|".join(WORDS[2:])
    + r")(?= [a-z]{3,})(?! (?:million|billion|thousand|hundred|percent|per cent|to|and|or)\b)"
)
_SHARE = re.compile(r"(?<![\w.,])(?P<n>\d{1,2}(?:\.\d+)?)(?P<u> ?%| per ?cent)")
_DATE = re.compile(
    rf"\b(?:(?P<m>{'|'.join(MONTHS)}) (?P<d>\d{{1,2}}), (?P<y>\d{{4}})"
    rf"|(?P<d2>\d{{1,2}}) (?P<m2>{'|'.join(MONTHS)}) (?P<y2>\d{{4}}))\b"
)
_MONTH = re.compile(rf"\bin (?P<m>{'|'.join(MONTHS)}) (?P<y>(?:19|20)\d\d)\b")
_OPEN = re.compile(r"\b(?:before|after|by|since|until|from) (?:the )?(?:\d|[A-Z][a-z]+ \d)")
"""Before a date: another date may leave such a statement true."""
_YEAR = re.compile(r"\b(?P<p>[Ii]n) (?P<y>1[5-9]\d\d|20[0-2]\d)\b(?![-–])")
_ORDINAL = re.compile(rf"\b(?P<n>{'|'.join(ORDINALS[2:])}|[1-9]\d?(?:st|nd|rd|th))(?= [a-z])")
_BOUNDED = re.compile(r"(?:than|over|under|least|most|up|to|and|between|nearly|almost|of|[-–—]) ?$")
"""Before an amount that is one end of a range or a bound: another unit may leave it true."""
_HEDGED = re.compile(
    r"(?:than|over|under|least|most|about|around|nearly|almost|some|to|approximately|only|between"
    r"|a|an|the|of|these|those|other|all|another|last|first|next|past) $"
)


def number(text: str) -> float:
    return float(WORDS.index(text)) if text in WORDS else float(text.replace(",", ""))


def written(value: float, digits: int = 3) -> str:
    """Return a number with so many digits, without an exponent."""
    text = f"{float(f'{value:.{digits}g}'):,.6f}".rstrip("0").rstrip(".")
    return text or "0"


def elsewhere(premise: str, value: float, rng: Rng) -> float | None:
    """Return another count of the passage, if it has one."""
    others = sorted({number(m["n"]) for m in _COUNT.finditer(premise)} - {value})
    return others[int(rng.integers(len(others)))] if others else None


def another(value: float, premise: str, rng: Rng) -> float:
    """Return another number of like size: half of the time one of the passage, if it has one."""
    swap = elsewhere(premise, value, rng)
    if swap is not None and rng.random() < 0.5:
        return swap
    if value < 10:
        return value + float(rng.choice([1, 2, 3] if value < 4 else [-2, -1, 1, 2, 3]))
    return float(round(value * rng.choice([0.5, 0.7, 0.8, 0.9, 1.1, 1.2, 1.5, 2])) + (value < 20))


def units(statement: str, _premise: str, rng: Rng) -> Change | None:
    found = _UNIT.search(statement)
    if not found or _BOUNDED.search(statement[: found.start()]):
        return None
    unit, value = SPELT.get(found["u"], found["u"]), number(found["n"])
    tables = [t for t in UNITS.values() if unit in t]
    others = [u for t in tables for u in t if u != unit]
    if not others or not value:
        return None
    table = tables[0] if others[0] in tables[0] else tables[-1]
    other = str(rng.choice([u for u in table if u != unit]))
    exact = value * table[unit] / table[other]
    if not 0.05 <= exact < 1e6:
        return None
    bare = not _HEDGED.search(statement[: found.start()])
    hedge = str(rng.choice(["", "about "])) if bare else ""
    right = f"{hedge}{written(exact)} {other}"
    if rng.random() < 0.5:
        return found[0], right, f"{hedge}{found['n']} {other}"
    return found[0], right, f"{hedge}{written(exact * rng.choice([0.4, 0.6, 1.6, 2.5]))} {other}"


def numbers(statement: str, premise: str, rng: Rng) -> Change | None:
    found = _COUNT.search(statement)
    if not found or _UNIT.match(statement, found.start()):
        return None
    value = number(found["n"])
    other = another(value, premise, rng)
    if found["n"] in WORDS:
        return found[0], f"{value:.0f}", WORDS[int(other)] if other <= 20 else f"{other:,.0f}"
    if value <= 20:
        return found[0], WORDS[int(value)], WORDS[int(other)] if other <= 20 else f"{other:,.0f}"
    if value >= 1000 and not _HEDGED.search(statement[: found.start()]):
        return found[0], f"about {written(value, 2)}", f"about {written(other, 2)}"
    return found[0], f"{value:.0f}", f"{other:,.0f}"


def dates(statement: str, _premise: str, rng: Rng) -> Change | None:
    if _OPEN.search(statement):
        return None
    if found := _DATE.search(statement):
        month, day, year = (found[k] or found[f"{k}2"] for k in "mdy")
        right = str(rng.choice([f"{day} {month} {year}", f"{month} {day}, {year}"]))
        if right == found[0]:
            right = f"{day} {month} {year}" if found["m"] else f"{month} {day}, {year}"
        shift = [(day, month, str(int(year) + int(rng.choice([-10, -2, -1, 1, 3])))),
                 (day, str(rng.choice([m for m in MONTHS if m != month])), year),
                 (str(int(day) % 27 + 1 + int(rng.integers(1))), month, year)]  # fmt: skip
        d, m, y = shift[int(rng.integers(3))]
        return found[0], right, f"{d} {m} {y}" if found["m"] else f"{m} {d}, {y}"
    if found := _MONTH.search(statement):
        year = found["y"]
        wrong = str(rng.choice([m for m in MONTHS if m != found["m"]]))
        return found[0], f"in {year}", f"in {wrong} {year}"
    if found := _YEAR.search(statement):
        year = int(found["y"])
        near = year + int(rng.choice([-10, -3, -1, 1, 2, 20]))
        if rng.random() < 0.5:
            decade = year // 10 * 10
            other = decade + int(rng.choice([-20, -10, 10]))
            return found[0], f"{found['p']} the {decade}s", f"{found['p']} the {other}s"
        return found[0], f"{found['p']} the year {year}", f"{found['p']} {near}"
    return None


def comparison(statement: str, _premise: str, rng: Rng) -> Change | None:
    found = _COUNT.search(statement) or _SHARE.search(statement)
    if not found or _HEDGED.search(statement[: found.start()]):
        return None
    value = number(found["n"])
    if value < 3 or (_UNIT.match(statement, found.start()) is None and found["n"] == "100"):
        return None
    low, high = rng.choice([0.5, 0.8, 0.9]), rng.choice([1.1, 1.25, 2])
    below, above = round(value * low), round(value * high)
    below, above = min(below, int(value) - 1), max(above, int(value) + 1)
    rest = found["u"] if "u" in found.groupdict() else ""
    fewer = "less than" if rest else "fewer than"
    if rng.random() < 0.5:
        words = str(rng.choice(["more than", "at least", "over"]))
        return found[0], f"{words} {below:,}{rest}", f"{words} {above:,}{rest}"
    return found[0], f"{fewer} {above:,}{rest}", f"{fewer} {below:,}{rest}"


def ordinals(statement: str, _premise: str, rng: Rng) -> Change | None:
    found = _ORDINAL.search(statement)
    if not found:
        return None
    text = found["n"]
    value = ORDINALS.index(text) if text in ORDINALS else int(text[:-2])
    other = value + int(rng.choice([-1, 1, 2, 3] if value > 2 else [1, 2, 3]))

    def suffixed(n: int) -> str:
        last = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
        return f"{n}{last}"

    if text in ORDINALS:
        return text, suffixed(value), ORDINALS[other] if other < len(ORDINALS) else suffixed(other)
    return text, ORDINALS[value] if value < len(ORDINALS) else text, suffixed(other)


KINDS: dict[str, Callable[[str, str, Rng], Change | None]] = {
    "units": units,
    "numbers": numbers,
    "dates": dates,
    "comparison": comparison,
    "ordinals": ordinals,
}


class Pair(NamedTuple):
    """A passage and a statement about it, whether it is true, and where it is from."""

    kind: str
    premise: str
    hypothesis: str
    true: bool
    source: str


def statements(part: str) -> Iterator[tuple[str, str, str]]:
    """Yield passages, statements that they support, and the source."""
    for row in data.nli("vitaminc"):
        first = hashlib.sha256(row.premise.encode()).digest()[0] % 2
        if row.label == 0 and first == (part == "test"):
            yield row.premise, row.hypothesis, "vitaminc"
    for path in PARTS[part]:
        name = path.split("/")[1]
        judged = path.startswith("attribution/")
        for item in data.attribution(name) if judged else sets.test(path):
            if len(item.premise.split()) > LONGEST:
                continue
            if item.supported if isinstance(item, data.Judged) else item.label == 0:
                yield item.premise, item.hypothesis, name
            for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z])|\n+", item.premise):
                if 6 <= len(sentence.split()) <= 40 and sentence != item.premise:
                    yield item.premise, sentence, f"{name}, sentences"


def _digest(*texts: str) -> bytes:
    return hashlib.sha256("|".join(texts).encode()).digest()


def pairs(part: str, per_kind: int = PER_KIND) -> list[Pair]:
    """Return a true and a false statement of each kind, from one statement a passage."""
    other = {one[0] for one in statements("dev")} if part == "test" else set()
    every = sorted(
        (one for one in set(statements(part)) if one[0] not in other),
        key=lambda one: _digest(*one),
    )
    made: list[Pair] = []
    for kind, change in KINDS.items():
        seen: set[str] = set()
        count: Counter[bool] = Counter()
        for premise, statement, source in every:
            group = source.endswith("sentences")
            if premise in seen or count[group] * 2 >= per_kind:
                continue
            text = f"{kind}{premise}{statement}"
            found = change(statement, premise, np.random.default_rng([0, *_digest(text)]))
            if not found or found[1] == found[2]:
                continue
            old, *new = found
            seen.add(premise)
            count[group] += 1
            place = re.search(rf"(?<![\w.,]){re.escape(old)}", statement)
            assert place is not None
            for text, true in zip(new, (True, False), strict=True):
                hypothesis = statement[: place.start()] + text + statement[place.end() :]
                made.append(Pair(kind, premise, hypothesis, true, source))
    return made


def both(model: EmbeddedEntailer, texts: Sequence[tuple[str, str]]) -> tuple[Scores, Scores]:
    """Return probabilities of entailment without and with the comparison, shape (n,) each."""
    weights, model.quantities = model.quantities, {}
    before = model.scores(texts)
    model.quantities = weights
    after = [
        apply_quantities(tuple(row), *pair, weights)
        for row, pair in zip(before, texts, strict=True)
    ]
    return before[:, 0], np.array(after)[:, 0]


def by_kind(kinds: Sequence[str], true: NDArray[np.bool_], scores: Sequence[Scores]) -> list[Row]:
    """Return by kind which share of true and of false statements passes, before and after."""
    rows = []
    for kind in dict.fromkeys(kinds):
        of = np.array([one == kind for one in kinds])
        row: Row = {"kind": kind, "n": int((of & true).sum())}
        for when, chances in zip(("before", "after"), scores, strict=True):
            row[f"true_{when}"] = round(float((chances[of & true] >= 0.5).mean()), 3)
            row[f"false_{when}"] = round(float((chances[of & ~true] >= 0.5).mean()), 3)
        rows.append(row)
    return rows


def read_pairs(name: str, part: str) -> list[tuple[str, str, bool]]:
    """Return passages, statements and whether people found them supported, in a random order."""
    if name in PUBLIC_SETS:
        rows = read_rows(name, "choose" if part == "dev" else "report")
        pairs = [
            (
                "\n\n".join(row.record["documents"]),
                row.record["response"],
                row.label == PUBLIC_SETS[name],
            )
            for row in rows
        ]
        order = np.random.default_rng([0, 9, *name.encode()]).permutation(len(pairs))
        return [pairs[i] for i in order]
    return [(item.premise, item.hypothesis, item.label == 0) for item in measure.items(name, 0)]


def measure_set(name: str, part: str, model: EmbeddedEntailer, rows: int) -> Row:
    """Return how often the comparison speaks and is right, and the AUC without and with it."""
    pairs = [
        (spell_data(premise, hypothesis), hypothesis, supported)
        for premise, hypothesis, supported in read_pairs(name, part)
    ]
    verdicts = np.array(
        [
            0.0 if is_copied(premise, hypothesis) else compute_verdict(premise, hypothesis)
            for premise, hypothesis, _ in pairs
        ]
    )
    supported = np.array([label for *_, label in pairs])
    before, after = both(model, [pair[:2] for pair in pairs[: rows or None]])
    return {
        "set": name,
        "n": len(pairs),
        "supported": int(supported.sum()),
        "supports": int((verdicts > 0).sum()),
        "supports_rightly": int(supported[verdicts > 0].sum()),
        "contradicts": int((verdicts < 0).sum()),
        "contradicts_rightly": int((~supported[verdicts < 0]).sum()),
        "n_auc": len(before),
        "before": round(auc(before, supported[: len(before)]), 4),
        "after": round(auc(after, supported[: len(after)]), 4),
    }


def speed(found: Sequence[Pair], model: EmbeddedEntailer) -> Row:
    """Return milliseconds of processor time a pair, of the comparison and of all."""
    texts = [(one.premise, one.hypothesis) for one in found[:200]]
    begun = time.process_time()
    model.scores(texts)
    every = time.process_time() - begun
    _read.cache_clear()
    begun = time.process_time()
    for pair in texts:
        compute_verdict(*pair)
    took = time.process_time() - begun
    return {
        "comparison_ms": round(1e3 * took / len(texts), 2),
        "all_ms": round(1e3 * every / len(texts), 2),
    }


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, default="test")
    parser.add_argument("--rows", type=int, default=300, help="rows for the AUC; 0: all")
    parser.add_argument("--out", type=Path, help="JSON file for all figures")
    args = parser.parse_args()
    model = EmbeddedEntailer(threads=1)
    found = pairs(args.part)
    scores = both(model, [(one.premise, one.hypothesis) for one in found])
    true = np.array([one.true for one in found])
    names = (*(measure.TESTS if args.part == "test" else DEV_SETS), *PUBLIC_SETS)
    made: Row = {
        "name": "quantities",
        "version": model.name,
        "date": datetime.date.today().isoformat(),
        "command": f"python -m lab.benchmarks.quantities --part {args.part}",
        "altered": by_kind([one.kind for one in found], true, scores),
        "speed": speed(found, model),
        "sets": [measure_set(name, args.part, model, args.rows) for name in names],
    }
    if args.part == "test":
        hand = probes.probes()
        scores = both(model, [(one.premise, one.hypothesis) for one in hand])
        true = np.array([one.label == "entailment" for one in hand])
        made["probes"] = by_kind([one.kind for one in hand], true, scores)
        made["probes_auc"] = [round(auc(one, true), 4) for one in scores]
    text = json.dumps(made, indent=1)
    print(text)
    if args.out:
        args.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
